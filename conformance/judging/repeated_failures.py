"""What a run has told of an operation's failures already: one mistake may show in a hundred tests, and is looked into once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from inferspec.conformance.judging.refusals import words
from inferspec.conformance.judging.trial import Nonconformance
from inferspec.spec.contract import Fault

RAISED = re.compile(
    r"(?:raises|refuses what its envelope includes): (?P<error>(?P<kind>\w+): .*?) \(at (?P<place>.+?:\d+)\)", re.DOTALL
)
"""How a failure says that an operation raised an error of its own."""

REFUSED = re.compile(r"\(step [\d.]+: (?P<error>(?P<kind>\w+): .*?)(?:; step [\d.]+: .*)?\)(?:;|$)", re.DOTALL)
"""How it says so of a step of a story."""

THOROUGH = 6
"""Failures of an operation that are made as small as can be, and searches of its whole dictionary that may come to nothing."""

WIDELY = 2
"""Those of them in which the mistakes of other operations are looked at too, and whether a test says the same of any."""

FEWER = 40
"""Smaller inputs that are tried of each further one."""

Error = tuple[str, ...]


class Repeats:
    """What was told of failures so far: by the operations that failed, for one process of a run.

    Verdicts do not depend on it: it says what need not be found out again, and not what has failed.
    """

    def __init__(self) -> None:
        self._errors: dict[Error, list[str]] = {}
        self._named: dict[str, dict[str, None]] = {}
        self._shrunk: Counter[str] = Counter()
        self._fruitless: Counter[str] = Counter()

    def told(self, operation: str, failure: BaseException) -> list[str] | None:
        """What an error looked like that was raised before, by the same line of the subject and with the same words; None for
        any other failure."""
        return self._errors.get(_error(operation, failure))

    def tries(self, operation: str, most: int) -> int:
        """How many smaller inputs to try of a failure: `most` of the first ones."""
        self._shrunk[operation] += 1
        return most if self._shrunk[operation] <= THOROUGH else FEWER

    def likely(self, requirement: str, operation: str, faults: Sequence[Fault]) -> list[Fault]:
        """The faults to look at first: those that the requirement is meant to reject, and what other failures looked like;
        none as long as there is no other."""
        named = self._named.get(operation, {})
        if not named and self._fruitless[operation] < THOROUGH:
            return []
        return [fault for fault in faults if fault.kills.id == requirement or fault.name in named]

    def worth_searching(self, operation: str, widely: bool = False) -> bool:
        """Whether all other faults are worth looking at: not where they have explained nothing again and again.

        widely: whether it is worth to look further than to what faults of the operation itself would give.
        """
        return self._fruitless[operation] < (WIDELY if widely else THOROUGH)

    def searched(self, operation: str, names: Sequence[str]) -> None:
        """A search of the whole dictionary came to these faults."""
        self._fruitless[operation] += not names
        self._named.setdefault(operation, {}).update(dict.fromkeys(names))

    def tell(self, operation: str, failure: BaseException, names: Sequence[str]) -> None:
        """A failure is told, and looks like these faults."""
        if error := _error(operation, failure):
            self._errors.setdefault(error, list(names))


def _error(operation: str, failure: BaseException) -> Error:
    """By what an error is known: where it is raised, its type and its words; () for no error."""
    # What was not refused is no error, and what is told beside it is another step's.
    if not isinstance(failure, Nonconformance) or " is not refused" in str(failure):
        return ()
    if raised := RAISED.search(str(failure)):
        return operation, failure.state, raised["kind"], raised["place"], words(raised["error"])
    if refused := REFUSED.search(str(failure)):
        return operation, failure.state, words(refused["error"])
    return ()
