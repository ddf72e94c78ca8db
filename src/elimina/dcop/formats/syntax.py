"""The part of Python that costs in files may be written in: parsed and checked here, never compiled or executed.

Expressions and, where the text has a ``return``, bodies of functions made of assignments, ``if`` and ``return``. What
is not listed here is refused: attributes, subscripts, comprehensions, lambdas, f-strings, keywords, other calls.
"""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Iterable

from elimina._core import TextError
from elimina.errors import UnsupportedError

FUNCTIONS = ("abs", "bool", "float", "int", "len", "max", "min", "pow", "round", "str", "sum")
"""Functions that an expression may call."""
LONGEST_TEXT = 10_000
DEEPEST = 100
MOST_BRANCHES = 50
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
            TextError: It is no Python.
            UnsupportedError: It uses something of Python that is not handled, or is too long or too deeply nested.
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
        if branches > MOST_BRANCHES:
            raise UnsupportedError(f"a function has {branches} if statements; up to {MOST_BRANCHES} are handled")
        self.names = tuple(name for name in read if name not in written)


def _parsed(text: str) -> ast.expr | list[ast.stmt]:
    """Parse one expression or, if the text is none and returns something, a function's body."""
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
        called = "something that is no plain name" if name is None else f"{name!r}"
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
    wanted = {"pow": (2,), "round": (1, 2), "min": few, "max": few, "sum": few, "len": few if lists else (1,)}
    if count not in wanted.get(name, (1,)) or single or (name == "sum" and not lists):
        raise UnsupportedError(f"an expression calls {name} with {count} arguments, which is not handled")
