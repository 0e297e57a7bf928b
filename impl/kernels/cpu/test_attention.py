"""Attention on the CPU, path by path: within the contracts' budgets on fuzzed shapes, strides and alignments, clean under
sanitizers, and for ARM in an emulator; and what the contracts cannot see of it.

The kernels run in programs of their own (attention_driver.cpp), so that each path is tested wherever its code can run.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from inferspec import compiler
from inferspec.impl.attention import scaled_dot_product_attention
from inferspec.impl.kernels.cpu import attention, library
from inferspec.impl.kernels.cpu.test_builds import (
    ALL_PATHS,
    CROSS_COMPILER,
    DTYPES,
    EMULATOR,
    PATHS,
    SANITIZERS,
    without_compiler,
)
from inferspec.impl.paged_attention import paged_attention
from inferspec.spec.attention import ScaledDotProductAttention
from inferspec.spec.flash_attention import FlashAttention
from inferspec.spec.numerics import Precision, f64, largest, numpy_dtype, operations, round_to, unit_roundoff, within
from inferspec.spec.paged_attention import PagedAttention

DRIVER = Path(__file__).resolve().parent / "attention_driver.cpp"
KERNELS = ("attention.cpp", "amx.cpp")
DENSE, PAGED, EXPONENTIAL = range(3)
CASES = 60
"""Calls of a build."""


# The programs: a build of the kernels for a path.


@dataclass(frozen=True)
class Build:
    path: str
    sanitized: bool = False

    def __str__(self) -> str:
        return f"{self.path}-sanitized" if self.sanitized else self.path

    @property
    def missing(self) -> str:
        """Why it cannot run here; empty where it can."""
        if self.path not in library.paths() and not self.emulated:
            return f"this processor has no {self.path}"
        if self.emulated:
            return "" if all(map(shutil.which, (CROSS_COMPILER, EMULATOR))) else f"no {CROSS_COMPILER} or {EMULATOR}"
        return without_compiler() if self.path in PATHS else f"{ALL_PATHS}=1 tests it"

    @property
    def emulated(self) -> bool:
        return self.path == "neon" and "neon" not in library.paths()

    def run(self, given: bytes) -> bytes:
        """What the program answers."""
        command = [*([EMULATOR] if self.emulated else []), str(_program(self))]
        done = subprocess.run(command, input=given, capture_output=True, timeout=1800)
        assert done.returncode == 0, done.stderr.decode(errors="replace")[-4000:]
        return done.stdout


BUILDS = (
    *(Build(path) for path in library.PATHS),
    *(Build(path, sanitized=True) for path in ("amx", "avx512", "avx2", "portable")),
)


@cache
def _program(build: Build) -> Path:
    units = {name: text for name, text in library.units().items() if name in KERNELS}
    units[DRIVER.name] = DRIVER.read_text(encoding="utf-8")
    extra = ("-O1", "-g", *SANITIZERS) if build.sanitized else ()
    with pytest.MonkeyPatch.context() as patch:
        if build.emulated:
            patch.setenv("METALSIM_CXX", CROSS_COMPILER)
        return compiler.program(
            units,
            [*library.flags(build.path), *extra],
            includes=[library.SOURCE],
            link_flags=["-pthread", *extra, *(["-static"] if build.emulated else [])],
            label=f"attention_{build}",
        )


@pytest.fixture(params=BUILDS, ids=str)
def build(request: pytest.FixtureRequest) -> Build:
    if request.param.missing:
        pytest.skip(request.param.missing)
    return request.param


# What they are given.


def strided(values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """The same values in memory of any strides, with gaps of NaN: axes in any order, steps of either sign, any start."""
    order = random.permutation(values.ndim) if random.random() < 0.6 else np.arange(values.ndim)
    steps = random.choice([1, 1, 1, 2, -1, -3], values.ndim)
    if values.ndim and random.random() < 0.5:
        steps[order[-1]] = 1
    sizes = [values.shape[axis] * abs(steps[axis]) + int(random.integers(0, 2)) for axis in order]
    start = int(random.integers(0, 9))
    gap = np.ones((), bool) if values.dtype == bool else round_to(np.asarray(np.nan), values.dtype.name)
    memory = np.full(start + int(np.prod(sizes)), gap)
    view = memory[start:].reshape(sizes).transpose(np.argsort(order))
    view = view[(..., *(slice(None, None, step) for step in steps))]
    view = view[(..., *(slice(0, size) for size in values.shape))]
    view[...] = values
    return view


def memory_of(view: np.ndarray) -> np.ndarray:
    """The array that owns a view's memory."""
    while isinstance(view.base, np.ndarray):
        view = view.base
    return view


