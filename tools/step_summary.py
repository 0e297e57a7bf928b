"""A certificate for the summary page of a job: ``python -m inferspec.tools.step_summary certificate.json >> "$GITHUB_STEP_SUMMARY"``."""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path
from typing import Any

from inferspec.conformance.bridge.wire import readable
from inferspec.conformance.reporting.certificate import verdict_text
from inferspec.conformance.reporting.summary import lines
from inferspec.tools.certificates.reading import Refused, read, title

MARKS = {"conformant": "✅", "nonconformant": "❌", "incomplete": "⚠️"}


def markdown(certificate: dict[str, Any]) -> str:
    """The verdict as a heading, and below it what a run prints at its end."""
    shown = [line.replace("```", "'''") for line, _ in lines(certificate)]
    # A page of Markdown takes HTML too: a name with <!-- in it would hide all that follows.
    name, system = (escape(text, quote=False) for text in (title(certificate), certificate["environment"]["system"]))
    head = f"### {MARKS[certificate['verdict']]} {name}: {verdict_text(certificate)}"
    where = f"{readable(system)} · kernel path {certificate['subject']['kernel_path']}"
    about = f"profile {certificate['profile']} · {where}"
    return "\n".join([head, "", about, "", "```text", *shown, "```", ""])


def main() -> int:
    """Print it; 2 where there is no sound certificate, which the page then says."""
    try:
        print(markdown(read(Path(sys.argv[1]))))
    except Refused as error:
        print(f"### ⚠️ no certificate\n\n{escape(readable(str(error)), quote=False)}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
