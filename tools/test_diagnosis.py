"""What a wrong result is said to look like, and what it is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.envelope import OutsideEnvelope
from inferspec.conformance.judging.diagnosis import explain
from inferspec.conformance.judging.lookalikes import alike
from inferspec.conformance.judging.shared_faults import kindred
from inferspec.conformance.judging.trial import Nonconformance, Trial
from inferspec.conformance.subject import LocalSubject
from inferspec.conformance.suite import Inputs, Profile, Test, all_tests
from inferspec.spec import (
    attention,
    engine,
    flash_attention,
    generation,
    kv_cache,
    linear,
    llama,
    paged_attention,
    quantization,
    quantization_sentences,
    rope,
    sampling,
    sampling_sentences,
    scheduler,
)
from inferspec.spec.changes import quantization as quantization_changes
from inferspec.spec.changes import tiles
from inferspec.spec.changes.tiles import walking
from inferspec.spec.contract import Answer, Arguments, Contract, Fault, Operation, Requirement, changed
from inferspec.spec.numerics import Precision
from inferspec.tools.drawn_inputs import drawn

RANDOM = np.random.default_rng(3)


def explained(contract: Contract, requirement: Requirement, wrong: type[Operation], call: Call) -> list[str]:
    """The names of the faults that do what a wrong operation does in a call."""
    seen = LocalSubject({call.operation: wrong}).call(call)
    return [fault.name for fault in explain(contract, requirement, [[(call, seen)]])]


def test_a_number_that_should_have_been_refused_is_explained_by_those_who_give_it():
    class CountsFromTheEnd(rope.RoPE):
        def guard_sign(self, offset: int) -> None:
            pass

        def positions(self, a: Arguments) -> np.ndarray:
            return super().positions(a) % a.max_positions

    x = RANDOM.normal(size=(2, 1, 1, 4)).astype(np.float32)
    call = Call("RoPE", {"dims": 4, "max_positions": 3, "base": 10, "traditional": False, "x": x, "offset": -1})
    assert explained(rope.CONTRACT, rope.ROPE_13, CountsFromTheEnd, call) == ["rope-negative-from-the-end"]


def test_pools_of_different_sizes_are_not_taken_for_another_page_size():
    class ReadsOneOfThem(paged_attention.PagedAttention):
        def guard_shapes(self, a: Arguments) -> None:
            super().guard_shapes(Arguments(**{**vars(a), "value_pages": a.key_pages}))

    keys = RANDOM.normal(size=(2, 1, 1, 32)).astype(np.float32)
    one = np.zeros((1, 1), np.int32), np.ones(1, np.int32)
    arguments = {"query": keys[:1], "key_pages": keys, "value_pages": keys[:1], "page_size": 1, "mask": "causal"}
    call = Call("paged_attention", {**arguments, "block_table": one[0], "context_lens": one[1]})
    named = explained(paged_attention.CONTRACT, paged_attention.PAGED_26, ReadsOneOfThem, call)
    assert named == ["paged-dims-cropped"]


def test_a_sigmoid_whose_exponential_overflows_is_not_taken_for_another_activation():
    class InDtype(linear.Silu):
        def activate(self, x: np.ndarray, dtype: str) -> np.ndarray:
            with np.errstate(over="ignore"):
                power = np.exp(-x.astype(np.float16))
            return x / (1 + power.astype(np.float64))

    call = Call("silu", {"x": np.array([-15.15, 14.75, -10.0, 2.0], np.float16)})
    assert explained(linear.CONTRACT, linear.SILU_01, InDtype, call) == ["silu-exponential-in-dtype"]


def test_a_refusal_is_not_explained_by_a_buffer_that_is_too_small_for_the_example():
    class Refuses(kv_cache.StaticKVCache):
        def store(self, cache: object, key: np.ndarray, value: np.ndarray) -> None:
            raise ValueError("no")

    key, value = (RANDOM.normal(size=(1, 1, 3000, dims)).astype(np.float32) for dims in (4, 5))
    call = Call("StaticKVCache", {"max_len": 3000, "steps": (("update_and_fetch", {"key": key, "value": value}),)})
    assert "static-kv-cache-results-move" not in explained(
        kv_cache.CONTRACT, next(r for r in kv_cache.CONTRACT.requirements if r.id == "SKV-02"), Refuses, call
    )


def test_a_refusal_of_an_array_mask_is_not_explained_by_a_mistake_in_named_ones():
    class Refuses(attention.ScaledDotProductAttention):
        def guard(self, a: Arguments) -> None:
            raise ValueError("no")

    x = RANDOM.normal(size=(1, 1, 2, 4)).astype(np.float32)
    call = Call(
        "scaled_dot_product_attention",
        {"query": x, "key": x, "value": x, "scale": None, "mask": np.array([[True, False], [True, True]])},
    )
    assert explained(attention.CONTRACT, attention.ATTN_04, Refuses, call) == []


def test_a_crash_is_not_explained_by_a_mistake_that_stumbles_over_its_input():
    class Crashes(attention.MultiHeadAttention):
        def evaluate(self, a: Arguments, precision: Precision) -> Answer:
            raise RuntimeError("no kernel")

    query, key = (RANDOM.normal(size=(1, length, 2)).astype(np.float32) for length in (1, 3))
    square = RANDOM.normal(size=(2, 2)).astype(np.float32)
    weights = dict.fromkeys(("wq", "wk", "wv", "wo"), square)
    sizes = {"hidden_size": 2, "num_heads": 1}
    mask = np.zeros((1, 3), np.float32)
    call = Call("MultiHeadAttention", {**sizes, **weights, "query": query, "key": key, "value": key, "mask": mask})
    stumbling = next(one for one in attention.CONTRACT.faults if one.name == "mha-self-attention")
    assert LocalSubject({"MultiHeadAttention": attention.CONTRACT.faulty(stumbling)}).call(call).raised == "ValueError"
    assert stumbling.name not in explained(attention.CONTRACT, attention.MHA_01, Crashes, call)


def test_an_engine_that_crashes_without_a_draft_is_not_explained_by_a_mistake_about_drafts():
    class Crashes(engine.Engine):
        def called(self, *arguments: object, **options: object) -> np.ndarray:
            raise RuntimeError("invalid argument")

    test = next(one for one in all_tests() if one.name == "test_one_request_comes_out_as_from_generate")
    call = next(call for call in drawn(test, Profile("quick")) if call.arguments["draft"] is None)
    assert not explained(engine.CONTRACT, test.requirement, Crashes, call)


def test_an_unknown_activation_is_not_taken_for_an_unknown_rope():
    ignored = next(fault for fault in llama.CONTRACT.faults if fault.name == "llama-unknown-rope-ignored")
    operation = llama.CONTRACT.faulty(ignored)()
    operation.guard_config({"hidden_act": "silu", "rope_scaling": {"rope_type": "unheard-of"}})
    try:
        operation.guard_config({"hidden_act": "unheard-of"})
    except ValueError:
        return
    raise AssertionError("the activation was not looked at")


def test_a_mistake_is_known_by_its_form_whatever_the_tile_of_the_kernel():
    fault = next(one for one in flash_attention.CONTRACT.faults if one.name == "flash-values-not-rescaled")
    wrong = changed(flash_attention.FlashAttention, "Wrong", walking(512, add=tiles.values_kept))
    query, key, value = (RANDOM.normal(size=(1, 1, length, 4)).astype(np.float32) for length in (1, 600, 600))
    # What was summed before is to be rescaled where a later tile has a larger score.
    query[:], key[..., -1, :] = 1.0, 4.0
    call = Call("flash_attention", {"query": query, "key": 9 * key, "value": value, "scale": None, "mask": None})
    assert explained(flash_attention.CONTRACT, flash_attention.FLASH_18, wrong, call) == [fault.name]


def test_a_step_that_two_operations_share_goes_wrong_alike_in_both():
    assert "dequantize-bytes-swapped" in [fault.name for fault in kindred("quantized_matmul")]
    wrong = changed(quantization.QuantizedMatmul, "Wrong", {"codes": quantization_changes.swapped_bytes})
    x = RANDOM.normal(size=(1, 32)).astype(np.float32)
    packed = RANDOM.integers(0, 2**32, size=(2, 4), dtype=np.uint32)
    scales, biases = (RANDOM.normal(size=(2, 1)).astype(np.float32) for _ in range(2))
    sizes = {"group_size": 32, "bits": 4, "transpose": True}
    call = Call("quantized_matmul", {"x": x, "packed": packed, "scales": scales, "biases": biases, **sizes})
    seen = LocalSubject({call.operation: wrong}).call(call)
    contract, requirement = quantization.CONTRACT, quantization_sentences.QMM_05
    found = explain(contract, requirement, [[(call, seen)]], kindred("quantized_matmul"))
    assert [fault.name for fault in found] == ["dequantize-bytes-swapped"]


def test_a_crash_is_not_explained_by_a_mistake_that_asks_for_an_argument_of_another_operation():
    class Crashes(sampling.FilterLogits):
        def respond(self, a: Arguments) -> np.ndarray:
            raise RuntimeError("selected index k out of range")

    call = Call("filter_logits", {"logits": RANDOM.normal(size=(1, 5)).astype(np.float32), "top_k": -1})
    seen = LocalSubject({call.operation: Crashes}).call(call)
    others = kindred("filter_logits")
    assert "sampler-tempered-twice" in [fault.name for fault in others]
    assert explain(sampling.CONTRACT, sampling_sentences.SAMP_04, [[(call, seen)]], others) == []


def test_a_step_that_every_operation_has_for_itself_is_shared_by_none():
    assert all(set(fault.change).isdisjoint(vars(Operation)) for fault in kindred("quantized_matmul"))


def tried(fault: Fault) -> tuple[Trial, Test]:
    """A test of a scheduler's fault, failed."""
    test = next(one for one in all_tests() if one.requirement.id == fault.kills.id)
    operations = {op.signature.operation: op for op in scheduler.CONTRACT.operations}
    operations["Scheduler"] = scheduler.CONTRACT.faulty(fault)
    trial = Trial(LocalSubject(operations), test.requirement)
    test.run(trial, Profile("quick", diagnose=False))
    assert trial.outcome.state == "failed"
    return trial, test


