"""What a config says of a scaled RoPE: so that among a head's pairs some are kept, some divided, and some between the two.

Models are small and positions near, so the positions of training are few: a pair whose wavelength is near is the first
between the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from inferspec.conformance.strategies import Pick

DEFAULT = "default"
UNSCALED: Sequence[str] = [DEFAULT]
"""What of the envelope's rope_types the tests of all else draw."""

TYPES: Sequence[str] = ["linear", "llama3", "yarn"]
"""Those that are scaled."""

SCALED: Mapping[str, Any] = {
    "rope_types": TYPES,
    "packing": ["dense"],
    "lengths": (24, 17, 33),
    "batches": (1, 2),
    "layers": (1,),
    "small": True,
    "dims": (16, 8, 32),
    "heads": [(2, 1), (3, 3), (4, 2), (2, 2), (3, 1)],
}
"""Calls of scaled models: positions far enough, and pairs enough, for every branch to show."""

FACTORS = (8.0, 4, 2.5, 32.0, 1.5, 16)
BANDS = ((1.0, 4.0), (1, 2), (2.0, 6.0), (0.5, 3.0))
"""low_freq_factor and high_freq_factor."""

BETAS = ((), (4.0, 1.0), (16, 2), (8.0, 0.5))
"""beta_fast and beta_slow, where a config says them."""

NEAREST = 9.0
"""The shortest wavelength of a pair that is between the bounds."""

WHOLE = 0.02
"""As near to a whole pair an end of yarn's ramp does not come: float32 might round it to the other side."""


def scaled_rope(pick: Pick, theta: float, dim: int) -> dict[str, Any]:
    """The fields of one of the envelope's types; none of the default's, which alone is no choice."""
    types = pick.envelope.get("rope_types", UNSCALED)
    if list(types) == UNSCALED:
        pick.features["rope_types"] = DEFAULT
        return {}
    kind = pick("rope_types")
    if kind == DEFAULT:
        return {}
    between = _between(pick, theta, dim)
    fields = {"linear": _linear, "llama3": _llama3, "yarn": _yarn}[kind](pick, theta, dim, between)
    return {"rope_type": kind, "factor": pick.one_of(*FACTORS), **fields}


def scaled_in_gguf(pick: Pick, kind: str, theta: float, dim: int) -> dict[str, Any]:
    """What a GGUF file says of a scaled RoPE, as its keys under rope.scaling and the older one: linear, which need not be
    said, or yarn."""
    factor = float(pick.one_of(*FACTORS))
    if kind == "linear":
        said: tuple[dict[str, Any], ...] = (
            {"rope_scaling": {"type": kind, "factor": factor}},
            {"rope_scaling": {"factor": factor}},
            {"rope_scale_linear": factor},
        )
        return pick.one_of(*said)
    length = _yarn_length(pick, theta, dim, _between(pick, theta, dim), 32, 1)
    return {"rope_scaling": {"type": kind, "factor": factor, "original_context_length": length}}


def rope_factors(pick: Pick, dim: int) -> np.ndarray:
    """What divides the frequency of each pair, as a Llama 3.1 has it: 1 at first, then more and more, up to a factor."""
    pairs = dim // 2
    first, most = pick.one_of(1, 0, 2), pick.one_of(8.0, 4.0, 32.0)
    # Of the first pairs the angles are large enough to show it.
    return (most ** np.clip((np.arange(pairs) - first + 1) / 2, 0, 1)).astype(np.float32)


def under_a_key(pick: Pick, scaling: Mapping[str, Any]) -> dict[str, Any]:
    """The fields as rope_scaling has them: with the kind under its name of today, of before, or both."""
    keys = pick.one_of(("rope_type",), ("type",), ("type", "rope_type"))
    rest = {key: x for key, x in scaling.items() if key != "rope_type"}
    return {**rest, **dict.fromkeys(keys, scaling["rope_type"])} if scaling else {}


def _between(pick: Pick, theta: float, dim: int) -> int:
    """A pair to be between the bounds: the first whose wavelength is no shorter than the nearest, or the one after it."""
    pairs = dim // 2
    first = math.ceil(math.log(NEAREST / (2 * math.pi)) / math.log(theta) * pairs)
    return max(1, min(first + pick.one_of(0, 1), pairs - 2))


def _wavelength(pair: float, theta: float, dim: int) -> float:
    return 2 * math.pi * theta ** (2 * pair / dim)


def _linear(pick: Pick, theta: float, dim: int, between: int) -> dict[str, Any]:
    return {}


def _llama3(pick: Pick, theta: float, dim: int, between: int) -> dict[str, Any]:
    low, high = pick.one_of(*BANDS)
    turns = low + pick.one_of(0.5, 0.25, 0.75) * (high - low)
    length = round(turns * _wavelength(between, theta, dim))
    return {"low_freq_factor": low, "high_freq_factor": high, "original_max_position_embeddings": length}


def _yarn(pick: Pick, theta: float, dim: int, between: int) -> dict[str, Any]:
    betas = pick.one_of(*BETAS)
    length = _yarn_length(pick, theta, dim, between, *(betas or (32, 1)))
    return {"original_max_position_embeddings": length, **dict(zip(("beta_fast", "beta_slow"), betas, strict=False))}


def _yarn_length(pick: Pick, theta: float, dim: int, between: int, fast: float, slow: float) -> int:
    """Positions of training with which yarn divides some pairs, some by a part, and keeps some if it can. Its ramp ends within dim,
    past which some let it end and others do not: no model of a usual base comes there."""
    most = dim - 1.5 - dim / 2 * math.log(fast / slow) / math.log(theta)
    first = min(pick.one_of(between + 0.4, between + 0.7, 0.6, -0.7), most)
    return beside_no_pair(round(fast * _wavelength(first, theta, dim)), theta, dim, fast, slow)


def beside_no_pair(length: int, theta: float, dim: int, fast: float, slow: float) -> int:
    """So many positions of training, or the next more, with which the ends of yarn's ramp are not near whole pairs."""
    while any(_beside_a_pair(length / times, theta, dim) for times in (fast, slow)):
        length += 1
    return length


def _beside_a_pair(wavelength: float, theta: float, dim: int) -> bool:
    pair = dim / 2 * math.log(wavelength / (2 * math.pi)) / math.log(theta)
    return abs(pair - round(pair)) < WHOLE
