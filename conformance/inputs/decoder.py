"""Tiny decoders with random weights, and calls of them: what the inputs of Llama and Qwen3 share.

No two sizes of a model are equal, every weight is drawn by itself, norms have factors of both signs, and activations
are small enough beside eps that it matters: a mistake in any of them shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.envelope import Envelope, meet, narrow
from inferspec.conformance.inputs.rope_scaling import scaled_rope, under_a_key
from inferspec.conformance.strategies import Calls, Pick
from inferspec.conformance.tapes import LENGTH
from inferspec.spec.numerics import numpy_dtype, round_to
from inferspec.spec.quantization import GROUP_SIZES
from inferspec.spec.transformer import BLOCK_LINEARS, BLOCK_NORMS, HEAD_NORMS

THETAS = (500.0, 10.5, 12345.5, 1e6)
"""Bases of RoPE, none the default."""

EPS, LARGE_EPS = (1e-5, 1e-2, 1e-6), (0.1, 1e-2)
"""What norms add inside the root: as models have it, and so much that it shows in every norm and dtype."""

AMPLITUDES = (0.05, 0.3, 1.0)
"""Of the embedding: beside the larger eps the smaller ones are small."""

THROUGHOUT = "4-bit throughout"
"""Every linear layer and the embedding packed: no size but is a multiple of the group size."""

QKV = "qkv"
"""Biases as a Qwen2 has them: those of queries, keys and values, and zeros for the output."""

OVERRIDES: tuple[Any, ...] = (
    {"group_size": 32, "bits": 8},
    {"group_size": 32, "bits": 2},
    {"group_size": 64, "bits": 4},
    False,
)
"""What a config may say of single layers; False leaves one dense."""


class Models(Calls):
    """Calls of models that are dense or packed in 4 bits, where a test asks for no other ones and the subject has these."""

    def within(self, envelope: Mapping[str, Any]) -> Callable[[bytes], Any]:
        plain = meet(envelope["packing"], PLAINLY_PACKED)
        if plain and "packing" not in self.asked:
            envelope = {**envelope, "packing": plain}
        return super().within(envelope)

    def narrowed(self, envelope: Mapping[str, Any]) -> dict[str, Any]:
        """Single layers may have any group size that a subject has, whichever the model is asked with."""
        return {**super().narrowed(envelope), "override_sizes": envelope["group_sizes"]}


@dataclass(frozen=True)
class Kind:
    """What tells the two models apart. name: of the operation; model_type: as a config has it."""

    name: str
    model_type: str
    head_norms: bool

    @property
    def incremental(self) -> str:
        """The operation that feeds chunks."""
        return f"{self.name}.incremental"


LLAMA = Kind("Llama", "llama", False)
QWEN3 = Kind("Qwen3", "qwen3", True)

Model = tuple[dict[str, Any], dict[str, np.ndarray]]
"""A config, and the weights by name."""


VOCABULARIES = (17, 13, 23, 31, 61)

USUAL = {"heads": [(1, 1), (2, 2), (3, 3), (2, 1), (4, 2), (6, 2), (3, 1), (8, 1), (10, 2), (16, 8)]}
"""Query heads and key heads that are drawn where a test asks for no other ones."""

SHARED_KEYS = [(8, 2), (9, 3), (16, 4), (32, 8)]
"""Several key heads, each for three or four query heads, or three of them, as larger models have them."""

TRAINED = {"dims": (128, 64), "heads": [(4, 1), (2, 2), (8, 1), (4, 2)], "vocabularies": (61, 1031)}
"""Heads as large as those of trained models, grouped as most have them or not, and more ids than kernels have threads."""

COARSE_TURNS: dict[str, Any] = {
    "dtypes": ["bfloat16"],
    "packing": ["dense"],
    "heads": [(1, 1)],
    "dims": (4,),
    "lengths": (320,),
    "batches": (1,),
    "layers": (1,),
    "small": True,
}
"""Models and prompts that show whether the second frequency of two was rounded to bfloat16."""

PLAINLY_PACKED = ("dense", "4-bit", THROUGHOUT)
"""How models are packed where a test asks for no other: what few have is a matter of the requirements that are about it."""

DENSE = ["dense", THROUGHOUT]
PACKED = ["4-bit", "8-bit", "2-bit", "mixed", THROUGHOUT]
"""What calls that are of no kind of weights, or of packed ones, ask of an envelope."""

OTHER_BITS = ("8-bit", "2-bit", "mixed")
"""How models are packed that not all who take 4 bits take."""

AS_MOST_ARE_PACKED = {"packing": ["4-bit", "8-bit"], "group_sizes": [64, 128]}

LARGE_VOCABULARIES = (151_943, 300, 65543)
"""Past the ends of narrow integers."""


Choices = Mapping[str, Sequence[Any]]


def optional(source: Calls, **choices: Sequence[Any]) -> dict[str, dict[Any, Callable[[Envelope], Call]]]:
    """Choices of keys that may be refused, each with what makes a call of an envelope that asks for it and for nothing else that is
    rare."""
    return {
        key: {one: partial(plainest, source, choices, {key: [one]}) for one in some} for key, some in choices.items()
    }


def plainest(source: Calls, choices: Choices, asked: Choices, envelope: Envelope) -> Call:
    """The plainest call of an envelope with what is asked for, and none of the other choices that may be refused."""
    common = {name: tuple(one for one in envelope[name] if one not in some) for name, some in choices.items()}
    left = {**envelope, **{name: some for name, some in common.items() if some and name not in asked}}
    return source.build(Pick(bytes(LENGTH), source.narrowed(narrow(left, asked))), layers=(1,))


def model(
    pick: Pick,
    kind: Kind,
    layers: Sequence[int] = (2, 1, 3),
    small: bool = False,
    vocabularies: Sequence[int] = VOCABULARIES,
    eps: Sequence[float] = EPS,
    dims: Sequence[int] = (),
) -> Model:
    """Any tiny model of the envelope. small: of few features, for long prompts; dims: other sizes of its heads."""
    dtype, packing = pick("dtypes"), _packed(pick, kind)
    group = pick("group_sizes") if packing != "dense" else 0
    sizes = _sizes(pick, kind, group, small, packing == THROUGHOUT, vocabularies, dims)
    config = sizes | {
        "model_type": kind.model_type,
        "num_hidden_layers": pick.one_of(*layers),
        "rms_norm_eps": pick.one_of(*eps),
        "max_position_embeddings": 512,
        "tie_word_embeddings": pick("tied"),
        "hidden_act": "silu",
        **_biases(pick),
        **_rope(pick, head_dim(sizes)),
    }
    if packing != "dense":
        bits = 4 if packing == "mixed" else int(packing.split("-")[0])
        config["quantization"] = {"group_size": group, "bits": bits}
    return config, _weights(pick, kind, config, dtype, mixed=packing == "mixed")


def _or_else(pick: Pick, key: str, common: str, rare: str) -> str:
    """One of the choices of a key, the rare one in the place of some of the common ones: it asks little that they do not."""
    pick.features[key] = pick.one_of(*[choice for choice in pick.envelope[key] if choice != rare] or [rare])
    if pick.features[key] == common and rare in pick.envelope[key] and pick.seed % 4 == 0:
        pick.features[key] = rare
    return str(pick.features[key])


def _packed(pick: Pick, kind: Kind) -> str:
    """How a model is packed. Where a dense one is as good as one that is packed throughout, it is dense: that is quicker."""
    packing: str = pick("packing") if kind.head_norms else _or_else(pick, "packing", "4-bit", THROUGHOUT)
    if set(pick.envelope["packing"]) == {"dense", THROUGHOUT}:
        pick.features["packing"] = packing = "dense"
    return packing


def _sizes(
    pick: Pick,
    kind: Kind,
    group: int,
    small: bool,
    throughout: bool = False,
    vocabularies: Sequence[int] = VOCABULARIES,
    dims: Sequence[int] = (),
) -> dict[str, Any]:
    queries, keys = pick("heads")
    dim = pick.one_of(*(dims or ((4, 6) if small else (8, 4, 16, 6, 32))))
    if throughout:
        dim = math.lcm(queries, group) // queries
    taken = {queries * dim, keys * dim, dim, queries, keys}
    style = pick("head_dims") if "head_dims" in pick.envelope else "free"
    absent = style == "absent"
    wide = tuple(range(group, 129, group)) if group else (12, 16) if small else (24, 20, 28, 36, 52)
    packed = (group, 2 * group, 3 * group)
    if throughout:
        wide = packed
    if style == "multiple":
        step = math.lcm(queries, group or 1)
        wide = tuple(step * times for times in (range(1, 3) if group else (3, 5, 7)))
    hidden = queries * dim if absent else _unlike(pick, taken, wide)
    inners = (max(192 // group, 1) * group, 44) if group else (10, 14, 22, 30, 56)
    inner = _unlike(pick, taken | {hidden}, packed if throughout else inners)
    vocabulary = _unlike(pick, taken | {hidden, inner}, vocabularies)
    sizes = {
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_attention_heads": queries,
        "num_key_value_heads": keys,
        "vocab_size": vocabulary,
    }
    return sizes if absent else sizes | {"head_dim": dim}


def _unlike(pick: Pick, taken: set[int], sizes: Sequence[int]) -> int:
    return pick.one_of(*([size for size in sizes if size not in taken] or sizes))


def _biases(pick: Pick) -> dict[str, bool]:
    if "biases" not in pick.envelope:
        return {}
    which = _or_else(pick, "biases", "attention", QKV)
    return {"attention_bias": which in ("attention", "both", QKV), "mlp_bias": which in ("mlp", "both")}


def _rope(pick: Pick, dim: int) -> dict[str, Any]:
    style = pick("rope")
    kinds = pick.envelope.get("thetas", ("fractional", "whole"))
    theta = pick.one_of(*(theta for theta in THETAS if _kind_of(theta) in kinds))
    pick.features["thetas"] = _kind_of(theta)
    scaling = scaled_rope(pick, theta, dim)
    if scaling and style == "rope_theta":
        return {style: theta, "rope_scaling": under_a_key(pick, scaling)}
    return _based(theta, style, scaling)


def _based(theta: float, style: str, scaling: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """What a config says of the base of RoPE, at the one place or the other, and beside the latter of its scaling."""
    return {style: {"rope_type": "default", **scaling, "rope_theta": theta} if style == "rope_parameters" else theta}


def _kind_of(theta: float) -> str:
    return "whole" if theta.is_integer() else "fractional"


def head_dim(config: Mapping[str, Any]) -> int:
    """The head dim of a config that need not say it."""
    return config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]


def linears(config: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """The linear layers and the embedding: name -> outputs, inputs."""
    hidden, inner, dim = config["hidden_size"], config["intermediate_size"], head_dim(config)
    queries, keys = config["num_attention_heads"] * dim, config["num_key_value_heads"] * dim
    rows = (queries, keys, keys, hidden, inner, inner, hidden)
    columns = (hidden, hidden, hidden, queries, hidden, hidden, inner)
    found = {"model.embed_tokens": (config["vocab_size"], hidden)}
    if not config["tie_word_embeddings"]:
        found["lm_head"] = (config["vocab_size"], hidden)
    for layer in range(config["num_hidden_layers"]):
        for name, outputs, inputs in zip(BLOCK_LINEARS, rows, columns, strict=True):
            found[f"model.layers.{layer}.{name}"] = (outputs, inputs)
    return found


def norms(config: Mapping[str, Any], kind: Kind) -> dict[str, int]:
    """The norms: name -> features."""
    found = {"model.norm": config["hidden_size"]}
    for layer in range(config["num_hidden_layers"]):
        found |= {f"model.layers.{layer}.{name}": config["hidden_size"] for name in BLOCK_NORMS}
        if kind.head_norms:
            found |= {f"model.layers.{layer}.{name}": head_dim(config) for name in HEAD_NORMS}
    return found


def _weights(pick: Pick, kind: Kind, config: dict[str, Any], dtype: str, mixed: bool) -> dict[str, np.ndarray]:
    embedding, sharp = pick.one_of(*AMPLITUDES), pick.one_of(1.5, 1.0)
    found = {f"{name}.weight": factors(pick, size, dtype) for name, size in norms(config, kind).items()}
    for name, (outputs, inputs) in linears(config).items():
        queried = name.endswith(("q_proj", "k_proj"))
        amplitude = embedding if name == "model.embed_tokens" else (sharp if queried else 1.2) / math.sqrt(inputs)
        packing = _packing(pick, config, name, inputs, mixed)
        found |= tensors(pick, name, (outputs, inputs), amplitude, dtype, packing)
        biased = config.get("attention_bias" if ".self_attn." in name else "mlp_bias")
        if name.startswith("model.layers.") and biased:
            found[f"{name}.bias"] = pick.normal(outputs, dtype=dtype, amplitude=0.5)
            if name.endswith("o_proj") and pick.features["biases"] == QKV:
                found[f"{name}.bias"] = np.zeros_like(found[f"{name}.bias"])
    return found


def _packing(pick: Pick, config: dict[str, Any], name: str, inputs: int, mixed: bool) -> tuple[int, int] | None:
    """Group size and bits of a layer, or None for a dense one; writes an override into the config."""
    if "quantization" not in config:
        return None
    entry = config["quantization"]
    if mixed and pick.random.random() < 0.5:
        override = OVERRIDES[pick.random.integers(len(OVERRIDES))]
        if override and override["group_size"] not in pick.envelope.get("override_sizes", GROUP_SIZES):
            override = {**override, "group_size": entry["group_size"]}
        if not override or inputs % override["group_size"] == 0:
            entry[name] = override
            return (override["group_size"], override["bits"]) if override else None
    return None if inputs % entry["group_size"] else (entry["group_size"], entry["bits"])


def tensors(
    pick: Pick, name: str, shape: tuple[int, int], amplitude: float, dtype: str, packing: tuple[int, int] | None
) -> dict[str, np.ndarray]:
    """The weight of a layer, dense or packed, of that standard deviation; scales have both signs."""
    outputs, inputs = shape
    if packing is None:
        return {f"{name}.weight": pick.normal(outputs, inputs, dtype=dtype, amplitude=amplitude)}
    group, bits = packing
    levels, grid = 2**bits - 1, (outputs, inputs // group)
    scales = factors(pick, grid, "float32") * amplitude * math.sqrt(12) / levels
    biases = -scales * levels * pick.random.uniform(0.4, 0.6, grid)
    return {
        f"{name}.weight": pick.random.integers(0, 2**32, (outputs, inputs * bits // 32), np.uint32),
        f"{name}.scales": scales.astype(numpy_dtype(dtype)),
        f"{name}.biases": biases.astype(np.float32).astype(numpy_dtype(dtype)),
    }


def factors(pick: Pick, size: Any, dtype: str) -> np.ndarray:
    """Numbers of both signs and of size 0.5 to 1.5, none of them 1."""
    values = pick.random.uniform(0.5, 1.5, size) * (2 * pick.random.integers(0, 2, size) - 1)
    return values.astype(np.float32).astype(numpy_dtype(dtype))


def ids(pick: Pick, config: Mapping[str, Any], *shape: int) -> np.ndarray:
    """Random tokens, the last id among them. Where each sequence has one token, the first of them alone has that id: they
    would be all alike."""
    tokens = pick.random.integers(0, config["vocab_size"], shape).astype(pick("token_dtypes"))
    place = pick.random.integers(shape[-1])
    tokens[slice(None) if shape[-1] > 1 else slice(1), place] = config["vocab_size"] - 1
    return tokens


def forward(
    pick: Pick,
    kind: Kind,
    batches: Sequence[int] = (1, 2, 3),
    lengths: Sequence[int] = (5, 1, 2, 3, 4, 7, 9),
    layers: Sequence[int] = (2, 1, 3),
    small: bool = False,
    vocabularies: Sequence[int] = VOCABULARIES,
    eps: Sequence[float] = EPS,
    dims: Sequence[int] = (),
) -> Call:
    """A prompt of a tiny model."""
    config, weights = model(pick, kind, layers, small, vocabularies, eps, dims)
    tokens = ids(pick, config, pick.one_of(*batches), pick.upto("length", *lengths))
    return pick.call(kind.name, config=config, weights=weights, tokens=tokens)


def spare_headed(pick: Pick, kind: Kind) -> Call:
    """A tied model whose weights have a head as well, which is not the embedding: packed where the model's layers are."""
    call = forward(pick, kind)
    config = call.arguments["config"]
    shape = linears(config)["model.embed_tokens"]
    packing = _packing(pick, config, "lm_head", shape[1], mixed=False)
    spare = tensors(pick, "lm_head", shape, 1.0, call.features["dtypes"], packing)
    return call.having(weights={**call.arguments["weights"], **spare})


