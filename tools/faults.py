"""The kill matrix: every fault must be rejected by a test of the requirement that it names, every honest variant accepted."""

from __future__ import annotations

import functools
import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from inferspec.conformance.calls import Call, Observation
from inferspec.conformance.judging.trial import Nonconformance, Trial
from inferspec.conformance.subject import LocalSubject, Result
from inferspec.conformance.suite import Profile, Test, all_tests
from inferspec.spec import contract as contract_of
from inferspec.spec import contracts
from inferspec.spec.contract import Contract, Operation
from inferspec.tools.processes import pool
from inferspec.tools.told import told

_STEP = re.compile(r"^ *\d+\. ", re.MULTILINE)
"""How a step of a story begins in print."""

SLIPS = ("NameError", "UnboundLocalError", "ImportError", "ModuleNotFoundError", "RecursionError")
"""Errors of a fault that is itself mistaken: every test rejects what cannot run, which proves nothing."""

BAD = ("failed", "overclaimed", "crashed", "hung")

BEGUN = (0.05, 0.3, 1.0)
"""Parts of their examples that all tests of a requirement run before one of them runs more: most faults show early in some
test, and those that cannot see one would run in vain to their end."""

REJECTED_BY = Path(__file__).resolve().parents[1] / "conformance" / "rejected_by.json"
"""Fault -> the test that rejected it when the matrix was last recorded, where others had drawn many examples in vain by
then: it is asked first. Written by `inferspec faults --record`."""

IN_VAIN = 8
"""Examples from which on a fault is kept there: others are found as soon."""


@dataclass
class Kill:
    """What became of one fault. tests: those of its own requirement that reject it, the first alone unless all were
    asked for; elsewhere: the other requirements whose tests do; diagnosed: whether a diagnosis names it on its own
    requirement's failure; steps: how many the smallest failing story has, 0 where a call is no story."""

    fault: str
    component: str
    requirement: str
    tests: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    examples: int = 0
    """The example that showed it first, counted from 1."""
    limit: int = 0
    """How many examples the test that rejects it draws in this profile, 1 where it draws none."""
    in_vain: int = 0
    """How many examples tests drew before that without seeing anything."""
    seconds: float = 0.0
    steps: int = 0
    diagnosis: list[str] = field(default_factory=list)
    unjudged: str = ""
    """Why no test could run on it: what it is about is not installed here."""
    slip: str = ""
    """The error, one of SLIPS, that shows that it does not do what it says."""

    @property
    def killed(self) -> bool:
        return bool(self.tests) and not self.slip

    @property
    def diagnosed(self) -> bool:
        return self.fault in self.diagnosis


@dataclass
class Acceptance:
    """What became of one honest variant. rejections: test -> message."""

    variant: str
    component: str
    tests: int = 0
    examples: int = 0
    worst: float = 0.0
    rejections: dict[str, str] = field(default_factory=dict)


@dataclass
class Matrix:
    """The kill matrix of the whole kit."""

    kills: list[Kill]
    acceptances: list[Acceptance]
    bare: list[str]
    """requirements without a fault"""
    untested: list[str]
    """requirements without a test"""
    profile: str = ""
    """Name and seed of the profile that the faults were judged in."""

    def problems(self) -> list[str]:
        """What makes the build fail, in sentences."""
        found = [
            f"{k.fault} survives every test of {k.requirement}" + _only(k)
            for k in self.kills
            if not (k.tests or k.unjudged)
        ]
        found += [f"{k.fault} cannot run: {k.slip}" for k in self.kills if k.slip]
        found += [f"{requirement} has no fault" for requirement in self.bare]
        found += [f"{requirement} has no test" for requirement in self.untested]
        for acceptance in self.acceptances:
            found += [
                f"honest variant {acceptance.variant} is rejected by {test}: {text}"
                for test, text in acceptance.rejections.items()
            ]
        return found

    @property
    def diagnosis_rate(self) -> float:
        killed = [k for k in self.kills if k.killed]
        return sum(k.diagnosed for k in killed) / max(len(killed), 1)

    @property
    def mean_steps(self) -> float:
        """Of the smallest failing stories; 0 where there are none."""
        told = [k.steps for k in self.kills if k.steps]
        return sum(told) / max(len(told), 1)

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {
            "diagnosis_rate": self.diagnosis_rate,
            "mean_steps": self.mean_steps,
            "problems": self.problems(),
        }


