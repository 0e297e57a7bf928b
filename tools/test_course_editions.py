"""`--layout course`: editions of the course, and the ways in which students write what it asks for."""

from __future__ import annotations

import pytest

from inferspec.conformance.certificate import BAD
from inferspec.conformance.layouts import chapters, editions, guards
from inferspec.conformance.layouts.course import week_2 as week_2_rooms
from inferspec.conformance.layouts.standings import standings
from inferspec.conformance.suite import all_tests
from inferspec.spec import contracts
from inferspec.tools.course_package import (
    ATTENTION,
    BASICS,
    EMBEDDING,
    GENERATE,
    KV_CACHE,
    LAYER_NORM,
    QUANTIZE,
    QWEN2_WEEK1,
    QWEN3_WEEK1,
    WEEK2_KERNELS,
    WEEK_2,
    files,
    package,
    problem,
)

OLDEST_CACHE = """
import mlx.core as mx

class TinyKvFullCache:
    def __init__(self):
        self.key_values = None

    def update_and_fetch(self, key, value, offset: int):
        if self.key_values is not None:
            key, value = (mx.concatenate(pair, axis=2) for pair in zip(self.key_values, (key, value)))
        self.key_values = key, value
        return key, value
"""
OLDER_CACHE = """
import mlx.core as mx

class TinyKvFullCache:
    def __init__(self):
        self.key, self.value = None, None

    def update_and_fetch(self, key, value):
        self.key = key if self.key is None else mx.concatenate([self.key, key], axis=2)
        self.value = value if self.value is None else mx.concatenate([self.value, value], axis=2)
        return self.key, self.value, self.key.shape[2]
"""
TEXT_CACHE = """
import mlx.core as mx

class TinyKvFullCache:
    def __init__(self):
        self.key, self.value, self.offset = None, None, 0

    def update_and_fetch(self, key, value):
        self.key = key if self.key is None else mx.concatenate([self.key, key], axis=1)
        self.value = value if self.value is None else mx.concatenate([self.value, value], axis=1)
        self.offset += key.shape[1]
        return self.key, self.value
"""


@pytest.mark.parametrize("text", [OLDEST_CACHE, OLDER_CACHE, TEXT_CACHE], ids=["with offset", "of three", "axis 1"])
def test_caches_of_every_edition_are_taken(as_course, text):
    subject = as_course(files(kv_cache=text))
    assert subject.description.offers["KVCache"]["narrowed"]["rewinding"] == [False]
    assert not problem(subject, "KVCache")


EDITIONS = {
    "RoPE": (
        "positional_encoding",
        """
from inferspec.impl import rope

class RoPE:
    def __init__(self, dims, max_seq_len=32768, base=10000, traditional=False):
        self.own = rope.RoPE(dims, max_seq_len, base, traditional)

    def __call__(self, x, offset: slice | None = None):
        if isinstance(offset, list):
            raise AttributeError("no start")
        return self.own(x, offset)
""",
        {"offsets": ["none", "slice"]},
    ),
    "flash_attention": (
        "attention",
        ATTENTION.replace(
            "def flash_attention(query, key, value, scale=None, mask=None)",
            "def flash_attention(query, key, value, scale=None)",
        ).replace("scale=scale, mask=mask)\n\ndef paged", "scale=scale)\n\ndef paged"),
        {"masks": ["none"]},
    ),
    "RMSNorm": ("norms", LAYER_NORM, {}),
    "SwiGLU": (
        "qwen2_week1",
        """
from inferspec.impl import mlp

class Qwen2MLP:
    def __init__(self, dim, hidden_dim, w_gate, w_up, w_down):
        self.own = mlp.SwiGLU(dim, hidden_dim, w_gate, w_up, w_down)

    def __call__(self, x):
        length, _ = x.shape[-2:]
        return self.own(x)
""",
        {"dtypes": ["float32", "bfloat16"]},
    ),
}


@pytest.mark.parametrize("name", EDITIONS)
def test_other_editions_of_a_signature_and_other_places_are_taken(as_course, name):
    module, text, narrowed = EDITIONS[name]
    subject = as_course(files(**{module: text}))
    assert narrowed.items() <= subject.description.offers[name]["narrowed"].items()
    assert not problem(subject, name)


