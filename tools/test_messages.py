"""What a failure says: what was wrong with a call, what a model failed at, and what to declare."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from inferspec.conformance.bridge.drivers.engine import _failures, _Used
from inferspec.conformance.calls import Call, Observation
from inferspec.conformance.judging.refusals import Choices
from inferspec.conformance.judging.trial import Nonconformance, Trial
from inferspec.conformance.subject import LocalSubject
from inferspec.conformance.suite import Profile, all_tests
from inferspec.spec import contract, generation, metrics, mlp, quantization, rope
from inferspec.spec.contract import Answer, Operation

PROFILE = Profile(diagnose=False)


def outcome(test: str, **operations: type[Operation]):
    """What a test finds on operations of the contract."""
    found = next(one for one in all_tests() if one.name == test)
    trial = Trial(LocalSubject(operations), found.requirement)
    trial.subject.description.envelope = {"linear": {"dtypes": ("float32",)}}
    found.run(trial, PROFILE)
    return trial.outcome


class NoHalf(rope.RoPE):
    """Takes no float16."""

    def guard(self, a):
        if a.x.dtype.name == "float16":
            raise TypeError("no")
        super().guard(a)


def test_what_is_refused_is_said_with_the_line_that_leaves_it_out():
    found = outcome("test_far_positions_are_right_in_every_dtype", RoPE=NoHalf)
    assert found.state == "overclaimed"
    line = "ENVELOPE = {'linear': {'dtypes': ['float32']}, 'rope': {'dtypes': ['float32', 'bfloat16']}}"
    assert found.message.endswith(f"if it does not support dtypes of 'float16', say so: {line}")


def test_what_an_error_names_is_left_out_even_where_a_test_asks_nothing_else():
    class Says(NoHalf):
        def guard(self, a):
            if a.x.dtype.name == "bfloat16":
                raise ValueError("bfloat16 is not taken")

    found = outcome("test_far_positions_are_right_in_every_dtype", RoPE=Says)
    assert "does not support dtypes of 'bfloat16', say so: ENVELOPE = " in found.message


def test_who_evicts_by_another_rule_is_told_how_to_say_so():
    kit = contract("block_manager")
    last_in_first_out = next(fault for fault in kit.faults if fault.name == "block-manager-last-in-first-out")
    test = "test_blocks_are_evicted_in_the_order_in_which_they_were_freed"
    message = outcome(test, BlockManager=kit.faulty(last_in_first_out)).message
    line = "ENVELOPE = {'linear': {'dtypes': ['float32']}, 'block_manager': {'eviction': ['any']}}"
    assert message.endswith(f"; if blocks are evicted by another rule than age, declare {line}")


def test_who_never_caches_is_told_how_to_say_so():
    kit = contract("block_manager")
    short = next(fault for fault in kit.faults if fault.name == "block-manager-hits-one-short")
    message = outcome("test_a_prompt_hits_all_that_is_cached_of_it", BlockManager=kit.faulty(short)).message
    line = "ENVELOPE = {'linear': {'dtypes': ['float32']}, 'block_manager': {'prefix_caching': [False]}}"
    assert message.endswith(f"; if no prefix is ever cached, declare {line}")


def test_what_a_test_insists_on_is_left_out_where_its_plainest_call_is_refused():
    heads = contract("attention").operation("MultiHeadAttention")

    class Divides(heads):
        def guard(self, a):
            if len(a.wq) != a.hidden_size:
                raise ValueError("hidden_size is not num_heads times the head dim")
            super().guard(a)

    found = outcome("test_the_head_dim_comes_from_the_weights", MultiHeadAttention=Divides)
    assert "does not support free_head_dim of True, say so: ENVELOPE = " in found.message
    assert "'attention': {'free_head_dim': [False]}" in found.message


def test_the_plainest_choice_is_left_out_where_others_were_answered():
    class Rows(mlp.SwiGLU):
        def guard(self, a):
            if a.x.ndim < 2:
                raise ValueError("expected min_ndim=2, found ndim=1")
            super().guard(a)

    choices = Choices()
    for name in ("test_batches_of_batches_are_in_their_places", "test_a_gate_of_zero_gives_zero"):
        found = next(one for one in all_tests() if one.name == name and one.requirement.name == "SwiGLU")
        trial = Trial(LocalSubject({"SwiGLU": Rows}), found.requirement, choices=choices)
        found.run(trial, PROFILE)
    assert "does not support leading_dims of (), say so: ENVELOPE = " in trial.outcome.message


class FourAxes(contract("attention").operation("scaled_dot_product_attention")):
    """Takes B×H×L×D alone."""

    def guard(self, a):
        if a.query.ndim != 4:
            raise ValueError(f"not enough values to unpack (expected 4, got {a.query.ndim})")
        super().guard(a)


@pytest.mark.parametrize(
    "test",
    [
        "test_attention_is_softmax_over_keys_times_value",
        "test_a_given_scale_is_used_as_it_is",
        "test_causal_attention_agrees_for_every_relation_of_lengths",
    ],
)
def test_all_choices_that_are_refused_are_left_out_whatever_a_test_insists_on(test):
    found = next(one for one in all_tests() if one.name == test)
    trial = Trial(LocalSubject({"scaled_dot_product_attention": FourAxes}), found.requirement)
    found.run(trial, Profile())
    assert "'attention': {'leading_dims': [[1], [2], [5], [9]]}" in trial.outcome.message


def test_a_step_of_a_story_that_lacks_a_kernel_is_said_with_what_to_declare():
    pool = contract("paged_kv").operation("PagedKVCache")
    found = next(one for one in all_tests() if one.requirement.name == "PagedKVCache" and one.inputs)
    trial = Trial(LocalSubject({"PagedKVCache": pool}), found.requirement)
    call = Call("PagedKVCache", {"steps": [("append", {})]}, {"dtypes": "float16"})
    seen = Observation(None, "", "step 1: NotImplementedError: not implemented for 'Half'", unwritten=("1",))
    told = trial.objection(call, seen, 1, "refused", refusal=True)
    assert told.state == "overclaimed"
    assert 'say so in ENVELOPE["paged_kv"], whose keys are ' in str(told)


def test_an_objection_to_a_refusal_tells_what_may_be_left_out_and_no_other_one_does():
    about = next(one for one in all_tests() if one.requirement.name == "BlockManager" and one.inputs).requirement
    trial = Trial(LocalSubject({"BlockManager": contract("block_manager").operation("BlockManager")}), about)
    call = Call("BlockManager", {"steps": [("allocate", {})]}, {"prefix_caching": False})
    seen = Observation(None, "", "step 1: ValueError: prefix_caching False is not offered")
    trial._plainest.update(prefix_caching=True)
    said = [trial.advised(trial.objection(call, seen, 1, "wrong", refusal)) for refusal in (True, False)]
    line = "if it does not support prefix_caching of False, say so: ENVELOPE = {'block_manager': {'prefix_caching': [True]}}"
    assert [text.endswith(line) for text in said] == [True, False]


def test_what_is_not_implemented_beside_what_is_answered_is_no_stub():
    class Plain(contract("flash_attention").operation("flash_attention")):
        def guard(self, a):
            if a.mask is not None and not isinstance(a.mask, str):
                raise NotImplementedError("masks are None or causal")
            super().guard(a)

    test = next(
        one for one in all_tests() if one.name == "test_every_encoding_of_the_causal_mask_agrees_in_flash_attention"
    )
    seen = Choices({("flash_attention", "masks", repr(name)) for name in ("none", "causal")})
    for choices in (seen, Choices()):
        trial = Trial(LocalSubject({"flash_attention": Plain}), test.requirement, choices=choices)
        test.run(trial, PROFILE)
        said = "refuses what its envelope includes: NotImplementedError: masks are None or causal"
        assert trial.outcome.state == "overclaimed"
        assert said in trial.outcome.message
        assert "ENVELOPE" in trial.outcome.message


def test_a_number_that_an_error_names_is_left_out_where_it_says_what_it_is_of():
    class Coarse(quantization.Quantize):
        def guard(self, a):
            if a.group_size == 32:
                raise ValueError("a group size of 32 is not supported")
            super().guard(a)

    message = outcome("test_the_grid_of_each_group_fits_its_range", quantize=Coarse).message
    assert "does not support group_sizes of 32, say so: ENVELOPE = " in message
    assert "'quantization': {'group_sizes': [64, 128]}" in message


def test_the_only_choice_that_is_claimed_is_not_said_to_be_left_out():
    class Refuses(rope.RoPE):
        def guard(self, a):
            raise ValueError("float32 is not taken")

    test = next(one for one in all_tests() if one.name == "test_the_norm_of_every_pair_is_kept")
    trial = Trial(LocalSubject({"RoPE": Refuses}, envelope={"rope": {"dtypes": ["float32"]}}), test.requirement)
    test.run(trial, PROFILE)
    assert trial.outcome.state == "overclaimed"
    assert "'dtypes': []" not in trial.outcome.message


def test_a_choice_that_a_test_prefers_and_does_not_insist_on_is_not_said_to_be_left_out():
    class Short(rope.RoPE):
        def guard(self, a):
            if a.x.shape[1] > 8:
                raise ValueError("too long")
            super().guard(a)

    found = outcome("test_no_position_of_a_long_sequence_of_large_heads_is_wrong", RoPE=Short)
    assert found.state == "overclaimed"
    assert "head_dims of" not in found.message


def test_the_line_that_declares_another_answer_keeps_what_is_declared():
    test = next(one for one in all_tests() if one.requirement.id == "GEN-06")
    kept = contract("generation").operation("generate")

    class Keeps(kept):
        def taken(self, request):
            return replace(kept.taken(self, request), ends="kept")

    trial = Trial(LocalSubject({"generate": Keeps}, envelope={"generation": {"caches": [True]}}), test.requirement)
    test.run(trial, PROFILE)
    assert "declare ENVELOPE = {'generation': {'caches': [True], 'ends': ['kept']}}" in trial.outcome.message


def test_what_is_refused_for_no_choice_of_its_own_is_said_with_all_keys():
    class Refuses(rope.RoPE):
        def guard(self, a):
            raise ValueError("no")

    message = outcome("test_the_norm_of_every_pair_is_kept", RoPE=Refuses).message
    assert 'say so in ENVELOPE["rope"], whose keys are ' in message


class Takes:
    """Refuses nothing."""

    def guard(self, a):
        pass


@pytest.mark.parametrize(
    ("test", "said"),
    [
        ("test_a_temperature_below_0_is_refused", "temperature=-1.0 is not refused: it returns an array of shape "),
        (
            "test_a_temperature_of_nan_is_refused",
            "temperature=nan (NaN is not below any limit nor above it: `temperature < 0` does not see it) is not",
        ),
    ],
)
def test_a_bad_argument_that_is_taken_is_named(test, said):
    sampler = contract("sampling").operation("Sampler")
    assert outcome(test, Sampler=type("Takes", (Takes, sampler), {})).message.startswith(said)


@pytest.mark.parametrize(
    ("test", "said"),
    [
        ("test_caches_that_cannot_be_rewound_are_refused", "a target whose cache cannot be rewound is not refused: "),
        ("test_bad_temperatures_and_shares_are_refused", "temperature=-1.0 is not refused: it is to be refused before"),
    ],
)
def test_a_call_that_is_to_be_refused_before_a_model_is_called_says_what_is_wrong_with_it(test, said):
    kit = contract("speculative")
    requirement = next(one.requirement for one in all_tests() if one.name == test)
    fault = next(one for one in kit.faults if one.kills.id == requirement.id)
    message = outcome(test, speculative_generate=kit.faulty(fault)).message
    assert message.startswith(said), message


class Model:
    """A model of one attribute that takes part in what it computes, and two that tell of it."""

    layers = ()
    num_layers = 0
    config = ()

    def __call__(self, tokens):
        return tokens


@pytest.mark.parametrize(
    ("at", "use", "said"),
    [
        ("use", lambda model: model.layers, "its use, layers"),
        ("use", lambda model: model(1), "its use, a call"),
        ("call", lambda model: model(1), "its call, before anything was computed"),
        ("end", lambda model: model(1), "its call, when all was computed"),
    ],
)
def test_the_use_that_a_model_failed_at_is_told_with_its_step(at, use, said):
    model = Model()
    used = _Used(model), _Used(None)
    used[0].burn(0, "RuntimeError", at)
    with pytest.raises(RuntimeError, match="the model fails"):
        use(model)
    used[0].burn(None, "RuntimeError", at)
    assert _failures((("step", {}), ("fail", {"after": 0})), used) == {"2 why": f"the model failed at {said}"}


def test_a_model_fails_at_no_number_and_no_config_but_at_the_use_behind_it():
    model = Model()
    used = _Used(model)
    used.burn(0, "RuntimeError", "use")
    assert model.num_layers == len(model.config) == 0
    with pytest.raises(RuntimeError, match="the model fails"):
        model(1)
    assert used.failed == ["its use, a call"]


def test_where_no_use_failed_none_is_told():
    model = Model()
    used = _Used(model), _Used(None)
    used[0].burn(3, "RuntimeError", "use")
    used[0].burn(None, "RuntimeError", "use")
    assert _failures((("fail", {"after": 3}),), used) == {}


def test_a_choice_that_was_answered_elsewhere_is_not_said_to_be_left_out():
    class NoLargest(contract("speculative").operation("speculative_generate")):
        def guard(self, a):
            if a.uniforms is not None and math.nextafter(1, 0) in map(float, a.uniforms):
                raise ValueError("uniform numbers outside [0, 1)")
            super().guard(a)

    tests = {test.name: test for test in all_tests()}
    subject, choices = LocalSubject({"speculative_generate": NoLargest}), Choices()
    messages = []
    for name in ("test_uniform_numbers_are_taken_in_order", "test_the_largest_uniform_numbers_of_float64_are_taken"):
        trial = Trial(subject, tests[name].requirement, choices=choices)
        tests[name].run(trial, PROFILE)
        messages.append(trial.outcome.message)
    assert not messages[0]
    assert 'say so in ENVELOPE["speculative"], whose keys are ' in messages[1]


def test_a_list_that_is_taken_for_an_array_is_refused_and_said_with_the_line_that_leaves_it_out():
    class Arrays(contract("speculative").operation("verify")):
        def guard(self, a):
            if isinstance(a.draft_tokens, list):
                a.draft_tokens.shape  # noqa: B018
            super().guard(a)

    found = outcome("test_drafts_may_be_a_list_or_an_array", verify=Arrays)
    assert found.state == "overclaimed"
    assert "if it does not support drafts of 'list', say so: " in found.message


def test_a_library_that_has_few_operations_on_uint32_is_named_and_no_choice_of_the_subject():
    class Shifts(quantization.Dequantize):
        def guard(self, a):
            raise TypeError(
                "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote UInt32 and Int"
            )

    message = outcome("test_weights_are_codes_times_scale_plus_bias", dequantize=Shifts).message
    assert message.endswith("take the bits as signed words, x.view(torch.int32)")


def test_parts_of_another_shape_are_the_quantisers_mistake_also_where_two_calls_are_compared():
    class Flat(quantization.Quantize):
        def evaluate(self, a, precision):
            answers = super().evaluate(a, precision)
            return {part: replace(one, value=one.value.ravel()) for part, one in answers.items()}

    found = outcome("test_more_rows_change_nothing_of_the_first", quantize=Flat)
    assert found.state == "failed"
    assert "the result has shape" in found.message


def test_a_model_that_is_not_called_as_models_are_was_refused_by_nobody():
    class Feeds(contract("generation").operation("generate")):
        def guard(self, a):
            raise ValueError("the model is given float32[1, 0]; it takes ids, 1×L")

    found = outcome("test_large_ids_come_out_as_they_are", generate=Feeds)
    assert found.state == "failed"
    assert found.message.startswith("raises: ValueError: the model is given float32[1, 0]; it takes ids, 1×L (at ")
    assert "ENVELOPE" not in found.message


def test_ids_that_are_too_many_are_told_beside_the_right_ones():
    class GoesOn(contract("generation").operation("generate")):
        def ids(self, toy, request):
            yield from super().ids(toy, request)
            yield 1

    found = outcome("test_large_ids_come_out_as_they_are", generate=GoesOn)
    shapes, _, ids = found.message.partition(": [")
    got, _, right = ids.partition("], oracle [")
    assert "the result has shape" in found.message, shapes
    assert got == f"{right.rstrip(']')}, 1".lstrip(", ")


class NumberForNone(metrics.RequestMetrics):
    """Says NaN where there is no time per output token."""

    def tpot(self, elapsed, itl):
        return math.nan if len(elapsed) == 1 else super().tpot(elapsed, itl)


def test_a_number_where_there_is_none_is_told_to_be_none():
    found = outcome("test_one_token_has_no_gap", request_metrics=NumberForNone)
    assert "tpot: the result is nan, where there is none: that is None" in found.message


class Alone(generation.Detokenizer):
    """Decodes each id by itself."""

    def add(self, token):
        return self.pieces[token].decode("utf-8", "replace")


def test_a_wrong_text_is_shown_beside_the_right_one():
    class EachAlone(generation.StreamingDetokenizer):
        def open(self, pieces):
            return Alone(pieces)

    found = outcome("test_the_texts_joined_are_the_decoded_ids", StreamingDetokenizer=EachAlone)
    assert re.fullmatch("text: '[^'\ufffd]*\ufffd+.*', oracle '[^\ufffd]+'.*", found.message), found.message


def test_long_texts_are_shown_from_a_little_before_they_part():
    same = [ord("a")] * 40
    wrong, right = (np.array([*same, ord(last)], np.float64) for last in "cb")
    call = Call("StreamingDetokenizer", {"pieces": (b"a", b"b"), "tokens": (*[0] * 40, 1)})
    with pytest.raises(Nonconformance, match="'aaaaaaaac', oracle 'aaaaaaaab', from character 32 on"):
        Trial(LocalSubject({call.operation: generation.StreamingDetokenizer}), generation.TEXT_01).compare(
            call, wrong, Answer(right, np.zeros(41)), part="text"
        )
