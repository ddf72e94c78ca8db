"""Exact bucket elimination (Dechter 1999): optimum and assignment, partition function, number of solutions.

Before a plan in slices runs, one elimination by mini-buckets (Dechter and Rish 2003) with the fixed variables left in
the tables bounds all slices at once, so that most of them need not run.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import exact_count
from elimina.backends import run_once
from elimina.backends.choose import devices_of
from elimina.backends.cpu import CpuBackend
from elimina.errors import InputError, MemoryLimitError
from elimina.inference.encode import Encoded, Encoder, encode, factor_view
from elimina.inference.execution import (
    TOLERANCES,
    Execution,
    Scaled,
    ScaledSum,
    Scales,
    check_fits,
    check_value,
    partition_result,
    root_places,
    roots,
    rounding,
    statistics,
)
from elimina.inference.knowledge import Limits
from elimina.inference.minibucket import meet, result_between
from elimina.inference.options import Options
from elimina.inference.sweep import Sweep
from elimina.model import Model
from elimina.planning.fitting import make_bounded_plan
from elimina.planning.layout import view_of
from elimina.planning.machine import cpu_machine
from elimina.planning.plan import Plan, Slicing
from elimina.planning.planner import cost_bound
from elimina.planning.prepare import Problem, allowed_ranges
from elimina.planning.steps import Steps
from elimina.result import Result

if TYPE_CHECKING:
    from elimina.inference.checkpoint import State
    from elimina.inference.shifting import Original
    from elimina.planning.program import Program

_LONG_COUNT = 512
"""Bits of the number of assignments above which one run in long integers is faster than one for every 31 bits."""

_LONG_INTEGER_BYTES = 48
"""Bytes of a long integer besides its bits."""


def eliminate(execution: Execution, seconds: Mapping[str, float]) -> Result:
    """Answer the plan's task.

    Args:
        execution: Plan and backend to run.
        seconds: Time spent so far by phase; it goes into the result's statistics.

    Raises:
        MemoryLimitError: The plan does not fit.
        TimeLimitError: The deadline passed.
        InternalError: The assignment's value, recomputed on the model, is not the value found.
    """
    plan = execution.plan
    check_fits(plan)
    clock = dict(seconds)
    resumed = _resumed(execution)
    try:
        answer = _answer_of(plan)(execution, clock)
    finally:
        if execution.checkpoint is not None:
            execution.checkpoint.flush()
    return answer.replace(stats={**statistics(execution, clock), **answer.stats, **resumed})


def _answer_of(plan: Plan) -> Callable[[Execution, dict[str, float]], Result]:
    """Return the function that runs a plan."""
    if plan.segments is not None:
        from elimina.inference.parts import optimum_in_segments

        return optimum_in_segments
    return {"mpe": _optimum, "pr": _partition, "count": _count}[plan.task]


def _resumed(execution: Execution) -> dict[str, int]:
    """Return the figures of a checkpoint's savings: whole slices, and steps of an unfinished one."""
    if execution.checkpoint is None:
        return {}
    steps = execution.checkpoint.steps.get("done", 0)
    return {"resumed_slices": execution.state["done"], "resumed_steps": steps}


