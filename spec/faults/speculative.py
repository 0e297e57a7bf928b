"""Mistakes in speculative decoding, and other honest ways to do it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Change, Fault, Operation, Variant
from inferspec.spec.duet import Player, Request
from inferspec.spec.faults.verification import VERIFY_FAULTS, VERIFY_VARIANTS
from inferspec.spec.mistakes import ignores_strides
from inferspec.spec.numerics import round_to
from inferspec.spec.speculative import Run, SpeculativeGenerate, Verify, chances
from inferspec.spec.speculative_sentences import (
    GENERATE,
    SPEC_23,
    SPEC_24,
    SPEC_25,
    SPEC_26,
    SPEC_27,
    SPEC_28,
    SPEC_29,
    SPEC_30,
    SPEC_31,
    SPEC_32,
    SPEC_33,
    SPEC_34,
    SPEC_35,
    SPEC_36,
    SPEC_37,
    SPEC_38,
    SPEC_39,
    SPEC_40,
    SPEC_41,
    SPEC_42,
    SPEC_43,
    SPEC_44,
    SPEC_45,
    SPEC_46,
    SPEC_47,
    SPEC_48,
    SPEC_49,
    SPEC_50,
    SPEC_51,
    SPEC_52,
    SPEC_53,
    SPEC_54,
    SPEC_56,
)
from inferspec.spec.toy import FixedCache

TIRED = "the kind of slip that tired hands make"
POST = "FACTS.md: the nano-vLLM post, part 7, samples from a wrong residual"
MLX_LM = "https://github.com/ml-explore/mlx-lm"
TRANSFORMERS = "https://github.com/huggingface/transformers"
OPENVINO = "https://github.com/openvinotoolkit/openvino.genai/issues/4190"
COUNTING = f"{OPENVINO} (a counter off by one)"

Loop = SpeculativeGenerate
Rows = np.ndarray
Cache = list[FixedCache]


def _memory(operation: Operation) -> dict[Any, Any]:
    """A store that outlives calls, as a module's or a default argument does."""
    if "store" not in vars(type(operation)):
        type(operation).store = {"fresh": True}  # type: ignore[attr-defined]
    return type(operation).store  # type: ignore[attr-defined]


# which ids


def _rows_before(self: Loop, run: Run) -> Rows:
    """The rows of the positions before those that decide, where there are any."""
    fed = self.lacking(run, run.target_cache)
    rows = run.target(fed, run.target_cache)
    wanted = len(run.drafted) + 1
    return rows[-wanted - 1 : -1] if len(rows) > wanted else rows[-wanted:]


def _keeps_all(self: Loop, drafted: list[int], right: list[int]) -> list[int]:
    return [*drafted, right[-1]]


def _keeps_the_wrong_one(self: Loop, drafted: list[int], right: list[int]) -> list[int]:
    ids = Loop.agreed(self, drafted, right)
    return ids if len(ids) > len(drafted) else drafted[: len(ids)]


def _matches_anywhere(self: Loop, drafted: list[int], right: list[int]) -> list[int]:
    count = sum(one == two for one, two in zip(drafted, right, strict=False))
    return [*drafted[:count], right[count]]


def _keeps_runners_up(self: Loop, run: Run, rows: Rows) -> list[int]:
    """A draft is kept where it is among the two likeliest ids of the target."""
    if run.request.temperature:
        return Loop.verified(self, run, rows)
    for place, token in enumerate(run.drafted):
        if token not in np.argsort(-rows[place], kind="stable")[:2]:
            return [*run.drafted[:place], int(np.argmax(rows[place]))]
    return [*run.drafted, int(np.argmax(rows[-1]))]


def _correction_lost(self: Loop, run: Run, ids: list[int]) -> list[int]:
    """The id in the place of a rejected draft is fed, but does not come out."""
    whole = len(ids) == 1 or len(ids) > len(run.drafted)
    return Loop.shown(self, run, ids if whole else ids[:-1])


def _all_or_one(self: Loop, drafted: list[int], right: list[int]) -> list[int]:
    """Where any draft is wrong, only the target's first id comes out."""
    return right if drafted == right[:-1] else right[:1]


def _single_unverified(self: Loop, drafted: list[int], right: list[int]) -> list[int]:
    return [*drafted, right[-1]] if len(drafted) == 1 else Loop.agreed(self, drafted, right)


def _many_unverified(self: Loop, drafted: list[int], right: list[int]) -> list[int]:
    """A buffer of eight holds what is compared."""
    return (
        [*Loop.agreed(self, drafted[:8], right)[:8], *drafted[8:], right[-1]]
        if len(drafted) > 8
        else Loop.agreed(self, drafted, right)
    )


def _greedy_by(pick: Any) -> Change:
    """The target's ids are picked another way. pick: rows of logits to ids."""

    def verified(self: Loop, run: Run, rows: Rows) -> list[int]:
        if run.request.temperature:
            return Loop.verified(self, run, rows)
        return self.agreed(run.drafted, [int(token) for token in pick(rows)])

    return {"verified": verified}


def _always_one(self: Loop, run: Run) -> int:
    return max(Loop.count(self, run), 1)


# where it ends


