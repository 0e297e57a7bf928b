"""Operations of the kit at given sizes: what goes in, what must come out, and what it costs at least.

Sizes by letter, those of products as BLAS has them: M rows, K inputs, N outputs; G group size, R rows, D features or head dim,
L queries, S keys (of rope: the first position), Q query heads, H key/value heads, B requests, V vocabulary, E hidden size, F
the MLP's, T tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from inferspec.spec.attention import ScaledDotProductAttention
from inferspec.spec.contract import Arguments, Operation
from inferspec.spec.embedding import Embedding
from inferspec.spec.flash_attention import FlashAttention
from inferspec.spec.linear import Linear, Softmax
from inferspec.spec.mlp import SwiGLU
from inferspec.spec.numerics import DTYPES, numpy_dtype
from inferspec.spec.paged_attention import PagedAttention
from inferspec.spec.quantization import QuantizedEmbedding, QuantizedEmbeddingAsLinear, QuantizedMatmul
from inferspec.spec.rms_norm import RMSNorm
from inferspec.spec.rope import RoPE
from inferspec.tools.generate import Unusable

Sizes = Mapping[str, int]
PAGE = 16
HEAD_BITS = 8
"""Of embeddings and heads; matrices have 4."""
JUDGED_ROWS = 2048
"""Rows of a head that are compared with the oracle, whose float64 copy of all would not fit into a small machine."""


@dataclass(frozen=True)
class Case:
    """One operation at one size and dtype. sizes: by letter, in order."""

    op: str
    sizes: tuple[tuple[str, int], ...]
    dtype: str

    @property
    def name(self) -> str:
        """As it is shown, and told apart."""
        return f"{self.op} {' '.join(f'{letter}={size}' for letter, size in self.sizes)} {self.dtype}"

    def arguments(self, seed: int) -> dict[str, Any]:
        """The contract's arguments, drawn by a seed: NumPy arrays and numbers."""
        return OPS[self.op].draw(Draw(self.dtype, seed), **dict(self.sizes))

    @property
    def cost(self) -> tuple[float, float]:
        """Bytes that are read or written once, and floating-point operations."""
        return OPS[self.op].cost(numpy_dtype(self.dtype).itemsize, **dict(self.sizes))

    def judged(self, arguments: Mapping[str, Any]) -> tuple[Operation, Arguments, Callable[[np.ndarray], np.ndarray]]:
        """The oracle, its arguments, and which part of an output they are of."""
        op = OPS[self.op]
        reduced, part = op.judged(arguments)
        oracle = op.oracle()
        return oracle, oracle.bind(reduced), part


