"""Bounds on log10 Z by weighted mini-buckets, beside published values.

    python bench/sums.py ../shared/data/uai/2014_MAR [--match Grids] [--ibounds 2 5 10 15] [--limit 60]

For each UAI file with a .PR answer: its variables, the width of one order, which all rows have, and log10 Z as it is
published (six digits). For each i-bound: bounds without and with cost shifting between mini-buckets, and seconds of
messages (both bounds, one core). A row whose run is estimated to exceed the limit is left out; where the i-bound
reaches the width the answer is exact, and the instance ends. `--plain`: seconds of the messages of the bound from above
alone, and of the same plan with all weights 1 (plain log-sum-exp).

    python bench/sums.py --products [--device cuda] [--threads 1]

Buckets that are matrix products, beside NumPy's BLAS or cuBLAS in the same run (``bench/products.py``).
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import elimina
from elimina.backends.cpu import CpuBackend
from elimina.backends.protocols import run_once
from elimina.planning.options import Options
from elimina.planning.order import find_order
from elimina.planning.program import pack
from elimina.problem.observations import evidence_of
from elimina.problem.preparation import prepare
from elimina.running.encoding import encode
from elimina.running.host import elimination_on
from elimina.running.mini_bucket_plans import bounding_plan
from products import on_device, on_host

HEAD = (
    "instance                 n   w   log10 Z    z |     lower     upper       s |   shifted: lower     upper       s"
)


def read(path: Path) -> tuple[elimina.Model, dict[str, Any]]:
    """A model and what is observed in it."""
    model = elimina.read(path)
    evidence = path.with_name(path.name.removesuffix(".xz").removesuffix(".gz") + ".evid")
    return model, dict(elimina.read_evidence(evidence, model)) if evidence.exists() else {}


def bounds(model: elimina.Model, evidence: dict[str, Any], options: dict[str, Any]) -> elimina.Result:
    """One run, with cost shifting or without."""
    from elimina.methods.weighted_mini_buckets import bounded_sum
    from elimina.running.execution import Execution

    own = Options(**options)
    problem = prepare(model, "pr", evidence_of(model, evidence))
    backend = CpuBackend(1)
    plan = bounding_plan(elimination_on(backend, problem, own.order, own), own, "upper")
    if plan.minibuckets is None:
        return elimina.solve(
            model, "pr", evidence=evidence, device="cpu", options=elimina.Options(method="eliminate", order=own.order)
        )
    return bounded_sum(Execution(problem, plan, backend), own, {})


def seconds_of_weights(model: elimina.Model, evidence: dict[str, Any], options: dict[str, Any]) -> tuple[float, float]:
    """Seconds of a bound from above, and of the same steps with weights of 1; the faster of two runs each."""
    own = Options(**options)
    problem = prepare(model, "pr", evidence_of(model, evidence))
    backend = CpuBackend(1)
    plan = bounding_plan(elimination_on(backend, problem, own.order, own), own, "upper")
    plain = plan._replace(steps=tuple(step._replace(weight=1.0) for step in plan.steps))
    arena = encode(problem, plan).arena
    programs = [pack(which, len(model.variables)) for which in (plan, plain) * 2]
    times = [run_once(backend, program, arena).seconds["run"] for program in programs]
    return min(times[::2]), min(times[1::2])


def text(number: float) -> str:
    return f"{number:9.3f}" if abs(number) < 1e5 else f"{number:9.1e}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", help="the folder with the instances")
    parser.add_argument("--match", default="", help="regular expression on files' names")
    parser.add_argument("--ibounds", type=int, nargs="+", default=[2, 5, 10, 15])
    parser.add_argument("--limit", type=float, default=60, help="estimated seconds beyond which a run is left out")
    parser.add_argument("--plain", action="store_true", help="compare with weights of 1 instead")
    parser.add_argument("--products", action="store_true", help="compare matrix products with a BLAS instead")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="device of the products")
    parser.add_argument("--threads", type=int, default=1, help="threads of the products on the CPU")
    args = parser.parse_args()
    if args.products:
        on_device() if args.device == "cuda" else on_host(args.threads)
        return
    if args.data is None:
        parser.error("give the folder with the instances, or --products")
    print("instance               z   weighted s   plain s   ratio" if args.plain else HEAD)
    for answer in sorted(args.data.glob("*.PR")):
        path = next((p for p in (answer.with_suffix(""), answer.with_suffix(".xz")) if p.exists()), None)
        if path is None or not re.search(args.match, path.name):
            continue
        model, evidence = read(path)
        known = evidence_of(model, evidence)
        problem = prepare(model, "pr", known)
        number = {v: i for i, v in enumerate(problem.free)}
        scopes = [[number[v] for v in group.scope] for group in problem.groups]
        found = find_order([model.sizes[v] for v in problem.free], scopes, seconds=2).order
        order = [problem.free[i] for i in found]
        whole = elimina.plan(
            model,
            "pr",
            evidence=evidence,
            device="cpu",
            options=elimina.Options(order=order, slices="never", tables="dense"),
        )
        for z in args.ibounds:
            options: dict[str, Any] = {"device": "cpu", "order": order, "threads": 1, "ibound": z}
            rough = elimina.plan(model, "pr", evidence=evidence, options=elimina.Options(**options, shift="none"))
            if not rough.fits or 4 * rough.seconds > args.limit:
                break
            if args.plain:
                own, plain = seconds_of_weights(model, evidence, {**options, "shift": "buckets"})
                print(f"{path.name:20} {z:3} {own:12.3f} {plain:9.3f} {own / plain:7.2f}", flush=True)
                continue
            columns = []
            for shift in ("none", "buckets"):
                result = bounds(model, evidence, {**options, "shift": shift})
                ends = (result.lower_bound, result.upper_bound) if result.status == "bounded" else (result.log10_z,) * 2
                seconds = result.stats["seconds"]["run"]
                columns.append(" ".join(text(0.0 if end is None else end) for end in ends) + f" {seconds:7.2f}")
            shape = f"{path.name:20} {len(problem.free):5} {whole.width:3} {answer.read_text().split()[1]:>9} {z:4}"
            print(f"{shape} | {columns[0]} |     {columns[1]}", flush=True)
            if z >= whole.width:
                break


if __name__ == "__main__":
    main()
