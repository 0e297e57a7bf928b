"""`positional_encoding.RoPE`: slices, and from week 2 day 6 on lists of them, of heads that turn as a whole."""

from __future__ import annotations

import contextlib
from typing import Any

from inferspec.conformance.bridge.layouts import Offer
from inferspec.conformance.bridge.layouts.course.linear import MODEL
from inferspec.conformance.bridge.layouts.packages import Package, takes


def _rope(package: Package) -> Offer:
    own = package.find("RoPE", home="positional_encoding", needs=("__init__", "__call__"))
    asked: dict[str, Any] = {"dtypes": MODEL, "partial": (False,), "empty": (False,)}
    offsets = ("none", "slice", "slices") if takes_lists(own) else ("none", "slice")
    length = takes(own, "max_seq_len", "seq_len", "max_positions", "max_position_embeddings")
    if not length:
        return Offer(own, {**asked, "offsets": offsets})

    class RoPE:
        def __init__(self, dims: int, max_positions: int, base: float = 10000, traditional: bool = False) -> None:
            options = {length: max_positions, "base": base, "traditional": traditional}
            self.own = own(dims, **{name: x for name, x in options.items() if takes(own, name)})

        def __call__(self, x: Any, offset: Any = None) -> Any:
            return self.own(x, offset)

    return Offer(RoPE, {**asked, "offsets": offsets})


def takes_lists(own: Any) -> bool:
    """Whether lists of slices are there yet, for batches of two or of one."""
    import mlx.core as mx

    for offsets in ([slice(0, 2), slice(1, 3)], [slice(1, 3)]):
        with contextlib.suppress(Exception):
            return own(4, 8)(mx.zeros((len(offsets), 2, 1, 4)), offsets) is not None
    return False


OFFERS = {"RoPE": _rope}
