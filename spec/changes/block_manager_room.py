"""Whether there is room, and what is changed before it is known: see `spec/faults/block_manager_room.py`."""

from __future__ import annotations

from inferspec.spec.block_manager import BlockManager, Manager, Table, blocks_of
from inferspec.spec.contract import Change


def takes_its_hits(self: BlockManager, m: Manager, tokens: list[int]) -> Table:
    """Blocks for the rest are taken before those that are hit are held."""
    hits = self.hits(m, tokens)
    self.check_room(m, self.needed(m, tokens, hits))
    fresh = [self.take(m) for _ in range(blocks_of(len(tokens), m.size) - len(hits))]
    for block in hits:
        self.share(m, block)
    return self.table(m, tokens, hits, fresh)


def free_hits_not_counted(self: BlockManager, m: Manager, tokens: list[int], hits: list[int]) -> int:
    return blocks_of(len(tokens), m.size) - len(hits)


def free_hits_counted_twice(self: BlockManager, m: Manager, tokens: list[int], hits: list[int]) -> int:
    return blocks_of(len(tokens), m.size) - len(hits) + 2 * sum(block in m.free for block in hits)


def hits_counted(self: BlockManager, m: Manager, tokens: list[int], hits: list[int]) -> int:
    return blocks_of(len(tokens), m.size)


def hits_of_several_counted(self: BlockManager, m: Manager, tokens: list[int], hits: list[int]) -> int:
    return blocks_of(len(tokens), m.size) - sum(m.owners[block] == 1 for block in hits)


def counted_as_the_first(self: BlockManager, m: Manager, tokens: list[int], hits: list[int]) -> int:
    """Whether the first hit is in use says whether all are."""
    used = len(hits) if hits and hits[0] not in m.free else 0
    return blocks_of(len(tokens), m.size) - used


def counted_as_the_last(self: BlockManager, m: Manager, tokens: list[int], hits: list[int]) -> int:
    """Whether the last hit is in use says whether all are."""
    used = len(hits) if hits and hits[-1] not in m.free else 0
    return blocks_of(len(tokens), m.size) - used


def evicts_at_most_64(self: BlockManager, m: Manager, needed: int) -> None:
    """No more than 64 cached blocks are given up for one table."""
    BlockManager.check_room(self, m, needed)
    if needed - sum(block not in m.content for block in m.free) > 64:
        raise ValueError("too many blocks to evict")


def as_far_as_it_goes(self: BlockManager, m: Manager, tokens: list[int]) -> Table:
    """What does not fit is left out."""
    hits = self.hits(m, tokens)
    for block in hits:
        self.share(m, block)
    more = blocks_of(len(tokens), m.size) - len(hits)
    return self.table(m, tokens, hits, [self.take(m) for _ in range(min(more, len(m.free)))])


