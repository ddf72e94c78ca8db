"""Instances of `bench/approximate.py`, and their references."""

from __future__ import annotations

import csv
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

import elimina
import ising
from elimina.io.posteriors import read_marginals
from estimates import Builder, Evidence, Question, Reference, answer_of, unobserved

ROUNDED_DISTANCE, ROUNDED_LOG10_Z = 1e-5, 5e-4
"""Rounding of the reference files, in the Hellinger distance of a marginal and in log10 Z."""

BEYOND = {
    "linkage": ("2014_MAR/linkage_15.uai", "2014_MAR/linkage_23.uai"),
    "relational": ("2014_MAR/relational_1.uai.xz", "2014_MAR/relational_4.uai.xz"),
    "circuits": ("2014_PR_extra/2bitadd_11.cnf.uai",),
    "planning": ("2014_PR_extra/log-2.cnf.uai", "2014_PR_extra/log-4.cnf.uai"),
    "BN": tuple(f"2014_PR_extra/BN_{number}.uai.xz" for number in (69, 71, 74)),
    "grids of UAI": tuple(f"2014_MAP_MMAP/Grids_{number}.uai" for number in (18, 26, 29)),
    "wcsp": ("2014_MAP_MMAP/wcsp_13.uai", "2014_MAP_MMAP/wcsp_15.uai"),
    "Promedas": ("2014_MAP_MMAP/Promedas_11.uai",),
    "ProteinFolding": ("2014_MAP_MMAP/ProteinFolding_11.uai",),
    "ObjectDetection": ("2014_MAP_MMAP/ObjectDetection_11.uai.xz",),
}
"""Family -> files of the UAI competition of 2014 whose plans need more than 8 GiB or 60 s, or have done so."""
UNRELIABLE = "relational"
"""Family whose reference files contradict exact answers."""
REFUTED = "linkage"
"""Family with a reference file that an exact answer of 12 GiB contradicts, so that exact answers are computed."""

GRIDS = (30, 40, 100, 300, 1000)
"""Sides of Ising grids."""
ROWS = 4
"""Rows of a grid whose marginals have a reference."""
STRIP, LONG_STRIP = 15, 13
"""Rows of the strips of a reference; those of grids with a side of more than 100."""
LARGEST_Z = 100
"""Side of the largest grid whose log10 Z has a reference."""

NETWORKS = (300, 1000, 3000)
"""Nodes of random networks."""
OBSERVED = 5
"""Observed nodes of those whose name ends so."""
SAMPLES, BATCH = 1_000_000, 50_000
"""Samples of a network's reference, and those drawn at a time."""


class Peer(NamedTuple):
    """Figures of another program: Hellinger distances of the marginals and the error of log10 Z."""

    method: str
    mean: float
    largest: float
    log10_z: float | None


class Instance(NamedTuple):
    """A model with its evidence, and the function that makes its reference; None without one."""

    name: str
    family: str
    task: str
    build: Builder
    reference: Callable[[], Reference] | None
    peers: tuple[Peer, ...] = ()


def read_instance(path: Path) -> tuple[elimina.Model, Evidence]:
    """Return a model and the evidence beside it."""
    model = elimina.read(path)
    evidence = Path(f"{path}".removesuffix(".xz") + ".evid")
    return model, {**elimina.read_evidence(evidence, model)} if evidence.exists() else {}


# Files that other programs were measured on.


def peer_rows(data: Path) -> dict[str, list[dict[str, str]]]:
    """Return the rows of other programs by instance, without those of exact methods."""
    rows: dict[str, list[dict[str, str]]] = {}
    with (data / "approximate" / "peers.tsv").open() as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            rows.setdefault(row["instance"], [])
            if row["hd_mean"] and row["method"] not in ("dai-JT", "dai-HAK-LOOP4-20s"):
                rows[row["instance"]].append(row)
    return rows


