"""What a run does: each subject's trouble costs its own requirements, verdicts and exit codes follow, others are left alone."""

from __future__ import annotations

import contextlib

import pytest

from inferspec.conformance.session import Session
from inferspec.spec import contract

TROUBLED = """
import ctypes, os, random, sys, time
import numpy as np

_cos, _sin, _power = np.cos, np.sin, np.power

def linear(x, weight, bias=None):
    os._exit(3)

def silu(x):
    if x.dtype == np.float16:
        ctypes.string_at(0)
    return x

def softmax(x, axis=-1):
    if x.size > 6:
        time.sleep(1000)
    return np.ones_like(x)

def causal_mask(L, S, dtype):
    return None

def scaled_dot_product_attention(query, key, value, *, scale=None, mask=None):
    if mask is not None:
        raise NotImplementedError("masks")
    return query

class MultiHeadAttention:
    def __init__(self, hidden_size, num_heads, wq, wk, wv, wo): raise NotImplementedError
    def __call__(self, query, key, value, mask=None): return query

def swiglu(x, w_gate, w_up, w_down):
    sys.exit()

class Embedding:
    def __init__(self, vocab_size, dims, weight): self.weight = weight
    def __call__(self, tokens):
        if self.weight.dtype == np.float16:
            raise ValueError("no float16")
        return self.weight[tokens]
    def as_linear(self, x):
        if x.dtype == np.float16:
            raise RuntimeError("no float16")
        return (x.astype(np.float32) @ self.weight.astype(np.float32).T).astype(x.dtype)

def rms_norm(x, weight, eps=1e-5):
    random.seed(0)
    y = x.astype(np.float32)
    return (y / np.sqrt(np.mean(y * y, axis=-1, keepdims=True) + eps)).astype(x.dtype) * weight

def rope(x, offset=None, base=10000, traditional=False):
    random.random()
    starts = offset if isinstance(offset, list) else [offset] * len(x)
    starts = [o.start if isinstance(o, slice) else o or 0 for o in starts]
    positions = np.array(starts)[:, None] + np.arange(x.shape[1])
    angles = (positions[..., None] * _power(float(base), -np.arange(0, x.shape[-1], 2) / x.shape[-1]))[:, :, None]
    cos, sin = _cos(angles).astype(np.float32), _sin(angles).astype(np.float32)
    y = x.astype(np.float32)
    a, b = (y[..., ::2], y[..., 1::2]) if traditional else np.split(y, 2, axis=-1)
    turned = a * cos - b * sin, a * sin + b * cos
    out = np.stack(turned, axis=-1).reshape(x.shape) if traditional else np.concatenate(turned, axis=-1)
    return out.astype(x.dtype)

def _poisoned(*arguments, **options):
    raise RuntimeError("patched")

np.cos = np.sin = np.exp = np.power = np.einsum = _poisoned
np.random.seed(0)
random.seed(0)
"""

TROUBLES = {
    "LIN-07": ("crashed", "exit code 3"),
    "SILU-07": ("crashed", "SIGSEGV"),
    "SMAX-09": ("hung", "no answer within 1"),
    "CMASK-03": ("overclaimed", "is a stub: it returns None"),
    "ATTN-15": ("overclaimed", "refuses what its envelope includes: NotImplementedError: masks"),
    "MHA-07": ("overclaimed", "does not answer its plainest call (NotImplementedError: "),
    "MLP-08": ("crashed", "died"),
    "EMB-05": ("overclaimed", "refuses what its envelope includes: ValueError: no float16"),
    "EMB-15": ("failed", "raises: RuntimeError: no float16"),
    "RMS-13": ("failed", "the call changes the random state"),
    "RMS-11": ("passed", ""),
    "ROPE-03": ("passed", ""),
    "ROPE-16": ("passed", ""),
    # It draws: only what is given its numbers may not.
    "ROPE-18": ("passed", ""),
}


def only(*requirements):
    return "-m", " or ".join(f"requirement(id={requirement!r})" for requirement in requirements)


TROUBLE = ("--impl", "./mine.py", "--profile", "quick", "--call-limit", "1", *only(*TROUBLES))


def rows(run):
    """What must not depend on how a run is spread over processes."""
    return [
        {key: row[key] for key in ("id", "state", "ran", "examples", "worst", "precision")}
        for row in run.certificate["requirements"]
    ]


