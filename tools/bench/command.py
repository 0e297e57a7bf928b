"""``inferspec bench``: the parser, and what all its kinds do with their results."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from inferspec.tools.bench import compare, model_command, ops_command, plot, result, show
from inferspec.tools.bench.result import Result
from inferspec.tools.bench.scaling import command as scaling
from inferspec.tools.generate import Unusable

RUNS: Mapping[str, Callable[[argparse.Namespace, Console], Result]] = {
    "ops": ops_command.run,
    "model": model_command.run,
}


def add_parser(commands: Any) -> None:
    """Add the command to the parser of the command line."""
    parser = commands.add_parser(
        "bench",
        help="speed of operations, models and the engine, beside other libraries",
        description="Speed of operations, models and the engine, beside every library that is installed.",
    )
    parser.add_argument(
        "--compare",
        nargs="+",
        type=Path,
        metavar=("OLD.json", "NEW.json"),
        help="flag what became slower by its ratio to another contender; without NEW, what OLD measured is measured again",
    )
    parser.add_argument(
        "--reference",
        metavar="NAME",
        help="the contender that ratios are to (default: the first library that both have)",
    )
    parser.set_defaults(command=command_of(_compare))
    kinds = parser.add_subparsers(metavar="KIND")
    for add in (ops_command.add_parser, model_command.add_parser):
        add(kinds)
    scaling.add_parser(kinds)
    for kind, run in RUNS.items():
        kinds.choices[kind].set_defaults(command=command_of(partial(_bench, run)))
    kinds.choices["scaling"].set_defaults(command=command_of(scaling.command))


def command_of(do: Callable[[argparse.Namespace, Console], int]) -> Callable[[argparse.Namespace], int]:
    """A command that tells what cannot be used in one line; exit code 2."""

    def command(options: argparse.Namespace) -> int:
        console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
        try:
            return do(options, console)
        except Unusable as error:
            console.print(str(error), style="red", markup=False, soft_wrap=True)
            return 2

    return command


def _bench(run: Callable[[argparse.Namespace, Console], Result], options: argparse.Namespace, console: Console) -> int:
    """Measure, show, write, draw and compare."""
    before = result.read(options.compare) if options.compare else None
    found = run(options, console)
    show.show(found, console)
    if options.json:
        result.write(found, options.json)
    if options.plot:
        plot.draw(found, options.plot)
    return compare.told(before, found, options.reference, console) if before else 0


def _compare(options: argparse.Namespace, console: Console) -> int:
    """Compare two runs, the second of them made now when it is not given."""
    if not options.compare:
        options.parser.error("give ops, model or scaling, or --compare OLD.json [NEW.json]")
    if len(options.compare) > 2:
        raise Unusable(f"--compare takes one or two files, and got {len(options.compare)}")
    before = result.read(options.compare[0])
    if len(options.compare) == 2:
        return compare.told(before, result.read(options.compare[1]), options.reference, console)
    again = options.parser.parse_args(before.command[1:])
    after = RUNS[before.kind](again, console)
    show.show(after, console)
    return compare.told(before, after, options.reference, console)
