"""Optima by rows filtered with bounds, beside the same rows unfiltered and the CPU's own filtered elimination.

    python bench/filtered_rows.py ../shared/data/wcsp [--match 'spot5/|iscas|CELAR6-SUB0.wcsp'] [--device cpu cuda]
        [--ways core rows proof limit unfiltered] [--limit 60] [--memory 4GiB]

`core`: --method filter; `rows`: with --tables sparse (or on the GPU), which often ends with its first bounds; `proof`:
its rows alone, which look for what reaches the optimum; `limit`: the same without bounds on the rest of the problem;
`unfiltered`: --method eliminate --tables sparse. Seconds of whole calls, reading the file excluded; on a GPU those of
the second of two calls. Rows looked at, the share that was dropped, and the number of slices.
"""

from __future__ import annotations

import argparse
import csv
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import elimina
from elimina.backends.registry import get_backend
from elimina.cli.options import bytes_of
from elimina.methods.bucket_elimination import eliminate
from elimina.methods.cost_shifting import shift_tables
from elimina.methods.filtering import FilterBounds, filtered_plan
from elimina.number_texts import count_text
from elimina.planning.options import Options
from elimina.planning.ordering import elimination_order
from elimina.problem.preparation import prepare
from elimina.running.execution import Execution

WAYS: dict[str, dict[str, Any]] = {
    "core": {"method": "filter"},
    "rows": {"method": "filter", "tables": "sparse"},
    "proof": {},
    "limit": {},
    "unfiltered": {"method": "eliminate", "tables": "sparse", "slices": "never"},
}


def rows_alone(model: elimina.Model, optimum: int, way: str, options: Options, limit: float) -> elimina.Result:
    """Costs shifted, and one plan on rows up to the optimum."""
    own = replace(options, order_seconds=0.5, slices="never")
    problem, backend = prepare(model, "mpe", {}), get_backend(own.device, own.threads)
    original = shift_tables(problem, replace(own, device="cpu"), 1.0)
    order = elimination_order(original.moved, own)
    known = FilterBounds(elimina.Result("bounded", "mpe"), optimum, original, order)
    planned = filtered_plan(known, backend, own)
    plan = planned.plan
    if way == "limit" and plan.sparse is not None:
        plan = plan._replace(sparse=plan.sparse._replace(outside=None))
    found = eliminate(Execution(planned.problem, plan, backend, None, time.monotonic() + limit), planned.seconds)
    return known.answer(found).replace(stats=found.stats)


def solved(model: elimina.Model, optimum: int, way: str, options: Options, limit: float) -> tuple[str, ...]:
    started = time.perf_counter()
    try:
        result = (
            rows_alone(model, optimum, way, options, limit)
            if not WAYS[way]
            else elimina.solve(model, time_limit=limit, options=options)
        )
    except (elimina.MemoryLimitError, elimina.TimeLimitError) as error:
        return type(error).__name__, f"{time.perf_counter() - started:.2f}", "", "", ""
    seconds = time.perf_counter() - started
    found = str(result.value) if result.status == "optimal" else f"{result.status} {result.lower_bound}"
    made, dropped = result.stats.get("rows_made", 0), result.stats.get("rows_filtered", 0)
    slices = str(result.stats.get("slices", ""))
    return found, f"{seconds:.2f}", count_text(made), f"{dropped / max(1, made):.0%}", slices


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder with REFERENCE.tsv")
    parser.add_argument("--match", default="spot5/", help="regular expression on the files' names")
    parser.add_argument("--device", nargs="+", default=["cpu"], choices=["cpu", "cuda"])
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--threads", type=int)
    parser.add_argument("--limit", type=float, default=60, help="seconds for each answer")
    parser.add_argument("--memory", type=bytes_of)
    args = parser.parse_args()
    print(f"{'instance':22} {'optimum':>9}  {'way':16} {'found':>16} {'seconds':>9} {'rows':>11} {'dropped':>8} slices")
    with open(args.data / "REFERENCE.tsv") as lines:
        rows = [row for row in csv.DictReader(lines, delimiter="\t") if re.search(args.match, row["file"])]
    for row in rows:
        model = elimina.read(args.data / row["file"])
        name = Path(row["file"]).name.partition(".")[0]
        for device in args.device:
            for way in args.ways if device == "cpu" else [way for way in args.ways if way != "core"]:
                options = Options(device=device, memory=args.memory, threads=args.threads, **WAYS[way])
                optimum = int(row["optimum"])
                figures = [
                    solved(model, optimum, way, options, args.limit) for _ in range(1 if device == "cpu" else 2)
                ][-1]
                found, seconds, made, dropped, slices = figures
                print(
                    f"{name:22} {row['optimum']:>9}  {way + ' ' + device:16} {found:>16} {seconds:>9} {made:>11} "
                    f"{dropped:>8} {slices}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
