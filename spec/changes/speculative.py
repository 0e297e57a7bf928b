"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/speculative.py`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from inferspec.spec.changes.sampling import shares_in
from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.duet import Player, Request
from inferspec.spec.ends import DROPPED, KEPT
from inferspec.spec.numerics import f64, round_to
from inferspec.spec.sampling import Sampler
from inferspec.spec.speculative import Run, SpeculativeGenerate, Verify, chances, sampler_arguments
from inferspec.spec.toy import FixedCache

Loop = SpeculativeGenerate
Rows = np.ndarray
Cache = list[FixedCache]


def _memory(operation: Operation) -> dict[Any, Any]:
    """A store that outlives calls, as a module's or a default argument does."""
    if "store" not in vars(type(operation)):
        type(operation).store = {"fresh": True}  # type: ignore[attr-defined]
    return type(operation).store  # type: ignore[attr-defined]


# what is left of a row


def _or_all(rest: Rows, p: Rows) -> Rows:
    rest = f64(np.nan_to_num(rest))
    return rest if rest.any() else p


def rest_by_ratio(self: Verify, q: Rows, p: Rows) -> Rows:
    """p · (1 - q/p) in float32: of nearly equal ones the ratio keeps a digit or two."""
    one, two = q.astype(np.float32), p.astype(np.float32)
    with np.errstate(divide="ignore", invalid="ignore"):
        return _or_all(two * np.maximum(1 - one / two, 0), p)


def rest_in_logarithms(self: Verify, q: Rows, p: Rows) -> Rows:
    """exp(log p + log(1 - exp(log q - log p))) in float32."""
    with np.errstate(divide="ignore", invalid="ignore"):
        one, two = np.log(q.astype(np.float32)), np.log(p.astype(np.float32))
        return _or_all(np.exp(two + np.log(np.maximum(1 - np.exp(one - two), 0))), p)


# which ids


def rows_before(self: Loop, run: Run) -> Rows:
    """The rows of the positions before those that decide, where there are any."""
    fed = self.lacking(run, run.target_cache)
    rows = run.target(fed, run.target_cache)
    wanted = len(run.drafted) + 1
    return rows[-wanted - 1 : -1] if len(rows) > wanted else rows[-wanted:]


def keeps_all(self: Loop, drafted: list[int], right: list[int]) -> list[int]:
    return [*drafted, right[-1]]


def keeps_the_wrong_one(self: Loop, drafted: list[int], right: list[int]) -> list[int]:
    ids = Loop.agreed(self, drafted, right)
    return ids if len(ids) > len(drafted) else drafted[: len(ids)]


def matches_anywhere(self: Loop, drafted: list[int], right: list[int]) -> list[int]:
    count = sum(one == two for one, two in zip(drafted, right, strict=False))
    return [*drafted[:count], right[count]]


def keeps_runners_up(self: Loop, run: Run, rows: Rows) -> list[int]:
    """A draft is kept where it is among the two likeliest ids of the target."""
    if run.request.temperature:
        return Loop.verified(self, run, rows)
    for place, token in enumerate(run.drafted):
        if token not in np.argsort(-rows[place], kind="stable")[:2]:
            return [*run.drafted[:place], int(np.argmax(rows[place]))]
    return [*run.drafted, int(np.argmax(rows[-1]))]


def correction_lost(self: Loop, run: Run, ids: list[int]) -> list[int]:
    """The id in the place of a rejected draft is fed, but does not come out."""
    whole = len(ids) == 1 or len(ids) > len(run.drafted)
    return Loop.shown(self, run, ids if whole else ids[:-1])


def all_or_one(self: Loop, drafted: list[int], right: list[int]) -> list[int]:
    """Where any draft is wrong, only the target's first id comes out."""
    return right if drafted == right[:-1] else right[:1]


def single_unverified(self: Loop, drafted: list[int], right: list[int]) -> list[int]:
    return [*drafted, right[-1]] if len(drafted) == 1 else Loop.agreed(self, drafted, right)


def many_unverified(self: Loop, drafted: list[int], right: list[int]) -> list[int]:
    """A buffer of eight holds what is compared."""
    return (
        [*Loop.agreed(self, drafted[:8], right)[:8], *drafted[8:], right[-1]]
        if len(drafted) > 8
        else Loop.agreed(self, drafted, right)
    )


