"""The serving engine: many requests on one model, in MLX.

Each step computes what the scheduler hands out, chunks of prompts and single tokens together, in one pass over pages:
no request's keys and values are ever gathered or padded to those of another. With a draft model each generating
request is ahead by some guessed tokens, which the same pass verifies; both models keep their keys and values in the same
pages of pools of their own, so what a rewind leaves behind is overwritten, and prefix and preemption hold for both.

Sources: the nano-vLLM post; the tiny-llm course, week 2 days 6 and 7 and week 3 day 2; Kwon et al. 2023; Leviathan et
al. 2023 (speculative decoding).
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import mlx.core as mx
import numpy as np

from inferspec.impl.arguments import integer, whole
from inferspec.impl.block_manager import BlockManager
from inferspec.impl.generation import Sampler, id_of
from inferspec.impl.metrics import RequestMetrics, request_metrics
from inferspec.impl.paged_batch import Span
from inferspec.impl.paged_kv import PagePool
from inferspec.impl.scheduler import Chunk, Request, Scheduler, State
from inferspec.impl.transformer import Decoder


@dataclass(frozen=True)
class EngineStats:
    """Counts since the engine was made, and what there is now.

    prompt_tokens, cached_tokens: of admitted requests, and how many of those were found in the prefix cache; what a
    preempted request finds again is no hit. drafted, accepted: guessed tokens.
    """

    steps: int
    running: int
    waiting: int
    free_pages: int
    num_pages: int
    generated_tokens: int
    prompt_tokens: int
    cached_tokens: int
    preemptions: int
    drafted: int
    accepted: int

    @property
    def hit_rate(self) -> float:
        """Share of the prompts' tokens that needed no computing."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else 0.0

    @property
    def acceptance_rate(self) -> float:
        """Share of the guessed tokens that were right."""
        return self.accepted / self.drafted if self.drafted else 0.0


class _Served:
    """A request from its arrival on.

    times: when each of its tokens was there; logits: those of the last one, V; cached: how many tokens of its prompt
    needed no computing, None while it was never admitted; drawn: the position and the id that its sampler chose last, so
    that a step which another request spoilt draws nothing again.
    """

    def __init__(self, request: Request, sampler: Sampler | None, arrival: float) -> None:
        self.request, self.sampler, self.arrival = request, sampler, arrival
        self.times: list[float] = []
        self.logits: mx.array | None = None
        self.cached: int | None = None
        self.drawn: tuple[int, int] | None = None
        self.cancelled = False


