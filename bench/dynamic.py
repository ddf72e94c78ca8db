"""Passes over hidden Markov models, beside hmmlearn or the textbook's recursions in NumPy.

    python bench/dynamic.py [--repeat 3] [--threads 1] [--record]
    python bench/dynamic.py --wide [--record]

A chain of 10 and one of 50 states, each with 20 symbols, all numbers drawn at random: one sequence, and many. Both run
on one pinned core in one process, in turns; the figures are medians of processor time. The peers are the textbook's
recursions (Rabiner 1989) in NumPy, which do one step of one sequence at a time, and hmmlearn, which has no filtering,
where it is installed. The time of an iteration of expectation maximisation is that of some iterations less that of one.
With several threads, the figures are wall time, and no core is pinned.

With ``--wide``, one sequence of 100,000 steps of a chain of 1,000 states: each step reads a matrix of 8 MB, and the
speed is compared with that of NumPy's product of such a matrix with a vector, and of its sum of an array beyond all
caches.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

# Set before NumPy starts its threads.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

import elimina
from record import Record

Floats = NDArray[np.float64]
Clock = Callable[[], float]

SHAPES = (
    (10, 1, 1_000),
    (10, 1_000, 1_000),
    (10, 1, 100_000),
    (10, 2_000, 50),
    (50, 1, 100_000),
    (50, 2_000, 50),
)
"""States, number of sequences, and steps of each."""

SYMBOLS = 20

MAX_TEXTBOOK_STEPS = 100_000
"""Steps in all above which the textbook's recursions are left out: they would take minutes."""

ITERATIONS = 4
"""Iterations of expectation maximisation that are timed."""

WIDE_STATES, WIDE_STEPS = 1_000, 100_000


class Ours:
    """elimina: see ``Textbook``."""

    def __init__(self, start: Floats, transition: Floats, emission: Floats, threads: int) -> None:
        self._model = elimina.DynamicModel.hidden_markov(start, transition, emission)
        self._options = elimina.Options(threads=threads, device="cpu")

    def filter(self, symbols: NDArray[Any], lengths: list[int]) -> Floats:
        return self._model.filter(symbols, lengths=lengths, options=self._options).marginals["state"]

    def smooth(self, symbols: NDArray[Any], lengths: list[int]) -> Floats:
        return self._model.smooth(symbols, lengths=lengths, options=self._options).marginals["state"]

    def viterbi(self, symbols: NDArray[Any], lengths: list[int]) -> NDArray[Any]:
        return self._model.viterbi(symbols, lengths=lengths, options=self._options)[0]["state"]

    def fit(self, symbols: NDArray[Any], lengths: list[int], iterations: int) -> Floats:
        options = elimina.FitOptions(start="model", tolerance=0, max_iterations=iterations, planning=self._options)
        fit = elimina.fit(self._model, symbols, lengths=lengths, prior=0, options=options)
        assert fit.iterations == iterations
        return np.array(fit.log_likelihoods)


class Textbook:
    """The recursions of Rabiner's tutorial, one sequence after another.

    Args:
        start: Distribution of the first state.
        transition: Rows are distributions of the next state.
        emission: Rows are distributions of the symbol.
    """

    def __init__(self, start: Floats, transition: Floats, emission: Floats) -> None:
        self._start, self._transition, self._emission = start, transition, emission

    def filter(self, symbols: NDArray[Any], lengths: list[int]) -> Floats:
        return np.concatenate([self._forward(part)[0] for part in _parts(symbols, lengths)])

    def smooth(self, symbols: NDArray[Any], lengths: list[int]) -> Floats:
        return np.concatenate([self._smooth(part) for part in _parts(symbols, lengths)])

    def viterbi(self, symbols: NDArray[Any], lengths: list[int]) -> NDArray[Any]:
        return np.concatenate([self._best_path(part) for part in _parts(symbols, lengths)])

    def _forward(self, symbols: NDArray[Any]) -> tuple[Floats, Floats]:
        likelihoods = np.ascontiguousarray(self._emission.T[symbols])
        alphas, alpha = np.empty_like(likelihoods), self._start
        for t, row in enumerate(likelihoods):
            alpha = (alpha @ self._transition if t else alpha) * row
            alpha /= alpha.sum()
            alphas[t] = alpha
        return alphas, likelihoods

    def _smooth(self, symbols: NDArray[Any]) -> Floats:
        alphas, likelihoods = self._forward(symbols)
        beta = np.ones(len(self._start))
        for t in range(len(symbols) - 1, 0, -1):
            alphas[t] *= beta
            alphas[t] /= alphas[t].sum()
            beta = self._transition @ (likelihoods[t] * beta)
            beta /= beta.sum()
        alphas[0] *= beta
        alphas[0] /= alphas[0].sum()
        return alphas

    def _best_path(self, symbols: NDArray[Any]) -> NDArray[Any]:
        moves, logs = np.log(self._transition), np.log(self._emission.T[symbols])
        pointers = np.empty(logs.shape, dtype=np.int32)
        scores = np.log(self._start) + logs[0]
        columns = np.arange(len(scores))
        for t in range(1, len(symbols)):
            sums = scores[:, None] + moves
            pointers[t] = sums.argmax(axis=0)
            scores = sums[pointers[t], columns] + logs[t]
        path = np.empty(len(symbols), dtype=np.int64)
        path[-1] = scores.argmax()
        for t in range(len(symbols) - 1, 0, -1):
            path[t - 1] = pointers[t, path[t]]
        return path