def highest_of_large(rows: Rows) -> Rows:
    """A path for large vocabularies alone takes the highest of equals."""
    large = rows.shape[-1] > 8192
    return rows.shape[-1] - 1 - np.argmax(rows[:, ::-1], axis=-1) if large else np.argmax(rows, axis=-1)


def large_in_bfloat16(rows: Rows) -> Rows:
    return np.argmax(f64(round_to(rows, "bfloat16")) if rows.shape[-1] > 8192 else rows, axis=-1)


def greedy_by(pick: Any) -> Change:
    """The target's ids are picked another way. pick: rows of logits to ids."""

    def verified(self: Loop, run: Run, rows: Rows) -> list[int]:
        if run.request.temperature:
            return Loop.verified(self, run, rows)
        return self.agreed(run.drafted, [int(token) for token in pick(rows)])

    return {"verified": verified}


def drafted_by(pick: Any) -> Change:
    """The draft's ids are picked another way. pick: rows of logits to ids."""

    def propose(self: Loop, run: Run, row: np.ndarray) -> tuple[int, np.ndarray]:
        token, chances = Loop.propose(self, run, row)
        return (token if run.request.temperature else int(pick(row[None])[0])), chances

    return {"propose": propose}


def always_one(self: Loop, run: Run) -> int:
    return max(Loop.count(self, run), 1)


# where it ends


def looks_at_the_last(self: Loop, run: Run) -> Iterator[Any]:
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


def endless_when_drawn(self: SpeculativeGenerate, run: Run, token: int) -> bool:
    """The path for temperatures above 0 has no look at eos."""
    return run.request.temperature == 0 and SpeculativeGenerate.stops(self, run, token)


def greedy_when_cold(self: Loop, run: Run) -> Iterator[Any]:
    if run.request.temperature < 1e-5:
        run.request.temperature = 0.0
    return Loop.ids(self, run)


def emits_the_end(self: Loop, run: Run) -> Iterator[Any]:
    eos, run.request.eos = run.request.eos, ()
    for token in Loop.ids(self, run):
        yield token
        if token in eos:
            return


def drops_the_end(self: Loop, run: Run) -> Iterator[Any]:
    run.request.ends = DROPPED
    return Loop.ids(self, run)


def keeps_the_end_without_drafts(self: Loop, run: Run) -> Iterator[Any]:
    """Where nothing is to be drafted it is another loop, which looks at an id once it came out."""
    if not run.request.num_draft_tokens:
        run.request.ends = KEPT
    return Loop.ids(self, run)


def keeps_a_late_end(self: Loop, run: Run, token: int) -> bool:
    """The first dozen ids are looked at before they come out, and others after that."""
    stops = Loop.stops(self, run, token)
    if run.out >= 12:
        run.request.ends = KEPT
    return stops


def begins_to_count(self: Loop, run: Run, ids: list[int]) -> list[int]:
    vars(run)["looked_at"] = 0
    return Loop.shown(self, run, ids)


def six_looked_at(self: Loop, run: Run, token: int) -> bool:
    """Of the ids of a round only the first six can end the ids."""
    vars(run)["looked_at"] += 1
    return bool(vars(run)["looked_at"] <= 6) and Loop.stops(self, run, token)


def keeps_the_end_of_the_second(self: Loop, players: tuple[Player, Player], request: Request) -> Iterator[Any]:
    """What is known of a request is the target's, and the second comes upon it."""
    target, _ = players
    known = getattr(target, "known", 0)
    target.known = known + 1  # type: ignore[attr-defined]
    return Loop.begin(self, players, replace(request, ends=KEPT if known else request.ends))


def drops_an_end_that_was_drafted(self: Loop, run: Run) -> Iterator[Any]:
    """Of a round's ids the last one comes out, whatever it is; the others are looked at first."""
    while run.out < run.request.max_tokens:
        self.draft(run, self.count(run))
        ids = self.verified(run, self.score(run))
        run.sequence = run.sequence + ids
        self.rewind(run)
        for number, token in enumerate(self.shown(run, ids), 1):
            if self.stops(run, token) and number < len(ids):
                return
            run.out += 1
            yield token
            if self.stops(run, token):
                return


def keeps_the_end_twice(self: Loop, run: Run) -> Iterator[Any]:
    """The loop gives the end, and what comes after the loop gives it again."""
    token = None
    for token in Loop.ids(self, run):
        yield token
    if token in run.request.eos:
        yield token


