"""Are the stories of engines what they must be? Clear ways, models that depend on every token, and all that can happen to a request."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from inferspec.conformance.inputs.engine_models import SIZES, is_clear, is_close, model, paired
from inferspec.conformance.inputs.engine_script import Script
from inferspec.conformance.strategies import CHOICES, Pick
from inferspec.spec import contract
from inferspec.spec.engine import Engine, alone, last_logits
from inferspec.spec.engine_model import Request, State
from inferspec.tools.drawn_inputs import calls_of

FAMILIES = ("qwen3", "llama")
EVERY = 2
"""One of so many stories is looked at."""

LENGTH = 6
"""Ids of a way on which a changed prompt has to show."""


@functools.cache
def stories() -> tuple[Any, ...]:
    of = calls_of("engine", "Engine")
    return tuple(call for call in of[::EVERY] if _same_vocabulary(call) and not _of_pairs(call))


@functools.cache
def stories_of_pairs() -> tuple[Any, ...]:
    """Those whose ids are told from others by little."""
    return tuple(call for call in calls_of("engine", "Engine") if _of_pairs(call))


def _of_pairs(call: Any) -> bool:
    models = [paired(family, which) for family in FAMILIES for which in range(len(SIZES))]
    return any(call.arguments["model"] is of for of in models)


def _same_vocabulary(call: Any) -> bool:
    model, draft = call.arguments["model"], call.arguments["draft"]
    return draft is None or draft["config"]["vocab_size"] == model["config"]["vocab_size"]


def requests(call: Any) -> list[tuple[tuple[int, ...], int]]:
    """Prompts and limits of a story's requests, without those that are to be refused."""
    a, found = Engine().bind(call.arguments), []
    for step, given in call.arguments["steps"]:
        if step == "add":
            try:
                Engine().check(a, given["tokens"], given["max_tokens"])
            except ValueError:
                continue
            found.append((given["tokens"], given["max_tokens"]))
    return found


def test_no_id_on_a_way_is_nearly_another():
    for call in stories():
        for prompt, limit in requests(call):
            assert is_clear(call.arguments["model"], prompt, limit), call


def test_ids_of_pairs_are_close_in_16_bits_and_in_no_other_way():
    asked = [(call, *request) for call in stories_of_pairs() for request in requests(call)]
    assert len(asked) > 5
    for call, prompt, limit in asked:
        of = call.arguments["model"]
        assert is_close(of, prompt, limit), call
        # As in matrix products of TF32: every weight has 11 digits.
        assert alone(_in_digits(of, 11), prompt, limit)[0] == alone(of, prompt, limit)[0]


@functools.cache
def _rounded(family: str, which: int, digits: int) -> dict[str, np.ndarray]:
    def rounded(x: np.ndarray) -> np.ndarray:
        part, exponent = np.frexp(x.astype(np.float64))
        return np.ldexp(np.round(part * 2**digits) / 2**digits, exponent).astype(np.float32)

    return {name: rounded(x) for name, x in paired(family, which)["weights"].items()}


def _in_digits(of: Any, digits: int) -> dict[str, Any]:
    which = next(which for which in range(len(SIZES)) if paired(of["family"], which) is of)
    return {**of, "weights": _rounded(of["family"], which, digits)}


def test_ways_are_clear_by_far_more_than_rounding():
    margins = []
    for call in stories()[::5]:
        for prompt, limit in requests(call):
            if limit:
                answer = last_logits(call.arguments["model"], prompt, limit)
                second, first = np.sort(answer.value)[-2:]
                margins.append((first - second) / (2 * answer.budget.max()))
    assert len(margins) > 30
    # Twice the budget bounds what rounding can do to the distance of two logits: no id is near that, and few are near ten times it.
    assert min(margins) > 4
    assert np.quantile(margins, 0.01) > 10
    assert np.median(margins) > 1000


