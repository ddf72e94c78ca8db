"""NET files against values written down by hand."""

from __future__ import annotations

import numpy as np
import pytest

import elimina
import elimina.io as eio
from elimina.errors import FormatError, UnsupportedError

NET = """% a comment; with { marks (
net
{
  node_size = (80 40);
  name = "my \\"net\\"";
  HR_Desc = "two
lines; {";
}
node rain
{
  states = ("yes" "no");
  label = "it rains; 100 %";
  position = (1 2);
}
discrete node wet
{
  states = (1 0 "very % wet"); % digits are names
  subtype = labelled;
}
node c { states = ("only"); }
potential (rain) { data = (0.2 8e-1); }
potential (wet | rain c)
{
  data = ((( .5 .25 .25 ))   % rain=yes; c=only
          ((0.3 0.3
            0.4000001)));
  experience = (1 1);
}
potential ( c | rain )
{
  data = (1 .5);
}
"""


def read(tmp_path, text):
    path = tmp_path / "m.net"
    path.write_text(text)
    return eio.read(path, check=False)


def test_network(tmp_path):
    model = read(tmp_path, NET)
    assert model.name == 'my "net"'
    assert [v.name for v in model.variables] == ["rain", "wet", "c"]
    assert model.variables[1].states == ("1", "0", "very % wet")
    assert model.children == (0, 1, 2)
    assert [f.scope for f in model.factors] == [(0,), (0, 2, 1), (0, 2)]
    np.testing.assert_array_equal(model.factors[0].values, [0.2, 0.8])
    np.testing.assert_array_equal(model.factors[1].values, [[[0.5, 0.25, 0.25]], [[0.3, 0.3, 0.4000001]]])
    np.testing.assert_array_equal(model.factors[2].values, [[1.0], [1.0]])


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("net\n{", "nets\n{", ":2: expected 'net', 'node' or 'potential', found 'nets'"),
        ("net\n{", "net\n(", ":3: expected '{', found '('"),
        ('lines; {"', "lines; {", ":13: expected '=', found 'position'"),
        ('% wet"', "% wet", ":20: the quotation that starts here has no end"),
        ("node rain\n{", "node\n{", ":10: expected a node's name, found '{'"),
        ("node c", "node rain", ":20: a second variable is named 'rain'"),
        ('("only")', "()", "variable 'c' has no values"),
        ('states = ("only");', "", "variable 'c' has no values"),
        ('("yes" "no")', '("yes" "yes")', "has the state 'yes' twice"),
        ('("yes" "no");', '("yes" "no"); states = (a b);', ":11: node 'rain' has two lists of states"),
        ('("yes" "no");', '("yes" "no"', ":12: expected"),
        ("(rain) {", "(snow) {", ":21: expected a variable declared before, found 'snow'"),
        ("( c | rain )", "( c | snow )", ":29: expected a variable declared before, found 'snow'"),
        ("( c | rain )", "( c | rain", ":30: expected a node's name, found '{'"),
        ("rain c)", "rain rain)", ":22: the head of the distribution of 'wet' repeats a variable"),
        ("( c | rain )", "( rain | c )", ":29: variable 'rain' has a second distribution"),
        ("0.2 8e-1", "0 0", ":21: expected a probability above 0 in row 1 of 'rain', found zeros only"),
        ("1 .5", "1 0", ":31: expected a probability above 0 in row 2 of 'c', found zeros only"),
        ("% digits are names", "/* digits are names", ":17: the comment that starts here has no end"),
        ("8e-1);", "8e-1); data = (1 2);", ":21: the potential of 'rain' has data twice"),
        ("0.2 8e-1", "0.2", ":21: expected 2 probabilities of 'rain', found 1"),
        ("0.2 8e-1", "0.2 0.8 0", ":21: expected 2 probabilities of 'rain', found 3"),
        ("0.2 8e-1", "0.2 -0.8", ":21: expected a non-negative probability of 'rain', found -0.8"),
        ("0.4000001", "nan", ":26: expected a probability of 'wet', found 'nan'"),
        ("0.4000001", "-4", ":26: expected a non-negative probability of 'wet', found -4.0"),
        ("((( .5 .25 .25 ))", "(( .5 .25 .25 )", ":24: expected the data of 'wet' nested as 2 x 1 x 3 values or flat"),
        (
            ".25 ))   % rain=yes; c=only\n          ((0.3",
            "))(( .25 0.3",
            "expected 3 values in each row of 'wet', found 2",
        ),
        (".5);\n}\n", ".5)\n}\n", ":31: expected ';' after the data of 'c', but the file ends before it"),
        ("potential (rain) { data = (0.2 8e-1); }\n", "", "variable 'rain' has no distribution"),
        ("potential (rain) { data = (0.2 8e-1)", "potential (rain | c) { data = (0.2 8e-1)", "a cycle of parents: "),
        ("}\n", "}\n}\n", ":9: expected 'net', 'node' or 'potential', found '}'"),
    ],
)
def test_malformed(tmp_path, old, new, problem):
    assert old in NET
    with pytest.raises(FormatError) as caught:
        read(tmp_path, NET.replace(old, new, 1))
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("node c ", "decision c ", "m.net:20: node 'c' is a decision node"),
        ("node c ", "utility c ", "m.net:20: node 'c' is a utility node"),
        ("node c ", "continuous node c ", "m.net:20: node 'c' is a continuous node"),
        ("node c ", "discrete decision c ", "m.net:20: 'c' is a discrete decision"),
        ("net\n", "class oo\n", "m.net:2: 'oo' is a class"),
        ("(rain) {", "(rain) { model_nodes = ();", "m.net:21: the potential of 'rain' is given by expressions"),
        ("(rain) {", "(rain c) {", "m.net:21: a potential is over 2 children"),
    ],
)
def test_unsupported(tmp_path, old, new, problem):
    with pytest.raises(UnsupportedError) as caught:
        read(tmp_path, NET.replace(old, new, 1))
    assert problem in str(caught.value)


