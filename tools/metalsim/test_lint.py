"""The lint of address spaces: misuse is told at its line in Metal's words, right code and code that clang cannot follow is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from inferspec.tools import metalsim
from inferspec.tools.metalsim import lint
from inferspec.tools.metalsim.preprocess import preprocess

pytestmark = [
    pytest.mark.usefixtures("cxx"),
    pytest.mark.skipif(lint.clang() is None, reason="clang++ is not there"),
]

PLANTED = Path(__file__).resolve().parent / "planted"
HELPERS = """#include <metal_stdlib>
using namespace metal;
struct Row { float a; };
float first(device const float* p) { return p[0]; }
float own(thread const float* p) { return p[0]; }
template <typename T> T shared(const threadgroup T* p, uint i) { return p[i]; }
template <typename T> void into_tile(device T* p) { threadgroup T* tile = p; tile[0] = 0; }
kernel void f(device const float* x, device float* out, constant Row& info, uint t [[thread_index_in_threadgroup]]) {
  threadgroup float tile[64];
  float values[4];
"""
LINE = HELPERS.count("\n") + 1


def misuses(text: str) -> list[lint.Misuse]:
    return lint.lint(preprocess(text, "kernel.metal").text)


@pytest.mark.parametrize(
    ("statement", "spaces"),
    [
        ("threadgroup float* row = out;", ("threadgroup", "device")),
        ("thread float* row = tile;", ("thread", "threadgroup")),
        ("device float* row = (device float*)tile;", ("threadgroup", "device")),
        ("device float* row = nullptr; row = tile;", ("device", "threadgroup")),
        ("device float& cell = tile[0];", ("device", "threadgroup")),
        ("out[t] = first(tile);", ("threadgroup", "device")),
        ("out[t] = own(x);", ("device", "thread")),
        ("out[t] = shared(x, 0);", ("threadgroup", "device")),
        ("constant float* row = x;", ("constant", "device")),
    ],
)
def test_a_pointer_into_the_wrong_space_is_told_at_its_line(statement: str, spaces: tuple[str, str]) -> None:
    (misuse,) = misuses(f"{HELPERS}  {statement}\n}}\n")
    assert (misuse.file, misuse.line) == ("kernel.metal", LINE)
    assert all(space in misuse.text for space in spaces)
    assert "__" not in misuse.text


def test_misuse_in_a_template_is_told_where_it_is_once_it_is_instantiated() -> None:
    assert misuses(f"{HELPERS}  out[t] = x[t];\n}}\n") == []
    (misuse,) = misuses(f"{HELPERS}  into_tile(out);\n}}\n")
    assert misuse.line == 1 + HELPERS[: HELPERS.index("into_tile")].count("\n")


@pytest.mark.parametrize(
    "statement",
    [
        "device const float4* rows = (device const float4*)x; out[t] = rows[t].x;",
        "threadgroup float* row = tile + t; *row = shared(row, 0); out[t] = own(values);",
        "auto row = x + 1; device const float* other = row; out[t] = first(other) + row[0] + row[1] + row[2];",
        "if (t == 0) { threadgroup float inner[4]; inner[0] = info.a; }",
        "out[t] = no_such_function(tile, x); x[0] = 1;",  # wrong, but not in its spaces
    ],
)
def test_what_is_right_or_beyond_clang_is_not_told(statement: str) -> None:
    assert misuses(f"{HELPERS}  {statement}\n}}\n") == []


@pytest.mark.parametrize("path", sorted((PLANTED / "controls").glob("*.metal"))[::3], ids=lambda path: path.stem)
def test_right_kernels_are_not_told_of(path: Path) -> None:
    assert misuses(path.read_text()) == []


@pytest.mark.skipif(metalsim.mlx_headers() is None, reason="MLX's Metal headers are not installed")
@pytest.mark.parametrize(
    "header", ["softmax.h", "sdpa_vector.h", "quantized.h", "steel/attn/kernels/steel_attention.h"]
)
def test_kernels_of_mlx_are_not_told_of(header: str) -> None:
    includes = "".join(f'#include "mlx/backend/metal/kernels/{name}"\n' for name in ("utils.h", header))
    assert misuses(f"#include <metal_stdlib>\nusing namespace metal;\n{includes}") == []
