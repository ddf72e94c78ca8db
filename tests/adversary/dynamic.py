"""Random dynamic models with extreme numbers, against forward and backward passes over logarithms."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from elimina import DynamicModel, OnlineFilter
from elimina.errors import ImpossibleEvidenceError
from elimina.methods import dynamic_model
from tests.adversary.case import Case, Defect, Setting

Logs = NDArray[np.float64]

TOLERANCE = 1e-9

HIDDEN = ["a", "b"]
"""Names of hidden variables."""

STYLES = ("uniform", "zeros", "spread", "tiny", "sticky", "sticky", "sticky", "sticky")
"""Numbers from 0 to 1; some of them 0; over 12 powers of ten; or over 300; or the last, with states that hardly ever
change, so that a state that floats would lose may become likely again."""


def make(rng: random.Random, setting: Setting) -> Case:
    """Make a model of one or two hidden variables and one or two symbols, and sequences of observations."""
    style, lengths = rng.choice(STYLES), [rng.randint(1, 12) for _ in range(rng.choice([1, 1, 2, 3]))]
    sizes = {name: rng.randint(1 if style != "sticky" else 2, 4) for name in HIDDEN[: rng.randint(1, 2)]}
    symbols = {name: rng.randint(1, 3) for name in ["x", "y"][: rng.randint(1, 2)]}
    hidden = list(sizes)
    families: dict[str, list[list[str]]] = {"initial": [], "transition": []}
    for number, name in enumerate(hidden):
        families["initial"].append([name, *hidden[:number]])
        before = [f"{other}[-1]" for other in hidden if other == name or rng.random() < 0.6]
        families["transition"].append([name, *hidden[:number], *before])
    for name in symbols:
        families["initial"].append([name, *rng.sample(hidden, rng.randint(1, len(hidden)))])
    all_sizes = sizes | symbols
    tables = {
        part: [
            [family, _distribution(rng, style, family, [all_sizes[name.removesuffix("[-1]")] for name in family])]
            for family in members
        ]
        for part, members in families.items()
    }
    rows = sum(lengths)
    columns: dict[str, Any] = {
        name: [code if rng.random() < 0.8 else None for code in _codes(rng, style, size, rows)]
        for name, size in symbols.items()
    }
    if rng.random() < (0.8 if style == "sticky" else 0.4):
        columns["a"] = _log_likelihoods(rng, style, sizes["a"], rows)
    engine = rng.choice(["chain", "trees"])
    return {"sizes": all_sizes, "hidden": hidden, **tables, "columns": columns, "lengths": lengths, "engine": engine}


def _codes(rng: random.Random, style: str, size: int, rows: int) -> list[int]:
    """Return observed states, which often repeat in the style ``sticky``."""
    codes: list[int] = []
    for _ in range(rows):
        repeats = style == "sticky" and codes and rng.random() < 0.6
        codes.append(codes[-1] if repeats else rng.randrange(size))
    return codes


def _log_likelihoods(rng: random.Random, style: str, size: int, rows: int) -> list[list[float]]:
    """Return logarithms of likelihoods, by which unlikely states become likely again in the style ``sticky``."""
    largest = rng.choice([1.0, 30.0, 700.0, 1e5])
    if style != "sticky" or rng.random() < 0.2:
        return [[rng.uniform(-largest, largest) for _ in range(size)] for _ in range(rows)]
    table = []
    for row in range(rows):
        if row % 6 == 0:
            favourite, loss = rng.randrange(size), 800.0
        elif row % 6 == 1:
            favourite, loss = rng.randrange(size), rng.choice([200.0, 300.0, 600.0])
        table.append([0.0 if state == favourite else -loss for state in range(size)])
    return table


def _distribution(rng: random.Random, style: str, family: list[str], sizes: list[int]) -> Any:
    """Return a distribution of the first axis, as nested lists."""
    cells = np.array([_number(rng, style) for _ in range(math.prod(sizes))]).reshape(sizes)
    previous = f"{family[0]}[-1]"
    if style != "sticky":
        cells[rng.randrange(sizes[0])] += 0.5
    elif previous in family:
        cells *= rng.choice([0.0, 0.0, 1e-200])
        states = np.indices(sizes)
        cells[states[0] == states[family.index(previous)]] = 1.0
    elif family[0] in HIDDEN:
        cells[...] = 1.0
    else:
        columns = cells.reshape(sizes[0], -1)
        for column in range(columns.shape[1]):
            columns[rng.randrange(sizes[0]), column] = 1.0
    return (cells / cells.sum(axis=0)).tolist()


def _number(rng: random.Random, style: str) -> float:
    if style == "zeros" and rng.random() < 0.4:
        return 0.0
    return 10.0 ** rng.uniform({"spread": -12, "tiny": -300, "sticky": -200}.get(style, -1), 0)


def build(case: Case) -> DynamicModel:
    """Build the model."""
    initial, transition = (
        {tuple(family) if len(family) > 1 else family[0]: np.array(cells) for family, cells in case[part]}
        for part in ("initial", "transition")
    )
    return DynamicModel.from_cpds(initial, transition, states=case["sizes"])


def check(case: Case) -> None:
    """Compare the likelihoods, the filtered and smoothed posteriors, and the best paths."""
    with mock.patch.object(dynamic_model, "MAX_STATES", dynamic_model.MAX_STATES if case["engine"] == "chain" else 0):
        _check(case)


def _check(case: Case) -> None:
    model, oracle = build(case), Oracle(case)
    columns = {name: np.array(column) if name == "a" else column for name, column in case["columns"].items()}
    lengths, ends = case["lengths"], list(itertools.accumulate(case["lengths"], initial=0))
    logs = model.log_likelihood(columns, lengths=lengths)
    filtered = model.filter(columns, case["hidden"], lengths=lengths)
    smoothed = model.smooth(columns, case["hidden"], lengths=lengths)
    for number, (begin, end) in enumerate(itertools.pairwise(ends)):
        alphas, log_evidence = oracle.forward(begin, end)
        total = float(log_evidence.sum())
        _compare("log-likelihood", logs[number], total)
        if total == -math.inf:
            continue
        _compare("log-evidence of the slices", filtered.log_evidence[begin:end], log_evidence)
        gammas = oracle.smoothed(alphas, begin, end)
        for axis, name in enumerate(case["hidden"]):
            for what, answer, joint in (("filtered", filtered, alphas), ("smoothed", smoothed, gammas)):
                expected = oracle.marginals(joint, axis)
                _compare(f"{what} {name}", answer.marginals[name][begin:end], expected)
        alone = {name: column[begin:end] for name, column in columns.items()}
        _check_path(case, model, oracle, alone, begin, end)
        if "a" in columns:
            continue  # an online filter takes likelihoods, not their logarithms
        online = OnlineFilter(model)
        for t in range(begin, end):
            online.update({name: column[t] for name, column in columns.items() if column[t] is not None})
        _compare("log-likelihood of an online filter", online.log_likelihood, total)
    if len(lengths) == 1 and logs[0] == -math.inf:
        try:
            model.viterbi(columns)
        except ImpossibleEvidenceError:
            return
        raise Defect("a best path of impossible observations")


def _check_path(case: Case, model: DynamicModel, oracle: Oracle, columns: dict[str, Any], begin: int, end: int) -> None:
    states, score = model.viterbi(columns)
    _compare("logarithm of the best path", score, oracle.best(begin, end))
    hidden = [name for name in case["hidden"] if name in states]
    if hidden == case["hidden"]:
        path = [tuple(int(states[name][t]) for name in hidden) for t in range(end - begin)]
        _compare("logarithm of the path", oracle.score(path, begin), score)


def _compare(what: str, answer: Any, expected: Any) -> None:
    if not np.allclose(answer, expected, rtol=TOLERANCE, atol=TOLERANCE):
        raise Defect(f"the {what}: {answer}, not {expected}")


class Oracle:
    """Forward and backward passes over the logarithms of joint hidden states."""

    def __init__(self, case: Case) -> None:
        self._case, self._shape = case, tuple(case["sizes"][name] for name in case["hidden"])
        hidden = case["hidden"]
        letters = {name: i for i, name in enumerate(hidden)} | {f"{name}[-1]": 5 + i for i, name in enumerate(hidden)}
        self._start = self._joined(case["initial"][: len(hidden)], letters, range(len(hidden)))
        axes = [*range(5, 5 + len(hidden)), *range(len(hidden))]
        count = math.prod(self._shape)
        self._moves = self._joined(case["transition"], letters, axes).reshape(count, count)
        self._symbols = {family[0]: (family[1:], np.array(cells)) for family, cells in case["initial"][len(hidden) :]}

    def _joined(self, families: list[Any], letters: dict[str, int], axes: Any) -> Logs:
        total = np.zeros([1] * len(axes))
        places = {letter: place for place, letter in enumerate(axes)}
        for family, cells in families:
            own = [places[letters[name]] for name in family]
            table = np.moveaxis(_log(np.array(cells)), range(len(own)), np.argsort(np.argsort(own)))
            shape = [1] * len(places)
            for place, size in zip(sorted(own), table.shape, strict=True):
                shape[place] = size
            total = total + table.reshape(shape)
        sizes = self._shape if len(axes) == len(self._shape) else self._shape * 2
        return np.broadcast_to(total, sizes)

    def _emission(self, row: int) -> Logs:
        total = np.zeros(self._shape)
        for name, column in self._case["columns"].items():
            if name == "a":
                total = total + np.reshape(column[row], (-1, *[1] * (len(self._shape) - 1)))
            elif column[row] is not None:
                parents, cells = self._symbols[name]
                places = [self._case["hidden"].index(parent) for parent in parents]
                table = np.moveaxis(_log(cells[column[row]]), range(len(places)), np.argsort(np.argsort(places)))
                shape = [self._shape[place] if place in places else 1 for place in range(len(self._shape))]
                total = total + table.reshape(shape)
        return total.reshape(-1)

    def forward(self, begin: int, end: int) -> tuple[Logs, Logs]:
        """Return the normalised logarithms of each slice's states, and the logarithm of its evidence."""
        alphas, totals = [], []
        for row in range(begin, end):
            before = self._start.reshape(-1) if row == begin else _sum(alphas[-1][:, None] + self._moves, 0)
            joint = before + self._emission(row)
            totals.append(_sum(joint, 0))
            alphas.append(joint - totals[-1] if totals[-1] > -math.inf else joint)
        return np.array(alphas), np.array(totals)

    def smoothed(self, alphas: Logs, begin: int, end: int) -> Logs:
        """Return the logarithms of each slice's states given all observations."""
        beta, gammas = np.zeros(alphas.shape[1]), []
        for row in reversed(range(begin, end)):
            joint = alphas[row - begin] + beta
            gammas.append(joint - _sum(joint, 0))
            beta = _sum(self._moves + (self._emission(row) + beta)[None, :], 1)
        return np.array(gammas[::-1])

    def marginals(self, joint: Logs, axis: int) -> Logs:
        """Return the probabilities of one hidden variable."""
        cells = np.exp(joint).reshape(len(joint), *self._shape)
        return cells.sum(axis=tuple(n + 1 for n in range(len(self._shape)) if n != axis))

    def best(self, begin: int, end: int) -> float:
        """Return the logarithm of the best path."""
        scores = self._start.reshape(-1) + self._emission(begin)
        for row in range(begin + 1, end):
            scores = (scores[:, None] + self._moves).max(axis=0) + self._emission(row)
        return float(scores.max())

    def score(self, path: list[tuple[int, ...]], begin: int) -> float:
        """Return the logarithm of a path."""
        codes = [int(np.ravel_multi_index(states, self._shape)) for states in path]
        total = self._start.reshape(-1)[codes[0]] + sum(self._moves[pair] for pair in itertools.pairwise(codes))
        return float(total + sum(self._emission(begin + t)[code] for t, code in enumerate(codes)))


