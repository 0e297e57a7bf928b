"""What cost mode counts, exactly."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from inferspec import compiler

from . import arithmetic
from .handwritten import run
from .library import Library
from .runtime import Cost, Mode

needs_objdump = pytest.mark.skipif(not shutil.which("objdump"), reason="objdump is not installed")


@pytest.fixture(autouse=True, scope="module")
def _compiler() -> None:
    try:
        compiler.compiler()
    except compiler.NoCompiler as error:
        pytest.skip(str(error))


def cost(body: str, threads: int = 128, group: int = 64, dtype: type = np.int32) -> Cost:
    kind = "float" if dtype is np.float32 else "int"
    arrays = {"x": np.ones(threads, dtype), "out": np.zeros(threads, dtype)}
    outcome = run(body, f"const {kind}* x, {kind}* out", arrays, threads=threads, group=group, mode=Mode.COST)
    assert outcome.reports == ()
    assert outcome.cost is not None
    return outcome.cost


@needs_objdump
def test_where_a_matrix_lies_in_memory_is_no_arithmetic() -> None:
    integer, read = [], []
    for loads in (1, 5):
        load = "simdgroup_load(m, x, apart, ulong2(0, 0), true); " * loads
        source = (
            "#include <metal_stdlib>\nusing namespace metal;\nkernel void k(device const float* x, device float* out, "
            f"constant uint& apart) {{ simdgroup_float8x8 m; {load} simdgroup_store(m, out, apart); }}"
        )
        buffers = {"x": np.zeros(64, np.float32), "out": np.zeros(64, np.float32), "apart": 8}
        outcome = Library(source).kernel("k")(buffers, threads=(32, 1, 1), threadgroup=(32, 1, 1), mode=Mode.COST)
        assert outcome.cost is not None
        integer.append(outcome.cost.integer_operations)
        read.append(outcome.cost.device_bytes_read)
    assert integer[0] == integer[1]
    assert read[1] - read[0] == 4 * 64 * 4


def test_threads_and_their_groups_are_counted() -> None:
    counted = cost("", threads=150, group=64)
    assert (counted.threads, counted.simdgroups, counted.threadgroups) == (150, 5, 3)


def test_device_bytes_are_what_threads_ask_for_and_the_least_is_each_byte_once() -> None:
    counted = cost("out[i] = x[i] + x[0] + (i < 10 ? (int)((const char*)x)[5] : 0);")
    assert counted.device_bytes_read == 128 * 8 + 10
    assert counted.device_bytes_written == 128 * 4
    assert [(t.buffer, t.bytes_read, t.bytes_written) for t in counted.least_traffic] == [
        ("x", 512, 0),
        ("out", 0, 512),
    ]
    assert (counted.least_bytes_read, counted.least_bytes_written) == (512, 512)


def test_threadgroup_bytes_and_barriers_are_counted_for_each_threadgroup() -> None:
    counted = cost("""SHARED(int, tile, 64);
      for (int n = 0; n < 3; n++) { tile[t] = x[i]; threadgroup_barrier(THREADGROUP); out[i] = tile[t ^ 1]; threadgroup_barrier(THREADGROUP); }
      simdgroup_barrier(THREADGROUP);""")
    assert (counted.threadgroup_bytes_read, counted.threadgroup_bytes_written) == (3 * 512, 3 * 512)
    assert (counted.threadgroup_barriers, counted.simdgroup_barriers) == (6 * 2, 4)


def test_simdgroup_functions_are_counted_by_kind_once_for_each_simdgroup() -> None:
    counted = cost("int sum = simd_sum(1) + simd_sum(2); out[i] = simd_shuffle(sum, lane ^ 1); matrix_multiply();")
    assert counted.simdgroup_operations == {"reduce": 8, "shuffle": 4, "scan": 0, "vote": 0}
    assert counted.matrix_multiply_accumulates == 4


def test_atomics_are_counted_and_are_traffic() -> None:
    counted = cost("SHARED(int, total, 1); atomic_add(out, 1); if (t == 0) atomic_add(total, 1);")
    assert (counted.device_atomics, counted.threadgroup_atomics) == (128, 2)
    assert (counted.device_bytes_read, counted.device_bytes_written) == (512, 512)
    assert (counted.threadgroup_bytes_read, counted.threadgroup_bytes_written) == (8, 8)
    assert (counted.least_bytes_read, counted.least_bytes_written) == (4, 4)


@needs_objdump
def test_floating_point_operations_are_counted_over_all_iterations() -> None:
    counted = cost(
        "float sum = x[i]; for (int n = 0; n < 10; n++) sum = sum * 3.0f + 2.0f; out[i] = sum / 7.0f;", dtype=np.float32
    )
    assert counted.float_operations == 128 * 21
    assert counted.special_functions == 0


@needs_objdump
def test_only_the_branch_that_runs_counts() -> None:
    body = "float v = x[i]; if (i < 5) { v = v * v; USE(&v); v = v * v; } else { USE(&v); } out[i] = v;"
    assert cost(body, dtype=np.float32).float_operations == 10


@needs_objdump
def test_integer_operations_grow_with_the_work() -> None:
    def counted(times: int) -> int:
        found = cost(
            f"uint v = x[i]; for (int n = 0; n < {times}; n++) v = (v ^ (v >> 3)) * 5u; out[i] = v;"
        ).integer_operations
        assert found is not None
        return found

    # Each iteration: shift, exclusive or, multiplication (perhaps as shift and addition), counting.
    per_iteration = (counted(20) - counted(10)) / 10 / 128
    assert 4 <= per_iteration <= 6
    assert counted(30) - counted(20) == counted(20) - counted(10)


@needs_objdump
def test_calls_of_special_functions_are_counted_apart() -> None:
    counted = cost(
        "out[i] = __builtin_expf(x[i]) + __builtin_powf(x[i], 1.5f) + __builtin_fmaf(x[i], 2.0f, 1.0f);",
        dtype=np.float32,
    )
    assert counted.special_functions == 2 * 128
    assert counted.float_operations == 4 * 128


@needs_objdump
def test_what_a_simdgroup_function_computes_inside_is_not_counted_as_arithmetic() -> None:
    once, twice = (
        cost(f"int sum = 0; for (int n = 0; n < {times}; n++) sum += simd_sum(n); out[i] = sum;") for times in (10, 20)
    )
    assert once.integer_operations is not None
    assert twice.integer_operations is not None
    assert (twice.integer_operations - once.integer_operations) / 128 / 10 <= 6


def test_a_cost_is_data_for_json() -> None:
    counted = cost("out[i] = x[i];")
    plain = json.loads(json.dumps(counted.as_dict()))
    assert plain["device_bytes_read"] == 512
    assert plain["least_traffic"][0] == {"buffer": "x", "bytes_read": 512, "bytes_written": 0}
    assert plain["least_bytes_written"] == 512


def test_other_modes_count_nothing() -> None:
    for mode in (Mode.FAST, Mode.CHECK):
        assert run("", mode=mode).cost is None


X86 = """
kernel.so:     file format elf64-x86-64

