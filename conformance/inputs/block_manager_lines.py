"""Stories of block managers whose prompts part, repeat each other or are nearly the same."""

from __future__ import annotations

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.block_manager_script import LONG, Script, caching
from inferspec.conformance.strategies import Pick


@caching
def lookalikes(pick: Pick, texts: bool = False, sums: bool = False) -> Call:
    """Lines that are another line's in all but a little: the tokens before a block, their order, their high bits.

    texts: they have the same digits in a row. sums: the same sum of what is multiplied token by token.
    """
    script = Script(pick, hashes=True)
    line = script.line()
    another = script.same_text if texts else script.same_sum if sums else script.alike
    if not (texts or sums) and pick.one_of(False, True):
        # Of three ids, one of which is 0.
        line = script.tokens(token % 3 for token in line)
    script.allocate(script.prompt(line, pick.size(2, 5), 1))
    for _ in range(pick.size(1, 4)):
        script.allocate(script.prompt(another(line), pick.size(1, 5), 1), pick.one_of(0, None))
    script.probe(line)
    return script.call()


@caching
def other_prefixes(pick: Pick) -> Call:
    """The same block after others: repeated, moved, behind another beginning, or after the same ones in another order."""
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
    swapped = (*blocks[1], *blocks[0])
    script.allocate((*swapped, 1))
    script.probe((*swapped, *blocks[2], 1))
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
