"""Calls of models whose RoPE is scaled, said otherwise: what the tests of Llama and Qwen3 share of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.decoder import head_dim
from inferspec.conformance.inputs.rope_scaling import beside_no_pair
from inferspec.conformance.judging.trial import Trial
from inferspec.conformance.properties.decoder import refuses_naming
from inferspec.conformance.properties.decoder_calls import with_config

PLACES = ("rope_scaling", "rope_parameters")

ATTENTION_FACTORS: Sequence[Mapping[str, Any]] = (
    {"attention_factor": 1.0},
    {"mscale": 1.0, "mscale_all_dim": 1.0},
    {"attention_factor": 0.7},
    {"mscale": 0.8, "mscale_all_dim": 2},
    {"attention_factor": 1.6, "mscale": 1.0, "mscale_all_dim": 0.5},
    {"mscale": 2.5, "mscale_all_dim": 0.5},
)
"""What a config may say of what yarn multiplies queries and keys by."""

BAD_NUMBERS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "linear": ({"factor": 0.0}, {"factor": -2.0}),
    "llama3": (
        {"low_freq_factor": None},
        {"high_freq_factor": None},
        {"factor": -8.0},
        {"low_freq_factor": 0},
        {"original_max_position_embeddings": -64},
        {"low_freq_factor": 4.0, "high_freq_factor": 4.0},
        {"low_freq_factor": 4.0, "high_freq_factor": 1.0},
    ),
    "yarn": ({"factor": 0}, {"original_max_position_embeddings": 0}, {"beta_slow": -1.0}),
}
"""Kind -> fields of which a RoPE cannot be made; None for one that is not there."""


def with_scaling(call: Call, **fields: Any) -> Call:
    """The call with some fields of its scaling replaced; one that is to be None is left out."""
    place, said = _said(call)
    kept = {name: x for name, x in {**said, **fields}.items() if x is not None}
    return with_config(call, **{place: kept})


def with_points(call: Call) -> Call:
    """The call whose scaling has no number without a point: 64.0 positions of training, not 64."""
    place, said = _said(call)
    return with_config(call, **{place: pointed(said)})


def pointed(scaling: Mapping[str, Any]) -> dict[str, Any]:
    """The same scaling, its whole numbers as JSON has them with a point."""
    return {name: float(x) if type(x) is int else x for name, x in scaling.items()}


def said_in_both_places(call: Call) -> Call:
    """The call whose base and scaling are both where transformers 4 writes them and where transformers 5 does."""
    _, said = _said(call)
    theta = _base(call)
    scaling = {name: x for name, x in said.items() if name not in ("rope_theta", "rope_type", "type")}
    kind = {"rope_type": _kind(said)}
    return with_config(
        call,
        rope_theta=theta,
        rope_scaling={**scaling, **kind},
        rope_parameters={**scaling, **kind, "rope_theta": theta},
    )


def with_what_else_is_said(call: Call) -> Call:
    """The call whose config has null where the scaling is not, and a field in the scaling that says nothing of RoPE."""
    place, said = _said(call)
    other = next(other for other in PLACES if other != place)
    return with_config(call, **{place: {**said, "finetuned": True}, other: None})


def with_positions_of_training(call: Call) -> Call:
    """The call whose config has no more positions than training had, as one has to which a scaling was added, and fewer than
    there are tokens."""
    _, said = _said(call)
    longest, trained = call.arguments["tokens"].shape[1], math.ceil(call.arguments["tokens"].shape[1] / said["factor"])
    if "original_max_position_embeddings" not in said:
        return with_config(call, max_position_embeddings=trained)
    trained = max(trained, min(said["original_max_position_embeddings"], longest // 2))
    betas = said.get("beta_fast", 32), said.get("beta_slow", 1)
    trained = beside_no_pair(trained, _base(call), head_dim(call.arguments["config"]), *betas)
    return with_config(with_scaling(call, original_max_position_embeddings=trained), max_position_embeddings=trained)


def with_one_beta(call: Call) -> Call:
    """The call whose yarn has a beta_fast of its own, and does not say beta_slow, with as many positions of training as let its
    ramp begin where it began."""
    _, said = _said(call)
    fast = 4.0
    length = round(said["original_max_position_embeddings"] * fast / said.get("beta_fast", 32))
    length = beside_no_pair(length, _base(call), head_dim(call.arguments["config"]), fast, 1)
    return with_scaling(call, beta_fast=fast, beta_slow=None, original_max_position_embeddings=length)


def with_another_number(call: Call, which: float) -> Call:
    """The call with another of the numbers by which its RoPE is scaled."""
    _, said = _said(call)
    fields = [field for field in ("factor", "low_freq_factor", "high_freq_factor") if field in said]
    field = fields[int(which * len(fields))]
    return with_scaling(call, **{field: said[field] / 2 if field == "low_freq_factor" else said[field] * 2})


def unscaled(call: Call) -> Call:
    """The call of the same model with RoPE as it is without a scaling."""
    place, said = _said(call)
    return with_config(call, **{place: {"rope_type": "default", **_theta(said)}})


def refuses_bad_numbers(subject: Trial, call: Call) -> None:
    """What no RoPE can be made of is refused, with an error that names a field of it."""
    for fields in BAD_NUMBERS[_kind(_said(call)[1])]:
        *_, name = fields
        refuses_naming(subject, with_scaling(call, **fields), name.removeprefix("low_").removeprefix("high_"))


def _said(call: Call) -> tuple[str, Mapping[str, Any]]:
    """Where the config has its scaling, and what it says there."""
    config = call.arguments["config"]
    place = next(place for place in PLACES if config.get(place))
    return place, config[place]


def _base(call: Call) -> float:
    """The base of RoPE."""
    base: float = _said(call)[1].get("rope_theta") or call.arguments["config"]["rope_theta"]
    return base


def _kind(said: Mapping[str, Any]) -> str:
    kind: str = said.get("rope_type") or said["type"]
    return kind


def _theta(said: Mapping[str, Any]) -> dict[str, Any]:
    return {"rope_theta": said["rope_theta"]} if "rope_theta" in said else {}
