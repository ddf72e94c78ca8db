"""Both bounds over time of one call.

    python bench/bounds.py FILE [--limit 20] [--record]

A row is what is known at a moment: moments grow by a constant factor, and a row that equals the one before is left out.
``--record`` writes bench/results/bounds-over-time.json, from which bench/render.py makes a table and a chart.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import elimina
from elimina.result import Bounds
from record import Record

FIRST, FACTOR = 0.05, 1.35
"""Seconds of the first row, and the ratio of the moments of neighbouring rows."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="a model of integer costs")
    parser.add_argument("--limit", type=float, default=20, help="time limit in seconds")
    parser.add_argument("--record", action="store_true", help="write the record")
    args = parser.parse_args()
    model = elimina.read(args.file)
    known: list[tuple[float, Bounds]] = []
    begun = time.perf_counter()
    options = elimina.Options(threads=1, on_bounds=lambda bounds: known.append((time.perf_counter() - begun, bounds)))
    result = elimina.solve(model, device="cpu", time_limit=args.limit, options=options)
    total = time.perf_counter() - begun
    record = Record(
        "bounds-over-time",
        ["seconds", "lower bound", "best assignment"],
        f"{args.file.name.partition('.')[0]}, one thread; {result.status} after {total:.2f} s.",
    )
    moment, last = FIRST, None
    while known and moment < total * FACTOR:
        found = [bounds for at, bounds in known if at <= moment]
        cells = tuple("" if bound is None else bound for bound in (found[-1].lower, found[-1].upper)) if found else None
        if cells not in (None, last):
            record.add(f"{min(moment, total):.2f}", *cells)
            last = cells
        moment *= FACTOR
    for row in record.rows:
        print(*row, sep="\t")
    if args.record:
        record.save()


if __name__ == "__main__":
    main()
