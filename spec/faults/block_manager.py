"""Mistakes in block managers, and other honest ways to hand out blocks."""

from __future__ import annotations

from typing import Any

from inferspec.spec import block_manager as spec
from inferspec.spec.block_manager import BlockManager, Manager, Table, blocks_of
from inferspec.spec.contract import Arguments, Change, Fault, Requirement, Variant
from inferspec.spec.faults.linear import TIRED

VLLM = "https://github.com/vllm-project/vllm/pull"
NANO = "https://github.com/GeeeekExplorer/nano-vllm"
SGLANG = "https://github.com/sgl-project/sglang"
POST = "nano-vLLM post, parts 1 and 4"


def _quietly(method: str, check: str) -> Change:
    """A method that leaves alone what its check would refuse, and says nothing."""

    def quiet(self: BlockManager, m: Manager, table: Table, **rest: Any) -> None:
        try:
            getattr(BlockManager, check)(self, m, table)
        except ValueError:
            return
        getattr(BlockManager, method)(self, m, table, **rest)

    return {method: quiet}


# tables


def _ids_in_a_byte(self: BlockManager, m: Manager) -> int:
    return BlockManager.take(self, m) % 256


def _one_block_more(self: BlockManager, m: Manager, tokens: list[int]) -> Table:
    """n // block_size + 1 blocks: one too many for whole blocks."""
    table = BlockManager.allocate(self, m, tokens)
    if not len(tokens) % m.size and m.free:
        table.block_ids = [*table.block_ids, self.take(m)]
    return table


def _last_block_missing(self: BlockManager, m: Manager, tokens: list[int]) -> Table:
    table = BlockManager.allocate(self, m, tokens)
    if len(tokens) % m.size and len(table.block_ids) > 1:
        self.leave(m, table.block_ids[-1])
        table.block_ids = table.block_ids[:-1]
    return table


