"""Adapters that tests write into files, and what becomes of them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inferspec.conformance.bridge.adapter import Adapter, load
from inferspec.conformance.bridge.executor import Executor
from inferspec.conformance.bridge.signatures import AdapterError
from inferspec.conformance.session import Session
from inferspec.spec.contract import Operation
from inferspec.spec.numerics import Precision

ROPE = "def rope(x, offset=None, base=10000, traditional=False): return x\n"
BATCH = """
class BatchingKVCache:
    def __init__(self, max_requests, max_len): ...
    def add(self, cache, slot): ...
    def remove(self, slot): ...
    def update_and_fetch({}): ...
"""
ONES = np.ones((2, 4), np.float32)


def module(folder: Path, text: str, name: str = "mine.py") -> None:
    """Write a module into a folder, which need not be there."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text), encoding="utf-8")


def refused(spec: str, loader: Callable[..., Any] = load, **replacements: str) -> str:
    """The line with which a subject is refused before any test."""
    with pytest.raises(AdapterError) as caught:
        loader(spec, replacements)
    line = str(caught.value)
    assert "\n" not in line
    return line


def opened(spec: str, replacements: Mapping[str, str] | None = None) -> Session:
    """A session with a subject, in a process of its own, that has answered its plainest calls."""
    return Session.opened(spec, replacements)


def called(adapter: Adapter, operation: str, **arguments: Any) -> Any:
    """What an adapter's operation returns."""
    seen = Executor(adapter.targets).call(operation, arguments, {}, None, (), False)
    assert not seen.raised, seen.message
    return seen.value


def is_right(got: np.ndarray, operation: Operation, **arguments: Any) -> bool:
    """Whether it is within the oracle's budget."""
    answer = operation.evaluate(operation.bind(arguments), Precision.FLOAT32)
    return bool((np.abs(got - answer.value) <= answer.budget).all())


def narrowed(adapter: Adapter, operation: str) -> Mapping[str, Any]:
    """What is left of the envelope for an operation, by key."""
    return adapter.targets[operation].narrowed