@pytest.fixture(scope="module")
def troubled(certify):
    return certify({"mine.py": TROUBLED}, *TROUBLE, "-n", "0")


@pytest.mark.parametrize("requirement", TROUBLES)
def test_a_subjects_trouble_costs_its_own_requirement(troubled, requirement):
    state, message = TROUBLES[requirement]
    row = troubled.row(requirement)
    assert row["state"] == state, row["message"]
    assert message in row["message"]


def test_a_component_is_selected_by_its_name_whichever_files_its_tests_are_in(certify):
    chosen = certify({}, "--impl", "impl", "-m", "requirement(component='attention')", "--profile", "quick", "-n", "0")
    ran = {row["id"] for row in chosen.certificate["requirements"] if row["ran"]}
    assert ran == {requirement.id for requirement in contract("attention").requirements}


def test_a_run_goes_on_after_every_trouble_and_fails(troubled):
    assert troubled.code == pytest.ExitCode.TESTS_FAILED
    assert "INTERNALERROR" not in troubled.text


def test_a_run_in_parallel_gives_the_same_rows(certify, troubled):
    spread = certify({"mine.py": TROUBLED}, *TROUBLE, "-n", "2")
    assert rows(spread) == rows(troubled)
    assert spread.code == troubled.code


LEAVING = """
import os

def pytest_runtest_logreport(report):
    if report.when == "call" and "PYTEST_XDIST_WORKER" not in os.environ:
        raise KeyboardInterrupt
"""


def test_who_is_interrupted_is_not_said_to_have_changed_the_kit(certify):
    files = {"rope.py": "def rope(x, offset=None, base=10000): return x.copy()", "conftest.py": LEAVING}
    run = certify(files, "--impl", "./rope.py", *only("ROPE-16", "ROPE-17"), "-n", "2", suite="test_rope")
    assert run.code == pytest.ExitCode.INTERRUPTED
    assert run.certificate["kit"]["altered"] == []
    assert (run.certificate["complete"], run.certificate["verdict"]) == (False, "incomplete")


def test_who_is_interrupted_keeps_the_certificate_of_an_earlier_run(tmp_path, write, run_pytest):
    write(tmp_path, {"mask.py": MASK, "leaving.py": LEAVING})
    options = ("--impl", "./mask.py", *only("CMASK-01"), "-p", "leaving", "-n", "0", "--certificate", "mask.json")
    for earlier in (False, True):
        if earlier:
            (tmp_path / "mask.json").write_text("of an earlier run", encoding="utf-8")
        run = run_pytest(tmp_path, "--pyargs", "inferspec.conformance.test_attention_masks", *options)
        assert run.code == pytest.ExitCode.INTERRUPTED
        stays = "mask.json is of an earlier run, and stays: this one was stopped before its end"
        assert (stays in run.text, "\ncertificate: mask.json\n" in run.text) == (earlier, not earlier)
    assert (tmp_path / "mask.json").read_text(encoding="utf-8") == "of an earlier run"


# Verdicts and exit codes, on a component of one cheap operation

MASK = """
import numpy as np

def causal_mask(L, S, dtype):
    if min(L, S) < 0:
        raise ValueError("negative")
    return np.triu(np.full((L, S), -np.inf), S - L + 1).astype(dtype)
"""
UNGUARDED = MASK.replace("min(L, S) < 0", "False").replace("((L, S)", "((abs(L), abs(S))")
TOP_LEFT = MASK.replace("S - L + 1", "1")


