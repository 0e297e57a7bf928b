"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/paged_attention*.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.changes.attention import reshapes
from inferspec.spec.changes.attention_variants import computed, divided, finite, nothing, partial
from inferspec.spec.contract import Answer, Arguments, Change, Operation, changed
from inferspec.spec.flash_attention import FlashAttention
from inferspec.spec.mistakes import (
    honest,
    misread,
)
from inferspec.spec.numerics import Precision, f64
from inferspec.spec.paged_attention import PagedAttention

CORE = PagedAttention()

Place = tuple[np.ndarray, np.ndarray]


def attending(change: Change) -> Change:
    """Paged attention whose inner attention is changed."""
    return {"core": changed(FlashAttention, "core", change)()}


def of_common_heads(queries: range) -> Callable[[Arguments], bool]:
    """Whether there are so many queries of the heads that most models have, over some hundreds of tokens."""

    def holds(a: Arguments) -> bool:
        far = a.context_lens.max(initial=0) >= 256
        return bool(far and a.query.shape[2] in queries and a.query.shape[3] in (64, 128))

    return holds


# Where a token lies


def places(rule: Callable[[Arguments, int, np.ndarray], Place]) -> Change:
    """Keys and values are looked for at `rule(a, row, positions)`, wherever in the pool that leads."""
    return {"place": lambda self, a, row, positions: inside(a, *rule(a, row, positions))}


def value_places(rule: Callable[[Arguments, int, np.ndarray], Place]) -> Change:
    """The same for values alone."""
    return {"value_place": lambda self, a, row, positions: inside(a, *rule(a, row, positions))}


def inside(a: Arguments, pages: np.ndarray, slots: np.ndarray) -> Place:
    """Wherever a pointer leads there is something: wrapped around, it is in the pool."""
    return np.asarray(pages).astype(np.int64) % a.key_pages.shape[0], np.asarray(slots) % a.page_size


def misread_lengths(self: PagedAttention, a: Arguments) -> Any:
    """Lengths that ignore strides, cut to what the table has room for."""
    most = a.block_table.shape[1] * a.page_size
    lens = np.clip(misread(a.context_lens).astype(np.int64), 0, most)
    return honest(self, Arguments(**{**vars(a), "context_lens": lens.astype(a.context_lens.dtype)}))


def entries(a: Arguments, row: int, numbers: np.ndarray) -> np.ndarray:
    """Entries of the table by their flat number from the start of a row."""
    flat = a.block_table.ravel()
    return flat[(row * a.block_table.shape[1] + numbers) % flat.size]


def by_modulo(a: Arguments, row: int, p: np.ndarray) -> Place:
    return a.block_table[row, p % a.page_size % a.block_table.shape[1]], p // a.page_size


