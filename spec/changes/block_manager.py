"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/block_manager.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from inferspec.spec import block_manager as spec
from inferspec.spec.block_manager import BlockManager, Manager, Table, blocks_of
from inferspec.spec.contract import Arguments, Change


def quietly(method: str, check: str) -> Change:
    """A method that leaves alone what its check would refuse, and says nothing."""

    def quiet(self: BlockManager, m: Manager, table: Table, **rest: Any) -> None:
        try:
            getattr(BlockManager, check)(self, m, table)
        except ValueError:
            return
        getattr(BlockManager, method)(self, m, table, **rest)

    return {method: quiet}


# tables


def ids_in_a_byte(self: BlockManager, m: Manager) -> int:
    return BlockManager.take(self, m) % 256


def one_block_more(self: BlockManager, m: Manager, tokens: list[int]) -> Table:
    """n // block_size + 1 blocks: one too many for whole blocks."""
    table = BlockManager.allocate(self, m, tokens)
    if not len(tokens) % m.size and m.free:
        table.block_ids = [*table.block_ids, self.take(m)]
    return table


def last_block_missing(self: BlockManager, m: Manager, tokens: list[int]) -> Table:
    table = BlockManager.allocate(self, m, tokens)
    if len(tokens) % m.size and len(table.block_ids) > 1:
        self.leave(m, table.block_ids[-1])
        table.block_ids = table.block_ids[:-1]
    return table


