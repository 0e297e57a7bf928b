"""`week2_kernels` and its like: what week 2 writes anew, faster, of what week 1 wrote, since July 2026.

The text computes all of it in bfloat16 and compares it with week 1 by tolerances; attention of MLX's own products is asked in float32,
since on a CPU they add up in bfloat16. Its kernels multiply by RMSNorm's weight in
float32, and take `fast::sin` of RoPE's angles; positions are those of the text's models.
"""

from __future__ import annotations

from typing import Any

from inferspec.conformance.bridge.layouts import Offer
from inferspec.conformance.bridge.layouts.course import quantization
from inferspec.conformance.bridge.layouts.course.attention import EMPTY, FLOAT32, SCALED, always_scaled
from inferspec.conformance.bridge.layouts.course.mlp import TOKENS
from inferspec.conformance.bridge.layouts.packages import NotOffered, Package, takes
from inferspec.spec.rms_norm import CONTRACT as RMS_NORM

HOME = "week2_kernels"
BFLOAT16: dict[str, Any] = {"dtypes": ("bfloat16",)}
_LEADING: Any = RMS_NORM.envelope["leading_dims"]
ROWS = ((1,), (2,), (5,), (9,))
"""B×H×L×E: the text's queries and keys."""
POSITIONS = 32768
"""What the text's models have: beyond, `fast::sin` is not promised anything."""

NO_ROWS = "the text has no rows of nothing"
ROUNDED_ONCE = "week 2's text multiplies by the weight in float32 and rounds once"
STARTS = "FastRoPE is told where each row starts, and not where it stops"


def _rms_norm(package: Package) -> Offer:
    own = package.find("FastRMSNorm", home=HOME, needs=("__init__", "__call__"))
    unasked = {"RMS-06": ROUNDED_ONCE} | dict.fromkeys(
        ("test_no_rows_give_an_empty_result", "test_no_rows_have_the_dtype_of_x"), NO_ROWS
    )
    return Offer(own, {**BFLOAT16, "leading_dims": tuple(lead for lead in _LEADING if lead)}, unasked=unasked)


def _rope(package: Package) -> Offer:
    own = package.find("FastRoPE", home=HOME, needs=("__init__", "__call__"))

    class RoPE:
        def __init__(self, dims: int, max_positions: int, base: float = 10000, traditional: bool = False) -> None:
            self.own = own(dims, max_positions, base=base, traditional=traditional)

        def __call__(self, x: Any, offset: Any = None) -> Any:
            if offset is None:
                return self.own(x)
            return self.own(x, [row.start for row in offset] if isinstance(offset, list) else offset)

    asked = {**BFLOAT16, "partial": (False,), "empty": (False,), "offsets": ("none", "int", "slices")}
    return Offer(RoPE, {**asked, "positions": POSITIONS}, unasked={"ROPE-20": STARTS})


def _silu(package: Package) -> Offer:
    """swiglu(gate, up) of an up of ones."""
    import mlx.core as mx

    own = package.find("swiglu", home=HOME)

    def silu(x: Any) -> Any:
        return own(x, mx.ones_like(x))

    unasked = {"test_silu_of_a_scalar_and_of_nothing_keeps_the_shape": NO_ROWS}
    return Offer(silu, BFLOAT16, unasked=unasked)


def _mlp(package: Package) -> Offer:
    """swiglu between the three products of week 1's linear."""
    own, linear = package.find("swiglu", home=HOME), package.find("linear", home="basics")

    class SwiGLU:
        def __init__(self, dims: int, hidden_dims: int, w_gate: Any, w_up: Any, w_down: Any) -> None:
            self.w_gate, self.w_up, self.w_down = w_gate, w_up, w_down

        def __call__(self, x: Any) -> Any:
            return linear(own(linear(x, self.w_gate), linear(x, self.w_up)), self.w_down)

    return Offer(SwiGLU, {**BFLOAT16, "leading_dims": TOKENS}, unasked={"test_no_rows_give_no_rows": NO_ROWS})


def _attention(package: Package) -> Offer:
    own = package.find("scaled_dot_product_attention", home=HOME)
    return Offer(always_scaled(own), {**SCALED, "dtypes": FLOAT32, "leading_dims": ROWS}, unasked=EMPTY)


def _dequantize(package: Package) -> Offer:
    own = package.find("dequantize_weights", home="quantize")

    def dequantize(packed: Any, scales: Any, biases: Any, group_size: int = 128, bits: int = 4) -> Any:
        return own(packed, scales, biases, group_size, bits)

    return Offer(dequantize, {**quantization.ALWAYS, **quantization.PRESENT}, unasked=quantization.EMPTY)


def _quantized_matmul(package: Package) -> Offer:
    own = package.find("quantized_matmul", home="quantize")
    if not takes(own, "use_simdgroup"):
        raise NotOffered("quantized_matmul has no use_simdgroup")
    flags = {name: True for name in ("use_simdgroup", "use_split_k") if takes(own, name)}

    def simd(*arguments: Any) -> Any:
        return own(*arguments, **flags)

    return quantization.matmul(simd)


def _quantized_linear(package: Package) -> Offer:
    linear, weights = package.find("quantized_linear", home="quantize"), quantization.weights_class(package)
    if not takes(weights, "use_simdgroup_matmul"):
        raise NotOffered("QuantizedWeights have no use_simdgroup_matmul")
    flags = {name: True for name in ("use_simdgroup_matmul", "use_split_k_matmul") if takes(weights, name)}
    return quantization.linear(linear, lambda **parts: weights(**parts, **flags))


OFFERS = {
    "RMSNorm": _rms_norm,
    "RoPE": _rope,
    "silu": _silu,
    "SwiGLU": _mlp,
    "scaled_dot_product_attention": _attention,
    "dequantize": _dequantize,
    "quantized_matmul": _quantized_matmul,
    "QuantizedLinear": _quantized_linear,
}
