"""Who has which block of the key/value memory: reference counts, a prefix cache, eviction.

A block is cached once it is full and its keys and values are computed. The cache finds blocks by the tokens in them and by what
stands before those, as a chain of dictionary keys: the hash of a key is that of the chain, and its tokens are compared, so
that no hash can mislead it. A block that leaves its last table stays cached until it is taken for other tokens, the
one that was freed first before the others.

Every operation costs O(blocks that it concerns), however large the pool is.

Source: the nano-vLLM post, parts 1 and 4; vLLM's automatic prefix caching.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from inferspec.impl.arguments import integer, whole

Tokens = tuple[int, ...]


class Prefix:
    """What a sequence begins with, up to the end of a block: the block's tokens and the prefix before them.

    block: the cached block that holds the keys and values, if any; uses: blocks, tables and longer prefixes that need this one.
    """

    __slots__ = ("block", "parent", "tokens", "uses")

    def __init__(self, parent: Prefix | None, tokens: Tokens) -> None:
        self.parent, self.tokens = parent, tokens
        self.block: Block | None = None
        self.uses = 0


class Block:
    """A block of the pool. owners: tables that have it; prefix: what the cache knows it by, if it does."""

    __slots__ = ("id", "owners", "prefix")

    def __init__(self, id: int) -> None:
        self.id = id
        self.owners = 0
        self.prefix: Prefix | None = None


class BlockTable:
    """The blocks of one sequence, in order. num_cached_tokens: how many of its first tokens were computed already."""

    def __init__(self, manager: BlockManager, tokens: list[int], blocks: list[Block], num_cached_blocks: int) -> None:
        self._manager: BlockManager | None = manager
        self._tokens = tokens
        self._blocks = blocks
        self.num_cached_tokens = num_cached_blocks * manager.block_size
        # Whole blocks that are computed, and the prefix that they are.
        self._computed = num_cached_blocks
        self._prefix = blocks[num_cached_blocks - 1].prefix if num_cached_blocks else None

    @property
    def block_ids(self) -> list[int]:
        """Block ids in the order of the tokens: token i is in the block i // block_size."""
        return [block.id for block in self._blocks]

    @property
    def num_tokens(self) -> int:
        """How many tokens the table was given, computed or not."""
        return len(self._tokens)


