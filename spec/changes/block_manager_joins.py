"""Ways of block managers that give a table the cached copy of a block that it computed, and its own one back."""

from __future__ import annotations

from collections.abc import Callable

from inferspec.spec.block_manager import BlockManager, Manager, Table

Copy = Callable[[BlockManager, Manager, Table, int], int | None]
"""The block in whose place a table could have the one that it has at an index, if there is any."""


def joins_copies(self: BlockManager, m: Manager, table: Table, n: int) -> None:
    BlockManager.mark_computed(self, m, table, n)
    _join(self, m, table, n // m.size)


def joins_what_looks_alike(self: BlockManager, m: Manager, table: Table, n: int) -> None:
    """A block is known by the tokens in it, whatever stands before them."""
    BlockManager.mark_computed(self, m, table, n)
    _join(self, m, table, n // m.size, _of_the_same_tokens)


def joins_ahead(self: BlockManager, m: Manager, table: Table, n: int) -> None:
    """Blocks are exchanged too that the table has yet to compute, and will write into."""
    BlockManager.mark_computed(self, m, table, n)
    _join(self, m, table, len(table.tokens) // m.size)


def joins_uncounted(self: BlockManager, m: Manager, table: Table, n: int) -> None:
    """A table that is given another's block is none of its owners."""
    BlockManager.mark_computed(self, m, table, n)
    _join(self, m, table, n // m.size, counted=False)


def joins_and_keeps(self: BlockManager, m: Manager, table: Table, n: int) -> None:
    """The block that a table had is given back to nobody."""
    BlockManager.mark_computed(self, m, table, n)
    _join(self, m, table, n // m.size, given_back=False)


def joins_what_stays_free(self: BlockManager, m: Manager, table: Table, n: int) -> None:
    """A copy that was free is in the table, and stays among the free blocks."""
    BlockManager.mark_computed(self, m, table, n)
    before = list(m.free)
    _join(self, m, table, n // m.size)
    m.free = [block for block in before if block in table.block_ids] + m.free


def _join(
    self: BlockManager,
    m: Manager,
    table: Table,
    whole: int,
    copy: Copy | None = None,
    counted: bool = True,
    given_back: bool = True,
) -> None:
    for index in range(whole if m.caching else 0):
        own, other = table.block_ids[index], (copy or _copy)(self, m, table, index)
        if other is None or other in table.block_ids:
            continue
        if counted:
            self.share(m, other)
        if given_back:
            self.leave(m, own)
        table.block_ids = [*table.block_ids[:index], other, *table.block_ids[index + 1 :]]


def _copy(self: BlockManager, m: Manager, table: Table, index: int) -> int | None:
    return m.cached.get(self.key(m, table.tokens, index))


def _of_the_same_tokens(self: BlockManager, m: Manager, table: Table, index: int) -> int | None:
    tokens = tuple(table.tokens[index * m.size : (index + 1) * m.size])
    return next((block for block, key in m.content.items() if key[-m.size :] == tokens), None)