def _log(cells: NDArray[np.float64]) -> Logs:
    with np.errstate(divide="ignore"):
        return np.log(cells)


def _sum(logs: Logs, axis: int) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.logaddexp.reduce(logs, axis=axis)


def smaller(case: Case) -> Iterator[Case]:
    """Yield cases with fewer sequences, or fewer slices."""
    lengths, ends = case["lengths"], list(itertools.accumulate(case["lengths"], initial=0))
    if len(lengths) > 1:
        for begin, end in itertools.pairwise(ends):
            columns = {name: column[begin:end] for name, column in case["columns"].items()}
            yield {**case, "columns": columns, "lengths": [end - begin]}
    elif lengths[0] > 1:
        for kept in (slice(1, None), slice(None, -1)):
            yield {
                **case,
                "columns": {name: column[kept] for name, column in case["columns"].items()},
                "lengths": [lengths[0] - 1],
            }
    if "a" in case["columns"]:
        yield {**case, "columns": {name: column for name, column in case["columns"].items() if name != "a"}}


def script(case: Case) -> str:
    """Return a program that makes the calls."""
    return "\n".join(
        [
            "from tests.adversary import dynamic",
            f"case = {case!r}",
            "model = dynamic.build(case)",
            "columns, lengths = case['columns'], case['lengths']",
            "print(model.log_likelihood(columns, lengths=lengths), model.smooth(columns, lengths=lengths).marginals)",
            "dynamic.check(case)",
        ]
    )
