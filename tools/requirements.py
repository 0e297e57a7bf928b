"""``inferspec requirements``: the page of all requirements, written from the contracts and checked against them."""

from __future__ import annotations

import argparse
import difflib
from pathlib import Path
from typing import Any

from rich.console import Console

from inferspec.spec import contracts
from inferspec.spec.contract import Aspect, Contract, Level, Requirement
from inferspec.tools.explain import spelling
from inferspec.tools.sources import links, named

PAGE = Path(__file__).resolve().parent.parent / "spec" / "REQUIREMENTS.md"

HEAD = """# Requirements

Every sentence of every contract, written from `spec/` by `inferspec requirements --write`; a test keeps the page fresh.
Requirements are of level MUST and about values unless they say otherwise: SHOULD, dtype, rounding or guard. Ids are
never reused. Below each stand its faults: wrong implementations that its own tests reject (`inferspec faults`).
`inferspec explain ROPE-04` tells why one matters, how it is judged, and what each of its faults does.
"""


def add_parser(commands: Any) -> None:
    """Add the command to the parser of the command line."""
    parser = commands.add_parser("requirements", help="the page of all requirements (spec/REQUIREMENTS.md)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", action="store_true", help="write it anew")
    what.add_argument("--check", action="store_true", help="whether it says what the contracts say; 1 if not")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Run the command; without an option the page is printed."""
    console = Console(highlight=False, soft_wrap=True)
    if options.write:
        PAGE.write_text(page(), encoding="utf-8")
        console.print(f"{PAGE}: {sum(len(one.requirements) for one in contracts())} requirements")
    elif options.check:
        if moved := stale():
            console.print("\n".join(moved), markup=False)
            console.print(
                "spec/REQUIREMENTS.md is not what the contracts say: inferspec requirements --write", style="red"
            )
            return 1
    else:
        print(page(), end="")
    return 0


def stale() -> list[str]:
    """How the page differs from the contracts, as lines of a diff; none where it is fresh."""
    written = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    return list(difflib.unified_diff(written.splitlines(), page().splitlines(), "written", "contracts", "", "", 0, ""))


def page() -> str:
    """The page, in Markdown."""
    listed = [f"[`{one.component}`](#{one.component}) {one.title}" for one in contracts()]
    parts = [HEAD, "\n".join(f"* {one}" for one in listed) + "\n", *(_section(one) for one in contracts())]
    return "\n".join(parts)


def _section(contract: Contract) -> str:
    lines = [f"## {contract.component}", "", f"{contract.title[:1].upper()}{contract.title[1:]}."]
    for operation in contract.operations:
        lines += ["", f"`{spelling(operation)}`", ""]
        own = (one for one in contract.requirements if one.name == operation.signature.operation)
        for one in own:
            lines += [f"* **{one.id}**{_kind(one)} {one.text}{_links(one)}", *_rejected(contract, one)]
    return "\n".join(lines) + "\n"


def _rejected(contract: Contract, about: Requirement) -> list[str]:
    names = [f"`{fault.name}`" for fault in contract.faults if fault.kills.id == about.id]
    return [f"  * its tests reject {', '.join(names)}"] if names else []


def _kind(about: Requirement) -> str:
    kinds = [str(about.level)] if about.level is not Level.MUST else []
    kinds += [str(about.aspect)] if about.aspect is not Aspect.VALUE else []
    return f" ({', '.join(kinds)})" if kinds else ""


def _links(about: Requirement) -> str:
    found = [f"[{named(link)}]({link})" for link in links(about.source)]
    return f" [{', '.join(found)}]" if found else ""
