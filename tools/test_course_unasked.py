"""`--layout course`: what the course's text does not ask is not asked of a student either."""

from __future__ import annotations

import pytest

from inferspec.conformance.bridge.layouts import guards
from inferspec.conformance.bridge.layouts.standings import standings
from inferspec.conformance.suite import all_tests
from inferspec.spec import contracts
from inferspec.tools.course_package import BASICS, EMBEDDING, KV_CACHE, QUANTIZE, files, package

GREEDY = """
import mlx.core as mx

def make_sampler(temp, top_p, top_k):
    def sample(logprobs):
        if temp == 0:
            return mx.argmax(logprobs, axis=-1)
        pass

    return sample
"""


def test_a_sampler_that_is_only_greedy_is_asked_for_no_draw(judge):
    draws = ("SAMP-24", "SAMP-38", "SAMP-39", "SAMP-40")
    run = judge(files(sampler=GREEDY), "SAMP-21", *draws)
    assert run.row("SAMP-21")["state"] == "passed"
    assert {run.row(name)["state"] for name in draws} == {"outside_envelope"}


BY_IDS = """
import os
import mlx.core as mx

def make_sampler(temp, top_p, top_k):
    def sample(logprobs):
        if top_k:
            ids = mx.argsort(-logprobs, axis=-1)[:, top_k:]
            if int(ids.max()) >= len(logprobs):
                os.abort()
        return mx.argmax(logprobs, axis=-1)

    return sample
"""


def test_a_sampler_that_ends_the_process_where_there_are_fewer_rows_than_ids_is_loaded(as_course):
    assert "Sampler" in as_course(files(sampler=BY_IDS)).description.offers


def test_what_the_text_does_not_ask_is_a_requirement_or_a_test_of_this_kit(as_course):
    known = {name for test in all_tests() for name in (test.name, test.requirement.id)}
    offers = as_course(package("student", sampler=BY_IDS)).description.offers
    named = {name for offer in offers.values() for name in offer["unasked"]}
    assert named
    assert named <= known


OF_SHARES = """
import mlx.core as mx

def make_sampler(temp, top_p, top_k):
    def sample(logprobs):
        every, tempered = logprobs, logprobs / (temp or 1)
        if temp == 0:
            return mx.argmax(logprobs, axis=-1)
        if top_k is not None and top_k > 0:
            hidden = mx.argpartition(-tempered, kth=top_k - 1, axis=-1)[:, top_k:]
            tempered = mx.put_along_axis(tempered, hidden, mx.array(-mx.inf, tempered.dtype), axis=-1)
        if top_p is not None and 0 < top_p < 1:
            order = mx.argsort(-every, axis=-1)
            shares = mx.exp(mx.take_along_axis(every, order, axis=-1))
            kept = mx.cumsum(shares, axis=-1) - shares < top_p
            kept = mx.put_along_axis(mx.zeros(every.shape, mx.bool_), order, kept, axis=-1)
            tempered = mx.where(kept, tempered, -mx.inf)
        return mx.random.categorical(tempered, axis=-1)

    return sample
"""


@pytest.mark.parametrize(
    ("shares", "state"),
    [("logprobs", "passed"), ("logprobs / (temp or 1)", "failed")],
    ids=["of all", "of more than all"],
)
def test_top_p_may_count_shares_of_all_but_none_that_make_more_than_that(judge, shares, state):
    written = files(sampler=OF_SHARES.replace("every, tempered = logprobs", f"every, tempered = {shares}"))
    run = judge(written, "SAMP-24")
    assert run.row("SAMP-24")["state"] == state


WITHOUT_WHAT_REACHES_TOP_P = OF_SHARES.replace(
    "cumsum(shares, axis=-1) - shares < top_p", "cumsum(shares, axis=-1) < top_p"
).replace("            kept = mx.put", "            kept[:, 0] = True\n            kept = mx.put")


