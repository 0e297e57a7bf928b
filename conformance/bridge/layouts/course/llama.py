"""The Qwen2 of older editions, `Qwen2ModelWeek1` and that of week 2 or 3: a Llama with biases for queries, keys and values.

It is built of a model as mlx-lm loads it, in float16, packed in groups of 64; a head's size is what the heads share out.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from inferspec.conformance.bridge.layouts import Offer
from inferspec.conformance.bridge.layouts.course.qwen3 import incremental, loaded, whole
from inferspec.conformance.bridge.layouts.packages import Package

ASKED: dict[str, Any] = {
    "thetas": ("whole",),
    "dtypes": ("float16",),
    "packing": ("4-bit throughout",),
    "group_sizes": (64,),
    "head_dims": ("absent",),
    "biases": ("none", "qkv"),
}
WEEK_1 = {"Qwen2ModelWeek1": "qwen2_week1"}
LATER = {"Qwen2ModelWeek2": "qwen2_week2", "Qwen2ModelWeek3": "qwen2_week3"}


def _loaded(config: Mapping[str, Any], weights: Mapping[str, Any]) -> SimpleNamespace:
    """As the course gets a Qwen2, which has three biases always and never a fourth: here that one is all zeros."""
    import mlx.core as mx

    weights = dict(weights)
    for block in (f"model.layers.{number}.self_attn" for number in range(config["num_hidden_layers"])):
        if config.get("attention_bias"):
            *_, fourth = (weights[f"{block}.{part}.bias"] for part in ("q_proj", "k_proj", "v_proj", "o_proj"))
            if fourth.shape != (config["hidden_size"],) or mx.any(fourth):
                raise ValueError(f"{block}.o_proj.bias is not {config['hidden_size']} zeros; a Qwen2 has no such bias")
            del weights[f"{block}.o_proj.bias"]
            continue
        for part in ("q_proj", "k_proj", "v_proj"):
            rows = weights[f"{block}.{part}.scales"]
            weights[f"{block}.{part}.bias"] = mx.zeros(rows.shape[:1], rows.dtype)
    return loaded(config, weights)


def _llama(package: Package) -> Offer:
    own = package.find(*WEEK_1, home=tuple(WEEK_1.values()), needs=("__init__", "__call__"))
    return Offer(whole(own, _loaded), ASKED)


def _incremental(package: Package) -> Offer:
    own = package.find(*LATER, home=tuple(LATER.values()), needs=("__init__", "__call__"))
    return Offer(incremental(package, own, _loaded), ASKED)


OFFERS = {"Llama": _llama, "Llama.incremental": _incremental}
