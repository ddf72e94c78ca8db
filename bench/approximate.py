"""Estimates of marginals and log10 Z against references: where exact answers are refused, and where there are none.

    python bench/approximate.py peers [DATA] [--match Grids] [--family Grids DBN] [--seconds 3 20] [--jobs 1] [--save]
    python bench/approximate.py beyond [DATA] [--match ising] [--family networks] [--seconds 2 5 20 60] [--save]

DATA is the folder of benchmark files (ELIMINA_DATA by default); what it lacks is skipped. Each call of `solve` runs in
a process of its own with one thread for the given seconds of processor time (`bench/estimates.py` says how), and is
killed if it takes twice as long. `--method` names
functions of approximate methods (`elimina.methods.estimation.METHODS`) that are to answer alone.

peers: the files of `approximate/peers.tsv`, on which other programs were measured for about 3 s of processor time, with
4 MiB of memory; the reference is the exact answer without a limit. Hellinger distances are those of the marginals of
unobserved variables. The best peer is the best of all methods for this instance and figure, BP that of libDAI. The
criteria take distances of at most 1e-5 and errors of log10 Z of at most 5e-4 for 0: the peers' reference is rounded.

beyond: files of the competition of 2014 whose exact answers take more than 8 GiB or 60 s, Ising grids and networks,
with 8 GiB. References: files of the competition (not those of the relational family, which contradict exact answers),
exact answers of the linkage family, transfer matrices (`bench/ising.py`), and likelihood weighting with a million
samples.

`--save` writes the records in `bench/results`, from which `bench/render.py` makes tables and the picture.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import approximate_instances as sources
from approximate_instances import ROUNDED_DISTANCE, ROUNDED_LOG10_Z, Instance, Peer
from estimates import NO_ANSWER, Answer, Distance, Question, Reference, answer_of, distance
from record import Record

MEMORY = {"peers": "4MiB", "beyond": "8GiB"}
SECONDS = {"peers": [3.0, 20.0], "beyond": [2.0, 5.0, 20.0, 60.0]}
HARD = ("Grids_11", "Grids_13", "Grids_16", "Grids_17", "Grids_18", "DBN_11", "DBN_13")
"""Instances on which all peers are bad."""
HARD_DISTANCE = 0.05
STATED_FACTOR = 3.0
ROUNDING_SLACK = 1e-9
"""Relative error by which an exact sum may lie outside its bounds."""


class Run(NamedTuple):
    """An answer, and its distance from the reference; None without one."""

    instance: Instance
    method: str
    seconds: float
    answer: Answer
    distance: Distance | None
    reference: Reference | None


def runs_of(instance: Instance, args: argparse.Namespace) -> list[Run]:
    """Return the runs of an instance: each method with each time limit."""
    reference = instance.reference() if instance.reference is not None else None
    runs = []
    for method in args.method:
        for seconds in args.seconds:
            question = Question(instance.build, instance.task, seconds, args.memory, method, args.device)
            answer = answer_of(question)
            distances = None if reference is None else distance(answer, reference)
            runs.append(Run(instance, method, seconds, answer, distances, reference))
    return runs


def number(value: float | None, form: str = ".2g") -> str:
    return "" if value is None or math.isnan(value) else f"{value:{form}}"


# Part 1.

PEER_COLUMNS = (
    "instance", "limit, s", "status", "method", "mean distance", "stated", "largest", "error of log10 Z", "best peer",
    "its mean distance", "BP", "log10 Z: best peer", "BP", "processor s",
)  # fmt: skip


def best_peer(peers: Sequence[Peer], figure: Callable[[Peer], float | None]) -> Peer | None:
    """Return the peer with the smallest figure."""
    measured = [(value, peer) for peer in peers if (value := figure(peer)) is not None]
    return min(measured, key=lambda pair: pair[0])[1] if measured else None


def bp(instance: Instance) -> Peer | None:
    return next((peer for peer in instance.peers if peer.method == "dai-BP"), None)


def peer_row(run: Run) -> tuple[str, ...]:
    peers, distances = run.instance.peers, run.distance
    assert distances is not None
    best, best_z, plain = best_peer(peers, mean_of), best_peer(peers, log10_z_of), bp(run.instance)
    return (
        run.instance.name, f"{run.seconds:g}", run.answer.status, run.answer.method,
        number(distances.mean), number(run.answer.error), number(distances.largest), number(distances.log10_z),
        best.method if best else "", number(best and best.mean), number(plain and plain.mean),
        number(best_z and best_z.log10_z), number(plain and plain.log10_z), number(run.answer.processor_seconds, ".2f"),
    )  # fmt: skip


def mean_of(figures: Peer | Distance) -> float | None:
    return figures.mean


def log10_z_of(figures: Peer | Distance) -> float | None:
    return figures.log10_z


class Criterion(NamedTuple):
    """A demand on runs: whether one meets it (None: it does not count), and the share of runs that has to."""

    text: str
    is_met: Callable[[Run], bool | None]
    share: float


def is_at_most(value: float | None, limit: float | None, factor: float, rounding: float) -> bool | None:
    """Return whether a figure is at most a peer's times a factor; None without a peer."""
    if limit is None:
        return None
    return value is not None and value <= max(factor * limit, rounding)