@pytest.mark.parametrize(
    ("subject", "options", "verdict", "code"),
    [
        pytest.param(UNGUARDED, (), "conformant", 0, id="a SHOULD that is not met"),
        pytest.param(TOP_LEFT, (), "nonconformant", 1, id="a MUST that is not met"),
        pytest.param(TOP_LEFT, ("-x",), "incomplete", 1, id="stopped at a failure"),
        pytest.param(MASK, ("--deselect", "test_attention_masks.py"), "incomplete", 0, id="without a file"),
        pytest.param(MASK, ("-k", "nothing_of_that_name"), "incomplete", 5, id="empty"),
    ],
)
def test_a_verdict_needs_a_whole_run_and_decides_the_exit_code(certify, subject, options, verdict, code):
    run = certify({"mask.py": subject}, "--impl", "./mask.py", *options)
    assert (run.certificate["verdict"], run.code) == (verdict, code), run.text
    unmet = "verdict: conformant with 1 SHOULD unmet\n  what is unmet of level SHOULD is told in full with -rx\n"
    says = {UNGUARDED: unmet, TOP_LEFT: "looks like: "}
    assert says.get(subject, "verdict: ") in run.text


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--profile", "bad"), "--profile bad: it takes quick, standard, full, nightly"),
        (("--profile", "quik"), "full, nightly; did you mean quick?"),
        (("--with", "rope"), "--with rope: it takes PART=SUBJECT"),
        (("--call-limit", "-1"), "--call-limit -1.0: it takes seconds, more than 0"),
        (("--call-limit", "inf"), "--call-limit inf: it takes seconds, more than 0"),
        (("--call-limit", "nan"), "--call-limit nan: it takes seconds, more than 0"),
        (("--certificate", ""), "--certificate is empty; it takes a file"),
        (("--with", "ropes=mask"), "'ropes' is no component or name of the contract; did you mean rope?"),
        (("--certificate", "."), "--certificate . is a folder; it takes a file"),
        (("--certificate", "mask.py/out.json"), "--certificate mask.py/out.json cannot be written"),
        (("-m", "requirement(id='ATN-17')"), "there is no requirement of id 'ATN-17'; did you mean ATTN-17?"),
        (("-m", "requirement(compnent='rope')"), "'compnent' is nothing to choose by; id and component are"),
        (("-m", "not requirement(component='ropes')"), "no requirement of component 'ropes'; did you mean rope?"),
    ],
)
def test_a_bad_option_is_one_line(certify, options, says):
    assert says in certify({"mask.py": MASK}, "--impl", "./mask.py", *options).complaint()


def test_a_marker_of_ones_own_may_have_any_id(certify):
    asked = "requirement(id='CMASK-03') and not mine(id='ATTN-99')"
    run = certify(
        {"mask.py": MASK}, "--impl", "./mask.py", "-m", asked, "--profile", "quick", suite="test_attention_masks"
    )
    assert run.row("CMASK-03")["state"] == "passed", run.text


def test_what_a_parameter_of_another_name_may_be_is_told_before_the_tests(tmp_path):
    (tmp_path / "mine.py").write_text("def linear(x, w, add=None):\n    return x @ w.T")
    with contextlib.closing(Session.opened(str(tmp_path / "mine.py"), profile="quick")) as session:
        told = [line for line in session.header() if "takes no" in line]
    assert told == ["inferspec: linear takes no bias, and so is not asked for it; if its add is that, call it bias"]


def test_a_run_without_a_header_tells_it_at_its_end(certify):
    files = {"mine.py": "def linear(x, w, add=None):\n    return x @ w.T"}
    run = certify(files, "--impl", "./mine.py", "-q", *only("LIN-08"), "-n", "0", suite="test_linear")
    assert "linear takes no bias, and so is not asked for it; if its add is that, call it bias" in run.text


def test_a_certificate_that_cannot_be_written_after_all_is_told(certify):
    filled = """
import pathlib
def pytest_collection_finish(session): pathlib.Path("out").touch()
"""
    files = {"mask.py": MASK, "filled.py": filled}
    run = certify(
        files, "--impl", "./mask.py", "-p", "filled", "--certificate", "out/c.json", "-k", "nothing", "-n", "0"
    )
    assert "the certificate could not be written: " in run.text
    assert run.code == pytest.ExitCode.USAGE_ERROR


# A newcomer's file

