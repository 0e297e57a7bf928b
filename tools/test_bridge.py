"""Arrays and calls cross from the suites to a subject and back unharmed, and what a call does besides is seen."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import pickle
import random
import select
import sys
from array import array
from collections import deque, namedtuple
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from inferspec.conformance.bridge import random_states
from inferspec.conformance.bridge.arena import LARGE, ROOM, Arena, create
from inferspec.conformance.bridge.arrays import KINDS, arrays
from inferspec.conformance.bridge.binding import Target
from inferspec.conformance.bridge.executor import DeviceLost, Executor
from inferspec.conformance.bridge.hosted_subject import HostedSubject
from inferspec.conformance.bridge.views import lay
from inferspec.conformance.bridge.wire import decode, encode, readable
from inferspec.conformance.calls import RARE_VIEWS, VIEWS, Observation
from inferspec.conformance.inputs import plain_call
from inferspec.conformance.subject import SubjectDied
from inferspec.spec.linear import Silu
from inferspec.spec.metrics import RequestMetrics
from inferspec.spec.numerics import f64

DTYPES = ("float32", "float16", "bfloat16", "int32", "int64", "uint8", "bool")
VALUES = np.array([[-2.5, -0.0, 0.0, 1.0], [np.inf, -np.inf, 1e-40, 6e-8], [np.nan, 3.0, 100.0, 2.0**-133]])


@pytest.fixture(scope="module", params=KINDS)
def to(request):
    if importlib.util.find_spec(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return arrays(request.param)


def sample(dtype: str) -> np.ndarray:
    if dtype in DTYPES[:3]:
        return VALUES.astype(getattr(ml_dtypes, dtype, dtype))
    return np.arange(12).reshape(3, 4).astype(dtype)


def same(first: np.ndarray, second: np.ndarray) -> bool:
    return first.dtype == second.dtype and first.shape == second.shape and first.tobytes() == second.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_come_back_bit_for_bit_from_every_kind_of_arrays(to, dtype):
    if dtype in to.unheld:
        pytest.skip(f"{to.name} has no {dtype} as it is configured")
    there = to.from_numpy(sample(dtype))
    assert to.owns(there)
    assert not to.owns([1.0])
    assert same(to.to_numpy(to.ready(there)), sample(dtype))


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1)])
def test_scalars_and_empty_arrays_keep_their_shape(to, shape):
    x = np.full(shape, 2.5, ml_dtypes.bfloat16)
    assert same(to.to_numpy(to.from_numpy(x)), x)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
def test_values_of_the_other_byte_order_are_the_same_values(dtype):
    x = sample(dtype)
    assert same(arrays("numpy").to_numpy(x.astype(x.dtype.newbyteorder())), x)


def test_the_imaginary_part_of_a_conjugate_has_its_own_sign():
    torch = pytest.importorskip("torch")
    turned = torch.view_as_complex(torch.tensor([[1.0, 2.0], [3.0, -4.0]])).conj().imag
    assert turned.is_neg()
    assert arrays("torch").to_numpy(turned).tolist() == [-2.0, 4.0]


def test_what_a_subject_gets_is_its_own_copy(to):
    x = sample("float32")
    there = to.from_numpy(x)
    x[:] = 7
    assert same(to.to_numpy(there), sample("float32"))


@pytest.mark.parametrize("name", DTYPES[:3])
def test_dtypes_are_named_alike(to, name):
    ones = to.from_numpy(np.ones(2, np.float32))
    cast = ones.to if to.name == "torch" else ones.astype
    assert to.to_numpy(to.ready(cast(to.dtype(name)))).dtype.name == name


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "bool"])
def test_a_view_equals_its_copy(to, view, dtype):
    x = np.repeat(sample(dtype)[:1], 3, axis=0) if view == "broadcast" else sample(dtype)
    assert same(to.to_numpy(lay(x, view, to)), x)


@pytest.mark.parametrize(
    ("view", "strides"), [("row", (12, 4, 4, 1)), ("inserted", (12, 4, 0, 1)), ("half", (24, 4, 4, 1))]
)
def test_a_rare_view_equals_its_copy_and_is_none(to, view, strides):
    assert view in RARE_VIEWS
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 1, 4)
    laid = lay(x, view, to)
    assert same(to.to_numpy(laid), x)
    if to.name == "numpy":
        assert tuple(stride // x.itemsize for stride in laid.strides) == strides
        assert laid.base is not None


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (5,)])
def test_views_of_small_arrays_equal_their_copies_too(to, view, shape):
    x = np.ones(shape, np.float32)
    assert same(to.to_numpy(lay(x, view, to)), x)


@pytest.mark.parametrize(
    ("view", "strides"),
    [
        ("slice", (7, 1)),
        ("transpose", (1, 3)),
        ("heads", (1, 3)),
        ("stride", (8, 2)),
        ("reverse", (4, -1)),
        ("broadcast", (0, 1)),
    ],
)
def test_a_view_lies_in_memory_as_it_says(to, view, strides):
    if to.name == "jax" or (to.name, view) == ("torch", "reverse"):
        pytest.skip("no such views")
    x = np.repeat(np.arange(4.0)[None], 3, axis=0) if view == "broadcast" else np.arange(12.0).reshape(3, 4)
    y = lay(x.astype(np.float32), view, to)
    found = y.stride() if to.name == "torch" else [s // 4 for s in memoryview(y).strides]
    assert tuple(found) == strides


@pytest.mark.parametrize("view", ["slice", "stride"])
@pytest.mark.parametrize("dtype", DTYPES[:3])
def test_poison_lies_all_around_a_view(view, dtype):
    x = np.ones((3, 4), getattr(ml_dtypes, dtype, dtype))
    base = lay(x, view, arrays("numpy")).base
    assert np.isnan(f64(base)).sum() == base.size - x.size > 0
    assert f64(base).ravel()[[0 if view == "slice" else 1, -1]].tolist() != [1, 1]


def test_an_output_that_is_left_unwritten_shows_as_nan():
    seen = call(lambda x: np.empty((64, 64), np.float32), results=[((64, 64), "float32")])
    # The allocator keeps its books in the first bytes of a freed buffer.
    assert np.isnan(seen.value).any()


@pytest.mark.parametrize(
    "message",
    [
        None,
        True,
        7,
        2**70,
        -0.5,
        float("inf"),
        "text · ≤",
        [1, (2, [3])],
        {"a": {"b": None}, "@": "at"},
        slice(3, 9),
        [slice(0, 4), slice(2, 6, None)],
        (slice(None), ()),
    ],
)
def test_plain_values_cross_the_wire_as_they_are(message):
    back = decode(encode(message))
    assert back == message
    assert type(back) is type(message)


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_cross_the_wire_bit_for_bit(dtype):
    x = sample(dtype)
    back = decode(encode({"x": [x, x.T, x[:, ::-2], x[:0]]}))["x"]
    assert all(same(b, s) for b, s in zip(back, (x, x.T, x[:, ::-2], x[:0]), strict=True))
    back[0][...] = 0


@pytest.fixture
def arenas():
    file = create()
    yield Arena(file), Arena(file)
    os.close(file)


@pytest.mark.parametrize("dtype", DTYPES)
def test_large_arrays_cross_through_memory_bit_for_bit(arenas, dtype):
    there, here = arenas
    x = np.tile(sample(dtype), (300, 300))
    message = {"x": [x, x.T, x[:, ::-2], x[:1, :1]], "y": {"z": (x,)}}
    data = encode(message, there)
    assert len(data) < LARGE < there.used
    back = decode(data, here)
    encode({"x": [np.zeros_like(x)] * 5}, there)
    assert all(same(b, s) for b, s in zip((*back["x"], *back["y"]["z"]), (*message["x"], x), strict=True))
    back["x"][0][...] = 0


def test_arrays_for_which_memory_has_no_room_cross_with_the_message(arenas):
    x = np.arange(ROOM // 8 // 2 - 1, dtype=np.int64)
    back = decode(encode([x, x[::-1], x], arenas[0]), arenas[1])
    assert all(same(b, s) for b, s in zip(back, (x, x[::-1], x), strict=True))


def test_where_there_are_no_files_of_memory_a_temporary_one_will_do(monkeypatch):
    monkeypatch.delattr(os, "memfd_create", raising=False)
    file = create()
    there, here = Arena(file), Arena(file)
    os.close(file)
    x = np.arange(LARGE, dtype=np.float32)
    assert same(decode(encode(x, there), here), x)
    assert there.used >= x.nbytes


@pytest.mark.parametrize("place", [-1, ROOM - 7, 2**70])
def test_nothing_is_taken_from_outside_the_memory(arenas, place):
    with pytest.raises(ValueError, match="place is"):
        arenas[1].take(place, (2,), np.dtype(np.float32))


NAMING = [
    pickle.dumps(os.getcwd),
    pickle.dumps(np.float64(1)),
    pickle.dumps(ValueError("no")),
    b"cbuiltins\neval\n(V1+1\ntR.",
    b"\x80\x04\x8c\x08builtins\x8c\x07getattr\x93.",
    b"cinferspec.conformance.bridge.wire\npickle\n.",
]


@pytest.mark.parametrize("data", NAMING)
def test_a_message_that_names_code_is_refused(data):
    with pytest.raises(ValueError, match="a message names"):
        decode(data)


def made(name: str, *arguments: object) -> bytes:
    """A message that has one of the kit's makers make something."""
    return (
        b"\x80\x04cinferspec.conformance.bridge.wire\n"
        + name.encode()
        + b"\n"
        + pickle.dumps(arguments, 4)[2:-1]
        + b"R."
    )


