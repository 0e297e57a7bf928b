"""Calls of speculative generators on a pair of toys."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.generation import (
    ENOUGH,
    alike_in_16_bits,
    continuation,
    ended_apart,
    ends_declared,
    given_as,
    nearest,
    prompt_like,
)
from inferspec.conformance.strategies import Pick, calls
from inferspec.spec.duet import Player
from inferspec.spec.numerics import DECISIVE
from inferspec.spec.speculative import Run, SpeculativeGenerate, Verify
from inferspec.spec.speculative_sentences import GENERATE

SLIPS = {"wrong": 1, "far": 2, "near": 4}
"""Of how many drafts one is wrong, on average."""

TEMPERATURES = {"one": (1.0,), "other": (0.7, 1.5, 0.5, 2.0)}

NEAR = 2.0**-14
"""How near to what it is compared with a uniform number may lie: float32 tells it from that, and half precision does not."""

BESIDE = 2.0**-16
"""How near to a sum of probabilities a top_p may lie, likewise."""

LIKELY = 2.0**-5
"""How likely an id is that comes often enough for its absence to show."""

COLD = 2.0**-20
"""A temperature that some take for 0, though ids may be equally likely at any."""

ENDINGS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 11)
"""Where an id that ends a request comes: at every place of a round of drafts, and in the next."""

SPARE = 4
"""Uniform numbers that are left when a request ends."""

DRAFTS = (4, 1, 2, 3, 5, 7)
"""How many tokens are drafted at a time."""

LIMITS = (6, 1, 2, 3, 4, 5, 9, 13, 20)


def _models(
    pick: Pick, vocabularies: tuple[int, ...], rival: float | str | None, barred: bool = False
) -> dict[str, Any]:
    """Descriptions of target and draft. rival, barred: see `generate_calls`."""
    dtype, size = pick("dtypes"), min(pick.one_of(*vocabularies), pick.envelope["vocabulary"])
    target = {
        "vocab_size": size,
        "salt": int(pick.random.integers(2**31)),
        "rival": nearest(dtype, size) if rival == "near" else rival,
        "dtype": dtype,
        **({"barred": True} if barred else {}),
    }
    drafter = pick("drafters")
    if drafter == "itself":
        return {"target": target, "draft": None}
    if drafter == "other":
        return {"target": target, "draft": {**target, "salt": target["salt"] + 1, "dtype": "float32"}}
    return {"target": target, "draft": {**target, "slips": SLIPS.get(drafter)}}


def _prompt(pick: Pick, size: int, lengths: tuple[int, ...]) -> Any:
    tokens = pick.random.integers(0, size, pick.upto("prompt", *lengths))
    if pick("prompts") == "list":
        return tuple(tokens.tolist())
    return tokens.astype(pick("token_dtypes"))


def _drafts(pick: Pick, counts: tuple[int, ...]) -> int:
    most = pick.envelope["num_draft_tokens"]
    return pick.count("zero_num_draft_tokens", *(count for count in counts if count <= most))


@calls
def generate_calls(
    pick: Pick,
    lengths: tuple[int, ...] = (3, 1, 2, 4, 5, 7, 9),
    limits: tuple[int, ...] = LIMITS,
    drafts: tuple[int, ...] = DRAFTS,
    vocabularies: tuple[int, ...] = (40, 5, 11, 97, 300),
    rival: float | str | None = None,
    stop_at: tuple[int, ...] = (),
    more_stops: tuple[int, ...] = (),
    barred: bool = False,
    untils: tuple[int | None, ...] = (None,),
    seen: tuple[str, ...] = ("ids",),
) -> Call:
    """Any request at temperature 0. rival: how near another id comes to the favoured one (0: a tie), "near": as near as the
    dtype can tell. stop_at: the numbers of the id that ends it, from 0; none of those that stop end it where that is empty.
    more_stops: how many there are beside those that the envelope says. barred: every other id of a model has a logit of -inf.
    untils: how many ids the consumer takes. seen: what is looked at."""
    models = _models(pick, vocabularies, rival, barred)
    tokens = _prompt(pick, models["target"]["vocab_size"], lengths)
    limit = pick.count("zero_max_tokens", *limits)
    arguments: dict[str, Any] = {**models, "tokens": tokens, "max_tokens": limit}
    arguments["num_draft_tokens"] = _drafts(pick, drafts)
    if stops := _stops(pick, models["target"], tokens, limit, stop_at, more_stops):
        arguments["eos"] = stops
    if (until := pick.one_of(*untils)) is not None:
        arguments["until"] = until
    pick.features |= {"temperatures": "greedy", "filters": "none"}
    return pick.call(GENERATE, **arguments, seen=seen, **ends_declared(pick))


def _stops(
    pick: Pick, target: dict[str, Any], tokens: Any, limit: int, stop_at: tuple[int, ...], more: tuple[int, ...]
) -> tuple[int, ...]:
    """As many end-of-sequence ids as the envelope says, and some more; the one that is to end it anywhere among them."""
    count = pick("stops")
    if count == 0:
        return ()
    count += pick.one_of(*more) if more else 0
    following = continuation(target, [int(token) for token in tokens], limit)
    number = pick.one_of(*stop_at) if stop_at else None
    ending = [following[min(number, len(following) - 1)]] if number is not None and following else []
    others = (token for token in range(target["vocab_size"]) if token not in following)
    found = [*ending, *itertools.islice(others, count)][:count]
    first = pick.size(0, max(len(found) - 1, 0))
    return tuple(found[first:] + found[:first])


@calls
def paired_calls(
    pick: Pick,
    orders: tuple[str, ...] = ("turns", "after"),
    untils: tuple[Any, ...] = (None,),
    limits: tuple[int, ...] = LIMITS,
    drafts: tuple[int, ...] = DRAFTS,
) -> Call:
    """Two requests to the same models; the second shares a beginning with the first, or its whole prompt."""
    call = generate_calls.build(pick, limits=limits, drafts=drafts, vocabularies=ENOUGH, untils=untils)
    prompt = [int(token) for token in np.ravel(call.arguments["tokens"])]
    other = pick.random.integers(0, 97, pick.size(1, 5)).tolist()
    beside = {"tokens": given_as(call, pick.one_of(other, prompt[:1] + other, prompt)), "max_tokens": pick.size(1, 8)}
    return call.having(beside=beside, order=pick.one_of(*orders), seen=("ids", "beside"))


@calls
def paired_conversations(pick: Pick, orders: tuple[str, ...] = ("turns", "after")) -> Call:
    """Two requests of dozens of tokens to the same models: see `prompt_like`."""
    call = generate_calls.build(pick, lengths=(40, 70, 33, 130), limits=(6, 3, 9), vocabularies=ENOUGH)
    beside = {"tokens": prompt_like(pick, call), "max_tokens": pick.size(1, 8)}
    return call.having(beside=beside, order=pick.one_of(*orders), seen=("ids", "beside"))


@calls
def nearly_ended(pick: Pick) -> Call:
    """A request that just those ids end which are alike in their low bits to those that come of it, as many as may end one."""
    call = generate_calls.build(pick, vocabularies=(131073,), lengths=(3, 1, 2), limits=(3, 2))
    target, tokens = call.arguments["target"], np.ravel(call.arguments["tokens"]).tolist()
    given = continuation(target, tokens, call.arguments["max_tokens"])
    return call.having(eos=alike_in_16_bits(given, target["vocab_size"])[: max(pick.envelope["stops"])])


@calls
def several_ends(pick: Pick) -> Call:
    """A request in one of whose rounds there come two ids that end it, listed in any order."""
    call = generate_calls.build(pick, limits=(12,), drafts=(5, 7, 4), vocabularies=ENOUGH)
    target, tokens = call.arguments["target"], np.ravel(call.arguments["tokens"]).tolist()
    following = continuation(target, tokens, call.arguments["max_tokens"])
    first = pick.size(0, 2)
    later = first + pick.size(1, 2)
    return call.having(eos=tuple(following[at] for at in pick.one_of((later, first), (first, later))))


@calls
def paired_ends(pick: Pick, orders: tuple[str, ...] = ("turns", "after")) -> Call:
    """Two requests to the same models that do not end alike."""
    call = paired_calls.build(pick, orders=orders)
    return ended_apart(pick, call, call.arguments["target"])


# sampled


@calls
def sampled_calls(
    pick: Pick,
    lengths: tuple[int, ...] = (3, 1, 2, 5),
    limits: tuple[int, ...] = (6, 1, 2, 3, 5, 9),
    drafts: tuple[int, ...] = (4, 1, 2, 3, 6),
    vocabularies: tuple[int, ...] = (11, 5, 40),
    free: bool = False,
    near: tuple[bool, ...] = (False,),
    seen: tuple[str, ...] = ("ids",),
) -> Call:
    """A request above temperature 0, with the uniform numbers that its rounds take and a few to spare. free: with any
    uniform numbers and as many as one likes, where it does not matter which ids come out. near: the numbers lie as near as
    they may to what they are compared with."""
    models = _models(pick, vocabularies, None)
    tokens = _prompt(pick, models["target"]["vocab_size"], lengths)
    arguments = {**models, "tokens": tokens, "max_tokens": pick.count("zero_max_tokens", *limits), **_filters(pick)}
    arguments |= {"num_draft_tokens": _drafts(pick, drafts), **ends_declared(pick)}
    if free:
        return pick.call(GENERATE, **arguments, uniforms={"seed": int(pick.random.integers(2**31))}, seen=seen)
    best: tuple[float, Call] | None = None
    beside = pick.one_of(*near)
    masses = (0.9, 0.7, 0.8, 0.6, 0.95, 0.5) if "top_p" in arguments else (None,)
    for top_p in (*_beside_sums(pick, arguments), *masses) if beside else masses:
        filtered = arguments if top_p is None else {**arguments, "top_p": top_p}
        drawing = _Drawing(pick.random, beside)
        a = drawing.bind({**filtered, "uniforms": ()})
        drawing.seen(a)
        numbers = (*drawing.numbers, *pick.random.random(SPARE).tolist())
        call = pick.call(GENERATE, **filtered, uniforms=numbers, seen=seen)
        if best is None or drawing.margin > best[0]:
            best = drawing.margin, call
        if drawing.margin > DECISIVE:
            break
    assert best is not None
    return best[1]


def _beside_sums(pick: Pick, arguments: dict[str, Any]) -> list[float]:
    """A top_p that lies a little below or above a sum of the first probabilities of a model, where it has one: half precision
    leaves out another id then, or one less."""
    if "top_p" not in arguments:
        return []
    toys = [arguments["target"], arguments["draft"] or arguments["target"]]
    tokens = [int(token) for token in np.ravel(arguments["tokens"])]
    row = Player.of(pick.one_of(*toys))(tokens)[-1]
    likeliest = _likeliest(row, arguments["temperature"], arguments.get("top_k"))
    # Of equal ids it is no matter of precision which is left out, and what is hardly likely comes seldom.
    apart = np.flatnonzero((np.diff(likeliest) < 0) & (likeliest[1:] > LIKELY))
    if not len(apart):
        return []
    return [float(np.cumsum(likeliest)[pick.one_of(*apart)]) + pick.one_of(BESIDE, -BESIDE)]


def _likeliest(row: np.ndarray, temperature: float, top_k: int | None) -> np.ndarray:
    """The probabilities that top_p sums of a row of logits, the largest first."""
    row = -np.sort(-row / temperature, kind="stable")[: top_k or None]
    shares = np.exp(row - row[0])
    return shares / shares.sum()


def _as_claimed(pick: Pick, tokens: Sequence[int]) -> Any:
    """A tuple, or an array where prompts are arrays alone."""
    if "list" in pick.envelope["prompts"]:
        return tuple(tokens)
    return np.array(tokens, pick.envelope["token_dtypes"][0])


def _filters(pick: Pick) -> dict[str, Any]:
    """Temperature and filters; top_p is a placeholder that the caller decides."""
    kind = pick("temperatures")
    found: dict[str, Any] = {"temperature": pick.one_of(*TEMPERATURES[kind])}
    filters = pick("filters")
    if filters in ("top_k", "both"):
        found["top_k"] = pick.one_of(3, 2, 4)
    if filters in ("top_p", "both"):
        found["top_p"] = 0.9
    return found


class _Drawing(SpeculativeGenerate):
    """The oracle, that makes the uniform numbers as it goes: each keeps clear of what it is compared with.

    near: they keep no further than they must, and are larger than a half where they can be, for narrow dtypes to show.
    margin: how near any sum of probabilities comes to top_p, but for those that lie beside it on purpose.
    """

    def __init__(self, random: np.random.Generator, near: bool = False) -> None:
        self.random, self.near, self.numbers, self.margin = random, near, list[float](), 1.0
        self.clear = NEAR / 2 if near else DECISIVE

    def check_uniforms(self, request: Any) -> None:
        """They are made here."""

    def propose(self, run: Run, row: np.ndarray) -> tuple[int, np.ndarray]:
        chances = self.draft_chances(run, row[None])[0]
        return Verify().draw(chances, self._inside(chances)), chances

    def verify(self, drafted: list[int], q: np.ndarray, p: np.ndarray, u: np.ndarray) -> list[int]:
        u = np.array([self._beside(p[i, t] / q[i, t]) for i, t in enumerate(drafted)] + [0.0])
        count = Verify().kept(drafted, q, p, u)
        u[-1] = self._inside(Verify().weights(drafted, q, p, count))
        return Verify().verified(drafted, q, p, u)

    def number(self, run: Run) -> float:
        return 0.0

    def target_chances(self, run: Run, rows: np.ndarray) -> np.ndarray:
        self._look(run, rows)
        return super().target_chances(run, rows)

    def draft_chances(self, run: Run, rows: np.ndarray) -> np.ndarray:
        self._look(run, rows)
        return super().draft_chances(run, rows)

    def _look(self, run: Run, rows: np.ndarray) -> None:
        request = run.request
        if request.top_p == 1:
            return
        for row in rows:
            off = np.abs(np.cumsum(_likeliest(row, request.temperature, request.top_k)) - request.top_p)
            if self.near:
                off = off[np.abs(off - BESIDE) > BESIDE / 16]
            self.margin = min([self.margin, *off.tolist()])

    def _inside(self, weights: np.ndarray) -> float:
        """A number well inside what belongs to one id."""
        edges = np.concatenate([[0.0], np.cumsum(weights / weights.sum())])
        number = float(self.random.random())
        if self.near:
            beside = np.concatenate([edges - NEAR, edges + NEAR])
            beside = beside[(beside > 0.5) & (beside < 1 - DECISIVE)]
            number = float(self.random.choice(beside)) if len(beside) else number
        if np.abs(edges - number).min() < self.clear:
            token = int(np.argmax(np.diff(edges)))
            number = float(edges[token] + edges[token + 1]) / 2
        return self._kept(number)

    def _beside(self, ratio: float) -> float:
        number, ratio = float(self.random.random()), min(ratio, 1.0)
        if self.near and 0.5 < ratio < 1 - 2 * NEAR:
            number = ratio + float(self.random.choice([-NEAR, NEAR]))
        if abs(number - ratio) < self.clear:
            number = ratio / 2 if ratio > 0.5 else (1 + ratio) / 2
        return self._kept(number)

    def _kept(self, number: float) -> float:
        self.numbers.append(number)
        return number


# exact distributions


JUNK: dict[str, tuple[tuple[tuple[float, ...], int, float], ...]] = {
    "none": (((), 0, 1.0),),
    "top_k": (((0.0, 0.3), 2, 1.0),),
    "top_p": (((0.6, 0.3), 0, 0.6), ((0.8, 0.3), 0, 0.5)),
    "both": (((0.6, 0.3), 3, 0.6), ((0.8, 0.3), 3, 0.5)),
}
"""For each kind of filters the junk of a table (`toy.Table`), and the top_k and top_p that take it away: 1 of 1.6 is more
than 0.6, a half of 1.3 less, and two of them more. Of halves without junk 0.6 leaves both, and 0.5 one."""


def _tables(pick: Pick, pairs: Sequence[Any], count: int, cold: bool = True) -> dict[str, Any]:
    """Descriptions of target and draft as tables of so many pairs of rows, and the filters that take their junk away.

    cold: whether temperatures may be so low that logits which are not equal have few bits in float16.
    """
    dtype, filters = pick("dtypes"), _filters(pick)
    if cold and pick.features["temperatures"] == "other" and pick.features["filters"] in ("none", "top_k"):
        # What top_p sums would not be as exact.
        filters["temperature"] = pick.one_of(filters["temperature"], COLD)
    chosen = [pairs[int(pick.random.integers(len(pairs)))] for _ in range(count)]
    junk, top_k, top_p = pick.one_of(*JUNK[pick.features["filters"]])
    filters |= {name: value for name, value in (("top_k", top_k), ("top_p", top_p)) if name in filters}
    about = {"salt": int(pick.random.integers(2**31)), "heat": filters["temperature"], "junk": junk, "dtype": dtype}
    pick.features["drafters"] = "other"
    target, draft = (tuple(pair[side] for pair in chosen) for side in (1, 0))
    return {"target": {**about, "rows": target}, "draft": {**about, "rows": draft}, **filters}


def _halves(size: int) -> list[tuple[float, ...]]:
    """Rows with all probability on one id, or a half on each of two."""
    rows = [np.eye(size)[i] for i in range(size)]
    rows += [(one + two) / 2 for one, two in itertools.combinations(rows, 2)]
    return [tuple(row.tolist()) for row in rows]


def _quarters() -> list[tuple[tuple[float, ...], tuple[float, ...]]]:
    """Pairs of rows of two ids or three in quarters, of which what decides is in quarters too: acceptance and residual."""
    found = []
    for size in (2, 3):
        rows = [np.array(parts) / 4 for parts in itertools.product(range(5), repeat=size) if sum(parts) == 4]
        for q, p in itertools.product(rows, rows):
            rest = np.maximum(p - q, 0)
            decides = [p[q > p] / q[q > p], np.cumsum(rest / rest.sum()) if rest.any() else np.zeros(0)]
            if rest.any() and all((part * 4 == np.rint(part * 4)).all() for part in decides):
                found.append((tuple(q.tolist()), tuple(p.tolist())))
    return found


QUARTERS = _quarters()

UNEVEN = sorted({row for pair in QUARTERS for row in pair if len({part for part in row if part}) > 1})
"""Rows that a temperature changes."""


@calls
def halves_calls(
    pick: Pick, shapes: tuple[tuple[int, int], ...] = ((1, 2), (1, 3), (2, 2), (1, 2), (3, 1)), size: int = 3
) -> Call:
    """Every output of a short request, on models whose every probability is 0, a half or 1. shapes: num_draft_tokens and
    max_tokens."""
    pairs = list(itertools.product(_halves(size), repeat=2))
    # Where rows are equal or have nothing in common, nothing is at stake.
    telling = [(q, p) for q, p in pairs if q != p and np.dot(q, p) > 0]
    # Of a row of one id no draft is drawn.
    drawn = [(q, p) for q, p in pairs if max(q) < 1 and np.dot(q, p) > 0]
    models = _tables(pick, [*pairs, *telling, *drawn, *drawn], 5)
    # Nothing for a filter to take away: a draft may be drawn from as it is, and would leave the halves.
    models["draft"]["junk"] = tuple(0.0 for _ in models["draft"]["junk"])
    drafts, limit = pick.one_of(*shapes)
    return pick.call(
        GENERATE,
        **models,
        tokens=_as_claimed(pick, pick.random.integers(0, size, 2).tolist()),
        max_tokens=limit,
        num_draft_tokens=drafts,
        uniforms={"cells": 2},
        seen=("distribution",),
    )


@calls
def reached_calls(pick: Pick) -> Call:
    """Every output of a round of models for which all ids are equally likely, so that a few of them reach top_p exactly."""
    size = pick.one_of(4, 2)
    pick.features["drafters"] = "other"
    toy = {"rows": ((1 / size,) * size,), "heat": 1.0, "junk": (), "dtype": pick("dtypes")}
    return pick.call(
        GENERATE,
        target=toy | {"salt": 1},
        draft=toy | {"salt": 2},
        tokens=_as_claimed(pick, pick.random.integers(0, size, 2).tolist()),
        max_tokens=2,
        num_draft_tokens=1,
        **_filters(pick) | {"top_p": pick.size(1, size - 1) / size},
        uniforms={"cells": size},
        seen=("distribution",),
    )


@calls
def kept_in_a_row(pick: Pick) -> Call:
    """Every output of one round, each of whose drafts is kept as often as not; what comes in its place ends the request."""
    size, drafts = pick.one_of(3, 2), pick.one_of(3, 3, 4)
    *drafted, end = (np.eye(size)[i] for i in range(size))
    models = _tables(pick, [(tuple(row.tolist()), tuple(((row + end) / 2).tolist())) for row in drafted], 5)
    models["draft"]["junk"] = tuple(0.0 for _ in models["draft"]["junk"])
    return pick.call(
        GENERATE,
        **models,
        tokens=_as_claimed(pick, pick.random.integers(0, size, 2).tolist()),
        max_tokens=drafts + 1,
        num_draft_tokens=drafts,
        eos=(size - 1,),
        uniforms={"cells": 2},
        seen=("distribution",),
        **ends_declared(pick),
    )


@calls
def quarters_calls(pick: Pick) -> Call:
    """The same in quarters, of two ids."""
    size = pick.one_of(2, 3)
    pairs = [pair for pair in QUARTERS if len(pair[0]) == size]
    models = _tables(pick, pairs, 3)
    return pick.call(
        GENERATE,
        **models,
        tokens=_as_claimed(pick, pick.random.integers(0, size, 2).tolist()),
        max_tokens=2,
        num_draft_tokens=1,
        uniforms={"cells": 4},
        seen=("distribution",),
    )


@calls
def kept_calls(pick: Pick) -> Call:
    """The same where the draft is sure of the target's likeliest id, which is kept as often as not: what comes first and last
    of a round is the target's own. No row of the target is the same at another temperature, and every row of the draft is."""
    size = pick.one_of(2, 3)
    pairs = [(tuple(float(part == max(row)) for part in row), row) for row in UNEVEN if len(row) == size]
    models = _tables(pick, pairs, 3, cold=False)
    # By others the shares in quarters are rounded to what they are untempered.
    heat = models["temperature"] = pick.one_of(2.0, 0.25)
    models |= {name: {**models[name], "heat": heat} for name in ("target", "draft")}
    return pick.call(
        GENERATE,
        **models,
        tokens=_as_claimed(pick, pick.random.integers(0, size, 2).tolist()),
        max_tokens=2,
        num_draft_tokens=1,
        uniforms={"cells": 4},
        seen=("distribution",),
    )


