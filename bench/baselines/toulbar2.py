"""Solve a model file with pytoulbar2 and print one line of JSON.

    python bench/baselines/toulbar2.py FILE SECONDS [--btd]

Run it with an interpreter whose environment has pytoulbar2. `seconds` is the wall time from reading to the answer. The
limit is one of processor time. `upper` is the cost of the best solution in toulbar2's own units.
"""

from __future__ import annotations

import json
import sys
import time

import pytoulbar2


def main() -> None:
    path, limit = sys.argv[1], int(float(sys.argv[2]))
    network = pytoulbar2.CFN(verbose=-1)
    if "--btd" in sys.argv:
        pytoulbar2.tb2.option.btdMode = 1
        pytoulbar2.tb2.option.setVarOrder("-3")
    started = time.perf_counter()
    network.Read(path)
    found = network.Solve(timeLimit=limit)
    seconds = time.perf_counter() - started
    upper = None if found is None else found[1]
    # The bounds of its tree decomposition may meet at the limit though nothing is proven. Its timer may ring a little
    # early.
    is_optimal = upper is not None and network.GetDDualBound() >= upper and round(time.process_time()) < limit
    print(json.dumps({"seconds": seconds, "upper": upper, "is_optimal": is_optimal}))


if __name__ == "__main__":
    main()
