"""What check mode finds in kernels that are wrong, and that it finds nothing in kernels that are right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from inferspec import compiler

from .handwritten import run
from .reports import Finding, Report, Site
from .runtime import Mode, Schedule

SCHEDULES = (Schedule("forward"), Schedule("reverse", groups="reverse"), Schedule("random", seed=3, groups="random"))


@pytest.fixture(autouse=True, scope="module")
def _compiler() -> None:
    try:
        compiler.compiler()
    except compiler.NoCompiler as error:
        pytest.skip(str(error))


def check(
    body: str, threads: int = 64, group: int | None = None, parameters: str = "const int* x, int* out", **more: Any
) -> tuple[Report, ...]:
    """The reports on a kernel that reads ints `x` and writes ints `out`, one for each thread."""
    arrays = {"x": np.arange(threads, dtype=np.int32), "out": np.zeros(threads, np.int32)}
    return run(body, parameters, arrays, threads=threads, group=group, mode=Mode.CHECK, **more).reports


def what(reports: tuple[Report, ...]) -> list[tuple[Finding, str | None]]:
    return [(report.finding, report.memory) for report in reports]


# Kernels that are right

EXCHANGE = "SHARED(int, tile, 64); tile[t] = x[i]; {sync} out[i] = tile[{other}];"
RIGHT = {
    "each thread its own element": "out[i] = x[i];",
    "threadgroup memory with a barrier between": EXCHANGE.format(
        sync="threadgroup_barrier(THREADGROUP);", other="63 - t"
    ),
    "a barrier with more flags than needed": EXCHANGE.format(sync="threadgroup_barrier(BOTH);", other="63 - t"),
    "an exchange within a SIMD-group": EXCHANGE.format(sync="simdgroup_barrier(THREADGROUP);", other="t ^ 1"),
    "an exchange ordered by a SIMD-group function": EXCHANGE.format(sync="simd_sum(1);", other="t ^ 1"),
    "tiles used twice with barriers on both sides": """SHARED(int, tile, 64); int sum = 0;
      for (int n = 0; n < 3; n++) {
        tile[t] = x[i] + n;
        threadgroup_barrier(THREADGROUP);
        sum += tile[63 - t] + tile[(t + 7) % 64];
        threadgroup_barrier(THREADGROUP);
      }
      out[i] = sum;""",
    "device memory with a barrier between": "out[i] = x[i]; threadgroup_barrier(DEVICE); int next = out[group * 64 + 63 - t]; threadgroup_barrier(DEVICE); out[i] = next;",
    "all threads read one element": "SHARED(int, total, 1); if (t == 0) total[0] = 5; threadgroup_barrier(THREADGROUP); out[i] = total[0] + x[0];",
    "neighbouring bytes of one word": "((char*)out)[i] = 1; SHARED(char, bytes, 64); bytes[t] = t; SHARED(short, halves, 64); halves[t] = bytes[t];",
    "atomics by all threads on one element": "atomic_add(out, 1);",
    "atomics after a plain write and a barrier": "if (t == 0) out[group] = 0; threadgroup_barrier(DEVICE); atomic_add(out + group, 1); threadgroup_barrier(DEVICE); USE(out[group]);",
    "a uniform branch around a barrier": "if (group == 1) { threadgroup_barrier(BOTH); } out[i] = 0;",
    "a uniform branch around a SIMD-group function": "if (t < 32) { int sum = simd_sum(1); out[i] = sum; } else out[i] = 0;",
    "an early return of whole threadgroups": "if (group == 1) return; SHARED(int, tile, 64); tile[t] = x[i]; threadgroup_barrier(THREADGROUP); out[i] = tile[63 - t];",
    "private arrays and shifts within their bounds": "int own[4]; for (int n = 0; n < 4; n++) own[n] = x[i] << n; out[i] = own[t & 3] >> 31;",
    "threadgroup memory of exactly 32 KiB": "SHARED(int, big, 8192); big[t] = x[i]; out[i] = big[t];",
    "a shuffle between lanes that take part": "out[i] = simd_shuffle(x[i], lane ^ 5);",
    "a copy of a structure whose padding nobody wrote": """struct padded { char a; int b; }; SHARED(padded, tile, 64);
      tile[t].a = 1; tile[t].b = x[i]; padded copy = tile[t]; USE(&copy); out[i] = copy.b;""",
    "a copy of three quarters of a vector": """typedef float four __attribute__((vector_size(16))); SHARED(four, tile, 64);
      for (int c = 0; c < 3; c++) ((float*)&tile[t])[c] = c; four copy = tile[t]; USE(&copy); out[i] = (int)copy[1];""",
    "a copy of a structure": "struct pair { int a, b; }; SHARED(pair, pairs, 64); pairs[t] = pair{x[i], x[i]}; pair copy = pairs[t]; out[i] = copy.a;",
}


@pytest.mark.parametrize("name", RIGHT)
def test_nothing_is_found_in_a_kernel_that_is_right(name: str) -> None:
    for schedule in SCHEDULES:
        assert (
            check(RIGHT[name], 128, 64, schedule=schedule, initialised=("out",) if "atomics by" in name else ()) == ()
        )


def test_a_short_simdgroup_at_the_grids_edge_is_nothing_to_report() -> None:
    body = "SHARED(int, tile, 64); tile[t] = simd_sum(x[i]); simdgroup_barrier(THREADGROUP); threadgroup_barrier(THREADGROUP); out[i] = tile[0];"
    assert check(body, 109, 64) == ()


# Races

RACES = {
    "no barrier at all": (EXCHANGE.format(sync="", other="63 - t"), "threadgroup tile"),
    "a barrier that orders no memory": (
        EXCHANGE.format(sync="threadgroup_barrier(NO_MEMORY);", other="63 - t"),
        "threadgroup tile",
    ),
    "a barrier that orders the other memory": (
        EXCHANGE.format(sync="threadgroup_barrier(DEVICE);", other="63 - t"),
        "threadgroup tile",
    ),
    "device memory with a barrier for threadgroup memory": (
        "out[i] = x[i]; threadgroup_barrier(THREADGROUP); int next = out[i ^ 1]; out[i] = next;",
        "buffer out",
    ),
    "a SIMD-group's barrier for an exchange between SIMD-groups": (
        EXCHANGE.format(sync="simdgroup_barrier(BOTH);", other="63 - t"),
        "threadgroup tile",
    ),
    "a SIMD-group's barrier that orders the other memory": (
        EXCHANGE.format(sync="simdgroup_barrier(DEVICE);", other="t ^ 1"),
        "threadgroup tile",
    ),
    "a tile overwritten while others may still read it": (
        "SHARED(int, tile, 64); for (int n = 0; n < 2; n++) { tile[t] = x[i] + n; threadgroup_barrier(THREADGROUP); out[i] = tile[63 - t]; }",
        "threadgroup tile",
    ),
    "threadgroups that write one element": ("out[t] = x[i];", "buffer out"),
    "a threadgroup that reads what another writes": ("out[i] = 1; out[i] = out[(i + 64) % 128];", "buffer out"),
    "a plain read of what others change atomically": ("atomic_add(out, 1); USE(out[0]);", "buffer out"),
    "a plain write beside atomics": ("if (i == 5) out[0] = 7; atomic_add(out, 1);", "buffer out"),
    "bytes of one word, two threads each": ("((char*)out)[i / 2] = i;", "buffer out"),
}


@pytest.mark.parametrize("name", RACES)
@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda schedule: schedule.order)
def test_a_race_is_found_in_any_order_of_the_threads(name: str, schedule: Schedule) -> None:
    body, memory = RACES[name]
    reports = check(body, 128, 64, schedule=schedule, initialised=("out",))
    assert (Finding.RACE, memory) in what(reports)
    # In an unlucky order the reader comes first, to memory that holds nothing yet.
    assert {report.finding for report in reports} <= {Finding.RACE, Finding.UNINITIALISED}


def test_a_race_names_both_threads_and_lines_the_memory_and_the_element() -> None:
    body = "SHARED(int, tile, 64);\ntile[t] = x[i];\n\nout[i] = tile[63 - t];"
    reports = [report for report in check(body, 128, 64) if report.finding is Finding.RACE]
    second, first = reports
    assert (first.kernel, first.memory, first.index, first.count) == ("k", "threadgroup tile", 31, 64)
    assert (first.access.thread, first.access.writes, first.access.site) == (32, False, Site("k.metal", 4))
    assert first.other is not None
    assert (first.other.thread, first.other.writes, first.other.site) == (31, True, Site("k.metal", 2))
    assert (second.access.site, second.other and second.other.site) == (Site("k.metal", 2), Site("k.metal", 4))
    assert second.access.writes


def test_the_threadgroups_of_both_sides_of_a_race_are_told() -> None:
    (report,) = check("out[t] = x[i];", 192, 64)
    assert report.access.group == (1, 0, 0)
    assert report.other is not None
    assert report.other.group == (0, 0, 0)
    assert report.count == 128


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda schedule: schedule.order)
def test_a_race_of_writes_that_change_nothing_is_told_as_harmless(schedule: Schedule) -> None:
    (report,) = check("SHARED(int, flag, 1); flag[0] = 1; out[i] = x[i];", schedule=schedule)
    assert (report.finding, report.memory, report.finding.harmless) == (
        Finding.SAME_VALUE_RACE,
        "threadgroup flag",
        True,
    )


def test_equal_bytes_written_many_at_once_are_one_harmless_race() -> None:
    body = "typedef char many __attribute__((vector_size(16))); many ones = many{} + 1; SHARED(char, tile, 16); *(many*)tile = ones; out[i] = 0;"
    (report,) = check(body)
    assert (report.finding, report.memory, report.count) == (Finding.SAME_VALUE_RACE, "threadgroup tile", 63)


def test_simdgroup_functions_order_no_memory_in_strict_mode() -> None:
    body = EXCHANGE.format(sync="simd_sum(1);", other="t ^ 1")
    assert (Finding.RACE, "threadgroup tile") in what(check(body, strict=True))
    right = EXCHANGE.format(sync="simd_sum(1); simdgroup_barrier(THREADGROUP);", other="t ^ 1")
    assert check(right, strict=True) == ()


def test_a_simdgroup_function_orders_only_the_lanes_that_took_part() -> None:
    body = "SHARED(int, tile, 32); tile[t] = 1; if (t < 16) simd_sum(1); if (t == 0) out[0] = tile[20];"
    assert (Finding.RACE, "threadgroup tile") in what(check(body, 32))
    later = "SHARED(int, tile, 32); tile[t] = 1; if (t < 16) simd_sum(1); threadgroup_barrier(NO_MEMORY); if (t == 20) USE(tile[3]);"
    assert (Finding.RACE, "threadgroup tile") in what(check(later, 32))
    same_half = body.replace("tile[20]", "tile[15]")
    assert what(check(same_half, 32)) == [(Finding.PARTIAL_COLLECTIVE, None)]


def test_a_reader_of_another_simdgroup_is_not_forgotten_for_the_readers_around_it() -> None:
    # The readers of the writer's own SIMD-group are ordered before it, thread 40 is not.
    body = """SHARED(int, cell, 1); if (t == 0) cell[0] = 0;
      threadgroup_barrier(THREADGROUP);
      if (t < 32 || t == 40) USE(cell[0]);
      if (t < 32) simdgroup_barrier(THREADGROUP);
      if (t == 0) cell[0] = 1;"""
    for seed in range(20):
        (report,) = check(body, schedule=Schedule("random", seed=seed))
        assert report.finding is Finding.RACE
        assert report.other is not None
        assert {report.access.thread, report.other.thread} == {0, 40}
        assert check(body.replace(" || t == 40", ""), schedule=Schedule("random", seed=seed)) == ()


# Out of bounds


def test_every_access_out_of_bounds_is_found_and_the_kernel_goes_on() -> None:
    arrays = {"x": np.arange(64, dtype=np.int32), "out": np.zeros(64, np.int32)}
    body = "USE(x[i * 100000]);\nUSE(x[i + 1]);\nif (i == 5) out[i + 64] = 1;\nout[i] = x[i];"
    reports = run(body, "const int* x, int* out", arrays, threads=64, mode=Mode.CHECK).reports
    assert [
        (r.finding, r.memory, r.index, r.count, r.access.thread, r.access.site and r.access.site.line) for r in reports
    ] == [
        (Finding.OUT_OF_BOUNDS, "buffer x", 100000, 63, 1, 1),
        (Finding.OUT_OF_BOUNDS, "buffer out", 69, 1, 5, 3),
        (Finding.OUT_OF_BOUNDS, "buffer x", 64, 1, 63, 2),
    ]
    assert arrays["out"].tolist() == list(range(64))


@pytest.mark.parametrize("index", [64, -1, 70])
def test_a_threadgroup_variable_has_bounds_that_its_neighbours_do_not_hide(index: int) -> None:
    body = f"SHARED(int, before, 64); SHARED(int, tile, 64); SHARED(int, after, 64); before[t] = tile[t] = after[t] = 1; tile[t ? (int)t : {index}] = 2;"
    (report,) = check(body)
    assert (report.finding, report.memory, report.index) == (Finding.OUT_OF_BOUNDS, "threadgroup tile", index)


def test_an_access_that_only_begins_within_a_buffer_is_out_of_bounds() -> None:
    # 63 ints are not aligned to the end of their pages: nothing faults.
    reports = check("long long two; __builtin_memcpy(&two, x + 62, 8); out[i] = (int)two;", 63)
    assert what(reports) == [(Finding.OUT_OF_BOUNDS, "buffer x")]


# Uninitialised


def test_reading_an_output_before_writing_it_is_found() -> None:
    (report,) = check("out[i] += x[i];")
    assert (report.finding, report.memory, report.index, report.count) == (Finding.UNINITIALISED, "buffer out", 0, 64)


def test_threadgroup_memory_holds_nothing_at_the_start_of_each_threadgroup() -> None:
    (report,) = check("SHARED(int, tile, 64); if (group == 0) tile[t] = 1; out[i] = tile[t];", 128, 64)
    assert (report.finding, report.memory, report.count) == (Finding.UNINITIALISED, "threadgroup tile", 64)
    assert report.access.group == (1, 0, 0)


def test_half_of_an_element_written_is_an_element_not_written() -> None:
    assert what(check("((short*)out)[2 * i] = 1; USE(out[i]);")) == [(Finding.UNINITIALISED, "buffer out")]


# Divergence


def test_threads_at_two_barriers_are_found() -> None:
    (report,) = check("if (t < 40)\n  threadgroup_barrier(BOTH);\nelse\n  threadgroup_barrier(BOTH);\nout[i] = 0;")
    assert (report.finding, report.detail) == (
        Finding.DIVERGENT_BARRIER,
        "threads of one threadgroup wait at different barriers",
    )
    assert (report.access.thread, report.access.site) == (0, Site("k.metal", 2))
    assert report.other is not None
    assert (report.other.thread, report.other.site) == (40, Site("k.metal", 4))


def test_threads_that_ended_before_a_barrier_are_found() -> None:
    (report,) = check("if (t >= 50) return;\nthreadgroup_barrier(BOTH);\nout[i] = 0;")
    assert (report.finding, report.detail) == (Finding.DIVERGENT_BARRIER, "14 of its threads have ended")
    assert report.access.site == Site("k.metal", 2)
    assert report.other is not None
    assert report.other.thread == 50


def test_a_barrier_in_a_loop_of_different_lengths_is_found() -> None:
    (report,) = check("for (uint n = 0; n <= t / 32; n++)\n  threadgroup_barrier(BOTH);\nout[i] = 0;")
    assert (report.finding, report.detail) == (Finding.DIVERGENT_BARRIER, "32 of its threads have ended")


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda schedule: schedule.order)
def test_a_simdgroup_barrier_that_some_lanes_do_not_reach_is_found(schedule: Schedule) -> None:
    (report,) = check("if (lane < 8)\n  simdgroup_barrier(THREADGROUP);\nout[i] = 0;", 32, schedule=schedule)
    assert (report.finding, report.detail) == (Finding.DIVERGENT_BARRIER, "lanes 0x000000ff came, of 0xffffffff")


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda schedule: schedule.order)
@pytest.mark.parametrize("leave", ["return", "goto end"])
def test_lanes_that_idle_or_ended_during_a_simdgroup_function_are_told_as_harmless(
    schedule: Schedule, leave: str
) -> None:
    arrays = {"x": np.full(32, 1, np.int32), "out": np.zeros(32, np.int32)}
    body = f"int sum = 0;\nif (lane >= 20) {leave};\nsum = simd_sum(x[i]);\nend: out[i] = sum;"
    outcome = run(body, "const int* x, int* out", arrays, threads=32, mode=Mode.CHECK, schedule=schedule)
    (report,) = outcome.reports
    assert (report.finding, report.detail) == (Finding.PARTIAL_COLLECTIVE, "lanes 0x000fffff came, of 0xffffffff")
    assert report.finding.harmless
    assert report.access.site == Site("k.metal", 3)
    assert arrays["out"][:20].tolist() == [20] * 20


def test_two_branches_with_a_simdgroup_function_each_join_their_own_lanes() -> None:
    arrays = {"x": np.full(32, 1, np.int32), "out": np.zeros(32, np.int32)}
    body = "if (lane < 10)\n  out[i] = simd_sum(x[i]);\nelse\n  out[i] = simd_sum(x[i]);"
    outcome = run(body, "const int* x, int* out", arrays, threads=32, mode=Mode.CHECK)
    assert what(outcome.reports) == [(Finding.PARTIAL_COLLECTIVE, None)] * 2
    assert arrays["out"].tolist() == [10] * 10 + [22] * 22


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda schedule: schedule.order)
def test_lanes_that_leave_a_loop_early_wait_for_the_others_behind_it(schedule: Schedule) -> None:
    arrays = {"x": np.full(32, 1, np.int32), "out": np.zeros(32, np.int32)}
    body = "int in_loop = 0;\nfor (uint n = 0; n <= lane / 8; n++)\n  in_loop += simd_sum(1);\nout[i] = 100 * simd_sum(1) + in_loop;"
    outcome = run(body, "const int* x, int* out", arrays, threads=32, mode=Mode.CHECK, schedule=schedule)
    assert [report.access.site for report in outcome.reports] == [Site("k.metal", 3)]
    assert arrays["out"].tolist() == [3200 + total for total in (32, 56, 72, 80) for _ in range(8)]


def test_a_matrix_operation_needs_every_lane() -> None:
    (report,) = check("if (lane < 31)\n  matrix_multiply();\nout[i] = 0;", 32)
    assert (report.finding, report.access.site) == (Finding.DIVERGENT_COLLECTIVE, Site("k.metal", 2))
    (short,) = check("matrix_multiply();\nout[i] = 0;", 20)
    assert (short.finding, short.detail) == (Finding.DIVERGENT_COLLECTIVE, "lanes 0x000fffff came, of 0xffffffff")


def test_the_value_of_a_lane_that_takes_no_part_is_a_finding() -> None:
    reports = check("if (lane < 16)\n  out[i] = simd_shuffle(x[i], lane + 1);\nelse out[i] = 0;", 32)
    inactive = [report for report in reports if report.finding is Finding.INACTIVE_LANE]
    assert [(report.access.thread, report.detail) for report in inactive] == [
        (15, "lane 16 is read, and lanes 0x0000ffff take part")
    ]
    assert inactive[0].access.site == Site("k.metal", 2)


# What the compilers instrument


@pytest.mark.parametrize(
    ("body", "finding"),
    [
        ("out[i] =\n1 << (x[i] + 1);", Finding.SHIFT),
        ("out[i] =\n*(const int*)((const char*)x + (i & 1));", Finding.MISALIGNED),
        ("int own[4] = {1, 2, 3, 4}; volatile int n = 4;\nout[i] = own[i == 5 ? n : 0];", Finding.ARRAY_OVERRUN),
    ],
)
def test_what_is_undefined_is_found_by_its_line(body: str, finding: Finding) -> None:
    report = check(body)[0]
    assert (report.finding, report.access.site) == (finding, Site("k.metal", 2))


def test_a_write_to_an_input_is_found_and_does_not_reach_the_callers_array() -> None:
    arrays = {"x": np.arange(64, dtype=np.int32), "out": np.zeros(64, np.int32)}
    for mode in Mode:
        reports = run("((int*)x)[i] = 9; out[i] = 1;", "const int* x, int* out", arrays, threads=64, mode=mode).reports
        assert [(r.finding, r.memory, r.index, r.access.writes) for r in reports] == [
            (Finding.WRITE_TO_INPUT, "buffer x", 0, True)
        ]
    assert arrays["x"].tolist() == list(range(64))


def test_more_threadgroup_memory_than_metal_has_is_found() -> None:
    body = "SHARED(int, big, 8192);\nSHARED(char, more, 1);\nbig[t] = x[i]; more[0] = 1; out[i] = big[t];"
    reports = [report for report in check(body, 1) if report.finding is Finding.THREADGROUP_MEMORY]
    assert [(report.memory, report.detail, report.access.site) for report in reports] == [
        ("threadgroup more", "32784 bytes", Site("k.metal", 2))
    ]
    assert (Finding.THREADGROUP_MEMORY, "threadgroup big") in what(
        check("SHARED(int, big, 1 << 23); big[t] = 1; out[i] = 0;", 1)
    )


# Reports


def test_the_same_launch_makes_the_same_reports() -> None:
    body = "SHARED(int, tile, 64); tile[t] = x[i]; out[i] = tile[63 - t] + tile[(t + 5) % 64] + x[i + 1];"
    for schedule in SCHEDULES:
        first = check(body, 256, 64, schedule=schedule)
        assert len(first) > 2
        assert check(body, 256, 64, schedule=schedule) == first


def test_one_line_is_one_report_however_often_and_wherever_it_runs() -> None:
    (report,) = check("for (int n = 0; n < 3; n++) out[i] = x[i + 1000 + n];", 128, 64)
    assert report.count == 3 * 128
    assert replace(report, count=1).as_dict()["access"]["site"] == {"file": "k.metal", "line": 1}


def test_places_in_inlined_functions_are_those_of_the_function() -> None:
    helper = '#line 70 "helper.h"\nstatic inline int past(const int* x, uint i) {\n  return x[i];\n}'
    (report,) = check("out[i] = past(x, i + 64);", globals_=helper)
    assert report.access.site == Site("helper.h", 71)


def test_places_in_metalsims_own_headers_are_those_that_use_them() -> None:
    reports = check("if (i == 5)\n  out[0] = 7;\natomic_add(out, 1);", initialised=("out",))
    lines = {
        access.site and (access.site.file, access.site.line)
        for r in reports
        for access in (r.access, r.other)
        if access
    }
    assert lines == {("k.metal", 2), ("k.metal", 3)}


def test_of_a_very_long_file_name_the_end_is_told() -> None:
    meet = f'#line 1 "{"folder/" * 60}long.metal"\nstatic inline void meet() {{ threadgroup_barrier(BOTH); }}'
    (report,) = check("if (t < 5) meet(); else out[i] = 0;", globals_=meet)
    assert report.access.site == Site(("folder/" * 60 + "long.metal")[-255:], 1)


def test_more_findings_than_there_is_room_for_are_left_out_without_harm() -> None:
    body = "\n".join(f"if (i == {n}) USE(x[i + 300]);" for n in range(300))
    reports = check(body, 300)
    assert len(reports) == 256
    assert {report.finding for report in reports} == {Finding.OUT_OF_BOUNDS}
