"""Arrays and messages cross from the suites to a subject and back unharmed."""

from __future__ import annotations

import os
import pickle
from enum import IntEnum
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from inferspec.conformance.bridge.arena import LARGE, ROOM, Arena, create
from inferspec.conformance.bridge.arrays import MlxArrays, arrays
from inferspec.conformance.bridge.views import lay, lay_beside
from inferspec.conformance.bridge.wire import decode, encode, readable
from inferspec.conformance.calls import RARE_VIEWS, VIEWS
from inferspec.spec.numerics import f64

DTYPES = ("float32", "float16", "bfloat16", "int32", "int64", "uint8", "bool")
VALUES = np.array([[-2.5, -0.0, 0.0, 1.0], [np.inf, -np.inf, 1e-40, 6e-8], [np.nan, 3.0, 100.0, 2.0**-133]])


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


@pytest.mark.parametrize(("before", "after"), [(1 << 40, MlxArrays.CACHE), (1 << 25, 1 << 25)])
def test_mlx_keeps_no_more_of_what_was_freed_than_many_processes_have_room_for(monkeypatch, before, after):
    mx, limits = pytest.importorskip("mlx.core"), [before]
    monkeypatch.setattr(mx, "set_cache_limit", lambda limit: limits.append(limit) or limits[-2])
    arrays("mlx")
    assert limits[-1] == after


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
    ("view", "strides"),
    [
        ("row", (12, 4, 4, 1)),
        ("inserted", (12, 4, 0, 1)),
        ("half", (24, 4, 4, 1)),
        ("beginning", (12, 4, 4, 1)),
        ("shifted", (12, 4, 4, 1)),
    ],
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
        ("bottom-up", (-4, 1)),
        ("broadcast", (0, 1)),
    ],
)
def test_a_view_lies_in_memory_as_it_says(to, view, strides):
    if to.name == "jax" or (to.name, view) in {("torch", "reverse"), ("torch", "bottom-up")}:
        pytest.skip("no such views")
    x = np.repeat(np.arange(4.0)[None], 3, axis=0) if view == "broadcast" else np.arange(12.0).reshape(3, 4)
    y = lay(x.astype(np.float32), view, to)
    found = y.stride() if to.name == "torch" else [s // 4 for s in memoryview(y).strides]
    assert tuple(found) == strides


def test_arrays_that_lie_beside_each_other_are_parts_of_one(to):
    first, second = np.arange(24, dtype=np.float32).reshape(2, 2, 3, 2)
    one, other = lay_beside(first, second, to)
    assert same(to.to_numpy(one), first)
    assert same(to.to_numpy(other), second)
    if to.name == "jax":
        pytest.skip("its arrays are all copies")
    for y in (one, other):
        found = y.stride() if to.name == "torch" else [s // 4 for s in memoryview(y).strides]
        assert tuple(found) == (12, 4, 1)


@pytest.mark.parametrize("view", ["slice", "stride"])
@pytest.mark.parametrize("dtype", DTYPES[:3])
def test_poison_lies_all_around_a_view(view, dtype):
    x = np.ones((3, 4), getattr(ml_dtypes, dtype, dtype))
    base = lay(x, view, arrays("numpy")).base
    assert np.isnan(f64(base)).sum() == base.size - x.size > 0
    assert f64(base).ravel()[[0 if view == "slice" else 1, -1]].tolist() != [1, 1]


@pytest.mark.parametrize("dtype", DTYPES[:3])
def test_arrays_of_torch_are_made_where_the_subject_makes_its_own(dtype):
    torch = pytest.importorskip("torch")
    kind, x = arrays("torch"), sample(dtype)
    assert (kind.device(), kind.from_numpy(x).device.type) == ("cpu", "cpu")
    with torch.device("meta"):
        made = kind.from_numpy(x)
        assert (kind.device(), made.device.type, str(made.dtype)) == ("meta", "meta", f"torch.{dtype}")


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
