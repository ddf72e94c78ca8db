"""BIF files against values written down by hand."""

from __future__ import annotations

import numpy as np
import pytest

import elimina
import elimina.io as eio
from elimina import Model, Table, Variable
from elimina.errors import FormatError, UnsupportedError
from elimina.problem.observations import evidence_of

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
        ("[ 2 ]", "[ 3 ]", "3: variable 'rain' is declared with 3 values, but lists 2"),
        ("[ 2 ]", "[ 99999999999999 ]", "3: variable 'rain' is declared with"),
        ("{ yes, no }", "{ yes, yes }", "the state 'yes' twice"),
        (
            "discrete [ 2 ]",
            "continuous [ 2 ]",
            "3: expected 'discrete [ N ]' of variable 'rain', found 'continuous [ 2 ]'",
        ),
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
        ("default 1.0;", "default 1.0, 2;", "expected 1 value in the default row"),
        ("probability ( c | rain ) { default 1.0; (no) 0.5; }\n", "", "variable 'c' has no distribution"),
        ("( rain ) {", "( rain | c ) { default 0.5 0.5; ", "9: expected 2 values and no rows in the table"),
        ("( rain ) { table", "( rain | c ) { default", "14: a cycle of parents: 'rain' <- 'c' <- 'rain'"),
        ('"me; myself"; }', '"me; myself" }', "expected"),
        ("*/", "", "6: the comment that starts here has no end"),
    ],
)
def test_malformed(tmp_path, old, new, problem):
    assert old in NET
    with pytest.raises(FormatError) as caught:
        read(tmp_path, NET.replace(old, new, 1))
    assert problem in str(caught.value)


PUMP = """network pump { property site SITE; }
variable Level { type discrete [ 3 ] { low, mid, high }; }
variable Age { type discrete [ 2 ] { _0_25], [0_1_5] }; }
probability ( Level | Age ) { (_0_25]) 0.2, 0.3, 0.5; ([0_1_5]) .1 2e-1 7E-01; }
probability ( Age ) { table 0.4, 0.6; }
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("mid, high", 'mid,//"MID"\n high//"HIGH"\n'),
        ("high }", "high/* the top */}"),
        ("low, mid, high", "low/* a */mid/* b */, high"),
        ("0.4, 0.6;", "0.4,//first\n0.6//second\n;"),
        ("0.2, 0.3, 0.5;", "0.2/**/0.3/*,*/0.5;"),
        ("(_0_25])", "(_0_25]//young\n)"),
        ("Level | Age", "Level/*child*/| Age//parent\n"),
        ("SITE", "http://example.org/a"),
        ("SITE", 'of "unpaired'),
        ("SITE", '"a; b" and /* this'),
        ("discrete [ 2 ] {", "discrete[2]{"),
        ("discrete [ 2 ] {", "discrete [2 ]\n{"),
        ("}\nvariable Age", "};\nvariable Age"),
        (", ", "\t"),
        ("\n", "\r\n"),
        ("(_0_25])", '("_0_25]")'),
        ("{ _0_25], [0_1_5] }", '{ "_0_25]" "[0_1_5]" }'),
    ],
)
def test_spellings_of_one_network(tmp_path, old, new):
    assert old in PUMP
    model = read(tmp_path, PUMP.replace(old, new))
    assert [(v.name, v.states) for v in model.variables] == [
        ("Level", ("low", "mid", "high")),
        ("Age", ("_0_25]", "[0_1_5]")),
    ]
    np.testing.assert_array_equal(model.factors[0].values, [[0.2, 0.3, 0.5], [0.1, 0.2, 0.7]])
    np.testing.assert_array_equal(model.factors[1].values, [0.4, 0.6])


def test_states_with_slashes_and_brackets_are_read_back(tmp_path):
    states = ["a//b", "a/*b", "a/b", "[0_1_5]", "_0_25]", "#1"]
    model = Model(
        [Variable("x", 6, states)], [Table([0], [0.5, 0.1, 0.1, 0.1, 0.1, 0.1])], sense="probability", children=[0]
    )
    elimina.write(model, tmp_path / "m.bif")
    assert elimina.read(tmp_path / "m.bif").variables[0].states == tuple(states)


def test_text_that_is_not_utf8_is_latin1(tmp_path, caplog):
    path = tmp_path / "m.bif"
    text = PUMP.replace("mid", "mäßig").replace("Age", "Größe")
    path.write_bytes(text.encode("latin-1"))
    model = eio.read(path)
    assert [v.name for v in model.variables] == ["Level", "Größe"]
    assert model.variables[0].states == ("low", "mäßig", "high")
    assert f"{path}:2: the text is not UTF-8, so it is read as Latin-1" in caplog.text
    caplog.clear()
    path.write_text(text, encoding="utf-8")
    assert eio.read(path).variables[0].states == ("low", "mäßig", "high")
    assert not caplog.text


def test_a_distribution_too_large_to_be_kept(tmp_path):
    variables = "".join(
        f"variable v{i} {{ type discrete [ 10 ] {{ {' '.join(map(str, range(10)))} }}; }}\n" for i in range(9)
    )
    parents = ", ".join(f"v{i}" for i in range(1, 9))
    with pytest.raises(UnsupportedError, match="1000000000 entries"):
        read(tmp_path, variables + f"probability ( v0 | {parents} ) {{ default 1 0 0 0 0 0 0 0 0 0; }}")