def _append_anew(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    """Appended tokens begin a block of their own."""
    self.check_table(m, table)
    more = blocks_of(len(tokens), m.size)
    self.check_more(m, more)
    table.block_ids = table.block_ids + [self.take(m) for _ in range(more)]
    table.tokens = table.tokens + self.taken(tokens)


def _one_block_an_append(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    """As if every append were of one token: the decode path."""
    self.check_table(m, table)
    if blocks_of(len(table.tokens) + len(tokens), m.size) > len(table.block_ids):
        self.check_more(m, 1)
        table.block_ids = [*table.block_ids, self.take(m)]
    table.tokens = table.tokens + self.taken(tokens)


def _on_the_boundary(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    """A block is taken when the last one has become full, not when a token needs it."""
    BlockManager.append(self, m, table, tokens)
    if not len(table.tokens) % m.size and m.free:
        table.block_ids = [*table.block_ids, self.take(m)]


def _takes_for_nothing(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    """Whole blocks are full: the next token, whether there is one or not, needs another."""
    BlockManager.append(self, m, table, tokens)
    if not tokens and not len(table.tokens) % m.size and m.free:
        table.block_ids = [*table.block_ids, self.take(m)]


def _moves(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    """A growing table is given other blocks, in the place of its old ones."""
    BlockManager.append(self, m, table, tokens)
    if m.free and len(table.tokens) % m.size:
        block = self.take(m)
        self.leave(m, table.block_ids[-1])
        table.block_ids = [*table.block_ids[:-1], block]


def _prepends(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    old = table.block_ids
    BlockManager.append(self, m, table, tokens)
    table.block_ids = [*table.block_ids[len(old) :], *old]


def _tokens_of_the_prompt(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    """Blocks are added for appended tokens that the table then does not count."""
    before = table.tokens
    BlockManager.append(self, m, table, tokens)
    table.tokens = [*before, *tokens[:1]]


def _cached_follows(self: BlockManager, m: Manager, table: Table, n: int) -> None:
    """num_cached_tokens moves on with what is computed."""
    BlockManager.mark_computed(self, m, table, n)
    table.cached = max(table.cached, n // m.size * m.size)


# who has what


def _not_owned(self: BlockManager, m: Manager) -> int:
    """A block comes off the free list without an owner, and leaving makes it -1."""
    block = self.next(m)
    m.free.remove(block)
    self.forget(m, block)
    m.owners[block] = 0
    return block


def _taken_and_free(self: BlockManager, m: Manager) -> int:
    """The last block of the pool is handed out and stays in the free list."""
    block = BlockManager.take(self, m)
    if not m.free:
        m.free.append(block)
    return block


def _freed_at_first(self: BlockManager, m: Manager, block: int) -> None:
    """The first table that leaves frees a shared block."""
    m.owners[block] -= 1
    if block not in m.free:
        m.free.append(block)


def _freed_below_zero(self: BlockManager, m: Manager, block: int) -> None:
    """ref_count > 0 was meant; a block that was shared stays in use for ever."""
    m.owners[block] -= 1
    if m.owners[block] == 0 and not m.shared.get(block):
        m.free.append(block)


def _shares_noting(self: BlockManager, m: Manager, block: int) -> None:
    m.__dict__.setdefault("shared", {})[block] = True
    BlockManager.share(self, m, block)


def _fresh_noting(self: BlockManager, a: Arguments) -> Manager:
    m = BlockManager.fresh(self, a)
    m.shared = {}
    return m


def _counts_shared_twice(self: BlockManager, m: Manager) -> int:
    return len(m.owners) - sum(m.owners)


def _counts_cached_as_used(self: BlockManager, m: Manager) -> int:
    return sum(block not in m.content for block in m.free)


def _loses_the_last(self: BlockManager, table: Table) -> list[int]:
    """A table gives back its full blocks alone."""
    return table.block_ids[: max(1, len(table.tokens) // table.home.size)][::-1]


def _gives_back_the_prompt(self: BlockManager, m: Manager, tokens: list[int]) -> Table:
    table = BlockManager.allocate(self, m, tokens)
    table.first = len(table.block_ids)
    return table


def _prompt_alone(self: BlockManager, table: Table) -> list[int]:
    return table.block_ids[: table.first][::-1]


def _hits_not_given_back(self: BlockManager, table: Table) -> list[int]:
    return table.block_ids[table.cached // table.home.size :][::-1]


def _reserves_one(self: BlockManager, m: Manager, needed: int) -> None:
    if needed > len(m.free) - 1:
        raise ValueError("one block is kept back")


# hits


def _one_block_at_most(self: BlockManager, m: Manager, tokens: list[int]) -> list[int]:
    return BlockManager.hits(self, m, tokens)[:1]


def _one_short(self: BlockManager, m: Manager, tokens: list[int]) -> int:
    """A whole block more than the last token is left out."""
    return max(0, (len(tokens) - 1) // m.size - 1)


def _only_in_use(self: BlockManager, m: Manager, tokens: list[int]) -> list[int]:
    """Blocks that are free are not hit."""
    return [block for block in BlockManager.hits(self, m, tokens) if block not in m.free]


def _nothing_left(self: BlockManager, m: Manager, tokens: list[int]) -> int:
    return len(tokens) // m.size


def _all_but_one(self: BlockManager, m: Manager, tokens: list[int], hits: list[int], fresh: list[int]) -> Table:
    """The last block is hit too and all of its tokens but one are said to be cached."""
    table = BlockManager.table(self, m, tokens, hits, fresh)
    table.cached = min(table.cached, len(tokens) - 1)
    return table


def _at_allocation(self: BlockManager, m: Manager, tokens: list[int]) -> Table:
    """Full blocks are in the cache as soon as they are taken."""
    table = BlockManager.allocate(self, m, tokens)
    if m.caching:
        for index in range(table.cached // m.size, len(tokens) // m.size):
            self.publish(m, table, index)
    return table


def _at_append(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    """A block that an append fills is in the cache before it is computed."""
    BlockManager.append(self, m, table, tokens)
    if m.caching:
        for index in range(table.computed // m.size, len(table.tokens) // m.size):
            self.publish(m, table, index)


def _all_at_the_first_mark(self: BlockManager, m: Manager, table: Table, n: int) -> int:
    """Any mark is taken for all of the prompt."""
    return len(table.tokens) // m.size if n else 0


def _rounded_up(self: BlockManager, m: Manager, table: Table, n: int) -> int:
    """A block of which the first token is computed counts as computed."""
    return min(blocks_of(n, m.size), len(table.tokens) // m.size)


def _the_block_alone(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    return tuple(tokens[index * m.size : (index + 1) * m.size])


def _block_and_place(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    return index, _the_block_alone(self, m, tokens, index)


def _block_and_the_one_before(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    return tuple(tokens[max(index - 1, 0) * m.size : (index + 1) * m.size]), index


def _any_order(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    return tuple(sorted(tokens[: (index + 1) * m.size]))


def _first_and_last(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    line = tokens[: (index + 1) * m.size]
    return line[0], line[-1], sum(line), index


def _behind_a_block(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    """The parent is named by the block that the cache has for it, which other tokens may take."""
    parent = m.cached.get(_behind_a_block(self, m, tokens, index - 1), -1) if index else -1
    return parent, _the_block_alone(self, m, tokens, index)


def _hash_alone(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    """A chained hash, and the tokens not compared."""
    chain = 0
    for i in range(index + 1):
        chain = hash((chain, tuple(tokens[i * m.size : (i + 1) * m.size])))
    return chain


def _hash_in_the_chain(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    """The tokens of the block are compared; those before it are known by their hash."""
    return (_hash_alone(self, m, tokens, index - 1) if index else 0), _the_block_alone(self, m, tokens, index)


def _low_bits(bits: int) -> Change:
    def key(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
        return tuple(int(token) & (2**bits - 1) for token in tokens[: (index + 1) * m.size])

    return {"key": key}


def _digits(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    """A text of the tokens, with nothing between them."""
    own = (tokens[i * m.size : (i + 1) * m.size] for i in range(index + 1))
    return tuple("".join(str(int(token)) for token in block) for block in own)


def _float32(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    """Tokens go through a hash of their 61-bit remainders."""
    return tuple(int(token) % spec.MERSENNE for token in tokens[: (index + 1) * m.size])


def _prompts_alone(self: BlockManager, m: Manager, table: Table, n: int) -> int:
    """Appended tokens are not cached."""
    return min(n, table.prompt) // m.size


def _noting_the_prompt(self: BlockManager, m: Manager, tokens: list[int], hits: list[int], fresh: list[int]) -> Table:
    table = BlockManager.table(self, m, tokens, hits, fresh)
    table.prompt = len(tokens)
    return table


def _block_by_block(self: BlockManager, m: Manager, table: Table, n: int) -> None:
    """Only the block that has just become full is cached: the decode path."""
    done, table.computed = table.computed, max(table.computed, n // m.size * m.size - m.size)
    if len(table.tokens) == table.prompt:
        table.computed = done
    BlockManager.mark_computed(self, m, table, n)


# what is free and cached


def _forgets_when_free(self: BlockManager, m: Manager, block: int) -> None:
    BlockManager.leave(self, m, block)
    if block in m.free:
        self.forget(m, block)


def _reset_when_hit(self: BlockManager, m: Manager, block: int) -> None:
    """A free block that is hit is reset like any that is taken: it is hit once, and then no more."""
    if block in m.free:
        self.forget(m, block)
    BlockManager.share(self, m, block)


def _stays_in_the_free_list(self: BlockManager, m: Manager, block: int) -> None:
    m.owners[block] += 1


def _last_hit_stays_free(self: BlockManager, m: Manager, tokens: list[int], hits: list[int], fresh: list[int]) -> Table:
    """The lock moves on to the parent before it counts: the last block of a match is not held."""
    if hits and m.owners[hits[-1]] == 1:
        m.free.append(hits[-1])
    return BlockManager.table(self, m, tokens, hits, fresh)


def _last_in_first_out(self: BlockManager, m: Manager) -> int:
    return next((block for block in m.free if block not in m.content), m.free[-1])


def _head_first(self: BlockManager, table: Table) -> list[int]:
    return list(table.block_ids)


def _oldest_of_the_pool(self: BlockManager, m: Manager) -> int:
    """The lowest id, whoever was freed when."""
    return min(m.free, key=lambda block: (block in m.content, block))


def _by_first_use(self: BlockManager, m: Manager, block: int) -> None:
    """First in, first out: a block that is hit and freed again keeps its old place."""
    BlockManager.leave(self, m, block)
    if m.owners[block] == 0:
        m.free.sort(key=lambda other: m.born.get(other, 0))


def _noting_births(self: BlockManager, m: Manager, table: Table, index: int) -> None:
    BlockManager.publish(self, m, table, index)
    m.born[table.block_ids[index]] = m.clock = m.clock + 1


def _fresh_with_births(self: BlockManager, a: Arguments) -> Manager:
    m = BlockManager.fresh(self, a)
    m.born, m.clock = {}, 0
    return m


def _cached_first(self: BlockManager, m: Manager) -> int:
    return next((block for block in m.free if block in m.content), m.free[0])


def _stale(self: BlockManager, m: Manager, block: int) -> None:
    """What the cache knew of a block that is taken stays there."""
    m.content.pop(block, None)


def _publishes_over(self: BlockManager, m: Manager, table: Table, index: int) -> None:
    """Two blocks with the same tokens: the later one is cached, and forgetting either forgets both."""
    key, block = self.key(m, table.tokens, index), table.block_ids[index]
    m.cached[key], m.content[block] = block, key


def _forgets_either(self: BlockManager, m: Manager, block: int) -> None:
    m.cached.pop(m.content.pop(block, None), None)


# room


def _takes_its_hits(self: BlockManager, m: Manager, tokens: list[int]) -> Table:
    """Blocks for the rest are taken before those that are hit are held."""
    hits = self.hits(m, tokens)
    self.check_room(m, self.needed(m, tokens, hits))
    fresh = [self.take(m) for _ in range(blocks_of(len(tokens), m.size) - len(hits))]
    for block in hits:
        self.share(m, block)
    return self.table(m, tokens, hits, fresh)


def _free_hits_not_counted(self: BlockManager, m: Manager, tokens: list[int], hits: list[int]) -> int:
    return blocks_of(len(tokens), m.size) - len(hits)


def _free_hits_counted_twice(self: BlockManager, m: Manager, tokens: list[int], hits: list[int]) -> int:
    return blocks_of(len(tokens), m.size) - len(hits) + 2 * sum(block in m.free for block in hits)


def _hits_counted(self: BlockManager, m: Manager, tokens: list[int], hits: list[int]) -> int:
    return blocks_of(len(tokens), m.size)


def _as_far_as_it_goes(self: BlockManager, m: Manager, tokens: list[int]) -> Table:
    """What does not fit is left out."""
    hits = self.hits(m, tokens)
    for block in hits:
        self.share(m, block)
    more = blocks_of(len(tokens), m.size) - len(hits)
    return self.table(m, tokens, hits, [self.take(m) for _ in range(min(more, len(m.free)))])


def _append_as_far_as_it_goes(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    self.check_table(m, table)
    more = blocks_of(len(table.tokens) + len(tokens), m.size) - len(table.block_ids)
    table.block_ids = table.block_ids + [self.take(m) for _ in range(min(more, len(m.free)))]
    table.tokens = table.tokens + self.taken(tokens)


def _no_copy_of_the_count(self: BlockManager, m: Manager, needed: int) -> None:
    """can_append asks for a block, whatever the number of tokens."""
    if not m.free and needed:
        raise ValueError("no block")


def _last_taken_again(self: BlockManager, m: Manager) -> int:
    """An empty free list gives a block that is in use."""
    return BlockManager.take(self, m) if m.free else 0


def _hits_before_checks(self: BlockManager, m: Manager, tokens: list[int]) -> Table:
    """Hits are held before it is known whether the rest fits."""
    hits = self.hits(m, tokens)
    needed = self.needed(m, tokens, hits)
    for block in hits:
        self.share(m, block)
    self.check_room(m, needed - sum(m.owners[block] == 1 for block in hits))
    fresh = [self.take(m) for _ in range(blocks_of(len(tokens), m.size) - len(hits))]
    return self.table(m, tokens, hits, fresh)


def _takes_until_refused(self: BlockManager, m: Manager, tokens: list[int]) -> Table:
    """Blocks are taken one by one, until there is none."""
    hits = self.hits(m, tokens)
    for block in hits:
        self.share(m, block)
    fresh = [self.take(m) for _ in range(blocks_of(len(tokens), m.size) - len(hits))]
    return self.table(m, tokens, hits, fresh)


def _rolls_back_forgetting(self: BlockManager, m: Manager, tokens: list[int]) -> Table:
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


def _takes_and_gives_back(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    missing = blocks_of(len(table.tokens) + len(tokens), m.size) - len(table.block_ids)
    if table.home is m and missing > len(m.free):
        for block in [self.take(m) for _ in list(m.free)]:
            self.leave(m, block)
    BlockManager.append(self, m, table, tokens)


def _appends_until_refused(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    self.check_table(m, table)
    more = blocks_of(len(table.tokens) + len(tokens), m.size) - len(table.block_ids)
    for _ in range(more):
        table.block_ids = [*table.block_ids, self.take(m)]
    table.tokens = table.tokens + self.taken(tokens)


def _tokens_before_checks(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    self.check_table(m, table)
    more = blocks_of(len(table.tokens) + len(tokens), m.size) - len(table.block_ids)
    table.tokens = table.tokens + self.taken(tokens)
    self.check_more(m, more)
    table.block_ids = table.block_ids + [self.take(m) for _ in range(more)]


# misuse


def _unchecked(self: BlockManager, *rest: Any) -> None:
    """Nothing is refused."""


def _frees_again(self: BlockManager, m: Manager, table: Table) -> None:
    """A freed table still has its blocks, and they are given back once more."""
    self.check_home(m, table)
    for block in self.leaving(table):
        m.owners[block] -= 1
        if m.owners[block] <= 0:
            m.free.append(block)
    again, table.home = table.home is None, None
    if again:
        raise ValueError("a table that was freed")


def _foreign_before_checks(self: BlockManager, m: Manager, table: Table) -> None:
    """The blocks of a foreign table are let go of before it is refused."""
    if table.home is not None and table.home is not m:
        for block in table.block_ids:
            if block not in m.free:
                m.free.append(block)
                m.owners[block] = 0
    BlockManager.free(self, m, table)


def _ends_before_checks(self: BlockManager, m: Manager, table: Table) -> None:
    """A table is done with before it is known whose it is."""
    home, table.home = table.home, None
    if home is not m:
        raise ValueError("no table of this manager")
    table.home = home
    BlockManager.free(self, m, table)


def _no_lower_bound(self: BlockManager, table: Table, n: int) -> None:
    if n > len(table.tokens):
        raise ValueError("too many")


def _up_to_the_room(self: BlockManager, table: Table, n: int) -> None:
    if not 0 <= n <= len(table.block_ids) * table.home.size:
        raise ValueError("too many")


def _marks_before_checks(self: BlockManager, m: Manager, table: Table, n: int) -> None:
    BlockManager.mark_computed(self, m, table, min(max(n, 0), len(table.tokens)))
    self.check_computed(table, n)


def _counts_before_checks(self: BlockManager, m: Manager, table: Table, n: int) -> None:
    """What is computed moves on before a mark is refused, and later marks begin there."""
    self.check_table(m, table)
    if n > len(table.tokens):
        table.computed = n // m.size * m.size
    BlockManager.mark_computed(self, m, table, n)


# without caching, the caller, other managers


def _always_caching(self: BlockManager, a: Arguments) -> Manager:
    m = BlockManager.fresh(self, a)
    m.caching = True
    return m


def _hits_in_secret(self: BlockManager, m: Manager, tokens: list[int], hits: list[int], fresh: list[int]) -> Table:
    """Without caching, blocks are shared and said not to be cached."""
    table = BlockManager.table(self, m, tokens, hits, fresh)
    if not m.wanted:
        table.cached = 0
    return table


def _caching_in_secret(self: BlockManager, a: Arguments) -> Manager:
    m = _always_caching(self, a)
    m.wanted = a.prefix_caching
    return m


def _kept_as_given(self: BlockManager, tokens: list[int]) -> list[int]:
    return tokens


def _consumes(self: BlockManager, m: Manager, tokens: list[int]) -> Table:
    table = BlockManager.allocate(self, m, tokens)
    tokens.pop()
    return table


def _notes_the_prompt(self: BlockManager, m: Manager, table: Table, tokens: list[int]) -> None:
    """Where the prompt's blocks end is kept."""
    own = len(table.block_ids)
    BlockManager.append(self, m, table, tokens)
    table.__dict__.setdefault("own", own)


def _prompt_first(self: BlockManager, table: Table) -> list[int]:
    own = vars(table).get("own", len(table.block_ids))
    return table.block_ids[:own][::-1] + table.block_ids[own:][::-1]


def _touches(self: BlockManager, m: Manager, tokens: list[int]) -> Table:
    """What is looked up was used just now, whatever comes of the prompt."""
    for block in self.hits(m, tokens):
        if block in m.free:
            m.free.remove(block)
            m.free.append(block)
    return BlockManager.allocate(self, m, tokens)


def _eight_blocks(self: BlockManager, m: Manager, tokens: list[int]) -> list[int]:
    return BlockManager.hits(self, m, tokens)[:8]


def _one_cache_for_all(self: BlockManager, a: Arguments) -> Manager:
    """The cache is a default argument."""
    m = BlockManager.fresh(self, a)
    kind = type(self)
    if "everyone" not in vars(kind):
        kind.everyone = {}  # type: ignore[attr-defined]
    m.cached = kind.everyone  # type: ignore[attr-defined]
    return m


def _forgets_own(self: BlockManager, m: Manager, block: int) -> None:
    m.cached.pop(m.content.pop(block, None), None)


def _one_pool_for_all(self: BlockManager, a: Arguments) -> Manager:
    m = BlockManager.fresh(self, a)
    kind = type(self)
    if "pool" not in vars(kind):
        kind.pool = m.free  # type: ignore[attr-defined]
    m.free = kind.pool  # type: ignore[attr-defined]
    return m


def _fault(name: str, text: str, kills: Requirement, change: Change, source: str) -> Fault:
    return Fault(f"block-manager-{name}", text, kills, change, source)


FAULTS: tuple[Fault, ...] = (
    _fault(
        "one-block-more",
        "whole blocks of tokens get a block more",
        spec.BLK_01,
        {"allocate": _one_block_more},
        "PROPERTIES PG3",
    ),
    _fault("ids-in-a-byte", "block ids have 8 bits", spec.BLK_01, {"take": _ids_in_a_byte}, "PROPERTIES X8"),
    _fault(
        "last-block-missing",
        "tokens past the last whole block get none",
        spec.BLK_01,
        {"allocate": _last_block_missing},
        "PROPERTIES PG3",
    ),
    _fault(
        "append-anew",
        "appended tokens begin a block of their own",
        spec.BLK_02,
        {"append": _append_anew},
        "PROPERTIES PG3",
    ),
    _fault(
        "one-block-an-append",
        "an append takes one block at most",
        spec.BLK_02,
        {"append": _one_block_an_append},
        f"{NANO}/blob/main/nanovllm/engine/block_manager.py",
    ),
    _fault(
        "on-the-boundary",
        "a block is taken as soon as the last one is full",
        spec.BLK_02,
        {"append": _on_the_boundary},
        "PROPERTIES PG3",
    ),
    _fault(
        "takes-for-nothing",
        "an append of no tokens to whole blocks takes a block",
        spec.BLK_02,
        {"append": _takes_for_nothing},
        "PROPERTIES PG3",
    ),
    _fault(
        "moves", "an append puts the last tokens into another block", spec.BLK_02, {"append": _moves}, "PROPERTIES PG6"
    ),
    _fault("prepends", "new blocks come before those that the table has", spec.BLK_02, {"append": _prepends}, TIRED),
    _fault(
        "append-counts-one",
        "an append counts one token whatever it was given",
        spec.BLK_03,
        {"append": _tokens_of_the_prompt},
        "PROPERTIES PC8",
    ),
    _fault(
        "cached-follows",
        "num_cached_tokens grows as tokens are computed",
        spec.BLK_03,
        {"mark_computed": _cached_follows},
        f"{NANO}/commit/77dd709",
    ),
    _fault(
        "taken-and-free",
        "the last block of the pool is handed out and stays free",
        spec.BLK_04,
        {"take": _taken_and_free},
        "https://github.com/NVIDIA/TensorRT-LLM/pull/14937",
    ),
    _fault(
        "freed-at-first",
        "the first owner that leaves frees a shared block",
        spec.BLK_14,
        {"leave": _freed_at_first},
        POST,
    ),
    _fault(
        "counts-shared-twice",
        "num_free counts a shared block once for each owner",
        spec.BLK_05,
        {"num_free": _counts_shared_twice},
        f"{SGLANG}/issues/35270",
    ),
    _fault(
        "counts-cached-as-used",
        "num_free leaves out free blocks that are cached",
        spec.BLK_05,
        {"num_free": _counts_cached_as_used},
        f"{SGLANG}/pull/10637",
    ),
    _fault(
        "no-first-owner",
        "a block that is taken has no owner, and is never given back",
        spec.BLK_06,
        {"take": _not_owned},
        "https://github.com/Wenyueh/MinivLLM/pull/84",
    ),
    _fault(
        "shared-never-freed",
        "a block that was ever shared is never free again",
        spec.BLK_06,
        {"fresh": _fresh_noting, "share": _shares_noting, "leave": _freed_below_zero},
        "PROPERTIES PG4",
    ),
    _fault(
        "tail-not-given-back",
        "the last block, full in part, is not given back",
        spec.BLK_06,
        {"leaving": _loses_the_last},
        "PROPERTIES PG4",
    ),
    _fault(
        "appended-not-given-back",
        "blocks that were appended are not given back",
        spec.BLK_06,
        {"allocate": _gives_back_the_prompt, "leaving": _prompt_alone},
        "PROPERTIES PG4",
    ),
    _fault(
        "hits-not-given-back",
        "blocks that were hit are not given back",
        spec.BLK_06,
        {"leaving": _hits_not_given_back},
        f"{VLLM}/11565",
    ),
    _fault(
        "hits-one-block", "only the first block is hit", spec.BLK_07, {"hits": _one_block_at_most}, "PROPERTIES PC9"
    ),
    _fault(
        "hits-eight-blocks", "no more than eight blocks are hit", spec.BLK_07, {"hits": _eight_blocks}, "PROPERTIES PC9"
    ),
    _fault(
        "hits-one-short",
        "a block more than needed is left to compute",
        spec.BLK_07,
        {"hit_limit": _one_short},
        f"{VLLM}/11186",
    ),
    _fault(
        "nothing-left",
        "a prompt that is cached to its end is hit to its end",
        spec.BLK_08,
        {"hit_limit": _nothing_left},
        f"{VLLM}/3239",
    ),
    _fault(
        "all-but-one",
        "of a prompt that is cached to its end all tokens but one are, in part of a block",
        spec.BLK_08,
        {"hit_limit": _nothing_left, "table": _all_but_one},
        f"{VLLM}/11186",
    ),
    _fault(
        "cached-at-allocation",
        "blocks are hit before they are computed",
        spec.BLK_09,
        {"allocate": _at_allocation},
        f"{NANO}/commit/f64d821",
    ),
    _fault(
        "cached-at-append",
        "a block that an append fills is hit before it is computed",
        spec.BLK_12,
        {"append": _at_append},
        f"{NANO}/commit/f64d821",
    ),
    _fault(
        "first-chunk-for-all",
        "one computed chunk makes the whole prompt visible",
        spec.BLK_09,
        {"whole_blocks": _all_at_the_first_mark},
        f"{NANO}/commit/f64d821",
    ),
    _fault(
        "rounded-up",
        "a block that is computed in part is hit",
        spec.BLK_09,
        {"whole_blocks": _rounded_up},
        "PROPERTIES PC5",
    ),
    _fault("block-alone", "a block is known by its own tokens alone", spec.BLK_10, {"key": _the_block_alone}, POST),
    _fault(
        "behind-a-block",
        "a block is known by its tokens and the block that has those before it",
        spec.BLK_10,
        {"key": _behind_a_block},
        "PROPERTIES PC3, PC4",
    ),
    _fault(
        "block-and-place",
        "a block is known by its tokens and its place",
        spec.BLK_10,
        {"key": _block_and_place},
        "PROPERTIES PC3",
    ),
    _fault(
        "one-parent",
        "a block is known by its tokens and those of the block before",
        spec.BLK_10,
        {"key": _block_and_the_one_before},
        f"{POST}: a parent hash that is never set",
    ),
    _fault("any-order", "the same tokens in another order are hit", spec.BLK_11, {"key": _any_order}, "PROPERTIES PC3"),
    _fault(
        "sums", "tokens are known by a checksum of few of them", spec.BLK_11, {"key": _first_and_last}, "PROPERTIES PC3"
    ),
    _fault(
        "hash-alone", "tokens with one hash are taken for the same", spec.BLK_11, {"key": _hash_alone}, "PROPERTIES PC3"
    ),
    _fault(
        "hash-in-the-chain",
        "the tokens before a block are known by their hash",
        spec.BLK_11,
        {"key": _hash_in_the_chain},
        POST,
    ),
    _fault("digits", "tokens are known by their digits in a row", spec.BLK_11, {"key": _digits}, "PROPERTIES PC3"),
    _fault(
        "low-byte",
        "of a token the low byte counts",
        spec.BLK_11,
        _low_bits(8),
        "https://github.com/waybarrios/vllm-mlx/pull/444",
    ),
    _fault(
        "sixteen-bits",
        "of a token 16 bits count",
        spec.BLK_11,
        _low_bits(16),
        "https://github.com/waybarrios/vllm-mlx/pull/444",
    ),
    _fault("thirty-two-bits", "of a token 32 bits count", spec.BLK_11, _low_bits(32), "PROPERTIES PC3, X8"),
    _fault(
        "python-remainder", "tokens are known by the hash of an int", spec.BLK_11, {"key": _float32}, "PROPERTIES PC3"
    ),
    _fault(
        "prompts-alone",
        "what was appended is never cached",
        spec.BLK_12,
        {"table": _noting_the_prompt, "whole_blocks": _prompts_alone},
        f"{VLLM}/11186",
    ),
    _fault(
        "last-block-alone",
        "of blocks that were filled together only the last is cached",
        spec.BLK_12,
        {"table": _noting_the_prompt, "mark_computed": _block_by_block},
        "PROPERTIES PC9",
    ),
    _fault(
        "forgets-when-free",
        "a block that is freed is forgotten",
        spec.BLK_13,
        {"leave": _forgets_when_free},
        "PROPERTIES PC6",
    ),
    _fault(
        "reset-when-hit",
        "a free block is hit once and never again",
        spec.BLK_13,
        {"share": _reset_when_hit},
        f"{NANO}/commit/9fa256a",
    ),
    _fault("only-in-use", "blocks that are free are not hit", spec.BLK_13, {"hits": _only_in_use}, "PROPERTIES PC6"),
    _fault(
        "hit-stays-free",
        "a free block that is hit stays in the free list",
        spec.BLK_14,
        {"share": _stays_in_the_free_list},
        "PROPERTIES PC6",
    ),
    _fault(
        "last-hit-not-held",
        "the last block of a hit is not held",
        spec.BLK_14,
        {"table": _last_hit_stays_free},
        "https://github.com/sgl-project/mini-sglang/pull/52",
    ),
    _fault(
        "last-in-first-out",
        "the block that was freed last is taken first",
        spec.BLK_15,
        {"next": _last_in_first_out},
        f"{POST}: a free list that is a stack",
    ),
    _fault(
        "prompt-first",
        "of a table that grew the prompt's blocks are evicted before what was appended",
        spec.BLK_15,
        {"append": _notes_the_prompt, "leaving": _prompt_first},
        "PROPERTIES PC9",
    ),
    _fault(
        "head-first",
        "of one table the first block is evicted first",
        spec.BLK_15,
        {"leaving": _head_first},
        "PROPERTIES PC9",
    ),
    _fault(
        "lowest-id-first",
        "the block of the lowest id is evicted first",
        spec.BLK_15,
        {"next": _oldest_of_the_pool},
        TIRED,
    ),
    _fault(
        "first-in-first-out",
        "a hit does not save a block from its turn",
        spec.BLK_15,
        {"fresh": _fresh_with_births, "publish": _noting_births, "leave": _by_first_use},
        "PROPERTIES PC9",
    ),
    _fault(
        "cached-first", "cached blocks are evicted while others are free", spec.BLK_16, {"next": _cached_first}, TIRED
    ),
    _fault(
        "stale",
        "the cache still knows a block that was taken",
        spec.BLK_17,
        {"forget": _stale, "publish": _publishes_over},
        f"{VLLM}/4761",
    ),
    _fault(
        "takes-its-hits",
        "an allocation takes blocks that it hits",
        spec.BLK_18,
        {"allocate": _takes_its_hits},
        f"{VLLM}/11565",
    ),
    _fault(
        "free-hits-not-counted",
        "free blocks that are hit count as none",
        spec.BLK_18,
        {"needed": _free_hits_not_counted},
        f"{VLLM}/11565",
    ),
    _fault(
        "free-hits-counted-twice",
        "free blocks that are hit count twice",
        spec.BLK_18,
        {"needed": _free_hits_counted_twice},
        f"{VLLM}/11565",
    ),
    _fault(
        "as-far-as-it-goes",
        "a prompt that does not fit gets what there is",
        spec.BLK_19,
        {"allocate": _as_far_as_it_goes},
        "PROPERTIES PG5",
    ),
    _fault(
        "in-use-again",
        "an empty pool hands out a block that is in use",
        spec.BLK_19,
        {"check_room": _unchecked, "take": _last_taken_again},
        POST,
    ),
    _fault(
        "hits-counted",
        "blocks that are hit in use count as needed",
        spec.BLK_20,
        {"needed": _hits_counted},
        f"{VLLM}/11565",
    ),
    _fault(
        "one-kept-back",
        "one block of the pool is never used",
        spec.BLK_20,
        {"check_room": _reserves_one},
        "https://github.com/vllm-project/vllm-metal/commit/9b27db0",
    ),
    _fault(
        "append-as-far-as-it-goes",
        "an append that does not fit gets what there is",
        spec.BLK_21,
        {"append": _append_as_far_as_it_goes},
        "PROPERTIES PG5",
    ),
    _fault(
        "append-in-use-again",
        "an append to a full pool gets a block that is in use",
        spec.BLK_21,
        {"check_more": _unchecked, "take": _last_taken_again},
        f"{POST}: admission per request",
    ),
    _fault(
        "hits-held-before-checks",
        "a prompt that is refused keeps what it hit",
        spec.BLK_22,
        {"allocate": _hits_before_checks},
        f"{VLLM}/11565",
    ),
    _fault(
        "takes-until-refused",
        "a prompt that is refused keeps what it got",
        spec.BLK_22,
        {"allocate": _takes_until_refused},
        POST,
    ),
    _fault(
        "refusal-touches",
        "what a refused prompt would have hit is evicted later for it",
        spec.BLK_22,
        {"allocate": _touches},
        "PROPERTIES PC7",
    ),
    _fault(
        "refusal-forgets",
        "a prompt that is refused empties the cache",
        spec.BLK_22,
        {"allocate": _rolls_back_forgetting},
        "PROPERTIES PC7, PG5",
    ),
    _fault(
        "appends-until-refused",
        "an append that is refused keeps what it got",
        spec.BLK_23,
        {"append": _appends_until_refused},
        POST,
    ),
    _fault(
        "takes-and-gives-back",
        "an append that is refused took all free blocks and gave them back, and the cache has forgotten them",
        spec.BLK_23,
        {"append": _takes_and_gives_back},
        "PROPERTIES PG5",
    ),
    _fault(
        "append-one-asked",
        "an append asks for one block and fails at the second",
        spec.BLK_23,
        {"check_more": _no_copy_of_the_count, "append": _appends_until_refused},
        f"{NANO}/blob/main/nanovllm/engine/block_manager.py",
    ),
    _fault(
        "tokens-before-checks",
        "an append that is refused has counted its tokens",
        spec.BLK_23,
        {"append": _tokens_before_checks},
        "PROPERTIES PG5",
    ),
    _fault("double-free", "a table is freed twice", spec.BLK_24, {"check_used": _unchecked}, POST),
    _fault(
        "quiet-double-free",
        "a second free is ignored without a word",
        spec.BLK_24,
        _quietly("free", "check_used"),
        "PROPERTIES PG2",
    ),
    _fault(
        "quiet-late-append",
        "an append to a freed table is ignored without a word",
        spec.BLK_24,
        _quietly("append", "check_used"),
        "PROPERTIES PG2",
    ),
    _fault(
        "quiet-late-mark",
        "a mark of a freed table is ignored without a word",
        spec.BLK_24,
        _quietly("mark_computed", "check_used"),
        "PROPERTIES PG2",
    ),
    _fault("any-table", "tables of other managers are used", spec.BLK_25, {"check_home": _unchecked}, "PROPERTIES PG2"),
    _fault(
        "quiet-foreign-free",
        "a foreign table is not freed, without a word",
        spec.BLK_25,
        _quietly("free", "check_home"),
        "PROPERTIES PG2",
    ),
    _fault(
        "frees-again-and-refuses",
        "a second free is refused when its blocks are in the free list twice",
        spec.BLK_26,
        {"free": _frees_again},
        "https://github.com/NVIDIA/TensorRT-LLM/pull/14937",
    ),
    _fault(
        "foreign-freed-and-refused",
        "a foreign table is refused when blocks of its ids are free",
        spec.BLK_26,
        {"free": _foreign_before_checks},
        "PROPERTIES PG2",
    ),
    _fault(
        "foreign-ends",
        "a foreign table that is refused is of no use at home either",
        spec.BLK_26,
        {"free": _ends_before_checks},
        "PROPERTIES PG2",
    ),
    _fault(
        "negative-marks",
        "marking fewer tokens than none is taken",
        spec.BLK_27,
        {"check_computed": _no_lower_bound},
        "PROPERTIES X9",
    ),
    _fault(
        "marks-past-the-end",
        "marks up to the end of the last block are taken",
        spec.BLK_27,
        {"check_computed": _up_to_the_room},
        "PROPERTIES X9",
    ),
    _fault(
        "marks-before-checks",
        "a mark that is refused marks all tokens",
        spec.BLK_28,
        {"mark_computed": _marks_before_checks},
        "PROPERTIES X9, PC5",
    ),
    _fault(
        "counts-before-checks",
        "after a mark that was refused, blocks are left out",
        spec.BLK_28,
        {"mark_computed": _counts_before_checks},
        "PROPERTIES X9",
    ),
    _fault("always-caching", "prefix_caching is ignored", spec.BLK_29, {"fresh": _always_caching}, "PROPERTIES X13"),
    _fault(
        "shares-in-secret",
        "without prefix caching blocks are shared and not told",
        spec.BLK_29,
        {"fresh": _caching_in_secret, "table": _hits_in_secret},
        "PROPERTIES X13",
    ),
    _fault(
        "kept-as-given", "a table keeps the caller's own list", spec.BLK_30, {"taken": _kept_as_given}, "PROPERTIES X6"
    ),
    _fault(
        "consumes",
        "an allocation takes a token off the caller's list",
        spec.BLK_30,
        {"allocate": _consumes},
        "PROPERTIES X6",
    ),
    _fault(
        "one-cache-for-all",
        "managers share one cache",
        spec.BLK_31,
        {"fresh": _one_cache_for_all, "forget": _forgets_own},
        "PROPERTIES X7",
    ),
    _fault(
        "one-pool-for-all", "managers share one free list", spec.BLK_31, {"fresh": _one_pool_for_all}, "PROPERTIES X7"
    ),
    _fault("any-pool", "a pool of nothing is made", spec.BLK_32, {"guard": _unchecked}, "PROPERTIES X9"),
)


# honest ways


def _highest_first(self: BlockManager, a: Arguments) -> Manager:
    m = BlockManager.fresh(self, a)
    m.free.reverse()
    return m


def _nested(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    """A chain: each key holds the one before it."""
    key: Any = None
    for i in range(index + 1):
        key = key, _the_block_alone(self, m, tokens, i)
    return key


def _latest_copy(self: BlockManager, m: Manager, table: Table, index: int) -> None:
    """Of two blocks with the same tokens, the later one is known, and the earlier one is not any more."""
    key, block = self.key(m, table.tokens, index), table.block_ids[index]
    if key in m.cached:
        m.content.pop(m.cached[key], None)
    m.cached[key], m.content[block] = block, key


def _last_uncached(self: BlockManager, m: Manager) -> int:
    """Blocks that are not cached are a stack."""
    return next((block for block in reversed(m.free) if block not in m.content), m.free[0])


def _one_queue(self: BlockManager, m: Manager) -> int:
    """One queue of all free blocks, cached or not."""
    return int(m.free[0])


def _copies_of_lists(self: BlockManager, tokens: list[int]) -> list[int]:
    return [int(token) for token in tokens]


VARIANTS: tuple[Variant, ...] = (
    Variant(
        "block-manager-highest-first",
        "untouched blocks from the last one on",
        "BlockManager",
        {"fresh": _highest_first},
    ),
    Variant("block-manager-nested-keys", "keys that hold the key before", "BlockManager", {"key": _nested}),
    Variant(
        "block-manager-latest-copy",
        "the later of two blocks with the same tokens is hit",
        "BlockManager",
        {"publish": _latest_copy},
    ),
    Variant("block-manager-stack", "blocks that are not cached are a stack", "BlockManager", {"next": _last_uncached}),
    Variant(
        "block-manager-one-queue",
        "one queue of free blocks, cached or not",
        "BlockManager",
        {"next": _one_queue},
        unmet=("BLK-16",),
    ),
    Variant("block-manager-plain-ints", "tokens kept as plain ints", "BlockManager", {"taken": _copies_of_lists}),
)
