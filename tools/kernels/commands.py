"""The command line of ``inferspec kernels``. Exit codes: 0 clean, 1 findings, 2 the target cannot be run as asked,
does not come to its end, or its tests fail (with findings as well: 1)."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from inferspec.tools import arguments
from inferspec.tools.kernels import cost, device, page, tables
from inferspec.tools.kernels.job import SCHEDULES, Job, Unusable, schedule, shapes_for, way_for
from inferspec.tools.kernels.seen import survey
from inferspec.tools.metalsim import Mode
from inferspec.tools.metalsim.lint import clang

TARGET = "a dotted module, a Python file, or a .metal file"
SHAPES = (
    "how it is launched, repeatable. A .metal file: 'x=float32[4,97] out=float32[4] width=97 threadgroups=4 threadgroup=32' (a"
    " kernel's name may stand first; comments `// launch: …` in the file do as well). Python: 'softmax(x=float32[3,80], axis=-1)'"
)


def add_parser(commands: Any) -> None:
    """Add the command to the parser of the command line."""
    parser = commands.add_parser("kernels", help="Metal kernels, without a Mac: check them, or count what they cost")
    actions = parser.add_subparsers(required=True, metavar="ACTION")

    check = actions.add_parser(
        "check", help="run a module's kernels and report races, overruns, divergent barriers and more, by line"
    )
    check.add_argument("target", metavar="MODULE|FILE", help=TARGET)
    _add_ways(check)
    check.add_argument(
        "--schedules",
        default=",".join(SCHEDULES),
        metavar="NAMES",
        help="orders of threads, each a run of its own: forward, reverse, random, random:SEED (default: %(default)s)",
    )
    check.add_argument(
        "--strict", action="store_true", help="SIMD-group functions order no memory, as Metal promises none"
    )
    lint = check.add_mutually_exclusive_group()
    lint.add_argument(
        "--lint", action="store_true", default=None, help="address spaces too (default: where clang++ is)"
    )
    lint.add_argument("--no-lint", action="store_false", dest="lint", help="no address spaces")
    check.add_argument(
        "--html", type=arguments.written, metavar="FILE", help="write a page with the source lines marked"
    )
    _add_common(check)
    check.set_defaults(command=_check)

    count = actions.add_parser("cost", help="what each launch moves and computes, beside the least possible traffic")
    count.add_argument(
        "targets",
        nargs="+",
        metavar="MODULE|FILE",
        help=f"{TARGET}; several for the same job: each takes those --shapes that are meant for its kind",
    )
    _add_ways(count)
    _add_common(count)
    count.set_defaults(command=_cost)

    device.add_parser(actions)


def _add_ways(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--shapes", action="append", default=[], metavar="LAUNCH", help=SHAPES)
    parser.add_argument("--script", type=Path, metavar="FILE", help="run this with metalsim in MLX's place")
    parser.add_argument(
        "--as-gpu",
        action="store_true",
        help="MLX says that its default device is a GPU, for code that asks before it launches",
    )
    parser.add_argument(
        "--tests", nargs="*", metavar="PATH", help="run these tests; without PATH, and for modules by default, its own"
    )


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", type=arguments.written, metavar="FILE", help="write the result here")
    parser.add_argument(
        "--timeout", type=arguments.seconds, default=60.0, metavar="S", help="seconds for one launch (default: 60)"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="show what the target prints")


def console() -> Console:
    """Where results go: as wide as the terminal, or wide enough for a file."""
    return Console(width=None if sys.stdout.isatty() else 160)


def _check(options: argparse.Namespace) -> int:
    out = console()
    try:
        names = options.schedules.split(",")
        for name in names:
            schedule(name)
        way, texts = way_for(options.target, options.shapes, options.script, options.tests)
        job = Job(options.target, way, texts, Mode.CHECK, "", options.timeout, options.strict, options.as_gpu)
        # The lint depends on no schedule.
        jobs = [replace(job, schedule=name, lint=_lints(options.lint) and name == names[0]) for name in names]
        result = survey(jobs, options.verbose)
    except Unusable as error:
        return unusable(error, out)
    tables.show(result, out)
    if options.json:
        options.json.write_text(json.dumps(result.as_json(), indent=1) + "\n", encoding="utf-8")
    if options.html:
        options.html.write_text(page.page(result), encoding="utf-8")
    if result.found:
        return 1
    return 0 if result.complete else 2


def _lints(asked: bool | None) -> bool:
    """Whether address spaces are checked: if nothing is said, where clang++ is. Raises ``Unusable`` if asked for and it is not."""
    if asked and not clang():
        raise Unusable("--lint needs clang++, which is not there (Debian, Ubuntu: apt install clang)")
    return asked is not False and clang() is not None


def _cost(options: argparse.Namespace) -> int:
    out = console()
    try:
        surveys = []
        for target in options.targets:
            shapes = shapes_for(target, options.shapes) if len(options.targets) > 1 else options.shapes
            way, texts = way_for(target, shapes, options.script, options.tests)
            surveys.append(
                survey(
                    [Job(target, way, texts, Mode.COST, timeout=options.timeout, as_gpu=options.as_gpu)],
                    options.verbose,
                )
            )
    except Unusable as error:
        return unusable(error, out)
    rows = [row for each in surveys for row in cost.rows(each)]
    cost.show(rows, out)
    for each in surveys:
        for note in each.notes:
            out.print(f"note: {each.target}: {note}", style="yellow", markup=False, highlight=False)
    if options.json:
        options.json.write_text(json.dumps([row.as_json() for row in rows], indent=1) + "\n", encoding="utf-8")
    return 0


def unusable(error: Unusable, out: Console) -> int:
    """Say why a target cannot be run."""
    out.print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
    return 2
