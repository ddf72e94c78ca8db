"""Posteriors of all variables by pyAgrum, the oracle of `bayesnets.py`; runs in the peers' environment.

    python bench/bayesnets_export.py ../shared/data/bayesnets build/oracle/networks     # in elimina's environment
    PEER bench/bayesnets_oracle.py [build/oracle] [--draws 20] [--seconds 240] [--match TEXT]

One case without evidence, then `draws` cases with ten variables observed and with half of them, in turn, drawn from
the network itself (seeded). FOLDER/networks/NAME.npz gives FOLDER/NAME.npz: kinds (text) and cases (int16, -1: not
observed) of shape (cases, variables), posteriors (float64) of shape (cases, sum of the domain sizes), log10_evidence
(NaN where pyAgrum's probability of the evidence leaves the range of doubles). A file that is there already is kept.

LazyPropagation on one junction tree, or one pruned inference for each variable where the tree is large and those cost
less (what pyAgrum leaves out as barren turns munin1 and link from minutes and gigabytes to seconds). A network that
takes longer than `seconds` gets fewer draws, which is printed. Small networks are compared with their joint tables.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyagrum
from numpy.typing import NDArray

import bayesnets_files
from bayesnets_files import Case, Network
from bayesnets_pyagrum import (
    bayes_net,
    chained_log10_evidence,
    check_transfer,
    observe,
    point_mass,
    posteriors,
    pruned,
    tree_cells,
)

LARGE_TREE = 50_000_000
"""Cells from which the pruned inferences are considered."""
LEAST_PROBABILITY = 1e-280
AGREEMENT = 1e-12


def answer(net: pyagrum.BayesNet, case: Case) -> tuple[NDArray[np.float64], float, str]:
    """All posteriors one after the other, log10 of the evidence's probability, and how they were found."""
    whole = pyagrum.LazyPropagation(net)
    observe(whole, case)
    cells = sum(tree_cells(net, whole))
    if cells < LARGE_TREE or not is_less(pruned(net, case), net, cells):
        found = posteriors(whole, net.size())
        probability = whole.evidenceProbability()
        log10_evidence = math.log10(probability) if probability > LEAST_PROBABILITY else math.nan
        return np.concatenate(found), log10_evidence, "one tree"
    # Alone, an observed target leaves nothing of the tree, and pyAgrum 3.3.1 does not come back from it.
    found = [point_mass(net.variable(v).domainSize(), value) for v, value in enumerate(case.tolist())]
    for v, one in pruned(net, case):
        one.makeInference()
        found[v] = one.posterior(v).toarray()
    return np.concatenate(found), chained_log10_evidence(net, case), "a pruned tree for each variable"


def is_less(inferences: Iterator[tuple[int, pyagrum.LazyPropagation]], net: pyagrum.BayesNet, cells: int) -> bool:
    """Return whether the trees of all these together are smaller."""
    total = 0
    for _, one in inferences:
        total += sum(tree_cells(net, one))
        if total >= cells:
            return False
    return True


def check_joint(network: Network, case: Case, found: NDArray[np.float64], log10_evidence: float) -> None:
    expected = bayesnets_files.joint_answer(network, case)
    if expected is not None:
        difference = np.abs(np.concatenate(expected[0]) - found).max()
        if difference > AGREEMENT or abs(log10_evidence - math.log10(expected[1])) > AGREEMENT:
            raise SystemExit(f"{network.name}: pyAgrum differs from the joint table by {difference}")


def answer_all(network: Network, draws: int, seconds: float) -> dict[str, NDArray]:
    """The arrays to store; cases in order until the time is over."""
    net = bayes_net(network)
    cases = bayesnets_files.draw_cases(network, draws)
    started = time.perf_counter()
    rows, evidence, ways = [], [], set()
    for case in cases.values:
        found, log10_evidence, way = answer(net, case)
        check_joint(network, case, found, log10_evidence)
        if not np.isfinite(found).all():
            raise SystemExit(f"{network.name}: pyAgrum's posteriors of case {len(rows)} are not finite")
        rows.append(found)
        evidence.append(log10_evidence)
        ways.add(way)
        if time.perf_counter() - started > seconds:
            break
    done = len(rows)
    kinds = cases.kinds[:done].tolist()
    print(
        f"{network.name:12} {time.perf_counter() - started:7.1f} s,",
        ", ".join(f"{kinds.count(kind)} {kind}" for kind in bayesnets_files.KINDS),
        f"of {draws} draws; {np.isnan(evidence).sum()} without log10_evidence; {' or '.join(sorted(ways))}",
        flush=True,
    )
    return {
        "kinds": cases.kinds[:done],
        "cases": cases.values[:done],
        "posteriors": np.array(rows),
        "log10_evidence": np.array(evidence),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path(__file__).parents[1] / "build" / "oracle")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=240, help="for each network; its last case is finished")
    parser.add_argument("--match", default="", help="networks whose name contains this")
    args = parser.parse_args()
    pyagrum.setNumberOfThreads(1)
    check_transfer()
    paths = [path for path in (args.folder / "networks").glob("*.npz") if args.match in path.stem]
    if not paths:
        raise SystemExit(f"no networks in {args.folder / 'networks'}: write them with bench/bayesnets_export.py")
    for path in sorted(paths):
        target = args.folder / path.name
        if not target.exists():
            stored = answer_all(bayesnets_files.load(path), args.draws, args.seconds)
            np.savez_compressed(target, **stored)


if __name__ == "__main__":
    main()
