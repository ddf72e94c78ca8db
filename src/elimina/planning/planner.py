"""Making plans."""

from __future__ import annotations

import functools
import math
import operator
from collections import Counter
from collections.abc import Container, Sequence
from typing import NamedTuple

import numpy as np

from elimina.errors import InputError
from elimina.planning.dependence import dependence, order_slices
from elimina.planning.estimate import EXPONENTIAL, Machine
from elimina.planning.incumbent import incumbent_cost
from elimina.planning.layout import Arena, table_strides
from elimina.planning.plan import (
    MOST_BYTES,
    FactorLayout,
    MiniBuckets,
    Operand,
    Output,
    Plan,
    Slicing,
    Step,
    slice_runs,
)
from elimina.planning.prepare import Group, Problem, finite_range, restrict
from elimina.planning.propagation import Passes
from elimina.planning.structure import MAX_OPERANDS, ProtoStep, build_steps
from elimina.planning.weights import Bound, node_weights
from elimina.semiring import FLOATS, INTEGERS, SEMIRINGS, Dtype
from elimina.tree import Partition, Tree, bucket_tree, central_order


class Encoding(NamedTuple):
    """How a model's values become a semiring's.

    Attributes:
        semiring: See ``Program.semiring``.
        dtype: Of the arena.
        forbidden: The smallest forbidden integer; infinity of the right sign for floats; 0 where 0 says it.
    """

    semiring: str
    dtype: Dtype
    forbidden: float


class _Layout(NamedTuple):
    encoding: Encoding
    fixed: tuple[int, ...]
    levels: tuple[int, ...]
    factors: tuple[FactorLayout, ...]
    steps: tuple[Step, ...]
    outputs: tuple[Output, ...]
    factor_cells: int
    arena_cells: int
    keep: bool
    seconds: float


_WORTH_A_SOLUTION = 0.5
"""Estimated seconds from which the search for a solution that allows a narrower dtype pays."""

_SLICE_SECONDS = 2e-4
_TABLE_SECONDS = 5e-5
_CELLS_ENCODED = 2e8
"""What a slice costs besides its steps, and each table that changes; cells of these written in a second."""

_HOPELESS = 1e9
"""Estimated seconds from which a plan is for its figures alone."""

_FEWEST_OPERANDS = 3
"""Steps that add fewer tables are not worth a narrower dtype."""