WHOLE_MASKS = """
import mlx.core as mx
from inferspec.impl import attention as own

def scaled_dot_product_attention_grouped(query, key, value, scale=None, mask=None):
    if isinstance(mask, mx.array):
        mask = mask.reshape(*query.shape[:-1], key.shape[-2])
    return own.scaled_dot_product_attention(query, key, value, scale=scale, mask=mask)
"""


def test_masks_come_whole_where_a_function_takes_no_others(as_course):
    assert not problem(as_course(files(attention=WHOLE_MASKS)), "scaled_dot_product_attention", times=20)


SOME_MASKS = """
import mlx.core as mx
from inferspec.impl import attention as own

def scaled_dot_product_attention_grouped(query, key, value, scale=None, mask=None):
    heads, (length, size) = key.shape[-3], (query.shape[-2], key.shape[-2])
    if isinstance(mask, mx.array):
        whole = mask.reshape(*mask.shape[:-3], heads, -1, length, size)
        mask = whole.reshape(*query.shape[:-3], -1, length, size)
    return own.scaled_dot_product_attention(query, key, value, scale=scale, mask=mask)
"""


def test_masks_come_whole_where_a_function_takes_others_for_one_head_of_keys_alone(as_course):
    assert not problem(as_course(files(attention=SOME_MASKS)), "scaled_dot_product_attention", times=20)


FOUR_AXES = """
import mlx.core as mx
from inferspec.impl import flash_attention as own

def flash_attention(query, key, value, scale=None, mask=None):
    *batch, heads, length, dim = query.shape
    _, key_heads, size, _ = key.shape
    if isinstance(mask, mx.array):
        mask = mx.broadcast_to(mask, (*batch, heads, length, size))
    return own.flash_attention(query, key, value, scale=scale, mask=mask)
"""


def test_flash_attention_of_four_axes_is_given_no_others(as_course):
    subject = as_course(files(attention=FOUR_AXES))
    assert subject.description.offers["flash_attention"]["narrowed"]["leading_dims"] == [(1,), (2,), (3,), (9,)]
    assert not problem(subject, "flash_attention", times=20)


def test_flash_attention_of_any_batch_is_given_any(as_course):
    subject = as_course(files(attention=ATTENTION))
    assert "leading_dims" not in subject.description.offers["flash_attention"]["narrowed"]


FEWER_QUERIES = """
from inferspec.impl import attention as own

def causal_mask(L, S, dtype):
    assert S >= L
    return own.causal_mask(L, S, dtype)

def scaled_dot_product_attention_grouped(query, key, value, scale=None, mask=None):
    if mask == "causal":
        mask = causal_mask(query.shape[-2], key.shape[-2], query.dtype)
    return own.scaled_dot_product_attention(query, key, value, scale=scale, mask=mask)
"""


@pytest.mark.parametrize("name", ["causal_mask", "scaled_dot_product_attention"])
def test_more_queries_than_keys_are_not_asked_of_one_that_refuses_them(as_course, name):
    subject = as_course(files(attention=FEWER_QUERIES))
    assert subject.description.offers[name]["narrowed"]["more_queries"] == [False]
    assert not problem(subject, name, times=20)


ALIGNED_AT_THE_TOP = """
import mlx.core as mx
from inferspec.impl import attention as own

def causal_mask(L, S, dtype):
    return mx.where(mx.tril(mx.ones((L, S)), max(S - L, 0)) > 0, 0.0, -mx.inf).astype(dtype)

def scaled_dot_product_attention_grouped(query, key, value, scale=None, mask=None):
    if mask == "causal":
        mask = causal_mask(query.shape[-2], key.shape[-2], query.dtype)
    return own.scaled_dot_product_attention(query, key, value, scale=scale, mask=mask)
"""


@pytest.mark.parametrize("name", ["causal_mask", "scaled_dot_product_attention"])
def test_more_queries_than_keys_are_not_asked_of_one_that_aligns_them_otherwise(as_course, name):
    subject = as_course(files(attention=ALIGNED_AT_THE_TOP))
    assert subject.description.offers[name]["narrowed"]["more_queries"] == [False]
    assert not problem(subject, name, times=20)


LISTS_OF_ONE = """
import mlx.core as mx
from inferspec.impl import rope

class RoPE:
    def __init__(self, dims, seq_len, base=10000, traditional=False):
        self.own = rope.RoPE(dims, seq_len, base, traditional)

    def __call__(self, x, offset=None):
        if isinstance(offset, list):
            if len(offset) > 1:
                raise ValueError("positions are joined along the wrong axis")
            offset = offset[0]
        return self.own(x, offset)
"""


