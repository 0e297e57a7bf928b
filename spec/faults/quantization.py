"""Mistakes in quantisers and in products with quantised weights, and other honest ways to compute them."""

from __future__ import annotations

import numpy as np

from inferspec.spec.changes import quantization as changes
from inferspec.spec.changes.linear import blocked_product, rounded, whole_blocks
from inferspec.spec.contract import Fault, Operation, Requirement, Variant
from inferspec.spec.faults.linear import MLX, TIRED
from inferspec.spec.mistakes import (
    STEPS,
    beside_room,
    bfloat16_through_float16,
    cut_to_32_bits,
    drifts,
    first_row_for_all,
    ignores_strides,
    in_half,
    last_past_tiles_unwritten,
    leaves_unwritten,
    mutates,
    of_many_rows,
    of_one_half_row,
    only_where,
    paths_break_promises,
    paths_lack_a_feature,
    paths_misread,
    promotes,
    read_as_of,
    refuses_empty,
    remembers,
    swaps_batches,
    wraps_batches,
)
from inferspec.spec.numerics import Precision, f64
from inferspec.spec.quantization import (
    DEQ_01,
    DEQ_02,
    DEQ_03,
    DEQ_04,
    DEQ_05,
    DEQ_06,
    DEQ_07,
    DEQ_08,
    DEQ_09,
    DEQ_10,
    DEQ_11,
    DEQ_12,
    QEMB_01,
    QEMB_02,
    QEMB_03,
    QEMB_04,
    QEMB_05,
    QEMB_06,
    QEMB_07,
    QEMB_08,
    QEMB_09,
    QEMB_10,
    QEMB_11,
    QEMB_12,
    QEMB_13,
    QEMB_14,
    QEMB_15,
    QEMB_16,
    QEMB_17,
    QEMB_18,
    QEMB_19,
    QEMB_20,
    QEMB_21,
    QLIN_01,
    QLIN_02,
    QLIN_03,
    QLIN_04,
    QLIN_05,
    QLIN_06,
    QLIN_07,
    QLIN_08,
    QLIN_09,
    QLIN_10,
    QLIN_11,
    QLIN_12,
    QLIN_13,
    QMM_01,
    QMM_02,
    QMM_03,
    QMM_04,
    QMM_05,
    QMM_06,
    QMM_07,
    QMM_08,
    QMM_09,
    QMM_10,
    QMM_11,
    QMM_12,
    QMM_13,
    QMM_14,
    QMM_15,
    QMM_16,
    QMM_17,
    QUANT_01,
    QUANT_02,
    QUANT_03,
    QUANT_04,
    QUANT_05,
    QUANT_06,
    QUANT_07,
    QUANT_08,
    QUANT_09,
    QUANT_10,
    QUANT_11,
    QUANT_12,
    QUANT_13,
    QUANT_14,
    QUANT_15,
)

AS_MOST_ARE = {
    "tokens": (range(1, 2), 512, 512),
    "few-tokens": (range(2, 9), 64, 512),
    "prompts": (range(32, 2**16), 64, 256),
}
"""Numbers of rows, and the least outputs and features, of the paths that kernels have for most models."""

MLX_LM = "https://github.com/ml-explore/mlx-lm"
SPLIT_NIBBLES = "https://github.com/kekzl/imp/pull/722"
PREFIX_LOST = "https://github.com/mflux-community/mflux/pull/489"
COURSE = "tiny-llm course, week 2 day 2"


def _past_float16(name: str, requirement: Requirement) -> Fault:
    """Weights of float16 are restored in float16, where code times scale may pass its range although the weight keeps it."""
    return Fault(
        f"{name}-products-past-float16",
        "code times scale is infinite in float16 where it passes 65504",
        requirement,
        {"affine": changes.products_past_float16},
        f"{MLX}/commit/56e026d8a",
    )


def _strides_of_prompts(name: str, requirement: Requirement) -> list[Fault]:
    return [
        Fault(
            f"{name}-prompts-{part}-strides",
            f"of 32 rows and 256 features and more {part} is read as if it were contiguous",
            requirement,
            only_where(changes.of_prompts, ignores_strides(part)),
            TIRED,
        )
        for part in ("x", "packed", "scales")
    ]


def _batches_swapped(name: str, requirement: Requirement) -> Fault:
    return Fault(
        f"{name}-batches-swapped",
        "of four axes the first two are exchanged when rows are folded back",
        requirement,
        swaps_batches(),
        TIRED,
    )


