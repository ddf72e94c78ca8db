"""Random models as plain values, the models that they stand for, and simpler ones."""

from __future__ import annotations

import copy
import itertools
import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from elimina.model.model import Model
from elimina.model.table import FORBIDDEN, Table
from elimina.model.variable import Variable

Spec = dict[str, Any]
"""``sense``, ``variables`` ([name, size, states or None]), ``factors`` ({scope, values, default, dtype}: the values in
the order of the cells, the default None for a dense table), ``constant``, ``upper_bound``, ``children``."""

MOST_ASSIGNMENTS = 1500
"""Assignments of a model, few enough to try all of them in a millisecond or two."""

COSTS = ("small", "ties", "wide", "huge", "float", "mixed", "cancelling", "float32")
FLOATS = ("float", "mixed", "cancelling", "float32")
"""Ways to draw costs."""

PROBABILITIES = ("network", "holes", "flat", "spread", "tiny", "zeros")
"""Ways to draw probabilities."""


def make_model(
    rng: random.Random,
    senses: tuple[str, ...] = ("min-cost", "max-cost", "probability"),
    costs: tuple[str, ...] = COSTS,
) -> Spec:
    """Draw a model that brute force can answer."""
    sense = rng.choice(senses)
    variables = _variables(rng)
    sizes = [size for _, size, _ in variables]
    spec: Spec = {"sense": sense, "variables": variables, "factors": [], "constant": 0, "upper_bound": None}
    spec["children"] = None
    if sense == "probability":
        style = rng.choice(PROBABILITIES)
        if style in ("network", "holes"):
            _fill_network(rng, spec, sizes, style == "holes")
        else:
            spec["factors"] = [_weights(rng, sizes, scope, style) for scope in _scopes(rng, sizes)]
            spec["constant"] = rng.choice([0, 0, -2.5, 700.0, -1000.0])
        return spec
    style = rng.choice(costs)
    share = rng.choice([0.0, 0.0, 0.1, 0.4, 0.9])
    spec["factors"] = [draw_costs(rng, sizes, scope, style, share, sense) for scope in _scopes(rng, sizes)]
    is_float = style in FLOATS
    if rng.random() < 0.3:
        spec["constant"] = rng.choice([0.5, -7.25]) if is_float else rng.choice([3, -4, 10**6, -(2**55)])
    if rng.random() < 0.3:
        spec["upper_bound"] = rng.uniform(-20, 40) if is_float else rng.choice([rng.randint(-20, 60), 10**7])
    return spec


def _variables(rng: random.Random) -> list[list[Any]]:
    most = rng.choice([60, 300, MOST_ASSIGNMENTS])
    total, variables = 1, []
    style = rng.choice(["plain", "plain", "plain", "spaced", "digits", "numerals"])
    for number in range(rng.choice([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])):
        size = rng.choice([1, 2, 2, 2, 3, 3, 4, 5, 6])
        if total * size > most:
            continue
        total *= size
        name = f"node {number} é" if style == "spaced" else str(90 - number) if style == "digits" else f"x{number}"
        states = _states(rng, size) if rng.random() < 0.4 else None
        variables.append([name, size, states])
    if style == "numerals":  # each name is the index of some variable, mostly of another one
        for variable, index in zip(variables, rng.sample(range(len(variables)), len(variables)), strict=True):
            variable[0] = str(index)
    return variables


def _states(rng: random.Random, size: int) -> list[Any]:
    """Draw states of one type or of several: indices of one another, so that a mix-up shows."""
    style = rng.choice(["words", "words", "numbers", "digits", "flags", "mixed"])
    if style == "numbers":
        return rng.sample(range(-2, size + 2), size)
    if style == "digits":
        return [str(x) for x in rng.sample(range(size), size)]
    if style == "flags" and size <= 2:
        return rng.sample([False, True], size)
    words = [f"{rng.choice('abc')}{i}" for i in range(size)]
    return [rng.choice([x, word]) for x, word in enumerate(words)] if style == "mixed" else words


def _scopes(rng: random.Random, sizes: list[int]) -> list[list[int]]:
    scopes: list[list[int]] = []
    for _ in range(rng.randint(0, 2 * len(sizes) + 2)):
        if scopes and rng.random() < 0.15:
            scopes.append(rng.sample(scopes[-1], len(scopes[-1])))
        else:
            scopes.append(rng.sample(range(len(sizes)), min(len(sizes), rng.choice([0, 1, 1, 2, 2, 2, 2, 3, 3, 4]))))
    return scopes