def slots_backwards(a: Arguments, row: int, p: np.ndarray) -> Place:
    return entries(a, row, p // a.page_size), a.page_size - 1 - p % a.page_size


def table_ignored(a: Arguments, row: int, p: np.ndarray) -> Place:
    """The pages are taken to lie one after the other from the row's first one."""
    return entries(a, row, np.zeros_like(p)) + p // a.page_size, p % a.page_size


def table_transposed(a: Arguments, row: int, p: np.ndarray) -> Place:
    flat = a.block_table.T.ravel()
    return flat[(row * a.block_table.shape[1] + p // a.page_size) % flat.size], p % a.page_size


def row_stride_of_used(a: Arguments, row: int, p: np.ndarray) -> Place:
    """Rows of the table are taken to be as wide as the longest context needs."""
    used = -(-int(a.context_lens.max()) // a.page_size)
    flat = a.block_table.ravel()
    return flat[(row * used + p // a.page_size) % flat.size], p % a.page_size


def row_after(a: Arguments, row: int, p: np.ndarray) -> Place:
    return entries(a, (row + 1) % a.block_table.shape[0], p // a.page_size), p % a.page_size


def first_page_where_one_is_enough(a: Arguments, row: int, p: np.ndarray) -> Place:
    """Of more than eight rows, none of which has more than a page, all have that of the first."""
    enough = len(a.context_lens) > 8 and a.context_lens.max() <= a.page_size
    return entries(a, 0 if enough else row, p // a.page_size), p % a.page_size


def smaller_page_size_taken(self: PagedAttention, a: Arguments) -> None:
    slots = max(a.page_size, a.key_pages.shape[2])
    PagedAttention.guard_shapes(self, Arguments(**{**vars(a), "page_size": slots}))


def more_value_heads_taken(self: PagedAttention, a: Arguments) -> None:
    heads = a.value_pages[:, : a.key_pages.shape[1]]
    PagedAttention.guard_shapes(self, Arguments(**{**vars(a), "value_pages": heads}))


def larger_pages_of_values_taken(self: PagedAttention, a: Arguments) -> None:
    slots = a.value_pages[:, :, : a.key_pages.shape[2]]
    PagedAttention.guard_shapes(self, Arguments(**{**vars(a), "value_pages": slots}))


def shifted_page(a: Arguments, row: int, p: np.ndarray) -> Place:
    """The page size is taken for a power of two: division and modulo are a shift and a mask."""
    bits = a.page_size.bit_length() - 1
    return entries(a, row, p >> bits), p & ((1 << bits) - 1)


def page_of_tile(tile: int) -> Callable[[Arguments, int, np.ndarray], Place]:
    """The table is looked up once for each tile of tokens; a page that ends within it is read on from its start."""
    return lambda a, row, p: (entries(a, row, p // tile * tile // a.page_size), p % a.page_size)


def tiles_past_a_large_page(tile: int) -> Callable[[Arguments, int, np.ndarray], Place]:
    """With pages of 256 slots and heads of 128 features, a tile that starts in one page goes on in the page that lies after
    it in the pool."""

    def rule(a: Arguments, row: int, p: np.ndarray) -> Place:
        if a.page_size != 256 or a.query.shape[3] != 128:
            return entries(a, row, p // a.page_size), p % a.page_size
        first = p // tile * tile
        slots = first % a.page_size + p - first
        return entries(a, row, first // a.page_size) + slots // a.page_size, slots % a.page_size

    return rule


def page_before_at_start(a: Arguments, row: int, p: np.ndarray) -> Place:
    """The first slot of each page but the first is read from the page before: the lookup comes one token late."""
    late = (p % a.page_size == 0) & (p > 0)
    return entries(a, row, p // a.page_size - late), p % a.page_size


def ids_as(kind: type[np.signedinteger[Any]] | type[np.unsignedinteger[Any]]) -> Callable[..., Place]:
    return lambda a, row, p: (entries(a, row, p // a.page_size).astype(kind), p % a.page_size)


def offset_wraps(bits: int) -> Callable[[Arguments, int, np.ndarray], Place]:
    """page · stride is computed in so many bits. (int32 needs 8 GB of pages to show it; a smaller integer does not.)"""

    def rule(a: Arguments, row: int, p: np.ndarray) -> Place:
        stride = int(np.prod(a.key_pages.shape[1:]))
        offset = entries(a, row, p // a.page_size).astype(np.int64) * stride % (1 << bits)
        return offset // stride, p % a.page_size

    return rule


def slots_to_128(a: Arguments, row: int, p: np.ndarray) -> Place:
    return entries(a, row, p // a.page_size), p % a.page_size % 128


def offsets_in_16_bits(self: PagedAttention, pool: np.ndarray, place: Place) -> np.ndarray:
    """Where a feature of a head lies within its page is kept in 16 bits."""
    (pages, slots), (heads, page_size, dim) = place, pool.shape[1:]
    starts = (np.arange(heads)[:, None] * page_size + slots) * dim
    offsets = (starts[..., None] + np.arange(dim)) % 2**16
    return f64(pool.reshape(len(pool), -1)[pages[:, None], offsets])


# How many there are


def lengths(rule: Callable[[Arguments, int, int], int]) -> Change:
    """A row is taken to have `rule(a, row, length)` tokens; what lies past the table is its last page."""

    def length(self: PagedAttention, a: Arguments, row: int) -> int:
        return max(rule(a, row, int(a.context_lens[row])), 0)

    def place(self: PagedAttention, a: Arguments, row: int, positions: np.ndarray) -> Place:
        return inside(a, entries(a, row, positions // a.page_size), positions % a.page_size)

    return {"length": length, "place": place}


def lengths_as(kind: type[np.signedinteger[Any]] | type[np.unsignedinteger[Any]]) -> Change:
    return lengths(lambda a, row, length: int(np.array(length).astype(kind)))


def capacity(a: Arguments, length: int) -> int:
    """Slots of the pages that hold so many tokens."""
    return -(-length // a.page_size) * a.page_size


# What is read beside them


def reads_whole_pages(
    keys: Callable[[np.ndarray], np.ndarray] = lambda x: x,
    values: Callable[[np.ndarray], np.ndarray] = lambda x: x,
    **core: Any,
) -> Change:
    """The last page is read to its end, and what is past the context is hidden in the logits."""

    def gathered(self: PagedAttention, a: Arguments, row: int) -> tuple[np.ndarray, np.ndarray]:
        positions = np.arange(capacity(a, self.length(a, row)))
        k = self.read(a.key_pages, self.place(a, row, positions))
        return keys(k), values(self.read(a.value_pages, self.value_place(a, row, positions)))

    return {"gathered": gathered, "bias": hides_past_context, **(attending(core) if core else {})}


def hides_past_context(self: PagedAttention, a: Arguments, row: int, keys: int) -> np.ndarray:
    length = self.length(a, row)
    bias = np.broadcast_to(CORE.bias(a, row, length), (a.query.shape[2], length))
    return np.pad(bias, [(0, 0), (0, keys - length)], constant_values=-np.inf)


def gathered_by_product(self: PagedAttention, pool: np.ndarray, place: Place) -> np.ndarray:
    """Rows of the pool are picked by a product with a one-hot matrix: NaN in any page is in every sum."""
    pages, slots = place
    picked = f64(pool[pages, :, slots]).swapaxes(0, 1)
    with np.errstate(invalid="ignore"):
        return picked + (0.0 * f64(pool)).sum(axis=(0, 2))[:, None, :]


def last_owner_alone(self: PagedAttention, a: Arguments, row: int, keys: int) -> np.ndarray:
    """Pages know their row (the table inverted by a scatter): of several rows the last one sees a shared page."""
    later = [
        a.block_table[other, : -(-int(a.context_lens[other]) // a.page_size)]
        for other in range(row + 1, len(a.context_lens))
    ]
    taken = np.isin(a.block_table[row, np.arange(keys) // a.page_size], np.concatenate(later)) if later else False
    return np.where(taken, -np.inf, CORE.bias(a, row, keys))


def chunk_after_context(a: Arguments) -> bool:
    """Whether queries of a block follow a context of hundreds of tokens."""
    return a.query.shape[-2] >= 16 and bool((a.context_lens >= a.query.shape[-2] + 180).any())


def follows_all_entries(self: Operation, a: Arguments) -> Any:
    """Every entry of the table is checked, or followed, whether a token needs it or not."""
    table = f64(a.block_table)
    if ((table < 0) | (table >= a.key_pages.shape[0])).any():
        raise IndexError("block_table names a page outside of the pool")
    return Operation.respond(self, a)


def follows_next_entry(self: Operation, a: Arguments) -> Any:
    """The page after the current one is fetched ahead, also after the last."""
    for row, length in enumerate(a.context_lens.tolist()):
        ahead = f64(a.block_table[row, : -(-length // a.page_size) + 1])
        if ((ahead < 0) | (ahead >= a.key_pages.shape[0])).any():
            raise IndexError("block_table names a page outside of the pool")
    return Operation.respond(self, a)


# In which order


def by_order(order: Callable[[Arguments, int, np.ndarray], np.ndarray], formula: Any) -> Change:
    """In float32, the tokens taken in the order `order(a, row, positions)`."""
    core: Any = changed(FlashAttention, "core", computed(formula))()

    def attended(self: PagedAttention, a: Arguments, row: int, precision: Precision) -> Answer:
        heads, q = a.query.shape[1], f64(a.query[row])
        keys, values = self.gathered(a, row)
        k, v = self.key_heads(keys, heads), self.value_heads(values, heads)
        walk = order(a, row, np.arange(k.shape[-2]))
        bias = np.broadcast_to(self.bias(a, row, k.shape[-2]), (a.query.shape[2], k.shape[-2]))[:, walk]
        return core.attend(q, k[:, walk], v[:, walk], self.scale(a), bias, a.query.dtype.name, precision)

    return {"attended": attended}


def one_after_the_other(q: Any, k: Any, v: Any, scale: Any, bias: Any) -> np.ndarray:
    """Every token added by itself."""
    logits = q @ k.swapaxes(-1, -2) * scale + bias
    weights = np.exp(logits - finite(logits.max(axis=-1, keepdims=True, initial=-np.inf)))
    mixed, total = nothing(q, v), np.zeros_like(q[..., :1])
    for token in range(k.shape[-2]):
        mixed = mixed + weights[..., token, None] * v[..., None, token, :]
        total = total + weights[..., token, None]
    return divided(mixed, total)


def order_of_ids(a: Arguments, row: int, p: np.ndarray) -> np.ndarray:
    return np.argsort(a.block_table[row, p // a.page_size].astype(np.int64), kind="stable")


def order_of_pages_reversed(a: Arguments, row: int, p: np.ndarray) -> np.ndarray:
    return np.argsort(-(p // a.page_size), kind="stable")


def order_of_slots(a: Arguments, row: int, p: np.ndarray) -> np.ndarray:
    """Slot 0 of every page, then slot 1 …"""
    return np.argsort(p % a.page_size, kind="stable")


# What a query sees


def causal(rule: Callable[[Arguments, int, np.ndarray, np.ndarray, int], np.ndarray]) -> Change:
    """The causal rule is `rule(a, row, i, p, length)` of the context."""

    def bias(self: PagedAttention, a: Arguments, row: int, keys: int) -> np.ndarray:
        if a.mask is None:
            return np.zeros(())
        i, p = np.arange(a.query.shape[2])[:, None], np.arange(keys)
        seen = np.broadcast_to(rule(a, row, i, p, keys), (a.query.shape[2], keys))
        return np.where(seen, 0.0, -np.inf)

    return {"bias": bias}


def no_context(answer: float | None) -> Change:
    """A row without context is not zeros, or nothing can be launched for it."""

    def attended(self: PagedAttention, a: Arguments, row: int, precision: Precision) -> Answer:
        right = PagedAttention.attended(self, a, row, precision)
        if self.length(a, row):
            return right
        if answer is None:
            raise RuntimeError(f"row {row} has no pages")
        return Answer(np.full_like(right.value, answer), right.budget)

    return {"attended": attended}


def stops_at_empty_row(self: Operation, value: np.ndarray, a: Arguments) -> np.ndarray:
    """The loop over rows returns at the first one without context; the others are never written."""
    gone = np.logical_or.accumulate(a.context_lens == 0)
    return Operation.finish(self, np.where(gone[:, None, None, None], 0.0, value), a)


def empty_at_both_ends(self: Operation, value: np.ndarray, a: Arguments) -> np.ndarray:
    """A batch whose first and last rows have no context is thought to have none at all."""
    empty = a.context_lens.size > 0 and a.context_lens[0] == 0 == a.context_lens[-1]
    return Operation.finish(self, np.zeros_like(value) if empty else value, a)


def short_rows_wrap(a: Arguments, row: int, i: np.ndarray, p: np.ndarray, length: int) -> np.ndarray:
    """The last visible token is an unsigned number: before the first token it is very large."""
    last = i + length - i.size
    return (p <= last) | (last < 0)


# Integers


def read_as_int32(name: str) -> Change:
    """An int64 array is read as if it were int32: every other number is its upper half."""

    def change(a: Arguments) -> dict[str, Any]:
        x = np.ascontiguousarray(getattr(a, name))
        if x.dtype != np.int64:
            return {}
        return {name: x.view(np.int32).ravel()[: x.size].reshape(x.shape).astype(np.int64)}

    def respond(self: Operation, a: Arguments) -> Any:
        return Operation.respond(self, _bounded(Arguments(**{**vars(a), **change(a)})))

    return {"respond": respond}


def _bounded(a: Arguments) -> Arguments:
    table = np.clip(a.block_table.astype(np.int64), 0, a.key_pages.shape[0] - 1)
    return Arguments(**{**vars(a), "block_table": table})


def lengths_clipped(a: Arguments) -> dict[str, Any]:
    return {"context_lens": np.clip(a.context_lens.astype(np.int64), 0, a.block_table.shape[1] * a.page_size)}


def pages_wrapped(a: Arguments) -> dict[str, Any]:
    return {"block_table": a.block_table.astype(np.int64) % a.key_pages.shape[0]}


def rows_fitted(a: Arguments) -> dict[str, Any]:
    batch = min(a.query.shape[0], a.block_table.shape[0], a.context_lens.shape[0])
    return {name: getattr(a, name)[:batch] for name in ("query", "block_table", "context_lens")}


def of_joint_pages(name: str) -> Callable[[Arguments], bool]:
    """Whether the pages of a pool are whole and do not follow each other, in half precision."""

    def holds(a: Arguments) -> bool:
        pool = getattr(a, name)
        whole = pool[:1].flags.c_contiguous and len(pool) > 1 and pool.dtype.itemsize == 2
        return bool(whole and pool.strides[0] != pool[0].nbytes)

    return holds


def of_split_contexts(a: Arguments) -> bool:
    """Whether some row has so many tokens as kernels share out."""
    return bool(np.max(a.context_lens, initial=0) >= 512)


def rows_by(change: Callable[[Arguments], np.ndarray], holds: Callable[[Arguments], bool]) -> Change:
    """On one path rows have the table and the length of others: `change` tells of which."""

    def respond(self: Operation, a: Arguments) -> Any:
        if not holds(a):
            return honest(self, a)
        rows = change(a)
        return honest(
            self, Arguments(**{**vars(a), "block_table": a.block_table[rows], "context_lens": a.context_lens[rows]})
        )

    return {"respond": respond}


def after_an_empty_row(a: Arguments) -> np.ndarray:
    """Partial results are kept without those of rows that have no tokens, and looked for as if they were there."""
    empty = np.asarray(a.context_lens) == 0
    return np.arange(len(empty)) - np.cumsum(empty) + empty


def of_empty_rows(a: Arguments) -> bool:
    return of_split_contexts(a) and bool((np.asarray(a.context_lens) == 0).any())


def of_drafts_over_splits(a: Arguments) -> bool:
    return of_split_contexts(a) and 2 <= a.query.shape[2] <= 8


def of_odd_groups(a: Arguments) -> bool:
    """Whether a single token's heads, in groups of three or five, go over contexts that are shared out."""
    return of_split_contexts(a) and a.query.shape[2] == 1 and a.query.shape[1] // a.key_pages.shape[1] in (3, 5)


def heads_exchanged(a: Arguments) -> dict[str, Any]:
    return {"key_pages": a.key_pages[:, ::-1], "value_pages": a.value_pages[:, ::-1]}


def of_rare_dims(a: Arguments) -> bool:
    return of_split_contexts(a) and a.query.shape[-1] in (72, 112, 192)


def of_many_tokens(a: Arguments) -> bool:
    """Whether tokens of many rows, of heads of 128 dims in groups of four and more, are in half precision."""
    batch, query_heads, length, dim = a.query.shape
    grouped = query_heads >= 4 * a.key_pages.shape[1] and dim == 128
    return bool(batch > 8 and grouped and length == 1 and a.query.dtype.itemsize == 2)


def groups_of_eight(self: PagedAttention, x: np.ndarray, query_heads: int) -> np.ndarray:
    """Over more tokens than a tile has, heads past the eighth of a group read the next head, the last one's the first."""
    ratio = query_heads // x.shape[0]
    head = np.arange(query_heads)
    return x[(head // ratio + ((head % ratio >= 8) & (x.shape[1] > 64))) % x.shape[0]]


def groups_to_eight(self: PagedAttention, x: np.ndarray, query_heads: int) -> np.ndarray:
    """Groups are taken to have eight query heads at most."""
    group = min(query_heads // x.shape[0], 8)
    return x[np.minimum(np.arange(query_heads) // group, x.shape[0] - 1)]


def full_tables_refused(self: PagedAttention, a: Arguments) -> None:
    PagedAttention.guard_lengths(self, a)
    if (a.context_lens.astype(np.int64) >= a.block_table.shape[1] * a.page_size).any():
        raise ValueError("no room for the next token")


def spare_page_needed(self: PagedAttention, a: Arguments) -> None:
    PagedAttention.guard_pages(self, a)
    counts = -(-a.context_lens.astype(np.int64) // a.page_size)
    used = {int(page) for pages, count in zip(a.block_table, counts, strict=True) for page in pages[:count]}
    if len(used) == len(a.key_pages):
        raise ValueError("no page is left")


def pages_twice_refused(self: PagedAttention, a: Arguments) -> None:
    PagedAttention.guard_pages(self, a)
    for row, length in enumerate(a.context_lens.tolist()):
        used = a.block_table[row, : -(-length // a.page_size)].tolist()
        if len(set(used)) < len(used):
            raise ValueError(f"block_table[{row}] names a page twice")


def without_nan(self: PagedAttention, pool: np.ndarray, place: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    return np.nan_to_num(PagedAttention.read(self, pool, place))


def fits(change: Callable[[Arguments], dict[str, Any]]) -> Change:
    """Some arguments are replaced by what `change` makes of them all, before anything is checked; the rest is checked as ever."""

    def guard(self: PagedAttention, a: Arguments) -> None:
        PagedAttention.guard(self, Arguments(**{**vars(a), **change(a)}))

    return {"guard": guard, **reshapes(change)}


def fitted_page_size(a: Arguments) -> dict[str, Any]:
    return {"page_size": a.key_pages.shape[2]}


def any_mask_is_causal(a: Arguments) -> dict[str, Any]:
    return {"mask": "causal" if a.mask is not None else None}


def values_cropped(a: Arguments) -> dict[str, Any]:
    """Of values that have another head dim than keys the first features are taken, and zeros where there are not so many."""
    dim, pool = a.key_pages.shape[-1], a.value_pages
    wide = np.concatenate([pool, np.zeros((*pool.shape[:-1], dim), pool.dtype)], axis=-1)
    return {"value_pages": wide[..., :dim]}


def values_of_the_width_of_keys(a: Arguments) -> dict[str, Any]:
    """Values of another head dim than keys are read with the strides of keys, past the end of the pool from its beginning."""
    pool, (pages, heads, slots, width) = a.value_pages, a.value_pages.shape
    dim = a.key_pages.shape[-1]
    if width == dim:
        return {}
    rows = np.arange(pages * heads * slots)[:, None] * dim + np.arange(width)
    return {"value_pages": pool.reshape(-1)[rows % pool.size].reshape(pool.shape)}


def smaller_dims(a: Arguments) -> dict[str, Any]:
    dim, pages = min(a.query.shape[3], a.key_pages.shape[3]), min(len(a.key_pages), len(a.value_pages))
    return {
        "query": a.query[..., :dim],
        "key_pages": a.key_pages[:pages, ..., :dim],
        "value_pages": a.value_pages[:pages, ..., :dim],
        "block_table": np.minimum(a.block_table.astype(np.int64), pages - 1),
    }


def heads_floor_divided(self: PagedAttention, x: np.ndarray, query_heads: int) -> np.ndarray:
    heads = x.shape[0]
    return x[np.minimum(np.arange(query_heads) // max(query_heads // heads, 1), heads - 1)]


def heads_tiled(self: PagedAttention, x: np.ndarray, query_heads: int) -> np.ndarray:
    return x[np.arange(query_heads) % x.shape[0]]


def latter_features_of_page_before(self: PagedAttention, a: Arguments, row: int) -> tuple[np.ndarray, np.ndarray]:
    """Values come in two passes over the features; past 64 the page pointer is still that of the page before."""
    keys, values = PagedAttention.gathered(self, a, row)
    positions = np.arange(self.length(a, row))
    before = (a.block_table[row, np.maximum(positions // a.page_size - 1, 0)].astype(np.int64), positions % a.page_size)
    stale = self.read(a.value_pages, before)
    return keys, np.where(np.arange(values.shape[-1]) < 64, values, stale)


# Honest ways


def page_by_page(q: Any, k: Any, v: Any, scale: Any, bias: Any, page_size: int) -> np.ndarray:
    """Online softmax with a page for a tile."""
    weighted, total = nothing(q, v), np.zeros_like(q[..., :1])
    top = np.full_like(total, -np.inf)
    for start in range(0, k.shape[-2], page_size):
        part = slice(start, start + page_size)
        more, share, highest = partial(q, k[..., part, :], v[..., part, :], scale, bias[..., part])
        new = np.maximum(top, highest)
        old, fresh = np.exp(top - finite(new)), np.exp(highest - finite(new))
        weighted, total, top = weighted * old + more * fresh, total * old + share * fresh, new
    return divided(weighted, total)


def walked_by_pages(self: PagedAttention, a: Arguments, row: int, precision: Precision) -> Answer:
    def formula(q: Any, k: Any, v: Any, scale: Any, bias: Any) -> np.ndarray:
        return page_by_page(q, k, v, scale, bias, a.page_size)

    return by_order(lambda a, row, p: p, formula)["attended"](self, a, row, precision)


def gathered_with_tail_zeroed(self: PagedAttention, a: Arguments, row: int) -> tuple[np.ndarray, np.ndarray]:
    """Whole pages are gathered, and what is past the context is replaced by zeros before it is used."""
    length = self.length(a, row)
    positions = np.arange(capacity(a, length))
    inside = (positions < length)[:, None]
    k = self.read(a.key_pages, self.place(a, row, positions))
    return np.where(inside, k, 0.0), np.where(inside, self.read(a.value_pages, self.place(a, row, positions)), 0.0)


def dense(formula: Any) -> Change:
    return attending(computed(formula))


def gathers_once(self: PagedAttention, a: Arguments, row: int) -> tuple[np.ndarray, np.ndarray]:
    """What was gathered by a table is kept for all calls with that table, whatever is in its pages by then."""
    memory = vars(type(self)).get("memory")
    if memory is None:
        memory = type(self).memory = {}  # type: ignore[attr-defined]
    known = a.block_table.tobytes(), a.context_lens.tobytes(), row, a.key_pages.shape
    if known not in memory:
        memory[known] = PagedAttention.gathered(self, a, row)
    return memory[known]


def decodes_after_hundreds(a: Arguments) -> bool:
    """Whether rows have a token each, after hundreds of others."""
    return a.query.shape[-2] == 1 and a.block_table.shape[-1] * a.page_size >= 256


def of_chunks(a: Arguments) -> bool:
    """Whether rows have 9 queries and more each."""
    return a.query.shape[-2] >= 9


def heads_of_long_contexts_by_eight() -> Change:
    """Over more than 64 tokens key heads are counted modulo 8."""

    def respond(self: Operation, a: Arguments) -> Any:
        head = np.arange(a.key_pages.shape[1])
        if a.block_table.shape[-1] * a.page_size > 64:
            head = head % 8
        pages = {name: getattr(a, name)[:, head] for name in ("key_pages", "value_pages")}
        return honest(self, Arguments(**{**vars(a), **pages}))

    return {"respond": respond}


def key_heads_modulo(most: int, holds: Callable[[Arguments], bool]) -> Change:
    """In calls of which `holds` is true key heads are counted modulo so many."""

    def respond(self: Operation, a: Arguments) -> Any:
        head = np.arange(a.key_pages.shape[1]) % (most if holds(a) else a.key_pages.shape[1] or 1)
        pages = {name: getattr(a, name)[:, head] for name in ("key_pages", "value_pages")}
        return honest(self, Arguments(**{**vars(a), **pages}))

    return {"respond": respond}


def tables_modulo(most: int, holds: Callable[[Arguments], bool]) -> Change:
    """Of calls of which `holds` is true, rows past so many follow the tables of the first ones."""

    def respond(self: Operation, a: Arguments) -> Any:
        rows = np.arange(len(a.block_table)) % (most if holds(a) else len(a.block_table) or 1)
        return honest(self, Arguments(**{**vars(a), "block_table": a.block_table[rows]}))

    return {"respond": respond}


def of_very_large_heads(a: Arguments) -> bool:
    """Whether heads have more than 128 features."""
    return a.query.shape[-1] > 128


def of_several_past_1024(queries: range) -> Callable[[Arguments], bool]:
    """Whether there are so many queries, after more than 1024 tokens."""
    return lambda a: a.query.shape[2] in queries and bool(a.context_lens.max(initial=0) > 1024)


def of_large_heads_of_hundreds(a: Arguments) -> bool:
    """Whether there are a few queries of heads of 128 features in a table of 256 tokens and more."""
    return a.query.shape[-2] < 9 and a.query.shape[-1] == 128 and a.block_table.shape[-1] * a.page_size >= 256


def tables_of_four_rows(a: Arguments) -> dict[str, Any]:
    """The rows past the fourth have the tables of the first ones, where pages have 64 slots and more."""
    rows = np.arange(len(a.block_table)) % (4 if a.page_size >= 64 else len(a.block_table) or 1)
    return {"block_table": a.block_table[rows]}


def prefix_too_long() -> Change:
    """What is read once for all rows is the common prefix and the page after it, where every row has that in full."""

    def respond(self: Operation, a: Arguments) -> Any:
        table = a.block_table.copy()
        differ = (table != table[:1]).any(axis=0) if len(table) > 1 else np.zeros(0, bool)
        common = int(np.argmax(differ)) if differ.any() else 0
        if common and a.context_lens.min() >= (common + 1) * a.page_size:
            table[:, common] = table[0, common]
        return honest(self, Arguments(**{**vars(a), "block_table": table}))

    return {"respond": respond}
