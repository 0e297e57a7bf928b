"""Tapes: the bytes that an example is made of, spread evenly over what can be drawn, and made smaller when it fails.

A tape has a byte for each choice of an example's structure (shapes, dtypes, masks …) and at its end a seed for its
data. The tapes of a test are a Latin hypercube: of n examples, every byte falls into each n-th part of its range once,
in an order of its own. n examples then draw every choice of up to n options, each as often as the others; drawn
independently, 20 examples would leave out one of five options in one test of twenty. Source: McKay, Beckman and
Conover, "A Comparison of Three Methods for Selecting Values of Input Variables", Technometrics 21 (1979).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

CHOICES, SEED = 60, 4
"""Bytes of a tape: one for each choice, then the data's seed."""

LENGTH = CHOICES + SEED
SIMPLEST = bytes(LENGTH)
"""The tape that makes the first, simplest of every choice."""

TRIES = 300
"""Smaller tapes that are tried at most: each is a call of the subject, and of the oracle."""

SECONDS = 20.0
"""How long they are tried: a subject may be slow."""


def spread(examples: int, parts: int, seed: int) -> Iterator[bytes]:
    """Yield the tapes of a test, `parts` of them joined for each example: the simplest, then a Latin hypercube. A single one
    is not the simplest, which would show little."""
    if examples > 1:
        yield SIMPLEST * parts
    drawn = max(examples - 1, 1)
    random = np.random.default_rng(seed)
    rows = np.broadcast_to(np.arange(drawn), (LENGTH * parts, drawn))
    places = random.permuted(rows, axis=1) + random.random(rows.shape)
    yield from map(bytes, np.ascontiguousarray((places * (256 / drawn)).astype(np.uint8).T))


def split(tape: bytes) -> list[bytes]:
    """The parts of a tape that `spread` joined."""
    return [tape[i : i + LENGTH] for i in range(0, len(tape), LENGTH)]


def shrink(run: Callable[[bytes], None], tape: bytes, tries: int = TRIES) -> None:
    """Run smaller and smaller tapes that fail in the same way, and raise what the smallest of them raises.

    tries: how many are run at most, for SECONDS. Returns when the tape does not fail again.
    """
    # Here and not above: it costs every process of a run that passes 0.2 s.
    import hypothesis
    from hypothesis import HealthCheck, Phase, strategies
    from hypothesis.database import InMemoryExampleDatabase

    if (first := _raised(run, tape)) is None:
        return
    alike, left, end = {tape: first}, tries, time.monotonic() + SECONDS

    def example(tape: bytes) -> None:
        nonlocal left
        if tape not in alike:
            if not left or time.monotonic() > end:
                return
            left -= 1
            error = _raised(run, tape)
            if error is None or _origin(error) != _origin(first):
                return
            alike[tape] = error
        raise alike[tape]

    settings = hypothesis.settings(
        # What fails is put into the database as a fuzzer would; reading it back comes before making it smaller.
        phases=[Phase.reuse, Phase.shrink],
        database=InMemoryExampleDatabase(),
        deadline=None,
        derandomize=False,
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=hypothesis.Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
    whole = strategies.binary(min_size=len(tape), max_size=len(tape))
    # In this order: a seed takes the database away from the settings that it finds.
    test = settings(hypothesis.seed(0)(hypothesis.given(tape=whole)(example)))
    try:
        test.hypothesis.fuzz_one_input(tape)  # type: ignore[attr-defined]
    except Exception:
        test()


def _raised(run: Callable[[bytes], None], tape: bytes) -> Exception | None:
    try:
        run(tape)
    except Exception as error:
        return error
    return None


def _origin(error: Exception) -> tuple[object, ...]:
    """By what failures count as the same: their type, the line that raises them, and what is known of them besides."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = (place.tb_frame.f_code.co_filename, place.tb_lineno) if place else ()
    return type(error), getattr(error, "state", ""), getattr(error, "native", False), where