@pytest.mark.parametrize("dtype", ["object", "finfo", "O", "datetime64[s]", "S8", "U2", "nothing"])
@pytest.mark.parametrize("data", [0, bytes(64)])
def test_an_array_of_what_is_no_number_is_refused(arenas, data, dtype):
    with pytest.raises(ValueError, match=r"it takes numbers|no message"):
        decode(made("_array", data, dtype, (1,)), arenas[1])


NOISE = [b"", b"\x80", b"noise", made("_array", 7, "int8", (1,)), made("_array", None, "int8", (1,)), made("_array")]


@pytest.mark.parametrize("data", NOISE)
def test_what_is_no_message_is_a_value_error(data):
    with pytest.raises(ValueError, match="message"):
        decode(data)


@pytest.mark.parametrize(
    "value", [object(), len, np.float32, ValueError("no"), IntEnum("Name", "ON").ON, {"a": [{1: Path()}]}]
)
def test_what_is_no_data_is_not_sent(value):
    with pytest.raises(ValueError, match="a message has a"):
        encode(value)


def test_a_readable_text_is_left_as_it_is():
    assert readable("schön,\n\tπ 字 🙂") == "schön,\n\tπ 字 🙂"
    assert readable("a\x1b[31mb\ud800\x00\r") == "a\ufffd[31mb\ufffd\ufffd\ufffd"


