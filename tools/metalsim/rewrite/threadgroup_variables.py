"""Threadgroup variables: `threadgroup float tile[8], total;` becomes

    typedef float tile_in_threadgroup[8], total_in_threadgroup;
    auto& tile = ::msl::tg_var<tile_in_threadgroup>(0, "tile"); auto& total = …;

so that all threads of a group get the same memory, which the runtime hands out, poisons and watches. Pointers and
references to threadgroup memory are ordinary ones and stay. Initialisers go: Metal's compiler takes `= {0}` (MLX's
layer_norm has one, and a function behind it that really writes the zeros), but no thread can be the one that runs it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from inferspec.tools.metalsim.declarations import Declaration
from inferspec.tools.metalsim.errors import syntax_error
from inferspec.tools.metalsim.source import Edits, Source

_TYPE_NAME = "{}_in_threadgroup"


@dataclass(frozen=True)
class _Variable:
    name: int  # its token
    end: int  # past its declarator
    past: int  # past its initialiser


def rewrite(source: Source, declared: Iterable[Declaration], edits: Edits) -> int:
    """Rewrite all threadgroup variables; returns how many there are."""
    count = 0
    for declaration in declared:
        if declaration.kind != "function" or declaration.body is None:
            continue
        opening, closing = declaration.body
        past = opening
        for index in range(opening + 1, closing):
            if index < past or source.tokens[index].text != "threadgroup":
                continue
            start = _statement(source, index)
            if start is None:
                continue
            end = _end(source, index, closing)
            variables = _variables(source, start, end)
            if variables:
                _rewrite_statement(source, start, end, variables, count, edits)
                count += len(variables)
            past = end
    return count


def _statement(source: Source, index: int) -> int | None:
    """The first token of the declaration that the word ``threadgroup`` at ``index`` belongs to, if it does to one."""
    tokens, here = source.tokens, index - 1
    while tokens[here].text not in (";", "{", "}", ":"):
        text = tokens[here].text
        if text == "]" and tokens[here - 1].text == "]":
            here = source.partner[here] - 1
        elif text == ")" and tokens[source.partner[here] - 1].text == "alignas":
            here = source.partner[here] - 2
        elif text == ">":
            here = source.before_angle(here)
        elif text == "::" or (tokens[here].kind == "name" and text not in ("typedef", "using", "return", "sizeof")):
            here -= 1
        else:
            return None
    return here + 1


def _end(source: Source, index: int, closing: int) -> int:
    """The ``;`` of the statement."""
    here = index
    while here < closing and source.tokens[here].text != ";":
        here = source.partner[here] + 1 if source.tokens[here].text in ("(", "[", "{") else here + 1
    return here


def _variables(source: Source, start: int, end: int) -> list[_Variable]:
    """What the statement declares in threadgroup memory: nothing where it declares pointers or references."""
    tokens = source.tokens
    variables, pointers = [], 0
    for first, past in source.split(start, end):
        declarator_end = _declarator_end(source, first, past)
        last = declarator_end - 1
        while last > first and tokens[last].text == "]":
            last = source.partner[last] - 1
        if any(tokens[i].text in ("*", "&", "&&") for i in _outside_brackets(source, first, last)):
            pointers += 1
        elif tokens[last].kind == "name":
            variables.append(_Variable(last, declarator_end, past))
    if pointers and variables:
        raise syntax_error(
            source.place(start), "metalsim takes threadgroup variables and pointers in statements of their own"
        )
    return variables


def _declarator_end(source: Source, first: int, past: int) -> int:
    """Where a declarator's initialiser begins: ``=``, or a brace that is no structure's body."""
    here = first
    while here < past:
        text = source.tokens[here].text
        if text == "=":
            return here
        if text == "{" and not any(source.tokens[i].text in ("struct", "union") for i in (here - 1, here - 2)):
            return here
        if text == "<":
            here = source.past_angle(here)
        elif text in ("(", "[", "{"):
            here = source.partner[here] + 1
        else:
            here += 1
    return past


def _outside_brackets(source: Source, first: int, past: int) -> Iterable[int]:
    here = first
    while here < past:
        text = source.tokens[here].text
        if text == "<":
            here = source.past_angle(here)
        elif text in ("(", "[", "{"):
            here = source.partner[here] + 1
        else:
            yield here
            here += 1


def _rewrite_statement(
    source: Source, start: int, end: int, variables: list[_Variable], number: int, edits: Edits
) -> None:
    tokens, alignment = source.tokens, ""
    for index in range(start, variables[0].name):
        if tokens[index].text in ("static", "threadgroup"):
            edits.replace(index, index + 1)
        elif tokens[index].text == "alignas":  # a typedef takes it as an attribute, behind the name
            closing = source.partner[index + 1]
            alignment = f" __attribute__((aligned({source.words(index + 2, closing)})))"
            edits.replace(index, closing + 1)
    edits.insert(start, "typedef ")
    references = []
    for offset, variable in enumerate(variables):
        name = tokens[variable.name].text
        type_name = _TYPE_NAME.format(name)
        edits.replace(variable.name, variable.name + 1, type_name)
        if alignment:
            edits.insert(variable.end, alignment)
        if variable.end < variable.past:
            edits.replace(variable.end, variable.past)
        references.append(f'auto& {name} = ::msl::tg_var<{type_name}>({number + offset}, "{name}");')
    edits.replace(end, end + 1, "; " + " ".join(references))
