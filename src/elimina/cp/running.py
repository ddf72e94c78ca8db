"""The run of a search: its solver in the core and its device, solutions as they are found, and the answer."""

from __future__ import annotations

import copy
import functools
import logging
import math
import os
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import util
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, get_args

import numpy as np
import numpy.typing as npt

from elimina._core import CpDevice, CpSearch, CpSolver
from elimina.arguments import choice, wrong_type
from elimina.cp.expressions import LIMIT, Expression, Numbers, whole_array
from elimina.display import sample
from elimina.errors import DeviceError, InputError, TimeLimitError
from elimina.result import EndedBy, Result, Status, phase_seconds
from elimina.system import InWords, memory_errors_in_words

if TYPE_CHECKING:
    from elimina._core import FlatZinc
    from elimina.cp.model import Model


logger = logging.getLogger("elimina")

Device = Literal["auto", "cpu", "cuda"]

THREADS = 1024
"""Most threads of a search: more than a machine has, and few enough to start; other calls take as many."""

MOST_VARIABLES = 1 << 27
"""Variables that the core numbers."""

Restarts = Literal["luby", "geometric", "linear", "constant"]
RESTARTS: tuple[Restarts, ...] = get_args(Restarts)

VariableOrdering = Literal[
    "input_order",
    "first_fail",
    "anti_first_fail",
    "smallest",
    "largest",
    "occurrence",
    "most_constrained",
    "max_regret",
    "dom_w_deg",
]
VARIABLE_ORDERINGS: tuple[VariableOrdering, ...] = get_args(VariableOrdering)

ValueOrdering = Literal[
    "indomain",
    "indomain_min",
    "indomain_max",
    "indomain_median",
    "indomain_middle",
    "indomain_random",
    "indomain_split",
    "indomain_reverse_split",
    "indomain_interval",
    "outdomain_min",
    "outdomain_max",
]
VALUE_ORDERINGS: tuple[ValueOrdering, ...] = get_args(ValueOrdering)


class SearchOptions(NamedTuple):
    """Settings of a search for experts: options of ``Model.solve`` besides its arguments.

    Attributes:
        node_limit: Largest number of nodes. A node is a decision, or its opposite, with propagation.
        fail_limit: Largest number of failures.
        restarts: Restart after a number of failures: ``luby``, Luby's sequence times the scale; ``geometric``,
            the scale times powers of the growth; ``linear``; ``constant``. Nogoods exclude subtrees that were refuted
            before (Lecoutre et al., JSAT 2007), so every search ends, and no solution comes twice.
        restart_scale: Number of failures that scales the restarts.
        restart_growth: Growth factor of ``geometric`` restarts.
        free: Choose the variable of the last conflict, then variables by failures of their constraints (dom/wdeg),
            try the values of the last solution first, and restart.
        lns: With an objective, search near the best solution and everywhere in alternation (large neighbourhood search,
            Shaw 1998; what keeps its value is chosen at random or by propagation, Perron et al., CP 2004). The
            optimum can still be proven.
        progress: Function to call with the figures of the search so far (as in ``Result.stats``), now and then.
    """

    node_limit: int | None = None
    fail_limit: int | None = None
    restarts: Restarts | None = None
    restart_scale: float = 100
    restart_growth: float = 1.5
    free: bool = False
    lns: bool = False
    progress: Callable[[dict[str, Any]], object] | None = None

    @property
    def pace(self) -> tuple[str, float, float] | None:
        """The restarts, as the core takes them."""
        if self.restarts is None:
            return None
        return choice("restarts", self.restarts, RESTARTS), self.restart_scale, self.restart_growth


DEFAULT = SearchOptions()


@functools.cache
def cuda_device(number: int = 0) -> CpDevice:
    """Return the compiled kernel for a CUDA device, for use by a solver.

    Raises:
        DeviceError: There is no such device, or it cannot be used.
    """
    from elimina.backends.cuda import kernels
    from elimina.backends.cuda.backend import CudaBackend

    return CpDevice(number, *CudaBackend(number).binary(kernels.DIVIDE))