Cut = Callable[[Pick, int], list[int]]
"""Cuts a length into the lengths of chunks."""


def anywhere(pick: Pick, length: int) -> list[int]:
    """Any composition, the whole at once and single tokens too."""
    style = pick.one_of("any", "any", "singles", "whole")
    cuts = pick.random.random(length - 1) < {"any": 0.4, "singles": 1.0, "whole": 0.0}[style]
    return np.diff([0, *(np.flatnonzero(cuts) + 1), length]).tolist()


def prompt_then_singles(pick: Pick, length: int) -> list[int]:
    """A prompt of several tokens where there are so many, then one token after the other."""
    prompt = pick.size(1, max(length - 1, 1))
    return [prompt, *[1] * (length - prompt)]


def several_at_once(pick: Pick, length: int) -> list[int]:
    """Chunks of two tokens and more, after others."""
    first = pick.size(1, max(length - 2, 1))
    rest = length - first
    return [first, rest] if rest < 4 else [first, rest - 2, 2]


def as_served(pick: Pick, length: int) -> list[int]:
    """A prompt, a chunk of several tokens after it, and two single tokens."""
    chunk = pick.one_of(8, 33, 9)
    return [length - chunk - 2, chunk, 1, 1]


def as_tiles(pick: Pick, length: int) -> list[int]:
    """A chunk of as many tokens as a tile has, after others, and a single token."""
    tile = pick.one_of(32, 16, 64)
    return [length - tile - 1, tile, 1]