def _looks_at_the_last(self: Loop, run: Run) -> Iterator[Any]:
    """Of the ids of a round only the last one can end the ids."""
    while run.out < run.request.max_tokens:
        self.draft(run, self.count(run))
        ids = self.verified(run, self.score(run))
        run.sequence = run.sequence + ids
        self.rewind(run)
        for token in self.shown(run, ids[:-1]):
            run.out += 1
            yield token
        if ids[-1] in run.request.eos:
            return
        if run.out < run.request.max_tokens:
            run.out += 1
            yield ids[-1]


def _endless_when_drawn(self: SpeculativeGenerate, run: Run, token: int) -> bool:
    """The path for temperatures above 0 has no look at eos."""
    return run.request.temperature == 0 and SpeculativeGenerate.stops(self, run, token)


def _emits_the_end(self: Loop, run: Run) -> Iterator[Any]:
    eos, run.request.eos = run.request.eos, ()
    for token in Loop.ids(self, run):
        yield token
        if token in eos:
            return


class _GoesOn:
    """An iterator of its own that forgets that it has come to its end."""

    def __init__(self, loop: Loop, run: Run) -> None:
        self.eos, run.request.eos = run.request.eos, ()
        self.ids = Loop.ids(loop, run)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        token = next(self.ids)
        if token in self.eos:
            raise StopIteration
        return token


def _drops_the_run(self: Loop, run: Run, ids: list[int]) -> list[int]:
    """A round with an end of sequence in it gives nothing."""
    ends = [token for token in ids if token in run.request.eos]
    return ends[:1] or Loop.shown(self, run, ids)


def _first_end_alone(self: Loop, run: Run, token: int) -> bool:
    return token in run.request.eos[:1]


def _overruns(self: Loop, run: Run) -> int:
    return run.request.num_draft_tokens


def _whole_rounds(self: Loop, run: Run) -> Iterator[Any]:
    """The limit is looked at between rounds."""
    while run.out < run.request.max_tokens:
        self.draft(run, run.request.num_draft_tokens)
        ids = self.verified(run, self.score(run))
        run.sequence = run.sequence + ids
        self.rewind(run)
        for token in ids:
            if token in run.request.eos:
                return
            run.out += 1
            yield token


def _drops_what_is_past(self: Loop, run: Run) -> Iterator[Any]:
    """A round that would pass the limit gives nothing."""
    while run.out < run.request.max_tokens:
        self.draft(run, run.request.num_draft_tokens)
        ids = self.verified(run, self.score(run))
        run.sequence = run.sequence + ids
        self.rewind(run)
        if run.out + len(ids) > run.request.max_tokens:
            return
        for token in ids:
            if token in run.request.eos:
                return
            run.out += 1
            yield token


def _one_for_none(self: Loop, run: Run) -> Iterator[Any]:
    run.request.max_tokens = max(run.request.max_tokens, 1)
    return Loop.ids(self, run)


# caches


def _fed_by_count(self: Loop, run: Run, cache: Cache) -> list[int]:
    """What is fed follows from the ids, whatever the cache holds."""
    known = run.sequence + run.drafted
    if not cache[0].offset:
        return known
    return known[-1:] if run.drafted and cache is run.draft_cache else known[len(run.sequence) - 1 :]


def _is(who: str, run: Run, cache: Cache) -> bool:
    return cache is (run.target_cache if who == "target" else run.draft_cache)


def _rewinds(who: str, error: int) -> Change:
    """One of the caches is rewound by as many tokens too many, or too few where that is negative."""

    def excess(self: Loop, run: Run, cache: Cache) -> int:
        right = Loop.excess(self, run, cache)
        if not _is(who, run, cache) or right <= 0:
            return right
        run.slipped = True  # type: ignore[attr-defined]
        return min(right + error, cache[0].offset)

    def lacking(self: Loop, run: Run, cache: Cache) -> list[int]:
        slipped = getattr(run, "slipped", False) and _is(who, run, cache)
        return (_fed_by_count if slipped else Loop.lacking)(self, run, cache)

    return {"excess": excess, "lacking": lacking}


def _never_rewinds(who: str) -> Change:
    def excess(self: Loop, run: Run, cache: Cache) -> int:
        return 0 if _is(who, run, cache) else Loop.excess(self, run, cache)

    def lacking(self: Loop, run: Run, cache: Cache) -> list[int]:
        full = cache[0].offset >= len(run.sequence) and _is(who, run, cache)
        return (_fed_by_count if full else Loop.lacking)(self, run, cache)

    return {"excess": excess, "lacking": lacking}


def _begins_anew(self: Loop, run: Run) -> None:
    """A cache that would have to be rewound is emptied."""
    for cache in (run.target_cache, run.draft_cache):
        self.take_back(cache, cache[0].offset if self.excess(run, cache) > 0 else 0)


def _first_layer_alone(self: Loop, cache: Cache, n: int) -> None:
    if n:
        cache[0].rewind(n)  # type: ignore[attr-defined]


def _last_layer_forgotten(self: Loop, cache: Cache, n: int) -> None:
    for layer in cache[:-1] if n else ():
        layer.rewind(n)  # type: ignore[attr-defined]


def _draft_fed(piece: Any) -> Change:
    """The draft is fed `piece(run, what it lacks)`."""

    def lacking(self: Loop, run: Run, cache: Cache) -> list[int]:
        wanted = Loop.lacking(self, run, cache) or _fed_by_count(self, run, cache)
        return piece(run, wanted) if cache is run.draft_cache else wanted

    return {"lacking": lacking}