def test_lists_of_slices_are_asked_for_where_those_of_one_are_taken(judge):
    written = files(positional_encoding=LISTS_OF_ONE)
    run = judge(written, "ROPE-05")
    assert run.row("ROPE-05")["state"] == "overclaimed"


def test_advice_is_such_as_a_package_without_an_adapter_can_follow(judge):
    written = files(positional_encoding=LISTS_OF_ONE)
    run = judge(written, "ROPE-05")
    message = run.row("ROPE-05")["message"]
    assert "raise NotImplementedError there" in message
    assert "ENVELOPE" not in message


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


OVERWRITING = """
import mlx.core as mx

def make_sampler(temp, top_p, top_k):
    def sample(logprobs):
        logprobs /= max(temp, 1e-3)
        return mx.argmax(logprobs, axis=-1) if temp == 0 else mx.random.categorical(logprobs, axis=-1)

    return sample
"""


def test_a_sampler_that_overwrites_its_log_probabilities_changes_its_argument(judge):
    run = judge(files(sampler=OVERWRITING), "SAMP-34")
    assert run.row("SAMP-34")["state"] == "failed"


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


def test_the_layers_of_a_loaded_model_may_be_asked_of_the_whole(as_course):
    written = QWEN3_WEEK1.replace("len(model.layers)", "len(mlx_model.layers)")
    assert not problem(as_course(files(qwen3_week1=written)), "Qwen3", times=1)


# models of older and newer editions


def test_a_qwen2_is_a_llama_with_three_biases(as_course):
    subject = as_course(files(qwen2_week1=QWEN2_WEEK1))
    narrowed = subject.description.offers["Llama"]["narrowed"]
    assert narrowed["biases"] == ["none", "qkv"]
    assert narrowed["dtypes"] == ["float16"]
    assert "Qwen3" not in subject.description.offers
    assert not problem(subject, "Llama")


@pytest.mark.parametrize("part", ["q_proj", "k_proj", "v_proj"])
def test_a_qwen2_that_forgets_a_bias_is_red(judge, part):
    own = f'take(f"{{name}}.self_attn.{part}", attention.{part}, *packed'
    kept = f'{own}, "bias")\n'
    forgotten = f'{own})\n        weights[f"{{name}}.self_attn.{part}.bias"] = 0 * attention.{part}.bias\n'
    assert kept in QWEN2_WEEK1
    written = files(qwen2_week1=QWEN2_WEEK1.replace(kept, forgotten))
    run = judge(written, "LLAMA-08")
    assert run.row("LLAMA-08")["state"] == "failed"


AT_CHECKPOINTS = """
from .qwen3_week1 import own_model
from .kv_cache import TinyKvFullCache

class Qwen3ModelWeek2:
    def __init__(self, mlx_model, checkpoint: str = "split-k"):
        self.own, self.checkpoint, self.layers = own_model(mlx_model), checkpoint, len(mlx_model.layers)

    def create_kv_cache(self):
        return [TinyKvFullCache() for _ in range(self.layers)]

    def __call__(self, inputs, offset, cache):
        if self.checkpoint != "kv-cache" and inputs.shape[1] == 1:
            raise NotImplementedError("no kernel for the attention of one query")
        return self.own(inputs, [layer.own for layer in cache])
"""


def test_a_model_of_checkpoints_is_taken_at_the_first_where_later_kernels_are_not_there(judge):
    run = judge(package("student", qwen3_week2=AT_CHECKPOINTS), "QWEN3-24", "QWEN3-25")
    assert {run.row(name)["state"] for name in ("QWEN3-24", "QWEN3-25")} == {"passed"}


OF_ONE_OFFSET = """
from .qwen3_week1 import own_model
from .positional_encoding import RoPE

class Qwen3ModelWeek2:
    def __init__(self, mlx_model):
        self.own = own_model(mlx_model)

    def __call__(self, inputs, offset, cache):
        if not isinstance(offset, int):
            raise TypeError("an offset is a number")
        return self.own(inputs, [layer.own for layer in cache])
"""


def test_a_batch_has_one_offset_where_rope_takes_no_lists(as_course):
    rope = EDITIONS["RoPE"][1]
    subject = as_course(package("student", qwen3_week2=OF_ONE_OFFSET, positional_encoding=rope))
    assert not problem(subject, "Qwen3.incremental")


