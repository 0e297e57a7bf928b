"""``inferspec``: the one entry point of the tools."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from inferspec import __version__
from inferspec.tools.terminal import guarded, interrupts_later

if TYPE_CHECKING:
    from inferspec.tools.arguments import Parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code (0 good, 1 a finding, 2 bad usage, 130 interrupted)."""
    return guarded(lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    # Libraries that are interrupted while they are imported print what they like.
    with interrupts_later():
        parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    if rest and not options.hands_on:
        options.parser.error(f"unrecognized arguments: {' '.join(rest)}")
    options.rest = rest
    return options.command(options)


def _parser() -> Parser:
    """The parser; each command adds its own, in the order in which they are listed."""
    from inferspec.tools import (
        certify,
        explain,
        faults_command,
        generate,
        golden_command,
        init_adapter,
        requirements,
        serve_batch,
        simulate,
        tutorial,
    )
    from inferspec.tools.arguments import Parser
    from inferspec.tools.bench import command as bench
    from inferspec.tools.certificates import commands as certificates
    from inferspec.tools.kernels import commands as kernels
    from inferspec.tools.mutation import commands as mutation
    from inferspec.tools.specificity import commands as specificity

    parser = Parser(prog="inferspec", description="The conformance kit for LLM inference components.")
    parser.add_argument("--version", action="version", version=f"inferspec {__version__}")
    parser.set_defaults(hands_on=False)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    certify.add_parser(commands)
    faults_command.add_parser(commands)
    golden_command.add_parser(commands)
    init_adapter.add_parser(commands)
    explain.add_parser(commands)
    requirements.add_parser(commands)
    tutorial.add_parser(commands)
    generate.add_parser(commands)
    bench.add_parser(commands)
    certificates.add_parsers(commands)
    serve_batch.add_parser(commands)
    simulate.add_parser(commands)
    kernels.add_parser(commands)
    mutation.add_parser(commands)
    specificity.add_parser(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