CHANGES: dict[str, Callable[[list[int], int], list[int]]] = {
    "lost": lambda tokens, i: tokens[:i] + tokens[i + 1 :],
    "doubled": lambda tokens, i: tokens[: i + 1] + tokens[i:],
    "foreign": lambda tokens, i: [*tokens[:i], (tokens[i] + 7) % 43, *tokens[i + 1 :]],
    "misplaced": lambda tokens, i: [*tokens[:i], tokens[i + 1], tokens[i], *tokens[i + 2 :]],
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("change", CHANGES)
def test_models_depend_on_every_token(family, change):
    shown = []
    for which in range(len(SIZES)):
        random = np.random.default_rng(which)
        for length in (4, 9, 17, 26) * 3:
            tokens = [int(x) for x in random.integers(0, 43, length)]
            other = CHANGES[change](tokens, int(random.integers(length - 1)))
            it = model(family, which)
            shown.append(other == tokens or alone(it, tokens, LENGTH)[0] != alone(it, other, LENGTH)[0])
    assert np.mean(shown) > 0.75, f"{change} tokens show in {np.mean(shown):.0%} of the ways"


class Watched(Engine):
    """The plain engine, with a count of what happens."""

    seen: Counter[str]

    def start(self, m: State, r: Request, hits: list[int]) -> None:
        again = "again " if r.out else ""
        self.seen[f"{again}hit" if hits else f"{again}miss"] += 1
        whole = len(hits) == (len(r.tokens) - 1) // m.a.page_size and hits and not len(r.tokens) % m.a.page_size
        self.seen["whole hit"] += bool(whole)
        self.seen["hit of free pages"] += any(not m.owners[page] for page in hits)
        self.seen["hit of shared pages"] += any(m.owners[page] for page in hits)
        super().start(m, r, hits)

    def preempt(self, m: State, r: Request) -> None:
        self.seen["preempted generating" if r.out else "preempted in its prompt"] += 1
        super().preempt(m, r)

    def forget(self, m: State, page: int) -> None:
        self.seen["evicted"] += page in m.content
        super().forget(m, page)

    def cancel(self, m: State, name: int) -> None:
        r = self.known(m, name)
        where = "waiting" if r in m.waiting else "generating" if r.out else "begun"
        self.seen["cancelled finished" if r.finished else f"cancelled {where}"] += 1
        self.seen["cancelled with shared pages"] += any(m.owners[page] > 1 for page in r.table)
        super().cancel(m, name)

    def agreeing(self, chosen: list[int], guesses: list[int]) -> int:
        right = super().agreeing(chosen, guesses)
        if guesses:
            self.seen[
                "all guesses right" if right == len(guesses) else "no guess right" if not right else "some right"
            ] += 1
        return right

    def emit(self, m: State, r: Request, token: int, row: np.ndarray) -> None:
        if self.stops(r, token):
            self.seen["ended at once" if not r.out else "ended later"] += 1
        super().emit(m, r, token, row)

    def plan(self, m: State) -> list[tuple[Request, int, list[int]]]:
        rows = super().plan(m)
        kinds = {self.decodes(r) for r, *_ in rows}
        self.seen["prompts beside ids"] += len(kinds) == 2
        self.seen["several rows"] += len(rows) > 2
        self.seen["later chunk"] += any(r.computed and not r.out for r, *_ in rows)
        return rows

    def step(self, m: State) -> list[tuple[int, int]]:
        try:
            return super().step(m)
        except RuntimeError:
            self.seen["failed with several rows" if len(m.running) > 1 else "failed alone"] += 1
            raise


def test_stories_meet_all_that_can_happen_to_a_request():
    seen: Counter[str] = Counter()
    for call in stories():
        watched = Watched()
        watched.seen = seen
        watched(**call.arguments)
    often = {
        "miss", "hit", "again miss", "again hit", "whole hit", "hit of free pages", "hit of shared pages",
        "preempted generating", "preempted in its prompt", "evicted", "cancelled waiting", "cancelled begun",
        "cancelled generating", "cancelled with shared pages", "all guesses right", "some right", "no guess right",
        "ended at once", "ended later", "prompts beside ids", "several rows", "later chunk", "failed with several rows", "failed alone",
    }  # fmt: skip
    assert {what for what in often if seen[what] < 3} == set(), seen


def test_a_prompt_is_found_where_no_short_one_is_clear():
    long = 80
    family = next(kind for kind in FAMILIES if not any(is_clear(model(kind, 0), (one,), long) for one in range(61)))
    script = Script(Pick(bytes(2 * CHOICES), contract("engine").envelope))
    script.model = model(family, 0)
    found = script.prompt(1, long)
    assert len(found) > 1
    assert is_clear(script.model, found, long)
