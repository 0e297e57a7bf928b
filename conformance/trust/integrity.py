"""Whether what judges is what was installed.

A kit that was changed in the process that judges (by a plugin, a conftest or a test), where the subject runs, or on the disk
meanwhile gives no verdict. None of this stops a determined forger, who can write any certificate by hand; it stops what one slips
into.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import dis
import enum
import functools
import gc
import hashlib
import inspect
import re
import sys
import types
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from inferspec.conformance.trust.isolation import HERE, OPEN, within

JUDGES = ("inferspec.spec", "inferspec.conformance")
"""What judges, by package."""

JUDGED_BY = ("spec", "conformance", "golden")
"""Folders with what judges, and what is compared with."""

READ = (".py", ".json", ".toml", ".safetensors")
"""Their files, but for what Python itself writes beside them."""

HELD = ("__wrapped__", "__func__", "fget", "func", "_build", "_fixture_function")
"""Where decorators keep what they were given."""

LIBRARY = str(Path(str(functools.__file__)).parent)
"""Where Python's own modules lie."""

DECORATORS = (HERE, str(functools.__file__), str(contextlib.__file__))
"""Whose decorators may stand around a function: the kit's, and the library's."""

FUNCTION = re.compile(rb"^(( *)def .*(?:\(\n(?:\2 .*\n)+\2\).*)?:\n)(?:\2 .*\n|\n)+", re.MULTILINE)
"""A function as a formatter leaves it: its head, the space before that, and a body that stands further in."""

DECORATOR = re.compile(rb"^(@[\w.]+)\((?:.*\)|\n(?: .*\n)+\))\n", re.MULTILINE)
"""A decorator of a suite as a formatter leaves it: neither where its function stands nor what that does hangs on what it is given."""

Codes = Mapping[str, Sequence[types.CodeType]]
"""The code of every function in a module, by its qualified name; that of the module itself by none."""


