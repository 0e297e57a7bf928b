"""`kv_cache.BatchingKvCache`: requests are added with the cache that their prompts are in, and updates are told the length
of the mask (the first editions, which make none, offer nothing)."""

from __future__ import annotations

from typing import Any

from inferspec.conformance.bridge.layouts import Offer
from inferspec.conformance.bridge.layouts.course.kv_cache import full_cache, update
from inferspec.conformance.bridge.layouts.packages import NotOffered, Package, takes, written

ASKED: dict[str, Any] = {
    "head_dims": ("same",),
    "empty_caches": (False,),
    "offsets": (False,),
    "idle_updates": (False,),
}
METHODS = ("__init__", "add_request", "remove_request", "update_and_fetch")


def _batching(package: Package) -> Offer:
    own = package.find("BatchingKvCache", home="kv_cache", needs=METHODS)
    cache = full_cache(package)
    length = takes(own.update_and_fetch, "mask_length", "q_L")
    if not length:
        raise NotOffered("BatchingKvCache.update_and_fetch has no mask_length, and makes no masks")

    class BatchingKVCache:
        def __init__(self, max_requests: int, max_len: int) -> None:
            self.own = own(max_requests, max_len)

        def make_cache(self) -> _Prompt:
            return _Prompt(cache)

        def add(self, prompt: _Prompt, slot: int) -> None:
            self.own.add_request(prompt.prefilled(), slot)

        def remove(self, slot: int) -> None:
            self.own.remove_request(slot)

        def update_and_fetch(self, key: Any, value: Any, mask_length: int) -> tuple[Any, Any, Any]:
            returned = self.own.update_and_fetch(key, value, **{length: mask_length})
            if returned is None:
                raise NotImplementedError("update_and_fetch returns None")
            keys, values, *_, mask = returned
            # One edition has B×M×S.
            return keys, values, mask[:, None] if mask.ndim == 3 else mask

    return Offer(BatchingKVCache, ASKED)


class _Prompt:
    """What a request brings: a cache of the course's that its prompt was fed to."""

    def __init__(self, own: Any) -> None:
        self.own = own
        self.chunks: list[tuple[Any, Any]] = []
        self.dropped = 0

    def update_and_fetch(self, key: Any, value: Any) -> None:
        self.chunks.append((key, value))

    def rewind(self, n: int) -> None:
        """What is written and dropped again goes through the cache only where it can drop tokens."""
        if written(self.own, "rewind"):
            self.dropped = n
        else:
            self.chunks.pop()

    def prefilled(self) -> Any:
        cache, offset = self.own(), 0
        for key, value in self.chunks:
            update(cache, key, value, offset)
            offset += key.shape[2]
        if self.dropped:
            cache.rewind(self.dropped)
        return cache


OFFERS = {"BatchingKVCache": _batching}
