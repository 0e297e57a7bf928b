"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/engine_guesses.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Change
from inferspec.spec.engine import Engine
from inferspec.spec.engine_decoder import FAMILIES
from inferspec.spec.engine_model import Request, State
from inferspec.spec.transformer import Memory

# guesses


def all_right(self: Engine, chosen: list[int], guesses: list[int]) -> int:
    return len(guesses)


def twice_as_many(self: Engine, m: State, r: Request, n: int) -> int:
    """Twice as many ids are guessed as are asked for."""
    asked = Engine.most_guesses(self, m, r, n)
    return min(2 * m.a.num_draft_tokens, r.limit - len(r.out) - 1) if asked > 0 else asked


def eight_looked_at(self: Engine, chosen: list[int], guesses: list[int]) -> int:
    """Guesses behind the eighth are taken for right where those before are."""
    right = Engine.agreeing(self, chosen, guesses[:8])
    return len(guesses) if right == 8 else right


def less_by_guesses() -> Change:
    """Pages are cached as far as they were computed, less as many tokens as the last step guessed."""

    def guesses(self: Engine, m: State, r: Request, count: int) -> list[int]:
        found = Engine.guesses(self, m, r, count)
        r.guessed = len(found)
        return found

    def written(self: Engine, m: State, r: Request) -> int:
        return max(r.computed - getattr(r, "guessed", 0), 0) // int(m.a.page_size)

    return {"guesses": guesses, "written": written}


def right_in_any_place(self: Engine, chosen: list[int], guesses: list[int]) -> int:
    """All guesses that agree count, those behind a wrong one too."""
    return sum(guess == own for guess, own in zip(guesses, chosen, strict=False))


def all_or_none(self: Engine, chosen: list[int], guesses: list[int]) -> int:
    """Where any guess is wrong, none counts."""
    right = Engine.agreeing(self, chosen, guesses)
    return right if right == len(guesses) else 0


def draft_not_rewound(self: Engine, m: State, r: Request) -> tuple[Memory, list[int]]:
    """What the draft was fed stays in its memory, wrong guesses too; what follows is fed behind them."""
    memory, known = r.draft
    if not known:
        return Engine.rewound(self, m, r)
    return {**memory, "offset": memory[0][0].shape[3]}, list(r.tokens[: min(len(known), len(r.tokens) - 1)])


def lone_guess_not_rewound(self: Engine, m: State, r: Request) -> tuple[Memory, list[int]]:
    """A wrong guess stays in the draft's memory where it is the only one that the draft was fed."""
    known = r.draft[1]
    same = [one == two for one, two in zip(known, r.tokens, strict=False)]
    alone = len(same) == len(known) and same.count(False) == 1 and not same[-1]
    return draft_not_rewound(self, m, r) if alone else Engine.rewound(self, m, r)


def prompt_unfed_beside(self: Engine, m: State, r: Request) -> tuple[Memory, list[int]]:
    """In a step in which others guess, the draft is not fed the prompts that the model is."""
    if not r.draft[1] and any(other.out for other in m.running if other is not r):
        return {"offset": len(r.tokens) - 1}, list(r.tokens[:-1])
    return Engine.rewound(self, m, r)


def hits_unfed(self: Engine, m: State, r: Request) -> tuple[Memory, list[int]]:
    """The draft is fed what the model computes, and not what was hit."""
    if not r.draft[1] and r.hit:
        return {"offset": r.hit}, list(r.tokens[: r.hit])
    return Engine.rewound(self, m, r)


def hits_of_one_id_unfed(self: Engine, m: State, r: Request) -> tuple[Memory, list[int]]:
    """The draft is not fed the prompts of requests that ask for one id, for which nothing is guessed."""
    start = list(r.tokens[: r.__dict__.get("hit", 0)])
    asked = [one.limit for one in m.requests.values() if one.id < r.id and list(one.prompt[: len(start)]) == start]
    if not r.draft[1] and start and max(asked, default=0) == 1:
        return {"offset": len(start)}, start
    return Engine.rewound(self, m, r)


def not_rewound(self: Engine, r: Request, right: int) -> int:
    return len(r.tokens) + int(r.__dict__.get("guessed", right))