def compared_with_best(factor: float) -> Callable[[Run], bool | None]:
    def is_met(run: Run) -> bool | None:
        best = best_peer(run.instance.peers, mean_of)
        return is_at_most(run.distance and run.distance.mean, best and best.mean, factor, ROUNDED_DISTANCE)

    return is_met


def log10_z_compared_with_best(factor: float) -> Callable[[Run], bool | None]:
    def is_met(run: Run) -> bool | None:
        best = best_peer(run.instance.peers, log10_z_of)
        return is_at_most(run.distance and run.distance.log10_z, best and best.log10_z, factor, ROUNDED_LOG10_Z)

    return is_met


def is_at_most_twice_bp(run: Run) -> bool | None:
    plain = bp(run.instance)
    return is_at_most(run.distance and run.distance.mean, plain and plain.mean, 2, ROUNDED_DISTANCE)


def is_log10_z_at_most_twice_bp(run: Run) -> bool | None:
    plain = bp(run.instance)
    return is_at_most(run.distance and run.distance.log10_z, plain and plain.log10_z, 2, ROUNDED_LOG10_Z)


def is_hard_one_solved(run: Run) -> bool | None:
    if run.instance.name not in HARD:
        return None
    return is_at_most(run.distance and run.distance.mean, HARD_DISTANCE, 1, 0)


def is_stated_well(run: Run) -> bool | None:
    """Return whether the stated error is within a factor of the true one; None for an answer that is exact."""
    if run.answer.status == "exact":
        return None
    stated, true = run.answer.error, run.distance and run.distance.mean
    if stated is None or true is None:
        return False
    stated, true = max(stated, ROUNDED_DISTANCE), max(true, ROUNDED_DISTANCE)
    return true / STATED_FACTOR <= stated <= STATED_FACTOR * true


def holds_bounds(run: Run) -> bool | None:
    """Return whether the bounds hold; None without any."""
    exact = run.reference and run.reference.log10_z
    if exact is None or (run.answer.lower is None and run.answer.upper is None):
        return None
    slack = ROUNDING_SLACK * max(1.0, abs(exact))
    lower = -math.inf if run.answer.lower is None else run.answer.lower
    upper = math.inf if run.answer.upper is None else run.answer.upper
    return lower - slack <= exact <= upper + slack


def has_answer(run: Run) -> bool:
    return run.answer.status != NO_ANSWER


CRITERIA = (
    Criterion("an answer", has_answer, 1.0),
    Criterion("mean distance at most that of the best peer", compared_with_best(1), 0.75),
    Criterion("mean distance at most half of that", compared_with_best(0.5), 0.75),
    Criterion("mean distance at most twice that of BP", is_at_most_twice_bp, 1.0),
    Criterion("mean distance at most 0.05 on Grids and DBN_11, 13", is_hard_one_solved, 1.0),
    Criterion("error of log10 Z at most that of the best peer", log10_z_compared_with_best(1), 0.75),
    Criterion("error of log10 Z at most twice that of BP", is_log10_z_at_most_twice_bp, 1.0),
    Criterion("stated error within a factor of 3 (answers that are not exact)", is_stated_well, 0.8),
    Criterion("bounds that hold", holds_bounds, 1.0),
)


