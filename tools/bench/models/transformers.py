"""transformers' models on torch, with the same weights restored to dense ones: it has no 4-bit products for a CPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from inferspec.conformance.bridge.arrays import MlxArrays
from inferspec.impl import loading


class Transformers:
    """A model with its dynamic cache, and a greedy loop that asks for the last logits alone."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def ids(self, prompt: Sequence[int], count: int) -> Iterator[int]:
        """Greedy ids."""
        with torch.inference_mode():
            cache, fed = None, torch.tensor([list(prompt)])
            for _ in range(count):
                out = self.model(input_ids=fed, past_key_values=cache, use_cache=True, logits_to_keep=1)
                cache, token = out.past_key_values, int(out.logits[0, -1].argmax())
                yield token
                fed = torch.tensor([[token]])

    def logits(self, tokens: Sequence[int], split: int) -> np.ndarray:
        """See the package."""
        rows, cache = [], None
        with torch.inference_mode():
            for piece in [tokens[:split], *([token] for token in tokens[split:])]:
                out = self.model(input_ids=torch.tensor([list(piece)]), past_key_values=cache, use_cache=True)
                cache = out.past_key_values
                rows.append(out.logits[0].float().numpy())
        return np.concatenate(rows)


def load(source: Path, variant: str, threads: int, positions: int) -> Transformers:
    """The model in the dtype that the variant names."""
    torch.set_num_threads(threads)
    config, weights = loading.read(source)
    kept = {
        name: value
        for name, value in config.items()
        if name not in ("quantization", "quantization_config", "model_type")
    }
    about = AutoConfig.for_model(config["model_type"], **kept)
    dtype = getattr(torch, variant)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(about, dtype=dtype)
    model.to_empty(device="cpu")
    _fill(model, config, weights, dtype)
    return Transformers(model.eval())


def _fill(model: Any, config: Mapping[str, Any], weights: Mapping[str, mx.array], dtype: torch.dtype) -> None:
    """Put every tensor in its place, one at a time: all of them dense at once would take twice the memory."""
    places, filled = dict(model.named_parameters()), set()
    for name in [name for name in weights if name.rpartition(".")[2] not in ("scales", "biases")]:
        if name not in places:
            if name.startswith("lm_head.") and config["tie_word_embeddings"]:
                continue
            raise ValueError(f"transformers has no place for {name}")
        x = torch.from_numpy(MlxArrays().to_numpy(_dense(name, config, weights)))
        places[name].data.copy_(x)
        filled.add(name)
    model.tie_weights()
    if missing := set(places) - filled - ({"lm_head.weight"} if config["tie_word_embeddings"] else set()):
        raise ValueError(f"the weights have no {min(missing)}, which transformers asks for")
    # What a model computes when it is made was made of nothing.
    for module in model.modules():
        if hasattr(module, "inv_freq"):
            module.__init__(config=module.config)


def _dense(name: str, config: Mapping[str, Any], weights: Mapping[str, mx.array]) -> mx.array:
    """A weight in float32: code · scale + bias where it is packed."""
    layer = name.rpartition(".")[0]
    if f"{layer}.scales" not in weights:
        return weights[name].astype(mx.float32)
    settings = {**config["quantization"], **config["quantization"].get(layer, {})}
    scales, biases = (weights[f"{layer}.{part}"].astype(mx.float32) for part in ("scales", "biases"))
    grid = {"group_size": settings["group_size"], "bits": settings["bits"]}
    dense = mx.dequantize(weights[name], scales, biases, **grid)
    mx.eval(dense)
    return dense
