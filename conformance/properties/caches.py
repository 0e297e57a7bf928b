"""Sentences about one subject and one story of a cache; the suites of key/value caches, batches and pages share them."""

from __future__ import annotations

from collections.abc import Mapping

from inferspec.conformance.calls import Call
from inferspec.conformance.judging.trial import Nonconformance, Trial


def keeps_dtype(subject: Trial, call: Call, *names: str) -> None:
    """These parts of every step, keys and values by default, are in the dtype of the story; a bool mask is told in that of its keys."""
    dtype = call.arguments.get("dtype") or call.features["dtypes"]
    for part, x in subject.parts(call).items():
        if part.endswith(names or ("keys", "values")) and x.dtype.name != dtype:
            raise Nonconformance(f"step {part}: they are {x.dtype.name}, not {dtype}", call)


def agrees_in(subject: Trial, call: Call, *names: str) -> None:
    """The parts of these names are right, whatever the others are."""
    parts, answers = subject.parts(call), subject.answer(call)
    assert isinstance(answers, Mapping)
    for part, answer in answers.items():
        if part.partition(" ")[2] in names:
            if part not in parts:
                raise Nonconformance(f"step {part} is missing", call)
            subject.compare(call, parts[part], answer, part=part)
