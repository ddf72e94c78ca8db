"""Random travelling salesman problems of a few cities, against all tours."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import numpy as np

from elimina.cp.tour_problem import TourProblem
from elimina.cp.tsp import TourState, solve_tsp
from elimina.errors import InputError
from tests.adversary.case import Case, Defect, Setting


def make(rng: random.Random, setting: Setting) -> Case:
    """Make a random problem."""
    count = rng.randint(1, 8)
    style = rng.choice(["random", "ties", "plane", "line", "same", "negative", "large"])
    points = [(rng.randint(0, 30), 0 if style == "line" else rng.randint(0, 30)) for _ in range(count)]
    lengths = [[0] * count for _ in range(count)]
    for i, j in itertools.combinations(range(count), 2):
        lengths[i][j] = lengths[j][i] = {
            "random": rng.randint(0, 100),
            "ties": rng.randint(0, 1),
            "plane": round(((points[i][0] - points[j][0]) ** 2 + (points[i][1] - points[j][1]) ** 2) ** 0.5),
            "line": abs(points[i][0] - points[j][0]),
            "same": 7,
            "negative": rng.randint(-50, 50),
            "large": rng.randint(0, 2**27),
        }[style]
    fixed = [rng.sample(range(count), 2) for _ in range(rng.choice([0, 0, 0, 1, 2]) if count > 1 else 0)]
    return {"lengths": lengths, "fixed": fixed, "seed": rng.randrange(5)}


def check(case: Case) -> None:
    """Solve and compare."""
    count = len(case["lengths"])
    problem = TourProblem("random", np.array(case["lengths"], np.int32), None, [(i, j) for i, j in case["fixed"]])
    best = _shortest(case)
    known: list[TourState] = []
    try:
        result = solve_tsp(problem, seed=case["seed"], time_limit=20, on_improvement=known.append)
    except InputError:
        largest = max(map(abs, itertools.chain(*case["lengths"])))
        if (best is not None or not case["fixed"]) and not (case["fixed"] and largest > 2**20):
            raise
        return
    if best is None:
        raise Defect(f"a tour of {result.value}, but none has the fixed edges")
    if (result.status, result.value, result.lower_bound) != ("optimal", best, best) or result.tour is None:
        raise Defect(f"{result.status}, {result.value}, bound {result.lower_bound}; the shortest tour is {best}")
    tour = [city - 1 for city in result.tour]
    if sorted(tour) != list(range(count)) or problem.length(tour) != best:
        raise Defect(f"the tour {result.tour} has not the length {best}")
    pairs = {frozenset(pair) for pair in zip(tour, tour[1:] + tour[:1], strict=True)}
    if any(frozenset(edge) not in pairs for edge in case["fixed"]):
        raise Defect(f"the tour {result.tour} lacks a fixed edge")
    for at in known:
        if at.length < best or (at.bound is not None and at.bound > best):
            raise Defect(f"after {at.seconds} s: {at.length}, bound {at.bound}; the shortest tour is {best}")


def _shortest(case: Case) -> int | None:
    lengths, count = case["lengths"], len(case["lengths"])
    fixed = {frozenset(edge) for edge in case["fixed"]}
    best = None
    for rest in itertools.permutations(range(1, count)):
        tour = (0, *rest)
        pairs = list(zip(tour, (*rest, 0), strict=True))
        if fixed and not fixed <= {frozenset(pair) for pair in pairs}:
            continue
        length = sum(lengths[i][j] for i, j in pairs)
        best = length if best is None else min(best, length)
    return best


def smaller(case: Case) -> Iterator[Case]:
    """Yield simpler problems."""
    count = len(case["lengths"])
    for i in range(len(case["fixed"])):
        yield {**case, "fixed": case["fixed"][:i] + case["fixed"][i + 1 :]}
    for gone in range(count) if count > 1 else ():
        kept = [v for v in range(count) if v != gone]
        edges = [[v - (v > gone) for v in edge] for edge in case["fixed"] if gone not in edge]
        yield {**case, "lengths": [[case["lengths"][i][j] for j in kept] for i in kept], "fixed": edges}
    for i, j in itertools.combinations(range(count), 2):
        for simple in (0, 1):
            if case["lengths"][i][j] not in (0, 1):
                lengths = [list(row) for row in case["lengths"]]
                lengths[i][j] = lengths[j][i] = simple
                yield {**case, "lengths": lengths}


def script(case: Case) -> str:
    """Return a program that solves the problem."""
    return "\n".join(
        [
            "import numpy as np",
            "from elimina.cp.tsp import solve_tsp",
            "from elimina.cp.tour_problem import TourProblem",
            f"problem = TourProblem('random', np.array({case['lengths']!r}, np.int32), None, {case['fixed']!r})",
            f"print(solve_tsp(problem, seed={case['seed']}, time_limit=20))",
            f"# expected: {_shortest(case)}",
        ]
    )
