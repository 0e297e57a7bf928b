"""Results as a drawing: how many times as fast ours is, and what share of the machine's limit each contender reaches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from inferspec.tools.bench.peers import AGAIN, OURS
from inferspec.tools.bench.result import CaseResult, Result
from inferspec.tools.bench.show import number, rate_text, title

_ROW = 0.24
_GAP = 0.8
"""Between cases, in rows."""


def draw(result: Result, file: Path) -> None:
    """Write the picture in the format that the name ends in."""
    from matplotlib.figure import Figure

    names = _contenders(result)
    rows = [(case, [name for name in names if case.of(name)]) for case in result.cases]
    rows = [(case, present) for case, present in rows if present]
    height = 1.9 + _ROW * sum(len(present) + _GAP for _, present in rows)
    figure = Figure(figsize=(13, height), layout="constrained")
    figure.suptitle(title(result))
    if not rows:
        figure.text(0.5, 0.5, "nothing was timed", ha="center")
        figure.savefig(file, dpi=110)
        return
    ratios, shares = figure.subplots(1, 2, sharey=True)
    colours = {name: f"C{index % 10}" for index, name in enumerate(names)}
    at, ticks = 0.0, []
    for case, present in rows:
        ticks.append((at + (len(present) - 1) / 2, case.name))
        for name in present:
            _draw_ratio(ratios, at, case, name, colours[name])
            _draw_share(shares, at, case, name, colours[name])
            at += 1
        at += _GAP
    _finish(ratios, shares, ticks, result)
    handles = [ratios.plot([], [], "o", color=colours[name], label=name)[0] for name in names]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(names), 6))
    figure.savefig(file, dpi=110)


def _contenders(result: Result) -> list[str]:
    """All that were timed anywhere, in order, without the one that is only there for the noise."""
    found = dict.fromkeys(one.name for case in result.cases for one in case.contenders if one.timed)
    return [name for name in found if name != AGAIN]


def _draw_ratio(axes: Any, at: float, case: CaseResult, name: str, colour: str) -> None:
    """A contender's speed by ours, with its interval; the band is the noise of the case."""
    if name == OURS:
        noise = case.noise or 1.0
        axes.plot([1 / noise, noise], [at, at], color=colour, alpha=0.35, linewidth=5, solid_capstyle="butt")
        axes.plot([1], [at], "o", color=colour)
        return
    ratio = case.speedup(name, OURS)
    if ratio is None:
        return
    ends = (ratio.low or ratio.value, ratio.high or ratio.value)
    axes.errorbar(
        [ratio.value], [at], xerr=[[ratio.value - ends[0]], [ends[1] - ratio.value]], fmt="o", color=colour, capsize=2
    )
    axes.annotate(number(ratio.value), (ends[1], at), (5, 0), textcoords="offset points", va="center", fontsize=7)


def _draw_share(axes: Any, at: float, case: CaseResult, name: str, colour: str) -> None:
    contender = case.of(name)
    share = case.share(contender) if contender else None
    if contender is None or share is None:
        return
    axes.barh([at], [100 * share], color=colour, height=0.8)
    rate = f", {rate_text(contender.seconds)} tokens/s" if case.per == "token" else ""
    axes.annotate(
        f"{100 * share:.3g} % of {case.bound}{rate}",
        (100 * share, at),
        (4, 0),
        textcoords="offset points",
        va="center",
        fontsize=7,
    )


def _finish(ratios: Any, shares: Any, ticks: list[tuple[float, str]], result: Result) -> None:
    ratios.set_yticks([place for place, _ in ticks], [name for _, name in ticks], fontsize=7)
    ratios.invert_yaxis()
    ratios.set(title=f"speed by that of {OURS}: right is faster", xscale="log", xlabel="times as fast")
    ratios.axvline(1, color="black", linewidth=0.6)
    ratios.grid(axis="x", which="both", alpha=0.25)
    ratios.margins(x=0.15, y=0.02)
    limits = result.machine["limits"]
    read = f": reads {limits['bandwidth'] / 1e9:.3g} GB/s" if limits else ""
    shares.set(title=f"share of the machine's limit{read}", xlabel="%")
    shares.tick_params(labelleft=False)
    shares.grid(axis="x", alpha=0.25)
    shares.margins(x=0.35)