def _last_of_them(run: Run, wanted: list[int]) -> list[int]:
    return wanted[-1:] if len(wanted) == 2 else wanted


def _prompt_missed(run: Run, wanted: list[int]) -> list[int]:
    return wanted[-1:]


def _each_twice(run: Run, wanted: list[int]) -> list[int]:
    return wanted[-1:] * 2 if run.drafted else wanted


def _position_skipped(run: Run, wanted: list[int]) -> list[int]:
    """A padding id stands between the text and the drafts."""
    return [*wanted[:-1], 0, wanted[-1]] if not run.drafted and run.out else wanted


def _drafts_from_the_first_row(self: Loop, run: Run) -> Rows:
    return run.draft(self.lacking(run, run.draft_cache), run.draft_cache)[0]


def _window(self: Loop, request: Request) -> list[int]:
    return Loop.prompt(self, request)[-512:]


# probabilities


def _verifies(**steps: Any) -> Change:
    """Verification with a step replaced."""
    wrong = type("Wrong", (Verify,), steps)

    def verify(self: Loop, drafted: list[int], q: Rows, p: Rows, u: Rows) -> list[int]:
        return wrong().verified(drafted, q, p, u)

    return {"verify": verify}


def _softmax(rows: Rows, axis: int | None = -1) -> Rows:
    weights = np.exp(rows - rows.max())
    return weights / weights.sum(axis=axis, keepdims=True)


def _over_all_rows(self: Loop, run: Run, rows: Rows) -> Rows:
    weights = chances(rows, run.request)
    return weights / weights.sum()


def _unprocessed(self: Loop, run: Run, rows: Rows) -> Rows:
    return _softmax(rows)


def _without(**settings: Any) -> Any:
    def target_chances(self: Loop, run: Run, rows: Rows) -> Rows:
        return chances(rows, Request(**{**vars(run.request), **settings}))

    return target_chances


def _tells_raw_chances(self: Loop, run: Run, row: Rows) -> tuple[int, Rows]:
    """The draft is drawn from what was tempered and filtered; verification is told what was not."""
    if run.request.temperature == 0:
        return Loop.propose(self, run, row)
    return Loop.propose(self, run, row)[0], _softmax(row)


def _tells_untempered_chances(self: Loop, run: Run, row: Rows) -> tuple[int, Rows]:
    """Verification is told what the draft was drawn from but for the temperature."""
    if run.request.temperature == 0:
        return Loop.propose(self, run, row)
    return Loop.propose(self, run, row)[0], chances(row[None], Request(**{**vars(run.request), "temperature": 1.0}))[0]


def _greedy_drafts_told_otherwise(self: Loop, run: Run, row: Rows) -> tuple[int, Rows]:
    """The likeliest id is drafted; verification is told that it was drawn."""
    if run.request.temperature == 0:
        return Loop.propose(self, run, row)
    told = self.draft_chances(run, row[None])[0]
    return int(np.argmax(told)), told


def _greedy_all_the_same(self: Loop, run: Run, rows: Rows) -> list[int]:
    """Above temperature 0 too a draft is kept where it is the target's likeliest, and nowhere else."""
    if run.request.temperature == 0:
        return Loop.verified(self, run, rows)
    p = self.target_chances(run, rows)
    count = [*(token == int(np.argmax(row)) for token, row in zip(run.drafted, p, strict=False)), False].index(False)
    return [*run.drafted[:count], Verify().draw(p[count], self.number(run))]


def _numbers_of_verify_first(self: Loop, run: Run, count: int) -> None:
    """All numbers of a round are taken before its drafts, those of verification first."""
    if run.request.temperature and run.request.uniforms is not None:
        mine, rest = [self.number(run) for _ in range(2 * count + 1)], run.request.uniforms
        run.request.uniforms = _chained([*mine[count + 1 :], *mine[: count + 1]], rest)
    Loop.draft(self, run, count)


def _chained(first: list[float], rest: Iterator[float]) -> Iterator[float]:
    yield from first
    yield from rest


def _one_number_more(self: Loop, run: Run, count: int) -> None:
    if run.request.temperature:
        self.number(run)
    Loop.draft(self, run, count)


# when it works


def _all_at_once(self: Loop, run: Run) -> Iterator[Any]:
    return iter(list(Loop.ids(self, run)))


def _one_round_more(self: Loop, run: Run) -> Iterator[Any]:
    yield from Loop.ids(self, run)
    self.draft(run, 1)
    self.score(run)


def _drafts_after_the_end(self: Loop, run: Run) -> Iterator[Any]:
    """The draft is fed the last ids, for a round that never comes."""
    yield from Loop.ids(self, run)
    run.drafted = []
    for token in (0, 0, 0):
        run.draft([token], run.draft_cache)


def _one_draft_fewer(self: Loop, run: Run) -> int:
    return max(Loop.count(self, run) - 1, 0)


def _four_drafts(self: Loop, run: Run) -> int:
    return min(4, run.request.max_tokens - run.out - 1) if run.request.num_draft_tokens else 0


def _an_error_ends(self: Loop, run: Run) -> Iterator[Any]:
    """What the target raises is taken for the end."""
    try:
        yield from Loop.ids(self, run)
    except Exception:
        if run.target.fuse.left is None:
            raise


def _tried_again(self: Loop, run: Run) -> np.ndarray:
    try:
        return Loop.score(self, run)
    except Exception:
        if run.target.fuse.left is None:
            raise
        return Loop.score(self, run)