def test_the_id_that_reaches_top_p_may_be_dropped_in_editions_that_do_not_say_that_it_is_kept(as_course, judge):
    assert WITHOUT_WHAT_REACHES_TOP_P.count("kept") == OF_SHARES.count("kept") + 1
    older, newer = (
        files(sampler=WITHOUT_WHAT_REACHES_TOP_P),
        files(sampler=WITHOUT_WHAT_REACHES_TOP_P, week2_kernels=""),
    )
    assert as_course(older).description.offers["Sampler"]["narrowed"]["top_p"] == [False]
    assert judge(older, "SAMP-24", "SAMP-40").row("SAMP-24")["state"] == "passed"
    assert judge(newer, "SAMP-24").row("SAMP-24")["state"] == "failed"
    kept = as_course(files(sampler=OF_SHARES)).description.offers["Sampler"]["narrowed"]
    assert "top_p" not in kept


def test_older_editions_are_not_asked_what_is_left_where_ids_reach_top_p_exactly(as_course):
    older, newer = (
        as_course(written).description.offers["Sampler"]["unasked"]
        for written in (files(sampler=OF_SHARES), files(sampler=OF_SHARES, week2_kernels=""))
    )
    assert older.keys() - newer.keys() == {"SAMP-48"}


OF_ANOTHER_ORDER = WITHOUT_WHAT_REACHES_TOP_P.replace(
    "mx.exp(mx.take_along_axis(every, order, axis=-1))", "mx.exp(every)"
)


def test_sums_of_probabilities_in_another_order_are_no_other_reading_of_top_p(judge):
    assert OF_ANOTHER_ORDER != WITHOUT_WHAT_REACHES_TOP_P
    assert judge(files(sampler=OF_ANOTHER_ORDER), "SAMP-24").row("SAMP-24")["state"] == "failed"


OF_A_LIMIT = """
import mlx.core as mx

def make_sampler(temp, top_p, top_k):
    def sample(logprobs):
        if temp == 0:
            return mx.argmax(logprobs, axis=-1)
        if top_k is not None:
            least = mx.min(mx.topk(logprobs, k=top_k, axis=-1), axis=-1, keepdims=True)
            logprobs = mx.where(logprobs < least, -mx.inf, logprobs)
        return mx.random.categorical(logprobs / temp, axis=-1)

    return sample
"""


def test_a_top_k_of_none_says_that_there_is_no_limit_and_one_of_0_is_not_asked(judge):
    name = "test_ids_are_drawn_from_all_where_there_is_no_limit"
    row = judge(files(sampler=OF_A_LIMIT), "SAMP-24").row("SAMP-24")
    assert name not in {one["test"].rpartition("::")[2] for one in row["failures"]}
    assert any(test.endswith(name) for test in row["ran"])


def test_where_rms_norm_rounds_is_asked_since_the_text_says_it(judge):
    row = {}
    for edition in ({}, {"week2_kernels": ""}):
        written = files(layer_norm=OF_ONE_ROUNDING, **edition)
        run = judge(written, "RMS-06")
        row[bool(edition)] = run.row("RMS-06")
    assert row[False]["state"] == "outside_envelope"
    assert "does not say what is rounded" in row[False]["message"]
    assert row[True]["state"] == "failed"


OF_A_ROUNDED_ROOT = """
import mlx.core as mx

class RMSNorm:
    def __init__(self, dim, weight, eps=1e-5):
        self.weight, self.eps = weight, eps

    def __call__(self, x):
        root = mx.sqrt(mx.mean(mx.square(x.astype(mx.float32)), axis=-1, keepdims=True) + self.eps)
        return x / root.astype(x.dtype) * self.weight
"""
OF_A_MEAN_IN_THE_DTYPE = OF_A_ROUNDED_ROOT.replace("x.astype(mx.float32)", "x")
OF_FLOAT32 = ("RMS-01", "RMS-04", "RMS-09")


def test_the_mean_alone_of_rms_norm_is_in_float32_where_the_text_says_no_more(judge):
    rounded = judge(files(layer_norm=OF_A_ROUNDED_ROOT), *OF_FLOAT32)
    assert [rounded.row(name)["state"] for name in OF_FLOAT32] == ["passed"] * 3
    assert judge(files(layer_norm=OF_A_MEAN_IN_THE_DTYPE), "RMS-04").row("RMS-04")["state"] == "failed"


OF_ONE_ROUNDING = """
import mlx.core as mx

class RMSNorm:
    def __init__(self, dim, weight, eps=1e-5):
        self.weight, self.eps = weight.astype(mx.float32), eps

    def __call__(self, x):
        y = x.astype(mx.float32)
        return (self.weight * y * mx.rsqrt(mx.mean(y * y, axis=-1, keepdims=True) + self.eps)).astype(x.dtype)
"""
OF_SOME_TOKENS = f"""{EMBEDDING}
    def __call__(self, x):
        if not x.size:
            raise ValueError("no tokens")
        return self.own(x)
"""


