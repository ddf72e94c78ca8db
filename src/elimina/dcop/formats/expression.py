"""Evaluation of cost expressions for all the values of their variables at once."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from elimina._core import TextError
from elimina.dcop.formats import columns
from elimina.dcop.formats.columns import Column
from elimina.dcop.formats.syntax import Expression
from elimina.errors import UnsupportedError

_BLOCK = 1 << 16
_DISPLAYS = (ast.Tuple, ast.List, ast.Set)
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class _Cells:
    """Some assignments: a column for each name, all of one length."""

    columns: Mapping[str, Column]
    count: int

    def where(self, mask: Mask) -> _Cells:
        return _Cells({name: values[mask] for name, values in self.columns.items()}, int(mask.sum()))

    def having(self, name: str, values: Column) -> _Cells:
        return _Cells({**self.columns, name: values}, self.count)


Branch = Callable[[_Cells], Column]


def tabulate(expression: Expression, names: Sequence[str], domains: Sequence[Column]) -> Column:
    """Evaluate an expression for every assignment.

    Args:
        expression: Expression to evaluate.
        names: The variables that it reads, the first one varying slowest.
        domains: The values of each.

    Returns:
        Numbers, of shape (product of the domain sizes,): int64, float64, or Python's where integers are large.

    Raises:
        TextError: The expression has no value somewhere (a division by zero, strings that are ordered with numbers).
        UnsupportedError: It leaves what is handled: see ``elimina.dcop.formats.columns``.
    """
    sizes = [len(domain) for domain in domains]
    total = math.prod(sizes)
    parts = []
    for start in range(0, total, _BLOCK):
        place: NDArray[np.int64] = np.arange(start, min(start + _BLOCK, total))
        known: dict[str, Column] = {}
        for name, domain in zip(reversed(names), reversed(domains), strict=True):
            place, digit = np.divmod(place, len(domain))
            known[name] = domain[digit]
        parts.append(_result(expression, _Cells(known, len(place))))
    kind = object if any(part.dtype.kind == "O" for part in parts) else None
    return np.concatenate([part.astype(kind) if kind else part for part in parts])


def _result(expression: Expression, cells: _Cells) -> Column:
    body = expression.body
    values = _run(body, cells) if isinstance(body, list) else _evaluate(body, cells)
    return columns.positive(values)


def _run(statements: Sequence[ast.stmt], cells: _Cells) -> Column:
    """Execute the rest of a function for some cells; a branch takes its share of them along."""
    for number, statement in enumerate(statements):
        if isinstance(statement, ast.Return):
            if statement.value is None:
                raise TextError("the expression has a return without a value")
            return _evaluate(statement.value, cells)
        if isinstance(statement, ast.Assign):
            (target,) = statement.targets
            assert isinstance(target, ast.Name)
            cells = cells.having(target.id, _evaluate(statement.value, cells))
        elif isinstance(statement, ast.If):
            rest = statements[number + 1 :]
            return _either(
                columns.truth(_evaluate(statement.test, cells)),
                partial(_run, [*statement.body, *rest]),
                partial(_run, [*statement.orelse, *rest]),
                cells,
            )
    raise TextError("the expression ends without a return")


def _either(mask: Mask, chosen: Branch, other: Branch, cells: _Cells) -> Column:
    """Evaluate one branch where the mask is set and another one elsewhere, each only where it is needed."""
    if mask.all():
        return chosen(cells)
    if not mask.any():
        return other(cells)
    return columns.merged(mask, chosen(cells.where(mask)), other(cells.where(~mask)))


def _evaluate(node: ast.expr, cells: _Cells) -> Column:
    match node:
        case ast.Constant(value=value):
            return columns.constant(value, cells.count)
        case ast.Name(id=name):
            if name not in cells.columns:
                raise TextError(f"the expression reads {name!r} before it is assigned")
            return cells.columns[name]
        case ast.BinOp(left=left, op=op, right=right):
            return columns.arithmetic(type(op), _evaluate(left, cells), _evaluate(right, cells))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return ~columns.truth(_evaluate(operand, cells))
        case ast.UnaryOp(op=op, operand=operand):
            values = _evaluate(operand, cells)
            return columns.negative(values) if isinstance(op, ast.USub) else columns.positive(values)
        case ast.BoolOp(op=op, values=[first, *rest]):
            return _connect(isinstance(op, ast.And), _evaluate(first, cells), rest, cells)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            return _compare(_evaluate(left, cells), ops, comparators, cells)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            mask = columns.truth(_evaluate(test, cells))
            return _either(mask, partial(_evaluate, body), partial(_evaluate, orelse), cells)
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _call(name, arguments, cells)
    raise UnsupportedError(f"an expression uses {type(node).__name__}, which is not handled")


def _connect(is_and: bool, values: Column, rest: Sequence[ast.expr], cells: _Cells) -> Column:
    """Return the value that decides an ``and`` or an ``or``; the rest is evaluated only where it is still open."""
    if not rest:
        return values
    open_cells = columns.truth(values) if is_and else ~columns.truth(values)

    def following(part: _Cells) -> Column:
        return _connect(is_and, _evaluate(rest[0], part), rest[1:], part)

    return _either(open_cells, following, lambda _: values[~open_cells], cells)


def _compare(left: Column, ops: Sequence[ast.cmpop], comparators: Sequence[ast.expr], cells: _Cells) -> Column:
    """Return a chain of comparisons; each one is evaluated only where those before it hold."""
    op, comparator = ops[0], comparators[0]
    if isinstance(comparator, _DISPLAYS):
        right = left
        held = np.zeros(cells.count, dtype=bool)
        for element in comparator.elts:
            held |= columns.compare(ast.Eq, left, _evaluate(element, cells))
        held = held if isinstance(op, ast.In) else ~held
    else:
        right = _evaluate(comparator, cells)
        held = columns.compare(type(op), left, right)
    if len(ops) == 1:
        return held

    def following(part: _Cells) -> Column:
        return _compare(right[held], ops[1:], comparators[1:], part)

    return _either(held, following, lambda _: held[~held], cells)


def _call(name: str, arguments: Sequence[ast.expr], cells: _Cells) -> Column:
    if arguments and isinstance(arguments[0], _DISPLAYS):
        arguments = arguments[0].elts
        if name == "len":
            return columns.constant(len(arguments), cells.count)
    return columns.call(name, [_evaluate(argument, cells) for argument in arguments], cells.count)
