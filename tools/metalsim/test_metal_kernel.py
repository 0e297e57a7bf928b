"""`metal_kernel` beside `mx.fast.metal_kernel`: the generated text, the errors, arrays in and out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import mlx.core as mx
import numpy as np
import pytest

from inferspec.tools import metalsim
from inferspec.tools.metalsim import CompileError, KernelError, Refused, metal_kernel

pytestmark = pytest.mark.usefixtures("cxx")
# MLX's own: other tests may have installed metalsim in its place.
native: Callable[..., Any] = mx.fast.metal_kernel

COPY = "uint i = thread_position_in_grid.x; out[i] = x[i];"


def run(kernel: Any, x: Any, **changed: Any) -> Any:
    """Call a kernel of one input and one output of the input's shape and dtype, one thread for each element."""
    arguments = {
        "inputs": [x],
        "grid": (x.size, 1, 1),
        "threadgroup": (32, 1, 1),
        "output_shapes": [x.shape],
        "output_dtypes": [x.dtype],
    }
    (out,) = kernel(**(arguments | changed))
    return out


def exported(capfd: pytest.CaptureFixture[str], path: Path, make: Mapping[str, Any], call: Mapping[str, Any]) -> str:
    """What MLX prints as the source of a kernel. Exporting a function does not need Metal and makes the text all the same."""
    kernel = native(**make)
    arrays = [value for value in call["inputs"] if isinstance(value, mx.array)]

    def function(*given: mx.array) -> mx.array:
        inputs, left = [], list(given)
        for value in call["inputs"]:
            inputs.append(left.pop(0) if isinstance(value, mx.array) else value)
        return kernel(**{**call, "inputs": inputs}, verbose=True)[0]

    capfd.readouterr()
    mx.export_function(str(path), function, *arrays)
    return capfd.readouterr().out


ALL_DTYPES = [
    mx.bool_, mx.int8, mx.int16, mx.int32, mx.int64, mx.uint8, mx.uint16, mx.uint32, mx.uint64, mx.float16, mx.bfloat16, mx.float32, mx.complex64,
]  # fmt: skip
EVERY_ATTRIBUTE = " ".join(
    [
        "dispatch_quadgroups_per_threadgroup",
        "dispatch_simdgroups_per_threadgroup",
        "dispatch_threads_per_threadgroup",
        "grid_origin",
        "grid_size",
        "quadgroup_index_in_threadgroup",
        "quadgroups_per_threadgroup",
        "simdgroup_index_in_threadgroup",
        "simdgroups_per_threadgroup",
        "thread_execution_width",
        "thread_index_in_quadgroup",
        "thread_index_in_simdgroup",
        "thread_index_in_threadgroup",
        "thread_position_in_grid",
        "thread_position_in_threadgroup",
        "threadgroup_position_in_grid",
        "threadgroups_per_grid",
        "threads_per_grid",
        "threads_per_simdgroup",
        "threads_per_threadgroup",
    ]
)
TEXTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({"source": COPY}, {"inputs": [mx.zeros((4, 3))]}),
    "constant below eight elements": ({"source": COPY}, {"inputs": [mx.zeros((7,))]}),
    "device from eight elements on": ({"source": COPY}, {"inputs": [mx.zeros((2, 4))]}),
    "scalars of every Python kind": (
        {"input_names": ["a", "b", "c", "d", "e"], "source": "out[0] = a + b + c;"},
        {"inputs": [True, 3, 2**40, 2.5, 1j]},
    ),
    "a scalar array": ({"source": "out[0] = x; x_shape x_ndim"}, {"inputs": [mx.array(2.0)]}),
    "an empty array": ({"source": "out[0] = x_shape[0];"}, {"inputs": [mx.zeros((0, 3))]}),
    "shape, strides and ndim": (
        {"source": "x_shape x_strides x_ndim out[0]; // threads_per_grid"},
        {"inputs": [mx.zeros((4, 3))]},
    ),
    "strides alone": ({"source": "x_strides // grid_size"}, {"inputs": [mx.zeros((4, 3))]}),
    "a shape's name inside a longer word": ({"source": "my_x_shape_of"}, {"inputs": [mx.zeros((4, 3))]}),
    "every attribute": ({"source": EVERY_ATTRIBUTE}, {"inputs": [mx.zeros((9,))]}),
    "two outputs": (
        {"output_names": ["out", "more"], "source": "x_shape thread_position_in_grid"},
        {"inputs": [mx.zeros((9,))], "output_shapes": [(1,), (2,)], "output_dtypes": [mx.int32, mx.bfloat16]},
    ),
    "two outputs and shapes without attributes": (
        {"output_names": ["out", "more"], "source": "x_shape x_ndim"},
        {"inputs": [mx.zeros((9,))], "output_shapes": [(1,), (2,)], "output_dtypes": [mx.int32, mx.bfloat16]},
    ),
    "atomic outputs": ({"source": COPY, "atomic_outputs": True}, {"inputs": [mx.zeros((9,))]}),
    "templates": (
        {"source": COPY},
        {
            "inputs": [mx.zeros((9,))],
            "template": [("T", mx.bfloat16), ("n", 3), ("flag", True), ("off", False), ("U", mx.uint8)],
        },
    ),
    "a header without a newline": ({"source": COPY, "header": "#define A 1 // end"}, {"inputs": [mx.zeros((9,))]}),
    "a header and a template": (
        {"source": COPY, "header": "typedef float F;\n"},
        {"inputs": [mx.zeros((9,))], "template": [("T", mx.float16)]},
    ),
    **{
        f"dtype {dtype}": ({"source": COPY}, {"inputs": [mx.zeros((9,)).astype(dtype)], "output_dtypes": [dtype]})
        for dtype in ALL_DTYPES
    },
}


