"""Does an implementation of multi-head attention keep the contract?"""

import numpy as np

from inferspec.conformance.inputs.attention_lengths import (
    groups_over_many,
    over_splits,
    prompts,
    ragged_tiles,
    short_prompts,
    square_prompts,
    whole_or_thousands,
)
from inferspec.conformance.inputs.attention_masks import (
    ARRAYS,
    ENCODINGS,
    HIDDEN_STRETCHES,
    masks_in_a_row,
    without_a_stretch,
)
from inferspec.conformance.inputs.attention_multi_head import (
    heads_on_other_paths,
    multi_head_calls,
    routed_heads,
    with_loud_last_token,
    with_loud_padding,
)
from inferspec.conformance.properties.common import (
    depends_on_arguments_alone,
    keeps_arguments,
    refuses,
    returns,
    serves_more_and_fewer,
)
from inferspec.conformance.strategies import MOSTLY_SLICES, among, in_views, in_views_of_each, seeds
from inferspec.conformance.suite import requirement
from inferspec.spec import attention as spec

many_rows_of_heads = multi_head_calls(shapes=ragged_tiles, free_head_dim=[False], heads=(1, 3), dims=(5, 3, 33))


@requirement(spec.MHA_01, call=multi_head_calls(masks=["none"], free_head_dim=[False]))
def test_multi_head_attention_projects_attends_and_projects_back(subject, call):
    subject.agrees(call)


