"""A plan for a single bucket: the work of an agent on its tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from elimina._core import plan_steps
from elimina.errors import InputError
from elimina.planning.compiled import place_steps
from elimina.planning.estimate import Machine
from elimina.planning.factors import Factors
from elimina.planning.plan import Output, Plan
from elimina.planning.planner import exact_integer
from elimina.planning.record import MAX_OPERANDS
from elimina.planning.steps import Steps
from elimina.semiring import LARGEST, Dtype
from elimina.tree import plan_tree


def bucket_dtype(tables: int, spread: int | float) -> Dtype:
    """Return the narrowest exact type of integer costs, which start at 0; float64 for floats.

    Args:
        tables: Number of tables.
        spread: Their largest allowed sum.

    Raises:
        InputError: No integers are wide enough, or floats may add up to infinity.
    """
    if isinstance(spread, int):
        return exact_integer(_operands(tables), spread + 1)
    if math.isinf(spread):
        raise InputError("costs may add up to more than a float can hold; scale them down, forbid by infinity")
    return "float64"


def forbidden_in(tables: int, dtype: Dtype) -> int | float:
    """Return the number for 'forbidden': the largest integer that so many tables may add up, or infinity."""
    return LARGEST[dtype] // _operands(tables) if dtype in LARGEST else math.inf


def _operands(tables: int) -> int:
    return max(2, min(tables, MAX_OPERANDS))


def plan_bucket(
    sizes: Sequence[int], scopes: Sequence[tuple[int, ...]], dtype: Dtype, machine: Machine, memory: int
) -> Plan:
    """Plan the elimination of variable 0 from tables; their places in the arena are those of a plan's factors.

    The integer that stands for 'forbidden' is the largest one that the dtype allows, so that plans of one shape are
    equal whatever their costs.

    Args:
        sizes: Domain sizes of the eliminated variable and of the message's, the one eliminated next first.
        scopes: Scopes of the tables, ascending: variable 0 is in each, and each other variable in one.
        dtype: Number type from ``bucket_dtype``.
        machine: The device that will run it.
        memory: Bytes that the plan may use there.
    """
    separator = tuple(range(1, len(sizes)))
    tree = plan_tree(scopes, sizes, (0,), separator)
    made = plan_steps(tree, "lasting", MAX_OPERANDS, False, np.zeros(0), np.zeros(0, dtype=np.int32))
    itemsize = np.dtype(dtype).itemsize
    placed = place_steps(made, itemsize, True, machine)
    steps, cells = Steps.of(placed), int(placed.arena_cells)
    return Plan(
        task="mpe",
        semiring="min-sum",
        dtype=dtype,
        forbidden=forbidden_in(len(scopes), dtype),
        order=(0,),
        kept=separator,
        width=len(separator),
        factors=Factors.of([(number,) for number in range(len(scopes))], sizes, tree, placed),
        steps=steps,
        outputs=(Output(len(steps) - 1, separator),),
        factor_cells=int(placed.factor_cells),
        arena_cells=cells,
        keep=True,
        decode=False,
        device=machine.name,
        memory_limit=memory,
        bytes=machine.tiers(cells * itemsize, 0),
        seconds=machine.start + cells * itemsize / machine.fresh + placed.seconds,
        largest_table=int(placed.largest),
        work=int(placed.work),
        operations=int(placed.operations),
    )