def with_all_left(call: Call) -> Call:
    """The call with a top_k of the whole vocabulary, of which there is nothing to take away."""
    models = {name: {**call.arguments[name], "junk": ()} for name in ("target", "draft")}
    return call.having(**models, top_k=len(models["target"]["rows"][0]))


HEIGHTS = {"bfloat16": 241.0, "float16": 1901.0, "float32": 2049.0}
"""Logits that a dtype tells from the next whole number. Half precision does not once they are a tenth larger, and those of
float32 not at all."""


@calls
def high_calls(pick: Pick) -> Call:
    """The same in quarters, of two ids whose logits are far from zero, above it in some rows and below it in others: one of 3/4
    is one above one of 1/4."""
    heat = 1 / math.log(3)
    pairs = [(q, p) for q, p in QUARTERS if len(p) == 2 and 0.75 in (*q, *p)]
    models = _tables(pick, pairs, 3, cold=False)
    height = HEIGHTS[models["target"]["dtype"]]
    heights = (height, -height, height)
    models |= {name: {**models[name], "heat": heat, "height": heights} for name in ("target", "draft")}
    models["temperature"] = heat
    return pick.call(
        GENERATE,
        **models,
        tokens=_as_claimed(pick, pick.random.integers(0, 2, 2).tolist()),
        max_tokens=2,
        num_draft_tokens=1,
        uniforms={"cells": 4},
        seen=("distribution",),
    )