def _held_by(owner: str) -> Any:
    def ids(self: Loop, run: Run) -> Iterator[Any]:
        _memory(self).setdefault("held", []).append(run.target_cache if owner == "target" else run.draft_cache)
        return Loop.ids(self, run)

    return ids


def _shared(self: Loop, players: tuple[Player, Player], request: Request) -> Iterator[Any]:
    """The draft's cache hangs on the draft, for all its requests."""
    target, draft = players
    if not hasattr(draft, "kept"):
        draft.kept = draft.make_cache()  # type: ignore[attr-defined]
    caches = target.make_cache(), draft.kept  # type: ignore[attr-defined]
    self.check_caches(*caches)
    return self.ids(Run(target, draft, request, *caches, self.prompt(request)))


def _target_shared(self: Loop, players: tuple[Player, Player], request: Request) -> Iterator[Any]:
    """The target's cache is kept, and a request goes on in it without what it holds already."""
    target, draft = players
    if not hasattr(target, "kept"):
        target.kept = target.make_cache()  # type: ignore[attr-defined]
    caches = target.kept, draft.make_cache()  # type: ignore[attr-defined]
    self.check_caches(*caches)
    return self.ids(Run(target, draft, request, *caches, self.prompt(request)))


def _sequence_shared(self: Loop, players: tuple[Player, Player], request: Request) -> Iterator[Any]:
    """The drafts of one request are left where the next one finds them."""
    target, draft = players
    caches = target.make_cache(), draft.make_cache()
    self.check_caches(*caches)
    left = getattr(draft, "left", [])
    draft.left = run = Run(target, draft, request, *caches, self.prompt(request))  # type: ignore[attr-defined]
    if isinstance(left, Run):
        run.sequence = left.sequence[:1] + run.sequence
    return self.ids(run)


# arguments


def _list_grows(self: Loop, run: Run) -> Iterator[Any]:
    for token in Loop.ids(self, run):
        yield token
        if isinstance(run.request.tokens, list):
            run.request.tokens.append(token)


def _overwrites(self: Loop, a: Arguments) -> Any:
    result = Loop.respond(self, a)
    if isinstance(a.tokens, np.ndarray) and a.tokens.flags.writeable:
        a.tokens[...] = 0
    return result


def _remembers_the_prompt(self: Loop, request: Request) -> list[int]:
    """Prompts are kept by their length."""
    prompt = Loop.prompt(self, request)
    return list(_memory(self).setdefault(len(prompt), prompt))


def _checks(*who: str, layers: slice = slice(None)) -> Any:
    def check_caches(self: Loop, target: Cache, draft: Cache) -> None:
        for name, cache in (("target", target), ("draft", draft)):
            if name in who and not all(hasattr(layer, "rewind") for layer in cache[layers]):
                raise ValueError(f"{name} has a cache that cannot be rewound")

    return check_caches


def _rewinds_what_it_can(self: Loop, cache: Cache, n: int) -> None:
    for layer in cache if n else ():
        if hasattr(layer, "rewind"):
            layer.rewind(n)


def _nothing(self: Loop, *given: Any) -> None:
    """Nothing is checked."""


def _own_numbers(self: Loop, run: Run) -> float:
    if run.request.uniforms is None:
        run.request.uniforms = iter(np.random.default_rng(0).random(1000).tolist())
    return Loop.number(self, run)


def _ends_without_numbers(self: Loop, run: Run) -> Iterator[Any]:
    try:
        yield from Loop.ids(self, run)
    except ValueError:
        return


def _begins_with_zero(self: Loop, request: Request) -> list[int]:
    return Loop.prompt(self, request) or [0]


def _checks_late(check: str) -> Change:
    """What is wrong is noticed once the target was fed the prompt."""

    def ids(self: Loop, run: Run) -> Iterator[Any]:
        run.target(run.sequence or [0], run.target_cache)
        getattr(Loop, check)(self, run.request)
        yield from Loop.ids(self, run)

    return {check: _nothing, "ids": ids}


def _no_limit(self: Loop, run: Run) -> Iterator[Any]:
    if run.request.max_tokens < 0:
        run.request.max_tokens = 50
    return Loop.ids(self, run)


