"""Quality of elimination orders on the benchmark files: `python bench/orders.py` prints both tables.

Widths: the constraint problems of wcsp/REFERENCE.tsv against its min-fill column. The search minimises work, not width;
'width' is that of its order, 'unit' the width it reaches when all sizes are taken as equal.

Work: Bayesian networks (whole moral graphs, with 0 and 10 observed variables removed) against cotengra's HyperOptimizer
in its default settings, whose contraction tree is read as an elimination order: indices in the order in which they
disappear. 'flops' is its own count of the tree's pairwise products. 'early' is the search that also stops when ordering
takes longer than the run would. The peer's figures take minutes each and are recorded; `--peer-python` (an interpreter
that has cotengra) computes them again.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import random
import subprocess
from pathlib import Path

import elimina
from elimina.planning.order import evaluate_order, find_order

HERE = Path(__file__).parent
RECORD = HERE / "orders_cotengra.json"
NETWORKS = ["munin1.bif", "link.bif", "pigs.bif", "andes.bif", "barley.bif.gz", "diabetes.bif.gz"]
OBSERVED = [0, 10]

PEER = """
import json, math, random, sys, time
import cotengra
problem = json.load(sys.stdin)
random.seed(0)
sizes = {str(v): size for v, size in enumerate(problem["sizes"])}
start = time.perf_counter()
optimizer = cotengra.HyperOptimizer(progbar=False, parallel=False)
tree = optimizer.search([tuple(map(str, scope)) for scope in problem["scopes"] if scope], (), sizes)
seconds = time.perf_counter() - start
order = []
for parent, left, right in tree.traverse():
    gone = (set(tree.get_legs(left)) | set(tree.get_legs(right))) - set(tree.get_legs(parent))
    order += sorted(gone, key=lambda v: -sizes[v])
inside_one = [v for v in sizes if v not in set(order)]
flops = tree.total_flops(dtype=None)
print(json.dumps({"order": [int(v) for v in inside_one + order], "flops": math.log10(flops), "seconds": seconds}))
"""


def problem_of(path: Path, observed: int) -> tuple[list[int], list[tuple[int, ...]]]:
    """Sizes and scopes of a file, without `observed` variables that are drawn with seed 0."""
    model = elimina.read(path)
    count = len(model.variables)
    drawn = set(random.Random(0).sample(range(count), observed))
    kept = [v for v in range(count) if v not in drawn]
    number = {v: i for i, v in enumerate(kept)}
    scopes = [tuple(number[v] for v in factor.scope if v in number) for factor in model.factors]
    return [model.variables[v].size for v in kept], scopes


def peer_figures(python: str, sizes: list[int], scopes: list[tuple[int, ...]]) -> dict[str, float]:
    """Run cotengra in another interpreter and count its order our way."""
    problem = json.dumps({"sizes": sizes, "scopes": scopes})
    run = subprocess.run([python, "-c", PEER], input=problem, capture_output=True, text=True, check=True)
    answer = json.loads(run.stdout)
    figures = evaluate_order(sizes, scopes, answer["order"])
    return {
        "cells": figures.total_cells,
        "width": figures.width,
        "largest_table": figures.largest_table,
        "log10_flops": round(answer["flops"], 4),
        "seconds": round(answer["seconds"], 1),
    }


def work_table(data: Path, options: argparse.Namespace) -> None:
    """Print the work found beside the peer's."""
    recorded = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    print(f"log10 of the work (cells); seconds: {options.seconds:g} of ordering, {options.threads} thread(s)")
    print(
        f"{'network':10} {'obs':>3} {'width':>5} {'table':>6} {'work':>7} {'early':>7} {'s':>5} "
        f"{'cotengra':>8} {'flops':>7} {'s':>6} {'ratio':>6} {'worst':>6}"
    )
    for name in NETWORKS:
        for observed in OBSERVED:
            sizes, scopes = problem_of(data / "bayesnets" / "bif" / name, observed)
            key = f"{name.split('.')[0]}/{observed}"
            if options.peer_python:
                recorded[key] = peer_figures(options.peer_python, sizes, scopes)
                RECORD.write_text(json.dumps(recorded, indent=1) + "\n")
            budget = {"seconds": options.seconds, "threads": options.threads}
            found = [
                find_order(sizes, scopes, seed=seed, cells_per_second=None, **budget) for seed in range(options.seeds)
            ]
            early = find_order(sizes, scopes, **budget)
            peer = recorded[key]
            ratios = [peer["cells"] / order.total_cells for order in found]
            first = found[0]
            print(
                f"{key.split('/')[0]:10} {observed:3} {first.width:5} {math.log2(first.largest_table):6.2f}",
                f"{first.log10_cells:7.3f} {early.log10_cells:7.3f} {early.seconds:5.2f}",
                f"{math.log10(peer['cells']):8.3f} {peer['log10_flops']:7.3f} {peer['seconds']:6.1f}",
                f"{ratios[0]:6.3f} {min(ratios):6.3f}",
                flush=True,
            )


def width_table(data: Path, options: argparse.Namespace) -> None:
    """Print the widths of all proven instances that state a min-fill width."""
    print(f"{'instance':42} {'n':>4} {'min-fill':>8} {'width':>5} {'unit':>5} {'table':>6} {'work':>7} {'s':>5}")
    with (data / "wcsp" / "REFERENCE.tsv").open() as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["status"] == "proven"]
    for row in rows:
        if not row["minfill_width"].isdigit():
            continue
        sizes, scopes = problem_of(data / "wcsp" / row["file"], 0)
        found = find_order(sizes, scopes, seconds=options.seconds, threads=options.threads)
        unit = find_order([2] * len(sizes), scopes, seconds=options.seconds, threads=options.threads)
        stated = int(row["minfill_width"])
        flag = "" if found.width <= stated else " wider" if unit.width <= stated else " ABOVE"
        print(
            f"{row['file'][-42:]:42} {len(sizes):4} {stated:8} {found.width:5} {unit.width:5} "
            f"{math.log2(found.largest_table):6.2f} {found.log10_cells:7.3f} {found.seconds:5.2f}{flag}",
            flush=True,
        )


def main() -> None:
    """Parse the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("ELIMINA_DATA", HERE.parent.parent / "shared/data"))
    parser.add_argument("--seconds", type=float, default=2.0, help="time limit of each search")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--seeds", type=int, default=3, help="searches a network; 'worst' is over them, the rest is seed 0"
    )
    parser.add_argument("--peer-python", help="an interpreter with cotengra: compute and record its figures again")
    parser.add_argument("--table", choices=["work", "widths", "both"], default="both")
    options = parser.parse_args()
    data = Path(options.data)
    if options.table != "widths":
        work_table(data, options)
    if options.table != "work":
        width_table(data, options)


if __name__ == "__main__":
    main()
