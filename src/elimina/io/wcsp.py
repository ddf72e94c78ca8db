"""toulbar2's WCSP format: integer costs to be minimised.

A name, the number of variables, the largest domain, the number of functions and an upper bound; the domain sizes (a
negative size -d means the interval 0..d-1); the functions, each "arity v1 .. vk default n" and n lines "x1 .. xk cost".
A cost at or above the upper bound is forbidden. A negative arity makes the function shared: a later function with -i in
the place of n has the tuples and the default of the i-th shared one. A default of -1 starts a keyword (see
``_WordReader``). Source: the description that comes with toulbar2, "cp and wcsp file formats".
"""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina._core import Text, TextError
from elimina.errors import InputError, UnsupportedError
from elimina.io.codecs import Codec
from elimina.io.cost_function_tables import CostFunctionTables
from elimina.io.keywords import BINARY, GLOBAL, add_binary, add_global
from elimina.io.listed_tuples import DENSE_CELLS_PER_TUPLE, MAX_DENSE_CELLS, table_of_tuples
from elimina.io.parsing import token_text
from elimina.io.uai import numbered, read_count
from elimina.model.auxiliary_variables import auxiliary_variables
from elimina.model.model import Model
from elimina.model.senses import integer_costs
from elimina.model.table import FORBIDDEN, Table
from elimina.model.variable import MAX_STATES

_logger = logging.getLogger("elimina")


def read_function(text: Text, scope: list[int], target: CostFunctionTables) -> None:
    """Read a keyword and its parameters and add its function.

    Raises:
        TextError: The parameters are malformed.
        UnsupportedError: The keyword is not handled, or its function is too large to be written out.
    """
    word = text.token("a keyword")
    keyword = word.decode(errors="replace")
    if keyword in BINARY:
        add_binary(target, keyword, scope, text.integers(BINARY[keyword], "a parameter").tolist())
    elif keyword in GLOBAL:
        reader = _WordReader(text, keyword, scope)
        parameters: dict[str, Any] = {}
        for name in GLOBAL[keyword][0].split():
            parameters[name] = reader.read(name, parameters)
        add_global(target, keyword, scope, parameters)
    else:
        raise UnsupportedError(f"the keyword {token_text(word)} is not handled; give the function by its tuples")


class _WordReader:
    def __init__(self, text: Text, keyword: str, scope: list[int]) -> None:
        self.text, self.keyword, self.scope = text, keyword, scope
        self.second = 0
        self.pairs: list[list[int]] = []

    def read(self, name: str, parameters: dict[str, Any]) -> Any:
        """Read a parameter; ``parameters`` holds those read before."""
        if name in ("metric", "comparator"):
            return self.text.token(f"a {name}").decode(errors="replace")
        special: dict[str, Callable[[], Any]] = {
            "bounds": lambda: self._rows(5 if parameters.get("metric") == "wdec" else 3),
            "tuples": lambda: self._rows(3),
            "exceptedvalues": self._list,
            # Older files lack this parameter: their line ends here.
            "deltacosts": lambda: [] if self.text.at_line_end() else self._rows(2),
            "weightedvalues": self._weights_of_values if self.keyword == "knapsackp" else lambda: self._rows(3),
            "terminals": self._terminals,
            "non_terminals": lambda: self.pairs,
            "transitions": lambda: self._rows(4 if self.keyword == "wregular" else 3),
            "vars1": self._first_of_two,
            "vars2": lambda: self.text.integers(self.second, "a variable's index").tolist(),
            "starts": self._states,
            "ends": self._states,
            "weights": lambda: self.text.integers(len(self.scope), "a weight").tolist(),
            "values": self._values,
        }
        return special[name]() if name in special else self.text.integer(f"the parameter {name}")

    def _count(self) -> int:
        count = self.text.integer("a number of items")
        if count < 0:
            raise TextError(f"expected a number of items, found {count}")
        self.text.need(count, "at least one number")
        return count

    def _list(self) -> list[int]:
        items: list[int] = self.text.integers(self._count(), "an item").tolist()
        return items

    def _rows(self, width: int) -> list[list[int]]:
        rows: list[list[int]] = self.text.integers(self._count() * width, "an item").reshape(-1, width).tolist()
        return rows

    def _values(self) -> Any:
        if self.keyword.endswith("diverse"):
            return self.text.integers(len(self.scope), "a value").tolist()
        return [self._list() for _ in self.scope] if self.keyword == "clique" else self._list()

    def _weights_of_values(self) -> list[list[int]]:
        return [[v, value, weight] for v in self.scope for value, weight in self._rows(2)]

    def _terminals(self) -> list[list[int]]:
        """Read a grammar; return its rules with one value, and keep those with two symbols in ``pairs``."""
        terminals: list[list[int]] = []
        for _ in range(self._count()):
            kind = self.text.integer("a kind of rule")
            if not 0 <= kind <= 3:
                raise TextError(f"expected a kind of rule from 0 to 3, found {kind}")
            rule = self.text.integers((2, 3, 3, 4)[kind], "a symbol of a rule").tolist()
            (self.pairs if kind % 2 else terminals).append(rule)
        return terminals

    def _states(self) -> Any:
        return self._rows(2) if self.keyword == "wregular" else self._list()

    def _first_of_two(self) -> Any:
        """Read the sizes of two lists of variables, and return the first list."""
        first, self.second = self._count(), self._count()
        return self.text.integers(first, "a variable's index").tolist()