class Draw:
    """Random arrays of a dtype."""

    def __init__(self, dtype: str, seed: int) -> None:
        self.dtype, self.random = numpy_dtype(dtype), np.random.default_rng(seed)

    def normal(self, *shape: int, scale: float = 1.0) -> np.ndarray:
        """Activations, or weights of that standard deviation."""
        return (self.random.standard_normal(shape, np.float32) * np.float32(scale)).astype(self.dtype)

    def ids(self, below: int, *shape: int) -> np.ndarray:
        """Token ids."""
        return self.random.integers(0, below, shape, np.int32)

    def packed(self, rows: int, inputs: int, group: int, bits: int) -> dict[str, np.ndarray]:
        """A quantised matrix whose product with activations of size 1 is of size 1."""
        words = self.random.integers(0, 2**32, (rows, inputs * bits // 32), np.uint32)
        levels, shape = 2**bits - 1, (rows, inputs // group)
        step = inputs**-0.5 * 3.4 / levels * (0.5 + self.random.random(shape, np.float32))
        scales = step.astype(self.dtype)
        return {"packed": words, "scales": scales, "biases": (-step * levels / 2).astype(self.dtype)}


def _whole(arguments: Mapping[str, Any]) -> tuple[Mapping[str, Any], Callable[[np.ndarray], np.ndarray]]:
    return arguments, lambda output: output


@dataclass(frozen=True)
class Op:
    """How an operation is drawn, counted and judged; letters: its sizes, in order."""

    letters: str
    oracle: type[Operation]
    draw: Callable[..., dict[str, Any]]
    cost: Callable[..., tuple[float, float]]
    judged: Callable[[Mapping[str, Any]], tuple[Mapping[str, Any], Callable[[np.ndarray], np.ndarray]]] = _whole


def _rows_of_table(
    arguments: Mapping[str, Any],
) -> tuple[Mapping[str, Any], Callable[[np.ndarray], np.ndarray]]:
    """An embedding of the rows alone that are read."""
    rows, tokens = np.unique(arguments["tokens"], return_inverse=True)
    table = {name: x[rows] for name, x in arguments.items() if name in ("weight", "packed", "scales", "biases")}
    size = {"vocab_size": len(rows)} if "vocab_size" in arguments else {}
    return {**arguments, **table, **size, "tokens": tokens.reshape(arguments["tokens"].shape)}, lambda output: output


def _rows_of_head(
    arguments: Mapping[str, Any],
) -> tuple[Mapping[str, Any], Callable[[np.ndarray], np.ndarray]]:
    """A head of some rows, evenly spread."""
    rows = np.unique(np.linspace(0, len(arguments["packed"]) - 1, JUDGED_ROWS).astype(np.int64))
    table = {name: arguments[name][rows] for name in ("packed", "scales", "biases")}
    return {**arguments, **table}, lambda output: output[..., rows]


def _linear(draw: Draw, M: int, K: int, N: int) -> dict[str, Any]:
    return {"x": draw.normal(M, K), "weight": draw.normal(N, K, scale=K**-0.5), "bias": None}


def _swiglu(draw: Draw, M: int, E: int, F: int) -> dict[str, Any]:
    weights = {"w_gate": draw.normal(F, E, scale=E**-0.5), "w_up": draw.normal(F, E, scale=E**-0.5)}
    down = draw.normal(E, F, scale=F**-0.5)
    return {"dims": E, "hidden_dims": F, **weights, "w_down": down, "x": draw.normal(M, E)}


def _rms_norm(draw: Draw, R: int, D: int) -> dict[str, Any]:
    return {"dims": D, "weight": draw.normal(D), "eps": 1e-5, "x": draw.normal(R, D)}


def _softmax(draw: Draw, R: int, V: int) -> dict[str, Any]:
    return {"x": draw.normal(R, V, scale=3.0), "axis": -1}


def _rope(draw: Draw, L: int, H: int, D: int, S: int) -> dict[str, Any]:
    settings = {"dims": D, "max_positions": S + L, "base": 10000, "traditional": False}
    return {**settings, "x": draw.normal(1, L, H, D), "offset": S}


def _quantized_matmul(draw: Draw, M: int, K: int, N: int, G: int) -> dict[str, Any]:
    return {"x": draw.normal(M, K), **draw.packed(N, K, G, 4), "group_size": G, "bits": 4, "transpose": True}


def _quantized_head(draw: Draw, M: int, E: int, V: int, G: int) -> dict[str, Any]:
    return {**draw.packed(V, E, G, HEAD_BITS), "group_size": G, "bits": HEAD_BITS, "x": draw.normal(M, E)}


def _embedding(draw: Draw, T: int, E: int, V: int) -> dict[str, Any]:
    return {"vocab_size": V, "dims": E, "weight": draw.normal(V, E), "tokens": draw.ids(V, T)}


def _quantized_embedding(draw: Draw, T: int, E: int, V: int, G: int) -> dict[str, Any]:
    return {**draw.packed(V, E, G, HEAD_BITS), "group_size": G, "bits": HEAD_BITS, "tokens": draw.ids(V, T)}


def _attention(draw: Draw, Q: int, H: int, L: int, S: int, D: int, mask: str | None) -> dict[str, Any]:
    states = {"key": draw.normal(1, H, S, D), "value": draw.normal(1, H, S, D)}
    return {"query": draw.normal(1, Q, L, D), **states, "scale": None, "mask": mask}


def _paged(draw: Draw, B: int, Q: int, H: int, S: int, D: int) -> dict[str, Any]:
    each = -(-S // PAGE)
    pools = {name: draw.normal(B * each, H, PAGE, D) for name in ("key_pages", "value_pages")}
    table = draw.random.permutation(B * each).astype(np.int32).reshape(B, each)
    rest = {"page_size": PAGE, "scale": None, "mask": "causal"}
    lens = np.full(B, S, np.int32)
    return {"query": draw.normal(B, Q, 1, D), **pools, "block_table": table, "context_lens": lens, **rest}


def _packed_bytes(rows: int, inputs: int, group: int, bits: int, size: int) -> float:
    return rows * inputs * (bits / 8 + 2 * size / group)


def _product_cost(size: int, M: int, K: int, N: int) -> tuple[float, float]:
    return size * (M * K + N * K + M * N), 2 * M * K * N


def _packed_cost(bits: int) -> Callable[..., tuple[float, float]]:
    def cost(size: int, rows: int, inputs: int, outputs: int, G: int) -> tuple[float, float]:
        activations = size * rows * (inputs + outputs)
        return activations + _packed_bytes(outputs, inputs, G, bits, size), 2 * rows * inputs * outputs

    return cost


def _attention_cost(size: int, requests: int, Q: int, H: int, L: int, S: int, D: int) -> tuple[float, float]:
    seen = L * S - L * (L - 1) / 2
    return size * requests * (2 * Q * L * D + 2 * H * S * D), 4 * requests * Q * seen * D


OPS: Mapping[str, Op] = {
    "linear": Op("MKN", Linear, _linear, _product_cost),
    "swiglu": Op(
        "MEF",
        SwiGLU,
        _swiglu,
        lambda size, M, E, F: (size * (2 * M * E + 3 * E * F), 6 * M * E * F),
    ),
    "rms_norm": Op("RD", RMSNorm, _rms_norm, lambda size, R, D: (size * (2 * R * D + D), 4 * R * D)),
    "softmax": Op("RV", Softmax, _softmax, lambda size, R, V: (size * 2 * R * V, 4 * R * V)),
    "rope": Op("LHDS", RoPE, _rope, lambda size, L, H, D, S: (size * 2 * L * H * D, 3 * L * H * D)),
    "quantized_matmul": Op(
        "MKNG",
        QuantizedMatmul,
        _quantized_matmul,
        lambda size, M, K, N, G: _packed_cost(4)(size, M, K, N, G),
    ),
    "quantized_head": Op(
        "MEVG",
        QuantizedEmbeddingAsLinear,
        _quantized_head,
        lambda size, M, E, V, G: _packed_cost(HEAD_BITS)(size, M, E, V, G),
        _rows_of_head,
    ),
    "embedding": Op("TEV", Embedding, _embedding, lambda size, T, E, V: (size * 2 * T * E, 0), _rows_of_table),
    "quantized_embedding": Op(
        "TEVG",
        QuantizedEmbedding,
        _quantized_embedding,
        lambda size, T, E, V, G: (size * T * E + _packed_bytes(T, E, G, HEAD_BITS, size), 2 * T * E),
        _rows_of_table,
    ),
    "flash_attention": Op(
        "QHLD",
        FlashAttention,
        lambda draw, Q, H, L, D: _attention(draw, Q, H, L, L, D, "causal"),
        lambda size, Q, H, L, D: _attention_cost(size, 1, Q, H, L, L, D),
    ),
    "decode_attention": Op(
        "QHSD",
        ScaledDotProductAttention,
        lambda draw, Q, H, S, D: _attention(draw, Q, H, 1, S, D, None),
        lambda size, Q, H, S, D: _attention_cost(size, 1, Q, H, 1, S, D),
    ),
    "paged_attention": Op(
        "BQHSD",
        PagedAttention,
        _paged,
        lambda size, B, Q, H, S, D: _attention_cost(size, B, Q, H, 1, S, D),
    ),
}


def parsed(text: str, dtype: str) -> Case:
    """Read ``op:M=1,I=1024,…``; Unusable, naming what is wrong, for anything else."""
    op, _, rest = text.partition(":")
    if op not in OPS:
        raise Unusable(f"--shapes names the operation {op!r}; it takes {', '.join(OPS)}, or a preset")
    sizes: dict[str, int] = {}
    for part in rest.split(","):
        letter, _, number = part.partition("=")
        if letter not in OPS[op].letters or not number.isdigit() or int(number) < 1:
            wanted = ",".join(f"{one}=…" for one in OPS[op].letters)
            raise Unusable(f"--shapes {text!r} has {part!r}; {op} takes {wanted}, each 1 or more")
        sizes[letter] = int(number)
    if missing := [letter for letter in OPS[op].letters if letter not in sizes]:
        raise Unusable(f"--shapes {text!r} has no {missing[0]}")
    return checked(Case(op, tuple((letter, sizes[letter]) for letter in OPS[op].letters), dtype), text)


def checked(case: Case, text: str) -> Case:
    """The case; Unusable for sizes that do not go together."""
    sizes = dict(case.sizes)
    inputs = sizes.get("K", sizes.get("E", 0))
    if "G" in sizes and (sizes["G"] not in (32, 64, 128) or inputs % sizes["G"]):
        raise Unusable(f"--shapes {text!r}: G is {sizes['G']}; it takes 32, 64 or 128, and divides the inputs")
    if "Q" in sizes and sizes["Q"] % sizes["H"]:
        raise Unusable(f"--shapes {text!r}: Q is {sizes['Q']}; it takes a multiple of H, {sizes['H']}")
    if case.op == "rope" and sizes["D"] % 2:
        raise Unusable(f"--shapes {text!r}: D is {sizes['D']}; it takes an even number")
    return case


def dtypes(text: str) -> list[str]:
    """The dtypes of a list; Unusable for an unknown one."""
    names = [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in DTYPES]:
        raise Unusable(f"--dtypes names {unknown[0]!r}; it takes {', '.join(DTYPES)}")
    return list(dict.fromkeys(names))
