"""Mistakes in how a linear layer reads its arrays where they are views."""

from __future__ import annotations

from inferspec.spec.changes import linear as changes
from inferspec.spec.contract import Fault
from inferspec.spec.faults.sources import BACKWARD_ROWS, FAR_ROWS, MLX, TIRED
from inferspec.spec.linear import LIN_05
from inferspec.spec.mistakes import (
    beside_room,
    ignores_strides,
    in_half,
    of_many_rows,
    of_one_row,
    once_where_repeated,
    one_stride_for_batches,
    only_where,
    paths_misread,
    rows_in_order_of_memory,
    steps_of_16_bits,
)

FAULTS: tuple[Fault, ...] = (
    Fault(
        "linear-x-strides",
        "x is read as if it were contiguous",
        LIN_05,
        ignores_strides("x"),
        "PROPERTIES X1",
    ),
    Fault(
        "linear-weight-strides",
        "weight is read as if it were contiguous",
        LIN_05,
        ignores_strides("weight"),
        "PROPERTIES X1",
    ),
    Fault(
        "linear-wide-weight-strides",
        "a weight of 256 outputs and of 64 features and more is read as if it were contiguous",
        LIN_05,
        only_where(lambda a: len(a.weight) >= 256 and a.x.shape[-1] >= 64, ignores_strides("weight")),
        "PROPERTIES X1",
    ),
    Fault(
        "linear-rows-apart-in-16-bits",
        "how far rows of x lie apart is kept in 16 bits",
        LIN_05,
        steps_of_16_bits("x"),
        FAR_ROWS,
    ),
    Fault(
        "linear-many-rows-apart-in-16-bits",
        "how far more than eight rows of x lie apart is kept in 16 bits",
        LIN_05,
        steps_of_16_bits("x", lambda a: a.x[..., 0].size > 8),
        FAR_ROWS,
    ),
    Fault(
        "linear-weight-rows-apart-in-16-bits",
        "how far rows of the weight lie apart is kept in 16 bits",
        LIN_05,
        steps_of_16_bits("weight"),
        f"the kind of {FAR_ROWS}",
    ),
    Fault(
        "linear-backward-rows",
        "rows of x that lie backwards are read in the order in which they lie",
        LIN_05,
        rows_in_order_of_memory("x"),
        f"the kind of {BACKWARD_ROWS}",
    ),
    Fault(
        "linear-backward-weight-rows",
        "rows of the weight that lie backwards are read in the order in which they lie",
        LIN_05,
        rows_in_order_of_memory("weight"),
        f"the kind of {BACKWARD_ROWS}",
    ),
    Fault(
        "linear-one-stride-for-batches",
        "the leading dims of x are walked as one, with the stride of the innermost",
        LIN_05,
        one_stride_for_batches("x"),
        "https://github.com/gradium-ai/xn/pull/50",
    ),
    Fault(
        "linear-inserted-axis-walked",
        "where the axis of rows was inserted, batches are walked with its stride: the first one serves all",
        LIN_05,
        {"respond": changes.inserted_axis_walked},
        f"{MLX}/issues/4253",
    ),
    Fault(
        "linear-repeated-batch-once",
        "of a batch that is repeated without a copy the first is written alone",
        LIN_05,
        once_where_repeated("x"),
        "https://github.com/huggingface/candle/pull/3960",
    ),
    Fault("linear-bias-strides", "bias is read as if it were contiguous", LIN_05, ignores_strides("bias"), TIRED),
    *paths_misread(
        "linear-many-rows",
        "of 32 rows and more in half precision",
        LIN_05,
        in_half(of_many_rows()),
        {"x": -1, "weight": -1},
    ),
    *paths_misread(
        "linear-prompts-of-models",
        "of prompts in half precision, for 32 outputs of 256 features and more,",
        LIN_05,
        in_half(changes.of_layers(range(32, 2**16), 32, 256)),
        {"x": None, "weight": None},
    ),
    *paths_misread(
        "linear-thousands-of-features",
        "of more than 2048 features",
        LIN_05,
        lambda a: a.x.shape[-1] > 2048,
        {"x": -1, "weight": -1},
    ),
    *paths_misread(
        "linear-thousands-of-outputs",
        "for more than 2048 outputs",
        LIN_05,
        lambda a: len(a.weight) > 2048,
        {"x": None, "weight": None},
    ),
    Fault(
        "linear-thousands-of-outputs-contiguous-bias",
        "for more than 1024 outputs bias is read as if it were contiguous",
        LIN_05,
        only_where(lambda a: a.bias is not None and len(a.weight) > 1024, ignores_strides("bias")),
        TIRED,
    ),
    Fault(
        "linear-single-row-strides",
        "the path of a single row reads x as if it were contiguous",
        LIN_05,
        only_where(of_one_row("x"), ignores_strides("x")),
        TIRED,
    ),
    Fault(
        "linear-wide-single-row-strides",
        "the path of a single row of 64 features and more reads x as if it were contiguous",
        LIN_05,
        only_where(lambda a: a.x.size == a.x.shape[-1] >= 64, ignores_strides("x")),
        TIRED,
    ),
    Fault(
        "linear-token-weight-turned-round",
        "a single row in half precision reads a weight that is stored the other way round as if it were not",
        LIN_05,
        only_where(changes.of_a_weight_turned_round, ignores_strides("weight")),
        "https://github.com/pytorch/pytorch/issues/78511",
    ),
    Fault(
        "linear-bias-of-many-outputs-contiguous",
        "a bias of 32 outputs and more is read as if it were contiguous",
        LIN_05,
        only_where(lambda a: len(a.weight) >= 32 and a.bias is not None, ignores_strides("bias")),
        TIRED,
    ),
    Fault(
        "linear-x-beside-room",
        "sequences that are the beginnings of longer ones are read as if they lay side by side",
        LIN_05,
        only_where(beside_room("x"), ignores_strides("x")),
        TIRED,
    ),
)
