"""How an adapter is found, read and called, and what is said of one that cannot be used."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from inferspec.conformance.adapter import load, registered
from inferspec.conformance.arrays import arrays
from inferspec.conformance.drivers import Handed
from inferspec.conformance.envelope import envelope_of
from inferspec.conformance.executor import Executor
from inferspec.conformance.matching import AdapterError
from inferspec.conformance.session import Session
from inferspec.conformance.subject import HostedSubject
from inferspec.conformance.suite import all_tests
from inferspec.spec import contract
from inferspec.spec.numerics import Precision
from inferspec.spec.rms_norm import RMSNorm
from inferspec.spec.rope import RoPE

ROPE = "def rope(x, offset=None, base=10000, traditional=False): return x\n"
BATCH = """
class BatchingKVCache:
    def __init__(self, max_requests, max_len): ...
    def add(self, cache, slot): ...
    def remove(self, slot): ...
    def update_and_fetch({}): ...
"""
ONES = np.ones((2, 4), np.float32)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder of its own, and a process that forgets what was imported from it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield tmp_path
    for name in [name for name in sys.modules if name.split(".")[0] in ("mine", "other", "package")]:
        del sys.modules[name]


def module(folder, text, name="mine.py"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text), encoding="utf-8")


def refused(spec, loader=load, **replacements):
    """The line with which a subject is refused before any test."""
    with pytest.raises(AdapterError) as caught:
        loader(spec, replacements)
    line = str(caught.value)
    assert "\n" not in line
    return line


def opened(spec, replacements=None):
    """A session with a subject, in a process of its own, that has answered its plainest calls."""
    return Session.opened(spec, replacements or {}, "standard", 0, 20.0)


def called(adapter, operation, **arguments):
    """What an adapter's operation returns."""
    seen = Executor(adapter.targets).call(operation, arguments, {}, None, (), False)
    assert not seen.raised, seen.message
    return seen.value


def is_right(got, operation, **arguments):
    """Whether it is within the oracle's budget."""
    answer = operation.evaluate(operation.bind(arguments), Precision.FLOAT32)
    return bool((np.abs(got - answer.value) <= answer.budget).all())


def narrowed(adapter, operation):
    return adapter.targets[operation].narrowed


# What else a driver uses

PAGES = """
ARRAYS = "numpy"
class PagePool:
    def __init__(self, num_pages, page_size, num_kv_heads, head_dim, dtype): ...
    num_free = 0
    key_pages = value_pages = None
    def allocate(self): ...
    def free(self, page): ...
"""
CACHES = """
ARRAYS = "numpy"
class PagedKVCache:
    def __init__(self, pool): ...
    page_ids = page_lens = offset = None
    def append(self, key, value): ...
    def gather(self): ...
    def rewind(self, n): ...
    def release(self): ...
"""


def test_an_object_is_driven_with_what_it_is_made_of(folder):
    module(folder, PAGES + CACHES)
    adapter = load("mine")
    assert adapter.targets["PagedKVCache"].beside["PagePool"] == adapter.targets["PagePool"].build


def test_an_object_without_what_it_is_made_of_is_told(folder):
    module(folder, CACHES)
    adapter = load("mine")
    assert "PagedKVCache" not in adapter.targets
    assert adapter.broken["PagedKVCache"] == "it takes PagePool beside it"


ATTENTION = """
def paged_attention(q, key_pages, value_pages, block_table, context_lens, page_size, scale=None):
    return q * page_size
"""


def test_an_object_whose_tokens_a_function_reads_is_driven_with_the_function_by_the_contracts_names(folder):
    module(folder, PAGES + CACHES + ATTENTION)
    target = load("mine").targets["PagedKVCache.attention"]
    x = np.ones(2, np.float32)
    given = dict.fromkeys(("key_pages", "value_pages", "block_table", "context_lens"), x)
    assert target.beside["paged_attention"](query=x, page_size=3, mask="causal", **given).tolist() == [3, 3]
    assert set(target.beside) == {"PagePool", "paged_attention"}


def test_a_function_of_another_library_is_given_its_own_arrays(folder):
    module(folder, "ARRAYS = 'torch'" + ATTENTION)
    target = load("mine").targets["paged_attention"]
    x = np.ones(2, ml_dtypes.bfloat16)
    given = dict.fromkeys(("key_pages", "value_pages", "block_table", "context_lens"), x)
    answer = target.beside_a(arrays("numpy"))(query=x, page_size=3, **given)
    assert isinstance(answer, np.ndarray)
    assert (answer.dtype, answer.tolist()) == (x.dtype, [3, 3])


def test_what_a_function_of_another_component_does_not_take_its_users_are_not_asked_for(folder):
    sizes = 'ENVELOPE = {"paged_attention": {"head_dims": [64, 128], "masks": ["causal"], "context": 99}}'
    module(folder, PAGES + CACHES + ATTENTION + sizes)
    adapter = load("mine")
    assert narrowed(adapter, "PagedKVCache.attention") == {"head_dims": (64, 128)}
    assert not narrowed(adapter, "PagedKVCache")


def test_caches_without_paged_attention_are_caches_alone(folder):
    module(folder, PAGES + CACHES)
    adapter = load("mine")
    assert "PagedKVCache" in adapter.targets
    assert "PagedKVCache.attention" not in {*adapter.targets, *adapter.broken}


DECODER = """
class {name}:
    def __init__(self, config, weights): ...
    def __call__(self, tokens, cache=None): ...
    def make_cache(self): ...
"""
ENGINE = """
ARRAYS = "numpy"
class Engine:
    def __init__(
        self, model, *, num_pages, page_size, max_requests, max_prefill_tokens, prefix_caching=True, draft=None, clock=None
    ): ...
    num_free_pages = has_unfinished = 0
    def add_request(self, tokens, max_tokens, priority=0, eos=()): ...
    def step(self): ...
    run = cancel = output = finished = metrics = step
"""


@pytest.mark.parametrize(("name", "models"), [("Qwen3", "qwen3"), ("Llama", "llama")])
def test_an_object_is_driven_with_any_of_what_it_can_be_made_of(folder, name, models):
    module(folder, ENGINE + DECODER.format(name=name))
    adapter = load("mine")
    assert adapter.targets["Engine"].beside == {name: adapter.targets[name].build}
    assert narrowed(adapter, "Engine") == {"logits": ("untold",), "models": (models,)}