ROUNDS, COUNTED, STATES = 800, 320, 2
"""Ids of a request whose frequencies are counted, how many of each state are, and after how many kinds of histories.
`spec/test_speculative.py` tells what that detects."""


@calls
def many_rounds(pick: Pick) -> Call:
    """A long request on tables of unlike rows."""
    size = pick.one_of(4, 3, 5)
    target, draft = (_steep_rows(pick, size, ratio) for ratio in (4.0, 2.0))
    pick.features |= {"dtypes": "float32", "drafters": "other"}
    filters: dict[str, Any] = {"temperature": 1.0 if pick("temperatures") == "one" else pick.one_of(0.5, 3.0)}
    if pick("filters") == "top_k":
        filters["top_k"] = size - 1
    about = {"salt": int(pick.random.integers(2**31)), "heat": 1.0, "junk": (), "dtype": "float32"}
    return pick.call(
        GENERATE,
        target={**about, "rows": target},
        draft={**about, "rows": draft},
        tokens=_as_claimed(pick, (0, 1)),
        max_tokens=ROUNDS,
        num_draft_tokens=pick.one_of(3, 4),
        **filters,
        uniforms={"seed": pick.size(0, 200)},
    )


def _steep_rows(pick: Pick, size: int, ratio: float) -> tuple[tuple[float, ...], ...]:
    """Rows in which each id is by that ratio likelier than the next, in an order of their own."""
    row = ratio ** -np.arange(size)
    return tuple(tuple((pick.random.permutation(row) / row.sum()).tolist()) for _ in range(STATES))


