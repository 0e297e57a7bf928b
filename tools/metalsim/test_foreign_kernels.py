"""Metal kernels that no one here wrote: MLX's, through the headers in its wheel, on ragged shapes, fast and checked.

Each is compared with float64. The bounds are the textbook ones for a float32 computation: n roundings of a sum whose terms
add up to A in absolute value cost at most n·2⁻²⁴·A, and storing costs half a unit in the last place of the output's dtype.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
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
# Half of the smallest number that is not 0.
SUBNORMAL = {np.dtype(np.float32): 2.0**-150, np.dtype(np.float16): 2.0**-25, BFLOAT16: 2.0**-134}
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
    bound = terms * 2.0**-24 * np.asarray(size) + UNIT[got.dtype] * np.abs(want) + SUBNORMAL[got.dtype]
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
        (
            "softmax_looped<float16_t, float>",
            "float16_t",
            2,
            5003,
            1024,
        ),  # MLX launches it with as many as there may be
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
        {"in": x, "out": out, "axis_size": 77},
        threadgroups=(3, 1, 1),
        threadgroup=(32, 1, 1),
        undefined=["out"],
        mode=mode,
    )
    want = np.log(np.exp(x.astype(np.float64)).sum(-1))
    close(out, want, 77 + 2 * EXP, 1 + np.abs(want))


def attention(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, mask: np.ndarray | None = None
) -> tuple[np.ndarray, Any, Any]:
    """B×H×L×D in float64: the answer, and what its scores and its sum are large in."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) * scale
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)
    largest = (np.abs(q) @ np.abs(k).swapaxes(-1, -2) * abs(scale)).max()
    return weights @ v, largest, weights @ np.abs(v)


NO_MASK = {
    "has_mask": False,
    "query_transposed": False,
    "do_causal": False,
    "bool_mask": False,
    "float_mask": False,
    "has_sinks": False,
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("dtype", "masked"), [("float16_t", False), ("float", True)])
def test_attention_of_one_query(dtype: str, masked: bool, mode: Mode) -> None:
    heads, kv_heads, length, dims = 6, 2, 45, 64
    q, k, v = (
        drawn((1, n, m, dims), TYPES[dtype], seed)
        for seed, (n, m) in enumerate([(heads, 1), (kv_heads, length), (kv_heads, length)])
    )
    mask = np.random.default_rng(1).random((1, heads, 1, length)) < 0.6
    out = np.empty_like(q)
    scale = np.float32(dims**-0.5)
    buffers: dict[int | str, Any] = {
        "queries": q, "keys": k, "values": v, "out": out, "gqa_factor": heads // kv_heads, "N": length, "scale": scale,
        "k_head_stride": length * dims, "k_seq_stride": dims, "v_head_stride": length * dims, "v_seq_stride": dims,
    }  # fmt: skip
    if masked:
        buffers |= {"bmask": mask, "mask_kv_seq_stride": 1, "mask_q_seq_stride": length, "mask_head_stride": length}
    kernel = library("sdpa_vector.h").kernel(
        f"sdpa_vector<{dtype}, {dims}>", {**NO_MASK, "has_mask": masked, "bool_mask": masked}
    )
    kernel(buffers, threadgroups=(heads, 1, 1), threadgroup=(1024, 1, 1), undefined=["out"], mode=mode)
    want, largest, size = attention(q, k, v, float(scale), mask if masked else None)
    close(out, want, length + EXP + (dims + 3) * largest, 2 * size)