@pytest.mark.parametrize(
    ("option", "left"),
    [("draft=None, ", {"drafts": ("none",)}), (", clock=None", {"metrics": ("untold",)}), ("prefix_caching=True, ", {"prefix_caching": (True,)})],
)  # fmt: skip
def test_an_option_that_an_object_does_not_take_narrows_the_envelope(folder, option, left):
    module(folder, (ENGINE + DECODER.format(name="Llama")).replace(option, ""))
    assert narrowed(load("mine"), "Engine") == {"logits": ("untold",), "models": ("llama",), **left}


def test_an_engine_whose_requests_cannot_leave_is_asked_for_the_rest(folder):
    module(folder, (ENGINE + DECODER.format(name="Llama")).replace("run = cancel = ", "run = "))
    left = {"logits": ("untold",), "models": ("llama",), "cancelling": (False,)}
    assert narrowed(load("mine"), "Engine") == left


@pytest.mark.parametrize(
    ("parameter", "left"), [(", priority=0", {"priorities": (False,)}), (", eos=()", {"stops": (False,)})]
)
def test_a_parameter_that_a_method_does_not_take_narrows_the_envelope(folder, parameter, left):
    module(folder, (ENGINE + DECODER.format(name="Llama")).replace(parameter, ""))
    assert narrowed(load("mine"), "Engine") == {"logits": ("untold",), "models": ("llama",), **left}


def test_an_object_that_has_one_of_two_ways_needs_no_option_to_say_so(folder):
    manager = """
        class BlockManager:
            def __init__(self, num_blocks, block_size): self.num_free = num_blocks
            def allocate(self, tokens): ...
            def append(self, table, tokens): ...
            mark_computed, free = append, allocate
        """
    story = {"num_blocks": 3, "block_size": 2, "prefix_caching": False, "colliding": False, "steps": ()}
    module(folder, textwrap.dedent(manager) + 'ENVELOPE = {"block_manager": {"prefix_caching": [False]}}\n')
    assert narrowed(load("mine"), "BlockManager") == {}
    assert called(load("mine"), "BlockManager", **story) is None


def test_an_object_without_any_of_what_it_can_be_made_of_is_told(folder):
    module(folder, ENGINE)
    adapter = load("mine")
    assert "Engine" not in adapter.targets
    assert adapter.broken["Engine"] == "it takes Qwen3 or Llama beside it"


# Where it is looked for


@pytest.mark.parametrize("spec", ["mine", "./mine.py", "mine:OBJECT", "mine:Class", "./mine.py:OBJECT", "package.deep"])
def test_a_subject_is_a_module_a_file_or_an_object_in_one(folder, spec):
    text = ROPE + "class Class:\n    rope = staticmethod(rope)\nOBJECT = Class()\n"
    module(folder, text)
    module(folder, text, "package/deep.py")
    assert list(load(spec).targets) == ["RoPE"]


@pytest.mark.parametrize("spec", ["./package", "./package/", "package"])
def test_a_package_offers_what_its_modules_of_the_components_names_offer(folder, spec):
    module(folder, "", "package/__init__.py")
    module(folder, ROPE, "package/rope.py")
    module(folder, "import mlx.core\ndef rms_norm(x, weight): return x", "package/rms_norm.py")
    found = load(spec)
    assert list(found.targets) == ["RoPE", "RMSNorm"]
    assert found.kind.name == "mlx"


def test_a_registered_name_is_a_subject():
    assert registered()["impl"] == "inferspec.impl"
    found = load("impl")
    assert found.origin.endswith("impl/__init__.py")
    assert "RoPE" in found.targets


@pytest.mark.parametrize("local", ["impl.py", "impl/rope.py", "impl/__init__.py"])
def test_a_registered_name_that_is_also_here_is_refused(folder, local):
    module(folder, ROPE, local)
    module(folder, ROPE, str(Path(local).with_name("rope.py")))
    assert refused("impl").endswith(f"say ./{'impl.py' if local == 'impl.py' else 'impl'} or inferspec.impl")
    assert "RoPE" in HostedSubject(f"./{local.split('/')[0]}").description.offers


def test_a_folder_without_code_does_not_shadow_a_registered_name(folder):
    module(folder, "notes", "impl/readme.txt")
    assert load("impl").name == "inferspec.impl"


def test_a_file_with_the_name_of_a_loaded_module_is_not_mistaken_for_it(folder):
    module(folder, ROPE, "random.py")
    assert "rename random.py" in refused("./random.py")


def test_a_file_with_the_name_of_a_module_that_the_host_needs_does_no_harm(folder):
    module(folder, ROPE)
    module(folder, "raise SystemExit('the wrong module')", "tempfile.py")
    session = opened("./mine.py")
    session.close()
    assert not session.smoke


# What is said of one that cannot be used


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("nowhere", "no module 'nowhere' can be imported from here; give a dotted module, a path such as ./kernels.py"),
        ("./nowhere.py", "there is no file or package nowhere.py"),
        ("mine:nothing", "has no 'nothing'"),
        ("mine.nothing", "importing it failed with ModuleNotFoundError"),
        ("inferspec.spec.rope", "inferspec.spec.rope is a part of what judges; it certifies nothing"),
        ("inferspec.spec.rope:RoPE", "is a part of what judges"),
    ],
)
def test_a_subject_that_is_not_there_is_one_line(folder, spec, says):
    module(folder, ROPE)
    assert says in refused(spec)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import nowhere", "importing it failed with ModuleNotFoundError: No module named 'nowhere'"),
        ("1 / 0", "importing it failed with ZeroDivisionError"),
        ("def rope(:", "importing it failed with SyntaxError"),
        ("raise SystemExit(2)", "importing it failed with SystemExit"),
        ("def roper(x): return x", "offers none of the contract's names; define any of: linear, silu"),
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
            "def silu(*args, **kwargs): return (lambda y: y)(*args, **kwargs)",
            "silu cannot be called as the contract does",
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
    where = ("--pyargs", "inferspec.conformance.test_linear", "-k", "silu_is_x")
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


# How its parameters are matched


