"""`metal_kernel`: what `mx.fast.metal_kernel` does, without Metal.

The signature that MLX generates for a kernel's body, its rules and its errors are MLX's own (0.32,
mlx/backend/common/metal_kernel.cpp), kept to the letter: the text is the same byte for byte, so a kernel that compiles
here compiles there. What differs: calls run at once instead of when MLX evaluates, and also take NumPy arrays.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any

import numpy as np

from . import arrays
from .library import MAX_THREADS, Kernel, Library
from .preprocess import mlx_headers
from .runtime import Buffer, Mode, Schedule
from .signature import MAX_CONSTANT_SIZE, Input, KernelText, Pieces, Template

_MATH_MODES: Mapping[str, Mapping[str, str]] = {"safe": {}, "relaxed": {}, "fast": {"__FAST_MATH__": "1"}}

# What stands before every kernel. Without MLX's headers: what of them does not depend on MLX.
_WITH_MLX = '#include "mlx/backend/metal/kernels/utils.h"\n'
_WITHOUT_MLX = "#include <metal_stdlib>\nusing namespace metal;\ntypedef half float16_t;\ntypedef bfloat bfloat16_t;\n"


def metal_kernel(
    name: str,
    input_names: Sequence[str],
    output_names: Sequence[str],
    source: str,
    header: str = "",
    ensure_row_contiguous: bool = True,
    atomic_outputs: bool = False,
    compile_options: Mapping[str, str] | None = None,
    *,
    mode: Mode | str | None = None,
    schedule: Schedule | None = None,
) -> MetalKernel:
    """A kernel from the body of its function, as ``mx.fast.metal_kernel`` makes one.

    name: with the types of its arguments it makes the function's name. input_names, output_names: of the arrays in the
    source. source: the function's body; the parameters are generated from what it mentions. header: what stands before
    the function. ensure_row_contiguous: copy inputs that are not. atomic_outputs: ``device atomic<T>*``.
    compile_options: ``{"math_mode": "safe" | "relaxed" | "fast"}``.
    mode, schedule: how its launches run, instead of what ``metalsim.settings`` says.

    Raises ``ValueError`` for no output and for unknown compile options. The source is not looked at before a call.
    """
    for what, names in (("input_names", input_names), ("output_names", output_names)):
        if isinstance(names, str) or not all(isinstance(each, str) for each in names):
            raise TypeError(f"[metal_kernel] {what} is {names!r}; it takes a list of names.")
    if not output_names:
        raise ValueError("[metal_kernel] Must specify at least one output.")
    return MetalKernel(
        KernelText(
            name, tuple(input_names), tuple(output_names), source, header, atomic_outputs, _math_mode(compile_options)
        ),
        ensure_row_contiguous,
        None if mode is None else Mode(mode),
        schedule,
    )


class MetalKernel:
    """A kernel to be called; ``metal_kernel`` makes them. ``simulated`` tells it from MLX's."""

    simulated = True

    def __init__(
        self, text: KernelText, ensure_row_contiguous: bool, mode: Mode | None, schedule: Schedule | None
    ) -> None:
        self.name = text.name
        self.input_names = text.input_names
        self.output_names = text.output_names
        self.source = text.source
        self._text = text
        self._ensure_row_contiguous = ensure_row_contiguous
        self._mode = mode
        self._schedule = schedule
        self._made: dict[object, tuple[str, Kernel]] = {}
        self.always_mlx = False

    def __repr__(self) -> str:
        return f"<metalsim.metal_kernel {self.name}>"

    def __call__(
        self,
        *,
        inputs: Sequence[Any],
        output_shapes: Sequence[Sequence[int]],
        output_dtypes: Sequence[Any],
        grid: tuple[int, int, int],
        threadgroup: tuple[int, int, int],
        template: Template | None = None,
        init_value: float | None = None,
        verbose: bool = False,
        stream: Any = None,
    ) -> list[Any]:
        """Run it and return its outputs: ``mx.array`` if any input is one, else NumPy arrays.

        inputs: arrays (NumPy, ``ml_dtypes.bfloat16`` too, or ``mx.array``) and Python numbers. output_shapes,
        output_dtypes: one for each output; dtypes of NumPy or MLX. grid: threads; threadgroup: threads of each group.
        template: names and their values: bool, int or dtype. init_value: what outputs hold before. verbose: print the
        generated source. stream: any of the GPU.

        Raises ``ValueError`` and ``TypeError`` as MLX does, ``CompileError``, ``Refused`` and ``NoCompiler`` for the
        source, ``KernelError`` for what the launch finds.
        """
        text = self._text
        _count("inputs", inputs, text.input_names)
        _count("output_shapes", output_shapes, text.output_names)
        _count("output_dtypes", output_dtypes, text.output_names)
        arrays.check_stream(stream)
        given, dtypes, arguments = self._arguments(inputs, output_dtypes, template)
        threads, group = _sizes(grid, threadgroup)

        outputs = [_output(shape, dtype, init_value) for shape, dtype in zip(output_shapes, dtypes, strict=True)]
        if self._mlx(inputs):
            answer: Callable[[np.ndarray], Any] = arrays.to_mlx
        else:
            answer = _itself
        generated, kernel = self._kernel([Input(a.dtype, a.ndim, a.size) for a in given], dtypes, arguments)
        if verbose:
            sys.stdout.write(f"Generated source code for `{self.name}`:\n```\n{generated}\n```\n")
        if 0 not in threads:
            buffers = self._buffers(given, outputs, initialised=init_value is not None)
            kernel.launch(buffers, threads, group, {}, self._mode, self._schedule)
        answers = [answer(output) for output in outputs]
        return arrays.without_gradient(inputs, answers, self.name) if answer is arrays.to_mlx else answers

    def generate(self, *, inputs: Sequence[Any], output_dtypes: Sequence[Any], template: Template | None = None) -> str:
        """The text that MLX generates for such a call: what its ``verbose`` prints."""
        given, dtypes, arguments = self._arguments(inputs, output_dtypes, template)
        return self._text.pieces([Input(a.dtype, a.ndim, a.size) for a in given], dtypes, arguments).text

    def _arguments(
        self, inputs: Sequence[Any], output_dtypes: Sequence[Any], template: Template | None
    ) -> tuple[list[np.ndarray], list[np.dtype], list[tuple[str, bool | int | np.dtype]]]:
        names = self._text
        given = [arrays.to_numpy(value, f"inputs[{n}] ({names.input_names[n]})") for n, value in enumerate(inputs)]
        dtypes = [
            arrays.dtype(value, f"output_dtypes[{n}] ({names.output_names[n]})")
            for n, value in enumerate(output_dtypes)
        ]
        return given, dtypes, [(_name_of(key), _template_value(value)) for key, value in template or ()]

    def _mlx(self, inputs: Sequence[Any]) -> bool:
        return self.always_mlx or any(arrays.is_mlx(value) for value in inputs)

    def _kernel(self, inputs: Sequence[Input], outputs: Sequence[np.dtype], template: Template) -> tuple[str, Kernel]:
        """The generated text and the kernel for these types; compiled at its first launch."""
        kinds = tuple((dtype, ndim == 0, size < MAX_CONSTANT_SIZE) for dtype, ndim, size in inputs)
        key = (kinds, tuple(outputs), tuple((name, type(value), value) for name, value in template))
        if key not in self._made:
            pieces = self._text.pieces(inputs, outputs, template)
            self._made[key] = pieces.text, _library(pieces, self._text).kernel(pieces.function)
        return self._made[key]

    def _buffers(
        self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], *, initialised: bool
    ) -> tuple[Buffer, ...]:
        buffers: list[tuple[str, np.ndarray, bool, bool, int]] = []
        for name, array in zip(self._text.input_names, inputs, strict=True):
            shown = self._text.mentioned(name) if array.ndim else ()
            memory, strides, first = arrays.memory(array, contiguous=self._ensure_row_contiguous)
            buffers.append((name, memory, False, True, first))
            values = {
                "shape": np.array(array.shape, np.int32),
                "strides": strides,
                "ndim": np.array(array.ndim, np.int32),
            }
            buffers += [(f"{name}_{suffix}", values[suffix], False, True, 0) for suffix in shown]
        buffers += [(n, array, True, initialised, 0) for n, array in zip(self._text.output_names, outputs, strict=True)]
        return tuple(Buffer(i, *buffer) for i, buffer in enumerate(buffers))


