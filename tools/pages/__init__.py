"""Pages of HTML that need nothing else: no network, readable on a phone, in light and in dark. What all of them share."""

from __future__ import annotations

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
