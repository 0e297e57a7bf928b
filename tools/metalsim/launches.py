"""Launches as text: how a kernel is called, in a line that can stand in the kernel's own file or on a command line.

    // launch: x=float32[4,97] out=float32[4,97] width=97 threadgroups=4 threadgroup=32
    // launch: row_sum<half> x=float16[4,97] out=float32[4] table=int32[4](3,0,1,2) threads=128,1,1 threadgroup=32

is `name=value` words in any order; a first word without `=` is the kernel's name, which a file with one kernel can do without.
threads (or grid), threadgroups: how many there are in all, one of both; threadgroup: the threads of one; missing numbers are 1. The other
names are the kernel's parameters and function constants:

    float32[4,97]        an array. What the kernel may write begins as never written, the rest with normal random numbers if of a
                         floating type, any bits if unsigned, zeros if signed or bool
    int32[4](0..16)      random numbers from 0 up to 15
    int32[4](7)          filled with one value
    int32[4](3,0,1,2)    these values, in row order
    float32[4](random)   as above, also for what the kernel may write
    97, 0.5, true        a number for a parameter like `constant int&` or a function constant; the bytes of a `threadgroup` parameter

The body of a function for `mx.fast.metal_kernel` takes `->` between its inputs and outputs, and may take
template=T:float32,DIM:64 (template arguments) and header=common.metal,tiles.metal (files beside it):

    // launch: x=float32[4,97] -> out=float32[4,97] template=T:float32 threads=128 threadgroup=32
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from .dtypes import MLX_NAMES
from .library import Library
from .metal_kernel import metal_kernel

Size = tuple[int, int, int]
Number = bool | int | float

_DTYPES = {dtype.name: dtype for dtype in MLX_NAMES}
_ARRAY = re.compile(r"(?P<dtype>[a-z]+\d*)\[(?P<shape>[\d, ]*)\](?:\((?P<contents>[^()]*)\))?")
_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)")
_COMMENT = re.compile(r"^\s*//\s*launch:\s*(.+?)\s*$", re.MULTILINE)
_SIZES = {"grid": "threads", "threads": "threads", "threadgroups": "threadgroups", "threadgroup": "threadgroup"}


@dataclass(frozen=True)
class ArrayText:
    """An array as a launch line describes it. contents: what stands between the parentheses, None without them."""

    dtype: np.dtype
    shape: tuple[int, ...]
    contents: str | None

    def make(self, name: str) -> np.ndarray:
        """A new array; the same for the same description and name."""
        random = np.random.default_rng(zlib.crc32(name.encode()))
        contents = self.contents
        if contents is None or contents == "random":
            return self._random(random)
        if bounds := _RANGE.fullmatch(contents):
            return random.integers(int(bounds[1]), int(bounds[2]), self.shape).astype(self.dtype)
        values = np.array([_number(value) for value in contents.split(",")])
        if values.size == 1:
            return np.full(self.shape, values[0]).astype(self.dtype)
        return values.reshape(self.shape).astype(self.dtype)

    def _random(self, random: np.random.Generator) -> np.ndarray:
        if self.dtype.kind in "fVc" or self.dtype == ml_dtypes.bfloat16:
            return random.standard_normal(self.shape).astype(self.dtype)
        if self.dtype.kind == "u":
            return random.integers(0, np.iinfo(self.dtype).max, self.shape, self.dtype, endpoint=True)
        return np.zeros(self.shape, self.dtype)


@dataclass(frozen=True)
class LaunchText:
    """A launch line, read.

    kernel: "" for the only one. inputs: by name, in the order of the line; of a body for `metal_kernel`, what stands before ``->``;
    outputs: what stands behind it, None without ``->``.
    """

    text: str
    kernel: str
    inputs: Mapping[str, ArrayText | Number]
    outputs: Mapping[str, ArrayText] | None
    threads: Size | None
    threadgroups: Size | None
    threadgroup: Size
    template: tuple[tuple[str, Any], ...]
    header: tuple[str, ...]

    def run(self, file: Path) -> None:
        """Launch the kernel of `file` under the current settings.

        Raises what `Library` and its kernels, or `metal_kernel`, raise; ``ValueError`` where line and kernel do not fit.
        """
        if self.outputs is None:
            self.run_in(Library(file))
        else:
            self._run_body(file, self.outputs)

    def run_in(self, library: Library) -> None:
        """Launch a kernel of a library under the current settings; raises as `run` does."""
        name = self.kernel or _only(library)
        constants: dict[str | int, Number] = {
            name: value
            for name, value in self.inputs.items()
            if name in library.constants and not isinstance(value, ArrayText)
        }
        kernel = library.kernel(name, constants)
        sizes: dict[int | str, int] = {}
        undefined = []
        bound: dict[int | str, Any] = {}
        kinds = {parameter.name: parameter for parameter in kernel.parameters}
        for key, value in self.inputs.items():
            if key in constants:
                continue
            parameter = kinds.get(key)
            if parameter is not None and parameter.kind == "threadgroup":
                sizes[key] = _bytes(value)
            elif isinstance(value, ArrayText):
                bound[key] = value.make(key)
                if parameter is not None and parameter.writable and value.contents is None:
                    undefined.append(key)
            else:
                bound[key] = value
        kernel(
            bound,
            threads=self.threads,
            threadgroups=self.threadgroups,
            threadgroup=self.threadgroup,
            threadgroup_bytes=sizes,
            undefined=undefined,
        )

    def _run_body(self, file: Path, outputs: Mapping[str, ArrayText]) -> None:
        header = "".join(
            f'#line 1 "{name}"\n{(file.parent / name).read_text(encoding="utf-8")}\n' for name in self.header
        )
        kernel = metal_kernel(
            self.kernel or re.sub(r"\W", "_", file.stem),
            list(self.inputs),
            list(outputs),
            f'#line 1 "{file.name}"\n{file.read_text(encoding="utf-8")}',
            header,
        )
        x, y, z = self.threadgroup
        groups = self.threadgroups or (0, 0, 0)
        kernel(
            inputs=[value.make(key) if isinstance(value, ArrayText) else value for key, value in self.inputs.items()],
            template=list(self.template),
            grid=self.threads or (groups[0] * x, groups[1] * y, groups[2] * z),
            threadgroup=self.threadgroup,
            output_shapes=[output.shape for output in outputs.values()],
            output_dtypes=[output.dtype for output in outputs.values()],
        )


def launches_in(text: str) -> list[LaunchText]:
    """The launches that a file's own comments name. Raises ``ValueError`` as `read` does."""
    return [read(line) for line in _COMMENT.findall(text)]


