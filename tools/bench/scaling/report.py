"""What a scaling run found: figures with fitted exponents, as a table, as JSON and as a drawing."""

from __future__ import annotations

import argparse
import datetime
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jsonschema
from rich.console import Console
from rich.table import Table

from inferspec.tools.bench import machine, session
from inferspec.tools.bench.scaling.fit import Fit, power_law
from inferspec.tools.bench.scaling.point import PAGE, Found, Point
from inferspec.tools.bench.show import number, seconds_text
from inferspec.tools.bench.statistics import Spread

FORMAT = 1
SCHEMA = Path(__file__).resolve().parent / "scaling.schema.json"

BATCH, CONTEXT, TOKENS, BLOCKS = "batch", "context", "tokens held", "blocks of the pool"


@dataclass(frozen=True)
class Quantity:
    """Something that is measured at each point. of: what it grows with; unit: "s", "B" or "/s"."""

    name: str
    of: str
    unit: str
    value: Callable[[Point, Found], float]


QUANTITIES = (
    Quantity("decode, seconds of a step", BATCH, "s", lambda p, f: f.decode),
    Quantity("decode, tokens per second", BATCH, "/s", lambda p, f: p.batch / f.decode),
    Quantity("decode, seconds of a step", CONTEXT, "s", lambda p, f: f.decode),
    Quantity("prefill, seconds of a prompt", CONTEXT, "s", lambda p, f: f.prefill / p.batch),
    Quantity("prefill, tokens per second", CONTEXT, "/s", lambda p, f: p.batch * p.context / f.prefill),
    Quantity("memory, peak above the model's", TOKENS, "B", lambda p, f: f.peak - f.base),
)


def figures(
    options: argparse.Namespace,
    points: Sequence[Point],
    found: Mapping[Point, Sequence[Found]],
    costs: Mapping[int, float],
) -> dict[str, Any]:
    """All that is reported. costs: seconds of an allocator's operation by blocks."""
    plain = [point for point in points if not point.shared]
    laws = []
    for quantity in QUANTITIES:
        for fixed, line in _lines(quantity.of, plain, options):
            pairs = [(_size(quantity.of, point), quantity.value(point, one)) for point in line for one in found[point]]
            law = power_law(*zip(*pairs, strict=True)) if pairs else None
            laws.append(_law(quantity.name, quantity.of, fixed, quantity.unit, pairs, law))
    pairs = list(costs.items())
    laws.append(
        _law("allocator, seconds of an operation", BLOCKS, "", "s", pairs, power_law(*zip(*pairs, strict=True)))
    )
    body = {
        "format": FORMAT,
        "kind": "scaling",
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "settings": session.settings(options),
        "machine": machine.described(),
        "points": [
            {
                **{k: v for k, v in asdict(point).items() if k not in ("source", "seed")},
                "found": [asdict(one) for one in found[point]],
            }
            for point in points
        ],
        "prefix": _prefix(options, points, found),
        "laws": laws,
    }
    return json.loads(json.dumps(body))


def _law(
    name: str, of: str, at: str, unit: str, pairs: Sequence[tuple[float, float]], law: Fit | None
) -> dict[str, Any]:
    fit = {**asdict(law), "words": law.words} if law else None
    return {
        "name": name,
        "of": of,
        "at": at,
        "unit": unit,
        "x": [a for a, _ in pairs],
        "y": [b for _, b in pairs],
        "fit": fit,
    }


def _size(of: str, point: Point) -> float:
    return {BATCH: point.batch, CONTEXT: point.context, TOKENS: point.batch * (point.context + point.tokens)}[of]


def _lines(of: str, points: Sequence[Point], options: argparse.Namespace) -> list[tuple[str, list[Point]]]:
    """The points along which one size grows and the other stays, by what stays."""
    if of == TOKENS:
        return [("", list(points))]
    fixed = [options.at_context] if of == BATCH else [options.at_batch]
    if options.grid:
        fixed = sorted({point.context if of == BATCH else point.batch for point in points})
    other = CONTEXT if of == BATCH else BATCH
    lines = [
        (f"{other} {size}", [p for p in points if (p.context if of == BATCH else p.batch) == size]) for size in fixed
    ]
    return [(at, line) for at, line in lines if line]


