"""One forward pass over tokens of many requests whose keys and values lie in pages.

The tokens of all requests stand in one row, 1×N, whatever the length of each: no padding, and all that is done token by
token is done once for all. Only attention sees requests: those with equally many new tokens go together.

Shapes: N new tokens of all requests, B requests with L new tokens each, H_q query heads, H key/value heads, D head dim.

Sources: Yu et al. 2022 (Orca), section 3.2 (selective batching); Kwon et al. 2023 (PagedAttention); the tiny-llm course,
week 3 day 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mlx.core as mx
import numpy as np

from inferspec.impl.paged_attention import paged_attention
from inferspec.impl.paged_kv import PagePool
from inferspec.impl.rope import RoPE


@dataclass(frozen=True)
class Span:
    """New tokens of one request, at the positions start, start + 1, …; `page_ids` are all its pages, in order."""

    start: int
    tokens: Sequence[int]
    page_ids: Sequence[int]


@dataclass(frozen=True)
class _Group:
    """Spans of one length L. rows: B·L, where their tokens stand among all."""

    rows: mx.array
    length: int
    table: mx.array
    context_lens: mx.array


class PagedBatch:
    """The spans of a pass: what to feed, where it goes, and what each token sees."""

    def __init__(self, spans: Sequence[Span], page_size: int) -> None:
        positions = [np.arange(span.start, span.start + len(span.tokens)) for span in spans]
        pages = [np.asarray(span.page_ids)[at // page_size] for span, at in zip(spans, positions, strict=True)]
        self.page_size = page_size
        self.tokens = mx.array(np.concatenate([np.asarray(span.tokens) for span in spans])[None])
        """1×N."""
        flat = np.concatenate(positions)
        self.places = [slice(int(at), int(at) + 1) for at in flat]
        """The position of each token, as `RoPE` takes them."""
        self.pages = mx.array(np.concatenate(pages).astype(np.int32))
        self.slots = mx.array((flat % page_size).astype(np.int32))
        ends = np.cumsum([len(span.tokens) for span in spans])
        self.firsts = [int(end) - len(span.tokens) for end, span in zip(ends, spans, strict=True)]
        """Where each span's tokens begin among the N."""
        lengths = sorted({len(span.tokens) for span in spans})
        self.groups = [self._group(spans, length) for length in lengths]
        order = np.concatenate([np.asarray(group.rows) for group in self.groups])
        self.back = mx.array(np.argsort(order).astype(np.int32))
        """Where each of the N tokens stands in the groups, one after the other."""

    def _group(self, spans: Sequence[Span], length: int) -> _Group:
        members = [(span, first) for span, first in zip(spans, self.firsts, strict=True) if len(span.tokens) == length]
        rows = np.concatenate([np.arange(first, first + length) for _, first in members])
        ends = [span.start + length for span, _ in members]
        # A page past the last token may belong to nobody: attention never looks at it.
        width = -(-max(ends) // self.page_size)
        table = np.zeros((len(members), width), np.int32)
        for row, (span, _) in enumerate(members):
            ids = span.page_ids[:width]
            table[row, : len(ids)] = ids
        return _Group(mx.array(rows.astype(np.int32)), length, mx.array(table), mx.array(ends, mx.int32))


class PagedLayer:
    """What a layer's attention does for a batch: store keys and values in the layer's pool, and read them from there."""

    def __init__(self, pool: PagePool, batch: PagedBatch) -> None:
        self.pool, self.batch = pool, batch

    def attend(self, query: mx.array, key: mx.array, value: mx.array, rope: RoPE, scale: float) -> mx.array:
        """Return 1×N×H_q×D for queries of that shape and keys and values 1×N×H×D of the batch's tokens. scale: what their
        products are multiplied by."""
        batch, pool = self.batch, self.pool
        # To RoPE each token is a batch row, so that each can have a position of its own.
        query, key = (rope(x.swapaxes(0, 1), batch.places) for x in (query, key))
        pool.scatter(batch.pages, batch.slots, key.transpose(1, 2, 0, 3), value.swapaxes(1, 2))
        keys, values = pool.key_pages, pool.value_pages
        parts = []
        for group in batch.groups:
            rows = mx.unflatten(query[group.rows, 0], 0, (-1, group.length)).swapaxes(1, 2)
            seen = paged_attention(
                rows,
                keys,
                values,
                group.table,
                group.context_lens,
                page_size=batch.page_size,
                scale=scale,
                mask="causal",
            )
            parts.append(seen.swapaxes(1, 2).flatten(0, 1))
        return mx.concatenate(parts)[batch.back][None]
