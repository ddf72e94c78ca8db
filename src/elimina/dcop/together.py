"""DPOP of small tables in one process: one plan along the pseudo-tree makes the messages of all agents.

A bucket of DPOP is one of bucket elimination in the order of the pseudo-tree, and integers add up to the same sums in
any sequence. So the optimum, the assignment (ties included) and each message are those of agents that eliminate one
variable after another. The numbers and sizes of the messages follow from the tree.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from elimina._core import AgentWork, PlannedTree, pass_messages, work_of_agents
from elimina.backends.protocols import Backend, run_once
from elimina.dcop.agent import Agreement, planned_tree
from elimina.dcop.dpop import DTYPES, MAX_SPREAD, Efforts
from elimina.dcop.engine import (
    JOINED_CELL_BYTES,
    MAX_JOINED_COMBINATIONS,
    MIN_CHECKED_BYTES,
    MIN_GPU_COMBINATIONS,
    Engine,
    Shape,
)
from elimina.dcop.network_settings import Network, delivery_settings
from elimina.dcop.problem import Problem, Settings, Util, Value, sizes_of_messages
from elimina.dcop.simulator import Figures, Tally
from elimina.errors import InputError
from elimina.methods.optimum import decode_value
from elimina.model.model import Model
from elimina.planning.plan import MAX_BYTES
from elimina.planning.planner import Elimination, kept_plan
from elimina.planning.program import pack
from elimina.planning.record import MAX_OPERANDS
from elimina.planning.tree import Node, Tree, tree_of
from elimina.problem.preparation import prepare
from elimina.problem.semirings import INTEGERS, LARGEST
from elimina.result import Result
from elimina.running.bounded_results import result_between
from elimina.running.encoding import encode
from elimina.running.rounding import check_value
from elimina.running.scales import roots

_TYPES = [(LARGEST[dtype], np.dtype(dtype).itemsize) for dtype in INTEGERS]
_FIXED, _OF_ONE = sizes_of_messages(0, 0), sizes_of_messages(0, 1)
_UTIL, _VALUE = [(fixed, of_one - fixed) for fixed, of_one in zip(_FIXED, _OF_ONE, strict=True)]
"""Bytes of a message besides those of cells and variables, and bytes for each variable."""


class Together(NamedTuple):
    """The answer of agents after eliminating their variables together.

    Attributes:
        result: The answer, without figures.
        tree: The pseudo-tree.
        efforts: Work of eliminating all variables.
        figures: Clocks and messages of the run.
    """

    result: Result
    tree: PlannedTree
    efforts: Efforts
    figures: Figures


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
        watch: Function to call now and then, with 0 operations, to check the time.

    Returns:
        The answer; None where each agent has to eliminate its own variables: costs are floats, nothing is allowed,
        messages are bounded or filtered, agents have memory limits, or tables are not small.
    """
    if not settings.is_integer or (settings.ibound, settings.memory) != (None, None):
        return None
    model, (listed, traversals, _, _) = problem.model, agreement
    tree = planned_tree(problem, listed, traversals)
    started = time.perf_counter()
    work = work_of_agents(
        tree, listed, model.sense, _TYPES, MAX_OPERANDS, MAX_SPREAD, MAX_JOINED_COMBINATIONS, JOINED_CELL_BYTES
    )
    if work is None:
        return None
    total = work.total
    if total.most_combinations >= MIN_GPU_COMBINATIONS or total.combinations > MAX_JOINED_COMBINATIONS * len(
        traversals
    ):
        return None
    watch(0)
    if unplanned := work.unplanned:
        _plan_work(work, unplanned, model, tree_of(tree), engine)
    try:
        result = _optimum(model, tree.order, engine.host)
    except InputError:
        # The caller then lets each agent eliminate its own variables. The error recurs there, with the variable's name.
        return None
    if result is None:
        return None
    watch(0)
    figures = _figures(problem, agreement, network, work, time.perf_counter() - started, watch)
    total = work.total
    dtype = None if total.type < 0 else DTYPES[total.type]
    efforts = Efforts(total.cells, total.operations, total.bytes, 0, len(traversals), dtype)
    return Together(result, tree, efforts, figures)


