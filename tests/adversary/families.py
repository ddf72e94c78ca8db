"""Models of any size whose answers follow from how they are made: by theorems, transfer matrices or a planted optimum.

Each family has a function that draws its parameters, plain values, and one that makes the instance of parameters.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from elimina.model.model import Model
from elimina.model.table import FORBIDDEN, Table
from elimina.model.variable import Variable
from tests.adversary.models import Spec
from tests.adversary.table_oracle import TableOracle
from tests.reference.contraction import Tables

LARGEST_LISTED = 10**60
"""Cells of a table that lists tuples, of models that are drawn."""

MOST_JOINED = 3_000
"""Tuples of all relations together."""

Parameters = dict[str, Any]
"""Plain values; ``family`` names the family, ``seed`` the tables."""


class Truth(NamedTuple):
    """Answers of an instance, as far as its family gives them.

    Attributes:
        log_sum: Natural logarithm of the sum of all products.
        marginals: Posterior of each variable.
        count: Number of assignments that are allowed.
        optimum: Best total; of probabilities the logarithm of the best product.
    """

    log_sum: float | None = None
    marginals: list[list[float]] | None = None
    count: int | None = None
    optimum: float | None = None

    def tasks(self) -> list[str]:
        """Return the tasks whose answers are known."""
        answers = {"pr": self.log_sum, "mar": self.marginals, "count": self.count, "mpe": self.optimum}
        return [task for task, answer in answers.items() if answer is not None]


class Listed(NamedTuple):
    """A table that lists tuples of domains too large to write out; all others are forbidden."""

    scope: tuple[int, ...]
    rows: np.ndarray
    values: list[float]


class Instance(NamedTuple):
    """A model of a family.

    Attributes:
        spec: The model as in ``models.Spec``, without factors.
        tables: Its tables, of floats.
        truth: Its answers.
        observed: Evidence: variable -> value.
        listed: Tables that list tuples.
        query: Variables whose posteriors are asked for; None: all.
    """

    spec: Spec
    tables: Tables
    truth: Truth
    observed: dict[int, int]
    listed: tuple[Listed, ...] = ()
    query: tuple[int, ...] | None = None

    def model(self) -> Model:
        """Return the model; integers are kept as such."""
        sense = self.spec["sense"]
        sizes = [size for _, size, _ in self.spec["variables"]]
        listed = [_listed_table(table, sizes, sense) for table in self.listed]
        return Model(
            [Variable(name, size) for name, size, _ in self.spec["variables"]],
            [*(_table(scope, table, sense) for scope, table in self.tables), *listed],
            sense=sense,
            constant=self.spec["constant"],
            children=self.spec["children"],
        )

    def oracle(self) -> FamilyOracle:
        """Return the oracle with the family's answers."""
        return FamilyOracle(self)


class FamilyOracle(TableOracle):
    """The answers of a family, with the interface of ``oracle.Oracle``."""

    def __init__(self, instance: Instance) -> None:
        super().__init__(instance.spec, instance.tables, True, instance.observed)
        self.truth = instance.truth
        self.scopes += [tuple(table.scope) for table in instance.listed]
        self.listed = [
            (table.scope, dict(zip(map(tuple, table.rows.tolist()), table.values, strict=True)))
            for table in instance.listed
        ]

    def score(self, values: list[int]) -> Any:
        """Return the score of one assignment; None if it is forbidden."""
        score = super().score(values)
        for scope, cells in self.listed:
            term = cells.get(tuple(values[v] for v in scope))
            if score is None or term is None:
                return None
            score += math.log(term) if self.spec["sense"] == "probability" else round(term)
        return score

    def is_possible(self) -> bool:
        """Return whether some assignment is allowed."""
        truth = self.truth
        if truth.count is not None:
            return truth.count > 0
        return truth.log_sum != -math.inf and (truth.optimum is None or math.isfinite(truth.optimum))

    def count(self) -> int:
        """Return the number of assignments that are allowed."""
        assert self.truth.count is not None
        return self.truth.count

    def optimum(self) -> Any:
        """Return the best score; None if nothing is allowed."""
        best = self.truth.optimum
        return None if best is None or math.isinf(best) else best

    def log_sum(self) -> float:
        """Return the natural logarithm of the sum of all products."""
        assert self.truth.log_sum is not None
        return self.truth.log_sum

    def marginals(self, v: int) -> list[float] | None:
        """Return the posterior of a variable; None if the construction does not give it."""
        return None if self.truth.marginals is None else self.truth.marginals[v]


def _table(scope: tuple[int, ...], table: np.ndarray, sense: str) -> Table:
    if sense == "probability":
        return Table(scope, table)
    lost = np.isinf(table)
    cells = np.where(lost, 0, table).astype(np.int64)
    cells[lost] = FORBIDDEN if sense == "min-cost" else -FORBIDDEN
    return Table(scope, cells)


def _listed_table(table: Listed, sizes: list[int], sense: str) -> Table:
    default = {"probability": 0.0, "min-cost": FORBIDDEN, "max-cost": -FORBIDDEN}[sense]
    values = np.array(table.values, dtype=float if sense == "probability" else np.int64)
    return Table(table.scope, values, sizes=[sizes[v] for v in table.scope], rows=table.rows, default=default)


