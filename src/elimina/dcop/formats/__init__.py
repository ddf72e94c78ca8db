"""Reading and writing of distributed problems: a module for each format, chosen by the file's suffix."""

from __future__ import annotations

import logging
import os
from importlib import import_module
from pathlib import Path

from elimina import arguments
from elimina.dcop.problem import Problem
from elimina.errors import InputError, source_text
from elimina.io.codecs import Codec
from elimina.io.files import save, suffix_of
from elimina.io.formats import by_suffix
from elimina.io.parsing import parse_file
from elimina.running.garbage_collection import without_collection

__all__ = ["FORMATS", "read", "write"]

FORMATS = by_suffix("distributed problem")
"""Formats of distributed problems by their suffixes."""


def _codec_of(path: Path, name: str | None) -> Codec[Problem]:
    suffix = suffix_of(path) if name is None else name
    if suffix not in FORMATS:
        label, culprit = (
            (f"suffix {suffix and '.' + suffix!r}", f"{source_text(path)}: ")
            if name is None
            else (f"format {name!r}", "")
        )
        raise InputError(f"{culprit}unknown {label} of a distributed problem; name one of {', '.join(FORMATS)}")
    codec: Codec[Problem] = import_module(f"elimina.dcop.formats.{FORMATS[suffix].name}").CODEC
    return codec


@arguments.with_checked_keywords()
def read(path: str | os.PathLike[str], *, format: str | None = None) -> Problem:
    """Read a distributed problem: pyDCOP's YAML, FRODO's XCSP 2.1 and XDisCSP 1.0 (.xml), or JSON.

    Args:
        path: The file; its suffix (that of one of ``FORMATS``, then perhaps .gz or .xz) names the format.
        format: One of ``FORMATS``, instead of the suffix; .gz and .xz are still recognised.

    Raises:
        FormatError: The file is malformed; it names the file and, where they are known, line and column.
        UnsupportedError: The file uses a feature that elimina does not handle.
        MemoryLimitError: The table of a function that is given by an expression is too large.
        InputError: The format is unknown, the file cannot be read, or a package for it is not installed.

    Examples:
        >>> from elimina import dcop
        >>> problem = dcop.read("examples/meetings.yaml")
        >>> len(problem.agents), len(problem.model.variables)
        (4, 5)
    """
    path = arguments.file("path", path)
    codec = _codec_of(path, format)
    with without_collection():
        return parse_file(path, codec.open_text, codec.parse)


@arguments.with_checked_keywords()
def write(problem: Problem, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Write a distributed problem; the file appears only once it is complete.

    YAML files keep everything but an upper bound on the total cost. XML files keep the bound, but not the agents'
    capacities. JSON files keep neither. In YAML and JSON files, a constant cost becomes a function of the first
    variable. A warning is logged about content that is lost.

    Args:
        problem: Problem to write.
        path: The file; its suffix names the format and the compression, as in ``read``.
        format: One of ``FORMATS``, instead of the suffix.

    Raises:
        TypeError: ``problem`` is something else.
        InputError: The format cannot hold the problem, is unknown, or the file cannot be written.

    Examples:
        >>> from elimina import dcop
        >>> problem = dcop.read("examples/meetings.yaml")
        >>> dcop.write(problem, "meetings.json")
        >>> len(dcop.read("meetings.json").agents)
        4
    """
    if not isinstance(problem, Problem):
        raise arguments.wrong_type("problem", problem, "an elimina.dcop.Problem (Problem.from_model makes one)")
    path = arguments.file("path", path)
    codec = _codec_of(path, format)
    assert codec.render is not None
    save(path, codec.render(problem))
    _report_losses(problem, path, codec)


def _report_losses(problem: Problem, path: Path, codec: Codec[Problem]) -> None:
    """Warn about content that a file cannot hold."""
    logger, agents = logging.getLogger("elimina"), problem.agents
    if problem.model.upper_bound is not None and "upper bound" not in codec.holds:
        logger.warning("%s lacks the upper bound %s: the format has no place for it", path, problem.model.upper_bound)
    if any(agent.capacity is not None for agent in agents) and "capacities" not in codec.holds:
        logger.warning("%s lacks the agents' capacities: the format has no place for them", path)
