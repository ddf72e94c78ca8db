"""Influence diagrams: chance variables, decisions with their observations, and utilities that are added up."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from elimina import arguments
from elimina.display import Displayed, sample
from elimina.errors import InputError
from elimina.model.conditional_tables import aligned_array, network_of
from elimina.model.decision_graph import DecisionGraph, graph_of
from elimina.model.distributions import find_cycle
from elimina.model.model import Model, names_of, variable_index, variable_indices
from elimina.model.named_table import NamedTable
from elimina.model.policy import Policy
from elimina.model.states import State, StateIndex, native
from elimina.model.table import Table
from elimina.model.variable import Variable, variable_of
from elimina.option_names import by_interface
from elimina.system import cached_property

Floats = NDArray[np.float64]

MAX_UTILITY = 1e300
"""Largest absolute value of a utility, so that sums of a few are finite."""


class DiagramParts(NamedTuple):
    """Parts of an influence diagram that a reader has read: see ``DecisionNetwork``."""

    variables: Sequence[Variable]
    factors: Sequence[Table]
    children: Sequence[int]
    decisions: Mapping[Any, Sequence[str | int]]
    utilities: Mapping[str, Table]
    no_forgetting: bool
    name: str


@arguments.with_checked_methods
class DecisionNetwork(Displayed):
    """An influence diagram, checked: a Bayesian network with decisions among its variables, and utilities.

    ``elimina.InfluenceDiagram`` describes the arguments, the attributes and the errors.
    """

    def __init__(
        self,
        variables: Iterable[Variable],
        factors: Iterable[Table],
        children: Sequence[int],
        decisions: Mapping[Any, Sequence[str | int]],
        utilities: Mapping[str, Table],
        *,
        no_forgetting: bool = False,
        name: str = "",
        check: bool = True,
    ) -> None:
        chance = Model(variables, factors, sense="probability", children=children, name=name, check=check)
        _check_mappings(decisions=decisions, utilities=utilities)
        self.variables, self.name = chance.variables, name
        self.no_forgetting = arguments.flag("no_forgetting", no_forgetting)
        listed = {
            variable_index(chance, decision): _observed_by(chance, decision, names)
            for decision, names in decisions.items()
        }
        self._check_roles(children, listed)
        uniform = [Table([d], np.full(chance.sizes[d], 1 / chance.sizes[d])) for d in listed]
        tables = [*chance.factors, *uniform]
        self.network = Model(
            chance.variables, tables, sense="probability", children=[*children, *listed], name=name, check=False
        )
        self.utilities = {utility: self._checked_utility(utility, table) for utility, table in utilities.items()}
        self._scopes = {child: factor.scope for child, factor in zip(children, chance.factors, strict=True)}
        self._check_cycles(listed)
        self.observed = self._with_memory(listed) if self.no_forgetting else listed

    def _check_roles(self, children: Sequence[int], decisions: Mapping[int, Sequence[int]]) -> None:
        if not decisions:
            advice = by_interface("use elimina.solve", "use 'elimina solve'")
            raise InputError(f"the diagram has no decision: for posteriors of a network, {advice}")
        for d in decisions:
            if d in children:
                raise InputError(
                    f"variable {self.variables[d].name!r} is a decision and has a distribution: leave one of them out"
                )
        for v, variable in enumerate(self.variables):
            if v not in decisions and v not in children:
                raise InputError(
                    f"variable {variable.name!r} has no distribution, and is not a decision: add one of them"
                )

    def _checked_utility(self, utility: str, table: Table) -> Table:
        """Check a utility, and return it as a dense table of floats."""
        if not isinstance(utility, str):
            raise arguments.wrong_type("a name of utilities", utility, "text, the name of a utility")
        if not isinstance(table, Table):
            raise arguments.wrong_type(f"utilities[{utility!r}]", table, "a Table")
        if self.network.find(utility) is not None:
            raise InputError(f"the utility {utility!r} has the name of a variable: give it another one")
        misfit = [v for v, size in zip(table.scope, table.sizes, strict=True) if not self._has(v, size)]
        if misfit:
            raise InputError(
                f"the utility {utility!r} is over the variables {table.scope} with {table.sizes} states, and the "
                f"diagram has no variable {misfit[0]} of that size"
            )
        numbers = np.asarray(table.dense(), dtype=np.float64)
        is_valid = np.abs(numbers) <= MAX_UTILITY
        if not is_valid.all():
            raise InputError(
                f"the utility {utility!r} has the value {numbers[~is_valid].flat[0]}: utilities are numbers from "
                f"-{MAX_UTILITY:g} to {MAX_UTILITY:g}; give outcomes to be avoided a large negative one"
            )
        return Table(table.scope, numbers)

    def _has(self, variable: int, size: int) -> bool:
        return 0 <= variable < len(self.variables) and self.variables[variable].size == size

    def _check_cycles(self, decisions: Mapping[int, Sequence[int]]) -> None:
        cycle = find_cycle({**self._scopes, **decisions})
        if cycle:
            path = " -> ".join(self.variables[v].name for v in reversed(cycle))
            raise InputError(f"the arcs form a cycle: {path}; a decision cannot observe what it affects")

    def _with_memory(self, listed: Mapping[int, tuple[int, ...]]) -> dict[int, tuple[int, ...]]:
        """Return the observations of each decision if it sees all earlier decisions and their observations.

        Raises:
            InputError: The order of the decisions is unknown, because no path of arcs joins all of them.
        """
        graph = graph_of(len(self.variables), self._scopes, listed, [])
        observed: dict[int, tuple[int, ...]] = {}
        memory: tuple[int, ...] = ()
        earlier: int | None = None
        for d in graph.sequence_of(listed):
            if earlier is not None and earlier not in graph.ancestors([d]):
                names = [self.variables[v].name for v in (earlier, d)]
                raise InputError(
                    f"decisions without forgetting need an order, and neither {names[0]!r} nor {names[1]!r} comes "
                    f"first: let the later one observe the earlier one, such as {{{names[1]!r}: [{names[0]!r}]}}"
                )
            observed[d] = tuple(dict.fromkeys((*memory, *listed[d])))
            memory, earlier = (*observed[d], d), d
        return observed

    @classmethod
    def from_tables(
        cls,
        chance: Mapping[str | tuple[str, ...], Any],
        decisions: Mapping[str, Sequence[str]],
        utilities: Mapping[str | tuple[str, ...], Any],
        *,
        states: Mapping[str, int | Sequence[State]],
        no_forgetting: bool = False,
        name: str = "",
        check: bool = True,
    ) -> Self:
        """Build a diagram from tables by name.

        Args:
            chance: Distributions of the chance variables, as ``Model.from_cpds`` takes them: a key is the name of the
                variable, or a tuple of its name and those of its parents.
            decisions: Decision -> the names of the variables that it observes.
            utilities: Tables of numbers, which are added up. A key is a tuple of the name of the utility and the
                variables that it depends on. A table is an array with an axis for each variable, nested mappings from
                their states, or a pandas Series or DataFrame with the states as labels.
            states: Variable -> its states, or their number: for each decision, and for other variables as in
                ``Model.from_cpds``.
            no_forgetting: True if each decision sees all earlier ones and their observations.
            name: Name of the diagram.
            check: See ``Model``.

        Raises:
            TypeError: An argument has the wrong type.
            InputError: The states of a decision are missing, a name is unknown, or the class refuses the parts.
        """
        _check_mappings(chance=chance, decisions=decisions, utilities=utilities, states=states)
        for decision in decisions:
            if not isinstance(decision, str):
                raise arguments.wrong_type("a key of decisions", decision, "the name of a decision")
            if decision not in states:
                raise InputError(f"the decision {decision!r} has no states: give them, states={{{decision!r}: [...]}}")
        utility_names = set(map(_first_name, utilities)) - set(map(_first_name, chance)) - set(decisions)
        for key in chance:
            _check_parents(utility_names, key)
        repeated_key = next((key for key in chance if _first_name(key) in decisions), None)
        if repeated_key is not None:
            raise InputError(
                f"the key {repeated_key!r} of chance is a distribution of a decision: leave one of them out"
            )
        # Each decision gets a uniform distribution without parents, so that chance variables may have it as a parent.
        sizes = {d: variable_of(d, states[d], f"states[{d!r}]").size for d in decisions}
        uniform = {d: np.full(size, 1 / size) for d, size in sizes.items()}
        families = network_of({**chance, **uniform}, states, check=check, argument="chance")
        children = range(len(families.variables))
        network = Model(families.variables, families.tables, sense="probability", children=children, check=check)
        of_chance = [n for n, variable in enumerate(network.variables) if variable.name not in decisions]
        tables_of_utilities: dict[str, Table] = {}
        for key, values in utilities.items():
            utility, table = _utility_of(network, key, values)
            if utility in tables_of_utilities:
                raise InputError(f"two utilities are named {utility!r}: give one of them another name")
            tables_of_utilities[utility] = table
        return cls(
            network.variables,
            [network.factors[n] for n in of_chance],
            of_chance,
            decisions,
            tables_of_utilities,
            no_forgetting=no_forgetting,
            name=name,
            check=False,
        )

    @property
    def decisions(self) -> dict[str, list[str]]:
        """Decision -> the variables that it sees, by name."""
        names = [v.name for v in self.variables]
        return {names[d]: [names[v] for v in observations] for d, observations in self.observed.items()}

    @property
    def graph(self) -> DecisionGraph:
        """The graph of the diagram: a new object at each access, since its users remove arcs."""
        scopes = [table.scope for table in self.utilities.values()]
        return graph_of(len(self.variables), self._scopes, self.observed, scopes)

    @cached_property
    def affected(self) -> frozenset[int]:
        """Indices of the variables that a decision affects, decisions included."""
        graph = self.graph
        return frozenset().union(*(graph.descendants(d) for d in self.observed)) - graph.utilities

    def decision_index(self, decision: str | int) -> int:
        """Return the index of the decision with this name or index.

        Raises:
            InputError: There is no such decision.
        """
        d = variable_index(self.network, decision)
        if d not in self.observed:
            raise InputError(f"{self.variables[d].name!r} is not a decision; the decisions are {self._decision_names}")
        return d

    @property
    def _decision_names(self) -> str:
        return sample([self.variables[d].name for d in self.observed], len(self.observed))

    def with_no_forgetting(self) -> Self:
        """Return the diagram in which each decision also sees all earlier ones and their observations.

        Raises:
            InputError: The order of the decisions is unknown, because no path of arcs joins all of them.
        """
        return self._with(self.observed, no_forgetting=True)

    def with_observations(self, decision: str | int, variables: Sequence[str | int]) -> Self:
        """Return the diagram in which a decision sees more variables.

        Args:
            decision: The decision, by name or index.
            variables: Further variables for it to see.

        Raises:
            InputError: There is no such decision or variable, or the decision affects one of the variables.
        """
        d, added = self.decision_index(decision), variable_indices(self.network, variables, "variables")
        later = next((v for v in added if v in self.graph.descendants(d)), None)
        if later is not None:
            names = [self.variables[v].name for v in (d, later)]
            raise InputError(f"the decision {names[0]!r} affects {names[1]!r}, so it cannot observe it")
        observations = tuple(dict.fromkeys((*self.observed[d], *added)))
        return self._with({**self.observed, d: observations}, no_forgetting=self.no_forgetting)

    def _with(self, observed: Mapping[int, Sequence[int]], *, no_forgetting: bool) -> Self:
        count = len(self._scopes)
        return type(self)(
            self.variables,
            self.network.factors[:count],
            list(self._scopes),
            {self.variables[d].name: names_of(self.network, seen) for d, seen in observed.items()},
            self.utilities,
            no_forgetting=no_forgetting,
            name=self.name,
            check=False,
        )

    def policy_of(self, table: Table) -> Policy:
        """Return a distribution, whose last axis is the decision's, as a policy."""
        variables = [self.variables[v] for v in table.scope]
        return Policy(np.moveaxis(table.dense(), -1, 0), [variables[-1], *variables[:-1]])

    def with_policies(self, policies: Mapping[str, Any]) -> Model:
        """Return the Bayesian network in which each decision follows a policy.

        Args:
            policies: Decision -> its policy: a state that is always chosen; a ``Policy``, as ``solve`` returns it; or a
                distribution of the decision given all that it sees, as ``Model.from_cpds`` takes it.

        Raises:
            InputError: A decision has no policy, or a policy does not fit.
            TypeError: ``policies`` is not a mapping.
        """
        tables = self.policy_tables(policies)
        missing = next((d for d in self.observed if d not in tables), None)
        if missing is not None:
            raise InputError(f"the decision {self.variables[missing].name!r} has no policy: add one")
        return self.network_of(tables)

    def policy_tables(self, policies: Mapping[str, Any]) -> dict[int, Table]:
        """Return the distribution of each decision with a policy, by its index: see ``with_policies``."""
        _check_mappings(policies=policies)
        tables = {self.decision_index(d): self._policy_table(d, policy) for d, policy in policies.items()}
        network = self.network_of(tables, check=True)
        return {d: network.factors[len(self._scopes) + n] for n, d in enumerate(self.observed) if d in tables}

    def _policy_table(self, decision: str, policy: Any) -> Table:
        """Return a policy as a distribution whose last axis is the decision."""
        d = self.decision_index(decision)
        variable = self.variables[d]
        if isinstance(policy, str | int | np.integer | np.bool_ | StateIndex):
            return Table([d], np.eye(variable.size)[variable.index(native(policy))])
        with _titled(f"the policy of {variable.name!r}"):
            if isinstance(policy, NamedTable):
                observations = [variable_index(self.network, name) for name in policy.names]
                if observations[:1] != [d] or not set(observations[1:]) <= set(self.observed[d]):
                    raise InputError(
                        f"its axes are {', '.join(policy.names)}; give the axis of the decision, then those of "
                        "variables that it sees"
                    )
                policy = policy.array
            else:
                observations = [d, *self.observed[d]]
            array = aligned_array([self.variables[v] for v in observations], policy)
            return Table([*observations[1:], d], np.moveaxis(np.asarray(array, dtype=np.float64), 0, -1))

    def network_of(self, policies: Mapping[int, Table], *, check: bool = False) -> Model:
        """Return the Bayesian network in which some decisions follow policies; the others are uniformly distributed."""
        count = len(self._scopes)
        tables = list(self.network.factors[:count])
        tables += [policies.get(d, self.network.factors[count + n]) for n, d in enumerate(self.observed)]
        children = [*self._scopes, *self.observed]
        return Model(self.variables, tables, sense="probability", children=children, name=self.name, check=check)

    def _figures(self) -> list[tuple[str, str]]:
        chance = [v.name for n, v in enumerate(self.variables) if n not in self.observed]
        rows = [
            ("chance variables", sample(chance, len(chance)) or "none"),
            *(
                (f"decision {d}", f"sees {sample(observations, len(observations)) or 'nothing'}")
                for d, observations in self.decisions.items()
            ),
            ("utilities", sample(self.utilities, len(self.utilities)) or "none"),
        ]
        return [("name", self.name), *rows] if self.name else rows


