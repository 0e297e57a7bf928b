"""Rounds of specificity: what one seed shows of one honest variant or foreign subject, and rounds read from files."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from inferspec.conformance.suite import Profile, suites_of
from inferspec.tools.told import told

SUBJECTS = ("impl", "mlx_core", "mlx_lm", "nano_vllm", "torch", "transformers")
"""Registered subjects whose every failure is known: in their waiver files, as a waiver or as a finding."""

APART = ("ctranslate2", "jax", "litgpt", "onnxruntime", "vllm", "vllm_mlx")
"""The same of software that nothing of the kit installs: they run where they are named."""


@dataclass
class Round:
    """What one seed showed of one subject or honest variant.

    judged: how many verdicts there were (tests of a variant, requirements of a subject); examples: in all of them; alarms:
    what was rejected -> why; findings: what a subject is known to fail, and did; unjudged: why the subject could not run at all;
    extent: what was drawn of what, in words.
    """

    who: str
    seed: int
    judged: int = 0
    examples: int = 0
    alarms: dict[str, str] = field(default_factory=dict)
    findings: tuple[str, ...] = ()
    unjudged: str = ""
    extent: str = ""


@dataclass(frozen=True)
class Work:
    """One round to be done. who: a component and variant joined by a slash, or a registered subject."""

    who: str
    seed: int
    profile: str
    thinned: float
    components: tuple[str, ...]

    @property
    def extent(self) -> str:
        """What is drawn of what: rounds of another extent are no parts of one whole."""
        part = f", {self.thinned:g} of its examples for variants" if self.thinned < 1 else ""
        return f"profile {self.profile}{part}" + (f", {', '.join(self.components)} alone" if self.components else "")

    def __call__(self) -> Round:
        return replace(self._variant() if "/" in self.who else self._subject(), extent=self.extent)

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
            own = [f"inferspec.conformance.{suite}" for name in self.components for suite in suites_of(name)]
            command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "--impl", self.who]
            command += ["--profile", self.profile, "--draw-seed", str(self.seed), "--certificate", str(file)]
            ran = subprocess.run(
                [*command, "--pyargs", *(own or ["inferspec.conformance"])], capture_output=True, text=True, cwd=folder
            )
            if not file.exists():
                lines = (ran.stdout + ran.stderr).strip().splitlines()
                return Round(self.who, self.seed, unjudged=lines[-1] if lines else f"exit code {ran.returncode}")
            certificate = json.loads(file.read_text(encoding="utf-8"))
        known = _findings(self.who, certificate["subject"]["device"])
        return judged(self.who, self.seed, certificate["requirements"], known, whole=not self.components)


def judged(
    who: str, seed: int, rows: Sequence[dict[str, Any]], known: Container[str] = (), whole: bool = False
) -> Round:
    """A round from the rows of a certificate. known: the requirements that the subject is known to fail; whole: whether
    all suites ran, so that a requirement that is unknown has a test that broke.

    What passes although it is waived fails a certificate, and yet nothing was rejected: a seed need not show each failure.
    """
    from inferspec.conformance.reporting.certificate import BAD, STALE

    not_judged, bad_states = {"not_claimed", "outside_envelope", "unknown"}, BAD
    if whole:
        not_judged, bad_states = not_judged - {"unknown"}, BAD | {"unknown"}
    ran = [row for row in rows if row["state"] not in not_judged]
    bad = [row for row in ran if row["state"] in bad_states and not _message(row).startswith(STALE)]
    alarms = {row["id"]: f"{row['state']}: {_message(row)}" for row in bad if row["id"] not in known}
    findings = tuple(row["id"] for row in bad if row["id"] in known)
    return Round(who, seed, len(ran), sum(row["examples"] for row in ran), alarms, findings)


def _findings(who: str, device: str) -> dict[str, str]:
    """What a registered subject is known to fail on a device without a waiver; one that is known to fail nothing has no file."""
    from inferspec.conformance.reporting.waivers import read_findings

    subject = importlib.import_module("inferspec.impl" if who == "impl" else f"inferspec.conformance.subjects.{who}")
    file = getattr(subject, "WAIVERS", "")
    return read_findings(Path(str(subject.__file__)).parent / file, device) if file else {}


def _message(row: dict[str, Any]) -> str:
    failures = row.get("failures") or [{}]
    return str(failures[0].get("message") or row.get("message", ""))


def written(rounds: Iterable[Round]) -> str:
    """Rounds as JSON, which `joined` reads."""
    return json.dumps([asdict(one) for one in rounds], indent=1) + "\n"


def joined(files: Sequence[Path], todo: Iterable[Work]) -> list[Round]:
    """The rounds of several files, which together must be those that were to be done. ValueError where one is missing, is
    there twice or was not asked for."""
    rounds = [one for file in files for one in _read(file)]
    found = Counter((one.who, one.seed, one.extent) for one in rounds)
    wanted = Counter((one.who, one.seed, one.extent) for one in todo)
    for what, some in (("missing", wanted - found), ("there too often, or not asked for", found - wanted)):
        if some:
            who, seed, extent = next(iter(some))
            raise ValueError(f"{some.total()} rounds are {what}, the first: {who}, seed {seed}, {extent}")
    return rounds


def _read(file: Path) -> list[Round]:
    (plain,) = json.loads(written([Round("", 0)]))
    try:
        rows = json.loads(file.read_text(encoding="utf-8"))
        if not all(set(row) == set(plain) and all(type(row[k]) is type(x) for k, x in plain.items()) for row in rows):
            raise ValueError("other keys, or values of other types")
        return [Round(**{**row, "findings": tuple(row["findings"])}) for row in rows]
    except (TypeError, ValueError) as error:
        raise ValueError(f"{file} has no rounds that inferspec specificity --json wrote: {told(error)}") from error