def _optimum(execution: Execution, clock: dict[str, float]) -> Result:
    problem, plan = execution.problem, execution.plan
    sign = problem.model.sign
    state: State = {"best": None, "chosen": [], "skipped": 0, "least": None, "slack": 0.0, **execution.state}
    started = time.perf_counter()
    sweep, bounds = Sweep(execution, clock), None
    if plan.slicing is not None:
        sweep.reserve()
        bounds = _slice_bounds(execution, state)
    clock["bounds"] = time.perf_counter() - started
    _tell_best(execution, state, bounds)
    numbers = _sequence(execution, bounds, sweep.count)[state["done"] :]
    sweep.done = state["done"]

    def is_promising(number: int) -> bool:
        best = state["best"]
        return bounds is None or best is None or not bounds.is_hopeless(number, sign * best)

    for part in sweep.run(numbers, wanted=is_promising):
        if part is None:
            state.update(done=state["done"] + 1, skipped=state["skipped"] + 1)
            continue
        value, ends = None, [] if part.run is None else roots(plan, part.run)
        if part.run is not None:
            value = decode_value(part.problem, plan, part.encoded, ends)
        slack = 0.0
        if value is not None and not plan.dtype.startswith("int"):
            slack = rounding(part.problem, plan, math.fsum(ends), part.encoded.constants)
            least = sign * value - slack
            state["least"] = least if state["least"] is None else min(least, state["least"])
        if value is not None and (state["best"] is None or sign * value < sign * state["best"]):
            assert part.run is not None
            assert part.run.assignment is not None
            values = part.run.assignment.tolist()
            state.update(best=value, chosen=part.problem.complete(range(len(values)), values), slack=slack)
            _tell_best(execution, state, bounds)
        state["done"] += 1
        execution.save(state)
    best, chosen = state["best"], state["chosen"]
    made, kept = sweep.rows
    stats = {} if plan.sparse is None else {"rows_made": made, "rows_filtered": made - kept}
    if bounds is not None:
        stats["slices_skipped"] = state["skipped"]
    if best is None:
        return Result("infeasible", plan.task, stats=stats)
    terms = problem.model.terms(chosen)
    score = problem.model.total(terms)
    check_value(plan.dtype, best, score, [problem.model.constant, *terms], state["slack"])
    if plan.dtype.startswith("int"):
        return valued(problem.model, score, chosen, score).replace(stats=stats)
    bound = sign * score if state["least"] is None else min(sign * score, state["least"])
    return valued(problem.model, sign * bound, chosen, score, TOLERANCES[plan.dtype]).replace(stats=stats)


def decode_value(problem: Problem, plan: Plan, encoded: Encoded, roots: list[int | float]) -> int | float | None:
    """Return the optimum in the model's units from the values of the tree's roots; None if there is no solution.

    Raises:
        InputError: The plan's semiring has no optimum.
    """
    if plan.semiring != "min-sum":
        raise InputError(f"semiring {plan.semiring} has no optimum")
    forbidden = plan.forbidden
    if encoded.impossible or any(root == forbidden for root in roots):
        return None
    sign = problem.model.sign
    if plan.dtype.startswith("int"):
        return int(encoded.offset) + sign * sum(int(root) for root in roots)
    return math.fsum([*encoded.constants, *(sign * root for root in roots)])


def valued(
    model: Model, bound: int | float, chosen: Sequence[int], score: int | float, tolerance: float = 0.0
) -> Result:
    """Return the answer from a bound and an assignment; the model's own upper bound may rule the assignment out."""
    found = result_between(model, bound, chosen, tolerance, score)
    is_none = found.value is None and (meet(bound, score, tolerance) or model.is_beyond_bound(bound))
    return Result("infeasible", "mpe") if is_none else found


def _tell_best(execution: Execution, state: State, bounds: SliceBounds | None) -> None:
    """Report the best assignment of the slices that have run, and the bound on all of them."""
    if execution.learn is None or execution.plan.slicing is None:
        return
    model, sign = execution.problem.model, execution.problem.model.sign
    bound = None if bounds is None else sign * (bounds.costs.min().item() - bounds.slack)
    value = None if state["best"] is None else model.score(state["chosen"])
    if (bound is None and value is None) or (value is not None and (math.isinf(value) or model.is_beyond_bound(value))):
        return
    assignment = None if value is None else model.states_at(state["chosen"])
    ends = model.ends(bound, value)
    execution.learn(Result("bounded", "mpe", value, *ends, assignment, stats=statistics(execution, {})))


def first_state(execution: Execution) -> State:
    """Return the state before the first slice, which several runs may share: see ``Execution.known``."""
    state: State = {"best": None, "chosen": [], **execution.state}
    if execution.problem.described.is_optimum and execution.plan.slicing is not None:
        _slice_bounds(execution, state)
    return state


def _slice_bounds(execution: Execution, state: State) -> SliceBounds | None:
    """Return the bounds of the slices, kept in the state because they decide the sequence, after a first solution."""
    if state["done"] == 0 and "bounds" not in state:
        found = bound_slices(execution)
        state["bounds"] = None if found is None else [found[0].costs.tolist(), found[0].slack]
        if found is not None and found[1] is not None:
            state.update(best=execution.problem.model.score(found[1]), chosen=found[1])
    known = state.get("bounds")
    return None if known is None else SliceBounds(np.array(known[0]), known[1])


def _sequence(execution: Execution, bounds: SliceBounds | None, count: int) -> Sequence[int]:
    """Return the slices that are run, in sequence: promising ones first where there are bounds."""
    places = execution.places(count)
    if bounds is None or execution.plan.slicing is None:
        return places
    sequence = bounds.sequence(execution.plan.slicing.sizes)
    return [sequence[place] for place in places]