@dataclass(frozen=True)
class Shared:
    """The listed tuples and the default cost of a function, which later functions may share.

    Attributes:
        sizes: Domain sizes of the scope.
        default: Cost of unlisted tuples.
        rows: The listed tuples.
        costs: Cost of each listed tuple.
    """

    sizes: tuple[int, ...]
    default: int
    rows: NDArray[np.int32]
    costs: NDArray[np.int64]


def parse(text: Text) -> Model:
    """Read a model; an upper bound that no sum of 64-bit costs reaches is left out."""
    name = text.token("the problem's name").decode()
    count = read_count(text, "a number of variables")
    largest = text.integer("the largest domain size")
    functions = read_count(text, "a number of functions")
    bound = _read_bound(text)
    sizes = _read_sizes(text, count, largest)
    reader = _FunctionReader(text, sizes, bound)
    while functions:
        max_functions = min(functions, _MAX_FUNCTIONS_PER_ARRAY)
        plain_functions = reader.read_plain(max_functions)
        functions -= plain_functions
        if plain_functions < max_functions:
            reader.read()
            functions -= 1
    upper_bound = None if bound == FORBIDDEN else bound
    variables = numbered(sizes) + auxiliary_variables(reader.functions.sizes[count:])
    return Model(variables, reader.functions.tables, sense="min-cost", upper_bound=upper_bound, name=name)


def _read_bound(text: Text) -> int:
    word = text.token("an upper bound")
    digits = word.removeprefix(b"+")
    if not digits.isdigit():
        raise TextError(f"expected an upper bound of at least 0, found {token_text(word)}")
    return min(int(digits), FORBIDDEN) if len(digits) < 1000 else FORBIDDEN


def _read_sizes(text: Text, count: int, largest: int) -> list[int]:
    sizes = [abs(size) for size in text.integers(count, "a domain size").tolist()]
    for v, size in enumerate(sizes):
        if not 1 <= size <= min(largest, MAX_STATES):
            raise TextError(
                f"expected a domain size from 1 to {largest} (the header's maximum) for variable {v}, found {size}"
            )
    return sizes


_MAX_FUNCTIONS_PER_ARRAY = 4096
"""Number of functions read at once, into one array: a few milliseconds of work between two checks for an interrupt."""


class _FunctionReader:
    """A reader of functions: plain ones many at once, others one by one."""

    def __init__(self, text: Text, sizes: Sequence[int], bound: int) -> None:
        self.text, self.sizes, self.bound = text, sizes, bound
        self.functions = CostFunctionTables(list(sizes), bound)
        self.shared: list[Shared] = []
        # Built once: each function needs this array, and files may have many variables and many functions.
        self.flat_sizes = np.array(sizes, dtype=np.int64)

    def read_plain(self, max_functions: int) -> int:
        """Read this many functions, or fewer if one needs ``read``; return their number."""
        limits = self.bound, FORBIDDEN, MAX_DENSE_CELLS, DENSE_CELLS_PER_TUPLE
        functions = self.text.functions(max_functions, self.flat_sizes, *limits)
        at = 0
        names, costs, starts = functions.members.tolist(), functions.costs, functions.starts.tolist()
        for first, last in itertools.pairwise(starts):
            scope = names[first:last]
            sizes = tuple([self.sizes[v] for v in scope])
            end = at + math.prod(sizes)
            self.functions.tables.append(Table(scope, costs[at:end].reshape(sizes)))
            at = end
        return len(starts) - 1

    def read(self) -> None:
        """Read the next function."""
        text = self.text
        arity = text.integer("a function's arity")
        scope = self._read_scope(abs(arity))
        sizes = tuple(self.sizes[v] for v in scope)
        default = text.integer("a default cost")
        if default == -1:
            read_function(text, scope, self.functions)
            return
        if default < 0:
            raise TextError(f"expected a default cost of at least 0, or -1 before a keyword, found {default}")
        function = self._read_tuples(sizes, default)
        if arity < 0:
            self.shared.append(function)
        self.functions.tables.append(make_table(scope, function, self.bound))

    def _read_scope(self, arity: int) -> list[int]:
        scope: list[int] = self.text.integers(arity, "a variable's index").tolist()
        for v in scope:
            if not 0 <= v < len(self.sizes):
                raise TextError(f"expected a variable from 0 to {len(self.sizes) - 1}, found {v}")
        if len(set(scope)) != len(scope):
            raise TextError(f"a function names a variable twice in its scope {scope}")
        return scope

    def _read_tuples(self, sizes: tuple[int, ...], default: int) -> Shared:
        count = self.text.integer("a number of tuples")
        if count >= 0:
            rows, costs = self.text.tuples(count, np.array(sizes, dtype=np.int64))
            if not sizes and count:
                raise TextError(f"expected no tuples in a function of arity 0, found {count}")
            return Shared(sizes, default, rows.reshape(count, len(sizes)), costs)
        if -count > len(self.shared):
            raise TextError(f"expected one of the {len(self.shared)} shared functions before this line, found {count}")
        function = self.shared[-count - 1]
        if function.sizes != sizes:
            raise TextError(f"shared function {-count} has domain sizes {function.sizes}, expected {sizes}")
        return function


