"""Several GPUs of one host beside one: slices, cases, bounds and agents; and a call on a GPU besides its run.

    python bench/several_gpus.py [MODEL ...] [--gpus 1 2]
        [--parts slices divided small cases bounds agents calls starts] [--record]

MODELs are networks (.bif) for the cases and UAI files for the calls. Each part runs on the first GPU alone, then on as
many as ``--gpus`` says. `slices`: optimum and sum of a grid that does not fit one GPU. `divided`: sums of long grids,
whose tables the GPUs share; one GPU has room for all of them, or is left out. `small`: a grid that fits one GPU,
where ``auto`` is beside one GPU. `cases`: posteriors of cases that observe ten variables. `bounds`: a sum by mini-
buckets from both sides. `agents`: the optimum by DPOP, of arms that meet in one variable. `calls`: a second call of the
same structure less its run, and whole processes. `starts`: what an open GPU takes before a structure's first steps.
Seconds; efficiency: one GPU's time over that of all and their number. `--limit` seconds are what one GPU may take for
the cases. `--cpu` puts single threads in the place of GPUs and makes everything small, to try the script.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import elimina
from elimina import dcop
from elimina.backends.cpu import CpuBackend
from elimina.backends.device_group import DeviceGroup
from elimina.dcop import Problem, engine
from elimina.io.cases import Cases
from elimina.planning.devices import gpu_numbers
from elimina.planning.machine import cuda_machine
from elimina.planning.options import Options
from elimina.planning.order import find_order
from elimina.running import host
from record import Record

COLUMNS = ("work", "GPUs", "call, s", "run, s", "times one GPU", "efficiency", "GB between GPUs", "answer")
NOTE = "Call: the whole call with a given order. Run: the call without preparing, planning and bounds of slices."
AROUND = ("read", "prepare", "order", "plan", "bounds", "other", "total")
OBSERVED = 10
WARM_UP = 2048
ORDER_SECONDS = 2.0
REPEATS = 7
PARTS = ("slices", "divided", "small", "cases", "bounds", "agents", "calls", "starts")


class Table:
    """Rows of the record, printed as they come."""

    def __init__(self) -> None:
        self.record = Record("several-gpus", COLUMNS, NOTE)
        self._one: dict[str, float] = {}
        self._answers: dict[str, Any] = {}

    def add(
        self, work: str, gpus: int | str, call: float, run: float, answer: Any, measure: float, between: float = 0.0
    ) -> None:
        """Add a row; ``measure``: the seconds that are compared; ``between``: bytes that GPUs read of each other."""
        one = self._one.setdefault(work, measure)
        first = self._answers.setdefault(work, answer)
        same = np.allclose(np.asarray(answer, dtype=float), np.asarray(first, dtype=float), rtol=1e-9, atol=1e-12)
        times = one / measure
        share = f"{times / gpus:.2f}" if isinstance(gpus, int) else ""
        end = "same" if same else "DIFFERS"
        row = (work, gpus, f"{call:.3f}", f"{run:.3f}", f"{times:.2f}", share, f"{between / 1e9:.1f}", end)
        self.record.add(*row)
        print("{:34}{!s:>6}{:>10}{:>10}{:>8}{:>8}{:>8}  {}".format(*row), flush=True)


def devices(count: int) -> str:
    """Return the name of the first GPUs."""
    return ",".join(f"cuda:{number}" for number in range(count))


def lattice(side: int, size: int, seed: int = 0) -> elimina.Model:
    """A grid of attractive and repulsive pairs."""
    rng, last = np.random.default_rng(seed), side * side
    pairs = [(v, v + 1) for v in range(last) if (v + 1) % side] + [(v, v + side) for v in range(last - side)]
    factors = [(pair, np.exp(rng.normal(size=(size, size)))) for pair in pairs]
    return elimina.Model.from_arrays([size] * last, factors, sense="probability")


def costs(side: int, size: int) -> elimina.Model:
    """A grid of random costs."""
    rng, last = np.random.default_rng(1), side * side
    pairs = [(v, v + 1) for v in range(last) if (v + 1) % side] + [(v, v + side) for v in range(last - side)]
    factors = [(pair, rng.integers(0, 100, (size, size))) for pair in pairs]
    return elimina.Model.from_arrays([size] * last, factors, sense="min-cost")


def solved(model: elimina.Model, task: str, device: str, order: Sequence[int], **options: Any) -> tuple[float, ...]:
    """Return the seconds of a call, those of its run, its answer, and the bytes that went between GPUs."""
    memory = options.pop("memory", None)
    given = Options(order=tuple(order), **options)
    started = time.perf_counter()
    result = elimina.solve(model, task, device=device, memory=memory, options=given)
    call = time.perf_counter() - started
    clock = result.stats["seconds"]
    run = clock["total"] - sum(clock.get(phase, 0.0) for phase in AROUND if phase != "total")
    value = result.value if task == "mpe" else result.log10_z
    if value is None:
        value = result.lower_bound
    stats = result.stats
    cut = f"{stats.get('slices', 1)} slices, {stats.get('slices_skipped', 0)} skipped"
    between = float(stats.get("bytes_between_gpus", 0))
    cut += f", tables divided among {stats.get('gpus', 1)}"
    print(f"  {device}: {result.status}, {cut}, on {stats['device']}: {clock}", flush=True)
    return call, run, float(value if value is not None else np.nan), between


def ordered(model: elimina.Model) -> list[int]:
    """Return an order that all calls share."""
    return list(find_order(model.sizes, [table.scope for table in model.factors], seconds=ORDER_SECONDS).order)


def slices(table: Table, args: argparse.Namespace) -> None:
    side, size, memory = (5, 4, 15_000) if args.cpu else (*args.grid, args.memory)
    for task, model, dtype in (("mpe", costs(side, size), "int32"), ("pr", lattice(side, size), "float64")):
        order = ordered(model)
        for count in args.gpus:
            known = {"method": "eliminate", "memory": memory, "dtype": dtype}
            for _ in range(2):  # The second time, kernels are there.
                call, run, answer, between = solved(model, task, devices(count), order, **known)
            table.add(f"{task}, {side} x {side} grid of {size}, {dtype}", count, call, run, answer, run, between)


def strip(width: int, length: int, size: int) -> tuple[elimina.Model, list[int]]:
    """A long grid, which no few variables cut into slices, and the order of its columns."""
    rng, last = np.random.default_rng(2), width * length
    pairs = [(v, v + 1) for v in range(last) if (v + 1) % width] + [(v, v + width) for v in range(last - width)]
    factors = [(pair, np.exp(rng.normal(size=(size, size)))) for pair in pairs]
    return elimina.Model.from_arrays([size] * last, factors, sense="probability"), list(range(last))


def divided(table: Table, args: argparse.Namespace) -> None:
    """Plans whose tables are divided among the GPUs: several have as much memory as one's tables take."""
    for width, length, size in [(4, 6, 3)] if args.cpu else args.strips:
        model, order = strip(width, length, size)
        for count in args.gpus:
            known: dict[str, Any] = {"method": "eliminate", "slices": "never"}
            if count > 1:
                # Two messages are there at a time; each GPU has whole values of the variable that divides them.
                known["memory"] = int(2.3 * 8 * size**width * math.ceil(size / count) / size) + (1 << 28)
            elif not (plan := planned(model, devices(1), order)).form.is_resident:
                print(f"  {width} x {length} grid of {size}: {plan.seconds:.0f} s in tiles on one GPU, as estimated")
                continue
            try:
                for _ in range(2):  # The second time, kernels are there.
                    call, run, answer, between = solved(model, "pr", devices(count), order, **known)
            except elimina.EliminaError as error:
                print(f"  {count} GPUs: {error}", flush=True)
                continue
            table.add(f"pr, {width} x {length} grid of {size}, divided", count, call, run, answer, run, between)


