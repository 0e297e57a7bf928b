"""Mistakes with GGUF files."""

from __future__ import annotations

from inferspec.spec.changes import loading
from inferspec.spec.changes import loading_gguf as changes
from inferspec.spec.changes import loading_refusals as refusals
from inferspec.spec.changes import loading_scaling as scaling
from inferspec.spec.contract import Fault
from inferspec.spec.faults.loading_sources import TIRED
from inferspec.spec.loading import (
    GGUF,
    LOAD_08,
    LOAD_09,
    LOAD_10,
    LOAD_11,
    LOAD_12,
    LOAD_13,
    LOAD_14,
    LOAD_15,
    LOAD_21,
    LOAD_22,
)

LAYERS_AND_FACTORS: tuple[Fault, ...] = (
    Fault(
        "loading-gguf-layers-as-text",
        "layers of a GGUF file are in the order of their names, 10 before 2",
        LOAD_08,
        {"inner": changes.of_gguf(loading.layers_as_text)},
        TIRED,
    ),
    Fault(
        "loading-gguf-one-digit",
        "a GGUF file of more than ten layers is refused: their numbers are taken for single digits",
        LOAD_08,
        {"from_gguf": changes.one_digit_layers},
        TIRED,
    ),
    Fault(
        "loading-gguf-none-unknown",
        "a GGUF file whose rope.scaling.type is none is refused",
        LOAD_08,
        {"says_none": changes.gguf_none_unknown},
        GGUF,
    ),
    Fault(
        "loading-gguf-factor-of-none",
        "rope.scaling.factor divides the frequencies, though rope.scaling.type beside it is none",
        LOAD_08,
        {"rope_as_scaled": changes.gguf_factor_of_none},
        "llama.cpp, llama_context: never scale if scaling type is none",
    ),
    Fault(
        "loading-gguf-factors-of-llamas-alone",
        "rope_freqs.weight is used in a llama, and passed over in any other model",
        LOAD_22,
        {"factored": changes.factors_of_llamas_alone},
        TIRED,
    ),
    Fault(
        "loading-gguf-factors-fitted",
        "of a rope_freqs.weight that is too long the first numbers are taken, and a single one divides all frequencies",
        LOAD_13,
        {"factored": changes.one_for_each},
        TIRED,
    ),
)


