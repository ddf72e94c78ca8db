"""The model: variables, factors, and the meaning of their values."""

from __future__ import annotations

import contextlib
import itertools
import math
import operator
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elimina import arguments
from elimina.display import Displayed, sample, table_of
from elimina.errors import InputError
from elimina.model import distributions
from elimina.model.alignment import aligned
from elimina.model.conditional_tables import network_of
from elimina.model.directed_graph import DirectedGraph
from elimina.model.states import State, StateIndex
from elimina.model.table import (
    CLOSE,
    Sense,
    Table,
    Tables,
    are_plain_integers,
    forbidden_value,
    misfit,
)
from elimina.model.variable import Variable, index_of, variable_of
from elimina.number_texts import counted
from elimina.system import cached_property

_Element = TypeVar("_Element")
_Total = TypeVar("_Total", bound="float | None")

_MAX_ROUNDING_ERROR = 1e-6
"""Largest rounding error of a total, in units of its last decimal, that is removed."""


@arguments.with_checked_methods
class Model(Displayed):
    """A discrete graphical model. Its objective is the sum (costs) or product (probabilities) of its factors.

    Attributes:
        variables: Variables in the order of their indices.
        sizes: Domain sizes of the variables.
        factors: Tables over the variables' indices. Several may share a scope.
        sense: ``min-cost`` and ``max-cost``: factors are added; ``probability``: factors are non-negative and
            multiplied.
        constant: Constant part of the objective: a cost, or the natural logarithm of a probability (minus infinity for
            probability 0).
        upper_bound: Bound at which totals become forbidden (costs only): totals of this or more, or of this or less
            if costs are maximised. None, or infinity, if there is no such bound.
        children: Child of each factor: factor i is the conditional distribution of ``children[i]`` given the rest of
            its scope. None if the model is not a Bayesian network.
        name: Name of the model, any text.
        decimals: Largest number of decimals of a cost, and therefore of a total. None: unknown.

    Examples:
        >>> import elimina
        >>> variables = [elimina.Variable("a", 2), elimina.Variable("b", 2)]
        >>> model = elimina.Model(variables, [elimina.Table([0, 1], [[0, 3], [2, 1]])])
        >>> model.score(model.indices_of({"a": 1, "b": 0}))
        2
    """

    def __init__(
        self,
        variables: Iterable[Variable],
        factors: Iterable[Table],
        *,
        sense: Sense = "min-cost",
        constant: float = 0,
        upper_bound: float | None = None,
        children: Sequence[int] | None = None,
        name: str = "",
        check: bool = True,
    ) -> None:
        """Check that the factors fit the variables and, with ``children``, are distributions.

        Args:
            variables: See the attributes.
            factors: See the attributes.
            sense: See the attributes.
            constant: See the attributes.
            upper_bound: See the attributes.
            children: See the attributes; no variable may be the child of two factors, or its own ancestor.
            name: See the attributes.
            check: True if the rows of factors with children have to sum to 1: rows that miss 1 by at most 0.001, the
                rounding of decimals, are normalised. False: all numbers are taken as they are.

        Raises:
            TypeError: A variable, a factor or another argument has the wrong type.
            InputError: A factor names an unknown variable or has another shape than its variables, a value is NaN, a
                probability is negative or infinite, a cost is close to a forbidden one but differs, two variables share
                a name, the constant or the bound is not a finite number, a factor's child is not in its scope, two
                factors have one child, the parents form a cycle, or a row of a distribution misses 1 by more than
                0.001.
        """
        self.variables = _all("variables", variables, Variable)
        self.sizes = tuple(v.size for v in self.variables)
        self.factors = _all("factors", factors, Table)
        senses: tuple[Sense, ...] = get_args(Sense)
        self.sense: Sense = arguments.choice("sense", sense, senses)
        self.constant = _number("constant", constant)
        if not (math.isfinite(self.constant) or (sense == "probability" and self.constant == -math.inf)):
            raise InputError(f"the constant is {self.constant}; it must be finite")
        self.upper_bound = None if upper_bound is None else self._checked_bound(upper_bound)
        self.children = None if children is None else _indices("children", children)
        self.name = name
        self.decimals: int | None = None
        self._unnormalised: frozenset[int] | None = None
        self._tables = Tables(self.factors)
        self._index = {v.name: i for i, v in enumerate(self.variables)}
        if len(self._index) != len(self.variables):
            twice = next(v.name for i, v in enumerate(self.variables) if self._index[v.name] != i)
            raise InputError(f"two variables are named {twice!r}")
        self._check_factors()
        if self.children is not None:
            self._check_children(self.children)
            if check:
                self.check_distributions()

    def check_distributions(self, *, strict: bool = True, in_place: bool = False) -> None:
        """Normalise the rows of the distributions that miss 1 by the rounding of decimals.

        Args:
            strict: True if a row that misses 1 by more than 0.001 is an error; if not, a warning is logged, and nothing
                is normalised.
            in_place: True if tables may be written to, because no other object shares their arrays.

        Raises:
            InputError: A row misses 1 by more than 0.001, and ``strict`` is True.
        """
        if self.children is not None:
            self.factors, self._unnormalised = distributions.checked(
                self.variables, self.factors, self.children, strict=strict, in_place=in_place
            )

    @property
    def tables(self) -> Tables:
        """The factors as a sequence that the core can read."""
        if self._tables.all is not self.factors:
            self._tables = Tables(self.factors)
        return self._tables

    @property
    def unnormalised(self) -> frozenset[int]:
        """Numbers of the conditional distributions with a row whose sum is not 1; empty if ``children`` is None."""
        if self.children is None:
            return frozenset()
        if self._unnormalised is None:
            self._unnormalised = distributions.unnormalised(self.factors, self.children)
        return self._unnormalised

    def _checked_bound(self, upper_bound: float) -> int | float | None:
        if self.sense == "probability":
            raise InputError(f"a model of probabilities has no upper bound, but {upper_bound!r} is given")
        bound = _number("upper_bound", upper_bound)
        if bound == forbidden_value(self.sense, np.float64):
            return None
        if not math.isfinite(bound):
            raise InputError(f"the upper bound of a {self.sense} model is {bound}; no cost could be a solution")
        return bound

    def _check_children(self, children: Sequence[int]) -> None:
        if len(children) != len(self.factors):
            raise InputError(
                f"{counted(len(self.factors), 'factor')} but {len(children)} children: name one for each factor"
            )
        for number, (factor, child) in enumerate(zip(self.factors, children, strict=True)):
            if child not in factor.scope:
                raise InputError(f"factor {number} over {self._names(factor)} does not contain its child {child}")
        distributions.check_structure(self.variables, self.factors, children)

    def _check_factors(self) -> None:
        """Check the scopes, sizes and values of all factors in the core, and those with a defect once more here."""
        listed = self._tables.listed
        mismatch = listed.first_mismatch(self.size_array)
        if mismatch >= 0:
            raise self._mismatch_error(mismatch, self.factors[mismatch])
        # The core compares rounded numbers, so the range leaves a margin.
        highest = CLOSE / 2
        for number in listed.unusual(self.sense, 0.0 if self.sense == "probability" else -highest, highest).tolist():
            problem = misfit(self.factors[number], self.sense)
            if problem is not None:
                raise InputError(f"factor {number} over {self._names(self.factors[number])} {problem}")

    def _mismatch_error(self, number: int, factor: Table) -> InputError:
        for v, size in zip(factor.scope, factor.sizes, strict=True):
            if not 0 <= v < len(self.variables):
                return InputError(f"factor {number} names variable {v}; the model has {len(self.variables)}")
            if self.variables[v].size != size:
                return InputError(
                    f"factor {number} has {counted(size, 'value')} for variable {self.variables[v].name!r}, "
                    f"which has {self.variables[v].size}"
                )
        raise AssertionError("the factor fits the model")

    def _names(self, factor: Table) -> str:
        return "(" + ", ".join(self.variables[v].name for v in factor.scope) + ")"

    @classmethod
    def from_arrays(
        cls,
        sizes: Sequence[int] | Mapping[str, int | Sequence[State]],
        factors: Iterable[tuple[Sequence[int | str], ArrayLike]],
        *,
        sense: Sense = "min-cost",
        constant: float = 0,
        upper_bound: float | None = None,
        children: Sequence[int | str] | None = None,
    ) -> Model:
        """Build a model from domain sizes and arrays.

        Args:
            sizes: Numbers of states, or name -> number or sequence of the states. Without names, variables are ``x0``,
                ``x1``, ...
            factors: Pairs of a scope and an array. The scope names variables by index or name; the array has an axis
                for each of them, in the same order, and holds integers (kept as int64) or floats. It may be a pandas
                Series or DataFrame, whose labels are then compared with the states, and the names of its index and
                columns with the scope. A forbidden assignment has infinity in a float array, ``elimina.FORBIDDEN`` in
                an integer array (both negated if costs are maximised), or probability 0. Arrays of int64 and floats are
                not copied: do not write to them as long as the model is used.
            sense: ``min-cost``, ``max-cost`` or ``probability``.
            constant: Constant added to each total.
            upper_bound: Bound at which totals become forbidden: see ``Model``.
            children: Child of each factor, by index or name, where the factors are conditional distributions: see
                ``Model``.

        Raises:
            TypeError: An argument has the wrong type.
            InputError: A scope names an unknown variable, or one twice; an array's shape is not that of its scope; the
                labels of a Series or DataFrame are not those of its scope and states; or ``Model`` refuses the parts.
        """
        if isinstance(sizes, str) or not arguments.is_iterable(sizes):
            raise arguments.wrong_type("sizes", sizes, "a sequence of numbers, or a mapping from names to numbers")
        if isinstance(sizes, Mapping):
            variables = [variable_of(v, states, f"sizes[{v!r}]") for v, states in sizes.items()]
        else:
            variables = [variable_of(f"x{i}", states, f"sizes[{i}]") for i, states in enumerate(sizes)]
        index = {v.name: i for i, v in enumerate(variables)}
        tables = []
        for number, (scope, values) in enumerate(_pairs(factors)):
            members: Sequence[int | str]
            indices: Sequence[int]
            if are_plain_integers(scope):
                members = indices = scope
            else:
                members = _checked_members(number, scope, index)
                indices = [index[v] if isinstance(v, str) else v for v in members]
            try:
                if type(values) is not np.ndarray and all(0 <= v < len(variables) for v in indices):
                    values = aligned([variables[v] for v in indices], values)
                tables.append(Table(indices, values))
            except InputError as error:
                raise InputError(f"factor {number} over ({', '.join(map(str, members))}): {error}") from None
        owners: Any = children
        if arguments.is_iterable(children) and not isinstance(children, str):
            owners = list(children)
            unknown = [v for v in owners if isinstance(v, str) and v not in index]
            if unknown:
                raise InputError(f"children names the unknown variable {unknown[0]!r}")
            owners = [index[v] if isinstance(v, str) else v for v in owners]
        return cls(variables, tables, sense=sense, constant=constant, upper_bound=upper_bound, children=owners)

    @classmethod
    def from_cpds(
        cls,
        cpds: Mapping[str | tuple[str, ...], Any],
        *,
        states: Mapping[str, int | Sequence[State]] | None = None,
        name: str = "",
        check: bool = True,
    ) -> Model:
        """Build a Bayesian network from its conditional distributions.

        Args:
            cpds: Variable -> its distribution. A key is the name of the variable, or a tuple of its name and those of
                its parents. A distribution is an array whose first axis is the variable's own, followed by an axis for
                each parent (or one for all combinations of parents, as in pgmpy); nested mappings from states, the
                outermost from those of the variable; or a pandas Series or DataFrame, such as a cross table, whose
                labels are the states.
            states: Variable -> its states, or their number. The states of other variables are the labels of their
                distributions, in the order of their first appearance, or 0, 1, ... where there are no labels.
            name: Name of the model.
            check: See ``Model``.

        Raises:
            TypeError: An argument has the wrong type.
            InputError: A parent has no distribution, a table does not fit the states, the order of states is unknown
                because a table has labels and another has none, a row misses 1 by more than 0.001, or the parents form
                a cycle.

        Examples:
            >>> from elimina import Model, solve
            >>> model = Model.from_cpds(
            ...     {
            ...         "rain": {"no": 0.8, "yes": 0.2},
            ...         ("wet", "rain"): {"no": {"no": 0.9, "yes": 0.25}, "yes": {"no": 0.1, "yes": 0.75}},
            ...     }
            ... )
            >>> round(solve(model, "mar", evidence={"wet": "yes"}).marginals["rain"]["yes"], 4)
            0.6522
        """
        network = network_of(cpds, states, check=check)
        children = range(len(network.variables))
        return cls(network.variables, network.tables, sense="probability", children=children, name=name, check=check)

    @cached_property
    def is_integer(self) -> bool:
        """True if the model has costs, and each is an integer (so that the optimum can be computed exactly)."""
        if self.sense == "probability" or not isinstance(self.constant, int):
            return False
        return all(dtype.kind == "i" for dtype in {f.values.dtype for f in self.factors})

    @cached_property
    def size_array(self) -> NDArray[np.int64]:
        """Domain sizes of the variables, as an array."""
        return np.array(self.sizes, dtype=np.int64)

    def index(self, name: str | int) -> int:
        """Return the index of the variable with this name or index.

        Raises:
            InputError: There is no such variable.
        """
        if isinstance(name, str):
            if name not in self._index:
                raise InputError(f"the model has no variable {name!r}{arguments.names_like(name, self._index)}")
            return self._index[name]
        try:
            index = operator.index(name)
            if isinstance(name, bool):
                raise TypeError  # True and False would pass as the indices 1 and 0
        except TypeError:
            raise InputError(f"variables are named by strings or indices, not by {name!r}") from None
        if not 0 <= index < len(self.variables):
            raise InputError(f"the model has no variable {name}; indices run from 0 to {len(self.variables) - 1}")
        return index

    def find(self, name: str) -> int | None:
        """Return the index of the variable with this name; None if there is none."""
        return self._index.get(name) if isinstance(name, str) else None

    def __getitem__(self, name: str | int) -> Variable:
        """Return the variable with this name or index.

        Raises:
            InputError: There is no such variable.
        """
        return self.variables[self.index(name)]

    def __iter__(self) -> Iterator[Variable]:
        return iter(self.variables)

    def __contains__(self, what: object) -> bool:
        return what in self._index if isinstance(what, str) else what in self.variables

    @property
    def _network_children(self) -> tuple[int, ...]:
        """Children of the factors of a Bayesian network.

        Raises:
            InputError: The model is not a Bayesian network.
        """
        if self.children is None:
            raise InputError(
                "the model has no parents and children, because its factors are not conditional distributions: build "
                "it with Model.from_cpds, or with children="
            )
        return self.children

    @cached_property
    def _graph(self) -> DirectedGraph:
        scopes = [factor.scope for factor in self.factors]
        return DirectedGraph(len(self.variables), scopes, self._network_children)

    def _index_set(self, argument: str, variables: str | int | Iterable[str | int]) -> set[int]:
        """Return the indices of one variable, or of several."""
        items = [variables] if isinstance(variables, str | int) else variables
        return set(variable_indices(self, items, argument))

    def parents(self, variable: str | int) -> list[str]:
        """Return the names of a variable's parents, in the order of its table.

        Args:
            variable: Name or index of a variable of a Bayesian network.

        Raises:
            InputError: There is no such variable, or the model is not a Bayesian network.

        Examples:
            >>> from elimina import Model
            >>> Model.from_cpds({"a": [0.5, 0.5], ("b", "a"): [[0.9, 0.2], [0.1, 0.8]]}).parents("b")
            ['a']
        """
        return names_of(self, self._graph.parents[variable_index(self, variable)])

    def children_of(self, variable: str | int) -> list[str]:
        """Return the names of a variable's children: see ``parents``."""
        return names_of(self, self._graph.children[variable_index(self, variable)])

    def ancestors(self, variables: str | int | Iterable[str | int]) -> list[str]:
        """Return the names of the parents of one or several variables, of their parents, and so on: see ``parents``."""
        indices = self._index_set("variables", variables)
        return names_of(self, sorted(self._graph.ancestors(indices) - indices))

    def markov_blanket(self, variable: str | int) -> list[str]:
        """Return the names of the variables that separate a variable from all others.

        These are the variables that share a factor with it; in a Bayesian network, its parents, its children, and the
        other parents of its children.

        Raises:
            InputError: There is no such variable.
        """
        v = variable_index(self, variable)
        blanket = {u for factor in self.factors if v in factor.scope for u in factor.scope} - {v}
        return names_of(self, sorted(blanket))

    def is_d_separated(
        self,
        one: str | int | Iterable[str | int],
        other: str | int | Iterable[str | int],
        given: str | int | Iterable[str | int] = (),
    ) -> bool:
        """Return whether the graph of a Bayesian network makes two sets of variables independent given a third.

        Args:
            one: Name or index of a variable, or several of these.
            other: Name or index of another variable, or several of these.
            given: Name or index of an observed variable, or several of these.

        Raises:
            InputError: There is no such variable, one is in two of the sets, or the model is not a Bayesian network.

        Examples:
            >>> from elimina import Model
            >>> table = [[0.9, 0.2], [0.1, 0.8]]
            >>> chain = Model.from_cpds({"a": [0.5, 0.5], ("b", "a"): table, ("c", "b"): table})
            >>> chain.is_d_separated("a", "c"), chain.is_d_separated("a", "c", given=["b"])
            (False, True)
        """
        sets = {name: self._index_set(name, v) for name, v in (("one", one), ("other", other), ("given", given))}
        for first, second in itertools.combinations(sets, 2):
            for v in sets[first] & sets[second]:
                name = self.variables[v].name
                raise InputError(f"variable {name!r} is in both {first} and {second}: leave it out of one of them")
        return not self._graph.reachable(sets["one"], sets["given"]) & sets["other"]

    def do(
        self, interventions: Mapping[str, State | StateIndex] | None = None, /, **states: State | StateIndex
    ) -> Model:
        """Return the network in which some variables are set to states from outside, whatever their parents.

        Their distributions are replaced by certainty, so that observations of them say nothing about their causes
        (truncated factorisation: Pearl, 2009, "Causality", section 3.2). The graph has to be causal.

        Args:
            interventions: Variable (name or index) -> its state.
            states: Interventions by keyword: ``model.do(x="on")``.

        Raises:
            InputError: There is no such variable or state, a variable has two, or the model is not a Bayesian network.
            TypeError: ``interventions`` is not a mapping.

        Examples:
            >>> from elimina import Model, solve
            >>> model = Model.from_cpds({"rain": [0.8, 0.2], ("wet", "rain"): [[0.9, 0.25], [0.1, 0.75]]})
            >>> solve(model.do(wet=1), "mar").marginals["rain"][1]
            0.2
        """
        if interventions is not None:
            arguments.check_mapping("interventions", interventions)
        values: dict[int, int] = {}
        for variable, state in (*(interventions or {}).items(), *states.items()):
            v = variable_index(self, variable)
            if v in values:
                raise InputError(f"variable {self.variables[v].name!r} is set twice: give it one state")
            values[v] = index_of(self.variables[v], state)
        families = [
            (factor, child)
            for factor, child in zip(self.factors, self._network_children, strict=True)
            if child not in values
        ]
        families += [(Table([v], np.eye(1, self.sizes[v], x)[0]), v) for v, x in values.items()]
        factors, children = [factor for factor, _ in families], [child for _, child in families]
        # The rows are not checked again: an earlier check=False may have accepted sums other than 1.
        return Model(
            self.variables,
            factors,
            sense=self.sense,
            constant=self.constant,
            children=children,
            name=self.name,
            check=False,
        )

    def terms(self, assignment: Sequence[int], logarithms: bool = True) -> list[int | float]:
        """Return the contribution of each factor at an assignment: a cost, or the natural logarithm of a probability.

        A forbidden integer cost becomes infinity (minus infinity where costs are maximised), a probability of 0 minus
        infinity.

        Args:
            assignment: One value index for each variable.
            logarithms: False for probabilities as they are.

        Raises:
            InputError: A value is outside its variable's domain.
        """
        try:
            values = self.tables.listed.values(assignment)
        except ValueError as error:
            raise InputError(f"the assignment does not fit the model: {error}") from None
        except TypeError:
            taken = "a sequence with the index of each variable's state; indices_of(assignment) returns it"
            raise arguments.wrong_type("assignment", assignment, taken) from None
        if self.sense == "probability" and not logarithms:
            return values
        if self.sense == "probability":
            return [math.log(p) if p > 0 else -math.inf for p in values]
        forbidden, worst = (forbidden_value(self.sense, dtype) for dtype in (np.int64, np.float64))
        if forbidden not in values:
            return values
        return [worst if isinstance(v, int) and v == forbidden else v for v in values]

    def score(self, assignment: Sequence[int]) -> int | float:
        """Return the objective at an assignment (one value index for each variable); exact for integer costs.

        Probabilities: the natural logarithm of the product. Forbidden assignments score as in ``terms``.
        """
        return self.total(self.terms(assignment))

    def total(self, terms: Sequence[int | float]) -> int | float:
        """Return the objective: the sum of the constant and the contributions of all factors."""
        return rounded(added([self.constant, *terms]), self.decimals)

    @property
    def sign(self) -> int:
        """1 if totals are minimised, -1 if they are maximised."""
        return 1 if self.sense == "min-cost" else -1

    def ends(self, bound: float | None, total: float | None) -> tuple[float | None, float | None]:
        """Return the lower and the upper bound on the optimum, from a bound on all totals and an assignment's total."""
        return (bound, total) if self.sign == 1 else (total, bound)

    def states_at(self, indices: Iterable[int]) -> dict[str, State]:
        """Return the assignment (variable name -> state) with these indices of states, one for each variable.

        Raises:
            InputError: There are more or fewer indices than variables, or one is out of range.
            TypeError: ``indices`` is not a sequence of integers.
        """
        listed = arguments.elements("indices", indices, "a sequence with the index of each variable's state")
        if len(listed) != len(self.variables):
            raise InputError(
                f"indices has {counted(len(listed), 'element')}, and the model has "
                f"{counted(len(self.variables), 'variable')}"
            )
        return {variable.name: variable.state(index) for variable, index in zip(self.variables, listed, strict=True)}

    def indices_of(self, assignment: Mapping[str, State]) -> list[int]:
        """Return the index of each variable's state in an assignment of all variables.

        Raises:
            InputError: A variable has no state, or one that does not exist.
            TypeError: ``assignment`` is not a mapping.
        """
        arguments.check_mapping("assignment", assignment)
        missing = next((v.name for v in self.variables if v.name not in assignment), None)
        if missing is not None:
            raise InputError(f"the assignment has no state of variable {missing!r}; all variables need one")
        return [v.index(assignment[v.name]) for v in self.variables]

    def is_beyond_bound(self, value: float) -> bool:
        """Return whether a total reaches or exceeds ``upper_bound`` (floats: up to rounding), and so is forbidden."""
        if self.upper_bound is None:
            return False
        exact = isinstance(value, int) and isinstance(self.upper_bound, int)
        slack = 0 if exact else 1e-13 * max(1.0, abs(self.upper_bound))
        return self.sign * (value - self.upper_bound) >= -slack

    def _details(self) -> str:
        rows = ((v.name, str(v.size), sample(v.all_states, v.size)) for v in self.variables)
        header = "variable", "number of states", "states"
        return table_of(header, rows, len(self.variables))

    def _figures(self) -> list[tuple[str, str]]:
        cells = max((math.prod(factor.sizes) for factor in self.factors), default=0)
        smallest, largest = min(self.sizes, default=0), max(self.sizes, default=0)
        states = f"{smallest} to {largest} states" if smallest < largest else counted(largest, "state")
        rows = [
            ("objective", self.sense),
            ("variables", f"{len(self.variables):,}" + (f" with {states}" if self.sizes else "")),
            ("factors", f"{len(self.factors):,} of up to {counted(cells, 'cell')}"),
        ]
        return [("name", self.name), *rows] if self.name else rows


