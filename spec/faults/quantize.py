"""Mistakes in quantisation."""

from __future__ import annotations

import numpy as np

from inferspec.spec.changes import quantization
from inferspec.spec.changes import quantize as changes
from inferspec.spec.contract import Fault, Operation
from inferspec.spec.faults.quantization_shared import COURSE, other_defaults
from inferspec.spec.faults.sources import BACKWARD_ROWS, BUFFER_IN_USE, FIVE_AXES, MLX, TIRED, UNALIGNED
from inferspec.spec.mistakes import (
    ignores_strides,
    in_half,
    of_many_rows,
    of_one_half_row,
    only_where,
    paths_misread,
    reads_16_bytes_at_once,
    refuses_empty,
    remembers,
    rows_in_order_of_memory,
    takes_all_that_lies_behind,
)
from inferspec.spec.quantization_sentences import (
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

FAULTS: tuple[Fault, ...] = (
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
    *other_defaults("quantize", QUANT_01),
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
        "quantize-nearly-0-is-nan",
        "a range that is below 1e-20 and not 0 gives NaN: its reciprocal is infinite",
        QUANT_04,
        {"grid": changes.reciprocal_of_tiny_ranges},
        "https://github.com/ggml-org/llama.cpp/pull/7313",
    ),
    Fault(
        "quantize-range-in-dtype",
        "the range is computed in the input's dtype and overflows",
        QUANT_04,
        {"grid": changes.range_in_dtype},
        "PROPERTIES QZ4",
    ),
    Fault(
        "quantize-nan-of-its-neighbour",
        "a group beside one that is no number has no number either: they are reduced together",
        QUANT_05,
        {"groups": changes.nan_of_neighbours},
        TIRED,
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
    Fault(
        "quantize-backward-rows",
        "rows that lie backwards are read in the order in which they lie",
        QUANT_06,
        rows_in_order_of_memory("w"),
        f"the kind of {BACKWARD_ROWS}",
    ),
    Fault(
        "quantize-whole-buffer",
        "weights that are the beginning of a longer buffer are taken with the whole of it, and refused",
        QUANT_06,
        takes_all_that_lies_behind("w"),
        BUFFER_IN_USE,
    ),
    Fault(
        "quantize-unaligned-w",
        "weights are read 16 bytes at once, from the multiple of 16 before them where they begin at none",
        QUANT_06,
        reads_16_bytes_at_once("w"),
        f"the kind of {UNALIGNED}",
    ),
    Fault(
        "quantize-five-axes-strides",
        "weights of five axes are read as if they were contiguous",
        QUANT_06,
        only_where(lambda a: a.w.ndim > 4, ignores_strides("w")),
        FIVE_AXES,
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
        {"respond": quantization.last_group_unwritten},
        TIRED,
    ),
    Fault(
        "quantize-hundreds-of-rows-lack-a-group",
        "the last scale and bias of a row are not written, of 512 rows and 4 groups and more",
        QUANT_11,
        {"respond": quantization.last_group_of_hundreds_unwritten},
        TIRED,
    ),
    Fault(
        "quantize-groups-in-a-byte",
        "groups past the 255th of a row have no codes",
        QUANT_11,
        {"codes": changes.groups_of_a_byte},
        "PROPERTIES X8",
    ),
    Fault(
        "quantize-single-rows-lose-a-code",
        "of a single row in 8 bits the last code is not used",
        QUANT_11,
        {"codes": changes.last_code_of_a_row_lost},
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
        {"respond": quantization.eight_of_a_stack},
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
