"""How launches run: the mode, the schedule, how long, and who is told of what they find."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from .reports import Report
from .runtime import Launch, Mode, Outcome, Schedule


@dataclass(frozen=True)
class Settings:
    """What a launch obeys.

    mode: fast (run), check (watch every access) or cost (count). schedule: the order in which threads run. timeout:
    seconds after which a launch is ended. on_report: called with each report; a launch then goes on and returns what
    it has, whatever it found. on_launch: called with each launch and its outcome. strict: SIMD-group functions order no
    memory (Metal does not promise that they do; kernels in the wild count on it).
    """

    mode: Mode = Mode.FAST
    schedule: Schedule = field(default_factory=Schedule)
    timeout: float = 60.0
    on_report: Callable[[Report], None] | None = None
    on_launch: Callable[[Launch, Outcome], None] | None = None
    strict: bool = False


_CURRENT: ContextVar[Settings | None] = ContextVar("metalsim settings", default=None)
_of_process = Settings()
_observers: list[Callable[[Launch, Outcome], None]] = []


def current() -> Settings:
    """The settings of this thread."""
    return _CURRENT.get() or _of_process


def configure(base: Settings) -> None:
    """Set what launches obey in threads that have no settings of their own."""
    global _of_process
    _of_process = base


def observe(told: Callable[[Launch, Outcome], None]) -> None:
    """Have a function told of every launch of this process from now on, whatever settings it obeys."""
    _observers.append(told)


def tell(launch: Launch, outcome: Outcome) -> None:
    """Tell of a launch whoever wants to know."""
    for told in _observers:
        told(launch, outcome)
    if (on_launch := current().on_launch) is not None:
        on_launch(launch, outcome)


@contextmanager
def settings(
    *,
    mode: Mode | str | None = None,
    schedule: Schedule | None = None,
    timeout: float | None = None,
    on_report: Callable[[Report], None] | None = None,
    on_launch: Callable[[Launch, Outcome], None] | None = None,
    strict: bool | None = None,
) -> Iterator[Settings]:
    """Launches of this thread inside the ``with`` obey these; what is None stays as it was.

    Raises ``ValueError`` for a mode that there is not and for a timeout that is not above 0.
    """
    if timeout is not None and not timeout > 0:
        raise ValueError(f"timeout is {timeout!r}; it takes seconds above 0")
    before = current()
    token = _CURRENT.set(
        Settings(
            mode=before.mode if mode is None else Mode(mode),
            schedule=before.schedule if schedule is None else schedule,
            timeout=before.timeout if timeout is None else timeout,
            on_report=before.on_report if on_report is None else on_report,
            on_launch=before.on_launch if on_launch is None else on_launch,
            strict=before.strict if strict is None else strict,
        )
    )
    try:
        yield current()
    finally:
        _CURRENT.reset(token)