def packed(view: np.ndarray, dims: int) -> bytes:
    """An array as the program reads it; of fewer dims than `dims`, broadcast."""
    memory = memory_of(view)
    first = view.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
    strides = [
        0 if size == 1 else stride // view.itemsize for size, stride in zip(view.shape, view.strides, strict=True)
    ]
    dtype = 0 if view.dtype == bool else DTYPES.index(view.dtype.name)
    return integers(dtype, first, *[0] * (dims - view.ndim), *strides, memory.nbytes) + memory.tobytes()


def integers(*values: int) -> bytes:
    return np.array(values, np.int64).tobytes()


def normal(shape: Sequence[int], random: np.random.Generator, amplitude: float = 1.0) -> np.ndarray:
    return round_to(random.normal(size=shape) * amplitude, str(random.choice(DTYPES)))


def lengths(random: np.random.Generator) -> tuple[int, int]:
    """Queries and keys beside the sizes of tiles, panels, blocks and parts."""
    near = int(random.choice([8, 16, 32, 64, 128, 256]) + random.integers(-1, 2))
    keys = int(random.choice([1, 3, near, 130, 511, 513, 1025]))
    queries = int(random.choice([1, 1, 2, 3, 9, near])) if keys < 500 else int(random.choice([1, 2, 7, 33]))
    return queries, keys


def dense_call(random: np.random.Generator) -> Mapping[str, Any]:
    leading = tuple(random.integers(1, 3, random.integers(0, 3)).tolist())
    heads, ratio = int(random.integers(1, 3)), int(random.choice([1, 2, 3, 7, 8, 9]))
    features = int(random.choice([1, 3, 8, 16, 33, 40, 64, 80, 128, 256, 300]))
    queries, keys = lengths(random)
    full = (*leading, heads * ratio, queries, keys)
    call: dict[str, Any] = {"query": normal((*full[:-1], features), random, random.choice([1.0, 4.0]))}
    call |= {name: normal((*leading, heads, keys, features), random) for name in ("key", "value")}
    call["mask"] = {
        "none": lambda: None,
        "causal": lambda: "causal",
        "bool": lambda: np.asarray(random.random(_broadcast(full, random)) < random.choice([0.1, 0.7])),
        "added": lambda: hiding(normal(_broadcast(full, random), random), random),
    }[str(random.choice(["none", "causal", "causal", "bool", "added"]))]()
    call["scale"] = float(random.choice([features**-0.5, -0.3, 0.0, 2.0]))
    return call


def _broadcast(full: Sequence[int], random: np.random.Generator) -> tuple[int, ...]:
    """A shape that broadcasts to the full one."""
    kept = [int(size) if random.random() < 0.7 else 1 for size in full]
    return tuple(kept[random.integers(0, len(full) + 1) :])


