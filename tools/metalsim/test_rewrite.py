"""Rewriting Metal to C++: address spaces, threadgroup variables, attributes. (Kernels have a file of their own.)"""

from __future__ import annotations

import re

import pytest

from inferspec.tools.metalsim import CompileError
from inferspec.tools.metalsim.rewrite import rewrite
from inferspec.tools.metalsim.source import Source


def rewritten(text: str) -> str:
    """The C++, without what only keeps lines and spaces."""
    return re.sub(r"\s+", " ", rewrite(Source(text, "k.metal")).text).strip()


def spaced(text: str) -> str:
    """For comparison whatever the spaces between tokens."""
    return " ".join(token.text for token in Source(text).tokens)


def same(text: str, expected: str) -> bool:
    return spaced(rewritten(text)) == spaced(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("device float* p;", "float* p;"),
        ("void f(const device T* a, threadgroup T& b, thread T* c);", "void f(const T* a, T& b, T* c);"),
        ("constant float pi = 3.14;", "const float pi = 3.14;"),
        ("constant constexpr int n = 3;", "constexpr int n = 3;"),
        ("static constexpr constant int n = 3;", "static constexpr int n = 3;"),
        ("void f(const constant T* a, constant U& b);", "void f(const T* a, const U& b);"),
        ("void f(constant const T* a);", "void f(const T* a);"),
        ("void f(constant vec<T, 2> const* a);", "void f(vec<T, 2> const* a);"),
        ("void f(volatile coherent(system) device uint* a);", "void f(volatile uint* a);"),
        ("void f(coherent device uint* a, int coherent);", "void f(uint* a, int coherent);"),
        ("using P = const device packed<T, 4>*;", "using P = const packed<T, 4>*;"),
        ("struct S { float f() const device; S(float x) constant; };", "struct S { float f() const; S(float x); };"),
        ('auto s = "device constant"; // threadgroup', 'auto s = "device constant"; // threadgroup'),
    ],
)
def test_address_spaces_go_and_constant_is_const(text: str, expected: str) -> None:
    assert same(text, expected)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("T f(device T* a) { return *a; } T f(threadgroup T* a) { return *a; }", "T f(T* a) { return *a; }"),
        ("T f(device T* a) { return *a; } T f(threadgroup T* b) { return *b; }", "T f(T* a) { return *a; }"),
        (
            "template <typename T> T f(device T* a) { g(); } template <typename U> U f(thread U* a) { g(); }",
            "template <typename T> T f(T* a) { g(); }",
        ),
        ("T f(const device T* a) { } T f(constant T* a) { }", "T f(const T* a) { }"),
        ("T f(device T* a, int n = 1) { } T f(thread T* a, int n = 2) { }", "T f(T* a, int n = 1) { }"),
        (
            "namespace n { T f(device T*) { } } namespace n { T f(thread T*) { } }",
            "namespace n { T f(T*) { } } namespace n { }",
        ),
        (
            "template <> struct P<device float*> { int x; }; template <> struct P<threadgroup float*> { int x; };",
            "template <> struct P<float*> { int x; };",
        ),
        ("struct S { S(device float* p) { } S(threadgroup float* p) { } };", "struct S { S(float* p) { } };"),
        (
            "struct S { S(const thread S&) = default; S(const device S& o) : r(o.r) { } S(constant S& p) : r{p.r} { } };",
            "struct S { S(const S&) = default; };",
        ),
        (
            "struct S { S(device const S& o) : r(o.r) { } S(thread const S&) = default; float r = 1; };",
            "struct S { S(const S& o) : r(o.r) { } float r = 1; };",
        ),
        (
            "struct S { S& operator=(thread const S&) = default; S& operator=(device const S& o) { } };",
            "struct S { S& operator=(const S&) = default; };",
        ),
        ("struct S { int f() const device { } int f() const thread { } };", "struct S { int f() const { } };"),
        ("struct S { void f(device float*); void f(threadgroup float*); };", "struct S { void f(float*); };"),
        (
            "template <typename T> constant bool v<device T*> = true; template <typename T> constant bool v<thread T*> = true;",
            "template <typename T> const bool v<T*> = true;",
        ),
        (
            "constexpr thread C& operator+=(thread C& a, C b) { } constexpr device C& operator+=(device C& a, C b) { }",
            "constexpr C& operator+=(C& a, C b) { }",
        ),
    ],
)
def test_what_only_address_spaces_tell_apart_is_kept_once(text: str, kept: str) -> None:
    assert same(text, kept)


@pytest.mark.parametrize(
    "text",
    [
        "void f(device float* a) { } void f(device half* a) { }",
        "void f(device T* a); void f(device T* a) { }",
        "void f(float a) { } void f(int a) { }",
        "struct A { void f(device T*) { } }; struct B { void f(device T*) { } };",
        "template <> struct S<float> { void f(device T*) { } }; template <> struct S<half> { void f(device T*) { } };",
        "namespace a { void f(device T*) { } } namespace b { void f(thread T*) { } }",
        "void f(device T* a) { } void f(device T* a, int n) { }",
        "void f(device T* a) { } void f(const device T* a) { }",
        "struct S { S(device float* a) : x(a[0]) { } S(device half* a) : x(a[0]) { } S() = default; };",
    ],
)
def test_what_differs_otherwise_stays(text: str) -> None:
    assert len(rewrite(Source(rewritten(text))).declared) == len(rewrite(Source(text)).declared)


