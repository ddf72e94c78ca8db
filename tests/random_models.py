"""Random small models for property tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from elimina.model.model import Model
from elimina.model.table import FORBIDDEN, Table, forbidden_value
from elimina.model.variable import Variable

KINDS = ("integer", "big-integer", "float", "max-integer", "max-float", "probability")


@st.composite
def models(draw, kind: str, max_variables: int = 6, max_cells: int = 3000) -> Model:
    """A model small enough for brute force; empty scopes, unused variables and domains of size 1 included."""
    sizes: list[int] = []
    for size in draw(st.lists(st.sampled_from([1, 2, 2, 3, 3, 4, 5, 7]), min_size=0, max_size=max_variables)):
        if np.prod([*sizes, size]) <= max_cells:
            sizes.append(size)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    forbidden_share = draw(st.sampled_from([0.0, 0.2, 0.6, 1.0]))
    factors = []
    for _ in range(draw(st.integers(0, 9))):
        arity = int(rng.integers(0, min(4, len(sizes)) + 1))
        scope = [int(v) for v in rng.permutation(len(sizes))[:arity]]
        factors.append(_table(rng, kind, scope, [sizes[v] for v in scope], forbidden_share))
    sense = {"max-integer": "max-cost", "max-float": "max-cost", "probability": "probability"}.get(kind, "min-cost")
    constant = {"integer": 3, "big-integer": -(2**55), "max-integer": -4, "probability": -2.5}.get(kind, 0.5)
    bound = None
    if kind in ("integer", "max-integer") and draw(st.booleans()):
        bound = draw(st.integers(-20, 60))
    return Model(
        [Variable(f"v{i}", size) for i, size in enumerate(sizes)],
        factors,
        sense=sense,
        constant=constant,
        upper_bound=bound,
    )


def _table(rng: np.random.Generator, kind: str, scope: list[int], shape: list[int], forbidden_share: float) -> Table:
    forbidden = rng.random(shape) < forbidden_share * rng.random()
    if kind == "probability":
        values = rng.random(shape) * 10.0 ** rng.integers(-200, 20, shape if rng.random() < 0.2 else ())
        return Table(scope, np.where(forbidden, 0.0, values))
    if kind.endswith("integer"):
        width = 2**56 if kind == "big-integer" else int(rng.choice([1, 3, 20, 5000]))
        values = rng.integers(-width, width, shape, endpoint=True)
        table = np.where(forbidden, -FORBIDDEN if kind == "max-integer" else FORBIDDEN, values)
        if scope and rng.random() < 0.3:
            return _sparse(rng, scope, table)
        return Table(scope, table)
    values = rng.normal(size=shape) * 10
    return Table(scope, np.where(forbidden, -np.inf if kind == "max-float" else np.inf, values))


def _sparse(rng: np.random.Generator, scope: list[int], values: np.ndarray) -> Table:
    """The same table as rows that differ from the value of one of its cells (and some rows that do not)."""
    default = int(values.flat[0])
    rows = np.argwhere((values != default) | (rng.random(values.shape) < 0.2))
    return Table(scope, values[tuple(rows.T)], sizes=values.shape, rows=rows, default=default)


def with_constraints(model: Model) -> Model:
    """Return a model each of whose tables forbids its first tuple: counts leave out tables that allow everything."""
    factors = []
    for table in model.factors:
        values = np.array(table.values)
        values.flat[0] = forbidden_value(model.sense, values.dtype)
        factors.append(Table(table.scope, values))
    return Model(model.variables, factors, sense=model.sense)


def large_relation(task: str) -> tuple[Model, float]:
    """A relation of 5^20 cells, which would take 10^14 numbers, with few tuples; and the answer to a task."""
    rng = np.random.default_rng(20)
    tuples = np.unique(rng.integers(0, 5, (1000, 20)), axis=0)
    sense, default = ("probability", 0.0) if task == "pr" else ("min-cost", FORBIDDEN)
    values = rng.random(len(tuples)) if task == "pr" else rng.integers(0, 9, len(tuples))
    relation = Table(range(20), values, sizes=[5] * 20, rows=tuples, default=default)
    model = Model([Variable(f"v{v}", 5) for v in range(20)], [relation], sense=sense)
    return model, {"mpe": values.min(), "count": len(tuples), "pr": values.sum()}[task]
