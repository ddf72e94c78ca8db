"""Networks that repeat over time: the first slice, and each later slice given the one before."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elimina import arguments
from elimina.errors import InputError, MemoryLimitError
from elimina.model.conditional_tables import network_of
from elimina.model.model import Model
from elimina.model.states import State
from elimina.model.table import Table
from elimina.model.variable import Variable, variable_of
from elimina.number_texts import bytes_text, counted
from elimina.system import available_memory

_SUFFIX = "[-1]"
"""Ending of the name of a variable of the previous slice."""

_UNROLLED_BYTES = 500
"""Lower bound on the bytes of a variable and its table in an unrolled network."""


def previous_name(name: str) -> str:
    """Return the name that a variable of the previous slice has in a transition."""
    return name + _SUFFIX


def slice_name(name: str, number: int) -> str:
    """Return the name that a variable of a slice has in an unrolled network."""
    return f"{name}[{number}]"


class DynamicNetwork:
    """A dynamic Bayesian network of first order, checked.

    Args:
        initial: Bayesian network of the first slice.
        transition: Network of a later slice given the previous one, whose variables have names such as ``rain[-1]``. A
            variable of the later slice without a distribution has that of the first slice.
        name: Name of the network.

    Attributes:
        variables: Variables of a slice.
        initial: Network of the first slice.
        transition: Network with the distributions of a later slice. Its variables are those of the previous slice, then
            those of the slice itself, in the order of ``variables``. Its factors are in the same order.
        interface: Indices of the variables with children in the next slice.

    Raises:
        TypeError: An argument is not a model.
        InputError: A model is not a Bayesian network, the two models disagree about a variable's states, or a variable
            has no distribution.
    """

    def __init__(self, initial: Model, transition: Model, name: str = "") -> None:
        for argument, model in (("initial", initial), ("transition", transition)):
            if not isinstance(model, Model):
                raise arguments.wrong_type(argument, model, "a Model")
        self.name = name
        self.variables = initial.variables
        self.initial = _ordered_by_child(initial)
        self.transition = _aligned_transition(self.initial, transition)
        count = len(self.variables)
        parents = {v for factor in self.transition.factors for v in factor.scope if v < count}
        self.interface = tuple(sorted(parents))

    def unroll(self, count: int) -> Model:
        """Return the Bayesian network of a number of slices; the variable ``rain`` of slice 3 is named ``rain[3]``.

        Args:
            count: Number of slices, at least 1. The first one has the number 0.

        Raises:
            InputError: ``count`` is less than 1, or beyond the integers of the machine.
            MemoryLimitError: The network does not fit into memory.

        Examples:
            >>> import elimina
            >>> model = elimina.DynamicModel.hidden_markov([0.6, 0.4], [[0.7, 0.3], [0.4, 0.6]])
            >>> [variable.name for variable in model.unroll(3)]
            ['state[0]', 'state[1]', 'state[2]']
        """
        count = arguments.integer("count", count, 1, sys.maxsize)
        size = len(self.variables)
        needed = count * size * _UNROLLED_BYTES
        if needed > (room := available_memory()):
            raise MemoryLimitError(
                f"the network of {counted(count, 'slice')} takes about {bytes_text(needed)}, and "
                f"{bytes_text(room)} are left: unroll fewer slices, or use the methods of DynamicModel"
            )
        names = [Variable(slice_name(v.name, t), v.size, v.states) for t in range(count) for v in self.variables]
        factors = list(self.initial.factors)
        for t in range(1, count):
            shift = (t - 1) * size
            factors += [factor.over([v + shift for v in factor.scope]) for factor in self.transition.factors]
        children = range(len(names))
        return Model(names, factors, sense="probability", children=children, name=self.name, check=False)


def slices_of_cpds(
    initial: Any, transition: Any, states: Mapping[str, Any] | None, name: str, *, check: bool
) -> tuple[Model, Model]:
    """Return the networks of the first and of a later slice: see ``DynamicModel.from_cpds``."""
    families = network_of(initial, states, check=check, argument="initial")
    children = range(len(families.variables))
    first = Model(families.variables, families.tables, sense="probability", children=children, name=name, check=check)
    if not isinstance(transition, Mapping):
        raise arguments.wrong_type("transition", transition, "a mapping from names to distributions")
    _check_names(first, transition)
    previous_variables = {previous_name(v.name): v for v in first.variables}
    previous_variables.update((v.name, v) for v in first.variables)
    uniform = {p: np.full(v.size, 1 / v.size) for p, v in previous_variables.items() if p != v.name}
    # Variables without a new distribution get a uniform one for now, so that others may have them as parents.
    changing = {key if isinstance(key, str) else key[0] for key in transition}
    uniform.update((v.name, np.full(v.size, 1 / v.size)) for v in first.variables if v.name not in changing)
    listed = {p: v.size if v.states is None else v.states for p, v in previous_variables.items()}
    variables, tables = network_of({**uniform, **transition}, listed, check=check, argument="transition")
    names = [v.name for v in variables]
    pairs = [(t, c) for c, t in enumerate(tables) if names[c] in changing]
    second = Model(variables, [t for t, _ in pairs], sense="probability", children=[c for _, c in pairs], check=check)
    return first, second


def slices_of_matrices(
    start: ArrayLike,
    transition: ArrayLike,
    emission: ArrayLike | Mapping[str, ArrayLike] | None,
    states: int | Sequence[State] | None,
    symbols: Sequence[State] | Mapping[str, Sequence[State]] | None,
    check: bool = True,
) -> tuple[Model, Model]:
    """Return the networks of the first and of a later slice: see ``DynamicModel.hidden_markov``."""
    first = _probabilities("start", start, 1)
    count = len(first)
    moves = _probabilities("transition", transition, 2)
    if moves.shape != (count, count):
        raise InputError(
            f"start has {counted(count, 'state')} and transition the shape {moves.shape}; it takes ({count}, "
            f"{count}), a row "
            "for each state"
        )
    state = variable_of(STATE, count if states is None else states, "states")
    if state.size != count:
        raise InputError(f"start has {counted(count, 'state')} and states names {state.size}: give each state one name")
    rows = emission if isinstance(emission, Mapping) else {} if emission is None else {OBSERVATION: emission}
    named = symbols if isinstance(symbols, Mapping) else {} if symbols is None else {OBSERVATION: symbols}
    unknown = next((name for name in named if name not in rows), None)
    if unknown is not None:
        raise InputError(f"symbols names {unknown!r}, which has no emission{arguments.names_like(str(unknown), rows)}")
    observed = []
    tables = []
    for number, (name, table) in enumerate(rows.items(), 1):
        if not isinstance(name, str):
            raise arguments.wrong_type("a key of emission", name, "the name of an observed variable")
        if name == STATE:
            raise InputError(f"emission names {STATE!r}, the hidden variable: give the observed one another name")
        label = "emission" if rows is not emission else f"emission[{name!r}]"
        values = _probabilities(label, table, 2)
        if len(values) != count:
            raise InputError(
                f"{label} has {counted(len(values), 'row')}; it takes one for each of the {counted(count, 'state')}"
            )
        listed = f"symbols[{name!r}]" if named is symbols else "symbols"
        variable = variable_of(name, named.get(name, values.shape[1]), listed)
        if variable.size != values.shape[1]:
            raise InputError(f"{label} has {values.shape[1]} symbols and symbols names {variable.size} for {name!r}")
        observed.append(variable)
        tables.append(Table([0, number], values))
    variables = [state, *observed]
    children = range(len(variables))
    distributions = [Table([0], first), *tables]
    first_slice = Model(variables, distributions, sense="probability", children=children, check=check)
    later = [Variable(previous_name(STATE), count, state.states), state]
    return first_slice, Model(later, [Table([0, 1], moves)], sense="probability", children=[1], check=check)


STATE, OBSERVATION = "state", "observation"
"""Names of the variables of a hidden Markov model."""


_FORMS = {1: "a sequence", 2: "an array of two axes"}
"""Descriptions of the expected form of probabilities, by the number of axes, for errors."""


def _probabilities(name: str, values: Any, axes: int) -> NDArray[np.float64]:
    try:
        array = np.asarray(values)
        if array.dtype.kind == "c":
            raise TypeError  # a cast would drop the imaginary parts
        array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} is {arguments.shown(values)}; it takes {_FORMS[axes]} of numbers") from None
    if array.ndim != axes or not array.size:
        raise InputError(f"{name} has the shape {array.shape}; it takes {_FORMS[axes]} that is not empty")
    return array


def _ordered_by_child(initial: Model) -> Model:
    """Return the network of the first slice, a factor for each variable, in the order of the variables."""
    if initial.sense != "probability" or initial.children is None:
        raise InputError("initial is not a Bayesian network: give children, or use DynamicModel.from_cpds")
    factors = dict(zip(initial.children, initial.factors, strict=True))
    missing = next((v.name for n, v in enumerate(initial.variables) if n not in factors), None)
    if missing is not None:
        raise InputError(f"variable {missing!r} has no distribution in the first slice: add one to initial")
    clash = next((v.name for v in initial.variables if v.name.endswith(_SUFFIX)), None)
    if clash is not None:
        raise InputError(
            f"variable {clash!r} of the first slice has the name of a variable of a slice before: rename it"
        )
    ordered = [factors[n] for n in range(len(initial.variables))]
    children = range(len(ordered))
    return Model(initial.variables, ordered, sense="probability", children=children, name=initial.name, check=False)


def _aligned_transition(initial: Model, transition: Model) -> Model:
    """Return ``DynamicNetwork.transition``: variables without a distribution get that of the first slice."""
    if transition.sense != "probability" or transition.children is None:
        raise InputError("transition is not a Bayesian network: give children, or use DynamicModel.from_cpds")
    count = len(initial.variables)
    variables = [Variable(previous_name(v.name), v.size, v.states) for v in initial.variables]
    variables += initial.variables
    index = {v.name: n for n, v in enumerate(variables)}
    positions = {}
    for n, variable in enumerate(transition.variables):
        if variable.name not in index:
            raise InputError(
                f"transition has the variable {variable.name!r}, which the first slice has not"
                f"{arguments.names_like(variable.name, index)}"
            )
        positions[n] = index[variable.name]
        initial_variable = variables[positions[n]]
        if tuple(variable.all_states) != tuple(initial_variable.all_states):
            raise InputError(
                f"variable {variable.name!r} has the states {list(variable.all_states)[:8]} in transition and "
                f"{list(initial_variable.all_states)[:8]} in initial: list the same states in the same order"
            )
    factors: dict[int, Table] = {}
    for child, factor in zip(transition.children, transition.factors, strict=True):
        if positions[child] < count:
            raise InputError(
                f"transition has a distribution of {transition.variables[child].name!r}, a variable of the previous "
                "slice: leave it out"
            )
        factors[positions[child]] = factor.over([positions[v] for v in factor.scope])
    for v, factor in enumerate(initial.factors):
        factors.setdefault(count + v, factor.over([u + count for u in factor.scope]))
    children = range(count, 2 * count)
    ordered = [factors[v] for v in children]
    # Distributions taken from the first slice may close a cycle, which ``Model`` refuses.
    return Model(variables, ordered, sense="probability", children=children, check=False)


def _check_names(initial: Model, transition: Mapping[Any, Any]) -> None:
    """Check that a transition names variables of the slice, or of the previous one."""
    names = {v.name for v in initial.variables}
    names |= {previous_name(v.name) for v in initial.variables}
    for key in transition:
        members = (key,) if isinstance(key, str) else key
        if not isinstance(members, tuple) or not members or not all(isinstance(name, str) for name in members):
            taken = "a name, or a tuple of names: the variable, then its parents"
            raise arguments.wrong_type("a key of transition", key, taken)
        unknown = next((name for name in members if name not in names), None)
        if unknown is not None:
            raise InputError(
                f"the key {key!r} of transition names {unknown!r}, which is not a variable of the first slice, nor one "
                f"of the previous slice such as {previous_name(initial.variables[0].name)!r}"
                f"{arguments.names_like(unknown, names)}"
            )
        if members[0].endswith(_SUFFIX):
            raise InputError(
                f"the key {key!r} of transition is a distribution of a variable of the previous slice: leave it out"
            )
