"""What quick draws more of, so that it too rejects every fault: found on draw seed 0, kept in `conformance/quick.json`.

    python -m inferspec.tools.quick_examples                  # all components
    python -m inferspec.tools.quick_examples --only rope
    python -m inferspec.tools.quick_examples --check          # writes nothing; exit code 1 where a fault survives quick
    pytest conformance --profile quick --junitxml took.xml
    python -m inferspec.tools.quick_examples --took took.xml  # those that take long draw fewer first

Quick draws a fifth of what standard draws, which loses some faults on any seed. Of a requirement whose
faults are not all rejected on the seed that everyone runs, the test that needs the fewest examples more draws those. What a fault
that goes by the identity of objects does hangs on where they lie: numbers that are larger than needed stay.

Tests whose examples take long, which had a third of quick's time, draw a quarter of their part, or what their faults need: that
is found anew with `--took`, since numbers that only grow are larger than needed after a while. `--check` it more than once: by
luck two examples may show an identity for which a dozen were kept.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import track

from inferspec.conformance.judging.trial import Trial
from inferspec.conformance.suite import EXAMPLES, QUICK, Profile, Test, all_tests, quick
from inferspec.spec import COMPONENTS, contract
from inferspec.spec.contract import Fault
from inferspec.tools.arguments import processes
from inferspec.tools.faults import BAD, local_subject
from inferspec.tools.processes import pool
from inferspec.tools.terminal import guarded

START, SLOW = 0.01, 0.008
"""Seconds that a test takes before its first example, and that an example may take."""

QUARTER = EXAMPLES["quick"] / EXAMPLES["standard"] / 4
"""What quick draws of them, as a part of what standard draws."""

STEP = 1.15
"""How many times the examples each further try draws."""


class Survives(Exception):
    """A fault that standard does not reject either."""


@dataclass(frozen=True)
class Needed:
    """What a requirement's tests draw in quick. examples: of those that draw more than their part; survivors: faults that
    quick does not reject as it is."""

    requirement: str
    examples: Mapping[str, int]
    survivors: tuple[str, ...]


def rejects(test: Test, fault: Fault, component: str, examples: int) -> bool:
    """Whether so many examples of a test reject a fault, on draw seed 0."""
    about = contract(component)
    subject = local_subject(about, fault.kills.name, about.faulty(fault), envelope=fault.envelope)
    trial = Trial(subject, test.requirement)
    part = examples / test.examples(Profile())
    test.run(trial, Profile(shrink=False, diagnose=False, thinned=part))
    return trial.outcome.state in BAD


def needed(component: str, requirement: str) -> Needed:
    """Draw more until each fault of a requirement is rejected; more of one test are other examples, so that all are asked again."""
    tests = [test for test in all_tests() if test.requirement.id == requirement]
    faults = [fault for fault in contract(component).faults if fault.kills.id == requirement]
    drawn = {test.id: test.examples(Profile("quick")) for test in tests}
    more: dict[str, int] = {id: examples for id, examples in quick().items() if id in drawn}
    first = left = _left(component, tests, faults, drawn)
    while left:
        test, examples = _cheapest(component, tests, left[0], drawn)
        drawn[test.id] = more[test.id] = examples
        left = _left(component, tests, faults, drawn)
    return Needed(requirement, more, tuple(fault.name for fault in first))


def _left(component: str, tests: Sequence[Test], faults: Sequence[Fault], drawn: Mapping[str, int]) -> list[Fault]:
    return [fault for fault in faults if not any(rejects(test, fault, component, drawn[test.id]) for test in tests)]


def _cheapest(component: str, tests: Sequence[Test], fault: Fault, drawn: Mapping[str, int]) -> tuple[Test, int]:
    """The test that rejects the fault by the fewest examples more, and how many it draws for that."""
    steps = 1
    while any(math.ceil(drawn[test.id] * STEP ** (steps - 1)) < 2 * test.examples(Profile()) for test in tests):
        for test in tests:
            examples = math.ceil(drawn[test.id] * STEP**steps)
            if rejects(test, fault, component, examples):
                return test, examples
        steps += 1
    raise Survives(f"{fault.name} survives twice the examples that standard draws")


def write(results: Sequence[Needed]) -> None:
    """Keep what was found; what was not asked for stays as it was."""
    ids = {test.id: test.requirement.id for test in all_tests()}
    asked = {one.requirement for one in results}
    kept = {test: examples for test, examples in quick().items() if test in ids and ids[test] not in asked}
    found = {test: examples for one in results for test, examples in one.examples.items()}
    _keep({**kept, **found})


def _keep(examples: Mapping[str, int]) -> None:
    QUICK.write_text(json.dumps(dict(sorted(examples.items())), indent=1) + "\n", encoding="utf-8")


def thinned(took: Mapping[str, float], components: Sequence[str] = COMPONENTS) -> dict[str, int]:
    """What quick draws, with a quarter of their part of those that take long, before it is asked what their faults need.
    took: test -> seconds of all that quick draws of it; components: whose tests those may be."""
    kept = dict(quick())
    asked = {one.id for name in components for one in contract(name).requirements}
    for test in all_tests():
        drawn = test.examples(Profile("quick"))
        if test.inputs and test.requirement.id in asked and took.get(test.id, 0) - START > drawn * SLOW:
            kept[test.id] = min(drawn, max(1, round(test.examples(Profile()) * QUARTER)))
    return kept


def times(junit: Path) -> dict[str, float]:
    """Test -> seconds, of a run of pytest with `--junitxml`; ValueError for a file that tells of no test of the kit."""
    try:
        cases = list(ElementTree.parse(junit).iter("testcase"))
    except ElementTree.ParseError as error:
        raise ValueError(f"{junit} is not what pytest --junitxml writes: {error}") from None
    took = {
        f"{case.get('classname', '').split('.')[-1]}.py::{case.get('name')}": float(case.get("time", 0))
        for case in cases
    }
    if not took.keys() & {test.id for test in all_tests()}:
        raise ValueError(f"{junit} tells of none of these suites' tests")
    return took


def _job(job: tuple[str, str]) -> Needed:
    return needed(*job)


def _looked_at(job: tuple[str, str]) -> Needed:
    component, requirement = job
    tests = [test for test in all_tests() if test.requirement.id == requirement]
    faults = [fault for fault in contract(component).faults if fault.kills.id == requirement]
    left = _left(component, tests, faults, {test.id: test.examples(Profile("quick")) for test in tests})
    return Needed(requirement, {}, tuple(fault.name for fault in left))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m inferspec.tools.quick_examples", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--only", action="append", choices=COMPONENTS, metavar="COMPONENT", help="repeatable")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 where a fault survives quick")
    parser.add_argument("--took", type=Path, metavar="JUNIT", help="thin what takes long: times of a run of quick")
    parser.add_argument("-n", type=processes, default=None, metavar="N", help="processes; default: one a core")
    options = parser.parse_args(arguments)
    jobs = [(name, one.id) for name in options.only or COMPONENTS for one in contract(name).requirements]
    console = Console()
    if options.took:
        try:
            took = times(options.took)
        except (OSError, ValueError) as error:
            parser.error(f"--took: {error}")
        before = dict(quick())
        _keep(thinned(took, options.only or COMPONENTS))
        quick.cache_clear()
        lowered = {test.requirement.id for test in all_tests() if quick().get(test.id) != before.get(test.id)}
        jobs = [(name, requirement) for name, requirement in jobs if requirement in lowered]
    with pool(options.n) as workers:
        results = list(
            track(workers.map(_looked_at if options.check else _job, jobs), "requirements", len(jobs), console=console)
        )
    for one in results:
        for fault in one.survivors:
            console.print(f"[red]{fault} ({one.requirement}) survives what quick draws", highlight=False)
    drawn = sum(test.examples(Profile("quick")) for test in all_tests() if test.inputs)
    console.print(f"quick drew {drawn} examples")
    if not options.check:
        write(results)
        return 0
    return 1 if any(one.survivors for one in results) else 0


if __name__ == "__main__":
    sys.exit(guarded(main))