@pytest.mark.parametrize(
    "text",
    [
        "def linear(x, weight, bias=None): return x @ weight.T if bias is None else x @ weight.T + bias",
        "def linear(x, weight, *, bias=None): return x @ weight.T if bias is None else x @ weight.T + bias",
        "def linear(weight, x, bias=None): return x @ weight.T if bias is None else x @ weight.T + bias",
        "def linear(input, w, bias=None): return input @ w.T if bias is None else input @ w.T + bias",
        "def linear(weights, inputs, bias=None): return inputs @ weights.T if bias is None else inputs @ weights.T + bias",
        "def linear(input, w, /, bias=None): return input @ w.T if bias is None else input @ w.T + bias",
        "def linear(weight, x, bias=None, /): return x @ weight.T if bias is None else x @ weight.T + bias",
        "def linear(*, x, weight, bias=None): return x @ weight.T if bias is None else x @ weight.T + bias",
        "def linear(x, weight, **more): return x @ weight.T + more.get('bias', 0)",
        "def linear(x, *rest, bias=0): return x @ rest[0].T + bias",
        "def linear(x, weight, bias=0, fast=False, **more): return x @ weight.T + bias",
    ],
)
def test_parameters_are_matched_by_name_and_the_other_required_ones_in_order(folder, text):
    module(folder, text)
    found = load("mine")
    bias = np.arange(3, dtype=np.float32)
    assert called(found, "linear", x=ONES, weight=np.ones((3, 4), np.float32)).tolist() == [[4, 4, 4]] * 2
    assert called(found, "linear", x=ONES, weight=np.ones((3, 4), np.float32), bias=bias).tolist() == [[4, 5, 6]] * 2
    assert narrowed(found, "linear") == {}


@pytest.mark.parametrize(
    ("text", "operation", "given", "told"),
    [
        ("def rms_norm(x, weight, eps): return x + eps", "RMSNorm", {"weight": ONES[0]}, 1 + 1e-5),
        ("def linear(x, weight, bias): return x if bias is None else 0", "linear", {"weight": ONES}, 1),
        ("def linear(x, weight, bias, /): return x if bias is None else 0", "linear", {"weight": ONES}, 1),
        ("def softmax(x, axis): return x + axis", "softmax", {}, 0),
        ("def rope(x, offset, base): return x + offset + base", "RoPE", {}, 10001),
        (
            "class RoPE:\n    def __init__(s, dims, positions, base, traditional): s.base = base\n"
            "    def __call__(s, x, offset): return x + s.base + offset",
            "RoPE",
            {"dims": 4, "max_positions": 9},
            10001,
        ),
    ],
)
def test_a_parameter_on_which_a_function_insists_is_given_the_contracts_default(folder, text, operation, given, told):
    module(folder, text)
    assert called(load("mine"), operation, x=ONES, **given).max() == np.float32(told)


def test_a_scheduler_whose_requests_cannot_leave_is_asked_for_the_rest(folder):
    module(
        folder,
        "class Scheduler:\n  def __init__(self, block_manager, most, budget): ...\n  add = schedule = update = print",
    )
    assert narrowed(load("mine"), "Scheduler") == {"cancelling": (False,)}


def test_a_scale_on_which_a_function_insists_narrows_the_envelope(folder):
    module(folder, "def scaled_dot_product_attention(query, key, value, scale, mask): return query * scale")
    target = load("mine").targets["scaled_dot_product_attention"]
    assert target.narrowed == {"scales": ("given",)}
    assert target.filled == {"mask": None}


@pytest.mark.parametrize(
    "text",
    [
        "def rms_norm(x, weight, eps=1e-5): return x * weight + eps",
        "def rms_norm(x, w, eps=1e-5): return x * w + eps",
        "def rms_norm(x, w, eps=1e-5, weight_offset=0.0): return x * (w + weight_offset) + eps",
        "def rms_norm(hidden_states, w, /, eps=1e-5): return hidden_states * w + eps",
        "class RMSNorm:\n    def __init__(s, weight, eps=1e-5): s.w, s.eps = weight, eps\n    def __call__(s, x): return x * s.w + s.eps",
        "class RMSNorm:\n    def __init__(s, w, eps): s.w, s.eps = w, eps\n    def __call__(s, h): return h * s.w + s.eps",
        "class RMSNorm:\n    def __init__(s, d, w, eps=0): s.w, s.eps = w[:d], eps\n    def __call__(s, x): return x * s.w + s.eps",
        "class RMSNorm:\n    def __init__(s, dim, weight, eps=0): s.w, s.eps = weight[:dim], eps\n    def __call__(s, x, /): return x * s.w + s.eps",
        "class RMSNorm:\n    def __init__(s, **c): s.c = c\n    def __call__(s, *x): return x[0] * s.c['weight'] + s.c['eps']",
        "class M:\n    def __call__(s, *a, **k): return s.forward(*a, **k)\n"
        "class RMSNorm(M):\n    def __init__(s, w, eps=0): s.w, s.eps = w, eps\n    def forward(s, hidden): return hidden * s.w + s.eps",
        "def RMSNorm(w, eps): return lambda x: x * w + eps",
    ],
)
def test_a_class_a_factory_and_a_plain_function_are_all_a_norm(folder, text):
    module(folder, text)
    arguments = {"dims": 4, "weight": 3 * np.ones(4, np.float32), "eps": 1.0, "x": ONES}
    assert called(load("mine"), "RMSNorm", **arguments).tolist() == [[4] * 4] * 2


def test_what_other_arguments_tell_is_not_put_where_another_name_stands(folder):
    module(folder, "def rope(x, offset=None, theta=10000): return x + theta")
    assert called(load("mine"), "RoPE", x=ONES, dims=4, max_positions=9, base=10000).max() == 10001


def test_a_parameter_that_is_left_out_narrows_the_envelope(folder):
    module(folder, "def rope(x, offset=None): return x")
    left = envelope_of(contract("rope"), {}, narrowed(load("mine"), "RoPE"))
    assert (left["bases"], left["forms"], left["partial"]) == ((10000,), ("split-half",), (False,))
    assert len(left["offsets"]) > 1


@pytest.mark.parametrize(
    ("declared", "left"),
    [
        ("", ("int32", "int64")),
        ("ENVELOPE = {'embedding': {'token_dtypes': ['int64', 'uint32']}}", ("int64", "uint32")),
    ],
)
def test_ids_are_of_dtypes_that_the_library_indexes_by_unless_others_are_declared(folder, declared, left):
    pytest.importorskip("torch")
    module(folder, f"import torch\ndef embedding(tokens, weight): return weight[tokens]\n{declared}")
    adapter = load("mine")
    found = envelope_of(contract("embedding"), adapter.envelope.get("embedding", {}), narrowed(adapter, "Embedding"))
    assert tuple(found["token_dtypes"]) == left


