"""Loads mutated contracts beside the true ones: a mutant is a subject, and the judge must not change with it."""

from __future__ import annotations

import ast
import copy
import functools
import sys
from types import ModuleType

from inferspec.spec.contract import Contract
from inferspec.tools.mutation import budgets, scope

BESIDE = "inferspec.tools.mutation.beside"
"""Where changed modules stand in place of `inferspec.spec`."""


def contract(component: str, module: str, changed: ast.Module) -> Contract:
    """The contract of a component, as it is when one of the modules that it is made of is changed."""
    concerned = _concerned(component, module)
    for name in concerned:
        tree = changed if name == module else budgets.trees()[name]
        _load(name, _redirected(tree, concerned))
    return sys.modules[f"{BESIDE}.{component}"].CONTRACT


@functools.cache
def _concerned(component: str, module: str) -> tuple[str, ...]:
    """A module and those between it and the component that import it, before those that import them."""
    closure = _closure(component)
    reaching = [name for name in closure if module in _closure(name)]
    return tuple(sorted(reaching, key=lambda name: (len(_closure(name)), name)))


@functools.cache
def _closure(module: str) -> frozenset[str]:
    """A module and everything of spec/ that it imports, however indirectly."""
    return frozenset({module}).union(*(_closure(name) for name in scope.imported(module) if name != "contract"))


def _redirected(tree: ast.Module, concerned: tuple[str, ...]) -> ast.Module:
    tree = copy.deepcopy(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").removeprefix("inferspec.spec.") in concerned:
            node.module = f"{BESIDE}.{(node.module or '').removeprefix('inferspec.spec.')}"
    return tree


def _load(name: str, tree: ast.Module) -> None:
    module = ModuleType(f"{BESIDE}.{name}")
    sys.modules.setdefault(BESIDE, ModuleType(BESIDE))
    sys.modules[module.__name__] = module
    exec(compile(tree, f"spec/{name}.py", "exec"), module.__dict__)


def traced(tree: ast.Module, reached: str) -> ast.Module:
    """The tree with a line at the beginning of each function that says which one was reached."""
    tree = copy.deepcopy(tree)
    for name, function in scope.functions(tree).items():
        line = ast.parse(f"__import__('sys').modules['{__name__}'].REACHED.add(({reached!r}, {name!r}))").body[0]
        at = len(function.body) - len(scope.body(function))
        function.body.insert(at, ast.copy_location(line, function))
    return ast.fix_missing_locations(tree)


REACHED: set[tuple[str, str]] = set()
"""(module, function) of what was called of traced modules."""


def traced_contract(component: str, module: str) -> Contract:
    """The contract of a component whose module tells in REACHED what is called of it."""
    return contract(component, module, traced(budgets.trees()[module], module))
