"""LitGPT: its GPT as Llama and Qwen3, parts of it, its sampling and its two loops. ``pip install litgpt`` first."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from typing import Any

import torch
from litgpt.config import Config
from litgpt.generate import base as plain
from litgpt.generate import speculative_decoding as speculative
from litgpt.model import GPT, LLaMAMLP, apply_rope, build_rope_cache
from litgpt.model import KVCache as Buffers
from litgpt.model import RMSNorm as Norm
from litgpt.scripts.convert_hf_checkpoint import copy_weights_hf_llama, copy_weights_qwen_3

from inferspec.conformance.subjects.offsets import start_of

NAME = "litgpt"
VERSION = version("litgpt")
ARRAYS = "torch"
WAIVERS = "litgpt.toml"
PRECISION = {"sampling": "native"}
SCALED = ["default", "linear", "llama3", "yarn"]
# Its converter of Llama knows no biases. torch.multinomial raises for a row without a distribution.
ENVELOPE = {
    "llama": {
        "packing": ["dense"],
        "biases": ["none"],
        "rope_types": SCALED,
    },
    "qwen3": {"packing": ["dense"], "rope_types": SCALED},
    "sampling": {"without_distribution": [False]},
    "generation": {"zero_max_tokens": [False]},
    "speculative": {"zero_max_tokens": [False], "zero_num_draft_tokens": [False]},
}


class RMSNorm:
    def __init__(self, dims: int, weight: torch.Tensor, eps: float = 1e-5) -> None:
        self.layer = Norm(dims, eps=eps)
        self.layer.load_state_dict({"weight": weight}, assign=True)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return self.layer(x)


class SwiGLU:
    def __init__(
        self, dims: int, hidden_dims: int, w_gate: torch.Tensor, w_up: torch.Tensor, w_down: torch.Tensor
    ) -> None:
        self.layer = LLaMAMLP(Config(n_embd=dims, n_head=1, intermediate_size=hidden_dims, bias=False))
        weights = {"fc_1.weight": w_gate, "fc_2.weight": w_up, "proj.weight": w_down}
        self.layer.load_state_dict(weights, assign=True)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return self.layer(x)


class RoPE:
    """``apply_rope``, on tables from which a GPT takes the rows of its tokens."""

    def __init__(self, dims: int, max_positions: int, base: float = 10000) -> None:
        self.dims = dims
        self.cos, self.sin = build_rope_cache(max_positions, dims, base=base)

    def __call__(self, x: torch.Tensor, offset: Any = None) -> torch.Tensor:
        rows = offset if isinstance(offset, list) else [offset] * len(x)
        if len(rows) != len(x):
            raise ValueError(f"offset has {len(rows)} slices for {len(x)} rows")
        if not rows:
            return x
        positions = torch.stack([_positions(row, x.shape[1]) for row in rows])
        x = x.transpose(1, 2)
        turned = apply_rope(x[..., : self.dims], self.cos[positions], self.sin[positions])
        return torch.cat((turned, x[..., self.dims :]), dim=-1).transpose(1, 2)


def _positions(offset: Any, length: int) -> torch.Tensor:
    start = start_of(offset, length)
    if start < 0:  # a table is read from its end there
        raise ValueError(f"offset is {offset}; it takes 0 and more")
    return torch.arange(start, start + length)


class StaticKVCache:
    """A ``KVCache``, and how many tokens are in it: that litgpt counts outside of it, in its loops."""

    def __init__(self, max_len: int) -> None:
        self.max_len, self.offset = max_len, 0
        self.cache: Buffers | None = None

    def update_and_fetch(self, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        cache = self.cache
        if cache is None:
            rows = (*key.shape[:2], self.max_len)
            cache = Buffers((*rows, key.shape[3]), (*rows, value.shape[3]), dtype=key.dtype)
        end = self.offset + key.shape[2]
        keys, values = cache(torch.arange(self.offset, end), key, value)
        self.cache, self.offset = cache, end
        return keys[:, :, :end], values[:, :, :end]

    def rewind(self, n: int) -> None:
        if not 0 <= n <= self.offset:
            raise ValueError(f"n is {n}; it takes 0 … {self.offset}")
        self.offset -= n

    @property
    def state(self) -> Any:
        return copy.deepcopy((self.offset, self.cache))

    def restore(self, state: Any) -> None:
        if state[0] > self.max_len:
            raise ValueError(f"a state of {state[0]} tokens; there is room for {self.max_len}")
        self.offset, self.cache = copy.deepcopy(state)


class _Decoder:
    """A GPT with the weights that a converter of checkpoints makes of those of Hugging Face."""

    def __init__(self, config: Config, weights: dict[str, torch.Tensor], tied: bool, convert: Callable[..., None]):
        if tied:  # A converter takes the embedding for the head where there is none, whatever the config says.
            weights = {name: weight for name, weight in weights.items() if name != "lm_head.weight"}
        elif "lm_head.weight" not in weights:
            raise ValueError("there is no lm_head.weight")
        state: dict[str, torch.Tensor] = {}
        convert(config, {}, state, weights)
        self.model = GPT(config).eval()
        self.model.load_state_dict(state, strict=True, assign=True)

    def __call__(self, tokens: torch.Tensor, cache: Any = None) -> torch.Tensor:
        with torch.no_grad():
            return self.model(tokens) if cache is None else cache.forward(tokens)

    def make_cache(self) -> Any:
        return _Request(self.model)


class _Request:
    """The caches of all layers, which a model has for one request at a time: they are put into it while it computes."""

    def __init__(self, model: GPT) -> None:
        self.model, self.offset = model, 0
        self.caches: list[Buffers] = []

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        layers = [block.attn for block in self.model.transformer.h]
        if not self.caches:
            self.model.set_kv_cache(len(tokens), dtype=self.model.lm_head.weight.dtype)
            self.caches = [layer.kv_cache for layer in layers]
        for layer, cache in zip(layers, self.caches, strict=True):
            layer.kv_cache = cache
        end = self.offset + tokens.shape[1]
        logits = self.model(tokens, torch.arange(self.offset, end), input_pos_maxp1=end)
        self.offset = end
        return logits


class Llama(_Decoder):
    def __init__(self, config: dict[str, Any], weights: dict[str, torch.Tensor]) -> None:
        super().__init__(_config(config), weights, config.get("tie_word_embeddings", False), copy_weights_hf_llama)


class Qwen3(_Decoder):
    def __init__(self, config: dict[str, Any], weights: dict[str, torch.Tensor]) -> None:
        own = _config(config, norm_qk=True, **_windows(config))
        super().__init__(own, weights, config.get("tie_word_embeddings", False), copy_weights_qwen_3)


def _windows(config: dict[str, Any]) -> dict[str, Any]:
    if not config.get("use_sliding_window"):
        return {}
    layers = range(config["num_hidden_layers"])
    kinds = config.get("layer_types")
    slide = [kinds[i] == "sliding_attention" if kinds else i >= config["max_window_layers"] for i in layers]
    return {"sliding_window_size": config["sliding_window"], "sliding_window_indices": [int(one) for one in slide]}


def _config(config: dict[str, Any], **more: Any) -> Config:
    """litgpt has a table of the models that it knows, and reads no config of Hugging Face."""
    rope = {**(config.get("rope_scaling") or {}), **(config.get("rope_parameters") or {})}
    kind = rope.get("rope_type") or rope.get("type") or "default"
    act = config.get("hidden_act") or "silu"
    if kind not in SCALED or act not in ("silu", "swish"):
        raise ValueError(f"rope_type is {kind!r} and hidden_act {act!r}; they take one of {SCALED} and 'silu'")
    heads = config["num_attention_heads"]
    # Of a linear scaling a config says how many positions there were before.
    longer = rope["factor"] if kind == "linear" else 1
    return Config(
        block_size=math.ceil(config.get("max_position_embeddings", 2048) * longer),
        padded_vocab_size=config["vocab_size"],
        n_layer=config["num_hidden_layers"],
        n_head=heads,
        n_embd=config["hidden_size"],
        n_query_groups=config.get("num_key_value_heads") or heads,
        head_size=config.get("head_dim") or config["hidden_size"] // heads,
        rotary_percentage=1.0,
        parallel_residual=False,
        bias=False,
        norm_class_name="RMSNorm",
        norm_eps=config["rms_norm_eps"],
        mlp_class_name="LLaMAMLP",
        intermediate_size=config["intermediate_size"],
        rope_base=config.get("rope_theta") or rope.get("rope_theta") or 10000,
        rope_adjustments=_adjustments(kind, rope),
        **more,
    )


def _adjustments(kind: str, rope: dict[str, Any]) -> dict[str, Any] | None:
    """How its table says what a config says of a scaled RoPE. Without mscales its YaRN multiplies nothing: one of 1 is what
    others mean then. It knows no attention_factor."""
    if kind == "default":
        return None
    names = {"linear": (), "llama3": ("low_freq_factor", "high_freq_factor"), "yarn": ("mscale", "mscale_all_dim")}[
        kind
    ]
    found = {"factor": rope["factor"], **{name: rope[name] for name in names if rope.get(name) is not None}}
    if kind == "yarn":
        found = {"beta_fast": rope.get("beta_fast", 32), "beta_slow": rope.get("beta_slow", 1), "mscale": 1.0, **found}
    if (length := rope.get("original_max_position_embeddings")) and kind != "linear":
        found["original_max_seq_len"] = length
    return found


class Sampler:
    """``sample``, which takes the last row of the first of a batch."""

    def __init__(self, temperature: float = 0, top_k: int | None = None, top_p: float = 1.0) -> None:
        self.temperature, self.top_k, self.top_p = temperature, top_k or None, top_p

    def __call__(self, logits: torch.Tensor) -> torch.Tensor:
        rows = logits.reshape(-1, 1, 1, logits.shape[-1])
        ids = [int(plain.sample(row, self.temperature, self.top_k, self.top_p)) for row in rows]
        return torch.tensor(ids, dtype=torch.int64).reshape(logits.shape[:-1])


def filter_logits(logits: torch.Tensor, top_p: float = 1.0) -> torch.Tensor:
    """``sample_top_p``, row by row. What top_k leaves, ``sample`` keeps to itself."""
    if top_p == 1 or not logits.numel():
        return logits
    rows = logits.reshape(-1, logits.shape[-1])
    return torch.stack([plain.sample_top_p(row, top_p) for row in rows]).reshape(logits.shape)


class _Positioned(torch.nn.Module):
    """A model with a cache, called as a GPT is: with the positions of its tokens, over which later ones may be written."""

    max_seq_length = 1 << 60

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model, self.cache, self.fed = model, model.make_cache(), 0

    def forward(self, idx: torch.Tensor, input_pos: torch.Tensor, input_pos_maxp1: int) -> torch.Tensor:
        if back := self.fed + idx.shape[1] - input_pos_maxp1:
            for layer in self.cache:
                layer.rewind(back)
        self.fed = input_pos_maxp1
        return self.model(idx, self.cache)


def generate(model: Any, tokens: Any, *, max_tokens: int, eos: Sequence[int] = ()) -> Iterator[int]:
    prompt = torch.as_tensor(tokens)
    ids = plain.generate_fn(
        _Positioned(model),
        prompt,
        len(prompt) + max_tokens,
        temperature=0.0,
        stop_tokens=tuple([token] for token in eos),
        include_prompt=False,
        include_eos=False,
    )
    return (int(token) for token in ids)


def speculative_generate(
    target: Any, draft: Any, tokens: Any, *, max_tokens: int, num_draft_tokens: int = 4, eos: Sequence[int] = ()
) -> Iterator[int]:
    prompt = torch.as_tensor(tokens)
    ids, _ = speculative.generate(
        _Positioned(draft),
        _Positioned(target),
        prompt,
        len(prompt) + max_tokens,
        temperature=0.0,
        stop_tokens=tuple(eos),
        include_prompt=False,
        speculative_k=num_draft_tokens,
    )
    return iter(ids.tolist())
