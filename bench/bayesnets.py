"""Belief propagation on the Bayesian networks of a data folder, beside pyAgrum and CUBE's published figures.

    python bench/bayesnets.py ../shared/data/bayesnets --peer PEER_PYTHON [--device cpu cuda] [--threads 2]
        [--oracle build/oracle] [--table propagation batches mpe oracle cube] [--match TEXT]

All numbers given to both are those of `bayesnets_export.py`. pyAgrum runs in a process of its own just before the
network is ours (`--peer`: an interpreter that has it); without it the recorded figures of bayesnets_pyagrum.json are
printed, and the ratios are of two machines or times.

propagation: cells of all cliques; seconds to compile; milliseconds of one full propagation with all posteriors, without
evidence and with ten variables observed, whose values change from run to run (medians). Ratios above 1: ours is less.
pyAgrum's is its faster engine with as many threads or fewer; it builds a new tree for each set of observed variables,
without them. batches: cases a second, other ten variables observed in each; pyAgrum on one core, by whichever of its
ways is the fastest. mpe: milliseconds of each phase of `solve(task="mpe")`, of the slowest case of its kind.
oracle: largest differences to the stored posteriors (`bayesnets_oracle.py`); right answers agree within 1e-14, so that
1e-10 means that an unlikely part of a table is wrong. cube: the GPU's table.
"""

from __future__ import annotations

import argparse
import json
import math
import operator
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import bayesnets_files
import elimina
from bayesnets_export import model_of, network_files, network_name, network_of
from bayesnets_files import UNOBSERVED, Case, Network

RECORD = Path(__file__).with_name("bayesnets_pyagrum.json")
PEER = Path(__file__).with_name("bayesnets_peer.py")
TABLES = ("propagation", "batches", "mpe", "oracle", "cube")
CUBE = {  # Bistaffa, Bombieri, Farinelli (2016), Table II, milliseconds: preprocessing, transfers, reduce and scatter
    "mildew": (28, 12, 3), "diabetes": (71, 57, 14), "barley": (294, 110, 35), "munin1": (2395, 1464, 193),
    "munin2": (24, 16, 14), "munin4": (106, 45, 31), "water": (46, 15, 12),
}  # fmt: skip


Answers = tuple[np.ndarray, np.ndarray]
"""Posteriors of shape (cases, sum of the domain sizes), and log10 of the evidence's probability."""


class Subject(NamedTuple):
    network: Network
    model: elimina.Model
    peer: dict[str, Any] | None


def subjects(args: argparse.Namespace) -> Iterator[Subject]:
    """Each network, with pyAgrum's figures taken a moment before."""
    recorded = json.loads(RECORD.read_text())
    wants_peer = {"propagation", "batches"} & set(args.table)
    with tempfile.TemporaryDirectory() as folder:
        for path in network_files(args.data):
            name = network_name(path)
            if args.match not in name or (args.table == ["cube"] and name not in CUBE):
                continue
            read = elimina.read(path)
            network = network_of(read, name)
            peer = recorded.get(name)
            if args.peer and wants_peer:
                peer = live_figures(args.peer, Path(folder), network, args.threads)
            yield Subject(network, model_of(network, read.variables), peer)


def live_figures(python: str, folder: Path, network: Network, threads: int) -> dict[str, Any]:
    bayesnets_files.save(folder / f"{network.name}.npz", network)
    numbers = map(str, sorted({1, threads}))
    command = [python, str(PEER), str(folder), "--network", network.name, "--threads", *numbers]
    figures: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return figures[network.name]


def peer_seconds(peer: dict[str, Any] | None, kind: str, threads: int) -> float | None:
    """Return the time of pyAgrum's faster engine with at most our threads; None where its tree was too large."""
    if peer is None or peer[kind]["seconds"] is None:
        return None
    return min(s for times in peer[kind]["seconds"].values() for number, s in times.items() if int(number) <= threads)


def peer_rate(peer: dict[str, Any] | None) -> float | None:
    """Cases a second on one core, by its fastest way."""
    if peer is None:
        return None
    return max(peer.get("cases_per_second", 0), peer.get("reused", 0), 1 / peer["pruned"]["ten"])