@pytest.mark.parametrize(
    ("signature", "declared", "left"),
    [
        ("logits, uniform=None", "", ("given",)),
        ("logits, uniform=None", "ENVELOPE = {'sampling': {'generators': ['given', 'own']}}", ("given", "own")),
        ("logits", "", ("own",)),
    ],
)
def test_a_generator_of_its_own_is_asked_for_where_there_is_no_other_or_it_is_declared(
    folder, signature, declared, left
):
    text = f"class Sampler:\n    def __init__(self, temperature=0): pass\n    def __call__(self, {signature}): return logits"
    module(folder, f"{text}\nARRAYS = 'numpy'\n{declared}")
    adapter = load("mine")
    found = envelope_of(contract("sampling"), adapter.envelope.get("sampling", {}), narrowed(adapter, "Sampler"))
    assert tuple(found["generators"]) == left


def test_of_what_two_missing_parameters_leave_only_what_both_leave_is_asked(folder):
    module(folder, "def speculative_generate(target, draft, tokens, max_tokens, num_draft_tokens=4): return iter(())")
    assert narrowed(load("mine"), "speculative_generate")["filters"] == ("none",)


def test_the_only_form_that_a_rotation_has_needs_no_parameter_that_says_so(folder):
    module(
        folder,
        """
        import numpy as np
        ENVELOPE = {"rope": {"forms": ["traditional"], "bases": [500000]}}
        class RoPE:
            def __init__(self, dims, max_positions):
                self.dims, angles = dims, np.outer(np.arange(max_positions), 5e5 ** (-np.arange(0, dims, 2) / dims))
                self.turns = np.exp(1j * angles)[:, None]
            def __call__(self, x, offset=None):
                start = offset or 0
                pairs = (x[..., 0::2] + 1j * x[..., 1::2]) * self.turns[start : start + x.shape[1]]
                return np.stack([pairs.real, pairs.imag], -1).reshape(x.shape).astype(x.dtype)
        """,
    )
    adapter = load("mine")
    left = envelope_of(contract("rope"), adapter.envelope["rope"], narrowed(adapter, "RoPE"))
    assert (left["forms"], left["bases"]) == (("traditional",), (500000,))
    x = np.ones((1, 2, 1, 4), np.float32)
    given = {"dims": 4, "max_positions": 9, "base": 500000, "traditional": True}
    assert is_right(called(adapter, "RoPE", **given, x=x, offset=5), RoPE(), **given, x=x, offset=5)


def test_the_only_eps_of_a_norm_needs_no_parameter_that_says_so(folder):
    only = (1e-12,)
    module(folder, f'ENVELOPE = {{"rms_norm": {{"eps": {only}}}}}\ndef rms_norm(x, weight): return x')
    adapter = load("mine")
    left = envelope_of(contract("rms_norm"), adapter.envelope["rms_norm"], narrowed(adapter, "RMSNorm"))
    assert left["eps"] == only


def test_of_two_forms_the_one_that_needs_a_parameter_is_left_out_where_there_is_none(folder):
    module(folder, 'ENVELOPE = {"rope": {"forms": ["split-half", "traditional"]}}\ndef rope(x): return x')
    adapter = load("mine")
    left = envelope_of(contract("rope"), adapter.envelope["rope"], narrowed(adapter, "RoPE"))
    assert left["forms"] == ("split-half",)


LAYERS = """
import mlx.core as mx
import mlx.nn as nn
from mlx.nn import {names}
"""


def test_what_a_layer_keeps_and_its_constructor_does_not_take_is_put_there(folder):
    module(folder, LAYERS.format(names="Embedding, RMSNorm"))
    adapter = load("mine")
    assert set(adapter.targets) == {"Embedding", "Embedding.as_linear", "RMSNorm"}
    weight, x = np.array([2, 0.5, -1, 3], np.float32), np.arange(8, dtype=np.float32).reshape(2, 4)
    norm = {"dims": 4, "weight": weight, "eps": 1e-3, "x": x}
    assert is_right(called(adapter, "RMSNorm", **norm), RMSNorm(), **norm)
    table = {"vocab_size": 2, "dims": 4, "weight": x}
    np.testing.assert_array_equal(
        called(adapter, "Embedding", **table, tokens=np.array([1, 0, 1], np.int32)), x[[1, 0, 1]]
    )
    np.testing.assert_array_equal(called(adapter, "Embedding.as_linear", **table, x=x[:1]), x[:1] @ x.T)


@pytest.mark.parametrize("library", ["torch", "mlx"])
def test_a_layer_that_is_filled_once_it_is_made_is_of_the_dtype_of_its_weight(folder, library):
    if library == "torch":
        pytest.importorskip("torch")
    module(folder, f"from {library}.nn import RMSNorm")
    x = np.ones((2, 4), ml_dtypes.bfloat16)
    got = called(load("mine", kind_of_arrays=library), "RMSNorm", dims=4, weight=x[0], eps=1e-5, x=x)
    assert got.dtype == x.dtype


def test_a_layer_is_given_the_defaults_of_the_contract(folder):
    pytest.importorskip("torch")
    module(folder, "from torch.nn import RMSNorm")
    norm = {"dims": 4, "weight": ONES[0], "x": np.full((1, 4), 1e-3, np.float32)}
    assert is_right(called(load("mine"), "RMSNorm", **norm), RMSNorm(), **norm)


def test_a_weight_of_another_shape_is_not_put_into_a_layer(folder):
    module(folder, LAYERS.format(names="RMSNorm"))
    seen = Executor(load("mine").targets).call(
        "RMSNorm", {"dims": 4, "weight": ONES, "eps": 1e-5, "x": ONES}, {}, None, (), False
    )
    assert seen.raised == "ValueError"


def test_what_is_imported_for_a_module_s_own_use_may_have_another_name(folder):
    module(folder, "class KVCache: ...", "other.py")
    module(folder, "from other import KVCache")
    line = refused("mine")
    assert line.endswith("import it by another name: from other import KVCache as _KVCache")
    module(folder, "class KVCache: ...")
    del sys.modules["mine"]
    assert "imported" not in refused("mine")


def test_a_layer_that_has_no_weight_is_refused(folder):
    module(folder, "class RMSNorm:\n  def __init__(self, dim, eps=1e-6): ...\n  def __call__(self, x): return x\n")
    assert "RMSNorm neither takes weight nor has weight or scale or gamma or g" in refused("mine", opened)


def test_weights_are_not_given_for_sizes(folder):
    module(folder, LAYERS.format(names="MultiHeadAttention"))
    line = refused("mine")
    assert "does not take wq, wk, wv, wo" in line
    assert "filled once they are made" in line