class Hmmlearn:
    """hmmlearn's CategoricalHMM: see ``Textbook``."""

    def __init__(self, start: Floats, transition: Floats, emission: Floats) -> None:
        from hmmlearn.hmm import CategoricalHMM

        self._model = CategoricalHMM(len(start), n_features=emission.shape[1])
        self._model.startprob_, self._model.transmat_, self._model.emissionprob_ = start, transition, emission

    def smooth(self, symbols: NDArray[Any], lengths: list[int]) -> Floats:
        return self._model.predict_proba(symbols[:, None], lengths)

    def viterbi(self, symbols: NDArray[Any], lengths: list[int]) -> NDArray[Any]:
        return self._model.decode(symbols[:, None], lengths)[1]

    def fit(self, symbols: NDArray[Any], lengths: list[int], iterations: int) -> Floats:
        model = type(self._model)(
            self._model.n_components,
            n_features=self._model.n_features,
            n_iter=iterations + 1,
            tol=-np.inf,
            init_params="",
        )
        model.startprob_, model.transmat_ = self._model.startprob_, self._model.transmat_
        model.emissionprob_ = self._model.emissionprob_
        return np.array(model.fit(symbols[:, None], lengths).monitor_.history)


def _parts(symbols: NDArray[Any], lengths: list[int]) -> list[NDArray[Any]]:
    return np.split(symbols, np.cumsum(lengths)[:-1])


def in_turns(ours: Callable[[], Any], peer: Callable[[], Any], repeat: int, clock: Clock) -> tuple[float, float, float]:
    """Return the median seconds of both, and the largest difference of posteriors or the share of other states."""
    ours(), peer()
    seconds: dict[Callable[[], Any], list[float]] = {ours: [], peer: []}
    answers = {}
    for _ in range(repeat):
        for call in (ours, peer):
            started = clock()
            answers[call] = call()
            seconds[call].append(clock() - started)
    is_path = answers[peer].ndim == 1
    differences = answers[ours] != answers[peer] if is_path else np.abs(answers[ours] - answers[peer])
    difference = float(differences.mean() if is_path else differences.max())
    return statistics.median(seconds[ours]), statistics.median(seconds[peer]), difference


def iteration_seconds(engine: Any, symbols: NDArray[Any], lengths: list[int], clock: Clock) -> tuple[float, Floats]:
    """Return the seconds of an iteration of expectation maximisation, and the log-likelihoods."""
    seconds, logs = [], np.empty(0)
    for iterations in (1, 1 + ITERATIONS):
        started = clock()
        logs = engine.fit(symbols, lengths, iterations)
        seconds.append(clock() - started)
    return (seconds[1] - seconds[0]) / ITERATIONS, logs


def fit_in_turns(
    ours: Ours, peer: Hmmlearn, symbols: NDArray[Any], lengths: list[int], repeat: int, clock: Clock
) -> str:
    """Return the median milliseconds of an iteration of both, and their ratio; '-' if noise hides the difference."""
    seconds: dict[Any, list[float]] = {ours: [], peer: []}
    logs = {}
    for _ in range(repeat):
        for engine in (ours, peer):
            used, logs[engine] = iteration_seconds(engine, symbols, lengths, clock)
            seconds[engine].append(used)
    # hmmlearn has the log-likelihood before each iteration.
    np.testing.assert_allclose(logs[ours][: len(logs[peer])], logs[peer], rtol=1e-9)
    own, other = (statistics.median(seconds[engine]) for engine in (ours, peer))
    return f"{1e3 * own:.1f}, {1e3 * other:.1f}: {other / own:.1f}" if min(own, other) > 0 else "-"


