"""Mistakes in how paged attention takes its arrays: views, dtypes, what is changed or remembered, and what is refused."""

from __future__ import annotations

import numpy as np

from inferspec.spec import paged_attention as spec
from inferspec.spec.changes import paged_attention as changes
from inferspec.spec.changes.attention import of_many_queries, reshapes, squeezes
from inferspec.spec.contract import Fault
from inferspec.spec.faults.attention_sources import ENGINEER, FLASHINFER, MLX, TINY_LLM
from inferspec.spec.faults.sources import BACKWARD_ROWS, BUFFER_IN_USE
from inferspec.spec.mistakes import (
    copies_the_first_view,
    drifts,
    ignores_strides,
    in_half,
    lacks_a_feature,
    mutates,
    only_where,
    paths_break_promises,
    paths_misread,
    promotes,
    refuses_empty,
    remembers,
    remembers_by_object,
    rows_in_order_of_memory,
    takes_all_that_lies_behind,
)

FAULTS: tuple[Fault, ...] = (
    *(
        Fault(
            f"paged-{name.replace('_', '-')}-strides",
            f"{name} is read as if it were contiguous",
            spec.PAGED_21,
            ignores_strides(name),
            MLX + "commit/005e7efa6",
        )
        for name in ("query", "key_pages", "value_pages")
    ),
    *paths_break_promises(
        "paged-many-queries",
        "of 16 queries and more in half precision",
        in_half(of_many_queries, "query"),
        spec.PAGED_22,
        spec.PAGED_23,
        spec.PAGED_24,
        ("query", "key_pages", "value_pages"),
    ),
    *paths_misread(
        "paged-many-queries",
        "of 16 queries and more in half precision",
        spec.PAGED_21,
        in_half(of_many_queries, "query"),
        {"query": -1, "key_pages": -1, "value_pages": None},
    ),
    Fault(
        "paged-whole-buffer",
        "queries or pages that are the beginning of a longer buffer are taken with the whole of it, and refused",
        spec.PAGED_21,
        takes_all_that_lies_behind("query", "key_pages", "value_pages"),
        BUFFER_IN_USE,
    ),
    Fault(
        "paged-block-table-strides",
        "block_table is read as if it were contiguous",
        spec.PAGED_21,
        {
            "respond": lambda self, a: ignores_strides("block_table")["respond"](self, a),
            "place": lambda self, a, row, p: changes.inside(
                a, changes.entries(a, row, p // a.page_size), p % a.page_size
            ),
        },
        ENGINEER,
    ),
    Fault(
        "paged-block-table-strides-of-larger-batches",
        "of more than four rows block_table is read as if it were contiguous",
        spec.PAGED_21,
        only_where(lambda a: len(a.query) > 4, ignores_strides("block_table")),
        ENGINEER,
    ),
    Fault(
        "paged-context-lens-strides-of-larger-batches",
        "of more than four rows context_lens is read as if it were contiguous",
        spec.PAGED_21,
        only_where(lambda a: len(a.query) > 4, {"respond": changes.misread_lengths}),
        ENGINEER,
    ),
    Fault(
        "paged-query-strides-of-larger-batches",
        "of more than four rows query is read as if it were contiguous",
        spec.PAGED_21,
        only_where(lambda a: len(a.query) > 4, ignores_strides("query")),
        ENGINEER,
    ),
    *(
        Fault(
            f"paged-backward-{name.replace('_', '-')}",
            f"tokens of {name} that lie backwards are read in the order in which they lie",
            spec.PAGED_21,
            rows_in_order_of_memory(name),
            f"the kind of {BACKWARD_ROWS}",
        )
        for name in ("query", "key_pages", "value_pages")
    ),
    Fault(
        "paged-block-table-strides-of-blocks-of-queries",
        "of more than eight queries block_table is read as if it were contiguous",
        spec.PAGED_21,
        only_where(lambda a: a.query.shape[-2] > 8, ignores_strides("block_table")),
        ENGINEER,
    ),
    Fault(
        "paged-context-lens-strides-of-common-heads",
        "of heads of 128 features context_lens is read as if it were contiguous",
        spec.PAGED_21,
        only_where(lambda a: a.query.shape[-1] == 128, {"respond": changes.misread_lengths}),
        ENGINEER,
    ),
    Fault(
        "paged-context-lens-strides",
        "context_lens is read as if it were contiguous",
        spec.PAGED_21,
        {"respond": changes.misread_lengths},
        ENGINEER,
    ),
    *(
        Fault(
            f"paged-{name.replace('_', '-')}-strides-in-float32",
            f"the path of float32 reads {name} as if it were contiguous",
            spec.PAGED_21,
            only_where(lambda a: a.query.dtype == np.float32, ignores_strides(name)),
            ENGINEER,
        )
        for name in ("query", "key_pages", "value_pages")
    ),
    Fault(
        "paged-float32-result",
        "the result is float32 whatever the query's dtype",
        spec.PAGED_22,
        promotes(),
        "the course's half-precision attention",
    ),
    Fault("paged-squeezed", "dims of size 1 are gone from the result", spec.PAGED_22, {"finish": squeezes}, ENGINEER),
    Fault("paged-query-scaled-in-place", "the caller's query is changed", spec.PAGED_23, mutates("query"), ENGINEER),
    Fault("paged-key-pages-changed", "the pool of keys is changed", spec.PAGED_23, mutates("key_pages"), ENGINEER),
    Fault(
        "paged-table-cleaned-in-place",
        "entries of the caller's table are set to 0",
        spec.PAGED_23,
        mutates("block_table"),
        ENGINEER,
    ),
    Fault(
        "paged-table-remembered",
        "the table of the first call with these shapes is used for all",
        spec.PAGED_24,
        remembers("block_table"),
        FLASHINFER + "commit/82784bb11",
    ),
    Fault(
        "paged-lengths-remembered",
        "the context_lens of the first call with these shapes are used for all",
        spec.PAGED_24,
        remembers("context_lens"),
        FLASHINFER + "commit/82784bb11",
    ),
    Fault(
        "paged-gathered-once",
        "what was gathered by a table is kept for all calls with that table",
        spec.PAGED_24,
        {"gathered": changes.gathers_once},
        ENGINEER,
    ),
    Fault(
        "paged-eight-heads-lack-a-feature",
        "of seven rows and more that decode, the last feature of eight key heads of 64 or 128 dims, in half precision, is not "
        "written",
        spec.PAGED_13,
        lacks_a_feature(
            lambda a: (
                len(a.query) > 6
                and a.query.shape[2] == 1
                and a.key_pages.shape[1] == 8
                and a.query.shape[3] in (64, 128)
                and a.query.dtype.itemsize == 2
            )
        ),
        ENGINEER,
    ),
    Fault(
        "paged-one-partition-beside-short-rows",
        "beside a row of no more than a page tokens past 512 are not read",
        spec.PAGED_13,
        changes.lengths(lambda a, row, length: min(length, 512) if a.context_lens.min() <= a.page_size else length),
        ENGINEER,
    ),
    Fault(
        "paged-large-groups-of-large-heads",
        "of groups of twelve heads and more, of 128 dims, the last feature is not written",
        spec.PAGED_05,
        lacks_a_feature(lambda a: a.query.shape[3] == 128 and a.query.shape[1] >= 12 * a.key_pages.shape[1]),
        ENGINEER,
    ),
    Fault(
        "paged-pools-made-once",
        "pools are converted once, for as long as they are the same arrays",
        spec.PAGED_24,
        remembers_by_object("key_pages", "value_pages"),
        ENGINEER,
    ),
    Fault(
        "paged-table-made-once",
        "a table is converted once, for as long as it is the same array",
        spec.PAGED_24,
        remembers_by_object("block_table"),
        ENGINEER,
    ),
    Fault("paged-drifting", "every repeated call is larger", spec.PAGED_24, drifts(), ENGINEER),
    *(
        Fault(
            f"paged-{name.replace('_', '-')}-as-int32",
            f"an int64 {name} is read as int32",
            spec.PAGED_25,
            changes.read_as_int32(name),
            ENGINEER,
        )
        for name in ("block_table", "context_lens")
    ),
    Fault(
        "paged-unknown-mask-is-causal",
        "any mask name means causal",
        spec.PAGED_26,
        {"guard_mask": lambda self, a: None, **reshapes(changes.any_mask_is_causal)},
        ENGINEER,
    ),
    Fault(
        "paged-page-size-of-pool",
        "a page_size that is not the pool's is ignored",
        spec.PAGED_26,
        changes.fits(changes.fitted_page_size),
        ENGINEER,
    ),
    Fault(
        "paged-smaller-page-size-taken",
        "a page_size below the pool's is taken",
        spec.PAGED_26,
        {"guard_shapes": changes.smaller_page_size_taken},
        ENGINEER,
    ),
    Fault(
        "paged-more-value-heads-taken",
        "values may have more heads than keys",
        spec.PAGED_26,
        {"guard_shapes": changes.more_value_heads_taken},
        ENGINEER,
    ),
    Fault(
        "paged-larger-pages-of-values-taken",
        "only the pages of keys are compared with page_size: those of values may be larger",
        spec.PAGED_26,
        {"guard_shapes": changes.larger_pages_of_values_taken},
        ENGINEER,
    ),
    Fault(
        "paged-rows-fitted",
        "of a table, lengths and queries of other batches the smallest is taken",
        spec.PAGED_26,
        changes.fits(changes.rows_fitted),
        ENGINEER,
    ),
    Fault(
        "paged-values-cropped",
        "of values of another head dim than that of keys as many features are taken",
        spec.PAGED_26,
        reshapes(changes.values_cropped),
        ENGINEER,
    ),
    Fault(
        "paged-values-of-the-width-of-keys",
        "the slots of values of another head dim are looked for where those of keys would lie",
        spec.PAGED_26,
        reshapes(changes.values_of_the_width_of_keys),
        ENGINEER,
    ),
    Fault(
        "paged-dims-cropped",
        "of differing head dims or pools the smaller is taken",
        spec.PAGED_26,
        changes.fits(changes.smaller_dims),
        ENGINEER,
    ),
    Fault(
        "paged-heads-floor-divided",
        "head counts that do not divide are rounded down",
        spec.PAGED_26,
        {
            "guard_heads": lambda self, a: None,
            "key_heads": changes.heads_floor_divided,
            "value_heads": changes.heads_floor_divided,
        },
        ENGINEER,
    ),
    Fault(
        "paged-lengths-clipped",
        "a context that is negative or too long is clipped to the table",
        spec.PAGED_27,
        {
            "guard_lengths": lambda self, a: None,
            "guard_pages": lambda self, a: None,
            **reshapes(changes.lengths_clipped),
        },
        TINY_LLM + "commit/00dbf5c",
    ),
    Fault(
        "paged-pages-wrapped",
        "a page outside of the pool wraps around",
        spec.PAGED_27,
        {"guard_pages": lambda self, a: None, **reshapes(changes.pages_wrapped)},
        TINY_LLM + "commit/00dbf5c",
    ),
    *(
        Fault(
            f"paged-joint-{name.replace('_', '-')}",
            f"whole {name.replace('_', ' ')} in half precision that do not follow each other are read as if they did",
            spec.PAGED_21,
            only_where(changes.of_joint_pages(name), ignores_strides(name)),
            "https://github.com/pytorch/torchtitan/issues/3235",
        )
        for name in ("key_pages", "value_pages")
    ),
    Fault(
        "paged-first-view-copied",
        "of queries and pages that lie in different ways, the first that is a view is copied, and the others are read as if "
        "they were contiguous",
        spec.PAGED_21,
        copies_the_first_view("query", "key_pages", "value_pages"),
        ENGINEER,
    ),
    Fault(
        "paged-empty-crash",
        "no rows or no queries end in an error of shapes",
        spec.PAGED_28,
        {"respond": refuses_empty("query")},
        "https://github.com/Dao-AILab/flash-attention/commit/484b9813",
    ),
)
