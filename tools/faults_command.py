"""``inferspec faults``: the kill matrix, run or read, as tables, as JSON and as a page."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from inferspec.conformance.suite import EXAMPLES
from inferspec.tools import arguments as kinds
from inferspec.tools.told import told_of_file

if TYPE_CHECKING:
    from inferspec.tools.faults import Matrix


def add_parser(commands: Any) -> None:
    """Add the command to the parser of the command line."""
    parser = commands.add_parser("faults", help="the kill matrix: every fault rejected, every honest variant accepted")
    parser.add_argument("--only", action="append", default=[], metavar="COMPONENT", help="this component; repeatable")
    parser.add_argument("--profile", default="standard", choices=list(EXAMPLES))
    parser.add_argument("--draw-seed", type=kinds.whole(0), default=0, metavar="N")
    parser.add_argument("--everywhere", action="store_true", help="run the tests of all requirements on every fault")
    parser.add_argument(
        "--verdict-only",
        action="store_true",
        help="no diagnosis, and a tenth of the examples for honest variants: several times as fast",
    )
    parser.add_argument("--json", type=kinds.written, metavar="FILE", help="write the matrix here")
    parser.add_argument(
        "--report",
        type=kinds.page_or_folder,
        metavar="DIR|FILE.html",
        help="write a page of the matrix, and its JSON beside it",
    )
    parser.add_argument(
        "--read", type=Path, metavar="FILE", help="an earlier run's JSON: show it, or make its page, and run nothing"
    )
    parser.add_argument(
        "--record",
        action="store_true",
        help="keep the result for certificates (conformance/power.json), and what is hard to find (conformance/rejected_by.json)",
    )
    parser.add_argument(
        "-n", type=kinds.processes, default=None, metavar="N", help="processes; default: one for each core"
    )
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Run the command: 1 where a fault survives or an honest variant is rejected, 2 for bad usage."""
    from inferspec.tools import faults

    console = Console(width=None if sys.stdout.isatty() else 160)
    if problem := _problem(options):
        console.print(problem, style="red", markup=False)
        return 2
    if options.read:
        try:
            matrix = faults.read(options.read)
        except (OSError, ValueError) as error:
            console.print(told_of_file(error), style="red", markup=False)
            return 2
        looks = any(kill.diagnosis for kill in matrix.kills)
    else:
        looks = not options.verdict_only
        matrix = _made(options, looks, console)
    if options.json:
        options.json.write_text(json.dumps(matrix.as_json(), indent=1) + "\n", encoding="utf-8")
    console.print(_kills(matrix, looks))
    console.print(_acceptances(matrix))
    if options.report:
        console.print(f"report: {_report(matrix, options.report)}", markup=False)
    if options.record:
        faults.record(matrix)
    found = matrix.problems()
    for problem in found:
        console.print(f"[red]{problem}", highlight=False)
    console.print(_summary(matrix, looks), style="red" if found else "green")
    return 1 if found else 0


def _problem(options: argparse.Namespace) -> str:
    """What of the options cannot be used, or ""."""
    if problem := kinds.no_component("--only", options.only):
        return problem
    if options.read and options.only:
        return f"--only {options.only[0]}: --read shows all that is in its file"
    if options.record and (options.only or options.read):
        return f"--record takes a run of the whole matrix: no {'--only' if options.only else '--read'}"
    return ""


def _made(options: argparse.Namespace, looks: bool, console: Console) -> Matrix:
    """The matrix of a run. looks: whether failures are shrunk and looked up among the faults."""
    from inferspec.conformance.suite import Profile
    from inferspec.tools import faults

    profile = Profile(options.profile, options.draw_seed, shrink=looks, diagnose=looks)
    todo = faults.jobs(profile, options.only, options.everywhere, thinned=1.0 if looks else 0.1)
    results = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("faults and variants", total=len(todo))
        for result in faults.run(todo, options.n):
            results.append(result)
            progress.advance(task)
    return faults.matrix(results, options.only, f"{options.profile}, seed {options.draw_seed}")


def _summary(matrix: Matrix, looks: bool) -> str:
    killed = sum(kill.killed for kill in matrix.kills)
    accepted = sum(not one.rejections for one in matrix.acceptances)
    text = (
        f"{killed} of {len(matrix.kills)} faults rejected by their own requirement, "
        f"{accepted} of {len(matrix.acceptances)} honest variants accepted"
    )
    if looks:
        text += f", diagnosis names the fault for {matrix.diagnosis_rate:.1%}"
    if looks and matrix.mean_steps:
        text += f", the smallest failing stories have {matrix.mean_steps:.1f} steps"
    return text


def _report(matrix: Matrix, place: Path) -> Path:
    """Write the page and its JSON: into a folder, or under the name of a page."""
    from inferspec.tools.faults_page import page

    file = kinds.page_of(place)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(page(matrix), encoding="utf-8")
    file.with_suffix(".json").write_text(json.dumps(matrix.as_json(), indent=1) + "\n", encoding="utf-8")
    return file


def _kills(matrix: Matrix, looks: bool) -> Table:
    table = Table("fault", "requirement", "rejected by", "examples", "seconds", "diagnosis", title="kill matrix")
    for kill in matrix.kills:
        tests = ", ".join(test.split("::")[1] for test in kill.tests) or kill.unjudged or "[red]nothing"
        tests = f"[red]it cannot run: {escape(kill.slip)}" if kill.slip else tests
        alone = "alone" if kill.diagnosis == [kill.fault] else f"among {len(kill.diagnosis)}"
        diagnosis = (alone if kill.diagnosed else "[yellow]missed") if looks else ""
        table.add_row(kill.fault, kill.requirement, tests, str(kill.examples), f"{kill.seconds:.2f}", diagnosis)
    return table


def _acceptances(matrix: Matrix) -> Table:
    table = Table(
        "honest variant", "tests", "examples", "worst share of budget", "rejected by", title="honest variants"
    )
    for acceptance in matrix.acceptances:
        rejected = ", ".join(acceptance.rejections) or "-"
        table.add_row(
            acceptance.variant, str(acceptance.tests), str(acceptance.examples), f"{acceptance.worst:.3f}", rejected
        )
    return table
