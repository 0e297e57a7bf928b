"""Stories of block managers for the suites: prompts that share prefixes, in pools that are large or nearly full.

A prompt is the beginning of one of a few long lines of tokens. Lines part from each other at the edges of blocks and beside
them, repeat a block, or have one token's low bits in common with another's, so that whatever is taken for a prefix that is none
shows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.steps import Steps
from inferspec.conformance.strategies import Calls, Pick
from inferspec.spec.block_manager import MERSENNE, blocks_of

LONG = 6
"""Blocks of a line."""

FAR = (0, 2**16, 2**60)
"""What large ids begin at: what stands for a picture is known by its hash, all of whose bits count."""


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
        kinds = self.random.choice(FAR, self.random.choice([1, len(tokens)])) if self.large and len(tokens) else 0
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
        offset = self.pick.one_of(256, 2**16, 2**31, 2**32, MERSENNE, 1) if self.large else 1
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
    """Stories of small blocks, if not said otherwise."""
    return Calls(build, {"block_sizes": SMALL_BLOCKS})


def caching(build: Any) -> Calls:
    """Like `calls`, with the prefix cache on."""
    return calls(build)(prefix_caching=[True])


def by_age(build: Any) -> Calls:
    """Like `caching`, of managers that evict what was freed first."""
    return caching(build)(eviction=["oldest first"])


@calls
def workloads(pick: Pick) -> Call:
    """Requests come, grow and go; some share prefixes, and the pool may be short."""
    script = Script(pick, spare=pick.one_of(40, 12, 8, 6, 20))
    first = script.line()
    lines = [first, script.parting(first, pick.size(1, 3 * script.size)), script.alike(first)]
    for _ in range(pick.size(3, 9)):
        match pick.one_of("allocate", "append", "free", "allocate", "mark") if script.lengths else "allocate":
            case "allocate":
                script.allocate(script.prompt(pick.one_of(*lines)), pick.one_of(None, 0))
            case "append":
                script.append(script.any_table(), script.line(pick.one_of(1, script.size, 2 * script.size + 1)))
            case "mark":
                script.mark(script.any_table())
            case _:
                script.free(script.any_table())
    script.allocate(script.prompt(pick.one_of(*lines)))
    return script.call()


@calls
def growing(pick: Pick) -> Call:
    """Tables of every length beside the multiples of a block, grown by one token and by many."""
    script = Script(pick)
    line = script.line()
    for _ in range(pick.size(1, 2)):
        n = pick.size(0, 2) * script.size + pick.one_of(0, 1, script.size - 1, script.size)
        script.allocate(script.line()[: max(n, 1)], pick.one_of(None, 0))
    for _ in range(pick.size(1, 5)):
        more = pick.one_of(1, script.size, script.size - 1, script.size + 1, 2 * script.size)
        script.append(script.any_table(), line[: max(more, 1)], pick.one_of(True, False))
    return script.call()


@caching
def sharing(pick: Pick) -> Call:
    """Prompts that begin alike, one after the other, some given back in between and asked for again."""
    script = Script(pick)
    line = script.line()
    script.allocate(script.prompt(line, pick.size(1, 4)))
    for _ in range(pick.size(1, 4)):
        other = script.parting(line, pick.size(1, 4 * script.size)) if pick.one_of(False, True) else line
        if pick.one_of(False, False, True) and script.lengths:
            script.free(script.any_table())
        script.allocate(script.prompt(other, pick.size(0, 4)))
    script.allocate(script.prompt(line, 5))
    return script.call()


@caching
def full_hits(pick: Pick) -> Call:
    """The same prompt several times, of whole blocks or a token more or less, in use or given back; then a longer one."""
    script = Script(pick)
    line = script.line()
    prompt = script.prompt(line, pick.size(1, 3), pick.one_of(0, 1))
    again = pick.one_of(False, True)
    for _ in range(pick.size(2, 4)):
        table = script.allocate(prompt)
        if again:
            script.free(table)
    script.allocate(script.prompt(line, LONG - 1, 1))
    return script.call()


@caching
def half_computed(pick: Pick) -> Call:
    """A prompt is computed in chunks, or not at all, and others ask for it meanwhile."""
    script = Script(pick)
    line = script.line()
    n = script.size * pick.size(1, 4) + pick.one_of(0, 1, script.size - 1)
    first, marked = script.allocate(line[:n], computed=0), 0
    for _ in range(pick.size(1, 3)):
        marked = min(
            n, marked + pick.one_of(0, script.size - 1, script.size, 1, 2 * script.size, max(n - marked - 1, 0))
        )
        if marked:
            script.mark(first, marked)
        asked = script.allocate(script.prompt(line, 4), computed=0)
        if pick.one_of(False, True):
            script.free(asked)
    if pick.one_of(False, True):
        script.free(first)
    script.probe(line)
    return script.call()


@caching
def lookalikes(pick: Pick, texts: bool = False) -> Call:
    """Lines that are another line's in all but a little: the tokens before a block, their order, their high bits.

    texts: they have the same digits in a row.
    """
    script = Script(pick, hashes=True)
    line = script.line()
    if not texts and pick.one_of(False, True):
        # Of three ids, one of which is 0.
        line = script.tokens(token % 3 for token in line)
    script.allocate(script.prompt(line, pick.size(2, 5), 1))
    for _ in range(pick.size(1, 4)):
        other = script.same_text(line) if texts else script.alike(line)
        script.allocate(script.prompt(other, pick.size(1, 5), 1), pick.one_of(0, None))
    script.probe(line)
    return script.call()


@caching
def other_prefixes(pick: Pick) -> Call:
    """The same block after others: repeated, moved, or behind another beginning."""
    script = Script(pick)
    size = script.size
    blocks = [script.line(size) for _ in range(3)]
    if pick.one_of(False, True):
        # Two lines meet and part: the third begins as the one and ends as the other.
        one, other, end, another = (script.line(size) for _ in range(4))
        middle = script.line(pick.size(0, 2) * size)
        for tokens in ((*one, *middle, *end), (*other, *middle, *another), (*other, *middle, *end)):
            script.allocate((*tokens, 1))
        return script.call()
    script.allocate((*sum(blocks, ()), 1))
    for _ in range(pick.size(1, 4)):
        order = [pick.size(0, 2) for _ in range(pick.size(1, 4))]
        script.allocate((*sum((blocks[i] for i in order), ()), 1), pick.one_of(0, None))
    return script.call()


@caching
def adopted(pick: Pick) -> Call:
    """Two prompts of a line are computed side by side, and go on differently. One is given back, other tokens are computed
    into its blocks, and these are asked for with what the second prompt went on with."""
    script = Script(pick)
    line, size = script.line(), script.size
    short, more = pick.size(1, 2), pick.size(1, 2)
    first = script.allocate(line[: short * size], computed=0)
    second = script.allocate(line[: (short + more) * size], computed=0)
    for table in (first, second) if pick.one_of(True, False) else (second, first):
        script.mark(table)
    script.fill(0, 2 * short + more)
    script.free(first)
    other = script.line(short * size)
    script.allocate(other)
    if pick.one_of(True, False):
        script.free(second)
    script.free(*list(script.lengths))
    script.probe((*other, *line[short * size : (short + more) * size], 1))
    return script.call()


@caching
def long_prompts(pick: Pick, lengths: tuple[int, ...] = (31, 9, 17, 24)) -> Call:
    """A prompt of many blocks, in use or given back, that is asked for again."""
    script = Script(pick, spare=2 * max(lengths) + 2)
    blocks = max(min(pick.one_of(*lengths), script.blocks // 2 - 1, 4500 // script.size), 1)
    line = script.line((blocks + 1) * script.size)
    table = script.allocate(line[: pick.size(blocks - 1, blocks) * script.size + 1])
    if pick.one_of(False, True):
        script.free(table)
    script.probe(line)
    return script.call()


@caching
def far_beginnings(pick: Pick) -> Call:
    """Two long lines that differ by one token of their first blocks; of one the beginning is computed, and all is asked for."""
    script = Script(pick, spare=200)
    blocks = max(min(pick.one_of(20, 9, 70, 33), script.blocks // 2 - 2), 2)
    line = script.line(blocks * script.size + 1)
    other = list(line)
    other[pick.size(0, script.size)] += 1
    script.allocate(line)
    script.allocate(script.tokens(other)[: pick.one_of(blocks - 1, blocks // 2) * script.size + 1])
    script.probe(script.tokens(other), line)
    return script.call()


@caching
def long_after_hits(pick: Pick) -> Call:
    """A prompt hits some blocks and computes many more, which are hit in their turn."""
    script = Script(pick, spare=200)
    blocks = max(min(pick.one_of(12, 20, 70, 33), script.blocks // 2 - 2), 2)
    line = script.line((blocks + 1) * script.size)
    script.allocate(line[: pick.size(1, 2) * script.size])
    table = script.allocate(line[: blocks * script.size + 1])
    if pick.one_of(False, True):
        script.free(table)
    script.probe(line)
    return script.call()


@caching
def token_by_token(pick: Pick) -> Call:
    """A table grows by dozens of tokens, one after the other, each computed as it comes; then all of them are asked for."""
    script = Script(pick, spare=100)
    line = script.line(min(80, (script.blocks // 2 - 1) * script.size))
    first = pick.size(1, min(5, len(line) - 1))
    table = script.allocate(line[:first])
    for n in range(first, len(line)):
        script.append(table, line[n : n + 1])
    if pick.one_of(False, True):
        script.free(table)
    script.probe((*line, 1))
    return script.call()


@by_age
def long_evicted(pick: Pick) -> Call:
    """Prompts of many blocks are given back; others take some of the blocks, and they are asked for again."""
    script = Script(pick, spare=200)
    size = script.size
    blocks = max(min(pick.one_of(20, 9, 70, 33), script.blocks - 3), 1)
    lines = script.line(blocks * size), script.line(2 * size)
    tables = [script.allocate(line) for line in lines]
    script.fill(0, blocks + 2)
    script.free(*pick.one_of(tables, tables[::-1]))
    for _ in range(pick.size(1, 3)):
        script.allocate(script.line(size), computed=0)
    script.free(*list(script.lengths))
    script.probe(*((*line, 1) for line in lines))
    return script.call()


@by_age
def seasoned(pick: Pick) -> Call:
    """Prompt after prompt is computed and given back in a pool that has room for a few of them."""
    script = Script(pick, spare=pick.one_of(7, 5))
    for _ in range(pick.one_of(300, 40, 90)):
        script.free(script.allocate(script.line(script.size)))
    return script.call()


@calls
def large_tables(pick: Pick) -> Call:
    """Tables of more blocks than a byte can number, allocated or appended, to the last block of the pool."""
    script = Script(pick, spare=320)
    blocks = max(script.blocks - 2, 1)
    at_first = min(pick.one_of(256, 40, 290), blocks)
    first = script.allocate(script.line(at_first * script.size), computed=0)
    script.append(first, script.line((blocks - at_first) * script.size), computed=False)
    script.allocate(script.line(script.size + 1), computed=0)
    return script.call()


@calls
def nothing_appended(pick: Pick) -> Call:
    """Tables of every length beside the multiples of a block are grown by no token, and then by some."""
    script = Script(pick)
    n = pick.size(0, 2) * script.size + pick.one_of(script.size, 1, script.size - 1, 0)
    table = script.allocate(script.line()[: max(n, 1)], pick.one_of(None, 0))
    for _ in range(pick.size(1, 2)):
        script.append(table, (), pick.one_of(True, False))
        if pick.one_of(False, True):
            script.append(table, script.line(pick.one_of(1, script.size)), pick.one_of(True, False))
    return script.call()


@caching
def conversations(pick: Pick) -> Call:
    """What was generated is part of the next prompt."""
    script = Script(pick)
    line = script.line()
    n = pick.size(1, 2 * script.size)
    table = script.allocate(line[:n], pick.one_of(None, 0))
    while script.lengths[table] < 3 * script.size:
        more = pick.one_of(1, script.size, script.size + 1, 2 * script.size)
        n = script.lengths[table]
        script.append(table, line[n : n + max(more, script.size // 2)], pick.one_of(True, False, True))
    if pick.one_of(False, True):
        script.free(table)
    second = script.allocate(line)
    script.append(second, script.line(script.size + 1))
    script.probe(script.lines[second])
    return script.call()


@caching
def revisits(pick: Pick) -> Call:
    """Prompts are given back and asked for again, more than once, while others come and go."""
    script = Script(pick)
    lines = [script.line(), script.line()]
    for _ in range(pick.size(2, 5)):
        line = script.prompt(pick.one_of(*lines), pick.size(1, 4), 1)
        table = script.allocate(line, pick.one_of(None, 0, None))
        if pick.one_of(True, True, False):
            script.free(table)
    script.probe(*lines)
    return script.call()


@caching
def taken_back(pick: Pick) -> Call:
    """A freed prompt is hit, and then other tables need all the rest of the pool."""
    script = Script(pick)
    line = script.prompt(script.line(), pick.size(1, 3), 1)
    first = script.allocate(line)
    script.free(first)
    owners = [script.allocate(line, computed=0) for _ in range(pick.size(1, 2))]
    need = len(line) // script.size + len(owners)
    left = pick.size(1, 3)
    script.fill(left, need)
    for _ in range(left):
        script.allocate(script.line(1), computed=0)
    script.do("allocate", tokens=script.line(1))
    script.free(owners[0])
    script.allocate(script.line(1), computed=0)
    script.do("allocate", tokens=script.line(1))
    script.free(*owners[1:])
    return script.call()


@caching
def evicting(pick: Pick, uncached: bool = False) -> Call:
    """Several prompts are given back in some order, some are asked for again; then others take some of their blocks.

    uncached: some of what is given back was never cached, and whole blocks of the pool are untouched.
    """
    script = Script(pick)
    size = script.size
    tables = {}
    lines = [script.line() for _ in range(3)]
    used = 0
    for line in lines:
        blocks = pick.size(1, 3)
        table = script.allocate(line[: blocks * size])
        if pick.one_of(False, True):
            more = pick.size(1, 2)
            script.append(table, line[blocks * size : (blocks + more) * size])
            blocks += more
        tables[table] = blocks
        used += blocks
    if uncached:
        table = script.allocate(script.line(), computed=0)
        tables[table], used = LONG, used + LONG
    script.fill(pick.size(0, 2) if uncached else 0, used)
    order = list(tables)
    while order:
        script.free(order.pop(pick.size(0, len(order) - 1)))
    left = script.blocks
    if pick.one_of(False, True):
        # Asked for again and given back: not the oldest any more. The last block is of another.
        line = pick.one_of(*lines)
        script.free(script.allocate(line[:size] + line[:1], computed=0))
    for _ in range(pick.size(1, 4)):
        blocks = min(pick.size(1, 3), left)
        if blocks:
            table = script.allocate(script.line(blocks * size), computed=0)
            left -= blocks
            if pick.one_of(False, True, False):
                script.append(table, script.line(size), computed=False)
                left = max(left - 1, 0)
    script.free(*list(script.lengths))
    script.probe(*lines)
    return script.call()


@by_age
def evicting_sharers(pick: Pick) -> Call:
    """Two prompts with blocks in common, and some of their own, are given back; then others take some of the blocks."""
    script = Script(pick)
    size = script.size
    line, common, own = script.line(), pick.size(1, 2), pick.size(1, 2)
    other = script.parting(line, common * size)
    lines = line[: (common + own) * size], other[: (common + 2) * size]
    tables = [script.allocate(tokens) for tokens in lines]
    script.fill(0, common + own + 2)
    script.free(*pick.one_of(tables, tables[::-1]))
    for _ in range(pick.size(1, 3)):
        script.allocate(script.line(size), computed=0)
    script.free(*list(script.lengths))
    script.probe(*lines)
    return script.call()


@caching
def overwritten(pick: Pick) -> Call:
    """Of two prompts one is overtaken by tokens that are not computed; all is given back, and as much is taken as was overtaken."""
    script = Script(pick)
    size, blocks, more = script.size, pick.size(1, 3), pick.size(1, 3)
    first = script.allocate(script.line(blocks * size))
    second = script.allocate(script.line(more * size))
    script.fill(0, blocks + more)
    script.free(first)
    other = script.allocate(script.line(blocks * size), computed=0)
    script.free(second, other)
    script.allocate(script.line(blocks * size), computed=0)
    return script.call()


@caching
def overtaken(pick: Pick) -> Call:
    """A pool that others use up between two prompts of the same line; then both lines are asked for."""
    script = Script(pick)
    line = script.line()
    size = script.size
    blocks = pick.size(1, 4)
    first = script.allocate(line[: blocks * size])
    script.free(first)
    script.fill(pick.size(0, 2), blocks)
    others = script.line(pick.size(1, script.blocks) * size)
    other = script.allocate(others, pick.one_of(None, 0))
    if pick.one_of(True, False):
        script.free(other)
    script.probe(others, line[: blocks * size])
    script.allocate(line[: blocks * size])
    return script.call()


@caching
def copied(pick: Pick) -> Call:
    """Two prompts of a line are computed side by side, each in blocks of its own; one is given back and overtaken."""
    script = Script(pick)
    line, size = script.line(), script.size
    short, more = pick.size(1, 3), pick.size(1, 2)
    first = script.allocate(line[: short * size], computed=0)
    second = script.allocate(line[: (short + more) * size], computed=0)
    for table in (first, second) if pick.one_of(True, False) else (second, first):
        script.mark(table)
    gone = pick.one_of(first, second)
    script.fill(0, 2 * short + more)
    script.free(gone)
    script.free(script.allocate(script.line((short if gone == first else short + more) * size), computed=0))
    script.probe(line[: (short + more) * size])
    script.free(*list(script.lengths))
    script.probe(line[: (short + more) * size])
    return script.call()


@caching
def copied_and_computed_again(pick: Pick) -> Call:
    """Two prompts of a line are computed side by side; the blocks in which both begin are taken, of one and of the other, and
    what follows them stays. Then the beginning is computed again, and asked for. (What follows it may be out of reach.)"""
    script = Script(pick)
    line, size = script.line(), script.size
    short, more = pick.size(1, 2), pick.size(1, 2)
    first = script.allocate(line[: short * size], computed=0)
    second = script.allocate(line[: (short + more) * size], computed=0)
    script.fill(0, 2 * short + more)
    for table in (first, second):
        script.mark(table)
    script.free(first)
    others = [script.allocate(script.line(short * size), computed=0)]
    script.free(second)
    others.append(script.allocate(script.line(short * size), computed=0))
    script.free(*others)
    again = script.allocate(line[: short * size])
    script.probe(line[: short * size + 1])
    script.free(again)
    script.probe(line[: short * size + 1])
    return script.call()


@caching
def passers_by(pick: Pick) -> Call:
    """Nothing is left of a group of tables when those of other lines come: an identity is used again then. The lines of the last
    group are asked for."""
    script = Script(pick, spare=40)
    many = max(min(10, script.blocks // 4), 1)
    groups = [[script.prompt(script.line(), pick.size(1, 3), 1) for _ in range(many)] for _ in range(3)]
    script.do("pass_by", groups=groups)
    script.probe(*groups[-1])
    return script.call()


@caching
def marked_to_and_fro(pick: Pick) -> Call:
    """Of a prompt more is said to be computed, and less, and more; then lines that double some of it are asked for, and the
    prompt itself when others have taken some of its blocks."""
    script = Script(pick)
    line, size = script.line(), script.size
    table = script.allocate(line[: 3 * size + 1], computed=0)
    for least, most in ((size, 3 * size + 1), (0, size), (size, 3 * size + 1)):
        script.mark(table, pick.size(least, most))
    script.fill(0, len(line) // size)
    doubled = [(*line[: (k + 1) * size], *line[k * size : 4 * size]) for k in range(3)]
    script.probe(*doubled[: pick.size(1, 3)])
    script.free(table)
    script.free(script.allocate(script.line(pick.size(1, 3) * size), pick.one_of(0, None)))
    script.probe(line, *doubled)
    return script.call()


@caching
def grown_by_blocks(pick: Pick) -> Call:
    """A table whose blocks are full and computed grows by several blocks at once, that are not computed, or not all."""
    script = Script(pick)
    line, size = script.line(), script.size
    table = script.allocate(line[: pick.size(1, 2) * size + pick.one_of(0, 0, 1)])
    n = script.lengths[table]
    script.append(table, line[n:][: pick.size(1, 4) * size + pick.one_of(1, 0, size - 1)], computed=False)
    script.probe(line)
    script.mark(table, pick.size(n, script.lengths[table]))
    script.probe(line)
    return script.call()


@caching
def abreast(pick: Pick) -> Call:
    """Prompts of a line are computed side by side, each in blocks of its own, and the line is asked for."""
    script = Script(pick)
    line, size = script.line(), script.size
    lengths = [pick.size(1, 2), pick.size(3, 5)][:: pick.one_of(1, -1)]
    tables = [script.allocate(line[: blocks * size], computed=0) for blocks in lengths]
    for table in tables[:: pick.one_of(1, -1)]:
        script.mark(table)
    if pick.one_of(False, True):
        script.free(script.any_table())
    script.probe(line)
    return script.call()


@caching
def abreast_in_pieces(pick: Pick) -> Call:
    """Prompts of a line are computed side by side, one of them piece by piece; others begin with what comes later in the line."""
    script = Script(pick)
    line, size = script.line(), script.size
    short, more = pick.size(1, 2), pick.size(1, 2)
    first = script.allocate(line[: short * size], computed=0)
    second = script.allocate(line[: (short + more) * size + 1], computed=0)
    script.mark(first)
    for blocks in range(pick.size(1, short), short + more + 1):
        script.mark(second, blocks * size)
    if pick.one_of(False, True):
        script.free(script.any_table())
    script.probe(*((*line[start * size : (short + more) * size], 1) for start in range(short + more)))
    return script.call()


@caching
def copies_given_back(pick: Pick) -> Call:
    """The same prompt is computed side by side, in blocks of its own each time; all are given back, and the pool is taken whole."""
    script = Script(pick)
    line, size = script.line(), script.size
    blocks, copies = pick.size(1, 3), pick.one_of(2, 3)
    tables = [script.allocate(line[: blocks * size], computed=0) for _ in range(copies)]
    script.fill(pick.one_of(0, 2), blocks * copies)
    for table in tables[:: pick.one_of(1, -1)]:
        script.mark(table)
    script.free(*tables)
    if pick.one_of(False, True):
        script.probe(line)
    script.whole()
    return script.call()


@caching
def copies_beside_hits(pick: Pick) -> Call:
    """The same prompt is computed side by side, by one of them once others have hit the blocks of the first; they leave in any order."""
    script = Script(pick)
    line, size = script.line(), script.size
    blocks = pick.size(1, 3)
    first, late = (script.allocate(line[: blocks * size], computed=0) for _ in range(2))
    script.mark(first)
    sharers = [script.allocate(line[: blocks * size + 1], computed=0) for _ in range(pick.size(1, 2))]
    script.mark(late)
    tables = [first, late, *sharers]
    script.free(*pick.one_of(tables, tables[::-1], [*sharers, first, late])[: pick.size(1, len(tables))])
    script.allocate(script.line(blocks * size), computed=0)
    script.probe(line)
    return script.call()


@caching
def computed_again(pick: Pick) -> Call:
    """A line is computed, overtaken and computed again, in other blocks; others take its first ones again and again."""
    script = Script(pick)
    line, size = script.line(), script.size
    blocks, more = pick.size(1, 2), pick.size(2, 4)
    script.free(script.allocate(line[: blocks * size]))
    script.fill(more, blocks)
    script.free(script.allocate(script.line(script.blocks * size), computed=0))
    again = script.allocate(line[: blocks * size])
    if pick.one_of(False, True):
        script.free(again)
    for _ in range(pick.size(1, 2)):
        script.free(script.allocate(script.line((script.blocks - blocks) * size), computed=0))
    script.probe((*line[: blocks * size], 1))
    return script.call()


@caching
def crowds(pick: Pick) -> Call:
    """A block is in as many tables as there are; some of them are given back, and others take what is free."""
    script = Script(pick, spare=300)
    prompt = script.line(script.size + 1)
    owners = max(min(pick.one_of(260, 20, 130, 9), script.blocks - 3), 1)
    tables = [script.allocate(prompt, None if not n else 0) for n in range(owners)]
    script.fill(2, owners + 1)
    gone = pick.one_of(owners - 1, 1, owners // 2)
    script.free(*tables[:gone])
    script.allocate(script.line((script.blocks - len(script.lengths) - 1) * script.size), computed=0)
    script.free(*list(script.lengths))
    script.whole()
    return script.call()


@calls
def room_among_the_cached(pick: Pick) -> Call:
    """A table grows into what others gave back, which the cache knows."""
    script = Script(pick)
    size, blocks = script.size, pick.size(1, 3)
    table = script.allocate(script.line(size))
    given_back = [script.allocate(script.line(size)) for _ in range(blocks)]
    script.fill(0, blocks + 1)
    script.free(*given_back)
    for _ in range(blocks):
        script.append(table, script.line(size), pick.one_of(True, False))
    return script.call()


@caching
def family(pick: Pick) -> Call:
    """Prompts part from one another at any block of a long line, in any order of their lengths. All are given back, others take
    block after block, all are asked for again, and one takes the whole pool."""
    script = Script(pick, spare=200)
    size = script.size
    lines = [script.line()]
    for _ in range(pick.size(2, 3)):
        lines.append(script.parting(pick.one_of(*lines), pick.size(0, (LONG - 1) * size)))
    prompts = [(*line[: pick.size(1, LONG - 1) * size], 50) for line in lines]
    tables = [script.allocate(prompt) for prompt in prompts]
    prefixes = {prompt[: n * size] for prompt in prompts for n in range(1, len(prompt) // size + 1)}
    script.fill(0, len(prefixes) + len(prompts))
    script.probe(*lines)
    script.free(*pick.one_of(tables, tables[::-1]))
    script.probe(*prompts)
    for _ in range(pick.size(1, 3)):
        script.allocate(script.line(size), pick.one_of(0, None))
    script.probe(*prompts)
    script.free(*list(script.lengths))
    script.whole()
    return script.call()


@caching
def deep_lookalikes(pick: Pick) -> Call:
    """Lines of many blocks that differ in a token of one of them, or in the order of two, the last one too."""
    script = Script(pick, spare=200)
    size = script.size
    blocks = max(min(pick.one_of(7, 5, 12, 20, 36), script.blocks // 3 - 1), 1)
    line = script.line(blocks * size)
    script.allocate((*line, 1))
    for _ in range(pick.size(1, 2)):
        at = pick.size(0, blocks * size - 1)
        other = list(line)
        if at % size and pick.one_of(False, True):
            other[at - 1], other[at] = line[at], line[at - 1]
        else:
            other[at] += pick.one_of(1, 256, 2**16, 2**32) if script.large else 1
        script.free(script.allocate((*other, 1), computed=0))
    script.probe((*line, 1))
    return script.call()


@caching
def beyond_a_copy(pick: Pick) -> Call:
    """Two prompts of a line are computed side by side, and one goes on. The other is given back, and some of its blocks are taken;
    what the first went on with is asked for behind what is left, and without it. At the end one takes the whole pool."""
    script = Script(pick)
    line, size = script.line(), script.size
    short, more = pick.size(1, 3), pick.size(1, 2)
    first = script.allocate(line[: short * size], computed=0)
    second = script.allocate(line[: (short + more) * size], computed=0)
    script.mark(first)
    script.mark(second)
    script.fill(1, 2 * short + more)
    script.free(first)
    taken = [script.allocate(script.line(pick.size(1, short) * size + 1), computed=0)]
    script.free(*taken)
    own = line[short * size : (short + more) * size]
    script.probe(*((*line[: n * size], *own[:size]) for n in range(short)))
    script.free(second)
    script.probe(*((*line[: n * size], *own, 1)[: script.blocks * size] for n in range(short)))
    script.whole()
    return script.call()


@calls
def grown_into_all(pick: Pick) -> Call:
    """A table grows at once by all blocks that are free, of which the cache knows some, or none."""
    script = Script(pick)
    size, cached, untouched = script.size, pick.size(0, 3), pick.size(0, 3)
    table = script.allocate(script.line(size))
    given_back = [script.allocate(script.line(size)) for _ in range(cached)]
    script.fill(untouched, cached + 1)
    script.free(*given_back)
    script.append(table, script.line((script.blocks - 1) * size), pick.one_of(True, False))
    return script.call()


@caching
def hits_among_the_free(pick: Pick) -> Call:
    """A prompt whose cached blocks are free, in a pool that has just enough for it, or one block too few."""
    script = Script(pick)
    size = script.size
    line = script.line()
    cached, rest, short = pick.size(1, 3), pick.size(1, 3), pick.one_of(0, 0, 1, 2)
    table = script.allocate(line[: cached * size])
    # What was freed after it is cached too: blocks for the rest must be taken from there.
    later = max(rest - short, 0) if pick.one_of(True, False) else 0
    filler = script.allocate(script.line(later * size)) if later else 0
    others = pick.size(0, 2)
    held = script.allocate(script.line(others * size), 0) if others else 0
    script.free(table)
    if filler:
        script.free(filler)
    script.fill(max(cached + rest - short, cached), others)
    script.do("allocate", tokens=line[: (cached + rest) * size])
    number = len(script.steps)
    script.lengths[number], script.lines[number] = (cached + rest) * size, line[: (cached + rest) * size]
    if held:
        script.free(held)
    script.do("allocate", tokens=line[: cached * size + 1])
    return script.call()


@calls
def tight(pick: Pick) -> Call:
    """A pool of exactly the blocks that are asked for: by prompts, by appends, by prompts that share."""
    script = Script(pick)
    size = script.size
    line = script.line()
    used = blocks = pick.size(1, 4)
    first = script.allocate(line[: blocks * size - pick.one_of(0, size - 1)])
    if pick.one_of(False, True):
        more = pick.one_of(pick.size(1, 2 * size), 12 * size)
        total = blocks_of(script.lengths[first] + more, size)
        line += script.line(12 * size)
        script.append(first, line[script.lengths[first] : script.lengths[first] + more])
        used = total
        if pick.one_of(False, True):
            script.fill(0, used)
            return script.call()
    if script.caching and pick.one_of(False, True, True):
        # In use and cached: needs but its last block.
        whole = script.lengths[first] // size
        script.allocate(script.lines[first][: whole * size] + script.line(1), computed=0)
        used += 1
    else:
        script.allocate(script.line(2 * size), computed=0)
        used += 2
    script.fill(0, used)
    return script.call()


@calls
def emptied(pick: Pick) -> Call:
    """Whatever was going on, all tables are freed, and one takes the whole pool."""
    script = Script(pick, spare=pick.one_of(12, 8, 20))
    first = script.line()
    lines = [first, script.parting(first, pick.size(1, 2 * script.size))]
    for _ in range(pick.size(1, 4)):
        table = script.allocate(script.prompt(pick.one_of(*lines), pick.size(0, 2)), pick.one_of(None, 0))
        if pick.one_of(False, True):
            script.append(table, script.line(pick.one_of(1, script.size + 1)), pick.one_of(True, False))
    if pick.one_of(False, True):
        script.do("allocate", tokens=script.line((script.blocks + 1) * script.size))
    order = list(script.lengths)
    while order:
        script.free(order.pop(pick.size(0, len(order) - 1)))
    script.whole()
    return script.call()


Story = tuple[Call, int]
"""A story, and the number of the step that must be refused."""


def _hall(script: Script) -> tuple[int, tuple[int, ...]]:
    """A table in use and another of the same line that was given back or is in use: a past for what comes."""
    pick, line = script.pick, script.line()
    first = script.allocate(script.prompt(line, pick.size(1, 3)), pick.one_of(None, 0))
    if pick.one_of(False, True):
        script.append(first, script.line(pick.one_of(1, script.size)), pick.one_of(True, False))
    return first, line


@calls
def too_long_prompts(pick: Pick, freed: bool = False) -> Story:
    """A prompt that needs a block more than are free, or many; some of its beginning is cached, in use or free. freed:
    whether there is such a beginning, and something else, and all of it free."""
    script = Script(pick)
    line = script.line(24 * script.size)
    script.blocks = min(10, pick.envelope["blocks"])
    cached = pick.size(freed, 3)
    held = script.allocate(line[: cached * script.size]) if cached else 0
    beside = freed or pick.one_of(False, True)
    # It begins otherwise: what is cached of it is no part of the long prompt.
    other = script.allocate(script.parting(line[: script.size + 1], 0), pick.one_of(None, 0)) if beside else 0
    taken = 2 if other else 0
    if freed or (held and pick.one_of(False, True)):
        script.free(held)
    if freed or (other and pick.one_of(False, True)):
        script.free(other)
        taken = 0
    # Even where all that is cached is hit, there is a block too few.
    blocks = script.blocks - taken + pick.one_of(1, 1, 2, 9)
    tokens = line[: (blocks - 1) * script.size + pick.one_of(1, script.size)]
    bad = script.do("allocate", tokens=tokens)
    if not script.lengths and pick.one_of(True, False):
        # All but a few blocks are taken, and whatever was freed first with them.
        left = pick.size(1, 3)
        script.free(script.allocate(script.line((script.blocks - left) * script.size), computed=0))
    script.going_on(line[: cached * script.size], script.lines.get(other, ()))
    return script.call(), bad


@calls
def too_long_appends(pick: Pick) -> Story:
    """More tokens than the free blocks have room for, by one or many; then as many as fit."""
    script = Script(pick)
    table, line = _hall(script)
    used = blocks_of(script.lengths[table], script.size)
    left = pick.size(0, 3)
    cached: tuple[int, ...] = ()
    if pick.one_of(True, False) and used + 2 <= pick.envelope["blocks"]:
        # What is free is known to the cache, and stays so.
        cached = script.prompt(script.line(), 1, 1)
        script.free(script.allocate(cached))
        left = max(left, 2)
    script.fill(left, used)
    room = script.blocks * script.size - script.lengths[table]
    bad = script.do("append", table=table, tokens=script.line(room + pick.one_of(1, 2, script.size, 3 * script.size)))
    if room and not cached and pick.one_of(True, False):
        script.append(table, script.line(room), computed=False)
    script.going_on(cached, line[: script.size * 2])
    return script.call(), bad


@caching
def too_long_among_the_cached(pick: Pick, method: str) -> Story:
    """All that is free is cached, several prompts of a block each, when a prompt or an append needs a block more. Then a
    block is taken, or not, and they are asked for."""
    script = Script(pick)
    size = script.size
    table = script.allocate(script.line(size))
    lines = [script.line(size) for _ in range(pick.size(2, 4))]
    script.free(*[script.allocate(line) for line in lines])
    script.fill(0, len(lines) + 1)
    if method == "append":
        bad = script.do("append", table=table, tokens=script.line(len(lines) * size + 1))
    else:
        bad = script.do(
            "allocate", tokens=(*pick.one_of(*lines, script.line(size)), *script.line((len(lines) - 1) * size + 1))
        )
    if pick.one_of(True, False):
        script.allocate(script.line(1), computed=0)
    script.probe(*((*line, 1) for line in lines))
    return script.call(), bad


def _misused(script: Script, table: int) -> dict[str, Any]:
    """What is asked of a table that must be refused: any method, and its arguments."""
    method = script.pick.one_of("free", "append", "mark_computed")
    match method:
        case "append":
            return {"method": method, "table": table, "tokens": script.line(script.pick.one_of(1, script.size + 1))}
        case "mark_computed":
            return {"method": method, "table": table, "n": len(script.lines[table])}
    return {"method": method, "table": table}


@calls
def freed_tables(pick: Pick) -> Story:
    """A table is used after it was freed, when its blocks are free, hit by another or taken."""
    script = Script(pick, spare=pick.one_of(8, 12, 40))
    table, line = _hall(script)
    if pick.one_of(False, True):
        script.allocate(script.lines[table], pick.one_of(0, None))
    script.free(table)
    for _ in range(pick.size(0, 2)):
        script.allocate(script.lines[table] if pick.one_of(False, True) else script.line(), computed=0)
    given = _misused(script, table)
    bad = script.do(given.pop("method"), **given)
    script.allocate(script.line(script.size + 1), computed=0)
    script.going_on(line[: 2 * script.size])
    return script.call(), bad


@calls
def foreign_tables(pick: Pick) -> Story:
    """The second manager is given a table of the first, when it has tables of its own with the same tokens."""
    script = Script(pick)
    table, line = _hall(script)
    for _ in range(pick.size(0, 2)):
        script.do("meanwhile", tokens=script.lines[table] if pick.one_of(True, False) else script.line(), gone=False)
    bad = script.do("abroad", **_misused(script, table))
    script.going_on(line[: 2 * script.size])
    return script.call(), bad


@calls
def bad_marks(pick: Pick) -> Story:
    """Fewer tokens than none are computed, or more than the table has."""
    script = Script(pick)
    line = script.line()
    table = script.allocate(script.prompt(line, pick.size(0, 3)), computed=0)
    length = script.lengths[table]
    if pick.one_of(False, True):
        script.mark(table, pick.size(0, length))
    room = blocks_of(length, script.size) * script.size
    n = pick.one_of(length + 1, -1, room + 1, max(room, length + 1), -script.size, 2**31)
    bad = script.do("mark_computed", table=table, n=n)
    script.append(table, line[length : length + script.size], pick.one_of(False, True))
    script.going_on(line)
    return script.call(), bad


@calls
def written_over(pick: Pick) -> Call:
    """The caller uses its lists of tokens for something else."""
    script = Script(pick)
    line = script.line()
    first = script.allocate(line[: 2 * script.size + 1], computed=0)
    script.do("overwrite", step=first)
    if pick.one_of(False, True):
        script.mark(first)
    if pick.one_of(False, True):
        step = script.do("append", table=first, tokens=line[2 * script.size + 1 : 4 * script.size])
        script.lengths[first] = 4 * script.size
        script.do("overwrite", step=step)
    script.mark(first)
    if pick.one_of(False, True):
        script.free(first)
    other = script.tokens(token + 1 for token in line)
    script.allocate(other, computed=0)
    script.probe(line)
    return script.call()


@calls
def side_by_side(pick: Pick) -> Call:
    """The second manager has tables of the same tokens, computed before the first one's; it gives some of them back while
    those of the first go on."""
    script = Script(pick, spare=pick.one_of(12, 40))
    line = script.line()
    for _ in range(pick.size(1, 3)):
        if pick.one_of(True, False):
            script.do("meanwhile", tokens=script.prompt(line, pick.size(0, 2)), gone=pick.one_of(False, True))
        script.allocate(script.prompt(line, pick.size(1, 4)), pick.one_of(0, None))
        script.do("meanwhile", tokens=script.prompt(line, pick.size(0, 2)), gone=pick.one_of(True, False))
        script.append(script.any_table(), script.line(1), pick.one_of(True, False))
    script.free(script.any_table())
    return script.call()


@calls
def beside_other_sizes(pick: Pick) -> Call:
    """Managers of other sizes are made while tables are in use: of fewer blocks or more, and of other ones where a manager
    takes several."""
    script = Script(pick, spare=pick.one_of(12, 40))
    line = script.line()
    script.allocate(script.prompt(line, pick.size(1, 3)), pick.one_of(0, None))
    for _ in range(pick.size(1, 2)):
        sizes = [size for size in pick.envelope["block_sizes"] if size != script.size] or [script.size]
        script.do("made", num_blocks=pick.upto("blocks", 1, 500), block_size=pick.one_of(*sizes))
        script.allocate(script.prompt(line, pick.size(1, 4)), pick.one_of(0, None))
        script.append(script.any_table(), script.line(1), pick.one_of(True, False))
    script.free(script.any_table())
    return script.call()


@calls
def no_pools(pick: Pick) -> Call:
    """A pool that can hold nothing."""
    num_blocks, block_size = pick.one_of((0, 4), (4, 0), (-1, 4), (4, -1), (0, 0))
    script = Script(pick)
    script.do("allocate", tokens=(1, 2))
    return script.call().having(num_blocks=num_blocks, block_size=block_size)


_steps = (("allocate", {"tokens": (1, 2, 3)}), ("mark_computed", {"table": 1, "n": 3}), ("free", {"table": 1}))

EXAMPLES = {
    "BlockManager": Call(
        "BlockManager",
        {"num_blocks": 4, "block_size": 2, "prefix_caching": True, "colliding": False, "steps": _steps},
    )
}
"""The plainest call of each operation."""

ORDINARY = {"BlockManager": workloads}
"""The widest calls of each operation."""
