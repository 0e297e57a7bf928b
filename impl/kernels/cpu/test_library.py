"""Which path is taken, what a user is told who cannot have one, and what every path makes of the dtypes."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import ml_dtypes
import mlx.core as mx
import numpy as np
import pytest

from inferspec.impl.kernels import cpu
from inferspec.impl.kernels.cpu import dense, library
from inferspec.impl.kernels.cpu.test_builds import PATHS
from inferspec.impl.quantization import quantize, quantized_matmul

pytestmark = pytest.mark.usefixtures("on_the_cpu")


@pytest.fixture
def fresh(monkeypatch):
    """Without compiler, as on a machine where nothing was built yet."""
    monkeypatch.setenv("METALSIM_CXX", "no-such-compiler")
    for function in (library._loaded, library._found):
        function.cache_clear()
    yield
    for function in (library._loaded, library._found):
        function.cache_clear()


def test_the_best_path_is_taken_and_a_portable_one_is_everywhere(monkeypatch):
    monkeypatch.delenv("INFERSPEC_CPU", raising=False)
    assert cpu.path() == cpu.paths()[0]
    assert cpu.paths()[-1] == "portable"


@pytest.mark.parametrize("path", PATHS)
def test_a_path_can_be_forced(path, monkeypatch):
    monkeypatch.setenv("INFERSPEC_CPU", path)
    assert cpu.path() == path


def test_a_path_that_does_not_exist_is_refused_by_name(monkeypatch):
    monkeypatch.setenv("INFERSPEC_CPU", "sse9")
    with pytest.raises(ValueError, match="INFERSPEC_CPU is 'sse9'; it takes amx, avx512, avx2, neon, portable or off"):
        cpu.path()


def test_a_path_of_another_processor_is_refused(monkeypatch):
    missing = next(name for name in ("neon", "avx2") if name not in cpu.paths())
    monkeypatch.setenv("INFERSPEC_CPU", missing)
    with pytest.raises(ValueError, match=f"INFERSPEC_CPU is '{missing}', which this processor does not have"):
        cpu.path()


def test_off_takes_mlx_without_a_warning(monkeypatch):
    monkeypatch.setenv("INFERSPEC_CPU", "off")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not cpu.available()
    assert cpu.why_not() == "INFERSPEC_CPU is off"


def test_without_a_compiler_one_warning_says_how_to_get_one_and_products_are_right(fresh):
    weights = mx.array(np.arange(-64, 64, dtype=np.float32).reshape(2, 64))
    parts = quantize(weights, group_size=64)
    x = mx.ones((1, 64))
    with pytest.warns(UserWarning, match="install one") as told:
        products = [quantized_matmul(x, *parts, group_size=64) for _ in range(2)]
    assert len(told) == 1
    restored = mx.dequantize(*parts, group_size=64, bits=4)
    assert all(mx.array_equal(product, restored.sum(axis=-1)[None]) for product in products)


@pytest.mark.parametrize(("named", "shared", "threads"), [("3", False, 3), ("3", True, 3), ("", True, 1)])
def test_threads_are_those_named_and_one_beside_other_workers(named, shared, threads, monkeypatch):
    monkeypatch.setenv("INFERSPEC_THREADS", named)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    if shared:
        monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    assert cpu.threads() == threads
    assert cpu.threads(5) == 5


def test_threads_are_all_cores_when_nothing_is_said(monkeypatch):
    for name in ("INFERSPEC_THREADS", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)
    assert 1 <= cpu.threads() <= (os.cpu_count() or 1)


@pytest.mark.parametrize("bad", ["0", "-1", "many", "1.5"])
def test_a_bad_number_of_threads_is_refused_by_name(bad, monkeypatch):
    monkeypatch.setenv("INFERSPEC_THREADS", bad)
    with pytest.raises(ValueError, match="INFERSPEC_THREADS"):
        cpu.threads()


@pytest.mark.usefixtures("cpu_kernels")
@pytest.mark.parametrize("path", PATHS)
def test_every_half_number_is_read_and_written_as_itself(path, monkeypatch):
    monkeypatch.setenv("INFERSPEC_CPU", path)
    for name, numpy_dtype in (("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16)):
        every = np.arange(2**16, dtype=np.uint16).view(numpy_dtype)
        weights = mx.array(np.arange(2**16, dtype=np.uint16)).view(getattr(mx, name))[:, None]
        wide = np.array(dense.launch(mx.ones((1, 1)), weights, None, mx.float32))[0]
        assert np.array_equal(wide, every.astype(np.float32), equal_nan=True)
        back = dense.launch(mx.ones((1, 1)), mx.array(wide)[:, None], None, getattr(mx, name))[0]
        assert np.array_equal(np.array(back.astype(mx.float32)), wide, equal_nan=True)


@pytest.mark.usefixtures("cpu_kernels")
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("name", "dropped"), [("float16", 13), ("bfloat16", 16)])
def test_numbers_are_rounded_to_the_nearest_half_and_ties_to_even(path, name, dropped, monkeypatch):
    monkeypatch.setenv("INFERSPEC_CPU", path)
    numpy_dtype = np.float16 if name == "float16" else ml_dtypes.bfloat16
    every = np.arange(2**16, dtype=np.uint16).view(numpy_dtype).astype(np.float32)
    exact = every[np.isfinite(every)].view(np.uint32).astype(np.int64)
    half = 1 << (dropped - 1)
    beside = (
        np.concatenate([exact + offset for offset in (half - 1, half, half + 1)]).astype(np.uint32).view(np.float32)
    )
    got = dense.launch(mx.ones((1, 1)), mx.array(beside)[:, None], None, getattr(mx, name))[0]
    with np.errstate(over="ignore"):
        expected = beside.astype(numpy_dtype).astype(np.float32)
    assert np.array_equal(np.array(got.astype(mx.float32)), expected, equal_nan=True)


@pytest.mark.usefixtures("cpu_kernels")
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16], ids=str)
@pytest.mark.parametrize("features", [5, 33, 1025, 2100])
def test_a_row_of_many_is_to_the_last_bit_what_it_is_alone(path, dtype, features, monkeypatch):
    monkeypatch.setenv("INFERSPEC_CPU", path)
    random = np.random.default_rng(features)
    x, weight = (mx.array(random.normal(size=(n, features)).astype(np.float32)).astype(dtype) for n in (70, 53))
    alone = mx.concatenate([dense.launch(row[None], weight, None, mx.float32) for row in x])
    for rows in (2, 4, 7, 8, 9, 64, 65, 70):
        assert mx.array_equal(dense.launch(x[:rows], weight, None, mx.float32), alone[:rows]), rows


@pytest.mark.usefixtures("cpu_kernels")
def test_threads_give_what_one_gives_and_survive_a_fork():
    script = """
import os, mlx.core as mx, numpy as np
from inferspec.impl.kernels.cpu import dense
mx.set_default_device(mx.cpu)
x, w = (mx.array(np.random.default_rng(n).normal(size=(40, 3000)).astype(np.float32)) for n in range(2))
one = np.array(dense.launch(x, w, None, mx.float32, threads=1))
def same(): return np.array_equal(np.array(dense.launch(x, w, None, mx.float32, threads=3)), one)
assert same()
child = os.fork()
if not child:
    os._exit(0 if same() and same() else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert same()
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, timeout=1800)
