"""Calls of the compiled planner (``core/plan``)."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from elimina._core import PlannedLayout, PlannedSteps, PlannedTree
from elimina.planning.estimate import Machine
from elimina.tree import Node, Partition, Tree


def plan_tree(
    scopes: Collection[Sequence[int]],
    sizes: Sequence[int],
    order: Sequence[int],
    kept: Sequence[int] = (),
    ibound: int | None = None,
    partition: Partition | None = None,
) -> PlannedTree:
    """Eliminate symbolically; see ``tree.bucket_tree`` for the arguments.

    Args:
        scopes: Non-empty scopes of the factors.
        sizes: Domain size of every variable of the model.
        order: Variables in elimination order.
        kept: Variables that stay.
        ibound: Largest number of variables of a message; None: buckets stay whole.
        partition: Mini-buckets of each bucket; None: by scopes.
    """
    starts = np.zeros(len(scopes) + 1, dtype=np.int64)
    np.cumsum([len(scope) for scope in scopes], out=starts[1:])
    members = np.fromiter(itertools.chain.from_iterable(scopes), np.int32, int(starts[-1]))
    along, rest = np.array(order, dtype=np.int32), np.array(kept, dtype=np.int32)
    return PlannedTree(np.array(sizes, dtype=np.int64), starts, members, along, rest, ibound, partition)


def tree_of(planned: PlannedTree, order: Sequence[int]) -> Tree:
    """Return a compiled tree as named tuples."""
    columns = (rows_of(planned.separators), planned.parents.tolist(), rows_of(planned.factors))
    nodes = zip(planned.variables.tolist(), *columns, rows_of(planned.children), strict=True)
    return Tree(tuple(order), tuple(itertools.starmap(Node, nodes)))


def rows_of(lists: tuple[NDArray[np.int64], NDArray[np.int32]]) -> list[tuple[int, ...]]:
    """Return lists that the core gives as starts and items, one after another."""
    items = lists[1].tolist()
    return [tuple(items[a:b]) for a, b in itertools.pairwise(lists[0].tolist())]


def place_steps(
    steps: PlannedSteps,
    itemsize: int,
    keep: bool,
    machine: Machine,
    levels: Sequence[int] = (),
    runs: Sequence[int] = (1,),
    most_words: int = 1 << 62,
) -> PlannedLayout:
    """Lay the steps' tables out in memory.

    Args:
        steps: Steps of a plan.
        itemsize: Bytes of a cell.
        keep: True if outputs stay after they have been read.
        machine: Device whose cost model estimates the time.
        levels: Level of each step, ascending (``Slicing.levels``); empty: all are 0.
        runs: How often the steps of each level run.
        most_words: Words of records; a layout that needs more has figures alone.
    """
    own, times = np.array(levels, dtype=np.int32), np.array(runs, dtype=np.float64)
    return steps.place(itemsize, keep, own, times, machine.bandwidth, machine.combinations, machine.step, most_words)
