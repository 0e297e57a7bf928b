"""The results of mutation as a page of HTML: survivors first, each in its source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from inferspec.tools.mutation import equivalents, scope
from inferspec.tools.mutation.results import Results
from inferspec.tools.mutation.running import JUDGE, Fate
from inferspec.tools.pages import render

TEMPLATE = Path(__file__).with_name("page.html.j2")

AROUND = 2
"""Lines of source that are shown before and after the changed one."""
WIDTH, LEFT, RIGHT, ROW = 900, 130, 110, 22
"""Of the plot, in its own units: the whole, what names take, what is left for numbers, and the height of a module."""


def page(found: Results) -> str:
    """The page of the results."""
    by_module: dict[str, list[Fate]] = {}
    for fate in found.killed:
        by_module.setdefault(fate.mutant.module, []).append(fate)
    return render(
        TEMPLATE,
        score=f"{found.score:.1%}",
        summary=found.summary(),
        plot=_plot(found),
        survivors=[_shown(fate) for fate in found.survivors],
        equivalent=[_shown(fate) for fate in found.equivalent],
        left_out=[{"rule": rule, "count": n, "why": scope.RULES[rule]} for rule, n in sorted(found.left_out.items())],
        unmutated=[{"module": module, "why": why} for module, why in scope.UNMUTATED.items()],
        killed=[{"name": name, "rows": [_killed(fate) for fate in fates]} for name, fates in by_module.items()],
    )


def _shown(fate: Fate) -> dict[str, Any]:
    mutant = fate.mutant
    source = scope.source(mutant.module).splitlines()
    first = max(mutant.line - 1 - AROUND, 0)
    return {
        "before": mutant.before,
        "after": mutant.after,
        "place": f"spec/{mutant.module}.py:{mutant.line}, {mutant.function}",
        "operator": mutant.operator,
        "facts": _facts(fate),
        "reason": equivalents.reasons().get(mutant.key, ""),
        "lines": [
            {"number": number, "text": text, "marked": number == mutant.line}
            for number, text in enumerate(source[first : mutant.line + AROUND], first + 1)
        ],
    }


def _facts(fate: Fate) -> str:
    if fate.how == "unreached":
        return "; no test gets there"
    return f"; {fate.tests} tests, {fate.examples} examples" + (", as the judge" if fate.role == JUDGE else "")


def _killed(fate: Fate) -> dict[str, Any]:
    by = fate.test.split("::")[-1] + (", by the clock" if fate.how == "hung" else "")
    return {"line": fate.mutant.line, "before": fate.mutant.before, "after": fate.mutant.after, "by": by}


def _plot(found: Results) -> dict[str, Any]:
    rows, modules = [], found.by_module()
    scale = (WIDTH - LEFT - RIGHT) / max((row["run"] for row in modules.values()), default=1)
    for index, (name, row) in enumerate(modules.items()):
        counts = {
            "killed": row["killed"] - row["hung"],
            "clock": row["hung"],
            "same": row["equivalent"],
            "alive": row["survived"],
        }
        bars, x = [], float(LEFT)
        for kind, count in counts.items():
            bars.append(
                {"kind": kind, "x": round(x, 1), "width": round(count * scale, 1), "title": f"{count} of {row['run']}"}
            )
            x += count * scale
        label = f"{row['score']} of {row['run'] - row['equivalent']}"
        rows.append({"name": name, "y": 8 + index * ROW, "bars": bars, "end": round(x, 1), "label": label})
    return {"width": WIDTH, "height": len(rows) * ROW + 12, "left": LEFT, "rows": rows}