@pytest.mark.parametrize(
    "parameters", ["w, eps=1e-5", "dims, w=None, eps=1e-5", "gamma, eps", "dims, gain, eps", "weight"]
)
def test_a_constructor_that_takes_a_weight_by_another_name_is_given_it(folder, parameters):
    module(folder, f"class RMSNorm:\n  def __init__(self, {parameters}): ...\n  def __call__(self, x): ...\n")
    target = load("mine").targets["RMSNorm"]
    assert target.init_names["weight"] in ("w", "gamma", "gain", "weight")
    assert not target.loaded


@pytest.mark.parametrize(
    "parameters", ["vocab_size, dims, vocab_table", "vocab_matrix", "vocabulary: np.ndarray", "n, d, size: 'mx.array'"]
)
def test_a_table_whose_name_speaks_of_sizes_is_no_size(folder, parameters):
    module(
        folder,
        f"import numpy as np\nclass Embedding:\n  def __init__(self, {parameters}): ...\n  def __call__(self, tokens): ...\n",
    )
    target = load("mine").targets["Embedding"]
    assert target.init_names["weight"] == parameters.partition(":")[0].split(", ")[-1]
    assert not target.loaded


@pytest.mark.parametrize("place", ["None", "types.SimpleNamespace(weight=np.zeros(4, np.float32))"])
def test_a_layer_s_weight_may_be_unset_or_that_of_a_layer_inside(folder, place):
    module(
        folder,
        f"""
        import types
        import numpy as np
        class RMSNorm:
            def __init__(self, dims, eps): self.weight = {place}
            def __call__(self, x): return getattr(self.weight, "weight", self.weight) * x
        """,
    )
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_array_equal(called(load("mine"), "RMSNorm", dims=4, weight=x[0], eps=1e-5, x=x), x[0] * x)


def test_a_positional_parameter_that_cannot_be_reached_narrows_the_envelope(folder):
    module(folder, "def linear(x, weight, fast=False, bias=None, /): return x @ weight.T")
    assert narrowed(load("mine"), "linear") == {"bias": (False,)}


def test_a_constructor_may_take_its_parameters_by_position_alone(folder):
    module(
        folder,
        """
        class RoPE:
            def __init__(self, dims, max_positions, base=10000, traditional=False, /):
                self.told = dims * 1000 + base + traditional
            def __call__(self, x, offset=None, /):
                return x + self.told
        """,
    )
    told = {"x": ONES, "dims": 4, "max_positions": 9, "traditional": True}
    assert called(load("mine"), "RoPE", **told).max() == 4000 + 10000 + 1 + 1


def test_a_generator_may_insist_on_all_its_options(folder):
    module(
        folder,
        """
        from inferspec.impl import generation
        ARRAYS = "mlx"
        def generate(model, tokens, *, max_tokens, eos, sampler, cache):
            return generation.generate(model, tokens, max_tokens=max_tokens, eos=eos, sampler=sampler, cache=cache)
        """,
    )
    session = opened("mine")
    try:
        test = next(test for test in all_tests() if test.requirement.id == "GEN-01")
        assert session.run(test).state == "passed"
    finally:
        session.close()


def test_functions_and_classes_may_take_their_parameters_by_name_alone(folder):
    module(
        folder,
        """
        from inferspec.impl import block_manager, generation, kv_cache, scheduler, speculative
        ARRAYS = "mlx"

        class StaticKVCache(kv_cache.StaticKVCache):
            def __init__(self, *, max_len): super().__init__(max_len)
        class BlockManager(block_manager.BlockManager):
            def __init__(self, *, num_blocks, block_size, prefix_caching=True):
                super().__init__(num_blocks, block_size, prefix_caching)
        class Scheduler(scheduler.Scheduler):
            def __init__(self, block_manager, *, max_requests, max_prefill_tokens):
                super().__init__(block_manager, max_requests, max_prefill_tokens)
        def verify(*, draft_tokens, draft_probs, target_probs, uniform):
            return speculative.verify(draft_tokens, draft_probs, target_probs, uniform)
        def generate(*, model, tokens, max_tokens, eos=(), sampler=None, cache=True):
            return generation.generate(model, tokens, max_tokens=max_tokens, eos=eos, sampler=sampler, cache=cache)
        """,
    )
    session = Session.opened("mine", {}, "standard", 0, limit=20.0)
    try:
        wanted = {"SKV-01", "BLK-01", "SCHED-01", "SPEC-01", "GEN-01"}
        first = {test.requirement.id: test for test in all_tests() if test.requirement.id in wanted}
        assert {id: session.run(test).state for id, test in first.items()} == dict.fromkeys(wanted, "passed")
    finally:
        session.close()


def test_methods_may_take_their_parameters_by_name_alone(folder):
    module(
        folder,
        """
        from inferspec.impl import batching, block_manager, generation, kv_cache, llama, paged_kv, scheduler
        ARRAYS = "mlx"

        class KVCache(kv_cache.KVCache):
            def update_and_fetch(self, *own, key=None, value=None): return super().update_and_fetch(*own or (key, value))
            def rewind(self, *, n): super().rewind(n)
            def restore(self, *, state): super().restore(state)
        class BatchingKVCache(batching.BatchingKVCache):
            def make_cache(self): return KVCache()
            def add(self, cache, *, slot): return super().add(cache, slot)
            def update_and_fetch(self, key, value, *, mask_length):
                return super().update_and_fetch(key, value, mask_length)
        class PagePool(paged_kv.PagePool):
            def free(self, *own, page=None): super().free(*own or (page,))
        class PagedKVCache(paged_kv.PagedKVCache):
            def __init__(self, *, pool): super().__init__(pool)
            def append(self, *, key, value): return super().append(key, value)
            def rewind(self, *own, n=None): super().rewind(*own or (n,))
        def block_table(*, caches): return paged_kv.block_table(caches)
        class BlockManager(block_manager.BlockManager):
            def allocate(self, *, tokens): return super().allocate(tokens)
            def append(self, table, *, tokens): return super().append(table, tokens)
            def mark_computed(self, table, *, n): return super().mark_computed(table, n)
            def free(self, **given): return super().free(**given)
        class Scheduler:
            def __init__(self, block_manager, max_requests, max_prefill_tokens):
                self._own = scheduler.Scheduler(own_blocks(block_manager), max_requests, max_prefill_tokens)
            def add(self, *, request): self._own.add(request)
            def schedule(self): return self._own.schedule()
            def update(self, *, step, tokens): return self._own.update(step, tokens)
            def cancel(self, *, request): self._own.cancel(request)
        class StreamingDetokenizer(generation.StreamingDetokenizer):
            def __init__(self, *, pieces): super().__init__(pieces)
            def add(self, *, token): return super().add(token)
        class Llama(llama.Llama):
            def __call__(self, *, tokens, cache=None): return super().__call__(tokens, cache)

        def own_blocks(manager):
            return block_manager.BlockManager(manager.num_blocks, manager.block_size, manager.prefix_caching)
        """,
    )
    session = Session.opened("mine", {}, "standard", 0, limit=20.0)
    try:
        wanted = {"KV-01", "KV-12", "KV-20", "BATCH-01", "BATCH-32", "POOL-03", "PKV-01", "PKV-12", "TABLE-01"}
        wanted |= {"BLK-02", "BLK-09", "SCHED-01", "SCHED-30", "TEXT-07", "LLAMA-24"}
        first = {test.requirement.id: test for test in all_tests() if test.requirement.id in wanted}
        assert {id: session.run(test).state for id, test in first.items()} == dict.fromkeys(wanted, "passed")
    finally:
        session.close()


