"""Mistakes in how flash attention takes its arrays: none, batches, views, dtypes, and what is refused."""

from __future__ import annotations

import numpy as np

from inferspec.spec import flash_attention as spec
from inferspec.spec.changes import flash_attention as changes
from inferspec.spec.changes.attention import (
    broadcast_one_past_a_tile,
    cropped_dims,
    fewer_values_taken,
    heads_floor_divided,
    inner_batch_ignored,
    keys_with_a_value,
    of_many_queries,
    prompt_of_common_heads,
    read_with_strides_of,
    reshapes,
    squeezes,
    takes_one_memory_for_one_array,
    token_of_common_heads_over_split_keys,
    wrapped,
)
from inferspec.spec.changes.attention_masks import (
    cuts,
    first_keys,
    full_mask,
    last_rows,
    remade,
    repeated_as_keys,
    spreads,
)
from inferspec.spec.changes.attention_weights import fails_if, hidden_heads_as_before, values_cropped
from inferspec.spec.changes.multi_head_attention import guards_arrays_only, guards_names_only
from inferspec.spec.contract import Fault
from inferspec.spec.faults.attention_sources import ENGINEER, FLASH_ATTENTION, FLASHINFER, MLX
from inferspec.spec.faults.sources import BACKWARD_ROWS
from inferspec.spec.mistakes import (
    counts_axis_in_16_bits,
    drifts,
    first_row_for_all,
    ignores_strides,
    in_half,
    mutates,
    only_where,
    paths_break_promises,
    paths_misread,
    promotes,
    remembers,
    remembers_by_identity,
    rows_in_order_of_memory,
    token_of_heads_in_one_piece,
)

