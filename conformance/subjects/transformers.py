"""Hugging Face transformers: its Llama and Qwen3, their caches, and the norm, rotary embedding, MLP and attention of Llama;
``generate``, alone and assisted."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from types import SimpleNamespace
from typing import Any

import torch
import transformers
from transformers import (
    AutoModelForCausalLM,
    DynamicCache,
    GenerationMixin,
    LlamaConfig,
    LlamaForCausalLM,
    LogitsProcessor,
    PreTrainedConfig,
    PreTrainedModel,
    Qwen3Config,
    Qwen3ForCausalLM,
)
from transformers.activations import ACT2FN
from transformers.cache_utils import Cache, DynamicLayer, StaticLayer
from transformers.generation import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper
from transformers.generation.streamers import BaseStreamer
from transformers.modeling_outputs import CausalLMOutputWithPast
from transformers.models.llama import modeling_llama as llama

from inferspec.conformance.subjects.offsets import start_of

NAME = "transformers"
VERSION = transformers.__version__
ARRAYS = "torch"
WAIVERS = "transformers.toml"
PRECISION = dict.fromkeys(("attention", "rope", "mlp", "llama", "qwen3", "loading"), "native")
SCALED = ["default", "linear", "llama3", "yarn"]
# Its reader of GGUF files takes hidden_size / heads for the head dim. MLX's packing is not its own.
ENVELOPE = {
    "loading": {
        "forms": ["folder", "sharded"],
        "packing": ["dense"],
        "head_dims": ["multiple"],
        "trained": ["tiny-qwen3"],
        "rope_types": SCALED,
    },
    "attention": {"leading_dims": [(1,), (2,)], "masks": ["none", "-inf", "lowest", "additive"]},
    "rope": {"forms": ["split-half"], "partial": [False]},
    # Its LlamaConfig takes a hidden_size that is a multiple of the heads, also where head_dim is given.
    "llama": {
        "packing": ["dense"],
        "head_dims": ["multiple", "absent"],
        "rope_types": SCALED,
    },
    "qwen3": {"packing": ["dense"], "rope_types": SCALED},
    "sampling": {"without_distribution": [False], "ties": ["any"]},
    "generation": {"ends": ["kept"], "zero_max_tokens": [False]},
    "speculative": {"ends": ["kept"], "zero_max_tokens": [False]},
}


def silu(x: torch.Tensor) -> torch.Tensor:
    return ACT2FN["silu"](x)


def scaled_dot_product_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *, scale: float | None = None, mask: Any = None
) -> torch.Tensor:
    if isinstance(mask, str):
        raise ValueError(f"mask is {mask!r}; it takes None or an additive mask")
    module: Any = SimpleNamespace(num_key_value_groups=query.shape[-3] // key.shape[-3], training=False)
    scaling = query.shape[-1] ** -0.5 if scale is None else scale
    output, _ = llama.eager_attention_forward(module, query, key, value, mask, scaling)
    return output.transpose(1, 2)


def _positions(offset: Any, length: int) -> torch.Tensor:
    """The position ids of one row, as a model makes them."""
    return torch.arange(length) + start_of(offset, length)


class RoPE:
    def __init__(self, dims: int, max_positions: int, base: float = 10000, traditional: bool = False) -> None:
        config = LlamaConfig(
            head_dim=dims,
            max_position_embeddings=max_positions,
            rope_parameters={"rope_type": "default", "rope_theta": float(base)},
        )
        self.embedding = llama.LlamaRotaryEmbedding(config)

    def __call__(self, x: torch.Tensor, offset: Any = None) -> torch.Tensor:
        rows = offset if isinstance(offset, list) else [offset] * len(x)
        if len(rows) != len(x):
            raise ValueError(f"offset has {len(rows)} slices for {len(x)} rows")
        positions = torch.stack([_positions(row, x.shape[1]) for row in rows]) if rows else torch.zeros(0, x.shape[1])
        cos, sin = self.embedding(x, positions)
        return llama.apply_rotary_pos_emb(x, x, cos, sin, unsqueeze_dim=2)[0]


class RMSNorm:
    def __init__(self, dims: int, weight: torch.Tensor, eps: float = 1e-5) -> None:
        self.layer = llama.LlamaRMSNorm(dims, eps)
        self.layer.to(weight.dtype).load_state_dict({"weight": weight})

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


class SwiGLU:
    def __init__(
        self, dims: int, hidden_dims: int, w_gate: torch.Tensor, w_up: torch.Tensor, w_down: torch.Tensor
    ) -> None:
        self.layer = llama.LlamaMLP(
            LlamaConfig(hidden_size=dims, intermediate_size=hidden_dims, num_attention_heads=1, head_dim=2)
        )
        weights = {"gate_proj.weight": w_gate, "up_proj.weight": w_up, "down_proj.weight": w_down}
        self.layer.to(w_gate.dtype).load_state_dict(weights)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


class KVCache:
    """One layer of a DynamicCache, saved and restored by copying."""

    def __init__(self) -> None:
        self.layer = DynamicLayer()

    def update_and_fetch(self, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.layer.update(key, value)

    @property
    def offset(self) -> int:
        return int(self.layer.get_seq_length())

    def rewind(self, n: int) -> None:
        if not 0 <= n <= self.offset:  # `crop` drops what there is
            raise ValueError(f"n is {n}; it takes 0 … {self.offset}")
        self.layer.crop(-n)

    @property
    def state(self) -> Any:
        return copy.deepcopy(self.layer)

    def restore(self, state: Any) -> None:
        self.layer = copy.deepcopy(state)


class StaticKVCache:
    """One layer of a StaticCache. A layer returns its whole buffer; the model's mask hides the rest of it."""

    def __init__(self, max_len: int) -> None:
        self.layer = StaticLayer(max_len)

    def update_and_fetch(self, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        keys, values = self.layer.update(key, value)
        return keys[:, :, : self.offset], values[:, :, : self.offset]

    @property
    def offset(self) -> int:
        return int(self.layer.get_seq_length())

    @property
    def state(self) -> Any:
        return copy.deepcopy(self.layer)

    def restore(self, state: Any) -> None:
        layer, n = StaticLayer(self.layer.max_cache_len), state.get_seq_length()
        if n:
            # Of its own length: what does not fit is torch's to refuse.
            layer.update(state.keys[:, :, :n], state.values[:, :, :n])
        self.layer = layer


class _Decoder:
    """A model as `from_pretrained` builds it: in the dtype of the checkpoint, its head tied after loading."""

    def __init__(self, kind: Any, config: Any, weights: dict[str, torch.Tensor]) -> None:
        embedding = weights.get("model.embed_tokens.weight")
        dtype = torch.float32 if embedding is None else embedding.dtype
        self.model = kind._from_config(config, dtype=dtype, attn_implementation="eager").eval()
        if config.tie_word_embeddings and embedding is not None:
            weights = {**weights, "lm_head.weight": embedding}
        self.model.load_state_dict(weights, strict=True)

    def __call__(self, tokens: torch.Tensor, cache: Any = None) -> torch.Tensor:
        with torch.no_grad():
            return self.model(tokens, past_key_values=cache, use_cache=cache is not None).logits

    def make_cache(self) -> Any:
        return DynamicCache(config=self.model.config)


class Llama(_Decoder):
    def __init__(self, config: dict[str, Any], weights: dict[str, torch.Tensor]) -> None:
        super().__init__(LlamaForCausalLM, LlamaConfig.from_dict(dict(config)), weights)


class Qwen3(_Decoder):
    def __init__(self, config: dict[str, Any], weights: dict[str, torch.Tensor]) -> None:
        super().__init__(Qwen3ForCausalLM, Qwen3Config.from_dict(dict(config)), weights)


def warped(
    logits: torch.Tensor, top_k: int | None = None, top_p: float = 1.0, temperature: float = 1.0
) -> torch.Tensor:
    """What ``generate`` makes of a step's logits: it takes them to float32 and warps rows of two dims."""
    scores: Any = logits.float().reshape(-1, logits.shape[-1])
    warpers: list[Any] = [TemperatureLogitsWarper(float(temperature))] if temperature != 1 else []
    warpers += [TopKLogitsWarper(top_k)] if top_k else []
    warpers += [TopPLogitsWarper(top_p)] if top_p != 1 else []
    for warper in warpers:
        scores = warper(torch.zeros(len(scores), 0), scores)
    return scores.reshape(logits.shape)


def filter_logits(logits: torch.Tensor, top_k: int | None = None, top_p: float = 1.0) -> torch.Tensor:
    return warped(logits, top_k, top_p).to(logits.dtype)


class Sampler:
    """The two ways of ``generate``: argmax, or a draw with torch's global generator."""

    def __init__(self, temperature: float = 0, top_k: int | None = None, top_p: float = 1.0) -> None:
        self.temperature, self.top_k, self.top_p = temperature, top_k, top_p

    def __call__(self, logits: torch.Tensor) -> torch.Tensor:
        if self.temperature == 0:
            return logits.argmax(dim=-1)
        scores = warped(logits, self.top_k, self.top_p, self.temperature)
        shares = torch.softmax(scores, dim=-1).reshape(-1, logits.shape[-1])
        return torch.multinomial(shares, 1).reshape(logits.shape[:-1])


class _Loaded:
    def __init__(self, model: Any) -> None:
        self.model = model.eval()

    def __call__(self, tokens: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return self.model(tokens, use_cache=False).logits


def load(path: str) -> _Loaded:
    """from_pretrained; what it only warns of, its own report tells."""
    file = Path(path)
    place: Any = {"gguf_file": file.name, "dtype": torch.float32} if file.is_file() else {"dtype": "auto"}
    loaded: Any = AutoModelForCausalLM.from_pretrained(
        file.parent if file.is_file() else file, attn_implementation="eager", output_loading_info=True, **place
    )
    model, report = loaded
    for problem in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if report[problem]:
            raise ValueError(f"{problem.replace('_', ' ')}: {', '.join(map(str, sorted(report[problem])))}")
    return _Loaded(model)


PAST: Any = "cache" if "cache" in CausalLMOutputWithPast.__dataclass_fields__ else "past_key_values"
"""What models and ``generate`` call a cache, which is not the same in all versions."""


class _Layer(DynamicLayer):
    """A layer of a cache that is none of its own: it tells its length, and may be cut."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer

    @property
    def is_croppable(self) -> bool:  # type: ignore[override]
        return hasattr(self.layer, "rewind")

    def get_seq_length(self) -> int:
        return int(self.layer.offset)

    def crop(self, tokens_to_remove: int) -> None:
        # Once it was a length where it is not negative.
        self.layer.rewind(-tokens_to_remove if tokens_to_remove <= 0 else self.get_seq_length() - tokens_to_remove)


class _Cache(Cache):
    def __init__(self, made: Any) -> None:
        super().__init__(layers=[_Layer(layer) for layer in made])
        self.made = made


class _Served(PreTrainedModel, GenerationMixin):
    """Any model with a cache, as ``generate`` calls one of its own."""

    def __init__(self, model: Any) -> None:
        super().__init__(PreTrainedConfig.from_dict({"vocab_size": 0}))
        self.model = model

    @property
    def device(self) -> torch.device:
        """``generate`` asks for that of the parameters, and a model of the contract shows none."""
        return torch.get_default_device()

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        return False

    def forward(self, input_ids: Any, use_cache: bool = True, attention_mask: None = None, **more: Any) -> Any:
        """attention_mask: who takes none is fed what its cache holds once more."""
        cache = more.get(PAST)
        if use_cache and cache is None:
            cache = _Cache(self.model.make_cache())
        return CausalLMOutputWithPast(logits=self.model(input_ids, cache and cache.made), **{PAST: cache})


class _Left(Exception):
    """The caller takes no more ids."""


class _Streamer(BaseStreamer):
    """Hands out ids one by one: ``generate`` runs in a thread, and waits there until the next one is asked for."""

    def __init__(self) -> None:
        self.wishes: SimpleQueue[bool] = SimpleQueue()
        self.came: SimpleQueue[Any] = SimpleQueue()
        self.prompt = True

    def put(self, value: torch.Tensor) -> None:
        if not self.prompt:
            for token in value.flatten().tolist():
                self.came.put(token)
                self.wait()
        self.prompt = False

    def wait(self) -> None:
        if not self.wishes.get():
            raise _Left

    def end(self) -> None:
        """`_streamed` sees it."""


def _streamed(model: _Served, tokens: Any, max_tokens: int, eos: Sequence[int], **more: Any) -> Iterator[int]:
    """The ids of ``generate``. What it raises passes to who asks for the next one."""
    streamer = _Streamer()
    asked = {"max_new_tokens": max_tokens, "eos_token_id": list(eos) or None, "do_sample": False, **more}
    device = torch.get_default_device()

    def work() -> None:
        try:
            # A thread begins with a default of its own; to set what is there already slows every call.
            if torch.get_default_device() != device:
                torch.set_default_device(device)
            streamer.wait()
            model.generate(torch.as_tensor(tokens)[None], streamer=streamer, **asked)
            streamer.came.put(None)
        except BaseException as error:
            streamer.came.put(error)

    thread = Thread(target=work, daemon=True)
    thread.start()
    try:
        while True:
            streamer.wishes.put(True)
            came = streamer.came.get()
            if isinstance(came, BaseException):
                raise came
            if came is None:
                return
            yield came
    finally:
        streamer.wishes.put(False)
        thread.join()


class _Chosen(LogitsProcessor):
    """Leaves the id that a sampler chooses of a step's logits."""

    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        chosen = torch.as_tensor(self.sampler(scores)).reshape(-1, 1).long()
        return torch.full_like(scores, -torch.inf).scatter(-1, chosen, 0.0)


def generate(
    model: Any, tokens: Any, *, max_tokens: int, eos: Sequence[int] = (), sampler: Any = None, cache: bool = True
) -> Iterator[int]:
    processors = [_Chosen(sampler)] if sampler else []
    return _streamed(_Served(model), tokens, max_tokens, eos, use_cache=cache, logits_processor=processors)


def speculative_generate(
    target: Any, draft: Any, tokens: Any, *, max_tokens: int, num_draft_tokens: int = 4, eos: Sequence[int] = ()
) -> Iterator[int]:
    """Assisted generation, with as many drafts in each round, whatever the assistant thinks of them."""
    assistant = _Served(draft)
    assistant.generation_config.update(
        num_assistant_tokens=num_draft_tokens,
        num_assistant_tokens_schedule="constant",
        assistant_confidence_threshold=0.0,
    )
    own = _Cache(target.make_cache())  # It makes only such as it knows before the first step.
    return _streamed(_Served(target), tokens, max_tokens, eos, assistant_model=assistant, **{PAST: own})
