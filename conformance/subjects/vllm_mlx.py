"""vllm-mlx: the prefix cache of ``--use-paged-cache``, without a model. ``pip install --no-deps vllm-mlx`` first."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from importlib.metadata import version

from vllm_mlx.paged_cache import BlockTable, PagedCacheManager
from vllm_mlx.prefix_cache import BlockAwarePrefixCache

NAME = "vllm_mlx"
VERSION = version("vllm-mlx")
ARRAYS = "numpy"
WAIVERS = "vllm_mlx.toml"

_names = map(str, itertools.count())


class Table:
    """A table of vllm-mlx's and its tokens. home: None once it was freed."""

    def __init__(
        self, home: BlockManager | None, blocks: BlockTable, tokens: list[int], num_cached_tokens: int
    ) -> None:
        self.home, self.blocks, self.tokens, self.num_cached_tokens = home, blocks, tokens, num_cached_tokens

    @property
    def block_ids(self) -> list[int]:
        return [block - 1 for block in self.blocks.block_ids]

    @property
    def num_tokens(self) -> int:
        return len(self.tokens)


class BlockManager:
    """``PagedCacheManager``, asked for prefixes by ``BlockAwarePrefixCache`` as its scheduler asks. Its null block comes on top;
    it is block 0, and the pool begins at 1."""

    def __init__(self, num_blocks: int, block_size: int, prefix_caching: bool = True) -> None:
        if num_blocks < 1 or block_size < 1:
            raise ValueError(f"num_blocks is {num_blocks} and block_size {block_size}; neither may be below 1")
        self.block_size, self.prefix_caching = block_size, prefix_caching
        self.pages = PagedCacheManager(block_size, num_blocks + 1, enable_caching=prefix_caching)
        self.prefixes = BlockAwarePrefixCache(None, self.pages)

    @property
    def num_free(self) -> int:
        return int(self.pages.free_blocks)

    def allocate(self, tokens: Sequence[int]) -> Table:
        given, name = [int(token) for token in tokens], next(_names)
        found, rest = self.prefixes.fetch_cache(name, given) if self.prefix_caching else (None, given)
        blocks = found or self.pages.create_block_table(name)
        if not rest:
            # Its engine computes the last token again, and no block of its own holds it then.
            self.pages.free_block(blocks.block_ids.pop())
            rest = given[-self.block_size :]
        try:
            self._take(blocks, -(-len(rest) // self.block_size))
        except ValueError:
            self.pages.delete_block_table(name)
            raise
        return Table(self, blocks, given, len(given) - len(rest))

    def append(self, table: Table, tokens: Sequence[int]) -> None:
        self._check(table)
        wanted = -(-(table.num_tokens + len(tokens)) // self.block_size)
        self._take(table.blocks, wanted - len(table.block_ids))
        table.tokens += [int(token) for token in tokens]

    def mark_computed(self, table: Table, n: int) -> None:
        self._check(table)
        if not 0 <= n <= table.num_tokens:
            raise ValueError(f"n is {n}; the table has {table.num_tokens} tokens")
        for index in range(n // self.block_size if self.prefix_caching else 0):
            block = self.pages.blocks[table.blocks.block_ids[index]]
            tokens = table.tokens[index * self.block_size : (index + 1) * self.block_size]
            if self.pages.find_cached_block(tokens) is None:
                self.pages.register_block_hash(block, tokens)

    def free(self, table: Table) -> None:
        self._check(table)
        self.pages.delete_block_table(table.blocks.request_id)
        table.home = None

    def _take(self, blocks: BlockTable, count: int) -> None:
        for block in self.pages.get_new_blocks(count) if count > 0 else ():
            self.pages.add_block_to_table(blocks, block, self.block_size)

    def _check(self, table: Table) -> None:
        if table.home is not self:
            raise ValueError("the table was freed" if table.home is None else "the table is of another manager")
