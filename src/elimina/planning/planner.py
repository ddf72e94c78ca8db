"""Making plans."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from elimina.errors import InputError
from elimina.planning.estimate import Machine
from elimina.planning.incumbent import incumbent_cost
from elimina.planning.layout import Arena, table_strides
from elimina.planning.plan import MOST_BYTES, FactorLayout, Operand, Output, Plan, Step
from elimina.planning.prepare import Problem, finite_range
from elimina.planning.propagation import Passes
from elimina.planning.structure import MAX_OPERANDS, ProtoStep, build_steps
from elimina.semiring import FLOATS, INTEGERS, SEMIRINGS, Dtype
from elimina.tree import Tree, bucket_tree, central_order


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
    factors: tuple[FactorLayout, ...]
    steps: tuple[Step, ...]
    outputs: tuple[Output, ...]
    factor_cells: int
    arena_cells: int
    keep: bool
    seconds: float


_WORTH_A_SOLUTION = 0.5
"""Estimated seconds from which the search for a solution that allows a narrower dtype pays."""

_HOPELESS = 1e9
"""Estimated seconds from which a plan is for its figures alone."""

_FEWEST_OPERANDS = 3
"""Steps that add fewer tables are not worth a narrower dtype."""


def make_plan(problem: Problem, order: Sequence[int], machine: Machine, memory: int, dtype: str | None = None) -> Plan:
    """Lay out a whole elimination.

    Args:
        problem: What has to be eliminated.
        order: The free variables in elimination order.
        machine: The device that will run it, as its cost model sees it.
        memory: Bytes that the plan may use there.
        dtype: Override of the arena's dtype.

    Raises:
        InputError: The dtype does not fit the task or cannot hold the costs exactly.
    """
    tree, scopes = _tree(problem, order)
    if problem.task == "mar":
        central = central_order(tree, problem.model.sizes)
        tree, scopes = _tree(problem, [v for v in central if v not in problem.kept])
    decode = problem.task == "mpe"

    @functools.cache
    def steps_of(operands: int) -> tuple[list[ProtoStep], tuple[Output, ...]]:
        return _proto_steps(problem, tree, scopes, operands, decode)

    def lay_out(bound: int, operands: int = MAX_OPERANDS, keep: bool = decode) -> _Layout:
        proto, outputs = steps_of(operands)
        encoding = choose_encoding(problem, max((len(step.reads) for step in proto), default=0), bound, dtype)
        return _lay_out(problem, scopes, proto, outputs, encoding, keep, machine)

    bound = cost_bound(problem)
    # A batch's cases change from run to run: what is kept is of no use again, but lets a GPU's steps run in any order.
    reuse = problem.task != "mar" or (bool(problem.kept) and machine.name == "cpu")
    chosen = lay_out(bound, keep=decode or not reuse)
    if problem.task == "mar" and chosen.keep and _tiers(chosen, machine)[machine.home] > memory:
        chosen = lay_out(bound)
    if dtype is None and chosen.encoding.dtype in INTEGERS[1:] and chosen.seconds < _HOPELESS:
        too_large = chosen.arena_cells * np.dtype(chosen.encoding.dtype).itemsize > memory
        if too_large or chosen.seconds - machine.start > _WORTH_A_SOLUTION:
            cost = incumbent_cost(problem)
            bound = bound if cost is None else min(bound, cost + 1)
        others = [lay_out(bound, operands) for operands in _operand_limits(bound, chosen.encoding.dtype)]
        chosen = min([chosen, *others], key=lambda layout: (layout.seconds, INTEGERS.index(layout.encoding.dtype)))
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
    )


def _tiers(layout: _Layout, machine: Machine) -> dict[str, int]:
    itemsize = np.dtype(layout.encoding.dtype).itemsize
    return machine.tiers(layout.arena_cells * itemsize, layout.factor_cells * itemsize)


def _tree(problem: Problem, order: Sequence[int]) -> tuple[Tree, list[tuple[int, ...]]]:
    """The bucket tree of an order, and the groups' scopes sorted by it, kept variables last."""
    position = {v: i for i, v in enumerate((*order, *problem.kept))}
    scopes = [tuple(sorted(group.scope, key=position.__getitem__)) for group in problem.groups]
    return bucket_tree(scopes, order, problem.kept), scopes


