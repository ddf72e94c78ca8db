"""Tours, bounds and proofs of TSPLIB problems: seconds, nodes, the tour and the bound beside the optimum.

    python bench/tsp.py FOLDER [--set small|paper] [--limit 60] [--only kroA100 pr76]

FOLDER holds the .tsp files of TSPLIB95. `small`: those of up to 150 cities; `paper`: the ten of Tardivo et al.,
'Constraints Propagation on GPU'. Both if no set is given. `tour %` and `bound %` are distances from the optimum.
"""

from __future__ import annotations

import argparse
from pathlib import Path

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--set", choices=("small", "paper"))
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("--only", nargs="*")
    given = parser.parse_args()
    known = {"small": SMALL, "paper": PAPER, None: SMALL | PAPER}[given.set]
    print(f"{'problem':10} {'status':8} {'seconds':>8} {'nodes':>8}", end=" ")
    print(f"{'tour':>9} {'bound':>9} {'optimum':>9} {'tour %':>7} {'bound %':>7}")
    for name, optimum in known.items():
        if given.only and name not in given.only:
            continue
        file = given.folder / f"{name}.tsp"
        if not file.exists():
            print(f"{name:10} is not in {given.folder}", flush=True)
            continue
        found = solve_tsp(read_tsp(file), time_limit=given.limit)
        above, below = (100 * (x / optimum - 1) for x in (found.value, found.lower_bound))
        seconds, nodes = found.stats["seconds"]["total"], found.stats["nodes"]
        print(f"{name:10} {found.status:8} {seconds:8.2f} {nodes:8}", end=" ")
        print(f"{found.value:9} {found.lower_bound:9} {optimum:9} {above:7.2f} {below:7.2f}", flush=True)


if __name__ == "__main__":
    main()