def planned(model: elimina.Model, device: str, order: Sequence[int]) -> elimina.Plan:
    """Return the plan of a sum without slices."""
    return elimina.plan(model, "pr", device=device, options=Options(order=tuple(order), slices="never"))


def small(table: Table, args: argparse.Namespace) -> None:
    side, size = (4, 3) if args.cpu else (13, 5)
    model = costs(side, size)
    order = ordered(model)
    solved(model, "mpe", devices(1), order, method="eliminate")
    for gpus, device in ((1, devices(1)), ("auto", "auto"), (max(args.gpus), devices(max(args.gpus)))):
        call, run, answer, between = min(solved(model, "mpe", device, order, method="eliminate") for _ in range(2))
        table.add(f"optimum, {side} x {side} grid of {size}", gpus, call, run, answer, call, between)


def cases(table: Table, args: argparse.Namespace) -> None:
    found = [(path.name, elimina.read(path)) for path in args.models if ".bif" in path.suffixes]
    for name, model in found or ([("grid 4 x 4 of 3", lattice(4, 3))] if args.cpu else []):
        rng, order, number = np.random.default_rng(1), None, args.cases
        columns = tuple(sorted(rng.choice(len(model.variables), OBSERVED, replace=False).tolist()))
        for count in args.gpus:
            options = Options() if order is None else Options(order=tuple(order))
            tree = elimina.JunctionTree(model, device=devices(count), options=options)
            if order is None:
                order = tree.plan.order
                drawn = np.asarray(tree.sample(WARM_UP, seed=1, indices=True), dtype=np.int32)[:, columns]
            # The second time, kernels are there.
            for _ in range(2):
                started = time.perf_counter()
                tree.batch(Cases(columns, drawn))
                rate = WARM_UP / (time.perf_counter() - started)
            if count == args.gpus[0]:
                number = min(args.cases, max(WARM_UP, int(args.limit * rate)))
            values = np.resize(drawn, (number, OBSERVED))
            started = time.perf_counter()
            answer = tree.batch(Cases(columns, values))
            seconds = time.perf_counter() - started
            tree.close()
            table.add(f"{number:,} cases of {name}", count, seconds, seconds, answer.log10_evidence, seconds)
            del answer