def test_the_same_words_of_a_test_name_one_mistake_and_not_another():
    known = {fault.name: fault for fault in scheduler.CONTRACT.faults}
    overtakes, arrives_again = known["scheduler-overtakes"], known["scheduler-arrives-again"]
    trial, test = tried(overtakes)
    assert alike(trial, test.function, trial.told, [arrives_again, overtakes]) == [overtakes]


class SimplestAlone(Inputs):
    """Nothing but the first example lies inside what is claimed."""

    def within(self, envelope):
        def made(tape: bytes) -> bytes:
            if any(tape):
                raise OutsideEnvelope("it is not claimed")
            return tape

        return made


def test_examples_outside_the_envelope_do_not_end_the_search_for_more_that_fail():
    def fails(subject: Trial, tape: bytes) -> None:
        raise Nonconformance("it is wrong")

    operations = {op.signature.operation: op for op in rope.CONTRACT.operations}
    trial = Trial(LocalSubject(operations), rope.ROPE_01)
    Test(rope.ROPE_01, "test_x", "test_rope.py", fails, {"tape": SimplestAlone()}, 1.0).run(trial, Profile("quick"))
    assert (trial.outcome.state, trial.outcome.message) == ("failed", "it is wrong")


class AsDrawn(Inputs):
    """The tape itself."""

    def within(self, envelope):
        return lambda tape: tape


