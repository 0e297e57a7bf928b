"""What a worker is asked to do, as data that travels between processes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from inferspec.tools.metalsim import Mode, Schedule

Way = Literal["file", "script", "calls", "tests"]

_CALL = re.compile(r"\s*\w+\s*\(")

_NAMED = {
    "forward": Schedule("forward"),
    "reverse": Schedule("reverse", reduction="backward", groups="reverse"),
    "random": Schedule("random", seed=1, reduction="halves", groups="random"),
}
SCHEDULES = tuple(_NAMED)


class Unusable(Exception):
    """The target cannot be run as asked; the message says why, in a line."""


@dataclass(frozen=True)
class Job:
    """One run of one target.

    target: a dotted module, a Python file or a `.metal` file. way: of a `.metal` file its launches; or a script, calls of the target's
    functions, its tests. texts: launch lines, calls, or the paths of tests; the script's path. schedule: a name of `schedule`. as_gpu:
    MLX calls a GPU its default device, for code that asks. lint: the address spaces of what is launched are checked too.
    """

    target: str
    way: Way
    texts: tuple[str, ...] = ()
    mode: Mode = Mode.CHECK
    schedule: str = "forward"
    timeout: float = 60.0
    strict: bool = False
    as_gpu: bool = False
    lint: bool = False

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Job:
        plain: dict[str, Any] = json.loads(text)
        return cls(**{**plain, "texts": tuple(plain["texts"]), "mode": Mode(plain["mode"])})


def schedule(name: str) -> Schedule:
    """forward, reverse, random or random:SEED. Raises ``Unusable`` for another name."""
    order, colon, seed = name.partition(":")
    if order not in _NAMED or (colon and not (order == "random" and seed.isdigit())):
        raise Unusable(f"--schedules {name}: the schedules are {', '.join(SCHEDULES)} and random:SEED")
    chosen = _NAMED[order]
    return Schedule("random", int(seed), chosen.reduction, chosen.groups) if colon else chosen


def shapes_for(target: str, shapes: Sequence[str]) -> list[str]:
    """Of launches for several targets those that one can take: calls for Python, launch lines for a `.metal` file."""
    return [text for text in shapes if bool(_CALL.match(text)) != target.endswith(".metal")]


def way_for(
    target: str, shapes: Sequence[str], script: Path | None, tests: Sequence[str] | None
) -> tuple[Way, tuple[str, ...]]:
    """How to run a target, and with which texts. Raises ``Unusable`` for options that exclude each other."""
    given = [
        name for name, value in (("--shapes", shapes), ("--script", script), ("--tests", tests is not None)) if value
    ]
    if len(given) > 1:
        raise Unusable(f"{' and '.join(given)}: a target is run in one way")
    if target.endswith(".metal"):
        if given and given != ["--shapes"]:
            raise Unusable(f"{target}: a .metal file is launched; {given[0]} is for Python modules and files")
        return "file", tuple(shapes)
    if script:
        return "script", (str(script),)
    if shapes:
        return "calls", tuple(shapes)
    is_file = target.endswith(".py")
    if is_file and tests is None and not Path(target).name.startswith("test_"):
        return "script", (target,)
    return "tests", tuple(tests or ())
