"""Stories of block managers with a step that is to be refused."""

from __future__ import annotations

from typing import Any

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.block_manager_script import Script, caching, calls
from inferspec.conformance.inputs.steps import Tried
from inferspec.conformance.strategies import Pick
from inferspec.spec.block_manager import blocks_of

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
def too_long_among_the_cached(pick: Pick, method: str, again: bool = False) -> tuple[Call, Tried]:
    """All that is free is cached, several prompts of a block each, when a prompt or an append needs a block more. Then a
    block is taken, or not, and they are asked for."""
    script = Script(pick)
    size = script.size
    table = script.allocate(script.line(size))
    lines = [script.line(size) for _ in range(pick.size(2, 4))]
    script.free(*[script.allocate(line) for line in lines])
    script.fill(0, len(lines) + 1)
    if method == "append":
        script.do("append", table=table, tokens=script.line(len(lines) * size + 1))
    else:
        script.do(
            "allocate", tokens=(*pick.one_of(*lines, script.line(size)), *script.line((len(lines) - 1) * size + 1))
        )
    bad = script.tried(again)
    if pick.one_of(True, False):
        script.allocate(script.line(1), computed=0)
    script.probe(*((*line, 1) for line in lines))
    return script.call(), bad


@caching
def too_long_in_turns(pick: Pick, methods: tuple[str, str]) -> tuple[Call, tuple[int, ...]]:
    """All that is free is cached, several prompts of a block each, when an append and a prompt need a block more, the one right after the
    other. Then a block is taken, or not, and they are asked for."""
    script = Script(pick)
    size = script.size
    table = script.allocate(script.line(size))
    lines = [script.line(size) for _ in range(pick.size(2, 4))]
    script.free(*[script.allocate(line) for line in lines])
    script.fill(0, len(lines) + 1)
    tokens = script.line(len(lines) * size + 1)
    asked: dict[str, dict[str, Any]] = {"append": {"table": table, "tokens": tokens}, "allocate": {"tokens": tokens}}
    bad = tuple(script.do(method, **asked[method]) for method in methods)
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


@caching
def bad_marks_before_short_ones(pick: Pick) -> Story:
    """More tokens are computed than the table has, and then, rightly, fewer; who begins likewise hits these alone."""
    script = Script(pick)
    line = script.line(6 * script.size)
    length = script.size * pick.size(2, 4) + pick.one_of(0, 1, script.size - 1)
    table = script.allocate(line[:length], computed=0)
    bad = script.do("mark_computed", table=table, n=length + pick.one_of(1, script.size, 3))
    script.mark(table, pick.one_of(1, script.size, script.size + 1))
    script.allocate(line[: length + pick.one_of(1, script.size)], computed=0)
    return script.call(), bad


@calls
def no_pools(pick: Pick) -> Call:
    """A pool that can hold nothing."""
    num_blocks, block_size = pick.one_of((0, 4), (4, 0), (-1, 4), (4, -1), (0, 0))
    script = Script(pick)
    script.do("allocate", tokens=(1, 2))
    return script.call().having(num_blocks=num_blocks, block_size=block_size)
