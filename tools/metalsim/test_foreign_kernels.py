"""Metal kernels that no one here wrote: MLX's, through the headers in its wheel, on ragged shapes, fast and checked.

Each is compared with float64. The bounds are the textbook ones for a float32 computation: n roundings of a sum whose terms
add up to A in absolute value cost at most n·2⁻²⁴·A, and storing costs half a unit in the last place of the output's dtype.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from inferspec.tools import metalsim
from inferspec.tools.metalsim import Finding, Library, Mode, Report

pytestmark = [
    pytest.mark.usefixtures("cxx"),
    pytest.mark.skipif(metalsim.mlx_headers() is None, reason="MLX's Metal headers are not installed"),
]

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
UNIT = {np.dtype(np.float32): 2.0**-24, np.dtype(np.float16): 2.0**-11, BFLOAT16: 2.0**-8}
TYPES = {"float": np.dtype(np.float32), "float16_t": np.dtype(np.float16), "bfloat16_t": BFLOAT16}
PREFIX = "mlx/backend/metal/kernels"
MODES = [Mode.FAST, Mode.CHECK]


@cache
def library(*headers: str) -> Library:
    includes = "".join(f'#include "{PREFIX}/{header}"\n' for header in ("utils.h", *headers))
    return Library(f"#include <metal_stdlib>\nusing namespace metal;\n{includes}", name=headers[-1])


def drawn(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32).astype(dtype)


def close(got: np.ndarray, want: np.ndarray, terms: float, size: Any) -> None:
    """got is want up to ``terms`` float32 roundings of what is ``size`` large, and the rounding of its own dtype."""
    assert np.isfinite(got.astype(np.float64)).all()
    bound = terms * 2.0**-24 * np.asarray(size) + UNIT[got.dtype] * np.abs(want)
    worst = np.max(np.abs(got.astype(np.float64) - want) / bound)
    assert worst <= 1, f"{worst:.2f} of the bound"


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# exp of x costs about |x| + 2 roundings (of the argument and of the function); drawn values stay below 8 from the largest.
EXP = 10


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("kernel", "dtype", "rows", "width", "threads"),
    [
        ("softmax_single_row<float>", "float", 3, 37, 32),
        ("softmax_single_row<bfloat16_t, float>", "bfloat16_t", 5, 131, 64),
        ("softmax_looped<float16_t, float>", "float16_t", 2, 1003, 128),
    ],
)
def test_softmax(kernel: str, dtype: str, rows: int, width: int, threads: int, mode: Mode) -> None:
    x = drawn((rows, width), TYPES[dtype])
    out = np.empty_like(x)
    library("softmax.h").kernel(kernel)(
        {"in": x, "out": out, "axis_size": width},
        threadgroups=(rows, 1, 1),
        threadgroup=(threads, 1, 1),
        undefined=["out"],
        mode=mode,
    )
    want = softmax(x.astype(np.float64))
    close(out, want, width + 2 * EXP, want)


@pytest.mark.parametrize("mode", MODES)
def test_logsumexp(mode: Mode) -> None:
    x = drawn((3, 77))
    out = np.empty(3, np.float32)
    library("logsumexp.h").kernel("logsumexp<float>")(
        {"in": x, "out": out, "axis_size": 77}, threadgroups=(3, 1, 1), threadgroup=(32, 1, 1), undefined=["out"], mode=mode
    )
    want = np.log(np.exp(x.astype(np.float64)).sum(-1))
    close(out, want, 77 + 2 * EXP, 1 + np.abs(want))


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, mask: np.ndarray | None = None) -> tuple[np.ndarray, Any, Any]:
    """B×H×L×D in float64: the answer, and what its scores and its sum are large in."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) * scale
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)
    largest = (np.abs(q) @ np.abs(k).swapaxes(-1, -2) * abs(scale)).max()
    return weights @ v, largest, weights @ np.abs(v)


NO_MASK = {"has_mask": False, "query_transposed": False, "do_causal": False, "bool_mask": False, "float_mask": False, "has_sinks": False}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("dtype", "masked"), [("float16_t", False), ("float", True)])
def test_attention_of_one_query(dtype: str, masked: bool, mode: Mode) -> None:
    heads, kv_heads, length, dims = 6, 2, 45, 64
    q, k, v = (drawn((1, n, m, dims), TYPES[dtype], seed) for seed, (n, m) in enumerate([(heads, 1), (kv_heads, length), (kv_heads, length)]))
    mask = np.random.default_rng(1).random((1, heads, 1, length)) < 0.6
    out = np.empty_like(q)
    scale = np.float32(dims**-0.5)
    buffers: dict[int | str, Any] = {
        "queries": q, "keys": k, "values": v, "out": out, "gqa_factor": heads // kv_heads, "N": length, "scale": scale,
        "k_head_stride": length * dims, "k_seq_stride": dims, "v_head_stride": length * dims, "v_seq_stride": dims,
    }  # fmt: skip
    if masked:
        buffers |= {"bmask": mask, "mask_kv_seq_stride": 1, "mask_q_seq_stride": length, "mask_head_stride": length}
    kernel = library("sdpa_vector.h").kernel(f"sdpa_vector<{dtype}, {dims}>", {**NO_MASK, "has_mask": masked, "bool_mask": masked})
    kernel(buffers, threadgroups=(heads, 1, 1), threadgroup=(1024, 1, 1), undefined=["out"], mode=mode)
    want, largest, size = attention(q, k, v, float(scale), mask if masked else None)
    close(out, want, length + EXP + (dims + 3) * largest, 2 * size)