# what the text does not ask


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


def test_the_model_of_another_edition_is_not_missed(certify):
    run = certify(
        files(qwen2_week1=QWEN2_WEEK1), "--impl", "student", "--layout", "course", "-k", "test_nothing_at_all"
    )
    assert "there is no Qwen3ModelWeek1" not in run.text


OF_64 = """
import mlx.core as mx

def dequantize_linear(layer):
    assert layer.group_size == 64
    return mx.dequantize(layer.weight, layer.scales, layer.biases, layer.group_size, layer.bits)

class QuantizedWeights:
    def __init__(self, scales, biases, group_size, bits, weight):
        self.scales, self.biases, self.group_size, self.bits, self.weight = scales, biases, group_size, bits, weight

def quantized_linear(x, w, bias=None):
    product = x @ dequantize_linear(w).T
    return product if bias is None else product + bias
"""


@pytest.mark.parametrize("name", ["dequantize", "QuantizedLinear"])
def test_groups_of_64_are_taken_where_there_are_no_others(as_course, name):
    subject = as_course(files(quantize=OF_64))
    assert subject.description.offers[name]["narrowed"]["group_sizes"] == [64]
    assert not problem(subject, name)


# generation

STARTER = """
def simple_generate(model, tokenizer, prompt, sampler):
    def _step(model, y):
        pass

def simple_generate_with_kv_cache(model, tokenizer, prompt):
    def _step(model, y, offset, kv_cache):
        pass
"""


def test_a_function_of_stubs_alone_is_a_stub(as_course):
    about = as_course(files(generate=STARTER, basics=BASICS)).description
    assert about.absent["generate"] == "simple_generate is a stub"


WITH_CACHE = """
import mlx.core as mx
from .kv_cache import TinyKvFullCache

def simple_generate(model, tokenizer, prompt, sampler):
    tokens = mx.array(tokenizer.encode(prompt))
    while True:
        logits = model(tokens[None])[:, -1]
        token = mx.argmax(logits, -1) if sampler is None else sampler(logits - mx.logsumexp(logits, -1, keepdims=True))
        if token.item() == tokenizer.eos_token_id:
            return tokenizer.detokenizer.text
        tokenizer.detokenizer.add_token(token.item())
        tokens = mx.concatenate([tokens, token])

def simple_generate_with_kv_cache(model, tokenizer, prompt, max_tokens=3):
    caches, tokens, offset = [TinyKvFullCache() for _ in range(model.num_hidden_layers)], tokenizer.encode(prompt), 0
    for _ in range(max_tokens):
        token = mx.argmax(model(mx.array([tokens]), offset, caches)[:, -1], -1).item()
        offset, tokens = offset + len(tokens), [token]
        if token == tokenizer.eos_token_id:
            return
        tokenizer.detokenizer.add_token(token)
"""
UNBATCHED = """
def simple_generate(model, tokenizer, prompt, sampler):
    tokens, detokenizer = tokenizer._tokenizer.encode(prompt), tokenizer._detokenizer
    detokenizer.reset()
    while (token := sampler(model(tokens)[-1]).item()) not in tokenizer._eos_token_ids:
        tokens.append(token)
        detokenizer.add_token(token)
    detokenizer.finalize()
    return detokenizer.text
"""
OF_A_BATCHING_MODEL = """
import mlx.core as mx

def simple_generate(model, tokenizer, prompt, sampler):
    tokens, detokenizer = tokenizer.encode(prompt), tokenizer.detokenizer
    choose = sampler or (lambda logits: mx.argmax(logits, axis=-1))
    while (token := choose(model(tokens)[:, -1, :]).item()) != tokenizer.eos_token_id:
        tokens.append(token)
        detokenizer.add_token(token)
"""
GENERATIONS = {
    "a cache whose tokens are the second axis": {"generate": WITH_CACHE, "kv_cache": TEXT_CACHE},
    "a cache that is told the offset": {"generate": WITH_CACHE, "kv_cache": OLDEST_CACHE},
    "lists without a batch, and always a sampler": {"generate": UNBATCHED},
    "lists of which the model makes a batch": {"generate": OF_A_BATCHING_MODEL},
}


