"""Explicit instantiations of kernel templates, `template [[host_name("add_f32")]] kernel void add<float>(…);`: each
names a kernel that the host can ask for. They are noted and taken out, and only the one that is asked for is compiled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from inferspec.tools.metalsim.declarations import Declaration
from inferspec.tools.metalsim.errors import syntax_error
from inferspec.tools.metalsim.source import Edits, Source

from .address_spaces import SPACES, const_for
from .kernels import host_name


@dataclass(frozen=True)
class Instantiation:
    """A kernel that a template gives. function: the template's name. expression: C++ for the function that is meant."""

    function: str
    expression: str


def take(source: Source, declared: Iterable[Declaration], edits: Edits) -> dict[str, Instantiation]:
    """Host name -> instantiation; the declarations are taken out. Those without a host name are left alone unless they
    are kernels, which the host knows by the template's name and arguments as written."""
    found = {}
    for declaration in declared:
        if declaration.kind != "instantiation":
            continue
        name = host_name(source, declaration)
        words = {source.tokens[i].text for i in range(declaration.start, declaration.head)}
        if not name and "kernel" not in words:
            continue
        instantiation = _instantiation(source, declaration)
        found[name or instantiation.expression.replace(" ", "")] = instantiation
        edits.replace(declaration.start, declaration.end)
    return found


def _instantiation(source: Source, declaration: Declaration) -> Instantiation:
    tokens = source.tokens
    attributes = {i for start, end in source.attributes(declaration.start, declaration.head) for i in range(start, end)}
    here = [
        i for i in range(declaration.start + 1, declaration.head) if i not in attributes and tokens[i].text != "kernel"
    ]
    scope = "".join(f"{part}::" for part in declaration.scope if part)
    if declaration.parameters is None:  # `decltype(add<float>) add<float>`, or a name for that type: `add_t add<float>`
        start, end = _declarator(source, declaration.head), declaration.head
        if not here or start <= here[0]:
            raise syntax_error(source.place(declaration.start), "an explicit instantiation takes a type and a kernel")
        function, expression = _function(source, start, end), _expression(source, start, end)
        if tokens[end - 1].text != ">" and tokens[here[0]].text != "decltype":  # the type tells the arguments
            return Instantiation(
                scope + function, f"static_cast<{scope}{_expression(source, here[0], start)}*>({scope}{expression})"
            )
        return Instantiation(scope + function, scope + expression)
    start = here[1]  # past `void`
    opening = start
    while tokens[opening].text != "(":
        opening = source.past_angle(opening) if tokens[opening].text == "<" else opening + 1
    function, expression = _function(source, start, opening), _expression(source, start, opening)
    if tokens[opening - 1].text != ">":  # `void add(…)`: the compiler finds the template's arguments
        types = _expression(source, opening + 1, source.partner[opening], attributes)
        return Instantiation(scope + function, f"static_cast<void (*)({types})>({scope}{expression})")
    return Instantiation(scope + function, scope + expression)


def _declarator(source: Source, end: int) -> int:
    """Where the possibly qualified name with its template's arguments starts that ends before ``end``."""
    tokens = source.tokens
    here = end - 1
    if tokens[here].text == ">":
        here = source.before_angle(here)
    while tokens[here - 1].text == "::" and tokens[here - 2].kind == "name":
        here -= 2
    return here


def _function(source: Source, start: int, end: int) -> str:
    """The name before the template's arguments."""
    words = source.tokens[start:end]
    return "".join(
        token.text for token in words[: next((i for i, token in enumerate(words) if token.text == "<"), len(words))]
    )


def _expression(source: Source, start: int, end: int, skipped: Iterable[int] = ()) -> str:
    """The tokens without address spaces and what is ``skipped``."""
    words = []
    for index in range(start, end):
        token = source.tokens[index]
        if index in skipped:
            continue
        if token.text in SPACES:
            words.append(const_for(source, index) if token.text == "constant" else "")
        else:
            words.append(token.text)
    return " ".join(word for word in words if word)
