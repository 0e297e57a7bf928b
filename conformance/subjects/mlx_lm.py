"""mlx-lm: its Llama and Qwen3, and the attention, mask, rotary embedding, norm and MLP that they are built of; its generation."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mlx.core as mx
from mlx import nn
from mlx_lm import sample_utils
from mlx_lm.generate import generate_step
from mlx_lm.models import base, cache, llama, qwen3, rope_utils
from mlx_lm.tokenizer_utils import BPEStreamingDetokenizer, _byte_decoder
from mlx_lm.utils import load_model

from inferspec.conformance.subjects.mlx_core import in_four_dims, positions

NAME = "mlx_lm"
VERSION = version("mlx-lm")
ARRAYS = "mlx"
WAIVERS = "mlx_lm.toml"
PRECISION = dict.fromkeys(("attention", "rope", "mlp", "llama", "qwen3", "loading"), "native")
# Its Llama does not read rope_parameters: a config without a top-level rope_theta gets the base 10,000.
# It reads no GGUF files. Its detokenizer spells a NUL as the letter that stands for it in vocabularies.
ENVELOPE = {
    "llama": {"rope": ["rope_theta"]},
    "loading": {"forms": ["folder", "sharded"], "rope": ["rope_theta"]},
    "generation": {"control_characters": [False]},
}


def scaled_dot_product_attention(
    query: mx.array, key: mx.array, value: mx.array, *, scale: float | None = None, mask: Any = None
) -> mx.array:
    return in_four_dims(partial(base.scaled_dot_product_attention, cache=None), query, key, value, scale, mask)


def causal_mask(L: int, S: int, dtype: mx.Dtype) -> mx.array:
    visible = base.create_causal_mask(L, S - L)
    return mx.where(visible, mx.array(0, dtype), mx.array(-mx.inf, dtype))


class RoPE:
    def __init__(self, dims: int, max_positions: int, base: float = 10000, traditional: bool = False) -> None:
        self.rope = rope_utils.initialize_rope(dims, base, traditional, None, max_positions)

    def __call__(self, x: mx.array, offset: Any = None) -> mx.array:
        return self.rope(x.swapaxes(1, 2), offset=positions(offset, x)).swapaxes(1, 2)


class RMSNorm:
    def __init__(self, dims: int, weight: mx.array, eps: float = 1e-5) -> None:
        self.layer = nn.RMSNorm(dims, eps)
        self.layer.load_weights([("weight", weight)])

    def __call__(self, x: mx.array) -> mx.array:
        return self.layer(x)


class SwiGLU:
    def __init__(self, dims: int, hidden_dims: int, w_gate: mx.array, w_up: mx.array, w_down: mx.array) -> None:
        self.layer = qwen3.MLP(dims, hidden_dims)
        projections = {"gate_proj": w_gate, "up_proj": w_up, "down_proj": w_down}
        self.layer.load_weights([(f"{name}.weight", weight) for name, weight in projections.items()])

    def __call__(self, x: mx.array) -> mx.array:
        return self.layer(x)


class KVCache:
    """Saved and restored by copying, as mlx_lm.server does with its prompt caches: the state is the buffer itself."""

    def __init__(self) -> None:
        self.cache = cache.KVCache()

    def update_and_fetch(self, key: mx.array, value: mx.array) -> tuple[mx.array, mx.array]:
        return self.cache.update_and_fetch(key, value)

    @property
    def offset(self) -> int:
        return self.cache.offset

    def rewind(self, n: int) -> None:
        if not 0 <= n <= self.cache.offset:  # `trim` drops what there is, and says how much
            raise ValueError(f"n is {n}; it takes 0 … {self.cache.offset}")
        self.cache.trim(n)

    @property
    def state(self) -> Any:
        return copy.deepcopy(self.cache.state)

    def restore(self, state: Any) -> None:
        self.cache.state = copy.deepcopy(state)


class _Decoder:
    """A model as `mlx_lm.load` builds it: quantised where the weights have scales, then loaded strictly."""

    def __init__(self, module: Any, config: dict[str, Any], weights: dict[str, mx.array]) -> None:
        self.model = module.Model(module.ModelArgs.from_dict(config))
        weights = self.model.sanitize(dict(weights))
        if quantization := config.get("quantization"):

            def packing(name: str, layer: nn.Module) -> Any:
                return quantization.get(name, f"{name}.scales" in weights)

            nn.quantize(self.model, quantization["group_size"], quantization["bits"], class_predicate=packing)
        self.model.load_weights(list(weights.items()), strict=True)

    def __call__(self, tokens: mx.array, cache: Any = None) -> mx.array:
        return self.model(tokens, cache)

    def make_cache(self) -> Any:
        return cache.make_prompt_cache(self.model)


class Llama(_Decoder):
    def __init__(self, config: dict[str, Any], weights: dict[str, mx.array]) -> None:
        super().__init__(llama, config, weights)


class Qwen3(_Decoder):
    def __init__(self, config: dict[str, Any], weights: dict[str, mx.array]) -> None:
        super().__init__(qwen3, config, weights)


def filter_logits(logits: mx.array, top_k: int | None = None, top_p: float = 1.0) -> mx.array:
    """`apply_top_k` and `apply_top_p` take logarithms of probabilities, as ``mlx_lm.generate`` makes them."""
    kept = logits - mx.logsumexp(logits, axis=-1, keepdims=True)
    if top_k and 0 < top_k < logits.shape[-1]:
        kept = sample_utils.apply_top_k(kept, top_k)
    if top_p != 1:
        kept = sample_utils.apply_top_p(kept, top_p)
    return mx.where(kept == -mx.inf, mx.array(-mx.inf, logits.dtype), logits)


class Sampler:
    """``make_sampler``, which takes no limit of the vocabulary's size or more."""

    def __init__(self, temperature: float = 0, top_k: int | None = None, top_p: float = 1.0) -> None:
        self.temperature, self.top_k, self.top_p = temperature, top_k or 0, top_p

    def __call__(self, logits: mx.array) -> mx.array:
        top_k = self.top_k if self.top_k < logits.shape[-1] else 0
        sample = sample_utils.make_sampler(self.temperature, top_p=self.top_p, top_k=top_k)
        return sample(logits - mx.logsumexp(logits, axis=-1, keepdims=True))


class StreamingDetokenizer:
    """The detokenizer of byte-level vocabularies, such as Qwen3's."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.detokenizer = BPEStreamingDetokenizer(_ByteLevel(pieces))

    def add(self, token: int) -> str:
        self.detokenizer.add_token(token)
        return self.detokenizer.last_segment

    def finish(self) -> str:
        self.detokenizer.finalize()
        return self.detokenizer.last_segment


class _ByteLevel:
    """What the detokenizer reads of a tokenizer: each id spelt with one letter for each byte."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        letters = {byte: letter for letter, byte in _byte_decoder().items()}
        self.spelt = ["".join(letters[byte] for byte in piece) for piece in pieces]

    def __len__(self) -> int:
        return len(self.spelt)

    def convert_ids_to_tokens(self, ids: Sequence[int]) -> list[str]:
        return [self.spelt[token] for token in ids]


def generate(model: Any, tokens: Any, *, max_tokens: int, sampler: Any = None) -> Iterator[Any]:
    """`generate_step`; the caller of it looks for the end of sequence. Its sampler gets a row of log-probabilities."""
    own = None if sampler is None else lambda logprobs: mx.array([int(sampler(logprobs[0]))])
    for token, _ in generate_step(mx.array(tokens), model, max_tokens=max_tokens, sampler=own):
        yield token


def load(path: str) -> Any:
    model, _ = load_model(Path(path))
    return model
