"""What is said of an adapter that cannot be used?"""

from __future__ import annotations

import pytest

from inferspec.conformance.bridge.locate import registered
from inferspec.tools.adapter_files import BATCH, ROPE, module, opened, refused


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("nowhere", "no module 'nowhere' can be imported from here; give a dotted module, a path such as ./kernels.py"),
        ("./nowhere.py", "there is no file or package nowhere.py"),
        ("./mine.json", "mine.json is no Python file; it takes one, or the folder of a package"),
        ("mine:nothing", "has no 'nothing'"),
        ("mine.nothing", "importing it failed with ModuleNotFoundError"),
        ("inferspec.spec.rope", "inferspec.spec.rope is a part of what judges; it certifies nothing"),
        ("inferspec.spec.rope:RoPE", "is a part of what judges"),
    ],
)
def test_a_subject_that_is_not_there_is_one_line(folder, spec, says):
    module(folder, ROPE)
    (folder / "mine.json").write_text("{}", encoding="utf-8")
    assert says in refused(spec)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import nowhere", "importing it failed with ModuleNotFoundError: No module named 'nowhere'"),
        ("1 / 0", "importing it failed with ZeroDivisionError"),
        ("def rope(:", "importing it failed with SyntaxError"),
        ("raise SystemExit(2)", "importing it failed with SystemExit"),
        ("def turn(x): return x", "offers none of the contract's names; define any of: linear, silu"),
        ("def roper(x): return x", "; did you mean RoPE by roper?"),
        ("def silu(): return 1", "silu() does not take x; the contract is silu(x)"),
        ("def linear(x): return x", "linear(x) does not take weight; the contract is linear(x, weight, bias=None)"),
        ("def rope(x, position): return x", "needs position, which no contract gives; the contract is RoPE("),
        ("def rope(x, *, layer): return x", "needs layer, which no contract gives"),
        ("class RMSNorm:\n    pass", "RMSNorm() does not take weight"),
        ("class RoPE:\n    def __init__(self, dims): pass", "objects of RoPE cannot be called; the contract is RoPE("),
        ("class RoPE:\n    def __init__(self, dims): pass\n    def __call__(self): pass", "does not take x"),
        ("from functools import partial\nsilu = partial(lambda: 1)", "does not take x"),
        (
            BATCH.format("self, key, value"),
            "BatchingKVCache: BatchingKVCache.update_and_fetch(self, key, value) cannot be called with what the contract gives"
            " it, update_and_fetch(key, value, mask_length): too many positional arguments",
        ),
        (BATCH.format("self, key, value, mask_length, mask"), "missing a required argument: 'mask'"),
        (BATCH.format("self, key, value, *, length"), "cannot be called with what the contract gives it"),
        ("async def silu(x): return x", "silu is asynchronous, and nothing awaits it"),
        (
            "async def generate(model, tokens, *, max_tokens): yield 1",
            "generate is asynchronous, and nothing awaits it",
        ),
        (
            "class KVCache:\n    async def update_and_fetch(self, key, value): ...",
            "KVCache.update_and_fetch is asynchronous",
        ),
        (ROPE + "ARRAYS = 'tensorflow'", "ARRAYS is 'tensorflow'; it takes mlx, torch, numpy, jax"),
        (ROPE + "ARRAYS = ['numpy']", "arrays of kind ['numpy']"),
        (ROPE + "ENVELOPE = ['rope']", "ENVELOPE is ['rope']; it takes a dict with components as keys"),
        (ROPE + "ENVELOPE = {'ropes': {}}", "ENVELOPE names 'ropes'; the components are linear, attention"),
        (ROPE + "ENVELOPE = {'rope': ['float32']}", "it takes a dict with any of dtypes, head_dims"),
        (
            ROPE + "ENVELOPE = {'rope': {'dtype': ['float32']}}",
            "ENVELOPE['rope'] has 'dtype'; it takes dtypes, head_dims",
        ),
        (
            ROPE + "ENVELOPE = {'rope': {'dtypes': ['int8']}}",
            "has 'int8'; it takes any of ['float32', 'float16', 'bfloat16']",
        ),
        (ROPE + "ENVELOPE = {'rope': {'dtypes': 'float32'}}", "is 'float32'; it takes a list of any of"),
        (ROPE + "ENVELOPE = {'rope': {'dtypes': []}}", "is []; it takes a list of any of"),
        (ROPE + "ENVELOPE = {'rope': {'positions': 63}}", "is 63; it takes the largest value, an int of 64 or more"),
        (ROPE + "PRECISION = 'native'", "PRECISION is 'native'; it takes a dict with components as keys"),
        (ROPE + "PRECISION = {'rope': 'float16'}", "PRECISION['rope'] is 'float16'; it takes 'float32' or 'native'"),
        (ROPE + "PRECISION = {'ropes': 'native'}", "PRECISION names 'ropes'; the components are"),
        (ROPE + "LAYOUT = 'BLHD'", "LAYOUT is 'BLHD'; it takes a dict with components as keys"),
        (ROPE + "LAYOUT = {'kv_cache': 'LBHD'}", "LAYOUT['kv_cache'] is 'LBHD'; it takes 'BLHD'"),
        (
            ROPE + "LAYOUT = {'rms_norm': 'BLHD'}",
            "LAYOUT names 'rms_norm'; it takes a component with more than one order of axes: attention, flash_attention, rope, kv_cache",
        ),
        (ROPE + "UNAVAILABLE = True", "UNAVAILABLE is True; it takes why it cannot run here, in a text"),
        (ROPE + "KERNEL_PATH = 42", "KERNEL_PATH is 42; it takes what ran its kernels, in a few words"),
        (ROPE + "WAIVERS = ['a.toml']", "WAIVERS is ['a.toml']; it takes the name of a file"),
        ("import mine.kernels", "it is found itself where it imports 'mine': rename mine.py"),
        ("from mine import rope", "it is found itself where it imports 'mine': rename mine.py"),
        ("import mine; rope = mine.rope", "it is found itself where it imports 'mine': rename mine.py"),
        (
            "class Class:\n    def silu(self, x): return x\nADAPTER = Class",
            "silu(self, x) needs self, as a method of a class does",
        ),
        ("from .x import y", "attempted relative import with no known parent package; a file by itself has no package"),
    ],
)
def test_an_adapter_that_cannot_be_used_is_one_line_that_says_how_to_mend_it(folder, text, says):
    module(folder, text)
    assert says in refused("./mine.py")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import os; os._exit(3)", "the subject's process died in loading ./mine.py (exit code 3)"),
        (
            "def silu(*args, **kwargs): return (lambda *, y: y)(*args, **kwargs)",
            "silu cannot be called as the contract does",
        ),
        (
            "class Engine:\n    def __init__(self, model, device): pass\n    def add_request(self, tokens, max_tokens): pass\n"
            "    def step(self): pass\n    def run(self): pass\n    def output(self, request): pass\n"
            "    def finished(self, request): pass\n    has_unfinished = False\nclass Llama:\n"
            "    def __init__(self, config, weights): pass\n    def __call__(self, tokens, cache=None): pass\n",
            "missing 1 required positional argument: 'device'; what it must take is in what `inferspec init` writes",
        ),
        ("def silu(x): return list(x)", "silu returned a builtins.list for numpy arrays; it must return one array"),
        ("def silu(x): return (x, x)", "silu returned a builtins.tuple for numpy arrays"),
        (
            "def quantize(w, group_size=128, bits=4): return w",
            "it must return a tuple (packed, scales, biases), or a dict with these names, of arrays",
        ),
        (
            "import mlx.core\nimport numpy as np\ndef silu(x): return np.array(x)",
            "returned a numpy.ndarray for mlx arrays",
        ),
        ("import mlx.core\ndef silu(x): return x.copy(order='C')", 'works on numpy arrays; declare ARRAYS = "numpy"'),
        (
            "ARRAYS = 'numpy'\nclass BlockManager:\n    def __init__(self, num_blocks, block_size): self.num_free = num_blocks\n"
            "    def allocate(self, tokens): return list(tokens)\n    def free(self, table): pass\n"
            "    def append(self, table, tokens): pass\n    def mark_computed(self, table, n): pass",
            "BlockManager lacks what the contract reads ('list' object has no attribute",
        ),
        (
            "ARRAYS = 'numpy'\ndef generate(model, tokens, *, max_tokens): yield from zip(tokens, tokens)",
            "generate cannot be used as the contract does: int() argument must be",
        ),
        (
            "ARRAYS = 'numpy'\ndef verify(draft_tokens, draft_probs, target_probs, uniform): return list(draft_tokens), 0",
            "verify cannot be used as the contract does: verify gives ids within what it gives; it gives one sequence",
        ),
        (
            "class KVCache:\n    offset = 0\n    def update_and_fetch(self, key, value): ...",
            "KVCache cannot be used as the contract does: a NoneType came back, which is not keys, values",
        ),
        (
            "ARRAYS = 'mlx'\nfrom inferspec.impl.llama import Llama\nfrom inferspec.impl.engine import Engine as Right\n"
            "class Engine(Right):\n    def step(self): return [token for _, token in super().step()]",
            "Engine cannot be used as the contract does: step gives a list, which is no list of (id, token)",
        ),
        (
            "from inferspec.impl.scheduler import Scheduler as Right\n"
            "class Scheduler(Right):\n    def schedule(self): return (super().schedule(),)",
            "schedule gives a tuple without prefills, decodes, preempted",
        ),
        (
            "class KVCache:\n    def __init__(self): setattr(self, 'append', print)",
            "KVCache: what the subject makes has no update_and_fetch",
        ),
        (ROPE + "KERNEL_PATH = 'metal'", "KERNEL_PATH is 'metal'; it takes a few words, such as cpu avx512"),
        (ROPE + "KERNEL_PATH = 'cpu\\nx'", "it takes a few words"),
    ],
)
def test_an_adapter_that_fails_at_its_plainest_call_is_one_line_too(folder, text, says):
    module(folder, text)
    assert says in refused("./mine.py", opened)


