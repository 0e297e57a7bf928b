"""Goldens of paged attention: each row's tokens picked from the pool one by one, then PyTorch's attention."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from inferspec.spec import paged_attention as spec
from inferspec.tools.recipes import Case, Draw


def attention_over_pages(
    query: torch.Tensor,
    key_pages: torch.Tensor,
    value_pages: torch.Tensor,
    block_table: torch.Tensor,
    context_lens: torch.Tensor,
    page_size: int,
    scale: float | None,
    mask: str | None,
) -> torch.Tensor:
    rows = []
    for q, table, tokens in zip(query, block_table.tolist(), context_lens.tolist(), strict=True):
        slots = [(table[token // page_size], token % page_size) for token in range(tokens)]
        keys, values = (
            torch.stack([pool[page, :, slot] for page, slot in slots], 1) for pool in (key_pages, value_pages)
        )
        # The last query is the last token.
        seen = None if mask is None else torch.ones(q.shape[1], tokens, dtype=torch.bool).tril(tokens - q.shape[1])
        rows.append(
            F.scaled_dot_product_attention(q[None], keys[None], values[None], seen, scale=scale, enable_gqa=True)
        )
    return torch.cat(rows)


def _case(
    name: str,
    requirement: Any,
    seed: int,
    dtype: str,
    heads: tuple[int, int],
    length: int,
    contexts: tuple[int, ...],
    page_size: int,
    dim: int,
    *,
    scale: float | None = None,
    mask: str | None = "causal",
    table_dtype: str = "int32",
    shared: int = 0,
) -> Case:
    """heads: of key and value, and how many query heads share each. shared: first pages that all rows have in common.

    Page ids fall from the first page of the first row on. The pool has two pages that no row needs, and its last page
    fills up the table.
    """
    counts = [-(-tokens // page_size) for tokens in contexts]
    pages = shared + sum(count - shared for count in counts) + 2

    def inputs(draw: Draw) -> dict[str, Any]:
        table = np.full((len(contexts), max(counts) + 1), pages - 1)
        free = iter(range(pages - 2, -1, -1))
        common = [next(free) for _ in range(shared)]
        for row, count in enumerate(counts):
            table[row, :count] = common + [next(free) for _ in range(count - shared)]
        pool = (pages, heads[0], page_size, dim)
        return {
            "query": draw.values(len(contexts), heads[0] * heads[1], length, dim),
            "key_pages": draw.values(*pool),
            "value_pages": draw.values(*pool),
            "block_table": table.astype(table_dtype),
            "context_lens": np.array(contexts, table_dtype),
            "page_size": page_size,
            "scale": scale,
            "mask": mask,
        }

    features = {
        "dtypes": dtype,
        "head_dims": dim,
        "ratios": heads[1],
        "page_sizes": page_size,
        "table_dtypes": table_dtype,
        "masks": mask or "none",
        "scales": "default" if scale is None else "given",
        **({"scale_signs": "any"} if scale is not None and scale <= 0 else {}),
        "queries": "one" if length == 1 else "several",
        "context": max(contexts),
        "pages": pages,
    }
    return Case(name, requirement, seed, features, inputs, attention_over_pages)


CASES = (
    # name, requirement, seed, dtype, (key heads, query heads of each), queries, contexts, page size, head dim
    _case("paged-decode", spec.PAGED_01, 1, "float32", (2, 2), 1, (9, 20, 3), 8, 32),
    _case("paged-decode-bfloat16", spec.PAGED_01, 2, "bfloat16", (1, 3), 1, (17, 5), 8, 64),
    _case("paged-pages-of-one", spec.PAGED_02, 3, "float32", (1, 2), 1, (7, 4), 1, 32),
    _case("paged-lengths", spec.PAGED_03, 4, "float16", (2, 1), 1, (1, 33, 12), 16, 32),
    _case("paged-page-ends", spec.PAGED_04, 5, "float32", (1, 2), 1, (23, 24, 25), 24, 32),
    _case("paged-large-pages", spec.PAGED_04, 6, "float16", (1, 1), 1, (130, 100), 100, 32),
    _case("paged-ratio-seven", spec.PAGED_05, 7, "float32", (2, 7), 1, (10, 6), 3, 32),
    _case("paged-chunk", spec.PAGED_06, 8, "float32", (1, 2), 5, (12, 5), 8, 40),
    _case("paged-chunk-bfloat16", spec.PAGED_06, 9, "bfloat16", (2, 1), 9, (33, 10), 16, 32),
    _case("paged-whole-context", spec.PAGED_07, 10, "float32", (1, 2), 3, (9, 4), 8, 32, mask=None),
    _case("paged-scale", spec.PAGED_08, 11, "float32", (1, 2), 1, (9, 4), 8, 32, scale=-0.4),
    _case("paged-shared-prefix", spec.PAGED_11, 12, "float32", (1, 2), 1, (20, 17, 30), 8, 32, shared=2),
    _case("paged-wide-heads", spec.PAGED_19, 13, "float16", (1, 2), 1, (20, 9), 8, 192),
    _case("paged-int64-table", spec.PAGED_25, 14, "float32", (1, 1), 1, (9, 4), 3, 32, table_dtype="int64"),
    _case("paged-uint32-table", spec.PAGED_25, 15, "float32", (1, 1), 2, (9, 4), 3, 32, table_dtype="uint32"),
)
