"""Mistakes in how attention takes its arrays: none, batches, views, dtypes, what is refused, and lengths beside tiles."""

from __future__ import annotations

import numpy as np

from inferspec.spec import attention as spec
from inferspec.spec.changes import attention as changes
from inferspec.spec.changes import attention_masks as masks
from inferspec.spec.changes import attention_paths, attention_weights
from inferspec.spec.changes import multi_head_attention as heads
from inferspec.spec.contract import Fault
from inferspec.spec.faults.attention_paths import of_paths
from inferspec.spec.faults.attention_sources import ENGINEER, FLASH_ATTENTION, FLASHINFER, MLX, TINY_LLM
from inferspec.spec.faults.sources import BACKWARD_ROWS, FIVE_AXES
from inferspec.spec.mistakes import (
    drifts,
    first_row_for_all,
    ignores_strides,
    in_half,
    lacks_a_feature,
    last_past_tiles_unwritten,
    leaves_unwritten,
    mutates,
    once_where_repeated,
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
        "sdpa-no-keys-nan",
        "no keys give NaN",
        spec.ATTN_11,
        attention_weights.fails_if(lambda q, k: k.shape[-2] == 0, np.nan),
        FLASH_ATTENTION + "commit/26d7d92f",
    ),
    Fault(
        "sdpa-no-keys-crash",
        "no keys raise an exception",
        spec.ATTN_11,
        attention_weights.fails_if(lambda q, k: k.shape[-2] == 0),
        FLASH_ATTENTION + "commit/03cd0651",
    ),
    Fault(
        "sdpa-no-queries-crash",
        "no queries raise an exception",
        spec.ATTN_11,
        attention_weights.fails_if(lambda q, k: q.shape[-2] == 0),
        FLASH_ATTENTION + "commit/484b9813",
    ),
    Fault(
        "sdpa-no-batch-crash",
        "an empty batch raises an exception",
        spec.ATTN_11,
        attention_weights.fails_if(lambda q, k: 0 in q.shape[:-3]),
        FLASH_ATTENTION + "commit/484b9813",
    ),
    Fault(
        "sdpa-keys-of-first-row",
        "every batch row reads the keys of row 0",
        spec.ATTN_12,
        first_row_for_all("key"),
        ENGINEER,
    ),
    Fault(
        "sdpa-values-of-first-row",
        "every batch row reads the values of row 0",
        spec.ATTN_12,
        first_row_for_all("value"),
        ENGINEER,
    ),
    Fault(
        "sdpa-inner-batch-ignored",
        "only the outermost leading dim moves the key pointer",
        spec.ATTN_12,
        changes.reshapes(changes.inner_batch_ignored),
        ENGINEER,
    ),
    Fault(
        "sdpa-leading-dims-swapped",
        "two leading dims of value are walked in the wrong order",
        spec.ATTN_12,
        changes.reshapes(changes.leading_dims_swapped),
        ENGINEER,
    ),
    Fault(
        "sdpa-batch-stride-of-query",
        "the batch stride of key is computed from the query's heads",
        spec.ATTN_12,
        changes.reshapes(changes.batch_stride_of_query),
        ENGINEER,
    ),
    Fault(
        "sdpa-query-strides", "query is read as if it were contiguous", spec.ATTN_13, ignores_strides("query"), ENGINEER
    ),
    Fault(
        "sdpa-repeated-queries-once",
        "of queries of a batch that are repeated without a copy the results of the first are written alone",
        spec.ATTN_13,
        once_where_repeated("query"),
        "the kind of https://github.com/huggingface/candle/pull/3960",
    ),
    Fault("sdpa-key-strides", "key is read as if it were contiguous", spec.ATTN_13, ignores_strides("key"), ENGINEER),
    Fault(
        "sdpa-value-strides", "value is read as if it were contiguous", spec.ATTN_13, ignores_strides("value"), ENGINEER
    ),
    *(
        Fault(
            f"sdpa-backward-{name}",
            f"a {name} whose tokens lie backwards is read in the order in which they lie",
            spec.ATTN_13,
            rows_in_order_of_memory(name),
            f"the kind of {BACKWARD_ROWS}",
        )
        for name in ("query", "key", "value")
    ),
    Fault(
        "sdpa-query-dense-by-chance",
        "a query whose batch rows lie as far apart as all its heads would is read as one batch of them",
        spec.ATTN_13,
        changes.reshapes(masks.dense_by_chance),
        "https://github.com/uxlfoundation/oneDNN/pull/5556",
    ),
    Fault(
        "sdpa-mask-strides",
        "mask is read as if it were contiguous",
        spec.ATTN_13,
        ignores_strides("mask"),
        MLX + "commit/005e7efa6",
    ),
    Fault(
        "sdpa-five-axes-mask-strides",
        "a mask of five axes is read as if it were contiguous",
        spec.ATTN_13,
        only_where(lambda a: np.ndim(a.mask) > 4, ignores_strides("mask")),
        FIVE_AXES,
    ),
    *paths_break_promises(
        "sdpa-many-queries",
        "of 16 queries and more in half precision",
        in_half(changes.of_many_queries, "query"),
        spec.ATTN_14,
        spec.ATTN_15,
        spec.ATTN_16,
        ("query", "key", "value"),
    ),
    *paths_misread(
        "sdpa-prompts-of-common-heads",
        "of prompts of heads of 64 and 128 dims in half precision",
        spec.ATTN_13,
        in_half(changes.prompt_of_common_heads, "query"),
        dict.fromkeys(("query", "key", "value")),
    ),
    *paths_misread(
        "sdpa-tokens-of-common-heads",
        "of single tokens of heads of 64 and 128 dims over 512 keys and more",
        spec.ATTN_13,
        changes.token_of_common_heads_over_split_keys,
        dict.fromkeys(("query", "key", "value")),
    ),
    *paths_misread(
        "sdpa-many-queries",
        "of 16 queries and more in half precision",
        spec.ATTN_13,
        in_half(changes.of_many_queries, "query"),
        {"query": -1, "key": -1, "value": -2, "mask": None},
    ),
    *(
        Fault(
            f"sdpa-broadcast-{name}-one-past-a-tile",
            f"a {name} that is repeated without a copy, one more than tiles of 32 hold, is read as if it were contiguous",
            spec.ATTN_13,
            only_where(changes.broadcast_one_past_a_tile(name), ignores_strides(name)),
            "https://github.com/pytorch/pytorch/issues/191937",
        )
        for name in ("key", "value")
    ),
    *(
        Fault(
            f"sdpa-query-strides-of-tokens-of-{dim}",
            f"queries of single tokens of heads of {dim} features, each of which lies in one piece, are read as if they were contiguous",
            spec.ATTN_13,
            only_where(token_of_heads_in_one_piece(dim), ignores_strides("query")),
            ENGINEER,
        )
        for dim in (64, 128)
    ),
    Fault(
        "sdpa-value-with-key-strides",
        "value is read with the strides of key",
        spec.ATTN_13,
        changes.reshapes(lambda a: {"value": changes.read_with_strides_of(a.value, a.key)}),
        MLX + "commit/62f297b51",
    ),
    Fault(
        "sdpa-one-memory-one-array",
        "where key and value are parts of one array, the one copy that is made of it is the key's",
        spec.ATTN_13,
        changes.reshapes(changes.takes_one_memory_for_one_array),
        ENGINEER,
    ),
    Fault(
        "sdpa-float32-result",
        "the result is float32 whatever the query's dtype",
        spec.ATTN_14,
        promotes(),
        "the course's half-precision attention",
    ),
    Fault(
        "sdpa-float16-result",
        "the result is float16 whatever the query's dtype",
        spec.ATTN_14,
        promotes("float16"),
        ENGINEER,
    ),
    Fault(
        "sdpa-batch-added",
        "a query without leading dims comes back with a batch dim",
        spec.ATTN_14,
        {"finish": changes.adds_batch},
        ENGINEER,
    ),
    Fault(
        "sdpa-squeezed", "dims of size 1 are gone from the result", spec.ATTN_14, {"finish": changes.squeezes}, ENGINEER
    ),
    Fault(
        "sdpa-query-scaled-in-place", "the caller's query is scaled in place", spec.ATTN_15, mutates("query"), ENGINEER
    ),
    Fault("sdpa-key-changed", "the caller's key is changed", spec.ATTN_15, mutates("key"), ENGINEER),
    Fault("sdpa-mask-changed", "the caller's mask is changed", spec.ATTN_15, mutates("mask"), ENGINEER),
    Fault(
        "sdpa-scale-remembered",
        "the scale of the first call with these shapes is used for all",
        spec.ATTN_16,
        remembers("scale"),
        FLASHINFER + "commit/82784bb11",
    ),
    Fault(
        "sdpa-mask-remembered-by-identity",
        "what a mask was made into is kept by its id, which another mask has when the first one is gone",
        spec.ATTN_16,
        remembers_by_identity("mask"),
        ENGINEER,
    ),
    Fault(
        "sdpa-mask-remembered",
        "the mask of the first call with these shapes is used for all",
        spec.ATTN_16,
        remembers("mask"),
        FLASHINFER + "commit/82784bb11",
    ),
    Fault(
        "sdpa-key-remembered",
        "the key heads of the first call with these shapes, repeated once, are used for all",
        spec.ATTN_16,
        remembers("key"),
        ENGINEER,
    ),
    Fault(
        "sdpa-value-remembered-under-a-mask",
        "the value of the first masked call with these shapes is used for all masked ones",
        spec.ATTN_16,
        only_where(lambda a: a.mask is not None, remembers("value")),
        ENGINEER,
    ),
    Fault("sdpa-drifting", "every repeated call is larger", spec.ATTN_16, drifts(), ENGINEER),
    Fault(
        "sdpa-unknown-mask-is-none",
        "an unknown mask name hides nothing",
        spec.ATTN_17,
        {
            "guard_mask": heads.guards_arrays_only,
            "named_mask": lambda self, name, length, keys: (
                changes.CORE.named_mask(name, length, keys) if name == "causal" else np.zeros(())
            ),
        },
        "real code written from the seeds",
    ),
    Fault(
        "sdpa-unknown-mask-is-causal",
        "any mask name means causal",
        spec.ATTN_17,
        {"guard_mask": heads.guards_arrays_only},
        ENGINEER,
    ),
    Fault(
        "sdpa-mask-cropped",
        "a mask that does not broadcast is cropped or repeated",
        spec.ATTN_17,
        {
            "guard_mask": heads.guards_names_only,
            **changes.reshapes(
                lambda a: {
                    "mask": changes.wrapped(a.mask, masks.full_mask(a)) if isinstance(a.mask, np.ndarray) else a.mask
                }
            ),
        },
        ENGINEER,
    ),
    Fault(
        "sdpa-heads-floor-divided",
        "head counts that do not divide are rounded down",
        spec.ATTN_17,
        {"guard_heads": lambda self, a: None, "key_heads": changes.heads_floor_divided},
        ENGINEER,
    ),
    Fault(
        "sdpa-fewer-values-taken",
        "keys past the last value are left out",
        spec.ATTN_17,
        {"guard_lengths": changes.fewer_values_taken, **changes.reshapes(changes.keys_with_a_value)},
        ENGINEER,
    ),
    Fault(
        "sdpa-longer-mask-cut",
        "of a mask of more keys than there are the first are taken",
        spec.ATTN_17,
        masks.cuts(masks.first_keys),
        "eager_attention_forward of transformers 4",
    ),
    Fault(
        "sdpa-taller-mask-cut",
        "of a mask of more rows than queries the last are taken",
        spec.ATTN_17,
        masks.cuts(masks.last_rows),
        ENGINEER,
    ),
    Fault(
        "sdpa-mask-of-key-heads-repeated",
        "a mask of as many heads as the keys have is repeated for those of queries, as the keys are",
        spec.ATTN_17,
        masks.remade(masks.repeated_as_keys),
        ENGINEER,
    ),
    Fault(
        "sdpa-hidden-heads-stale",
        "of heads that see no key those past the first keep what the head before left",
        spec.ATTN_07,
        {"finish": attention_weights.hidden_heads_as_before},
        ENGINEER,
    ),
    Fault(
        "sdpa-values-cropped",
        "of values of another head dim than that of keys as many features are taken",
        spec.ATTN_17,
        changes.reshapes(attention_weights.values_cropped),
        ENGINEER,
    ),
    Fault(
        "sdpa-dims-cropped",
        "of differing head dims or lengths the smaller is taken",
        spec.ATTN_17,
        {"guard_lengths": lambda self, a: None, **changes.reshapes(changes.cropped_dims)},
        ENGINEER,
    ),
    Fault(
        "sdpa-tail-keys-dropped",
        "keys past a multiple of 32 are dropped",
        spec.ATTN_18,
        attention_weights.softmax_by(attention_weights.tail_keys_dropped),
        TINY_LLM + "commit/657c0b3",
    ),
    Fault(
        "sdpa-tail-padding-counted",
        "the last tile is filled up with keys of logit 0",
        spec.ATTN_18,
        {"weights": attention_weights.tail_padding_counted},
        FLASHINFER + "commit/16cb9e493",
    ),
    Fault(
        "sdpa-last-of-full-tile-dropped",
        "the last key is dropped when S is a multiple of 32",
        spec.ATTN_18,
        attention_weights.softmax_by(attention_weights.last_of_full_tile_dropped),
        ENGINEER,
    ),
    Fault(
        "sdpa-ends-of-large-tiles-dropped",
        "from 3000 keys on they are taken 2048 at a time, and the last of each part but the last is never read",
        spec.ATTN_18,
        attention_weights.softmax_by(attention_weights.ends_of_tiles_dropped(2048, 3000)),
        ENGINEER,
    ),
    Fault(
        "sdpa-last-of-96-keys-dropped",
        "the last key is dropped when S is a multiple of 96",
        spec.ATTN_18,
        attention_weights.softmax_by(attention_weights.last_of_96_keys_dropped),
        ENGINEER,
    ),
    Fault(
        "sdpa-query-past-blocks-of-48",
        "a query that is one more than blocks of 48 is never written",
        spec.ATTN_18,
        last_past_tiles_unwritten(48, 1, -2),
        ENGINEER,
    ),
    Fault(
        "sdpa-causal-one-short-of-tiles",
        "of tiles of 32 keys that lack one, the causal mask hides the last key",
        spec.ATTN_18,
        masks.LAST_KEY_OF_A_TILE_BUT_ONE,
        ENGINEER,
    ),
    Fault(
        "sdpa-never-rescaled",
        "earlier tiles of keys are not rescaled when the maximum grows",
        spec.ATTN_18,
        {"weights": attention_weights.never_rescaled},
        ENGINEER,
    ),
    Fault(
        "sdpa-halves-not-rescaled",
        "from 1024 keys on, a single query's two halves are merged without their maxima",
        spec.ATTN_18,
        {"weights": attention_weights.halves_not_rescaled},
        MLX + "issues/4022",
    ),
    Fault(
        "sdpa-tail-queries-unwritten",
        "queries past a multiple of 32 are never written",
        spec.ATTN_18,
        leaves_unwritten(attention_weights.without_tail_queries),
        TINY_LLM + "commit/657c0b3",
    ),
    Fault(
        "sdpa-tail-dims-dropped",
        "head dims past a multiple of 64 do not enter the logits",
        spec.ATTN_18,
        changes.reshapes(changes.tail_dims_dropped),
        ENGINEER,
    ),
    Fault(
        "sdpa-decode-first-key",
        "a single causal query sees key 0 only",
        spec.ATTN_19,
        masks.DECODE_FIRST_KEY,
        TINY_LLM + "commit/0c1ae4b",
    ),
    Fault(
        "sdpa-decode-not-last",
        "a single causal query sees all but the last key",
        spec.ATTN_19,
        masks.DECODE_NOT_LAST,
        ENGINEER,
    ),
    Fault(
        "sdpa-causal-whole-chunks",
        "the offset of a chunk of queries is rounded down to whole chunks",
        spec.ATTN_19,
        masks.WHOLE_CHUNKS,
        ENGINEER,
    ),
    Fault(
        "sdpa-long-prompts-of-a-batch",
        "of several sequences of 128 queries and more the last feature is not written",
        spec.ATTN_12,
        lacks_a_feature(attention_paths.long_prompts_of_a_batch),
        ENGINEER,
    ),
    *of_paths(
        "sdpa",
        {
            "heads": spec.ATTN_03,
            "mask": spec.ATTN_04,
            "causal": spec.ATTN_05,
            "batch": spec.ATTN_12,
            "strides": spec.ATTN_13,
            "sizes": spec.ATTN_18,
            "values": spec.ATTN_17,
            "range": spec.ATTN_10,
            "empty": spec.ATTN_07,
            "nan": spec.ATTN_20,
        },
    ),
)
