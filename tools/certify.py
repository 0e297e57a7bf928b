"""``inferspec certify``: the suites on a subject, as pytest runs them."""

from __future__ import annotations

import argparse
from typing import Any

from rich.console import Console


def add_parser(commands: Any) -> None:
    """Add the command to the parser of the command line."""
    parser = commands.add_parser("certify", help="run the suites on a subject: pytest --pyargs inferspec.conformance …")
    parser.add_argument(
        "--impl", default="impl", metavar="SUBJECT", help="what to certify; 'list' prints the registered subjects"
    )
    parser.epilog = "Further options go to pytest: --profile full, --certificate out.json, -n auto …"
    parser.set_defaults(command=command, hands_on=True)


def command(options: argparse.Namespace) -> int:
    """Run the command; pytest's exit code, or 2 for a subject that is not named by --impl."""
    import pytest

    if options.rest and not options.rest[0].startswith("-"):
        text = f"{options.rest[0]}: a subject is named by --impl {options.rest[0]}"
        Console(soft_wrap=True).print(text, style="red", markup=False)
        return 2
    return int(pytest.main(["--pyargs", "inferspec.conformance", "--impl", options.impl, *options.rest]))
