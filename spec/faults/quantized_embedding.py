"""Mistakes in tables of packed weights."""

from __future__ import annotations

import numpy as np

from inferspec.spec.changes import quantization as changes
from inferspec.spec.changes import quantization_products as products
from inferspec.spec.contract import Fault, Operation
from inferspec.spec.faults.quantization_shared import (
    MLX_LM,
    batches_swapped,
    lost_in_longer_buffers,
    other_defaults,
    past_float16,
)
from inferspec.spec.faults.sources import BACKWARD_ROWS, MLX, TIRED
from inferspec.spec.mistakes import (
    bfloat16_through_float16,
    cut_to_32_bits,
    ignores_strides,
    mutates,
    of_what_was_made_last,
    only_where,
    paths_lack_a_feature,
    paths_misread,
    promotes,
    promotes_where,
    remembers,
    rows_in_order_of_memory,
    sized_by_the_first,
)
from inferspec.spec.quantization_sentences import (
    QEMB_01,
    QEMB_02,
    QEMB_03,
    QEMB_04,
    QEMB_05,
    QEMB_06,
    QEMB_07,
    QEMB_08,
    QEMB_17,
    QEMB_22,
)

FAULTS: tuple[Fault, ...] = (
    past_float16("quantized-embedding", QEMB_01),
    *batches_swapped("quantized-embedding", QEMB_03, "tokens"),
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
        {"weights": products.first_1024},
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
        "quantized-embedding-uint32-ids-of-batches",
        "uint32 ids of a batch are kept in 16 bits",
        QEMB_02,
        {"rows": lambda self, tokens, a: tokens & 65535 if a.tokens.dtype == np.uint32 and tokens.ndim > 1 else tokens},
        "PROPERTIES X8",
    ),
    Fault(
        "quantized-embedding-lone-ids-of-16-bits",
        "an id by itself is kept in 16 bits",
        QEMB_02,
        {"rows": lambda self, tokens, a: tokens if tokens.ndim else tokens & 65535},
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
        products.first_rows(1024),
        TIRED,
    ),
    Fault(
        "quantized-embedding-transposed-tokens",
        "positions and sequences are exchanged",
        QEMB_03,
        {"rows": lambda self, tokens, a: tokens.T.reshape(tokens.shape)},
        TIRED,
    ),
    *lost_in_longer_buffers("quantized-lookup", QEMB_04),
    *(
        Fault(
            f"quantized-embedding-backward-{part}",
            f"rows of {part} that lie backwards are read in the order in which they lie",
            QEMB_04,
            rows_in_order_of_memory(part),
            f"the kind of {BACKWARD_ROWS}",
        )
        for part in ("packed", "scales", "biases")
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
    *paths_misread(
        "quantized-embedding-hundreds-of-rows",
        "of a table of more than 512 rows",
        QEMB_04,
        lambda a: a.scales.shape[-2] > 512,
        dict.fromkeys(("packed", "scales", "biases")),
    ),
    *paths_misread(
        "quantized-embedding-many-groups",
        "of more than 16 groups",
        QEMB_04,
        lambda a: a.scales.shape[-1] > 16,
        dict.fromkeys(("packed", "scales", "biases")),
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
    Fault(
        "quantized-embedding-no-rows-promote",
        "rows of no tokens come back in float32",
        QEMB_05,
        promotes_where(lambda a: not a.tokens.size),
        "PROPERTIES X4",
    ),
    Fault("quantized-embedding-promotes", "rows come back in float32", QEMB_05, promotes(), "PROPERTIES X4"),
    Fault(
        "quantized-embedding-changes-tokens", "the tokens are overwritten", QEMB_06, mutates("tokens"), "PROPERTIES X6"
    ),
    Fault(
        "quantized-embedding-scales-through-float16",
        "scales that are bfloat16 pass through float16",
        QEMB_01,
        bfloat16_through_float16("scales"),
        TIRED,
    ),
    Fault(
        "quantized-embedding-nan-hidden",
        "a weight that is no number comes back as 0",
        QEMB_01,
        {"affine": changes.nan_to_zero},
        TIRED,
    ),
    Fault(
        "quantized-embedding-sized-by-the-first",
        "what the first call makes room for serves every later one: rows past as many as that had are never written",
        QEMB_07,
        sized_by_the_first(),
        "https://github.com/deepspeedai/DeepSpeed/issues/4684",
    ),
    Fault(
        "quantized-embedding-batch-of-the-first",
        "what the first call makes room for serves every later one: batches past as many as that had are never written",
        QEMB_07,
        sized_by_the_first(batches=True),
        "https://github.com/deepspeedai/DeepSpeed/issues/4684",
    ),
    Fault(
        "quantized-embedding-of-the-table-made-last",
        "the weights are kept for all tables: those of the one made last serve all",
        QEMB_07,
        of_what_was_made_last("packed", "scales", "biases"),
        TIRED,
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
    *other_defaults("quantized-embedding", QEMB_22),
)