def _partition(execution: Execution, clock: dict[str, float]) -> Result:
    plan = execution.plan
    scales = Scales(plan)
    sweep = Sweep(execution, clock)
    numbers = execution.places(sweep.count)
    # The slices that have run, in both sweeps, their sum, and the places of those that have to run again.
    state: State = {"sum": (0, []), "again": [], **execution.state}
    total, done = ScaledSum(*state["sum"]), state["done"]
    # An interrupt may come between a place and the state that counts it.
    again = [place for place in state["again"] if place < done]

    def save() -> None:
        execution.save({"sum": total.state, "again": again, "done": done})

    sweep.done = min(done, len(numbers))
    for part in filter(None, sweep.run(numbers[sweep.done :])):
        if part.run is not None:
            if part.encoded.exact and not scales.may_underflow(part.encoded.ranges, part.run.peaks):
                total.add(scales.sum_of(part.run).times(part.encoded.factor))
            else:
                again.append(done)
        done += 1
        save()
        if execution.learn is not None and plan.slicing is not None:
            stats = statistics(execution, {})
            execution.learn(Result("bounded", "pr", None, total.total.log10, None, stats=stats))
    del sweep
    remaining = [numbers[place] for place in again[done - len(numbers) :]]
    # Skip an empty sweep: encoding alone takes time.
    for part in filter(None, Sweep(execution, clock, "log-sum-exp").run(remaining) if remaining else ()):
        done += 1
        if part.run is not None:
            log = part.encoded.offset + math.fsum(roots(plan, part.run))
            total.add(Scaled.from_log2(log / math.log(2)))
        save()
    return partition_result(total.total)


def _count(execution: Execution, clock: dict[str, float]) -> Result:
    """Count modulo 2^64, and modulo as many primes as the number of assignments asks for; then Chinese remainders."""
    sizes = execution.problem.model.sizes
    bits = sum(math.log2(sizes[v]) for v in execution.problem.free) + 1
    if bits > _LONG_COUNT and _fits_long_integers(execution, bits):
        return _long_count(execution, clock)
    divisors = _moduli(bits)
    sweep, places = Sweep(execution, clock), root_places(execution.plan)
    state: State = {"residues": [0] * len(divisors), **execution.state}
    numbers = execution.places(sweep.count)
    for number, divisor in enumerate(divisors):
        left = numbers[max(0, state["done"] - number * len(numbers)) :]
        sweep.done = len(numbers) - len(left)
        for part in filter(None, sweep.run(left, divisor % 2**64, (number, len(divisors)))):
            if part.run is not None:
                product = functools.reduce(lambda x, root: x * root % divisor, part.run.zone[places].tolist(), 1)
                residues = list(state["residues"])
                residues[number] = (residues[number] + product) % divisor
                state = {**state, "residues": residues}
            state = {**state, "done": state["done"] + 1}
            execution.save(state)
    count, modulus = 0, 1
    for residue, divisor in zip(state["residues"], divisors, strict=True):
        count += modulus * ((residue - count) * pow(modulus, -1, divisor) % divisor)
        modulus *= divisor
    return Result("exact", "count", count)


def _fits_long_integers(execution: Execution, bits: float) -> bool:
    """Return whether one run in long integers may count: on the CPU, as a whole, and within the memory.

    Messages that coexist are of different subtrees, so that their bits add up to no more than those of the whole; twice
    that where one is made of others.
    """
    plan = execution.plan
    is_whole = plan.slicing is None and plan.sparse is None and plan.stream is None and plan.scratch is None
    is_free = execution.checkpoint is None and execution.share is None and plan.on_host
    most = 2 * plan.largest_table * bits / 8 + (plan.arena_cells - plan.factor_cells) * _LONG_INTEGER_BYTES
    return is_whole and is_free and plan.peak_bytes + most <= plan.memory_limit


