"""Do the drawn inputs reach what real bugs need? Counted on the calls that the suites really make."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from inferspec.conformance.calls import BESIDE, RARE_VIEWS, SAME, VIEWS, Call
from inferspec.conformance.checkpoints.gguf import content
from inferspec.conformance.envelope import floor
from inferspec.conformance.inputs.attention import louder
from inferspec.conformance.inputs.batching_script import has_idle_updates
from inferspec.conformance.inputs.paged_kv_refusals import freed_of_many
from inferspec.conformance.inputs.scheduler_script import CANCELLING, has_void_steps
from inferspec.conformance.judging.trial import Trial
from inferspec.conformance.strategies import Calls, Pick
from inferspec.conformance.subject import LocalSubject
from inferspec.conformance.suite import Profile, Test, Undrawn, all_tests
from inferspec.conformance.tapes import LENGTH
from inferspec.spec import COMPONENTS, contract
from inferspec.spec.contract import Aspect
from inferspec.spec.loading import HABITS
from inferspec.spec.numerics import DTYPES, Precision, f64, largest
from inferspec.spec.speculative import Verify
from inferspec.tools.drawn_inputs import OPERATIONS, Recorder, argument_of, calls_of, contracted, drawn, reached


@pytest.mark.parametrize(("component", "operation"), OPERATIONS, ids=[name for _, name in OPERATIONS])
def test_every_choice_of_the_envelope_is_drawn(component, operation):
    calls = calls_of(component, operation)
    for key, choices in contract(component).envelope.items():
        drawn = reached(calls, key)
        # Trained models are asked one after the other, in one example; who evicts by age is asked for that, and nobody for "any".
        if drawn and isinstance(choices, tuple) and key not in ("trained", "eviction"):
            assert drawn == set(choices), f"{operation}: {key} never is {set(choices) - drawn}"


@pytest.mark.parametrize(("component", "operation"), OPERATIONS, ids=[name for _, name in OPERATIONS])
def test_every_dtype_is_drawn_often(component, operation):
    calls = [call for call in calls_of(component, operation) if "dtypes" in call.features]
    for dtype in DTYPES if calls else ():
        share = sum(call.features["dtypes"] == dtype for call in calls) / len(calls)
        assert share > 0.1, f"{operation}: {dtype} in {share:.0%} of {len(calls)} calls"


@pytest.mark.parametrize(("component", "operation"), OPERATIONS, ids=[name for _, name in OPERATIONS])
def test_every_array_argument_is_seen_as_every_view(component, operation):
    calls = [call for call in calls_of(component, operation) if call.views]
    if contract(component).operation(operation).methods and not calls:
        return  # a driver lays out what it hands on
    arrays = {
        argument_of(path) for call in calls_of(component, operation) for path, x in call.leaves().items() if x.ndim
    }
    assert {argument_of(path) for call in calls for path in call.views} == arrays - {""}
    if arrays:
        views = {view for call in calls for view in call.views.values() if not view.startswith((SAME, BESIDE))}
        assert views - set(RARE_VIEWS) == set(VIEWS)


def test_attention_meets_every_relation_of_lengths():
    pairs = {_lengths(call) for call in calls_of("attention", "scaled_dot_product_attention")}
    assert any(length < keys for length, keys in pairs if length > 1)
    assert any(length == keys > 1 for length, keys in pairs)
    assert any(length > keys > 0 for length, keys in pairs)
    assert any(length == 1 < keys for length, keys in pairs)
    assert any(keys == 0 for _, keys in pairs)
    assert any(length == 0 for length, _ in pairs)


@pytest.mark.parametrize("ratio", [1, 2, 3, 5, 7, 8])
def test_attention_meets_every_ratio_of_heads_with_more_than_one_key_head(ratio):
    calls = calls_of("attention", "scaled_dot_product_attention")
    heads = {(c.arguments["query"].shape[-3], c.arguments["key"].shape[-3]) for c in calls}
    assert any(query == ratio * key for query, key in heads if key > 1)


@pytest.mark.parametrize("encoding", ["bool", "-inf", "lowest", "additive"])
@pytest.mark.parametrize("rank", [0, 1, 2, 3, 4, 5])
def test_attention_meets_masks_of_every_rank_in_every_encoding(encoding, rank):
    calls = calls_of("attention", "scaled_dot_product_attention")
    masks = [
        c.arguments["mask"]
        for c in calls
        if c.features["masks"] == encoding and isinstance(c.arguments["mask"], np.ndarray)
    ]
    assert any(mask.ndim == rank for mask in masks)


def test_attention_meets_the_sizes_beside_tiles():
    """In profile nightly: the others draw a part of them."""
    test = next(test for test in all_tests() if test.name == "test_lengths_beside_tiles_are_right")
    sizes = {size for call in drawn(test, Profile("nightly")) for size in _lengths(call)}
    assert {31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025} <= sizes


@pytest.mark.parametrize("tile", [8, 16, 32, 64, 128])
def test_flash_attention_meets_lengths_below_at_and_above_every_tile(tile):
    pairs = {_lengths(call) for call in calls_of("flash_attention", "flash_attention")}
    for axis, name in enumerate(("queries", "keys")):
        beside = {pair[axis] % tile for pair in pairs if pair[axis] >= tile - 1}
        assert {tile - 1, 0, 1} <= beside, f"{name}: {sorted(beside)}"
        assert any(pair[axis] > 2 * min(tile, 64) for pair in pairs), name


def test_flash_attention_stays_small_enough_for_an_emulated_gpu():
    counts = [_products(call) for call in calls_of("flash_attention", "flash_attention")]
    # It makes 60 million products a second: half a second for a call, and half a minute for all of them.
    assert max(counts) < 30_000_000
    assert sum(counts) < 31 * 60_000_000


def _products(call: Call) -> int:
    """Products query · key of a call of attention."""
    return call.arguments["query"].size * call.arguments["key"].shape[-2]


@pytest.mark.parametrize("page_size", [1, 2, 3, 8, 16, 24, 32, 64, 100, 128, 256])
def test_paged_attention_meets_contexts_below_at_and_above_the_end_of_every_page(page_size):
    calls = [c for c in calls_of("paged_attention", "paged_attention") if c.arguments["page_size"] == page_size]
    ends = {int(n) % page_size for c in calls for n in c.arguments["context_lens"] if n >= page_size - 1 > -1}
    assert {(page_size - 1) % page_size, 0, 1 % page_size} <= ends
    assert any((c.arguments["context_lens"] > page_size).any() for c in calls)


def test_paged_attention_meets_contexts_that_are_empty_and_rows_that_differ():
    lens = [c.arguments["context_lens"].astype(int).tolist() for c in calls_of("paged_attention", "paged_attention")]
    assert any(0 in row for row in lens)
    assert any(0 in row and max(row) > 0 for row in lens)
    assert any(len(set(row)) > 2 for row in lens)
    assert any(n > 200 for row in lens for n in row)


def test_paged_attention_meets_tables_of_every_kind():
    entries, shared = set(), False
    # A page size that does not fit may be 0.
    for call in (c for c in calls_of("paged_attention", "paged_attention") if c.arguments["page_size"]):
        a = call.arguments
        table = a["block_table"].astype(np.int64)
        used = [
            set(row[: -(-int(n) // a["page_size"])].tolist()) for row, n in zip(table, a["context_lens"], strict=False)
        ]
        shared = shared or any(one & other for one in used for other in used if one is not other)
        pages = a["key_pages"].shape[0]
        entries |= {"past 16 bits"} if max(map(max, filter(None, used)), default=0) > 2**16 else set()
        entries |= {
            what
            for what, there in (("-1", table == -1), ("missing", table == pages), ("huge", table > 10**9))
            if there.any()
        }
    assert shared
    assert entries == {"-1", "missing", "huge", "past 16 bits"}


def test_paged_attention_meets_every_kind_of_stale_slot():
    found = set()
    for call in calls_of("paged_attention", "paged_attention"):
        pool = f64(call.arguments["value_pages"])
        found |= {"nan"} if np.isnan(pool).any() else set()
        found |= {"inf"} if np.isposinf(pool).any() else set()
        found |= {"-inf"} if np.isneginf(pool).any() else set()
        found |= {"largest"} if (pool == largest(call.features["dtypes"])).any() else set()
    assert found == {"nan", "inf", "-inf", "largest"}


def _lengths(call: Call) -> tuple[int, int]:
    return call.arguments["query"].shape[-2], call.arguments["key"].shape[-2]


@pytest.mark.parametrize("operation", ["KVCache", "StaticKVCache"])
def test_stories_of_caches_meet_every_condition(operation):
    seen = set()
    for call in calls_of("kv_cache", operation):
        length = 0
        for method, given in call.arguments["steps"]:
            if method == "update_and_fetch" and given["key"].ndim == 4:
                chunk = given["key"].shape[2]
                seen |= {("append", min(chunk, 3)), ("to", length + chunk), ("nan", bool(np.isnan(given["key"]).any()))}
                seen.add(("crosses", length // 256, (length + chunk) // 256))
                length += chunk
            elif method == "rewind" and 0 <= given["n"] <= length:
                seen.add(("rewind", "nothing" if not given["n"] else "all" if given["n"] == length else "some"))
                length -= given["n"]
            elif method in ("another", "switch", "restore"):
                break
    assert {("append", n) for n in range(4)} <= seen
    assert {("rewind", what) for what in ("nothing", "some", "all")} <= seen
    assert {("to", length) for length in (255, 256, 257, 512)} <= seen
    assert {("crosses", 0, 1), ("crosses", 0, 2), ("crosses", 1, 2), ("nan", True)} <= seen


def test_stories_of_batches_meet_every_condition():
    seen = set()
    for call in calls_of("batching", "BatchingKVCache"):
        lengths: dict[int, int] = {}
        former: dict[int, int] = {}
        for method, given in call.arguments["steps"]:
            slot = given.get("slot", 0)
            if method == "add" and slot not in lengths and 0 <= slot < call.arguments["max_requests"]:
                lengths[slot] = given["key"].shape[2]
                seen.add(("prompt", min(lengths[slot], 2)))
                if slot in former:
                    seen.add(("after", int(np.sign(lengths[slot] - former[slot]))))
                if others := [n for other, n in lengths.items() if other != slot]:
                    seen.add(("beside", int(np.sign(lengths[slot] - max(others)))))
            elif method == "remove" and slot in lengths:
                former[slot] = lengths.pop(slot)
            elif method == "update_and_fetch" and given["key"].ndim == 4:
                length = given["key"].shape[2]
                lengths = {slot: n + length for slot, n in lengths.items()}
                idle = set(range(call.arguments["max_requests"])) - set(lengths)
                seen.add(("idle", "none" if not idle else "some" if lengths else "all"))
                seen |= {("apart by 32", max(lengths.values(), default=0) - n >= 32) for n in lengths.values()}
                seen |= {("chunk before", length > 1 and n > length) for n in lengths.values()}
                seen |= {("past 256", n > 256) for n in lengths.values()}
                if idle and idle < set(range(len(given["key"]))):
                    seen.add(("nan in idle", bool(np.isnan(f64(given["key"])[sorted(idle)]).any())))
    assert {("prompt", n) for n in range(3)} <= seen
    assert {(where, sign) for where in ("after", "beside") for sign in (-1, 0, 1)} <= seen
    assert {("idle", what) for what in ("none", "some", "all")} <= seen
    assert {(what, True) for what in ("apart by 32", "chunk before", "past 256", "nan in idle")} <= seen


def test_workloads_meet_requests_of_every_kind():
    calls = calls_of("metrics", "aggregate_metrics")
    counts = [[len(line) for line in call.arguments["token_times"]] for call in calls]
    assert {0, 1, 2, 3, 5} <= {len(lines) for lines in counts}
    assert {0, 1, 2} <= {count for lines in counts for count in lines}
    assert max(count for lines in counts for count in lines) >= 1000
    assert any(0 in lines and max(lines) > 0 for lines in counts)


def test_verifications_meet_rejections_at_every_place_and_none():
    seen, operation = set(), Verify()
    for call in calls_of("speculative", "verify"):
        a = operation.bind(call.arguments)
        with contextlib.suppress(ValueError, TypeError):
            operation.guard(a)
            tokens = [int(token) for token in a.draft_tokens]
            seen.add((len(tokens), operation.kept(tokens, f64(a.draft_probs), f64(a.target_probs), f64(a.uniform))))
    assert {(count, kept) for count in (0, 1, 2, 3, 4, 5, 8) for kept in range(count + 1)} <= seen


def test_who_keeps_the_impossible_at_a_number_of_0_is_red_in_what_is_said_of_it_alone():
    tests = [test for test in all_tests() if test.requirement.name == "verify"]
    asked = {test.requirement.id for test in tests for call in drawn(test, Profile()) if _at_zero(call)}
    assert asked == {"SPEC-06", "SPEC-07", "SPEC-09"}


def _at_zero(call: Call) -> bool:
    """Whether a draft that the target cannot give has a uniform number of 0, in a call that is not refused."""
    operation = Verify()
    a = operation.bind(call.arguments)
    try:
        operation.guard(a)
    except (ValueError, TypeError):
        return False
    drafts = [int(token) for token in a.draft_tokens]
    return any(u == 0 and row[t] == 0 for t, u, row in zip(drafts, a.uniform, f64(a.target_probs), strict=False))


def test_speculative_requests_meet_ends_and_limits_at_every_place_of_a_round():
    calls = [c for c in calls_of("speculative", "speculative_generate") if c.features.get("drafters") == "same"]
    left = {(c.arguments.get("num_draft_tokens", 4), c.arguments["max_tokens"]) for c in calls}
    assert {(4, limit) for limit in range(7)} <= left
    assert {drafts for drafts, _ in left} >= {0, 1, 2, 3, 4, 8, 16, 64}
    assert any(len(c.arguments.get("eos", ())) > 3 for c in calls)


def test_products_with_loud_hidden_keys_stay_finite_in_float16():
    rows = np.full((1, 1, 2, 256), 3.0, np.float16)
    call = Call(
        "scaled_dot_product_attention", {"query": rows, "key": rows, "value": rows}, features={"dtypes": "float16"}
    )
    key = louder(call, np.array([True, False]), Precision.NATIVE).arguments["key"]
    assert np.isfinite((rows @ key.swapaxes(-1, -2)).astype(np.float16)).all()
    assert key.max() > 10


def test_prompts_that_are_too_long_are_so_whatever_is_cached_beside_them():
    test = next(one for one in all_tests() if one.name == "test_a_prompt_of_more_blocks_than_are_free_is_refused")
    trial = Trial(LocalSubject({"BlockManager": contract("block_manager").operation("BlockManager")}), test.requirement)
    test.run(trial, Profile(seed=105, shrink=False, diagnose=False))
    assert trial.outcome.state == "passed", trial.outcome.message


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


@pytest.mark.parametrize("written", [(), *((habit,) for habit in HABITS)])
def test_a_gguf_file_has_the_merges_without_which_llama_cpp_opens_none(written):
    call = next(call for call in calls_of("loading", "load") if call.arguments["form"] == "gguf")
    assert b"tokenizer.ggml.merges" in content(call.arguments["config"], call.arguments["weights"], written=written)


def test_who_claims_no_head_of_two_features_turns_no_single_pair():
    partial = set()
    for call in claimed_calls("rope", {"head_dims": [4, 6, 64]}):
        assert call.arguments["dims"] >= 4, str(call)
        partial.add(call.arguments["dims"] < call.arguments["x"].shape[-1])
    assert partial == {True, False}


def test_whose_steps_are_all_updated_is_given_no_void_ones():
    for call in claimed_calls("scheduler", {"void_steps": [False]}):
        assert not has_void_steps(call.arguments["steps"]), str(call)


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


def test_an_input_that_cannot_be_made_is_no_failure_of_the_subject():
    def nothing(pick: Pick) -> Call:
        raise KeyError(pick.seed)

    broken = dataclasses.replace(all_tests()[0], inputs={"call": Calls(nothing, {})})
    with pytest.raises(Undrawn, match="KeyError"):
        broken.run(Recorder(broken), Profile())


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


def test_a_slice_that_is_to_be_refused_has_not_as_many_positions_as_there_are_rows():
    test = next(test for test in all_tests() if test.name == "test_offsets_that_do_not_fit_are_refused")
    calls = [call for call in drawn(test, Profile("full")) if isinstance(call.arguments["offset"], slice)]
    assert {call.arguments["offset"].step for call in calls} == {None, 2}
    for a in (call.arguments for call in calls):
        assert len(range(a["offset"].start, a["offset"].stop, a["offset"].step or 1)) != a["x"].shape[1]
