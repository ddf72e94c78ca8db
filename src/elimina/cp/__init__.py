"""A finite-domain constraint solver: variables, constraints that shrink their domains, and search."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from elimina import arguments
from elimina._core import TextError, flatzinc_record
from elimina._core import cp_constraint_names as constraint_names
from elimina.cp.expressions import Expression, Relation
from elimina.cp.model import Model
from elimina.cp.operands import LIMIT
from elimina.cp.search_options import SearchOptions
from elimina.cp.solution import Solution
from elimina.errors import FormatError, InputError, UnsupportedError
from elimina.io import FORMATS as MODELS
from elimina.io.files import parsed, reraise, root_of, suffix_of
from elimina.result import Result
from elimina.system import memory_errors_in_words

__all__ = ["Expression", "Model", "Relation", "Result", "SearchOptions", "Solution", "constraint_names", "read"]


FORMATS = ("fzn", "opb", "xml")
"""Suffixes of the formats."""

Views = npt.NDArray[np.int64]

_OPEN = 2**42
"""An integer without bounds is from -2^42 to 2^42 in FlatZinc: ``core/cp/flatzinc/instance.hpp``."""

_HEADER = re.compile(r"\*\s*#variable=\s*(\d{1,18})")
_NUMBERED = re.compile(r"x[1-9]\d*")
_MOST_VARIABLES = 2**22
_STATEMENT = re.compile(r"(min:|max:)?\s*(.*?)\s*(?:(>=|<=|=)\s*([+-]?\s*\d{1,400}))?", re.DOTALL)
_TERM = re.compile(r"\s*([+-]?\s*\d{1,400}|[+-])?\s*\*?\s*(~?)([A-Za-z_]\w*)")


@memory_errors_in_words("while it read the constraint model", None)
def read(path: str | os.PathLike[str]) -> Model:
    """Read a model of constraints: FlatZinc, text or JSON, linear pseudo-Boolean problems (.opb), and XCSP3 (.xml).

    A FlatZinc model's variables have the names of its outputs (``x``, ``q[1]``, ``cell[1,2]``), or else those of their
    declarations: ``model["q[1]"]``. Variables that equations make the same are one. Annotations of the search are not
    taken over: that is what ``fzn-elimina`` is for.

    Args:
        path: The file; its suffix names the format, FlatZinc by default. Decompressed if it ends in .gz or .xz.

    Raises:
        FormatError: The file is malformed; it names the line.
        UnsupportedError: An item is well formed, but not supported.
        InputError: The file cannot be read, or its suffix is that of a graphical model or of a tour problem.
        MemoryLimitError: Memory ran out.
    """
    path = arguments.file("path", path)
    suffix = suffix_of(path)
    if suffix in MODELS and suffix not in FORMATS:
        raise InputError(f"{path} is a graphical model, not one of constraints: use 'elimina solve' or elimina.read")
    if suffix == "tsp":
        raise InputError(f"{path} is a travelling salesman problem: use 'elimina tsp' or elimina.cp.tsplib.read_tsp")
    if suffix == "mzn":
        raise InputError(f"{path} is MiniZinc: use 'minizinc --solver elimina', after 'elimina install-minizinc'")
    if suffix in ("yaml", "yml"):
        raise InputError(f"{path} is a distributed problem: use 'elimina dcop' or elimina.dcop.read")
    data = parsed(path, bytes, bytes)
    if suffix == "xml":
        from elimina.cp.xcsp3 import read as read_xcsp3

        return read_xcsp3(path, data)
    return _read_opb(path, data) if suffix == "opb" else _read_flatzinc(path, data)


def is_of_constraints(path: str | os.PathLike[str]) -> bool:
    """Return whether a file holds a constraint model, by its suffix, or by its content if that is .xml.

    Raises:
        InputError: The content is needed and cannot be read.
    """
    path = arguments.file("path", path)
    if suffix_of(path) != "xml":
        return suffix_of(path) in FORMATS
    return root_of(path).attributes.get("format") == "XCSP3"


def _read_flatzinc(path: Path, text: bytes) -> Model:
    try:
        bounds, posts, declared, outputs, sign, objective = flatzinc_record(text)
    except ValueError as error:
        line, column, problem = str(error).split(":", 2)
        if problem.startswith(" unsupported"):
            raise UnsupportedError(f"{path}:{error}") from None
        raise FormatError(str(path), int(line), f"{problem.strip()} (column {column})") from None
    shown = [named for output in outputs for named in _elements(*output)]
    names: dict[int, str] = {}
    taken: set[str] = set()
    for name, (var, scale, offset) in [*shown, *((name, tuple(rows[0].tolist())) for name, rows in declared)]:
        if (scale, offset) == (1, 0) and var >= 0 and name not in taken and var not in names:
            names[var] = name
            taken.add(name)
    model = Model()
    variables = [model.int_var(lo, hi, names.get(var, "")) for var, (lo, hi) in enumerate(bounds)]
    model._open.update(var for var, ends in enumerate(bounds) if ends == (-_OPEN, _OPEN))

    def expression(var: int, scale: int, offset: int) -> Expression:
        return model.expression(offset) if var < 0 else variables[var] * scale + offset

    for name, operands in posts:
        model.post(name, *([expression(*view) for view in rows.tolist()] for rows in operands))
    for name, view in shown:
        if name not in taken:
            x = expression(*view)
            named = model.int_var(*model.bounds(x), name)
            if not model._open.isdisjoint(x.terms):
                model._open.update(named.terms)
            model.add(named == x)
            taken.add(name)
    if objective is not None:
        (model.minimize if sign > 0 else model.maximize)(expression(*objective[0].tolist()))
    return model


def _elements(
    name: str, is_array: bool, rows: Views, index_sets: Sequence[tuple[int, int]]
) -> list[tuple[str, tuple[int, int, int]]]:
    """Return the names and views of the elements of an output."""
    views = [(var, scale, offset) for var, scale, offset in rows.tolist()]
    if not is_array:
        return [(name, view) for view in views]
    places = list(itertools.product(*(range(lo, hi + 1) for lo, hi in index_sets or [(1, len(views))])))
    if len(places) != len(views):
        places = [(k,) for k in range(1, len(views) + 1)]
    return [(f"{name}[{','.join(map(str, place))}]", view) for place, view in zip(places, views, strict=True)]


def _read_opb(path: Path, data: bytes) -> Model:
    """Read a linear pseudo-Boolean problem, as the competitions define them; its variables are 0 or 1."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        reraise(path, None, error)
    if not text.strip():
        raise FormatError(str(path), 1, "expected constraints, or a comment, but the file is empty")
    header = _HEADER.match(text)
    # Comments leave their lines, so that errors still name the right ones.
    text = re.sub(r"^[ \t]*\*.*$", "", text, flags=re.MULTILINE)
    model, variables, line = Model(), dict[str, Expression](), 1
    *statements, rest = text.split(";")
    for number, statement in enumerate(statements):
        body = statement.lstrip()
        line += statement[: len(statement) - len(body)].count("\n")
        try:
            _add_statement(body.rstrip(), model, variables, is_first=number == 0)
        except TextError as error:
            raise FormatError(str(path), line, str(error)) from None
        except UnsupportedError as error:
            raise UnsupportedError(f"{path}:{line}: {error}") from None
        line += body.count("\n")
    if rest.strip():
        raise FormatError(str(path), line, "the last statement does not end with ;")
    if header is not None and all(_NUMBERED.fullmatch(name) for name in variables):
        _declare_rest(path, int(header[1]), model, variables)
    return model


