"""Kernel functions and their parameters: which buffer, threadgroup memory or position each one is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from inferspec.tools.metalsim.declarations import Declaration
from inferspec.tools.metalsim.errors import Refused, syntax_error
from inferspec.tools.metalsim.source import Source

from .address_spaces import SPACES

# Where a thread's position comes from, as C++ over what metalsim/abi.h declares: an array of three, or one number.
POSITIONS = {
    "thread_position_in_grid": "msl_cur_pos->tpig",
    "thread_position_in_threadgroup": "msl_cur_pos->tpitg",
    "thread_index_in_threadgroup": "msl_cur_pos->tiitg",
    "thread_index_in_simdgroup": "msl_cur_pos->lane",
    "thread_index_in_quadgroup": "msl_cur_pos->lane % 4",
    "simdgroup_index_in_threadgroup": "msl_cur_pos->sgi",
    "quadgroup_index_in_threadgroup": "msl_cur_pos->tiitg / 4",
    "threadgroup_position_in_grid": "msl_tgp.tgpig",
    "threadgroups_per_grid": "msl_tgp.tgpg",
    "threads_per_grid": "msl_tgp.tpg",
    "grid_size": "msl_tgp.tpg",
    "grid_origin": "msl_origin",
    "threads_per_threadgroup": "msl_tgp.tptg",
    "dispatch_threads_per_threadgroup": "msl_tgp.dtptg",
    "simdgroups_per_threadgroup": "msl_tgp.nsg",
    "quadgroups_per_threadgroup": "(msl_tgp.tptg[0] * msl_tgp.tptg[1] * msl_tgp.tptg[2] + 3) / 4",
    "dispatch_simdgroups_per_threadgroup": "(msl_tgp.dtptg[0] * msl_tgp.dtptg[1] * msl_tgp.dtptg[2] + 31) / 32",
    "dispatch_quadgroups_per_threadgroup": "(msl_tgp.dtptg[0] * msl_tgp.dtptg[1] * msl_tgp.dtptg[2] + 3) / 4",
    "threads_per_simdgroup": "32",
    "thread_execution_width": "32",
}
VECTORS = frozenset(
    {
        "msl_cur_pos->tpig",
        "msl_cur_pos->tpitg",
        "msl_tgp.tgpig",
        "msl_tgp.tgpg",
        "msl_tgp.tpg",
        "msl_tgp.tptg",
        "msl_tgp.dtptg",
        "msl_origin",
    }
)

# Attributes of parameters that say nothing of where they come from.
_NEUTRAL = frozenset({"function_constant", "maybe_unused", "raster_order_group", "id"})


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel.

    kind: ``buffer``, ``threadgroup`` (memory whose size the launch gives) or ``position``. index: of the buffer or the
    threadgroup memory; -1 for positions. position: the attribute's name, a key of ``POSITIONS``; "" for the others.
    type: the declared type without address spaces and attributes, for values that the launch gives as Python numbers.
    writable: whether the kernel may write what it points to.
    """

    kind: Literal["buffer", "threadgroup", "position"]
    name: str
    type: str
    index: int = -1
    position: str = ""
    writable: bool = False


@dataclass(frozen=True)
class KernelFunction:
    """A kernel. expression: its name in C++, namespaces included. host_name: what the host calls it by; "" where that is
    the name. is_template: whether it takes arguments before it is a function. declaration: where."""

    expression: str
    host_name: str
    is_template: bool
    parameters: tuple[Parameter, ...]
    declaration: Declaration


def kernels(source: Source, declared: Iterable[Declaration]) -> dict[str, KernelFunction]:
    """All kernels that are defined, by expression."""
    found = {}
    for declaration in declared:
        if declaration.kind != "function" or declaration.body is None or not is_kernel(source, declaration):
            continue
        assert declaration.parameters is not None
        words = source.tokens[declaration.parameters[0] - 1].text
        expression = "::".join([*(part for part in declaration.scope if part), words])
        found[expression] = KernelFunction(
            expression,
            host_name(source, declaration),
            source.tokens[declaration.start].text == "template",
            tuple(_parameters(source, *declaration.parameters)),
            declaration,
        )
    return found


