"""PyTorch: ``torch.nn.functional`` and ``torch.nn``. torch has no rotary embedding of its own; transformers does."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

NAME = "torch"
VERSION = torch.__version__
ARRAYS = "torch"
WAIVERS = "torch.toml"
PRECISION = dict.fromkeys(("linear", "attention", "flash_attention"), "native")
POSITIVE = {"scale_signs": ["positive"]} if torch.get_default_device().type == "cuda" else {}
"""The flash kernel and cuDNN hide the room of a tile before they scale: where the scale is 0 or negative, all is NaN."""
# torch.multinomial raises for a batch with a row without a distribution.
ENVELOPE = {
    "attention": POSITIVE,
    "flash_attention": POSITIVE,
    "sampling": {"without_distribution": [False]},
}

linear = F.linear
silu = F.silu


def softmax(x: torch.Tensor, axis: int = -1) -> torch.Tensor:
    return F.softmax(x, dim=axis)


def scaled_dot_product_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *, scale: float | None = None, mask: Any = None
) -> torch.Tensor:
    if isinstance(mask, str):
        mask = _named(mask, query.shape[-2], key.shape[-2])
    if mask is not None:
        mask = mask.expand(*query.shape[:-1], key.shape[-2])
    grouped = query.shape[-3] != key.shape[-3]
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale, enable_gqa=grouped)


flash_attention = scaled_dot_product_attention
"""On a CPU it is a flash kernel where the mask allows it."""


def _named(mask: str, length: int, keys: int) -> torch.Tensor:
    """torch's own ``is_causal`` is aligned top-left, so the mask is given explicitly."""
    if mask != "causal":
        raise ValueError(f"mask is {mask!r}; it takes 'causal'")
    return torch.ones(length, keys, dtype=torch.bool).tril(keys - length)


def causal_mask(L: int, S: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.full((L, S), -torch.inf, dtype=dtype).triu(S - L + 1)


class RMSNorm:
    def __init__(self, dims: int, weight: torch.Tensor, eps: float = 1e-5) -> None:
        self.dims, self.weight, self.eps = dims, weight, eps

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x, (self.dims,), self.weight, self.eps)


class SwiGLU:
    def __init__(
        self, dims: int, hidden_dims: int, w_gate: torch.Tensor, w_up: torch.Tensor, w_down: torch.Tensor
    ) -> None:
        options: dict[str, Any] = {"bias": False, "dtype": w_gate.dtype}
        self.gate, self.up = (torch.nn.Linear(dims, hidden_dims, **options) for _ in range(2))
        self.down = torch.nn.Linear(hidden_dims, dims, **options)
        for layer, weight in ((self.gate, w_gate), (self.up, w_up), (self.down, w_down)):
            layer.load_state_dict({"weight": weight})

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Embedding:
    def __init__(self, vocab_size: int, dims: int, weight: torch.Tensor) -> None:
        self.weight = torch.nn.Embedding(vocab_size, dims, _weight=weight).weight

    def __call__(self, tokens: torch.Tensor) -> torch.Tensor:
        return F.embedding(tokens.long(), self.weight)

    def as_linear(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, self.weight)


class Sampler:
    """``torch.multinomial``, with a generator of its own when it is given a seed."""

    def __init__(self, temperature: float = 0, seed: int | None = None) -> None:
        self.temperature = temperature
        self.generator = None if seed is None else torch.Generator(torch.get_default_device()).manual_seed(seed)

    def __call__(self, logits: torch.Tensor) -> torch.Tensor:
        if self.temperature == 0:
            return logits.argmax(dim=-1)
        shares = torch.softmax(logits.float() / self.temperature, dim=-1)
        rows = shares.reshape(-1, shares.shape[-1])
        return torch.multinomial(rows, 1, generator=self.generator).reshape(logits.shape[:-1])
