"""Certificates as one page of HTML that needs nothing else: no network, no scripts but one that opens what a link is to."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from inferspec.conformance.bridge.layouts.standings import Standing, standings
from inferspec.conformance.reporting.certificate import BAD, STATES, verdict_text
from inferspec.conformance.reporting.common_causes import causes
from inferspec.conformance.suite import address
from inferspec.spec import contracts
from inferspec.tools.certificates.reading import Certificate, tested, title
from inferspec.tools.pages import ROW, Axis, axes, power_of_ten, render

TEMPLATE = Path(__file__).with_name("report.html.j2")

LABELS = {state: state.replace("_", " ") for state in STATES}

LOWEST, HIGHEST = -6, 6
"""Powers of ten that the plot reaches from and to; what lies beyond stands at its edge."""


def report(certificates: Mapping[str, Certificate]) -> str:
    """The page of some certificates, by the names of their files, side by side in that order."""
    return render(
        TEMPLATE,
        certificates=[_card(name, one) for name, one in certificates.items()],
        components=_components(list(certificates.values())),
        plots=[_plot(list(certificates.values()), axis) for axis in axes(LOWEST, HIGHEST)],
        environment=list(dict.fromkeys(name for one in certificates.values() for name in _environment(one))),
        labels=LABELS,
    )


def _card(name: str, one: Certificate) -> dict[str, Any]:
    rows = one["requirements"]
    states = Counter(row["state"] for row in rows)
    bad = sum(states[state] for state in BAD)
    return {
        "title": title(one),
        "file": name,
        "verdict": one["verdict"],
        "verdict_text": verdict_text(one),
        "passed": states["passed"],
        "claimed": len(rows) - states["not_claimed"] - states["outside_envelope"],
        "bad": bad,
        "facts": _facts(one),
        "causes": [str(cause) for cause in causes(rows)],
        "unmet": [_unmet(one, row) for row in rows if row["state"] in BAD],
        "layout": ", ".join(one["subject"][key] for key in ("layout", "edition") if key in one["subject"]),
        "chapters": _chapters(one),
        "waivers": [_waiver(waiver) for waiver in one["waivers"]],
        "environment": _environment(one),
    }


def _chapters(one: Certificate) -> list[Standing]:
    """What holds of each chapter of the text that the subject was written to; none for a subject of no layout."""
    layout, edition = (one["subject"].get(key, "") for key in ("layout", "edition"))
    return list(standings(layout, one["requirements"], edition)) if layout else []


def _facts(one: Certificate) -> dict[str, str]:
    subject, power = one["subject"], one["kit"]["power"]
    native = [name for name, kind in one["precision"]["measured"].items() if kind == "native"]
    return {
        "arrays": f"{subject['library']}, {subject['device']}",
        "kernel path": subject["kernel_path"],
        "precision": f"matmul {one['precision']['matmul']}; "
        + (f"native in {', '.join(native)}" if native else "float32 in all components"),
        "envelope": _envelope(subject["envelope"]),
        "profile": f"{one['profile']}, seed {one['seed']}",
        "kit": f"{one['kit']['version']}, {len(one['requirements'])} requirements",
        "proof of power": f"{power['rejected']} of {power['faults']} faults rejected, "
        f"{power['accepted']} of {power['variants']} honest variants accepted"
        if power
        else "not recorded for these suites",
        "made": one["date"],
    }


def _envelope(declared: Mapping[str, Mapping[str, Any]]) -> str:
    """What was tested where the subject claims less than the whole contract."""
    texts = [
        f"{name}: {_scope({k: v if isinstance(v, list) else [v] for k, v in e.items()})}"
        for name, e in declared.items()
        if e
    ]
    return "; ".join(texts) or "all that the contracts have"


def _environment(one: Certificate) -> dict[str, str]:
    about = one["environment"]
    fixed = {"system": about["system"], "machine": about["machine"], "Python": about["python"]}
    return {**fixed, **about["libraries"], "arguments": " ".join(one["arguments"]) or "-"}


def _waiver(waiver: Mapping[str, Any]) -> dict[str, Any]:
    # Only what leads to a page is a link: a certificate can be written by anybody.
    linked = waiver["issue"].startswith(("http://", "https://"))
    return {**waiver, "where": _scope(waiver["scope"]), "linked": linked}


def _scope(scope: Mapping[str, Sequence[Any]]) -> str:
    return "; ".join(f"{name} {', '.join(map(str, values))}" for name, values in scope.items()) or "everywhere"


def _unmet(one: Certificate, row: Mapping[str, Any]) -> dict[str, Any]:
    texts = {fault.name: fault.text for contract in contracts() for fault in contract.faults}
    failures = []
    for failure in row["failures"]:
        lines = [failure["message"]]
        lines += [f"smallest input: {call}" for call in [failure.get("call")] if call]
        lines += [f"looks like: {texts.get(name, name)} (fault {name})" for name in failure["diagnosis"][:4]]
        failures.append({"program": "", **failure, "lines": [*lines, f"rerun: {rerun(one, failure['test'])}"]})
    return {**row, "failures": failures}


def rerun(one: Certificate, test: str) -> str:
    """The command that runs one test of a certificate's run again."""
    # A merged certificate has no arguments of its own; those of its shards say the same of what was tested.
    kept = tested(one["arguments"] or next((shard["arguments"] for shard in one.get("shards", ())), []))
    if not any(option == "--impl" for option, _ in kept):
        kept = [("--impl", one["subject"]["spec"]), *kept]
    options = [part for option in kept for part in option]
    last = ["--profile", one["profile"], "--draw-seed", str(one["seed"]), "-n", "0"]
    return f"pytest {address(test)} {shlex.join([*options, *last])}"


