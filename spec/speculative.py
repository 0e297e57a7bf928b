"""Speculative decoding: a small model drafts a run of ids, the large one verifies them at once, and nothing is lost.

`verify(draft_tokens, draft_probs, target_probs, uniform) -> ids`. Shapes: draft_tokens k, draft_probs q k×V, target_probs p
(k+1)×V, uniform u k+1. Draft i, the id t, is kept while u[i]·q[i, t] < p[i, t], that is, with probability min(1, p/q): at q = 0
it is kept if the target can give it, at p = 0 never, and where p >= q always. At the first that is not kept one id is drawn
from max(p[i] - q[i], 0), and if that is nothing (rows that rounding left a little short) from p[i]; if all are kept, from
p[k]. Every draw is by inverse CDF, as in sampling, here with u[k]; who takes one number after the other draws with the one behind
that which rejected, and suites give both the same. So what comes out is distributed as the target's.

`speculative_generate(target, draft, tokens, *, max_tokens, num_draft_tokens=4, eos=(), temperature=0.0, top_k=None,
top_p=1.0, uniforms=None)`: an iterator of ids, as `generate` of the target alone gives them; above temperature 0 from an
iterator of uniform numbers: in each round one for each of its num_draft_tokens drafts (fewer where fewer can come out), then
those of `verify`. As in sampling, top_p should see the probabilities after the temperature, and may see those before it;
top_k does not care. Here the models are toys. Who feeds them all of the text each time, without a cache, has none that would
have to be rewound. Where no limit of 0 is taken, or no round without a draft,
`zero_max_tokens: [False]` or `zero_num_draft_tokens: [False]` in the envelope says so; where the id that ends the ids is the
last of them, `ends: ["kept"]`; where `eos` is one id, which is seen, `eos_as: ["id"]` (`spec/ends.py`).

Source: Leviathan et al. 2023; Chen et al. 2023; the nano-vLLM post, part 7 (whose residual is not lossless).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from inferspec.spec.contract import STORY, Answer, Answers, Arguments, Contract, Operation, Signature
from inferspec.spec.duet import Player, Request, distribution, play
from inferspec.spec.ends import ENDS, EOS_AS, ONE_ID, ended, left_of
from inferspec.spec.numerics import Precision, f64, is_float, mass_slack
from inferspec.spec.sampling import Sampler
from inferspec.spec.speculative_sentences import GENERATE, SENTENCES, VERIFY
from inferspec.spec.toy import FixedCache, Table


class Verify(Operation):
    """The ids that come of drafted ones."""

    signature = Signature.parse(f"{VERIFY}(draft_tokens, draft_probs, target_probs, uniform)")

    def guard(self, a: Arguments) -> None:
        self.guard_ranks(a)
        self.guard_counts(a)
        self.guard_ids(a)
        for name in ("draft_probs", "target_probs"):
            self.guard_signs(name, getattr(a, name))
            self.guard_sums(name, getattr(a, name))
        self.guard_uniform(a)

    def guard_ranks(self, a: Arguments) -> None:
        if not (is_float(a.draft_probs.dtype) and is_float(a.target_probs.dtype)):
            raise TypeError("draft_probs and target_probs take floating-point arrays")
        if (np.ndim(a.draft_tokens), a.draft_probs.ndim, a.target_probs.ndim, a.uniform.ndim) != (1, 2, 2, 1):
            raise ValueError("draft_tokens take one axis, draft_probs and target_probs two, uniform one")

    def guard_counts(self, a: Arguments) -> None:
        count, size = len(a.draft_tokens), a.target_probs.shape[1]
        if a.draft_probs.shape != (count, size):
            raise ValueError(f"draft_probs are {a.draft_probs.shape}; they take {(count, size)}")
        if len(a.target_probs) != count + 1:
            raise ValueError(f"target_probs are {a.target_probs.shape}; they take {(count + 1, size)}")
        if len(a.uniform) != count + 1:
            raise ValueError(f"uniform are {len(a.uniform)} numbers; it takes {count + 1}")

    def guard_ids(self, a: Arguments) -> None:
        size = a.target_probs.shape[1]
        if outside := [token for token in a.draft_tokens if not 0 <= token < size]:
            raise ValueError(f"draft_tokens hold {outside[0]}; they take ids of a vocabulary of {size}")

    def guard_signs(self, name: str, rows: np.ndarray) -> None:
        if not (f64(rows) >= 0).all():
            raise ValueError(f"{name} hold a number that is negative or NaN")

    def guard_sums(self, name: str, rows: np.ndarray) -> None:
        if (np.abs(f64(rows).sum(axis=-1) - 1) > mass_slack(rows.shape[-1], rows.dtype.name)).any():
            raise ValueError(f"{name} have a row that does not sum to one")

    def guard_uniform(self, a: Arguments) -> None:
        if not ((f64(a.uniform) >= 0) & (f64(a.uniform) < 1)).all():
            raise ValueError("uniform has numbers outside [0, 1)")

    def evaluate(self, a: Arguments, precision: Precision) -> Answer:
        """Budget: none; inputs keep clear of what rounding decides."""
        return exactly(self.answer(a))

    def result_dtype(self, a: Arguments) -> str:
        return "int64"

    def answer(self, a: Arguments) -> list[int]:
        tokens = [int(token) for token in a.draft_tokens]
        return self.verified(tokens, f64(a.draft_probs), f64(a.target_probs), f64(a.uniform))

    def verified(self, tokens: list[int], q: np.ndarray, p: np.ndarray, u: np.ndarray) -> list[int]:
        """The ids that come of drafted ones. q: k×V; p: (k+1)×V; u: k+1."""
        count = self.kept(tokens, q, p, u)
        return [*tokens[:count], self.draw(self.weights(tokens, q, p, count), self.last_number(u, count))]

    def kept(self, tokens: list[int], q: np.ndarray, p: np.ndarray, u: np.ndarray) -> int:
        """How many drafts are kept, up to the first that is not."""
        for i, token in enumerate(tokens):
            if not self.keeps(float(u[i]), float(q[i, token]), float(p[i, token])):
                return i
        return len(tokens)

    def keeps(self, uniform: float, q: float, p: float) -> bool:
        return uniform * q < p

    def weights(self, tokens: list[int], q: np.ndarray, p: np.ndarray, count: int) -> np.ndarray:
        """What the id after the kept ones is drawn from, V, up to a factor."""
        return p[len(tokens)] if count == len(tokens) else self.residual(q[count], p[count])

    def residual(self, q: np.ndarray, p: np.ndarray) -> np.ndarray:
        rest = np.maximum(p - q, 0)
        return rest if rest.any() else p

    def last_number(self, u: np.ndarray, count: int) -> float:
        """The uniform number of the last draw."""
        return float(u[-1])

    def draw(self, weights: np.ndarray, uniform: float) -> int:
        """The smallest id whose cdf exceeds the uniform number."""
        cdf = np.cumsum(weights)
        return int(np.argmax((cdf > uniform * cdf[-1]) & (weights > 0)))


@dataclass
class Run:
    """A request at work. sequence: prompt and committed ids; drafted: the drafts of the round and what they came from."""

    target: Player
    draft: Player
    request: Request
    target_cache: list[FixedCache]
    draft_cache: list[FixedCache]
    sequence: list[int]
    drafted: list[int] = field(default_factory=list)
    rows: list[np.ndarray] = field(default_factory=list)
    out: int = 0


class SpeculativeGenerate(Operation):
    """The loop. Besides the contract's own arguments a call says how the kit consumes the iterator.

    target, draft: descriptions of toys (`duet.Player.of`) and the dtype of their logits; no draft: the target. uniforms: None, the numbers, or
    {"seed": n} for any number of them; {"cells": n} asks for the distribution of what comes out (`duet.distribution`).
    until: how many ids the consumer takes before it closes the iterator, None: all; beside: tokens and max_tokens of a second
    request to the same models, and what else of it is another, of eos, num_draft_tokens and filters; order: "turns" or "after"; seen: what is looked at
    (see `duet.play`); overwrite: what the caller changes once the first id is out, its "tokens" or its list of "ends"; ends:
    what becomes of the id that ends the ids; eos_as: how such ids are given (`spec/ends.py`).
    """

    signature = Signature.parse(
        f"{GENERATE}(target, draft, tokens, max_tokens, num_draft_tokens=4, eos=(), temperature=0.0, top_k=None,"
        " top_p=1.0, uniforms=None, until=None, beside=None, order='turns', seen=('ids',), overwrite='', ends='dropped', eos_as='ids')"
    )
    parts = STORY
    either: ClassVar = {"ends": ("SPEC-26",)}
    narrows: ClassVar = {
        "eos": ("stops", (0,)),
        "temperature": ("temperatures", ("greedy",)),
        "uniforms": ("temperatures", ("greedy",)),
        "top_k": ("filters", ("none", "top_p")),
        "top_p": ("filters", ("none", "top_k")),
    }

    def evaluate(self, a: Arguments, precision: Precision) -> Answers:
        """Budget: none, ids are ids and the probabilities of an enumeration are dyadic."""
        if a.seen == ("distribution",):
            return {"distribution": exactly(joint(a))}
        return {name: exactly(value) for name, value in self.seen(a).items()}

    def respond(self, a: Arguments) -> Any:
        return {name: f64(value) for name, value in self.seen(a).items()}

    def seen(self, a: Arguments) -> dict[str, Any]:
        players = players_of(a)
        return consumed(lambda request: self.stream(players, request), players, a)

    def part_dtype(self, part: str, a: Arguments) -> str:
        return "float64" if part == "distribution" else "int64"

    def stream(self, players: tuple[Player, Player], request: Request) -> Iterator[Any]:
        """The iterator that the caller gets."""
        self.check_prompt(request)
        self.check_limit(request)
        self.check_drafts(request)
        self.check_filters(request)
        self.check_uniforms(request)
        return self.begin(players, request)

    def check_prompt(self, request: Request) -> None:
        if np.ndim(request.tokens) != 1 or not len(request.tokens):
            raise ValueError(f"tokens are {np.shape(request.tokens)}; they take one axis and one id at least")

    def check_limit(self, request: Request) -> None:
        if request.max_tokens < 0:
            raise ValueError(f"max_tokens is {request.max_tokens}")

    def check_drafts(self, request: Request) -> None:
        if request.num_draft_tokens < 0:
            raise ValueError(f"num_draft_tokens is {request.num_draft_tokens}")

    def check_filters(self, request: Request) -> None:
        Sampler().guard(sampler_arguments(request, np.zeros((1, 1))))

    def check_uniforms(self, request: Request) -> None:
        if request.temperature > 0 and request.uniforms is None:
            raise ValueError(f"uniforms are None; a temperature of {request.temperature} takes numbers in [0, 1)")

    def begin(self, players: tuple[Player, Player], request: Request) -> Iterator[Any]:
        target, draft = players
        caches = target.make_cache(), draft.make_cache()
        self.check_caches(*caches)
        return self.ids(Run(target, draft, self.taken(request), *caches, self.prompt(request)))

    def taken(self, request: Request) -> Request:
        """The request as it was made: the caller's list of ends stays out of it."""
        return replace(request, eos=tuple(request.eos))

    def check_caches(self, target: list[FixedCache], draft: list[FixedCache]) -> None:
        for name, cache in (("target", target), ("draft", draft)):
            if not all(hasattr(layer, "rewind") for layer in cache):
                raise ValueError(f"{name} has a cache that cannot be rewound")

    def prompt(self, request: Request) -> list[int]:
        return [int(token) for token in request.tokens]

    def ids(self, run: Run) -> Iterator[Any]:
        while run.out < run.request.max_tokens:
            self.draft(run, self.count(run))
            ids = self.verified(run, self.score(run))
            run.sequence = run.sequence + ids
            self.rewind(run)
            for token in self.shown(run, ids):
                if self.stops(run, token):
                    yield from map(self.out, left_of(token, run.request.ends))
                    return
                run.out += 1
                yield self.out(token)

    def count(self, run: Run) -> int:
        """How many drafts the round makes: no more than can come out."""
        return min(run.request.num_draft_tokens, run.request.max_tokens - run.out - 1)

    def draft(self, run: Run, count: int) -> None:
        """Draft ids one by one, each from what the draft's model makes of all before it."""
        run.drafted, run.rows = [], []
        for _ in range(count):
            row = self.feed_draft(run)
            token, chances = self.propose(run, row)
            run.drafted.append(token)
            run.rows.append(chances)

    def feed_draft(self, run: Run) -> np.ndarray:
        """Feed the draft's model what its cache lacks; return the logits after it."""
        return run.draft(self.lacking(run, run.draft_cache), run.draft_cache)[-1]

    def lacking(self, run: Run, cache: list[FixedCache]) -> list[int]:
        """What a cache lacks of the sequence and the drafts."""
        return (run.sequence + run.drafted)[cache[0].offset :]

    def propose(self, run: Run, row: np.ndarray) -> tuple[int, np.ndarray]:
        """A draft, and what `verify` is told that it was drawn from."""
        if run.request.temperature == 0:
            return int(np.argmax(row)), row
        chances = self.draft_chances(run, row[None])[0]
        return Verify().draw(chances, self.number(run)), chances

    def score(self, run: Run) -> np.ndarray:
        """Feed the target what its cache lacks and the drafts; return the logits after the sequence and each draft."""
        rows = run.target(self.lacking(run, run.target_cache), run.target_cache)
        if run.rows and run.rows[0].shape[-1] != rows.shape[-1]:
            self.vocabularies_differ()
        return rows[len(rows) - 1 - len(run.drafted) :]

    def vocabularies_differ(self) -> None:
        raise ValueError("draft has another vocabulary than target")

    def verified(self, run: Run, rows: np.ndarray) -> list[int]:
        """The ids of the round. rows: logits (k+1)×V of the target."""
        if run.request.temperature == 0:
            return self.agreed(run.drafted, np.argmax(rows, axis=-1).tolist())
        p = self.target_chances(run, rows)
        q = np.array(run.rows).reshape(-1, p.shape[-1])
        return self.verify(run.drafted, q, p, np.array([self.number(run) for _ in range(len(p))]))

    def agreed(self, drafted: list[int], right: list[int]) -> list[int]:
        """The target's own ids, up to the first that is not the draft's."""
        wrong = [i for i, token in enumerate(drafted) if token != right[i]]
        return right[: wrong[0] + 1] if wrong else right

    def verify(self, drafted: list[int], q: np.ndarray, p: np.ndarray, u: np.ndarray) -> list[int]:
        return Verify().verified(drafted, q, p, u)

    def target_chances(self, run: Run, rows: np.ndarray) -> np.ndarray:
        return chances(rows, run.request)

    def draft_chances(self, run: Run, rows: np.ndarray) -> np.ndarray:
        return chances(rows, run.request)

    def number(self, run: Run) -> float:
        """The next uniform number."""
        assert run.request.uniforms is not None
        number = next(run.request.uniforms, None)
        if number is None:
            return self.without_numbers(run)
        self.check_number(number)
        return number

    def without_numbers(self, run: Run) -> float:
        raise ValueError("uniforms have run out")

    def check_number(self, number: float) -> None:
        if not 0 <= number < 1:
            raise ValueError(f"uniforms hold {number}; they take numbers in [0, 1)")

    def rewind(self, run: Run) -> None:
        """Take back from both caches what is not committed, and the last id, which no model has seen."""
        for cache in (run.target_cache, run.draft_cache):
            self.take_back(cache, max(self.excess(run, cache), 0))

    def excess(self, run: Run, cache: list[FixedCache]) -> int:
        """How many tokens of a cache are to be taken back."""
        return cache[0].offset - (len(run.sequence) - 1)

    def take_back(self, cache: list[FixedCache], n: int) -> None:
        for layer in cache if n else ():
            layer.rewind(n)  # type: ignore[attr-defined]

    def shown(self, run: Run, ids: list[int]) -> list[int]:
        """What of a round's ids can come out."""
        return ids[: run.request.max_tokens - run.out]

    def stops(self, run: Run, token: int) -> bool:
        return token in run.request.eos

    def out(self, token: int) -> Any:
        """The id as the caller gets it."""
        return token


