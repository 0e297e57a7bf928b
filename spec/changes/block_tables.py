"""The steps that faults and honest variants of block tables have in the place of the oracle's: see
`spec/faults/block_tables.py` and `spec/faults/paged_kv.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from inferspec.spec import paged_kv as spec
from inferspec.spec.paged_kv import Cache, Story


def table_sorted(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> np.ndarray:
    return spec.BlockTable.padded(self, story, [Cache(pages=sorted(row.pages)) for row in rows])


def by_length(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> np.ndarray:
    return spec.BlockTable.padded(self, story, sorted(rows, key=lambda row: -len(row.pages)))


def aligned_at_end(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> np.ndarray:
    width = max(len(row.pages) for row in rows)
    return spec.BlockTable.padded(self, story, [Cache(pages=[0] * (width - len(r.pages)) + r.pages) for r in rows])


def as_wide_as_first(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> np.ndarray:
    return spec.BlockTable.padded(self, story, rows)[:, : len(rows[0].pages)]


def full_pages_alone(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> np.ndarray:
    size = story.a.page_size
    return spec.BlockTable.padded(self, story, [Cache(pages=row.pages[: row.length // size]) for row in rows])


def slots_of_rows(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> list[int]:
    return [len(row.pages) * story.a.page_size for row in rows]


def pages_of_rows(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> list[int]:
    return [len(row.pages) for row in rows]


def longest_of_all(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> list[int]:
    return [max(row.length for row in rows)] * len(rows)


def busy_rows(self: spec.BlockTable, story: Story, caches: Sequence[int]) -> dict[str, Any]:
    busy = [number for number in caches if self.cache(story, number).length]
    return spec.BlockTable.table(self, story, busy or caches)


def remembered(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> list[int]:
    """Lengths are kept for as long as the pages of the batch are the same."""
    story.memory = getattr(story, "memory", {})
    return list(story.memory.setdefault(tuple(tuple(row.pages) for row in rows), [row.length for row in rows]))


def only_once(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> np.ndarray:
    """The table is made anew only when it must be wider or has more rows."""
    table = spec.BlockTable.padded(self, story, rows)
    old = getattr(story, "old_table", None)
    if old is None or old.shape != table.shape:
        story.old_table = table
    return np.array(story.old_table)


def eight_rows(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> np.ndarray:
    table = spec.BlockTable.padded(self, story, rows)
    table[8:] = 0
    return table


def sixteen_pages(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> np.ndarray:
    table = spec.BlockTable.padded(self, story, rows)
    table[:, 16:] = 0
    return table


def one_table(self: spec.BlockTable, story: Story, step: int) -> dict[str, Any]:
    """All tables of a shape are the same array: those before are as the last one."""
    return {"kept": int(story.steps[step] == story.steps[max(story.steps)])}


def remembers_table(self: spec.BlockTable, story: Story, caches: Sequence[int]) -> dict[str, Any]:
    told = spec.BlockTable.table(self, story, caches)
    rows = [self.cache(story, number) for number in caches]
    story.steps = {**getattr(story, "steps", {}), story.number: [(row.length, *row.pages) for row in rows]}
    return told


def minus_one_behind(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> np.ndarray:
    """Padding of -1, and a table that is wider than it need be."""
    table = np.full((len(rows), max(len(row.pages) for row in rows) + 3), -1, np.int64)
    for entries, row in zip(table, rows, strict=True):
        entries[: len(row.pages)] = row.pages
    return table


def table_of_16_bits(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> np.ndarray:
    table = spec.BlockTable.padded(self, story, rows)
    return table.astype(np.uint16).astype(np.int64)


def rows_past_64(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> np.ndarray:
    table = spec.BlockTable.padded(self, story, rows)
    table[64:] = 0
    return table


def entries_past_256(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> np.ndarray:
    table = spec.BlockTable.padded(self, story, rows)
    table[:, 256:] = 0
    return table


def lens_of_a_byte(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> list[int]:
    return [min(row.length, 255) for row in rows]


def tables_of_several_by_lengths(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> np.ndarray:
    """A table of several rows is made anew where one of them is another, or has another length."""
    if not hasattr(story, "tables"):
        story.tables = {}
    known = tuple((id(row), row.length) for row in rows)
    table = spec.BlockTable.padded(self, story, rows)
    return np.array(story.tables.setdefault(known, table)) if len(rows) > 1 else table


def tables_by_number_of_pages(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> np.ndarray:
    """A table is made anew where the number of pages of some row is another."""
    if not hasattr(story, "tables"):
        story.tables = {}
    known = tuple((id(row), len(row.pages)) for row in rows)
    return np.array(story.tables.setdefault(known, spec.BlockTable.padded(self, story, rows)))
