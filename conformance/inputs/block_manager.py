"""Stories of block managers for the suites: prompts that share prefixes, in pools that are large or nearly full.

A prompt is the beginning of one of a few long lines of tokens. Lines part from each other at the edges of blocks and beside
them, repeat a block, or have one token's low bits in common with another's, so that whatever is taken for a prefix that is none
shows.
"""

from __future__ import annotations

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.block_manager_script import LONG, Script, caching, calls
from inferspec.conformance.strategies import Pick


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
def many_prefixes(pick: Pick) -> Call:
    """Hundreds of prompts are cached, each with a first block of its own and the same second one; some of them come again, and
    others whose first block is new."""
    script = Script(pick, spare=700)
    many = max(min(300, (script.blocks - 5) // 2), 1)
    rest = script.line(script.size - 1)
    second = script.line(script.size + 1)
    lines = [(1000 + number, *rest, *second) for number in range(many + 2)]
    script.do("pass_by", groups=[[line] for line in lines[:many]])
    again = pick.random.integers(0, many, 3).tolist()
    script.probe(*(lines[number] for number in (*again, many - 1, many, many + 1)))
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
def filled_up(pick: Pick) -> Call:
    """A table whose last block is part full grows by several tokens at once, just to the end of that block or of a later one;
    they are computed later, or not all of them."""
    script = Script(pick)
    line, size = script.line(), script.size
    n = pick.size(0, 2) * size + pick.size(1, max(size - 1, 1))
    table = script.allocate(line[:n], pick.one_of(None, None, 0))
    end = n + -n % size + pick.one_of(0, 0, 1, 2) * size
    script.append(table, line[n:end], computed=False)
    script.probe(line)
    script.mark(table, pick.one_of(end, max(end - 1, n)))
    script.probe(line)
    return script.call()


@caching
def given_back_unfinished(pick: Pick) -> Call:
    """A table is given back when its last tokens are not computed, which may fill a block; then all of it is asked for."""
    script = Script(pick)
    line, size = script.line(), script.size
    n = pick.size(1, 3) * size + pick.one_of(0, 0, 0, 1)
    first = pick.one_of(n, max(n - 1, 1), pick.size(1, n))
    table = script.allocate(line[:first], computed=0)
    if first < n:
        script.append(table, line[first:n], computed=False)
    script.mark(table, n - pick.one_of(1, 1, 1, size))
    script.free(table)
    script.probe(line)
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
def beside_another_kind(pick: Pick) -> Call:
    """A manager that caches is made while one that does not has tables, or the other way round; then prompts come again."""
    script = Script(pick)
    line = script.line()
    first = script.allocate(script.prompt(line, pick.size(1, 3)))
    other = [kind for kind in pick.envelope["prefix_caching"] if kind != script.caching] or [script.caching]
    script.do("made", num_blocks=script.blocks, block_size=script.size, prefix_caching=other[0])
    if pick.one_of(True, False):
        script.free(first)
    script.allocate(script.prompt(line, pick.size(1, 4)))
    script.probe(line)
    return script.call()


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

_wide_steps = (
    ("allocate", {"tokens": (2**60, 2**60 + 1)}),
    ("append", {"table": 1, "tokens": (2**60 + 2, 2**60 + 3)}),
    ("mark_computed", {"table": 1, "n": 4}),
    ("allocate", {"tokens": (2**60, 2**60 + 1, 2**60 + 2)}),
)

OPTIONAL = {"BlockManager": {"id_bits": {63: EXAMPLES["BlockManager"].having(num_blocks=8, steps=_wide_steps)}}}
"""Choices that may be refused, by their key, with a call that asks for them and for nothing else that is rare."""
