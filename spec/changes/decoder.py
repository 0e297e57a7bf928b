"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/decoder.py`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.mistakes import first_of
from inferspec.spec.numerics import f64, is_float, round_to
from inferspec.spec.stochastic import Exact, Matrix
from inferspec.spec.transformer import Decoder, Incremental, Memory

MLX, MLX_LM = "https://github.com/ml-explore/mlx", "https://github.com/ml-explore/mlx-lm"


class Path(NamedTuple):
    """What a kernel of attention is chosen by: queries, keys, features of a head, query heads to a key head, dtype."""

    length: int
    keys: int
    dim: int
    ratio: int
    dtype: str


# the sequence of operations


def norm_dropped(ending: str) -> Change:
    def norm(self: Decoder, x: np.ndarray, name: str, a: Arguments, m: Exact) -> np.ndarray:
        return x if name.endswith(ending) else Decoder.norm(self, x, name, a, m)

    return {"norm": norm}


def norm_weights(replaced: Mapping[str, str]) -> Change:
    """Norms of one place use the weight of another."""

    def norm(self: Decoder, x: np.ndarray, name: str, a: Arguments, m: Exact) -> np.ndarray:
        place = name.rsplit(".", 1)[-1]
        return Decoder.norm(self, x, name.replace(place, replaced.get(place, place)), a, m)

    return {"norm": norm}


def parallel(
    self: Decoder, x: np.ndarray, layer: int, positions: np.ndarray, memory: Memory, a: Arguments, m: Exact
) -> np.ndarray:
    name = f"model.layers.{layer}"
    attended = self.attention(self.norm(x, f"{name}.input_layernorm", a, m), layer, positions, memory, a, m)
    return x + attended + self.mlp(self.norm(x, f"{name}.post_attention_layernorm", a, m), name, a, m)


def in_float16(
    self: Decoder, x: np.ndarray, layer: int, positions: np.ndarray, memory: Memory, a: Arguments, m: Exact
) -> np.ndarray:
    x = Decoder.block(self, x, layer, positions, memory, a, m)
    with np.errstate(over="ignore"):
        return f64(round_to(x, "float16")) if self.result_dtype(a) == "bfloat16" else x


def scaled_embedding(self: Decoder, ids: np.ndarray, a: Arguments, m: Exact) -> np.ndarray:
    return Decoder.embed(self, ids, a, m) * math.sqrt(a.config["hidden_size"])


def own_head(self: Decoder, a: Arguments) -> Matrix:
    matrix = Decoder.head(self, a)
    if not self.tied(a.config):
        return matrix
    value = np.random.default_rng(0).normal(scale=matrix.value.std(), size=matrix.value.shape)
    return Matrix(value, value)


def spare_head(self: Decoder, a: Arguments) -> Matrix:
    return self.matrix("lm_head", a) if "lm_head.weight" in a.weights else Decoder.head(self, a)


