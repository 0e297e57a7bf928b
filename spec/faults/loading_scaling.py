"""Mistakes with files that ask for scaled RoPE."""

from __future__ import annotations

from inferspec.spec.changes import loading_scaling as changes
from inferspec.spec.contract import Fault
from inferspec.spec.faults.loading_sources import TIRED
from inferspec.spec.loading import LOAD_22, LOAD_26, LOAD_27

FAULTS: tuple[Fault, ...] = (
    Fault(
        "loading-unscaled",
        "the rope_scaling of a config.json is not read",
        LOAD_22,
        {"configured": changes.unscaled("folder", "sharded")},
        "PROPERTIES X13",
    ),
    Fault(
        "loading-kind-of-rope-parameters-ignored",
        "of rope_parameters the base is read and the rope_type is not",
        LOAD_22,
        {"configured": changes.kind_of_rope_parameters_ignored},
        "https://github.com/vllm-project/speculators/pull/571",
    ),
    *(
        Fault(
            f"loading-{kind}-ignored",
            f"a rope_scaling of type {kind} is passed over",
            LOAD_22,
            {"configured": changes.kind_ignored(kind)},
            "https://github.com/Blaizzy/mlx-vlm/pull/1710",
        )
        for kind in ("dynamic", "longrope")
    ),
    Fault(
        "loading-gguf-rope-factors-ignored",
        "rope_freqs.weight, by which a GGUF file scales RoPE, is passed over",
        LOAD_22,
        {"factored": changes.without_rope_factors},
        "https://github.com/vllm-project/vllm/issues/7268",
    ),
    Fault(
        "loading-scaled-refused",
        "a folder whose config scales RoPE is refused, although that is claimed",
        LOAD_26,
        {"guard_files": changes.refuses_scaled("folder")},
        "PROPERTIES X13",
    ),
    Fault(
        "loading-llama3-as-linear",
        "the factor of a llama3 scaling divides all frequencies",
        LOAD_26,
        {"configured": changes.taken_for_linear("llama3")},
        "https://github.com/ggml-org/llama.cpp/issues/8650",
    ),
    Fault(
        "loading-yarn-as-linear",
        "the factor of a yarn scaling divides all frequencies",
        LOAD_26,
        {"configured": changes.taken_for_linear("yarn")},
        TIRED,
    ),
    Fault(
        "loading-trained-on-all-positions",
        "original_max_position_embeddings is not read: max_position_embeddings is in its place",
        LOAD_26,
        {"configured": changes.trained_on_all_positions},
        "transformers, modeling_rope_utils, where a config lacks it",
    ),
    Fault(
        "loading-length-with-a-point-refused",
        "a config.json whose original_max_position_embeddings is 8192.0 is refused, which is no 8192",
        LOAD_26,
        {"configured": changes.whole_length_needed},
        "https://github.com/turboderp-org/exllamav3/issues/259",
    ),
    Fault(
        "loading-scaling-of-the-first-layer",
        "the first layer takes the scaling of RoPE out of the config, and those after it find none",
        LOAD_26,
        {"decoder": changes.of_the_first_layer(lambda config: "rope_factors" not in config)},
        "a pop",
    ),
    Fault(
        "loading-gguf-scaled-refused",
        "a GGUF file that scales RoPE is refused, although that is claimed",
        LOAD_27,
        {"guard_files": changes.refuses_scaled("gguf")},
        "PROPERTIES X13",
    ),
    Fault(
        "loading-gguf-factor-multiplies",
        "rope.scaling.factor multiplies the frequencies, as llama.cpp's --rope-freq-scale does",
        LOAD_27,
        {"rope_as_scaled": changes.scaling_of_gguf(changes.inverse_factor)},
        "llama.cpp, freq_scale is one over rope.scaling.factor",
    ),
    Fault(
        "loading-gguf-yarn-as-linear",
        "a GGUF file's scaling is linear, whatever its type",
        LOAD_27,
        {"rope_as_scaled": changes.scaling_of_gguf(changes.linear_whatever_it_is)},
        TIRED,
    ),
    Fault(
        "loading-gguf-trained-on-the-context",
        "rope.scaling.original_context_length is not read: the context_length is in its place",
        LOAD_27,
        {"rope_as_scaled": changes.scaling_of_gguf(changes.trained_on_the_context)},
        "llama.cpp, load_hparams, where a file lacks it",
    ),
    Fault(
        "loading-gguf-factors-of-the-first-layer",
        "rope_freqs.weight is taken for a tensor of the first layer: those after it have none",
        LOAD_27,
        {"decoder": changes.of_the_first_layer(lambda config: "rope_factors" in config)},
        "llama.cpp, TENSOR_DUPLICATED",
    ),
    Fault(
        "loading-gguf-factors-multiply",
        "rope_freqs.weight multiplies the frequencies",
        LOAD_27,
        {"factors": changes.multiplied_by_factors},
        "its name: it holds no frequencies",
    ),
    Fault(
        "loading-gguf-factors-from-the-last",
        "rope_freqs.weight is read from the slowest pair to the fastest",
        LOAD_27,
        {"factors": changes.factors_from_the_last},
        TIRED,
    ),
    Fault(
        "loading-gguf-one-factor",
        "the largest of rope_freqs.weight divides all frequencies",
        LOAD_27,
        {"factors": changes.one_factor},
        TIRED,
    ),
)
