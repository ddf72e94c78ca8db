"""Evidence, hints, queries and orders: options give them as texts or files, which refer to a model's variables."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args

from elimina._core import TextError
from elimina.cli.standard_input import input_source
from elimina.errors import InputError, source_text
from elimina.io.evidence import NamedEvidence, merge, parse_assignments, parse_names
from elimina.io.evidence_files import read_evidence
from elimina.io.files import load
from elimina.model.model import Model
from elimina.model.states import StateIndex, integer_of
from elimina.number_texts import counted
from elimina.planning.option_table import OPTIONS
from elimina.planning.options import Options
from elimina.planning.order import Method, order_of_text, read_order

_PARQUET_MAGIC = b"PAR1"
"""First bytes of a Parquet file."""


def cases_source(source: str, what: str) -> str:
    """Return the name under which a table of cases is read: standard input holds CSV or Parquet.

    Args:
        source: File, or ``-``.
        what: Name of the table for errors, such as ``--cases``.

    Raises:
        InputError: Another input of the command is standard input, too.
    """
    name = input_source(source, what, "csv")
    return "-.parquet" if name != source and load(Path(name)).startswith(_PARQUET_MAGIC) else name


def evidence_of(assignments: Sequence[str], model: Model, what: str = "--evidence") -> NamedEvidence:
    """Read and combine the values of ``--evidence``: files, and observations like ``name=state,name=state``.

    Args:
        assignments: Values of the option.
        model: Model of the evidence.
        what: Name of the option.

    Raises:
        InputError: A file or an observation cannot be read, or two of them contradict each other.
    """
    sources = [input_source(source, what, "evid") for source in assignments]
    return merge((source_text(source), _one_evidence(source, model)) for source in sources)


def _one_hint(source: str, model: Model) -> NamedEvidence:
    source = input_source(source, "--hint", "hint")
    start = load(Path(source)).lstrip()[:3] if source_text(source) != source else b""
    if start == b"MPE" or (source.lower().endswith((".sol", ".mpe")) and Path(source).exists()):
        return _solution(source, model)
    if not (start.startswith(b"{") or source.endswith(".json")):
        return _one_evidence(source, model)
    import json

    try:
        answer = json.loads(load(Path(source)))
    except (TextError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{source_text(source)} is not JSON: {error}") from None
    states = answer.get("assignment") if isinstance(answer, dict) else None
    if not isinstance(states, dict):
        raise InputError(
            f"{source_text(source)} holds no assignment; give an answer that 'elimina solve --json' has printed"
        )
    return {**states}


def _solution(source: str, model: Model) -> NamedEvidence:
    """Read a value index for each variable; in files of competitions, ``MPE`` and the number of indices come first.

    Raises:
        InputError: The file cannot be read, or holds something else.
    """
    words = load(Path(source)).decode(errors="replace").split()
    values = [integer_of(word) for word in (words[2:] if words[:1] == ["MPE"] else words)]
    if None in values or len(values) != len(model.variables):
        raise InputError(
            f"{source_text(source)} is not a solution: expected a value index for each of "
            f"{counted(len(model.variables), 'variable')}"
        )
    return {
        v.name: v.state(v.index(StateIndex(x))) for v, x in zip(model.variables, values, strict=True) if x is not None
    }


def _one_evidence(source: str, model: Model) -> NamedEvidence:
    if os.path.exists(source) or source_text(source) != source:
        return {**read_evidence(source, model)}
    if "=" not in source and source.strip():
        raise InputError(f"{source!r} is neither a file that exists nor of the form NAME=STATE,NAME=STATE")
    return parse_assignments(_as_utf8(source), model)


def _as_utf8(text: str) -> str:
    """Return an argument as UTF-8, whatever the locale: Python may have read bytes beyond ASCII as surrogates."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")


def query_of(sources: Sequence[str], model: Model) -> list[str] | None:
    """Read the variables of ``--query`` from names and ``.query`` files of the UAI competitions; None if there is none.

    Raises:
        InputError: A file cannot be read, or the model has no such variable.
    """
    if not sources:
        return None
    names = dict.fromkeys(v for source in sources for v in _one_query(source, model))
    return [model.variables[v].name for v in names]


def _one_query(source: str, model: Model) -> list[int]:
    """Read a .query file with the number of variables and then their indices, or names between commas.

    Raises:
        InputError: The file cannot be read or is malformed, or the model has no such variable.
    """
    source = input_source(source, "--query", "query")
    if source.endswith(".query") and (source_text(source) != source or Path(source).exists()):
        numbers = [integer_of(word) for word in load(Path(source)).decode(errors="replace").split()]
        if not numbers or numbers[0] != len(numbers) - 1 or None in numbers:
            raise InputError(
                f"{source_text(source)} is not a query file: expected the number of variables, followed by "
                "their indices"
            )
        try:
            return [model.index(number) for number in numbers[1:] if number is not None]
        except InputError as error:
            raise InputError(f"{source_text(source)}: {error}") from None
    return parse_names(_as_utf8(source), model)


def call_options(parameters: dict[str, Any], model: Model) -> Options:
    """Return the options of a call from the parameters of a command; an order and a hint are read with the model."""
    values = {record.name: parameters[record.name] for record in OPTIONS if record.name in parameters}
    for name, read in _READ_WITH_MODEL.items():
        if name in values:
            values[name] = read(values[name], model)
    return Options(**values)


def _hint_of(sources: Sequence[str], model: Model) -> NamedEvidence | None:
    """Return the combined assignment of files and texts; None if there are none."""
    return merge(((source, _one_hint(source, model)) for source in sources), "the hint") or None


def _order_of(name: str, model: Model) -> Any:
    """Return the heuristic's name, or the order in a file.

    Raises:
        InputError: The text is neither a heuristic nor a file, or the file is not an order of the model.
    """
    if name in get_args(Method):
        return name
    if name == "-":
        source = Path(input_source(name, "--order", "order"))
        return order_of_text(load(source).decode(errors="replace"), str(source), [v.name for v in model.variables])
    if not Path(name).exists():
        raise InputError(f"order {name!r} is neither a method ({', '.join(get_args(Method))}) nor a file")
    return read_order(name, [v.name for v in model.variables])


_READ_WITH_MODEL: dict[str, Callable[[Any, Model], Any]] = {"order": _order_of, "hint": _hint_of}
"""Readers of options whose texts name variables and states of the model."""
