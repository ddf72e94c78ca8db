"""pgmpy's interface of exact inference: ``VariableElimination`` with elimina's engine (tested with pgmpy 1.1)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from elimina import api
from elimina.errors import ImpossibleEvidenceError, InputError
from elimina.inference.junction import JunctionTree
from elimina.io.peers import from_pgmpy, imported, pgmpy_states
from elimina.model import Model
from elimina.states import StateIndex
from elimina.system import require


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
        joint: bool = True,
        show_progress: bool = False,
    ) -> Any:
        """Return the posterior of variables: a ``DiscreteFactor``, or one for each variable.

        Args:
            variables: Variables of the query.
            evidence: Mapping from variables to observed states.
            virtual_evidence: Distributions of pgmpy over one variable each, as likelihoods.
            joint: True for the joint distribution, False for a dictionary of distributions.
            show_progress: Accepted for pgmpy's sake.

        Raises:
            InputError: There is no such variable or state.
            ImpossibleEvidenceError: The evidence has probability 0.
        """
        known, names = self._evidence(evidence, virtual_evidence), [str(v) for v in variables]
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
        show_progress: bool = False,
    ) -> dict[Any, Any]:
        """Return the most probable joint states of variables, all others summed out.

        Args:
            variables: Variables of the query; None for all that are not observed.
            evidence: Mapping from variables to observed states.
            virtual_evidence: Distributions of pgmpy over one variable each, as likelihoods.
            show_progress: Accepted for pgmpy's sake.

        Raises:
            InputError: There is no such variable or state.
            ImpossibleEvidenceError: The evidence has probability 0.
        """
        known = self._evidence(evidence, virtual_evidence)
        observed = set(map(str, evidence or {}))
        free = [v.name for v in self.model.variables if v.name not in observed]
        asked = free if variables is None else [str(v) for v in variables]
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

    def predict_probability(self, data: Any) -> Any:
        """Return a frame of the probabilities of all states of the variables that the data lack.

        Args:
            data: pandas DataFrame with a column for each observed variable.

        Returns:
            A DataFrame with the columns ``VARIABLE_STATE``.
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
        """
        columns = list(map(str, data.columns))
        missing = self._missing(data)
        answers: dict[tuple[Any, ...], dict[Any, Any]] = {}
        rows = []
        for row in data.itertuples(index=False):
            key = tuple(None if cell != cell or cell is None else cell for cell in row)
            if key not in answers:
                known: dict[Hashable, Any] = {
                    name: cell for name, cell in zip(columns, key, strict=True) if cell is not None
                }
                answers[key] = {**self.map_query(evidence=known), **{self._nodes[str(v)]: x for v, x in known.items()}}
            rows.append(answers[key])
        order = [*data.columns, *(self._nodes[name] for name in missing)]
        pandas = require("pandas", "frames", "predict")
        return pandas.DataFrame(rows, index=data.index, columns=order)

    def _missing(self, data: Any) -> list[str]:
        names = set(map(str, data.columns))
        missing = [v.name for v in self.model.variables if v.name not in names]
        if not missing:
            raise InputError("the data have a column for each variable: there is nothing to predict")
        return missing

    def _evidence(self, evidence: Mapping[Hashable, Any] | None, virtual: Sequence[Any] | None) -> dict[Any, Any]:
        known = {str(v): self._known(str(v), state) for v, state in (evidence or {}).items()}
        for factor in virtual or ():
            name = str(factor.variables[0])
            own = list(factor.state_names[factor.variables[0]])
            values = np.asarray(factor.values, dtype=np.float64).ravel()
            known[name] = [values[own.index(state)] for state in self._states[name]]
        return known

    def _known(self, name: str, state: Any) -> Any:
        """Return a state in elimina's terms: states of pgmpy are found by Python's equality."""
        states = self._states.get(name, [])
        return StateIndex(states.index(state)) if isinstance(state, Hashable) and state in states else state

    def _factor(self, names: Sequence[str], values: Any) -> Any:
        discrete = imported("pgmpy", "pgmpy.factors.discrete")
        nodes = [self._nodes[name] for name in names]
        states = {self._nodes[name]: list(self._states[name]) for name in names}
        return discrete.DiscreteFactor(nodes, [self.model[name].size for name in names], values, state_names=states)
