"""What does an adapter declare, and what is not asked of it then?"""

from __future__ import annotations

import textwrap

import pytest

from inferspec.conformance.bridge.adapter import load
from inferspec.conformance.envelope import envelope_of
from inferspec.conformance.suite import all_tests
from inferspec.spec import contract
from inferspec.tools.adapter_files import ROPE, module, narrowed, opened


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


ENGINE = """
class Engine:
    def __init__(self, model, max_requests, max_prefill_tokens): ...
    def add_request(self, tokens, max_tokens): ...
    def step(self): ...
    def run(self): ...
    def output(self, request): ...
    def finished(self, request): ...
    has_unfinished = False
"""


def test_an_engine_without_pages_is_given_memory_enough_and_pages_of_one_size(folder):
    (folder / "mine.py").write_text(f"{LLAMA}\n{ENGINE}")
    left = narrowed(load("mine"), "Engine")
    assert left["short_pools"] == (False,)
    assert left["page_sizes"] == (16,)
    assert not {"request_limits", "chunk_limits"} & set(left)


@pytest.mark.parametrize(
    ("taken", "limits"),
    [
        ("", {"request_limits", "chunk_limits"}),
        (", max_requests=8", {"chunk_limits"}),
        (", max_num_seqs=8", {"chunk_limits"}),
        (", max_prefill_tokens=64", {"request_limits"}),
        (", max_num_seqs=8, max_num_batched_tokens=64", set()),
        (", **limits", set()),
    ],
)
def test_an_engine_without_limits_is_asked_for_none(folder, taken, limits):
    (folder / "mine.py").write_text(f"{LLAMA}\n{ENGINE.replace(', max_requests, max_prefill_tokens', taken)}")
    left = narrowed(load("mine"), "Engine")
    assert {key: kept for key, kept in left.items() if key.endswith("_limits")} == dict.fromkeys(limits, (False,))