_QUANTIZE = (
    Fault(
        "quantize-high-bits-first",
        "the first code of a word lies in its highest bits",
        QUANT_01,
        {"pack": lambda self, codes, bits: changes.high_first(codes, bits)},
        TIRED,
    ),
    Fault(
        "quantize-high-nibbles-first",
        "of each byte the first code lies in the highest bits",
        QUANT_01,
        {"pack": lambda self, codes, bits: changes.packs_high_nibbles_first(codes, bits)},
        TIRED,
    ),
    Fault(
        "quantize-interleaved",
        "codes are packed in AWQ's order: even places of a word before odd ones",
        QUANT_01,
        {"pack": lambda self, codes, bits: changes.interleaved(codes, bits)},
        "https://github.com/ModelCloud/GPTQModel/issues/2350",
    ),
    Fault(
        "quantize-signed-codes", "codes are stored as signed numbers", QUANT_01, {"pack": changes.signed_codes}, TIRED
    ),
    Fault("quantize-truncates", "codes are cut off instead of rounded", QUANT_01, {"codes": changes.truncated}, TIRED),
    Fault(
        "quantize-wraps",
        "the largest weight gets code 2^bits, which wraps to 0",
        QUANT_01,
        {"codes": changes.wrapping},
        "https://github.com/pytorch/pytorch/pull/113861",
    ),
    Fault("quantize-range-of-the-row", "one scale serves the whole row", QUANT_02, {"ends": changes.whole_row}, COURSE),
    Fault(
        "quantize-symmetric",
        "the grid is even about 0, whatever the range",
        QUANT_02,
        {"grid": changes.symmetric},
        TIRED,
        forms=({"grid": changes.centred_on_zero},),
    ),
    Fault("quantize-range-with-zero", "the range is stretched to hold 0", QUANT_02, {"ends": changes.with_zero}, TIRED),
    Fault(
        "quantize-largest-from-zero",
        "the largest weight of a group is searched from 0 on: a group of negative weights gets a grid up to 0",
        QUANT_02,
        {"ends": changes.largest_from_zero},
        "MLX 0.32.4, affine_quantize of quantized.h (Metal) and affine_quantize.cu: float w_max = 0",
    ),
    Fault(
        "quantize-zero-point-clamped",
        "the zero point is clamped to the codes: groups on one side of 0 are cut off",
        QUANT_02,
        {"grid": changes.zero_point_clamped},
        "https://github.com/mit-han-lab/llm-awq/issues/193",
    ),
    Fault(
        "quantize-outliers-clipped",
        "the largest weights are cut off",
        QUANT_02,
        {"ends": changes.clipped_outliers},
        TIRED,
    ),
    Fault("quantize-power-of-two-scales", "scales are powers of two", QUANT_02, {"grid": changes.power_of_two}, TIRED),
    Fault(
        "quantize-range-carried-over",
        "the range is not reset between groups",
        QUANT_02,
        {"ends": changes.carried_over},
        TIRED,
    ),
    Fault(
        "quantize-one-step-too-many",
        "the range is divided by 2^bits: the largest weight is cut off",
        QUANT_03,
        {"grid": changes.one_step_too_many},
        "https://github.com/mlc-ai/mlc-llm/pull/1321",
    ),
    Fault(
        "quantize-divides-by-zero",
        "a group of one value gives NaN",
        QUANT_04,
        {"grid": changes.divides_by_zero},
        f"{MLX}/commit/ec8578d41",
    ),
    Fault("quantize-constant-lost", "a group of one value gives 0", QUANT_04, {"grid": changes.constant_lost}, TIRED),
    Fault(
        "quantize-range-in-dtype",
        "the range is computed in the input's dtype and overflows",
        QUANT_04,
        {"grid": changes.range_in_dtype},
        "PROPERTIES QZ4",
    ),
    Fault(
        "quantize-scales-quantised",
        "the scales of a row are quantised to 8 bits in their turn",
        QUANT_05,
        {"grid": changes.double_quantised},
        TIRED,
    ),
    *paths_misread(
        "quantize-many-rows",
        "of 32 rows and more in half precision",
        QUANT_06,
        in_half(of_many_rows("w"), "w"),
        {"w": None},
    ),
    Fault("quantize-strides", "w is read as if it were contiguous", QUANT_06, ignores_strides("w"), "PROPERTIES X1"),
    Fault(
        "quantize-scales-in-float32",
        "scales and biases come back in float32",
        QUANT_07,
        {"part_dtype": lambda self, part, a: "uint32" if part == "packed" else "float32"},
        "https://github.com/ml-explore/mlx-swift/issues/420",
    ),
    Fault(
        "quantize-many-rows-in-float32",
        "scales and biases of more than 32 rows come back in float32",
        QUANT_07,
        {
            "part_dtype": lambda self, part, a: (
                "uint32" if part == "packed" else "float32" if len(a.w) > 32 else a.w.dtype.name
            )
        },
        TIRED,
    ),
    Fault(
        "quantize-changes-many-rows",
        "more than 32 rows are scaled in place",
        QUANT_08,
        only_where(lambda a: len(a.w) > 32, {"respond": changes.scales_in_place}),
        TIRED,
    ),
    Fault(
        "quantize-remembers-bits",
        "a kernel cached by shape has the number of bits of the first call",
        QUANT_09,
        remembers("bits"),
        "PROPERTIES X7",
    ),
    Fault(
        "quantize-remembers-group-size",
        "a kernel cached by shape has the group size of the first call",
        QUANT_09,
        remembers("group_size"),
        "PROPERTIES X7",
    ),
    Fault(
        "quantize-words-signed",
        "packed comes back as int32",
        QUANT_07,
        {
            "respond": lambda self, a: {
                part: x.view(np.int32) if part == "packed" else x for part, x in Operation.respond(self, a).items()
            }
        },
        TIRED,
    ),
    Fault(
        "quantize-single-row-strides",
        "the path of a single row reads w as if it were contiguous",
        QUANT_06,
        only_where(of_one_half_row("w"), ignores_strides("w")),
        TIRED,
    ),
    Fault(
        "quantize-single-row-in-float32",
        "scales and biases of a single row come back in float32",
        QUANT_07,
        {
            "part_dtype": lambda self, part, a: (
                "uint32" if part == "packed" else "float32" if len(a.w) == 1 else a.w.dtype.name
            )
        },
        TIRED,
    ),
    Fault(
        "quantize-changes-single-row",
        "a single row is scaled in place",
        QUANT_08,
        only_where(of_one_half_row("w"), {"respond": changes.scales_in_place}),
        TIRED,
    ),
    Fault(
        "quantize-remembers-single-row",
        "parts of a single row cached by shape serve other rows",
        QUANT_09,
        only_where(of_one_half_row("w"), remembers("w")),
        TIRED,
    ),
    Fault(
        "quantize-changes-w", "the weights are scaled in place", QUANT_08, {"respond": changes.scales_in_place}, TIRED
    ),
    Fault(
        "quantize-remembers-many-rows",
        "parts of more than 32 rows, cached by shape, serve other weights",
        QUANT_09,
        only_where(lambda a: len(a.w) > 32, remembers("w")),
        "PROPERTIES X7",
    ),
    Fault("quantize-remembers", "parts cached by shape serve other weights", QUANT_09, remembers("w"), "PROPERTIES X7"),
    Fault(
        "quantize-adds-up",
        "codes are added to those of an earlier call",
        QUANT_09,
        {"respond": changes.adds_up},
        "PROPERTIES X11",
    ),
    Fault(
        "quantize-pads-groups",
        "a broken last group is filled up",
        QUANT_10,
        {"guard_weights": lambda self, a: None, "respond": changes.pads_groups},
        "PROPERTIES X9",
    ),
    Fault(
        "quantize-any-bits",
        "an unknown number of bits means 4",
        QUANT_10,
        {"guard_grid": lambda self, a: None, "respond": changes.any_bits},
        TIRED,
    ),
    Fault(
        "quantize-any-group-size",
        "a group size that is not offered is taken",
        QUANT_15,
        {"guard_grid": lambda self, a: None, "respond": changes.any_group},
        "PROPERTIES X9",
    ),
    Fault(
        "quantize-by-nothing",
        "a group size or number of bits of 0 and below stands for one that is offered",
        QUANT_14,
        changes.QUANTIZED_BY_NOTHING,
        f"{MLX}/issues/550 (sizes unchecked)",
    ),
    Fault(
        "quantize-common-matrices-lack-a-group",
        "the last scale and bias of a row are not written, in 4 bits, groups of 64 and half precision",
        QUANT_11,
        {"respond": changes.last_group_unwritten},
        TIRED,
    ),
    Fault(
        "quantize-whole-blocks-of-rows",
        "rows past the last whole block of 8 are not written",
        QUANT_11,
        {"respond": changes.whole_row_blocks},
        "PROPERTIES X10",
    ),
    Fault(
        "quantize-rows-in-16-bits",
        "rows past 32768 are not written",
        QUANT_11,
        {"respond": changes.rows_in_16_bits},
        f"{MLX}/commit/c9e8ee6b6",
    ),
    Fault(
        "quantize-no-rows-crash",
        "no rows end in an error of shapes",
        QUANT_13,
        {"respond": refuses_empty("w")},
        f"{MLX}/issues/2164",
    ),
    Fault(
        "quantize-stack-modulo-eight",
        "the matrices of a stack are counted modulo 8",
        QUANT_12,
        {"respond": changes.eight_of_a_stack},
        TIRED,
    ),
    Fault(
        "quantize-first-of-the-stack",
        "the first matrix of a stack serves all",
        QUANT_12,
        {"respond": changes.rows_alone},
        TIRED,
    ),
)


