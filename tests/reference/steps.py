"""Single buckets with their tables' axes in every order, and what NumPy's ``einsum`` makes of them.

A *form* is a bucket: sizes, the scopes of its tables, the split of its output's axes, and so on, as plain values. All
orders of its tables' axes have the same answer, which is computed once.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.planning.packed_steps import Steps
from elimina.planning.program import Program
from elimina.planning.step import JOIN, Operand, Step
from elimina.problem.semirings import SEMIRINGS
from tests.reference.program import _view, scale

Form = dict[str, Any]
"""A bucket:

- ``semiring``, ``dtype``, ``parameter``, ``weight``: of the program and the step;
- ``sizes``: of the variables; variable 0 is eliminated, the others are the output's axes, slow to fast;
- ``joins``: whether nothing is eliminated, and variable 0 has one value;
- ``outer``, ``mid``: numbers of slow and middle axes;
- ``scopes``: variables of each table;
- ``messages``: whether each table is written by a step of its own;
- ``padded``: whether each table, and at last the output, has a gap behind each row;
- ``orders``: for each copy of the step, the order of each table's axes, slow to fast;
- ``fixed``: values of variables, a pair each, that a run is restricted to at the end;
- ``seed``: of the values.
"""

SIZES = (1, 2, 2, 2, 3, 4, 4, 5, 6, 8, 7, 9, 12, 16, 17, 24, 31, 32, 40)
"""Sizes of variables: small ones, numbers of lanes of vectors and panels, and what lies beside these."""

LONG_SIZES = (128, 131, 250, 1000, 2048)
"""Sizes of eliminated variables that a GPU may divide."""

MOST_WORK = 1 << 18
"""Combinations of one step."""

MOST_CASE_WORK = 1 << 21
"""Combinations of all copies of a step."""

MODULUS = 2147483629


class Made(NamedTuple):
    """The program of a form.

    Attributes:
        program: Copies of the step, one for each entry of ``orders``, after the steps that write messages.
        factors: Cells of the tables.
        steps: Numbers of the copies.
    """

    program: Program
    factors: NDArray[np.generic]
    steps: list[int]


def draw_form(rng: random.Random, semiring: str, dtype: str, most_orders: int = 24, large: bool = False) -> Form:
    """Return a random bucket with some of its orders, every order of every table as far as ``most_orders`` allows.

    Args:
        rng: Source of the form.
        semiring: Semiring of the step.
        dtype: Type of its cells.
        most_orders: Copies of the step at most.
        large: True for a matrix product that a device's library takes.
    """
    is_product = large or rng.random() < (0.6 if semiring == "sum-product" else 0.2)
    if is_product:
        sizes, outer, mid = _draw_product(rng, large)
    else:
        domains = LONG_SIZES if rng.random() < 0.1 else SIZES
        while (
            math.prod(sizes := [rng.choice(domains), *(rng.choice(SIZES) for _ in range(rng.randint(1, 4)))])
            > MOST_WORK
        ):
            pass
        outer, end = sorted(rng.randint(0, len(sizes) - 1) for _ in range(2))
        mid = end - outer
    count = len(sizes) - 1
    axes = range(1, 1 + count)
    joins = not is_product and rng.random() < 0.08
    if joins:
        sizes[0] = 1
    if is_product:
        scopes = [[0, *axes[: outer + mid]], [0, *axes[:outer], *axes[outer + mid :]]]
    else:
        share = rng.choice((0.5, 0.8, 1.0))
        scopes = [
            [v for v in range(1 + count) if rng.random() < share] for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 3)))
        ]
    if joins:
        scopes = [[v for v in scope if v] for scope in scopes]
    orders = _some_orders(rng, scopes, min(most_orders, max(1, MOST_CASE_WORK // math.prod(sizes))))
    parameter: float = 0
    if semiring in ("min-sum", "min-max"):
        parameter = 1500 if dtype.startswith("int") else rng.choice((1e6, math.inf))
    elif semiring == "count":
        parameter = rng.choice((0, MODULUS))
    fixed = [[v, rng.randrange(size)] for v, size in enumerate(sizes) if rng.random() < 0.4]
    return {
        "semiring": semiring,
        "dtype": dtype,
        "parameter": parameter,
        "weight": rng.choice((1.0, 1.0, 0.5, 0.0, 1.5, -0.5)) if semiring == "log-sum-exp" and not joins else 1.0,
        "sizes": sizes,
        "joins": joins,
        "outer": outer,
        "mid": mid,
        "scopes": scopes,
        "messages": [bool(scope) and rng.random() < 0.25 for scope in scopes],
        "padded": [rng.random() < 0.25 for _ in range(len(scopes) + 1)],
        "orders": orders,
        "fixed": fixed if rng.random() < 0.3 and not (joins and fixed and fixed[0][0] == 0) else [],
        "seed": rng.randrange(2**32),
    }


def _draw_product(rng: random.Random, large: bool) -> tuple[list[int], int, int]:
    """Return the sizes of a matrix product that is worth its path, and its numbers of slow and middle axes.

    Sides are made of up to three axes, so that panels of them are made of several axes, too.
    """
    least, most = (1 << 20, 1 << 22) if large else (1 << 16, MOST_WORK)
    while True:
        depth = rng.choice((48, 50, 64) if large else (4, 5, 8, 17, 32, 40, 200))
        batch = [rng.choice((1, 2, 3)) for _ in range(rng.choice((0, 0, 0, 1)))]
        sides = [[rng.choice(SIZES) for _ in range(rng.randint(1, 3))] for _ in range(2)]
        sizes = [depth, *batch, *sides[0], *sides[1]]
        if min(map(math.prod, sides)) >= (32 if large else 8) and least <= math.prod(sizes) <= most:
            return sizes, len(batch), len(sides[0])


def _some_orders(rng: random.Random, scopes: Sequence[Sequence[int]], most: int) -> list[list[list[int]]]:
    """Return all orders of each table, side by side; a window of them if there are more than ``most``."""
    everything = [list(itertools.permutations(scope)) for scope in scopes]
    firsts = [rng.randrange(len(orders)) for orders in everything]
    count = min(most, max(map(len, everything), default=1))
    return [
        [list(orders[(first + n) % len(orders)]) for orders, first in zip(everything, firsts, strict=True)]
        for n in range(count)
    ]


def tables_of(form: Form) -> list[NDArray[np.generic]]:
    """Return the values of the tables, an axis for each variable of the scope in ascending order."""
    draw = np.random.default_rng(form["seed"])
    dtype, semiring = np.dtype(form["dtype"]), form["semiring"]
    made = []
    for scope in form["scopes"]:
        shape = [form["sizes"][v] for v in sorted(scope)]
        if semiring in ("min-sum", "min-max"):
            least = 0 if semiring == "min-sum" else -100
            values = draw.integers(least, 100, shape) if dtype.kind == "i" else draw.integers(-800, 800, shape) / 8
            values = np.where(draw.random(shape) < 0.1, form["parameter"], values)
        elif semiring == "count":
            values = draw.integers(0, 1 << 18, shape) * (draw.random(shape) > 0.2)
        else:
            values = np.where(draw.random(shape) < 0.2, 0.0, draw.random(shape) + 0.5) * float(draw.choice([1, 300]))
            if semiring == "log-sum-exp":
                with np.errstate(divide="ignore"):
                    values = np.log(values)
        made.append(np.asarray(values).astype(dtype))
    return made


def strides_of(order: Sequence[int], sizes: Sequence[int], padded_before: int | None) -> tuple[list[int], int]:
    """Return the strides of axes, slow to fast, and the cells they take; rows from an axis on end at whole vectors."""
    strides, span = [0] * len(order), 1
    for axis in reversed(range(len(order))):
        if axis + 1 == padded_before:
            span = -(-span // 8) * 8
        strides[axis] = span
        span *= sizes[order[axis]]
    return strides, span


def build(form: Form) -> Made:
    """Lay a form out, each table once for each order of its axes."""
    sizes, dtype = form["sizes"], np.dtype(form["dtype"])
    draw = np.random.default_rng([form["seed"], 1])
    pieces: list[NDArray[np.generic]] = []
    tables = tables_of(form)
    end = 0
    # Gaps hold what would change every answer.
    garbage = dtype.type(np.nan if dtype.kind == "f" else 77)
    placed: dict[tuple[int, tuple[int, ...]], tuple[int, list[int], int]] = {}
    for order in form["orders"]:
        for number, axes in enumerate(order):
            if (number, tuple(axes)) in placed:
                continue
            is_padded = form["padded"][number]
            strides, span = strides_of(axes, sizes, int(draw.integers(0, len(axes) + 1)) if is_padded else None)
            gap = int(draw.integers(0, 8)) if is_padded else -end % 8
            cells = np.full(gap + span, garbage, dtype)
            ascending = sorted(axes)
            shape = [sizes[v] for v in axes]
            _view(cells[gap:], 0, strides, shape)[...] = tables[number].transpose([ascending.index(v) for v in axes])
            pieces.append(cells)
            placed[number, tuple(axes)] = end + gap, strides, span
            end += gap + span
    factor_cells = end
    steps: list[Step] = []
    messages: dict[tuple[int, tuple[int, ...]], tuple[int, int, list[int], int]] = {}
    readers: dict[int, list[int]] = {}
    for (number, axes), (offset, strides, _) in placed.items():
        if form["messages"][number]:
            at = -(-end // 8) * 8
            shape = tuple(sizes[v] for v in axes)
            own, own_span = strides_of(axes, sizes, None)
            copied = Operand(len(steps), -1, offset, 0, tuple(strides), math.prod(shape))
            messages[number, axes] = len(steps), at, own, own_span
            steps.append(Step(JOIN, 1, axes, shape, tuple(own), 0, 0, (copied,), 0, 0, at, own_span, ()))
            end = at + own_span
    outer, mid = form["outer"], form["mid"]
    axes, lo = tuple(range(1, len(sizes))), outer + mid
    copies = []
    for order in form["orders"]:
        classes: list[list[Operand]] = [[], [], []]
        for number, own_axes in enumerate(order):
            key = number, tuple(own_axes)
            source, (offset, strides, span) = -1, placed[key]
            if key in messages:
                source, offset, strides, span = messages[key]
                readers.setdefault(source, []).append(len(steps))
            along = dict(zip(own_axes, strides, strict=True))
            operand = Operand(number, source, offset, along.get(0, 0), tuple(along.get(v, 0) for v in axes), span)
            has_lo, has_mid = any(v > lo for v in own_axes), any(outer < v <= lo for v in own_axes)
            classes[0 if not has_lo else 1 if not has_mid else 2].append(operand)
        out_strides, span = strides_of(axes, sizes, lo if form["padded"][-1] else None)
        at = -(-end // 8) * 8 + 3 * form["padded"][-1]
        copies.append(len(steps))
        variable, domain = (JOIN, 1) if form["joins"] else (0, sizes[0])
        shape = tuple(sizes[v] for v in axes)
        steps.append(
            Step(variable, domain, axes, shape, tuple(out_strides), outer, mid, tuple(itertools.chain(*classes)),
                 len(classes[0]), len(classes[1]), at, span, (), form["weight"])
        )  # fmt: skip
        end = at + span
    for source, those in readers.items():
        steps[source] = steps[source]._replace(readers=tuple(those))
    packed = Steps.packed(steps)
    program = Program(
        semiring=form["semiring"],
        dtype=dtype,
        parameter=form["parameter"],
        words=packed.words,
        starts=packed.starts,
        variables=len(sizes),
        factor_cells=factor_cells,
        arena_cells=end,
        keep=True,
        decode=False,
        outputs=np.array([(n, steps[n].out_offset, steps[n].out_span) for n in copies], np.int64).reshape(-1, 3),
        work=max(1, sum(step.work for step in steps)),
    )
    return Made(program, np.concatenate([*pieces, np.zeros(0, dtype)]), copies)


def answers(form: Form, made: Made, zone: NDArray[np.generic]) -> Iterator[NDArray[np.generic]]:
    """Yield the output of each copy of the step."""
    shape = form["sizes"][1:]
    strides, _ = strides_of(
        range(1, len(form["sizes"])), form["sizes"], form["outer"] + form["mid"] if form["padded"][-1] else None
    )
    for _, at, _ in made.program.outputs.tolist():
        yield _view(zone[at - made.program.zone[0] :], 0, strides, shape)


def expected(form: Form, fixed: Sequence[Sequence[int]] = ()) -> NDArray[np.generic]:
    """Return the answer, by ``einsum`` where sums are of products; only the cells with fixed values, if any are."""
    semiring, dtype = form["semiring"], np.dtype(form["dtype"])
    values = dict(map(tuple, fixed))
    tables = []
    for scope, table, is_message in zip(form["scopes"], tables_of(form), form["messages"], strict=True):
        for axis, v in enumerate(sorted(scope)):
            if v in values:
                table = table.take([values[v]], axis)
        if is_message and semiring == "sum-product":
            table = table.astype(np.float64) * scale(float(table.max()), dtype)
        tables.append(table)
    sizes = [1 if v in values else size for v, size in enumerate(form["sizes"])]
    axes = list(range(1, len(sizes)))
    if semiring in ("sum-product", "count"):
        kind = np.float64 if semiring == "sum-product" else np.uint64
        operands = [x for t, s in zip(tables, form["scopes"], strict=True) for x in (t.astype(kind), sorted(s))]
        named = {v for scope in form["scopes"] for v in scope}
        total = np.einsum(*operands, [v for v in axes if v in named], optimize=True) if tables else kind(1)
        if 0 not in named:
            total = total * kind(sizes[0])
        total = np.broadcast_to(total.reshape([sizes[v] if v in named else 1 for v in axes]), sizes[1:])
        return total % np.uint64(form["parameter"]) if semiring == "count" and form["parameter"] else total
    wide = np.zeros(sizes, np.int64 if dtype.kind == "i" else np.float64)
    if semiring == "min-max":
        wide = wide + SEMIRINGS[semiring].one_of(dtype)
    for scope, table in zip(form["scopes"], tables, strict=True):
        shaped = table.reshape([sizes[v] if v in scope else 1 for v in range(len(sizes))])
        wide = np.maximum(wide, shaped) if semiring == "min-max" else wide + shaped
    if semiring in ("min-sum", "min-max"):
        return np.minimum(wide.min(axis=0), form["parameter"])
    if form["weight"] == 0:
        return wide.max(axis=0)
    with np.errstate(divide="ignore"):
        return form["weight"] * np.logaddexp.reduce(wide / form["weight"], axis=0)


def zero_of(form: Form) -> float:
    """Return the semiring's zero."""
    zeros = {"min-sum": form["parameter"], "min-max": form["parameter"], "log-sum-exp": -math.inf}
    return zeros.get(form["semiring"], 0)


def is_same(form: Form, found: NDArray[np.generic], right: NDArray[np.generic]) -> bool:
    """Compare outputs: exactly where the order of sums does not matter."""
    if form["semiring"] in ("min-sum", "min-max", "count"):
        return bool(np.array_equal(found, right.astype(found.dtype)))
    if form["semiring"] == "sum-product":
        # All terms are positive: each sum and product adds one rounding, of one part in 2^24 or 2^53.
        roundings = form["sizes"][0] + len(form["scopes"]) + 4
        return bool(np.allclose(found, right, rtol=roundings * float(np.finfo(form["dtype"]).eps), atol=0))
    rtol = 2e-5 if form["dtype"] == "float32" else 1e-12
    return bool(np.allclose(found, right, rtol=rtol, atol=10 * rtol))
