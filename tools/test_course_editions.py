"""`--layout course`: editions of the course, and the ways in which students write what it asks for."""

from __future__ import annotations

import pytest

from inferspec.conformance.bridge.layouts import chapters
from inferspec.tools.course_caches import OLDER_CACHE, OLDEST_CACHE, TEXT_CACHE
from inferspec.tools.course_package import (
    ATTENTION,
    LAYER_NORM,
    QWEN2_WEEK1,
    QWEN3_WEEK1,
    WEEK2_KERNELS,
    files,
    package,
    problem,
)


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


def test_the_layers_of_a_loaded_model_may_be_asked_of_the_whole(as_course):
    written = QWEN3_WEEK1.replace("len(model.layers)", "len(mlx_model.layers)")
    assert not problem(as_course(files(qwen3_week1=written)), "Qwen3", times=1)


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


OF_TORCH = """
import torch
from torch import nn

def linear(x, w, bias=None):
    return torch.nn.functional.linear(x, w, bias)
"""


def test_a_package_of_another_library_is_refused(certify):
    said = certify(files(basics=OF_TORCH), "--impl", "student", "--layout", "course").complaint()
    assert "compute with MLX; this one imports torch" in said


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


def test_the_model_of_another_edition_is_not_missed(certify):
    run = certify(
        files(qwen2_week1=QWEN2_WEEK1), "--impl", "student", "--layout", "course", "-k", "test_nothing_at_all"
    )
    assert "there is no Qwen3ModelWeek1" not in run.text


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