def _optimum(model: Model, order: Sequence[int], backend: Backend) -> Result | None:
    """Eliminate all variables in the order of the pseudo-tree; None if nothing is allowed, or there is no memory."""
    prepared = prepare(model, "mpe", {})
    free = set(prepared.free)
    plan = kept_plan(Elimination(prepared, [v for v in order if v in free], backend.machine, MAX_BYTES, is_hasty=True))
    if plan.peak_bytes > MIN_CHECKED_BYTES and plan.peak_bytes > backend.memory():
        return None
    encoded = encode(prepared, plan, threads=backend.threads)
    run = run_once(backend, pack(plan, len(model.variables)), encoded.arena)
    total = decode_value(prepared, plan, encoded, roots(plan, run))
    if total is None or model.is_beyond_bound(total):
        return None
    assert run.assignment is not None
    values = run.assignment.tolist()
    chosen = prepared.complete(range(len(values)), values)
    return exact_answer(model, total, chosen, prepared.model.score(chosen))


def exact_answer(model: Model, total: int | float, chosen: Sequence[int], score: int | float) -> Result:
    """Return the answer of integer costs.

    Args:
        model: Model of the problem.
        total: The optimum, in the model's units.
        chosen: A value for each variable.
        score: The model's value of the chosen values.

    Raises:
        InternalError: The value of the assignment is not the optimum.
    """
    result = result_between(model, total, chosen, score=score).replace(task="dcop")
    check_value("int64", total, math.inf if result.value is None else result.value, [])
    return result


def _plan_work(work: AgentWork, unplanned: Sequence[tuple[int, int]], model: Model, tree: Tree, engine: Engine) -> None:
    """Set the operations and bytes of eliminations for which agents make plans.

    Args:
        work: Work of all agents.
        unplanned: Nodes of the tree without these figures, each with the index of its message's number type.
        model: Model of the problem.
        tree: The pseudo-tree.
        engine: Engine of the agents.
    """
    scopes = [table.scope for table in model.factors if table.scope]
    for number, dtype in unplanned:
        node = tree.nodes[number]
        shape = _shape(tree, node, [scopes[f] for f in node.factors], model.sizes)
        work.plan(number, *engine.planned_effort(shape, DTYPES[dtype]))


def _shape(tree: Tree, node: Node, own_scopes: Sequence[tuple[int, ...]], sizes: Sequence[int]) -> Shape:
    """Return the shape of a bucket whose own tables have these scopes."""
    scope = (node.variable, *node.separator)
    number_of = {v: number for number, v in enumerate(scope)}
    scopes = dict.fromkeys([tuple(sorted([number_of[v] for v in scope])) for scope in own_scopes])
    arrived = [tuple([number_of[v] for v in tree.nodes[child].separator]) for child in reversed(node.children)]
    return tuple([sizes[v] for v in scope]), (*scopes, *arrived)


def _figures(
    problem: Problem,
    agreement: Agreement,
    network: Network,
    work: AgentWork,
    seconds: float,
    watch: Callable[[int], None],
) -> Figures:
    """Count the messages of both passes, and let the core deliver them for the clocks.

    Args:
        problem: Problem whose variables belong to agents.
        agreement: The agents' pseudo-tree, and their clocks.
        network: A reliable network.
        work: Work of the agents.
        seconds: Time of all eliminations, divided among them by operations.
        watch: Function to call now and then, with 0 operations, to check the time.
    """
    owners, traversals, tally = problem.owners, agreement.traversals, Tally()
    tally.add_agreement(agreement)
    mail = work.mail(traversals, owners, _UTIL, _VALUE)
    tally.add_all(Util, mail.messages, mail.util_bytes, mail.largest_bytes)
    tally.add_all(Value, mail.messages, mail.value_bytes, mail.largest_bytes)
    chain = pass_messages(traversals, owners, agreement.clocks, work, seconds, *delivery_settings(network), watch)
    return tally.figures(chain.seconds, chain.operations, 0)
