"""Whole programs on the CPU: thousands of small steps, and files given; run once, and again in a session.

    python bench/cpu_steps.py [--threads N] [--repeat R] [FILE ...]

Tasks: pr (messages up the tree) and mar (up and down, and all marginals). The made-up network has 2,000 variables of 2
to 5 values, each with a table over itself and up to three of the eight before it. 'first' is a whole ``run_once``,
'again' a run of a session; 'fixed' is what remains of 'again' for a step beyond 1 ns for each combination of an output
cell and a value of the eliminated variable.
"""

from __future__ import annotations

import argparse

import numpy as np

import elimina
from elimina.backends.cpu import CpuBackend
from elimina.backends.protocols import run_once
from elimina.model.model import Model
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.program import pack
from elimina.problem.preparation import prepare
from elimina.running.encoding import encode
from elimina.running.plan_choice import plan_problem
from timing import best_seconds


def network(variables: int, seed: int = 0) -> Model:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 6, variables).tolist()
    tables = []
    for v in range(variables):
        near = np.arange(max(0, v - 8), v)
        parents = rng.choice(near, min(len(near), int(rng.integers(1, 4))), replace=False) if v else []
        scope = (*sorted(int(p) for p in parents), v)
        tables.append((scope, rng.random([sizes[u] for u in scope])))
    return Model.from_arrays(sizes, tables, sense="probability")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=50)
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    columns = ("steps", 6), ("combinations", 13), ("first us", 10), ("again us", 10), ("fixed ns", 9)
    print(f"{'program':16} {'task':4} {'dtype':8}", *(f"{name:>{width}}" for name, width in columns))
    programs = [("2,000 variables", network(2000), "pr"), ("2,000 variables", network(2000), "mar")]
    programs += [(file, elimina.read(file), "mar") for file in args.files]
    for name, model, task in programs:
        for dtype in ("float64", "float32"):
            problem = prepare(model, task, {})
            planned = plan_problem(problem, CheckedOptions("cpu", None, "auto", 2.0, 0, args.threads, dtype))
            problem, plan = planned.problem, planned.plan
            program, factors = pack(plan, len(model.sizes)), encode(problem, plan).arena
            backend = CpuBackend(args.threads)
            session = backend.open(program, factors)
            first = best_seconds(lambda b=backend, p=program, f=factors: run_once(b, p, f), args.repeat)
            again = best_seconds(session.run, args.repeat)
            fixed = (again - 1e-9 * plan.work) / len(plan.steps)
            print(
                f"{name.split('/')[-1]:16} {task:4} {dtype:8} {len(plan.steps):6} {plan.work:13} {first * 1e6:10.1f}"
                f" {again * 1e6:10.1f} {fixed * 1e9:9.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