_LIBRARIES: dict[tuple[str, str], Library] = {}
_LOCK = Lock()


def _library(pieces: Pieces, text: KernelText) -> Library:
    """The library of a generated text. Kernels that are made anew with the same text share it."""
    name = text.name
    preamble = _WITH_MLX if mlx_headers() else _WITHOUT_MLX
    marked = (
        f'{preamble}#line 1 "{name}.h"\n{pieces.head}#line 1 "{name}.signature"\n{pieces.parameters}'
        f'#line 1 "{name}.metal"\n{pieces.source}{pieces.tail}'
    )
    key = (marked, text.math_mode)
    with _LOCK:
        if key not in _LIBRARIES:
            _LIBRARIES[key] = Library(marked, defines=_MATH_MODES[text.math_mode], name=f"{name}.metal")
        return _LIBRARIES[key]


def _math_mode(options: Mapping[str, str] | None) -> str:
    if options is None:
        return "safe"
    if not isinstance(options, dict):
        raise ValueError("[metal_kernel] Expected `compile_options` to be a dict.")
    mode = "safe"
    for key, value in options.items():
        if key != "math_mode":
            raise ValueError(f"[metal_kernel] Unknown compile option `{key}`.")
        if value not in _MATH_MODES:
            raise ValueError("[metal_kernel] Expected math_mode to be 'safe', 'relaxed', or 'fast'.")
        mode = value
    return mode