def test_a_block_manager_may_take_its_parameters_by_position_alone(folder):
    module(
        folder,
        """
        from inferspec.impl import block_manager

        class BlockManager(block_manager.BlockManager):
            def __init__(self, num_blocks, block_size, prefix_caching=True, /):
                super().__init__(num_blocks, block_size, prefix_caching)
        """,
    )
    session = Session.opened("mine", {}, "standard", 0, limit=20.0)
    try:
        uncached = next(test for test in all_tests() if test.requirement.id == "BLK-29")
        assert session.run(uncached).state == "passed"
    finally:
        session.close()


NONE_WHERE_FULL = """
from inferspec.impl import block_manager

class BlockManager(block_manager.BlockManager):
    def allocate(self, tokens):
        try: return super().allocate(tokens)
        except ValueError: {changes}; return None
    def append(self, table, tokens):
        try: super().append(table, tokens)
        except ValueError as error:
            if "free" not in str(error): raise
            return False
"""


@pytest.mark.parametrize(("changes", "state"), [("pass", "passed"), ("super().allocate([1])", "failed")])
def test_a_block_manager_may_give_none_where_there_is_no_room_and_change_nothing(folder, changes, state):
    module(folder, NONE_WHERE_FULL.format(changes=changes))
    wanted = {"BLK-19": "passed", "BLK-21": "passed", "BLK-22": state}
    session = Session.opened("mine", {}, "quick", 0, limit=20.0)
    try:
        tests = [test for test in all_tests() if test.requirement.id in wanted]
        found = {test.requirement.id: session.run(test).state for test in tests}
        assert found == wanted
    finally:
        session.close()


def test_a_block_manager_whose_methods_give_none_is_no_manager(folder):
    manager = "class BlockManager:\n    num_free = 99\n    def __init__(self, num_blocks, block_size): ...\n"
    methods = "".join(
        f"    def {name}(self, *given): ...\n" for name in ("allocate", "append", "mark_computed", "free")
    )
    module(folder, "ARRAYS = 'numpy'\n" + manager + methods)
    assert "BlockManager lacks what the contract reads ('NoneType' object has no attribute" in refused(
        "./mine.py", opened
    )


def test_the_sequence_of_block_ids_may_have_no_more_than_items(folder):
    module(
        folder,
        """
        from inferspec.impl import block_manager

        class Table:
            def __init__(self, own): self.own = own
            def __getitem__(self, i): return self.own.block_ids[i]
            @property
            def num_cached_tokens(self): return self.own.num_cached_tokens

        class BlockManager(block_manager.BlockManager):
            def allocate(self, tokens): return Table(super().allocate(tokens))
            def append(self, table, tokens): super().append(table.own, tokens)
            def mark_computed(self, table, n): super().mark_computed(table.own, n)
            def free(self, table): super().free(table.own)
        """,
    )
    session = Session.opened("mine", {}, "quick", 0, limit=20.0)
    try:
        first = next(test for test in all_tests() if test.requirement.id == "BLK-01")
        assert session.run(first).state == "passed"
    finally:
        session.close()


SORTED = """
import numpy as np

class Sampler:
    def __init__(self, temperature=0, top_k=None, top_p=1.0): self._given = temperature, top_k, top_p
    def __call__(self, logits, uniform):
        temperature, top_k, top_p = self._given
        order = np.argsort(-logits.astype(np.float64), axis=-1, kind="stable")
        if not temperature:
            return order[..., 0].astype(np.int32)
        x = np.take_along_axis(logits.astype(np.float64), order, -1) / temperature
        weights = np.exp(x - x[..., :1])
        weights[..., logits.shape[-1] if top_k in (None, 0, -1) else top_k :] = 0
        before = np.cumsum(weights, -1) - weights
        weights[(before >= top_p * weights.sum(-1, keepdims=True)) & (top_p < 1)] = 0
        cdf = np.cumsum(weights{along}, -1)
        place = (cdf <= uniform[..., None].astype(np.float64) * cdf[..., -1:]).sum(-1, keepdims=True)
        return np.take_along_axis(order{along}, place, -1)[..., 0].astype(np.int32)
"""
BY_ORDER = "ENVELOPE = {'sampling': {'draws_by': ['order']}}"


@pytest.mark.parametrize(
    ("along", "declared", "state"),
    [("", BY_ORDER, "passed"), ("", "", "failed"), ("[..., ::-1]", BY_ORDER, "failed")],
)
def test_a_sampler_that_has_sorted_the_ids_may_draw_from_them_as_they_stand(folder, along, declared, state):
    module(folder, SORTED.format(along=along) + declared)
    session = Session.opened("mine", {}, "quick", 0, limit=20.0)
    try:
        wanted = {"SAMP-22": state, "SAMP-24": state, "SAMP-21": "passed"}
        first = {
            test.requirement.id: test
            for test in reversed(all_tests())
            if test.requirement.id in wanted and test.file == "test_sampling.py"
        }
        outcomes = {id: session.run(test) for id, test in first.items()}
        assert {id: outcome.state for id, outcome in outcomes.items()} == wanted
        assert (BY_ORDER in outcomes["SAMP-22"].message) == (not declared)
    finally:
        session.close()


OWN_CACHES = """
from inferspec.impl import batching, kv_cache
ARRAYS = "mlx"

class Cache(kv_cache.KVCache): ...
class BatchingKVCache:
    def __init__(self, max_requests, max_len): self._own = batching.BatchingKVCache(max_requests, max_len)
    def add(self, cache, slot): self._own.add(cache{reads}, slot)
    def remove(self, slot): self._own.remove(slot)
    def update_and_fetch(self, key, value, mask_length): return self._own.update_and_fetch(key, value, mask_length)
"""
READS = " if isinstance(cache, Cache) else cache.pages"


