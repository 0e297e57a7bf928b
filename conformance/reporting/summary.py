"""What a run prints at its end: a line for each component, a line for each requirement that is not met, the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from typing import Any

from inferspec.conformance.bridge.layouts.standings import standings
from inferspec.conformance.reporting.certificate import BAD, OF_WAIVERS, STATES, verdict_text
from inferspec.conformance.reporting.common_causes import causes, declaration, native_components
from inferspec.spec import COMPONENTS

Line = tuple[str, dict[str, bool]]
_COLOURS = {"conformant": "green", "nonconformant": "red", "incomplete": "yellow"}


def lines(certificate: Mapping[str, Any]) -> Iterator[Line]:
    """The lines of the terminal summary, each with its style."""
    rows = certificate["requirements"]
    # Where a reader begins: what is one mistake is told once, with all that it shows in.
    alike = causes(rows)
    for cause in alike:
        yield str(cause), {"bold": True}
        yield from (_unmet(row) for row in rows if row["id"] in cause.ids)
    told = {one for cause in alike for one in cause.ids}
    # Components of which there is nothing to tell but this state.
    alone: dict[str, list[str]] = {"not_claimed": [], "unknown": []}
    for component in dict.fromkeys(row["component"] for row in rows):
        own = [row for row in rows if row["component"] == component]
        states = {row["state"] for row in own}
        if len(states) == 1 and states <= alone.keys() and not any(row["examples"] for row in own):
            alone[states.pop()].append(component)
        else:
            yield from _component(component, own, certificate, told)
    yield from ((f"{state.replace('_', ' ')}: {', '.join(names)}", {}) for state, names in alone.items() if names)
    if layout := certificate["subject"].get("layout"):
        yield from _chapters(layout, certificate["subject"].get("edition", ""), rows)
    for name, choices in certificate["subject"]["unclaimed"].items():
        yield f"{name} also works where nothing is claimed: {', '.join(choices)}", {}
    yield f"kernel path: {certificate['subject']['kernel_path']}", {}
    precision = certificate["precision"]["matmul"]
    yield f"precision of the library's float32 matmul: {precision}", {}
    power = certificate["kit"]["power"]
    if power:
        yield (
            f"faults rejected by these suites: {power['rejected']}/{power['faults']}, honest variants accepted: {power['accepted']}/{power['variants']}",
            {},
        )
    yield from _verdict(certificate)


def _verdict(certificate: Mapping[str, Any]) -> Iterator[Line]:
    """The verdict, and what stands between it and conformant."""
    yield f"verdict: {verdict_text(certificate)}", {_COLOURS[certificate["verdict"]]: True, "bold": True}
    rows = certificate["requirements"]
    if unmet := [row for row in rows if row["state"] in BAD and row["level"] == "MUST"]:
        failed = Counter(row["aspect"] for row in unmet)
        # A missing guard hides no right values.
        right = "" if failed["value"] else "; no value is wrong"
        counts = ", ".join(f"{count} of aspect {aspect}" for aspect, count in failed.items())
        yield f"  not met: {counts}{right}", {"red": True}
        native = [native_components(row) for row in unmet]
        if all(native):
            # Not conformant even so: what is promised and what is kept are to be the same.
            yield f"  all of it is within class native; declared, {declaration(set().union(*native))}, it holds", {}
    if any(row["state"] in BAD and row["level"] == "SHOULD" for row in rows):
        yield "  what is unmet of level SHOULD is told in full with -rx", {}
    if certificate["verdict"] == "incomplete":
        yield from _incomplete(certificate)


def _incomplete(certificate: Mapping[str, Any]) -> Iterator[Line]:
    if altered := certificate["kit"]["altered"]:
        more = f" and {len(altered) - 5} more" if len(altered) > 5 else ""
        yield f"  the kit was changed while it ran: {', '.join(altered[:5])}{more}", {"red": True}
    missing = sum(set(row["tests"]) != set(row["ran"]) for row in certificate["requirements"])
    if missing or not altered:
        yield (
            f"  {missing} requirements have tests that did not run; only a whole run gives a verdict",
            {"yellow": True},
        )


def _chapters(layout: str, edition: str, rows: list[Mapping[str, Any]]) -> Iterator[Line]:
    yield "", {}
    yield f"by chapters of the {layout}{f', {edition}' if edition else ''}:", {"bold": True}
    for standing in standings(layout, rows, edition):
        style = {"red": True} if standing.wrong else {"green": True} if standing.claimed else {}
        yield f"  {standing.chapter.where:16s} {standing.chapter.title:36s} {standing.text}", style
        for name, ids in standing.wrong.items():
            yield f"    {name}: {', '.join(ids)}", {"red": True}
        for name, why in standing.unclaimed.items():
            yield f"    {name} not claimed{': ' if why else ''}{why}", {}
    yield "", {}


def _narrow(rows: list[Mapping[str, Any]]) -> Iterator[Line]:
    """The choice that leaves most of a component untested: it may be a slip, such as a key's usual value left out."""
    reasons = Counter(row["message"] for row in rows if row["state"] == "outside_envelope")
    offered = sum(row["state"] != "not_claimed" for row in rows)
    for reason, count in reasons.most_common(1):
        if 2 * count > offered:
            yield f"  most of it is untested, {count} of {offered} requirements: {reason}", {"yellow": True}


def _component(
    component: str, rows: list[Mapping[str, Any]], certificate: Mapping[str, Any], told: Set[str]
) -> Iterator[Line]:
    """What became of a component; told: the requirements that stand under their causes already."""
    states = Counter(row["state"] for row in rows)
    counts = ", ".join(f"{states[state]} {state.replace('_', ' ')}" for state in STATES if states[state])
    examples, worst = sum(row["examples"] for row in rows), max(row["worst"] for row in rows)
    precision = certificate["precision"]["measured"].get(component, "")
    error = f", worst error {worst:.3g} of its budget, class {precision}" if worst else ""
    detail = f"  [{examples} examples{error}]" if examples else ""
    bad = any(row["state"] in BAD and row["level"] == "MUST" for row in rows)
    yield f"{component:{max(map(len, COMPONENTS))}s} {counts}{detail}", {"red": True} if bad else {}
    yield from _narrow(rows)
    if above := sum(row["id"] in told for row in rows):
        yield f"  {above} unmet as told above", {"red": bad}
    yield from (
        _unmet(row) for row in rows if (row["state"] in BAD or row["state"] == "waived") and row["id"] not in told
    )


def _unmet(row: Mapping[str, Any]) -> Line:
    must = row["level"] == "MUST"
    kinds = [*(() if must else ("SHOULD",)), *(() if row["aspect"] == "value" else (row["aspect"],))]
    kind = f" ({', '.join(kinds)})" if kinds else ""
    looks = f"; looks like {' or '.join(row['diagnosis'][:3])}" if row["diagnosis"] else ""
    # No test is red then, and nothing else says why the requirement is.
    why = f"; {row['message']}" if row["state"] in BAD and row["message"].startswith(OF_WAIVERS) else ""
    return f"  {row['id']}{kind} {row['state']}: {row['text']}{looks}{why}", {"red": row["state"] in BAD and must}
