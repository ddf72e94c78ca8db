"""Dynamic Bayesian networks of pgmpy and pyAgrum: the networks of their first slice and of a transition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from elimina.errors import InputError, UnsupportedError
from elimina.io.pgmpy_networks import factor_values, native_state, states_of_factors
from elimina.io.pyagrum_networks import from_pyagrum
from elimina.model.dynamic_network import previous_name
from elimina.model.model import Model
from elimina.model.table import Table
from elimina.model.variable import Variable


class TwoSlices(NamedTuple):
    """Networks of the first slice, and of a later slice given the previous one."""

    initial: Model
    transition: Model


def slices_from_pgmpy(network: Any, *, check: bool = True) -> TwoSlices:
    """Return the slices of a DynamicBayesianNetwork of pgmpy, whose nodes are pairs of a name and 0 or 1.

    Raises:
        InputError: ``network`` is something else, a node has no distribution, two factors have different states of a
            variable, or (with ``check``) a row of a distribution does not sum to 1.
        UnsupportedError: A node is in another slice, has a parent in a later slice, or has no table.
    """
    if not hasattr(network, "get_interface_nodes"):
        raise InputError(f"expected a DynamicBayesianNetwork of pgmpy, got an object of type {type(network).__name__}")
    factors = list(network.get_cpds())
    for factor in factors:
        if not hasattr(factor, "state_names") or not hasattr(factor, "values"):
            raise UnsupportedError(f"{factor!r} is not a table; elimina handles discrete tables only")
    states = states_of_factors(factors)
    names = list(dict.fromkeys(node[0] for node in network.nodes()))
    children = {factor.variables[0] for factor in factors}
    for name in names:
        if (name, 0) not in states or not any(child == (name, 0) for child in children):
            raise InputError(
                f"node {(name, 0)!r} has no distribution: add one, or call initialize_initial_state() of the network"
            )
    unknown = next((node for node in states if node[1] not in (0, 1)), None)
    if unknown is not None:
        raise UnsupportedError(f"node {tuple(unknown)!r} is in neither of the slices 0 and 1")
    variables = [Variable(str(name), len(states[name, 0]), list(map(native_state, states[name, 0]))) for name in names]
    previous = [Variable(previous_name(v.name), v.size, v.states) for v in variables]
    number_of = {name: number for number, name in enumerate(names)}
    # The states of both slices are put into the order of the first slice.
    ordered = {(name, t): states[name, 0] for name in names for t in (0, 1)}
    tables: dict[int, list[Table]] = {0: [], 1: []}
    for factor in factors:
        child_slice = factor.variables[0][1]
        shift = len(names) if child_slice else 0
        scope = [number_of[v[0]] + (shift if v[1] == child_slice else 0) for v in factor.variables]
        if any(v[1] > child_slice for v in factor.variables):
            raise UnsupportedError(f"node {tuple(factor.variables[0])!r} has a parent in a later slice")
        tables[child_slice].append(Table([*scope[1:], scope[0]], factor_values(factor, ordered)))
    return TwoSlices(_network(variables, tables[0], check), _network([*previous, *variables], tables[1], check))


def slices_from_pyagrum(network: Any, *, check: bool = True) -> TwoSlices:
    """Return the slices of a BayesNet of pyAgrum whose variables are named ``rain0`` and ``raint``.

    Raises:
        InputError: ``network`` is something else, a slice lacks a variable of the other one, or (with ``check``) a row
            of a distribution does not sum to 1.
        UnsupportedError: A variable is in no slice, or has a parent in a later slice.
    """
    model = from_pyagrum(network, check=check)
    outside = next((v.name for v in model.variables if v.name[-1:] not in ("0", "t")), None)
    if outside is not None:
        raise UnsupportedError(
            f"variable {outside!r} is in no slice: names end in 0 (first slice) or t (later slices); let a variable "
            "that does not change over time equal itself in the previous slice, with probability 1"
        )
    firsts = {v.name[:-1]: n for n, v in enumerate(model.variables) if v.name.endswith("0")}
    laters = {v.name[:-1]: n for n, v in enumerate(model.variables) if v.name.endswith("t")}
    unpaired = next((name for name in {**firsts, **laters} if name not in firsts or name not in laters), None)
    if unpaired is not None:
        present, absent = ("0", "t") if unpaired in firsts else ("t", "0")
        raise InputError(
            f"the network has the variable {unpaired + present!r} of one slice, "
            f"but not {unpaired + absent!r} of the other"
        )
    assert model.children is not None
    variables = [Variable(name, model.sizes[n], model.variables[n].states) for name, n in firsts.items()]
    previous = [Variable(previous_name(v.name), v.size, v.states) for v in variables]
    number_of = {n: number for number, n in enumerate(firsts.values())}
    later_place = {n: len(firsts) + list(firsts).index(name) for name, n in laters.items()}
    initial, transition = [], []
    for child, factor in zip(model.children, model.factors, strict=True):
        if child in number_of:
            parent = next((v for v in factor.scope if v not in number_of), None)
            if parent is not None:
                raise UnsupportedError(
                    f"variable {model.variables[child].name!r} has the parent {model.variables[parent].name!r} in a "
                    "later slice"
                )
            initial.append(factor.over([number_of[v] for v in factor.scope]))
        else:
            transition.append(factor.over([{**number_of, **later_place}[v] for v in factor.scope]))
    return TwoSlices(_network(variables, initial, check), _network([*previous, *variables], transition, check))


def _network(variables: Sequence[Variable], tables: Sequence[Table], check: bool) -> Model:
    """Return a network of tables whose last axis is the child."""
    return Model(variables, tables, sense="probability", children=[t.scope[-1] for t in tables], check=check)