def is_kernel(source: Source, declaration: Declaration) -> bool:
    """Whether the function has the word ``kernel``, as a qualifier or an attribute."""
    assert declaration.parameters is not None
    return any(source.tokens[i].text == "kernel" for i in range(declaration.start, declaration.parameters[0] - 1))


def host_name(source: Source, declaration: Declaration) -> str:
    """What ``[[host_name("…")]]`` says; "" without."""
    tokens = source.tokens
    for start, end in source.attributes(declaration.start, declaration.head):
        for index in range(start, end):
            if tokens[index].text == "host_name":
                literals = (token.text[1:-1] for token in tokens[index:end] if token.kind == "string")
                return "".join(literals)
    return ""


def _parameters(source: Source, opening: int, closing: int) -> list[Parameter]:
    ranges = source.split(opening + 1, closing)
    attributes = [_attributes(source, start, end) for start, end in ranges]
    taken = {
        kind: {int(arguments[kind]) for arguments in attributes if kind in arguments}
        for kind in ("buffer", "threadgroup")
    }
    parameters = []
    for (start, end), arguments in zip(ranges, attributes, strict=True):
        if source.words(start, end) == "void":
            continue
        name, type_name, pointee_const = _declarator(source, start, end)
        position = next((attribute for attribute in arguments if attribute in POSITIONS), "")
        words = _words(source, start, end)
        unknown = [
            a for a in arguments if a not in POSITIONS and a not in taken and a not in _NEUTRAL and a.isidentifier()
        ]
        if unknown:
            place = source.place(start)
            raise Refused(f"the attribute [[{unknown[0]}]] of a kernel's parameter", place.file, place.line)
        if position:
            parameters.append(Parameter("position", name, type_name, position=position))
            continue
        if not words & {"*", "&", "[array]"}:
            raise syntax_error(
                source.place(start), f"kernel parameter '{name}' is neither a pointer, a reference nor a position"
            )
        kind: Literal["buffer", "threadgroup"] = "threadgroup" if "threadgroup" in words else "buffer"
        if kind in arguments:
            index = int(arguments[kind])
        else:  # the lowest index that no parameter has
            index = next(i for i in range(len(ranges) + len(taken[kind]) + 1) if i not in taken[kind])
            taken[kind].add(index)
        writable = kind == "buffer" and "device" in words and not pointee_const
        parameters.append(Parameter(kind, name, type_name, index, writable=writable))
    return parameters


def _words(source: Source, start: int, end: int) -> set[str]:
    """A parameter's words; ``[array]`` where it is one (``constant int strides[3]``), which is a pointer."""
    attributes = {i for first, past in source.attributes(start, end) for i in range(first, past)}
    words = {source.tokens[i].text for i in range(start, end) if i not in attributes}
    return words | {"[array]"} if "[" in words else words


def _attributes(source: Source, start: int, end: int) -> dict[str, str]:
    """A parameter's attributes and their arguments: ``{"buffer": "3"}``."""
    found = {}
    for first, past in source.attributes(start, end):
        for begin, stop in source.split(first + 2, past - 2):
            word = source.tokens[begin].text
            arguments = source.words(begin + 2, stop - 1) if stop > begin + 1 else ""
            if word in ("buffer", "threadgroup") and not arguments.isdigit():
                raise syntax_error(source.place(begin), f"[[{word}({arguments})]] takes a number")
            found[word] = arguments
    return found


def _declarator(source: Source, start: int, end: int) -> tuple[str, str, bool]:
    """A parameter's name, its type without address spaces, pointers and references, and whether that is const."""
    tokens = source.tokens
    attributes = {i for first, past in source.attributes(start, end) for i in range(first, past)}
    here = [i for i in range(start, end) if i not in attributes]
    bracket = next((n for n, i in enumerate(here) if tokens[i].text == "["), len(here))
    name = next((tokens[i].text for i in reversed(here[:bracket]) if tokens[i].kind == "name"), "")
    mark = next((n for n, i in enumerate(here) if tokens[i].text in ("*", "&")), bracket - 1)
    pointee = [tokens[i].text for i in here[:mark]]
    const = "const" in pointee or "constant" in pointee
    return name, " ".join(word for word in pointee if word not in SPACES and word not in ("const", "volatile")), const
