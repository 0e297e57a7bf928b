"""Blocks with reference counts, tables that sequences own, and content known by a cumulative hash."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field


class OutOfBlocks(ValueError):
    """There are not as many free blocks as are needed."""


class Prefix:
    """All tokens up to the end of a block: those of the block, behind another prefix. Its hash includes theirs."""

    __slots__ = ("digest", "parent", "tokens")

    def __init__(self, tokens: tuple[int, ...], parent: Prefix | None) -> None:
        self.tokens, self.parent = tokens, parent
        self.digest: int = hash((parent.digest if parent else None, tokens))

    def __hash__(self) -> int:
        return self.digest

    def __eq__(self, other: object) -> bool:
        """Whether all tokens are the same: two prefixes of one hash need not be."""
        here: Prefix | None = self
        there: object = other
        while here is not there:
            if not isinstance(here, Prefix) or not isinstance(there, Prefix) or here.tokens != there.tokens:
                return False
            here, there = here.parent, there.parent
        return True


@dataclass(eq=False)
class Block:
    """Room for `block_size` tokens. owners: how many tables have it; content: what it is known by, if it is known."""

    block_id: int
    owners: int = 0
    content: Prefix | None = None


@dataclass(eq=False)
class BlockTable:
    """Where the tokens of a sequence are: position p in blocks[p // block_size]. manager: None once it was freed."""

    manager: BlockManager | None
    tokens: list[int]
    blocks: list[Block]
    num_cached_tokens: int
    prefixes: list[Prefix] = field(default_factory=list)
    """Those of its first blocks: of all that were computed."""

    @property
    def block_ids(self) -> list[int]:
        return [block.block_id for block in self.blocks]

    @property
    def num_tokens(self) -> int:
        return len(self.tokens)


class BlockManager:
    """Gives out `num_blocks` blocks. What was computed is found again by those that begin with the same tokens."""

    def __init__(self, num_blocks: int, block_size: int = 16, prefix_caching: bool = True) -> None:
        if num_blocks < 1 or block_size < 1:
            raise ValueError(f"num_blocks is {num_blocks} and block_size {block_size}; neither may be below 1")
        self.num_blocks, self.block_size, self.prefix_caching = num_blocks, block_size, prefix_caching
        self.spare = deque(Block(block_id) for block_id in range(num_blocks))
        """Free blocks of no known content, the next to take first."""
        self.idle = OrderedDict[int, Block]()
        """Free blocks of known content by their id, the one that was freed first, first."""
        self.prefix_cache: dict[Prefix, Block] = {}

    @property
    def num_free(self) -> int:
        return len(self.spare) + len(self.idle)

    def allocate(self, tokens: Sequence[int]) -> BlockTable:
        """A table for a prompt. OutOfBlocks, before anything is taken, when the free blocks do not suffice."""
        prefixes = self.match(tokens)
        found = [self.prefix_cache[prefix] for prefix in prefixes]
        fresh = self.blocks_for(len(tokens)) - len(found)
        self.check_room(fresh + sum(block.owners == 0 for block in found))
        for block in found:
            self.idle.pop(block.block_id, None)
            block.owners += 1
        blocks = found + [self.allocate_block() for _ in range(fresh)]
        return BlockTable(self, list(tokens), blocks, len(found) * self.block_size, prefixes)

    def append(self, table: BlockTable, tokens: Sequence[int]) -> None:
        """Room for more tokens of a sequence."""
        self.check_table(table)
        fresh = self.blocks_for(table.num_tokens + len(tokens)) - len(table.blocks)
        self.check_room(fresh)
        table.blocks += [self.allocate_block() for _ in range(fresh)]
        table.tokens += tokens

    def mark_computed(self, table: BlockTable, n: int) -> None:
        """The first n tokens are in their blocks; those that are full can be found."""
        self.check_table(table)
        if not 0 <= n <= table.num_tokens:
            raise ValueError(f"n is {n}; the table has {table.num_tokens} tokens")
        for index in range(len(table.prefixes), n // self.block_size if self.prefix_caching else 0):
            prefix, block = self.prefix(table.tokens, index, table.prefixes), table.blocks[index]
            known = self.prefix_cache.setdefault(prefix, block)
            if known is block:
                block.content = prefix
            table.prefixes.append(known.content or prefix)

    def free(self, table: BlockTable) -> None:
        """The sequence is done. Its last block is given back first: it is found by the longest prefix alone."""
        self.check_table(table)
        table.manager = None
        for block in reversed(table.blocks):
            self.free_block(block)

    def blocks_for(self, num_tokens: int) -> int:
        return (num_tokens + self.block_size - 1) // self.block_size

    def match(self, tokens: Sequence[int]) -> list[Prefix]:
        """The prefixes of a prompt whose blocks are known, short of the last token, which has to be computed."""
        found: list[Prefix] = []
        for index in range((len(tokens) - 1) // self.block_size if self.prefix_caching else 0):
            prefix = self.prefix(tokens, index, found)
            block = self.prefix_cache.get(prefix)
            if block is None:
                break
            found.append(block.content or prefix)
        return found

    def prefix(self, tokens: Sequence[int], index: int, before: list[Prefix]) -> Prefix:
        own = tokens[index * self.block_size : (index + 1) * self.block_size]
        return Prefix(tuple(own), before[-1] if before else None)

    def allocate_block(self) -> Block:
        """A free block; if all that are free are known, the one that has been free for longest is forgotten."""
        if self.spare:
            block = self.spare.popleft()
        else:
            _, block = self.idle.popitem(last=False)
        if block.content is not None:
            del self.prefix_cache[block.content]
            block.content = None
        block.owners = 1
        return block

    def free_block(self, block: Block) -> None:
        block.owners -= 1
        if block.owners:
            return
        if block.content is None:
            self.spare.append(block)
        else:
            self.idle[block.block_id] = block

    def check_room(self, needed: int) -> None:
        if needed > self.num_free:
            raise OutOfBlocks(f"{needed} blocks are needed and {self.num_free} are free")

    def check_table(self, table: BlockTable) -> None:
        if table.manager is not self:
            raise ValueError("the table was freed" if table.manager is None else "the table is of another manager")