def files() -> dict[str, str]:
    """A sum of each file of the kit that judges, or that is judged by.

    What changes before it is loaded is afterwards as in its file: `altered` cannot see it.
    """
    found = [path for package in JUDGED_BY for path in (Path(HERE) / package).rglob("*") if path.suffix in READ]
    return {path.relative_to(HERE).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def altered(packages: tuple[str, ...] = JUDGES) -> list[str]:
    """What of the kit's judging code in this process is not as in its files: functions, methods, constants, imports, tests.

    Every process reads the files itself: what another says of them a plugin there may have said.
    """
    found: list[str] = []
    imports: dict[str, list[ast.stmt]] = {}
    with _uncollected():
        for name in judging(packages):
            if file := _source(sys.modules[name]):
                # One tree at a time: all of them are hundreds of thousands of objects.
                tree, code = _written(file)
                found += [f"{name}.{part}" for part in _altered(name, sys.modules[name], tree, code)]
                imports[name] = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        return found + [one for name, nodes in imports.items() for one in _reimported(name, nodes, found)]


def judging(packages: tuple[str, ...] = JUDGES) -> list[str]:
    """The names of the modules that judge and are loaded."""
    return sorted(name for name in sys.modules if within(name, packages) and not within(name, OPEN))


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """No search for cycles meanwhile: hundreds of thousands of new nodes of syntax, none of them garbage, would start it over and over."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _source(module: types.ModuleType) -> Path | None:
    file = Path(module.__file__ or "")
    return file if file.suffix == ".py" else None


def _written(file: Path) -> tuple[ast.Module, types.CodeType]:
    """What a file says: its statements, but for those of functions, and the code of all."""
    data = undecorated(file.read_bytes()) if file.name.startswith("test_") else file.read_bytes()
    # With its asserts, under python -O too: of what has one only the place is compared.
    return ast.parse(without_bodies(data)), compile(data, str(file), "exec", dont_inherit=True, optimize=0)


def undecorated(data: bytes) -> bytes:
    """A formatted suite whose decorators are given nothing, line by line: to read it takes half as long."""
    return DECORATOR.sub(lambda found: found[1] + b"\n" * found[0].count(b"\n"), data)


def without_bodies(data: bytes) -> bytes:
    """A formatted file without what its functions do, which is looked at in code alone: most of the time to read it."""
    return FUNCTION.sub(rb"\1\2 pass\n", data)


def _altered(name: str, module: types.ModuleType, tree: ast.Module, code: types.CodeType) -> Iterator[str]:
    file, codes = Path(module.__file__ or ""), _codes(code)
    # What a file does not name it takes from Python.
    yield from sorted((vars(builtins).keys() - set(codes[""][0].co_names)) & {k for k in vars(module) if k[:2] != "__"})
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            if not _unchanged(vars(module).get(node.name), node, node.name, codes):
                yield node.name
        elif isinstance(node, ast.ClassDef):
            yield from _altered_class(node, module, codes)
    if name == "inferspec.spec.numerics":
        yield from _altered_constants(module, file)
    else:
        yield from _altered_literals(module, tree, codes)


def _reimported(name: str, imports: Sequence[ast.stmt], found: Sequence[str]) -> Iterator[str]:
    """Names that a module imported and that are no longer what they are there."""
    for node in imports:
        if isinstance(node, ast.ImportFrom) and not node.level:
            source, ours = sys.modules.get(str(node.module)), str(node.module).startswith("inferspec")
            for alias in node.names:
                there = f"{node.module}.{alias.name}"
                wanted = vars(source).get(alias.name, sys.modules.get(there)) if source else None
                live = vars(sys.modules[name]).get(alias.asname or alias.name)
                if live is not wanted and there not in found and (ours or wanted is not None):
                    yield f"{name}.{alias.asname or alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                known = alias.asname or alias.name.partition(".")[0]
                if vars(sys.modules[name]).get(known) is not sys.modules.get(alias.name if alias.asname else known):
                    yield f"{name}.{known}"


def _asserts(code: types.CodeType) -> bool:
    return _loads_assertion_error(code) or any(_asserts(inner) for inner in _inner(code))


def _loads_assertion_error(code: types.CodeType) -> bool:
    if "LOAD_ASSERTION_ERROR" in dis.opmap:
        return _does(code, "LOAD_ASSERTION_ERROR")
    # Python 3.14 has no operation for it: it is the first of the common constants.
    return (dis.opmap["LOAD_COMMON_CONSTANT"], 0) in zip(code.co_code[::2], code.co_code[1::2], strict=True)


def _does(code: types.CodeType, operation: str) -> bool:
    return dis.opmap[operation] in code.co_code[::2]


def _inner(code: types.CodeType) -> list[types.CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]


def _altered_class(node: ast.ClassDef, module: types.ModuleType, codes: Codes) -> Iterator[str]:
    """Methods, and attributes that are written as plain values."""
    owner = vars(module).get(node.name)
    if not inspect.isclass(owner):
        yield node.name
        return
    for part in node.body:
        if isinstance(part, ast.FunctionDef):
            qualified = f"{node.name}.{part.name}"
            if not _unchanged(vars(owner).get(part.name), part, qualified, codes):
                yield qualified
        elif (literal := _literal(part)) and not issubclass(owner, enum.Enum):
            name, wanted = literal
            if not _equal(_attribute(owner, name), wanted):
                yield f"{node.name}.{name}"
    yield from (f"{node.name}.{name}" for name in _added(owner, node, codes))


def _added(owner: type, node: ast.ClassDef, codes: Codes) -> Iterator[str]:
    """Methods that somebody gave to a class: of neither its file nor Python's own dataclasses, enums and protocols."""
    written = {name for code in codes.get(node.name, []) for name in code.co_names}
    for name, value in vars(owner).items():
        if isinstance(value, types.FunctionType) and name not in written:
            file = value.__code__.co_filename
            if not (file.startswith((HERE, LIBRARY)) or (file == "<string>" and name.startswith("__"))):
                yield name


def _attribute(owner: type, name: str) -> Any:
    """A class attribute; the default of a field that a dataclass keeps in a slot."""
    live = vars(owner).get(name)
    if isinstance(live, types.MemberDescriptorType):
        return vars(owner)["__dataclass_fields__"][name].default
    return live


def _unchanged(live: Any, node: ast.FunctionDef, qualified: str, codes: Codes) -> bool:
    """Whether what a name is bound to is the function that its file has there, or one around it if it is decorated."""
    if test := getattr(live, "conformance", None):
        # What runs is what the decorator made of the function.
        return _written_as(test.function.__code__, qualified, codes)
    if node.decorator_list:
        return any(_written_as(code, qualified, codes) for code in _within_decorators(live))
    return _is(live, qualified, codes) and _same_defaults(live, node)


def _within_decorators(live: Any) -> Iterator[types.CodeType]:
    """The code of all functions that decorators hold, from the outside on; nothing behind a function of somebody else's."""
    waiting: list[Any] = [live]
    # The objects themselves are kept, so that no other gets the identity of one that is gone.
    seen: dict[int, Any] = {}
    while waiting:
        held = waiting.pop()
        if id(held) in seen:
            continue
        seen[id(held)] = held
        if isinstance(held, types.FunctionType):
            if not held.__code__.co_filename.startswith(DECORATORS):
                return
            yield held.__code__
            filled = [cell for cell in held.__closure__ or () if cell != types.CellType()]
            waiting += [cell.cell_contents for cell in filled]
        waiting += [getattr(held, name, None) for name in HELD]


def _is(live: Any, qualified: str, codes: Codes) -> bool:
    return isinstance(live, types.FunctionType) and _written_as(live.__code__, qualified, codes)


def _written_as(code: types.CodeType, qualified: str, codes: Codes) -> bool:
    """Whether a function does what its file says; of one with asserts, which pytest rewrites, whether it stands in that place."""
    written = codes.get(qualified, [])
    return code in written or any(_asserts(one) and _place(code) == _place(one) for one in written)


def _place(code: types.CodeType) -> tuple[Any, ...]:
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return Path(code.co_filename).name, code.co_firstlineno, code.co_qualname, arguments


def _same_defaults(live: Any, node: ast.FunctionDef) -> bool:
    """Whether a function's defaults are those of its file, as far as these are plain values."""
    written, keyword = node.args.defaults, zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    named = {argument.arg: value for argument, value in keyword if value is not None}
    defaults, named_defaults = live.__defaults__ or (), live.__kwdefaults__ or {}
    if len(written) != len(defaults) or set(named) != set(named_defaults):
        return False
    pairs = [*zip(written, defaults, strict=True), *((named[name], named_defaults[name]) for name in named)]
    return all(_equal(found, _plain(value)) for value, found in pairs if _is_plain(value))


PLAIN = (ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.UnaryOp, ast.BinOp)


def _is_plain(value: ast.expr) -> bool:
    """Whether an expression can be read without the module that it stands in."""
    kinds = (*PLAIN, ast.operator, ast.unaryop, ast.expr_context)
    return all(isinstance(part, kinds) for part in ast.walk(value))


def _plain(value: ast.expr) -> Any:
    return eval(compile(ast.Expression(value), "<plain>", "eval"), {"__builtins__": {}})


def _equal(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _altered_literals(module: types.ModuleType, tree: ast.Module, codes: Codes) -> Iterator[str]:
    """Constants that are written as plain values, bound once, and not what they are written as."""
    bound = Counter(_bound(codes[""][0], "STORE_NAME"))
    rebound = {name for found in codes.values() for code in found for name in _bound(code, "STORE_GLOBAL")}
    for node in tree.body:
        if not (literal := _literal(node)) or literal[0] in rebound or bound[literal[0]] > 1:
            continue
        if not _equal(vars(module).get(literal[0]), literal[1]):
            yield literal[0]


def _literal(node: ast.stmt) -> tuple[str, Any] | None:
    """The name and the value of an assignment whose value is plain; an empty table is there to be filled."""
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    value = getattr(node, "value", None)
    if not isinstance(target, ast.Name) or value is None or not _is_plain(value):
        return None
    wanted = _plain(value)
    return None if wanted in ({}, []) else (target.id, wanted)


def _bound(code: types.CodeType, operation: str) -> Iterator[str]:
    """The names that a piece of code binds by an operation, as often as it does."""
    if not _does(code, operation):
        return
    wanted, wide, high = dis.opmap[operation], dis.EXTENDED_ARG, 0
    for step, low in zip(code.co_code[::2], code.co_code[1::2], strict=True):
        argument = high | low
        high = argument << 8 if step == wide else 0
        if step == wanted:
            yield code.co_names[argument]


def _codes(code: types.CodeType) -> Codes:
    found: dict[str, list[types.CodeType]] = {"": [code]}
    todo = [code]
    while todo:
        for inner in _inner(todo.pop()):
            found.setdefault(inner.co_qualname, []).append(inner)
            todo.append(inner)
    return found


def _altered_constants(module: types.ModuleType, file: Path) -> Iterator[str]:
    fresh = types.ModuleType(module.__name__)
    exec(compile(file.read_bytes(), str(file), "exec", dont_inherit=True), vars(fresh))
    for name, value in vars(fresh).items():
        if (
            isinstance(value, int | float | str | tuple)
            and not name.startswith("__")
            and vars(module).get(name) != value
        ):
            yield name
