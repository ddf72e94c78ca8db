"""Cost functions given by expressions: the supported part of Python, and their tables.

A text is an expression or, if it has a ``return``, the body of a function made of assignments, ``if`` and ``return``.
It is parsed and checked here, never compiled or executed. All else is refused: attributes, subscripts, comprehensions,
lambdas, f-strings, keywords, other calls.
"""

from __future__ import annotations

import ast
import keyword
import math
import re
import textwrap
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina._core import TextError
from elimina.dcop.formats import columns
from elimina.dcop.formats.build import Builder, Domain
from elimina.dcop.formats.columns import Column
from elimina.errors import UnsupportedError
from elimina.number_texts import counted

FUNCTIONS = ("abs", "bool", "float", "int", "len", "max", "min", "pow", "round", "str", "sum")
"""Functions that an expression may call."""
LONGEST_TEXT = 10_000
DEEPEST = 100
MAX_BRANCHES = 50
_OPERATORS = (
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow),
    *(ast.USub, ast.UAdd, ast.Not, ast.And, ast.Or),
    *(ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn),
)
_NODES = (
    *(
        ast.Constant,
        ast.Name,
        ast.Load,
        ast.Store,
        ast.BinOp,
        ast.UnaryOp,
        ast.BoolOp,
        ast.Compare,
        ast.IfExp,
        ast.Call,
    ),
    *(ast.Tuple, ast.List, ast.Set, ast.Assign, ast.If, ast.Return),
)
_DISPLAYS = (ast.Tuple, ast.List, ast.Set)


class Expression:
    """A checked expression.

    Attributes:
        body: One expression, or the statements of a function's body.
        names: The variables that it reads, in the order of their first use.
        nodes: Number of nodes of its syntax tree.
    """

    __slots__ = ("body", "names", "nodes")

    def __init__(self, text: str) -> None:
        """Parse a text.

        Raises:
            TextError: The text is not Python.
            UnsupportedError: The text uses something of Python that is not handled, or is too long or too deeply
                nested.
        """
        if len(text) > LONGEST_TEXT:
            raise UnsupportedError(f"an expression has {len(text)} characters; up to {LONGEST_TEXT} are handled")
        self.body: ast.expr | list[ast.stmt] = _parsed(text)
        read: dict[str, int] = {}
        written: set[str] = set()
        self.nodes = 0
        branches = 0
        top = self.body if isinstance(self.body, list) else [self.body]
        _check_values(top)
        waiting: list[tuple[ast.AST, int]] = [(node, 1) for node in reversed(top)]
        while waiting:
            node, depth = waiting.pop()
            _check(node, depth)
            self.nodes += 1
            branches += isinstance(node, ast.If)
            if isinstance(node, ast.Name):
                if isinstance(node.ctx, ast.Store):
                    written.add(node.id)
                else:
                    read.setdefault(node.id, 0)
            steps = len(node.values) if isinstance(node, ast.BoolOp) else 1
            steps = len(node.ops) if isinstance(node, ast.Compare) else steps
            waiting += [(child, depth + steps) for child in reversed(_children(node))]
        if branches > MAX_BRANCHES:
            raise UnsupportedError(f"a function has {branches} if statements; up to {MAX_BRANCHES} are handled")
        self.names = tuple(name for name in read if name not in written)


