"""Passes over hidden Markov models, beside hmmlearn or the textbook's recursions in NumPy.

    python bench/dynamic.py [--steps 100000] [--repeat 3] [--record]

A chain of 10 and one of 50 states, each with 20 symbols, all numbers drawn at random: one long sequence, and as many
steps in sequences of 50. Both run on one pinned core in one process, in turns; the figures are medians of
processor time. The peers are the textbook's recursions (Rabiner 1989) in NumPy, which do one step of one sequence at a
time, and hmmlearn, which has no filtering, where it is installed.
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

STATES = (10, 50)
SYMBOLS = 20
SHORT = 50
"""Steps of a short sequence."""


class Ours:
    """elimina on one thread: see ``Textbook``."""

    def __init__(self, start: Floats, transition: Floats, emission: Floats) -> None:
        self._model = elimina.DynamicModel.hidden_markov(start, transition, emission)
        self._options = elimina.Options(threads=1)

    def filter(self, symbols: NDArray[Any], lengths: list[int]) -> Floats:
        return self._model.filter(symbols, lengths=lengths, options=self._options).marginals["state"]

    def smooth(self, symbols: NDArray[Any], lengths: list[int]) -> Floats:
        return self._model.smooth(symbols, lengths=lengths, options=self._options).marginals["state"]

    def viterbi(self, symbols: NDArray[Any], lengths: list[int]) -> NDArray[Any]:
        return self._model.viterbi(symbols, lengths=lengths, options=self._options)[0]["state"]


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


def _parts(symbols: NDArray[Any], lengths: list[int]) -> list[NDArray[Any]]:
    return np.split(symbols, np.cumsum(lengths)[:-1])


def in_turns(ours: Callable[[], Any], peer: Callable[[], Any], repeat: int) -> tuple[float, float, float]:
    """Return the median seconds of both, and the largest difference of posteriors or the share of other states."""
    ours(), peer()
    seconds: dict[Callable[[], Any], list[float]] = {ours: [], peer: []}
    answers = {}
    for _ in range(repeat):
        for call in (ours, peer):
            started = time.process_time()
            answers[call] = call()
            seconds[call].append(time.process_time() - started)
    is_path = answers[peer].ndim == 1
    differences = answers[ours] != answers[peer] if is_path else np.abs(answers[ours] - answers[peer])
    difference = float(differences.mean() if is_path else differences.max())
    return statistics.median(seconds[ours]), statistics.median(seconds[peer]), difference


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--record", action="store_true", help="write bench/results/dynamic-models.json")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        # Cores of one machine differ by a third where others share them.
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    passes = [
        ("filter", Textbook),
        ("smooth", Textbook),
        ("smooth", Hmmlearn),
        ("viterbi", Textbook),
        ("viterbi", Hmmlearn),
    ]
    record = Record(
        "dynamic-models",
        ["states", "sequences", *(f"{name}: elimina and {peer.__name__}, ms" for name, peer in passes)],
        f"Processor time of {options.steps:,} steps, one core, median of {options.repeat}, and how many times faster "
        "elimina is; posteriors agree within 1e-9.",
    )
    for states in STATES:
        random = np.random.default_rng(states)
        sizes = (states, None), (states, states), (SYMBOLS, states)
        parameters = [random.dirichlet(np.ones(size), count) for size, count in sizes]
        symbols = random.integers(SYMBOLS, size=options.steps)
        ours = Ours(*parameters)
        for lengths in ([options.steps], [SHORT] * (options.steps // SHORT)):
            cells = []
            for name, peer in passes:
                if peer is Hmmlearn and not importlib.util.find_spec("hmmlearn"):
                    cells.append("-")
                    continue
                calls = [
                    functools.partial(getattr(engine, name), symbols, lengths) for engine in (ours, peer(*parameters))
                ]
                own, other, difference = in_turns(calls[0], calls[1], options.repeat)
                # Paths of equal probability differ by rounding.
                assert difference <= (1e-4 if name == "viterbi" else 1e-9), (name, peer, difference)
                cells.append(f"{1e3 * own:.1f}, {1e3 * other:.1f}: {other / own:.1f}")
            record.add(states, f"{len(lengths):,}", *cells)
            print("  ".join(f"{cell:>12}" for cell in record.rows[-1]), flush=True)
    if options.record:
        print(record.save())


if __name__ == "__main__":
    main()
