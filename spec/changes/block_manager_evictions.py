"""Which blocks are free and cached, and which of them are taken first: see `spec/faults/block_manager_evictions.py`."""

from __future__ import annotations

import heapq

from inferspec.spec.block_manager import BlockManager, Manager, Table
from inferspec.spec.contract import Arguments


def forgets_again(self: BlockManager, m: Manager, block: int) -> None:
    """A block keeps the name of what it once held."""
    m.cached.pop(m.content.get(block), None)


def names_copies(self: BlockManager, m: Manager, table: Table, index: int) -> None:
    """A block that holds what another is known by has the name as well."""
    BlockManager.publish(self, m, table, index)
    m.content.setdefault(table.block_ids[index], self.key(m, table.tokens, index))


def forgets_the_name(self: BlockManager, m: Manager, block: int) -> None:
    """A name goes with any block that has it."""
    m.cached.pop(m.content.pop(block, None), None)


def empties_the_earlier_copy(self: BlockManager, m: Manager, block: int) -> None:
    """Free blocks are kept by what they hold: of two that are alike the one that came first is emptied, known or not."""
    alike = [other for other in m.free if other in m.content and m.content[other] == m.content.get(block)]
    BlockManager.leave(self, m, block)
    if block in m.free:
        for other in alike:
            del m.content[other]


def hits_the_free_first(self: BlockManager, m: Manager, tokens: list[int]) -> list[int]:
    """What is kept by what it holds is found there, and all else by what the cache knows."""
    found: list[int] = []
    for index in range(self.hit_limit(m, tokens) if m.caching else 0):
        key = self.key(m, tokens, index)
        block = next((other for other in m.free if m.content.get(other) == key), m.cached.get(key))
        if block is None:
            break
        found.append(block)
    return found


def copies_first(self: BlockManager, m: Manager) -> int:
    """Blocks that nothing is known by are taken first."""
    return next((block for block in m.free if m.cached.get(m.content.get(block)) != block), m.free[0])


def forgets_when_free(self: BlockManager, m: Manager, block: int) -> None:
    BlockManager.leave(self, m, block)
    if block in m.free:
        self.forget(m, block)


def _behind(m: Manager, block: int) -> list[int]:
    """The blocks that the cache knows behind another."""
    key = m.content.get(block)
    return [] if key is None else [m.cached[other] for other in m.cached if other != key and other[: len(key)] == key]


def moves_up_behind_the_taken(self: BlockManager, m: Manager, block: int) -> None:
    """A node of a tree loses its last block and keeps what follows it."""
    key, behind = m.content.get(block), _behind(m, block)
    BlockManager.forget(self, m, block)
    for other in behind:
        own = m.content[other]
        moved = own[: len(key) - m.size] + own[len(key) :]
        if moved not in m.cached:
            del m.cached[own]
            m.cached[moved], m.content[other] = other, moved


def lost_behind_the_taken(self: BlockManager, m: Manager, block: int) -> None:
    """What is known of where a block is known outlives the place."""
    lost = vars(m).setdefault("lost", set())
    if block in lost and block in m.content:
        raise ValueError("the place where it is known is gone")
    lost.update(_behind(m, block))
    BlockManager.forget(self, m, block)


def parted_in_the_other_half(self: BlockManager, m: Manager, block: int) -> None:
    """A run of blocks that were computed together is split where another prompt parts from it, and those before the split
    are looked for behind it."""
    if block in vars(m).setdefault("parted", set()) and block in m.content:
        raise ValueError("it is not where it is looked for")
    BlockManager.forget(self, m, block)


def splits(self: BlockManager, m: Manager, table: Table, n: int) -> None:
    cached = set(m.cached)
    BlockManager.mark_computed(self, m, table, n)
    parted = vars(m).setdefault("parted", set())
    for key in set(m.cached) - cached:
        before = key[: -m.size]
        if before in cached and any(len(one) == len(key) and one[: -m.size] == before for one in cached):
            parted.add(m.cached[before])


def reset_when_hit(self: BlockManager, m: Manager, block: int) -> None:
    """A free block that is hit is reset like any that is taken: it is hit once, and then no more."""
    if block in m.free:
        self.forget(m, block)
    BlockManager.share(self, m, block)


def stays_in_the_free_list(self: BlockManager, m: Manager, block: int) -> None:
    m.owners[block] += 1


