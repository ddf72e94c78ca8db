"""Policies of decisions: a distribution over the states of a decision for each combination of its observations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from elimina.model.named_table import Columns, NamedTable
from elimina.model.variable import Variable, state_array


class Policy(NamedTable):
    """A policy of a decision. The first axis is the decision's, the others are those of the variables that it observes.

    Texts and frames have a row for each combination of observations and each state that is chosen there; states of
    probability 0 are left out.

    Examples:
        >>> import elimina
        >>> diagram = elimina.InfluenceDiagram.from_tables(
        ...     chance={"rain": [0.7, 0.3], ("forecast", "rain"): [[0.8, 0.2], [0.2, 0.8]]},
        ...     decisions={"umbrella": ["forecast"]},
        ...     utilities={("comfort", "rain", "umbrella"): [[10, 6], [0, 7]]},
        ...     states={"rain": ["no", "yes"], "forecast": ["sun", "rain"], "umbrella": ["leave", "take"]},
        ... )
        >>> policy = diagram.solve().policies["umbrella"]
        >>> policy
        forecast  umbrella  probability
        sun       leave     1
        rain      take      1
        >>> policy.choices()[0]
        {'observed': {'forecast': 'sun'}, 'state': 'leave', 'probability': 1.0}
    """

    __slots__ = ()

    @property
    def _columns_shown(self) -> tuple[Variable, ...]:
        return (*self._variables[1:], self._variables[0])

    @property
    def _count_of_rows(self) -> int:
        return int(np.count_nonzero(self.array))

    def choices(self) -> list[dict[str, Any]]:
        """Return the rows as mappings with the keys ``observed`` (variable -> state), ``state`` and ``probability``."""
        states, numbers = self._columns()
        names = list(states)
        rows = zip(*states.values(), numbers[self.quantity].tolist(), strict=True)
        return [
            {"observed": dict(zip(names[:-1], row, strict=False)), "state": row[-2], "probability": row[-1]}
            for row in rows
        ]

    def _columns(self) -> Columns:
        observed_first = np.moveaxis(self.array, 0, -1)
        cells = np.nonzero(observed_first)
        states = {v.name: state_array(v, x).tolist() for v, x in zip(self._columns_shown, cells, strict=True)}
        return states, {self.quantity: observed_first[cells]}

    def _rows(self) -> Iterator[tuple[str, ...]]:
        states, numbers = self._columns()
        rows = zip(*states.values(), *numbers.values(), strict=True)
        return ((*map(str, row[:-1]), f"{row[-1]:.6g}") for row in rows)
