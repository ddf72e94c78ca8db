"""Bayesian networks without parameters: the parents of each variable, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from elimina import arguments
from elimina.arguments import names_like
from elimina.errors import InputError
from elimina.model.model import Model
from elimina.model.states import State
from elimina.model.variable import variable_of


def network_of_parents(parents: Mapping[str, Sequence[str]], states: Mapping[str, int | Sequence[State]]) -> Model:
    """Return a Bayesian network with uniform distributions.

    Args:
        parents: Variable -> its parents. A parent that is not a key has no parents.
        states: Variable -> its states, or their number.

    Raises:
        TypeError: A name is not a string, or parents are not a sequence.
        InputError: There is no variable, a family names a variable twice, the states of a variable are missing,
            ``states`` names another variable, or the parents form a cycle.
    """
    listed = listed_parents(parents)
    for name in listed:
        if name not in states:
            raise InputError(f"the states of {name!r} are unknown: give them, states={{{name!r}: [...]}}")
    for name in states:
        if name not in listed:
            raise InputError(f"states names the variable {name!r}, which the structure lacks{names_like(name, listed)}")
    variables = {name: variable_of(name, states[name], f"states[{name!r}]") for name in listed}
    cpds: dict[str | tuple[str, ...], Any] = {}
    for name, names in listed.items():
        family = (name, *names)
        cpds[family] = np.full([variables[member].size for member in family], 1 / variables[name].size)
    return Model.from_cpds(cpds, states=states)


def listed_parents(parents: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Return the parents of each variable; variables that are only parents have none.

    Raises:
        TypeError: A name is not a string, or parents are not a sequence.
        InputError: There is no variable, or a family names a variable twice.
    """
    if not parents:
        raise InputError("the structure is empty: name at least one variable, such as {'a': []}")
    listed: dict[str, tuple[str, ...]] = {}
    for name, others in parents.items():
        if not isinstance(name, str):
            raise arguments.wrong_type("a variable of the structure", name, "a name")
        if isinstance(others, str) or not isinstance(others, Sequence) or not all(isinstance(p, str) for p in others):
            raise arguments.wrong_type(f"parents of {name!r}", others, "a sequence of names, such as a list")
        if len({name, *others}) <= len(others):
            raise InputError(f"parents of {name!r} is {list(others)}: each must differ from {name!r} and the others")
        listed[name] = tuple(others)
    for others in list(listed.values()):
        for parent in others:
            listed.setdefault(parent, ())
    return listed