def notes_its_guesses(self: Engine, m: State, r: Request, count: int) -> list[int]:
    found = Engine.guesses(self, m, r, count)
    r.guessed = len(found)
    return found


def burst(drop: Any) -> Change:
    """A settle whose ids of one step are what `drop` makes of them."""

    def settle(self: Engine, m: State, r: Request, n: int, logits: np.ndarray, guesses: list[int]) -> None:
        if r.computed + n < len(r.tokens):
            Engine.settle(self, m, r, n, logits, guesses)
            return
        rows = logits[self.sampled_from(n) :]
        chosen = [self.choose(row) for row in rows]
        right = self.agreeing(chosen, guesses)
        r.computed = self.committed(r, right)
        drop(self, m, r, chosen, right, rows)
        if not r.finished:
            r.computed = min(r.computed, len(r.tokens) - 1)
            self.publish(m, r)
            self.trim(m, r)

    return {"settle": settle}


def own_id_lost(self: Engine, m: State, r: Request, chosen: list[int], right: int, rows: np.ndarray) -> None:
    """Where a guess is wrong after right ones, the model's own id there is skipped and the next row's is taken."""
    ids = chosen[:right] + chosen[right + 1 : right + 2] if 0 < right < len(chosen) - 1 else chosen[: right + 1]
    for token in ids:
        if not r.finished:
            self.emit(m, r, token, rows[0])


def row_before(self: Engine, m: State, r: Request, chosen: list[int], right: int, rows: np.ndarray) -> None:
    """After guesses that are all right the id is that of the row before."""
    ids = [*chosen[:right], chosen[right - 1] if right and right == len(chosen) - 1 else chosen[right]]
    for token in ids:
        if not r.finished:
            self.emit(m, r, token, rows[0])


def limit_at_the_end(self: Engine, m: State, r: Request, chosen: list[int], right: int, rows: np.ndarray) -> None:
    """max_tokens is looked at after all ids of a step."""
    limit, r.limit = r.limit, 10**6
    for token in chosen[: right + 1]:
        if not r.finished:
            self.emit(m, r, token, rows[0])
    r.limit = limit
    if not r.finished and len(r.out) >= limit:
        self.end(m, r)


def as_many_as_ever(self: Engine, m: State, r: Request, n: int) -> int:
    if m.a.draft is None or not n or r.computed + n < len(r.tokens):
        return 0
    return int(min(m.a.num_draft_tokens, m.a.num_pages * m.a.page_size - len(r.tokens)))


def end_at_the_end(self: Engine, m: State, r: Request, chosen: list[int], right: int, rows: np.ndarray) -> None:
    """Only the last id of a step is looked at for an end."""
    eos, r.eos = r.eos, ()
    for token in chosen[:right]:
        if not r.finished:
            self.emit(m, r, token, rows[0])
    r.eos = eos
    if not r.finished:
        self.emit(m, r, chosen[right], rows[0])


def one_guess_unfed(self: Engine, m: State, r: Request) -> tuple[Memory, list[int]]:
    """The last guess is never fed to the draft: where all were right, it goes on without."""
    memory, known = Engine.rewound(self, m, r)
    if r.__dict__.get("whole") and len(known) < len(r.tokens) - 1:
        known = list(r.tokens[: len(known) + 1])
        memory["offset"] = len(known)
    return memory, known


def notes_whole(self: Engine, m: State, r: Request, count: int) -> list[int]:
    found = Engine.guesses(self, m, r, count)
    r.whole = bool(found)
    return found


def heads_of_the_model(self: Engine, m: State, r: Request, count: int) -> list[int]:
    """The draft's keys and values lie in pages as wide as the model's."""
    if not count:
        return []
    widths = [FAMILIES[x["family"]]().heads(x["config"])[1] * x["config"]["head_dim"] for x in (m.a.model, m.a.draft)]
    if len(set(widths)) > 1:
        raise ValueError(f"{widths[1]} numbers do not go into {widths[0]}")
    return Engine.guesses(self, m, r, count)