@pytest.mark.parametrize("modules", GENERATIONS.values(), ids=GENERATIONS)
def test_generation_is_taken_as_students_write_it(certify, modules):
    run = certify(
        files(**modules),
        "--impl",
        "student",
        "--layout",
        "course",
        "-k",
        "test_generation and (favours or refused or turn or sampler)",
    )
    bad = {row["id"]: row["failures"] for row in run.certificate["requirements"] if row["state"] in BAD}
    assert set(bad) <= {"GEN-22"}, bad
    assert {run.row(name)["state"] for name in ("GEN-11", "GEN-12")} == {"passed"}


def test_ids_are_the_same_with_a_cache_that_takes_no_sampler(judge):
    written = files(generate=WITH_CACHE, kv_cache=TEXT_CACHE)
    run = judge(written, "GEN-02")
    assert run.row("GEN-02")["state"] == "passed"


UNSIGNED = """
import mlx.core as mx

def simple_generate(model, tokenizer, prompt, sampler):
    tokens = mx.array(tokenizer.encode(prompt))
    while True:
        token = (sampler or (lambda row: mx.argmax(row, axis=-1)))(model(tokens[None])[:, -1, :])
        if token == tokenizer.eos_token_id:
            break
        tokenizer.detokenizer.add_token(token.item())
        tokens = mx.concatenate([tokens, token])
"""


def test_ids_that_are_arrays_of_unsigned_numbers_may_be_compared_with_the_end(judge):
    run = judge(files(generate=UNSIGNED), "GEN-02")
    assert run.row("GEN-02")["state"] == "passed"


HANDS_OVER_THE_END = """
import mlx.core as mx

def simple_generate(model, tokenizer, prompt, sampler):
    tokens = tokenizer.encode(prompt)
    while True:
        token = (sampler or (lambda row: mx.argmax(row, axis=-1)))(model(mx.array([tokens]))[:, -1, :]).item()
        tokenizer.detokenizer.add_token(token)
        if token == tokenizer.eos_token_id:
            break
        tokens.append(token)
"""
ENDS = ("GEN-05", "GEN-06", "GEN-07", "GEN-08")


def test_the_end_may_be_handed_over_in_editions_that_do_not_say_that_it_is_not(judge):
    run = judge(files(generate=HANDS_OVER_THE_END), *ENDS)
    assert [run.row(name)["state"] for name in ENDS] == ["passed"] * 4
    since = judge(files(generate=HANDS_OVER_THE_END, week2_kernels=""), "GEN-06")
    assert "generation-emits-eos" in since.row("GEN-06")["diagnosis"]


SILENT = """
def simple_generate(model, tokenizer, prompt, sampler):
    tokens = tokenizer.encode(prompt)
    while True:
        tokens.append(model(tokens)[-1].argmax().item() + 1)
        print(tokenizer.decode(tokens), end="")
"""


def test_ids_that_are_handed_to_nobody_do_not_hold_up_the_loading(as_course):
    assert "generate" in as_course(files(generate=SILENT)).description.offers


def test_ids_that_are_handed_to_nobody_are_no_hang(judge):
    run = judge(files(generate=SILENT), "GEN-02")
    assert run.row("GEN-02")["state"] == "failed"
    assert "no id is handed to the detokenizer" in run.row("GEN-02")["message"]


OF_A_WRONG_OFFSET = WITH_CACHE.replace("offset, tokens = offset + len(tokens), [token]", "offset, tokens = 5, [token]")


def test_an_offset_that_is_not_the_cache_s_is_a_failure_and_no_refusal(judge):
    written = files(generate=OF_A_WRONG_OFFSET, kv_cache=OLDER_CACHE)
    run = judge(written, "GEN-01")
    assert run.row("GEN-01")["state"] == "failed"
    assert "the offset is 5 where the cache holds" in run.row("GEN-01")["message"]


OF_TORCH = """
import torch
from torch import nn

def linear(x, w, bias=None):
    return torch.nn.functional.linear(x, w, bias)
"""


def test_a_package_of_another_library_is_refused(certify):
    said = certify(files(basics=OF_TORCH), "--impl", "student", "--layout", "course").complaint()
    assert "compute with MLX; this one imports torch" in said


# what week 2 writes anew


@pytest.fixture(scope="module")
def week_2(as_course):
    return as_course(files(**WEEK_2), layout="course-week2")


@pytest.mark.parametrize("name", week_2_rooms.OFFERS)
def test_what_week_2_writes_anew_is_offered_and_agrees(week_2, name):
    assert name in week_2.description.offers, week_2.description.absent
    assert not problem(week_2, name)


