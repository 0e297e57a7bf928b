"""Mistakes in loading models, and other honest ways to do it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Fault, Variant
from inferspec.spec.loading import (
    GGUF,
    HF_FORMAT,
    LOAD_01,
    LOAD_02,
    LOAD_03,
    LOAD_04,
    LOAD_05,
    LOAD_06,
    LOAD_07,
    LOAD_08,
    LOAD_09,
    LOAD_10,
    LOAD_11,
    LOAD_12,
    LOAD_13,
    LOAD_14,
    LOAD_15,
    LOAD_16,
    LOAD_17,
    LOAD_18,
    LOAD_19,
    LOAD_20,
    LOAD_21,
    LOAD_22,
    LOAD_23,
    Config,
    Load,
    Weights,
)
from inferspec.spec.mistakes import promotes, remembers
from inferspec.spec.numerics import f64, is_float, numpy_dtype

TIRED = "what a tired author writes"

Understood = tuple[Config, Weights]


def _random_like(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """What an initialiser puts where nothing was loaded."""
    return np.random.default_rng(0).normal(scale=0.02, size=shape).astype(np.float32).astype(dtype)


def _of_floats(weights: Weights) -> np.dtype[Any]:
    return next(x.dtype for name, x in weights.items() if name.endswith("norm.weight"))


def _replaced(weights: Weights, change: Callable[[str, np.ndarray], np.ndarray]) -> Weights:
    return {name: change(name, x) for name, x in weights.items()}


def _with_weights(a: Arguments, weights: Weights, **config: Any) -> Arguments:
    return Arguments(config={**a.config, **config}, weights=weights, tokens=a.tokens)


# folders


def _norms_of_one(self: Load, a: Arguments) -> Arguments:
    return _with_weights(
        a, _replaced(a.weights, lambda name, x: np.ones_like(x) if name.endswith("norm.weight") else x)
    )


def _gate_for_up(self: Load, a: Arguments) -> Arguments:
    exchanged = {"gate_proj": "up_proj", "up_proj": "gate_proj"}

    def other(name: str) -> str:
        parts = name.split(".")
        return ".".join(exchanged.get(part, part) for part in parts)

    return _with_weights(a, {other(name): x for name, x in a.weights.items()})


def _layers_as_text(self: Load, a: Arguments) -> Arguments:
    count = a.config["num_hidden_layers"]
    order = sorted(range(count), key=str)
    weights = {name: x for name, x in a.weights.items() if not name.startswith("model.layers.")}
    for place, layer in enumerate(order):
        before = f"model.layers.{layer}."
        weights |= {
            f"model.layers.{place}.{name.removeprefix(before)}": x
            for name, x in a.weights.items()
            if name.startswith(before)
        }
    return _with_weights(a, weights)


def _shards(weights: Weights) -> int:
    """As many as the kit writes."""
    return (2, 3, 11)[len(weights) % 3]


def _last_shard_lost(self: Load, weights: Weights) -> Weights:
    count = _shards(weights)
    lost = set(list(weights)[count - 1 :: count])
    return {
        name: _random_like(x.shape, x.dtype) if name in lost and is_float(x.dtype) else x for name, x in weights.items()
    }


def _nine_shards(self: Load, weights: Weights) -> Weights:
    """Where a model has ten shards and more, what is in those keeps its random values."""
    names, count = list(weights), _shards(weights)
    lost = {name for shard in range(9, count) for name in names[shard::count]}
    return {
        name: _random_like(x.shape, x.dtype) if name in lost and is_float(x.dtype) else x for name, x in weights.items()
    }


def _first_shard_twice(self: Load, weights: Weights) -> Weights:
    """A tensor that a later shard holds is taken from the first one where that has one of its shape."""
    count, names = _shards(weights), list(weights)
    first = names[::count]
    found = dict(weights)
    for name in names:
        alike = [other for other in first if weights[other].shape == weights[name].shape]
        if name not in first and alike:
            found[name] = weights[alike[0]]
    return found


def _through(dtype: str) -> Callable[..., Understood]:
    def unpacked(self: Load, config: Config, weights: Weights) -> Understood:
        narrow = _replaced(
            weights, lambda name, x: x.astype(numpy_dtype(dtype)).astype(x.dtype) if is_float(x.dtype) else x
        )
        return config, narrow

    return unpacked


def _own_head(self: Load, config: Config, weights: Weights) -> Understood:
    """A head of random numbers, though the embedding is the head."""
    if not config["tie_word_embeddings"]:
        return config, weights
    shape = (config["vocab_size"], config["hidden_size"])
    head = {"lm_head.weight": _random_like(shape, _of_floats(weights))}
    return {**config, "tie_word_embeddings": False}, {**weights, **head}


def _always_tied(self: Load, config: Config, weights: Weights) -> Understood:
    kept = {name: x for name, x in weights.items() if not name.startswith("lm_head.")}
    return {**config, "tie_word_embeddings": True}, kept


def _tied_only_dense(self: Load, config: Config, weights: Weights) -> Understood:
    """A tied head is packed with the embedding's codes, and with scales of its own that were never loaded."""
    if "model.embed_tokens.scales" not in weights:
        return config, weights
    return _own_head(self, config, weights)


