"""`--layout course`: a package of the tiny-llm course is certified as it is, by the chapters of its text."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from inferspec.conformance.bridge.hosted_subject import HostedSubject
from inferspec.conformance.bridge.layouts import LAYOUTS, by_chapter, chapters, editions
from inferspec.conformance.bridge.layouts.course import ROOMS, week_2
from inferspec.conformance.envelope import OutsideEnvelope
from inferspec.spec import contracts
from inferspec.tools.course_package import SAMPLER, files, package, problem

OPERATIONS = [name for room in ROOMS for name in room.OFFERS]
EVERY = {"course": OPERATIONS, "course-week2": list(week_2.OFFERS)}


@pytest.fixture(scope="module")
def right(as_course: Any) -> HostedSubject:
    return as_course(package("student"))


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_right_package_offers_what_the_course_writes_and_agrees(right, name):
    assert name in right.description.offers, right.description.absent
    if name == "Sampler":  # of a generator of its own: judged by statistics alone
        with pytest.raises(OutsideEnvelope, match="generators"):
            problem(right, name)
    else:
        assert not problem(right, name)


@pytest.mark.parametrize(
    ("layout", "edition"), [(layout, edition) for layout in LAYOUTS for edition in editions(layout)]
)
def test_every_operation_of_a_layout_is_in_one_chapter_of_each_edition(layout, edition):
    named = [name for chapter in chapters(layout, edition) for name in chapter.names if not name.startswith("ROPE")]
    assert sorted(named) == sorted(EVERY[layout])


def test_a_requirement_is_in_the_chapter_that_names_it():
    rows = [{"id": r.id, "name": r.name} for c in contracts() for r in c.requirements]
    of = {chapter.where: {row["id"] for row in about} for chapter, about in by_chapter("course", rows)}
    assert "ROPE-01" in of["week 1 day 2"]
    assert "ROPE-05" not in of["week 1 day 2"]
    assert "ROPE-05" in of["week 2 day 6-7"]


def test_what_the_text_does_not_ask_for_is_not_asked(right):
    narrowed = {name: offer["narrowed"] for name, offer in right.description.offers.items()}
    assert narrowed["scaled_dot_product_attention"]["dtypes"] == ["float32"]
    assert "bool" not in narrowed["scaled_dot_product_attention"]["masks"]
    assert narrowed["RoPE"]["offsets"] == ["none", "slice", "slices"]
    assert narrowed["quantized_matmul"]["group_sizes"] == [128]
    assert narrowed["KVCache"] == {"restoring": [False], "head_dims": ["same"], "empty_chunks": [False]}


# packages that are not whole

STUBS = {
    "attention": '''
import mlx.core as mx

def scaled_dot_product_attention_simple(query, key, value, scale=None, mask=None):
    weights = mx.softmax(query @ key.swapaxes(-1, -2) * query.shape[-1] ** -0.5 + (0 if mask is None else mask), axis=-1)
    return weights @ value

def scaled_dot_product_attention_grouped(query, key, value, scale=None, mask=None):
    """Not yet."""
    pass

def causal_mask(L, S, dtype):
    raise NotImplementedError("day 3")

class SimpleMultiHeadAttention:
    def __init__(self, hidden_size, num_heads, wq, wk, wv, wo):
        pass

    def __call__(self, query, key, value, mask=None):
        pass

def flash_attention(query, key, value, scale=None):
    ...
''',
    "kv_cache": """
class TinyKvFullCache:
    def __init__(self):
        self.key_values = None
        self.offset = 0

    def update_and_fetch(self, key, value, mask_length=None, mask=None):
        pass
""",
    "sampler": """
import mlx.core as mx

def make_sampler(temp, top_p, top_k):
    def sample(logprobs):
        if temp == 0:
            return mx.argmax(logprobs, axis=-1)
        pass

    return sample
