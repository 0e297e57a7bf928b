"""Stories of block managers whose pool is nearly full: what is cached gives way to what is asked for."""

from __future__ import annotations

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.block_manager_script import LONG, Script, by_age, caching, calls
from inferspec.conformance.strategies import Pick
from inferspec.spec.block_manager import blocks_of


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
def evicting_sharers(pick: Pick, shared: tuple[int, ...] = (1, 2)) -> Call:
    """Two prompts with blocks in common, and some of their own, are given back; then others take some of the blocks.
    shared: how many blocks they have in common."""
    script = Script(pick)
    size = script.size
    line = script.line((max(*shared, 2) + 4) * size)
    common, own = pick.one_of(*shared), pick.size(1, 2)
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


@calls
def grown_to_the_last_slot(pick: Pick) -> Call:
    """A table whose last block is part full grows by several tokens at once, to the last slot of the pool."""
    script = Script(pick)
    size, more = script.size, pick.size(0, 2)
    line = script.line()
    n = pick.size(0, 2) * size + pick.size(1, max(size - 1, 1))
    script.blocks = -(-n // size) + more
    table = script.allocate(line[:n])
    script.append(table, line[n : script.blocks * size])
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


@caching
def hits_partly_in_use(pick: Pick, tables: int = 1) -> Call:
    """A prompt whose first cached blocks are in use, by so many tables, and whose others are free, in a pool that has just enough
    for it, or one block too few."""
    script = Script(pick)
    size, line = script.size, script.line()
    cached, rest, short = pick.size(2, 4), pick.size(1, 2), pick.one_of(0, 1)
    shared = pick.size(1, cached - 1)
    table = script.allocate(line[: cached * size])
    for _ in range(tables):
        script.allocate(line[: shared * size + 1], computed=0)
    script.free(table)
    script.fill(cached + rest - short, tables)
    script.do("allocate", tokens=line[: (cached + rest) * size])
    script.do("allocate", tokens=line[: cached * size + 1])
    return script.call()


@caching
def all_that_is_cached_taken(pick: Pick) -> Call:
    """A large pool is full of what the cache knows, all of it free; a prompt or an append takes all of it at once."""
    script = Script(pick, spare=pick.one_of(300, 70, 130))
    size = script.size
    first = script.allocate(script.line(script.blocks * size))
    script.free(first)
    if pick.one_of(True, False):
        script.allocate(script.line(script.blocks * size), computed=0)
    else:
        table = script.allocate(script.line(size), computed=0)
        script.append(table, script.line((script.blocks - 1) * size), computed=False)
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


@caching
def evicting_beside(pick: Pick) -> Call:
    """Prompts are given back, and the second manager gives back more than it has room for; then others take some of the
    first one's blocks, or all."""
    script = Script(pick)
    lines = [script.line(pick.size(1, 3) * script.size) for _ in range(2)]
    script.fill(0, sum(len(line) for line in lines) // script.size)
    script.free(*[script.allocate(line) for line in lines])
    for _ in range(pick.size(2, 3)):
        script.do("meanwhile", tokens=script.line(script.blocks * script.size), gone=True)
    for _ in range(pick.size(1, 2)):
        script.allocate(script.line(script.size), computed=0)
    script.append(script.any_table(), script.line((script.blocks - len(script.lengths)) * script.size))
    return script.call()


@caching
def asked_again(pick: Pick, taken: bool) -> Call:
    """A prompt is refused for want of room, and asked for again when there is room. taken: what was cached of it has been
    taken for other tokens meanwhile; or else more of it is cached than at first."""
    script = Script(pick)
    size, line = script.size, script.line()
    blocks = pick.size(1, 3)
    cached, prompt = line[: blocks * size], line[: (blocks + 1) * size + 1]
    if taken or pick.one_of(False, True):
        script.free(script.allocate(cached if taken else line[:size]))
    held = script.allocate(script.line(2 * size), computed=0)
    script.fill(blocks, 2)
    script.do("allocate", tokens=prompt)
    if not taken:
        script.free(script.allocate(cached))
    elif pick.one_of(True, False):
        script.append(held, script.line(len(cached)), computed=False)
    else:
        script.free(script.allocate(script.line(len(cached)), computed=0))
    script.free(held)
    script.allocate(prompt, computed=0)
    return script.call()


@by_age
def well_known(pick: Pick) -> Call:
    """A prompt is asked for again and again, and one that comes after it once; then others take what was freed first."""
    script = Script(pick)
    size = script.size
    lines = [script.line(pick.size(1, 2) * size + 1) for _ in range(2)]
    for _ in range(pick.one_of(3, 5, 9)):
        script.free(script.allocate(lines[0]))
    script.free(script.allocate(lines[1]))
    script.fill(0, blocks_of(len(lines[0]), size) + blocks_of(len(lines[1]), size) - 1)
    for _ in range(pick.size(1, 2)):
        script.allocate(script.line(pick.size(1, 2) * size), computed=0)
    return script.call()
