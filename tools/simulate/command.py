"""``inferspec simulate``: very many requests through block manager and scheduler, with a stand-in for the model."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from inferspec.tools import arguments
from inferspec.tools.simulate import growth, report
from inferspec.tools.simulate.server import Costs, Counts, Faults, Server
from inferspec.tools.simulate.workload import PUBLISHED, Workload, lengths

NUM_BLOCKS = 981
"""Of 16: the 15.7 thousand slots that OPT-13B has on one A100 in table 1 of Kwon et al. 2023."""

PICTURES = (".png", ".svg", ".pdf", ".html", ".htm")
"""What figures are drawn as."""

NO_SETTINGS = ("command", "parser", "hands_on", "rest", "plot", "json")
"""Of the options, those on which the figures do not depend."""

_LEAST = {
    "requests": 1,
    "block_size": 1,
    "max_requests": 1,
    "max_prefill_tokens": 1,
    "prompts": 1,
    "lookahead": 0,
    "seed": 0,
}


class Unusable(Exception):
    """An option cannot be used; the message is one line that says why."""


def add_parser(commands: Any) -> None:
    """Add the command to the parser of the command line."""
    parser = commands.add_parser(
        "simulate", help="a million requests through block manager and scheduler, without a model"
    )
    parser.set_defaults(command=command)
    add = parser.add_argument
    add("--requests", type=int, default=1_000_000, metavar="N", help="default: 1,000,000")
    add("--trace", default="alpaca", help=f"{', '.join(PUBLISHED)} (default: alpaca), or a CSV of the Azure LLM traces")
    add("--num-blocks", type=int, default=NUM_BLOCKS, metavar="N", help=f"blocks of the pool (default: {NUM_BLOCKS})")
    add("--block-size", type=int, default=16, metavar="N", help="tokens of a block (default: 16)")
    add("--max-requests", type=int, default=256, metavar="N", help="that run at a time (default: 256)")
    add("--max-prefill-tokens", type=int, default=2048, metavar="N", help="of prompts in a step (default: 2048)")
    add("--lookahead", type=int, default=0, metavar="K", help="take 1 + K ids of a request from each step (default: 0)")
    add("--rate", type=float, metavar="R", help="requests a second (default: 30, sharegpt 1.8)")
    add("--share", type=float, default=0.5, help="of the requests, how many begin with a system prompt (default: 0.5)")
    add("--prompts", type=int, default=16, metavar="N", help="different system prompts (default: 16)")
    add(
        "--faults", type=float, default=0.0, metavar="RATE", help="of requests cancelled, steps failed, pools exhausted"
    )
    add("--seed", type=int, default=0, metavar="N")
    add("--scheduler", default="inferspec.impl", metavar="MODULE", help="whose Scheduler, BlockManager (default: ours)")
    add(
        "--plot",
        type=arguments.written,
        metavar="FILE.png|html",
        help='draw the figures; needs pip install "inferspec[bench]"',
    )
    add("--json", type=arguments.written, metavar="FILE", help="write all figures here")


def command(options: argparse.Namespace) -> int:
    """Run the command: 0 when nothing is lost and nothing is leaked, 1 with a finding, 2 for what cannot be used."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
    try:
        workload = checked(options)
        make, server = served(options, workload)
    except (Unusable, ValueError) as error:
        console.print(str(error), style="red", markup=False, soft_wrap=True)
        return 2
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
        task = progress.add_task("requests", total=options.requests)

        def told(counts: Counts) -> None:
            ended = counts.finished + counts.cancelled
            text = f"{server.now / 3600:.2f} h, {counts.preemptions:,} preemptions"
            progress.update(task, completed=ended, description=text)

        server.told = told
        counts = server.run()
        peak = peak_bytes()
        progress.update(task, description="the allocator's growth")
        costs = growth.cost(make, options.block_size)
    settings = {
        **{name: value for name, value in vars(options).items() if name not in NO_SETTINGS},
        "prompt_tokens": workload.prompt_tokens,
        **asdict(server.costs),
    }
    found = report.figures(counts, settings, costs, peak)
    shown = report.tables(found, workload.lengths.source)
    for table in shown:
        console.print(table)
    for problem in counts.problems:
        console.print(problem, style="red", markup=False)
    if not counts.problems:
        console.print("[green]nothing lost, nothing leaked: every request ended once, every block is free")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if options.plot:
        report.draw(options.plot, found, counts, shown)
    return 1 if counts.problems else 0


def checked(options: argparse.Namespace) -> Workload:
    """The workload; Unusable for what would only fail later."""
    for name, least in _LEAST.items():
        if getattr(options, name) < least:
            raise Unusable(f"--{name.replace('_', '-')} is {getattr(options, name)}; it takes {least} or more")
    for name in ("share", "faults"):
        if not 0 <= getattr(options, name) <= 1:
            raise Unusable(f"--{name} is {getattr(options, name)}; it takes 0 … 1")
    if options.faults == 1:
        raise Unusable("--faults is 1.0; it takes less than 1, or no step would ever succeed")
    if options.rate is None:
        options.rate = PUBLISHED.get(options.trace, PUBLISHED["alpaca"])[2]
    if not options.rate > 0:
        raise Unusable(f"--rate is {options.rate}; it takes a positive number")
    drawn = lengths(options.trace)
    if options.num_blocks * options.block_size < drawn.positions:
        raise Unusable(
            f"--num-blocks {options.num_blocks} of {options.block_size} hold fewer than {drawn.positions} tokens, a longest request"
        )
    if options.plot:
        try:
            import matplotlib  # noqa: F401
        except ImportError as error:
            raise Unusable(f'--plot: {error}: pip install "inferspec[bench]"') from error
        if options.plot.suffix.lower() not in PICTURES:
            raise Unusable(f"--plot {options.plot}: it takes a name that ends in {', '.join(PICTURES)}")
    return Workload(
        lengths(options.trace), options.requests, options.rate, options.seed, options.share, options.prompts
    )


def served(options: argparse.Namespace, workload: Workload) -> tuple[Callable[[int, int], Any], Server]:
    """The maker of block managers and the server, with the classes of a module; ours where it has none."""
    parts = {"BlockManager": "block_manager", "Scheduler": "scheduler"}
    try:
        importlib.import_module(options.scheduler)
        found = {name: offered(options.scheduler, name, part) for name, part in parts.items()}
    except ImportError as error:
        raise Unusable(f"--scheduler {options.scheduler}: {error}") from error
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        raise Unusable(f"--scheduler {options.scheduler}: importing it failed with {told}") from error
    if not any(found.values()):
        raise Unusable(f"--scheduler {options.scheduler} has neither Scheduler nor BlockManager")
    make, scheduler = (found[name] or offered("inferspec.impl", name, part) for name, part in parts.items())
    more = {"lookahead": options.lookahead} if options.lookahead else {}
    manager = make(options.num_blocks, options.block_size)
    faults = Faults(options.faults, options.seed)
    return make, Server(
        manager,
        scheduler(manager, options.max_requests, options.max_prefill_tokens, **more),
        workload,
        costs=Costs(),
        faults=faults,
    )


def offered(module: str, name: str, part: str) -> Any:
    """A class of a module, or of the module `part` in a package; None where it has none."""
    if found := getattr(importlib.import_module(module), name, None):
        return found
    place = f"{module}.{part}"
    try:
        return getattr(importlib.import_module(place), name, None)
    except ModuleNotFoundError as error:
        if error.name != place:
            raise
        return None


def peak_bytes() -> float:
    """The most memory that this process had so far; 0 where nobody counts."""
    try:
        import resource
    except ImportError:
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
