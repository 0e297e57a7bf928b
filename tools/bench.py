"""``inferspec bench``: tokens per second, beside mlx-lm with the same weights in the same run.

Contenders take turns, so that what else the machine does meets all of them, and each is measured several times. The
rate of prefill is the prompt's tokens by the time to the first token; that of decode is the tokens after the first
by the time that they took.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from inferspec.tools.generate import MODEL_HELP, Unusable, located, usable

OURS, THEIRS = "inferspec", "mlx-lm"
UNCACHED = 4
"""Ids of a run without a cache: each costs as much as the whole prompt."""

WARM_PROMPT, WARM_IDS = 8, 3

Run = Callable[[Sequence[int], int], Iterable[int]]
"""Takes a prompt and a number of ids, and gives the ids one by one."""


@dataclass(frozen=True)
class Contender:
    """One way to run the model. cached: with a key/value cache."""

    library: str
    cached: bool
    run: Run

    @property
    def name(self) -> str:
        return f"{self.library}, {'cache' if self.cached else 'no cache'}"


@dataclass(frozen=True)
class Rates:
    """Tokens per second of each run. ids: what came out of the first."""

    contender: Contender
    prefill: tuple[float, ...]
    decode: tuple[float, ...]
    ids: tuple[int, ...]


@dataclass(frozen=True)
class Spread:
    """Median and quartiles of several runs."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        low, median, high = np.percentile(values, [25, 50, 75])
        return cls(float(median), float(low), float(high))

    def __str__(self) -> str:
        return f"{self.median:.4g} [{self.low:.4g}, {self.high:.4g}]"


def add_parser(commands: Any) -> None:
    """Add the command to the parser of the command line."""
    parser = commands.add_parser("bench", help="tokens per second of a model, beside mlx-lm")
    parser.add_argument("--model", required=True, help=MODEL_HELP)
    parser.add_argument("--revision", metavar="SHA", help="the commit of a hub id")
    parser.add_argument(
        "--prompt-tokens", type=int, default=256, metavar="N", help="length of the prompt (default: 256)"
    )
    parser.add_argument(
        "--tokens", type=int, default=32, metavar="N", help="ids of each run with a cache (default: 32)"
    )
    parser.add_argument("--repeats", type=int, default=5, metavar="K", help="runs of each contender (default: 5)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures here")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help='draw them; needs pip install "inferspec[bench]"')
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Run the command; 2 when the model or an option cannot be used."""
    console = Console(highlight=False, soft_wrap=True)
    try:
        check(options)
        ways, vocabulary = usable(lambda: contenders(located(options.model, options.revision), options))
        prompt = np.random.default_rng(0).integers(0, vocabulary, options.prompt_tokens).tolist()
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task("warming up", total=(options.repeats + 1) * len(ways))
            found = measure(
                ways,
                prompt,
                options.tokens,
                options.repeats,
                lambda name: progress.update(task, advance=1, description=name),
            )
    except Unusable as error:
        console.print(str(error), style="red", markup=False)
        return 2
    for table in tables(options.model, found, options):
        console.print(table)
    console.print(agreement(found))
    if options.json:
        options.json.write_text(json.dumps(record(options, found), indent=1) + "\n", encoding="utf-8")
    if options.plot:
        plot(options.plot, options.model, found)
    return 0


def check(options: argparse.Namespace) -> None:
    """Unusable for what would only fail when the work is done."""
    for name, least in (("prompt_tokens", 1), ("tokens", 2), ("repeats", 1)):
        if getattr(options, name) < least:
            raise Unusable(f"--{name.replace('_', '-')} is {getattr(options, name)}; it takes {least} or more")
    for file in (options.json, options.plot):
        if file is not None and not file.resolve().parent.is_dir():
            raise Unusable(f"{file} cannot be written: there is no folder {file.parent}")
    if options.plot:
        try:
            import matplotlib  # noqa: F401
        except ImportError as error:
            raise Unusable(f'--plot: {error}: pip install "inferspec[bench]"') from error


def contenders(path: Path, options: argparse.Namespace) -> tuple[list[Contender], int]:
    """Our model and, where it is installed, mlx-lm's, with the same arrays; and the size of their vocabulary."""
    from inferspec.impl import loading

    config, weights = loading.read(path)
    kind = str(config.get("model_type"))
    if kind not in loading.MODELS:
        raise ValueError(f"{path}: model_type is {kind!r}; it takes {', '.join(loading.MODELS)}")
    model = loading.MODELS[kind](config, weights)
    length = options.prompt_tokens + options.tokens
    if length > model.config.max_positions:
        raise ValueError(f"{length} tokens are more than the {model.config.max_positions} positions of the model")
    ways = [Contender(OURS, True, ours(model, True)), Contender(OURS, False, ours(model, False))]
    try:
        other = mlx_lm_model({**config, "rope_theta": model.config.rope_theta}, weights)
    except ImportError:
        return ways, model.config.vocab_size
    ways += [Contender(THEIRS, True, theirs(other)), Contender(THEIRS, False, ours(other, False))]
    return ways, model.config.vocab_size


