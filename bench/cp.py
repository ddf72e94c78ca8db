"""Nodes a second of the constraint solver, with domain-consistent all_different, and the time of one propagation.

    python bench/cp.py [queens] [langford] [quasigroup] [halves] [propagation] [batch] [--sizes 100 200 500]
        [--limit 10] [--gecode fzn-gecode] [--device cpu cuda auto] [--repeat 3] [--tsp FILE ...]

`halves` is one AllDifferent of variables that have a random half of the values each.
Searches have a fixed rule (first_fail, indomain_min; Langford: input_order) and end at the first solution or the limit.
With `--gecode`, the same model goes to Gecode as FlatZinc that names `gecode_all_different_int` with `:: domain`
itself, since its own library decomposes it; `ratio` is our nodes a second over its, ours from a second search that
ends after as many nodes as Gecode made: nodes near the root cost most. Seconds are those of the search, as both print
them. With several devices, each makes as many nodes as the CPU made within the limit, in turns, and the best of
`--repeat` turns counts: equal runs differ by a quarter where the machine is shared.
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from elimina import cp
from elimina.cp import tour_problem, tsplib
from elimina.cp.gpu_filtering import accelerate


class Instance(NamedTuple):
    """Variables with domains, and AllDifferents over them with offsets."""

    name: str
    domains: list[Sequence[int]]
    different: list[list[tuple[int, int]]]
    variable_ordering: str = "first_fail"


def queens(n: int) -> Instance:
    lines = [[(i, step * i) for i in range(n)] for step in (0, 1, -1)]
    return Instance(f"queens {n}", [range(n)] * n, lines)


def langford(n: int) -> Instance:
    """L(2, n): the places of both numbers k are k + 1 apart."""
    domains: list[Sequence[int]] = [range(2 * n - 2 - k) for k in range(n)]
    return Instance(f"langford {n}", domains, [[(k, shift) for k in range(n) for shift in (0, k + 2)]], "input_order")


def quasigroup(n: int, holes: float = 0.42, seed: int = 1) -> Instance:
    """A latin square with holes: rows and columns of a shuffled cyclic one."""
    rng = random.Random(seed)
    rows, columns, names = (rng.sample(range(n), n) for _ in range(3))
    square = [[names[(rows[i] + columns[j]) % n] for j in range(n)] for i in range(n)]
    domains = [range(n) if rng.random() < holes else [square[i][j]] for i in range(n) for j in range(n)]
    rows_and_columns = [range(i * n, i * n + n) for i in range(n)] + [range(j, n * n, n) for j in range(n)]
    lines = [[(i, 0) for i in line] for line in rows_and_columns]
    return Instance(f"quasigroup {n}", domains, lines)


def halves(n: int, seed: int = 1) -> Instance:
    rng = random.Random(seed)
    return Instance(
        f"halves {n}", [sorted(rng.sample(range(n), n // 2)) for _ in range(n)], [[(i, 0) for i in range(n)]]
    )


def _fixed(node_limit: int | None) -> cp.SearchOptions:
    """Return the options of a search by its rule alone."""
    return cp.SearchOptions(node_limit=node_limit, restarts="none")


def ours(
    instance: Instance, limit: float, node_limit: int | None = None, device: str = "cpu"
) -> tuple[int, float, str]:
    model = cp.Model()
    xs = [
        model.int_var(values[0], values[-1]) if isinstance(values, range) else model.int_var(values)
        for values in instance.domains
    ]
    for line in instance.different:
        model.all_different([xs[i] + shift for i, shift in line])
    model.search(xs, instance.variable_ordering, "indomain_min")
    result = model.solve(time_limit=limit, device=device, options=_fixed(node_limit))
    return result.stats["nodes"], result.stats["seconds"]["search"], result.status


def flatzinc(instance: Instance) -> str:
    lines = ["predicate gecode_all_different_int(array [int] of var int: x);"]
    for i, values in enumerate(instance.domains):
        is_interval = len(values) == values[-1] - values[0] + 1
        domain = f"{values[0]}..{values[-1]}" if is_interval else f"{{{','.join(map(str, values))}}}"
        lines.append(f"var {domain}: x{i};")
    constraints, views = [], set()
    for line in instance.different:
        names = [f"x{i}" if not shift else f"x{i}_{shift}".replace("-", "m") for i, shift in line]
        for (i, shift), name in zip(line, names, strict=True):
            if shift and name not in views:
                views.add(name)
                lo, hi = instance.domains[i][0], instance.domains[i][-1]
                lines.append(f"var {lo + shift}..{hi + shift}: {name} :: var_is_introduced :: is_defined_var;")
                definition = f"int_lin_eq([1,-1],[{name},x{i}],{shift})"
                constraints.append(f"constraint {definition} :: defines_var({name}) :: domain;")
        constraints.append(f"constraint gecode_all_different_int([{','.join(names)}]) :: domain;")
    n = len(instance.domains)
    lines.append(f"array [1..{n}] of var int: x :: output_array([1..{n}]) = [{','.join(f'x{i}' for i in range(n))}];")
    solve = f"solve :: int_search(x,{instance.variable_ordering},indomain_min,complete) satisfy;\n"
    return "\n".join([*lines, *constraints, solve])


def gecode(model: str, program: str, limit: float) -> tuple[int, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.fzn"
        path.write_text(model)
        command = [program, "-s", "-time", str(int(limit * 1000)), str(path)]
        run = subprocess.run(command, capture_output=True, text=True)
    values = dict(re.findall(r"(nodes|solveTime)=([\d.]+)", run.stdout + run.stderr))
    return int(values["nodes"]), float(values["solveTime"])


def ratios(run: Callable[[str], tuple[int, float]], devices: list[str], repeat: int) -> str:
    """The best rates of the devices, measured in alternation, as ratios to the first one's."""
    best = dict.fromkeys(devices, 0.0)
    for device in devices * repeat:
        nodes, seconds = run(device)
        best[device] = max(best[device], nodes / seconds)
    cpu = best[devices[0]]
    others = [f"{device} {rate:8.0f}, {rate / cpu:.2f} times" for device, rate in best.items() if device != devices[0]]
    return "   ".join([f"{devices[0]} {cpu:8.0f} nodes/s", *others])


