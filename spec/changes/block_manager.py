"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/block_manager*.py`."""

from __future__ import annotations

from typing import Any

from inferspec.spec.block_manager import BlockManager, Manager, Table, blocks_of
from inferspec.spec.changes.block_manager_hits import the_block_alone
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


def remembers_the_list(self: BlockManager, m: Manager, tokens: list[int]) -> Table:
    table = BlockManager.allocate(self, m, tokens)
    table.asked = tokens
    return table


def grows_the_list(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    """What is appended is put to the list that the table was asked for with, by which nothing is known."""
    BlockManager.append(self, m, table, tokens)
    table.asked += tokens


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


def caching_of_the_last_made(self: BlockManager, a: Arguments) -> Manager:
    """Whether there is a prefix cache is noted where all managers look."""
    manager = BlockManager.fresh(self, a)
    made = vars(type(self)).get("made", [])
    type(self).made = [*made, manager]  # type: ignore[attr-defined]
    for other in made:
        other.caching = a.prefix_caching
    return manager


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
