"""Writes a model's files in the form that a call asks for, has the subject load them, and asks for logits."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from inferspec.conformance.bridge.arrays import Arrays
from inferspec.conformance.bridge.results import no_output_object
from inferspec.conformance.checkpoints import folders
from inferspec.golden import models

INSIDE = {"any letters in the path": "Größe 模型 #1 50%25+é", "brackets in the path": "drawn [8-bit]"}
"""Habit -> what a folder in the path is called."""


def load(subject: Any, given: Mapping[str, Any], to: Arrays) -> Any:
    """The logits of the model that the subject loads."""
    if given.get("stored") and not given.get("rewritten"):
        return _logits(subject, models.weights_of(given["stored"]), given, to)
    damage, lost, written = given.get("damage", ""), given.get("lost", 1), given.get("written", ())
    # The same path every time: a subject that remembers a model by it shows.
    place, name = _place()
    folder = Path(place, *(inside for habit, inside in INSIDE.items() if habit in written), name)
    weights = _numbers(given["weights"], to)
    try:
        path = folders.write(folder, given["config"], weights, given["form"], damage, lost, written)
        if (beside := given.get("beside")) is None:
            return _logits(subject, path, given, to)
        other = folders.write(
            folder.with_name("Beside-0.6B"), beside["config"], _numbers(beside["weights"], to), given["form"]
        )
        return _beside(subject(str(path)), subject(str(other)), given["tokens"], to)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _logits(subject: Any, path: Path, given: Mapping[str, Any], to: Arrays) -> Any:
    model = subject(str(path))
    for tokens in (*given.get("asked", ()), given["tokens"]):
        logits = to.ready(no_output_object(model(to.from_numpy(np.array(tokens, np.int32)))))
    return logits


def _numbers(weights: Mapping[str, Any], to: Arrays) -> dict[str, np.ndarray]:
    return {name: to.to_numpy(x) for name, x in weights.items()}


def _beside(model: Any, other: Any, tokens: Any, to: Arrays) -> Any:
    """The logits of a model when another one was loaded and asked after it."""
    asked = to.from_numpy(np.array(tokens, np.int32))
    to.ready(other(asked))
    return to.ready(no_output_object(model(asked)))


@cache
def _place() -> tuple[str, str]:
    """A folder of this process's own, where nothing is, and a name with a dot in it, as models have."""
    place = tempfile.mkdtemp(prefix="inferspec-")
    shutil.rmtree(place)
    return place, "Drawn-0.6B"


DRIVERS = {"load": load}