def rounds(call: Call) -> int:
    """In how many rounds the ids of a call at temperature 0 come, past the call of the target that is fed the prompt alone, where
    there is one: each gives the right ones of num_draft_tokens drafts, as far as the first wrong one, and one id more."""
    a = call.arguments
    tokens = [int(token) for token in np.ravel(a["tokens"])]
    ids = continuation(a["target"], tokens, a["max_tokens"])
    rows = Player.of(a["draft"] or a["target"]).toy.extend([*tokens, *ids[:-1]])[len(tokens) - 1 :]
    right = (rows.argmax(axis=-1) == ids).tolist()
    return max(rounds_of(right, a["num_draft_tokens"], known) for known in (0, 1))


def rounds_of(right: Sequence[bool], drafts: int, known: int) -> int:
    """In how many rounds of so many drafts all ids are there, `known` of which there are before. right: whether the draft of each
    id is, where those before it are as they should be."""
    count = 0
    while known < len(right):
        known += [*right[known : known + drafts], False].index(False) + 1
        count += 1
    return count


@calls
def of_unlike_depths(pick: Pick, seen: tuple[str, ...] = ("ids",)) -> Call:
    """A request of several rounds, whose draft has fewer layers than the target, or more."""
    models = _models(pick, ENOUGH, None)
    for model, layers in zip(models.values(), pick.one_of((4, 1), (1, 4), (5, 2), (2, 5)), strict=True):
        model["layers"] = layers
    tokens = _prompt(pick, models["target"]["vocab_size"], (3, 1, 5))
    pick.features |= {"temperatures": "greedy", "filters": "none"}
    counts: dict[str, Any] = {
        "max_tokens": pick.count("zero_max_tokens", 13, 9),
        "num_draft_tokens": _drafts(pick, DRAFTS),
    }
    return pick.call(GENERATE, **models, tokens=tokens, **counts, seen=seen, **ends_declared(pick))


APART = ["same", "near", "far", "wrong", "other"]
of_several_rounds = generate_calls(limits=(9, 13, 20), vocabularies=ENOUGH, stops=[0])
SAMPLED = {"temperatures": ["one", "other"]}
"""What calls above temperature 0 ask of an envelope."""

UNTEMPERED = {"temperatures": ["one"], "filters": ["top_p", "both"]}
TEMPERED = {"temperatures": ["other", "one"], "filters": ["none", "top_k"]}
"""The same in two parts, in which it does not show whether top_p goes before the temperature or after it: with top_p at a
temperature of 1, and without it at any."""
