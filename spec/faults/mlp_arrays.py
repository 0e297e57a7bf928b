"""Mistakes in what an MLP reads and writes: views, dtypes, what is changed, and what is kept."""

from __future__ import annotations

from inferspec.spec.changes import mlp as changes
from inferspec.spec.contract import Fault
from inferspec.spec.faults.sources import (
    BACKWARD_ROWS,
    BUFFER_IN_USE,
    COURSE_GAP,
    FAR_ROWS,
    FIVE_AXES,
    FLASHINFER,
    TIRED,
)
from inferspec.spec.mistakes import (
    drifts,
    ignores_strides,
    in_half,
    mutates,
    of_many_rows,
    of_one_row,
    of_what_was_made_last,
    once_where_repeated,
    only_where,
    paths_break_promises,
    paths_misread,
    promotes,
    promotes_where,
    read_as_of,
    remembers,
    rows_in_order_of_memory,
    sized_by_the_first,
    steps_of_16_bits,
    takes_all_that_lies_behind,
)
from inferspec.spec.mlp import (
    MLP_07,
    MLP_08,
    MLP_09,
    MLP_10,
    MLP_13,
)

WEIGHTS = ("w_gate", "w_up", "w_down")
SGLANG_BUG = "https://github.com/sgl-project/sglang/pull/26188"