def _declare_rest(path: Path, count: int, model: Model, variables: dict[str, Expression]) -> None:
    """Add the variables x1, x2, ... up to the header's number that are in no statement, so that counts are right."""
    if count > _MOST_VARIABLES:
        raise FormatError(str(path), 1, f"expected at most {_MOST_VARIABLES:,} variables, found {count:,}")
    for number in range(1, count + 1):
        if f"x{number}" not in variables:
            variables[f"x{number}"] = model.bool_var(f"x{number}")


def _add_statement(statement: str, model: Model, variables: dict[str, Expression], *, is_first: bool) -> None:
    if statement.startswith("soft:") or statement.startswith("["):
        raise UnsupportedError("soft constraints are not supported")
    found = _STATEMENT.fullmatch(statement)
    if found is None or (found[1] is None) == (found[3] is None):
        raise TextError(f"expected an objective or a constraint, found {statement[:40]!r}")
    if found[1] and not is_first:
        raise TextError("the objective comes once, before all constraints")
    total = _sum(found[2], model, variables)
    if found[1]:
        (model.minimize if found[1] == "min:" else model.maximize)(total)
        return
    bound = _number(found[4])
    model.add(total >= bound if found[3] == ">=" else total <= bound if found[3] == "<=" else total == bound)


def _sum(text: str, model: Model, variables: dict[str, Expression]) -> Expression:
    terms: list[Expression] = []
    place = 0
    while place < len(text):
        term = _TERM.match(text, place)
        if term is None:
            raise TextError(f"expected a coefficient and a variable, found {text[place : place + 40]!r}")
        if term[1] is None and terms:
            raise UnsupportedError(f"the product of variables at {text[place : place + 40].strip()!r} is not supported")
        factor = {"+": 1, "-": -1, None: 1}.get(term[1])
        factor = _number(term[1]) if factor is None else factor
        name = term[3]
        if name not in variables:
            variables[name] = model.bool_var(name)
        terms.append((1 - variables[name] if term[2] else variables[name]) * factor)
        place = term.end()
    return model.sum(terms)


def _number(text: str) -> int:
    number = int(text.replace(" ", "").replace("\n", ""))
    if abs(number) > LIMIT:
        raise UnsupportedError(f"the number {number} is beyond 2^52")
    return number
