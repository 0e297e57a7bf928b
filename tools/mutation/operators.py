"""The mutation operators: small systematic changes of an expression, each one that a typing hand could make.

The set is that of DeMillo, Lipton and Sayward (1978) as far as it suits numerical Python: arithmetic, relational and
logical operators replaced, constants moved by one, terms dropped, arguments swapped, conditions negated.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mod,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_PAIRS = (("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"), ("any", "all"), ("floor", "ceil"))
COUNTERPARTS = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}
SYMMETRIC = {*COUNTERPARTS, "isinstance", "getattr", "zip", "print", "cast", "array_equal", "swapaxes"}
"""Calls whose arguments are not swapped: their order says nothing, or another order could not be meant."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one expression. operator: its name; node: what is replaced; after: by what."""

    operator: str
    node: ast.expr
    after: ast.expr


def changes(node: ast.AST) -> Iterator[Change]:
    """Every change that the operators make of this node itself, not of what is inside it."""
    for operator in OPERATORS:
        yield from operator(node)


def _arithmetic(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.BinOp) and (other := ARITHMETIC.get(type(node.op))) and not _text(node):
        yield Change("arithmetic", node, ast.BinOp(node.left, other(), node.right))


def _sign(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and not _integer(node.operand):
        yield Change("sign", node, node.operand)


def _dropped_term(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult) and not _text(node):
        yield Change("dropped term", node, node.left)
        if not isinstance(node.op, ast.Sub):
            yield Change("dropped term", node, node.right)


def _off_by_one(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Slice):
        for bound in (node.lower, node.upper):
            if bound is not None and not _signed_integer(bound):
                yield Change("off by one", bound, _plus_one(bound))
    if isinstance(node, ast.Call) and _name(node.func) in ("range", "arange") and len(node.args) <= 2:
        for bound in node.args:
            if not _signed_integer(bound):
                yield Change("off by one", bound, _plus_one(bound))
    if isinstance(node, ast.Constant) and (value := _signed_integer(node)) is not None:
        yield Change("off by one", node, ast.Constant(value + 1))


def _axis(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.keyword) and node.arg == "axis" and (axis := _signed_integer(node.value)) is not None:
        yield Change("axis", node.value, _number(axis - 1 if axis < 0 else axis + 1))


def _comparison(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            ops = [*node.ops[:i], COMPARISONS[type(op)](), *node.ops[i + 1 :]]
            yield Change("comparison", node, ast.Compare(node.left, ops, node.comparators))


def _counterpart(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Call) and (other := COUNTERPARTS.get(_name(node.func))):
        function = copy.copy(node.func)
        setattr(function, "id" if isinstance(function, ast.Name) else "attr", other)
        yield Change("counterpart", node, ast.Call(function, node.args, node.keywords))


def _swapped(node: ast.AST) -> Iterator[Change]:
    if not isinstance(node, ast.Call) or _name(node.func) in SYMMETRIC or _name(node.func)[:1].isupper():
        return
    first = 1 if _name(node.func) == "where" else 0
    pair = node.args[first : first + 2]
    if len(pair) < 2 or any(isinstance(one, ast.Starred | ast.Constant) for one in pair):
        return
    arguments = [*node.args[:first], pair[1], pair[0], *node.args[first + 2 :]]
    yield Change("swapped arguments", node, ast.Call(node.func, arguments, node.keywords))


def _logic(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.BoolOp):
        yield Change("and, or", node, ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values))
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield Change("boolean", node, ast.Constant(not node.value))


def _negated(node: ast.AST) -> Iterator[Change]:
    conditions = []
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        conditions = [node.test]
    if isinstance(node, ast.comprehension):
        conditions = node.ifs
    for condition in conditions:
        if isinstance(condition, ast.UnaryOp) and isinstance(condition.op, ast.Not):
            yield Change("negated condition", condition, condition.operand)
        elif not _negated_by_comparison(condition):
            yield Change("negated condition", condition, ast.UnaryOp(ast.Not(), condition))


OPERATORS: tuple[Callable[[ast.AST], Iterator[Change]], ...] = (
    _arithmetic,
    _sign,
    _dropped_term,
    _off_by_one,
    _axis,
    _comparison,
    _counterpart,
    _swapped,
    _logic,
    _negated,
)


def _negated_by_comparison(condition: ast.expr) -> bool:
    """Whether the comparison operators negate it already: == and !=, in, is."""
    ordered = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
    return isinstance(condition, ast.Compare) and len(condition.ops) == 1 and not isinstance(condition.ops[0], ordered)


def _plus_one(bound: ast.expr) -> ast.expr:
    return ast.BinOp(bound, ast.Add(), ast.Constant(1))


def _number(value: int) -> ast.expr:
    return ast.Constant(value) if value >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-value))


def _integer(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def _signed_integer(node: ast.AST) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and _integer(node.operand):
        return -node.operand.value  # type: ignore[attr-defined]
    return node.value if _integer(node) else None  # type: ignore[attr-defined]


def _text(node: ast.BinOp) -> bool:
    """Whether it joins or formats texts."""
    sides = (node.left, node.right)
    return any(
        isinstance(s, ast.JoinedStr) or (isinstance(s, ast.Constant) and isinstance(s.value, str)) for s in sides
    )


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Name):
        return function.id
    return function.attr if isinstance(function, ast.Attribute) else ""
