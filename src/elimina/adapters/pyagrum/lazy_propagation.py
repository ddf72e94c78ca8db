"""pyAgrum's interface of exact inference: ``LazyPropagation``'s common calls with elimina's engine (pyAgrum 3.3)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from elimina import arguments
from elimina.arguments import check_mapping
from elimina.errors import InputError
from elimina.io.factor_arrays import arranged
from elimina.io.pyagrum_networks import from_pyagrum
from elimina.methods.junction_tree import JunctionTree
from elimina.model.states import StateIndex
from elimina.planning.options import Options
from elimina.system import import_package

Name = str | int


class LazyPropagation:
    """The common calls of ``pyagrum.LazyPropagation``.

    Args:
        network: A BayesNet or a MarkovRandomField of pyAgrum.

    Raises:
        InputError: ``network`` is neither.
    """

    def __init__(self, network: Any) -> None:
        self._network = network
        # An answer in pyAgrum's form has no place for an estimated error, so all answers are exact.
        self._tree = JunctionTree(from_pyagrum(network), options=Options(exact=True))
        self._evidence: dict[str, Any] = {}
        self._targets: set[int] | None = None

    def setEvidence(self, evidence: Mapping[Any, Any]) -> None:
        """Replace all evidence: name or id -> label, index, or likelihoods.

        Raises:
            InputError: There is no such variable, label or index.
        """
        self._set(self._read(evidence))

    def addEvidence(self, variable: Name, what: Any) -> None:
        """Add evidence about a variable: a label, an index, or likelihoods."""
        self.updateEvidence({variable: what})

    chgEvidence = addEvidence

    def updateEvidence(self, evidence: Mapping[Name, Any]) -> None:
        """Add or change evidence about some variables."""
        self._set({**self._evidence, **self._read(evidence)})

    def eraseEvidence(self, variable: Name) -> None:
        """Remove the evidence about a variable."""
        erased = self._name(variable)
        self._set({v: what for v, what in self._evidence.items() if v != erased})

    def eraseAllEvidence(self) -> None:
        """Remove all evidence."""
        self.setEvidence({})

    def hasEvidence(self, variable: Name) -> bool:
        """Return whether there is evidence about a variable."""
        return self._name(variable) in self._evidence

    def nbrEvidence(self) -> int:
        """Return the number of variables with evidence."""
        return len(self._evidence)

    def hardEvidenceNodes(self) -> set[int]:
        """Return the ids of variables with an observed state, or with a single likelihood above 0."""
        return {self._network.idFromName(name) for name, what in self._evidence.items() if _is_hard(what)}

    def softEvidenceNodes(self) -> set[int]:
        """Return the ids of variables with likelihoods of several states."""
        return {self._network.idFromName(name) for name, what in self._evidence.items() if not _is_hard(what)}

    def makeInference(self) -> None:
        """Do nothing: answers are computed when they are asked for."""

    def addTarget(self, variable: Name) -> None:
        """Add a target; all variables are targets until one is added. Posteriors do not require targets."""
        self._targets = (self._targets or set()) | self._ids([variable])

    def setTargets(self, variables: Iterable[Name]) -> None:
        """Replace all targets."""
        self._targets = self._ids(variables)

    def addJointTarget(self, variables: Iterable[Name]) -> None:
        """Add a joint target; all variables are targets until one is added. Joint posteriors do not require targets."""
        self._ids(variables)
        self._targets = set() if self._targets is None else self._targets

    def addAllTargets(self) -> None:
        """Make all variables targets."""
        self._targets = set(self._network.nodes())

    def eraseTarget(self, variable: Name) -> None:
        """Remove a target."""
        self._targets = self.targets() - self._ids([variable])

    def eraseAllTargets(self) -> None:
        """Remove all targets."""
        self._targets = set()

    def isTarget(self, variable: Name) -> bool:
        """Return whether a variable is a target."""
        return self._ids([variable]) <= self.targets()

    def targets(self) -> set[int]:
        """Return the ids of all targets: of all variables, until one is added or all are removed."""
        return set(self._network.nodes()) if self._targets is None else set(self._targets)

    def posterior(self, variable: Name) -> Any:
        """Return the posterior of a variable as a tensor of pyAgrum.

        Raises:
            ImpossibleEvidenceError: The evidence has probability 0.
        """
        name = self._name(variable)
        return self._tensor([name], self._tree.marginals([name])[name])

    def jointPosterior(self, variables: Iterable[Name]) -> Any:
        """Return the joint posterior of variables as a tensor of pyAgrum.

        Raises:
            ImpossibleEvidenceError: The evidence has probability 0.
        """
        if isinstance(variables, str):
            raise arguments.wrong_type("variables", variables, "a set or list of names or ids")
        names = sorted(map(self._name, variables), key=self._network.idFromName)
        return self._tensor(names, self._tree.joint(names))

    def evidenceProbability(self) -> float:
        """Return the probability of the evidence."""
        return math.exp(self._tree.log_evidence)

    def mpe(self) -> Any:
        """Return the most probable explanation as an instantiation of pyAgrum.

        Raises:
            ImpossibleEvidenceError: The evidence has probability 0.
        """
        return self.mpeLog2Posterior()[0]

    def mpeLog2Posterior(self) -> tuple[Any, float]:
        """Return the most probable explanation and the base-2 logarithm of its posterior.

        Raises:
            ImpossibleEvidenceError: The evidence has probability 0.
        """
        states, log_score = self._tree.mpe()
        instantiation = import_package("pyagrum", "pyagrum").Instantiation()
        for v in self._tree.model.variables:
            instantiation.add(self._network.variable(v.name))
            instantiation.chgVal(v.name, v.index(states[v.name]))
        return instantiation, (log_score - self._tree.log_evidence) / math.log(2)

    def H(self, variable: Name) -> float:
        """Return the entropy of a variable's posterior, in bits."""
        return self._tree.entropy([self._name(variable)])

    def _name(self, variable: Name) -> str:
        model = self._tree.model
        if isinstance(variable, str):
            return model[variable].name
        if isinstance(variable, bool) or not isinstance(variable, int | np.integer):
            raise arguments.wrong_type("variable", variable, "the name or the id of a variable")
        if variable not in self._network.nodes():
            raise InputError(f"the network has no variable of the id {variable}; it has {self._network.nodes()}")
        return str(self._network.variable(int(variable)).name())

    def _ids(self, variables: Iterable[Name]) -> set[int]:
        return {self._network.idFromName(self._name(variable)) for variable in variables}

    def _set(self, evidence: dict[str, Any]) -> None:
        self._tree.set_evidence(evidence)
        self._evidence = evidence

    def _read(self, evidence: Mapping[Any, Any]) -> dict[str, Any]:
        check_mapping("evidence", evidence)
        observations: dict[str, Any] = {}
        for v, observation in evidence.items():
            name = self._name(v)
            if name in observations:
                raise InputError(f"the evidence is about variable {name!r} twice, by its name and by its id")
            observations[name] = self._state_in_model(name, observation)
        return observations

    def _state_in_model(self, name: str, what: Any) -> Any:
        """Return evidence in elimina's terms: in pyAgrum, an integer is an index, also where labels are integers."""
        size = self._tree.model[name].size
        if isinstance(what, str):
            gum = import_package("pyagrum", "pyagrum")
            try:
                what = self._network.variable(name).index(what)
            except gum.GumException as error:
                labels = ", ".join(map(repr, self._network.variable(name).labels()))
                raise InputError(f"variable {name!r} has no label {what!r}; its labels are {labels}") from error
        if isinstance(what, float) and what.is_integer():
            what = int(what)
        if not isinstance(what, int | np.integer):
            return what
        if not 0 <= what < size:
            raise InputError(f"variable {name!r} has no index {what}; indices run from 0 to {size - 1}")
        return StateIndex(int(what))

    def _tensor(self, names: list[str], values: Any) -> Any:
        gum = import_package("pyagrum", "pyagrum")
        tensor = gum.Tensor()
        for name in names:
            tensor.add(self._network.variable(name))
        tensor.fillWith(arranged(values, names, tensor.names[::-1]).ravel().tolist())
        return tensor


def _is_hard(what: Any) -> bool:
    """Return whether evidence leaves one state: an observed one, or likelihoods that are 0 elsewhere."""
    return isinstance(what, StateIndex) or np.count_nonzero(what) == 1
