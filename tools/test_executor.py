"""A call is seen as its value, and by what it does besides: what it changes, keeps, leaves unwritten or takes with it."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import random
import select
import sys
import threading
from array import array
from collections import deque, namedtuple
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from inferspec.conformance.bridge import random_states
from inferspec.conformance.bridge.arrays import arrays
from inferspec.conformance.bridge.binding import Target
from inferspec.conformance.bridge.executor import DeviceLost, Executor
from inferspec.conformance.bridge.hosted_subject import HostedSubject
from inferspec.conformance.calls import Observation
from inferspec.conformance.inputs import plain_call
from inferspec.conformance.subject import SubjectDied
from inferspec.spec.embedding import Embedding, EmbeddingAsLinear
from inferspec.spec.linear import Silu
from inferspec.spec.metrics import RequestMetrics
from inferspec.spec.sampling import Sampler


def call(function, x=None, kind="numpy", view="", watch=False, results=()) -> Observation:
    target = Target(Silu, function, arrays(kind), plain=True, call_names={"x": "x"})
    x = np.arange(4, dtype=np.float32) if x is None else x
    return Executor({"silu": target}).call("silu", {"x": x}, {"x": view}, None, results, watch)


def test_a_call_that_changes_nothing_is_seen_as_its_value_alone():
    seen = call(lambda x: x + 1, watch=True)
    assert seen.value.tolist() == [1, 2, 3, 4]
    assert (seen.raised, seen.message, seen.changed, seen.stub) == ("", "", (), False)


def test_an_output_that_is_left_unwritten_shows_as_nan():
    seen = call(lambda x: np.empty((64, 64), np.float32), results=[((64, 64), "float32")])
    # The allocator keeps its books in the first bytes of a freed buffer.
    assert np.isnan(seen.value).any()


def write_first(x):
    x[..., 0] = 9
    return x


@pytest.mark.parametrize("view", ["", "slice", "stride", "transpose"])
def test_a_changed_argument_is_seen_through_every_view(to, view):
    if to.name == "jax":
        pytest.skip("arrays cannot be changed")
    assert call(write_first, np.ones((2, 3), np.float32), to.name, view).changed == ("x",)


def test_a_changed_argument_is_seen_even_where_the_call_raises():
    def change_and_raise(x):
        raise KeyError(write_first(x).sum())

    seen = call(change_and_raise)
    assert (seen.changed, seen.raised) == (("x",), "KeyError")


def give_up(x):
    """Nobody can read x from now on, as where JAX donates it."""
    if hasattr(x, "delete"):
        return x.delete()
    torch = importlib.import_module("torch")
    return torch.utils.swap_tensors(x, torch.empty(x.shape, device="meta"))


@pytest.mark.parametrize("kind", ["jax", "torch"])
def test_an_argument_whose_memory_the_call_took_is_changed(kind):
    pytest.importorskip(kind)

    def takes(x):
        y = x + 1
        give_up(x)
        return y

    seen = call(takes, kind=kind)
    assert (seen.value.tolist(), seen.raised, seen.changed) == ([1, 2, 3, 4], "", ("x",))


@pytest.mark.parametrize("kind", ["jax", "torch"])
def test_an_earlier_result_whose_memory_a_call_took_is_changed(kind):
    pytest.importorskip(kind)
    results = []

    def takes(x):
        if results:
            give_up(results.pop())
        results.append(x + 1)
        return results[0]

    target = Target(Silu, takes, arrays(kind), plain=True, call_names={"x": "x"})
    executor, x = Executor({"silu": target}), np.arange(4, dtype=np.float32)
    first, second = (executor.call("silu", {"x": x}, {}, None, (), False) for _ in range(2))
    assert (first.changed, second.changed) == ((), ("earlier result",))


def test_an_argument_that_cannot_be_made_is_no_refusal_of_the_subject():
    torch = pytest.importorskip("torch")
    with torch.device("meta"), pytest.raises(NotImplementedError, match="meta tensor"):
        call(lambda x: x, kind="torch")


def draws_python(x):
    random.random()
    return x


def draws_numpy(x):
    np.random.rand()
    return x


def draws_mlx(x):
    import mlx.core as mx

    mx.eval(mx.random.uniform())
    return x


def draws_torch(x):
    import torch

    torch.rand(1)
    return x


@pytest.mark.parametrize(
    ("kind", "draw"), [("numpy", draws_python), ("numpy", draws_numpy), ("mlx", draws_mlx), ("torch", draws_torch)]
)
def test_a_changed_random_state_is_seen_when_it_is_watched(kind, draw):
    pytest.importorskip(kind)
    state = random.getstate(), np.random.get_state()
    try:
        assert call(draw, kind=kind, watch=True).changed == ("random state",)
        assert call(draw, kind=kind).changed == ()
        assert call(lambda x: x, kind=kind, watch=True).changed == ()
    finally:
        random.setstate(state[0])
        np.random.set_state(state[1])


def test_a_call_that_takes_the_device_with_it_is_the_last_of_its_process(monkeypatch):
    torch = pytest.importorskip("torch")

    def lost():
        raise RuntimeError("CUDA error: device-side assert triggered\nCompile with TORCH_USE_CUDA_DSA")

    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    assert call(lambda x: x[9], kind="torch").raised == "IndexError"
    monkeypatch.setattr(torch.cuda, "synchronize", lost)
    with pytest.raises(DeviceLost, match=r"^CUDA error: device-side assert triggered$"):
        call(lambda x: x[9], kind="torch")


LOSES = """
import torch
def silu(x):
    torch.cuda.is_initialized, torch.cuda.synchronize = lambda: True, lost
    raise RuntimeError("late")
