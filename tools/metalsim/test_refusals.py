"""What is refused, and what only looks like it."""

from __future__ import annotations

from pathlib import Path

import pytest

from inferspec.tools.metalsim import Library, Refused
from inferspec.tools.metalsim.declarations import declarations
from inferspec.tools.metalsim.refusals import check
from inferspec.tools.metalsim.source import Source


def checked(text: str) -> None:
    source = Source(text, "k.metal")
    check(source, tuple(declarations(source)))


@pytest.mark.parametrize(
    ("text", "construct"),
    [
        ("kernel void k(\ntexture2d<float, access::read> t [[texture(0)]]) { }", "textures and samplers (texture2d)"),
        ("\nvoid f(depth2d_array<float> t) { }", "textures and samplers (depth2d_array)"),
        ("void f() {\nconstexpr sampler s(filter::linear); }", "textures and samplers (sampler)"),
        (
            "kernel void k(\ntensor<device half, dextents<int, 2>> t [[buffer(0)]]) { }",
            "Metal 4 tensor operations (tensor)",
        ),
        ("void f() {\nmpp::tensor_ops::matmul2d<d> op; }", "Metal 4 tensor operations (mpp)"),
        ("\nusing namespace raytracing;", "ray tracing (raytracing)"),
        ("void f(\ninstance_acceleration_structure s) { }", "ray tracing (instance_acceleration_structure)"),
        (
            "void f(\nvisible_function_table<F> t) { }",
            "function pointers and visible functions (visible_function_table)",
        ),
        ("\n[[visible]] float f(float x) { return x; }", "function pointers and visible functions ([[visible]])"),
        (
            "\n[[ stitchable ]] float f(float x) { return x; }",
            "function pointers and visible functions ([[stitchable]])",
        ),
        ("void f() {\nfloat (*g)(float) = h; }", "function pointers and visible functions (a pointer to a function)"),
        ("void f(\nimageblock<P> b) { }", "imageblocks (imageblock)"),
        ("\nvertex float4 v(uint i [[vertex_id]]) { }", "vertex, fragment, mesh, object and tile functions (vertex)"),
        ("\n[[fragment]] float4 v() { }", "vertex, fragment, mesh, object and tile functions ([[fragment]])"),
        ("\n[[mesh]] void m() { }", "vertex, fragment, mesh, object and tile functions ([[mesh]])"),
        ("\n[[object]] void o() { }", "vertex, fragment, mesh, object and tile functions ([[object]])"),
        ("void f(\ncommand_buffer b) { }", "indirect command buffers (command_buffer)"),
        ("void f() {\ndouble x = 0; }", "C++ that Metal does not have (double)"),
        ("void f() {\ngoto end; }", "C++ that Metal does not have (goto)"),
        ("void f() {\nthrow 1; }", "C++ that Metal does not have (throw)"),
        ("struct S {\nvirtual void f(); };", "C++ that Metal does not have (virtual)"),
        ("void f() {\nauto p = new int; }", "C++ that Metal does not have (new)"),
        ('void f() __asm("air.f");\n', "assembly (__asm)"),
    ],
)
def test_what_is_out_of_scope_is_named_with_its_place(text: str, construct: str) -> None:
    with pytest.raises(Refused) as error:
        checked(text)
    line = 1 if "__asm" in text else 2
    assert (error.value.construct, error.value.file, error.value.line) == (construct, "k.metal", line)
    assert str(error.value) == f"k.metal:{line}: metalsim does not run {construct}"


@pytest.mark.parametrize(
    "text",
    [
        "// texture2d<float> t; double\nint x;",
        'constant char s[] = "sampler s";',
        "struct sampler { int x; }; void f(sampler s) { }",
        "void f(int sampler, int tensor) { int x = sampler + tensor; x = p.sampler * q->tensor; }",
        "template <typename tensor> void f(tensor x) { }",
        "void f() { float y = (*p)(3); return (*q)(4); }",
        "typedef void (*Codelet)(thread float2*); template <Codelet f> void g() { }",
        "template <typename T> using Codelet = void (*)(thread T*);",
        "threadgroup float (*rows)[8] = x;",
        "struct S { S() = delete; };",
        "struct mesh { int object; };",
        "[[kernel]] void k(device float* x [[buffer(0)]]) { }",
        "enum class access { read, write }; void f(access a) { }",
    ],
)
def test_what_only_looks_like_it_passes(text: str) -> None:
    checked(text)


def test_the_first_of_several_is_told() -> None:
    with pytest.raises(Refused, match=r"k\.metal:2: .*goto"):
        checked("int x;\nvoid f() { goto a; }\nvoid g(texture2d<float> t) { }")


@pytest.mark.usefixtures("cxx")
def test_a_place_in_a_header_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "inner.h").write_text("\n\nvoid f(texture2d<float> t) { }\n")
    (tmp_path / "outer.metal").write_text('#include <metal_stdlib>\n#include "inner.h"\n')
    with pytest.raises(Refused) as error:
        Library(tmp_path / "outer.metal")
    assert (Path(error.value.file).name, error.value.line) == ("inner.h", 3)


@pytest.mark.usefixtures("cxx")
def test_the_header_of_tensor_operations_is_refused_by_name() -> None:
    text = "#include <metal_stdlib>\n#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>\n"
    with pytest.raises(Refused) as error:
        Library(text, name="mma.metal")
    assert (error.value.construct, error.value.file, error.value.line) == (
        "Metal 4 tensor operations (MetalPerformancePrimitives)",
        "mma.metal",
        2,
    )
