"""Common parts of readers and writers of distributed problems: domains, variables, cost functions and owners."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina._core import TextError
from elimina.dcop.problem import AgentProfile, Problem
from elimina.errors import InputError, MemoryLimitError
from elimina.io.listed_tuples import table_of_tuples
from elimina.io.network import MAX_TABLE_CELLS
from elimina.model.model import Model
from elimina.model.states import State, integer_of
from elimina.model.table import FORBIDDEN, Sense, Table, forbidden_value
from elimina.model.variable import Variable, texts_of

LARGEST_DOMAIN = 10**6
"""Largest number of values of a domain given by a range."""
MAX_VALUES = 2**22
"""Largest number of values of all domains of a file."""
LARGEST_FULL = 2**25
"""Largest number of cells of a table given by an expression."""
MAX_COMPUTED_CELLS = 2**27
"""Largest number of cells of all tables of a file that are given by expressions."""
_COST = re.compile(r"[+-]?(\d{1,400}|(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,5})?)")
_INFINITE = {"infinity": math.inf, "+infinity": math.inf, "-infinity": -math.inf}
_EXACT = 2**53


@dataclass(frozen=True, eq=False)
class Domain:
    """A domain: the values of one or more variables.

    Attributes:
        name: Name in the file.
        values: The values: int if all of them are integers, else str. Values of a JSON file keep their types.
        codes: Index of each value's text.
    """

    name: str
    values: tuple[State, ...]
    codes: dict[str, int]

    @classmethod
    def of(cls, name: str, values: Iterable[State]) -> Domain:
        """Assign indices to the values.

        Raises:
            TextError: There are no values, or two have the same text.
        """
        listed = tuple(values)
        texts = list(map(str, listed))
        codes = {text: i for i, text in enumerate(texts)}
        if not listed:
            raise TextError(f"domain {name!r} has no values")
        if len(codes) != len(listed):
            twice = next(text for i, text in enumerate(texts) if codes[text] != i)
            raise TextError(f"domain {name!r} has the value {twice[:40]!r} twice")
        return cls(name, listed, codes)

    @classmethod
    def of_texts(cls, name: str, texts: Iterable[str]) -> Domain:
        """Assign indices to values of a format without types: integers if all are written as such."""
        listed = tuple(texts)
        integers = [integer for text in listed if (integer := integer_of(text)) is not None]
        return cls.of(name, integers if len(integers) == len(listed) else listed)

    def code(self, text: str) -> int:
        """Return the index of a value.

        Raises:
            TextError: There is no such value.
        """
        if text not in self.codes:
            shown = ", ".join(map(str, self.values[:8])) + (", ..." if len(self.values) > 8 else "")
            raise TextError(f"expected a value of domain {self.name!r} ({shown}), found {text[:40]!r}")
        return self.codes[text]


def parse_cost(word: str) -> int | float:
    """Read a cost: an integer, a decimal number or "infinity", with or without a sign.

    Raises:
        TextError: The word is not a cost.
    """
    if word in _INFINITE:
        return _INFINITE[word]
    if not _COST.fullmatch(word) or not word.isascii():
        raise TextError(f"expected a cost, found {word[:40]!r}")
    return int(word) if word.lstrip("+-").isdigit() else float(word)


class Builder:
    """A problem that a reader builds. Every method raises TextError if the file contradicts itself.

    Attributes:
        name: Name of the problem.
        sense: ``min-cost`` or ``max-cost``.
        constant: Cost to add to that of every assignment.
        upper_bound: Best forbidden total: it and all worse totals are forbidden. None: no total is forbidden.
        domains: Mapping from names to domains.
        variables: Variables in the order of the file.
        index: Index of each variable, by name.
        domain_of: Domain of each variable.
        tables: Cost functions added so far.
    """

    def __init__(self, sense: Sense = "min-cost") -> None:
        self.name, self.sense = "", sense
        self.constant: int | float = 0
        self.upper_bound: int | float | None = None
        self.domains: dict[str, Domain] = {}
        self.variables: list[Variable] = []
        self.index: dict[str, int] = {}
        self.domain_of: list[Domain] = []
        self.tables: list[Table] = []
        self._full_cells = 0
        self._values = 0

    def add_domain(self, domain: Domain) -> None:
        """Add a domain, whose name must be new."""
        if domain.name in self.domains:
            raise TextError(f"a second domain is named {domain.name!r}")
        self._values += len(domain.values)
        if self._values > MAX_VALUES:
            raise MemoryLimitError(
                f"the domains up to {domain.name!r} have {self._values} values; up to {MAX_VALUES} are handled"
            )
        self.domains[domain.name] = domain

    def domain(self, name: str) -> Domain:
        """Return a domain by its name."""
        if name not in self.domains:
            raise TextError(f"expected the name of a domain, found {name[:40]!r}")
        return self.domains[name]

    def add_variable(self, name: str, domain: Domain) -> None:
        """Add a variable, whose name must be new."""
        if name in self.index:
            raise TextError(f"a second variable is named {name!r}")
        self.index[name] = len(self.variables)
        self.variables.append(Variable(name, len(domain.values), domain.values))
        self.domain_of.append(domain)

    def scope(self, names: Iterable[str]) -> list[int]:
        """Return the indices of variables by their names."""
        listed = list(names)
        for name in listed:
            if name not in self.index:
                raise TextError(f"expected the name of a variable, found {name[:40]!r}")
        return [self.index[name] for name in listed]

    def costs(self, costs: Sequence[int | float] | NDArray[Any]) -> NDArray[Any]:
        """Return the costs of a table: integers if all are, else doubles."""
        worst = forbidden_value(self.sense, np.float64)
        try:
            reals = np.array(costs, dtype=np.float64)
        except OverflowError:
            raise TextError("a cost is beyond the range of a double") from None
        if np.isnan(reals).any() or (np.isinf(reals) & (reals != worst)).any():
            invalid = reals[np.isnan(reals) | (np.isinf(reals) & (reals != worst))][0]
            raise TextError(f"expected costs that are numbers or, where forbidden, {worst}; found {invalid}")
        infinite = np.isinf(reals)
        finite = np.where(infinite, 0, reals)
        forbidden = int(forbidden_value(self.sense, np.int64))
        if (finite != np.rint(finite)).any():
            return reals
        if np.abs(finite).max(initial=0) <= _EXACT:
            return np.where(infinite, forbidden, finite.astype(np.int64))
        if any(not float(cost).is_integer() for cost, hard in zip(costs, infinite.flat, strict=True) if not hard):
            return reals
        exact = [forbidden if hard else int(c) for c, hard in zip(costs, infinite.flat, strict=True)]
        if any(abs(cost) > FORBIDDEN for cost in exact):
            return reals
        return np.array(exact, dtype=np.int64)

    def add_rows(
        self, scope: list[int], rows: NDArray[np.int32], costs: Sequence[int | float], default: float | None, name: str
    ) -> None:
        """Add a function by its tuples; a tuple with different values of a repeated variable is left out.

        Args:
            scope: Variables, one for each column of ``rows``.
            rows: The listed tuples, of shape (n, len(scope)).
            costs: Cost of each tuple.
            default: Cost of tuples that are not listed; None if all have to be.
            name: Name of the function in the file.
        """
        distinct = list(dict.fromkeys(scope))
        values = self.costs([*costs, 0 if default is None else default])
        listed, rest = values[:-1], values[-1].item()
        if len(distinct) < len(scope):
            first = [scope.index(v) for v in scope]
            agree = (rows == rows[:, first]).all(axis=1)
            rows, listed = rows[agree][:, [scope.index(v) for v in distinct]], listed[agree]
        if not distinct and len(listed):
            if (listed != listed[0]).any():
                raise TextError(f"function {name!r} of no variables is listed with two costs")
            self.tables.append(Table((), listed[0]))
            return
        sizes = [self.variables[v].size for v in distinct]
        if default is None and (count := len(np.unique(rows, axis=0))) < math.prod(sizes):
            raise TextError(
                f"function {name!r} has a cost for {count} of its {math.prod(sizes)} tuples; "
                f"give it a default for the rest"
            )
        try:
            self.tables.append(table_of_tuples(distinct, sizes, rest, rows, listed))
        except TextError as error:
            raise TextError(f"function {name!r}: {error}") from None

    def add_full(self, scope: Sequence[int], values: NDArray[Any]) -> None:
        """Add a function by its array of costs, whose axes may repeat a variable.

        Cells with different values of a repeated variable are left out.
        """
        distinct = list(dict.fromkeys(scope))
        if len(distinct) < len(scope):
            grid = np.ogrid[tuple(slice(self.variables[v].size) for v in distinct)]
            values = values[tuple(grid[distinct.index(v)] for v in scope)]
        self.tables.append(Table(distinct, values))

    def claim(self, scope: Sequence[int], name: str) -> int:
        """Return the number of cells of a table that is about to be filled.

        Raises:
            MemoryLimitError: The table, or all tables of the file together, would be too large.
        """
        sizes = [self.variables[v].size for v in scope]
        cells = math.prod(sizes)
        if cells > LARGEST_FULL:
            shown = " x ".join(map(str, sizes[:12])) + (" x ..." if len(sizes) > 12 else "")
            raise MemoryLimitError(
                f"function {name!r} has {shown} = {cells} costs ({8 * cells / 2**30:.3g} GiB), which are computed into "
                f"a table of up to {LARGEST_FULL}; write it as several functions of fewer variables"
            )
        self._full_cells += cells
        if self._full_cells > MAX_COMPUTED_CELLS:
            raise MemoryLimitError(
                f"the functions up to {name!r} have {self._full_cells} costs ({8 * self._full_cells / 2**30:.3g} GiB), "
                f"which are computed into tables of up to {MAX_COMPUTED_CELLS} in all; list the costs that are not 0 "
                "instead"
            )
        return cells

    def problem(self, agents: Sequence[AgentProfile], owners: Sequence[str | None]) -> Problem:
        """Finish the problem; a variable without an owner gets a new agent with its name."""
        model = Model(
            self.variables,
            self.tables,
            sense=self.sense,
            constant=self.constant,
            upper_bound=self.upper_bound,
            name=self.name,
        )
        index_of_agent = {agent.name: i for i, agent in enumerate(agents)}
        all_agents = list(agents)
        owner_indices = []
        for variable, owner in zip(self.variables, owners, strict=True):
            if owner is None and variable.name not in index_of_agent:
                index_of_agent[variable.name] = len(all_agents)
                all_agents.append(AgentProfile(variable.name))
            if (name := variable.name if owner is None else owner) not in index_of_agent:
                raise TextError(f"variable {variable.name!r} belongs to agent {name!r}, which is not declared")
            owner_indices.append(index_of_agent[name])
        return Problem(model, all_agents, owner_indices)


def check_listed(cells: int, name: str) -> None:
    """Reject a full table that is too large for a file.

    Raises:
        MemoryLimitError: The table has more cells than a file may list.
    """
    if cells > MAX_TABLE_CELLS:
        raise MemoryLimitError(f"function {name!r} has {cells} costs; up to {MAX_TABLE_CELLS} can be listed")


def constant_of(model: Model) -> int | float:
    """Return the cost that every assignment has: the constant and the functions without variables."""
    empty = Model((), [f for f in model.factors if not f.scope], sense=model.sense, constant=model.constant)
    return empty.score([])


def functions(model: Model, *, with_constant: bool) -> Iterator[tuple[str, Table]]:
    """Yield the functions of at least one variable with names, "c0" and so on.

    Args:
        model: The model.
        with_constant: True to yield a constant other than 0 as a function of the first variable; an infinite constant
            is always yielded in this way.

    Raises:
        InputError: There is a constant but no variable.
    """
    number = 0
    for factor in model.factors:
        if factor.scope:
            yield f"c{number}", factor
            number += 1
    constant = constant_of(model)
    if constant and (with_constant or math.isinf(constant)):
        if not model.variables:
            raise InputError(f"the problem has the constant cost {constant} but no variable; the format cannot hold it")
        is_whole = isinstance(constant, int) and abs(constant) < FORBIDDEN
        size = model.variables[0].size
        yield f"c{number}", Table((0,), np.full(size, constant, dtype=np.int64 if is_whole else np.float64))


def listed(name: str, table: Table, model: Model) -> tuple[list[str], list[int | float], int | float]:
    """List the tuples of a table that do not have its default cost.

    Returns:
        The tuples, as values with blanks between them; their costs; the default. A dense table's default
        is its most frequent cost.

    Raises:
        MemoryLimitError: The table is dense and too large to be listed.
    """
    words = [texts_of(model.variables[v]) for v in table.scope]
    if table.rows is not None:
        assert table.default is not None
        return _joined(words, table.rows), table.values.tolist(), table.default
    check_listed(table.cells, name)
    default: int | float = Counter(table.values.ravel().tolist()).most_common(1)[0][0]
    listed_cells = table.values != default
    return _joined(words, np.argwhere(listed_cells)), table.values[listed_cells].tolist(), default


def _joined(words: Sequence[Sequence[str]], rows: NDArray[Any]) -> list[str]:
    columns = [[axis[x] for x in column] for axis, column in zip(words, rows.T.tolist(), strict=True)]
    return list(map(" ".join, zip(*columns, strict=True)))


def is_worst(cost: float, model: Model) -> bool:
    """Return whether a cost means that an assignment is forbidden."""
    return cost == forbidden_value(model.sense, np.int64 if isinstance(cost, int) else np.float64)
