"""Choice of steps that work on sparse tables (of allowed tuples only), and lower bounds on the rest of the problem.

The bounds for a step are computed by mini-buckets over the same tree (mini-bucket tree elimination; R. Mateescu,
R. Dechter, K. Kask, "Tree approximation for belief updating", AAAI 2002): one pass towards the roots bounds each
bucket's message from below, and one pass back bounds the factors outside its subtree. A tuple whose value and bounds
add up to a forbidden cost cannot be part of a solution (function filtering: M. Sanchez, J. Larrosa, P. Meseguer,
"Improving tree decomposition methods with function filtering", IJCAI 2005).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from elimina._core import row_bounds
from elimina.errors import UnsupportedError
from elimina.model import table as tables_of_models
from elimina.model.table import Table, forbidden_value
from elimina.option_names import option
from elimina.planning.key_layout import DTYPES, MAX_KEY_WORDS, WORD, field_bits
from elimina.planning.listed_tables import listed_tuples, with_listed
from elimina.planning.machine import SLICE_SECONDS, SLICED_TABLE_SECONDS, Machine, cpu_machine, speeds
from elimina.planning.packed_steps import Steps
from elimina.planning.plan import OutsideBounds, Plan, Sparse, StorageForm, TablePlace, slice_runs
from elimina.planning.program import place_steps
from elimina.planning.record import MAX_OPERANDS
from elimina.planning.step import JOIN, FactorLayout, Operand, Output, Step
from elimina.planning.tree import plan_tree
from elimina.problem.preparation import Problem
from elimina.problem.tasks import described, tasks_that
from elimina.problem.unpacked import rows_of

_DENSE_SHARE = 0.5
"""A table with a larger share of allowed cells is better stored densely: a sparse table also stores the key of each
tuple, and has to be searched."""

_MAX_READ_CELLS = 1 << 22
"""The tables of a factor with at most this number of cells are joined to count its allowed cells. For larger factors,
the density is estimated from those of the tables."""


def reason_for_dense(problem: Problem) -> str | None:
    """Return the reason why a problem cannot have sparse tables; None if it can."""
    if described(problem.task).has_rows and not problem.kept:
        return None
    tasks = ", ".join(tasks_that(lambda task: task.has_rows))
    return f"sparse tables are for the tasks {tasks}, without cases, not for {problem.task}"


class Density(NamedTuple):
    """Density of a table.

    Attributes:
        share: Share of allowed cells.
        kept: Density after the first variable is eliminated: the share of the assignments of the other variables at
            which this variable has an allowed value.
    """

    share: float
    kept: float

    @staticmethod
    def independent(share: float, domain: int) -> Density:
        """Return the density of a table whose cells are allowed independently of each other."""
        return Density(share, -math.expm1(domain * math.log1p(-min(share, 1 - 1e-16))))


def densities(
    problem: Problem, factors: Sequence[FactorLayout], sliced: Sequence[int] = (), tuples: Sequence[int | None] = ()
) -> list[Density]:
    """Return the density of each factor; its first variable is the one that is eliminated next.

    The densities of large and listed factors are estimated from those of their members.

    Args:
        problem: Problem without slices.
        factors: Factors of a slice.
        sliced: Conditioned variables; densities are means over their values.
        tuples: Largest number of tuples of each factor; None for a factor that must not be listed.
    """
    tuple_limits = tuples or [None] * len(factors)
    forbidding = set(problem.tables.listed.forbidding(problem.model.sense).tolist())
    return [
        Density(1.0, 1.0)
        if forbidding.isdisjoint(factor.members)
        else _table_density(problem, factor, sliced, max_tuples)
        for factor, max_tuples in zip(factors, tuple_limits, strict=True)
    ]


def _table_density(problem: Problem, factor: FactorLayout, sliced: Sequence[int], max_tuples: int | None) -> Density:
    tables = [problem.tables[member] for member in factor.members]
    scope = (*factor.scope, *(v for v in sliced if any(v in table.scope for table in tables)))
    sizes = [problem.model.sizes[v] for v in scope]
    if max_tuples is not None or math.prod(sizes) > _MAX_READ_CELLS:
        return Density.independent(math.prod(_density(table, problem) for table in tables), factor.sizes[0])
    support = np.ones(sizes, dtype=bool)
    for table in tables:
        axes = [table.scope.index(v) for v in scope if v in table.scope]
        shape = [size if v in table.scope else 1 for v, size in zip(scope, sizes, strict=True)]
        allowed = table.dense() != forbidden_value(problem.model.sense, table.values.dtype)
        support &= allowed.transpose(axes).reshape(shape)
    return Density(float(support.mean()), float(support.any(axis=0).mean()))


def _density(table: Table, problem: Problem) -> float:
    worst = forbidden_value(problem.model.sense, table.values.dtype)
    allowed = sum(int(np.count_nonzero(table.values[box] != worst)) for box in blocks(table.values.shape))
    if table.rows is not None and table.default != worst:
        allowed += table.cells - len(table.values)
    return allowed / max(1, table.cells)


def joined_sizes(step: Step) -> tuple[int, ...]:
    """Return the sizes of the axes of the output's tuples: those axes that at least one table has.

    If a later dense step needs a matrix, the output has additional axes along which its cells are equal.
    """
    axes = zip(step.sizes, *(operand.strides for operand in step.operands), strict=True)
    return tuple(size for size, *strides in axes if any(strides))


def log_cells(step: Step) -> float:
    """Return the natural logarithm of the number of combinations of the output's tuples and eliminated values."""
    return sum(map(math.log, joined_sizes(step))) + math.log(step.domain)