def _parsed(text: str) -> ast.expr | list[ast.stmt]:
    """Parse one expression, or a function's body with a return."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return ast.parse(text.strip(), mode="eval").body
            except SyntaxError:
                if not re.search(r"\breturn\b", text):
                    raise
            body = textwrap.indent(textwrap.dedent(text), " ")
            (function,) = ast.parse(f"def f():\n{body}").body
            assert isinstance(function, ast.FunctionDef)
            return function.body
    except SyntaxError as error:
        raise TextError(f"expected a Python expression, found {text.strip()[:60]!r}: {error.msg}") from None
    except ValueError as error:
        raise TextError(f"expected a Python expression, found {text.strip()[:60]!r}: {error}") from None
    except (RecursionError, MemoryError):
        raise UnsupportedError(f"the expression {text.strip()[:60]!r} is too deeply nested") from None


def _children(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, ast.Call):
        return list(node.args)
    return list(ast.iter_child_nodes(node))


def _check(node: ast.AST, depth: int) -> None:
    if depth > DEEPEST:
        raise UnsupportedError(f"an expression is nested more than {DEEPEST} levels deep")
    if not isinstance(node, _NODES + _OPERATORS):
        raise UnsupportedError(f"an expression uses {type(node).__name__}, which is not handled")
    if isinstance(node, ast.Constant) and type(node.value) not in (bool, int, float, str):
        raise UnsupportedError(f"an expression uses the constant {str(node.value)[:40]}, which is not handled")
    if isinstance(node, ast.Assign) and not (len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)):
        raise UnsupportedError("an expression assigns to something that is not one name, which is not handled")
    if isinstance(node, ast.Call):
        _check_call(node)
    elif isinstance(node, ast.Compare):
        pairs = zip(node.ops, node.comparators, strict=True)
        if any(isinstance(op, ast.In | ast.NotIn) is not isinstance(right, _DISPLAYS) for op, right in pairs):
            raise UnsupportedError("an expression uses 'in' other than with a list of values, which is not handled")
        _check_values([node.left, *node.comparators[:-1]])
    elif not isinstance(node, ast.expr_context):
        _check_values(ast.iter_child_nodes(node))


def _check_values(nodes: Iterable[ast.AST]) -> None:
    if any(isinstance(node, _DISPLAYS) for node in nodes):
        raise UnsupportedError("an expression uses a list as a value, which is not handled")


def _check_call(node: ast.Call) -> None:
    name = node.func.id if isinstance(node.func, ast.Name) else None
    if name not in FUNCTIONS:
        called = "something that is not a plain name" if name is None else f"{name!r}"
        raise UnsupportedError(f"an expression calls {called}; it may call {', '.join(FUNCTIONS)}")
    if node.keywords:
        raise UnsupportedError(f"an expression calls {name} with a keyword argument, which is not handled")
    if any(isinstance(argument, ast.Set) for argument in node.args):
        raise UnsupportedError(f"an expression calls {name} with a set, which is not handled")
    lists = sum(isinstance(argument, _DISPLAYS) for argument in node.args)
    if lists and not (len(node.args) == 1 and name in ("len", "max", "min", "sum")):
        raise UnsupportedError(f"an expression calls {name} with a list, which is not handled")
    count = len(node.args[0].elts) if lists and isinstance(node.args[0], _DISPLAYS) else len(node.args)
    single = name in ("min", "max") and not lists and count == 1
    few = range(1, 256)
    counts = {"pow": (2,), "round": (1, 2), "min": few, "max": few, "sum": few, "len": few if lists else (1,)}
    if count not in counts.get(name, (1,)) or single or (name == "sum" and not lists):
        raise UnsupportedError(f"an expression calls {name} with {counted(count, 'argument')}, which is not handled")


_BLOCK = 1 << 16
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
        Numbers, of shape (product of the domain sizes,): int64, float64, or Python integers if some are large.

    Raises:
        TextError: The expression has no value somewhere (a division by zero, strings that are ordered with numbers).
        UnsupportedError: The expression goes beyond the supported arithmetic: see ``elimina.dcop.formats.columns``.
    """
    sizes = [len(domain) for domain in domains]
    total = math.prod(sizes)
    blocks = []
    for start in range(0, total, _BLOCK):
        indices: NDArray[np.int64] = np.arange(start, min(start + _BLOCK, total))
        cells: dict[str, Column] = {}
        for name, domain in zip(reversed(names), reversed(domains), strict=True):
            indices, digit = np.divmod(indices, len(domain))
            cells[name] = domain[digit]
        blocks.append(_result(expression, _Cells(cells, len(indices))))
    kind = object if any(block.dtype.kind == "O" for block in blocks) else None
    return np.concatenate([block.astype(kind) if kind else block for block in blocks])


def _result(expression: Expression, cells: _Cells) -> Column:
    body = expression.body
    values = _run(body, cells) if isinstance(body, list) else _evaluate(body, cells)
    return columns.positive(values)


def _run(statements: Sequence[ast.stmt], cells: _Cells) -> Column:
    """Execute the rest of a function for some cells; each branch runs only on the cells that take it."""
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
            later_statements = statements[number + 1 :]
            return _either(
                columns.truth(_evaluate(statement.test, cells)),
                partial(_run, [*statement.body, *later_statements]),
                partial(_run, [*statement.orelse, *later_statements]),
                cells,
            )
    raise TextError("the expression ends without a return")


def _either(mask: Mask, chosen: Branch, otherwise: Branch, cells: _Cells) -> Column:
    """Evaluate one branch where the mask is set and another one elsewhere, each only on its cells."""
    if mask.all():
        return chosen(cells)
    if not mask.any():
        return otherwise(cells)
    return columns.merged(mask, chosen(cells.where(mask)), otherwise(cells.where(~mask)))


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
    """Return the deciding value of an ``and`` or an ``or``; later operands are evaluated only where it is undecided."""
    if not rest:
        return values
    open_cells = columns.truth(values) if is_and else ~columns.truth(values)

    def following(open_rows: _Cells) -> Column:
        return _connect(is_and, _evaluate(rest[0], open_rows), rest[1:], open_rows)

    return _either(open_cells, following, lambda _: values[~open_cells], cells)


def _compare(lhs: Column, ops: Sequence[ast.cmpop], comparators: Sequence[ast.expr], cells: _Cells) -> Column:
    """Return a chain of comparisons; each one is evaluated only where those before it hold."""
    op, comparator = ops[0], comparators[0]
    if isinstance(comparator, _DISPLAYS):
        rhs = lhs
        held = np.zeros(cells.count, dtype=bool)
        for element in comparator.elts:
            held |= columns.compare(ast.Eq, lhs, _evaluate(element, cells))
        held = held if isinstance(op, ast.In) else ~held
    else:
        rhs = _evaluate(comparator, cells)
        held = columns.compare(type(op), lhs, rhs)
    if len(ops) == 1:
        return held

    def following(held_rows: _Cells) -> Column:
        return _compare(rhs[held], ops[1:], comparators[1:], held_rows)

    return _either(held, following, lambda _: held[~held], cells)


