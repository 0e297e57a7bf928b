"""What metalsim does not run, and what is no Metal at all: refused by name, file and line, before anything is compiled.

A simulator that quietly ran something else would be worse than none. The second kind matters as much: C++ that g++ takes
and Metal's compiler does not (`double`, exceptions) would work here and fail on the first device.
"""

from __future__ import annotations

from collections.abc import Iterable

from .declarations import Declaration
from .errors import Refused
from .source import Source

_TEXTURES = "textures and samplers"
_TENSORS = "Metal 4 tensor operations"
_RAYS = "ray tracing"
_FUNCTIONS = "function pointers and visible functions"
_IMAGEBLOCKS = "imageblocks"
_GRAPHICS = "vertex, fragment, mesh, object and tile functions"
_COMMANDS = "indirect command buffers"
_NO_METAL = "C++ that Metal does not have"

# Types and namespaces. They count where they are used as such: not behind `.` or `->`, and not where the source declares
# a thing of that name itself.
_TYPES = {
    **{
        f"{kind}{shape}": _TEXTURES
        for kind in ("texture", "depth")
        for shape in ("1d", "1d_array", "2d", "2d_array", "2d_ms", "2d_ms_array", "3d", "cube", "cube_array", "_buffer")
    },
    "sampler": _TEXTURES,
    "tensor": _TENSORS,
    "cooperative_tensor": _TENSORS,
    "tensor_handle": _TENSORS,
    "tensor_inline": _TENSORS,
    "tensor_ops": _TENSORS,
    "mpp": _TENSORS,
    "raytracing": _RAYS,
    "acceleration_structure": _RAYS,
    "primitive_acceleration_structure": _RAYS,
    "instance_acceleration_structure": _RAYS,
    "intersector": _RAYS,
    "intersection_query": _RAYS,
    "intersection_function_table": _RAYS,
    "visible_function_table": _FUNCTIONS,
    "imageblock": _IMAGEBLOCKS,
    "command_buffer": _COMMANDS,
    "render_command": _COMMANDS,
    "compute_command": _COMMANDS,
}
_ATTRIBUTES = {
    "visible": _FUNCTIONS,
    "stitchable": _FUNCTIONS,
    "intersection": _RAYS,
    "vertex": _GRAPHICS,
    "fragment": _GRAPHICS,
    "mesh": _GRAPHICS,
    "object": _GRAPHICS,
    "stage_in": _GRAPHICS,
    "imageblock_data": _IMAGEBLOCKS,
}
_QUALIFIERS = {"vertex": _GRAPHICS, "fragment": _GRAPHICS}
# `delete` is left out (`= delete` is Metal), and so are words that metalsim's own headers may bring in.
_KEYWORDS = {
    **dict.fromkeys(("double", "new", "goto", "try", "catch", "throw", "virtual", "dynamic_cast", "typeid"), _NO_METAL),
    "thread_local": _NO_METAL,
    "__asm": "assembly",
    "__asm__": "assembly",
    "asm": "assembly",
}


def check(source: Source, declared: Iterable[Declaration]) -> None:
    """Raises ``Refused`` at the first thing in the source that metalsim does not run."""
    found = [*_words(source), *_attributes(source), *_qualifiers(source, declared), *_function_pointers(source)]
    if found:
        index, what = min(found)
        place = source.place(index)
        raise Refused(what, place.file, place.line)


def _words(source: Source) -> list[tuple[int, str]]:
    tokens, found = source.tokens, []
    own = _own_names(source)
    for index, token in enumerate(tokens):
        if token.kind != "name":
            continue
        if token.text in _KEYWORDS:
            found.append((index, f"{_KEYWORDS[token.text]} ({token.text})"))
        elif token.text in _TYPES and token.text not in own and _used_as_type(source, index):
            found.append((index, f"{_TYPES[token.text]} ({token.text})"))
    return found


def _own_names(source: Source) -> set[str]:
    """Names that the source gives to structures and aliases of its own."""
    tokens, keywords = source.tokens, ("struct", "class", "using", "namespace", "typename", "enum")
    return {
        tokens[i + 1].text
        for i in range(len(tokens) - 2)
        if tokens[i].text in keywords
        and tokens[i + 1].text in _TYPES
        and tokens[i + 2].text in ("{", ":", "=", ";", ",", ">")
    } - {"mpp", "raytracing"}


def _used_as_type(source: Source, index: int) -> bool:
    tokens = source.tokens
    before = tokens[index - 1].text if index else ""
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    if before in (".", "->") or after is None:
        return False
    return after.kind == "name" or after.text in ("<", "::") or before == "namespace"


def _attributes(source: Source) -> list[tuple[int, str]]:
    found = []
    for start, end in source.attributes(0, len(source.tokens)):
        for first, _ in source.split(start + 2, end - 2):
            word = source.tokens[first].text
            if word in _ATTRIBUTES:
                found.append((first, f"{_ATTRIBUTES[word]} ([[{word}]])"))
    return found


def _qualifiers(source: Source, declared: Iterable[Declaration]) -> list[tuple[int, str]]:
    found = []
    for declaration in declared:
        word = source.tokens[declaration.start].text
        if declaration.kind == "function" and word in _QUALIFIERS:
            found.append((declaration.start, f"{_QUALIFIERS[word]} ({word})"))
    return found


def _function_pointers(source: Source) -> list[tuple[int, str]]:
    """`float (*f)(float)`: a type, then a name with a star in parentheses, then parameters. (`(*f)(x)` is a call, and a
    `typedef` is no pointer yet: MLX's FFT passes functions to templates by such a type.)"""
    tokens, found = source.tokens, []
    for index in range(1, len(tokens) - 4):
        if tokens[index].text != "(" or tokens[index + 1].text != "*" or tokens[index - 1].kind != "name":
            continue
        closing = source.partner[index]
        if (
            closing > index + 3
            or tokens[closing + 1].text != "("
            or tokens[index - 1].text in ("return", "sizeof", "decltype")
        ):
            continue
        start = index
        while start and tokens[start - 1].text not in (";", "{", "}"):
            start -= 1
        if not any(token.text in ("typedef", "using") for token in tokens[start:index]):
            found.append((index, f"{_FUNCTIONS} (a pointer to a function)"))
    return found
