"""Random binary problems: random, scale-free and grid networks, and graph colouring.

The first three are those of section 8.1 of F. Fioretto, E. Pontelli, W. Yeoh and R. Dechter, "Accelerating exact and
approximate inference for (distributed) discrete optimization with GPUs", Constraints 23 (2018). Their costs are
integers, uniform in 0..100; in each table the share ``p2`` of the entries, rounded to a whole number of them, is
forbidden. All graphs are connected. The same arguments give the same model under the same release of NumPy.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable

import numpy as np

from elimina import arguments
from elimina.errors import InputError
from elimina.model.model import Model
from elimina.model.table import FORBIDDEN, Table
from elimina.model.variable import Variable
from elimina.number_texts import counted
from elimina.option_names import option

LARGEST_COST = 100
_MAX_CELLS = 10**8
_MAX_VARIABLES = 10**5
_MAX_PAIRS = 10**7
Edge = tuple[int, int]


@arguments.with_checked_keywords()
def random_model(n: int, d: int, p1: float, p2: float = 0.5, seed: int = 0) -> Model:
    """Return a random network: a uniform random spanning tree and uniform random further edges.

    The graph has floor(p1 * n * (n - 1) / 2) + 1 edges, but at most one for each pair. The paper prints floor(p1 * n *
    (n - 1)), about twice as many; but the authors' own instance for n = 10 and p1 = 0.3 has 14 functions, and the
    widths of their Table 1 fit only this count. At n = 10 and p1 = 0.2, all graphs have width 2; without the "+ 1",
    they would have 9 edges, and thus be trees.

    Args:
        n: Number of variables.
        d: Number of values of each variable.
        p1: Density of the graph, from 0 to 1.
        p2: Tightness: the share of forbidden entries in each table, from 0 to 1.
        seed: Random seed; equal seeds give equal models.

    Raises:
        InputError: An argument is out of range, or the density is too low to connect the graph.
    """
    _check(d, p1=p1, p2=p2)
    if n < 1:
        raise InputError(f"a random network needs at least 1 variable, not {n}")
    pairs = n * (n - 1) // 2
    # Adding 1e-9 keeps a product that should be whole, such as 0.7 * 90, from falling below the whole number.
    count = min(pairs, math.floor(p1 * n * (n - 1) / 2 + 1e-9) + 1)
    if count < n - 1:
        raise InputError(
            f"density {p1} gives {counted(count, 'edge')}; {n} variables need {n - 1} to be connected: "
            f"choose a density ({option('p1')}) of at least {math.ceil(200 / n) / 100:g}"
        )
    _check_size(n, count, d)
    if pairs > _MAX_PAIRS:
        raise InputError(f"{n} variables have {pairs} pairs to draw from, more than {_MAX_PAIRS}; ask for less")
    rng = np.random.default_rng(seed)
    edges = set(_random_tree(n, rng))
    missing = [(a, b) for a in range(n) for b in range(a + 1, n) if (a, b) not in edges]
    edges.update(missing[i] for i in rng.choice(len(missing), count - len(edges), replace=False).tolist())
    return _model(f"random-n{n}-d{d}-p{p1:g}-t{p2:g}-s{seed}", n, d, edges, p2, rng)


@arguments.with_checked_keywords()
def scale_free_model(n: int, d: int, p2: float = 0.5, seed: int = 0) -> Model:
    """Return a Barabasi-Albert network with 2 (n - 2) + 1 edges.

    The first two variables are connected. Each further one is connected to two distinct earlier ones, drawn with
    probabilities proportional to their numbers of edges.

    Args:
        n: Number of variables, at least 2.
        d: Number of values of each variable.
        p2: Tightness: the share of forbidden entries in each table, from 0 to 1.
        seed: Random seed.

    Raises:
        InputError: An argument is out of range.
    """
    _check(d, p2=p2)
    if n < 2:
        raise InputError(f"a scale-free network needs at least 2 variables, not {n}")
    _check_size(n, 2 * n - 3, d)
    rng = np.random.default_rng(seed)
    edges = [(0, 1)]
    degree = np.zeros(n)
    degree[:2] = 1
    for v in range(2, n):
        chosen = rng.choice(v, 2, replace=False, p=degree[:v] / degree[:v].sum())
        edges += [(int(u), v) for u in chosen]
        degree[chosen] += 1
        degree[v] = 2
    return _model(f"scalefree-n{n}-d{d}-t{p2:g}-s{seed}", n, d, edges, p2, rng)


@arguments.with_checked_keywords()
def grid_model(side: int, d: int, p2: float = 0.5, seed: int = 0, columns: int | None = None) -> Model:
    """Return a grid, each variable connected to its neighbours in its row and column.

    Args:
        side: Number of rows, and of columns unless these are given.
        d: Number of values of each variable.
        p2: Tightness: the share of forbidden entries in each table, from 0 to 1.
        seed: Random seed.
        columns: Number of columns.

    Raises:
        InputError: An argument is out of range.
    """
    _check(d, p2=p2)
    width = side if columns is None else columns
    if side < 1 or width < 1:
        raise InputError(f"a grid needs a side of at least 1, not {min(side, width)}")
    _check_size(side * width, 2 * side * width - side - width, d)
    cells = [(row, column) for row in range(side) for column in range(width)]
    edges = [(r * width + c, r * width + c + 1) for r, c in cells if c + 1 < width]
    edges += [(r * width + c, (r + 1) * width + c) for r, c in cells if r + 1 < side]
    rng = np.random.default_rng(seed)
    return _model(f"grid-{side}x{width}-d{d}-t{p2:g}-s{seed}", side * width, d, edges, p2, rng)


@arguments.with_checked_keywords()
def coloring_model(n: int, colors: int, p1: float, seed: int = 0) -> Model:
    """Return the colouring problem of a graph as in ``random_model``: an edge costs 1 if both ends have one colour.

    Args:
        n: Number of variables.
        colors: Number of values of each variable.
        p1: Density of the graph, from 0 to 1.
        seed: Random seed.

    Raises:
        InputError: An argument is out of range, or the density is too low to connect the graph.
    """
    model = random_model(n, colors, p1, 0, seed)
    clash = np.eye(colors, dtype=np.int64)
    factors = [Table(factor.scope, clash) for factor in model.factors]
    return Model(model.variables, factors, name=f"coloring-n{n}-d{colors}-p{p1:g}-s{seed}")


def maximized(model: Model) -> Model:
    """Return a model with the same tables as gains to maximise; forbidden combinations stay forbidden."""
    factors = [Table(f.scope, np.where(f.values == FORBIDDEN, -FORBIDDEN, f.values)) for f in model.factors]
    return Model(model.variables, factors, sense="max-cost", name=f"{model.name}-max")


def _check(d: int, **shares: float) -> None:
    if d < 1:
        raise InputError(f"variables need at least 1 value, not {d}")
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise InputError(f"{name} is a share from 0 to 1, not {share}")


def _check_size(n: int, edges: int, d: int) -> None:
    if n > _MAX_VARIABLES:
        raise InputError(f"{n} variables are more than {_MAX_VARIABLES}; ask for less")
    if edges * d * d > _MAX_CELLS:
        raise InputError(f"{edges} tables of {d} x {d} costs are more than {_MAX_CELLS} in all; ask for less")


def _random_tree(n: int, rng: np.random.Generator) -> list[Edge]:
    """Draw a labelled tree uniformly, by decoding a random Pruefer sequence."""
    if n < 2:
        return []
    sequence = rng.integers(0, n, n - 2).tolist()
    degree = (1 + np.bincount(sequence, minlength=n)).tolist()
    leaves = [v for v in range(n) if degree[v] == 1]
    edges = []
    for v in sequence:
        leaf = heapq.heappop(leaves)
        edges.append((min(leaf, v), max(leaf, v)))
        degree[v] -= 1
        if degree[v] == 1:
            heapq.heappush(leaves, v)
    return [*edges, (min(leaves), max(leaves))]


def _model(name: str, n: int, d: int, edges: Iterable[Edge], p2: float, rng: np.random.Generator) -> Model:
    forbidden = round(p2 * d * d)
    factors = []
    for edge in sorted(edges):
        values = rng.integers(0, LARGEST_COST, d * d, endpoint=True)
        values[rng.permutation(d * d)[:forbidden]] = FORBIDDEN
        factors.append(Table(edge, values.reshape(d, d)))
    return Model([Variable(f"x{i}", d) for i in range(n)], factors, name=name)
