"""Print toulbar2's solutions of a model as it finds them, with its processor time.

    python bench/baselines/toulbar2_anytime.py FILE SECONDS [--vns]

Run it with an interpreter whose environment has pytoulbar2. The limit is one of processor time.
"""

from __future__ import annotations

import sys

import pytoulbar2


def main() -> None:
    network = pytoulbar2.CFN(verbose=0, vns=-4 if "--vns" in sys.argv else None)
    network.Read(sys.argv[1])
    network.Solve(timeLimit=int(float(sys.argv[2])))


if __name__ == "__main__":
    main()