def _components(certificates: Sequence[Certificate]) -> list[dict[str, Any]]:
    names = dict.fromkeys(row["component"] for one in certificates for row in one["requirements"])
    return [_component(name, certificates) for name in names]


def _component(name: str, certificates: Sequence[Certificate]) -> dict[str, Any]:
    strips = [[row for row in one["requirements"] if row["component"] == name] for one in certificates]
    sentences = {row["id"]: row for strip in reversed(strips) for row in strip}
    found = [{row["id"]: row for row in strip} for strip in strips]
    absent = {"state": "not_claimed", "examples": 0, "worst": 0.0}
    return {
        "name": name,
        "strips": strips,
        "claimed": any(row["state"] != "not_claimed" for strip in strips for row in strip),
        "rows": [{**row, "states": [of.get(identity, absent) for of in found]} for identity, row in sentences.items()],
        "counts": " · ".join(_counts(strip) for strip in strips),
    }


def _counts(strip: Sequence[Mapping[str, Any]]) -> str:
    states = Counter(row["state"] for row in strip)
    return ", ".join(f"{states[state]} {LABELS[state]}" for state in STATES if states[state])


def _plot(certificates: Sequence[Certificate], axis: Axis) -> dict[str, Any]:
    names = dict.fromkeys(row["component"] for one in certificates for row in one["requirements"] if row["worst"] > 0)
    rows = [_plotted(index, name, certificates, axis) for index, name in enumerate(names)]
    powers = range(LOWEST, HIGHEST + 1, 2)
    return {
        "axis": axis,
        "height": len(rows) * ROW + 44,
        "rows": rows,
        "ticks": [{"x": axis.x(10.0**power), "label": _label(power), "budget": power == 0} for power in powers],
    }


def _plotted(index: int, name: str, certificates: Sequence[Certificate], axis: Axis) -> dict[str, Any]:
    middle = 20 + index * ROW
    dots = []
    for series, one in enumerate(certificates):
        for row in one["requirements"]:
            if row["component"] == name and row["worst"] > 0:
                lifted = middle + (series - (len(certificates) - 1) / 2) * 6
                text = f"{row['id']} {title(one)}: {row['worst']:.2g} of its budget. {row['text']}"
                dots.append({"x": axis.x(row["worst"]), "y": lifted, "series": series % 4, "title": text})
    return {"name": name, "y": middle, "dots": dots}


def _label(power: int) -> str:
    # All that lies beyond an end of the axis stands at the end.
    beyond = {LOWEST: "≤ ", HIGHEST: "≥ "}.get(power, "")
    return "budget" if power == 0 else beyond + power_of_ten(power)
