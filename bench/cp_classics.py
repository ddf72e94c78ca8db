"""Classic constraint problems: solution, bound and proof of the search modes within some seconds of processor time.

    python bench/cp_classics.py [NAME ...] [--seconds 10] [--modes default free lns free+lns cp-sat] [--record]

Each run has a process and a thread of its own. `cp-sat` is OR-Tools' CP-SAT with one worker and the model in its usual
form (intervals, Booleans for the shifts of a roster), if installed. A cell is the solution, the bound in brackets,
and the processor time of the proof, if there is one. Instances are random, from a seed, but ft06 and ft10 (Fisher and
Thompson, 1963).
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import elimina
from elimina import cp
from record import Record

MODES = ("default", "free", "lns", "free+lns", "cp-sat")
FT06 = (
    "2 1 0 3 1 6 3 7 5 3 4 6/1 8 2 5 4 10 5 10 0 10 3 4/2 5 3 4 5 8 0 9 1 1 4 7/1 5 0 5 2 5 3 3 4 8 5 9/"
    "2 9 1 3 4 5 5 4 0 3 3 1/1 3 3 3 5 9 0 10 4 4 2 1"
)
FT10 = (
    "0 29 1 78 2 9 3 36 4 49 5 11 6 62 7 56 8 44 9 21/0 43 2 90 4 75 9 11 3 69 1 28 6 46 5 46 7 72 8 30/"
    "1 91 0 85 3 39 2 74 8 90 5 10 7 12 6 89 9 45 4 33/1 81 2 95 0 71 4 99 6 9 8 52 7 85 3 98 9 22 5 43/"
    "2 14 0 6 1 22 5 61 3 26 4 69 8 21 7 49 9 72 6 53/2 84 1 2 5 52 3 95 8 48 9 72 0 47 6 65 4 6 7 25/"
    "1 46 0 37 3 61 2 13 6 32 5 21 9 32 8 89 7 30 4 55/2 31 0 86 1 46 5 74 4 32 6 88 8 19 9 48 7 36 3 79/"
    "0 76 1 69 3 76 5 51 2 85 9 11 6 40 7 89 4 26 8 74/1 85 0 13 2 61 6 7 8 64 9 76 5 47 3 52 4 90 7 45"
)
SHIFTS = ({0: 0, 1: 1, 2: 2, 3: 3}, {0: 0, 1: 1, 2: 2, 3: 3}, {0: 0, 2: 2, 3: 3}, {0: 0, 3: 4}, {0: 0, 3: 5}, {0: 0})
"""Automaton of a nurse's shifts (off, day, evening, night): they move forward, with at most three nights in turn."""


class Problem(NamedTuple):
    """A problem: its model for elimina, and for CP-SAT; True if all solutions are counted."""

    model: Callable[[], cp.Model]
    peer: Callable[[Any], None] | None = None
    lists_all: bool = False


class Task(NamedTuple):
    """A task of a schedule."""

    seconds: int
    demands: dict[int, int]
    before: list[int]


def tasks_of_jobs(text: str) -> tuple[list[Task], dict[int, int]]:
    """Return the tasks of a job shop, and its machines with their capacities."""
    tasks: list[Task] = []
    for line in text.split("/"):
        numbers = [int(word) for word in line.split()]
        for i in range(0, len(numbers), 2):
            tasks.append(Task(numbers[i + 1], {numbers[i]: 1}, [len(tasks) - 1] if i else []))
    return tasks, {machine: 1 for task in tasks for machine in task.demands}


def open_shop(n: int, seed: int) -> tuple[list[Task], dict[int, int]]:
    """Return tasks that each take one of n machines and one of n jobs, in any order."""
    rng = random.Random(seed)
    tasks = [Task(rng.randint(1, 99), {i: 1, n + j: 1}, []) for i in range(n) for j in range(n)]
    return tasks, dict.fromkeys(range(2 * n), 1)


def project(n: int, seed: int) -> tuple[list[Task], dict[int, int]]:
    """Return tasks with precedences that share four resources."""
    rng = random.Random(seed)
    tasks = []
    for j in range(n):
        before = rng.sample(range(j), rng.randint(1, 2)) if j >= 3 else []
        tasks.append(Task(rng.randint(1, 10), {r: rng.randint(1, 10) for r in range(4) if rng.random() < 0.6}, before))
    demands = [[task.demands.get(r, 0) for task in tasks] for r in range(4)]
    return tasks, {r: max(max(row), round(2.2 * sum(row) / n)) for r, row in enumerate(demands)}


