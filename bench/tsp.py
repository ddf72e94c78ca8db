"""Tours, bounds and proofs: seconds, nodes, the tour and the bound beside the optimum.

    python bench/tsp.py FOLDER [--set small|paper|clusters|kinds] [--limit 60] [--only kroA100 pr76]

FOLDER holds the .tsp files of TSPLIB95. `small`: those of up to 150 cities; `paper`: the ten of Tardivo et al.,
'Constraints Propagation on GPU'; `clusters`: drilling problems of TSPLIB, and clusters as Johnson and McGeoch's;
`kinds`: lines, repeated places, grids, ties. All sets if none is given. `tour %` and `bound %` are distances from the
optimum, `gap %` is that of tour and bound.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from elimina.cp.tour_distances import distance_matrix
from elimina.cp.tour_problem import TourProblem
from elimina.cp.tsp import solve_tsp
from elimina.cp.tsplib import read_tsp

SMALL = {
    **{"burma14": 3323, "ulysses16": 6859, "gr17": 2085, "gr21": 2707, "ulysses22": 7013, "gr24": 1272, "fri26": 937},
    **{"bayg29": 1610, "bays29": 2020, "dantzig42": 699, "swiss42": 1273, "att48": 10628, "gr48": 5046, "hk48": 11461},
    **{"eil51": 426, "berlin52": 7542, "brazil58": 25395, "st70": 675, "eil76": 538, "pr76": 108159, "gr96": 55209},
    **{"rat99": 1211, "kroA100": 21282, "kroB100": 22141, "kroC100": 20749, "kroD100": 21294, "kroE100": 22068},
    **{"rd100": 7910, "eil101": 629, "lin105": 14379, "pr107": 44303, "gr120": 6942, "pr124": 59030, "bier127": 118282},
    **{
        "ch130": 6110,
        "pr136": 96772,
        "gr137": 69853,
        "pr144": 58537,
        "ch150": 6528,
        "kroA150": 26524,
        "kroB150": 26130,
    },
}
PAPER = {
    **{"kroA100": 21282, "kroA200": 29368, "rd400": 15281, "rat575": 6773, "rat783": 8806, "dsj1000": 18660188},
    **{"d2103": 80450, "fl3795": 28772, "rl5934": 556045, "pla7397": 23260728},
}


CLUSTERS = {"fl417": 11861, "p654": 34643, "fl1400": 20127, "fl3795": 28772}


def _problem(points: np.ndarray) -> TourProblem:
    return TourProblem("generated", distance_matrix(np.asarray(points, dtype=np.float64), "EUC_2D"))


def _clusters(n: int) -> TourProblem:
    random = np.random.default_rng(0)
    centres = random.uniform(0, 1e6, (n // 100, 2))
    return _problem(np.round(centres[random.integers(0, len(centres), n)] + random.normal(0, 1e6 / n**0.5, (n, 2))))


def _line(n: int) -> TourProblem:
    return _problem(np.c_[np.random.default_rng(0).integers(0, 100_000, n), np.zeros(n)])


def _places(n: int, places: int) -> TourProblem:
    random = np.random.default_rng(0)
    return _problem(random.integers(0, 1000, (places, 2))[random.integers(0, places, n)])


def _two(n: int) -> TourProblem:
    points = np.random.default_rng(0).integers(0, 1000, (n, 2))
    points[n // 2 :, 0] += 10**6
    return _problem(points)


def _circle(n: int) -> TourProblem:
    angle = 2 * np.pi * np.arange(n) / n
    return _problem(10_000 * np.c_[np.cos(angle), np.sin(angle)])


def _ties(n: int, most: int) -> TourProblem:
    upper = np.triu(np.random.default_rng(0).integers(1, most + 1, (n, n)), 1).astype(np.int32)
    return TourProblem("generated", upper + upper.T)


GENERATED: dict[str, dict[str, Callable[[], TourProblem]]] = {
    "clusters": {f"C{n}": lambda n=n: _clusters(n) for n in (1000, 2000, 5000)},
    "kinds": {
        "line300": lambda: _line(300),
        "line3000": lambda: _line(3000),
        "places300": lambda: _places(300, 10),
        "two100": lambda: _two(100),
        "two300": lambda: _two(300),
        "grid306": lambda: _problem([(10 * i, 10 * j) for i in range(17) for j in range(18)]),
        "grid225": lambda: _problem([(10 * i, 10 * j) for i in range(15) for j in range(15)]),
        "circle300": lambda: _circle(300),
        "equal200": lambda: TourProblem("equal", (7 * (1 - np.eye(200))).astype(np.int32)),
        "ties200": lambda: _ties(200, 3),
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--set", choices=("small", "paper", "clusters", "kinds"))
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("--only", nargs="*")
    given = parser.parse_args()
    files = {"small": SMALL, "paper": PAPER, "clusters": CLUSTERS, "kinds": {}}
    print(f"{'problem':10} {'status':8} {'seconds':>8} {'of CPU':>8} {'nodes':>8}", end=" ")
    print(f"{'tour':>9} {'bound':>9} {'gap %':>6} {'optimum':>9} {'tour %':>7} {'bound %':>7}")
    for group in [given.set] if given.set else files:
        for name, optimum in {**files[group], **dict.fromkeys(GENERATED.get(group, ()), None)}.items():
            if given.only and name not in given.only:
                continue
            file = given.folder / f"{name}.tsp"
            if optimum is not None and not file.exists():
                print(f"{name:10} is not in {given.folder}", flush=True)
                continue
            problem = GENERATED[group][name]() if optimum is None else read_tsp(file)
            started = time.process_time()
            found = solve_tsp(problem, time_limit=given.limit)
            processor = time.process_time() - started
            seconds, nodes = found.stats["seconds"]["total"], found.stats["nodes"]
            gap = 100 * (found.value / found.lower_bound - 1)
            print(f"{name:10} {found.status:8} {seconds:8.2f} {processor:8.2f} {nodes:8}", end=" ")
            print(f"{found.value:9} {found.lower_bound:9} {gap:6.2f}", end=" ")
            if optimum is not None:
                above, below = (100 * (x / optimum - 1) for x in (found.value, found.lower_bound))
                print(f"{optimum:9} {above:7.2f} {below:7.2f}", end="")
            print(flush=True)


if __name__ == "__main__":
    main()
