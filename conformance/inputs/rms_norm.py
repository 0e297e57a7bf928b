"""Calls of root mean square norm."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.linear import resized
from inferspec.conformance.strategies import EDGES, ODD_TILES, Pick, any_of, calls
from inferspec.spec.numerics import numpy_dtype
from inferspec.spec.rms_norm import RMSNorm

RMS = "RMSNorm"
EXAMPLES = {RMS: Call(RMS, {"dims": 4, "weight": np.ones(4, np.float32), "x": np.ones((2, 4), np.float32)})}

Sizes = Callable[[Pick], int]
"""Draws the number of features."""

WIDE = (511, 512, 513, 896, 1023, 1024, 1025, 2047, 2048, 2049, 4095, 4096, 4097, 8191, 8192)
"""Hidden sizes of real models, and sizes beside the brackets of kernels that the smaller EDGES leave out."""


def small(pick: Pick) -> int:
    """A few features up to a few dozen."""
    return pick.upto("features", 4, 1, 2, 3, 5, 7, 8, 12, 16, 24, 33, 64, 100)


def middle(pick: Pick) -> int:
    """As many features as make some quotients fall between two numbers of the dtype, with no doubt which is nearer."""
    return pick.upto("features", 8, 16, 31, 64, 128, 300, 768, 1024, 2048)


def wide(pick: Pick) -> int:
    """Rows so long that a sum in half precision stands still."""
    return pick.upto("features", 64, 1024, 4096, 4097, 5120, 8192)


def longest(pick: Pick) -> int:
    """Rows that are longer than one group of threads takes in one go, for which kernels have another path."""
    return pick.upto("features", 4096, 8192, 5120)


def beside_tiles(pick: Pick) -> int:
    """Sizes beside tiles, and those of real models."""
    return pick.upto("features", *EDGES, *WIDE)


def beside_odd_tiles(pick: Pick) -> int:
    """Sizes beside tiles that are no powers of two."""
    return pick.upto("features", *ODD_TILES)


def of_heads(pick: Pick) -> int:
    """The features of a head, which some models normalise."""
    return pick.upto("features", 128, 64)


def of_models(pick: Pick) -> int:
    """Hidden sizes of models, for which kernels are written first."""
    return pick.upto("features", 4096, 1024, 2048, 5120)


def of_the_largest(pick: Pick) -> int:
    """Hidden sizes of the largest models, more than a group of threads has room for."""
    return pick.upto("features", 16384, 12288)


def of_other_models(pick: Pick) -> int:
    """Hidden sizes of models that are no powers of two."""
    return pick.upto("features", 3072, 896, 2560, 768)


small_or_of_heads = any_of(small, of_heads)
"""A few features, or those of a head."""


def beside_brackets(pick: Pick) -> int:
    """Sizes beside and inside the brackets in which kernels share a group of threads in another way."""
    return pick.upto("features", 255, 256, 257, 300, 384, 511, 512, 513, 1023, 1024, 1025, 1100)


def past_vectors(pick: Pick) -> int:
    """Hundreds of features and more, the last of which are no whole vector."""
    return pick.upto("features", 1025, 4097, 513, 2049)


def small_or_large(pick: Pick) -> int:
    """A few features, those of a head, or more than one group of threads takes."""
    return pick.one_of(small(pick), of_heads(pick), pick.upto("features", 1024, 2048))


def rows(pick: Pick, shape: tuple[int, ...], dtype: str, amplitude: float) -> np.ndarray:
    """Rows of values up to three amplitudes, of both signs, with a mean of their own."""
    centre = pick.random.normal(size=(*shape[:-1], 1)) * pick.one_of(0.0, 0.7)
    values = np.clip(pick.random.normal(size=shape) + centre, -3, 3) * amplitude
    return np.asarray(values, np.float32).astype(numpy_dtype(dtype))


def _spelt(pick: Pick, eps: float) -> dict[str, Any]:
    """eps, left out half of the time where it is the default."""
    default = eps == RMSNorm.signature.parameters["eps"]
    return {} if default and pick.one_of(True, False) else {"eps": eps}


@calls
def rms_calls(
    pick: Pick, sizes: Sizes = small, amplitude: tuple[float, ...] = (1.0, 0.05, 30.0), beside_eps: bool = False
) -> Call:
    """RMSNorm of rows with a mean of their own, each as loud as it likes; weights of both signs.

    beside_eps: rows whose mean square is near eps, above and below, in place of the amplitudes.
    """
    dtype, lead, eps = pick("dtypes"), tuple(pick("leading_dims")), pick("eps")
    features = sizes(pick)
    loud = math.sqrt(eps) * pick.one_of(1.0, 0.2, 3.0) if beside_eps else pick.one_of(*amplitude)
    x = rows(pick, (*lead, features), dtype, loud)
    weight = pick.normal(features, dtype=dtype)
    return pick.call(RMS, dims=features, weight=weight, **_spelt(pick, eps), x=x)


@calls
def uneven_rows(pick: Pick, sizes: Sizes = small) -> Call:
    """Batches in which no row is as loud as the next."""
    call = rms_calls.build(pick, sizes=sizes, amplitude=(1.0,))
    x = call.arguments["x"]
    level = 2.0 ** pick.random.permutation(np.arange(math.prod(x.shape[:-1])) % 9 - 4).reshape(*x.shape[:-1], 1)
    return call.having(x=(x.astype(np.float32) * level.astype(np.float32)).astype(x.dtype))


@calls
def many_rows(pick: Pick) -> Call:
    """More rows than 16 bits count, as the heads of a long prompt are, in batches of one row where there are batches; no
    row is like the one 2^15 or 2^16 before."""
    call = uneven_rows.build(pick, sizes=lambda pick: pick.upto("features", 4, 2, 3, 5))
    x = call.arguments["x"]
    x = x[:, :1] if x.ndim > 2 else x
    return call.having(x=resized(x, 0, -(-pick.one_of(65537, 66000) // (x[0].size // x.shape[-1]))))


@calls
def thousands_of_rows(pick: Pick) -> Call:
    """A prompt of more than a thousand tokens, as wide as small models are."""
    call = uneven_rows.build(pick, sizes=lambda pick: pick.upto("features", 1024, 896))
    return call.having(x=resized(call.arguments["x"], 0, pick.one_of(1030, 1100)))


@calls
def long_prompts(pick: Pick) -> Call:
    """Hundreds of rows as wide as those of the largest models."""
    call = uneven_rows.build(pick, sizes=lambda pick: pick.upto("features", 7168, 5120))
    return call.having(x=resized(call.arguments["x"], 0, pick.one_of(520, 600)))


@calls
def prompts(pick: Pick) -> Call:
    """More heads of tokens than a group of threads has, or a prompt of more rows of a model than kernels keep groups for."""
    features, many = pick.one_of((64, 1030), (1024, 300))
    call = uneven_rows.build(pick, sizes=lambda pick: pick.upto("features", features))
    return call.having(x=resized(call.arguments["x"], 0, many))


@calls
def prompts_of_heads(pick: Pick) -> Call:
    """The heads of a prompt that a model normalises: more than a thousand, of whole vectors."""
    call = uneven_rows.build(pick, sizes=of_heads)
    return call.having(x=resized(call.arguments["x"], 0, pick.one_of(1030, 1056)))


@calls
def misfits(pick: Pick) -> Call:
    """Calls whose weight or whose x has another number of features than dims.

    A single channel, which broadcasts, is left open: several libraries let it pass.
    """
    call = rms_calls.build(pick)
    dims = max(call.arguments["dims"], 2)
    weight = np.resize(call.arguments["weight"], dims)
    x = np.resize(call.arguments["x"], (*call.arguments["x"].shape[:-1], dims))
    call = call.having(dims=dims, weight=weight, x=x)
    width = pick.one_of(*(width for width in (dims + 1, dims - 1, 2 * dims) if width > 1))
    if pick.one_of("weight", "x") == "weight":
        return call.having(weight=np.resize(weight, width))
    return call.having(x=np.resize(x, (*x.shape[:-1], width)))


ORDINARY = {"RMSNorm": rms_calls}
"""The widest calls of each operation."""