def players_of(a: Arguments) -> tuple[Player, Player]:
    """Target and draft of a call; without a description of the draft it is the target itself."""
    target = Player.of(a.target)
    return target, target if a.draft is None else Player.of(a.draft)


def chances(rows: np.ndarray, request: Request) -> np.ndarray:
    """The probabilities R×V that ids are drawn with: by temperature, then the filters, as in sampling."""
    return Sampler().probabilities(sampler_arguments(request, rows))


def sampler_arguments(request: Request, rows: np.ndarray) -> Arguments:
    """What `Sampler` is called with for a request. rows: logits R×V."""
    about = {"temperature": request.temperature, "top_k": request.top_k, "top_p": request.top_p}
    return Sampler().bind({**about, "logits": rows})


def consumed(
    start: Callable[[Request], Iterable[Any]],
    players: tuple[Player, Player],
    a: Arguments,
    is_array: Callable[[Any], bool] = lambda x: isinstance(x, np.ndarray),
) -> dict[str, Any]:
    """Consume the generators of a call; return what `a.seen` names."""
    if a.seen != ("distribution",):
        return play(start, players, requests_of(a, is_array), a)

    def run(numbers: Iterator[float]) -> Sequence[int]:
        (request,) = requests_of(a, is_array)
        request.uniforms = numbers
        return list(start(request))

    size = len(a.target["rows"][0])
    return {"distribution": distribution(run, size, a.max_tokens, a.uniforms["cells"])}