_MAPPINGS = {
    "chance": "a mapping from names to distributions, such as {('wet', 'rain'): [[0.9, 0.1], [0.1, 0.9]]}",
    "decisions": "a mapping from decisions to what they observe, such as {'umbrella': ['forecast']}",
    "utilities": "a mapping from names to tables, such as {('comfort', 'rain'): [10, 0]}",
    "states": "a mapping from names to states, or to their number",
    "policies": "a mapping from decisions to policies",
}
"""Descriptions of arguments that are mappings, for errors."""


def _check_mappings(**mappings: Any) -> None:
    for argument, mapping in mappings.items():
        if not isinstance(mapping, Mapping):
            raise arguments.wrong_type(argument, mapping, _MAPPINGS[argument])


@contextlib.contextmanager
def _titled(what: str) -> Iterator[None]:
    """Put the name of the table before the text of an error that the ``with`` block raises."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{what}: {error}") from None


def _observed_by(model: Model, decision: str | int, names: Any) -> tuple[int, ...]:
    """Return the indices of the variables that a decision lists."""
    observed = tuple(dict.fromkeys(variable_indices(model, names, f"decisions[{decision!r}]")))
    if variable_index(model, decision) in observed:
        raise InputError(
            f"decisions[{decision!r}] names the decision itself, which cannot observe itself: leave it out"
        )
    return observed


def _first_name(key: Any) -> Any:
    """Return the first name in a key: that of the variable with a distribution, or of the utility."""
    return key[0] if isinstance(key, tuple) and key else key


def _check_parents(utilities: Iterable[str], key: Any) -> None:
    utility = next((name for name in utilities if isinstance(key, tuple) and name in key[1:]), None)
    if utility is not None:
        raise InputError(
            f"the key {key!r} of chance names the utility {utility!r} as a parent: no variable depends on a utility"
        )


def _utility_of(network: Model, key: Any, values: Any) -> tuple[str, Table]:
    """Return the name and the table of a utility."""
    names = (key,) if isinstance(key, str) else key
    if not isinstance(names, tuple) or not names or not all(isinstance(name, str) for name in names):
        taken = "a tuple of names: the utility, then the variables that it depends on"
        raise arguments.wrong_type("a key of utilities", key, taken)
    with _titled(f"the utility {names[0]!r}"):
        scope = variable_indices(network, names[1:], "its variables")
        return names[0], Table(scope, aligned_array([network.variables[v] for v in scope], values))
