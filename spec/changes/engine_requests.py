"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/engine_requests.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Change
from inferspec.spec.engine import Engine
from inferspec.spec.engine_model import Request, State, pages_of
from inferspec.spec.transformer import Memory

# what steps give


def name_of_the_first(self: Engine, m: State, r: Request) -> int:
    return int(m.running[0].id)


def names_of(most: int) -> Change:
    """There are so many names, which begin anew."""

    def add(self: Engine, m: State, tokens: list[int], limit: int, priority: int, eos: Any) -> int:
        name = Engine.add(self, m, tokens, limit, priority, eos)
        if name >= most:
            r = m.requests.pop(name)
            r.id = name % most
            m.requests[r.id] = r
        return name % most

    return {"add": add}


def queue_of_128(self: Engine, m: State, r: Request) -> None:
    """The queue has 128 places; who is the last of more falls out."""
    Engine.queue(self, m, r)
    del m.waiting[128:]


def patience_of_128(self: Engine, m: State) -> None:
    """Who waits for more than 128 steps is given up."""
    for r in list(m.waiting):
        r.waited = r.__dict__.get("waited", 0) + 1
        if r.waited > 128:
            m.waiting.remove(r)
            r.finished = True
    Engine.admit(self, m)


def the_last_256_ended(self: Engine, m: State, r: Request) -> None:
    """Of what is over only the last 256 requests are remembered."""
    Engine.end(self, m, r)
    ended = m.__dict__.setdefault("ended", [])
    ended.append(r)
    if len(ended) > 256:
        ended.pop(0).out = []


def runs_of_256_steps(self: Engine, m: State) -> dict[int, list[int]]:
    for _ in range(256):
        if self.unfinished(m):
            self.step(m)
    return {r.id: list(r.out) for r in m.requests.values() if not r.cancelled}


def last_not_told(self: Engine, m: State, r: Request) -> None:
    """The id that finishes a request is not among those of the step."""
    if len(r.out) >= r.limit and m.emitted and m.emitted[-1][0] == r.id:
        m.emitted.pop()
    Engine.end(self, m, r)


def told_at_most(most: int) -> Change:
    """A step has room for so many ids."""
    return {"after": lambda self, m: m.emitted.__delitem__(slice(most, None))}


def told_together(self: Engine, m: State) -> None:
    """Ids are held back until their request is finished."""
    held = m.__dict__.setdefault("held", [])
    held += m.emitted
    m.emitted = [pair for pair in held if m.requests[pair[0]].finished]
    m.held = [pair for pair in held if not m.requests[pair[0]].finished]


def those_of_this_run(self: Engine, m: State) -> dict[int, list[int]]:
    mine = [r for r in m.requests.values() if not r.finished]
    Engine.run(self, m)
    return {r.id: list(r.out) for r in mine}


def nothing_to_run(self: Engine, m: State) -> dict[int, list[int]]:
    if not m.requests:
        raise IndexError("there is no request")
    return Engine.run(self, m)


def nothing_to_do(self: Engine, m: State) -> list[tuple[int, int]]:
    if not m.requests:
        raise IndexError("there is no request")
    return Engine.step(self, m)


def cancelled_ones_too(self: Engine, m: State) -> dict[int, list[int]]:
    Engine.run(self, m)
    return {r.id: list(r.out) for r in m.requests.values()}


def cancelled_ones_with_ids_too(self: Engine, m: State) -> dict[int, list[int]]:
    outputs = Engine.run(self, m)
    return {r.id: list(r.out) for r in m.requests.values() if r.out or r.id in outputs}


def without_the_idless(self: Engine, m: State) -> dict[int, list[int]]:
    """Outputs are those of requests that any id came of; of those who ask for none it is known that they have none."""
    outputs = Engine.run(self, m)
    return {r.id: outputs[r.id] for r in m.requests.values() if r.id in outputs and (r.out or not r.limit)}