def keeps_what_was_drafted(self: Loop, run: Run) -> Iterator[Any]:
    """The ids of a round come out together, and then the end is looked for."""
    while run.out < run.request.max_tokens:
        self.draft(run, self.count(run))
        ids = self.shown(run, self.verified(run, self.score(run)))
        run.sequence = run.sequence + ids
        self.rewind(run)
        run.out += len(ids)
        yield from ids
        if any(self.stops(run, token) for token in ids):
            return


def keeps_the_end_past_the_limit(self: Loop, run: Run, ids: list[int]) -> list[int]:
    """The limit is not for the end: where a round has it just past that, it comes out."""
    shown = Loop.shown(self, run, ids)
    return [*shown, *(token for token in ids[len(shown) :][:1] if token in run.request.eos)]


class GoesOn:
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


def drops_the_run(self: Loop, run: Run, ids: list[int]) -> list[int]:
    """A round with an end of sequence in it gives nothing."""
    ends = [token for token in ids if token in run.request.eos]
    return ends[:1] or Loop.shown(self, run, ids)


def first_end_alone(self: Loop, run: Run, token: int) -> bool:
    return token in run.request.eos[:1]


def overruns(self: Loop, run: Run) -> int:
    return run.request.num_draft_tokens


def whole_rounds(self: Loop, run: Run) -> Iterator[Any]:
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


def stops_repeating(self: SpeculativeGenerate, run: Run) -> Iterator[Any]:
    came: list[Any] = []
    for token in SpeculativeGenerate.ids(self, run):
        came = [*came, token] if token in came else [token]
        if len(came) > 30:
            return
        yield token


def above_zero(self: SpeculativeGenerate, number: float) -> None:
    if not 0 < number < 1:
        raise ValueError(f"uniforms hold {number}; they take numbers in (0, 1)")


def drops_what_is_past(self: Loop, run: Run) -> Iterator[Any]:
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


def one_for_none(self: Loop, run: Run) -> Iterator[Any]:
    run.request.max_tokens = max(run.request.max_tokens, 1)
    return Loop.ids(self, run)


# caches


def fed_by_count(self: Loop, run: Run, cache: Cache) -> list[int]:
    """What is fed follows from the ids, whatever the cache holds."""
    known = run.sequence + run.drafted
    if not cache[0].offset:
        return known
    return known[-1:] if run.drafted and cache is run.draft_cache else known[len(run.sequence) - 1 :]


def _is(who: str, run: Run, cache: Cache) -> bool:
    return cache is (run.target_cache if who == "target" else run.draft_cache)


def rewinds(who: str, error: int) -> Change:
    """One of the caches is rewound by as many tokens too many, or too few where that is negative."""

    def excess(self: Loop, run: Run, cache: Cache) -> int:
        right = Loop.excess(self, run, cache)
        if not _is(who, run, cache) or right <= 0:
            return right
        run.slipped = True  # type: ignore[attr-defined]
        return min(right + error, cache[0].offset)

    def lacking(self: Loop, run: Run, cache: Cache) -> list[int]:
        slipped = getattr(run, "slipped", False) and _is(who, run, cache)
        return (fed_by_count if slipped else Loop.lacking)(self, run, cache)

    return {"excess": excess, "lacking": lacking}


def never_rewinds(who: str) -> Change:
    def excess(self: Loop, run: Run, cache: Cache) -> int:
        return 0 if _is(who, run, cache) else Loop.excess(self, run, cache)

    def lacking(self: Loop, run: Run, cache: Cache) -> list[int]:
        full = cache[0].offset >= len(run.sequence) and _is(who, run, cache)
        return (fed_by_count if full else Loop.lacking)(self, run, cache)

    return {"excess": excess, "lacking": lacking}


def begins_anew(self: Loop, run: Run) -> None:
    """A cache that would have to be rewound is emptied."""
    for cache in (run.target_cache, run.draft_cache):
        self.take_back(cache, cache[0].offset if self.excess(run, cache) > 0 else 0)


def begins_anew_when_drawn(self: Loop, run: Run) -> None:
    """Above temperature 0 a cache that would have to be rewound is emptied."""
    (begins_anew if run.request.temperature > 0 else Loop.rewind)(self, run)


def first_layer_alone(self: Loop, cache: Cache, n: int) -> None:
    if n:
        cache[0].rewind(n)  # type: ignore[attr-defined]


def last_layer_forgotten(self: Loop, cache: Cache, n: int) -> None:
    for layer in cache[:-1] if n else ():
        layer.rewind(n)  # type: ignore[attr-defined]


