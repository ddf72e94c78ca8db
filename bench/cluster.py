"""Agents, and slices of a plan, on worker processes of this machine, beside one process.

    python bench/cluster.py [--agents 1000] [--workers 4] [--repeat 3] [--side 9] [--domain 6] [--search FILE ...]

Agents: DPOP on a nearly tree-like problem (3 values; each variable with one of the 25 before it, and a chord every 40),
simulated in one process, on the workers, and on the workers while one of them is killed: at its 100th message, or at
its 100th value.
Slices: the optimum of a grid on one worker, and on all; its plan fits, but is divided. Wall times in seconds, medians;
starting the cluster is separate.
Search: proven optima of files by one process on one thread, by one worker, and by all, one after the other in each
repetition; CPU seconds in all and of the busiest process beside, since a machine that has other work to do stretches
wall times. With files, nothing else is run.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from distributed import Client

from elimina import Model, Table, Variable
from elimina import solve as solve_here
from elimina.dcop import Problem, solve
from elimina.distributed import local, solve_agents, solve_optimum, solve_slices
from elimina.distributed.cluster import known_workers
from elimina.generate import grid_model
from elimina.io.model_files import read
from elimina.number_texts import bytes_text, seconds_text
from elimina.planning.options import Options

KILLED_AT = 100


def nearly_a_tree(variables: int, seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    edges = {(int(rng.integers(max(0, v - 25), v)), v) for v in range(1, variables)}
    edges |= {(v - 2, v) for v in range(4, variables, 40)}
    tables = [Table(edge, rng.integers(0, 99, (3, 3))) for edge in sorted(edges)]
    return Problem.from_model(Model([Variable(f"x{v}", 3) for v in range(variables)], tables))


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    found = call()
    return time.perf_counter() - started, found


def kill_later(owner: str, method: str, number: int) -> None:
    """Make this process kill itself at a call."""
    from elimina.dcop import agent

    kind = getattr(agent, owner)
    plain, calls = getattr(kind, method), [0]

    def counting(self: Any, *arguments: Any) -> Any:
        calls[0] += 1
        if calls[0] == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(self, *arguments)

    setattr(kind, method, counting)


def bench_agents(count: int, workers: int, repeat: int) -> None:
    problem = nearly_a_tree(count, 1)
    print(f"{count} agents")
    alone = [timed(lambda: solve(problem)) for _ in range(repeat)]
    value = alone[0][1].value
    print(f"  one process, simulated: {seconds_text(statistics.median(t for t, _ in alone))}")
    started = time.perf_counter()
    with local(workers) as client:
        print(f"  start of {workers} workers: {seconds_text(time.perf_counter() - started)}")
        found = [timed(lambda: solve_agents(problem, client=client)) for _ in range(repeat)]
        assert all(one.value == value for _, one in found)
        stats = found[0][1].stats
        sent = f"{bytes_text(stats['transferred_bytes'])} of {bytes_text(stats['network_load'])} between workers"
        print(f"  {workers} workers: {seconds_text(statistics.median(t for t, _ in found))}; {sent}")
    for owner, method, moment in (
        ("Agent", "receive", "as the tree is made"),
        ("Bucket", "decide", "as values are chosen"),
    ):
        with local(workers) as client:
            first = min(known_workers(client))
            client.run(kill_later, owner, method, KILLED_AT, workers=[first])
            seconds, one = timed(lambda: solve_agents(problem, client=client))
        assert one.value == value
        assert one.stats["lost_workers"] == 1
        again = one.stats["restarted_agents"]
        print(f"  {workers} workers, one killed {moment}: {seconds_text(seconds)}; {again} agents started again")


def bench_slices(side: int, domain: int, workers: int, repeat: int) -> None:
    model = grid_model(side, domain)
    expected = solve_here(model, options=Options("cpu", threads=1, method="eliminate")).value
    print(f"optimum of a grid of {side} x {side}, {domain} values")
    for number in (1, workers):
        with local(number) as client:
            found = [timed(lambda: solve_slices(model, client=client, options=Options())) for _ in range(repeat)]
        assert all(one.value == expected for _, one in found)
        stats = found[0][1].stats
        seconds = statistics.median(one.stats["seconds"]["run"] for _, one in found)
        print(f"  {number} workers: {seconds_text(seconds)} in {stats.get('slices', 1)} slices, without planning")


def bench_search(file: str, workers: int, repeat: int) -> None:
    model = read(file)
    counts = sorted({1, workers})
    rows: dict[int, list[tuple[float, float, float, Any]]] = {number: [] for number in (0, *counts)}
    with contextlib.ExitStack() as stack:
        clients = {number: stack.enter_context(local(number)) for number in counts}
        for _ in range(repeat):
            for number, found in rows.items():
                found.append(_searched(model, clients.get(number)))
    print(file.rsplit("/", 1)[-1])
    assert len({one.value for found in rows.values() for *_, one in found}) == 1
    for number, found in rows.items():
        name = f"{number} workers" if number else "one process"
        seconds, cpu, most = (seconds_text(statistics.median(row[part] for row in found)) for part in range(3))
        stats = found[0][-1].stats
        parts = f"{stats['turns']} turns, {stats['rounds']} rounds, {stats['nodes']:.3g} nodes"
        print(f"  {name}: {seconds}; CPU {cpu} in all, {most} of the busiest process; {parts}", flush=True)


def _searched(model: Model, client: Client | None) -> tuple[float, float, float, Any]:
    """Seconds, CPU seconds in all and of the busiest process, and the answer; without a client by one process."""
    before = _cpu_seconds(client)
    if client is None:
        seconds, found = timed(lambda: solve_here(model, device="cpu", options=Options(threads=1, method="search")))
    else:
        options = Options(threads=1, method="search")
        seconds, found = timed(lambda: solve_optimum(model, client=client, options=options))
    assert found.status == "optimal"
    spent = [after - start for after, start in zip(_cpu_seconds(client), before, strict=True)]
    return seconds, sum(spent), max(spent), found


def _cpu_seconds(client: Client | None) -> list[float]:
    """Return the processor times of this process and of the workers."""
    workers = {} if client is None else client.run(time.process_time)
    return [time.process_time(), *(seconds for _, seconds in sorted(workers.items()))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--side", type=int, default=9)
    parser.add_argument("--domain", type=int, default=6)
    parser.add_argument("--search", nargs="*", default=[], metavar="FILE")
    args = parser.parse_args()
    for file in args.search:
        bench_search(file, args.workers, args.repeat)
    if args.search:
        return
    bench_agents(args.agents, args.workers, args.repeat)
    bench_slices(args.side, args.domain, args.workers, args.repeat)


if __name__ == "__main__":
    main()
