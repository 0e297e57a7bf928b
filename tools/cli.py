"""``inferspec``: the one entry point of the tools."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from inferspec.tools import arguments as kinds

if TYPE_CHECKING:
    from inferspec.tools.faults import Matrix

console = Console(width=None if sys.stdout.isatty() else 160)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code (0 good, 1 a finding, 2 bad usage)."""
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    if rest and options.command is not _certify:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    options.rest = rest
    return options.command(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="inferspec", description="The conformance kit for LLM inference components.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    certify = commands.add_parser(
        "certify", help="run the suites on a subject: pytest --pyargs inferspec.conformance …"
    )
    certify.add_argument(
        "--impl", default="impl", metavar="SUBJECT", help="what to certify; 'list' prints the registered subjects"
    )
    certify.epilog = "Further options go to pytest: --profile full, --certificate out.json, -n auto …"
    certify.set_defaults(command=_certify)

    faults = commands.add_parser("faults", help="the kill matrix: every fault rejected, every honest variant accepted")
    faults.add_argument("--only", action="append", default=[], metavar="COMPONENT", help="this component; repeatable")
    faults.add_argument("--profile", default="quick", choices=["quick", "full", "nightly"])
    faults.add_argument("--draw-seed", type=int, default=0, metavar="N")
    faults.add_argument("--everywhere", action="store_true", help="run the tests of all requirements on every fault")
    faults.add_argument(
        "--verdict-only",
        action="store_true",
        help="no diagnosis, and a tenth of the examples for honest variants: several times as fast",
    )
    faults.add_argument("--json", type=kinds.written, metavar="FILE", help="write the matrix here")
    faults.add_argument(
        "--report",
        type=kinds.page_or_folder,
        metavar="DIR|FILE.html",
        help="write a page of the matrix, and its JSON beside it",
    )
    faults.add_argument(
        "--read", type=Path, metavar="FILE", help="an earlier run's JSON: show it, or make its page, and run nothing"
    )
    faults.add_argument(
        "--record", action="store_true", help="keep the result for certificates (conformance/power.json)"
    )
    faults.add_argument(
        "-n", type=kinds.processes, default=None, metavar="N", help="processes; default: one for each core"
    )
    faults.set_defaults(command=_faults)

    golden = commands.add_parser("golden", help="regenerate or check the goldens")
    actions = golden.add_subparsers(required=True, metavar="ACTION")
    for name, text in {
        "regen": "make the goldens anew and print what moved",
        "check": "make them anew and compare",
    }.items():
        action = actions.add_parser(name, help=text)
        action.add_argument(
            "--only", action="append", default=[], metavar="COMPONENT", help="this component; repeatable"
        )
        action.add_argument(
            "--model", metavar="MODEL", help="a name in golden/models, a folder, a .gguf file or a hub id"
        )
        action.add_argument("--revision", metavar="SHA", help="the commit of a hub id; default: that of main, reported")
        action.set_defaults(command=_golden, action=name)

    from inferspec.tools import (
        explain,
        generate,
        init_adapter,
        requirements,
        serve_batch,
        simulate,
        tutorial,
    )
    from inferspec.tools.bench import command as bench
    from inferspec.tools.certificates import commands as certificates
    from inferspec.tools.kernels import commands as kernels
    from inferspec.tools.mutation import commands as mutation
    from inferspec.tools.specificity import commands as specificity

    init_adapter.add_parser(commands)
    explain.add_parser(commands)
    requirements.add_parser(commands)
    tutorial.add_parser(commands)
    generate.add_parser(commands)
    bench.add_parser(commands)
    certificates.add_parsers(commands)
    serve_batch.add_parser(commands)
    simulate.add_parser(commands)
    kernels.add_parser(commands)
    mutation.add_parser(commands)
    specificity.add_parser(commands)
    return parser


def _certify(options: argparse.Namespace) -> int:
    import pytest

    if options.rest and not options.rest[0].startswith("-"):
        console.print(f"{options.rest[0]}: a subject is named by --impl {options.rest[0]}", style="red", markup=False)
        return 2
    return int(pytest.main(["--pyargs", "inferspec.conformance", "--impl", options.impl, *options.rest]))


def _faults(options: argparse.Namespace) -> int:
    from inferspec.conformance.suite import Profile
    from inferspec.spec import COMPONENTS
    from inferspec.tools import faults

    if unknown := [name for name in options.only if name not in COMPONENTS]:
        console.print(f"[red]--only {unknown[0]}: the components are {', '.join(COMPONENTS)}")
        return 2
    if options.record and (options.only or options.read):
        console.print(f"[red]--record takes a run of the whole matrix: no {'--only' if options.only else '--read'}")
        return 2
    looks = not options.verdict_only
    if options.read:
        try:
            matrix = faults.read(options.read)
        except (OSError, ValueError) as error:
            console.print(str(error), style="red", markup=False)
            return 2
        looks = any(kill.diagnosis for kill in matrix.kills)
    else:
        profile = Profile(options.profile, options.draw_seed, shrink=looks, diagnose=looks)
        todo = faults.jobs(profile, options.only, options.everywhere, thinned=1.0 if looks else 0.1)
        results = []
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console) as progress:
            task = progress.add_task("faults and variants", total=len(todo))
            for result in faults.run(todo, options.n):
                results.append(result)
                progress.advance(task)
        matrix = faults.matrix(results, options.only, f"{options.profile}, seed {options.draw_seed}")
    console.print(_kills(matrix, looks))
    console.print(_acceptances(matrix))
    if options.json:
        options.json.write_text(json.dumps(matrix.as_json(), indent=1) + "\n", encoding="utf-8")
    if options.report:
        console.print(f"report: {_report(matrix, options.report)}", markup=False)
    if options.record:
        faults.record(matrix)
    found = matrix.problems()
    for problem in found:
        console.print(f"[red]{problem}", highlight=False)
    killed = sum(kill.killed for kill in matrix.kills)
    console.print(
        f"{killed} of {len(matrix.kills)} faults rejected by their own requirement, "
        f"{sum(not a.rejections for a in matrix.acceptances)} of {len(matrix.acceptances)} honest variants accepted"
        + (f", diagnosis names the fault for {matrix.diagnosis_rate:.1%}" if looks else "")
        + (f", the smallest failing stories have {matrix.mean_steps:.1f} steps" if looks and matrix.mean_steps else ""),
        style="red" if found else "green",
    )
    return 1 if found else 0


def _report(matrix: Matrix, place: Path) -> Path:
    """Write the page and its JSON: into a folder, or under the name of a page."""
    from inferspec.tools.faults_page import page

    file = place if place.suffix == ".html" else place / "faults.html"
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


def _golden(options: argparse.Namespace) -> int:
    if options.revision is not None and options.model is None:
        console.print(f"--revision {options.revision}: it takes --model", style="red", markup=False)
        return 2
    if options.model is not None:
        from inferspec.tools import model_golden

        make = model_golden.regen if options.action == "regen" else model_golden.check
        return make(options.model, options.revision, console)
    from inferspec.tools import golden

    action = golden.regen if options.action == "regen" else golden.check
    return action(only=options.only, console=console)


if __name__ == "__main__":
    sys.exit(main())
