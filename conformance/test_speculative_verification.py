"""Does an implementation of the verification of drafts keep the contract?"""

from collections import Counter
from fractions import Fraction

import numpy as np

from inferspec.conformance.inputs.speculative import (
    ALMOST_ONE,
    HUGE,
    apart,
    equal,
    filtered,
    fine,
    fine_among_many,
    halves,
    impossible_drafts,
    nearly_equal,
    one_hot,
    pairs,
    possible,
    probabilities_in_views,
    rare,
    short,
    sparse,
    uneven,
    verify_calls,
)
from inferspec.conformance.judging.trial import Nonconformance
from inferspec.conformance.properties.common import (
    claimed,
    depends_on_arguments_alone,
    is_right_if_taken,
    keeps_arguments,
    listed,
    refuses,
)
from inferspec.conformance.strategies import HALF, among, bottom_up, in_views
from inferspec.conformance.suite import requirement
from inferspec.spec import speculative_sentences as spec
from inferspec.spec.lossless import cells, gone_on, joint

SEVERAL = (2, 3, 4, 5, 8)


@requirement(spec.SPEC_01, call=verify_calls())
def test_drafts_are_kept_up_to_the_first_that_is_not(subject, call):
    subject.agrees(call)


@requirement(
    spec.SPEC_01, call=verify_calls(rows=halves, level=True, ends="rejection", sizes=(4, 3, 5, 7, 12)), share=0.5
)
def test_a_draft_that_is_level_with_its_number_is_not_kept(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_02, call=verify_calls(ends="rejection"))
def test_a_rejected_draft_gives_way_to_what_the_target_has_more_of(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_03, call=verify_calls(ends="none", rows=equal))
def test_after_the_last_draft_comes_one_id_more(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_03, call=verify_calls(ends="none"), share=0.5)
def test_after_drafts_of_another_model_comes_one_id_more(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_04, call=verify_calls(counts=(0,)), share=0.5)
def test_of_no_drafts_comes_one_id(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_05, call=verify_calls(counts=SEVERAL))
def test_a_rejection_may_come_at_anyplace(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_05, call=verify_calls(counts=(65, 17, 33, 9), rows=fine), share=0.5)
def test_more_than_eight_drafts_are_looked_at(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_05, call=verify_calls(counts=(1, 2, 3), ends="rejection"), share=0.5)
def test_the_last_draft_or_the_only_one_may_be_rejected(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_06, call=verify_calls(rows=apart, edge=True))
def test_what_the_target_cannot_give_is_never_kept(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_06, call=impossible_drafts(given=False), share=0.25)
def test_what_neither_row_can_give_is_not_kept(subject, call):
    is_right_if_taken(subject, call)


@requirement(spec.SPEC_06, call=verify_calls(rows=equal, edge=True))
def test_what_the_target_gives_as_readily_is_always_kept(subject, call):
    keeps_all(subject, call)


@requirement(
    spec.SPEC_06, call=verify_calls(rows=rare, edge=True, sizes=(7, 4, 12), dtypes=["float32", "bfloat16"]), share=0.1
)
def test_a_rare_draft_that_the_target_gives_as_readily_is_always_kept(subject, call):
    keeps_all(subject, call)


def keeps_all(subject, call):
    """All drafts are kept, and one id more comes after them."""
    seen = subject.value(call)
    drafts = np.array(call.arguments["draft_tokens"])
    if len(seen) != len(drafts) + 1 or (seen[:-1] != drafts).any():
        raise Nonconformance(f"of drafts {listed(drafts)} from the target's own rows came {listed(seen)}", call)


@requirement(spec.SPEC_07, call=verify_calls(rows=one_hot, edge=True))
def test_rows_of_greedy_decoding_are_decided_exactly(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_08, pair=pairs(), share=0.2)
def test_what_comes_out_has_the_joint_distribution_of_the_target(subject, pair):
    outputs: Counter[tuple[int, ...]] = Counter()
    call = None
    for cell in cells(pair.pair):
        call = pair.call(cell)
        ids = tuple(int(token) for token in subject.value(call))
        if not (0 < len(ids) <= pair.pair.drafts + 1 and all(0 <= token < pair.pair.size for token in ids)):
            raise Nonconformance(f"{list(ids)} came of {pair.pair.drafts} drafts of {pair.pair.size} ids", call)
        outputs[ids] += cell.chance
    found, wanted = gone_on(pair.pair, outputs), joint(pair.pair)
    wrong = {text: found.get(text, Fraction(0)) for text in wanted if found.get(text, Fraction(0)) != wanted[text]}
    if wrong:
        text = max(wrong, key=lambda text: abs(wrong[text] - wanted[text]))
        raise Nonconformance(
            f"{list(text)} comes with probability {wrong[text]}, the target's is {wanted[text]} ({len(wrong)} outputs are "
            f"wrong); {pair!r}",
            call,
        )


