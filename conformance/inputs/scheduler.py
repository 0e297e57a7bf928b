"""Stories of schedulers for the suites: requests that share prompts, and come while others are at work.

In some steps the model raises. Prompts end at the edges of blocks and of budgets and beside them.
"""

from __future__ import annotations

from typing import Any

from inferspec.conformance.calls import Call
from inferspec.conformance.envelope import Envelope
from inferspec.conformance.inputs.scheduler_script import Script, calls, several, with_voids
from inferspec.conformance.strategies import Pick
from inferspec.spec.serving import REPEATED, alone


@calls
def workloads(pick: Pick, scarce: bool | None = None) -> Call:
    """Requests come while others are at work, some are cancelled, and the model fails now and then."""
    script = Script(pick, scarce=pick.one_of(False, True) if scarce is None else scarce)
    for _ in range(pick.size(1, 4)):
        script.request()
        match pick.one_of("nothing", "work", "work", "fail", "cancel"):
            case "work":
                script.work(2)
            case "fail":
                script.void()
            case "cancel":
                script.cancel(script.any_request())
    return script.end()


@calls
def single(pick: Pick) -> Call:
    """One request, its prompt longer than a step's budget or not."""
    script = Script(pick)
    script.request(longest=4)
    return script.end()


@calls
def chunked(pick: Pick) -> Call:
    """Prompts of several chunks, to multiples of blocks and budgets and beside them, while others generate."""
    script = Script(pick, budgets=(4, 1, 2, 3, 5, 8, 16))
    if pick.one_of(False, True):
        script.add(script.tokens(2), 6)
        script.work(2)
    for _ in range(pick.size(1, 3)):
        unit = pick.one_of(script.size, script.budget)
        count = max(1, unit * pick.size(1, 3) + pick.one_of(0, 1, -1))
        script.add(script.tokens(count), pick.size(1, 4))
        script.work(1)
    return script.end()


@several
def overtaken(pick: Pick) -> Call:
    """A prompt of two chunks, behind which a longer one of larger priority comes when the first is computed."""
    script = Script(pick, budgets=(4, 2, 3, 5, 8))
    script.most = max(script.most, 2)
    script.add(script.tokens(script.budget + pick.size(1, script.budget - 1)), pick.size(1, 3), priority=-1)
    script.do("step")
    script.add(script.tokens(script.budget + pick.size(0, script.budget)), pick.size(1, 3), priority=2)
    return script.end()


@calls
def very_long(pick: Pick) -> Call:
    """A prompt, or an output, of more tokens than tables may have been made for; another request beside it."""
    script = Script(pick, budgets=(64, 300, 16))
    prompt, limit = pick.one_of((150, 2), (280, 1), (9, 70))
    script.add(script.tokens(prompt), limit)
    script.work(2)
    script.add(script.tokens(pick.size(1, 4)), 2)
    return script.end()


@calls
def in_many_chunks(pick: Pick) -> Call:
    """A prompt that takes dozens of steps, or more than a hundred; another request behind it."""
    script = Script(pick, budgets=(1, 2))
    script.add(script.tokens(script.budget * pick.one_of(70, 66, 130)), pick.size(1, 3))
    script.work(2)
    script.add(script.tokens(pick.size(1, 3)), 2)
    return script.end()


@calls
def together(pick: Pick) -> Call:
    """Requests that come at once, more than may run perhaps, then one by one."""
    script = Script(pick, budgets=(64, 1, 4, 2, 8, 3))
    for _ in range(pick.size(2, 6)):
        script.add(script.tokens(pick.size(1, 8)), pick.size(1, 4))
    for _ in range(pick.size(0, 2)):
        script.work(2)
        script.add(script.tokens(pick.size(1, 4)), pick.size(1, 2))
    return script.end()


@calls
def crowds(pick: Pick) -> Call:
    """More requests at once than batches, and of more blocks than tables, may have been made for."""
    script = Script(pick, budgets=(300, 64, 16))
    script.most = pick.one_of(33, 20, 40)
    for _ in range(script.most + pick.size(0, 3)):
        script.add(script.tokens(int(script.random.integers(1, 13))), int(script.random.integers(2, 5)))
    return script.end()


@calls
def masses(pick: Pick) -> Call:
    """Hundreds of requests at once, of a few tokens each; more than may run perhaps."""
    script = Script(pick, budgets=(2048, 300))
    script.most = pick.one_of(130, 260, 70)
    for _ in range(script.most + pick.one_of(0, 3)):
        count, limit, priority = (int(number) for number in script.random.integers((1, 2, 1), (4, 4, 3)))
        script.add(script.tokens(count), limit, priority=priority if script.ranks else 0)
    return script.end()


