"""Does an implementation of Qwen3 keep the contract where RoPE is scaled?"""

from inferspec.conformance.inputs.qwen3 import scaled_calls
from inferspec.conformance.inputs.rope_scaling import DEFAULT
from inferspec.conformance.properties.common import claimed, depends_on_arguments_alone
from inferspec.conformance.properties.decoder import refuses_naming
from inferspec.conformance.properties.scaled_rope import (
    ATTENTION_FACTORS,
    refuses_bad_numbers,
    said_in_both_places,
    unscaled,
    with_another_number,
    with_one_beta,
    with_points,
    with_positions_of_training,
    with_scaling,
    with_what_else_is_said,
)
from inferspec.conformance.strategies import among, fractions
from inferspec.conformance.suite import requirement
from inferspec.spec import qwen3 as spec


@requirement(spec.QWEN3_33, call=scaled_calls(rope_types=["linear"]), share=0.12)
def test_linear_scaling_divides_every_frequency_of_rope(subject, call):
    subject.agrees(call)


@requirement(spec.QWEN3_33, call=scaled_calls(rope_types=["linear"]), factor=among([1.0, 1]), share=0.05)
def test_a_factor_of_one_divides_nothing(subject, call, factor):
    subject.agrees(with_scaling(call, factor=factor))


@requirement(spec.QWEN3_33, call=scaled_calls(rope_types=["linear"]), share=0.05)
def test_linear_scaling_goes_on_past_the_positions_that_the_config_says(subject, call):
    subject.agrees(with_positions_of_training(call))


@requirement(spec.QWEN3_33, call=scaled_calls(rope_types=["linear"], layers=(2, 3), lengths=(17, 9)), share=0.03)
def test_linear_scaling_is_that_of_every_layer(subject, call):
    subject.agrees(call)


@requirement(spec.QWEN3_34, call=scaled_calls(rope_types=["llama3"]), share=0.21)
def test_llama3_scaling_divides_low_frequencies_keeps_high_ones_and_mixes_those_between(subject, call):
    subject.agrees(call)


@requirement(spec.QWEN3_34, call=scaled_calls(rope_types=["llama3"], lengths=(150, 120)), share=0.06)
def test_llama3_scaling_is_the_same_past_the_positions_of_training(subject, call):
    subject.agrees(call)


@requirement(spec.QWEN3_34, call=scaled_calls(rope_types=["llama3"], layers=(2, 3), lengths=(17, 9)), share=0.03)
def test_llama3_scaling_is_that_of_every_layer(subject, call):
    subject.agrees(call)


@requirement(spec.QWEN3_35, call=scaled_calls(rope_types=["yarn"]), share=0.21)
def test_yarn_divides_a_share_that_rises_with_the_pair_and_multiplies_queries_and_keys(subject, call):
    subject.agrees(call)


@requirement(spec.QWEN3_35, call=scaled_calls(rope_types=["yarn"]), share=0.05)
def test_a_beta_of_yarn_that_is_absent_is_the_usual_one(subject, call):
    subject.agrees(with_one_beta(call))


@requirement(spec.QWEN3_35, call=scaled_calls(rope_types=["yarn"], lengths=(320, 260), batches=(1,)), share=0.06)
def test_yarn_scaling_is_the_same_past_the_positions_of_training(subject, call):
    subject.agrees(with_positions_of_training(call))


@requirement(spec.QWEN3_35, call=scaled_calls(rope_types=["yarn"], layers=(2, 3), lengths=(17, 9)), share=0.03)
def test_yarn_scaling_is_that_of_every_layer(subject, call):
    subject.agrees(call)


@requirement(spec.QWEN3_36, call=scaled_calls(rope_types=["yarn"]), said=among(ATTENTION_FACTORS), share=0.15)
def test_an_attention_factor_of_yarn_is_the_one_that_the_config_says(subject, call, said):
    subject.agrees(with_scaling(call, **said))


@requirement(spec.QWEN3_36, call=scaled_calls(rope_types=["yarn"]), share=0.06)
def test_the_ramp_of_yarn_is_not_rounded_where_the_config_says_so(subject, call):
    subject.agrees(with_scaling(call, truncate=False))


@requirement(spec.QWEN3_37, call=scaled_calls(rope=["rope_theta"]), share=0.25)
def test_a_scaling_is_that_of_rope_scaling_under_either_name_of_its_kind(subject, call):
    subject.agrees(call)


@requirement(spec.QWEN3_37, call=scaled_calls(rope=["rope_parameters"]), share=0.12)
def test_a_scaling_is_that_of_rope_parameters(subject, call):
    subject.agrees(call)


@requirement(spec.QWEN3_37, call=scaled_calls(rope=["rope_theta"]), share=0.06)
def test_a_scaling_that_is_said_in_both_places_counts_once(subject, call):
    subject.agrees(said_in_both_places(call))


@requirement(spec.QWEN3_37, call=scaled_calls(), share=0.05)
def test_what_else_a_scaling_says_changes_nothing(subject, call):
    subject.agrees(with_what_else_is_said(call))


@requirement(spec.QWEN3_37, call=scaled_calls(rope_types=["llama3", "yarn"]), share=0.05)
def test_the_numbers_of_a_scaling_may_have_a_point(subject, call):
    subject.agrees(with_points(call))


@requirement(spec.QWEN3_18, call=scaled_calls(), share=0.06)
def test_a_model_whose_rope_is_not_scaled_in_between_changes_nothing(subject, call):
    claimed(subject, "rope_types", DEFAULT, [DEFAULT])
    depends_on_arguments_alone(subject, unscaled(call).kept(0), call.kept(1))


@requirement(spec.QWEN3_18, call=scaled_calls(), which=fractions, share=0.06)
def test_a_model_whose_rope_is_scaled_otherwise_in_between_changes_nothing(subject, call, which):
    depends_on_arguments_alone(subject, with_another_number(call, which).kept(0), call.kept(1))


@requirement(spec.QWEN3_38, call=scaled_calls(), share=0.06)
def test_a_scaling_without_a_factor_is_refused_and_the_field_named(subject, call):
    refuses_naming(subject, with_scaling(call, factor=None), "factor")


@requirement(spec.QWEN3_39, call=scaled_calls(rope_types=["llama3"]), share=0.05)
def test_bands_of_which_no_rope_can_be_made_are_refused_and_named(subject, call):
    refuses_bad_numbers(subject, call)


@requirement(spec.QWEN3_39, call=scaled_calls(rope_types=["linear", "yarn"]), share=0.06)
def test_numbers_of_which_no_rope_can_be_made_are_refused_and_named(subject, call):
    refuses_bad_numbers(subject, call)


@requirement(spec.QWEN3_49, call=scaled_calls(), share=0.1)
def test_a_model_of_scaled_rope_made_in_one_thread_computes_in_another(subject, call):
    subject.agrees(call.in_another_thread())