def _proto_steps(
    problem: Problem, tree: Tree, scopes: Sequence[tuple[int, ...]], operands: int, decode: bool
) -> tuple[list[ProtoStep], tuple[Output, ...]]:
    sizes = problem.model.sizes
    if problem.task in ("mar", "joint"):
        passes = Passes(tree, scopes, sizes, problem.kept, operands)
        if problem.task == "joint":
            return passes.steps, (Output(passes.join_roots(), problem.kept),)
        # Where no machine holds a message the plan is for its figures alone, and the way back would take minutes.
        largest = max((math.prod(sizes[v] for v in node.separator) for node in tree.nodes), default=0)
        wanted = problem.wanted if largest <= MOST_BYTES else ()
        marginals = passes.outward(wanted)
        outputs = [Output(message.source, message.scope) for message in passes.roots()]
        return passes.steps, (*outputs, *(Output(marginals[v], (v, *problem.kept)) for v in wanted))
    nodes = range(len(tree.nodes)) if decode else tree.postorder()
    steps = build_steps(tree, nodes, scopes, sizes, operands)
    read = {read.source for step in steps for read in step.reads}
    return steps, tuple(Output(number, ()) for number in range(len(steps)) if number not in read)


def _operand_limits(bound: int, dtype: Dtype) -> list[int]:
    """How many tables a step may add for each narrower type of integers to do."""
    limits = [int(np.iinfo(name).max // bound) for name in INTEGERS[: INTEGERS.index(dtype)]]
    return [min(limit, MAX_OPERANDS) for limit in limits if limit >= _FEWEST_OPERANDS]


def choose_encoding(problem: Problem, operands: int, bound: int, dtype: str | None) -> Encoding:
    """Choose the semiring and the narrowest dtype that is exact, by a proof on the range of the costs.

    Every cost is shifted to be non-negative, so a partial sum at or above any bound on the optimum can never come back
    below it: one number above that bound stands for 'forbidden', and a dtype is wide enough if it holds that number
    once for each table that a step adds.
    """
    if problem.task == "count":
        return Encoding("count", _asked(dtype, SEMIRINGS["count"].dtypes, "counting"), 0)
    if problem.model.sense == "probability":
        if problem.task in ("pr", "mar", "joint"):
            return Encoding("sum-product", _asked(dtype, FLOATS, "sums of probabilities"), 0)
        return Encoding("max-sum", _asked(dtype, FLOATS, "logarithms of probabilities"), -math.inf)
    maximise = problem.model.sense == "max-cost"
    if not problem.model.is_integer or dtype in FLOATS:
        asked = _asked(dtype, FLOATS, "costs that are not integers")
        return Encoding("max-sum", asked, -math.inf) if maximise else Encoding("min-sum", asked, math.inf)
    for name in INTEGERS:
        if max(operands, 2) * bound <= np.iinfo(name).max and dtype in (None, name):
            return Encoding("min-sum", name, bound)
    if dtype is not None and dtype not in INTEGERS:
        raise InputError(f"dtype {dtype} does not fit integer costs; use one of {', '.join(INTEGERS + FLOATS)}")
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
    if limit is not None and problem.model.sense == "min-cost" and None not in ranges:
        least = int(problem.model.constant) + sum(low for low, _ in filter(None, ranges))
        spread = min(spread, math.ceil(limit) - least)
    return max(spread, 1)


def _lay_out(
    problem: Problem,
    scopes: Sequence[tuple[int, ...]],
    proto: Sequence[ProtoStep],
    outputs: tuple[Output, ...],
    encoding: Encoding,
    keep: bool,
    machine: Machine,
) -> _Layout:
    itemsize = np.dtype(encoding.dtype).itemsize
    members = [group.members for group in problem.groups]
    factors, steps, factor_cells, cells = place(problem.model.sizes, scopes, members, proto, itemsize, keep)
    seconds = machine.seconds(steps, itemsize, cells * itemsize)
    return _Layout(encoding, factors, steps, outputs, factor_cells, cells, keep, seconds)


def place(
    sizes: Sequence[int],
    scopes: Sequence[tuple[int, ...]],
    members: Sequence[tuple[int, ...]],
    proto: Sequence[ProtoStep],
    itemsize: int,
    keep: bool,
) -> tuple[tuple[FactorLayout, ...], tuple[Step, ...], int, int]:
    """Give every table its place in the arena; return factors, steps, and the cells of the factors and of everything.

    Args:
        sizes: Domain size of every variable.
        scopes: Of the factors, earliest eliminated variable first.
        members: What was joined to each factor.
        proto: The steps.
        itemsize: Bytes of a cell.
        keep: Whether messages stay when they have been read; else they make room for later ones.
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
        if not keep:
            for source in {read.source for read in step.reads if read.source >= 0}:
                if readers[source][-1] == number:
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
    )