def draw(rng: random.Random) -> Parameters:
    """Draw a family and its parameters."""
    family = rng.choice(list(FAMILIES))
    return {"family": family, **FAMILIES[family][0](rng), "seed": rng.randrange(10**6)}


def instance_of(parameters: Parameters) -> Instance:
    """Return the instance of parameters, its variables, axes and tables in a random order."""
    draws = random.Random(parameters["seed"])
    return _shuffled(FAMILIES[parameters["family"]][1](parameters, draws), draws)


def _instance(
    sizes: list[int], tables: Tables, truth: Truth, sense: str = "probability", observed: dict[int, int] | None = None
) -> Instance:
    spec = {
        "sense": sense,
        "variables": [[f"x{v}", size, None] for v, size in enumerate(sizes)],
        "constant": 0,
        "upper_bound": None,
        "children": None,
    }
    return Instance(spec, tables, truth, observed or {})


def _shuffled(instance: Instance, draws: random.Random) -> Instance:
    variables = instance.spec["variables"]
    places = list(range(len(variables)))
    draws.shuffle(places)
    moved = sorted(range(len(places)), key=lambda v: places[v])
    numbers = list(range(len(instance.tables)))
    draws.shuffle(numbers)
    children, tables = instance.spec["children"], []
    for number in numbers:
        scope, table = instance.tables[number]
        axes = list(range(len(scope)))
        draws.shuffle(axes)
        tables.append((tuple(places[scope[axis]] for axis in axes), table.transpose(axes)))
    spec = {
        **instance.spec,
        "variables": [[f"x{v}", variables[moved[v]][1], None] for v in range(len(places))],
        "children": None if children is None else [places[children[number]] for number in numbers],
    }
    marginals = instance.truth.marginals
    truth = instance.truth._replace(marginals=None if marginals is None else [marginals[v] for v in moved])
    listed = tuple(table._replace(scope=tuple(places[v] for v in table.scope)) for table in instance.listed)
    query = None if instance.query is None else tuple(places[v] for v in instance.query)
    return Instance(spec, tables, truth, {places[v]: x for v, x in instance.observed.items()}, listed, query)


def log_of(number: int | Fraction) -> float:
    """Return the natural logarithm of an exact number of any length."""
    if number == 0:
        return -math.inf
    exact = Fraction(number)
    return math.log(exact.numerator) - math.log(exact.denominator)


# Strips: columns of a few variables, one column tied to the next. Exact by transfer matrices of integers.