def schedule(tasks: list[Task], capacities: dict[int, int]) -> Problem:
    """Return the problem of the least makespan."""
    horizon = sum(task.seconds for task in tasks)

    def model() -> cp.Model:
        m = cp.Model()
        starts = [m.int_var(0, horizon - task.seconds) for task in tasks]
        for start, task in zip(starts, tasks, strict=True):
            for i in task.before:
                m.add(starts[i] + tasks[i].seconds <= start)
        for r, capacity in capacities.items():
            users = [i for i, task in enumerate(tasks) if r in task.demands]
            seconds, demands = [tasks[i].seconds for i in users], [tasks[i].demands[r] for i in users]
            m.cumulative([starts[i] for i in users], seconds, demands, capacity)
        m.minimize(m.maximum([start + task.seconds for start, task in zip(starts, tasks, strict=True)]))
        return m

    def peer(m: Any) -> None:
        end = m.new_int_var(0, horizon, "")
        starts = [m.new_int_var(0, horizon, "") for _ in tasks]
        intervals = [m.new_fixed_size_interval_var(s, task.seconds, "") for s, task in zip(starts, tasks, strict=True)]
        for start, task in zip(starts, tasks, strict=True):
            m.add(start + task.seconds <= end)
            for i in task.before:
                m.add(starts[i] + tasks[i].seconds <= start)
        for r, capacity in capacities.items():
            users = [i for i, task in enumerate(tasks) if r in task.demands]
            if capacity == 1:
                m.add_no_overlap([intervals[i] for i in users])
            else:
                m.add_cumulative([intervals[i] for i in users], [tasks[i].demands[r] for i in users], capacity)
        m.minimize(end)

    return Problem(model, peer)


