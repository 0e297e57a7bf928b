"""Whether a model's logits are those of the contract: float64 from the same weights, and what rounding may do to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from inferspec.spec.contract import Answer, Arguments
from inferspec.spec.llama import Llama
from inferspec.spec.numerics import Precision, other_precision, within
from inferspec.spec.qwen3 import Qwen3
from inferspec.spec.transformer import Decoder
from inferspec.tools.bench.judge import _worst
from inferspec.tools.bench.result import OTHER, REFUSED, TIMED

ORACLES: Mapping[str, type[Decoder]] = {"llama": Llama, "qwen3": Qwen3}
COLUMNS = 2048
"""Of the vocabulary, evenly spread: whose logits are compared."""
COARSEST = "bfloat16"
"""What says that it computes in another precision may be as coarse as this one."""


@dataclass(frozen=True)
class ModelVerdict:
    """precision: class, or the other precision; worst: error in budgets of that class; difference: the largest one, as a
    share of the largest logit; reason: why it is refused."""

    state: str
    precision: str
    worst: float | None
    difference: float | None
    reason: str = ""

    @property
    def accepted(self) -> bool:
        """Whether it may be timed."""
        return self.state != REFUSED


class ModelJudge:
    """Holds logits against the float64 oracle. config, weights: of the model, NumPy arrays; tokens: L ids."""

    def __init__(self, config: Mapping[str, Any], weights: Mapping[str, np.ndarray], tokens: Sequence[int]) -> None:
        vocabulary = config["vocab_size"]
        spread = np.linspace(0, vocabulary - 1, min(COLUMNS, vocabulary)).astype(np.int64)
        self.columns = np.unique(np.concatenate([spread, np.asarray(tokens)]))
        self._oracle = ORACLES[config["model_type"]]()
        # A model of these columns alone: its embedding and head have their rows, and its ids are their places.
        reduced = {
            name: x[self.columns] if name.startswith(("model.embed_tokens.", "lm_head.")) else x
            for name, x in weights.items()
        }
        ids = np.searchsorted(self.columns, np.asarray(tokens))[None]
        settings = {**config, "vocab_size": len(self.columns)}
        self._arguments = Arguments(config=settings, weights=reduced, tokens=ids)
        self.dtype = self._oracle.result_dtype(self._arguments)

    def verdict(self, logits: np.ndarray, declared: str = "") -> ModelVerdict:
        """What logits L×columns, float32, are. declared: the other precision that their maker says it computes in."""
        value = self._answer(Precision.FLOAT32).value[0]
        if logits.shape != value.shape:
            raise ValueError(f"logits are {logits.shape}, not {value.shape}")
        error = np.abs(logits.astype(np.float64) - value)
        difference = float(error.max() / np.abs(value).max())
        if not np.isfinite(difference):
            return ModelVerdict(REFUSED, "", None, None, "its logits are not finite")
        worst = 0.0
        for precision in Precision:
            budget = self._answer(precision).budget[0]
            worst = _worst(error, budget)
            if bool(np.all(within(error, budget))):
                return ModelVerdict(TIMED, precision.value, worst, difference)
        if declared and difference <= other_precision(COARSEST):
            return ModelVerdict(OTHER, declared, worst, difference)
        return ModelVerdict(REFUSED, "", worst, difference, f"logits off by {difference:.2%} of the largest")

    @cache  # noqa: B019 (a judge lives as long as its answers)
    def _answer(self, precision: Precision) -> Answer:
        return self._oracle.evaluate(self._arguments, precision)