def draft_fed(piece: Any) -> Change:
    """The draft is fed `piece(run, what it lacks)`."""

    def lacking(self: Loop, run: Run, cache: Cache) -> list[int]:
        wanted = Loop.lacking(self, run, cache) or fed_by_count(self, run, cache)
        return piece(run, wanted) if cache is run.draft_cache else wanted

    return {"lacking": lacking}


def last_of_them(run: Run, wanted: list[int]) -> list[int]:
    return wanted[-1:] if len(wanted) == 2 else wanted


def prompt_missed(run: Run, wanted: list[int]) -> list[int]:
    return wanted[-1:]


def the_last_256(run: Run, wanted: list[int]) -> list[int]:
    return wanted[-256:]


def each_twice(run: Run, wanted: list[int]) -> list[int]:
    return wanted[-1:] * 2 if run.drafted else wanted


def position_skipped(run: Run, wanted: list[int]) -> list[int]:
    """A padding id stands between the text and the drafts."""
    return [*wanted[:-1], 0, wanted[-1]] if not run.drafted and run.out else wanted


def drafts_from_the_first_row(self: Loop, run: Run) -> Rows:
    return run.draft(self.lacking(run, run.draft_cache), run.draft_cache)[0]


def window(self: Loop, request: Request) -> list[int]:
    return Loop.prompt(self, request)[-512:]


def without_lone_token(tokens: list[int], size: int, last: int = 0) -> list[int]:
    """Tokens but for the last ones are fed in pieces; a last piece of a single token is never fed."""
    end = len(tokens) - last
    return tokens[: end - 1] + tokens[end:] if end > size and end % size == 1 else tokens


def lone_token_lost(size: int, last: int = 0) -> Change:
    return {"prompt": lambda self, request: without_lone_token(Loop.prompt(self, request), size, last)}


def draft_loses_lone_token(size: int) -> Change:
    return draft_fed(lambda run, wanted: without_lone_token(wanted, size, last=1))


def window_where_sampled(self: Loop, request: Request) -> list[int]:
    return Loop.prompt(self, request)[-256 if request.temperature else 0 :]


# probabilities


def verifies(**steps: Any) -> Change:
    """Verification with a step replaced."""
    wrong = type("Wrong", (Verify,), steps)

    def verify(self: Loop, drafted: list[int], q: Rows, p: Rows, u: Rows) -> list[int]:
        return wrong().verified(drafted, q, p, u)

    return {"verify": verify}


def _softmax(rows: Rows, axis: int | None = -1) -> Rows:
    weights = np.exp(rows - rows.max())
    return weights / weights.sum(axis=axis, keepdims=True)


def over_all_rows(self: Loop, run: Run, rows: Rows) -> Rows:
    weights = chances(rows, run.request)
    return weights / weights.sum()


def unprocessed(self: Loop, run: Run, rows: Rows) -> Rows:
    return _softmax(rows)


def without(**settings: Any) -> Any:
    def target_chances(self: Loop, run: Run, rows: Rows) -> Rows:
        return chances(rows, Request(**{**vars(run.request), **settings}))

    return target_chances


def tempered_in(dtype: str) -> Any:
    """Logits are divided by the temperature in that dtype."""

    def target_chances(self: Loop, run: Run, rows: Rows) -> Rows:
        tempered = f64(round_to(rows / run.request.temperature, dtype))
        return chances(tempered, Request(**{**vars(run.request), "temperature": 1.0}))

    return target_chances


def chances_in(dtype: str) -> Change:
    """Probabilities of both models are kept in that dtype; their sums are exact."""

    def rounded(self: Loop, run: Run, rows: Rows) -> Rows:
        p = f64(round_to(chances(rows, run.request), dtype))
        return p / p.sum(axis=-1, keepdims=True)

    return {"target_chances": rounded, "draft_chances": rounded}


def top_p_in(dtype: str) -> Change:
    """Top-p sums probabilities in that dtype; ids are drawn from those in float32."""
    sampler = type("TopP", (Sampler,), dict(shares_in(dtype)))

    def target_chances(self: Loop, run: Run, rows: Rows) -> Rows:
        return sampler().probabilities(sampler_arguments(run.request, rows))

    return {"target_chances": target_chances, "draft_chances": target_chances}


