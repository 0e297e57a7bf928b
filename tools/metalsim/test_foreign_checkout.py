"""MLX's kernels that its wheel does not ship, from a checkout of MLX that $METALSIM_MLX names: skipped without."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inferspec.tools.metalsim import Finding, Library, Mode, Report, settings

CHECKOUT = os.environ.get("METALSIM_MLX", "")
KERNELS = Path(CHECKOUT, "mlx/backend/metal/kernels")
pytestmark = [
    pytest.mark.usefixtures("cxx"),
    pytest.mark.skipif(not CHECKOUT or not KERNELS.is_dir(), reason="METALSIM_MLX names no checkout of MLX"),
]
MODES = [Mode.FAST, Mode.CHECK]


@cache
def library(name: str) -> Library:
    return Library(KERNELS / f"{name}.metal", [Path(CHECKOUT)])


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def close(got: np.ndarray, want: np.ndarray, roundings: int) -> None:
    worst = np.max(np.abs(got - want)) / (roundings * 2.0**-24 * np.max(np.abs(want)))
    assert worst <= 1, f"{worst:.2f} of the bound"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("weighted", [True, False])
def test_rms_norm(weighted: bool, mode: Mode) -> None:
    x, w, out = drawn(3, 333), drawn(333, seed=1), np.empty((3, 333), np.float32)
    library("rms_norm").kernel("rmsfloat32", {"has_w": weighted})(
        {"x": x, "w": w, "out": out, "eps": 1e-5, "axis_size": 333, "w_stride": 1},
        threadgroups=(3, 1, 1),
        threadgroup=(96, 1, 1),
        undefined=["out"],
        mode=mode,
    )
    wide = x.astype(np.float64)
    close(out, wide / np.sqrt((wide**2).mean(-1, keepdims=True) + np.float32(1e-5)) * w, 333)


def layer_norm(width: int, threads: int, mode: Mode) -> tuple[np.ndarray, np.ndarray]:
    x, w, b, out = drawn(3, width), drawn(width, seed=1), drawn(width, seed=2), np.empty((3, width), np.float32)
    library("layer_norm").kernel("layer_normfloat32")(
        {"x": x, "w": w, "b": b, "out": out, "eps": 1e-5, "axis_size": width, "w_stride": 1, "b_stride": 1},
        threadgroups=(3, 1, 1),
        threadgroup=(threads, 1, 1),
        undefined=["out"],
        mode=mode,
    )
    wide = x.astype(np.float64) - x.mean(-1, keepdims=True, dtype=np.float64)
    return out, wide / np.sqrt((wide**2).mean(-1, keepdims=True) + np.float32(1e-5)) * w + b


@pytest.mark.parametrize("mode", MODES)
def test_layer_norm(mode: Mode) -> None:
    out, want = layer_norm(253, 32, mode)
    close(out, want, 253)


def test_layer_norm_writes_before_its_array_where_threads_have_nothing_to_read() -> None:
    """333 elements by eights take 42 threads of 64; to the others `n` is negative, and they fill up from there."""
    found: list[Report] = []
    with settings(on_report=found.append):
        layer_norm(333, 64, Mode.CHECK)
    lines = (KERNELS / "layer_norm.metal").read_text().splitlines()
    sites = {r.access.site.line for r in found if r.finding is Finding.ARRAY_OVERRUN and r.access.site}
    if not found:
        pytest.skip("this checkout of MLX guards it")
    assert {lines[site - 1].strip() for site in sites} == {"thread_x[i] = mean;"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("traditional", [False, True])
def test_rope(traditional: bool, mode: Mode) -> None:
    batch, heads, length, dims = 2, 3, 5, 24
    x, out, offset = (
        drawn(batch, heads, length, dims),
        np.empty((batch, heads, length, dims), np.float32),
        np.array([4, 9], np.int32),
    )
    strides = np.array([length * dims, dims, 1])
    constants: dict[str | int, Any] = {"forward": True, "traditional": traditional, "hs_transpose": False}
    library("rope").kernel("rope_float32", constants)(
        {
            "in": x, "out": out, "offset": offset, "scale": 1, "strides": strides, "out_strides": strides,
            "offset_stride": 1, "n_head": heads, "base": float(np.log2(10000)),
        },
        threads=(dims // 2, length, batch),
        threadgroup=(4, 4, 1),
        undefined=["out"],
        mode=mode,
    )  # fmt: skip
    angle = (offset[:, None] + np.arange(length))[:, None, :, None] * 10000.0 ** (-np.arange(dims // 2) / (dims // 2))
    one, two = (x[..., ::2], x[..., 1::2]) if traditional else (x[..., : dims // 2], x[..., dims // 2 :])
    turned = one * np.cos(angle) - two * np.sin(angle), one * np.sin(angle) + two * np.cos(angle)
    want = np.stack(turned, -1).reshape(x.shape) if traditional else np.concatenate(turned, -1)
    close(out, want, 40)  # an angle of up to 13 is the product of two rounded numbers


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("what", ["argmin", "argmax"])
def test_arg_reduce(what: str, mode: Mode) -> None:
    x, out = drawn(3, 301), np.empty(3, np.uint32)
    library("arg_reduce").kernel(f"{what}_float32")(
        {
            "in": x, "out": out, "shape": np.array([3], np.int32), "in_strides": np.array([301]), "out_strides": np.array([1]),
            "ndim": 1, "axis_stride": 1, "axis_size": 301,
        },
        threads=(96, 3, 1),
        threadgroup=(96, 1, 1),
        undefined=["out"],
        mode=mode,
    )  # fmt: skip
    assert np.array_equal(out, getattr(np, what)(x, 1))
