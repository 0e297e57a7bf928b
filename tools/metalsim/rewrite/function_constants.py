"""Function constants: `constant bool causal [[function_constant(3)]];` gets its value when a kernel is made.

Here they are variables that `msl_set_constant` sets before the launch, and those that are computed from them are
computed again after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from inferspec.tools.metalsim.declarations import Declaration, past_template
from inferspec.tools.metalsim.errors import syntax_error
from inferspec.tools.metalsim.source import Edits, Source

from . import literals


@dataclass(frozen=True)
class FunctionConstant:
    """index: what the host sets it by. type: as declared, without qualifiers."""

    index: int
    name: str
    type: str


@dataclass(frozen=True)
class FunctionConstants:
    """by_index: the constants. derived: (name, expression), variables computed from them, in order."""

    by_index: dict[int, FunctionConstant]
    derived: tuple[tuple[str, str], ...]

    def setter(self) -> str:
        """The function of the compiled kernel that sets one."""
        cases = "".join(
            f"    case {c.index}: msl::define_constant({c.name}, value); break;\n" for c in self.by_index.values()
        )
        again = "".join(f"  {name} = {expression};\n" for name, expression in self.derived)
        return (
            'extern "C" MSL_NOSAN void msl_set_constant(int index, const void* value) {\n'
            f"  switch (index) {{\n{cases}    default: break;\n  }}\n{again}}}\n"
        )


def take(source: Source, declared: Iterable[Declaration], edits: Edits) -> FunctionConstants:
    """Find them, and make variables of them and of what is computed from them."""
    declared = list(declared)
    tokens = source.tokens
    constants: dict[int, FunctionConstant] = {}
    derived: dict[str, str] = {}
    names: set[str] = set()
    for declaration in declared:
        if declaration.kind != "other" or declaration.klass is not None:
            continue
        equals = next(
            (i for i in range(declaration.start, declaration.head) if tokens[i].text == "="), declaration.head
        )
        found = _index(source, declaration)
        if found is not None:
            constant = _constant(source, declaration, found)
            if constant.index in constants:
                raise syntax_error(source.place(declaration.start), f"function constant {found} is declared twice")
            constants[found] = constant
            names.add(constant.name)
            edits.replace(declaration.start, declaration.end, f"static {constant.type} {constant.name};")
        elif equals < declaration.head and any(tokens[i].text in names for i in range(equals, declaration.head)):
            name = tokens[equals - 1].text
            type_name = _type(source, declaration.start, equals - 1)
            derived[name] = literals.words(source, equals + 1, declaration.head)
            names.add(name)
            edits.replace(declaration.start, declaration.end, f"static {type_name} {name};")
    return FunctionConstants(constants, tuple(derived.items()))


def needed(
    source: Source, declared: Iterable[Declaration], function: Declaration, constants: FunctionConstants
) -> set[str]:
    """The constants that the kernel may read without having asked whether they are defined: those that its text names,
    or the text of what it names, and so on."""
    tokens = source.tokens
    texts: dict[str, list[Declaration]] = {}
    for declaration in declared:
        if declaration.klass is not None or declaration.kind in ("namespace", "instantiation"):
            continue  # a class's text has its methods, and other classes' methods have the same names
        for name in _declared_names(source, declaration):
            texts.setdefault(name, []).append(declaration)
    wanted = {constant.name for constant in constants.by_index.values()}
    found: set[str] = set()
    seen: set[int] = set()
    waiting = [function]
    while waiting:
        declaration = waiting.pop()
        if declaration.start in seen:
            continue
        seen.add(declaration.start)
        guarded = _guarded(source, declaration)
        for index in range(declaration.start, declaration.end):
            word = tokens[index].text
            if tokens[index].kind != "name":
                continue
            if word in wanted:
                if word not in guarded:
                    found.add(word)
            else:
                waiting += texts.get(word, [])
    return found


def _declared_names(source: Source, declaration: Declaration) -> set[str]:
    """What a declaration declares: a function, a class, or a variable."""
    tokens = source.tokens
    if declaration.name_index is not None:
        return {tokens[declaration.name_index].text}
    start, head = past_template(source, declaration.start, declaration.head), declaration.head
    if declaration.kind == "class":
        keyword = next(i for i in range(start, head) if tokens[i].text in ("struct", "class", "union"))
        return {token.text for token in tokens[keyword + 1 : keyword + 2] if token.kind == "name"}
    attributes = {i for first, past in source.attributes(start, head) for i in range(first, past)}
    words = [i for i in range(start, head) if i not in attributes]
    end = next((n for n, i in enumerate(words) if tokens[i].text in ("=", "[", "{")), len(words))
    return {tokens[words[end - 1]].text} if end else set()


def _guarded(source: Source, declaration: Declaration) -> set[str]:
    """The constants that this text asks for before it reads them."""
    tokens = source.tokens
    inside = range(declaration.start, declaration.end - 2)
    return {tokens[i + 2].text for i in inside if tokens[i].text == "is_function_constant_defined"}


def _index(source: Source, declaration: Declaration) -> int | None:
    for start, end in source.attributes(declaration.start, declaration.head):
        match = re.fullmatch(r"\[ \[ function_constant \( (\d+) \) \] \]", source.words(start, end))
        if match:
            return int(match.group(1))
    return None


def _constant(source: Source, declaration: Declaration, index: int) -> FunctionConstant:
    start, _ = next(source.attributes(declaration.start, declaration.head))
    return FunctionConstant(index, source.tokens[start - 1].text, _type(source, declaration.start, start - 1))


def _type(source: Source, start: int, end: int) -> str:
    dropped = {"constant", "const", "constexpr", "static", "device"}
    return " ".join(source.tokens[i].text for i in range(start, end) if source.tokens[i].text not in dropped)
