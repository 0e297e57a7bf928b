"""Pages of HTML that need nothing else: no network, readable on a phone, in light and in dark. What all of them share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

HERE = Path(__file__).parent


def render(template: Path, **values: Any) -> str:
    """A page from its template, which extends `base.html.j2`."""
    loader = jinja2.FileSystemLoader([template.parent, HERE])
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined)
    return environment.get_template(template.name).render(**values)


def power_of_ten(power: int) -> str:
    """10⁻³, as a plot's axis has it."""
    return f"10{str(power).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


ROW = 22
"""The height of a row of a plot, in its own units, which are pixels where there is room."""


@dataclass(frozen=True)
class Axis:
    """The axis of a plot, logarithmic in shares. name: which screens it is for; width: of the whole plot; left: what names
    take of it; lowest, highest: powers of ten at its ends, where all that lies beyond stands."""

    name: str
    width: int
    left: int
    lowest: float
    highest: float

    def x(self, share: float) -> float:
        """Where a share stands."""
        power = min(max(math.log10(share), self.lowest), self.highest)
        return round(
            self.left + (power - self.lowest) / (self.highest - self.lowest) * (self.width - self.left - 20), 1
        )


def axes(lowest: float, highest: float) -> tuple[Axis, Axis]:
    """The axis of a plot for screens that are broad, and for those that are narrow."""
    return Axis("broad", 900, 150, lowest, highest), Axis("narrow", 360, 108, lowest, highest)