def last_hit_stays_free(self: BlockManager, m: Manager, tokens: list[int], hits: list[int], fresh: list[int]) -> Table:
    """The lock moves on to the parent before it counts: the last block of a match is not held."""
    if hits and m.owners[hits[-1]] == 1:
        m.free.append(hits[-1])
    return BlockManager.table(self, m, tokens, hits, fresh)


def last_in_first_out(self: BlockManager, m: Manager) -> int:
    return next((block for block in m.free if block not in m.content), m.free[-1])


def head_first(self: BlockManager, table: Table) -> list[int]:
    return list(table.block_ids)


def oldest_of_the_pool(self: BlockManager, m: Manager) -> int:
    """The lowest id, whoever was freed when."""
    return min(m.free, key=lambda block: (block in m.content, block))


def by_first_use(self: BlockManager, m: Manager, block: int) -> None:
    """First in, first out: a block that is hit and freed again keeps its old place."""
    BlockManager.leave(self, m, block)
    if m.owners[block] == 0:
        m.free.sort(key=lambda other: m.born.get(other, 0))


def noting_births(self: BlockManager, m: Manager, table: Table, index: int) -> None:
    BlockManager.publish(self, m, table, index)
    m.born[table.block_ids[index]] = m.clock = m.clock + 1


def fresh_with_births(self: BlockManager, a: Arguments) -> Manager:
    m = BlockManager.fresh(self, a)
    m.born, m.clock = {}, 0
    return m


def one_order_for_all(self: BlockManager, a: Arguments) -> Manager:
    """The heap of what was freed, and when, is a default argument."""
    m, kind = BlockManager.fresh(self, a), type(self)
    if "order" not in vars(kind):
        kind.order = []  # type: ignore[attr-defined]
    m.order, m.when, m.clock = kind.order, {}, 0  # type: ignore[attr-defined]
    return m


def noting_when(self: BlockManager, m: Manager, block: int) -> None:
    BlockManager.leave(self, m, block)
    if m.owners[block] == 0:
        m.when[block] = m.clock = m.clock + 1
        heapq.heappush(m.order, (m.clock, block))


def first_of_the_heap(self: BlockManager, m: Manager) -> int:
    """What is not free since then is passed over, as it was hit or taken; of another manager nothing is told apart."""
    fresh = next((block for block in m.free if block not in m.content), None)
    while fresh is None:
        when, block = heapq.heappop(m.order)
        if block in m.free and m.when[block] == when:
            fresh = block
    return fresh


def noting_the_cached(self: BlockManager, m: Manager, table: Table, index: int) -> None:
    BlockManager.publish(self, m, table, index)
    m.__dict__.setdefault("once", set()).add(table.block_ids[index])


def never_cached_first(self: BlockManager, m: Manager) -> int:
    once: set[int] = m.__dict__.get("once", set())
    return next((block for block in m.free if block not in once), m.free[0])


def cached_first(self: BlockManager, m: Manager) -> int:
    return next((block for block in m.free if block in m.content), m.free[0])


def stale(self: BlockManager, m: Manager, block: int) -> None:
    """What the cache knew of a block that is taken stays there."""
    m.content.pop(block, None)


def keeps_its_name(self: BlockManager, m: Manager, block: int) -> None:
    """A block that is taken is not hit any more for what it held, and keeps the name."""
    name = m.content.get(block)
    if m.cached.get(name) == block:
        del m.cached[name]


def publishes_the_nameless(self: BlockManager, m: Manager, table: Table, index: int) -> None:
    """Only a block without a name gets one."""
    if table.block_ids[index] not in m.content:
        BlockManager.publish(self, m, table, index)


def publishes_over(self: BlockManager, m: Manager, table: Table, index: int) -> None:
    """Two blocks with the same tokens: the later one is cached, and forgetting either forgets both."""
    key, block = self.key(m, table.tokens, index), table.block_ids[index]
    m.cached[key], m.content[block] = block, key


def counts_hits(self: BlockManager, m: Manager, block: int) -> None:
    BlockManager.share(self, m, block)
    known = vars(m).setdefault("known", {})
    known[block] = known.get(block, 0) + 1


def passes_well_known_by(self: BlockManager, m: Manager) -> int:
    """A block that was hit more than once is taken only where there is no other."""
    known = vars(m).setdefault("known", {})
    fresh = [block for block in m.free if block not in m.content]
    return next((block for block in fresh or m.free if known.get(block, 0) < 2), m.free[0])