def hiding(mask: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """The mask, with keys hidden by -inf or by the lowest number."""
    hidden = round_to(np.asarray(random.choice([-np.inf, -largest(mask.dtype.name)])), mask.dtype.name)
    return np.where(random.random(mask.shape) < 0.3, hidden, mask)


def paged_call(random: np.random.Generator) -> Mapping[str, Any]:
    """NaN wherever nothing was written, and in the table no page where none is in use."""
    batch, heads, ratio = (int(random.choice(some)) for some in ([1, 2, 3], [1, 2], [1, 2, 7]))
    features, page_size = int(random.choice([3, 8, 40, 64, 128])), int(random.choice([1, 3, 8, 16, 100]))
    queries, _ = lengths(random)
    queries = min(queries, 70)
    lens = np.array([int(random.choice([0, 1, queries, page_size, 2 * page_size + 1, 530])) for _ in range(batch)])
    used = -(-lens // page_size)
    pages = int(used.sum()) + 3
    dtypes = [numpy_dtype(str(random.choice(DTYPES))) for _ in range(2)]
    pools = [np.full((pages, heads, page_size, features), np.nan).astype(dtype) for dtype in dtypes]
    table = np.full((batch, int(used.max()) + 2), 2**40, np.int64)
    order = iter(random.permutation(pages).tolist())
    for row, length in enumerate(lens.tolist()):
        table[row, : used[row]] = [next(order) for _ in range(used[row])]
        for pool in pools:
            for token in range(length):
                place = table[row, token // page_size], slice(None), token % page_size
                pool[place] = random.normal(size=(heads, features)).astype(pool.dtype)
    return {
        "query": normal((batch, heads * ratio, queries, features), random),
        "key_pages": pools[0],
        "value_pages": pools[1],
        "block_table": table,
        "context_lens": lens.astype(np.int64),
        "page_size": page_size,
        "scale": float(random.choice([features**-0.5, -0.3, 2.0])),
        "mask": "causal" if random.random() < 0.6 else None,
    }


def written(call: Mapping[str, Any], random: np.random.Generator) -> bytes:
    """A call as the program reads it, its arrays in memory of any strides."""
    views = {name: strided(x, random) for name, x in call.items() if isinstance(x, np.ndarray) and x.dtype != np.int64}
    query, threads = call["query"], int(random.integers(1, 4))
    if "key_pages" in call:
        kind = attention.CAUSAL if call["mask"] else attention.NO_MASK
        pool = call["key_pages"].shape
        sizes = (*query.shape[:2], pool[1], *query.shape[2:], pool[2], call["block_table"].shape[1])
        tables = call["block_table"].tobytes() + call["context_lens"].tobytes()
        head = integers(PAGED, threads) + np.float64(call["scale"]).tobytes() + integers(kind, *sizes)
        return head + b"".join(packed(views[name], 4) for name in ("query", "key_pages", "value_pages")) + tables
    mask, dims = call["mask"], query.ndim
    kind = attention.CAUSAL if isinstance(mask, str) else attention.NO_MASK
    if isinstance(mask, np.ndarray):
        kind = attention.BOOLEAN if mask.dtype == bool else attention.ADDITIVE
    sizes = (query.shape[-3], call["key"].shape[-3], query.shape[-2], *call["key"].shape[-2:])
    head = integers(DENSE, threads) + np.float64(call["scale"]).tobytes()
    head += integers(kind, dims - 3, *query.shape[:-3], *sizes)
    arrays = [views[name] for name in ("query", "key", "value")]
    arrays.append(views.get("mask", np.zeros((), np.float32)))
    return head + b"".join(packed(array, dims) for array in arrays)


def answers(calls: Sequence[Mapping[str, Any]], given: bytes) -> Iterator[tuple[Mapping[str, Any], np.ndarray]]:
    """Each call and what a program answered to it."""
    at = 0
    for call in calls:
        query = call["query"]
        yield call, np.frombuffer(given, query.dtype, query.size, at).reshape(query.shape)
        at += query.nbytes
    assert at == len(given)


def operation(call: Mapping[str, Any]) -> ScaledDotProductAttention | PagedAttention:
    return PagedAttention() if "key_pages" in call else FlashAttention()


def test_every_path_is_within_the_budget_on_any_shapes_strides_and_alignments(build: Build) -> None:
    random = np.random.default_rng(7)
    calls = [(paged_call if number % 3 == 2 else dense_call)(random) for number in range(CASES)]
    given = integers(len(calls)) + b"".join(written(call, random) for call in calls)
    for call, got in answers(calls, build.run(given)):
        wanted = operation(call).evaluate(operation(call).bind(call), Precision.FLOAT32)
        within = np.abs(f64(got) - wanted.value) <= wanted.budget
        shapes = {name: (x.shape, x.dtype.name) if isinstance(x, np.ndarray) else x for name, x in call.items()}
        assert within.all(), (shapes, np.argwhere(~within)[:5])


EXPONENT_ULPS = 2
"""What vector.h says of exp."""


def test_exp_is_within_its_bound_for_floats_of_every_exponent(build: Build) -> None:
    bits = np.random.default_rng(0).integers(0, 2**32, 2_000_000 if not build.emulated else 400_000, dtype=np.uint32)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -104.0, -103.9, 88.72, 88.73, 89.0], np.float32)
    near = np.random.default_rng(1).uniform(-104, 89, len(bits) // 2).astype(np.float32)
    x = np.concatenate([special, bits.view(np.float32), near])
    given = integers(1, EXPONENTIAL, x.nbytes) + x.tobytes()
    got = np.frombuffer(build.run(given), np.float32)
    with np.errstate(all="ignore"):
        exact = np.exp(x.astype(np.float64))
        rounded = exact.astype(np.float32)
        # Subnormal results are as far apart as the smallest of them.
        apart = np.abs(got.astype(np.float64) - exact) / np.maximum(np.spacing(np.abs(rounded)), 2.0**-149)
    finite = np.isfinite(rounded) & (rounded < np.float32(2.0**127))
    assert np.array_equal(np.isnan(got), np.isnan(x))
    assert apart[finite].max() <= EXPONENT_ULPS
    assert (got[rounded == np.inf] == np.inf).all()
    assert got[0] == got[1] == 1
    assert got[3] == 0


# What MLX sees.


@pytest.mark.usefixtures("cpu_kernels")
@pytest.mark.parametrize("shape", [(1, 6, 1, 3000), (2, 4, 70, 300), (1, 2, 9, 1100)], ids=str)
def test_the_number_of_threads_changes_no_bit(shape: tuple[int, int, int, int]) -> None:
    batch, heads, queries, keys = shape
    query = mx.random.normal((batch, heads, queries, 64))
    key, value = (mx.random.normal((batch, heads // 2, keys, 64)) for _ in range(2))
    one, *more = (attention.dense(query, key, value, 0.1, "causal", _never, threads=n) for n in (1, 2, 3, 8))
    assert all(mx.array_equal(one, other) for other in more)


def _never(*_: Any) -> mx.array:
    raise AssertionError("MLX's operations took the kernel's place")


@pytest.mark.usefixtures("cpu_kernels")
def test_attention_is_differentiated_compiled_and_vectorised_as_mlx_operations_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mx.random.seed(1)
    query, key, value = (mx.random.normal((2, heads, 5, 16)) for heads in (4, 2, 2))
    masks: dict[str, Any] = {
        "none": None,
        "causal": "causal",
        "bool": (mx.random.uniform(shape=(5, 5)) < 0.7) | mx.eye(5).astype(mx.bool_),
        "added": mx.random.normal((4, 5, 5)),
    }
    uses = {
        "grad": lambda attend: mx.grad(lambda *arrays: attend(*arrays).square().sum(), argnums=(0, 1, 2)),
        "compile": mx.compile,
        "vmap": lambda attend: mx.vmap(attend),
    }
    for mask_name, mask in masks.items():
        for use_name, use in uses.items():

            def attend(q: mx.array, k: mx.array, v: mx.array, mask: Any = mask) -> mx.array:
                return scaled_dot_product_attention(q, k, v, mask=mask)

            by_kernel = use(attend)(query, key, value)
            with monkeypatch.context() as patch:
                patch.setenv("INFERSPEC_CPU", library.OFF)
                by_mlx = use(attend)(query, key, value)
            pairs = zip(*((x if isinstance(x, tuple) else (x,)) for x in (by_kernel, by_mlx)), strict=True)
            assert all(_alike(a, b) for a, b in pairs), (mask_name, use_name)


def _alike(a: mx.array, b: mx.array) -> bool:
    """Two honest results of some dozen float32 operations."""
    one, other = np.array(a, np.float64), np.array(b, np.float64)
    return bool(within(np.abs(one - other), operations(unit_roundoff("float32"), 256) * (1 + np.abs(other))).all())


@pytest.mark.usefixtures("cpu_kernels")
def test_paged_attention_has_gradients_too() -> None:
    query, pools = mx.random.normal((1, 2, 3, 8)), mx.random.normal((2, 4, 1, 2, 8))
    table, lens = mx.array([[2, 0]]), mx.array([4])

    def paged(q: mx.array, k: mx.array, v: mx.array) -> mx.array:
        return paged_attention(q, k, v, table, lens, page_size=2).square().sum()

    def gathered(q: mx.array, k: mx.array, v: mx.array) -> mx.array:
        keys, values = (x[mx.array([2, 0])].swapaxes(0, 1).reshape(1, 1, 4, 8) for x in (k, v))
        return scaled_dot_product_attention(q, keys, values, mask="causal").square().sum()

    for a, b in zip(*(mx.grad(f, argnums=(0, 1, 2))(query, *pools) for f in (paged, gathered)), strict=True):
        assert _alike(a, b)


@pytest.mark.usefixtures("cpu_kernels")
def test_nothing_of_the_pool_is_copied() -> None:
    pools = [mx.random.normal((512, 2, 16, 64)) for _ in range(2)]
    query, table, lens = mx.random.normal((1, 2, 1, 64)), mx.arange(512)[None], mx.array([8000])
    mx.eval(query, table, lens, *pools)
    mx.synchronize()
    before = mx.get_active_memory()
    mx.reset_peak_memory()
    mx.eval(paged_attention(query, *pools, table, lens, page_size=16))
    assert mx.get_peak_memory() - before < pools[0].nbytes / 100