def _theta(style: str) -> Callable[..., Config]:
    def configured(self: Load, config: Config, a: Arguments) -> Config:
        if style not in config:
            return config
        return {**{key: x for key, x in config.items() if key != style}, "rope_theta": 10000.0}

    return configured


def _no_biases(self: Load, config: Config, weights: Weights) -> Understood:
    return config, _replaced(weights, lambda name, x: np.zeros_like(x) if name.endswith(".biases") else x)


def _high_bits_first(self: Load, config: Config, weights: Weights) -> Understood:
    def turned(name: str, x: np.ndarray) -> np.ndarray:
        if x.dtype != np.uint32:
            return x
        module = name.removesuffix(".weight")
        entry = {**config["quantization"], **(config["quantization"].get(module) or {})}
        shifts = np.arange(0, 32, entry["bits"], dtype=np.uint32)
        codes = x[..., None] >> shifts & np.uint32(2 ** entry["bits"] - 1)
        return np.bitwise_or.reduce(codes[..., ::-1] << shifts, axis=-1).astype(np.uint32)

    return config, _replaced(weights, turned)


def _four_bits(self: Load, config: Config, weights: Weights) -> Understood:
    if "quantization" not in config:
        return config, weights
    return {**config, "quantization": {**config["quantization"], "bits": 4}}, weights


def _no_overrides(self: Load, config: Config, weights: Weights) -> Understood:
    if "quantization" not in config:
        return config, weights
    plain = {key: x for key, x in config["quantization"].items() if key in ("group_size", "bits")}
    return {**config, "quantization": plain}, weights


def _all_quantised(self: Load, config: Config, weights: Weights) -> Understood:
    """Dense matrices of a quantised model are rounded to the model's bits on the way."""
    if "quantization" not in config:
        return config, weights
    group, bits = config["quantization"]["group_size"], config["quantization"]["bits"]

    def coarse(name: str, x: np.ndarray) -> np.ndarray:
        module = name.removesuffix(".weight")
        if x.ndim != 2 or f"{module}.scales" in weights or not name.endswith(".weight") or x.shape[-1] % group:
            return x
        groups = f64(x).reshape(len(x), -1, group)
        low = groups.min(axis=-1, keepdims=True)
        step = np.maximum((groups.max(axis=-1, keepdims=True) - low) / (2**bits - 1), 1e-12)
        return (np.round((groups - low) / step) * step + low).reshape(x.shape).astype(np.float32).astype(x.dtype)

    return config, _replaced(weights, coarse)


# GGUF files


def _gguf_default(key: str, value: Any) -> Callable[..., Understood]:
    def from_gguf(self: Load, config: Config, weights: Weights) -> Understood:
        style = {k: x for k, x in config.items() if k != "rope_parameters"} if key == "rope_theta" else config
        return {**style, key: value}, weights

    return from_gguf


def _rows(weights: Weights, change: Callable[[str, np.ndarray], np.ndarray]) -> Weights:
    """Query and key projections, codes and scales, with their rows in another order."""
    asked = ("q_proj", "k_proj")
    return _replaced(weights, lambda name, x: change(name, x) if name.split(".")[-2] in asked else x)