@calls
def of_servers(pick: Pick) -> Call:
    """Blocks and budgets as servers have them, prompts of thousands of tokens, outputs of hundreds; another request beside."""
    script = Script(pick, budgets=(512, 2048, 300))
    prompt, limit = pick.one_of((1030, 3), (20, 270), (2050, 2), (512, 17))
    begin = script.add(script.tokens(prompt), limit)
    script.work(2)
    # One that begins as the first does.
    tokens = script.steps[begin - 1][1]["tokens"]
    script.add((*tokens[: max(1, len(tokens) // 2)], *script.tokens(3)), pick.one_of(2, 18))
    return script.end()


@calls
def repeating(pick: Pick) -> Call:
    """A request whose ids are one and the same, dozens of times, perhaps with others beside it."""
    script = Script(pick)
    for _ in range(pick.size(0, 2)):
        script.request()
    script.add((*script.prompt(1), REPEATED), pick.one_of(40, 24, 33))
    if pick.one_of(False, True):
        script.request()
    return script.end()


@calls
def many_ends(pick: Pick) -> Call:
    """A request that many ids end, of which one of the last ones comes."""
    script = Script(pick)
    for _ in range(pick.size(1, 2)):
        tokens, limit = script.prompt(1), pick.size(2, 6)
        count = pick.one_of(9, 5, 17, 33)
        end = alone(tokens, limit)[pick.size(0, limit - 1)]
        others = tuple(2000 + k for k in range(count - 1))
        script.add(tokens, limit, pick.one_of((*others, end), (*others[:-1], end, others[-1])))
    return script.end()


@calls
def trickling(pick: Pick, late: tuple[int, ...] = ()) -> Call:
    """Requests that come one by one while others generate, as many as a step may compute tokens of prompts, or more.
    late: tokens of a prompt that comes when more of them do, if any."""
    script = Script(pick, budgets=(1, 2, 3))
    script.most = 8
    for _ in range(script.budget + pick.size(1, 2)):
        count = pick.size(1, 3)
        script.add(script.tokens(count), pick.size(10, 12), priority=1)
        for _ in range(-(-count // script.budget)):
            script.do("step")
    if late:
        script.add(script.tokens(pick.one_of(*late)), pick.size(1, 2))
    return script.end()


@calls
def abandoned(pick: Pick) -> Call:
    """Requests that are left as they are, waiting and running."""
    script = Script(pick)
    for _ in range(pick.size(1, 3)):
        script.request()
        script.work(1)
    return script.call()


@calls
def side_by_side(pick: Pick) -> Call:
    """Another scheduler is given the same requests while they are at work, between steps and while the model computes one,
    and has them still when all is finished."""
    script = Script(pick, scarce=pick.one_of(False, True))
    for _ in range(pick.size(1, 3)):
        number = script.request()
        script.work(1)
        between = pick.one_of(False, True)
        for step in ("schedule", "meanwhile", "update") if between else ("meanwhile",):
            script.do(step, **(script.steps[number - 1][1] if step == "meanwhile" else {}))
        script.work(2)
    return script.end()


@calls
def beside_other_blocks(pick: Pick) -> Call:
    """Another scheduler, of larger blocks where a subject has such, is made while requests are at work, and works itself."""
    script = Script(pick)
    larger = [size for size in pick.envelope["block_sizes"] if size > script.size] or [script.size]
    sizes = {"block_size": pick.one_of(*larger)}
    for _ in range(pick.size(1, 2)):
        script.add(script.tokens(script.size + pick.size(1, 4)), 2 * script.size + pick.size(1, 3))
        script.do("step")
        script.do("meanwhile", tokens=script.tokens(2), max_tokens=3, priority=0, eos=(), sizes=sizes)
    return script.end()


@with_voids
def voided(pick: Pick) -> Call:
    """Steps of which nothing comes, in the middle of prompts and of outputs, once or several times."""
    script = Script(pick, scarce=pick.one_of(False, True))
    for _ in range(pick.size(1, 3)):
        script.request()
        script.work(2)
        for _ in range(pick.size(1, 2)):
            script.void()
    return script.end()


@with_voids
def voided_again(pick: Pick) -> Call:
    """Many steps in a row of which nothing comes, in the middle of a prompt or of an output."""
    script = Script(pick, budgets=(64, 3, 8))
    for _ in range(pick.size(1, 2)):
        script.request(longest=2)
    script.work(2)
    for _ in range(pick.one_of(6, 9, 12)):
        script.do("schedule")
        if script.random.random() < 0.5:
            script.do("fail")
    return script.end()


@calls
def limits(pick: Pick, first: bool = False) -> Call:
    """Requests that end at their limit, at the first id of eos or at another. first: all end with their first id."""
    script = Script(pick, scarce=pick.one_of(False, True))
    for _ in range(pick.size(1, 3)):
        tokens, limit = script.prompt(1), pick.size(1, 5)
        ids = alone(tokens, limit + 1)
        at = 0 if first else pick.one_of(limit, limit - 1, 0, limit // 2)
        script.add(tokens, limit, pick.one_of((ids[at],), (777, ids[at]), (ids[at], ids[-1])))
    return script.end()


@calls
def ends_of_others(pick: Pick) -> Call:
    """Requests of which none has ids that end it, or others than those that come of it, beside one that just these end."""
    script = Script(pick)
    tokens, limit = script.prompt(1), pick.size(3, 6)
    ends = tuple(alone(tokens, limit)[1:])
    other = script.prompt(1)
    first, own = (other, pick.size(3, 6), ends), (tokens, limit, pick.one_of((), (777,)))
    for asked in (first, own) if pick.one_of(True, False) else (own, first):
        script.add(*asked)
        script.work(2)
    return script.end()


@calls
def ends_of_one_prompt(pick: Pick) -> Call:
    """The same prompt twice or more at once, which other ids end, or none."""
    script = Script(pick)
    tokens, limit = script.prompt(1), pick.size(3, 6)
    ids = alone(tokens, limit)
    last: tuple[int, ...] | None = None
    for _ in range(pick.size(2, 3)):
        last = pick.one_of(*(eos for eos in ((ids[1],), (), (ids[2],)) if eos != last))
        script.add(tokens, limit, last)
    return script.end()


@calls
def ends_past_16_bits(pick: Pick) -> Call:
    """Requests that ids past 16 bits end, alike in their low bits to those that come of it."""
    script = Script(pick)
    for _ in range(pick.size(1, 2)):
        tokens, limit = script.prompt(1), pick.size(2, 5)
        script.add(tokens, limit, tuple(id + 2**16 for id in alone(tokens, limit)))
    return script.end()


@calls
def ends_in_prompts(pick: Pick) -> Call:
    """Requests whose prompts hold the ids that end them, the last one mostly, as a conversation's do."""
    script = Script(pick, scarce=pick.one_of(False, True))
    for _ in range(pick.size(1, 2)):
        tokens, limit = script.prompt(1), pick.size(2, 5)
        ids = alone(tokens, limit)
        at = pick.one_of(-1, -1, 0)
        ends = tuple(token for token in (tokens[at], ids[-1]) if token not in ids[:-1])
        script.add(tokens, limit, ends[: pick.one_of(1, 2)])
    return script.end()


@calls
def ends_of_zero(pick: Pick) -> Call:
    """Requests that the id 0 ends, which is an id like any other."""
    script = Script(pick)
    for _ in range(pick.size(1, 2)):
        limit, count = pick.size(2, 5), pick.size(3, 5)
        tokens = script.tokens(count)
        while 0 not in alone(tokens, limit):
            tokens = script.tokens(count)
        script.add(tokens, limit, pick.one_of((0,), (777, 0)))
    return script.end()


@calls
def exact(pick: Pick) -> Call:
    """A request that takes every slot of the pool, by itself, after others, or while others run."""
    script = Script(pick)
    script.blocks = pick.size(1, 4)
    room = script.blocks * script.size
    for _ in range(pick.size(0, 2)):
        script.add(script.tokens(1), pick.size(1, min(room, 4)))
    script.work(1)
    limit = pick.one_of(1, 2, room, room - 1)
    limit = min(max(limit, 1), room)
    script.add(script.tokens(max(room + script.slotless - limit, 1)), limit)
    if pick.one_of(False, True):
        script.add(script.tokens(1), min(room, 2))
    return script.end()


@calls
def written_over(pick: Pick) -> Call:
    """The caller puts other tokens into the lists of requests that wait, run or are preempted."""
    script = Script(pick, budgets=(3, 64, 2), scarce=pick.one_of(False, True))
    script.most = pick.one_of(8, 1, 2)
    for _ in range(pick.size(2, 4)):
        number = script.add(script.prompt(2), pick.size(1, 6))
        script.work(2)
        script.do("overwrite", request=number)
        script.work(1)
    return script.end()


_steps: tuple[Any, ...] = (
    ("add", {"tokens": (1, 2, 3), "max_tokens": 2, "priority": 0, "eos": ()}),
    ("step", {}),
    ("step", {}),
)

EXAMPLES = {
    "Scheduler": Call(
        "Scheduler",
        {
            "num_blocks": 4,
            "block_size": 2,
            "prefix_caching": True,
            "max_requests": 2,
            "max_prefill_tokens": 8,
            "steps": _steps,
        },
    )
}
"""The plainest call of each operation."""


def _filling(envelope: Envelope) -> Call:
    """A request that fills the pool but for one slot, which its first id takes: its last id has none."""
    size = envelope["block_sizes"][0]
    count = 4 if size < 8 else 1
    tokens = tuple(1 + i % 7 for i in range(count * size - 1))
    step = {"tokens": tokens, "max_tokens": 2, "priority": 0, "eos": ()}
    return EXAMPLES["Scheduler"].having(num_blocks=count, block_size=size, steps=(("add", step),))


OPTIONAL = {"Scheduler": {"last_id_takes_slot": {False: _filling}}}
"""Choices that may be refused, by their key, each with what makes a call of an envelope that asks for it and for nothing else
that is rare."""

ORDINARY = {"Scheduler": workloads}
"""The widest calls of each operation."""
