"""The serving engine: many requests on one model, each served as if it were alone.

    Engine(model, *, num_pages=256, page_size=16, max_requests=8, max_prefill_tokens=512, prefix_caching=True,
           draft=None, num_draft_tokens=4, clock=time.perf_counter)
    .add_request(tokens, max_tokens, priority=0, eos=()) -> id   the larger priority goes first, then who came first
    .step() -> [(id, token), …]     what one step made, in order for each request; an EOS id does not come out, unless ends
                                    are kept; nothing, and no error, when there is nothing to do
    .run() -> {id: output}          steps until nothing is unfinished; of every request that is not cancelled. A loop of its
                                    own keeps to the same order and limits
    .cancel(id)                     the request ends as it is and gives its pages back
    .output(id), .finished(id)      the ids so far; whether there will be no more (may be missing, as has_unfinished may: who adds
                                    requests that no id ends can count what steps and runs give)
    .metrics(id) -> ttft, tpot, itl, e2el     as `metrics` has them, by the clock
    .num_free_pages, .has_unfinished
    .logits(id)                     (may be missing) the logits V that the last id of the output was chosen by

`model` and `draft` are the subject's own `Qwen3(config, weights)` or `Llama(config, weights)`. `num_pages` pages of
`page_size` tokens hold the keys and values of all requests, at most `max_requests` of which run at a time; a step
computes at most `max_prefill_tokens` tokens of prompts. The last id of a request is never computed and needs no slot;
who wants one for it all the same is given pools that have it (`last_id_takes_slot`). An engine that takes no `num_pages` or
`page_size` has memory of its own, enough for all that it is given; one that takes no `max_requests` or `max_prefill_tokens` is
asked for no such limit.
Preemption is by recomputation (Kwon et al. 2023, section 4.5): a request that is preempted gives its pages back, and what it
had is computed again, within that limit, as far as the prefix cache does not know it.
A page that no request holds is free, whatever the prefix cache knows of it. Without pages of its own an engine counts
what its requests would fill, or does not offer `num_free_pages`. A draft guesses `num_draft_tokens` ids at a time.
An engine whose add_request takes no `priority`, or no `eos`, is given none; where no limit of 0 is taken,
`zero_max_tokens: [False]` in the envelope says so. When the model raises in a step, the exception passes to the caller, and
the next step goes on as if nothing had happened; an engine that ends then says `failing_models: [False]`. One that keeps the
id that ends a request, as vLLM's does, says `ends: ["kept"]` (`spec/ends.py`): it is then the last id of the output, with a
time and logits as any other. Ids of requests are anything hashable.

A call is a story: `steps` of one engine, and then as many steps as are needed to serve what is left. `seen` says what is
looked at (`spec/engine_stories.py`). Steps beside the methods: `fail(after)`, a step, or a run, in which the model, or the
draft, fails at its n-th use (a call, or a look at anything of it, such as make_cache), at its n-th call, or when that is
done and its caches hold the tokens; `overwrite(request)`, the caller changes the lists that it gave; `strange(method)`, the engine is
asked about an id that no request has; `add` and `step` may be of a second engine on the same model, of which one request more may run, and whose pages may be of another size. A request has the number
of the step that added it.

The oracle serves nothing: it decodes each request by itself, greedily, in float64 (`alone`). The ids must be equal. So
that no rounding can excuse another argmax, the suites draw requests on whose way the largest logit lies far above the second
(PROPERTIES, judging and decisions), of models that depend strongly on all that they see; both is measured where the inputs are tested.

Left open: which request runs in which step, when preemption happens, what an engine tells of a request after it was
cancelled, whether cancelling one that is finished is refused, whether metrics and logits are refused before the first id,
whether the pages of a request are free once its last id alone is to come, as where ids come out a step after theirs, what
sizes an engine has that are not said, and whether a step that fails keeps the ids that it had chosen before: then the next
step gives them.

Sources: the nano-vLLM post; the tiny-llm course, week 2 days 6 and 7, week 3 day 2; Kwon et al. 2023; Leviathan et al. 2023.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from inferspec.spec.contract import (
    STORY,
    Answer,
    Answers,
    Arguments,
    Aspect,
    Beside,
    Contract,
    Level,
    Requirement,
    Signature,
)
from inferspec.spec.ends import ENDS, ended
from inferspec.spec.engine_decoder import FAMILIES, forward
from inferspec.spec.engine_model import PlainEngine, Served
from inferspec.spec.engine_stories import Fuse, watch
from inferspec.spec.numerics import Precision, f64, operations, unit_roundoff
from inferspec.spec.transformer import Memory

KEPT = 4096
"""Requests whose way is kept."""

HORIZON = 2.0**15
"""Seconds that no story's clock reaches."""