def _call(name: str, arguments: Sequence[ast.expr], cells: _Cells) -> Column:
    if arguments and isinstance(arguments[0], _DISPLAYS):
        arguments = arguments[0].elts
        if name == "len":
            return columns.constant(len(arguments), cells.count)
    return columns.call(name, [_evaluate(argument, cells) for argument in arguments], cells.count)


MAX_OPERATIONS = 2**29
"""Largest work of a file: for each expression, its number of cells times its number of nodes."""
_WORD = re.compile(r"""'[^'\n]*'|"[^"\n]*"|\w+""")
# A text that matches has comments, points before letters, long strings or statements. In such a text, a word need not
# be the name of a variable.
_NOT_WORDS = re.compile(r"""[\\#ξ]|\'{3}|"{3}|\.\s*[^\W\d]|\breturn\b""")


class Expressions:
    """An evaluator of a file's expressions; those that differ only in the names of variables are evaluated once.

    Attributes:
        external: Variables that are not decisions, with their values.
        values: Values of each domain as expressions see them, by the domain's name.
    """

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.values: dict[str, Column] = {}
        self.external: dict[str, tuple[Domain, int]] = {}
        self._parsed: dict[str, Expression] = {}
        self._tables: dict[tuple[str, ...], NDArray[Any]] = {}
        self._work = 0

    def add(self, owner: str, text: str, only: str | None = None) -> None:
        """Add the costs of an expression.

        Args:
            owner: The constraint, or the variable, whose costs they are.
            text: The expression.
            only: The one variable that the expression may read; None: any variable.

        Raises:
            TextError: The text is not an expression, or names something other than a variable.
            UnsupportedError: The text uses something of Python that is not handled, or is too much work.
            MemoryLimitError: The expression's table is too large.
        """
        template, name_of = self._template(text)
        expression = self._expression(template, text)
        names = [name_of.get(name, name) for name in expression.names]
        for name in names:
            if name not in self.builder.index and name not in self.external:
                raise TextError(f"expected the name of a variable, found {name[:40]!r}")
            if only not in (None, name):
                raise TextError(f"the costs of variable {only!r} depend on {name!r}; use a constraint")
        domains = [self._domain(name) for name in names]
        key = (template, *(domain_key for _, domain_key in domains))
        scope = self.builder.scope(name for name in names if name not in self.external)
        if key not in self._tables:
            cells = self.builder.claim(scope, owner)
            self._work += cells * expression.nodes
            if self._work > MAX_OPERATIONS:
                raise UnsupportedError(
                    f"the expressions up to that of {owner!r} have {self._work} operations to evaluate; "
                    f"up to {MAX_OPERATIONS} are handled, so list their costs instead"
                )
            costs = tabulate(expression, expression.names, [column for column, _ in domains])
            self._tables[key] = self._costs(costs)
        sizes = [self.builder.variables[v].size for v in scope]
        self.builder.add_full(scope, self._tables[key].reshape(sizes))

    def _expression(self, template: str, text: str) -> Expression:
        """Return the expression of a template; errors quote the text that it was made from."""
        if template not in self._parsed:
            try:
                self._parsed[template] = Expression(template)
            except (TextError, UnsupportedError):
                Expression(text)
                raise
        return self._parsed[template]

    def _template(self, text: str) -> tuple[str, dict[str, str]]:
        """Return the text with slots in place of variables, and the variable of each slot.

        The text is unchanged if a word in it might be something other than a variable.
        """
        if _NOT_WORDS.search(text):
            return text, {}
        index, external = self.builder.index, self.external
        variables = [w for w in dict.fromkeys(_WORD.findall(text)) if w in index or w in external]
        if any(word in FUNCTIONS or keyword.iskeyword(word) or not word.isidentifier() for word in variables):
            return text, {}
        slots = {word: f"ξ{number}" for number, word in enumerate(variables)}
        template = _WORD.sub(lambda word: slots.get(word[0], word[0]), text)
        return template, {number: word for word, number in slots.items()}

    def _domain(self, name: str) -> tuple[Column, str]:
        """Return the values of a variable, and a key that differs for different values."""
        if name in self.external:
            domain, code = self.external[name]
            return self.values[domain.name][code : code + 1], f"{code} of {domain.name}"
        domain = self.builder.domain_of[self.builder.index[name]]
        return self.values[domain.name], f"all of {domain.name}"

    def _costs(self, values: Column) -> NDArray[Any]:
        if values.dtype.kind == "O":
            return self.builder.costs(values.tolist())
        return self.builder.costs(values if values.dtype.kind == "f" else values.astype(np.int64))