def lost():
    raise RuntimeError("CUDA error: misaligned address\\nCompile with TORCH_USE_CUDA_DSA")
"""


def test_a_process_that_lost_its_device_says_so_and_another_goes_on(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "loses.py").write_text(LOSES, encoding="utf-8")
    subject = HostedSubject(str(tmp_path / "loses.py"))
    for _ in range(2):
        with pytest.raises(SubjectDied, match=r"took the device with it: CUDA error: misaligned address$"):
            subject.call(plain_call("silu"))
    subject.close()


STARTS = """
import os, pathlib, subprocess
with open(pathlib.Path(__file__).with_name("alive"), "wb") as alive:
    subprocess.Popen(["sleep", "600"], stdout=alive)
def silu(x):
    {does}
"""


@pytest.mark.parametrize(
    ("does", "raises"), [("return x", contextlib.nullcontext()), ("os._exit(1)", pytest.raises(SubjectDied))]
)
def test_what_a_subject_starts_ends_with_it(tmp_path, does, raises):
    os.mkfifo(tmp_path / "alive")
    alive = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    (tmp_path / "starts.py").write_text(STARTS.format(does=does), encoding="utf-8")
    subject = HostedSubject(str(tmp_path / "starts.py"))
    with raises:
        subject.call(plain_call("silu"))
    subject.close()
    # Nobody writes there any more: all that had it open are gone.
    assert select.select([alive], [], [], 20)[0]
    assert os.read(alive, 1) == b""
    os.close(alive)


def test_an_error_under_a_default_device_of_torch_is_told_from_where_the_subject_raised():
    torch = pytest.importorskip("torch")
    with torch.device("cpu"):
        seen = call(lambda x: torch.nn.functional.linear(x, x[:-1]), kind="torch")
    assert seen.raised == "RuntimeError"
    assert "_device.py" not in seen.message
    assert Path(__file__).name in seen.message


def seeds_numpy(x):
    np.random.seed(0)
    return x


def test_a_generator_that_is_always_seeded_alike_is_a_changed_random_state():
    state = np.random.get_state()
    try:
        assert [call(seeds_numpy, watch=True).changed for _ in range(2)] == [("random state",)] * 2
    finally:
        np.random.set_state(state)


@pytest.mark.parametrize(
    ("function", "seen"),
    [
        (seeds_numpy, ("random state", "random seed")),
        (draws_numpy, ("random state",)),
    ],
)
def test_a_seed_is_told_from_a_draw_where_it_comes_again(function, seen):
    state = random.getstate(), np.random.get_state()
    target = Target(Silu, function, arrays("numpy"), plain=True, call_names={"x": "x"})
    executor, x = Executor({"silu": target}), np.arange(4, dtype=np.float32)
    try:
        changed = [executor.call("silu", {"x": x}, {"x": ""}, None, (), True).changed for _ in range(2)]
        assert changed == [("random state",), seen]
    finally:
        random.setstate(state[0])
        np.random.set_state(state[1])


class AppleGPU:
    """As much of torch as is asked where the default device is Apple's GPU."""

    def __init__(self):
        self.drawn = {"cpu": 0, "mps": 0}
        self.cuda = SimpleNamespace(is_initialized=lambda: False)
        self.mps = SimpleNamespace(get_rng_state=lambda: torch_state(self.drawn["mps"]))

    def get_rng_state(self):
        return torch_state(self.drawn["cpu"])

    def empty(self, size):
        return SimpleNamespace(device=SimpleNamespace(type="mps"))

    def rand(self, size, device):
        self.drawn[device] += 1