def past_256(pick: Pick, length: int) -> list[int]:
    """A long prompt that ends just before 256, what goes past it, and a single token far from there."""
    first = pick.one_of(254, 255, 256, 200)
    second = pick.one_of(1, 3, 2)
    rest = length - first - second - 1
    return [first, second, 1, rest - 1, 1]


def hundreds_after_a_few(pick: Pick, length: int) -> list[int]:
    """A few tokens, a chunk of hundreds, and a single one."""
    first = pick.one_of(3, 40, 1)
    return [first, length - first - 1, 1]


def past_1024(pick: Pick, length: int) -> list[int]:
    """A prompt that ends just before 1024 or there, a few tokens that go past it, and single ones."""
    first = pick.one_of(1023, 1024, 1022)
    return [first, length - first - 2, 1, 1]


def incremental(
    pick: Pick,
    kind: Kind,
    cut: Cut = anywhere,
    batches: Sequence[int] = (1, 2),
    lengths: Sequence[int] = (6, 4, 5, 8),
    requests: int = 1,
    layers: Sequence[int] = (2, 1, 3),
    small: bool = False,
    vocabularies: Sequence[int] = VOCABULARIES,
    dims: Sequence[int] = (),
) -> Call:
    """Sequences of a tiny model, fed in chunks. requests: how many take turns on it, each with its own cache."""
    config, weights = model(pick, kind, layers, small, vocabularies, dims=dims)
    batch = pick.one_of(*batches)
    queues = []
    for _ in range(requests):
        tokens = ids(pick, config, batch, pick.upto("length", *lengths))
        queues.append(np.split(tokens, np.cumsum(cut(pick, tokens.shape[1]))[:-1], axis=1))
    owners = pick.random.permutation(np.repeat(np.arange(requests), [len(queue) for queue in queues])).tolist()
    chunks = [queues[owner].pop(0) for owner in owners]
    return pick.call(
        kind.incremental, config=config, weights=weights, chunks=chunks, requests=owners if requests > 1 else None
    )


