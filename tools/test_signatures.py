"""How the parameters of functions, classes and methods are matched with the contract's."""

from __future__ import annotations

import inspect
import sys

import mlx.core as mx
import numpy as np
import pytest

from inferspec.conformance.bridge.adapter import load
from inferspec.conformance.bridge.signatures import AdapterError, parameters_of
from inferspec.conformance.envelope import envelope_of
from inferspec.conformance.session import Session
from inferspec.conformance.suite import all_tests
from inferspec.spec import contract
from inferspec.spec.rms_norm import RMSNorm
from inferspec.spec.rope import RoPE
from inferspec.tools.adapter_files import ONES, called, is_right, module, narrowed, opened, refused


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


@pytest.mark.parametrize("made", ["class", "function"])
def test_a_block_table_of_caches_that_cannot_be_rewound_is_asked_for_the_rest(folder, made):
    module(
        folder,
        f"""
        from inferspec.impl.paged_attention import paged_attention
        from inferspec.impl.paged_kv import PagedKVCache as _Own, PagePool, block_table
        ARRAYS = "mlx"

        class Cache:
            def __init__(self, pool): self._own = _Own(pool)
            page_ids, page_lens, offset = (property(lambda s, n=n: getattr(s._own, n)) for n in ("page_ids", "page_lens", "offset"))
            def append(self, key, value): self._own.append(key, value)
            def gather(self): return self._own.gather()
            def release(self): self._own.release()
        {"PagedKVCache = Cache" if made == "class" else "def PagedKVCache(pool): return Cache(pool)"}
        """,
    )
    session = opened("mine")
    session.close()
    for name in ("PagedKVCache", "block_table", "PagedKVCache.attention"):
        assert list(session.description.narrowed(name)["rewinding"]) == [False], name


def test_a_scale_on_which_a_function_insists_narrows_the_envelope(folder):
    module(folder, "def scaled_dot_product_attention(query, key, value, scale, mask): return query * scale")
    target = load("mine").targets["scaled_dot_product_attention"]
    assert target.narrowed == {"scales": ("given",)}
    assert target.filled == {"mask": None}


def test_functions_of_an_extension_are_read_by_what_they_tell_as_text(folder):
    module(folder, "from mlx.core.fast import rms_norm, scaled_dot_product_attention")
    found = load("mine")
    assert found.targets["RMSNorm"].filled == {"eps": RMSNorm.signature.parameters["eps"]}
    given = {"dims": 4, "weight": ONES[0], "x": 2 * ONES}
    assert is_right(called(found, "RMSNorm", **given), RMSNorm(), **given)
    assert found.targets["scaled_dot_product_attention"].narrowed == {"scales": ("given",)}


def test_a_method_of_an_extension_is_read_likewise():
    assert [p.name for p in parameters_of(mx.array.reshape)] == ["self", "shape", "stream"]


def test_a_function_of_an_extension_that_has_two_forms_is_called_like_one_that_tells_nothing():
    assert parameters_of(mx.arange) is None


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("def f(x: array, eps: float = \\0, *, s: object) -> array", "(x, eps=..., *, s)"),
        ("def f(x: ndarray[shape=(*)]) -> array", None),
    ],
)
def test_a_default_that_an_extension_cannot_write_is_one_and_what_is_no_python_is_not_read(text, read):
    # The name of the class tells whose function it is, as nanobind's do; it has no signature either.
    function = type(
        "nb_func", (), {"__call__": len, "__signature__": "none", "__nb_signature__": ((text, "", None),)}
    )()
    found = parameters_of(function)
    assert (None if found is None else str(inspect.Signature(found))) == read


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
        "from functools import singledispatch\n@singledispatch\ndef rms_norm(x, w, eps=1e-5): return x * w + eps",
        "class RMSNorm:\n    def __new__(cls, w, eps): return lambda x: x * w + eps",
    ],
)
def test_a_class_a_factory_and_a_plain_function_are_all_a_norm(folder, text):
    module(folder, text)
    arguments = {"dims": 4, "weight": 3 * np.ones(4, np.float32), "eps": 1.0, "x": ONES}
    assert called(load("mine"), "RMSNorm", **arguments).tolist() == [[4] * 4] * 2