_DEQUANTIZE = (
    Fault(
        "dequantize-high-bits-first",
        "the first code of a word is read from its highest bits",
        DEQ_01,
        {"codes": changes.reversed_places},
        TIRED,
    ),
    Fault(
        "dequantize-high-nibbles-first",
        "of each byte the first code is read from the highest bits",
        DEQ_01,
        {"codes": changes.high_nibbles_first},
        SPLIT_NIBBLES,
    ),
    Fault(
        "dequantize-split-nibbles",
        "every other place of a word is read first",
        DEQ_01,
        {"codes": changes.split_places},
        SPLIT_NIBBLES,
    ),
    Fault(
        "dequantize-bytes-swapped",
        "words are read in the other byte order",
        DEQ_01,
        {"codes": changes.swapped_bytes},
        TIRED,
    ),
    Fault("dequantize-signed", "codes are read as signed numbers", DEQ_01, {"codes": changes.signed}, TIRED),
    Fault(
        "dequantize-last-code-signed",
        "the last code of a word takes the sign of an int32",
        DEQ_01,
        {"codes": changes.last_place_signed},
        TIRED,
    ),
    Fault(
        "dequantize-nibbles-always",
        "codes of 8 bits lose their upper half to a mask of 4 bits",
        DEQ_01,
        {"codes": changes.nibbles_always},
        TIRED,
    ),
    Fault(
        "dequantize-top-code-lost",
        "the largest code reads as the one below",
        DEQ_01,
        {"codes": changes.top_code_lost},
        TIRED,
    ),
    Fault(
        "dequantize-zero-wraps",
        "code 0 wraps to the largest and one more",
        DEQ_01,
        {"codes": changes.zero_wraps},
        "https://github.com/ModelCloud/GPTQModel/issues/2350",
    ),
    Fault(
        "dequantize-words-transposed",
        "neighbouring weights are read from neighbouring words",
        DEQ_01,
        {"codes": changes.words_transposed},
        TIRED,
    ),
    Fault(
        "dequantize-groups-strided",
        "weights take the groups in turn, not in runs",
        DEQ_02,
        changes.of_group(changes.strided_groups),
        TIRED,
    ),
    Fault(
        "dequantize-next-group",
        "each group takes the scale of the next",
        DEQ_02,
        changes.of_group(changes.next_group),
        TIRED,
    ),
    Fault(
        "dequantize-first-group",
        "the first group's scale serves the row",
        DEQ_02,
        changes.of_group(changes.first_group),
        COURSE,
    ),
    Fault(
        "dequantize-groups-of-64",
        "groups are taken for 64 wide",
        DEQ_02,
        changes.of_group(changes.groups_of_64),
        "https://github.com/ml-explore/mlx-swift-examples/issues/178",
    ),
    Fault(
        "dequantize-group-late",
        "the scale changes one word too late",
        DEQ_02,
        changes.of_group(changes.late_by_a_word),
        TIRED,
    ),
    Fault(
        "dequantize-groups-down-the-columns",
        "scales are read as if transposed",
        DEQ_02,
        {"of_group": changes.groups_down_the_columns},
        TIRED,
    ),
    Fault("dequantize-first-row", "the first row's scales serve all", DEQ_02, {"of_group": changes.first_row}, TIRED),
    Fault("dequantize-bias-subtracted", "the bias is subtracted", DEQ_02, {"affine": changes.bias_subtracted}, TIRED),
    Fault("dequantize-zero-point", "the bias is taken for a zero point", DEQ_02, {"affine": changes.zero_point}, TIRED),
    Fault(
        "dequantize-whole-zero-point",
        "the bias is turned into a zero point, a whole number",
        DEQ_02,
        {"affine": changes.whole_zero_point},
        TIRED,
    ),
    Fault(
        "dequantize-divides-by-scale",
        "the bias is divided by the scale and multiplied again: a scale of 0 gives NaN",
        DEQ_02,
        {"affine": changes.through_zero_point},
        f"{MLX}/commit/ec8578d41",
    ),
    Fault(
        "dequantize-size-of-scale",
        "negative scales are taken for positive",
        DEQ_02,
        {"affine": changes.size_of_scale},
        TIRED,
    ),
    Fault(
        "dequantize-rounds-twice",
        "code times scale is rounded before the bias is added",
        DEQ_03,
        {"affine": changes.rounded_twice},
        f"{MLX}/commit/56e026d8a",
    ),
    Fault(
        "dequantize-bfloat16-through-float16",
        "scales and biases that are bfloat16 pass through float16",
        DEQ_03,
        {"affine": changes.bfloat16_in_float16},
        TIRED,
    ),
    Fault(
        "dequantize-many-rows-through-float16",
        "of more than 32 rows scales that are bfloat16 pass through float16",
        DEQ_03,
        only_where(lambda a: len(a.packed) > 32, bfloat16_through_float16("scales")),
        TIRED,
    ),
    Fault(
        "dequantize-through-bfloat16", "weights pass through bfloat16", DEQ_03, {"affine": changes.in_bfloat16}, TIRED
    ),
    Fault(
        "dequantize-float16-scales",
        "scales and biases pass through float16",
        DEQ_03,
        {"affine": changes.in_float16},
        TIRED,
    ),
    _past_float16("dequantize", DEQ_03),
    Fault(
        "dequantize-stack-modulo-eight",
        "the matrices of a stack are counted modulo 8",
        DEQ_04,
        {"respond": changes.eight_of_a_stack},
        TIRED,
    ),
    Fault(
        "dequantize-first-of-the-stack",
        "the first matrix of a stack serves all",
        DEQ_04,
        {"respond": changes.flattened},
        TIRED,
    ),
    *paths_break_promises(
        "dequantize-many-rows",
        "of 32 rows and more in half precision",
        in_half(of_many_rows("scales"), "scales"),
        DEQ_06,
        DEQ_07,
        DEQ_08,
        ("packed", "scales", "biases"),
    ),
    *paths_misread(
        "dequantize-many-rows",
        "of 32 rows and more in half precision",
        DEQ_05,
        in_half(of_many_rows("scales"), "scales"),
        dict.fromkeys(("packed", "scales", "biases")),
    ),
    *(
        Fault(
            f"dequantize-{part}-strides",
            f"{part} is read as if it were contiguous",
            DEQ_05,
            ignores_strides(part),
            "PROPERTIES X1",
        )
        for part in ("packed", "scales", "biases")
    ),
    *(
        Fault(
            f"dequantize-single-row-{part}-strides",
            f"the path of a single row reads {part} as if they were contiguous",
            DEQ_05,
            only_where(of_one_half_row("scales"), ignores_strides(part)),
            TIRED,
        )
        for part in ("packed", "scales")
    ),
    Fault(
        "dequantize-single-row-promotes",
        "a single row comes back in float32",
        DEQ_06,
        only_where(lambda a: len(a.packed) == 1, promotes()),
        TIRED,
    ),
    Fault(
        "dequantize-changes-scales-of-single-row",
        "the scales of a single row are scaled in place",
        DEQ_07,
        only_where(lambda a: len(a.packed) == 1, mutates("scales")),
        TIRED,
    ),
    Fault(
        "dequantize-remembers-scales-of-single-row",
        "the scales of a single row, cached by shape, serve other rows",
        DEQ_08,
        only_where(lambda a: len(a.packed) == 1, remembers("scales")),
        TIRED,
    ),
    Fault(
        "dequantize-remembers-grid",
        "a kernel cached by shape has the bits and the group size of the first call",
        DEQ_08,
        remembers("bits", "group_size"),
        "PROPERTIES X7",
    ),
    Fault("dequantize-promotes", "the result comes back in float32", DEQ_06, promotes(), "PROPERTIES X4"),
    Fault(
        "dequantize-flattens",
        "the result is a list of groups",
        DEQ_06,
        {"respond": lambda self, a: Operation.respond(self, a).reshape(-1, a.group_size)},
        f"{MLX_LM}/commit/c592f76f",
    ),
    Fault("dequantize-changes-scales", "the scales are scaled in place", DEQ_07, mutates("scales"), "PROPERTIES X6"),
    Fault(
        "dequantize-remembers-codes",
        "codes cached by shape serve other words",
        DEQ_08,
        remembers("packed"),
        "PROPERTIES X7",
    ),
    Fault("dequantize-drifts", "the output buffer of an earlier call is added to", DEQ_08, drifts(), "PROPERTIES X11"),
    Fault(
        "dequantize-any-parts",
        "parts that do not belong together are read on or cut short",
        DEQ_09,
        {**changes.guarded(*changes.ALL_CHECKS), "respond": changes.shapes_taken_on_trust},
        "PROPERTIES X9",
    ),
    Fault(
        "dequantize-by-nothing",
        "a group size or number of bits of 0 and below stands for one that is offered",
        DEQ_12,
        changes.READ_BY_NOTHING,
        f"{MLX}/issues/550 (sizes unchecked)",
    ),
    Fault(
        "dequantize-any-words",
        "a packed of another dtype is converted",
        DEQ_09,
        {**changes.guarded("guard_words"), "respond": changes.shapes_taken_on_trust},
        TIRED,
    ),
    Fault(
        "dequantize-no-rows-crash",
        "no rows end in an error of shapes",
        DEQ_11,
        {"respond": refuses_empty("packed")},
        f"{MLX}/issues/2164",
    ),
    Fault(
        "dequantize-broadcast-biases",
        "biases of one group stand for all groups",
        DEQ_09,
        changes.BIASES_BROADCAST,
        "PROPERTIES X9",
    ),
    *paths_lack_a_feature(
        "dequantize-common-matrices",
        "of a matrix of 64 rows and more, in 4 bits and groups of 64,",
        DEQ_10,
        changes.table_as_most_are_packed,
        TIRED,
        argument="scales",
    ),
    Fault(
        "dequantize-rows-in-16-bits",
        "rows past 32768 are not written",
        DEQ_10,
        leaves_unwritten(changes.rows_of_result_in_16_bits),
        f"{MLX}/commit/c9e8ee6b6",
    ),
    Fault(
        "dequantize-whole-blocks-of-rows",
        "rows past the last whole block of 8 are not written",
        DEQ_10,
        leaves_unwritten(changes.whole_rows_of_8),
        "PROPERTIES X10",
    ),
)