def knapsack(n: int, seed: int) -> Problem:
    rng = random.Random(seed)
    weights = [rng.randint(20, 200) for _ in range(n)]
    values = [weight + rng.randint(-15, 30) for weight in weights]

    def model() -> cp.Model:
        m = cp.Model()
        taken = m.bool_vars(n)
        m.add(m.sum(w * x for w, x in zip(weights, taken, strict=True)) <= sum(weights) // 2)
        m.maximize(m.sum(v * x for v, x in zip(values, taken, strict=True)))
        return m

    def peer(m: Any) -> None:
        taken = [m.new_bool_var("") for _ in range(n)]
        m.add(sum(w * x for w, x in zip(weights, taken, strict=True)) <= sum(weights) // 2)
        m.maximize(sum(v * x for v, x in zip(values, taken, strict=True)))

    return Problem(model, peer)


def bin_packing(n: int, least: int, greatest: int, bins: int, seed: int) -> Problem:
    rng = random.Random(seed)
    sizes = sorted((rng.randint(least, greatest) for _ in range(n)), reverse=True)

    def model() -> cp.Model:
        m = cp.Model()
        packed, loads = m.int_vars(n, 0, bins - 1), m.int_vars(bins, 0, 100)
        m.bin_packing_load(loads, packed, sizes)
        for load, following in itertools.pairwise(loads):
            m.add(load >= following)
        m.minimize(m.maximum(packed) + 1)
        return m

    def peer(m: Any) -> None:
        packed = [[m.new_bool_var("") for _ in range(bins)] for _ in range(n)]
        used = [m.new_bool_var("") for _ in range(bins)]
        for row in packed:
            m.add_exactly_one(row)
        loads = [sum(size * row[b] for size, row in zip(sizes, packed, strict=True)) for b in range(bins)]
        for b in range(bins):
            m.add(loads[b] <= 100 * used[b])
            if b:
                m.add(loads[b - 1] >= loads[b])
                m.add_implication(used[b], used[b - 1])
        m.minimize(sum(used))

    return Problem(model, peer)


def roster(nurses: int, days: int, seed: int) -> Problem:
    """A fifth of the nurses on each shift, two or three days off a week, at the least sum of dislikes."""
    rng = random.Random(seed)
    dislikes = [[[rng.randint(0, 9) for _ in range(4)] for _ in range(days)] for _ in range(nurses)]
    least = round(0.2 * nurses)

    def model() -> cp.Model:
        m = cp.Model()
        shifts = [m.int_vars(days, 0, 3) for _ in range(nurses)]
        for row in shifts:
            m.regular(row, SHIFTS, 0, range(6))
            for day in range(0, days - 6, 7):
                m.cardinality(row[day : day + 7], {0: m.int_var(2, 3)})
        for day in range(days):
            column = [row[day] for row in shifts]
            m.cardinality(column, {shift: m.int_var(least, nurses) for shift in (1, 2, 3)})
        cells = [(i, day) for i in range(nurses) for day in range(days)]
        m.minimize(m.sum(m.element(dislikes[i][day], shifts[i][day]) for i, day in cells))
        return m

    def peer(m: Any) -> None:
        works = [[[m.new_bool_var("") for _ in range(4)] for _ in range(days)] for _ in range(nurses)]
        moves = [(a, shift, b) for a, row in enumerate(SHIFTS) for shift, b in row.items()]
        for row in works:
            numbers = []
            for cells in row:
                m.add_exactly_one(cells)
                numbers.append(m.new_int_var(0, 3, ""))
                m.add(numbers[-1] == sum(shift * cell for shift, cell in enumerate(cells)))
            m.add_automaton(numbers, 0, range(6), moves)
            for day in range(0, days - 6, 7):
                m.add_linear_constraint(sum(cells[0] for cells in row[day : day + 7]), 2, 3)
        for day in range(days):
            for shift in (1, 2, 3):
                m.add(sum(row[day][shift] for row in works) >= least)
        triples = [(i, day, shift) for i in range(nurses) for day in range(days) for shift in range(4)]
        m.minimize(sum(dislikes[i][day][shift] * works[i][day][shift] for i, day, shift in triples))

    return Problem(model, peer)


def colouring(n: int, edges: list[tuple[int, int]], colours: int) -> Problem:
    def model() -> cp.Model:
        m = cp.Model()
        xs = [m.int_var(0, min(i, colours - 1)) for i in range(n)]
        for i, j in edges:
            m.add(xs[i] != xs[j])
        m.minimize(m.maximum(xs) + 1)
        return m

    def peer(m: Any) -> None:
        xs, most = [m.new_int_var(0, min(i, colours - 1), "") for i in range(n)], m.new_int_var(1, colours, "")
        for i, j in edges:
            m.add(xs[i] != xs[j])
        for x in xs:
            m.add(x + 1 <= most)
        m.minimize(most)

    return Problem(model, peer)


def random_edges(n: int, seed: int) -> list[tuple[int, int]]:
    rng = random.Random(seed)
    return [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.5]


def queen_edges(n: int) -> list[tuple[int, int]]:
    cells = [(a, b, *divmod(a, n), *divmod(b, n)) for a in range(n * n) for b in range(a + 1, n * n)]
    return [(a, b) for a, b, i, j, x, y in cells if i == x or j == y or abs(i - x) == abs(j - y)]


def golomb(n: int) -> Problem:
    def model() -> cp.Model:
        m = cp.Model()
        marks = m.int_vars(n, 0, n * n)
        m.add(marks[0] == 0)
        gaps = {(i, j): m.int_var(1, n * n) for i in range(n) for j in range(i + 1, n)}
        for (i, j), gap in gaps.items():
            m.add(gap == marks[j] - marks[i])
        m.all_different(list(gaps.values()))
        m.add(gaps[0, 1] < gaps[n - 2, n - 1])
        m.search(marks, "input_order", "indomain_min")
        m.minimize(marks[-1])
        return m

    def peer(m: Any) -> None:
        marks = [m.new_int_var(0, n * n, "") for _ in range(n)]
        m.add(marks[0] == 0)
        gaps = {(i, j): m.new_int_var(1, n * n, "") for i in range(n) for j in range(i + 1, n)}
        for (i, j), gap in gaps.items():
            m.add(gap == marks[j] - marks[i])
        m.add_all_different(list(gaps.values()))
        m.add(gaps[0, 1] < gaps[n - 2, n - 1])
        m.minimize(marks[-1])

    return Problem(model, peer)


def tour(n: int, seed: int) -> Problem:
    rng = random.Random(seed)
    places = [complex(rng.randint(0, 1000), rng.randint(0, 1000)) for _ in range(n)]
    distances = [[round(abs(a - b)) for b in places] for a in places]

    def model() -> cp.Model:
        m = cp.Model()
        successors = m.int_vars(n, 0, n - 1)
        m.circuit(successors)
        m.minimize(m.sum(map(m.element, distances, successors)))
        return m

    def peer(m: Any) -> None:
        arcs = [(i, j, m.new_bool_var("")) for i in range(n) for j in range(n) if i != j]
        m.add_circuit(arcs)
        m.minimize(sum(distances[i][j] * x for i, j, x in arcs))

    return Problem(model, peer)


def magic(n: int, lists_all: bool = False) -> Problem:
    def model() -> cp.Model:
        m = cp.Model()
        rows = [m.int_vars(n, 1, n * n) for _ in range(n)]
        m.all_different([x for row in rows for x in row])
        columns = [list(column) for column in zip(*rows, strict=True)]
        diagonals = [[rows[i][i] for i in range(n)], [rows[i][n - 1 - i] for i in range(n)]]
        for line in (*rows, *columns, *diagonals):
            m.add(m.sum(line) == n * (n * n + 1) // 2)
        if not lists_all:
            for corner in (rows[0][-1], rows[-1][0], rows[-1][-1]):
                m.add(rows[0][0] < corner)
            m.add(rows[0][-1] < rows[-1][0])
        return m

    return Problem(model, lists_all=lists_all)


PROBLEMS: dict[str, Problem] = {
    "knapsack 40": knapsack(40, 1),
    "bin packing 40": bin_packing(40, 15, 45, 18, 7),
    "bin packing 30": bin_packing(30, 20, 60, 18, 7),
    "nurses 8x14": roster(8, 14, 1),
    "nurses 10x14": roster(10, 14, 1),
    "nurses 15x28": roster(15, 28, 2),
    "RCPSP 30": schedule(*project(30, 5)),
    "RCPSP 60": schedule(*project(60, 6)),
    "ft06": schedule(*tasks_of_jobs(FT06)),
    "ft10": schedule(*tasks_of_jobs(FT10)),
    "open shop 7": schedule(*open_shop(7, 3)),
    "colours of G(60, 0.5)": colouring(60, random_edges(60, 11), 16),
    "colours of queen 7": colouring(49, queen_edges(7), 11),
    "Golomb 9": golomb(9),
    "tour of 16": tour(16, 16),
    "tour of 22": tour(22, 22),
    "magic square 5": magic(5),
    "magic squares 4, all": magic(4, lists_all=True),
}


def run_elimina(problem: Problem, mode: str, seconds: float) -> dict[str, Any]:
    """Solve a problem; a timer of processor time interrupts."""
    signal.signal(signal.SIGPROF, signal.default_int_handler)
    model = problem.model()
    options = cp.SearchOptions() if mode == "default" else cp.SearchOptions(free="free" in mode, lns="lns" in mode)
    start = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, seconds)
    result = model.solve(options=options, all_solutions=problem.lists_all)
    signal.setitimer(signal.ITIMER_PROF, 0)
    far = result.upper_bound if result.task == "maximise" else result.lower_bound
    return {
        "value": len(result.solutions) if problem.lists_all else result.value,
        "bound": far,
        "is_solved": result.assignment is not None,
        "is_proven": result.stats["complete"],
        "seconds": time.process_time() - start,
    }


def run_cp_sat(problem: Problem, seconds: float) -> dict[str, Any]:
    """Solve a problem by CP-SAT with one worker; a thread ends it."""
    from ortools.sat.python import cp_model

    assert problem.peer is not None
    model, solver = cp_model.CpModel(), cp_model.CpSolver()
    problem.peer(model)
    solver.parameters.num_workers = 1
    start = time.process_time()

    def watch() -> None:
        while time.process_time() - start < seconds:
            time.sleep(0.02)
        solver.stop_search()

    threading.Thread(target=watch, daemon=True).start()
    status = solver.solve(model)
    is_solved = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return {
        "value": round(solver.objective_value) if is_solved else None,
        "bound": round(solver.best_objective_bound) if is_solved or status == cp_model.UNKNOWN else None,
        "is_solved": is_solved,
        "is_proven": status in (cp_model.OPTIMAL, cp_model.INFEASIBLE),
        "seconds": time.process_time() - start,
    }


def cell(figures: dict[str, Any]) -> str:
    """Return a cell of the table."""
    proof = f", {figures['seconds']:.1f} s" if figures["is_proven"] else ""
    if not figures["is_solved"]:
        return f"infeasible{proof}" if figures["is_proven"] else f"none [{figures['bound']}]"
    if figures["value"] is None:
        return f"solved, {figures['seconds']:.1f} s"
    return f"{figures['value']}{proof}" if figures["is_proven"] else f"{figures['value']} [{figures['bound']}]"


def run(name: str, mode: str, seconds: float) -> str:
    """Run a problem in a process of its own."""
    if mode == "cp-sat" and PROBLEMS[name].peer is None:
        return ""
    command = [sys.executable, __file__, name, "--seconds", str(seconds), "--modes", mode, "--figures"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=30 * seconds + 60)
    if answer.returncode != 0:
        return "not installed" if "No module named 'ortools'" in answer.stderr else f"failed: {answer.stderr[-200:]}"
    return cell(json.loads(answer.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(PROBLEMS), metavar="NAME")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--figures", action="store_true", help="print the figures of one run as JSON")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    if options.figures:
        # The time of imports is not that of a search.
        assert elimina.solve is not None
        problem, mode = PROBLEMS[options.names[0]], options.modes[0]
        figures = (
            run_cp_sat(problem, options.seconds) if mode == "cp-sat" else run_elimina(problem, mode, options.seconds)
        )
        print(json.dumps(figures))
        return
    record = Record(
        "cp-classics", ["problem", *options.modes], "Solution [bound], or solution and seconds of the proof."
    )
    for name in options.names:
        record.add(name, *(run(name, mode, options.seconds) for mode in options.modes))
        print(" | ".join(record.rows[-1]), flush=True)
    if options.record:
        record.save()


if __name__ == "__main__":
    main()