""",
    "__init__": "from .attention import *\n",
}


def test_what_is_only_begun_is_not_claimed(as_course):
    about = as_course(files(**STUBS)).description
    assert set(about.offers) == {"scaled_dot_product_attention", "Sampler"}
    assert not about.broken
    assert about.absent["causal_mask"] == "causal_mask is a stub"
    assert about.absent["MultiHeadAttention"] == "SimpleMultiHeadAttention is a stub: __call__"
    assert about.absent["KVCache"] == "TinyKvFullCache is a stub: update_and_fetch"
    assert about.absent["RoPE"] == "there is no RoPE in student"
    # Attention before day 3 is of as many heads for keys as for queries; a starter's sampler is greedy.
    assert about.offers["scaled_dot_product_attention"]["narrowed"]["ratios"] == [1]
    assert about.offers["Sampler"]["narrowed"]["temperatures"] == ["greedy"]


SPLIT = {
    "basics": """
import mlx.core as mx

def gate(x: mx.array) -> mx.array:
    pass

def note(x):
    pass

def linear(x, w, bias=None):
    note(x)
    return x @ w.T if bias is None else x @ w.T + bias
""",
    "mlp": """
import mlx.core as mx
from .basics import gate, linear

class Qwen3MLP:
    def __init__(self, dim: int, hidden_dim: int, w_gate, w_up, w_down):
        self.w_gate, self.w_up, self.w_down = w_gate, w_up, w_down

    def __call__(self, x):
        return linear(gate(linear(x, self.w_gate)).astype(x.dtype) * linear(x, self.w_up), self.w_down)
""",
}


def test_what_calls_a_stub_is_not_claimed_and_a_function_that_returns_nothing_is_no_stub(judge):
    run = judge(files(**SPLIT), "MLP-01", "LIN-01")
    assert run.row("MLP-01")["state"] == "not_claimed"
    assert "gate is a stub" in run.row("MLP-01")["message"]
    assert run.row("LIN-01")["state"] == "passed"


LATER = """
import mlx.core as mx
from .attention import scaled_dot_product_attention_of_next_week
from .basics import linear, silu

class Qwen3MLP:
    def __init__(self, dim: int, hidden_dim: int, w_gate, w_up, w_down):
        self.w_gate, self.w_up, self.w_down = w_gate, w_up, w_down

    def __call__(self, x):
        return linear(silu(linear(x, self.w_gate)) * linear(x, self.w_up), self.w_down)

class Qwen3ModelWeek1:
    def __init__(self, mlx_model):
        self.model = mlx_model

    def __call__(self, inputs):
        return scaled_dot_product_attention_of_next_week(inputs)
"""


def test_a_name_that_is_not_written_yet_costs_what_calls_it_and_not_who_imports_it(as_course):
    subject = as_course(package("student", qwen3_week1=LATER))
    assert {"SwiGLU", "MultiHeadAttention"} <= set(subject.description.offers)
    assert not subject.description.broken
    assert not problem(subject, "SwiGLU")
    assert "of_next_week" in problem(subject, "Qwen3")


COMPILED = """
import mlx.core as mx
from extensions import tiny_llm_ext

class QuantizedWeights:
    def __init__(self, scales, biases, group_size: int, bits: int, weight):
        self.scales, self.biases, self.group_size, self.bits, self.weight = scales, biases, group_size, bits, weight

def quantized_matmul(scales, biases, group_size, bits, a, b, transpose_b=False):
    return tiny_llm_ext.quantized_matmul(scales, biases, group_size, bits, mx.contiguous(a), b, transpose_b)

def quantized_linear(x, w: QuantizedWeights, bias=None):
    return quantized_matmul(w.scales, w.biases, w.group_size, w.bits, x, w.weight, True)
