"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/speculative.py`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from inferspec.spec.changes.iterators import Holding
from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.duet import Player, Request
from inferspec.spec.numerics import f64, round_to
from inferspec.spec.speculative import Run, SpeculativeGenerate
from inferspec.spec.toy import FixedCache

Loop = SpeculativeGenerate
Rows = np.ndarray
Cache = list[FixedCache]


def _memory(operation: Operation) -> dict[Any, Any]:
    """A store that outlives calls, as a module's or a default argument does."""
    if "store" not in vars(type(operation)):
        type(operation).store = {"fresh": True}  # type: ignore[attr-defined]
    return type(operation).store  # type: ignore[attr-defined]


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


def keeps_equals(self: Loop, run: Run, rows: Rows) -> list[int]:
    """A draft is right where no logit of the target is larger than its own."""
    ids = [int(token) for token in np.argmax(rows, axis=-1)]
    for index, (token, row) in enumerate(zip(run.drafted, rows, strict=False)):
        ids[index] = token if row[token] == row.max() else ids[index]
    return Loop.verified(self, run, rows) if run.request.temperature else self.agreed(run.drafted, ids)


def drafted_by(pick: Any) -> Change:
    """The draft's ids are picked another way. pick: rows of logits to ids."""

    def propose(self: Loop, run: Run, row: np.ndarray) -> tuple[int, np.ndarray]:
        token, chances = Loop.propose(self, run, row)
        return (token if run.request.temperature else int(pick(row[None])[0])), chances

    return {"propose": propose}


def always_one(self: Loop, run: Run) -> int:
    return max(Loop.count(self, run), 1)


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


def no_drafts_past(size: int) -> Any:
    """Nothing is drafted once the text has so many tokens."""

    def count(self: Loop, run: Run) -> int:
        return Loop.count(self, run) if len(run.sequence) < size else 0

    return count


def an_error_ends(self: Loop, run: Run) -> Iterator[Any]:
    """What the target raises is taken for the end."""
    try:
        yield from Loop.ids(self, run)
    except Exception:
        if run.target.fuse.left is None:
            raise


def its_end_ends(self: Loop, run: Run) -> Iterator[Any]:
    """The ids are those of an object with a `__next__`: a StopIteration that comes out of it is the end."""
    try:
        yield from Loop.ids(self, run)
    except RuntimeError as error:
        # A generator makes this of it.
        if not isinstance(error.__cause__, StopIteration):
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


def held_by_the_iterator(self: Loop, run: Run) -> Iterator[Any]:
    """An object gives the ids, and has the caches for as long as anyone has it."""
    return Holding(Loop.ids(self, run), run)


def given_up_once_failed(self: Loop, run: Run) -> Iterator[Any]:
    """A target that failed is taken for one that is lost."""
    if vars(run.target).get("lost"):
        raise RuntimeError("the target has failed")
    try:
        yield from Loop.ids(self, run)
    except Exception:
        vars(run.target)["lost"] = True
        raise


def held_when_it_fails(self: Loop, run: Run) -> Iterator[Any]:
    """What came to its end, or was closed, lets its caches go."""
    try:
        yield from Loop.ids(self, run)
    except Exception:
        _memory(self).setdefault("failed", []).append((run.target_cache, run.draft_cache))
        raise


def target_shared(self: Loop, players: tuple[Player, Player], request: Request) -> Iterator[Any]:
    """The target's cache is kept, and a request goes on in it without what it holds already."""
    target, draft = players
    if not hasattr(target, "kept"):
        target.kept = target.make_cache()  # type: ignore[attr-defined]
    caches = target.kept, draft.make_cache()  # type: ignore[attr-defined]
    self.check_caches(*caches)
    return self.ids(Run(target, draft, request, *caches, self.prompt(request)))


def target_of_alike(length: int, kept: bool) -> Any:
    """The target's cache serves prompts that begin with so many tokens alike, while it is in use, or kept for later."""

    def begin(self: Loop, players: tuple[Player, Player], request: Request) -> Iterator[Any]:
        target, draft = players
        prompt = self.prompt(request)
        start = tuple(prompt[:length])
        if len(prompt) < length:
            return Loop.begin(self, players, request)
        known: dict[tuple[int, ...], Cache] = target.__dict__.setdefault("known", {})
        caches = known.setdefault(start, target.make_cache()), draft.make_cache()
        ids = self.ids(Run(target, draft, self.taken(request), *caches, prompt))
        return ids if kept else _forgotten_at_the_end(ids, known, start)

    return begin


def fed_however_full(self: Loop, run: Run, cache: Cache) -> list[int]:
    """A cache that holds as much as the sequence has is fed by the count of ids."""
    known = run.sequence + run.drafted
    return known[cache[0].offset :] or known[len(run.sequence) - 1 :]


def _forgotten_at_the_end(ids: Iterator[Any], known: dict[Any, Any], start: Any) -> Iterator[Any]:
    try:
        yield from ids
    finally:
        known.pop(start, None)


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


def drafting_less(step: int) -> Change:
    """A round with a wrong draft leaves so many fewer to those behind it, and one at least."""

    def verified(self: Loop, run: Run, rows: Rows) -> list[int]:
        ids, request = Loop.verified(self, run, rows), run.request
        if len(ids) <= len(run.drafted):
            request.num_draft_tokens = max(request.num_draft_tokens - step, 1)
        return ids

    return {"verified": verified}


def first_alone(self: Loop, run: Run) -> int:
    """The first id comes from the prompt's last row, before anything is drafted."""
    return Loop.count(self, run) if run.out else 0
