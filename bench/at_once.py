"""Optima of files that toulbar2 finds at once: whole calls of `auto`, reading included, beside toulbar2's.

    python bench/at_once.py ../shared/data --toulbar2 PYTHON [--match REGEX] [--most 0.12] [--megabytes 8]

PYTHON is an interpreter with pytoulbar2 (one thread; the better of its default and its tree decomposition counts, of
files as we write them). Ours has one thread, in a process that is started, best of three. The last lines are the
geometric means of the ratios ours / toulbar2's by folder, 0.2 s granted to both, and the worst file of each.
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import elimina
from search import GRANTED, seconds_of, toulbar2

LIMIT = 1.0
"""Seconds that toulbar2 has for a file."""
RUNS = 3


def files(data: Path, match: str, most_bytes: float) -> Iterator[Path]:
    """Models of both folders, not larger than so many bytes."""
    for path in sorted([*(data / "uai").rglob("*"), *(data / "wcsp").rglob("*")]):
        name = path.name.removesuffix(".gz").removesuffix(".xz")
        is_model = name.endswith((".uai", ".erg", ".wcsp"))
        if is_model and path.stat().st_size <= most_bytes and re.search(match, str(path)):
            yield path


def ours(path: Path) -> float:
    """Seconds from reading to the optimum, the best of a few runs."""
    found = []
    for _ in range(RUNS):
        started = time.perf_counter()
        result = elimina.solve(elimina.read(path), device="cpu", time_limit=10, options=elimina.Options(threads=1))
        found.append(time.perf_counter() - started)
        assert result.status in ("optimal", "infeasible"), f"{path}: {result.status}"
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder that holds uai/ and wcsp/")
    parser.add_argument("--toulbar2", required=True, help="interpreter that has pytoulbar2")
    parser.add_argument("--match", default="", help="regular expression on the files' names")
    parser.add_argument("--most", type=float, default=0.12, help="seconds of toulbar2 up to which a file counts")
    parser.add_argument("--megabytes", type=float, default=8, help="size of the largest file")
    args = parser.parse_args()
    args.limit = LIMIT
    families: dict[str, list[tuple[float, str]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for path in files(args.data, args.match, args.megabytes * 1e6):
            try:
                model = elimina.read(path)
            except elimina.EliminaError as error:
                print(f"{path.name}: {error}")
                continue
            plain = Path(folder) / f"model.{'wcsp' if model.is_integer else 'uai'}"
            elimina.write(model, plain)
            ways = [toulbar2(plain, options, args)[0] for options in ([], ["--btd"])]
            best = min(seconds_of(text, 2 * LIMIT) for text in ways)
            if best > args.most:
                continue
            seconds = ours(path)
            ratio = (seconds + GRANTED) / (best + GRANTED)
            text = f"{path.name}: {seconds:.2f} and {best:.2f} s"
            print(f"{ratio:5.2f}  {text}", flush=True)
            families.setdefault(str(path.parent.relative_to(args.data)), []).append((ratio, text))
    every = [pair for pairs in families.values() for pair in pairs]
    for family, pairs in {**families, "all": every}.items() if every else ():
        mean, (worst, text) = statistics.geometric_mean([ratio for ratio, _ in pairs]), max(pairs)
        print(f"{family:34} {len(pairs):4} files, ours / toulbar2 {mean:.2f}, worst {worst:.2f} ({text})")


if __name__ == "__main__":
    main()
