"""What was seen, as a page of HTML that needs nothing else: the kernels, and the source with the lines marked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inferspec.tools.kernels.seen import Found, Misuse, Place, Seen, Survey, short
from inferspec.tools.kernels.tables import access, element, summary, threads
from inferspec.tools.pages import render

TEMPLATE = Path(__file__).with_name("page.html.j2")

SHOWN_WHOLE = 400
"""A file of more lines is shown around its marks only."""
AROUND = 8


def page(survey: Survey) -> str:
    """The page. It says nothing that the terminal does not, but shows the source."""
    kernels = survey.kernels.values()
    return render(
        TEMPLATE,
        target=survey.target,
        clean=survey.clean,
        summary=summary(survey),
        notes=survey.notes,
        schedules=", ".join(survey.schedules),
        findings=[
            ("Findings", "bad", [_finding(seen, found) for seen in kernels for found in seen.wrong]),
            ("Harmless", "odd", [_finding(seen, found) for seen in kernels for found in seen.harmless]),
        ],
        misuses=[
            {"kernel": seen.kernel, "place": _place(misuse, f"{short(misuse.file)}:{misuse.line}"), "text": misuse.text}
            for seen in kernels
            for misuse in seen.misuses
        ],
        sources=list(_sources(survey)),
        kernels=[_kernel(seen) for seen in kernels],
    )


def _finding(seen: Seen, found: Found) -> dict[str, Any]:
    return {
        "kernel": seen.kernel,
        "finding": found.finding.value,
        "places": [_place(place, access(place)) for place in found.places],
        "threads": threads(found.places),
        "what": element(found),
        "count": found.count,
        "schedules": ", ".join(found.schedules),
    }


def _place(place: Place | Misuse, text: str) -> dict[str, str]:
    return {"anchor": _anchor(place.file, place.line), "text": text}


def _kernel(seen: Seen) -> dict[str, Any]:
    shapes = [
        {"text": f"{instance}: {text}", "times": times}
        for instance, every in seen.instances.items()
        for text, times in every.items()
    ]
    return {"kernel": seen.kernel, "wrong": seen.wrong_count, "launches": seen.launches, "shapes": shapes}


@dataclass(frozen=True)
class _Mark:
    """What is said under a line."""

    text: str
    harmless: bool


def _sources(survey: Survey) -> Iterator[dict[str, Any]]:
    """The files that something is said of."""
    marks: dict[str, dict[int, list[_Mark]]] = {}
    for seen in survey.kernels.values():
        for found in seen.findings.values():
            for file, line in {(place.file, place.line) for place in found.places}:
                mark = _Mark(_told(found, line), found.finding.harmless)
                marks.setdefault(file, {}).setdefault(line, []).append(mark)
        for misuse in seen.misuses:
            marks.setdefault(misuse.file, {}).setdefault(misuse.line, []).append(_Mark(misuse.text, False))
    for file, of in marks.items():
        if file in survey.listings:
            yield {"file": short(file), "lines": list(_lines(file, survey.listings[file], of))}


def _lines(file: str, lines: Mapping[int, str], marks: Mapping[int, list[_Mark]]) -> Iterator[dict[str, Any]]:
    """A file's lines, the marked ones with what was found there."""
    before = 0
    for number in sorted(lines):
        if len(lines) > SHOWN_WHOLE and not any(abs(number - mark) <= AROUND for mark in marks):
            continue
        here = marks.get(number, [])
        yield {
            "anchor": _anchor(file, number),
            "kind": "bad" if any(not mark.harmless for mark in here) else "odd" if here else "",
            "number": f"{number:5}",
            "text": lines[number],
            "notes": list(dict.fromkeys(mark.text for mark in here)),
            "skipped": 0 < before < number - 1,
        }
        before = number


def _told(found: Found, line: int) -> str:
    """What is said of a finding under a line of it: with the other line, if it has one."""
    others = ", ".join(f"with {access(place)}" for place in found.places if place.line != line)
    return f"{found.finding.value}: {element(found)}" + (f", {others}" if others else "")


def _anchor(file: str, line: int) -> str:
    return f"{short(file)}-{line}".replace(" ", "-")
