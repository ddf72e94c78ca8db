"""XDSL files against values written down by hand."""

from __future__ import annotations

import numpy as np
import pytest

import elimina
import elimina.io as eio
from elimina.errors import FormatError, InputError, UnsupportedError

XDSL = """<?xml version="1.0" encoding="ISO-8859-1"?>
<smile version="1.0" id="weather" numsamples="1000">
  <nodes>
    <cpt id="wet">
      <state id="1" />
      <state id="0" />
      <state id="very &lt; wet" />
      <parents>rain
               c</parents>
      <probabilities>.5 .25 .25
                     0.3 0.3 0.4000001</probabilities>
    </cpt>
    <cpt id="rain">
      <state id="yes" />
      <state id="no" />
      <property id="note">x</property>
      <probabilities>0.2 8e-1</probabilities>
    </cpt>
    <cpt id="c"> <state id="only" /> <parents>rain</parents> <probabilities>1 .5</probabilities> </cpt>
  </nodes>
  <extensions>
    <genie version="1.0"> <submodel id="s"> <node id="rain"> <name>It rains</name> </node> </submodel> </genie>
  </extensions>
</smile>
"""


def read(tmp_path, text):
    path = tmp_path / "m.xdsl"
    path.write_text(text)
    return eio.read(path, check=False)


DETERMINISTIC = """<smile version="1.0" id="N"><nodes>
<cpt id="a"><state id="y"/><state id="n"/><probabilities>0.2 0.8</probabilities></cpt>
<cpt id="b"><state id="y"/><state id="n"/><probabilities>0.5 0.5</probabilities></cpt>
<deterministic id="c"><state id="lo"/><state id="mid"/><state id="hi"/><parents>a b</parents>
<resultingstates>hi mid mid lo</resultingstates></deterministic></nodes></smile>"""


def test_a_deterministic_node(tmp_path):
    (tmp_path / "m.xdsl").write_text(DETERMINISTIC)
    marginals = elimina.solve(tmp_path / "m.xdsl", "mar").marginals
    assert list(marginals["c"].values()) == pytest.approx([0.4, 0.5, 0.1])


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("hi mid mid lo", "hi mid mid", "m.xdsl:5: expected 4 resulting states of 'c', found 3"),
        ("hi mid mid lo", "hi mid mid 0", "m.xdsl:5: expected a state of 'c', found '0'"),
        ("deterministic", "noisymax", "m.xdsl:4: node 'c' is a <noisymax> node"),
        ("<parents>a b", "<strengths>1</strengths><parents>a b", "m.xdsl:4: node 'c' has a <strengths>, which is not"),
    ],
)
def test_what_a_deterministic_node_may_not_have(tmp_path, old, new, problem):
    (tmp_path / "m.xdsl").write_text(DETERMINISTIC.replace(old, new))
    with pytest.raises(InputError) as caught:
        elimina.read(tmp_path / "m.xdsl")
    assert problem in str(caught.value)


def test_network(tmp_path):
    model = read(tmp_path, XDSL)
    assert model.name == "weather"
    assert [v.name for v in model.variables] == ["wet", "rain", "c"]
    assert model.variables[0].states == ("1", "0", "very < wet")
    assert model.children == (0, 1, 2)
    assert [f.scope for f in model.factors] == [(1, 2, 0), (1,), (1, 2)]
    np.testing.assert_array_equal(model.factors[0].values, [[[0.5, 0.25, 0.25]], [[0.3, 0.3, 0.4000001]]])
    np.testing.assert_array_equal(model.factors[1].values, [0.2, 0.8])
    np.testing.assert_array_equal(model.factors[2].values, [[1.0], [0.5]])


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("<smile ", "<BIF ", ":24: expected well-formed XML: mismatched tag"),
        ("<nodes>", "<nodes/><nodes>", ":3: expected one <nodes> in <smile>, found 2"),
        ('id="wet"', "", ":4: expected an id of the <cpt>, found none"),
        ('<state id="0" />', "<state />", ":6: expected an id of the <state>, found none"),
        ('id="wet"', 'id="c"', ":19: a second variable is named 'c'"),
        ('<state id="only" />', "", ":19: variable 'c' has no values"),
        ('<state id="0" />', '<state id="1" />', "the state '1' twice"),
        ("<parents>rain<", "<parents>snow<", ":19: expected a variable declared before, found 'snow'"),
        ("<parents>rain<", "<parents>c<", "the head of the distribution of 'c' repeats a variable"),
        ("<probabilities>1 .5</probabilities>", "", ":19: expected one <probabilities> in node 'c', found none"),
        ("0.4000001", "", ":10: expected 6 probabilities of 'wet', found 5"),
        ("0.4000001", "inf", ":11: expected a probability of 'wet', found 'inf'"),
        ("0.4000001", "-0.4", ":11: expected a non-negative probability of 'wet', found -0.4"),
        ("<property id=", "<parents>c</parents><property id=", "a cycle of parents: 'rain' <- 'c' <- 'rain'"),
        ("<parents>rain<", "<parents>wet<", "expected 3 probabilities of 'c'"),
        (
            "<parents>rain</parents> <probabilities>1 .5",
            "<parents>wet</parents> <probabilities>1 .5 1",
            "a cycle of parents: 'wet' <- 'c' <- 'wet'",
        ),
    ],
)
def test_malformed(tmp_path, old, new, problem):
    assert old in XDSL
    with pytest.raises(FormatError) as caught:
        read(tmp_path, XDSL.replace(old, new, 1))
    assert problem in str(caught.value)


@pytest.mark.parametrize("kind", ["noisymax", "decision", "utility", "mau", "equation"])
def test_other_nodes(tmp_path, kind):
    with pytest.raises(UnsupportedError, match=rf"m\.xdsl:4: node 'wet' is a <?{kind}>? node"):
        read(tmp_path, XDSL.replace('<cpt id="wet"', f'<{kind} id="wet"').replace("</cpt>", f"</{kind}>", 1))


def test_dynamic_networks(tmp_path):
    with pytest.raises(UnsupportedError, match=r"m\.xdsl:20: the network is a dynamic one"):
        read(tmp_path, XDSL.replace("  </nodes>\n", "  </nodes><dynamic numslices='3'/>\n"))


def test_several_parents_in_files_of_pyagrum(tmp_path):
    """pyAgrum lets the first parent vary fastest, and so the table would be read with its axes swapped."""
    comment = "<!-- This network was created by pyAgrum 3.3.1 for any purpose you want -->\n<smile"
    with pytest.raises(FormatError, match=r"'wet' has several parents, which pyAgrum orders .*: save .* as \.bifxml"):
        read(tmp_path, XDSL.replace("<smile", comment, 1))
    single = XDSL.replace("<smile", comment, 1).replace("rain\n               c", "rain")
    assert [f.scope for f in read(tmp_path, single).factors] == [(1, 0), (1,), (1, 2)]
