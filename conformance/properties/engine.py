"""Sentences about one subject and one story of requests; the suites of engines share them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.generation import ends_of
from inferspec.conformance.judging.trial import Nonconformance, Trial
from inferspec.spec.ends import DROPPED, KEPT, ended
from inferspec.spec.engine import alone, last_logits


def adds(call: Call) -> list[int]:
    """The steps that add a request."""
    return [number for number, (step, _) in enumerate(call.arguments["steps"], 1) if step == "add"]


def runs_no_more_than_may(subject: Trial, call: Call) -> None:
    """No step gives ids of more requests than may run, of those who are not finished by it."""
    at_once, most = int(subject.parts(call)["most at once"]), call.arguments["max_requests"]
    if at_once > most:
        raise Nonconformance(
            f"{at_once} requests generate in one step and are not finished, and at most {most} may run", call
        )


def runs_no_more_than_may_between_steps(subject: Trial, call: Call) -> None:
    """No more run at a time than may, once one was preempted too: a request that gives ids in two steps in a row, and whose prompt
    is too long to be computed again in them, ran in between."""
    seen, most, budget = subject.parts(call), call.arguments["max_requests"], call.arguments["max_prefill_tokens"]
    steps = [
        set(map(int, seen[f"{number} when"]))
        for number in adds(call)
        if len(call.arguments["steps"][number - 1][1]["tokens"]) > 2 * budget
    ]
    for step in sorted(set().union(*steps)):
        running = sum({step, step + 1} <= given for given in steps)
        if running > most:
            raise Nonconformance(
                f"{running} requests give ids in step {step} and in the next, and none of their prompts could be computed again in these two"
                f" of at most {budget} tokens; at most {most} may run at a time",
                call,
            )


def goes_first(subject: Trial, story: tuple[Call, tuple[int, int]]) -> None:
    """Of two requests that wait for pages the one that came first ends before the other begins."""
    call, (first, later) = story
    seen = subject.parts(call)
    if not 0 < int(seen[f"{first} last"]) <= int(seen[f"{later} first"]):
        raise Nonconformance(f"request {later} has pages before request {first} ends, which came first", call)


def goes_by_priority(subject: Trial, call: Call) -> None:
    """Of the first engine's requests those of larger priority begin first, and then those that came first."""
    seen, steps = subject.parts(call), call.arguments["steps"]
    asked = {number: given for number in adds(call) if not (given := steps[number - 1][1]).get("engine", 0)}
    order = sorted(asked, key=lambda number: (-asked[number]["priority"], number))
    for one, later in itertools.pairwise(order):
        if not 0 < int(seen[f"{one} first"]) <= int(seen[f"{later} first"]):
            raise Nonconformance(f"request {later} gives its id before request {one}, which goes first", call)


def goes_before_who_gave_way(subject: Trial, story: tuple[Call, int]) -> None:
    """The request of a larger priority ends before the last of the others, one of which gave way."""
    call, high = story
    seen = subject.parts(call)
    others = [int(seen[f"{number} last"]) for number in adds(call) if number != high]
    if not 0 < int(seen[f"{high} last"]) <= max(others):
        raise Nonconformance(
            f"request {high} has all pages when the others have ended, and has a larger priority than the one that gave way",
            call,
        )


def is_not_overtaken_once_preempted(subject: Trial, story: tuple[Call, tuple[int, int]]) -> None:
    """The request that gave way to the first ends before the later one begins; one that did not begin beside the first, and so
    never gave way, begins no later."""
    call, (preempted, later) = story
    seen = subject.parts(call)
    ahead, *_ = adds(call)
    before = "last" if seen[f"{preempted} first"] < seen[f"{ahead} last"] else "first"
    if not 0 < int(seen[f"{preempted} {before}"]) <= int(seen[f"{later} first"]):
        raise Nonconformance(f"request {later} has pages before request {preempted}, which came first", call)


def is_not_overtaken_while_the_first_runs(subject: Trial, story: tuple[Call, tuple[int, int]]) -> None:
    """Of two that wait the later one has no id before the first request ends, beside which one of them may run, unless the earlier
    one has."""
    call, (earlier, later) = story
    seen = subject.parts(call)
    ahead, *_ = adds(call)
    if int(seen[f"{later} first"]) < min(int(seen[f"{ahead} last"]), int(seen[f"{earlier} first"])):
        raise Nonconformance(f"request {later} gives its id before request {earlier}, which came first", call)


def without_what_is_refused(subject: Trial, call: Call, step: int) -> Call:
    """The story without that step, where it is refused."""
    if f"{step} refused" not in subject.answered(call).results:
        return call
    return call.having(steps=tuple(one for number, one in enumerate(call.arguments["steps"], 1) if number != step))


