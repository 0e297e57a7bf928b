"""What a refusal is about: whether an error refuses an input at all, and which choices of an envelope it would leave out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inferspec.conformance.calls import Call, Observation
from inferspec.conformance.envelope import Envelope

NOT_YET = "if it is not written yet, raise NotImplementedError there: what is only begun is not claimed"
"""What a package of a layout can do about a call that it refuses; an adapter would narrow its envelope."""

SIGNED_WORDS = "torch has few operations on uint32: take the bits as signed words, x.view(torch.int32)"
"""What can be done where a library lacks an operation on words without sign."""

LACKS = re.compile(r"not implemented for '")
"""How torch says that a kernel lacks a dtype, in a NotImplementedError or, before that, a RuntimeError: the subject has it otherwise."""

UNTAKEN = re.compile(
    r"not (yet |currently )?(implemented|support(ed)?)\b|unsupported|same dtype|scalar type", re.IGNORECASE
)
"""How a RuntimeError says that it is about an input of a kind that is not taken."""

REFUSALS = ("ValueError", "TypeError", "AssertionError", "InvalidArgument", "InvalidArgumentError")
"""Errors that are about an input, by their names: Python's, with the `assert` by which many a kernel's launcher says what it takes,
and those of ONNX Runtime and TensorFlow."""

ALL_KINDS = ("RuntimeError", "NotImplementedError", "RuntimeException", "NotImplemented", "Fail")
"""Errors that libraries raise for all that can go wrong, by their names."""

FEW_UNSIGNED = re.compile(r"'UInt32'|for uint16, uint32, uint64", re.IGNORECASE)
"""How torch says that it lacks an operation on words without sign: of a kind that it has, but for a few."""

NO_ARRAY = re.compile(r"'(list|tuple)' object has no attribute '")
"""How Python says, in an AttributeError, that a list was taken for an array: the subject takes arrays alone."""

MISUSED = re.compile(r"the model is given ")
"""How the toy model that a subject is given says that it was not called as a model is: the subject refused nothing."""


def refuses(seen: Observation) -> bool:
    """Whether an error says that an input is not taken; of the libraries' own, of one type for all that can go wrong, by its words."""
    if MISUSED.match(seen.message):
        return False
    if seen.raised == "AttributeError":
        return bool(NO_ARRAY.match(seen.message))
    return seen.raised in REFUSALS or bool(seen.raised in ALL_KINDS and UNTAKEN.search(seen.message))


def words(error: str) -> str:
    """An error's words without the numbers in them: of another input they are others."""
    return re.sub(r"[\d(),\s\[\]]+", " ", error)


Choice = tuple[str, str, str]
"""An operation, a key of its envelope, and the repr of one of the key's choices."""


def choices_of(call: Call) -> frozenset[Choice]:
    """The choices that a call was made of."""
    return frozenset((call.operation, key, repr(choice)) for key, choice in call.features.items())


@dataclass
class Choices:
    """The choices of the calls that a subject answered, and of those that it refused, by the words of the refusal."""

    answered: set[Choice] = field(default_factory=set)
    refused: dict[str, set[frozenset[Choice]]] = field(default_factory=dict)

    def answer(self, call: Call) -> None:
        """A call was answered."""
        self.answered |= choices_of(call)

    def refuse(self, call: Call, said: str) -> None:
        """A call was refused."""
        self.refused.setdefault(words(said), set()).add(choices_of(call))

    def explain(self, call: Call, said: str, key: str) -> bool:
        """Whether a key explains every refusal in these words: others of its choices were answered, and none of those refused."""
        of = call.operation, key
        alike = self.refused.get(words(said), set())
        never = [{one for one in refused if one[:2] == of} - self.answered for refused in alike]
        return bool(never) and all(never) and any(one[:2] == of for one in self.answered)

    def never_answered(self, call: Call, key: str) -> list[str]:
        """The choices of a key that only calls which were refused had."""
        every = frozenset().union(*(refused for calls in self.refused.values() for refused in calls)) - self.answered
        return [choice for operation, of, choice in every if (operation, of) == (call.operation, key)]

    def blamed(
        self, call: Call, said: str, envelope: Envelope, plainest: Mapping[str, Any], insisted: Sequence[str]
    ) -> tuple[str, Any] | None:
        """The one choice of the envelope that a refusal is about, as (key, choice); None where there are several, or none.

        It is, by the first of these that finds any: what the error names; what all calls have that were refused in these words,
        and none that was answered; and, of what the operation never answered, what the plainest call of the test has not,
        what the test asks for, or what other choices were answered of.

        said: the words of the error. plainest: the features of the test's first call. insisted: the envelope keys of which
        the test asks for some choices.
        """
        offered = {key: choices for key, choices in envelope.items() if isinstance(choices, tuple)}
        # The only one that is claimed cannot be left out.
        chosen = {
            key: choice
            for key, choice in call.features.items()
            if choice in offered.get(key, ()) and len(offered[key]) > 1
        }
        error = said.partition(" (at ")[0]
        named = [(key, choice) for key, choice in chosen.items() if _is_named(key, choice, error)]
        proven = [one for one in chosen.items() if self.explain(call, said, one[0])]
        beyond = [(key, choice) for key, choice in chosen.items() if choice != plainest.get(key, choice)]
        # What the test insists on, where its plainest call is refused as well.
        asked = [(key, chosen[key]) for key in insisted if key in chosen and chosen[key] != offered[key][0]]
        served = {key for operation, key, _ in self.answered if operation == call.operation}
        beside = [(key, choice) for key, choice in chosen.items() if key in served]
        ways = (
            named,
            proven if len(proven) == 1 else (),
            *(self._unserved(call, one) for one in (beyond, asked, beside)),
        )
        found = next(filter(None, ways), [])
        return found[0] if len(found) == 1 else None

    def _unserved(self, call: Call, choices: Sequence[tuple[str, Any]]) -> list[tuple[str, Any]]:
        """Those choices that the operation never answered a call with: what it answered once it does support."""
        return [one for one in choices if (call.operation, one[0], repr(one[1])) not in self.answered]


def _is_named(key: str, choice: Any, error: str) -> bool:
    """Whether an error's words name a choice: a number only where they say what it is of."""
    if isinstance(choice, str):
        return choice in [word.strip("'") for word in error.split()]
    about = re.search(rf"\b{key.partition('_')[0].rstrip('s')}", error, re.IGNORECASE)
    return type(choice) is int and bool(about) and str(choice) in re.findall(r"\d+", error)
