"""ONNX Runtime: the standard operators of ONNX, each as a model of one node, on a CPU. ``pip install onnx onnxruntime`` first."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import onnxruntime
from onnx import helper

from inferspec.conformance.subjects.offsets import start_of

NAME = "onnxruntime"
VERSION = onnxruntime.__version__
ARRAYS = "numpy"
WAIVERS = "onnxruntime.toml"
PRECISION = dict.fromkeys(("linear", "attention", "flash_attention", "rope", "mlp"), "native")

DTYPES = ["float32", "float16"]
"""Python hands it NumPy arrays, and NumPy has no bfloat16."""

# Attention multiplies query and key by the root of the scale each. Gather takes no other ids.
ENVELOPE: dict[str, dict[str, list[Any]]] = {
    "linear": {"dtypes": DTYPES},
    "attention": {"dtypes": DTYPES, "scale_signs": ["positive"]},
    "flash_attention": {"dtypes": DTYPES, "scale_signs": ["positive"]},
    "rope": {"dtypes": DTYPES},
    "rms_norm": {"dtypes": DTYPES},
    "mlp": {"dtypes": DTYPES},
    "embedding": {"dtypes": DTYPES, "token_dtypes": ["int32", "int64"]},
}

OPSET, IR_VERSION = 24, 11
"""The first opset with Swish. onnx writes files of the newest version unless told, which the runtime may not know yet."""


def _run(op: str, *inputs: np.ndarray | None, outputs: int = 1, **attributes: Any) -> np.ndarray:
    """The first of an operator's outputs, all of which have the dtype of its first input. None: an input that is left out."""
    kinds = tuple(None if x is None else x.dtype for x in inputs)
    feed = {f"in{n}": x for n, x in enumerate(inputs) if x is not None}
    return _session(op, kinds, outputs, tuple(sorted(attributes.items()))).run(["out0"], feed)[0]


@functools.lru_cache(maxsize=512)
def _session(
    op: str, kinds: tuple[np.dtype | None, ...], outputs: int, attributes: tuple[tuple[str, Any], ...]
) -> onnxruntime.InferenceSession:
    """Of any shapes, so that a session serves them all."""
    given = {f"in{n}": helper.np_dtype_to_tensor_dtype(kind) for n, kind in enumerate(kinds) if kind is not None}
    made = [f"out{n}" for n in range(outputs)]
    names = [f"in{n}" if kind is not None else "" for n, kind in enumerate(kinds)]
    graph = helper.make_graph(
        [helper.make_node(op, names, made, **dict(attributes))],
        op,
        [helper.make_tensor_value_info(name, kind, None) for name, kind in given.items()],
        [helper.make_tensor_value_info(name, given["in0"], None) for name in made],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # each session has threads of its own
    options.log_severity_level = 4  # what it refuses it raises too
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def linear(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"bias is {bias.shape}, and weight {weight.shape}")
    product = _run("MatMul", x, weight.T)
    return product if bias is None else _run("Add", product, bias)


def silu(x: np.ndarray) -> np.ndarray:
    return _run("Swish", x)


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    return _run("Softmax", x, axis=axis)


def scaled_dot_product_attention(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, *, scale: float | None = None, mask: Any = None
) -> np.ndarray:
    """The operator has one leading axis, and a mask whose last two axes are those of the scores."""
    scores = (*query.shape[:-1], key.shape[-2])
    queries, keys, values = (x.reshape(math.prod(x.shape[:-3]), *x.shape[-3:]) for x in (query, key, value))
    options: dict[str, Any] = {} if scale is None else {"scale": float(scale)}
    past: tuple[np.ndarray, ...] = ()
    if isinstance(mask, str):
        mask, earlier = _named(mask, *scores[-2:]), scores[-1] - scores[-2]
        if mask is None:
            (past_keys, keys), (past_values, values) = (np.split(x, [earlier], axis=-2) for x in (keys, values))
            # It takes what is past only where it also gives what is present.
            past, options = (past_keys, past_values), {**options, "is_causal": 1, "outputs": 3}
    if mask is not None:
        mask = np.broadcast_to(mask, scores).reshape(len(queries), *scores[-3:])
    found = _run("Attention", queries, keys, values, mask, *past, **options)
    return found.reshape(*query.shape[:-1], value.shape[-1])


flash_attention = scaled_dot_product_attention


def _named(mask: str, length: int, keys: int) -> np.ndarray | None:
    """None where ``is_causal`` says it, which puts the first query right after the past keys: with no more queries than keys."""
    if mask != "causal":
        raise ValueError(f"mask is {mask!r}; it takes 'causal'")
    return np.tri(length, keys, keys - length, dtype=bool) if length > keys else None


class RoPE:
    """The operator takes cosines and sines, which whoever exports a model computes, here in float64."""

    def __init__(self, dims: int, max_positions: int, base: float = 10000, traditional: bool = False) -> None:
        self.dims, self.traditional = dims, traditional
        self.frequencies = float(base) ** (-np.arange(0, dims, 2) / dims)

    def __call__(self, x: np.ndarray, offset: Any = None) -> np.ndarray:
        rows = offset if isinstance(offset, list) else [offset] * len(x)
        if len(rows) != len(x):
            raise ValueError(f"offset has {len(rows)} slices for {len(x)} rows")
        positions = np.array([_positions(row, x.shape[1]) for row in rows]).reshape(x.shape[:2])
        angles = positions[..., None] * self.frequencies
        tables = [part(angles).astype(x.dtype) for part in (np.cos, np.sin)]
        options = {"interleaved": int(self.traditional)}
        if self.dims != x.shape[-1]:
            options["rotary_embedding_dim"] = self.dims
        return _run("RotaryEmbedding", x.swapaxes(1, 2), *tables, **options).swapaxes(1, 2)


def _positions(offset: Any, length: int) -> np.ndarray:
    return np.arange(length) + start_of(offset, length)


class RMSNorm:
    def __init__(self, dims: int, weight: np.ndarray, eps: float = 1e-5) -> None:
        self.weight, self.eps = weight, float(eps)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return _run("RMSNormalization", x, self.weight, epsilon=self.eps)


class SwiGLU:
    def __init__(self, dims: int, hidden_dims: int, w_gate: np.ndarray, w_up: np.ndarray, w_down: np.ndarray) -> None:
        if not (w_gate.shape == w_up.shape == w_down.shape[::-1] == (hidden_dims, dims)):
            raise ValueError(f"the weights are {w_gate.shape}, {w_up.shape} and {w_down.shape}")
        self.gate, self.up, self.down = w_gate, w_up, w_down

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return linear(_run("Mul", silu(linear(x, self.gate)), linear(x, self.up)), self.down)


class Embedding:
    def __init__(self, vocab_size: int, dims: int, weight: np.ndarray) -> None:
        if weight.shape != (vocab_size, dims):
            raise ValueError(f"weight is {weight.shape}, not {(vocab_size, dims)}")
        self.weight = weight

    def __call__(self, tokens: np.ndarray) -> np.ndarray:
        return _run("Gather", self.weight, tokens)

    def as_linear(self, x: np.ndarray) -> np.ndarray:
        return linear(x, self.weight)
