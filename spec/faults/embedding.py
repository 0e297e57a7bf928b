"""Mistakes in embeddings and tied heads, and other honest ways to compute them."""

from __future__ import annotations

import numpy as np

from inferspec.spec.changes import embedding as changes
from inferspec.spec.changes.linear import blocked_product, partial_sums_in_dtype, running_product, whole_blocks
from inferspec.spec.contract import Fault, Variant
from inferspec.spec.embedding import (
    EMB_01,
    EMB_02,
    EMB_03,
    EMB_04,
    EMB_05,
    EMB_06,
    EMB_07,
    EMB_08,
    EMB_09,
    EMB_10,
    EMB_11,
    EMB_12,
    EMB_13,
    EMB_14,
    EMB_15,
    EMB_16,
    EMB_17,
    EMB_18,
    EMB_19,
)
from inferspec.spec.faults.linear import COURSE_GAP, FLASHINFER, MLX, TIRED
from inferspec.spec.mistakes import (
    bfloat16_through_float16,
    drifts,
    first_row_for_all,
    ignores_strides,
    lacks_a_feature,
    leaves_unwritten,
    mutates,
    of_one_half_row,
    only_where,
    promotes,
    remembers,
    wraps_batches,
)

MLX_LM = "https://github.com/ml-explore/mlx-lm"
COLUMN_CONTIGUOUS = f"{MLX}/commit/b925592fb"


