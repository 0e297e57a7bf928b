"""`attention`: grouped attention (or the simple one where that is all there is), the causal mask, multi-head attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inferspec.conformance.bridge.layouts import Offer
from inferspec.conformance.bridge.layouts.packages import NotOffered, Package, takes

FLOAT32 = ("float32",)
ADDED = ("none", "-inf", "lowest", "additive")
"""A mask is an array that is added to the scores, or there is none."""
GROUPED = ("none", "causal", "-inf", "lowest", "additive")
SCALED: dict[str, Any] = {
    "dtypes": ("bfloat16",),
    "masks": GROUPED,
    "scales": ("given",),
    "more_queries": (False,),
}
"""What is asked of `week2_kernels`: the text computes it in bfloat16, and always has a scale."""
EMPTY = dict.fromkeys(("ATTN-11", "FLASH-11", "MHA-11"), "the text has no batch, and no sequence, of nothing")
BATCHES = ((1,), (2,), (5,), (9,))
"""N×L×E: exactly one leading dim."""


def _attention(package: Package) -> Offer:
    try:
        grouped = package.find("scaled_dot_product_attention_grouped", home="attention")
    except NotOffered:
        simple = package.find("scaled_dot_product_attention_simple", home="attention")
        return Offer(simple, {"dtypes": FLOAT32, "masks": ADDED, "ratios": (1,)}, unasked=EMPTY)
    asked: dict[str, Any] = {"dtypes": FLOAT32, "masks": GROUPED}
    return Offer(with_whole_masks(grouped), asked | _queries(lambda: _causal(grouped)), unasked=EMPTY)


def _causal(attend: Callable[..., Any]) -> bool:
    """Whether of more queries than keys the last sees all keys, and each before it a key less."""
    import mlx.core as mx

    # Each visible key has the same share; of a query that sees none nothing is asked.
    key, value = mx.zeros((1, 2, 2, 32)), mx.broadcast_to(mx.array([[1.0], [3.0]]), (1, 2, 2, 32))
    attended = attend(mx.zeros((1, 2, 3, 32)), key, value, mask="causal")
    # The mean of any of the values is a whole number.
    return bool((mx.round(attended[..., 1:, 0]) == mx.array([1.0, 2.0])).all())


def _queries(aligned: Callable[[], bool]) -> dict[str, Any]:
    """What is asked of one that refuses more queries than keys, or aligns them otherwise: the text speaks of fewer alone."""
    try:
        return {} if aligned() else {"more_queries": (False,)}
    except NotImplementedError:
        raise
    except Exception:
        return {"more_queries": (False,)}


def with_whole_masks(attend: Callable[..., Any]) -> Callable[..., Any]:
    """The attention, given masks as the text has them, N..×H_q×L×S, where it takes none that broadcast to that.

    NotImplementedError where it needs what is not there.
    """
    import mlx.core as mx

    # Two heads of keys: a mask without heads may still take the shape of one.
    query, key = mx.zeros((1, 4, 2, 32)), mx.zeros((1, 2, 3, 32))
    masks = {"mask": mx.zeros((2, 3))} if takes(attend, "mask") else {}
    try:
        mx.eval(attend(query, key, key, **masks))
    except NotImplementedError:
        raise
    except Exception:
        if not masks:
            return attend

        def attention(query: Any, key: Any, value: Any, scale: Any = None, mask: Any = None) -> Any:
            if isinstance(mask, mx.array):
                mask = mx.broadcast_to(mask, (*query.shape[:-1], key.shape[-2]))
            return attend(query, key, value, scale=scale, mask=mask)

        return attention
    return attend


def always_scaled(own: Callable[..., Any]) -> Callable[..., Any]:
    """Attention that is always given a scale, and masks of the whole shape B×H_q×L×S."""
    import mlx.core as mx

    def attention(query: Any, key: Any, value: Any, scale: Any = None, mask: Any = None) -> Any:
        if isinstance(mask, mx.array):
            mask = mx.broadcast_to(mask, (*query.shape[:-1], key.shape[-2]))
        return own(query, key, value, scale, mask)

    return attention


def _causal_mask(package: Package) -> Offer:
    import mlx.core as mx

    own = package.find("causal_mask", home="attention")

    def aligned() -> bool:
        hidden = own(3, 2, mx.float32) < 0
        return bool(mx.array_equal(hidden, mx.array([[True, True], [False, True], [False, False]])))

    return Offer(own, {"dtypes": FLOAT32} | _queries(aligned))


def _multi_head(package: Package) -> Offer:
    own = package.find("SimpleMultiHeadAttention", "MultiHeadAttention", home="attention")
    asked: dict[str, Any] = {"dtypes": FLOAT32, "masks": ADDED, "leading_dims": BATCHES}
    return Offer(own, {**asked, "free_head_dim": (False,), "other_lengths": (False,)}, unasked=EMPTY)


OFFERS = {
    "scaled_dot_product_attention": _attention,
    "causal_mask": _causal_mask,
    "MultiHeadAttention": _multi_head,
}