ANEW = {
    "RMSNorm": ("week2_kernels", "FastRMSNorm", "RMSNorm"),
    "RoPE": ("week2_kernels", "FastRoPE", "RoPE"),
    "silu": ("week2_kernels", "def swiglu", "def swish"),
    "SwiGLU": ("week2_kernels", "def swiglu", "def swish"),
    "scaled_dot_product_attention": ("week2_kernels", "def scaled_dot_product_attention", "def attend"),
    "dequantize": ("quantize", "def dequantize_weights", "def dequantize_linear"),
    "quantized_matmul": ("quantize", "use_simdgroup=False", "simd=False"),
    "QuantizedLinear": ("quantize", "use_simdgroup_matmul=False", "use_simdgroup_product=False"),
}


@pytest.mark.parametrize("name", ANEW)
def test_what_week_2_does_not_write_anew_is_not_claimed(as_course, name):
    module, own, other = ANEW[name]
    assert own in WEEK_2[module]
    about = as_course(files(**WEEK_2 | {module: WEEK_2[module].replace(own, other)}), layout="course-week2").description
    assert name in about.absent


WRONG_ANEW = {
    "RMS-02": ("week2_kernels", "keepdims=True) + self.eps)", "keepdims=True) + 10 * self.eps)"),
    "ROPE-03": ("week2_kernels", "return self.own(x, offset)", "return self.own(x, 0 if isinstance(offset, int) else offset)"),
    "ROPE-05": ("week2_kernels", "[slice(start, start + x.shape[1]) for start in offset]", "slice(offset[0], offset[0] + x.shape[1])"),
    "SILU-02": ("week2_kernels", "y / (1 + mx.exp(-y))", "y * mx.exp(y) / (1 + mx.exp(y))"),
    "MLP-02": ("week2_kernels", "def swiglu(gate, up)", "def swiglu(up, gate)"),
    "ATTN-03": (
        "week2_kernels",
        "return attention.scaled_dot_product_attention(query, key, value, scale=scale, mask=mask)\n\ndef decode",
        "heads = query.shape[1] // key.shape[1]\n"
        "    key, value = (mx.concatenate([x] * heads, axis=1) for x in (key, value))\n"
        "    return attention.scaled_dot_product_attention(query, key, value, scale=scale, mask=mask)\n\ndef decode",
    ),
    "DEQ-02": ("quantize", "dequantize(weight, scales, biases, group_size, bits)", "dequantize(weight, scales, -biases, group_size, bits)"),
    "QMM-01": ("quantize", "bits=bits, transpose=transpose_b)", "bits=bits, transpose=transpose_b) * (2 if use_split_k else 1)"),
    "QLIN-01": ("quantize", "bits=bits, transpose=transpose_b)", "bits=bits, transpose=transpose_b) * (2 if use_simdgroup else 1)"),
}  # fmt: skip


@pytest.mark.parametrize("requirement", WRONG_ANEW)
def test_what_week_2_writes_anew_wrongly_is_red(judge, requirement):
    module, right, wrong = WRONG_ANEW[requirement]
    assert WEEK_2[module].count(right) == 1
    written = files(**WEEK_2 | {module: WEEK_2[module].replace(right, wrong)})
    assert judge(written, requirement, layout="course-week2").row(requirement)["state"] == "failed"


def test_where_week_2_rounds_and_what_it_is_not_told_is_not_asked(judge):
    unasked = ("RMS-06", "ROPE-20")
    run = judge(files(**WEEK_2), *unasked, layout="course-week2")
    assert {run.row(name)["state"] for name in unasked} == {"outside_envelope"}


OF_MLX_PRODUCTS = """
import mlx.core as mx

def scaled_dot_product_attention(query, key, value, scale: float, mask=None):
    repeats = query.shape[1] // key.shape[1]
    key, value = (mx.repeat(x, repeats, axis=1) for x in (key, value))
    scores = query @ key.swapaxes(-2, -1) * mx.array(scale, query.dtype)
    if mask == "causal":
        length, keys = scores.shape[-2:]
        mask = mx.where(mx.tril(mx.ones((length, keys)), keys - length) > 0, 0, -mx.inf).astype(scores.dtype)
    return mx.softmax(scores if mask is None else scores + mask, axis=-1) @ value
"""


