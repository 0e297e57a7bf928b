"""Do the drawn inputs reach what real bugs need? Counted on the calls that the suites really make."""

from __future__ import annotations

import contextlib
import dataclasses

import numpy as np
import pytest

from inferspec.conformance.calls import BESIDE, RARE_VIEWS, SAME, VIEWS, Call
from inferspec.conformance.checkpoints.gguf import content
from inferspec.conformance.inputs.attention import louder
from inferspec.conformance.judging.trial import Trial
from inferspec.conformance.strategies import Calls, Pick
from inferspec.conformance.subject import LocalSubject
from inferspec.conformance.suite import Profile, Undrawn, all_tests
from inferspec.spec import contract
from inferspec.spec.loading import HABITS
from inferspec.spec.numerics import DTYPES, Precision, f64, largest
from inferspec.spec.speculative import Verify
from inferspec.tools.drawn_inputs import OPERATIONS, Recorder, argument_of, calls_of, drawn, reached


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


@pytest.mark.parametrize("written", [(), *((habit,) for habit in HABITS)])
def test_a_gguf_file_has_the_merges_without_which_llama_cpp_opens_none(written):
    call = next(call for call in calls_of("loading", "load") if call.arguments["form"] == "gguf")
    assert b"tokenizer.ggml.merges" in content(call.arguments["config"], call.arguments["weights"], written=written)


def test_an_input_that_cannot_be_made_is_no_failure_of_the_subject():
    def nothing(pick: Pick) -> Call:
        raise KeyError(pick.seed)

    broken = dataclasses.replace(all_tests()[0], inputs={"call": Calls(nothing, {})})
    with pytest.raises(Undrawn, match="KeyError"):
        broken.run(Recorder(broken), Profile())


def test_a_slice_that_is_to_be_refused_has_not_as_many_positions_as_there_are_rows():
    test = next(test for test in all_tests() if test.name == "test_offsets_that_do_not_fit_are_refused")
    calls = [call for call in drawn(test, Profile("full")) if isinstance(call.arguments["offset"], slice)]
    assert {call.arguments["offset"].step for call in calls} == {None, 2}
    for a in (call.arguments for call in calls):
        assert len(range(a["offset"].start, a["offset"].stop, a["offset"].step or 1)) != a["x"].shape[1]