def no_spare_head(self: Decoder, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
    if unknown := sorted(set(a.weights) - set(shapes)):
        raise ValueError(f"no place for {unknown[0]}")


def no_packed_spare_head(self: Decoder, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
    spare = {"lm_head.weight"} if self.tied(a.config) else set()
    if unknown := sorted(set(a.weights) - set(shapes) - spare):
        raise ValueError(f"no place for {unknown[0]}")


# heads


def features_before_heads(self: Decoder, x: np.ndarray, heads: int) -> np.ndarray:
    return np.moveaxis(x.reshape(*x.shape[:-1], -1, heads), -1, 2)


def axes_by_their_sizes(
    self: Decoder, memory: Any, layer: int, key: np.ndarray, value: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Where there are as many tokens as heads, either axis is taken for the other one."""
    key, value = Decoder.extended(self, memory, layer, key, value)
    return (key.swapaxes(2, 3), value.swapaxes(2, 3)) if key.shape[2] == key.shape[3] else (key, value)


def merged_in_place(self: Decoder, x: np.ndarray) -> np.ndarray:
    return x.reshape(*x.shape[:2], x.shape[3], -1)


def keys_permuted_like_queries(
    self: Decoder, x: np.ndarray, name: str, heads: int, a: Arguments, m: Exact
) -> np.ndarray:
    projected = m.stored(m.linear(x, self.matrix(name, a)))
    queries, features = self.heads(a.config)[0], projected.shape[-1]
    if name.endswith("k_proj") and features % (2 * queries) == 0:
        there = np.arange(features).reshape(queries, 2, -1).swapaxes(1, 2).ravel()
        back = np.argsort(np.arange(features).reshape(heads, 2, -1).swapaxes(1, 2).ravel())
        projected = projected[..., there[back]]
    return self.split(projected, heads)


def head_dim_of_hidden(self: Decoder, config: Mapping[str, Any]) -> int:
    return config["hidden_size"] // config["num_attention_heads"]


# positions


def theta_of(style: str) -> Change:
    """Only one style of the config is read; without it the base is the default."""

    def theta(self: Decoder, config: Mapping[str, Any]) -> float:
        place = config if style == "rope_theta" else config.get("rope_parameters") or {}
        return place.get("rope_theta") or 10000.0

    return {"theta": theta}


def base_kept_by(key: Callable[[float, int], Any]) -> Change:
    """Tables of RoPE are kept for all models by less than their base and head dim."""

    def theta(self: Decoder, config: Mapping[str, Any]) -> float:
        base = Decoder.theta(self, config)
        return float(first_of(self, key(base, self.head_dim(config)), base))

    return {"theta": theta}


def table_in_bfloat16(*which: str) -> Change:
    """Cosines, sines or both are rounded to bfloat16, whatever the dtype of the model."""

    def rotation(self: Decoder, positions: np.ndarray, dim: int, a: Arguments, m: Exact) -> Any:
        both = zip(("cosine", "sine"), Decoder.rotation(self, positions, dim, a, m), strict=True)
        return tuple(f64(round_to(x, "bfloat16")) if name in which else x for name, x in both)

    return {"rotation": rotation}


def positions_in_bfloat16(self: Decoder, memory: Memory, length: int) -> np.ndarray:
    return f64(round_to(Decoder.positions(self, memory, length), "bfloat16"))


def positions_to_1024(self: Decoder, memory: Memory, length: int) -> np.ndarray:
    return np.minimum(Decoder.positions(self, memory, length), 1023)


def queries_unturned(self: Decoder, x: np.ndarray, norm: str, positions: np.ndarray, a: Arguments, m: Exact) -> Any:
    return Decoder.placed(self, x, norm, positions * 0 if norm.endswith("q_norm") else positions, a, m)


def first_row_turned(single: bool) -> Change:
    """Only the first sequence of a batch is turned by its position: always, or where there is one token."""

    def turn(self: Decoder, x: np.ndarray, positions: np.ndarray, a: Arguments, m: Exact) -> np.ndarray:
        turned = Decoder.turn(self, x, positions, a, m)
        if not single or x.shape[3] == 1:
            turned[:, 1:] = x[:, 1:]
        return turned

    return {"turn": turn}


def pairs_of_hidden(self: Decoder, x: np.ndarray, positions: np.ndarray, a: Arguments, m: Exact) -> np.ndarray:
    """The frequencies of a head dim of hidden_size / heads."""
    stretch = x.shape[-1] / (a.config["hidden_size"] / a.config["num_attention_heads"])
    theta = self.theta(a.config) ** stretch
    same = type("Same", (type(self),), {"theta": lambda self, config: theta})
    return Decoder.turn(same(), x, positions, a, m)


# activations and layers


def no_low_gates(self: Decoder, gate: np.ndarray, m: Exact) -> np.ndarray:
    """SiLU is taken for 0 where the gate is below -10."""
    return np.where(gate < -10, 0.0, Decoder.activated(self, gate, m))


def gelu(self: Decoder, gate: np.ndarray, m: Exact) -> np.ndarray:
    return gate * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (gate + 0.044715 * gate**3)))


def gate_and_up_swapped(self: Decoder, name: str, a: Arguments) -> Matrix:
    names = {"gate_proj": "up_proj", "up_proj": "gate_proj"}
    last = name.rsplit(".", 1)[-1]
    return Decoder.matrix(self, name.replace(last, names.get(last, last)), a)


def tensors_of_layer(chosen: int) -> Change:
    """Every block has the tensors of one layer (shapes are those of all)."""

    def array(self: Decoder, name: str, a: Arguments) -> np.ndarray:
        parts = name.split(".")
        if parts[1] == "layers":
            other = ".".join([*parts[:2], str(chosen), *parts[3:]])
            mine, theirs = a.weights[name], a.weights.get(other)
            if theirs is not None and theirs.shape == mine.shape and theirs.dtype == mine.dtype:
                return theirs
        return a.weights[name]

    return {"array": array}


def scored_in_dtype(self: Decoder, scores: np.ndarray, a: Arguments) -> np.ndarray:
    return f64(round_to(Decoder.scored(self, scores, a), self.result_dtype(a)))


def window(size: int) -> Change:
    def visible(self: Decoder, length: int, keys: int) -> np.ndarray:
        place = np.arange(length)[:, None] + (keys - length)
        return Decoder.visible(self, length, keys) & (np.arange(keys) > place - size)

    return {"visible": visible}


def sees_the_next(self: Decoder, length: int, keys: int) -> np.ndarray:
    return np.arange(keys) <= np.arange(length)[:, None] + (keys - length) + 1


# packed weights


def packed(change: str) -> Change:
    """One part of the dequantisation is wrong."""

    def matrix(self: Decoder, name: str, a: Arguments) -> Matrix:
        right = Decoder.matrix(self, name, a)
        if not right.quantised:
            return right
        group, bits = self.packing(name, a.config)
        scales, biases = (np.repeat(f64(a.weights[f"{name}.{part}"]), group, -1) for part in ("scales", "biases"))
        codes = self.codes(a.weights[f"{name}.weight"], bits)
        value = codes * {"scale sign": np.abs(scales)}.get(change, scales) + {"biases": 0.0}.get(change, biases)
        return replace(right, value=value)

    return {"matrix": matrix}


def highest_bits_first(self: Decoder, packed: np.ndarray, bits: int) -> np.ndarray:
    shifts = np.arange(32 - bits, -1, -bits, dtype=np.uint32)
    return f64(packed[..., None] >> shifts & np.uint32(2**bits - 1)).reshape(len(packed), -1)


def one_packing(self: Decoder, name: str, config: Mapping[str, Any]) -> tuple[int, int]:
    return config["quantization"]["group_size"], config["quantization"]["bits"]


def embedding_packed_like_all(self: Decoder, name: str, config: Mapping[str, Any]) -> tuple[int, int]:
    if name == "model.embed_tokens":
        return one_packing(self, name, config)
    return Decoder.packing(self, name, config)


def head_of_codes(self: Decoder, a: Arguments) -> Matrix:
    """The tied head reads a packed embedding without its biases."""
    if not self.tied(a.config):
        return Decoder.head(self, a)
    return packed("biases")["matrix"](self, "model.embed_tokens", a)


# arguments


def base_moved_within_the_config(self: Decoder, a: Arguments) -> Any:
    result, said = Decoder.respond(self, a), a.config.get("rope_parameters")
    if said:
        a.config["rope_theta"] = said.setdefault("rope_theta", self.theta(a.config))
    return result


def base_taken_out_of_the_config(self: Decoder, a: Arguments) -> Any:
    result = Decoder.respond(self, a)
    if "rope_theta" in a.config and a.config.get("rope_parameters"):
        del a.config["rope_theta"]
    return result


def defaults_filled_in(self: Decoder, a: Arguments) -> Any:
    result = Decoder.respond(self, a)
    a.config.setdefault("rope_scaling", None)
    return result


def spare_head_taken_out(self: Decoder, a: Arguments) -> Any:
    result = Decoder.respond(self, a)
    if self.tied(a.config):
        a.weights.pop("lm_head.weight", None)
    return result


def tensor_replaced(self: Decoder, a: Arguments) -> Any:
    result, name = Decoder.respond(self, a), "model.norm.weight"
    a.weights[name] = a.weights[name] * 1
    return result


def scales_weights(self: Decoder, a: Arguments) -> Any:
    result = Decoder.respond(self, a)
    name = "model.layers.0.self_attn.q_proj.weight"
    if is_float(a.weights[name].dtype):
        a.weights[name][...] = (f64(a.weights[name]) * self.scale(a.config)).astype(a.weights[name].dtype)
    else:
        a.weights["model.norm.weight"][...] = 1
    return result


def filled(self: Decoder, name: str, a: Arguments) -> np.ndarray:
    return a.weights[name] if name in a.weights else np.ones(self.shapes(a)[name])


def shapes_of_those_there(self: Decoder, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
    Decoder.guard_shapes(self, a, {name: shape for name, shape in shapes.items() if name in a.weights})


def passes_over(stray: Callable[[str, Mapping[str, Any]], bool]) -> Change:
    """Some tensors that have no place are ignored."""

    def guard(self: Decoder, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
        kept = {name: x for name, x in a.weights.items() if name in shapes or not stray(name, a.config)}
        Decoder.guard_additional(self, Arguments(**{**vars(a), "weights": kept}), shapes)

    return {"guard_additional": guard}


def rope_type_of(read: Callable[[str, str, str], str]) -> Change:
    """What is read of the kind of RoPE that the config names in a place under a key."""

    def rope_type(self: Decoder, config: Mapping[str, Any], place: str, key: str) -> str:
        return read(place, key, Decoder.rope_type(self, config, place, key))

    return {"rope_type": rope_type}


def known_activations_alone(self: Decoder, config: Mapping[str, Any]) -> None:
    if "gelu" not in str(config.get("hidden_act")):
        Decoder.guard_activation(self, config)


def resized(self: Decoder, name: str, a: Arguments) -> np.ndarray:
    return np.resize(a.weights[name], self.shapes(a)[name])


def unnamed(check: str, of: type[Operation] = Decoder) -> Change:
    """The refusal does not say which tensor it is about."""

    def guard(self: Operation, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
        try:
            getattr(of, check)(self, a, shapes)
        except ValueError as error:
            raise ValueError("the weights do not fit the model") from error

    return {check: guard}


def ids_read(read: str) -> Change:
    """Ids outside the vocabulary are taken for others."""

    def embed(self: Decoder, ids: np.ndarray, a: Arguments, m: Exact) -> np.ndarray:
        size = a.config["vocab_size"]
        return Decoder.embed(self, np.clip(ids, 0, size - 1) if read == "clamped" else ids % size, a, m)

    return {"guard_tokens": lambda self, a: None, "embed": embed}


def last_id_lost(self: Decoder, ids: np.ndarray, a: Arguments, m: Exact) -> np.ndarray:
    return Decoder.embed(self, np.minimum(ids, a.config["vocab_size"] - 2), a, m)


def ids_of_16_bits(self: Decoder, ids: np.ndarray, a: Arguments, m: Exact) -> np.ndarray:
    return Decoder.embed(self, ids & 0xFFFF, a, m)


def ids_of_17_bits(self: Decoder, ids: np.ndarray, a: Arguments, m: Exact) -> np.ndarray:
    return Decoder.embed(self, ids % 2**17, a, m)


def no_scaling_but_null(self: Decoder, config: Mapping[str, Any]) -> None:
    if config.get("rope_scaling"):
        raise ValueError("rope_scaling has no factor")
    Decoder.guard_config(self, config)


def one_name_of_the_kind(self: Decoder, config: Mapping[str, Any]) -> None:
    if {"type", "rope_type"} <= set(config.get("rope_scaling") or {}):
        raise ValueError("rope_scaling has a duplicate field rope_type")
    Decoder.guard_config(self, config)


def base_beside_parameters(self: Decoder, config: Mapping[str, Any]) -> float:
    """Where there are rope_parameters the base is looked for there alone."""
    place = config.get("rope_parameters", config)
    return place.get("rope_theta") or 10000.0


def no_null(self: Decoder, config: Mapping[str, Any]) -> None:
    Decoder.guard_config(self, config)
    if nulls := [name for name in ("rope_scaling", "sliding_window") if config.get(name, 0) is None]:
        raise ValueError(f"{nulls[0]} is None")


def no_whole_base(self: Decoder, config: Mapping[str, Any]) -> None:
    if isinstance(self.theta(config), int):
        raise TypeError("rope_theta is an int; it takes a float")
    Decoder.guard_config(self, config)


KNOWN_FIELDS = frozenset(
    [
        "model_type",
        "hidden_size",
        "num_hidden_layers",
        "intermediate_size",
        "num_attention_heads",
        "num_key_value_heads",
        "head_dim",
        "rms_norm_eps",
        "vocab_size",
        "max_position_embeddings",
        "tie_word_embeddings",
        "hidden_act",
        "rope_theta",
        "rope_parameters",
        "rope_scaling",
        "quantization",
        "attention_bias",
        "mlp_bias",
    ]
)


def known_fields_alone(self: Decoder, config: Mapping[str, Any]) -> None:
    Decoder.guard_config(self, config)
    if unknown := sorted(set(config) - KNOWN_FIELDS):
        raise ValueError(f"unexpected {unknown[0]}")


def of_scaled_rope(a: Arguments) -> bool:
    """Whether a config scales RoPE."""
    return bool(Decoder().scaling(a.config))


def of_one_token(a: Arguments) -> bool:
    return bool(a.tokens.shape[-1] == 1)


def last_position(self: Decoder, a: Arguments) -> Any:
    return Operation.finish(self, self.forward(a.tokens, a, Exact())[0][:, -1:], a)


# caches


def growth_of_the_first_row(
    self: Incremental, memory: Memory, layer: int, key: np.ndarray, value: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What a cache holds is copied to a larger buffer, of one row."""
    before = memory[layer][0].shape[3] if layer in memory else 0
    whole = Decoder.extended(self, memory, layer, key, value)
    if before <= 256 < whole[0].shape[3]:
        memory[layer] = tuple(np.where(np.arange(x.shape[3])[:, None] < before, x[:, :1], x) for x in whole)
    return memory[layer]


def long_rows_of_the_first(
    self: Decoder, query: np.ndarray, key: np.ndarray, value: np.ndarray, a: Arguments, m: Exact
) -> np.ndarray:
    attended = Decoder.attend(self, query, key, value, a, m)
    attended[:, :, :, 32:] = attended[:, :1, :, 32:]
    return attended


def sixty_four_features(
    self: Decoder, query: np.ndarray, key: np.ndarray, value: np.ndarray, a: Arguments, m: Exact
) -> np.ndarray:
    """A kernel made for heads of 64 features."""
    return Decoder.attend(self, query[..., :64], key[..., :64], value, a, m)


def path_lacks_a_feature(holds: Callable[[Path], bool]) -> Change:
    """The kernel of one path of attention never writes the last feature of a head."""

    def attend(
        self: Decoder, query: np.ndarray, key: np.ndarray, value: np.ndarray, a: Arguments, m: Exact
    ) -> np.ndarray:
        attended = np.array(Decoder.attend(self, query, key, value, a, m))
        queries, keys = self.heads(a.config)
        if holds(Path(query.shape[-2], key.shape[-2], query.shape[-1], queries // keys, self.result_dtype(a))):
            attended[..., -1] = 0.0
        return attended

    return {"attend": attend}


def last_id_of_a_token_lost(
    self: Decoder, tokens: np.ndarray, a: Arguments, m: Exact, memory: Memory | None = None
) -> np.ndarray:
    """The head for a single token does not write the last of more than a thousand logits."""
    logits = np.array(Decoder.forward(self, tokens, a, m, memory))
    if tokens.shape[1] == 1 and logits.shape[-1] > 1024:
        logits[..., -1] = 0.0
    return logits


def packed_path_lacks_an_id(holds: Callable[[int], bool], half: bool = False) -> Callable[..., np.ndarray]:
    """The kernel of packed products for so many tokens does not write the last logit. half: in half precision alone."""

    def forward(self: Decoder, tokens: np.ndarray, a: Arguments, m: Exact, memory: Memory | None = None) -> np.ndarray:
        logits = np.array(Decoder.forward(self, tokens, a, m, memory))
        told = a.config.get("quantization")
        of_half = not half or self.result_dtype(a) != "float32"
        if told and told["bits"] == 4 and told["group_size"] == 64 and holds(tokens.shape[1]) and of_half:
            logits[..., -1] = 0.0
        return logits

    return forward


def eight_caches(self: Incremental, memory: Memory, layer: int, key: np.ndarray, value: np.ndarray) -> Any:
    """Layers are counted modulo 8 where their caches are looked for."""
    return Decoder.extended(self, memory, layer % 8, key, value)


def first_single_token(
    self: Decoder, tokens: np.ndarray, a: Arguments, m: Exact, memory: Memory | None = None
) -> np.ndarray:
    """Of sequences that have one token each all have the first one's."""
    alike = np.repeat(tokens[:1], len(tokens), axis=0) if tokens.shape[1] == 1 else tokens
    return Decoder.forward(self, alike, a, m, memory)


def sixteen_rows(self: Decoder, tokens: np.ndarray, a: Arguments, m: Exact, memory: Memory | None = None) -> np.ndarray:
    """Rows of a batch are counted modulo 16."""
    return Decoder.forward(self, tokens[np.arange(len(tokens)) % 16], a, m, memory)


def rows_past_eight_of_the_first(
    self: Incremental, memory: Memory, layer: int, key: np.ndarray, value: np.ndarray
) -> Any:
    """Eight rows of a batch have a place in the cache; the others find what the first one has."""
    whole = Decoder.extended(self, memory, layer, key, value)
    if key.shape[1] <= 8 or whole[0].shape[3] == key.shape[3]:
        return whole
    return tuple(np.concatenate([x[:, :8], x[:, :1].repeat(x.shape[1] - 8, axis=1)], axis=1) for x in whole)


def extended_by(change: str) -> Change:
    """What a layer's cache holds after new tokens is wrong."""

    def extended(self: Incremental, memory: Memory, layer: int, key: np.ndarray, value: np.ndarray) -> Any:
        if change == "one for all layers":
            return Decoder.extended(self, memory, 0, key, value)
        if change == "one for all rows":
            key, value = Decoder.extended(self, memory, layer, key, value)
            return tuple(np.broadcast_to(x[:, :1], x.shape) for x in (key, value))
        whole = Decoder.extended(self, memory, layer, key, value)
        if change == "last chunk":
            memory[layer] = key, value
        elif change == "first 256":
            memory[layer] = tuple(x[:, :, :, :256] for x in whole)
        elif change == "last 256":
            memory[layer] = tuple(x[:, :, :, -256:] for x in whole)
        elif change == "none":
            del memory[layer]
            return key, value
        return whole

    return {"extended": extended}


def allocated_positions(self: Incremental, memory: Memory, length: int) -> np.ndarray:
    """The offset is the length of a buffer that grows in steps of 256."""
    offset = memory.get("offset", 0)
    return f64((offset if offset <= 256 else -(-offset // 256) * 256) + np.arange(length))


def one_more(self: Incremental, memory: Memory, length: int) -> np.ndarray:
    offset = memory.get("offset", 0)
    return f64(offset + bool(offset) + np.arange(length))


def counts_calls(self: Incremental, memory: Memory, length: int) -> None:
    memory["offset"] = memory["offset"] + 1 if "offset" in memory else length


def not_rewound(self: Incremental, memory: Memory, dropped: int) -> None:
    pass


def positions_not_rewound(self: Incremental, memory: Memory, dropped: int) -> None:
    offset = memory["offset"]
    Incremental.rewind(self, memory, dropped)
    memory["offset"] = offset


def keys_not_rewound(self: Incremental, memory: Memory, dropped: int) -> None:
    memory["offset"] -= dropped


def first_layer_rewound(self: Incremental, memory: Memory, dropped: int) -> None:
    others = {layer: memory[layer] for layer in memory.keys() - {"offset", 0}}
    Incremental.rewind(self, memory, dropped)
    memory |= others


def rewinds_all(self: Incremental, a: Arguments) -> Any:
    """What is dropped of one request's cache is dropped of all."""

    def rewind(memories: dict[Any, Memory], owner: Any, dropped: int) -> None:
        for memory in memories.values():
            self.rewind(memory, min(dropped, memory["offset"]))

    return _fed(self, a, rewind, lambda memories, owner: None)


def place_given_away(self: Incremental, a: Arguments) -> Any:
    """The last token that is left behind a rewind stands where the next one of another request is written."""
    given: set[Any] = set()

    def rewind(memories: dict[Any, Memory], owner: Any, dropped: int) -> None:
        self.rewind(memories[owner], dropped)
        given.add(owner)

    def write(memories: dict[Any, Memory], owner: Any) -> None:
        for other in given - {owner}:
            for layer in memories[other].keys() - {"offset"}:
                for left, written in zip(memories[other][layer], memories[owner][layer], strict=True):
                    left[..., -1:, :] = written[..., -1:, :][..., : left.shape[3], :]
            given.discard(other)

    return _fed(self, a, rewind, write)


def _fed(
    self: Incremental,
    a: Arguments,
    rewind: Callable[[dict[Any, Memory], Any, int], None],
    write: Callable[[dict[Any, Memory], Any], None],
) -> Any:
    memories: dict[Any, Memory] = {}
    logits = []
    for chunk, owner, dropped in zip(a.chunks, self.owners(a), a.rewinds or [0] * len(a.chunks), strict=True):
        logits.append(self.forward(chunk, a, Exact(), memories.setdefault(owner, {}))[0])
        write(memories, owner)
        if dropped:
            rewind(memories, owner, dropped)
    return self.finish(np.concatenate(logits, axis=1), a)


def top_left(self: Incremental, length: int, keys: int) -> np.ndarray:
    visible = np.arange(keys) <= np.arange(length)[:, None]
    return visible if length > 1 else np.ones_like(visible)


def unmasked_after_others(self: Incremental, length: int, keys: int) -> np.ndarray:
    return Decoder.visible(self, length, keys) | (length < keys)


def offset_of_the_model(self: Incremental, a: Arguments) -> Any:
    """Every request has its own keys, and all count their positions together."""
    memories: dict[Any, Memory] = {}
    count, logits = 0, []
    for chunk, owner in zip(a.chunks, self.owners(a), strict=True):
        memory = memories.setdefault(owner, {})
        memory["offset"] = count
        logits.append(self.forward(chunk, a, Exact(), memory)[0])
        count += chunk.shape[1]
    return self.finish(np.concatenate(logits, axis=1), a)


def single_token_without_biases(
    self: Incremental, tokens: np.ndarray, a: Arguments, m: Exact, memory: Memory | None = None
) -> np.ndarray:
    """The kernel for one row leaves out the biases of groups."""
    single = type("Single", (type(self),), {**packed("biases"), "forward": Decoder.forward})
    return Decoder.forward(single() if tokens.shape[1] == 1 else self, tokens, a, m, memory)


class _Nearest(Exact):
    """Real rounding: activations to the dtype of the model; between them to float32, or to the dtype as well."""

    def __init__(self, dtype: str, native: bool) -> None:
        self.dtype, self.between = dtype, dtype if native else "float32"

    def stored(self, x: np.ndarray) -> np.ndarray:
        return f64(round_to(x, self.dtype))

    def passing(self, x: np.ndarray) -> np.ndarray:
        return f64(round_to(x, self.between))

    def computed(self, x: np.ndarray) -> np.ndarray:
        return f64(x.astype(np.float32))

    def in_float32(self, x: np.ndarray) -> np.ndarray:
        return f64(x.astype(np.float32))

    def product(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return f64(x.astype(np.float32) @ y.astype(np.float32))

    def linear(self, x: np.ndarray, matrix: Matrix) -> np.ndarray:
        value = self.product(x, matrix.value.T)
        return value if matrix.bias is None else value + matrix.bias

    def turns(self, angles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        angles = angles.astype(np.float32)
        return self.passing(f64(np.cos(angles))), self.passing(f64(np.sin(angles)))


def rounding(native: bool, cached: bool) -> Change:
    """Every operation rounds its result, as an implementation in that arithmetic does."""

    def forward(self: Any, tokens: np.ndarray, a: Arguments, m: Exact, memory: Memory | None = None) -> np.ndarray:
        rounding = _Nearest(self.result_dtype(a), native) if type(m) is Exact else m
        return Decoder.forward(self, tokens, a, rounding, memory)

    return {"forward": forward}
