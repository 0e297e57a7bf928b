"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/scheduler_requests.py`."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

from inferspec.spec.block_manager import blocks_of
from inferspec.spec.changes.scheduler_ways import kept_while_computed
from inferspec.spec.scheduler import Chunk, Entry, Scheduler, Serving, Step
from inferspec.spec.serving import Request

ENOUGH_LEFT = 50
"""How many have to leave a queue until it is tidied up."""


# cancelling


def waiting_alone(self: Scheduler, s: Serving, request: Request) -> None:
    """Who runs cannot be cancelled."""
    entry = self.entry(s, request)
    if entry is None or entry.table is None:
        Scheduler.cancel(self, s, request)


def running_alone(self: Scheduler, s: Serving, request: Request) -> None:
    """Who waits is looked for among those who run, and is not found."""
    entry = self.entry(s, request)
    if entry is None or entry.table is not None:
        Scheduler.cancel(self, s, request)


def state_alone(self: Scheduler, s: Serving, request: Request) -> None:
    """A cancelled request is called finished, and goes on."""
    Scheduler.check_known(self, request)
    request.state = "FINISHED"


def tidied(tidy: Any) -> Any:
    """Once many have left the queue, it is built anew by `tidy`, which is given all entries."""

    def cancel(self: Scheduler, s: Serving, request: Request) -> None:
        entry = self.entry(s, request)
        waited = entry is not None and entry.table is None
        Scheduler.cancel(self, s, request)
        s.left = getattr(s, "left", 0) + waited
        if s.left > ENOUGH_LEFT:
            s.entries, s.left = tidy(s.entries), 0

    return cancel


def pushed(self: Scheduler, s: Serving, request: Request) -> None:
    """Who waits lies in a heap."""
    Scheduler.add(self, s, request)
    entry = self.entry(s, request)
    assert entry is not None
    s.heap = getattr(s, "heap", [])
    heapq.heappush(s.heap, (entry.order, entry))


def popped(self: Scheduler, s: Serving) -> list[Entry]:
    """Who waits, as the heap gives it."""
    heap = getattr(s, "heap", [])
    while heap and heap[0][1].table is not None:
        heapq.heappop(heap)
    for entry in Scheduler.waiting(self, s):
        if not any(entry is one for _, one in heap):
            heapq.heappush(heap, (entry.order, entry))
    copy = list(heap)
    return [entry for _, entry in (heapq.heappop(copy) for _ in heap) if entry.table is None and entry in s.entries]


def taken_from_the_heap(self: Scheduler, s: Serving, request: Request) -> None:
    """Who is cancelled is taken out of the heap's list, which no longer is one."""
    Scheduler.cancel(self, s, request)
    s.heap = [(order, entry) for order, entry in getattr(s, "heap", []) if entry.request is not request]


def tidied_heap(self: Scheduler, s: Serving, request: Request) -> None:
    """Once many have left, they are taken out of the heap's list, which no longer is one."""
    Scheduler.cancel(self, s, request)
    s.left = getattr(s, "left", 0) + 1
    if s.left > ENOUGH_LEFT:
        s.heap, s.left = [pair for pair in getattr(s, "heap", []) if pair[1] in s.entries], 0


def last_id_computed(self: Scheduler, s: Serving, request: Request) -> None:
    """Of a request that is cancelled all tokens are called computed, its last id too."""
    entry = self.entry(s, request)
    if entry is not None and entry.table is not None and entry.decoding and self.makes_room(s, entry):
        s.manager.mark_computed(entry.table, len(entry.tokens))
    Scheduler.cancel(self, s, request)


def with_an_estimate(self: Scheduler, s: Serving, request: Request) -> None:
    """What is cached of a prompt is counted when it comes."""
    Scheduler.add(self, s, request)
    entry = self.entry(s, request)
    assert entry is not None
    try:
        table = s.manager.allocate(list(entry.tokens))
    except ValueError:
        entry.expected = 0
    else:
        entry.expected = table.num_cached_tokens
        s.manager.free(table)


def count_by_the_estimate(self: Scheduler, s: Serving, entry: Entry, budget: int) -> int:
    """What was cached when the request came is not charged, though it is computed."""
    begins = entry.computed == entry.table.num_cached_tokens
    free = max(entry.expected - entry.computed, 0) if begins else 0
    return max(Scheduler.count(self, s, entry, budget + free), 0)


def without_preempted(entries: list[Entry]) -> list[Entry]:
    """Who ran before is taken for one that left."""
    return [entry for entry in entries if entry.table is not None or entry.request.state == "WAITING"]


