"""What MLX's own tests ask of `mx.fast.metal_kernel` (python/tests/test_fast.py), asked with metalsim in its place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from inferspec.tools import metalsim

pytestmark = pytest.mark.usefixtures("cxx")
INDEX = "uint i = thread_position_in_grid.x;"


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    with metalsim.installed():
        yield


def elementwise(
    source: str, x: mx.array, *, name: str = "k", header: str = "", contiguous: bool = True, **call: Any
) -> mx.array:
    """A kernel of one input and one output of its shape, a thread for each element, on the GPU's stream."""
    kernel = mx.fast.metal_kernel(
        name=name,
        input_names=["inp"],
        output_names=["out"],
        source=source,
        header=header,
        ensure_row_contiguous=contiguous,
    )
    arguments = {
        "inputs": [x],
        "grid": (x.size, 1, 1),
        "threadgroup": (min(x.size, 256), 1, 1),
        "output_shapes": [x.shape],
        "output_dtypes": [x.dtype],
        "stream": mx.gpu,
    }
    return kernel(**(arguments | call))[0]


def test_basic() -> None:
    x = mx.random.normal((3, 5))
    assert mx.array_equal(elementwise(f"{INDEX} out[i] = inp[i];", x, threadgroup=(2, 1, 1)), x)


def test_arguments_of_all_kinds_and_two_outputs_of_their_own_types() -> None:
    kernel = mx.fast.metal_kernel(
        name="arguments",
        input_names=["many", "few", "half_precise", "number"],
        output_names=["real", "whole"],
        source=f"{INDEX} T t = T(many[i]); real[i] = on ? t + few[1] + half_precise[2] + number + n : 0; whole[i] = few[i % 3] - number;",
    )
    many = mx.arange(12, dtype=mx.float32).reshape(3, 4)
    few, half_precise = mx.array([3, 4, 5]), mx.array([[1, 2], [3, 4]], mx.bfloat16)
    real, whole = kernel(
        inputs=[many, few, half_precise, 1.5],
        template=[("on", True), ("n", 7), ("T", mx.float16)],
        grid=(12, 1, 1),
        threadgroup=(5, 1, 1),
        output_shapes=[(3, 4), (12,)],
        output_dtypes=[mx.float32, mx.int32],
        stream=mx.gpu,
    )
    assert mx.array_equal(real, many + (4 + 3 + 1.5 + 7))
    # Conversion to int cuts off: 1.5, 2.5 and 3.5.
    assert whole.tolist() == [1, 2, 3] * 4


@pytest.mark.parametrize("contiguous", [True, False])
def test_strides(contiguous: bool) -> None:
    x = mx.tile(mx.random.normal((6, 6))[::2], [4, 1])
    where = "i" if contiguous else "elem_to_loc(i, inp_shape, inp_strides, inp_ndim)"
    for view in (x, x.T, x[::3, 1:]):
        source = f"{INDEX} T t = inp[{where}]; out[i] = metal::precise::exp(t) * threads_per_simdgroup;"
        got = elementwise(
            source, view, name=f"strides{contiguous}", contiguous=contiguous, template=[("T", mx.float32)]
        )
        # Two exponentials of numbers below 4 that may each be off by a few units in the last place.
        np.testing.assert_array_max_ulp(np.array(got), 32 * np.exp(np.array(view)), maxulp=8)


def test_helpers_in_the_header() -> None:
    header = "template <typename T>\nT twice(T x) { return x + x; }\n"
    x = mx.random.normal((3, 5))
    assert mx.array_equal(elementwise(f"{INDEX} out[i] = twice(inp[i]);", x, header=header), 2 * x)


def test_attributes() -> None:
    got = elementwise(
        "out[0] = threads_per_threadgroup.x;",
        mx.zeros((1, 1)),
        grid=(3, 1, 1),
        threadgroup=(3, 1, 1),
        output_dtypes=[mx.uint32],
    )
    assert got.item() == 3


def test_a_new_source_of_an_old_name_is_a_new_kernel() -> None:
    x = mx.random.normal((32,))
    for value in (0.0, 1.0, 0.0):
        assert mx.array_equal(elementwise(f"{INDEX} out[i] = {value};", x, name="mine"), mx.full((32,), value))


def test_two_sources_of_one_name_in_one_evaluation() -> None:
    x = mx.arange(32, dtype=mx.float32)
    one, two = elementwise(f"{INDEX} out[i] = inp[i] * 2;", x), elementwise(f"{INDEX} out[i] = inp[i] + 100;", x)
    mx.eval(one, two)
    assert mx.array_equal(one, x * 2)
    assert mx.array_equal(two, x + 100)


def test_one_kernel_for_inputs_of_several_types() -> None:
    kernel = mx.fast.metal_kernel("mixed", ["inp"], ["out"], f"{INDEX} out[i] = inp[i] + inp[i];")
    total = mx.zeros((32,))
    for dtype, value in ((mx.float16, 1.5), (mx.float32, 2.5), (mx.bfloat16, 0.25), (mx.int32, 3)):
        x = mx.full((32,), value, dtype)
        call: dict[str, Any] = {"inputs": [x], "grid": (32, 1, 1), "threadgroup": (32, 1, 1), "output_shapes": [(32,)]}
        total = total + kernel(**call, output_dtypes=[dtype])[0].astype(mx.float32)
    assert mx.array_equal(total, mx.full((32,), 14.5))


@pytest.mark.parametrize(("mode", "expected"), [("safe", 0), ("fast", 1)])
def test_the_math_mode_reaches_the_compiler(mode: str, expected: int) -> None:
    source = f"{INDEX}\n#if defined(__FAST_MATH__) && __FAST_MATH__\nout[i] = 1;\n#else\nout[i] = 0;\n#endif\n"
    kernel = mx.fast.metal_kernel("mode", ["inp"], ["out"], source, compile_options={"math_mode": mode})
    (got,) = kernel(
        inputs=[mx.zeros((4,))], grid=(4, 1, 1), threadgroup=(4, 1, 1), output_shapes=[(4,)], output_dtypes=[mx.float32]
    )
    assert got.tolist() == [expected] * 4
