"""Goldens of flash attention: PyTorch's attention on more than a tile of queries or keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from inferspec.spec import flash_attention as spec
from inferspec.tools.recipes import Case, Draw
from inferspec.tools.recipes.attention import attention_case, grouped_attention


def _rising(name: str, seed: int, dtype: str, keys: int, dim: int) -> Case:
    """Logits that rise by 24 along the keys, and fall in every other row."""

    def inputs(draw: Draw) -> dict[str, Any]:
        query, key = draw.values(1, 2, 3, dim, size=1.0), draw.values(1, 2, keys, dim, size=1.0)
        query[..., -1] = draw.exactly([1.0, -1.0, 1.0])
        key[..., -1] = draw.exactly(np.linspace(-12.0, 12.0, keys) * dim**0.5)
        return {"query": query, "key": key, "value": draw.values(1, 2, keys, dim), "scale": None, "mask": None}

    features = {
        "dtypes": dtype,
        "head_dims": dim,
        "ratios": 1,
        "leading_dims": (1,),
        "masks": "none",
        "scales": "default",
        "more_queries": False,
        "keys": keys,
    }
    return Case(name, spec.FLASH_20, seed, features, inputs, grouped_attention)


CASES = (
    attention_case("flash-plain", spec.FLASH_01, 1, "float32", (2,), (2, 1), (5, 40), 64),
    attention_case("flash-plain-bfloat16", spec.FLASH_01, 2, "bfloat16", (1,), (1, 2), (4, 33), 80),
    attention_case("flash-scale", spec.FLASH_02, 3, "float32", (), (2, 1), (3, 9), 32, scale=-0.3),
    attention_case("flash-ratio-seven", spec.FLASH_03, 4, "float16", (1,), (2, 7), (2, 20), 32),
    attention_case(
        "flash-additive-mask", spec.FLASH_04, 5, "float32", (2,), (1, 2), (9, 35), 32, None, "additive", (2, 2, 9, 35)
    ),
    attention_case(
        "flash-bool-mask", spec.FLASH_04, 6, "bfloat16", (1,), (2, 1), (3, 65), 40, None, "bool", (2, 1, 65)
    ),
    attention_case("flash-causal", spec.FLASH_05, 7, "float32", (1,), (1, 2), (9, 70), 32, None, "causal"),
    attention_case("flash-causal-square", spec.FLASH_05, 8, "float16", (1,), (1, 1), (33, 33), 64, None, "causal"),
    attention_case("flash-infinity-mask", spec.FLASH_06, 9, "bfloat16", (), (2, 1), (4, 34), 32, None, "-inf", (4, 34)),
    attention_case("flash-lowest-mask", spec.FLASH_06, 10, "float16", (), (2, 1), (4, 34), 32, None, "lowest", (4, 34)),
    attention_case("flash-keys-63", spec.FLASH_18, 11, "float32", (1,), (1, 3), (2, 63), 32),
    attention_case("flash-keys-129", spec.FLASH_18, 12, "bfloat16", (1,), (1, 2), (2, 129), 32),
    attention_case("flash-wide-heads", spec.FLASH_19, 13, "float32", (1,), (1, 2), (2, 6), 256),
    attention_case("flash-odd-head-dim", spec.FLASH_19, 14, "float16", (1,), (1, 2), (2, 6), 112),
    _rising("flash-rising", 15, "float32", 70, 32),
    _rising("flash-rising-bfloat16", 16, "bfloat16", 130, 32),
)