@pytest.mark.parametrize("mode", MODES)
def test_attention_of_many_queries(mode: Mode) -> None:
    """The tiled kernel, on matrices of SIMD-groups: 37 queries and 45 keys in tiles of 32 and 16."""
    heads, kv_heads, queries, length, dims = 4, 2, 37, 45, 64
    q, k, v = (
        drawn((1, n, m, dims), np.float16, seed)
        for seed, (n, m) in enumerate([(heads, queries), (kv_heads, length), (kv_heads, length)])
    )
    out = np.empty_like(q)
    strides = [
        [n * m * dims, m * dims, dims]
        for n, m in [(heads, queries), (kv_heads, length), (kv_heads, length), (heads, queries)]
    ]
    rows, columns = 32, 16
    numbers = [1, heads, dims, queries, length, heads // kv_heads]
    tiles = [
        -(-queries // rows),
        -(-length // columns),
        queries // rows,
        length // columns,
        queries % rows,
        length % columns,
        length - queries,
    ]
    params = b"".join(
        [
            np.array(numbers, np.int32).tobytes(),
            np.float32(dims**-0.5).tobytes(),
            np.array(tiles, np.int32).tobytes(),
            np.array(strides, np.int64).tobytes(),
        ]
    )
    constants = {
        "align_Q": False,
        "align_K": False,
        "has_mask": False,
        "do_causal": True,
        "has_sinks": False,
        "save_lse": False,
    }
    kernel = library("steel/attn/kernels/steel_attention.h").kernel(
        f"attention<float16_t, {rows}, {columns}, {dims}, {dims}, 4, 1>", constants
    )
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
UNBATCHED |= dict.fromkeys(("w_strides", "s_strides", "b_strides"), b"\x00" * 8)


QUANTIZED = ("steel/gemm/gemm.h", "quantized_utils.h", "quantized.h")


def multiply(
    kernel: str, rows: int, width: int, outputs: int, dtype: str, group: int, mode: Mode, source: Library | None = None
) -> None:
    """x @ w.T (or x @ w for the kernels that end in _n) with quantized w, against float64."""
    if "qmv" in kernel:
        names = {"in_vec_size": width, "out_vec_size": outputs}
        launch = {"threadgroups": (rows, -(-outputs // 8), 1), "threadgroup": (32, 2, 1)}
    else:
        names = {"K": width, "N": outputs, "M": rows}
        launch = {"threadgroups": (-(-outputs // 32), -(-rows // 32), 1), "threadgroup": (32, 2, 2)}
    transposed = "_n<" not in kernel
    shape = (outputs, width) if transposed else (width, outputs)
    packed, scales, biases, values = quantized(*shape, group, TYPES[dtype])
    x = drawn((rows, width), TYPES[dtype])
    y = np.empty((rows, outputs), TYPES[dtype])
    (source or library(*QUANTIZED)).kernel(kernel)(
        {"w": packed, "scales": scales, "biases": biases, "x": x, "y": y, **names, **UNBATCHED},
        undefined=["y"],
        mode=mode,
        **launch,
    )
    largest = np.abs(values) + 15 * np.abs(np.repeat(scales.astype(np.float64), group, 1))
    weights, sizes = (values.T, largest.T) if transposed else (values, largest)
    # scale·Σ(code·x) + bias·Σx; kernels on matrices round each weight to the dtype on its way into them, twice at most.
    roundings = width + 8 + (2 * UNIT[TYPES[dtype]] * 2.0**24 if "qmm" in kernel else 0)
    exact = x.astype(np.float64)
    close(y, exact @ weights, roundings, np.abs(exact) @ sizes)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("kernel", "dtype", "rows", "width", "outputs", "group"),
    [
        ("affine_qmv_fast<bfloat16_t, 64, 4, false>", "bfloat16_t", 3, 512, 24, 64),
        ("affine_qmv<float, 32, 4, false>", "float", 2, 160, 13, 32),
        ("affine_qmm_t<float16_t, 32, 4, true, false>", "float16_t", 37, 96, 64, 32),
        ("affine_qmm_t<float, 64, 4, false, false>", "float", 5, 128, 40, 64),
        ("affine_qmm_n<float, 32, 4, false>", "float", 35, 64, 96, 32),
    ],
)
def test_quantized_matrices(
    kernel: str, dtype: str, rows: int, width: int, outputs: int, group: int, mode: Mode
) -> None:
    multiply(kernel, rows, width, outputs, dtype, group, mode)


def test_the_loads_out_of_bounds_that_mlx_had_are_found(tmp_path: Path) -> None:
    """MLX's pull request 4203: the guard of a tile's rows looked at the wrong side of the tile, so that a ragged last tile
    of affine_qmm_t loaded rows that are not there. (What was loaded was never used: no result shows it.)"""
    headers = metalsim.mlx_headers()
    assert headers is not None
    fixed = (headers / PREFIX / "quantized.h").read_text()
    broken = fixed.replace("    if (bi >= src_tile_dim.y) {", "    if (reduction_dim == 1 && bi >= src_tile_dim.x) {")
    assert broken != fixed
    (tmp_path / PREFIX).mkdir(parents=True)
    (tmp_path / PREFIX / "quantized.h").write_text(broken)
    includes = "".join(f'#include "{PREFIX}/{header}"\n' for header in ("utils.h", *QUANTIZED))
    before = Library(f"#include <metal_stdlib>\nusing namespace metal;\n{includes}", [tmp_path], name="before.metal")
    found: list[Report] = []
    with metalsim.settings(on_report=found.append):
        multiply("affine_qmm_t<float, 64, 4, false, false>", 5, 128, 40, "float", 64, Mode.CHECK, before)
    assert {report.finding for report in found} == {Finding.OUT_OF_BOUNDS}
    assert {report.memory for report in found} == {"buffer w", "buffer scales", "buffer biases"}
    lines = broken.splitlines()
    scale = next(
        n
        for n, line in enumerate(lines, 1)
        if "T scale = *scales;" in line and n > lines.index("    if (reduction_dim == 1 && bi >= src_tile_dim.x) {")
    )
    sites = {report.memory: report.access.site for report in found}
    assert sites["buffer scales"] is not None
    assert (Path(sites["buffer scales"].file).name, sites["buffer scales"].line) == ("quantized.h", scale)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("inclusive", "reverse"), [(True, False), (False, True)])
def test_scans(inclusive: bool, reverse: bool, mode: Mode) -> None:
    """301 elements take three SIMD-groups; MLX's kernel then reads the sums of all 32 that there could be, of which it uses
    three: check mode tells of the others, that nothing has written."""
    x = np.random.default_rng(1).integers(-9, 10, (3, 301), np.int32)
    out = np.empty_like(x)
    flags = f"{str(inclusive).lower()}, {str(reverse).lower()}"
    kernel = library("scan.h").kernel(f"contiguous_scan<int, int, CumSum<int>, 4, {flags}>")
    found: list[Report] = []
    with metalsim.settings(on_report=found.append):
        kernel(
            {"in": x, "out": out, "axis_size": 301},
            threads=(96, 3, 1),
            threadgroup=(96, 1, 1),
            undefined=["out"],
            mode=mode,
        )
    unwritten = [(Finding.UNINITIALISED, "threadgroup simdgroup_sums", 3)]
    assert [(r.finding, r.memory, r.index) for r in found] == (unwritten if mode is Mode.CHECK else [])
    along = x[:, ::-1] if reverse else x
    want = np.cumsum(along, 1) - (0 if inclusive else along)
    assert np.array_equal(out, want[:, ::-1] if reverse else want)


@pytest.mark.parametrize("mode", MODES)
def test_scans_of_columns(mode: Mode) -> None:
    x = np.random.default_rng(1).integers(-9, 10, (2, 45, 37), np.int32)
    out = np.empty_like(x)
    library("scan.h").kernel("strided_scan<int, int, CumSum<int>, 4, true, false>")(
        {"in": x, "out": out, "axis_size": 45, "stride": 37, "stride_blocks": 2},
        threads=(256, 2 * 2, 1),
        threadgroup=(256, 1, 1),
        undefined=["out"],
        mode=mode,
    )
    assert np.array_equal(out, np.cumsum(x, 1))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("indices", [False, True])
def test_sorting(indices: bool, mode: Mode) -> None:
    x = drawn((3, 107))
    out = np.empty(x.shape, np.uint32 if indices else np.float32)
    kernel = "block_sort<float, uint32_t, true, 32, 4>" if indices else "block_sort<float, float, false, 32, 4>"
    library("sort.h").kernel(kernel)(
        {0: x, 1: out, 2: 107, 3: 1, 4: 1, 5: 107, 6: 107},
        threadgroups=(1, 3, 1),
        threadgroup=(32, 1, 1),
        undefined=[1],
        mode=mode,
    )
    assert np.array_equal(out, np.argsort(x, 1, kind="stable") if indices else np.sort(x, 1))


@pytest.mark.parametrize("mode", MODES)
def test_matrix_times_vector(mode: Mode) -> None:
    rows, width = 21, 77
    matrix, vector = drawn((rows, width)), drawn((width,))
    out = np.empty(rows, np.float32)
    nothing = np.zeros(1, np.int64)
    library("gemv.h").kernel("gemv<float, 4, 1, 1, 32, 4, 4, false, false>")(
        {
            "mat": matrix, "in_vec": vector, "bias": np.zeros(1, np.float32), "out_vec": out, "in_vec_size": width, "out_vec_size": rows,
            "marix_ld": width, "alpha": 1, "beta": 0, "batch_ndim": 0, "batch_shape": np.zeros(1, np.int32),
            "vector_batch_stride": nothing, "matrix_batch_stride": nothing, "bias_batch_stride": nothing, "bias_stride": 0,
        },
        threadgroups=(-(-rows // 16), 1, 1),
        threadgroup=(32, 1, 4),
        undefined=["out_vec"],
        mode=mode,
    )  # fmt: skip
    close(out, matrix.astype(np.float64) @ vector, width, np.abs(matrix) @ np.abs(vector))


@pytest.mark.parametrize("mode", MODES)
def test_sums_of_rows(mode: Mode) -> None:
    x = np.random.default_rng(2).integers(-99, 100, (6, 139), np.int32)
    out = np.empty(6, np.int32)
    library("atomic.h", "reduction/ops.h", "reduce.h").kernel("row_reduce_simple<int, int, Sum<int>>")(
        {"in": x, "out": out, "reduction_size": 139, "out_size": 6},
        threadgroups=(1, 2, 1),  # four rows each
        threadgroup=(64, 1, 1),
        undefined=["out"],
        mode=mode,
    )
    assert np.array_equal(out, x.sum(1))


@pytest.mark.parametrize("mode", MODES)
def test_copies_and_sums_of_views(mode: Mode) -> None:
    a, b = drawn((5, 7)), drawn((7, 5))
    kernels = library("binary_ops.h", "binary.h", "copy.h")
    out = np.empty((5, 7), np.float32)
    launch: dict[str, Any] = {"threads": (7, 5, 1), "threadgroup": (4, 4, 1), "mode": mode}
    kernels.kernel("binary_g_nd2<float, float, Add, int>")(
        {"a": a, "b": b, "c": out, "a_strides": np.array([7, 1]), "b_strides": np.array([1, 5])},
        undefined=["c"],
        **launch,
    )
    assert np.array_equal(out, a + b.T)
    half = np.empty((5, 7), np.float16)
    kernels.kernel("copy_g_nd2<float, half, int>")(
        {"src": b, "dst": half, "src_strides": np.array([1, 5])}, undefined=["dst"], **launch
    )
    assert np.array_equal(half, b.T.astype(np.float16))
