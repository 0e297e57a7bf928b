"""Address spaces: C++ has none, so they are taken out.

Two things follow. What differs in nothing but address spaces becomes the same thing twice: the first is kept (a
`reduce(const device T*)` and a `reduce(const threadgroup T*)` have the same body, or the kernel depends on what no
kernel should depend on). And `constant` becomes `const`, for only a const variable can be an array's size or be
initialised in a class, as MSL allows for constant ones.
"""

from __future__ import annotations

from collections.abc import Iterable

from inferspec.tools.metalsim.declarations import Declaration, past_template
from inferspec.tools.metalsim.source import Edits, Source

SPACES = frozenset({"device", "constant", "threadgroup", "thread", "ray_data", "object_data", "threadgroup_imageblock"})

# Words that a type can end with; any other name at a parameter's end is the parameter's own.
_TYPE_WORDS = SPACES | frozenset(
    [
        "bool",
        "char",
        "short",
        "int",
        "long",
        "half",
        "float",
        "bfloat",
        "void",
        "auto",
        "unsigned",
        "signed",
        "const",
        "volatile",
        "constexpr",
        "typename",
        "struct",
        "uchar",
        "ushort",
        "uint",
        "ulong",
        "size_t",
    ]
)


def const_for(source: Source, index: int) -> str:
    """What to write for the word ``constant`` at ``index``: ``const``, or nothing where its type is const already and
    behind a member function's parameters (where it says what objects it is for: constructors, too)."""
    tokens = source.tokens
    here = index - 1
    if here >= 0 and tokens[here].text == ")":
        return ""
    while here >= 0 and (tokens[here].kind == "name" or tokens[here].text == "::"):
        if tokens[here].text in ("const", "constexpr"):
            return ""
        here -= 1
    here = index + 1
    while here < len(tokens):
        if tokens[here].text in ("const", "constexpr"):
            return ""
        if tokens[here].text == "<":
            here = source.past_angle(here)
        elif tokens[here].kind == "name" or tokens[here].text == "::":
            here += 1
        else:
            break
    return "const"


def erase(source: Source, edits: Edits) -> None:
    """Take out every address space, or write ``const`` for it, and ``coherent`` and ``coherent(system)`` before one."""
    tokens = source.tokens
    for index, token in enumerate(tokens):
        if token.kind != "name":
            continue
        if token.text in SPACES:
            edits.replace(index, index + 1, const_for(source, index) if token.text == "constant" else "")
        elif token.text == "coherent":
            past = source.partner[index + 1] + 1 if tokens[index + 1].text == "(" else index + 1
            if tokens[past].text == "device":
                edits.replace(index, past)


def merge(source: Source, declared: Iterable[Declaration], edits: Edits) -> None:
    """Take out the declarations that only their address spaces tell from an earlier one of the same scope.

    Also makes overloads of the full specialisations of member templates, which C++ compilers take outside classes only.
    """
    seen: set[tuple[object, ...]] = set()
    for declaration in declared:
        if declaration.kind in ("namespace", "instantiation"):
            continue
        _specialisation_in_class(source, declaration, edits)
        if declaration.kind == "other" and source.tokens[declaration.start].text != "template":
            continue
        scope = declaration.scope if declaration.klass is None else declaration.klass
        # In a class nothing is declared twice: `= default` is a definition as well as a body.
        defines = declaration.body is not None or declaration.klass is not None
        key = (scope, defines, _signature(source, declaration))
        if key in seen and _has_space(source, declaration):
            edits.replace(declaration.start, declaration.end)
        seen.add(key)


def _has_space(source: Source, declaration: Declaration) -> bool:
    return any(token.text in SPACES for token in source.tokens[declaration.start : declaration.head])


def _specialisation_in_class(source: Source, declaration: Declaration, edits: Edits) -> None:
    tokens, start, name = source.tokens, declaration.start, declaration.name_index
    if declaration.klass is None or name is None or tokens[name].text == ">":
        return
    if [token.text for token in tokens[start : start + 3]] == ["template", "<", ">"]:
        edits.replace(start, start + 3)


def _signature(source: Source, declaration: Declaration) -> tuple[str, ...]:
    """A declaration's head without address spaces, attributes, the names of its parameters, and what a constructor begins with."""
    tokens = source.tokens
    skipped = {i for start, end in source.attributes(declaration.start, declaration.head) for i in range(start, end)}
    renamed = _template_parameters(source, declaration)
    if declaration.parameters:
        opening, closing = declaration.parameters
        for start, end in source.split(opening + 1, closing):
            skipped.update(_not_type(source, start, end, skipped))
    words = []
    for index in range(declaration.start, declaration.head):
        text = tokens[index].text
        if index in skipped:
            continue
        if text == "=" and declaration.kind == "other":
            break  # a variable's value
        if text in (":", "=") and declaration.parameters and index > declaration.parameters[1]:
            break  # `: r(other.r)` or `= default`
        if text in SPACES:
            text = const_for(source, index) if text == "constant" else ""
        elif tokens[index].kind == "name":
            text = renamed.get(text, text)
        if text:
            words.append(text)
    return tuple(words)


def _template_parameters(source: Source, declaration: Declaration) -> dict[str, str]:
    """The names of a template's parameters, numbered: they may differ between what is otherwise the same."""
    names: dict[str, str] = {}
    here, end = declaration.start, past_template(source, declaration.start, declaration.head)
    while here < end:
        past = source.past_angle(here + 1)
        for start, stop in source.split(here + 2, past - 1):
            words = [token for token in source.tokens[start:stop] if token.kind == "name" or token.text == "="]
            equals = next((i for i, token in enumerate(words) if token.text == "="), len(words))
            if equals and words[equals - 1].text not in _TYPE_WORDS:
                names[words[equals - 1].text] = f"${len(names)}"
        here = past
    return names


def _not_type(source: Source, start: int, end: int, skipped: set[int]) -> set[int]:
    """Of a function's parameter: the tokens of its default and its name."""
    tokens = source.tokens
    equals = next((i for i in range(start, end) if tokens[i].text == "="), end)
    extra = set(range(equals, end))
    last = equals - 1
    while last > start and (last in skipped or tokens[last].text == "]"):
        last = last - 1 if last in skipped else source.partner[last] - 1
    if last > start and tokens[last].kind == "name" and tokens[last].text not in _TYPE_WORDS:
        before = tokens[last - 1]
        if before.text in (">", "*", "&", "&&") or (
            before.kind == "name" and before.text not in ("const", "typename", "struct")
        ):
            extra.add(last)
    return extra
