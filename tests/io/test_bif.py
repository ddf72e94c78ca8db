"""BIF files against values written down by hand."""

from __future__ import annotations

import numpy as np
import pytest

import elimina
import elimina.io as eio
from elimina import Model, Table, Variable
from elimina.errors import FormatError, UnsupportedError
from elimina.states import evidence_of

NET = """// a comment
network "my net" { property author "me; myself"; }
variable rain { type discrete [ 2 ] { yes, no }; }
variable "wet grass" {
  property position = (1, 2) ;
  type discrete [3] { 1, 0, "very wet" }; /* digits are states */
}
variable c { type discrete [ 1 ] { only }; }
probability ( rain ) { table 0.2, 8e-1; }
probability ( "wet grass" | rain, c ) {
  (no, only) 0.3, 0.3, 0.4000001;
  (yes, only) .5, .25, .25;
}
probability ( c | rain ) { default 1.0; (no) 0.5; }
"""


def read(tmp_path, text):
    path = tmp_path / "m.bif"
    path.write_text(text)
    return eio.read(path, check=False)


def test_network(tmp_path):
    model = read(tmp_path, NET)
    assert model.sense == "probability"
    assert model.name == "my net"
    assert [v.name for v in model.variables] == ["rain", "wet grass", "c"]
    assert model.variables[1].states == ("1", "0", "very wet")
    assert model.children == (0, 1, 2)
    assert [f.scope for f in model.factors] == [(0,), (0, 2, 1), (0, 2)]
    np.testing.assert_array_equal(model.factors[0].values, [0.2, 0.8])
    np.testing.assert_array_equal(model.factors[1].values, [[[0.5, 0.25, 0.25]], [[0.3, 0.3, 0.4000001]]])
    np.testing.assert_array_equal(model.factors[2].values, [[1.0], [0.5]])
    assert evidence_of(model, {"wet grass": "0"}) == {1: 1}


def test_unknown_is_no_name(tmp_path):
    nameless = Model([Variable("a", 2)], [Table([0], [0.5, 0.5])], sense="probability", children=[0])
    elimina.write(nameless, tmp_path / "nameless.bif")
    assert elimina.read(tmp_path / "nameless.bif").name == ""


def test_in_a_conditional_table_the_child_varies_slowest(tmp_path):
    old = "(no, only) 0.3, 0.3, 0.4000001;\n  (yes, only) .5, .25, .25;"
    model = read(tmp_path, NET.replace(old, "table 1 2 3 4 5 6;"))
    np.testing.assert_array_equal(model.factors[1].values, [[[1, 3, 5]], [[2, 4, 6]]])


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("variable rain", "varible rain", "3: expected 'network', 'variable' or 'probability', found 'varible'"),
        ("variable c", "variable rain", "a second variable is named 'rain'"),
        ("[ 2 ]", "[ 3 ]", "3: variable 'rain' is declared with 3 values and lists 2"),
        ("[ 2 ]", "[ 99999999999999 ]", "3: variable 'rain' is declared with"),
        ("{ yes, no }", "{ yes, yes }", "the state 'yes' twice"),
        ("discrete [ 2 ]", "continuous [ 2 ]", "3: expected 'discrete', found 'continuous'"),
        ("( rain )", "( snow )", "9: expected a variable declared before, found 'snow'"),
        ("| rain, c )", "| rain, rain )", "repeats a variable"),
        ("( c | rain )", "( rain | c )", "14: variable 'rain' has a second distribution"),
        ("0.2, 8e-1", "0.2", "expected 2 values and no rows in the table of 'rain', found 1"),
        ("0.2, 8e-1", "0.2, -0.8", "9: expected a non-negative probability"),
        ("0.2, 8e-1", "0.2, nan", "9: expected a probability or ';', found 'nan'"),
        ("0.2, 8e-1;", "0.2, 8e-1", "9: expected a probability or ';', found '}'"),
        ("(no, only)", "(maybe, only)", "11: expected a state of the parent in this place (yes, no), found 'maybe'"),
        ("(no, only)", "(no)", "11: expected a state of the parent in this place (only), found ')'"),
        ("(no, only)", "(no, only, yes)", "11: expected ')' after the parents' values"),
        ("(no, only)", "(yes, only)", "a row of 'wet grass' is given twice"),
        ("0.3, 0.3, 0.4000001", "0.3, 0.3", "11: expected 3 probabilities in a row, found 2"),
        ("  (yes, only) .5, .25, .25;\n", "", "expected 2 rows for 'wet grass', found 1"),
        ("default 1.0;", "default 1.0, 2;", "expected 1 values in the default row"),
        ("probability ( c | rain ) { default 1.0; (no) 0.5; }\n", "", "variable 'c' has no distribution"),
        ("( rain ) {", "( rain | c ) { default 0.5 0.5; ", "9: expected 2 values and no rows in the table"),
        ("( rain ) { table", "( rain | c ) { default", "14: a cycle of parents: 'rain' <- 'c' <- 'rain'"),
        ('"me; myself"', '"me', "2: the quotation that starts here has no end"),
        ("*/", "", "6: the comment that starts here has no end"),
    ],
)
def test_malformed(tmp_path, old, new, problem):
    assert old in NET
    with pytest.raises(FormatError) as caught:
        read(tmp_path, NET.replace(old, new, 1))
    assert problem in str(caught.value)


def test_a_distribution_too_large_to_be_kept(tmp_path):
    variables = "".join(
        f"variable v{i} {{ type discrete [ 10 ] {{ {' '.join(map(str, range(10)))} }}; }}\n" for i in range(9)
    )
    parents = ", ".join(f"v{i}" for i in range(1, 9))
    with pytest.raises(UnsupportedError, match="1000000000 entries"):
        read(tmp_path, variables + f"probability ( v0 | {parents} ) {{ default 1 0 0 0 0 0 0 0 0 0; }}")
