"""Running a compiled kernel: launches as data in, results and findings as data out.

Kernels run in a process of their own, which is started once and kept: a crash or an endless loop ends that process, and the next
launch gets a new one. (A fork of Python for each launch would cost 3 ms and more with MLX and torch loaded.) The two
share a control block, `runtime/protocol.h`, and a data file whose pages hold the buffers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from mmap import PAGESIZE
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from inferspec import compiler

from . import arithmetic, process, symbols
from .listing import Listing
from .process import runtime_library
from .reports import Access, Finding, Report, Site

__all__ = [
    "COMPILE_FLAGS",
    "Buffer",
    "Cost",
    "Launch",
    "Mode",
    "Outcome",
    "Schedule",
    "Traffic",
    "run",
    "runtime_library",
]

MOST_THREADS = 1024
POISON = 0xFF
WIDEST_ALIGNMENT = 32  # of long4
# As the headers number them, from 1.
COLLECTIVES = ("reduce", "shuffle", "scan", "vote", "matrix")
MATRIX = "matrix"

Order = Literal["forward", "reverse", "random"]
Reduction = Literal["tree", "forward", "backward", "halves"]
ORDERS: tuple[Order, ...] = ("forward", "reverse", "random")
REDUCTIONS: tuple[Reduction, ...] = ("tree", "forward", "backward", "halves")


class Mode(StrEnum):
    """What a launch is for: its results alone, what is wrong with it, or what it costs."""

    FAST = "fast"
    CHECK = "check"
    COST = "cost"


_COMMON_FLAGS = (
    "-std=c++17",
    "-O1",  # -O2 gains nothing and compiles longer
    "-g1",
    "-gdwarf-4",
    "-fsingle-precision-constant",
    "-ffp-contract=off",
    "-fexcess-precision=16",  # half is rounded after each operation
    *compiler.half_flags(),
    "-fsigned-char",
    # Lanes meet where the same calls led them: frames tell which, and no call is written twice or two as one.
    "-fno-omit-frame-pointer",
    "-fno-optimize-sibling-calls",
    "-fno-thread-jumps",
    "-fno-tree-dominator-opts",
    "-fno-crossjumping",
    "-fno-strict-aliasing",
    "-fno-math-errno",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-stack-protector",
    "-w",
)
_HOOKED = ("-fsanitize=thread", "--param=tsan-instrument-func-entry-exit=0")
# No variable is read where the source does not, ahead of the condition under which it does.
_AS_WRITTEN = ("-fno-tree-loop-im", "-fno-ssa-phiopt")
COMPILE_FLAGS: Mapping[Mode, tuple[str, ...]] = MappingProxyType(
    {
        Mode.FAST: _COMMON_FLAGS,
        Mode.CHECK: (
            *_COMMON_FLAGS,
            *_HOOKED,
            *_AS_WRITTEN,
            "-fsanitize=bounds,shift-exponent,alignment,integer-divide-by-zero,signed-integer-overflow",
            "-DMSL_CHECK",
        ),
        Mode.COST: (*_COMMON_FLAGS, *_HOOKED, "-fsanitize-coverage=trace-pc", "-DMSL_COST"),
    }
)


@dataclass(frozen=True)
class Schedule:
    """In which order what a GPU does at once is done here, and in which a SIMD-group's reductions add up.

    order: of a threadgroup's lanes and SIMD-groups. groups: of the threadgroups. seed: of random orders. reduction: ``tree`` of
    neighbours, ``forward`` or ``backward`` one by one, ``halves``.
    """

    order: Order = "forward"
    seed: int = 0
    reduction: Reduction = "tree"
    groups: Order = "forward"


@dataclass(frozen=True)
class Buffer:
    """What a kernel gets as ``[[buffer(index)]]``.

    array: C-contiguous; changed in place if writable. initialised: whether its contents may be read; if not, they are
    poison (all bits set) to begin with. first: the element that the kernel's pointer points to; indices count from it.
    """

    index: int
    name: str
    array: np.ndarray
    writable: bool
    initialised: bool = True
    first: int = 0


@dataclass(frozen=True)
class Launch:
    """One launch of one kernel.

    Args:
        kernel: What reports call it.
        library: Made by `compiler.shared_library` with the flags of `mode`; its `msl_entry` runs one thread.
        grid: In threads.
        threadgroup: In threads; the last ones of the grid are smaller where it is no multiple.
        threadgroup_bytes: Of each ``[[threadgroup(n)]]`` argument.
        constants: The bytes of each ``[[function_constant(n)]]``.
        timeout: Seconds of processor time after which a kernel counts as endless.
        strict: SIMD-group functions do not order memory (by the rules they do not; by default they do here, as kernels in the
            wild count on it).
        listing: Its source, for who shows lines of it.
    """

    kernel: str
    library: Path
    buffers: tuple[Buffer, ...]
    grid: tuple[int, int, int]
    threadgroup: tuple[int, int, int]
    threadgroup_bytes: Mapping[int, int] = field(default_factory=dict)
    constants: Mapping[int, bytes] = field(default_factory=dict)
    mode: Mode = Mode.FAST
    schedule: Schedule = Schedule()
    timeout: float = 60.0
    strict: bool = False
    listing: Listing | None = None


@dataclass(frozen=True)
class Traffic:
    """Of one buffer: how many of its bytes were read and written at all, however often: what no kernel of the job can undercut."""

    buffer: str
    bytes_read: int
    bytes_written: int


@dataclass(frozen=True)
class Cost:
    """What a launch did, counted over the whole grid.

    Bytes are those that the code asks for, thread by thread: caches and coalescing play no part. `least_traffic` counts each byte
    once. Barriers count once for each threadgroup (or SIMD-group) that meets. Atomics count as traffic too.

    float_operations and integer_operations: machine instructions of this machine's own -O1 build that compute (a fused
    multiply-add counts twice), integer ones including what addresses take, without what SIMD-group functions do inside;
    special_functions: calls of exp, pow and the like, which count as nothing else. None without `objdump`. They compare kernels; they are not
    what a GPU executes.
    """

    threads: int
    simdgroups: int
    threadgroups: int
    device_bytes_read: int
    device_bytes_written: int
    least_traffic: tuple[Traffic, ...]
    threadgroup_bytes_read: int
    threadgroup_bytes_written: int
    threadgroup_barriers: int
    simdgroup_barriers: int
    simdgroup_operations: Mapping[str, int]
    matrix_multiply_accumulates: int
    device_atomics: int
    threadgroup_atomics: int
    float_operations: int | None
    integer_operations: int | None
    special_functions: int | None

    @property
    def least_bytes_read(self) -> int:
        """Distinct bytes of device memory that were read."""
        return sum(traffic.bytes_read for traffic in self.least_traffic)

    @property
    def least_bytes_written(self) -> int:
        """Distinct bytes of device memory that were written."""
        return sum(traffic.bytes_written for traffic in self.least_traffic)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        plain = asdict(self)
        plain["simdgroup_operations"] = dict(self.simdgroup_operations)
        return {**plain, "least_bytes_read": self.least_bytes_read, "least_bytes_written": self.least_bytes_written}


@dataclass(frozen=True)
class Outcome:
    """What came of a launch.

    reports: In the order of discovery, which is that of the schedule. threadgroup_bytes: the most that a threadgroup used. seconds: of
    processor time that the kernel took. cost: of Mode.COST.
    """

    reports: tuple[Report, ...]
    threadgroup_bytes: int
    seconds: float
    cost: Cost | None


def run(launch: Launch) -> Outcome:
    """Runs it. Never raises for what the kernel does: a crash or an endless loop is a report.

    Raises:
        ValueError: A launch that Metal would refuse: an empty threadgroup or one of more than 1024 threads, a buffer index over
            30, or the like.
        NoCompiler: There is no C++ compiler to build the runtime with.
        RuntimeError: The library is no kernel.
    """
    _validate(launch)
    if not math.prod(launch.grid):
        return Outcome((), 0, 0.0, None)
    try:
        with process.kernel_process() as running:
            return _run_in(running, launch)
    except process.Died:
        return _lost(launch, Finding.CRASH, "the process that ran it died")
    except TimeoutError:
        return _lost(launch, Finding.TIMEOUT, "the process that ran it did not answer")


def _run_in(running: process.KernelProcess, launch: Launch) -> Outcome:
    places = _places(launch.buffers)
    data = running.data(max(PAGESIZE, *(place.page_end for place in places)) if places else PAGESIZE)
    for buffer, place in zip(launch.buffers, places, strict=True):
        data[place.page_begin : place.begin] = POISON
        data[place.begin : place.end] = _bytes_of(buffer.array) if buffer.initialised else POISON
        data[place.end : place.page_end] = POISON
    _write_request(running.control.request, launch, places)
    response = running.ask(launch.timeout)
    if response.status == process.STATUS_FAILED:
        raise RuntimeError(f"{launch.library} does not run: {response.message.decode(errors='replace')}")
    for buffer, place in zip(launch.buffers, places, strict=True):
        if buffer.writable:
            _bytes_of(buffer.array)[:] = data[place.begin : place.end]
    cost = None
    if launch.mode is Mode.COST and response.status == process.STATUS_DONE:
        blocks = np.frombuffer(running.appended(16 * response.block_count), np.uint64).reshape(-1, 2)
        counts = dict(zip(blocks[:, 0].tolist(), blocks[:, 1].tolist(), strict=True))
        cost = _cost(launch, response.counters, counts)
    reports = _reports(launch, response.reports[: response.report_count])
    return Outcome(reports, response.threadgroup_bytes, response.nanoseconds / 1e9, cost)


def _validate(launch: Launch) -> None:
    if len(launch.grid) != 3 or any(not 0 <= n < 1 << 32 for n in launch.grid):
        raise ValueError(f"grid: got {launch.grid}, takes three numbers of threads below 2**32")
    if len(launch.threadgroup) != 3 or any(n < 1 for n in launch.threadgroup):
        raise ValueError(f"threadgroup: got {launch.threadgroup}, takes three numbers of threads from 1")
    if (threads := math.prod(launch.threadgroup)) > MOST_THREADS:
        raise ValueError(f"threadgroup: got {launch.threadgroup}, {threads} threads, takes {MOST_THREADS} at most")
    if (groups := math.prod(-(-n // t) for n, t in zip(launch.grid, launch.threadgroup, strict=True))) >= 1 << 32:
        raise ValueError(f"grid: got {launch.grid}, {groups} threadgroups, takes fewer than 2**32")
    _validate_indices("buffers", [buffer.index for buffer in launch.buffers])
    _validate_indices("threadgroup_bytes", list(launch.threadgroup_bytes))
    for buffer in launch.buffers:
        if not buffer.array.flags.c_contiguous:
            raise ValueError(f"buffers: the array of {buffer.name} is not contiguous")
        if buffer.writable and not buffer.array.flags.writeable:
            raise ValueError(f"buffers: {buffer.name} is writable, its array is read-only")
    if len(launch.constants) > process.MOST_CONSTANTS:
        raise ValueError(f"constants: got {len(launch.constants)}, takes {process.MOST_CONSTANTS} at most")
    for index, value in launch.constants.items():
        if len(value) > process.LONGEST_CONSTANT:
            raise ValueError(f"constants: got {len(value)} bytes for {index}, takes {process.LONGEST_CONSTANT} at most")


def _validate_indices(name: str, indices: list[int]) -> None:
    if any(not 0 <= index < process.MOST_BUFFERS for index in indices):
        raise ValueError(f"{name}: got the indices {sorted(indices)}, Metal takes 0 to {process.MOST_BUFFERS - 1}")
    if len(set(indices)) < len(indices):
        raise ValueError(f"{name}: got the indices {sorted(indices)}, takes each once")


@dataclass(frozen=True)
class _Place:
    """Where a buffer is in the data file: its bytes, and the pages that are its alone."""

    page_begin: int
    page_end: int
    begin: int
    end: int


def _places(buffers: Iterable[Buffer]) -> list[_Place]:
    """The end of a buffer is the end of its pages, so that the first byte after it faults.

    Up to 31 bytes lie between where the start must be aligned: a kernel may read vectors from it, as wide as the buffer
    allows.
    """
    places: list[_Place] = []
    page_begin = 0
    for buffer in buffers:
        size = buffer.array.nbytes
        page_end = page_begin + -(-size // PAGESIZE) * PAGESIZE
        alignment = min(1 << max(size.bit_length() - 1, 0), WIDEST_ALIGNMENT)
        begin = (page_end - size) // alignment * alignment
        places.append(_Place(page_begin, page_end, begin, begin + size))
        page_begin = page_end
    return places


def _bytes_of(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)


def _write_request(request: process.Request, launch: Launch, places: list[_Place]) -> None:
    request.library = str(launch.library).encode()
    request.grid[:] = launch.grid
    request.threadgroup[:] = launch.threadgroup
    for index in range(process.MOST_BUFFERS):
        request.threadgroup_bytes[index] = launch.threadgroup_bytes.get(index, 0)
    request.seed = launch.schedule.seed & (1 << 64) - 1
    request.timeout_microseconds = max(1, int(launch.timeout * 1e6))
    request.mode = list(Mode).index(launch.mode)
    request.lanes = ORDERS.index(launch.schedule.order)
    request.groups = ORDERS.index(launch.schedule.groups)
    request.reduction = REDUCTIONS.index(launch.schedule.reduction)
    request.strict = launch.strict
    request.buffer_count = len(launch.buffers)
    for record, buffer, place in zip(request.buffers, launch.buffers, places, strict=False):
        record.file_offset = place.page_begin
        record.map_bytes = place.page_end - place.page_begin
        record.data_offset = place.begin - place.page_begin
        record.bytes = place.end - place.begin
        record.first = buffer.first * buffer.array.itemsize
        record.index = buffer.index
        record.granule = min(buffer.array.itemsize, 4)
        record.initialised = buffer.initialised
        record.writable = buffer.writable
    request.constant_count = len(launch.constants)
    for constant, (index, value) in zip(request.constants, launch.constants.items(), strict=False):
        constant.index = index
        constant.bytes = len(value)
        constant.value[: len(value)] = value


def _lost(launch: Launch, finding: Finding, detail: str) -> Outcome:
    access = Access(thread=0, group=(0, 0, 0), writes=False, site=None)
    return Outcome((Report(finding, launch.kernel, None, None, access, detail=detail),), 0, 0.0, None)


def _reports(launch: Launch, records: list[process.ReportRecord]) -> tuple[Report, ...]:
    """The records as reports, those of one place in the source together."""
    accesses = [access for record in records for access in (record.access, record.other)]
    counters = [counter for access in accesses for counter in (access.pc, access.earlier_pc)]
    sites = symbols.sites(launch.library, counters)
    merged: dict[tuple[Any, ...], Report] = {}
    for record in records:
        report = _report(launch, record, sites)
        other = report.other and report.other.site
        kinds = report.access.writes, report.other and report.other.writes
        key = (report.finding, report.access.site, other, kinds, report.memory if report.access.site is None else None)
        known = merged.get(key)
        merged[key] = replace(known, count=known.count + report.count) if known else report
    # A declared array's bounds are checked by its type too: one finding is enough, and the address tells whose memory it is.
    bounds = {report.access.site for report in merged.values() if report.finding is Finding.OUT_OF_BOUNDS}
    return tuple(
        report
        for report in merged.values()
        if not (report.finding is Finding.ARRAY_OVERRUN and report.access.site in bounds)
    )


def _report(launch: Launch, record: process.ReportRecord, sites: Mapping[int, Site | None]) -> Report:
    memory, index = _memory(launch, record)
    return Report(
        finding=list(Finding)[record.finding],
        kernel=launch.kernel,
        memory=memory,
        index=index,
        access=_access(record.access, sites),
        other=_access(record.other, sites) if record.has_other else None,
        detail=_detail(record),
        count=record.count,
    )


def _memory(launch: Launch, record: process.ReportRecord) -> tuple[str | None, int | None]:
    if record.variable:
        index = record.offset // record.granule if record.granule else None
        return f"threadgroup {record.variable.decode(errors='replace')}", index
    for buffer in launch.buffers:
        if buffer.index == record.buffer:
            return f"buffer {buffer.name}", record.offset // buffer.array.itemsize
    return None, None


def _access(record: process.AccessRecord, sites: Mapping[int, Site | None]) -> Access:
    known = [sites[record.pc], sites[record.earlier_pc]]
    if record.line:
        known.append(Site(symbols.readable(record.file.decode(errors="replace")), record.line))
    places = [site for site in known if site is not None]
    site = next((site for site in places if not symbols.is_ours(site)), next(iter(places), None))
    return Access(record.thread, (record.group[0], record.group[1], record.group[2]), bool(record.writes), site)


def _detail(record: process.ReportRecord) -> str:
    first, second = record.info
    match process.Reason(record.reason):
        case process.Reason.NONE:
            return ""
        case process.Reason.OTHER_BARRIER:
            return "threads of one threadgroup wait at different barriers"
        case process.Reason.THREADS_ENDED:
            return f"{first} of its threads have ended"
        case process.Reason.LANES_MISSING:
            return f"lanes {first:#010x} came, of {second:#010x}"
        case process.Reason.LANE_READ:
            return f"lane {first} is read, and lanes {second:#010x} take part"
        case process.Reason.NULL_POINTER:
            return "null pointer"
        case process.Reason.STACK_OVERFLOW:
            return "stack overflow"
        case process.Reason.SIGNAL:
            return f"signal {first} at address {second:#x}"
        case process.Reason.BYTES:
            return f"{first} bytes"
        case process.Reason.ENDED:
            return "the launch ended there"
        case process.Reason.PRIVATE:
            return "of a private variable"
        case process.Reason.MATRIX:
            return "of a simdgroup_matrix that nobody has set"


def _cost(launch: Launch, counters: process.Counters, blocks: Mapping[int, int]) -> Cost:
    counts = {kind: counters.collectives[number] for number, kind in enumerate(COLLECTIVES, 1)}
    work = arithmetic.operations(launch.library, blocks)
    traffic = [
        Traffic(buffer.name, counters.touched_read[buffer.index], counters.touched_written[buffer.index])
        for buffer in launch.buffers
    ]
    return Cost(
        threads=counters.threads,
        simdgroups=counters.simdgroups,
        threadgroups=counters.threadgroups,
        device_bytes_read=counters.device_bytes_read,
        device_bytes_written=counters.device_bytes_written,
        least_traffic=tuple(traffic),
        threadgroup_bytes_read=counters.threadgroup_bytes_read,
        threadgroup_bytes_written=counters.threadgroup_bytes_written,
        threadgroup_barriers=counters.threadgroup_barriers,
        simdgroup_barriers=counters.simdgroup_barriers,
        simdgroup_operations={kind: count for kind, count in counts.items() if kind != MATRIX},
        matrix_multiply_accumulates=counts[MATRIX],
        device_atomics=counters.device_atomics,
        threadgroup_atomics=counters.threadgroup_atomics,
        float_operations=work.floating if work else None,
        integer_operations=work.integer if work else None,
        special_functions=work.special if work else None,
    )
