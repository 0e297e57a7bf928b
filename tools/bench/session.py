"""A run: the processes of its contenders, and what is common to benchmarks of operations and of models."""

from __future__ import annotations

import argparse
import contextlib
import datetime
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from inferspec.tools import arguments
from inferspec.tools.bench import machine
from inferspec.tools.bench.machine import Limits
from inferspec.tools.bench.peers import Peer
from inferspec.tools.bench.process import Process, threads_environment
from inferspec.tools.bench.result import CaseResult, Result
from inferspec.tools.generate import Unusable

LEAST = {"rounds": 1, "threads": 1, "prompt_tokens": 1, "tokens": 2, "seconds": 0}


def add_common(parser: argparse.ArgumentParser, rounds: int, seconds: float) -> None:
    """The options that operations and models share."""
    add = parser.add_argument
    add("--peers", default="", metavar="NAMES", help="of the other libraries only these, with commas (default: all)")
    add(
        "--ours-path",
        action="append",
        default=[],
        metavar="PATH",
        help="ours on this path too; repeatable: avx512, avx2, neon, portable, mlx",
    )
    add("--threads", type=int, default=1, metavar="N", help="of every contender (default: 1)")
    add("--rounds", type=int, default=rounds, metavar="N", help=f"measurements of each contender (default: {rounds})")
    add(
        "--seconds",
        type=float,
        default=seconds,
        metavar="S",
        help=f"a slow contender gets fewer rounds, about so long in all (default: {seconds:g})",
    )
    add("--seed", type=int, default=0, metavar="N", help="of arguments and of the order of contenders (default: 0)")
    add("--time-refused", action="store_true", help="time what is outside the contract too, marked as such")
    add("--json", type=arguments.written, metavar="FILE", help="write all figures here")
    add(
        "--plot", type=arguments.written, metavar="FILE.png|svg", help='draw them; needs pip install "inferspec[bench]"'
    )
    add(
        "--compare",
        type=Path,
        metavar="OLD.json",
        help="then compare with an earlier run; exit code 1 for a regression",
    )
    add("--reference", metavar="NAME", help="the contender that compared ratios are to")


def check(options: argparse.Namespace) -> None:
    """Unusable for what would only fail when the work is done."""
    for name, least in LEAST.items():
        if (value := getattr(options, name, None)) is not None and value < least:
            raise Unusable(f"--{name.replace('_', '-')} is {value}; it takes {least} or more")
    check_picture(options)


def check_picture(options: argparse.Namespace) -> None:
    """Unusable for a picture that cannot be drawn."""
    if options.plot and options.plot.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise Unusable(f"--plot is {options.plot}; it takes a name that ends in .png, .svg or .pdf")
    if options.plot:
        try:
            import matplotlib  # noqa: F401
        except ImportError as error:
            raise Unusable(f'--plot: {error}: pip install "inferspec[bench]"') from error


def names(text: str) -> list[str]:
    """The parts of a list with commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


@contextlib.contextmanager
def processes(peers: Sequence[Peer], threads: int) -> Iterator[dict[str, Process]]:
    """A process for each host, with the threads and the environment of its peers."""
    hosts = {peer.host: peer.environment for peer in peers}
    with contextlib.ExitStack() as stack:
        yield {
            host: stack.enter_context(Process(host, {**threads_environment(threads), **environment}))
            for host, environment in hosts.items()
        }


def measured_limits(threads: int, dtypes: Sequence[str]) -> Limits:
    """The limits of the machine, measured in a process of their own."""
    with Process("the machine's limits", threads_environment(threads)) as process:
        return process.do(machine.limits, threads, machine.cache_bytes(), list(dtypes))


def progress(console: Console) -> Progress:
    """A bar that goes away."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True)


def result(
    kind: str,
    options: argparse.Namespace,
    limits: Limits | None,
    peers: Sequence[Peer],
    missing: Sequence[Peer],
    cases: Sequence[CaseResult],
) -> Result:
    """All of a run."""
    about: dict[str, Any] = {**machine.described(), "limits": limits.as_json() if limits else None}
    return Result(
        kind=kind,
        command=words(options),
        settings=settings(options),
        machine=about,
        libraries={name: version for peer in peers for name, version in peer.versions.items()},
        missing={peer.name: peer.install for peer in missing},
        cases=list(cases),
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )


_NO_SETTINGS = ("command", "rest", "parser", "hands_on", "json", "plot", "compare", "reference")


def settings(options: argparse.Namespace) -> dict[str, Any]:
    """The options, given or by default, that the figures depend on."""
    plain = {name: value for name, value in vars(options).items() if name not in _NO_SETTINGS}
    return {name: str(value) if isinstance(value, Path) else value for name, value in plain.items()}


def words(options: argparse.Namespace) -> list[str]:
    """The words that give these settings again, after ``inferspec``."""
    found = options.parser.prog.split()[1:]
    chosen = settings(options)
    for action in options.parser._actions:
        value = chosen.get(action.dest)
        if value in (None, action.default):
            continue
        if isinstance(value, bool):
            found.append(action.option_strings[0])
            continue
        for one in value if isinstance(value, list) else [value]:
            found += [action.option_strings[0], str(one)]
    return found
