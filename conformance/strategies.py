"""What the inputs of all components share: choices inside an envelope, sizes, and sharp data from a seed.

What an example is made of is a tape (`tapes`): every choice reads a byte of it, and shrinking lowers each byte for
itself, to the first and simplest of every choice.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from inferspec.conformance.calls import VIEWS, Call
from inferspec.conformance.envelope import OutsideEnvelope, meet, narrow
from inferspec.conformance.suite import Inputs
from inferspec.conformance.tapes import CHOICES
from inferspec.spec.numerics import numpy_dtype

EDGES = (1, 2, 3, 5, 7, 8, 9, 31, 32, 33, 63, 64, 65, 95, 127, 128, 129, 255, 256, 257)
"""Sizes beside the tile and path thresholds of real kernels (PROPERTIES.md, recurring inputs)."""

ODD_TILES = (48, 49, 80, 81, 96, 97, 112, 113, 160, 192)
"""Sizes beside tiles that are no powers of two: kernels take 24, 48, 80, 96 or 112 rows or keys at once. So few that
FEWEST examples have each of them."""

ONE_SHORT = (31, 63, 95, 127, 47)
"""Sizes that are one short of whole tiles. So few that FEWEST examples have each of them."""

MODEL_WIDTHS = (896, 3584, 768, 3072)
"""Widths that models have and that are no powers of two: the first is whole steps of 128 and no whole ones of 256, the others
likewise of 512, 256 and 1024. Kernels take as many at once."""

HALF = ["float16", "bfloat16"]
"""What models are computed in: kernels are written for it first."""


def in_reach(amplitude: float, dtype: str, most: float) -> float:
    """The amplitude; in float16 no more than `most`. So bfloat16 and float32 get what float16 cannot hold."""
    return min(amplitude, most) if dtype == "float16" else amplitude


class Pick:
    """Makes the choices of one example and remembers its features: ``pick("dtypes")`` is one of the envelope's."""

    def __init__(self, tape: bytes, envelope: Mapping[str, Any]) -> None:
        self.envelope = envelope
        self.features: dict[str, Any] = {}
        self.seed = int.from_bytes(tape[CHOICES:])
        self.random = np.random.default_rng(self.seed)
        self._choices = iter(tape[:CHOICES])

    def __call__(self, key: str) -> Any:
        """One of the choices of an envelope key; OutsideEnvelope where none is left."""
        if not self.envelope[key]:
            raise OutsideEnvelope(f"nothing is left of {key}: what the adapter declares needs what its signature lacks")
        self.features[key] = self.one_of(*self.envelope[key])
        return self.features[key]

    def declared(self, key: str, usual: Any) -> dict[str, Any]:
        """The argument of that name where a subject declares another choice than the usual one; nothing is drawn for it, since
        a subject does the one or the other."""
        if usual in self.envelope[key]:
            return {}
        (self.features[key],) = self.envelope[key]
        return {key: self.features[key]}

    def size(self, low: int, high: int) -> int:
        """A size between low and high, low the simplest."""
        return low + self._choice() * (high - low + 1) // 256

    def one_of(self, *choices: Any) -> Any:
        """Any of the choices, the first one simplest."""
        return choices[self._choice() * len(choices) // 256]

    def _choice(self) -> int:
        """The next byte of the tape."""
        for byte in self._choices:
            return byte
        raise IndexError(f"inputs make more than {CHOICES} choices for one example")

    def upto(self, key: str, *sizes: int) -> int:
        """Any of the sizes that the envelope's largest value allows."""
        return self.one_of(*([size for size in sizes if size <= self.envelope[key]] or [1]))

    def count(self, key: str, *counts: int) -> int:
        """Any of the counts, 0 where the envelope's key has True."""
        count = self.one_of(*([count for count in counts if count or True in self.envelope[key]] or [1]))
        self.features[key] = self.features.get(key, False) or not count
        return count

    def call(self, operation: str, **arguments: Any) -> Call:
        """The call, with what was picked on the way."""
        return Call(operation, arguments, dict(self.features), seed=self.seed)

    def normal(self, *shape: int, dtype: str, amplitude: float = 1.0) -> np.ndarray:
        """Normally distributed values of both signs, rounded to the dtype."""
        values = np.asarray(self.random.standard_normal(shape, np.float32))
        values *= np.float32(amplitude)
        return values.astype(numpy_dtype(dtype), copy=False)

    def integers(self, low: int, high: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        """Whole numbers from low to high inclusive, exact in the dtype."""
        values = self.random.integers(low, high + 1, shape).astype(np.float32)
        return values.astype(numpy_dtype(dtype), copy=False)


class Calls(Inputs):
    """The calls that `build` makes of what it picks; calling it narrows what may be picked.

    >>> rope_calls(forms=["traditional"], offsets=["int"])
    """

    def __init__(
        self,
        build: Callable[..., Any],
        asked: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        preferred: Mapping[str, Any] | None = None,
        yielding: Collection[str] = (),
    ) -> None:
        """preferred: choices of envelope keys that are drawn where a subject claims any of them; of who claims others alone,
        those are asked. yielding: keys of which what tests ask for is preferred so, and no more."""
        self._build, self._asked, self._options = build, dict(asked or {}), dict(options or {})
        self._preferred = {key: values for key, values in (preferred or {}).items() if key not in self._asked}
        self._yielding = frozenset(yielding)
        self.__doc__ = build.__doc__

    def __call__(self, **asked: Any) -> Calls:
        """Narrow envelope keys (lists of choices, or a largest value that the subject must reach) or set options of
        the builder (any other name)."""
        known = _options_of(self._build)
        options = {k: v for k, v in asked.items() if k in known}
        keys = {k: v for k, v in asked.items() if k not in known}
        asked, options = {**self._asked, **keys}, {**self._options, **options}
        return type(self)(self._build, asked, options, self._preferred, self._yielding)

    def strict(self) -> Calls:
        """The same calls, of which no key yields: of sizes with which others than are asked for would be too large."""
        return type(self)(self._build, self._asked, self._options, self._preferred)

    @property
    def asked(self) -> Mapping[str, Any]:
        """The envelope keys that are narrowed, and to what."""
        return self._asked

    @property
    def insisted(self) -> Sequence[str]:
        """The keys that are narrowed and do not yield."""
        return [key for key in self._asked if key not in self._yielding]

    def narrowed(self, envelope: Mapping[str, Any]) -> dict[str, Any]:
        """What may be picked of an envelope; OutsideEnvelope when nothing is left of a key."""
        strict = {key: self._asked[key] for key in self.insisted}
        wanted = {**self._preferred, **self._asked}
        claimed = {key: values for key, values in wanted.items() if meet(envelope[key], values)}
        return narrow(envelope, {**claimed, **strict})

    def build(self, pick: Pick, **options: Any) -> Any:
        """Make one call of what `pick` draws; options given here go before the narrowed ones."""
        return self._build(pick, **{**self._options, **options})

    def rebuilt(self, build: Callable[..., Any]) -> Calls:
        """The same narrowing with another builder."""
        return type(self)(build, self._asked, preferred=self._preferred, yielding=self._yielding)

    def within(self, envelope: Mapping[str, Any]) -> Callable[[bytes], Any]:
        """What makes the input of a tape, inside an envelope; OutsideEnvelope when nothing is left."""
        narrowed = self.narrowed(envelope)
        return lambda tape: self.build(Pick(tape, narrowed))


@functools.cache
def _options_of(build: Callable[..., Any]) -> frozenset[str]:
    """The options of a builder, which is narrowed hundreds of times."""
    return frozenset(inspect.signature(build).parameters) - {"pick"}


def calls(build: Callable[..., Any]) -> Calls:
    """Make a function of a `Pick` the inputs of tests."""
    return Calls(build)


def among(choices: Iterable[Any]) -> Calls:
    """Any of the choices, the first one simplest."""
    options = tuple(choices)
    return Calls(lambda pick: pick.one_of(*options))


def any_of(*sizes: Callable[..., Any]) -> Callable[..., Any]:
    """Sizes as any of these draw them, the first one simplest."""
    return lambda pick, *given: pick.one_of(*sizes)(pick, *given)


@calls
def fractions(pick: Pick) -> float:
    """Numbers from 0 to 1, without 1."""
    return pick.seed / 2**32


@calls
def seeds(pick: Pick) -> int:
    """Numbers that data can be drawn from."""
    return pick.seed


MOSTLY_SLICES = ("slice", "slice", "slice", *VIEWS)
"""Parts of larger buffers, nearly as often as all other views together: what lies beside a row is NaN there."""


WIDE_VIEWS = ("slice", "transpose", "stride")
"""Views for calls whose sizes vary as well: part of a larger buffer, another order of the axes, gaps between the elements."""


OF_ROWS = ("block_table",)
"""Arguments that may have the same row again and again, and no row the same entry: one that names a page twice may be refused."""


def in_views(source: Calls, *arguments: str, views: Sequence[str] = VIEWS) -> Calls:
    """The calls of `source` with one array argument (any of `arguments`, if named) laid out as one of the views."""

    def build(pick: Pick, **options: Any) -> Call:
        # First: choices that have a byte of their own in every tape are spread evenly.
        view = pick.one_of(*views)
        call = source.build(pick, **options)
        names = [name for name, x in call.arrays().items() if x.ndim and (not arguments or name in arguments)]
        if not names:
            return call
        name = pick.one_of(*names)
        if pick.one_of(False, False, True) and view != "broadcast":
            # All of them alike, as the keys and values of a cache are.
            for other in names:
                call = call.viewing(other, view)
            return call
        if view == "broadcast":
            axes = 1 if name in OF_ROWS else None
            call = call.having(**{name: constant_along(call.arguments[name], pick, axes)})
        return call.viewing(name, view)

    return source.rebuilt(build)


def in_views_of_each(source: Calls, *arguments: str) -> Calls:
    """The calls of `source` with each of these arrays laid out as a view of its own, which may be another than the one before."""
    views = [view for view in VIEWS if view != "broadcast"]

    def build(pick: Pick, **options: Any) -> Call:
        ways = [pick.one_of(*views) for _ in arguments]
        call = source.build(pick, **options)
        for name, view in zip(arguments, ways, strict=True):
            call = call.viewing(name, view)
        return call

    return source.rebuilt(build)


def one_token_each(call: Call, name: str = "x") -> Call:
    """The call with each row of an argument in a batch of its own, as when many sequences decode a token each."""
    x = call.arguments[name]
    return call.having(**{name: x.reshape(-1, 1, x.shape[-1])})


def one_batch_repeated(call: Call, name: str = "x") -> Call:
    """The call with the first batch of an argument in the place of all, repeated without a copy."""
    x = call.arguments[name]
    return call.having(**{name: np.repeat(x[:1], len(x), 0)}).viewing(name, "broadcast")


def bottom_up(call: Call, *names: str) -> Call:
    """The call with the rows of some arguments backwards in memory."""
    for name in names:
        call = call.viewing(name, "bottom-up")
    return call


def constant_along(x: np.ndarray, pick: Pick, axes: int | None = None) -> np.ndarray:
    """x with every entry of one axis equal to its first, so that a stride-0 view can stand for it. axes: of the first so many,
    all by default."""
    axis = pick.one_of(*range(x.ndim)[:axes])
    return np.repeat(np.take(x, [0], axis), x.shape[axis], axis) if x.shape[axis] else x