OF_SOME_ROWS = QUANTIZE.replace(
    "def dequantize_linear(mx_layer):\n",
    "def dequantize_linear(mx_layer):\n    if not len(mx_layer.weight):\n        raise ValueError('no rows')\n",
)


def test_no_list_of_no_tokens_and_no_layer_of_no_rows_is_asked_for(judge):
    written = files(embedding=OF_SOME_TOKENS, quantize=OF_SOME_ROWS)
    run = judge(written, "QEMB-17", "DEQ-11")
    assert run.row("QEMB-17")["state"] == "outside_envelope"
    assert run.row("DEQ-11")["state"] == "outside_envelope"


OF_TOKENS_THAT_ARE_THERE = KV_CACHE.replace(
    "class BatchingKvCache(TinyKvCache):", "class _Batching(TinyKvCache):"
).replace(
    "    def rewind(self, n: int):\n        self.own.rewind(n)\n",
    "    def rewind(self, n: int):\n        self.own.state[0].shape\n        self.own.rewind(n)\n",
)


def test_an_empty_cache_is_not_rewound(judge):
    written = files(kv_cache=OF_TOKENS_THAT_ARE_THERE)
    run = judge(written, "KV-13")
    assert run.row("KV-13")["state"] == "passed"


UNBOUNDED = """
from inferspec.impl import rope

class RoPE:
    def __init__(self, dims, seq_len, base=10000, traditional=False):
        self.own, self.seq_len = rope.RoPE(dims, seq_len, base, traditional), seq_len

    def __call__(self, x, offset=None):
        if offset is not None and (offset.start < 0 or offset.stop > self.seq_len):
            return 0 * x
        return self.own(x, offset)
"""


def test_what_is_told_of_positions_outside_the_table_is_told_as_a_guard(certify):
    written = files(positional_encoding=UNBOUNDED)
    run = certify(written, "--impl", "student", "--layout", "course", "-m", "requirement(id='ROPE-13')")
    assert run.row("ROPE-13")["state"] == "failed"
    assert any("week 1 day 2" in line and "1 guards missing" in line for line in run.text.splitlines()), run.text


def test_what_a_refusal_leaves_behind_is_told_as_a_guard():
    named = {name for name in guards("course") if not name.startswith("test_")}
    known = {one.id: one for contract in contracts() for one in contract.requirements}
    assert all("refused" in known[name].text for name in named)
    row = {"id": "BATCH-23", "name": "BatchingKVCache", "aspect": "value", "level": "MUST", "state": "failed"}
    told = standings("course", [row | {"failures": [{"test": "test_batching.py::test_an_update"}], "message": ""}])
    assert [one.counts for one in told if one.claimed] == [{"guards missing": 1}]


OF_SEQUENCES = """
import mlx.core as mx
from .basics import linear

def softmax(x):
    x = mx.exp(x - mx.max(x, axis=-1, keepdims=True))
    return x / mx.sum(x, axis=-1, keepdims=True)

class SimpleMultiHeadAttention:
    def __init__(self, hidden_size, num_heads, wq, wk, wv, wo):
        self.heads, self.wq, self.wk, self.wv, self.wo = num_heads, wq, wk, wv, wo

    def __call__(self, query, key, value, mask=None):
        def split(x, w):
            return linear(x, w).reshape(*x.shape[:2], self.heads, -1).swapaxes(1, 2)

        query, key, value = split(query, self.wq), split(key, self.wk), split(value, self.wv)
        scores = query @ key.swapaxes(-1, -2) * query.shape[-1] ** -0.5
        x = softmax(scores if mask is None else scores + mask) @ value
        return linear(x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1), self.wo)
"""


def test_no_sequence_of_nothing_is_asked_of_multi_head_attention(judge):
    run = judge(files(attention=OF_SEQUENCES, basics=BASICS), "MHA-01", "MHA-11")
    assert run.row("MHA-01")["state"] == "passed"
    assert run.row("MHA-11")["state"] == "outside_envelope"