def prompts_do_not_count(self: Engine, m: State) -> bool:
    """The loop ends when nobody waits and nobody generates, although a prompt is being computed."""
    return bool(m.waiting or any(r.out for r in m.running))


def dropped(self: Engine, m: State) -> None:
    """Who comes when there is no room for it is taken from the queue and not put back."""
    waiting = list(m.waiting)
    Engine.admit(self, m)
    if m.waiting and len(m.waiting) < len(waiting) and len(m.running) < m.a.max_requests:
        m.waiting.pop(0)


def lost_when_preempted(self: Engine, m: State, r: Request) -> None:
    m.running.remove(r)
    self.release(m, r)


# cancelling


def pages_kept(self: Engine, m: State, name: int) -> None:
    table = self.known(m, name).table
    self.known(m, name).table = []
    Engine.cancel(self, m, name)
    self.known(m, name).table = table


def prompt_pages_kept(self: Engine, m: State, name: int) -> None:
    """Only a request that generates gives its pages back."""
    (Engine.cancel if self.known(m, name).out else pages_kept)(self, m, name)


def eight_cancelled(self: Engine, m: State, name: int) -> None:
    """A list of cancelled requests has eight places; the pages of those behind are never given back."""
    m.cancelled = m.__dict__.get("cancelled", 0) + 1
    (Engine.cancel if m.cancelled <= 8 else pages_kept)(self, m, name)


def waiting_alone(self: Engine, m: State, name: int) -> None:
    """Who waits since it was preempted is neither among those that never ran nor among those that run."""
    r = self.known(m, name)
    if r in m.waiting and r.out:
        r.cancelled = True
    else:
        Engine.cancel(self, m, name)


def remembers_its_pages(self: Engine, m: State, r: Request) -> None:
    table = list(r.table)
    Engine.preempt(self, m, r)
    r.before = table


def frees_what_it_had(self: Engine, m: State, name: int) -> None:
    """A preempted request's pages, which are free since then, are freed once more."""
    r = self.known(m, name)
    m.free += r.__dict__.pop("before", []) if r in m.waiting else []
    Engine.cancel(self, m, name)


def frees_again(self: Engine, m: State, name: int) -> None:
    """Cancelling again frees again, whoever has the pages now."""
    r = self.known(m, name)
    held = r.__dict__.pop("held", []) if r.cancelled else list(r.table)
    if r.cancelled:
        m.free += [page for page in held if page not in m.free]
    Engine.cancel(self, m, name)
    r.held = held


def finished_ones_too(self: Engine, m: State, name: int) -> None:
    """Who is finished is called cancelled too, and no run tells its output."""
    Engine.cancel(self, m, name)
    self.known(m, name).cancelled = True


def output_of_the_finished(self: Engine, m: State, name: int) -> None:
    """Cancelling drops what is kept of a request, which for one that is finished is its output."""
    r = self.known(m, name)
    if r.finished and not r.cancelled:
        r.out = []
    Engine.cancel(self, m, name)


def last_id_computed(self: Engine, m: State, name: int) -> None:
    """Of a request that is cancelled all tokens are called computed, its last id too."""
    r = self.known(m, name)
    if r in m.running and self.decodes(r) and pages_of(len(r.tokens), m.a.page_size) <= len(r.table):
        r.computed = len(r.tokens)
        self.publish(m, r)
    Engine.cancel(self, m, name)


def goes_on(self: Engine, m: State, name: int) -> None:
    """A running request is marked and stays."""
    r = self.known(m, name)
    if r in m.running:
        r.cancelled = True
    else:
        Engine.cancel(self, m, name)


def comes_back(self: Engine, m: State, name: int) -> None:
    """A waiting request stays in the queue."""
    r = self.known(m, name)
    if r in m.waiting:
        r.cancelled = True
    else:
        Engine.cancel(self, m, name)


