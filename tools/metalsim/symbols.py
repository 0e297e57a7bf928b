"""From program counters to source lines, with the debug information that the compiler left in a library."""

from __future__ import annotations

import functools
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from inferspec.compiler import MAC, UNIT

from .reports import Site

HEADERS = Path(__file__).parent / "include"


def sites(library: Path, counters: Iterable[int]) -> dict[int, Site | None]:
    """The line of each program counter (a call's return address, relative to the library).

    Of code that was inlined: the innermost place that is not in metalsim's own headers. None where it is unknown, or if neither
    addr2line nor atos is there.
    """
    wanted = sorted(set(counters) - {0})
    found = dict(zip(wanted, _look_up(library, tuple(wanted)), strict=True)) if wanted else {}
    return {0: None, **found}


def readable(file: str) -> str:
    """The name that `#line` gave, without the folder that the compiler put before it."""
    return file.removeprefix(f"{UNIT}/")


def is_ours(site: Site) -> bool:
    """Whether it is in metalsim's headers, so that nobody wrote it into a kernel."""
    return site.file.startswith(f"{HEADERS}/")


@functools.lru_cache(maxsize=256)
def _look_up(library: Path, counters: tuple[int, ...]) -> tuple[Site | None, ...]:
    # A return address is the next instruction's, which may be another line's: look one byte before.
    addresses = [hex(counter - 1) for counter in counters]
    if MAC:
        # Of a path cut to its last name nobody could say whether it is one of metalsim's own headers.
        command = ["atos", "-i", "-fullPath", "-o", str(library), "-l", "0x0", *addresses]
    else:
        command = ["addr2line", "-a", "-i", "-e", str(library), *addresses]
    if not shutil.which(command[0]):
        return (None,) * len(counters)
    output = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace").stdout
    frames = _atos_frames(output) if MAC else _addr2line_frames(output)
    return tuple(_innermost(every) for every in frames)


def _addr2line_frames(output: str) -> list[list[Site]]:
    frames: list[list[Site]] = []
    for line in output.splitlines():
        if line.startswith("0x"):
            frames.append([])
            continue
        file, _, number = line.split(" (discriminator")[0].rpartition(":")
        if number.isdecimal() and int(number):
            frames[-1].append(Site(readable(file), int(number)))
    return frames


def _atos_frames(output: str) -> list[list[Site]]:
    # "function (in library) (path:line)", the innermost first, a blank line between addresses; "address (in library)" alone where
    # it knows no more.
    frames: list[list[Site]] = [[]]
    for line in output.splitlines():
        if not line.strip():
            frames.append([])
            continue
        file, _, number = line.rpartition("(")[2].rstrip(")").rpartition(":")
        if number.isdecimal():
            frames[-1].append(Site(readable(file), int(number)))
    return frames


def _innermost(frames: list[Site]) -> Site | None:
    own = [site for site in frames if not is_ours(site)]
    return next(iter(own or frames), None)
