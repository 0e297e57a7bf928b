"""What stands in for a model and its key/value memory.

It has a state for each position: a hash of the state before it and of the token there, kept in the slot where the keys and
values of that token would be. It reads the state of the last token from the slot that the block table names, so that a
block which is shared, reused or lost wrongly changes what comes out; the next id is a function of the state. Every id
is compared with the stand-in's own sequence for that request; for requests that are watched, all slots of their
earlier tokens are looked at in each step too (the ghosts of the slots).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inferspec.tools.simulate.workload import VOCABULARY, Job

_START, _MULTIPLIER, _MASK = 0x2545F4914F6CDD1D, 0x9E3779B97F4A7C15, 2**64 - 1

Ids = int | list[int] | None
"""What the scheduler takes for a chunk."""


def mixed(state: int, token: int) -> int:
    """The state after one more token."""
    state = ((state ^ (token + 1)) * _MULTIPLIER) & _MASK
    return state ^ (state >> 31)


def continuation(tokens: list[int], count: int) -> list[int]:
    """The ids that follow a prompt: what a request must give, whatever happens to it on the way."""
    state = _START
    for token in tokens:
        state = mixed(state, token)
    ids = []
    for _ in range(count):
        ids.append(state % VOCABULARY)
        state = mixed(state, ids[-1])
    return ids


class StandIn:
    """The model and its memory of num_blocks blocks. lookahead: whether chunks have any; told: of what is wrong.

    generated: ids so far; ghosts: slots of watched requests that were looked at.
    """

    def __init__(self, num_blocks: int, block_size: int, lookahead: int, told: Callable[[str], None]) -> None:
        self.size, self.lookahead, self.told = block_size, lookahead, told
        self.generated = self.ghosts = 0
        self._slots = [0] * (num_blocks * block_size)
        self._shared: dict[int, int] = {}
        """The state after each system prompt."""

    def meet(self, job: Job) -> None:
        """Work out the request's own state before the prompt's last token; without a watch, a system prompt's is known."""
        state, known = _START, 0
        if job.chain is None and 0 < job.shared < len(job.tokens):
            if job.which not in self._shared:
                for token in job.tokens[: job.shared]:
                    state = mixed(state, token)
                self._shared[job.which] = state
            state, known = self._shared[job.which], job.shared
        for token in job.tokens[known:-1]:
            state = mixed(state, token)
            if job.chain is not None:
                job.chain.append(state)
        job.before = state

    def compute(self, step: Any) -> list[Ids]:
        """Compute the step's chunks, prefills first; return the ids."""
        ids: list[Ids] = [self._prefill(chunk) for chunk in step.prefills]
        slots, size, lookahead = self._slots, self.size, self.lookahead
        for chunk in step.decodes:
            job, at, blocks = chunk.request, chunk.start, chunk.block_ids
            job.chunk = chunk
            (token,) = chunk.tokens
            if job.chain is not None:
                self._look_back(chunk)
            before = at - 1
            state = slots[blocks[before // size] * size + before % size]
            if state != job.before or token != job.ids[-1]:
                self._foreign(chunk)
            # mixed(), written out: most of a simulation is this loop.
            state = ((state ^ (token + 1)) * _MULTIPLIER) & _MASK
            state ^= state >> 31
            slots[blocks[at // size] * size + at % size] = state
            if job.chain is not None:
                job.chain.append(state)
            job.before = state
            token = state % VOCABULARY
            job.ids.append(token)
            ids.append([token, *self._go_on(chunk, token)] if lookahead and chunk.lookahead else token)
        self.generated += len(step.decodes)
        return ids

    def write(self, chunk: Any) -> int:
        """Write the states of a chunk's tokens into its slots; return the last."""
        slots, size, blocks, at = self._slots, self.size, chunk.block_ids, chunk.start
        state = slots[blocks[(at - 1) // size] * size + (at - 1) % size] if at else _START
        for token in chunk.tokens:
            state = mixed(state, token)
            slots[blocks[at // size] * size + at % size] = state
            at += 1
        return state

    def _prefill(self, chunk: Any) -> int | None:
        """Compute a chunk of a prompt, or of all that a preempted request has."""
        job = chunk.request
        job.chunk = chunk
        if job.chain is not None:
            self._look_back(chunk)
        state = self.write(chunk)
        if not chunk.samples:
            return None
        if state != mixed(job.before, job.ids[-1] if job.ids else job.tokens[-1]):
            self._foreign(chunk)
        if job.chain is not None:
            job.chain.append(state)
        job.before = state
        job.ids.append(state % VOCABULARY)
        self.generated += 1
        return job.ids[-1]

    def _go_on(self, chunk: Any, token: int) -> list[int]:
        """Compute what the chunk has room for besides; return the ids."""
        slots, size, blocks, job = self._slots, self.size, chunk.block_ids, chunk.request
        for at in range(chunk.start + 1, chunk.start + 1 + chunk.lookahead):
            state = job.before = mixed(job.before, token)
            slots[blocks[at // size] * size + at % size] = state
            if job.chain is not None:
                job.chain.append(state)
            token = state % VOCABULARY
            job.ids.append(token)
        self.generated += chunk.lookahead
        return job.ids[-chunk.lookahead :]

    def _look_back(self, chunk: Any) -> None:
        """Whether each slot before a chunk holds the state of the request's own tokens."""
        size, blocks = self.size, chunk.block_ids
        known = chunk.request.chain[: chunk.start]
        self.ghosts += len(known)
        for first in range(0, len(known), size):
            place, own = blocks[first // size] * size, known[first : first + size]
            if self._slots[place : place + len(own)] != own:
                self.told(f"a slot before position {chunk.start} holds another's: {_place(chunk)}")
                return

    def _foreign(self, chunk: Any) -> None:
        self.told(f"a request computes what is not its own: {_place(chunk)}")


def _place(chunk: Any) -> str:
    job = chunk.request
    return f"prompt of {len(job.tokens)}, {len(job.ids)} ids, chunk of {len(chunk.tokens)} at {chunk.start}"
