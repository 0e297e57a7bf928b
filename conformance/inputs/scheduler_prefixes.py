"""Stories of schedulers in which prompts begin with what is cached."""

from __future__ import annotations

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.scheduler_script import Script, caching, caching_cancelling, equal_caching
from inferspec.conformance.strategies import Pick
from inferspec.spec.block_manager import blocks_of
from inferspec.spec.serving import alone


@caching
def large_ids(pick: Pick) -> Call:
    """Prompts of ids past 16 bits; the second one differs from the first in their high bits alone, or begins as it does."""
    script = Script(pick, budgets=(64, 8, 300))
    tokens = [int(token) for token in script.random.integers(0, 20_000, 3 * script.size + 1)]
    high = pick.one_of(65_536, 131_072, 2**31)
    script.add(tuple(token + high for token in tokens), 2)
    if pick.one_of(True, False):
        script.do("finish")
    script.add(tuple(tokens), pick.size(1, 3))
    script.add((*(token + high for token in tokens[: 2 * script.size]), *script.tokens(2)), 2)
    return script.end()


@equal_caching
def hits_lost_in_the_queue(pick: Pick) -> Call:
    """A request whose prompt was computed when it came, and is no more when it is its turn: another one took the blocks."""
    script = Script(pick, budgets=(3, 5, 8, 2))
    script.most = 1
    known = script.line[: pick.size(2, 4) * script.size]
    script.add((*known, *script.tokens(1)), 1)
    script.do("finish")
    script.add(script.tokens(1), len(known) + script.size + pick.size(1, 3))
    script.do("step")
    script.add((*known, *script.tokens(1)), pick.size(1, 3))
    script.blocks = max(blocks_of(slots, script.size) for slots in script.slots.values())
    return script.end()


@equal_caching
def queued_hits(pick: Pick) -> Call:
    """Requests of one priority in a queue, of which those behind begin with what was computed and the first does not."""
    script = Script(pick, budgets=(64, 3, 8))
    script.most = pick.one_of(1, 2)
    known = script.line[: pick.size(1, 3) * script.size]
    script.add((*known, *script.tokens(1)), pick.size(1, 3))
    script.do("finish")
    for _ in range(script.most):
        script.add(script.tokens(1), pick.size(2, 4))
    script.do("step")
    for _ in range(pick.size(1, 2)):
        script.add(script.tokens(len(known) + 1), pick.size(1, 3))
    script.add((*known, *script.tokens(1)), pick.size(1, 3))
    return script.end()


@caching
def guessed_outputs(pick: Pick, again: bool = False) -> Call:
    """A request generates over the ends of blocks; a later prompt goes on otherwise than it did: with ids that hold a place
    until the right ones are known, or with what it generated moved by one. again: with its first id again and again."""
    script = Script(pick, budgets=(64, 8, 3))
    size = script.size
    tokens, limit = script.tokens(pick.size(1, size + 1)), 2 * size + pick.size(1, 3)
    script.add(tokens, limit)
    script.do("finish")
    ids = alone(tokens, limit)
    held = pick.one_of(0, tokens[-1], 1, tokens[0])
    moved = pick.one_of((held,) * limit, (*ids[1:], held), (tokens[-1], *ids[:-1]))
    others = ids[:1] * limit if again else moved
    script.add((*tokens, *others), pick.size(1, 3))
    return script.end()


@caching
def conversations(pick: Pick) -> Call:
    """Prompts that go on from what a request generates, while it does or afterwards; the model fails now and then."""
    script = Script(pick, budgets=(64, 8, 3))
    size = script.size
    tokens, limit = script.tokens(pick.size(1, size)), pick.size(size, 2 * size + 2)
    script.add(tokens, limit)
    following = (*tokens, *alone(tokens, limit))
    for _ in range(pick.size(1, 3)):
        script.work(3)
        match pick.one_of("step", "fail", "steps"):
            case "fail":
                script.void()
            case "steps":
                for _ in range(limit):
                    script.do("step")
        script.add((*following[: max(1, pick.size(1, 3) * size)], *script.tokens(1)), pick.size(1, 3))
    return script.end()


