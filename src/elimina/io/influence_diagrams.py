"""Builder of influence diagrams for readers of files: networks with decisions and utilities."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from elimina._core import TextError
from elimina.errors import UnsupportedError
from elimina.io.network import MAX_TABLE_CELLS, NetworkBuilder
from elimina.model.decision_network import DiagramParts
from elimina.model.table import Table
from elimina.option_names import by_interface


class DiagramBuilder(NetworkBuilder):
    """An influence diagram that a reader builds. Every method raises TextError if the file contradicts itself."""

    def __init__(self) -> None:
        super().__init__()
        self._observed: dict[int, list[int]] = {}
        self._utilities: dict[str, Table | None] = {}

    def add_decision(self, name: str, states: Sequence[str]) -> None:
        """Add a decision without observations, whose name must be new."""
        self.add_variable(name, states)
        self._observed[self.index(name)] = []

    def add_utility(self, name: str) -> None:
        """Add a utility, whose name must differ from those of other utilities."""
        if self.is_utility(name):
            raise TextError(f"a second utility is named {name!r}")
        self._utilities[name] = None

    def is_utility(self, name: str) -> bool:
        """Return whether a utility with this name is declared."""
        return name in self._utilities

    def is_decision(self, variable: int) -> bool:
        """Return whether a variable is a decision."""
        return variable in self._observed

    def index(self, name: str) -> int:
        """Return the index of a variable declared before."""
        if self.is_utility(name):
            raise TextError(f"expected a variable, found the utility {name!r}: no variable depends on a utility")
        return super().index(name)

    def set_observed(self, decision: int, parents: Sequence[int]) -> None:
        """Set the observations of a decision."""
        self._observed[decision] = list(parents)

    def utility_shape(self, name: str, parents: Sequence[int]) -> tuple[int, ...]:
        """Check the head of a utility's table, and return the array's shape.

        Raises:
            TextError: The utility has a table already, or the head repeats a variable.
            UnsupportedError: The array has more than ``MAX_TABLE_CELLS`` cells.
        """
        if self._utilities[name] is not None:
            raise TextError(f"utility {name!r} has a second table")
        if len(set(parents)) < len(parents):
            raise TextError(f"the table of utility {name!r} repeats a variable")
        shape = tuple(len(states) for states in self.states(parents))
        if math.prod(shape) > MAX_TABLE_CELLS:
            raise UnsupportedError(f"the utility {name!r} has {math.prod(shape)} entries, over {MAX_TABLE_CELLS}")
        return shape

    def set_utility(self, name: str, parents: Sequence[int], values: NDArray[np.float64]) -> None:
        """Set a utility's table, whose head ``utility_shape`` has checked."""
        self._utilities[name] = Table(parents, values)

    def diagram_parts(self, weights: Mapping[str, float] | None = None, *, no_forgetting: bool = False) -> DiagramParts:
        """Return the influence diagram.

        Args:
            weights: Weight of each utility in the sum; None: all weights are 1.
            no_forgetting: True if each decision knows all earlier decisions and their observations.
        """
        self.check_distributions(self._observed)
        if not self._observed:
            reader = by_interface("elimina.read", "'elimina solve'")
            raise TextError(f"expected a decision, but the file has none: it is a network, for {reader}")
        utilities = {}
        for name, table in self._utilities.items():
            if table is None:
                raise TextError(f"utility {name!r} has no table")
            weight = 1.0 if weights is None else weights[name]
            utilities[name] = Table(table.scope, table.values * weight)
        names = [variable.name for variable in self._variables]
        return DiagramParts(
            self._variables,
            list(self._factors.values()),
            list(self._factors),
            {names[d]: [names[v] for v in variables] for d, variables in self._observed.items()},
            utilities,
            no_forgetting,
            self.name,
        )
