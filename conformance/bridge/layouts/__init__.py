"""Layouts: other people's names for what the contract names, so that their packages are certified without an adapter.

`--impl PACKAGE --layout NAME`. A layout reads a package that was written to some course or convention, finds its classes
and functions wherever they lie, and offers them under the contract's names. It computes nothing itself, and it hides
nothing: what it asks for is what the convention's own text asks for (its envelope), the requirements stay the same.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

LAYOUTS = ("course", "course-week2")


@dataclass(frozen=True)
class Offer:
    """What stands for an operation of the contract.

    narrows: envelope key -> what the convention asks of it; layout: the order of axes, as in an adapter's LAYOUT; unasked:
    what no envelope key can leave out, a requirement's id or a test's name -> why the convention does not ask it.
    """

    function: Callable[..., Any]
    narrows: Mapping[str, tuple[Any, ...] | int] = field(default_factory=dict)
    layout: str = ""
    unasked: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Laid:
    """A package seen through a layout.

    offers: operation -> what stands for it; absent: operation -> why it is not claimed; broken: operation -> the error
    of its module; edition: which of the text it was written to, where there are several.
    """

    offers: Mapping[str, Offer]
    absent: Mapping[str, str]
    broken: Mapping[str, str]
    origin: str
    precision: Mapping[str, str]
    edition: str = ""


@dataclass(frozen=True)
class Chapter:
    """A part of the convention's text. names: the operations, or ids of requirements, that it is about; elsewhere: where
    what it is about is judged, if it is not by this layout."""

    where: str
    title: str
    names: tuple[str, ...] = ()
    elsewhere: str = ""


def lay_out(package: str, layout: str) -> Laid:
    """See the package of that name through a layout; AdapterError where there is none, ValueError for no layout."""
    laid: Laid = _module(layout).lay_out(package)
    return laid


def guards(layout: str) -> frozenset[str]:
    """Ids of requirements, or names of tests, that ask for guards in other words: they tell what bad arguments do not do."""
    found: frozenset[str] = _module(layout).GUARDS
    return found


def alternatives(layout: str) -> tuple[frozenset[str], ...]:
    """Sets of operations of which an edition of the text has one: the others are not missed where it is claimed."""
    found: tuple[frozenset[str], ...] = _module(layout).ALTERNATIVES
    return found


def editions(layout: str) -> tuple[str, ...]:
    """The editions of the layout's text, from the oldest to the newest."""
    return tuple(_module(layout).CHAPTERS)


def chapters(layout: str, edition: str = "") -> tuple[Chapter, ...]:
    """The chapters of an edition of the layout's text, of the oldest where none is named, in order."""
    found: Mapping[str, tuple[Chapter, ...]] = _module(layout).CHAPTERS
    return found.get(edition) or next(iter(found.values()))


def by_chapter(
    layout: str, rows: Iterable[Mapping[str, Any]], edition: str = ""
) -> Iterator[tuple[Chapter, list[Mapping[str, Any]]]]:
    """Each chapter with the rows of a certificate that are about it; a chapter has no row that another names by its id."""
    rows, every = list(rows), chapters(layout, edition)
    named = {name for chapter in every for name in chapter.names}
    for chapter in every:
        yield (
            chapter,
            [r for r in rows if r["id"] in chapter.names or (r["name"] in chapter.names and r["id"] not in named)],
        )


def _module(layout: str) -> Any:
    if layout not in LAYOUTS:
        raise ValueError(f"--layout {layout}: it takes {', '.join(LAYOUTS)}")
    return importlib.import_module(f"{__name__}.{layout.replace('-', '_')}")