def test_a_test_that_cannot_go_on_is_failed_while_more_examples_are_looked_for():
    def stumbles(subject: Trial, tape: bytes) -> None:
        np.zeros(2).reshape(3)

    operations = {op.signature.operation: op for op in rope.CONTRACT.operations}
    trial = Trial(LocalSubject(operations), rope.ROPE_01)
    Test(rope.ROPE_01, "test_x", "test_rope.py", stumbles, {"tape": AsDrawn()}, 1.0).run(trial, Profile("quick"))
    assert trial.outcome.state == "failed"
    assert trial.outcome.message.startswith("the test could not go on with what came back: ValueError: ")


def test_who_samples_without_a_cache_alone_is_asked_with_one_without_a_sampler():
    claimed = {"generation": {"sampled_caches": [False]}}
    start = "test_an_end_of_sequence_id_may_be_the_first_after_a_prompt"
    test = next(one for one in all_tests() if one.name.startswith(start))
    right = {op.signature.operation: op for op in generation.CONTRACT.operations}
    fault = next(one for one in generation.CONTRACT.faults if one.name == "generation-eos-never-first")
    wrong = {**right, fault.kills.name: generation.CONTRACT.faulty(fault)}
    states = []
    for operations in (right, wrong):
        trial = Trial(LocalSubject(operations, envelope=claimed), test.requirement)
        test.run(trial, Profile("quick"))
        states.append(trial.outcome.state)
    assert states == ["passed", "failed"]


