"""Stories of block managers in which several blocks hold the same tokens."""

from __future__ import annotations

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.block_manager_script import Script, caching
from inferspec.conformance.strategies import Pick


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
def abreast_of_what_looks_alike(pick: Pick) -> Call:
    """Prompts of a line, and one that begins otherwise and goes on as it does, are computed side by side, piece by piece; some are
    given back before others are computed. At the end one takes the whole pool."""
    script = Script(pick)
    line, size = script.line(), script.size
    blocks = pick.size(2, 3)
    lines = [line[: blocks * size + 1], line[: blocks * size], ((line[0] + 1) % 50, *line[1 : blocks * size])]
    lines = [lines[k] for k in pick.one_of((0, 1, 2), (0, 2, 1), (2, 0, 1))]
    tables = [script.allocate(tokens, computed=0) for tokens in lines]
    script.fill(pick.one_of(0, 2), len(lines) * blocks + 1)
    script.mark(tables[0])
    if pick.one_of(False, True):
        script.free(tables[0])
    for table in tables[1:]:
        script.mark(table, pick.size(1, blocks) * size)
        script.mark(table)
    script.allocate(script.line(pick.size(1, 2) * size), computed=0)
    script.going_on(*lines)
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
def copies_taken_beside_hits(pick: Pick, spare: int = 0) -> Call:
    """The same prompt is computed side by side and given back, and another request hits it; what it left of that is taken.

    spare: blocks that are taken with it, so that there is room for those who ask where what is hit needs a block too.
    """
    script = Script(pick)
    line, size = script.line(), script.size
    blocks = pick.size(1, 3)
    tables = [script.allocate(line[: blocks * size], computed=0) for _ in range(pick.size(2, 3))]
    script.fill(1 + spare, len(tables) * blocks)
    for table in tables[:: pick.one_of(1, -1)]:
        script.mark(table)
    script.free(*tables[:: pick.one_of(1, -1)])
    script.allocate(line[: blocks * size + 1], computed=0)
    script.free(script.allocate(script.line(((len(tables) - 1) * blocks + spare) * size), computed=0))
    script.probe(line[: blocks * size + 1])
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