def _count(what: str, values: Sequence[Any], names: Sequence[str]) -> None:
    if len(values) != len(names):
        raise ValueError(f"[metal_kernel] Expected `{what}` to have size {len(names)} but got size {len(values)}.\n")


def _name_of(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"[metal_kernel] A template argument's name is {key!r}; it takes a string.")
    return key


def _template_value(value: Any) -> bool | int | np.dtype:
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        if not -(2**31) <= value < 2**31:
            raise ValueError(f"[metal_kernel] The template argument {value} is no 32-bit integer.")
        return value
    if arrays.is_dtype(value):
        return arrays.dtype(value, "a template argument")
    raise ValueError("[metal_kernel] Invalid template argument. Must be `mlx.core.Dtype`, `int` or `bool`.")


def _sizes(grid: Sequence[int], threadgroup: Sequence[int]) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Threads, and threads of a group, which is never larger than the grid. A grid without threads runs nothing."""
    for what, size, least in (("grid", grid, 0), ("threadgroup", threadgroup, 1)):
        if len(size) != 3 or not all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in size):
            raise TypeError(f"[metal_kernel] {what} is {size!r}; it takes three integers.")
        if any(not least <= n < 2**31 for n in size):
            raise ValueError(f"[metal_kernel] {what} is {tuple(size)}; it takes numbers from {least} to {2**31 - 1}.")
    threads = int(threadgroup[0]) * int(threadgroup[1]) * int(threadgroup[2])
    if threads > MAX_THREADS:  # two spaces, as in MLX
        raise ValueError(
            f"Thread group size ({threads}) is greater than  the maximum allowed threads per threadgroup ({MAX_THREADS})."
        )
    x, y, z = (int(n) for n in grid)
    return (x, y, z), (min(int(threadgroup[0]), x), min(int(threadgroup[1]), y), min(int(threadgroup[2]), z))


def _output(shape: Sequence[int], dtype: np.dtype, init_value: float | None) -> np.ndarray:
    """An output before the launch: filled with ``init_value``, else with ones in every bit (NaN in floating types)."""
    output = np.empty(tuple(int(n) for n in shape), dtype)
    if init_value is None:
        output.reshape(-1).view(np.uint8)[...] = 0xFF
    else:
        output[...] = np.float32(init_value).astype(dtype)
    return output


def _itself(array: np.ndarray) -> np.ndarray:
    return array