FAULTS: tuple[Fault, ...] = (
    Fault(
        "embedding-scaled",
        "rows are multiplied by sqrt(dims)",
        EMB_01,
        {"lookup": changes.scaled_lookup},
        "the kind of mlx-lm c27c94a0",
    ),
    Fault(
        "embedding-through-float16",
        "the table is kept in float16",
        EMB_01,
        {"lookup": changes.table_in("float16")},
        TIRED,
    ),
    Fault(
        "embedding-through-bfloat16",
        "the table is kept in bfloat16",
        EMB_01,
        {"lookup": changes.table_in("bfloat16")},
        TIRED,
    ),
    Fault(
        "embedding-next-row",
        "each token reads the row after its own",
        EMB_01,
        {"rows": lambda self, tokens, a: (tokens + 1) % max(a.vocab_size, 1)},
        TIRED,
    ),
    Fault(
        "embedding-padding-row",
        "id 0 is taken for padding and gives zeros",
        EMB_02,
        {"lookup": changes.padding_row},
        TIRED,
    ),
    Fault(
        "embedding-last-row-lost",
        "the last id reads the row before it",
        EMB_02,
        {"rows": lambda self, tokens, a: np.minimum(tokens, max(a.vocab_size - 2, 0))},
        TIRED,
    ),
    Fault("embedding-uint8-ids", "ids are kept in 8 bits", EMB_02, {"rows": changes.wrapped_at(8)}, "PROPERTIES PC3"),
    Fault("embedding-uint16-ids", "ids are kept in 16 bits", EMB_02, {"rows": changes.wrapped_at(16)}, "PROPERTIES X8"),
    Fault(
        "embedding-int16-ids",
        "ids past 32767 turn negative and read from the end",
        EMB_02,
        {"rows": changes.signed_16},
        "the kind of mlx c9e8ee6b6",
    ),
    Fault(
        "embedding-first-row-for-all",
        "the first sequence serves the whole batch",
        EMB_03,
        first_row_for_all("tokens"),
        TIRED,
    ),
    Fault(
        "embedding-transposed-tokens",
        "positions and sequences are exchanged",
        EMB_03,
        {"rows": changes.transposed_tokens},
        TIRED,
    ),
    Fault(
        "embedding-features-of-one-group",
        "features past the 1024th, which one group of threads does not reach, are zeros",
        EMB_03,
        leaves_unwritten(lambda rows: rows[..., :1024]),
        TIRED,
    ),
    Fault(
        "embedding-tokens-of-one-group",
        "tokens past the 1024th, which one group of threads does not reach, give nothing",
        EMB_03,
        leaves_unwritten(changes.first_tokens),
        TIRED,
    ),
    Fault(
        "embedding-weight-strides",
        "the weight is read as if it were contiguous",
        EMB_04,
        ignores_strides("weight"),
        COLUMN_CONTIGUOUS,
    ),
    Fault(
        "embedding-token-strides",
        "tokens are read as if they were contiguous",
        EMB_04,
        ignores_strides("tokens"),
        "PROPERTIES X1",
    ),
    Fault(
        "embedding-single-token-strides",
        "the path of a single token reads the weight as if it were contiguous",
        EMB_04,
        only_where(lambda a: a.tokens.size == 1 and a.weight.dtype.name == "bfloat16", ignores_strides("weight")),
        TIRED,
    ),
    Fault(
        "embedding-single-token-promotes",
        "the row of a single token comes back in float32",
        EMB_05,
        only_where(lambda a: a.tokens.size == 1 and a.weight.dtype.name == "bfloat16", promotes()),
        TIRED,
    ),
    Fault("embedding-promotes", "the result comes back in float32", EMB_05, promotes(), COURSE_GAP),
    Fault(
        "embedding-flattens",
        "the result is one list of rows, whatever the shape of tokens",
        EMB_05,
        {"respond": changes.flat},
        TIRED,
    ),
    Fault(
        "embedding-scalar-keeps-axis",
        "a single token comes back as a list of one row",
        EMB_05,
        {"respond": changes.scalar_keeps_axis},
        "PROPERTIES EM2",
    ),
    Fault("embedding-changes-tokens", "the tokens are overwritten", EMB_06, mutates("tokens"), "PROPERTIES X6"),
    Fault("embedding-changes-weight", "the weight is scaled in place", EMB_06, mutates("weight"), "PROPERTIES X6"),
    Fault(
        "embedding-remembers-tokens",
        "a result cached by shape serves other tokens",
        EMB_07,
        remembers("tokens"),
        f"{FLASHINFER}/commit/82784bb11",
    ),
    Fault(
        "embedding-remembers-weight",
        "the table of the first layer serves all of its shape",
        EMB_07,
        remembers("weight"),
        TIRED,
    ),
    Fault(
        "embedding-any-weight",
        "a weight of another shape is read on or cut short",
        EMB_08,
        {"guard_weight": lambda self, a: None, "respond": changes.reads_on},
        "PROPERTIES X9",
    ),
    Fault(
        "embedding-ids-from-the-end",
        "negative ids count from the end, large ones start again",
        EMB_09,
        {"guard": changes.weight_guard_alone, "rows": changes.from_the_end},
        TIRED,
    ),
    Fault(
        "embedding-ids-clamped",
        "ids outside the vocabulary are clamped to its ends",
        EMB_09,
        {"guard": changes.weight_guard_alone, "rows": changes.clamped},
        TIRED,
    ),
    Fault(
        "embedding-ids-give-zeros",
        "ids outside the vocabulary give zeros",
        EMB_09,
        {"guard": changes.weight_guard_alone, "respond": changes.zeros_outside},
        TIRED,
    ),
    Fault(
        "as-linear-scaled",
        "logits are multiplied by dims^-0.5, the ratio of two multipliers",
        EMB_10,
        {"logits": lambda self, x, head, dtype: x @ head.T * head.shape[1] ** -0.5},
        f"{MLX_LM}/commit/c27c94a0",
    ),
    Fault(
        "as-linear-normalised", "the rows of the head are normalised", EMB_10, {"head": changes.normalised_head}, TIRED
    ),
    Fault(
        "as-linear-untied",
        "the head is a matrix of its own",
        EMB_11,
        {"head": changes.own_head},
        f"{MLX_LM}/commit/e92138cb",
    ),
    Fault(
        "as-linear-read-as-columns",
        "the weight is read as dims×vocab_size instead of transposed",
        EMB_11,
        {"logits": lambda self, x, head, dtype: x @ head.reshape(head.shape[::-1])},
        TIRED,
    ),
    Fault(
        "as-linear-in-dtype",
        "logits are accumulated in the input's dtype",
        EMB_12,
        {"logits": lambda self, x, head, dtype: running_product(x, head, dtype)},
        COURSE_GAP,
    ),
    Fault(
        "as-linear-partial-sums-in-dtype",
        "where there are many rows, the sums of every 256 features are stored in the input's dtype",
        EMB_12,
        {"logits": lambda self, x, head, dtype: partial_sums_in_dtype(x, head, dtype)},
        "kernels that split the sum of a matrix product; PROPERTIES X5",
    ),
    Fault(
        "as-linear-bfloat16-through-float16",
        "bfloat16 passes through float16 on its way into the product",
        EMB_10,
        bfloat16_through_float16("x"),
        TIRED,
    ),
    Fault("as-linear-batches-modulo-eight", "batch rows are counted modulo 8", EMB_13, wraps_batches("x"), TIRED),
    Fault("as-linear-first-row-for-all", "the first batch row serves all", EMB_13, first_row_for_all("x"), TIRED),
    Fault(
        "as-linear-leading-dims-swapped",
        "the first two leading dims are exchanged when rows are folded back",
        EMB_13,
        {"logits": changes.leading_dims_swapped},
        TIRED,
    ),
    Fault(
        "as-linear-weight-strides",
        "the weight is read as if it were contiguous",
        EMB_14,
        ignores_strides("weight"),
        COLUMN_CONTIGUOUS,
    ),
    Fault("as-linear-x-strides", "x is read as if it were contiguous", EMB_14, ignores_strides("x"), "PROPERTIES X1"),
    *(
        Fault(
            f"as-linear-single-row-{part}-strides",
            f"the path of a single row reads {part} as if it were contiguous",
            EMB_14,
            only_where(of_one_half_row("x"), ignores_strides(part)),
            TIRED,
        )
        for part in ("x", "weight")
    ),
    Fault(
        "as-linear-single-row-promotes",
        "logits of a single row come back in float32",
        EMB_15,
        only_where(of_one_half_row("x"), promotes()),
        TIRED,
    ),
    Fault("as-linear-promotes", "logits come back in float32", EMB_15, promotes(), COURSE_GAP),
    Fault(
        "as-linear-last-position",
        "only the last position gets logits",
        EMB_15,
        {"respond": changes.last_position},
        TIRED,
    ),
    Fault("as-linear-changes-x", "x is overwritten", EMB_16, mutates("x"), "PROPERTIES X6"),
    Fault("as-linear-changes-weight", "the weight is scaled in place", EMB_16, mutates("weight"), "PROPERTIES X6"),
    Fault(
        "as-linear-remembers-weight",
        "a transposed weight cached by shape serves later calls",
        EMB_17,
        remembers("weight"),
        f"{FLASHINFER}/commit/82784bb11",
    ),
    Fault("as-linear-drifts", "the output buffer of an earlier call is added to", EMB_17, drifts(), TIRED),
    Fault(
        "as-linear-fits-anything",
        "an x with another number of features is read on or cut short",
        EMB_18,
        {"guard_features": lambda self, a: None, "respond": changes.features_fitted},
        "PROPERTIES X9",
    ),
    Fault(
        "head-tokens-lack-an-id",
        "of a single row, in half precision, the last of a thousand logits and more is not written",
        EMB_19,
        lacks_a_feature(
            lambda a: a.x.dtype.itemsize == 2 and a.x.size == a.x.shape[-1] >= 64 and len(a.weight) >= 1000
        ),
        TIRED,
    ),
    Fault(
        "as-linear-short-columns",
        "columns past 32768 are not written: their index is a 16-bit number",
        EMB_19,
        leaves_unwritten(changes.short_columns),
        f"{MLX}/commit/c9e8ee6b6",
    ),
    Fault(
        "as-linear-first-rows-of-a-prompt",
        "of a large vocabulary only the first 8 rows get logits, as many as decoding asks for",
        EMB_19,
        leaves_unwritten(changes.first_rows_of_wide),
        TIRED,
    ),
    Fault(
        "as-linear-one-tile-of-a-split",
        "logits whose sum is split over 1024 features and more are those of the first 32 ids alone",
        EMB_19,
        {"logits": changes.one_tile_of_a_split},
        TIRED,
    ),
    Fault(
        "as-linear-outputs-floor",
        "columns past the last whole tile of 64 are not written",
        EMB_19,
        leaves_unwritten(whole_blocks(64)),
        f"{MLX}/issues/4250",
    ),
)


VARIANTS: tuple[Variant, ...] = (
    Variant("embedding-one-hot", "the lookup is a product with one-hot rows", "Embedding", {"lookup": changes.one_hot}),
    Variant(
        "as-linear-blocked",
        "features summed in blocks of 32, in float32",
        "Embedding.as_linear",
        {"logits": lambda self, x, head, dtype: blocked_product(x, head, 32)},
    ),
)