def _cells(sizes: list[int], scope: list[int]) -> int:
    return math.prod(sizes[v] for v in scope)


def draw_costs(
    rng: random.Random, sizes: list[int], scope: list[int], style: str, share: float, sense: str
) -> dict[str, Any]:
    """Draw a table of costs, of which up to a share is forbidden."""
    sign = 1 if sense == "min-cost" else -1
    forbidden = sign * (math.inf if style in FLOATS else FORBIDDEN)
    share *= rng.random()
    values = [forbidden if rng.random() < share else _cost(rng, style) for _ in range(_cells(sizes, scope))]
    factor: dict[str, Any] = {"scope": scope, "values": values, "default": None, "dtype": "float64"}
    if style in ("small", "ties", "wide", "huge"):
        factor["dtype"] = "int64"
    if style == "float32":
        factor["values"] = [float(np.float32(value)) for value in values]
        factor["dtype"] = "float32"
    if scope and rng.random() < 0.25:
        factor["default"] = rng.choice(factor["values"])
    return factor


def _cost(rng: random.Random, style: str) -> int | float:
    if style == "small":
        return rng.randint(-20, 20)
    if style == "ties":
        return rng.randint(0, 1)
    if style == "wide":
        return rng.choice([rng.randint(-5, 5), rng.randint(-(10**9), 10**9)])
    if style == "huge":
        return rng.choice([rng.randint(-9, 9), rng.randint(-(2**55), 2**55), rng.randint(2**60, 2**62)])
    if style == "mixed":
        return rng.choice([-1, 1]) * rng.random() * 10.0 ** rng.randint(-6, 6)
    if style == "cancelling":
        return rng.choice([-1, 1]) * rng.choice([1.0, 2.0, 3.0, 1e15, 1e17, 1e300])
    return rng.gauss(0, 10)


def _weights(rng: random.Random, sizes: list[int], scope: list[int], style: str) -> dict[str, Any]:
    cells = _cells(sizes, scope)
    if style == "flat":
        values = [rng.choice([0.5, 1.0]) for _ in range(cells)]
    elif style == "spread":
        values = [rng.random() * 10.0 ** rng.randint(-20, 5) for _ in range(cells)]
    elif style == "tiny":
        values = [rng.random() * 10.0 ** rng.choice([-300, -200, -150, 0, 10]) for _ in range(cells)]
    else:
        share = rng.random()
        values = [0.0 if rng.random() < share else rng.random() for _ in range(cells)]
    default = rng.choice(values) if scope and rng.random() < 0.15 else None
    return {"scope": scope, "values": values, "default": default, "dtype": "float64"}


def _fill_network(rng: random.Random, spec: Spec, sizes: list[int], has_holes: bool) -> None:
    spec["children"] = []
    for child in range(len(sizes)):
        if has_holes and rng.random() < 0.3:
            continue
        parents = rng.sample(range(child), min(child, rng.choice([0, 1, 1, 2, 2, 3])))
        scope = [*parents, child]
        rng.shuffle(scope)
        share, tiny = rng.choice([0.0, 0.0, 0.5]), rng.random() < 0.1
        shape = [sizes[v] for v in scope]
        raw = np.array(
            [
                0.0 if rng.random() < share else rng.random() * (10.0 ** rng.choice([0, -100, -300]) if tiny else 1)
                for _ in range(math.prod(shape))
            ]
        ).reshape(shape)
        axis = scope.index(child)
        first = [slice(None)] * len(shape)
        first[axis] = slice(0, 1)
        raw[tuple(first)] += (raw.sum(axis=axis, keepdims=True) == 0).astype(float)
        values = raw / raw.sum(axis=axis, keepdims=True)
        spec["factors"].append(
            {"scope": scope, "values": values.reshape(-1).tolist(), "default": None, "dtype": "float64"}
        )
        spec["children"].append(child)


def build(spec: Spec) -> Model:
    """Return the model that plain values stand for."""
    sizes = [size for _, size, _ in spec["variables"]]
    return Model(
        [Variable(name, size, states) for name, size, states in spec["variables"]],
        [_table(factor, sizes) for factor in spec["factors"]],
        sense=spec["sense"],
        constant=spec["constant"],
        upper_bound=spec["upper_bound"],
        children=spec["children"],
    )


