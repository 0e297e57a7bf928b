"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/rope_scaling.py`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Change
from inferspec.spec.mistakes import remembers_by
from inferspec.spec.numerics import f64
from inferspec.spec.rope_scaling import KEYS, LENGTH, PLACES, ScaledRope
from inferspec.spec.stochastic import Exact
from inferspec.spec.transformer import Decoder, Memory

Config = Mapping[str, Any]

Turns = tuple[np.ndarray, np.ndarray]


# every kind


def left_as_they_are(kind: str) -> Change:
    return {kind: lambda self, frequencies, scaling, config, m: frequencies}


def all_divided(kind: str) -> Change:
    return {kind: ScaledRope.linear}


def field_as(read: Callable[[str, Any], Any], *names: str) -> Change:
    """What is read in the place of some fields, of a name and of its value, or its default."""

    def field(self: ScaledRope, scaling: Config, name: str, default: Any = None) -> Any:
        value = ScaledRope.field(self, scaling, name, default)
        return read(name, value) if name in names else value

    return {"field": field}


def fields_ignored(*names: str) -> Change:
    def field(self: ScaledRope, scaling: Config, name: str, default: Any = None) -> Any:
        return default if name in names else ScaledRope.field(self, scaling, name, default)

    return {"field": field}


def length_of_the_model(self: ScaledRope, scaling: Config, config: Config) -> float:
    return config["max_position_embeddings"]


def unscaled_where(holds: Callable[[np.ndarray, Config], np.ndarray | bool]) -> Change:
    """Positions of which `holds` is true turn as without a scaling. It takes them, and the scaling."""

    def rotation(self: Decoder, positions: np.ndarray, dim: int, a: Arguments, m: Exact) -> Turns:
        scaling = self.scaling(a.config)
        scaled = Decoder.rotation(self, positions, dim, a, m)
        if not scaling:
            return scaled
        plain = Decoder.rotation(_unscaled(self), positions, dim, a, m)
        where = np.reshape(holds(positions, scaling), (-1, 1))
        cos, sin = (np.where(where, one, other) for one, other in zip(plain, scaled, strict=True))
        return cos, sin

    return {"rotation": rotation}


def ends_with_training(self: Decoder, positions: np.ndarray, dim: int, a: Arguments, m: Exact) -> Turns:
    """A table has as many positions as training had; those past them are the last one."""
    trained = self.scaling(a.config).get(LENGTH)
    return Decoder.rotation(self, np.minimum(positions, trained - 1) if trained else positions, dim, a, m)


def ends_with_the_model(kind: str) -> Change:
    """A table has as many positions as the config says; those past them are the last one, where RoPE is of this kind."""

    def rotation(self: Decoder, positions: np.ndarray, dim: int, a: Arguments, m: Exact) -> Turns:
        if self.scaling(a.config).get("rope_type") == kind:
            positions = np.minimum(positions, a.config["max_position_embeddings"] - 1)
        return Decoder.rotation(self, positions, dim, a, m)

    return {"rotation": rotation}


def _unscaled(self: Decoder) -> Decoder:
    """The same model, whose RoPE knows no scaling."""
    steps = {
        "scaling": lambda self, config: {},
        "rescaled": lambda self, frequencies, config, m: frequencies,
        "rotation": Decoder.rotation,
    }
    plain: Decoder = type("Plain", (type(self),), steps)()
    return plain


def of_the_first_layer(holds: Callable[[Config], bool]) -> Change:
    """The first layer takes the scaling out of a config of which `holds` is true: those after it find none."""

    def attention(
        self: Decoder, x: np.ndarray, layer: int, positions: np.ndarray, memory: Memory, a: Arguments, m: Exact
    ) -> np.ndarray:
        taken = layer > 0 and holds(self.scaling(a.config))
        return Decoder.attention(_unscaled(self) if taken else self, x, layer, positions, memory, a, m)

    return {"attention": attention}


def one_alone(norm: str) -> Change:
    """Queries alone are turned by scaled frequencies, or keys alone."""

    def placed(self: Decoder, x: np.ndarray, name: str, positions: np.ndarray, a: Arguments, m: Exact) -> np.ndarray:
        return Decoder.placed(self if name.endswith(norm) else _unscaled(self), x, name, positions, a, m)

    return {"placed": placed}


