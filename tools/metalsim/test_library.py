"""Whole `.metal` sources: kernels by name, function constants, threadgroup arguments, buffers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inferspec.tools.metalsim import CompileError, KernelError, Library

pytestmark = pytest.mark.usefixtures("cxx")

ROWS = """
#include <metal_stdlib>
using namespace metal;

constant bool scaled [[function_constant(0)]];
constant float scale [[function_constant(1)]];
constant float factor = scaled ? scale : 1.0f;

struct Shape { uint rows; uint width; };

template <typename T, int STEP>
[[kernel]] void row_sum(
    const device T* x [[buffer(0)]],
    device float* out [[buffer(1)]],
    constant Shape& shape [[buffer(2)]],
    threadgroup float* partial [[threadgroup(0)]],
    uint row [[threadgroup_position_in_grid]],
    ushort lane [[thread_index_in_threadgroup]],
    ushort size [[threads_per_threadgroup]]) {
  float sum = 0;
  for (uint i = lane; i < shape.width; i += size) sum += float(x[row * shape.width + i]) * STEP;
  partial[lane] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 0) {
    for (ushort i = 1; i < size; i++) sum += partial[i];
    out[row] = sum * factor;
  }
}

#define instantiate(name, type, step) \\
  template [[host_name("row_sum_" #name)]] [[kernel]] decltype(row_sum<type, step>) row_sum<type, step>;
instantiate(float, float, 1)
instantiate(half_twice, half, 2)

kernel void fill(device int* out, constant int& value, constant short& add, uint i [[thread_position_in_grid]]) {
  out[i] = value + add;
}
"""
SHAPE = np.array([(5, 37)], dtype=[("rows", np.uint32), ("width", np.uint32)])


@pytest.fixture(scope="module")
def rows() -> Library:
    return Library(ROWS, name="rows.metal")


def sums(library: Library, name: str, x: np.ndarray, constants: Mapping[str | int, Any], **changed: Any) -> np.ndarray:
    out = np.zeros(5, np.float32)
    arguments: dict[str, Any] = {
        "threadgroups": (5, 1, 1),
        "threadgroup": (16, 1, 1),
        "threadgroup_bytes": {"partial": 64},
        "undefined": ["out"],
        "mode": "check",
    }
    library.kernel(name, constants)({"x": x, "out": out, 2: SHAPE}, **(arguments | changed))
    return out


def test_copy_constructors_may_differ_in_address_spaces_alone() -> None:
    complex_copy = """
struct c32 {
  float r, i;
  c32(float a, float b) : r(a), i(b) {}
  FIRST
  SECOND
  float sum() const thread { return r + i; }
  float sum() const device { return r + i; }
};
kernel void k(device const c32* x, device float* out, uint i [[thread_position_in_grid]]) {
  c32 a(x[i]), b(a);
  out[i] = a.sum() + b.r - x[i].sum();
}
"""
    copies = ["c32(device const c32& o) : r(o.r), i(o.i) {}", "c32(thread const c32&) = default;"]
    x, out = np.arange(64, dtype=np.float32).reshape(32, 2), np.zeros(32, np.float32)
    for first, second in (copies, copies[::-1]):
        library = Library(complex_copy.replace("FIRST", first).replace("SECOND", second), name="copy.metal")
        library.kernel("k")({"x": x, "out": out}, threads=(32, 1, 1), threadgroup=(32, 1, 1), mode="check")
        np.testing.assert_array_equal(out, x[:, 0])


ADD = """
template <typename T, int N> kernel void add(device const T* x, device T* out, uint i [[thread_position_in_grid]]) {
  out[i] = x[i] + T(N);
}
DECLARED
template [[host_name("add_i32")]] kernel add_t add<int, 2>;
template [[host_name("add_more")]] kernel add_t add<int, 5>;
"""


@pytest.mark.parametrize("declared", ["typedef decltype(add<int, 1>) add_t;", "using add_t = decltype(add<int, 1>);"])
def test_instantiations_may_name_the_kernels_type(declared: str) -> None:
    library = Library(ADD.replace("DECLARED", declared), name="add.metal")
    assert library.kernels == ("add_i32", "add_more")
    x, out = np.arange(40, dtype=np.int32), np.zeros(40, np.int32)
    for name, added in (("add_i32", 2), ("add_more", 5)):
        library.kernel(name)({"x": x, "out": out}, threads=(40, 1, 1), threadgroup=(32, 1, 1), mode="check")
        np.testing.assert_array_equal(out, x + added)


@pytest.fixture
def x() -> np.ndarray:
    return np.arange(5 * 37, dtype=np.float32).reshape(5, 37) / 8


def test_a_library_knows_its_kernels(rows: Library) -> None:
    assert set(rows.kernels) == {"row_sum_float", "row_sum_half_twice", "fill"}


def test_an_instantiation_is_launched_by_its_host_name(rows: Library, x: np.ndarray) -> None:
    assert np.array_equal(sums(rows, "row_sum_float", x, {"scaled": False, "scale": 0.0}), x.sum(1))
    assert np.array_equal(
        sums(rows, "row_sum_half_twice", x.astype(np.float16), {"scaled": False, "scale": 0.0}), 2 * x.sum(1)
    )


def test_function_constants_by_name_and_index(rows: Library, x: np.ndarray) -> None:
    assert np.array_equal(sums(rows, "row_sum_float", x, {"scaled": True, "scale": 0.5}), x.sum(1) / 2)
    assert np.array_equal(sums(rows, "row_sum_float", x, {0: True, 1: 4}), x.sum(1) * 4)


def test_a_template_is_launched_with_arguments_of_the_callers_choice(rows: Library, x: np.ndarray) -> None:
    assert np.array_equal(sums(rows, "row_sum<float, 3>", x, {"scaled": False, "scale": 0.0}), 3 * x.sum(1))


def test_numbers_take_the_type_of_their_parameter(rows: Library) -> None:
    out = np.zeros(7, np.int32)
    rows.kernel("fill")({"out": out, "value": 40, "add": 2}, threads=(7, 1, 1), threadgroup=(4, 1, 1))
    assert out.tolist() == [42] * 7
    five = (5).to_bytes(4, "little")
    rows.kernel("fill")({"out": out, "value": five, "add": np.int16(-1)}, threads=(7, 1, 1), threadgroup=(4, 1, 1))
    assert out.tolist() == [4] * 7


def test_what_a_launch_used_is_told(rows: Library, x: np.ndarray) -> None:
    out = np.zeros(5, np.float32)
    outcome = rows.kernel("row_sum_float", {0: False, 1: 0})(
        {0: x, 1: out, 2: SHAPE}, threadgroups=(5, 1, 1), threadgroup=(16, 1, 1), threadgroup_bytes={0: 64}
    )
    assert outcome.reports == ()
    assert outcome.threadgroup_bytes == 64


@pytest.mark.parametrize(
    ("name", "constants", "error", "words"),
    [
        ("rowsum", {}, KeyError, "rows.metal has no kernel 'rowsum'; it has fill, row_sum_float, row_sum_half_twice"),
        ("row_sum_float", {}, ValueError, "kernel row_sum_float needs the function constants scale, scaled"),
        ("row_sum_float", {"scaled": True}, ValueError, "needs the function constants scale"),
        ("row_sum_float", {"scaled": True, "scales": 1}, ValueError, "no function constant 'scales'; it has scaled (0), scale (1)"),
        ("row_sum_float", {7: True}, ValueError, "no function constant 7"),
        ("fill", {}, None, ""),
    ],
)  # fmt: skip
def test_names_and_constants_that_do_not_fit(
    rows: Library, name: str, constants: Mapping[str | int, Any], error: type[Exception] | None, words: str
) -> None:
    if error is None:
        rows.kernel(name, constants)
        return
    with pytest.raises(error) as raised:
        rows.kernel(name, constants)
    assert words in str(raised.value)


FILL: dict[str, Any] = {"threads": (7, 1, 1), "threadgroup": (4, 1, 1)}


@pytest.mark.parametrize(
    ("buffers", "changed", "error", "words"),
    [
        ({"y": 1}, {}, ValueError, "kernel fill has no buffer 'y'; it has out (0), value (1), add (2)"),
        ({"value": 1, 1: 2}, {}, ValueError, "buffer 1 of kernel fill is given twice"),
        ({"value": 1.5}, {}, ValueError, "buffer value of kernel fill is 1.5; int takes whole numbers"),
        ({"add": 40000}, {}, ValueError, "short takes whole numbers from -32768 to 32767"),
        ({"value": None}, {}, TypeError, "buffer value of kernel fill is NoneType"),
        ({"out": np.zeros((7, 2), np.int32)[:, 0]}, {}, ValueError, "buffer out of kernel fill is not C-contiguous"),
        ({"out": np.broadcast_to(np.int32(0), (7,)).copy().view()}, {"threadgroup": (1025, 1, 1)}, ValueError, "more than the 1024 threads"),
        ({}, {"threadgroups": (1, 1, 1)}, ValueError, "one of threads and threadgroups"),
        ({}, {"threads": None}, ValueError, "one of threads and threadgroups"),
        ({}, {"threads": (7, 1)}, ValueError, "threads is (7, 1); it takes three numbers of at least 1"),
        ({}, {"threadgroup": (0, 1, 1)}, ValueError, "threadgroup is (0, 1, 1)"),
        ({}, {"undefined": ["none"]}, ValueError, "kernel fill has no buffer 'none'"),
        ({}, {"threadgroup_bytes": {0: 4}}, ValueError, "kernel fill has no threadgroup 0; it has none"),
    ],
)  # fmt: skip
def test_launches_that_do_not_fit(
    rows: Library, buffers: Mapping[Any, Any], changed: Mapping[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error) as raised:
        rows.kernel("fill")(buffers, **{**FILL, **changed})
    assert words in str(raised.value)


def test_a_read_only_array_cannot_be_an_output(rows: Library) -> None:
    out = np.zeros(7, np.int32)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        rows.kernel("fill")({"out": out, "value": 1, "add": 1}, **FILL)


def test_threadgroup_memory_must_be_given_its_size(rows: Library, x: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"needs threadgroup_bytes for partial \(0\)"):
        sums(rows, "row_sum_float", x, {0: False, 1: 0}, threadgroup_bytes={})


def test_threadgroup_memory_that_is_too_small_is_found(rows: Library, x: np.ndarray) -> None:
    with pytest.raises(KernelError, match="out of bounds"):
        sums(rows, "row_sum_float", x, {0: False, 1: 0}, threadgroup_bytes={"partial": 60})


def test_an_undefined_buffer_is_found_when_it_is_read() -> None:
    library = Library(
        "kernel void add(device int* out, uint i [[thread_position_in_grid]]) { out[i] += 1; }", name="add.metal"
    )
    out = np.zeros(4, np.int32)
    launch: dict[str, Any] = {"threads": (4, 1, 1), "threadgroup": (4, 1, 1), "mode": "check"}
    library.kernel("add")({"out": out}, **launch)
    assert out.tolist() == [1, 1, 1, 1]
    with pytest.raises(KernelError, match="uninitialised read on buffer out"):
        library.kernel("add")({"out": out}, undefined=["out"], **launch)


def test_files_find_their_headers_and_name_their_lines(tmp_path: Path) -> None:
    (tmp_path / "near.h").write_text("inline float near(float x) { return x + OFFSET; }\n")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "far.h").write_text("inline float far(float x) { return 2 * x; }\n")
    file = tmp_path / "both.metal"
    text = '#include <metal_stdlib>\n#include "near.h"\n#include "far.h"\nkernel void both(device float* x) { x[0] = near(far(x[0])); }\n'
    file.write_text(text)
    x = np.array([3], np.float32)
    library = Library(file, [tmp_path / "more"], defines={"OFFSET": "1"})
    library.kernel("both")({"x": x}, threads=(1, 1, 1), threadgroup=(1, 1, 1))
    assert x[0] == 7
    file.write_text(text.replace("near(far", "nearer(far"))
    with pytest.raises(CompileError, match=r"both\.metal:4:\d+: error: .*nearer"):
        Library(file, [tmp_path / "more"]).kernel("both")({"x": x}, threads=(1, 1, 1), threadgroup=(1, 1, 1))


def test_a_missing_header_is_told_with_its_line() -> None:
    with pytest.raises(CompileError, match=r"lost\.metal:2:\d+: fatal error: lost\.h"):
        Library('\n#include "lost.h"\n', name="lost.metal")


SCALARS = """
kernel void positions(device uint* out [[buffer(0)]],
    ushort3 a [[thread_position_in_threadgroup]], ushort b [[thread_index_in_threadgroup]], uint2 c [[thread_position_in_grid]],
    ushort2 d [[threads_per_grid]], uint e [[threadgroups_per_grid]], ushort f [[simdgroups_per_threadgroup]],
    uint g [[threads_per_simdgroup]]) {
  if (c.x == 4 && c.y == 1) {
    out[0] = a.x; out[1] = a.y; out[2] = a.z; out[3] = b; out[4] = d.x; out[5] = d.y; out[6] = e; out[7] = f; out[8] = g;
  }
}
"""


def test_positions_come_in_scalars_and_vectors_of_both_widths() -> None:
    out = np.zeros(9, np.uint32)
    Library(SCALARS).kernel("positions")({"out": out}, threads=(5, 2, 1), threadgroup=(3, 2, 1))
    assert out.tolist() == [1, 1, 0, 3, 5, 2, 2, 1, 32]


VARIABLES = """
#include <metal_stdlib>
using namespace metal;
struct Pair { float a; int b; };
template <int N>
kernel void variables(device float* out, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float first[N], last;
  threadgroup Pair pairs[2][N];
  alignas(16) threadgroup half halves[N];
  for (uint round = 0; round < 2; round++) {
    threadgroup int inside[N];
    inside[i] = int(i);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (round == 1) {
      threadgroup float4 deep[N];
      deep[i] = float4(float(inside[N - 1 - i]));
      threadgroup float4* p = deep + i;
      first[i] = p->w;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  pairs[1][i] = Pair{first[i], 1};
  halves[i] = half(2);
  if (i == 0) last = 100;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = pairs[1][N - 1 - i].a + last + float(halves[i]);
}
template [[host_name("variables")]] kernel void variables<8>(device float* out, uint i);
"""


def test_threadgroup_variables_of_every_form() -> None:
    out = np.zeros(8, np.float32)
    kernel = Library(VARIABLES).kernel("variables")
    outcome = kernel({"out": out}, threads=(8, 1, 1), threadgroup=(8, 1, 1), undefined=["out"], mode="check")
    assert out.tolist() == [102.0 + i for i in range(8)]
    assert outcome.reports == ()
    bytes_of_each = [8 * 4, 4, 2 * 8 * 8, 8 * 2, 8 * 4, 8 * 16]
    assert outcome.threadgroup_bytes == sum(-(-n // 16) * 16 for n in bytes_of_each)


def test_two_libraries_of_the_same_names_do_not_meet() -> None:
    out = np.zeros(1, np.int32)
    text = "constant int n = {}; int get() {{ static constexpr constant int m = {}; return m; }} kernel void k(device int* o) {{ o[0] = n + get(); }}"
    for n in (1, 2, 1):
        Library(text.format(n, 10 * n)).kernel("k")({"o": out}, threads=(1, 1, 1), threadgroup=(1, 1, 1))
        assert out[0] == 11 * n


def test_an_installed_copy_has_all_that_it_needs(tmp_path: Path) -> None:
    """Built as a wheel and unpacked elsewhere: headers, stand-ins without a suffix and the runtime's sources are in it."""
    root = Path(__file__).parents[2]
    for folder in ("src/inferspec", "tools/metalsim"):
        target = tmp_path / "tree" / folder
        shutil.copytree(
            root / folder,
            target,
            symlinks=True,
            ignore=shutil.ignore_patterns("__pycache__", "test_*.py", "conftest.py"),
        )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(root / name, tmp_path / "tree" / name)
    (tmp_path / "tree/tools/__init__.py").touch()
    for name in ("spec", "impl", "conformance", "golden"):
        (tmp_path / "tree" / name).mkdir()
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q", "-w", str(tmp_path), "."]
    done = subprocess.run(build, cwd=tmp_path / "tree", capture_output=True, text=True)
    if done.returncode and "No module named 'setuptools'" in done.stderr:
        pytest.skip("setuptools is not installed")
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    shutil.unpack_archive(wheel, site, "zip")
    inside = {str(p.relative_to(site / "inferspec")) for p in (site / "inferspec").rglob("*") if p.is_file()}
    wanted = {
        str(p.relative_to(root))
        for p in (root / "tools/metalsim").rglob("*")
        if p.is_file()
        and p.suffix != ".md"
        and "__pycache__" not in p.parts
        and not p.name.startswith(("test_", "conftest"))
    }
    assert wanted <= inside
    script = (
        "import numpy as np\n"
        "from inferspec.tools import metalsim\n"
        f"assert metalsim.__file__.startswith({str(site)!r})\n"
        "x = np.zeros(3, np.int32)\n"
        "text = '#include <metal_stdlib>\\nkernel void k(device int* x, uint i [[thread_position_in_grid]]) { x[i] = i; }'\n"
        "metalsim.Library(text).kernel('k')({'x': x}, threads=(3, 1, 1), threadgroup=(3, 1, 1), mode='check')\n"
        "print(x.tolist())\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(site), "METALSIM_CACHE": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout == "[0, 1, 2]\n", done.stderr
