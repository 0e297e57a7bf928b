"""What target and draft are fed, and what is rewound in their caches: see `spec/faults/speculative_caches.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from inferspec.spec.contract import Change
from inferspec.spec.duet import Player, Request
from inferspec.spec.speculative import Run, SpeculativeGenerate
from inferspec.spec.toy import FixedCache

Loop = SpeculativeGenerate
Rows = np.ndarray
Cache = list[FixedCache]


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


def never_rewinds_past(who: str, size: int) -> Change:
    """One of the caches is not rewound once it holds so many tokens."""
    never = never_rewinds(who)

    def excess(self: Loop, run: Run, cache: Cache) -> int:
        return (Loop.excess if cache[0].offset < size else never["excess"])(self, run, cache)

    return {**never, "excess": excess}


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


def layers_forgotten(rewound: slice) -> Change:
    """Only these layers are rewound, by what the last one holds; of a cache of one layer that one."""

    def take_back(self: Loop, cache: Cache, n: int) -> None:
        Loop.take_back(self, cache[rewound] or cache, n)

    def excess(self: Loop, run: Run, cache: Cache) -> int:
        return Loop.excess(self, run, cache[-1:])

    def lacking(self: Loop, run: Run, cache: Cache) -> list[int]:
        return Loop.lacking(self, run, cache[-1:])

    return {"take_back": take_back, "excess": excess, "lacking": lacking}


def as_deep_as(other: Callable[[Run], Cache]) -> Change:
    """Of both caches so many layers are rewound as that one has."""

    def rewind(self: Loop, run: Run) -> None:
        for cache in (run.target_cache, run.draft_cache):
            self.take_back(cache[: len(other(run))], max(self.excess(run, cache), 0))

    return {"rewind": rewind}


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


def rebuilt(self: Loop, run: Run, count: int) -> None:
    run.draft_cache = run.draft.make_cache()
    Loop.draft(self, run, count)


def fed_to_the_end(self: Loop, run: Run, count: int) -> None:
    """The draft is fed the last of its drafts too, whose logits no one reads."""
    Loop.draft(self, run, count)
    if count:
        run.draft(self.lacking(run, run.draft_cache), run.draft_cache)


def cut_before_verified(self: Loop, run: Run, count: int) -> None:
    """num_draft_tokens are drafted; the target is fed none that cannot come out."""
    Loop.draft(self, run, run.request.num_draft_tokens)
    run.drafted, run.rows = run.drafted[:count], run.rows[:count]


def one_at_a_time(self: Loop, run: Run) -> Rows:
    """The target is fed a draft once it has agreed with those before it; drawn ones all together."""
    if run.request.temperature > 0:
        return Loop.score(self, run)
    drafted, run.drafted = run.drafted, []
    rows = [Loop.score(self, run)[-1]]
    for token in drafted:
        if token != np.argmax(rows[-1]):
            break
        run.drafted.append(token)
        rows.append(Loop.score(self, run)[-1])
    return np.array(rows)


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


def uncached(target_too: bool) -> Change:
    """The draft is fed all of the text in every call, without a cache, and the target too where that is said."""

    def begin(self: Loop, players: tuple[Player, Player], request: Request) -> Iterator[Any]:
        cache = [] if target_too else players[0].make_cache()
        self.check_caches(cache, [])
        return self.ids(Run(*players, self.taken(request), cache, [], self.prompt(request)))

    def lacking(self: Loop, run: Run, cache: Cache) -> list[int]:
        return Loop.lacking(self, run, cache) if cache else run.sequence + run.drafted

    def rewind(self: Loop, run: Run) -> None:
        if run.target_cache:
            self.take_back(run.target_cache, max(self.excess(run, run.target_cache), 0))

    return {"begin": begin, "lacking": lacking, "rewind": rewind}