def torch_state(drawn: int) -> SimpleNamespace:
    return SimpleNamespace(numpy=lambda: np.array([drawn]))


def test_a_draw_on_apples_gpu_is_a_changed_random_state(monkeypatch):
    torch = AppleGPU()
    monkeypatch.setitem(sys.modules, "torch", torch)
    before = random_states.stirred()
    assert torch.drawn == {"cpu": 1, "mps": 1}
    assert random_states.current() == before
    torch.rand(1, "mps")
    assert random_states.current() != before


def test_none_is_a_stub():
    seen = call(lambda x: None)
    assert (seen.value, seen.message, seen.stub) == (None, "None", True)


def test_an_error_is_seen_with_its_text_and_its_place():
    def refuse(x):
        raise NotImplementedError("later")

    seen = call(refuse)
    assert (seen.raised, seen.stub) == ("NotImplementedError", True)
    assert seen.message.startswith("later (at ")
    assert Path(__file__).name in seen.message


def test_an_error_without_a_text_is_seen_all_the_same():
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError

    def refuse(x):
        raise Mute

    seen = call(refuse)
    assert seen.raised == "Mute"
    assert seen.message.startswith("(no message: its text raises RuntimeError) (at ")


def test_the_id_of_one_row_may_be_a_python_integer():
    names = {"logits": "logits", "uniform": "uniform"}
    target = Target(Sampler, lambda logits, uniform=None: 3, arrays("numpy"), plain=True, call_names=names)
    seen = Executor({"Sampler": target}).call("Sampler", {"logits": np.zeros(5, np.float32)}, {}, None, (), False)
    assert (seen.value.shape, seen.value.dtype.kind) == ((), "i")


@pytest.mark.parametrize(
    ("result", "name"), [([1.0], "builtins.list"), (2.0, "builtins.float"), ((1, 2), "builtins.tuple")]
)
def test_something_that_is_no_array_is_named(result, name):
    seen = call(lambda x: result)
    assert (seen.value, seen.message, seen.stub) == (None, name, False)


@dataclass
class Latency:
    queue: float
    itl: list[float]
    e2el: float
    tpot: float | None
    ttft: float


@pytest.mark.parametrize(
    "result",
    [
        (1.0, None, [2.0], 3.0),
        {"itl": [2.0], "ttft": 1.0, "queue": 0.5, "e2el": 3.0, "tpot": None},
        Latency(0.5, [2.0], 3.0, None, 1.0),
        SimpleNamespace(**vars(Latency(0.5, [2.0], 3.0, None, 1.0))),
        namedtuple("Latency", "queue itl e2el tpot ttft")(0.5, [2.0], 3.0, None, 1.0),
    ],
    ids=["tuple", "dict", "dataclass", "object", "namedtuple"],
)
def test_parts_are_named_by_order_key_or_attribute_and_others_ignored(result):
    seen = _latency(lambda arrival, token_times: result)
    assert {part: x.tolist() for part, x in seen.parts.items()} == {"ttft": 1.0, "tpot": [], "itl": [2.0], "e2el": 3.0}