def _long_count(execution: Execution, clock: dict[str, float]) -> Result:
    started = time.perf_counter()
    plan, problem = execution.plan, execution.problem
    encoded = Encoder(problem, plan).encoded(problem)
    ready = time.perf_counter()
    clock["encode"] = ready - started
    if encoded.impossible:
        return Result("exact", "count", 0)
    program = execution.program()
    count = b""
    if _allows_anything(execution, program, encoded.arena):
        roots = np.array([output.step for output in plan.outputs], dtype=np.int64)
        steps = Steps.packed(plan.steps)
        count = exact_count(steps.words, steps.starts, roots, encoded.arena)
    clock["run"] = time.perf_counter() - ready
    execution.report(1.0)
    return Result("exact", "count", int.from_bytes(count, "little"))


def _allows_anything(execution: Execution, program: Program, factors: NDArray[np.generic]) -> bool:
    """Return whether there is a solution: a run in floats tells it long before one in long integers would."""
    possible = program._replace(semiring="min-sum", dtype=np.dtype(np.float64), parameter=math.inf)
    session = execution.backend.open(possible, np.where(factors == 0, math.inf, 0.0))
    zone = session.run().zone
    session.close()
    return bool(np.isfinite(zone[root_places(execution.plan)]).all())


def _moduli(bits: float) -> Sequence[int]:
    """2^64, and primes below 2^31 until their product has so many bits."""
    result, covered, candidate = [2**64], 64.0, 2**31 - 1
    while covered < bits:
        if _is_prime(candidate):
            result.append(candidate)
            covered += math.log2(candidate)
        candidate -= 2
    return result


def _is_prime(odd: int) -> bool:
    """Miller-Rabin with the bases 2, 7 and 61, which decide every number below 4759123141 (Jaeschke 1993)."""
    shift = (odd - 1 & -(odd - 1)).bit_length() - 1
    for base in (2, 7, 61):
        power = pow(base, odd - 1 >> shift, odd)
        if power in (1, odd - 1):
            continue
        if not any((power := power * power % odd) == odd - 1 for _ in range(shift - 1)):
            return False
    return True


WORTH_SECONDS = 1.0
"""Estimated time of all slices from which bounds are made, in a tenth of it at most."""

MOST_SLICES = 1 << 16
_LONGEST = 10.0
_SHARE = 0.1

_MOST_OFFSET = 2**62
"""Largest common cost of all slices, where the rest is at most as far from it as a search's costs."""

_ROUNDING = 1e-9
"""Rounding error of sums of floats, relative to the largest costs."""


class SliceBounds(NamedTuple):
    """Lower bounds on slices, as costs that are minimised.

    Attributes:
        costs: Lower bound on the total of each slice, negated where totals are maximised; the largest number of the
            dtype where nothing is allowed.
        slack: Rounding error of a bound.
    """

    costs: NDArray[Any]
    slack: float

    def is_hopeless(self, number: int, best: int | float) -> bool:
        """Return whether no assignment of a slice is better than a total, negated where totals are maximised."""
        return bool(self.costs[number].item() >= best + self.slack)

    def sequence(self, sizes: Sequence[int]) -> list[int]:
        """Return all slices such that promising ones come early, and values of slow variables still change seldom.

        Args:
            sizes: Sizes of the conditioned variables, the slowest one first.
        """
        costs = self.costs.reshape(sizes)
        keys: list[NDArray[np.generic]] = []
        for axis in range(len(sizes)):
            best = costs.min(axis=tuple(range(axis + 1, len(sizes))), keepdims=True)
            number = np.arange(sizes[axis]).reshape([-1 if a == axis else 1 for a in range(len(sizes))])
            keys += [np.broadcast_to(key, sizes).reshape(-1) for key in (best, number)]
        numbers: list[int] = np.lexsort(keys[::-1]).tolist()
        return numbers