def kept_by_base() -> Change:
    """Frequencies are kept by all that a config says but its scaling."""

    def told(config: Config) -> str:
        theta = config.get("rope_theta") or (config.get("rope_parameters") or {}).get("rope_theta")
        return repr([theta, *((key, x) for key, x in sorted(config.items()) if key not in ("rope_theta", *PLACES))])

    return remembers_by("config", told)


def kept_by_kind() -> Change:
    """Frequencies are kept by all that a config says but the numbers of its scaling."""

    def told(config: Config) -> str:
        theta = config.get("rope_theta") or (config.get("rope_parameters") or {}).get("rope_theta")
        kind = ScaledRope().scaling(config).get("rope_type")
        return repr(
            [theta, kind, *((key, x) for key, x in sorted(config.items()) if key not in ("rope_theta", *PLACES))]
        )

    return remembers_by("config", told)


# linear


def multiplied(self: ScaledRope, frequencies: np.ndarray, scaling: Config, m: Exact) -> np.ndarray:
    return frequencies * self.field(scaling, "factor")


def of_a_larger_base(
    self: ScaledRope, frequencies: np.ndarray, scaling: Config, config: Config, m: Exact
) -> np.ndarray:
    pairs = frequencies.shape[-1]
    return frequencies * self.field(scaling, "factor") ** (-np.arange(pairs) / pairs)


def whole_positions(self: Decoder, positions: np.ndarray, dim: int, a: Arguments, m: Exact) -> Turns:
    scaling = self.scaling(a.config)
    if scaling.get("rope_type") == "linear":
        factor = self.field(scaling, "factor")
        positions = np.floor(positions / factor) * factor
    return Decoder.rotation(self, positions, dim, a, m)


# llama3


def bands_exchanged(self: ScaledRope, frequencies: np.ndarray, scaling: Config, config: Config, m: Exact) -> np.ndarray:
    wavelengths, length = self.wavelengths(frequencies, m), self.original(scaling, config)
    low, high = self.bands(scaling)
    right = ScaledRope.llama3(self, frequencies, scaling, config, m)
    scaled = np.where(wavelengths < length / high, self.divided(frequencies, scaling, m), right)
    return np.where(wavelengths > length / low, frequencies, scaled)


def kept_as(share: Callable[[np.ndarray], np.ndarray]) -> Change:
    """What is kept of frequencies between the bands, of the share that is right."""
    return {"kept": lambda self, *a: share(ScaledRope.kept(self, *a))}


def kept_by_wavelength(
    self: ScaledRope, wavelengths: np.ndarray, length: float, low: float, high: float, m: Exact
) -> np.ndarray:
    return (length / low - wavelengths) / (length / low - length / high)


def swapped(step: str) -> Change:
    """Two numbers that a step gives are exchanged."""
    return {step: lambda self, scaling: getattr(ScaledRope, step)(self, scaling)[::-1]}


def mixed_of_divided(self: ScaledRope, frequencies: np.ndarray, kept: np.ndarray, scaling: Config, m: Exact) -> Any:
    return ScaledRope.mixed(self, self.divided(frequencies, scaling, m), kept, scaling, m)


def clipped_nowhere(self: ScaledRope, frequencies: np.ndarray, scaling: Config, config: Config, m: Exact) -> Any:
    """Every frequency is mixed as those between the bands are."""
    low, high = self.bands(scaling)
    kept = self.kept(self.wavelengths(frequencies, m), self.original(scaling, config), low, high, m)
    return self.mixed(frequencies, kept, scaling, m)


# yarn


def queries_multiplied(self: Decoder, x: np.ndarray, norm: str, positions: np.ndarray, a: Arguments, m: Exact) -> Any:
    placed = Decoder.placed(self, x, norm, positions, a, m)
    return placed / self.attention_factor(a.config) if norm.endswith("k_norm") else placed


def tokens_as_they_are(self: Decoder, positions: np.ndarray, dim: int, a: Arguments, m: Exact) -> Turns:
    """Single tokens are turned, and not multiplied."""
    cos, sin = Decoder.rotation(self, positions, dim, a, m)
    factor = self.attention_factor(a.config) if len(positions) == 1 else 1.0
    return cos / factor, sin / factor


