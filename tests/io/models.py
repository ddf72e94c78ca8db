"""Random small models for the formats, and what two equal models have in common."""

from __future__ import annotations

import itertools
import math
import string

import numpy as np
from hypothesis import strategies as st

from elimina.model.model import Model
from elimina.model.table import FORBIDDEN, Table
from elimina.model.variable import Variable, texts_of

SIZES = st.lists(st.sampled_from([1, 2, 2, 3, 4]), max_size=5)
NAMES = st.text(string.ascii_letters + string.digits + "_-<>=éλ .,|(){}[]#/:;", min_size=1, max_size=8)
PLAIN = SIZES.map(lambda sizes: [Variable(f"x{i}", s) for i, s in enumerate(sizes)])
WORDS = st.from_regex(r"[A-Za-z_0-9é][A-Za-z_0-9.<>&#/-]*", fullmatch=True)
XML_NAMES = NAMES | st.text("&<>\"'\\%;]]> \t\n\r\x85\u00a0\u2028é\ufffd😀ab", max_size=6)
EXTREMES = [0.0, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 0.1, 1 / 3, 1e-17, 123456.789, 1e16]


@st.composite
def named_variables(
    draw, names: st.SearchStrategy[str] = NAMES, states: st.SearchStrategy[str] = NAMES
) -> list[Variable]:
    names = draw(st.lists(names, max_size=4, unique=True))
    states = [draw(st.none() | st.lists(states, min_size=1, max_size=3, unique=True)) for _ in names]
    return [Variable(n, len(la) if la else 2, la) for n, la in zip(names, states, strict=True)]


@st.composite
def scopes(draw, count: int, most: int = 5) -> list[list[int]]:
    """Scopes of up to three variables, empty and repeated ones included."""
    if count == 0:
        return draw(st.lists(st.just([]), max_size=2))
    return draw(st.lists(st.lists(st.integers(0, count - 1), max_size=3, unique=True), max_size=most))


@st.composite
def probability_models(draw) -> Model:
    sizes = draw(SIZES)
    number = st.sampled_from(EXTREMES) | st.floats(0, 1e300, allow_nan=False)
    factors = [Table(scope, _drawn(draw, [sizes[v] for v in scope], number)) for scope in draw(scopes(len(sizes)))]
    return Model([Variable(f"x{i}", s) for i, s in enumerate(sizes)], factors, sense="probability")


@st.composite
def networks(draw, variables: st.SearchStrategy[list[Variable]] = PLAIN) -> Model:
    """Bayesian networks with one factor for each variable, in any order (rows need not sum to 1)."""
    variables = draw(variables)
    order = draw(st.permutations(range(len(variables))))
    factors = []
    for place, v in enumerate(order):
        parents = draw(st.lists(st.sampled_from(order[:place]), max_size=2, unique=True)) if place else []
        shape = [variables[u].size for u in (*parents, v)]
        factors.append(Table([*parents, v], _drawn(draw, shape, st.sampled_from(EXTREMES) | st.floats(0, 1))))
    return Model(variables, factors, sense="probability", children=order, check=False)


@st.composite
def integer_models(draw, *, lowest: int = 0, sense: str = "min-cost") -> Model:
    """Integer costs up to 2^60, forbidden entries, sparse tables, a constant, and perhaps an upper bound."""
    sizes = draw(SIZES)
    width = draw(st.sampled_from([3, 1000, 2**60]))
    forbidden = FORBIDDEN if sense == "min-cost" else -FORBIDDEN
    cost = st.integers(max(lowest, -width), width) | st.just(forbidden)
    factors = [_table(draw, scope, [sizes[v] for v in scope], cost) for scope in draw(scopes(len(sizes)))]
    sign = 1 if sense == "min-cost" else -1
    bound = draw(st.none() | st.integers(0, 2 * width).map(lambda b: sign * b))
    constant = draw(st.sampled_from([0, 7]))
    variables = [Variable(f"x{i}", s) for i, s in enumerate(sizes)]
    return Model(variables, factors, sense=sense, constant=constant, upper_bound=bound)


