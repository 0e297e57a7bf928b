"""Launches the pass of a whole decoder: all layers, norm and head in one call, over pages of keys and values."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import mlx.core as mx
import numpy as np

from inferspec.impl.kernels.cpu import library
from inferspec.impl.kernels.cpu.buffers import DTYPES, Result, View, contiguous
from inferspec.impl.kernels.cpu.stored import Stored

BITS = (4, 8)
"""What packed weights may have."""


@dataclass(frozen=True)
class Matrix:
    """A linear layer O×I: dense (bits 0), or packed with its scales and biases. addend: O, or None."""

    weight: mx.array
    scales: mx.array | None = None
    biases: mx.array | None = None
    group_size: int = 0
    bits: int = 0
    addend: mx.array | None = None

    @property
    def arrays(self) -> list[mx.array]:
        """All that there are."""
        return [x for x in (self.weight, self.scales, self.biases, self.addend) if x is not None]

    @property
    def is_taken(self) -> bool:
        """Whether the kernels compute with such a layer."""
        floating = [x for x in self.arrays if x is not self.weight or not self.bits]
        return self.bits in (0, *BITS) and all(x.dtype in DTYPES for x in floating)


@dataclass(frozen=True)
class Layer:
    """One block. query_norm and key_norm: D, or None."""

    query: Matrix
    key: Matrix
    value: Matrix
    output: Matrix
    gate: Matrix
    up: Matrix
    down: Matrix
    input_norm: mx.array
    post_attention_norm: mx.array
    query_norm: mx.array | None
    key_norm: mx.array | None

    @property
    def matrices(self) -> list[Matrix]:
        """All linear layers."""
        return [self.query, self.key, self.value, self.output, self.gate, self.up, self.down]

    @property
    def norms(self) -> list[mx.array]:
        """The weights of all norms that there are."""
        every = (self.input_norm, self.post_attention_norm, self.query_norm, self.key_norm)
        return [norm for norm in every if norm is not None]


@dataclass(frozen=True)
class Batch:
    """New tokens of some sequences, one sequence after the other, as int64.

    tokens: N ids; firsts: where each sequence's begin, and N; starts: their first positions; tables: the pages of each
    sequence, B×width; rows: the tokens whose logits are wanted.
    """

    tokens: np.ndarray
    firsts: np.ndarray
    starts: np.ndarray
    tables: np.ndarray
    page_size: int
    rows: np.ndarray


class _Linear(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("weight", "scales", "biases", "addend")),
        *((name, ctypes.c_int64) for name in ("outputs", "inputs", "group_size", "bits")),
        *((name, ctypes.c_int32) for name in ("dtype", "biases_dtype", "addend_dtype", "unused")),
    )


class _Layer(ctypes.Structure):
    _fields_ = (
        *((name, _Linear) for name in ("query", "key", "value", "output", "gate", "up", "down")),
        *((name, ctypes.c_void_p) for name in ("input_norm", "post_attention_norm", "query_norm", "key_norm")),
    )


class _Model(ctypes.Structure):
    _fields_ = (
        ("layers", ctypes.POINTER(_Layer)),
        *((name, _Linear) for name in ("embedding", "head")),
        *((name, ctypes.c_void_p) for name in ("norm", "frequencies")),
        *((n, ctypes.c_int64) for n in ("num_layers", "hidden", "intermediate", "heads", "kv_heads", "head_dim")),
        *((name, ctypes.c_float) for name in ("eps", "scale")),
        ("dtype", ctypes.c_int32),
    )


class _Batch(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("tokens", "firsts", "starts", "tables", "rows")),
        *((name, ctypes.c_int64) for name in ("sequences", "width", "page_size", "num_rows")),
    )


class Program:
    """A model whose passes the kernels compute. It keeps what it points into: the weights, as they are now.

    layers: at least one; embedding V×E and head V×E; norm E; frequencies of RoPE, D/2 in radians per position; scale: what
    the products of queries and keys are multiplied by. Norms and frequencies are of the dtypes that `run` computes with:
    `dtype` and float32.
    """

    def __init__(
        self,
        layers: Sequence[Layer],
        embedding: Matrix,
        head: Matrix,
        norm: mx.array,
        frequencies: mx.array,
        heads: int,
        kv_heads: int,
        eps: float,
        scale: float,
        dtype: mx.Dtype,
    ) -> None:
        self.dtype, self.vocabulary = dtype, head.weight.shape[0]
        self._views: list[View] = []
        first = layers[0]
        self._layers = (_Layer * len(layers))(*(self._layer(layer) for layer in layers))
        self._model = _Model(
            layers=self._layers,
            embedding=self._linear(embedding),
            head=self._linear(head),
            norm=self._pointer(norm),
            frequencies=self._pointer(frequencies),
            num_layers=len(layers),
            hidden=norm.shape[0],
            intermediate=first.gate.weight.shape[0],
            heads=heads,
            kv_heads=kv_heads,
            head_dim=2 * frequencies.shape[0],
            eps=eps,
            scale=scale,
            dtype=DTYPES[dtype],
        )

    def run(self, batch: Batch, stored: Sequence[Stored], threads: int | None = None) -> mx.array:
        """Write the keys and values of the batch's tokens into what each layer has stored; return the logits of its
        rows, R×V in the model's dtype. Everything is checked already."""
        arrays = [np.ascontiguousarray(x, np.int64) for x in (batch.tokens, batch.firsts, batch.starts, batch.tables)]
        rows = np.ascontiguousarray(batch.rows, np.int64)
        passed = _Batch(
            *(x.ctypes.data for x in (*arrays, rows)),
            sequences=len(batch.starts),
            width=batch.tables.shape[1],
            page_size=batch.page_size,
            num_rows=len(rows),
        )
        pages = (ctypes.c_void_p * (2 * len(stored)))()
        for layer, one in enumerate(stored):
            pages[2 * layer], pages[2 * layer + 1] = one.pointers
        logits = Result((len(rows), self.vocabulary), self.dtype)
        run = library.load().inferspec_decode
        if run(
            ctypes.byref(self._model),
            ctypes.byref(passed),
            ctypes.byref(pages),
            ctypes.c_void_p(logits.pointer),
            ctypes.c_int(library.threads(threads)),
        ):
            raise MemoryError(f"a pass of {len(batch.tokens)} tokens does not fit into memory")
        return logits.array()

    def _layer(self, layer: Layer) -> _Layer:
        norms = (layer.input_norm, layer.post_attention_norm, layer.query_norm, layer.key_norm)
        return _Layer(*map(self._linear, layer.matrices), *map(self._pointer, norms))

    def _linear(self, matrix: Matrix) -> _Linear:
        scales, biases = _narrowed(matrix.scales), _narrowed(matrix.biases)
        inputs = matrix.weight.shape[1] * 32 // matrix.bits if matrix.bits else matrix.weight.shape[1]
        return _Linear(
            weight=self._pointer(matrix.weight),
            scales=self._pointer(scales),
            biases=self._pointer(biases),
            addend=self._pointer(matrix.addend),
            outputs=matrix.weight.shape[0],
            inputs=inputs,
            group_size=matrix.group_size,
            bits=matrix.bits,
            dtype=DTYPES[matrix.weight.dtype if scales is None else scales.dtype],
            biases_dtype=0 if biases is None else DTYPES[biases.dtype],
            addend_dtype=0 if matrix.addend is None else DTYPES[matrix.addend.dtype],
        )

    def _pointer(self, array: mx.array | None) -> int | None:
        if array is None:
            return None
        # An array object of its own: assigning into the caller's would give that one other memory.
        view = contiguous(array[...])
        self._views.append(view)
        return view.pointer


def _narrowed(part: mx.array | None) -> mx.array | None:
    """Scales or biases, in float16 where that holds them all, as a GGUF file does: less to read for each weight."""
    if part is None or part.dtype != mx.float32:
        return part
    narrow = part.astype(mx.float16)
    return narrow if bool(mx.array_equal(narrow.astype(mx.float32), part)) else part