def evidence_of(model: elimina.Model, case: Case) -> dict[str, str]:
    return {v.name: v.state(x) for v, x in zip(model.variables, case.tolist(), strict=True) if x != UNOBSERVED}


def propagate(engine: elimina.JunctionTree, given: dict[str, str]) -> float:
    started = time.perf_counter()
    engine.set_evidence(given)
    engine.marginals()
    return time.perf_counter() - started


def timed_runs(engine: elimina.JunctionTree, subject: Subject) -> tuple[float, float]:
    """Medians without and with evidence; the latter of full runs or of changes, whichever is less, as pyAgrum's."""
    none, ten = bayesnets_files.timed_cases(subject.network)
    evidence = [evidence_of(subject.model, case) for case in ten]
    without = [full_run(engine, subject, {}) for _ in none]
    full = [full_run(engine, subject, observed) for observed in evidence[1:]]
    propagate(engine, evidence[0])
    changed = [propagate(engine, observed) for observed in evidence[1:]]
    return statistics.median(without), min(statistics.median(full), statistics.median(changed))


def full_run(engine: elimina.JunctionTree, subject: Subject, given: dict[str, str]) -> float:
    """Time of a propagation of which nothing is known: every variable was observed before."""
    everything = bayesnets_files.sample(subject.network, bayesnets_files.generator(subject.network, 3), 1)[0]
    propagate(engine, evidence_of(subject.model, everything))
    return propagate(engine, given)


def compiled(subject: Subject, device: str, args: argparse.Namespace) -> tuple[elimina.JunctionTree, float]:
    started = time.perf_counter()
    engine = elimina.JunctionTree(
        subject.model, device=device, options=elimina.Options(threads=args.threads, dtype=args.dtype)
    )
    return engine, time.perf_counter() - started


def number(value: float | None, scale: float = 1, digits: int = 4) -> str:
    return "-" if value is None else f"{value * scale:.{digits}g}"


def ratio(above: float | None, below: float | None) -> float | None:
    return None if above is None or below is None else above / below


def row(widths: Iterable[int], *cells: str) -> str:
    """Columns; negative widths are of text that starts at the left."""
    columns = zip(widths, cells, strict=False)
    return " ".join(f"{cell:>{width}}" if width > 0 else f"{cell:{-width}}" for width, cell in columns)


class Means:
    """Geometric mean and least of named ratios."""

    def __init__(self) -> None:
        self.ratios: dict[str, list[float]] = {}

    def add(self, name: str, value: float | None) -> str:
        if value is not None:
            self.ratios.setdefault(name, []).append(value)
        return number(value, digits=3)

    def show(self) -> None:
        for name, values in self.ratios.items():
            mean = math.exp(statistics.fmean(map(math.log, values)))
            print(f"{name}: geometric mean {mean:.2f}, least {min(values):.2f}, {len(values)} networks")


Table = Callable[[Subject, argparse.Namespace, Means], Iterator[str]]
PROPAGATION = (-12, 4, 11, 11, 6, 8, 9, 9, 6, 9, 9, 6, 9, 9)


def propagation(subject: Subject, args: argparse.Namespace, means: Means) -> Iterator[str]:
    peer = subject.peer
    for device in args.device:
        engine, seconds = compiled(subject, device, args)
        cells, none, ten = engine.statistics.total_cells, *timed_runs(engine, subject)
        peers = [peer_seconds(peer, kind, args.threads) for kind in ("none", "ten")]
        peer_cells = peer["none"]["cells"] if peer else None
        yield row(
            PROPAGATION, subject.network.name, device, str(cells), str(peer_cells or "-"),
            means.add(f"{device}, pyAgrum's cells over ours", ratio(peer_cells, cells)), number(seconds),
            number(none, 1e3), number(peers[0], 1e3), means.add(f"{device}, no evidence", ratio(peers[0], none)),
            number(ten, 1e3), number(peers[1], 1e3), means.add(f"{device}, ten observed", ratio(peers[1], ten)),
            *(number(peer["pruned"][kind] if peer else None, 1e3) for kind in ("none", "ten")),
        )  # fmt: skip


BATCHES = (-12, 4, 11, 11, 8, 11)