0000000000001100 <kernel>:
    1100:\tcall   1050 <__sanitizer_cov_trace_pc@plt>
    1105:\tmovss  (%rdi),%xmm0
    1109:\tmulss  %xmm1,%xmm0
    110d:\taddps  %xmm2,%xmm0
    1110:\tvfmadd231ss %xmm1,%xmm2,%xmm0
    1114:\txor    %eax,%eax
    1116:\tsub    $0x8,%rsp
    111a:\timul   %esi,%edi
    111d:\tjne    1140 <kernel+0x40>
    111f:\tcall   1050 <__sanitizer_cov_trace_pc@plt>
    1124:\tcall   1060 <expf@plt>
    1129:\tjmp    1100 <kernel>
    112b:\tmulss  %xmm1,%xmm0

0000000000001140 <other>:
    1140:\tmulss  %xmm1,%xmm0
"""
ARM = """
kernel.so:     file format elf64-littleaarch64

0000000000001100 <kernel>:
    1100:\tbl\t1050 <__sanitizer_cov_trace_pc@plt>
    1104:\tfmadd\ts0, s1, s2, s3
    1108:\tfadd\tv0.4s, v1.4s, v2.4s
    110c:\tadd\tx0, x1, x2, lsl #2
    1110:\tldr\ts0, [x0]
    1114:\tb\t1060 <expf@plt>
"""


def test_disassembly_is_read_for_both_machines() -> None:
    assert arithmetic._blocks_in(X86) == {0x1105: (1 + 4 + 2, 1, 0), 0x1124: (0, 0, 1)}
    assert arithmetic._blocks_in(ARM) == {0x1104: (2 + 4, 1, 1)}


@pytest.mark.parametrize(("says", "known"), [(ARM, True), (ARM.replace("__sanitizer_cov_trace_pc@plt", "stub"), False)])
def test_what_a_disassembler_does_not_tell_is_unknown_and_not_nothing(
    says: str, known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objdump = tmp_path / "objdump"
    objdump.write_text(f"#!/bin/sh\ncat <<'END'\n{says}END\n", encoding="utf-8")
    objdump.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert (arithmetic.operations(tmp_path / "kernel.so", {0x1104: 3}) is not None) is known
