"""Results as tables in a terminal."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from inferspec.tools.bench.peers import AGAIN, OURS
from inferspec.tools.bench.result import OTHER, REFUSED, CaseResult, Contender, Result
from inferspec.tools.bench.statistics import Ratio, Spread

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def shown(result: Result) -> RenderableType:
    """Everything to look at."""
    return Group(table(result), *(Text(line, style="dim") for line in remarks(result)))


def table(result: Result) -> Table:
    """A section for each case, a line for each contender."""
    model = result.kind == "model"
    columns = ["contender", "precision (budgets)", "tokens per second" if model else "time of a call"]
    columns += ["share of the limit", f"{OURS} is … times as fast"]
    if model:
        columns.insert(2, "logits off by")
    found = Table(title=title(result))
    for column in columns:
        found.add_column(column, justify="left" if column in columns[:2] else "right")
    for case in result.cases:
        found.add_section()
        found.add_row(Text(case.name, style="bold"), *_limit(case, model))
        for contender in case.contenders:
            found.add_row(*_line(case, contender, model))
    return found


def title(result: Result) -> str:
    """What was measured, and where."""
    settings = result.settings
    return f"inferspec bench {result.kind}: {result.machine['processor']}, {settings['threads']} of {result.machine['cores']} cores"


def _line(case: CaseResult, contender: Contender, model: bool) -> list[str | Text]:
    note = f" ({contender.note})" if contender.note else ""
    style = "red" if contender.state == REFUSED else ""
    name = Text(f"  {contender.name}{note}", style=style)
    logits = [f"{contender.difference:.2%}" if contender.difference is not None else "-"] if model else []
    if not contender.timed:
        return [name, Text(f"{contender.state}: {contender.message}", style="red"), *logits, "-", "-", "-"]
    share, ratio = case.share(contender), case.speedup(OURS, contender.name)
    against = "1" if contender.name == OURS else ratio_text(ratio, case.noise if contender.name != AGAIN else None)
    time = rate_text(contender.seconds) if case.per == "token" else time_text(contender.seconds)
    return [name, _precision(contender), *logits, time, f"{share:.0%}" if share else "-", against]


def _precision(contender: Contender) -> Text:
    worst = f" ({contender.worst:.2g})" if contender.worst is not None else ""
    if contender.state == REFUSED:
        return Text(f"refused: {contender.message}", style="red")
    if contender.state == OTHER:
        return Text(f"other precision: {contender.precision}{worst}", style="yellow")
    return Text(f"{contender.precision}{worst}")


def _limit(case: CaseResult, model: bool) -> list[str]:
    """What bounds a case, in the columns of precision and time."""
    if case.least is None:
        return []
    limit = f"{number(1 / case.least)}" if case.per == "token" else seconds_text(case.least)
    return [f"bound by {case.bound}", *([""] if model else []), f"at best {limit}"]


def ratio_text(ratio: Ratio | None, noise: float | None) -> str:
    """A ratio with its interval; ≈ where the run's noise could have made it."""
    if ratio is None:
        return "-"
    if ratio.low is None or ratio.high is None:
        return f"{number(ratio.value)} (one round)"
    near = "≈ " if noise is not None and not ratio.apart_from_one(noise) else ""
    return f"{near}{number(ratio.value)} [{number(ratio.low)}, {number(ratio.high)}]"


def time_text(spread: Spread) -> str:
    """Median and quartiles, in the unit that suits the median."""
    size, unit = next((pair for pair in _UNITS if spread.median >= pair[0]), _UNITS[-1])
    return f"{number(spread.median / size)} [{number(spread.low / size)}, {number(spread.high / size)}] {unit}"


def rate_text(spread: Spread) -> str:
    """Median and quartiles of tokens per second."""
    return f"{number(1 / spread.median)} [{number(1 / spread.high)}, {number(1 / spread.low)}]"


def seconds_text(seconds: float) -> str:
    """In the unit that suits it."""
    size, unit = next((pair for pair in _UNITS if seconds >= pair[0]), _UNITS[-1])
    return f"{number(seconds / size)} {unit}"


def number(x: float) -> str:
    """Three digits, and no exponent."""
    return f"{x:,.0f}" if x >= 100 else f"{x:.3g}"


def remarks(result: Result) -> list[str]:
    """What must be known to read the table: limits, noise, and who is missing."""
    lines = []
    if limits := result.machine["limits"]:
        peaks = ", ".join(f"{rate / 1e9:,.0f} GFLOP/s {dtype}" for dtype, rate in limits["peak"].items())
        lines.append(f"limits of this machine: reads {limits['bandwidth'] / 1e9:.3g} GB/s; multiplies {peaks}")
    lines.append(noise_line(result))
    lines += [f"{name} is missing: {install}" for name, install in result.missing.items()]
    libraries = ", ".join(f"{name} {version}" for name, version in sorted(result.libraries.items()))
    return [*lines, libraries]


def noise_line(result: Result) -> str:
    """How much of a ratio is nothing but noise."""
    known = [case.again for case in result.cases if case.again and case.again.settled]
    if not known:
        return "noise: not known, ours ran twice in fewer than two rounds"
    outside = sum(ratio.apart_from_one() for ratio in known)
    reach = f"{number(100 * ((result.noise or 1) - 1))} %"
    return (
        f"noise: {OURS} against itself differs by up to {reach} (median of the cases); its interval leaves 1 out in {outside} of "
        f"{len(known)}. ≈: not beyond the noise of its case"
    )


def show(result: Result, console: Console) -> None:
    """Print a result."""
    console.print(shown(result))
