"""Reading and writing large files of distributed problems; with --peer also pyDCOP's own loader on the same file.

python bench/dcop_files.py FOLDER
python bench/dcop_files.py FOLDER --peer    # afterwards, in an environment that has pyDCOP
"""

from __future__ import annotations

import collections
import collections.abc
import sys
import time
from pathlib import Path

import numpy as np

VARIABLES, CONSTRAINTS, LARGE = 10_000, 15_000, 10


def scopes():
    """Pairs of distinct variables."""
    rng = np.random.default_rng(0)
    return [(2 * int(a), 2 * int(b) + 1) for a, b in rng.integers(0, VARIABLES // 2, (CONSTRAINTS, 2))]


def coloring() -> str:
    """A colouring problem as pyDCOP's own generator writes it."""
    lines = [
        "name: coloring",
        "objective: min",
        "domains:",
        "  d:",
        "    type: d",
        "    values: [0, 1, 2]",
        "variables:",
    ]
    lines += [f"  v{i}:\n    domain: d" for i in range(VARIABLES)] + ["constraints:"]
    for number, (a, b) in enumerate(scopes()):
        lines.append(f"  c{number}:\n    type: intention\n    function: 10000 if v{a} == v{b} else 0")
    lines += ["agents:"] + [f"  a{i}:\n    capacity: 30" for i in range(VARIABLES)]
    return "\n".join(lines) + "\n"


def timed(what, call):
    """Print how long a call takes."""
    start = time.perf_counter()
    result = call()
    print(f"{what:<40} {time.perf_counter() - start:6.2f} s")
    return result


def peer(path: Path) -> None:
    """Read by pyDCOP 0.1.1, with what newer releases of Python and PyYAML took away from it."""
    for name in ("Iterable", "Mapping", "Callable"):
        setattr(collections, name, getattr(collections.abc, name))
    import yaml

    load = yaml.load
    yaml.load = lambda text: load(text, Loader=yaml.SafeLoader)
    from pydcop.dcop.yamldcop import load_dcop

    timed("pyDCOP reads coloring.yaml", lambda: load_dcop(path.read_text()))


def main() -> None:
    """Run."""
    folder = Path(sys.argv[1])
    path = folder / "coloring.yaml"
    if "--peer" in sys.argv:
        peer(path)
        return
    from elimina import Model, Table, Variable
    from elimina.dcop import Problem, read, write

    path.write_text(coloring())
    timed("read coloring.yaml (15,000 expressions)", lambda: read(path))
    rng = np.random.default_rng(1)
    tables = [Table(scope, rng.integers(0, 100, (LARGE, LARGE))) for scope in scopes()]
    problem = Problem.from_model(Model([Variable(f"x{i}", LARGE) for i in range(VARIABLES)], tables))
    for suffix in ("yaml", "xml", "json"):
        large = folder / f"large.{suffix}"
        timed(f"write large.{suffix} (1,500,000 costs)", lambda large=large: write(problem, large))
        timed(f"read large.{suffix}, {large.stat().st_size / 1e6:.1f} MB", lambda large=large: read(large))


if __name__ == "__main__":
    main()