def wide_record() -> Record:
    """Return the speed of a chain of many states beside that of the memory."""
    random = np.random.default_rng(1)
    sizes = (WIDE_STATES, None), (WIDE_STATES, WIDE_STATES), (SYMBOLS, WIDE_STATES)
    parameters = [random.dirichlet(np.ones(size), count) for size, count in sizes]
    model = elimina.DynamicModel.hidden_markov(*parameters)
    symbols = random.integers(SYMBOLS, size=WIDE_STEPS)
    gigabytes = 8e-9 * WIDE_STATES**2
    message, matrix, large = parameters[0], parameters[1], np.ones(1 << 27)
    started = time.process_time()
    for _ in range(1_000):
        message = message @ matrix
    product = 1_000 * gigabytes / (time.process_time() - started)
    large.sum()
    started = time.process_time()
    large.sum()
    reading = 8e-9 * len(large) / (time.process_time() - started)
    started = time.process_time()
    model.log_likelihood(symbols, options=elimina.Options(threads=1))
    seconds = time.process_time() - started
    record = Record(
        "dynamic-models-wide",
        ["states", "steps", "s", "GB/s", "NumPy's product, GB/s", "sum of 1 GiB, GB/s"],
        "Processor time of the log-likelihood of one sequence, one core; speeds at which matrices are read.",
    )
    speed = WIDE_STEPS * gigabytes / seconds
    record.add(
        f"{WIDE_STATES:,}", f"{WIDE_STEPS:,}", f"{seconds:.1f}", f"{speed:.1f}", f"{product:.1f}", f"{reading:.1f}"
    )
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1, help="threads of elimina; several: wall time")
    parser.add_argument("--wide", action="store_true", help="measure a chain of 1,000 states")
    parser.add_argument("--record", action="store_true", help="write bench/results/NAME.json")
    options = parser.parse_args()
    clock = time.process_time if options.threads == 1 else time.perf_counter
    if options.threads == 1 and hasattr(os, "sched_setaffinity"):
        # Cores of one machine differ by a third where others share them.
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    if options.wide:
        record = wide_record()
        print(*record.columns, sep="  ")
        print(*record.rows[0], sep="  ")
        if options.record:
            print(record.save())
        return
    has_hmmlearn = importlib.util.find_spec("hmmlearn") is not None
    passes = [
        ("filter", Textbook),
        ("smooth", Textbook),
        ("smooth", Hmmlearn),
        ("viterbi", Textbook),
        ("viterbi", Hmmlearn),
    ]
    times = "Processor time, one core" if options.threads == 1 else f"Wall time, elimina on {options.threads} threads"
    record = Record(
        "dynamic-models" if options.threads == 1 else "dynamic-models-threads",
        [
            "states",
            "sequences",
            *(f"{name}: elimina and {peer.__name__}, ms" for name, peer in passes),
            "iteration of fit: elimina and Hmmlearn, ms",
        ],
        f"{times}, median of {options.repeat}, and how many times faster elimina is; posteriors agree within 1e-9.",
    )
    for states, count, steps in SHAPES:
        random = np.random.default_rng(states)
        sizes = (states, None), (states, states), (SYMBOLS, states)
        parameters = [random.dirichlet(np.ones(size), count) for size, count in sizes]
        symbols, lengths = random.integers(SYMBOLS, size=count * steps), [steps] * count
        ours = Ours(*parameters, options.threads)
        cells = []
        for name, peer in passes:
            if not has_hmmlearn if peer is Hmmlearn else count * steps > MAX_TEXTBOOK_STEPS:
                cells.append("-")
                continue
            calls = [functools.partial(getattr(engine, name), symbols, lengths) for engine in (ours, peer(*parameters))]
            own, other, difference = in_turns(calls[0], calls[1], options.repeat, clock)
            # Paths of equal probability differ by rounding.
            assert difference <= (1e-4 if name == "viterbi" else 1e-9), (name, peer, difference)
            cells.append(f"{1e3 * own:.2f}, {1e3 * other:.2f}: {other / own:.1f}")
        cells.append(
            fit_in_turns(ours, Hmmlearn(*parameters), symbols, lengths, options.repeat, clock) if has_hmmlearn else "-"
        )
        record.add(states, f"{count:,} of {steps:,}", *cells)
        print("  ".join(f"{cell:>12}" for cell in record.rows[-1]), flush=True)
    if options.record:
        print(record.save())


if __name__ == "__main__":
    main()