def ours(model: Any, cached: bool) -> Run:
    """Our loop on a model; without a cache it serves mlx-lm's models too."""
    from inferspec.impl.generation import generate

    return lambda prompt, count: generate(model, prompt, max_tokens=count, cache=cached)


def theirs(model: Any) -> Run:
    """mlx-lm's loop on its model."""
    import mlx.core as mx
    from mlx_lm.generate import generate_step

    def run(prompt: Sequence[int], count: int) -> Iterator[Any]:
        for token, _ in generate_step(mx.array(list(prompt)), model, max_tokens=count):
            yield token
        # It works one step ahead; what is left of that must not fall into another's time.
        mx.synchronize()

    return run


def mlx_lm_model(config: Mapping[str, Any], weights: Mapping[str, Any]) -> Any:
    """mlx-lm's model of the same configuration, with the same arrays, dense or quantised."""
    import mlx.core as mx
    from mlx import nn
    from mlx_lm.utils import _get_classes

    cls, arguments = _get_classes(config=dict(config))
    model = cls(arguments.from_dict({**config, "rope_parameters": None}))
    if settings := config.get("quantization"):

        def quantised(name: str, module: Any) -> Any:
            own = {key: value for key, value in settings.get(name, {}).items() if key != "mode"}
            return f"{name}.scales" in weights and (own or True)

        nn.quantize(model, settings["group_size"], settings["bits"], class_predicate=quantised)
    kept = {name: x for name, x in weights.items() if not (name == "lm_head.weight" and config["tie_word_embeddings"])}
    model.load_weights(list(kept.items()))
    mx.eval(model.parameters())
    return model


def measure(
    ways: Sequence[Contender],
    prompt: Sequence[int],
    tokens: int,
    repeats: int,
    begun: Callable[[str], None] = lambda name: None,
    clock: Callable[[], float] = time.perf_counter,
) -> list[Rates]:
    """Run every contender so many times, in turn, each round begun by another; the first, short run does not count.

    begun: told the name of each run that ended. clock: gives seconds.
    """
    from inferspec.impl.metrics import RequestTimer

    runs: dict[str, list[tuple[float, float, list[int]]]] = {way.name: [] for way in ways}
    for way in ways:
        list(way.run(prompt[:WARM_PROMPT], WARM_IDS))
        begun(way.name)
    for turn in range(repeats):
        for k in range(len(ways)):
            way = ways[(turn + k) % len(ways)]
            timer, ids = RequestTimer(clock), []
            for token in way.run(prompt, tokens if way.cached else min(tokens, UNCACHED)):
                timer.token()
                ids.append(token)
            found = timer.metrics()
            assert found.ttft is not None
            assert found.tpot is not None
            runs[way.name].append((len(prompt) / found.ttft, 1 / found.tpot, ids))
            begun(way.name)
    rates = []
    for way in ways:
        prefill, decode, ids_of = zip(*runs[way.name], strict=True)
        rates.append(Rates(way, prefill, decode, tuple(ids_of[0])))
    return rates


