"""pyAgrum's interface of exact inference: ``LazyPropagation``'s common calls with elimina's engine (pyAgrum 3.3)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from elimina.inference.junction import JunctionTree
from elimina.io.peers import arranged, from_pyagrum, imported

Name = str | int


class LazyPropagation:
    """The common calls of ``pyagrum.LazyPropagation``.

    Args:
        network: A BayesNet or a MarkovRandomField of pyAgrum.

    Raises:
        InputError: It is neither.
    """

    def __init__(self, network: Any) -> None:
        self._network = network
        self._tree = JunctionTree(from_pyagrum(network))
        self._evidence: dict[str, Any] = {}

    def setEvidence(self, evidence: Mapping[Any, Any]) -> None:
        """Replace all evidence: name or id -> label, index, or likelihoods."""
        self._evidence = {self._name(v): self._known(v, what) for v, what in evidence.items()}
        self._tree.set_evidence(self._evidence)

    def addEvidence(self, variable: Name, what: Any) -> None:
        """Add evidence about a variable: a label, an index, or likelihoods."""
        self.updateEvidence({variable: what})

    chgEvidence = addEvidence

    def updateEvidence(self, evidence: Mapping[Name, Any]) -> None:
        """Add or change evidence about some variables."""
        changed = {self._name(v): what for v, what in evidence.items()}
        self.setEvidence({**self._evidence, **changed})

    def eraseEvidence(self, variable: Name) -> None:
        """Take back the evidence about a variable."""
        kept = {v: what for v, what in self._evidence.items() if v != self._name(variable)}
        self.setEvidence(kept)

    def eraseAllEvidence(self) -> None:
        """Take back all evidence."""
        self.setEvidence({})

    def makeInference(self) -> None:
        """Do nothing: answers are computed when they are asked for."""

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
        names = sorted(map(self._name, variables), key=self._network.idFromName)
        return self._tensor(names, self._tree.joint(names))

    def evidenceProbability(self) -> float:
        """Return the probability of the evidence."""
        return math.pow(10, self._tree.log10_evidence)

    def H(self, variable: Name) -> float:
        """Return the entropy of a variable's posterior, in bits."""
        return self._tree.entropy([self._name(variable)])

    def _name(self, variable: Name) -> str:
        return variable if isinstance(variable, str) else str(self._network.variable(variable).name())

    def _known(self, variable: Name, what: Any) -> Any:
        """Return evidence in elimina's terms: pyAgrum takes an index also where there are labels."""
        states = self._tree.model[self._name(variable)]
        if isinstance(what, int) and not isinstance(what, bool) and states.find(what) is None:
            return states.state(what)
        return what

    def _tensor(self, names: list[str], values: Any) -> Any:
        gum = imported("pyagrum", "pyagrum")
        tensor = gum.Tensor()
        for name in names:
            tensor.add(self._network.variable(name))
        tensor.fillWith(arranged(values, names, tensor.names[::-1]).ravel().tolist())
        return tensor