class _FiltersFirst(Sampler):
    """Top-p sees the probabilities before the temperature."""

    def survivors(self, z: Rows, x: Rows, a: Arguments) -> Rows:
        return super().survivors(z, z, a)


def filtered_first(self: Loop, run: Run, rows: Rows) -> Rows:
    return _FiltersFirst().probabilities(sampler_arguments(run.request, rows))


def last_row(**settings: Any) -> Any:
    """What is drawn when all drafts are kept comes of other settings than what drafts are compared with."""

    def target_chances(self: Loop, run: Run, rows: Rows) -> Rows:
        p = chances(rows, run.request)
        p[-1:] = without(**settings)(self, run, rows[-1:])
        return p

    return target_chances


def rest(**settings: Any) -> Any:
    """What comes in the place of a rejected draft is drawn by other settings than those by which it was rejected."""

    def verified(self: Loop, run: Run, rows: Rows) -> list[int]:
        if run.request.temperature == 0:
            return Loop.verified(self, run, rows)
        p = self.target_chances(run, rows)
        q, u = np.array(run.rows).reshape(-1, p.shape[-1]), np.array([self.number(run) for _ in range(len(p))])
        count = Verify().kept(run.drafted, q, p, u)
        if count < len(run.drafted):
            p = without(**settings)(self, run, rows)
        weights = Verify().weights(run.drafted, q, p, count)
        return [*run.drafted[:count], Verify().draw(weights, float(u[-1]))]

    return verified


def first_round(**settings: Any) -> Change:
    """The first id is drawn from the prompt's logits by another way, and alone; drafts come after it."""

    def target_chances(self: Loop, run: Run, rows: Rows) -> Rows:
        return chances(rows, run.request) if run.out else without(**settings)(self, run, rows)

    return {"target_chances": target_chances, "count": first_alone}


def no_filter_of_one(self: Loop, run: Run, rows: Rows) -> Rows:
    """A top_k of 1 is taken for none."""
    top_k = None if run.request.top_k == 1 else run.request.top_k
    return chances(rows, Request(**{**vars(run.request), "top_k": top_k}))


def tells_raw_chances(self: Loop, run: Run, row: Rows) -> tuple[int, Rows]:
    """The draft is drawn from what was tempered and filtered; verification is told what was not."""
    if run.request.temperature == 0:
        return Loop.propose(self, run, row)
    return Loop.propose(self, run, row)[0], _softmax(row)


def tells_untempered_chances(self: Loop, run: Run, row: Rows) -> tuple[int, Rows]:
    """Verification is told what the draft was drawn from but for the temperature."""
    if run.request.temperature == 0:
        return Loop.propose(self, run, row)
    return Loop.propose(self, run, row)[0], chances(row[None], Request(**{**vars(run.request), "temperature": 1.0}))[0]


def greedy_drafts_told_otherwise(self: Loop, run: Run, row: Rows) -> tuple[int, Rows]:
    """The likeliest id is drafted; verification is told that it was drawn."""
    if run.request.temperature == 0:
        return Loop.propose(self, run, row)
    told = self.draft_chances(run, row[None])[0]
    return int(np.argmax(told)), told


def greedy_all_the_same(self: Loop, run: Run, rows: Rows) -> list[int]:
    """Above temperature 0 too a draft is kept where it is the target's likeliest, and nowhere else."""
    if run.request.temperature == 0:
        return Loop.verified(self, run, rows)
    p = self.target_chances(run, rows)
    count = [*(token == int(np.argmax(row)) for token, row in zip(run.drafted, p, strict=False)), False].index(False)
    return [*run.drafted[:count], Verify().draw(p[count], self.number(run))]


def numbers_of_verify_first(self: Loop, run: Run, count: int) -> None:
    """All numbers of a round are taken before its drafts, those of verification first."""
    if run.request.temperature and run.request.uniforms is not None:
        mine, rest = [self.number(run) for _ in range(2 * count + 1)], run.request.uniforms
        run.request.uniforms = _chained([*mine[count + 1 :], *mine[: count + 1]], rest)
    Loop.draft(self, run, count)


def _chained(first: list[float], rest: Iterator[float]) -> Iterator[float]:
    yield from first
    yield from rest


def number_in_bfloat16(self: Loop, run: Run) -> float:
    return float(round_to(np.array(Loop.number(self, run)), "bfloat16"))