def batches(subject: Subject, args: argparse.Namespace, means: Means) -> Iterator[str]:
    cases = bayesnets_files.draw_batch(subject.network, args.cases)
    for device in args.device:
        engine, _ = compiled(subject, device, args)
        # Planning depends on the number of cases; where all of them take minutes, it does not show.
        few = device != "cuda" and engine.statistics.total_cells >= LARGE
        engine.batch(cases[:64] if few else cases, indices=True)
        started = time.perf_counter()
        found = engine.batch(cases, indices=True)
        rate = len(cases) / (time.perf_counter() - started)
        possible = int(np.isfinite(found.log10_evidence).sum())
        peer = peer_rate(subject.peer)
        cores = args.threads if device == "cpu" else 1
        gain = means.add(f"{device}, over pyAgrum on {cores} core(s)", ratio(rate, peer and peer * cores))
        yield row(BATCHES, subject.network.name, device, number(rate), number(peer), gain, f"{possible}/{len(cases)}")


LARGE = 100_000
"""Cells of a tree whose batches take minutes on a CPU."""
WARM_UP = elimina.Model.from_arrays([2], [([0], [0.5, 0.5])], sense="probability")
MPE = (-12, 4, 5, 9, 9, 9, 9, 9, 6, 6)


def mpe(subject: Subject, args: argparse.Namespace, means: Means) -> Iterator[str]:
    """The slowest case of each kind, and whether its assignment has the value that is claimed."""
    cases = bayesnets_files.draw_cases(subject.network, args.mpe_draws)
    for device in args.device:
        elimina.solve(WARM_UP, "mpe", device=device)
        for kind in bayesnets_files.KINDS:
            slowest: tuple[float, dict[str, Any]] = 0.0, {}
            wrong = 0
            for case in cases.values[cases.kinds == kind]:
                given = evidence_of(subject.model, case)
                started = time.perf_counter()
                result = elimina.solve(
                    subject.model, "mpe", evidence=given, device=device, options=elimina.Options(threads=args.threads)
                )
                seconds = time.perf_counter() - started
                slowest = max(slowest, (seconds, result.stats), key=operator.itemgetter(0))
                best = result.assignment or {}
                values = [v.index(best[v.name]) for v in subject.model.variables]
                kept = all(best[name] == state for name, state in given.items())
                wrong += not (kept and math.isclose(subject.model.score(values), result.value or 0, rel_tol=1e-9))
            seconds, stats = slowest
            steps = [stats["seconds"][step] for step in ("order", "plan", "run")]
            parts = [number(s, 1e3) for s in (seconds, *steps, seconds - sum(steps))]
            flags = ("above" if seconds > 1 else "", f"{wrong} WRONG" if wrong else "")
            yield row(MPE, subject.network.name, device, kind, *parts, str(stats["induced_width"]), *flags)


def stored_answers(subject: Subject, args: argparse.Namespace) -> dict[str, np.ndarray] | None:
    path = args.oracle / f"{subject.network.name}.npz"
    if not path.exists():
        return None
    with np.load(path) as stored:
        return dict(stored)


def differences(
    subject: Subject, answers: dict[str, np.ndarray], posteriors: np.ndarray, log10_evidence: np.ndarray
) -> Iterator[tuple[str, int, float, float, str]]:
    """Return, by kind of case, their number, the largest differences, and the variable with the largest."""
    ends = np.cumsum(subject.network.sizes)
    for kind in bayesnets_files.KINDS:
        here = answers["kinds"] == kind
        gaps = np.abs(posteriors - answers["posteriors"])[here].max(axis=0)
        known = here & ~np.isnan(answers["log10_evidence"])
        evidence = np.abs(log10_evidence - answers["log10_evidence"])[known].max(initial=0)
        worst = int(np.searchsorted(ends, gaps.argmax(), side="right"))
        yield kind, int(here.sum()), float(gaps.max()), float(evidence), subject.model.variables[worst].name


def single_answers(engine: elimina.JunctionTree, model: elimina.Model, cases: np.ndarray) -> Answers:
    posteriors, logarithms = [], []
    for case in cases:
        engine.set_evidence(evidence_of(model, case))
        found = engine.marginals()
        posteriors.append(np.concatenate([found[v.name] for v in model.variables]))
        logarithms.append(engine.log10_evidence)
    return np.array(posteriors), np.array(logarithms)