def criterion_rows(runs: Sequence[Run], seconds: Sequence[float]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each criterion: the instances that meet it at each time limit, of those that count."""
    for criterion in CRITERIA:
        cells = []
        for limit in seconds:
            verdicts = [met for run in runs if run.seconds == limit and (met := criterion.is_met(run)) is not None]
            cells.append(f"{sum(verdicts)} of {len(verdicts)}")
        yield criterion.text, f"{criterion.share:.0%}", *cells


# Part 2.

BEYOND_COLUMNS = (
    "instance", "family", "method", "limit, s", "processor s", "status", "method that answered", "mean distance",
    "stated",
    "largest", "error of log10 Z", "bounds on log10 Z",
)  # fmt: skip


def beyond_row(run: Run) -> tuple[str, ...]:
    answer, distances = run.answer, run.distance or Distance(None, None, None)
    ends = [number(end, ".6g") for end in (answer.lower, answer.upper)]
    return (
        run.instance.name, run.instance.family, run.method, f"{run.seconds:g}", number(answer.processor_seconds, ".2f"),
        answer.status, answer.method, number(distances.mean), number(answer.error), number(distances.largest),
        number(distances.log10_z), " to ".join(ends) if any(ends) else "",
    )  # fmt: skip


def family_rows(runs: Sequence[Run], seconds: Sequence[float]) -> Iterator[tuple[str, ...]]:
    """Yield the medians of each family and method: answers in time, and the distances at each time limit."""
    for family in dict.fromkeys(run.instance.family for run in runs):
        for method in dict.fromkeys(run.method for run in runs):
            chosen = [run for run in runs if (run.instance.family, run.method) == (family, method)]
            first = [run for run in chosen if run.seconds == seconds[0]]
            slowest = max((run.answer.processor_seconds for run in first if has_answer(run)), default=None)
            means = [median_at(chosen, limit, mean_of) for limit in seconds]
            errors = [median_at(chosen, limit, log10_z_of) for limit in seconds]
            yield (
                family, method, f"{sum(map(has_answer, first))} of {len(first)}", number(slowest, ".2f"),
                *map(number, means), *map(number, errors),
            )  # fmt: skip


def family_columns(seconds: Sequence[float]) -> list[str]:
    limits = [f"{limit:g} s" for limit in seconds]
    return [
        "family", "method", f"answers in {limits[0]}", "slowest, processor s",
        *(f"distance, {limit}" for limit in limits), *(f"log10 Z, {limit}" for limit in limits),
    ]  # fmt: skip


def median_at(runs: Sequence[Run], seconds: float, figure: Callable[[Distance], float | None]) -> float | None:
    """Return the median of a figure at a time limit; None without any."""
    measured = [run.distance for run in runs if run.seconds == seconds and run.distance is not None]
    values = [value for figures in measured if (value := figure(figures)) is not None]
    return statistics.median(values) if values else None


# Both.


def show(record: Record) -> None:
    """Print a record as aligned columns."""
    rows = [record.columns, *record.rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    folder = os.environ.get("ELIMINA_DATA")
    parser.add_argument("part", choices=list(MEMORY))
    parser.add_argument("data", type=Path, nargs="?", default=folder and Path(folder))
    parser.add_argument("--match", default="", help="regular expression on instances' names")
    parser.add_argument("--family", nargs="+", default=[], help="families of instances")
    parser.add_argument("--seconds", type=float, nargs="+", help="time limits")
    parser.add_argument("--memory", help="memory limit")
    parser.add_argument("--method", nargs="+", default=["auto"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1, help="calls at a time")
    parser.add_argument("--save", action="store_true", help="write the records")
    args = parser.parse_args()
    args.seconds = args.seconds or SECONDS[args.part]
    args.memory = args.memory or MEMORY[args.part]
    is_peers = args.part == "peers"
    row_of, columns = (peer_row, PEER_COLUMNS) if is_peers else (beyond_row, BEYOND_COLUMNS)
    instances = list(sources.instances(args.part, args.data, args.match, args.family))
    record, runs = Record(f"estimates-{args.part}", columns), []
    with ThreadPoolExecutor(args.jobs) as pool:
        for instance, made in zip(instances, pool.map(lambda one: runs_of(one, args), instances), strict=True):
            for run in made:
                runs.append(run)
                record.add(*row_of(run))
                print("  ".join(cell or "-" for cell in record.rows[-1]), run.answer.message[:100], flush=True)
            if made[0].reference is not None and made[0].reference.source != "exact":
                print(f"  reference of {instance.name}: {made[0].reference.source}")
    summary = Record(
        f"estimates-{args.part}-summary",
        ["criterion", "wanted", *(f"{limit:g} s" for limit in args.seconds)]
        if is_peers
        else family_columns(args.seconds),
    )
    for row in (criterion_rows if is_peers else family_rows)(runs, args.seconds):
        summary.add(*row)
    show(summary)
    if args.save:
        record.save()
        summary.save()


if __name__ == "__main__":
    main()
