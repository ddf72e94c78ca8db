"""Bayesian networks without parameters: the parents of each variable, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from elimina import arguments
from elimina.errors import InputError
from elimina.model.model import Model
from elimina.model.states import State
from elimina.model.variable import variable_of


def network_of_parents(parents: Mapping[str, Sequence[str]], states: Mapping[str, int | Sequence[State]]) -> Model:
    """Return a Bayesian network with uniform distributions.

    Args:
        parents: Variable -> its parents. A parent that is no key has no parents.
        states: Variable -> its states, or their number.

    Raises:
        TypeError: A name is no text, or parents are no sequence.
        InputError: The states of a variable are missing, states are of another variable, or the parents form a cycle.
    """
    listed = listed_parents(parents)
    orphan = next((name for name in listed if name not in states), None)
    if orphan is not None:
        raise InputError(f"the states of {orphan!r} are unknown: give them, states={{{orphan!r}: [...]}}")
    variables = {name: variable_of(name, states[name]) for name in listed}
    cpds: dict[str | tuple[str, ...], Any] = {
        (name, *own): np.full([variables[each].size for each in (name, *own)], 1 / variables[name].size)
        for name, own in listed.items()
    }
    return Model.from_cpds(cpds, states=states)


def listed_parents(parents: Any) -> dict[str, tuple[str, ...]]:
    """Return the parents of each variable, those of variables that are only parents included.

    Raises:
        TypeError: A name is no text, or parents are no sequence.
    """
    if not isinstance(parents, Mapping):
        raise arguments.wrong_type("structure", parents, "a mapping from names to the names of parents")
    listed: dict[str, tuple[str, ...]] = {}
    for name, own in parents.items():
        if not isinstance(name, str):
            raise arguments.wrong_type("a variable of the structure", name, "a name")
        if isinstance(own, str) or not isinstance(own, Sequence) or not all(isinstance(each, str) for each in own):
            raise arguments.wrong_type(f"the parents of {name!r}", own, "a sequence of names, such as a list")
        listed[name] = tuple(own)
    for own in list(listed.values()):
        for parent in own:
            listed.setdefault(parent, ())
    return listed