def test_attention_of_mlx_own_products_is_right_over_many_keys(judge):
    run = judge(files(week2_kernels=OF_MLX_PRODUCTS), "ATTN-05", "ATTN-18", layout="course-week2")
    assert {run.row(name)["state"] for name in ("ATTN-05", "ATTN-18")} == {"passed"}


def test_what_is_written_anew_is_of_the_edition_that_has_it_whatever_else_is_written(as_course):
    about = as_course(files(quantize=WEEK_2["quantize"]), layout="course-week2").description
    assert "quantized_matmul" in about.offers
    assert about.edition in editions("course-week2")


def test_each_layout_of_the_course_judges_its_own(judge):
    wrong = WEEK2_KERNELS.replace("keepdims=True) + self.eps)", "keepdims=True) + 10 * self.eps)")
    written = files(**WEEK_2, layer_norm=LAYER_NORM) | files(week2_kernels=wrong)
    assert judge(written, "RMS-02").row("RMS-02")["state"] == "passed"
    assert judge(written, "RMS-02", layout="course-week2").row("RMS-02")["state"] == "failed"


STARTER_KERNELS = """
import mlx.core as mx

class FastRMSNorm:
    def __init__(self, dim: int, weight: mx.array, eps: float = 1e-5):
        pass

    def __call__(self, x: mx.array) -> mx.array:
        pass

def swiglu(gate: mx.array, up: mx.array) -> mx.array:
    raise RuntimeError("swiglu is a starter stub; implement it in Week 2 Day 4")

def decode_attention_custom(query, key, value, scale, mask=None):
    raise RuntimeError("decode_attention: the course extension is GPU-only")
"""


def test_what_an_extension_says_is_not_written_or_not_for_this_device_is_not_claimed(judge):
    written = files(week2_kernels=STARTER_KERNELS, basics=BASICS)
    run = judge(written, "RMS-02", "SILU-01", "MLP-01", layout="course-week2")
    assert {run.row(name)["state"] for name in ("RMS-02", "SILU-01", "MLP-01")} == {"not_claimed"}
    assert "starter stub" in run.row("SILU-01")["message"]
    assert judge(written, "FLASH-01").row("FLASH-01")["state"] == "not_claimed"


DECODING = files(week2_kernels=WEEK2_KERNELS)


def test_decode_attention_is_given_as_many_queries_and_keys_as_it_is_for(as_course):
    subject = as_course(DECODING)
    assert subject.description.offers["flash_attention"]["narrowed"]["keys"] == 256
    assert not problem(subject, "flash_attention", times=20)


def test_decode_attention_that_is_wrong_is_red(judge):
    early = WEEK2_KERNELS.replace(
        'raise ValueError("a schedule for decoding")\n',
        'raise ValueError("a schedule for decoding")\n    mask = None\n',
    )
    assert early != WEEK2_KERNELS
    assert judge(files(week2_kernels=early), "FLASH-03").row("FLASH-03")["state"] == "failed"
    assert judge(DECODING, "FLASH-03").row("FLASH-03")["state"] == "passed"


def test_an_older_flash_attention_goes_before_decode_attention(as_course):
    written = DECODING | files(attention=ATTENTION)
    assert "keys" not in as_course(written).description.offers["flash_attention"]["narrowed"]


# speculative decoding

SPECULATIVE = ("SPEC-23", "SPEC-24", "SPEC-25", "SPEC-26", "SPEC-27", "SPEC-28", "SPEC-29", "SPEC-30", "SPEC-31",
               "SPEC-37", "SPEC-39", "SPEC-40", "SPEC-41", "SPEC-42", "SPEC-51", "SPEC-52", "SPEC-54")  # fmt: skip


def test_speculative_decoding_of_the_course_is_judged_by_its_sentences(judge):
    run = judge(files(generate=GENERATE), *SPECULATIVE, "SPEC-34", "SPEC-38", "SPEC-48")
    assert {name: run.row(name)["state"] for name in SPECULATIVE} == dict.fromkeys(SPECULATIVE, "passed")
    assert {run.row(name)["state"] for name in ("SPEC-34", "SPEC-38", "SPEC-48")} == {"outside_envelope"}


