"""Mistakes in Qwen3, and other honest ways to compute it."""

from __future__ import annotations

from inferspec.spec import qwen3 as spec
from inferspec.spec.changes import qwen3 as changes
from inferspec.spec.contract import Change, Fault, Variant
from inferspec.spec.faults.decoder import shared, variants
from inferspec.spec.faults.defining import TIRED
from inferspec.spec.qwen3 import QWEN3_08


def _own(name: str, text: str, change: Change, source: str = TIRED) -> Fault:
    return Fault(f"qwen3-{name}", text, QWEN3_08, change, source)


FAULTS: tuple[Fault, ...] = shared(
    spec,
    "qwen3",
    [
        _own("q-norm-dropped", "queries are not normalised", changes.norm_dropped("q_norm"), "a missing q_norm"),
        _own("k-norm-dropped", "keys are not normalised", changes.norm_dropped("k_norm")),
        _own(
            "rope-before-head-norm",
            "queries and keys are turned first and normalised then",
            {"placed": changes.after_rope},
        ),
        _own("q-norm-for-both", "keys are normalised with q_norm", {"placed": changes.one_for_both}),
        _own("head-norms-exchanged", "q_norm and k_norm are exchanged", {"placed": changes.exchanged}),
        _own(
            "norm-over-all-heads",
            "queries and keys are normalised over all heads at once, as in OLMo 2",
            {"placed": changes.over_all_heads},
        ),
        Fault(
            "qwen3-window-that-is-off",
            "a token sees the last sliding_window alone, also where use_sliding_window is false",
            spec.QWEN3_01,
            {"scored": changes.window_that_is_off},
            TIRED,
        ),
        Fault(
            "qwen3-head-norms-of-the-first-chunk",
            "queries and keys of chunks after others are not normalised",
            spec.QWEN3_25,
            {"placed": changes.norms_of_the_first_chunk},
            "https://github.com/paiml/aprender/pull/2085",
        ),
        Fault(
            "qwen3-eps-of-head-norms",
            "the norms of heads have an eps of 1e-6",
            spec.QWEN3_06,
            {"eps": changes.eps_of_heads},
            TIRED,
        ),
    ],
)

VARIANTS: tuple[Variant, ...] = variants("Qwen3", "qwen3")
