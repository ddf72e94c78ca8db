"""Evidence as callers give it, checked and translated to indices of variables and states."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina.arguments import check_mapping
from elimina.errors import InputError
from elimina.model.cells import indices_of_labels, without_point
from elimina.model.labels import labelled_table
from elimina.model.model import Model, variable_index
from elimina.model.states import Evidence, StateIndex, is_missing, native
from elimina.model.table import unmasked
from elimina.model.variable import MAX_LISTED_STATES, Variable, index_of

Likelihoods = NDArray[Any]


def evidence_of(model: Model, evidence: Evidence) -> dict[int, int | Likelihoods]:
    """Translate evidence to indices.

    Args:
        model: Model of the evidence.
        evidence: See ``Evidence``.

    Returns:
        Variable index -> index of its state, or float64 likelihoods of shape ``(size,)``. Variables that are not
        observed are left out.

    Raises:
        InputError: There is no such variable or state, likelihoods are negative, infinite, NaN or of the wrong number,
            or a name and an index say different things about one variable.
        TypeError: ``evidence`` is not a mapping.
    """
    return _without_missing(_by_index(model, evidence, "evidence", observation_of))


def changes_of(model: Model, changes: Evidence) -> dict[int, int | Likelihoods | None]:
    """Translate changes of evidence to indices: see ``evidence_of``; None for a variable that is no longer observed."""
    return _by_index(model, changes, "evidence", observation_of)


def assignment_of(model: Model, given: Evidence, argument: str) -> dict[int, int]:
    """Translate the states of some variables to indices; those that are missing are left out.

    Args:
        model: The variables' model.
        given: Variable (name or index) -> its state.
        argument: Name of ``given`` in errors.

    Raises:
        InputError: There is no such variable or state, or a name and an index give one variable two states.
        TypeError: ``given`` is not a mapping.
    """
    return _without_missing(_by_index(model, given, argument, index_of))


def _without_missing(known: dict[int, Any]) -> dict[int, Any]:
    return {v: what for v, what in known.items() if what is not None}


def _by_index(model: Model, given: Evidence, argument: str, read: Callable[[Variable, Any], Any]) -> dict[int, Any]:
    """Return what is said about each variable, None if it is missing; a function reads what is not a state's name."""
    check_mapping(argument, given)
    found: dict[int, Any] = {}
    for name, known in given.items():
        v = model.find(name) if type(name) is str else None
        if v is None:
            v = variable_index(model, name)
        variable = model.variables[v]
        new = variable.find(known) if type(known) is str else None
        if new is None and not is_missing(known):
            new = read(variable, known)
        if v in found:
            _check_agreement(argument, variable, found[v], new)
        found[v] = new
    return found


def observation_of(variable: Variable, known: Any) -> int | Likelihoods:
    """Return the index of an observed state, or checked likelihoods: see ``evidence_of``.

    A whole float is taken as an int, as in ``index_of_cell``: a row of a frame has one type.
    """
    if isinstance(known, str | StateIndex):
        return index_of(variable, known)
    if isinstance(known, Mapping):
        known = _ordered_likelihoods(variable, [index_of(variable, state) for state in known], known.values())
    elif hasattr(known, "items") and np.ndim(known) == 1:
        labels, likelihoods = [list(column) for column in zip(*known.items(), strict=True)] or ([], [])
        known = _ordered_likelihoods(variable, indices_of_labels(variable, labels), likelihoods)
    given = unmasked(f"the likelihoods of variable {variable.name!r}", known)
    if given.ndim == 0:
        return index_of(variable, without_point(native(known)))
    labelled_table(f"the likelihoods of variable {variable.name!r}", known)
    try:
        # Text and complex numbers have a float, too, but not by intent.
        if given.dtype.kind not in "buifO" or any(isinstance(likelihood, str) for likelihood in given.flat):
            raise TypeError
        weights = given.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"the likelihoods of variable {variable.name!r} are not numbers: {known!r}") from error
    if weights.shape != (variable.size,):
        raise InputError(
            f"variable {variable.name!r} has {variable.size} states and got likelihoods of shape {weights.shape}"
        )
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise InputError(
            f"the likelihoods of variable {variable.name!r} are {weights.tolist()}; "
            "they must be finite and not negative"
        )
    return weights


def _ordered_likelihoods(variable: Variable, indices: Sequence[int], likelihoods: Iterable[Any]) -> list[Any]:
    """Return likelihoods of some states, by their indices, in the order of the states; states left out have 0."""
    if variable.size > MAX_LISTED_STATES:
        raise InputError(
            f"the likelihoods of variable {variable.name!r} would be one for each of its {variable.size:,} states, and "
            f"at most {MAX_LISTED_STATES:,} are possible: add a factor that lists the states instead (an elimina.Table "
            "with rows and default=0)"
        )
    if len(set(indices)) < len(indices):
        twice = next(x for x in indices if indices.count(x) > 1)
        raise InputError(
            f"the likelihoods of variable {variable.name!r} name the state {variable.state(twice)!r} twice"
        )
    ordered: list[Any] = [0.0] * variable.size
    for x, likelihood in zip(indices, likelihoods, strict=True):
        ordered[x] = likelihood
    return ordered


def _check_agreement(
    argument: str, variable: Variable, one: int | Likelihoods | None, other: int | Likelihoods | None
) -> None:
    if one is other is None:
        return
    if one is None or other is None:
        raise InputError(
            f"{argument} about variable {variable.name!r} is given and taken back at once, by its name and its index; "
            "give one of them"
        )
    if not isinstance(one, int) or not isinstance(other, int):
        raise InputError(
            f"{argument} about variable {variable.name!r} is given twice, and one of them is soft; combine them"
        )
    if one != other:
        states = variable.state(one), variable.state(other)
        raise InputError(f"{argument} gives variable {variable.name!r} two states: {states[0]!r} and {states[1]!r}")