def predicted_shares(domain: int, tables: Sequence[Density]) -> tuple[float, float]:
    """Return the logarithms of two shares: of allowed combinations of a step, and of allowed cells of its output.

    The share of the output is exact if all tables but one are full. Otherwise, it is the mean of two estimates. The
    first estimate treats all cells as independent, which is too low if a table determines one variable from others.
    The second estimate uses only the values of the eliminated variable that the most restrictive table allows; the
    other tables allow each of these values independently.
    """
    logs = [math.log(table.share) if table.share > 0 else -math.inf for table in tables]
    joint = sum(logs)
    if not tables or joint == -math.inf:
        return joint, joint
    values = [domain * table.share / table.kept for table in tables]
    first = min(range(len(tables)), key=values.__getitem__)
    others, kept = joint - logs[first], math.log(tables[first].kept)
    if others > -1e-12:
        return joint, kept
    return joint, min(0.0, (_any(joint, domain) + kept + _any(others, values[first])) / 2)


def _any(share: float, number: float) -> float:
    """Return the logarithm of the probability that any of several independent events occurs.

    ``share``: logarithm of the probability of each event; ``number``: number of events.
    """
    if share < math.log(1e-9):
        return share + math.log(number)
    return math.log(-math.expm1(number * math.log1p(-min(math.exp(share), 1 - 1e-16))))


