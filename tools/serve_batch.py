"""``inferspec serve-batch``: a file of prompts through the engine, a line of JSON for each as it ends."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console
from rich.live import Live
from rich.progress import track

from inferspec.tools import arguments, prompts_file
from inferspec.tools.dashboard import Dashboard
from inferspec.tools.generate import MODEL_HELP, Loaded, Unusable, drawing, load, prompt_ids, usable
from inferspec.tools.prompts_file import Prompt
from inferspec.tools.terminal import INTERRUPTED

if TYPE_CHECKING:
    from inferspec.impl.engine import Engine
    from inferspec.impl.metrics import RequestMetrics


DRAFT_TOKENS = 4
"""How many a draft guesses at a time where nothing is said."""


def add_parser(commands: Any) -> None:
    """Add the command to the parser of the command line."""
    parser = commands.add_parser("serve-batch", help="serve a file of prompts in one batch, with priorities")
    parser.add_argument(
        "prompts", type=Path, help="JSONL: prompt, and perhaps id, priority (larger first), max_tokens, system, raw"
    )
    parser.add_argument("--model", required=True, help=MODEL_HELP)
    parser.add_argument("--revision", metavar="SHA", help="the commit of a hub id")
    parser.add_argument(
        "--out", type=arguments.written, required=True, metavar="FILE", help="JSONL: a line for each, as it ends"
    )
    parser.add_argument("--overwrite", action="store_true", help="the file of --out may be there")
    parser.add_argument(
        "--max-tokens",
        type=arguments.whole(0),
        default=128,
        metavar="N",
        help="of prompts that name none (default: 128)",
    )
    parser.add_argument(
        "--num-pages",
        type=arguments.whole(1),
        default=256,
        metavar="N",
        help="pages of key/value memory (default: 256)",
    )
    parser.add_argument(
        "--page-size", type=arguments.whole(1), default=16, metavar="N", help="tokens a page (default: 16)"
    )
    parser.add_argument(
        "--max-requests", type=arguments.whole(1), default=8, metavar="N", help="at most so many run (default: 8)"
    )
    parser.add_argument(
        "--max-prefill-tokens",
        type=arguments.whole(1),
        default=512,
        metavar="N",
        help="of prompts in a step (default: 512)",
    )
    parser.add_argument("--no-prefix-cache", action="store_true", help="compute every prompt whole")
    parser.add_argument("--draft", metavar="MODEL", help="a smaller model of the same vocabulary, which guesses ahead")
    parser.add_argument(
        "--draft-tokens",
        type=arguments.whole(1),
        metavar="N",
        help=f"how many --draft guesses at a time (default: {DRAFT_TOKENS})",
    )
    arguments.add_sampling(parser)
    parser.add_argument("--check", action="store_true", help="then generate each alone, greedily, and compare")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Run the command; 1 when a prompt was refused or --check found a difference, 2 when nothing could be done."""
    console = Console(highlight=False, soft_wrap=True)
    try:
        usable(lambda: _check_out(options))
        batch = usable(lambda: Batch(options, console))
        with usable(lambda: options.out.open("w", encoding="utf-8")) as out:
            usable(lambda: batch.serve(out))
        console.print(batch.summary())
        same = not options.check or batch.equals_alone()
    except Unusable as error:
        console.print(str(error), style="red", markup=False)
        return 2
    except KeyboardInterrupt:
        console.print(f"interrupted; {options.out} has what had ended", style="red", markup=False)
        return INTERRUPTED
    return 0 if same and not batch.refused else 1


def _check_out(options: argparse.Namespace) -> None:
    if not options.out.exists():
        return
    if options.prompts.exists() and options.out.samefile(options.prompts):
        raise ValueError(f"--out {options.out} is the file of the prompts")
    if not options.overwrite:
        raise ValueError(f"{options.out} is there already; --overwrite writes over it")


@dataclass(frozen=True)
class Sent:
    """A prompt that the engine has, with its ids there and here."""

    prompt: Prompt
    request: int
    tokens: list[int]
    max_tokens: int


