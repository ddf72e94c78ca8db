"""Pseudo-Boolean files (.opb) as constraint models."""

from __future__ import annotations

import re
from pathlib import Path

from elimina._core import TextError
from elimina.cp.expressions import Expression
from elimina.cp.model import Model
from elimina.cp.operands import MAX_INTEGER
from elimina.errors import FormatError, UnsupportedError, source_text
from elimina.io.parsing import reraise

_HEADER = re.compile(r"\*\s*#variable=\s*(\d{1,18})")
_NUMBERED = re.compile(r"x[1-9]\d*")
_MAX_VARIABLES = 2**22
_STATEMENT = re.compile(r"(min:|max:)?\s*(.*?)\s*(?:(>=|<=|=)\s*([+-]?\s*\d{1,400}))?", re.DOTALL)
_TERM = re.compile(r"\s*([+-]?\s*\d{1,400}|[+-])?\s*\*?\s*(~?)([A-Za-z_]\w*)")


def read_opb(path: Path, data: bytes) -> Model:
    """Read a linear pseudo-Boolean problem, as the competitions define them; its variables are 0 or 1.

    Args:
        path: The file, for errors.
        data: Content of the file.

    Raises:
        FormatError: The file is malformed; it names the line.
        UnsupportedError: A statement is not supported.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        reraise(path, None, error)
    if not text.strip():
        raise FormatError(str(path), 1, "expected constraints, or a comment, but the file is empty")
    header = _HEADER.match(text)
    # Comments become empty lines, so that errors still name the right lines.
    text = re.sub(r"^[ \t]*\*.*$", "", text, flags=re.MULTILINE)
    model, variables, line = Model(), dict[str, Expression](), 1
    *statements, remainder = text.split(";")
    for number, statement in enumerate(statements):
        body = statement.lstrip()
        line += statement[: len(statement) - len(body)].count("\n")
        try:
            _add_statement(body.rstrip(), model, variables, is_first=number == 0)
        except TextError as error:
            raise FormatError(str(path), line, str(error)) from None
        except UnsupportedError as error:
            raise UnsupportedError(f"{source_text(path)}:{line}: {error}") from None
        line += body.count("\n")
    if remainder.strip():
        raise FormatError(str(path), line, "the last statement does not end with ;")
    if header is not None and all(_NUMBERED.fullmatch(name) for name in variables):
        _declare_rest(path, int(header[1]), model, variables)
    return model


def _declare_rest(path: Path, count: int, model: Model, variables: dict[str, Expression]) -> None:
    """Add the variables x1, x2, ... up to the header's number that are in no statement, so that counts are right.

    Raises:
        FormatError: The header's number is too large.
    """
    if count > _MAX_VARIABLES:
        raise FormatError(str(path), 1, f"expected at most {_MAX_VARIABLES:,} variables, found {count:,}")
    for number in range(1, count + 1):
        if f"x{number}" not in variables:
            variables[f"x{number}"] = model.bool_var(f"x{number}")


def _add_statement(statement: str, model: Model, variables: dict[str, Expression], *, is_first: bool) -> None:
    if statement.startswith("soft:") or statement.startswith("["):
        raise UnsupportedError("soft constraints are not supported")
    match = _STATEMENT.fullmatch(statement)
    if match is None or (match[1] is None) == (match[3] is None):
        raise TextError(f"expected an objective or a constraint, found {statement[:40]!r}")
    if match[1] and not is_first:
        raise TextError("the objective comes once, before all constraints")
    total = _sum(match[2], model, variables)
    if match[1]:
        (model.minimize if match[1] == "min:" else model.maximize)(total)
        return
    bound = _number(match[4])
    model.add(total >= bound if match[3] == ">=" else total <= bound if match[3] == "<=" else total == bound)


def _sum(text: str, model: Model, variables: dict[str, Expression]) -> Expression:
    terms: list[Expression] = []
    position = 0
    while position < len(text):
        term = _TERM.match(text, position)
        if term is None:
            raise TextError(f"expected a coefficient and a variable, found {text[position : position + 40]!r}")
        if term[1] is None and terms:
            raise UnsupportedError(
                f"the product of variables at {text[position : position + 40].strip()!r} is not supported"
            )
        factor = {"+": 1, "-": -1, None: 1}.get(term[1])
        factor = _number(term[1]) if factor is None else factor
        name = term[3]
        if name not in variables:
            variables[name] = model.bool_var(name)
        terms.append((1 - variables[name] if term[2] else variables[name]) * factor)
        position = term.end()
    return model.sum(terms)


def _number(text: str) -> int:
    number = int(text.replace(" ", "").replace("\n", ""))
    if abs(number) > MAX_INTEGER:
        raise UnsupportedError(f"the number {number} is beyond 2^52")
    return number