NEWCOMER = """
import numpy as np


def rope(x, offset=None, base=10000, traditional=False):
    batch, length, _, dims = x.shape
    if dims % 2:
        raise ValueError(f"odd head dim {dims}")
    if not isinstance(offset, list):
        offset = [offset] * batch
    if len(offset) != batch:
        raise ValueError(f"{len(offset)} offsets for {batch} rows")
    starts = []
    for one in offset:
        if isinstance(one, slice):
            if one.stop - one.start != length:
                raise ValueError(f"{one} is not {length} long")
            one = one.start
        if one is not None and one < 0:
            raise ValueError(f"negative offset {one}")
        starts.append(one or 0)
    positions = np.array(starts)[:, None] + np.arange(length)
    frequencies = float(base) ** (-np.arange(0, dims, 2) / dims)
    angles = (positions[..., None] * frequencies)[:, :, None, :]
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    y = x.astype(np.float32)
    if traditional:
        a, b = y[..., ::2], y[..., 1::2]
        out = np.stack([a * cos - b * sin, a * sin + b * cos], axis=-1).reshape(x.shape)
    else:
        a, b = y[..., : dims // 2], y[..., dims // 2 :]
        out = np.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)
    return out.astype(x.dtype)


def rms_norm(x, weight, eps=1e-5):
    if weight.shape != x.shape[-1:]:
        raise ValueError(f"weight {weight.shape} for {x.shape}")
    y = x.astype(np.float32)
    y = y / np.sqrt(np.mean(y * y, axis=-1, keepdims=True) + eps)
    return y.astype(x.dtype) * weight
"""


def test_plain_functions_of_numpy_pass_without_an_adapter_line(certify):
    run = certify({"mine.py": NEWCOMER}, "--impl", "./mine.py", "--profile", "quick")
    states = {**run.states("RoPE"), **run.states("RMSNorm")}
    outside = dict.fromkeys(("ROPE-04", "ROPE-05", "ROPE-12", "ROPE-20"), "outside_envelope")
    assert {i: s for i, s in states.items() if s != "passed"} == outside, run.text
    assert run.certificate["subject"]["unclaimed"]["RoPE"] == ["offsets: slice", "offsets: slices"]
    assert (run.certificate["verdict"], run.code) == ("conformant", 0)
    assert run.certificate["subject"]["arrays"] == "numpy"


def test_an_offset_off_by_one_is_red_and_named(certify):
    wrong = NEWCOMER.replace("starts.append(one or 0)", "starts.append(one + 1 if one else 0)")
    run = certify({"mine.py": wrong}, "--impl", "./mine.py", *only("ROPE-03"), suite="test_rope")
    assert run.row("ROPE-03")["state"] == "failed"
    assert "rope-offset-plus-one" in run.row("ROPE-03")["diagnosis"]
    assert run.code == 1


@pytest.mark.parametrize(("level", "says"), [("1", ""), ("2", "run it without, or with -O")])
def test_without_asserts_the_kit_is_what_its_files_say_and_without_docstrings_it_does_not_run(
    certify, monkeypatch, level, says
):
    monkeypatch.setenv("PYTHONOPTIMIZE", level)
    run = certify({"mine.py": NEWCOMER}, "--impl", "./mine.py", *only("RMS-01"))
    if says:
        assert says in run.complaint()
    else:
        assert not run.certificate["kit"]["altered"]
        assert run.states("RMSNorm") == {"RMS-01": "passed"}


# Runs that are not ours

UNRELATED = "def test_nothing():\n    pass\n"
LOADED = """
import sys

def pytest_unconfigure():
    libraries = ("mlx", "torch", "numpy", "hypothesis", "ml_dtypes", "jsonschema", "rich")
    print("loaded:", [name for name in libraries if name in sys.modules])
"""


def test_an_unrelated_run_sees_nothing_of_the_plugin(run_pytest, write, tmp_path):
    write(tmp_path, {"test_theirs.py": UNRELATED, "conftest.py": LOADED})
    run = run_pytest(tmp_path, "-p", "no:hypothesispytest", "-p", "no:randomly")
    assert run.code == 0
    assert "loaded: []" in run.text
    assert "conformance" not in run.text
    assert "inferspec:" not in run.text


THEIR_OPTIONS = """
def pytest_addoption(parser):
    parser.addoption("--profile", action="store_true", help="theirs")
    parser.addoption("--impl", dest="theirs", help="theirs")
"""


@pytest.mark.parametrize("when", ["before ours", "after ours"])
def test_other_plugins_keep_options_of_the_same_name(run_pytest, write, tmp_path, when):
    name = "theirs.py" if when == "before ours" else "conftest.py"
    write(tmp_path, {"test_theirs.py": UNRELATED, name: THEIR_OPTIONS})
    run = run_pytest(tmp_path, "--profile", *(["-p", "theirs"] if when == "before ours" else []))
    assert (run.code, "1 passed" in run.text) == (0, True), run.text