_WAYS: dict[Any, tuple[list[np.ndarray], Memory, Any]] = {}


def alone(model: Mapping[str, Any], prompt: Sequence[int], length: int) -> tuple[list[int], list[np.ndarray]]:
    """What a request decodes to by itself: `length` ids, and the logits (float64) that each was chosen by.

    model: family, config and weights, which are not to be changed: ways once gone are remembered.
    """
    key = (id(model["weights"]), model["family"], tuple(prompt))
    rows, memory, _ = _WAYS.setdefault(key, ([], {}, model["weights"]))
    while len(rows) < length:
        tokens = [int(rows[-1].argmax())] if rows else list(prompt)
        rows.append(forward(model, tokens, memory)[-1])
    if len(_WAYS) > KEPT:
        del _WAYS[next(iter(_WAYS))]
    return [int(row.argmax()) for row in rows[:length]], rows[:length]


def last_logits(model: Mapping[str, Any], prompt: Sequence[int], length: int) -> Answer:
    """The logits that the last of `length` ids is chosen by, with the budget of a whole forward pass in float32."""
    ids, rows = alone(model, prompt, length)
    decoder = FAMILIES[model["family"]]()
    tokens = np.array([[*prompt, *ids[: length - 1]]], np.int64)
    a = Arguments(config=model["config"], weights=model["weights"], tokens=tokens)
    answer = decoder.evaluate(a, Precision.FLOAT32)
    return Answer(rows[-1], answer.budget[0, -1])