def rewinding(pick: Pick, kind: Kind, batches: Sequence[int] = (1, 2, 3), requests: int = 1) -> Call:
    """Sequences of a tiny model, fed in chunks, some of whose last tokens are dropped after each, or all. requests: how many
    take turns on it, each with its own cache."""
    config, weights = model(pick, kind, (2, 1, 3))
    batch, chunks, owners, rewinds, held = pick.one_of(*batches), [], [], [], [0] * requests
    for number in range(pick.size(3, 5) + 2 * (requests - 1)):
        owner = number if number < requests else int(pick.random.integers(requests))
        owners.append(owner)
        chunks.append(ids(pick, config, batch, pick.one_of(1, 3, 2, 5) + (4 if number < requests else 0)))
        held[owner] += chunks[-1].shape[1]
        rewinds.append(
            0 if number and pick.one_of(True, False, False) else min(held[owner], pick.one_of(1, 3, 2, 4, 20))
        )
        held[owner] -= rewinds[-1]
    for owner in range(requests):
        owners.append(owner)
        chunks.append(ids(pick, config, batch, pick.one_of(1, 3)))
        rewinds.append(0)
    return pick.call(
        kind.incremental,
        config=config,
        weights=weights,
        chunks=chunks,
        requests=owners if requests > 1 else None,
        rewinds=tuple(rewinds),
    )


