"""XMLBIF files against values written down by hand."""

from __future__ import annotations

import numpy as np
import pytest

import elimina
import elimina.io as eio
from elimina.errors import FormatError, InputError, UnsupportedError
from tests.io.models import random_network

XMLBIF = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE BIF [
  <!ELEMENT BIF ( NETWORK )*>
  <!ATTLIST BIF VERSION CDATA #REQUIRED>
]>
<BIF VERSION="0.3">
<NETWORK>
<NAME>my &lt;net&gt;</NAME>
<PROPERTY>author = me</PROPERTY>
<DEFINITION> <!-- before the variables -->
  <FOR>wet grass</FOR>
  <GIVEN>rain</GIVEN>
  <GIVEN>c</GIVEN>
  <TABLE>
    .5 .25 .25 <!-- yes,
    only -->
    0.3 0.3 0.4000001
  </TABLE>
</DEFINITION>
<VARIABLE TYPE="nature">
  <NAME>rain</NAME>
  <OUTCOME>yes</OUTCOME>
  <OUTCOME>no</OUTCOME>
</VARIABLE>
<VARIABLE>
  <NAME>
    wet grass
  </NAME>
  <OUTCOME>1</OUTCOME> <OUTCOME>0</OUTCOME> <OUTCOME xml:space="preserve"> very &amp; wet</OUTCOME>
  <PROPERTY>position = (1, 2)</PROPERTY>
