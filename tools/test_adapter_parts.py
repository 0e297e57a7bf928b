"""May one part of an adapter stand in the place of another?"""

from __future__ import annotations

import numpy as np
import pytest

from inferspec.conformance.bridge.adapter import load
from inferspec.conformance.bridge.executor import Executor
from inferspec.conformance.envelope import envelope_of
from inferspec.spec import contract
from inferspec.tools.adapter_files import ONES, ROPE, called, module, refused


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
