"""What ``inferspec serve-batch`` shows while it works: who runs and waits, pages, hits, speed."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from inferspec.impl.engine import EngineStats

WINDOW = 20
"""Steps that the speed shown is of."""


class Dashboard:
    """Takes the engine's counts after each step; `shown` is what to draw."""

    def __init__(self, requests: int, clock: Callable[[], float] = time.perf_counter) -> None:
        self.requests, self._clock = requests, clock
        self.finished = 0
        self._stats: EngineStats | None = None
        self._seen: deque[tuple[float, int]] = deque([(clock(), 0)], maxlen=WINDOW)

    def take(self, stats: EngineStats, finished: int) -> None:
        """Note a step."""
        self._stats, self.finished = stats, finished
        self._seen.append((self._clock(), stats.generated_tokens))

    @property
    def tokens_per_second(self) -> float:
        """Generated tokens of the last steps, by their time."""
        (since, before), (now, after) = self._seen[0], self._seen[-1]
        return (after - before) / (now - since) if now > since else 0.0

    @property
    def shown(self) -> RenderableType:
        """A panel."""
        if self._stats is None:
            return Panel(Text("starting"), title="serve-batch")
        return Panel(Group(self._bars(self._stats), self._line(self._stats)), title="serve-batch")

    def _bars(self, stats: EngineStats) -> Table:
        used = stats.num_pages - stats.free_pages
        table = Table.grid(padding=(0, 1))
        for name, done, total in (("requests", self.finished, self.requests), ("pages", used, stats.num_pages)):
            table.add_row(name, ProgressBar(total=max(total, 1), completed=done, width=40), f"{done} of {total}")
        return table

    def _line(self, stats: EngineStats) -> Text:
        parts = [
            f"running {stats.running}",
            f"waiting {stats.waiting}",
            f"hit rate {stats.hit_rate:.0%}",
            f"preemptions {stats.preemptions}",
            f"{self.tokens_per_second:.1f} tokens/s",
        ]
        if stats.drafted:
            parts.append(f"guesses right {stats.acceptance_rate:.0%}")
        return Text(" · ".join(parts))