def numbers_of_eight(self: Loop, run: Run, row: Rows) -> tuple[int, Rows]:
    """There is room for the numbers of eight drafts: those past them are drawn by the first of these again."""
    if run.request.temperature == 0:
        return Loop.propose(self, run, row)
    told, place = self.draft_chances(run, row[None])[0], len(run.drafted)
    numbers = [*run.__dict__.get("numbers", [])[:place], self.number(run)]
    run.numbers = numbers  # type: ignore[attr-defined]
    return Verify().draw(told, numbers[place % 8]), told


def chances_of_256(self: Loop, run: Run, rows: Rows) -> Rows:
    """A block has room for the probabilities of 256 ids; the others have none."""
    told = chances(rows, run.request)
    kept = np.where(np.arange(told.shape[-1]) < 256, told, 0)
    total = kept.sum(axis=-1, keepdims=True)
    return np.where(total > 0, kept / np.where(total > 0, total, 1), told)


def one_number_more(self: Loop, run: Run, count: int) -> None:
    if run.request.temperature:
        self.number(run)
    Loop.draft(self, run, count)


# when it works


def all_at_once(self: Loop, run: Run) -> Iterator[Any]:
    return iter(list(Loop.ids(self, run)))


def one_round_more(self: Loop, run: Run) -> Iterator[Any]:
    yield from Loop.ids(self, run)
    self.draft(run, 1)
    self.score(run)


def drafts_after_the_end(self: Loop, run: Run) -> Iterator[Any]:
    """The draft is fed the last ids, for a round that never comes."""
    yield from Loop.ids(self, run)
    run.drafted = []
    for token in (0, 0, 0):
        run.draft([token], run.draft_cache)


def one_draft_fewer(self: Loop, run: Run) -> int:
    return max(Loop.count(self, run) - 1, 0)


def four_drafts(self: Loop, run: Run) -> int:
    return min(4, run.request.max_tokens - run.out - 1) if run.request.num_draft_tokens else 0


def an_error_ends(self: Loop, run: Run) -> Iterator[Any]:
    """What the target raises is taken for the end."""
    try:
        yield from Loop.ids(self, run)
    except Exception:
        if run.target.fuse.left is None:
            raise


def tried_again(self: Loop, run: Run) -> np.ndarray:
    try:
        return Loop.score(self, run)
    except Exception:
        if run.target.fuse.left is None:
            raise
        return Loop.score(self, run)


def held_by(owner: str) -> Any:
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


def target_shared(self: Loop, players: tuple[Player, Player], request: Request) -> Iterator[Any]:
    """The target's cache is kept, and a request goes on in it without what it holds already."""
    target, draft = players
    if not hasattr(target, "kept"):
        target.kept = target.make_cache()  # type: ignore[attr-defined]
    caches = target.kept, draft.make_cache()  # type: ignore[attr-defined]
    self.check_caches(*caches)
    return self.ids(Run(target, draft, request, *caches, self.prompt(request)))


def sequence_shared(self: Loop, players: tuple[Player, Player], request: Request) -> Iterator[Any]:
    """The drafts of one request are left where the next one finds them."""
    target, draft = players
    caches = target.make_cache(), draft.make_cache()
    self.check_caches(*caches)
    left = getattr(draft, "left", [])
    draft.left = run = Run(target, draft, request, *caches, self.prompt(request))  # type: ignore[attr-defined]
    if isinstance(left, Run):
        run.sequence = left.sequence[:1] + run.sequence
    return self.ids(run)


def ends_of_the_target(self: Loop, players: tuple[Player, Player], request: Request) -> Iterator[Any]:
    """What ends a request is added to what the target is known to end with."""
    target = players[0]
    target.ends = ends = (*getattr(target, "ends", ()), *request.eos)  # type: ignore[attr-defined]
    return Loop.begin(self, players, replace(request, eos=ends))


def ends_of_the_last(self: Loop, players: tuple[Player, Player], request: Request) -> Iterator[Any]:
    """The target has room for one list of ends: that of whoever came last."""
    target = players[0]
    ends: Any = getattr(target, "ends", [])
    target.ends = ends  # type: ignore[attr-defined]
    ends[:] = request.eos
    return Loop.begin(self, players, replace(request, eos=ends))


# arguments


def list_grows(self: Loop, run: Run) -> Iterator[Any]:
    for token in Loop.ids(self, run):
        yield token
        if isinstance(run.request.tokens, list):
            run.request.tokens.append(token)


