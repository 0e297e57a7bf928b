"""Which blocks of a prompt are found cached, and under what names: see `spec/faults/block_manager_hits.py`."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from inferspec.spec import block_manager as spec
from inferspec.spec.block_manager import BlockManager, Manager, Table, blocks_of
from inferspec.spec.contract import Change


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


def behind_blocks_in_any_order(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    """The hashes of the blocks before are added up, and so are known in any order."""
    *before, own = (the_block_alone(self, m, tokens, i) for i in range(index + 1))
    return tuple(sorted(before)), own


def any_order(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    return tuple(sorted(tokens[: (index + 1) * m.size]))


def first_and_last(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    line = tokens[: (index + 1) * m.size]
    return line[0], line[-1], sum(line), index


def string_hash(self: BlockManager, m: Manager, tokens: Any, index: int) -> Any:
    """Of each block, as of a string in Java."""
    blocks = (tokens[i * m.size : (i + 1) * m.size] for i in range(index + 1))
    return tuple(functools.reduce(lambda code, token: 31 * code + token, block, 0) for block in blocks)


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


def in_eights(self: BlockManager, m: Manager, tokens: list[int]) -> list[int]:
    """What is past the last of the places that are restored, every eighth block, is computed again."""
    found = BlockManager.hits(self, m, tokens)
    return found[: len(found) // 8 * 8] if len(found) > 8 else found


def kept_from_a_refusal(self: BlockManager, m: Manager, tokens: list[int]) -> Table:
    """What a prompt hit when there was no room for it is what it hits when there is."""
    kept = vars(m).setdefault("tried", {})
    hits = kept.pop(tuple(tokens), None)
    if hits is None or any(block not in m.free for block in hits):
        hits = self.hits(m, tokens)
    try:
        self.check_room(m, self.needed(m, tokens, hits))
    except ValueError:
        kept[tuple(tokens)] = hits
        raise
    for block in hits:
        self.share(m, block)
    return self.table(m, tokens, hits, [self.take(m) for _ in range(blocks_of(len(tokens), m.size) - len(hits))])


def told_from_a_refusal(self: BlockManager, m: Manager, tokens: list[int]) -> Table:
    """How many tokens are cached is told as it was when there was no room for the prompt."""
    kept = vars(m).setdefault("tried", {})
    had = kept.pop(tuple(tokens), 0)
    try:
        table = BlockManager.allocate(self, m, tokens)
    except ValueError:
        kept[tuple(tokens)] = len(self.hits(m, tokens)) * m.size
        raise
    table.cached = max(table.cached, had)
    return table


def published_when_freed(self: BlockManager, m: Manager, table: Table) -> None:
    """Whatever is full is cached when its table is freed."""
    self.check_table(m, table)
    self.mark_computed(m, table, len(table.tokens))
    BlockManager.free(self, m, table)


def last_published_when_freed(self: BlockManager, m: Manager, table: Table) -> None:
    """A block of which the last token alone is not computed is cached when its table is freed."""
    self.check_table(m, table)
    if table.computed == len(table.tokens) - 1 and table.computed % m.size:
        self.mark_computed(m, table, len(table.tokens))
    BlockManager.free(self, m, table)