def tables(model: str, found: Sequence[Rates], options: argparse.Namespace) -> list[Table]:
    """The rates, and what they are of each other."""
    title = f"{model}: prompt of {options.prompt_tokens} tokens, {options.tokens} ids, {options.repeats} runs each"
    rates = Table("tokens per second: median [quartiles]", "prefill", "decode", title=title)
    for one in found:
        rates.add_row(one.contender.name, str(Spread.of(one.prefill)), str(Spread.of(one.decode)))
    relations = Table("times as fast", "prefill", "decode")
    for what, first, second in ratios(found):
        relations.add_row(what, *(_ratio(first, second, phase) for phase in ("prefill", "decode")))
    return [rates, relations]


def ratios(found: Sequence[Rates]) -> list[tuple[str, Rates, Rates]]:
    """The pairs worth a ratio: a cache against none, and ours against mlx-lm's."""
    by = {(one.contender.library, one.contender.cached): one for one in found}
    libraries = list(dict.fromkeys(library for library, _ in by))
    pairs = [(f"{library}: cache / no cache", by[library, True], by[library, False]) for library in libraries]
    if THEIRS in libraries:
        for cached, name in ((True, "cache"), (False, "no cache")):
            pairs.append((f"{OURS} / {THEIRS}, {name}", by[OURS, cached], by[THEIRS, cached]))
    return pairs


def _ratio(first: Rates, second: Rates, phase: str) -> str:
    return f"{np.median(getattr(first, phase)) / np.median(getattr(second, phase)):.3g}"


def agreement(found: Sequence[Rates]) -> str:
    """Whether the contenders say the same: rates of a model that says something else are worth nothing."""
    first = found[0]
    apart = [
        f"{one.contender.name} from id {k}"
        for one in found[1:]
        for k in [_first_difference(first.ids, one.ids)]
        if k is not None
    ]
    same = f"all say the same ids, as far as they go ({len(first.ids)})"
    return f"other ids than {first.contender.name}: {', '.join(apart)}" if apart else same


def _first_difference(first: Sequence[int], second: Sequence[int]) -> int | None:
    return next((k for k, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), None)


def record(options: argparse.Namespace, found: Sequence[Rates]) -> dict[str, Any]:
    """All figures, with what they were measured on."""
    import platform

    import mlx.core as mx

    return {
        "model": options.model,
        "revision": options.revision,
        "prompt_tokens": options.prompt_tokens,
        "tokens": options.tokens,
        "uncached_tokens": min(options.tokens, UNCACHED),
        "machine": f"{platform.system()} {platform.machine()}",
        "device": str(mx.default_device()),
        "libraries": {name: version(name) for name in ("mlx", *([THEIRS] if len(found) > 2 else []))},
        "runs": [
            {
                "library": one.contender.library,
                "cache": one.contender.cached,
                "prefill": list(one.prefill),
                "decode": list(one.decode),
                "ids": list(one.ids),
            }
            for one in found
        ],
        "ratios": [
            {"of": what, **{phase: float(_ratio(first, second, phase)) for phase in ("prefill", "decode")}}
            for what, first, second in ratios(found)
        ],
    }


def plot(file: Path, model: str, found: Sequence[Rates]) -> None:
    """Draw medians as points and quartiles as whiskers, prefill beside decode, on logarithmic axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.2), layout="constrained")
    figure.suptitle(f"{model}: tokens per second, median and quartiles")
    for place, phase in enumerate(("prefill", "decode"), 1):
        axes = figure.add_subplot(1, 2, place)
        for row, one in enumerate(found):
            spread = Spread.of(getattr(one, phase))
            whiskers = [[spread.median - spread.low], [spread.high - spread.median]]
            colour = "C0" if one.contender.library == OURS else "C1"
            axes.errorbar([spread.median], [row], xerr=whiskers, fmt="o", color=colour, capsize=4)
            axes.annotate(f"{spread.median:.3g}", (spread.median, row), (0, 7), textcoords="offset points", ha="center")
        axes.set(title=phase, xscale="log")
        axes.set_yticks(range(len(found)), [one.contender.name for one in found] if place == 1 else [""] * len(found))
        axes.grid(axis="x", which="both", alpha=0.3)
        axes.margins(x=0.2, y=0.25)
        axes.invert_yaxis()
    figure.savefig(file, dpi=150)
