"""Start-up times of whole processes, as multiples of `python -c 'import numpy'`.

    python bench/startup.py [--runs 15]

Run it with the interpreter of an environment where elimina is installed (not in editable mode, which adds its own
start-up). The commands take turns, and each figure is the median of the ratios of neighbouring runs.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

EXAMPLE = Path(__file__).parents[1] / "examples" / "radio.wcsp"
BASE = ["-c", "import numpy"]
COMMANDS = {
    "elimina --version": (["-m", "elimina", "--version"], 1.0),
    "import elimina and its parts": (["-c", "import elimina; elimina.solve, elimina.read"], 1.6),
    f"elimina solve {EXAMPLE.name}": (["-m", "elimina", "solve", str(EXAMPLE)], 3.5),
}


def seconds(arguments: list[str]) -> float:
    """Wall time of one interpreter."""
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, cwd="/")
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    for arguments in (BASE, *(arguments for arguments, _ in COMMANDS.values())):
        seconds(arguments)
    base: list[float] = []
    for name, (arguments, limit) in COMMANDS.items():
        ratios = []
        for _ in range(runs):
            base.append(seconds(BASE))
            ratios.append(seconds(arguments) / base[-1])
        print(f"{name:30} {statistics.median(ratios):5.2f} times import numpy (limit {limit})")
    print(f"{'import numpy':30} {1000 * statistics.median(base):5.0f} ms")


if __name__ == "__main__":
    main()
