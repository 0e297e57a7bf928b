"""The CPU kernels under MLX's function transformations give what its own operations give."""

from __future__ import annotations

from collections.abc import Callable

import mlx.core as mx
import numpy as np
import pytest

from inferspec.impl.linear import linear
from inferspec.impl.quantization import QuantizedEmbedding, dequantize, quantize, quantized_matmul

pytestmark = pytest.mark.usefixtures("cpu_kernels")

Function = Callable[..., mx.array]
ROWS, FEATURES, OUTPUTS = 3, 64, 5


def whole(*shape: int, seed: int) -> mx.array:
    """Small whole numbers: their products and sums are exact in any order."""
    return mx.array(np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32))


X, WEIGHT, BIAS = whole(ROWS, FEATURES, seed=1), whole(OUTPUTS, FEATURES, seed=2), whole(OUTPUTS, seed=3)
PACKED = quantize(WEIGHT, group_size=32)[0]
SCALES, BIASES = whole(OUTPUTS, FEATURES // 32, seed=4), whole(OUTPUTS, FEATURES // 32, seed=5)
TOKENS = mx.array([4, 0, 4])

CALLS: dict[str, tuple[Function, tuple[mx.array, ...]]] = {
    "linear": (linear, (X, WEIGHT, BIAS)),
    "linear without bias": (linear, (X, WEIGHT)),
    "quantized_matmul": (lambda x, s, b: quantized_matmul(x, PACKED, s, b, group_size=32), (X, SCALES, BIASES)),
    "quantized_matmul, not transposed": (
        lambda x, s, b: quantized_matmul(x, PACKED, s, b, group_size=32, transpose=False),
        (whole(ROWS, OUTPUTS, seed=6), SCALES, BIASES),
    ),
    "dequantize": (lambda s, b: dequantize(PACKED, s, b, group_size=32), (SCALES, BIASES)),
    "embedding": (lambda s, b: QuantizedEmbedding(PACKED, s, b, group_size=32)(TOKENS), (SCALES, BIASES)),
}


@pytest.fixture(params=CALLS)
def call(request: pytest.FixtureRequest) -> tuple[Function, tuple[mx.array, ...]]:
    return CALLS[request.param]


def without_kernels(monkeypatch: pytest.MonkeyPatch, function: Callable[[], object]) -> object:
    """What MLX's operations give."""
    with monkeypatch.context() as changed:
        changed.setenv("INFERSPEC_CPU", "off")
        return function()


def squares(function: Function) -> Function:
    return lambda *arrays: (function(*arrays) ** 2).sum()


def same(got: object, expected: object) -> bool:
    arrays = [value if isinstance(value, (list, tuple)) else [value] for value in (got, expected)]
    return all(bool(mx.array_equal(one, other)) for one, other in zip(*arrays, strict=True))


def test_a_kernel_gives_what_mlx_gives(call, monkeypatch):
    function, arrays = call
    assert same(function(*arrays), without_kernels(monkeypatch, lambda: function(*arrays)))


def test_gradients_by_every_argument_are_those_of_mlx(call, monkeypatch):
    function, arrays = call
    gradient = mx.grad(squares(function), argnums=tuple(range(len(arrays))))
    expected = without_kernels(monkeypatch, lambda: gradient(*arrays))
    assert any(bool(mx.any(one != 0)) for one in expected)
    assert same(gradient(*arrays), expected)


def test_a_gradient_passes_through_what_comes_before_a_kernel(call, monkeypatch):
    function, arrays = call
    gradient = mx.grad(lambda first: squares(function)(2 * first, *arrays[1:]))
    assert same(gradient(arrays[0]), without_kernels(monkeypatch, lambda: gradient(arrays[0])))


def test_directional_derivatives_are_those_of_mlx(call, monkeypatch):
    function, arrays = call

    def derivative():
        return mx.jvp(squares(function), list(arrays), list(arrays))[1]

    assert as_in_mlx(monkeypatch, derivative)


def test_vectorised_functions_take_mlx_s_operations(call, monkeypatch):
    function, (first, *rest) = call
    mapped = mx.vmap(lambda one: function(one, *rest))
    assert as_in_mlx(monkeypatch, lambda: mapped(mx.stack([first, -first])))


def test_vectorised_gradients_are_those_of_mlx(call, monkeypatch):
    function, (first, *rest) = call
    mapped = mx.vmap(mx.grad(lambda one: squares(function)(one, *rest)))
    assert as_in_mlx(monkeypatch, lambda: mapped(mx.stack([first, -first])))


@pytest.mark.parametrize("name", ["linear", "quantized_matmul"])
def test_compiled_functions_and_gradients_take_mlx_s_operations(name):
    function, (first, *rest) = CALLS[name]
    both = mx.value_and_grad(lambda one: squares(function)(one, *rest))
    assert same(mx.compile(both)(first), both(first))


def as_in_mlx(monkeypatch: pytest.MonkeyPatch, function: Callable[[], object]) -> bool:
    """Whether a function gives what it gives without kernels, which may be MLX's refusal."""

    def outcome() -> object:
        try:
            result = function()
            mx.eval(result)
        except RuntimeError as error:
            return str(error)
        return result

    expected = without_kernels(monkeypatch, outcome)
    got = outcome()
    return got == expected if isinstance(expected, str) else same(got, expected)
