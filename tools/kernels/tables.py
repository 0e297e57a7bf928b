"""What was seen, in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from inferspec.tools.kernels.seen import Found, Place, Seen, Survey, short

MOST_SHAPES = 4


def show(survey: Survey, console: Console) -> None:
    """Print the kernels, what is wrong with them, what is harmless, and a last line that sums up."""
    console.print(_kernels(survey.kernels.values()))
    wrong = [(seen, found) for seen in survey.kernels.values() for found in seen.wrong]
    harmless = [(seen, found) for seen in survey.kernels.values() for found in seen.harmless]
    if wrong:
        console.print(_findings(wrong, survey.schedules, "findings"))
    if harmless:
        console.print(_findings(harmless, survey.schedules, "harmless: a right kernel may do it"))
    if any(seen.misuses for seen in survey.kernels.values()):
        console.print(_misuses(survey.kernels.values()))
    if taken := sum(seen.taken for seen in survey.kernels.values()):
        told = _plural(taken, "report was", "reports were")
        console.print(
            f"note: {told} taken by the target's own code, which asked for them, and left out here", style="yellow"
        )
    for note in survey.notes:
        console.print(f"failed: {note}", style="red", markup=False, highlight=False, soft_wrap=True)
    console.print(summary(survey), style="green" if survey.clean else "red", highlight=False)


def summary(survey: Survey) -> str:
    """The whole of it in a line."""
    kernels, launches = len(survey.kernels), sum(seen.launches for seen in survey.kernels.values())
    bad = [seen for seen in survey.kernels.values() if seen.wrong_count]
    wrong = sum(seen.wrong_count for seen in bad)
    ran = f"{_plural(launches, 'launch', 'launches')} in {_plural(len(survey.schedules), 'schedule')}"
    ran += "" if survey.linted else "; address spaces not checked"
    if survey.clean:
        return f"{_plural(kernels, 'kernel')} clean: {ran}"
    ran += "" if survey.complete else "; the target itself failed, and not all of it may have run"
    if not survey.found:
        return f"no finding in {_plural(kernels, 'kernel')}: {ran}"
    return f"{_plural(wrong, 'finding')} in {len(bad)} of {_plural(kernels, 'kernel')}: {ran}"


def access(place: Place) -> str:
    """``rows.metal:7 writes``."""
    return f"{place} {place.what}".strip()


def threads(places: Sequence[Place]) -> str:
    """Thread and, where that says something, threadgroup of each access."""
    groups = any(place.group != (0, 0, 0) for place in places)
    return "\n".join(
        f"{p.thread}" + (f" of ({p.group[0]},{p.group[1]},{p.group[2]})" if groups else "") for p in places
    )


def element(found: Found) -> str:
    """``threadgroup tile[3]``, or what else there is to say."""
    if not found.memory:
        return found.detail
    where = found.memory + ("" if found.index is None else f"[{found.index}]")
    return f"{where}; {found.detail}" if found.detail else where


def _kernels(kernels: Iterable[Seen]) -> Table:
    table = Table(title="kernels", show_lines=True)
    for name in ("kernel", "verdict", "launches", "instance", "shapes"):
        table.add_column(name, overflow="fold")
    for seen in kernels:
        verdict = f"[red]{_plural(seen.wrong_count, 'finding')}" if seen.wrong_count else "[green]clean"
        for number, (instance, shapes) in enumerate(seen.instances.items()):
            first = (escape(seen.kernel), verdict, str(seen.launches)) if number == 0 else ("", "", "")
            table.add_row(*first, escape(instance), escape("\n".join(_most(list(shapes)))))
    return table


def _most(shapes: Sequence[str]) -> list[str]:
    more = len(shapes) - MOST_SHAPES
    return [*shapes[:MOST_SHAPES], *([f"and {more} more"] if more > 0 else [])]


def _findings(rows: Iterable[tuple[Seen, Found]], schedules: Sequence[str], title: str) -> Table:
    table = Table(title=title, show_lines=True)
    for name in ("kernel", "finding", "where", "threads", "what", "count", "schedules"):
        table.add_column(name, overflow="fold")
    for seen, found in rows:
        where = "\n".join(access(place) for place in found.places)
        told = "all" if set(found.schedules) == set(schedules) else ", ".join(found.schedules)
        table.add_row(
            escape(seen.kernel),
            found.finding.value,
            escape(where),
            threads(found.places),
            escape(element(found)),
            str(found.count),
            told,
        )
    return table


def _misuses(kernels: Iterable[Seen]) -> Table:
    table = Table("kernel", "where", "what", title="address spaces", show_lines=True)
    for seen in kernels:
        for misuse in seen.misuses:
            table.add_row(escape(seen.kernel), escape(f"{short(misuse.file)}:{misuse.line}"), escape(misuse.text))
    return table


def _plural(number: int, word: str, words: str = "") -> str:
    return f"{number} {word if number == 1 else words or word + 's'}"