@requirement(spec.SPEC_09, call=verify_calls(rows=apart, edge=True, ends="rejection"))
def test_no_impossible_id_comes_out(subject, call):
    _possible(subject, call)


@requirement(spec.SPEC_09, call=verify_calls(rows=uneven, sizes=(300, 1000), edge=True, dtypes=["float32"]), share=0.6)
def test_the_largest_uniform_numbers_give_an_id_of_the_vocabulary(subject, call):
    _possible(subject, call)


@requirement(spec.SPEC_09, call=verify_calls(rows=filtered, sizes=(2000, 600), dtypes=["float32"]), share=0.3)
def test_the_largest_uniform_number_gives_no_id_that_a_filter_took(subject, call):
    uniform = call.arguments["uniform"].copy()
    uniform[-1] = ALMOST_ONE
    _possible(subject, call.having(uniform=uniform))


@requirement(spec.SPEC_09, call=verify_calls(edge=True))
def test_a_rejected_draft_does_not_come_back(subject, call):
    _possible(subject, call)


def _possible(subject, call):
    """Every id that comes out is one that the target can give there, and none is the draft that it takes the place of."""
    a, seen = call.arguments, subject.value(call)
    for place, token in enumerate(seen.astype(int).tolist()):
        if not 0 <= token < a["target_probs"].shape[1] or not a["target_probs"][place, token] > 0:
            raise Nonconformance(f"id {token} comes out at place {place}, which the target cannot give there", call)
    last = len(seen) - 1
    if last < len(a["draft_tokens"]) and seen[last] == a["draft_tokens"][last]:
        raise Nonconformance(f"draft {int(seen[last])} was rejected and came back", call)


@requirement(spec.SPEC_10, call=verify_calls(rows=short, sizes=(4, 2, 3, 5, 7)))
def test_where_nothing_is_left_the_targets_row_is_drawn_from(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_11, call=verify_calls(rows=fine))
def test_probabilities_of_every_dtype_are_taken(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_11, call=verify_calls(rows=fine, close=True))
def test_probabilities_are_compared_in_float32(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_11, call=verify_calls(rows=fine, close=True, dtypes=HALF, target="float32"), share=0.2)
def test_drafts_in_half_precision_are_compared_in_float32_or_refused(subject, call):
    claimed(subject, "dtypes", "float32", ["float32"])
    is_right_if_taken(subject, call)


@requirement(
    spec.SPEC_55, call=verify_calls(rows=fine, near=True, ends="rejection", sizes=(12, 5, 24, 7, 300)), share=0.5
)
def test_what_is_left_is_summed_in_float32(subject, call):
    subject.agrees(call)


@requirement(
    spec.SPEC_55,
    call=verify_calls(rows=nearly_equal, near=True, ends="rejection", sizes=(12, 5, 24, 7), dtypes=["float32"]),
    share=0.3,
)
def test_what_is_left_of_nearly_equal_rows_is_their_difference(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_55, call=verify_calls(rows=fine, near=True, ends="none", sizes=(12, 5, 24, 7, 300)), share=0.5)
def test_the_row_after_all_drafts_is_summed_in_float32(subject, call):
    subject.agrees(call)


@requirement(
    spec.SPEC_55,
    call=verify_calls(rows=fine_among_many, near=True, ends="rejection", sizes=HUGE, counts=(1, 2)),
    share=0.2,
)
def test_what_is_left_of_a_large_vocabulary_is_summed_in_float32(subject, call):
    subject.agrees(call)


@requirement(
    spec.SPEC_55, call=verify_calls(rows=fine_among_many, near=True, ends="none", sizes=HUGE, counts=(1, 2)), share=0.15
)
def test_the_row_of_a_large_vocabulary_after_all_drafts_is_summed_in_float32(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_12, call=verify_calls(rows=sparse, sizes=HUGE, counts=(2, 1, 4)), share=0.3)
def test_vocabularies_of_real_models_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_13, call=verify_calls(drafts=["list", "array"]))
def test_drafts_may_be_a_list_or_an_array(subject, call):
    subject.agrees(call)


@requirement(
    spec.SPEC_14, call=possible(in_views(verify_calls(drafts=["array"]), "draft_tokens", "uniform")), share=0.5
)
def test_drafts_and_uniform_numbers_may_be_views(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_14, call=probabilities_in_views())
def test_probabilities_may_be_views(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_14, call=verify_calls(counts=(4, 5, 8), close=True), share=0.2)
def test_rows_of_probabilities_may_lie_backwards(subject, call):
    subject.agrees(bottom_up(call, "draft_probs", "target_probs"))


@requirement(spec.SPEC_15, call=verify_calls(), share=0.5)
def test_verification_changes_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.SPEC_15, call=verify_calls(ends="rejection"), share=0.5)
def test_a_rejection_changes_no_argument(subject, call):
    keeps_arguments(subject, call)


ALIKE = verify_calls(counts=(3,), sizes=(4,))