def accelerate(solver: CpSolver | FlatZinc, device: str, threads: int = 1) -> None:
    """Let a GPU filter AllDifferent constraints, if requested or if it may be faster.

    Args:
        solver: After everything is posted.
        device: ``cpu``; ``cuda``: all that a GPU can filter; ``auto``: what asks for it, and, once the search has
            lasted for a while, what is filtered faster there, if there is one.
        threads: Number of threads of the search; a GPU filters for one.

    Raises:
        DeviceError: ``cuda`` without a device that can be used.
        InputError: Unknown device, or ``cuda`` for several threads.
    """
    if not isinstance(device, str) or device not in ("auto", "cpu", "cuda"):
        raise InputError(f"unknown device {device!r}; it is one of auto, cpu, cuda")
    if device == "cuda":
        if threads > 1:
            raise InputError(f"a GPU filters for one thread, not {threads}: leave out one of them")
        solver.accelerate(cuda_device(), False)
    elif threads == 1 and device == "auto" and (delay := solver.device_delay()) < float("inf"):
        if delay > 0:
            solver.accelerate_later(_finding)
        elif (found := _found()) is not None:
            solver.accelerate(found, True)


def _found() -> CpDevice | None:
    if util.find_spec("cupy") is None:
        return None
    try:
        return cuda_device()
    except DeviceError:
        return None


def _finding() -> Future[CpDevice | None]:
    executor = ThreadPoolExecutor(1)
    try:
        return executor.submit(_found)
    finally:
        executor.shutdown(wait=False)


class Copied:
    """Base of models of constraints: a copy is independent, and shares the variables made before it.

    Attributes:
        _makers: Number of a variable, and a random mark of the object that made it and the following ones.
    """

    _variables: list[Declaration]

    def __init__(self) -> None:
        self._makers = [(0, os.urandom(8))]

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the state of a copied or pickled model; variables made from now on are this object's own."""
        self.__dict__.update(state)
        self._makers = [*self._makers, (len(self._variables), os.urandom(8))]

    def __copy__(self) -> Self:
        return copy.deepcopy(self)

    def maker(self, var: int) -> bytes:
        """Return the mark of the object that made a variable: the same in all copies that have the variable."""
        return self._makers[bisect_right(self._makers, var, key=itemgetter(0)) - 1][1]


class Solution(Mapping[str, int]):
    """A value for each variable.

    The keys of the mapping are the names of variables that have one. ``solution[x]`` also takes a variable or an
    expression, or a list of them, for which it returns a list. A solution of a copied or pickled model takes the
    variables of the original.
    """

    def __init__(self, model: Model, values: npt.NDArray[np.int64], names: dict[str, int]) -> None:
        self._model, self._values, self._names = model, values, names

    def __getitem__(self, what: Any) -> Any:
        if isinstance(what, str):
            if what not in self._names:
                raise InputError(f"the model has no variable named {what!r}")
            return int(self._values[self._names[what]])
        if isinstance(what, Expression):
            if not all(var < len(self._values) and self._shares(what.model, var) for var in what.terms):
                raise InputError(f"{what} is not of the model as it was solved: it has no value in this solution")
            return what.constant + sum(factor * int(self._values[var]) for var, factor in what.terms.items())
        if isinstance(what, Iterable):
            return [self[x] for x in what]
        return what

    def _shares(self, model: Model, var: int) -> bool:
        return model is self._model or model.maker(var) == self._model.maker(var)

    def __contains__(self, what: object) -> bool:
        return what in self._names if isinstance(what, str) else False

    def get(self, what: str, default: Any = None) -> Any:
        """Return the value of a variable by its name, or the default if there is no such variable."""
        return self[what] if what in self._names else default

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        values = (f"{name}={self[name]}" for name in self)
        return f"Solution({sample(values, len(self))})"


Words = npt.NDArray[np.int64]
_SCALES = 2**30
"""Largest factor of a view of a variable in the core."""


class Declaration(NamedTuple):
    """A variable before the solver is built: its bounds, and its values where the domain has holes."""

    lo: int
    hi: int
    values: tuple[int, ...] | None