def requests_of(a: Arguments, is_array: Callable[[Any], bool]) -> list[Request]:
    """The requests of a call: the first, and that of `beside`, each with uniform numbers of its own."""
    tokens = a.tokens if is_array(a.tokens) else list(a.tokens)
    if a.overwrite and isinstance(tokens, np.ndarray):
        # The call's own is not to change.
        tokens = tokens.copy()
    ends = list(a.eos) if a.overwrite == "ends" else tuple(a.eos)
    filters = {"temperature": a.temperature, "top_k": a.top_k, "top_p": a.top_p}
    uniforms = numbers_of(a.uniforms)
    first = Request(tokens, a.max_tokens, a.num_draft_tokens, ends, **filters, uniforms=uniforms, ends=a.ends)
    if not a.beside:
        return [first]
    own = {name: value for name, value in a.beside.items() if name != "tokens"}
    other = a.beside["tokens"]
    more = replace(first, tokens=other if is_array(other) else list(other), **own, name="beside")
    return [first, replace(more, uniforms=numbers_of(a.uniforms))]


def numbers_of(uniforms: Any) -> Iterator[float] | None:
    """The uniform numbers of a call."""
    if isinstance(uniforms, dict):
        random = np.random.default_rng(uniforms.get("seed", 0))
        return (float(random.random()) for _ in iter(int, 1))
    return None if uniforms is None else iter(uniforms)


