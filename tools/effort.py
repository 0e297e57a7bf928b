"""How many examples the tests need: measured on the faults, kept in `conformance/effort.json`.

    python -m inferspec.tools.effort                       # all components, draw seeds 1 2 3
    python -m inferspec.tools.effort --only rope --seeds 4 5 --check
    python -m inferspec.tools.effort --seeds 4 5 6 --keep   # what more seeds show: a rare fault may look easy on three

Of each fault that drawn examples reject, the tests that do so for every seed, and after how many examples on average.
A fault counts for the test to which it adds the fewest examples; a test's effort is that of the fault that is hardest for it,
and `Test.examples` draws several times as many. `--check` writes nothing: it says which faults survive the examples that
are drawn now.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.progress import track

from inferspec.conformance.judging.trial import Trial
from inferspec.conformance.suite import DEAR, EFFORT, EXAMPLES, FEWEST, MARGIN, Profile, all_tests
from inferspec.spec import COMPONENTS, contract
from inferspec.tools.arguments import processes
from inferspec.tools.faults import BAD, local_subject
from inferspec.tools.processes import pool
from inferspec.tools.terminal import guarded

FURTHER = 2.0
"""So many times the examples that a test draws are tried before a fault counts as not rejected by it."""


@dataclass(frozen=True)
class Found:
    """How a fault died. examples: test -> after how many, by seed; of the tests that reject it for every one."""

    component: str
    fault: str
    examples: Mapping[str, tuple[int, ...]]


def found(component: str, name: str, seeds: Sequence[int], most: float = 1.0, every: bool = True) -> Found:
    """Draw examples until they reject the fault, for each test and seed. most: of those that a test draws, how many times;
    every: whether all tests are asked, or for each seed none after the first that rejects it."""
    about = contract(component)
    fault = next(one for one in about.faults if one.name == name)
    subject = local_subject(about, fault.kills.name, about.faulty(fault), envelope=fault.envelope)
    tests = [test for test in all_tests() if test.requirement.id == fault.kills.id and test.inputs]
    counts: dict[str, list[int]] = defaultdict(list)
    for seed in seeds:
        profile = Profile(seed=seed, shrink=False, diagnose=False, thinned=most)
        for test in tests:
            trial = Trial(subject, test.requirement)
            test.run(trial, profile)
            if trial.outcome.state in BAD:
                counts[test.id].append(trial.outcome.examples)
                if not every:
                    break
    if not every:
        done = sum(len(numbers) for numbers in counts.values()) == len(seeds)
        return Found(component, name, {test: tuple(numbers) for test, numbers in counts.items()} if done else {})
    return Found(component, name, {test: tuple(n) for test, n in counts.items() if len(n) == len(seeds)})


def efforts(results: Iterable[Found]) -> dict[str, float]:
    """Test -> mean examples until it rejects the hardest of the faults that count for it.

    The hardest fault first: each counts for the test that needs the fewest examples more for it, of those whose share
    leaves room for them.
    """
    means = [{test: sum(n) / len(n) for test, n in one.examples.items()} for one in results if one.examples]
    tests = {test.id: test for test in all_tests()}
    drawn = {name: FEWEST * min(1.0, test.share / DEAR) for name, test in tests.items()}
    needed: dict[str, float] = {}
    for one in sorted(means, key=lambda one: min(one.values()), reverse=True):
        roomy = [name for name in one if MARGIN * one[name] <= EXAMPLES["standard"] * tests[name].share]
        best = min(roomy or one, key=lambda name: (max(MARGIN * one[name] - drawn[name], 0), one[name]))
        needed[best] = max(needed.get(best, 0.0), round(one[best], 1))
        drawn[best] = max(drawn[best], MARGIN * one[best])
    return dict(sorted(needed.items()))


def survivors(results: Iterable[Found]) -> list[str]:
    """Faults that drawn examples should reject and do not: those that fixed ones reject are their own matter."""
    fixed = {test.requirement.id for test in all_tests() if not test.inputs}
    lost = []
    for one in results:
        fault = next(f for f in contract(one.component).faults if f.name == one.fault)
        if not one.examples and fault.kills.id not in fixed:
            lost.append(f"{one.fault} ({fault.kills.id})")
    return lost


def write(efforts: Mapping[str, float], components: Sequence[str], keep: bool = False) -> None:
    """Keep the efforts; those of the components that were not measured stay as they were. keep: none becomes smaller."""
    measured = {test.id for test in all_tests() if test.requirement in _requirements(components)}
    known = {test.id for test in all_tests()}
    kept = json.loads(EFFORT.read_text(encoding="utf-8")) if EFFORT.exists() else {}
    found = {test: max(mean, kept.get(test, 0.0) if keep else 0.0) for test, mean in efforts.items()}
    kept = {test: mean for test, mean in kept.items() if test in known and (keep or test not in measured)}
    EFFORT.write_text(json.dumps(dict(sorted({**kept, **found}.items())), indent=1) + "\n", encoding="utf-8")


def _requirements(components: Sequence[str]) -> set[object]:
    return {requirement for name in components for requirement in contract(name).requirements}


def _job(job: tuple[str, str, tuple[int, ...], float, bool]) -> Found:
    return found(*job)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write or check; 1 where a fault survives."""
    parser = argparse.ArgumentParser(prog="python -m inferspec.tools.effort", description=__doc__.split("\n")[0])
    parser.add_argument("--only", action="append", choices=COMPONENTS, metavar="COMPONENT", help="repeatable")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], metavar="N")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 where a fault survives")
    parser.add_argument("--keep", action="store_true", help="none becomes smaller: for what more seeds show")
    parser.add_argument("-n", type=processes, default=None, metavar="N", help="processes; default: one a core")
    options = parser.parse_args(arguments)
    components = options.only or list(COMPONENTS)
    most = 1.0 if options.check else FURTHER
    every = not options.check
    jobs = [
        (name, fault.name, tuple(options.seeds), most, every) for name in components for fault in contract(name).faults
    ]
    console = Console()
    with pool(options.n) as workers:
        results = list(track(workers.map(_job, jobs), "faults", len(jobs), console=console))
    lost = survivors(results)
    for line in lost:
        console.print(f"[red]{line} survives", highlight=False)
    drawn = sum(test.examples(Profile()) for test in all_tests() if test.inputs)
    console.print(
        f"{sum(bool(one.examples) for one in results)} of {len(results)} faults rejected by drawn examples for every seed; "
        f"standard draws {drawn} examples (at most {EXAMPLES['standard']} times a test's share)"
    )
    if not options.check:
        write(efforts(results), components, options.keep)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(guarded(main))