@requirement(spec.SPEC_16, call=ALIKE, other=ALIKE, share=0.5)
def test_another_verification_of_the_same_shapes_in_between_changes_nothing(subject, call, other):
    depends_on_arguments_alone(subject, call, other, draws=False)


@requirement(spec.SPEC_16, call=verify_calls(), other=verify_calls(), share=0.5)
def test_another_verification_in_between_changes_nothing(subject, call, other):
    depends_on_arguments_alone(subject, call, other, draws=False)


@requirement(spec.SPEC_17, call=verify_calls(counts=(3, 1, 0, 2, 4)), share=0.5)
def test_verified_ids_are_integers(subject, call):
    value = subject.value(call)
    if value.dtype.kind not in "iu" or value.ndim != 1:
        raise Nonconformance(f"what comes out is {value.dtype.name}{list(value.shape)}", call)


def _rows(name, change):
    return lambda a: {name: change(a[name])}


MISFITS = {
    "a draft more": lambda a: {"draft_tokens": [*(int(t) for t in a["draft_tokens"]), 0]},
    "a draft less": lambda a: {"draft_tokens": [int(t) for t in a["draft_tokens"]][:-1]},
    "a draft row more": _rows("draft_probs", lambda x: np.concatenate([x, x[-1:]])),
    "a draft row less": _rows("draft_probs", lambda x: x[:-1]),
    "a target row more": _rows("target_probs", lambda x: np.concatenate([x, x[-1:]])),
    "a target row less": _rows("target_probs", lambda x: x[:-1]),
    "a uniform number more": _rows("uniform", lambda x: np.concatenate([x, x[-1:]])),
    "a uniform number less": _rows("uniform", lambda x: x[:-1]),
    "a draft vocabulary more": _rows("draft_probs", lambda x: np.concatenate([x, x[:, :1] * 0], axis=1)),
    "a target vocabulary more": _rows("target_probs", lambda x: np.concatenate([x, x[:, :1] * 0], axis=1)),
}


@requirement(spec.SPEC_18, call=verify_calls(), misfit=among(sorted(MISFITS)))
def test_numbers_of_rows_and_ids_that_do_not_fit_are_refused(subject, call, misfit):
    refuses(subject, call.having(**MISFITS[misfit](call.arguments)))


@requirement(spec.SPEC_18, call=verify_calls(drafts=["list"]), share=0.06)
def test_a_row_of_no_draft_is_refused(subject, call):
    single = {name: call.arguments[name][:1] for name in ("draft_probs", "target_probs", "uniform")}
    refuses(subject, call.having(draft_tokens=[], **single))


@requirement(spec.SPEC_18, call=verify_calls(), axis=among([False, True]), share=0.3)
def test_a_batch_is_refused(subject, call, axis):
    a = call.arguments
    refuses(
        subject, call.having(**({"uniform": a["uniform"][None]} if axis else {"target_probs": a["target_probs"][None]}))
    )


@requirement(spec.SPEC_19, call=verify_calls(drafts=["list"]), place=among(range(8)), past=among([0, 1, -1, -3]))
def test_drafts_outside_the_vocabulary_are_refused(subject, call, place, past):
    tokens = list(call.arguments["draft_tokens"])
    size = call.arguments["target_probs"].shape[1]
    tokens[place % len(tokens)] = size + past if past >= 0 else past
    refuses(subject, call.having(draft_tokens=tokens))


WHICH = among(["draft_probs", "target_probs"])


@requirement(spec.SPEC_20, call=verify_calls(), which=WHICH, row=among(range(8)), bad=among([-0.5, np.nan]))
def test_negative_probabilities_and_nan_are_refused(subject, call, which, row, bad):
    x = call.arguments[which].copy()
    one = x[row % len(x)]
    # The row still sums to one.
    one[...] = [1 - bad, bad] + [0] * (len(one) - 2) if bad == bad else one
    one[0] = one[0] if bad == bad else bad
    refuses(subject, call.having(**{which: x}))


@requirement(spec.SPEC_21, call=verify_calls(), which=WHICH, row=among(range(8)), total=among([0, 0.5, 1.25, 2]))
def test_rows_that_do_not_sum_to_one_are_refused(subject, call, which, row, total):
    x = call.arguments[which].copy()
    x[row % len(x)] = (x[row % len(x)].astype(np.float32) * total).astype(x.dtype)
    refuses(subject, call.having(**{which: x}))


@requirement(spec.SPEC_22, call=verify_calls(), place=among(range(9)), bad=among([1.0, -0.25, 2.0, np.nan]))
def test_uniform_numbers_outside_their_range_are_refused(subject, call, place, bad):
    uniform = call.arguments["uniform"].copy()
    uniform[place % len(uniform)] = bad
    refuses(subject, call.having(uniform=uniform))


@requirement(spec.SPEC_63, call=impossible_drafts(), share=0.25)
def test_a_draft_that_its_own_row_calls_impossible_is_kept_if_the_target_can_give_it(subject, call):
    subject.agrees(call)