SPECULATIVE_MISTAKES = {
    "SPEC-23": ("last = wanted[kept]", "last = wanted[-1]"),
    "SPEC-26": ("if token == tokenizer.eos_token_id:\n                return text.text\n", "if False:\n                return text.text\n"),
    "SPEC-28": ("_rewind(caches, len(tokens))\n        _rewind(draft", "_rewind(caches, len(tokens) - (kept == 1))\n        _rewind(draft"),
    "SPEC-39": ("while len(drafts) < proposal_length:", "while len(drafts) < min(proposal_length, 2):"),
}  # fmt: skip


@pytest.mark.parametrize("requirement", SPECULATIVE_MISTAKES)
def test_speculative_decoding_that_is_wrong_is_red(judge, requirement):
    right, wrong = SPECULATIVE_MISTAKES[requirement]
    assert GENERATE.count(right) == 1
    run = judge(files(generate=GENERATE.replace(right, wrong)), requirement)
    assert run.row(requirement)["state"] == "failed"


def test_each_layer_has_to_be_rewound(judge):
    first = GENERATE.replace("for layer in caches:", "for layer in caches[:1]:")
    assert first != GENERATE
    assert judge(files(generate=first), "SPEC-23").row("SPEC-23")["state"] == "failed"


BY_HAND = (
    GENERATE.replace(", proposal_length: int = 4) -> str:\n", ") -> str:\n    proposal_length = 4\n")
    .replace(
        "caches, draft_caches = model.create_kv_cache(), draft_model.create_kv_cache()",
        "caches, draft_caches = ([TinyKvFullCache() for _ in range(one.num_hidden_layers)] for one in (model, draft_model))",
    )
    .replace("import mlx.core as mx\n", "import mlx.core as mx\nfrom .kv_cache import TinyKvFullCache\n")
)


def test_speculative_decoding_of_an_older_edition_makes_its_caches_and_has_its_own_number_of_drafts(judge):
    run = judge(files(generate=BY_HAND, kv_cache=KV_CACHE), "SPEC-23", "SPEC-28", "SPEC-29", "SPEC-39")
    assert {run.row(name)["state"] for name in ("SPEC-23", "SPEC-28", "SPEC-29")} == {"passed"}
    assert run.row("SPEC-39")["state"] == "outside_envelope"


LAST_ROWS = WITH_CACHE.replace("offset, caches)[:, -1]", "offset, caches, logits_to_keep=1).reshape(1, -1)")


def test_a_model_gives_as_many_rows_of_logits_as_it_is_asked_for(judge):
    assert LAST_ROWS != WITH_CACHE
    run = judge(files(generate=LAST_ROWS, kv_cache=TEXT_CACHE), "GEN-01")
    assert run.row("GEN-01")["state"] == "passed"


NO_LAYERS = WITH_CACHE.replace("[TinyKvFullCache() for _ in range(model.num_hidden_layers)]", "[]")


def test_a_list_of_no_caches_is_filled_by_the_model(judge):
    assert NO_LAYERS != WITH_CACHE
    run = judge(files(generate=NO_LAYERS, kv_cache=TEXT_CACHE), "GEN-01")
    assert run.row("GEN-01")["state"] == "passed"


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


# chapters


@pytest.mark.parametrize("newest", [False, True], ids=["older", "newest"])
def test_the_summary_says_which_edition_numbers_its_days(certify, newest):
    written = package("student", **({"week2_kernels": WEEK2_KERNELS} if newest else {}))
    run = certify(
        written,
        "--impl",
        "student",
        "--layout",
        "course",
        "-k",
        "test_batching and one_row or test_flash_attention and equal",
    )
    edition, day = ("August 2026", "week 3 day 1") if newest else ("2025 to July 2026", "week 2 day 6-7")
    assert run.certificate["subject"]["edition"] == f"edition of {edition}"
    lines = [line.strip() for line in run.text.splitlines()]
    assert f"by chapters of the course, edition of {edition}:" in lines
    assert any(line.startswith("week 2 day 4 ") and "--layout course-week2" in line for line in lines) is newest
    assert any(
        chapter.where == day and "BatchingKVCache" in chapter.names
        for chapter in chapters("course", f"edition of {edition}")
    )


def test_the_summary_of_week_2_names_what_it_writes_anew(certify):
    run = certify(files(**WEEK_2), "--impl", "student", "--layout", "course-week2", "-m", "requirement(id='RMS-02')")
    assert any(
        line.strip().startswith("week 2 day 4") and "FastRMSNorm, FastRoPE, swiglu" in line and "1 passed" in line
        for line in run.text.splitlines()
    ), run.text
