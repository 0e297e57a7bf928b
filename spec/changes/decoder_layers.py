"""The layers of a decoder, what its tokens see, batches, and packed weights: see `spec/faults/decoder_layers.py`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from inferspec.spec.changes.decoder import packed
from inferspec.spec.contract import Arguments, Change
from inferspec.spec.numerics import f64, round_to
from inferspec.spec.stochastic import Exact, Matrix
from inferspec.spec.transformer import Decoder, Memory


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


def sees_the_next(self: Decoder, length: int, keys: int) -> np.ndarray:
    return np.arange(keys) <= np.arange(length)[:, None] + (keys - length) + 1


def hidden_by_ten_thousand(
    self: Decoder,
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    a: Arguments,
    m: Exact,
    window: int | None = None,
) -> np.ndarray:
    """What half precision can hold stands for minus infinity."""
    scores = self.scored(m.product(query, key.swapaxes(-1, -2)), a)
    scores = scores - np.where(self.seen(query.shape[-2], key.shape[-2], window), 0.0, 1e4)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return m.stored(m.product(weights / weights.sum(axis=-1, keepdims=True), value))


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


def long_rows_of_the_first(
    self: Decoder, query: np.ndarray, key: np.ndarray, value: np.ndarray, a: Arguments, m: Exact, *window: Any
) -> np.ndarray:
    attended = Decoder.attend(self, query, key, value, a, m, *window)
    attended[:, :, :, 32:] = attended[:, :1, :, 32:]
    return attended


def first_single_token(
    self: Decoder, tokens: np.ndarray, a: Arguments, m: Exact, memory: Memory | None = None
) -> np.ndarray:
    """Of sequences that have one token each all have the first one's."""
    alike = np.repeat(tokens[:1], len(tokens), axis=0) if tokens.shape[1] == 1 else tokens
    return Decoder.forward(self, alike, a, m, memory)


def sixteen_rows(self: Decoder, tokens: np.ndarray, a: Arguments, m: Exact, memory: Memory | None = None) -> np.ndarray:
    """Rows of a batch are counted modulo 16."""
    return Decoder.forward(self, tokens[np.arange(len(tokens)) % 16], a, m, memory)


def _first_row(logits: np.ndarray) -> np.ndarray:
    """Every sequence R×B×L×V as the first one."""
    return np.array(np.broadcast_to(logits[:, :1], logits.shape))


def first_of_long_prompts(
    self: Decoder, tokens: np.ndarray, a: Arguments, m: Exact, memory: Memory | None = None
) -> np.ndarray:
    logits = Decoder.forward(self, tokens, a, m, memory)
    return _first_row(logits) if tokens.shape[1] >= 100 else logits


def first_of_packed_prompts(
    self: Decoder, tokens: np.ndarray, a: Arguments, m: Exact, memory: Memory | None = None
) -> np.ndarray:
    logits = Decoder.forward(self, tokens, a, m, memory)
    return _first_row(logits) if tokens.shape[1] >= 33 and "quantization" in a.config else logits


def past_the_ninth(name: str) -> bool:
    """Whether a name is of a layer whose number has two digits."""
    return bool(re.match(r"model\.layers\.\d\d", name))


def packing_of_ten_layers(self: Decoder, name: str, config: Mapping[str, Any]) -> tuple[int, int]:
    """Entries of layers of two digits are not found."""
    found = config["quantization"]
    known = {key: x for key, x in found.items() if not past_the_ninth(key)}
    return Decoder.packing(self, name, {**config, "quantization": known})
