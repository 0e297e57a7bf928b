"""CTranslate2: models of Hugging Face's, converted and run by its generator. ``pip install ctranslate2`` and the oracles first."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, ClassVar

import ctranslate2
import numpy as np
import torch
import transformers
from ctranslate2.converters import transformers as converters

NAME = "ctranslate2"
VERSION = ctranslate2.__version__
ARRAYS = "torch"
WAIVERS = "ctranslate2.toml"

# A converter reads neither packed weights nor RoPE's parameters of transformers 5, and takes Llama's heads for a share of hidden_size.
_MODELS: dict[str, list[Any]] = {"packing": ["dense"], "dtypes": ["float32"], "rope": ["rope_theta"]}
ENVELOPE: dict[str, dict[str, list[Any]]] = {
    "llama": {**_MODELS, "head_dims": ["absent"], "biases": ["none"]},
    "qwen3": {**_MODELS, "head_dims": ["free", "multiple"]},
}


class _Model:
    """The logits of a model that Hugging Face's class has been given the weights of."""

    kind: ClassVar[Any]
    config: ClassVar[Any]
    converter: ClassVar[Any]

    def __init__(self, config: Mapping[str, Any], weights: Mapping[str, torch.Tensor]) -> None:
        settings = self.config(**{key: value for key, value in config.items() if key != "model_type"})
        model = self.kind._from_config(settings, dtype=torch.float32).eval()
        tied = {"lm_head.weight": weights["model.embed_tokens.weight"]} if settings.tie_word_embeddings else {}
        model.load_state_dict({**weights, **tied}, strict=True)
        converted = self.converter()(model, _vocabulary(settings.vocab_size))
        converted.validate()
        converted.optimize(quantization="float32")
        with tempfile.TemporaryDirectory() as folder:
            converted.save(folder)
            self._generator = ctranslate2.Generator(folder, compute_type="float32", intra_threads=1)

    def __call__(self, tokens: torch.Tensor) -> torch.Tensor:
        names = [[str(id) for id in row] for row in tokens.tolist()]
        return torch.from_numpy(np.array(self._generator.forward_batch(names)))


def _vocabulary(size: int) -> SimpleNamespace:
    """What a converter asks a tokenizer for, where each token is called by its id."""
    return SimpleNamespace(
        get_vocab=lambda: {str(id): id for id in range(size)},
        bos_token="0",
        bos_token_id=0,
        eos_token="1",
        unk_token="2",
    )


class Llama(_Model):
    kind = transformers.LlamaForCausalLM
    config = transformers.LlamaConfig
    converter = converters.LlamaLoader


class Qwen3(_Model):
    kind = transformers.Qwen3ForCausalLM
    config = transformers.Qwen3Config
    converter = converters.Qwen3Loader
