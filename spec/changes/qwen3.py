"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/qwen3.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Change
from inferspec.spec.numerics import f64
from inferspec.spec.qwen3 import Qwen3
from inferspec.spec.stochastic import Exact
from inferspec.spec.transformer import Decoder


def norm_dropped(which: str) -> Change:
    def norm(self: Decoder, x: np.ndarray, name: str, a: Arguments, m: Exact) -> np.ndarray:
        return x if name.endswith(which) else Decoder.norm(self, x, name, a, m)

    return {"norm": norm}


def after_rope(self: Decoder, x: np.ndarray, norm: str, positions: np.ndarray, a: Arguments, m: Exact) -> np.ndarray:
    return self.norm(self.turn(x, positions, a, m), norm, a, m)


def norms_of_the_first_chunk(
    self: Decoder, x: np.ndarray, norm: str, positions: np.ndarray, a: Arguments, m: Exact
) -> np.ndarray:
    return self.turn(x, positions, a, m) if positions[0] else Decoder.placed(self, x, norm, positions, a, m)


def one_for_both(self: Decoder, x: np.ndarray, norm: str, positions: np.ndarray, a: Arguments, m: Exact) -> Any:
    return Decoder.placed(self, x, norm.replace("k_norm", "q_norm"), positions, a, m)


def exchanged(self: Decoder, x: np.ndarray, norm: str, positions: np.ndarray, a: Arguments, m: Exact) -> Any:
    other = norm.replace("k_norm", "x_norm").replace("q_norm", "k_norm").replace("x_norm", "q_norm")
    return Decoder.placed(self, x, other, positions, a, m)


def over_all_heads(self: Decoder, x: np.ndarray, norm: str, positions: np.ndarray, a: Arguments, m: Exact) -> Any:
    """One root mean square for all heads of a token."""
    mean = (x**2).mean(axis=(2, 4), keepdims=True)
    normed = x * self.inverse_root(mean, self.eps(norm, a.config)) * f64(self.array(f"{norm}.weight", a))
    return self.turn(normed, positions, a, m)


def eps_of_heads(self: Decoder, name: str, config: Any) -> float:
    return 1e-6 if name.endswith(("q_norm", "k_norm")) else config["rms_norm_eps"]


def wider_by_one(self: Qwen3, length: int, keys: int, window: int) -> np.ndarray:
    return Qwen3.recent(self, length, keys, window + 1)


def dropped_for_one_token(self: Qwen3, length: int, keys: int, window: int) -> np.ndarray:
    """A single token needs no mask, and sees the whole cache."""
    return np.full((length, keys), True) if length == 1 else Qwen3.recent(self, length, keys, window)


def cut_to_the_last(self: Qwen3, length: int, keys: int, window: int) -> np.ndarray:
    """Behind a cache a window of keys is left of it when a chunk is attended, whose first tokens then see fewer."""
    kept = np.arange(keys) >= keys - max(window, length)
    return Qwen3.recent(self, length, keys, window) & kept


def counted_from_the_chunk(self: Qwen3, length: int, keys: int, window: int) -> np.ndarray:
    """A window is laid over the positions within a chunk: what is cached is in all of them."""
    cached = np.arange(keys) < keys - length
    return Qwen3.recent(self, length, keys, window) | cached


def no_longer_chunks(self: Qwen3, length: int, keys: int, window: int) -> np.ndarray:
    """A cache that goes round takes no chunk after others that is longer than it."""
    if window < length < keys:
        raise ValueError(f"{length} tokens, and a window of {window}")
    return Qwen3.recent(self, length, keys, window)


def of_the_first_layer(self: Qwen3, layer: int, config: Mapping[str, Any]) -> bool:
    """One mask is made for all layers, of the first one's kind."""
    return Qwen3.slides(self, 0, config)


def below_the_limit(self: Qwen3, layer: int, config: Mapping[str, Any]) -> bool:
    if config.get("layer_types"):
        return Qwen3.slides(self, layer, config)
    return layer < config["max_window_layers"]


def by_number_alone(self: Qwen3, layer: int, config: Mapping[str, Any]) -> bool:
    """layer_types is not read."""
    return layer >= config["max_window_layers"]


def refused(self: Qwen3, config: Mapping[str, Any]) -> None:
    Qwen3.guard_config(self, config)
    if config.get("use_sliding_window"):
        raise ValueError("use_sliding_window is not implemented")
