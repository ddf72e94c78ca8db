"""DPOP of small tables in one process: one plan along the pseudo-tree makes the messages of all agents.

A bucket of DPOP is one of bucket elimination in the order of the pseudo-tree, and integers add up to the same sums in
any sequence. So the optimum, the assignment (ties included) and each message are those of agents that eliminate one
variable after another; their numbers and sizes follow from the tree.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from elimina._core import pass_messages
from elimina.backends import Backend, run_once
from elimina.dcop.agent import Agreement, tree_of_places
from elimina.dcop.dpop import WIDEST, Effort
from elimina.dcop.engine import AT_ONCE, LEAST_WORK, NOTICEABLE, Engine, Shape, bucket_dtype
from elimina.dcop.problem import Problem, Settings, Util, Value, sizes_of_messages
from elimina.dcop.simulator import Figures, Network, Tally
from elimina.errors import InputError
from elimina.inference.bucket import decode_value
from elimina.inference.encode import encode
from elimina.inference.execution import check_value, roots
from elimina.inference.minibucket import result_between
from elimina.model import Model
from elimina.planning.plan import MOST_BYTES
from elimina.planning.planner import kept_plan
from elimina.planning.prepare import allowed_ranges, prepare
from elimina.planning.program import pack
from elimina.result import Result
from elimina.tasks import INTEGERS
from elimina.tree import Node, Tree

_ITEM_SIZES = {dtype: np.dtype(dtype).itemsize for dtype in INTEGERS}
_TYPES = {dtype: frozenset((dtype,)) for dtype in INTEGERS}
_NO_EFFORT = Effort()


class Together(NamedTuple):
    """The answer of agents whose variables were eliminated together.

    Attributes:
        result: The answer, without figures.
        tree: The pseudo-tree.
        efforts: Work of eliminating each variable.
        figures: Clocks and messages of the run.
    """

    result: Result
    tree: Tree
    efforts: Sequence[Effort]
    figures: Figures


class _Bucket(NamedTuple):
    """A variable's elimination: its work, and the bytes of the messages to and from its parent."""

    effort: Effort
    util: int
    value: int


def solve_together(
    problem: Problem,
    settings: Settings,
    agreement: Agreement,
    network: Network,
    engine: Engine,
    watch: Callable[[int], None],
) -> Together | None:
    """Solve a problem whose tables are small on average.

    Args:
        problem: Problem whose variables belong to agents.
        settings: Settings that all agents share.
        agreement: The agents' pseudo-tree.
        network: A reliable network.
        engine: Engine of the agents.
        watch: Called now and then with 0 operations.

    Returns:
        None where each agent has to eliminate its own variables: costs are floats, nothing is allowed, messages are
        bounded or filtered, agents have memory limits, or tables are not small.
    """
    if not settings.is_integer or (settings.ibound, settings.memory) != (None, None):
        return None
    tree = tree_of_places(problem, agreement.places)
    sizes = problem.model.sizes
    cells = [math.prod([sizes[v] for v in (node.variable, *node.separator)]) for node in tree.nodes]
    if max(cells, default=0) >= LEAST_WORK or sum(cells) > AT_ONCE * len(cells):
        return None
    watch(0)
    started = time.perf_counter()
    try:
        buckets = _buckets(problem, tree, cells, engine)
        result = None if buckets is None else _optimum(problem, tree, engine.host)
    except InputError:
        # Agents say whose costs are too far apart.
        return None
    if buckets is None or result is None:
        return None
    watch(0)
    figures = _figures(problem, agreement, network, buckets, time.perf_counter() - started, watch)
    return Together(result, tree, [bucket.effort for bucket in buckets.values()], figures)


def _optimum(problem: Problem, tree: Tree, backend: Backend) -> Result | None:
    """Eliminate all variables in the order of the pseudo-tree; None if nothing is allowed, or there is no memory."""
    model = problem.model
    prepared = prepare(model, "mpe", {})
    free = set(prepared.free)
    plan = kept_plan(prepared, [v for v in tree.order if v in free], backend.machine, MOST_BYTES, hasty=True)
    if plan.peak_bytes > NOTICEABLE and plan.peak_bytes > backend.memory():
        return None
    encoded = encode(prepared, plan)
    run = run_once(backend, pack(plan, len(model.variables)), encoded.arena)
    total = decode_value(prepared, plan, encoded, roots(plan, run))
    if total is None or model.is_beyond_bound(total):
        return None
    assert run.assignment is not None
    values = run.assignment.tolist()
    chosen = prepared.complete(range(len(values)), values)
    return exact_answer(model, total, chosen, prepared.score(chosen))