def low_gates(pick: Pick, kind: Kind) -> Call:
    """One layer whose gates are all far below zero, where SiLU is tiny, and whose up projection makes up for it.

    The embedding is ±1 with +1 in feature 0, attention adds nothing, and feature 0 alone decides the gate.
    """
    call = forward(pick, kind, layers=(1,))
    weights, dtype = dict(call.arguments["weights"]), call.features["dtypes"]
    gate, name = pick.one_of(-13.0, -16.0), "model.layers.0"
    rows, inner = weights["model.embed_tokens.weight"].shape, call.arguments["config"]["intermediate_size"]
    embedding, gates = pick.random.choice([-1.0, 1.0], rows), np.zeros((inner, rows[1]))
    embedding[:, 0], gates[:, 0] = 1.0, gate + pick.random.uniform(-0.3, 0.3, inner)
    up = pick.random.normal(size=gates.shape) / math.sqrt(rows[1]) * min(math.exp(-gate) / -gate, 1e4)
    zeros = [key for key in weights if key.endswith((".bias", "o_proj.weight"))]
    made = {key: np.zeros_like(weights[key]) for key in zeros} | {
        "model.embed_tokens.weight": embedding,
        f"{name}.post_attention_layernorm.weight": np.ones(rows[1]),
        f"{name}.mlp.gate_proj.weight": gates,
        f"{name}.mlp.up_proj.weight": up,
    }
    return call.having(weights={**weights, **{key: round_to(x, dtype) for key, x in made.items()}})


