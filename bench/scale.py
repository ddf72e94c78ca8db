"""Simulate runs on many cards or workers, from a plan's own cost model.

    python bench/scale.py [--side 12] [--domain 10] [--cards 1 2 4 8] [--workers 1 10 100 1000] [--record]

The work is the optimum of a grid in slices on H200s, planned as `solve` plans it, and divided as a cluster divides it;
and a batch of cases. A slice repeats the steps that depend on the values that changed, a task's first slice repeats all
but those that all slices share, and each executor runs the shared ones once. All times are the planner's estimates.

Cards: one process with a thread for each card; each card has a link to the host of its own.
Workers: Dask workers with a card each; one client deals the tasks out and sends the plan to each over one network link.
Executors fail at random (`--hours` between two failures of one executor); their tasks are done again by others.
The simulation knows nothing of bounds that skip slices, so a real search for an optimum takes less time.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import math
from typing import NamedTuple

import numpy as np

from elimina.distributed.slices import task_number
from elimina.generate import grid_model
from elimina.number_texts import bytes_text, seconds_text
from elimina.planning.machine import SLICE_SECONDS, Machine, cuda_machine, speeds
from elimina.planning.options import DEFAULT
from elimina.planning.ordering import elimination_order
from elimina.planning.plan import Plan
from elimina.planning.planner import Elimination, make_plan
from elimina.planning.slicing import make_finer_plan, make_sliced_plan
from elimina.problem.preparation import Problem, prepare
from record import Record

CARD_BYTES = 135 << 30
"""Memory of an H200 that a plan may take."""

STEP_BYTES = 300
"""A step's record."""

CASES = ("barley", 13_530.0, 421)
"""A network, its cases a second on an H200 (bench/RESULTS.md), and the states of all its variables."""


class Site(NamedTuple):
    """A place where tasks run.

    Attributes:
        name: Word for an executor.
        start: Seconds until an executor takes its first task.
        link: Bytes a second to an executor.
        is_shared: True if all executors share that link.
        deal: Seconds that the client takes for each task, one after the other.
        latency: Seconds from the end of a task to the client's notice of it.
        noticed: Seconds until a lost executor is given up.
    """

    name: str
    start: float
    link: float
    is_shared: bool
    deal: float
    latency: float
    noticed: float


CARDS = Site("card", speeds().gpu_start, speeds().gpu_link, False, SLICE_SECONDS, 0.0, 0.0)
WORKERS = Site("worker", speeds().gpu_start, 1.25e9, True, 1e-3, 2e-3, 5.0)
"""A network of 10 Gbit/s; Dask takes about a millisecond for a task; a closed connection is noticed within seconds."""


class Work(NamedTuple):
    """Tasks of a plan.

    Attributes:
        shared: Seconds of the steps that each executor runs once.
        tasks: Seconds of each task.
        sent: Bytes that each executor is sent before its first task.
        returned: Bytes of a task's answer.
    """

    shared: float
    tasks: list[float]
    sent: int
    returned: int


class Outcome(NamedTuple):
    """Figures of a simulated run.

    Attributes:
        seconds: Wall time.
        moved: Bytes from and to the client.
        lost: Tasks done again.
    """

    seconds: float
    moved: int
    lost: int


def planned(side: int, domain: int) -> tuple[Problem, Machine, Plan, tuple[int, ...]]:
    """Return a grid's problem, the card, the plan that fits it, and the order."""
    machine = cuda_machine()
    problem = prepare(grid_model(side, domain, p2=0.0, seed=1), "mpe", {})
    order = elimination_order(problem, DEFAULT)
    plan = make_plan(Elimination(problem, order, machine, CARD_BYTES))
    if not plan.fits:
        sliced = make_sliced_plan(Elimination(problem, order, machine, CARD_BYTES, None), plan)
        if sliced is None:
            raise SystemExit(f"a grid of {side} x {side} variables of {domain} values takes too many slices")
        plan = sliced
    return problem, machine, plan, order


