"""WCSP files against values written down by hand (costs of keywords: see test_keywords)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
import elimina.io as eio
from elimina._core import TextError
from elimina.errors import FormatError, InputError, UnsupportedError
from elimina.io import wcsp
from elimina.model.table import FORBIDDEN

SMALL = """toy 3 3 5 50
2 3 1
2 0 1 7 2
0 0 3
1 2 50
1 1 60 1
0 0
0 4 0
-2 1 2 1 1
2 0 9
2 1 2 0 -1
"""


def read(tmp_path, text, name="m.wcsp"):
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return eio.read(path)


def test_functions(tmp_path):
    model = read(tmp_path, SMALL)
    assert model.sense == "min-cost"
    assert model.name == "toy"
    assert model.upper_bound == 50
    assert model.sizes == (2, 3, 1)
    assert [f.scope for f in model.factors] == [(0, 1), (1,), (), (1, 2), (1, 2)]
    np.testing.assert_array_equal(model.factors[0].values, [[3, 7, 7], [7, 7, FORBIDDEN]])
    np.testing.assert_array_equal(model.factors[1].values, [0, FORBIDDEN, FORBIDDEN])
    assert model.factors[2].values == 4
    for shared in model.factors[3:]:
        np.testing.assert_array_equal(shared.values, [[1], [1], [9]])
    assert model.score([0, 0, 0]) == 3 + 0 + 4 + 1 + 1
    assert read(tmp_path, SMALL.replace("\n", "\r\n")).score([0, 0, 0]) == 9


def test_costs_above_2_to_the_53_are_exact(tmp_path):
    big = 2**62 + 1
    model = read(tmp_path, f"big 1 2 2 {2**63}\n2\n1 0 0 1\n1 {big}\n0 {big} 0\n")
    assert model.upper_bound is None
    assert model.score([1]) == 2 * big
    assert read(tmp_path, f"big 1 2 1 {10**30}\n2\n1 0 {FORBIDDEN} 1\n1 5\n").score([0]) == float("inf")


@st.composite
def files(draw):
    """The text of a file: functions of every kind, and now and then something that does not fit."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    cost, functions, shared = st.integers(0, 30), [], 0
    for _ in range(draw(st.integers(0, 8))):
        scope = draw(st.permutations(range(len(sizes))))[: draw(st.integers(0, len(sizes)))]
        head = f"{len(scope)} {' '.join(map(str, scope))} {draw(cost)}"
        kind = draw(st.sampled_from(["plain", "plain", "plain", "shared", "again"]))
        if kind == "again":
            functions.append(f"{head} -{draw(st.integers(1, 1 + shared))}")
            continue
        rows = draw(st.lists(st.tuples(*(st.integers(0, sizes[v] - 1) for v in scope)), max_size=6 if scope else 0))
        is_shared = kind == "shared" and bool(scope)
        shared += is_shared
        lines = [f"{'-' if is_shared else ''}{head} {len(rows)}"]
        functions.append("\n".join([*lines, *(f"{' '.join(map(str, row))} {draw(cost)}" for row in rows)]))
    header = f"toy {len(sizes)} 3 {len(functions)} 20"
    text = "\n".join([header, " ".join(map(str, sizes)), *functions, ""])
    if draw(st.booleans()):
        place = draw(st.integers(0, len(text) - 1))
        text = text[:place] + draw(st.sampled_from(["", "-1", "x", "9", "\n", "9" * 20])) + text[place + 1 :]
    return text


