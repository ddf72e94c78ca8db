"""pgmpy's interface of exact inference: ``VariableElimination`` with elimina's engine (tested with pgmpy 1.1)."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina import api, arguments
from elimina.arguments import check_mapping
from elimina.errors import ImpossibleEvidenceError, InputError
from elimina.io.pgmpy_networks import from_pgmpy, node_states
from elimina.methods.junction_tree import JunctionTree
from elimina.model.model import Model
from elimina.model.states import StateIndex, is_missing
from elimina.model.variable import index_of, listed_states
from elimina.planning.options import Options
from elimina.system import import_package, require

_ORDERS = ("greedy", "minfill", "minneighbors", "minweight", "weightedminfill")
"""pgmpy's heuristics of elimination orders, in lower case."""


class UnknownStateError(InputError, KeyError):
    """Error about evidence on a state that its variable does not have; pgmpy raises a ``KeyError``."""

    __str__ = InputError.__str__


class VariableElimination:
    """Queries with the interface of ``pgmpy.inference.VariableElimination``, and predictions with that of networks.

    Arguments and answers hold pgmpy's own variables and states.

    Args:
        model: A network of pgmpy, or a model.

    Raises:
        InputError: ``model`` is neither.
    """

    def __init__(self, model: Any) -> None:
        self.model = model if isinstance(model, Model) else from_pgmpy(model)
        states: dict[Any, list[Any]] = {v.name: listed_states(v) for v in self.model.variables}
        if not isinstance(model, Model):
            states = node_states(model)
        self._nodes = {str(node): node for node in states}
        self._states = {str(node): list_of_states for node, list_of_states in states.items()}
        # Among pgmpy's classes without conditional distributions, only trees of clusters normalise their answers.
        is_tree = hasattr(model, "get_factors") and all(isinstance(node, tuple) for node in model.nodes())
        self._is_normalised = self.model.children is not None or isinstance(model, Model) or is_tree
        # An answer in pgmpy's form has no place for an estimated error, so all answers are exact.
        self._tree = JunctionTree(self.model, options=Options(exact=True))

    def query(
        self,
        variables: Sequence[Hashable],
        evidence: Mapping[Hashable, Any] | None = None,
        virtual_evidence: Sequence[Any] | None = None,
        elimination_order: str | Sequence[Hashable] | None = "greedy",
        joint: bool = True,
        show_progress: bool = False,
    ) -> Any:
        """Return the posterior of variables: a ``DiscreteFactor``, or one for each variable.

        As in pgmpy, answers about a Markov network or a factor graph are not normalised: they are sums of the products
        of all factors.

        Args:
            variables: Variables of the query, at least one.
            evidence: Mapping from variables to observed states.
            virtual_evidence: Distributions of pgmpy over one variable each, as likelihoods. Several of one variable are
                multiplied. The variable may also have an observed state.
            elimination_order: One of pgmpy's heuristics, or a list of all variables that have to be eliminated. The
                order is checked and not used: elimina searches for an order itself, and no order changes the answer.
            joint: True for the joint distribution, False for a dictionary of distributions.
            show_progress: Ignored; pgmpy has it.

        Raises:
            InputError: There is no such variable or state, a variable of the query is observed, the query is empty, the
                order names one of these variables or leaves one out, or a sum is beyond the range of a float.
            ImpossibleEvidenceError: The evidence has probability 0, and answers are normalised.
        """
        names = self._unobserved("variables", variables, evidence)
        observed = self._observed(evidence)
        if not names:
            raise InputError("variables is empty: a query must contain at least one variable")
        evidence_by_name = self._evidence(evidence, virtual_evidence)
        self._get_elimination_order(names, observed, elimination_order)
        with self._tree.lock:
            self._tree.set_evidence(evidence_by_name)
            total = self._total()
            if joint:
                answers = {tuple(names): self._tree.joint(names) if total else self._zeros(names)}
            elif total:
                answers = {(name,): p for name, p in self._tree.marginals(names).items()}
            else:
                answers = {(name,): self._zeros([name]) for name in names}
        factors = [self._factor(scope, total * values) for scope, values in answers.items()]
        return factors[0] if joint else {factor.variables[0]: factor for factor in factors}

    def map_query(
        self,
        variables: Sequence[Hashable] | None = None,
        evidence: Mapping[Hashable, Any] | None = None,
        virtual_evidence: Sequence[Any] | None = None,
        elimination_order: str | Sequence[Hashable] | None = "MinFill",
        show_progress: bool = False,
    ) -> dict[Any, Any]:
        """Return the most probable joint states of variables, all others summed out.

        Args:
            variables: Variables of the query; None, or none, for all that are not observed.
            evidence: Mapping from variables to observed states.
            virtual_evidence: See ``query``.
            elimination_order: See ``query``.
            show_progress: Ignored; pgmpy has it.

        Raises:
            InputError: There is no such variable or state, a variable of the query is observed, or the order names one
                of these variables or leaves one out.
            ImpossibleEvidenceError: The evidence has probability 0.
        """
        queried = self._unobserved("variables", [] if variables is None else variables, evidence)
        observed = self._observed(evidence)
        evidence_by_name = self._evidence(evidence, virtual_evidence)
        unobserved = [v.name for v in self.model.variables if v.name not in observed]
        if queried:
            self._get_elimination_order(queried, observed, elimination_order)
        else:
            queried = unobserved
        if set(queried) >= set(unobserved):
            result = api.solve(self.model, "mpe", evidence=evidence_by_name)
        else:
            result = api.solve(self.model, "mmap", query=queried, evidence=evidence_by_name)
        if result.assignment is None:
            raise ImpossibleEvidenceError(
                "the evidence has probability 0, so there are no posteriors: change the evidence"
            )
        indices = {name: self.model[name].index(result.assignment[name]) for name in queried}
        return {self._nodes[name]: self._states[name][index] for name, index in indices.items()}

    def max_marginal(
        self,
        variables: Sequence[Hashable] | None = None,
        evidence: Mapping[Hashable, Any] | None = None,
        elimination_order: str | Sequence[Hashable] | None = "MinFill",
        show_progress: bool = False,
    ) -> float:
        """Return the largest max-marginal of variables: all others are maximised out.

        As in pgmpy, a network's max-marginals are normalised over the variables' states, and variables that are
        ancestors neither of the query nor of the evidence are left out first. A query of several variables takes one
        propagation for each combination of the states of all but one of them.

        Args:
            variables: Variables of the query; None for the best joint probability of all variables and the evidence.
            evidence: Mapping from variables to observed states.
            elimination_order: See ``query``.
            show_progress: Ignored; pgmpy has it.

        Raises:
            InputError: There is no such variable or state, or a variable of the query is observed.
            ImpossibleEvidenceError: The evidence has probability 0.
        """
        queried = self._unobserved("variables", [] if variables is None else variables, evidence)
        observed = self._observed(evidence)
        evidence_by_name = self._evidence(evidence, None)
        names = list(dict.fromkeys(self.model[name].name for name in queried))
        if names:
            self._get_elimination_order(names, observed, elimination_order)
        is_network = self.model.children is not None
        model = _ancestral(self.model, [*names, *evidence_by_name]) if names and is_network else self.model
        best = api.solve(model, "mpe", evidence=evidence_by_name).value
        if best is None:
            raise ImpossibleEvidenceError("the evidence has probability 0, so there are no max-marginals")
        if not names or not is_network:
            return math.exp(best)
        *others, last = names
        total, tree = 0.0, JunctionTree(model, options=Options(exact=True))
        for states in itertools.product(*(range(model[name].size) for name in others)):
            tree.set_evidence({**evidence_by_name, **{v: StateIndex(x) for v, x in zip(others, states, strict=True)}})
            with suppress(ImpossibleEvidenceError):
                relative = tree.max_marginals([last])[last].sum()
                total += math.exp(tree.mpe()[1] - best) * float(relative)
        return 1 / total

    def induced_graph(self, elimination_order: Sequence[Hashable]) -> Any:
        """Return the networkx graph of the factors' scopes and of the scopes that arise during elimination.

        Args:
            elimination_order: All variables, in the order in which they are eliminated.

        Raises:
            InputError: A variable is missing or unknown.
        """
        networkx = require("networkx", "networkx", "induced_graph")
        return networkx.Graph(
            (self._nodes[a], self._nodes[b])
            for clique in self._cliques(elimination_order)
            for a, b in itertools.combinations(sorted(clique), 2)
        )

    def induced_width(self, elimination_order: Sequence[Hashable]) -> int:
        """Return the largest number of variables in a table that arises during elimination.

        Args:
            elimination_order: All variables, in the order in which they are eliminated.

        Raises:
            InputError: A variable is missing or unknown.
        """
        return max(map(len, self._cliques(elimination_order)), default=1) - 1

    def _cliques(self, elimination_order: Sequence[Hashable]) -> list[set[str]]:
        """Return each eliminated variable with its neighbours at the time of its elimination."""
        order = _named("elimination_order", elimination_order)
        names = [v.name for v in self.model.variables]
        if sorted(order) != sorted(names):
            raise InputError(f"the elimination order {order} has to name each of the variables {names} once")
        scopes = [{names[v] for v in factor.scope} for factor in self.model.factors]
        cliques = []
        for name in order:
            clique = {name}.union(*(scope for scope in scopes if name in scope))
            scopes = [scope for scope in scopes if name not in scope] + [clique - {name}]
            cliques.append(clique)
        return cliques

    def _get_elimination_order(
        self,
        variables: Sequence[Hashable],
        evidence: Mapping[Hashable, Any] | None,
        elimination_order: str | Sequence[Hashable] | None,
        show_progress: bool = False,
    ) -> list[Hashable]:
        """Check an elimination order as pgmpy's method of this name does, and return the variables to eliminate."""
        asked = {*_named("variables", variables), *map(str, evidence or {})}
        others = [v.name for v in self.model.variables if v.name not in asked]
        if isinstance(elimination_order, str) and elimination_order.lower() not in _ORDERS:
            raise InputError(
                f"unknown elimination order {elimination_order!r}; it is a list of variables, or one of {_ORDERS}"
            )
        if elimination_order is None or isinstance(elimination_order, str):
            return [self._nodes[name] for name in others]
        order = [self.model[name].name for name in _named("elimination_order", elimination_order)]
        misplaced = next((name for name in order if name in asked), None)
        if misplaced is not None:
            raise InputError(
                f"the elimination order names {misplaced!r}, which the query asks for or observes: leave it out"
            )
        missing = self._relevant(variables, evidence).difference(order, asked)
        if missing:
            raise InputError(f"the elimination order {order} lacks {sorted(missing)}: name all that are not asked for")
        return [self._nodes[name] for name in order]

    def _relevant(self, variables: Sequence[Hashable], evidence: Mapping[Hashable, Any] | None) -> set[str]:
        """Return the variables that the posterior of the given ones depends on: those that pgmpy does not prune."""
        if self.model.children is None:
            return {v.name for v in self.model.variables}
        observed = set(map(str, evidence or {}))
        model = _ancestral(self.model, [*map(str, variables), *observed])
        scopes = [{model.variables[v].name for v in table.scope} - observed for table in model.factors]
        connected = set(map(str, variables))
        while grown := set().union(*(scope for scope in scopes if scope & connected)) - connected:
            connected |= grown
        return connected

    def _total(self) -> float:
        """Return the sum that answers are scaled to: 1 if they are normalised.

        Raises:
            InputError: The sum is beyond the range of a float.
        """
        log10_total = self._tree.log10_evidence
        if self._is_normalised:
            return 1.0
        total = 10.0**log10_total if log10_total < sys.float_info.max_10_exp else math.inf
        if total == math.inf or (total == 0 and log10_total > -math.inf):
            raise InputError(
                f"pgmpy does not normalise answers of a Markov network, and their sum, 10^{log10_total:g}, is beyond "
                "the range of a float: scale the factors, or use elimina.solve"
            )
        return total

    def _zeros(self, names: Sequence[str]) -> NDArray[np.float64]:
        return np.zeros([self.model[name].size for name in names])

    def predict_probability(self, data: Any) -> Any:
        """Return a frame of the probabilities of all states of the variables that the data lack.

        Args:
            data: pandas DataFrame with a column for each observed variable.

        Returns:
            A DataFrame with the columns ``VARIABLE_STATE``; zeros where the observations have probability 0.

        Raises:
            InputError: A column fits no variable, two columns have one name, or there is a column for each variable.
        """
        pandas = require("pandas", "frames", "predict_probability")
        missing = self._missing(data)
        cases = data.rename(columns=str)
        for name in cases.columns:
            variable = self.model[name]
            if self._states[name] != list(variable.all_states):
                names = dict(zip(self._states[name], variable.all_states, strict=True))
                cases = cases.assign(**{name: [names.get(cell, cell) for cell in cases[name]]})
        with self._tree.lock:
            self._tree.set_evidence({})
            posteriors = self._tree.batch(cases, missing)
        columns = {
            f"{name}_{state}": posteriors.marginals[name][:, position]
            for name in missing
            for position, state in enumerate(self.model[name].all_states)
        }
        return pandas.DataFrame(columns, index=data.index)

    def predict(self, data: Any) -> Any:
        """Return the data, completed by the most probable joint states of the variables that are not observed.

        Rows with the same observations are answered once.

        Args:
            data: pandas DataFrame with a column for each observed variable; missing cells are not observed.

        Raises:
            InputError: A column fits no variable, two columns have one name, or there is a column for each variable.
            ImpossibleEvidenceError: The observations of a row have probability 0.
        """
        missing = self._missing(data)
        columns = list(map(str, data.columns))
        answers: dict[tuple[Any, ...], dict[Any, Any]] = {}
        rows = []
        for number, row in enumerate(data.itertuples(index=False, name=None)):
            key = tuple(None if self._is_missing(name, cell) else cell for name, cell in zip(columns, row, strict=True))
            if key not in answers:
                observations: dict[Hashable, Any] = {
                    name: cell for name, cell in zip(columns, key, strict=True) if cell is not None
                }
                try:
                    best = self.map_query(evidence=observations)
                except ImpossibleEvidenceError as error:
                    raise ImpossibleEvidenceError(f"row {number}: {error}") from None
                answers[key] = {**best, **{self._nodes[str(v)]: x for v, x in observations.items()}}
            rows.append(answers[key])
        order = [*data.columns, *(self._nodes[name] for name in missing)]
        pandas = require("pandas", "frames", "predict")
        return pandas.DataFrame(rows, index=data.index, columns=order)

    def _missing(self, data: Any) -> list[str]:
        if not hasattr(data, "columns") or not hasattr(data, "itertuples"):
            raise arguments.wrong_type("data", data, "a pandas DataFrame")
        names = list(map(str, data.columns))
        twice = next((name for position, name in enumerate(names) if name in names[:position]), None)
        if twice is not None:
            raise InputError(f"two columns of the frame are named {twice!r}")
        missing = [v.name for v in self.model.variables if v.name not in names]
        if not missing:
            raise InputError("the data have a column for each variable: there is nothing to predict")
        return missing

    def _evidence(self, evidence: Mapping[Hashable, Any] | None, virtual: Sequence[Any] | None) -> dict[Any, Any]:
        combined = self._observed(evidence)
        if not isinstance(virtual, list | tuple | None):
            raise arguments.wrong_type("virtual_evidence", virtual, "a list of distributions over one variable each")
        for factor in virtual or ():
            name, likelihoods = self._likelihoods(factor)
            previous = combined.get(name, 1.0)
            if not isinstance(previous, float | np.ndarray):
                previous = np.arange(len(likelihoods)) == self.model[name].index(previous)
            combined[name] = previous * likelihoods
        return combined

    def _observed(self, evidence: Mapping[Hashable, Any] | None) -> dict[Any, Any]:
        """Return the observed states in elimina's terms, without those that are missing."""
        check_mapping("evidence", {} if evidence is None else evidence)
        states = {self.model[str(v)].name: state for v, state in (evidence or {}).items()}
        return {
            name: self._state_in_model(name, state)
            for name, state in states.items()
            if not self._is_missing(name, state)
        }

    def _unobserved(self, argument: str, variables: Any, evidence: Any) -> list[str]:
        """Return the names of the queried variables, and check that none of them is observed."""
        names = _named(argument, variables)
        is_list = isinstance(evidence, list | tuple | set)
        observed = set(map(str, evidence)) if is_list else self._observed(evidence).keys()
        repeated = next((name for name in names if name in observed), None)
        if repeated is not None:
            raise InputError(f"variable {repeated!r} is in the query and in the evidence: leave it out of one of them")
        return names

    def _is_missing(self, name: str, state: Any) -> bool:
        """Return whether a value means that no state is observed. None may be a state in pgmpy."""
        return is_missing(state) and not any(state is model_state for model_state in self._states[name])

    def _likelihoods(self, factor: Any) -> tuple[str, NDArray[np.float64]]:
        """Return the variable of virtual evidence, and the likelihoods of its states in the model's order."""
        variables = list(getattr(factor, "variables", []))
        if len(variables) != 1:
            names = ", ".join(map(repr, variables)) or arguments.shown(factor)
            raise InputError(f"virtual evidence is about {names}; give distributions over one variable each")
        name, factor_states = self.model[str(variables[0])].name, list(factor.state_names[variables[0]])
        if len(factor_states) != len(self._states[name]) or any(
            state not in factor_states for state in self._states[name]
        ):
            raise InputError(
                f"virtual evidence about {name!r} has the states {factor_states}; it has {self._states[name]}"
            )
        values = np.asarray(factor.values, dtype=np.float64).ravel()
        return name, values[[factor_states.index(state) for state in self._states[name]]]

    def _state_in_model(self, name: str, state: Any) -> Any:
        """Return a state in elimina's terms; it is compared with pgmpy's states by Python's ``==``."""
        variable = self.model[name]
        if not isinstance(state, Hashable):
            return state
        if state in self._states[name]:
            return StateIndex(self._states[name].index(state))
        try:
            return StateIndex(index_of(variable, state))
        except InputError as error:
            raise UnknownStateError(str(error)) from None

    def _factor(self, names: Sequence[str], values: Any) -> Any:
        discrete = import_package("pgmpy", "pgmpy.factors.discrete")
        nodes = [self._nodes[name] for name in names]
        states = {self._nodes[name]: list(self._states[name]) for name in names}
        return discrete.DiscreteFactor(nodes, [self.model[name].size for name in names], values, state_names=states)


def _ancestral(model: Model, names: Iterable[str]) -> Model:
    """Return the network of some variables and their ancestors."""
    assert model.children is not None
    tables = list(zip(model.children, model.factors, strict=True))
    scopes: dict[int, set[int]] = {}
    for child, table in tables:
        scopes.setdefault(child, set()).update(table.scope)
    ancestors: set[int] = set()
    waiting = [model.index(name) for name in names]
    while waiting:
        v = waiting.pop()
        if v not in ancestors:
            ancestors.add(v)
            waiting.extend(scopes.get(v, ()))
    number_of = {v: number for number, v in enumerate(sorted(ancestors))}
    factors = [table.over([number_of[v] for v in table.scope]) for child, table in tables if child in ancestors]
    return Model([model.variables[v] for v in number_of], factors, sense="probability")


def _named(argument: str, variables: Any) -> list[str]:
    if isinstance(variables, str) or not isinstance(variables, Iterable):
        raise arguments.wrong_type(argument, variables, "a list of variables")
    return [str(v) for v in variables]
