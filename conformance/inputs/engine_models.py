"""Decoders that serve as toy models: a token that is lost, doubled, foreign or misplaced soon changes the argmax.

Queries and keys are sharp, so that few tokens decide and which ones depends on what they are and where; values and outputs are
large beside the embedding. No two sizes are equal. There are few of them, so that what the oracle made of a prompt can be
remembered.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from inferspec.conformance.inputs.decoder import LLAMA, QWEN3, linears, norms
from inferspec.conformance.strategies import HALF
from inferspec.spec.engine import alone
from inferspec.spec.numerics import f64, round_to

CLEAR = 0.025
"""How far the largest logit lies above the second, at least, in standard deviations of the row. Rounding in float32 moves
logits by some 1e-5 of one."""

SHARP, LARGE, HEAD = 2.5, 2.5, 3.0
"""What queries and keys, values and outputs, and logits are multiplied by."""

APART = 2.0**-10
"""What the last feature adds to the second of two logits that are equal but for that: logits of a few units are not told
apart by it in 16 bits, and in float32 by hundreds of roundings."""

ASKED = 0.5
"""How large the last feature is at least, so that no other rounding decides: it alone tells the two apart, so that in
matrix products of TF32, or with keys and values in half precision, the difference has the same sign and nearly its size."""

NEAR = 0.06
"""How far a near draft's weights are off, as a part of each."""

