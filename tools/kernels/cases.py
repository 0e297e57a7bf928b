"""Calls that reach each kernel of `inferspec.impl.kernels`: shapes beside the multiples of 8, 32 and of tiles, every form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from inferspec.spec.numerics import f64, round_to

Arguments = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """A call of an operation. arguments: made for a dtype, by the contract's names, as NumPy arrays."""

    operation: str
    name: str
    arguments: Callable[[str], Arguments]


def cases() -> tuple[Case, ...]:
    """All of them."""
    return (
        *(Case("RMSNorm", f"{rows}×{width}", partial(_rms_norm, rows, width)) for rows, width in ((3, 7), (2, 1030))),
        Case("RoPE", "halves, an offset for each row", partial(_rope, 2, 80, 64, [slice(7, 10), slice(0, 3)], False)),
        Case("RoPE", "pairs, far out", partial(_rope, 1, 40, 40, 2**17 - 1, True)),
        *(
            Case(
                "quantized_matmul",
                f"{rows} rows, group {size}, {'w' if plain else 'wᵀ'}",
                partial(_quantized, rows, size, plain),
            )
            for rows, size, plain in ((3, 32, False), (1, 64, True), (17, 128, False), (9, 32, True))
        ),
        *(
            Case(
                "flash_attention", f"{length} of {keys} keys, D {dim}, {mask}", partial(_flash, length, keys, dim, mask)
            )
            for length, keys, dim, mask in (
                (1, 131, 40, None),
                (5, 3, 128, "causal"),
                (33, 70, 64, "causal"),
                (9, 35, 40, "bool"),
                (2, 65, 256, "added"),
            )
        ),
        *(
            Case("paged_attention", f"{length} of {contexts}, pages of {page}", partial(_paged, length, contexts, page))
            for length, contexts, page in ((1, (131, 5, 16), 16), (2, (0, 7, 70), 3), (33, (70, 33), 16))
        ),
    )


def _drawn(*shape: int, dtype: str, seed: int = 0) -> np.ndarray:
    """Normal numbers in the dtype."""
    return round_to(np.random.default_rng([seed, *shape]).normal(size=shape), dtype)


def _rms_norm(rows: int, width: int, dtype: str) -> Arguments:
    return {
        "dims": width,
        "weight": _drawn(width, dtype=dtype, seed=1),
        "eps": 1e-5,
        "x": _drawn(rows, width, dtype=dtype),
    }


def _rope(batch: int, features: int, dims: int, offset: Any, traditional: bool, dtype: str) -> Arguments:
    length, heads = 3, 5
    return {
        "dims": dims,
        "max_positions": 2**17 + length,
        "base": 10000,
        "traditional": traditional,
        "x": _drawn(batch, length, heads, features, dtype=dtype),
        "offset": offset,
    }


def _quantized(rows: int, size: int, plain: bool, dtype: str) -> Arguments:
    outputs, groups = 33, 3
    features = groups * size
    return {
        "x": _drawn(rows, outputs if plain else features, dtype=dtype),
        "packed": np.random.default_rng(outputs).integers(0, 2**32, (outputs, features // 8), dtype=np.uint32),
        "scales": _drawn(outputs, groups, dtype=dtype, seed=1),
        "biases": _drawn(outputs, groups, dtype=dtype, seed=2),
        "group_size": size,
        "bits": 4,
        "transpose": not plain,
    }


def _flash(length: int, keys: int, dim: int, mask: str | None, dtype: str) -> Arguments:
    sizes = {"query": (6, length), "key": (2, keys), "value": (2, keys)}
    arrays = {name: _drawn(2, *size, dim, dtype=dtype, seed=seed) for seed, (name, size) in enumerate(sizes.items())}
    return {**arrays, "scale": None, "mask": _mask(mask, (length, keys), dtype)}


def _mask(kind: str | None, shape: tuple[int, int], dtype: str) -> Any:
    """bool: most keys hidden; added: numbers and -inf, for each of two batch rows."""
    if kind == "bool":
        return np.random.default_rng(0).random(shape) < 0.2
    if kind == "added":
        values = _drawn(2, 1, *shape, dtype=dtype)
        return np.where(f64(values) > 0.5, values.dtype.type(-np.inf), values)
    return kind


def _paged(length: int, contexts: tuple[int, ...], page_size: int, dtype: str) -> Arguments:
    """NaN wherever nothing was written; entries of the table past the last page in use name no page at all."""
    heads, ratio, dim = 2, 3, 64
    used = [-(-context // page_size) for context in contexts]
    pages = sum(used) + 2
    pools = {
        name: _drawn(pages, heads, page_size, dim, dtype=dtype, seed=seed)
        for seed, name in enumerate(("key_pages", "value_pages"))
    }
    table = np.full((len(contexts), max(used) + 1), 2**31 - 1, np.int32)
    order = iter(np.random.default_rng(0).permutation(pages))
    written = np.zeros((pages, page_size), bool)
    for row, context in enumerate(contexts):
        for n in range(used[row]):
            table[row, n] = next(order)
            written[table[row, n], : context - n * page_size] = True
    for pool in pools.values():
        pool.swapaxes(1, 2)[~written] = np.nan
    return {
        "query": _drawn(len(contexts), heads * ratio, length, dim, dtype=dtype),
        **pools,
        "block_table": table,
        "context_lens": np.array(contexts, np.int32),
        "page_size": page_size,
    }
