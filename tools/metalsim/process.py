"""The process that kernels run in, seen from Python: starting it, the memory shared with it, asking and waiting."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import mmap
import os
import select
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path

import numpy as np

from inferspec import compiler

HERE = Path(__file__).parent
HEADERS = HERE / "include"
PARTS = (
    "fibers",
    "scheduler",
    "rendezvous",
    "memory",
    "fences",
    "private_memory",
    "shadow",
    "cost",
    "hooks",
    "findings",
    "faults",
    "dispatch",
    "serve",
)
FLAGS = (
    "-std=c++17",
    "-O2",
    "-g1",
    "-fvisibility=hidden",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-stack-protector",
    "-fno-omit-frame-pointer",  # where lanes meet is told by the calls that led there
)

MOST_BUFFERS = 31
MOST_CONSTANTS = 64
MOST_REPORTS = 256
COLLECTIVE_KINDS = 8
LONGEST_CONSTANT = 64
KEPT_BYTES = 64 << 20  # of data, between launches
START_SECONDS = 30.0
# The process has a timer of its own, of processor time, which knows where the kernel is. If that fails: so many times as long,
# and so many seconds more.
PATIENCE, GRACE_SECONDS = 10, 60.0

STATUS_DONE, STATUS_STOPPED, STATUS_FAILED = 1, 2, 3

u8, u32, u64, i32, i64 = ctypes.c_uint8, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int32, ctypes.c_int64


# The structures of runtime/protocol.h, field by field.


class BufferRequest(ctypes.Structure):
    _fields_ = [
        *((name, u64) for name in ("file_offset", "map_bytes", "data_offset", "bytes", "first")),
        *((name, u32) for name in ("index", "granule", "initialised", "writable")),
    ]


class ConstantRequest(ctypes.Structure):
    _fields_ = [("index", u32), ("bytes", u32), ("value", u8 * LONGEST_CONSTANT)]


class Request(ctypes.Structure):
    _fields_ = [
        ("library", ctypes.c_char * 4096),
        ("grid", u32 * 3),
        ("threadgroup", u32 * 3),
        ("threadgroup_bytes", u64 * MOST_BUFFERS),
        ("seed", u64),
        ("timeout_microseconds", u64),
        *((name, u32) for name in ("mode", "lanes", "groups", "reduction", "strict")),
        *((name, u32) for name in ("buffer_count", "constant_count", "unused")),
        ("buffers", BufferRequest * MOST_BUFFERS),
        ("constants", ConstantRequest * MOST_CONSTANTS),
    ]


class AccessRecord(ctypes.Structure):
    _fields_ = [
        ("pc", u64),
        ("earlier_pc", u64),
        ("thread", u32),
        ("group", u32 * 3),
        ("writes", u32),
        ("line", i32),
        ("file", ctypes.c_char * 256),
    ]


class ReportRecord(ctypes.Structure):
    _fields_ = [
        ("finding", u32),
        ("reason", u32),
        ("buffer", i32),
        ("has_other", u32),
        ("offset", i64),
        ("bytes", u32),
        ("granule", u32),
        ("count", u64),
        ("info", u64 * 2),
        ("variable", ctypes.c_char * 64),
        ("access", AccessRecord),
        ("other", AccessRecord),
    ]


class Counters(ctypes.Structure):
    _fields_ = [
        *((name, u64) for name in ("device_bytes_read", "device_bytes_written")),
        *((name, u64) for name in ("threadgroup_bytes_read", "threadgroup_bytes_written")),
        *((name, u64) for name in ("threadgroup_barriers", "simdgroup_barriers")),
        ("collectives", u64 * COLLECTIVE_KINDS),
        *((name, u64) for name in ("device_atomics", "threadgroup_atomics")),
        ("touched_read", u64 * MOST_BUFFERS),
        ("touched_written", u64 * MOST_BUFFERS),
        *((name, u64) for name in ("threads", "simdgroups", "threadgroups")),
    ]


class Response(ctypes.Structure):
    _fields_ = [
        ("status", u32),
        ("report_count", u32),
        *((name, u64) for name in ("reports_dropped", "nanoseconds", "threadgroup_bytes", "block_count")),
        ("message", ctypes.c_char * 512),
        ("counters", Counters),
        ("reports", ReportRecord * MOST_REPORTS),
    ]


class Control(ctypes.Structure):
    _fields_ = [("size", u64), ("request", Request), ("response", Response)]


class Reason(IntEnum):
    """Why, where the finding alone does not tell."""

    NONE = 0
    OTHER_BARRIER = 1
    THREADS_ENDED = 2
    LANES_MISSING = 3
    LANE_READ = 4
    NULL_POINTER = 5
    STACK_OVERFLOW = 6
    SIGNAL = 7
    BYTES = 8
    ENDED = 9
    MATRIX = 10
    PRIVATE = 11


class Died(RuntimeError):
    """The process ended without an answer."""


def runtime_library() -> Path:
    """The shared library that kernels are linked against, built when first asked for.

    Raises:
        NoCompiler: There is no C++ compiler.
    """
    source = "".join(f'#include "{part}.cpp"\n' for part in PARTS)
    return compiler.shared_library(source, FLAGS, includes=[HERE / "runtime", HEADERS], label="metalsim_runtime")


def _program() -> Path:
    return compiler.program('#include "process.cpp"\n', FLAGS, includes=[HERE / "runtime"], label="metalsim_process")


def _nameless_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("metalsim")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class KernelProcess:
    """One such process. Not for two threads at once."""

    def __init__(self) -> None:
        self._control_file, self._data_file = _nameless_file(), _nameless_file()
        os.ftruncate(self._control_file, ctypes.sizeof(Control))
        self._data_bytes = 0
        self._data: mmap.mmap | None = None
        self.control = Control.from_buffer(mmap.mmap(self._control_file, ctypes.sizeof(Control)))
        files = (self._control_file, self._data_file)
        self._process = subprocess.Popen(
            [_program(), runtime_library(), *map(str, files)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=files,
            bufsize=0,
        )
        try:
            self._wait(START_SECONDS)
        except (Died, TimeoutError):
            self.end()
            raise RuntimeError("the process that runs kernels does not start; what it said is on stderr") from None
        if self.control.size != ctypes.sizeof(Control):
            self.end()
            raise RuntimeError("process.py and runtime/protocol.h disagree")

    def data(self, size: int) -> np.ndarray:
        """`size` bytes shared with the process, with what was in them; valid until the next call."""
        if self._data is None or size > self._data_bytes or self._data_bytes > max(size, KEPT_BYTES):
            self._data = None
            os.ftruncate(self._data_file, size)
            self._data_bytes = size
            self._data = mmap.mmap(self._data_file, size)
        return np.frombuffer(self._data, np.uint8, size)

    def ask(self, timeout: float) -> Response:
        """Has the request in `control` done.

        Raises:
            Died: The process ended without a word.
            TimeoutError: It did not answer in time.
        """
        assert self._process.stdin
        os.ftruncate(self._data_file, self._data_bytes)
        try:
            self._process.stdin.write(b"!")
        except BrokenPipeError:
            raise Died from None
        self._wait(PATIENCE * timeout + GRACE_SECONDS)
        return self.control.response

    def appended(self, size: int) -> bytes:
        """What the process appended to the data."""
        return os.pread(self._data_file, size, self._data_bytes)

    def alive(self) -> bool:
        """Whether it still waits for requests."""
        return self._process.poll() is None

    def end(self) -> None:
        """Ends it, whatever it is at."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()
        os.close(self._control_file)
        os.close(self._data_file)

    def _wait(self, seconds: float) -> None:
        assert self._process.stdout
        poll = select.poll()
        poll.register(self._process.stdout, select.POLLIN)
        if not poll.poll(seconds * 1e3):
            raise TimeoutError
        if not self._process.stdout.read(1):
            raise Died


_lock = threading.Lock()
_kept: KernelProcess | None = None
_of_parents: list[KernelProcess] = []  # kept from being collected: they are not this process's to end


@contextlib.contextmanager
def kernel_process() -> Iterator[KernelProcess]:
    """The kept process, for one thread at a time; ended if the block raises, or if the process stopped."""
    global _kept
    with _lock:
        if _kept is not None and not _kept.alive():
            _end_kept()
        if _kept is None:
            _kept = KernelProcess()
        process = _kept
        try:
            yield process
        except BaseException:
            _end_kept()
            raise
        if process.control.response.status == STATUS_STOPPED:
            _end_kept()


def _end_kept() -> None:
    global _kept
    if _kept is not None:
        _kept.end()
        _kept = None


def _forget_in_child() -> None:
    # After Python's own fork the process is the parent's, and some thread of the parent may hold the lock.
    global _kept, _lock
    if _kept is not None:
        _of_parents.append(_kept)
    _kept, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget_in_child)
atexit.register(_end_kept)
