"""The text that MLX generates for a kernel's body: the function around it, to the letter (0.32,
mlx/backend/common/metal_kernel.cpp)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .dtypes import MLX_NAMES

# Inputs with fewer elements come in the constant address space.
MAX_CONSTANT_SIZE = 8

_ATTRIBUTES = {
    "dispatch_quadgroups_per_threadgroup": "uint",
    "dispatch_simdgroups_per_threadgroup": "uint",
    "dispatch_threads_per_threadgroup": "uint3",
    "grid_origin": "uint3",
    "grid_size": "uint3",
    "quadgroup_index_in_threadgroup": "uint",
    "quadgroups_per_threadgroup": "uint",
    "simdgroup_index_in_threadgroup": "uint",
    "simdgroups_per_threadgroup": "uint",
    "thread_execution_width": "uint",
    "thread_index_in_quadgroup": "uint",
    "thread_index_in_simdgroup": "uint",
    "thread_index_in_threadgroup": "uint",
    "thread_position_in_grid": "uint3",
    "thread_position_in_threadgroup": "uint3",
    "threadgroup_position_in_grid": "uint3",
    "threadgroups_per_grid": "uint3",
    "threads_per_grid": "uint3",
    "threads_per_simdgroup": "uint",
    "threads_per_threadgroup": "uint3",
}

Template = Sequence[tuple[str, Any]]


class Input(NamedTuple):
    """What of an input the text depends on: dtype, dimensions and elements."""

    dtype: np.dtype
    ndim: int
    size: int


@dataclass(frozen=True)
class Pieces:
    """A generated kernel. function: its name. head: header and the function up to its parameters; parameters; tail."""

    function: str
    head: str
    parameters: str
    source: str
    tail: str

    @property
    def text(self) -> str:
        """All of it, as MLX generates it."""
        return self.head + self.parameters + self.source + self.tail


@dataclass(frozen=True)
class KernelText:
    """What a kernel's text is generated from."""

    name: str
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    source: str
    header: str
    atomic_outputs: bool
    math_mode: str

    def mentioned(self, name: str) -> tuple[str, ...]:
        """Which of an input's ``_shape``, ``_strides`` and ``_ndim`` the source mentions: those are passed."""
        return tuple(suffix for suffix in ("shape", "strides", "ndim") if f"{name}_{suffix}" in self.source)

    def pieces(self, inputs: Sequence[Input], outputs: Sequence[np.dtype], template: Template) -> Pieces:
        """The text for these inputs (dtype, dimensions, elements), output dtypes and template arguments."""
        values = ", ".join(_template_text(value) for _, value in template)
        function = self._function(inputs, outputs, values)
        head = self.header
        if template:
            head += "template <" + ", ".join(f"{_kind(value)} {name}" for name, value in template) + ">\n"
        head += f"[[kernel]] void {function}(\n"
        tail = "\n}\n"
        if template:
            instance = f"{function}<{values}>"
            tail += f'\ntemplate [[host_name("{function}")]] [[kernel]] decltype({instance}) {instance};\n'
        return Pieces(function, head, self._parameters(inputs, outputs), self.source, tail)

    def _function(self, inputs: Sequence[Input], outputs: Sequence[np.dtype], values: str) -> str:
        """The function's name: a name always stands for the same text."""
        name = f"custom_kernel_{self.name}"
        if values:
            name += "_" + f"<{values}".replace("<", "_").replace(", ", "_")
        for dtype, ndim, size in inputs:
            name += f"_{MLX_NAMES[dtype]}" + ("s" if ndim == 0 else "c" if size < MAX_CONSTANT_SIZE else "")
        name += "".join(f"_{MLX_NAMES[dtype]}" for dtype in outputs)
        if not (name.isidentifier() and name.isascii()):
            raise ValueError(f"[metal_kernel] {self.name!r} makes the function name {name}, which Metal does not take.")
        return name

    def _parameters(self, inputs: Sequence[Input], outputs: Sequence[np.dtype]) -> str:
        lines = self._input_lines(inputs)
        attributes = [f"  {kind} {name} [[{name}]]" for name, kind in _ATTRIBUTES.items() if name in self.source]
        text = "".join(f"{line},\n" for line in lines)
        # MLX ends the list at the first output from the last index that there would be without shapes and strides. So
        # several outputs without any attribute break where an input's shape is passed: they do in MLX, and here.
        last = len(inputs) + len(outputs) - 1
        for index, (name, dtype) in enumerate(zip(self.output_names, outputs, strict=True), len(lines)):
            kind = f"atomic<{MLX_NAMES[dtype]}>" if self.atomic_outputs else MLX_NAMES[dtype]
            text += f"  device {kind}* {name} [[buffer({index})]]" + (",\n" if index < last or attributes else ") {\n")
        return text + ",\n".join(attributes) + (") {\n" if attributes else "")

    def _input_lines(self, inputs: Sequence[Input]) -> list[str]:
        """A line for each input, and for each of its shape, strides and number of axes that the source mentions."""
        lines: list[str] = []
        for name, (dtype, ndim, size) in zip(self.input_names, inputs, strict=True):
            space = "constant" if size < MAX_CONSTANT_SIZE else "device"
            lines.append(f"  const {space} {MLX_NAMES[dtype]}{'*' if ndim else '&'} {name} [[buffer({len(lines)})]]")
            kinds = {"shape": "int*", "strides": "int64_t*", "ndim": "int&"}
            for suffix in self.mentioned(name) if ndim else ():
                lines.append(f"  const constant {kinds[suffix]} {name}_{suffix} [[buffer({len(lines)})]]")
        return lines


def _template_text(value: bool | int | np.dtype) -> str:
    return MLX_NAMES[value] if isinstance(value, np.dtype) else str(int(value))


def _kind(value: bool | int | np.dtype) -> str:
    return "typename" if isinstance(value, np.dtype) else "bool" if isinstance(value, bool) else "int"