@pytest.mark.parametrize(
    "gaps", [lambda: iter([2.0]), lambda: (x for x in [2.0]), lambda: array("d", [2.0]), lambda: deque([2.0])]
)
def test_numbers_one_after_the_other_may_come_as_any_sequence_or_iterator(gaps):
    seen = _latency(lambda arrival, token_times: (1.0, None, gaps(), 3.0))
    assert seen.parts["itl"].tolist() == [2.0]
    assert not seen.raised


def test_a_list_that_the_call_changes_is_noticed():
    def takes(arrival, token_times):
        token_times.pop()
        return (1.0, None, [2.0], 3.0)

    assert _latency(takes).changed == ("token_times",)


def _into_arrays(lines):
    lines[:] = [np.array(line) for line in lines]


@pytest.mark.parametrize("change", [list.pop, list.reverse, lambda lines: lines.insert(0, []), _into_arrays])
def test_a_list_of_lists_that_the_call_changes_is_noticed(change):
    def takes(arrival, token_times):
        change(token_times)
        return (1.0, None, [2.0], 3.0)

    assert _latency(takes, [[1.0], [3.0, 4.0]]).changed == ("token_times",)


@pytest.mark.parametrize("kind", ["numpy", "mlx"])
def test_what_is_made_of_no_array_is_written_into_once_another_call_is_over(kind):
    made = arrays(kind)
    kept = made.from_numpy(np.zeros(2, np.float32))
    target = Target(Silu, lambda x: kept if x else made.from_numpy(np.ones(2, np.float32)), made, True, {}, {"x": "x"})
    executor = Executor({"silu": target})
    seen = [executor.call("silu", {"x": x}, {}, None, (), False).value.tolist() for x in (1, 0, 1)]
    assert seen[:2] == [[0, 0], [1, 1]]
    assert np.isnan(seen[2]).all()


def test_a_list_that_is_filled_anew_for_every_result_is_noticed():
    gaps: list[float] = []

    def reuses(arrival, token_times):
        gaps[:] = [b - a for a, b in itertools.pairwise(token_times)]
        return (1.0, None, gaps, 3.0)

    executor = Executor({"request_metrics": _target(reuses)})
    arguments = [{"arrival": 0.0, "token_times": times} for times in ([1.0, 3.0], [1.0, 2.0, 4.0])]
    seen = [executor.call("request_metrics", given, {}, None, (), False).changed for given in arguments]
    assert seen == [(), ("earlier result",)]


def _target(function) -> Target:
    names = {"arrival": "arrival", "token_times": "token_times"}
    return Target(RequestMetrics, function, arrays("numpy"), plain=False, call_names=names)


def _latency(function, token_times=(1.0, 3.0)) -> Observation:
    arguments = {"arrival": 0.0, "token_times": list(token_times)}
    return Executor({"request_metrics": _target(function)}).call("request_metrics", arguments, {}, None, (), False)


@pytest.mark.parametrize(
    ("spoil", "changed"),
    [
        (lambda given: given["a"].update(b=2), ("arrival",)),
        (lambda given: given.pop("x"), ("arrival",)),
        (lambda given: given.update(x=given["x"] * 1), ("arrival",)),
        (lambda given: given["ends"].append(1), ("arrival",)),
        (lambda given: given.update(n=arrays("mlx").from_numpy(np.arange(3))), ("arrival",)),
        (lambda given: given.update(a={"b": 1}), ()),
    ],
    ids=["entry of an entry", "taken out", "replaced", "list", "array of another library", "equal"],
)
def test_what_a_dict_has_is_the_callers_own(spoil, changed):
    given = {"a": {"b": 1}, "x": np.ones(2), "ends": [0], "n": 3}
    target = _target(lambda arrival, token_times: spoil(arrival))
    arguments = {"arrival": given, "token_times": [1.0]}
    assert Executor({"it": target}).call("it", arguments, {}, None, (), False).changed == changed


def test_another_kind_of_array_is_no_array():
    assert call(lambda x: np.ones(4), kind="mlx").message == "numpy.ndarray"


