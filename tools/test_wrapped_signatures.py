"""How the parameters of what another function wraps, makes or hands on are read."""

from __future__ import annotations

import pytest

from inferspec.conformance.bridge.adapter import load
from inferspec.conformance.session import Session
from inferspec.conformance.suite import all_tests
from inferspec.tools.adapter_files import ONES, called, module


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


def test_what_a_decorator_hands_on_goes_by_position_where_it_must_be_given_and_else_by_name(folder):
    module(
        folder,
        """
        def counted(function):
            def wrapper(*given, **named): return function(*given, **named)
            return wrapper

        @counted
        def linear(inputs, matrix, bias=None): return inputs @ matrix.T if bias is None else inputs @ matrix.T + bias
        """,
    )
    target = load("mine").targets["linear"]
    assert target.call_names == {"x": "", "weight": "", "bias": "bias"}
    assert called(load("mine"), "linear", x=ONES, weight=ONES, bias=ONES[0, :2]).tolist() == [[5, 5]] * 2


def test_what_makes_an_object_may_hand_on_whatever_it_is_given(folder):
    module(
        folder,
        """
        class RotaryEmbedding:
            def __init__(self, d, n, base=10000, traditional=False): self.told = d * 1000 + base + traditional
            def forward(self, hidden, offset=None): return hidden + self.told

        class Lazy:
            def __init__(self, *given, **named): self.inner = RotaryEmbedding(*given, **named)
            def __call__(self, *given, **named): return self.inner.forward(*given, **named)

        def RoPE(*given, **named): return Lazy(*given, **named)
        """,
    )
    told = {"x": ONES, "dims": 4, "max_positions": 9, "traditional": True}
    assert called(load("mine"), "RoPE", **told).max() == 4000 + 10000 + 1 + 1


def test_what_an_object_of_a_class_takes_is_read_where_its_call_takes_no_object(folder):
    module(
        folder,
        """
        class Linear:
            @staticmethod
            def __call__(x, weight, bias=None): return x @ weight.T if bias is None else x @ weight.T + bias
        class Silu:
            @classmethod
            def __call__(cls, x): return 2 * x
        linear, silu = Linear(), Silu()
        """,
    )
    found = load("mine")
    assert found.targets["linear"].call_names == {"x": "x", "weight": "weight", "bias": "bias"}
    assert called(found, "linear", x=ONES, weight=ONES, bias=ONES[0, :2]).tolist() == [[5, 5]] * 2
    assert called(found, "silu", x=ONES).max() == 2


def test_a_function_that_wraps_another_is_called_by_what_it_takes_itself(folder):
    module(
        folder,
        """
        from functools import wraps

        def of_float32(function):
            @wraps(function)
            def wrapper(x, w): return function("float32", x, w, 0)
            return wrapper

        def logged(function):
            @wraps(function)
            def wrapper(*given, **named): return function(*given, **named)
            return wrapper

        @of_float32
        def linear(dtype, x, w, bias): return (x @ w.T + bias).astype(dtype)

        @logged
        def rms_norm(x, w, eps=1e-5): return x * w
        """,
    )
    found = load("mine").targets
    assert (found["linear"].call_names, found["RMSNorm"].call_names) == (
        {"x": "x", "weight": "w"},
        {"x": "x", "weight": "w", "eps": "eps"},
    )
    assert called(load("mine"), "linear", x=ONES, weight=ONES).tolist() == [[4, 4]] * 2


