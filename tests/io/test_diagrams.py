"""Files of influence diagrams against values written down by hand, and those that pyAgrum writes."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

import elimina
from elimina import FormatError, InfluenceDiagram, InputError, UnsupportedError
from tests.packages import installed
from tests.test_decisions import fill

BIFXML = """<?xml version="1.0"?>
<BIF VERSION="0.3">
<NETWORK>
<NAME>trip</NAME>
<VARIABLE TYPE="nature"><NAME>rain</NAME><OUTCOME>no</OUTCOME><OUTCOME>yes</OUTCOME></VARIABLE>
<VARIABLE TYPE="decision"><NAME>coat</NAME><OUTCOME>leave</OUTCOME><OUTCOME>take</OUTCOME></VARIABLE>
<VARIABLE TYPE="nature"><NAME>sky</NAME><OUTCOME>blue</OUTCOME><OUTCOME>grey</OUTCOME><OUTCOME>dark</OUTCOME></VARIABLE>
<VARIABLE TYPE="utility"><NAME>comfort</NAME><OUTCOME>0</OUTCOME></VARIABLE>
<VARIABLE TYPE="utility"><NAME>weight</NAME></VARIABLE>
<DEFINITION><FOR>comfort</FOR><GIVEN>rain</GIVEN><GIVEN>coat</GIVEN><TABLE>10 6
-3.5 7</TABLE></DEFINITION>
<DEFINITION><FOR>weight</FOR><GIVEN>coat</GIVEN><TABLE>0 -1</TABLE></DEFINITION>
<DEFINITION><FOR>rain</FOR><TABLE>0.7 0.3</TABLE></DEFINITION>
<DEFINITION><FOR>sky</FOR><GIVEN>rain</GIVEN><TABLE>0.6 0.3 0.1 0.1 0.3 0.6</TABLE></DEFINITION>
<DEFINITION><FOR>coat</FOR><GIVEN>sky</GIVEN></DEFINITION>
</NETWORK>
</BIF>
"""

XDSL = """<?xml version="1.0" encoding="UTF-8"?>
<smile version="1.0" id="trip">
<nodes>
<cpt id="rain"><state id="no"/><state id="yes"/><probabilities>0.7 0.3</probabilities></cpt>
<cpt id="sky"><state id="blue"/><state id="grey"/><state id="dark"/><parents>rain</parents>
<probabilities>0.6 0.3 0.1 0.1 0.3 0.6</probabilities></cpt>
<decision id="coat"><state id="leave"/><state id="take"/><parents>sky</parents></decision>
<utility id="comfort"><parents>rain coat</parents><utilities>10 6 -3.5 7</utilities></utility>
<utility id="weight"><parents>coat</parents><utilities>0 -1</utilities></utility>
<mau id="total"><parents>comfort weight</parents><weights>1 1</weights></mau>
</nodes>
</smile>
"""


def read(tmp_path, text, suffix):
    path = tmp_path / f"m.{suffix}"
    path.write_text(text)
    return InfluenceDiagram.read(path)


def expected_utility() -> float:
    """Return the maximum expected utility of the trip: for each sky, the better choice."""
    weights = np.array([[0.7], [0.3]]) * [[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]]
    return float((weights.T @ [[10, 5], [-3.5, 6]]).max(axis=1).sum())


@pytest.mark.parametrize(("text", "suffix"), [(BIFXML, "bifxml"), (BIFXML, "xml"), (XDSL, "xdsl")])
def test_values(tmp_path, text, suffix):
    diagram = read(tmp_path, text, suffix)
    assert diagram.name == "trip"
    assert diagram.decisions == {"coat": ["sky"]}
    assert [list(v.all_states) for v in diagram.variables if v.name == "sky"] == [["blue", "grey", "dark"]]
    names = [v.name for v in diagram.variables]
    comfort = diagram.utilities["comfort"]
    assert [names[v] for v in comfort.scope] == ["rain", "coat"]
    assert comfort.values.tolist() == [[10, 6], [-3.5, 7]]
    assert diagram.utilities["weight"].values.tolist() == [0, -1]
    assert diagram.no_forgetting == (suffix == "xdsl")
    assert diagram.solve().value == pytest.approx(expected_utility())


def test_compressed(tmp_path):
    (tmp_path / "m.bifxml.gz").write_bytes(gzip.compress(BIFXML.encode()))
    assert InfluenceDiagram.read(tmp_path / "m.bifxml.gz").solve().value == pytest.approx(expected_utility())


@pytest.mark.parametrize(
    ("sums", "total"),
    [
        ("", "comfort + weight"),
        ('<mau id="total"><parents>comfort weight</parents><weights>2 -1</weights></mau>', "2 comfort - weight"),
        ('<mau id="total"><parents>comfort</parents><weights>1</weights></mau>', "comfort + weight"),
        (
            '<mau id="a"><parents>b weight</parents><weights>2 1</weights></mau>'
            '<mau id="b"><parents>comfort weight</parents><weights>1 3</weights></mau>',
            "2 comfort + 7 weight",
        ),
    ],
)
def test_sums_of_utilities(tmp_path, sums, total):
    start, end = XDSL.index("<mau"), XDSL.index("</nodes>")
    diagram = read(tmp_path, XDSL[:start] + sums + XDSL[end:], "xdsl")
    weights = {"comfort + weight": (1, 1), "2 comfort - weight": (2, -1), "2 comfort + 7 weight": (2, 7)}[total]
    assert diagram.utilities["comfort"].values.tolist() == (weights[0] * np.array([[10, 6], [-3.5, 7]])).tolist()
    assert diagram.utilities["weight"].values.tolist() == [0, -weights[1]]


def test_decisions_of_genie_forget_nothing(tmp_path):
    later = '<decision id="later"><state id="a"/><state id="b"/><parents>coat</parents></decision></nodes>'
    assert read(tmp_path, XDSL.replace("</nodes>", later), "xdsl").decisions["later"] == ["sky", "coat"]
    with pytest.raises(FormatError, match=r"m\.xdsl: decisions without forgetting need an order, and neither"):
        read(tmp_path, XDSL.replace("</nodes>", later.replace("coat", "rain")), "xdsl")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("10 6\n-3.5 7", "10 6\n-3.5 x", ":11: expected a value of 'comfort', found 'x'"),
        ("10 6\n-3.5 7", "10 6 7", ":10: expected 4 values of 'comfort', found 3"),
        ("<GIVEN>sky</GIVEN>", "<GIVEN>weight</GIVEN>", ":15: expected a variable, found the utility 'weight'"),
        ("<GIVEN>sky</GIVEN>", "<GIVEN>wind</GIVEN>", ":15: expected a variable declared before, found 'wind'"),
        ('TYPE="utility"><NAME>weight', 'TYPE="utility"><NAME>comfort', ":9: a second utility is named 'comfort'"),
        ("<FOR>weight</FOR>", "<FOR>comfort</FOR>", ":12: utility 'comfort' has a second table"),
        ("<FOR>weight</FOR><GIVEN>coat</GIVEN>", "<FOR>weight</FOR><GIVEN>coat</GIVEN><GIVEN>coat</GIVEN>", ":12: "),
        ('TYPE="decision"', 'TYPE="nature"', ":15: expected one <TABLE> in the definition of 'coat', found none"),
        ("<DEFINITION><FOR>rain</FOR><TABLE>0.7 0.3</TABLE></DEFINITION>", "", "variable 'rain' has no distribution"),
        ("<TABLE>0.7 0.3</TABLE>", "<TABLE>0.7 0.4</TABLE>", "sum"),
        ("<FOR>rain</FOR>", "<FOR>rain</FOR><GIVEN>coat</GIVEN>", ":13: expected 4 probabilities of 'rain', found 2"),
        ('TYPE="decision"', 'TYPE="policy"', ":6: expected TYPE='nature', 'decision' or 'utility' of 'coat'"),
    ],
)
def test_errors_of_bifxml(tmp_path, old, new, problem):
    assert BIFXML.count(old) == 1
    with pytest.raises(FormatError) as caught:
        read(tmp_path, BIFXML.replace(old, new), "bifxml")
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("10 6 -3.5 7", "10 6 -3.5", ":8: expected 4 values of 'comfort', found 3"),
        ("<parents>comfort weight<", "<parents>comfort total<", ":10: node 'total' is a part of its own sum"),
        ("<parents>comfort weight<", "<parents>weight weight<", ":10: node 'total' repeats a parent"),
        ("<parents>comfort weight<", "<parents>comfort sky<", "expected a utility or a <mau> node, found 'sky'"),
        ("<weights>1 1<", "<weights>1<", ":10: expected 2 values of 'total', found 1"),
        ("<parents>sky</parents></decision>", "<parents>weight</parents></decision>", "found the utility 'weight'"),
        ('<decision id="coat">', '<decision id="rain">', "a second variable is named 'rain'"),
    ],
)
def test_errors_of_xdsl(tmp_path, old, new, problem):
    assert XDSL.count(old) == 1
    with pytest.raises(FormatError) as caught:
        read(tmp_path, XDSL.replace(old, new), "xdsl")
    assert problem in str(caught.value)


def test_other_functions_of_utilities_are_refused(tmp_path):
    text = XDSL.replace("<weights>1 1</weights>", "<expression>comfort * weight</expression>")
    with pytest.raises(UnsupportedError, match=r"m\.xdsl:10: node 'total' has a <expression>, which is not handled"):
        read(tmp_path, text, "xdsl")


def test_networks_and_diagrams_are_told_apart(tmp_path):
    for text, suffix in ((BIFXML, "bifxml"), (XDSL, "xdsl")):
        read(tmp_path, text, suffix)
        with pytest.raises(UnsupportedError, match=r"'coat' is a decision node, of an influence diagram: read it by"):
            elimina.read(tmp_path / f"m.{suffix}")
    network = elimina.Model.from_cpds({"a": [0.5, 0.5]})
    elimina.write(network, tmp_path / "n.bifxml")
    with pytest.raises(FormatError, match="expected a decision, but the file has none: it is a network"):
        InfluenceDiagram.read(tmp_path / "n.bifxml")
    with pytest.raises(InputError, match=r"unknown suffix '\.net' of an influence diagram; name one of xmlbif, bifxml"):
        InfluenceDiagram.read("m.net")
    with pytest.raises(InputError, match=r"gone\.bifxml"):
        InfluenceDiagram.read(tmp_path / "gone.bifxml")


@pytest.fixture
def peer():
    gum = installed("pyagrum")
    diagram = gum.InfluenceDiagram()
    diagram.addChanceNode(gum.LabelizedVariable("rain", "", ["no", "yes"]))
    diagram.addDecisionNode(gum.RangeVariable("coat", "", 1, 2))
    diagram.addChanceNode(gum.LabelizedVariable("sky", "", ["blue", "grey", "dark"]))
    diagram.addUtilityNode(gum.LabelizedVariable("comfort", "", 1))
    for arc in (("rain", "sky"), ("sky", "coat"), ("rain", "comfort"), ("coat", "comfort")):
        diagram.addArc(*arc)
    diagram.cpt("rain").fillWith([0.7, 0.3])
    fill(diagram.cpt("sky"), ["rain", "sky"], np.array([[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]]))
    fill(diagram.utility("comfort"), ["rain", "coat", "comfort"], np.array([[10, 5], [-3.5, 6]])[..., None])
    return diagram


def test_files_and_objects_of_pyagrum(tmp_path, peer):
    peer.saveBIFXML(str(tmp_path / "p.bifxml"))
    for diagram in (InfluenceDiagram.from_pyagrum(peer), InfluenceDiagram.read(tmp_path / "p.bifxml")):
        assert diagram.decisions == {"coat": ["sky"]}
        assert diagram.solve().value == pytest.approx(expected_utility())
    assert InfluenceDiagram.from_pyagrum(peer).solve(policies={"coat": 2}).value == pytest.approx(0.7 * 5 + 0.3 * 6)


def test_other_objects():
    with pytest.raises(InputError, match="expected an InfluenceDiagram of pyAgrum, got an object of type int"):
        InfluenceDiagram.from_pyagrum(3)
