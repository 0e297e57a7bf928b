"""What tests of benchmarks share: runs without processes and without measuring the machine."""

from __future__ import annotations

import pytest

from inferspec.tools.bench import session
from inferspec.tools.bench.machine import Limits
from inferspec.tools.bench.result import CaseResult, Contender, Result


@pytest.fixture
def known_limits(monkeypatch):
    """The machine's limits are given: measuring them takes seconds."""
    limits = Limits(1e10, {"float32": 5e10, "bfloat16": 5e10}, 1)
    monkeypatch.setattr(session, "measured_limits", lambda threads, dtypes: limits)
    return limits


@pytest.fixture
def result():
    """Makes results: case -> contender -> times."""

    def make(cases, kind="ops", threads=1, **machine):
        about = {"system": "Linux", "processor": "P", "cores": 2, "memory_bytes": 1, "cache_bytes": 1, "python": "3"}
        found = [
            CaseResult(
                name,
                "linear",
                "float32",
                "call",
                1.0,
                1.0,
                "bandwidth",
                1e-6,
                [
                    Contender(who, "timed" if times else "refused", precision="float32", worst=0.5, times=times)
                    for who, times in contenders.items()
                ],
            )
            for name, contenders in cases.items()
        ]
        settings = {"threads": threads, "seed": 0, "rounds": 20}
        return Result(
            kind, ["bench", kind], settings, {**about, "limits": None, **machine}, {"mlx": "1"}, {}, found, "now"
        )

    return make
