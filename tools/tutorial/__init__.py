"""``inferspec tutorial``: from a broken RoPE to a certified one, in the terminal.

What has been reached is in the learner's own file, and nowhere else: started again, the tutorial goes on from there.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from inferspec.conformance.bridge.signatures import AdapterError
from inferspec.conformance.reporting.certificate import verdict_text
from inferspec.tools.explain import Page
from inferspec.tools.told import told
from inferspec.tools.tutorial.checking import Failure, certified, first_failure
from inferspec.tools.tutorial.lessons import BEGINNING, LESSONS, Lesson, lesson_for

FOLDER = Path("inferspec-tutorial")
CHOICES = "[Enter] I mended it, run again   h  a hint   m  mend it for me   q  stop for now"
COPIED = ("rerun: ", "as a program: ")
"""How the lines of a failure begin that someone will copy."""


def add_parser(commands: Any) -> None:
    """Add the command to the parser of the command line."""
    parser = commands.add_parser("tutorial", help="from a broken RoPE to a certified one, step by step")
    parser.add_argument(
        "folder", type=Path, nargs="?", default=FOLDER, metavar="FOLDER", help=f"where to work (default: {FOLDER})"
    )
    parser.add_argument("--auto", action="store_true", help="do not ask: mend each mistake, and go on")
    parser.add_argument("--restart", action="store_true", help="begin anew; what is there is kept under another name")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Run the command: 0 when a certificate was reached, 1 when not yet, 2 when the folder cannot be used."""
    console = Console(width=None if sys.stdout.isatty() else 110, highlight=False)
    try:
        return Tutorial(options.folder, console, _never if options.auto else _asked).run(options.restart)
    except FileExistsError:
        console.print(f"{options.folder} is a file; it takes a folder", style="red", markup=False)
        return 2
    except OSError as error:
        console.print(f"{error.filename or options.folder}: {told(error)}", style="red", markup=False)
        return 2


def _never(question: str) -> str:
    """Nobody is there to ask: each mistake is to be mended."""
    return "m"


def _asked(question: str) -> str:
    try:
        return input(f"{question}\n> ").strip().lower()
    except EOFError:
        return "q"


