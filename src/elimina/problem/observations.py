"""Checks of evidence, and its translation to indices of variables and states."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina.arguments import check_mapping, shown
from elimina.errors import InputError
from elimina.model.cells import indices_of_labels, without_point
from elimina.model.labels import labelled_table
from elimina.model.model import Model, variable_index
from elimina.model.states import Evidence, StateIndex, is_missing, native
from elimina.model.table import unmasked
from elimina.model.variable import MAX_LISTED_STATES, Variable, index_of
from elimina.number_texts import counted

Likelihoods = NDArray[Any]


def evidence_of(model: Model, evidence: Evidence) -> dict[int, int | Likelihoods]:
    """Translate evidence to indices.

    Args:
        model: Model of the evidence.
        evidence: See ``Evidence``.

    Returns:
        Variable index -> index of its state, or float64 likelihoods of shape ``(size,)``. Unobserved variables are left
        out.

    Raises:
        InputError: A variable or state is unknown; likelihoods are negative, infinite, NaN or of the wrong number; or a
            name and an index contradict each other about one variable.
        TypeError: ``evidence`` is not a mapping.
    """
    return _without_missing(_by_index(model, evidence, "evidence", observation_of))


def changes_of(model: Model, changes: Evidence) -> dict[int, int | Likelihoods | None]:
    """Translate changes of evidence to indices: see ``evidence_of``; None for variables that are no longer observed."""
    return _by_index(model, changes, "evidence", observation_of)


def assignment_of(model: Model, states: Evidence, argument: str) -> dict[int, int]:
    """Translate the states of some variables to indices; variables with missing states are left out.

    Args:
        model: Model with the variables.
        states: Variable (name or index) -> its state.
        argument: Name of ``states`` in errors.

    Raises:
        InputError: A variable or state is unknown, or a name and an index give one variable two states.
        TypeError: ``states`` is not a mapping.
    """
    return _without_missing(_by_index(model, states, argument, index_of))


def _without_missing(states: dict[int, Any]) -> dict[int, Any]:
    return {v: state for v, state in states.items() if state is not None}


def _by_index(model: Model, states: Evidence, argument: str, read: Callable[[Variable, Any], Any]) -> dict[int, Any]:
    """Return the observation of each variable, or None if it is missing; ``read`` converts states other than names."""
    check_mapping(argument, states)
    values: dict[int, Any] = {}
    for name, state in states.items():
        v = model.find(name) if type(name) is str else None
        if v is None:
            v = variable_index(model, name)
        variable = model.variables[v]
        value = variable.find(state) if type(state) is str else None
        if value is None and not is_missing(state):
            value = read(variable, state)
        if v in values:
            _check_agreement(argument, variable, values[v], value)
        values[v] = value
    return values


def observation_of(variable: Variable, observation: Any) -> int | Likelihoods:
    """Return the index of an observed state, or checked likelihoods: see ``evidence_of``.

    A float without fractional part is read as an int, as in ``index_of_cell``, because a row of a frame has one type.
    """
    if isinstance(observation, str | StateIndex):
        return index_of(variable, observation)
    if isinstance(observation, Mapping):
        observation = _ordered_likelihoods(
            variable, [index_of(variable, state) for state in observation], observation.values()
        )
    elif hasattr(observation, "items") and np.ndim(observation) == 1:
        labels, likelihoods = [list(column) for column in zip(*observation.items(), strict=True)] or ([], [])
        observation = _ordered_likelihoods(variable, indices_of_labels(variable, labels), likelihoods)
    likelihood_array = unmasked(f"the likelihoods of variable {variable.name!r}", observation)
    if likelihood_array.ndim == 0:
        return index_of(variable, without_point(native(observation)))
    labelled_table(f"the likelihoods of variable {variable.name!r}", observation)
    try:
        # Text and complex numbers are rejected, although they can be converted to floats.
        if likelihood_array.dtype.kind not in "buifO" or any(
            isinstance(likelihood, str) for likelihood in likelihood_array.flat
        ):
            raise TypeError
        weights = likelihood_array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"the likelihoods of variable {variable.name!r} are not numbers: {observation!r}") from error
    except OverflowError:
        raise InputError(
            f"the likelihoods of variable {variable.name!r} are {shown(observation)}; they must be within the "
            "range of a float"
        ) from None
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
    """Return likelihoods in the order of all states, from those of the states at ``indices``; other states get 0.

    Raises:
        InputError: A state is named twice, or the variable has too many states to list.
    """
    if variable.size > MAX_LISTED_STATES:
        raise InputError(
            f"the likelihoods of variable {variable.name!r} would be one for each of its "
            f"{counted(variable.size, 'state')}, and "
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
    argument: str, variable: Variable, first: int | Likelihoods | None, second: int | Likelihoods | None
) -> None:
    if first is second is None:
        return
    if first is None or second is None:
        raise InputError(
            f"{argument} about variable {variable.name!r} is given and taken back at once, by its name and its index; "
            "give one of them"
        )
    if not isinstance(first, int) or not isinstance(second, int):
        raise InputError(
            f"{argument} about variable {variable.name!r} is given twice, and one of them is soft; combine them"
        )
    if first != second:
        states = variable.state(first), variable.state(second)
        raise InputError(f"{argument} gives variable {variable.name!r} two states: {states[0]!r} and {states[1]!r}")


def impossible_text(model: Model, evidence: Mapping[int, int | Likelihoods]) -> str:
    """Return an error's text for evidence of probability 0."""
    texts = []
    for v, what in list(evidence.items())[:5]:
        state = model.variables[v].state(what) if isinstance(what, int) else what.tolist()
        texts.append(f"{model.variables[v].name}={state}")
    if not texts:
        return "the model's sum is 0: no assignment has a positive probability"
    ending = ", ..." if len(evidence) > 5 else ""
    return f"the evidence ({', '.join(texts)}{ending}) has probability 0, so there are no posteriors: remove some of it"
