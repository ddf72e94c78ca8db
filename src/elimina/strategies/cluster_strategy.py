"""Strategy of bounds on an optimum by passes over clusters of tables on a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from elimina.backends.device_group import devices_of
from elimina.backends.gpu_start import outlasts_gpu_start
from elimina.backends.registry import find_cuda
from elimina.errors import DeviceError, UnsupportedError
from elimina.methods.cost_shifting import shift_tables
from elimina.methods.gpu_bounds import bounds_on_gpu
from elimina.result import Result
from elimina.running.budget import Budget
from elimina.running.host import backend_of
from elimina.strategies.facts import Facts
from elimina.strategies.row import Row
from elimina.strategies.strategy import Attempt, Strategy

if TYPE_CHECKING:
    from elimina.backends.cuda.backend import CudaBackend


def clusters(facts: Facts, row: Row) -> Strategy | Attempt:
    """Return passes over clusters of tables on a GPU; an empty outcome without a GPU, or without time to start it."""
    options, seconds = facts.options, row.budget(facts)
    if not outlasts_gpu_start(seconds):
        return Attempt()
    backend = backend_of(options) if options.needs_gpu else find_cuda(options.threads)
    if backend is None:
        return Attempt()
    device = cast("CudaBackend", devices_of(backend)[0])
    problem, order = facts.planned.problem, facts.plan.order

    def work(budget: Budget) -> Result:
        remaining = options.after_growth(budget.growth_bytes)
        original = shift_tables(problem, remaining, budget.seconds / 4)
        try:
            return bounds_on_gpu(original, order, remaining, device, budget)
        except DeviceError as error:
            raise UnsupportedError(str(error)) from error

    return Strategy(facts.call, "clusters", work, seconds=seconds)
