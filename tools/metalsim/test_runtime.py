"""What the runtime executes: every thread, in step where kernels ask for it, whatever a kernel does to itself."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from inferspec import compiler

from . import process, runtime
from .handwritten import library, run
from .reports import Finding, Site
from .runtime import Buffer, Launch, Mode, Schedule

SCHEDULES = [
    Schedule("forward"),
    Schedule("reverse", groups="reverse"),
    Schedule("random", seed=1),
    Schedule("random", seed=2, groups="random"),
]
every_schedule = pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: f"{s.order}-{s.seed}-{s.groups}")


@pytest.fixture(autouse=True, scope="module")
def _compiler() -> None:
    try:
        compiler.compiler()
    except compiler.NoCompiler as error:
        pytest.skip(str(error))


def ints(count: int) -> np.ndarray:
    return np.zeros(count, np.int32)


def findings(outcome: runtime.Outcome) -> list[Finding]:
    return [report.finding for report in outcome.reports]


# Threads and where they are


def test_every_thread_of_a_ragged_grid_runs_once_and_knows_where_it_is() -> None:
    grid, group = (10, 7, 5), (4, 3, 2)
    out = np.zeros((5, 7, 10, 12), np.int32)
    body = """
      const uint *g = msl_cur_pos->tpig, *p = msl_cur_pos->tpitg, *q = msl_tgp.tgpig, *s = msl_tgp.tptg;
      int* to = out + ((g[2] * 7 + g[1]) * 10 + g[0]) * 12;
      for (int d = 0; d < 3; d++) { to[d] += p[d]; to[3 + d] += q[d]; to[6 + d] += s[d]; }
      to[9] += msl_cur_pos->tiitg; to[10] += msl_cur_pos->sgi * 100 + msl_cur_pos->lane; to[11] += msl_tgp.nsg;
    """
    run(body, "int* out", {"out": out}, threads=grid, group=group, initialised=("out",))
    for z, y, x in np.ndindex(5, 7, 10):
        at = np.array([x, y, z])
        inside, position = at % group, at // group
        size = np.minimum(group, np.array(grid) - position * group)
        number = inside[0] + size[0] * (inside[1] + size[1] * inside[2])
        expected = [*inside, *position, *size, number, number // 32 * 100 + number % 32, -(-size.prod() // 32)]
        assert out[z, y, x].tolist() == expected


def test_what_is_the_same_for_the_whole_grid_is_told_to_every_thread() -> None:
    out = ints(9)
    body = "for (int d = 0; d < 3; d++) { out[d] = msl_tgp.tpg[d]; out[3 + d] = msl_tgp.tgpg[d]; out[6 + d] = msl_tgp.dtptg[d]; }"
    run(body, "int* out", {"out": out}, threads=(10, 7, 5), group=(4, 3, 2))
    assert out.tolist() == [10, 7, 5, 3, 3, 3, 4, 3, 2]


@every_schedule
def test_a_barrier_holds_1024_threads_until_the_last_one_comes(schedule: Schedule) -> None:
    x, out = np.arange(2048, dtype=np.int32), ints(2048)
    body = """SHARED(int, tile, 1024); tile[t] = x[i];
      threadgroup_barrier(THREADGROUP);
      out[i] = tile[1023 - t];
      threadgroup_barrier(THREADGROUP);
      tile[t] = out[i];
      threadgroup_barrier(THREADGROUP);
      out[i] += tile[t ^ 512];
    """
    outcome = run(body, "const int* x, int* out", {"x": x, "out": out}, threads=2048, group=1024, schedule=schedule)
    flipped = x.reshape(2, 1024)[:, ::-1]
    expected = flipped + flipped[:, np.arange(1024) ^ 512]
    np.testing.assert_array_equal(out.reshape(2, 1024), expected)
    assert outcome.reports == ()
    assert outcome.threadgroup_bytes == 4096


@every_schedule
def test_simdgroup_functions_join_the_lanes_of_one_simdgroup_and_a_short_one_is_no_finding(schedule: Schedule) -> None:
    x, out = np.arange(100, dtype=np.int32), ints(100)
    body = "int sum = 0; for (int j = 0; j < 3; j++) sum += simd_sum(x[i]); out[i] = sum;"
    outcome = run(body, "const int* x, int* out", {"x": x, "out": out}, threads=100, schedule=schedule)
    expected = np.concatenate([np.full(len(part), 3 * part.sum()) for part in np.split(x, [32, 64, 96])])
    np.testing.assert_array_equal(out, expected)
    assert outcome.reports == ()


# Schedules


def order_of_threads(schedule: Schedule, threads: int = 128, group: int | None = None) -> list[int]:
    out, count = ints(threads), ints(1)
    body = "out[count[0]++] = i;"
    arrays = {"out": out, "count": count}
    run(
        body,
        "int* out, int* count",
        arrays,
        threads=threads,
        group=group,
        outputs=("out", "count"),
        initialised=("count",),
        schedule=schedule,
    )
    return out.tolist()


def test_forward_and_reverse_run_the_threads_in_order() -> None:
    assert order_of_threads(Schedule("forward")) == list(range(128))
    assert order_of_threads(Schedule("reverse")) == list(range(127, -1, -1))


def test_random_order_is_a_permutation_that_only_the_seed_decides() -> None:
    first = order_of_threads(Schedule("random", seed=1))
    assert sorted(first) == list(range(128))
    assert first not in (list(range(128)), list(range(127, -1, -1)))
    changes = sum(a // 32 != b // 32 for a, b in pairwise(first))
    assert changes > 3  # SIMD-groups take turns
    assert order_of_threads(Schedule("random", seed=1)) == first
    assert order_of_threads(Schedule("random", seed=2)) != first


def test_threadgroups_have_an_order_of_their_own() -> None:
    assert order_of_threads(Schedule(groups="forward"), 64, 1) == list(range(64))
    assert order_of_threads(Schedule(groups="reverse"), 64, 1) == list(range(63, -1, -1))
    shuffled = order_of_threads(Schedule(groups="random", seed=5), 64, 1)
    assert sorted(shuffled) == list(range(64))
    assert shuffled != list(range(64))
    assert order_of_threads(Schedule(groups="random", seed=6), 64, 1) != shuffled


@pytest.mark.parametrize(("number", "reduction"), [*enumerate(runtime.REDUCTIONS)])
def test_the_order_of_reductions_reaches_the_kernel(number: int, reduction: runtime.Reduction) -> None:
    out = ints(1)
    run("out[0] = msl_reduce_order;", "int* out", {"out": out}, schedule=Schedule(reduction=reduction))
    assert out[0] == number


# Memory


@pytest.mark.parametrize("mode", Mode)
def test_memory_that_nobody_wrote_holds_poison(mode: Mode) -> None:
    out = np.zeros(256, np.float32)
    body = "SHARED(float, tile, 64); if (group == 1) out[i] = tile[t]; if (group == 0) tile[t] = 5.0f;"
    run(body, "float* out", {"out": out}, threads=256, group=64, mode=mode)
    assert np.isnan(out).all()


def test_initialised_outputs_keep_what_they_had_and_inputs_are_not_changed() -> None:
    x, out = np.arange(8, dtype=np.int32), np.arange(8, dtype=np.int32)
    run("out[i] += 2 * x[i];", "const int* x, int* out", {"x": x, "out": out}, threads=8, initialised=("out",))
    assert out.tolist() == [3 * n for n in range(8)]
    assert x.tolist() == list(range(8))


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("count", [8, 1024, 100_000])
def test_the_first_byte_past_a_buffer_and_the_last_before_it_are_out_of_bounds(mode: Mode, count: int) -> None:
    # Before a buffer, only check mode knows every byte: the page that it begins in is its own.
    for index in (count, -1 if mode is Mode.CHECK else -4096):
        out = ints(1)
        arrays = {"x": np.zeros(count, np.int32), "out": out}
        outcome = run(f"out[0] = x[{index}];", "const int* x, int* out", arrays, mode=mode)
        (report,) = outcome.reports
        assert (report.finding, report.memory, report.index) == (Finding.OUT_OF_BOUNDS, "buffer x", index)
        assert report.access.site == Site("k.metal", 1)


@pytest.mark.parametrize("index", ["0xffffffffu", "0x80000000u", "-0x7fffffff - 1", "0x7fffffff"])
@pytest.mark.parametrize("kind", ["char", "int", "double"])
def test_any_32_bit_index_faults_instead_of_reaching_another_buffer(index: str, kind: str) -> None:
    arrays = {name: np.zeros(1 << 16, np.int8) for name in ("a", "x", "b")} | {"out": ints(1)}
    body = f"out[0] = (int)x[{index}];"
    outcome = run(body, f"const {kind}* a, const {kind}* x, const {kind}* b, int* out", arrays)
    (report,) = outcome.reports
    assert (report.finding, report.memory) == (Finding.OUT_OF_BOUNDS, "buffer x")


@pytest.mark.parametrize("mode", Mode)
def test_an_access_far_from_threadgroup_memory_is_out_of_bounds(mode: Mode) -> None:
    (report,) = run("SHARED(int, tile, 8); volatile int far = 1 << 28; (&tile[0])[far] = 1;", mode=mode).reports
    assert (report.finding, report.memory, report.index) == (Finding.OUT_OF_BOUNDS, "threadgroup tile", 1 << 28)


def test_vectors_may_be_read_from_a_buffer_whose_length_is_odd() -> None:
    x, out = np.arange(17, dtype=np.float32), np.zeros(4, np.float32)
    body = "typedef float four __attribute__((vector_size(16))); *(four*)out = *(const four*)x;"
    outcome = run(body, "const float* x, float* out", {"x": x, "out": out}, mode=Mode.CHECK)
    assert outcome.reports == ()
    assert out.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("mode", Mode)
def test_an_empty_buffer_has_an_address_that_must_not_be_read(mode: Mode) -> None:
    arrays = {"x": ints(0), "out": ints(1)}
    assert run("out[0] = x != nullptr;", "const int* x, int* out", arrays, mode=mode).reports == ()
    assert arrays["out"][0] == 1
    (report,) = run("out[0] = x[0];", "const int* x, int* out", arrays, mode=mode).reports
    assert report.finding is Finding.OUT_OF_BOUNDS


def test_a_kernel_can_have_31_buffers() -> None:
    arrays = {f"x{n}": np.full(3, n, np.int32) for n in range(30)} | {"out": ints(3)}
    parameters = ", ".join(f"const int* x{n}" for n in range(30)) + ", int* out"
    run("out[i] = x0[i] + x29[i] + x17[i];", parameters, arrays, threads=3)
    assert arrays["out"].tolist() == [46, 46, 46]


def test_threadgroup_arguments_have_the_length_that_the_launch_gives() -> None:
    out = ints(64)
    body = "int* tile = (int*)msl_tg_dyn(2, 4); tile[t] = i; threadgroup_barrier(THREADGROUP); out[i] = tile[63 - t];"
    right = run(body, "int* out", {"out": out}, threads=64, mode=Mode.CHECK, threadgroup_bytes={2: 256})
    assert right.reports == ()
    assert right.threadgroup_bytes == 256
    assert out.tolist() == list(range(63, -1, -1))
    short = run(body, "int* out", {"out": out}, threads=64, mode=Mode.CHECK, threadgroup_bytes={2: 252})
    assert {(report.finding, report.memory, report.index) for report in short.reports} == {
        (Finding.OUT_OF_BOUNDS, "threadgroup threadgroup(2)", 63)
    }


def test_function_constants_are_those_of_this_launch_only() -> None:
    constants = 'static int factor = 1, term = 0;\nextern "C" void msl_set_constant(int n, const void* p) { (n == 3 ? factor : term) = *(const int*)p; }'
    out = ints(1)

    def result(**values: int) -> int:
        given = {{"factor": 3, "term": 4}[name]: np.int32(value).tobytes() for name, value in values.items()}
        run("out[0] = factor * 10 + term;", "int* out", {"out": out}, globals_=constants, constants=given)
        return int(out[0])

    assert result(factor=7, term=5) == 75
    assert result(factor=2) == 20
    assert result() == 10


@pytest.mark.parametrize("mode", Mode)
def test_constants_without_a_suffix_are_floats_and_products_are_not_fused(mode: Mode) -> None:
    out = np.zeros(2, np.float32)
    body = "float tiny = 1.0f + 0x1p-12f; out[0] = sizeof(0.1); out[1] = tiny * tiny - (1.0f + 0x1p-11f);"
    run(body, "float* out", {"out": out}, mode=mode)
    assert out.tolist() == [4, 0]


# Launches that are refused


def launch(**more: object) -> Launch:
    made = library("", "", Mode.FAST)
    return Launch(**{"kernel": "k", "library": made, "buffers": (), "grid": (1, 1, 1), "threadgroup": (1, 1, 1)} | more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"threadgroup": (32, 32, 2)}, r"threadgroup: got \(32, 32, 2\), 2048 threads, takes 1024 at most"),
        ({"threadgroup": (0, 1, 1)}, r"threadgroup: got \(0, 1, 1\), takes three numbers of threads from 1"),
        ({"grid": (-1, 1, 1)}, r"grid: got \(-1, 1, 1\), takes three numbers"),
        ({"grid": (1 << 31, 2, 1)}, r"grid: got .* 4294967296 threadgroups, takes fewer than 2\*\*32"),
        ({"buffers": (Buffer(31, "x", ints(1), False),)}, r"buffers: got the indices \[31\], Metal takes 0 to 30"),
        ({"buffers": (Buffer(1, "x", ints(1), False),) * 2}, r"buffers: got the indices \[1, 1\], takes each once"),
        ({"buffers": (Buffer(1, "x", ints(8)[::2], False),)}, "buffers: the array of x is not contiguous"),
        ({"threadgroup_bytes": {31: 4}}, r"threadgroup_bytes: got the indices \[31\]"),
        ({"constants": {0: b"x" * 65}}, "constants: got 65 bytes for 0, takes 64 at most"),
    ],
)
def test_a_launch_that_metal_would_refuse_is_refused_by_the_name_of_what_is_wrong(
    more: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        runtime.run(launch(**more))


def test_a_grid_of_no_threads_does_nothing() -> None:
    out = np.arange(3, dtype=np.int32)
    assert run("out[i] = 9;", "int* out", {"out": out}, threads=(4, 0, 1), group=1).reports == ()
    assert out.tolist() == [0, 1, 2]


def test_a_library_that_is_no_kernel_is_an_error_of_the_callers() -> None:
    made = compiler.shared_library("int nothing;", [], label="nothing")
    with pytest.raises(RuntimeError, match="msl_entry"):
        runtime.run(launch(library=made))
    with pytest.raises(RuntimeError, match="no function constants"):
        runtime.run(launch(constants={0: b"\0" * 4}))


# Kernels that crash


def goes_on() -> bool:
    out = ints(64)
    outcome = run("out[i] = i;", "int* out", {"out": out}, threads=64)
    return outcome.reports == () and out.tolist() == list(range(64))


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(
    ("body", "finding", "detail", "line"),
    [
        ("volatile int* volatile p = nullptr;\n*p = 1;", Finding.CRASH, "null pointer", 2),
        ("\n\n__builtin_trap();", Finding.CRASH, "signal 4 at address", 3),
        ("volatile int zero = 0;\nout[0] = 100 / zero;", Finding.DIVISION, "", 2),
        (
            "volatile int* volatile p = (int*)0x7123456789a8; *p = 1;",
            Finding.CRASH,
            "signal 11 at address 0x7123456789a8",
            1,
        ),
    ],
)
def test_a_crash_is_a_report_and_the_next_launch_runs(
    mode: Mode, body: str, finding: Finding, detail: str, line: int
) -> None:
    outcome = run(body, "int* out", {"out": ints(1)}, threads=40, group=20, mode=mode)
    (report,) = outcome.reports
    assert (report.finding, report.count) == (finding, 1)
    assert report.detail.startswith(detail)
    assert report.access.site == Site("k.metal", line)
    assert (report.access.thread, report.access.group) == (0, (0, 0, 0))
    assert goes_on()


@pytest.mark.parametrize("mode", Mode)
def test_a_stack_overflow_is_a_report_and_the_next_launch_runs(mode: Mode) -> None:
    deep = "__attribute__((noinline)) static int deep(volatile int n) { volatile int big[512]; big[n % 512] = n; return deep(n + 1) + big[3]; }"
    outcome = run("out[0] = deep(0);", "int* out", {"out": ints(1)}, mode=mode, globals_=deep)
    (report,) = outcome.reports
    assert (report.finding, report.detail) == (Finding.CRASH, "stack overflow")
    assert goes_on()


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(
    "body",
    [
        "\n\nwhile (*(volatile const int*)x == 0) {}",
        "\nUSE(x[0]);\nwhile (!simd_sum(0)) {}",
        "\nUSE(x[0]);\nfor (;;) threadgroup_barrier(BOTH);",
    ],
)
def test_an_endless_loop_is_ended_and_its_line_is_told(mode: Mode, body: str) -> None:
    began = time.monotonic()
    outcome = run(body, "const int* x", {"x": ints(1)}, threads=64, mode=mode, timeout=0.2)
    assert time.monotonic() - began < 20
    (report,) = outcome.reports
    assert (report.finding, report.access.site) == (Finding.TIMEOUT, Site("k.metal", 3))
    assert goes_on()


def test_a_process_that_does_not_answer_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.3)
    monkeypatch.setattr(process, "PATIENCE", 0)
    # It ignores its timer.
    (report,) = run(
        "setitimer(2, (const long[4]){}, 0); for (volatile int on = 1; on;) {}",
        globals_='extern "C" int setitimer(int, const long*, long*);',
    ).reports
    assert (report.finding, report.access.site) == (Finding.TIMEOUT, None)
    assert goes_on()


def test_a_kernel_that_ends_its_process_is_a_report_and_the_next_launch_runs() -> None:
    outcome = run("_exit(3);", globals_='extern "C" void _exit(int);')
    assert findings(outcome) == [Finding.CRASH]
    assert goes_on()


def test_results_from_before_a_crash_are_kept() -> None:
    out = ints(64)
    outcome = run("out[i] = i; if (i == 40) __builtin_trap();", "int* out", {"out": out}, threads=64)
    assert findings(outcome) == [Finding.CRASH]
    assert out[:41].tolist() == list(range(41))
    assert (out[41:] == -1).all()


def test_a_process_that_somebody_ends_between_launches_is_replaced() -> None:
    assert goes_on()
    assert process._kept is not None
    os.kill(process._kept._process.pid, signal.SIGKILL)
    process._kept._process.wait()
    assert goes_on()


def test_an_interrupted_launch_leaves_no_process_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    assert goes_on()
    assert process._kept is not None
    before = process._kept._process

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(process.KernelProcess, "_wait", interrupt)
        with pytest.raises(KeyboardInterrupt):
            run("for (;;) {}")
    assert before.poll() is not None
    assert goes_on()


def test_threads_of_python_can_launch_at_the_same_time() -> None:
    results: dict[int, bool] = {}

    def work(number: int) -> None:
        right = True
        for _ in range(20):
            x, out = np.full(256, number, np.int32), ints(256)
            run("out[i] = 2 * x[i];", "const int* x, int* out", {"x": x, "out": out}, threads=256)
            right &= (out == 2 * number).all()
        results[number] = right

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == dict.fromkeys(range(4), True)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_python_forks_has_a_process_of_its_own() -> None:
    assert goes_on()
    assert process._kept is not None
    parents = process._kept._process.pid
    child = os.fork()
    if child == 0:
        right = goes_on() and process._kept is not None and process._kept._process.pid != parents
        os._exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert goes_on()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_forked_during_another_threads_launch_does_not_wait_for_it() -> None:
    with process._lock:
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            os._exit(0 if goes_on() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_large_data_is_not_kept_between_launches() -> None:
    big = np.zeros(200 << 20, np.uint8)
    assert run("out[0] = x[199 << 20];", "const char* x, char* out", {"x": big, "out": big[:1].copy()}).reports == ()
    assert goes_on()
    assert process._kept is not None
    assert os.fstat(process._kept._data_file).st_size <= process.KEPT_BYTES


# Another machine's fibers


def test_fibers_and_meetings_work_on_arm64(tmp_path: Path) -> None:
    cross, emulator = "aarch64-linux-gnu-g++", "qemu-aarch64"
    missing = [tool for tool in (cross, emulator) if not shutil.which(tool)]
    if missing:
        pytest.skip(f"{' and '.join(missing)} not installed")
    sources = process.HERE / "runtime"
    built = tmp_path / "self_test"
    command = [
        cross,
        "-std=c++17",
        "-O2",
        "-static",
        f"-I{sources}",
        f"-I{process.HEADERS}",
        str(sources / "self_test.cpp"),
    ]
    subprocess.run([*command, "-o", str(built)], check=True, capture_output=True)
    done = subprocess.run([emulator, str(built)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "1024 lanes met 100 times in each of 3 orders\n")


@pytest.mark.skipif(compiler.MAC, reason="macOS limits no address space")
def test_a_system_without_address_space_is_told_as_such() -> None:
    script = f"import sys; sys.path[:0] = {sys.path!r}; from {process.__package__}.process import KernelProcess; KernelProcess()"
    limited = ["sh", "-c", 'ulimit -v 8000000 && exec "$@"', "sh", sys.executable, "-c", script]
    done = subprocess.run(limited, capture_output=True, text=True)
    assert "the system has no address space to run kernels in" in done.stderr
    assert "RuntimeError: the process that runs kernels does not start" in done.stderr
