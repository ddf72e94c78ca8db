"""Facts about a question, used by the schedule's conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elimina.backends.cpu import CpuBackend
from elimina.methods.paused_search import PausedSearch
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.machine import speeds
from elimina.planning.options import replace
from elimina.planning.order import CELLS_PER_SECOND, Order
from elimina.planning.ordering import QUICK_SECONDS
from elimina.planning.plan import Plan
from elimina.problem.preparation import Problem
from elimina.problem.tasks import Description, Task, described
from elimina.running.host import turn_share
from elimina.system import cached_property

if TYPE_CHECKING:
    from elimina.errors import EliminaError
    from elimina.running.planned_problem import PlannedProblem
    from elimina.strategies.call import Call
    from elimina.strategies.call_plan import PlannedCall
    from elimina.strategies.portfolio import Solver

GLANCE_ORDER_SECONDS = 0.1
"""Seconds of an order search to decide whether elimination is long, if the quick order does not decide it."""

HOPELESS_ELIMINATION_SECONDS = 1e5
"""Estimated seconds of an elimination in the quick order above which no better order is searched for, because a search
would not make the elimination short enough."""

SHORT_ELIMINATION_SECONDS = 0.1
"""Estimated seconds below which an elimination is short: neither a better order nor a search before it saves time."""


class Facts:
    """Facts about a question, its options, and the results so far.

    Facts that take time, such as orders, are computed on first use.

    Args:
        solver: Solver of the question.
        options: Options of the solver, or of one of its plans.
        refinements: Number of earlier plans of this call whose tuples exceeded the memory.

    Attributes:
        failure: Failure of the last strategy; None: it succeeded.
        prepared: Latest plan, with its inputs; None: no plan was made.
        executed: Latest plan that ran; None: no plan ran.
    """

    def __init__(self, solver: Solver, options: CheckedOptions, refinements: int = 0) -> None:
        self.solver, self.options, self.refinements = solver, options, refinements
        self.failure: EliminaError | None = None
        self.prepared: PlannedCall | None = None
        self.executed: Plan | None = None

    # --- the request ---

    @property
    def task(self) -> Task:
        """Task of the call."""
        return self.solver.question.task

    @property
    def description(self) -> Description:
        """Properties of the task."""
        return described(self.task)

    @property
    def call(self) -> Call:
        """The call: its deadline, bounds and assignment."""
        return self.solver.run

    @property
    def problem(self) -> Problem:
        """The problem to solve."""
        return self.solver.problem

    @property
    def paused(self) -> PausedSearch:
        """State of earlier searches, from which later ones resume."""
        return self.solver.paused

    @property
    def variables(self) -> int:
        """Number of free variables."""
        return len(self.problem.free)

    @property
    def has_checkpoint(self) -> bool:
        """True if a checkpoint stores the progress."""
        return self.solver.checkpoint is not None

    @property
    def has_open_method(self) -> bool:
        """True if the task is an optimum, and neither a method nor a checkpoint is requested."""
        return self.options.solving.is_open and self.description.is_optimum and not self.has_checkpoint

    # --- time and memory ---

    @cached_property
    def turn_share(self) -> float:
        """Factor on a strategy's seconds that accounts for the call's number of threads."""
        return turn_share(self.options)

    @cached_property
    def cells_per_second(self) -> float:
        """Speed of eliminations on the requested device."""
        machine = speeds()
        return CELLS_PER_SECOND * (machine.gpu_bandwidth / machine.bandwidth if self.options.needs_gpu else 1)

    @cached_property
    def memory_bytes(self) -> int:
        """Memory limit on the device, in bytes."""
        return memory_of(self.options)

    @cached_property
    def host_options(self) -> CheckedOptions:
        """Options of work on the host before a GPU is opened, limited by the host's memory."""
        return replace(self.options, device="cpu", memory=None) if self.options.needs_gpu else self.options

    @cached_property
    def can_filter(self) -> bool:
        """True if filtered elimination supports the problem and its costs are integers."""
        return self.problem.model.is_integer and can_filter(self.problem, self.options)

    @property
    def needs_search(self) -> bool:
        """True if no method is requested, and only search can use the given upper bound."""
        options, problem = self.options, self.problem
        if not options.solving.is_open or options.upper_bound is None:
            return False
        if options.needs_gpu or options.tables == "sparse":
            return not problem.model.is_integer
        from elimina.methods.filtering import reason_unsupported

        return reason_unsupported(problem) is not None

    # --- orders, and the time of elimination in them ---

    @cached_property
    def quick_order(self) -> Order:
        """Best order so far, looked up once. At the start of a call, it is an order found in milliseconds."""
        return self.solver.rough_order()

    @property
    def is_hopeless(self) -> bool:
        """True if even a better order would not make elimination short."""
        return self.seconds_in(self.quick_order) >= HOPELESS_ELIMINATION_SECONDS

    @cached_property
    def glance_order(self) -> Order:
        """Order after a search of ``GLANCE_ORDER_SECONDS``; the quick order if no search makes elimination short."""
        if self.is_hopeless:
            return self.quick_order
        return self.solver.quick_order(GLANCE_ORDER_SECONDS)

    @cached_property
    def searched_order(self) -> Order:
        """Order after a search of ``QUICK_SECONDS``; the glance order if elimination in that order is already short."""
        if self.seconds_in(self.glance_order) < SHORT_ELIMINATION_SECONDS:
            return self.glance_order
        return self.solver.quick_order(QUICK_SECONDS)

    def seconds_in(self, order: Order) -> float:
        """Return the estimated seconds of an elimination in an order."""
        return order.seconds_at(self.cells_per_second)

    # --- plans ---

    @property
    def planned(self) -> PlannedProblem:
        """Latest plan, with its problem and backend."""
        assert self.prepared is not None
        return self.prepared.planned

    @property
    def plan(self) -> Plan:
        """Latest plan."""
        assert self.prepared is not None
        return self.prepared.planned.plan


def memory_of(options: CheckedOptions) -> int:
    """Return the memory limit on the device: the option, or the free memory of the host."""
    return CpuBackend(options.threads).memory() if options.memory is None else options.memory


def can_filter(problem: Problem, options: CheckedOptions) -> bool:
    """Return whether filtered elimination supports a problem in the host's memory; False if a GPU is requested."""
    from elimina.methods.filtering import reason_too_large, reason_unsupported

    if options.needs_gpu:
        return False
    return reason_unsupported(problem) is None and reason_too_large(problem, memory_of(options)) is None
