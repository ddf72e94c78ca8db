"""pgmpy's interface of exact inference: ``VariableElimination`` with elimina's engine (tested with pgmpy 1.1)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina import api, arguments
from elimina.errors import ImpossibleEvidenceError, InputError
from elimina.inference.junction import JunctionTree
from elimina.io.peers import from_pgmpy, imported, pgmpy_states
from elimina.model import Model
from elimina.states import StateIndex, check_mapping
from elimina.system import require

_ORDERS = ("greedy", "minfill", "minneighbors", "minweight", "weightedminfill")
"""pgmpy's heuristics of elimination orders, in lower case."""


class VariableElimination:
    """Queries as of ``pgmpy.inference.VariableElimination``, and predictions as of pgmpy's networks.

    Variables and states are given and returned as pgmpy has them.

    Args:
        model: A network of pgmpy, or a model.

    Raises:
        InputError: It is neither.
    """

    def __init__(self, model: Any) -> None:
        self.model = model if isinstance(model, Model) else from_pgmpy(model)
        nodes = [v.name for v in self.model.variables] if isinstance(model, Model) else model.nodes()
        self._nodes = {str(node): node for node in nodes}
        own: dict[str, list[Any]] = {v.name: list(v.all_states) for v in self.model.variables}
        self._states = own if isinstance(model, Model) else pgmpy_states(model)
        self._tree = JunctionTree(self.model)

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

        Args:
            variables: Variables of the query.
            evidence: Mapping from variables to observed states.
            virtual_evidence: Distributions of pgmpy over one variable each, as likelihoods. Those of one variable are
                multiplied, also with its observed state.
            elimination_order: Accepted for pgmpy's sake: elimina searches for an order, and none changes the answer.
            joint: True for the joint distribution, False for a dictionary of distributions.
            show_progress: Accepted for pgmpy's sake.

        Raises:
            InputError: There is no such variable or state.
            ImpossibleEvidenceError: The evidence has probability 0.
        """
        self._check_order(elimination_order)
        known, names = self._evidence(evidence, virtual_evidence), _named("variables", variables)
        with self._tree.lock:
            self._tree.set_evidence(known)
            if joint:
                return self._factor(names, self._tree.joint(names))
            return {self._nodes[name]: self._factor([name], p) for name, p in self._tree.marginals(names).items()}

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
            variables: Variables of the query; None for all that are not observed.
            evidence: Mapping from variables to observed states.
            virtual_evidence: See ``query``.
            elimination_order: See ``query``.
            show_progress: Accepted for pgmpy's sake.

        Raises:
            InputError: There is no such variable or state.
            ImpossibleEvidenceError: The evidence has probability 0.
        """
        self._check_order(elimination_order)
        known = self._evidence(evidence, virtual_evidence)
        observed = set(map(str, evidence or {}))
        free = [v.name for v in self.model.variables if v.name not in observed]
        asked = free if variables is None else _named("variables", variables)
        if set(asked) >= set(free):
            result = api.solve(self.model, "mpe", evidence=known)
        else:
            result = api.solve(self.model, "mmap", query=asked, evidence=known)
        if result.assignment is None:
            raise ImpossibleEvidenceError(
                "the evidence has probability 0, so there are no posteriors: change the evidence"
            )
        indices = {name: self.model[name].index(result.assignment[name]) for name in asked}
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
        neither ancestors of these nor of the evidence are left out first. Of several variables, each combination of
        the states of all but one takes a propagation.

        Args:
            variables: Variables of the query; None for the best joint probability of all variables and the evidence.
            evidence: Mapping from variables to observed states.
            elimination_order: See ``query``.
            show_progress: Accepted for pgmpy's sake.

        Raises:
            InputError: There is no such variable or state, or a variable of the query is observed.
            ImpossibleEvidenceError: The evidence has probability 0.
        """
        self._check_order(elimination_order)
        known = self._evidence(evidence, None)
        names = list(dict.fromkeys(self.model[name].name for name in _named("variables", variables or [])))
        observed = next((name for name in names if name in known), None)
        if observed is not None:
            raise InputError(f"variable {observed!r} is in the query and in the evidence: leave it out of one of them")
        is_network = self.model.children is not None
        model = _ancestral(self.model, [*names, *known]) if names and is_network else self.model
        best = api.solve(model, "mpe", evidence=known).value
        if best is None:
            raise ImpossibleEvidenceError("the evidence has probability 0, so there are no max-marginals")
        if not names or not is_network:
            return math.exp(best)
        *others, last = names
        total, tree = 0.0, JunctionTree(model)
        for states in itertools.product(*(range(model[name].size) for name in others)):
            tree.set_evidence({**known, **{v: StateIndex(x) for v, x in zip(others, states, strict=True)}})
            with suppress(ImpossibleEvidenceError):
                relative = tree.max_marginals([last])[last].sum()
                total += math.exp(tree.mpe()[1] - best) * float(relative)
        return 1 / total

    def induced_graph(self, elimination_order: Sequence[Hashable]) -> Any:
        """Return the networkx graph of the factors' scopes and of those that eliminating the variables makes.

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
        """Return the largest number of variables in a table that eliminating the variables makes.

        Args:
            elimination_order: All variables, in the order in which they are eliminated.

        Raises:
            InputError: A variable is missing or unknown.
        """
        return max(map(len, self._cliques(elimination_order)), default=1) - 1

    def _cliques(self, elimination_order: Sequence[Hashable]) -> list[set[str]]:
        """Return each eliminated variable with its neighbours at that time."""
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

    def _check_order(self, order: str | Sequence[Hashable] | None) -> None:
        if isinstance(order, str) and order.lower() not in _ORDERS:
            raise InputError(f"unknown elimination order {order!r}; it is a list of variables, or one of {_ORDERS}")
        for name in _named("elimination_order", [] if order is None or isinstance(order, str) else order):
            self.model.index(name)

    def predict_probability(self, data: Any) -> Any:
        """Return a frame of the probabilities of all states of the variables that the data lack.

        Args:
            data: pandas DataFrame with a column for each observed variable.

        Returns:
            A DataFrame with the columns ``VARIABLE_STATE``; zeros where the observations have probability 0.
        """
        pandas = require("pandas", "frames", "predict_probability")
        missing = self._missing(data)
        known = data.rename(columns=str)
        for name in known.columns:
            variable = self.model[name]
            if self._states[name] != list(variable.all_states):
                names = dict(zip(self._states[name], variable.all_states, strict=True))
                known = known.assign(**{name: [names.get(cell, cell) for cell in known[name]]})
        found = self._tree.batch(known, missing)
        columns = {
            f"{name}_{state}": found.marginals[name][:, place]
            for name in missing
            for place, state in enumerate(self.model[name].all_states)
        }
        return pandas.DataFrame(columns, index=data.index)

    def predict(self, data: Any) -> Any:
        """Return the data with the most probable joint states of the variables that they lack.

        Rows that observe the same are answered once.

        Args:
            data: pandas DataFrame with a column for each observed variable; missing cells are not observed.

        Raises:
            ImpossibleEvidenceError: The observations of a row have probability 0.
        """
        missing = self._missing(data)
        columns = list(map(str, data.columns))
        answers: dict[tuple[Any, ...], dict[Any, Any]] = {}
        rows = []
        for number, row in enumerate(data.itertuples(index=False, name=None)):
            key = tuple(None if cell != cell or cell is None else cell for cell in row)
            if key not in answers:
                known: dict[Hashable, Any] = {
                    name: cell for name, cell in zip(columns, key, strict=True) if cell is not None
                }
                try:
                    best = self.map_query(evidence=known)
                except ImpossibleEvidenceError as error:
                    raise ImpossibleEvidenceError(f"row {number}: {error}") from None
                answers[key] = {**best, **{self._nodes[str(v)]: x for v, x in known.items()}}
            rows.append(answers[key])
        order = [*data.columns, *(self._nodes[name] for name in missing)]
        pandas = require("pandas", "frames", "predict")
        return pandas.DataFrame(rows, index=data.index, columns=order)

    def _missing(self, data: Any) -> list[str]:
        if not hasattr(data, "columns") or not hasattr(data, "itertuples"):
            raise arguments.wrong_type("data", data, "a pandas DataFrame")
        names = list(map(str, data.columns))
        twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
        if twice is not None:
            raise InputError(f"two columns of the frame are named {twice!r}")
        missing = [v.name for v in self.model.variables if v.name not in names]
        if not missing:
            raise InputError("the data have a column for each variable: there is nothing to predict")
        return missing

    def _evidence(self, evidence: Mapping[Hashable, Any] | None, virtual: Sequence[Any] | None) -> dict[Any, Any]:
        check_mapping("evidence", {} if evidence is None else evidence)
        known = {str(v): self._known(str(v), state) for v, state in (evidence or {}).items()}
        if not isinstance(virtual, list | tuple | None):
            raise arguments.wrong_type("virtual_evidence", virtual, "a list of distributions over one variable each")
        for factor in virtual or ():
            name, likelihoods = self._likelihoods(factor)
            before = known.get(name, 1.0)
            if not isinstance(before, float | np.ndarray):
                before = np.arange(len(likelihoods)) == self.model[name].index(before)
            known[name] = before * likelihoods
        return known

    def _likelihoods(self, factor: Any) -> tuple[str, NDArray[np.float64]]:
        """Return the variable of virtual evidence, and the likelihoods of its states in the model's order."""
        variables = list(getattr(factor, "variables", []))
        if len(variables) != 1:
            names = ", ".join(map(repr, variables)) or arguments.shown(factor)
            raise InputError(f"virtual evidence is about {names}; give distributions over one variable each")
        name, own = self.model[str(variables[0])].name, list(factor.state_names[variables[0]])
        if len(own) != len(self._states[name]) or any(state not in own for state in self._states[name]):
            raise InputError(f"virtual evidence about {name!r} has the states {own}; it has {self._states[name]}")
        values = np.asarray(factor.values, dtype=np.float64).ravel()
        return name, values[[own.index(state) for state in self._states[name]]]

    def _known(self, name: str, state: Any) -> Any:
        """Return a state in elimina's terms: states of pgmpy are found by Python's equality."""
        states = self._states.get(name, [])
        return StateIndex(states.index(state)) if isinstance(state, Hashable) and state in states else state

    def _factor(self, names: Sequence[str], values: Any) -> Any:
        discrete = imported("pgmpy", "pgmpy.factors.discrete")
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
    kept: set[int] = set()
    waiting = [model.index(name) for name in names]
    while waiting:
        v = waiting.pop()
        if v not in kept:
            kept.add(v)
            waiting.extend(scopes.get(v, ()))
    place = {v: number for number, v in enumerate(sorted(kept))}
    factors = [table.over([place[v] for v in table.scope]) for child, table in tables if child in kept]
    return Model([model.variables[v] for v in place], factors, sense="probability")


def _named(argument: str, variables: Any) -> list[str]:
    if isinstance(variables, str) or not isinstance(variables, Iterable):
        raise arguments.wrong_type(argument, variables, "a list of variables")
    return [str(v) for v in variables]