class Engine:
    """Serves requests of any lengths; the output of each is what `generate` makes of it alone, greedily.

    model: `Qwen3` or `Llama`. num_pages pages of page_size tokens hold the keys and values of all requests; at most
    max_requests run at a time; a step computes at most max_prefill_tokens of prompts. draft: a smaller model of the
    same vocabulary, which guesses num_draft_tokens at a time. clock: seconds, for the metrics.
    """

    def __init__(
        self,
        model: Decoder,
        *,
        num_pages: int = 256,
        page_size: int = 16,
        max_requests: int = 8,
        max_prefill_tokens: int = 512,
        prefix_caching: bool = True,
        draft: Decoder | None = None,
        num_draft_tokens: int = 4,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if draft is not None and draft.config.vocab_size != model.config.vocab_size:
            raise ValueError(
                f"draft has a vocabulary of {draft.config.vocab_size}; it takes the model's, {model.config.vocab_size}"
            )
        sizes = {"num_pages": num_pages, "page_size": page_size, "max_requests": max_requests}
        for name, size in (sizes | {"max_prefill_tokens": max_prefill_tokens}).items():
            whole(name, size, 1)
        lookahead = whole("num_draft_tokens", num_draft_tokens, 0) if draft is not None else 0
        _check_memory([one for one in (model, draft) if one is not None], num_pages, page_size)
        self._blocks = BlockManager(num_pages, page_size, prefix_caching)
        self._scheduler = Scheduler(self._blocks, max_requests, max_prefill_tokens, lookahead=lookahead)
        self._target = _Paged(model, num_pages, page_size)
        self._draft = None if draft is None else _Paged(draft, num_pages, page_size)
        self._clock = clock
        self._ids = itertools.count()
        self._served: dict[int, _Served] = {}
        self._names: dict[Request, int] = {}
        self._steps = self._generated = self._drafted = self._accepted = 0

    @property
    def num_free_pages(self) -> int:
        """Pages that no request holds; what the prefix cache remembers in them can still be hit."""
        return self._blocks.num_free

    @property
    def has_unfinished(self) -> bool:
        """Whether there is anything to do."""
        return self._scheduler.has_unfinished

    @property
    def stats(self) -> EngineStats:
        """Counts of all requests together."""
        scheduler = self._scheduler
        return EngineStats(
            self._steps,
            scheduler.num_running,
            scheduler.num_waiting,
            self._blocks.num_free,
            self._blocks.num_blocks,
            self._generated,
            scheduler.prompt_tokens,
            scheduler.cached_tokens,
            scheduler.preemptions,
            self._drafted,
            self._accepted,
        )

    def add_request(
        self,
        tokens: Iterable[int],
        max_tokens: int,
        priority: int = 0,
        eos: Iterable[int] = (),
        sampler: Sampler | None = None,
    ) -> int:
        """Take a request and return its id. The larger priority goes first, then who came first.

        eos: ids that end it and do not come out. sampler: takes the logits V and returns an id, in the place of the
        largest logit; nothing is guessed for such a request. ValueError for an empty prompt, a negative max_tokens, ids
        outside the vocabulary, and a request that the model's positions or all pages together could never hold.
        """
        prompt, limit = [integer("tokens", token) for token in tokens], whole("max_tokens", max_tokens, 0)
        self._check(prompt, limit)
        ends = frozenset(integer("eos", token) for token in eos)
        request = Request(prompt, limit, integer("priority", priority), ends)
        served = _Served(request, sampler, self._clock())
        if limit:
            self._scheduler.add(request)
        else:
            request.state = State.FINISHED
        name = next(self._ids)
        self._served[name], self._names[request] = served, name
        return name

    def step(self) -> list[tuple[int, int]]:
        """Compute one step and return the ids that came of it: (request id, token id), in order for each request.

        What a model, a sampler or the clock raises passes through; the next step then begins where this one did.
        RuntimeError when no request can go on.
        """
        if not self.has_unfinished:
            return []
        step = self._scheduler.schedule()
        if not step.chunks:
            if step.preempted:
                return []
            raise RuntimeError(
                f"no request can go on: {self._blocks.num_free} of {self._blocks.num_blocks} pages are free"
            )
        guesses = self._guesses(step.chunks)
        answers = self._answers(step.chunks, guesses)
        now = self._clock()
        before = [len(chunk.request.output) for chunk in step.chunks]
        self._scheduler.update(step, [None if answer is None else answer[0] for answer in answers])
        self._steps += 1
        for chunk in step.prefills:
            served = self._served[self._names[chunk.request]]
            served.cached = chunk.start if served.cached is None else served.cached
        emitted = []
        for chunk, guess, answer, known in zip(step.chunks, guesses, answers, before, strict=True):
            if answer is None:
                continue
            new = self._emit(chunk.request, known, answer, now)
            self._drafted += len(guess)
            self._accepted += min(len(new), len(answer[0]) - 1)
            emitted += new
        # At once: to wait for each row takes longer than to copy it.
        mx.eval([self._served[name].logits for name in dict.fromkeys(name for name, _ in emitted)])
        return emitted

    def run(self, watch: Callable[[EngineStats], None] | None = None) -> dict[int, list[int]]:
        """Step until nothing is unfinished; return the output of every request that was not cancelled, by id.

        watch: is given the counts after each step.
        """
        while self.has_unfinished:
            self.step()
            if watch is not None:
                watch(self.stats)
        return {name: self.output(name) for name, served in self._served.items() if not served.cancelled}

    def cancel(self, request_id: int) -> None:
        """End a request as it is and give its pages back; one that is finished stays so. ValueError for no id of ours."""
        served = self._get(request_id)
        if served.request.state is not State.FINISHED:
            self._scheduler.cancel(served.request)
            served.cancelled = True

    def forget(self, request_id: int) -> None:
        """Drop all that is kept of a request that is finished or was cancelled; ValueError for one that is not."""
        served = self._get(request_id)
        if served.request.state is not State.FINISHED:
            raise ValueError(f"request_id is {request_id}, which is not finished")
        del self._served[request_id], self._names[served.request]

    def output(self, request_id: int) -> list[int]:
        """The ids that a request has generated so far."""
        return list(self._get(request_id).request.output)

    def finished(self, request_id: int) -> bool:
        """Whether a request is at its end, or was cancelled."""
        return self._get(request_id).request.state is State.FINISHED

    def metrics(self, request_id: int) -> RequestMetrics:
        """TTFT, TPOT, ITL and E2EL of what a request has generated so far, in seconds of the clock."""
        served = self._get(request_id)
        return request_metrics(served.arrival, served.times)

    def cached_tokens(self, request_id: int) -> int:
        """How many tokens of a request's prompt the prefix cache spared it, when it was first admitted."""
        return self._get(request_id).cached or 0

    def logits(self, request_id: int) -> mx.array | None:
        """The logits V that a request's last id was chosen by; None before there is one."""
        return self._get(request_id).logits

    def _get(self, request_id: int) -> _Served:
        if request_id not in self._served:
            raise ValueError(f"request_id is {request_id!r}; it takes one that add_request returned")
        return self._served[request_id]

    def _check(self, prompt: list[int], limit: int) -> None:
        config = self._target.model.config
        if not prompt:
            raise ValueError("tokens is empty; it takes one id or more")
        strange = [token for token in prompt if not 0 <= token < config.vocab_size]
        if strange:
            raise ValueError(f"tokens holds {strange[0]}; the vocabulary has 0 … {config.vocab_size - 1}")
        longest = min(paged.model.config.max_positions for paged in (self._target, self._draft) if paged is not None)
        if len(prompt) + limit - 1 > longest:
            raise ValueError(
                f"tokens has {len(prompt)} ids and max_tokens is {limit}; the model has {longest} positions"
            )
        room = self._blocks.num_blocks * self._blocks.block_size
        if len(prompt) + limit - 1 > room:
            raise ValueError(
                f"tokens has {len(prompt)} ids and max_tokens is {limit}; all pages together hold {room} tokens"
            )

    def _guesses(self, chunks: Sequence[Chunk]) -> list[list[int]]:
        """What the draft makes of each chunk. It is fed all tokens that the model is, and all its own guesses."""
        guesses: list[list[int]] = [[] for _ in chunks]
        if self._draft is None:
            return guesses
        wanted = [chunk.lookahead if self._sampler(chunk) is None else 0 for chunk in chunks]
        spans = [Span(chunk.start, chunk.tokens, chunk.block_ids) for chunk in chunks]
        rows = self._draft.feed(spans, [min(1, count) for count in wanted])
        going = [index for index, count in enumerate(wanted) if count]
        rows = [rows[index] for index in going]
        while going:
            for index, token in zip(going, _largest(rows), strict=True):
                guesses[index] += token
            spans = [Span(chunks[i].start + len(guesses[i]), guesses[i][-1:], chunks[i].block_ids) for i in going]
            rows = self._draft.feed(spans, [1] * len(spans))
            rows = [row for index, row in zip(going, rows, strict=True) if len(guesses[index]) < wanted[index]]
            going = [index for index in going if len(guesses[index]) < wanted[index]]
        return guesses

    def _answers(
        self, chunks: Sequence[Chunk], guesses: Sequence[Sequence[int]]
    ) -> list[tuple[list[int], mx.array] | None]:
        """The ids that follow each chunk and the logits they come from, None where it does not sample.

        A guess is right if it is the id that the model chooses there; after the first wrong one stands the model's own.
        """
        spans = [
            Span(chunk.start, (*chunk.tokens, *guess), chunk.block_ids)
            for chunk, guess in zip(chunks, guesses, strict=True)
        ]
        counts = [len(guess) + 1 if chunk.samples else 0 for chunk, guess in zip(chunks, guesses, strict=True)]
        rows = self._target.feed(spans, counts)
        greedy = _largest(rows)
        answers: list[tuple[list[int], mx.array] | None] = []
        for chunk, guess, logits, chosen in zip(chunks, guesses, rows, greedy, strict=True):
            if not chunk.samples:
                answers.append(None)
                continue
            ids = chosen if self._sampler(chunk) is None else [self._drawn(chunk, logits[0])]
            right = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(guess, ids, strict=False)))
            answers.append((ids[: right + 1], logits))
        return answers

    def _drawn(self, chunk: Chunk, logits: mx.array) -> int:
        """What the request's sampler chooses to follow a chunk; once."""
        name = self._names[chunk.request]
        served, position = self._served[name], chunk.start + len(chunk.tokens)
        if served.drawn is None or served.drawn[0] != position:
            assert served.sampler is not None
            token = id_of(served.sampler(logits))
            if not 0 <= token < logits.size:
                raise ValueError(
                    f"sampler of request {name} returned {token}; the vocabulary has 0 … {logits.size - 1}"
                )
            served.drawn = position, token
        return served.drawn[1]

    def _emit(
        self, request: Request, known: int, answer: tuple[list[int], mx.array], now: float
    ) -> list[tuple[int, int]]:
        """What of an answer came out: less than all of it at the request's end."""
        name = self._names[request]
        served = self._served[name]
        new = request.output[known:]
        self._generated += len(new)
        served.times += [now] * len(new)
        if new:
            # A copy of the row: a slice would keep all logits of the step.
            served.logits = answer[1][mx.array([len(new) - 1])][0]
        return [(name, token) for token in new]

    def _sampler(self, chunk: Chunk) -> Sampler | None:
        return self._served[self._names[chunk.request]].sampler


