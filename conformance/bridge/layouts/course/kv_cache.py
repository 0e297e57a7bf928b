"""`kv_cache.TinyKvFullCache`: update_and_fetch returns keys and values, in newer editions the length and a mask behind them."""

from __future__ import annotations

import functools
from typing import Any

from inferspec.conformance.bridge.layouts import Offer
from inferspec.conformance.bridge.layouts.packages import Package, takes, written

ASKED: dict[str, Any] = {"head_dims": ("same",), "empty_chunks": (False,)}


def full_cache(package: Package) -> Any:
    """The course's class of caches."""
    return package.find("TinyKvFullCache", home="kv_cache", needs=("update_and_fetch",))


def update(cache: Any, key: Any, value: Any, offset: int) -> tuple[Any, ...]:
    """update_and_fetch of any edition; the oldest is told the offset."""
    more = {"offset": offset} if takes(cache.update_and_fetch, "offset") else {}
    returned = cache.update_and_fetch(key, value, **more)
    if returned is None:
        raise NotImplementedError("update_and_fetch returns None")
    return tuple(returned)


def _kv_cache(package: Package) -> Offer:
    own = full_cache(package)

    class KVCache:
        def __init__(self) -> None:
            self.own, self.seen = own(), 0

        def update_and_fetch(self, key: Any, value: Any) -> tuple[Any, Any]:
            keys, values, *more = update(self.own, key, value, self.seen)
            # Where a cache does not tell its offset, what it returns behind keys and values is its length.
            length = more[0] if more and isinstance(more[0], int) else self.seen + key.shape[2]
            self.seen = getattr(self.own, "offset", length)
            return keys, values

        @property
        def offset(self) -> int:
            return int(getattr(self.own, "offset", self.seen))

    if written(own, "rewind"):
        KVCache.rewind = _rewind  # type: ignore[attr-defined]
    return Offer(KVCache, ASKED, "BLHD" if joins_axis_1(own) else "")


def _rewind(cache: Any, n: int) -> None:
    # The course's caches hold a token whenever one is rewound.
    if n or cache.offset:
        cache.own.rewind(n)


@functools.cache
def joins_axis_1(own: Any) -> bool:
    """Whether tokens are the second axis, as the text has it: in the course's own code they are the third."""
    import mlx.core as mx

    try:
        cache, chunk = own(), mx.zeros((1, 2, 3, 4))
        update(cache, chunk, chunk, 0)
        return tuple(update(cache, chunk, chunk, 3)[0].shape) == (1, 4, 3, 4)
    except Exception:
        return False


OFFERS = {"KVCache": _kv_cache}
