"""What transformers and mlx-lm answer: ids, greedy text and float32 logits of one model, each computed apart.

Both compute in float32 whatever the weights are stored in. MLX-quantised folders are dequantised for transformers; a
GGUF file is read by transformers itself, and mlx-lm gets the weights that transformers read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np


@dataclass(frozen=True)
class Reply:
    """What an oracle says to a prompt. logits: float32, of the ids and all but the last of greedy, L×V; gap: the
    smallest distance from a greedy logit to the next best."""

    greedy: tuple[int, ...]
    gap: float
    logits: np.ndarray


class Oracle(Protocol):
    """One library with one model."""

    @property
    def libraries(self) -> Sequence[str]:
        """The packages whose version its answers depend on."""
        ...

    def reply(self, ids: Sequence[int], max_tokens: int, stop: Sequence[int]) -> Reply:
        """Greedy text with a cache, then the logits of all of it in one pass; generation ends before a stop id."""
        ...


class Transformers:
    """The model as transformers computes it: float32, eager attention."""

    libraries = ("transformers", "torch", "safetensors", "gguf")

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def model(self) -> Any:
        import torch
        from transformers import AutoModelForCausalLM
        from transformers.utils import logging

        torch.set_num_threads(1)
        logging.disable_progress_bar()
        options: dict[str, Any] = {"dtype": torch.float32, "attn_implementation": "eager"}
        if self.path.is_file():
            return AutoModelForCausalLM.from_pretrained(self.path.parent, gguf_file=self.path.name, **options).eval()
        config = json.loads((self.path / "config.json").read_text(encoding="utf-8"))
        if "quantization" not in config:
            return AutoModelForCausalLM.from_pretrained(self.path, **options).eval()
        return self._dequantised(config, options)

    def _dequantised(self, config: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
        """The model of a folder in MLX's 4-bit format: code · scale + bias in float32, for each weight."""
        import torch
        from transformers import AutoConfig, AutoModelForCausalLM

        about = AutoConfig.from_pretrained(self.path)
        for key in ("quantization", "quantization_config"):
            if hasattr(about, key):
                delattr(about, key)
        model = AutoModelForCausalLM.from_config(about, **options)
        weights = {name: torch.from_numpy(x) for name, x in dequantised(self.path, config).items()}
        missing, unexpected = model.load_state_dict(weights, strict=False)
        model.tie_weights()
        if left := [name for name in missing if name != "lm_head.weight" or not about.tie_word_embeddings] + unexpected:
            raise ValueError(f"{self.path}: transformers and the folder do not agree on {left[0]}")
        return model.eval()

    def reply(self, ids: Sequence[int], max_tokens: int, stop: Sequence[int]) -> Reply:
        import torch

        with torch.inference_mode():
            greedy: list[int] = []
            cache, step, gap = None, torch.tensor([list(ids)]), np.inf
            while len(greedy) < max_tokens:
                out = self.model(input_ids=step, past_key_values=cache, use_cache=True)
                best = out.logits[0, -1].topk(2)
                if int(best.indices[0]) in stop:
                    break
                greedy.append(int(best.indices[0]))
                gap = min(gap, float(best.values[0] - best.values[1]))
                cache, step = out.past_key_values, best.indices[None, :1]
            logits = self.model(input_ids=torch.tensor([[*ids, *greedy[:-1]]]), use_cache=False).logits[0]
        return Reply(tuple(greedy), gap, logits.float().numpy())


class MlxLm:
    """The model as mlx-lm computes it, with its parameters in float32."""

    libraries = ("mlx-lm", "mlx")

    def __init__(self, path: Path, weights: Transformers) -> None:
        self.path, self.weights = path, weights

    @cached_property
    def model(self) -> Any:
        import mlx.core as mx
        from mlx_lm.utils import load_model

        if self.path.is_dir():
            model, _ = load_model(self.path, lazy=True)
            model.set_dtype(mx.float32)
        else:
            model = self._from_transformers()
        mx.eval(model.parameters())
        return model

    def _from_transformers(self) -> Any:
        import mlx.core as mx
        from mlx_lm.utils import _get_classes

        config = self.weights.model.config.to_dict()
        # mlx-lm's llama knows rope_theta in the older style alone.
        config["rope_theta"] = config["rope_parameters"]["rope_theta"]
        cls, arguments = _get_classes(config=config)
        model = cls(arguments.from_dict({**config, "rope_parameters": None, "rope_scaling": None}))
        weights = {name: mx.array(x.numpy()) for name, x in self.weights.model.state_dict().items()}
        model.load_weights(list(model.sanitize(weights).items()), strict=True)
        return model

    def reply(self, ids: Sequence[int], max_tokens: int, stop: Sequence[int]) -> Reply:
        import mlx.core as mx
        from mlx_lm.models.cache import make_prompt_cache

        greedy: list[int] = []
        cache, step, gap = make_prompt_cache(self.model), mx.array([list(ids)]), np.inf
        while len(greedy) < max_tokens:
            last = np.array(self.model(step, cache=cache)[0, -1].astype(mx.float32))
            best = int(last.argmax())
            if best in stop:
                break
            greedy.append(best)
            gap = min(gap, float(last[best] - np.delete(last, best).max()))
            step = mx.array([[best]])
        logits = self.model(mx.array([[*ids, *greedy[:-1]]]))[0]
        return Reply(tuple(greedy), gap, np.array(logits.astype(mx.float32)))


def dequantised(folder: Path, config: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The weights of an MLX-quantised folder in float32; NumPy unpacks them, lowest bits of a word first."""
    import mlx.core as mx

    stored = mx.load(str(folder / "model.safetensors"))
    assert isinstance(stored, dict)
    weights = {}
    for name, x in stored.items():
        module, _, part = name.rpartition(".")
        if part in ("scales", "biases"):
            continue
        if f"{module}.scales" not in stored:
            weights[name] = np.array(x.astype(mx.float32))
            continue
        settings = config["quantization"].get(module, config["quantization"])
        bits, group = settings["bits"], settings["group_size"]
        codes = (np.array(x)[..., None] >> np.arange(0, 32, bits, dtype=np.uint32)) & (2**bits - 1)
        codes = codes.reshape(len(codes), -1, group).astype(np.float32)
        scales, biases = (np.array(stored[f"{module}.{k}"].astype(mx.float32))[..., None] for k in ("scales", "biases"))
        weights[name] = (codes * scales + biases).reshape(len(codes), -1)
    return weights


def oracles(path: Path) -> dict[str, Oracle]:
    """Both oracles of a folder of safetensors or a GGUF file; nothing is read before it is needed."""
    transformers = Transformers(path)
    return {"transformers": transformers, "mlx-lm": MlxLm(path, transformers)}


def libraries(oracle: Oracle) -> dict[str, str]:
    """The versions that an oracle's answers depend on, without their local part (+cpu)."""
    from importlib.metadata import PackageNotFoundError

    found = {}
    for name in oracle.libraries:
        try:
            found[name] = version(name).split("+")[0]
        except PackageNotFoundError:
            continue
    return found
