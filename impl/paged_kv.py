"""Paged key/value storage, in MLX: a pool of pages, the caches that keep their tokens in it, and tables for attention.

Shapes: P pages, H key/value heads, page_size slots a page, D head dim, L new tokens, S cached tokens.

Both arrays of a pool are MLX values: an append makes new ones, in place when nobody else refers to the old. Every append
schedules the write of the one before it (`mx.async_eval`), so that the graph does not grow with their number. A kernel
outside of MLX writes into what `stored` returns, in place; arrays that were given out before see nothing of that.

Sources: the tiny-llm course, week 3 days 1 and 2; Kwon et al. 2023 (PagedAttention), section 4.
"""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx

from inferspec.impl.arguments import integer, whole
from inferspec.impl.kernels.cpu.stored import Stored


class PoolExhausted(RuntimeError):
    """Fewer pages are free than are asked for. Nothing has changed."""


class PagePool:
    """P pages of keys and values, P×H×page_size×D each, and the one allocator of all caches that keep tokens in them."""

    def __init__(self, num_pages: int, page_size: int, num_kv_heads: int, head_dim: int, dtype: mx.Dtype) -> None:
        """ValueError for a size below 1, TypeError for one that is no integer."""
        self.num_pages = whole("num_pages", num_pages, 1)
        self.page_size = whole("page_size", page_size, 1)
        self.num_kv_heads = whole("num_kv_heads", num_kv_heads, 1)
        self.head_dim = whole("head_dim", head_dim, 1)
        self.dtype = dtype
        shape = (self.num_pages, self.num_kv_heads, self.page_size, self.head_dim)
        self._keys, self._values = mx.zeros(shape, dtype), mx.zeros(shape, dtype)
        self._free = list(range(self.num_pages - 1, -1, -1))
        self._used = [False] * self.num_pages
        self._shown = False  # whether an array that was given out may see the pages
        self._stored: Stored | None = None

    @property
    def num_free(self) -> int:
        """How many pages can be allocated."""
        return len(self._free)

    @property
    def key_pages(self) -> mx.array:
        """P×H×page_size×D, as of now; slots that no cache uses hold anything."""
        self._shown = True
        return self._keys[...]

    @property
    def value_pages(self) -> mx.array:
        """P×H×page_size×D, as of now; slots that no cache uses hold anything."""
        self._shown = True
        return self._values[...]

    def allocate(self) -> int:
        """Return the id of a page that is nobody's, 0 … P - 1; PoolExhausted when there is none."""
        if not self._free:
            raise PoolExhausted(f"all {self.num_pages} pages are in use")
        page = self._free.pop()
        self._used[page] = True
        return page

    def free(self, page: int) -> None:
        """Take a page back. ValueError for one that is not in use or that the pool does not have; nothing changes."""
        number = integer("page", page)
        if not 0 <= number < self.num_pages:
            raise ValueError(f"page is {number}; this pool has 0 … {self.num_pages - 1}")
        if not self._used[number]:
            raise ValueError(f"page is {number}, which is not in use")
        self._used[number] = False
        self._free.append(number)

    def write(self, page_ids: Sequence[int], start: int, key: mx.array, value: mx.array) -> None:
        """Store L tokens, 1×H×L×D, in the slots from token `start` on of the pages of one cache."""
        length = key.shape[2]
        if length == 0:
            return
        positions = mx.arange(start, start + length)
        pages = mx.array(list(page_ids))[positions // self.page_size]
        self.scatter(pages, positions % self.page_size, key, value)

    def scatter(self, pages: mx.array, slots: mx.array, key: mx.array, value: mx.array) -> None:
        """Store L tokens, 1×H×L×D, token i in slot slots[i] of page pages[i]."""
        mx.async_eval(self._keys, self._values)
        self._stored = None
        self._keys, self._values = (
            _scattered(pool, pages, slots, x) for pool, x in ((self._keys, key), (self._values, value))
        )

    def stored(self) -> Stored:
        """Return keys and values, P×H×page_size×D, for a kernel that writes into them in place."""
        if self._shown:
            self._keys, self._values = (_copied(pool) for pool in (self._keys, self._values))
            self._shown, self._stored = False, None
        if self._stored is None:
            self._stored = Stored(self._keys, self._values)
        return self._stored

    def read(self, page_ids: Sequence[int], length: int) -> tuple[mx.array, mx.array]:
        """Return the first `length` tokens of the pages of one cache: keys and values, 1×H×length×D."""
        self._shown = True
        ids = mx.array(list(page_ids), mx.int32)
        shape = (1, self.num_kv_heads, len(page_ids) * self.page_size, self.head_dim)
        keys, values = (pool[ids].swapaxes(0, 1).reshape(shape)[:, :, :length] for pool in (self._keys, self._values))
        return keys, values


class PagedKVCache:
    """Keys and values of one request in one layer, in pages of a shared pool: ceil(S / page_size) of them."""

    def __init__(self, pool: PagePool) -> None:
        self.pool = pool
        self._pages: list[int] = []
        self._offset = 0

    @property
    def offset(self) -> int:
        """How many tokens are cached."""
        return self._offset

    @property
    def page_ids(self) -> list[int]:
        """The pages in the order of the tokens: token p lies in page_ids[p // page_size], slot p % page_size."""
        return list(self._pages)

    @property
    def page_lens(self) -> list[int]:
        """How many tokens each page holds: page_size, and what is left in the last one."""
        size = self.pool.page_size
        return [min(size, self._offset - first) for first in range(0, self._offset, size)]

    def append(self, key: mx.array, value: mx.array) -> None:
        """Append L tokens, 0 too; key and value are 1×H×L×D, in the pool's dtype.

        ValueError when they do not fit each other or the pool, TypeError for another dtype or for what is no array,
        PoolExhausted when the pool has too few free pages. A refused call changes nothing.
        """
        self._check(key, value)
        end = self._offset + key.shape[2]
        missing = self._pages_for(end) - len(self._pages)
        if missing > self.pool.num_free:
            raise PoolExhausted(
                f"{key.shape[2]} tokens after {self._offset} take {missing} more pages; {self.pool.num_free} are free"
            )
        self._pages += [self.pool.allocate() for _ in range(missing)]
        self.pool.write(self._pages, self._offset, key, value)
        self._offset = end

    def gather(self) -> tuple[mx.array, mx.array]:
        """Return keys and values of all tokens, 1×H×S×D each, as a dense cache holds them."""
        return self.pool.read(self._pages, self._offset)

    def rewind(self, n: int) -> None:
        """Drop the last n tokens, and give back the pages that are empty then.

        ValueError when n is negative or more than are cached, TypeError when it is no integer: nothing is dropped.
        """
        count = integer("n", n)
        if not 0 <= count <= self._offset:
            raise ValueError(f"n is {count}; it takes 0 … {self._offset}, the number of cached tokens")
        self._offset -= count
        while len(self._pages) > self._pages_for(self._offset):
            self.pool.free(self._pages.pop())

    def release(self) -> None:
        """Drop all tokens and give back all pages; releasing again does nothing."""
        self.rewind(self._offset)

    def _pages_for(self, tokens: int) -> int:
        return -(-tokens // self.pool.page_size)

    def _check(self, key: mx.array, value: mx.array) -> None:
        pool = self.pool
        for name, x in (("key", key), ("value", value)):
            if not isinstance(x, mx.array):
                raise TypeError(f"{name} is a {type(x).__name__}; it takes an MLX array")
            if x.ndim != 4 or (x.shape[0], x.shape[1], x.shape[3]) != (1, pool.num_kv_heads, pool.head_dim):
                raise ValueError(f"{name} is {x.shape}; this pool takes 1×{pool.num_kv_heads}×L×{pool.head_dim}")
            if x.dtype != pool.dtype:
                raise TypeError(f"{name} is {x.dtype}; this pool holds {pool.dtype}")
        if key.shape != value.shape:
            raise ValueError(f"key is {key.shape} and value {value.shape}; they take the same L")


def block_table(caches: Sequence[PagedKVCache]) -> tuple[mx.array, mx.array]:
    """Return what `paged_attention` takes of a batch: page ids B×M, zeros after a row's last one, and context_lens B.

    caches: one for each row, of one pool; those without tokens are rows of length 0. ValueError when they are of
    different pools.
    """
    if any(cache.pool is not caches[0].pool for cache in caches):
        raise ValueError("caches are of different pools; their page ids do not go together")
    pages = [cache.page_ids for cache in caches]
    width = max(map(len, pages), default=0)
    padded = [row + [0] * (width - len(row)) for row in pages]
    table = mx.array(padded, mx.int32).reshape(len(caches), width)
    return table, mx.array([cache.offset for cache in caches], mx.int32)


def _copied(pool: mx.array) -> mx.array:
    """The same numbers in memory of their own."""
    copy = mx.slice_update(mx.zeros(pool.shape, pool.dtype), pool, mx.array([0]), axes=[0])
    mx.eval(copy)
    return copy


def _scattered(pool: mx.array, pages: mx.array, slots: mx.array, new: mx.array) -> mx.array:
    """The pool with token i of `new`, 1×H×L×D, in slot slots[i] of page pages[i]."""
    result = pool[...]
    result[pages, :, slots] = new[0].swapaxes(0, 1)
    return result
