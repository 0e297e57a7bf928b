"""What a checked launch finds, as data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Finding(StrEnum):
    """What is wrong, or, of the last two, odd."""

    RACE = "data race"
    OUT_OF_BOUNDS = "out of bounds"
    UNINITIALISED = "uninitialised read"
    DIVERGENT_BARRIER = "divergent barrier"
    DIVERGENT_COLLECTIVE = "divergent SIMD-group function"
    INACTIVE_LANE = "shuffle from an inactive lane"
    MISALIGNED = "misaligned access"
    SHIFT = "undefined shift"
    ARRAY_OVERRUN = "private array overrun"
    DIVISION = "integer division by zero"
    OVERFLOW = "overflow of a signed product"
    WRITE_TO_INPUT = "write to an input"
    THREADGROUP_MEMORY = "threadgroup memory over 32 KiB"
    CRASH = "crash"
    TIMEOUT = "does not end"
    SAME_VALUE_RACE = "race of equal values"
    PARTIAL_COLLECTIVE = "SIMD-group function with idle lanes"

    @property
    def harmless(self) -> bool:
        """Whether a right kernel may do it; it is told all the same."""
        return self in (Finding.SAME_VALUE_RACE, Finding.PARTIAL_COLLECTIVE)


@dataclass(frozen=True)
class Site:
    """A place in the kernel's source: the file's name as `#line` gives it, and the line in it."""

    file: str
    line: int


@dataclass(frozen=True)
class Access:
    """One thread at one place. thread: its index in the threadgroup; group: the threadgroup's position in the grid."""

    thread: int
    group: tuple[int, int, int]
    writes: bool
    site: Site | None


@dataclass(frozen=True)
class Report:
    """One finding, told once however often it came.

    memory: ``buffer x`` or ``threadgroup tile``, None where no memory is concerned. index: of the element in it.
    other: the second thread, of a race or a divergence. count: how often.
    """

    finding: Finding
    kernel: str
    memory: str | None
    index: int | None
    access: Access
    other: Access | None = None
    detail: str = ""
    count: int = 1

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)