def test_a_full_specialisation_in_a_class_becomes_an_overload() -> None:
    assert same("struct S { template <> int f(half x) { } };", "struct S { int f(half x) { } };")
    kept = "struct S { template <> int f<half>() { } };"
    assert same(kept, kept)


BODY = "kernel void k(device float* out [[buffer(0)]]) { %s }"


def body(statement: str) -> str:
    text = rewritten(BODY % statement)
    return text[text.index("{") + 1 : text.rindex("}")].strip()


@pytest.mark.parametrize(
    ("statement", "typedef", "names"),
    [
        ("threadgroup float x;", "typedef float x_in_threadgroup", ["x"]),
        ("threadgroup float x[32];", "typedef float x_in_threadgroup [ 32 ]", ["x"]),
        ("threadgroup T x[N + 1][D / 2];", "typedef T x_in_threadgroup [ N + 1 ] [ D / 2 ]", ["x"]),
        (
            "threadgroup float a[2], b, c[3];",
            "typedef float a_in_threadgroup [ 2 ] , b_in_threadgroup , c_in_threadgroup [ 3 ]",
            ["a", "b", "c"],
        ),
        ("static threadgroup uint n;", "typedef uint n_in_threadgroup", ["n"]),
        ("threadgroup static uint n;", "typedef uint n_in_threadgroup", ["n"]),
        ("float threadgroup x[4];", "typedef float x_in_threadgroup [ 4 ]", ["x"]),
        ("threadgroup vec<T, 4> x[4];", "typedef vec < T , 4 > x_in_threadgroup [ 4 ]", ["x"]),
        ("threadgroup metal::array<float, 4> x;", "typedef metal :: array < float , 4 > x_in_threadgroup", ["x"]),
        (
            "threadgroup struct { float a; int b; } s[2];",
            "typedef struct { float a ; int b ; } s_in_threadgroup [ 2 ]",
            ["s"],
        ),
        ("threadgroup atomic_uint n;", "typedef atomic_uint n_in_threadgroup", ["n"]),
        (
            "threadgroup alignas(16) half x[8];",
            "typedef half x_in_threadgroup [ 8 ] __attribute__ ( ( aligned ( 16 ) ) )",
            ["x"],
        ),
        (
            "alignas(16) threadgroup half x[8];",
            "typedef half x_in_threadgroup [ 8 ] __attribute__ ( ( aligned ( 16 ) ) )",
            ["x"],
        ),
        ("threadgroup float x[4] [[maybe_unused]];", "typedef float x_in_threadgroup [ 4 ]", ["x"]),
    ],
)
def test_threadgroup_variables_are_handed_out_by_the_runtime(statement: str, typedef: str, names: list[str]) -> None:
    references = " ".join(
        spaced(f'auto& {name} = ::msl::tg_var<{name}_in_threadgroup>({n}, "{name}");') for n, name in enumerate(names)
    )
    assert spaced(body(statement)) == f"{typedef} ; {references}"


@pytest.mark.parametrize(
    "around", ["if (a) { %s }", "for (int i = 0; i < 3; i++) { %s }", "switch (a) { case 1: %s }", "{ { %s } }"]
)
def test_threadgroup_variables_may_stand_in_any_block(around: str) -> None:
    assert '::msl::tg_var<x_in_threadgroup>(0, "x")' in body(around % "threadgroup float x[2];")


def test_threadgroup_variables_have_numbers_of_their_own() -> None:
    text = rewritten((BODY % "threadgroup int a, b;") + (BODY % "threadgroup int a;").replace("void k", "void l"))
    assert [int(n) for n in re.findall(r"tg_var<\w+>\((\d+)", text)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("threadgroup float* p = x + 1;", "float* p = x + 1;"),
        ("threadgroup const float* p = x;", "const float* p = x;"),
        ("const threadgroup vec<T, 2>* p = x;", "const vec<T, 2>* p = x;"),
        ("threadgroup float& r = x[0];", "float& r = x[0];"),
        ("threadgroup auto& r = x[0];", "auto& r = x[0];"),
        ("auto p = (threadgroup float*)q;", "auto p = (float*)q;"),
        ("auto p = reinterpret_cast<threadgroup float*>(q);", "auto p = reinterpret_cast<float*>(q);"),
        ("for (threadgroup float* p = x; p < y; p++) { }", "for (float* p = x; p < y; p++) { }"),
        ("using P = threadgroup float*;", "using P = float*;"),
        ("typedef threadgroup float* P;", "typedef float* P;"),
        ("threadgroup float (*rows)[8] = x;", "float (*rows)[8] = x;"),
    ],
)
def test_pointers_and_references_to_threadgroup_memory_stay_what_they_are(statement: str, expected: str) -> None:
    assert spaced(body(statement)) == spaced(expected)