@pytest.mark.parametrize(
    ("reads", "beside", "state"),
    [
        (READS, "KVCache = Cache", "passed"),
        (READS, "", "failed"),
        # What others do with caches of any kind does not depend on their own.
        ("", "class KVCache(Cache):\n    def update_and_fetch(self, key, value): raise MemoryError", "passed"),
    ],
)
def test_a_batch_that_takes_nothing_but_the_subject_s_own_caches_is_given_those(folder, reads, beside, state):
    module(folder, OWN_CACHES.format(reads=reads) + beside)
    session = Session.opened("mine", {}, "quick", 0, limit=20.0)
    try:
        wanted = {"BATCH-01", "BATCH-32"}
        first = {test.requirement.id: session.run(test) for test in all_tests() if test.requirement.id in wanted}
        assert {id: outcome.state for id, outcome in first.items()} == dict.fromkeys(wanted, state)
        assert state == "passed" or "make_cache" in first["BATCH-32"].message
    finally:
        session.close()


def test_a_table_may_be_the_sequence_of_its_blocks(folder):
    module(
        folder,
        """
        from collections.abc import Sequence
        from inferspec.impl import block_manager

        class Table(Sequence):
            def __init__(self, own): self._own = own
            def __getitem__(self, place): return self._own.block_ids[place]
            def __len__(self): return len(self._own.block_ids)
            @property
            def num_cached_tokens(self): return self._own.num_cached_tokens
        class BlockManager(block_manager.BlockManager):
            def allocate(self, tokens): return Table(super().allocate(tokens))
            def append(self, table, tokens): super().append(table._own, tokens)
            def mark_computed(self, table, n): super().mark_computed(table._own, n)
            def free(self, table): super().free(table._own)
        """,
    )
    session = Session.opened("mine", {}, "quick", 0, limit=20.0)
    try:
        wanted = {"BLK-01", "BLK-02", "BLK-09"}
        first = {test.requirement.id: test for test in all_tests() if test.requirement.id in wanted}
        assert {id: session.run(test).state for id, test in first.items()} == dict.fromkeys(wanted, "passed")
    finally:
        session.close()


def test_what_a_function_makes_without_arguments_shows_how_it_is_called(folder):
    module(
        folder,
        """
        from functools import partial

        def draw(temperature, logits, u): ...
        def Sampler(temperature=0): return partial(draw, temperature)
        """,
    )
    target = load("mine").targets["Sampler"]
    assert (target.call_names, target.narrowed["generators"]) == ({"logits": "logits", "uniform": "u"}, ("given",))


def test_streams_of_a_detokenizer_are_all_made_by_what_is_offered(folder):
    module(
        folder,
        """
        from inferspec.impl import generation

        class Stream(generation.StreamingDetokenizer):
            def __init__(self, pieces, errors): super().__init__(pieces)

        def StreamingDetokenizer(pieces):
            return Stream(pieces, "replace")
        """,
    )
    session = Session.opened("mine", {}, "standard", 0, limit=20.0)
    try:
        turns = next(test for test in all_tests() if test.requirement.id == "TEXT-07")
        assert session.run(turns).state == "passed"
    finally:
        session.close()


def test_a_method_that_a_decorator_wraps_is_called_as_the_decorator_takes_it(folder):
    module(
        folder,
        """
        import functools

        def locked(method):
            @functools.wraps(method)
            def wrapper(self, *given, **named): return method(self, "lock", *given, **named)
            return wrapper

        class Scheduler:
            def __init__(self, block_manager, max_requests, max_prefill_tokens): ...
            @locked
            def add(self, lock, request): ...
            @locked
            def schedule(self, lock): ...
            @locked
            def update(self, lock, step, tokens): ...
        """,
    )
    assert "Scheduler" in load("mine").targets


def test_an_object_may_put_another_method_in_the_place_of_one():
    class Lamp:
        def press(self, *, times):
            self.press = lambda *, times: f"off {times}"
            return f"on {times}"

    lamp = Handed(Lamp(), {"press": ("times",)})
    assert [lamp.press(1), lamp.press(2), lamp.press(3)] == ["on 1", "off 2", "off 3"]


def test_what_is_not_implemented_is_refused(folder):
    module(
        folder,
        """
        from inferspec.impl.llama import Llama as Own
        ARRAYS = "mlx"

        class Llama(Own):
            def __init__(self, config, weights):
                for place in ("rope_scaling", "rope_parameters"):
                    said = config.get(place) or {}
                    if (kind := said.get("rope_type") or said.get("type") or "default") != "default":
                        raise NotImplementedError(f"rope_type {kind}")
                super().__init__(config, weights)
        """,
    )
    session = opened("mine")
    try:
        tests = [test for test in all_tests() if test.requirement.id == "LLAMA-22"]
        assert {session.run(test).state for test in tests} == {"passed"}
    finally:
        session.close()


LOADERS = {
    "refuses": """
        if scaled(read(path)[0]):
            raise NotImplementedError("rope_scaling")
        return own(path)
    """,
    "passes over": """
        config, weights = read(path)
        return MODELS[config["model_type"]](plain(config), weights)
    """,
}
"""What a loader that knows no scaling of RoPE may do about one."""


@pytest.mark.parametrize(
    ("way", "declared", "state"),
    [
        ("refuses", "", "passed"),
        ("refuses", 'ENVELOPE = {"loading": {"rope_types": ["default", "linear", "llama3", "yarn"]}}', "overclaimed"),
        ("passes over", "", "failed"),
    ],
)
def test_a_loader_that_knows_no_scaling_of_rope_refuses_it(folder, way, declared, state):
    module(
        folder,
        f"""
        from inferspec.impl.loading import MODELS, load as own, read
        ARRAYS = "mlx"
        {declared}
        PLACES = "rope_scaling", "rope_parameters"
        NAMES = "rope_type", "type"

        def scaled(config):
            return any((config.get(place) or {{}}).get(name, "default") != "default" for place in PLACES for name in NAMES)

        def plain(config):
            parameters = {{"rope_theta": config["rope_parameters"]["rope_theta"]}} if "rope_parameters" in config else {{}}
            kept = {{key: x for key, x in config.items() if key not in PLACES}}
            return {{"rope_parameters": parameters, **kept}} if parameters else kept

        def load(path):
        {textwrap.indent(textwrap.dedent(LOADERS[way]), "            ")}
        """,
    )
    session = opened("mine")
    try:
        tests = [test for test in all_tests() if test.requirement.id == "LOAD-26"]
        assert {session.run(test).state for test in tests} == {state}
    finally:
        session.close()


