"""`quantize` and `embedding.QuantizedEmbedding`: packed weights of 4 bits, handed over as `QuantizedWeights`."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from inferspec.conformance.bridge.layouts import Offer
from inferspec.conformance.bridge.layouts.packages import NotOffered, Package, takes

PRESENT: dict[str, Any] = {"dtypes": ("bfloat16",), "group_sizes": (128,)}
FORMER: dict[str, Any] = {"dtypes": ("float16",), "group_sizes": (64,)}
"""Of the Qwen2 edition: what it was made for."""
ALWAYS: dict[str, Any] = {"bits": (4,), "transpose": (True,), "stacked": (False,)}


EMPTY = dict.fromkeys(("QEMB-17", "QEMB-18", "QLIN-10", "QMM-15"), "the text has no list of no tokens") | {
    "DEQ-11": "the text has no layer of no rows"
}


def _asked(call: Callable[..., Any]) -> dict[str, Any]:
    """What the edition takes: an older one is told by refusing the present form and taking its own.

    call: any use of packed weights, given a dtype, packed, scales, biases and the group size.
    """
    former = not _takes(call, PRESENT) and _takes(call, FORMER)
    return {**ALWAYS, **(FORMER if former else PRESENT)}


def _takes(call: Callable[..., Any], form: dict[str, Any]) -> bool:
    import mlx.core as mx

    dtype, group = getattr(mx, form["dtypes"][0]), form["group_sizes"][0]
    try:
        mx.eval(call(dtype, *mx.quantize(mx.ones((8, group)).astype(dtype), group, 4), group))
    except Exception:
        return False
    return True


def _rows(dtype: Any, weights: tuple[Any, ...]) -> Any:
    """Two rows as long as the packed ones."""
    import mlx.core as mx

    return mx.ones((2, weights[0].shape[1] * 8)).astype(dtype)


def _product(
    own: Callable[..., Any], x: Any, packed: Any, scales: Any, biases: Any, group_size: int, bits: int, transpose: bool
) -> Any:
    return own(scales, biases, group_size, bits, x, packed, transpose)


def _quantized_matmul(package: Package) -> Offer:
    return matmul(package.find("quantized_matmul", home="quantize"))


def matmul(own: Callable[..., Any]) -> Offer:
    """A product of the course's as the contract's."""

    def quantized_matmul(
        x: Any,
        packed: Any,
        scales: Any,
        biases: Any,
        group_size: int = 128,
        bits: int = 4,
        transpose: bool = True,
    ) -> Any:
        return _product(own, x, packed, scales, biases, group_size, bits, transpose)

    asked = _asked(lambda dtype, *weights: quantized_matmul(_rows(dtype, weights), *weights))
    return Offer(quantized_matmul, asked, unasked=EMPTY)


def weights_class(package: Package) -> Any:
    """The course's packed weights."""
    return package.find("QuantizedWeights", home="quantize", needs=("__init__",))


def _made(own: Callable[..., Any]) -> Callable[..., Any]:
    """What makes the course's packed weights of ours."""

    def weights(packed: Any, scales: Any, biases: Any, group_size: int, bits: int) -> Any:
        return own(scales=scales, biases=biases, group_size=group_size, bits=bits, weight=packed)

    return weights


def _dequantize(package: Package) -> Offer:
    """Of a layer as mlx-lm has it; the present edition gives bfloat16 always."""
    own = package.find("dequantize_linear", home="quantize")

    def dequantize(packed: Any, scales: Any, biases: Any, group_size: int = 128, bits: int = 4) -> Any:
        layer = SimpleNamespace(weight=packed, scales=scales, biases=biases, group_size=group_size, bits=bits)
        return own(layer)

    return Offer(dequantize, _asked(lambda dtype, *weights: dequantize(*weights)), unasked=EMPTY)


def _quantized_linear(package: Package) -> Offer:
    return linear(package.find("quantized_linear", home="quantize"), weights_class(package))


def linear(own: Callable[..., Any], kind: Callable[..., Any]) -> Offer:
    """A layer of the course's, a function of weights of that kind, as the contract's."""
    weights = _made(kind)

    class QuantizedLinear:
        def __init__(
            self, packed: Any, scales: Any, biases: Any, group_size: int = 128, bits: int = 4, bias: Any = None
        ) -> None:
            self.weights, self.bias = weights(packed, scales, biases, group_size, bits), bias

        def __call__(self, x: Any) -> Any:
            return own(x, self.weights, self.bias)

    asked = _asked(lambda dtype, *weights: QuantizedLinear(*weights)(_rows(dtype, weights)))
    return Offer(QuantizedLinear, asked, unasked=EMPTY)


def _quantized_embedding(package: Package) -> Offer:
    own = package.find("QuantizedEmbedding", home="embedding", needs=("__init__", "__call__", "as_linear"))
    weights = _made(weights_class(package))
    if not takes(own, "weight"):
        raise NotOffered("QuantizedEmbedding takes no weight")

    class QuantizedEmbedding:
        def __init__(self, packed: Any, scales: Any, biases: Any, group_size: int = 128, bits: int = 4) -> None:
            rows, columns = packed.shape[0], packed.shape[1] * 32 // bits
            self.own = own(rows, columns, weights(packed, scales, biases, group_size, bits))

        def __call__(self, tokens: Any) -> Any:
            return self.own(tokens)

        def as_linear(self, x: Any) -> Any:
            return self.own.as_linear(x)

    leading = {"leading_dims": ((1,), (2,), (2, 3), (2, 1, 3))}
    return Offer(QuantizedEmbedding, {**ALWAYS, **PRESENT, **leading}, unasked=EMPTY)


OFFERS = {
    "dequantize": _dequantize,
    "quantized_matmul": _quantized_matmul,
    "QuantizedLinear": _quantized_linear,
    "QuantizedEmbedding": _quantized_embedding,
    "QuantizedEmbedding.as_linear": _quantized_embedding,
}