def make_plan(
    problem: Problem,
    order: Sequence[int],
    machine: Machine,
    memory: int,
    dtype: str | None = None,
    sliced: Sequence[int] = (),
    unsliced: Plan | None = None,
    ibound: int | None = None,
    levelled: bool = False,
    side: Bound | None = None,
    partition: Partition | None = None,
) -> Plan:
    """Lay out a whole elimination.

    Args:
        problem: What has to be eliminated.
        order: The free variables in elimination order.
        machine: The device that will run it, as its cost model sees it.
        memory: Bytes that the plan may use there.
        dtype: Override of the arena's dtype.
        sliced: Variables that are not in the order, but fixed to each combination of their values in turn (tasks
            ``mpe``, ``pr``, ``count``).
        unsliced: The plan without such variables, if there are any.
        ibound: The most variables of a message (``mpe``, ``pr``): buckets that would send a larger one are divided into
            mini-buckets, and the plan makes a bound on the answer. None: the plan is exact.
        levelled: Whether mini-buckets of a variable are levelled (``planning.structure``).
        side: From which side a sum is bounded; None for the task ``mpe``, and for exact plans.
        partition: The mini-buckets of each bucket; None: by scopes.

    Raises:
        InputError: The dtype does not fit the task or cannot hold the costs exactly.
    """
    part = restrict(problem, dict.fromkeys(sliced, 0)) if sliced else problem
    tree, scopes = _tree(part, order, ibound, partition)
    if problem.task == "mar":
        central = central_order(tree, problem.model.sizes)
        tree, scopes = _tree(problem, [v for v in central if v not in problem.kept])
    minibuckets = _minibuckets(tree, ibound, levelled, partition is not None)
    weights = None
    if side is not None and (minibuckets is not None or part.maximised):
        weights = node_weights(tree, side, [_has_zeros(part, group) for group in part.groups], part.maximised)
    decode = problem.task == "mpe" and minibuckets is None and not problem.kept
    # A GPU has only whole programs' messages in its arena.
    keep = decode or ((minibuckets is not None or weights is not None) and machine.name == "cuda")

    @functools.cache
    def steps_of(operands: int) -> _Made:
        return _proto_steps(part, tree, scopes, operands, levelled, weights)

    def lay_out(bound: int, operands: int = MAX_OPERANDS, keep: bool = keep) -> _Layout:
        made = steps_of(operands)
        most = max((len(step.reads) for step in made.steps), default=0)
        encoding = choose_encoding(problem, most, bound, dtype, weights is not None)
        sequence = _sequence(problem, part, made, sliced)
        return _lay_out(part, scopes, sequence, encoding, keep, machine)

    # What holds for the whole problem holds for each slice.
    bound = cost_bound(problem)
    # A solution that was looked for, found or not, is not looked for again.
    searched = unsliced is not None and unsliced.dtype in INTEGERS and unsliced.seconds < _HOPELESS
    if unsliced is not None and unsliced.dtype in INTEGERS:
        bound = min(bound, int(unsliced.forbidden))
    # A batch's cases change from run to run: what is kept is of no use again, but lets a GPU's steps run in any order.
    reuse = problem.task != "mar" or (bool(problem.kept) and machine.name == "cpu")
    chosen = lay_out(bound, keep=keep or not reuse)
    if problem.task == "mar" and chosen.keep and _tiers(chosen, machine)[machine.home] > memory:
        chosen = lay_out(bound)
    if dtype is None and chosen.encoding.dtype in INTEGERS[1:] and chosen.seconds < _HOPELESS:
        too_large = _tiers(chosen, machine)[machine.home] > memory
        if not searched and not problem.kept and (too_large or chosen.seconds - machine.start > _WORTH_A_SOLUTION):
            cost = incumbent_cost(problem)
            bound = bound if cost is None else min(bound, cost + 1)
        others = [lay_out(bound, operands) for operands in _operand_limits(bound, chosen.encoding.dtype)]
        chosen = min(
            [chosen, *others],
            key=lambda layout: (
                _tiers(layout, machine)[machine.home] > memory,
                layout.seconds,
                INTEGERS.index(layout.encoding.dtype),
            ),
        )
    slicing = None
    if unsliced is not None:
        sizes = tuple(problem.model.sizes[v] for v in chosen.fixed)
        names = tuple(problem.model.variables[v].name for v in chosen.fixed)
        slicing = Slicing(chosen.fixed, names, sizes, chosen.levels, unsliced, allowed=True)
    return Plan(
        task=problem.task,
        semiring=chosen.encoding.semiring,
        dtype=chosen.encoding.dtype,
        forbidden=chosen.encoding.forbidden,
        order=tree.order,
        kept=problem.kept,
        width=tree.width,
        factors=chosen.factors,
        steps=chosen.steps,
        outputs=chosen.outputs,
        factor_cells=chosen.factor_cells,
        arena_cells=chosen.arena_cells,
        keep=chosen.keep,
        decode=decode,
        device=machine.name,
        memory_limit=memory,
        bytes=_tiers(chosen, machine),
        seconds=chosen.seconds,
        slicing=slicing,
        minibuckets=minibuckets,
    )


def _tiers(layout: _Layout, machine: Machine) -> dict[str, int]:
    itemsize = np.dtype(layout.encoding.dtype).itemsize
    return machine.tiers(layout.arena_cells * itemsize, layout.factor_cells * itemsize)


def _tree(
    problem: Problem, order: Sequence[int], ibound: int | None = None, partition: Partition | None = None
) -> tuple[Tree, list[tuple[int, ...]]]:
    """The bucket tree of an order, and the groups' scopes sorted by it, kept variables last."""
    position = {v: i for i, v in enumerate((*order, *problem.kept))}
    scopes = [tuple(sorted(group.scope, key=position.__getitem__)) for group in problem.groups]
    divide = None if partition is None else lambda place, _: partition[place]
    return bucket_tree(scopes, order, problem.kept, ibound, divide), scopes


def _minibuckets(tree: Tree, ibound: int | None, levelled: bool, by_content: bool) -> MiniBuckets | None:
    """What is divided; None if nothing is."""
    if ibound is None or len(tree.nodes) == len(tree.order):
        return None
    parts = Counter(node.variable for node in tree.nodes)
    return MiniBuckets(ibound, sum(number > 1 for number in parts.values()), len(tree.nodes), levelled, by_content)