def test_requirements_outside_the_envelope_are_not_failures(certify):
    run = certify(
        {"mine.py": "def rope(x): return x"},
        "--impl",
        "./mine.py",
        "-m",
        "requirement(id='ROPE-02') or requirement(id='ROPE-04')",
    )
    assert run.states("RoPE") == {"ROPE-02": "outside_envelope", "ROPE-04": "outside_envelope"}
    assert run.code == 0


LLAMA = """
class Llama:
    def __init__(self, config, weights): ...
    def __call__(self, tokens, cache=None): ...
    def make_cache(self): ...
"""


@pytest.mark.parametrize(
    ("declared", "left"),
    [
        ("", ("default",)),
        ('ENVELOPE = {"llama": {"tied": [True]}}', ("default",)),
        ('ENVELOPE = {"llama": {"rope_types": ["default", "llama3"]}}', ("default", "llama3")),
    ],
)
def test_scaled_rope_is_asked_of_who_declares_it(folder, declared, left):
    (folder / "mine.py").write_text(f"{LLAMA}\n{declared}\n")
    adapter = load("mine")
    for name in ("Llama", "Llama.incremental"):
        assert (
            envelope_of(contract("llama"), adapter.envelope.get("llama", {}), narrowed(adapter, name))["rope_types"]
            == left
        )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("import mlx.core as mx", "mlx"),
        ("from mlx.core import exp", "mlx"),
        ("import numpy as np\nimport torch", "torch"),
        ("from numpy import exp", "numpy"),
        ("import math", "numpy"),
        ("import mlx.core as mx\nARRAYS = 'numpy'", "numpy"),
        ("import torch\nfrom types import SimpleNamespace\nADAPTER = SimpleNamespace(rope=rope)", "torch"),
    ],
)
def test_the_kind_of_arrays_is_declared_or_read_off_the_imports(folder, text, kind):
    pytest.importorskip(kind)
    module(folder, ROPE + text)
    assert load("mine").kind.name == kind


# One part in the place of another


def test_a_component_of_another_file_takes_its_place(folder):
    module(
        folder,
        ROPE
        + "def rms_norm(x, weight): return x\nENVELOPE = {'rope': {'forms': ['traditional']}}\nPRECISION = {'rope': 'native'}",
    )
    module(folder, "def rope(x): return x + 1\nENVELOPE = {'rope': {'dtypes': ['float32']}}", "other.py")
    found = load("mine", {"rope": "./other.py"})
    assert called(found, "RoPE", x=ONES, dims=4).max() == 2
    assert (found.envelope, found.precision) == ({"rope": {"dtypes": ["float32"]}}, {})
    assert found.name == "mine with rope=./other.py"


@pytest.mark.parametrize("part", ["scaled_dot_product_attention", "attention"])
def test_a_function_of_any_name_takes_the_place_of_an_operation(folder, part):
    module(
        folder,
        "def scaled_dot_product_attention(query, key, value): return query\ndef causal_mask(L, S, dtype): return L",
    )
    module(folder, "def flash(q, k, v): return v\n", "other.py")
    found = load("mine", {part: "other:flash"})
    assert called(found, "scaled_dot_product_attention", query=ONES, key=ONES, value=2 * ONES).max() == 2
    assert ("causal_mask" in found.targets) == (part == "scaled_dot_product_attention")


def test_a_plain_function_of_any_name_takes_the_place_of_a_class(folder):
    module(folder, ROPE)
    module(
        folder,
        "def turn(x, offset=0): return x + 1\nclass Turn:\n    def __init__(s, d): pass\n    def __call__(s, x): return x + 2",
        "other.py",
    )
    for name, expected in {"turn": 2, "Turn": 3}.items():
        assert called(load("mine", {"rope": f"other:{name}"}), "RoPE", x=ONES, dims=4, offset=1).max() == expected


def test_an_embedding_of_any_name_stands_for_both_of_its_operations(folder):
    module(folder, ROPE)
    text = "class Table:\n    def __init__(s, weight): s.w = weight\n    def __call__(s, t): return s.w[t]\n    def as_linear(s, x): return x @ s.w.T"
    module(folder, text, "other.py")
    assert set(load("mine", {"Embedding": "other:Table"}).targets) == {"RoPE", "Embedding", "Embedding.as_linear"}


def test_a_part_of_a_component_keeps_what_the_other_declares(folder):
    module(
        folder,
        ROPE
        + "def silu(x): return x\nENVELOPE = {'linear': {'dtypes': ['float16']}}\nPRECISION = {'linear': 'native'}",
    )
    module(folder, "def silu(x): return x", "other.py")
    found = load("mine", {"silu": "other"})
    assert (found.envelope, found.precision) == ({"linear": {"dtypes": ["float16"]}}, {"linear": "native"})


@pytest.mark.parametrize(
    ("part", "says"),
    [
        ("ropes", "'ropes' is no component or name of the contract"),
        ("mlp", "it offers none of SwiGLU"),
        ("linear", "did not import"),
    ],
)
def test_a_part_that_cannot_be_replaced_is_one_line(folder, part, says):
    module(folder, ROPE, "mine.py")
    module(folder, "", "other/__init__.py")
    module(folder, "import nowhere", "other/linear.py")
    assert says in refused("mine", **{part: "other"})


LAID = """
import numpy as np
LAYOUT = {'rope': 'BHLD', 'flash_attention': 'BLHD'}
def rope(x, offset=None): return x * np.arange(x.shape[2])[:, None]
def flash_attention(query, key, value): return query + value
"""


def test_arrays_of_another_layout_are_turned_on_the_way_in_and_back_on_the_way_out(folder):
    module(folder, LAID)
    executor = Executor(load("mine").targets)
    x = np.arange(24.0).reshape(1, 3, 2, 4)  # B×L×H×D, as rope has it
    turned = executor.call("RoPE", {"dims": 4, "max_positions": 8, "x": x}, {}, None, (), False)
    assert (turned.value == x * np.arange(3)[:, None, None]).all()
    added = executor.call("flash_attention", {"query": x, "key": x, "value": x}, {"value": "heads"}, None, (), False)
    assert (added.value == 2 * x).all()
