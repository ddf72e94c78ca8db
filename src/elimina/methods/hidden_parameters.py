"""Parameters of a hidden Markov model and likelihoods of observations, over the joint states of an interface."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.methods.observed_sequences import (
    LEAST,
    Floats,
    Ints,
    Sequences,
    scaled_likelihoods,
)
from elimina.model.dynamic_network import DynamicNetwork
from elimina.system import cached_property

_MAX_LISTED_ROWS = 4096
"""Largest number of combinations of observations whose likelihoods are all computed in advance."""


class Likelihoods(NamedTuple):
    """Likelihoods of the observations of slices.

    Attributes:
        table: Likelihoods, with a column for each joint state.
        rows: Row of the table for each slice.
        scales: Logarithms of the divisors of the slices' likelihoods; None: likelihoods are not scaled.
    """

    table: Floats
    rows: Ints
    scales: Floats | None = None


class HiddenParameters:
    """Distributions of a dynamic network over the joint states of its interface.

    Args:
        network: A network for which ``is_hidden_chain`` holds.

    Attributes:
        network: The network.
        sizes: Number of states of each variable of the interface.
        states: Number of joint states.
    """

    def __init__(self, network: DynamicNetwork) -> None:
        self.network = network
        self.sizes = tuple(network.variables[v].size for v in network.interface)
        self.states = math.prod(self.sizes)
        self._emissions: dict[tuple[int, bool], Floats] = {}
        self._listed: dict[tuple[tuple[int, ...], tuple[int, ...], bool], Floats] = {}

    @cached_property
    def start(self) -> Floats:
        """Distribution of the joint states of the first slice."""
        return self._joined(is_first=True, in_logs=False)

    @cached_property
    def log_start(self) -> Floats:
        """Natural logarithms of ``start``, whose products may underflow."""
        return self._joined(is_first=True, in_logs=True)

    @cached_property
    def transition(self) -> Floats:
        """Probability of each joint state (column) given each joint state of the previous slice (row)."""
        return self._joined(is_first=False, in_logs=False).reshape(self.states, self.states)

    @cached_property
    def log_transition(self) -> Floats:
        """Natural logarithms of ``transition``, whose products may underflow."""
        return self._joined(is_first=False, in_logs=True).reshape(self.states, self.states)

    def _joined(self, *, is_first: bool, in_logs: bool) -> Floats:
        """Return the product of the distributions of the interface's variables, or its logarithms, as a flat array.

        The states of the previous slice vary more slowly than those of the slice itself.
        """
        axis = {v: n for n, v in enumerate(self.network.interface)}
        factors, axes = self.network.initial.factors, len(self.sizes)
        if not is_first:
            shift, factors = len(self.network.variables), self.network.transition.factors
            axis.update({v + shift: n + axes for n, v in enumerate(self.network.interface)})
            axes *= 2
        joined = np.zeros((1,) * axes) if in_logs else np.ones((1,) * axes)
        for v in self.network.interface:
            table = _spread(factors[v].dense(), [axis[u] for u in factors[v].scope], axes)
            joined = joined + _logs(table) if in_logs else _positive_product(joined, table)
        sizes = self.sizes if is_first else self.sizes * 2
        return np.array(np.broadcast_to(joined, sizes), dtype=np.float64).reshape(-1)

    def emission(self, v: int, is_first: bool) -> Floats:
        """Return the likelihood of a variable's states for each joint state; the last row is for missing observations.

        Args:
            v: Variable of a slice.
            is_first: True for the first slice.
        """
        key = v, is_first and v not in self.network.interface
        if key not in self._emissions:
            self._emissions[key] = self._new_emission(*key)
        return self._emissions[key]

    def _new_emission(self, v: int, is_first: bool) -> Floats:
        if v in self.network.interface:
            return np.vstack([self._joint_rows(v, np.eye(self.network.variables[v].size)), np.ones(self.states)])
        factor = (self.network.initial if is_first else self.network.transition).factors[v]
        shift = 0 if is_first else len(self.network.variables)
        axis = {u + shift: n + 1 for n, u in enumerate(self.network.interface)}
        axis[v + shift] = 0
        table = _spread(factor.dense(), [axis[u] for u in factor.scope], len(self.sizes) + 1)
        full = np.broadcast_to(table, (len(table), *self.sizes)).reshape(len(table), self.states)
        return np.vstack([full, full.sum(0)])

    def _joint_rows(self, v: int, rows: Floats) -> Floats:
        """Expand rows over the states of a variable of the interface to rows over the joint states."""
        if len(self.sizes) == 1:
            return rows
        axis = self.network.interface.index(v) + 1
        table = _spread(rows, [0, axis], len(self.sizes) + 1)
        return np.broadcast_to(table, (len(rows), *self.sizes)).reshape(len(rows), self.states)

    @cached_property
    def leaves(self) -> list[int]:
        """Variables of a slice outside the interface."""
        return [v for v in range(len(self.network.variables)) if v not in self.network.interface]

    @cached_property
    def _first_differs(self) -> bool:
        """True if a variable outside the interface has another distribution in the first slice than in later ones."""
        return any(
            self.emission(v, True).shape != self.emission(v, False).shape
            or (self.emission(v, True) != self.emission(v, False)).any()
            for v in self.leaves
        )

    def likelihoods(self, sequences: Sequences, rows: slice, firsts: NDArray[np.bool_]) -> Likelihoods:
        """Return the likelihoods of some slices; ``firsts`` marks the first slices of sequences."""
        listed, table_rows = self._listed_rows(sequences, rows, firsts)
        if not sequences.logs:
            return Likelihoods(listed, table_rows)
        table, scales = listed[table_rows], np.zeros(len(table_rows))
        for v, logs in sequences.logs.items():
            weights, peaks = scaled_likelihoods(logs[rows])
            scales += peaks
            if v in self.network.interface:
                table *= self._joint_rows(v, weights)
                continue
            for is_first, chosen in self.split(firsts):
                table[chosen] *= weights[chosen] @ self.emission(v, is_first)[:-1]
        if table.min(initial=1.0) == 0:
            table[(table == 0) & self._possible(sequences, rows, firsts, (listed > 0)[table_rows])] = LEAST
        return Likelihoods(table, np.arange(len(table_rows), dtype=np.int32), scales)

    def _possible(
        self, sequences: Sequences, rows: slice, firsts: NDArray[np.bool_], possible: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Return a mask of positive likelihoods, which may underflow; ``possible``: mask from observed states alone."""
        for v, logs in sequences.logs.items():
            is_possible = (logs[rows] > -np.inf).astype(np.float64)
            if v in self.network.interface:
                possible &= self._joint_rows(v, is_possible) > 0
                continue
            for is_first, chosen in self.split(firsts):
                possible[chosen] &= is_possible[chosen] @ (self.emission(v, is_first)[:-1] > 0) > 0
        return possible

    def log_likelihoods(self, sequences: Sequences, rows: slice, firsts: NDArray[np.bool_]) -> Likelihoods:
        """Return the logarithms of likelihoods: see ``likelihoods``."""
        table, table_rows = self._listed_rows(sequences, rows, firsts, in_logs=True)
        with np.errstate(divide="ignore"):
            if not sequences.logs:
                return Likelihoods(table, table_rows)
            table = table[table_rows]
            for v, logs in sequences.logs.items():
                if v in self.network.interface:
                    table += self._joint_rows(v, logs[rows])
                    continue
                for is_first, chosen in self.split(firsts):
                    emission, total = np.log(self.emission(v, is_first)[:-1]), np.array(-np.inf)
                    for column, row in zip(logs[rows][chosen].T, emission, strict=True):
                        total = np.logaddexp(total, column[:, None] + row)
                    table[chosen] += total
        return Likelihoods(table, np.arange(len(table_rows), dtype=np.int32))

    def split(self, firsts: NDArray[np.bool_]) -> list[tuple[bool, NDArray[np.bool_] | slice]]:
        """Return pairs of ``is_first`` and the mask of its slices; a single pair if all have the same distributions."""
        return [(False, ~firsts), (True, firsts)] if self._first_differs else [(False, slice(None))]

    def _listed_rows(
        self, sequences: Sequences, rows: slice, firsts: NDArray[np.bool_], *, in_logs: bool = False
    ) -> tuple[Floats, Ints]:
        """Return a table of likelihoods of observed states, or of their logarithms, and the row of each slice."""
        columns, codes = sequences.columns, sequences.codes[rows]
        silent = [v for v in self.leaves if v not in columns and v not in sequences.logs]
        sizes = [self.network.variables[v].size + 1 for v in columns]
        count = math.prod(sizes)
        flags = (False, True) if self._first_differs else (False,)
        if count <= _MAX_LISTED_ROWS:
            key = columns, tuple(silent), in_logs
            if key not in self._listed:
                combinations = np.indices(sizes, dtype=np.int32).reshape(len(sizes), count).T
                self._listed[key] = np.vstack(
                    [self._rows(columns, silent, combinations, flag, in_logs) for flag in flags]
                )
            table_rows = np.zeros(len(codes), dtype=np.int32)
            for column, size in zip(codes.T, sizes, strict=True):
                table_rows *= np.int32(size)
                table_rows += column
                # The last row of each variable is for slices without its observation.
                if len(column) and column.min() < 0:
                    table_rows += np.where(column < 0, np.int32(size), np.int32(0))
            return self._listed[key], (table_rows + count * firsts).astype(
                np.int32
            ) if self._first_differs else table_rows
        marked = np.column_stack([firsts & self._first_differs, codes])
        used, numbers = np.unique(marked, axis=0, return_inverse=True)
        observed = [used[used[:, 0] == flag, 1:] for flag in flags]
        pairs = zip(observed, flags, strict=True)
        table = np.vstack([self._rows(columns, silent, codes_of_flag, flag, in_logs) for codes_of_flag, flag in pairs])
        return table, numbers.reshape(-1).astype(np.int32)

    def _rows(
        self, columns: Sequence[int], silent: Sequence[int], codes: NDArray[Any], is_first: bool, in_logs: bool
    ) -> Floats:
        """Return likelihoods of combinations of states of ``columns``, or their logarithms.

        The variables in ``silent`` are not observed.
        """
        factors = [self.emission(v, is_first)[column] for v, column in zip(columns, codes.T, strict=True)]
        factors += [self.emission(v, is_first)[-1] for v in silent]
        table = np.zeros((len(codes), self.states)) if in_logs else np.ones((len(codes), self.states))
        for factor in factors:
            table = table + _logs(factor) if in_logs else _positive_product(table, factor)
        return table


def _logs(values: Floats) -> Floats:
    """Return natural logarithms; minus infinity for 0."""
    with np.errstate(divide="ignore"):
        return np.log(values)


def _positive_product(left: Floats, right: Floats) -> Floats:
    """Return products of non-negative numbers; products of positive numbers are at least ``LEAST``, so never 0."""
    with np.errstate(under="ignore"):
        product = left * right
    if product.min(initial=1.0) == 0:
        product[(product == 0) & (left > 0) & (right > 0)] = LEAST
    return product


def _spread(values: NDArray[np.float64], axes: Sequence[int], count: int) -> NDArray[np.float64]:
    """Return an array of ``count`` axes: the axes of ``values`` at the positions ``axes``, and others of length 1."""
    order = np.argsort(axes)
    shape = [1] * count
    for axis, size in zip(axes, values.shape, strict=True):
        shape[axis] = size
    return values.transpose(order).reshape(shape)
