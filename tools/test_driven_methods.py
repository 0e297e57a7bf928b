"""Which methods has an object, and is it asked for no others? Those of what a function makes show in use."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

from inferspec.conformance.bridge.adapter import load
from inferspec.conformance.bridge.drivers import Handed
from inferspec.conformance.bridge.executor import Executor
from inferspec.conformance.session import Session
from inferspec.conformance.suite import all_tests
from inferspec.tools.adapter_files import module, narrowed, refused

CACHE_OF_A_FUNCTION = """
from inferspec.impl import kv_cache
ARRAYS = "mlx"

class Cache:
    def __init__(self): self.inner = kv_cache.KVCache()
    offset = property(lambda self: self.inner.offset)
    def update_and_fetch(self, key, value): return self.inner.update_and_fetch(key, value)
    {}

def KVCache(): return Cache()
"""
TOKEN = [("update_and_fetch", {"key": np.ones((1, 1, 1, 4), np.float32), "value": np.ones((1, 1, 1, 4), np.float32)})]


@pytest.mark.parametrize(
    ("more", "lacking"),
    [
        ("", {"rewinding", "restoring"}),
        ("def rewind(self, n): self.inner.rewind(n)", {"restoring"}),
        ("def __getattr__(self, name): return getattr(self.inner, name)", set()),
    ],
)
def test_what_an_object_that_a_function_makes_lacks_is_not_asked_for(folder, more, lacking):
    module(folder, CACHE_OF_A_FUNCTION.format(more))
    adapter = load("mine")
    assert not narrowed(adapter, "KVCache")
    seen = Executor(adapter.targets).call("KVCache", {"steps": TOKEN}, {}, None, (), False)
    assert not seen.raised
    assert set(narrowed(adapter, "KVCache")) == lacking


def test_what_an_object_lacks_is_known_though_a_later_operation_ends_the_process(folder):
    module(folder, f"{CACHE_OF_A_FUNCTION.format('')}\nimport os\ndef softmax(x, axis=-1): os.abort()")
    session = Session.opened("mine", profile="quick")
    try:
        assert session.smoke["softmax"][0] == "crashed"
        assert set(session.description.narrowed("KVCache")) == {"rewinding", "restoring"}
    finally:
        session.close()


def test_a_story_of_what_an_object_that_a_function_makes_lacks_is_outside_of_its_envelope(folder):
    module(folder, CACHE_OF_A_FUNCTION.format(""))
    session = Session.opened("mine", profile="quick")
    try:
        states = {
            id_: session.run(next(t for t in all_tests() if t.requirement.id == id_)).state
            for id_ in ("KV-01", "KV-12")
        }
        assert states == {"KV-01": "passed", "KV-12": "outside_envelope"}
    finally:
        session.close()


DELEGATING = """
from inferspec.impl import kv_cache
ARRAYS = "mlx"

class KVCache:
    def __init__(self): self.inner = kv_cache.KVCache()
    def __getattr__(self, name): return getattr(self.inner, name)
"""
SETTING = """
from inferspec.impl import kv_cache
ARRAYS = "mlx"

class KVCache:
    def __init__(self): self.wrap(kv_cache.KVCache())
    def wrap(self, inner):
        self.update_and_fetch, self.rewind = inner.update_and_fetch, inner.rewind
        self.length = lambda: inner.offset
        self.restore = None
    offset = property(lambda self: self.length())
"""


WRAPPED = """
import functools
from inferspec.impl import kv_cache
ARRAYS = "mlx"

def _handed_on(self, key, value): return self.inner.update_and_fetch(key, value)

class KVCache:
    def __init__(self): self.inner = kv_cache.KVCache()
    offset = property(lambda self: self.inner.offset)
    def __getattr__(self, name): return {"rewind": self.inner.rewind}[name]
    @functools.wraps(functools.partial(_handed_on))
    def update_and_fetch(self, key, value): return _handed_on(self, key, value)
"""
FIELDS = """
from dataclasses import dataclass, field
from inferspec.impl import kv_cache
ARRAYS = "mlx"

@dataclass
class KVCache:
    inner: object = field(default_factory=kv_cache.KVCache)
    update_and_fetch: object = field(init=False)
    rewind: object = field(init=False)
    def __post_init__(self):
        self.update_and_fetch, self.rewind = self.inner.update_and_fetch, self.inner.rewind
"""


@pytest.mark.parametrize(
    ("text", "lacking"),
    [(DELEGATING, set()), (SETTING, {"restoring"}), (FIELDS, {"restoring"}), (WRAPPED, {"restoring"})],
)
def test_the_methods_of_an_object_need_not_be_those_of_its_class(folder, text, lacking):
    module(folder, text)
    adapter = load("mine")
    seen = Executor(adapter.targets).call("KVCache", {"steps": [*TOKEN, ("rewind", {"n": 1})]}, {}, None, (), False)
    assert "2 refused" not in seen.results
    assert set(narrowed(adapter, "KVCache")) == lacking


@pytest.mark.parametrize("base", ["torch.nn", "mlx.nn"])
def test_a_library_s_module_hands_on_to_nothing_but_its_parts(folder, base):
    pytest.importorskip(base.partition(".")[0])
    library, _, _ = base.partition(".")
    module(
        folder,
        f"""
        from {library} import nn

        class KVCache(nn.Module):
            def forward(self, x): return x
        """,
    )
    assert "KVCache has no update_and_fetch" in refused("mine")


TABLE = """
from inferspec.impl import embedding
from mlx import nn
ARRAYS = "mlx"

class Module(nn.Module):
    def __init__(self, table): super().__init__(); self.table = table
    def __call__(self, tokens): return self.table(tokens)

def Embedding(vocab_size, dims, weight):
    table = embedding.Embedding(vocab_size, dims, weight)
    return {}
"""


@pytest.mark.parametrize(
    ("made", "claimed"), [("table", True), ("lambda tokens: table(tokens)", False), ("Module(table)", False)]
)
def test_whether_a_table_that_a_function_makes_is_a_head_too_shows_in_use(folder, made, claimed):
    module(folder, TABLE.format(made))
    session = Session.opened("mine")
    try:
        assert ("Embedding.as_linear" in session.description.offers) == claimed
        assert ("has no as_linear" in session.description.absent.get("Embedding.as_linear", "")) != claimed
    finally:
        session.close()


@pytest.mark.parametrize(
    "made",
    [
        """
        def Llama(config, weights):
            model = llama.Llama(config, weights)
            return lambda tokens: model(tokens)
        """,
        """
        class Llama:
            def __init__(self, config, weights):
                model = llama.Llama(config, weights)
                self.inner = lambda tokens: model(tokens)
            def __call__(self, tokens): return self.inner(tokens)
            def __getattr__(self, name): return getattr(self.__dict__["inner"], name)
        """,
    ],
    ids=["a function", "a class that hands on"],
)
def test_a_model_whose_objects_have_no_cache_is_asked_for_none(folder, made):
    module(folder, f"from inferspec.impl import llama\nARRAYS = 'mlx'\n{textwrap.dedent(made)}")
    session = Session.opened("mine")
    try:
        assert set(session.description.offers) == {"Llama"}
        assert session.description.absent["Llama.incremental"] == "what the subject makes has no make_cache"
    finally:
        session.close()


def test_an_object_may_put_another_method_in_the_place_of_one():
    class Lamp:
        def press(self, *, times):
            self.press = lambda *, times: f"off {times}"
            return f"on {times}"

    lamp = Handed(Lamp(), {"press": ("times",)})
    assert [lamp.press(1), lamp.press(2), lamp.press(3)] == ["on 1", "off 2", "off 3"]