def _interleaved(x: np.ndarray, heads: int) -> np.ndarray:
    return x.reshape(heads, 2, -1, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def _put_back(x: np.ndarray, heads: int) -> np.ndarray:
    return x.reshape(heads, -1, 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def _heads(name: str, config: Mapping[str, Any]) -> int:
    return config["num_attention_heads" if "q_proj" in name else "num_key_value_heads"]


def _never_put_back(self: Load, config: Config, weights: Weights) -> Understood:
    if config["model_type"] != "llama":
        return config, weights
    return config, _rows(weights, lambda name, x: _interleaved(x, _heads(name, config)))


def _always_put_back(self: Load, config: Config, weights: Weights) -> Understood:
    if config["model_type"] == "llama":
        return config, weights
    return config, _rows(weights, lambda name, x: _put_back(x, _heads(name, config)))


def _query_heads_for_keys(self: Load, config: Config, weights: Weights) -> Understood:
    """Key rows are put back as if there were as many key heads as query heads."""
    heads = config["num_attention_heads"]

    def change(name: str, x: np.ndarray) -> np.ndarray:
        if "q_proj" in name or len(x) % (2 * heads):
            return x
        return _put_back(_interleaved(x, config["num_key_value_heads"]), heads)

    return config, _rows(weights, change) if config["model_type"] == "llama" else weights


def _codes_alone_put_back(self: Load, config: Config, weights: Weights) -> Understood:
    if config["model_type"] != "llama":
        return config, weights

    def change(name: str, x: np.ndarray) -> np.ndarray:
        return _interleaved(x, _heads(name, config)) if name.endswith((".scales", ".biases")) else x

    return config, _rows(weights, change)


def _biases_never_put_back(self: Load, config: Config, weights: Weights) -> Understood:
    if config["model_type"] != "llama":
        return config, weights
    return config, _rows(
        weights, lambda name, x: _interleaved(x, _heads(name, config)) if name.endswith(".bias") else x
    )


def _no_biases_of(*modules: str) -> Callable[..., Understood]:
    """Biases of these modules, or of all, are not looked for in a GGUF file."""

    def from_gguf(self: Load, config: Config, weights: Weights) -> Understood:
        def lost(name: str) -> bool:
            return name.endswith(".bias") and (not modules or name.split(".")[-2] in modules)

        return config, _replaced(weights, lambda name, x: np.zeros_like(x) if lost(name) else x)

    return from_gguf


def _kind(name: str, config: Mapping[str, Any], weights: Weights) -> str:
    """The GGUF type that a packed tensor had: from its bits, and whether its minimum is that of Q4_0."""
    module = name.rpartition(".")[0]
    if f"{module}.scales" not in weights:
        return ""
    scales, biases = f64(weights[f"{module}.scales"]), f64(weights[f"{module}.biases"])
    if weights[f"{module}.weight"].shape[-1] == 8 * scales.shape[-1]:
        return "Q8_0"
    return "Q4_0" if np.array_equal(biases, -8 * scales) else "Q4_1"


def _in_blocks(kind: str, part: str, change: Callable[[np.ndarray, Weights, str], np.ndarray]) -> Callable[..., Any]:
    """One part (codes, scales, biases) of every tensor of a type is read otherwise."""

    def from_gguf(self: Load, config: Config, weights: Weights) -> Understood:
        def read(name: str, x: np.ndarray) -> np.ndarray:
            module, _, own = name.rpartition(".")
            if own != part or _kind(name, config, weights) != kind:
                return x
            return change(x, weights, module)

        return config, _replaced(weights, read)

    return from_gguf


def _zeros(x: np.ndarray, weights: Weights, module: str) -> np.ndarray:
    return np.zeros_like(x)


def _seven(x: np.ndarray, weights: Weights, module: str) -> np.ndarray:
    return (-7 * f64(weights[f"{module}.scales"])).astype(x.dtype)


def _maximum(x: np.ndarray, weights: Weights, module: str) -> np.ndarray:
    return -x


def _even_and_odd(x: np.ndarray, weights: Weights, module: str) -> np.ndarray:
    """The nibbles of a byte are taken for neighbours, where they are sixteen apart."""
    shifts = np.arange(0, 32, 4, dtype=np.uint32)
    halves = (x[..., None] >> shifts & np.uint32(15)).reshape(len(x), -1, 2, 16)
    codes = halves.swapaxes(-1, -2).reshape(len(x), -1, 8)
    return np.bitwise_or.reduce(codes << shifts, axis=-1).astype(np.uint32)


# what should be refused


def _filled(value: Callable[[tuple[int, ...], np.dtype[Any]], np.ndarray]) -> Callable[..., Arguments]:
    def completed(self: Load, a: Arguments) -> Arguments:
        missing = set(shapes := self.decoder(a.config).shapes(a)) - set(a.weights)
        return _with_weights(a, {**a.weights, **{name: value(shapes[name], _of_floats(a.weights)) for name in missing}})

    return completed


def _may_lack(ending: str) -> Callable[..., None]:
    def guard_missing(self: Load, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
        Load.guard_missing(self, a, {name: shape for name, shape in shapes.items() if not name.endswith(ending)})

    return guard_missing


def _embedding_for_the_head(self: Load, a: Arguments) -> Arguments:
    embedding = {name: x for name, x in a.weights.items() if name.startswith("model.embed_tokens.")}
    return _with_weights(
        a, {name.replace("model.embed_tokens", "lm_head"): x for name, x in embedding.items()} | a.weights
    )


def _tied_unsaid(self: Load, config: Config, a: Arguments) -> Config:
    return {"tie_word_embeddings": True, **config}


def _tie_needed(self: Load, config: Config, a: Arguments) -> Config:
    if "tie_word_embeddings" not in config:
        raise KeyError("tie_word_embeddings")
    return config


def _all_tensors(self: Load, weights: Weights) -> Weights:
    return weights


def _any_bias(self: Load, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
    Load.guard_shapes(self, a, {name: shape for name, shape in shapes.items() if not name.endswith(".bias")})


def _only_known(self: Load, a: Arguments) -> Arguments:
    shapes = self.decoder(a.config).shapes(a)
    return _with_weights(a, {name: x for name, x in a.weights.items() if name in shapes})


def _fitted(self: Load, a: Arguments) -> Arguments:
    shapes = self.decoder(a.config).shapes(a)
    return _with_weights(a, {name: np.resize(x, shapes[name]) for name, x in a.weights.items()})


def _more_rows_are_fine(self: Load, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
    cut = {
        name: x[: shapes[name][0]]
        for name, x in a.weights.items()
        if name in shapes and f"{name.rpartition('.')[0]}.scales" in a.weights
    }
    Load.guard_shapes(self, _with_weights(a, {**a.weights, **cut}), shapes)


def _silent(*args: Any) -> None:
    return None


def _without_a_name(self: Load, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
    if set(shapes) - set(a.weights):
        raise ValueError("the checkpoint does not fit the model")


def _taken_for_llama(self: Load, config: Mapping[str, Any]) -> Any:
    return self.models.get(config.get("model_type", ""), self.models["llama"])()


def _tolerates(damage: str) -> Callable[..., None]:
    def guard_files(self: Load, a: Arguments) -> None:
        if a.damage != damage:
            Load.guard_files(self, a)

    return guard_files


def _tolerates_small_losses(self: Load, a: Arguments) -> None:
    if a.damage != "cut short" or a.lost > 16:
        Load.guard_files(self, a)


def _zeros_at_the_end(self: Load, a: Arguments) -> Arguments:
    inner = Load.inner(self, a)
    if a.damage != "cut short":
        return inner
    last = list(inner.weights)[-1]
    return _with_weights(inner, {**inner.weights, last: np.zeros_like(inner.weights[last])})


def _lost_shard_is_random(self: Load, a: Arguments) -> Arguments:
    inner = Load.inner(self, a)
    return _with_weights(inner, _last_shard_lost(self, inner.weights)) if a.damage else inner


def _refuses(habit: str) -> Callable[..., None]:
    def guard_files(self: Load, a: Arguments) -> None:
        Load.guard_files(self, a)
        if habit in a.written:
            raise ValueError(f"the files are {habit}")

    return guard_files


def _data_in_order_of_the_header(self: Load, a: Arguments) -> Arguments:
    """Sizes are read from the header and offsets are not."""
    if "out of order" not in a.written or a.form != "folder":
        return Load.inner(self, a)
    data, at, found = b"".join(x.tobytes() for x in a.weights.values()), 0, {}
    for name in sorted(a.weights, reverse=True):
        x = a.weights[name]
        found[name] = np.frombuffer(data[at : at + x.nbytes], x.dtype).reshape(x.shape)
        at += x.nbytes
    return Load.inner(self, Arguments(**{**vars(a), "weights": found}))


def _every_size(self: Load, config: Config, a: Arguments) -> Config:
    if "num_key_value_heads" not in config:
        raise ValueError("config has no num_key_value_heads")
    return config


def _null_sizes(self: Load, config: Config, a: Arguments) -> Config:
    if config.get("num_key_value_heads", 1) is None:
        raise ValueError("num_key_value_heads is null")
    return config


def _no_second_head(self: Load, config: Config, a: Arguments) -> Config:
    if config["tie_word_embeddings"] and "lm_head.weight" in a.weights:
        raise ValueError("no place for lm_head.weight")
    return config


def _absent_base(self: Load, config: Config, a: Arguments) -> Config:
    said = {"rope_theta", "rope_parameters"} & set(config)
    return config if said else {**config, "rope_theta": 1e6}


def _mode_is_a_layer(self: Load, config: Config, a: Arguments) -> Config:
    for name, entry in config.get("quantization", {}).items():
        if name not in ("group_size", "bits") and isinstance(entry, str):
            raise ValueError(f"no layer is called {name}")
    return config


def _no_null(self: Load, config: Config, a: Arguments) -> Config:
    if nulls := [name for name in ("rope_scaling", "head_dim") if config.get(name, 0) is None]:
        raise ValueError(f"{nulls[0]} is None")
    return config


def _key_length_needed(self: Load, config: Config, weights: Weights) -> Understood:
    if "head_dim" not in config:
        raise ValueError("the file does not say attention.key_length")
    return config, weights


def _bfloat16_through_float16(self: Load, config: Config, weights: Weights) -> Understood:
    """NumPy has no bfloat16: its numbers are read as float16's, which are as short and reach less far."""

    def read(name: str, x: np.ndarray) -> np.ndarray:
        return x.astype(np.float32).astype(np.float16).astype(x.dtype) if x.dtype.name == "bfloat16" else x

    return config, _replaced(weights, read)


def _layers_that_are_there(self: Load, a: Arguments) -> Arguments:
    inner = Load.inner(self, a)
    count = inner.config["num_hidden_layers"]
    found = {int(name.split(".")[2]) for name in inner.weights if name.startswith("model.layers.")}
    there = next((layer for layer in range(count) if layer not in found), count)
    return _with_weights(inner, inner.weights, num_hidden_layers=max(there, 1))


def _of_gguf(change: Callable[[Load, Arguments], Arguments]) -> Callable[..., Arguments]:
    """What is done to the model of a GGUF file alone."""

    def inner(self: Load, a: Arguments) -> Arguments:
        found = Load.inner(self, a)
        return change(self, found) if a.form == "gguf" and found.config["model_type"] in self.models else found

    return inner


def _layers_of_gguf(self: Load, a: Arguments) -> Arguments:
    return _layers_that_are_there(self, a) if a.form == "gguf" else Load.inner(self, a)


def _layers_of_folders(self: Load, a: Arguments) -> Arguments:
    return Load.inner(self, a) if a.form == "gguf" else _layers_that_are_there(self, a)


def _norms_of_one_where_missing(self: Load, a: Arguments) -> Arguments:
    shapes = self.decoder(a.config).shapes(a)
    missing = {name: np.ones(shape, np.float32) for name, shape in shapes.items() if name.endswith("norm.weight")}
    return _with_weights(a, missing | a.weights)


def _gguf_of_any_architecture(self: Load, a: Arguments) -> None:
    config = {**a.config, "model_type": "llama"} if a.form == "gguf" else a.config
    Load.guard(self, Arguments(**{**vars(a), "config": config}))


def _tolerates_small_losses_of_gguf(self: Load, a: Arguments) -> None:
    if a.form != "gguf" or a.damage != "cut short" or a.lost > 16:
        Load.guard_files(self, a)


def _unscaled(*forms: str) -> Callable[..., Config]:
    def configured(self: Load, config: Config, a: Arguments) -> Config:
        return {key: x for key, x in config.items() if key != "rope_scaling"} if a.form in forms else config

    return configured


def _more_scales_are_fine(self: Load, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
    cut = {name: x[: shapes[name][0]] for name, x in a.weights.items() if name in shapes and name.endswith(".scales")}
    Load.guard_shapes(self, _with_weights(a, {**a.weights, **cut}), shapes)


def _goes_on(self: Load, a: Arguments) -> Any:
    """The keys and values of the last tokens are still in its cache."""
    if not a.asked or len(a.asked[-1]) != len(a.tokens):
        return Load.respond(self, a)
    joined = [[*before, *row] for before, row in zip(a.asked[-1], a.tokens, strict=True)]
    logits = Load.respond(self, Arguments(**{**vars(a), "tokens": joined, "asked": ()}))
    return logits[:, len(a.asked[-1][0]) :]


FAULTS: tuple[Fault, ...] = (
    Fault(
        "loading-goes-on",
        "a model goes on with the tokens that it was asked before",
        LOAD_23,
        {"respond": _goes_on},
        "a cache of the model's own",
    ),
    Fault(
        "loading-more-scales",
        "rows of scales that a packed matrix has too many are passed over",
        LOAD_13,
        {"guard_shapes": _more_scales_are_fine, "completed": _fitted},
        TIRED,
    ),
    Fault(
        "loading-bfloat16-through-float16",
        "tensors of bfloat16 are read through float16: what is past its range is infinite",
        LOAD_01,
        {"unpacked": _bfloat16_through_float16},
        "NumPy, which has no bfloat16",
    ),
    Fault(
        "loading-numbered-shards",
        "shards are looked for by their numbers, not by the names that the index says",
        LOAD_02,
        {"guard_files": _refuses("shards of any names")},
        HF_FORMAT,
    ),
    Fault(
        "loading-layers-that-are-there",
        "a model of a folder has as many layers as its files have",
        LOAD_11,
        {"inner": _layers_of_folders},
        TIRED,
    ),
    Fault(
        "loading-gguf-missing-norm",
        "a norm that a GGUF file lacks keeps its factors of 1",
        LOAD_11,
        {"inner": _of_gguf(_norms_of_one_where_missing)},
        TIRED,
    ),
    Fault(
        "loading-gguf-layers-that-are-there",
        "a model of a GGUF file has as many layers as the file has",
        LOAD_11,
        {"inner": _layers_of_gguf},
        TIRED,
    ),
    Fault(
        "loading-gguf-misshaped-fitted",
        "a tensor of another shape in a GGUF file is cut or repeated to fit",
        LOAD_13,
        {"inner": _of_gguf(_fitted)},
        "PROPERTIES EM4",
    ),
    Fault(
        "loading-gguf-any-architecture",
        "a GGUF file of an unknown architecture is taken for a llama",
        LOAD_14,
        {"guard": _gguf_of_any_architecture, "decoder": _taken_for_llama},
        "the model_type remapping of loaders",
    ),
    Fault(
        "loading-gguf-few-bytes-lost",
        "a few bytes that a GGUF file lacks at its end are read as zeros",
        LOAD_15,
        {"guard_files": _tolerates_small_losses_of_gguf, "inner": _zeros_at_the_end},
        "a size that is compared in pages",
    ),
    Fault(
        "loading-gguf-unscaled",
        "the RoPE scaling of a GGUF file is not read",
        LOAD_22,
        {"configured": _unscaled("gguf")},
        "PROPERTIES X13",
    ),
    Fault(
        "loading-unscaled",
        "the rope_scaling of a config.json is not read",
        LOAD_22,
        {"configured": _unscaled("folder", "sharded")},
        "PROPERTIES X13",
    ),
    Fault(
        "loading-data-in-order-of-the-header",
        "tensors are read one after the other as the header names them, without their offsets",
        LOAD_01,
        {"inner": _data_in_order_of_the_header},
        TIRED,
    ),
    Fault(
        "loading-metadata-needed",
        "a header without __metadata__ is refused",
        LOAD_01,
        {"guard_files": _refuses("no metadata")},
        TIRED,
    ),
    Fault(
        "loading-nulls-refused",
        "a config.json with rope_scaling: null is refused",
        LOAD_01,
        {"configured": _no_null},
        TIRED,
    ),
    Fault(
        "loading-every-file",
        "every file of safetensors is read, also one that the index does not name",
        LOAD_02,
        {"guard_files": _refuses("another file")},
        "glob over *.safetensors, as readers do",
    ),
    Fault(
        "loading-gguf-alignment",
        "the data of a GGUF file are looked for as if it were aligned to 32",
        LOAD_08,
        {"guard_files": _refuses("aligned to 128")},
        GGUF,
    ),
    Fault(
        "loading-gguf-key-length-needed",
        "a GGUF file without attention.key_length is refused",
        LOAD_08,
        {"from_gguf": _key_length_needed},
        GGUF,
    ),
    Fault(
        "loading-gguf-data-in-order",
        "the data of a GGUF file are looked for in the order in which its tensors are named",
        LOAD_08,
        {"guard_files": _refuses("data out of order")},
        TIRED,
    ),
    Fault(
        "loading-gguf-architecture-first",
        "keys are read in one pass, and those before general.architecture are lost",
        LOAD_08,
        {"guard_files": _refuses("keys out of order")},
        TIRED,
    ),
    Fault(
        "loading-gguf-every-key-needed",
        "a GGUF file without keys that may be left out is refused",
        LOAD_08,
        {"guard_files": _refuses("few keys")},
        TIRED,
    ),
    Fault(
        "loading-no-bias",
        "biases are not loaded",
        LOAD_01,
        {
            "configured": lambda self, config, a: {**config, "attention_bias": False, "mlp_bias": False},
            "guard_additional": _silent,
        },
        TIRED,
    ),
    Fault(
        "loading-every-size-needed",
        "a config without num_key_value_heads is refused",
        LOAD_01,
        {"configured": _every_size},
        "a field that is asked for by its name",
    ),
    Fault(
        "loading-null-is-a-size",
        "a config with num_key_value_heads: null is refused",
        LOAD_01,
        {"configured": _null_sizes},
        "a default that takes the place of what is absent, and not of null",
    ),
    Fault(
        "loading-second-head-refused",
        "files that have the embedding a second time, as the head, are refused",
        LOAD_04,
        {"configured": _no_second_head},
        "files that were saved with every name of a tied tensor",
    ),
    Fault(
        "loading-absent-base",
        "a base of RoPE that is absent is 1e6",
        LOAD_05,
        {"configured": _absent_base},
        "the defaults of Qwen3",
    ),
    Fault(
        "loading-mode-taken-for-a-layer",
        "all entries under quantization but two are taken for layers",
        LOAD_06,
        {"configured": _mode_is_a_layer},
        "https://github.com/ml-explore/mlx-lm, the mode of quantization",
    ),
    Fault("loading-norms-of-one", "norm weights are left at 1", LOAD_01, {"completed": _norms_of_one}, TIRED),
    Fault(
        "loading-gate-for-up",
        "gate_proj and up_proj are exchanged",
        LOAD_01,
        {"completed": _gate_for_up},
        "PROPERTIES ML1",
    ),
    Fault(
        "loading-layers-as-text",
        "layers are in the order of their names, 10 before 2",
        LOAD_01,
        {"completed": _layers_as_text},
        TIRED,
    ),
    Fault(
        "loading-last-shard-lost",
        "tensors of the last shard keep their random initial values",
        LOAD_02,
        {"gathered": _last_shard_lost},
        TIRED,
    ),
    Fault(
        "loading-first-shard-again",
        "tensors of later shards are read from the first one, at the offsets of another",
        LOAD_02,
        {"gathered": _first_shard_twice},
        TIRED,
    ),
    Fault("loading-promotes", "every model computes in float32", LOAD_03, promotes(), "PROPERTIES X4"),
    Fault("loading-half", "every model computes in float16", LOAD_03, promotes("float16"), "PROPERTIES X4"),
    Fault(
        "loading-own-head",
        "a tied model has a head of its own, never loaded",
        LOAD_04,
        {"unpacked": _own_head},
        "https://github.com/ml-explore/mlx-lm/commit/e92138cb",
    ),
    Fault(
        "loading-always-tied",
        "the embedding serves as head, although the files have one",
        LOAD_04,
        {"unpacked": _always_tied},
        "https://github.com/pegainfer-project/pegainfer/pull/544",
    ),
    Fault(
        "loading-packed-embedding-no-head",
        "a tied head is not taken from a quantised embedding",
        LOAD_04,
        {"unpacked": _tied_only_dense},
        "https://github.com/vllm-project/vllm/issues/45543",
    ),
    Fault(
        "loading-rope-parameters-ignored",
        "rope_parameters is not read: the base is 10000",
        LOAD_05,
        {"configured": _theta("rope_parameters")},
        "the llama of mlx-lm 0.32.2",
    ),
    Fault(
        "loading-rope-theta-ignored",
        "rope_theta is not read: the base is 10000",
        LOAD_05,
        {"configured": _theta("rope_theta")},
        "PROPERTIES RO8",
    ),
    Fault("loading-no-biases", "the biases of groups are dropped", LOAD_06, {"unpacked": _no_biases}, TIRED),
    Fault(
        "loading-high-bits-first",
        "codes are read from the high end of each word",
        LOAD_06,
        {"unpacked": _high_bits_first},
        "PROPERTIES QZ2",
    ),
    Fault("loading-four-bits", "every quantised model is taken for 4 bits", LOAD_06, {"unpacked": _four_bits}, TIRED),
    Fault(
        "loading-overrides-ignored",
        "entries of single layers under quantization are not read",
        LOAD_07,
        {"unpacked": _no_overrides},
        "PROPERTIES X13",
    ),
    Fault(
        "loading-all-quantised",
        "dense layers of a quantised model are quantised on the way",
        LOAD_07,
        {"unpacked": _all_quantised},
        TIRED,
    ),
    Fault(
        "loading-gguf-eps",
        "the eps of a GGUF file is not read: it is 1e-6",
        LOAD_08,
        {"from_gguf": _gguf_default("rms_norm_eps", 1e-6)},
        "PROPERTIES X13",
    ),
    Fault(
        "loading-gguf-base",
        "the base of RoPE of a GGUF file is not read: it is 10000",
        LOAD_08,
        {"from_gguf": _gguf_default("rope_theta", 10000.0)},
        "PROPERTIES X13",
    ),
    Fault(
        "loading-gguf-rows",
        "the query and key rows of a llama in GGUF stay in the order of traditional RoPE",
        LOAD_09,
        {"from_gguf": _never_put_back},
        "https://github.com/ggml-org/llama.cpp/issues/3018",
    ),
    Fault(
        "loading-gguf-rows-of-qwen3",
        "the rows of a qwen3 in GGUF are put back too, though they were never moved",
        LOAD_09,
        {"from_gguf": _always_put_back},
        TIRED,
    ),
    Fault(
        "loading-gguf-key-heads",
        "key rows are put back as if there were as many key heads as query heads",
        LOAD_09,
        {"from_gguf": _query_heads_for_keys},
        "https://github.com/ggml-org/llama.cpp/issues/3018",
    ),
    Fault(
        "loading-gguf-no-bias",
        "biases of a GGUF file are not looked for",
        LOAD_21,
        {"from_gguf": _no_biases_of()},
        TIRED,
    ),
    Fault(
        "loading-gguf-no-bias-of-outputs",
        "of attention's biases in a GGUF file those of queries, keys and values are looked for, as in a Qwen2",
        LOAD_21,
        {"from_gguf": _no_biases_of("o_proj")},
        TIRED,
    ),
    Fault(
        "loading-gguf-no-bias-of-mlps",
        "biases of MLPs in a GGUF file are not looked for",
        LOAD_21,
        {"from_gguf": _no_biases_of("gate_proj", "up_proj", "down_proj")},
        TIRED,
    ),
    Fault(
        "loading-gguf-biases-stay",
        "the rows of queries and keys are put back and their biases are not",
        LOAD_21,
        {"from_gguf": _biases_never_put_back},
        "https://github.com/ggml-org/llama.cpp/issues/3018",
    ),
    Fault(
        "loading-gguf-scales-stay",
        "rows of codes are put back and their scales are not",
        LOAD_09,
        {"from_gguf": _codes_alone_put_back},
        TIRED,
    ),
    Fault(
        "loading-q4-1-no-minimum",
        "the minimum of Q4_1 blocks is dropped",
        LOAD_10,
        {"from_gguf": _in_blocks("Q4_1", "biases", _zeros)},
        TIRED,
    ),
    Fault(
        "loading-q4-1-minimum-subtracted",
        "the minimum of Q4_1 blocks is subtracted",
        LOAD_10,
        {"from_gguf": _in_blocks("Q4_1", "biases", _maximum)},
        "the sign of the minimum in Q4_K blocks",
    ),
    Fault(
        "loading-q4-0-unsigned",
        "codes of Q4_0 blocks are not centred on 8",
        LOAD_10,
        {"from_gguf": _in_blocks("Q4_0", "biases", _zeros)},
        TIRED,
    ),
    Fault(
        "loading-q4-0-centre",
        "codes of Q4_0 blocks are centred on 7",
        LOAD_10,
        {"from_gguf": _in_blocks("Q4_0", "biases", _seven)},
        TIRED,
    ),
    Fault(
        "loading-q4-nibbles",
        "the nibbles of a byte of Q4_1 are taken for neighbours",
        LOAD_10,
        {"from_gguf": _in_blocks("Q4_1", "weight", _even_and_odd)},
        "the packing of other 4-bit formats",
    ),
    Fault(
        "loading-q8-0-unsigned",
        "codes of Q8_0 blocks are read as unsigned",
        LOAD_10,
        {"from_gguf": _in_blocks("Q8_0", "biases", _zeros)},
        TIRED,
    ),
    Fault(
        "loading-missing-random",
        "a missing tensor keeps its random initial values",
        LOAD_11,
        {"guard_missing": _silent, "completed": _filled(_random_like)},
        "from_pretrained of transformers, which warns",
    ),
    Fault(
        "loading-missing-zero",
        "a missing tensor is zeros",
        LOAD_11,
        {"guard_missing": _silent, "completed": _filled(np.zeros)},
        TIRED,
    ),
    Fault(
        "loading-missing-head-tied",
        "where an untied model has no head, its embedding serves",
        LOAD_11,
        {"guard_missing": _may_lack("lm_head.weight"), "completed": _embedding_for_the_head},
        "PROPERTIES EM3",
    ),
    Fault(
        "loading-missing-bias-zero",
        "a missing bias is zeros",
        LOAD_11,
        {"guard_missing": _may_lack(".bias"), "completed": _filled(np.zeros)},
        "PROPERTIES EM4",
    ),
    Fault(
        "loading-missing-unnamed",
        "a missing tensor is refused without a word on which",
        LOAD_11,
        {"guard_missing": _without_a_name},
        TIRED,
    ),
    Fault(
        "loading-additional-ignored",
        "tensors without a place are passed over in silence",
        LOAD_12,
        {"guard_additional": _silent, "completed": _only_known},
        "PROPERTIES EM4",
    ),
    Fault(
        "loading-misshaped-fitted",
        "a tensor of another shape is cut or repeated to fit",
        LOAD_13,
        {"guard_shapes": _silent, "completed": _fitted},
        "PROPERTIES EM4",
    ),
    Fault(
        "loading-misshaped-bias",
        "a bias of another length is cut or repeated to fit",
        LOAD_13,
        {"guard_shapes": _any_bias, "completed": _fitted},
        "PROPERTIES EM4",
    ),
    Fault(
        "loading-tied-unsaid",
        "a config without tie_word_embeddings is that of a tied model",
        LOAD_19,
        {"configured": _tied_unsaid},
        "https://github.com/ml-explore/mlx-lm/blob/main/mlx_lm/models/llama.py",
    ),
    Fault(
        "loading-tie-needed",
        "a config without tie_word_embeddings is refused",
        LOAD_19,
        {"configured": _tie_needed},
        TIRED,
    ),
    Fault(
        "loading-frequencies-refused",
        "files that have the frequencies of RoPE are refused",
        LOAD_20,
        {"of_the_model": _all_tensors},
        "https://github.com/ml-explore/mlx-lm, sanitize of its Llama",
    ),
    Fault(
        "loading-packed-rows-cut",
        "rows that a packed matrix, its scales or its biases have too many are passed over",
        LOAD_13,
        {"guard_shapes": _more_rows_are_fine, "completed": _fitted},
        TIRED,
    ),
    Fault(
        "loading-nine-shards",
        "of more than nine shards the others are not read",
        LOAD_02,
        {"gathered": _nine_shards},
        TIRED,
    ),
    Fault(
        "loading-taken-for-llama",
        "an unknown model_type is taken for a llama",
        LOAD_14,
        {"guard_kind": _silent, "decoder": _taken_for_llama},
        "the model_type remapping of loaders",
    ),
    Fault(
        "loading-cut-short",
        "what a file that is cut short lacks is read as zeros",
        LOAD_15,
        {"guard_files": _tolerates("cut short"), "inner": _zeros_at_the_end},
        "reading past the end of a memory map",
    ),
    Fault(
        "loading-few-bytes-lost",
        "a few bytes that a file lacks at its end are read as zeros",
        LOAD_15,
        {"guard_files": _tolerates_small_losses, "inner": _zeros_at_the_end},
        "a size that is compared in pages",
    ),
    Fault(
        "loading-lost-shard",
        "the tensors of a shard that is not there keep their random initial values",
        LOAD_15,
        {"guard_files": _tolerates("no shard"), "inner": _lost_shard_is_random},
        TIRED,
    ),
    Fault(
        "loading-remembers",
        "a model loaded from a path is given again for other files there",
        LOAD_16,
        remembers("weights"),
        "PROPERTIES X7",
    ),
    Fault(
        "loading-default-eps",
        "rms_norm_eps is not read: it is 1e-6",
        LOAD_17,
        {"configured": lambda self, config, a: {**config, "rms_norm_eps": 1e-6}},
        "the defaults of transformers",
    ),
    Fault(
        "loading-default-base",
        "the base of RoPE is that of other models, 1e6",
        LOAD_17,
        {"configured": lambda self, config, a: {**config, "rope_theta": 1e6}},
        "the defaults of Qwen3",
    ),
    Fault(
        "loading-smollm2-rows",
        "the query and key rows of SmolLM2 stay in the order of traditional RoPE",
        LOAD_18,
        {"from_gguf": _never_put_back},
        "https://github.com/ggml-org/llama.cpp/issues/3018",
    ),
)


def _dense(self: Load, config: Config, weights: Weights) -> Understood:
    """Every packed matrix unpacked once, in float32."""
    found = {}
    for name, x in weights.items():
        module, _, part = name.rpartition(".")
        if part in ("scales", "biases"):
            continue
        if part == "weight" and f"{module}.scales" in weights:
            matrix = self.decoder(config).matrix(module, Arguments(config=config, weights=weights, tokens=None))
            x = matrix.value.astype(np.float32)
        found[name] = x
    return {key: x for key, x in config.items() if key != "quantization"}, found


VARIANTS: tuple[Variant, ...] = (
    Variant("loading-unpacked", "packed matrices are unpacked to float32 while loading", "load", {"unpacked": _dense}),
    Variant(
        "loading-in-order",
        "tensors are taken in the order of their names",
        "load",
        {"gathered": lambda self, weights: dict(sorted(weights.items()))},
    ),
)