def build_solver(
    variables: Iterable[Declaration],
    posts: Iterable[tuple[str, Sequence[Numbers]]],
    aim: Expression | None,
    deadline: float,
) -> tuple[CpSolver, Words | None]:
    """Return the solver and a view of the objective; a sum gets a variable that only the solver has.

    Args:
        variables: Variables of the model.
        posts: Names of constraints in the core, and their arguments.
        aim: Objective to be minimised; None without one.
        deadline: Deadline by ``time.monotonic``.

    Raises:
        InputError: The core refuses a constraint, or the objective is too large.
        TimeLimitError: The deadline passed.
    """
    solver = CpSolver()
    for variable in variables:
        check_time(deadline)
        if variable.values is None:
            solver.new_variables(1, variable.lo, variable.hi)
        else:
            solver.new_variable_of(np.array(variable.values, dtype=np.int64))
    for name, arguments in posts:
        check_time(deadline)
        called(solver.post, name, arguments)
    if aim is None:
        return solver, None
    if is_view(aim):
        return solver, view_of(aim)
    lo, hi = aim.model.bounds(aim)
    if max(abs(lo), abs(hi)) > LIMIT:
        raise InputError(f"the objective is from {lo} to {hi}, beyond 2^52: use smaller coefficients or bounds")
    own = called(solver.new_variables, 1, lo, hi)
    terms = np.array([(var, 1, 0) for var in (*aim.terms, own)], dtype=np.int64)
    called(solver.post, "int_lin_eq", [whole_array([*aim.terms.values(), -1]), terms, whole_array([-aim.constant])])
    return solver, np.array([(own, 1, 0)], dtype=np.int64)


RuleOfSearch = tuple[Words, str, str]
"""Views that are decided, and their variable and value orderings."""


def rules_of(given: Sequence[RuleOfSearch], own: Words, objective: Words | None) -> list[RuleOfSearch]:
    """Return the rules of a search, where an objective that has no rule is decided after the others.

    Its domain is halved, towards the best value: by single values, a search may find each of them before the best one.

    Args:
        given: The model's rules.
        own: Views of all variables of the model.
        objective: View of the objective; None without one.
    """
    ruled = np.concatenate([xs for xs, _, _ in given])[:, 0] if given else own[:0, 0]
    if objective is None or objective[0, 0] in ruled or objective[0, 0] not in own[:, 0]:
        return [*given] or [(own, "dom_w_deg", "indomain_min")]
    others = own[own[:, 0] != objective[0, 0]]
    first = [*given] or [(others, "dom_w_deg", "indomain_min")]
    return [*first, (objective, "input_order", "indomain_split")]


def is_view(x: Expression) -> bool:
    """Return whether the core takes an expression as a view of one variable."""
    return len(x.terms) < 2 and all(abs(f) <= _SCALES for f in x.terms.values()) and abs(x.constant) <= LIMIT


def view_of(x: Expression) -> Words:
    """Return an expression of at most one variable as the core takes it: variable, factor and constant."""
    var, factor = next(iter(x.terms.items()), (-1, 0))
    return np.array([(var, factor, x.constant)], dtype=np.int64)