def batch_answers(engine: elimina.JunctionTree, model: elimina.Model, cases: np.ndarray) -> Answers:
    engine.set_evidence({})
    found = engine.batch(cases, indices=True)
    return np.concatenate([found.marginals[v.name] for v in model.variables], axis=1), found.log10_evidence


ORACLE = (-12, 4, 6, 5, 5, 11, 11)


def oracle(subject: Subject, args: argparse.Namespace, means: Means) -> Iterator[str]:
    """Single cases and a batch of them, against pyAgrum's posteriors."""
    answers = stored_answers(subject, args)
    if answers is None:
        yield f"{subject.network.name:12} is not in {args.oracle}"
        return
    for device in args.device:
        engine, _ = compiled(subject, device, args)
        for way, answer in (("single", single_answers), ("batch", batch_answers)):
            if way not in args.ways:
                continue
            found = answer(engine, subject.model, answers["cases"])
            for kind, cases, gap, evidence, worst in differences(subject, answers, *found):
                flag = "" if gap <= args.tolerance else f"  ABOVE at {worst}"
                texts = (str(cases), f"{gap:.1e}", f"{evidence:.1e}")
                yield row(ORACLE, subject.network.name, device, way, kind, *texts) + flag


CUBE_WIDTHS = (-12, 8, 9, 8, 11, 9, 8, 6)


def cube(subject: Subject, args: argparse.Namespace, means: Means) -> Iterator[str]:
    if subject.network.name not in CUBE or "cuda" not in args.device:
        return
    engine, seconds = compiled(subject, "cuda", args)
    for _ in range(3):
        full_run(engine, subject, {})
    phases = engine.seconds
    transfers = phases["upload"] + phases["download"]
    theirs = CUBE[subject.network.name]
    gain = means.add("cube, published time over ours", theirs[2] / (phases["run"] * 1e3))
    ours = [number(s, 1e3) for s in (seconds, transfers, phases["run"])]
    yield row(CUBE_WIDTHS, subject.network.name, *map(str, theirs), *ours, gain)


HEADS: dict[str, tuple[Table, str]] = {
    "propagation": (
        propagation,
        row(
            PROPAGATION, "network", "", "cells", "pyAgrum", "ratio", "compile", "none ms", "pyAgrum", "ratio",
            "ten ms", "pyAgrum", "ratio", "none prun", "ten prun",
        ),
    ),
    "batches": (batches, row(BATCHES, "network", "", "cases/s", "pyAgrum", "ratio", "possible")),
    "mpe": (mpe, row(MPE, "network", "", "", "all ms", "order", "plan", "run", "rest", "width", "1 s", "")),
    "oracle": (oracle, row(ORACLE, "network", "", "", "", "cases", "posteriors", "log10 P(e)")),
    "cube": (
        cube,
        row(CUBE_WIDTHS, "network", "CUBE pre", "transfers", "R/S ms", "our compile", "transfers", "run", "ratio"),
    ),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder that holds bif/ and cpcs/")
    parser.add_argument("--device", nargs="+", default=["cpu"], choices=["cpu", "cuda"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dtype", choices=["float32", "float64"])
    parser.add_argument("--peer", help="an interpreter with pyagrum: take its figures in this run")
    parser.add_argument("--oracle", type=Path, default=Path(__file__).parents[1] / "build" / "oracle")
    parser.add_argument("--tolerance", type=float, default=1e-12, help="of posteriors against the oracle")
    parser.add_argument("--ways", nargs="+", choices=["single", "batch"], default=["single", "batch"], help="of oracle")
    parser.add_argument("--cases", type=int, default=4096, help="of a batch")
    parser.add_argument("--mpe-draws", type=int, default=5, help="cases with ten and with half of the variables")
    parser.add_argument("--table", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--match", default="", help="networks whose name contains this")
    args = parser.parse_args()
    means = {name: Means() for name in args.table}
    lines: dict[str, list[str]] = {name: [] for name in args.table}
    for subject in subjects(args):
        for name in args.table:
            for line in HEADS[name][0](subject, args, means[name]):
                print(f"{name}: {line}", flush=True)
                lines[name].append(line)
    for name in args.table:
        print(f"\n{name}\n{HEADS[name][1]}")
        print("\n".join(lines[name]))
        means[name].show()


if __name__ == "__main__":
    main()
