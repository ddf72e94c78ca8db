"""Expectation maximisation with missing cells, beside pyAgrum.

    python bench/expectation_maximisation.py FILE [--rows 5000] [--peer-rows 500] [--repeat 3] [--record]
    python bench/expectation_maximisation.py FILE --devices cpu cuda [--rows 1000000] [--repeat 3] [--record]

Rows are sampled from the Bayesian network in FILE, and a fifth of their cells is removed. Both start from the same
tables, with the same pseudo-count of each cell, on one thread. The figures are processor time: that of a fit of some
iterations less that of one, for each iteration. pyAgrum gets the first rows alone, for its time is in proportion to
them; the fit of these rows by elimina is compared with its own.

With ``--devices``, elimina alone on each of them, with all cores: the seconds of an iteration, and of the first one
with all that a fit does once.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np

import elimina
from record import Record

ITERATIONS = 4
MISSING_SHARE = 0.2
PSEUDO_COUNT = 1.0


def fit(model: elimina.Model, frame: Any, iterations: int, device: str = "cpu", threads: int | None = 1) -> elimina.Fit:
    planning = elimina.Options(threads=threads, device=device)
    options = elimina.FitOptions(start="model", tolerance=0, max_iterations=iterations, planning=planning)
    return elimina.fit(model, frame, prior=PSEUDO_COUNT, options=options)


def fit_by_pyagrum(model: elimina.Model, frame: Any, iterations: int) -> elimina.Model:
    import pyagrum

    network = elimina.to_pyagrum(model)
    learner = pyagrum.BNLearner(frame.fillna("?"), network, ["?"])
    learner.setNumberOfThreads(1)
    learner.useSmoothingPrior(PSEUDO_COUNT)
    learner.useEMWithDiffCriterion(1e-12, noise=0)
    learner.EMsetMaxIter(iterations)
    fitted = learner.learnParameters(network)
    assert learner.EMnbrIterations() == iterations
    return elimina.from_pyagrum(fitted)


def iteration_seconds(function: Any, model: elimina.Model, frame: Any) -> float:
    """Return the processor time of one more iteration."""
    seconds = []
    for iterations in (2, 2 + ITERATIONS):
        started = time.process_time()
        function(model, frame, iterations)
        seconds.append(time.process_time() - started)
    return (seconds[1] - seconds[0]) / ITERATIONS


def largest_difference(model: elimina.Model, other: elimina.Model) -> float:
    """Return the largest difference of two probabilities of the networks."""
    children = {other.variables[child].name: n for n, child in enumerate(other.children)}
    differences = []
    for factor, child in zip(model.factors, model.children, strict=True):
        peer = other.factors[children[model.variables[child].name]]
        names = [other.variables[v].name for v in peer.scope]
        axes = [names.index(model.variables[v].name) for v in factor.scope]
        differences.append(np.abs(factor.dense() - peer.dense().transpose(axes)).max())
    return float(max(differences))


def devices_record(model: elimina.Model, frame: Any, name: str, devices: list[str], repeat: int) -> Record:
    """Return the seconds of an iteration and of a fit of one iteration on each device."""
    record = Record(
        "parameters-by-device",
        ["network", "rows", "device", "iteration, s", "first iteration, s", "log-likelihood"],
        f"Wall time, all cores, median of {repeat}. First iteration: a whole fit of one iteration.",
    )
    for device in devices:
        seconds: dict[int, list[float]] = {1: [], 1 + ITERATIONS: []}
        fit(model, frame, 1, device, None)  # compiles kernels
        for _ in range(repeat):
            for iterations, times in seconds.items():
                started = time.perf_counter()
                fitted = fit(model, frame, iterations, device, None)
                times.append(time.perf_counter() - started)
        first, whole = map(statistics.median, seconds.values())
        log_likelihood = f"{fitted.log_likelihoods[-1]:.6f}"
        record.add(
            name, f"{len(frame):,}", device, f"{(whole - first) / ITERATIONS:.2f}", f"{first:.2f}", log_likelihood
        )
        print(*record.rows[-1], sep="  ", flush=True)
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="Bayesian network, such as alarm.bif")
    parser.add_argument("--rows", type=int, default=5000, help="number of rows")
    parser.add_argument("--peer-rows", type=int, default=500, help="number of rows of pyAgrum")
    parser.add_argument("--repeat", type=int, default=3, help="number of measurements, whose median is shown")
    parser.add_argument("--devices", nargs="+", help="devices on which elimina is measured alone")
    parser.add_argument("--record", action="store_true", help="write bench/results/NAME.json")
    arguments = parser.parse_args()
    model = elimina.read(arguments.file)
    frame = elimina.sample(model, arguments.rows, seed=1).to_frame()
    frame = frame.mask(np.random.default_rng(1).random(frame.shape) < MISSING_SHARE)
    if arguments.devices:
        name = arguments.file.rpartition("/")[2]
        record = devices_record(model, frame, name, arguments.devices, arguments.repeat)
        if arguments.record:
            record.save()
        return
    import pyagrum

    # From random tables each iteration increases the likelihood: pyAgrum ends where one does not.
    pyagrum.initRandom(1)
    network = elimina.to_pyagrum(model)
    network.generateCPTs()
    model = elimina.from_pyagrum(network)
    few = frame[: arguments.peer_rows]
    ours, peer = [], []
    for _ in range(arguments.repeat):
        ours.append(iteration_seconds(fit, model, frame) / len(frame))
        peer.append(iteration_seconds(fit_by_pyagrum, model, few) / len(few))
    difference = largest_difference(fit(model, few, 3).model, fit_by_pyagrum(model, few, 3))
    seconds = [1e6 * statistics.median(each) for each in (ours, peer)]
    record = Record(
        "parameters-with-missing-cells",
        ["network", "rows", "elimina, µs", "pyAgrum, µs", "ratio", "difference"],
        f"Processor time of a row and iteration, one thread, median of {arguments.repeat}. Ratio: peer / ours. "
        f"Difference: the largest one of two probabilities after 3 iterations of {len(few):,} rows.",
    )
    record.add(
        arguments.file.rpartition("/")[2],
        f"{len(frame):,}",
        *(f"{value:,.1f}" for value in seconds),
        f"{seconds[1] / seconds[0]:,.0f}",
        f"{difference:.0e}",
    )
    print(*record.columns, sep="  ")
    for row in record.rows:
        print(*row, sep="  ")
    if arguments.record:
        record.save()


if __name__ == "__main__":
    main()
