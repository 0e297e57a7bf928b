"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/loading*.py`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from inferspec.spec.changes.decoder_layers import past_the_ninth
from inferspec.spec.contract import Arguments, Change
from inferspec.spec.loading import Config, Load, Weights
from inferspec.spec.mistakes import first_of
from inferspec.spec.numerics import f64, is_float, numpy_dtype, round_to

Understood = tuple[Config, Weights]


def random_like(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """What an initialiser puts where nothing was loaded."""
    return np.random.default_rng(0).normal(scale=0.02, size=shape).astype(np.float32).astype(dtype)


def of_floats(weights: Weights) -> np.dtype[Any]:
    return next(x.dtype for name, x in weights.items() if name.endswith("norm.weight"))


def replaced(weights: Weights, change: Callable[[str, np.ndarray], np.ndarray]) -> Weights:
    return {name: change(name, x) for name, x in weights.items()}


def with_weights(a: Arguments, weights: Weights, **config: Any) -> Arguments:
    return Arguments(config={**a.config, **config}, weights=weights, tokens=a.tokens)


def _said(config: Config) -> str | None:
    """The dtype of a config, under its newer name or its older one."""
    return config.get("dtype") or config.get("torch_dtype")


def in_the_configs_dtype(self: Load, a: Arguments) -> Arguments:
    """Tensors are cast to the dtype that the config says; packed words stay what they are."""
    dtype = _said(a.config)
    if dtype is None:
        return a
    return with_weights(a, replaced(a.weights, lambda name, x: round_to(x, dtype) if is_float(x.dtype) else x))


def dtype_of_the_config(self: Load, a: Arguments) -> str:
    return (a.form != "gguf" and _said(a.config)) or Load.result_dtype(self, a)


def bits_of_the_configs_dtype(self: Load, a: Arguments) -> Arguments:
    """The bytes of the files are read as numbers of the dtype that the config says, where those are as long."""
    dtype = numpy_dtype(_said(a.config) or "float32")

    def read(name: str, x: np.ndarray) -> np.ndarray:
        return x.view(dtype) if is_float(x.dtype) and x.dtype.itemsize == dtype.itemsize else x

    return with_weights(a, replaced(a.weights, read))


def words_of_the_configs_dtype(self: Load, a: Arguments) -> Arguments:
    """All tensors are cast to the dtype that the config says, and what was packed words are such again."""
    dtype = _said(a.config)
    if dtype is None:
        return a

    def cast(name: str, x: np.ndarray) -> np.ndarray:
        whole = f64(round_to(x, dtype))
        return whole.clip(0, 2**32 - 1).astype(x.dtype) if x.dtype == np.uint32 else whole.astype(x.dtype)

    return with_weights(a, replaced(a.weights, cast))


def two_fields_of_a_layer(self: Load, config: Config, a: Arguments) -> Config:
    """An entry of a layer has a group size and bits, and nothing else."""
    entries = (said for said in (config.get("quantization") or {}).values() if isinstance(said, dict))
    if a.form != "gguf" and any(said.keys() - {"group_size", "bits"} for said in entries):
        raise TypeError("an entry of a layer has unexpected fields")
    return config


def norms_of_one(self: Load, a: Arguments) -> Arguments:
    return with_weights(a, replaced(a.weights, lambda name, x: np.ones_like(x) if name.endswith("norm.weight") else x))


def gate_for_up(self: Load, a: Arguments) -> Arguments:
    exchanged = {"gate_proj": "up_proj", "up_proj": "gate_proj"}

    def other(name: str) -> str:
        parts = name.split(".")
        return ".".join(exchanged.get(part, part) for part in parts)

    return with_weights(a, {other(name): x for name, x in a.weights.items()})


def layers_as_text(self: Load, a: Arguments) -> Arguments:
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
    return with_weights(a, weights)


def _shards(weights: Weights) -> int:
    """As many as the kit writes."""
    return (2, 3, 11)[len(weights) % 3]


def last_shard_lost(self: Load, weights: Weights) -> Weights:
    count = _shards(weights)
    lost = set(list(weights)[count - 1 :: count])
    return {
        name: random_like(x.shape, x.dtype) if name in lost and is_float(x.dtype) else x for name, x in weights.items()
    }


def nine_shards(self: Load, weights: Weights) -> Weights:
    """Where a model has ten shards and more, what is in those keeps its random values."""
    names, count = list(weights), _shards(weights)
    lost = {name for shard in range(9, count) for name in names[shard::count]}
    return {
        name: random_like(x.shape, x.dtype) if name in lost and is_float(x.dtype) else x for name, x in weights.items()
    }


def first_shard_twice(self: Load, weights: Weights) -> Weights:
    """A tensor that a later shard holds is taken from the first one where that has one of its shape."""
    count, names = _shards(weights), list(weights)
    first = names[::count]
    found = dict(weights)
    for name in names:
        alike = [other for other in first if weights[other].shape == weights[name].shape]
        if name not in first and alike:
            found[name] = weights[alike[0]]
    return found


def own_head(self: Load, config: Config, weights: Weights) -> Understood:
    """A head of random numbers, though the embedding is the head."""
    if not config["tie_word_embeddings"]:
        return config, weights
    shape = (config["vocab_size"], config["hidden_size"])
    head = {"lm_head.weight": random_like(shape, of_floats(weights))}
    return {**config, "tie_word_embeddings": False}, {**weights, **head}


def spare_head(self: Load, config: Config, weights: Weights) -> Understood:
    """A head that is in the files is the head, whatever the config says."""
    return {
        **config,
        "tie_word_embeddings": bool(config["tie_word_embeddings"]) and "lm_head.weight" not in weights,
    }, weights


def always_tied(self: Load, config: Config, weights: Weights) -> Understood:
    kept = {name: x for name, x in weights.items() if not name.startswith("lm_head.")}
    return {**config, "tie_word_embeddings": True}, kept


def tied_only_dense(self: Load, config: Config, weights: Weights) -> Understood:
    """A tied head is packed with the embedding's codes, and with scales of its own that were never loaded."""
    if "model.embed_tokens.scales" not in weights:
        return config, weights
    return own_head(self, config, weights)


def theta(style: str) -> Callable[..., Config]:
    def configured(self: Load, config: Config, a: Arguments) -> Config:
        if style not in config:
            return config
        return {**{key: x for key, x in config.items() if key != style}, "rope_theta": 10000.0}

    return configured


def no_biases(self: Load, config: Config, weights: Weights) -> Understood:
    return config, replaced(weights, lambda name, x: np.zeros_like(x) if name.endswith(".biases") else x)


def high_bits_first(self: Load, config: Config, weights: Weights) -> Understood:
    def turned(name: str, x: np.ndarray) -> np.ndarray:
        if x.dtype != np.uint32:
            return x
        module = name.removesuffix(".weight")
        _, bits = self.decoder(config).packing(module, config)
        shifts = np.arange(0, 32, bits, dtype=np.uint32)
        codes = x[..., None] >> shifts & np.uint32(2**bits - 1)
        return np.bitwise_or.reduce(codes[..., ::-1] << shifts, axis=-1).astype(np.uint32)

    return config, replaced(weights, turned)


def four_bits(self: Load, config: Config, weights: Weights) -> Understood:
    if "quantization" not in config:
        return config, weights
    return {**config, "quantization": {**config["quantization"], "bits": 4}}, weights


def no_overrides(self: Load, config: Config, weights: Weights) -> Understood:
    if "quantization" not in config:
        return config, weights
    plain = {key: x for key, x in config["quantization"].items() if key in ("group_size", "bits")}
    return {**config, "quantization": plain}, weights


def overrides_of_ten_layers(self: Load, config: Config, weights: Weights) -> Understood:
    if "quantization" not in config:
        return config, weights
    found = {key: x for key, x in config["quantization"].items() if not past_the_ninth(key)}
    return {**config, "quantization": found}, weights


def packed_without_bias(self: Load, config: Config, weights: Weights) -> Understood:
    """Of a packed layer the biases of its groups are read, and the bias of its outputs is not."""

    def read(name: str, x: np.ndarray) -> np.ndarray:
        lost = name.endswith(".bias") and f"{name.removesuffix('.bias')}.scales" in weights
        return np.zeros_like(x) if lost else x

    return config, replaced(weights, read)


def embedding_as_the_model(self: Load, config: Config, weights: Weights) -> Understood:
    """The embedding has the bits of the model, whatever its own entry says."""
    if "quantization" not in config:
        return config, weights
    entries = {name: x for name, x in config["quantization"].items() if name != "model.embed_tokens"}
    return {**config, "quantization": entries}, weights


def all_quantised(self: Load, config: Config, weights: Weights) -> Understood:
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

    return config, replaced(weights, coarse)


def tied_unsaid(self: Load, config: Config, a: Arguments) -> Config:
    return {"tie_word_embeddings": True, **config}


def tie_needed(self: Load, config: Config, a: Arguments) -> Config:
    if "tie_word_embeddings" not in config:
        raise KeyError("tie_word_embeddings")
    return config


def all_tensors(self: Load, weights: Weights) -> Weights:
    return weights


def ten_layers_passed_over(self: Load, weights: Weights) -> Weights:
    return {name: x for name, x in weights.items() if not re.search(r"layers\.\d\.self_attn\.rotary_emb", name)}


def every_size(self: Load, config: Config, a: Arguments) -> Config:
    if "num_key_value_heads" not in config:
        raise ValueError("config has no num_key_value_heads")
    return config


def null_sizes(self: Load, config: Config, a: Arguments) -> Config:
    if config.get("num_key_value_heads", 1) is None:
        raise ValueError("num_key_value_heads is null")
    return config


def no_second_head(self: Load, config: Config, a: Arguments) -> Config:
    if config["tie_word_embeddings"] and "lm_head.weight" in a.weights:
        raise ValueError("no place for lm_head.weight")
    return config


def absent_base(self: Load, config: Config, a: Arguments) -> Config:
    said = {"rope_theta", "rope_parameters"} & set(config)
    return config if said else {**config, "rope_theta": 1e6}


def mode_is_a_layer(self: Load, config: Config, a: Arguments) -> Config:
    for name, entry in config.get("quantization", {}).items():
        if name not in ("group_size", "bits") and isinstance(entry, str):
            raise ValueError(f"no layer is called {name}")
    return config


def entries_have_bits(self: Load, config: Config, a: Arguments) -> Config:
    """The bits of a layer are looked for in its own entry wherever there is one and it is not false."""
    for name, entry in config.get("quantization", {}).items():
        if entry is True:
            raise TypeError(f"the entry of {name} has no bits")
    return config


def entries_of_layers_alone(self: Load, config: Config, a: Arguments) -> Config:
    """An entry of what has no weights to pack, such as a norm, is an unknown layer's."""
    for name in config.get("quantization", {}):
        if "." in name and not name.endswith(("proj", "embed_tokens")):
            raise ValueError(f"{name} is no layer that could be packed")
    return config


def frequencies_of_mlx(self: Load, a: Arguments) -> None:
    """What mlx-lm has written is taken as it is: nothing that older files have is in it."""
    Load.guard_files(self, a)
    if "format of MLX" in a.written and any(name.endswith("inv_freq") for name in a.weights):
        raise ValueError("no place for rotary_emb.inv_freq")


def _begins_as_qwen3(config: Mapping[str, Any]) -> Config:
    kind = config.get("model_type") or ""
    return {**config, "model_type": "qwen3" if kind.startswith("qwen3") else kind}


def any_qwen3(self: Load, config: Mapping[str, Any]) -> None:
    Load.guard_kind(self, _begins_as_qwen3(config))


def taken_for_qwen3(self: Load, config: Mapping[str, Any]) -> Any:
    return Load.decoder(self, _begins_as_qwen3(config))


def no_scaling_but_null(self: Load, config: Config, a: Arguments) -> Config:
    if config.get("rope_scaling"):
        raise ValueError("rope_scaling has no factor")
    return config


def one_name_of_the_kind(self: Load, config: Config, a: Arguments) -> Config:
    if {"type", "rope_type"} <= set(config.get("rope_scaling") or {}):
        raise ValueError("rope_scaling has a duplicate field rope_type")
    return config


def base_beside_parameters(self: Load, config: Config, a: Arguments) -> Config:
    """Where there are rope_parameters the base is looked for there alone."""
    if "rope_parameters" not in config:
        return config
    return {**config, "rope_theta": config["rope_parameters"].get("rope_theta", 10000.0)}


def bfloat16_through_float16(self: Load, config: Config, weights: Weights) -> Understood:
    """NumPy has no bfloat16: its numbers are read as float16's, which are as short and reach less far."""

    def read(name: str, x: np.ndarray) -> np.ndarray:
        return x.astype(np.float32).astype(np.float16).astype(x.dtype) if x.dtype.name == "bfloat16" else x

    return config, replaced(weights, read)


def layers_that_are_there(self: Load, a: Arguments) -> Arguments:
    inner = Load.inner(self, a)
    count = inner.config["num_hidden_layers"]
    found = {int(name.split(".")[2]) for name in inner.weights if name.startswith("model.layers.")}
    there = next((layer for layer in range(count) if layer not in found), count)
    return with_weights(inner, inner.weights, num_hidden_layers=max(there, 1))


def layers_of_folders(self: Load, a: Arguments) -> Arguments:
    return Load.inner(self, a) if a.form == "gguf" else layers_that_are_there(self, a)


def copies_taken(of_first: bool) -> Callable[[Load, Arguments], Arguments]:
    """All that the files of an index have is read, and of two tensors of a name the one of the last file is taken, or of the first."""

    def inner(self: Load, a: Arguments) -> Arguments:
        if "copies elsewhere" not in a.written or a.form != "sharded":
            return Load.inner(self, a)
        names = list(a.weights)
        count = (2, 3, 11)[len(names) % 3]
        file = names[count - 1 if of_first else 0 :: count]
        name = next((name for name in file if "proj.weight" in name), file[0])
        read = {**a.weights, name: np.flip(a.weights[name])}
        return Load.inner(self, Arguments(**{**vars(a), "weights": read}))

    return inner


def of_the_last(self: Load, a: Arguments) -> Arguments:
    """What was loaded lies in one place for all models: the one that was loaded last answers for each."""
    last = {} if a.beside is None else dict(a.beside)
    return Load.inner(self, Arguments(**{**vars(a), **last}))


def goes_on(self: Load, a: Arguments) -> Any:
    """The keys and values of the last tokens are still in its cache."""
    if not a.asked or len(a.asked[-1]) != len(a.tokens):
        return Load.respond(self, a)
    joined = [[*before, *row] for before, row in zip(a.asked[-1], a.tokens, strict=True)]
    logits = Load.respond(self, Arguments(**{**vars(a), "tokens": joined, "asked": ()}))
    return logits[:, len(a.asked[-1][0]) :]


def goes_on_of(form: str) -> Callable[[Load, Arguments], Any]:
    return lambda self, a: goes_on(self, a) if a.form == form else Load.respond(self, a)


def _shapes(a: Arguments) -> tuple[Any, ...]:
    """What tells files of one path apart, to who does not look into them."""
    return tuple(sorted((name, x.shape) for name, x in a.weights.items()))


def remembers_files_of(form: str) -> Callable[[Load, Arguments], Arguments]:
    """Tensors are kept of files of this form."""

    def inner(self: Load, a: Arguments) -> Arguments:
        if a.form == form:
            a = Arguments(**{**vars(a), "weights": first_of(self, _shapes(a), a.weights)})
        return Load.inner(self, a)

    return inner


def remembers_configs(self: Load, config: Config, a: Arguments) -> Config:
    return dict(first_of(self, _shapes(a), config)) if a.form != "gguf" else config


def former_behind_a_refusal() -> Change:
    """What is loaded is put in the place of the former model when all of it is read; after an error nobody looks for a newer one."""

    def guard(self: Load, a: Arguments) -> None:
        try:
            Load.guard(self, a)
        except ValueError:
            first_of(self, "refused", []).append(True)
            raise

    def inner(self: Load, a: Arguments) -> Arguments:
        refused, former = first_of(self, "refused", []), first_of(self, "former", {})
        if refused and _shapes(a) in former:
            a = Arguments(**{**vars(a), "weights": former[_shapes(a)]})
        former[_shapes(a)] = a.weights
        return Load.inner(self, a)

    def respond(self: Load, a: Arguments) -> Any:
        result = Load.respond(self, a)
        first_of(self, "refused", []).clear()
        return result

    return {"guard": guard, "inner": inner, "respond": respond}


def dense(self: Load, config: Config, weights: Weights) -> Understood:
    """Every packed matrix unpacked once, in float32."""
    found = {}
    for name, x in weights.items():
        module, _, part = name.rpartition(".")
        packed = f"{module}.scales" in weights
        if packed and part in ("scales", "biases"):
            continue
        if packed and part == "weight":
            matrix = self.decoder(config).matrix(module, Arguments(config=config, weights=weights, tokens=None))
            x = matrix.value.astype(np.float32)
        found[name] = x
    return {key: x for key, x in config.items() if key != "quantization"}, found
