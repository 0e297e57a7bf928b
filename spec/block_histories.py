"""Judges what was observed of a block manager: which sentences of its contract a history breaks, and at which step.

The device is the ghost of each block: the tokens whose keys and values were last computed into it. A hit must find the
ghost that it claims, a block that has a ghost must be hit, and taking a block for other tokens is what evicts it. Nothing
here presumes which block a manager takes: it follows what the manager did.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple

import numpy as np

from inferspec.spec.block_manager import blocks_of
from inferspec.spec.contract import Arguments


class Check(StrEnum):
    """What a complaint is about."""

    COUNT = "a table has the right number of distinct blocks of the pool"
    STAYS = "tables stay as they were, but for what a step adds"
    TOLD = "the numbers of tokens"
    APART = "blocks that are not hit are in one table alone"
    FREE = "num_free"
    PARTIAL = "hits are of whole blocks and leave a token"
    SOUND = "a hit block holds what it is hit for"
    COMPLETE = "what is cached is hit"
    ORDER = "blocks are taken in the order in which they were freed"
    SPARE = "blocks that are not cached are taken first"
    ADMITS = "what there is room for is admitted"
    REFUSES = "what there is no room for is refused"
    OFF = "nothing is cached or shared without prefix caching"
    CALLER = "the caller's list"
    ABROAD = "the second manager"


MUST = tuple(check for check in Check if check is not Check.SPARE)


class Complaint(NamedTuple):
    """What a check has against a history: at which step, and what is wrong there."""

    check: Check
    step: int
    text: str


Content = tuple[int, ...]
"""A prefix: all tokens up to a block's end."""


@dataclass
class Known:
    """A table in use: what was asked for, and what it last showed."""

    tokens: list[int]
    cached: int = 0
    shown: list[int] = field(default_factory=list)

    @property
    def ids(self) -> list[int]:
        return self.shown[2:]


def complaints(a: Arguments, parts: Mapping[str, np.ndarray]) -> list[Complaint]:
    """What is wrong with a history, in the order of its steps."""
    return list(_Judge(a, parts).judged())


