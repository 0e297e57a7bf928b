"""Kinds of arguments of the command line: what cannot be used is said before hours of work, and not after them."""

from __future__ import annotations

import argparse
from pathlib import Path


def processes(text: str) -> int:
    """A number of processes."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of processes, 1 or more")
    return int(text)


def written(text: str) -> Path:
    """A file to write."""
    path = Path(text)
    if not text or path.is_dir() or not path.absolute().parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} cannot be written: it takes a file in a folder that is there")
    return path


def page_or_folder(text: str) -> Path:
    """A page to write, or a folder to write one into, which need not be there."""
    path = Path(text)
    place = path.parent if path.suffix == ".html" else path
    nearest = next(one for one in (place.absolute(), *place.absolute().parents) if one.exists())
    if not text or not nearest.is_dir() or (path.suffix == ".html" and path.is_dir()):
        raise argparse.ArgumentTypeError(f"{text!r} cannot be written: it takes a folder, or a file that ends in .html")
    return path
