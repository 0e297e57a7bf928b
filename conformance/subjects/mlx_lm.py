"""mlx-lm: its Llama and Qwen3, and the attention, mask, rotary embedding, norm and MLP that they are built of; its caches and its
generation, of one request and of batches."""

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
from mlx_lm.generate import BatchGenerator, StopSequences, generate_step
from mlx_lm.models import base, cache, llama, qwen3, rope_utils
from mlx_lm.tokenizer_utils import BPEStreamingDetokenizer, _byte_decoder
from mlx_lm.utils import load_model

from inferspec.conformance.subjects.mlx_core import in_four_dims, positions

NAME = "mlx_lm"
VERSION = version("mlx-lm")
ARRAYS = "mlx"
WAIVERS = "mlx_lm.toml"
PRECISION = dict.fromkeys(("attention", "rope", "mlp", "llama", "qwen3", "loading", "sampling"), "native")
# Its Llama does not read rope_parameters: a config without a top-level rope_theta gets the base 10,000.
# Its samplers return arrays. It reads no GGUF files. Its detokenizer spells a NUL as the letter that stands for it in
# vocabularies. Its BatchKVCache grows without limit.
SCALED = ["default", "linear", "llama3", "yarn"]
ENVELOPE = {
    "llama": {"rope": ["rope_theta"], "rope_types": SCALED},
    "qwen3": {"rope_types": SCALED},
    "loading": {"forms": ["folder", "sharded"], "rope": ["rope_theta"], "rope_types": SCALED},
    "batching": {"limited": [False]},
    "engine": {"drafts": ["none"], "priorities": [False], "ends": ["kept"]},
    "generation": {"control_characters": [False], "samplers": ["none", "array"]},
    "sampling": {"ties": ["any"]},
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
        self.cache: Any = cache.KVCache()

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


class BatchingKVCache:
    """BatchKVCache, whose rows are the requests of the moment: which row a slot has is kept here.

    A request comes as in a BatchGenerator, merged into a batch of its own that extends the others', and goes by `filter`;
    a batch of none is no batch. The mask is made of `create_causal_mask` as `make_mask` makes it, after the update in
    place of before.
    """

    def __init__(self, max_requests: int, max_len: int) -> None:
        self.slots, self.rows = max_requests, list[int]()
        self.batch: Any = None

    def make_cache(self) -> KVCache:
        return KVCache()

    def add(self, prompt: KVCache, slot: int) -> None:
        if not 0 <= slot < self.slots or slot in self.rows:
            raise ValueError(f"slot is {slot}; {self.rows} of {self.slots} are taken")
        row = prompt.cache.merge([prompt.cache])
        if self.batch is None:
            self.batch = row
        else:
            self.batch.extend(row)
        self.rows.append(slot)

    def remove(self, slot: int) -> None:
        keep = [row for row, taken in enumerate(self.rows) if taken != slot]
        if len(keep) == len(self.rows):
            raise ValueError(f"slot is {slot}; {self.rows} are taken")
        self.rows = [self.rows[row] for row in keep]
        if self.batch is not None and keep:
            self.batch.filter(keep)
        else:
            self.batch = None

    def update_and_fetch(self, key: mx.array, value: mx.array, mask_length: int) -> tuple[mx.array, mx.array, mx.array]:
        if not len(key) == len(value) == self.slots:  # rows out of bounds are not refused by MLX
            raise ValueError(f"key is {key.shape} and value {value.shape}; it takes {self.slots} rows")
        if self.batch is None:
            return (
                mx.zeros_like(key),
                mx.zeros_like(value),
                mx.zeros((self.slots, 1, mask_length, key.shape[2]), mx.bool_),
            )
        rows = mx.array(self.rows)
        keys, values, visible = (self._in_slots(x) for x in self.updated(key[rows], value[rows], mask_length))
        return keys, values, visible

    def updated(self, key: mx.array, value: mx.array, mask_length: int) -> tuple[mx.array, ...]:
        """Keys, values and mask of the requests, after these of theirs."""
        keys, values = self.batch.update_and_fetch(key, value)
        before = self.batch.size() - mask_length
        return keys, values, base.create_causal_mask(mask_length, before, left_padding=self.batch.left_padding)

    @property
    def offsets(self) -> list[int]:
        offsets = [] if self.batch is None else self.batch.offset.tolist()
        return [dict(zip(self.rows, offsets, strict=True)).get(slot, 0) for slot in range(self.slots)]

    def _in_slots(self, x: mx.array) -> mx.array:
        spread = mx.zeros((self.slots, *x.shape[1:]), x.dtype)
        spread[mx.array(self.rows)] = x
        return spread


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
    """`generate_step`; the caller of it looks for the end of sequence. Its sampler gets log-probabilities, a batch of one."""
    for token, _ in generate_step(mx.array(tokens), model, max_tokens=max_tokens, sampler=sampler):
        yield token


class Engine:
    """BatchGenerator: a batch of requests that each keep a cache of their own, prompts first come, first served.

    It has no pages, prefix cache, priorities, draft or clock; `max_prefill_tokens` are of each prompt.
    """

    def __init__(
        self,
        model: Any,
        *,
        max_requests: int = 8,
        max_prefill_tokens: int = 512,
        num_pages: Any = None,
        page_size: Any = None,
        prefix_caching: Any = None,
        clock: Any = None,
    ) -> None:
        self.generator = BatchGenerator(
            model,
            completion_batch_size=max_requests,
            prefill_batch_size=max_requests,
            prefill_step_size=max_prefill_tokens,
        )
        self.outputs: dict[int, list[int]] = {}
        self.unfinished: set[int] = set()
        self.cancelled: set[int] = set()

    def add_request(self, tokens: Sequence[int], max_tokens: int, priority: int = 0, eos: Sequence[int] = ()) -> int:
        if max_tokens == 0 and len(tokens):  # a request of no ids is none for a BatchGenerator
            request = -1 - len(self.outputs)
        else:
            ends = StopSequences([[token] for token in eos])
            (request,) = self.generator.insert([list(tokens)], [max_tokens], stop_sequences=[ends])
            self.unfinished.add(request)
        self.outputs[request] = []
        return request

    def step(self) -> list[tuple[int, int]]:
        _, responses = self.generator.next()
        came = [(response.uid, response.token) for response in responses]
        for request, token in came:
            self.outputs[request].append(token)
        self.unfinished -= {response.uid for response in responses if response.finish_reason}
        return came

    def run(self) -> dict[int, list[int]]:
        while self.unfinished:
            self.step()
        return {request: list(ids) for request, ids in self.outputs.items() if request not in self.cancelled}

    def cancel(self, request: int) -> None:
        if request not in self.outputs:  # `remove` takes any
            raise ValueError(f"request is {request}; it knows {sorted(self.outputs)}")
        if request in self.unfinished:
            self.generator.remove([request])
            self.unfinished.discard(request)
            self.cancelled.add(request)

    def output(self, request: int) -> list[int]:
        return list(self.outputs[request])

    def finished(self, request: int) -> bool:
        if request not in self.outputs:
            raise ValueError(f"request is {request}; it knows {sorted(self.outputs)}")
        return request not in self.unfinished

    @property
    def has_unfinished(self) -> bool:
        return bool(self.unfinished)


def load(path: str) -> Any:
    model, _ = load_model(Path(path))
    return model
