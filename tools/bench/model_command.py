"""``inferspec bench model``: prefill and decode of a whole model, beside mlx-lm, transformers and llama.cpp."""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress, TaskID

from inferspec.tools.bench import models, peers, random_model, session
from inferspec.tools.bench.machine import Limits
from inferspec.tools.bench.model_cost import cost
from inferspec.tools.bench.model_judge import ModelJudge
from inferspec.tools.bench.models import NO_CACHE
from inferspec.tools.bench.peers import AGAIN, OURS, Peer
from inferspec.tools.bench.process import Crashed, Process, threads_environment
from inferspec.tools.bench.result import FAILED, CaseResult, Contender, Result
from inferspec.tools.bench.rounds import Entry, measure
from inferspec.tools.bench.shapes import SHAPES, shape
from inferspec.tools.generate import MODEL_HELP, Unusable, located, usable

UNCACHED = 4
"""Ids of a run without a cache: each costs as much as the whole prompt."""

CHECKED, SPLIT = 8, 4
"""Tokens whose logits are compared, and how many of them go through in one pass before the others come one by one."""

PREFILL, DECODE = "prefill", "decode"
LEAST_ROUNDS = 2

_TRANSFORMERS, _LLAMA = (next(p for p in peers.OTHERS if p.name == name) for name in ("transformers", "llama.cpp"))
PEERS = (
    next(peer for peer in peers.OTHERS if peer.name == "mlx-lm"),
    _TRANSFORMERS,
    replace(_TRANSFORMERS, name="transformers bfloat16"),
    _LLAMA,
)
DECLARED = {"llama.cpp": "activations in int8", "transformers bfloat16": "dense bfloat16"}
"""Who says that it computes in another precision, and in which."""
DENSE = {"transformers": "float32", "transformers bfloat16": "bfloat16"}
"""The dtype of weights that are restored to dense ones."""


