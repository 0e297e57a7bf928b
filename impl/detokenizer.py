"""Text from ids, as they come."""

from __future__ import annotations

import codecs
from collections.abc import Sequence


class StreamingDetokenizer:
    """Turns ids into text one after the other; half a character waits for the rest of it.

    pieces: the bytes of each id. The texts joined are the decoded bytes of all ids, those that are no UTF-8 replaced
    by U+FFFD.
    """

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = pieces
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, token: int) -> str:
        """Return the text that an id completes, "" if none; ValueError for an id outside the table."""
        if not 0 <= token < len(self._pieces):
            raise ValueError(f"token is {token}; it takes 0 … {len(self._pieces) - 1}")
        return self._decoder.decode(self._pieces[token])

    def finish(self) -> str:
        """Return what still waits: U+FFFD for a cut-off character, else nothing."""
        return self._decoder.decode(b"", final=True)
