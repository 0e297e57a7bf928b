"""How a test is written, and run: one requirement, one property, as many drawn calls as the profile asks for.

@requirement(ROPE_04, call=rope_calls(offsets=["slice"]))
def test_a_slice_offset_means_its_start(subject, call):
    subject.agrees(call)
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib
import inspect
import pkgutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st

from inferspec.conformance.diagnosis import explain
from inferspec.conformance.envelope import OutsideEnvelope
from inferspec.conformance.trial import Nonconformance, Trial, Waived
from inferspec.golden import GoldenError
from inferspec.spec.contract import Requirement

EXAMPLES = {"quick": 100, "full": 450, "nightly": 4000}
"""Profile -> examples of a test of ordinary cost."""

FURTHER = 40
"""Examples that a failed test draws once more, for the sake of its diagnosis."""


@dataclass(frozen=True, slots=True)
class Profile:
    """How hard to try. seed: the same seed draws the same examples for every subject, serial or parallel; shrink and
    diagnose: whether a failure is made smaller, and looked up among the faults; thinned: the part of the examples that
    is drawn."""

    name: str = "quick"
    seed: int = 0
    shrink: bool = True
    diagnose: bool = True
    thinned: float = 1.0

    def examples(self, share: float) -> int:
        return max(3, round(EXAMPLES[self.name] * share * self.thinned))


class Inputs:
    """Anything that can draw inputs inside an envelope (`inputs.Calls`)."""

    def within(self, envelope: Mapping[str, Any]) -> st.SearchStrategy[Any]:
        raise NotImplementedError


@dataclass(frozen=True)
class Test:
    """A test of one requirement, apart from pytest: `run` it on any subject."""

    __test__ = False

    requirement: Requirement
    name: str
    file: str
    function: Callable[..., None]
    inputs: Mapping[str, Inputs | st.SearchStrategy[Any]]
    share: float

    @property
    def id(self) -> str:
        return f"{self.file}::{self.name}"

    def run(self, trial: Trial, profile: Profile) -> None:
        """Run the test; the trial's outcome tells the result, nothing is raised."""
        started = time.perf_counter()
        try:
            self._search(trial, profile)
        except OutsideEnvelope as outside:
            trial.outcome.state, trial.outcome.message = "outside_envelope", str(outside)
        except GoldenError:
            raise
        except Nonconformance as failure:
            self._conclude(trial, profile, failure)
        except BaseExceptionGroup as group:
            failures = [e for e in group.exceptions if isinstance(e, Nonconformance)]
            if not failures:
                raise
            self._conclude(trial, profile, failures[0])
        except Exception as error:
            # What came back (another shape, say) was not what a test could go on with.
            problem = Nonconformance(f"the test could not go on with what came back: {type(error).__name__}: {error}")
            self._conclude(trial, profile, problem)
        else:
            if trial.outcome.waived:
                trial.outcome.state = "waived"
        trial.outcome.seconds = time.perf_counter() - started

    def _search(self, trial: Trial, profile: Profile) -> None:
        """Run the function on drawn examples until one fails, then on smaller ones that fail too."""

        def example(**drawn: Any) -> None:
            trial.begin()
            with contextlib.suppress(Waived):
                try:
                    self.function(trial, **drawn)
                except Nonconformance as failure:
                    trial.failed(failure)
                    raise

        if self.inputs:
            self._drawn(example, trial, profile, profile.examples(self.share), shrink=profile.shrink)
        else:
            example()

    def _gather(self, trial: Trial, profile: Profile) -> None:
        """Look for more failing examples: one that was made as small as can be fits many faults."""
        outcome = dataclasses.replace(trial.outcome)

        def example(**drawn: Any) -> None:
            trial.begin()
            with contextlib.suppress(Nonconformance, Waived):
                try:
                    self.function(trial, **drawn)
                except Nonconformance as failure:
                    trial.failed(failure)

        if self.inputs:
            examples = min(FURTHER, profile.examples(self.share))
            self._drawn(example, trial, profile, examples, shrink=False)
        trial.outcome = outcome

    def _drawn(self, example: Callable[..., None], trial: Trial, profile: Profile, examples: int, shrink: bool) -> None:
        drawn = {name: self._strategy(inputs, trial) for name, inputs in self.inputs.items()}
        settings = hypothesis.settings(
            max_examples=examples,
            phases=[Phase.generate, *([Phase.shrink] if shrink else [])],
            database=None,
            deadline=None,
            derandomize=False,
            report_multiple_bugs=False,
            print_blob=False,
            verbosity=hypothesis.Verbosity.quiet,
            suppress_health_check=list(HealthCheck),
        )
        example.__name__ = example.__qualname__ = self.name
        seed = int.from_bytes(hashlib.sha256(f"{profile.seed} {self.id}".encode()).digest()[:8])
        hypothesis.seed(seed)(settings(hypothesis.given(**drawn)(example)))()

    def _strategy(self, inputs: Inputs | st.SearchStrategy[Any], trial: Trial) -> st.SearchStrategy[Any]:
        return inputs if isinstance(inputs, st.SearchStrategy) else inputs.within(trial.envelope)

    def _conclude(self, trial: Trial, profile: Profile, failure: Nonconformance) -> None:
        outcome = trial.outcome
        outcome.state, outcome.message = failure.state, str(failure)
        if failure.call is not None:
            outcome.call, outcome.program = str(failure.call), failure.call.program() or ""
            outcome.features, outcome.seed = dict(failure.call.features), failure.call.seed
        if outcome.state == "failed" and profile.diagnose:
            self._gather(trial, profile)
            trial.outcome.diagnosis = [
                fault.name for fault in explain(trial.contract, trial.requirement, trial.failures)
            ]


def requirement(
    about: Requirement, share: float = 1.0, **inputs: Inputs | st.SearchStrategy[Any]
) -> Callable[..., Any]:
    """Make a function a test of one requirement.

    share: of the profile's examples, more for cheap and wide inputs, less for dear ones. inputs: argument ->
    `Calls` (drawn inside the subject's envelope) or a hypothesis strategy. The function's first argument is a `Trial`.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        file = function.__code__.co_filename.rsplit("/", 1)[-1]
        test = Test(about, function.__name__, file, function, inputs, share)

        def run(subject: Any) -> None:
            subject(test)

        run.__name__ = run.__qualname__ = function.__name__
        run.__doc__, run.__module__ = function.__doc__, function.__module__
        run.__wrapped__ = function  # type: ignore[attr-defined]
        run.__signature__ = inspect.signature(lambda subject: None)  # type: ignore[attr-defined]
        run.conformance = test  # type: ignore[attr-defined]
        return run

    return decorate


def all_tests() -> tuple[Test, ...]:
    """Every conformance test of the kit, by file and name: what must run before a verdict is complete."""
    import inferspec.conformance as package

    found = []
    for module in sorted(info.name for info in pkgutil.iter_modules(package.__path__) if info.name.startswith("test_")):
        loaded = importlib.import_module(f"inferspec.conformance.{module}")
        found += [value.conformance for value in vars(loaded).values() if hasattr(value, "conformance")]
    return tuple(sorted(found, key=lambda test: test.id))