def of_a_larger_base_in_parts(
    self: ScaledRope, frequencies: np.ndarray, scaling: Config, config: Config, m: Exact
) -> np.ndarray:
    """The frequencies that are kept are those of the base that NTK-aware scaling has."""
    pairs = frequencies.shape[-1]
    right = ScaledRope.yarn(self, frequencies, scaling, config, m)
    factor = self.field(scaling, "factor")
    larger = frequencies * factor ** (-np.arange(pairs) / (pairs - 1))
    return right + (larger - frequencies) * (right / frequencies - 1 / factor) / (1 - 1 / factor)


def decimal(self: ScaledRope, factor: float, mscale: float) -> float:
    return 0.1 * mscale * math.log10(factor) + 1 if factor > 1 else 1.0


def of_the_default_base(self: ScaledRope, times: float, pairs: int, length: float, theta: float) -> float:
    return ScaledRope.turning(self, times, pairs, length, 10000.0)


def both_betas(self: ScaledRope, scaling: Config) -> tuple[float, float]:
    told = "beta_fast" in scaling and "beta_slow" in scaling
    return ScaledRope.betas(self, scaling if told else {})


def ramp_of_features(self: ScaledRope, pairs: int, first: float, last: float, m: Exact) -> np.ndarray:
    return ScaledRope.ramp(self, 2 * pairs, first, last, m)[:, ::2]


def ramp_within_pairs(self: ScaledRope, pairs: int, first: float, last: float, m: Exact) -> np.ndarray:
    return ScaledRope.ramp(self, pairs, first, min(last, pairs - 1), m)


def ramp_without_an_end(self: ScaledRope, pairs: int, first: float, last: float, m: Exact) -> np.ndarray:
    """It may end past the last feature, where it never comes to 1."""
    shares = np.broadcast_to((np.arange(pairs) - max(first, 0)) / ((last - max(first, 0)) or 0.001), (m.runs, pairs))
    return np.clip(m.in_float32(shares), 0, 1)


def ramp_from_before(self: ScaledRope, pairs: int, first: float, last: float, m: Exact) -> np.ndarray:
    shares = (np.arange(pairs) - first) / (last - first)
    return np.broadcast_to(np.clip(shares, 0, 1), (m.runs, pairs))


def factor_of_lengths(self: ScaledRope, config: Config) -> Config:
    scaling = ScaledRope.scaling(self, config)
    if scaling.get("rope_type") != "yarn":
        return scaling
    return {**scaling, "factor": max(config["max_position_embeddings"] / scaling[LENGTH], 1.0)}


def temperature_of(read: Callable[[ScaledRope, float, Any, Any], float]) -> Change:
    """The attention factor of a factor, an mscale and an mscale_all_dim, None where a config does not say them."""

    def temperature(self: ScaledRope, scaling: Config) -> float:
        return read(self, *(self.field(scaling, name) for name in ("factor", "mscale", "mscale_all_dim")))

    return {"temperature": temperature}


def attention_factor_besides(self: ScaledRope, config: Config) -> float:
    """An attention_factor multiplies what is computed, in the place of replacing it."""
    scaling = self.scaling(config)
    if scaling.get("rope_type") != "yarn":
        return 1.0
    return self.temperature(scaling) * self.field(scaling, "attention_factor", 1.0)


def attention_factor_as_mscale(self: ScaledRope, config: Config) -> float:
    """An attention_factor goes through the logarithm that makes one."""
    scaling = self.scaling(config)
    said = self.field(scaling, "attention_factor") if scaling.get("rope_type") == "yarn" else None
    return self.of_factor(self.field(scaling, "factor"), said) if said else ScaledRope.attention_factor(self, config)


def divided_by_a_power(self: ScaledRope, frequencies: np.ndarray, kept: np.ndarray, scaling: Config, m: Exact) -> Any:
    """The factor multiplies the base of RoPE: of each pair what is divided is divided by another power of it."""
    pairs = frequencies.shape[-1]
    divided = frequencies / self.field(scaling, "factor") ** (np.arange(pairs) / pairs)
    return m.in_float32((1 - kept) * divided + kept * frequencies)


# where the config says it