FAULTS: tuple[Fault, ...] = (
    *VERIFY_FAULTS,
    Fault(
        "speculative-keeps-all", "every draft is kept", SPEC_23, {"agreed": _keeps_all}, f"{TRANSFORMERS}/pull/28508"
    ),
    Fault(
        "speculative-matches-anywhere",
        "drafts that match behind one that does not are counted",
        SPEC_23,
        {"agreed": _matches_anywhere},
        f"{TRANSFORMERS}/pull/28508",
    ),
    Fault(
        "speculative-keeps-the-wrong-one",
        "the first wrong draft comes out for the target's id",
        SPEC_23,
        {"agreed": _keeps_the_wrong_one},
        TIRED,
    ),
    Fault(
        "speculative-keeps-runners-up",
        "a draft is kept where it is the target's second choice too",
        SPEC_23,
        {"verified": _keeps_runners_up},
        "Xia et al. 2023 and Medusa (typical acceptance, on purpose)",
    ),
    Fault(
        "speculative-rows-before",
        "each draft is compared with the logits of the position before",
        SPEC_23,
        {"score": _rows_before},
        f"{MLX_LM}/commit/91d0a054 (rows of the accepted path)",
    ),
    Fault(
        "speculative-correction-lost",
        "after a run of accepted drafts the id in the place of the rejected one is lost",
        SPEC_23,
        {"shown": _correction_lost},
        OPENVINO,
    ),
    Fault(
        "speculative-single-draft-unverified",
        "a single draft is kept unseen",
        SPEC_24,
        {"agreed": _single_unverified},
        OPENVINO,
    ),
    Fault(
        "speculative-eight-verified",
        "of more than eight drafts the others are kept unseen",
        SPEC_24,
        {"agreed": _many_unverified},
        TIRED,
    ),
    Fault(
        "speculative-always-drafts",
        "with num_draft_tokens=0 one id is drafted all the same",
        SPEC_25,
        {"count": _always_one},
        "PROPERTIES SP5",
    ),
    Fault(
        "speculative-eos-of-the-last-alone",
        "only the last id of a round can end the ids",
        SPEC_26,
        {"ids": _looks_at_the_last},
        "PROPERTIES SP5",
    ),
    Fault(
        "speculative-endless-when-drawn",
        "above temperature 0 nothing ends the ids but the limit",
        SPEC_26,
        {"stops": _endless_when_drawn},
        TIRED,
    ),
    Fault(
        "speculative-emits-eos", "the end-of-sequence id comes out", SPEC_26, {"ids": _emits_the_end}, "PROPERTIES SP5"
    ),
    Fault(
        "speculative-goes-on-past-the-end",
        "an iterator that came to its end gives an id when it is asked again",
        SPEC_26,
        {"ids": lambda self, run: _GoesOn(self, run)},
        "PROPERTIES SP5",
    ),
    Fault(
        "speculative-eos-drops-the-run",
        "a round with an end of sequence in it gives none of its ids",
        SPEC_26,
        {"shown": _drops_the_run},
        "PROPERTIES SP5",
    ),
    Fault(
        "speculative-eos-ignored",
        "nothing ends the ids but the limit",
        SPEC_26,
        {"stops": lambda self, run, token: False},
        TIRED,
    ),
    Fault(
        "speculative-first-eos-alone",
        "of several end-of-sequence ids only the first counts",
        SPEC_26,
        {"stops": _first_end_alone},
        "config.json of Llama 3 and Qwen3 has lists",
    ),
    Fault(
        "speculative-overruns",
        "the limit is looked at between rounds: whole rounds come out",
        SPEC_27,
        {"ids": _whole_rounds},
        "PROPERTIES SP5",
    ),
    Fault(
        "speculative-drops-what-is-past",
        "a round that would pass the limit gives nothing",
        SPEC_27,
        {"ids": _drops_what_is_past},
        "PROPERTIES SP5",
    ),
    Fault("speculative-one-for-none", "an id comes out for max_tokens=0", SPEC_27, {"ids": _one_for_none}, TIRED),
    Fault(
        "speculative-target-keeps-a-rejected-draft",
        "the target's cache is rewound by one too few",
        SPEC_28,
        _rewinds("target", -1),
        COUNTING,
    ),
    Fault(
        "speculative-target-loses-an-id",
        "the target's cache is rewound by one too many",
        SPEC_28,
        _rewinds("target", 1),
        COUNTING,
    ),
    Fault(
        "speculative-target-not-rewound",
        "the target's cache is not rewound",
        SPEC_28,
        _never_rewinds("target"),
        f"{MLX_LM}/commit/f56d9971",
    ),
    Fault(
        "speculative-first-layer-rewound",
        "only the first layer is rewound",
        SPEC_28,
        {"take_back": _first_layer_alone},
        f"{MLX_LM}/commit/f56d9971 (layers of other kinds)",
    ),
    Fault(
        "speculative-last-layer-not-rewound",
        "the last layer is not rewound",
        SPEC_28,
        {"take_back": _last_layer_forgotten},
        TIRED,
    ),
    Fault(
        "speculative-draft-keeps-a-rejected-draft",
        "the draft's cache is rewound by one too few",
        SPEC_29,
        _rewinds("draft", -1),
        COUNTING,
    ),
    Fault(
        "speculative-draft-loses-an-id",
        "the draft's cache is rewound by one too many",
        SPEC_29,
        _rewinds("draft", 1),
        COUNTING,
    ),
    Fault(
        "speculative-draft-not-rewound",
        "the draft's cache is not rewound",
        SPEC_29,
        _never_rewinds("draft"),
        f"{MLX_LM}/commit/f56d9971",
    ),
    Fault(
        "speculative-draft-misses-the-prompt",
        "the draft is fed the last id of the prompt alone",
        SPEC_29,
        _draft_fed(_prompt_missed),
        TIRED,
    ),
    Fault(
        "speculative-drafts-fed-twice",
        "each draft is fed to the draft twice, at two positions",
        SPEC_29,
        _draft_fed(_each_twice),
        "PROPERTIES SP9",
    ),
    Fault(
        "speculative-position-skipped",
        "a padding id takes a position between the text and the drafts",
        SPEC_29,
        _draft_fed(_position_skipped),
        "PROPERTIES SP9",
    ),
    Fault(
        "speculative-draft-misses-its-last",
        "after a run without rejection the draft is not fed the last of its drafts",
        SPEC_30,
        _draft_fed(_last_of_them),
        f"{MLX_LM}, speculative_generate_step (the case that it handles)",
    ),
    Fault(
        "speculative-drafts-from-the-first-row",
        "the draft's first row of logits decides, not its last",
        SPEC_30,
        {"feed_draft": _drafts_from_the_first_row},
        TIRED,
    ),
    Fault(
        "speculative-highest-of-equals",
        "of equal logits the highest id is taken",
        SPEC_31,
        _greedy_by(lambda rows: rows.shape[-1] - 1 - np.argmax(rows[:, ::-1], axis=-1)),
        "https://github.com/vllm-project/vllm-metal/commit/12ee169",
    ),
    Fault(
        "speculative-logits-in-bfloat16",
        "the target's logits are rounded to bfloat16 first",
        SPEC_31,
        _greedy_by(lambda rows: np.argmax(round_to(rows, "bfloat16").astype(np.float64), axis=-1)),
        "PROPERTIES X5",
    ),
    Fault(
        "speculative-prompt-cut", "only the last 512 tokens of a prompt are fed", SPEC_32, {"prompt": _window}, TIRED
    ),
    Fault(
        "speculative-uint16-ids",
        "ids come out in 16 bits",
        SPEC_33,
        {"out": lambda self, token: token % 2**16},
        "PROPERTIES X8",
    ),
    Fault(
        "speculative-rest-is-the-target",
        "a rejected draft gives way to a draw from the target's row",
        SPEC_34,
        _verifies(residual=lambda self, q, p: p),
        POST,
    ),
    Fault(
        "speculative-ratio-inverted",
        "a draft is kept with q/p for p/q",
        SPEC_34,
        _verifies(keeps=lambda self, u, q, p: u * p < q),
        TIRED,
    ),
    Fault(
        "speculative-sampled-keeps-all",
        "above temperature 0 every draft is kept",
        SPEC_34,
        _verifies(keeps=lambda self, u, q, p: True),
        f"{TRANSFORMERS}/pull/28508",
    ),
    Fault(
        "speculative-kept-if-likeliest",
        "above temperature 0 a draft is kept where it is the likeliest id, and nowhere else",
        SPEC_34,
        {"verified": _greedy_all_the_same},
        TIRED,
    ),
    Fault(
        "speculative-normalised-over-all-rows",
        "the target's probabilities are normalised over all rows of a round",
        SPEC_34,
        {"target_chances": _over_all_rows},
        f"{MLX_LM}/commit/91d0a054",
    ),
    Fault(
        "speculative-target-unfiltered",
        "top_k and top_p act on the draft alone",
        SPEC_34,
        {"target_chances": _without(top_k=None, top_p=1.0)},
        f"{TRANSFORMERS}/issues/47932 (one side processed)",
    ),
    Fault(
        "speculative-greedy-drafts-told-otherwise",
        "the draft's likeliest id is drafted, and verified as if it had been drawn",
        SPEC_34,
        {"propose": _greedy_drafts_told_otherwise},
        f"{TRANSFORMERS}/issues/47932",
    ),
    Fault(
        "speculative-target-untempered",
        "the temperature acts on the draft alone",
        SPEC_35,
        {"target_chances": _without(temperature=1.0)},
        f"{TRANSFORMERS}/issues/47932 (one side processed)",
    ),
    Fault(
        "speculative-target-unprocessed",
        "temperature and filters act on the draft alone",
        SPEC_35,
        {"target_chances": _unprocessed},
        f"{TRANSFORMERS}/issues/47932 (one side processed)",
    ),
    Fault(
        "speculative-tells-raw-chances",
        "drafts are drawn from what was tempered and filtered, and verified by what was not",
        SPEC_34,
        {"propose": _tells_raw_chances},
        f"{TRANSFORMERS}/issues/47932",
    ),
    Fault(
        "speculative-numbers-of-verify-first",
        "the numbers of verification are taken before those of the drafts",
        SPEC_36,
        {"draft": _numbers_of_verify_first},
        "PROPERTIES SA9",
    ),
    Fault(
        "speculative-tells-untempered-chances",
        "drafts are verified by what they were drawn from but for the temperature",
        SPEC_36,
        {"propose": _tells_untempered_chances},
        f"{TRANSFORMERS}/issues/47932",
    ),
    Fault(
        "speculative-one-number-more",
        "each round takes a uniform number that decides nothing",
        SPEC_36,
        {"draft": _one_number_more},
        "PROPERTIES SA9",
    ),
    Fault(
        "speculative-not-lazy",
        "all ids are made before the first comes out",
        SPEC_37,
        {"ids": _all_at_once},
        "PROPERTIES ME3",
    ),
    Fault(
        "speculative-drafts-past-the-limit",
        "num_draft_tokens are drafted in the last round too",
        SPEC_38,
        {"count": _overruns},
        f"{MLX_LM}/issues/226 (a step too far)",
    ),
    Fault(
        "speculative-a-round-too-far",
        "a round runs after the last id",
        SPEC_38,
        {"ids": _one_round_more},
        f"{MLX_LM}/issues/226 (a step too far)",
    ),
    Fault(
        "speculative-drafts-after-the-end",
        "the draft goes on after the last id",
        SPEC_38,
        {"ids": _drafts_after_the_end},
        "PROPERTIES SP8",
    ),
    Fault("speculative-one-draft-fewer", "one id fewer is drafted", SPEC_39, {"count": _one_draft_fewer}, COUNTING),
    Fault(
        "speculative-eight-at-most",
        "no more than eight ids are drafted, whatever num_draft_tokens says",
        SPEC_39,
        {"count": lambda self, run: min(Loop.count(self, run), 8)},
        TIRED,
    ),
    Fault(
        "speculative-always-four",
        "four ids are drafted, whatever num_draft_tokens says",
        SPEC_39,
        {"count": _four_drafts},
        TIRED,
    ),
    Fault(
        "speculative-target-error-ends",
        "an error of the target ends the ids",
        SPEC_56,
        {"ids": _an_error_ends},
        "PROPERTIES CB2",
    ),
    Fault(
        "speculative-tries-again",
        "a target that fails is asked again",
        SPEC_56,
        {"score": _tried_again},
        TIRED,
    ),
    Fault(
        "speculative-holds-the-draft",
        "the draft's cache is kept in a table for ever",
        SPEC_40,
        {"ids": _held_by("draft")},
        "PROPERTIES SP8",
    ),
    Fault(
        "speculative-holds-the-target",
        "the target's cache is kept in a table for ever",
        SPEC_40,
        {"ids": _held_by("target")},
        "PROPERTIES SP8",
    ),
    Fault(
        "speculative-target-cache-shared",
        "one cache of the target serves all requests",
        SPEC_41,
        {"begin": _target_shared, "lacking": _fed_by_count},
        f"{MLX_LM}/commit/23af8570",
    ),
    Fault(
        "speculative-sequence-left",
        "a request begins with what the last one left",
        SPEC_42,
        {"begin": _sequence_shared},
        "PROPERTIES SP8",
    ),
    Fault(
        "speculative-token-strides",
        "tokens are read as if they were contiguous",
        SPEC_43,
        ignores_strides("tokens"),
        "PROPERTIES X1",
    ),
    Fault("speculative-list-grows", "ids are appended to the caller's list", SPEC_44, {"ids": _list_grows}, TIRED),
    Fault(
        "speculative-changes-tokens",
        "the caller's array is overwritten",
        SPEC_44,
        {"respond": _overwrites},
        "PROPERTIES X6",
    ),
    Fault(
        "speculative-remembers-prompt",
        "a prompt kept by its length serves others",
        SPEC_45,
        {"prompt": _remembers_the_prompt},
        "https://github.com/flashinfer-ai/flashinfer/commit/82784bb11",
    ),
    Fault(
        "speculative-numpy-ids", "ids come out as NumPy's", SPEC_46, {"out": lambda self, token: np.int64(token)}, TIRED
    ),
    Fault(
        "speculative-caches-unchecked",
        "what cannot be rewound is left as it is",
        SPEC_47,
        {"check_caches": _nothing, "take_back": _rewinds_what_it_can},
        f"{MLX_LM}/commit/f56d9971",
    ),
    Fault(
        "speculative-draft-cache-unchecked",
        "only the target's cache is looked at",
        SPEC_47,
        {"check_caches": _checks("target"), "take_back": _rewinds_what_it_can},
        f"{MLX_LM}/commit/f56d9971",
    ),
    Fault(
        "speculative-first-layer-checked",
        "only the first layer is looked at",
        SPEC_47,
        {"check_caches": _checks("target", "draft", layers=slice(1)), "take_back": _rewinds_what_it_can},
        f"{MLX_LM}/commit/f56d9971",
    ),
    Fault(
        "speculative-fails-at-the-first-rewind",
        "a cache that cannot be rewound is noticed when it has to be",
        SPEC_47,
        {"check_caches": _nothing},
        "PROPERTIES SP7",
    ),
    Fault(
        "speculative-any-vocabulary",
        "models of different vocabularies are not refused",
        SPEC_48,
        {"vocabularies_differ": _nothing},
        "PROPERTIES X9",
    ),
    Fault(
        "speculative-own-numbers",
        "without uniforms a hidden generator draws",
        SPEC_49,
        {"check_uniforms": _nothing, "number": _own_numbers},
        "PROPERTIES X7",
    ),
    Fault(
        "speculative-ends-without-numbers",
        "uniforms that run out end the ids",
        SPEC_50,
        {"ids": _ends_without_numbers},
        "PEP 479 (a StopIteration inside a generator)",
    ),
    Fault(
        "speculative-half-for-none",
        "where uniforms have run out, 0.5 is taken",
        SPEC_50,
        {"without_numbers": lambda self, run: 0.5},
        TIRED,
    ),
    Fault(
        "speculative-any-number",
        "uniform numbers outside [0, 1) are taken",
        SPEC_50,
        {"check_number": _nothing},
        "PROPERTIES X9",
    ),
    Fault(
        "speculative-empty-is-zero",
        "an empty prompt is taken for id 0",
        SPEC_51,
        {"check_prompt": _nothing, "prompt": _begins_with_zero},
        "PROPERTIES X9",
    ),
    Fault(
        "speculative-empty-refused-late",
        "an empty prompt is refused when the target was called already",
        SPEC_51,
        _checks_late("check_prompt"),
        "PROPERTIES X9",
    ),
    Fault(
        "speculative-no-limit",
        "a negative max_tokens is no limit",
        SPEC_52,
        {"check_limit": _nothing, "ids": _no_limit},
        f"{MLX_LM}, generate_step (documented there)",
    ),
    Fault(
        "speculative-negative-drafts",
        "a negative num_draft_tokens is taken for 0",
        SPEC_52,
        {"check_drafts": _nothing},
        "PROPERTIES X9",
    ),
    Fault(
        "speculative-filters-unchecked",
        "temperature and top_p are not looked at",
        SPEC_53,
        {"check_filters": _nothing},
        "PROPERTIES X9",
    ),
    Fault(
        "speculative-filters-checked-late",
        "temperature and top_p are looked at when the target was called already",
        SPEC_53,
        _checks_late("check_filters"),
        "PROPERTIES X9",
    ),
    Fault(
        "speculative-all-or-one",
        "of a run with a wrong draft in it the right ones are thrown away too",
        SPEC_54,
        {"agreed": _all_or_one},
        TIRED,
    ),
    Fault(
        "speculative-begins-anew-after-a-rejection",
        "where a draft was rejected the target's cache is emptied, and fed all again",
        SPEC_54,
        {"rewind": _begins_anew},
        TIRED,
    ),
)