def comes_back_with_a_failed_step(self: Engine, m: State) -> list[tuple[int, int]]:
    """A step that fails leaves all requests as the last one that did not had left them."""
    try:
        given = Engine.step(self, m)
    except Exception:
        for r in [one for one in vars(m).get("ran", ()) if one.cancelled]:
            r.cancelled = r.finished = False
            r.computed = 0
            self.queue(m, r)
        raise
    m.ran = list(m.running)
    return given


def takes_the_next(self: Engine, m: State, name: int) -> None:
    """It leaves by its index, which is that of the next when others have left before it."""
    r = self.known(m, name)
    Engine.cancel(self, m, name)
    if r.out and m.running:
        other = m.running[0]
        other.finished = True
        m.running.remove(other)
        self.release(m, other)


def alike_in_print(self: Engine, m: State, name: int) -> None:
    """Ids are compared by how they begin in print."""
    self.known(m, name)
    for other in list(m.requests):
        if str(other).startswith(str(name)):
            Engine.cancel(self, m, other)


def frees_what_others_have(self: Engine, m: State, name: int) -> None:
    """Pages that are shared are free at once."""
    for page in self.known(m, name).table:
        m.owners[page] = 1
    Engine.cancel(self, m, name)


# arguments


def unchecked(self: Engine, *arguments: Any) -> None:
    """Nothing is looked at."""


def upper_bound_alone(self: Engine, a: Arguments, tokens: Any) -> None:
    if tokens and max(tokens) >= a.model["config"]["vocab_size"]:
        raise ValueError(f"tokens has {max(tokens)}")


def size_is_an_id(self: Engine, a: Arguments, tokens: Any) -> None:
    if tokens and not 0 <= min(tokens) <= max(tokens) <= a.model["config"]["vocab_size"]:
        raise ValueError(f"tokens range to {max(tokens)}")


def nothing_to_look_at(self: Engine, a: Arguments, tokens: Sequence[int], max_tokens: int) -> None:
    """A request for no ids is finished before its prompt is looked at."""
    if max_tokens or not tokens:
        Engine.check(self, a, tokens, max_tokens)


def prompt_alone(self: Engine, a: Arguments, prompt: int, max_tokens: int) -> None:
    if prompt > a.num_pages * a.page_size:
        raise ValueError("the prompt never fits")


def all_ids_counted(self: Engine, a: Arguments, prompt: int, max_tokens: int) -> None:
    if prompt + max_tokens > a.num_pages * a.page_size:
        raise ValueError("it never fits")


def one_page_reserved(self: Engine, a: Arguments, prompt: int, max_tokens: int) -> None:
    if prompt + max_tokens - 1 > (a.num_pages - 1) * a.page_size:
        raise ValueError("it never fits")


def takes_before_it_looks(self: Engine, m: State, tokens: list[int], max_tokens: int, priority: int, eos: Any) -> int:
    """A refused request's pages are taken before it is looked at."""
    try:
        return Engine.add(self, m, tokens, max_tokens, priority, eos)
    except ValueError:
        if m.free:
            self.take(m)
        raise


def gives_a_page_up(self: Engine, m: State, *given: Any) -> None:
    """A page that is free is lost."""
    if m.free:
        self.take(m)


def room_for_who_tries_again(self: Engine, a: Arguments, prompt: int, max_tokens: int) -> None:
    """What never fits is refused once, and then waits for room."""
    try:
        Engine.check_room(self, a, prompt, max_tokens)
    except ValueError:
        a.refusals = getattr(a, "refusals", 0) + 1
        if a.refusals == 1:
            raise
    else:
        a.refusals = 0


def limit_last(self: Engine, m: State, tokens: list[int], max_tokens: int, priority: int, eos: Any) -> int:
    """The limit is looked at when the request waits already."""
    name = Engine.add(self, m, tokens, max(max_tokens, 1) if max_tokens < 0 else max_tokens, priority, eos)
    if max_tokens < 0:
        raise ValueError(f"max_tokens is {max_tokens}")
    return name