class Engine(PlainEngine):
    """The story of an engine. All that a schedule cannot change is exact; only of times there is a rounding."""

    signature = Signature.parse(
        "Engine(model, draft, num_pages, page_size, max_requests, max_prefill_tokens, prefix_caching, num_draft_tokens,"
        " steps, seen=('outputs',), ticking=False, ends='dropped')"
    )
    parts = STORY
    either: ClassVar = {"ends": ("ENG-14",)}
    methods = ("add_request", "step", "run")
    takes: ClassVar = {"add_request": ("tokens", "max_tokens"), "step": (), "run": ()}
    optional_methods: ClassVar = {
        "output": ("outputs", ("untold",)),
        "finished": ("outputs", ("untold",)),
        "has_unfinished": ("outputs", ("untold",)),
        "logits": ("logits", ("untold",)),
        "num_free_pages": ("pages", ("untold",)),
        "metrics": ("metrics", ("untold",)),
        "cancel": ("cancelling", (False,)),
    }
    only_read = frozenset({"num_free_pages", "has_unfinished"})
    optional_options: ClassVar = {
        "draft": ("drafts", ("none",)),
        "prefix_caching": ("prefix_caching", (True,)),
        "num_pages": ("short_pools", (False,)),
        "page_size": ("page_sizes", (16,)),
        "max_requests": ("request_limits", (False,)),
        "max_prefill_tokens": ("chunk_limits", (False,)),
        "clock": ("metrics", ("untold",)),
    }
    optional_parameters: ClassVar = {
        ("add_request", "priority"): ("priorities", (False,)),
        ("add_request", "eos"): ("stops", (False,)),
    }
    beside: ClassVar[tuple[Beside, ...]] = (
        Beside("Qwen3", narrows=("models", ("llama",))),
        Beside("Llama", narrows=("models", ("qwen3",))),
    )

    def guard(self, a: Arguments) -> None:
        if a.draft is not None and a.draft["config"]["vocab_size"] != a.model["config"]["vocab_size"]:
            raise ValueError("the draft has another vocabulary")

    def part_dtype(self, part: str, a: Arguments) -> str:
        return "float64"

    def served(self, a: Arguments, clock: Callable[[], float]) -> Served:
        """The engine, as its callers see it."""
        return Served(self, a, clock)

    def respond(self, a: Arguments) -> Any:
        """What the plain engine does in the story."""
        engines: list[Served] = []

        def make(clock: Callable[[], float], **other: Any) -> Served:
            engines.append(self.served(Arguments(**{**vars(a), **other}), clock))
            return engines[-1]

        def burn(n: int | None, error: str, draft: bool, at: str) -> None:
            first = engines[0].m
            first.fuse, first.tripped, first.fails = n, first.tripped and n is None, (error, draft, at)

        def listen(listener: Callable[[], None]) -> None:
            engines[0].m.heard = listener

        told = watch(make, a, Fuse(burn, lambda: engines[0].m.tripped, listen))
        return {part: value if isinstance(value, str) else f64(np.asarray(value)) for part, value in told.items()}

    def evaluate(self, a: Arguments, precision: Precision) -> Answers:
        """Budgets: none, but for times, which are sums and quotients of the clock's: n + 4 roundings of what it shows."""
        told: dict[str, Any] = {}
        asked: dict[int, list[int]] = {}
        cancelled = self._gone(a, len(a.steps))
        engines = 1 + max((given.get("engine", 0) for step, given in a.steps), default=0)
        for number, (step, given) in enumerate(a.steps, 1):
            if step == "strange":
                told[f"{number} refused"] = 1
            elif step == "run":
                told[f"{number} ran"] = len(set(asked) - self._gone(a, number))
            elif step == "add":
                try:
                    self.check(a, given["tokens"], given["max_tokens"])
                except ValueError:
                    told[f"{number} refused"] = 1
                    continue
                ids, rows = alone(a.model, given["tokens"], given["max_tokens"])
                asked[number] = ended(ids, given.get("eos", ()), a.ends)
                if number not in cancelled:
                    told |= self._told(a, number, asked[number], rows)
        last_run = max((number for number, (step, _) in enumerate(a.steps, 1) if step == "run"), default=0)
        told |= {f"{k} run": ids for k, ids in asked.items() if k < last_run and k not in cancelled}
        together: dict[str, dict[str, Any]] = {
            "pages": {
                "free at the end": [a.num_pages] * engines,
                "free pages beyond those there are": 0,
                "pages held while idle": 0,
            },
            "ends": {
                "has_unfinished misled": 0,
                "ids that a run had returned": 0,
                "has_unfinished at the end": [0] * engines,
            },
            "order": {"order": self._in_order(a, {k: ids for k, ids in asked.items() if k not in cancelled})},
            "filled": {"pages free that a request fills": 0},
            "kept": {"given things that changed": 0},
        }
        for group in a.seen:
            told |= together.get(group, {})
        return {part: Answer(f64(np.asarray(x)), self._budget(part, np.asarray(x))) for part, x in told.items()}

    def _gone(self, a: Arguments, number: int) -> set[int]:
        steps = a.steps[:number]
        return {given["request"] for step, given in steps if step == "cancel" and not given.get("finished")}

    def _told(self, a: Arguments, number: int, ids: list[int], rows: list[np.ndarray]) -> dict[str, Any]:
        watched = not any(step == "run" for step, _ in a.steps)
        groups: dict[str, dict[str, Any]] = {
            "outputs": {"output": ids, "finished": 1},
            "stream": {"streamed": ids, "output unlike the steps": 0} if watched else {},
            "pace": {"most in a step": min(len(ids), 1)} if watched else {},
            "metrics": {"ttft": 0, "tpot": 0, "itl": np.zeros(max(len(ids) - 1, 0)), "e2el": 0, "meanwhile": 0},
            "identities": {"identity": 0, "gaps": 0, "mean gap": 0, "below 0": 0},
            "computing": {"before it was computed": 0, "in no time": 0},
            "latest": {"logits of another id": 0},
        }
        return {f"{number} {name}": x for group in a.seen for name, x in groups.get(group, {}).items()}

    def _in_order(self, a: Arguments, asked: Mapping[int, list[int]]) -> list[int]:
        """Requests by their first ids, where one runs at a time and all came before the first step."""
        priority = {number: a.steps[number - 1][1].get("priority", 0) for number in asked}
        return sorted((k for k, ids in asked.items() if ids), key=lambda k: (-priority[k], k))

    def _budget(self, part: str, value: np.ndarray) -> np.ndarray:
        timed = part.split(" ", 1)[-1] in ("ttft", "tpot", "itl", "e2el", "identity", "mean gap", "meanwhile")
        return np.full(value.shape, operations(unit_roundoff("float64"), 64) * HORIZON if timed else 0.0)