"""
LATE = COMPILED.replace("from extensions import tiny_llm_ext\n", "").replace(
    "    return tiny_llm_ext", "    from extensions import tiny_llm_ext\n    return tiny_llm_ext"
)
UNBUILT = {
    "nothing": {},
    "a folder": {"extensions/__init__.py": ""},
    "a package that could not load its library": {
        "extensions/tiny_llm_ext/__init__.py": "try:\n    from ._ext import *\nexcept ImportError:\n    print('no')\n"
    },
    "a package that raises": {"extensions/tiny_llm_ext/__init__.py": "from ._ext import *\n"},
    "a package that goes on": {"extensions/tiny_llm_ext/__init__.py": "from ._ext import *\nload_library('here')\n"},
}


@pytest.mark.parametrize("there", UNBUILT)
def test_an_extension_that_is_not_built_costs_what_calls_it_and_nothing_else(judge, there):
    run = judge(package("student", quantize=COMPILED) | UNBUILT[there], "QMM-01")
    about = run.certificate["subject"]
    assert about["layout"] == "course"
    lacking = {"quantized_matmul", "QuantizedLinear", "dequantize"}
    assert set(about["offers"]) == set(OPERATIONS) - lacking
    row = run.row("QMM-01")
    assert row["state"] == "not_claimed"
    assert "is not built here" in row["message"]


@pytest.mark.parametrize("quantize", [COMPILED, LATE], ids=["when it is loaded", "when it is called"])
def test_what_takes_an_extension_that_is_not_built_is_not_claimed_wherever_it_is_imported(judge, quantize):
    row = judge(files(quantize=quantize), "QMM-01").row("QMM-01")
    assert row["state"] == "not_claimed"
    assert ("is not built here" in row["message"]) is (quantize == COMPILED)


def test_a_module_that_does_not_import_costs_its_components_and_nothing_else(as_course):
    written = "raise OSError('no disk')\n\nclass TinyKvFullCache: ...\n\nclass BatchingKvCache: ...\n"
    raising = package("student", kv_cache=written)
    about = as_course(raising).description
    assert set(about.broken) == {"KVCache", "BatchingKVCache"}
    assert about.broken["KVCache"] == "student.kv_cache did not import: OSError: no disk"
    # The models of week 2 import the cache; pages only inherit from a class there.
    assert set(OPERATIONS) - set(about.offers) == {
        "KVCache",
        "BatchingKVCache",
        "Llama.incremental",
        "Qwen3.incremental",
    }


def test_what_is_not_in_the_text_of_a_module_that_does_not_import_is_not_claimed(as_course):
    about = as_course(package("student", kv_cache="raise OSError('no disk')\n")).description
    assert not about.broken
    assert about.absent["KVCache"] == "there is no TinyKvFullCache in student"


def test_an_init_that_exits_costs_nothing(as_course):
    exiting = package("student") | {"student/__init__.py": "raise SystemExit('no GPU')\n"}
    assert set(as_course(exiting).description.offers) == set(OPERATIONS)


def test_a_syntax_error_costs_its_module(as_course):
    about = as_course(package("student", sampler="def make_sampler(:\n")).description
    assert set(about.broken) == {"Sampler"}
    assert "SyntaxError" in about.broken["Sampler"]


# what goes wrong

TOP_LEFT = """
import mlx.core as mx

def causal_mask(L: int, S: int, dtype: mx.Dtype):
    return mx.where(mx.tril(mx.ones((L, S))) > 0, mx.array(0.0), mx.array(-mx.inf)).astype(dtype)

def scaled_dot_product_attention_grouped(query, key, value, scale=None, mask=None):
    *batch, heads, length, dim = query.shape
    repeats = heads // key.shape[-3]
    # Tiled in the place of repeated: head h reads h % H.
    key, value = (mx.concatenate([x] * repeats, axis=-3) for x in (key, value))
    scores = query @ key.swapaxes(-1, -2) * (dim**-0.5 if scale is None else scale)
    if isinstance(mask, str):
        mask = causal_mask(length, key.shape[-2], query.dtype)
    return mx.softmax(scores if mask is None else scores + mask, axis=-1) @ value
"""
OUTSIDE = """
import mlx.core as mx

