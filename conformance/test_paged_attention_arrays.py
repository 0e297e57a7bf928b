"""Does an implementation of paged attention take its arrays as it should: views, other integers, what is refused, and none?"""

import numpy as np

from inferspec.conformance.inputs.attention import PROJECTED
from inferspec.conformance.inputs.paged_attention import (
    PAGES,
    SPLIT,
    SPOILT,
    a_draft,
    any_context,
    block_of_queries,
    hundreds_of_tokens,
    misdirected,
    mixed_contexts,
    narrowed,
    of_other_values,
    paged_calls,
    past_splits,
    ragged_chunk,
    same_pages,
    seeing,
    small_chunk,
    spoilt,
    with_another_table,
    with_nan,
)
from inferspec.conformance.properties.common import (
    depends_on_arguments_alone,
    keeps_arguments,
    reads_what_was_written,
    refuses,
    returns,
)
from inferspec.conformance.strategies import (
    MOSTLY_SLICES,
    WIDE_VIEWS,
    among,
    any_of,
    bottom_up,
    in_views,
    in_views_of_each,
    seeds,
)
from inferspec.conformance.suite import requirement
from inferspec.spec import paged_attention as spec

PARTS = ["query", "key_pages", "value_pages"]

FEW_OR_MANY = any_of(small_chunk, ragged_chunk)


@requirement(spec.PAGED_21, call=in_views(paged_calls()), share=0.8)
def test_paged_attention_reads_a_strided_argument_like_its_copy(subject, call):
    subject.agrees(call)


@requirement(
    spec.PAGED_21,
    call=in_views(
        paged_calls(chunk=ragged_chunk, amplitude=(1.0,), queries=["several"]),
        "query",
        "key_pages",
        "value_pages",
        views=MOSTLY_SLICES,
    ),
    share=0.65,
)
def test_paged_attention_reads_many_queries_through_their_strides(subject, call):
    subject.agrees(call)


@requirement(
    spec.PAGED_21,
    call=in_views(
        paged_calls(
            contexts=hundreds_of_tokens,
            queries=["several"],
            chunk=any_of(a_draft, ragged_chunk),
            amplitude=(1.0,),
            rows=(1, 2),
            **PAGES,
        ),
        "query",
        "key_pages",
        "block_table",
        views=PROJECTED,
    ),
    share=0.5,
)
def test_paged_attention_reads_drafts_and_chunks_of_models_through_their_strides(subject, call):
    subject.agrees(call)


@requirement(
    spec.PAGED_21, call=in_views_of_each(paged_calls(amplitude=(1.0,)), "query", "key_pages", "value_pages"), share=0.1
)
def test_paged_attention_reads_views_of_several_kinds_at_once(subject, call):
    subject.agrees(call)


@requirement(spec.PAGED_21, call=paged_calls(queries=["several"]), share=0.1)
def test_paged_attention_reads_tokens_that_lie_backwards_like_their_copies(subject, call):
    subject.agrees(bottom_up(call, "query", "key_pages", "value_pages"))


@requirement(spec.PAGED_21, call=in_views(paged_calls(rows=(2, 4)), "block_table", "context_lens"), share=0.3)
def test_paged_attention_reads_a_strided_table_like_its_copy(subject, call):
    subject.agrees(call)


@requirement(
    spec.PAGED_21,
    call=in_views(
        paged_calls(contexts=any_of(any_context, hundreds_of_tokens), amplitude=(1.0,), rows=(1, 2)),
        "key_pages",
        "value_pages",
        views=["joint"],
    ),
    share=0.3,
)
def test_pages_of_keys_and_of_values_may_lie_beside_each_other(subject, call):
    subject.agrees(call)


@requirement(
    spec.PAGED_21, call=in_views(paged_calls(), "query", "key_pages", "value_pages", views=["beginning"]), share=0.15
)
def test_the_rows_and_pages_in_use_of_longer_buffers_are_read_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.PAGED_21, call=in_views(paged_calls(rows=(2, 4)), "context_lens"), share=0.2)
def test_paged_attention_reads_strided_lengths_like_their_copy(subject, call):
    subject.agrees(call)


@requirement(spec.PAGED_21, call=in_views(paged_calls(dtypes=["float32"])), share=0.3)
def test_paged_attention_reads_strided_float32_like_its_copy(subject, call):
    subject.agrees(call)


@requirement(spec.PAGED_21, call=in_views(paged_calls(**SPLIT, most_heads=1, amplitude=(1.0,))), share=0.3)
def test_contexts_that_kernels_split_are_read_through_strides(subject, call):
    subject.agrees(call)


@requirement(
    spec.PAGED_21,
    call=in_views(
        paged_calls(**{**SPLIT, "rows": (2, 3)}, most_heads=1, amplitude=(1.0,)), "block_table", "context_lens"
    ),
    share=0.4,
)
def test_tables_of_contexts_that_kernels_split_are_read_through_strides(subject, call):
    subject.agrees(call)