def close_scores(pick: Pick, kind: Kind) -> Call:
    """One layer whose scores are 1024 and a few quarters, exactly: in half precision they would all be alike.

    The embedding is ±1 with +1 in feature 0, norms have factor 1 (a row of ±1 stays what it is), and projections
    pick single features. theta is so large that only the first pair of a head turns, and that one is 0.
    """
    dtype, (queries, keys) = pick("dtypes"), pick("heads")
    dim, hidden, inner, vocabulary = 16, queries * -(-20 // queries), 12, 23
    config = {
        "model_type": kind.model_type,
        "hidden_size": hidden,
        "num_hidden_layers": 1,
        "intermediate_size": inner,
        "num_attention_heads": queries,
        "num_key_value_heads": keys,
        "head_dim": dim,
        "rms_norm_eps": 1e-9,
        "vocab_size": vocabulary,
        "max_position_embeddings": 512,
        "tie_word_embeddings": False,
        "hidden_act": "silu",
        **_based(1e30, "rope_theta" if "rope_theta" in pick.envelope["rope"] else "rope_parameters"),
    }
    # Feature 1 of a head is the same for all tokens and makes 64 · 64 · dim^-0.5 = 1024; the others are 1 or 0.
    gains = np.where(np.arange(dim) % (dim // 2) == 0, 0.0, 1.0)
    gains[1] = 64.0
    embedding = pick.random.choice([-1.0, 1.0], (vocabulary, hidden))
    embedding[:, 0] = 1.0
    name = "model.layers.0"
    weights: dict[str, np.ndarray] = {f"{norm}.weight": np.ones(size) for norm, size in norms(config, kind).items()}
    weights |= {f"{linear}.weight": np.zeros(shape) for linear, shape in linears(config).items()}
    weights["model.embed_tokens.weight"] = embedding
    for part, heads in (("q", queries), ("k", keys), ("v", keys)):
        features = pick.random.integers(1, hidden, (heads, dim))
        features[:, 1] = 0
        own = np.ones(dim) if kind.head_norms or part == "v" else gains
        one_hot = np.eye(hidden)[features] * own[:, None]
        weights[f"{name}.self_attn.{part}_proj.weight"] = one_hot.reshape(heads * dim, hidden)
    if kind.head_norms:
        weights |= {f"{name}.{norm}.weight": gains for norm in HEAD_NORMS}
    weights[f"{name}.self_attn.o_proj.weight"] = pick.random.integers(-8, 9, (hidden, queries * dim))
    weights["lm_head.weight"] = pick.random.normal(size=(vocabulary, hidden))
    cast = {key: np.asarray(x, np.float32).astype(numpy_dtype(dtype)) for key, x in weights.items()}
    return pick.call(kind.name, config=config, weights=cast, tokens=ids(pick, config, 1, pick.one_of(6, 4, 9)))