class RMSNorm:
    def __init__(self, dim: int, weight, eps: float = 1e-5):
        self.weight, self.eps = weight, eps

    def __call__(self, x):
        y = x.astype(mx.float32)
        return (y / (mx.sqrt(mx.mean(y * y, axis=-1, keepdims=True)) + self.eps)).astype(x.dtype) * self.weight
"""


@pytest.fixture(scope="module")
def mistaken(certify: Any) -> Any:
    wrong = package("student", attention=TOP_LEFT, layer_norm=OUTSIDE)
    ids = ("ATTN-03", "CMASK-01", "RMS-01", "RMS-02", "LIN-01", "LIN-10")
    asked = " or ".join(f"requirement(id='{i}')" for i in ids)
    return certify(wrong, "--impl", "student", "--layout", "course", "--profile", "quick", "-m", asked)


@pytest.mark.parametrize(
    ("requirement", "fault"),
    [("ATTN-03", "sdpa-heads-tiled"), ("CMASK-01", "cmask-top-left"), ("RMS-02", "rms-eps-outside")],
)
def test_typical_mistakes_are_red(mistaken, requirement, fault):
    assert mistaken.row(requirement)["state"] == "failed", mistaken.text
    assert fault in mistaken.row(requirement)["diagnosis"]


def test_the_summary_tells_what_holds_of_each_chapter(mistaken):
    lines = [line.strip() for line in mistaken.text.splitlines()]
    start = lines.index("by chapters of the course, edition of 2025 to July 2026:")
    said = lines[start : start + 20]
    assert any(line.startswith("week 1 day 1") and "2 passed" in line for line in said), said
    assert any(line.startswith("week 1 day 3") and "2 failed" in line for line in said), said
    assert "scaled_dot_product_attention: ATTN-03" in said
    assert "causal_mask: CMASK-01" in said
    assert any(line.startswith("RMSNorm: RMS-0") for line in said), said


def test_a_rerun_line_names_the_layout(mistaken):
    assert "--impl student --layout course --profile" in mistaken.text


BY_COLUMNS = """
import mlx.core as mx

def make_sampler(temp: float, top_p: float, top_k: int | None):
    def sample(logprobs):
        if temp == 0:
            return mx.argmax(logprobs, axis=-1)
        kept = mx.array(logprobs)
        if top_k:
            # Columns of one row, for all rows.
            kept[:, mx.argsort(-kept, axis=-1)[0, top_k:]] = -mx.inf
        if top_p:
            order = mx.argsort(-kept, axis=-1)[0]
            before = mx.cumsum(mx.exp(kept[:, order]), axis=-1) - mx.exp(kept[:, order])
            kept[:, order] = mx.where(before < top_p, kept[:, order], -mx.inf)
        return mx.random.categorical(kept / temp, axis=-1)

    return sample
"""


def test_a_sampler_of_one_row_is_given_one_row_at_a_time(as_course, right):
    about = as_course(files(sampler=BY_COLUMNS)).description
    assert about.offers["Sampler"]["narrowed"]["draws"] == 5000
    assert "draws" not in right.description.offers["Sampler"]["narrowed"]


# what is said of a wrong use


def test_an_unknown_layout_is_refused(certify):
    said = certify({}, "--impl", "student", "--layout", "school").complaint()
    assert "--layout school: it takes course, course-week2" in said


def test_a_package_that_is_not_there_is_said_so(certify):
    said = certify({}, "--impl", "student", "--layout", "course").complaint()
    assert "student: no package of that name can be imported from here" in said


def test_a_certificate_that_names_a_layout_is_sound(certify, tmp_path):
    run = certify(files(sampler=SAMPLER), "--impl", "student", "--layout", "course", "-k", "test_nothing_at_all")
    path = tmp_path / "certificate.json"
    import json

    path.write_text(json.dumps(run.certificate), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "inferspec.tools.cli", "verify", str(path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
