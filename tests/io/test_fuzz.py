"""Damaged files: truncated at every byte, mutated, random. Nothing but the documented errors may come out.

A file cut before its last token must be refused. Cut inside its last token, what is left may happen to be a shorter
number or word (UAI, ERGO, WCSP, evidence: nothing marks their end); the others end in a mark, so no cut is accepted.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import elimina
import elimina.io as eio
from elimina.errors import FormatError, InputError, UnsupportedError
from elimina.io.posteriors import read_marginals
from tests.io.test_bif import NET
from tests.io.test_cfn import RELAXED, STRICT
from tests.io.test_diagrams import BIFXML as DECISIONS
from tests.io.test_diagrams import XDSL as GENIE_DECISIONS
from tests.io.test_net import NET as HUGIN
from tests.io.test_uai import BAYES, ERGO, MARKOV
from tests.io.test_wcsp import SMALL
from tests.io.test_xdsl import XDSL
from tests.io.test_xmlbif import XMLBIF

KEYWORDS = """k 4 3 9 100
3 2 3 2
2 0 1 -1 >= 0 1
2 0 1 -1 disj 1 2 9
2 0 2 -1 sdisj 1 1 2 2 3 4
4 0 1 2 3 -1 salldiff var 3
3 0 1 2 -1 sgcc wdec 1 2 0 0 1 3 4 1 0 2 5 6
2 1 3 -1 knapsack 1 2 3
4 0 1 2 3 -1 wregular 2 1 0 3 2 0 4 1 5 3 0 0 0 10 0 1 1 20 1 1 1 30
4 0 1 2 3 -1 wsum lin 7 == 3
4 0 1 2 3 -1 ssame 7 2 2 0 1 2 3
"""
GLOBALS = """{problem {n <9.00} variables {a [x y] b 2 c 3}
functions {f {scope [a b c] type wgcc params {metric lin cost 1.5 bounds [[0 0 1] [1 0 1]]}}
g {scope [a b] type wsum params {metric hard cost 3 comparator "==" to 1}}}}
"""
SOURCES = [
    ("m.uai", MARKOV),
    ("m.uai", BAYES),
    ("m.erg", ERGO),
    ("m.wcsp", SMALL),
    ("m.wcsp", KEYWORDS),
    ("m.cfn", STRICT),
    ("m.cfn", RELAXED),
    ("m.cfn", GLOBALS),
    ("m.bif", NET),
    ("m.xmlbif", XMLBIF),
    ("m.net", HUGIN),
    ("m.xdsl", XDSL),
    ("d.bifxml", DECISIONS),
    ("d.xdsl", GENIE_DECISIONS),
]
"""Names and contents of files; those named d hold influence diagrams."""

NUMBERS = [
    "-1",
    "0",
    "1",
    "2",
    "7",
    "1000000000000",
    "2147483648",
    "9223372036854775807",
    "9223372036854775808",
    "nan",
    "1e999",
]
fuzz = settings(max_examples=300, deadline=2000, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read(path):
    return (elimina.InfluenceDiagram.read if path.name.startswith("d.") else eio.read)(path, check=False)


def read_or_refuse(path, data):
    path.write_bytes(data)
    message = ""
    try:
        return read(path)
    except InputError as error:
        message = str(error)
    assert message.startswith(str(path))
    assert "\n" not in message
    return None


@pytest.mark.parametrize(("name", "source"), SOURCES)
def test_truncation(tmp_path, name, source):
    data = source.rstrip().encode()
    whole = read_or_refuse(tmp_path / name, data)
    assert whole is not None
    closed = {"cfn": b"}", "bif": b"}", "net": b"}", "xmlbif": b">", "bifxml": b">", "xdsl": b">"}.get(name[2:])
    last = data.rindex(closed) if closed else max(data.rfind(b" "), data.rfind(b"\n")) + 1
    for end in range(last + 1):
        (tmp_path / name).write_bytes(data[:end])
        with pytest.raises((FormatError, UnsupportedError)):
            read(tmp_path / name)


@fuzz
@given(data=st.data())
def test_mutated_tokens(tmp_path, data):
    name, source = data.draw(st.sampled_from(SOURCES))
    tokens = source.split(" ")
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(tokens) - 1))
        kind = data.draw(st.sampled_from(["number", "drop", "twice", "swap"]))
        if kind == "number":
            tokens[place] = data.draw(st.sampled_from(NUMBERS))
        elif kind == "drop":
            tokens[place] = ""
        elif kind == "twice":
            tokens[place] += " " + tokens[place]
        else:
            tokens[place] = data.draw(st.sampled_from(tokens))
    read_or_refuse(tmp_path / name, " ".join(tokens).encode())


@fuzz
@given(data=st.data())
def test_mutated_bytes(tmp_path, data):
    name, source = data.draw(st.sampled_from(SOURCES))
    raw = bytearray(source.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(raw) - 1))
        raw[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    read_or_refuse(tmp_path / name, bytes(raw))


@fuzz
@given(
    name=st.sampled_from(
        [
            "m.uai",
            "m.erg",
            "m.wcsp",
            "m.cfn",
            "m.bif",
            "m.xml",
            "m.net",
            "m.xdsl",
            "d.xml",
            "d.xdsl",
            "m.uai.gz",
            "m.cfn.xz",
        ]
    ),
    raw=st.binary(max_size=60),
)
def test_random_bytes(tmp_path, name, raw):
    read_or_refuse(tmp_path / name, raw)


@fuzz
@given(raw=st.binary(max_size=30) | st.text("0123 \n.-eMAR", max_size=20).map(lambda text: f"MAR {text}".encode()))
def test_random_marginals(tmp_path, raw):
    (tmp_path / "m.MAR").write_bytes(raw)
    try:
        marginals = read_marginals(tmp_path / "m.MAR")
    except FormatError:
        return
    assert all(m.ndim == 1 and m.size and (m >= 0).all() for m in marginals)


@fuzz
@given(raw=st.binary(max_size=30) | st.text("0123 \n-/*", max_size=20).map(str.encode))
def test_random_evidence(tmp_path, raw):
    model = elimina.Model.from_arrays([2, 3, 1], [])
    (tmp_path / "m.evid").write_bytes(raw)
    try:
        observed = eio.read_evidence(tmp_path / "m.evid", model)
    except InputError:
        return
    sizes = {variable.name: variable.size for variable in model.variables}
    assert all(0 <= x < sizes[name] for name, x in observed.items())