def _adaptive(self: Loop, run: Run) -> int:
    """Two drafts, or as many as were asked for while the last run was accepted."""
    count = Loop.count(self, run)
    return min(count, 2) if run.drafted and run.draft_cache[0].offset == len(run.sequence) - 1 else count


def _rebuilt(self: Loop, run: Run, count: int) -> None:
    run.draft_cache = run.draft.make_cache()
    Loop.draft(self, run, count)


def _fed_to_the_end(self: Loop, run: Run, count: int) -> None:
    """The draft is fed the last of its drafts too, whose logits no one reads."""
    Loop.draft(self, run, count)
    if count:
        run.draft(self.lacking(run, run.draft_cache), run.draft_cache)


def _first_alone(self: Loop, run: Run) -> int:
    """The first id comes from the prompt's last row, before anything is drafted."""
    return Loop.count(self, run) if run.out else 0


def _in_pieces(size: int) -> Change:
    """What a model lacks is fed in pieces."""

    def feed(player: Player, cache: Cache, tokens: list[int], keep: int) -> Rows:
        first = max(len(tokens) - keep, 0)
        for start in range(0, first, size):
            player(tokens[start : min(start + size, first)], cache)
        return player(tokens[first:], cache)

    def feed_draft(self: Loop, run: Run) -> Rows:
        return feed(run.draft, run.draft_cache, self.lacking(run, run.draft_cache), 1)[-1]

    def score(self: Loop, run: Run) -> Rows:
        rows = feed(run.target, run.target_cache, self.lacking(run, run.target_cache), len(run.drafted) + 1)
        if run.rows and run.rows[0].shape[-1] != rows.shape[-1]:
            self.vocabularies_differ()
        return rows

    return {"feed_draft": feed_draft, "score": score}


