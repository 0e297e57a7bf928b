"""The simulated server: virtual time, faults, and what is counted."""

from __future__ import annotations

import heapq
import math
import random
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from inferspec.tools.simulate.standin import Ids, StandIn
from inferspec.tools.simulate.workload import VOCABULARY, Job, Workload


@dataclass(frozen=True)
class Costs:
    """Seconds of virtual time that a pass through the model takes; a step is 1 + lookahead of them.

    Not measured: chosen so that about as many requests are in a batch as figure 13 of Kwon et al. 2023 says of vLLM and
    OPT-13B, for both of its traces (132.4 at 30 requests a second of Alpaca, 30.4 at 2 of ShareGPT).
    """

    fixed: float = 0.035
    per_prefill_token: float = 0.0001
    per_decode: float = 0.00025


@dataclass(frozen=True)
class Faults:
    """What goes wrong. rate: the share of requests that somebody wants to cancel (those that ended before stay so), of steps
    whose pass through the model raises before its end (half of them cost one of their requests its life), and of steps
    before which somebody else takes all free blocks, for up to HELD steps."""

    rate: float = 0.0
    seed: int = 0


PATIENCE = 5.0
"""Seconds, on average, from a request's arrival to its cancellation, for one half of those that are cancelled; the others are
while they run."""
HELD = 16
WATCHED = 64
"""Of so many requests one has all its slots looked at in every step."""
LONG = 20_000
"""Steps without an id that nothing explains: more than any prompt takes."""
LOOKS = 16
"""Memory is looked at every so many steps; what is between is taken to be the same."""
POINTS = 1000
"""Moments that are kept for the plot, up to twice as many."""


@dataclass
class Memory:
    """Slots times the seconds that were looked at. allocated: in blocks that are not free; filled: hold a token; tokens: of all requests, shared
    ones once for each; max, pow2, oracle: what the same requests would take at the same moments, each in one piece."""

    seconds: float = 0.0
    allocated: float = 0.0
    filled: float = 0.0
    tokens: float = 0.0
    max: float = 0.0
    pow2: float = 0.0
    oracle: float = 0.0


@dataclass
class Counts:
    """What was counted. Times are virtual seconds; delays: from arrival to the first step that computes for a request."""

    finished: int = 0
    cancelled: int = 0
    steps: int = 0
    failed_steps: int = 0
    exhaustions: int = 0
    preemptions: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    prefill_tokens: int = 0
    output_tokens: int = 0
    generated: int = 0
    watched: int = 0
    ghosts: int = 0
    leaked: int = 0
    seconds: float = 0.0
    batched: float = 0.0
    wall: float = 0.0
    processor: float = 0.0
    memory: Memory = field(default_factory=Memory)
    delays: array = field(default_factory=lambda: array("d"))
    moments: list[tuple[float, int, int, float]] = field(default_factory=list)
    """Second, requests in the step, requests that wait, share of the blocks in use."""
    problems: list[str] = field(default_factory=list)


class Broken(Exception):
    """The simulation cannot go on."""


class ModelError(RuntimeError):
    """The fault: a step's pass through the model does not come to its end."""


