"""Mistakes in Qwen3, and other honest ways to compute it."""

from __future__ import annotations

from inferspec.spec import qwen3 as spec
from inferspec.spec.changes import decoder
from inferspec.spec.changes import qwen3 as changes
from inferspec.spec.contract import Change, Fault, Variant
from inferspec.spec.faults.decoder import shared, variants
from inferspec.spec.faults.defining import TIRED
from inferspec.spec.qwen3 import QWEN3_08


def _own(name: str, text: str, change: Change, source: str = TIRED) -> Fault:
    return Fault(f"qwen3-{name}", text, QWEN3_08, change, source)


def _of_windows(name: str, text: str, change: Change, source: str = TIRED) -> Fault:
    return Fault(f"qwen3-window-{name}", text, spec.QWEN3_44, change, source)


def _of_cached_windows(name: str, text: str, change: Change, source: str = TIRED) -> Fault:
    return Fault(f"qwen3-window-{name}", text, spec.QWEN3_45, change, source)


def _of_biases(name: str, text: str, *endings: str) -> Fault:
    return Fault(f"qwen3-{name}", text, spec.QWEN3_46, decoder.without_bias(*endings), "transformers, Qwen3Config")


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
            {"window": lambda self, layer, config: config.get("sliding_window")},
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
        _of_biases(
            "attention-bias-ignored", "projections of attention have no bias", "q_proj", "k_proj", "v_proj", "o_proj"
        ),
        _of_biases("output-bias-ignored", "the output projection has no bias, as in Qwen2", "o_proj"),
        _of_windows(
            "ignored",
            "sliding windows are not read: every layer sees all",
            {"window": lambda self, layer, config: None},
            "https://github.com/vllm-project/vllm/issues/39514",
        ),
        _of_windows(
            "wider-by-one",
            "a window lets one key more through",
            {"recent": changes.wider_by_one},
            "https://github.com/ml-explore/mlx-lm/commit/6fd60d3e",
        ),
        _of_windows(
            "of-the-first-layer",
            "all layers have the mask of the first one",
            {"slides": changes.of_the_first_layer},
            "https://github.com/ml-explore/mlx-lm/commit/465b107c",
        ),
        _of_windows("in-all-layers", "every layer has a window", {"slides": lambda self, layer, config: True}),
        _of_windows(
            "below-the-limit",
            "the layers below max_window_layers have the windows, which those from it on should have",
            {"slides": changes.below_the_limit},
        ),
        _of_windows("types-unread", "layer_types is not read", {"slides": changes.by_number_alone}),
        _of_cached_windows(
            "ignored-for-one-token",
            "a single token has no mask, and sees all that is cached",
            {"recent": changes.dropped_for_one_token},
            "https://github.com/ml-explore/mlx-lm/commit/25a4c836",
        ),
        _of_cached_windows(
            "cut-to-the-last",
            "a cache keeps a window of keys when a chunk is put into it, whose first tokens then lack some",
            {"recent": changes.cut_to_the_last},
            "https://github.com/ml-explore/mlx-lm/commit/0347b6a7",
        ),
        _of_cached_windows(
            "of-the-chunk",
            "a window hides what is far back in the chunk, and nothing that is cached",
            {"recent": changes.counted_from_the_chunk},
        ),
        _of_cached_windows(
            "refused-late",
            "a chunk after others that is longer than the window is refused, and the model was taken",
            {"recent": changes.no_longer_chunks},
            "LitGPT 0.5.13, KVCache",
        ),
    ],
)

VARIANTS: tuple[Variant, ...] = (
    *variants("Qwen3", "qwen3"),
    *(
        Variant(
            f"qwen3-without-windows{suffix}",
            "sliding windows are refused",
            operation,
            {"guard_config": changes.refused},
        )
        for operation, suffix in (("Qwen3", ""), ("Qwen3.incremental", "-incremental"))
    ),
)