@requirement(spec.MHA_02, routed=routed_heads(masks=["none"], free_head_dim=[False]))
def test_heads_are_consecutive_features(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.MHA_02,
    call=multi_head_calls(heads=(16, 9, 12, 32), dims=(2, 3, 4), free_head_dim=[False]),
    share=0.1,
)
def test_dozens_of_heads_are_split_and_merged_in_order(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(
    spec.MHA_02,
    call=multi_head_calls(heads=(40, 14, 6, 7, 64), dims=(2, 4), free_head_dim=[False], longest=4),
    share=0.1,
)
def test_numbers_of_heads_that_are_no_powers_of_two_and_as_large_models_have_are_right(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(spec.MHA_03, call=multi_head_calls(masks=["none"], free_head_dim=[True]))
def test_the_head_dim_comes_from_the_weights(subject, call):
    subject.agrees(call)


@requirement(spec.MHA_03, call=multi_head_calls(masks=["causal", "bool"], free_head_dim=[True]), share=0.3)
def test_the_head_dim_comes_from_the_weights_under_a_mask_too(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(
    spec.MHA_01,
    call=multi_head_calls(masks=["none"], heads=(2, 4), dims=(64, 128), leading_dims=[(1,)], free_head_dim=[False]),
    share=0.2,
)
def test_heads_of_models_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.MHA_01,
    call=multi_head_calls(heads=(2, 1), dims=(96, 256, 1), leading_dims=[(1,)], free_head_dim=[False], longest=4),
    share=0.1,
)
def test_heads_of_other_models_are_right(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(
    spec.MHA_01,
    call=multi_head_calls(
        heads=(2, 1), dims=(4, 3), hidden=(1030, 2050), leading_dims=[(1,)], free_head_dim=[True], longest=3
    ),
    share=0.1,
)
def test_as_many_features_as_models_have_are_right(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(spec.MHA_01, call=multi_head_calls(masks=["none"], free_head_dim=[False], longest=70), share=0.5)
def test_long_sequences_of_multi_head_attention_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.MHA_01,
    call=multi_head_calls(masks=["none", "causal"], free_head_dim=[False], relation="L=S"),
    shared=among([("query", "key", "value"), ("key", "value"), ("query", "key")]),
    share=0.15,
)
def test_one_array_may_be_query_key_and_value(subject, call, shared):
    subject.agrees(call.sharing(*shared))


@requirement(spec.MHA_04, call=multi_head_calls(free_head_dim=[False], longest=70), share=1.3)
def test_long_masks_act_on_every_head(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(
    spec.MHA_04,
    call=multi_head_calls(
        masks=["causal"],
        shapes=prompts,
        heads=(2, 3),
        dims=(2, 4),
        leading_dims=[(1,), (2,)],
        free_head_dim=[False],
    ),
    share=0.05,
)
def test_prompts_of_hundreds_of_tokens_are_right(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(
    spec.MHA_04,
    call=multi_head_calls(
        masks=["none", "causal"],
        shapes=whole_or_thousands,
        dtypes=["float32"],
        heads=(2, 3),
        dims=(2, 4),
        leading_dims=[(1,), (2,)],
        free_head_dim=[False],
    ),
    share=0.1,
)
def test_whole_tiles_and_thousands_of_keys_are_right(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(
    spec.MHA_04, call=multi_head_calls(masks=["causal", "bool", "-inf", "lowest", "additive"], free_head_dim=[False])
)
def test_masks_act_on_every_head(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(
    spec.MHA_04,
    call=multi_head_calls(
        masks=["causal", "bool", "additive"],
        heads=(2, 1),
        dims=(128,),
        leading_dims=[(2,), (1,)],
        free_head_dim=[False],
        longest=9,
    ),
    share=0.05,
)
def test_masks_act_on_heads_of_128_features(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(spec.MHA_04, call=multi_head_calls(masks=["bool", "-inf", "lowest"], free_head_dim=[False]), share=0.1)
def test_what_a_mask_hides_is_hidden_however_loud_it_is(subject, call):
    subject.agrees(with_loud_padding(call))


@requirement(
    spec.MHA_04,
    call=multi_head_calls(masks=["causal"], free_head_dim=[False], relation="L=S"),
    share=0.1,
)
def test_a_later_token_is_hidden_however_loud_it_is(subject, call):
    length = call.arguments["query"].shape[-2]
    subject.agrees(with_loud_last_token(call), where=np.arange(length)[:, None] < length - 1)


@requirement(
    spec.MHA_04, call=multi_head_calls(masks=ARRAYS, leading_dims=[(2,)], heads=(2,), free_head_dim=[False]), share=0.1
)
def test_a_mask_of_three_axes_is_that_of_heads_where_there_are_as_many_sequences(subject, call):
    query, keys = call.arguments["query"], call.arguments["key"].shape[-2]
    whole = np.broadcast_to(call.arguments["mask"], (len(query), 2, query.shape[-2], keys))
    by_heads = call.having(mask=np.stack([whole[0, 0], whole[1, 1][::-1]]))
    subject.agrees(by_heads, where=_seeing_rows(by_heads))


@requirement(spec.MHA_05, call=multi_head_calls(leading_dims=[(2,), (2, 3)], free_head_dim=[False]))
def test_multi_head_rows_of_a_batch_are_independent(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(
    spec.MHA_05,
    call=multi_head_calls(
        masks=["none"],
        leading_dims=[(9,)],
        free_head_dim=[False],
        batches=(17, 33, 65, 129),
        longest=4,
        heads=(1, 2, 3),
    ),
    share=0.1,
)
def test_multi_head_rows_of_large_batches_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.MHA_05,
    call=multi_head_calls(masks=["none"], leading_dims=[(2,), (2, 3)], free_head_dim=[False]),
    name=among(["query", "key", "value"]),
    share=0.2,
)
def test_a_nan_stays_in_its_row_of_the_batch(subject, call, name):
    x = call.arguments[name].copy()
    x[-1] = np.nan
    others = np.arange(len(x)).reshape(-1, *(1,) * (x.ndim - 1)) < len(x) - 1
    subject.agrees(call.having(**{name: x}), where=others)


@requirement(spec.MHA_06, call=in_views(multi_head_calls(free_head_dim=[False])))
def test_multi_head_reads_strided_arguments(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(spec.MHA_06, call=in_views(many_rows_of_heads, "query", "key", "value", views=MOSTLY_SLICES), share=0.85)
def test_multi_head_reads_many_rows_through_their_strides(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(spec.MHA_06, call=in_views(many_rows_of_heads, "wq", "wk", "wv", "wo", views=MOSTLY_SLICES), share=0.8)
def test_multi_head_reads_weights_of_many_rows_through_their_strides(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(spec.MHA_06, call=in_views(multi_head_calls(free_head_dim=[False]), "query", "key", "value"))
def test_multi_head_reads_strided_inputs(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(spec.MHA_06, call=in_views(multi_head_calls(masks=["causal"], free_head_dim=[False])), share=0.3)
def test_causal_multi_head_reads_strided_arguments(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(spec.MHA_07, call=multi_head_calls(free_head_dim=[False], longest=40))
def test_multi_head_keeps_shape_and_dtype(subject, call):
    returns(subject, call, call.arguments["query"].shape, call.features["dtypes"])


@requirement(spec.MHA_08, call=multi_head_calls(free_head_dim=[False], longest=40))
def test_multi_head_changes_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.MHA_08, call=multi_head_calls(masks=["causal"], free_head_dim=[False]), share=0.3)
def test_causal_multi_head_changes_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.MHA_09, call=multi_head_calls(masks=["none"], free_head_dim=[False]))
def test_multi_head_depends_on_its_arguments_alone(subject, call):
    other = call.having(**{name: -call.arguments[name] for name in ("query", "key", "value")})
    depends_on_arguments_alone(subject, call.kept(0), other.kept(0))


@requirement(
    spec.MHA_09, call=multi_head_calls(masks=["none"], heads=(4, 2, 8), free_head_dim=[False], longest=5), share=0.2
)
def test_another_number_of_heads_in_between_changes_nothing(subject, call):
    depends_on_arguments_alone(subject, call, call.having(num_heads=call.arguments["num_heads"] // 2))


@requirement(spec.MHA_09, call=multi_head_calls(masks=["none", "causal"], free_head_dim=[False]), share=0.15)
def test_one_object_attends_over_few_tokens_more_and_few(subject, call):
    serves_more_and_fewer(subject, call, "query", "key", "value", where=_seeing_rows)


@requirement(
    spec.MHA_09,
    call=multi_head_calls(masks=["none", "causal"], leading_dims=[(2,), (2, 3)], free_head_dim=[False]),
    share=0.1,
)
def test_one_object_attends_over_a_sequence_a_batch_and_a_sequence(subject, call):
    serves_more_and_fewer(subject, call, "query", "key", "value", axis=0, where=_seeing_rows)


@requirement(spec.MHA_09, call=multi_head_calls(masks=["none"], heads=(4, 2, 8), free_head_dim=[False]), share=0.1)
def test_two_objects_keep_to_their_own_weights_and_heads(subject, call):
    weights = {name: call.arguments[name] for name in ("wq", "wk", "wv", "wo")}
    # Signs of all would cancel out.
    changed = {name: -x if name in ("wq", "wo") else x[::-1] for name, x in weights.items()}
    other = call.having(num_heads=call.arguments["num_heads"] // 2, **changed)
    depends_on_arguments_alone(subject, call.kept(0), other.kept(1))


@requirement(spec.MHA_09, call=multi_head_calls(masks=["causal", "bool", "additive"], free_head_dim=[False]), share=0.2)
def test_a_mask_does_not_stay_for_calls_without_one(subject, call):
    depends_on_arguments_alone(subject, call.kept(0), call.having(mask=None).kept(0), where=_seeing_rows(call))


@requirement(spec.MHA_09, call=multi_head_calls(masks=["causal", "bool"], free_head_dim=[False]), share=0.5)
def test_other_inputs_under_a_mask_in_between_change_nothing(subject, call):
    other = call.having(**{name: -call.arguments[name] for name in ("query", "key", "value")})
    depends_on_arguments_alone(subject, call.kept(0), other.kept(0), where=_seeing_rows(call))


@requirement(
    spec.MHA_09,
    call=multi_head_calls(free_head_dim=[False]),
    name=among(["wq", "wk", "wv", "wo"]),
    share=0.6,
)
def test_other_weights_in_between_change_nothing(subject, call, name):
    other = call.having(**{name: -call.arguments[name]})
    depends_on_arguments_alone(subject, call, other, where=_seeing_rows(call))


@requirement(spec.MHA_09, call=many_rows_of_heads, name=among(["query", "key", "value"]), share=0.5)
def test_other_inputs_of_many_rows_in_between_change_nothing(subject, call, name):
    other = call.having(**{name: -call.arguments[name]})
    depends_on_arguments_alone(subject, call, other, where=_seeing_rows(call))


@requirement(spec.MHA_09, call=many_rows_of_heads, name=among(["wq", "wk", "wv", "wo"]), share=0.5)
def test_other_weights_of_many_rows_in_between_change_nothing(subject, call, name):
    other = call.having(**{name: -call.arguments[name]})
    depends_on_arguments_alone(subject, call, other, where=_seeing_rows(call))


@requirement(spec.MHA_09, call=multi_head_calls(masks=["bool"], free_head_dim=[False]))
def test_another_mask_of_multi_head_attention_in_between_changes_nothing(subject, call):
    other = call.having(mask=np.ones_like(call.arguments["mask"]))
    depends_on_arguments_alone(subject, call.kept(0), other.kept(0))


@requirement(
    spec.MHA_09,
    call=multi_head_calls(masks=["bool", "additive", "-inf"], free_head_dim=[False]),
    seed=seeds,
    share=0.3,
)
def test_masks_of_multi_head_attention_in_a_row_are_read_each_for_itself(subject, call, seed):
    for mask in masks_in_a_row(call, seed):
        subject.agrees(call.having(mask=mask))


@requirement(
    spec.MHA_11, call=multi_head_calls(masks=["none"], leading_dims=[(2,), (2, 3)]), axis=among([0, -2]), share=0.2
)
def test_no_queries_or_an_empty_batch_give_nothing(subject, call, axis):
    names = ("query", "key", "value") if axis == 0 or True not in subject.envelope["other_lengths"] else ("query",)
    empty = call.having(**{name: call.arguments[name].take([], axis) for name in names})
    subject.expects(empty, np.zeros(empty.arguments["query"].shape))


@requirement(
    spec.MHA_10,
    call=multi_head_calls(masks=["none"], free_head_dim=[False]),
    bad=among(["wq", "wk", "wv", "wo", "heads"]),
)
def test_weights_of_other_shapes_are_refused(subject, call, bad):
    if bad == "heads":
        rows = call.arguments["wq"].shape[0]
        refuses(subject, call.having(num_heads=next(n for n in range(2, rows + 2) if rows % n)))
        return
    weight = call.arguments[bad]
    refuses(subject, call.having(**{bad: np.concatenate([weight, weight[:, :1]], axis=1)}))


@requirement(
    spec.MHA_01,
    call=multi_head_calls(
        masks=["none", "causal"], shapes=short_prompts, heads=(2, 4), dims=(64, 80), free_head_dim=[False]
    ),
    share=0.05,
)
def test_prompts_of_heads_of_models_are_right(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(
    spec.MHA_02,
    call=multi_head_calls(
        masks=["none", "causal"], shapes=short_prompts, heads=(12, 16, 9), dims=(4, 8), free_head_dim=[False]
    ),
    share=0.05,
)
def test_prompts_of_a_dozen_heads_are_right(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(
    spec.MHA_04,
    call=multi_head_calls(masks=ARRAYS, shapes=groups_over_many, heads=(2, 3), dims=(2, 4), free_head_dim=[False]),
    share=0.05,
)
def test_masks_over_hundreds_of_keys_act_on_every_head(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(
    spec.MHA_04,
    call=multi_head_calls(masks=ENCODINGS, shapes=over_splits, heads=(2, 3), dims=(2, 4), free_head_dim=[False]),
    hidden=among(HIDDEN_STRETCHES),
    share=0.05,
)
def test_parts_of_many_keys_that_a_mask_hides_change_nothing_of_any_head(subject, call, hidden):
    call = without_a_stretch(call, *hidden)
    subject.agrees(call, where=_seeing_rows(call))


@requirement(
    spec.MHA_05,
    call=multi_head_calls(
        masks=["none", "causal"],
        shapes=square_prompts,
        batches=(9, 17),
        leading_dims=[(9,)],
        heads=(2, 1),
        dims=(2, 4),
        free_head_dim=[False],
    ),
    share=0.05,
)
def test_prompts_of_many_sequences_of_multi_head_attention_are_right(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


# heads of many features or of free sizes, many of them, and a token after many others


@requirement(spec.MHA_04, call=heads_on_other_paths(masks=["causal", "bool", "-inf", "lowest", "additive"]), share=0.3)
def test_masks_act_on_heads_on_other_paths(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(spec.MHA_05, call=heads_on_other_paths(leading_dims=[(2,), (2, 3)]), share=0.3)
def test_batches_of_heads_on_other_paths_are_the_stack_of_their_rows(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(
    spec.MHA_06,
    call=in_views_of_each(heads_on_other_paths, "query", "key", "value", "wq", "wk", "wv", "wo"),
    share=0.6,
)
def test_multi_head_reads_strided_arguments_on_other_paths(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(
    spec.MHA_06,
    call=in_views(multi_head_calls(masks=ARRAYS, leading_dims=[(2,), (9,)], heads=(2, 3, 5)), "mask"),
    share=0.5,
)
def test_multi_head_reads_masks_of_batches_through_their_strides(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(spec.MHA_07, call=heads_on_other_paths, share=0.3)
def test_multi_head_keeps_shape_and_dtype_on_other_paths(subject, call):
    returns(subject, call, call.arguments["query"].shape, call.features["dtypes"])


@requirement(spec.MHA_08, call=heads_on_other_paths, share=0.3)
def test_multi_head_changes_no_argument_on_other_paths(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.MHA_09, call=heads_on_other_paths, name=among(["key", "wv"]), share=0.7)
def test_other_arguments_in_between_change_nothing_on_other_paths(subject, call, name):
    other = call.having(**{name: -call.arguments[name]})
    depends_on_arguments_alone(subject, call, other, where=_seeing_rows(call))


# one array for query, key and value, whose projections can be joined


@requirement(spec.MHA_03, call=multi_head_calls(masks=["none"], free_head_dim=[True], relation="L=S"), share=0.06)
def test_the_head_dim_comes_from_the_weights_in_self_attention_too(subject, call):
    subject.agrees(_of_one_array(call))


@requirement(spec.MHA_04, call=multi_head_calls(masks=ARRAYS, free_head_dim=[False], relation="L=S"), share=0.1)
def test_masks_act_on_every_head_of_self_attention(subject, call):
    subject.agrees(_of_one_array(call), where=_seeing_rows(call))


@requirement(spec.MHA_06, call=in_views(multi_head_calls(free_head_dim=[False], relation="L=S"), "query"), share=0.1)
def test_self_attention_reads_a_strided_array(subject, call):
    subject.agrees(_of_one_array(call), where=_seeing_rows(call))


@requirement(spec.MHA_07, call=multi_head_calls(free_head_dim=[False], relation="L=S"), share=0.06)
def test_self_attention_keeps_shape_and_dtype(subject, call):
    returns(subject, _of_one_array(call), call.arguments["query"].shape, call.features["dtypes"])


@requirement(spec.MHA_08, call=multi_head_calls(free_head_dim=[False], relation="L=S"), share=0.06)
def test_self_attention_changes_no_argument(subject, call):
    keeps_arguments(subject, _of_one_array(call))


@requirement(spec.MHA_09, call=multi_head_calls(free_head_dim=[False], relation="L=S"), share=0.1)
def test_other_self_attention_in_between_changes_nothing(subject, call):
    other = call.having(**{name: -call.arguments[name] for name in ("query", "wq")})
    depends_on_arguments_alone(subject, _of_one_array(call), _of_one_array(other), where=_seeing_rows(call))


# one array for key and value, as where a decoder attends to an encoder


@requirement(spec.MHA_03, call=multi_head_calls(masks=["none"], free_head_dim=[True]), share=0.06)
def test_the_head_dim_comes_from_the_weights_where_one_array_is_key_and_value(subject, call):
    subject.agrees(call.sharing("key", "value"))


@requirement(spec.MHA_04, call=multi_head_calls(masks=["causal", *ARRAYS], free_head_dim=[False]), share=0.1)
def test_masks_act_where_one_array_is_key_and_value(subject, call):
    subject.agrees(call.sharing("key", "value"), where=_seeing_rows(call))


@requirement(spec.MHA_06, call=in_views(multi_head_calls(free_head_dim=[False]), "key"), share=0.1)
def test_one_strided_array_may_be_key_and_value(subject, call):
    subject.agrees(call.sharing("key", "value"), where=_seeing_rows(call))


@requirement(spec.MHA_09, call=multi_head_calls(free_head_dim=[False]), share=0.1)
def test_another_array_for_key_and_value_in_between_changes_nothing(subject, call):
    other = call.having(**{name: -call.arguments[name] for name in ("key", "wk")})
    shared = (one.sharing("key", "value") for one in (call, other))
    depends_on_arguments_alone(subject, *shared, where=_seeing_rows(call))


def _of_one_array(call):
    """The call with one array for query, key and value."""
    return call.sharing("query", "key", "value")


def _seeing_rows(call):
    """N..×L×1: rows of multi-head attention in which every head sees a key."""
    operation = spec.MultiHeadAttention()
    bias = operation.core.bias(operation.bind(call.arguments))
    query, keys = call.arguments["query"], call.arguments["key"].shape[-2]
    shape = (*query.shape[:-2], call.arguments["num_heads"], query.shape[-2], keys)
    return np.isfinite(np.broadcast_to(bias, shape)).any(-1).all(-2)[..., None]