def test_rows_are_normalised(tmp_path, caplog):
    text = """net { }
node A { states = ("x" "y"); }
node B { states = ("u" "v"); }
node C { states = ("r" "s" "t"); }
potential (A) { data = ( 3 7 ); }
potential (B | A) { data = (( 9 1 )( 20 80 )); }
potential (C | A) { data = (( 1e308 1e308 0 )( 0.3333 0.3333 0.3333 )); }
"""
    model = read(tmp_path, text)
    np.testing.assert_allclose(model.factors[0].values, [0.3, 0.7])
    np.testing.assert_allclose(model.factors[1].values, [[0.9, 0.1], [0.2, 0.8]])
    np.testing.assert_allclose(model.factors[2].values, [[0.5, 0.5, 0], [1 / 3] * 3], atol=1e-4)
    assert "rows of 'A' do not sum to 1 (the first such one to 10): they are normalised, as Hugin does" in caplog.text
    marginals = elimina.solve(tmp_path / "m.net", "mar").marginals
    assert marginals["B"]["u"] == pytest.approx(0.3 * 0.9 + 0.7 * 0.2)


def test_a_potential_without_data_is_uniform(tmp_path):
    model = read(tmp_path, NET.replace("data = (0.2 8e-1);", "").replace("data = (1 .5);", "experience = (1 1);"))
    np.testing.assert_array_equal(model.factors[0].values, [0.5, 0.5])
    np.testing.assert_array_equal(model.factors[2].values, [[1.0], [1.0]])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("states =", "states//=\n="),
        ("states = (", "states /* the (names; */ = ("),
        ("(1 2);", "(1 2);//; ("),
        (".25 .25 ))", ".25/*;*/.25 // ;)\n))"),
        ("0.3 0.3", "0.3%)\n0.3"),
        ("potential ( c | rain )", "potential(c|rain)"),
        ("\n", "\r\n"),
        ("data = (0.2 8e-1);", "data=(0.2 8E-1);"),
        ('name = "my', 'HR_Web = "http://a.b/*c";\n  name = "my'),
    ],
)
def test_spellings_of_one_network(tmp_path, old, new):
    assert old in NET
    plain, other = read(tmp_path, NET), read(tmp_path, NET.replace(old, new))
    assert [(v.name, v.states) for v in other.variables] == [(v.name, v.states) for v in plain.variables]
    for ours, theirs in zip(other.factors, plain.factors, strict=True):
        assert ours.scope == theirs.scope
        np.testing.assert_array_equal(ours.values, theirs.values)


def test_text_that_is_not_utf8_is_latin1(tmp_path, caplog):
    path = tmp_path / "m.net"
    path.write_bytes(NET.replace('"yes" "no"', '"geöffnet" "zu"').encode("latin-1"))
    assert eio.read(path).variables[0].states == ("geöffnet", "zu")
    assert f"{path}:11: the text is not UTF-8, so it is read as Latin-1" in caplog.text


def test_flat_and_nested_data_are_the_same(tmp_path):
    flat = read(
        tmp_path, NET.replace("((( .5", "( .5").replace(".25 ))", ".25").replace("((0.3", "0.3").replace("1)))", "1)")
    )
    np.testing.assert_array_equal(flat.factors[1].values, read(tmp_path, NET).factors[1].values)


def test_rounding_below_0_is_taken_as_0(tmp_path, caplog):
    model = read(tmp_path, NET.replace("0.2 8e-1", "1.0 -1.1920929e-07"))
    np.testing.assert_array_equal(model.factors[0].values, [1, 0])
    assert "'rain' has 1 number below 0 by rounding, such as -1.19209e-07: taken as 0" in caplog.text
    with pytest.raises(FormatError, match="non-negative probability of 'rain', found -2e-06"):
        read(tmp_path, NET.replace("0.2 8e-1", "1.0 -2e-06"))
