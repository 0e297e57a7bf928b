"""Memory that a suite and a subject share: large arrays go through it, and not through the socket, which copies them in pieces."""

from __future__ import annotations

import math
import mmap
import os
import tempfile

import numpy as np

LARGE = 1 << 16
"""Bytes from which an array is worth a place."""

ROOM = 1 << 26
"""Bytes of all arrays of a message; what finds no place goes with the message itself. Memory that is not used costs nothing."""

LINE = 64
"""Arrays begin at multiples of so many bytes."""


def create() -> int:
    """A file that is memory alone where the system has such, and its descriptor, for both sides."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("inferspec")
    else:
        with tempfile.TemporaryFile() as temporary:
            file = os.dup(temporary.fileno())
    os.ftruncate(file, ROOM)
    return file


class Arena:
    """The memory of such a file. One side puts the arrays of a message there, the other takes them before the next message."""

    def __init__(self, file: int) -> None:
        self._memory = mmap.mmap(file, ROOM)
        self.used = 0
        """Bytes of the arrays of this message."""

    def clear(self) -> None:
        """Begin a message."""
        self.used = 0

    def put(self, x: np.ndarray) -> int | None:
        """Copy an array there and return its place; None for small ones and where there is no room."""
        place = self.used
        if x.nbytes < LARGE or place + x.nbytes > ROOM:
            return None
        np.ndarray(x.shape, x.dtype, self._memory, place)[...] = x
        self.used = -(-(place + x.nbytes) // LINE) * LINE
        return place

    def take(self, place: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """The array of a place, a copy. ValueError for places outside."""
        if not 0 <= place <= ROOM - math.prod(shape) * dtype.itemsize:
            raise ValueError(f"place is {place}; the arena has {ROOM} bytes")
        return np.ndarray(shape, dtype, self._memory, place).copy()