def exact_answer(model: Model, total: int | float, chosen: Sequence[int], score: int | float) -> Result:
    """Return the answer of integer costs.

    Args:
        model: Model of the problem.
        total: The optimum, in the model's units.
        chosen: A value for each variable.
        score: The model's value of these.

    Raises:
        InternalError: The assignment is not worth the optimum.
    """
    result = result_between(model, total, chosen, score=score).replace(task="dcop")
    check_value("int64", total, math.inf if result.value is None else result.value, [])
    return result


def _buckets(problem: Problem, tree: Tree, cells: Sequence[int], engine: Engine) -> dict[int, _Bucket] | None:
    """Return each variable's elimination; None if a table allows nothing, or costs are far apart.

    Args:
        problem: Problem whose variables belong to agents.
        tree: The pseudo-tree.
        cells: Combinations of each node's variables.
        engine: Engine of the agents.
    """
    model = problem.model
    tables = [table for table in model.factors if table.scope]
    ranges = allowed_ranges(model.factors, model.sense)
    if None in ranges:
        return None
    spreads = [ends[1] - ends[0] for table, ends in zip(model.factors, ranges, strict=True) if table.scope and ends]
    scopes = [frozenset(table.scope) for table in tables]
    sizes = model.sizes
    buckets: dict[int, _Bucket] = {}
    sent: list[tuple[int | float, int]] = []
    for node, combinations in zip(tree.nodes, cells, strict=True):
        variable, separator, _, factors, children = node
        spread = sum([spreads[f] for f in factors])
        if spread >= WIDEST:
            return None
        held = 0
        for child in children:
            spread += sent[child][0]
            held += sent[child][1]
        count = len({scopes[f] for f in factors}) + len(children)
        dtype = bucket_dtype(count, spread)
        message, width = combinations // sizes[variable], len(separator)
        size = message * _ITEM_SIZES[dtype]
        sent.append((spread, size))
        effort = _NO_EFFORT
        if count:
            shape = partial(_shape, tree, node, [tables[f].scope for f in factors], sizes)
            operations, most = engine.effort(combinations, count, dtype, shape)
            effort = Effort(operations, most + held, width, message, 1, _TYPES[dtype])
        buckets[variable] = _Bucket(effort, *sizes_of_messages(size, width))
    return buckets


def _shape(tree: Tree, node: Node, own: Sequence[tuple[int, ...]], sizes: Sequence[int]) -> Shape:
    """Return the shape of a bucket whose own tables have these scopes."""
    scope = (node.variable, *node.separator)
    place = {v: number for number, v in enumerate(scope)}
    scopes = dict.fromkeys([tuple(sorted([place[v] for v in scope])) for scope in own])
    arrived = [tuple([place[v] for v in tree.nodes[child].separator]) for child in reversed(node.children)]
    return tuple([sizes[v] for v in scope]), (*scopes, *arrived)


def _figures(
    problem: Problem,
    agreement: Agreement,
    network: Network,
    buckets: Mapping[int, _Bucket],
    seconds: float,
    watch: Callable[[int], None],
) -> Figures:
    """Count the messages of both passes, and let the core deliver them for the clocks.

    Args:
        problem: Problem whose variables belong to agents.
        agreement: The agents' pseudo-tree, and their clocks.
        network: A reliable network.
        buckets: Each variable's elimination.
        seconds: Time that all of them took, of which each has a share by its operations.
        watch: Called now and then with 0 operations.
    """
    owners, places, tally = problem.owners, agreement.places, Tally()
    tally.add_agreement(agreement)
    for variable, place in enumerate(places):
        if place.parent >= 0 and owners[place.parent] != owners[variable]:
            tally.add(Util, buckets[variable].util)
            tally.add(Value, buckets[variable].value)
    operations = [buckets[variable].effort.operations for variable in range(len(places))]
    pace = seconds / max(1, sum(operations))
    clock, longest = pass_messages(places, owners, agreement.clocks, operations, pace, *network.deliveries, watch)
    return tally.figures(clock, longest, 0)