def measured_instances(data: Path) -> Iterator[Instance]:
    """Yield the instances on which other programs were measured; their references are exact answers."""
    families = {row["instance"]: row["family"] for rows in peer_rows(data).values() for row in rows}
    for name, rows in peer_rows(data).items():
        folders = (data / "uai" / "2014_MAR", data / "approximate" / "synthetic")
        path = next((folder / f"{name}.uai" for folder in folders if (folder / f"{name}.uai").exists()), None)
        if path is not None:
            build = functools.partial(read_instance, path)
            peers = tuple(
                Peer(
                    f"{row['method']} {row['ibound']}".removesuffix(" -"),
                    float(row["hd_mean"]),
                    float(row["hd_max"]),
                    float(row["err_log10z"]) if row["err_log10z"] else None,
                )
                for row in rows
            )
            reference = functools.partial(exact_reference, build, path)
            yield Instance(name, families[name].removeprefix("syn"), "mar", build, reference, peers)


def exact_reference(build: Builder, stem: Path) -> Reference:
    """Return the exact answer, which is computed without limits; if it does not fit, that of the files beside it."""
    answer = answer_of(Question(build, "mar", threads=None, is_exact=True))
    if answer.status != "exact" or answer.shares is None:
        return stored_reference(build, stem)
    model, evidence = build()
    return Reference(unobserved(answer.shares, evidence, model), answer.log10_z, "exact")


# Files of the competition that do not fit.


def files_beyond(data: Path) -> Iterator[Instance]:
    """Yield the files of the competition whose exact answers take too much."""
    for family, files in BEYOND.items():
        for file in files:
            path = data / "uai" / file
            if path.exists():
                build = functools.partial(read_instance, path)
                stem = Path(f"{path}".removesuffix(".xz"))
                has_marginals, has_partition = (Path(f"{stem}{suffix}").exists() for suffix in (".MAR", ".PR"))
                is_reliable = family != UNRELIABLE and (has_marginals or has_partition)
                refer = exact_reference if family == REFUTED else stored_reference
                reference = functools.partial(refer, build, stem) if is_reliable else None
                task = "pr" if has_partition and not has_marginals else "mar"
                name = path.name.split(".")[0]
                yield Instance(name if name != "Grids_18" else "Grids_18 (MAP)", family, task, build, reference)


def stored_reference(build: Builder, stem: Path) -> Reference:
    """Return the answers of the files beside a model."""
    model, evidence = build()
    marginals, partition = Path(f"{stem}.MAR"), Path(f"{stem}.PR")
    shares = {}
    if marginals.exists():
        stored = read_marginals(marginals)
        shares = {v.name: list(map(float, states)) for v, states in zip(model.variables, stored, strict=True)}
    log10_z = float(partition.read_text().split()[1]) if partition.exists() else None
    return Reference(unobserved(shares, evidence, model), log10_z, "file beside the model")


# Grids.


def grids() -> Iterator[Instance]:
    """Yield Ising grids."""
    for side in GRIDS:
        yield Instance(
            f"ising {side} x {side}",
            "Ising grids",
            "mar",
            functools.partial(build_grid, side),
            functools.partial(grid_reference, side),
        )


def build_grid(side: int) -> tuple[elimina.Model, Evidence]:
    """Return a grid as a model."""
    return ising.model_of(ising.random_grid(side, side)), {}


def grid_reference(side: int) -> Reference:
    """Return the marginals of some rows, and log10 Z, by transfer matrices."""
    grid = ising.random_grid(side, side)
    height = STRIP if side <= LARGEST_Z else LONG_STRIP
    shares: dict[str, list[float]] = {}
    error = 0.0
    for row in np.linspace(0, side - 1, ROWS).astype(int).tolist():
        probabilities = ising.row_shares(grid, row, height)
        error = max(error, float(np.abs(probabilities - ising.row_shares(grid, row, height - 2)).max()))
        shares |= ising.named(probabilities, row)
    log10_z = ising.log10_z(grid, LONG_STRIP) if side <= LARGEST_Z else None
    source = f"strips of {height} rows; those of {height - 2} differ by {error:.1e} at most"
    return Reference(shares, log10_z, source)


