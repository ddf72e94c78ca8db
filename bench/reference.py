"""Answers against the reference files of a benchmark folder: optima of WCSPs; partition functions and posteriors of UAI
networks.

    python bench/reference.py DATA [--task mpe pr mar] [--device cpu cuda] [--memory 8GiB] [--limit 60] [--match TEXT]

DATA holds wcsp/REFERENCE.tsv (rows with status "proven" are run), uai/REFERENCE.tsv (rows with a .PR value), and files
uai/*/*.MAR beside the networks, whose marginals may differ by 1e-6. An instance whose plan does not fit the memory, or
whose estimate is beyond `limit` seconds, is listed with its plan's figures. Optima must be equal; log10 Z may differ by
1e-6 relative, or by half a unit of the last digit that the reference prints.
"""

from __future__ import annotations

import argparse
import csv
import math
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import elimina
from elimina.cli.options import bytes_of
from elimina.io.posteriors import read_marginals
from elimina.number_texts import bytes_text, seconds_text


def cases(data: Path) -> Iterator[tuple[str, Path, str, str]]:
    """Task, file, reference, and what the reference calls itself."""
    with open(data / "wcsp" / "REFERENCE.tsv") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            if row["status"] == "proven" and not row["file"].endswith(".uai"):  # those are in scaled integers
                yield "mpe", data / "wcsp" / row["file"], row["optimum"], row["minfill_width"]
    with open(data / "uai" / "REFERENCE.tsv") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            if row["ref_log10Z(.PR)"]:
                yield "pr", data / "uai" / row["file"], row["ref_log10Z(.PR)"], ""

    for reference in sorted((data / "uai").glob("*/*.MAR")):
        names = [reference.name.removesuffix(".MAR") + suffix for suffix in ("", ".gz", ".xz")]
        yield "mar", next(reference.parent / n for n in names if (reference.parent / n).exists()), str(reference), ""


def evidence_of(path: Path, model: elimina.Model) -> dict[str | int, str | int]:
    given = path.parent / (path.name.removesuffix(".xz").removesuffix(".gz") + ".evid")
    return dict(elimina.read_evidence(given, model)) if given.exists() else {}


def last_digit(reference: str) -> float:
    """One unit of the last printed digit."""
    mantissa, _, exponent = reference.lower().partition("e")
    return 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def largest_gap(model: elimina.Model, result: elimina.Result, reference: str) -> float:
    """Between our posteriors and those of a file."""
    stored = read_marginals(Path(reference))
    if not result.marginals or len(stored) != len(model.variables):
        return math.inf
    found = [list(result.marginals[v.name].values()) for v in model.variables]
    return max(float(np.abs(np.subtract(ours, theirs)).max()) for ours, theirs in zip(found, stored, strict=True))


def agrees(task: str, result: elimina.Result, reference: str) -> bool:
    if task == "mpe":
        exact = isinstance(result.value, int)
        return result.value is not None and abs(result.value - float(reference)) <= (0 if exact else 1e-9)
    expected = float(reference)
    return result.log10_z is not None and abs(result.log10_z - expected) <= max(
        1e-6 * abs(expected), 0.5000001 * last_digit(reference)
    )


def run(task: str, path: Path, reference: str, device: str, memory: int, limit: float) -> tuple[str, str]:
    """Verdict, and what there is to say."""
    try:
        model = elimina.read(path)
    except elimina.UnsupportedError as error:
        return "unsupported", str(error)[:100]
    evidence = evidence_of(path, model)
    plan = elimina.plan(model, task, evidence=evidence, device=device, memory=memory)
    if not plan.fits or plan.seconds > limit:
        return "too large", f"width {plan.width}, {bytes_text(plan.peak_bytes)}, about {seconds_text(plan.seconds)}"
    started = time.perf_counter()
    try:
        result = elimina.solve(model, task, evidence=evidence, device=device, memory=memory)
    except elimina.MemoryLimitError as error:
        return "too large", f"{error}"[:100]
    elapsed = time.perf_counter() - started
    phases = " ".join(f"{name} {seconds:.3f}" for name, seconds in result.stats["seconds"].items())
    if task == "mar":
        gap = largest_gap(model, result, reference)
        structure = result.stats["structure"]
        return "equal" if gap <= 1e-6 else "DIFFERENT", f"gap {gap:.1e}, {structure}, {elapsed:.2f} s: {phases}"
    found = result.value if task == "mpe" else result.log10_z
    verdict = "equal" if agrees(task, result, reference) else "DIFFERENT"
    rows = "" if plan.sparse is None else f", {plan.sparse.predicted[0]} of {len(plan.steps)} steps on rows"
    figures = f"width {plan.width}, {plan.dtype}{rows}, {elapsed:.2f} s: {phases}"
    return verdict, f"{found} (reference {reference}), {figures}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--task", nargs="+", default=["mpe", "pr", "mar"], choices=["mpe", "pr", "mar"])
    parser.add_argument("--device", nargs="+", default=["cpu"], choices=["cpu", "cuda"])
    parser.add_argument("--memory", type=bytes_of, default=8 << 30)
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("--match", default="")
    args = parser.parse_args()
    for device in args.device:
        counts: dict[tuple[str, str], int] = {}
        for task, path, reference, width in cases(args.data):
            name = str(path.relative_to(args.data))
            if args.match not in name or task not in args.task:
                continue
            verdict, text = run(task, path, reference, device, args.memory, args.limit)
            counts[task, verdict] = counts.get((task, verdict), 0) + 1
            print(f"{device:5} {name:60} {verdict:11} {text}{f', min-fill {width}' if width else ''}", flush=True)
        print(f"{device}: " + ", ".join(f"{task} {verdict} {n}" for (task, verdict), n in sorted(counts.items())))


if __name__ == "__main__":
    main()