def test_objects_are_kept_for_an_example_and_forgotten_after_it():
    class Counts:
        def __init__(self):
            self.calls = 0

        def __call__(self, x):
            self.calls += 1
            return x * 0 + self.calls

    class Made(Silu):
        signature = Silu.signature.parse("Counts()(x)")

    executor = Executor({"Counts": Target(Made, Counts, arrays("numpy"), plain=False, call_names={"x": "x"})})

    def calls(keep):
        return float(executor.call("Counts", {"x": np.ones(1)}, {}, keep, (), False).value[0])

    assert [calls(0), calls(0), calls(1), calls(None), calls(None), calls(0)] == [1, 2, 1, 1, 1, 3]
    executor.reset()
    assert calls(0) == 1


def test_a_result_in_a_buffer_that_is_used_again_is_noticed():
    buffer = np.zeros(3, np.float32)

    def reuses(x):
        buffer[:] = x
        return buffer

    executor = Executor({"silu": Target(Silu, reuses, arrays("numpy"), plain=True, call_names={"x": "x"})})
    first, second = (executor.call("silu", {"x": np.full(3, n, np.float32)}, {}, None, (), False) for n in (1, 2))
    assert (first.changed, second.changed) == ((), ("earlier result",))


class Table:
    """A table of embeddings that says how often it was used."""

    def __init__(self, vocab_size, dims, weight):
        self.used = 0

    def __call__(self, tokens):
        self.used += 1
        return np.full(1, self.used)

    as_linear = __call__


def test_operations_of_one_class_are_of_one_object_where_a_test_keeps_it():
    init = {name: name for name in ("vocab_size", "dims", "weight")}
    executor = Executor(
        {
            "Embedding": Target(Embedding, Table, arrays("numpy"), False, init, {"tokens": ""}),
            "as_linear": Target(EmbeddingAsLinear, Table, arrays("numpy"), False, init, {"x": ""}),
        }
    )
    table, x = {"vocab_size": 2, "dims": 2, "weight": np.eye(2)}, np.zeros(2)

    def uses(operation, name, kept):
        seen = executor.call(operation, {**table, name: x}, {}, kept, (), False)
        return int(seen.value[0])

    assert [uses("Embedding", "tokens", 0), uses("as_linear", "x", 0), uses("Embedding", "tokens", 0)] == [1, 2, 3]
    assert [uses("as_linear", "x", 1), uses("Embedding", "tokens", None)] == [1, 1]
    executor.reset()
    assert uses("Embedding", "tokens", 0) == 1


def in_another_thread(target: Target) -> Observation:
    return Executor({"Sampler": target}).call("Sampler", {"logits": np.ones(2)}, {}, None, (), False, True)


def test_an_object_is_made_in_one_thread_and_called_in_another():
    class Threads:
        def __init__(self) -> None:
            self.made = threading.get_ident()

        def __call__(self, logits):
            return np.array([self.made == threading.main_thread().ident, self.made != threading.get_ident()])

    seen = in_another_thread(Target(Sampler, Threads, arrays("numpy"), plain=False, call_names={"logits": ""}))
    assert seen.value.all()


def test_another_thread_has_the_settings_that_a_subject_made_for_its_own():
    torch = pytest.importorskip("torch")

    def seen() -> tuple[bool, bool, str]:
        return torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.empty(0).device.type

    torch.set_default_device("meta")
    try:
        with torch.inference_mode():
            settings = arrays("torch").settings()
        with ThreadPoolExecutor(1) as thread:
            assert thread.submit(seen).result() == (True, False, "cpu")
            thread.submit(settings).result()
            assert thread.submit(seen).result() == (False, True, "meta")
    finally:
        torch.set_default_device(None)


def test_what_is_raised_in_another_thread_is_seen_as_in_this_one():
    def fail(logits):
        raise KeyError("no such id")

    seen = in_another_thread(Target(Sampler, fail, arrays("numpy"), plain=True, call_names={"logits": ""}))
    assert (seen.raised, "test_executor.py" in seen.message) == ("KeyError", True)


def test_what_cannot_be_read_in_another_thread_is_said_to_be_raised_nowhere_in_python():
    pending = pytest.importorskip("mlx.core").ones(2) * 2
    seen = in_another_thread(
        Target(Sampler, lambda logits: pending, arrays("mlx"), plain=True, call_names={"logits": ""})
    )
    assert (seen.raised, "(at " in seen.message) == ("RuntimeError", False)