def compare(instance: Instance, limit: float, program: str | None, devices: list[str], repeat: int) -> None:
    nodes, seconds, status = ours(instance, limit)
    line = f"{instance.name:16} {status:10} {nodes:9} nodes {seconds:8.3f} s {nodes / seconds:10.0f} nodes/s"
    if program:
        peer_nodes, peer_seconds = gecode(flatzinc(instance), program, limit)
        rate = peer_nodes / max(peer_seconds, 1e-9)
        same_nodes, same_seconds, _ = ours(instance, limit, min(nodes, peer_nodes))
        line += f"   gecode {peer_nodes:9} nodes {peer_seconds:8.3f} s {rate:10.0f} nodes/s"
        line += f"   ratio {same_nodes / same_seconds / rate:.2f}"
    if len(devices) > 1:
        line += "   " + ratios(lambda device: ours(instance, 2 * limit, nodes, device)[:2], devices, repeat)
    print(line, flush=True)


def propagation(n: int, device: str, rounds: int = 5) -> None:
    """A permutation of n variables: the first call, one after a value was taken, and one after a variable was fixed."""
    times, calls = [], (0, 0.0)
    for _ in range(rounds):
        model = cp.Model()
        model.all_different(model.int_vars(n, 0, n - 1))
        solver, _ = model._build()
        accelerate(solver, device)
        moments = [time.perf_counter()]
        for act in (solver.propagate, partial(solver.decide, 1, 7, False), partial(solver.decide, 0, 5, True)):
            act()
            moments.append(time.perf_counter())
        times.append([1e3 * (b - a) for a, b in itertools.pairwise(moments)])
        calls = solver.device_calls()
    best = [min(column) for column in zip(*times, strict=True)]
    first, removal, decision = best
    line = f"permutation of {n}, {device}: first call {first:.3f} ms, removal {removal:.3f}, decision {decision:.3f}"
    print(line + (f"; {1e3 * calls.seconds / calls.count:.3f} on the device" if calls.count else ""))


def batch(n: int) -> None:
    """Seconds of the device's calls: all AllDifferents of a quasigroup at the root at once, and each of them alone."""
    instance = quasigroup(n)
    alone: list[tuple[int, float]] = []
    for lines in ([line] for line in instance.different):
        alone.append(root_calls(instance, lines, "cuda"))
    together = root_calls(instance, instance.different, "cuda")
    ones, one_by_one = (sum(column) for column in zip(*alone, strict=True))
    print(
        f"quasigroup {n}, {len(instance.different)} AllDifferents: {together[0]} calls of all that wait "
        f"{1e3 * together[1]:.3f} ms, {ones} calls one by one {1e3 * one_by_one:.3f} ms"
    )