class BlockManager:
    """num_blocks blocks of block_size tokens each. A call that is refused changes nothing."""

    def __init__(self, num_blocks: int, block_size: int, prefix_caching: bool = True) -> None:
        self.num_blocks, self.block_size = whole("num_blocks", num_blocks, 1), whole("block_size", block_size, 1)
        self.prefix_caching = bool(prefix_caching)
        self._empty = [Block(i) for i in reversed(range(self.num_blocks))]
        """Free blocks that are not cached; the last is taken first."""
        self._idle: OrderedDict[int, Block] = OrderedDict()
        """Free blocks that are cached, by id; the first is evicted first."""
        self._prefixes: dict[tuple[Prefix | None, Tokens], Prefix] = {}
        """Prefixes by the one before them and the tokens of their last block."""

    @property
    def num_free(self) -> int:
        """How many blocks are in no table, cached ones among them."""
        return len(self._empty) + len(self._idle)

    def allocate(self, tokens: Iterable[int]) -> BlockTable:
        """Return a table for a prompt. Its leading whole blocks that are cached are shared; a token at least is left.

        ValueError when there is no token, or more blocks are needed than are free.
        """
        own = list(tokens)
        if not own:
            raise ValueError("tokens is empty; it takes one token or more")
        hits = self._hits(own)
        fresh = self._count(len(own)) - len(hits)
        self._check_room(fresh + sum(block.owners == 0 for block in hits))
        for block in hits:
            self._idle.pop(block.id, None)
            block.owners += 1
        table = BlockTable(self, own, hits + [self._take() for _ in range(fresh)], len(hits))
        _use(table._prefix)
        return table

    def append(self, table: BlockTable, tokens: Iterable[int]) -> None:
        """Make room for more tokens at the end of a table.

        ValueError when more blocks are needed than are free, or the table was freed or is another manager's.
        """
        self._check_table(table)
        own = list(tokens)
        self._make_room(table, len(table._tokens) + len(own))
        table._tokens += own

    def reserve(self, table: BlockTable, n: int) -> None:
        """Make room for n tokens past the table's end that are not known yet; appended ones go there.

        ValueError as for append, and for a negative n.
        """
        self._check_table(table)
        self._make_room(table, len(table._tokens) + whole("n", n, 0))

    def mark_computed(self, table: BlockTable, n: int) -> None:
        """Say that keys and values of the table's first n tokens are in their blocks: full ones can now be hit.

        Marking less than before changes nothing. ValueError when n is negative or more than the table has, or the table
        was freed or is another manager's.
        """
        self._check_table(table)
        count = integer("n", n)
        if not 0 <= count <= len(table._tokens):
            raise ValueError(f"n is {count}; it takes 0 … {len(table._tokens)}, the table's number of tokens")
        if not self.prefix_caching:
            return
        for index in range(table._computed, count // self.block_size):
            self._publish(table, index)

    def free(self, table: BlockTable) -> None:
        """Give a table back; it cannot be used again. Its blocks stay cached until they are taken.

        ValueError when it was freed already or is another manager's.
        """
        self._check_table(table)
        table._manager = None
        self._release(table._prefix)
        # A block is of no use without those before it: the last is evicted first.
        for block in reversed(table._blocks):
            block.owners -= 1
            if block.owners == 0 and block.prefix is not None:
                self._idle[block.id] = block
            elif block.owners == 0:
                self._empty.append(block)

    def _make_room(self, table: BlockTable, tokens: int) -> None:
        fresh = self._count(tokens) - len(table._blocks)
        if fresh > 0:
            self._check_room(fresh)
            table._blocks += [self._take() for _ in range(fresh)]

    def _hits(self, tokens: list[int]) -> list[Block]:
        """The cached blocks that a prompt begins with, short of its last token."""
        found: list[Block] = []
        prefix: Prefix | None = None
        for index in range((len(tokens) - 1) // self.block_size):
            prefix = self._prefixes.get((prefix, self._tokens_of(tokens, index)))
            if prefix is None or prefix.block is None:
                break
            found.append(prefix.block)
        return found

    def _publish(self, table: BlockTable, index: int) -> None:
        """Have the cache know a table's next block, unless it knows one that holds the same."""
        before, tokens, block = table._prefix, self._tokens_of(table._tokens, index), table._blocks[index]
        prefix = self._prefixes.get((before, tokens))
        if prefix is None:
            prefix = self._prefixes[before, tokens] = Prefix(before, tokens)
            _use(before)
        if prefix.block is None:
            prefix.block, block.prefix = block, prefix
            _use(prefix)
        _use(prefix)
        self._release(before)
        table._prefix, table._computed = prefix, index + 1

    def _release(self, prefix: Prefix | None) -> None:
        """Give up a use of a prefix; one that has none is forgotten, and those before it that only it needed."""
        while prefix is not None:
            prefix.uses -= 1
            if prefix.uses:
                return
            del self._prefixes[prefix.parent, prefix.tokens]
            prefix = prefix.parent

    def _take(self) -> Block:
        """A block for other tokens: an empty one, or the cached one that was freed first, which the cache forgets."""
        if self._empty:
            block = self._empty.pop()
        else:
            _, block = self._idle.popitem(last=False)
            prefix, block.prefix = block.prefix, None
            if prefix is not None:
                prefix.block = None
            self._release(prefix)
        block.owners = 1
        return block

    def _tokens_of(self, tokens: list[int], index: int) -> Tokens:
        return tuple(tokens[index * self.block_size : (index + 1) * self.block_size])

    def _count(self, tokens: int) -> int:
        return -(-tokens // self.block_size)

    def _check_room(self, needed: int) -> None:
        if needed > self.num_free:
            raise ValueError(f"{needed} blocks are needed and {self.num_free} of {self.num_blocks} are free")

    def _check_table(self, table: BlockTable) -> None:
        if not isinstance(table, BlockTable):
            raise TypeError(f"table is a {type(table).__name__}; it takes one that allocate returned")
        if table._manager is None:
            raise ValueError("table was freed; it takes one in use")
        if table._manager is not self:
            raise ValueError("table is another manager's; it takes one that this manager allocated")


def _use(prefix: Prefix | None) -> None:
    if prefix is not None:
        prefix.uses += 1
