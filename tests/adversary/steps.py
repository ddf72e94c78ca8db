"""Single buckets with their tables' axes in every order, against ``einsum``, on every path of a device."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from elimina._core import dense_instruction_set, dense_instruction_sets, use_dense_instruction_set
from elimina.backends.cpu import CpuBackend
from elimina.backends.cuda import matrix_launch, split_sums
from elimina.backends.cuda.step_launches import launches_of
from elimina.backends.protocols import RunOutput
from elimina.planning.program import Program
from elimina.planning.record import HEADER
from elimina.planning.step import JOIN
from elimina.problem.semirings import SEMIRINGS
from tests.adversary.case import Case, Defect, Setting
from tests.reference import program as reference
from tests.reference.products import by_library
from tests.reference.steps import Made, answers, build, draw_form, expected, is_same, zero_of

KINDS = [(name, dtype) for name, semiring in SEMIRINGS.items() for dtype in semiring.dtypes]
"""Semirings and the types of their cells."""

MULTIPROCESSORS, SHARED_BYTES = 132, 232448
"""A device that layouts are made for."""


def make(rng: random.Random, setting: Setting) -> Case:
    """Make a random bucket; sums of products, which have paths of their own, more often than others."""
    semiring, dtype = rng.choice([*KINDS, ("sum-product", "float64"), ("sum-product", "float32")])
    large = semiring == "sum-product" and setting.device == "cuda" and rng.random() < 0.3
    form = draw_form(rng, semiring, dtype, 6 if large else 24, large)
    return {"device": setting.device, "threads": rng.choice([1, 1, 2]), "layouts": rng.random() < 0.2, "form": form}


def check(case: Case) -> None:
    """Run a bucket on every path."""
    form = case["form"]
    made = build(form)
    if case["device"] == "cuda":
        from elimina.backends.cuda.backend import CudaBackend

        _check_session(case, made, CudaBackend().open(made.program, made.factors), "on the GPU")
        return
    used = dense_instruction_set()
    try:
        for name in dense_instruction_sets():
            use_dense_instruction_set(name)
            _check_session(case, made, CpuBackend(case["threads"]).open(made.program, made.factors), f"with {name}")
    finally:
        use_dense_instruction_set(used)
    if case["layouts"]:
        _check_layouts(form, made)


def _check_session(case: Case, made: Made, session: Any, where: str) -> None:
    form, right = case["form"], expected(case["form"])
    try:
        # Small steps are translated when they run again; later runs of a GPU are graphs.
        for number in range(3 if case["device"] == "cuda" else 2):
            run = session.run()
            _compare(form, made, run.zone, right, f"in run {number} {where}")
            if case["device"] == "cpu" and form["semiring"] == "sum-product":
                _check_ranges(form, made, run, where)
        if form["fixed"] and case["device"] == "cpu":
            values = np.full(len(form["sizes"]), -1, np.int32)
            for v, value in form["fixed"]:
                values[v] = value
            session.fix(values)
            whole = np.full(form["sizes"][1:], zero_of(form), np.float64 if right.dtype.kind == "f" else right.dtype)
            places = tuple(
                slice(values[v], values[v] + 1) if values[v] >= 0 else slice(None) for v in range(1, len(values))
            )
            whole[places] = expected(form, form["fixed"])
            _compare(form, made, session.run().zone, whole, f"with fixed values {where}")
    finally:
        session.close()


def _compare(form: dict[str, Any], made: Made, zone: NDArray[Any], right: NDArray[Any], where: str) -> None:
    for order, found in zip(form["orders"], answers(form, made, zone), strict=True):
        if not is_same(form, found, right):
            raise Defect(f"wrong cells {where}: tables in the orders {order}")


def _check_ranges(form: dict[str, Any], made: Made, run: RunOutput, where: str) -> None:
    """Check that the ranges of outputs are those of their cells."""
    for number, found in zip(made.steps, answers(form, made, run.zone), strict=True):
        positive = found[found > 0]
        ends = (found.max(), positive.min()) if len(positive) else (0, 0)
        if tuple(run.peaks[number]) != tuple(map(float, ends)):
            raise Defect(f"wrong range of an output {where}: {run.peaks[number]}, not {ends}")


def _check_layouts(form: dict[str, Any], made: Made) -> None:
    """Check that rearranged records and calls of the library, as a GPU gets them, compute the same step."""
    program, right = made.program, expected(form)
    arena = np.zeros(program.arena_cells, program.dtype)
    arena[: program.factor_cells] = made.factors
    peaks = np.zeros((len(program.starts), 2))
    if form["semiring"] == "sum-product":
        run = reference.run(program, made.factors)
        peaks = run.peaks
    records = [program.words[at : at + program.words[at]].tolist() for at in program.starts.tolist()]
    for number, words in enumerate(records):
        if words[reference.VARIABLE] == JOIN and number not in made.steps:
            _run_record(program, words, arena, peaks)
    for values, where in ((split_sums.MIN_DOMAIN, "in a GPU's layout"), (2, "in split sums")):
        with mock.patch.object(split_sums, "MIN_DOMAIN", values):
            _run_launches(made, arena, peaks)
        _compare(form, made, arena[slice(*program.zone)], right, where)
        arena[slice(*program.zone)] = 0
    if any(form["messages"]):
        # The library multiplies by the scales of messages on the device.
        return
    arena[slice(*program.zone)] = 0
    with mock.patch.multiple(matrix_launch, LIBRARY_DEPTH=1, LIBRARY_SIDE=1, LIBRARY_WORK=1):
        for number in made.steps:
            record = list(records[number])
            found = matrix_launch.choose_matrix(program, number, 0, record, 1)
            if found is None:
                _run_record(program, record, arena, peaks)
            else:
                by_library(found, arena)
    _compare(form, made, arena[slice(*program.zone)], right, "by calls of a library")


def _run_launches(made: Made, arena: NDArray[Any], peaks: NDArray[Any]) -> None:
    """Compute steps by the records of their launches on a GPU."""
    program = made.program
    scratch_at = -(-program.arena_cells // split_sums.ALIGNED_CELLS) * split_sums.ALIGNED_CELLS
    for number in made.steps:
        launches = launches_of(program, program.words, number, scratch_at, MULTIPROCESSORS, SHARED_BYTES, False)
        longer = np.zeros(scratch_at + launches.scratch_cells, arena.dtype)
        longer[: len(arena)] = arena
        for record in launches.records:
            _run_record(program, record, longer, peaks)
        arena[:] = longer[: len(arena)]


def _run_record(program: Program, words: list[int], arena: NDArray[Any], peaks: NDArray[Any]) -> None:
    """Compute a step by its record alone."""
    rows = reference._rows(program, words, arena, peaks)
    axes = np.array(words[HEADER : HEADER + 3 * words[reference.AXES]]).reshape(-1, 3)
    out = reference._marginal(program, words, rows)
    reference._view(arena, words[reference.OUT], axes[:, 1].tolist(), axes[:, 0].tolist())[...] = out


def smaller(case: Case) -> Iterator[Case]:
    """Yield simpler buckets."""
    form = case["form"]
    orders = form["orders"]
    if len(orders) > 1:
        for half in (orders[: len(orders) // 2], orders[len(orders) // 2 :]):
            yield {**case, "form": {**form, "orders": half}}
    for name, plain in (("threads", 1), ("layouts", False)):
        yield {**case, name: plain}
    for name, plain in (("fixed", []), ("weight", 1.0), ("messages", [False] * len(form["messages"]))):
        yield {**case, "form": {**form, name: plain}}
    yield {**case, "form": {**form, "padded": [False] * len(form["padded"])}}
    for number in range(len(form["scopes"]) if len(form["scopes"]) > 1 else 0):
        fewer = {name: _without(form[name], number) for name in ("scopes", "messages", "padded")}
        yield {**case, "form": {**form, **fewer, "orders": [_without(order, number) for order in orders]}}
    for v, size in enumerate(form["sizes"]):
        for less in sorted({1, 2, size // 2, size - 1} - {0}):
            if less < size:
                sizes = [*form["sizes"][:v], less, *form["sizes"][v + 1 :]]
                fixed = [[u, min(value, less - 1) if u == v else value] for u, value in form["fixed"]]
                yield {**case, "form": {**form, "sizes": sizes, "fixed": fixed}}


def _without(items: list[Any], number: int) -> list[Any]:
    return [*itertools.islice(items, number), *items[number + 1 :]]


def script(case: Case) -> str:
    """Return a program that runs the bucket."""
    return f"from math import inf\nfrom tests.adversary.steps import check\n\ncheck({case!r})"