def _number(name: str, number: float) -> int | float:
    """Return a Python or NumPy number, an int for an integer, otherwise a float; reject numbers beyond a float."""
    exact = operator.index(number) if isinstance(number, bool) else arguments.number(name, number)
    is_infinite = number in (math.inf, -math.inf)
    if (exact == 0) != (number == 0) or (abs(exact) > sys.float_info.max and not is_infinite):
        raise InputError(f"{name} is {arguments.shown(number)}, which is out of the range of a float")
    return exact


def added(terms: Sequence[int | float]) -> int | float:
    """Return a sum: exact for integers, rounded once for floats; the first infinite term if there is one."""
    # Each type is checked once, since a million terms have only a few types.
    if all(issubclass(kind, int) for kind in set(map(type, terms))):
        return sum(terms)
    infinite = next((term for term in terms if math.isinf(term)), None)
    return _sum(terms) if infinite is None else infinite


def rounded(total: _Total, decimals: int | None) -> _Total:
    """Return a total of costs, rounded to ``decimals`` decimals if the change is a rounding error; else unchanged."""
    if decimals is None or not isinstance(total, float) or not math.isfinite(total):
        return total
    nearest = round(total, decimals)
    return cast(_Total, nearest) if abs(nearest - total) < _MAX_ROUNDING_ERROR / 10**decimals else total


