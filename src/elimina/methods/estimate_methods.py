"""The approximate methods for sums and marginals, with the time that they need for a first estimate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from elimina.methods.belief_waves import belief_waves
from elimina.methods.block_gibbs import block_gibbs
from elimina.methods.cutset_conditioning import cutset_conditioning
from elimina.methods.factor_lists import table_bytes
from elimina.methods.generalised_belief_propagation import generalised_belief_propagation
from elimina.methods.importance_sampling import importance_sampling
from elimina.methods.incremental_trees import incremental_trees
from elimina.methods.join_graph_propagation import propagate
from elimina.methods.message_sweeps import belief_propagation
from elimina.methods.sum_estimate import Limits, SumEstimate
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.preparation import Problem

_NO_ESTIMATE = SumEstimate("none")

_CELL_SECONDS = 5e-9
"""Expected seconds to write a cell of the factors' dense tables, which all methods read."""

_MAX_LATE_SECONDS = 1.0
"""Longest time to write the tables for which a method begins late."""


class EstimateMethod(NamedTuple):
    """An approximate method.

    Attributes:
        run: Function that yields improving estimates until its deadline, and ends when it cannot improve further. An
            estimate without marginals and sum means that the method needs more time.
        seconds_per_variable: Expected seconds until the first estimate for each variable, on graphs such as grids.
        begins_late: True if the method begins even without enough time if there is no other estimate. Large tables,
            which take long to write, are an exception.
    """

    run: Callable[[Problem, CheckedOptions, Limits], Iterator[SumEstimate]]
    seconds_per_variable: float = 0.0
    begins_late: bool = False

    def estimates(self, problem: Problem, options: CheckedOptions, limits: Limits) -> Iterator[SumEstimate]:
        """Yield the method's estimates; until the first one, the method runs only if the expected time remains.

        Args:
            problem: Problem of a sum of products.
            options: Options of the call.
            limits: Limits of time and memory, and the seed.
        """
        seconds, begins_late = self.seconds_per_variable * len(problem.free), self.begins_late
        writing_seconds = _CELL_SECONDS * table_bytes(problem) / 8
        if writing_seconds > _MAX_LATE_SECONDS:
            seconds, begins_late = seconds + writing_seconds, False
        has_answered = False
        estimates = self.run(problem, options, limits)
        while True:
            has_to_wait = limits.has_estimate or not begins_late
            if not has_answered and has_to_wait and seconds > limits.seconds:
                yield _NO_ESTIMATE
                continue
            estimate = next(estimates, None)
            if estimate is None:
                return
            has_answered |= estimate.log_z is not None or estimate.shares is not None
            yield estimate


BELIEF_WAVES = EstimateMethod(belief_waves)
BELIEF_PROPAGATION = EstimateMethod(belief_propagation)
JOIN_GRAPH_PROPAGATION = EstimateMethod(propagate, 4e-6, begins_late=True)
CUTSET_CONDITIONING = EstimateMethod(cutset_conditioning, 5e-4)
GENERALISED_BELIEF_PROPAGATION = EstimateMethod(generalised_belief_propagation, 1e-5, begins_late=True)
INCREMENTAL_TREES = EstimateMethod(incremental_trees, 2e-4)
IMPORTANCE_SAMPLING = EstimateMethod(importance_sampling, 5e-5)
BLOCK_GIBBS = EstimateMethod(block_gibbs, 3e-4)
