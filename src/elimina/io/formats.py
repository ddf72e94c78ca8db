"""Formats of all files in one table: their suffixes and contents, and the marks that tell formats of one suffix apart.

For models, the module of ``elimina.io`` with the format's name has a ``CODEC``, and ``DIAGRAMS`` for influence
diagrams. For distributed problems, the module of ``elimina.dcop.formats`` has it. ``elimina.cp`` reads constraint
models and tours.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

from elimina.io.files import suffix_of
from elimina.io.parsing import parse_file
from elimina.io.xml_roots import root_of
from elimina.option_names import by_interface

if TYPE_CHECKING:
    from pathlib import Path

Content = Literal["model", "constraints", "distributed problem", "tour", "MiniZinc", "evidence"]


def _uses() -> dict[Content, str]:
    """Return, for each kind of content, the calls or commands that read it; errors of other calls suggest them."""
    return {
        "model": "graphical models are for " + by_interface("elimina.read", "'elimina solve'"),
        "constraints": "constraint models are for "
        + by_interface("elimina.cp.read", "'elimina cp' and 'elimina solve'"),
        "distributed problem": "distributed problems are for "
        + by_interface("elimina.dcop.read", "'elimina dcop' and 'elimina convert'"),
        "tour": "tours are for " + by_interface("elimina.cp.read_tsp", "'elimina tsp'"),
        "MiniZinc": "MiniZinc is for 'minizinc --solver elimina', after 'elimina install-minizinc'",
        "evidence": by_interface(
            "evidence is for elimina.read_evidence", "a file of evidence goes beside one: --evidence FILE"
        ),
    }


class Format(NamedTuple):
    """A format of files.

    Attributes:
        name: Name of the format.
        suffixes: Suffixes of its files.
        content: Content of its files.
        is_written: True if elimina also writes the format.
        mark: Function that recognises the format by a file's content, among formats with the same suffix. None for the
            format of files that no other format's mark recognises.
        shared_suffixes: Further suffixes, shared with other formats and told apart by the mark; not written.
        holds_diagrams: True if its files may hold influence diagrams.
    """

    name: str
    suffixes: tuple[str, ...]
    content: Content
    is_written: bool = False
    mark: Callable[[bytes], bool] | None = None
    shared_suffixes: tuple[str, ...] = ()
    holds_diagrams: bool = False

    @property
    def use(self) -> str:
        """Calls and commands for its files."""
        return _uses()[self.content]


_CFN_START = re.compile(rb'(?:\s|#[^\n]*|//[^\n]*)*\{\s*"?problem"?[\s:]*[{\[]')


def _is_cfn(data: bytes) -> bool:
    # In JSON, the key "problem" need not come first. Files with functions but no agents are cost function networks.
    return _CFN_START.match(data) is not None or (b'"functions"' in data and b'"agents"' not in data)


def _is_xmlbif(data: bytes) -> bool:
    return root_of(data).tag == "BIF"


def _is_xcsp3(data: bytes) -> bool:
    return root_of(data).attributes.get("format") == "XCSP3"


def _is_xcsp(data: bytes) -> bool:
    return root_of(data).tag == "instance" and not _is_xcsp3(data)


FORMATS = (
    Format("uai", ("uai",), "model", is_written=True),
    Format("ergo", ("erg",), "model", is_written=True),
    Format("wcsp", ("wcsp",), "model", is_written=True),
    Format("cfn", ("cfn",), "model", is_written=True, mark=_is_cfn, shared_suffixes=("json",)),
    Format("bif", ("bif",), "model", is_written=True),
    Format("xmlbif", ("xmlbif", "bifxml", "xml"), "model", is_written=True, mark=_is_xmlbif, holds_diagrams=True),
    Format("net", ("net",), "model"),
    Format("xdsl", ("xdsl",), "model", holds_diagrams=True),
    Format("cnf", ("cnf",), "model"),
    Format("wcnf", ("wcnf",), "model"),
    Format("qpbo", ("qpbo",), "model"),
    Format("lg", ("lg",), "model"),
    Format("flatzinc", ("fzn",), "constraints"),
    Format("opb", ("opb",), "constraints"),
    Format("xcsp3", ("xml",), "constraints", mark=_is_xcsp3),
    Format("tsplib", ("tsp",), "tour"),
    Format("pydcop", ("yaml", "yml"), "distributed problem", is_written=True),
    Format("xcsp", ("xml",), "distributed problem", is_written=True, mark=_is_xcsp),
    Format("agentjson", ("json",), "distributed problem", is_written=True),
    Format("minizinc", ("mzn",), "MiniZinc"),
    Format("uai_evidence", ("evid",), "evidence"),
)
"""All formats."""


def by_suffix(*contents: Content, writing: bool = False) -> dict[str, Format]:
    """Return the formats of some contents by their suffixes, in the order of the table.

    Args:
        contents: Contents of the files.
        writing: True to leave out formats that are only read.
    """
    return {
        suffix: form
        for content in contents
        for form in FORMATS
        if form.content == content and (form.is_written or not writing)
        for suffix in form.suffixes
    }


def format_of(path: Path) -> Format | None:
    """Return the format of a file by its suffix, and by its content where several formats have the suffix.

    Returns:
        The only format with the suffix. Of several, the one whose mark the content has; otherwise the one without a
        mark, or else the first one of the table. None if the suffix is unknown.

    Raises:
        FormatError: The content is needed, and the compressed data are damaged.
        InputError: The content is needed, and cannot be read.
    """
    suffix = suffix_of(path)
    candidates = [form for form in FORMATS if suffix in (*form.suffixes, *form.shared_suffixes)]
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    marked = marked_format(suffix, parse_file(path, bytes, bytes))
    return marked or next((form for form in candidates if form.mark is None), candidates[0])


def marked_format(suffix: str, data: bytes) -> Format | None:
    """Return the format with this suffix that recognises its mark in the content; None if there is none."""
    return next(
        (
            form
            for form in FORMATS
            if suffix in (*form.suffixes, *form.shared_suffixes) and form.mark is not None and form.mark(data)
        ),
        None,
    )