def slices_work(plan: Plan, machine: Machine, executors: int) -> Work:
    """Return the tasks into which a plan is divided for so many executors."""
    sizes = plan.form.sizes
    levels = plan.levels
    by_level = np.zeros(len(sizes) + 1)
    for level, step in zip(levels, plan.steps, strict=True):
        by_level[level] += machine.seconds([step], plan.itemsize, 0) - machine.start
    number = math.prod(sizes)
    seconds = np.full(number, SLICE_SECONDS)
    for place in reversed(range(len(sizes))):  # the slowest value that changes decides
        seconds[:: math.prod(sizes[place + 1 :])] = SLICE_SECONDS + by_level[place + 1 :].sum()
    count = task_number(number, plan.seconds, executors)
    ends = [number * task // count for task in range(count + 1)]
    whole = SLICE_SECONDS + by_level[1:].sum()
    tasks = [float(whole + seconds[first + 1 : last].sum()) for first, last in itertools.pairwise(ends)]
    return Work(float(by_level[0]), tasks, plan.factor_cells * plan.itemsize + STEP_BYTES * len(plan.steps), 0)


def cases_work(cases: int, rate: float, states: int, executors: int) -> Work:
    """Return the tasks of a batch of cases, whose posteriors come back as numbers of eight bytes."""
    count = task_number(cases, cases / rate, executors)
    return Work(0.0, [cases / rate / count] * count, 0, 8 * states * cases // count)


def simulate(work: Work, site: Site, executors: int, hours: float, seed: int = 0) -> Outcome:
    """Run the tasks on so many executors, event by event."""
    random = np.random.default_rng(seed)
    left = [(0.0, -seconds) for seconds in sorted(work.tasks, reverse=True)]
    transfer = work.sent / site.link
    ready = [site.start + transfer * (number + 1 if site.is_shared else 1) for number in range(executors)]
    fails = random.exponential(hours * 3600, executors)
    free = [(time + work.shared, number) for number, time in enumerate(ready)]
    heapq.heapify(free)
    client = link = end = 0.0
    lost = 0
    while left:
        if not free:
            raise SystemExit(f"all {executors} executors failed; give them more hours")
        now, number = heapq.heappop(free)
        since, task = heapq.heappop(left)
        client = max(client, now, since) + site.deal
        done = client - task
        if fails[number] < done:
            heapq.heappush(left, (fails[number] + site.noticed, task))
            lost += 1
            continue
        heapq.heappush(free, (done, number))
        link = max(link if site.is_shared else 0.0, done) + work.returned / site.link
        end = max(end, link + site.latency)
    return Outcome(end, work.sent * executors + work.returned * len(work.tasks), lost)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=12)
    parser.add_argument("--domain", type=int, default=10)
    parser.add_argument("--cards", type=int, nargs="*", default=[1, 2, 4, 8])
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 10, 100, 1000])
    parser.add_argument("--cases", type=int, default=10_000_000)
    parser.add_argument("--hours", type=float, default=1000.0, help="mean hours between failures of an executor")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    problem, machine, plan, order = planned(options.side, options.domain)
    name, rate, states = CASES
    record = Record(
        "scaling",
        ["work", "executors", "tasks", "a task", "seconds", "times one", "efficiency", "moved", "tasks lost"],
        f"Simulated on H200s. Slices: the optimum of a grid of {options.side} x {options.side} variables of "
        f"{options.domain} values, {bytes_text(plan.whole.peak_bytes)} of tables. Cases: posteriors of "
        f"{options.cases:,} cases of {name}. An executor fails every {options.hours:g} hours.",
    )
    print(record.note)
    for kind, (site, counts) in itertools.product(
        ("slices", "cases"), ((CARDS, options.cards), (WORKERS, options.workers))
    ):
        alone = 0.0
        for count in counts:
            if kind == "slices":
                divided = make_finer_plan(Elimination(problem, order, machine, plan.memory_limit), plan, 8 * count)
                work = slices_work(divided, machine, count)
            else:
                work = cases_work(options.cases, rate, states, count)
            outcome = simulate(work, site, count, options.hours)
            alone = alone or (outcome.seconds if count == 1 else math.nan)
            row = (
                kind,
                f"{count:,} {site.name}{'s' if count > 1 else ''}",
                f"{len(work.tasks):,}",
                seconds_text(float(np.mean(work.tasks))),
                f"{outcome.seconds:,.1f}",
                f"{alone / outcome.seconds:,.1f}",
                f"{100 * alone / outcome.seconds / count:.0f} %",
                bytes_text(outcome.moved),
                outcome.lost,
            )
            record.add(*row)
            print("  ".join(f"{cell!s:>13}" for cell in row))
    if options.record:
        print(record.save())


if __name__ == "__main__":
    main()