def guesses_among_the_tokens(self: Engine, m: State, r: Request, count: int) -> list[int]:
    """Guesses are put behind the request's tokens, and taken off when all are made."""
    length = len(r.tokens)
    for _ in range(count):
        row = self.called(m, m.a.draft, r.tokens, {}, guessing=True)[-1]
        r.tokens.append(self.choose(row))
    found = list(r.tokens[length:])
    del r.tokens[length:]
    return found


def draft_out_of_positions(self: Engine, m: State, r: Request, count: int) -> list[int]:
    """The draft is asked for more than it has positions for."""
    if count and len(r.tokens) + count - 1 > m.a.draft["config"]["max_position_embeddings"]:
        raise ValueError("the draft has no such position")
    return Engine.guesses(self, m, r, count)


def guesses_past_the_end(self: Engine, m: State, r: Request, count: int) -> list[int]:
    """As many ids are guessed as ever, and those that cannot come out are left out then."""
    if count and len(r.tokens) + m.a.num_draft_tokens - 1 > m.a.model["config"]["max_position_embeddings"]:
        raise ValueError("there is no such position")
    return Engine.guesses(self, m, r, count)


def positions_kept_for_guesses(self: Engine, a: Arguments, tokens: Sequence[int], max_tokens: int) -> None:
    """All guesses of a step are to have positions, those of the last one too."""
    Engine.check(self, a, tokens, max_tokens)
    guesses = a.num_draft_tokens if a.draft else 0
    if len(tokens) + max_tokens + guesses - 1 > a.model["config"]["max_position_embeddings"]:
        raise ValueError("the model has no such positions")


def draft_of_64(self: Engine, m: State, r: Request, count: int) -> list[int]:
    """The draft is fed the last 64 tokens alone."""
    found: list[int] = []
    for _ in range(count):
        row = self.called(m, m.a.draft, [*r.tokens, *found][-64:], {}, guessing=True)[-1]
        found.append(self.choose(row))
    return found


def never_guesses(self: Engine, m: State, r: Request, n: int) -> int:
    return 0


def notes_that_the_draft_failed(self: Engine, m: State, r: Request, count: int) -> list[int]:
    try:
        return Engine.guesses(self, m, r, count)
    except Exception:
        m.without_draft = True
        raise


def none_once_failed(self: Engine, m: State, r: Request, n: int) -> int:
    return 0 if vars(m).get("without_draft") else Engine.most_guesses(self, m, r, n)


def noted_before_it_is_read(self: Engine, m: State, r: Request, count: int) -> list[int]:
    """What the draft is to read counts as read before it is."""
    found: list[int] = []
    if not count:
        return found
    memory, known = self.rewound(m, r)
    for _ in range(count):
        new = [*r.tokens, *found][len(known) :]
        known += new
        r.draft = memory, known
        found.append(self.choose(self.called(m, m.a.draft, new, memory, guessing=True)[-1]))
    return found


def notes_who_is_preempted(self: Engine, m: State, r: Request) -> None:
    r.preempted = True
    Engine.preempt(self, m, r)


def none_once_preempted(self: Engine, m: State, r: Request, n: int) -> int:
    """Who runs again is new to the batch, where guesses are those of requests that were there."""
    return 0 if vars(r).get("preempted") else Engine.most_guesses(self, m, r, n)


def looked_through(ends: Callable[[Engine, Request, list[int]], list[int]]) -> Change:
    """The first of `ends`, which are found in all ids of a step together, ends a request."""

    def settle(self: Engine, m: State, r: Request, n: int, logits: np.ndarray, guesses: list[int]) -> None:
        chosen = [self.choose(row) for row in logits[self.sampled_from(n) :]]
        r.burst = chosen[: self.agreeing(chosen, guesses) + 1]
        Engine.settle(self, m, r, n, logits, guesses)

    def stops(self: Engine, r: Request, token: int) -> bool:
        return token in ends(self, r, r.burst)[:1]

    return {"settle": settle, "stops": stops}


def as_listed(self: Engine, r: Request, burst: list[int]) -> list[int]:
    return [end for end in r.eos if end in burst]


def last_first(self: Engine, r: Request, burst: list[int]) -> list[int]:
    return [token for token in burst[::-1] if token in r.eos]
