"""Builds of the CPU kernels that Python does not load: under the sanitizers, and for a processor that is not here.

A driver runs fuzzed calls: ragged shapes, strides, arrays that end where their memory ends, every mixture of dtypes, NaN and
infinities. Each result is held against the float64 oracle, within the contract's budget.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from inferspec import compiler
from inferspec.impl.kernels.cpu import library
from inferspec.spec.contract import Operation
from inferspec.spec.linear import Linear
from inferspec.spec.numerics import Precision, f64, round_to, within
from inferspec.spec.quantization import QuantizedEmbedding, QuantizedMatmul

DTYPES = ("float32", "float16", "bfloat16")
PRODUCT, ROWS, DENSE = range(3)
POISON = 0xA5
DRIVER = Path(__file__).resolve().parent / "driver.cpp"
CALLS = 120
SECONDS = 1800

# Each path is a minute of compiling: without this variable the best path and the portable one stand for all.
ALL_PATHS = "INFERSPEC_ALL_PATHS"
PATHS = library.paths() if os.environ.get(ALL_PATHS) else tuple(dict.fromkeys((library.paths()[0], "portable")))

SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
CROSS_COMPILER, EMULATOR = "aarch64-linux-gnu-g++", "qemu-aarch64"


@dataclass(frozen=True)
class Case:
    """A call for the driver, and what its result must be."""

    kind: int
    numbers: Sequence[int]
    arrays: Sequence[np.ndarray]
    operation: type[Operation]
    arguments: Mapping[str, Any]
    dtype: str
    shape: tuple[int, int]
    stride: int

    @property
    def result_bytes(self) -> int:
        """Of the rows at their stride, to the end of the last one."""
        rows, columns = self.shape
        return ((rows - 1) * self.stride + columns) * np.dtype(numpy_dtype(self.dtype)).itemsize

    def written(self) -> bytes:
        """As the driver reads it."""
        numbers = [*self.numbers, self.result_bytes]
        parts = [struct.pack(f"{3 + len(numbers)}q", self.kind, len(numbers), len(self.arrays), *numbers)]
        for array in self.arrays:
            parts += [struct.pack("2q", array.nbytes, array.itemsize), array.tobytes()]
        return b"".join(parts)

    def judge(self, result: bytes) -> None:
        """Within the budget, NaN and infinities in their places, and nothing written between the rows."""
        got = np.frombuffer(result, numpy_dtype(self.dtype))
        rows, columns = self.shape
        padded = np.concatenate(
            [got, np.frombuffer(bytes([POISON]) * (rows * self.stride - len(got)) * got.itemsize, got.dtype)]
        )
        lines = padded.reshape(rows, self.stride)
        gaps = np.ascontiguousarray(lines[:, columns:]).view(np.uint8)
        assert np.all(gaps == POISON), f"{self}: written beside the rows"
        answer = self.operation().evaluate(self.operation().bind(self.arguments), Precision.FLOAT32)
        value = round_to(f64(lines[:, :columns]), "float64")
        expected = answer.value.reshape(self.shape)
        finite = np.isfinite(expected)
        assert np.array_equal(value[~finite], expected[~finite], equal_nan=True), f"{self}: NaN or infinity misplaced"
        error = np.abs(value[finite] - expected[finite])
        assert np.all(within(error, answer.budget.reshape(self.shape)[finite])), f"{self}: wrong"

    def __str__(self) -> str:
        kind = ("product", "rows", "dense")[self.kind]
        return f"{kind} {self.shape} {self.dtype} of {[(a.dtype.name, a.shape) for a in self.arrays]}, numbers {self.numbers}"


def numpy_dtype(name: str) -> Any:
    return ml_dtypes.bfloat16 if name == "bfloat16" else name


class Fuzz:
    """Random calls."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def one_of(self, *values: Any) -> Any:
        return values[self.random.integers(len(values))]

    def array(self, *shape: int, dtype: str) -> np.ndarray:
        return round_to(self.random.normal(size=shape), dtype)

    def strided(self, rows: int, columns: int, dtype: str, gap: int) -> np.ndarray:
        """Rows `gap` apart beyond their length, as one run of memory that ends with the last row; NaN between them."""
        lines = np.full((rows, columns + gap), np.nan, numpy_dtype(dtype))
        lines[:, :columns] = self.array(rows, columns, dtype=dtype)
        if self.one_of(True, False, False):
            lines[self.random.integers(rows), self.random.integers(columns)] = self.one_of(np.nan, np.inf, -np.inf)
        return lines.reshape(-1)[: rows * (columns + gap) - gap]

    def quantized(self) -> tuple[list[np.ndarray], list[int], dict[str, Any]]:
        bits, size = self.one_of(4, 4, 8), self.one_of(32, 64, 128)
        outputs, groups = int(self.random.integers(1, 70)), int(self.random.integers(1, 6))
        names = [self.one_of(*DTYPES), self.one_of(*DTYPES)]
        packed = self.random.integers(0, 2**32, (outputs, groups * size * bits // 32), dtype=np.uint32)
        scales, biases = (self.array(outputs, groups, dtype=name) for name in names)
        if self.one_of(True, False, False, False):
            scales[self.random.integers(outputs), self.random.integers(groups)] = np.nan
        numbers = [*map(DTYPES.index, names), outputs, groups * size, size, bits]
        grid = {"packed": packed, "scales": scales, "biases": biases, "group_size": size, "bits": bits}
        return [packed, scales, biases], numbers, grid

    def product(self) -> Case:
        parts, numbers, grid = self.quantized()
        transpose, dtype = self.one_of(True, True, False), self.one_of(*DTYPES)
        summed, kept = (numbers[3], numbers[2]) if transpose else (numbers[2], numbers[3])
        rows, gap, y_gap = self.one_of(1, 2, 3, 5, 7, 8, 9, 16, 17, 33, 40), self.one_of(0, 0, 3), self.one_of(0, 0, 5)
        x = self.strided(rows, summed, dtype, gap)
        number = DTYPES.index(dtype)
        given = [number, rows, summed + gap, *numbers, int(transpose), number, kept + y_gap, self.one_of(1, 3)]
        arguments = {**grid, "x": lines_of(x, rows, summed, gap), "transpose": transpose}
        return Case(PRODUCT, given, [x, *parts], QuantizedMatmul, arguments, dtype, (rows, kept), kept + y_gap)

    def rows(self) -> Case:
        parts, numbers, grid = self.quantized()
        tokens = self.random.integers(0, numbers[2], self.one_of(1, 3, 9)).astype(np.int64)
        dtype = grid["scales"].dtype.name
        given = [len(tokens), *numbers, DTYPES.index(dtype), self.one_of(1, 3)]
        shape = (len(tokens), numbers[3])
        return Case(
            ROWS, given, [tokens, *parts], QuantizedEmbedding, {**grid, "tokens": tokens}, dtype, shape, shape[1]
        )

    def dense(self) -> Case:
        rows, (depth, outputs) = self.one_of(1, 3, 4, 9, 16, 35, 70), map(int, self.random.integers(1, 300, 2))
        depth += self.one_of(0, 0, 0, 1000, 2000)
        names = [self.one_of(*DTYPES) for _ in range(3)]
        gap, w_gap, y_gap = self.one_of(0, 3), self.one_of(0, 1), self.one_of(0, 5)
        x, weight = self.strided(rows, depth, names[0], gap), self.strided(outputs, depth, names[1], w_gap)
        bias = self.array(outputs, dtype=names[2])
        numbers = list(map(DTYPES.index, names))
        given = [numbers[0], rows, depth + gap, numbers[1], outputs, depth, depth + w_gap, numbers[2], numbers[0]]
        arguments = {
            "x": lines_of(x, rows, depth, gap),
            "weight": lines_of(weight, outputs, depth, w_gap),
            "bias": bias,
        }
        shape, stride = (rows, outputs), outputs + y_gap
        return Case(
            DENSE, [*given, stride, self.one_of(1, 3)], [x, weight, bias], Linear, arguments, names[0], shape, stride
        )


def lines_of(memory: np.ndarray, rows: int, columns: int, gap: int) -> np.ndarray:
    """The rows of a strided array, copied."""
    return np.concatenate([memory, np.zeros(gap, memory.dtype)]).reshape(rows, columns + gap)[:, :columns].copy()


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    fuzz = Fuzz(seed=7)
    return [fuzz.one_of(fuzz.product, fuzz.product, fuzz.rows, fuzz.dense)() for _ in range(CALLS)]


def run(command: Sequence[str | Path], cases: Sequence[Case], folder: Path) -> Iterator[bytes]:
    """What the driver gives for each case."""
    calls, results = folder / "calls", folder / "results"
    calls.write_bytes(b"".join(case.written() for case in cases))
    done = subprocess.run([*command, calls, results], capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr[-3000:]
    memory, at = results.read_bytes(), 0
    for case in cases:
        yield memory[at : at + case.result_bytes]
        at += case.result_bytes
    assert at == len(memory)


def build(path: str, flags: Sequence[str], link_flags: Sequence[str]) -> Path:
    """The driver and all kernels, for a path."""
    units = {**library.units(), DRIVER.name: DRIVER.read_text(encoding="utf-8")}
    return compiler.program(
        units,
        [*library.flags(path), *flags],
        includes=[library.SOURCE],
        link_flags=["-pthread", *link_flags],
        label=f"inferspec_cpu_driver_{path}",
    )


def without_compiler() -> str:
    try:
        compiler.compiler()
    except compiler.NoCompiler as error:
        return str(error)
    return ""


@pytest.mark.skipif(bool(without_compiler()), reason=without_compiler())
@pytest.mark.parametrize("path", PATHS)
def test_no_call_reads_or_writes_past_its_arrays_or_does_what_is_undefined(path, cases, tmp_path):
    driver = build(path, ["-O0", *SANITIZERS], SANITIZERS)
    for case, result in zip(cases, run([driver], cases, tmp_path), strict=True):
        case.judge(result)


@pytest.mark.skipif(not shutil.which(CROSS_COMPILER), reason=f"there is no {CROSS_COMPILER}")
@pytest.mark.skipif(not shutil.which(EMULATOR), reason=f"there is no {EMULATOR}")
def test_neon_kernels_are_right_on_an_emulated_arm_processor(cases, tmp_path, monkeypatch):
    monkeypatch.setenv("METALSIM_CXX", CROSS_COMPILER)
    driver = build("neon", [], ["-static"])
    for case, result in zip(cases, run([EMULATOR, driver], cases, tmp_path), strict=True):
        case.judge(result)


def test_the_sanitizers_see_a_read_past_an_array(cases, tmp_path):
    """The driver's memory ends where an array does: what the tests above rely on."""
    if without_compiler():
        pytest.skip(without_compiler())
    case = next(case for case in cases if case.kind == DENSE)
    short = Case(**{**vars(case), "arrays": [case.arrays[0], case.arrays[1][:-1], case.arrays[2]]})
    driver = build("portable", ["-O0", *SANITIZERS], SANITIZERS)
    with pytest.raises(AssertionError, match="heap-buffer-overflow"):
        list(run([driver], [short], tmp_path))


def test_all_files_of_the_kernels_are_data_of_the_package():
    """setuptools takes what pyproject.toml lists: the suffixes here are among them."""
    text = (Path(os.path.realpath(library.SOURCE)).parents[3] / "pyproject.toml").read_text(encoding="utf-8")
    for file in [*library.SOURCE.iterdir(), DRIVER]:
        assert f'"*{file.suffix}"' in text, file