@pytest.mark.parametrize("more", ["", ", **more"])
def test_a_bias_called_b_is_the_bias(folder, more):
    module(folder, f"def linear(x, w, b=None{more}): return x @ w.T if b is None else x @ w.T + b")
    found = called(load("mine"), "linear", x=ONES, weight=np.eye(4, dtype=np.float32), bias=3 * np.ones(4, np.float32))
    assert found.tolist() == [[4] * 4] * 2


@pytest.mark.parametrize(
    ("own", "names"),
    [
        ("a, b", {"x": "a", "weight": "b"}),
        ("a, b, c=None", {"x": "a", "weight": "b"}),
        ("x, w, b", {"x": "x", "weight": "w", "bias": "b"}),
        ("x, w, *, b", {"x": "x", "weight": "w", "bias": "b"}),
        ("x, w, bias=None, b=None", {"x": "x", "weight": "w", "bias": "bias"}),
    ],
)
def test_a_letter_is_an_option_behind_what_must_be_given_where_nothing_has_the_option_s_own_name(folder, own, names):
    module(folder, f"def linear({own}): return x")
    assert load("mine").targets["linear"].call_names == names


def test_what_other_arguments_tell_is_not_put_where_another_name_stands(folder):
    module(folder, "def rope(x, offset=None, theta=10000): return x + theta")
    assert called(load("mine"), "RoPE", x=ONES, dims=4, max_positions=9, base=10000).max() == 10001


@pytest.mark.parametrize(
    ("text", "operation", "others"),
    [
        ("def linear(x, w, add=None): return x", "linear", {"bias": ["add"]}),
        ("def linear(x, weight): return x", "linear", {}),
        ("def linear(x, w, b=None, **more): return x", "linear", {}),
        ("def linear(x, weight, bias=None, out=None): return x", "linear", {}),
        ("def linear(x, weight, **more): return x", "linear", {}),
        (
            """
            class RoPE:
                def __init__(self, dims, max_positions, b=10000, pairs=False): pass
                def __call__(self, x, start=None): return x
            """,
            "RoPE",
            {"base": ["b", "pairs"], "traditional": ["b", "pairs"], "offset": ["start"]},
        ),
    ],
)
def test_names_that_may_be_what_a_function_lacks_are_told(folder, text, operation, others):
    module(folder, text)
    found = load("mine").targets[operation].strange
    assert {name: found[name] for name in others or found} == others


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


JAX = """
import jax
jax.config.update('jax_enable_x64', {wide})
def embedding(tokens, weight): return weight[tokens]
ENVELOPE = {declared}
"""


@pytest.mark.parametrize(("wide", "left"), [(False, ("int32", "uint32")), (True, ("int32", "int64", "uint32"))])
def test_jax_has_the_dtypes_that_a_subject_chose_for_it(folder, wide, left):
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    module(folder, JAX.format(wide=wide, declared={}))
    adapter = load("mine")
    assert jax.config.jax_enable_x64 == wide
    jax.config.update("jax_enable_x64", before)
    found = envelope_of(contract("embedding"), {}, narrowed(adapter, "Embedding"))
    assert tuple(found["token_dtypes"]) == left


def test_ids_of_dtypes_that_there_are_no_arrays_of_are_no_claim(folder):
    pytest.importorskip("jax")
    module(folder, JAX.format(wide=False, declared={"embedding": {"token_dtypes": ["int64"]}}))
    with pytest.raises(AdapterError, match="'int64', of which jax has no arrays as it is configured"):
        load("mine")


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


def test_what_is_imported_for_a_module_s_own_use_may_have_another_name(folder):
    module(folder, "class KVCache: ...", "other.py")
    module(folder, "from other import KVCache")
    line = refused("mine")
    assert line.endswith("import it by another name: from other import KVCache as _KVCache")
    module(folder, "class KVCache: ...")
    del sys.modules["mine"]
    assert "imported" not in refused("mine")


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


