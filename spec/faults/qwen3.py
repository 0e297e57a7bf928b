"""Mistakes in Qwen3, and other honest ways to compute it."""

from __future__ import annotations

from typing import Any

import numpy as np

from inferspec.spec import qwen3 as spec
from inferspec.spec.contract import Arguments, Change, Fault, Variant
from inferspec.spec.faults.decoder import TIRED, shared, variants
from inferspec.spec.numerics import f64
from inferspec.spec.qwen3 import QWEN3_08
from inferspec.spec.stochastic import Exact
from inferspec.spec.transformer import Decoder


def _norm_dropped(which: str) -> Change:
    def norm(self: Decoder, x: np.ndarray, name: str, a: Arguments, m: Exact) -> np.ndarray:
        return x if name.endswith(which) else Decoder.norm(self, x, name, a, m)

    return {"norm": norm}


def _after_rope(self: Decoder, x: np.ndarray, norm: str, positions: np.ndarray, a: Arguments, m: Exact) -> np.ndarray:
    return self.norm(self.turn(x, positions, a, m), norm, a, m)


def _one_for_both(self: Decoder, x: np.ndarray, norm: str, positions: np.ndarray, a: Arguments, m: Exact) -> Any:
    return Decoder.placed(self, x, norm.replace("k_norm", "q_norm"), positions, a, m)


def _exchanged(self: Decoder, x: np.ndarray, norm: str, positions: np.ndarray, a: Arguments, m: Exact) -> Any:
    other = norm.replace("k_norm", "x_norm").replace("q_norm", "k_norm").replace("x_norm", "q_norm")
    return Decoder.placed(self, x, other, positions, a, m)


def _over_all_heads(self: Decoder, x: np.ndarray, norm: str, positions: np.ndarray, a: Arguments, m: Exact) -> Any:
    """One root mean square for all heads of a token."""
    mean = (x**2).mean(axis=(2, 4), keepdims=True)
    normed = x * self.inverse_root(mean, self.eps(norm, a.config)) * f64(self.array(f"{norm}.weight", a))
    return self.turn(normed, positions, a, m)


def _window_that_is_off(self: Decoder, scores: np.ndarray, a: Arguments) -> np.ndarray:
    length, keys = scores.shape[-2:]
    place = np.arange(length)[:, None] + (keys - length)
    window = a.config.get("sliding_window") or keys
    return np.where(np.arange(keys) > place - window, Decoder.scored(self, scores, a), -np.inf)


def _eps_of_heads(self: Decoder, name: str, config: Any) -> float:
    return 1e-6 if name.endswith(("q_norm", "k_norm")) else config["rms_norm_eps"]


def _own(name: str, text: str, change: Change, source: str = TIRED) -> Fault:
    return Fault(f"qwen3-{name}", text, QWEN3_08, change, source)


FAULTS: tuple[Fault, ...] = shared(
    spec,
    "qwen3",
    [
        _own("q-norm-dropped", "queries are not normalised", _norm_dropped("q_norm"), "FACTS: a missing q_norm"),
        _own("k-norm-dropped", "keys are not normalised", _norm_dropped("k_norm")),
        _own("rope-before-head-norm", "queries and keys are turned first and normalised then", {"placed": _after_rope}),
        _own("q-norm-for-both", "keys are normalised with q_norm", {"placed": _one_for_both}),
        _own("head-norms-exchanged", "q_norm and k_norm are exchanged", {"placed": _exchanged}),
        _own(
            "norm-over-all-heads",
            "queries and keys are normalised over all heads at once, as in OLMo 2",
            {"placed": _over_all_heads},
        ),
        Fault(
            "qwen3-window-that-is-off",
            "a token sees the last sliding_window alone, also where use_sliding_window is false",
            spec.QWEN3_01,
            {"scored": _window_that_is_off},
            TIRED,
        ),
        Fault(
            "qwen3-eps-of-head-norms",
            "the norms of heads have an eps of 1e-6",
            spec.QWEN3_06,
            {"eps": _eps_of_heads},
            TIRED,
        ),
    ],
)

VARIANTS: tuple[Variant, ...] = variants("Qwen3", "qwen3")