# Networks.


class Network(NamedTuple):
    """A Bayesian network of two states: parents of each node, and the probability of state 0 given theirs."""

    parents: list[list[int]]
    tables: list[np.ndarray]


def networks() -> Iterator[Instance]:
    """Yield random networks, without and with evidence."""
    for nodes in NETWORKS:
        for observed in (0, OBSERVED):
            name = f"network of {nodes}" + (f", {observed} observed" if observed else "")
            build = functools.partial(build_network, nodes, observed)
            reference = functools.partial(network_reference, nodes, observed)
            yield Instance(name, "networks", "mar", build, reference)


def random_network(nodes: int, parents: int = 3, window: int = 60, seed: int = 0) -> Network:
    """Return a network whose nodes have up to three parents among the 60 nodes before, and Dirichlet rows."""
    rng = np.random.default_rng(seed)
    network = Network([], [])
    for node in range(nodes):
        first = max(0, node - window)
        count = min(parents, node - first)
        drawn = sorted(rng.choice(np.arange(first, node), count, replace=False).tolist()) if count else []
        network.parents.append(drawn)
        network.tables.append(rng.dirichlet(np.full(2, 0.7), size=[2] * count))
    return network


def observations(nodes: int, count: int) -> dict[int, int]:
    """Return states of evenly spaced nodes, as drawn from the network."""
    if not count:
        return {}
    states, _ = _sampled(random_network(nodes), {}, 1, np.random.default_rng(1))
    return {node: int(states[node, 0]) for node in np.linspace(nodes // 2, nodes - 1, count).astype(int).tolist()}


def build_network(nodes: int, observed: int) -> tuple[elimina.Model, Evidence]:
    """Return a network as a model, with its evidence."""
    network = random_network(nodes)
    tables = [elimina.Table([*network.parents[node], node], network.tables[node]) for node in range(nodes)]
    variables = [elimina.Variable(f"n{node}", 2) for node in range(nodes)]
    model = elimina.Model(variables, tables, sense="probability", children=list(range(nodes)))
    return model, {**observations(nodes, observed)}


def network_reference(nodes: int, observed: int) -> Reference:
    """Return marginals and log10 Z by likelihood weighting, from many samples."""
    network, evidence = random_network(nodes), observations(nodes, observed)
    rng = np.random.default_rng(2)
    sums, total, squares = np.zeros(nodes), 0.0, 0.0
    for _ in range(SAMPLES // BATCH):
        states, weights = _sampled(network, evidence, BATCH, rng)
        sums += (states == 0) @ weights
        total += weights.sum()
        squares += float(np.square(weights).sum())
    shares = {f"n{node}": [p, 1 - p] for node, p in enumerate((sums / total).tolist()) if node not in evidence}
    effective = total**2 / squares
    return Reference(
        shares, float(np.log10(total / SAMPLES)), f"likelihood weighting, {effective:,.0f} effective samples"
    )


def _sampled(
    network: Network, evidence: dict[int, int], count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return states of shape (nodes, count), and the weights of the samples."""
    states = np.empty((len(network.parents), count), np.int8)
    weights = np.ones(count)
    for node, (parents, table) in enumerate(zip(network.parents, network.tables, strict=True)):
        rows = table[..., 0][tuple(states[parent] for parent in parents)]
        if node in evidence:
            states[node] = evidence[node]
            weights *= 1 - rows if evidence[node] else rows
        else:
            states[node] = rng.random(count) >= rows
    return states, weights


def instances(part: str, data: Path | None, match: str, families: Sequence[str]) -> Iterator[Instance]:
    """Yield the instances of a part whose names match a regular expression, of some families (of all without any)."""
    for instance in _instances(part, data):
        if re.search(match, instance.name) and (not families or instance.family in families):
            yield instance


def _instances(part: str, data: Path | None) -> Iterator[Instance]:
    if part == "peers":
        yield from measured_instances(data) if data is not None else ()
    else:
        yield from files_beyond(data) if data is not None else ()
        yield from grids()
        yield from networks()
