"""Properties of whole models, as sentences about one subject and one call; the suites of Llama and Qwen3 share them."""

from __future__ import annotations

from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.properties import bit_equal, refuses
from inferspec.conformance.trial import Nonconformance, Trial
from inferspec.spec.numerics import numpy_dtype


def refuses_naming(subject: Trial, call: Call, tensor: str) -> None:
    """The model is refused, with an error that names the tensor."""
    refuses(subject, call)
    message = subject.observe(call).message
    if tensor not in message:
        raise Nonconformance(f"the error does not name {tensor}; it reads: {message[:200]}", call)


def no_token_changes_earlier_logits(subject: Trial, call: Call, at: float) -> None:
    """Other tokens from some place on leave all logits before it the same, bit for bit."""
    tokens = call.arguments["tokens"]
    place = min(1 + int(at * (tokens.shape[1] - 1)), tokens.shape[1] - 1)
    later = next_ids(call)
    later[:, :place] = tokens[:, :place]
    before, after = subject.agrees(call.kept(0)), subject.agrees(call.having(tokens=later).kept(0))
    if not bit_equal(before[:, :place], after[:, :place]):
        raise Nonconformance(f"tokens from {place} on change the logits before them", call)


def each_row_is_right_alone(subject: Trial, call: Call) -> None:
    """A batch is right, and so is each of its rows in a call of its own."""
    subject.agrees(call.kept(0))
    for row in range(len(call.arguments["tokens"])):
        subject.agrees(call.having(tokens=call.arguments["tokens"][row : row + 1]).kept(0))


def one_tensor_changes(call: Call, which: float) -> Call:
    """The same model with one of its tensors, any of them, replaced: by its rows in reverse order, or its negative."""
    weights = dict(call.arguments["weights"])
    name = sorted(weights)[int(which * len(weights))]
    tensor = weights[name]
    other = tensor[::-1].copy() if tensor.ndim > 1 else -tensor
    return call.having(weights={**weights, name: other})


def without(call: Call, which: float) -> tuple[Call, str]:
    """The call with a tensor missing, and its name."""
    weights = dict(call.arguments["weights"])
    # A layer without scales is a dense one, whose weight then is misshaped.
    name = _one_of([name for name in weights if not name.endswith(".scales")], which)
    del weights[name]
    return call.having(weights=weights), name


def misshaped(call: Call, which: float, way: str) -> tuple[Call, str]:
    """The call with a tensor that has a row more, a row less, or its axes exchanged, and the tensor's name."""
    weights = dict(call.arguments["weights"])
    name = _one_of(list(weights), which)
    tensor = weights[name]
    if way == "transposed" and tensor.ndim == 2 and tensor.shape[0] != tensor.shape[1]:
        other = np.ascontiguousarray(tensor.T)
    elif way == "shorter" and len(tensor) > 1:
        other = tensor[:-1].copy()
    else:
        other = np.concatenate([tensor, tensor[:1]])
    return call.having(weights={**weights, name: other}), name


ADDITIONAL = (
    "model.layers.{next}.mlp.up_proj.weight",
    "model.layers.0.self_attn.o_norm.weight",
    "model.layers.0.mlp.gate_projection.weight",
    "model.embed_positions.weight",
)
"""Names that no config here has a place for; {next} is the number of layers."""


def with_additional(call: Call, pattern: str) -> tuple[Call, str]:
    """The call with a tensor too many, and its name."""
    config = call.arguments["config"]
    name = pattern.format(next=config["num_hidden_layers"])
    extra = np.ones((3, config["hidden_size"])).astype(numpy_dtype(call.features["dtypes"]))
    return call.having(weights={**call.arguments["weights"], name: extra}), name


def with_config(call: Call, **fields: Any) -> Call:
    """The call with some fields of its config replaced."""
    return call.having(config={**call.arguments["config"], **fields})


def next_ids(call: Call) -> np.ndarray:
    """The tokens with every id replaced by the one after it."""
    tokens = call.arguments["tokens"]
    return np.asarray((tokens.astype(np.int64) + 1) % call.arguments["config"]["vocab_size"]).astype(tokens.dtype)


def with_one_token(call: Call, bad: int) -> Call:
    """The call with one of its tokens replaced."""
    tokens = call.arguments["tokens"].copy()
    tokens.flat[(call.seed or 0) % tokens.size] = bad
    return call.having(tokens=tokens)


def _one_of(names: list[str], which: float) -> str:
    return sorted(names)[int(which * len(names))]
