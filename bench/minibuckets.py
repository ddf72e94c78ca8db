"""GpuBE's Tables 6 to 10: bounds by mini-buckets at four i-bounds, with and without cost shifting.

    python bench/minibuckets.py ../shared/data/wcsp [--device cpu cuda] [--match celar] [--limit 60] [--most 20]

i-bounds as in the paper (Fioretto et al. 2018, section 8.2): z_min is the largest arity of a constraint, z_max the
largest one, up to 20, whose plan fits the memory of every device asked for, and two between them. Seconds of the run
itself, tables uploaded and messages computed, on one core (`cpu`) or the GPU (`cuda`): of plain mini-buckets divided by
scopes, and of all that `mbe` does (by scopes and by content, with costs shifted and without: up to four runs, whose
best bounds count); CPU runs that are expected to exceed the limit are left out. Bounds of plain mini-buckets by scopes
and by content, of all runs, and the cost of the assignment decoded. Published: seconds of GpuBE and its bounds at its
own four i-bounds, whose z_max the paper does not give; its optimum, if it has one.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

import elimina
from elimina.planning.order import find_order


class Published(NamedTuple):
    """A row of the paper: a file in the folder (colourings: and the number of colours), seconds, bounds, optimum."""

    file: str
    colours: int
    seconds: tuple[float, ...]
    bounds: tuple[int, ...]
    optimum: int | None


TABLES = {
    "CELAR6-SUB0": Published("celar6/CELAR6-SUB0.wcsp", 0, (0.116, 0.116, 0.31, 0.31), (0, 13, 13, 13), 159),
    "CELAR7-SUB0": Published(
        "toulbar2_cover/CELAR7-SUB0.wcsp", 0, (0.173, 0.157, 0.317, 0.317), (0, 104, 10001, 10001), 10310
    ),
    "CELAR6-SUB1": Published("celar6/CELAR6-SUB1.wcsp.xz", 0, (0.201, 0.317, 0.723, 0.723), (0, 308, 626, 626), 2669),
    "CELAR6-SUB2": Published("celar6/CELAR6-SUB2.wcsp.xz", 0, (0.254, 0.328, 0.82, 0.82), (0, 231, 387, 387), 2746),
    "CELAR6-SUB4-20": Published(
        "celar6/CELAR6-SUB4-20.wcsp", 0, (0.197, 0.232, 1.021, 11.29), (494, 598, 732, 1359), 2716
    ),
    "CELAR6-SUB4": Published("celar6/CELAR6-SUB4.wcsp.xz", 0, (0.387, 0.343, 1.013, 1.013), (0, 170, 405, 405), 3230),
    "GEOM30a-3": Published("coloring_geom/GEOM30a.col", 3, (0.014, 0.024, 0.011, 0.024), (0, 10, 11, 11), 11),
    "GEOM30a-4": Published("coloring_geom/GEOM30a.col", 4, (0.028, 0.024, 0.012, 0.012), (0, 4, 4, 4), 4),
    "GEOM30a-5": Published("coloring_geom/GEOM30a.col", 5, (0.029, 0.012, 0.012, 0.012), (0, 1, 1, 1), 1),
    "queen5-5-3": Published("coloring_col/queen5_5.col", 3, (0.031, 0.034, 0.471, 2.899), (6, 18, 23, 25), 29),
    "queen5-5-4": Published("coloring_col/queen5_5.col", 4, (0.031, 0.038, 0.158, 1.355), (0, 1, 4, 5), 12),
    "myciel5g-3": Published("coloring_geom/myciel5g.col", 3, (0.033, 0.069, 1.999, 11.97), (0, 3, 9, 12), 16),
    "myciel5g-4": Published("coloring_geom/myciel5g.col", 4, (0.031, 0.045, 0.23, 7.852), (0, 0, 0, 0), 4),
    "DSJC125.1.4": Published("coloring_col/DSJC125.1.col", 4, (0.241, 0.168, 0.477, 3.551), (0, 0, 0, 0), None),
    "le450-5a-2": Published("coloring_col/le450_5a.col", 2, (1.725, 1.611, 2.934, 10.21), (618, 734, 833, 878), None),
    "le450-5a-3": Published("coloring_col/le450_5a.col", 3, (1.728, 1.847, 2.042, 7.207), (42, 55, 57, 58), None),
    "s386": Published("iscas89/s386.wcsp", 0, (0.054, 0.051, 0.053, 0.185), (29, 29, 29, 29), 29),
    "c499": Published("iscas89/c499.wcsp", 0, (0.133, 0.131, 0.141, 0.391), (111, 111, 111, 111), 111),
    "c432": Published("iscas89/c432.wcsp", 0, (0.225, 0.237, 0.270, 0.622), (101, 101, 101, 101), None),
    "s1494": Published("iscas89/s1494.wcsp", 0, (0.238, 0.222, 0.249, 1.285), (32, 32, 32, 32), 32),
    "s1196": Published("iscas89/s1196.wcsp", 0, (0.19, 0.185, 0.305, 1.049), (95, 95, 95, 95), 95),
    "s1238": Published("iscas89/s1238.wcsp", 0, (0.195, 0.184, 0.21, 0.964), (95, 95, 95, 95), 95),
    "54": Published("spot5/54.wcsp", 0, (0.037, 0.036, 0.036, 0.045), (31, 32, 35, 37), 37),
    "503": Published("spot5/503.wcsp", 0, (0.088, 0.085, 0.088, 0.203), (7093, 9106, 11111, 11113), 11113),
    "404": Published("spot5/404.wcsp", 0, (0.112, 0.207, 0.188, 0.701), (76, 106, 112, 114), 114),
    "42b": Published("spot5/42b.wcsp", 0, (0.455, 0.358, 0.276, 12.98), (58049, 95050, 135050, 155050), None),
    "408b": Published("spot5/408b.wcsp", 0, (0.552, 0.309, 0.862, 5.774), (2104, 5162, 6206, 6215), None),
}
WAYS = (("none", "scope"), ("none", "content"), ("all", "auto"))
"""Shifts and partitions."""
HEAD = (
    "instance          n   d  w*   z  |    cpu s    cuda s  ratio |    cpu s    cuda s  ratio |    scope  content"
    "     best  decoded |  published s    bound  optimum"
)


def colouring(path: Path, colours: int) -> elimina.Model:
    """Each edge whose ends have one colour costs 1; the file may list edges twice."""
    lines = [line.split() for line in path.read_text().splitlines()]
    count = next(int(words[2]) for words in lines if words and words[0] == "p")
    edges = {tuple(sorted((int(w[1]) - 1, int(w[2]) - 1))) for w in lines if w and w[0] == "e"}
    same = np.eye(colours, dtype=np.int64)
    return elimina.Model.from_arrays([colours] * count, [(edge, same) for edge in sorted(edges) if edge[0] != edge[1]])


def run(
    model: elimina.Model, z: int, way: tuple[str, str], device: str, order: list[int], limit: float
) -> elimina.Result | None:
    """One core or the GPU; None where it would take too long."""
    options = elimina.Options(device=device, order=order, threads=1, ibound=z)
    plan = elimina.plan(model, options=replace(options, shift="none", partition="scope"))
    if not plan.fits or (device == "cpu" and 3 * plan.seconds > limit):
        return None
    shift, partition = way
    # A tenth of the time is for shifting before.
    limit = max(60.0, 10 * limit)
    options = replace(options, method="mbe", shift=shift, partition=partition)
    return elimina.solve(model, time_limit=limit, options=options)


def ibounds(model: elimina.Model, order: list[int], devices: list[str], most: int) -> list[int]:
    """Return four i-bounds, spread as in the paper between the smallest possible one and the largest that fits."""
    least = max(len(factor.scope) for factor in model.factors)
    plans = [
        elimina.plan(model, device=device, options=elimina.Options(ibound="auto", shift="none", order=order))
        for device in devices
    ]
    largest = min(plan.width if plan.minibuckets is None else plan.minibuckets.ibound for plan in plans)
    largest = max(least, min(largest, most))
    return [least + (largest - least) * third // 3 for third in range(4)]


def instances(data: Path, match: str) -> Iterator[tuple[str, Published, elimina.Model]]:
    for name, row in TABLES.items():
        path = data / row.file
        if re.search(match, f"{row.file} {name}") and path.exists():
            yield name, row, colouring(path, row.colours) if row.colours else elimina.read(path)


def seconds_of(result: elimina.Result | None) -> float | None:
    """Upload and kernels."""
    return None if result is None else result.stats["seconds"]["upload"] + result.stats["seconds"]["run"]


def text(number: float | None, width: int, decimals: int = 3) -> str:
    return f"{'' if number is None else f'{number:.{decimals}f}':>{width}}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder with the instances")
    parser.add_argument("--match", default="", help="regular expression on files' and instances' names")
    parser.add_argument("--device", nargs="+", default=["cpu"], choices=["cpu", "cuda"])
    parser.add_argument("--limit", type=float, default=60, help="seconds on the CPU beyond which a run is left out")
    parser.add_argument("--most", type=int, default=20, help="the largest i-bound")
    args = parser.parse_args()
    print(HEAD)
    for name, row, model in instances(args.data, args.match):
        order = find_order(model.sizes, [f.scope for f in model.factors], seconds=2).order
        width = elimina.plan(
            model, device="cpu", options=elimina.Options(order=order, slices="never", tables="dense")
        ).width
        for place, z in enumerate(ibounds(model, order, args.device, args.most)):
            found = {way: [run(model, z, way, device, order, args.limit) for device in args.device] for way in WAYS}
            columns = []
            for way in (WAYS[0], WAYS[-1]):
                by_device = dict(zip(args.device, found[way], strict=True))
                cpu, cuda = (seconds_of(by_device.get(device)) for device in ("cpu", "cuda"))
                ratio = cpu / cuda if cpu is not None and cuda else None
                columns.append(f"{text(cpu, 8)} {text(cuda, 9, 5)} {text(ratio, 6, 1)}")
            known = [next((result for result in found[way] if result is not None), None) for way in WAYS]
            bounds = [None if result is None else result.lower_bound for result in known]
            bounds.append(None if known[-1] is None else known[-1].upper_bound)
            figures = " ".join(f"{'' if b is None else b:>8}" for b in bounds)
            optimum = "" if row.optimum is None else row.optimum
            published = f"{row.seconds[place]:>12} {row.bounds[place]:>8} {optimum:>8}"
            shape = f"{name:15} {len(model.variables):3} {max(model.sizes):3} {width:3} {z:3} "
            print(f"{shape} | {columns[0]} | {columns[1]} | {figures} | {published}", flush=True)


if __name__ == "__main__":
    main()