def _unwritten_on_common_paths(prefix: str, requirement: Requirement) -> list[Fault]:
    """One for each path that kernels have for most models."""
    return [
        fault
        for told, sizes in AS_MOST_ARE.items()
        for fault in paths_lack_a_feature(
            f"{prefix}-common-{told}",
            f"of {told}, in 4 bits and groups of 64,",
            requirement,
            changes.as_most_models_are_packed(*sizes),
            TIRED,
        )
    ]


def _faults_of_products(
    name: str, strided: Requirement, dtype: Requirement, unchanged: Requirement, alone: Requirement
) -> tuple[Fault, ...]:
    """What every product can do wrong."""
    return (
        *(
            Fault(
                f"{name}-{part}-strides",
                f"{part} is read as if it were contiguous",
                strided,
                ignores_strides(part),
                "PROPERTIES X1",
            )
            for part in ("x", "packed", "scales", "biases")
        ),
        *paths_break_promises(
            f"{name}-many-rows",
            "of 32 rows and more in half precision",
            in_half(of_many_rows()),
            dtype,
            unchanged,
            alone,
            ("x", "packed", "scales", "biases"),
        ),
        *paths_misread(
            f"{name}-many-rows",
            "of 32 rows and more in half precision",
            strided,
            in_half(of_many_rows()),
            dict.fromkeys(("x", "packed", "scales", "biases")),
        ),
        Fault(f"{name}-promotes", "the result comes back in float32", dtype, promotes(), f"{MLX}-swift/issues/420"),
        Fault(f"{name}-changes-x", "x is scaled in place", unchanged, mutates("x"), "PROPERTIES X6"),
        Fault(f"{name}-changes-biases", "biases are scaled in place", unchanged, mutates("biases"), "PROPERTIES X6"),
        Fault(
            f"{name}-remembers-codes",
            "restored weights cached by shape serve other layers",
            alone,
            remembers("packed"),
            "PROPERTIES X7",
        ),
        Fault(f"{name}-drifts", "the output buffer of an earlier call is added to", alone, drifts(), "PROPERTIES X11"),
    )