def tuple_bytes(sizes: Sequence[int], itemsize: int) -> int:
    """Return the bytes of a tuple: its key's words and its value."""
    return 8 * max(1, -(-sum(map(field_bits, sizes)) // WORD)) + itemsize


def tuples_cannot_pay(plan: Plan, problem: Problem, machine: Machine) -> bool:
    """Return whether even the longest step of a dense plan is estimated to be shorter than any sparse step.

    The result is False if the plan does not fit, or if a table lists its tuples.
    """
    if not plan.fits or any(table.rows is not None for table in problem.tables):
        return False
    if problem.described.is_count:
        machine = machine.counting()
    cells = float(plan.largest_table)
    moved, work = (MAX_OPERANDS + 1) * cells * plan.itemsize, cells * max(problem.model.sizes, default=1)
    # Larger steps are divided among threads, so the longest step may be the largest one that runs on a single thread.
    longest = max(machine.step_seconds(moved, some, MAX_OPERANDS) for some in (work, min(work, 0.99 * machine.shared)))
    return longest < machine.rows_step


def make_sparse_plan(
    plan: Plan, problem: Problem, machine: Machine, whole: bool = False, times: float = 1.0, listed: bool = True
) -> Plan | None:
    """Plan steps on sparse tables if they are expected to be faster, or if only they fit; None: all tables stay dense.

    Unless ``whole`` is set, a returned plan fits.

    The expected numbers of tuples assume independent tables; a run that finds more tuples makes a new plan. A factor is
    listed if all steps that read it work on sparse tables.

    Args:
        plan: Dense plan.
        problem: Problem of the plan, without slices.
        machine: Cost model of the device.
        whole: True to make all steps sparse that read a table.
        times: Factor by which the expected number of tuples exceeds the number for independent tables.
        listed: True if factors may be listed.

    Raises:
        UnsupportedError: ``whole`` is set, but the task or the dtype does not support sparse tables, or there are no
            steps.
    """
    reason = reason_for_dense(problem)
    if reason is None and plan.dtype not in DTYPES:
        reason = f"rows are of {', '.join(DTYPES)}, not of {plan.dtype}"
    wanted = len(problem.wanted) + len(problem.families)
    if reason is None and sum(bool(output.scope) for output in plan.outputs) < wanted:
        reason = "the plan has figures only, because no machine can hold one of its tables"
    if reason is not None:
        if whole:
            raise UnsupportedError(f"{reason}; use {option('tables', 'dense')}")
        return None
    if problem.described.is_count:
        machine = machine.counting()
    sliced = plan.form.variables
    tuples = listed_tuples(problem, plan) if listed else [None] * len(plan.factors)
    factor_densities = _FactorDensities(densities(problem, plan.factors, sliced, tuples), tuples)
    if not whole and all(table.share == 1 for table in factor_densities.densities):
        return None
    chosen = _with_forms(plan, machine, factor_densities, whole, times, only_fitting=not whole)
    if chosen is None:
        # The fastest plan does not fit, but it may fit without its dense tables.
        chosen = _with_forms(plan, machine, factor_densities, True, times, only_fitting=True)
    if chosen is None or chosen is plan:
        return None
    return chosen._replace(seconds=chosen.seconds + _slice_seconds(chosen, problem))


def _slice_seconds(plan: Plan, problem: Problem) -> float:
    """Return the estimated seconds of slices in addition to their steps: each slice encodes the factors that change."""
    if not plan.form.variables:
        return 0.0
    runs = slice_runs(plan.form.sizes)
    level_of = {v: level for level, v in enumerate(plan.form.variables, start=1)}
    seconds = runs[-1] * SLICE_SECONDS
    for factor in plan.factors:
        tables = [problem.tables[member] for member in factor.members]
        level = max((level_of.get(v, 0) for table in tables for v in table.scope), default=0)
        # Each slice reads all tuples of a list, and compares them with the values of its conditioned variables.
        lists = [table for table in tables if table.rows is not None]
        numbers = sum(len(table.values) * (1 + len(level_of.keys() & table.scope)) for table in lists)
        numbers += factor.span if factor.tuples is None else 0
        seconds += runs[level] * (SLICED_TABLE_SECONDS + numbers / speeds().encoded) if level else 0.0
    return seconds


class _FactorDensities(NamedTuple):
    """Densities of a plan's factors, and the largest number of tuples of each factor (None: it is stored densely)."""

    densities: Sequence[Density]
    tuples: Sequence[int | None]


def _with_forms(
    dense: Plan,
    machine: Machine,
    factor_densities: _FactorDensities,
    whole: bool,
    times: float,
    only_fitting: bool = False,
) -> Plan | None:
    """Return the plan with the fastest form of each step; all steps are sparse if ``whole`` is set.

    The result is None if ``only_fitting`` is set and the plan does not fit.
    """
    chooser = _Chooser(dense, machine, factor_densities, times)
    forms = []
    for step, runs in zip(dense.steps, dense.runs, strict=True):
        form = chooser.choose(step, whole, runs)
        if only_fitting and _message_bytes(step, form, dense.itemsize) > dense.memory_limit:
            return None
        forms.append(form)
    if not any(form.in_rows for form in forms):
        return dense
    plan = dense
    if any(max_tuples is not None for max_tuples in factor_densities.tuples):
        written = {o.factor for s, form in zip(dense.steps, forms, strict=True) if not form.in_rows for o in s.operands}
        plan = with_listed(
            dense,
            [None if number in written else max_tuples for number, max_tuples in enumerate(factor_densities.tuples)],
        )
    levels = plan.levels
    sequence = _dense_first(plan.steps, forms, levels)
    number = {old: new for new, old in enumerate(sequence)}
    outputs = tuple(output._replace(step=number[output.step]) for output in plan.outputs)
    steps = _place_outputs(_moved(plan.steps, sequence), outputs, plan.factor_cells)
    repeated = frozenset(
        number[old] for old, step in enumerate(plan.steps) if any(levels[r] > levels[old] for r in step.readers)
    )
    kinds = tuple(forms[old] for old in sequence)
    sparse = Sparse(plan.factors, tuple(steps), kinds, plan.memory_limit, lasting=repeated)
    factor_bytes = plan.factor_cells * plan.itemsize
    size = min(_peak(sparse, plan.itemsize, plan.keep) + factor_bytes, 2**70)
    sparse_plan = plan._replace(
        steps=sparse.steps,
        outputs=outputs,
        bytes=machine.tiers(size, factor_bytes, plan.planning_bytes),
        seconds=chooser.seconds,
        form=plan.form.with_levels([levels[old] for old in sequence]),
        sparse=sparse,
    )
    return None if only_fitting and not sparse_plan.fits else sparse_plan


class _Chooser:
    """Choice between sparse and dense tables, step by step: the forecast of a message uses earlier forecasts."""

    def __init__(self, plan: Plan, machine: Machine, factor_densities: _FactorDensities, times: float) -> None:
        self._plan, self._machine, self._factor_densities, self._times = plan, machine, factor_densities, times
        self._shares: list[float] = []
        self._forms: list[StorageForm] = []
        self.seconds = machine.start

    def choose(self, step: Step, whole: bool, runs: int) -> StorageForm:
        """Return the form of the next step, and add the expected time of its runs to ``seconds``."""
        joint, kept = predicted_shares(step.domain, [self._fill(operand, step.domain) for operand in step.operands])
        self._shares.append(math.exp(kept))
        combinations = log_cells(step)
        cells = combinations - math.log(step.domain)
        rows = min(exp(cells), self._times * exp(cells + kept))
        read = sum(self._rows(operand) for operand in step.operands)
        machine = self._machine
        on_rows = machine.rows_step + (exp(combinations + joint) + machine.sorted_row * read) / machine.rows
        item = self._plan.itemsize
        # A dense step expands sparse inputs to all their cells, and then copies the cells to its arena, which is new
        # memory each time; a dense plan uses one arena.
        expanded = sum(2 * o.cells for o in step.operands if self._reads_rows(o))
        dense = machine.seconds([step], item, (expanded + step.out_cells) * item) - machine.start
        if step.out_cells * item > self._plan.memory_limit:
            dense = math.inf
        listed = sum(
            o.cells for o in step.operands if o.source < 0 and self._factor_densities.tuples[o.factor] is not None
        )
        dense += listed / speeds().encoded
        possible = bool(step.operands) and sum(map(field_bits, (*joined_sizes(step), step.domain))) <= WORD * (
            MAX_KEY_WORDS - 1
        )
        sparse = self._shares[-1] < _DENSE_SHARE or listed > 0 or any(self._reads_rows(o) for o in step.operands)
        form = StorageForm(possible and (whole or (sparse and on_rows < dense)), rows)
        self._forms.append(form)
        self.seconds += runs * (on_rows if form.in_rows else dense)
        return form

    def _fill(self, operand: Operand, domain: int) -> Density:
        if operand.source >= 0:
            return Density.independent(self._shares[operand.source], domain)
        factor = self._factor_densities.densities[operand.factor]
        # A step that only joins tables does not eliminate a variable.
        return factor if domain > 1 else Density.independent(factor.share, 1)

    def _reads_rows(self, operand: Operand) -> bool:
        return operand.source >= 0 and self._forms[operand.source].in_rows

    def _rows(self, operand: Operand) -> float:
        if operand.source >= 0:
            return self._forms[operand.source].rows
        tuples = self._factor_densities.tuples[operand.factor]
        return float(operand.cells if tuples is None else tuples)


def exp(exponent: float) -> float:
    """Return the exponential of a number; infinity if it exceeds the range of floats."""
    return math.exp(exponent) if exponent < 700 else math.inf


def _dense_first(steps: Sequence[Step], forms: Sequence[StorageForm], levels: Sequence[int]) -> list[int]:
    """Return a new sequence of steps: at each level, dense steps that do not depend on sparse ones come first."""
    late: list[bool] = []
    for step, form in zip(steps, forms, strict=True):
        late.append(form.in_rows or any(late[o.source] for o in step.operands if o.source >= 0))
    return sorted(range(len(steps)), key=lambda number: (levels[number], late[number]))


def _moved(steps: Sequence[Step], sequence: Sequence[int]) -> list[Step]:
    number = {old: new for new, old in enumerate(sequence)}
    return [
        steps[old]._replace(
            operands=tuple(o._replace(source=number[o.source]) if o.source >= 0 else o for o in steps[old].operands),
            readers=tuple(sorted(number[reader] for reader in steps[old].readers)),
        )
        for old in sequence
    ]


def _place_outputs(steps: list[Step], outputs: Sequence[Output], first: int) -> list[Step]:
    """Place the outputs next to each other, so that no memory between them is wasted."""
    for number in dict.fromkeys(output.step for output in outputs):
        steps[number] = steps[number]._replace(out_offset=first)
        first += steps[number].out_span
    return steps


def _message_bytes(step: Step, form: StorageForm, item: int) -> int:
    """Return the bytes of a step's output: of its tuples or of all cells."""
    if not form.in_rows:
        return step.out_span * item
    return math.ceil(min(form.rows, 2.0**62)) * tuple_bytes(joined_sizes(step), item)


def _peak(sparse: Sparse, item: int, keep: bool) -> int:
    """Return the expected peak bytes of messages, including sorted copies of a step's inputs and of its output."""
    sizes = [_message_bytes(step, form, item) for step, form in zip(sparse.steps, sparse.forms, strict=True)]
    end = len(sparse.steps)
    last = [end if n in sparse.lasting else max(step.readers, default=end) for n, step in enumerate(sparse.steps)]
    gone: dict[int, int] = {}
    for number, reader in enumerate(last):
        gone[reader] = gone.get(reader, 0) + sizes[number]
    live = peak = 0
    for number, step in enumerate(sparse.steps):
        # Operands are first copied in the step's order of variables, which takes their bytes a second time.
        read = sum(sizes[o.source] for o in step.operands if o.source >= 0)
        factors = (sparse.factors[o.factor] for o in step.operands if o.source < 0)
        read += sum(factor.span * item for factor in factors if factor.tuples is not None)
        live += sizes[number]
        peak = max(peak, live + read + sizes[number])
        if not keep:
            live -= gone.get(number, 0)
    return peak


def groups(sparse: Sparse) -> list[tuple[bool, list[int]]]:
    """Return runs of consecutive steps of one kind: a flag (True if they work on tuples), and the steps' numbers."""
    numbers = range(len(sparse.steps))
    return [(kind, list(group)) for kind, group in itertools.groupby(numbers, lambda n: sparse.forms[n].in_rows)]


CELLS = 1 << 12
"""Largest number of cells of a mini-bucket's message, unless its tables are larger: more cells exclude few more
tuples."""


def outside(plan: Plan, sizes: Sequence[int]) -> OutsideBounds:
    """Plan the computation of bounds for a plan's steps.

    Args:
        plan: Exact plan for the optimum of integer costs (``min-sum``).
        sizes: Domain size of every variable of the model.
    """
    tree = plan_tree([factor.scope for factor in plan.factors], sizes, plan.order)
    max_operands = int(np.iinfo(plan.dtype).max // max(1, int(plan.forbidden)))
    bounds = row_bounds(tree, min(MAX_OPERANDS, max_operands), CELLS)
    placed = place_steps(bounds.steps, plan.itemsize, 0, cpu_machine(1))
    steps = Steps.of(placed)
    where = _TablePlaces(plan.factors, steps)
    nodes = {variable: number for number, variable in enumerate(tree.variables.tolist())}
    parents = tree.parents.tolist()
    inside, around = ([where.all(tables) for tables in rows_of(lists)] for lists in (bounds.upward, bounds.downward))
    tables_below: list[tuple[TablePlace, ...]] = []
    for step in plan.steps:
        if step.variable == JOIN:
            tables_below.append(
                tuple(table for operand in step.operands for table in where.under(operand, tables_below))
            )
        else:
            tables_below.append(inside[nodes[step.variable]])
    roots = [number for number, parent in enumerate(parents) if parent < 0]
    tree_number = {root: number for number, root in enumerate(roots)}
    root_of = [0] * len(parents)
    for number in range(len(parents) - 1, -1, -1):
        root_of[number] = tree_number[number] if parents[number] < 0 else root_of[parents[number]]
    rest: list[tuple[TablePlace, ...]] = [()] * len(plan.steps)
    tree_of = [0] * len(plan.steps)
    for number in range(len(plan.steps) - 1, -1, -1):
        step = plan.steps[number]
        if step.variable == JOIN:
            reader = step.readers[0]
            siblings = (operand for operand in plan.steps[reader].operands if operand.source != number)
            rest[number] = rest[reader] + tuple(
                table for sibling in siblings for table in where.under(sibling, tables_below)
            )
            tree_of[number] = tree_of[reader]
            continue
        node = nodes[step.variable]
        rest[number] = around[node]
        tree_of[number] = root_of[node]
    trees = tuple(inside[root] for root in roots)
    factors = tuple(where.factor(number) for number in range(len(plan.factors)))
    return OutsideBounds(
        steps, int(placed.arena_cells), factors, tuple(tables_below), tuple(rest), trees, tuple(tree_of)
    )


class _TablePlaces:
    """Positions of a plan's factors, and of the messages in the program that computes bounds."""

    def __init__(self, factors: Sequence[FactorLayout], steps: Sequence[Step]) -> None:
        self._factors, self._steps = factors, steps

    def all(self, tables: Iterable[int]) -> tuple[TablePlace, ...]:
        return tuple(self.factor(table) if table >= 0 else self._message(-1 - table) for table in tables)

    def under(self, operand: Operand, tables_below: Sequence[tuple[TablePlace, ...]]) -> tuple[TablePlace, ...]:
        """Return the tables that bound an operand of a step."""
        return (self.factor(operand.factor),) if operand.source < 0 else tables_below[operand.source]

    def factor(self, number: int) -> TablePlace:
        factor = self._factors[number]
        return TablePlace(factor.offset, factor.scope, factor.sizes, factor.strides)

    def _message(self, number: int) -> TablePlace:
        step = self._steps[number]
        return TablePlace(step.out_offset, step.axes, step.sizes, step.out_strides)


def blocks(sizes: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """Yield boxes of at most ``BLOCK_CELLS`` cells that make up a table of these sizes, in the order of cells."""
    whole = (slice(None),) * len(sizes)
    max_cells = tables_of_models.BLOCK_CELLS
    if math.prod(sizes) <= max_cells:
        yield whole
        return
    axis, inner = len(sizes) - 1, 1
    while inner * sizes[axis] <= max_cells:
        inner *= sizes[axis]
        axis -= 1
    step = max_cells // inner
    for index in itertools.product(*map(range, sizes[:axis])):
        lead = tuple(slice(x, x + 1) for x in index)
        for start in range(0, sizes[axis], step):
            yield (*lead, slice(start, min(start + step, sizes[axis])), *whole[axis + 1 :])
