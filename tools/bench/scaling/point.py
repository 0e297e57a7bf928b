"""One point: the engine in a process of its own, whose peak memory is that of the point.

``python -m inferspec.tools.bench.scaling.point '{…}'`` prints what it measured as JSON.
"""

from __future__ import annotations

import contextlib
import json
import resource
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

PAGE = 16
PIECE = 512
"""Tokens of prompts in a step."""


@dataclass(frozen=True)
class Point:
    """batch requests with prompts of `context` tokens, the first `shared` of them the same, and so many ids each."""

    source: str
    batch: int
    context: int
    tokens: int
    shared: int = 0
    seed: int = 0


@dataclass(frozen=True)
class Found:
    """prefill: seconds until every request has its first id; decode: of a step after that, the median; hit_rate: of the
    prompts' tokens; base, peak: bytes of the process before the engine was made, and at most; pool: of keys and values."""

    prefill: float
    decode: float
    hit_rate: float
    base: int
    peak: int
    pool: int


def measured(point: Point) -> Found:
    """Serve the requests of a point in this process."""
    from inferspec.impl import loading
    from inferspec.impl.engine import Engine

    model = loading.load(Path(point.source))
    config = model.config
    _warm(model)
    _forget_peak()
    base = peak_bytes()
    pages = point.batch * -(-(point.context + point.tokens) // PAGE)
    engine = Engine(
        model, num_pages=pages, page_size=PAGE, max_requests=point.batch, max_prefill_tokens=PIECE, prefix_caching=True
    )
    random = np.random.default_rng(point.seed)
    same = random.integers(0, config.vocab_size, point.shared).tolist()
    own = random.integers(0, config.vocab_size, (point.batch, point.context - point.shared)).tolist()
    begun = time.perf_counter()
    # The others find what the first has computed.
    names = [engine.add_request([*same, *own[0]], point.tokens)]
    while point.shared and not engine.output(names[0]):
        engine.step()
    names += [engine.add_request([*same, *rest], point.tokens) for rest in own[1:]]
    while not all(engine.output(name) for name in names):
        engine.step()
    prefill, steps = time.perf_counter() - begun, []
    while engine.has_unfinished:
        begun = time.perf_counter()
        engine.step()
        steps.append(time.perf_counter() - begun)
    each = 2 * len(model.layers) * config.num_kv_heads * config.head_dim * model.dtype.size
    return Found(prefill, float(np.median(steps)), engine.stats.hit_rate, base, peak_bytes(), pages * PAGE * each)


def _warm(model: Any) -> None:
    """Serve a short request: what libraries set up once is no memory of the engine."""
    from inferspec.impl.engine import Engine

    engine = Engine(model, num_pages=4, page_size=PAGE, max_requests=1)
    engine.add_request([0] * PAGE, 2)
    engine.run()


def _forget_peak() -> None:
    """Let the peak begin anew, where the system can: loading a model takes memory that is given back."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_bytes() -> int:
    """The most memory that this process has had since `_forget_peak`.

    On Linux from its status: `ru_maxrss` begins with what the process that started it had.
    """
    with contextlib.suppress(OSError):
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return 1024 * int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    print(json.dumps(asdict(measured(Point(**json.loads(sys.argv[1]))))))