@given(text=files(), most=st.sampled_from([1, 2, 4096]))
@settings(max_examples=400)
def test_functions_that_are_read_at_once_are_those_read_one_by_one(text, most):
    """A malformed file has the same error at the same place."""
    found = []
    for read_plain in (wcsp._FunctionReader.read_plain, lambda *_: 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(wcsp, "_MAX_FUNCTIONS_PER_ARRAY", most)
            patch.setattr(wcsp._FunctionReader, "read_plain", read_plain)
            given_text = wcsp.CODEC.open_text(text.encode())
            try:
                model = wcsp.parse(given_text)
                found.append([(f.scope, f.values.tolist(), f.default) for f in model.factors])
            except (TextError, InputError, UnsupportedError) as error:
                found.append((str(error), given_text.line))
    assert found[0] == found[1]


def test_a_function_of_very_many_variables_of_one_value(tmp_path):
    count = 3000
    ones, scope = " ".join(["1"] * count), " ".join(map(str, range(count)))
    model = read(tmp_path, f"wide {count} 1 1 50\n{ones}\n{count} {scope} 3 0\n")
    assert len(model.factors[0].scope) == count
    assert model.score([0] * count) == elimina.solve(model, device="cpu").value == 3


def test_few_tuples_of_a_large_product_are_sparse(tmp_path):
    model = read(
        tmp_path, "s 40 2 1 10\n" + "2 " * 40 + "\n40 " + " ".join(map(str, range(40))) + " 3 1\n" + "1 " * 40 + "0\n"
    )
    table = model.factors[0]
    assert table.rows is not None
    assert table.default == 3
    assert model.score([1] * 40) == 0
    assert model.score([0] * 40) == 3
    cells = " ".join(f"{a} {b} {a + b}\n" for a in range(70) for b in range(70))
    assert read(tmp_path, f"d 2 70 1 999\n70 70\n2 0 1 0 4900\n{cells}").factors[0].rows is None


def test_interval_domains_and_glued_numbers(tmp_path):
    model = read(tmp_path, "g 2 3 1 10\n-3 3\n2 0 1-1 >= 0 1\n")
    np.testing.assert_array_equal(model.factors[0].values, [[0, 1, FORBIDDEN], [0, 0, 1], [0, 0, 0]])


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("toy 3 3 5 50", "toy", "expected a number of variables, but the file ends here"),
        ("3 3 5 50", "-3 3 5 50", "1: expected a number of variables, found -3"),
        ("3 3 5 50", "1000000000000 3 5 50", "bytes follow"),
        ("3 3 5 50", "3 3 1000000000000 50", "bytes follow"),
        ("3 3 5 50", "3 3 5 -50", "upper bound of at least 0, found '-50'"),
        ("3 3 5 50", "3 3 5 5e1", "upper bound of at least 0, found '5e1'"),
        ("3 3 5 50", "3 2 5 50", "domain size from 1 to 2"),
        ("3 3 5 50", "3 3 6 50", "arity, but the file ends here"),
        ("3 3 5 50", "3 3 4 50", "11: expected the end of the file, found '2'"),
        ("2 3 1\n", "2 0 1\n", "domain size from 1 to 3"),
        ("2 0 1 7 2", "2 0 3 7 2", "3: expected a variable from 0 to 2, found 3"),
        ("2 0 1 7 2", "2 0 0 7 2", "3: a function names a variable twice"),
        ("2 0 1 7 2", "2 0 1 -7 2", "default cost of at least 0"),
        ("2 0 1 7 2", "2 0 1 7 1000000000000", "bytes follow"),
        ("2 0 1 7 2", "2 0 1 7 6148914691236517206", "bytes follow"),
        ("2 0 1 7 2", "1000000000000 0 1 7 2", "bytes follow"),
        ("2 0 1 7 2", "2 0 1 7 -1", "shared functions before this line"),
        ("1 2 50", "1 3 50", "5: expected a value from 0 to 2, found '3'"),
        ("1 2 50", "-1 2 50", "5: expected a value from 0 to 1, found '-1'"),
        ("1 2 50", "1 2 -50", "5: expected a cost of at least 0, found '-50'"),
        ("1 2 50", "1 2 99999999999999999999", "fits 64 bits"),
        ("1 2 50", "1 2 5.0", "5: expected a cost, found '5.0'"),
        ("1 2 50", "0 0 50", "listed with two costs"),
        ("0 4 0", "0 4 1\n5", "no tuples in a function of arity 0"),
        ("2 1 2 0 -1", "2 0 2 0 -1", "shared function 1 has domain sizes (3, 1), expected (2, 1)"),
        ("2 1 2 0 -1", "2 1 2 0 -2", "expected one of the 1 shared functions"),
    ],
)
def test_malformed(tmp_path, old, new, problem):
    assert old in SMALL
    text = SMALL.replace(old, new, 1) if new != "toy" else "toy"
    with pytest.raises(FormatError) as caught:
        read(tmp_path, text)
    assert problem in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "m.wcsp"))


def test_an_unknown_keyword(tmp_path):
    with pytest.raises(UnsupportedError, match=r"m\.wcsp:3: the keyword 'smstdp' is not handled"):
        read(tmp_path, "k 2 2 1 10\n2 2\n2 0 1 -1 smstdp\n")


def test_what_the_writer_refuses(tmp_path):
    for values, problem in (
        ([0, -1], "at least 0"),
        ([0.1, 1e300], "too many digits"),
        ([1000.1, 1 / 3], "too many digits"),
    ):
        with pytest.raises(InputError, match=problem):
            eio.write(elimina.Model.from_arrays([2], [([0], values)]), tmp_path / "m.wcsp")


def test_decimal_costs_are_scaled_and_the_name_says_so(tmp_path):
    model = elimina.Model.from_arrays([2], [([0], [0.25, np.inf])], constant=1.5, upper_bound=3.0)
    eio.write(model, tmp_path / "m.wcsp")
    back = eio.read(tmp_path / "m.wcsp")
    assert back.name == "problem*1e2"
    assert back.upper_bound == 300
    assert back.score([0]) == 175
    assert back.score([1]) == float("inf")
