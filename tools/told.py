"""What a reader is told of an error: a short line, whatever was in the file that it is about."""

from __future__ import annotations

import json

LONGEST = 200
"""Characters of it."""


def told(error: Exception) -> str:
    """An error in a line; what it quotes of a file is cut short."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is not text in {error.encoding}"
    if isinstance(error, json.JSONDecodeError):
        return f"it is not JSON: {error}" if error.doc.strip() else "it is empty"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror[0].lower()}{error.strerror[1:]}"
    text = f"it has no {error.args[0]}" if isinstance(error, KeyError) and error.args else str(error)
    return shortened(" ".join(text.split()))


def told_of_file(error: OSError | ValueError) -> str:
    """The same of an error that came of reading a file, with the file's name."""
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename} cannot be read: {told(error)}"
    return str(error)


def shortened(text: str) -> str:
    """Of a long text its beginning."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"