def _has_zeros(problem: Problem, group: Group) -> bool:
    return any(problem.tables[m].default == 0 or not problem.tables[m].values.all() for m in group.members)


class _Made(NamedTuple):
    """Steps, the parts of the answer, and the steps whose outputs stay even where others make room."""

    steps: list[ProtoStep]
    outputs: tuple[Output, ...]
    lasting: frozenset[int] = frozenset()


def _proto_steps(
    problem: Problem,
    tree: Tree,
    scopes: Sequence[tuple[int, ...]],
    operands: int,
    levelled: bool,
    weights: Sequence[float] | None,
) -> _Made:
    sizes = problem.model.sizes
    if problem.task in ("mar", "mmap", "joint") or problem.kept:
        passes = Passes(tree, scopes, sizes, problem.kept, operands)
        if problem.task == "joint":
            return _Made(passes.steps, (Output(passes.join_roots(), problem.kept),))
        if problem.task in ("mmap", "mpe"):
            return _Made(passes.steps, tuple(Output(message.source, message.scope) for message in passes.roots()))
        # Where no machine holds a message the plan is for its figures alone, and the way back would take minutes.
        largest = max((math.prod(sizes[v] for v in node.separator) for node in tree.nodes), default=0)
        wanted = problem.wanted if largest <= MOST_BYTES else ()
        marginals = passes.outward(wanted)
        roots = [Output(message.source, message.scope) for message in passes.roots()]
        return _Made(passes.steps, (*roots, *(Output(marginals[v], (v, *problem.kept)) for v in wanted)))
    stays = problem.task == "mpe" or weights is not None
    nodes = range(len(tree.nodes)) if stays else tree.postorder()
    steps, written = build_steps(tree, nodes, scopes, sizes, operands, levelled, weights)
    read = {read.source for step in steps for read in step.reads}
    outputs = tuple(Output(number, ()) for number in range(len(steps)) if number not in read)
    return _Made(steps, outputs, frozenset(written.values() if stays else ()))


class _Sequence(NamedTuple):
    """Steps in sequence, those first that run again least often; ``levels`` of steps, ``factor_levels`` of factors."""

    proto: Sequence[ProtoStep]
    outputs: tuple[Output, ...]
    lasting: frozenset[int]
    fixed: tuple[int, ...]
    levels: tuple[int, ...]
    factor_levels: tuple[int, ...]


def _sequence(problem: Problem, part: Problem, made: _Made, sliced: Sequence[int]) -> _Sequence:
    """Order the sliced variables, and the steps by them."""
    proto, outputs, lasting = made
    if not sliced:
        return _Sequence(proto, outputs, lasting, (), (0,) * len(proto), (0,) * len(part.groups))
    sizes = problem.model.sizes
    work = [step.domain * math.prod(sizes[v] for v in step.axes) for step in proto]
    reads = [step.reads for step in proto]
    fixed = order_slices(dependence(reads, _factor_masks(problem, part, sliced)), work, sizes, sliced)
    masks = _factor_masks(problem, part, fixed)
    levels = [mask.bit_length() for mask in dependence(reads, masks)]
    sequence = sorted(range(len(proto)), key=levels.__getitem__)
    number = {old: new for new, old in enumerate(sequence)}
    moved = [
        proto[old]._replace(
            reads=tuple(r._replace(source=number[r.source]) if r.source >= 0 else r for r in proto[old].reads)
        )
        for old in sequence
    ]
    return _Sequence(
        moved,
        tuple(output._replace(step=number[output.step]) for output in outputs),
        frozenset(number[step] for step in lasting),
        fixed,
        tuple(levels[old] for old in sequence),
        tuple(mask.bit_length() for mask in masks),
    )


def _factor_masks(problem: Problem, part: Problem, sliced: Sequence[int]) -> list[int]:
    """For each factor of a slice, the sliced variables that its tables have: bits by place."""
    bits = {v: 1 << i for i, v in enumerate(sliced)}
    tables = [sum(bits.get(v, 0) for v in table.scope) for table in problem.tables]
    return [functools.reduce(operator.or_, (tables[m] for m in group.members)) for group in part.groups]


