"""mlx-lm's models, with the same arrays as ours, and its generation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from mlx import nn
from mlx_lm.generate import generate_step
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import _get_classes

from inferspec.impl import loading
from inferspec.impl.generation import generate
from inferspec.impl.model_config import ModelConfig
from inferspec.tools.bench.models import NO_CACHE


class MlxLm:
    """A model of mlx-lm's. cached: whether ids are generated with its cache and its loop; without one the loop is ours."""

    def __init__(self, model: Any, cached: bool) -> None:
        self.model, self.cached = model, cached

    def ids(self, prompt: Sequence[int], count: int) -> Iterable[int]:
        """Its loop."""
        return (
            self._its_loop(prompt, count)
            if self.cached
            else generate(self.model, prompt, max_tokens=count, cache=False)
        )

    def _its_loop(self, prompt: Sequence[int], count: int) -> Iterator[int]:
        for token, _ in generate_step(mx.array(list(prompt)), self.model, max_tokens=count):
            yield int(token)
        # It works one step ahead; what is left of that must not fall into another's time.
        mx.synchronize()

    def logits(self, tokens: Sequence[int], split: int) -> np.ndarray:
        """See the package."""
        cache = make_prompt_cache(self.model)
        pieces = [tokens[:split], *([token] for token in tokens[split:])]
        rows = [self.model(mx.array([list(piece)]), cache=cache)[0].astype(mx.float32) for piece in pieces]
        return np.array(mx.concatenate(rows))


def load(source: Path, variant: str, threads: int, positions: int) -> MlxLm:
    """mlx-lm's model of the same configuration, with the same arrays, dense or quantised."""
    config, weights = loading.read(source)
    # Its Llama reads the base of RoPE in the older style alone.
    config = {**config, "rope_theta": ModelConfig.read(config).rope_theta, "rope_parameters": None}
    return MlxLm(_built(config, weights), variant != NO_CACHE)


def _built(config: Mapping[str, Any], weights: Mapping[str, Any]) -> Any:
    cls, arguments = _get_classes(config=dict(config))
    model = cls(arguments.from_dict(dict(config)))
    if settings := config.get("quantization"):

        def quantised(name: str, module: Any) -> Any:
            own = {key: value for key, value in settings.get(name, {}).items() if key != "mode"}
            return f"{name}.scales" in weights and (own or True)

        nn.quantize(model, settings["group_size"], settings["bits"], class_predicate=quantised)
    kept = {name: x for name, x in weights.items() if not (name == "lm_head.weight" and config["tie_word_embeddings"])}
    model.load_weights(list(kept.items()))
    mx.eval(model.parameters())
    return model
