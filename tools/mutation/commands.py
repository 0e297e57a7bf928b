"""``inferspec mutate``: change the oracles' own source a little, and see whether the suite notices."""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import as_completed
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from inferspec.conformance.suite import EXAMPLES, Profile
from inferspec.tools import arguments
from inferspec.tools.mutation import mutants, results, running, scope
from inferspec.tools.mutation.mutants import Mutant
from inferspec.tools.mutation.results import Results
from inferspec.tools.mutation.running import Fate, Reaches
from inferspec.tools.processes import pool
from inferspec.tools.told import told_of_file


def add_parser(commands: Any) -> None:
    """Add the command to the parser of the command line."""
    parser = commands.add_parser(
        "mutate", help="small changes of the oracles' own source: the suites must reject each, or it is equivalent"
    )
    parser.add_argument("--only", action="append", default=[], metavar="COMPONENT", help="this component; repeatable")
    parser.add_argument("--sample", type=int, metavar="N", help="at most N mutants of each module, drawn by --seed")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the sample (default: 0)")
    parser.add_argument(
        "--key", action="append", default=[], metavar="KEY", help="this mutant, as --list and JSON name it; repeatable"
    )
    parser.add_argument("--profile", default="standard", choices=list(EXAMPLES))
    parser.add_argument(
        "--thinned", type=float, default=1.0, metavar="SHARE", help="of the profile's examples (default: 1)"
    )
    parser.add_argument("--list", action="store_true", help="list the mutants and what is left out, and run nothing")
    parser.add_argument(
        "--join", type=Path, nargs="+", metavar="FILE", help="show earlier results (JSON) together; run nothing"
    )
    parser.add_argument("--json", type=arguments.written, metavar="FILE", help="write the results here")
    parser.add_argument(
        "--report", type=arguments.written, metavar="FILE.html", help="write a page: survivors first, in their source"
    )
    parser.add_argument(
        "-n", type=arguments.processes, default=None, metavar="N", help="processes; default: one for each core"
    )
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Run the command: 1 where a mutant survives that is not known to be equivalent, 2 for bad usage."""
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    if problem := _problem(options):
        console.print(problem, style="red", markup=False)
        return 2
    modules = scope.modules(tuple(options.only))
    populations = [mutants.population(module) for module in modules]
    if options.list:
        _list(console, populations)
        return 0
    if options.join:
        try:
            found = results.joined(options.join)
        except (OSError, ValueError) as error:
            console.print(told_of_file(error), style="red", markup=False)
            return 2
    else:
        chosen = [m for p in populations for m in _chosen(p.mutants, options)]
        left_out = sum((Counter(p.left_out) for p in populations), Counter())
        profile = Profile(options.profile, shrink=False, diagnose=False, thinned=options.thinned)
        fates = list(_run(console, modules, chosen, profile, options))
        found = Results(fates, dict(left_out), sum(len(p.mutants) for p in populations))
    _show(console, found)
    if options.json:
        options.json.write_text(json.dumps(found.as_json(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if options.report:
        from inferspec.tools.mutation.page import page

        options.report.write_text(page(found), encoding="utf-8")
        console.print(f"report: {options.report}", markup=False)
    return 1 if found.survivors else 0


def _problem(options: argparse.Namespace) -> str:
    if problem := arguments.no_component("--only", options.only):
        return problem
    if options.sample is not None and options.sample < 1:
        return f"--sample is a number of mutants, 1 or more, not {options.sample}"
    if not 0 < options.thinned <= 1:
        return f"--thinned is a share in (0, 1], not {options.thinned}"
    known = {one.key for module in scope.modules(tuple(options.only)) for one in mutants.population(module).mutants}
    if unknown := [key for key in options.key if key not in known]:
        return f"--key {unknown[0]}: no mutant has this name; inferspec mutate --list shows them"
    return ""


def _chosen(every: tuple[Mutant, ...], options: argparse.Namespace) -> list[Mutant]:
    """The mutants of a module that are run: all, those named, or a sample that is the same for the same seed."""
    if options.key:
        return [one for one in every if one.key in options.key]
    if options.sample is None or options.sample >= len(every):
        return list(every)
    module = every[0].module
    drawn = set(random.Random(f"{options.seed} {module}").sample(range(len(every)), options.sample))
    return [one for number, one in enumerate(every) if number in drawn]


def _run(
    console: Console, modules: list[str], chosen: list[Mutant], profile: Profile, options: argparse.Namespace
) -> Iterator[Fate]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    concerned = [module for module in modules if any(one.module == module for one in chosen)]
    with Progress(*columns, console=console) as progress, pool(options.n, running.bounded) as workers:
        pieces = running.pieces(concerned, options.only)
        following = progress.add_task("true oracles", total=len(pieces))
        reaches: Reaches = {}
        for future in as_completed([workers.submit(running.follow, (*piece, profile)) for piece in pieces]):
            for place, found in future.result().items():
                reaches.setdefault(place, []).extend(found)
            progress.advance(following)
        judging = progress.add_task("mutants", total=len(chosen))
        jobs = [(one, reaches.get((one.module, one.function), []), profile) for one in chosen]
        for judged in as_completed([workers.submit(running.judge, job) for job in jobs]):
            progress.advance(judging)
            yield judged.result()


def _list(console: Console, populations: Iterable[mutants.Population]) -> None:
    every = list(populations)
    for one in (one for population in every for one in population.mutants):
        console.print(f"{one}  ({one.operator})", markup=False, soft_wrap=True)
    _left_out(console, sum((Counter(population.left_out) for population in every), Counter()))


def _left_out(console: Console, counts: Counter[str] | dict[str, int]) -> None:
    for rule, count in sorted(counts.items(), key=lambda one: -one[1]):
        console.print(f"left out: {count} by the rule “{rule}”: {scope.RULES[rule]}", markup=False, soft_wrap=True)


def _show(console: Console, found: Results) -> None:
    table = Table(
        "module", "mutants", "run", "killed", "by the clock", "equivalent", "survived", "score", title="mutation"
    )
    for name, row in found.by_module().items():
        table.add_row(
            name, *(str(row[key]) for key in ("all", "run", "killed", "hung", "equivalent", "survived")), row["score"]
        )
    console.print(table)
    for fate in found.survivors:
        console.print(
            f"[red]{fate.how}[/]  {escape(str(fate.mutant))}  [dim]({fate.mutant.operator}, {fate.tests} tests)[/]",
            soft_wrap=True,
        )
    _left_out(console, found.left_out)
    console.print(found.summary(), style="red" if found.survivors else "green", markup=False)