@st.composite
def decimal_models(draw) -> Model:
    """Floating-point costs with forbidden entries, beside integer tables, over variables with any names."""
    variables = draw(named_variables())
    sense = draw(st.sampled_from(["min-cost", "max-cost"]))
    worst = math.inf if sense == "min-cost" else -math.inf
    number = draw(
        st.sampled_from(
            [
                st.floats(-1e15, 1e15, allow_nan=False),
                st.sampled_from([*EXTREMES[:3], 0.1, -0.3, 1e22, 1e-7, 2.5]),
                st.decimals(-100, 100, places=3).map(float),
            ]
        )
    )
    factors = []
    for scope in draw(scopes(len(variables))):
        shape = [variables[v].size for v in scope]
        if draw(st.integers(0, 3)) == 0:
            factors.append(_table(draw, scope, shape, st.integers(-50, 50)))
        else:
            factors.append(Table(scope, _drawn(draw, shape, number | st.just(worst))))
    return Model(variables, factors, sense=sense, constant=draw(st.sampled_from([0, 0.125, -3])))


def _drawn(draw, shape: list[int], number: st.SearchStrategy) -> np.ndarray:
    size = math.prod(shape)
    values = draw(st.lists(number, min_size=size, max_size=size))
    return np.array(values, dtype=np.int64 if all(isinstance(v, int) for v in values) else np.float64).reshape(shape)


def _table(draw, scope: list[int], shape: list[int], cost: st.SearchStrategy) -> Table:
    values = _drawn(draw, shape, cost)
    if not scope or draw(st.booleans()):
        return Table(scope, values)
    default = int(values.flat[0])
    rows = np.argwhere(values != default)
    return Table(scope, values[tuple(rows.T)], sizes=shape, rows=rows, default=default)


def assert_same_factors(left: Model, right: Model) -> None:
    """Same domains and, factor by factor, the same scopes and values."""
    assert left.sizes == right.sizes
    assert left.sense == right.sense
    assert [f.scope for f in left.factors] == [f.scope for f in right.factors]
    for a, b in zip(left.factors, right.factors, strict=True):
        np.testing.assert_array_equal(a.dense(), b.dense())


def assert_same_objective(left: Model, right: Model) -> None:
    """Same domains, and at every assignment the same score, or no solution in both."""
    assert left.sizes == right.sizes
    assert left.sense == right.sense
    for assignment in itertools.product(*map(range, left.sizes)):
        scores = [_score(model, assignment) for model in (left, right)]
        assert scores[0] == scores[1], assignment


def _score(model: Model, assignment: tuple[int, ...]) -> float | None:
    score = model.score(assignment)
    sign = 1 if model.sense == "min-cost" else -1
    excluded = model.upper_bound is not None and sign * score >= sign * model.upper_bound
    return None if excluded or math.isinf(score) else score


def random_network(seed: int, count: int, *, most_parents: int = 3) -> Model:
    """A Bayesian network of any structure and sizes; its factors and each list of parents are in no special order."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([2, 2, 3, 4, 5], count)
    names = [f"n{i}" for i in rng.permutation(count)]
    variables = [Variable(n, s, [f"{n}_s{x}" for x in range(s)]) for n, s in zip(names, sizes, strict=True)]
    order = rng.permutation(count)
    factors, children = [], []
    for place in rng.permutation(count):
        parents = rng.permutation(order[:place])[: rng.integers(0, most_parents + 1)]
        scope = [*map(int, parents), int(order[place])]
        values = rng.dirichlet(np.ones(sizes[scope[-1]]), [sizes[p] for p in parents])
        values[(rng.random(values.shape) < 0.2) & (values < values.max(axis=-1, keepdims=True))] = 0
        values /= values.sum(axis=-1, keepdims=True)
        factors.append(Table(scope, values))
        children.append(scope[-1])
    return Model(variables, factors, sense="probability", children=children, name=f"random {seed}")


def assert_same_network(left: Model, right: Model, *, tolerance: float = 0.0) -> None:
    """Same variables by name, states, parents (in any order) and distributions, whatever the order of everything."""
    assert sorted(v.name for v in left.variables) == sorted(v.name for v in right.variables)
    assert len(left.factors) == len(right.factors)
    other = {right.variables[c].name: f for c, f in zip(right.children, right.factors, strict=True)}
    for child, factor in zip(left.children, left.factors, strict=True):
        names = [left.variables[u].name for u in factor.scope]
        match = other[left.variables[child].name]
        theirs = [right.variables[u].name for u in match.scope]
        assert sorted(names) == sorted(theirs)
        for name in names:
            a, b = left.variables[left.index(name)], right.variables[right.index(name)]
            assert texts_of(a) == texts_of(b)
        values = np.transpose(match.dense(), [theirs.index(n) for n in names])
        np.testing.assert_allclose(values, factor.dense(), rtol=0, atol=tolerance)
