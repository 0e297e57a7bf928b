"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/loading*.py`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments
from inferspec.spec.loading import (
    FORMS,
    ROPE_FACTORS,
    Config,
    Load,
    Weights,
)
from inferspec.spec.numerics import f64, is_float, numpy_dtype, round_to
from inferspec.spec.rope_scaling import LENGTH, PLACES

Understood = tuple[Config, Weights]


def random_like(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """What an initialiser puts where nothing was loaded."""
    return np.random.default_rng(0).normal(scale=0.02, size=shape).astype(np.float32).astype(dtype)


def _of_floats(weights: Weights) -> np.dtype[Any]:
    return next(x.dtype for name, x in weights.items() if name.endswith("norm.weight"))


def _replaced(weights: Weights, change: Callable[[str, np.ndarray], np.ndarray]) -> Weights:
    return {name: change(name, x) for name, x in weights.items()}


def _with_weights(a: Arguments, weights: Weights, **config: Any) -> Arguments:
    return Arguments(config={**a.config, **config}, weights=weights, tokens=a.tokens)


# folders


def _said(config: Config) -> str | None:
    """The dtype of a config, under its newer name or its older one."""
    return config.get("dtype") or config.get("torch_dtype")


def in_the_configs_dtype(self: Load, a: Arguments) -> Arguments:
    """Tensors are cast to the dtype that the config says; packed words stay what they are."""
    dtype = _said(a.config)
    if dtype is None:
        return a
    return _with_weights(a, _replaced(a.weights, lambda name, x: round_to(x, dtype) if is_float(x.dtype) else x))


def dtype_of_the_config(self: Load, a: Arguments) -> str:
    return (a.form != "gguf" and _said(a.config)) or Load.result_dtype(self, a)


def bits_of_the_configs_dtype(self: Load, a: Arguments) -> Arguments:
    """The bytes of the files are read as numbers of the dtype that the config says, where those are as long."""
    dtype = numpy_dtype(_said(a.config) or "float32")

    def read(name: str, x: np.ndarray) -> np.ndarray:
        return x.view(dtype) if is_float(x.dtype) and x.dtype.itemsize == dtype.itemsize else x

    return _with_weights(a, _replaced(a.weights, read))


def words_of_the_configs_dtype(self: Load, a: Arguments) -> Arguments:
    """All tensors are cast to the dtype that the config says, and what was packed words are such again."""
    dtype = _said(a.config)
    if dtype is None:
        return a

    def cast(name: str, x: np.ndarray) -> np.ndarray:
        whole = f64(round_to(x, dtype))
        return whole.clip(0, 2**32 - 1).astype(x.dtype) if x.dtype == np.uint32 else whole.astype(x.dtype)

    return _with_weights(a, _replaced(a.weights, cast))


def norms_of_one(self: Load, a: Arguments) -> Arguments:
    return _with_weights(
        a, _replaced(a.weights, lambda name, x: np.ones_like(x) if name.endswith("norm.weight") else x)
    )


def gate_for_up(self: Load, a: Arguments) -> Arguments:
    exchanged = {"gate_proj": "up_proj", "up_proj": "gate_proj"}

    def other(name: str) -> str:
        parts = name.split(".")
        return ".".join(exchanged.get(part, part) for part in parts)

    return _with_weights(a, {other(name): x for name, x in a.weights.items()})


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
    return _with_weights(a, weights)


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
    head = {"lm_head.weight": random_like(shape, _of_floats(weights))}
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
    return config, _replaced(weights, lambda name, x: np.zeros_like(x) if name.endswith(".biases") else x)


def high_bits_first(self: Load, config: Config, weights: Weights) -> Understood:
    def turned(name: str, x: np.ndarray) -> np.ndarray:
        if x.dtype != np.uint32:
            return x
        module = name.removesuffix(".weight")
        entry = {**config["quantization"], **(config["quantization"].get(module) or {})}
        shifts = np.arange(0, 32, entry["bits"], dtype=np.uint32)
        codes = x[..., None] >> shifts & np.uint32(2 ** entry["bits"] - 1)
        return np.bitwise_or.reduce(codes[..., ::-1] << shifts, axis=-1).astype(np.uint32)

    return config, _replaced(weights, turned)


def four_bits(self: Load, config: Config, weights: Weights) -> Understood:
    if "quantization" not in config:
        return config, weights
    return {**config, "quantization": {**config["quantization"], "bits": 4}}, weights


def no_overrides(self: Load, config: Config, weights: Weights) -> Understood:
    if "quantization" not in config:
        return config, weights
    plain = {key: x for key, x in config["quantization"].items() if key in ("group_size", "bits")}
    return {**config, "quantization": plain}, weights


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

    return config, _replaced(weights, coarse)


# GGUF files


def gguf_default(key: str, value: Any) -> Callable[..., Understood]:
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


def never_put_back(self: Load, config: Config, weights: Weights) -> Understood:
    if config["model_type"] != "llama":
        return config, weights
    return config, _rows(weights, lambda name, x: _interleaved(x, _heads(name, config)))


def always_put_back(self: Load, config: Config, weights: Weights) -> Understood:
    if config["model_type"] == "llama":
        return config, weights
    return config, _rows(weights, lambda name, x: _put_back(x, _heads(name, config)))


def query_heads_for_keys(self: Load, config: Config, weights: Weights) -> Understood:
    """Key rows are put back as if there were as many key heads as query heads."""
    heads = config["num_attention_heads"]

    def change(name: str, x: np.ndarray) -> np.ndarray:
        if "q_proj" in name or len(x) % (2 * heads):
            return x
        return _put_back(_interleaved(x, config["num_key_value_heads"]), heads)

    return config, _rows(weights, change) if config["model_type"] == "llama" else weights


def codes_alone_put_back(self: Load, config: Config, weights: Weights) -> Understood:
    if config["model_type"] != "llama":
        return config, weights

    def change(name: str, x: np.ndarray) -> np.ndarray:
        return _interleaved(x, _heads(name, config)) if name.endswith((".scales", ".biases")) else x

    return config, _rows(weights, change)


def biases_never_put_back(self: Load, config: Config, weights: Weights) -> Understood:
    if config["model_type"] != "llama":
        return config, weights
    return config, _rows(
        weights, lambda name, x: _interleaved(x, _heads(name, config)) if name.endswith(".bias") else x
    )


def no_biases_of(*modules: str) -> Callable[..., Understood]:
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


def in_blocks(kind: str, part: str, change: Callable[[np.ndarray, Weights, str], np.ndarray]) -> Callable[..., Any]:
    """One part (codes, scales, biases) of every tensor of a type is read otherwise."""

    def from_gguf(self: Load, config: Config, weights: Weights) -> Understood:
        def read(name: str, x: np.ndarray) -> np.ndarray:
            module, _, own = name.rpartition(".")
            if own != part or _kind(name, config, weights) != kind:
                return x
            return change(x, weights, module)

        return config, _replaced(weights, read)

    return from_gguf


def exchanged(kind: str) -> Callable[..., Any]:
    """Of every block of a type the minimum is read where the scale is, and the scale where the minimum is."""
    other = {"scales": "biases", "biases": "scales"}

    def from_gguf(self: Load, config: Config, weights: Weights) -> Understood:
        def read(name: str, x: np.ndarray) -> np.ndarray:
            module, _, own = name.rpartition(".")
            return weights[f"{module}.{other[own]}"] if own in other and _kind(name, config, weights) == kind else x

        return config, _replaced(weights, read)

    return from_gguf


def zeros(x: np.ndarray, weights: Weights, module: str) -> np.ndarray:
    return np.zeros_like(x)


def seven(x: np.ndarray, weights: Weights, module: str) -> np.ndarray:
    return (-7 * f64(weights[f"{module}.scales"])).astype(x.dtype)


def maximum(x: np.ndarray, weights: Weights, module: str) -> np.ndarray:
    return -x


def even_and_odd(x: np.ndarray, weights: Weights, module: str) -> np.ndarray:
    """The nibbles of a byte are taken for neighbours, where they are sixteen apart."""
    shifts = np.arange(0, 32, 4, dtype=np.uint32)
    halves = (x[..., None] >> shifts & np.uint32(15)).reshape(len(x), -1, 2, 16)
    codes = halves.swapaxes(-1, -2).reshape(len(x), -1, 8)
    return np.bitwise_or.reduce(codes << shifts, axis=-1).astype(np.uint32)


# what should be refused


def filled(value: Callable[[tuple[int, ...], np.dtype[Any]], np.ndarray]) -> Callable[..., Arguments]:
    def completed(self: Load, a: Arguments) -> Arguments:
        missing = set(shapes := self.decoder(a.config).shapes(a)) - set(a.weights)
        return _with_weights(a, {**a.weights, **{name: value(shapes[name], _of_floats(a.weights)) for name in missing}})

    return completed


def may_lack(ending: str) -> Callable[..., None]:
    def guard_missing(self: Load, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
        Load.guard_missing(self, a, {name: shape for name, shape in shapes.items() if not name.endswith(ending)})

    return guard_missing


def embedding_for_the_head(self: Load, a: Arguments) -> Arguments:
    embedding = {name: x for name, x in a.weights.items() if name.startswith("model.embed_tokens.")}
    return _with_weights(
        a, {name.replace("model.embed_tokens", "lm_head"): x for name, x in embedding.items()} | a.weights
    )


def tied_unsaid(self: Load, config: Config, a: Arguments) -> Config:
    return {"tie_word_embeddings": True, **config}


def tie_needed(self: Load, config: Config, a: Arguments) -> Config:
    if "tie_word_embeddings" not in config:
        raise KeyError("tie_word_embeddings")
    return config


def whole_base_refused(self: Load, config: Config, a: Arguments) -> Config:
    if a.form != "gguf" and isinstance(self.models["llama"]().theta(config), int):
        raise TypeError("rope_theta is an int; it takes a float")
    return config


def all_tensors(self: Load, weights: Weights) -> Weights:
    return weights


def ten_layers_passed_over(self: Load, weights: Weights) -> Weights:
    return {name: x for name, x in weights.items() if not re.search(r"layers\.\d\.self_attn\.rotary_emb", name)}


def any_bias(self: Load, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
    Load.guard_shapes(self, a, {name: shape for name, shape in shapes.items() if not name.endswith(".bias")})


def only_known(self: Load, a: Arguments) -> Arguments:
    shapes = self.decoder(a.config).shapes(a)
    return _with_weights(a, {name: x for name, x in a.weights.items() if name in shapes})


def fitted(self: Load, a: Arguments) -> Arguments:
    shapes = self.decoder(a.config).shapes(a)
    return _with_weights(a, {name: np.resize(x, shapes[name]) for name, x in a.weights.items()})


def shapes_that(fit: Callable[[tuple[int, ...], tuple[int, ...]], bool]) -> Callable[..., None]:
    """Only dense tensors of folders whose shape does not fit that asked for are refused."""

    def guard_shapes(self: Load, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
        fitting = {name for name, x in a.weights.items() if name in shapes and fit(x.shape, shapes[name])}
        Load.guard_shapes(self, a, {name: shape for name, shape in shapes.items() if name not in fitting})

    return guard_shapes


def broadcast(shape: tuple[int, ...], asked: tuple[int, ...]) -> bool:
    """One row, or one number, stands for all."""
    return shape == (1, *asked[1:])


def wider(shape: tuple[int, ...], asked: tuple[int, ...]) -> bool:
    return len(shape) == len(asked) == 2 and shape[0] == asked[0] and shape[1] > asked[1]


def more_rows_are_fine(self: Load, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
    cut = {
        name: x[: shapes[name][0]]
        for name, x in a.weights.items()
        if name in shapes and f"{name.rpartition('.')[0]}.scales" in a.weights
    }
    Load.guard_shapes(self, _with_weights(a, {**a.weights, **cut}), shapes)


def silent(*args: Any) -> None:
    return None


def taken_for_llama(self: Load, config: Mapping[str, Any]) -> Any:
    return self.models.get(config.get("model_type", ""), self.models["llama"])()


def tolerates(damage: str) -> Callable[..., None]:
    def guard_files(self: Load, a: Arguments) -> None:
        if a.damage != damage:
            Load.guard_files(self, a)

    return guard_files


def tolerates_small_losses(self: Load, a: Arguments) -> None:
    if a.damage != "cut short" or a.lost > 16:
        Load.guard_files(self, a)


def zeros_at_the_end(self: Load, a: Arguments) -> Arguments:
    inner = Load.inner(self, a)
    if a.damage != "cut short":
        return inner
    last = list(inner.weights)[-1]
    return _with_weights(inner, {**inner.weights, last: np.zeros_like(inner.weights[last])})


def lost_shard_is_random(self: Load, a: Arguments) -> Arguments:
    inner = Load.inner(self, a)
    return _with_weights(inner, last_shard_lost(self, inner.weights)) if a.damage else inner


def refuses(habit: str, *forms: str) -> Callable[..., None]:
    """Files of these forms, or all, that have this habit are refused."""

    def guard_files(self: Load, a: Arguments) -> None:
        Load.guard_files(self, a)
        if habit in a.written and a.form in (forms or FORMS):
            raise ValueError(f"the files are {habit}")

    return guard_files


def data_in_order_of_the_header(self: Load, a: Arguments) -> Arguments:
    """Sizes are read from the header and offsets are not."""
    if "out of order" not in a.written or a.form != "folder":
        return Load.inner(self, a)
    return _read_in_turn(self, a, list(a.weights), sorted(a.weights, reverse=True))


def gguf_data_in_order_of_the_header(self: Load, a: Arguments) -> Arguments:
    if "data out of order" not in a.written or a.form != "gguf":
        return Load.inner(self, a)
    return _read_in_turn(self, a, list(reversed(a.weights)), list(a.weights))


def _read_in_turn(self: Load, a: Arguments, stored: Sequence[str], named: Sequence[str]) -> Arguments:
    data, at, found = b"".join(a.weights[name].tobytes() for name in stored), 0, {}
    for name in named:
        x = a.weights[name]
        found[name] = np.frombuffer(data[at : at + x.nbytes], x.dtype).reshape(x.shape)
        at += x.nbytes
    return Load.inner(self, Arguments(**{**vars(a), "weights": found}))


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


def turned_features_needed(self: Load, a: Arguments) -> None:
    Load.guard_files(self, a)
    if "few keys" in a.written and a.config["model_type"] == "qwen3":
        raise ValueError("the file does not say qwen3.rope.dimension_count")


def gguf_absent_base(self: Load, config: Config, a: Arguments) -> Config:
    """Such a file does not say the usual base."""
    absent = a.form == "gguf" and "few keys" in a.written and config.get("rope_theta") == 10000
    return {**config, "rope_theta": 1e6} if absent else config


def absent_base(self: Load, config: Config, a: Arguments) -> Config:
    said = {"rope_theta", "rope_parameters"} & set(config)
    return config if said else {**config, "rope_theta": 1e6}


def mode_is_a_layer(self: Load, config: Config, a: Arguments) -> Config:
    for name, entry in config.get("quantization", {}).items():
        if name not in ("group_size", "bits") and isinstance(entry, str):
            raise ValueError(f"no layer is called {name}")
    return config


def frequencies_of_mlx(self: Load, a: Arguments) -> None:
    """What mlx-lm has written is taken as it is: nothing that older files have is in it."""
    Load.guard_files(self, a)
    if "format of MLX" in a.written and any(name.endswith("inv_freq") for name in a.weights):
        raise ValueError("no place for rotary_emb.inv_freq")


def in_the_order_of_the_file(self: Load, config: Config, weights: Weights) -> Understood:
    """What is multiplied together, gate and up, is put together as it comes."""
    found = dict(weights)
    for layer in range(config["num_hidden_layers"]):
        gate, up = (f"model.layers.{layer}.mlp.{part}_proj" for part in ("gate", "up"))
        names = list(weights)
        if {f"{gate}.weight", f"{up}.weight"} <= set(names) and names.index(f"{up}.weight") < names.index(
            f"{gate}.weight"
        ):
            for part in ("weight", "scales", "biases"):
                if f"{gate}.{part}" in weights and f"{up}.{part}" in weights:
                    found[f"{gate}.{part}"], found[f"{up}.{part}"] = weights[f"{up}.{part}"], weights[f"{gate}.{part}"]
    return config, found


def flushed(ending: str) -> Callable[..., Understood]:
    """Float16 numbers of tensors that end so are zeros where they are subnormal."""

    def from_gguf(self: Load, config: Config, weights: Weights) -> Understood:
        def zeroed(name: str, x: np.ndarray) -> np.ndarray:
            if not name.endswith(ending) or x.dtype != np.float16:
                return x
            return np.where(np.abs(x) < np.finfo(np.float16).smallest_normal, x.dtype.type(0), x)

        return config, _replaced(weights, zeroed)

    return from_gguf


def known_in_gguf(self: Load, a: Arguments) -> Arguments:
    return only_known(self, Load.inner(self, a)) if a.form == "gguf" else Load.inner(self, a)


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


def one_end(self: Load, config: Config, a: Arguments) -> Config:
    if not isinstance(config.get("eos_token_id", 0), int):
        raise TypeError("eos_token_id is a list")
    return config


def no_null(self: Load, config: Config, a: Arguments) -> Config:
    if nulls := [name for name in ("rope_scaling", "head_dim") if config.get(name, 0) is None]:
        raise ValueError(f"{nulls[0]} is None")
    return config


def key_length_needed(self: Load, config: Config, weights: Weights) -> Understood:
    if "head_dim" not in config:
        raise ValueError("the file does not say attention.key_length")
    return config, weights


def bfloat16_through_float16(self: Load, config: Config, weights: Weights) -> Understood:
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


def of_gguf(change: Callable[[Load, Arguments], Arguments]) -> Callable[..., Arguments]:
    """What is done to the model of a GGUF file alone."""

    def inner(self: Load, a: Arguments) -> Arguments:
        found = Load.inner(self, a)
        return change(self, found) if a.form == "gguf" and found.config["model_type"] in self.models else found

    return inner


def layers_of_gguf(self: Load, a: Arguments) -> Arguments:
    return _layers_that_are_there(self, a) if a.form == "gguf" else Load.inner(self, a)


def layers_of_folders(self: Load, a: Arguments) -> Arguments:
    return Load.inner(self, a) if a.form == "gguf" else _layers_that_are_there(self, a)


def norms_of_one_where_missing(self: Load, a: Arguments) -> Arguments:
    shapes = self.decoder(a.config).shapes(a)
    missing = {name: np.ones(shape, np.float32) for name, shape in shapes.items() if name.endswith("norm.weight")}
    return _with_weights(a, missing | a.weights)


def gguf_of_any_architecture(self: Load, a: Arguments) -> None:
    config = {**a.config, "model_type": "llama"} if a.form == "gguf" else a.config
    Load.guard(self, Arguments(**{**vars(a), "config": config}))


def tolerates_small_losses_of_gguf(self: Load, a: Arguments) -> None:
    if a.form != "gguf" or a.damage != "cut short" or a.lost > 16:
        Load.guard_files(self, a)


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


def gguf_none_unknown(self: Load, scaling: Config) -> bool:
    """A scaling of type "none" is one that nobody knows."""
    if Load.says_none(self, scaling):
        raise ValueError("rope.scaling.type is 'none'; it takes linear or yarn")
    return False


def gguf_factor_of_none(self: Load, config: Config) -> Config:
    """A factor scales linearly, also beside a type "none"."""
    said = config.get("rope_scaling") or {}
    factor = said.get("factor", config.get("rope_scale_linear"))
    if self.says_none(said) and factor is not None:
        config = {**config, "rope_scaling": {"type": "linear", "factor": factor}}
    return Load.rope_as_scaled(self, config)


def factors_of_llamas_alone(self: Load, config: Config, weights: Weights) -> Understood:
    """Elsewhere than in a llama what divides the frequencies is passed over."""
    if config.get("model_type") != "llama":
        return without_rope_factors(self, config, weights)
    return Load.factored(self, config, weights)


def one_for_each(self: Load, config: Config, weights: Weights) -> Understood:
    """Of more factors than there are pairs the first are taken, and a single one divides all frequencies."""
    config, weights = Load.factored(self, config, weights)
    pairs = self.decoder(config).head_dim(config) // 2
    factors = config.get("rope_factors")
    if factors is None:
        return config, weights
    return {**config, "rope_factors": factors * pairs if len(factors) == 1 else factors[:pairs]}, weights


def one_digit_layers(self: Load, config: Config, weights: Weights) -> Understood:
    """Names of tensors are looked for with a number of one digit."""
    if config["num_hidden_layers"] > 10:
        raise ValueError("blk.10.attn_q.weight is not known")
    return config, weights


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


def inverted_in_float32(self: Load, stored: np.ndarray) -> list[float]:
    return [float(1 / (np.float32(1) / np.float32(factor))) for factor in stored]


def one_factor(self: Load, stored: np.ndarray) -> list[float]:
    """All are divided by the largest: it is taken for linear scaling."""
    return [max(Load.factors(self, stored))] * len(stored)


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


def more_scales_are_fine(self: Load, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
    cut = {name: x[: shapes[name][0]] for name, x in a.weights.items() if name in shapes and name.endswith(".scales")}
    Load.guard_shapes(self, _with_weights(a, {**a.weights, **cut}), shapes)


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
