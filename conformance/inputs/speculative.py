"""Calls of `verify`. Uniform numbers keep clear of what they are compared with, so that no rounding decides."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from inferspec.conformance.calls import VIEWS, Call
from inferspec.conformance.inputs.drafting import generate_calls
from inferspec.conformance.inputs.generation import ending
from inferspec.conformance.strategies import Calls, Pick
from inferspec.spec.lossless import Cell, History, Pair, Row
from inferspec.spec.numerics import DECISIVE, f64, mass_slack, round_to
from inferspec.spec.speculative import Verify
from inferspec.spec.speculative_sentences import GENERATE, VERIFY

_half = np.array([[0.5, 0.5]], np.float32)
_toy = {"vocab_size": 7, "salt": 1, "rival": None, "dtype": "float32"}
EXAMPLES = {
    VERIFY: Call(
        VERIFY,
        {
            "draft_tokens": np.zeros(1, np.int32),
            "draft_probs": _half,
            "target_probs": np.tile(_half, (2, 1)),
            "uniform": np.array([0.25, 0.75], np.float32),
        },
    ),
    GENERATE: Call(GENERATE, {"target": _toy, "draft": _toy, "tokens": (1, 2, 3), "max_tokens": 3}),
}

ALMOST_ONE = 1 - 2.0**-24
"""The largest uniform number of float32."""

Rows = Callable[[Pick, int, int], tuple[np.ndarray, np.ndarray]]
"""Makes k×V probabilities of a draft and (k+1)×V of a target, in float64; they are rounded to a dtype after that."""

PARTS = 64
"""Probabilities are so many parts of the whole: exact in every dtype, and so are their sums."""

HUGE = (32769, 65537, 151936)
"""Vocabularies past the ends of narrow integers, and of a real model."""


def _parts(pick: Pick, size: int, likely: int) -> np.ndarray:
    """A row of PARTS in which at most so many ids are likely."""
    ids = pick.random.choice(size, min(likely, size), replace=False)
    row = np.zeros(size)
    weights = pick.random.dirichlet(np.full(len(ids), pick.one_of(1.0, 0.5, 3.0)))
    row[ids] = pick.random.multinomial(PARTS, weights) / PARTS
    return row


def uneven(pick: Pick, count: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of no round numbers, whose sums in float32 are often a little less than one."""
    logits = np.exp(pick.random.normal(size=(2 * count + 1, size)))
    rows = logits / logits.sum(axis=-1, keepdims=True)
    return rows[:count], rows[count:]


