"""What is made of files that ask for scaled RoPE: see `spec/faults/loading_scaling.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from inferspec.spec.changes import rope_scaling
from inferspec.spec.contract import Arguments
from inferspec.spec.loading import ROPE_FACTORS, Config, Load, Weights
from inferspec.spec.rope_scaling import LENGTH, PLACES
from inferspec.spec.transformer import Decoder

Understood = tuple[Config, Weights]


def unscaled(*forms: str) -> Callable[..., Config]:
    def configured(self: Load, config: Config, a: Arguments) -> Config:
        return {key: x for key, x in config.items() if key != "rope_scaling"} if a.form in forms else config

    return configured


def without(*keys: str) -> Callable[..., Config]:
    """These keys of a GGUF file, which have no kind beside them, are not read."""

    def rope_as_scaled(self: Load, config: Config) -> Config:
        kept = {
            key: x for key, x in config.items() if key not in keys or (key == "rope_scaling" and "type" in (x or {}))
        }
        return Load.rope_as_scaled(self, kept)

    return rope_as_scaled


def kind_of_rope_parameters_ignored(self: Load, config: Config, a: Arguments) -> Config:
    said = config.get("rope_parameters")
    return {**config, "rope_parameters": {"rope_theta": said.get("rope_theta")}} if said else config


def kind_ignored(kind: str) -> Callable[..., Config]:
    """Of this kind of scaling of a folder nothing is read but the base."""

    def configured(self: Load, config: Config, a: Arguments) -> Config:
        for place in PLACES:
            said = config.get(place) or {}
            if _kind_of(said) == kind:
                config = {**config, place: {key: said[key] for key in ("rope_theta",) if key in said}}
        return config

    return configured


def without_rope_factors(self: Load, config: Config, weights: Weights) -> Understood:
    return config, {name: x for name, x in weights.items() if name != ROPE_FACTORS}


def refuses_scaled(form: str) -> Callable[..., None]:
    """RoPE that is scaled is refused in files of this form."""

    def guard_files(self: Load, a: Arguments) -> None:
        Load.guard_files(self, a)
        gguf = ROPE_FACTORS in a.weights or "rope_scale_linear" in a.config
        if a.form == form and (gguf or any(_kind_of(a.config.get(place) or {}) != "default" for place in PLACES)):
            raise ValueError("RoPE is scaled")

    return guard_files


def _kind_of(said: Mapping[str, Any]) -> str:
    return said.get("rope_type") or said.get("type") or ("linear" if "factor" in said else "default")


def taken_for_linear(kind: str) -> Callable[..., Config]:
    """Of this kind of scaling of a folder no more than the factor is read."""

    def configured(self: Load, config: Config, a: Arguments) -> Config:
        for place in PLACES:
            said = config.get(place) or {}
            if _kind_of(said) == kind and a.form != "gguf":
                kept = {key: said[key] for key in ("factor", "rope_theta") if key in said}
                config = {**config, place: {**kept, "rope_type": "linear"}}
        return config

    return configured


def trained_on_all_positions(self: Load, config: Config, a: Arguments) -> Config:
    """The positions of training are taken to be those that the model has."""
    for place in PLACES:
        if a.form != "gguf" and LENGTH in (said := config.get(place) or {}):
            config = {**config, place: {**said, LENGTH: config["max_position_embeddings"]}}
    return config


def whole_length_needed(self: Load, config: Config, a: Arguments) -> Config:
    if a.form != "gguf" and any(isinstance((config.get(place) or {}).get(LENGTH), float) for place in PLACES):
        raise ValueError(f"{LENGTH} is no int")
    return config


def scaling_of_gguf(change: Callable[[Config, Config], Config]) -> Callable[..., Config]:
    """What a GGUF file says of its scaling, changed before it is read."""

    def rope_as_scaled(self: Load, config: Config) -> Config:
        found = Load.rope_as_scaled(self, config)
        return {**found, "rope_scaling": change(found["rope_scaling"], config)} if "rope_scaling" in found else found

    return rope_as_scaled


def inverse_factor(scaling: Config, config: Config) -> Config:
    return {**scaling, "factor": 1 / scaling["factor"]}


def linear_whatever_it_is(scaling: Config, config: Config) -> Config:
    return {"type": "linear", "factor": scaling["factor"]}


def trained_on_the_context(scaling: Config, config: Config) -> Config:
    return {**scaling, LENGTH: config["max_position_embeddings"]} if LENGTH in scaling else scaling


def multiplied_by_factors(self: Load, stored: np.ndarray) -> list[float]:
    return [1 / factor for factor in Load.factors(self, stored)]


def factors_from_the_last(self: Load, stored: np.ndarray) -> list[float]:
    return Load.factors(self, stored)[::-1]


def of_the_first_layer(holds: Callable[[Config], bool]) -> Callable[..., Decoder]:
    """The first layer alone of a model whose config fulfils `holds` has the scaling."""

    def decoder(self: Load, config: Config) -> Decoder:
        model = Load.decoder(self, config)
        steps = rope_scaling.of_the_first_layer(lambda scaling: holds(config))
        changed: Decoder = type("First", (type(model),), dict(steps))()
        return changed

    return decoder


def inverted_in_float32(self: Load, stored: np.ndarray) -> list[float]:
    return [float(1 / (np.float32(1) / np.float32(factor))) for factor in stored]


def one_factor(self: Load, stored: np.ndarray) -> list[float]:
    """All are divided by the largest: it is taken for linear scaling."""
    return [max(Load.factors(self, stored))] * len(stored)