def draw_strip(rng: random.Random) -> Parameters:
    """Draw a chain, ladder, grid, ring or cylinder."""
    height = rng.choice([1, 1, 1, 2, 2, 3, 4, 5])
    domain = rng.choice([d for d in (2, 2, 3, 4, 5, 8, 16, 40) if d**height <= (64 if height > 1 else 40)])
    is_ring = domain**height <= 9 and rng.random() < 0.5
    columns = rng.randint(3, 12 if is_ring else max(6, min(120, 2000 // domain**height)))
    return {
        "height": height,
        "domain": domain,
        "columns": columns,
        "is_ring": is_ring,
        "is_round": height > 2 and rng.random() < 0.5,
        "zeros": rng.choice([0.0, 0.0, 0.2, 0.6]),
        "digits": rng.choice([0, 0, 0, 30, 150]) if domain**height <= 5 and columns <= 30 else 0,
        "sense": rng.choice(["probability", "probability", "min-cost", "max-cost"]),
    }


def make_strip(parameters: Parameters, draws: random.Random) -> Instance:
    """Make a strip. Weights are integers from 0 to 5 times 10 to the power of up to -digits; costs are from -9 to 9."""
    height, domain, columns = (parameters[name] for name in ("height", "domain", "columns"))
    numbers = np.random.default_rng(parameters["seed"])
    is_weights = parameters["sense"] == "probability"

    def cells(*shape: int) -> np.ndarray:
        drawn = numbers.integers(1, 6, shape) if is_weights else numbers.integers(-9, 10, shape)
        lost = numbers.random(shape) < parameters["zeros"]
        absorbing = 0.0 if is_weights else (math.inf if parameters["sense"] == "min-cost" else -math.inf)
        if is_weights and parameters["digits"]:
            drawn = drawn * 10.0 ** -numbers.integers(0, parameters["digits"], shape)
        return np.where(lost, absorbing, drawn.astype(float))

    tables: Tables = []
    states = np.array(list(itertools.product(range(domain), repeat=height)))
    inner, steps = [], []
    combine: Any = np.multiply if is_weights else np.add
    for column in range(columns):
        weight = np.ones(len(states)) if is_weights else np.zeros(len(states))
        pairs = [(row, row + 1) for row in range(height - 1)]
        pairs += [(height - 1, 0)] if parameters["is_round"] and height > 2 else []
        for a, b in pairs:
            table = cells(domain, domain)
            tables.append(((column * height + a, column * height + b), table))
            weight = combine(weight, table[states[:, a], states[:, b]])
        if draws.random() < 0.5:
            table = cells(domain)
            tables.append(((column * height,), table))
            weight = combine(weight, table[states[:, 0]])
        inner.append(weight)
        following = (column + 1) % columns
        if column == columns - 1 and not parameters["is_ring"]:
            break
        step = np.ones((len(states), len(states))) if is_weights else np.zeros((len(states), len(states)))
        for row in range(height):
            table = cells(domain, domain)
            tables.append(((column * height + row, following * height + row), table))
            step = combine(step, table[np.ix_(states[:, row], states[:, row])])
        steps.append(step)
    sizes = [domain] * (height * columns)
    if not is_weights:
        sign = 1 if parameters["sense"] == "min-cost" else -1
        best = sign * _best_strip([sign * table for table in inner], [sign * table for table in steps])
        allowed = (
            [np.isfinite(table).astype(float) for table in inner],
            [np.isfinite(table).astype(float) for table in steps],
        )
        number, _ = _sum_strip(*allowed)
        return _instance(sizes, tables, Truth(count=number, optimum=best), parameters["sense"])
    total, by_column = _sum_strip(inner, steps)
    allowed = [(table > 0).astype(float) for table in inner], [(table > 0).astype(float) for table in steps]
    number, _ = _sum_strip(*allowed)
    marginals = None
    if total:
        marginals = [
            [
                float(Fraction(sum(w for w, s in zip(weights, states, strict=True) if s[row] == x), total))
                for x in range(domain)
            ]
            for weights in by_column
            for row in range(height)
        ]
    return _instance(sizes, tables, Truth(log_of(total), marginals, number))


def _sum_strip(inner: list[np.ndarray], steps: list[np.ndarray]) -> tuple[int, list[list[int]]]:
    """Return the sum of a strip, and that of each state of each column; a last step closes a ring."""
    is_whole = all((table % 1 == 0).all() for table in [*inner, *steps])
    number: Any = int if is_whole else Fraction
    exact = [np.array([number(x) for x in table], dtype=object) for table in inner]
    moves = [np.array([[number(x) for x in row] for row in table], dtype=object) for table in steps]
    count = len(inner)
    if len(steps) < count:
        forward, backward = [exact[0]], [np.array([1] * len(exact[0]), dtype=object)]
        for table, move in zip(exact[1:], moves, strict=True):
            forward.append(forward[-1].dot(move) * table)
        for table, move in zip(reversed(exact[1:]), reversed(moves), strict=True):
            backward.append(move.dot(backward[-1] * table))
        by_column = [list(a * b) for a, b in zip(forward, reversed(backward), strict=True)]
        return sum(by_column[0]), by_column
    weighted = [table[:, None] * move for table, move in zip(exact, moves, strict=True)]
    unit = np.array(np.eye(len(exact[0]), dtype=int).tolist(), dtype=object)
    before, behind = [unit], [unit]
    for move in weighted:
        before.append(before[-1].dot(move))
    for move in reversed(weighted):
        behind.append(move.dot(behind[-1]))
    behind.reverse()
    by_column = [list(np.diagonal(behind[c].dot(before[c]))) for c in range(count)]
    return sum(by_column[0]), by_column


def _best_strip(inner: list[np.ndarray], steps: list[np.ndarray]) -> float:
    """Return the least total of a strip."""
    if len(steps) < len(inner):
        best = inner[0]
        for table, move in zip(inner[1:], steps, strict=True):
            best = (best[:, None] + move).min(axis=0) + table
        return float(best.min())
    size = len(inner[0])
    best = np.where(np.eye(size, dtype=bool), 0.0, math.inf)
    for table, move in zip(inner, steps, strict=True):
        best = (best[:, :, None] + (table[:, None] + move)[None]).min(axis=1)
    return float(np.diagonal(best).min())


# Components: independent models of a few variables, each by contraction.


def draw_components(rng: random.Random) -> Parameters:
    """Draw a number of independent models."""
    return {
        "components": rng.choice([2, 5, 20, 60]),
        "variables": rng.randint(2, 4),
        "largest": rng.choice([3, 6, 40]),
        "zeros": rng.choice([0.0, 0.0, 0.2]),
        "sense": rng.choice(["probability", "probability", "min-cost", "max-cost"]),
    }


def make_components(parameters: Parameters, draws: random.Random) -> Instance:
    """Make components: sums multiply, optima add, marginals are those of the components."""
    numbers = np.random.default_rng(parameters["seed"])
    is_weights = parameters["sense"] == "probability"
    sizes: list[int] = []
    tables: Tables = []
    log_sum, marginals, number, optimum = 0.0, [], 1, 0.0
    for _ in range(parameters["components"]):
        own = [draws.choice([1, 2, 2, 3, parameters["largest"]]) for _ in range(parameters["variables"])]
        parts: Tables = []
        for _ in range(parameters["variables"] + 1):
            scope = tuple(draws.sample(range(len(own)), draws.randint(1, min(3, len(own)))))
            shape = [own[v] for v in scope]
            table = numbers.random(shape) + 0.1 if is_weights else numbers.integers(-99, 100, shape).astype(float)
            absorbing = 0.0 if is_weights else (math.inf if parameters["sense"] == "min-cost" else -math.inf)
            parts.append((scope, np.where(numbers.random(shape) < parameters["zeros"] / 2, absorbing, table)))
        spec = _instance(own, [], Truth(), parameters["sense"]).spec
        oracle = TableOracle(spec, parts, True)
        number *= oracle.count()
        if is_weights:
            log_sum += oracle.log_sum()
            marginals += [oracle.marginals(v) if oracle.is_possible() else [] for v in range(len(own))]
        optimum += float(oracle.totals(()).item())
        tables += [(tuple(v + len(sizes) for v in scope), table) for scope, table in parts]
        sizes += own
    if not is_weights:
        return _instance(
            sizes, tables, Truth(count=number, optimum=optimum if number else math.inf), parameters["sense"]
        )
    return _instance(sizes, tables, Truth(log_sum, marginals if number else None, number, optimum if number else None))


# Hidden Markov models, by the forward-backward algorithm in long doubles.


def draw_hidden_chain(rng: random.Random) -> Parameters:
    """Draw the sizes of a hidden Markov model."""
    states = rng.choice([2, 3, 7, 20, 60])
    return {"steps": rng.randint(2, min(150, 6000 // states)), "states": states, "symbols": rng.choice([2, 5, 40, 300])}


def make_hidden_chain(parameters: Parameters, draws: random.Random) -> Instance:
    """Make a hidden Markov model whose symbols are the evidence."""
    steps, states, symbols = (parameters[name] for name in ("steps", "states", "symbols"))
    numbers = np.random.default_rng(parameters["seed"])

    def rows(*shape: int) -> np.ndarray:
        table = numbers.random(shape) ** 3 + 1e-3
        return table / table.sum(axis=-1, keepdims=True)

    start, moves, emissions = rows(states), rows(states, states), rows(states, symbols)
    heard = [draws.randrange(symbols) for _ in range(steps)]
    tables: Tables = [((0,), start)]
    tables += [((t - 1, t), moves) for t in range(1, steps)]
    tables += [((t, steps + t), emissions) for t in range(steps)]
    children = [*range(steps), *range(steps, 2 * steps)]
    exact = np.longdouble
    logarithm, best = exact(0), np.zeros(states, dtype=exact)
    forward: list[np.ndarray] = []
    for t in range(steps):
        likelihood = emissions[:, heard[t]].astype(exact)
        part = (start if t == 0 else forward[-1] @ moves.astype(exact)) * likelihood
        best = (np.log(start) if t == 0 else (best[:, None] + np.log(moves)).max(axis=0)) + np.log(likelihood)
        logarithm += np.log(part.sum())
        forward.append(part / part.sum())
    backward = [np.ones(states, dtype=exact)]
    for t in range(steps - 1, 0, -1):
        part = moves.astype(exact) @ (backward[-1] * emissions[:, heard[t]])
        backward.append(part / part.sum())
    hidden = [a * b / (a * b).sum() for a, b in zip(forward, reversed(backward), strict=True)]
    marginals = [[float(p) for p in table] for table in hidden]
    marginals += [[float(x == symbol) for x in range(symbols)] for symbol in heard]
    truth = Truth(float(logarithm), marginals, None, float(best.max()))
    observed = {steps + t: symbol for t, symbol in enumerate(heard)}
    instance = _instance([states] * steps + [symbols] * steps, tables, truth, observed=observed)
    return instance._replace(spec={**instance.spec, "children": children})


# Two parts of a network: a chain whose posteriors are asked for, and a tree of tables that shift a state. Observations
# of leaves of the tree fix its root, or contradict each other far from the query.


def draw_parts(rng: random.Random) -> Parameters:
    """Draw the sizes of both parts."""
    return {
        "steps": rng.randint(1, 30),
        "states": rng.choice([2, 3, 7]),
        "nodes": rng.choice([3, 10, 40, 300]),
        "modulus": rng.choice([2, 3, 5]),
        "leaves": rng.randint(1, 4),
        "is_contradicted": rng.random() < 0.5,
    }


def make_parts(parameters: Parameters, draws: random.Random) -> Instance:
    """Make the parts. A node's state is its parent's, plus a number modulo the states."""
    steps, states, nodes, modulus = (parameters[name] for name in ("steps", "states", "nodes", "modulus"))
    numbers = np.random.default_rng(parameters["seed"])
    chain = numbers.random((steps, states, states)) + 0.1
    chain /= chain.sum(axis=-1, keepdims=True)
    tables: Tables = [((0,), chain[0, 0]), *(((t - 1, t), chain[t]) for t in range(1, steps))]
    marginals = [chain[0, 0]]
    for t in range(1, steps):
        marginals.append(marginals[-1] @ chain[t])
    tables.append(((steps,), np.full(modulus, 1 / modulus)))
    shifts, parents = [0], [0]
    for node in range(1, nodes):
        # Deep trees, so that observations lie far apart.
        parents.append(draws.randrange(max(0, node - 3), node))
        shift = draws.randrange(modulus)
        shifts.append((shifts[parents[-1]] + shift) % modulus)
        tables.append(((steps + parents[-1], steps + node), np.roll(np.eye(modulus), shift, axis=1)))
    root = draws.randrange(modulus)
    leaves = sorted(set(range(nodes)) - set(parents[1:])) or [0]
    chosen = draws.sample(leaves, min(len(leaves), parameters["leaves"]))
    observed = {steps + node: (root + shifts[node]) % modulus for node in chosen}
    log_sum = -math.log(modulus)
    if parameters["is_contradicted"] and len(chosen) > 1:
        observed[steps + chosen[0]] = (observed[steps + chosen[0]] + 1) % modulus
        log_sum = -math.inf
    posteriors = [table.tolist() for table in marginals]
    posteriors += [[float(x == (root + shift) % modulus) for x in range(modulus)] for shift in shifts]
    query = tuple(draws.sample(range(steps), draws.randint(1, min(steps, 3))))
    instance = _instance([states] * steps + [modulus] * nodes, tables, Truth(log_sum, posteriors), observed=observed)
    return instance._replace(spec={**instance.spec, "children": list(range(steps + nodes))}, query=query)


# Linear codes: checks modulo a prime. The allowed assignments are an affine space.


def draw_code(rng: random.Random) -> Parameters:
    """Draw the size of a linear code."""
    return {
        "variables": rng.choice([5, 12, 40, 120]),
        "checks": rng.choice([2, 6, 20, 60]),
        "weight": rng.choice([2, 3, 4, 6]),
        "window": rng.choice([7, 9]),
        "modulus": rng.choice([2, 2, 3]),
        "is_consistent": rng.random() < 0.8,
        "sense": rng.choice(["probability", "min-cost"]),
    }


def make_code(parameters: Parameters, draws: random.Random) -> Instance:
    """Make a code: checks of a few variables within a window, which keeps the width small."""
    count, modulus = parameters["variables"], parameters["modulus"]
    secret = [draws.randrange(modulus) for _ in range(count)]
    equations, tables = [], []
    is_weights = parameters["sense"] == "probability"
    for _ in range(parameters["checks"]):
        first = draws.randrange(max(1, count - parameters["window"] + 1))
        window = list(range(first, min(count, first + parameters["window"])))
        scope = tuple(draws.sample(window, min(len(window), parameters["weight"])))
        factors = [draws.randrange(1, modulus) for _ in scope]
        total = sum(factor * secret[v] for factor, v in zip(factors, scope, strict=True))
        total = total % modulus if parameters["is_consistent"] else draws.randrange(modulus)
        grid = np.indices([modulus] * len(scope))
        is_even = sum(factor * grid[axis] for axis, factor in enumerate(factors)) % modulus == total
        tables.append((scope, np.where(is_even, 1.0, 0.0) if is_weights else np.where(is_even, 0.0, math.inf)))
        row = [0] * (count + 1)
        for factor, v in zip(factors, scope, strict=True):
            row[v] = factor
        row[count] = total
        equations.append(row)
    reduced = _reduced(equations, modulus)
    is_possible = not any(row[count] and not any(row[:count]) for row in reduced)
    number = modulus ** (count - len(reduced)) if is_possible else 0
    sizes = [modulus] * count
    if not is_weights:
        return _instance(sizes, tables, Truth(count=number, optimum=0.0 if is_possible else math.inf), "min-cost")
    fixed = {}
    for row in reduced if is_possible else []:
        members = [v for v in range(count) if row[v]]
        if len(members) == 1:
            fixed[members[0]] = row[count] * pow(row[members[0]], -1, modulus) % modulus
    marginals = [
        [float(fixed[v] == x) for x in range(modulus)] if v in fixed else [1 / modulus] * modulus for v in range(count)
    ]
    best = 0.0 if is_possible else None
    return _instance(sizes, tables, Truth(log_of(number), marginals if is_possible else None, number, best))


def _reduced(rows: list[list[int]], modulus: int) -> list[list[int]]:
    """Return the rows in reduced echelon form, without zero rows."""
    rows, reduced = [list(row) for row in rows], []
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((row for row in rows if row[column]), None)
        if pivot is None:
            continue
        rows.remove(pivot)
        inverse = pow(pivot[column], -1, modulus)
        pivot = [x * inverse % modulus for x in pivot]
        rows = [[(x - row[column] * y) % modulus for x, y in zip(row, pivot, strict=True)] for row in rows]
        reduced = [[(x - row[column] * y) % modulus for x, y in zip(row, pivot, strict=True)] for row in reduced]
        reduced.append(pivot)
    return reduced


# Permutations: the sum over all of them is a permanent.


def draw_permutation(rng: random.Random) -> Parameters:
    """Draw the size of a matrix."""
    return {
        "size": rng.randint(2, 7),
        "zeros": rng.choice([0.0, 0.2, 0.5]),
        "sense": rng.choice(["probability", "min-cost"]),
    }


def make_permutation(parameters: Parameters, draws: random.Random) -> Instance:
    """Make an assignment problem: a row's variable is its column, and no two rows share one."""
    size, is_weights = parameters["size"], parameters["sense"] == "probability"
    lost = [[draws.random() < parameters["zeros"] for _ in range(size)] for _ in range(size)]
    matrix = [[draws.randint(1, 20) for _ in range(size)] for _ in range(size)]
    differ = np.where(np.eye(size, dtype=bool), 0.0 if is_weights else math.inf, 1.0 if is_weights else 0.0)
    absorbing = 0.0 if is_weights else math.inf
    unary = [
        [absorbing if gone else float(x) for gone, x in zip(*row, strict=True)]
        for row in zip(lost, matrix, strict=True)
    ]
    tables: Tables = [((a, b), differ) for a, b in itertools.combinations(range(size), 2)]
    tables += [((v,), np.array(row)) for v, row in enumerate(unary)]
    weights = [[0 if gone else x for gone, x in zip(*row, strict=True)] for row in zip(lost, matrix, strict=True)]
    number = permanent([[int(x > 0) for x in row] for row in weights])
    if not is_weights:
        orders = itertools.permutations(range(size))
        best = min((sum(unary[v][x] for v, x in enumerate(order)) for order in orders), default=math.inf)
        return _instance([size] * size, tables, Truth(count=number, optimum=best), "min-cost")
    total = permanent(weights)
    marginals = None
    if total:
        marginals = [
            [float(Fraction(weights[v][x] * permanent(_minor(weights, v, x)), total)) for x in range(size)]
            for v in range(size)
        ]
    return _instance([size] * size, tables, Truth(log_of(total), marginals, number))


def permanent(matrix: list[list[int]]) -> int:
    """Return a permanent, row by row over sets of columns."""
    sums = {0: 1}
    for row in matrix:
        grown: dict[int, int] = {}
        for columns, total in sums.items():
            for x, weight in enumerate(row):
                if weight and not columns >> x & 1:
                    grown[columns | 1 << x] = grown.get(columns | 1 << x, 0) + total * weight
        sums = grown
    return sums.get((1 << len(matrix)) - 1, 0)


def _minor(matrix: list[list[int]], row: int, column: int) -> list[list[int]]:
    return [[x for n, x in enumerate(cells) if n != column] for v, cells in enumerate(matrix) if v != row]


# Colourings of graphs whose chromatic polynomial is known. By symmetry all posteriors are uniform.


def draw_colouring(rng: random.Random) -> Parameters:
    """Draw a graph and a number of colours."""
    graph = rng.choice(["tree", "tree", "cycle", "complete", "wheel", "ladder"])
    vertices = rng.randint(3, 6) if graph == "complete" else rng.choice([4, 9, 30, 150])
    return {
        "graph": graph,
        "vertices": vertices,
        "colours": rng.choice([2, 3, 4, 7, 40] if graph == "tree" else [2, 3, 4, 7]),
    }


def make_colouring(parameters: Parameters, draws: random.Random) -> Instance:
    """Make a colouring problem."""
    n, q, graph = parameters["vertices"], parameters["colours"], parameters["graph"]
    cycle = [(v, (v + 1) % n) for v in range(n)]
    if graph == "tree":
        edges = [(draws.randrange(v), v) for v in range(1, n)]
        number = q * (q - 1) ** (n - 1)
    elif graph == "cycle":
        edges, number = cycle, (q - 1) ** n + (-1) ** n * (q - 1)
    elif graph == "complete":
        edges, number = list(itertools.combinations(range(n), 2)), math.perm(q, n)
    elif graph == "wheel":
        edges = [*cycle, *((v, n) for v in range(n))]
        number = q * ((q - 2) ** n + (-1) ** n * (q - 2))
    else:
        edges = [(2 * v, 2 * v + 1) for v in range(n)]
        edges += [(2 * v + row, 2 * v + 2 + row) for v in range(n - 1) for row in range(2)]
        number = q * (q - 1) * (q * q - 3 * q + 3) ** (n - 1)
    count = 1 + max(max(edge) for edge in edges)
    differ = 1.0 - np.eye(q)
    marginals = [[1 / q] * q for _ in range(count)] if number else None
    return _instance([q] * count, [(edge, differ) for edge in edges], Truth(log_of(number), marginals, number))


# Planar Ising models without a field, by the determinant of Kac and Ward.


def draw_ising(rng: random.Random) -> Parameters:
    """Draw the sides of a grid."""
    return {"rows": rng.randint(2, 11), "columns": rng.randint(2, 11), "coupling": rng.choice([0.1, 0.5, 1.0])}


def make_ising(parameters: Parameters, draws: random.Random) -> Instance:
    """Make an Ising grid with random couplings; by symmetry both spins are equally probable."""
    rows, columns = parameters["rows"], parameters["columns"]
    points = list(itertools.product(range(rows), range(columns)))
    couplings = {}
    for row, column in points:
        for end in ((row + 1, column), (row, column + 1)):
            if end[0] < rows and end[1] < columns:
                couplings[(row, column), end] = draws.gauss(0, parameters["coupling"])
    tables: Tables = []
    for (start, end), coupling in couplings.items():
        same, other = math.exp(coupling), math.exp(-coupling)
        tables.append(((points.index(start), points.index(end)), np.array([[same, other], [other, same]])))
    marginals = [[0.5, 0.5] for _ in points]
    return _instance([2] * len(points), tables, Truth(kac_ward(couplings, len(points)), marginals, 2 ** len(points)))


def kac_ward(couplings: dict[Any, float], count: int) -> float:
    """Return the logarithm of the sum of a planar Ising model of straight edges between points of the plane."""
    directed = [(a, b, j) for (a, b), j in couplings.items()] + [(b, a, j) for (a, b), j in couplings.items()]
    matrix = np.eye(len(directed), dtype=complex)
    for n, (a, b, j) in enumerate(directed):
        for m, (c, d, _) in enumerate(directed):
            if b == c and d != a:
                one, other = complex(b[0] - a[0], b[1] - a[1]), complex(d[0] - c[0], d[1] - c[1])
                matrix[n, m] -= math.tanh(j) * np.exp(0.5j * np.angle(other / one))
    _, logarithm = np.linalg.slogdet(matrix)
    return float(count * math.log(2) + sum(math.log(math.cosh(j)) for j in couplings.values()) + logarithm / 2)


# Planted optima: tables whose least cost is at a hidden assignment, and cost shifting that hides it.


def draw_planted(rng: random.Random) -> Parameters:
    """Draw the size of a problem with a planted optimum."""
    return {
        "variables": rng.choice([6, 20, 60, 200]),
        "domains": rng.choice([[2], [2, 3, 4], [1, 2, 3, 40], [5, 9]]),
        "window": rng.choice([2, 3, 4, 5]),
        "shifts": rng.choice([0, 1, 5]),
        "largest": rng.choice([1, 9, 1000]),
        "forbidden": rng.choice([0.0, 0.1, 0.5]),
        "sense": rng.choice(["min-cost", "max-cost"]),
    }


def make_planted(parameters: Parameters, draws: random.Random) -> Instance:
    """Make a problem of tables over variables within a window, which keeps the width small."""
    count = parameters["variables"]
    numbers = np.random.default_rng(parameters["seed"])
    sizes = [draws.choice(parameters["domains"]) for _ in range(count)]
    hidden = [draws.randrange(size) for size in sizes]
    scopes, arrays, optimum = [], [], 0
    for first in range(count):
        window = range(first, min(count, first + parameters["window"]))
        others = [v for v in window if v != first]
        for _ in range(draws.choice([1, 1, 2])):
            scope = [first, *draws.sample(others, min(len(others), draws.choice([1, 1, 2])))]
            while math.prod(sizes[v] for v in scope) > 4000:
                scope.pop()
            shape = [sizes[v] for v in scope]
            table = numbers.integers(0, parameters["largest"] + 1, shape).astype(float)
            table[numbers.random(shape) < parameters["forbidden"]] = math.inf
            table[tuple(hidden[v] for v in scope)] = 0
            constant = int(numbers.integers(-50, 50))
            scopes.append(scope)
            arrays.append(table + constant)
            optimum += constant
    for _ in range(parameters["shifts"] * len(scopes)):
        one = draws.randrange(len(scopes))
        v = draws.choice(scopes[one])
        other = draws.choice([n for n, scope in enumerate(scopes) if v in scope])
        shift = numbers.integers(-99, 100, sizes[v]).astype(float)
        for n, sign in ((one, 1), (other, -1)):
            shape = [sizes[v] if u == v else 1 for u in scopes[n]]
            arrays[n] = arrays[n] + sign * shift.reshape(shape)
    sign = 1 if parameters["sense"] == "min-cost" else -1
    tables: Tables = [(tuple(scope), sign * table) for scope, table in zip(scopes, arrays, strict=True)]
    return _instance(sizes, tables, Truth(optimum=sign * optimum), parameters["sense"])


# Relations of few tuples over large domains, by a join of all of them.


def draw_relations(rng: random.Random) -> Parameters:
    """Draw the sizes of relations."""
    domain = rng.choice([5, 40, 300, 900])
    arity = rng.choice([arity for arity in (2, 3, 5, 7, 12, 20) if domain**arity <= LARGEST_LISTED])
    return {
        "relations": rng.choice([1, 2, 4, 9]),
        "arity": arity,
        "shared": rng.choice([shared for shared in (1, 1, 2, 4) if shared < arity]),
        "domain": domain,
        "tuples": rng.choice([1, 4, 30]),
        "sense": rng.choice(["probability", "min-cost", "max-cost"]),
    }


def make_relations(parameters: Parameters, draws: random.Random) -> Instance:
    """Make a chain of relations. Shared variables take few values, so that tuples meet."""
    arity, domain, shared = (parameters[name] for name in ("arity", "domain", "shared"))
    step = max(1, arity - shared)
    count = arity + step * (parameters["relations"] - 1)
    few = [draws.sample(range(domain), min(domain, 3)) for _ in range(count)]
    is_weights = parameters["sense"] == "probability"
    # Values of the variables so far, and what they are worth; the first relation begins with none.
    listed, joined, worth = [], np.zeros((1, 0), dtype=np.int32), np.full(1, 1.0 if is_weights else 0.0)
    for number in range(parameters["relations"]):
        scope = tuple(range(number * step, number * step + arity))
        ends = set(scope[:shared]) | set(scope[-shared:])
        rows = {
            tuple(draws.choice(few[v]) if v in ends else draws.randrange(domain) for v in scope)
            for _ in range(parameters["tuples"])
        }
        cells = {
            row: float(draws.randint(1, 9)) if is_weights else float(draws.randint(-99, 99)) for row in sorted(rows)
        }
        known = 0 if number == 0 else arity - step
        tuples, values = np.array(list(cells), dtype=np.int32), np.array(list(cells.values()))
        lefts, rights = _matches(joined[:, joined.shape[1] - known :], tuples[:, :known], domain)
        if len(lefts) > MOST_JOINED:
            return make_relations({**parameters, "tuples": max(1, parameters["tuples"] // 2)}, draws)
        joined = np.concatenate([joined[lefts], tuples[rights, known:]], axis=1)
        worth = worth[lefts] * values[rights] if is_weights else worth[lefts] + values[rights]
        listed.append(Listed(scope, tuples, list(cells.values())))
    sizes = [domain] * count
    if not is_weights:
        best = min if parameters["sense"] == "min-cost" else max
        optimum = best(worth.tolist(), default=math.inf)
        truth = Truth(count=len(joined), optimum=optimum)
        return _instance(sizes, [], truth, parameters["sense"])._replace(listed=tuple(listed))
    if not len(joined):
        return _instance(sizes, [], Truth(-math.inf, None, 0, None))._replace(listed=tuple(listed))
    total = math.fsum(worth)
    marginals = [np.bincount(joined[:, v], weights=worth / total, minlength=domain).tolist() for v in range(count)]
    truth = Truth(math.log(total), marginals, len(joined), math.log(worth.max()))
    return _instance(sizes, [], truth)._replace(listed=tuple(listed))


def _matches(ends: np.ndarray, starts: np.ndarray, domain: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of equal rows, as their numbers on both sides."""
    powers = domain ** np.arange(ends.shape[1], dtype=np.int64)
    left, right = ends @ powers, starts @ powers
    order = np.argsort(right, kind="stable")
    first, last = (np.searchsorted(right[order], left, side) for side in ("left", "right"))
    counts = last - first
    before = np.cumsum(counts) - counts
    lefts = np.repeat(np.arange(len(left)), counts)
    return lefts, order[np.arange(len(lefts)) + np.repeat(first - before, counts)]


# One long relation, almost all of whose tuples share a value of the first variable.


def draw_skewed(rng: random.Random) -> Parameters:
    """Draw the sizes of a skewed relation."""
    domain = rng.choice([3, 40, 5000])
    return {
        "domain": domain,
        "rows": rng.choice([rows for rows in (3, 10, 30, 300) if domain * rows * rows <= LARGEST_LISTED]),
        "rare": rng.choice([0, 5]),
        "sense": rng.choice(["probability", "min-cost", "max-cost"]),
    }


def make_skewed(parameters: Parameters, draws: random.Random) -> Instance:
    """Make a relation of three variables, and tables of its first and its last."""
    numbers = np.random.default_rng(parameters["seed"])
    domain, size = parameters["domain"], parameters["rows"]
    grid = np.stack(np.meshgrid(np.arange(size), np.arange(size), indexing="ij"), axis=-1).reshape(-1, 2)
    rows = np.concatenate([np.zeros((len(grid), 1), dtype=np.int64), grid], axis=1)
    rare = [
        [draws.randrange(1, domain), draws.randrange(size), draws.randrange(size)] for _ in range(parameters["rare"])
    ]
    rows = np.unique(np.concatenate([rows, np.array(rare, dtype=np.int64).reshape(-1, 3)]), axis=0)
    rows = rows[numbers.permutation(len(rows))].astype(np.int32)
    is_weights = parameters["sense"] == "probability"
    cells, first, last = (
        numbers.integers(1, 10, shape).astype(float) if is_weights else numbers.integers(-99, 100, shape).astype(float)
        for shape in (len(rows), domain, (size, 2))
    )
    # Worth of each tuple and value of a fourth variable.
    combine: Any = np.multiply if is_weights else np.add
    worth = combine(combine(cells, first[rows[:, 0]])[:, None], last[rows[:, 2]])
    sizes = [domain, size, size, 2]
    tables: Tables = [((0,), first), ((2, 3), last)]
    listed = (Listed((0, 1, 2), rows, cells.tolist()),)
    best = worth.min() if parameters["sense"] == "min-cost" else worth.max()
    if not is_weights:
        truth = Truth(count=worth.size, optimum=float(best))
        return _instance(sizes, tables, truth, parameters["sense"])._replace(listed=listed)
    sums = [np.bincount(rows[:, v], worth.sum(axis=1), sizes[v]) for v in range(3)] + [worth.sum(axis=0)]
    marginals = [(table / worth.sum()).tolist() for table in sums]
    truth = Truth(math.log(worth.sum()), marginals, worth.size, math.log(best))
    return _instance(sizes, tables, truth)._replace(listed=listed)


FAMILIES: dict[str, tuple[Callable[[random.Random], Parameters], Callable[[Parameters, random.Random], Instance]]] = {
    "strip": (draw_strip, make_strip),
    "components": (draw_components, make_components),
    "hidden chain": (draw_hidden_chain, make_hidden_chain),
    "parts": (draw_parts, make_parts),
    "code": (draw_code, make_code),
    "permutation": (draw_permutation, make_permutation),
    "colouring": (draw_colouring, make_colouring),
    "ising": (draw_ising, make_ising),
    "planted": (draw_planted, make_planted),
    "relations": (draw_relations, make_relations),
    "skewed": (draw_skewed, make_skewed),
}
"""Family -> the function that draws its parameters, and the function that makes an instance."""