def reads_the_callers(self: Loop, run: Run, cache: list[FixedCache]) -> list[int]:
    """What came out is kept, and the prompt before it is read where the caller has it."""
    size = run.__dict__.setdefault("size", len(run.sequence))
    sequence = [int(token) for token in run.request.tokens] + run.sequence[size:]
    return (sequence + run.drafted)[cache[0].offset :]


def callers_ends(self: Loop, request: Request) -> Request:
    """Each id is looked for in the caller's own list."""
    return request


def overwrites(self: Loop, a: Arguments) -> Any:
    result = Loop.respond(self, a)
    if isinstance(a.tokens, np.ndarray) and a.tokens.flags.writeable:
        a.tokens[...] = 0
    return result


def remembers_the_prompt(self: Loop, request: Request) -> list[int]:
    """Prompts are kept by their length."""
    prompt = Loop.prompt(self, request)
    return list(_memory(self).setdefault(len(prompt), prompt))


def checks(*who: str, layers: slice = slice(None)) -> Any:
    def check_caches(self: Loop, target: Cache, draft: Cache) -> None:
        for name, cache in (("target", target), ("draft", draft)):
            if name in who and not all(hasattr(layer, "rewind") for layer in cache[layers]):
                raise ValueError(f"{name} has a cache that cannot be rewound")

    return check_caches


def rewinds_what_it_can(self: Loop, cache: Cache, n: int) -> None:
    for layer in cache if n else ():
        if hasattr(layer, "rewind"):
            layer.rewind(n)


def nothing(self: Loop, *given: Any) -> None:
    """Nothing is checked."""


def nan_unchecked(self: Loop, request: Request) -> None:
    if request.temperature == request.temperature:
        Loop.check_filters(self, request)


def own_numbers(self: Loop, run: Run) -> float:
    if run.request.uniforms is None:
        run.request.uniforms = iter(np.random.default_rng(0).random(1000).tolist())
    return Loop.number(self, run)


def ends_without_numbers(self: Loop, run: Run) -> Iterator[Any]:
    try:
        yield from Loop.ids(self, run)
    except ValueError:
        return


def begins_with_zero(self: Loop, request: Request) -> list[int]:
    return Loop.prompt(self, request) or [0]


def checks_late(check: str) -> Change:
    """What is wrong is noticed once the target was fed the prompt."""

    def ids(self: Loop, run: Run) -> Iterator[Any]:
        run.target(run.sequence or [0], run.target_cache)
        getattr(Loop, check)(self, run.request)
        yield from Loop.ids(self, run)

    return {check: nothing, "ids": ids}


def no_limit(self: Loop, run: Run) -> Iterator[Any]:
    if run.request.max_tokens < 0:
        run.request.max_tokens = 50
    return Loop.ids(self, run)


def adaptive(self: Loop, run: Run) -> int:
    """Two drafts, or as many as were asked for while the last run was accepted."""
    count = Loop.count(self, run)
    return min(count, 2) if run.drafted and run.draft_cache[0].offset == len(run.sequence) - 1 else count


def rebuilt(self: Loop, run: Run, count: int) -> None:
    run.draft_cache = run.draft.make_cache()
    Loop.draft(self, run, count)


def fed_to_the_end(self: Loop, run: Run, count: int) -> None:
    """The draft is fed the last of its drafts too, whose logits no one reads."""
    Loop.draft(self, run, count)
    if count:
        run.draft(self.lacking(run, run.draft_cache), run.draft_cache)


def first_alone(self: Loop, run: Run) -> int:
    """The first id comes from the prompt's last row, before anything is drafted."""
    return Loop.count(self, run) if run.out else 0


def in_pieces(size: int) -> Change:
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


def rewound_further(self: Loop, run: Run, cache: Cache) -> int:
    """One committed id more is taken back, to be fed again."""
    return (
        min(Loop.excess(self, run, cache) + 1, cache[0].offset)
        if cache is run.draft_cache
        else Loop.excess(self, run, cache)
    )


def sure_drafts(self: Loop, run: Run, row: Rows) -> tuple[int, Rows]:
    """The draft's likeliest id is drafted, and verified as the only one that could have been."""
    if run.request.temperature == 0:
        return Loop.propose(self, run, row)
    told = self.draft_chances(run, row[None])[0]
    return int(np.argmax(told)), np.eye(len(told))[int(np.argmax(told))]


def draft_unfiltered(self: Loop, run: Run, rows: Rows) -> Rows:
    return _softmax(rows)