class Candidate(LocalSubject):
    """A fault or a variant in the place of a subject. slip: the error, one of SLIPS, that it ended in first."""

    slip = ""

    def call(self, call: Call, results: Sequence[Result] = (), watch: bool = False) -> Observation:
        seen = super().call(call, results, watch)
        if seen.raised in SLIPS and not self.slip:
            self.slip = f"{seen.raised}: {seen.message}"
        return seen


class _Counting(Trial):
    """A trial that knows which example failed first: shrinking and the search for more failures count on."""

    first = 0

    def failed(self, failure: Nonconformance, drawn: Mapping[str, Any]) -> None:
        self.first = self.first or self.outcome.examples
        super().failed(failure, drawn)


def _only(kill: Kill) -> str:
    return f" (it is rejected only by tests of {', '.join(kill.elsewhere)})" if kill.elsewhere else ""


def kill(component: str, name: str, profile: Profile, everywhere: bool = False) -> Kill:
    """Run the tests of a fault's requirement on it; with `everywhere`, or when it survives, those of the others too."""
    contract = contract_of(component)
    fault = next(f for f in contract.faults if f.name == name)
    result = Kill(name, component, fault.kills.id)
    subject = local_subject(contract, fault.kills.name, contract.faulty(fault), envelope=fault.envelope)
    own = [t for t in all_tests() if t.requirement.id == fault.kills.id]
    started, outside = time.perf_counter(), {}
    for test, begun in [(test, 1.0) for test in own] if everywhere else _in_turn(name, own):
        if test.id in outside:
            continue
        trial = _Counting(subject, test.requirement)
        test.run(trial, replace(profile, begun=begun))
        if trial.outcome.state == "outside_envelope":
            outside[test.id] = trial.outcome.message
        if trial.outcome.state in BAD:
            if not result.tests:
                result.seconds = time.perf_counter() - started
                result.examples = trial.first or trial.outcome.examples
                result.limit = test.examples(profile) if test.inputs else 1
                result.diagnosis = trial.outcome.diagnosis
                result.steps = len(_STEP.findall(trial.outcome.call))
            result.tests.append(test.id)
            if not everywhere:
                break
        elif not result.tests:
            result.in_vain += trial.outcome.examples
    if own and len(outside) == len(own):
        result.unjudged = outside[own[0].id]
    elif everywhere or not result.tests:
        result.elsewhere = sorted(_rejecting(subject, fault.kills.id, contract, profile))
    result.slip = subject.slip
    return result


def _in_turn(fault: str, own: Sequence[Test]) -> Iterator[tuple[Test, float]]:
    """The tests of a fault's requirement, and the part of its examples that each of them is to run: that which is known to
    reject it first, then all little by little."""
    yield from ((test, 1.0) for test in own if test.id == rejected_by().get(fault))
    for begun in BEGUN:
        # What draws no inputs is run once.
        yield from ((test, begun) for test in own if test.inputs or begun == BEGUN[0])


@functools.cache
def rejected_by() -> Mapping[str, str]:
    """What `REJECTED_BY` says."""
    known: dict[str, str] = json.loads(REJECTED_BY.read_text(encoding="utf-8"))
    return known


def _rejecting(subject: LocalSubject, own: str, contract: Contract, profile: Profile) -> set[str]:
    found = set()
    ids = {requirement.id for requirement in contract.requirements} - {own}
    for test in (t for t in all_tests() if t.requirement.id in ids):
        trial = Trial(subject, test.requirement)
        test.run(trial, profile)
        if trial.outcome.state in BAD:
            found.add(test.requirement.id)
    return found


def accept(component: str, name: str, profile: Profile) -> Acceptance:
    """Run every test of a variant's operation on it."""
    contract = contract_of(component)
    variant = next(v for v in contract.variants if v.name == name)
    result = Acceptance(name, component)
    changed = contract.variant(variant)
    subject = local_subject(contract, variant.operation, changed, str(variant.precision), variant.envelope)
    for test in (t for t in all_tests() if t.requirement.name == variant.operation):
        if test.requirement.id in variant.unmet:
            continue
        trial = Trial(subject, test.requirement)
        test.run(trial, profile)
        result.tests += 1
        result.examples += trial.outcome.examples
        result.worst = max(result.worst, trial.outcome.worst)
        if trial.outcome.state not in ("passed", "outside_envelope"):
            result.rejections[test.id] = trial.outcome.message
    return result