def test_the_line_is_all_that_pytest_prints_and_the_exit_code_is_four(certify):
    run = certify({"mine.py": "raise ValueError('two\\nlines')"}, "--impl", "./mine.py")
    assert run.complaint() == "ERROR: ./mine.py: importing it failed with ValueError: two lines"


MISFIT = """
import numpy as np
def silu(x): return (x / (1 + np.exp(-x.astype(np.float64)))).astype(x.dtype)
def softmax(x, places): return x
class KVCache:
    def append(self, key, value): return key, value
"""


def test_what_does_not_fit_the_contract_is_told_all_at_once(folder):
    module(folder, MISFIT)
    told = refused("mine")
    assert "softmax" in told
    assert "KVCache has no update_and_fetch" in told


def test_what_does_not_fit_stops_no_suite_of_another_component(folder, run_pytest):
    module(folder, MISFIT.replace("places", "axis"))
    where = ("--pyargs", "inferspec.conformance.test_linear_silu", "-k", "silu_is_x")
    assert run_pytest(folder, *where, "--impl", "./mine.py").code == 0
    assert (
        "KVCache has no update_and_fetch"
        in run_pytest(folder, "--pyargs", "inferspec.conformance.test_kv_cache", "--impl", "./mine.py").complaint()
    )


def test_a_subject_of_no_name_is_not_the_kit_s_own(certify):
    assert certify({}, "--impl", "").complaint().startswith("ERROR: --impl is empty; it takes a module")


def test_a_module_that_does_not_import_costs_only_its_component(certify):
    files = {"pkg/__init__.py": "", "pkg/rope.py": ROPE, "pkg/rms_norm.py": "import nowhere"}
    run = certify(files, "--impl", "./pkg", "-k", "no_offset_is_offset_zero or divided_by_their_root or product_of")
    assert set(run.states("RMSNorm").values()) == {"failed"}
    assert "pkg.rms_norm did not import: ModuleNotFoundError" in run.row("RMS-01")["message"]
    assert run.row("LIN-01")["state"] == "not_claimed"
    assert run.row("ROPE-03")["examples"] > 0
    assert run.code == pytest.ExitCode.TESTS_FAILED


def test_impl_list_prints_the_registered_subjects(run_pytest, tmp_path):
    run = run_pytest(tmp_path, "--impl", "list")
    assert run.code == 0
    assert [line.split()[0] for line in run.text.splitlines()] == list(registered())
