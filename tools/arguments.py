"""Kinds of arguments of the command line: what cannot be used is said before hours of work, and not after them."""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from inferspec.conformance.bridge.did_you_mean import meant
from inferspec.spec import COMPONENTS

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


UNKNOWN_CHOICE = re.compile(r"invalid choice: '(?P<given>.*)' \(choose from (?P<choices>.*)\)$")
"""How argparse tells of a command, or of an option's value, that is not among those that there are."""


class Parser(argparse.ArgumentParser):
    """A parser that the options know, as `parser`: an error is told with the usage of the command that was given."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.set_defaults(parser=self)

    def error(self, message: str) -> NoReturn:
        """End the process with the usage and the message, and of a choice that is not there with what may have been meant."""
        if found := UNKNOWN_CHOICE.search(message):
            message += meant(found["given"], re.findall(r"[\w.-]+", found["choices"]))
        super().error(message)

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Print the help; OSError where that fails, which argparse keeps to itself."""
        (file or sys.stdout).write(self.format_help())


def processes(text: str) -> int:
    """A number of processes."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of processes, 1 or more")
    return int(text)


def whole(least: int) -> Callable[[str], int]:
    """A whole number of `least` or more."""

    def kind(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None
        if value < least:
            raise argparse.ArgumentTypeError(f"it is {value}; it takes {least} or more")
        return value

    return kind


def letters(text: str) -> str:
    """A text that can be shown: bytes that are none stand as lone surrogates in what a shell hands on."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError("it is not text in utf-8") from None
    return text


def number(takes: str, fits: Callable[[float], bool]) -> Callable[[str], float]:
    """A finite number that fits; takes: which ones do, in words."""

    def kind(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is no number") from None
        if not (math.isfinite(value) and fits(value)):
            raise argparse.ArgumentTypeError(f"it is {text}; it takes {takes}")
        return value

    return kind


seconds = number("seconds, more than 0", lambda x: x > 0)
_temperature = number("a number from 0 on", lambda x: x >= 0)
_share = number("a number above 0 and up to 1", lambda x: 0 < x <= 1)


def add_sampling(parser: argparse.ArgumentParser) -> None:
    """Add what says how tokens are chosen."""
    parser.add_argument("--temperature", type=_temperature, metavar="T", help="0: the likeliest token (default)")
    parser.add_argument("--top-k", type=whole(-1), metavar="K", help="sample from the K likeliest tokens")
    parser.add_argument("--top-p", type=_share, metavar="P", help="sample from the likeliest of mass P")
    parser.add_argument("--seed", type=whole(0), metavar="N", help="makes sampling repeatable")


@dataclass(frozen=True)
class Sampling:
    """How tokens are chosen. temperature 0: the likeliest; seed: of the draws, None for one that nobody knows."""

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float = 1.0
    seed: int | None = None


def sampling(options: argparse.Namespace) -> Sampling:
    """What `add_sampling`'s options ask for; ValueError for those that take a temperature, where none is given."""
    if options.temperature is None:
        for option in ("top_k", "top_p", "seed"):
            if (value := getattr(options, option)) is not None:
                raise ValueError(
                    f"--{option.replace('_', '-')} {value}: it takes --temperature; without one the likeliest token is taken"
                )
    top_p = 1.0 if options.top_p is None else options.top_p
    return Sampling(options.temperature or 0.0, options.top_k, top_p, options.seed)


def written(text: str) -> Path:
    """A file to write."""
    path = Path(text)
    if not text:
        raise argparse.ArgumentTypeError("it is empty; it takes a file")
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{text} cannot be written: it is a folder; it takes a file")
    if not path.absolute().parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text} cannot be written: there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"{text} cannot be written: you may not write there")
    return path


def page_or_folder(text: str) -> Path:
    """A page to write, or a folder to write one into, which need not be there."""
    path = Path(text)
    place = path.parent if path.suffix == ".html" else path
    nearest = next(one for one in (place.absolute(), *place.absolute().parents) if one.exists())
    if not text or not nearest.is_dir() or (path.suffix == ".html" and path.is_dir()):
        raise argparse.ArgumentTypeError(f"{text!r} cannot be written: it takes a folder, or a file that ends in .html")
    page = page_of(path)
    if not all(os.access(one if one.exists() else nearest, os.W_OK) for one in (page, page.with_suffix(".json"))):
        raise argparse.ArgumentTypeError(f"{text} cannot be written: you may not write there")
    return path


def page_of(place: Path) -> Path:
    """The page that a folder, or its own name, stands for; its JSON lies beside it."""
    return place if place.suffix == ".html" else place / "faults.html"


def no_component(option: str, names: Iterable[str]) -> str:
    """What to say of the first of these names that is no component's; "" when all are."""
    unknown = [name for name in names if name not in COMPONENTS]
    if not unknown:
        return ""
    return f"{option} {unknown[0]}: the components are {', '.join(COMPONENTS)}{meant(unknown[0], COMPONENTS)}"
