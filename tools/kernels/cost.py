"""What launches cost, as a table: traffic beside the least possible, synchronisation, arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from inferspec.tools.kernels.seen import Record, Survey, shapes_of

_LEGEND = (
    "read, written: bytes of device memory that threads ask for; least: the distinct ones among them; ratio: how often each is asked"
    " for; barriers: of threadgroups + of SIMD-groups; SIMD: reductions, shuffles, scans, votes; matrix: 8×8 multiply-accumulates;"
    " ops: instructions of this machine's build, to compare kernels by; special: exp, pow and the like"
)


@dataclass(frozen=True)
class Row:
    """Launches of one kernel with the same types, shapes and grid. cost: of one of them, the mean where they differ (what data
    decides); each count by the name that `metalsim`'s Cost gives it, None where it is unknown."""

    target: str
    kernel: str
    instance: str
    shapes: str
    launches: int
    cost: dict[str, float | None]

    @property
    def least(self) -> float:
        """Distinct bytes of device memory that are read, and that are written: no kernel of this job moves less."""
        return (self.cost["least_bytes_read"] or 0) + (self.cost["least_bytes_written"] or 0)

    @property
    def moved(self) -> float:
        """Bytes of device memory that threads ask for."""
        return (self.cost["device_bytes_read"] or 0) + (self.cost["device_bytes_written"] or 0)

    @property
    def ratio(self) -> float | None:
        """How often each byte is asked for; caches may serve some of it."""
        return self.moved / self.least if self.least else None

    def as_json(self) -> dict[str, Any]:
        """For a file."""
        return {
            "target": self.target,
            "kernel": self.kernel,
            "instance": self.instance,
            "shapes": self.shapes,
            "launches": self.launches,
            "least_bytes": self.least,
            "ratio": self.ratio,
            **self.cost,
        }


def rows(survey: Survey) -> list[Row]:
    """A survey's launches, those alike together."""
    alike: dict[tuple[str, str, str], list[Record]] = {}
    for launch in survey.launches:
        if launch["cost"]:
            alike.setdefault((launch["kernel"], launch["instance"], shapes_of(launch)), []).append(
                _flat(launch["cost"])
            )
    return [
        Row(survey.target, *key, len(costs), {name: _mean([cost[name] for cost in costs]) for name in costs[0]})
        for key, costs in alike.items()
    ]


def _flat(cost: Record) -> Record:
    """Numbers only: SIMD-group operations as their sum, and by kind."""
    numbers = {name: value for name, value in cost.items() if name not in ("least_traffic", "simdgroup_operations")}
    kinds = cost.get("simdgroup_operations")
    if kinds is not None:
        numbers |= {f"simdgroup_{kind}": count for kind, count in kinds.items()}
        numbers["simdgroup_operations"] = sum(kinds.values())
    return numbers


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    mean = sum(known) / len(known)
    return int(mean) if mean == int(mean) else mean


def show(rows: Sequence[Row], console: Console) -> None:
    """Print the launches, numbered, and a table with one line for each."""
    for number, row in enumerate(rows, 1):
        often = f" ({row.launches} times)" if row.launches > 1 else ""
        lines = f"{number}  {row.target}: {row.instance}{often}\n   {row.shapes}"
        console.print(lines, markup=False, highlight=False, soft_wrap=True)
    console.print(_table(rows))


def _table(rows: Sequence[Row]) -> Table:
    made = Table(title="cost of one launch", caption=_LEGEND)
    made.add_column("")
    made.add_column("kernel", overflow="fold")
    for name in (
        "read",
        "written",
        "least",
        "ratio",
        "threadgroup",
        "barriers",
        "SIMD",
        "matrix",
        "float ops",
        "int ops",
        "special",
    ):
        made.add_column(name, justify="right", no_wrap=True)
    for number, row in enumerate(rows, 1):
        cost = row.cost
        made.add_row(
            str(number),
            escape(row.kernel),
            _bytes(cost["device_bytes_read"]),
            _bytes(cost["device_bytes_written"]),
            _bytes(row.least),
            "-" if row.ratio is None else f"{row.ratio:.2f}",
            _bytes((cost["threadgroup_bytes_read"] or 0) + (cost["threadgroup_bytes_written"] or 0)),
            f"{_count(cost['threadgroup_barriers'])}+{_count(cost['simdgroup_barriers'])}",
            _count(cost["simdgroup_operations"]),
            _count(cost["matrix_multiply_accumulates"]),
            _count(cost["float_operations"]),
            _count(cost["integer_operations"]),
            _count(cost["special_functions"]),
        )
    return made


def _bytes(number: float | None) -> str:
    if number is None:
        return "?"
    for unit in ("B", "kB", "MB"):
        if number < 1000:
            return f"{number:.4g} {unit}"
        number /= 1000
    return f"{number:.4g} GB"


def _count(number: float | None) -> str:
    if number is None:
        return "?"
    return f"{number:,.0f}" if number < 100_000 else f"{number / 1e6:.3g} M"