class _Paged:
    """A model and the pages of its layers."""

    def __init__(self, model: Decoder, num_pages: int, page_size: int) -> None:
        config = model.config
        self.model = model
        self.pools = [
            PagePool(num_pages, page_size, config.num_kv_heads, config.head_dim, model.dtype) for _ in model.layers
        ]

    def feed(self, spans: Sequence[Span], counts: Sequence[int]) -> list[mx.array]:
        """Compute all spans in one pass and return the logits of the last counts[i] tokens of each: counts[i]×V."""
        ends = itertools.accumulate(len(span.tokens) for span in spans)
        rows = [row for end, count in zip(ends, counts, strict=True) for row in range(end - count, end)]
        logits = self.model.paged(spans, self.pools, rows)
        starts = itertools.accumulate(counts, initial=0)
        return [logits[start : start + count] for start, count in zip(starts, counts, strict=False)]


def _largest(rows: Sequence[mx.array]) -> list[list[int]]:
    """The id of the largest logit in each row, the lowest of equal ones."""
    if not any(len(row) for row in rows):
        return [[] for _ in rows]
    logits = rows[0] if len(rows) == 1 else mx.concatenate(list(rows))
    ids = iter(np.asarray(mx.argmax(logits, axis=-1)).tolist())
    return [list(itertools.islice(ids, len(row))) for row in rows]


def _check_memory(models: Sequence[Decoder], num_pages: int, page_size: int) -> None:
    """ValueError when the pages of these models do not fit into the machine: the library would end the process."""
    token = sum(
        2 * len(model.layers) * model.config.num_kv_heads * model.config.head_dim * model.dtype.size for model in models
    )
    needed, there = num_pages * page_size * token, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > there:
        raise ValueError(
            f"num_pages is {num_pages} and page_size {page_size}: they take {needed / 2**30:.1f} GiB, "
            f"and this machine has {there / 2**30:.1f} GiB"
        )