@pytest.mark.parametrize(
    ("statement", "plain"),
    [
        ("threadgroup float x = 0;", "threadgroup float x;"),
        ("threadgroup float x[2] = {0, 0}, y = 1, z;", "threadgroup float x[2], y, z;"),
        ("threadgroup int n{1};", "threadgroup int n;"),
        ("alignas(16) threadgroup float x[2] = {0};", "alignas(16) threadgroup float x[2];"),
    ],
)
def test_initialisers_of_threadgroup_variables_do_nothing(statement: str, plain: str) -> None:
    assert spaced(body(statement)) == spaced(body(plain))


def test_a_threadgroup_pointer_beside_a_variable_is_refused_rather_than_misread() -> None:
    with pytest.raises(CompileError, match="in statements of their own"):
        rewritten(BODY % "threadgroup float *p, x;")


def test_attributes_and_the_word_kernel_go() -> None:
    assert same(
        "[[kernel]] void a(uint i [[thread_position_in_grid]]) { [[unroll]] for (;;) { } } kernel void b() { }",
        "void a(uint i) { for (;;) { } } void b() { }",
    )


def test_lines_stay_where_they_were() -> None:
    text = """kernel void k(
    device float* out [[buffer(0)]],
    uint i [[thread_position_in_grid]]) {
  threadgroup float x[2],
                    y;
  out[i] = MARK;
}
float f(device float* a) {
  return *a;
}
float f(thread float* a) {
  return *a;
}
int LAST;
"""
    after = rewrite(Source(text)).text.split("\n")
    before = text.split("\n")
    assert len(after) == len(before)
    for word in ("MARK", "LAST"):
        (line,) = (n for n, each in enumerate(before) if word in each)
        assert word in after[line]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1.0h;", "x = half(1.0f);"),
        ("x = -.5H + 2.h;", "x = -half(.5f) + half(2.f);"),
        ("x = 1e-3h;", "x = half(1e-3f);"),
        ("x = 0x1.8p3bf;", "x = bfloat(0x1.8p3f);"),
        ("x = 2.5BF;", "x = bfloat(2.5f);"),
        ("x = 0xbf + 1.0 + 1.0f + 3u;", "x = 0xbf + 1.0 + 1.0f + 3u;"),
        (
            "constant bool c [[function_constant(0)]]; constant half d = c ? 1.0h : 0.h;",
            "static bool c; static half d;",
        ),
    ],
)
def test_literals_of_half_and_bfloat(text: str, expected: str) -> None:
    assert same(text, expected)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("float sum;", "float sum; ::msl::watched sum_watched(sum);"),
        (
            "thread vec<T, 4> a, b = 1, *p;",
            "vec<T, 4> a, b = 1, *p; ::msl::watched a_watched(a);",
        ),
        (
            "for (;;) { unsigned int n; }",
            "for (;;) { unsigned int n; ::msl::watched n_watched(n); }",
        ),
        (
            "switch (n) { case 1: int a; { int b; } }",
            "switch (n) { case 1: int a; { int b; ::msl::watched b_watched(b); } }",
        ),
        (
            "float part[N][2];",
            "typedef float part_as_private[N][2]; ::msl::zoned<part_as_private> part_zone; "
            "auto& part = part_zone.value; ::msl::watched part_watched(part_zone, false);",
        ),
        (
            "half part[2] = {1.0h, 2};",
            "typedef half part_as_private[2]; ::msl::zoned<part_as_private> part_zone = "
            "{MSL_BEFORE {half(1.0f), 2} MSL_AFTER}; auto& part = part_zone.value; "
            "::msl::watched part_watched(part_zone, true);",
        ),
        *(
            (kept, kept)
            for kept in (
                "return sum;",
                "a * b;",
                "f<T>(x);",
                "T x(1);",
                "auto y = x;",
                "const float w[2] = {1, 2};",
                "int all[] = {1, 2};",
                "if (a) int b;",
                "struct S { int a; float b[2]; };",
                "using T = float;",
                "x[1] = 2, y;",
                "float4 v = {1, 2}, w{};",
            )
        ),
    ],
)
def test_private_variables_are_watched(body: str, expected: str) -> None:
    assert same(f"void f() {{ {body} }}", f"void f() {{ {expected} }}")


def test_what_is_computed_by_the_compiler_is_not_watched() -> None:
    text = "constexpr int f() { int a[2] = {1, 2}; return a[0]; }"
    assert same(text, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.wzyx.xy", "a.wzyx.template msl_pick<0, 1>()"),
        ("a.xy.yx + b[i].bgr.g", "a.xy.template msl_pick<1, 0>() + b[i].bgr.template msl_pick<1>()"),
        ("a.xy.x", "a.xy.x"),
        ("a.wzyx.xy = b", "a.wzyx.xy = b"),
        ("a.wzyx.x >>= b", "a.wzyx.x >>= b"),
        ("a.pos.xy + a.xy.size", "a.pos.xy + a.xy.size"),
    ],
)
def test_swizzles_of_swizzles_are_picked(text: str, expected: str) -> None:
    assert same(f"void f() {{ {text}; }}", f"void f() {{ {expected}; }}")
