"""`attention.flash_attention`, of which the oldest edition takes no mask; since July 2026 there is `decode_attention_custom` for it,
of up to 256 keys, that the text uses for one or two queries and tests with up to eight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inferspec.conformance.bridge.layouts import Offer
from inferspec.conformance.bridge.layouts.course.attention import (
    EMPTY,
    FLOAT32,
    GROUPED,
    SCALED,
    always_scaled,
    with_whole_masks,
)
from inferspec.conformance.bridge.layouts.packages import NotOffered, Package
from inferspec.spec.flash_attention import CONTRACT

_LEADING: Any = CONTRACT.envelope["leading_dims"]
BATCH = tuple(lead for lead in _LEADING if len(lead) == 1)
"""B×H×L×E: the text has B.., its own code unpacks keys of exactly four axes."""
HOME = "week2_kernels"
QUERIES, KEYS = 8, 256
"""Those of decode attention at a time, as the text's own tests have it."""


def _flash_attention(package: Package) -> Offer:
    try:
        found = package.find("flash_attention", home="attention")
    except NotOffered:
        if HOME not in package.modules:
            raise
        return _decode_attention(package)
    own = with_whole_masks(found)
    asked: dict[str, Any] = {"dtypes": FLOAT32, "masks": GROUPED, "head_dims": (32, 64, 72, 80, 96, 112, 128)}
    return Offer(own, asked if _takes_any_batch(own) else {**asked, "leading_dims": BATCH}, unasked=EMPTY)


def _decode_attention(package: Package) -> Offer:
    """decode_attention_custom, given so many queries at a time as it is made for."""
    import mlx.core as mx

    own = always_scaled(package.find("decode_attention_custom", home=HOME))

    def attention(query: Any, key: Any, value: Any, scale: Any = None, mask: Any = None) -> Any:
        length, keys = query.shape[-2], key.shape[-2]
        whole = mx.broadcast_to(mask, (*query.shape[:-1], keys)) if isinstance(mask, mx.array) else None

        def part(first: int) -> Any:
            last = min(first + QUERIES, length)
            # What a causal mask lets the last of them see.
            seen = keys - length + last if isinstance(mask, str) else keys
            shown = mask if whole is None else whole[..., first:last, :]
            return own(query[..., first:last, :], key[..., :seen, :], value[..., :seen, :], scale, shown)

        parts = [part(first) for first in range(0, length, QUERIES)]
        return parts[0] if len(parts) == 1 else mx.concatenate(parts, axis=-2)

    asked = {**SCALED, "head_dims": (32, 64, 96, 128), "leading_dims": BATCH, "keys": KEYS}
    return Offer(attention, asked, unasked=EMPTY)


def _takes_any_batch(attend: Callable[..., Any]) -> bool:
    import mlx.core as mx

    heads = mx.zeros((1, 2, 32))
    try:
        mx.eval(attend(heads, heads, heads))
    except NotImplementedError:
        raise
    except Exception:
        return False
    return True


OFFERS = {"flash_attention": _flash_attention}
