"""Models as sizes, scopes and seeds of tables, so that large ones print as short programs.

A sketch has the keys of ``models.Spec``. Its factors have a seed, from which their cells are drawn, instead of values.
"""

from __future__ import annotations

import copy
import math
import pprint
import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from elimina.model.model import Model
from elimina.model.table import FORBIDDEN, Table
from elimina.model.variable import Variable
from tests.adversary.models import Spec
from tests.adversary.table_oracle import TableOracle
from tests.reference.contraction import largest_bucket

WEIGHTS = ("uniform", "uniform", "uniform", "zeros", "sparse", "spread", "flat")
"""Styles of probabilities."""

COSTS = ("small", "small", "ties", "wide", "float")
"""Styles of costs."""

LAYOUTS = ("rows", "rows", "rows", "columns", "strided", "reversed")
"""Layouts of arrays in memory: C, Fortran, every second cell of a larger array, negative strides."""


def cells_of(factor: dict[str, Any], sizes: list[int]) -> np.ndarray:
    """Draw the cells of a factor: floats, with infinity for what is forbidden in a table to be minimised."""
    shape = [sizes[v] for v in factor["scope"]]
    draws = np.random.default_rng(factor["seed"])
    style = factor["style"]
    cells: np.ndarray
    if style in ("small", "ties", "wide"):
        low, high = {"small": (-20, 21), "ties": (0, 2), "wide": (-(10**9), 10**9)}[style]
        cells = draws.integers(low, high, shape).astype(float)
    elif style == "float":
        cells = draws.normal(0, 10, shape)
    elif style == "flat":
        cells = draws.choice([0.5, 1.0], shape)
    elif style == "spread":
        cells = draws.random(shape) * 10.0 ** draws.integers(-20, 6, shape)
    elif style == "skewed":
        cells = draws.random(shape) + 0.05
        rare = draws.random(shape) < 0.001
        cells = np.where(rare | (np.indices(shape)[0] == 0), cells, 0.0)
    elif style == "row":
        cells = draws.random(shape) + 0.01
    else:
        cells = draws.random(shape) + 0.05
    cells = np.asarray(cells)
    forbidden = factor["forbidden"]
    if forbidden:
        lost = draws.random(shape) < forbidden
        cells = np.where(lost, math.inf if style in COSTS else 0.0, cells)
    if factor["child"] is not None:
        axis = factor["scope"].index(factor["child"])
        first = tuple(slice(0, 1) if n == axis else slice(None) for n in range(len(shape)))
        cells[first] += cells.sum(axis=axis, keepdims=True) == 0
        cells = cells / cells.sum(axis=axis, keepdims=True)
    return cells


def draw_factor(rng: random.Random, scope: list[int], style: str, forbidden: float) -> dict[str, Any]:
    """Draw a factor."""
    share = {"zeros": rng.choice([0.1, 0.5]), "sparse": rng.choice([0.8, 0.97])}.get(style, forbidden)
    return {
        "scope": scope,
        "style": style,
        "seed": rng.randrange(10**6),
        "forbidden": share,
        "child": None,
        "is_listed": bool(scope) and rng.random() < 0.1,
        "layout": rng.choice(LAYOUTS),
    }


def build(spec: Spec) -> Model:
    """Return the model that a sketch stands for."""
    sizes = [size for _, size, _ in spec["variables"]]
    return Model(
        [Variable(name, size, states) for name, size, states in spec["variables"]],
        [_table(factor, sizes, spec["sense"]) for factor in spec["factors"]],
        sense=spec["sense"],
        constant=spec["constant"],
        upper_bound=spec["upper_bound"],
        children=spec["children"],
    )


def _table(factor: dict[str, Any], sizes: list[int], sense: str) -> Table:
    cells = cells_of(factor, sizes)
    if factor["style"] in COSTS:
        sign = 1 if sense == "min-cost" else -1
        cells = np.where(np.isinf(cells), sign * cells, cells)
        if factor["style"] != "float":
            lost = np.isinf(cells)
            cells = np.where(lost, 0, cells).astype(np.int64)
            cells[lost] = sign * FORBIDDEN
    if factor["is_listed"]:
        values, numbers = np.unique(cells, return_counts=True)
        default = values[numbers.argmax()]
        rows = np.argwhere(cells != default)
        return Table(factor["scope"], cells[tuple(rows.T)], sizes=cells.shape, rows=rows, default=default.item())
    return Table(factor["scope"], laid_out(cells, factor["layout"]))


def laid_out(cells: np.ndarray, layout: str) -> np.ndarray:
    """Return equal cells in another layout of memory."""
    if layout == "columns":
        return np.asfortranarray(cells)
    if layout == "strided":
        wide = np.zeros([2 * size for size in cells.shape], dtype=cells.dtype)
        places = tuple(slice(None, None, 2) for _ in cells.shape)
        wide[places] = cells
        return wide[places]
    if layout == "reversed":
        places = tuple(slice(None, None, -1) for _ in cells.shape)
        return np.ascontiguousarray(cells[places])[places]
    return cells