def test_a_run_of_ours_beside_an_option_of_the_same_name_takes_its_own_defaults(certify):
    files = {"theirs.py": THEIR_OPTIONS, "impl.py": MASK}
    run = certify(files, "-p", "theirs", "--with", "causal_mask=./impl.py", "--call-limit", "9")
    assert "say ./impl.py or inferspec.impl" in run.complaint()


def test_a_project_may_call_its_own_tests_as_it_likes(run_pytest, write, tmp_path):
    ini = "[pytest]\npython_files = check_*.py\npython_functions = check_*\n"
    write(tmp_path, {"mask.py": MASK, "pytest.ini": ini})
    asked = ("--impl", "./mask.py", "--certificate", "certificate.json", *only("CMASK-03"))
    for suites in ("inferspec.conformance.test_attention_masks", "inferspec.conformance"):
        run = run_pytest(tmp_path, "--pyargs", suites, *asked)
        assert run.row("CMASK-03")["state"] == "passed", run.text


def test_a_test_of_ones_own_may_take_the_subject(run_pytest, write, tmp_path):
    text = "from inferspec.conformance.test_attention_masks import test_the_mask_has_the_lengths_and_dtype_asked_for\n"
    write(tmp_path, {"mask.py": MASK, "test_mine.py": text})
    run = run_pytest(tmp_path, "test_mine.py", "--impl", "./mask.py", "--certificate", "certificate.json")
    assert run.row("CMASK-03")["state"] == "passed", run.text
    assert run.certificate["verdict"] == "incomplete"


KERNELS_OF_A_LIBRARY = """
import numpy as np
def silu(x):
    if x.dtype == np.float16:
        raise {error}
    return (x / (1 + np.exp(-x.astype(np.float32)))).astype(x.dtype)
"""


@pytest.mark.parametrize(
    "error",
    [
        "NotImplementedError(\"'silu_cpu' not implemented for 'Half'\")",
        'RuntimeError("float16 is not supported")',
        'type("InvalidArgument", (Exception,), {})("float16 is unknown")',
        'type("Fail", (Exception,), {})("the operator does not support float16 on CPU")',
        'AssertionError("float32 and bfloat16 only")',
    ],
)
def test_what_an_error_says_is_not_supported_may_be_left_out_of_the_envelope(certify, error):
    files = {"mine.py": KERNELS_OF_A_LIBRARY.format(error=error)}
    run = certify(files, "--impl", "./mine.py", *only("SILU-05"), "-n", "0", suite="test_linear_silu")
    row = run.row("SILU-05")
    assert row["state"] == "overclaimed"
    assert "say so: ENVELOPE = {'linear': {'dtypes': ['float32', 'bfloat16']}}" in row["message"]


CACHE = """
import numpy as np
class KVCache:
    def __init__(self):
        self.kept, self.offset = None, 0
    def update_and_fetch(self, key, value):
        {check}
        new = (key, value)
        if self.kept is not None:
            new = tuple(np.concatenate(pair, axis=2) for pair in zip(self.kept, new))
        self.kept, self.offset = new, new[0].shape[2]
        return new
"""


def test_what_steps_of_stories_refuse_may_be_left_out_of_the_envelope(certify):
    files = {"mine.py": CACHE.format(check="assert key.dtype.name != 'bfloat16'")}
    run = certify(files, "--impl", "./mine.py", *only("KV-02"), "-n", "0", suite="test_kv_cache")
    assert "say so: ENVELOPE = {'kv_cache': {'dtypes': ['float32', 'float16']}}" in run.row("KV-02")["message"]


def test_values_of_another_head_dim_that_a_cache_refuses_are_not_asked_of_it(certify):
    files = {"mine.py": CACHE.format(check="assert key.shape == value.shape")}
    run = certify(files, "--impl", "./mine.py", *only("KV-02"), "-n", "0", suite="test_kv_cache")
    assert run.row("KV-02")["message"] == ""


def test_a_step_that_fails_whatever_it_is_given_is_none_to_be_left_out(certify):
    files = {"mine.py": CACHE.format(check="if self.kept is not None: raise RuntimeError('lost')")}
    run = certify(files, "--impl", "./mine.py", *only("KV-01"), "-n", "0", suite="test_kv_cache")
    row = run.row("KV-01")
    assert row["state"] == "failed"
    assert "lost" in row["message"]
    assert "ENVELOPE" not in row["message"]
