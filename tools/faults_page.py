"""The kill matrix as one page of HTML (`inferspec faults --report`), made from what `--json` holds and the contracts say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from inferspec.spec import contracts
from inferspec.spec.contract import Contract, Fault
from inferspec.tools.faults import Acceptance, Kill, Matrix
from inferspec.tools.pages import ROW, Axis, axes, render
from inferspec.tools.sources import links, named

TEMPLATE = Path(__file__).with_name("faults.html.j2")

LOWEST = -3
"""Power of ten of the smallest share of a test's examples that is drawn; what is less stands at the edge."""
NEAR = 0.5
"""From which share of its test's examples on a fault lives near the limit."""
LATEST = 15
"""How many of the faults that were found last are listed."""


def page(matrix: Matrix) -> str:
    """The page of a kill matrix."""
    killed = [one for one in matrix.kills if one.killed]
    return render(
        TEMPLATE,
        totals={
            "faults": len(matrix.kills),
            "killed": len(killed),
            "variants": len(matrix.acceptances),
            "accepted": sum(not one.rejections for one in matrix.acceptances),
        },
        facts=_facts(matrix),
        problems=matrix.problems(),
        plots=[_plot(killed, axis) for axis in axes(LOWEST, 0)],
        latest=sorted((one for one in killed if _share(one) >= NEAR), key=_share, reverse=True)[:LATEST],
        components=[found for contract in contracts() if (found := _component(contract, matrix))["requirements"]],
    )


def _facts(matrix: Matrix) -> dict[str, str]:
    components = {one.component for one in matrix.kills}
    diagnosed = any(one.diagnosis for one in matrix.kills)
    killed = [one for one in matrix.kills if one.killed]
    facts = {
        "components": str(len(components)),
        "requirements": str(len({one.requirement for one in matrix.kills})),
        "profile": matrix.profile or "-",
        "found by the first example": f"{sum(one.examples <= 1 for one in killed)} of {len(killed)}",
        "after half of the examples": f"{sum(_share(one) >= NEAR and one.limit > 1 for one in killed)}",
        "seconds to reject all": f"{sum(one.seconds for one in killed):.0f}",
    }
    return facts | ({"named by the diagnosis": f"{matrix.diagnosis_rate:.1%}"} if diagnosed else {})


def _share(one: Kill) -> float:
    """Of the examples that its test draws, those that were needed; of a test that draws none, hardly any."""
    return one.examples / one.limit if one.limit > 1 else 10.0**LOWEST


def _component(contract: Contract, matrix: Matrix) -> dict[str, Any]:
    kills = [one for one in matrix.kills if one.component == contract.component]
    accepted = [one for one in matrix.acceptances if one.component == contract.component]
    faults = {fault.name: fault for fault in contract.faults}
    requirements = [
        {
            "id": about.id,
            "text": about.text,
            "faults": [_row(one, faults[one.fault]) for one in kills if one.requirement == about.id],
        }
        for about in contract.requirements
    ]
    texts = {variant.name: variant.text for variant in contract.variants}
    return {
        "name": contract.component,
        "counts": f"{sum(one.killed for one in kills)} of {len(kills)} faults rejected, {_accepted(accepted)}",
        "requirements": [one for one in requirements if one["faults"]],
        "variants": [{**vars(one), "text": texts[one.variant]} for one in accepted],
    }


def _accepted(found: Sequence[Acceptance]) -> str:
    return f"{sum(not one.rejections for one in found)} of {len(found)} honest variants accepted"


def _row(one: Kill, fault: Fault) -> dict[str, Any]:
    facts = [f"rejected by {', '.join(test.split('::')[1] for test in one.tests)}"] if one.killed else []
    if one.killed:
        facts.append(
            f"example {one.examples} of {one.limit}, {one.seconds:.2f} s" if one.limit > 1 else f"{one.seconds:.2f} s"
        )
    if one.diagnosis:
        facts.append(
            "the diagnosis names it" + ("" if one.diagnosis == [one.fault] else f" among {len(one.diagnosis)}")
        )
    if one.slip:
        facts.append(f"it cannot run: {one.slip}")
    if one.elsewhere:
        facts.append(f"also rejected by tests of {', '.join(one.elsewhere)}")
    return {
        "fault": one.fault,
        "killed": one.killed,
        "unjudged": one.unjudged,
        "text": fault.text,
        "links": [{"to": link, "name": named(link)} for link in links(fault.source)],
        "facts": " · ".join(facts),
    }


def _plot(killed: Sequence[Kill], axis: Axis) -> dict[str, Any]:
    names = dict.fromkeys(one.component for one in killed)
    rows = [_plotted(index, name, killed, axis) for index, name in enumerate(names)]
    every = "all examples" if axis.name == "broad" else "all"
    ticks = [(0.001, "1 ‰"), (0.01, "1 %"), (0.1, "10 %"), (1.0, every)]
    return {
        "axis": axis,
        "height": len(rows) * ROW + 44,
        "rows": rows,
        "ticks": [{"x": axis.x(share), "label": label, "limit": share == 1.0} for share, label in ticks],
    }


def _plotted(index: int, name: str, killed: Sequence[Kill], axis: Axis) -> dict[str, Any]:
    middle, dots = 20 + index * ROW, []
    for number, one in enumerate(one for one in killed if one.component == name):
        # Many have the same share: they lie in layers, so that one sees how many they are.
        title = f"{one.fault} ({one.requirement}): example {one.examples} of {one.limit}"
        dots.append(
            {"x": axis.x(_share(one)), "y": middle + number % 5 * 3 - 6, "near": _share(one) >= NEAR, "title": title}
        )
    return {"name": name, "y": middle, "dots": dots}