def called(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of the core.

    Raises:
        InputError: It refuses its arguments.
    """
    try:
        return function(*arguments)
    except (ValueError, IndexError) as error:
        raise InputError(str(error)) from None
    except TypeError:
        raise InputError(f"an option has the wrong type: {arguments[2:]}") from None


MOST = 10**18
"""Limits above it are none."""


class Run:
    """A run, from the posting of the constraints on.

    Args:
        model: The model to be solved.
        task: ``satisfy``, ``minimise`` or ``maximise``.
        time_limit: Seconds; None if there is no limit.
        node_limit: Number of nodes after which the search ends; None for no limit.
        fail_limit: Number of failures after which the search ends; None for no limit.
    """

    def __init__(
        self, model: Model, task: str, time_limit: float | None, node_limit: int | None, fail_limit: int | None
    ) -> None:
        self._model, self._task = model, task
        self._started = self._posted = time.monotonic()
        self._seconds = limit_of("time_limit", time_limit)
        self._nodes = limit_of("node_limit", node_limit)
        self._failures = limit_of("fail_limit", fail_limit)
        self.progress: Callable[[dict[str, Any]], object] | None = None
        self._last: Solution | None = None
        self._kept: list[Solution] = []
        self._is_complete = False

    @property
    def limits(self) -> tuple[float, float, float]:
        """Seconds that are left, nodes and failures, as the core takes them."""
        return max(0.0, self.deadline - time.monotonic()), self._nodes, self._failures

    @property
    def deadline(self) -> float:
        """By ``time.monotonic``."""
        return self._started + self._seconds

    def search(
        self, search: CpSearch, limit: int | None, keeps: bool, on_solution: Callable[[Solution], object] | None
    ) -> Result:
        """Search to the end, or to a limit.

        Args:
            search: The search, which has not begun.
            limit: Number of solutions to end after; None if there is no limit.
            keeps: True if all solutions are part of the answer.
            on_solution: Called with each solution; ends the search by returning False.

        Raises:
            MemoryError: Memory ran out before there was a solution.
        """
        self._posted = time.monotonic()
        try:
            ended_by = self._to_the_end(search, limit, keeps, on_solution)
        except KeyboardInterrupt:
            ended_by = "interrupt"
        except MemoryError:
            if self._last is None:
                raise
            ended_by = "memory-limit"
        return self.result(search.statistics(), ended_by)

    def _to_the_end(
        self, search: CpSearch, limit: int | None, keeps: bool, on_solution: Callable[[Solution], object] | None
    ) -> EndedBy | None:
        count, tell = 0, self.progress

        def told() -> bool:
            if tell is not None:
                tell(search.statistics())
            return True

        while count != limit:
            state = search.next(go_on if tell is None else told)
            if state != "solution":
                self._is_complete = state == "complete"
                return None if self._is_complete else "interrupt" if state == "stopped" else self._met(search)
            self._last = solution = self._model.solution_of(search)
            count += 1
            if keeps:
                self._kept.append(solution)
            if on_solution is not None and on_solution(solution) is False:
                return "interrupt"
            # The search knows its own time only, not that of what is done with its solutions.
            if count != limit and time.monotonic() > self.deadline:
                return "time-limit"
        return "solution-limit"

    def _met(self, search: CpSearch) -> EndedBy:
        figures = search.statistics()
        if figures["nodes"] >= self._nodes:
            return "node-limit"
        return "failure-limit" if figures["failures"] >= self._failures else "time-limit"

    def result(self, figures: dict[str, Any], ended_by: EndedBy | None) -> Result:
        """Return the answer, given the search's figures."""
        aim, last = self._model.objective, self._last
        value = None if last is None or aim is None else last[aim]
        names = self._model.unproven_limits(value) if self._is_complete else []
        is_unbounded = bool(names) and last is not None and self._model.is_unbounded()
        if names:
            self._is_complete, ended_by = False, None if is_unbounded else "domain-limit"
        if ended_by == "domain-limit":
            warn_of_limits(names)
        status: Status = "infeasible" if self._is_complete else "unknown"
        if last is not None:
            status = "feasible" if value is None or not self._is_complete else "optimal"
            status = "unbounded" if is_unbounded else status
        lower = value if status == "optimal" or self._task == "maximise" else None
        upper = value if status == "optimal" or self._task == "minimise" else None
        now = time.monotonic()
        phases = {"post": self._posted - self._started, "search": now - self._posted}
        known = {name: figure for name, figure in figures.items() if name not in ("seconds", "interrupted")}
        stats = {**known, "complete": self._is_complete, "seconds": phase_seconds(phases, now - self._started)}
        return Result(
            status, self._task, value, lower, upper, last, ended_by=ended_by, stats=stats, solutions=self._kept
        )


def memory_in_words(threads: int = 1) -> InWords:
    """Turn a ``MemoryError`` of a search in so many threads, or of propagation, into words."""
    # The number is not checked yet, and may be anything.
    fewer = None if isinstance(threads, int) and threads == 1 else "search in fewer threads"
    return memory_errors_in_words("while it solved the constraint model", fewer)


def check_time(deadline: float) -> None:
    """Check the time limit while constraints are posted.

    Raises:
        TimeLimitError: The deadline passed.
    """
    if deadline < math.inf and time.monotonic() > deadline:
        raise TimeLimitError("the time limit passed while the constraints were posted; allow more time")


def limit_of(name: str, limit: Any) -> float:
    """Return a limit as a number; infinity for None.

    Raises:
        InputError: It is not a number, or negative.
    """
    if limit is None:
        return math.inf
    if isinstance(limit, bool) or not isinstance(limit, int | float | np.integer | np.floating):
        raise wrong_type(name, limit, "a number that is at least 0, or None")
    if not limit >= 0:
        raise InputError(f"{name} is {limit!r}; it must be a number that is at least 0")
    return float(min(limit, MOST))


def limits_text(names: Sequence[str]) -> str:
    """Return the fact that the file gives some variables no bounds."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"the file gives no bounds for {', '.join(names[:3])}{more}"


def bounds_advice(names: Sequence[str]) -> str:
    """Return the advice to declare bounds."""
    return f"declare bounds in the file, such as var -1000..1000: {names[0]}"


def warn_of_limits(names: Sequence[str]) -> None:
    """Warn that a complete search proves nothing, since it relies on limits of variables without bounds."""
    if names:
        searched = "only values from -2^42 to 2^42 were searched, which proves nothing"
        logger.warning("%s; %s: %s", limits_text(names), searched, bounds_advice(names))


def go_on() -> bool:
    """Let the search go on: a callback of the core in which Python handles signals."""
    return True
