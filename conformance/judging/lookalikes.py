"""Which faults fail a test in the same words.

A story may have many right outcomes (any free page may be taken, say), so that even a subject with exactly the mistake of a fault
gives other numbers than the fault does. The two are known to be of a kind by this: the same test, on the same inputs, finds the
same thing wrong with both.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from inferspec.conformance.judging.trial import Nonconformance, Trial
from inferspec.conformance.subject import LocalSubject
from inferspec.spec.contract import Fault

EXAMPLES = 6
"""Failing examples that are tried: the smallest, which fits the most faults and is the cheapest, and the latest."""

FEWEST = 2
"""Failing examples that are needed: one may fail alike by chance."""

MOST = 3
"""Faults that are named at most: words that fit more of them tell nothing."""

_REST = re.compile(r" \((?:step [\d.]+: |at ).*|; (?:if|it meets) .*", re.DOTALL)
"""What is told beside what is wrong: errors of steps in the subject's own words, and what an adapter may declare."""

Example = tuple[Mapping[str, Any], str]
"""What a test was given, and what it said of it."""


def alike(
    trial: Trial,
    test: Callable[..., None],
    failures: Sequence[Example],
    faults: Iterable[Fault],
    patience: float = math.inf,
) -> list[Fault]:
    """The faults with which a test of the trial's requirement says the same of every failing example, or none where it
    says so with many. patience: seconds of this process after which no further one is tried."""
    telling = failures[:1] if len(failures) < FEWEST else [failures[-1], *failures[-EXAMPLES:-1]]
    until, found = time.process_time() + patience, []
    for fault in faults:
        if time.process_time() > until:
            break
        if any(all(_said(trial, test, form, *example) for example in telling) for form in fault.in_every_form()):
            found.append(fault)
    return found if len(found) <= MOST else []


def _said(trial: Trial, test: Callable[..., None], fault: Fault, drawn: Mapping[str, Any], said: str) -> bool:
    """Whether the test says of the fault what it said of the subject."""
    contract = trial.contract
    operations = {op.signature.operation: op for op in contract.operations}
    operations[fault.kills.name] = contract.faulty(fault)
    subject = LocalSubject(operations, envelope={contract.component: trial.envelope})
    again = Trial(subject, trial.requirement)
    again.begin()
    try:
        # What a mistake overflows is its own affair.
        with np.errstate(all="ignore"):
            test(again, **drawn)
    except Nonconformance as failure:
        return failure.state == "failed" and _REST.sub("", str(failure)) == _REST.sub("", said)
    except Exception:  # a test that cannot go on says something else
        return False
    return False