@caching
def going_on(pick: Pick) -> Call:
    """A request alone, whose last step may be its first, and a prompt that goes on from all that was computed of it."""
    script = Script(pick, budgets=(64, 8, 3, 1))
    size = script.size
    # The last token that is computed fills a block, or stands behind one that the first step fills and passes by.
    beside = pick.one_of(0, 1) if size > 1 else 0
    limit = 1 if beside else pick.one_of(1, 2, 3, size + 1)
    tokens = script.tokens(pick.size(1, 3) * size + (beside or (1 - limit) % size))
    ids = alone(tokens, limit)
    ends = ids[-1:] if pick.one_of(False, True) and ids[-1] not in ids[:-1] else []
    script.add(tokens, limit, tuple(ends))
    for _ in range(blocks_of(len(tokens), script.budget) + limit - 1):
        script.do("step")
    script.add((*tokens, *ids[:-1], *script.tokens(pick.size(1, size))), pick.size(1, 3))
    return script.end()


@caching
def beside_one_that_goes_on(pick: Pick) -> Call:
    """A request generates, or has a token or two of its prompt left; a prompt goes on from all that was computed of it."""
    script = Script(pick, budgets=(8, 3, 16))
    script.most, left = 8, pick.one_of(0, 1, 2)
    steps = blocks_of(script.size, script.budget) + pick.size(0, 1)
    computed = script.tokens(steps * script.budget)
    script.add((*computed, *script.tokens(left)), 4)
    for _ in range(steps):
        script.do("step")
    script.add((*computed, *script.tokens(script.size)), pick.size(1, 3))
    return script.end()


