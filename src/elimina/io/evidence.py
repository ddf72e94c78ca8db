"""Evidence as text, as on the command line: observed states, likelihoods, and names of variables."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina.errors import InputError
from elimina.model.model import Model
from elimina.model.states import State
from elimina.model.variable import Variable, find_text, index_of_text

NamedEvidence = dict[str, State | NDArray[np.float64]]
"""Evidence: variable name -> its observed state, or the likelihood of each state, at least one of them above 0."""


def parse_assignments(text: str, model: Model) -> NamedEvidence:
    """Read ``name=state,name=state:0.2|state:0.7``: observed states, and likelihoods of states (soft evidence).

    States left out of soft evidence have the likelihood 0. A name or state with a comma, an equals sign or a
    quotation mark (in soft evidence also a colon or a bar) goes between quotation marks, and a mark in it is doubled.

    Raises:
        InputError: The text has another form, has a variable or state unknown to the model, or has two entries for a
            variable; or a likelihood is not a number from 0 to infinity, or all likelihoods of a variable are 0.
    """
    if not text.strip():
        raise InputError("the evidence is empty; give a file, or observations like A=x,B=y")
    pairs: list[tuple[str, NamedEvidence]] = []
    for item in _split(text, ","):
        name, *values = _split(item, "=")
        if not values:
            raise InputError(f"evidence {item.strip()!r} is not of the form name=state")
        variable, value = model.variables[model.index(_unquoted(name))], "=".join(values)
        if _is_soft(value, variable):
            pairs.append((item.strip(), {variable.name: _likelihoods(value, variable)}))
        else:
            pairs.append((item.strip(), {variable.name: variable.state(index_of_text(variable, _unquoted(value)))}))
    return merge(pairs)


def merge(pieces: Iterable[tuple[str, NamedEvidence]], what: str = "evidence") -> NamedEvidence:
    """Combine evidence from several origins.

    Args:
        pieces: Pairs of an origin, for errors, and its evidence.
        what: Name of the evidence in errors.

    Raises:
        InputError: Two origins name different states of a variable, or give it soft evidence and other evidence.
    """
    merged: NamedEvidence = {}
    sources: dict[str, str] = {}
    for source, evidence in pieces:
        for name, state in evidence.items():
            if name in merged:
                _check_agreement(what, name, (sources[name], merged[name]), (source, state))
            merged[name], sources[name] = state, source
    return merged


def _check_agreement(what: str, name: str, first: tuple[str, Any], second: tuple[str, Any]) -> None:
    if isinstance(first[1], np.ndarray) or isinstance(second[1], np.ndarray):
        raise InputError(
            f"{what} is about variable {name!r} twice, in {first[0]!r} and in {second[0]!r}, "
            "and likelihoods are not combined; give one of them"
        )
    if first[1] != second[1]:
        raise InputError(
            f"{what} gives variable {name!r} two states: {str(first[1])!r} in {first[0]!r} and {str(second[1])!r} in "
            f"{second[0]!r}"
        )


def parse_names(text: str, model: Model) -> list[int]:
    """Read ``name,name``. A name with a comma or a quotation mark is quoted, and a quotation mark in it is doubled.

    Raises:
        InputError: The model has no such variable, or none is named.
    """
    if not text.strip():
        raise InputError("the query is empty; name variables like A,B")
    return [model.index(_unquoted(piece)) for piece in _split(text, ",")]


_PIECE = r'(?:"[^"]*"|[^"{0}])*'


def _split(text: str, separator: str) -> list[str]:
    """Split at the separators that are not between quotation marks.

    Raises:
        InputError: A quotation mark is not closed.
    """
    if text.count('"') % 2:
        raise InputError(f"{text.strip()!r} has a quotation mark that is not closed; a mark is written twice")
    pattern = re.compile(_PIECE.format(re.escape(separator)))
    pieces, at = [], 0
    while at <= len(text):
        match = pattern.match(text, at)
        assert match is not None
        pieces.append(match[0])
        at = match.end() + 1
    return pieces


def _unquoted(piece: str) -> str:
    text = piece.strip()
    if '"' not in text:
        return text
    if re.fullmatch(r'"(?:[^"]|"")*"', text) is None:
        raise InputError(f"{text!r}: quotation marks go around a whole name or state; one in it is doubled")
    return text[1:-1].replace('""', '"')


def _is_soft(value: str, variable: Variable) -> bool:
    return find_text(variable, value.strip()) is None and len(_split(value, ":")) > 1


def _likelihoods(value: str, variable: Variable) -> NDArray[np.float64]:
    result = np.zeros(variable.size)
    named: set[int] = set()
    for text in _split(value, "|"):
        *state, number = _split(text, ":")
        if not state:
            raise InputError(f"evidence {text.strip()!r} about {variable.name!r} is not of the form state:likelihood")
        x = index_of_text(variable, _unquoted(":".join(state)))
        if x in named:
            raise InputError(f"evidence gives state {str(variable.state(x))!r} of {variable.name!r} two likelihoods")
        named.add(x)
        result[x] = _likelihood(number, variable.name)
    if not result.any():
        raise InputError(f"evidence gives every state of {variable.name!r} the likelihood 0")
    return result


def _likelihood(text: str, name: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise InputError(
            f"evidence about {name!r}: {text.strip()!r} is not a likelihood; expected a finite number of at least 0"
        )
    return number