def _sum(terms: Sequence[int | float]) -> float:
    """Return a sum of finite numbers, rounded once.

    Raises:
        InputError: The sum is beyond the range of a float.
    """
    if all(float(term) == term for term in terms):
        with contextlib.suppress(OverflowError):  # a partial sum may be too large where the sum is not
            return math.fsum(terms)
    from fractions import Fraction

    try:
        return float(sum(map(Fraction, terms)))
    except OverflowError:
        raise InputError("the assignment's total is beyond the range of a float; scale the costs down") from None


def _all(name: str, elements: Iterable[_Element], kind: type[_Element]) -> tuple[_Element, ...]:
    """Return parts of a model as a tuple, after checking that all are of a class."""
    expected = f"an iterable of {kind.__name__} objects"
    checked = tuple(arguments.elements(name, elements, expected))
    # Each type is compared once, since a million parts usually have one type.
    if all(issubclass(element_type, kind) for element_type in set(map(type, checked))):
        return checked
    for number, element in enumerate(checked):
        if not isinstance(element, kind):
            raise arguments.wrong_type(f"{name}[{number}]", element, f"a {kind.__name__}")
    return checked


def _pairs(factors: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(factors, str | Mapping) or not arguments.is_iterable(factors):
        raise arguments.wrong_type("factors", factors, "an iterable of pairs, a scope and an array")
    for number, factor in enumerate(factors):
        try:
            scope, values = factor
        except (TypeError, ValueError):
            raise arguments.wrong_type(f"factors[{number}]", factor, "a pair: a scope and an array") from None
        yield scope, values


def _checked_members(number: int, scope: Any, index: Mapping[str, int]) -> list[int | str]:
    """Return the variables in the scope of a factor, after checking their types and names.

    Args:
        number: Number of the factor.
        scope: Names and indices of variables.
        index: Indices of the variables by name.
    """
    argument, taken = f"factors[{number}][0]", "a sequence of variables, by name or index"
    arguments.in_order(argument, scope)
    members = arguments.elements(argument, scope, taken)
    if not all(isinstance(v, str | int | np.integer) for v in members):
        raise arguments.wrong_type(argument, scope, taken)
    names = [v for v in members if isinstance(v, str)]
    unknown = [v for v in names if v not in index]
    if unknown:
        raise InputError(f"factor {number} names the unknown variable {unknown[0]!r}")
    twice = [v for v in names if names.count(v) > 1]
    if twice:
        raise InputError(f"factor {number} names variable {twice[0]!r} twice; join its axes first")
    return members


def _indices(name: str, indices: Iterable[int]) -> tuple[int, ...]:
    try:
        return tuple(map(operator.index, indices))
    except TypeError:
        raise arguments.wrong_type(name, indices, "integers, the indices of variables, or None") from None


def variable_indices(model: Model, names: Iterable[str | int], argument: str) -> list[int]:
    """Return the indices of variables that are given by names or indices.

    Args:
        model: The variables' model.
        names: Names or indices.
        argument: Name of ``names`` in errors.

    Raises:
        InputError: There is no such variable.
        TypeError: ``names`` is a single name, a mapping, or nothing that can be iterated over.
    """
    # A mapping may be meant as evidence, and iterating over it would ignore its values.
    if isinstance(names, str | bytes | Mapping) or not arguments.is_iterable(names):
        example = f", such as [{names!r}]" if isinstance(names, str) else ""
        raise arguments.wrong_type(argument, names, f"a sequence of names or indices of variables{example}")
    return [variable_index(model, name) for name in names]


def names_of(model: Model, indices: Iterable[int]) -> list[str]:
    """Return the names of variables. An index may be ambiguous (see ``variable_index``), a name is not."""
    return [model.variables[v].name for v in indices]


def variable_index(model: Model, name: str | int) -> int:
    """Return the index of the variable with this name or index.

    Raises:
        InputError: There is no such variable, or an integer is one variable's index and another one's name: networks
            of other packages may have integers as names.
    """
    index = model.index(name)
    index_of_name = None if isinstance(name, str) else model.find(str(name))
    if index_of_name is not None and index_of_name != index:
        raise InputError(
            f"variable {name} may be the one named {str(name)!r}, or the one of index {name}, named "
            f"{model.variables[index].name!r}; give its name"
        )
    return index
