"""Mistakes in what products with packed weights read and write: views, dtypes, what is changed, and what is kept."""

from __future__ import annotations

import numpy as np

from inferspec.spec.changes import quantization_products as changes
from inferspec.spec.contract import Fault
from inferspec.spec.faults.quantization_shared import (
    faults_of_products,
    lost_in_longer_buffers,
    strides_of_models,
    strides_of_prompts,
    strides_of_thousands,
)
from inferspec.spec.faults.sources import BACKWARD_ROWS, FAR_ROWS, FIVE_AXES, TIRED
from inferspec.spec.mistakes import (
    beside_room,
    ignores_strides,
    mutates,
    of_one_half_row,
    only_where,
    promotes,
    read_as_of,
    remembers,
    remembers_by_object,
    rows_in_order_of_memory,
    steps_of_16_bits,
)
from inferspec.spec.numerics import f64
from inferspec.spec.quantization_sentences import (
    QMM_09,
    QMM_10,
    QMM_11,
    QMM_12,
    QMM_16,
)

FAULTS: tuple[Fault, ...] = (
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
        "quantized-matmul-weights-made-once",
        "packed weights are unpacked once, for as long as they are the same arrays",
        QMM_12,
        remembers_by_object("packed", "scales", "biases"),
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
        "quantized-matmul-float32-scales-bits",
        "what float32 scales and biases hold is read as numbers of the dtype of x",
        QMM_16,
        read_as_of("x", "scales", "biases"),
        "kernels of one dtype for all their buffers",
    ),
    Fault(
        "quantized-matmul-rows-apart-in-16-bits",
        "how far rows of x lie apart is kept in 16 bits",
        QMM_09,
        steps_of_16_bits("x"),
        FAR_ROWS,
    ),
    Fault(
        "quantized-matmul-five-axes-strides",
        "x of five axes is read as if it were contiguous",
        QMM_09,
        only_where(lambda a: a.x.ndim > 4, ignores_strides("x")),
        FIVE_AXES,
    ),
    *lost_in_longer_buffers("quantized-matmul", QMM_09),
    Fault(
        "quantized-matmul-backward-rows",
        "rows of x that lie backwards are read in the order in which they lie",
        QMM_09,
        rows_in_order_of_memory("x"),
        f"the kind of {BACKWARD_ROWS}",
    ),
    Fault(
        "quantized-matmul-many-rows-apart-in-16-bits",
        "how far more than eight rows of x lie apart is kept in 16 bits",
        QMM_09,
        steps_of_16_bits("x", lambda a: a.x[..., 0].size > 8),
        FAR_ROWS,
    ),
    *strides_of_prompts("quantized-matmul", QMM_09),
    *strides_of_models("quantized-matmul", QMM_09),
    *strides_of_thousands("quantized-matmul", QMM_09),
    *faults_of_products("quantized-matmul", QMM_09, QMM_10, QMM_11, QMM_12),
    Fault(
        "quantized-matmul-vector-becomes-matrix",
        "the result of a single row keeps a leading axis of 1",
        QMM_10,
        {"respond": changes.vector_becomes_matrix},
        "PROPERTIES X4",
    ),
)
