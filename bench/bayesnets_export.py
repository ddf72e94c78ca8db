"""Write the networks of a data folder as arrays for the peers.

    python bench/bayesnets_export.py ../shared/data/bayesnets build/oracle/networks

The files' rows sum to 1 only nearly, and not every program reads them alike. Here each row is divided by its sum once,
and elimina and the peers are both given the result.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import bayesnets_files
import elimina
from bayesnets_files import Network

LARGEST_ERROR = 1e-5
"""Largest error of a row's sum; beyond it a table was misread."""


def network_files(data: Path) -> Iterator[Path]:
    yield from sorted((data / "bif").iterdir())
    yield from sorted((data / "cpcs").iterdir())


def network_name(path: Path) -> str:
    return path.name.partition(".")[0]


def network_of(model: elimina.Model, name: str) -> Network:
    """A model of conditional distributions as arrays; variable i stays number i."""
    if model.children is None or sorted(model.children) != list(range(len(model.variables))):
        raise elimina.InputError(f"{name} is not a Bayesian network with one distribution for each variable")
    parents: dict[int, tuple[int, ...]] = {}
    tables = {}
    for child, factor in zip(model.children, model.factors, strict=True):
        values = np.moveaxis(factor.dense(), factor.scope.index(child), -1).astype(np.float64)
        sums = values.sum(axis=-1, keepdims=True)
        if np.abs(sums - 1).max() > LARGEST_ERROR:
            raise elimina.InputError(f"a row of {model.variables[child].name!r} in {name} sums to {sums.min()}")
        parents[child] = tuple(v for v in factor.scope if v != child)
        tables[child] = values / sums
    everything = range(len(model.variables))
    return Network(name, model.sizes, tuple(parents[v] for v in everything), tuple(tables[v] for v in everything))


def model_of(network: Network, variables: tuple[elimina.Variable, ...]) -> elimina.Model:
    """The model of the same numbers, with a file's names and states."""
    factors = [
        elimina.Table([*parents, child], table)
        for child, (parents, table) in enumerate(zip(network.parents, network.tables, strict=True))
    ]
    return elimina.Model(variables, factors, sense="probability", children=range(len(variables)), name=network.name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder that holds bif/ and cpcs/")
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for path in network_files(args.data):
        name = network_name(path)
        bayesnets_files.save(args.folder / f"{name}.npz", network_of(elimina.read(path), name))


if __name__ == "__main__":
    main()