def row_chances(a: Arguments) -> np.ndarray:
    """The probabilities of each row of the target's table, tempered and filtered: R×V."""
    (request,) = requests_of(a, lambda tokens: False)
    table = players_of(a)[0].toy
    assert isinstance(table, Table)
    return chances(table.logits, request)


def joint(a: Arguments) -> np.ndarray:
    """The distribution of the first ids after a prompt, by the target's table alone; last the rest: what an id ends sooner."""
    player = Player.of(a.target)
    table = player.toy
    assert isinstance(table, Table)
    found = np.ones(1)
    prompt = [int(token) for token in a.tokens]
    outputs: list[list[int]] = [[]]
    for _ in range(a.max_tokens):
        rows = [table.chances[table.row_of(prompt + output)] for output in outputs]
        found = np.concatenate([chance * row for chance, row in zip(found, rows, strict=True)])
        outputs = [[*output, token] for output in outputs for token in range(table.chances.shape[1])]
    whole = np.array([ended(output, a.eos, a.ends) == output for output in outputs])
    return np.append(np.where(whole, found, 0.0), found[~whole].sum())


def exactly(value: Any) -> Answer:
    """An answer without rounding."""
    value = f64(value)
    return Answer(value, np.zeros(value.shape))


CONTRACT = Contract(
    component="speculative",
    title="speculative decoding: drafts, verified without loss",
    version=1,
    operations=(Verify, SpeculativeGenerate),
    envelope={
        "dtypes": ("float32", "float16", "bfloat16"),
        "token_dtypes": ("int32", "int64", "uint32"),
        "prompts": ("list", "array"),
        "drafts": ("list", "array"),
        "drafters": ("same", "near", "far", "wrong", "other", "itself"),
        "temperatures": ("greedy", "one", "other"),
        "filters": ("none", "top_k", "top_p", "both"),
        "stops": (0, 1, 2, 3, 9),
        "ends": ENDS,
        "eos_as": EOS_AS,
        "num_draft_tokens": 64,
        "zero_num_draft_tokens": (True, False),
        "zero_max_tokens": (True, False),
        "prompt": 2048,
        "vocabulary": 151936,
    },
    requirements=SENTENCES,
    alone=ONE_ID,
)
