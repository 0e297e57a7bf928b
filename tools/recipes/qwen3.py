"""Goldens of Qwen3."""

from __future__ import annotations

from typing import Any

from inferspec.spec import qwen3 as spec
from inferspec.tools.recipes import Case
from inferspec.tools.recipes.llama import CHUNKS, SCALED, SMALL, case


def _qwen3(name: str, requirement: Any, seed: int, **how: Any) -> Case:
    return case(spec, "qwen3", name, requirement, seed, **how)


CASES = (
    _qwen3("qwen3", spec.QWEN3_01, 801, shape=(2, 7), sizes=SMALL, heads=(4, 2)),
    _qwen3("qwen3-bfloat16", spec.QWEN3_01, 802, shape=(1, 6), sizes=SMALL, heads=(6, 2), dtypes="bfloat16"),
    _qwen3("qwen3-float16", spec.QWEN3_01, 803, shape=(1, 5), sizes=SMALL, heads=(3, 1), dtypes="float16"),
    _qwen3("qwen3-tied", spec.QWEN3_02, 804, shape=(1, 5), sizes=SMALL, heads=(3, 3), tied=True),
    _qwen3(
        "qwen3-rope-parameters", spec.QWEN3_05, 806, shape=(1, 9), sizes=SMALL, heads=(2, 1), rope="rope_parameters"
    ),
    _qwen3("qwen3-large-eps", spec.QWEN3_06, 807, shape=(1, 4), sizes=SMALL, heads=(2, 2), eps=0.01),
    _qwen3("qwen3-head-norms", spec.QWEN3_08, 808, shape=(2, 6), sizes=(28, 20, 16, 31), heads=(6, 2)),
    _qwen3(
        "qwen3-packed",
        spec.QWEN3_13,
        809,
        shape=(1, 6),
        sizes=(64, 96, 16, 23),
        heads=(6, 2),
        packing="mixed",
        group_sizes=32,
        tied=True,
    ),
    _qwen3(
        "qwen3-chunks", spec.QWEN3_24, 811, shape=(2,), sizes=SMALL, heads=(4, 2), cuts=((0, 3), (0, 1), (0, 1), (0, 2))
    ),
    _qwen3(
        "qwen3-requests",
        spec.QWEN3_28,
        812,
        shape=(1,),
        sizes=SMALL,
        heads=(3, 1),
        cuts=((0, 2), (1, 3), (0, 1), (1, 1), (0, 2)),
    ),
    _qwen3("qwen3-llama3", spec.QWEN3_34, 822, shape=(1, 24), **SCALED, rope_types="llama3"),
    _qwen3("qwen3-yarn", spec.QWEN3_35, 823, shape=(1, 20), **SCALED, rope_types="yarn"),
    _qwen3("qwen3-yarn-chunks", spec.QWEN3_40, 828, shape=(2,), **SCALED, rope_types="yarn", cuts=CHUNKS),
)