@pytest.mark.parametrize("case", TEXTS)
def test_the_generated_text_is_that_of_mlx(case: str, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    make, call = TEXTS[case]
    make = {"name": "k", "input_names": ["x"], "output_names": ["out"], **make}
    call = {"grid": (1, 1, 1), "threadgroup": (1, 1, 1), "output_shapes": [(4,)], "output_dtypes": [mx.float32], **call}
    expected = exported(capfd, tmp_path / "f.mlxfn", make, call)
    text = metal_kernel(**make).generate(
        inputs=call["inputs"], output_dtypes=call["output_dtypes"], template=call.get("template")
    )
    assert f"Generated source code for `k`:\n```\n{text}\n```\n" == expected


def test_verbose_prints_what_mlx_prints(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    x = mx.arange(9, dtype=mx.float32)
    make = {"name": "k", "input_names": ["x"], "output_names": ["out"], "source": COPY}
    call = {
        "inputs": [x],
        "grid": (9, 1, 1),
        "threadgroup": (9, 1, 1),
        "output_shapes": [(9,)],
        "output_dtypes": [mx.float32],
    }
    expected = exported(capfd, tmp_path / "f.mlxfn", make, call)
    metal_kernel(**make)(**call, verbose=True)
    assert capfd.readouterr().out == expected


def both_fail(make: Mapping[str, Any], call: Mapping[str, Any] | None = None) -> None:
    """Ours fails as MLX's does, with the same words."""
    errors = []
    for each in (native, metal_kernel):
        with pytest.raises((ValueError, TypeError)) as error:
            each(**make) if call is None else each(**make)(**call)
        errors.append(error.value)
    assert str(errors[1]) == str(errors[0])
    assert type(errors[1]) is type(errors[0])


MAKE = {"name": "k", "input_names": ["x"], "output_names": ["out"], "source": COPY}
CALL = {
    "inputs": [mx.zeros((9,))],
    "grid": (9, 1, 1),
    "threadgroup": (9, 1, 1),
    "output_shapes": [(9,)],
    "output_dtypes": [mx.float32],
}


@pytest.mark.parametrize(
    "make",
    [
        {"output_names": []},
        {"compile_options": {"math_mode": "precise"}},
        {"compile_options": {"unknown": "value"}},
        {"compile_options": "fast"},
    ],
    ids=str,
)
def test_what_mlx_refuses_when_a_kernel_is_made(make: Mapping[str, Any]) -> None:
    both_fail({**MAKE, **make})


@pytest.mark.parametrize(
    "call",
    [
        {"inputs": []},
        {"inputs": [mx.zeros((9,))] * 2},
        {"output_shapes": []},
        {"output_shapes": [(9,), (9,)]},
        {"output_dtypes": [mx.float32] * 3},
        {"template": [("T", "float")]},
        {"template": [("T", 1.5)]},
        {"template": [("T", None)]},
    ],
    ids=lambda call: f"{next(iter(call))} {len(next(iter(call.values())))}",
)
def test_what_mlx_refuses_of_a_call(call: Mapping[str, Any]) -> None:
    both_fail(MAKE, {**CALL, **call})


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (
            {"threadgroup": (32, 33, 1)},
            r"Thread group size \(1056\) is greater than  the maximum allowed threads per threadgroup \(1024\)\.",
        ),
        ({"threadgroup": (0, 1, 1)}, r"threadgroup is \(0, 1, 1\); it takes numbers from 1"),
        ({"grid": (-1, 1, 1)}, r"grid is \(-1, 1, 1\); it takes numbers from 0"),
        ({"stream": mx.cpu}, r"\[metal_kernel\] Only supports the GPU\."),
        ({"stream": mx.Device(mx.cpu)}, r"\[metal_kernel\] Only supports the GPU\."),
        ({"stream": mx.default_stream(mx.cpu)}, r"\[metal_kernel\] Only supports the GPU\."),
        ({"template": [("T", 2**31)]}, "32-bit"),
        ({"template": [("n", -1)]}, "function name custom_kernel_k__-1"),
    ],
    ids=str,
)
def test_values_that_cannot_be_launched(changed: Mapping[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        metal_kernel(**MAKE)(**{**CALL, **changed})


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"grid": (9, 1)}, "grid is .*three integers"),
        ({"grid": (9.0, 1, 1)}, "grid is .*three integers"),
        ({"inputs": [np.zeros(9)]}, r"inputs\[0\] \(x\) is of type float64"),
        ({"inputs": ["nine"]}, r"inputs\[0\] \(x\) is str"),
        ({"output_dtypes": [np.float64]}, r"output_dtypes\[0\] \(out\) is of type float64"),
        ({"output_dtypes": ["float32"]}, r"output_dtypes\[0\] \(out\) is 'float32'"),
    ],
    ids=str,
)
def test_arguments_of_the_wrong_kind(changed: Mapping[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        metal_kernel(**MAKE)(**{**CALL, **changed})


def test_arguments_are_keywords() -> None:
    with pytest.raises(TypeError):
        metal_kernel(**MAKE)([np.zeros(9, np.float32)])  # type: ignore[misc]


@pytest.mark.parametrize("name", ["my-kernel", "a b", "x.y", "größe"])
def test_a_name_must_make_an_identifier(name: str) -> None:
    with pytest.raises(ValueError, match="which Metal does not take"):
        run(metal_kernel(name, ["x"], ["out"], COPY), np.zeros(9, np.float32))


def test_numpy_in_numpy_out_and_mlx_in_mlx_out() -> None:
    kernel = metal_kernel("copy", ["x", "y"], ["out"], "uint i = thread_position_in_grid.x; out[i] = x[i] + y[i];")
    x, y = np.arange(9, dtype=np.float32), np.ones(9, np.float32)
    call = {"grid": (9, 1, 1), "threadgroup": (4, 1, 1), "output_shapes": [(3, 3)]}
    (plain,) = kernel(inputs=[x, y], output_dtypes=[np.float32], **call)
    (mixed,) = kernel(inputs=[x, mx.array(y)], output_dtypes=[mx.float32], **call)
    assert isinstance(plain, np.ndarray)
    assert isinstance(mixed, mx.array)
    assert plain.shape == mixed.shape == (3, 3)
    assert np.array_equal(plain.reshape(-1), x + 1)
    assert np.array_equal(np.array(mixed), plain)


@pytest.fixture(scope="module")
def copying() -> Any:
    return metal_kernel("copy", ["x"], ["out"], COPY)


@pytest.mark.parametrize(
    "dtype", [np.bool_, np.int8, np.uint16, np.int64, np.uint64, np.float16, ml_dtypes.bfloat16, np.complex64]
)
def test_values_of_every_width_come_through(dtype: Any, copying: Any) -> None:
    bits = np.random.default_rng(1).integers(0, 256, 9 * np.dtype(dtype).itemsize, np.uint8)
    x = (bits[:9] % 2).astype(np.bool_) if dtype is np.bool_ else bits.view(dtype)
    assert run(copying, x).tobytes() == x.tobytes()


@pytest.mark.parametrize("dtype", [mx.bool_, mx.int64, mx.bfloat16, mx.float16, mx.complex64])
def test_mlx_arrays_of_every_kind_come_through(dtype: mx.Dtype, copying: Any) -> None:
    x = (mx.arange(9) - 4).astype(dtype)
    out = run(copying, x)
    assert out.dtype == dtype
    assert mx.array_equal(out, x)


STRIDED = "uint i = thread_position_in_grid.x; out[i] = x[elem_to_loc(int64_t(i), x_shape, x_strides, x_ndim)];"
RAW = "uint i = thread_position_in_grid.x; out[i] = x[i]; strides[i] = i < 2 ? x_strides[i] : 0;"
BASE = np.arange(48, dtype=np.float32).reshape(6, 8)
VIEWS: dict[str, Callable[[Any], Any]] = {
    "contiguous": lambda a: a,
    "transposed": lambda a: a.T,
    "every second row": lambda a: a[::2],
    "every third column from the second": lambda a: a[:, 1::3],
    "a column": lambda a: a[:, 3:4],
    "backwards": lambda a: a[::-1],
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("library", ["numpy", "mlx"])
def test_views_are_copied_or_come_with_their_strides(view: str, library: str) -> None:
    x = VIEWS[view](BASE if library == "numpy" else mx.array(BASE))
    expected = VIEWS[view](BASE)
    followed = metal_kernel("strided", ["x"], ["out"], STRIDED, ensure_row_contiguous=False)
    copied = metal_kernel("copy", ["x"], ["out"], COPY)
    with metalsim.settings(mode="check"):
        assert np.array_equal(np.array(run(followed, x)), expected)
        assert np.array_equal(np.array(run(copied, x)), expected)


def test_a_broadcast_view_keeps_strides_of_zero() -> None:
    x = np.broadcast_to(np.arange(3, dtype=np.float32), (4, 3))
    kernel = metal_kernel("raw", ["x"], ["out", "strides"], RAW, ensure_row_contiguous=False)
    out, strides = kernel(
        inputs=[x],
        grid=(3, 1, 1),
        threadgroup=(3, 1, 1),
        output_shapes=[(3,), (3,)],
        output_dtypes=[np.float32, np.int64],
    )
    assert out.tolist() == [0, 1, 2]
    assert strides.tolist() == [0, 1, 0]


def test_a_strided_view_ends_at_its_last_element() -> None:
    x = np.zeros((4, 8), np.float32)[:, ::4]  # elements 0, 4, … 28 of the memory
    kernel = metal_kernel("far", ["x"], ["out"], "out[0] = x[29];", ensure_row_contiguous=False)
    with metalsim.settings(mode="check"), pytest.raises(KernelError, match="out of bounds on buffer x"):
        run(kernel, x, grid=(1, 1, 1))


def test_a_view_that_runs_backwards_is_not_copied() -> None:
    memory = np.arange(24, dtype=np.float32).reshape(4, 6)
    x = memory[::-1, 1::2]  # its first element is 19 of the memory, its lowest 1
    kernel = metal_kernel(
        "raw",
        ["x"],
        ["out", "strides"],
        "uint i = thread_position_in_grid.x; out[i] = x[x_strides[i]]; strides[i] = x_strides[i];",
        ensure_row_contiguous=False,
    )
    with metalsim.settings(mode="check"):
        out, strides = kernel(
            inputs=[x],
            grid=(2, 1, 1),
            threadgroup=(2, 1, 1),
            output_shapes=[(2,)] * 2,
            output_dtypes=[np.float32, np.int64],
        )
    assert out.tolist() == [13, 21]
    assert strides.tolist() == [-6, 2]


@pytest.mark.parametrize("index", [-19, 5])
def test_the_memory_of_a_view_that_runs_backwards_ends_at_its_lowest_and_highest_element(index: int) -> None:
    x = np.zeros((4, 6), np.float32)[::-1, 1::2]
    kernel = metal_kernel("far", ["x"], ["out"], f"out[0] = x[{index}];", ensure_row_contiguous=False)
    with (
        metalsim.settings(mode="check"),
        pytest.raises(KernelError, match=rf"out of bounds on buffer x\[{index}\]"),
    ):
        run(kernel, x, grid=(1, 1, 1))


def test_shapes_and_strides_are_of_the_copy_that_the_kernel_gets() -> None:
    kernel = metal_kernel("raw", ["x"], ["out", "strides"], RAW)
    _, strides = kernel(
        inputs=[BASE.T],
        grid=(2, 1, 1),
        threadgroup=(2, 1, 1),
        output_shapes=[(2,)] * 2,
        output_dtypes=[np.float32, np.int64],
    )
    assert strides.tolist() == [6, 1]


def test_scalars_come_by_reference_with_mlx_types() -> None:
    kernel = metal_kernel(
        "scalars",
        ["a", "b", "c", "d"],
        ["out"],
        "out[0] = a ? b : 0; out[1] = c / 2; out[2] = sizeof(b) * 10 + sizeof(c); out[3] = d * 2;",
    )
    (out,) = kernel(
        inputs=[True, 7, 2**40, 2.5],
        grid=(1, 1, 1),
        threadgroup=(1, 1, 1),
        output_shapes=[(4,)],
        output_dtypes=[np.int64],
    )
    assert out.tolist() == [7, 2**39, 48, 5]


def test_outputs_begin_as_told_and_undefined_otherwise() -> None:
    kernel = metal_kernel("some", ["x"], ["out"], "if (thread_position_in_grid.x == 2) out[2] = x[2];")
    x = np.arange(9, dtype=np.float32)
    assert run(kernel, x, init_value=5).tolist() == [5, 5, 2, 5, 5, 5, 5, 5, 5]
    out = run(kernel, x)
    assert out[2] == 2
    assert np.isnan(np.delete(out, 2)).all()


def test_a_grid_without_threads_runs_nothing(copying: Any) -> None:
    x = np.arange(9, dtype=np.float32)
    assert run(copying, x, grid=(9, 0, 1), init_value=1).tolist() == [1] * 9
    assert np.isnan(run(copying, x, grid=(0, 1, 1))).all()


def test_atomic_outputs_add_up_across_threadgroups() -> None:
    kernel = metal_kernel(
        "sum",
        ["x"],
        ["out"],
        "atomic_fetch_add_explicit(&out[0], x[thread_position_in_grid.x], memory_order_relaxed);",
        atomic_outputs=True,
    )
    x = np.arange(100, dtype=np.int32)
    with metalsim.settings(mode="check"):
        assert run(kernel, x, output_shapes=[(1,)], init_value=0).tolist() == [4950]


def test_template_arguments_of_all_three_kinds() -> None:
    kernel = metal_kernel(
        "scale", ["x"], ["out"], "uint i = thread_position_in_grid.x; out[i] = flag ? T(x[i]) * n : T(0);"
    )
    x = np.arange(9, dtype=np.float32)
    for template, expected in (
        ([("T", np.float32), ("n", 3), ("flag", True)], x * 3),
        ([("T", mx.int32), ("n", 2), ("flag", True)], x * 2),
        ([("T", np.dtype(np.float16)), ("n", 3), ("flag", False)], x * 0),
    ):
        assert np.array_equal(run(kernel, x, template=template), expected)


def test_a_threadgroup_larger_than_the_grid_shrinks_to_it() -> None:
    kernel = metal_kernel(
        "sizes", ["x"], ["out"], "out[0] = threads_per_threadgroup.x; out[1] = dispatch_threads_per_threadgroup.y;"
    )
    out = run(kernel, np.zeros(9, np.float32), grid=(5, 2, 1), threadgroup=(64, 8, 1), output_dtypes=[np.uint32])
    assert out[:2].tolist() == [5, 2]


def test_every_attribute_has_its_value() -> None:
    """Grid 70×3 in groups of 40×2, looked at from the last thread: group (1, 1), 30×1 of it, position (29, 0)."""
    words = EVERY_ATTRIBUTE.split()
    store = " ".join(
        f"o[{3 * n}] = at({w}, 0); o[{3 * n + 1}] = at({w}, 1); o[{3 * n + 2}] = at({w}, 2);"
        for n, w in enumerate(words)
    )
    kernel = metal_kernel(
        "all",
        ["x"],
        ["o"],
        f"if (thread_position_in_grid.x == 69 && thread_position_in_grid.y == 2) {{ {store} }}",
        header="static uint at(uint3 v, int i) { return v[i]; }\nstatic uint at(uint v, int i) { return i ? 0 : v; }\n",
    )
    out = run(
        kernel,
        np.zeros(9, np.float32),
        grid=(70, 3, 1),
        threadgroup=(40, 2, 1),
        output_shapes=[(len(words), 3)],
        output_dtypes=[np.uint32],
    )
    assert {w: out[n].tolist() for n, w in enumerate(words)} == {
        "dispatch_quadgroups_per_threadgroup": [20, 0, 0],
        "dispatch_simdgroups_per_threadgroup": [3, 0, 0],
        "dispatch_threads_per_threadgroup": [40, 2, 1],
        "grid_origin": [0, 0, 0],
        "grid_size": [70, 3, 1],
        "quadgroup_index_in_threadgroup": [7, 0, 0],
        "quadgroups_per_threadgroup": [8, 0, 0],
        "simdgroup_index_in_threadgroup": [0, 0, 0],
        "simdgroups_per_threadgroup": [1, 0, 0],
        "thread_execution_width": [32, 0, 0],
        "thread_index_in_quadgroup": [1, 0, 0],
        "thread_index_in_simdgroup": [29, 0, 0],
        "thread_index_in_threadgroup": [29, 0, 0],
        "thread_position_in_grid": [69, 2, 0],
        "thread_position_in_threadgroup": [29, 0, 0],
        "threadgroup_position_in_grid": [1, 1, 0],
        "threadgroups_per_grid": [2, 2, 1],
        "threads_per_grid": [70, 3, 1],
        "threads_per_simdgroup": [32, 0, 0],
        "threads_per_threadgroup": [30, 1, 1],
    }


def test_math_mode_reaches_the_source() -> None:
    source = "#if defined(__FAST_MATH__) && __FAST_MATH__\nout[0] = 1;\n#else\nout[0] = 0;\n#endif\n"
    for mode, expected in (("safe", 0), ("relaxed", 0), ("fast", 1)):
        kernel = metal_kernel("mode", ["x"], ["out"], source, compile_options={"math_mode": mode})
        assert run(kernel, np.zeros(9, np.float32), grid=(1, 1, 1))[0] == expected


@pytest.mark.parametrize(
    ("make", "place"),
    [
        ({"source": "uint i = 0;\n\nout[i] = missing;"}, r"broken\.metal:3:\d+: error: .*missing"),
        ({"source": COPY, "header": "typedef float F;\ntypedef missing G;\n"}, r"broken\.h:2:\d+: error: .*missing"),
        ({"source": "out[0] = (1;"}, r"broken\.metal:1: error: '\(' has no counterpart"),
        ({"source": '#include "no/such.h"\n'}, r"broken\.metal:1:\d+: fatal error: no/such\.h"),
    ],
    ids=["source", "header", "bracket", "include"],
)
def test_errors_of_the_source_name_its_own_lines(make: Mapping[str, str], place: str) -> None:
    kernel = metal_kernel("broken", ["x"], ["out"], **make)
    with pytest.raises(CompileError, match=place):
        run(kernel, np.zeros(9, np.float32))


def test_what_metalsim_does_not_run_is_refused_with_its_line() -> None:
    kernel = metal_kernel("reads", ["x"], ["out"], "\ntexture2d<float> t;\nout[0] = 0;")
    with pytest.raises(Refused, match=r"reads\.metal:2: metalsim does not run textures"):
        run(kernel, np.zeros(9, np.float32))


RACE = """threadgroup float tile[64];
uint t = thread_position_in_threadgroup.x;
tile[t] = x[t];
out[t] = tile[63 - t];
"""


def test_findings_are_raised_with_both_places_in_check_mode_only() -> None:
    kernel = metal_kernel("race", ["x"], ["out"], RACE)
    x = np.arange(64, dtype=np.float32)
    run(kernel, x, threadgroup=(64, 1, 1))
    with metalsim.settings(mode="check"), pytest.raises(KernelError) as error:
        run(kernel, x, threadgroup=(64, 1, 1))
    races = [report for report in error.value.reports if report.finding is metalsim.Finding.RACE]
    assert races
    for report in races:
        assert report.memory == "threadgroup tile"
        assert report.other is not None
        assert {report.access.site, report.other.site} == {
            metalsim.Site("race.metal", 3),
            metalsim.Site("race.metal", 4),
        }
    assert "race.metal:3" in str(error.value)
    assert "race.metal:4" in str(error.value)


def test_the_mode_of_a_kernel_is_stronger_than_the_settings() -> None:
    x = np.arange(64, dtype=np.float32)
    with pytest.raises(KernelError):
        run(metal_kernel("race", ["x"], ["out"], RACE, mode="check"), x, threadgroup=(64, 1, 1))
    with metalsim.settings(mode="check"):
        run(metal_kernel("race", ["x"], ["out"], RACE, mode="fast"), x, threadgroup=(64, 1, 1))


def test_reports_can_be_collected_and_the_launch_goes_on() -> None:
    found: list[metalsim.Report] = []
    x = np.arange(64, dtype=np.float32)
    kernel = metal_kernel("late", ["x"], ["out"], "uint t = thread_position_in_grid.x; out[t] = x[t] + 0 * x[t + 1];")
    with metalsim.settings(mode="check", on_report=found.append):
        out = run(kernel, x)
    assert np.array_equal(out[:63], x[:63])
    assert [(r.finding, r.memory, r.index, r.count) for r in found] == [
        (metalsim.Finding.OUT_OF_BOUNDS, "buffer x", 64, 1)
    ]


@pytest.mark.parametrize(
    ("source", "finding"),
    [
        ("out[0] = 1; __builtin_trap();", metalsim.Finding.CRASH),
        ("out[1 << 20] = 1;", metalsim.Finding.OUT_OF_BOUNDS),
        ("volatile int n = 0; while (n == 0) { } out[0] = n;", metalsim.Finding.TIMEOUT),
    ],
    ids=["crash", "far out of bounds", "endless"],
)
def test_a_kernel_that_crashes_or_never_ends_is_an_error_in_fast_mode_too(
    source: str, finding: metalsim.Finding
) -> None:
    kernel = metal_kernel("bad", ["x"], ["out"], source)
    with metalsim.settings(timeout=1), pytest.raises(KernelError) as error:
        run(kernel, np.zeros(9, np.float32), grid=(1, 1, 1))
    assert finding in [report.finding for report in error.value.reports]
    good = metal_kernel("copy", ["x"], ["out"], COPY)
    assert run(good, np.ones(9, np.float32)).tolist() == [1] * 9


def test_an_unfinished_input_under_compile_is_an_error_that_says_what_to_do() -> None:
    kernel = metal_kernel("copy", ["x"], ["out"], COPY)
    with pytest.raises(RuntimeError, match=r"mx\.disable_compile"):
        mx.compile(lambda x: run(kernel, x))(mx.ones((9,)))


@pytest.mark.parametrize("order", ["forward", "reverse", "random"])
def test_a_right_kernel_gives_the_same_in_every_schedule(order: Any) -> None:
    source = RACE.replace("out[t]", "threadgroup_barrier(mem_flags::mem_threadgroup);\nout[t]")
    x = np.arange(64, dtype=np.float32)
    kernel = metal_kernel(
        "reverse", ["x"], ["out"], source, mode="check", schedule=metalsim.Schedule(order=order, seed=3)
    )
    assert np.array_equal(run(kernel, x, threadgroup=(64, 1, 1)), x[::-1])


def test_kernels_of_the_same_text_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(9, dtype=np.float32)
    run(metal_kernel("copy", ["x"], ["out"], COPY), x)

    def fail(*_: Any, **__: Any) -> Any:
        raise AssertionError("compiled again")

    monkeypatch.setattr("inferspec.compiler.preprocess", fail)
    monkeypatch.setattr("inferspec.compiler.shared_library", fail)
    assert np.array_equal(run(metal_kernel("copy", ["x"], ["out"], COPY), x), x)


def test_two_sources_of_one_name_do_not_meet() -> None:
    x = np.arange(9, dtype=np.float32)
    kernels: Sequence[Any] = [
        metal_kernel("twin", ["x"], ["out"], COPY.replace("x[i];", f"x[i] * {n};")) for n in (2, 3)
    ]
    assert [run(kernel, x)[4] for kernel in (*kernels, *kernels)] == [8, 12, 8, 12]
