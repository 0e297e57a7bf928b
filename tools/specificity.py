"""``inferspec specificity``: do the suites ever reject what is right? Honest variants and foreign subjects, on many seeds."""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Container, Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from inferspec.conformance.suite import EXAMPLES, Profile
from inferspec.spec import COMPONENTS, contracts
from inferspec.tools import arguments
from inferspec.tools.processes import pool

SUBJECTS = ("impl", "mlx_core", "mlx_lm", "nano_vllm", "torch", "transformers")
"""Registered subjects whose every failure is known: in their waiver files, as a waiver or as a finding."""

APART = ("jax", "litgpt", "onnxruntime", "vllm")
"""The same of software that nothing of the kit installs: they run where they are named."""

VARIANTS = "variants"


@dataclass
class Round:
    """What one seed showed of one subject or honest variant.

    judged: how many verdicts there were (tests of a variant, requirements of a subject); examples: in all of them; alarms:
    what was rejected -> why; findings: what a subject is known to fail, and did; unjudged: why the subject could not run at all.
    """

    who: str
    seed: int
    judged: int = 0
    examples: int = 0
    alarms: dict[str, str] = field(default_factory=dict)
    findings: tuple[str, ...] = ()
    unjudged: str = ""


@dataclass(frozen=True)
class Work:
    """One round to be done. who: a component and variant joined by a slash, or a registered subject."""

    who: str
    seed: int
    profile: str
    thinned: float
    components: tuple[str, ...]

    def __call__(self) -> Round:
        return self._variant() if "/" in self.who else self._subject()

    def _variant(self) -> Round:
        from inferspec.tools.faults import accept

        component, _, name = self.who.partition("/")
        profile = Profile(self.profile, self.seed, shrink=False, diagnose=False, thinned=self.thinned)
        found = accept(component, name, profile)
        return Round(self.who, self.seed, found.tests, found.examples, dict(found.rejections))

    def _subject(self) -> Round:
        """Certify the subject as a user would: its waivers are its known failures, and what else fails is an alarm."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "certificate.json"
            suites = [f"inferspec.conformance.test_{name}" for name in self.components] or ["inferspec.conformance"]
            command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "--impl", self.who]
            command += ["--profile", self.profile, "--draw-seed", str(self.seed), "--certificate", str(file)]
            ran = subprocess.run([*command, "--pyargs", *suites], capture_output=True, text=True, cwd=folder)
            if not file.exists():
                lines = (ran.stdout + ran.stderr).strip().splitlines()
                return Round(self.who, self.seed, unjudged=lines[-1] if lines else f"exit code {ran.returncode}")
            rows = json.loads(file.read_text(encoding="utf-8"))["requirements"]
        return judged(self.who, self.seed, rows, _findings(self.who), whole=not self.components)


def judged(
    who: str, seed: int, rows: Sequence[dict[str, Any]], known: Container[str] = (), whole: bool = False
) -> Round:
    """A round from the rows of a certificate. known: the requirements that the subject is known to fail; whole: whether
    all suites ran, so that a requirement that is unknown has a test that broke.

    What passes although it is waived fails a certificate, and yet nothing was rejected: a seed need not show each failure.
    """
    from inferspec.conformance.certificate import BAD, STALE

    not_judged, bad_states = {"not_claimed", "outside_envelope", "unknown"}, BAD
    if whole:
        not_judged, bad_states = not_judged - {"unknown"}, BAD | {"unknown"}
    ran = [row for row in rows if row["state"] not in not_judged]
    bad = [row for row in ran if row["state"] in bad_states and not _message(row).startswith(STALE)]
    alarms = {row["id"]: f"{row['state']}: {_message(row)}" for row in bad if row["id"] not in known}
    findings = tuple(row["id"] for row in bad if row["id"] in known)
    return Round(who, seed, len(ran), sum(row["examples"] for row in ran), alarms, findings)


def _findings(who: str) -> dict[str, str]:
    """What a registered subject is known to fail without a waiver; one that is known to fail nothing has no file."""
    from inferspec.conformance.waivers import read_findings

    subject = importlib.import_module("inferspec.impl" if who == "impl" else f"inferspec.conformance.subjects.{who}")
    file = getattr(subject, "WAIVERS", "")
    return read_findings(Path(str(subject.__file__)).parent / file) if file else {}


def _message(row: dict[str, Any]) -> str:
    failures = row.get("failures") or [{}]
    return str(failures[0].get("message") or row.get("message", ""))


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
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every round here")
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
    rounds: list[Round] = []
    for one in _run(console, list(works(options)), options.n):
        rounds.append(one)
        _tell(console, one)
        if options.json:
            # After each round: hours of them are not lost with the last one.
            options.json.write_text(json.dumps([asdict(one) for one in rounds], indent=1) + "\n", encoding="utf-8")
    console.print(_table(rounds))
    alarms = sum(len(one.alarms) for one in rounds)
    unjudged = sum(bool(one.unjudged) for one in rounds)
    verdicts = sum(one.judged for one in rounds)
    console.print(
        f"{alarms} false alarms in {verdicts} verdicts ({alarms / max(verdicts, 1):.2%}) and "
        f"{sum(one.examples for one in rounds)} examples: {options.seeds} seeds of profile {options.profile}",
        style="red" if alarms or unjudged else "green",
    )
    return 1 if alarms or unjudged else 0


def _tell(console: Console, one: Round) -> None:
    for what, why in one.alarms.items():
        console.print(f"[red]{escape(one.who)}, seed {one.seed}: {escape(what)}: {escape(why)}", soft_wrap=True)
    if one.unjudged:
        console.print(f"[red]{one.who}, seed {one.seed}, did not run: {escape(one.unjudged)}", soft_wrap=True)


def _problem(options: argparse.Namespace) -> str:
    if unknown := [name for name in options.only if name not in COMPONENTS]:
        return f"--only {unknown[0]}: the components are {', '.join(COMPONENTS)}"
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
