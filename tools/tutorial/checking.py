"""Runs the suites on the learner's file: requirement by requirement until one is not met, then all for a certificate."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inferspec.conformance.session import Session
from inferspec.conformance.suite import all_tests
from inferspec.spec import contract

SHARE = 0.75
"""Part of the standard profile's examples with which a step is checked; the certificate takes all of them."""


@dataclass(frozen=True)
class Failure:
    """A requirement that is not met: its id, what to read of it, and the faults that it looks like."""

    requirement: str
    text: str
    diagnosis: tuple[str, ...]


def first_failure(file: Path, met: Callable[[str, int], None]) -> Failure | None:
    """Test the requirements of RoPE in their order; the first that is not met, or None. met: is told of each that is,
    and of how many examples its tests tried. AdapterError where the file cannot be used at all."""
    session = Session.opened(str(file))
    session.profile = replace(session.profile, thinned=SHARE)
    try:
        for requirement in contract("rope").requirements:
            examples = 0
            for test in (test for test in all_tests() if test.requirement.id == requirement.id):
                outcome = session.run(test)
                examples += outcome.examples if outcome.state == "passed" else 0
                if outcome.state not in ("passed", "outside_envelope") and requirement.level == "MUST":
                    text = session.failure_text(test, outcome, f"{test.file}::{test.name}")
                    return Failure(requirement.id, text, tuple(outcome.diagnosis))
            if examples:
                met(requirement.id, examples)
    finally:
        session.close()
    return None


def certified(file: Path) -> tuple[dict[str, Any] | None, str]:
    """Run all suites as anyone would, and write `certificate.json` beside the file: (the certificate, what was printed)."""
    out = file.parent / "certificate.json"
    out.unlink(missing_ok=True)
    options = ["--impl", f"./{file.name}", "--certificate", out.name, "-n", "0", "-q", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "--pyargs", "inferspec.conformance", *options]
    done = subprocess.run(command, cwd=file.parent, capture_output=True, text=True, check=False)
    return (json.loads(out.read_text(encoding="utf-8")) if out.exists() else None), done.stdout + done.stderr
