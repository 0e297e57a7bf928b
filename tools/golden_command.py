"""``inferspec golden``: goldens of operations and of whole models, made anew or checked."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from rich.console import Console

from inferspec.tools.arguments import no_component

ACTIONS = {"regen": "make the goldens anew and print what moved", "check": "make them anew and compare"}


def add_parser(commands: Any) -> None:
    """Add the command to the parser of the command line."""
    parser = commands.add_parser("golden", help="regenerate or check the goldens")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    for name, text in ACTIONS.items():
        action = actions.add_parser(name, help=text)
        action.add_argument(
            "--only", action="append", default=[], metavar="COMPONENT", help="this component; repeatable"
        )
        action.add_argument(
            "--model", metavar="MODEL", help="a name in golden/models, a folder, a .gguf file or a hub id"
        )
        action.add_argument("--revision", metavar="SHA", help="the commit of a hub id; default: that of main, reported")
        action.set_defaults(command=command, action=name)


def command(options: argparse.Namespace) -> int:
    """Run the command: 1 where goldens differ or are refused, 2 when nothing can be computed."""
    console = Console(width=None if sys.stdout.isatty() else 160)
    if problem := _problem(options):
        console.print(problem, style="red", markup=False, soft_wrap=True)
        return 2
    if options.model is not None:
        from inferspec.tools import model_golden

        make = model_golden.regen if options.action == "regen" else model_golden.check
        return make(options.model, options.revision, console)
    from inferspec.tools import golden

    action = golden.regen if options.action == "regen" else golden.check
    return action(only=options.only, console=console)


def _problem(options: argparse.Namespace) -> str:
    if options.revision is not None and options.model is None:
        return f"--revision {options.revision}: it takes --model"
    if options.only and options.model is not None:
        return f"--only {options.only[0]}: it is of the goldens of operations; those of --model are made all together"
    return no_component("--only", [name.partition("/")[0] for name in options.only])