TENSORS_AND_KEYS: tuple[Fault, ...] = (
    Fault(
        "loading-gguf-missing-norm",
        "a norm that a GGUF file lacks keeps its factors of 1",
        LOAD_11,
        {"inner": changes.of_gguf(changes.norms_of_one_where_missing)},
        TIRED,
    ),
    Fault(
        "loading-gguf-layers-that-are-there",
        "a model of a GGUF file has as many layers as the file has",
        LOAD_11,
        {"inner": changes.layers_of_gguf},
        TIRED,
    ),
    Fault(
        "loading-gguf-misshaped-fitted",
        "a tensor of another shape in a GGUF file is cut or repeated to fit",
        LOAD_13,
        {"inner": changes.of_gguf(refusals.fitted)},
        "PROPERTIES EM4",
    ),
    Fault(
        "loading-gguf-misshaped-head",
        "a GGUF file whose head has another shape than its embedding is taken for a tied model",
        LOAD_13,
        {"inner": changes.of_gguf(changes.tied_where_the_head_does_not_fit)},
        "PROPERTIES EM3, EM4",
    ),
    Fault(
        "loading-gguf-any-architecture",
        "a GGUF file of an unknown architecture is taken for a llama",
        LOAD_14,
        {"guard": changes.gguf_of_any_architecture, "decoder": refusals.taken_for_llama},
        "the model_type remapping of loaders",
    ),
    Fault(
        "loading-gguf-few-bytes-lost",
        "a few bytes that a GGUF file lacks at its end are read as zeros",
        LOAD_15,
        {"guard_files": changes.tolerates_small_losses_of_gguf, "inner": refusals.zeros_at_the_end},
        "a size that is compared in pages",
    ),
    Fault(
        "loading-gguf-unscaled",
        "the RoPE scaling of a GGUF file is not read",
        LOAD_22,
        {"configured": scaling.unscaled("gguf")},
        "PROPERTIES X13",
    ),
    Fault(
        "loading-gguf-factor-without-a-kind",
        "rope.scaling.factor of a GGUF file is not read where no rope.scaling.type is beside it, which then is linear",
        LOAD_22,
        {"rope_as_scaled": scaling.without("rope_scaling")},
        "llama.cpp, load_hparams (linear where rope.scaling.type is not there)",
    ),
    Fault(
        "loading-gguf-older-factor",
        "rope.scale_linear of an older GGUF file is not read",
        LOAD_22,
        {"rope_as_scaled": scaling.without("rope_scale_linear")},
        "https://github.com/ggml-org/llama.cpp/pull/2772",
    ),
    Fault(
        "loading-gguf-gate-and-up-as-they-come",
        "gate and up of a GGUF file are put together in the order in which the file names them",
        LOAD_08,
        {"from_gguf": changes.in_the_order_of_the_file},
        "https://github.com/vllm-project/vllm/issues/41053",
    ),
    Fault(
        "loading-gguf-small-scales",
        "scales of blocks that are subnormal in float16 are read as 0",
        LOAD_10,
        {"from_gguf": changes.flushed(".scales")},
        "https://github.com/ggml-org/llama.cpp/issues/7843",
    ),
    Fault(
        "loading-gguf-small-numbers",
        "float16 numbers of a GGUF file that are subnormal are read as 0",
        LOAD_08,
        {"from_gguf": changes.flushed(".weight")},
        "https://github.com/ggml-org/llama.cpp/issues/7843",
    ),
    Fault(
        "loading-gguf-additional-ignored",
        "tensors of a GGUF file without a place are passed over in silence",
        LOAD_12,
        {"inner": changes.known_in_gguf},
        "candle, from_gguf of its models",
    ),
)