def root_calls(instance: Instance, lines: list[list[tuple[int, int]]], device: str) -> tuple[int, float]:
    model = cp.Model()
    xs = [
        model.int_var(values[0], values[-1]) if isinstance(values, range) else model.int_var(values)
        for values in instance.domains
    ]
    for line in lines:
        model.all_different([xs[i] + shift for i, shift in line])
    solver, _ = model._build()
    accelerate(solver, device)
    solver.propagate()
    calls = solver.device_calls()
    return calls.count, calls.seconds


def tsp(path: Path, limit: float, program: str | None, devices: list[str], repeat: int) -> None:
    """Successors in a circuit, an element of the distances for each, their sum; the fewest values first.

    Nodes a second are those below the root, which a run of one node takes off.
    """
    problem = tsplib.read_tsp(path)
    start = time.perf_counter()
    model = cp.Model()
    successors = model.int_vars(problem.cities, 0, problem.cities - 1)
    model.circuit(successors)
    model.minimize(model.sum(map(model.element, problem.distances, successors)))
    model.search(successors, "first_fail", "indomain_min")
    built = time.perf_counter() - start
    root = model.solve(device="cpu", options=_fixed(1)).stats["seconds"]["search"]
    most = model.solve(time_limit=root + limit, device="cpu").stats["nodes"]

    def run(device: str) -> tuple[int, float]:
        statistics = model.solve(time_limit=root + 2 * limit, device=device, options=_fixed(most)).stats
        return statistics["nodes"] - 1, statistics["seconds"]["search"] - root

    rates = ratios(run, devices, repeat)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    line = f"{path.stem:10} {most:7} nodes   {rates}   built in {built:.1f} s, root {root:.2f} s, {peak:.2f} GiB"
    if program:
        nodes, seconds = gecode(tour_flatzinc(problem), program, limit)
        same = model.solve(device="cpu", options=_fixed(nodes)).stats
        line += f"   gecode {nodes / seconds:8.0f} nodes/s, ours over as many {same['nodes'] / same['seconds']:8.0f}"
    print(line, flush=True)


def tour_flatzinc(problem: tour_problem.TourProblem) -> str:
    n = problem.cities
    most = problem.distances.max(axis=1).tolist()
    names, costs = ([f"{letter}{i}" for i in range(n)] for letter in "xc")
    lines = ["predicate gecode_circuit(int: offset, array [int] of var int: x);"]
    lines += [f"array [1..{n}] of int: d{i} = {problem.distances[i].tolist()};" for i in range(n)]
    lines += [f"var 1..{n}: {x};\nvar 0..{m}: {c};" for x, c, m in zip(names, costs, most, strict=True)]
    lines += [f"var 0..{sum(most)}: total;"]
    lines += [f"array [1..{n}] of var int: x :: output_array([1..{n}]) = [{','.join(names)}];"]
    lines += ["constraint gecode_circuit(1,x) :: domain;"]
    lines += [f"constraint array_int_element({x},d{i},{c});" for i, (x, c) in enumerate(zip(names, costs, strict=True))]
    factors = ",".join(["1"] * n)
    lines += [f"constraint int_lin_eq([{factors},-1],[{','.join(costs)},total],0);"]
    lines += ["solve :: int_search(x,first_fail,indomain_min,complete) minimize total;\n"]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", default=["propagation", "queens", "langford", "quasigroup"])
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 200, 500])
    parser.add_argument("--limit", type=float, default=10)
    parser.add_argument("--gecode")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--tsp", type=Path, nargs="+", default=[])
    parser.add_argument("--device", nargs="+", default=["cpu"], help="cpu first")
    arguments = parser.parse_args()
    how = (arguments.limit, arguments.gecode, arguments.device, arguments.repeat)
    for path in arguments.tsp:
        tsp(path, *how)
    for what in [] if arguments.tsp else arguments.what:
        if what == "batch":
            for n in (30, 60):
                batch(n)
        elif what == "propagation":
            for n in (200, 1000, 2000, 5000, 10000):
                for device in arguments.device:
                    propagation(n, device)
        elif what == "quasigroup":
            for n in (20, 30, 40, 60):
                compare(quasigroup(n), *how)
        else:
            for n in arguments.sizes:
                instance = {"queens": queens, "langford": langford, "halves": halves}[what](n)
                compare(instance, *how)


if __name__ == "__main__":
    main()