class _Judge:
    def __init__(self, a: Arguments, parts: Mapping[str, np.ndarray]) -> None:
        self.a, self.parts, self.size = a, parts, a.block_size
        self.tables: dict[int, Known] = {}
        self.ghosts: dict[int, Content] = {}
        self.holders: dict[Content, set[int]] = defaultdict(set)
        """The blocks whose ghost it is."""
        self.freed: dict[int, tuple[float, int]] = {}
        """Free block -> when it was freed: the step, and from the table's end."""
        self.unsure: set[Content] = set()
        """What was in two blocks of which one was taken: the cache may know the other, or not."""
        self.hit: dict[Content, int] = {}
        """The block that the cache has shown to know, as long as no copy of it is given back: it may be known by that then."""
        self.abroad = a.num_blocks

    def judged(self) -> Iterator[Complaint]:
        for number, (step, given) in enumerate(self.a.steps, 1):
            before = dict(self.tables)
            refused = self._has(number, "refused")
            if self._has(number, "changed"):
                yield Complaint(Check.CALLER, number, "the caller's list of tokens was changed")
            if not self._has(number, "absent"):
                judge = self._STEPS.get(step)
                for check, text in judge(self, number, refused, **given) if judge else ():
                    yield Complaint(check, number, text)
            for check, text in self._after(number, step, given, before, refused):
                yield Complaint(check, number, text)

    # steps: each yields what is wrong with it, and notes what it changed

    def _allocate(
        self, number: int, refused: bool, tokens: Sequence[int], table: int | None = None
    ) -> Iterator[tuple[Check, str]]:
        table = number if table is None else table
        free, total = self._free(), blocks_of(len(tokens), self.size)
        sure, live = self._hits(tokens)
        if refused:
            if total - live[0] <= free:
                yield Check.ADMITS, f"{total - live[0]} of {free} free blocks are needed, and it is refused"
            return
        if total - live[1] > free:
            yield Check.REFUSES, f"{total - live[1]} blocks are needed and {free} are free"
        known = self._show(number, table, Known(list(tokens)))
        known.cached = known.shown[0]
        hit = min(known.cached // self.size, len(known.ids))
        yield from self._counted(known)
        if not self.a.prefix_caching and known.cached:
            yield Check.OFF, f"num_cached_tokens is {known.cached} without prefix caching"
        if known.cached % self.size or not 0 <= known.cached < len(tokens):
            yield Check.PARTIAL, f"num_cached_tokens is {known.cached} of {len(tokens)}, in blocks of {self.size}"
        for index, block in enumerate(known.ids[:hit]):
            if self.ghosts.get(block) != tuple(tokens[: (index + 1) * self.size]):
                what = "other tokens" if block in self.ghosts else "nothing that was computed"
                yield Check.SOUND, f"block_ids[{index}] is hit, and holds {what}"
        self.hit |= {self.ghosts[block]: block for block in known.ids[:hit] if block in self.ghosts}
        if hit < sure:
            yield Check.COMPLETE, f"{hit} blocks are hit where {sure} are cached"
        yield from self._took(known.ids[hit:], known, table)
        self.tables[table] = known

    def _append(self, number: int, refused: bool, table: int, tokens: Sequence[int]) -> Iterator[tuple[Check, str]]:
        known = self.tables.get(table)
        if known is None:
            return
        free = self._free()
        more = blocks_of(len(known.tokens) + len(tokens), self.size) - len(known.ids)
        if refused:
            if more <= free:
                yield Check.ADMITS, f"{more} of {free} free blocks are needed, and it is refused"
            return
        if more > free:
            yield Check.REFUSES, f"{more} blocks are needed and {free} are free"
        old, written = known.ids, len(known.tokens) // self.size
        known = self._show(number, table, Known([*known.tokens, *tokens], known.cached))
        yield from self._counted(known)
        if known.ids[: len(old)] != old:
            yield Check.STAYS, f"its blocks were {old} and are {known.ids}"
        elsewhere = self._elsewhere(table)
        if tokens and set(known.ids[written : len(old)]) & elsewhere:
            yield Check.APART, "it writes into a block of another table"
        yield from self._took(known.ids[len(old) :], known, table)
        self.tables[table] = known

    def _mark_computed(self, number: int, refused: bool, table: int, n: int) -> Iterator[tuple[Check, str]]:
        known = self.tables.get(table)
        if known is None or not 0 <= n <= len(known.tokens):
            return
        if refused:
            yield Check.ADMITS, f"{n} of {len(known.tokens)} tokens can be marked, and it is refused"
        elif self.a.prefix_caching:
            whole = min(n // self.size, len(known.ids))
            if table >= 0:
                self._joined(number, table, whole)
            known = self.tables[table]
            for index in range(known.cached // self.size, whole):
                self._write(known.ids[index], tuple(known.tokens[: (index + 1) * self.size]))

    def _joined(self, number: int, table: int, whole: int) -> None:
        """Note which of its whole blocks a table has left for the cached ones that hold the same; any other move is not noted, and
        found after the step."""
        known, shown = self.tables[table], self._read(number, table)
        for index, (own, block) in enumerate(zip(known.ids[:whole], shown[2:], strict=False)):
            if own == block or self.ghosts.get(block) != tuple(known.tokens[: (index + 1) * self.size]):
                continue
            # Another list: what was before the step is compared with what is.
            shown_now = [*known.shown[: index + 2], block, *known.shown[index + 3 :]]
            known = self.tables[table] = replace(known, shown=shown_now)
            self.freed.pop(block, None)

    def _freeing(self, number: float, refused: bool, table: int) -> Iterator[tuple[Check, str]]:
        if table not in self.tables:
            return
        if refused:
            yield Check.ADMITS, "a table in use is not freed"
            return
        gone = self.tables.pop(table)
        used = self._used()
        for block in gone.ids:
            self.hit.pop(self.ghosts.get(block, ()), None)
        self.freed |= {block: (number, -index) for index, block in enumerate(gone.ids) if block not in used}

    def _pass_by(
        self, number: int, refused: bool, groups: Sequence[Sequence[Sequence[int]]]
    ) -> Iterator[tuple[Check, str]]:
        if refused:
            yield Check.ADMITS, "tables that come and go are refused"
            return
        passed = 0
        for lines in groups:
            tables = {-1 - passed - k: line for k, line in enumerate(lines)}
            passed += len(lines)
            for table, line in tables.items():
                yield from self._allocate(number, False, line, table)
            for table, line in tables.items():
                yield from self._mark_computed(number, False, table, len(line))
            for k, table in enumerate(tables):
                # Within a step too, what was freed first is known to be.
                yield from self._freeing(number + (passed + k) / 1000, False, table)

    def _meanwhile(self, number: int, refused: bool, tokens: Sequence[int], gone: bool) -> Iterator[tuple[Check, str]]:
        yield from ()
        if not refused:
            self.abroad = int(self.parts[f"{number} free abroad"])

    def _made(
        self, number: int, refused: bool, num_blocks: int, block_size: int, prefix_caching: bool | None = None
    ) -> Iterator[tuple[Check, str]]:
        if refused:
            yield Check.ADMITS, f"a manager of {num_blocks} blocks of {block_size} tokens cannot be made beside it"

    _STEPS: ClassVar[Mapping[str, Callable[..., Iterator[tuple[Check, str]]]]] = {
        "allocate": _allocate,
        "append": _append,
        "mark_computed": _mark_computed,
        "free": _freeing,
        "made": _made,
        "meanwhile": _meanwhile,
        "pass_by": _pass_by,
    }

    # what any step shows

    def _after(
        self, number: int, step: str, given: Mapping[str, Any], before: Mapping[int, Known], refused: bool
    ) -> Iterator[tuple[Check, str]]:
        changed = {number} if step == "allocate" else {given["table"]} if step == "append" and not refused else set()
        for k in set(before) & set(self.tables) - changed:
            shown = self._read(number, k)
            if shown != self.tables[k].shown:
                yield Check.STAYS, f"table {k} was {before[k].shown} and is {shown}"
                self.tables[k].shown = shown
        free = int(self.parts[f"{number} free"])
        if free != self._free():
            yield Check.FREE, f"num_free is {free}, and {self._free()} blocks are in no table"
        if self._has(number, "free abroad") and step == "abroad":
            abroad = int(self.parts[f"{number} free abroad"])
            if abroad != self.abroad:
                yield Check.ABROAD, f"num_free of the second manager was {self.abroad} and is {abroad}"

    def _counted(self, known: Known) -> Iterator[tuple[Check, str]]:
        total, ids = blocks_of(len(known.tokens), self.size), known.ids
        # Others are told by the order in which they were first seen: beside those, the list would not be what was shown.
        if foreign := [i for i in ids if not 0 <= i < self.a.num_blocks]:
            yield Check.COUNT, f"block_ids has {foreign}; ids of the pool are 0 … {self.a.num_blocks - 1}"
        elif len(ids) != total or len(set(ids)) != len(ids):
            numbered = f"block_ids, numbered as they were first seen, is {ids}"
            yield Check.COUNT, f"{numbered} for {len(known.tokens)} tokens in blocks of {self.size}"
        if known.shown[:2] != [known.cached, len(known.tokens)]:
            yield (
                Check.TOLD,
                f"it has {known.shown[0]} cached of {known.shown[1]} tokens, not {known.cached} of {len(known.tokens)}",
            )

    def _took(self, fresh: Sequence[int], known: Known, number: int) -> Iterator[tuple[Check, str]]:
        """Blocks taken for other tokens: nobody else has them, and those with a ghost were the right ones to evict."""
        shared = set(fresh) & self._elsewhere(number)
        if shared:
            yield Check.APART, f"blocks {sorted(shared)} are in another table"
            if not self.a.prefix_caching:
                yield Check.OFF, f"blocks {sorted(shared)} are in another table without prefix caching"
        free = set(self.freed) - set(known.ids)
        evicted = [block for block in fresh if block in self.freed and self._certain(block)]
        kept = [block for block in free if self._certain(block)]
        for block in evicted:
            if older := [other for other in kept if self.freed[other] < self.freed[block]]:
                yield Check.ORDER, f"block {block} is taken, and block {older[0]} was freed before it"
        unseen = self.a.num_blocks - len(self._used() | set(self.freed) | set(known.ids))
        if evicted and (unseen or any(block not in self.ghosts for block in free)):
            yield Check.SPARE, f"block {evicted[0]} is cached and taken while one that is not is free"
        for block in fresh:
            self._lose(block)
        for block in known.ids:
            self.freed.pop(block, None)

    def _write(self, block: int, content: Content) -> None:
        self._erase(block)
        self.ghosts[block] = content
        self.holders[content].add(block)

    def _erase(self, block: int) -> Content | None:
        content = self.ghosts.pop(block, None)
        if content is not None:
            self.holders[content].discard(block)
        return content

    def _lose(self, block: int) -> None:
        content = self._erase(block)
        if content is None or self.hit.get(content) in self._copies(content):
            return
        (self.unsure.add if self._copies(content) else self.unsure.discard)(content)

    # what is known

    def _hits(self, tokens: Sequence[int]) -> tuple[int, tuple[int, int]]:
        """How many leading blocks must be hit; and how many of them are in use, at least and at most."""
        sure, sure_live, live, certain = 0, 0, 0, self.a.prefix_caching
        used = self._used()
        for index in range((len(tokens) - 1) // self.size):
            content = tuple(tokens[: (index + 1) * self.size])
            copies = self._copies(content)
            if not copies:
                break
            certain = certain and content not in self.unsure
            sure += certain
            sure_live += certain and copies <= used
            live += any(block in used for block in copies)
        return sure, (sure_live, live)

    def _certain(self, block: int) -> bool:
        """Whether the cache must know a block: it has a ghost that no other has, or had."""
        content = self.ghosts.get(block)
        return content is not None and content not in self.unsure and len(self._copies(content)) == 1

    def _copies(self, content: Content) -> set[int]:
        return self.holders.get(content, set())

    def _used(self) -> set[int]:
        return {block for known in self.tables.values() for block in known.ids}

    def _elsewhere(self, number: int) -> set[int]:
        return {block for k, known in self.tables.items() if k != number for block in known.ids}

    def _free(self) -> int:
        return self.a.num_blocks - len(self._used())

    def _show(self, number: int, table: int, known: Known) -> Known:
        known.shown = self._read(number, table)
        return known

    def _read(self, number: int, table: int) -> list[int]:
        return [int(x) for x in self.parts[f"{number} table {table}"]]

    def _has(self, number: int, name: str) -> bool:
        return f"{number} {name}" in self.parts
