"""What week 2 of the tiny-llm course writes anew of week 1, for `--layout course-week2`: the kernels of `week2_kernels` and the
products of packed weights by SIMD groups. All else is `--layout course`'s.

A package has both, and each is judged by the sentences of the same operation, in a run of its own.
"""

from __future__ import annotations

from dataclasses import replace

from inferspec.conformance.bridge.layouts import Chapter, Laid
from inferspec.conformance.bridge.layouts.course import GUARDS as GUARDS
from inferspec.conformance.bridge.layouts.course import laid_out, week_2
from inferspec.conformance.bridge.layouts.course.editions import NEWER

CHAPTERS = {
    NEWER: (
        Chapter("week 2 day 3", "rows of packed weights", ("dequantize",)),
        Chapter("week 2 day 4", "FastRMSNorm, FastRoPE, swiglu", ("RMSNorm", "RoPE", "silu", "SwiGLU")),
        Chapter("week 2 day 5", "attention step by step", ("scaled_dot_product_attention",)),
        Chapter("week 2 day 6-7", "SIMD and split-K products", ("quantized_matmul", "QuantizedLinear")),
    )
}
ALTERNATIVES: tuple[frozenset[str], ...] = ()


def lay_out(name: str) -> Laid:
    """The package of that name, seen as what week 2 writes anew; no other edition does."""
    return replace(laid_out(name, (week_2,)), edition=NEWER)
