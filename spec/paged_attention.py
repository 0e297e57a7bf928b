"""Paged attention: attention over keys and values that lie scattered in the pages of a pool.

Shapes: query B×H_q×L×D, key_pages and value_pages P×H×page_size×D, block_table B×M, context_lens B, result B×H_q×L×D.
Token p of row b lies in page block_table[b, p // page_size], slot p % page_size, and the row has context_lens[b] of
them, the L newest of which are the queries' own: the causal mask is aligned with the end of the context. Nothing else
of pool and table is read: slots past the end, pages of no row and entries of the table past the last page in use hold
anything at all.

Sources: Kwon et al. 2023 (PagedAttention), section 4; the tiny-llm course, week 3 day 2.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from inferspec.spec.contract import Answer, Arguments, Aspect, Contract, Level, Operation, Requirement, Signature
from inferspec.spec.flash_attention import FlashAttention
from inferspec.spec.numerics import Precision, f64

COURSE = "tiny-llm course, week 3 day 2"
DECISIONS = "PROPERTIES, decisions"


class PagedAttention(Operation):
    """Flash attention of each row's queries over its own tokens; a query that sees none is zeros."""

    signature = Signature.parse(
        "paged_attention(query, key_pages, value_pages, block_table, context_lens, page_size, scale=None, mask='causal')"
    )
    narrows: ClassVar = {"scale": ("scales", ("default",)), "mask": ("masks", ("causal",))}
    required_narrows: ClassVar = {"scale": ("scales", ("given",))}
    core = FlashAttention()

    def guard(self, a: Arguments) -> None:
        self.guard_shapes(a)
        self.guard_heads(a)
        self.guard_mask(a)
        self.guard_lengths(a)
        self.guard_pages(a)

    def guard_shapes(self, a: Arguments) -> None:
        if a.query.ndim != 4 or a.key_pages.ndim != 4 or a.block_table.ndim != 2 or a.context_lens.ndim != 1:
            raise ValueError(
                f"query is {a.query.shape}, key_pages {a.key_pages.shape}, block_table {a.block_table.shape}, "
                f"context_lens {a.context_lens.shape}: not 4, 4, 2 and 1 dims"
            )
        if a.value_pages.ndim != 4 or a.value_pages.shape[:3] != a.key_pages.shape[:3]:
            raise ValueError(f"key_pages is {a.key_pages.shape}, value_pages is {a.value_pages.shape}")
        if a.key_pages.shape[2] != a.page_size:
            raise ValueError(f"key_pages has {a.key_pages.shape[2]} slots a page, page_size is {a.page_size}")
        if a.key_pages.shape[3] != a.query.shape[3]:
            raise ValueError(f"query has head dim {a.query.shape[3]}, key_pages has {a.key_pages.shape[3]}")
        for name in ("block_table", "context_lens"):
            if getattr(a, name).shape[0] != a.query.shape[0]:
                raise ValueError(f"{name} has {getattr(a, name).shape[0]} rows, query has {a.query.shape[0]}")

    def guard_heads(self, a: Arguments) -> None:
        query_heads, heads = a.query.shape[1], a.key_pages.shape[1]
        if heads == 0 or query_heads % heads:
            raise ValueError(f"query has {query_heads} heads, not a multiple of the {heads} of key_pages")

    def guard_mask(self, a: Arguments) -> None:
        if not (a.mask is None or (isinstance(a.mask, str) and a.mask == "causal")):
            raise ValueError(f"mask is {a.mask!r}; it takes None or 'causal'")

    def guard_lengths(self, a: Arguments) -> None:
        capacity = a.block_table.shape[1] * a.page_size
        for row, length in enumerate(a.context_lens.tolist()):
            if not 0 <= length <= capacity:
                raise ValueError(f"context_lens[{row}] is {length}; the table has room for {capacity}")

    def guard_pages(self, a: Arguments) -> None:
        for row, length in enumerate(a.context_lens.tolist()):
            used = f64(a.block_table[row, : -(-length // a.page_size)])
            if ((used < 0) | (used >= a.key_pages.shape[0])).any():
                raise ValueError(f"block_table[{row}] names a page outside of the pool's {a.key_pages.shape[0]}")

    # The steps: where a token lies, what is there, and the attention over it.

    def length(self, a: Arguments, row: int) -> int:
        """How many tokens a row attends to."""
        return int(a.context_lens[row])

    def place(self, a: Arguments, row: int, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Page and slot of each of a row's tokens."""
        return a.block_table[row, positions // a.page_size].astype(np.int64), positions % a.page_size

    def value_place(self, a: Arguments, row: int, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same, for values."""
        return self.place(a, row, positions)

    def read(self, pool: np.ndarray, place: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """H×S×D: what a pool holds at the places of S tokens."""
        pages, slots = place
        return f64(pool[pages, :, slots]).swapaxes(0, 1)

    def gathered(self, a: Arguments, row: int) -> tuple[np.ndarray, np.ndarray]:
        """A row's keys and values in the order of its tokens, each H×S×D."""
        positions = np.arange(self.length(a, row))
        keys = self.read(a.key_pages, self.place(a, row, positions))
        return keys, self.read(a.value_pages, self.value_place(a, row, positions))

    def key_heads(self, x: np.ndarray, query_heads: int) -> np.ndarray:
        """Give every query head its key head."""
        return self.core.key_heads(x, query_heads)

    def value_heads(self, x: np.ndarray, query_heads: int) -> np.ndarray:
        """Give every query head its value head."""
        return self.core.key_heads(x, query_heads)

    def scale(self, a: Arguments) -> float:
        return self.core.scale(a)

    def bias(self, a: Arguments, row: int, keys: int) -> np.ndarray:
        """L×S, -inf where a query does not see a token."""
        return np.zeros(()) if a.mask is None else self.core.named_mask(a.mask, a.query.shape[2], keys)

    def attended(self, a: Arguments, row: int, precision: Precision) -> Answer:
        """One row's answer, H_q×L×D."""
        query_heads, q = a.query.shape[1], f64(a.query[row])
        keys, values = self.gathered(a, row)
        k, v = self.key_heads(keys, query_heads), self.value_heads(values, query_heads)
        bias = self.bias(a, row, k.shape[-2])
        return self.core.attend(q, k, v, self.scale(a), bias, a.query.dtype.name, precision)

    def evaluate(self, a: Arguments, precision: Precision) -> Answer:
        """Budget: that of flash attention, row by row. Gathering adds none."""
        rows = [self.attended(a, row, precision) for row in range(a.query.shape[0])]
        if not rows:
            none = np.zeros((*a.query.shape[:3], a.value_pages.shape[3]))
            return Answer(none, none)
        return Answer(np.stack([row.value for row in rows]), np.stack([row.budget for row in rows]))

    def result_dtype(self, a: Arguments) -> str:
        return a.query.dtype.name


def _paged(
    id: str, text: str, level: Level = Level.MUST, aspect: Aspect = Aspect.VALUE, source: str = ""
) -> Requirement:
    return Requirement(id, text, "paged_attention", level, aspect, source or COURSE)


PAGED_01 = _paged(
    "PAGED-01",
    "the result is attention over the tokens of each row's pages, as if they lay side by side",
    source="Kwon et al. 2023; PROPERTIES PA1",
)
PAGED_02 = _paged(
    "PAGED-02",
    "token p of row b lies in page block_table[b, p // page_size], slot p % page_size, wherever in the pool that is",
    source="Kwon et al. 2023; PROPERTIES PA1",
)
PAGED_03 = _paged(
    "PAGED-03", "each row attends to its own context_lens[b] tokens, no more and no fewer", source="PROPERTIES PA1, PA5"
)
PAGED_04 = _paged(
    "PAGED-04",
    "every page size is right, with contexts that end one below, at and one above the end of a page",
    source="flashinfer#4347, 103fcf862; PROPERTIES PA1, X2",
)
PAGED_05 = _paged(
    "PAGED-05",
    "query head h reads key and value head h // (H_q / H), for ratios that are no power of two as well",
    source="PROPERTIES SD1",
)
PAGED_06 = _paged(
    "PAGED-06",
    "the queries are the last L tokens of the context: under the causal mask query i sees the tokens p <= i + "
    "context_lens[b] - L",
    source=DECISIONS,
)
PAGED_07 = _paged("PAGED-07", "without a mask every query sees the whole context", source="PROPERTIES PA1")
PAGED_08 = _paged("PAGED-08", "scale is D^-0.5 by default, and any number given is used as it is, 0 and negatives too")
PAGED_09 = _paged(
    "PAGED-09",
    "what lies in slots past the end of a context and in pages of no row never reaches the result, NaN and inf neither",
    source="vllm#936, vllm#47305; PROPERTIES PA2",
)
PAGED_10 = _paged(
    "PAGED-10",
    "entries of the table past the last page in use are never followed, whatever they hold: -1, or a page that is not "
    "there",
    source="PROPERTIES PA2, PA6",
)
PAGED_11 = _paged("PAGED-11", "rows may share pages: a common prefix is read by all of them", source="Kwon et al. 2023")
PAGED_12 = _paged(
    "PAGED-12",
    "where pages lie is not seen: with pages renamed, or in a larger pool, the result is the same bit for bit",
    source="PROPERTIES PG6, PA1",
)
PAGED_13 = _paged(
    "PAGED-13",
    "rows are independent: a batch of contexts of any lengths is the stack of its rows",
    source="PROPERTIES X3",
)
PAGED_14 = _paged(
    "PAGED-14",
    "a query that sees no token is zeros: in a row without context, and where L is larger than the context",
    source=DECISIONS,
)
PAGED_15 = _paged(
    "PAGED-15",
    "logits, softmax and all running sums are in float32 (class `native` may round logits and weights to the input's "
    "dtype)",
    source=DECISIONS,
)
PAGED_16 = _paged(
    "PAGED-16",
    "logits of any size that is finite in the arithmetic of the class are safe: adding a constant to a row changes "
    "nothing",
    source="flashinfer d7f2c6464; PROPERTIES SD7",
)
PAGED_17 = _paged(
    "PAGED-17",
    "the largest logit of a row may come in any page: what was summed before it is rescaled",
    source="Milakov and Gimelshein 2018; PROPERTIES FA3",
)
PAGED_18 = _paged(
    "PAGED-18",
    "page ids and the offsets that they make are of any size: past 15 and 16 bits they behave as small ones",
    source="ROCm/ATOM#702; flashinfer d885b71f3; PROPERTIES PA4, X8",
)
PAGED_19 = _paged(
    "PAGED-19",
    "every feature of a head enters its logits and its result, at every page size",
    source="flashinfer 103fcf862",
)
PAGED_20 = _paged(
    "PAGED-20",
    "chunks are seamless: queries given in several calls, each with the context so far, get the result of one call",
    source="PROPERTIES CP1, CM2",
)
PAGED_21 = _paged(
    "PAGED-21",
    "an argument given as a strided view gives the same result as its copy",
    source="mlx 62f297b51; PROPERTIES X1",
)
PAGED_22 = _paged("PAGED-22", "the result has the query's shape and dtype", aspect=Aspect.DTYPE, source="PROPERTIES X4")
PAGED_23 = _paged("PAGED-23", "no argument is changed, and no page of the pool", source="PROPERTIES X6")
PAGED_24 = _paged(
    "PAGED-24",
    "a call depends on its arguments alone: repeated, it is the same bit for bit, whatever ran in between",
    source="flashinfer 82784bb11; PROPERTIES X7, X11",
)
PAGED_25 = _paged(
    "PAGED-25", "block_table and context_lens may be int32, uint32 or int64, each its own", source="PROPERTIES X4, X8"
)
PAGED_26 = _paged(
    "PAGED-26",
    "an unknown mask, another page_size than the pool's, head counts that do not divide, and batches, head dims or "
    "pools that differ are refused; values of another head dim are refused or right",
    aspect=Aspect.GUARD,
    source="tiny-llm 00dbf5c; PROPERTIES X9",
)
PAGED_27 = _paged(
    "PAGED-27",
    "a context that is negative or larger than its table, and a page in use that is not in the pool, are refused",
    Level.SHOULD,
    Aspect.GUARD,
    source="tiny-llm 00dbf5c; PROPERTIES PA6",
)
PAGED_28 = _paged(
    "PAGED-28", "no rows or no queries give an empty result", Level.SHOULD, source="PROPERTIES SD5; PROPERTIES PA5"
)
PAGED_29 = _paged(
    "PAGED-29", "contexts of tens of thousands of tokens are read to their end", source="mlx#3360; PROPERTIES X8"
)
PAGED_30 = _paged(
    "PAGED-30",
    "a NaN of a context is not hidden: one in a query makes its row NaN, one in a key every row that sees it, one in a value "
    "its feature of them",
    Level.SHOULD,
    source="IEEE 754, section 6.2; PROPERTIES X3",
)


CONTRACT = Contract(
    component="paged_attention",
    title="paged attention",
    version=1,
    operations=(PagedAttention,),
    envelope={
        "dtypes": ("float32", "float16", "bfloat16"),
        "head_dims": (32, 40, 64, 72, 80, 96, 112, 128, 192, 256),
        "ratios": (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 71),
        "page_sizes": (1, 2, 3, 8, 16, 24, 32, 64, 100, 128, 256),
        "table_dtypes": ("int32", "uint32", "int64"),
        "masks": ("causal", "none"),
        "scales": ("default", "given"),
        "scale_signs": ("positive", "any"),
        "queries": ("one", "several"),
        "more_queries": (True, False),
        "context": 2**16 + 2**6,
        "pages": 2**16 + 2**6,
    },
    requirements=tuple(value for value in list(globals().values()) if isinstance(value, Requirement)),
)
