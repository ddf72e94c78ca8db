"""Assignments decoded from the tables of buckets, against a plain loop over the tables, on all devices."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest

from elimina._core import decode_buckets
from elimina.methods.mini_buckets import run_mini_buckets, sign_of
from elimina.model.model import Model
from elimina.planning.bucket_tables import BucketTables, ValueCosts
from elimina.planning.option_checks import check_options
from elimina.planning.options import Options
from elimina.problem.preparation import prepare
from elimina.running.execution import Execution
from elimina.running.plan_choice import plan_problem
from tests.devices import on_devices
from tests.seeds import run_seed


def plain(
    arena: np.ndarray, words: Sequence[int], sizes: Sequence[int], costs: ValueCosts, number: int
) -> tuple[list[int], list[int]]:
    """Return an assignment and the cells that it selects: records are read one by one."""
    records, at = [], 0
    while at < len(words):
        count = words[at + 4]
        axes = list(zip(words[at + 5 : at + 5 + 2 * count : 2], words[at + 6 : at + 6 + 2 * count : 2], strict=True))
        records.append((words[at], words[at + 1], words[at + 2], axes))
        at += 5 + 2 * count
    values, cells = [0] * len(sizes), []
    starts = list(itertools.accumulate(sizes, initial=0))
    for v in reversed(range(len(sizes))):
        totals = []
        tables = [
            (offset + sum(values[u] * step for u, step in axes), stride)
            for offset, home, stride, axes in records
            if home == v
        ]
        for x in range(sizes[v]):
            read = [arena[first + x * stride].item() for first, stride in tables]
            total = sum(math.inf if cell == costs.forbidden else costs.sign * float(cell) for cell in read)
            totals.append(total - (costs.noise[number - 1, starts[v] + x] if number else 0))
        values[v] = totals.index(min(totals))
        cells += [first + values[v] * stride for first, stride in tables]
    return values, sorted(cells)


def random_model(rng: np.random.Generator, sense: str) -> Model:
    sizes = rng.choice([1, 2, 3, 7, 70], size=9, p=[0.1, 0.3, 0.3, 0.2, 0.1]).tolist()
    scopes = [*itertools.combinations(range(5), 2), (4, 5, 6), (6, 7), (2, 7), (8,), (8,)]
    factors = []
    for scope in scopes:
        shape = [sizes[v] for v in scope]
        values = rng.integers(0, 20, shape) if sense == "min-cost" else np.exp(rng.normal(size=shape))
        if sense == "probability":
            values = np.where(rng.random(shape) < 0.2, 0.0, values)
        factors.append((scope, values))
    return Model.from_arrays(sizes, factors, sense=sense)


@on_devices
@pytest.mark.parametrize(
    ("task", "sense", "dtype"),
    [
        ("mpe", "min-cost", "int16"),
        ("mpe", "min-cost", "int32"),
        ("mpe", "min-cost", "int64"),
        ("mpe", "min-cost", "float32"),
        ("mpe", "probability", "float64"),
        ("pr", "probability", "float64"),
    ],
)
def test_decoding_is_greedy(device: str, task: str, sense: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # On a GPU, a launch decodes only a few of the variables.
    monkeypatch.setattr("elimina.backends.cuda.session.DECODED_VARIABLES", 4)
    rng = np.random.default_rng(run_seed())
    for _ in range(4):
        problem = prepare(random_model(rng, sense), task, {})
        options = check_options(Options(device=device, method="mbe", ibound=2, dtype=dtype, shift="none"))
        planned = plan_problem(problem, options)
        execution = Execution(problem, planned.plan, planned.backend)
        with run_mini_buckets(execution, {}) as (heuristic, session):
            if session is None:
                continue
            arena = np.asarray(session.fetch(0, planned.plan.arena_cells)).copy()
            sizes, words = list(heuristic.guide.sizes), heuristic.guide.tables.tolist()
            noise = rng.gumbel(size=(4, sum(sizes)))
            costs = ValueCosts(planned.plan.forbidden, sign_of(planned.plan), noise)
            buckets = heuristic.guide.buckets
            decoded = session.decode_buckets(buckets, costs)
        assert decoded.dtype == np.int32
        for number, values in enumerate(decoded.tolist()):
            expected, cells = plain(arena, words, sizes, costs, number)
            assert values == expected
            assert sorted(buckets.cells_at(np.array(values)).tolist()) == cells


def test_buckets_without_tables_and_without_variables() -> None:
    words, arena = np.zeros(0, dtype=np.int64), np.zeros(1)
    assert decode_buckets(arena, BucketTables.of(words, [3]), math.inf, 1, np.zeros((1, 3))).tolist() == [[0], [0]]
    assert decode_buckets(arena, BucketTables.of(words, []), math.inf, 1, np.zeros((0, 0))).tolist() == [[]]
