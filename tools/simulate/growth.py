"""What an operation of a block manager costs as its pool grows: it must not depend on the size of the pool."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

SIZES = (256, 2048, 16_384, 262_144)
"""Blocks: over three orders of magnitude."""

PROMPT = 4
"""Whole blocks of each prompt; one more is appended."""
ROUNDS = 500
REPEATS = 7


def cost(
    make: Callable[[int, int], Any],
    block_size: int,
    sizes: Sequence[int] = SIZES,
    clock: Callable[[], float] = time.process_time,
) -> dict[int, float]:
    """CPU seconds of an operation of make(num_blocks, block_size), by the number of blocks: the median of the repeats.

    Half of the pool is in use and the rest is cached, so that every block that is taken has to be evicted. An operation is
    one of allocate, append, mark_computed and free. The pools take turns, so that what else the machine does
    meets all of them.
    """
    pools = [_Pool(make(size, block_size)) for size in sizes]
    found: list[list[float]] = [[] for _ in sizes]
    for _ in range(REPEATS):
        for pool, times in zip(pools, found, strict=True):
            begun = clock()
            pool.work(ROUNDS)
            times.append((clock() - begun) / (4 * ROUNDS))
    return {size: statistics.median(times) for size, times in zip(sizes, found, strict=True)}


class _Pool:
    """A manager in the middle of its work."""

    def __init__(self, manager: Any) -> None:
        self.manager = manager
        self._next = 0
        per_table = PROMPT + 1
        kept = [self._table() for _ in range(manager.num_blocks // per_table)]
        for table in kept[::2]:
            manager.free(table)
        self._kept = kept[1::2]
        self.work(1)

    def work(self, rounds: int) -> None:
        for _ in range(rounds):
            self.manager.free(self._table())

    def _table(self) -> Any:
        """A table of a prompt that was never seen before."""
        size, manager = self.manager.block_size, self.manager
        self._next += 1
        table = manager.allocate([self._next] * (PROMPT * size))
        manager.append(table, [self._next] * size)
        manager.mark_computed(table, (PROMPT + 1) * size)
        return table