FAULTS: tuple[Fault, ...] = (
    Fault(
        "mlp-five-axes-strides",
        "x of five axes is read as if it were contiguous",
        MLP_07,
        only_where(lambda a: a.x.ndim > 4, ignores_strides("x")),
        FIVE_AXES,
    ),
    Fault(
        "mlp-whole-buffer",
        "what is the beginning of a longer buffer is taken with the whole of it, and refused",
        MLP_07,
        takes_all_that_lies_behind("x", "w_gate", "w_up", "w_down"),
        BUFFER_IN_USE,
    ),
    *paths_break_promises(
        "mlp-many-rows",
        "of 32 rows and more in half precision",
        in_half(of_many_rows()),
        MLP_08,
        MLP_09,
        MLP_10,
        ("x", "w_gate", "w_up", "w_down"),
    ),
    *paths_misread(
        "mlp-many-rows",
        "of 32 rows and more in half precision",
        MLP_07,
        in_half(of_many_rows()),
        {"x": -1, "w_gate": -1, "w_up": -1, "w_down": -1},
    ),
    *(
        fault
        for told, rows in (("tokens", range(1, 2)), ("few-tokens", range(2, 9)), ("prompts", range(32, 2**16)))
        for fault in paths_misread(
            f"mlp-{told}-of-models",
            f"of {told} in half precision, of 64 dims and 256 hidden dims and more,",
            MLP_07,
            in_half(changes.of_models(rows, 64, 256)),
            dict.fromkeys(("w_gate", "w_down", "x")[: 2 if told == "tokens" else 3]),
        )
    ),
    *paths_misread(
        "mlp-many-hidden",
        "of more than 512 hidden dims",
        MLP_07,
        lambda a: len(a.w_gate) > 512,
        {"x": None, "w_gate": None, "w_up": None, "w_down": -1},
    ),
    Fault(
        "mlp-repeated-batch-once",
        "of a batch that is repeated without a copy the first is written alone",
        MLP_07,
        once_where_repeated("x"),
        "https://github.com/huggingface/candle/pull/3960",
    ),
    Fault(
        "mlp-rows-apart-in-16-bits",
        "how far rows of x lie apart is kept in 16 bits",
        MLP_07,
        steps_of_16_bits("x"),
        f"the kind of {FAR_ROWS}",
    ),
    *(
        Fault(
            f"mlp-{name.replace('_', '-')}-rows-apart-in-16-bits",
            f"how far rows of {name} lie apart is kept in 16 bits",
            MLP_07,
            steps_of_16_bits(name),
            f"the kind of {FAR_ROWS}",
        )
        for name in ("w_gate", "w_up", "w_down")
    ),
    Fault(
        "mlp-backward-rows",
        "rows of x that lie backwards are read in the order in which they lie",
        MLP_07,
        rows_in_order_of_memory("x"),
        f"the kind of {BACKWARD_ROWS}",
    ),
    Fault("mlp-x-strides", "x is read as if it were contiguous", MLP_07, ignores_strides("x"), "PROPERTIES X1"),
    Fault(
        "mlp-gate-strides",
        "w_gate is read as if it were contiguous",
        MLP_07,
        ignores_strides("w_gate"),
        "PROPERTIES X1",
    ),
    Fault(
        "mlp-up-strides",
        "w_up is read as if it were contiguous",
        MLP_07,
        ignores_strides("w_up"),
        "PROPERTIES X1",
    ),
    Fault(
        "mlp-down-strides",
        "w_down is read as if it were contiguous",
        MLP_07,
        ignores_strides("w_down"),
        "PROPERTIES X1",
    ),
    Fault("mlp-promotes", "the result comes back in float32", MLP_08, promotes(), COURSE_GAP),
    Fault(
        "mlp-wide-layers-promote",
        "rows of 64 dims and more come back in float32",
        MLP_08,
        promotes_where(lambda a: a.dims >= 64),
        COURSE_GAP,
    ),
    Fault(
        "mlp-no-rows-promote",
        "no rows come back in float32",
        MLP_08,
        promotes_where(lambda a: not a.x.size),
        TIRED,
    ),
    Fault(
        "mlp-rows-flat",
        "the leading dims come back folded into one",
        MLP_08,
        {"respond": changes.rows_flat},
        SGLANG_BUG,
    ),
    Fault("mlp-changes-x", "x is overwritten by an intermediate", MLP_09, mutates("x"), "PROPERTIES X6"),
    Fault(
        "mlp-changes-wide-x",
        "rows of 64 dims and more are overwritten by an intermediate",
        MLP_09,
        only_where(lambda a: a.dims >= 64, mutates("x")),
        "PROPERTIES X6",
    ),
    Fault(
        "mlp-changes-square-x",
        "x of as many dims as there are hidden ones holds what the gate gave",
        MLP_09,
        only_where(lambda a: a.w_gate.shape[0] == a.w_gate.shape[1], mutates("x")),
        "a buffer of the right size",
    ),
    Fault("mlp-changes-down", "w_down is scaled in place", MLP_09, mutates("w_down"), "PROPERTIES X6"),
    Fault(
        "mlp-remembers-down-of-single-rows",
        "the path of a single row keeps w_down, turned over, by its shape",
        MLP_10,
        only_where(of_one_row("x"), remembers("w_down")),
        TIRED,
    ),
    Fault(
        "mlp-single-row-strides",
        "the path of a single row reads x as if it were contiguous",
        MLP_07,
        only_where(of_one_row("x"), ignores_strides("x")),
        TIRED,
    ),
    Fault(
        "mlp-remembers-wide-gate",
        "a fused gate weight of 64 hidden dims and more, cached by shape, serves later layers",
        MLP_10,
        only_where(lambda a: a.hidden_dims >= 64, remembers("w_gate")),
        f"{FLASHINFER}/commit/82784bb11",
    ),
    Fault(
        "mlp-remembers-gate",
        "a fused gate weight cached by shape serves later layers",
        MLP_10,
        remembers("w_gate"),
        f"{FLASHINFER}/commit/82784bb11",
    ),
    Fault(
        "mlp-sized-by-the-first",
        "what the first call makes room for serves every later one: rows past as many as that had are never written",
        MLP_10,
        sized_by_the_first(),
        "https://github.com/deepspeedai/DeepSpeed/issues/4684",
    ),
    Fault(
        "mlp-batch-of-the-first",
        "what the first call makes room for serves every later one: batches past as many as that had are never written",
        MLP_10,
        sized_by_the_first(batches=True),
        "https://github.com/deepspeedai/DeepSpeed/issues/4684",
    ),
    Fault(
        "mlp-of-the-layer-made-last",
        "the weights are kept for all layers: the one made last serves all",
        MLP_10,
        of_what_was_made_last(*WEIGHTS),
        TIRED,
    ),
    Fault("mlp-drifts", "the output buffer of an earlier call is added to", MLP_10, drifts(), TIRED),
    Fault(
        "mlp-float32-weights-bits",
        "what float32 weights hold is read as numbers of the dtype of x",
        MLP_13,
        read_as_of("x", "w_gate", "w_up", "w_down"),
        "kernels of one dtype for all their buffers",
    ),
    *(
        Fault(
            f"mlp-float32-{name.removeprefix('w_')}-bits",
            f"what a float32 {name} holds is read as numbers of the dtype of x",
            MLP_13,
            read_as_of("x", name),
            "kernels of one dtype for all their buffers",
        )
        for name in ("w_gate", "w_up", "w_down")
    ),
)
