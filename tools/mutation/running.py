"""Runs the suites on mutants: as subjects judged by the true oracle, or, where no subject's call gets, as the judge of one."""

from __future__ import annotations

import contextlib
import dataclasses
import resource
import signal
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from inferspec.conformance.envelope import Envelope
from inferspec.conformance.judging.trial import Trial
from inferspec.conformance.subject import LocalSubject
from inferspec.conformance.suite import Profile, Test, all_tests
from inferspec.golden import GoldenError
from inferspec.spec import contract as true_contract
from inferspec.spec.contract import Contract
from inferspec.tools.faults import BAD
from inferspec.tools.mutation import loading, mutants, scope
from inferspec.tools.mutation.mutants import Mutant

FIRST, TRACED = 0.04, 0.2
"""The part of the examples that a mutant is tried on at first, and that the true oracle is followed on."""
PATIENCE, SLACK = 10.0, 20.0
"""A test hangs that takes so many seconds of the processor, and so many times what the true oracle takes."""
AGAIN = 1.0
"""Seconds after which a test that goes on all the same is told again."""
MEMORY = 6 * 2**30
"""Bytes that a worker may take: some mutants ask for more and more."""

SUBJECT, JUDGE = "subject", "judge"


@dataclass(frozen=True, slots=True)
class Reach:
    """Which test gets to a function of a module, in which of the two roles, its seconds for all its examples, and what the
    subject declares."""

    component: str
    test: str
    role: str
    seconds: float
    envelope: Envelope = field(default_factory=dict)


@dataclass
class Fate:
    """What became of a mutant. how: killed, hung (killed by the clock), survived or unreached; test: what killed it."""

    mutant: Mutant
    how: str = "survived"
    role: str = SUBJECT
    test: str = ""
    tests: int = 0
    examples: int = 0
    seconds: float = 0.0

    @property
    def killed(self) -> bool:
        return self.how in ("killed", "hung")


Asked = tuple[Test, Envelope]
Reaches = dict[tuple[str, str], list[Reach]]
Job = tuple[Mutant, list[Reach], Profile]


class OutOfTime(BaseException):
    """A test takes longer than an honest oracle ever would."""


def pieces(modules: Iterable[str], components: Iterable[str]) -> list[tuple[str, str]]:
    """(component, module) of what has to be followed before mutants of the modules can be judged."""
    wanted = set(components)
    return [(c, m) for m in modules for c in scope.judges(m) if not wanted or c in wanted]


def follow(piece: tuple[str, str, Profile]) -> Reaches:
    """Run the suites of a component on its true oracle, in both roles; tell which functions each test gets to."""
    component, module, profile = piece
    found: Reaches = {}
    if not scope.functions(scope.tree(module)):
        return found
    for role in (SUBJECT, JUDGE):
        traced = loading.traced_contract(component, module)
        for test, envelope in _asked(component):
            loading.REACHED.clear()
            trial = _trial(test, traced, role, envelope)
            started = time.process_time()
            with _quiet():
                test.run(trial, dataclasses.replace(profile, thinned=TRACED * profile.thinned))
            seconds = (time.process_time() - started) / TRACED
            if trial.outcome.state in BAD:
                raise RuntimeError(f"{test.id} rejects the unchanged oracle of {component}: {trial.outcome.message}")
            for place in loading.REACHED:
                found.setdefault(place, []).append(Reach(component, test.id, role, seconds, envelope))
    return found


def judge(job: Job) -> Fate:
    """Run on a mutant the tests that get to its function: all of them on a few examples, then on all examples."""
    mutant, reaches, profile = job
    fate, started = Fate(mutant), time.perf_counter()
    if not reaches:
        fate.how = "unreached"
        return fate
    own = [reach for reach in reaches if reach.role == SUBJECT] or reaches
    fate.role = own[0].role
    with mutants.applied(mutant) as tree, _quiet():
        try:
            changed = {c: loading.contract(c, mutant.module, tree) for c in dict.fromkeys(r.component for r in own)}
        except Exception:
            fate.how, fate.test = "killed", "it cannot be loaded"
            return fate
        tests = {test.id: test for test in all_tests()}
        for part in (FIRST, 1.0):
            for reach in sorted(own, key=lambda one: one.seconds):
                trial = _trial(tests[reach.test], changed[reach.component], reach.role, reach.envelope)
                try:
                    with _clock(PATIENCE + SLACK * reach.seconds * part):
                        tests[reach.test].run(trial, dataclasses.replace(profile, thinned=part * profile.thinned))
                except OutOfTime:
                    fate.how = "hung"
                except (MemoryError, GoldenError):
                    # As the judge it does not give the goldens any more.
                    fate.how = "killed"
                fate.tests, fate.examples = fate.tests + 1, fate.examples + trial.outcome.examples
                if trial.outcome.state in BAD:
                    fate.how = "killed"
                if fate.killed:
                    fate.test, fate.seconds = reach.test, time.perf_counter() - started
                    return fate
    fate.seconds = time.perf_counter() - started
    return fate


def _asked(component: str) -> Iterator[Asked]:
    """The tests of a component; and those that reject faults of who declares something, once more with that declared."""
    kit = true_contract(component)
    ids = {one.id for one in kit.requirements}
    tests = [test for test in all_tests() if test.requirement.id in ids]
    yield from ((test, {}) for test in tests)
    declared = [(fault.envelope, fault.kills.id) for fault in kit.faults if fault.envelope]
    for test in tests:
        found = [dict(envelope) for envelope, id in declared if id == test.requirement.id]
        yield from ((test, one) for place, one in enumerate(found) if one not in found[:place])


def _trial(test: Test, changed: Contract, role: str, envelope: Envelope) -> Trial:
    """A trial of the changed contract, as the subject or as what a true subject is held against."""
    plays = changed if role == SUBJECT else true_contract(changed.component)
    operations = {operation.signature.operation: operation for operation in plays.operations}
    subject = LocalSubject(operations, {changed.component: "float32"}, {changed.component: envelope})
    trial = Trial(subject, test.requirement)
    if role == JUDGE:
        trial.contract, trial.operation = changed, changed.operation(test.requirement.name)
    return trial


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _clock(seconds: float) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise OutOfTime

    # The processor's seconds: a busy machine makes nobody hang. Where it rings first may be a finalizer, which raises nothing.
    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def bounded() -> None:
    """Bound the memory of this process."""
    with contextlib.suppress(ValueError, OSError):  # macOS knows the limit and may refuse it
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
