"""What a wrong result is said to look like, and what it is not."""

from __future__ import annotations

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.diagnosis import explain
from inferspec.conformance.subject import LocalSubject
from inferspec.spec import attention, kv_cache, linear, llama, rope
from inferspec.spec.contract import Answer, Arguments, Contract, Operation, Requirement
from inferspec.spec.numerics import Precision

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


def test_an_unknown_activation_is_not_taken_for_an_unknown_rope():
    ignored = next(fault for fault in llama.CONTRACT.faults if fault.name == "llama-unknown-rope-ignored")
    operation = llama.CONTRACT.faulty(ignored)()
    operation.guard_config({"hidden_act": "silu", "rope_scaling": {"rope_type": "unheard-of"}})
    try:
        operation.guard_config({"hidden_act": "unheard-of"})
    except ValueError:
        return
    raise AssertionError("the activation was not looked at")
