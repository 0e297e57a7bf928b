"""Whether a judge still sees: it is shown a wrong answer of each operation that it judged, and must refuse it.

What a plugin or a conftest does to NumPy or to a contract shows in no function of the kit's; it shows here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from inferspec.conformance.calls import Call, Observation
from inferspec.conformance.inputs import plain_call
from inferspec.conformance.judging.trial import Trial
from inferspec.conformance.subject import LocalSubject, Result
from inferspec.spec import contracts
from inferspec.spec.contract import Contract

FREE = ("quantize",)
"""Operations of which more than one answer is right, so that none is compared with the oracle's."""


class Wrong(LocalSubject):
    """The oracle, but each number of each answer is off by one."""

    def call(self, call: Call, results: Sequence[Result] = (), watch: bool = False) -> Observation:
        seen = super().call(call, results, watch)
        parts = {part: _off(value) for part, value in seen.results.items()}
        return Observation(parts.pop("", None), seen.raised, seen.message, seen.changed, parts, seen.unwritten)


def believed(operations: Iterable[str]) -> Iterator[str]:
    """Those of the operations of which a wrong answer passes."""
    of = {op.signature.operation: contract for contract in contracts() for op in contract.operations}
    for name in operations:
        if name not in FREE and _passes(plain_call(name), of[name]):
            yield name


def _passes(call: Call, contract: Contract) -> bool:
    about = next(requirement for requirement in contract.requirements if requirement.name == call.operation)
    trial = Trial(Wrong({call.operation: contract.operation(call.operation)}), about)
    trial.begin()
    try:
        trial.agrees(call)
    except Exception:
        # Nonconformance, or what ends a test as well: nothing passes.
        return False
    return True


def _off(value: np.ndarray) -> np.ndarray:
    return ~value if value.dtype.kind == "b" else (value + 1).astype(value.dtype)
