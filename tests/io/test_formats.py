"""The table of formats: each row has its codec, and files of formats that share a suffix are told apart."""

from __future__ import annotations

from importlib import import_module

import pytest

from elimina.io.formats import FORMATS, format_of

PACKAGES = {"model": "elimina.io", "distributed problem": "elimina.dcop.formats"}


@pytest.mark.parametrize("form", [form for form in FORMATS if form.content in PACKAGES], ids=lambda form: form.name)
def test_each_format_has_a_codec(form):
    codec = import_module(f"{PACKAGES[form.content]}.{form.name}").CODEC
    assert (codec.render is not None) == form.is_written


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.uai", "", "uai"),
        ("a.WCSP.gz", "", "wcsp"),
        ("a.xml", "<BIF/>", "xmlbif"),
        ("a.xml", "<instance/>", "xcsp"),
        ("a.xml", "<instance format='XCSP3' type='CSP'/>", "xcsp3"),
        ("a.xml", "no element", "xmlbif"),
        ("a.json", '// toulbar2\n{"problem": {', "cfn"),
        ("a.json", '{"agents": {', "agentjson"),
        ("a.txt", "", None),
    ],
)
def test_a_file_is_recognised(tmp_path, name, text, expected):
    path = tmp_path / name
    if not name.endswith(".gz"):
        path.write_text(text)
    form = format_of(path)
    assert (None if form is None else form.name) == expected