FAULTS: tuple[Fault, ...] = (
    Fault(
        "loading-gguf-eps",
        "the eps of a GGUF file is not read: it is 1e-6",
        LOAD_08,
        {"from_gguf": changes.gguf_default("rms_norm_eps", 1e-6)},
        "PROPERTIES X13",
    ),
    Fault(
        "loading-gguf-base",
        "the base of RoPE of a GGUF file is not read: it is 10000",
        LOAD_08,
        {"from_gguf": changes.gguf_default("rope_theta", 10000.0)},
        "PROPERTIES X13",
    ),
    Fault(
        "loading-gguf-absent-base",
        "the base of RoPE that a GGUF file does not say is 1e6",
        LOAD_08,
        {"configured": changes.gguf_absent_base},
        "llama.cpp, llama_hparams (10000 where rope.freq_base is not there)",
    ),
    Fault(
        "loading-gguf-rows",
        "the query and key rows of a llama in GGUF stay in the order of traditional RoPE",
        LOAD_09,
        {"from_gguf": changes.never_put_back},
        "https://github.com/ggml-org/llama.cpp/issues/3018",
    ),
    Fault(
        "loading-gguf-rows-of-qwen3",
        "the rows of a qwen3 in GGUF are put back too, though they were never moved",
        LOAD_09,
        {"from_gguf": changes.always_put_back},
        TIRED,
    ),
    Fault(
        "loading-gguf-key-heads",
        "key rows are put back as if there were as many key heads as query heads",
        LOAD_09,
        {"from_gguf": changes.query_heads_for_keys},
        "https://github.com/ggml-org/llama.cpp/issues/3018",
    ),
    Fault(
        "loading-gguf-ratio-for-key-heads",
        "key rows are put back as if the number of query heads for each key head were that of key heads",
        LOAD_09,
        {"from_gguf": changes.ratio_for_key_heads},
        "https://github.com/ggml-org/llama.cpp/pull/3364",
    ),
    Fault(
        "loading-gguf-no-bias",
        "biases of a GGUF file are not looked for",
        LOAD_21,
        {"from_gguf": changes.no_biases_of()},
        TIRED,
    ),
    Fault(
        "loading-gguf-no-bias-of-outputs",
        "of attention's biases in a GGUF file those of queries, keys and values are looked for, as in a Qwen2",
        LOAD_21,
        {"from_gguf": changes.no_biases_of("o_proj")},
        TIRED,
    ),
    Fault(
        "loading-gguf-no-bias-of-mlps",
        "biases of MLPs in a GGUF file are not looked for",
        LOAD_21,
        {"from_gguf": changes.no_biases_of("gate_proj", "up_proj", "down_proj")},
        TIRED,
    ),
    Fault(
        "loading-gguf-no-bias-of-blocks",
        "biases of a GGUF file whose matrices are blocks are not looked for",
        LOAD_21,
        {"from_gguf": changes.of_blocks(changes.no_biases_of())},
        TIRED,
    ),
    Fault(
        "loading-gguf-biases-of-blocks-stay",
        "where matrices are blocks, the rows of queries and keys are put back and their biases are not",
        LOAD_21,
        {"from_gguf": changes.of_blocks(changes.biases_never_put_back)},
        "https://github.com/ggml-org/llama.cpp/issues/3018",
    ),
    Fault(
        "loading-gguf-biases-stay",
        "the rows of queries and keys are put back and their biases are not",
        LOAD_21,
        {"from_gguf": changes.biases_never_put_back},
        "https://github.com/ggml-org/llama.cpp/issues/3018",
    ),
    Fault(
        "loading-gguf-scales-stay",
        "rows of codes are put back and their scales are not",
        LOAD_09,
        {"from_gguf": changes.codes_alone_put_back},
        TIRED,
    ),
    Fault(
        "loading-q4-1-no-minimum",
        "the minimum of Q4_1 blocks is dropped",
        LOAD_10,
        {"from_gguf": changes.in_blocks("Q4_1", "biases", changes.zeros)},
        TIRED,
    ),
    Fault(
        "loading-q4-1-minimum-subtracted",
        "the minimum of Q4_1 blocks is subtracted",
        LOAD_10,
        {"from_gguf": changes.in_blocks("Q4_1", "biases", changes.maximum)},
        "the sign of the minimum in Q4_K blocks",
    ),
    Fault(
        "loading-q4-1-minimum-first",
        "of Q4_1 blocks the minimum is taken for the scale, and the scale for the minimum",
        LOAD_10,
        {"from_gguf": changes.exchanged("Q4_1")},
        TIRED,
    ),
    Fault(
        "loading-q4-1-header-of-q4-0",
        "codes of Q4_1 blocks are read from the third byte on, as those of Q4_0, where the minimum is",
        LOAD_10,
        {"from_gguf": changes.in_blocks("Q4_1", "weight", changes.header_of_q4_0)},
        "https://github.com/ml-explore/mlx/pull/3664",
    ),
    Fault(
        "loading-gguf-first-block-alone",
        "of a packed matrix all blocks but the first stay zeros",
        LOAD_10,
        {"from_gguf": changes.first_block_alone},
        "https://github.com/1bit-MONSTER/1bit-MONSTER/pull/488",
    ),
    Fault(
        "loading-q4-0-unsigned",
        "codes of Q4_0 blocks are not centred on 8",
        LOAD_10,
        {"from_gguf": changes.in_blocks("Q4_0", "biases", changes.zeros)},
        TIRED,
    ),
    Fault(
        "loading-q4-0-centre",
        "codes of Q4_0 blocks are centred on 7",
        LOAD_10,
        {"from_gguf": changes.in_blocks("Q4_0", "biases", changes.seven)},
        TIRED,
    ),
    Fault(
        "loading-q4-nibbles",
        "the nibbles of a byte of Q4_1 are taken for neighbours",
        LOAD_10,
        {"from_gguf": changes.in_blocks("Q4_1", "weight", changes.even_and_odd)},
        "the packing of other 4-bit formats",
    ),
    Fault(
        "loading-q8-0-unsigned",
        "codes of Q8_0 blocks are read as unsigned",
        LOAD_10,
        {"from_gguf": changes.in_blocks("Q8_0", "biases", changes.zeros)},
        TIRED,
    ),
)
