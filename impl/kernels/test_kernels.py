"""The kernels in the simulator: within the contracts' budgets, clean in check mode on ragged shapes, no barrier too many.

What these tests show is what the sources say on an exact model of threads, SIMD-groups and barriers; that a device runs
them, the conformance suites show on one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import mlx.core as mx
import numpy as np
import pytest

from inferspec.compiler import compiler
from inferspec.impl import kernels
from inferspec.impl.kernels import attention, metal
from inferspec.impl.kernels import quantized as quantized_launcher
from inferspec.spec import contracts
from inferspec.spec.contract import Operation
from inferspec.spec.numerics import Precision, f64, round_to
from inferspec.tools import metalsim

Arguments = Mapping[str, Any]
Launched = tuple[metalsim.runtime.Launch, metalsim.runtime.Outcome]

DTYPES = ("float32", "float16", "bfloat16")
SCHEDULES = {
    "forward": metalsim.Schedule("forward"),
    "reverse": metalsim.Schedule("reverse", reduction="backward", groups="reverse"),
    "random": metalsim.Schedule("random", seed=1, reduction="halves", groups="random"),
}
MAX_THREADGROUP_BYTES = 32768
BARRIER = re.compile(r"^ *(?:threadgroup|simdgroup)_barrier\([^;]*\);\n", re.MULTILINE)


def _compiler_missing() -> str:
    try:
        compiler()
    except metalsim.NoCompiler as error:
        return str(error)
    return ""


simulated = pytest.mark.skipif(bool(_compiler_missing()), reason=_compiler_missing())


@pytest.fixture
def simulator() -> Iterator[list[Launched]]:
    """Metal kernels run in the simulator; the launches of the test, as they come."""
    launches: list[Launched] = []
    with metalsim.installed(), metalsim.settings(on_launch=lambda *launched: launches.append(launched)):
        yield launches


# What the kernels are given: shapes beside the multiples of 8, 32 and of tiles.


@dataclass(frozen=True)
class Case:
    """A call and the kernel that it must run."""

    kernel: str
    operation: str
    arguments: Callable[[str], Arguments]
    shapes: str

    def __str__(self) -> str:
        return f"{self.kernel}-{self.shapes}"


def random(*shape: int, dtype: str, seed: int = 0) -> np.ndarray:
    """Normal numbers in the dtype."""
    return round_to(np.random.default_rng([seed, *shape]).normal(size=shape), dtype)


def rms_norm(rows: tuple[int, ...], width: int) -> Case:
    def arguments(dtype: str) -> Arguments:
        x, weight = random(*rows, width, dtype=dtype), random(width, dtype=dtype, seed=1)
        return {"dims": width, "weight": weight, "eps": 1e-5, "x": x}

    return Case("rms_norm", "RMSNorm", arguments, f"{rows}x{width}")


def rope(batch: int, length: int, heads: int, features: int, dims: int, offset: Any, traditional: bool) -> Case:
    def arguments(dtype: str) -> Arguments:
        options = {"dims": dims, "max_positions": 2**17 + length, "base": 10000, "traditional": traditional}
        return {**options, "x": random(batch, length, heads, features, dtype=dtype), "offset": offset}

    return Case("rope", "RoPE", arguments, f"{batch}x{length}x{heads}x{features}-{dims}-{traditional}")


def quantized(kernel: str, rows: tuple[int, ...], outputs: int, groups: int, size: int, transpose: bool) -> Case:
    features = groups * size

    def arguments(dtype: str) -> Arguments:
        codes = np.random.default_rng(outputs).integers(0, 2**32, (outputs, features // 8), dtype=np.uint32)
        scales, biases = (random(outputs, groups, dtype=dtype, seed=seed) for seed in (1, 2))
        x = random(*rows, features if transpose else outputs, dtype=dtype)
        grid = {"group_size": size, "bits": 4, "transpose": transpose}
        return {"x": x, "packed": codes, "scales": scales, "biases": biases, **grid}

    return Case(kernel, "quantized_matmul", arguments, f"{rows}x{outputs}x{features}-{size}-{transpose}")


def flash(kernel: str, heads: int, key_heads: int, length: int, keys: int, dim: int, mask: str | None) -> Case:
    def arguments(dtype: str) -> Arguments:
        sizes = {"query": (heads, length), "key": (key_heads, keys), "value": (key_heads, keys)}
        arrays = {name: random(2, *size, dim, dtype=dtype) for name, size in sizes.items()}
        return {**arrays, "scale": None, "mask": _mask(mask, (length, keys), dtype)}

    return Case(kernel, "flash_attention", arguments, f"{heads}.{key_heads}x{length}x{keys}x{dim}-{mask}")


def paged(kernel: str, ratio: int, length: int, contexts: tuple[int, ...], dim: int, page_size: int) -> Case:
    """NaN wherever nothing was written; entries of the table past the last page in use name no page at all."""
    pages_of = [-(-context // page_size) for context in contexts]

    def arguments(dtype: str) -> Arguments:
        pages = sum(pages_of) + 3
        pools = {
            name: random(pages, 2, page_size, dim, dtype=dtype, seed=seed)
            for seed, name in enumerate(("key_pages", "value_pages"))
        }
        table = np.full((len(contexts), max(pages_of) + 2), 2**31 - 1, np.int32)
        order = iter(np.random.default_rng(0).permutation(pages))
        written = np.zeros((pages, page_size), bool)
        for row, context in enumerate(contexts):
            for n in range(pages_of[row]):
                table[row, n] = next(order)
                written[table[row, n], : context - n * page_size] = True
        for pool in pools.values():
            pool.swapaxes(1, 2)[~written] = np.nan
        query = random(len(contexts), 2 * ratio, length, dim, dtype=dtype)
        lens = np.array(contexts, np.int32)
        return {"query": query, **pools, "block_table": table, "context_lens": lens, "page_size": page_size}

    return Case(kernel, "paged_attention", arguments, f"{2 * ratio}.2x{length}x{contexts}x{dim}-{page_size}")


def _mask(kind: str | None, shape: tuple[int, int], dtype: str) -> Any:
    """bool: most keys hidden, all of some rows; added: numbers and -inf for two batch rows."""
    if kind == "bool":
        return np.random.default_rng(0).random(shape) < 0.2
    if kind == "added":
        values = random(2, 1, *shape, dtype=dtype)
        return np.where(f64(values) > 0.5, values.dtype.type(-np.inf), values)
    return kind


CASES = (
    rms_norm((3,), 7),
    rms_norm((2, 3), 33),
    rms_norm((2,), 1030),
    rope(2, 3, 5, 80, 64, [slice(7, 10), slice(0, 3)], False),
    rope(1, 5, 9, 40, 40, 2**17 - 1, True),
    quantized("quantized_vector", (3,), 7, 3, 32, True),
    quantized("quantized_vector", (2, 1), 33, 5, 64, True),
    quantized("quantized_vector_plain", (3,), 9, 3, 32, False),
    quantized("quantized_vector_plain", (1,), 5, 9, 64, False),
    quantized("quantized_matrix", (9,), 33, 1, 128, True),
    quantized("quantized_matrix", (2, 17), 70, 3, 32, True),
    quantized("quantized_matrix", (9,), 41, 3, 32, False),
    flash("flash_vector", 7, 1, 1, 131, 40, None),
    flash("flash_vector", 2, 2, 5, 3, 40, "causal"),
    flash("flash_vector", 3, 1, 2, 65, 40, "added"),
    flash("flash_matrix", 2, 1, 33, 70, 40, "causal"),
    flash("flash_matrix", 2, 2, 13, 9, 40, "causal"),
    flash("flash_matrix", 2, 1, 9, 35, 40, "bool"),
    paged("paged_vector", 3, 1, (131, 5, 16), 40, 16),
    paged("paged_vector", 1, 2, (0, 7, 70), 40, 3),
    paged("paged_matrix", 1, 33, (70, 33), 40, 16),
    paged("paged_matrix", 2, 9, (35, 4), 40, 5),
)


# How they are called, on the subject's own arrays.


def to_mlx(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype == ml_dtypes.bfloat16:
        return mx.array(value.view(np.uint16)).view(mx.bfloat16)
    return mx.array(value)


def call(operation: type[Operation], arguments: Arguments) -> np.ndarray:
    """Call what the subject offers for an operation; the result in float64."""
    signature, given = operation.signature, {name: to_mlx(value) for name, value in arguments.items()}
    function = getattr(kernels, signature.name)
    if signature.init is not None:
        function = function(**{name: given.pop(name) for name in signature.init if name in given})
    return np.array(function(**given).astype(mx.float32)).astype(np.float64)


def operation_of(name: str) -> type[Operation]:
    return next(op for contract in contracts() for op in contract.operations if op.signature.operation == name)


def launched(launches: list[Launched]) -> list[str]:
    """Which bodies ran."""
    names = sorted((path.stem for path in metal.FOLDER.glob("*.metal")), key=len, reverse=True)
    return [next(name for name in names if f"inferspec_{name}_" in launch.kernel) for launch, _ in launches]


@simulated
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_kernels_are_clean_and_within_the_budget_in_every_schedule(
    case: Case, dtype: str, simulator: list[Launched]
) -> None:
    operation, arguments = operation_of(case.operation), case.arguments(dtype)
    answer = operation().evaluate(operation().bind(arguments), Precision.FLOAT32)
    for schedule in SCHEDULES.values():
        # Strict: no kernel here counts on lockstep, or on memory that a SIMD-group function would order.
        with metalsim.settings(mode="check", schedule=schedule, strict=True):
            got = call(operation, arguments)
        assert np.all(np.abs(got - answer.value) <= answer.budget), schedule
    assert launched(simulator) == [case.kernel] * len(SCHEDULES)


# Barriers: each one is there because the kernel is wrong without it.


def barriers() -> list[tuple[str, int]]:
    """Every barrier of the sources: its file and the line it is in."""
    return [
        (path.stem, path.read_text(encoding="utf-8")[: found.start()].count("\n") + 1)
        for path in sorted(metal.FOLDER.glob("*.metal"))
        for found in BARRIER.finditer(path.read_text(encoding="utf-8"))
    ]


def without(name: str, line: int) -> str:
    """A source without the barrier in that line, which is left empty."""
    lines = metal.source.__wrapped__(name).split("\n")
    # The first line names the file.
    assert BARRIER.match(lines[line] + "\n"), lines[line]
    lines[line] = ""
    return "\n".join(lines)


def sources(case: Case) -> set[str]:
    """The files that the kernel of a case is made of."""
    shared = {"common", "attention"} if case.kernel.startswith(("flash", "paged")) else {"common"}
    return {case.kernel, *shared}


def wrong(case: Case, schedule: metalsim.Schedule) -> bool:
    """Whether check mode finds anything but the harmless."""
    found: list[metalsim.Report] = []
    with metalsim.settings(mode="check", schedule=schedule, on_report=found.append):
        call(operation_of(case.operation), case.arguments("float32"))
    return any(not report.finding.harmless for report in found)


def test_every_barrier_of_the_sources_is_found() -> None:
    written = {path.stem: path.read_text(encoding="utf-8") for path in metal.FOLDER.glob("*.metal")}
    calls = [name for name, text in written.items() for _ in re.finditer(r"_barrier\s*\(", text)]
    assert sorted(calls) == sorted(name for name, _ in barriers())


@simulated
@pytest.mark.parametrize(("name", "line"), barriers())
def test_a_kernel_without_one_of_its_barriers_is_told_of(
    name: str, line: int, simulator: list[Launched], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, maimed = metal.source.__wrapped__, without(name, line)
    monkeypatch.setattr(metal, "source", lambda asked: maimed if asked == name else whole(asked))
    metal._built.cache_clear()
    flagged = {}
    try:
        for order, schedule in SCHEDULES.items():
            flagged[order] = next((str(case) for case in CASES if name in sources(case) and wrong(case, schedule)), "")
    finally:
        metal._built.cache_clear()
    assert all(flagged.values()), f"told of on these shapes: {flagged}"


# Limits.


@simulated
@pytest.mark.parametrize("dim", [32, 64, 80, 128, 256])
def test_threadgroup_memory_of_attention_is_within_32_kib_for_every_size_of_tile(
    dim: int, simulator: list[Launched]
) -> None:
    for case in (flash("flash_matrix", 1, 1, 9, 35, dim, None), flash("flash_vector", 1, 1, 1, 130, dim, None)):
        call(operation_of(case.operation), case.arguments("float32"))
    used = {launch.kernel: outcome.threadgroup_bytes for launch, outcome in simulator}
    assert len(used) == 2
    assert all(0 < size <= MAX_THREADGROUP_BYTES for size in used.values()), used


@simulated
def test_nothing_is_launched_for_empty_arrays(simulator: list[Launched]) -> None:
    empty = {
        "RMSNorm": rms_norm((0,), 8),
        "RoPE": rope(2, 0, 4, 8, 8, None, False),
        "quantized_matmul": quantized("quantized_vector", (0,), 4, 1, 32, True),
        "flash_attention": flash("flash_vector", 2, 1, 0, 5, 32, None),
        "paged_attention": paged("paged_vector", 1, 0, (5,), 32, 4),
    }
    for name, case in empty.items():
        arguments = case.arguments("float32")
        shape = operation_of(name)().bind(arguments)
        result = call(operation_of(name), arguments)
        assert result.size == 0, (name, shape)
    no_keys = flash("flash_vector", 2, 1, 3, 0, 32, None).arguments("float32")
    assert not call(operation_of("flash_attention"), no_keys).any()
    no_context = paged("paged_vector", 1, 1, (0, 0), 32, 4).arguments("float32")
    assert not call(operation_of("paged_attention"), no_context).any()
    assert not simulator


@simulated
@pytest.mark.parametrize(
    "case",
    [
        quantized("quantized_vector", (9,), 33, 1, 32, True),
        quantized("quantized_vector_plain", (9,), 41, 1, 32, False),
        flash("flash_vector", 2, 1, 9, 35, 40, "causal"),
        paged("paged_vector", 1, 9, (35,), 40, 16),
    ],
    ids=str,
)
def test_a_gpu_without_simdgroup_matrices_gets_the_vector_forms(
    case: Case, simulator: list[Launched], monkeypatch: pytest.MonkeyPatch
) -> None:
    for launcher in (attention, quantized_launcher):
        monkeypatch.setattr(launcher, "has_matrices", lambda: False)
    operation, arguments = operation_of(case.operation), case.arguments("float32")
    answer = operation().evaluate(operation().bind(arguments), Precision.FLOAT32)
    assert np.all(np.abs(call(operation, arguments) - answer.value) <= answer.budget)
    assert launched(simulator) == [case.kernel]


@simulated
def test_what_a_gpu_lacks_shows_in_a_probe(simulator: list[Launched], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(metal.PROBES, "nothing", "out[0] = no_such_function();")
    probed = {feature: metal.gpu_takes.__wrapped__(feature) for feature in metal.PROBES}
    assert probed == {"bfloat": True, "matrix": True, "nothing": False}


# Where kernels run.


@simulated
def test_kernels_are_simulated_where_the_simulator_is_installed(simulator: list[Launched]) -> None:
    assert kernels.available() is kernels.Availability.SIMULATED
    assert kernels.UNAVAILABLE == ""
    assert kernels.ENVELOPE["rope"]["dtypes"] == list(DTYPES)


@pytest.mark.skipif(mx.metal.is_available(), reason="there is Metal")
def test_without_metal_or_simulator_the_subject_says_what_it_needs() -> None:
    assert kernels.available() is kernels.Availability.NONE
    assert "Metal" in kernels.UNAVAILABLE
    assert "--metal sim" in kernels.UNAVAILABLE


@simulated
def test_other_dtypes_and_bits_take_mlx_s_path(simulator: list[Launched]) -> None:
    weights = quantized("quantized_vector", (1,), 4, 1, 32, True).arguments("float32")
    wide = {**weights, "bits": 8, "x": weights["x"][:, :32], "packed": np.tile(weights["packed"], 2)}
    call(operation_of("quantized_matmul"), wide)
    assert not simulator