def append_as_far_as_it_goes(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    self.check_table(m, table)
    more = blocks_of(len(table.tokens) + len(tokens), m.size) - len(table.block_ids)
    table.block_ids = table.block_ids + [self.take(m) for _ in range(min(more, len(m.free)))]
    table.tokens = table.tokens + self.taken(tokens)


def uncached_alone(self: BlockManager, m: Manager, needed: int) -> None:
    if needed > sum(block not in m.content for block in m.free):
        raise ValueError("no block that is not cached")


def several_not_cached(self: BlockManager, m: Manager, needed: int) -> None:
    if needed > 1 and needed == len(m.free):
        uncached_alone(self, m, needed)
    self.check_room(m, needed)


def watermark(self: BlockManager, m: Manager, needed: int) -> None:
    if needed > len(m.free) - len(m.owners) // 100:
        raise ValueError("a hundredth is kept back")


def rotates(self: BlockManager, m: Manager, needed: int) -> None:
    if needed > len(m.free) > 1:
        m.free.append(m.free.pop(0))
    BlockManager.check_room(self, m, needed)


def evicts_one(self: BlockManager, m: Manager, needed: int) -> None:
    if needed > len(m.free) > 0:
        self.forget(m, m.free[0])
    BlockManager.check_room(self, m, needed)


def no_copy_of_the_count(self: BlockManager, m: Manager, needed: int) -> None:
    """can_append asks for a block, whatever the number of tokens."""
    if not m.free and needed:
        raise ValueError("no block")


def last_taken_again(self: BlockManager, m: Manager) -> int:
    """An empty free list gives a block that is in use."""
    return BlockManager.take(self, m) if m.free else 0


def hits_before_checks(self: BlockManager, m: Manager, tokens: list[int]) -> Table:
    """Hits are held before it is known whether the rest fits."""
    hits = self.hits(m, tokens)
    needed = self.needed(m, tokens, hits)
    for block in hits:
        self.share(m, block)
    self.check_room(m, needed - sum(m.owners[block] == 1 for block in hits))
    fresh = [self.take(m) for _ in range(blocks_of(len(tokens), m.size) - len(hits))]
    return self.table(m, tokens, hits, fresh)


def takes_until_refused(self: BlockManager, m: Manager, tokens: list[int]) -> Table:
    """Blocks are taken one by one, until there is none."""
    hits = self.hits(m, tokens)
    for block in hits:
        self.share(m, block)
    fresh = [self.take(m) for _ in range(blocks_of(len(tokens), m.size) - len(hits))]
    return self.table(m, tokens, hits, fresh)


def rolls_back_forgetting(self: BlockManager, m: Manager, tokens: list[int]) -> Table:
    """Blocks taken for a prompt that does not fit are given back, but the cache has forgotten them."""
    taken = []
    hits = self.hits(m, tokens)
    try:
        self.check_room(m, self.needed(m, tokens, hits))
    except ValueError:
        for block in [other for other in m.free if other not in hits]:
            self.forget(m, block)
            taken.append(block)
        raise
    return BlockManager.allocate(self, m, tokens)


def orphans() -> Change:
    """A table is undone to nothing by an append that is refused: what it had before is nobody's."""

    def append(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
        try:
            BlockManager.append(self, m, table, tokens)
        except ValueError:
            table.orphans = set(table.block_ids)
            raise

    def leaving(self: BlockManager, table: Table) -> list[int]:
        orphans = getattr(table, "orphans", ())
        return [block for block in BlockManager.leaving(self, table) if block not in orphans]

    return {"append": append, "leaving": leaving}


def takes_and_gives_back(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    missing = blocks_of(len(table.tokens) + len(tokens), m.size) - len(table.block_ids)
    if table.home is m and missing > len(m.free):
        for block in [self.take(m) for _ in list(m.free)]:
            self.leave(m, block)
    BlockManager.append(self, m, table, tokens)


def appends_until_refused(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    self.check_table(m, table)
    more = blocks_of(len(table.tokens) + len(tokens), m.size) - len(table.block_ids)
    for _ in range(more):
        table.block_ids = [*table.block_ids, self.take(m)]
    table.tokens = table.tokens + self.taken(tokens)


def tokens_before_checks(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    self.check_table(m, table)
    more = blocks_of(len(table.tokens) + len(tokens), m.size) - len(table.block_ids)
    table.tokens = table.tokens + self.taken(tokens)
    self.check_more(m, more)
    table.block_ids = table.block_ids + [self.take(m) for _ in range(more)]


def holds_what_lies_behind(
    self: BlockManager, m: Manager, tokens: list[int], hits: list[int], fresh: list[int]
) -> Table:
    """What is held is a whole node of the tree, which reaches past what is hit of it."""
    names = [m.content[block] for block in hits[-1:] if block in m.content]
    behind = [
        block for block, name in m.content.items() if block in m.free and any(name[: -m.size] == one for one in names)
    ]
    for block in behind:
        self.share(m, block)
    return BlockManager.table(self, m, tokens, hits, fresh)


def room_for_the_new_alone(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    """What is left of the last block is not counted."""
    self.check_table(m, table)
    self.check_more(m, blocks_of(len(tokens), m.size))
    BlockManager.append(self, m, table, tokens)