def known_though_refused(self: Engine, m: State, tokens: list[int], max_tokens: int, priority: int, eos: Any) -> int:
    """A request is noted before it is looked at."""
    try:
        return Engine.add(self, m, tokens, max_tokens, priority, eos)
    except ValueError:
        Engine.add(self, m, [0], 0, priority, eos)
        raise


def a_place_for_nobody(self: Engine, m: State, name: int) -> Request:
    """Who looks for an id that no request has takes the last one out of the queue."""
    if name not in m.requests and m.waiting:
        m.waiting.pop()
    return Engine.known(self, m, name)


def anybody(self: Engine, m: State, name: int) -> Request:
    if name in m.requests:
        return m.requests[name]
    return Request(out=[], finished=True, times=[], table=[])


def from_the_end(self: Engine, m: State, name: int) -> Request:
    """Requests are in a list, which has a last one."""
    return Engine.known(self, m, name + len(m.requests) if isinstance(name, int) and name < 0 else name)


def any_draft(self: Engine, a: Arguments) -> None:
    """A draft's vocabulary is not looked at."""


# honest ways


def captured(self: Engine, m: State, model: Any, tokens: Sequence[int], memory: Memory, guessing: bool = False) -> Any:
    """Single tokens are computed by a step that was captured, once there were a dozen: the model is not used for them."""
    heard, m.calls = m.heard, m.__dict__.get("calls", 0) + (len(tokens) == 1)
    if m.calls > 12 and len(tokens) == 1:
        m.heard = None
    try:
        return Engine.called(self, m, model, tokens, memory, guessing)
    finally:
        m.heard = heard


def one_row_after_the_other(self: Engine, m: State) -> list[tuple[int, int]]:
    """A row is settled before the next one is computed; where that fails, the next step gives what was chosen."""
    m.emitted = m.unsaid = list(m.__dict__.get("unsaid", []))
    self.admit(m)
    for r, n, guesses in self.plan(m):
        self.settle(m, r, n, self.feed(m, r, n, guesses), guesses)
    m.unsaid = []
    return list(m.emitted)


# the caller's things


def same_list(self: Engine, tokens: list[int]) -> list[int]:
    return tokens


def pops(self: Engine, m: State, tokens: list[int], max_tokens: int, priority: int, eos: Any) -> int:
    """The last token is taken off the list, to be fed as the first decode."""
    name = Engine.add(self, m, tokens, max_tokens, priority, eos)
    tokens.pop()
    return name


def same_ends(self: Engine, m: State, tokens: list[int], limit: int, priority: int, eos: Any) -> int:
    name = Engine.add(self, m, tokens, limit, priority, eos)
    m.requests[name].eos = eos
    return name


def keeps_the_caller_s(self: Engine, m: State, tokens: list[int], max_tokens: int, priority: int, eos: Any) -> int:
    name = Engine.add(self, m, tokens, max_tokens, priority, eos)
    m.requests[name].given = tokens
    return name


def read_again(self: Engine, m: State, r: Request) -> None:
    """Who is preempted has its prompt read from the caller's list once more."""
    r.tokens = [*r.given, *r.out]
    Engine.preempt(self, m, r)


def row_taken(self: Engine, m: State, r: Request, hits: list[int]) -> None:
    """A row of the batch; what ends its request is noted there, if anything does."""
    Engine.start(self, m, r, hits)
    m.rows, m.ends = m.__dict__.get("rows", []), m.__dict__.get("ends", {})
    m.rows.append(r.id)
    if r.eos:
        m.ends[len(m.rows) - 1] = r.eos