def _prefix(
    options: argparse.Namespace, points: Sequence[Point], found: Mapping[Point, Sequence[Found]]
) -> list[dict[str, float]]:
    """Prompts that share a beginning: hit rate, what it must be, and the time until all have their first id."""
    batch = max((point.batch for point in points if point.shared), default=0)
    line = [point for point in points if point.batch == batch and point.context == options.at_context]
    rows = []
    for point in sorted(line, key=lambda point: point.shared):
        # Of a prompt that is cached to its end, one page is computed again for its last token.
        whole = min(point.shared, (point.context - 1) // PAGE * PAGE)
        rows.append(
            {
                "shared": point.shared / point.context,
                "hit_rate": Spread.of([one.hit_rate for one in found[point]]).median,
                "expected": (point.batch - 1) * whole / (point.batch * point.context),
                "seconds": Spread.of([one.prefill for one in found[point]]).median,
            }
        )
    return rows


def show(result: Mapping[str, Any], console: Console) -> None:
    """Print points, laws and prefix hits."""
    for table in (_points(result), _laws(result), _hits(result)):
        console.print(table)


def _points(result: Mapping[str, Any]) -> Table:
    table = Table("batch", "context", title="the engine: medians of its runs")
    for column in ("prefill, tokens/s", "decode, tokens/s", "a step", "peak memory", "of it keys and values"):
        table.add_column(column, justify="right")
    for point in sorted(result["points"], key=lambda point: (point["batch"], point["context"])):
        if point["shared"]:
            continue
        median = {
            k: Spread.of([one[k] for one in point["found"]]).median for k in ("prefill", "decode", "peak", "pool")
        }
        table.add_row(
            str(point["batch"]),
            str(point["context"]),
            number(point["batch"] * point["context"] / median["prefill"]),
            number(point["batch"] / median["decode"]),
            seconds_text(median["decode"]),
            f"{median['peak'] / 2**20:,.0f} MiB",
            f"{median['pool'] / 2**20:,.1f} MiB",
        )
    return table


def _laws(result: Mapping[str, Any]) -> Table:
    table = Table("what", "grows with", "exponent", "between the last two", "that is", title="what grows how")
    for law in result["laws"]:
        fit = law["fit"]
        if fit is None:
            table.add_row(law["name"], _with(law), "-", "-", "one size alone")
            continue
        table.add_row(law["name"], _with(law), exponent_text(fit), f"{fit['last']:.2f}", fit["words"])
    return table


def _with(law: Mapping[str, Any]) -> str:
    return f"{law['of']} ({law['at']})" if law["at"] else law["of"]


def exponent_text(fit: Mapping[str, Any]) -> str:
    """The exponent with its interval."""
    ends = f" [{fit['low']:.2f}, {fit['high']:.2f}]" if fit["low"] is not None else ""
    return f"{fit['exponent']:.2f}{ends}"


def _hits(result: Mapping[str, Any]) -> Table:
    table = Table(
        "of a prompt shared",
        "hit rate",
        "whole pages of all but the first",
        "until all have an id",
        title="prefix cache",
    )
    for row in result["prefix"]:
        table.add_row(
            f"{row['shared']:.0%}", f"{row['hit_rate']:.1%}", f"{row['expected']:.1%}", seconds_text(row["seconds"])
        )
    return table


def write(result: Mapping[str, Any], path: Path) -> None:
    """Write a result; what does not keep the schema is a mistake of ours."""
    jsonschema.validate(result, json.loads(SCHEMA.read_text(encoding="utf-8")))
    path.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def draw(result: Mapping[str, Any], file: Path) -> None:
    """One panel for each law, and one for the prefix cache."""
    from matplotlib.figure import Figure

    by: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for law in result["laws"]:
        by.setdefault((law["name"], law["of"]), []).append(law)
    figure = Figure(figsize=(15, 7), layout="constrained")
    settings = result["settings"]
    what = settings["model"] or f"{settings['shape'] or 'tiny'}, random weights"
    figure.suptitle(f"inferspec bench scaling: {what}; {result['machine']['processor']}, {settings['threads']} threads")
    panels = list(figure.subplots(2, 4).flat)
    for axes, ((name, of), laws) in zip(panels, by.items(), strict=False):
        _draw_laws(axes, name, of, laws)
    hits = panels[len(by)]
    shared = [100 * row["shared"] for row in result["prefix"]]
    hits.plot(shared, [100 * row["expected"] for row in result["prefix"]], "k--", linewidth=0.8, label="whole pages")
    hits.plot(shared, [100 * row["hit_rate"] for row in result["prefix"]], "o", label="hit rate")
    time = hits.twinx()
    time.plot(shared, [row["seconds"] for row in result["prefix"]], "C3.-", alpha=0.6)
    time.set(ylabel="s until all have an id", ylim=(0, None))
    hits.set(title="prefix cache", xlabel="% of a prompt shared", ylabel="% of tokens", ylim=(0, 105))
    hits.legend(fontsize=7)
    for axes in panels[len(by) + 1 :]:
        axes.set_axis_off()
    figure.savefig(file, dpi=110)


def _draw_laws(axes: Any, name: str, of: str, laws: Sequence[Mapping[str, Any]]) -> None:
    """Measurements as points, the fitted law as a line."""
    for index, law in enumerate(laws):
        colour, fit = f"C{index % 10}", law["fit"]
        axes.plot(law["x"], law["y"], ".", color=colour)
        if fit is not None:
            ends = [min(law["x"]), max(law["x"])]
            label = f"{law['at']} " if law["at"] else ""
            line = [fit["factor"] * x ** fit["exponent"] for x in ends]
            axes.plot(ends, line, color=colour, linewidth=0.8, label=f"{label}x^{exponent_text(fit)}")
    axes.set(title=name, xlabel=of, xscale="log")
    axes.grid(which="both", alpha=0.25)
    if any(law["fit"] for law in laws):
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        # What hardly grows shall look like it.
        axes.set_ylim(low / 2, high * 2)
        axes.legend(fontsize=7)
    sizes = sorted({x for law in laws for x in law["x"]})
    shown = sizes if len(sizes) <= 8 else sizes[:: len(sizes) // 4]
    axes.set_xticks(shown, [f"{x:,.0f}" for x in shown], fontsize=7, rotation=30)
    axes.set_xticks([], minor=True)