def local_subject(
    contract: Contract,
    name: str,
    changed: type[Operation],
    precision: str = "float32",
    envelope: Mapping[str, tuple[Any, ...]] | None = None,
) -> Candidate:
    """A contract's operations, one of them changed, as a subject that declares this precision and envelope."""
    operations = {op.signature.operation: op for op in contract.operations}
    component = contract.component
    return Candidate({**operations, name: changed}, {component: precision}, {component: envelope or {}})


Job = tuple[str, str, str, Profile, bool]


def jobs(profile: Profile, components: Iterable[str] = (), everywhere: bool = False, thinned: float = 1.0) -> list[Job]:
    """Every fault and variant of the components (all of them by default), as work to hand out.

    thinned: the part of its examples that a variant, which must pass them all, is tried on.
    """
    wanted = set(components)
    chosen = [c for c in contracts() if not wanted or c.component in wanted]
    found: list[Job] = [("kill", c.component, f.name, profile, everywhere) for c in chosen for f in c.faults]
    found += [
        ("accept", c.component, v.name, Profile(profile.name, profile.seed, thinned=thinned), False)
        for c in chosen
        for v in c.variants
    ]
    return found


def work(job: Job) -> Kill | Acceptance:
    """Do one job; runs in a worker process."""
    what, component, name, profile, everywhere = job
    # What a wrong oracle overflows is its own affair.
    with np.errstate(all="ignore"):
        return kill(component, name, profile, everywhere) if what == "kill" else accept(component, name, profile)


def run(todo: list[Job], processes: int | None = None) -> Iterator[Kill | Acceptance]:
    """Do the jobs in parallel and yield the results as they are asked for, in order."""
    processes = processes or os.cpu_count() or 1
    if processes == 1:
        yield from map(work, todo)
        return
    with pool(processes) as workers:
        yield from workers.map(work, todo)


def matrix(results: Iterable[Kill | Acceptance], components: Iterable[str] = (), profile: str = "") -> Matrix:
    """Put the results together with what the contracts lack."""
    found = list(results)
    wanted = set(components)
    chosen = [c for c in contracts() if not wanted or c.component in wanted]
    requirements = [r.id for c in chosen for r in c.requirements]
    with_fault = {f.kills.id for c in chosen for f in c.faults}
    with_test = {t.requirement.id for t in all_tests()}
    return Matrix(
        [r for r in found if isinstance(r, Kill)],
        [r for r in found if isinstance(r, Acceptance)],
        [r for r in requirements if r not in with_fault],
        [r for r in requirements if r not in with_test],
        profile,
    )


def read(path: Path) -> Matrix:
    """A matrix from its JSON; ValueError when it is none, or of faults that the kit has no more."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        kills = [Kill(**one) for one in found["kills"]]
        acceptances = [Acceptance(**one) for one in found["acceptances"]]
        result = Matrix(kills, acceptances, found["bare"], found["untested"], found["profile"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not what `inferspec faults --json` writes: {told(error)}") from error
    known = {(f.name, f.kills.id) for c in contracts() for f in c.faults} | {
        (v.name, "") for c in contracts() for v in c.variants
    }
    named = [(one.fault, one.requirement) for one in kills] + [(one.variant, "") for one in acceptances]
    if strange := [name for name, _ in (set(named) - known)]:
        raise ValueError(f"{path} is of another kit: this one has no {min(strange)}")
    return result


def record(matrix: Matrix) -> None:
    """Keep the figures for certificates, with the identity of the faults that they hold for."""
    from inferspec.conformance.reporting.power import POWER, faults_digest

    killed = sum(k.killed for k in matrix.kills)
    accepted = sum(not a.rejections for a in matrix.acceptances)
    figures = {
        "digest": faults_digest(),
        "faults": len(matrix.kills),
        "rejected": killed,
        "variants": len(matrix.acceptances),
        "accepted": accepted,
        # None where nothing was looked up (--verdict-only).
        "diagnosed": sum(k.diagnosed for k in matrix.kills) if any(k.diagnosis for k in matrix.kills) else None,
    }
    POWER.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    # One that its test of last time rejects again was looked for in vain by others once.
    late = {k.fault: k.tests[0] for k in matrix.kills if k.tests and k.in_vain >= IN_VAIN}
    kept = {k.fault: k.tests[0] for k in matrix.kills if k.tests[:1] == [rejected_by().get(k.fault)]}
    REJECTED_BY.write_text(json.dumps(kept | late, indent=1, sort_keys=True) + "\n", encoding="utf-8")
