"""FlatZinc: the grammar, what errors say, and files that were damaged."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina._core import FlatZinc
from tests.cp.flatzinc_solver import solved

WHOLE_GRAMMAR = """% a comment
predicate p(array [int] of var int: x, set of int: s, var 1..3: y, array [1..2, int] of float: f) :: note;
predicate none();
bool: yes = true;
int: three = 0x3;
1..9: eight = 0o10;
float: half = 0.5;
set of int: some = {5, 3, 4};
set of 1..5: range = 2..4;
array [1..2] of int: numbers = [three, -7];
array [1..2] of set of int: sets = [1..2, {1, 9}];
array [1..0] of bool: empty = [];
var bool: b :: output_var;
var {1, 3, 7}: x :: output_var :: is_defined_var = three;
var 0..5: y :: note("a \\" % string", [1, 2.5e-3, {1}, 1..2, [deep(x, atom)]]) :: output_var;
var int: z :: output_var = y;
array [1..2, 1..1] of var int: grid :: output_array([1..2, 1..1]) = [x, 4];
array [1..2] of int: shown :: output_array([0..1]) = numbers;
array [1..2] of var bool: old :: output_array([1..2]);
constraint int_lin_le(numbers, [x, y], 2) :: domain :: q(1); constraint set_in(y, some)
  ; constraint bool_clause([b, old[1]], [yes]);
constraint array_bool_and([old[2], b], true);
solve :: seq_search([int_search(grid, first_fail, indomain_min, complete), bool_search([b], input_order, indomain_max)])
  :: restart_luby(50) satisfy;
"""


def test_the_whole_grammar() -> None:
    solutions = solved(WHOLE_GRAMMAR)
    assert sorted((s["y"], s["z"], s["old"][0]) for s in solutions) == [
        (y, y, o) for y in (3, 4, 5) for o in (False, True)
    ]
    assert all(s["b"] and s["x"] == 3 and s["grid"] == [3, 4] and s["shown"] == [3, -7] for s in solutions)


def test_solutions_are_written_as_flatzinc_says() -> None:
    text = """var 2..2: x :: output_var; var bool: b :: output_var;
    array [1..2] of var int: a :: output_array([3..4]) = [x, 5];
    array [1..4] of var bool: c :: output_array([1..2, 0..1]) = [b, true, false, b];
    constraint bool_eq(b, false); solve satisfy;"""
    model = FlatZinc(text.encode(), lambda: True)
    search = model.search(False, 0, float("inf"), 1, False, lambda: True)
    assert search.next(lambda: True) == "solution"
    assert model.show(search).decode() == (
        "x = 2;\nb = false;\na = array1d(3..4, [2, 5]);\n"
        "c = array2d(1..2, 0..1, [false, true, false, false]);\n----------\n"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1:1: expected a solve item, found the end of the file"),
        ("var 1..3: x;\nsolve satisfy", "2:14: expected ';', found the end of the file"),
        ("var 1..3 x;", "1:10: expected ':', found 'x'"),
        ("var 1..: x;", "1:8: expected a number, found ':'"),
        ("var 3 : x;", "1:5: expected a type, found '3'"),
        ("var 1.5: x; solve satisfy;", "1:5: expected a type, found '1'"),
        ("var 0.5..1e300: x; solve satisfy;", "1:17: the float x: its values are too large"),
        ("var set of 1..2: x; solve satisfy;", "1:18: unsupported: the set variable x; compile the MiniZinc model"),
        ("var 1..3: x; var 1..3: x; solve satisfy;", "1:24: a second declaration of x"),
        ("var 1..99999999999999999999: x;", "1:8: the integer 99999999999999999999 is beyond 64 bits"),
        ("var -9223372036854775809..0: x;", "1:5: the integer -9223372036854775809 is beyond 64 bits"),
        (
            "var -9223372036854775808..0: x; solve satisfy;",
            "1:30: unsupported: the integer -9223372036854775808 is beyond 2^52",
        ),
        (
            "var 0..9007199254740993: x; solve satisfy;",
            "1:26: unsupported: the integer 9007199254740993 is beyond 2^52",
        ),
        (
            "var 0..9223372036854775807: x; solve satisfy;",
            "1:8: unsupported: the integer 9223372036854775807 is beyond 2^52",
        ),
        ("constraint int_le(x, 3); solve satisfy;", "1:19: expected a declared name, found 'x'"),
        ("var 1..3: x;\n constraint int_foo(x);\nsolve satisfy;", "2:13: unsupported: the constraint int_foo; compile"),
        (
            "var 1..3: x; constraint int_le(x); solve satisfy;",
            "1:25: constraint int_le: takes 2 arguments, found 1",
        ),
        (
            "var 1..3: x; var 1..3: y; constraint fzn_on_restart_sol_int(x, y); solve satisfy;",
            "unsupported: the constraint fzn_on_restart_sol_int; no function runs at restarts: to search near the best",
        ),
        ("constraint fzn_blackbox([], [], [], []); solve satisfy;", "fzn_blackbox; functions outside the model"),
        ("var 1..3: x; constraint int_le(x, 0.5); solve satisfy;", "1:25: unsupported: a float as an argument"),
        ("array [1..2] of int: a = [1]; solve satisfy;", "1:26: expected 2 elements of a, found 1"),
        ("array [1..1] of int: a = [true]; solve satisfy;", "1:26: expected an integer as element 1 of a"),
        ("int: a = true; solve satisfy;", "1:10: expected an integer, found 'true'"),
        ("array [1..1] of int: a = [1]; constraint int_le(a[2], 1);", "1:51: expected an index from 1 to 1, found 2"),
        ("solve satisfy; solve satisfy;", "1:16: a second solve item"),
        ("solve maximise x;", "1:7: expected 'satisfy', 'minimize' or 'maximize', found 'maximise'"),
        ("var 1..2: x :: output_array([1..2]); solve satisfy;", "1:11: output_array of x: expected"),
        ('var 1..2: x :: a("b\n"); solve satisfy;', "expected '\"' at the end of a string"),
        ("banana;", "1:1: expected an item: a declaration, constraint or solve, found 'banana'"),
        ("\x00", "1:1: expected an item: a declaration, constraint or solve, found byte 0"),
        ("var 1..2: x :: " + "a(" * 200, "expected at most 100 levels of nesting"),
        ("array [1..1] of int: a = " + "[" * 100000, "expected at most 100 levels of nesting"),
        ("array [1..999999999999] of var 1..2: x; solve satisfy;", "is too long"),
        ("solve minimize [1]; ", "expected an integer, a Boolean, a variable"),
        ("var 1..2: x; solve :: int_search([x], 3, indomain) satisfy;", "expected the name of a variable ordering"),
        ("solve :: restart_luby(0) satisfy;", "expected numbers from 1 on as arguments of restart_luby"),
        ('\n {"variables": {}, "solve": {}}', "2:2: unsupported: FlatZinc as JSON; compile the MiniZinc model to text"),
        ("[" * 100000, "1:1: expected an item"),
    ],
)
def test_errors_name_the_place_and_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"^\d+:\d+: ") as error:
        FlatZinc(text.encode(), lambda: True)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def _ends_well(text: bytes) -> None:
    problem = None
    try:
        model = FlatZinc(text, lambda: True)
    except ValueError as error:
        problem = str(error)
    if problem is not None:
        assert re.match(r"\d+:\d+: ", problem), text
        return
    search = model.search(False, 0, 0.05, 1, False, lambda: True)
    if search.next(lambda: True) == "solution":
        model.show(search)


_PIECES = [
    b"..",
    b"::",
    b"{",
    b"}",
    b"[",
    b"]",
    b"(",
    b";",
    b"var ",
    b"999999999999",
    b"-",
    b"0.5",
    b"true",
    b"x",
    b'"',
    b"\n",
    b"\xff",
    b",",
    b"int",
]


@settings(max_examples=1500, deadline=None)
@given(st.just(WHOLE_GRAMMAR.encode()), st.randoms(use_true_random=False))
def test_damaged_files_are_errors_or_models(text: bytes, rng: random.Random) -> None:
    for _ in range(rng.randint(1, 4)):
        at, length = rng.randrange(len(text) + 1), rng.choice((0, 1, 1, 3, 20))
        text = text[:at] + rng.choice((b"", *_PIECES)) + text[at + length :]
    _ends_well(text[: rng.choice((len(text), len(text), rng.randrange(len(text) + 1)))])


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_an_error_or_a_model(text: bytes) -> None:
    _ends_well(text)
