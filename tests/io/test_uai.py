"""UAI and ERGO models against values written down by hand."""

from __future__ import annotations

import numpy as np
import pytest

import elimina
import elimina.io as eio
from elimina.errors import FormatError, InputError

MARKOV = """MARKOV
3
2 2 3
3
2 0 1
2 1 2
0
4
 4.0 2.4 1e-1 .5
6
 2.25 3.25 3.75 0 0 10
1 0.5
"""
BAYES = "BAYES 2 2 3 2 1 0 2 0 1 2 0.436 0.564 6 0.128 0.872 0 0.92 0.08 0"
ERGO = "/* net */ 2 2 3\n1 1\n0 /* Probabilities */ 6 .1 .9 .2 .8 .3 .7 3 .2 .3 .5"
NAMES = " /* Names */ rain wind /* Labels */ no yes calm windy storm"


def read(tmp_path, text, name="m.uai"):
    path = tmp_path / name
    path.write_text(text)
    return eio.read(path)


def test_markov(tmp_path):
    model = read(tmp_path, MARKOV)
    assert model.sense == "probability"
    assert model.children is None
    assert model.sizes == (2, 2, 3)
    assert [f.scope for f in model.factors] == [(0, 1), (1, 2), ()]
    np.testing.assert_array_equal(model.factors[0].values, [[4.0, 2.4], [0.1, 0.5]])
    np.testing.assert_array_equal(model.factors[1].values, [[2.25, 3.25, 3.75], [0, 0, 10]])
    assert model.score([1, 0, 2]) == pytest.approx(np.log(0.1 * 3.75 * 0.5))
    assert read(tmp_path, MARKOV.replace("\n", "\r\n")).score([0, 1, 2]) == model.score([0, 1, 2])


def test_bayes_names_the_children(tmp_path):
    model = read(tmp_path, BAYES)
    assert model.children == (0, 1)
    np.testing.assert_array_equal(model.factors[1].values, [[0.128, 0.872, 0], [0.92, 0.08, 0]])


def test_the_dialect_of_pyagrum_is_refused(tmp_path):
    """Its tables of several parents would be read with the parents' axes swapped."""
    (tmp_path / "m.uai").write_text("BAYES\n1\n3 \n1\n1 0   # a\n\n3\n  0.25 0.5 0.25 \n")
    with pytest.raises(FormatError, match=r"m\.uai: the comment in line 5 is that of pyAgrum, .* as \.bifxml"):
        elimina.read(tmp_path / "m.uai")
    (tmp_path / "m.uai").write_bytes(b"\x7fELF\0\0#\0")
    with pytest.raises(FormatError, match=r"m\.uai: expected text, found binary data"):
        elimina.read(tmp_path / "m.uai")


def test_a_child_that_is_not_last_is_moved_there(tmp_path):
    values = np.arange(6.0).reshape(2, 3) / [3, 5, 7]
    variables = [elimina.Variable("a", 2), elimina.Variable("b", 3)]
    model = elimina.Model(variables, [elimina.Table([0, 1], values)], sense="probability", children=[0])
    eio.write(model, tmp_path / "m.uai")
    back = eio.read(tmp_path / "m.uai")
    assert back.factors[0].scope == (1, 0)
    np.testing.assert_array_equal(back.factors[0].values, values.T)


def test_ergo(tmp_path):
    model = read(tmp_path, ERGO, "m.erg")
    assert model.children == (0, 1)
    assert [f.scope for f in model.factors] == [(1, 0), (1,)]
    np.testing.assert_array_equal(model.factors[0].values, [[0.1, 0.9], [0.2, 0.8], [0.3, 0.7]])
    named = read(tmp_path, ERGO + NAMES, "m.erg")
    assert [v.name for v in named.variables] == ["rain", "wind"]
    assert named.variables[1].states == ("calm", "windy", "storm")
    for bad in (
        ERGO + " rain",
        ERGO.replace("\n0 /*", "\n1 0 /*"),
        ERGO + NAMES + " more",
        ERGO.replace("1 1\n", "1 0\n"),
        ERGO + " /* x",
    ):
        with pytest.raises(FormatError):
            read(tmp_path, bad, "m.erg")


@pytest.mark.parametrize("kind", ["markov", "Markov", "bayes", "Bayes"])
def test_the_kind_may_be_in_any_case(tmp_path, kind):
    (tmp_path / "m.uai").write_text(f"{kind}\n1 2 1 1 0 2 0.25 0.75\n")
    model = eio.read(tmp_path / "m.uai")
    assert (model.children is None) == (kind.lower() == "markov")
    assert model.factors[0].values.tolist() == [0.25, 0.75]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("MARKOV", "MARK", "1: expected MARKOV or BAYES, found 'MARK'"),
        ("MARKOV", "BAYES", "7: expected a child variable"),
        ("\n3\n2 2 3", "\n-3\n2 2 3", "2: expected a number of variables, found -3"),
        ("\n3\n2 2 3", "\n1000000000000\n2 2 3", "bytes follow"),
        ("2 2 3", "2 0 3", "domain size from 1"),
        ("2 2 3", "2 99999999999 3", "domain size from 1"),
        ("2 2 3", "2 2000000000 3", "bytes follow"),
        ("2 2 3", "2 2.0 3", "3: expected a domain size, found '2.0'"),
        ("2 0 1", "2 0 3", "5: expected a variable's index from 0 to 2, found '3'"),
        ("2 0 1", "2 0 0", "5: expected distinct variables"),
        ("2 0 1", "9 0 1", "number of variables from 0 to 3"),
        ("4\n 4.0", "5\n 4.0", "8: expected 4 entries in table 0, found '5'"),
        ("2.4", "nan", "9: expected a non-negative number, found 'nan'"),
        ("2.4", "-2.4", "9: expected a non-negative number, found '-2.4'"),
        ("2.4", "1e999", "range of a double"),
        ("2.4", "1e-999", "range of a double"),
        ("1 0.5", "1 0.5 7", "12: expected the end of the file, found '7'"),
        ("1 0.5", "1", "the file ends here"),
    ],
)
def test_malformed(tmp_path, old, new, problem):
    assert old in MARKOV
    with pytest.raises(FormatError) as caught:
        read(tmp_path, MARKOV.replace(old, new, 1))
    assert problem in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "m.uai"))


def test_what_the_writers_refuse(tmp_path):
    wide = elimina.Table(range(30), [1.0], sizes=[2] * 30, rows=[[0] * 30], default=0.5)
    model = elimina.Model([elimina.Variable(f"x{i}", 2) for i in range(30)], [wide], sense="probability")
    with pytest.raises(InputError, match="full tables"):
        eio.write(model, tmp_path / "m.uai")
    with pytest.raises(InputError, match="one conditional distribution for each variable"):
        eio.write(model, tmp_path / "m.erg")
    with pytest.raises(InputError, match="one conditional distribution for each variable"):
        eio.write(model, tmp_path / "m.bif")


@pytest.mark.parametrize(("rows", "kind"), [("0.436 0.564", "BAYES"), ("0.436 0.0", "MARKOV")])
def test_rows_that_are_no_distributions_are_written_as_a_product_of_tables(tmp_path, rows, kind):
    model = read(tmp_path, BAYES.replace("0.436 0.564", rows))
    eio.write(model, tmp_path / "out.uai")
    assert (tmp_path / "out.uai").read_text().startswith(kind)
    assert eio.read(tmp_path / "out.uai").score([1, 0]) == model.score([1, 0])
