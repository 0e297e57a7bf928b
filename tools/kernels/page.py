"""What was seen, as a page of HTML that needs nothing else: the kernels, and the source with the lines marked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from inferspec.tools.kernels.seen import Found, Seen, Survey, short
from inferspec.tools.kernels.tables import access, element, summary, threads

SHOWN_WHOLE = 400
"""A file of more lines is shown around its marks only."""
AROUND = 8

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --paper: #fdfdfc; --faint: #6b7280; --line: #e3e5e8; --code: #f4f5f7;
  --bad: #b3261e; --bad-paper: #fdeceb; --odd: #7a5a00; --odd-paper: #fdf5dc; --good: #1a6b3c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e6ea; --paper: #15181d; --faint: #98a1ad; --line: #2b3038;
  --code: #1c2027; --bad: #ff9b92; --bad-paper: #3a1f1f; --odd: #f0cd6b; --odd-paper: #362e16; --good: #7bd69f; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2.5rem auto; max-width: 72rem;
  padding: 0 1.25rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.5rem; }
.verdict { font-size: 1.1rem; font-weight: 600; } .good { color: var(--good); } .bad { color: var(--bad); } .odd { color: var(--odd); }
table { border-collapse: collapse; width: 100%; } .wide { overflow-x: auto; }
th, td { text-align: left; vertical-align: top; padding: .4rem .8rem .4rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--faint); font-weight: 500; } td { white-space: pre-line; }
code, pre { font: 13px/1.55 ui-monospace, Menlo, Consolas, monospace; } td code { white-space: pre-wrap; }
pre { background: var(--code); border: 1px solid var(--line); border-radius: 6px; padding: .75rem 0; overflow-x: auto; }
pre span { display: block; padding: 0 1rem; min-width: max-content; } pre i { font-style: normal; color: var(--faint); user-select: none; }
pre .bad { background: var(--bad-paper); } pre .odd { background: var(--odd-paper); }
pre .bad, pre .odd { color: inherit; } pre .note { padding-left: 4.6rem; font-size: 12px; }
pre .note.bad { color: var(--bad); } pre .note.odd { color: var(--odd); }
a { color: inherit; white-space: nowrap; } .faint { color: var(--faint); }
"""


def page(survey: Survey) -> str:
    """The page. It says nothing that the terminal does not, but shows the source."""
    verdict = "good" if survey.clean else "bad"
    notes = "".join(f'<p class="bad">failed: {escape(note)}</p>' for note in survey.notes)
    wrong = [(seen, found) for seen in survey.kernels.values() for found in seen.wrong]
    harmless = [(seen, found) for seen in survey.kernels.values() for found in seen.harmless]
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(survey.target)}: kernels checked</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>'
        f"<h1>{escape(survey.target)}</h1>"
        f'<p class="verdict {verdict}">{escape(summary(survey))}</p>{notes}'
        f'<p class="faint">Simulated by metalsim in the schedules {escape(", ".join(survey.schedules))}: every access checked, not yet'
        " run on a device.</p>"
        f"{_findings('Findings', wrong, 'bad')}{_findings('Harmless', harmless, 'odd')}{_misuses(survey.kernels.values())}"
        f"{_sources(survey)}{_kernels(survey.kernels.values())}</body></html>\n"
    )


def _findings(title: str, rows: Sequence[tuple[Seen, Found]], kind: str) -> str:
    if not rows:
        return ""
    head = _row("th", "kernel", "finding", "where", "threads", "what", "count", "schedules")
    body = "".join(
        _row(
            "td",
            escape(seen.kernel),
            f'<span class="{kind}">{escape(found.finding.value)}</span>',
            "\n".join(
                f'<a href="#{_anchor(p.file, p.line)}"><code>{escape(access(p))}</code></a>' for p in found.places
            ),
            escape(threads(found.places)),
            f"<code>{escape(element(found))}</code>",
            str(found.count),
            escape(", ".join(found.schedules)),
        )
        for seen, found in rows
    )
    return f'<h2>{title}</h2><div class="wide"><table>{head}{body}</table></div>'


def _misuses(kernels: Iterable[Seen]) -> str:
    rows = "".join(
        _row(
            "td",
            escape(seen.kernel),
            f'<a href="#{_anchor(misuse.file, misuse.line)}"><code>{escape(short(misuse.file))}:{misuse.line}</code></a>',
            f"<code>{escape(misuse.text)}</code>",
        )
        for seen in kernels
        for misuse in seen.misuses
    )
    head = _row("th", "kernel", "where", "what")
    return f'<h2>Address spaces</h2><div class="wide"><table>{head}{rows}</table></div>' if rows else ""


def _kernels(kernels: Iterable[Seen]) -> str:
    head = _row("th", "kernel", "verdict", "launches", "instances and shapes")
    body = ""
    for seen in kernels:
        verdict = (
            f'<span class="bad">{seen.wrong_count} found</span>'
            if seen.wrong_count
            else '<span class="good">clean</span>'
        )
        shapes = "\n".join(
            f"<code>{escape(instance)}: {escape(text)}</code>" + (f" ×{times}" if times > 1 else "")
            for instance, every in seen.instances.items()
            for text, times in every.items()
        )
        body += _row("td", escape(seen.kernel), verdict, str(seen.launches), shapes)
    return f'<h2>Kernels</h2><div class="wide"><table>{head}{body}</table></div>'


@dataclass(frozen=True)
class _Mark:
    """What is said under a line."""

    text: str
    harmless: bool


def _sources(survey: Survey) -> str:
    marks: dict[str, dict[int, list[_Mark]]] = {}
    for seen in survey.kernels.values():
        for found in seen.findings.values():
            for file, line in {(place.file, place.line) for place in found.places}:
                mark = _Mark(_told(found, line), found.finding.harmless)
                marks.setdefault(file, {}).setdefault(line, []).append(mark)
        for misuse in seen.misuses:
            marks.setdefault(misuse.file, {}).setdefault(misuse.line, []).append(_Mark(f"▲ {misuse.text}", False))
    return "".join(_source(file, survey.listings[file], of) for file, of in marks.items() if file in survey.listings)


def _source(file: str, lines: dict[int, str], marks: dict[int, list[_Mark]]) -> str:
    """A file's lines, the marked ones with what was found there under them."""
    pieces = []
    before = 0
    for number in sorted(lines):
        if len(lines) > SHOWN_WHOLE and not any(abs(number - mark) <= AROUND for mark in marks):
            continue
        if before and number > before + 1:
            pieces.append('<span class="faint">⋯</span>')
        before = number
        here = marks.get(number, [])
        kind = "bad" if any(not mark.harmless for mark in here) else "odd" if here else ""
        pieces.append(
            f'<span id="{_anchor(file, number)}" class="{kind}"><i>{number:5}</i>  {escape(lines[number])}</span>'
        )
        pieces += [
            f'<span class="note {kind}">{escape(text)}</span>' for text in dict.fromkeys(mark.text for mark in here)
        ]
    return f"<h2>{escape(short(file))}</h2><pre>{''.join(pieces)}</pre>"


def _told(found: Found, line: int) -> str:
    """What is said of a finding under a line of it: with the other line, if it has one."""
    others = ", ".join(f"with {access(place)}" for place in found.places if place.line != line)
    return f"▲ {found.finding.value}: {element(found)}" + (f", {others}" if others else "")


def _row(cell: str, *values: str) -> str:
    return "<tr>" + "".join(f"<{cell}>{value}</{cell}>" for value in values) + "</tr>"


def _anchor(file: str, line: int) -> str:
    return escape(f"{short(file)}-{line}", quote=True).replace(" ", "-")
