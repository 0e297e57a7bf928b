"""What is read otherwise from GGUF files: see `spec/faults/loading_gguf.py`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from inferspec.spec.changes.loading import layers_that_are_there, replaced, with_weights
from inferspec.spec.changes.loading_refusals import only_known
from inferspec.spec.changes.loading_scaling import without_rope_factors
from inferspec.spec.contract import Arguments
from inferspec.spec.loading import Config, Load, Weights
from inferspec.spec.numerics import f64

Understood = tuple[Config, Weights]


def gguf_default(key: str, value: Any) -> Callable[..., Understood]:
    def from_gguf(self: Load, config: Config, weights: Weights) -> Understood:
        style = {k: x for k, x in config.items() if k != "rope_parameters"} if key == "rope_theta" else config
        return {**style, key: value}, weights

    return from_gguf


def _rows(weights: Weights, change: Callable[[str, np.ndarray], np.ndarray]) -> Weights:
    """Query and key projections, codes and scales, with their rows in another order."""
    asked = ("q_proj", "k_proj")
    return replaced(weights, lambda name, x: change(name, x) if name.split(".")[-2] in asked else x)


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


def ratio_for_key_heads(self: Load, config: Config, weights: Weights) -> Understood:
    """Key rows are put back as if there were as many key heads as query heads read one."""
    heads = config["num_key_value_heads"]
    ratio = config["num_attention_heads"] // heads

    def change(name: str, x: np.ndarray) -> np.ndarray:
        if "q_proj" in name or ratio == 1 or len(x) % (2 * ratio):
            return x
        return _put_back(_interleaved(x, heads), ratio)

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

        return config, replaced(weights, lambda name, x: np.zeros_like(x) if lost(name) else x)

    return from_gguf


def of_gguf_files(inner: Callable[[Load, Arguments], Arguments]) -> Callable[[Load, Arguments], Arguments]:
    return lambda self, a: inner(self, a) if a.form == "gguf" else Load.inner(self, a)


def of_blocks(change: Callable[..., Understood]) -> Callable[..., Understood]:
    """The change, of files whose matrices are blocks."""

    def from_gguf(self: Load, config: Config, weights: Weights) -> Understood:
        blocks = any(name.endswith(".scales") for name in weights)
        return change(self, config, weights) if blocks else (config, weights)

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

        return config, replaced(weights, read)

    return from_gguf


def exchanged(kind: str) -> Callable[..., Any]:
    """Of every block of a type the minimum is read where the scale is, and the scale where the minimum is."""
    other = {"scales": "biases", "biases": "scales"}

    def from_gguf(self: Load, config: Config, weights: Weights) -> Understood:
        def read(name: str, x: np.ndarray) -> np.ndarray:
            module, _, own = name.rpartition(".")
            return weights[f"{module}.{other[own]}"] if own in other and _kind(name, config, weights) == kind else x

        return config, replaced(weights, read)

    return from_gguf


def types_of_the_first_layer(self: Load, config: Config, weights: Weights) -> Understood:
    """A matrix is taken for blocks of the type that it has in the first layer."""
    for name in weights:
        first = re.sub(r"\.layers\.\d+\.", ".layers.0.", name)
        if name.endswith(".weight") and _kind(name, config, weights) != _kind(first, config, weights):
            raise ValueError(f"{name} is not of the type of {first}")
    return config, weights


def zeros(x: np.ndarray, weights: Weights, module: str) -> np.ndarray:
    return np.zeros_like(x)


def seven(x: np.ndarray, weights: Weights, module: str) -> np.ndarray:
    return (-7 * f64(weights[f"{module}.scales"])).astype(x.dtype)


def maximum(x: np.ndarray, weights: Weights, module: str) -> np.ndarray:
    return -x


def header_of_q4_0(x: np.ndarray, weights: Weights, module: str) -> np.ndarray:
    """The minimum is taken for the first four nibbles, and the last two bytes of the block are lost."""
    shifts = np.arange(0, 32, 4, dtype=np.uint32)
    codes = (x[..., None] >> shifts & np.uint32(15)).reshape(len(x), -1, 2, 16)
    minimum = weights[f"{module}.biases"].astype(np.float16)[..., None].view(np.uint8)
    data = np.concatenate([minimum, codes[:, :, 0, :14] | codes[:, :, 1, :14] << 4], axis=-1).astype(np.uint32)
    read = np.concatenate([data & 15, data >> 4], axis=-1).reshape(len(x), -1, 8)
    return np.bitwise_or.reduce(read << shifts, axis=-1).astype(np.uint32)


def first_block_alone(self: Load, config: Config, weights: Weights) -> Understood:
    """Of each packed matrix all but the first block keep their zeros."""

    def read(name: str, x: np.ndarray) -> np.ndarray:
        if not name.endswith((".scales", ".biases")):
            return x
        return np.where(np.arange(x.size).reshape(x.shape) == 0, x, x.dtype.type(0))

    return config, replaced(weights, read)


def even_and_odd(x: np.ndarray, weights: Weights, module: str) -> np.ndarray:
    """The nibbles of a byte are taken for neighbours, where they are sixteen apart."""
    shifts = np.arange(0, 32, 4, dtype=np.uint32)
    halves = (x[..., None] >> shifts & np.uint32(15)).reshape(len(x), -1, 2, 16)
    codes = halves.swapaxes(-1, -2).reshape(len(x), -1, 8)
    return np.bitwise_or.reduce(codes << shifts, axis=-1).astype(np.uint32)


def gguf_absent_base(self: Load, config: Config, a: Arguments) -> Config:
    """Such a file does not say the usual base."""
    absent = a.form == "gguf" and "few keys" in a.written and config.get("rope_theta") == 10000
    return {**config, "rope_theta": 1e6} if absent else config


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

        return config, replaced(weights, zeroed)

    return from_gguf


def known_in_gguf(self: Load, a: Arguments) -> Arguments:
    return only_known(self, Load.inner(self, a)) if a.form == "gguf" else Load.inner(self, a)


def known_beside_blocks(self: Load, a: Arguments) -> Arguments:
    blocks = any(name.endswith(".scales") for name in a.weights)
    return known_in_gguf(self, a) if blocks else Load.inner(self, a)


def of_gguf(change: Callable[[Load, Arguments], Arguments]) -> Callable[..., Arguments]:
    """What is done to the model of a GGUF file alone."""

    def inner(self: Load, a: Arguments) -> Arguments:
        found = Load.inner(self, a)
        return change(self, found) if a.form == "gguf" and found.config["model_type"] in self.models else found

    return inner


def tied_where_the_head_does_not_fit(self: Load, a: Arguments) -> Arguments:
    """A head of another shape is none."""
    head, table = (a.weights.get(name) for name in ("lm_head.weight", "model.embed_tokens.weight"))
    if head is None or table is None or head.shape == table.shape:
        return a
    return with_weights(a, a.weights, tie_word_embeddings=True)


def layers_of_gguf(self: Load, a: Arguments) -> Arguments:
    return layers_that_are_there(self, a) if a.form == "gguf" else Load.inner(self, a)


def norms_of_one_where_missing(self: Load, a: Arguments) -> Arguments:
    shapes = self.decoder(a.config).shapes(a)
    missing = {name: np.ones(shape, np.float32) for name, shape in shapes.items() if name.endswith("norm.weight")}
    return with_weights(a, missing | a.weights)


def gguf_of_any_architecture(self: Load, a: Arguments) -> None:
    config = {**a.config, "model_type": "llama"} if a.form == "gguf" else a.config
    Load.guard(self, Arguments(**{**vars(a), "config": config}))


def tolerates_small_losses_of_gguf(self: Load, a: Arguments) -> None:
    if a.form != "gguf" or a.damage != "cut short" or a.lost > 16:
        Load.guard_files(self, a)


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