def test_what_is_sent_twice_is_whole_twice():
    x = np.arange(3.0)
    back = decode(encode({"a": x, "b": (x, [1], [1])}))
    assert same(back["a"], x)
    assert same(back["b"][0], x)


def test_numbers_of_numpy_cross_the_wire_as_numbers():
    assert decode(encode({"n": np.int64(3), "x": np.float32(0.5)})) == {"n": 3, "x": 0.5}


# Calls


def call(function, x=None, kind="numpy", view="", watch=False, results=()) -> Observation:
    target = Target(Silu, function, arrays(kind), plain=True, call_names={"x": "x"})
    x = np.arange(4, dtype=np.float32) if x is None else x
    return Executor({"silu": target}).call("silu", {"x": x}, {"x": view}, None, results, watch)


def test_a_call_that_changes_nothing_is_seen_as_its_value_alone():
    seen = call(lambda x: x + 1, watch=True)
    assert seen.value.tolist() == [1, 2, 3, 4]
    assert (seen.raised, seen.message, seen.changed, seen.stub) == ("", "", (), False)


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


@pytest.mark.parametrize("dtype", DTYPES[:3])
def test_arrays_of_torch_are_made_where_the_subject_makes_its_own(dtype):
    torch = pytest.importorskip("torch")
    kind, x = arrays("torch"), sample(dtype)
    assert (kind.device(), kind.from_numpy(x).device.type) == ("cpu", "cpu")
    with torch.device("meta"):
        made = kind.from_numpy(x)
        assert (kind.device(), made.device.type, str(made.dtype)) == ("meta", "meta", f"torch.{dtype}")


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


def test_a_generator_that_is_always_seeded_alike_is_a_changed_random_state():
    def reseeds(x):
        np.random.seed(0)
        return x

    state = np.random.get_state()
    try:
        assert [call(reseeds, watch=True).changed for _ in range(2)] == [("random state",)] * 2
    finally:
        np.random.set_state(state)


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
    assert "test_bridge.py" in seen.message


def test_an_error_without_a_text_is_seen_all_the_same():
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError

    def refuse(x):
        raise Mute

    seen = call(refuse)
    assert seen.raised == "Mute"
    assert seen.message.startswith("(no message: its text raises RuntimeError) (at ")


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
