"""Tables 1 to 3 of Fioretto, Pontelli, Yeoh and Dechter (2018): their published times beside ours, cell by cell.

    python bench/papers.py [--device cpu cuda] [--instances 10] [--table 1 2 3] [--limit 60]

For each cell, `instances` seeded random problems of the published family are generated and solved. Columns: the
published induced width and times (seconds, wall clock, BE on a CPU and GpuBE on a GTX Titan; 'oom': out of memory),
then ours: the mean induced width of our orders, the median time of the elimination alone (`run`: kernels and decoding),
and of everything from the model in memory to the checked assignment (`all`: preparing, ordering, planning, encoding,
running, decoding, checking). A cell whose plan needs more memory than there is, or more than `limit` seconds by its
estimate, prints that figure instead.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import elimina
from elimina.generate import grid_model, random_model, scale_free_model
from elimina.model.model import Model
from elimina.number_texts import bytes_text, seconds_text

RANDOM = [  # n, d, p1, width, CPU, GPU
    (10, 10, 0.3, 2.9, 0.019, 0.002), (11, 10, 0.3, 3.2, 0.031, 0.002), (12, 10, 0.3, 3.6, 0.069, 0.003),
    (13, 10, 0.3, 4.3, 0.413, 0.005), (14, 10, 0.3, 4.4, 0.631, 0.006), (15, 10, 0.3, 5.3, 4.190, 0.026),
    (16, 10, 0.3, 5.8, 32.29, 0.189), (17, 10, 0.3, 6.4, 65.41, 0.328), (18, 10, 0.3, 7.5, 206.1, 0.944),
    (19, 10, 0.3, 8.0, 602.1, 2.541), (20, 10, 0.3, 8.5, 675.3, 3.145),
    (10, 5, 0.3, 3.0, 0.001, 0.002), (10, 25, 0.3, 2.8, 0.227, 0.004), (10, 50, 0.3, 2.9, 24.81, 0.095),
    (10, 100, 0.3, 2.9, 67.59, 0.220),
    (10, 10, 0.2, 2.0, 0.001, 0.001), (10, 10, 0.4, 3.8, 0.094, 0.002), (10, 10, 0.5, 4.5, 0.525, 0.005),
    (10, 10, 0.6, 5.4, 3.378, 0.019), (10, 10, 0.7, 5.9, 14.86, 0.072), (10, 10, 0.8, 6.7, 56.23, 0.246),
    (10, 10, 0.9, 7.6, 72.32, 0.312),
]  # fmt: skip
SCALE_FREE = [  # n, d, width, CPU, GPU
    (10, 10, 6.3, 22.99, 0.111), (11, 10, 6.0, 25.57, 0.120), (12, 10, 6.0, 27.96, 0.132), (13, 10, 5.9, 80.14, 0.370),
    (14, 10, 6.9, 78.36, 0.339), (15, 10, 8.2, 189.4, 0.887), (16, 10, 9.2, None, None), (17, 10, 9.5, None, None),
    (18, 10, 10, None, None), (19, 10, 11, None, None), (20, 10, 12, None, None),
    (10, 5, 6.8, 0.322, 0.004), (10, 25, 6.6, 242.5, 0.888), (10, 50, 6.4, None, None), (10, 100, 6.4, None, None),
]  # fmt: skip
GRID = [  # side, d, width, CPU, GPU
    (5, 10, 3.3, 0.259, 0.005), (6, 10, 3.7, 0.267, 0.008), (7, 10, 3.7, 0.515, 0.012), (8, 10, 3.6, 0.848, 0.018),
    (9, 10, 3.9, 1.460, 0.028), (10, 10, 4.0, 1.881, 0.035), (11, 10, 3.7, 1.934, 0.040), (12, 10, 3.8, 2.174, 0.042),
    (13, 10, 3.9, 2.430, 0.045), (14, 10, 4.0, 2.996, 0.055), (15, 10, 4.0, 3.785, 0.071),
    (10, 5, 3.7, 0.043, 0.020), (10, 25, 3.9, 97.29, 0.388), (10, 50, 4.0, None, None), (10, 100, 4.0, None, None),
]  # fmt: skip


def published(seconds: float | None) -> str:
    return "oom" if seconds is None else f"{seconds:.3f}"


def ours(make: Callable[[int], Model], device: str, instances: int, limit: float) -> tuple[str, float]:
    """Our cell, and the mean width of our orders."""
    runs, totals, widths, statuses = [], [], [], []
    for seed in range(instances):
        model = make(seed)
        plan = elimina.plan(model, device=device)
        widths.append(plan.width)
        if not plan.fits or plan.seconds > limit:
            reason = bytes_text(plan.peak_bytes) if not plan.fits else f"about {seconds_text(plan.seconds)}"
            return f"needs {reason}", statistics.mean(widths)
        started = time.perf_counter()
        result = elimina.solve(model, device=device)
        totals.append(time.perf_counter() - started)
        runs.append(result.stats["seconds"]["run"])
        statuses.append(result.status)
    solved = sum(status == "optimal" for status in statuses)
    text = f"run {statistics.median(runs):.4f} all {statistics.median(totals):.3f} ({solved}/{instances} feasible)"
    return text, statistics.mean(widths)


Row = tuple[str, Callable[[int], Model], float, float | None, float | None]


def table(title: str, header: str, rows: list[Row], args: argparse.Namespace) -> None:
    columns = "  ".join(f"{device:45}" for device in args.device)
    print(f"\n{title}\n{header:16} {'w* pub':>6} {'w ours':>6} {'CPU pub':>8} {'GPU pub':>8}  {columns}")
    for name, make, width, cpu, gpu in rows:
        cells = [ours(make, device, args.instances, args.limit) for device in args.device]
        print(
            f"{name:16} {width:6.1f} {cells[0][1]:6.1f} {published(cpu):>8} {published(gpu):>8}  "
            + "  ".join(f"{text:45}" for text, _ in cells),
            flush=True,
        )


def family(generator: Callable[..., Model], *parameters: float) -> Callable[[int], Model]:
    return lambda seed: generator(*parameters, seed=seed)


def narrow_grid(side: int, d: int) -> Callable[[int], Model]:
    return lambda seed: grid_model(4, d, seed=seed, columns=side * side // 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", nargs="+", default=["cpu"], choices=["cpu", "cuda"])
    parser.add_argument("--instances", type=int, default=10)
    parser.add_argument("--table", nargs="+", type=int, default=[1, 2, 3], choices=[1, 2, 3])
    parser.add_argument("--limit", type=float, default=60)
    args = parser.parse_args()
    if 1 in args.table:
        rows: list[Row] = [(f"{n} {d} {p1}", family(random_model, n, d, p1), w, c, g) for n, d, p1, w, c, g in RANDOM]
        table("Table 1: random networks", "n d p1", rows, args)
    if 2 in args.table:
        rows = [(f"{n} {d}", family(scale_free_model, n, d), w, c, g) for n, d, w, c, g in SCALE_FREE]
        table("Table 2: scale-free networks", "n d", rows, args)
    if 3 in args.table:
        rows = [(f"{side} {d}", family(grid_model, side, d), w, c, g) for side, d, w, c, g in GRID]
        table("Table 3: square grids, as the text describes them", "side d", rows, args)
        # A square grid's width is its side, so the published widths of 3.3 to 4.0 belong to some other shape.
        rows = [(f"{side} {d}", narrow_grid(side, d), w, c, g) for side, d, w, c, g in GRID]
        table("Table 3 on as many variables in 4 rows, whose width is the published one", "side d", rows, args)


if __name__ == "__main__":
    main()