@caching_cancelling
def interrupted(pick: Pick) -> Call:
    """A request that is cancelled when its last id, which was not computed, fills a block; a prompt goes on from it."""
    script = Script(pick, budgets=(64, 8))
    size = script.size
    tokens = script.tokens(pick.size(1, 2 * size))
    # So many ids that prompt and output end with a block.
    ids = -len(tokens) % size or size
    request = script.add(tokens, ids + pick.size(1, 3))
    for _ in range(-(-len(tokens) // script.budget) + ids - 1):
        script.do("step")
    script.cancel(request)
    script.add((*tokens, *alone(tokens, ids), *script.tokens(pick.size(1, 2))), pick.size(1, 3))
    return script.end()


@caching
def hits(pick: Pick) -> Call:
    """Prompts that begin alike, one after the other or at once, computed, half computed or spoilt."""
    script = Script(pick, scarce=pick.one_of(False, False, True))
    for _ in range(pick.size(2, 4)):
        n = pick.size(1, 3) * script.size + pick.one_of(0, 1, script.size - 1)
        script.add((*script.line[:n], *script.tokens(pick.one_of(0, 1)))[: max(n, 1)], pick.size(1, 3))
        match pick.one_of("nothing", "work", "work", "finish", "fail", "cancel"):
            case "work":
                script.work(2)
            case "finish":
                script.do("finish")
            case "fail":
                script.void()
            case "cancel":
                script.do("schedule")
                script.cancel(script.any_request())
                script.update("")
    return script.end()


@equal_caching
def hits_at_once(pick: Pick) -> Call:
    """Requests that come at once and begin with what was computed: there is budget for what is left of each, and none for
    two whole prompts."""
    script = Script(pick)
    script.most, left = pick.one_of(8, 3, 4), pick.size(1, 2)
    known = script.line[: pick.size(2, 4) * script.size]
    script.budget = len(known) + left
    script.add((*known, *script.tokens(1)), 1)
    script.do("finish")
    for _ in range(pick.size(2, 3)):
        script.add((*known, *script.tokens(left)), pick.size(1, 3))
    return script.end()


@caching
def of_one_prompt(pick: Pick) -> Call:
    """Requests of one prompt that come at once, and for all of which there is room: each fills blocks with what another has."""
    script = Script(pick, budgets=(64, 8, 16))
    script.most = 8
    tokens, limit = script.tokens(pick.size(1, 2 * script.size)), script.size + pick.size(1, 3)
    for _ in range(pick.one_of(2, 3)):
        script.add(tokens, limit)
    return script.end()


@equal_caching
def ended_together(pick: Pick) -> Call:
    """Requests whose last step is the same one, and prompts that go on from all that was computed of each."""
    script = Script(pick, budgets=(512,))
    script.most = 8
    size, limit, beside = script.size, pick.size(1, 3), []
    for _ in range(pick.size(2, 4)):
        # The last token that is computed fills a block.
        tokens = script.tokens(pick.size(1, 3) * size + (1 - limit) % size)
        ids = alone(tokens, limit)
        ends = ids[-1:] if pick.one_of(False, True) and ids[-1] not in ids[:-1] else []
        script.add(tokens, limit, tuple(ends))
        beside.append((*tokens, *ids[:-1]))
    for tokens in beside[:: pick.one_of(-1, 1)]:
        script.do("finish")
        script.add((*tokens, *script.tokens(pick.size(1, size))), pick.size(1, 3))
    return script.end()


@equal_caching
def ended_when_resumed(pick: Pick) -> Call:
    """A request is preempted when it lacks an id, which is that of the step that computes it again; a prompt goes on from it.

    The other ends with the block that it takes, which is this one's last and not full.
    """
    script = Script(pick, budgets=(64,))
    size = script.size
    script.most = 2
    # The step in which the first takes a block that the second has.
    short, step = pick.size(1, 2), pick.size(3, 5)
    first = script.tokens(short * size + 1 + (1 - step) % size)
    second = script.tokens(pick.size(1, 2) * size + (1 - step) % size)
    held = blocks_of(len(first) + step - 2, size) + blocks_of(len(second) + step - 2, size)
    script.add(first, step)
    script.add(second, step)
    script.blocks = held
    script.do("finish")
    script.add((*second, *alone(second, step)[:-1], *script.tokens(1)), 1)
    return script.end()


@equal_caching
def computed_again_where_it_was_taken(pick: Pick) -> Call:
    """A request is preempted with whole blocks, of which the other takes the last; it fills no more of them when it is
    resumed, and a prompt goes on from it."""
    script = Script(pick, budgets=(64,))
    size, script.most = script.size, 2
    blocks, limit = pick.size(1, 3), pick.size(2, size)
    first, second = script.tokens(pick.size(1, 2) * size), script.tokens(blocks * size)
    script.add(first, pick.size(2, 4))
    script.add(second, limit)
    script.blocks = (len(first) + len(second)) // size
    script.do("finish")
    script.add((*second, *alone(second, limit)[:-1], *script.tokens(1)), 1)
    return script.end()


@equal_caching
def hits_in_use(pick: Pick) -> Call:
    """Requests that begin alike come one after the other, as the first of them generate: there is room for the whole of
    the second, and of the others for what they do not share."""
    script = Script(pick)
    size, script.most, blocks = script.size, 8, pick.size(2, 4)
    known, script.budget = script.tokens(blocks * size), blocks * size + 1
    for _ in range(pick.size(3, 4)):
        script.add((*known, *script.tokens(1)), pick.size(5, 8))
        script.do("step")
    # The first has a token more when the second comes.
    script.blocks = blocks + blocks_of(2, size) + blocks + 1
    return script.end()


@equal_caching
def hits_beside_one_that_generates(pick: Pick) -> Call:
    """Requests come at once and begin with what was computed of one that still generates: there is budget for what is left of each."""
    script = Script(pick)
    script.most, left = 8, pick.size(1, 2)
    known = script.line[: pick.size(2, 4) * script.size]
    script.budget = len(known) + left
    script.add((*known, *script.tokens(1)), pick.size(6, 8))
    script.do("step")
    script.do("step")
    for _ in range(pick.size(2, 3)):
        script.add((*known, *script.tokens(left)), pick.size(1, 3))
    return script.end()
