"""How an adapter is found, read and called, and what is said of one that cannot be used."""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np
import pytest

from inferspec.conformance.bridge.adapter import load
from inferspec.conformance.bridge.executor import Executor
from inferspec.conformance.bridge.hosted_subject import HostedSubject
from inferspec.conformance.bridge.locate import registered
from inferspec.conformance.envelope import envelope_of
from inferspec.conformance.suite import all_tests
from inferspec.spec import contract
from inferspec.tools.adapter_files import BATCH, ONES, ROPE, called, module, narrowed, opened, refused


@pytest.mark.parametrize(
    "spec", ["mine", "./mine.py", "mine:OBJECT", "mine:Class", "mine:DICT", "./mine.py:OBJECT", "package.deep"]
)
def test_a_subject_is_a_module_a_file_or_an_object_in_one(folder, spec):
    text = ROPE + "class Class:\n    rope = staticmethod(rope)\nOBJECT = Class()\nDICT = {'rope': rope}\n"
    module(folder, text)
    module(folder, text, "package/deep.py")
    assert list(load(spec).targets) == ["RoPE"]


@pytest.mark.parametrize("spec", ["./package/deep/adapter.py", "package.deep.adapter"])
def test_a_file_of_a_package_may_import_from_beside_it(folder, spec):
    module(folder, "", "package/__init__.py")
    module(folder, "", "package/deep/__init__.py")
    module(folder, ROPE, "package/deep/rotary.py")
    module(folder, "from ..deep.rotary import rope", "package/deep/adapter.py")
    assert list(load(spec).targets) == ["RoPE"]


@pytest.mark.parametrize("spec", ["./package", "./package/", "package"])
def test_a_package_offers_what_its_modules_of_the_components_names_offer(folder, spec):
    module(folder, "", "package/__init__.py")
    module(folder, ROPE, "package/rope.py")
    module(folder, "import mlx.core\ndef rms_norm(x, weight): return x", "package/rms_norm.py")
    found = load(spec)
    assert list(found.targets) == ["RoPE", "RMSNorm"]
    assert found.kind.name == "mlx"


def test_what_is_imported_of_the_standard_library_is_not_offered(folder):
    module(folder, "from json import load\n" + ROPE)
    assert list(load("mine").targets) == ["RoPE"]


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


def test_the_folder_of_the_run_is_a_subject(folder, monkeypatch):
    module(folder, ROPE, "mine_too/rope.py")
    monkeypatch.chdir(folder / "mine_too")
    assert "RoPE" in HostedSubject(".").description.offers


def test_a_function_alone_is_told_where_it_goes(folder):
    module(folder, "def turned(x): return x", "one.py")
    assert "goes in the place of another subject's: --with NAME=./one.py:turned" in refused("./one.py:turned")


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
            "class Engine(Right):\n    def step(self): return dict(super().step())",
            "Engine cannot be used as the contract does: step gives a dict, which is no list of (id, token)",
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


# What it declares, and what is not asked of it then


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


def test_what_a_function_of_c_raises_costs_its_own_operation_alone(folder):
    module(folder, f"import numpy as np\n{ROPE}silu = np.bitwise_not")
    session = opened("mine")
    session.close()
    assert set(session.description.offers) == {"RoPE", "silu"}


@pytest.mark.parametrize("made", ["dict(rope=rope)", "OrderedDict(rope=rope)", "Offers(rope=rope)"])
def test_an_adapter_may_be_a_dict_of_what_it_offers(folder, made):
    offers = "from collections import OrderedDict\nclass Offers(dict): __getattr__ = dict.__getitem__\n"
    module(folder, f"{ROPE}{offers}ADAPTER = {made}")
    assert set(load("mine").targets) == {"RoPE"}


def test_what_an_object_does_not_declare_its_module_may(folder):
    module(
        folder,
        "class offered:\n    rope = staticmethod(lambda x: x)\n    ENVELOPE = {'rope': {'dtypes': ['float16']}}\n"
        "ENVELOPE, PRECISION, NAME, ARRAYS = {}, {'attention': 'native'}, 'ours', 'numpy'\nVERSION, LAYOUT = '2', {'rope': 'BHLD'}",
    )
    found = load("mine:offered")
    assert (found.name, found.version, found.kind.name) == ("ours", "2", "numpy")
    assert (found.envelope, found.precision) == ({"rope": {"dtypes": ["float16"]}}, {"attention": "native"})
    assert found.layout == {"rope": "BHLD"}


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