def bounds(table: Table, args: argparse.Namespace) -> None:
    side, size, ibound = (5, 3, 3) if args.cpu else (24, 4, args.ibound)
    model = lattice(side, size)
    order = ordered(model)
    for gpus, device in [*((count, devices(count)) for count in args.gpus), ("auto", "auto")]:
        known = [solved(model, "pr", device, order, method="mbe", ibound=ibound) for _ in range(3)]
        call, run, answer, between = min(known[1:])  # The first time, kernels are compiled.
        table.add(f"log Z, {side} x {side} grid of {size}, i-bound {ibound}", gpus, call, run, answer, call, between)


def arms(count: int, length: int, width: int, size: int) -> Problem:
    """Bands of random costs that meet in one variable, below a root of two values; each variable has its agent."""
    rng, sizes, pairs = np.random.default_rng(3), [size] * (1 + count * length), []
    for arm in range(count):
        band = [0, *range(1 + arm * length, 1 + (arm + 1) * length)]
        pairs += [(band[a], band[b]) for b in range(len(band)) for a in range(max(0, b - width), b)]
    pairs.append((0, len(sizes)))
    sizes.append(2)
    factors = [(pair, rng.integers(0, 10_000, [sizes[v] for v in pair])) for pair in pairs]
    return Problem.from_model(elimina.Model.from_arrays(sizes, factors, sense="min-cost"))


def agents(table: Table, args: argparse.Namespace) -> None:
    """DPOP's agents: subtrees that do not depend on each other are the GPUs' at the same time."""
    count, length, size = (4, 5, 12) if args.cpu else args.arms
    problem = arms(count, length, 3, size)
    for gpus in args.gpus:
        # The root is the variable of fewest neighbours, below which the arms are as wide as their bands.
        given = dcop.AgentOptions(agents=devices(gpus), heuristic="most-connected")
        for _ in range(2):  # The second time, kernels are there.
            started = time.perf_counter()
            result = dcop.solve(problem, options=given)
            call = time.perf_counter() - started
        stats = result.stats
        print(f"  {stats['device']}: width {stats['induced_width']}, {stats['dtype']}, {stats['seconds']}", flush=True)
        work, between = f"DPOP, {count} arms of {length}, {size} values", stats.get("bytes_between_gpus", 0)
        table.add(work, gpus, call, stats["seconds"]["run"], result.value, call, between)


def calls(_: Table, args: argparse.Namespace) -> None:
    """Second calls less their runs, and whole processes."""
    device = "cpu" if args.cpu else "cuda"
    models = [("grid 12 x 12 of 2", lattice(12, 2))]
    models += [(path.name, elimina.read(path)) for path in args.models if ".uai" in path.suffixes]
    print(f"{'whole call on one GPU, ms':34}{'steps':>8}{'first':>10}{'second':>10}{'run':>8}{'above':>8}")
    for name, model in models:
        order = tuple(ordered(model))
        clocks = []
        for number in range(REPEATS + 1):
            started = time.perf_counter()
            result = elimina.solve(model, "pr", device=device, options=Options(order=order, method="eliminate"))
            total = time.perf_counter() - started
            clocks.append((total, result.stats["seconds"].get("run", 0.0)))
            if number in (0, REPEATS):
                print(f"  {result.stats['seconds']}")
        above = 1e3 * statistics.median(total - run for total, run in clocks[1:])
        total, run = (1e3 * statistics.median(column) for column in zip(*clocks[1:], strict=True))
        first = 1e3 * clocks[0][0]
        print(f"{name:34}{len(order):>8}{first:>10.1f}{total:>10.2f}{run:>8.2f}{above:>8.2f}", flush=True)
    print("processes, s (fastest of 3)")
    base = "import cupy, elimina; cupy.zeros(1)" if not args.cpu else "import elimina"
    example = Path(__file__).parents[1] / "examples" / "radio.wcsp"
    solve = f"import elimina; elimina.solve({str(example)!r}, device={device!r})"
    for name, code in (("context alone", base), ("solve", solve)):
        print(f"{name:34}{min(map(process, [code] * 3)):>8.3f}", flush=True)


