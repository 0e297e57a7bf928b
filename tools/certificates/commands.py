"""``inferspec verify``, ``report``, ``badge``, ``merge`` and ``diff``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from inferspec.conformance.bridge.wire import readable
from inferspec.conformance.reporting.certificate import problems, verdict_text, write
from inferspec.tools import arguments
from inferspec.tools.certificates import badge, comparing, merging, reading
from inferspec.tools.certificates.reading import Refused

CERTIFICATE = "what --certificate wrote"

COLOURS = {1: "green", -1: "red", 0: ""}


def add_parsers(commands: Any) -> None:
    """Add the commands to the parser of the command line."""
    verify = commands.add_parser(
        "verify",
        help="check a certificate: schema, digest, requirement list, verdict",
        description="Check a certificate: schema, digest, requirement list, verdict. Exit code 0: sound, 1: refused, 2: it cannot be read.",
    )
    verify.add_argument("certificate", type=Path, metavar="FILE", help=CERTIFICATE)
    verify.set_defaults(command=_told(_verify))

    report = commands.add_parser(
        "report",
        help="certificates as one page of HTML, side by side",
        description="Show certificates as one page of HTML, side by side: what holds, worst errors, failures.",
    )
    report.add_argument("certificate", type=Path, nargs="+", metavar="FILE", help=CERTIFICATE)
    report.add_argument(
        "--out", type=arguments.written, default=Path("report.html"), metavar="FILE", help="default: report.html"
    )
    report.set_defaults(command=_told(_report))

    mark = commands.add_parser(
        "badge",
        help="a certificate's verdict as JSON for a shields.io endpoint badge",
        description="Tell a certificate's verdict as JSON for a shields.io endpoint badge.",
    )
    mark.add_argument("certificate", type=Path, metavar="FILE", help=CERTIFICATE)
    mark.add_argument("--label", default="inferspec", metavar="TEXT", help="the left half (default: inferspec)")
    mark.add_argument("--out", type=arguments.written, metavar="FILE", help="write it here, and not to the terminal")
    mark.set_defaults(command=_told(_badge))

    merge = commands.add_parser(
        "merge",
        help="join the certificates of `pytest conformance --shard I/N` into one",
        description="Join the certificates of one run's parts, made by `pytest conformance --shard 1/N` to N/N, into one.",
    )
    merge.add_argument("certificate", type=Path, nargs="+", metavar="FILE", help=CERTIFICATE)
    merge.add_argument("--out", type=arguments.written, required=True, metavar="FILE", help="where to")
    merge.set_defaults(command=_told(_merge))

    diff = commands.add_parser(
        "diff",
        help="what moved from one certificate to another",
        description="Tell what moved from one certificate to another. Exit code 0: nothing became worse, 1: something did, 2: one cannot be read.",
    )
    diff.add_argument("before", type=Path, metavar="BEFORE", help=CERTIFICATE)
    diff.add_argument("after", type=Path, metavar="AFTER", help="a later one")
    diff.set_defaults(command=_told(_diff))


def _told(do: Callable[[argparse.Namespace, Console], int]) -> Callable[[argparse.Namespace], int]:
    """A command whose refusals are one line and exit code 2."""

    def command(options: argparse.Namespace) -> int:
        console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
        try:
            return do(options, console)
        except (Refused, OSError) as error:
            console.print(readable(str(error)), style="red", markup=False, soft_wrap=True)
            return 2

    return command


def _verify(options: argparse.Namespace, console: Console) -> int:
    certificate = reading.parsed(options.certificate)
    found = problems(certificate)
    for problem in found:
        console.print(f"[red]refused:[/] {escape(readable(problem))}")
    if found:
        return 1
    console.print(f"[green]sound:[/] {escape(reading.title(certificate))}: {verdict_text(certificate)}")
    return 0


def _report(options: argparse.Namespace, console: Console) -> int:
    from inferspec.tools.certificates.report import report

    certificates = _named(options.certificate)
    _spare(options.certificate, options.out)
    # What no file can hold (half a character) is shown as a question mark.
    options.out.write_text(report(certificates), encoding="utf-8", errors="replace")
    for name, one in certificates.items():
        console.print(f"{name}: {reading.title(one)}: {verdict_text(one)}", markup=False)
    console.print(f"report: {options.out}", markup=False)
    return 0


def _badge(options: argparse.Namespace, console: Console) -> int:
    text = json.dumps(badge.badge(reading.read(options.certificate), readable(options.label)), ensure_ascii=False)
    if options.out:
        _spare([options.certificate], options.out)
        options.out.write_text(text + "\n", encoding="utf-8")
    else:
        print(text)
    return 0


def _merge(options: argparse.Namespace, console: Console) -> int:
    merged = merging.merge(_named(options.certificate))
    _spare(options.certificate, options.out)
    write(merged, options.out)
    console.print(f"{reading.title(merged)}, {len(merged['shards'])} shards: {verdict_text(merged)}", markup=False)
    return 0


def _diff(options: argparse.Namespace, console: Console) -> int:
    before, after = reading.read_any(options.before), reading.read_any(options.after)
    found = comparing.changes(before, after)
    table = Table("", "before", "after")
    for change in found:
        shown = [escape(readable(text)) for text in (change.what, change.before, change.after)]
        table.add_row(*shown, style=COLOURS[change.weight])
    console.print(table if found else "nothing moved")
    worse = [change for change in found if change.weight < 0]
    return 1 if worse else 0


def _spare(certificates: list[Path], out: Path) -> None:
    """Refused where the output would take the place of what it is made from."""
    if same := next((path for path in certificates if path.resolve() == out.resolve()), None):
        raise Refused(f"--out {out} would take the place of {same}; give it another name")


def _named(paths: list[Path]) -> dict[str, reading.Certificate]:
    names, files = [str(path) for path in paths], [path.resolve() for path in paths]
    if twice := next((path for path, file in zip(paths, files, strict=True) if files.count(file) > 1), None):
        raise Refused(f"{twice} is given twice")
    return {name: reading.read(path) for name, path in zip(names, paths, strict=True)}