_MATMUL = (
    Fault(
        "qmm-x-beside-room",
        "sequences that are the beginnings of longer ones are read as if they lay side by side",
        QMM_09,
        only_where(beside_room("x"), ignores_strides("x")),
        "https://github.com/huggingface/transformers/issues/47331",
    ),
    *(
        Fault(
            f"quantized-matmul-single-row-{part}-strides",
            f"the path of a single row reads {part} as if it were contiguous",
            QMM_09,
            only_where(of_one_half_row("x"), ignores_strides(part)),
            TIRED,
        )
        for part in ("x", "packed", "scales")
    ),
    Fault(
        "quantized-matmul-single-row-promotes",
        "the product of a single row comes back in float32",
        QMM_10,
        only_where(of_one_half_row("x"), promotes()),
        TIRED,
    ),
    Fault(
        "quantized-matmul-promotes-with-nan",
        "where a weight is NaN or infinite the product comes back in float32",
        QMM_10,
        only_where(lambda a: not np.isfinite(f64(a.scales) + f64(a.biases)).all(), promotes()),
        TIRED,
    ),
    Fault(
        "quantized-matmul-changes-single-row",
        "a single row is scaled in place",
        QMM_11,
        only_where(of_one_half_row("x"), mutates("x")),
        TIRED,
    ),
    Fault(
        "quantized-matmul-remembers-scales-of-single-rows",
        "the path of a single row keeps the scales, widened once, by their shape",
        QMM_12,
        only_where(of_one_half_row("x"), remembers("scales")),
        TIRED,
    ),
    Fault(
        "quantized-matmul-bias-forgotten",
        "the biases of the groups are left out",
        QMM_01,
        {"affine": changes.without_bias},
        COURSE,
    ),
    Fault(
        "quantized-matmul-vector-without-bias",
        "for a single row the biases past the first group are left out",
        QMM_01,
        {"respond": changes.vector_path_without_bias},
        TIRED,
    ),
    Fault(
        "quantized-matmul-bias-subtracted", "biases are subtracted", QMM_01, {"affine": changes.bias_subtracted}, TIRED
    ),
    Fault(
        "quantized-matmul-transpose-guessed",
        "square weights are always transposed",
        QMM_02,
        {"transposed": changes.untransposed_square},
        TIRED,
    ),
    Fault(
        "quantized-matmul-read-as-columns",
        "the weights are read in the other order instead of transposed",
        QMM_02,
        changes.with_product(changes.read_as_columns),
        TIRED,
    ),
    Fault(
        "quantized-matmul-in-dtype",
        "sums are accumulated in the input's dtype",
        QMM_03,
        changes.with_product(changes.in_dtype),
        "MLX CPU quantized_matmul in bfloat16",
    ),
    Fault(
        "quantized-matmul-partial-sums-in-dtype",
        "where there are many rows, the sums of every 256 features are stored in the input's dtype",
        QMM_03,
        changes.with_product(changes.partial_sums),
        "kernels that split the sum of a matrix product; PROPERTIES X5",
    ),
    Fault(
        "quantized-matmul-weights-in-bfloat16",
        "restored weights pass through bfloat16",
        QMM_03,
        changes.with_product(changes.weights_in_bfloat16),
        "PROPERTIES QZ4",
    ),
    _past_float16("quantized-matmul", QMM_03),
    Fault(
        "quantized-matmul-activations-in-8-bits",
        "x is rounded to 8-bit integers",
        QMM_03,
        changes.with_product(changes.activations_in_8_bits),
        "llama.cpp rounds activations to int8",
    ),
    Fault(
        "quantized-matmul-neighbours-in-fixed-point",
        "eight neighbours of x share an exponent, and are rounded to 23 bits beside the largest",
        QMM_03,
        changes.with_product(changes.neighbours_in_fixed_point),
        "PROPERTIES, judging",
    ),
    Fault(
        "quantized-matmul-next-group",
        "each group takes the scale of the next",
        QMM_04,
        changes.of_group(changes.next_group),
        TIRED,
    ),
    Fault(
        "quantized-matmul-groups-of-64",
        "groups are taken for 64 wide",
        QMM_04,
        changes.of_group(changes.groups_of_64),
        TIRED,
    ),
    Fault(
        "quantized-matmul-groups-down-the-columns",
        "scales are read as if transposed",
        QMM_04,
        {"of_group": changes.groups_down_the_columns},
        TIRED,
    ),
    Fault(
        "quantized-matmul-high-bits-first",
        "the first code of a word is read from its highest bits",
        QMM_04,
        {"codes": changes.reversed_places},
        SPLIT_NIBBLES,
    ),
    Fault(
        "quantized-matmul-high-nibbles-first",
        "of each byte the first code is read from the highest bits",
        QMM_04,
        {"codes": changes.high_nibbles_first},
        SPLIT_NIBBLES,
    ),
    Fault(
        "quantized-matmul-nibbles-always",
        "codes of 8 bits lose their upper half to a mask of 4 bits",
        QMM_04,
        {"codes": changes.nibbles_always},
        TIRED,
    ),
    Fault(
        "quantized-matmul-batch-stride",
        "batches are written one row apart instead of M rows apart",
        QMM_05,
        {"respond": changes.batch_stride_without_rows},
        f"{MLX}/commit/c7b0300af",
    ),
    _batches_swapped("quantized-matmul", QMM_05),
    Fault(
        "quantized-matmul-leading-dims-swapped",
        "the first two leading dims are exchanged when rows are folded back",
        QMM_05,
        changes.with_product(changes.leading_dims_swapped),
        TIRED,
    ),
    Fault(
        "quantized-matmul-batches-modulo-eight", "batch rows are counted modulo 8", QMM_05, wraps_batches("x"), TIRED
    ),
    Fault(
        "quantized-matmul-first-row-for-all", "the first batch row serves all", QMM_05, first_row_for_all("x"), TIRED
    ),
    Fault(
        "quantized-matmul-wide-batches",
        "in a batch, features past 4224 of a product that is not transposed are not written",
        QMM_05,
        leaves_unwritten(lambda out: out[..., :4224] if out.ndim > 2 else out),
        "PROPERTIES X2",
    ),
    Fault(
        "quantized-matmul-half-a-step-unread",
        "where features fill whole steps of 1024 and half a one, that half is left out",
        QMM_06,
        changes.half_a_step_unread(1024),
        f"the kind of {MLX}/commit/aca758463",
        forms=tuple(changes.half_a_step_unread(step) for step in STEPS if step != 1024),
    ),
    Fault(
        "quantized-matmul-one-tile-of-a-split",
        "a product that is split over 4096 features and more has its first 32 outputs alone",
        QMM_06,
        changes.with_product(changes.one_tile_of_a_split),
        TIRED,
    ),
    Fault(
        "quantized-matmul-whole-tiles-turned",
        "where rows and outputs fill tiles of 32, the outputs of each tile are in reverse order",
        QMM_06,
        changes.with_product(changes.whole_tiles_turned),
        TIRED,
    ),
    Fault(
        "quantized-matmul-not-transposed-one-tile",
        "where a product that is not transposed is large each way, features past the first 64 are not written",
        QMM_06,
        only_where(changes.many_each_way_not_transposed, leaves_unwritten(lambda out: out[..., :64])),
        f"{MLX}/issues/4201",
    ),
    *_unwritten_on_common_paths("quantized-matmul", QMM_06),
    *paths_lack_a_feature(
        "quantized-matmul-long-prompts",
        "of 128 rows and more, of 128 outputs and of 512 features and more,",
        QMM_06,
        changes.of_long_prompts,
        TIRED,
    ),
    Fault(
        "quantized-matmul-not-transposed-floor-64",
        "where a single row of a product that is not transposed is split, outputs past the last whole tile of 64 are zeros",
        QMM_06,
        only_where(
            changes.single_row_split_not_transposed, leaves_unwritten(lambda out: out[..., : out.shape[-1] // 64 * 64])
        ),
        f"{MLX}/issues/4250",
    ),
    Fault(
        "quantized-matmul-rows-of-a-split",
        "few rows of a product that is not transposed, and split, are read as if each began after a part of the one before",
        QMM_06,
        {"respond": changes.rows_of_a_part},
        f"{MLX}/commit/241f1bf7f",
    ),
    Fault(
        "quantized-matmul-not-transposed-groups-of-64",
        "where a product that is not transposed is large each way, groups are taken for 64 wide",
        QMM_06,
        changes.of_group(changes.groups_of_64_not_transposed),
        f"{MLX}/pull/4202",
    ),
    Fault(
        "quantized-matmul-outputs-floor-32",
        "outputs past the last whole tile of 32 are not written",
        QMM_06,
        leaves_unwritten(changes.whole_blocks_of_many(32)),
        f"{MLX}/issues/665",
    ),
    Fault(
        "quantized-matmul-outputs-floor-64",
        "outputs past the last whole tile of 64 are not written",
        QMM_06,
        leaves_unwritten(whole_blocks(64)),
        f"{MLX}/issues/4250",
    ),
    Fault(
        "quantized-matmul-output-past-tiles-of-48",
        "an output that is one more than tiles of 48 is not written",
        QMM_06,
        last_past_tiles_unwritten(48, 1),
        TIRED,
    ),
    Fault(
        "quantized-matmul-small-outputs",
        "fewer than 8 outputs are not written",
        QMM_06,
        leaves_unwritten(lambda out: out if out.shape[-1] >= 8 else out[..., :0]),
        f"{MLX}/commit/90e38f7b9",
    ),
    Fault(
        "quantized-matmul-rows-bounded-by-outputs",
        "rows past the number of outputs are not written",
        QMM_06,
        leaves_unwritten(changes.rows_bounded_by_outputs),
        f"{MLX}/commit/5f9ba3019",
    ),
    Fault(
        "quantized-matmul-feature-tail",
        "past the last whole block of 512 features some are read twice",
        QMM_06,
        changes.with_product(changes.features_past_512),
        f"{MLX}/commit/aca758463",
    ),
    Fault(
        "quantized-matmul-last-group-dropped",
        "features past the last whole block of 256 are not read",
        QMM_06,
        changes.with_product(changes.last_group_dropped),
        TIRED,
    ),
    Fault(
        "quantized-matmul-splits-overlap",
        "splits of the sum smaller than a tile read into the next",
        QMM_06,
        changes.with_product(changes.splits_overlap),
        f"{MLX}/commit/6c0ea7fb0",
    ),
    Fault(
        "quantized-matmul-matrix-path-of-64",
        "from 32 rows on groups are taken for 64 wide",
        QMM_06,
        {"of_group": changes.matrix_path_of_64},
        "PROPERTIES X2",
    ),
    Fault(
        "quantized-matmul-short-columns",
        "outputs past 32768 are not written: their index is a 16-bit number",
        QMM_07,
        leaves_unwritten(changes.columns_in_16_bits),
        f"{MLX}/commit/c9e8ee6b6",
    ),
    Fault(
        "quantized-matmul-wide-rows-of-16",
        "of more than 2048 outputs a tile of 16 rows alone is written",
        QMM_07,
        leaves_unwritten(
            lambda out: out if out.shape[-1] <= 2048 else out.reshape(-1, out.shape[-1])[:16],
        ),
        "PROPERTIES X2",
    ),
    Fault(
        "quantized-matmul-prefix-of-rows-lost",
        "of more than 32768 rows the first ones are lost",
        QMM_07,
        {"respond": changes.prefix_of_rows_lost},
        PREFIX_LOST,
    ),
    Fault(
        "quantized-matmul-nan-between-outputs",
        "a NaN in one row of weights reaches the next output",
        QMM_08,
        changes.with_product(changes.reads_all_rows),
        "https://github.com/Pushkinist/rMLX/issues/449",
    ),
    Fault(
        "quantized-matmul-float32-scales-bits",
        "what float32 scales and biases hold is read as numbers of the dtype of x",
        QMM_16,
        read_as_of("x", "scales", "biases"),
        "kernels of one dtype for all their buffers",
    ),
    Fault(
        "quantized-matmul-nan-between-rows",
        "a NaN in one row of x reaches the next",
        QMM_08,
        changes.with_product(changes.rows_of_x_mixed),
        "PROPERTIES, judging",
    ),
    Fault(
        "quantized-matmul-scales-of-the-tile",
        "a row in each tile of 64 takes the scales of the first",
        QMM_08,
        {"of_group": changes.scaled_by_outputs},
        "PROPERTIES QZ7",
    ),
    *_strides_of_prompts("quantized-matmul", QMM_09),
    *_faults_of_products("quantized-matmul", QMM_09, QMM_10, QMM_11, QMM_12),
    Fault(
        "quantized-matmul-vector-becomes-matrix",
        "the result of a single row keeps a leading axis of 1",
        QMM_10,
        {"respond": changes.vector_becomes_matrix},
        "PROPERTIES X4",
    ),
    Fault(
        "quantized-matmul-any-parts",
        "what does not belong together is read on or cut short",
        QMM_13,
        {**changes.guarded(*changes.ALL_CHECKS), "respond": changes.shapes_taken_on_trust},
        "PROPERTIES X9",
    ),
    Fault(
        "quantized-matmul-by-nothing",
        "a group size or number of bits of 0 and below stands for one that is offered",
        QMM_17,
        changes.READ_BY_NOTHING,
        f"{MLX}/issues/550 (sizes unchecked)",
    ),
    Fault(
        "quantized-matmul-broadcast-biases",
        "biases of one group stand for all groups",
        QMM_13,
        changes.BIASES_BROADCAST,
        "PROPERTIES X9",
    ),
    Fault(
        "quantized-matmul-any-x",
        "an x of another size is read on or cut short",
        QMM_13,
        {**changes.guarded("guard_rest"), "respond": changes.shapes_taken_on_trust},
        TIRED,
    ),
    Fault(
        "quantized-matmul-stacked-scales-strides",
        "the scales of stacked parts are read as if they were contiguous",
        QMM_14,
        only_where(lambda a: a.scales.ndim > 2, ignores_strides("scales")),
        "https://github.com/uxlfoundation/oneDNN/issues/5908",
    ),
    Fault(
        "quantized-matmul-shared-heads",
        "a broadcast axis of the parts is stepped through as if it were there",
        QMM_14,
        {"respond": changes.first_heads},
        f"{MLX}/issues/3480",
    ),
    Fault(
        "quantized-matmul-first-of-many",
        "where parts have a leading dim of 1, the first x of several stands for all",
        QMM_14,
        changes.with_product(changes.first_of_many),
        TIRED,
    ),
    Fault(
        "quantized-matmul-stacked-in-one-tile",
        "of stacked parts, rows and outputs past the 32nd of each product are not written",
        QMM_14,
        changes.with_product(changes.stacked_in_one_tile),
        TIRED,
    ),
    Fault(
        "quantized-matmul-row-of-nothing",
        "no rows give one row of zeros",
        QMM_15,
        {"respond": changes.one_row_of_nothing},
        f"{MLX}/issues/2164",
    ),
)


_LAYER = (
    Fault(
        "quantized-linear-input-scaled",
        "x is divided by sqrt(I), as if the weight were not trained yet",
        QLIN_01,
        changes.with_product(lambda x, weights, dtype: changes.plain(x, weights) / np.sqrt(max(x.shape[-1], 1))),
        TIRED,
    ),
    Fault(
        "quantized-linear-default-groups",
        "groups are taken for 64 wide",
        QLIN_01,
        changes.of_group(changes.groups_of_64),
        TIRED,
    ),
    Fault(
        "quantized-linear-bias-forgotten",
        "the bias is accepted and not added",
        QLIN_02,
        {"add": lambda self, product, bias: product},
        TIRED,
    ),
    *_unwritten_on_common_paths("quantized-linear", QLIN_04),
    *paths_lack_a_feature(
        "quantized-linear-long-prompts",
        "of 128 rows and more, of 128 outputs and of 512 features and more,",
        QLIN_04,
        changes.of_long_prompts,
        TIRED,
    ),
    _batches_swapped("quantized-linear", QLIN_04),
    Fault(
        "quantized-linear-nan-spreads",
        "a NaN in one row of x reaches the others",
        QLIN_04,
        changes.with_product(changes.nan_in_every_row),
        TIRED,
    ),
    _past_float16("quantized-linear", QLIN_03),
    Fault(
        "quantized-linear-one-tile-of-rows",
        "rows past the first tile of 32 are not written",
        QLIN_04,
        changes.first_rows(32),
        TIRED,
    ),
    Fault(
        "quantized-linear-bfloat16-through-float16",
        "bfloat16 passes through float16 on its way into the product",
        QLIN_01,
        bfloat16_through_float16("x"),
        TIRED,
    ),
    Fault(
        "quantized-linear-bias-per-split",
        "each of two partial sums adds the bias",
        QLIN_02,
        {"add": lambda self, product, bias: product + 2 * bias},
        TIRED,
    ),
    Fault(
        "quantized-linear-bias-first-row",
        "the bias is added to the first row alone",
        QLIN_02,
        {"add": changes.added_to_first_row},
        TIRED,
    ),
    Fault(
        "quantized-linear-in-dtype",
        "sums are accumulated in the input's dtype",
        QLIN_03,
        changes.with_product(changes.in_dtype),
        TIRED,
    ),
    Fault(
        "quantized-linear-batch-stride",
        "batches are written one row apart instead of M rows apart",
        QLIN_04,
        {"respond": changes.batch_stride_without_rows},
        f"{MLX}/commit/c7b0300af",
    ),
    *_strides_of_prompts("quantized-linear", QLIN_05),
    *_faults_of_products("quantized-linear", QLIN_05, QLIN_06, QLIN_07, QLIN_08),
    Fault(
        "quantized-linear-remembers-bias",
        "the bias of the first layer of these shapes, widened once, is used for all",
        QLIN_08,
        remembers("bias"),
        TIRED,
    ),
    Fault(
        "quantized-linear-bias-strides",
        "the bias is read as if it were contiguous",
        QLIN_05,
        ignores_strides("bias"),
        TIRED,
    ),
    Fault(
        "quantized-linear-float32-scales-bits",
        "what float32 scales and biases hold is read as numbers of the dtype of x",
        QLIN_12,
        read_as_of("x", "scales", "biases"),
        "kernels of one dtype for all their buffers",
    ),
    Fault(
        "quantized-linear-float32-bias-bits",
        "what a float32 bias holds is read as numbers of the dtype of x",
        QLIN_12,
        read_as_of("x", "bias"),
        "kernels of one dtype for all their buffers",
    ),
    Fault(
        "quantized-linear-nan-between-outputs",
        "a NaN in one row of weights reaches the next output",
        QLIN_11,
        changes.with_product(changes.reads_all_rows),
        "https://github.com/Pushkinist/rMLX/issues/449",
    ),
    Fault(
        "quantized-linear-row-of-nothing",
        "no rows give one row of zeros",
        QLIN_10,
        {"respond": changes.one_row_of_nothing},
        f"{MLX}/issues/2164",
    ),
    Fault(
        "quantized-linear-any-parts",
        "what does not belong together is read on or cut short",
        QLIN_09,
        {**changes.guarded("guard_words", "guard_parts"), "respond": changes.shapes_taken_on_trust},
        "PROPERTIES X9",
    ),
    Fault(
        "quantized-linear-any-grid",
        "a group size or number of bits that is not offered is taken for the next one",
        QLIN_09,
        {**changes.guarded("guard_grid", "guard_words", "guard_parts"), "respond": changes.shapes_taken_on_trust},
        "PROPERTIES X9",
    ),
    Fault(
        "quantized-linear-by-nothing",
        "a group size or number of bits of 0 and below stands for one that is offered",
        QLIN_13,
        changes.READ_BY_NOTHING,
        f"{MLX}/issues/550 (sizes unchecked)",
    ),
    Fault(
        "quantized-linear-broadcast-biases",
        "biases of one group stand for all groups",
        QLIN_09,
        changes.BIASES_BROADCAST,
        "PROPERTIES X9",
    ),
    Fault(
        "quantized-linear-any-x",
        "an x of another size is read on or cut short",
        QLIN_09,
        {
            **changes.guarded("guard_rest"),
            **changes.responding(x=lambda self, a: changes.fitted(a), bias=lambda self, a: changes.bias_fitted(a)),
        },
        TIRED,
    ),
    Fault(
        "quantized-linear-any-bias",
        "a bias of another length is read on or cut short",
        QLIN_09,
        {**changes.guarded("guard_bias"), **changes.responding(bias=lambda self, a: changes.bias_fitted(a))},
        TIRED,
    ),
)


_EMBEDDING = (
    _past_float16("quantized-embedding", QEMB_01),
    _batches_swapped("quantized-embedding", QEMB_03),
    Fault(
        "quantized-embedding-ids-cut-to-32-bits",
        "ids of 64 bits are cut to 32 before they are checked",
        QEMB_08,
        cut_to_32_bits("tokens"),
        TIRED,
    ),
    Fault(
        "quantized-embedding-scaled",
        "rows are multiplied by sqrt(dims)",
        QEMB_01,
        {"affine": lambda self, codes, scale, bias, dtype: (codes * scale + bias) * np.sqrt(codes.shape[-1])},
        f"{MLX_LM}/commit/c27c94a0",
    ),
    Fault(
        "quantized-embedding-1024-features",
        "features of a row past the 1024th are zeros",
        QEMB_01,
        {"weights": changes.first_1024},
        "PROPERTIES X10",
    ),
    Fault(
        "quantized-embedding-rounds-twice",
        "code times scale is rounded before the bias is added",
        QEMB_01,
        {"affine": changes.rounded_twice},
        f"{MLX}/commit/56e026d8a",
    ),
    Fault(
        "quantized-embedding-first-scales",
        "all tokens take the scales of the first",
        QEMB_01,
        {
            "of_group": lambda self, part, a: np.repeat(
                np.broadcast_to(part[(0,) * (part.ndim - 1)] if part.size else part, part.shape), a.group_size, axis=-1
            )
        },
        TIRED,
    ),
    Fault(
        "quantized-embedding-uint8-ids",
        "ids are kept in 8 bits",
        QEMB_02,
        {"rows": lambda self, tokens, a: tokens & 255},
        "PROPERTIES PC3",
    ),
    Fault(
        "quantized-embedding-uint16-ids",
        "ids are kept in 16 bits",
        QEMB_02,
        {"rows": lambda self, tokens, a: tokens & 65535},
        "PROPERTIES X8",
    ),
    Fault(
        "quantized-embedding-last-row-lost",
        "the last id reads the row before it",
        QEMB_02,
        {"rows": lambda self, tokens, a: np.minimum(tokens, max(len(a.packed) - 2, 0))},
        TIRED,
    ),
    *paths_lack_a_feature(
        "quantized-lookup-common-tables",
        "of a table of 64 rows and more, in 4 bits and groups of 64,",
        QEMB_03,
        changes.table_as_most_are_packed,
        TIRED,
        argument="scales",
    ),
    Fault(
        "quantized-embedding-tokens-of-one-group",
        "tokens past the 1024th, which one group of threads does not reach, give nothing",
        QEMB_03,
        changes.first_rows(1024),
        TIRED,
    ),
    Fault(
        "quantized-embedding-transposed-tokens",
        "positions and sequences are exchanged",
        QEMB_03,
        {"rows": lambda self, tokens, a: tokens.T.reshape(tokens.shape)},
        TIRED,
    ),
    *(
        Fault(
            f"quantized-embedding-{part}-strides",
            f"{part} is read as if it were contiguous",
            QEMB_04,
            ignores_strides(part),
            "PROPERTIES X1",
        )
        for part in ("tokens", "packed", "scales", "biases")
    ),
    Fault(
        "quantized-embedding-single-token-strides",
        "the path of a single token reads the table as if it were contiguous",
        QEMB_04,
        only_where(lambda a: a.tokens.size == 1 and a.scales.dtype.name == "bfloat16", ignores_strides("packed")),
        TIRED,
    ),
    Fault(
        "quantized-embedding-single-token-promotes",
        "the row of a single token comes back in float32",
        QEMB_05,
        only_where(lambda a: a.tokens.size == 1 and a.scales.dtype.name == "bfloat16", promotes()),
        TIRED,
    ),
    Fault("quantized-embedding-promotes", "rows come back in float32", QEMB_05, promotes(), "PROPERTIES X4"),
    Fault(
        "quantized-embedding-changes-tokens", "the tokens are overwritten", QEMB_06, mutates("tokens"), "PROPERTIES X6"
    ),
    Fault(
        "quantized-embedding-remembers-table",
        "the table of the first layer serves all of its shape",
        QEMB_07,
        remembers("packed"),
        "PROPERTIES X7",
    ),
    Fault(
        "quantized-embedding-remembers-tokens",
        "a result cached by shape serves other tokens",
        QEMB_07,
        remembers("tokens"),
        "PROPERTIES X7",
    ),
    Fault(
        "quantized-embedding-ids-wrapped",
        "ids outside the vocabulary start again",
        QEMB_08,
        {
            **changes.guarded("guard_rest"),
            **changes.responding(tokens=lambda self, a: a.tokens.astype(np.int64) % len(a.packed)),
        },
        TIRED,
    ),
    Fault(
        "quantized-embedding-row-of-nothing",
        "no tokens give one row",
        QEMB_17,
        {
            "respond": lambda self, a: Operation.respond(
                self, a if a.tokens.size else changes.having(a, tokens=np.zeros(1, np.int32))
            )
        },
        TIRED,
    ),
    Fault(
        "quantized-head-of-its-own",
        "the head is a matrix of its own",
        QEMB_09,
        {
            "weights": lambda self, a: np.random.default_rng(0).normal(
                size=(len(a.packed), a.packed.shape[1] * 32 // a.bits)
            )
        },
        f"{MLX_LM}/commit/e92138cb",
    ),
    Fault(
        "quantized-head-scaled",
        "logits are multiplied by dims^-0.5",
        QEMB_09,
        changes.with_product(lambda x, weights, dtype: changes.plain(x, weights) * x.shape[-1] ** -0.5),
        f"{MLX_LM}/commit/c27c94a0",
    ),
    Fault(
        "quantized-head-in-dtype",
        "logits are accumulated in the input's dtype",
        QEMB_10,
        changes.with_product(changes.in_dtype),
        TIRED,
    ),
    *_unwritten_on_common_paths("quantized-head", QEMB_11),
    *paths_lack_a_feature(
        "quantized-head-long-prompts",
        "of 128 rows and more, of 128 outputs and of 512 features and more,",
        QEMB_11,
        changes.of_long_prompts,
        TIRED,
    ),
    _batches_swapped("quantized-head", QEMB_11),
    Fault(
        "quantized-head-nan-spreads",
        "a NaN in one row of x reaches the logits of the others",
        QEMB_11,
        changes.with_product(changes.nan_in_every_row),
        TIRED,
    ),
    _past_float16("quantized-head", QEMB_10),
    Fault(
        "quantized-head-batch-stride",
        "batches are written one row apart instead of M rows apart",
        QEMB_11,
        {"respond": changes.batch_stride_without_rows},
        f"{MLX}/commit/c7b0300af",
    ),
    Fault(
        "quantized-head-one-tile-of-rows",
        "rows past the first tile of 32 get no logits",
        QEMB_11,
        changes.first_rows(32),
        TIRED,
    ),
    Fault(
        "quantized-head-short-columns",
        "logits past 32768 are not written",
        QEMB_11,
        leaves_unwritten(changes.columns_in_16_bits),
        f"{MLX}/commit/c9e8ee6b6",
    ),
    Fault(
        "quantized-head-single-row-strides",
        "the path of a single row reads x as if it were contiguous",
        QEMB_12,
        only_where(of_one_half_row("x"), ignores_strides("x")),
        TIRED,
    ),
    Fault(
        "quantized-head-single-row-promotes",
        "logits of a single row come back in float32",
        QEMB_13,
        only_where(of_one_half_row("x"), promotes()),
        TIRED,
    ),
    *_strides_of_prompts("quantized-head", QEMB_12),
    *_faults_of_products("quantized-head", QEMB_12, QEMB_13, QEMB_14, QEMB_15),
    Fault(
        "quantized-head-float32-scales-bits",
        "what float32 scales and biases hold is read as numbers of the dtype of x",
        QEMB_20,
        read_as_of("x", "scales", "biases"),
        "kernels of one dtype for all their buffers",
    ),
    Fault(
        "quantized-head-nan-between-logits",
        "a NaN in one row of the table reaches the next logit",
        QEMB_19,
        changes.with_product(changes.reads_all_rows),
        "https://github.com/Pushkinist/rMLX/issues/449",
    ),
    Fault(
        "quantized-head-row-of-nothing",
        "no rows give one row of zeros",
        QEMB_18,
        {"respond": changes.one_row_of_nothing},
        f"{MLX}/issues/2164",
    ),
    Fault(
        "quantized-head-any-parts",
        "what does not belong together is read on or cut short",
        QEMB_16,
        {**changes.guarded("guard_words", "guard_parts"), "respond": changes.shapes_taken_on_trust},
        "PROPERTIES X9",
    ),
    Fault(
        "quantized-head-any-grid",
        "a group size or number of bits that is not offered is taken for the next one",
        QEMB_16,
        {**changes.guarded("guard_grid", "guard_words", "guard_parts"), "respond": changes.shapes_taken_on_trust},
        "PROPERTIES X9",
    ),
    Fault(
        "quantized-head-by-nothing",
        "a group size or number of bits of 0 and below stands for one that is offered",
        QEMB_21,
        changes.READ_BY_NOTHING,
        f"{MLX}/issues/550 (sizes unchecked)",
    ),
    Fault(
        "quantized-head-broadcast-biases",
        "biases of one group stand for all groups",
        QEMB_16,
        changes.BIASES_BROADCAST,
        "PROPERTIES X9",
    ),
    Fault(
        "quantized-head-any-x",
        "an x of another size is read on or cut short",
        QEMB_16,
        {**changes.guarded("guard_rest"), **changes.responding(x=lambda self, a: changes.fitted(a))},
        TIRED,
    ),
)

FAULTS: tuple[Fault, ...] = (*_QUANTIZE, *_DEQUANTIZE, *_MATMUL, *_LAYER, *_EMBEDDING)


VARIANTS: tuple[Variant, ...] = (
    Variant(
        "quantize-scales-in-float32-arithmetic",
        "range, scale and codes are computed in float32",
        "quantize",
        {
            "grid": lambda self, low, high, levels, dtype: (
                rounded(rounded(rounded(high - low, "float32") / levels, "float32"), dtype),
                rounded(low, dtype),
            ),
        },
    ),
    Variant(
        "quantize-from-the-top",
        "the grid runs from the largest weight down: scales are negative",
        "quantize",
        {
            "grid": lambda self, low, high, levels, dtype: (
                rounded((low - high) / levels, dtype),
                rounded(high, dtype),
            )
        },
    ),
    Variant(
        "quantize-zero-on-a-code",
        "MLX's grid: its end of larger magnitude is exact and 0 is a code, a weight at the other end may lie outside",
        "quantize",
        {"grid": changes.edge_on_the_grid(np.rint)},
        unmet=("QUANT-03",),
    ),
    Variant(
        "dequantize-in-float32",
        "product and sum are each rounded to float32",
        "dequantize",
        {
            "affine": lambda self, codes, scale, bias, dtype: rounded(
                rounded(codes * scale, "float32") + bias, "float32"
            )
        },
    ),
    Variant(
        "dequantize-in-dtype",
        "product and sum are each rounded to the dtype",
        "dequantize",
        {"affine": changes.rounded_twice},
        Precision.NATIVE,
    ),
    Variant(
        "quantized-matmul-sums-apart",
        "scale times the sum of codes, plus bias times the sum of x, group by group in float32",
        "quantized_matmul",
        {"respond": changes.sums_apart},
    ),
    Variant(
        "quantized-matmul-blocked",
        "features summed in blocks of 32, in float32",
        "quantized_matmul",
        {
            "product": lambda self, x, weights, dtype: (
                blocked_product(x, weights, 32) if weights.ndim == 2 else changes.plain(x, weights)
            )
        },
    ),
    Variant(
        "quantized-matmul-restored-in-dtype",
        "weights are restored in the dtype, as matrix kernels keep them, and summed in float32",
        "quantized_matmul",
        {
            "affine": lambda self, codes, scale, bias, dtype: rounded(rounded(codes * scale, dtype) + bias, dtype),
        },
        Precision.NATIVE,
    ),
    Variant(
        "quantized-linear-sums-apart",
        "scale times the sum of codes, plus bias times the sum of x, group by group in float32",
        "QuantizedLinear",
        {"respond": changes.sums_apart},
    ),
    Variant(
        "quantized-head-restored-in-dtype",
        "the table is restored in the dtype and summed in float32",
        "QuantizedEmbedding.as_linear",
        {
            "affine": lambda self, codes, scale, bias, dtype: rounded(rounded(codes * scale, dtype) + bias, dtype),
        },
        Precision.NATIVE,
    ),
)
