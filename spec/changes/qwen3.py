"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/qwen3.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Change
from inferspec.spec.numerics import f64
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


def window_that_is_off(self: Decoder, scores: np.ndarray, a: Arguments) -> np.ndarray:
    length, keys = scores.shape[-2:]
    place = np.arange(length)[:, None] + (keys - length)
    window = a.config.get("sliding_window") or keys
    return np.where(np.arange(keys) > place - window, Decoder.scored(self, scores, a), -np.inf)


def eps_of_heads(self: Decoder, name: str, config: Any) -> float:
    return 1e-6 if name.endswith(("q_norm", "k_norm")) else config["rms_norm_eps"]
