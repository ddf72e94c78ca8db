"""Distributed problems: simulated runtimes of DPOP and ADPOP beside the published ones, many agents, and pyDCOP.

    python bench/dcop.py [--agents cpu cuda] [--instances 10] [--limit 60] [--table 1 2 3 11] [--match REGEX]
        [--many 10000] [--peer PYTHON] [--filter FILE ...] [--frodo] [--record]

Tables 1 to 3 and Fig. 11 are those of Fioretto, Pontelli, Yeoh and Dechter (2018): the published induced width and
simulated runtimes (seconds; DPOP on a CPU, GpuDBE on a GTX Titan; 'oom': out of memory) beside ours: the mean width of
the agents' pseudo-trees, and the median simulated runtime, which is measured on this machine, without delays of the
network; an agent has one core, or the device. A cell whose largest table does not fit, or whose tables would take more
than `limit` seconds at 10^9 combinations a second (cuda: 10^11), prints that instead; `--match` chooses rows. Fig. 11
has no numbers; beside it are the speed-ups of Table 5 (GTX Titan).

`--many`: wall and processor time of DPOP with so many agents, on a random tree and on a chain with chords; the median
of three runs.

`--peer`: pyDCOP's DPOP, with its own pseudo-trees (whose heuristic is our `most-connected`), on graph colouring (each
variable with two to five of the last five); PYTHON has pydcop (see `baselines/pydcop_dpop.py`). Wall time
and time of the processor (which depends less on what else runs), without reading: the median of nine runs.

`--filter`: DPOP on files with and without filtering by tables of 2, 4 and 6 variables: rows sent, bytes of all messages
and of the largest one, wall time.

`--frodo`: the families of Fig. 4 of Fioretto, Le, Pontelli, Yeoh and Son (CP 2015), d = 5: that paper ran the DPOP of
FRODO 2.11 (simulated runtime, AMD Opteron 6276, limits of 300 s and 32 GB); its times are in a figure only, its text
says up to which numbers of variables it came. Ours: mean width and median simulated runtime.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import re
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from elimina.dcop import AgentOptions, Problem, read, solve
from elimina.dcop.agent import agree_on_tree
from elimina.dcop.problem import Heuristic
from elimina.dcop.solve import DEFAULT, Algorithm
from elimina.errors import DeviceError, MemoryLimitError
from elimina.generate import grid_model, random_model, scale_free_model
from elimina.model.model import Model
from elimina.model.table import Table
from elimina.model.variable import Variable
from elimina.number_texts import count_text, seconds_text
from elimina.result import Result
from papers import GRID, RANDOM, SCALE_FREE, family
from record import Record

Times = Sequence[tuple[float | None, float | None]]
RANDOM_DPOP: Times = [
    (0.007, 0.001), (0.013, 0.001), (0.028, 0.001), (0.210, 0.002), (0.214, 0.002), (1.609, 0.009), (9.848, 0.049),
    (28.14, 0.138), (103.0, 0.483), (470.2, 2.019), (508.9, 2.160), (0.001, 0.001), (0.092, 0.001), (13.99, 0.048),
    (35.22, 0.118), (0.001, 0.001), (0.042, 0.001), (0.234, 0.002), (1.941, 0.011), (10.00, 0.053), (31.29, 0.147),
    (42.47, 0.201),
]  # fmt: skip
SCALE_FREE_DPOP: Times = [
    (13.78, 0.064), (13.21, 0.057), (14.60, 0.072), (36.21, 0.174), (32.50, 0.145), (66.86, 0.340),
    *[(None, None)] * 5, (0.175, 0.001), (127.9, 0.593), (None, None), (None, None),
]  # fmt: skip
GRID_DPOP: Times = [
    (0.022, 0.001), (0.022, 0.001), (0.037, 0.001), (0.041, 0.001), (0.049, 0.001), (0.054, 0.002), (0.073, 0.002),
    (0.089, 0.002), (0.102, 0.003), (0.127, 0.003), (0.151, 0.004), (0.001, 0.001), (2.930, 0.011), (None, None),
    (None, None),
]  # fmt: skip
SPEEDUPS = {  # Table 5, GTX Titan, z = 2 ... 10
    "random n=20 d=25 p1=0.3": (0.28, 1.99, 11.6, 49.8, 145, 207, 235, 234, 233),
    "scale-free n=20 d=25": (0.43, 2.42, 7.46, 51.3, 159, 244, 274, None, None),
    "grid of 100 d=25": (0.85, 3.05, 29.1, 150, 143, 152, 153, 156, 155),
}
COMBINATIONS = {"cpu": 1e9, "cuda": 1e11}
"""A second, about."""
COLOURED, COLOURS = (10, 20, 50, 100, 200), (3, 4)


def narrow_grid(side: int, d: int) -> Callable[[int], Model]:
    """Return makers of grids with rows of 4, whose width is the published one; a square grid's is its side."""
    return lambda seed: grid_model(side * side // 4, d, seed=seed, columns=4)


def published(number: float | None) -> str:
    return "oom" if number is None else f"{number:.3f}"


def run(problem: Problem, agents: str, heuristic: Heuristic, ibound: int | None = None) -> dict[str, Any]:
    """Figures of a run, and the answer's value and bounds."""
    algorithm: Algorithm = "dpop" if ibound is None else "adpop"
    result = solve(
        problem, algorithm, threads=1, options=AgentOptions(ibound=ibound, agents=agents, heuristic=heuristic)
    )
    return {**result.stats, "answer": (result.value, result.lower_bound, result.upper_bound)}


def combinations(problem: Problem, heuristic: Heuristic) -> tuple[int, float]:
    """Width and combinations of the pseudo-tree that the agents make."""
    tree, sizes = agree_on_tree(problem, heuristic), problem.model.sizes
    work = sum(math.prod(map(float, (sizes[v] for v in (node.variable, *node.separator)))) for node in tree.nodes)
    return tree.width, work


def cell(problems: Iterable[Problem], agents: str, heuristic: Heuristic, limit: float) -> tuple[str, float | None]:
    """Our cell: text, and seconds if there are any."""
    seconds = []
    for problem in problems:
        _, work = combinations(problem, heuristic)
        if work > limit * COMBINATIONS[agents]:
            return f"{count_text(int(work))} comb.", None
        try:
            seconds.append(run(problem, agents, heuristic)["simulated_seconds"])
        except (MemoryLimitError, DeviceError):
            return "oom", None
    median = statistics.median(seconds)
    return f"{median:.4f}", median


def table(
    title: str,
    rows: Iterable[tuple[str, float, Callable[[int], Model]]],
    times: Times,
    args: argparse.Namespace,
    heuristic: Heuristic = "max-degree",
) -> None:
    ours = "  ".join(f"{agents:>16}" for agents in args.agents)
    print(f"\n{title} ({heuristic})\n{'':12} {'w* pub':>6} {'w ours':>6} {'CPU pub':>8} {'GPU pub':>8}  {ours}")
    for (name, width, make), (cpu, gpu) in zip(rows, times, strict=True):
        if not re.search(args.match, name):
            continue
        problems = [Problem.from_model(make(seed)) for seed in range(args.instances)]
        mean = statistics.mean(combinations(problem, heuristic)[0] for problem in problems)
        cells = [cell(problems, agents, heuristic, args.limit) for agents in args.agents]
        known = [seconds for _, seconds in cells]
        ratio = f"  cpu/cuda {known[0] / known[1]:.1f}" if len(known) == 2 and known[0] and known[1] else ""
        texts = "  ".join(f"{text:>16}" for text, _ in cells)
        print(f"{name:12} {width:6.1f} {mean:6.1f} {published(cpu):>8} {published(gpu):>8}  {texts}{ratio}", flush=True)


def figure(args: argparse.Namespace) -> None:
    made: list[tuple[Callable[[int], Model], Heuristic]] = [
        (family(random_model, 20, 25, 0.3), "max-degree"),
        (family(scale_free_model, 20, 25), "max-degree"),
        (narrow_grid(10, 25), "most-connected"),
    ]
    for (name, speedups), (make, heuristic) in zip(SPEEDUPS.items(), made, strict=True):
        print(f"\nFig. 11: ADPOP(z), {name} ({heuristic}): simulated runtime, speed-up published and ours, bound")
        for z, known in enumerate(speedups, start=2):
            bounds: dict[int, int | float | None] = {}
            seconds: dict[str, list[float]] = {agents: [] for agents in args.agents}
            for agents in args.agents:
                affordable = len(make(0).variables) * 25.0 ** (z + 1) < args.limit * COMBINATIONS[agents]
                for seed in range(args.instances if affordable else 0):
                    stats = run(Problem.from_model(make(seed)), agents, heuristic, z)
                    seconds[agents].append(stats["simulated_seconds"])
                    bounds[seed] = stats["answer"][1]
            medians = {agents: statistics.median(times) for agents, times in seconds.items() if times}
            texts = "  ".join(f"{agents} {median:.4f}" for agents, median in medians.items())
            ratio = f"{medians['cpu'] / medians['cuda']:.1f}" if len(medians) == 2 else "-"
            least = [bound for bound in bounds.values() if bound is not None]
            text = f"bound {statistics.mean(least):.1f} ({len(least)}/{len(bounds)} feasible)" if least else ""
            print(f"z {z:2}: {texts}  {published(known)} {ratio}  {text}", flush=True)


def many_problem(name: str, count: int) -> Problem:
    """Return a problem of so many agents: a random tree, or a chain with chords, in a random numbering."""
    rng = np.random.default_rng(0)
    if name == "random tree":
        pairs = [(int(rng.integers(0, v)), v) for v in range(1, count)]
    else:
        pairs = [(u, v) for v in range(1, count) for u in {v - 1, max(0, v - int(rng.integers(1, 4)))}]
    place = rng.permutation(count).tolist()
    tables = [Table((place[a], place[b]), rng.integers(0, 100, (3, 3))) for a, b in pairs]
    return Problem.from_model(Model([Variable(f"x{v}", 3) for v in range(count)], tables))


def timed(problem: Problem, runs: int, options: AgentOptions = DEFAULT) -> tuple[float, float, Result]:
    """Return the medians of wall and processor time, and the last answer."""
    times, busy = [], []
    for _ in range(runs):
        started, processor = time.perf_counter(), time.process_time()
        result = solve(problem, options=options)
        times.append(time.perf_counter() - started)
        busy.append(time.process_time() - processor)
    return statistics.median(times), statistics.median(busy), result


def many(counts: Sequence[int]) -> Record:
    print("\nAgents in one process: wall and processor time")
    columns = ["graph", "agents", "s", "processor, s", "processor, us per agent", "width", "depth", "messages"]
    record = Record("dpop-of-many-agents", columns, "Medians of three runs; 3 values, random costs.")
    for name, count in itertools.product(("random tree", "chain with chords"), counts):
        seconds, processor, result = timed(many_problem(name, count), 3)
        stats = result.stats
        messages = sum(stats["messages"].values())
        print(
            f"{name}, {count}: {seconds:.3f} s, processor {processor:.3f} s, width {stats['induced_width']}, "
            f"depth {stats['depth']}, {messages} messages, simulated {stats['simulated_seconds']:.3f} s",
            flush=True,
        )
        times = f"{seconds:.3g}", f"{processor:.3g}", f"{1e6 * processor / count:.0f}"
        record.add(name, f"{count:,}", *times, stats["induced_width"], f"{stats['depth']:,}", f"{messages:,}")
    return record


def colouring(count: int, colours: int, seed: int = 0) -> tuple[list[tuple[int, int]], list[list[list[int]]]]:
    """Edges and tables: 100 where both ends have one colour, and a small cost for each pair of colours."""
    rng = np.random.default_rng(seed)
    pairs = [(v - back, v) for v in range(1, count) for back in range(1, 6) if back <= v and rng.random() < 2 / back]
    return pairs, [(rng.integers(0, 10, (colours, colours)) + 100 * np.eye(colours, dtype=int)).tolist() for _ in pairs]


def against_pydcop(python: str, limit: float) -> Record:
    print("\nDPOP on graph colouring: elimina and pyDCOP, wall time (s)")
    script = Path(__file__).with_name("baselines") / "pydcop_dpop.py"
    columns = ["variables, colours", "elimina", "pyDCOP", "its computations alone", "ratio", "ratio of processor time"]
    note = "Graph colouring, seconds; elimina: median of nine runs; pyDCOP 0.1.1: one run, without reading."
    record = Record("dpop-against-pydcop", columns, note)
    for count, colours in itertools.product(COLOURED, COLOURS):
        edges, costs = colouring(count, colours)
        tables = [Table(edge, np.array(table)) for edge, table in zip(edges, costs, strict=True)]
        problem = Problem.from_model(Model([Variable(f"x{v}", colours) for v in range(count)], tables))
        ours, own, result = timed(problem, 9, AgentOptions(heuristic="most-connected"))
        line = json.dumps({"sizes": [colours] * count, "edges": edges, "costs": costs})
        start = f"{count:4} variables, {colours} colours, width {result.stats['induced_width']}: elimina {ours:.4f}"
        name = f"{count}, {colours}"
        try:
            done = subprocess.run([python, str(script)], input=line, capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            print(f"{start}, pyDCOP more than {seconds_text(limit)}: more than {limit / ours:.0f} times", flush=True)
            record.add(name, f"{ours:.4f}", f"more than {limit:.0f}", "", "", "")
            continue
        if done.returncode:
            raise SystemExit(f"the peer failed:\n{done.stderr}")
        peer = json.loads(done.stdout)
        if peer["cost"] != result.value:
            raise SystemExit(f"elimina found {result.value}, pyDCOP {peer['cost']}")
        seconds, alone = peer["tree"] + peer["threads"], peer["tree"] + peer["run"]
        ratios = f"{seconds / ours:.0f} and {alone / ours:.0f} times"
        print(f"{start}, pyDCOP {seconds:.3f}, its computations alone {alone:.3f}: {ratios}", end="; ")
        print(
            f"of the processor {own:.4f} and {peer['processor']:.3f}: {peer['processor'] / own:.0f} times", flush=True
        )
        times = f"{seconds / ours:.0f}", f"{peer['processor'] / own:.0f}"
        record.add(name, f"{ours:.4f}", f"{seconds:.3f}", f"{alone:.3f}", *times)
    return record


def filtered(files: Sequence[str]) -> None:
    print("\nDPOP whole and filtered: rows of tables, bytes of all messages and of the largest one, wall time (s)")
    for file in files:
        problem = read(file)
        for filtering in (None, 2, 4, 6):
            started = time.perf_counter()
            try:
                result = solve(problem, memory=1 << 30, options=AgentOptions(filtering=filtering))
            except MemoryLimitError as error:
                print(f"{Path(file).stem:20} filter {filtering or '-'}: {str(error).partition(';')[0]}", flush=True)
                continue
            seconds, stats = time.perf_counter() - started, result.stats
            rows = f"{stats['rows_sent']} of {stats['dense_rows']} rows, " if filtering else ""
            size = f"{stats['network_load']} bytes, largest {stats['largest_message']}"
            print(
                f"{Path(file).stem:20} filter {filtering or '-'}: width {stats['induced_width']}, {result.value}, "
                f"{rows}{size}, {seconds:.3f} s",
                flush=True,
            )


def against_frodo(args: argparse.Namespace) -> None:
    families: list[tuple[str, Callable[[int], Callable[[int], Model]], tuple[int, ...], int, Heuristic]] = [
        ("random p1=0.3", lambda n: family(random_model, n, 5, 0.3), (10, 15, 20, 25), 19, "max-degree"),
        ("scale-free", lambda n: family(scale_free_model, n, 5), (20, 30, 40, 50), 40, "max-degree"),
        ("grid", lambda n: family(grid_model, round(n**0.5), 5), (9, 16, 25, 36, 64, 100), 35, "most-connected"),
    ]
    print("\nDPOP of FRODO 2.11 (within 300 s and 32 GB: yes or no) and ours, simulated runtime (s)")
    for name, make, counts, most, heuristic in families:
        for count in counts:
            problems = [Problem.from_model(make(count)(seed)) for seed in range(args.instances)]
            mean = statistics.mean(combinations(problem, heuristic)[0] for problem in problems)
            text, _ = cell(problems, "cpu", heuristic, args.limit)
            answer = "yes" if count <= most else "no"
            print(f"{name:14} n {count:3}  FRODO {answer:3}  width {mean:4.1f}  ours {text}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", nargs="+", default=["cpu"], choices=["cpu", "cuda"])
    parser.add_argument("--instances", type=int, default=10)
    parser.add_argument("--table", nargs="*", type=int, default=[1, 2, 3, 11], choices=[1, 2, 3, 11])
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("--match", default="", help="regular expression on the rows of tables 1 to 3")
    parser.add_argument("--many", type=int, nargs="*", default=[10_000], metavar="N")
    parser.add_argument("--peer", metavar="PYTHON")
    parser.add_argument("--record", action="store_true", help="keep the tables of --many and --peer in bench/results")
    parser.add_argument("--frodo", action="store_true")
    parser.add_argument("--filter", nargs="+", metavar="FILE", default=[])
    args = parser.parse_args()
    for agents in args.agents:
        # Kernels are compiled and loaded once.
        for n, d in ((12, 4), (12, 12), (17, 10)):
            solve(Problem.from_model(random_model(n, d, 0.3)), options=AgentOptions(agents=agents))
    if 1 in args.table:
        rows = [(f"{n} {d} {p1}", w, family(random_model, n, d, p1)) for n, d, p1, w, *_ in RANDOM]
        table("Table 1: random networks, n d p1", rows, RANDOM_DPOP, args)
    if 2 in args.table:
        rows = [(f"{n} {d}", w, family(scale_free_model, n, d)) for n, d, w, *_ in SCALE_FREE]
        table("Table 2: scale-free networks, n d", rows, SCALE_FREE_DPOP, args)
    if 3 in args.table:
        rows = [(f"{side} {d}", w, narrow_grid(side, d)) for side, d, w, *_ in GRID]
        table("Table 3: grids of side^2 variables in rows of 4, side d", rows, GRID_DPOP, args, "most-connected")
    if 11 in args.table:
        figure(args)
    counts = [count for count in args.many if count]
    records = [many(counts)] if counts else []
    if args.peer:
        records.append(against_pydcop(args.peer, args.limit))
    if args.frodo:
        against_frodo(args)
    if args.filter:
        filtered(args.filter)
    for record in records if args.record else ():
        print(f"wrote {record.save()}")


if __name__ == "__main__":
    main()