FIRST = """
import json, sys, elimina, numpy
sys.path[:0] = [{here!r}]
import several_gpus
device, order = {device!r}, {order!r}
elimina.solve(several_gpus.lattice(3, 2), "pr", device=device)
model = {model}
given = elimina.Options(order=tuple(order), method="eliminate")
planned = elimina.plan(model, "pr", device=device, options=given)
found = [elimina.solve(model, "pr", device=device, options=given).stats["seconds"] for _ in range(2)]
print(json.dumps([len(planned.steps), planned.seconds, *found]))
"""


def starts(_: Table, args: argparse.Namespace) -> None:
    """Time that an open GPU takes before it works: the first run of a structure in a process, less its steps."""
    device = "cpu" if args.cpu else "cuda"
    makers = [
        (f"grid {n} x {n} of {size}", f"several_gpus.lattice({n}, {size})") for n, size in ((12, 2), (18, 2), (6, 6))
    ]
    makers += [(path.name, f"elimina.read({str(path)!r})") for path in args.models if ".uai" in path.suffixes]
    print(f"{'open GPU, ms, median of 3':34}{'steps':>8}{'planned':>10}{'first':>10}{'later':>10}{'start':>8}")
    for name, maker in makers:
        order = list(map(int, ordered(eval(maker, {"several_gpus": sys.modules[__name__], "elimina": elimina}))))
        code = FIRST.format(here=str(Path(__file__).parent), device=device, order=order, model=maker)
        # The first process compiles the kernels.
        shown = [json.loads(subprocess.check_output([sys.executable, "-c", code])) for _ in range(4)][1:]
        steps, planned = shown[0][:2]
        seconds = [statistics.median(known_run(found[at]) for found in shown) for at in (2, 3)]
        own = planned - (0.0 if args.cpu else cuda_machine(is_open=True).start)
        row = (steps, *(f"{1e3 * value:.2f}" for value in (own, *seconds, seconds[0] - own)))
        print("{:34}{:>8}{:>10}{:>10}{:>10}{:>8}".format(name, *row), flush=True)


def known_run(clock: dict[str, float]) -> float:
    """Seconds of a call on its device, from the opening of the program on."""
    return clock["total"] - sum(clock.get(phase, 0.0) for phase in ("read", "prepare", "order", "plan"))


def process(code: str) -> float:
    """Wall time of one interpreter."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - started


def single_threads(device: str, threads: int | None = None) -> Any:
    """Return single threads in the place of GPUs."""
    members = [CpuBackend(1) for _ in gpu_numbers(device)]
    return CpuBackend(threads) if not members else members[0] if len(members) == 1 else DeviceGroup(members)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--gpus", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--limit", type=float, default=12.0)
    parser.add_argument("--grid", nargs=2, type=int, default=(10, 10))
    parser.add_argument(
        "--strips", type=json.loads, default=[[10, 24, 8], [11, 11, 8]], help="Width, length, values: JSON lists."
    )
    parser.add_argument("--memory", help="of each GPU, for the slices")
    parser.add_argument("--ibound", type=int, default=11)
    parser.add_argument("--arms", nargs=3, type=int, default=(8, 10, 560), help="Number, length, values.")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--record", action="store_true", help="Keep the table as bench/results/several-gpus.json.")
    args = parser.parse_args()
    if args.cpu:
        host.get_backend = engine.get_backend = single_threads
        engine.MIN_GPU_COMBINATIONS = 1 << 12
        args.cases = min(args.cases, 2 * WARM_UP)
    parts: dict[str, Callable[[Table, argparse.Namespace], None]] = {
        "slices": slices,
        "divided": divided,
        "small": small,
        "cases": cases,
        "bounds": bounds,
        "agents": agents,
        "calls": calls,
        "starts": starts,
    }
    table = Table()
    for name in args.parts:
        started = time.perf_counter()
        try:
            parts[name](table, args)
        except elimina.EliminaError as error:
            print(f"{name} failed: {error}", flush=True)
        print(f"({name}: {time.perf_counter() - started:.1f} s)", flush=True)
    if args.record:
        print(f"wrote {table.record.save()}")


if __name__ == "__main__":
    main()
