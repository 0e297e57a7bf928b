"""Mistakes in quantisers and in products with quantised weights, and other honest ways to compute them."""

from __future__ import annotations

import numpy as np

from inferspec.spec.changes import quantization as changes
from inferspec.spec.changes.linear import blocked_product, rounded
from inferspec.spec.contract import Fault, Operation, Variant
from inferspec.spec.faults import quantization_layers, quantization_products
from inferspec.spec.faults.quantization_shared import (
    COURSE,
    MLX_LM,
    SPLIT_NIBBLES,
    past_float16,
)
from inferspec.spec.faults.sources import MLX, TIRED
from inferspec.spec.mistakes import (
    bfloat16_through_float16,
    defaults_to,
    drifts,
    ignores_strides,
    in_half,
    leaves_unwritten,
    mutates,
    of_many_rows,
    of_one_half_row,
    only_where,
    paths_break_promises,
    paths_lack_a_feature,
    paths_misread,
    promotes,
    refuses_empty,
    remembers,
)
from inferspec.spec.numerics import Precision
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
    Fault(
        "quantize-groups-of-64-unless-said",
        "groups are of 64 where nothing is said",
        QUANT_01,
        defaults_to(group_size=64),
        f"{MLX}, whose quantize has groups of 64 by default",
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
    *paths_misread("quantize-wide", "of 1024 columns and more", QUANT_06, lambda a: a.w.shape[-1] >= 1024, {"w": None}),
    *paths_misread("quantize-stacked", "of stacked weights", QUANT_06, lambda a: a.w.ndim > 2, {"w": None}),
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
        "dequantize-4096-columns",
        "scales and biases of 4096 columns are held, and the last serves those past them",
        DEQ_10,
        changes.of_group(changes.of_4096_columns),
        TIRED,
        forms=(changes.of_group(changes.of_64_groups),),
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
    past_float16("dequantize", DEQ_03),
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
    *paths_misread(
        "dequantize-many-groups",
        "of more than 16 groups",
        DEQ_05,
        lambda a: a.scales.shape[-1] > 16,
        dict.fromkeys(("packed", "scales", "biases")),
    ),
    *paths_misread(
        "dequantize-hundreds-of-rows",
        "of more than 512 rows",
        DEQ_05,
        lambda a: a.scales.shape[-2] > 512,
        dict.fromkeys(("packed", "scales", "biases")),
    ),
    *paths_misread(
        "dequantize-stacked",
        "of stacked parts",
        DEQ_05,
        lambda a: a.scales.ndim > 2,
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


FAULTS: tuple[Fault, ...] = (*_QUANTIZE, *_DEQUANTIZE, *quantization_products.FAULTS, *quantization_layers.FAULTS)


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
