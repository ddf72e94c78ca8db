"""Weighted automata over a scope, for cost functions as chains of tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elimina.model.table import FORBIDDEN

State = Any
Step = Callable[[int, Any, int], Iterable[tuple[State, int]]]


@dataclass(frozen=True)
class Chain:
    """A weighted automaton over a scope.

    Attributes:
        scope: The variables in reading order.
        starts: The cost of starting in a state.
        step: Position in the scope, state and value -> the possible next states and their costs.
        final: The cost of ending in a state.
    """

    scope: tuple[int, ...]
    starts: Mapping[State, int]
    step: Step
    final: Callable[[Any], int]

    def cost(self, values: Sequence[int]) -> int:
        """Return the cost of an assignment of the scope: that of its cheapest run; ``FORBIDDEN`` if it has no run."""
        best: dict[State, int] = dict(self.starts)
        for position, value in enumerate(values):
            following: dict[State, int] = {}
            for state, cost in best.items():
                for target, extra in self.step(position, state, value):
                    following[target] = min(following.get(target, FORBIDDEN), sum_of_costs(cost, extra))
            best = following
        return min((sum_of_costs(cost, self.final(state)) for state, cost in best.items()), default=FORBIDDEN)


def sum_of_costs(*costs: int) -> int:
    """Add costs; the sum is forbidden if one of the costs is, even if others are negative."""
    return FORBIDDEN if max(costs, default=0) >= FORBIDDEN else sum(costs)