def _table(factor: dict[str, Any], sizes: list[int]) -> Table:
    scope = factor["scope"]
    shape = [sizes[v] for v in scope]
    values = np.array(factor["values"], dtype=factor["dtype"])
    if factor["default"] is None:
        return Table(scope, values.reshape(shape))
    listed = np.flatnonzero(values != factor["default"])
    rows = np.stack(np.unravel_index(listed, shape), axis=1)
    return Table(scope, values[listed], sizes=shape, rows=rows, default=factor["default"])


def integer_span(spec: Spec) -> int | None:
    """Return the largest sum of magnitudes of integer costs, forbidden ones aside; None if some are floats."""
    if spec["sense"] == "probability" or not isinstance(spec["constant"], int):
        return None
    if any(factor["dtype"] != "int64" for factor in spec["factors"]):
        return None
    parts = [max((abs(x) for x in f["values"] if abs(x) != FORBIDDEN), default=0) for f in spec["factors"]]
    return abs(spec["constant"]) + sum(parts) + abs(spec["upper_bound"] or 0)


def smaller_models(spec: Spec) -> Iterator[tuple[Spec, int | None]]:
    """Yield simpler models, and the variable that each lacks (by its index), if it lacks one."""
    factors, variables = spec["factors"], spec["variables"]
    half = len(factors) // 2
    for gone in [range(half), range(half, len(factors))] if half > 1 else []:
        yield _without_factors(spec, set(gone)), None
    for v in range(len(variables)):
        yield _without_variable(spec, v), v
    for f in range(len(factors)):
        yield _without_factors(spec, {f}), None
    for v, (_, size, _) in enumerate(variables):
        for value in reversed(range(size)) if size > 1 else []:
            yield _without_value(spec, v, value), None
    for f, factor in enumerate(factors):
        for axis in range(len(factor["scope"])) if spec["children"] is None else []:
            yield _with_factor(spec, f, _without_axis(spec, factor, axis)), None
        if factor["default"] is not None:
            yield _with_factor(spec, f, {**factor, "default": None}), None
        if factor["dtype"] == "float32":
            yield _with_factor(spec, f, {**factor, "dtype": "float64"}), None
    for key, plain in (("constant", 0), ("upper_bound", None), ("children", None)):
        if spec[key] != plain:
            yield {**spec, key: plain}, None
    names = [[f"x{i}", size, None] for i, (_, size, _) in enumerate(variables)]
    if names != variables:
        yield {**spec, "variables": [[a[0], *b[1:]] for a, b in zip(names, variables, strict=True)]}, None
        yield {**spec, "variables": [[b[0], *a[1:]] for a, b in zip(names, variables, strict=True)]}, None
    yield from ((simpler, None) for simpler in _simpler_values(spec))


def _simpler_values(spec: Spec) -> Iterator[Spec]:
    if spec["children"] is not None:
        return
    forbidden = {FORBIDDEN, -FORBIDDEN, math.inf, -math.inf}
    for f, factor in enumerate(spec["factors"]):
        values, number = factor["values"], type(factor["values"][0])
        plain = [value if value in forbidden else number(round(value)) for value in values]
        if plain != values and max(map(abs, values)) < 1e15:
            yield _with_values(spec, f, plain)
        for i, value in enumerate(values):
            for simple in (number(0), number(1)):
                if value not in (0, 1):
                    yield _with_values(spec, f, [*values[:i], simple, *values[i + 1 :]])
            if value not in forbidden and abs(value) > 1 and abs(value) < 1e300:
                short = number(f"{value:.1g}") if number is float else int(float(f"{value:.1g}"))
                if short != value and abs(short) < 2**62:
                    yield _with_values(spec, f, [*values[:i], short, *values[i + 1 :]])


def _with_values(spec: Spec, f: int, values: list[Any]) -> Spec:
    factor = spec["factors"][f]
    default = factor["default"] if factor["default"] in values else None
    return _with_factor(spec, f, {**factor, "values": values, "default": default})


def _with_factor(spec: Spec, f: int, factor: dict[str, Any]) -> Spec:
    return {**spec, "factors": [*spec["factors"][:f], factor, *spec["factors"][f + 1 :]]}