SIZES: tuple[dict[str, int], ...] = (
    {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 6, "hidden_size": 20, "vocab_size": 61},
    {"num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 8, "hidden_size": 22, "vocab_size": 47},
    {"num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 10, "hidden_size": 18, "vocab_size": 53},
)

TRAINED: tuple[dict[str, int], ...] = (
    {"num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 64, "hidden_size": 20, "vocab_size": 61},
    {"num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 128, "hidden_size": 22, "vocab_size": 47},
)
"""Heads as many and as large as those of trained models."""

LAYERS = 12
"""More layers than a digit counts."""

POSITIONS = 4096
"""As many as prompts of servers take."""

CALM = 0.01
"""What layers add in a model that counts, as a part of what they add in others."""

WIDE, NARROW = 65551, 2**16
"""A vocabulary past what 16 bits hold, and how many ids these hold."""

KINDS = {"qwen3": QWEN3, "llama": LLAMA}

Kind = str
"""A family; behind it, where heads of any size are not claimed, how config and hidden size tell theirs: "llama absent"."""

Model = Mapping[str, Any]
"""`family`, `config` and `weights`."""


def of_heads(family: str, head_dims: Sequence[str]) -> Kind:
    """The models of a family whose heads are as an envelope has them. A Qwen3 always says their size."""
    if "free" in head_dims:
        return family
    return f"{family} {head_dims[0] if family == 'llama' else 'multiple'}"


@functools.cache
def model(
    kind: Kind, which: int, layers: int = 2, salt: int = 0, sizes: int | None = None, vocabulary: int = 0
) -> Model:
    """One of the models; those of another salt have other weights and the same vocabulary. sizes: of which model all
    sizes but the vocabulary's are; vocabulary: another one than the model's own."""
    family, _, heads = kind.partition(" ")
    names = KINDS[family]
    random = np.random.default_rng([which, layers, salt, len(family)])
    config: dict[str, Any] = {
        **(*SIZES, *TRAINED)[which if sizes is None else sizes],
        "vocab_size": vocabulary or SIZES[which]["vocab_size"],
        "model_type": names.model_type,
        "num_hidden_layers": layers,
        "intermediate_size": 14,
        "rms_norm_eps": 1e-6,
        "max_position_embeddings": 512,
        "tie_word_embeddings": False,
        "hidden_act": "silu",
        "rope_theta": 20.0,
    }
    if heads:
        config["hidden_size"] = config["num_attention_heads"] * config["head_dim"]
    weights = {
        f"{name}.weight": random.uniform(0.5, 1.5, size) * (SHARP if name.endswith(("q_norm", "k_norm")) else 1)
        for name, size in norms(config, names).items()
    }
    for name, (outputs, inputs) in linears(config).items():
        weights[f"{name}.weight"] = random.normal(size=(outputs, inputs)) * _amplitude(name, inputs, names.head_norms)
    if heads == "absent":
        del config["head_dim"]
    return {"family": family, "config": config, "weights": {k: x.astype(np.float32) for k, x in weights.items()}}


@functools.cache
def other(kind: Kind, which: int) -> Model:
    """A draft that has nothing but the vocabulary from the model: fewer layers, and heads of another number and size."""
    return model(kind, which, 1, 1, (which + 1) % len(SIZES))


def wide(kind: Kind) -> Model:
    """A small model of a large vocabulary."""
    return model(kind, 2, 1, vocabulary=WIDE)


@functools.cache
def high(kind: Kind) -> Model:
    """A small model that chooses the ids past 16 bits more often than others."""
    of = wide(kind)
    factors = np.where(np.arange(WIDE) < NARROW, np.float32(0.5), np.float32(3))
    return {**of, "weights": {**of["weights"], "lm_head.weight": of["weights"]["lm_head.weight"] * factors[:, None]}}


def trained(kind: Kind, which: int) -> Model:
    """As many layers, and heads as large and as many, as trained models have."""
    return model(kind, which, LAYERS, sizes=len(SIZES) + which)


@functools.cache
def counting(kind: Kind, which: int) -> Model:
    """A model that gives the id after the last one, and then the next: all of hundreds are clear."""
    of = lengthy(kind, which)
    weights = {
        name: x * np.float32(CALM) if name.endswith(("o_proj.weight", "down_proj.weight")) else x
        for name, x in of["weights"].items()
    }
    ids = weights["model.embed_tokens.weight"]
    head = np.roll(ids / np.linalg.norm(ids, axis=1, keepdims=True), 1, axis=0)
    norm = np.ones_like(weights["model.norm.weight"])
    return {**of, "weights": {**weights, "model.norm.weight": norm, "lm_head.weight": head}}


@functools.cache
def repeating(kind: Kind, which: int) -> Model:
    """A model that gives the last id again, and again."""
    of = counting(kind, which)
    return {**of, "weights": {**of["weights"], "lm_head.weight": np.roll(of["weights"]["lm_head.weight"], -1, axis=0)}}


@functools.cache
def paired(kind: Kind, which: int) -> Model:
    """A model whose ids are pairs: the logit of the odd one is that of the even one before it, and `APART` times the last
    feature. The last id of all is alone."""
    of = model(kind, which)
    head = of["weights"]["lm_head.weight"].copy()
    odd = head[1::2]
    odd[:] = head[: 2 * len(odd) : 2]
    head[:, -1], odd[:, -1] = 0, APART
    return {**of, "weights": {**of["weights"], "lm_head.weight": head}}


def lengthy(kind: Kind, which: int) -> Model:
    """A model of one layer for prompts of servers."""
    return of_positions(model(kind, which, 1), POSITIONS)


def twin(kind: Kind, which: int) -> Model:
    """A model of other weights whose config is the same."""
    return model(kind, which, salt=2)


def of_positions(of: Model, positions: int) -> Model:
    """The same model for so many positions."""
    return {**of, "config": {**of["config"], "max_position_embeddings": positions}}


@functools.cache
def near(kind: Kind, which: int) -> Model:
    """A draft that often guesses right: the model, every weight of which is a little off."""
    of, random = model(kind, which), np.random.default_rng(which)
    off = {
        name: (x * random.normal(1, NEAR, x.shape)).astype(np.float32) if x.ndim > 1 else x
        for name, x in of["weights"].items()
    }
    return {**of, "weights": off}


def _amplitude(name: str, inputs: int, head_norms: bool) -> float:
    if name == "model.embed_tokens":
        return 1.0
    if name == "lm_head":
        return HEAD / math.sqrt(inputs)
    factor = LARGE if name.endswith(("v_proj", "o_proj")) else 1.0
    if name.endswith(("q_proj", "k_proj")) and not head_norms:
        factor = SHARP
    return factor / math.sqrt(inputs)


_CLEAR: dict[tuple[int, tuple[int, ...], int], bool] = {}
_CLOSE: dict[tuple[int, tuple[int, ...], int], bool] = {}
"""What was found of prompts: every fault, variant and seed of a run draws the same ones."""


def is_clear(of: Model, prompt: Sequence[int], limit: int) -> bool:
    """Whether no id on a request's way is nearly another. of: one of `model`'s, which are never given up."""
    asked = id(of["weights"]), tuple(prompt), limit
    if asked not in _CLEAR:
        _CLEAR[asked] = all(stands_out(alone(of, prompt, count)[1][-1]) for count in range(1, limit + 1))
    return _CLEAR[asked]


def is_close(of: Model, prompt: Sequence[int], limit: int) -> bool:
    """Whether every id on a request's way is one of a pair that stands out, and other ids would come where the logits were
    rounded to 16 bits, of either kind. of: one of `paired`'s."""
    asked = id(of["weights"]), tuple(prompt), limit
    if asked not in _CLOSE:
        _CLOSE[asked] = all(_is_of_a_pair(alone(of, prompt, count)[1][-1]) for count in range(1, limit + 1)) and all(
            any(f64(round_to(row, dtype)).argmax() != row.argmax() for row in alone(of, prompt, limit)[1])
            for dtype in HALF
        )
    return _CLOSE[asked]


def _is_of_a_pair(row: np.ndarray) -> bool:
    """Whether the two largest logits are a pair's, told apart by what is asked, and clearly above the third."""
    third, second, first = np.argsort(row)[-3:]
    clear = row[second] - row[third] >= CLEAR * row.std()
    return bool(clear and first // 2 == second // 2 and row[first] - row[second] >= ASKED * APART)


def stands_out(row: np.ndarray) -> bool:
    """Whether the largest logit of a row lies clearly above the second."""
    second, first = np.sort(row)[-2:]
    return bool(first - second >= CLEAR * row.std())
