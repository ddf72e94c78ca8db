"""Lists of different lengths where arrays are taken raise an error of elimina, not one of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import elimina
from elimina import DynamicModel, InputError, Model, OnlineFilter, cp
from elimina.adapters.potentials import LogPartition
from elimina.cp.tour_problem import TourProblem

RAGGED = [[1, 2], [3]]


def _network() -> Model:
    return Model.from_cpds({"a": [0.2, 0.8], ("b", "a"): [[0.1, 0.5], [0.9, 0.5]]})


def _process() -> DynamicModel:
    return DynamicModel.hidden_markov([0.5, 0.5], [[0.7, 0.3], [0.2, 0.8]], [[0.9, 0.1], [0.2, 0.8]])


def _element(items) -> None:
    model = cp.Model()
    model.element(items, tuple(model.int_vars(2, 0, 1)))


CALLS = {
    "items of element": lambda: _element(RAGGED),
    "expressions of element": lambda: _element([[1, cp.Model().int_var(0, 1)], [2]]),
    "likelihoods": lambda: elimina.solve(_network(), evidence={"a": RAGGED}),
    "hint": lambda: elimina.solve(_network(), options=elimina.Options(hint={"a": RAGGED})),
    "interventions": lambda: _network().do({"a": RAGGED}),
    "column of a process": lambda: _process().filter({"observation": RAGGED}),
    "mixed column of a process": lambda: _process().filter({"observation": [0, [1]]}),
    "hidden column of a process": lambda: _process().smooth({"state": RAGGED}),
    "online observation": lambda: OnlineFilter(_process()).update({"observation": RAGGED}),
    "bare observation": lambda: OnlineFilter(_process()).update(RAGGED),
    "cases": lambda: elimina.JunctionTree(_network()).batch({"a": RAGGED}),
    "distances": lambda: TourProblem("tour", RAGGED),
    "logarithms": lambda: LogPartition([2, 2], [(0, 1)])([RAGGED]),
    "table": lambda: Model.from_arrays([2, 2], [((0, 1), RAGGED)]),
    "distribution": lambda: Model.from_cpds({"a": [0.5, 0.5], ("b", "a"): RAGGED}),
}


@pytest.mark.parametrize("call", CALLS)
def test_lists_of_different_lengths(call: str):
    with pytest.raises(InputError):
        CALLS[call]()


def test_scopes_of_potentials_name_variables():
    for scope in ([0, 2], [-1, 0]):
        with pytest.raises(InputError, match=r"a scope names the variable (2|-1); indices run from 0 to 1"):
            LogPartition([2, 2], [scope])
    with pytest.raises(InputError, match="the logarithms of table 0 are not numbers"):
        LogPartition([2, 2], [(0, 1)])([np.array([["a", "b"], ["c", "d"]])])
