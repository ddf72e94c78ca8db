"""Pseudo-Boolean files (.opb) as constraint models."""

from __future__ import annotations

import re
from pathlib import Path

from elimina._core import TextError
from elimina.cp.expressions import Expression, Relation
from elimina.cp.model import Model
from elimina.cp.operands import MAX_INTEGER
from elimina.errors import FormatError, UnsupportedError, source_text
from elimina.io.parsing import reraise

_HEADER = re.compile(r"\*\s*#variable=\s*(\d{1,18})")
_NUMBERED = re.compile(r"x[1-9]\d*")
_MAX_VARIABLES = 2**22
_STATEMENT = re.compile(r"(min:|max:)?\s*(.*?)\s*(?:(>=|<=|=)\s*([+-]?\s*\d{1,400}))?", re.DOTALL)
_LIMIT_OF_COST = re.compile(r"soft:\s*(\d{1,400})?", re.DOTALL)
_SOFT_CONSTRAINT = re.compile(r"\[\s*(\d{1,400})\s*\]\s*(.*)", re.DOTALL)
_COEFFICIENT = re.compile(r"\s*([+-]?\s*\d{1,400}|[+-])\s*\*?")
_LITERAL = re.compile(r"\s*\*?\s*(~?)([A-Za-z_]\w*)")


def read_opb(path: Path, data: bytes) -> Model:
    """Read a pseudo-Boolean problem, as the competitions define them; its variables are 0 or 1.

    Terms may be products of literals. The objective of a problem with soft constraints (WBO) is the cost of those
    that are violated.

    Args:
        path: The file, for errors.
        data: Content of the file.

    Raises:
        FormatError: The file is malformed; it names the line.
        UnsupportedError: A number is too large.
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
    problem, line = _Problem(), 1
    *statements, remainder = text.split(";")
    for number, statement in enumerate(statements):
        body = statement.lstrip()
        line += statement[: len(statement) - len(body)].count("\n")
        try:
            problem.add(body.rstrip(), is_first=number == 0)
        except TextError as error:
            raise FormatError(str(path), line, str(error)) from None
        except UnsupportedError as error:
            raise UnsupportedError(f"{source_text(path)}:{line}: {error}") from None
        line += body.count("\n")
    if remainder.strip():
        raise FormatError(str(path), line, "the last statement does not end with ;")
    if header is not None and all(_NUMBERED.fullmatch(name) for name in problem.variables):
        _declare_rest(path, int(header[1]), problem)
    return problem.finished()


class _Problem:
    """A problem whose statements are added one by one."""

    def __init__(self) -> None:
        self.model = Model()
        self.variables: dict[str, Expression] = {}
        self._products: dict[frozenset[tuple[str, bool]], Expression] = {}
        self._costs: list[Expression] = []
        self._limit: int | None = None
        self._is_soft = False

    def declare(self, name: str) -> Expression:
        """Return the variable of a name, a new one if it has not been used."""
        if name not in self.variables:
            self.variables[name] = self.model.bool_var(name)
        return self.variables[name]

    def finished(self) -> Model:
        """Return the model, after the cost of violated constraints has become its objective."""
        if self._is_soft:
            cost = self.model.sum(self._costs)
            if self._limit is not None:
                self.model.add(cost <= self._limit - 1)
            self.model.minimize(cost)
        return self.model

    def add(self, statement: str, *, is_first: bool) -> None:
        """Add the objective, the limit of the cost of soft constraints, or a constraint."""
        if limit := _LIMIT_OF_COST.fullmatch(statement):
            if not is_first:
                raise TextError("'soft:' comes once, before all constraints")
            self._is_soft, self._limit = True, None if limit[1] is None else _number(limit[1])
        elif soft := _SOFT_CONSTRAINT.fullmatch(statement):
            if not self._is_soft:
                raise TextError("a soft constraint needs the statement 'soft: LIMIT;' before all constraints")
            self._costs.append((1 - self._constraint(soft[2]).truth) * _number(soft[1]))
        elif statement.startswith(("min:", "max:")):
            if not is_first:
                raise TextError("the objective comes once, before all constraints")
            self._add_objective(statement)
        else:
            self.model.add(self._constraint(statement))

    def _add_objective(self, statement: str) -> None:
        match = _STATEMENT.fullmatch(statement)
        if match is None or match[3]:
            raise TextError(f"expected an objective, found {statement[:40]!r}")
        total = self._sum(match[2])
        (self.model.minimize if match[1] == "min:" else self.model.maximize)(total)

    def _constraint(self, statement: str) -> Relation:
        match = _STATEMENT.fullmatch(statement)
        if match is None or match[1] or not match[3]:
            raise TextError(f"expected a constraint, found {statement[:40]!r}")
        total, bound = self._sum(match[2]), _number(match[4])
        return total >= bound if match[3] == ">=" else total <= bound if match[3] == "<=" else total == bound

    def _sum(self, text: str) -> Expression:
        terms: list[Expression] = []
        position = 0
        while position < len(text):
            coefficient = _COEFFICIENT.match(text, position)
            factor = 1 if coefficient is None else _factor(coefficient[1])
            literals: list[tuple[str, bool]] = []
            start = position if coefficient is None else coefficient.end()
            while literal := _LITERAL.match(text, start):
                literals.append((literal[2], bool(literal[1])))
                start = literal.end()
            if not literals:
                raise TextError(
                    f"expected a coefficient and a variable, found {text[position : position + 40].strip()!r}"
                )
            terms.append(self._product(literals) * factor)
            position = start
        return self.model.sum(terms)

    def _product(self, literals: list[tuple[str, bool]]) -> Expression:
        values = [1 - self.declare(name) if is_negated else self.declare(name) for name, is_negated in literals]
        if len(values) == 1:
            return values[0]
        # A product of literals has one variable, which all statements share.
        same = frozenset(literals)
        if same not in self._products:
            self._products[same] = self.model.all_of(values)
        return self._products[same]


def _declare_rest(path: Path, count: int, problem: _Problem) -> None:
    """Add the variables x1, x2, ... up to the header's number that no statement uses: they count in solutions.

    Raises:
        FormatError: The header's number is too large.
    """
    if count > _MAX_VARIABLES:
        raise FormatError(str(path), 1, f"expected at most {_MAX_VARIABLES:,} variables, found {count:,}")
    for number in range(1, count + 1):
        problem.declare(f"x{number}")


def _factor(text: str) -> int:
    return {"+": 1, "-": -1}.get(text) or _number(text)


def _number(text: str) -> int:
    number = int("".join(text.split()))
    if abs(number) > MAX_INTEGER:
        raise UnsupportedError(f"the number {number} is beyond 2^52")
    return number