class Tutorial:
    """Works in a folder. ask: gives the answer to a question."""

    def __init__(self, folder: Path, console: Console, ask: Callable[[str], str]) -> None:
        self.folder, self.file = folder, folder / "rope.py"
        self.console, self.page, self.ask = console, Page(console), ask

    def run(self, restart: bool = False) -> int:
        """Go on from where the file is, up to a certificate, or up to where the learner stops."""
        self._begin(restart)
        while (failure := self._checked()) is not None:
            if not self._worked_on(failure):
                self._go_on_later("Not yet.")
                return 1
        return self._certify()

    def _begin(self, restart: bool) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.file.exists() and restart:
            kept = next(
                path for number in range(1, 10**6) if not (path := self.folder / f"rope.before-{number}.py").exists()
            )
            self.file.rename(kept)
            self._say(f"What was in {self.file} is now in {kept}.")
        if self.file.exists():
            self._say(f"{self.file} is there: the tutorial goes on with it, as it is.")
            return
        self.file.write_text(BEGINNING, encoding="utf-8")
        self._head("A rotary position embedding, and what is wrong with it")
        self._say(
            f"{self.file} turns queries and keys by their positions. It looks right, and a model that uses it speaks. "
            f"Open it in an editor: there are {len(LESSONS)} mistakes in it, each of which is in real software too."
        )
        self.console.print(Text(f"\n{textwrap.indent(BEGINNING, ' ' * 4)}", "dim"), soft_wrap=True)

    def _checked(self) -> Failure | None:
        """The first requirement that is not met; a file that cannot be run at all is a failure as well."""
        self._head(f"inferspec certify --impl {_quoted(self.file)}")
        met: list[str] = []

        def tell(id: str, examples: int) -> None:
            met.append(id)
            self.console.print(f"  [green]✓[/] {id}  [dim]{examples} examples[/]")

        try:
            failure = first_failure(self.file.absolute(), tell)
        except AdapterError as error:
            return Failure("", " ".join(str(error).split()), ())
        if failure is None:
            self._say(f"All {len(met)} requirements that the file claims hold.")
        return failure

    def _worked_on(self, failure: Failure) -> bool:
        """Show a failure and have it mended; False when the learner stops."""
        for line in failure.text.splitlines():
            tell = self.page.line if line.lstrip().startswith(COPIED) else self.page.paragraph
            tell(line, style="red")
        lesson = lesson_for(failure.requirement, self._code())
        if lesson:
            number = LESSONS.index(lesson) + 1
            self._head(f"Mistake {number} of {len(LESSONS)}: {lesson.title}")
            self._say(lesson.text)
        if failure.diagnosis:
            self._say(
                "“looks like” is the diagnosis: of all mistakes in the kit's dictionary, those that give exactly these "
                "wrong numbers on every failing example."
            )
        if failure.requirement:
            self._say(f"More about it: inferspec explain {failure.requirement}")
        return self._answered(lesson)

    def _answered(self, lesson: Lesson | None) -> bool:
        while True:
            answer = self.ask(CHOICES)
            if answer in ("h", "hint"):
                self._say(lesson.hint if lesson else "this is a mistake of your own: the failure says what it saw")
            elif answer in ("m", "mend"):
                return self._mended(lesson)
            elif answer in ("", "q", "quit", "stop"):
                return not answer
            else:
                self._say(f"{answer!r} is none of the answers:")

    def _mended(self, lesson: Lesson | None) -> bool:
        """Put the mend in; only where the lines are as the tutorial wrote them."""
        if lesson is None:
            self._say("These lines are not the tutorial's own any more: nothing was changed. Mend them, or --restart.")
            return False
        self.file.write_text(lesson.mended(self._code()), encoding="utf-8", errors="surrogateescape")
        for old, new in lesson.mend:
            for sign, text, style in (("-", old, "red"), ("+", new, "green")):
                for line in text.splitlines():
                    self.console.print(Text(f"  {sign} {line}", style))
        return True

    def _certify(self) -> int:
        self._head("A certificate")
        self._say(
            "That was RoPE alone. A certificate is of a whole run: what is not offered reads not claimed, and what did "
            "not run would make it incomplete."
        )
        kept = self.folder / "certificate.json"
        self._line(f"pytest --pyargs inferspec.conformance --impl {_quoted(self.file)} --certificate {_quoted(kept)}")
        certificate, text = certified(self.file.absolute())
        if certificate is None or certificate["verdict"] != "conformant":
            self.console.print(Text(text[-2000:], "red"))
            self._go_on_later("Not yet: the whole run tries more examples.")
            return 1
        self.console.print(f"  [bold green]verdict: {verdict_text(certificate)}")
        self._say(f"It is in {kept}. What to do with it, and where to go from here:")
        self._line(f"inferspec verify {_quoted(kept)}")
        self._line(f"inferspec report {_quoted(kept)}")
        self._line("inferspec init my_adapter.py      # the same for code of your own")
        return 0

    def _code(self) -> str:
        # A comment that is no UTF-8 is the learner's own affair, and stays.
        return self.file.read_text(encoding="utf-8", errors="surrogateescape")

    def _go_on_later(self, why: str) -> None:
        self._say(f"{why} This goes on from here:")
        self._line(f"inferspec tutorial {_quoted(self.folder)}")

    def _head(self, text: str) -> None:
        self.page.heading(f"── {text}")

    def _say(self, text: str) -> None:
        self.page.paragraph(text)

    def _line(self, text: str) -> None:
        self.page.line(text, 4, "cyan")


def _quoted(path: Path) -> str:
    """A path as a shell takes it."""
    return shlex.quote(str(path))
