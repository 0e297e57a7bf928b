"""Scaled RoPE: what a config makes of the frequencies of a model that was trained on shorter texts.

Frequencies are radians per position, one for each of D / 2 pairs; the wavelength of one is 2π over it, the positions in
which its pair turns once. A scaling changes frequencies once and for all: also at positions that training had, and whatever
the length of a text. Its fields are those of `rope_scaling`, beside rope_theta, or of `rope_parameters`, where transformers 5
writes both; s is its factor, N its original_max_position_embeddings, the positions of training.

linear: all are divided by s.
llama3: those of wavelengths below N / high_freq_factor stay, those above N / low_freq_factor are divided by s, and between
    them a share goes over: (N / wavelength - low_freq_factor) / (high_freq_factor - low_freq_factor) stays.
yarn: the share that is divided by s rises with the pair, from 0 at the one that turns beta_fast times in N positions, rounded
    down, to 1 at the one that turns beta_slow times, rounded up. Queries and keys are multiplied besides: by attention_factor,
    or 0.1 · ln s + 1, or the ratio of two such numbers for mscale and mscale_all_dim, which count for ln s.

Left open: what original_max_position_embeddings is where a config lacks it, scalings that contradict each other in two places,
a factor below 1, and an mscale without mscale_all_dim.

Sources: Chen et al. 2023 (position interpolation), section 2.3; `apply_scaling` of the reference code of Llama 3.1, llama-models;
Peng et al. 2023 (YaRN), sections 3.2 to 3.4; modeling_rope_utils of transformers, for names and defaults.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from inferspec.spec.contract import Operation
from inferspec.spec.stochastic import Exact

Config = Mapping[str, Any]

PLACES = ("rope_parameters", "rope_scaling")
KEYS = ("rope_type", "type")
"""Names of the kind, of today and of before."""

LENGTH = "original_max_position_embeddings"
NEEDED: Mapping[str, tuple[str, ...]] = {
    "linear": ("factor",),
    "llama3": ("factor", LENGTH, "low_freq_factor", "high_freq_factor"),
    "yarn": ("factor", LENGTH),
}
"""Kind -> the fields that it cannot do without."""

OPTIONAL = ("beta_fast", "beta_slow", "attention_factor", "mscale", "mscale_all_dim")
"""Numbers that yarn may have."""


class ScaledRope(Operation):
    """The steps of a scaled RoPE, for the operations of whole models."""

    # What the config says.

    def rope_type(self, config: Config, place: str, key: str) -> str:
        """What the config says under one of the names of RoPE's kind, of today and of before."""
        return (config.get(place) or {}).get(key) or "default"

    def scaling(self, config: Config) -> Config:
        """The fields of the scaling, its kind under "rope_type"; none of a RoPE that is not scaled."""
        for place in PLACES:
            for key in KEYS:
                if (kind := self.rope_type(config, place, key)) != "default":
                    return {**config[place], "rope_type": kind}
        return {}

    def field(self, scaling: Config, name: str, default: Any = None) -> Any:
        """A field of the scaling; the default where it is not there, or null."""
        value = scaling.get(name)
        return default if value is None else value

    def original(self, scaling: Config, config: Config) -> float:
        """The positions of training."""
        return self.field(scaling, LENGTH)

    def guard_rope(self, config: Config) -> None:
        for place in PLACES:
            for key in KEYS:
                kind = self.rope_type(config, place, key)
                if kind not in ("default", *NEEDED):
                    raise ValueError(f"{key} of {place} is {kind!r}, not one of default, {', '.join(NEEDED)}")
        if scaling := self.scaling(config):
            self.guard_needed(scaling)
            self.guard_numbers(scaling)
            self.guard_bands(scaling)

    def guard_needed(self, scaling: Config) -> None:
        for name in NEEDED[scaling["rope_type"]]:
            if self.field(scaling, name) is None:
                raise ValueError(f"a RoPE of type {scaling['rope_type']} has no {name}")

    def guard_numbers(self, scaling: Config) -> None:
        for name in (*NEEDED[scaling["rope_type"]], *OPTIONAL):
            if (value := self.field(scaling, name)) is not None and not value > 0:
                raise ValueError(f"{name} is {value}, not a positive number")

    def guard_bands(self, scaling: Config) -> None:
        if scaling["rope_type"] != "llama3":
            return
        low, high = self.bands(scaling)
        if not low < high:
            raise ValueError(f"high_freq_factor is {high}, not above low_freq_factor, {low}")

    # The frequencies, R×pairs.

    def rescaled(self, frequencies: np.ndarray, config: Config, m: Exact) -> np.ndarray:
        """Frequencies as the config scales them."""
        scaling = self.scaling(config)
        scale = {"linear": self.linear, "llama3": self.llama3, "yarn": self.yarn}.get(scaling.get("rope_type", ""))
        return frequencies if scale is None else scale(frequencies, scaling, config, m)

    def divided(self, frequencies: np.ndarray, scaling: Config, m: Exact) -> np.ndarray:
        return m.in_float32(frequencies / self.field(scaling, "factor"))

    def linear(self, frequencies: np.ndarray, scaling: Config, config: Config, m: Exact) -> np.ndarray:
        return self.divided(frequencies, scaling, m)

    def llama3(self, frequencies: np.ndarray, scaling: Config, config: Config, m: Exact) -> np.ndarray:
        wavelengths, length = self.wavelengths(frequencies, m), self.original(scaling, config)
        low, high = self.bands(scaling)
        mixed = self.mixed(frequencies, self.kept(wavelengths, length, low, high, m), scaling, m)
        scaled = np.where(wavelengths > length / low, self.divided(frequencies, scaling, m), mixed)
        return np.where(wavelengths < length / high, frequencies, scaled)

    def wavelengths(self, frequencies: np.ndarray, m: Exact) -> np.ndarray:
        return m.in_float32(2 * math.pi / frequencies)

    def bands(self, scaling: Config) -> tuple[float, float]:
        """The wavelengths in the positions of training at which a frequency is low, and from which on it is high."""
        return self.field(scaling, "low_freq_factor"), self.field(scaling, "high_freq_factor")

    def kept(self, wavelengths: np.ndarray, length: float, low: float, high: float, m: Exact) -> np.ndarray:
        """The share of each frequency between the bands that is not divided."""
        turns = m.in_float32(length / wavelengths)
        return m.in_float32(m.in_float32(turns - low) / (high - low))

    def mixed(self, frequencies: np.ndarray, kept: np.ndarray, scaling: Config, m: Exact) -> np.ndarray:
        """Frequencies of which a share is kept and the rest divided."""
        divided = self.divided(frequencies, scaling, m)
        return m.computed(m.in_float32((1 - kept) * divided) + m.in_float32(kept * frequencies))

    def yarn(self, frequencies: np.ndarray, scaling: Config, config: Config, m: Exact) -> np.ndarray:
        pairs = frequencies.shape[-1]
        fast, slow = self.betas(scaling)
        length, theta = self.original(scaling, config), self.theta(config)
        first, last = (self.turning(times, pairs, length, theta) for times in (fast, slow))
        if self.rounds(scaling):
            first, last = math.floor(first), math.ceil(last)
        return self.mixed(frequencies, 1 - self.ramp(pairs, first, last, m), scaling, m)

    def theta(self, config: Config) -> float:
        """The base of RoPE."""
        raise NotImplementedError

    def betas(self, scaling: Config) -> tuple[float, float]:
        """How often the first pair that is divided a little, and the last that is not divided wholly, turn."""
        return self.field(scaling, "beta_fast", 32), self.field(scaling, "beta_slow", 1)

    def turning(self, times: float, pairs: int, length: float, theta: float) -> float:
        """The pair that turns so many times in so many positions."""
        return pairs * math.log(length / (times * 2 * math.pi)) / math.log(theta)

    def rounds(self, scaling: Config) -> bool:
        """Whether the ends of the ramp are whole pairs."""
        return bool(self.field(scaling, "truncate", True))

    def ramp(self, pairs: int, first: float, last: float, m: Exact) -> np.ndarray:
        """The share of each pair that is divided, R×pairs."""
        first, last = max(first, 0), min(last, 2 * pairs - 1)
        # A ramp without a length is a step.
        rise = (last - first) or 0.001
        shares = np.broadcast_to((np.arange(pairs) - first) / rise, (m.runs, pairs))
        return np.clip(m.in_float32(shares), 0, 1)

    # What multiplies queries and keys.

    def attention_factor(self, config: Config) -> float:
        """What cosine and sine are multiplied by: 1 unless RoPE is of kind yarn."""
        scaling = self.scaling(config)
        if scaling.get("rope_type") != "yarn":
            return 1.0
        return self.field(scaling, "attention_factor") or self.temperature(scaling)

    def temperature(self, scaling: Config) -> float:
        """The attention factor that a config does not say."""
        factor = self.field(scaling, "factor")
        over, under = (self.field(scaling, name) for name in ("mscale", "mscale_all_dim"))
        if over and under:
            return self.of_factor(factor, over) / self.of_factor(factor, under)
        return self.of_factor(factor, 1)

    def of_factor(self, factor: float, mscale: float) -> float:
        return 0.1 * mscale * math.log(factor) + 1 if factor > 1 else 1.0
