"""What a config says of a scaled RoPE, checked, and the frequencies that it makes: for longer texts than a model was trained on.

Frequencies are radians per position, one for each of D/2 pairs, in float64: their errors are multiplied by positions.

Sources: Chen et al. 2023 (linear); `apply_scaling` of the reference code of Llama 3.1; Peng et al. 2023 (YaRN), sections 3.2 to
3.4; transformers' modeling_rope_utils, for names and defaults.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_LENGTH = "original_max_position_embeddings"
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "linear": ("factor",),
    "llama3": ("factor", _LENGTH, "low_freq_factor", "high_freq_factor"),
    "yarn": ("factor", _LENGTH),
}
_OPTIONAL: Mapping[str, tuple[str, ...]] = {
    "yarn": ("beta_fast", "beta_slow", "attention_factor", "mscale", "mscale_all_dim"),
}
KINDS = ("default", *_NEEDED)
"""The types of RoPE that are computed."""


@dataclass(frozen=True)
class RopeScaling:
    """A RoPE of some type. numbers: the fields of its entry that it takes, all positive; truncate: whether the ends of YaRN's
    ramp are whole pairs; divisors: what each pair's frequency is divided by besides, if anything."""

    kind: str = "default"
    numbers: Mapping[str, float] | None = None
    truncate: bool = True
    divisors: tuple[float, ...] = ()

    @classmethod
    def read(cls, entry: Mapping[str, Any], place: str) -> RopeScaling:
        """Check what a config has in `rope_scaling` or `rope_parameters`.

        ValueError or TypeError, naming the field, for types that are not computed, for one that is missing or not positive, for
        bands of llama3 in the wrong order, and for a factor of a type that takes none.
        """
        kind = _kind(entry, place)
        if kind == "default":
            _refuse_factor(entry, place)
            return cls()
        numbers = {name: _positive(entry, name, f"{place}.{name}") for name in _NEEDED[kind]}
        for name in _OPTIONAL.get(kind, ()):
            if entry.get(name) is not None:
                numbers[name] = _positive(entry, name, f"{place}.{name}")
        if kind == "llama3" and numbers["low_freq_factor"] >= numbers["high_freq_factor"]:
            low, high = numbers["low_freq_factor"], numbers["high_freq_factor"]
            raise ValueError(f"{place}.high_freq_factor is {high}; it takes a number above low_freq_factor, {low}")
        truncate = entry.get("truncate")
        if truncate is not None and not isinstance(truncate, bool):
            raise TypeError(f"{place}.truncate is {truncate!r}; it takes true or false")
        return cls(kind, numbers, truncate is not False)

    def frequencies(self, dim: int, theta: float) -> list[float]:
        """Radians per position of each pair of a head of dim features, an even number; ValueError where the divisors are not
        one for each."""
        plain = [theta ** (-i / dim) for i in range(0, dim, 2)]
        if self.divisors and len(self.divisors) != len(plain):
            raise ValueError(f"RoPE has {len(self.divisors)} divisors; it takes one for each of {len(plain)} pairs")
        divisors = self.divisors or (1.0,) * len(plain)
        return [
            f * (kept + (1 - kept) / self._number("factor", 1.0)) / divisor
            for f, kept, divisor in zip(plain, self._kept(plain, theta), divisors, strict=True)
        ]

    def attention_factor(self) -> float:
        """What queries and keys are multiplied by, beside the rotation."""
        if self.kind != "yarn":
            return 1.0
        if given := self._number("attention_factor", 0.0):
            return given
        over, under = self._number("mscale", 0.0), self._number("mscale_all_dim", 0.0)
        return self._temperature(over) / self._temperature(under) if over and under else self._temperature(1.0)

    def longest(self, max_positions: int) -> int:
        """The positions that a model has: more than its config says, where that is what it was trained on."""
        if self.kind == "linear":
            return math.ceil(max_positions * self._number("factor", 1.0))
        if self.kind == "yarn":
            return max(max_positions, math.ceil(self._number(_LENGTH, 0.0) * self._number("factor", 1.0)))
        return max_positions

    def _kept(self, plain: list[float], theta: float) -> list[float]:
        """The share of each frequency that is not divided by the factor."""
        if self.kind == "llama3":
            return [self._kept_in_bands(2 * math.pi / f) for f in plain]
        if self.kind == "yarn":
            return [1 - share for share in self._ramp(len(plain), theta)]
        return [0.0 if self.kind == "linear" else 1.0] * len(plain)

    def _kept_in_bands(self, wavelength: float) -> float:
        low, high = self._number("low_freq_factor", 1.0), self._number("high_freq_factor", 4.0)
        turns = self._number(_LENGTH, 1.0) / wavelength
        return min(max((turns - low) / (high - low), 0.0), 1.0)

    def _ramp(self, pairs: int, theta: float) -> list[float]:
        """YaRN: 0 up to the pair that turns beta_fast times in the positions of training, 1 from that of beta_slow on."""
        first, last = (
            pairs * math.log(self._number(_LENGTH, 1.0) / (self._number(name, default) * 2 * math.pi)) / math.log(theta)
            for name, default in (("beta_fast", 32.0), ("beta_slow", 1.0))
        )
        if self.truncate:
            first, last = math.floor(first), math.ceil(last)
        first, last = max(first, 0), min(last, 2 * pairs - 1)
        rise = (last - first) or 0.001
        return [min(max((pair - first) / rise, 0.0), 1.0) for pair in range(pairs)]

    def _temperature(self, mscale: float) -> float:
        factor = self._number("factor", 1.0)
        return 0.1 * mscale * math.log(factor) + 1 if factor > 1 else 1.0

    def _number(self, name: str, default: float) -> float:
        return (self.numbers or {}).get(name, default)


def _kind(entry: Mapping[str, Any], place: str) -> str:
    """The type of RoPE, which has two names: of today, and of before."""
    given = {name: entry[name] for name in ("rope_type", "type") if entry.get(name) is not None}
    for name, kind in given.items():
        if kind not in KINDS:
            raise ValueError(f"{place}.{name} is {kind!r}; it takes {', '.join(map(repr, KINDS))}")
    if len(set(given.values())) > 1:
        raise ValueError(f"{place} gives two types of RoPE: {', '.join(f'{n} = {k!r}' for n, k in given.items())}")
    return next(iter(given.values()), "default")


def _refuse_factor(entry: Mapping[str, Any], place: str) -> None:
    if entry.get("factor") not in (None, 1):
        raise ValueError(f"{place}.factor is {entry['factor']!r}; without a rope_type it takes 1")


def _positive(entry: Mapping[str, Any], name: str, named: str) -> float:
    value = entry.get(name)
    if value is None:
        raise ValueError(f"config has no {named}")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{named} is {value!r}; it takes a number")
    if not 0 < value < math.inf:
        raise ValueError(f"{named} is {value}; it takes a positive number")
    return float(value)