COURSE = "tiny-llm course, week 2 days 6 and 7"
PREFIX = "PROPERTIES PC1, PC2, PC5, PC9"


def _requirement(
    number: int, text: str, source: str, aspect: Aspect = Aspect.VALUE, level: Level = Level.MUST
) -> Requirement:
    return Requirement(f"ENG-{number:02}", text, "Engine", level, aspect, source)


ENG_01 = _requirement(
    1,
    "a request's output is what greedy decoding makes of it alone, whatever the requests beside it",
    f"{COURSE}; PROPERTIES CB1, BK1",
)
ENG_02 = _requirement(2, "and whenever it and others arrive", "PROPERTIES CB1")
ENG_03 = _requirement(3, "and in whatever chunks prompts are computed", "PROPERTIES CP1, CP2, CP3")
ENG_04 = _requirement(4, "and however many tokens a page has", "tiny-llm course, week 3 day 2; PROPERTIES PA1")
ENG_05 = _requirement(5, "and however often it is preempted", "PROPERTIES SC1, SC2")
ENG_06 = _requirement(6, "and however much of its prompt others have in common with it", PREFIX)
ENG_07 = _requirement(7, "and when all of its prompt was computed before", "PROPERTIES PC2, CP2")
ENG_08 = _requirement(8, "and when what was computed of it before is gone, or its pages now hold other tokens", PREFIX)
ENG_09 = _requirement(9, "and when its prompt goes on from another request's output", "PROPERTIES PC8, PC9")
ENG_10 = _requirement(10, "and whatever a draft guesses", "Leviathan et al. 2023; PROPERTIES SP1, SP4, SP5")
ENG_11 = _requirement(11, "and when the draft guesses right every time", "PROPERTIES SP3")
ENG_12 = _requirement(12, "and whatever its priority and those of others", "PROPERTIES SC3")
ENG_13 = _requirement(13, "max_tokens ids come out, none where that is 0", "PROPERTIES CB3")
ENG_14 = _requirement(
    14,
    "an end-of-sequence id ends a request, and does not come out, or is the last of its output where ends are declared to be kept",
    "PROPERTIES CB3, SP5",
)
ENG_15 = _requirement(
    15, "an end-of-sequence id may be the first that comes", f"{COURSE}, its reference loop; PROPERTIES CB3"
)
ENG_16 = _requirement(
    16, "of waiting requests that with the larger priority goes first, then the one that came first", "PROPERTIES SC3"
)
ENG_17 = _requirement(
    17,
    "steps give every id of an output once, in order, with the id of its request, and nothing that a run has returned",
    "PROPERTIES CB2",
)
ENG_18 = _requirement(
    18, "without a draft a step gives at most one id of a request: they come as they are made", "PROPERTIES SC5"
)
ENG_19 = _requirement(
    19, "run returns the outputs of all requests that are not cancelled, those finished before too", "PROPERTIES CB2"
)
ENG_20 = _requirement(
    20, "every request is finished in the end, and has_unfinished says until when", f"{COURSE}; PROPERTIES CB2, SC4"
)
ENG_21 = _requirement(
    21, "pages that are free are never fewer than none, and are all pages when nothing is unfinished", "PROPERTIES PG4"
)
ENG_22 = _requirement(
    22, "what a cancelled request gave is the beginning of its output, and nothing comes after", "PROPERTIES CB5"
)
ENG_23 = _requirement(23, "cancelling a request changes no other request's output", "PROPERTIES CB1, CB4")
ENG_24 = _requirement(24, "a cancelled request's pages are free, wherever it was", "PROPERTIES PG4, PG7, SP8")
ENG_25 = _requirement(
    25,
    "what a model raises in a step passes to the caller, and the next step goes on as if nothing had happened",
    "PROPERTIES PG7",
)
ENG_26 = _requirement(26, "an empty prompt is refused", "PROPERTIES X9", Aspect.GUARD)
ENG_27 = _requirement(27, "a max_tokens below 0 is refused", "PROPERTIES X9", Aspect.GUARD)
ENG_28 = _requirement(28, "ids outside the vocabulary are refused", "PROPERTIES X9", Aspect.GUARD)
ENG_29 = _requirement(
    29, "a request that all pages together could never hold is refused when it is added", "PROPERTIES SC4", Aspect.GUARD
)
ENG_30 = _requirement(30, "a refused request changes nothing", "PROPERTIES PG5, X9")
ENG_31 = _requirement(31, "a request that fills all pages to the last slot is served", "PROPERTIES SC6")
ENG_32 = _requirement(
    32,
    "metrics are those of the request's own arrival and ids, by the clock, at any moment; before the first id they may be refused",
    "PROPERTIES ME1, ME3, ME5",
)
ENG_33 = _requirement(
    33,
    "TTFT and all gaps make E2EL, gaps are one fewer than ids, TPOT is their mean and None of one id",
    "PROPERTIES ME1",
)
ENG_34 = _requirement(
    34,
    "the caller's list of tokens is not changed, and what the caller does to it, or to an output, does not show",
    "PROPERTIES X6",
)
ENG_35 = _requirement(
    35,
    "two engines on one model have nothing else in common: not their limits, nor who was cancelled of either",
    "PROPERTIES X7",
)
ENG_36 = _requirement(
    36,
    "logits are those that the last id of the output was chosen by, within the model's budget, after a step that failed too",
    "PROPERTIES CB1, CB4",
)
ENG_37 = _requirement(
    37,
    "logits are bit for bit those of the request alone",
    "batch-invariant inference; PROPERTIES X11",
    level=Level.SHOULD,
)
ENG_38 = _requirement(
    38, "a prompt that was computed before takes fewer steps to its first id", "PROPERTIES PC9", level=Level.SHOULD
)
ENG_39 = _requirement(39, "an id that no request has is refused", "PROPERTIES X9", Aspect.GUARD, Level.SHOULD)
ENG_40 = _requirement(40, "a draft of another vocabulary is refused", "PROPERTIES X9", Aspect.GUARD, Level.SHOULD)
ENG_41 = _requirement(
    41,
    "right guesses come out together: num_draft_tokens and one more in a step",
    "Leviathan et al. 2023; PROPERTIES SP3, SP4, SP9",
    level=Level.SHOULD,
)
ENG_42 = _requirement(
    42,
    "a step computes at most max_prefill_tokens tokens of all prompts together, and with them what is computed again of requests "
    "that were preempted",
    "Agrawal et al. 2023 (Sarathi); PROPERTIES SC5, CP2",
)
ENG_43 = _requirement(43, "at most max_requests requests run at a time", "Yu et al. 2022 (Orca); PROPERTIES SC5")
ENG_44 = _requirement(
    44,
    "right guesses before a wrong one come out with it, and after it num_draft_tokens are guessed again, rightly",
    "Leviathan et al. 2023; PROPERTIES SP4, SP9",
    level=Level.SHOULD,
)
ENG_45 = _requirement(
    45,
    "the time of an id is not before the model was used for it, and in a run too each id has a time of its own",
    "PROPERTIES ME1, ME3",
)
ENG_46 = _requirement(46, "pages that a generating request fills are not free", "PROPERTIES PG1, PG3")
ENG_47 = _requirement(
    47, "without prefix_caching what was computed of a prompt does not spare another request its own", "PROPERTIES X13"
)
ENG_48 = _requirement(
    48,
    "a request that goes past the draft's positions is served as any other, or refused when it is added",
    "PROPERTIES SP7, SC4",
)
ENG_49 = _requirement(
    49,
    "the caller's list of ids that end a request is not changed, and what the caller does to it does not show",
    "PROPERTIES X6",
)
ENG_50 = _requirement(
    50,
    "a request that is finished stays so when it is cancelled: its output can be read, and a run returns it",
    "PROPERTIES CB2",
    level=Level.SHOULD,
)
ENG_51 = _requirement(
    51,
    "an output that was read, what a step or a run gave, and the gaps that metrics told keep their values, whatever comes later",
    "https://github.com/huggingface/transformers/pull/46670; PROPERTIES X6",
)
ENG_52 = _requirement(
    52,
    "of a float32 model an id is chosen by logits that are not rounded to 16 bits: what alone tells two of them apart decides",
    "https://github.com/sgl-project/sglang/pull/773; PROPERTIES SA6, judging",
    level=Level.SHOULD,
)
ENG_53 = _requirement(
    53,
    "and so does one that goes on from what the last step of a request computed, of its prompt or of its output",
    "PROPERTIES PC9",
    level=Level.SHOULD,
)
ENG_54 = _requirement(
    54,
    "an end that is no id of the vocabulary, as the -1 of some configurations, ends nothing, or its request is refused when "
    "it is added",
    "https://huggingface.co/docs/transformers/main_classes/text_generation, eos_token_id; PROPERTIES CB3",
    level=Level.SHOULD,
)
ENG_55 = _requirement(
    55,
    "of a prompt that goes on from what was computed, of a prompt and its output, no step is spent on the whole pages of that, in "
    "however many steps each was filled; they are hit again and again",
    "PROPERTIES PC9",
    level=Level.SHOULD,
)
ENG_56 = _requirement(
    56,
    "ids are the same in another thread than the one that loaded the engine",
    "https://github.com/ml-explore/mlx-lm/pull/1090; PROPERTIES X7",
    level=Level.SHOULD,
)
ENG_57 = _requirement(
    57,
    "a request that runs gives its pages to none of a smaller priority",
    "PROPERTIES SC3; Kwon et al. 2023, section 4.5",
)