def make_table(scope: Sequence[int], function: Shared, bound: int) -> Table:
    """Build a dense table, or a sparse one if few tuples of a large product are listed.

    Costs from ``bound`` on are forbidden.

    Raises:
        TextError: A tuple is listed with two costs.
    """
    costs = np.where(function.costs >= bound, FORBIDDEN, function.costs)
    default = FORBIDDEN if function.default >= bound else function.default
    return table_of_tuples(scope, function.sizes, default, function.rows, costs)


def render(model: Model) -> Iterator[str]:
    """Yield the file's text.

    Forbidden entries are written as the upper bound. If the model has none, the sum of all largest costs, plus one, is
    written as the bound.
    Other costs than integers are multiplied by the smallest power of ten that makes them integers; the problem's name
    then ends in "*1e" and the exponent. The model's constant becomes a function of arity 0.

    Raises:
        InputError: A cost is negative, or no power of ten makes all of them 64-bit integers.
    """
    model, exponent = integer_costs(model)
    if exponent:
        _logger.warning(
            "costs are multiplied by 10^%d, as WCSP files hold integers only; .cfn keeps decimals", exponent
        )
    tables = [*model.factors, *([Table((), model.constant)] if model.constant else [])]
    for i, table in enumerate(tables):
        lowest = min([*table.values.reshape(-1)[:1].tolist(), int(table.values.min(initial=0)), table.default or 0])
        if lowest < 0:
            raise InputError(f"factor {i} has the cost {lowest}; a WCSP file holds costs of at least 0 only; use .cfn")
    bound = _bound_for(model, tables)
    name = "_".join(model.name.split()) or "problem"
    yield f"{name}{f'*1e{exponent}' if exponent else ''} {len(model.variables)} {max(model.sizes, default=1)} "
    yield f"{len(tables)} {bound}\n" + " ".join(map(str, model.sizes)) + "\n"
    for table in tables:
        yield from _render_function(table, bound)


def _bound_for(model: Model, tables: Sequence[Table]) -> int:
    if model.upper_bound is not None:
        return min(max(math.ceil(model.upper_bound), 0), FORBIDDEN)
    total = 1
    for table in tables:
        costs = [*table.values[table.values != FORBIDDEN].reshape(-1).tolist(), table.default or 0]
        total += max((c for c in costs if c != FORBIDDEN), default=0)
    return min(total, FORBIDDEN)


def _render_function(table: Table, bound: int) -> Iterator[str]:
    if table.rows is None:
        default = _most_common(table.values)
        listed = table.values != default
        rows, costs = np.argwhere(listed), table.values[listed]
    else:
        default, rows, costs = int(table.default or 0), table.rows.astype(np.int64), table.values
    yield " ".join(map(str, (len(table.scope), *table.scope, min(default, bound), len(rows)))) + "\n"
    for row, cost in zip(rows.tolist(), np.minimum(costs, bound).tolist(), strict=True):
        yield " ".join(map(str, (*row, cost))) + "\n"


def _most_common(values: NDArray[np.int64] | NDArray[np.float64]) -> int:
    distinct, counts = np.unique(values, return_counts=True)
    return int(distinct[counts.argmax()]) if len(distinct) else 0


CODEC = Codec(("min-cost",), partial(Text, glued_minus=True), parse, render, holds=("upper bound",))