FAULTS: tuple[Fault, ...] = (
    Fault(
        "flash-no-keys-nan",
        "no keys give NaN",
        spec.FLASH_11,
        fails_if(lambda q, k: k.shape[-2] == 0, np.nan),
        FLASH_ATTENTION + "commit/26d7d92f",
    ),
    Fault(
        "flash-no-keys-crash",
        "no keys raise an exception",
        spec.FLASH_11,
        fails_if(lambda q, k: k.shape[-2] == 0),
        FLASH_ATTENTION + "commit/03cd0651",
    ),
    Fault(
        "flash-no-queries-crash",
        "no queries raise an exception: the grid is empty",
        spec.FLASH_11,
        fails_if(lambda q, k: q.shape[-2] == 0),
        FLASH_ATTENTION + "commit/484b9813",
    ),
    Fault(
        "flash-no-batch-crash",
        "an empty batch raises an exception: the grid is empty",
        spec.FLASH_11,
        fails_if(lambda q, k: 0 in q.shape[:-3]),
        FLASH_ATTENTION + "commit/484b9813",
    ),
    Fault(
        "flash-mask-of-batch-row-modulo-eight",
        "the batch row of a mask is counted modulo 8",
        spec.FLASH_04,
        spreads(lambda bias, a: bias[np.arange(len(bias)) % 8] if bias.ndim > 3 else bias),
        ENGINEER,
    ),
    Fault(
        "flash-keys-of-first-row",
        "every batch row reads the keys of row 0",
        spec.FLASH_12,
        first_row_for_all("key"),
        ENGINEER,
    ),
    Fault(
        "flash-batch-rows-in-16-bits",
        "batch rows past the 65535th are not written",
        spec.FLASH_12,
        counts_axis_in_16_bits(-4),
        "https://github.com/pytorch/pytorch/issues/146704",
    ),
    Fault(
        "flash-heads-of-a-row-in-16-bits",
        "of the heads of a batch row those past the 65535th are not written",
        spec.FLASH_12,
        counts_axis_in_16_bits(-3),
        "https://github.com/pytorch/pytorch/issues/142228",
    ),
    Fault(
        "flash-keys-of-row-before",
        "each batch row reads the keys of the row before",
        spec.FLASH_12,
        reshapes(changes.batch_of_heads),
        ENGINEER,
    ),
    Fault(
        "flash-inner-batch-ignored",
        "only the outermost leading dim moves the key pointer",
        spec.FLASH_12,
        reshapes(inner_batch_ignored),
        ENGINEER,
    ),
    *(
        Fault(
            f"flash-{name}-strides",
            f"{name} is read as if it were contiguous",
            spec.FLASH_13,
            ignores_strides(name),
            MLX + "commit/005e7efa6" if name == "mask" else ENGINEER,
        )
        for name in ("query", "key", "value", "mask")
    ),
    *paths_break_promises(
        "flash-many-queries",
        "of 16 queries and more in half precision",
        in_half(of_many_queries, "query"),
        spec.FLASH_14,
        spec.FLASH_15,
        spec.FLASH_16,
        ("query", "key", "value"),
    ),
    *(
        Fault(
            f"flash-backward-{name}",
            f"a {name} whose tokens lie backwards is read in the order in which they lie",
            spec.FLASH_13,
            rows_in_order_of_memory(name),
            f"the kind of {BACKWARD_ROWS}",
        )
        for name in ("query", "key", "value")
    ),
    *paths_misread(
        "flash-prompts-of-common-heads",
        "of prompts of heads of 64 and 128 dims in half precision",
        spec.FLASH_13,
        in_half(prompt_of_common_heads, "query"),
        dict.fromkeys(("query", "key", "value")),
    ),
    *paths_misread(
        "flash-tokens-of-common-heads",
        "of single tokens of heads of 64 and 128 dims over 512 keys and more",
        spec.FLASH_13,
        token_of_common_heads_over_split_keys,
        dict.fromkeys(("query", "key", "value")),
    ),
    *paths_misread(
        "flash-many-queries",
        "of 16 queries and more in half precision",
        spec.FLASH_13,
        in_half(of_many_queries, "query"),
        {"query": -1, "key": -1, "value": -2, "mask": None},
    ),
    *(
        Fault(
            f"flash-broadcast-{name}-one-past-a-tile",
            f"a {name} that is repeated without a copy, one more than tiles of 32 hold, is read as if it were contiguous",
            spec.FLASH_13,
            only_where(broadcast_one_past_a_tile(name), ignores_strides(name)),
            "https://github.com/pytorch/pytorch/issues/191937",
        )
        for name in ("key", "value")
    ),
    *(
        Fault(
            f"flash-query-strides-of-tokens-of-{dim}",
            f"queries of single tokens of heads of {dim} features, each of which lies in one piece, are read as if they were contiguous",
            spec.FLASH_13,
            only_where(token_of_heads_in_one_piece(dim), ignores_strides("query")),
            ENGINEER,
        )
        for dim in (64, 128)
    ),
    Fault(
        "flash-value-with-key-strides",
        "value is read with the strides of key",
        spec.FLASH_13,
        reshapes(lambda a: {"value": read_with_strides_of(a.value, a.key)}),
        MLX + "commit/62f297b51",
    ),
    Fault(
        "flash-one-memory-one-array",
        "where key and value are parts of one array, the one copy that is made of it is the key's",
        spec.FLASH_13,
        reshapes(takes_one_memory_for_one_array),
        ENGINEER,
    ),
    Fault(
        "flash-rows-of-the-next-head",
        "parts of more than 32 keys are joined as if each head's rows lay side by side, which those of a projection do not",
        spec.FLASH_13,
        {"respond": changes.rows_of_the_next_head},
        "https://github.com/flagos-ai/FlagGems/issues/5235",
    ),
    Fault(
        "flash-float32-result",
        "the result is float32 whatever the query's dtype",
        spec.FLASH_14,
        promotes(),
        "the course's half-precision attention",
    ),
    Fault("flash-squeezed", "dims of size 1 are gone from the result", spec.FLASH_14, {"finish": squeezes}, ENGINEER),
    Fault(
        "flash-query-scaled-in-place",
        "the caller's query is scaled in place",
        spec.FLASH_15,
        mutates("query"),
        ENGINEER,
    ),
    Fault("flash-mask-changed", "the caller's mask is changed", spec.FLASH_15, mutates("mask"), ENGINEER),
    Fault(
        "flash-scale-remembered",
        "the scale of the first call with these shapes is compiled into the kernel of all",
        spec.FLASH_16,
        remembers("scale"),
        FLASHINFER + "commit/82784bb11",
    ),
    Fault(
        "flash-mask-remembered-by-identity",
        "what a mask was made into is kept by its id, which another mask has when the first one is gone",
        spec.FLASH_16,
        remembers_by_identity("mask"),
        ENGINEER,
    ),
    Fault(
        "flash-mask-remembered",
        "the mask of the first call with these shapes is used for all",
        spec.FLASH_16,
        remembers("mask"),
        FLASHINFER + "commit/82784bb11",
    ),
    Fault(
        "flash-key-remembered",
        "the key heads of the first call with these shapes, repeated once, are used for all",
        spec.FLASH_16,
        remembers("key"),
        ENGINEER,
    ),
    Fault(
        "flash-value-remembered",
        "the value of the first call with these shapes is used for all",
        spec.FLASH_16,
        remembers("value"),
        ENGINEER,
    ),
    Fault("flash-drifting", "every repeated call is larger", spec.FLASH_16, drifts(), ENGINEER),
    Fault(
        "flash-unknown-mask-is-causal",
        "any mask name means causal",
        spec.FLASH_17,
        {"guard_mask": guards_arrays_only},
        ENGINEER,
    ),
    Fault(
        "flash-mask-cropped",
        "a mask that does not broadcast is cropped or repeated",
        spec.FLASH_17,
        {
            "guard_mask": guards_names_only,
            **reshapes(lambda a: {"mask": wrapped(a.mask, full_mask(a)) if isinstance(a.mask, np.ndarray) else a.mask}),
        },
        ENGINEER,
    ),
    Fault(
        "flash-heads-floor-divided",
        "head counts that do not divide are rounded down",
        spec.FLASH_17,
        {"guard_heads": lambda self, a: None, "key_heads": heads_floor_divided},
        ENGINEER,
    ),
    Fault(
        "flash-fewer-values-taken",
        "keys past the last value are left out",
        spec.FLASH_17,
        {"guard_lengths": fewer_values_taken, **reshapes(keys_with_a_value)},
        ENGINEER,
    ),
    Fault(
        "flash-longer-mask-cut",
        "of a mask of more keys than there are the first are taken",
        spec.FLASH_17,
        cuts(first_keys),
        ENGINEER,
    ),
    Fault(
        "flash-taller-mask-cut",
        "of a mask of more rows than queries the last are taken",
        spec.FLASH_17,
        cuts(last_rows),
        ENGINEER,
    ),
    Fault(
        "flash-mask-of-key-heads-repeated",
        "a mask of as many heads as the keys have is repeated for those of queries, as the keys are",
        spec.FLASH_17,
        remade(repeated_as_keys),
        ENGINEER,
    ),
    Fault(
        "flash-hidden-heads-stale",
        "of heads that see no key those past the first keep what the head before left",
        spec.FLASH_07,
        {"finish": hidden_heads_as_before},
        ENGINEER,
    ),
    Fault(
        "flash-values-cropped",
        "of values of another head dim than that of keys as many features are taken",
        spec.FLASH_17,
        reshapes(values_cropped),
        ENGINEER,
    ),
    Fault(
        "flash-dims-cropped",
        "of differing head dims or lengths the smaller is taken",
        spec.FLASH_17,
        {"guard_lengths": lambda self, a: None, **reshapes(cropped_dims)},
        ENGINEER,
    ),
)
