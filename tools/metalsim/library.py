"""Whole `.metal` sources: their kernels by name, made with function constants, launched with buffers.

library = Library("kernels/rows.metal")
outcome = library.kernel("row_sum_float", {"scaled": True})(
    {"x": x, "out": out, 2: np.uint32(x.shape[1])}, threadgroups=(x.shape[0], 1, 1), threadgroup=(32, 1, 1)
)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from inferspec import compiler

from . import runtime
from .declarations import declarations
from .dtypes import bytes_of, number
from .errors import KernelError
from .listing import Listing
from .preprocess import HEADERS, preprocess
from .refusals import check
from .rewrite import KernelFunction, Parameter, Rewritten, rewrite
from .runtime import Buffer, Launch, Mode, Outcome, Schedule
from .settings import current, tell
from .unit import unit

MAX_THREADS = 1024
Size = tuple[int, int, int]
Value = np.ndarray | np.generic | bytes | bool | int | float
# By index, by name, or some of each. (A mapping's keys are of one exact type to a type checker.)
Buffers = Mapping[str, Value] | Mapping[int, Value] | Mapping[int | str, Value] | Mapping[str | int, Any]
Constants = Mapping[str, Any] | Mapping[int, Any] | Mapping[str | int, bool | int | float]
Sizes = Mapping[str, int] | Mapping[int, int] | Mapping[int | str, int]


class Library:
    """The kernels of a Metal source.

    source: text, or the ``Path`` of a file (its folder is searched for includes first). includes: folders of headers.
    defines: macros. name: what messages call text (a file has its own name).

    Nothing is compiled before a kernel is launched. Raises ``Refused`` for what metalsim does not run, ``CompileError``
    and ``NoCompiler`` from preprocessing.
    """

    def __init__(
        self,
        source: str | Path,
        includes: Sequence[Path | str] = (),
        *,
        defines: Mapping[str, str] | None = None,
        name: str = "<source>",
    ) -> None:
        folders = [Path(folder) for folder in includes]
        if isinstance(source, Path):
            text, name = source.read_text(encoding="utf-8"), source.name
            folders = [source.parent, *folders]
        else:
            text = source
        self.name = name
        scanned = preprocess(text, name, includes=folders, defines=defines)
        self._listing = Listing(name, text, scanned.text)
        check(scanned, tuple(declarations(scanned)))
        self._rewritten = rewrite(scanned)
        self._kernels: dict[object, Kernel] = {}
        self._lock = Lock()

    @cached_property
    def _expressions(self) -> dict[str, tuple[str, KernelFunction]]:
        """Name -> C++ for the function, and the kernel's definition. Templates have names only where instantiated."""
        named: dict[str, tuple[str, KernelFunction]] = {}
        for name, function in self._rewritten.kernels.items():
            if not function.is_template:
                named[function.host_name or name] = (name, function)
        for name, instantiation in self._rewritten.instantiations.items():
            named[name] = (instantiation.expression, self._rewritten.kernels[instantiation.function])
        return named

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names that ``kernel`` takes."""
        return tuple(self._expressions)

    @property
    def constants(self) -> tuple[str, ...]:
        """The names of its function constants."""
        return tuple(constant.name for constant in self._rewritten.constants.by_index.values())

    def kernel(self, name: str, constants: Constants | None = None) -> Kernel:
        """A kernel by the host's name for it: the function's, or what ``[[host_name]]`` says.

        name: may also be a template with its arguments, ``row_sum<float, 4>``. constants: the values of its function
        constants, by name or index.

        Raises ``KeyError`` for a name that there is not, ``ValueError`` for constants that are missing or unknown.
        """
        key = (name, tuple(sorted((constants or {}).items(), key=repr)))
        with self._lock:
            if key not in self._kernels:
                self._kernels[key] = self._make(name, constants or {})
            return self._kernels[key]

    def _make(self, name: str, constants: Constants) -> Kernel:
        rewritten = self._rewritten
        template = name.split("<")[0].strip()
        if name in self._expressions:
            expression, function = self._expressions[name]
        elif "<" in name and template in rewritten.kernels:
            expression, function = name, rewritten.kernels[template]
        else:
            known = ", ".join(self.kernels) or "none"
            raise KeyError(f"{self.name} has no kernel {name!r}; it has {known}")
        values = self._constants(name, function, constants)
        return Kernel(name, rewritten, expression, function.parameters, values, self._listing)

    def _constants(self, kernel: str, function: KernelFunction, given: Constants) -> dict[int, bytes]:
        declared = self._rewritten.constants.by_index
        by_name = {constant.name: constant for constant in declared.values()}
        values = {}
        for key, value in given.items():
            constant = declared.get(key) if isinstance(key, int) else by_name.get(key)
            if constant is None:
                known = ", ".join(f"{c.name} ({c.index})" for c in declared.values()) or "none"
                raise ValueError(f"{self.name} has no function constant {key!r}; it has {known}")
            values[constant.index] = bytes_of(value, constant.type, f"function constant {constant.name}")
        missing = self._rewritten.needed_constants(function) - {declared[index].name for index in values}
        if missing:
            raise ValueError(f"kernel {kernel} needs the function constants {', '.join(sorted(missing))}")
        return values


@dataclass(frozen=True)
class Kernel:
    """A kernel of a library, ready to be launched. parameters: what it takes, in order."""

    name: str
    rewritten: Rewritten = field(repr=False)
    expression: str
    parameters: tuple[Parameter, ...]
    constants: Mapping[int, bytes]
    listing: Listing = field(repr=False)
    _built: dict[Mode, Path] = field(default_factory=dict, repr=False, compare=False)

    def __call__(
        self,
        buffers: Buffers,
        *,
        threadgroup: Size,
        threads: Size | None = None,
        threadgroups: Size | None = None,
        threadgroup_bytes: Sizes | None = None,
        undefined: Sequence[int | str] = (),
        mode: Mode | str | None = None,
        schedule: Schedule | None = None,
    ) -> Outcome:
        """Launch it and wait.

        buffers: by index or by the parameter's name: C-contiguous arrays, those that the kernel may write are changed
        in place; NumPy scalars, bytes, and Python numbers for parameters of a number's type. threads, threadgroups:
        the grid, one of both. threadgroup: threads of each group. threadgroup_bytes: sizes of threadgroup arguments.
        undefined: buffers whose contents count as never written, for check mode. mode, schedule: instead of those of
        the settings.

        Raises ``KernelError`` for what check mode finds wrong, for a crash and for a kernel that does not end, unless
        the settings' ``on_report`` takes the reports; ``ValueError`` and ``TypeError`` for arguments that do not fit.
        """
        if (threads is None) == (threadgroups is None):
            raise ValueError("a launch takes one of threads and threadgroups")
        group = _size("threadgroup", threadgroup)
        if threads is not None:
            grid = _size("threads", threads)
        else:
            x, y, z = _size("threadgroups", threadgroups)
            grid = x * group[0], y * group[1], z * group[2]
        if group[0] * group[1] * group[2] > MAX_THREADS:
            raise ValueError(f"threadgroup {group} has more than the {MAX_THREADS} threads that a threadgroup may have")
        bound = self._bind(buffers)
        dropped = {self._index("buffer", key) for key in undefined}
        launched = tuple(
            Buffer(p.index, p.name, bound[p.index], p.writable, initialised=p.index not in dropped)
            for p in self.parameters
            if p.kind == "buffer" and p.index in bound
        )
        sizes = {self._index("threadgroup", key): int(size) for key, size in (threadgroup_bytes or {}).items()}
        needed = {p.index: p.name for p in self.parameters if p.kind == "threadgroup"}
        for index, name in needed.items():
            if index not in sizes:
                raise ValueError(f"kernel {self.name} needs threadgroup_bytes for {name} ({index})")
        return self.launch(launched, grid, group, sizes, mode, schedule)

    def launch(
        self,
        buffers: tuple[Buffer, ...],
        grid: Size,
        threadgroup: Size,
        threadgroup_bytes: Mapping[int, int],
        mode: Mode | str | None,
        schedule: Schedule | None,
    ) -> Outcome:
        """Launch it with buffers made by the caller."""
        settings = current()
        chosen = settings.mode if mode is None else Mode(mode)
        launch = Launch(
            kernel=self.name,
            library=self.build(chosen),
            buffers=buffers,
            grid=grid,
            threadgroup=threadgroup,
            threadgroup_bytes=threadgroup_bytes,
            constants=self.constants,
            mode=chosen,
            schedule=schedule or settings.schedule,
            timeout=settings.timeout,
            strict=settings.strict,
            listing=self.listing,
        )
        outcome = runtime.run(launch)
        tell(launch, outcome)
        if settings.on_report:
            for report in outcome.reports:
                settings.on_report(report)
        elif any(not report.finding.harmless for report in outcome.reports):
            raise KernelError(self.name, outcome.reports)
        return outcome

    def build(self, mode: Mode) -> Path:
        """The compiled kernel, from the cache or made now."""
        built = self._built.get(mode)
        if built is None or not built.exists():  # the cache may have been emptied
            built = self._built[mode] = compiler.shared_library(
                unit(self.rewritten, self.expression, self.parameters),
                runtime.COMPILE_FLAGS[mode],
                includes=[HEADERS],
                links=[runtime.runtime_library()],
                label=self.name,
            )
        return built

    def _index(self, kind: str, key: int | str) -> int:
        for parameter in self.parameters:
            if parameter.kind == kind and key in (parameter.index, parameter.name):
                return parameter.index
        known = ", ".join(f"{p.name} ({p.index})" for p in self.parameters if p.kind == kind) or "none"
        raise ValueError(f"kernel {self.name} has no {kind} {key!r}; it has {known}")

    def _bind(self, buffers: Buffers) -> dict[int, np.ndarray]:
        parameters = {p.index: p for p in self.parameters if p.kind == "buffer"}
        bound: dict[int, np.ndarray] = {}
        for key, value in buffers.items():
            index = self._index("buffer", key)
            if index in bound:
                raise ValueError(f"buffer {key!r} of kernel {self.name} is given twice")
            bound[index] = _array(value, parameters[index], self.name)
        return bound


def _array(value: Value, parameter: Parameter, kernel: str) -> np.ndarray:
    what = f"buffer {parameter.name} of kernel {kernel}"
    if isinstance(value, np.ndarray):
        if not value.flags.c_contiguous:
            raise ValueError(f"{what} is not C-contiguous; a buffer is plain memory")
        if parameter.writable and not value.flags.writeable:
            raise ValueError(f"{what} is a read-only array, and the kernel may write it")
        return value
    if isinstance(value, bytes):
        return np.frombuffer(value, np.uint8)
    if isinstance(value, np.generic):
        return np.asarray(value)
    if isinstance(value, bool | int | float):
        return np.asarray(number(value, parameter.type, what))
    raise TypeError(f"{what} is {type(value).__name__}; it takes an array, bytes or a number")


def _size(name: str, size: Sequence[int] | None) -> Size:
    if size is None or len(size) != 3 or any(not isinstance(n, int | np.integer) or n < 1 for n in size):
        raise ValueError(f"{name} is {size!r}; it takes three numbers of at least 1")
    return int(size[0]), int(size[1]), int(size[2])