def filtered(pick: Pick, count: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of no round numbers; of the target's a filter has left the first half of the ids."""
    draft, target = uneven(pick, count, size)
    target[:, (size + 1) // 2 :] = 0
    return draft, target / target.sum(axis=-1, keepdims=True)


def dyadic(pick: Pick, count: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows with up to 12 likely ids; target and draft share some of them."""
    shared = pick.random.permutation(size)[:12]
    rows = np.zeros((2 * count + 1, size))
    for row in rows:
        row[shared] = _parts(pick, len(shared), pick.one_of(12, 4, 2))
    return rows[:count], rows[count:]


def fine(pick: Pick, count: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Softmax rows, with every bit of the dtype in use and sums that rounding leaves a little off 1."""
    logits = pick.random.normal(size=(2 * count + 1, size)) * pick.one_of(1.0, 2.0)
    rows = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    return rows[:count], rows[count:]


def one_hot(pick: Pick, count: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """All probability on one id in each row."""
    rows = np.eye(size)[pick.random.integers(0, min(size, pick.one_of(2, 3, 12)), 2 * count + 1)]
    return rows[:count], rows[count:]


def equal(pick: Pick, count: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """A draft that has the target's own rows."""
    _, target = pick.one_of(dyadic, fine, one_hot)(pick, count, size)
    return target[:count].copy(), target


def rare(pick: Pick, count: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """A draft that has the target's own rows, of one likely id and others that hardly ever come."""
    target = 2.0 ** -pick.random.integers(22, 40, (count + 1, size))
    target[np.arange(count + 1), pick.random.integers(0, size, count + 1)] += 1 - target.sum(axis=-1)
    return target[:count].copy(), target


def apart(pick: Pick, count: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """A target that can give nothing of what the draft gives, in some rows or in all."""
    draft, target = dyadic(pick, count, size)
    for q, p in zip(draft, target[:-1], strict=True):
        if pick.random.random() < 0.7:
            ids, cut = pick.random.permutation(size), int(pick.random.integers(1, size))
            q[:], p[:] = 0, 0
            q[ids[:cut]], p[ids[cut:]] = _parts(pick, cut, 4), _parts(pick, size - cut, 4)
    return draft, target


def short(pick: Pick, count: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The draft's rows but for one id, of which rounding left the target a little less: nothing is left of p - q."""
    row = 2.0 ** -np.minimum(np.arange(1, size + 1), size - 1)
    draft = np.array([pick.random.permutation(row) for _ in range(count + 1)])
    return draft[:count], draft.copy()


def halves(pick: Pick, count: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of 1/2, 1/4, 1/8 and so on in some order: quotients and products are exact in every dtype."""
    row = 2.0 ** -np.minimum(np.arange(1, size + 1), size - 1)
    rows = np.array([pick.random.permutation(row) for _ in range(2 * count + 1)])
    return rows[:count], rows[count:]


def sparse(pick: Pick, count: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """A few likely ids among very many, the last one mostly among them."""
    ids = np.unique([*pick.random.integers(0, size, 6), size - 1, size // 2, min(2**15 + 3, size - 1)])
    rows = np.zeros((2 * count + 1, size))
    for row in rows:
        row[ids] = _parts(pick, len(ids), len(ids))
    return rows[:count], rows[count:]


def fine_among_many(pick: Pick, count: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """A dozen likely ids among very many, the first and the last one among them, with every bit of the dtype in use."""
    ids = np.unique([0, size - 1, *pick.random.integers(0, size, 10)])
    rows = np.zeros((2 * count + 1, size))
    rows[:, ids] = np.concatenate(fine(pick, count, len(ids)))
    return rows[:count], rows[count:]


def nearly_equal(pick: Pick, count: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """A target that has a few units in the last place of float32 more of each id than the draft, but for one that it cannot give.

    Such a draft is rejected whatever the uniform number; the differences are exact in float32, while 1 - q/p keeps a digit of them.
    """
    target = f64(round_to(fine(pick, count, size - 1)[1], "float32"))
    last_places = f64(np.spacing(target[:count].astype(np.float32)))
    more = pick.random.integers(1, 4, last_places.shape) * last_places
    draft = np.concatenate([target[:count] - more, more.sum(axis=-1, keepdims=True)], axis=-1)
    ids = pick.random.permutation(size)
    return draft[:, ids], np.pad(target, ((0, 0), (0, 1)))[:, ids]


def of_arrays(build: Callable[..., Any]) -> Calls:
    """Calls of `verify` whose drafts are an array where the subject takes one, unless a test asks for a list."""
    return Calls(build, preferred={"drafts": ["array"]})


@of_arrays
def verify_calls(
    pick: Pick,
    rows: Rows = dyadic,
    counts: tuple[int, ...] = (3, 1, 2, 4, 5, 8),
    sizes: tuple[int, ...] = (4, 2, 3, 5, 7, 12, 24),
    ends: str = "anywhere",
    close: bool = False,
    near: bool = False,
    edge: bool = False,
    level: bool = False,
    target: str = "",
) -> Call:
    """Drafts that are kept up to a place, chosen first and if their rows allow it.

    ends: "anywhere", at a "rejection" if there can be one, or at "none". close: uniform numbers lie so near to where a draft
    is kept that arithmetic in a narrow dtype would not tell. near: the last one lies as near to where an id ends. edge: uniform numbers are 0, tiny, or just below 1.
    level: the draft that is rejected has a uniform number at which it is neither more nor less likely than the target has it.
    target: the dtype of the target's rows where it is not the draft's.
    """
    dtype, count, size = pick("dtypes"), pick.one_of(*counts), pick.upto("vocabulary", *sizes)
    q, p = rows(pick, count, size)
    q, p = round_to(q, dtype), round_to(p, target or dtype)
    stop = pick.size(0, count) if ends != "none" else count
    if ends == "rejection":
        stop = min(stop, count - 1)
    tokens, uniform = [], np.zeros(count + 1)
    if rows is short:
        stop = min(stop, count - 1)
        _shorten(q, p, stop)
    for i in range(count):
        one, two = f64(q[i]), f64(p[i])
        token = _draft(pick, one, two, keep=i != stop)
        if level and i == stop and len(both := np.flatnonzero((one > 0) & ((two == one / 2) | (two == one / 4)))):
            token = int(pick.random.choice(both))
        tokens.append(token)
        uniform[i] = _beside(pick, two[token] / one[token] if one[token] else np.inf, i != stop, close)
        if level and i == stop and two[token] in (one[token] / 2, one[token] / 4):
            uniform[i] = two[token] / one[token]
    if rows is short:
        uniform[stop] = ALMOST_ONE
    if edge:
        uniform = np.where(pick.random.random(count + 1) < 0.7, _edge(pick, count + 1), uniform)
    operation = Verify()
    uniform = f64(uniform.astype(np.float32))
    kept = operation.kept(tokens, f64(q), f64(p), uniform)
    if not edge:
        weights = operation.weights(tokens, f64(q), f64(p), kept)
        uniform[-1] = _at_an_end(pick, weights, dtype) if near else _inside(pick, weights, mass_slack(size, dtype))
    uniform = last_or_next(uniform, kept)
    return pick.call(
        VERIFY,
        draft_tokens=_given(pick, tokens),
        draft_probs=q,
        target_probs=p,
        uniform=uniform.astype(np.float32),
    )


def last_or_next(uniform: np.ndarray, kept: int) -> np.ndarray:
    """Uniform numbers of which the last stands behind that of the first draft that is not kept too: who takes one after the other
    draws the last id with that one."""
    found = uniform.copy()
    found[min(kept + 1, len(found) - 1)] = found[-1]
    return found


def _given(pick: Pick, tokens: list[int]) -> Any:
    if pick("drafts") == "list":
        return tokens
    return np.array(tokens).astype(pick("token_dtypes"))


def _draft(pick: Pick, q: np.ndarray, p: np.ndarray, keep: bool) -> int:
    """An id that the draft may give, and that may be kept, or rejected; any that it may give where there is none."""
    wanted = (q > 0) & ((p > 0) if keep else (p < q))
    return int(pick.random.choice(np.flatnonzero(wanted if wanted.any() else q > 0)))


def _beside(pick: Pick, ratio: float, keep: bool, close: bool) -> float:
    """A uniform number that keeps, or rejects, a draft of that ratio where one can."""
    if close and DECISIVE < ratio < 1 - DECISIVE:
        return ratio * (1 + (-DECISIVE / 4 if keep else DECISIVE / 4))
    ratio = min(ratio, 1.0)
    share = float(pick.random.uniform(0.1, 0.9))
    # At 0 no number keeps it. Whether 0 does is asked where numbers are at an edge.
    keep = (keep and ratio > 0) or ratio == 1
    return ratio * share if keep else ratio + (1 - ratio) * share


def _edge(pick: Pick, count: int) -> np.ndarray:
    return pick.random.choice([0.0, 2.0**-149, 2.0**-126, ALMOST_ONE], count)


def _inside(pick: Pick, weights: np.ndarray, slack: float) -> float:
    """A uniform number in the middle of what belongs to one id, any that has enough of it, or the one with most."""
    shares = weights / weights.sum()
    wide = np.flatnonzero(shares > max(8 * slack, 2 * DECISIVE))
    token = int(pick.random.choice(wide)) if len(wide) else int(np.argmax(shares))
    return float(shares[:token].sum() + shares[token] / 2)


def _at_an_end(pick: Pick, weights: np.ndarray, dtype: str) -> float:
    """A uniform number just inside what belongs to one id: one where narrow differences or sums tell another id, if any."""
    # What has no weight changes no sum.
    weights = weights[weights > 0]
    shares = weights / weights.sum()
    ends = np.concatenate([[0.0], np.cumsum(shares)])
    wide = np.flatnonzero(shares > DECISIVE)
    inside = [(ends[token] + DECISIVE / 4, token) for token in wide if token > 0]
    inside += [(ends[token + 1] - DECISIVE / 4, token) for token in wide if token < len(shares) - 1]
    narrow = "bfloat16" if dtype == "float32" else dtype
    rounded, running = f64(round_to(weights, narrow)), 0.0
    sums = [running := float(f64(round_to(np.array(running + weight), narrow))) for weight in weights]
    telling = [
        number
        for number, token in inside
        if any(np.argmax(cdf > number * cdf[-1]) != token for cdf in (np.cumsum(rounded), np.array(sums)))
    ]
    return float(pick.random.choice(telling or [number for number, _ in inside] or [0.5]))


def _shorten(q: np.ndarray, p: np.ndarray, place: int) -> None:
    """Give the target the draft's row there, with the likeliest id half as far below it as the sum of a row may be off.

    By one unit in the last place of float32 only an exact comparison tells it from ALMOST_ONE of the draft's.
    """
    token = int(np.argmax(f64(q[place])))
    p[place] = q[place]
    p[place, token] = round_to(f64(q[place, token]) - mass_slack(q.shape[1], q.dtype.name) / 2, q.dtype.name)


@of_arrays
def impossible_drafts(pick: Pick, given: bool = True) -> Call:
    """Drafts, one of which its own row calls impossible. given: whether the target can give that one."""
    call = verify_calls.build(pick, counts=(1, 2, 3), sizes=(4, 3, 7, 12))
    a = call.arguments
    place = pick.size(0, len(a["draft_probs"]) - 1)
    q, p = a["draft_probs"].copy(), a["target_probs"].copy()
    token = int(a["draft_tokens"][place])
    q[place], p[place] = 0, 0
    q[place, (token + 1) % q.shape[1]] = 1
    p[place, token if given else (token + 1) % q.shape[1]] = 1
    uniform = a["uniform"].copy()
    uniform[place] = pick.one_of(0.5, 0.0, ALMOST_ONE)
    # What comes last has all probability on one id, wherever that is.
    p[:, :] = np.where(np.arange(len(p))[:, None] == place, p, np.eye(q.shape[1])[1])
    return call.having(draft_probs=q, target_probs=p, uniform=uniform)


def possible(source: Calls) -> Calls:
    """The calls of `source`, in which a draft that its row cannot give has the probability of the likeliest id there."""

    def build(pick: Pick, **options: Any) -> Call:
        call = source.build(pick, **options)
        q = call.arguments["draft_probs"].copy()
        for row, token in zip(q, call.arguments["draft_tokens"], strict=True):
            if not row[token]:
                row[[token, np.argmax(row)]] = row[[np.argmax(row), token]]
        return call.having(draft_probs=q)

    return source.rebuilt(build)


@of_arrays
def probabilities_in_views(pick: Pick) -> Call:
    """Rows of probabilities laid out as a view; all rows are the first where one has to stand for all."""
    call = verify_calls.build(pick)
    name, view = pick.one_of("draft_probs", "target_probs"), pick.one_of(*VIEWS)
    if view == "broadcast":
        rows = call.arguments[name]
        call = call.having(**{name: np.repeat(rows[:1], len(rows), axis=0)})
        if name == "draft_probs":
            call = call.having(draft_tokens=_of_one_row(call.arguments["draft_tokens"], rows[0]))
    return call.viewing(name, view)


def _of_one_row(tokens: Any, row: np.ndarray) -> Any:
    """Drafts that a row can give: the first stands for those that it cannot."""
    given = [token if row[token] else tokens[0] for token in tokens]
    return np.array(given, tokens.dtype) if isinstance(tokens, np.ndarray) else given


SHAPES = ((2, 1), (3, 1), (2, 2), (4, 1), (3, 2), (2, 3))
"""Vocabularies and numbers of drafts that are enumerated."""


class Enumeration:
    """A pair of models whose every call is made."""

    def __init__(self, pair: Pair, dtype: str, drafts: str, token_dtype: str, features: dict[str, Any]) -> None:
        self.pair, self.dtype, self.drafts, self.token_dtype, self.features = pair, dtype, drafts, token_dtype, features

    def __repr__(self) -> str:
        def told(table: Any) -> str:
            return ", ".join(f"{list(history)}: {[str(x) for x in row]}" for history, row in table.items())

        return f"draft {told(self.pair.draft)}; target {told(self.pair.target)}"

    def call(self, cell: Cell) -> Call:
        """The call of a cell."""
        kept = Verify().kept(list(cell.draft_tokens), cell.draft_probs, cell.target_probs, cell.uniform)
        return Call(
            VERIFY,
            {
                "draft_tokens": self._given(cell.draft_tokens),
                "draft_probs": round_to(cell.draft_probs, self.dtype),
                "target_probs": round_to(cell.target_probs, self.dtype),
                "uniform": last_or_next(cell.uniform, kept),
            },
            self.features,
        )

    def _given(self, tokens: tuple[int, ...]) -> Any:
        return list(tokens) if self.drafts == "list" else np.array(tokens, self.token_dtype)


@of_arrays
def pairs(
    pick: Pick, shapes: tuple[tuple[int, int], ...] = SHAPES, parts: tuple[int, ...] = (8, 4, 16, 2)
) -> Enumeration:
    """Two models with a row of their own after every history, in eighths or so: zeros, equal and one-hot rows among them."""
    dtype, (size, drafts), whole = pick("dtypes"), pick.one_of(*shapes), pick.one_of(*parts)

    def table(longest: int) -> dict[History, Row]:
        lengths = range(longest + 1)
        histories = itertools.chain(*(itertools.product(range(size), repeat=length) for length in lengths))
        return {history: _row(pick, size, whole) for history in histories}

    pair = Pair(size, drafts, table(drafts - 1), table(drafts))
    form, token_dtype = (pick.envelope[key][0] for key in ("drafts", "token_dtypes"))
    return Enumeration(pair, dtype, form, token_dtype, {**pick.features, "drafts": form})


def _row(pick: Pick, size: int, whole: int) -> Row:
    counts = pick.random.multinomial(whole, pick.random.dirichlet(np.full(size, 0.7)))
    return tuple(Fraction(int(count), whole) for count in counts)


ORDINARY = {VERIFY: verify_calls, GENERATE: generate_calls}
"""The widest calls of each operation."""

_as_array = EXAMPLES[GENERATE].having(tokens=np.array([1, 2, 3], np.int32))

_of_no_ids = EXAMPLES[GENERATE].having(max_tokens=0)

OPTIONAL = {
    GENERATE: {"prompts": {"list": EXAMPLES[GENERATE], "array": _as_array}, "zero_max_tokens": {True: _of_no_ids}},
    VERIFY: {"drafts": {"list": EXAMPLES[VERIFY].having(draft_tokens=[0]), "array": EXAMPLES[VERIFY]}},
}
"""Choices that may be refused, by their key, with a call that asks for them and for nothing else that is rare."""

INSTEAD = {GENERATE: {"eos_as": partial(ending, EXAMPLES[GENERATE], "target")}}
"""What is taken in one way or in another, by its key (`judging.instead`)."""