def read(line: str) -> LaunchText:
    """A launch line. Raises ``ValueError`` for what it does not understand, naming the word."""
    words = _words(line)
    kernel = words.pop(0) if words and "=" not in re.sub(r"<.*>", "", words[0]) and words[0] != "->" else ""
    parts = _Parts(line)
    for word in words:
        parts.take(word)
    return parts.launch(kernel)


class _Parts:
    """What the words of a launch line have said so far."""

    def __init__(self, line: str) -> None:
        self.line = line
        self.inputs: dict[str, ArrayText | Number] = {}
        self.outputs: dict[str, ArrayText] | None = None
        self.sizes: dict[str, Size] = {}
        self.template: tuple[tuple[str, Any], ...] = ()
        self.header: tuple[str, ...] = ()

    def take(self, word: str) -> None:
        name, equals, value = word.partition("=")
        if word == "->" and self.outputs is None:
            self.outputs = {}
        elif not equals or not name.isidentifier() or not value:
            raise ValueError(f"launch line: {word!r} is no name=value; in: {self.line}")
        elif name in _SIZES:
            self.sizes[_SIZES[name]] = _size(name, value)
        elif name == "template":
            self.template = tuple(_template_argument(each) for each in value.split(","))
        elif name == "header":
            self.header = tuple(value.split(","))
        else:
            self.take_argument(name, value, word)

    def take_argument(self, name: str, value: str, word: str) -> None:
        """An input, or after the arrow an output."""
        if name in self.inputs or name in (self.outputs or ()):
            raise ValueError(f"launch line: {name} is given twice; in: {self.line}")
        given = _value(name, value)
        if self.outputs is None:
            self.inputs[name] = given
        elif not isinstance(given, ArrayText) or given.contents is not None:
            raise ValueError(f"launch line: {word!r}: an output takes a dtype and a shape, float32[4,97]")
        else:
            self.outputs[name] = given

    def launch(self, kernel: str) -> LaunchText:
        """The whole; ``ValueError`` where a size is missing or said twice."""
        sizes = self.sizes
        if ("threads" in sizes) == ("threadgroups" in sizes):
            raise ValueError(f"launch line: it takes one of threads= and threadgroups=; in: {self.line}")
        if "threadgroup" not in sizes:
            raise ValueError(f"launch line: threadgroup= is missing; in: {self.line}")
        return LaunchText(
            self.line,
            kernel,
            self.inputs,
            self.outputs,
            sizes.get("threads"),
            sizes.get("threadgroups"),
            sizes["threadgroup"],
            self.template,
            self.header,
        )