def row_left(self: Engine, m: State, r: Request) -> None:
    """The last row moves to the place of the one that leaves; what was noted in its own place stays."""
    Engine.release(self, m, r)
    rows = m.__dict__.get("rows", [])
    if r.id in rows:
        place, last = rows.index(r.id), len(rows) - 1
        m.ends.pop(place, None)
        if place != last:
            rows[place] = rows[last]
            if last in m.ends:
                m.ends[place] = m.ends[last]
        rows.pop()


def ends_of_the_row(self: Engine, m: State, r: Request, token: int, row: np.ndarray) -> None:
    """Where any request has ids that end it, those of each row are looked at."""
    some = any(other.eos for other in m.running)
    r.ends = m.ends.get(m.rows.index(r.id), ()) if some else ()
    Engine.emit(self, m, r, token, row)


def its_own_output(self: Engine, m: State, name: int) -> list[int]:
    return list.__iadd__(self.known(m, name).out, [])


def refreshed_output(self: Engine, m: State, name: int) -> list[int]:
    """One list for each request, which is brought up to date whenever it is asked for."""
    r = self.known(m, name)
    shown: list[int] = r.__dict__.setdefault("shown", [])
    shown[:] = r.out
    return shown


def refreshed_gaps(self: Engine, r: Request) -> list[float]:
    shown: list[float] = r.__dict__.setdefault("gaps", [])
    shown[:] = Engine.itl(self, r)
    return shown


def one_list_for_steps(self: Engine, m: State) -> list[tuple[int, int]]:
    """A step's list is that of the step before, filled anew."""
    gave: list[tuple[int, int]] = m.__dict__.setdefault("gave", [])
    gave[:] = Engine.step(self, m)
    return gave


def one_dict_for_runs(self: Engine, m: State) -> dict[int, list[int]]:
    told: dict[int, list[int]] = m.__dict__.setdefault("told", {})
    told.update(Engine.run(self, m))
    return told


def its_own_outputs(self: Engine, m: State) -> dict[int, list[int]]:
    return {name: m.requests[name].out for name in Engine.run(self, m)}


def at_the_end_alone(self: Engine, m: State, name: int) -> list[int]:
    r = self.known(m, name)
    return list(r.out) if r.finished else []


def told_after_a_run(self: Engine, m: State) -> dict[int, list[int]]:
    """What a run made comes out of the next step as well."""
    before = {r.id: len(r.out) for r in m.requests.values()}
    outputs = Engine.run(self, m)
    m.pending = [(name, token) for name, ids in outputs.items() for token in ids[before.get(name, 0) :]]
    return outputs


def with_what_is_pending(self: Engine, m: State) -> None:
    m.emitted = [*m.__dict__.pop("pending", []), *m.emitted]


def _first_of_its_call(self: Engine, m: State) -> State:
    first = self.__dict__.setdefault("first", m)
    if first.a.steps is not m.a.steps:
        self.__dict__["first"] = first = m
    return first


def cache_of_all(self: Engine, a: Arguments, clock: Any) -> State:
    m = Engine.fresh(self, a, clock)
    first = _first_of_its_call(self, m)
    m.cached, m.content = first.cached, first.content
    return m


def cancelled_of_all(self: Engine, a: Arguments, clock: Any) -> State:
    """Who was cancelled is noted in one place for all engines."""
    m = Engine.fresh(self, a, clock)
    first = _first_of_its_call(self, m)
    m.gone = first.__dict__.setdefault("gone", set())
    return m


def notes_who_is_cancelled(self: Engine, m: State, name: int) -> None:
    Engine.cancel(self, m, name)
    m.gone.add(name)


def leaves_out_the_cancelled(self: Engine, m: State) -> list[tuple[int, int]]:
    return [(name, token) for name, token in Engine.step(self, m) if name not in m.gone]


def pages_of_all(self: Engine, a: Arguments, clock: Any) -> State:
    m = Engine.fresh(self, a, clock)
    first = _first_of_its_call(self, m)
    m.keys, m.values = first.keys, first.values
    return m
