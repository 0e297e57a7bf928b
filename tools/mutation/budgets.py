"""Which code of an oracle only makes its error budget: found by what flows into the second argument of `Answer`, and into
what a `Matrix` says of its entries beside their values."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from inferspec.tools.mutation import scope


@functools.cache
def budget_functions() -> frozenset[str]:
    """Names of functions that only budgets call."""
    everything = {
        (module, name): node
        for module in scope.modules()
        for name, node in scope.functions(trees()[module]).items()
        if scope.rule_of(module, name, node) != "judge"
    }
    found = frozenset(name.rpartition(".")[2] for _, name in everything if "budget" in name.rpartition(".")[2])
    while True:
        spent: set[str] = set()
        needed: set[str] = set()
        for (module, name), node in everything.items():
            inside = name.rpartition(".")[2] in found or scope.rule_of(module, name, node) == "budget"
            budget = set(budget_nodes(node))
            for part, is_budget in _marked(node, inside, budget):
                if isinstance(part, ast.Attribute | ast.Name) and isinstance(part.ctx, ast.Load):
                    (spent if is_budget else needed).add(part.attr if isinstance(part, ast.Attribute) else part.id)
        names = {name.rpartition(".")[2] for _, name in everything}
        grown = found | (names & (spent - needed))
        if grown == found:
            return found
        found = grown


@functools.cache
def trees() -> dict[str, ast.Module]:
    return {module: scope.tree(module) for module in scope.modules()}


def budget_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The statements and expressions of a function that only make a budget."""
    spent = {part for node in ast.walk(function) for part in _spent(node)}
    if not spent:
        return
    spent |= {node.value for node in ast.walk(function) if isinstance(node, ast.keyword) and node.arg == "input_error"}
    assigned = list(_assigned(function))
    needed = _needed(function, assigned, spent)
    found: set[ast.AST] = {*spent}
    for one in assigned:
        if not one.names & needed:
            found |= {one.target, one.value, one.statement}
    yield from _with_holders(function, found)


def _needed(function: ast.FunctionDef, assigned: Sequence[_Assigned], spent: set[ast.expr]) -> set[str]:
    """The names that something else than a budget is made of."""
    kept = {part for one in assigned for part in (one.target, one.value)}
    needed = {name for part in _outside(function, spent | kept) for name in _loaded(part)}
    sources = {id(one): _names(one.target, spent) | _names(one.value, spent) for one in assigned}
    while grown := {name for one in assigned if one.names & needed for name in sources[id(one)]} - needed:
        needed |= grown
    return needed


def _with_holders(function: ast.FunctionDef, found: set[ast.AST]) -> set[ast.AST]:
    """What makes a budget, and the loops and branches that hold nothing else."""
    # Innermost first.
    for node in reversed(list(ast.walk(function))):
        if isinstance(node, ast.For | ast.If) and all(part in found for part in (*node.body, *node.orelse)):
            found.add(node)
    return found


def _marked(node: ast.AST, inside: bool, budget: set[ast.AST]) -> Iterator[tuple[ast.AST, bool]]:
    inside = inside or node in budget
    yield node, inside
    for child in ast.iter_child_nodes(node):
        yield from _marked(child, inside, budget)


def _spent(node: ast.AST) -> list[ast.expr]:
    """The arguments of an answer, or of a matrix of a model, that only make a budget."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return []
    if any(isinstance(argument, ast.Starred) for argument in node.args):
        return []
    if node.func.id in ("Answer", "_answer") and len(node.args) == 2:
        return node.args[1:]
    return node.args[1:3] if node.func.id == "Matrix" else []


@dataclass(frozen=True)
class _Assigned:
    """What flows from `value` into `names`. statement: the whole, or of one among several the value again."""

    names: set[str]
    target: ast.expr
    value: ast.expr
    statement: ast.AST


def _assigned(function: ast.FunctionDef) -> Iterator[_Assigned]:
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                yield from _pairwise(target.elts, value.elts)
            elif names := _plain(target):
                yield _Assigned(names, target, value, node)
        elif isinstance(node, ast.AnnAssign) and node.value and (names := _plain(node.target)):
            yield _Assigned(names, node.target, node.value, node)
        elif isinstance(node, ast.For) and isinstance(node.target, ast.Tuple) and (several := _zipped(node.iter)):
            yield from _pairwise(node.target.elts, several)
        elif isinstance(node, ast.AugAssign) and (names := _plain(node.target)):
            yield _Assigned(names, node.target, node.value, node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and (into := _appended(node.value)):
            yield _Assigned({into}, node.value.func, node.value, node)


def _pairwise(targets: list[ast.expr], values: list[ast.expr]) -> Iterator[_Assigned]:
    for target, value in zip(targets, values, strict=False):
        if names := _plain(target):
            yield _Assigned(names, target, value, value)


def _zipped(node: ast.expr) -> list[ast.expr]:
    zips = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "zip"
    return node.args if zips else []  # type: ignore[attr-defined]


def _plain(target: ast.expr) -> set[str]:
    """The names of a target that is nothing but names, and elements of arrays with names."""
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    bases = [part.value if isinstance(part, ast.Subscript) else part for part in parts]
    return {base.id for base in bases if isinstance(base, ast.Name)} if all(map(_is_name, bases)) else set()


def _is_name(node: ast.expr) -> bool:
    return isinstance(node, ast.Name)


def _appended(call: ast.Call) -> str:
    """The list that a call puts something into."""
    function = call.func
    appends = isinstance(function, ast.Attribute) and function.attr == "append"
    return function.value.id if appends and isinstance(function.value, ast.Name) else ""  # type: ignore[attr-defined]


def _outside(node: ast.AST, left_out: set[ast.expr]) -> Iterator[ast.AST]:
    if node in left_out:
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _outside(child, left_out)


def _loaded(node: ast.AST) -> set[str]:
    return {node.id} if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) else set()


def _names(node: ast.AST, left_out: set[ast.expr]) -> set[str]:
    return {name for part in _outside(node, left_out) for name in _loaded(part)}