def _first_of(requirement):
    """The state of the first test of a requirement, of the adapter `mine`."""
    session = opened("mine")
    try:
        return session.run(next(test for test in all_tests() if test.requirement.id == requirement)).state
    finally:
        session.close()


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
    assert _first_of("GEN-01") == "passed"


def test_a_generator_may_leave_every_choice_to_the_sampler_on_which_it_insists(folder):
    module(
        folder,
        """
        from inferspec.impl import generation
        ARRAYS = "mlx"
        def generate(model, tokens, *, max_tokens, eos, sampler, cache=True):
            choose = lambda logits: sampler(logits)
            return generation.generate(model, tokens, max_tokens=max_tokens, eos=eos, sampler=choose, cache=cache)
        """,
    )
    assert _first_of("GEN-01") == "passed"


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
    session = Session.opened("mine")
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
    session = Session.opened("mine")
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
    session = Session.opened("mine")
    try:
        uncached = next(test for test in all_tests() if test.requirement.id == "BLK-29")
        assert session.run(uncached).state == "passed"
    finally:
        session.close()


def test_what_a_sampler_takes_may_have_the_short_names_of_the_field(folder):
    module(
        folder,
        """
        class Sampler:
            def __init__(self, temp=0.0, topp=1.0, topk=None): self.given = temp, topk, topp
            def __call__(self, logits, uniform): return logits + self.given[0] + self.given[1] + self.given[2]
        """,
    )
    found = load("mine")
    arguments = {"logits": ONES, "uniform": ONES[:, 0], "temperature": 0.5, "top_k": 3, "top_p": 0.25}
    assert called(found, "Sampler", **arguments).tolist() == [[4.75] * 4] * 2
    assert not narrowed(found, "Sampler").keys() & {"temperatures", "top_k", "top_p", "both_filters"}


def test_generators_may_have_the_fields_other_names_of_their_options(folder):
    module(
        folder,
        """
        from inferspec.impl import generation, speculative
        ARRAYS = "mlx"

        def generate(model, tokens, *, max_new_tokens, eos_token_ids, sampler=None, cache=True):
            yield from generation.generate(
                model, tokens, max_tokens=max_new_tokens, eos=eos_token_ids, sampler=sampler, cache=cache)

        def speculative_generate(target, draft, tokens, *, max_new_tokens, gamma, eos_ids=()):
            yield from speculative.speculative_generate(
                target, draft, tokens, max_tokens=max_new_tokens, num_draft_tokens=gamma, eos=eos_ids)
        """,
    )
    asked = ("test_any_of_several_ids_ends_the_ids", "test_any_number_of_drafts_gives_the_same_ids")
    session = Session.opened("mine")
    try:
        for test in (test for test in all_tests() if test.name in asked):
            assert session.run(test).state == "passed", test.name
    finally:
        session.close()


def test_parameters_of_the_contract_s_names_may_stand_in_another_order(folder):
    module(
        folder,
        """
        from inferspec.impl import block_manager, engine, metrics, scheduler
        from inferspec.impl.qwen3 import Qwen3
        ARRAYS = "mlx"

        class BlockManager(block_manager.BlockManager):
            def __init__(self, block_size, num_gpu_blocks, prefix_caching=True):
                super().__init__(num_gpu_blocks, block_size, prefix_caching)
        class Scheduler(scheduler.Scheduler):
            def __init__(self, max_requests, max_prefill_tokens, block_manager):
                super().__init__(block_manager, max_requests, max_prefill_tokens)
            def update(self, tokens, step): return super().update(step, tokens)
        class Engine(engine.Engine):
            def __init__(self, *, model, **options): super().__init__(model, **options)
            def add_request(self, max_tokens, tokens, **options): return super().add_request(tokens, max_tokens, **options)
        def request_metrics(token_times, arrival): return metrics.request_metrics(arrival, token_times)
        """,
    )
    session = Session.opened("mine")
    try:
        wanted = {"BLK-01", "SCHED-01", "ENG-01", "METR-01"}
        first = {test.requirement.id: test for test in all_tests() if test.requirement.id in wanted}
        assert {id: session.run(test).state for id, test in first.items()} == dict.fromkeys(first, "passed")
    finally:
        session.close()