def oracle_of(
    spec: Spec, observed: Mapping[int, int] | None = None, weights: Mapping[int, list[float]] | None = None
) -> TableOracle:
    """Return the oracle of a sketch under evidence."""
    sizes = [size for _, size, _ in spec["variables"]]
    cells = [(tuple(factor["scope"]), cells_of(factor, sizes)) for factor in spec["factors"]]
    if spec["sense"] == "max-cost":
        cells = [(scope, np.where(np.isinf(table), -table, table)) for scope, table in cells]
    is_integer = all(factor["style"] != "float" for factor in spec["factors"])
    return TableOracle(spec, cells, is_integer, observed, weights)


def is_affordable(spec: Spec, cells: int, kept: tuple[int, ...] = ()) -> bool:
    """Return whether the contraction needs no larger bucket."""
    sizes = [size for _, size, _ in spec["variables"]]
    return largest_bucket([factor["scope"] for factor in spec["factors"]], sizes, kept) <= cells


def smaller_models(spec: Spec) -> Iterator[tuple[Spec, int | None]]:
    """Yield simpler sketches, and the variable that each lacks (by its index), if it lacks one."""
    factors = spec["factors"]
    half = len(factors) // 2
    for gone in [range(half), range(half, len(factors))] if half > 1 else []:
        yield _without_factors(spec, set(gone)), None
    for v in range(len(spec["variables"])):
        if (simpler := _without_variable(spec, v)) is not None:
            yield simpler, v
    for f in range(len(factors)):
        yield _without_factors(spec, {f}), None
    for v, (name, size, states) in enumerate(spec["variables"]):
        for fewer in sorted({1, 2, size // 2, size - 1}):
            if 0 < fewer < size:
                variable = [name, fewer, None if states is None else states[:fewer]]
                yield {**spec, "variables": [*spec["variables"][:v], variable, *spec["variables"][v + 1 :]]}, None
    for f, factor in enumerate(factors):
        for axis, v in enumerate(factor["scope"]):
            if v != factor["child"]:
                scope = factor["scope"][:axis] + factor["scope"][axis + 1 :]
                yield _with_factor(spec, f, {**factor, "scope": scope, "is_listed": False}), None
        for key, plain in (("is_listed", False), ("layout", "rows"), ("forbidden", 0.0)):
            if factor[key] != plain:
                yield _with_factor(spec, f, {**factor, key: plain}), None
        simple = "small" if factor["style"] in COSTS else "uniform"
        if factor["style"] != simple:
            yield _with_factor(spec, f, {**factor, "style": simple}), None
    for key, plain in (("constant", 0), ("upper_bound", None)):
        if spec[key] != plain:
            yield {**spec, key: plain}, None
    if spec["children"] is not None:
        yield {**spec, "children": None, "factors": [{**factor, "child": None} for factor in factors]}, None
    plain_variables = [[f"x{v}", size, None] for v, (_, size, _) in enumerate(spec["variables"])]
    if plain_variables != spec["variables"]:
        yield {**spec, "variables": plain_variables}, None


def _with_factor(spec: Spec, f: int, factor: dict[str, Any]) -> Spec:
    return {**spec, "factors": [*spec["factors"][:f], factor, *spec["factors"][f + 1 :]]}


def _without_factors(spec: Spec, gone: set[int]) -> Spec:
    kept = [f for f in range(len(spec["factors"])) if f not in gone]
    children = None if spec["children"] is None else [spec["children"][f] for f in kept]
    return {**spec, "factors": [spec["factors"][f] for f in kept], "children": children}


def _without_variable(spec: Spec, gone: int) -> Spec | None:
    """The sketch without a variable; None where it is the child of a distribution that others need."""
    spec = copy.deepcopy(spec)
    spec = _without_factors(spec, {f for f, factor in enumerate(spec["factors"]) if factor["child"] == gone})
    for factor in spec["factors"]:
        factor["scope"] = [v - (v > gone) for v in factor["scope"] if v != gone]
        factor["is_listed"] = factor["is_listed"] and bool(factor["scope"])
        if factor["child"] is not None:
            factor["child"] -= factor["child"] > gone
    if spec["children"] is not None:
        spec["children"] = [factor["child"] for factor in spec["factors"]]
    spec["variables"] = spec["variables"][:gone] + spec["variables"][gone + 1 :]
    return spec


def text(spec: Spec) -> list[str]:
    """Return lines of Python that make the model."""
    return [
        "from tests.adversary.sketches import build",
        f"model = build({pprint.pformat(spec, width=150, compact=True, sort_dicts=False)})",
    ]
