"""Expressions of costs: against Python itself, and against what must not be let in."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina._core import TextError
from elimina.dcop.formats.columns import column
from elimina.dcop.formats.expression import Expression, tabulate
from elimina.errors import UnsupportedError

INTEGERS = [-3, 0, 1, 2, 7]
REALS = [-0.5, 0.0, 1.5, 2]
WORDS = ["R", "G", "1"]
BODY = """
if x < 0:
    return -x
elif x == y:
    z = x * 2
    if z > 3:
        return z
else:
    z = 5
    z = z + y
return z - 1
"""


def costs_of(text, **domains):
    expression = Expression(text)
    return tabulate(expression, expression.names, [column(domains[name]) for name in expression.names])


def by_python(text, **domains):
    names = Expression(text).names
    body = "".join(f"\n  {line}" for line in (text if "\n" in text else f"return {text}").strip("\n").split("\n"))
    scope: dict = {}
    exec(f"def f({', '.join(names)}):{body}", scope)
    return [scope["f"](*row) for row in itertools.product(*(domains[name] for name in names))]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "x + y * 2",
            "1 if x == y else 0",
            "x / y if y else -1",
            "x // y if y != 0 else 5",
            "x % 3",
            "x ** 2 + y ** 3",
        ),
        *(
            "abs(x - y)",
            "max(x, y, 2)",
            "min([x, y])",
            "round(0.7 * x + 0.5 * y)",
            "round(x / 3, 2)",
            "x < y < 2",
            "0 <= x < y != 2 > 1",
        ),
        *("x and y", "x or y", "not x", "x in (1, 2)", "x not in [7, y]", "-x + +y", "sum([x, y, 1])", "int(x / 2)"),
        *("float(x) + len('abc')", "True + x", "-(x == y)", "10000 if x == y else (0 if x < y else 0.5)", "pow(x, 2)"),
        *("str(x) == '1'", "x == 'R'", "bool(x) + bool(y)", "x and 1 / x", "y == 0 or x / y > 1", "len([x, y])"),
        *("0.1 + 0.2 + x", "(x == 1) + (y == 2) * 3", "1e3 * x", BODY),
    ],
)
@pytest.mark.parametrize("values", [INTEGERS, REALS, [True, False]])
def test_python_agrees(text, values):
    assert costs_of(text, x=values, y=INTEGERS).tolist() == by_python(text, x=values, y=INTEGERS)


@pytest.mark.parametrize(
    "text", ["x * 10 ** 20", "(x * 10 ** 20) // (10 ** 19 + y)", "x * 2 ** 52 * y", "-(2 ** 60) + x"]
)
def test_large_integers_are_exact(text):
    assert costs_of(text, x=INTEGERS, y=INTEGERS).tolist() == by_python(text, x=INTEGERS, y=INTEGERS)


@pytest.mark.parametrize(
    "text", ["-0.1 if a == 'R' else 0.1", "1 if a == b else 0", "a > b", "a == 'return'", "a != 'R' and len(a)"]
)
def test_strings_are_compared(text):
    assert costs_of(text, a=WORDS, b=WORDS).tolist() == by_python(text, a=WORDS, b=WORDS)


ATOMS = st.sampled_from(["x", "y", "0", "1", "2", "3", "0.5", "True"])
TEXTS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "<", "<=", "==", "!=", "and", "or"]), inner).map(
            lambda t: f"({' '.join(t)})"
        ),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} if {t[1]} else {t[2]})"),
        st.tuples(st.sampled_from(["max", "min"]), inner, inner).map(lambda t: f"{t[0]}({t[1]}, {t[2]})"),
        inner.map(lambda t: f"abs({t})"),
        inner.map(lambda t: f"(not {t})"),
        inner.map(lambda t: f"(-{t})"),
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_random_expressions(text):
    assert costs_of(text, x=INTEGERS, y=REALS).tolist() == by_python(text, x=INTEGERS, y=REALS)


def test_a_branch_is_evaluated_only_where_it_is_taken():
    assert costs_of("1 / x if x != 0 else 9", x=[0, 2]).tolist() == [9, 0.5]
    assert costs_of("x == 0 or 1 % x", x=[0, 2]).tolist() == [1, 1]
    assert costs_of("0 < x < 1 / x", x=[0, 2, 0.5]).tolist() == [0, 0, 1]


def test_more_cells_than_a_block():
    n = 300
    got = costs_of("abs(x - y)", x=list(range(n)), y=list(range(n)))
    assert (got.reshape(n, n) == np.abs(np.subtract.outer(np.arange(n), np.arange(n)))).all()


@pytest.mark.parametrize(
    "text",
    [
        *("__import__('os')", "open('/etc/passwd')", "eval('1')", "exec('1')", "x.__class__", "().__class__.__bases__"),
        *("[x for x in (1, 2)]", "sum([y for y in range(9)])", "{1: x}[1]", "lambda: x", "(lambda: 1)()", "f'{x}'"),
        *(
            "x := 3",
            "(x := 3)",
            "max(x, key=abs)",
            "max(*[1, 2])",
            "print(x)",
            "getattr(x, 'y')",
            "b'a'",
            "...",
            "None",
        ),
        *(
            "x @ y",
            "x | y",
            "x is y",
            "x in y",
            "'a' in 'abc'",
            "1j",
            "[1, 2]",
            "len({1, 1})",
            "x in [1] == y",
            "abs([1])",
            "abs()",
        ),
        *("yield x", "await x", "import os\nreturn 1", "while True: pass\nreturn 1", "def g(): return 1\nreturn g()"),
        *("x[0] = 1\nreturn 1", "a = b = 1\nreturn a", "global x\nreturn 1", "x += 1\nreturn x", "del x\nreturn 1"),
    ],
)
def test_refused(text):
    with pytest.raises((UnsupportedError, TextError)):
        Expression(text)


@pytest.mark.parametrize(
    "text", ["x +", "", "1 2", "x = 3", "if x: return 1\n  return", "\0", "'a", "return 1\n}", "9" * 5000]
)
def test_no_python(text):
    with pytest.raises(TextError):
        Expression(text)


@pytest.mark.parametrize(
    "text",
    [
        *("9 ** 9 ** 9", "(2 ** 1000) ** 1000", "x ** 10 ** 9", "10.0 ** 400", "2 ** 900 * 2 ** 900", "'a' * 10 ** 9"),
        *(
            "'a' + 'b'",
            "-'a'",
            "abs('a')",
            "round(x, 10 ** 9)",
            "int('9' + '9')",
            f"int('{'9' * 100}')",
            "1 if 'a' < 1 else 0",
        ),
        *(
            "1 / 0",
            "1 % (x - x)",
            "1 // 0.0",
            "0 ** -1",
            "(-8) ** 0.5",
            "int('a')",
            "int(float('inf'))",
            "len(3)",
            "'R'",
        ),
        *("if x > 3:\n  return 2", "a = 1\nreturn", "if x > 3:\n  a = 2\nreturn a"),
    ],
)
def test_no_value(text):
    with pytest.raises((UnsupportedError, TextError)):
        costs_of(text, x=[3, 4])


@pytest.mark.parametrize(
    "text",
    [
        *("(" * 5000 + "x" + ")" * 5000, "-" * 9000 + "x", "not " * 2000 + "x", "x" + " + x" * 2000),
        *("x" + " and x" * 1500, "x if x else " * 700 + "x", "x" * 20_000, "[" * 4000),
        "x" + " < x" * 300,
        "if x: return 1\n" * 60 + "return 2",
    ],
)
def test_depth_is_bounded(text):
    start = time.process_time()
    with pytest.raises((UnsupportedError, TextError)):
        Expression(text)
    assert time.process_time() - start < 5


def test_names():
    assert Expression("b + a * max(c, b)").names == ("b", "a", "c")
    assert Expression("z = a\nreturn z + b").names == ("a", "b")
