"""Stories of engines for the suites: limits, and ids that end an output."""

from __future__ import annotations

from inferspec.conformance.inputs.engine_models import NARROW, counting, high
from inferspec.conformance.inputs.engine_script import OF_ONE_LENGTH, PLAIN, Ids, Script, outgrow, told


@told("outputs", "stream")
def limits(script: Script) -> None:
    """Requests that ask for few ids, or none."""
    script.requests(1, 4, (0, 1, 2, 3))


@told("outputs", "stream", "ends", "pages", stops=[True])
def stopping(script: Script) -> None:
    """Requests that an id ends: the first that comes, one in the middle, one that comes at the limit, or none."""
    _stopping(script)


@told("outputs", "stream", "ends", "pages", stops=[True])
def stopping_at_once(script: Script) -> None:
    """Requests whose first id ends them, some of which ask for no more than one."""
    _stopping(script, (4, 6, 2, 1), first=True)


def _stopping(script: Script, limits: tuple[int, ...] = (4, 6, 2), first: bool = False) -> None:
    pick = script.pick
    for _ in range(pick.size(1, 3)):
        limit = pick.one_of(*limits)
        tokens = script.prompt(script.length(), limit)
        ids = script.way(tokens, limit)
        stop = ids[0 if first else pick.one_of(0, 1, limit - 1, limit // 2)]
        unused = [x for x in range(script.vocabulary) if x not in ids and x != tokens[-1]]
        spare = (unused[0], tokens[0] if tokens[0] not in ids else unused[1])
        eos = pick.one_of((stop,), (spare[0], stop), *([] if first else [spare]))
        script.add(tokens, limit, eos=eos)
        script.between(2)


@told("outputs", "stream", stops=[True], **PLAIN)
def stopping_past_the_limit(script: Script) -> None:
    """Requests that would be ended by the id after the last that they ask for."""
    for _ in range(script.pick.size(1, 2)):
        _stopping_behind(script, script.pick.one_of(4, 2, 1, 6), 1)
        script.between(2)


@told("outputs", "stream", stops=[True], drafts=["perfect"])
def stopping_past_the_limit_of_guesses(script: Script) -> None:
    """Requests that would be ended by an id soon after the last, and a draft that guesses as far as that."""
    script.guesses = 5
    for _ in range(script.pick.size(1, 2)):
        _stopping_behind(script, script.pick.one_of(2, 1, 3), script.pick.one_of(2, 3))
        script.between(2)
    # Pages for guesses past the limit too.
    script.pages = sum(script.need(len(tokens), limit + script.guesses) for tokens, limit in script.asked.values())


def _stopping_behind(script: Script, limit: int, behind: int) -> None:
    """A request that would be ended by the id that stands so far behind its last."""
    length = script.length()
    for _ in range(OF_ONE_LENGTH):
        tokens = script.prompt(length, limit + behind)
        *ids, after = script.way(tokens, limit + behind)
        if after not in ids:
            break
    script.add(tokens, limit, eos=(after,))


@told("outputs", "ends", stops=[True])
def stopping_differently(script: Script) -> None:
    """The same prompt several times, which other ids end, or none."""
    pick = script.pick
    tokens = script.prompt(script.length(), 6)
    ids = script.way(tokens, 6)
    last: Ids | None = None
    pause = pick.one_of(0, 40, 2)
    for _ in range(pick.size(2, 4)):
        last = pick.one_of(*(eos for eos in ((ids[3],), (), (ids[1],), (ids[5],)) if eos != last))
        script.add(tokens, 6, eos=last)
        if pause:
            script.do("step", times=pause)


@told(stops=[True], **PLAIN)
def stopping_beside_none(script: Script) -> None:
    """Requests of which some have ids that end them and some have none, which come and leave one by one."""
    pick = script.pick
    script.max_requests = pick.one_of(2, 3)
    last = script.prompt(pick.size(1, 4), 8)
    ways = script.way(last, 8)
    script.add(script.prompt(pick.size(1, 4), 2), 2)
    for _ in range(script.max_requests - 1):
        tokens = script.prompt(pick.size(1, 4), 12)
        # What would end the last request, which has no such id.
        ends = [token for token in ways[1:] if token not in script.way(tokens, 12)]
        script.add(tokens, 12, eos=tuple(ends[:2]) or (ways[1],))
    script.do("step", times=pick.size(3, 4))
    script.add(last, 8)


@told("outputs", "stream", "ends", "pages", stops=[True])
def stopping_in_short_pools(script: Script) -> None:
    """Requests that an id ends, some of which are preempted before it comes."""
    outgrow(script, stops=True)


@told("outputs", "stream", "ends", stops=[True], drafts=["perfect"])
def stopping_at_the_first_of_several(script: Script) -> None:
    """A request of which several ids that end it come in one step, listed in any order."""
    pick, limit, length = script.pick, 7, script.pick.size(1, 9)
    script.guesses = 5
    for _ in range(OF_ONE_LENGTH):
        tokens = script.prompt(length, limit)
        ids = script.way(tokens, limit)
        if len(set(ids[:6])) == 6:
            break
    first = pick.size(1, 3)
    later = first + pick.size(1, 2)
    script.add(tokens, limit, eos=tuple(ids[at] for at in pick.one_of((later, first), (later, first), (first, later))))


@told("outputs", "logits", logits=["told"], stops=[True], drafts=["perfect"])
def stopping_late_in_a_burst(script: Script) -> None:
    """A request that an id ends behind three or four that come in the same step."""
    pick, limit, length = script.pick, 8, script.pick.size(1, 9)
    script.guesses = 5
    end = pick.one_of(4, 5)
    for _ in range(OF_ONE_LENGTH):
        tokens = script.prompt(length, limit)
        ids = script.way(tokens, limit)
        if ids[end] not in ids[:end]:
            break
    script.add(tokens, limit, eos=(ids[end],))


@told("outputs", "stream", "ends", "pages", stops=[True])
def stopping_at_one_of_many(script: Script) -> None:
    """A request that any of dozens of ids would end; the one that comes is the first or the last of them, and may be 0."""
    pick = script.pick
    limit, length, zero = pick.one_of(4, 6), pick.size(2, 12), pick.one_of(True, False)
    for _ in range(OF_ONE_LENGTH):
        tokens = script.prompt(length, limit)
        ids = script.way(tokens, limit)
        if not zero or 0 in ids:
            break
    stop = 0 if zero else ids[pick.size(0, limit - 1)]
    unused = tuple(x for x in range(1, script.vocabulary) if x not in ids)[: pick.one_of(40, 0, 17, 3)]
    script.add(tokens, limit, eos=pick.one_of((*unused, stop), (stop, *unused)))


@told("outputs", "ends", page_sizes=[3, 16, 8], stops=[True], **PLAIN)
def late_ends(script: Script) -> None:
    """A request that gives dozens of ids until one comes that ends it, shortly before its limit."""
    pick = script.pick
    script.model = counting(script.kind, script.which)
    limit = pick.one_of(40, 24, 33)
    tokens = script.prompt(pick.size(2, 9), limit)
    script.add(tokens, limit, eos=(script.way(tokens, limit)[limit - pick.size(2, 4)],))


@told("outputs", "ends", stops=[True], **PLAIN)
def high_ends(script: Script) -> None:
    """A request that an id past 16 bits ends, and not one that is alike in its low bits to another that comes before."""
    limit, length = 5, script.pick.size(1, 5)
    script.model = high(script.kind)
    for _ in range(OF_ONE_LENGTH):
        tokens = script.prompt(length, limit)
        ids = script.way(tokens, limit)
        past = [i for i in range(limit) if ids[i] >= NARROW and ids[i] not in ids[:i]]
        if len(past) > 1:
            break
    alike = {x - less for x in ids if x >= NARROW for less in (NARROW, 2**8)} - set(ids)
    script.add(tokens, limit, eos=(*sorted(alike), ids[past[-1]]))


@told("outputs", "ends", stops=[True])
def stopping_at_no_id(script: Script) -> int:
    """A request that is to end at what no id of the vocabulary is, though one that comes is the same by its place from the
    end, or its remainder; its number. Perhaps another beside it."""
    pick = script.pick
    limit = pick.one_of(5, 6, 4)
    tokens = script.prompt(pick.size(1, 9), limit)
    token = script.way(tokens, limit)[pick.size(0, limit - 2)]
    beyond = (token - script.vocabulary, token + script.vocabulary)
    number = script.add(tokens, limit, eos=pick.one_of(beyond, beyond[:1], beyond[1:]))
    if pick.one_of(False, True):
        script.between(2)
        script.add(script.prompt(pick.size(1, 4), 4), 4)
    return number


@told("outputs", "ends", stops=[True])
def overwriting_ends(script: Script) -> None:
    """The caller changes the list of ids that end a request."""
    pick = script.pick
    for _ in range(pick.size(1, 2)):
        tokens = script.prompt(pick.size(1, 9), 8)
        ids = script.way(tokens, 8)
        number = script.add(tokens, 8, eos=(ids[6],), listed=True)
        script.between(2)
        script.do("overwrite", request=number, ends=pick.one_of((ids[4],), (), (ids[5], ids[6])))