@requirement(
    spec.PAGED_21,
    call=in_views(
        paged_calls(
            contexts=mixed_contexts,
            chunk=block_of_queries,
            rows=(5, 9),
            most_heads=1,
            amplitude=(1.0,),
            ratios=[1, 2, 4],
            head_dims=[64, 32, 128],
            page_sizes=[16, 8, 3],
        ),
        "block_table",
        "context_lens",
        "query",
        views=WIDE_VIEWS,
    ),
    share=0.4,
)
def test_tables_lengths_and_queries_of_larger_batches_are_read_through_strides(subject, call):
    subject.agrees(call)


@requirement(spec.PAGED_22, call=paged_calls(chunk=FEW_OR_MANY), share=0.5)
def test_the_result_of_paged_attention_has_the_shape_and_dtype_of_the_query(subject, call):
    returns(subject, call, call.arguments["query"].shape, call.features["dtypes"])


@requirement(spec.PAGED_23, call=paged_calls(chunk=FEW_OR_MANY), share=0.5)
def test_paged_attention_changes_no_argument(subject, call):
    keeps_arguments(subject, misdirected(call, -1))


@requirement(spec.PAGED_24, call=paged_calls(amplitude=(1.0,)), seed=seeds, share=0.3)
def test_another_table_in_between_changes_nothing(subject, call, seed):
    depends_on_arguments_alone(subject, call, with_another_table(call, seed))


@requirement(spec.PAGED_24, call=paged_calls(chunk=FEW_OR_MANY, amplitude=(1.0,)), share=0.3)
def test_other_queries_in_between_change_nothing(subject, call):
    depends_on_arguments_alone(subject, call, call.having(query=-call.arguments["query"]))


@requirement(spec.PAGED_24, call=paged_calls(chunk=FEW_OR_MANY, amplitude=(1.0,)), seed=seeds, share=0.35)
def test_other_tokens_in_the_same_pages_change_nothing(subject, call, seed):
    depends_on_arguments_alone(subject, call, same_pages(call, np.random.default_rng(seed)))


@requirement(spec.PAGED_24, call=paged_calls(amplitude=(1.0,)), share=0.3)
def test_shorter_contexts_in_between_change_nothing(subject, call):
    lens = call.arguments["context_lens"]
    shorter = call.having(context_lens=((lens + 1) // 2).astype(lens.dtype))
    depends_on_arguments_alone(subject, call, shorter, where=seeing(shorter))


@requirement(spec.PAGED_24, call=paged_calls(amplitude=(1.0,)), seed=seeds, share=0.1)
def test_tokens_that_are_written_into_the_pages_are_read(subject, call, seed):
    reads_what_was_written(subject, call, same_pages(call, np.random.default_rng(seed)), "key_pages", "value_pages")


@requirement(spec.PAGED_24, call=paged_calls(amplitude=(1.0,)), seed=seeds, share=0.1)
def test_a_table_that_is_written_into_is_read(subject, call, seed):
    reads_what_was_written(subject, call, with_another_table(call, seed), "block_table")


@requirement(spec.PAGED_25, call=paged_calls(rows=(2, 4)), share=0.5)
def test_tables_and_lengths_may_be_integers_of_any_kind(subject, call):
    subject.agrees(call)


@requirement(spec.PAGED_26, call=paged_calls(rows=(1, 3)), bad=among(SPOILT), share=1.5)
def test_paged_attention_refuses_arguments_that_do_not_fit(subject, call, bad):
    refuses(subject, spoilt(call, bad))


@requirement(spec.PAGED_26, call=paged_calls(chunk=FEW_OR_MANY), more=among([1, -1, 3, 64]), share=0.2)
def test_values_of_another_head_dim_are_refused_or_right_in_paged_attention(subject, call, more):
    other = of_other_values(call, more)
    if not subject.observe(other).raised:
        subject.agrees(other)


@requirement(
    spec.PAGED_27,
    call=paged_calls(table_dtypes=["int32", "int64"]),
    bad=among(["negative", "too long", "no such page", "page -1"]),
    share=0.3,
)
def test_paged_attention_refuses_contexts_and_pages_that_are_not_there(subject, call, bad):
    table, lens = call.arguments["block_table"].copy(), call.arguments["context_lens"].copy()
    if bad == "negative":
        lens[-1] = -1
    elif bad == "too long":
        lens[-1] = table.shape[1] * call.arguments["page_size"] + 1
    else:
        table[-1, 0] = -1 if bad == "page -1" else call.arguments["key_pages"].shape[0]
    refuses(subject, call.having(block_table=table, context_lens=lens))


@requirement(spec.PAGED_30, call=paged_calls(), part=among(PARTS), share=0.3)
def test_a_nan_of_a_context_shows(subject, call, part):
    subject.agrees(with_nan(call, part))


@requirement(spec.PAGED_30, call=paged_calls(contexts=past_splits, rows=(1, 2)), part=among(PARTS), share=0.1)
def test_a_nan_shows_whatever_pages_come_after_it(subject, call, part):
    subject.agrees(with_nan(call, part))


@requirement(spec.PAGED_28, call=paged_calls(), axis=among(["rows", "queries"]), share=0.2)
def test_no_rows_or_no_queries_give_an_empty_result_of_paged_attention(subject, call, axis):
    query = call.arguments["query"][:, :, :0]
    alone = "several" not in subject.envelope["queries"]
    empty = narrowed(call, slice(0, 0)) if axis == "rows" or alone else call.having(query=query)
    subject.expects(empty, np.zeros(empty.arguments["query"].shape))
