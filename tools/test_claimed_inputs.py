"""Is a subject asked for what it claims, and for nothing else? Counted on the calls that the suites really make."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from inferspec.conformance.calls import Call
from inferspec.conformance.envelope import floor
from inferspec.conformance.inputs.batching_script import has_idle_updates
from inferspec.conformance.inputs.paged_kv_refusals import freed_of_many
from inferspec.conformance.inputs.scheduler_script import CANCELLING, has_void_steps
from inferspec.conformance.judging.trial import Trial
from inferspec.conformance.subject import LocalSubject
from inferspec.conformance.suite import Profile, Test, all_tests
from inferspec.conformance.tapes import LENGTH
from inferspec.spec import COMPONENTS, contract
from inferspec.spec.contract import Aspect
from inferspec.spec.engine_model import pages_of
from inferspec.tools.drawn_inputs import Recorder, contracted


def test_who_samples_from_single_rows_is_given_no_others():
    for test in (test for test in all_tests() if test.requirement in contract("sampling").requirements):
        recorder = Recorder(test)
        recorder.subject.description.envelope = {"sampling": {"leading_dims": [()]}}
        test.run(recorder, Profile(thinned=0.2))
        assert {call.arguments["logits"].ndim for call in recorder.calls} <= {1}, test.id


@pytest.mark.parametrize("component", ["attention", "flash_attention", "paged_attention"])
def test_who_scales_by_numbers_above_zero_alone_is_given_no_others(component):
    for call in claimed_calls(component, {"scale_signs": ["positive"]}):
        assert (call.arguments.get("scale") or 1.0) > 0, str(call)


@pytest.mark.parametrize("component", ["attention", "flash_attention"])
def test_who_takes_bool_masks_alone_is_given_no_additive_ones(component):
    for call in claimed_calls(component, {"masks": ["none", "causal", "bool"]}):
        mask = call.arguments.get("mask")
        assert not isinstance(mask, np.ndarray) or mask.dtype == bool, str(call)


@pytest.mark.parametrize("component", ["attention", "flash_attention"])
@pytest.mark.parametrize("kind", ["none", "causal", "bool"])
def test_who_takes_masks_of_one_kind_is_given_no_others(component, kind):
    kinds = {"NoneType": "none", "str": "causal", "ndarray": "bool"}
    for call in claimed_calls(component, {"masks": [kind]}):
        if "query" in call.arguments:
            assert kinds[type(call.arguments.get("mask")).__name__] == kind, str(call)


@pytest.mark.parametrize("component", ["attention", "flash_attention", "paged_attention"])
def test_who_takes_no_default_scale_is_given_a_number(component):
    for call in claimed_calls(component, {"scales": ["given"]}):
        if "query" in call.arguments and call.operation != "MultiHeadAttention":
            assert call.arguments.get("scale") is not None, str(call)


def test_who_takes_no_empty_chunks_is_given_none():
    for call in claimed_calls("kv_cache", {"empty_chunks": [False]}):
        assert all(given["key"].shape[2] for step, given in call.arguments["steps"] if step == "update_and_fetch"), str(
            call
        )


def test_who_claims_short_contexts_and_few_pages_is_given_no_others():
    for call in claimed_calls("paged_attention", {"context": 64, "pages": 64}):
        a = call.arguments
        assert a["context_lens"].max(initial=0) <= 64 >= a["query"].shape[2], str(call)
        assert len(a["key_pages"]) <= 64, str(call)


def test_who_samples_greedily_alone_is_given_no_other_temperature():
    for call in claimed_calls("sampling", {"temperatures": ["greedy"]}):
        assert not call.arguments.get("temperature"), str(call)


def test_whose_layers_have_a_bias_is_given_none_without():
    for call in claimed_calls("linear", {"bias": [True]}):
        assert call.operation != "linear" or call.arguments.get("bias") is not None, str(call)


def test_who_loads_dense_models_alone_is_given_no_packed_ones():
    dense = {"forms": ["folder"], "packing": ["dense"], "trained": ["tiny-qwen3-4bit"]}
    for call in claimed_calls("loading", dense):
        assert "quantization" not in call.arguments["config"], str(call)


def test_who_reads_no_head_dim_is_given_none():
    for call in claimed_calls("llama", {"head_dims": ["absent"]}):
        assert not call.arguments["config"].get("head_dim"), str(call)


def test_who_reads_gguf_files_of_float32_alone_is_given_no_others():
    for call in claimed_calls("loading", {"forms": ["gguf"], "gguf_types": ["F32"]}):
        assert call.arguments["form"] == "gguf", str(call)
        if not call.arguments.get("stored"):
            assert {x.dtype.name for x in call.arguments["weights"].values()} == {"float32"}, str(call)


def test_who_claims_no_head_of_two_features_turns_no_single_pair():
    partial = set()
    for call in claimed_calls("rope", {"head_dims": [4, 6, 64]}):
        assert call.arguments["dims"] >= 4, str(call)
        partial.add(call.arguments["dims"] < call.arguments["x"].shape[-1])
    assert partial == {True, False}


def test_whose_steps_are_all_updated_is_given_no_void_ones():
    for call in claimed_calls("scheduler", {"void_steps": [False]}):
        assert not has_void_steps(call.arguments["steps"]), str(call)


def test_an_engine_without_pages_is_given_memory_for_all_of_its_requests():
    for call in claimed_calls("engine", {"short_pools": [False], "pages": ["untold"]}, thinned=0.02):
        added = [given for step, given in call.arguments["steps"] if step == "add"]
        # Its last id takes no slot.
        ends = [len(given["tokens"]) + given["max_tokens"] - 1 for given in added if given["tokens"]]
        needed = sum(pages_of(max(end, 1), call.arguments["page_size"]) for end in ends)
        assert call.arguments["num_pages"] >= needed, str(call)


@pytest.mark.parametrize("component", ["generation", "speculative"])
def test_who_takes_prompts_as_arrays_alone_is_given_no_others(component):
    for call in claimed_calls(component, {"prompts": ["array"]}):
        if "max_tokens" in call.arguments:
            prompts = [one["tokens"] for one in (call.arguments, call.arguments.get("beside")) if one]
            assert all(isinstance(prompt, np.ndarray) for prompt in prompts), str(call)


def test_who_evicts_by_another_rule_than_age_is_right_in_all_else():
    kit = contract("block_manager")
    stack = next(fault for fault in kit.faults if fault.name == "block-manager-last-in-first-out")
    states = set()
    for test in (test for test in all_tests() if test.requirement in kit.requirements):
        trial = Trial(LocalSubject({"BlockManager": kit.faulty(stack)}), test.requirement)
        trial.subject.description.envelope = {
            "block_manager": {"eviction": ["any"], "block_sizes": [2, 3], "blocks": 60}
        }
        test.run(trial, Profile(thinned=0.1, shrink=False, diagnose=False))
        if trial.outcome.state not in ("passed", "outside_envelope"):
            assert (test.id, trial.outcome.message) == ()
        states.add((test.requirement.id, trial.outcome.state))
    assert {name for name, state in states if state == "outside_envelope"} >= {"BLK-15"}


@pytest.mark.parametrize("component", ["scheduler", "engine"])
def test_whose_requests_cannot_leave_is_asked_to_cancel_none(component):
    for call in claimed_calls(component, {"cancelling": [False]}):
        assert not CANCELLING & {step for step, _ in call.arguments["steps"]}, str(call)


def test_who_rotates_by_some_bases_is_given_no_others():
    for base in (10, 12345.5):
        bases = [one for one in contract("rope").envelope["bases"] if one != base]
        for call in claimed_calls("rope", {"bases": bases}):
            assert call.arguments.get("base", 10000) in bases, str(call)


@pytest.mark.parametrize("component", ["attention", "flash_attention"])
def test_who_takes_no_more_queries_than_keys_is_given_no_more(component):
    for call in claimed_calls(component, {"more_queries": [False]}):
        if "query" in call.arguments:
            assert call.arguments["query"].shape[-2] <= call.arguments["key"].shape[-2], str(call)


def test_who_is_never_asked_while_all_slots_are_idle_is_not():
    for call in claimed_calls("batching", {"idle_updates": [False]}):
        assert not has_idle_updates(call.arguments["steps"]), str(call)


@pytest.mark.parametrize("component", ["generation", "speculative"])
def test_who_takes_limits_above_zero_alone_is_given_no_others(component):
    for call in claimed_calls(component, {"zero_max_tokens": [False]}):
        assert call.arguments.get("max_tokens", 1), str(call)


def test_who_makes_room_for_so_many_ids_is_asked_for_no_more():
    for call in claimed_calls("generation", {"max_tokens": 3}):
        if call.operation != "generate":
            continue
        requests = [call.arguments, call.arguments.get("beside") or {}]
        assert all(request.get("max_tokens", 3) <= 3 for request in requests), str(call)


def test_who_takes_a_sampler_without_a_cache_alone_is_given_none_with_one():
    asked = [c.arguments for c in claimed_calls("generation", {"sampled_caches": [False]}) if c.operation == "generate"]
    assert any("sampler" in arguments for arguments in asked)
    assert all(arguments.get("cache") is False for arguments in asked if "sampler" in arguments)
    assert any(arguments.get("cache", True) for arguments in asked)


def test_who_always_drafts_is_asked_for_a_draft_at_least():
    for call in claimed_calls("speculative", {"zero_num_draft_tokens": [False]}):
        assert call.arguments.get("num_draft_tokens", 1), str(call)


@pytest.mark.parametrize(
    ("key", "is_usual"),
    [
        ("zero_max_tokens", lambda request: request["max_tokens"] != 0),
        ("stops", lambda request: not request.get("eos")),
        ("priorities", lambda request: not request.get("priority")),
    ],
)
def test_who_knows_no_such_requests_is_given_none(key, is_usual):
    for call in claimed_calls("engine", {key: [False]}):
        assert all(is_usual(given) for step, given in call.arguments["steps"] if step == "add"), str(call)


def test_whose_engine_ends_with_its_model_is_given_none_that_fails():
    for call in claimed_calls("engine", {"failing_models": [False]}):
        assert all(step != "fail" for step, _ in call.arguments["steps"]), str(call)


@pytest.mark.parametrize("component", ["llama", "qwen3"])
def test_who_scales_rope_alone_is_given_no_model_that_does_not(component):
    calls = list(claimed_calls(component, {"rope_types": ["llama3"]}))
    assert calls
    for call in calls:
        assert contract(component).operation(call.operation)().scaling(call.arguments["config"]), str(call)


@pytest.mark.parametrize("component", ["embedding", "quantization"])
def test_who_looks_up_batches_alone_is_given_batches(component):
    for call in claimed_calls(component, {"leading_dims": [(2, 3)]}):
        if "tokens" in call.arguments:
            assert call.arguments["tokens"].ndim == 2, str(call)


def test_who_takes_uniform_numbers_of_a_dtype_is_given_no_others():
    for call in claimed_calls("sampling", {"uniform_dtypes": ["float16"]}):
        if call.arguments.get("uniform") is not None:
            assert call.arguments["uniform"].dtype == np.float16, str(call)


LARGEST = [(c, key) for c in COMPONENTS for key, most in contract(c).envelope.items() if isinstance(most, int)]


@pytest.mark.parametrize(("component", "key"), LARGEST)
def test_whoever_claims_as_little_as_one_may_is_asked(component, key):
    assert list(claimed_calls(component, {key: floor(key)}, thinned=0.05))


def claimed_calls(component: str, envelope: Mapping[str, Any], thinned: float = 0.1) -> Iterator[Call]:
    """The first calls of examples for a subject of a smaller envelope, except for what should be refused."""
    for test in (test for test in all_tests() if test.requirement in contract(component).requirements):
        if test.requirement.aspect is not Aspect.GUARD:
            recorder = Recorder(test)
            recorder.subject.description.envelope = {component: envelope}
            test.run(recorder, Profile(thinned=thinned))
            yield from recorder.calls


def keys_of(arguments: Mapping[str, Any]) -> list[Any]:
    """The keys that the steps of a story give."""
    return [given["key"] for _, given in arguments["steps"] if "key" in given]


def group_sizes_of(arguments: Mapping[str, Any]) -> set[int]:
    """Those of a model and of its single layers."""
    said = arguments["config"].get("quantization", {})
    return {one["group_size"] for one in (said, *said.values()) if isinstance(one, Mapping) and one}


CLAIMS: tuple[tuple[str, str, Mapping[str, Any], Callable[[Mapping[str, Any]], bool]], ...] = (
    ("linear", "linear", {"bias": [True]}, lambda a: a["bias"] is not None),
    ("linear", "linear", {"leading_dims": [(2, 3)]}, lambda a: len(a["x"]) != 1),
    ("linear", "silu", {"leading_dims": [(2,)]}, lambda a: a["x"].ndim == 2),
    ("linear", "softmax", {"leading_dims": [(2,)]}, lambda a: a["x"].ndim == 2),
    ("linear", "softmax", {"axes": [0]}, lambda a: a.get("axis", -1) == 0),
    ("sampling", "Sampler", {"temperatures": ["greedy"]}, lambda a: not a.get("temperature", 0)),
    ("sampling", "Sampler", {"temperatures": ["one"]}, lambda a: a["temperature"] == 1),
    ("sampling", "Sampler", {"both_filters": [False]}, lambda a: a.get("top_k") is None or a.get("top_p", 1) == 1),
    ("paged_attention", "paged_attention", {"context": 64}, lambda a: a["context_lens"].max(initial=0) <= 64),
    ("paged_attention", "paged_attention", {"pages": 64}, lambda a: len(a["key_pages"]) <= 64),
    ("paged_attention", "paged_attention", {"queries": ["several"]}, lambda a: a["query"].shape[2] != 1),
    ("paged_kv", "PagePool", {"page_sizes": [24]}, lambda a: a["page_size"] == 24),
    ("paged_kv", "PagedKVCache", {"page_sizes": [16]}, lambda a: a["page_size"] == 16),
    ("paged_kv", "block_table", {"page_sizes": [16]}, lambda a: a["page_size"] == 16),
    ("paged_kv", "PagedKVCache", {"empty_chunks": [False]}, lambda a: all(x.shape[2] for x in keys_of(a))),
    ("generation", "generate", {"stops": [0, 1]}, lambda a: len(a.get("eos", ())) < 2),
    ("speculative", "speculative_generate", {"stops": [0, 1]}, lambda a: len(a.get("eos", ())) < 2),
    ("llama", "Llama", {"rope": ["rope_parameters"]}, lambda a: "rope_parameters" in a["config"]),
    ("qwen3", "Qwen3", {"rope": ["rope_parameters"]}, lambda a: "rope_parameters" in a["config"]),
    ("llama", "Llama", {"tied": [True]}, lambda a: a["config"]["tie_word_embeddings"]),
    ("qwen3", "Qwen3", {"tied": [True]}, lambda a: a["config"]["tie_word_embeddings"]),
    ("llama", "Llama", {"group_sizes": [64]}, lambda a: group_sizes_of(a) <= {64}),
    ("qwen3", "Qwen3", {"group_sizes": [64]}, lambda a: group_sizes_of(a) <= {64}),
    ("kv_cache", "StaticKVCache", {"tokens": 512}, lambda a: a["max_len"] <= 512),
    ("batching", "BatchingKVCache", {"tokens": 512}, lambda a: a["max_len"] <= 512),
)
"""A component, an operation of it, what is claimed, and whether a call keeps to it."""


@pytest.mark.parametrize(
    ("component", "operation", "claimed", "keeps"), CLAIMS, ids=[f"{op} {claim}" for _, op, claim, _ in CLAIMS]
)
def test_nobody_is_asked_for_what_they_do_not_claim(component, operation, claimed, keeps):
    calls = [call for call in claimed_calls(component, claimed) if call.operation == operation]
    assert calls
    assert not [str(call) for call in calls if not keeps(call.arguments)]


def test_a_pool_of_many_pages_has_pages_of_a_size_that_is_claimed():
    envelope = {**contract("paged_kv").envelope, "page_sizes": (24,)}
    story, _ = freed_of_many.within(envelope)(bytes(LENGTH))
    assert story.arguments["page_size"] == 24


@pytest.mark.parametrize(
    ("component", "claimed"),
    [
        ("paged_kv", {"page_sizes": [24]}),
        ("block_manager", {"block_sizes": [256]}),
        ("scheduler", {"block_sizes": [32]}),
        ("attention", {"ratios": [12]}),
        ("flash_attention", {"ratios": [12]}),
    ],
)
def test_what_is_drawn_in_few_tests_is_asked_in_most_of_who_claims_it_alone(component, claimed):
    assert share_asked(component, claimed) > 0.5


@pytest.mark.parametrize(
    ("component", "claimed"),
    [
        ("attention", {"leading_dims": [(1,), (2,), (9,)]}),
        ("attention", {"ratios": [1]}),
        ("flash_attention", {"head_dims": [128], "leading_dims": [(1,), (2,), (9,)]}),
        ("flash_attention", {"ratios": [1]}),
        ("paged_attention", {"head_dims": [128], "page_sizes": [256]}),
        ("rope", {"head_dims": [128]}),
        ("paged_kv", {"page_sizes": [128], "head_dims": [128]}),
        ("engine", {"page_sizes": [16]}),
        ("engine", {"page_sizes": [8, 32]}),
    ],
)
def test_who_claims_the_usual_sizes_alone_is_asked_nearly_everything(component, claimed):
    assert share_asked(component, claimed) > 0.95


@pytest.mark.parametrize(
    ("component", "claimed", "name"),
    [
        ("attention", {"head_dims": [128]}, "test_more_queries_than_16_bits_count_are_right"),
        ("flash_attention", {"head_dims": [128]}, "test_more_queries_than_16_bits_count_are_right_in_flash_attention"),
        ("rope", {"head_dims": [128]}, "test_more_tokens_than_16_bits_count_are_right"),
        ("engine", {"page_sizes": [256]}, "test_a_prompt_that_was_computed_is_not_computed_again_while_it_is_served"),
    ],
)
def test_what_other_sizes_would_make_too_large_is_asked_with_its_own_alone(component, claimed, name):
    (test,) = (one for one in all_tests() if one.name == name)
    assert is_asked(test, component, {})
    assert not is_asked(test, component, claimed)


@pytest.mark.parametrize(
    ("component", "claimed", "name"),
    [
        ("sampling", {"temperatures": ["one"]}, "test_another_sampler_in_between_changes_nothing"),
        ("linear", {"axes": [0, 1]}, "test_another_axis_in_between_changes_nothing"),
    ],
)
def test_what_is_done_in_between_is_what_is_claimed(component, claimed, name):
    (test,) = (
        test for test in all_tests() if test.name == name and test.requirement in contract(component).requirements
    )
    calls = []

    class Watched(Trial):
        def observe(self, call: Call, *rest: Any, **more: Any) -> Any:
            calls.append(call.arguments)
            return super().observe(call, *rest, **more)

    trial = Watched(_claiming(test, component, claimed), test.requirement)
    test.run(trial, Profile(thinned=0.3))
    assert trial.outcome.state == "passed"
    assert {a.get("axis", 0) for a in calls} <= {0, 1}
    assert {a.get("temperature", 1.0) for a in calls} == {1.0}


def share_asked(component: str, claimed: Mapping[str, Any]) -> float:
    """The part of a component's drawn tests that a subject is asked which claims no more than that."""
    tests = [test for test in all_tests() if test.inputs and test.requirement in contract(component).requirements]
    return sum(is_asked(test, component, claimed) for test in tests) / len(tests)


def is_asked(test: Test, component: str, claimed: Mapping[str, Any]) -> bool:
    """Whether anything is drawn for a subject that claims no more than that."""
    recorder = Recorder(test)
    recorder.subject.description.envelope = {component: claimed}
    test.run(recorder, Profile(thinned=0.1))
    return bool(recorder.calls)


def _claiming(test: Test, component: str, claimed: Mapping[str, Any]) -> LocalSubject:
    operations = {op.signature.operation: op for op in contracted(test).operations}
    return LocalSubject(operations, {component: "float32"}, {component: claimed})
