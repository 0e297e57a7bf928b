"""How stories of block managers for the suites are written."""

from __future__ import annotations

from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.steps import Steps
from inferspec.conformance.strategies import Calls, Pick
from inferspec.spec.block_manager import MERSENNE

LONG = 6
"""Blocks of a line."""

FAR = {63: (0, 2**16, 2**60), 31: (0, 2**16, 2**30)}
"""What large ids begin at, by their most bits: what stands for a picture is known by its hash, all of whose bits count."""

APART = {63: (256, 2**16, 2**31, 2**32, MERSENNE, 1), 31: (256, 2**16, 2**20, 2**24, 2**29, 1)}
"""By what lines of large ids differ where a careless look takes them for the same."""


class Script(Steps):
    """A story being written, with what it takes for granted of the manager. lengths: of the tables in use, by step.

    hashes: whether tokens may all have one hash. A manager that makes plain ints of some of them need not find those
    again, so that only what is hit can be judged then.
    """

    def __init__(self, pick: Pick, spare: int = 40, hashes: bool = False) -> None:
        super().__init__(pick)
        self.size = pick("block_sizes")
        self.caching = pick("prefix_caching")
        self.colliding = hashes and pick("hashes") == "one for all"
        self.lengths: dict[int, int] = {}
        self.lines: dict[int, tuple[int, ...]] = {}
        self.blocks = min(spare, pick.envelope["blocks"])
        self.large = pick("token_ids") == "large"
        self.bits = max(pick.envelope["id_bits"])
        pick.features["id_bits"] = self.bits if self.large else 31
        by_age = "oldest first" in pick.envelope["eviction"]
        pick.features["eviction"] = "oldest first" if by_age else "any"
        self.random = np.random.default_rng(pick.seed)

    def call(self) -> Call:
        return self.pick.call(
            "BlockManager",
            num_blocks=self.blocks,
            block_size=self.size,
            prefix_caching=self.caching,
            colliding=self.colliding,
            steps=tuple(self.steps),
        )

    # tokens

    def line(self, length: int | None = None) -> tuple[int, ...]:
        """A line of tokens of its own."""
        tokens = self.random.integers(0, 50, LONG * self.size if length is None else length)
        # All of one kind, or mixed.
        kinds = (
            self.random.choice(FAR[self.bits], self.random.choice([1, len(tokens)]))
            if self.large and len(tokens)
            else 0
        )
        return self.tokens(tokens + kinds)

    def tokens(self, tokens: Any) -> tuple[int, ...]:
        return tuple(int(token) for token in tokens)

    def parting(self, line: tuple[int, ...], at: int) -> tuple[int, ...]:
        """The same line to a token, and another from there on."""
        other = self.line(len(line) - at)
        return (*line[:at], (line[at] + 1) % 50, *other[1:])

    def alike(self, line: tuple[int, ...]) -> tuple[int, ...]:
        """A line that is another, though a careless look takes it for the same."""
        at = self.pick.size(0, max(self.size - 1, 0)) + self.size * self.pick.one_of(0, 1)
        offset = self.pick.one_of(*APART[self.bits]) if self.large else 1
        if self.pick.one_of(False, True):
            return self.tokens(token + offset for token in line)
        if self.pick.one_of(False, True) and line[at] != line[at + 1]:
            # The same tokens in another order.
            return (*line[:at], line[at + 1], line[at], *line[at + 2 :])
        return (*line[:at], line[at] + offset, *line[at + 1 :])

    def same_text(self, line: tuple[int, ...]) -> tuple[int, ...]:
        """A line that is another, though its digits in a row are the same."""
        at = self.pick.size(0, max(self.size - 2, 0)) + self.size * self.pick.one_of(0, 1)
        digits = f"{line[at]}{line[at + 1]}"
        cuts = [k for k in range(1, len(digits)) if digits[k] != "0" and k != len(str(line[at]))]
        if not cuts or line[at] == 0:
            return self.alike(line)
        cut = self.pick.one_of(*cuts)
        return (*line[:at], int(digits[:cut]), int(digits[cut:]), *line[at + 2 :])

    def same_sum(self, line: tuple[int, ...]) -> tuple[int, ...]:
        """A line that is another, though a hash that multiplies by 31 for every token, as of strings, is the same of both."""
        at = self.pick.size(0, max(self.size - 2, 0)) + self.size * self.pick.one_of(0, 1)
        # A block begins with its highest power, or with its lowest.
        first, second = self.pick.one_of((1, -31), (31, -1))
        if line[at + 1] + second < 0:
            first, second = -first, -second
        if line[at] + first < 0:
            return self.alike(line)
        return (*line[:at], line[at] + first, line[at + 1] + second, *line[at + 2 :])

    def prompt(self, line: tuple[int, ...], blocks: int | None = None, beyond: int | None = None) -> tuple[int, ...]:
        """So many whole blocks of a line and so many tokens more: by default 1 … a block."""
        blocks = self.pick.size(0, 3) if blocks is None else blocks
        beyond = self.pick.one_of(1, self.size, max(self.size - 1, 1)) if beyond is None else beyond
        return line[: blocks * self.size + beyond]

    # steps

    def allocate(self, tokens: tuple[int, ...], computed: int | None = None) -> int:
        """Allocate, and mark so many tokens computed: all by default, nothing for 0."""
        table = self.do("allocate", tokens=tokens)
        self.lengths[table], self.lines[table] = len(tokens), tokens
        if computed != 0:
            self.mark(table, computed)
        return table

    def mark(self, table: int, n: int | None = None) -> None:
        self.do("mark_computed", table=table, n=self.lengths[table] if n is None else n)

    def append(self, table: int, tokens: tuple[int, ...], computed: bool = True) -> None:
        self.do("append", table=table, tokens=tokens)
        self.lengths[table] += len(tokens)
        self.lines[table] += tokens
        if computed:
            self.mark(table)

    def free(self, *tables: int) -> None:
        for table in tables:
            self.do("free", table=table)
            self.lengths.pop(table, None)

    def any_table(self) -> int:
        return self.pick.one_of(*self.lengths)

    def fill(self, left: int, used: int) -> None:
        """Size the pool so that, with so many blocks used, so many are left."""
        self.blocks = max(min(left + used, self.pick.envelope["blocks"]), 1)

    def probe(self, *lines: tuple[int, ...]) -> None:
        """Ask for every line, and give it back."""
        for line in lines:
            self.free(self.allocate(line, computed=0))

    def going_on(self, *lines: tuple[int, ...]) -> None:
        """What shows that a refused step changed nothing: tables freed, the cache asked, the pool taken whole."""
        lines = tuple(filter(None, lines))
        self.probe(*lines)
        self.free(*list(self.lengths))
        self.probe(*lines)
        self.whole()

    def whole(self) -> None:
        """One table takes the whole pool, and one block more than there are is asked for."""
        table = self.allocate(self.line(self.blocks * self.size), computed=0)
        self.do("allocate", tokens=self.line(1))
        self.free(table)


SMALL_BLOCKS = (1, 2, 3, 4, 8, 16)
"""Block sizes at which a few tokens make several blocks."""

OTHER_BLOCKS = (32, 256, 64)
"""Those of servers."""


def calls(build: Any) -> Calls:
    """Stories of small blocks, if not said otherwise and where a subject has such."""
    return Calls(build, preferred={"block_sizes": SMALL_BLOCKS})


def caching(build: Any) -> Calls:
    """Like `calls`, with the prefix cache on."""
    return calls(build)(prefix_caching=[True])


def by_age(build: Any) -> Calls:
    """Like `caching`, of managers that evict what was freed first."""
    return caching(build)(eviction=["oldest first"])