def array(text: str) -> ArrayText | None:
    """An array's description, None for a text that is none. Raises ``ValueError`` for one that cannot be."""
    match = _ARRAY.fullmatch(text)
    if not match:
        return None
    if match["dtype"] not in _DTYPES:
        raise ValueError(f"{text}: {match['dtype']} is no dtype; the dtypes are {', '.join(sorted(_DTYPES))}")
    shape = tuple(int(n) for n in match["shape"].replace(" ", "").split(",") if n)
    made = ArrayText(_DTYPES[match["dtype"]], shape, match["contents"])
    made.make("")  # contents that do not fit are told now
    return made


def split(text: str, separator: str) -> list[str]:
    """The parts of a text between separators that no bracket encloses, stripped."""
    parts, depth, part = [], 0, ""
    for character in text:
        if character in "([{<":
            depth += 1
        elif character in ")]}" or (character == ">" and not part.endswith("-")):
            depth -= 1
        if character == separator and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += character
    return [*parts, part.strip()]


def _words(line: str) -> list[str]:
    return [word for word in split(line, " ") if word]


def _value(name: str, text: str) -> ArrayText | Number:
    try:
        found = array(text)
        return _number(text) if found is None else found
    except ValueError as error:
        raise ValueError(f"launch line: {name}: {error}") from None


def _number(text: str) -> Number:
    text = text.strip()
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text, 0)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is neither an array (float32[4,97]) nor a number") from None


def _size(name: str, text: str) -> Size:
    try:
        numbers = [int(n) for n in text.split(",")]
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 3 or min(numbers) < 1:
        raise ValueError(f"launch line: {name}={text}: takes one to three numbers of at least 1")
    x, y, z = [*numbers, 1, 1][:3]
    return x, y, z


def _template_argument(text: str) -> tuple[str, Any]:
    name, colon, value = text.partition(":")
    if not colon or not name.isidentifier():
        raise ValueError(f"launch line: template={text}: takes NAME:VALUE, VALUE a dtype or a number")
    return name, _DTYPES[value] if value in _DTYPES else _number(value)


def _bytes(value: ArrayText | Number) -> int:
    if isinstance(value, ArrayText):
        return int(np.prod(value.shape, dtype=np.int64)) * value.dtype.itemsize
    return int(value)


def _only(library: Library) -> str:
    if len(library.kernels) != 1:
        known: Sequence[str] = library.kernels or ("none",)
        raise ValueError(f"{library.name}: the launch line names no kernel; the file has {', '.join(known)}")
    return library.kernels[0]