def scaling_of(*places: str, keys: tuple[str, ...] = KEYS) -> Change:
    """The scaling is looked for in some places alone, or under some names of its kind there."""

    def scaling(self: ScaledRope, config: Config) -> Config:
        for place in places:
            for key in keys if place == "rope_scaling" else KEYS:
                if (kind := self.rope_type(config, place, key)) != "default":
                    return {**config[place], "rope_type": kind}
        return {}

    return {"scaling": scaling}


def of_every_place(self: Decoder, frequencies: np.ndarray, config: Config, m: Exact) -> np.ndarray:
    """Frequencies are scaled by what rope_parameters says, and then by what rope_scaling says."""
    for place in PLACES:
        alone = type("Alone", (type(self),), {**scaling_of(place), "rescaled": ScaledRope.rescaled})()
        frequencies = alone.rescaled(frequencies, config, m)
    return frequencies


def of_the_first_place(self: ScaledRope, config: Config) -> Config:
    kept = {key: x for key, x in config.items() if key != "rope_parameters" or "rope_scaling" not in config}
    return ScaledRope.scaling(self, kept)


def base_of_unscaled(self: Decoder, config: Config) -> float:
    return 10000.0 if self.scaling(config) else Decoder.theta(self, config)


def unscaled_with_a_point(self: ScaledRope, config: Config) -> Config:
    scaling = ScaledRope.scaling(self, config)
    return {} if isinstance(scaling.get(LENGTH), float) else scaling


def guarded_too(refused: Callable[[Config, Config], str]) -> Change:
    """What is refused besides: why, of the config and its scaling; nothing where it is taken."""

    def guard_rope(self: ScaledRope, config: Config) -> None:
        ScaledRope.guard_rope(self, config)
        if reason := refused(config, self.scaling(config)):
            raise ValueError(reason)

    return {"guard_rope": guard_rope}


def unnamed(check: str) -> Change:
    """The refusal does not say which field it is about."""

    def guard(self: ScaledRope, scaling: Config) -> None:
        try:
            getattr(ScaledRope, check)(self, scaling)
        except ValueError as error:
            raise ValueError("this RoPE cannot be scaled") from error

    return {check: guard}


def assumed(fields: Config) -> Change:
    """Fields that are not there have numbers of their own."""

    def field(self: ScaledRope, scaling: Config, name: str, default: Any = None) -> Any:
        return ScaledRope.field(self, scaling, name, fields.get(name, default))

    return {"field": field}


# other honest ways


def scaled_in_float32(self: Decoder, frequencies: np.ndarray, config: Config, m: Exact) -> np.ndarray:
    """As mlx-lm does: of wavelengths over 2π, in float32."""
    if not self.scaling(config):
        return frequencies
    one = np.float32(1)
    steps = {"divided": _divided_in_float32, "mixed": _mixed_in_float32, "rescaled": ScaledRope.rescaled}
    single = type("Single", (type(self),), steps)()
    lengths = one / frequencies.astype(np.float32)
    return f64(single.rescaled(one / lengths, config, m))


def _divided_in_float32(self: ScaledRope, frequencies: np.ndarray, scaling: Config, m: Exact) -> np.ndarray:
    return np.float32(1) / (np.float32(self.field(scaling, "factor")) * (np.float32(1) / frequencies))


def _mixed_in_float32(
    self: ScaledRope, frequencies: np.ndarray, kept: np.ndarray, scaling: Config, m: Exact
) -> np.ndarray:
    one, kept = np.float32(1), kept.astype(np.float32)
    near = one / frequencies
    far = np.float32(self.field(scaling, "factor")) * near
    return one / (near * far / (far * kept + near * (one - kept)))


def in_the_scale() -> Change:
    """Yarn's factor multiplies the products of queries and keys, squared, in the place of both."""

    def rotation(self: Decoder, positions: np.ndarray, dim: int, a: Arguments, m: Exact) -> Turns:
        plain = type(
            "Plain", (type(self),), {"attention_factor": lambda self, config: 1.0, "rotation": Decoder.rotation}
        )
        return Decoder.rotation(plain(), positions, dim, a, m)

    def scale(self: Decoder, config: Config) -> float:
        return Decoder.scale(self, config) * self.attention_factor(config) ** 2

    return {"rotation": rotation, "scale": scale}