def add_parser(commands: Any) -> None:
    """Add the command to the parser of ``inferspec bench``."""
    parser = commands.add_parser(
        "model", help="tokens per second of a model, beside mlx-lm, transformers and llama.cpp"
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--model", help=MODEL_HELP)
    what.add_argument("--shape", metavar="NAME", help=f"random 4-bit weights in bfloat16: {', '.join(SHAPES)}")
    add = parser.add_argument
    add("--revision", metavar="SHA", help="the commit of a hub id")
    add("--prompt-tokens", type=int, default=128, metavar="N", help="length of the prompt (default: 128)")
    add("--tokens", type=int, default=32, metavar="N", help="ids of each run (default: 32)")
    add("--no-cache", action="store_true", help="ours and mlx-lm without a key/value cache too")
    session.add_common(parser, rounds=8, seconds=60.0)
    parser.set_defaults(command="bench")


def run(options: argparse.Namespace, console: Console) -> Result:
    """Measure what the options ask for; Unusable for options and models that cannot be used."""
    session.check(options)
    check_source(options)
    chosen, missing = contenders(options)
    with source_of(options) as source, contextlib.ExitStack() as stack:
        subject = usable(lambda: Subject.read(source, options))
        if not source.is_file() and any(peer.name == _LLAMA.name for peer in chosen):
            chosen = [peer for peer in chosen if peer.name != _LLAMA.name]
            missing.append(replace(_LLAMA, install="it reads GGUF files, and this model is none"))
        bar = stack.enter_context(session.progress(console))
        task = bar.add_task("the machine's limits", total=1 + 2 * len(chosen))
        limits = session.measured_limits(options.threads, [subject.judge.dtype])
        bar.advance(task)
        cases = Bench(options, subject, limits, stack, bar, task).measured(chosen)
    return session.result("model", options, limits, chosen, missing, cases)


def contenders(options: argparse.Namespace) -> tuple[list[Peer], list[Peer]]:
    """Who contends, each in a process of its own, and who is missing."""
    chosen, missing = peers.chosen(session.names(options.peers), options.ours_path, PEERS)
    chosen = [replace(peer, host=peer.name) for peer in chosen]
    if options.no_cache:
        cached = [peer for peer in chosen if peer.name in (OURS, "mlx-lm")]
        chosen += [replace(peer, name=f"{peer.name}, {NO_CACHE}", host=f"{peer.name}, {NO_CACHE}") for peer in cached]
    return chosen, [peer for peer in missing if peer.name != "transformers bfloat16"]


@contextlib.contextmanager
def source_of(options: argparse.Namespace) -> Iterator[Path]:
    """Where the weights lie; those of a shape are made, and go away afterwards."""
    if options.model:
        yield usable(lambda: located(options.model, options.revision))
        return
    with tempfile.TemporaryDirectory(prefix="inferspec-bench-") as folder:
        yield random_model.write(shape(options.shape), Path(folder), options.seed)


@dataclass(frozen=True)
class Subject:
    """The model of a run: where it lies, its prompt, what each token costs at least, and who judges its logits."""

    source: Path
    prompt: list[int]
    checked: list[int]
    judge: ModelJudge
    costs: Mapping[str, tuple[float, float]]

    @classmethod
    def read(cls, source: Path, options: argparse.Namespace) -> Subject:
        """ValueError for a model that is no Llama or Qwen3, and for more tokens than it has positions."""
        from inferspec.conformance.bridge.arrays import MlxArrays
        from inferspec.impl import loading
        from inferspec.impl.model_config import ModelConfig

        config, weights = loading.read(source)
        if config.get("model_type") not in loading.MODELS:
            raise ValueError(
                f"{source}: model_type is {config.get('model_type')!r}; it takes {', '.join(loading.MODELS)}"
            )
        sizes, length = ModelConfig.read(config), options.prompt_tokens + options.tokens
        if length > sizes.max_positions:
            raise ValueError(f"{length} tokens are more than the {sizes.max_positions} positions of the model")
        random, kind = np.random.default_rng(options.seed), MlxArrays()
        prompt, checked = (random.integers(0, sizes.vocab_size, n).tolist() for n in (options.prompt_tokens, CHECKED))
        arrays = {name: kind.to_numpy(x) for name, x in weights.items()}
        costs = cost(sizes, arrays, options.prompt_tokens, options.tokens)
        return cls(source, prompt, checked, ModelJudge(config, arrays, checked), costs)


@dataclass
class Bench:
    """Loads, judges and measures the contenders of a run; their processes end with the stack."""

    options: argparse.Namespace
    subject: Subject
    limits: Limits
    stack: contextlib.ExitStack
    bar: Progress
    task: TaskID
    ids: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def measured(self, chosen: Sequence[Peer]) -> list[CaseResult]:
        """Prefill and decode, as two cases."""
        found, entries = [], []
        for peer in chosen:
            self.bar.update(self.task, advance=1, description=f"loading {peer.name}")
            contender, entry = self._admitted(peer)
            found.append(contender)
            entries += [entry] if entry else []
        rounds = self.options.rounds
        self.bar.update(self.task, total=1 + len(chosen) + rounds * len(entries))
        times = measure(entries, rounds, self.options.seconds, self.options.seed, self._told, LEAST_ROUNDS)
        cases = []
        for phase in (PREFILL, DECODE):
            contenders = [replace(one) for one in found]
            for one in contenders:
                mine = times.get(one.name)
                if mine is None:
                    continue
                one.times = {} if mine.broke else mine.times.get(phase, {})
                one.state, one.message = (FAILED, mine.broke) if mine.broke else (one.state, self._ids_of(one.name))
            cases.append(self._case(phase, contenders))
        return cases

    def _admitted(self, peer: Peer) -> tuple[Contender, Entry | None]:
        """A contender as it is judged, and its entry if it is to be timed."""
        contender = Contender(peer.name, FAILED)
        for variant, note in _variants(peer):
            try:
                process = self._loaded(peer, variant)
                verdict = self._judged(process, peer)
            except Crashed as error:
                contender.message = str(error)
                continue
            except Exception as error:
                contender.message = " ".join(f"{type(error).__name__}: {error}".split())
                break
            contender = Contender(
                peer.name, verdict.state, note, verdict.precision, verdict.worst, verdict.difference, verdict.reason
            )
            if not verdict.accepted and not self.options.time_refused:
                process.close()
                break
            count = min(self.options.tokens, UNCACHED) if NO_CACHE in peer.name else self.options.tokens
            taken = process.do(models.warmed, peer.name, self.subject.prompt, count)
            return contender, Entry(peer.name, partial(self._sample, process, peer.name, count), taken)
        return contender, None

    def _loaded(self, peer: Peer, variant: str) -> Process:
        environment = {**threads_environment(self.options.threads), **peer.environment}
        process = self.stack.enter_context(Process(peer.name, environment))
        positions = len(self.subject.prompt) + self.options.tokens
        process.do(models.load, peer.name, peer.place, self.subject.source, variant, self.options.threads, positions)
        return process

    def _judged(self, process: Process, peer: Peer) -> Any:
        judge = self.subject.judge
        logits = process.do(models.logits, peer.name, self.subject.checked, SPLIT, judge.columns)
        return judge.verdict(logits, DECLARED.get(peer.name, ""))

    def _sample(self, process: Process, name: str, count: int) -> dict[str, float]:
        one = process.do(models.run, name, self.subject.prompt, count)
        self.ids.setdefault(name, one.ids)
        return {PREFILL: one.prefill, DECODE: one.decode}

    def _told(self, name: str) -> None:
        self.bar.update(self.task, advance=1, description=name)

    def _ids_of(self, name: str) -> str:
        """Whether a contender says the same as ours: the rate of one that says something else may be another's."""
        ours, its = self.ids.get(OURS), self.ids.get(name)
        if not ours or not its or name in (OURS, AGAIN):
            return ""
        apart = next((k for k, (a, b) in enumerate(zip(ours, its, strict=False)) if a != b), None)
        return "" if apart is None else f"other ids than {OURS} from the {apart + 1}. of {min(len(ours), len(its))}"

    def _case(self, phase: str, contenders: list[Contender]) -> CaseResult:
        count = self.options.prompt_tokens if phase == PREFILL else self.options.tokens
        traffic, work = self.subject.costs[phase]
        dtype = self.subject.judge.dtype
        bound, least = self.limits.bound(traffic, work, dtype)
        name = f"{phase} of {count} tokens{'' if phase == PREFILL else f' after {self.options.prompt_tokens}'}"
        what = self.options.model or f"{self.options.shape}, random weights"
        return CaseResult(f"{what}: {name}", phase, dtype, "token", traffic, work, bound, least, contenders)


def _variants(peer: Peer) -> list[tuple[str, str]]:
    """Ways to load a contender, each tried when the one before ends the process; and what to say of it."""
    if peer.name.endswith(NO_CACHE):
        return [(NO_CACHE, "")]
    if peer.name == "llama.cpp":
        return [("", ""), (models.AS_STORED, f"{models.AS_STORED}: rearranged ones end the process")]
    return [(DENSE.get(peer.name, ""), "dense" if peer.name in DENSE else "")]


def check_source(options: argparse.Namespace) -> None:
    """Unusable for a shape that is not known."""
    if options.shape:
        shape(options.shape)
    if options.shape and options.revision:
        raise Unusable(f"--revision is {options.revision!r}; a --shape has none")