CONTRACT = Contract(
    component="engine",
    title="the serving engine",
    version=1,
    operations=(Engine,),
    envelope={
        "models": ("qwen3", "llama"),
        # What the models of stories are, of those that the component of the model may leave out of its own envelope.
        "head_dims": ("free", "multiple", "absent"),
        "dtypes": ("float32",),
        "packing": ("dense",),
        "biases": ("none",),
        "rope": ("rope_theta",),
        "tied": (False,),
        "page_sizes": (1, 2, 3, 8, 16, 32, 64, 256),
        "chunks": (64, 1, 3, 7, 20, 512, 2048),
        "prefix_caching": (True, False),
        "drafts": ("none", "near", "perfect", "other"),
        "outputs": ("told", "untold"),
        "logits": ("untold", "told"),
        "pages": ("told", "untold"),
        "metrics": ("told", "untold"),
        "priorities": (True, False),
        "stops": (True, False),
        "ends": ENDS,
        "cancelling": (True, False),
        "zero_max_tokens": (True, False),
        "failing_models": (True, False),
        "last_id_takes_slot": (False, True),
        "short_pools": (True, False),
        "request_limits": (True, False),
        "chunk_limits": (True, False),
    },
    requirements=tuple(value for value in list(globals().values()) if isinstance(value, Requirement)),
    # Whether an id has ended a request nobody else can know.
    alone={("outputs", "untold"): {"stops": (False,)}},
)