class Server:
    """One scheduler and its block manager under a workload."""

    def __init__(
        self,
        manager: Any,
        scheduler: Any,
        workload: Workload,
        *,
        costs: Costs | None = None,
        faults: Faults | None = None,
        told: Callable[[Counts], None] = lambda counts: None,
    ) -> None:
        self.manager, self.scheduler, self.workload = manager, scheduler, workload
        self.costs, self.faults = costs or Costs(), faults or Faults()
        self.told = told
        self.counts = Counts()
        self.now = 0.0
        # A scheduler that knows none has chunks without it.
        self._lookahead: int = getattr(scheduler, "lookahead", 0)
        self._model = StandIn(manager.num_blocks, manager.block_size, self._lookahead, self._problem)
        self._chance = random.Random(self.faults.seed)
        self._cancels: list[tuple[float, float, Job]] = []
        self._holding: set[Job] = set()
        """Requests that have slots which were written."""
        self._held: Any = None
        self._held_steps = 0
        self._under_way = 0
        self._arrived = 0
        self._stride = 1

    def run(self) -> Counts:
        """Serve all requests; what is wrong is in `problems`."""
        wall, processor = time.perf_counter(), time.process_time()
        try:
            self._serve()
            self._last_look()
        except Broken as error:
            self.counts.problems.append(str(error))
        except Exception as error:
            self.counts.problems.append(f"{type(error).__name__}: {error}, after {self.counts.steps} steps")
        self.counts.generated, self.counts.ghosts = self._model.generated, self._model.ghosts
        self.counts.seconds = self.now
        self.counts.leaked = self.manager.num_blocks - self.manager.num_free
        self.counts.wall, self.counts.processor = time.perf_counter() - wall, time.process_time() - processor
        self.told(self.counts)
        return self.counts

    def _serve(self) -> None:
        jobs, generated, quiet = self.workload.jobs(), 0, 0
        coming = next(jobs, None)
        while coming is not None or self._under_way:
            while coming is not None and coming.arrival <= self.now:
                self._add(coming)
                coming = next(jobs, None)
            if not self._under_way and coming is not None:
                self.now = coming.arrival
                continue
            self._cancel_due()
            self._hold_or_give_back()
            step = self.scheduler.schedule()
            self.counts.preemptions += len(step.preempted)
            for job in step.preempted:
                self._release(job)
            self.counts.steps += 1
            self._pass(step)
            generated, quiet = self._model.generated, quiet + 1 if generated == self._model.generated else 0
            if quiet > LONG:
                raise Broken(
                    f"no id came of the last {quiet} steps, though {self._under_way} requests are under way: "
                    f"{self.manager.num_free} of {self.manager.num_blocks} blocks are free"
                )
            if self.counts.steps % 512 == 0:
                self.told(self.counts)

    def _add(self, job: Job) -> None:
        if self._arrived % WATCHED == 0:
            job.chain = []
            self.counts.watched += 1
        self._model.meet(job)
        self.scheduler.add(job)
        self._arrived += 1
        self._under_way += 1
        if self._chance.random() < self.faults.rate:
            if self._chance.random() < 0.5:
                self._cancel_at(job, job.arrival + self._chance.expovariate(1 / PATIENCE))
            else:
                job.doomed = True

    def _pass(self, step: Any) -> None:
        """One step: it takes its time, and the scheduler learns what came of it, unless the model fails."""
        tokens = sum(len(chunk.tokens) for chunk in step.prefills)
        costs, counts = self.costs, self.counts
        ahead = [chunk.lookahead for chunk in step.decodes] if self._lookahead else [0]
        took = (1 + max(ahead, default=0)) * costs.fixed + costs.per_prefill_token * tokens
        took += (len(step.decodes) + sum(ahead)) * costs.per_decode
        self._note_starts(step)
        counts.batched += took * (len(step.prefills) + len(step.decodes))
        self.now += took
        try:
            ids = self._fail(step) if self._chance.random() < self.faults.rate else self._model.compute(step)
        except ModelError:
            counts.failed_steps += 1
            if (chunks := step.prefills or step.decodes) and self._chance.random() < 0.5:
                self._cancel(self._chance.choice(chunks).request)
            return
        counts.prefill_tokens += tokens
        if counts.steps % LOOKS == 0:
            self._look(len(step.prefills) + len(step.decodes), took * LOOKS)
        if counts.steps % 2:
            # While the step was on its way; else the next one begins with it.
            self._cancel_due()
        for job in self.scheduler.update(step, ids):
            self._end(job)
            counts.finished += 1
            if job.output != job.ids:
                self._problem(f"a finished request has other ids than the model gave: {_apart(job)}")
            if len(job.output) != job.max_tokens:
                self._problem(f"a request finished with {len(job.output)} ids of {job.max_tokens}")

    def _fail(self, step: Any) -> list[Ids]:
        """A pass that raises: half of them at once, the others when some of the chunks are written."""
        chunks = _chunks(step)
        written = self._chance.randint(0, len(chunks)) if self._chance.random() < 0.5 else 0
        for chunk in chunks[:written]:
            self._model.write(chunk)
        raise ModelError

    def _hold_or_give_back(self) -> None:
        """Somebody else takes all free blocks, now and then, and gives them back some steps later."""
        if self._held is not None:
            self._held_steps -= 1
            if self._held_steps == 0:
                self.manager.free(self._held)
                self._held = None
        elif self._chance.random() < self.faults.rate and self.manager.num_free:
            # Ids that no prompt has: nothing is hit.
            self._held = self.manager.allocate([VOCABULARY] * (self.manager.num_free * self.manager.block_size))
            self._held_steps = self._chance.randint(1, HELD)
            self.counts.exhaustions += 1

    def _cancel_at(self, job: Job, moment: float) -> None:
        heapq.heappush(self._cancels, (moment, job.arrival, job))

    def _cancel_due(self) -> None:
        while self._cancels and self._cancels[0][0] <= self.now:
            *_, job = heapq.heappop(self._cancels)
            if not job.ended:
                self._cancel(job)

    def _cancel(self, job: Job) -> None:
        self.scheduler.cancel(job)
        self._end(job)
        self.counts.cancelled += 1
        if job.output != job.ids[: len(job.output)]:
            self._problem(f"a cancelled request has other ids than the model gave: {_apart(job)}")

    def _end(self, job: Job) -> None:
        job.ended += 1
        self._release(job)
        if job.ended > 1:
            self._problem(f"a request ended {job.ended} times")
        self._under_way -= 1
        self.counts.output_tokens += len(job.output)

    def _release(self, job: Job) -> None:
        self._holding.discard(job)
        job.chunk = None

    def _note_starts(self, step: Any) -> None:
        for chunk in step.prefills:
            job = chunk.request
            self._holding.add(job)
            if job.started is None:
                job.started = self.now
                if job.doomed:
                    self._cancel_at(job, self.now + self._chance.random() * job.max_tokens * self.costs.fixed)
                self.counts.delays.append(self.now - job.arrival)
                self.counts.prompt_tokens += len(job.tokens)
                self.counts.cached_tokens += chunk.start

    def _look(self, batched: int, weight: float) -> None:
        """What the memory holds once the step is computed (in the middle of its lookahead), beside what whole pieces for
        the same requests would take."""
        size, memory = self.manager.block_size, self.counts.memory
        whole: set[int] = set()
        filled = tokens = pow2 = oracle = 0
        holding = [job for job in self._holding if job.chunk is not None]
        for job in holding:
            chunk = job.chunk
            end = chunk.start + len(chunk.tokens)
            if self._lookahead:
                end += chunk.lookahead // 2
            whole.update(chunk.block_ids[: end // size])
            filled += end % size
            tokens += end
            pow2 += len(job.tokens) + (1 << (job.max_tokens - 1).bit_length())
            oracle += len(job.tokens) + job.max_tokens
        memory.seconds += weight
        memory.tokens += weight * tokens
        memory.max += weight * len(holding) * self.workload.lengths.positions
        memory.pow2 += weight * pow2
        memory.oracle += weight * oracle
        used = self.manager.num_blocks - self.manager.num_free
        if self._held is not None:
            used -= len(self._held.block_ids)
        memory.filled += weight * (filled + len(whole) * size)
        memory.allocated += weight * used * size
        if self.counts.steps // LOOKS % self._stride == 0:
            moments = self.counts.moments
            waiting = self._under_way - len(self._holding)
            moments.append((self.now, batched, waiting, used / self.manager.num_blocks))
            if len(moments) == 2 * POINTS:
                del moments[::2]
                self._stride *= 2

    def _last_look(self) -> None:
        """Every request ended; now every block is free."""
        if self._held is not None:
            self.manager.free(self._held)
            self._held = None
        leaked = self.manager.num_blocks - self.manager.num_free
        if leaked:
            self._problem(f"{leaked} of {self.manager.num_blocks} blocks are not free although no request is left")

    def _problem(self, text: str) -> None:
        problems = self.counts.problems
        problems.append(text)
        if len(problems) == 20:
            raise Broken("no more is looked at")


def _chunks(step: Any) -> list[Any]:
    return [*step.prefills, *step.decodes]


def _apart(job: Job) -> str:
    pairs: Sequence[tuple[int, int]] = list(zip(job.output, job.ids, strict=False))
    first = next((k for k, (one, other) in enumerate(pairs) if one != other), len(pairs))
    return f"{len(job.output)} and {len(job.ids)} ids, apart from the {first}th"


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest value that so large a share is not above; 0 of nothing."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)))] if ordered else 0.0