def test_what_a_decorator_calls_by_a_name_of_its_own_is_given_by_position(folder):
    module(
        folder,
        """
        from functools import wraps

        def by_copies(function):
            @wraps(function)
            def wrapper(array, *given, **named): return function(array.copy(), *given, **named)
            return wrapper

        def counted(method):
            @wraps(method)
            def wrapper(self, array, *given, **named): return method(self, array, *given, **named)
            return wrapper

        @by_copies
        def linear(x, weight, bias=None): return x @ weight.T if bias is None else x @ weight.T + bias

        class RMSNorm:
            def __init__(self, dims, weight, eps=1e-5): self.weight = weight
            @counted
            def __call__(self, x): return x * self.weight
        """,
    )
    found = load("mine")
    assert found.targets["linear"].call_names == {"x": "", "weight": "weight", "bias": "bias"}
    assert called(found, "linear", x=ONES, weight=ONES, bias=ONES[0, :2]).tolist() == [[5, 5]] * 2
    assert found.targets["RMSNorm"].call_names == {"x": ""}


@pytest.mark.parametrize(
    "decorated",
    [
        "by_place(linear)",
        "whatever(by_another_name(linear))",
        "partial(by_another_name(linear), bias=None)",
        "Offering().linear",
    ],
    ids=["by position alone", "in another", "a part of one", "a method in another"],
)
def test_what_decorators_hide_of_a_function_s_parameters_is_found_in_each(folder, decorated):
    module(
        folder,
        f"""
        from functools import partial, wraps

        def by_place(function):
            @wraps(function)
            def wrapper(*given): return function(*given)
            return wrapper

        def by_another_name(function):
            @wraps(function)
            def wrapper(array, *given, **named): return function(array, *given, **named)
            return wrapper

        def of_methods(function):
            @wraps(function)
            def wrapper(self, array, *given, **named): return function(self, array, *given, **named)
            return wrapper

        def whatever(function):
            @wraps(function)
            def wrapper(*given, **named): return function(*given, **named)
            return wrapper

        def linear(x, weight, bias=None): return x @ weight.T

        class Offering:
            @whatever
            @of_methods
            def linear(self, x, weight, bias=None): return x @ weight.T

        linear = {decorated}
        """,
    )
    assert called(load("mine"), "linear", x=ONES, weight=ONES).tolist() == [[4, 4]] * 2


def test_a_class_may_be_made_by_what_a_decorator_calls_otherwise(folder):
    module(
        folder,
        """
        from functools import wraps

        def noting(init):
            @wraps(init)
            def wrapper(self, size, *given, **named): return init(self, size, *given, **named)
            return wrapper

        class RMSNorm:
            @noting
            def __init__(self, dims, weight, eps=1e-5): self.weight = weight
            def __call__(self, x): return x * self.weight
        """,
    )
    assert load("mine").targets["RMSNorm"].init_names == {"dims": "", "weight": "weight", "eps": "eps"}


SETS_ITS_METHODS = {
    "setattr": "for name in NAMES: setattr(self, name, getattr(inner, name))",
    "its dict": "self.__dict__.update((name, getattr(inner, name)) for name in NAMES)",
    "vars": "vars(self).update((name, getattr(inner, name)) for name in NAMES)",
    "no attribute of its own": "self.inner = inner",
}
"""How the objects of a class may have methods that the class does not show."""


@pytest.mark.parametrize("way", SETS_ITS_METHODS)
def test_methods_that_no_line_of_a_class_names_are_found_on_its_objects(folder, way):
    hidden = """
            def __getattribute__(self, name):
                own = object.__getattribute__(self, "__dict__")
                return getattr(own["inner"], name) if "inner" in own and name in NAMES else own[name]
    """
    names = ["update_and_fetch", "rewind", "restore", *(["offset", "state"] if way.startswith("no") else [])]
    module(
        folder,
        f"""
        from inferspec.impl import kv_cache
        ARRAYS = "mlx"
        NAMES = {names}

        class KVCache:
            def __init__(self):
                inner = kv_cache.KVCache()
                {SETS_ITS_METHODS[way]}
            {hidden.strip() if way.startswith("no") else ""}
        """,
    )
    session = Session.opened("mine")
    try:
        test = next(test for test in all_tests() if test.requirement.id == "KV-01")
        assert session.run(test).state == "passed"
    finally:
        session.close()