def _without_factors(spec: Spec, gone: set[int]) -> Spec:
    kept = [f for f in range(len(spec["factors"])) if f not in gone]
    children = None if spec["children"] is None else [spec["children"][f] for f in kept]
    return {**spec, "factors": [spec["factors"][f] for f in kept], "children": children}


def _without_axis(spec: Spec, factor: dict[str, Any], axis: int, value: int = 0) -> dict[str, Any]:
    shape = [spec["variables"][v][1] for v in factor["scope"]]
    scope = [v for i, v in enumerate(factor["scope"]) if i != axis]
    cells = itertools.product(*map(range, shape))
    values = [x for place, x in zip(cells, factor["values"], strict=True) if place[axis] == value]
    default = factor["default"] if factor["default"] in values and scope else None
    return {**factor, "scope": scope, "values": values, "default": default}


def _without_variable(spec: Spec, gone: int) -> Spec:
    """The model with a variable at its first value."""
    spec = copy.deepcopy(spec)
    if spec["children"] is not None:
        kept = [f for f, child in enumerate(spec["children"]) if child != gone]
        spec = _without_factors(spec, set(range(len(spec["factors"]))).difference(kept))
        spec["children"] = [child - (child > gone) for child in spec["children"]]
    factors = []
    for factor in spec["factors"]:
        if gone in factor["scope"]:
            factor = _without_axis(spec, factor, factor["scope"].index(gone))
        factors.append({**factor, "scope": [v - (v > gone) for v in factor["scope"]]})
    variables = [variable for v, variable in enumerate(spec["variables"]) if v != gone]
    return {**spec, "variables": variables, "factors": factors}


def _without_value(spec: Spec, v: int, value: int) -> Spec:
    name, size, states = spec["variables"][v]
    kept = None if states is None else states[:value] + states[value + 1 :]
    factors = []
    for f, factor in enumerate(spec["factors"]):
        if v in factor["scope"]:
            axis, shape = factor["scope"].index(v), [spec["variables"][u][1] for u in factor["scope"]]
            array = np.delete(np.array(factor["values"], dtype=object).reshape(shape), value, axis)
            if spec["children"] is not None and spec["children"][f] == v:
                sums = array.sum(axis=axis, keepdims=True)
                if (sums == 0).any():
                    return spec
                array = array / sums
            values = array.reshape(-1).tolist()
            default = factor["default"] if factor["default"] in values else None
            factor = {**factor, "values": values, "default": default}
        factors.append(factor)
    variables = [*spec["variables"][:v], [name, size - 1, kept], *spec["variables"][v + 1 :]]
    return {**spec, "variables": variables, "factors": factors}


def text(spec: Spec) -> list[str]:
    """Return lines of Python that make the model."""
    lines = ["variables = ["]
    for name, size, states in spec["variables"]:
        lines.append(f"    Variable({name!r}, {size}{'' if states is None else f', {states!r}'}),")
    lines += ["]", "factors = ["]
    sizes = [size for _, size, _ in spec["variables"]]
    for factor in spec["factors"]:
        lines.append(f"    {_table_text(factor, [sizes[v] for v in factor['scope']])},")
    lines.append("]")
    more = "".join(
        f", {key}={spec[key]!r}"
        for key, plain in (("constant", 0), ("upper_bound", None), ("children", None))
        if spec[key] != plain
    )
    lines.append(f"model = Model(variables, factors, sense={spec['sense']!r}{more})")
    return lines


def _table_text(factor: dict[str, Any], shape: list[int]) -> str:
    def plain(values: Any) -> str:
        return repr(values).replace(str(FORBIDDEN), "FORBIDDEN")

    kind = f'"{factor["dtype"]}"'
    if factor["default"] is None:
        nested = np.array(factor["values"], dtype=object).reshape(shape).tolist()
        return f"Table({factor['scope']}, np.array({plain(nested)}, {kind}))"
    listed = [i for i, value in enumerate(factor["values"]) if value != factor["default"]]
    rows = [[int(x) for x in np.unravel_index(i, shape)] for i in listed]
    values = plain([factor["values"][i] for i in listed])
    default = plain(factor["default"])
    rows_text = repr(rows) if rows else f"np.zeros((0, {len(shape)}), int)"
    return f"Table({factor['scope']}, np.array({values}, {kind}), sizes={shape}, rows={rows_text}, default={default})"
