"""How a test is written, and run: one requirement, one property, as many drawn calls as the profile asks for.

@requirement(ROPE_04, call=rope_calls(offsets=["slice"]))
def test_a_slice_offset_means_its_start(subject, call):
    subject.agrees(call)
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import importlib
import inspect
import json
import math
import pkgutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from inferspec.conformance.envelope import OutsideEnvelope
from inferspec.conformance.judging.diagnosis import can_be_replayed, explain
from inferspec.conformance.judging.lookalikes import alike
from inferspec.conformance.judging.repeated_failures import Repeats
from inferspec.conformance.judging.shared_faults import kindred, transplanted
from inferspec.conformance.judging.trial import Nonconformance, Trial, Waived
from inferspec.conformance.tapes import TRIES, shrink, split, spread
from inferspec.golden import GoldenError
from inferspec.spec import contract
from inferspec.spec.contract import STORY, Fault, Requirement

EXAMPLES = {"quick": 20, "standard": 100, "full": 150, "nightly": 1000}
"""Profile -> the most examples that a test of share 1 draws. Quick is for the desk, standard the default; of nightly a fault
that is ten times as rare as the hardest known one survives once in 1,100 times, and 20 seeds of all honest variants are done
in one night of the workflow."""

EFFORT = Path(__file__).with_name("effort.json")
"""Test -> examples until it rejects the fault that is hardest for it, on average (`tools/effort.py` measures them)."""

QUICK = Path(__file__).with_name("quick.json")
"""Test -> examples that quick draws of it instead of its part of standard: more where that loses a fault on draw seed 0, fewer
where an example takes long (`tools/quick_examples.py` finds them)."""

MARGIN = 7.0
"""Examples that standard draws, in efforts: a fault that each example shows with the same chance survives one in 1,100 times."""

FEWEST = 20
"""Examples that standard draws at least, whatever faults are known: what nobody has thought of needs some too."""

DEAR = 0.3
"""A test of a smaller share draws in proportion fewer than FEWEST."""

FURTHER = 40
"""Examples that a failed test draws once more, for the sake of its diagnosis."""

PATIENCE = 20.0
"""Seconds of computing for which faults are looked for among those of other operations, and by what a test says of them: a
story of tens of thousands of tokens takes each of them seconds."""

OWN = 60.0
"""The same, among those of the operation itself: likelier, and most searches end long before."""

AGAIN = 10
"""The same, where it is only to be seen whether it is a mistake that other tests have found."""


TAKES_A_SUBJECT = inspect.signature(lambda subject: None)
"""What pytest reads of a test: its only argument is the fixture `subject`."""


class Undrawn(Exception):
    """An input could not be made: a mistake of the kit, which says nothing of any subject."""


@dataclass(frozen=True, slots=True)
class Profile:
    """How hard to try. seed: the same seed draws the same examples for every subject, serial or parallel; shrink and
    diagnose: whether a failure is made smaller, and looked up among the faults; thinned: the part of the examples that
    is drawn; begun: the part of those drawn that is run, from the first."""

    name: str = "standard"
    seed: int = 0
    shrink: bool = True
    diagnose: bool = True
    thinned: float = 1.0
    begun: float = 1.0


def address(test: str) -> str:
    """What pytest finds a test of the installed kit by, from anywhere. test: its id, such as test_rope.py::test_x."""
    file, _, name = test.partition("::")
    return f"--pyargs inferspec.conformance.{Path(file).stem}::{name}"


@functools.cache
def efforts() -> Mapping[str, float]:
    """What `EFFORT` says."""
    known: dict[str, float] = json.loads(EFFORT.read_text(encoding="utf-8"))
    return known


@functools.cache
def quick() -> Mapping[str, int]:
    """What `QUICK` says."""
    known: dict[str, int] = json.loads(QUICK.read_text(encoding="utf-8"))
    return known


class Inputs:
    """Anything that can make inputs inside an envelope of tapes (`strategies.Calls`)."""

    @property
    def insisted(self) -> Sequence[str]:
        """The envelope keys of which no other choices can be made."""
        return ()

    def within(self, envelope: Mapping[str, Any]) -> Callable[[bytes], Any]:
        raise NotImplementedError


@dataclass(frozen=True)
class Test:
    """A test of one requirement, apart from pytest: `run` it on any subject."""

    __test__ = False

    requirement: Requirement
    name: str
    file: str
    function: Callable[..., None]
    inputs: Mapping[str, Inputs]
    share: float
    shrinks: bool = True

    @property
    def id(self) -> str:
        return f"{self.file}::{self.name}"

    def examples(self, profile: Profile) -> int:
        """How many examples a profile draws: as many as the hardest known fault needs, and no more than its share."""
        fewest = FEWEST * min(1.0, self.share / DEAR)
        needed = max(fewest, math.ceil(MARGIN * efforts().get(self.id, 0)))
        standard = min(EXAMPLES["standard"] * self.share, needed)
        drawn = standard * EXAMPLES[profile.name] / EXAMPLES["standard"]
        if profile.name == "quick":
            drawn = quick().get(self.id, drawn)
        # Of dear tests quick may draw one alone: they would take most of what is saved. The same goes for a part of them.
        whole = max(1 if profile.name == "quick" else 3, drawn)
        return max(1, round(whole * profile.thinned))

    def run(self, trial: Trial, profile: Profile, repeats: Repeats | None = None) -> None:
        """Run the test; the trial's outcome tells the result. What is wrong with the kit itself is raised: Undrawn, GoldenError.

        repeats: what was told of other failures, and need not be found out again.
        """
        started, repeats = time.perf_counter(), repeats or Repeats()
        try:
            trial.asks(self.name)
            self._search(trial, profile, repeats)
        except OutsideEnvelope as outside:
            trial.outcome.state, trial.outcome.message = "outside_envelope", str(outside)
        except (GoldenError, Undrawn):
            raise
        except Nonconformance as failure:
            self._conclude(trial, profile, failure, repeats)
        except BaseExceptionGroup as group:
            failures = [e for e in group.exceptions if isinstance(e, Nonconformance)]
            if not failures:
                raise
            self._conclude(trial, profile, failures[0], repeats)
        except Exception as error:
            # What came back (another shape, say) was not what a test could go on with.
            problem = Nonconformance(f"the test could not go on with what came back: {type(error).__name__}: {error}")
            self._conclude(trial, profile, problem, repeats)
        else:
            if trial.outcome.waived:
                trial.outcome.state = "waived"
        trial.outcome.seconds = time.perf_counter() - started

    def _search(self, trial: Trial, profile: Profile, repeats: Repeats) -> None:
        """Run the function on drawn examples until one fails, then on smaller ones that fail too."""

        def example(**drawn: Any) -> None:
            trial.begin()
            with contextlib.suppress(Waived):
                try:
                    self.function(trial, **drawn)
                except Nonconformance as failure:
                    trial.failed(failure, drawn)
                    raise

        trial.insisted = [key for inputs in self.inputs.values() for key in inputs.insisted]
        if self.inputs:
            self._drawn(
                example,
                trial,
                profile,
                self.examples(profile),
                repeats if profile.shrink and self.shrinks and self.requirement.level == "MUST" else None,
            )
        else:
            example()

    def _gather(self, trial: Trial, profile: Profile, most: int) -> None:
        """Look for more failing examples: one that was made as small as can be fits many faults."""
        outcome = dataclasses.replace(trial.outcome)

        def example(**drawn: Any) -> None:
            trial.begin()
            # What a test cannot go on with tells no fault from another.
            with contextlib.suppress(Exception):
                try:
                    self.function(trial, **drawn)
                except Nonconformance as failure:
                    trial.failed(failure, drawn)

        if self.inputs:
            examples = min(most, max(3, round(EXAMPLES[profile.name] * self.share)))
            with contextlib.suppress(Undrawn, OutsideEnvelope):
                self._drawn(example, trial, profile, examples)
        trial.outcome = outcome

    def _drawn(
        self,
        example: Callable[..., None],
        trial: Trial,
        profile: Profile,
        examples: int,
        repeats: Repeats | None = None,
    ) -> None:
        """Run the function on the tapes of a seed until one fails; then, where it is known what was told before, on smaller
        ones that fail too."""
        makers = {name: inputs.within(trial.envelope) for name, inputs in self.inputs.items()}

        def run(tape: bytes) -> None:
            example(**_made(makers, tape))

        def run_smaller(tape: bytes) -> None:
            with contextlib.suppress(Undrawn, OutsideEnvelope):
                run(tape)

        seed = int.from_bytes(hashlib.sha256(f"{profile.seed} {self.id}".encode()).digest()[:8])
        for tape in islice(spread(examples, len(makers), seed), math.ceil(examples * profile.begun)):
            try:
                run(tape)
            except (GoldenError, OutsideEnvelope, Undrawn):
                raise
            except Exception as error:
                operation = self.requirement.name
                if repeats and repeats.told(operation, error) is None:
                    shrink(run_smaller, tape, repeats.tries(operation, TRIES))
                raise

    def _conclude(self, trial: Trial, profile: Profile, failure: Nonconformance, repeats: Repeats) -> None:
        outcome = trial.outcome
        told = repeats.told(self.requirement.name, failure)
        if failure.said and profile.diagnose and told is None and not trial.subject.description.layout:
            # What else is refused, and what is not, shows what of a call it is about.
            self._gather(trial, profile, FURTHER)
            outcome = trial.outcome
        outcome.state, outcome.message = failure.state, trial.advised(failure)
        if failure.call is not None:
            signature = trial.contract.operation(failure.call.operation).signature
            outcome.call, outcome.program = str(failure.call), failure.call.program(signature) or ""
            outcome.features, outcome.seed = dict(failure.call.features), failure.call.seed
        if outcome.state == "failed" and profile.diagnose:
            trial.outcome.diagnosis = self._diagnosis(trial, profile, repeats) if told is None else told
        repeats.tell(self.requirement.name, failure, trial.outcome.diagnosis)

    def _diagnosis(self, trial: Trial, profile: Profile, repeats: Repeats) -> list[str]:
        """The names of the faults that explain the failure: of likely ones first, then of all."""
        operation = self.requirement.name
        own = [fault for fault in trial.contract.faults if fault.kills.name == operation]
        found: list[Fault] = []
        if likely := repeats.likely(self.requirement.id, operation, (*own, *kindred(operation))):
            found = self._explaining(trial, profile, likely, AGAIN) or self._alike(trial, profile, likely)
        if not found and repeats.worth_searching(operation):
            found = self._explaining(trial, profile, own, FURTHER, OWN)
            if not found and repeats.worth_searching(operation, widely=True):
                others = kindred(operation)
                found = self._explaining(trial, profile, others, FURTHER, PATIENCE) or self._alike(trial, profile, own)
            repeats.searched(operation, [fault.name for fault in found])
        return [fault.name for fault in found]

    def _explaining(
        self, trial: Trial, profile: Profile, faults: Sequence[Fault], examples: int, patience: float = math.inf
    ) -> list[Fault]:
        """Those faults that explain the failing examples, and as many more as are looked for."""
        if can_be_replayed(trial.failures):
            # What does not explain these explains no more of them.
            faults = explain(trial.contract, trial.requirement, trial.failures, faults, trial.envelope, patience)
        if not faults:
            return []
        self._gather(trial, profile, examples)
        return explain(trial.contract, trial.requirement, trial.failures, faults, trial.envelope, patience)

    def _alike(self, trial: Trial, profile: Profile, faults: Sequence[Fault]) -> list[Fault]:
        """Those faults, of an operation whose calls are stories, that the test finds the same wrong with."""
        if trial.operation.parts != STORY or not faults:
            return []
        self._gather(trial, profile, AGAIN)
        return alike(
            trial,
            self.function,
            trial.told,
            [transplanted(fault, self.requirement) for fault in faults],
            PATIENCE,
        )


def _made(makers: Mapping[str, Callable[[bytes], Any]], tape: bytes) -> dict[str, Any]:
    """The arguments of an example."""
    try:
        return {name: make(part) for (name, make), part in zip(makers.items(), split(tape), strict=True)}
    except (GoldenError, OutsideEnvelope):
        raise
    except Exception as error:
        raise Undrawn(f"the kit could not make an input ({type(error).__name__}: {error}): please report it") from error


def requirement(about: Requirement, share: float = 1.0, shrinks: bool = True, **inputs: Inputs) -> Callable[..., Any]:
    """Make a function a test of one requirement.

    share: of the profile's examples at most (`Test.examples`), more for cheap and wide inputs, less for dear ones. shrinks: whether a failing
    example is made smaller: not worth minutes where even the smallest is large, nor for what only SHOULD be. inputs: argument ->
    `Calls`, drawn inside the subject's envelope. The function's first argument is a `Trial`.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        file = function.__code__.co_filename.rsplit("/", 1)[-1]
        test = Test(about, function.__name__, file, function, inputs, share, shrinks)

        def run(subject: Any) -> None:
            subject(test)

        run.__name__ = run.__qualname__ = function.__name__
        run.__doc__, run.__module__ = function.__doc__, function.__module__
        run.__wrapped__ = function  # type: ignore[attr-defined]
        run.__signature__ = TAKES_A_SUBJECT  # type: ignore[attr-defined]
        run.conformance = test  # type: ignore[attr-defined]
        return run

    return decorate


@functools.cache
def suites() -> Mapping[str, tuple[Test, ...]]:
    """Suite, such as test_rope -> its tests."""
    import inferspec.conformance as package

    found: dict[str, tuple[Test, ...]] = {}
    for suite in sorted(info.name for info in pkgutil.iter_modules(package.__path__) if info.name.startswith("test_")):
        loaded = importlib.import_module(f"inferspec.conformance.{suite}")
        found[suite] = tuple(value.conformance for value in vars(loaded).values() if hasattr(value, "conformance"))
    return found


def suites_of(component: str) -> tuple[str, ...]:
    """The suites whose tests are all about one component: a large one has several."""
    own = {requirement.id for requirement in contract(component).requirements}
    return tuple(suite for suite, tests in suites().items() if {test.requirement.id for test in tests} <= own)


@functools.cache
def all_tests() -> tuple[Test, ...]:
    """Every conformance test of the kit, by file and name: what must run before a verdict is complete."""
    return tuple(sorted((test for tests in suites().values() for test in tests), key=lambda test: test.id))


@functools.cache
def own_tests() -> Mapping[str, Test]:
    """The same by their ids."""
    return {test.id: test for test in all_tests()}
