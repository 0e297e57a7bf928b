"""Every mutant of a module, in a fixed order, each with a name that outlives moved lines."""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from inferspec.tools.mutation import budgets, scope
from inferspec.tools.mutation.operators import Change, changes


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one module. key: names it wherever its line moves to."""

    key: str
    module: str
    function: str
    operator: str
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"spec/{self.module}.py:{self.line}  {self.key}"


@dataclass(frozen=True)
class Population:
    """The mutants of a module, and how many changes each rule left out."""

    module: str
    mutants: tuple[Mutant, ...]
    left_out: dict[str, int]


def population(module: str) -> Population:
    """Every mutant of a module."""
    mutants, _, left_out = _population(module)
    return Population(module, tuple(mutants.values()), dict(left_out))


@contextmanager
def applied(mutant: Mutant) -> Iterator[ast.Module]:
    """The tree of the mutant's module with the change in it, until the context ends."""
    _, made, _ = _population(mutant.module)
    change, tree = made[mutant.key], budgets.trees()[mutant.module]
    after = ast.fix_missing_locations(ast.copy_location(change.after, change.node))
    _Replacing(change.node, after).visit(tree)
    try:
        yield tree
    finally:
        _Replacing(after, change.node).visit(tree)


@functools.cache
def _population(module: str) -> tuple[dict[str, Mutant], dict[str, Change], Counter[str]]:
    mutants: dict[str, Mutant] = {}
    made: dict[str, Change] = {}
    left_out: Counter[str] = Counter()
    tree = budgets.trees()[module]
    inside = scope.functions(tree)
    for function, change, rule in _changes(module, tree, inside):
        if rule:
            left_out[rule] += 1
            continue
        before, after = ast.unparse(change.node), ast.unparse(change.after)
        stem = f"{module}.{function}: {before} → {after}"
        number = 1 + sum(key == stem or key.startswith(f"{stem} #") for key in mutants)
        key = stem if number == 1 else f"{stem} #{number}"
        mutants[key] = Mutant(key, module, function, change.operator, change.node.lineno, before, after)
        made[key] = change
    return mutants, made, left_out


def _changes(module: str, tree: ast.Module, inside: dict[str, ast.FunctionDef]) -> Iterator[tuple[str, Change, str]]:
    """(function, change, the rule that leaves it out) for each change of a module."""
    owned = {part for node in inside.values() for part in ast.walk(node)}
    for node in ast.walk(tree):
        if node not in owned:
            for change in changes(node):
                yield "", change, "declaration"
    for name, function in inside.items():
        last = name.rpartition(".")[2]
        rule = scope.rule_of(module, name, function) or ("budget" if last in budgets.budget_functions() else "")
        budget = set(budgets.budget_nodes(function))
        for statement in scope.body(function):
            for node, why in scope.expressions(statement, rule, budget):
                for change in changes(node):
                    if not _of_two_kinds(change) and ast.dump(change.node) != ast.dump(change.after):
                        yield name, change, why
        for default in (*function.args.defaults, *function.args.kw_defaults):
            for node in ast.walk(default) if default else ():
                for change in changes(node):
                    yield name, change, "declaration"


def _of_two_kinds(change: Change) -> bool:
    """Whether arguments were swapped that a function of the kit says to be of different types: nobody does that."""
    if change.operator != "swapped arguments" or not isinstance(change.node, ast.Call):
        return False
    function = change.node.func
    name = (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )
    kinds = _kinds().get(name, ("", ""))
    return len(kinds) < 2 or len(set(kinds)) > 1


@functools.cache
def _kinds() -> dict[str, tuple[str, ...]]:
    """The types of the first two arguments of each function of the oracles, by its name."""
    found = {}
    for tree in budgets.trees().values():
        for name, function in scope.functions(tree).items():
            arguments = [one for one in function.args.args if one.arg not in ("self", "cls")][:2]
            found[name.rpartition(".")[2]] = tuple(ast.unparse(a.annotation) for a in arguments if a.annotation)
    return found


class _Replacing(ast.NodeTransformer):
    def __init__(self, before: ast.AST, after: ast.AST) -> None:
        self.before, self.after = before, after

    def visit(self, node: ast.AST) -> ast.AST:
        return self.after if node is self.before else self.generic_visit(node)