def append_anew(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    """Appended tokens begin a block of their own."""
    self.check_table(m, table)
    more = blocks_of(len(tokens), m.size)
    self.check_more(m, more)
    table.block_ids = table.block_ids + [self.take(m) for _ in range(more)]
    table.tokens = table.tokens + self.taken(tokens)


def one_block_an_append(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    """As if every append were of one token: the decode path."""
    self.check_table(m, table)
    if blocks_of(len(table.tokens) + len(tokens), m.size) > len(table.block_ids):
        self.check_more(m, 1)
        table.block_ids = [*table.block_ids, self.take(m)]
    table.tokens = table.tokens + self.taken(tokens)


def on_the_boundary(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    """A block is taken when the last one has become full, not when a token needs it."""
    BlockManager.append(self, m, table, tokens)
    if not len(table.tokens) % m.size and m.free:
        table.block_ids = [*table.block_ids, self.take(m)]


def takes_for_nothing(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    """Whole blocks are full: the next token, whether there is one or not, needs another."""
    BlockManager.append(self, m, table, tokens)
    if not tokens and not len(table.tokens) % m.size and m.free:
        table.block_ids = [*table.block_ids, self.take(m)]


def moves(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    """A growing table is given other blocks, in the place of its old ones."""
    BlockManager.append(self, m, table, tokens)
    if m.free and len(table.tokens) % m.size:
        block = self.take(m)
        self.leave(m, table.block_ids[-1])
        table.block_ids = [*table.block_ids[:-1], block]


def prepends(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    old = table.block_ids
    BlockManager.append(self, m, table, tokens)
    table.block_ids = [*table.block_ids[len(old) :], *old]


def tokens_of_the_prompt(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    """Blocks are added for appended tokens that the table then does not count."""
    before = table.tokens
    BlockManager.append(self, m, table, tokens)
    table.tokens = [*before, *tokens[:1]]


def cached_follows(self: BlockManager, m: Manager, table: Table, n: int) -> None:
    """num_cached_tokens moves on with what is computed."""
    BlockManager.mark_computed(self, m, table, n)
    table.cached = max(table.cached, n // m.size * m.size)


def joins_copies(self: BlockManager, m: Manager, table: Table, n: int) -> None:
    """Of two blocks with the same tokens one is given back, and its table has the other."""
    BlockManager.mark_computed(self, m, table, n)
    for index in range(n // m.size if m.caching else 0):
        own, known = table.block_ids[index], m.cached[self.key(m, table.tokens, index)]
        if known != own:
            self.share(m, known)
            self.leave(m, own)
            table.block_ids = [*table.block_ids[:index], known, *table.block_ids[index + 1 :]]


# who has what


def owners_in_a_byte(self: BlockManager, m: Manager, block: int) -> None:
    BlockManager.share(self, m, block)
    m.owners[block] &= 255


def fifteen_owners(self: BlockManager, m: Manager, block: int) -> None:
    BlockManager.share(self, m, block)
    m.owners[block] = min(m.owners[block], 15)


def not_owned(self: BlockManager, m: Manager) -> int:
    """A block comes off the free list without an owner, and leaving makes it -1."""
    block = self.next(m)
    m.free.remove(block)
    self.forget(m, block)
    m.owners[block] = 0
    return block


def taken_and_free(self: BlockManager, m: Manager) -> int:
    """The last block of the pool is handed out and stays in the free list."""
    block = BlockManager.take(self, m)
    if not m.free:
        m.free.append(block)
    return block


def freed_at_first(self: BlockManager, m: Manager, block: int) -> None:
    """The first table that leaves frees a shared block."""
    m.owners[block] -= 1
    if block not in m.free:
        m.free.append(block)


def freed_below_zero(self: BlockManager, m: Manager, block: int) -> None:
    """ref_count > 0 was meant; a block that was shared stays in use for ever."""
    m.owners[block] -= 1
    if m.owners[block] == 0 and not m.shared.get(block):
        m.free.append(block)


def shares_noting(self: BlockManager, m: Manager, block: int) -> None:
    m.__dict__.setdefault("shared", {})[block] = True
    BlockManager.share(self, m, block)


def fresh_noting(self: BlockManager, a: Arguments) -> Manager:
    m = BlockManager.fresh(self, a)
    m.shared = {}
    return m


def starts_anew_behind_a_copy(self: BlockManager, m: Manager, table: Table, n: int) -> None:
    """Names go on from that of the block before; behind one that has none they begin as those of a prompt do."""
    self.check_table(m, table)
    self.check_computed(table, n)
    start = table.computed // m.size
    first = start if start and table.block_ids[start - 1] not in m.content else 0
    for index in range(start, self.whole_blocks(m, table, n) if m.caching else 0):
        block, key = table.block_ids[index], tuple(table.tokens[first * m.size : (index + 1) * m.size])
        if key not in m.cached:
            m.cached[key], m.content[block] = block, key
    table.computed = max(table.computed, n)


def publishes_the_latest(self: BlockManager, m: Manager, table: Table, index: int) -> None:
    key, block = self.key(m, table.tokens, index), table.block_ids[index]
    m.cached[key], m.content[block] = block, key


def forgets_its_own(self: BlockManager, m: Manager, block: int) -> None:
    key = m.content.pop(block, None)
    if key is not None and m.cached.get(key) == block:
        del m.cached[key]


def frees_by_name(self: BlockManager, m: Manager, block: int) -> None:
    """Free blocks lie in a table by what they are known by, which has room for one of each."""
    BlockManager.leave(self, m, block)
    name = m.content.get(block)
    if name is not None and block in m.free:
        m.free = [other for other in m.free if other == block or m.content.get(other) != name]


def counts_shared_twice(self: BlockManager, m: Manager) -> int:
    return len(m.owners) - sum(m.owners)


def counts_cached_as_used(self: BlockManager, m: Manager) -> int:
    return sum(block not in m.content for block in m.free)


def hits_leave_first(self: BlockManager, table: Table) -> list[int]:
    """What was hit is let go of before what the table took itself."""
    hits = table.cached // table.home.size
    return [*table.block_ids[:hits][::-1], *table.block_ids[hits:][::-1]]


def many_hits_leave_first(self: BlockManager, table: Table) -> list[int]:
    """Three blocks that were hit and more are given back as one, before what the table took itself."""
    return hits_leave_first(self, table) if table.cached >= 3 * table.home.size else table.block_ids[::-1]


def head_first_if_shared(self: BlockManager, table: Table) -> list[int]:
    """A table that shares blocks is walked from its beginning."""
    shares = any(table.home.owners[block] > 1 for block in table.block_ids)
    return table.block_ids if shares else table.block_ids[::-1]


def loses_the_last(self: BlockManager, table: Table) -> list[int]:
    """A table gives back its full blocks alone."""
    return table.block_ids[: max(1, len(table.tokens) // table.home.size)][::-1]


def gives_back_the_prompt(self: BlockManager, m: Manager, tokens: list[int]) -> Table:
    table = BlockManager.allocate(self, m, tokens)
    table.first = len(table.block_ids)
    return table


def prompt_alone(self: BlockManager, table: Table) -> list[int]:
    return table.block_ids[: table.first][::-1]


def hits_not_given_back(self: BlockManager, table: Table) -> list[int]:
    return table.block_ids[table.cached // table.home.size :][::-1]


def reserves_one(self: BlockManager, m: Manager, needed: int) -> None:
    if needed > len(m.free) - 1:
        raise ValueError("one block is kept back")


# hits


def one_block_at_most(self: BlockManager, m: Manager, tokens: list[int]) -> list[int]:
    return BlockManager.hits(self, m, tokens)[:1]


def one_short(self: BlockManager, m: Manager, tokens: list[int]) -> int:
    """A whole block more than the last token is left out."""
    return max(0, (len(tokens) - 1) // m.size - 1)


def stops_at_a_copy(self: BlockManager, m: Manager, table: Table, n: int) -> None:
    self.check_table(m, table)
    self.check_computed(table, n)
    for index in range(table.computed // m.size, n // m.size):
        if m.caching and self.key(m, table.tokens, index) in m.cached:
            break
        BlockManager.mark_computed(self, m, table, (index + 1) * m.size)


def cache_of_64(self: BlockManager, m: Manager, table: Table, index: int) -> None:
    if len(m.cached) < 64:
        BlockManager.publish(self, m, table, index)


def only_in_use(self: BlockManager, m: Manager, tokens: list[int]) -> list[int]:
    """Blocks that are free are not hit."""
    return [block for block in BlockManager.hits(self, m, tokens) if block not in m.free]


def nothing_left(self: BlockManager, m: Manager, tokens: list[int]) -> int:
    return len(tokens) // m.size


def all_but_one(self: BlockManager, m: Manager, tokens: list[int], hits: list[int], fresh: list[int]) -> Table:
    """The last block is hit too and all of its tokens but one are said to be cached."""
    table = BlockManager.table(self, m, tokens, hits, fresh)
    table.cached = min(table.cached, len(tokens) - 1)
    return table


def at_allocation(self: BlockManager, m: Manager, tokens: list[int]) -> Table:
    """Full blocks are in the cache as soon as they are taken."""
    table = BlockManager.allocate(self, m, tokens)
    if m.caching:
        for index in range(table.cached // m.size, len(tokens) // m.size):
            self.publish(m, table, index)
    return table


def at_append(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    """A block that an append fills is in the cache before it is computed."""
    BlockManager.append(self, m, table, tokens)
    if m.caching:
        for index in range(table.computed // m.size, len(table.tokens) // m.size):
            self.publish(m, table, index)


def all_at_the_first_mark(self: BlockManager, m: Manager, table: Table, n: int) -> int:
    """Any mark is taken for all of the prompt."""
    return len(table.tokens) // m.size if n else 0


def rounded_up(self: BlockManager, m: Manager, table: Table, n: int) -> int:
    """A block of which the first token is computed counts as computed."""
    return min(blocks_of(n, m.size), len(table.tokens) // m.size)


def the_block_alone(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    return tuple(tokens[index * m.size : (index + 1) * m.size])


def block_and_place(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    return index, the_block_alone(self, m, tokens, index)


def prefix_in_a_byte(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    """Prefixes are numbered as they come, and a block is known by the number of the one before it, of 8 bits, and its tokens."""
    numbers = vars(m).setdefault("numbers", {})
    number = numbers.setdefault(tuple(tokens[: index * m.size]), len(numbers))
    return number % 256, the_block_alone(self, m, tokens, index)


def block_and_the_one_before(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    return tuple(tokens[max(index - 1, 0) * m.size : (index + 1) * m.size]), index


def any_order(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    return tuple(sorted(tokens[: (index + 1) * m.size]))


def first_and_last(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    line = tokens[: (index + 1) * m.size]
    return line[0], line[-1], sum(line), index


def last_of_each_block(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    return tuple(tokens[m.size - 1 : (index + 1) * m.size : m.size])


def last_of_later_blocks(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    """A tree that compares the first block of a branch, and of those behind it the last token."""
    return tuple(tokens[: m.size]), last_of_each_block(self, m, tokens, index)


def behind_a_block(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    """The parent is named by the block that the cache has for it, which other tokens may take."""
    parent = m.cached.get(behind_a_block(self, m, tokens, index - 1), -1) if index else -1
    return parent, the_block_alone(self, m, tokens, index)


def hash_alone(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    """A chained hash, and the tokens not compared."""
    chain = 0
    for i in range(index + 1):
        chain = hash((chain, tuple(tokens[i * m.size : (i + 1) * m.size])))
    return chain


def hash_in_the_chain(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    """The tokens of the block are compared; those before it are known by their hash."""
    return (hash_alone(self, m, tokens, index - 1) if index else 0), the_block_alone(self, m, tokens, index)


def low_bits(bits: int) -> Change:
    def key(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
        return tuple(int(token) & (2**bits - 1) for token in tokens[: (index + 1) * m.size])

    return {"key": key}


def places_from_the_fifth(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    """As of a tree whose edges are known by the first blocks of them."""
    return (index, *tokens[: min(index + 1, 4) * m.size])


def any_order_from_the_fourth(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    first, rest = tokens[: min(index, 3) * m.size], tokens[index * m.size : (index + 1) * m.size]
    return index, tuple(first), tuple(sorted(rest) if index >= 3 else rest), tuple(tokens[3 * m.size : index * m.size])


def digits(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    """A text of the tokens, with nothing between them."""
    own = (tokens[i * m.size : (i + 1) * m.size] for i in range(index + 1))
    return tuple("".join(str(int(token)) for token in block) for block in own)


def float32(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    """Tokens go through a hash of their 61-bit remainders."""
    return tuple(int(token) % spec.MERSENNE for token in tokens[: (index + 1) * m.size])


def prompts_alone(self: BlockManager, m: Manager, table: Table, n: int) -> int:
    """Appended tokens are not cached."""
    return min(n, table.prompt) // m.size


def noting_the_prompt(self: BlockManager, m: Manager, tokens: list[int], hits: list[int], fresh: list[int]) -> Table:
    table = BlockManager.table(self, m, tokens, hits, fresh)
    table.prompt = len(tokens)
    return table


def block_by_block(self: BlockManager, m: Manager, table: Table, n: int) -> None:
    """Only the block that has just become full is cached: the decode path."""
    done, table.computed = table.computed, max(table.computed, n // m.size * m.size - m.size)
    if len(table.tokens) == table.prompt:
        table.computed = done
    BlockManager.mark_computed(self, m, table, n)


def in_floats(kind: str) -> Any:
    def key(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
        return np.array([int(token) for token in tokens[: (index + 1) * m.size]], kind).tobytes()

    return key


def padding_left_out(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    return index, tuple(token for token in tokens[: (index + 1) * m.size] if token)


def appended_in_32_bits(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    BlockManager.append(self, m, table, [token & (2**32 - 1) for token in tokens])


# what is free and cached


def forgets_again(self: BlockManager, m: Manager, block: int) -> None:
    """A block keeps the name of what it once held."""
    m.cached.pop(m.content.get(block), None)


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


# room


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


# misuse


def unchecked(self: BlockManager, *rest: Any) -> None:
    """Nothing is refused."""


def frees_again(self: BlockManager, m: Manager, table: Table) -> None:
    """A freed table still has its blocks, and they are given back once more."""
    self.check_home(m, table)
    for block in self.leaving(table):
        m.owners[block] -= 1
        if m.owners[block] <= 0:
            m.free.append(block)
    again, table.home = table.home is None, None
    if again:
        raise ValueError("a table that was freed")


def foreign_before_checks(self: BlockManager, m: Manager, table: Table) -> None:
    """The blocks of a foreign table are let go of before it is refused."""
    if table.home is not None and table.home is not m:
        for block in table.block_ids:
            if block not in m.free:
                m.free.append(block)
                m.owners[block] = 0
    BlockManager.free(self, m, table)


def ends_before_checks(self: BlockManager, m: Manager, table: Table) -> None:
    """A table is done with before it is known whose it is."""
    home, table.home = table.home, None
    if home is not m:
        raise ValueError("no table of this manager")
    table.home = home
    BlockManager.free(self, m, table)


def no_lower_bound(self: BlockManager, table: Table, n: int) -> None:
    if n > len(table.tokens):
        raise ValueError("too many")


def up_to_the_room(self: BlockManager, table: Table, n: int) -> None:
    if not 0 <= n <= len(table.block_ids) * table.home.size:
        raise ValueError("too many")


def marks_before_checks(self: BlockManager, m: Manager, table: Table, n: int) -> None:
    BlockManager.mark_computed(self, m, table, min(max(n, 0), len(table.tokens)))
    self.check_computed(table, n)


def counts_before_checks(self: BlockManager, m: Manager, table: Table, n: int) -> None:
    """What is computed moves on before a mark is refused, and later marks begin there."""
    self.check_table(m, table)
    if n > len(table.tokens):
        table.computed = n // m.size * m.size
    BlockManager.mark_computed(self, m, table, n)


# without caching, the caller, other managers


def always_caching(self: BlockManager, a: Arguments) -> Manager:
    m = BlockManager.fresh(self, a)
    m.caching = True
    return m


def hits_in_secret(self: BlockManager, m: Manager, tokens: list[int], hits: list[int], fresh: list[int]) -> Table:
    """Without caching, blocks are shared and said not to be cached."""
    table = BlockManager.table(self, m, tokens, hits, fresh)
    if not m.wanted:
        table.cached = 0
    return table


def caching_in_secret(self: BlockManager, a: Arguments) -> Manager:
    m = always_caching(self, a)
    m.wanted = a.prefix_caching
    return m


def kept_as_given(self: BlockManager, tokens: list[int]) -> list[int]:
    return tokens


def consumes(self: BlockManager, m: Manager, tokens: list[int]) -> Table:
    table = BlockManager.allocate(self, m, tokens)
    tokens.pop()
    return table


def notes_the_prompt(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    """Where the prompt's blocks end is kept."""
    own = len(table.block_ids)
    BlockManager.append(self, m, table, tokens)
    table.__dict__.setdefault("own", own)


def prompt_first(self: BlockManager, table: Table) -> list[int]:
    own = vars(table).get("own", len(table.block_ids))
    return table.block_ids[:own][::-1] + table.block_ids[own:][::-1]


def touches(self: BlockManager, m: Manager, tokens: list[int]) -> Table:
    """What is looked up was used just now, whatever comes of the prompt."""
    for block in self.hits(m, tokens):
        if block in m.free:
            m.free.remove(block)
            m.free.append(block)
    return BlockManager.allocate(self, m, tokens)


def eight_blocks(self: BlockManager, m: Manager, tokens: list[int]) -> list[int]:
    return BlockManager.hits(self, m, tokens)[:8]


def one_cache_for_all(self: BlockManager, a: Arguments) -> Manager:
    """The cache is a default argument."""
    m = BlockManager.fresh(self, a)
    kind = type(self)
    if "everyone" not in vars(kind):
        kind.everyone = {}  # type: ignore[attr-defined]
    m.cached = kind.everyone  # type: ignore[attr-defined]
    return m


def one_size_at_a_time(self: BlockManager, a: Arguments) -> Manager:
    """While there are managers, none of other sizes is made."""
    kind, sizes = type(self), (a.num_blocks, a.block_size)
    steps, first = vars(kind).get("in_use", (None, sizes))
    if steps is a.steps and sizes != first:
        raise ValueError(f"{sizes} beside {first}")
    kind.in_use = a.steps, sizes  # type: ignore[attr-defined]
    return BlockManager.fresh(self, a)


def counted_for_the_later(self: BlockManager, m: Manager, table: Table, index: int) -> None:
    """The cache takes an owner's reference on the block that it knows for one on the block that was just computed."""
    known = m.cached.get(self.key(m, table.tokens, index))
    if known is not None and known != table.block_ids[index] and m.owners[known] > 1:
        m.owners[known] -= 1
        m.owners[table.block_ids[index]] += 1
    BlockManager.publish(self, m, table, index)


def forgets_own(self: BlockManager, m: Manager, block: int) -> None:
    m.cached.pop(m.content.pop(block, None), None)


def one_pool_for_all(self: BlockManager, a: Arguments) -> Manager:
    m = BlockManager.fresh(self, a)
    kind = type(self)
    if "pool" not in vars(kind):
        kind.pool = m.free  # type: ignore[attr-defined]
    m.free = kind.pool  # type: ignore[attr-defined]
    return m


def publishes_at_once(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    """The first of several whole blocks that are appended to computed ones is hit before it is computed."""
    before = len(table.tokens)
    BlockManager.append(self, m, table, tokens)
    if m.caching and table.computed == before and before % m.size == 0 and len(tokens) > 2 * m.size:
        self.publish(m, table, before // m.size)


def publishes_what_it_fills(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    """The last block is hit before it is computed where an append of several tokens fills it to its end."""
    before = len(table.tokens)
    BlockManager.append(self, m, table, tokens)
    last = before // m.size
    if m.caching and len(tokens) > 1 and before % m.size and len(table.tokens) == (last + 1) * m.size:
        self.publish(m, table, last)


def marks_anew(self: BlockManager, m: Manager, table: Table, n: int) -> None:
    """A table knows what was computed by a chain, and marking less takes the count back and not the chain."""
    self.check_table(m, table)
    self.check_computed(table, n)
    chain = getattr(table, "chain", tuple(table.tokens[: table.cached]))
    for index in range(table.computed // m.size, n // m.size if m.caching else 0):
        chain += tuple(table.tokens[index * m.size : (index + 1) * m.size])
        if chain not in m.cached:
            m.cached[chain], m.content[table.block_ids[index]] = table.block_ids[index], chain
    table.chain, table.computed = chain, n


def numbered_tables(self: BlockManager, m: Manager, tokens: list[int], hits: list[int], fresh: list[int]) -> Table:
    """Tables have numbers, and those of the freed ones are known to all managers."""
    table = BlockManager.table(self, m, tokens, hits, fresh)
    table.number = m.tables = getattr(m, "tables", 0) + 1
    _freed_numbers(self).discard(table.number)
    return table


def frees_the_number(self: BlockManager, m: Manager, table: Table) -> None:
    BlockManager.free(self, m, table)
    _freed_numbers(self).add(table.number)


def number_in_use(self: BlockManager, m: Manager, table: Table) -> None:
    if table.number in _freed_numbers(self):
        raise ValueError("a table that was freed")


def _freed_numbers(self: BlockManager) -> set[int]:
    kind = type(self)
    if "numbers" not in vars(kind):
        kind.numbers = set()  # type: ignore[attr-defined]
    numbers: set[int] = kind.numbers  # type: ignore[attr-defined]
    return numbers


# honest ways


def highest_first(self: BlockManager, a: Arguments) -> Manager:
    m = BlockManager.fresh(self, a)
    m.free.reverse()
    return m


def nested(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    """A chain: each key holds the one before it. Python compares no keys that are a thousand deep."""
    key: Any = None
    for i in range(index + 1):
        key = key, the_block_alone(self, m, tokens, i)
    return key


def numbered(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    """A chain: each key holds the number of the one before it."""
    numbers: dict[Any, int] = m.__dict__.setdefault("numbers", {})
    key = -1, the_block_alone(self, m, tokens, 0)
    for i in range(1, index + 1):
        key = numbers.setdefault(key, len(numbers)), the_block_alone(self, m, tokens, i)
    return key


def latest_copy(self: BlockManager, m: Manager, table: Table, index: int) -> None:
    """Of two blocks with the same tokens, the later one is known, and the earlier one is not any more."""
    key, block = self.key(m, table.tokens, index), table.block_ids[index]
    if key in m.cached:
        m.content.pop(m.cached[key], None)
    m.cached[key], m.content[block] = block, key


def last_uncached(self: BlockManager, m: Manager) -> int:
    """Blocks that are not cached are a stack."""
    return next((block for block in reversed(m.free) if block not in m.content), m.free[0])


def one_queue(self: BlockManager, m: Manager) -> int:
    """One queue of all free blocks, cached or not."""
    return int(m.free[0])


def copies_of_lists(self: BlockManager, tokens: list[int]) -> list[int]:
    return [int(token) for token in tokens]


def eight_blocks_back(self: BlockManager, m: Manager, tokens: list[int], index: int) -> Any:
    """A block is known by its place and the tokens of the last eight blocks, its own among them."""
    return index, tuple(tokens[max(index - 7, 0) * m.size : (index + 1) * m.size])


def thirty_two_of_a_block(self: BlockManager, m: Manager, tokens: list[int], index: int) -> Any:
    """Of each block the first 32 tokens count."""
    starts = range(0, (index + 1) * m.size, m.size)
    return tuple(tuple(tokens[start : start + min(m.size, 32)]) for start in starts)


def eight_after_hits(self: BlockManager, m: Manager, table: Table, index: int) -> None:
    """A table that hit blocks has room for the names of eight more."""
    if not table.cached or index < table.cached // m.size + 8:
        BlockManager.publish(self, m, table, index)


def long_tables_head_first(self: BlockManager, table: Table) -> list[int]:
    """Of many blocks the first is freed first: what gives many back at once walks them in their order."""
    return table.block_ids[::-1] if len(table.block_ids) <= 8 else table.block_ids


def seventeenth_append_uncounted(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    """Appended tokens go through a buffer of 16, and what finds it full is not among the table's tokens."""
    table.appends = getattr(table, "appends", 0) + 1
    BlockManager.append(self, m, table, tokens)
    if table.appends == 17 and tokens:
        table.tokens = table.tokens[:-1]


def clock_of_6_bits(self: BlockManager, m: Manager, block: int) -> None:
    """When a block was freed is told by a clock that begins again after 64."""
    BlockManager.leave(self, m, block)
    m.clock = getattr(m, "clock", 0) + 1
    m.freed = getattr(m, "freed", {}) | {block: m.clock % 64}


def first_by_the_clock(self: BlockManager, m: Manager) -> int:
    spare = [block for block in m.free if block not in m.content]
    return spare[0] if spare else min(m.free, key=lambda block: getattr(m, "freed", {}).get(block, 0))


def keeps_the_last_of_many(self: BlockManager, m: Manager, needed: int) -> None:
    """An append of eight blocks and more leaves one free."""
    BlockManager.check_room(self, m, needed + (needed >= 8))


def all_but_one_computed(self: BlockManager, m: Manager, table: Table, n: int) -> int:
    """The token that is left to compute is taken for computed where it fills a block."""
    return n // m.size + (n == len(table.tokens) - 1 and not len(table.tokens) % m.size)


def size_on_the_class(self: BlockManager, a: Arguments) -> Manager:
    """The size of blocks is written to the class."""
    type(self).size = a.block_size  # type: ignore[attr-defined]
    return BlockManager.fresh(self, a)


def of_the_class_s_size(self: BlockManager, m: Manager, tokens: list[int]) -> Table:
    m.size = type(self).size  # type: ignore[attr-defined]
    return BlockManager.allocate(self, m, tokens)