@pytest.mark.parametrize("mode", MODES)
def test_attention_of_many_queries(mode: Mode) -> None:
    """The tiled kernel, on matrices of SIMD-groups: 37 queries and 45 keys in tiles of 32 and 16."""
    heads, kv_heads, queries, length, dims = 4, 2, 37, 45, 64
    q, k, v = (
        drawn((1, n, m, dims), np.float16, seed) for seed, (n, m) in enumerate([(heads, queries), (kv_heads, length), (kv_heads, length)])
    )
    out = np.empty_like(q)
    strides = [[n * m * dims, m * dims, dims] for n, m in [(heads, queries), (kv_heads, length), (kv_heads, length), (heads, queries)]]
    rows, columns = 32, 16
    numbers = [1, heads, dims, queries, length, heads // kv_heads]
    tiles = [-(-queries // rows), -(-length // columns), queries // rows, length // columns, queries % rows, length % columns, length - queries]
    params = b"".join(
        [np.array(numbers, np.int32).tobytes(), np.float32(dims**-0.5).tobytes(), np.array(tiles, np.int32).tobytes(), np.array(strides, np.int64).tobytes()]
    )
    constants = {"align_Q": False, "align_K": False, "has_mask": False, "do_causal": True, "has_sinks": False, "save_lse": False}
    kernel = library("steel/attn/kernels/steel_attention.h").kernel(f"attention<float16_t, {rows}, {columns}, {dims}, {dims}, 4, 1>", constants)
    kernel(
        {"Q": q, "K": k, "V": v, "O": out, "params": params},
        threadgroups=(tiles[0], heads, 1),
        threadgroup=(32, 4, 1),
        undefined=["O"],
        mode=mode,
    )
    causal = np.arange(length) <= np.arange(queries)[:, None] + length - queries
    want, largest, size = attention(q, k, v, dims**-0.5, causal)
    # The scaled query and the probabilities are rounded to float16 on their way into the matrices.
    close(out, want, length + EXP + (dims + 3) * largest + (largest + 1) * 2.0**13, 2 * size)


def quantized(rows: int, width: int, group: int, dtype: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Random 4-bit codes as MLX packs them, with scales and biases: packed, scales, biases, values."""
    random = np.random.default_rng([rows, width])
    codes = random.integers(0, 16, (rows, width), np.uint32)
    packed = (codes.reshape(rows, -1, 8) << np.arange(0, 32, 4, dtype=np.uint32)).sum(-1, dtype=np.uint32)
    scales, biases = (random.standard_normal((rows, width // group)).astype(np.float32).astype(dtype) for _ in range(2))
    wide = (np.repeat(x.astype(np.float64), group, 1) for x in (scales, biases))
    scale, bias = wide
    return packed, scales, biases, codes * scale + bias


UNBATCHED = {"x_batch_ndims": 0, "x_shape": b"\0" * 8, "x_strides": b"\0" * 8, "w_batch_ndims": 0, "w_shape": b"\0" * 8}
UNBATCHED |= {name: b"\0" * 8 for name in ("w_strides", "s_strides", "b_strides")}


def multiply(kernel: str, rows: int, width: int, outputs: int, dtype: str, group: int, mode: Mode, **launch: Any) -> None:
    """x @ w.T (or x @ w for the kernels that end in _n) with quantized w, against float64."""
    transposed = "_n<" not in kernel
    shape = (outputs, width) if transposed else (width, outputs)
    packed, scales, biases, values = quantized(*shape, group, TYPES[dtype])
    x = drawn((rows, width), TYPES[dtype])
    y = np.empty((rows, outputs), TYPES[dtype])
    names = {"in_vec_size": width, "out_vec_size": outputs} if "qmv" in kernel else {"K": width, "N": outputs, "M": rows}
    library("steel/gemm/gemm.h", "quantized_utils.h", "quantized.h").kernel(kernel)(
        {"w": packed, "scales": scales, "biases": biases, "x": x, "y": y, **names, **UNBATCHED},
        undefined=["y"],
        mode=mode,
        **launch,
    )
    weights = values.T if transposed else values
    want = x.astype(np.float64) @ weights
    # scale·Σ(code·x) + bias·Σx, and a tile's weights rounded to the dtype once more where matrices are multiplied
    size = np.abs(x.astype(np.float64)) @ (np.abs(weights) + 15 * np.abs(np.repeat(scales.astype(np.float64), group, 1).T if transposed else np.repeat(scales.astype(np.float64), group, 1)))
    roundings = width + 8 + (2 * UNIT[np.dtype(TYPES[dtype])] * 2.0**24 if "qmm" in kernel else 0)
    close(y, want, roundings, size)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("kernel", "dtype", "rows", "width", "outputs", "group"),
    [
        ("affine_qmv_fast<bfloat16_t, 64, 4, false>", "bfloat16_t", 3, 512, 24, 64),
        ("affine_qmv<float, 32, 4, false>", "float", 2, 160, 13, 32),
    ],
)
def test_quantized_vectors(kernel: str, dtype: str, rows: int, width: int, outputs: int, group: int, mode: Mode) -> None:
    multiply(kernel, rows, width, outputs, dtype, group, mode, threadgroups=(rows, -(-outputs // 8), 1), threadgroup=(32, 2, 1))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("kernel", "dtype", "rows", "width", "outputs", "group"),
    [
        ("affine_qmm_t<float16_t, 32, 4, true, false>", "float16_t", 37, 96, 64, 32),
        ("affine_qmm_n<float, 32, 4, false>", "float", 35, 64, 96, 32),
    ],
)
def test_quantized_matrices(kernel: str, dtype: str, rows: int, width: int, outputs: int, group: int, mode: Mode) -> None:
    launch = {"threadgroups": (-(-outputs // 32), -(-rows // 32), 1), "threadgroup": (32, 2, 2)}
    multiply(kernel, rows, width, outputs, dtype, group, mode, **launch)