def bound_slices(execution: Execution) -> tuple[SliceBounds, list[int] | None] | None:
    """Bound all slices, and find a first assignment by greedy decoding and local search.

    Args:
        execution: Execution of a plan in slices, for the task ``mpe``.

    Returns:
        The bounds, and a value for each variable of the model (None if none was found); None where slices are too
        many, too quick to be worth it, or too large for mini-buckets.
    """
    # Most calls need no search, whose modules take longer to load than a small problem.
    from elimina.inference.search import MOST_COST, searched_optimum
    from elimina.inference.shifting import shift_tables

    problem, plan = execution.problem, execution.plan
    slicing = plan.slicing
    if slicing is None or slicing.number > MOST_SLICES or plan.seconds < WORTH_SECONDS:
        return None
    if problem.model.is_integer and cost_bound(problem) > MOST_COST:
        return None
    backend = CpuBackend(execution.backend.threads if isinstance(execution.backend, CpuBackend) else None)
    memory = plan.memory_limit if plan.on_host else backend.memory()
    order = (*plan.order, *slicing.variables)
    options = Options("cpu", memory, order, threads=backend.threads)
    # Several devices wait for the bounds together.
    seconds = min(_LONGEST, _SHARE * plan.seconds / len(devices_of(execution.backend)))
    original = shift_tables(problem, options, seconds)
    bounding = _bounding_plan(original.moved, plan, slicing, backend, memory, seconds)
    if not bounding.fits:
        return None
    costs = _costs(original, bounding, slicing, backend)
    if costs is None:
        return None
    slack = 0.0 if problem.model.is_integer else _ROUNDING * _spread(problem)
    try:
        first = searched_optimum(problem, options, Limits(execution.deadline, nodes=0, rounds=1), original=original)
    except MemoryLimitError:
        return SliceBounds(costs, slack), None
    sign = problem.model.sign
    bound = first.bound(sign)
    if bound is not None:
        costs = np.maximum(costs, sign * bound)
    chosen = None if first.assignment is None else problem.model.indices_of(first.assignment)
    return SliceBounds(costs, slack), chosen


def _spread(problem: Problem) -> float:
    """Return the largest sum of the tables' costs, whatever their signs."""
    logs = problem.model.sense == "probability"
    total = abs(float(problem.model.constant))
    for ends in filter(None, allowed_ranges(problem.tables, problem.model.sense)):
        total += max(abs(math.log(end) if logs else end) for end in ends)
    return max(1.0, total)


def _bounding_plan(
    problem: Problem, plan: Plan, slicing: Slicing, backend: CpuBackend, memory: int, seconds: float
) -> Plan:
    """Mini-buckets that leave the fixed variables in the tables."""
    kept = problem._replace(free=plan.order, kept=slicing.variables)
    machine = cpu_machine(backend.threads)
    return make_bounded_plan(kept, plan.order, machine, memory, None, "auto", levelled=False, seconds=seconds)


def _costs(original: Original, plan: Plan, slicing: Slicing, backend: CpuBackend) -> NDArray[Any] | None:
    """Return the bounds of all slices, by one run; None if integers do not hold them."""
    problem = original.moved
    encoded = encode(problem, plan)
    is_integer = problem.model.is_integer
    dtype = np.dtype(np.int64 if is_integer else np.float64)
    worst = np.iinfo(np.int64).max if is_integer else math.inf
    if is_integer and abs(int(encoded.offset)) > _MOST_OFFSET:
        return None
    if encoded.impossible:
        return np.full(slicing.number, worst, dtype=dtype)
    sign = problem.model.sign
    # Integers are costs to be minimised in any case.
    direction = 1 if is_integer else sign
    total: NDArray[Any] = np.zeros(slicing.sizes, dtype=dtype)
    for scope, cells in kept_tables(Execution(problem, plan, backend), encoded.arena):
        axes = [scope.index(v) for v in slicing.variables if v in scope]
        shape = [size if v in scope else 1 for v, size in zip(slicing.variables, slicing.sizes, strict=True)]
        total = total + direction * cells.astype(dtype).transpose(axes).reshape(shape)
        if is_integer:
            total = np.minimum(total, int(plan.forbidden))
    costs: NDArray[Any] = total.reshape(-1) + sign * (int(encoded.offset) if is_integer else encoded.offset)
    if original.shifted is not None:
        scale = original.shifted.scale
        costs = -(-costs // int(scale)) if is_integer else costs / scale
    return np.where(total.reshape(-1) >= plan.forbidden, worst, costs) if is_integer else costs


def kept_tables(execution: Execution, arena: NDArray[np.generic]) -> list[tuple[tuple[int, ...], NDArray[Any]]]:
    """Run a plan; return the tables left over its kept variables: messages of the roots, and factors."""
    plan, program = execution.plan, execution.program()
    zone = run_once(execution.backend, program, arena, execution.report).zone
    tables: list[tuple[tuple[int, ...], NDArray[Any]]] = []
    for output in plan.outputs:
        step = plan.steps[output.step]
        tables.append((step.axes, view_of(zone, step.out_offset - program.zone[0], step.sizes, step.out_strides)))
    inside = frozenset(plan.kept)
    return tables + [(f.scope, factor_view(arena, f)) for f in plan.factors if inside.issuperset(f.scope)]
