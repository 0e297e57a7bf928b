"""What goes wrong in paged attention, and the honest ways to compute it.

Most mistakes are about where a token lies (`place`), how many there are (`length`), or what is read beside them; those of
the attention itself are flash attention's, with pages for tiles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec import paged_attention as spec
from inferspec.spec.contract import Answer, Arguments, Change, Fault, Operation, Variant, changed
from inferspec.spec.faults import tiles
from inferspec.spec.faults.attention import (
    NATIVE_STEPS,
    base_two,
    computed,
    divided,
    empty_rows,
    finite,
    hidden_in_maximum,
    logits_summed_in_dtype,
    online,
    partial,
    query_scaled_first,
    rereads,
    reshapes,
    split_and_merged,
    squeezes,
    starts_at,
    total_summed_in_dtype,
    values_summed_in_dtype,
    weights_by,
)
from inferspec.spec.faults.flash_attention import (
    features_from,
    group_shifted_down,
    groups_of_eight,
    lazily_rescaled,
    rounded_weights,
    splits_by_stride,
    tiles_reversed,
    two_pass,
    unnormalised,
    walk_in_dtype,
)
from inferspec.spec.faults.tiles import walking
from inferspec.spec.flash_attention import FlashAttention
from inferspec.spec.mistakes import (
    drifts,
    first_row_for_all,
    honest,
    ignores_strides,
    leaves_unwritten,
    misread,
    mutates,
    only_where,
    promotes,
    remembers,
)
from inferspec.spec.numerics import Precision, f64
from inferspec.spec.paged_attention import PagedAttention

VLLM = "https://github.com/vllm-project/vllm/"
FLASHINFER = "https://github.com/flashinfer-ai/flashinfer/"
TINY_LLM = "https://github.com/skyzh/tiny-llm/"
MLX = "https://github.com/ml-explore/mlx/"
ENGINEER = "tired engineer"

CORE = PagedAttention()

Place = tuple[np.ndarray, np.ndarray]


def attending(change: Change) -> Change:
    """Paged attention whose inner attention is changed."""
    return {"core": changed(FlashAttention, "core", change)()}


# Where a token lies


def places(rule: Callable[[Arguments, int, np.ndarray], Place]) -> Change:
    """Keys and values are looked for at `rule(a, row, positions)`, wherever in the pool that leads."""
    return {"place": lambda self, a, row, positions: _inside(a, *rule(a, row, positions))}


def value_places(rule: Callable[[Arguments, int, np.ndarray], Place]) -> Change:
    """The same for values alone."""
    return {"value_place": lambda self, a, row, positions: _inside(a, *rule(a, row, positions))}


def _inside(a: Arguments, pages: np.ndarray, slots: np.ndarray) -> Place:
    """Wherever a pointer leads there is something: wrapped around, it is in the pool."""
    return np.asarray(pages).astype(np.int64) % a.key_pages.shape[0], np.asarray(slots) % a.page_size


def _misread_lengths(self: PagedAttention, a: Arguments) -> Any:
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


def shifted_page(a: Arguments, row: int, p: np.ndarray) -> Place:
    """The page size is taken for a power of two: division and modulo are a shift and a mask."""
    bits = a.page_size.bit_length() - 1
    return entries(a, row, p >> bits), p & ((1 << bits) - 1)


def page_of_tile(tile: int) -> Callable[[Arguments, int, np.ndarray], Place]:
    """The table is looked up once for each tile of tokens; a page that ends within it is read on from its start."""
    return lambda a, row, p: (entries(a, row, p // tile * tile // a.page_size), p % a.page_size)


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


# How many there are


def lengths(rule: Callable[[Arguments, int, int], int]) -> Change:
    """A row is taken to have `rule(a, row, length)` tokens; what lies past the table is its last page."""

    def length(self: PagedAttention, a: Arguments, row: int) -> int:
        return max(rule(a, row, int(a.context_lens[row])), 0)

    def place(self: PagedAttention, a: Arguments, row: int, positions: np.ndarray) -> Place:
        return _inside(a, entries(a, row, positions // a.page_size), positions % a.page_size)

    return {"length": length, "place": place}


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
    mixed, total = np.zeros_like(q), np.zeros_like(q[..., :1])
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


def checks(*names: str) -> Change:
    """Of all guards only these are there."""
    every = ("guard_shapes", "guard_heads", "guard_mask", "guard_lengths", "guard_pages")
    return {name: (lambda self, a: None) for name in every if name not in names}


def fitted_page_size(a: Arguments) -> dict[str, Any]:
    return {"page_size": a.key_pages.shape[2]}


def any_mask_is_causal(a: Arguments) -> dict[str, Any]:
    return {"mask": "causal" if a.mask is not None else None}


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


FAULTS = (
    Fault(
        "paged-not-normalised",
        "the values are not divided by the running sum at the end",
        spec.PAGED_01,
        attending({"weights": unnormalised}),
        ENGINEER,
    ),
    Fault(
        "paged-values-from-key-pages",
        "values are read from the pages of keys",
        spec.PAGED_01,
        rereads(value_pages="key_pages"),
        ENGINEER,
    ),
    Fault(
        "paged-modulo-for-division",
        "the page is p % page_size and the slot p // page_size",
        spec.PAGED_02,
        places(by_modulo),
        ENGINEER,
    ),
    Fault("paged-slots-backwards", "slots are counted from the end", spec.PAGED_02, places(slots_backwards), ENGINEER),
    Fault(
        "paged-table-ignored",
        "the pages of a row are taken to lie one after the other",
        spec.PAGED_02,
        places(table_ignored),
        ENGINEER,
    ),
    Fault(
        "paged-table-transposed",
        "the table is read column by column",
        spec.PAGED_02,
        places(table_transposed),
        ENGINEER,
    ),
    Fault(
        "paged-table-row-stride",
        "rows of the table are taken to be as wide as the longest context needs",
        spec.PAGED_02,
        places(row_stride_of_used),
        ENGINEER,
    ),
    Fault(
        "paged-stale-page",
        "the first token of a page is read from the page before",
        spec.PAGED_02,
        places(page_before_at_start),
        ENGINEER,
    ),
    Fault(
        "paged-stale-page-of-values",
        "the first value of a page is read from the page before, the key is not",
        spec.PAGED_02,
        value_places(page_before_at_start),
        FLASHINFER + "commit/103fcf862",
    ),
    Fault(
        "paged-length-of-first-row",
        "the context of row 0 is taken for every row's",
        spec.PAGED_03,
        lengths(lambda a, row, length: int(a.context_lens[0])),
        ENGINEER,
    ),
    Fault(
        "paged-length-of-longest-row",
        "the longest context is taken for every row's",
        spec.PAGED_03,
        lengths(lambda a, row, length: int(a.context_lens.max())),
        VLLM + "pull/47305",
    ),
    Fault(
        "paged-last-token-missed",
        "the newest token is not read",
        spec.PAGED_03,
        lengths(lambda a, row, length: length - 1),
        ENGINEER,
    ),
    Fault(
        "paged-one-token-more",
        "one slot past the context is read",
        spec.PAGED_03,
        lengths(lambda a, row, length: length + 1),
        ENGINEER,
    ),
    Fault(
        "paged-tail-capacity-read",
        "the last page is read to its end",
        spec.PAGED_03,
        lengths(lambda a, row, length: capacity(a, length)),
        ENGINEER,
    ),
    Fault(
        "paged-whole-pages-only",
        "the last page is not read unless it is full",
        spec.PAGED_04,
        lengths(lambda a, row, length: length // a.page_size * a.page_size or length),
        ENGINEER,
    ),
    Fault(
        "paged-page-after-full-one",
        "a context that ends with a page reads a slot of the next",
        spec.PAGED_04,
        lengths(lambda a, row, length: length + (length % a.page_size == 0 and length > 0)),
        ENGINEER,
    ),
    Fault(
        "paged-full-last-page-dropped",
        "the last page is dropped where the context ends with it",
        spec.PAGED_04,
        lengths(lambda a, row, length: length - a.page_size * (length % a.page_size == 0 and length > a.page_size)),
        ENGINEER,
    ),
    Fault(
        "paged-page-size-by-shift",
        "the page size is taken for a power of two",
        spec.PAGED_04,
        places(shifted_page),
        "vllm-metal 0f6f76b",
    ),
    Fault(
        "paged-page-of-tile-of-32",
        "the table is looked up once for 32 tokens",
        spec.PAGED_04,
        places(page_of_tile(32)),
        ENGINEER,
    ),
    Fault(
        "paged-value-page-of-tile-of-64",
        "the table is looked up once for 64 values",
        spec.PAGED_04,
        value_places(page_of_tile(64)),
        FLASHINFER + "commit/103fcf862",
    ),
    Fault(
        "paged-slots-to-128",
        "of a page only 128 slots are told apart",
        spec.PAGED_04,
        places(slots_to_128),
        FLASHINFER + "issues/4347",
    ),
    Fault(
        "paged-contexts-of-one-partition",
        "tokens past the first partition of 512 are never read",
        spec.PAGED_04,
        lengths(lambda a, row, length: min(length, 512)),
        ENGINEER,
    ),
    Fault(
        "paged-one-partition-of-large-heads",
        "with heads of 128 features and more, tokens past the first partition of 512 are never read",
        spec.PAGED_04,
        lengths(lambda a, row, length: min(length, 512) if a.query.shape[3] >= 128 else length),
        "PROPERTIES X2",
    ),
    Fault("paged-heads-tiled", "query head h reads head h % H", spec.PAGED_05, {"key_heads": heads_tiled}, ENGINEER),
    Fault(
        "paged-value-heads-tiled",
        "query head h reads value head h % H and the right key head",
        spec.PAGED_05,
        {"value_heads": heads_tiled},
        ENGINEER,
    ),
    Fault(
        "paged-group-shifted-down",
        "a group has as many query heads as the power of two below its ratio",
        spec.PAGED_05,
        {"key_heads": group_shifted_down},
        ENGINEER,
    ),
    Fault(
        "paged-groups-of-eight",
        "a tile of eight query heads shares one key head, whatever the ratio",
        spec.PAGED_05,
        {"key_heads": groups_of_eight},
        ENGINEER,
    ),
    Fault(
        "paged-causal-top-left",
        "the causal mask is aligned with the start of the context",
        spec.PAGED_06,
        causal(lambda a, row, i, p, length: p <= i),
        TINY_LLM + "commit/0c1ae4b",
    ),
    Fault(
        "paged-second-block-one-future",
        "queries past the first block of 64 see one token after their own",
        spec.PAGED_06,
        causal(lambda a, row, i, p, length: p <= i + length - i.size + (i >= 64)),
        ENGINEER,
    ),
    Fault(
        "paged-eight-rows",
        "rows past the 8th are not written",
        spec.PAGED_13,
        leaves_unwritten(lambda out: out[:8]),
        ENGINEER,
    ),
    Fault(
        "paged-fifth-block-one-future",
        "queries past the first 256 see one token after their own",
        spec.PAGED_06,
        causal(lambda a, row, i, p, length: p <= i + length - i.size + (i >= 256)),
        ENGINEER,
    ),
    Fault(
        "paged-64-rows",
        "rows past the 64th are not written",
        spec.PAGED_13,
        leaves_unwritten(lambda out: out[:64]),
        ENGINEER,
    ),
    Fault(
        "paged-32-heads",
        "heads past the 32nd are not written",
        spec.PAGED_13,
        leaves_unwritten(lambda out: out[:, :32]),
        ENGINEER,
    ),
    Fault(
        "paged-groups-to-8",
        "query heads past the 8th of a group read the next key head",
        spec.PAGED_05,
        {"key_heads": groups_to_eight},
        ENGINEER,
    ),
    Fault(
        "paged-contexts-of-4096",
        "tokens past the first 4096 are never read",
        spec.PAGED_04,
        lengths(lambda a, row, length: min(length, 4096)),
        ENGINEER,
    ),
    Fault(
        "paged-full-table-refused",
        "a context that fills its table is refused",
        spec.PAGED_04,
        {"guard_lengths": full_tables_refused},
        ENGINEER,
    ),
    Fault(
        "paged-spare-page-needed",
        "a pool of which every page is in use is refused: padding has no page",
        spec.PAGED_02,
        {"guard_pages": spare_page_needed},
        ENGINEER,
    ),
    Fault(
        "paged-causal-one-future",
        "each query sees one token after its own",
        spec.PAGED_06,
        causal(lambda a, row, i, p, length: p <= i + length - i.size + 1),
        ENGINEER,
    ),
    Fault(
        "paged-causal-ignored",
        "every query sees the whole context",
        spec.PAGED_06,
        causal(lambda a, row, i, p, length: p >= 0),
        "https://github.com/ml-explore/mlx-lm/commit/a9e1e82c",
    ),
    Fault(
        "paged-causal-by-capacity",
        "the causal mask is aligned with the end of the last page",
        spec.PAGED_06,
        causal(lambda a, row, i, p, length: p <= i + capacity(a, length) - i.size),
        "https://github.com/ml-explore/mlx-lm/commit/eb98ff72",
    ),
    Fault(
        "paged-causal-by-longest",
        "the causal mask is aligned with the end of the batch's longest context",
        spec.PAGED_06,
        causal(lambda a, row, i, p, length: p <= i + int(a.context_lens.max()) - i.size),
        ENGINEER,
    ),
    Fault(
        "paged-none-is-causal",
        "without a mask queries see what a causal mask shows",
        spec.PAGED_07,
        reshapes(lambda a: {"mask": "causal"}),
        ENGINEER,
    ),
    Fault(
        "paged-scale-ignored",
        "a scale that is given is ignored",
        spec.PAGED_08,
        {"scale": lambda self, a: a.query.shape[-1] ** -0.5},
        ENGINEER,
    ),
    Fault(
        "paged-scale-zero-is-default",
        "scale 0 is taken for none (`scale or default`)",
        spec.PAGED_08,
        {"scale": lambda self, a: float(a.scale or a.query.shape[-1] ** -0.5)},
        "FACTS: real code written from the seeds",
    ),
    Fault(
        "paged-scale-twice",
        "the scale is applied to the query and to the logits",
        spec.PAGED_08,
        {"scale": lambda self, a: CORE.scale(a) ** 2},
        ENGINEER,
    ),
    Fault(
        "paged-tail-keys-read",
        "keys past the context are read, and hidden by adding -inf to what they make",
        spec.PAGED_09,
        reads_whole_pages(values=np.nan_to_num),
        VLLM + "pull/47305",
    ),
    Fault(
        "paged-tail-values-read",
        "values past the context are read and multiplied by 0",
        spec.PAGED_09,
        reads_whole_pages(keys=np.zeros_like),
        VLLM + "pull/936",
    ),
    Fault(
        "paged-tail-in-maximum",
        "keys past the context count in the running maximum",
        spec.PAGED_09,
        reads_whole_pages(np.nan_to_num, np.nan_to_num, attended=hidden_in_maximum),
        ENGINEER,
    ),
    Fault(
        "paged-gathered-by-product",
        "tokens are gathered by a product with a one-hot matrix",
        spec.PAGED_09,
        {"read": gathered_by_product},
        ENGINEER,
    ),
    Fault(
        "paged-every-entry-followed",
        "entries of the table that no token needs are followed",
        spec.PAGED_10,
        {"respond": follows_all_entries},
        ENGINEER,
    ),
    Fault(
        "paged-next-entry-followed",
        "the entry after the last page in use is followed",
        spec.PAGED_10,
        {"respond": follows_next_entry},
        ENGINEER,
    ),
    Fault(
        "paged-shared-page-of-one-row",
        "of rows that share a page one alone sees it",
        spec.PAGED_11,
        {"bias": last_owner_alone},
        ENGINEER,
    ),
    Fault(
        "paged-order-of-ids",
        "pages are walked in the order of their ids, so that sums are rounded otherwise where pages lie otherwise",
        spec.PAGED_12,
        by_order(order_of_ids, one_after_the_other),
        ENGINEER,
    ),
    Fault(
        "paged-table-row-after", "each row reads the table of the next one", spec.PAGED_13, places(row_after), ENGINEER
    ),
    Fault(
        "paged-table-of-first-row",
        "every row reads the table of row 0",
        spec.PAGED_13,
        first_row_for_all("block_table"),
        ENGINEER,
    ),
    Fault(
        "paged-no-context-nan",
        "a row without context is 0 / 0",
        spec.PAGED_14,
        no_context(np.nan),
        MLX + "commit/711a64580",
    ),
    Fault(
        "paged-no-context-crash",
        "a row without context raises an exception",
        spec.PAGED_14,
        no_context(None),
        "https://github.com/Dao-AILab/flash-attention/commit/03cd0651",
    ),
    Fault(
        "paged-stops-at-empty-row",
        "rows after one without context are never written",
        spec.PAGED_14,
        {"finish": stops_at_empty_row},
        "https://github.com/Dao-AILab/flash-attention/commit/a3a257c7",
    ),
    Fault(
        "paged-short-rows-wrap",
        "queries before the first token see all of the context",
        spec.PAGED_14,
        causal(short_rows_wrap),
        ENGINEER,
    ),
    Fault(
        "paged-short-rows-mean",
        "queries that see no token are the mean of the values",
        spec.PAGED_14,
        attending(
            weights_by(lambda weights, logits: np.where(empty_rows(logits), 1 / max(logits.shape[-1], 1), weights))
        ),
        MLX + "commit/e1840853c",
    ),
    Fault(
        "paged-values-summed-in-dtype",
        "the running values are in the input's dtype",
        spec.PAGED_15,
        attending({"combine": values_summed_in_dtype}),
        ENGINEER,
    ),
    Fault(
        "paged-values-rounded-between-pages",
        "the running values are stored in the input's dtype between tiles",
        spec.PAGED_15,
        attending({"attended": walk_in_dtype}),
        ENGINEER,
    ),
    Fault(
        "paged-total-summed-in-dtype",
        "the running sum of the weights is in the input's dtype",
        spec.PAGED_15,
        attending({"weights": total_summed_in_dtype}),
        ENGINEER,
    ),
    Fault(
        "paged-logits-summed-in-dtype",
        "the logits are accumulated in the input's dtype",
        spec.PAGED_15,
        attending({"logits": logits_summed_in_dtype}),
        ENGINEER,
    ),
    Fault(
        "paged-maximum-from-sentinel",
        "the running maximum starts at -5e4: rows below it are zeros",
        spec.PAGED_16,
        attending(starts_at(-5e4)),
        FLASHINFER + "commit/d7f2c6464",
    ),
    Fault(
        "paged-maximum-from-zero",
        "the running maximum starts at 0: rows far below it are zeros",
        spec.PAGED_16,
        attending(starts_at(0.0)),
        ENGINEER,
    ),
    Fault(
        "paged-never-rescaled",
        "earlier tokens are not rescaled when the maximum grows",
        spec.PAGED_17,
        attending(walking(16, add=tiles.sums_kept)),
        ENGINEER,
    ),
    Fault(
        "paged-values-not-rescaled",
        "the running sum of the weights is rescaled, the running values are not",
        spec.PAGED_17,
        attending(walking(32, add=tiles.values_kept)),
        ENGINEER,
    ),
    Fault(
        "paged-total-not-rescaled",
        "the running values are rescaled, the running sum of the weights is not",
        spec.PAGED_17,
        attending(walking(32, add=tiles.total_kept)),
        ENGINEER,
    ),
    Fault(
        "paged-partitions-averaged",
        "partitions of 64 tokens are normalised by themselves and averaged",
        spec.PAGED_17,
        attending(walking(64, add=tiles.each_tile_normalised)),
        ENGINEER,
    ),
    Fault("paged-page-ids-in-int16", "page ids are kept in int16", spec.PAGED_18, places(ids_as(np.int16)), ENGINEER),
    Fault(
        "paged-page-ids-in-uint16",
        "page ids are kept in uint16",
        spec.PAGED_18,
        places(ids_as(np.uint16)),
        "https://github.com/ROCm/ATOM/issues/702",
    ),
    Fault(
        "paged-offset-in-16-bits",
        "page · stride is kept in 16 bits",
        spec.PAGED_18,
        places(offset_wraps(16)),
        FLASHINFER + "commit/d885b71f3",
    ),
    Fault(
        "paged-offset-overflows",
        "page · stride overflows (here from 2^20 on, in int32 from 2^31)",
        spec.PAGED_18,
        places(offset_wraps(20)),
        FLASHINFER + "commit/d885b71f3",
    ),
    Fault(
        "paged-query-dims-dropped",
        "features past a multiple of 32 do not enter the logits",
        spec.PAGED_19,
        features_from(lambda dim: dim // 32 * 32, "query"),
        ENGINEER,
    ),
    Fault(
        "paged-value-dims-past-128",
        "features of the result past 128 are zeros",
        spec.PAGED_19,
        features_from(lambda dim: min(dim, 128), "value_pages"),
        ENGINEER,
    ),
    Fault(
        "paged-latter-features-of-page-before",
        "features of a value past 64 come from the page before",
        spec.PAGED_19,
        {"gathered": latter_features_of_page_before},
        FLASHINFER + "commit/103fcf862",
    ),
    Fault(
        "paged-causal-whole-pages-before",
        "the tokens before a chunk are counted in whole pages",
        spec.PAGED_20,
        causal(lambda a, row, i, p, length: p <= i + (length - i.size) // a.page_size * a.page_size),
        ENGINEER,
    ),
    Fault(
        "paged-decode-misses-itself",
        "a single query does not see its own token",
        spec.PAGED_20,
        causal(lambda a, row, i, p, length: p <= i + length - i.size - (i.size == 1)),
        ENGINEER,
    ),
    *(
        Fault(
            f"paged-{name.replace('_', '-')}-strides",
            f"{name} is read as if it were contiguous",
            spec.PAGED_21,
            ignores_strides(name),
            MLX + "commit/005e7efa6",
        )
        for name in ("query", "key_pages", "value_pages")
    ),
    Fault(
        "paged-block-table-strides",
        "block_table is read as if it were contiguous",
        spec.PAGED_21,
        {
            "respond": lambda self, a: ignores_strides("block_table")["respond"](self, a),
            "place": lambda self, a, row, p: _inside(a, entries(a, row, p // a.page_size), p % a.page_size),
        },
        ENGINEER,
    ),
    Fault(
        "paged-context-lens-strides",
        "context_lens is read as if it were contiguous",
        spec.PAGED_21,
        {"respond": _misread_lengths},
        ENGINEER,
    ),
    *(
        Fault(
            f"paged-{name.replace('_', '-')}-strides-in-float32",
            f"the path of float32 reads {name} as if it were contiguous",
            spec.PAGED_21,
            only_where(lambda a: a.query.dtype == np.float32, ignores_strides(name)),
            ENGINEER,
        )
        for name in ("query", "key_pages", "value_pages")
    ),
    Fault(
        "paged-float32-result",
        "the result is float32 whatever the query's dtype",
        spec.PAGED_22,
        promotes(),
        "FACTS: the course's half-precision attention",
    ),
    Fault("paged-squeezed", "dims of size 1 are gone from the result", spec.PAGED_22, {"finish": squeezes}, ENGINEER),
    Fault("paged-query-scaled-in-place", "the caller's query is changed", spec.PAGED_23, mutates("query"), ENGINEER),
    Fault("paged-key-pages-changed", "the pool of keys is changed", spec.PAGED_23, mutates("key_pages"), ENGINEER),
    Fault(
        "paged-table-cleaned-in-place",
        "entries of the caller's table are set to 0",
        spec.PAGED_23,
        mutates("block_table"),
        ENGINEER,
    ),
    Fault(
        "paged-table-remembered",
        "the table of the first call with these shapes is used for all",
        spec.PAGED_24,
        remembers("block_table"),
        FLASHINFER + "commit/82784bb11",
    ),
    Fault(
        "paged-lengths-remembered",
        "the context_lens of the first call with these shapes are used for all",
        spec.PAGED_24,
        remembers("context_lens"),
        FLASHINFER + "commit/82784bb11",
    ),
    Fault("paged-drifting", "every repeated call is larger", spec.PAGED_24, drifts(), ENGINEER),
    *(
        Fault(
            f"paged-{name.replace('_', '-')}-as-int32",
            f"an int64 {name} is read as int32",
            spec.PAGED_25,
            read_as_int32(name),
            ENGINEER,
        )
        for name in ("block_table", "context_lens")
    ),
    Fault(
        "paged-unknown-mask-is-causal",
        "any mask name means causal",
        spec.PAGED_26,
        {"guard_mask": lambda self, a: None, **reshapes(any_mask_is_causal)},
        ENGINEER,
    ),
    Fault(
        "paged-page-size-of-pool",
        "a page_size that is not the pool's is ignored",
        spec.PAGED_26,
        {**checks("guard_heads", "guard_mask"), **reshapes(fitted_page_size)},
        ENGINEER,
    ),
    Fault(
        "paged-rows-fitted",
        "of a table, lengths and queries of other batches the smallest is taken",
        spec.PAGED_26,
        {**checks("guard_heads", "guard_mask"), **reshapes(rows_fitted)},
        ENGINEER,
    ),
    Fault(
        "paged-dims-cropped",
        "of differing head dims or pools the smaller is taken",
        spec.PAGED_26,
        {**checks("guard_heads", "guard_mask"), **reshapes(smaller_dims)},
        ENGINEER,
    ),
    Fault(
        "paged-heads-floor-divided",
        "head counts that do not divide are rounded down",
        spec.PAGED_26,
        {"guard_heads": lambda self, a: None, "key_heads": heads_floor_divided, "value_heads": heads_floor_divided},
        ENGINEER,
    ),
    Fault(
        "paged-lengths-clipped",
        "a context that is negative or too long is clipped to the table",
        spec.PAGED_27,
        {"guard_lengths": lambda self, a: None, "guard_pages": lambda self, a: None, **reshapes(lengths_clipped)},
        TINY_LLM + "commit/00dbf5c",
    ),
    Fault(
        "paged-pages-wrapped",
        "a page outside of the pool wraps around",
        spec.PAGED_27,
        {"guard_pages": lambda self, a: None, **reshapes(pages_wrapped)},
        TINY_LLM + "commit/00dbf5c",
    ),
)


# Honest ways


def page_by_page(q: Any, k: Any, v: Any, scale: Any, bias: Any, page_size: int) -> np.ndarray:
    """Online softmax with a page for a tile."""
    weighted, total = np.zeros_like(q), np.zeros_like(q[..., :1])
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


PAGED = "paged_attention"


def _dense(formula: Any) -> Change:
    return attending(computed(formula))


VARIANTS = (
    Variant("paged-gathered-dense", "gathered, then attention in float32", PAGED, _dense(query_scaled_first)),
    Variant(
        "paged-whole-pages-zeroed",
        "whole pages gathered, the tail zeroed and hidden",
        PAGED,
        {"gathered": gathered_with_tail_zeroed, "bias": hides_past_context, **_dense(query_scaled_first)},
    ),
    Variant("paged-page-by-page", "online softmax with a page for a tile", PAGED, {"attended": walked_by_pages}),
    *(
        Variant(f"paged-online-{tile}", f"online softmax in tiles of {tile} tokens", PAGED, attending(online(tile)))
        for tile in (1, 8, 32)
    ),
    Variant("paged-tiles-reversed", "from the newest token to the oldest, in base 2", PAGED, _dense(tiles_reversed)),
    Variant(
        "paged-pages-reversed",
        "from the last page to the first, token by token",
        PAGED,
        by_order(order_of_pages_reversed, one_after_the_other),
    ),
    Variant(
        "paged-slot-by-slot",
        "slot 0 of every page, then slot 1, token by token",
        PAGED,
        by_order(order_of_slots, one_after_the_other),
    ),
    Variant("paged-splits-merged", "three partitions, merged by their log-sum-exp", PAGED, _dense(split_and_merged)),
    Variant("paged-splits-by-stride", "eight groups take every eighth token", PAGED, _dense(splits_by_stride)),
    Variant("paged-two-pass", "one pass for the sum, another for the values", PAGED, _dense(two_pass)),
    Variant("paged-base-two", "exp2, with log2(e) folded into the scale", PAGED, _dense(base_two)),
    Variant("paged-lazily-rescaled", "rescaled only when the maximum rises by 8", PAGED, _dense(lazily_rescaled)),
    Variant(
        "paged-weights-rounded",
        "float32, with the weights rounded to the dtype before they meet the values",
        PAGED,
        attending({"attended": rounded_weights}),
        Precision.NATIVE,
    ),
    Variant("paged-native-steps", "every intermediate in the dtype", PAGED, attending(NATIVE_STEPS), Precision.NATIVE),
)
