"""Tapes: the bytes that an example is made of, spread evenly over what can be drawn, and made smaller when it fails.

A tape has a byte for each choice of an example's structure (shapes, dtypes, masks …) and at its end a seed for its
data. The tapes of a test are a Latin hypercube: of n examples, every byte falls into each n-th part of its range once,
in an order of its own. n examples then draw every choice of up to n options, each as often as the others; drawn
independently, 20 examples would leave out one of five options in one test of twenty. Source: McKay, Beckman and
Conover, "A Comparison of Three Methods for Selecting Values of Input Variables", Technometrics 21 (1979).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

CHOICES, SEED = 60, 4
"""Bytes of a tape: one for each choice, then the data's seed."""

LENGTH = CHOICES + SEED
SIMPLEST = bytes(LENGTH)
"""The tape that makes the first, simplest of every choice."""

TRIES = 300
"""Smaller tapes that are tried at most: each is a call of the subject, and of the oracle."""


def spread(examples: int, parts: int, seed: int) -> Iterator[bytes]:
    """Yield the tapes of a test, `parts` of them joined for each example: the simplest, then a Latin hypercube."""
    yield SIMPLEST * parts
    if examples < 2:
        return
    random = np.random.default_rng(seed)
    rows = np.broadcast_to(np.arange(examples - 1), (LENGTH * parts, examples - 1))
    places = random.permuted(rows, axis=1) + random.random(rows.shape)
    yield from map(bytes, np.ascontiguousarray((places * (256 / (examples - 1))).astype(np.uint8).T))


def split(tape: bytes) -> list[bytes]:
    """The parts of a tape that `spread` joined."""
    return [tape[i : i + LENGTH] for i in range(0, len(tape), LENGTH)]


def shrink(run: Callable[[bytes], None], tape: bytes, tries: int = TRIES) -> None:
    """Run smaller and smaller tapes that fail in the same way, and raise what the smallest of them raises.

    Returns when the tape does not fail again.
    """
    _Shrinking(run, tape, tries).smallest()


class _Shrinking:
    """A tape that fails, on its way to the simplest choices with which it still does, raised at the same place.

    Choices become the first of theirs, as many at once as can be; what does not is then lowered by halves. A seed becomes
    0 or stays: no data are simpler than others.
    """

    def __init__(self, run: Callable[[bytes], None], tape: bytes, tries: int) -> None:
        self.run, self.tape, self.left = run, tape, tries
        self.error = self._error(tape)
        self._held: set[bytes] = set()
        """Tapes that do not fail so."""

    def smallest(self) -> None:
        """Raise what the smallest tape raises."""
        if self.error is None:
            return
        before = b""
        while before != self.tape and self.left:
            before = self.tape
            self._clear(0, len(self.tape))
            for place in range(len(self.tape)):
                if place % LENGTH < CHOICES:
                    self._lower(place)
        raise self.error

    def _clear(self, start: int, end: int) -> None:
        """Zero what can be of a stretch of the tape, whole or by its halves."""
        if not any(self.tape[start:end]) or self._fails(self.tape[:start] + bytes(end - start) + self.tape[end:]):
            return
        if end - start > 1 and not (start % LENGTH == CHOICES and end - start <= SEED):
            middle = _middle(start, end)
            self._clear(start, middle)
            self._clear(middle, end)

    def _lower(self, place: int) -> None:
        """Lower a choice that cannot be the first."""
        held = 0
        while self.tape[place] - held > 1:
            middle = (held + self.tape[place]) // 2
            if not self._fails(self.tape[:place] + bytes([middle]) + self.tape[place + 1 :]):
                held = middle

    def _fails(self, tape: bytes) -> bool:
        """Whether a smaller tape fails in the same way, and so takes the place of the one there is."""
        if tape in self._held or not self.left:
            return False
        self.left -= 1
        error = self._error(tape)
        if error is None or self.error is None or _origin(error) != _origin(self.error):
            self._held.add(tape)
            return False
        self.tape, self.error = tape, error
        return True

    def _error(self, tape: bytes) -> Exception | None:
        try:
            self.run(tape)
        except Exception as error:
            return error
        return None


def _middle(start: int, end: int) -> int:
    """Where to halve a stretch: between two parts, before a part's seed, or in the middle."""
    if end - start > LENGTH:
        return start + (end - start) // LENGTH // 2 * LENGTH
    return end - SEED if end % LENGTH == 0 else (start + end) // 2


def _origin(error: Exception) -> tuple[object, ...]:
    """By what failures count as the same: their type, the line that raises them, and what is known of them besides."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = (place.tb_frame.f_code.co_filename, place.tb_lineno) if place else ()
    return type(error), getattr(error, "state", ""), getattr(error, "native", False), where