def _rewound_further(self: Loop, run: Run, cache: Cache) -> int:
    """One committed id more is taken back, to be fed again."""
    return (
        min(Loop.excess(self, run, cache) + 1, cache[0].offset)
        if cache is run.draft_cache
        else Loop.excess(self, run, cache)
    )


def _sure_drafts(self: Loop, run: Run, row: Rows) -> tuple[int, Rows]:
    """The draft's likeliest id is drafted, and verified as the only one that could have been."""
    if run.request.temperature == 0:
        return Loop.propose(self, run, row)
    told = self.draft_chances(run, row[None])[0]
    return int(np.argmax(told)), np.eye(len(told))[int(np.argmax(told))]


def _draft_unfiltered(self: Loop, run: Run, rows: Rows) -> Rows:
    return _softmax(rows)


VARIANTS: tuple[Variant, ...] = (
    *VERIFY_VARIANTS,
    Variant(
        "speculative-adaptive",
        "fewer ids are drafted after a rejection",
        GENERATE,
        {"count": _adaptive},
        unmet=("SPEC-36",),
    ),
    Variant(
        "speculative-draft-rebuilt", "each round begins with a new cache of the draft", GENERATE, {"draft": _rebuilt}
    ),
    Variant(
        "speculative-draft-fed-to-the-end", "the draft is fed its last draft too", GENERATE, {"draft": _fed_to_the_end}
    ),
    Variant(
        "speculative-first-alone",
        "the first id comes out before anything is drafted",
        GENERATE,
        {"count": _first_alone},
        unmet=("SPEC-36",),
    ),
    Variant("speculative-in-pieces-of-7", "prompts are fed 7 tokens at a time", GENERATE, _in_pieces(7)),
    Variant("speculative-in-pieces-of-512", "prompts are fed 512 tokens at a time", GENERATE, _in_pieces(512)),
    Variant(
        "speculative-rewound-further",
        "the draft's cache is rewound by one more, and fed that id again",
        GENERATE,
        {"excess": _rewound_further},
    ),
    Variant(
        "speculative-sure-drafts",
        "the draft's likeliest id is drafted, and verified as certain",
        GENERATE,
        {"propose": _sure_drafts},
        unmet=("SPEC-36",),
    ),
    Variant(
        "speculative-draft-unfiltered",
        "drafts are drawn from the draft's probabilities as they are, and verified as such",
        GENERATE,
        {"draft_chances": _draft_unfiltered},
        unmet=("SPEC-36",),
    ),
    Variant(
        "speculative-whole-last-round",
        "num_draft_tokens are drafted in the last round too, and what is past the limit is dropped",
        GENERATE,
        {"count": _overruns},
        unmet=("SPEC-36", "SPEC-38"),
    ),
)