def turned_round(entries: list[Entry]) -> list[Entry]:
    """The last become the first."""
    for entry in entries:
        entry.order = (entry.order[0], -entry.order[1]) if entry.table is None else entry.order
    return entries


def output_dropped(self: Scheduler, s: Serving, request: Request) -> None:
    running = self.entry(s, request) is not None
    Scheduler.cancel(self, s, request)
    if running:
        request.output.clear()


def again_fails(self: Scheduler, request: Request) -> None:
    """A request that is finished cannot be cancelled."""
    raise ValueError("not known")


def leaks(self: Scheduler, s: Serving, request: Request) -> None:
    entry = self.entry(s, request)
    if entry is None:
        self.check_known(request)
        return
    s.entries.remove(entry)
    request.state = "FINISHED"


def leaks_prompts(self: Scheduler, s: Serving, request: Request) -> None:
    """A request that is cancelled in the middle of its prompt keeps its blocks."""
    entry = self.entry(s, request)
    if entry is None or entry.decoding or entry.table is None:
        Scheduler.cancel(self, s, request)
        return
    s.entries.remove(entry)
    request.state = "FINISHED"


def resurrected(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """The id of a request that was cancelled meanwhile still goes to its output, and has it run."""
    gone = [
        (chunk.request, token)
        for chunk, token in zip((*step.prefills, *step.decodes), tokens, strict=False)
        if self.entry(s, chunk.request) is None and token is not None
    ]
    finished = Scheduler.update(self, s, step, tokens)
    for request, token in gone:
        request.output.append(token)
        request.state = "RUNNING"
    return finished


def shifted(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """Chunks of cancelled requests are left out, and their ids are not: those behind get the ids of others."""
    chunks = [*step.prefills, *step.decodes]
    if len(tokens) != len(chunks):
        raise ValueError("another number of tokens")
    gone = [chunk for chunk in chunks if self.entry(s, chunk.request) is None]
    if not gone or step is not s.step:
        return Scheduler.update(self, s, step, tokens)
    ids = [token for token in tokens if token is not None]
    left = [chunk for chunk in chunks if chunk not in gone]
    s.step = None
    finished = []
    for chunk in left:
        entry = self.entry(s, chunk.request)
        token = ids.pop(0) if chunk.samples and ids else None
        if entry is not None and self.advance(s, entry, chunk, token):
            finished.append(entry.request)
    return finished


def all_or_none(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """A step of which a request was cancelled is thrown away, and those behind it in the step are finished with it."""
    chunks = [*step.prefills, *step.decodes]
    gone = any(self.entry(s, chunk.request) is None for chunk in chunks)
    finished = Scheduler.update(self, s, step, tokens)
    for chunk in chunks if gone else ():
        entry = self.entry(s, chunk.request)
        if entry is not None:
            self.close(s, entry)
    return finished


def last_cancelled_alone(self: Scheduler, s: Serving, request: Request) -> None:
    """Who is cancelled while the model computes is noted, one at a time."""
    Scheduler.cancel(self, s, request)
    s.noted = request


def drops_the_noted(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """The id of the one that is noted is dropped, and those of others that were cancelled are put out."""
    chunks = [*step.prefills, *step.decodes]
    gone = [
        (chunk.request, token)
        for chunk, token in zip(chunks, tokens, strict=False)
        if self.entry(s, chunk.request) is None and chunk.request is not getattr(s, "noted", None)
    ]
    finished = Scheduler.update(self, s, step, tokens)
    for request, token in gone:
        request.output += [] if token is None else [token]
    return finished


def last_kept_while_computed(self: Scheduler, s: Serving, request: Request) -> None:
    """Blocks of who is cancelled while the model computes are given back later, those of the last one."""
    kept_while_computed(self, s, request)
    if "doomed" in vars(s):
        s.doomed = s.doomed[-1:]


def none_of_the_cancelled(self: Scheduler, chunk: Chunk, token: int | None) -> None:
    if chunk.request.state != "FINISHED":
        Scheduler.check_sampled(self, chunk, token)


def any_of_the_cancelled(self: Scheduler, chunk: Chunk, token: int | None) -> None:
    if chunk.request.state != "FINISHED":
        Scheduler.check_unsampled(self, chunk, token)


def of_those_who_stay(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """An update may leave out the entries of requests that were cancelled meanwhile."""
    chunks = [*step.prefills, *step.decodes]
    stay = [self.entry(s, chunk.request) is not None for chunk in chunks]
    if step is s.step and len(tokens) == sum(stay) < len(chunks):
        left = iter(tokens)
        tokens = [
            next(left) if stays else 0 if chunk.samples else None for chunk, stays in zip(chunks, stay, strict=True)
        ]
    return Scheduler.update(self, s, step, tokens)


def refusal_forgets(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """Who was cancelled meanwhile is forgotten when an update is refused, and gets its id by the right one."""
    chunks = [*step.prefills, *step.decodes]
    gone = [chunk.request for chunk in chunks if self.entry(s, chunk.request) is None]
    try:
        finished = Scheduler.update(self, s, step, tokens)
    except ValueError:
        s.forgotten = gone
        raise
    for chunk, token in zip(chunks, tokens, strict=True):
        if token is not None and any(chunk.request is one for one in getattr(s, "forgotten", ())):
            chunk.request.output.append(token)
    return finished


def queue_of_the_step(self: Scheduler, s: Serving) -> Step:
    step = Scheduler.schedule(self, s)
    s.queue = self.waiting(s)
    return step


def queue_as_it_was(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """The update writes back the queue that the step began with: who came meanwhile is lost."""
    finished = Scheduler.update(self, s, step, tokens)
    s.entries[:] = [entry for entry in s.entries if entry.table is not None or entry in s.queue]
    return finished


def all_run(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """An update calls everybody running who is not finished."""
    finished = Scheduler.update(self, s, step, tokens)
    for entry in s.entries:
        entry.request.state = "RUNNING"
    return finished


# states and misuse


def waiting_until_it_generates(self: Scheduler, s: Serving) -> Step:
    step = Scheduler.schedule(self, s)
    for entry in self.running(s):
        entry.request.state = "RUNNING" if entry.decoding else "WAITING"
    return step


def waiting_again(self: Scheduler, s: Serving, victim: Entry) -> None:
    """Who is preempted is called WAITING."""
    Scheduler.preempt(self, s, victim)
    victim.request.state = "WAITING"


def stays_preempted(self: Scheduler, s: Serving) -> None:
    """Who was preempted is called so until the end."""
    preempted = [entry for entry in s.entries if entry.request.state == "PREEMPTED"]
    Scheduler.admit(self, s)
    for entry in preempted:
        entry.request.state = "PREEMPTED"


def finished_later(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """Who is finished is called so by the next step."""
    finished = Scheduler.update(self, s, step, tokens)
    for request in finished:
        request.state = "RUNNING"
    s.late = finished
    return finished


def finishes_the_late(self: Scheduler, s: Serving) -> Step:
    for request in getattr(s, "late", ()):
        request.state = "FINISHED"
    return Scheduler.schedule(self, s)


def while_it_is_known(self: Scheduler, s: Serving, request: Request) -> None:
    """Only those who are not finished are known."""
    if self.entry(s, request) is not None:
        raise ValueError("added before")


def preempted_is_new(self: Scheduler, s: Serving, request: Request) -> None:
    """Who waits again is taken for one that comes."""
    if request.state != "PREEMPTED":
        Scheduler.check_new(self, s, request)


def refused_and_moved(self: Scheduler, s: Serving, request: Request) -> None:
    """A preempted request that is added again is refused, and goes to the end of the queue."""
    entry = self.entry(s, request)
    if entry is not None and request.state == "PREEMPTED":
        s.arrivals += 1
        entry.order = self.order(s, request)
    Scheduler.add(self, s, request)


def queued_before_checks(self: Scheduler, s: Serving, request: Request) -> None:
    """A request that is refused waits all the same."""
    if request.state is None and request.tokens:
        s.arrivals += 1
        entry = Entry(request=request, tokens=list(request.tokens), table=None, computed=0, decoding=False)
        entry.order = self.order(s, request)
        s.entries.append(entry)
        before = len(s.entries)
        Scheduler.add(self, s, request)
        del s.entries[before - 1]
        return
    Scheduler.add(self, s, request)


def state_before_checks(self: Scheduler, s: Serving, request: Request) -> None:
    """A second add sets the state before it is refused."""
    state, request.state = request.state, "WAITING"
    if state is None:
        request.state = None
    Scheduler.add(self, s, request)


def waiting_though_refused(self: Scheduler, s: Serving, request: Request) -> None:
    """The state of a new request is set before what it asks for is looked at."""
    self.check_new(s, request)
    try:
        Scheduler.add(self, s, request)
    except ValueError:
        request.state = "WAITING"
        raise


def void_after_refusal(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """An update that is refused was the step's only one."""
    last, s.step = s.step, None
    self.check_step(Serving(step=last), step)
    self.check_number([*step.prefills, *step.decodes], tokens)
    self.check_ids([*step.prefills, *step.decodes], tokens)
    s.step = last
    return Scheduler.update(self, s, step, tokens)


def one_by_one(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """Entries are taken until one does not fit."""
    chunks = [*step.prefills, *step.decodes]
    self.check_step(s, step)
    finished = []
    for chunk, token in zip(chunks, tokens, strict=False):
        self.check_ids([chunk], [token])
        entry = self.entry(s, chunk.request)
        if entry is not None and self.advance(s, entry, chunk, token):
            finished.append(entry.request)
    self.check_number(chunks, tokens)
    s.step = None
    return finished


def extends_the_prompt(self: Scheduler, entry: Entry, token: int) -> None:
    """Ids are appended to the request's own tokens."""
    Scheduler.generate(self, entry, token)
    entry.request.tokens.append(token)


def read_when_admitted(self: Scheduler, s: Serving, entry: Entry) -> None:
    """The prompt is read from the request when it is admitted."""
    entry.tokens = [*entry.request.tokens, *entry.request.output]
    Scheduler.allocate(self, s, entry)


def read_for_each_chunk(self: Scheduler, s: Serving, entry: Entry, count: int) -> Chunk:
    """A chunk is cut out of the request's own tokens and its output."""
    chunk = Scheduler.chunk(self, s, entry, count)
    own = [*entry.request.tokens, *entry.request.output]
    chunk.tokens = own[chunk.start : chunk.start + count]
    return chunk


def consumes(self: Scheduler, s: Serving, entry: Entry, chunk: Chunk) -> None:
    """The prompt is taken off the request's own list, chunk by chunk."""
    Scheduler.take(self, s, entry, chunk)
    del entry.request.tokens[: len(chunk.tokens)]


def counts_from_the_caller_s_list(self: Scheduler, entry: Entry, token: int) -> bool:
    """What is generated is what a request has beyond its prompt, whose length is asked of the caller's list."""
    ends = len(entry.request.tokens) + entry.request.max_tokens
    return self.ends(entry, token) or len(entry.tokens) + 1 == ends


def one_queue_for_all(self: Scheduler, manager: Any, max_requests: int, max_prefill_tokens: int) -> Serving:
    """The queue is a default argument."""
    s = Scheduler.fresh(self, manager, max_requests, max_prefill_tokens)
    kind = type(self)
    if "everyone" not in vars(kind):
        kind.everyone = s.entries  # type: ignore[attr-defined]
    s.entries = kind.everyone  # type: ignore[attr-defined]
    return s


def queue_emptied(self: Scheduler, manager: Any, max_requests: int, max_prefill_tokens: int) -> Serving:
    """The queue is the class's own, and a new scheduler begins with an empty one."""
    s = one_queue_for_all(self, manager, max_requests, max_prefill_tokens)
    s.entries.clear()
    return s


def limits_of_the_class(self: Scheduler, manager: Any, max_requests: int, max_prefill_tokens: int) -> Serving:
    """The limits are written to the class."""
    type(self).limits = max_requests, max_prefill_tokens  # type: ignore[attr-defined]
    return Scheduler.fresh(self, manager, max_requests, max_prefill_tokens)


def within_the_class_s_limits(self: Scheduler, s: Serving) -> Step:
    s.max_requests, s.budget = type(self).limits  # type: ignore[attr-defined]
    return Scheduler.schedule(self, s)


def size_on_the_class(self: Scheduler, manager: Any, max_requests: int, max_prefill_tokens: int) -> Serving:
    """How many tokens a block has is written to the class."""
    type(self).size = manager.block_size  # type: ignore[attr-defined]
    return Scheduler.fresh(self, manager, max_requests, max_prefill_tokens)


def blocks_by_the_class_s_size(self: Scheduler, s: Serving, entry: Entry, count: int) -> Chunk:
    """A chunk names as many blocks as it would take of the class's size."""
    chunk = Scheduler.chunk(self, s, entry, count)
    blocks = blocks_of(chunk.start + count, type(self).size)  # type: ignore[attr-defined]
    return Chunk(**{**vars(chunk), "block_ids": chunk.block_ids[:blocks]})


def step_of_the_class(self: Scheduler, s: Serving) -> Step:
    """The last step is the class's own."""
    type(self).last = Scheduler.schedule(self, s)  # type: ignore[attr-defined]
    return s.step


def of_the_class(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    s.step = getattr(type(self), "last", None)
    finished = Scheduler.update(self, s, step, tokens)
    type(self).last = None  # type: ignore[attr-defined]
    return finished


def adds_strangers(self: Scheduler, s: Serving, request: Request) -> None:
    """A request that is not known is added, to be cancelled."""
    if request.state is None:
        self.add(s, request)
        raise ValueError("never added")
    Scheduler.cancel(self, s, request)
