"""How the kit takes what generators yield: lazily, one or two of them in turn.

Oracles and the drivers of real subjects share it (`watch`, `duet`); it judges nothing.
"""

from __future__ import annotations

import contextlib
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from inferspec.spec.contract import Arguments

OVERRUN = 2
"""How many ids past the limit a consumer takes, to see an iterator that does not end."""


@dataclass
class Stream(ABC):
    """One generator at work: its ids. request: has `tokens`, `max_tokens` and `eos`."""

    request: Any
    ids: list[Any] = field(default_factory=list, kw_only=True)
    iterator: Iterator[Any] | None = field(default=None, kw_only=True)
    over: bool = field(default=False, kw_only=True)
    early: bool = field(default=False, kw_only=True)
    """Whether the consumer wanted no more of it, at its end or before it."""
    may_fail: bool = field(default=False, kw_only=True)
    """Whether what it raises ends it alone, and the others go on."""

    @abstractmethod
    def turn(self) -> None:
        """What is computed from here on is computed for this request."""

    @abstractmethod
    def arrived(self) -> None:
        """Another id came out."""

    def begin(self, start: Callable[[Any], Iterable[Any]]) -> None:
        self.turn()
        self.iterator = iter(start(self.request))

    def advance(self, until: int | None) -> None:
        """Take one more id, as long as there are any and the consumer wants them."""
        wanted = max(self.request.max_tokens, 0) + OVERRUN if until is None else until
        self.turn()
        if len(self.ids) >= wanted:
            self.over = self.early = True
            return
        assert self.iterator is not None
        try:
            self.ids.append(next(self.iterator))
        except StopIteration:
            self.over = True
            # What is at its end stays there.
            self.ids += itertools.islice(self.iterator, 1)
        else:
            self.arrived()

    def close(self) -> None:
        if (close := getattr(self.iterator, "close", None)) is not None:
            close()

    def let_go(self) -> None:
        """Have an iterator no more that nobody has in hand: who came to the end of the ids, or closed it, may still have it."""
        if self.early and not hasattr(self.iterator, "close"):
            self.iterator = None


def consumed(
    streams: Sequence[Stream], start: Callable[[Any], Iterable[Any]], a: Arguments
) -> Iterator[Sequence[Stream]]:
    """Those that were consumed together, as `a.until` and `a.order` say, when they are over."""
    for together in [streams] if a.order == "turns" else [[stream] for stream in streams]:
        for stream in together:
            with _failing(stream):
                stream.begin(start)
        while running := [stream for stream in together if not stream.over]:
            for stream in running:
                with _failing(stream):
                    stream.advance(a.until if stream is streams[0] else None)
                if a.overwrite and len(stream.ids) == 1:
                    _overwrite(stream.request, a.overwrite)
        yield together


@contextlib.contextmanager
def _failing(stream: Stream) -> Iterator[None]:
    """What a stream raises that may fail is its end."""
    try:
        yield
    except Exception:
        if not stream.may_fail:
            raise
        stream.over = True


def _overwrite(request: Any, what: str) -> None:
    """The caller has another use for its list of ends, or for its tokens."""
    if what == "ends" and isinstance(ends := request.eos, list):
        ends[:] = [token + 1 for token in ends]
    elif isinstance(tokens := request.tokens, list):
        tokens[:] = [*tokens[::-1], 0]
    else:
        with contextlib.suppress(TypeError, ValueError):  # arrays that cannot be changed are safe from their caller
            tokens[...] = 0
