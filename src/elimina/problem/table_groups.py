"""Groups of tables that are joined because one of their scopes contains the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.model.table import Scopes
from elimina.problem.unpacked import Unpacked, rows_of
from elimina.system import cached_property


class Group(NamedTuple):
    """Tables that are joined while they are written to the arena, because one of their scopes contains the others.

    Attributes:
        scope: The scope that contains the others.
        members: Indices of the tables.
    """

    scope: tuple[int, ...]
    members: tuple[int, ...]


class TableGroups(Unpacked[Group]):
    """Groups of tables, stored in arrays.

    Args:
        scopes: Scopes of the groups.
        starts: Start of each group's members, followed by the end of the last group's members.
        members: Tables of the groups, int32.
    """

    def __init__(self, scopes: Scopes, starts: NDArray[np.int64], members: NDArray[np.int32]) -> None:
        self.scopes, self.starts, self.members = scopes, starts, members

    @staticmethod
    def of(groups: Iterable[Group]) -> TableGroups:
        """Return these groups, stored in arrays."""
        group_list = tuple(groups)
        starts, members = Scopes.of([group.members for group in group_list])
        return TableGroups(Scopes.of([group.scope for group in group_list]), starts, members.astype(np.int32))

    def __len__(self) -> int:
        return len(self.starts) - 1

    # Arrays are compared instead of groups for speed: every call looks up its plan by the groups.
    def __eq__(self, other: object) -> bool:
        return self._bytes == other._bytes if isinstance(other, TableGroups) else super().__eq__(other)

    def __hash__(self) -> int:
        return hash(self._bytes)

    def cells(self, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the number of cells of each group's table, from the domain sizes of all variables."""
        starts, members = self.scopes
        axis_sizes = sizes.astype(np.float64)[members]
        return np.multiply.reduceat(axis_sizes, starts[:-1]) if len(self) else axis_sizes

    @cached_property
    def variables(self) -> tuple[int, ...]:
        """The variables of all groups, in ascending order."""
        return tuple(np.flatnonzero(np.bincount(self.scopes.members)).tolist())

    @cached_property
    def _bytes(self) -> tuple[bytes, ...]:
        return tuple(np.asarray(a, dtype=np.int64).tobytes() for a in (*self.scopes, self.starts, self.members))

    @cached_property
    def _unpacked(self) -> tuple[Group, ...]:
        return tuple(map(Group, rows_of(self.scopes), rows_of((self.starts, self.members))))
