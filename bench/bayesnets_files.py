"""Bayesian networks as arrays, so that elimina and its peers are given the same numbers, and the cases asked of them.

Needs numpy alone: both elimina's environment and the peers' import it. `bayesnets_export.py` writes the networks.
"""

from __future__ import annotations

import math
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

KINDS = ("none", "ten", "half")
"""Observed in a case: nothing, ten variables, half of the variables."""
UNOBSERVED = -1
TIMED_RUNS = 5

Case = NDArray[np.int16]
"""A value for each variable, or UNOBSERVED."""


class Network(NamedTuple):
    """A Bayesian network whose variables are numbered.

    Attributes:
        name: Name of its file, without suffixes.
        sizes: Domain sizes.
        parents: Parents of each variable, in the order of its table's axes.
        tables: Table of each variable: one axis a parent, then its own; float64, rows that sum to 1.
    """

    name: str
    sizes: tuple[int, ...]
    parents: tuple[tuple[int, ...], ...]
    tables: tuple[NDArray[np.float64], ...]


class Cases(NamedTuple):
    """Evidence, one row a case.

    Attributes:
        kinds: Kind of each case: one of KINDS.
        values: int16 of shape (cases, variables); UNOBSERVED where nothing was seen.
    """

    kinds: NDArray[np.str_]
    values: NDArray[np.int16]


def save(path: Path, network: Network) -> None:
    np.savez_compressed(
        path,
        sizes=np.array(network.sizes),
        parents=np.array([p for parents in network.parents for p in parents], dtype=np.int64),
        counts=np.array([len(parents) for parents in network.parents]),
        cells=np.concatenate([table.ravel() for table in network.tables]),
    )


def load(path: Path) -> Network:
    with np.load(path) as stored:
        sizes = tuple(stored["sizes"].tolist())
        ends = np.cumsum(stored["counts"])[:-1]
        parents = tuple(tuple(part.tolist()) for part in np.split(stored["parents"], ends))
        shapes = [tuple(sizes[v] for v in (*p, child)) for child, p in enumerate(parents)]
        parts = np.split(stored["cells"], np.cumsum([np.prod(shape) for shape in shapes])[:-1])
    tables = tuple(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))
    return Network(path.stem, sizes, parents, tables)


def sample(network: Network, rng: np.random.Generator, count: int) -> NDArray[np.int16]:
    """Joint assignments drawn from the network: int16 of shape (count, variables)."""
    drawn = np.full((count, len(network.sizes)), UNOBSERVED, dtype=np.int16)
    left = list(range(len(network.sizes)))
    while left:
        ready = [v for v in left if all(drawn[0, p] != UNOBSERVED for p in network.parents[v])]
        for v in ready:
            rows = network.tables[v][tuple(drawn[:, p] for p in network.parents[v])]
            sums = np.cumsum(np.broadcast_to(rows, (count, network.sizes[v])), axis=1)
            # Scaled to the row's own sum, a draw below it never falls on a trailing value of probability 0.
            drawn[:, v] = (sums <= rng.random((count, 1)) * sums[:, -1:]).sum(axis=1)
        left = [v for v in left if v not in set(ready)]
    return drawn


def observed_count(kind: str, variables: int) -> int:
    """Return the number of variables observed in a case; ten need ten others, or one in a small network."""
    return {"none": 0, "ten": min(10, variables - 1), "half": variables // 2}[kind]


def hide(assignments: NDArray[np.int16], observed: int, rng: np.random.Generator) -> NDArray[np.int16]:
    """Keep `observed` random variables of each row."""
    ranks = rng.random(assignments.shape).argsort(axis=1).argsort(axis=1)
    return np.where(ranks < observed, assignments, np.int16(UNOBSERVED))


def draw_cases(network: Network, draws: int = 20, seed: int = 0) -> Cases:
    """The case without evidence, then `draws` possible cases with ten and with half of the variables, in turn."""
    rng = generator(network, seed)
    variables = len(network.sizes)
    kinds = ["none", *(kind for _ in range(draws) for kind in KINDS[1:])]
    full = sample(network, rng, len(kinds))
    values = [hide(row[None], observed_count(kind, variables), rng)[0] for kind, row in zip(kinds, full, strict=True)]
    return Cases(np.array(kinds), np.array(values, dtype=np.int16))


def draw_batch(network: Network, count: int, observed: int = 10, seed: int = 1) -> NDArray[np.int16]:
    """Possible cases in each of which other variables are observed."""
    rng = generator(network, seed)
    return hide(sample(network, rng, count), min(observed, len(network.sizes) - 1), rng)


def same_variables(network: Network, case: Case, count: int, seed: int = 2) -> list[Case]:
    """Other possible values of the variables that a case observes."""
    return [np.where(case == UNOBSERVED, case, row) for row in sample(network, generator(network, seed), count)]


def timed_cases(network: Network) -> tuple[list[Case], list[Case]]:
    """The cases whose propagation is timed: without evidence, and with changing values of the same ten variables."""
    none, ten, _ = draw_cases(network, 1).values
    return [none] * TIMED_RUNS, [ten, *same_variables(network, ten, TIMED_RUNS)]


def generator(network: Network, seed: int) -> np.random.Generator:
    """A generator of its own for each network."""
    return np.random.default_rng([seed, zlib.crc32(network.name.encode())])


def joint_answer(
    network: Network, case: Case, most_cells: int = 1 << 20
) -> tuple[list[NDArray[np.float64]], float] | None:
    """Posteriors of all variables and the evidence's probability from the whole joint table; None if it is too large.

    A textbook oracle that shares nothing with any engine: P(x | e) by summing the product of all tables.
    """
    if math.prod(network.sizes) > most_cells:
        return None
    axes = np.indices(network.sizes, dtype=np.int16)
    joint = np.ones(network.sizes)
    for child, (parents, table) in enumerate(zip(network.parents, network.tables, strict=True)):
        joint *= table[tuple(axes[v] for v in (*parents, child))]
    for v, value in enumerate(case):
        if value != UNOBSERVED:
            joint *= axes[v] == value
    total = float(joint.sum())
    everything = range(len(network.sizes))
    return [joint.sum(axis=tuple(w for w in everything if w != v)) / total for v in everything], total
