"""A Bayesian network as a classifier with scikit-learn's interface (tested with scikit-learn 1.9)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina import arguments
from elimina.errors import ImpossibleEvidenceError, InputError
from elimina.io.cases import Cases, as_cases
from elimina.io.sources import ModelLike, as_model
from elimina.learning import fit
from elimina.methods.junction_tree import JunctionTree
from elimina.model.model import Model
from elimina.model.variable import listed_states
from elimina.planning.options import Options
from elimina.system import require

_base: Any = require("sklearn.base", "sklearn", "BayesNetClassifier")
_validation: Any = require("sklearn.utils.validation", "sklearn", "BayesNetClassifier")


class BayesNetClassifier(_base.ClassifierMixin, _base.BaseEstimator):  # type: ignore[misc]
    """A Bayesian network that predicts one of its variables from the others.

    Args:
        network: A Bayesian network, or the path of a file that ``elimina.read`` takes. It fixes the variables, their
            states and their parents.
        target: Name of the variable that is predicted.
        smoothing: Count that ``fit`` adds to each combination of states.
        ignore_extra: Ignore columns that are not variables of the network.
        memory: Memory limit of the inference: bytes, or text such as ``8GiB``.

    Attributes:
        classes_: States of the target.
        model_: The network with the distributions that were fitted.
    """

    def __init__(
        self,
        network: ModelLike,
        target: str,
        *,
        smoothing: float = 1.0,
        ignore_extra: bool = False,
        memory: int | str | None = None,
    ) -> None:
        self.network, self.target, self.smoothing = network, target, smoothing
        self.ignore_extra, self.memory = ignore_extra, memory

    def fit(self, X: Any, y: Any = None) -> BayesNetClassifier:
        """Estimate all distributions from complete cases, or keep those of the network.

        Args:
            X: Data frame or mapping with a column for each variable but the target, or an array of these columns in
                the order of the network's variables; None to keep the distributions.
            y: States of the target.

        Raises:
            TypeError: The smoothing is not a number.
            InputError: The network is not Bayesian, a variable has no column, the target has one, a cell or the labels
                are missing, or the smoothing is negative.
        """
        if not 0 <= arguments.number("smoothing", self.smoothing) < math.inf:
            raise InputError(f"smoothing is {self.smoothing}; it must be finite and not negative")
        model = as_model(self.network)
        if model.children is None:
            raise InputError("fit needs a Bayesian network: the tables of this model are not distributions")
        states = listed_states(model[self.target])
        # States of different types need an array of objects: NumPy would turn the state 0 into text beside 'a'.
        self.classes_ = np.array(states, dtype=None if len(set(map(type, states))) == 1 else object)
        self.model_ = model if X is None else self._fitted(model, X, y)
        # A prediction has no place for an estimated error, so all predictions are exact.
        self._tree = JunctionTree(self.model_, memory=self.memory, options=Options(exact=True))
        self.n_features_in_ = len(model.variables) - 1
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the posterior of the target in each case, shape ``(cases, states)``; zeros if a case is impossible.

        Args:
            X: Data frame, mapping, list of mappings, or array as for ``fit``; missing cells are not observed.

        Raises:
            InputError: A column is the target, or fits no variable.
            NotFittedError: ``fit`` has not been called.
        """
        _validation.check_is_fitted(self)
        posteriors = self._tree.batch(self._features(X, self.model_), [self.target])
        return np.ascontiguousarray(posteriors.marginals[self.target])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable state of the target in each case.

        Raises:
            ImpossibleEvidenceError: A case has probability 0, so it has no most probable state.
        """
        posteriors = self.predict_proba(X)
        impossible = posteriors.sum(axis=1) == 0
        if impossible.any():
            raise ImpossibleEvidenceError(
                f"row {impossible.argmax()}: the case has probability 0, so it has no most probable state: change it, "
                "or fit the network with smoothing"
            )
        chosen: NDArray[Any] = self.classes_[posteriors.argmax(axis=1)]
        return chosen

    def _features(self, X: Any, model: Model) -> Cases:
        if isinstance(X, np.ndarray) and X.dtype.names is None:
            names = [v.name for v in model.variables if v.name != self.target]
            if X.ndim != 2 or X.shape[1] != len(names):
                raise InputError(
                    f"an array X has a column for each variable but the target {self.target!r}, {len(names)} in all; "
                    f"this one has the shape {X.shape}"
                )
            X = {name: X[:, position] for position, name in enumerate(names)}
        cases = as_cases(X, model, ignore_extra=self.ignore_extra)
        if model.index(self.target) in cases.columns:
            raise InputError(f"X has a column of the target {self.target!r}: leave it out")
        return cases

    def _fitted(self, model: Model, X: Any, y: Any) -> Model:
        if y is None:
            raise InputError("fit needs the labels y beside the cases X")
        targets = np.asarray(y, dtype=object)
        if targets.ndim == 2 and targets.shape[1] == 1:
            targets = targets[:, 0]
        features, labels = self._features(X, model), as_cases({self.target: targets}, model)
        if len(features.values) != len(labels.values):
            raise InputError(f"fit needs a label for each case: X has {len(features.values)}, y {len(labels.values)}")
        columns, codes = features.columns + labels.columns, np.hstack([features.values, labels.values])
        if len(columns) < len(model.variables) or (codes < 0).any():
            raise InputError("fit needs a column for each variable, and no missing cell")
        fitted: Model = fit(model, Cases(columns, codes), prior=self.smoothing).model
        return fitted