def gives_right_guesses_together(subject: Trial, call: Call) -> None:
    """Ids of each request come in no more steps than right guesses take, behind the first id, which may come alone, and in no
    fewer."""
    seen, guesses = subject.parts(call), call.arguments["num_draft_tokens"]
    for number in adds(call):
        steps, limit = int(seen[f"{number} steps with ids"]), call.arguments["steps"][number - 1][1]["max_tokens"]
        if steps > (most := 1 + -(-(limit - 1) // (guesses + 1))):
            raise Nonconformance(
                f"{limit} ids of request {number} come in {steps} steps; with {guesses} right guesses {most} are enough",
                call,
            )
        if steps < (fewest := -(-limit // (guesses + 1))):
            raise Nonconformance(
                f"{limit} ids of request {number} come in {steps} steps; {guesses} guesses and one more id take {fewest}",
                call,
            )


def guesses_as_without_the_other(subject: Trial, call: Call) -> None:
    """The ids of the first request come in no more steps than without the second, which is another engine's."""
    beside, alone = (
        int(subject.parts(one)["1 steps with ids"]) for one in (call, call.having(steps=call.arguments["steps"][:1]))
    )
    if beside > alone:
        raise Nonconformance(
            f"the ids of request 1 come in {beside} steps beside another engine, and in {alone} without it", call
        )


def guesses_once_resumed(subject: Trial, call: Call) -> None:
    """The ids of the second request come in no more steps than its right guesses take, beside those in which it may have to make
    do without: its first id, after each time that it begins, and as long as the first request generates."""
    guesses, (ahead, behind) = call.arguments["num_draft_tokens"], adds(call)
    taken = {
        number: 1 + -(-(call.arguments["steps"][number - 1][1]["max_tokens"] - 1) // (guesses + 1))
        for number in (ahead, behind)
    }
    steps, most = int(subject.parts(call)[f"{behind} steps with ids"]), sum(taken.values()) + 1
    if steps > most:
        raise Nonconformance(
            f"the ids of request {behind} come in {steps} steps; with {guesses} right guesses {most} are enough", call
        )


def guesses_after_failures(subject: Trial, call: Call) -> None:
    """Behind the last step that was to fail, the ids of a request come in no more steps than right guesses take, and one in
    which it may have to make do without."""
    seen, a = subject.parts(call), call.arguments
    failed = len(a["steps"]) - 1
    for number in adds(call):
        when = seen[f"{number} when"]
        later = when[when > failed]
        steps, most = len(set(later.tolist())), 1 + -(-len(later) // (a["num_draft_tokens"] + 1))
        if steps > most:
            raise Nonconformance(
                f"{len(later)} ids of request {number} come in {steps} steps behind one that failed; with right guesses"
                f" {most} are enough",
                call,
            )


def begins_its_output(subject: Trial, call: Call) -> None:
    """Nothing of a cancelled request is anything but the beginning of what it would have given."""
    seen, steps = subject.parts(call), call.arguments["steps"]
    for number in {given["request"] for step, given in steps if step == "cancel"}:
        given = steps[number - 1][1]
        ids = alone(call.arguments["model"], given["tokens"], given["max_tokens"])[0]
        told = [int(token) for token in seen.get(f"{number} until cancelled", ())]
        if told != ids[: len(told)]:
            raise Nonconformance(f"request {number} gave {told} until it was cancelled; alone it gives {ids}", call)
        if late := int(seen.get(f"{number} after it", 0)):
            raise Nonconformance(f"request {number} gave {late} ids after it was cancelled", call)


def steps_to_the_first_id(subject: Trial, call: Call) -> list[int]:
    """How many steps each request took to its first id."""
    seen = subject.parts(call)
    return [int(seen[f"{number} steps to the first id"]) for number in adds(call)]


def is_computed_once(subject: Trial, call: Call) -> None:
    """A prompt that comes again takes fewer steps to its first id, whatever came before."""
    *_, first, again = steps_to_the_first_id(subject, call)
    if not again < first:
        raise Nonconformance(f"the first id came after {first} steps, and of the same prompt after {again}", call)


def is_computed_again(subject: Trial, call: Call) -> None:
    """A prompt that comes again takes no fewer steps to its first id, whatever came in between."""
    first, *_, again = steps_to_the_first_id(subject, call)
    if again < first:
        raise Nonconformance(f"the first id came after {first} steps, and of the same prompt after {again}", call)


def keeps_its_budget(subject: Trial, call: Call) -> None:
    """All prompts together take as many steps as a step's budget makes of them."""
    seen = subject.parts(call)
    steps = max(int(seen[f"{number} steps to the first id"]) for number in adds(call))
    tokens, most = (
        sum(len(given["tokens"]) for _, given in call.arguments["steps"]),
        call.arguments["max_prefill_tokens"],
    )
    if steps * most < tokens:
        raise Nonconformance(f"prompts of {tokens} tokens are computed in {steps} steps of at most {most}", call)


def keeps_its_budget_behind_hits(subject: Trial, call: Call) -> None:
    """What prompts do not have in common with one that was served before takes as many steps as a step's budget makes of it."""
    seen, most = subject.parts(call), call.arguments["max_prefill_tokens"]
    prompts = {number: call.arguments["steps"][number - 1][1]["tokens"] for number in adds(call)}
    _, *others = prompts
    steps = max(int(seen[f"{number} steps to the first id"]) for number in others)
    own = sum(
        len(prompts[number]) - max(_in_common(prompts[number], prompts[other]) for other in prompts if other != number)
        for number in others
    )
    if steps * most < own:
        raise Nonconformance(f"{own} tokens that nothing was computed of take {steps} steps of at most {most}", call)


def _in_common(first: Sequence[int], second: Sequence[int]) -> int:
    length = min(len(first), len(second))
    return next((i for i in range(length) if first[i] != second[i]), length)


def keeps_its_budget_once_resumed(subject: Trial, call: Call) -> None:
    """When the first request ends it holds all pages, so that nothing is left of what was computed of the others: to compute it again
    takes as many steps as a step's budget makes of it, beginning with the step in which the first ended."""
    seen, budget = subject.parts(call), call.arguments["max_prefill_tokens"]
    first, *others = adds(call)
    end, resumed = int(max(seen[f"{first} when"], default=0)), []
    for number in others:
        when = list(map(int, seen[f"{number} when"]))
        before, later = sum(step < end for step in when), [step for step in when if step > end]
        if later and end not in when:
            # The last of its ids may be computed as any that generates computes one.
            tokens = len(call.arguments["steps"][number - 1][1]["tokens"]) + before - bool(before)
            resumed.append((later[0], tokens))
    total = 0
    for step, tokens in sorted(resumed):
        total, steps = total + tokens, step - end + 1
        if steps * budget < total:
            raise Nonconformance(f"{total} tokens are computed again in {steps} steps of at most {budget}", call)


def is_batch_invariant(subject: Trial, call: Call) -> None:
    """Each request's logits in the story are those of a story of its own, bit for bit."""
    together = subject.parts(call)
    alone: dict[Any, np.ndarray] = {}
    for number in adds(call):
        step, given = call.arguments["steps"][number - 1]
        kind = given["tokens"], given["max_tokens"]
        if kind not in alone:
            alone[kind] = subject.parts(call.having(steps=((step, given),)))["1 logits"]
        own, beside = alone[kind], together[f"{number} logits"]
        if own.tobytes() != beside.tobytes():
            off = int((own != beside).sum()) if own.shape == beside.shape else beside.size
            raise Nonconformance(f"{off} of {beside.size} logits of request {number} are not those of it alone", call)


def computes_what_is_new(subject: Trial, call: Call) -> None:
    """Each prompt, which goes on from those before it and their outputs, takes no more steps to its first id than what is behind
    whole pages of them takes, and as many more as the first prompt took."""
    seen, a = subject.parts(call), call.arguments
    size, chunk = a["page_size"], a["max_prefill_tokens"]
    computed, late = 0, None
    for number in adds(call):
        given = a["steps"][number - 1][1]
        length, steps = len(given["tokens"]), int(seen[f"{number} steps to the first id"])
        hit = min(computed, length - 1) // size * size
        enough = -(-(length - hit) // chunk)
        late = steps - enough if late is None else late
        if steps > enough + late:
            raise Nonconformance(
                f"the first id of request {number} came after {steps} steps of {chunk} tokens; {hit} of its {length} tokens are in whole"
                f" pages of {size} that were computed, and the others take {enough + late}",
                call,
            )
        computed = max(computed, length + given["max_tokens"] - 1)


def tells_its_logits(subject: Trial, call: Call) -> None:
    """The logits are those of the whole sequence before the last id, within the budget of the model."""
    seen = subject.parts(call)
    model = call.arguments["model"]
    for number in adds(call):
        given = call.arguments["steps"][number - 1][1]
        ids = alone(model, given["tokens"], given["max_tokens"])[0]
        outputs = {ends: ended(ids, given.get("eos", ()), ends) for ends in (DROPPED, KEPT)}
        # Whether the end is one of them is another sentence's matter.
        told = [int(token) for token in seen.get(f"{number} output", ())]
        length = len(told if told in outputs.values() else outputs[ends_of(call)])
        if not length:
            continue
        answer = last_logits(model, given["tokens"], length)
        subject.compare(
            call, np.asarray(seen.get(f"{number} logits", np.zeros(0))), answer, name="exact", part=f"{number} logits"
        )