</VARIABLE>
<VARIABLE TYPE="nature"> <NAME>c</NAME> <OUTCOME>only</OUTCOME> </VARIABLE>
<DEFINITION> <FOR>rain</FOR> <TABLE>0.2 8e-1</TABLE> </DEFINITION>
<DEFINITION> <FOR>c</FOR> <GIVEN>rain</GIVEN> <TABLE>1 0.5</TABLE> </DEFINITION>
</NETWORK>
</BIF>
"""


def read(tmp_path, text, name="m.xmlbif"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return eio.read(path, check=False)


def test_network(tmp_path):
    model = read(tmp_path, XMLBIF)
    assert model.name == "my <net>"
    assert [v.name for v in model.variables] == ["rain", "wet grass", "c"]
    assert model.variables[1].states == ("1", "0", " very & wet")
    assert model.children == (1, 0, 2)
    assert [f.scope for f in model.factors] == [(0, 2, 1), (0,), (0, 2)]
    np.testing.assert_array_equal(model.factors[0].values, [[[0.5, 0.25, 0.25]], [[0.3, 0.3, 0.4000001]]])
    np.testing.assert_array_equal(model.factors[1].values, [0.2, 0.8])
    np.testing.assert_array_equal(model.factors[2].values, [[1.0], [0.5]])


@pytest.mark.parametrize("name", ["m.bifxml", "m.xml", "M.XML"])
def test_other_suffixes(tmp_path, name):
    assert len(read(tmp_path, XMLBIF, name).variables) == 3


def test_encodings(tmp_path):
    text = XMLBIF.replace("rain", "pluie d'été")
    for encoding in ("ISO-8859-1", "UTF-16", "windows-1252"):
        model = read(tmp_path, text.replace("UTF-8", encoding).encode(encoding))
        assert model.variables[0].name == "pluie d'été"


BOMB = '<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">'


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("<BIF VERSION", "<XBIF VERSION", ":36: expected well-formed XML: mismatched tag"),
        ('encoding="UTF-8"', 'encoding="klingon"', "expected XML in a known encoding: "),
        ("<!ELEMENT BIF ( NETWORK )*>", BOMB, ":3: expected no entities besides XML's own, found 'a'"),
        ("<!ELEMENT BIF ( NETWORK )*>", '<!ENTITY % p SYSTEM "x">', ":3: expected no entities besides"),
        ("my &lt;net&gt;", "&nbsp;", ":8: expected well-formed XML: undefined entity"),
        ("<NETWORK>", "<NETWORK/><NETWORK>", ":7: expected one <NETWORK> in <BIF>, found 2"),
        ("<PROPERTY>author = me</PROPERTY>", "<UTILITY/>", ":9: expected <VARIABLE> or <DEFINITION>, found <UTILITY>"),
        ("<NAME>rain</NAME>", "", ":20: expected one <NAME> in <VARIABLE>, found none"),
        ("<NAME>rain</NAME>", "<NAME>c</NAME>", ":32: a second variable is named 'c'"),
        (
            '<VARIABLE TYPE="nature">\n',
            '<VARIABLE TYPE="odd">\n',
            ":21: expected TYPE='nature', 'decision' or 'utility' of 'rain'",
        ),
        ("<OUTCOME>yes</OUTCOME>", "", ":14: expected 3 probabilities of 'wet grass', found 6"),
        ("<OUTCOME>only</OUTCOME>", "", "variable 'c' has no values"),
        ("<OUTCOME>yes</OUTCOME>", "<OUTCOME>no</OUTCOME>", "has the state 'no' twice"),
        ("<OUTCOME>yes</OUTCOME>", "<VALUE>yes</VALUE>", ":22: expected <OUTCOME> in variable 'rain', found <VALUE>"),
        ("<GIVEN>c</GIVEN>", "<GIVEN>d</GIVEN>", ":13: expected a variable declared before, found 'd'"),
        ("<GIVEN>c</GIVEN>", "<GIVEN>rain</GIVEN>", "the head of the distribution of 'wet grass' repeats a variable"),
        ("<GIVEN>c</GIVEN>", "<WITH>c</WITH>", ":13: expected <GIVEN> or <TABLE> in the definition of 'wet grass'"),
        ("<GIVEN>c</GIVEN>", "<GIVEN>wet grass</GIVEN>", "the head of the distribution of 'wet grass' repeats"),
        ("<FOR>c</FOR>", "<FOR>rain</FOR>", "variable 'rain' has a second distribution"),
        ("<FOR>c</FOR>", "", "expected one <FOR> in <DEFINITION>, found none"),
        ("<TABLE>0.2 8e-1</TABLE>", "", "expected one <TABLE> in the definition of 'rain', found none"),
        ("<TABLE>0.2 8e-1</TABLE>", "<TABLE>0.2</TABLE>", ":33: expected 2 probabilities of 'rain', found 1"),
        ("0.2 8e-1", "0.2 0.8 0", ":33: expected 2 probabilities of 'rain', found 3"),
        ("0.2 8e-1", "0.2 -0.8", ":33: expected a non-negative probability of 'rain', found -0.8"),
        ("0.2 8e-1", "0.2 nan", ":33: expected a probability of 'rain', found 'nan'"),
        ("0.2 8e-1", "0.2 inf", ":33: expected a probability of 'rain', found 'inf'"),
        ("0.4000001", "x", ":17: expected a probability of 'wet grass', found 'x'"),
        ("0.4000001", "-4", ":17: expected a non-negative probability of 'wet grass', found -4.0"),
        ("<FOR>rain</FOR> <TABLE>0.2 8e-1", "<FOR>rain</FOR> <GIVEN>c</GIVEN> <TABLE>0.2 8e-1", "a cycle of parents: "),
        ("<DEFINITION> <FOR>rain</FOR> <TABLE>0.2 8e-1</TABLE> </DEFINITION>", "", "variable 'rain' has no distrib"),
    ],
)
def test_malformed(tmp_path, old, new, problem):
    assert old in XMLBIF
    text = XMLBIF.replace(old, new, 1)
    with pytest.raises(FormatError) as caught:
        read(tmp_path, text)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_entity_bomb_is_refused_before_it_grows(tmp_path):
    lines = ['<!ENTITY e0 "aaaaaaaaaa">'] + [f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 12)]
    text = f"<!DOCTYPE BIF [{''.join(lines)}]><BIF><NETWORK><NAME>&e11;</NAME></NETWORK></BIF>"
    with pytest.raises(FormatError, match="expected no entities"):
        read(tmp_path, text)
    default = f"<!DOCTYPE BIF [<!ATTLIST X a CDATA '{'a' * 10000}'>]><BIF>{'<X/>' * 100000}</BIF>"
    with pytest.raises(FormatError, match="expected one <NETWORK> in <BIF>, found none"):
        read(tmp_path, default)
    with pytest.raises(FormatError, match="expected one <NETWORK>"):
        read(tmp_path, f"<BIF>{'<a>' * 50000}{'</a>' * 50000}</BIF>")


def test_nodes_that_are_no_chance_nodes(tmp_path):
    with pytest.raises(UnsupportedError, match=r"m.xmlbif:21: node 'rain' is a utility node"):
        read(tmp_path, XMLBIF.replace('TYPE="nature"', 'TYPE="utility"', 1))
    with pytest.raises(UnsupportedError, match="several FOR"):
        read(tmp_path, XMLBIF.replace("<GIVEN>c", "<FOR>c").replace("c</GIVEN>", "c</FOR>"))


def test_a_distribution_too_large_to_be_kept(tmp_path):
    outcomes = "".join(f"<OUTCOME>{x}</OUTCOME>" for x in range(10))
    variables = "".join(f"<VARIABLE><NAME>v{i}</NAME>{outcomes}</VARIABLE>" for i in range(9))
    given = "".join(f"<GIVEN>v{i}</GIVEN>" for i in range(1, 9))
    text = f"<BIF><NETWORK>{variables}<DEFINITION><FOR>v0</FOR>{given}<TABLE>1</TABLE></DEFINITION></NETWORK></BIF>"
    with pytest.raises(UnsupportedError, match="1000000000 entries"):
        read(tmp_path, text)


@pytest.mark.parametrize("suffix", ["bif", "xmlbif", "erg"])
def test_what_is_no_network_is_not_written(tmp_path, suffix):
    table = elimina.Table([0, 1], [[0.5, 0.5], [0.5, 0.5]])
    two = [elimina.Variable("a", 2), elimina.Variable("b", 2)]
    for children in (None, [1]):
        model = elimina.Model(two, [table], sense="probability", children=children)
        with pytest.raises(InputError, match="one conditional distribution for each variable, without cycles"):
            eio.write(model, tmp_path / f"m.{suffix}")
    assert not list(tmp_path.iterdir())


def test_names_that_cannot_be_written(tmp_path):
    one = elimina.Table([0], [1.0])
    for name, suffix in (("a\x00b", "xmlbif"), ("a\x0bb", "xmlbif"), ("a\ud800", "xmlbif"), ("a\ud800", "bif")):
        model = elimina.Model([elimina.Variable(name, 1)], [one], sense="probability", children=[0])
        with pytest.raises(InputError, match="cannot"):
            eio.write(model, tmp_path / f"m.{suffix}")
    with pytest.raises(InputError, match="at least one variable"):
        eio.write(elimina.Model([], [], sense="probability", children=[]), tmp_path / "m.xmlbif")


def test_formats_that_are_only_read(tmp_path):
    for suffix in ("net", "xdsl"):
        with pytest.raises(InputError, match=rf"'\.{suffix}' is only read, not written; name one of uai, .*xml "):
            eio.write(random_network(1, 3), tmp_path / f"m.{suffix}")
