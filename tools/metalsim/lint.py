"""Misuse of address spaces, which the simulator does not see: g++ knows none of them. clang does, in OpenCL's C++.

Only what clang says of two different address spaces is reported, in Metal's words; what else it minds in MSL is none of its business.
So right code stays silent, and what clang cannot follow goes unreported: Apple's compiler has the last word.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_HEADER = Path(__file__).parent / "opencl" / "metal.h"
_FLAGS = (
    "-x",
    "clcpp",
    "-cl-std=CLC++2021",
    "--target=spir64",
    "-fsyntax-only",
    "-w",
    "-ferror-limit=0",
    "-fno-caret-diagnostics",
)

_METALS = {"__global": "device", "__local": "threadgroup", "__private": "thread", "__constant": "constant"}
_DIAGNOSTIC = re.compile(r"(?P<file>.*?):(?P<line>\d+):\d+: (?P<kind>error|note): (?P<text>.*)")
_QUOTED = re.compile(r"'((?:[^'])*)'")
_SPACE = re.compile(r"__(?:global|local|private|constant|generic)\b")
# How clang begins when a pointer or reference becomes another.
_OF_POINTERS = re.compile(
    r"cannot initialize|assigning|returning|passing|binding reference|(?:C-style|static_|reinterpret_)\s?cast from"
)
_NO_MATCH = re.compile(r"no matching (?:member )?function for call to '([^']*)'")
_BETWEEN = re.compile(r"pointer to address space '(\w+)' as a (?:pointer|reference) to address space '(\w+)'")


@dataclass(frozen=True)
class Misuse:
    """A line that takes one address space for another. text: clang's words, with Metal's names."""

    file: str
    line: int
    text: str


def clang() -> str | None:
    """The path of clang++, None where it is not."""
    return shutil.which("clang++")


def lint(expanded: str) -> list[Misuse]:
    """Check a source after preprocessing, with its line markers.

    Raises ``FileNotFoundError`` without clang++.
    """
    path = clang()
    if path is None:
        raise FileNotFoundError("clang++ is not there: the lint of address spaces needs it")
    done = subprocess.run(
        [path, *_FLAGS, "-include", str(_HEADER), "-"],
        input=_without_pragmas(expanded),
        capture_output=True,
        encoding="utf-8",
        errors="replace",
    )
    return list(dict.fromkeys(_misuses(done.stderr)))


def _without_pragmas(text: str) -> str:
    return re.sub(r"^[ \t]*#[ \t]*pragma[^\n]*", "", text, flags=re.MULTILINE)


def _misuses(said: str) -> Iterator[Misuse]:
    for error, notes in _grouped(said):
        call = _NO_MATCH.match(error["text"])
        if call:
            candidates = [note["text"] for note in notes if "candidate" in note["text"]]
            if candidates and all(_mixes_spaces(text) for text in candidates):
                reason = candidates[0].partition(": ")[2] or candidates[0]
                yield Misuse(error["file"], int(error["line"]), _in_metal(f"call of {call[1]}: {reason}"))
        elif _OF_POINTERS.match(error["text"]) and _mixes_spaces(error["text"]):
            yield Misuse(error["file"], int(error["line"]), _in_metal(error["text"]))


def _grouped(said: str) -> Iterator[tuple[re.Match[str], list[re.Match[str]]]]:
    """Errors, each with the notes that follow it."""
    error: re.Match[str] | None = None
    notes: list[re.Match[str]] = []
    for line in said.splitlines():
        match = _DIAGNOSTIC.match(line)
        if not match:
            continue
        if match["kind"] == "note":
            notes.append(match)
            continue
        if error:
            yield error, notes
        error, notes = match, []
    if error:
        yield error, notes


def _mixes_spaces(text: str) -> bool:
    """Whether it speaks of two different spaces: of what two pointers or references lead to."""
    if between := _BETWEEN.search(text):
        return between[1] != between[2] and "__generic" not in between.groups()
    spaces = [_space_of(quoted) for quoted in _QUOTED.findall(text)]
    known = {space for space in spaces if space}
    return len(known) > 1 and "__generic" not in known


def _space_of(type_name: str) -> str | None:
    """The space of what a type's outermost pointer leads to; of a type that is no pointer, its own."""
    head, star, _ = type_name.rpartition("*")
    found = _SPACE.findall(head if star else type_name)
    return found[-1] if found else None


def _in_metal(text: str) -> str:
    text = re.sub(r"\s*\*\s*__private\b", " *", text)  # a variable's own space says nothing
    return re.sub(_SPACE, lambda match: _METALS.get(match[0], match[0]), text)
