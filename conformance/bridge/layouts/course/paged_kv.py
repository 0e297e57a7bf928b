"""`paged_kv_cache`: a pool that grows as pages are taken, caches of one request and one layer, and their tables.

The course's pool has no bound, and its arrays are as large as the pages ever taken. Stories need to know which pages are
free of how many, so the bound is kept here; what a full pool does is not asked.
"""

from __future__ import annotations

from typing import Any

from inferspec.conformance.bridge.layouts import Offer
from inferspec.conformance.bridge.layouts.packages import Package, written

ASKED: dict[str, Any] = {
    "dtypes": ("float32", "bfloat16"),
    "bounded": (False,),
    "empty_chunks": (False,),
    "pool_pages": 64,
}
CACHE = ("__init__", "update_and_fetch", "gather_dense", "release")


def _pool(package: Package) -> Offer:
    own = package.find("TinyKvPagedPool", home="paged_kv_cache", needs=("__init__", "allocate_page", "free_page"))

    class PagePool:
        def __init__(self, num_pages: int, page_size: int, num_kv_heads: int, head_dim: int, dtype: Any) -> None:
            self.own, self.num_pages = own(page_size), num_pages
            self.shape, self.dtype = (num_kv_heads, page_size, head_dim), dtype

        def allocate(self) -> Any:
            if self.num_free <= 0:
                raise MemoryError(f"all {self.num_pages} pages are in use")
            return self.own.allocate_page()

        def free(self, page: Any) -> None:
            self.own.free_page(page)

        @property
        def num_free(self) -> int:
            return int(self.num_pages - (self.own.num_pages - self.own.num_free_pages))

        @property
        def key_pages(self) -> Any:
            return self._pages(self.own.key_pages)

        @property
        def value_pages(self) -> Any:
            return self._pages(self.own.value_pages)

        def _pages(self, stored: Any) -> Any:
            import mlx.core as mx

            pages = mx.zeros((self.num_pages, *self.shape), self.dtype)
            if isinstance(stored, list):
                # The first edition with pages keeps each by itself, once something is written to it.
                for number, page in enumerate(stored[: self.num_pages]):
                    if page is not None:
                        pages[number] = page[0]
            elif stored is not None:
                taken = min(len(stored), self.num_pages)
                pages[:taken] = stored[:taken]
            return pages

    return Offer(PagePool, ASKED)


def _cache(package: Package) -> Offer:
    own = package.find("TinyKvPagedCache", home="paged_kv_cache", needs=CACHE)

    class PagedKVCache:
        def __init__(self, pool: Any) -> None:
            self.pool, self.own = pool, own(pool.own)

        def append(self, key: Any, value: Any) -> None:
            if self.own.update_and_fetch(key, value) is None:
                raise NotImplementedError("update_and_fetch returns None")

        def gather(self) -> Any:
            if not self.own.page_ids:
                # The course's caches are never read before they hold a token.
                import mlx.core as mx

                heads, _, dim = self.pool.shape
                return (mx.zeros((1, heads, 0, dim), self.pool.dtype),) * 2
            return self.own.gather_dense()

        def release(self) -> None:
            self.own.release()

        @property
        def page_ids(self) -> Any:
            return self.own.page_ids

        @property
        def page_lens(self) -> Any:
            return self.own.page_lens

        @property
        def offset(self) -> int:
            return int(self.own.offset)

    if written(own, "rewind"):
        PagedKVCache.rewind = lambda self, n: self.own.rewind(n)  # type: ignore[attr-defined]
    return Offer(PagedKVCache, ASKED)


def _block_table(package: Package) -> Offer:
    package.find("TinyKvPagedCache", home="paged_kv_cache", needs=(*CACHE, "block_table", "context_lens"))

    def block_table(caches: Any) -> tuple[Any, Any]:
        import mlx.core as mx

        longest = max(len(cache.page_ids) for cache in caches)
        rows = [cache.own.block_table(longest) for cache in caches]
        return mx.concatenate(rows, axis=0), mx.concatenate([cache.own.context_lens() for cache in caches], axis=0)

    return Offer(block_table, ASKED)


OFFERS = {"PagePool": _pool, "PagedKVCache": _cache, "block_table": _block_table}