def _operand_limits(bound: int, dtype: Dtype) -> list[int]:
    """How many tables a step may add for each narrower type of integers to do."""
    limits = [int(np.iinfo(name).max // bound) for name in INTEGERS[: INTEGERS.index(dtype)]]
    return [min(limit, MAX_OPERANDS) for limit in limits if limit >= _FEWEST_OPERANDS]


def choose_encoding(problem: Problem, operands: int, bound: int, dtype: str | None, weighted: bool = False) -> Encoding:
    """Choose the semiring and the narrowest dtype that is exact, by a proof on the range of the costs.

    Every cost is shifted to be non-negative, so a partial sum at or above any bound on the optimum can never come back
    below it: one number above that bound stands for 'forbidden', and a dtype is wide enough if it holds that number
    once for each table that a step adds.
    """
    if problem.task == "count":
        return Encoding("count", _asked(dtype, SEMIRINGS["count"].dtypes, "counting"), 0)
    if weighted:
        return Encoding("log-sum-exp", _asked(dtype, ("float64",), "bounds on sums"), -math.inf)
    if problem.model.sense == "probability":
        if problem.task in ("pr", "mar", "mmap", "joint"):
            return Encoding("sum-product", _asked(dtype, FLOATS, "sums of probabilities"), 0)
        return Encoding("max-sum", _asked(dtype, FLOATS, "logarithms of probabilities"), -math.inf)
    maximise = problem.model.sense == "max-cost"
    if not problem.model.is_integer or dtype in FLOATS:
        asked = _asked(dtype, FLOATS, "costs that are not integers")
        return Encoding("max-sum", asked, -math.inf) if maximise else Encoding("min-sum", asked, math.inf)
    if dtype is not None and dtype not in INTEGERS:
        raise InputError(f"dtype {dtype} does not fit integer costs; use one of {', '.join(INTEGERS + FLOATS)}")
    return Encoding("min-sum", exact_integer(operands, bound, dtype), bound)


def exact_integer(operands: int, bound: int, dtype: str | None = None) -> Dtype:
    """The narrowest integer type, or the given one, that steps of so many tables cannot leave.

    Args:
        operands: Tables that a step adds at most.
        bound: What stands for 'forbidden', above any sum of allowed costs; these are not negative.
        dtype: Of integers; None for the narrowest.

    Raises:
        InputError: It is not wide enough.
    """
    for name in INTEGERS:
        if dtype in (None, name) and max(operands, 2) * bound <= np.iinfo(name).max:
            return name
    raise InputError(
        f"a step adds {operands} tables whose costs need numbers up to {bound}, more than {dtype or 'int64'} holds "
        "exactly; use dtype float64 (rounded)" + ("" if dtype in (None, "int64") else " or a wider integer")
    )


def _asked(dtype: str | None, allowed: tuple[Dtype, ...], what: str) -> Dtype:
    if dtype is None:
        return allowed[0]
    for name in allowed:
        if dtype == name:
            return name
    raise InputError(f"dtype {dtype} does not fit {what}; use {' or '.join(allowed)}")


def cost_bound(problem: Problem) -> int:
    """A number that can stand for 'forbidden' among integer costs shifted to be non-negative; 1 for other models."""
    if problem.task != "mpe" or not problem.model.is_integer:
        return 1
    ranges = [finite_range(table, problem.model.sense) for table in problem.tables]
    spread = sum(high - low for low, high in filter(None, ranges)) + 1
    limit = problem.model.upper_bound
    if limit is not None and None not in ranges:
        sign = 1 if problem.model.sense == "min-cost" else -1
        best = int(problem.model.constant) + sum(ends[0] if sign == 1 else ends[1] for ends in filter(None, ranges))
        spread = min(spread, math.ceil(sign * (limit - best)))
    return max(spread, 1)


def _lay_out(
    problem: Problem,
    scopes: Sequence[tuple[int, ...]],
    made: _Sequence,
    encoding: Encoding,
    keep: bool,
    machine: Machine,
) -> _Layout:
    itemsize = np.dtype(encoding.dtype).itemsize
    sizes = problem.model.sizes
    members = [group.members for group in problem.groups]
    stays = range(len(made.proto)) if keep else made.lasting
    factors, steps, factor_cells, cells = place(sizes, scopes, members, made.proto, itemsize, stays, made.levels)
    runs = slice_runs([sizes[v] for v in made.fixed])
    seconds = machine.seconds(steps, itemsize, cells * itemsize, [runs[level] for level in made.levels])
    if encoding.semiring == "log-sum-exp":
        seconds = machine.start + EXPONENTIAL * (seconds - machine.start)
    if made.fixed:
        changes = zip(factors, made.factor_levels, strict=True)
        again = sum(runs[level] * (_TABLE_SECONDS + f.span / _CELLS_ENCODED) for f, level in changes if level)
        seconds += again + runs[-1] * _SLICE_SECONDS
    return _Layout(encoding, made.fixed, made.levels, factors, steps, made.outputs, factor_cells, cells, keep, seconds)


def place(
    sizes: Sequence[int],
    scopes: Sequence[tuple[int, ...]],
    members: Sequence[tuple[int, ...]],
    proto: Sequence[ProtoStep],
    itemsize: int,
    stays: Container[int],
    levels: Sequence[int] | None = None,
) -> tuple[tuple[FactorLayout, ...], tuple[Step, ...], int, int]:
    """Give every table its place in the arena; return factors, steps, and the cells of the factors and of everything.

    Args:
        sizes: Domain size of every variable.
        scopes: Of the factors, earliest eliminated variable first.
        members: What was joined to each factor.
        proto: The steps.
        itemsize: Bytes of a cell.
        stays: The steps whose outputs stay when they have been read; others make room for later ones.
        levels: Of the steps, ascending: a message that a step of a higher level reads stays, too. None: all are 0.
    """
    arena = Arena(itemsize)
    factors = []
    for scope, group in zip(scopes, members, strict=True):
        shape = tuple(sizes[v] for v in scope)
        strides, span = table_strides(shape, itemsize)
        factors.append(FactorLayout(group, scope, shape, strides, arena.take(span), span))
    arena.seal()
    factor_cells = arena.height
    readers: list[list[int]] = [[] for _ in proto]
    for number, step in enumerate(proto):
        for source in {read.source for read in step.reads if read.source >= 0}:
            readers[source].append(number)
    spans = [table_strides([sizes[v] for v in step.axes], itemsize, step.rows) for step in proto]
    # What is read off in the end comes first, so that it can be copied as one piece.
    outputs = {number: arena.take(spans[number][1]) for number in range(len(proto)) if not readers[number]}
    steps: list[Step] = []
    for number, step in enumerate(proto):
        strides, span = spans[number]
        offset = outputs[number] if number in outputs else arena.take(span)
        by_variable = dict(zip(step.axes, strides, strict=True))
        steps.append(_step(step, offset, by_variable, span, readers[number], sizes, factors, steps))
        for source in {read.source for read in step.reads if read.source >= 0}:
            again = levels is not None and levels[readers[source][-1]] > levels[source]
            if readers[source][-1] == number and not again and source not in stays:
                arena.give_back(steps[source].out_offset, steps[source].out_span)
    return tuple(factors), tuple(steps), factor_cells, arena.height


def _step(
    proto: ProtoStep,
    offset: int,
    out_strides: dict[int, int],
    span: int,
    readers: Sequence[int],
    sizes: Sequence[int],
    factors: Sequence[FactorLayout],
    steps: Sequence[Step],
) -> Step:
    tile = proto.tile
    axes = tuple(proto.axes[a] for a in (*tile.outer, *tile.mid, *tile.lo))
    operands = []
    for read in proto.reads:
        if read.source >= 0:
            source = steps[read.source]
            at, strides = source.out_offset, dict(zip(source.axes, source.out_strides, strict=True))
        else:
            factor = factors[read.factor]
            at, strides = factor.offset, dict(zip(factor.scope, factor.strides, strict=True))
        operands.append(
            Operand(
                read.factor,
                read.source,
                at,
                strides.get(proto.variable, 0),
                tuple(strides.get(v, 0) for v in axes),
                math.prod(sizes[v] for v in read.scope),
            )
        )
    return Step(
        variable=proto.variable,
        domain=proto.domain,
        axes=axes,
        sizes=tuple(sizes[v] for v in axes),
        out_strides=tuple(out_strides[v] for v in axes),
        outer=len(tile.outer),
        mid=len(tile.mid),
        operands=tuple(operands),
        tables_a=len(tile.tables_a),
        tables_b=len(tile.tables_b),
        out_offset=offset,
        out_span=span,
        readers=tuple(readers),
        weight=proto.weight,
    )
