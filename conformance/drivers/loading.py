"""Writes a model's files in the form that a call asks for, has the subject load them, and asks for logits."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from inferspec.conformance import checkpoints
from inferspec.conformance.arrays import Arrays
from inferspec.golden import models


def load(subject: Any, given: Mapping[str, Any], to: Arrays) -> Any:
    """The logits of the model that the subject loads."""
    if given.get("stored") and not given.get("rewritten"):
        return _logits(subject, models.weights_of(given["stored"]), given, to)
    # The same path every time: a subject that remembers a model by it shows.
    folder = Path(_place())
    weights = {name: to.to_numpy(x) for name, x in given["weights"].items()}
    try:
        damage, lost, written = given.get("damage", ""), given.get("lost", 1), given.get("written", ())
        path = checkpoints.write(folder, given["config"], weights, given["form"], damage, lost, written)
        return _logits(subject, path, given, to)
    finally:
        shutil.rmtree(folder.parent, ignore_errors=True)


def _logits(subject: Any, path: Path, given: Mapping[str, Any], to: Arrays) -> Any:
    model = subject(str(path))
    for tokens in (*given.get("asked", ()), given["tokens"]):
        logits = to.ready(model(to.from_numpy(np.array(tokens, np.int32))))
    return logits


@cache
def _place() -> str:
    """A path of this process's own, where nothing is, with a dot in its name, as models have."""
    place = tempfile.mkdtemp(prefix="inferspec-")
    shutil.rmtree(place)
    return f"{place}/Drawn-0.6B"


DRIVERS = {"load": load}
