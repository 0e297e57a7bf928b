"""`--layout course-week2`: what week 2 of the course writes anew."""

from __future__ import annotations

import pytest

from inferspec.conformance.bridge.layouts import editions
from inferspec.conformance.bridge.layouts.course import week_2 as week_2_rooms
from inferspec.tools.course_package import ATTENTION, BASICS, LAYER_NORM, WEEK2_KERNELS, WEEK_2, files, problem


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


def test_the_summary_of_week_2_names_what_it_writes_anew(certify):
    run = certify(files(**WEEK_2), "--impl", "student", "--layout", "course-week2", "-m", "requirement(id='RMS-02')")
    assert any(
        line.strip().startswith("week 2 day 4") and "FastRMSNorm, FastRoPE, swiglu" in line and "1 passed" in line
        for line in run.text.splitlines()
    ), run.text
