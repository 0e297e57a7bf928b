"""``inferspec specificity``: do the suites ever reject what is right? Honest variants and foreign subjects, on many seeds."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import as_completed
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from inferspec.conformance.suite import EXAMPLES
from inferspec.spec import contracts
from inferspec.tools import arguments
from inferspec.tools.processes import pool
from inferspec.tools.specificity.rounds import APART, SUBJECTS, Round, Work, joined, written
from inferspec.tools.told import told_of_file

VARIANTS = "variants"


def add_parser(commands: Any) -> None:
    """Add the command to the parser of the command line."""
    parser = commands.add_parser(
        "specificity", help="false alarms: honest variants and foreign subjects on many seeds; none may be rejected"
    )
    parser.add_argument("--seeds", type=int, default=20, metavar="N", help="how many (default: 20)")
    parser.add_argument("--first-seed", type=int, default=1, metavar="S", help="the first of them (default: 1)")
    parser.add_argument("--profile", default="nightly", choices=[*EXAMPLES])
    parser.add_argument(
        "--thinned",
        type=float,
        default=1.0,
        metavar="SHARE",
        help="of its examples that a variant is tried on (default: 1)",
    )
    parser.add_argument(
        "--who",
        action="append",
        default=[],
        choices=[VARIANTS, *SUBJECTS, *APART],
        help=f"these alone; repeatable (default: all but {', '.join(APART)})",
    )
    parser.add_argument("--only", action="append", default=[], metavar="COMPONENT", help="this component; repeatable")
    parser.add_argument(
        "--join",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="take the rounds from what --json wrote, and run nothing: all of them, and no others, must be there",
    )
    parser.add_argument("--json", type=arguments.written, metavar="FILE", help="write every round here")
    parser.add_argument(
        "-n", type=arguments.processes, default=None, metavar="N", help="processes; default: one for each core"
    )
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Run the command: 1 for a false alarm, or for a subject that did not run; 2 for bad usage."""
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    if problem := _problem(options):
        console.print(problem, style="red", markup=False)
        return 2
    try:
        todo = list(works(options))
        every: Iterable[Round] = joined(options.join, todo) if options.join else _run(console, todo, options.n)
    except (OSError, ValueError) as error:
        console.print(told_of_file(error), style="red", markup=False)
        return 2
    rounds: list[Round] = []
    for one in every:
        rounds.append(one)
        _tell(console, one)
        if options.json:
            # After each round: hours of them are not lost with the last one.
            options.json.write_text(written(rounds), encoding="utf-8")
    console.print(_table(rounds))
    alarms = sum(len(one.alarms) for one in rounds)
    unjudged = sum(bool(one.unjudged) for one in rounds)
    verdicts = sum(one.judged for one in rounds)
    console.print(
        f"{alarms} false alarms in {verdicts} verdicts ({alarms / max(verdicts, 1):.2%}) and "
        f"{sum(one.examples for one in rounds)} examples: {len({one.seed for one in rounds})} seeds, "
        f"{next((one.extent for one in rounds), 'no rounds')}",
        style="red" if alarms or unjudged else "green",
    )
    return 1 if alarms or unjudged or not rounds else 0


def _tell(console: Console, one: Round) -> None:
    for what, why in one.alarms.items():
        console.print(f"[red]{escape(one.who)}, seed {one.seed}: {escape(what)}: {escape(why)}", soft_wrap=True)
    if one.unjudged:
        console.print(f"[red]{one.who}, seed {one.seed}, did not run: {escape(one.unjudged)}", soft_wrap=True)


def _problem(options: argparse.Namespace) -> str:
    if problem := arguments.no_component("--only", options.only):
        return problem
    if options.seeds < 1 or options.first_seed < 0:
        return (
            f"--seeds is a number, 1 or more, and --first-seed 0 or more, not {options.seeds} and {options.first_seed}"
        )
    return "" if 0 < options.thinned <= 1 else f"--thinned is a share in (0, 1], not {options.thinned}"


def works(options: argparse.Namespace) -> Iterator[Work]:
    """Every round, the long ones first."""
    who = options.who or [*SUBJECTS, VARIANTS]
    names = [one for one in (*SUBJECTS, *APART) if one in who]
    if VARIANTS in who:
        chosen = [one for one in contracts() if not options.only or one.component in options.only]
        names += [f"{one.component}/{variant.name}" for one in chosen for variant in one.variants]
    for name in names:
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            yield Work(name, seed, options.profile, options.thinned, tuple(options.only))


def _run(console: Console, todo: Sequence[Work], processes: int | None) -> Iterator[Round]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress, pool(processes) as workers:
        task = progress.add_task("rounds", total=len(todo))
        for future in as_completed([workers.submit(one) for one in todo]):
            progress.advance(task)
            yield future.result()


def _table(rounds: Sequence[Round]) -> Table:
    table = Table("who", "seeds", "verdicts", "examples", "known findings", "false alarms", title="specificity")
    groups: dict[str, list[Round]] = {}
    for one in rounds:
        groups.setdefault(f"variants of {one.who.partition('/')[0]}" if "/" in one.who else one.who, []).append(one)
    for who, own in groups.items():
        counts = (len({one.seed for one in own if not one.unjudged}), sum(one.judged for one in own))
        alarms, findings = sum(len(one.alarms) for one in own), {what for one in own for what in one.findings}
        numbers = (*counts, sum(one.examples for one in own), len(findings))
        table.add_row(who, *map(str, numbers), f"[red]{alarms}" if alarms else "0")
    return table