def test_a_function_goes_in_a_place_as_its_module_declares_it(folder):
    module(folder, ROPE)
    module(folder, "def turn(x): return x\nLAYOUT, PRECISION = {'rope': 'BHLD'}, {'rope': 'native'}", "other.py")
    found = load("mine", {"rope": "other:turn"})
    assert (found.layout, found.precision) == ({"rope": "BHLD"}, {"rope": "native"})


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


@pytest.mark.parametrize("name", ["bound", "deep.bound", "make", "make_by_position", "Turn.of"])
def test_what_makes_an_object_takes_the_place_of_a_class_too(folder, name):
    module(folder, ROPE)
    module(
        folder,
        """
        from functools import partial
        from types import SimpleNamespace

        class Turn:
            def __init__(self, more, width, base): self.told = more + width + base
            def __call__(self, x, offset=None): return x + self.told
            @classmethod
            def of(cls, dims, theta=10000): return cls(1, dims, theta)
        def make(dims, base=10000): return Turn(1, dims, base)
        def make_by_position(dims, base=10000, /): return Turn(1, dims, base)
        bound = partial(partial(Turn, 1))
        deep = SimpleNamespace(bound=bound)
        """,
        "other.py",
    )
    given = {"x": ONES, "dims": 4, "max_positions": 9, "base": 500}
    assert called(load("mine", {"rope": f"other:{name}"}), "RoPE", **given).max() == 1 + 1 + 4 + 500


def test_a_layer_of_mlx_takes_the_place_of_a_function(folder):
    module(folder, ROPE)
    module(
        folder,
        "import mlx.nn as nn\nclass Act(nn.Module):\n    def __call__(self, x): return x + 1\nact = Act()",
        "other.py",
    )
    assert called(load("mine", {"silu": "other:act"}), "silu", x=ONES).max() == 2


@pytest.mark.parametrize("name", ["Table", "bound"])
def test_an_embedding_of_any_name_stands_for_both_of_its_operations(folder, name):
    module(folder, ROPE)
    text = "class Table:\n    def __init__(s, weight): s.w = weight\n    def __call__(s, t): return s.w[t]\n    def as_linear(s, x): return x @ s.w.T"
    module(folder, f"{text}\nfrom functools import partial\nbound = partial(Table)", "other.py")
    assert set(load("mine", {"Embedding": f"other:{name}"}).targets) == {"RoPE", "Embedding", "Embedding.as_linear"}


MODEL_AND_ENGINE = """
class Llama:
    def __init__(self, config, weights): ...
    def __call__(self, tokens, cache=None): ...
    def make_cache(self): ...
class Engine:
    def __init__(self, model, num_pages=256, page_size=16, max_requests=8, max_prefill_tokens=512): ...
    def add_request(self, tokens, max_tokens): ...
    def step(self): ...
    def run(self): ...
    def output(self, request_id): ...
    def finished(self, request_id): ...
    has_unfinished = False
"""


@pytest.mark.parametrize(
    ("declared", "head_dims", "models"),
    [
        ({}, ("free", "multiple", "absent"), ("llama",)),
        ({"head_dims": ["absent"]}, ("absent",), ("llama",)),
        ({"dtypes": ["float16"]}, ("free", "multiple", "absent"), ()),
        ({"biases": ["qkv"], "head_dims": ["multiple"]}, ("multiple",), ()),
    ],
)
def test_an_engine_is_asked_for_models_that_its_llama_takes(folder, declared, head_dims, models):
    (folder / "mine.py").write_text(f"ENVELOPE = {{'llama': {declared}}}\n{MODEL_AND_ENGINE}")
    engine = load("./mine.py").targets["Engine"]
    claimed = envelope_of(contract("engine"), {}, engine.narrowed)
    assert (claimed["head_dims"], claimed["models"]) == (head_dims, models)


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