def test_words_that_fit_many_mistakes_name_none():
    overtakes = next(fault for fault in scheduler.CONTRACT.faults if fault.name == "scheduler-overtakes")
    trial, test = tried(overtakes)
    assert alike(trial, test.function, trial.told, [overtakes] * 4) == []


def test_an_argument_that_the_story_overwrites_is_not_taken_for_changed_by_the_subject():
    """A subject may get the caller's own memory, and a fault gets a copy."""
    key, value = (RANDOM.normal(size=(1, 1, 1, 4)).astype(np.float32) for _ in range(2))
    steps = (
        ("update_and_fetch", {"key": key, "value": value}),
        ("overwrite", {"step": 1}),
        ("update_and_fetch", {"key": key + 1, "value": value + 1}),
    )
    call = Call("KVCache", {"steps": steps})
    by_reference = next(one for one in kv_cache.CONTRACT.faults if one.name == "kv-cache-first-by-reference")
    seen = LocalSubject({"KVCache": kv_cache.CONTRACT.faulty(by_reference)}).call(call)
    shared = replace(seen, changed=("steps.0.1.key", "steps.0.1.value"))
    found = explain(kv_cache.CONTRACT, by_reference.kills, [[(call, shared)]])
    assert by_reference.name in [fault.name for fault in found]


def test_a_request_whose_tokens_the_story_overwrites_is_looked_up_like_others():
    test = next(test for test in all_tests() if test.requirement is scheduler.SCHED_46)
    fault = next(one for one in scheduler.CONTRACT.faults if one.name == "scheduler-prompt-read-for-each-chunk")
    trial = Trial(LocalSubject({"Scheduler": scheduler.CONTRACT.faulty(fault)}), test.requirement)
    test.run(trial, Profile("quick", shrink=False))
    assert trial.outcome.state == "failed"
    assert fault.name in str(trial.outcome.diagnosis)


def test_a_search_among_the_faults_of_an_operation_ends(monkeypatch):
    fault = next(fault for fault in rope.CONTRACT.faults if fault.name == "rope-offset-plus-one")
    test = next(test for test in all_tests() if test.requirement == fault.kills)

    def named() -> list[str]:
        trial = Trial(LocalSubject({"RoPE": rope.CONTRACT.faulty(fault)}), test.requirement)
        test.run(trial, Profile("quick", shrink=False))
        assert trial.outcome.state == "failed"
        return trial.outcome.diagnosis

    assert fault.name in named()
    monkeypatch.setattr("inferspec.conformance.suite.OWN", -1.0)
    assert named() == []


def test_a_mistake_behind_a_call_that_an_assert_refused_is_named():
    fault = next(one for one in rope.CONTRACT.faults if one.name == "rope-table-marked-before-it-is-refused")
    test = next(one for one in all_tests() if one.name == "test_positions_that_were_refused_leave_the_table_as_it_was")

    class Asserts(rope.CONTRACT.faulty(fault)):
        def guard(self, a):
            try:
                super().guard(a)
            except ValueError as error:
                raise AssertionError(error) from None

    trial = Trial(LocalSubject({"RoPE": Asserts}), test.requirement)
    test.run(trial, Profile("quick", shrink=False))
    assert fault.name in trial.outcome.diagnosis
