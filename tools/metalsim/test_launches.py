"""Launch lines: what they say is what is launched, and what they cannot mean is told by the word."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from inferspec.tools import metalsim
from inferspec.tools.metalsim import launches
from inferspec.tools.metalsim.runtime import Launch

SCALE = """#include <metal_stdlib>
using namespace metal;
constant bool negated [[function_constant(0)]];
// launch: x=float32[8](1,2,3,4,5,6,7,8) factor=3 negated=true out=float32[8] tile=float32[8] threads=8 threadgroup=4
template <typename T>
kernel void scale(device const T* x, constant int& factor, device T* out, threadgroup T* tile [[threadgroup(0)]],
                  uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
  tile[t] = x[i];
  out[i] = (negated ? -factor : factor) * tile[t];
}
template [[host_name("scale")]] kernel decltype(scale<float>) scale<float>;
"""


def launched(path: Path, line: str) -> tuple[Launch, dict[str, np.ndarray]]:
    """The one launch of a line in a file, and its buffers by name."""
    seen: list[Launch] = []
    with metalsim.settings(mode="check", on_launch=lambda launch, outcome: seen.append(launch)):
        launches.read(line).run(path)
    (launch,) = seen
    return launch, {buffer.name: buffer.array for buffer in launch.buffers}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("int32[3](7)", [7, 7, 7]),
        ("int32[4](3,0,-1,2)", [3, 0, -1, 2]),
        ("float32[2](0.5,1e3)", [0.5, 1000]),
        ("bool[2](true,false)", [True, False]),
        ("int32[2]", [0, 0]),
        ("uint32[1](0xff)", [255]),
        ("uint64[1](0xffffffffffffffff)", [2**64 - 1]),
    ],
)
def test_arrays_hold_what_is_between_the_parentheses(text: str, values: list[float]) -> None:
    read = launches.array(text)
    assert read is not None
    made = read.make("x")
    assert made.dtype.name == text.partition("[")[0]
    assert made.tolist() == values


def test_random_arrays_are_the_same_each_time_and_differ_by_name() -> None:
    read = launches.array("bfloat16[5,40]")
    assert read is not None
    first, again, other = read.make("x"), read.make("x"), read.make("y")
    assert first.dtype == ml_dtypes.bfloat16
    assert first.shape == (5, 40)
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert 0.8 < first.astype(np.float32).std() < 1.2


def test_a_range_of_random_numbers_reaches_both_ends_and_no_further() -> None:
    read = launches.array("int32[500](-2..3)")
    assert read is not None
    assert set(read.make("x").tolist()) == {-2, -1, 0, 1, 2}


def test_unsigned_numbers_have_any_bits() -> None:
    read = launches.array("uint32[200]")
    assert read is not None
    made = read.make("packed")
    assert np.bitwise_or.reduce(made) == 2**32 - 1
    assert np.bitwise_and.reduce(made) == 0


@pytest.mark.usefixtures("cxx")
def test_parameters_constants_and_threadgroup_memory_are_bound_by_name(tmp_path: Path) -> None:
    path = tmp_path / "scale.metal"
    path.write_text(SCALE)
    (line,) = launches.launches_in(path.read_text())
    launch, buffers = launched(path, line.text)
    assert buffers["out"].tolist() == [-3.0 * n for n in range(1, 9)]
    assert (launch.grid, launch.threadgroup, dict(launch.threadgroup_bytes)) == ((8, 1, 1), (4, 1, 1), {0: 32})
    assert {buffer.name: buffer.initialised for buffer in launch.buffers} == {"x": True, "factor": True, "out": False}


@pytest.mark.usefixtures("cxx")
def test_a_kernel_is_named_first_and_threadgroups_are_an_alternative_to_threads(tmp_path: Path) -> None:
    path = tmp_path / "scale.metal"
    path.write_text(SCALE)
    line = "scale<half> x=float16[12](2) factor=3 negated=false out=float16[12](0) tile=8 threadgroups=3 threadgroup=4"
    launch, buffers = launched(path, line)
    assert buffers["out"].tolist() == [6.0] * 12
    assert (launch.grid, dict(launch.threadgroup_bytes)) == ((12, 1, 1), {0: 8})
    assert all(buffer.initialised for buffer in launch.buffers)


@pytest.mark.usefixtures("cxx")
def test_a_body_has_inputs_outputs_template_arguments_and_headers(tmp_path: Path) -> None:
    (tmp_path / "twice.metal").write_text("template <typename T> T twice(T x) { return x + x; }\n")
    path = tmp_path / "body.metal"
    path.write_text("uint i = thread_position_in_grid.x;\nout[i] = twice(T(x[i])) + N;\n")
    line = "x=float32[3](5) -> out=float16[3] template=T:float16,N:4 header=twice.metal threads=3 threadgroup=3"
    _, buffers = launched(path, line)
    assert buffers["out"].tolist() == [14.0] * 3


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("x=float32[4] threadgroup=32", "one of threads= and threadgroups="),
        ("x=float32[4] threads=1 threadgroups=1 threadgroup=32", "one of threads= and threadgroups="),
        ("x=float32[4] threads=32", "threadgroup= is missing"),
        ("x=float33[4] threads=32 threadgroup=32", "float33 is no dtype"),
        ("x=float32[4](1,2) threads=32 threadgroup=32", "x: "),
        ("x=many threads=32 threadgroup=32", "'many' is neither an array"),
        ("x=1 x=2 threads=32 threadgroup=32", "x is given twice"),
        ("x=1 threads=0 threadgroup=32", "threads=0"),
        ("x=1 threads=1,2,3,4 threadgroup=32", "threads=1,2,3,4"),
        ("f x=1 y threads=1 threadgroup=32", "'y' is no name=value"),
        ("x=1 -> out=3 threads=1 threadgroup=1", "an output takes a dtype and a shape"),
        ("x=1 -> out=float32[1] template=T threads=1 threadgroup=1", "NAME:VALUE"),
    ],
)
def test_a_line_that_cannot_be_meant_is_told_by_the_word(line: str, told: str) -> None:
    with pytest.raises(ValueError, match="launch line") as error:
        launches.read(line)
    assert told in str(error.value)


@pytest.mark.usefixtures("cxx")
def test_a_file_of_several_kernels_wants_a_name(tmp_path: Path) -> None:
    path = tmp_path / "two.metal"
    path.write_text("kernel void a(device int* x) {}\nkernel void b(device int* x) {}\n")
    with pytest.raises(ValueError, match="the file has a, b"):
        launches.read("x=int32[1] threads=1 threadgroup=1").run(path)