class Batch:
    """The prompts of a file and the engine that serves them."""

    def __init__(
        self, options: argparse.Namespace, console: Console, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        from inferspec.impl.engine import Engine

        self.options, self.console = options, console
        if options.check and options.temperature:
            raise ValueError("--check compares greedy outputs; it takes no --temperature")
        if options.draft_tokens is not None and options.draft is None:
            raise ValueError(f"--draft-tokens {options.draft_tokens}: it takes --draft, the model that guesses")
        self.sampling = arguments.sampling(options)
        drawing(self.sampling)
        self.prompts = prompts_file.read(options.prompts)
        self.loaded: Loaded = load(options.model, options.revision)
        self.engine: Engine = Engine(
            self.loaded.model,
            num_pages=options.num_pages,
            page_size=options.page_size,
            max_requests=options.max_requests,
            max_prefill_tokens=options.max_prefill_tokens,
            prefix_caching=not options.no_prefix_cache,
            draft=load(options.draft).model if options.draft is not None else None,
            num_draft_tokens=DRAFT_TOKENS if options.draft_tokens is None else options.draft_tokens,
            clock=clock,
        )
        self.sent: dict[int, Sent] = {}
        self.ended: dict[int, tuple[list[int], RequestMetrics]] = {}
        self.refused: list[tuple[Prompt, str]] = []
        for index, prompt in enumerate(self.prompts):
            self._send(index, prompt)

    def _send(self, index: int, prompt: Prompt) -> None:
        limit = self.options.max_tokens if prompt.max_tokens is None else prompt.max_tokens
        sampler = drawing(self.sampling, index)
        try:
            tokens = prompt_ids(self.loaded.tokenizer, prompt.prompt, prompt.system, prompt.raw)
            request = self.engine.add_request(tokens, limit, prompt.priority, self.loaded.tokenizer.eos, sampler)
        except ValueError as error:
            self.refused.append((prompt, str(error)))
        else:
            self.sent[request] = Sent(prompt, request, tokens, limit)

    def serve(self, out: TextIO) -> None:
        """Run the engine until all are done; write a line for each request when it ends."""
        for prompt, error in self.refused:
            _write(out, {"id": prompt.id, "error": error})
        running = dict(self.sent)
        dashboard = Dashboard(len(self.sent))
        with ExitStack() as stack:
            live = Live(
                console=self.console, refresh_per_second=8, transient=True, get_renderable=lambda: dashboard.shown
            )
            if self.console.is_terminal:
                stack.enter_context(live)
            while running:
                if self.engine.has_unfinished:
                    self.engine.step()
                ended = [request for request in running if self.engine.finished(request)]
                for request in ended:
                    _write(out, self.line(running.pop(request)))
                    self.engine.forget(request)
                dashboard.take(self.engine.stats, len(self.sent) - len(running))

    def line(self, sent: Sent) -> dict[str, Any]:
        """What is written of a request that ended."""
        ids, metrics = self.engine.output(sent.request), self.engine.metrics(sent.request)
        self.ended[sent.request] = ids, metrics
        text = self.loaded.tokenizer.detokenizer(self.loaded.model.config.vocab_size)
        return {
            "id": sent.prompt.id,
            "text": "".join([*map(text.add, ids), text.finish()]),
            "finish_reason": "length" if len(ids) == sent.max_tokens else "stop",
            "priority": sent.prompt.priority,
            "prompt_tokens": len(sent.tokens),
            "cached_tokens": self.engine.cached_tokens(sent.request),
            "tokens": ids,
            "ttft": metrics.ttft,
            "tpot": metrics.tpot,
            "e2el": metrics.e2el,
        }

    def summary(self) -> str:
        """The whole in a few lines."""
        stats = self.engine.stats
        metrics = [metrics for _, metrics in self.ended.values()]
        lines = [
            f"{len(self.sent)} requests, {len(self.refused)} refused, in {stats.steps} steps: "
            f"{stats.generated_tokens} tokens generated of {stats.prompt_tokens} tokens of prompts, "
            f"{stats.cached_tokens} of those cached ({stats.hit_rate:.0%})",
            f"{stats.preemptions} preemptions; TTFT median {_median([one.ttft for one in metrics])}, "
            f"TPOT median {_median([one.tpot for one in metrics])}, E2EL median {_median([one.e2el for one in metrics])}",
        ]
        if stats.drafted:
            lines.append(f"{stats.accepted} of {stats.drafted} guessed tokens were right ({stats.acceptance_rate:.0%})")
        return "\n".join(lines)

    def equals_alone(self) -> bool:
        """Generate each request alone and say which differ, and where."""
        from inferspec.impl.generation import generate

        model, eos = self.loaded.model, self.loaded.tokenizer.eos
        differing = 0
        for sent in track(self.sent.values(), "alone", console=self.console, transient=True):
            alone = list(generate(model, sent.tokens, max_tokens=sent.max_tokens, eos=eos))
            served, _ = self.ended[sent.request]
            if alone != served:
                differing += 1
                self.console.print(f"{sent.prompt.id}: {_difference(alone, served)}", style="red", markup=False)
        self.console.print(f"{len(self.sent) - differing} of {len(self.sent)} outputs are those of generate alone")
        return not differing


def _difference(alone: Sequence[int], served: Sequence[int]) -> str:
    pairs = zip(alone, served, strict=False)
    first = next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(alone), len(served)))
    return f"token {first} is {_at(served, first)}, alone it is {_at(alone, first)}"


def _at(ids: Sequence[int], index: int) -> str:
    return str(ids[index]) if index < len(ids) else "the end"


def _median(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{statistics.median(known):.3g} s" if known else "-"


def _write(out: TextIO, line: dict[str, Any]) -> None:
    out.write(json.dumps(line, ensure_ascii=False) + "\n")
    out.flush()
