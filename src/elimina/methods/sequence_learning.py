"""Parameters of a dynamic network from sequences: expectation maximisation with tables shared by slices.

For hidden Markov models, one forward and one backward pass compute the expected counts of all slices. Other networks
are unrolled, once for each length of a sequence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.errors import ImpossibleEvidenceError, InputError
from elimina.io.cases import Cases
from elimina.methods.dynamic_model import DynamicModel
from elimina.methods.expectation_maximisation import Expectation, ExpectationMaximisation, RowMaximisation
from elimina.methods.family_counts import Families, WeightedRows, counts_of, weighted_rows
from elimina.methods.hidden_chain import MAX_STATES, HiddenChain, is_hidden_chain
from elimina.methods.observed_sequences import RunLimits, Sequences
from elimina.methods.parameter_learning import NO_ROWS, CheckedFitOptions, Fit, FitData, best_fit
from elimina.model.dynamic_network import DynamicNetwork, slice_name
from elimina.model.model import Model
from elimina.model.table import Table
from elimina.option_names import option
from elimina.planning.checked_options import CheckedOptions
from elimina.running.host import host_memory

Floats = NDArray[np.float64]


class SequenceQuestion(NamedTuple):
    """Data of a fit.

    Attributes:
        model: Model whose parameters are to be fitted.
        families: Families of the model's first two slices.
        sequences: Observations.
        prior: Pseudo-counts of each family.
    """

    model: DynamicModel
    families: Families
    sequences: Sequences
    prior: list[Floats]


def slice_families(model: DynamicNetwork) -> Families:
    """Return the families of the first two slices; a variable with equal distributions in both has one table."""
    size = len(model.variables)
    tied = [
        [slice_name(v.name, 0), slice_name(v.name, 1)]
        for n, v in enumerate(model.variables)
        if _is_shared(model.initial.factors[n], model.transition.factors[n], size)
    ]
    return Families.of(model.unroll(2), tied)


def _is_shared(first: Table, later: Table, size: int) -> bool:
    return [v + size for v in first.scope] == list(later.scope) and np.array_equal(first.dense(), later.dense())


def fit_sequences(
    question: SequenceQuestion, options: CheckedFitOptions, report: Callable[[Fit[DynamicModel]], None]
) -> Fit[DynamicModel]:
    """Fit the parameters of a dynamic network to sequences.

    Args:
        question: The data.
        options: Options from ``check_fit_options``.
        report: Function to call with the best fit so far, after each iteration that improves it.

    Raises:
        ImpossibleEvidenceError: A sequence has probability 0 under the starting tables of the model.
        InputError: The sequences have no slices.
        MemoryLimitError: The messages of a sequence do not fit.
    """
    families, sequences = question.families, question.sequences
    if not len(sequences.codes):
        raise InputError(NO_ROWS)
    observed = _observed_counts(families, sequences, len(question.model.variables))
    data = FitData(families, question.prior, observed, len(sequences.codes))
    work = SequenceMaximisation(question, options.planning)
    return best_fit(work, data, lambda tables: _with_tables(question, tables), options, report)


class SequenceMaximisation(ExpectationMaximisation):
    """Expectation maximisation on sequences.

    Args:
        question: Data of the fit.
        options: Planning options.

    Raises:
        InputError: The observations include likelihoods, and the network has to be unrolled.
        MemoryLimitError: The messages of an unrolled network do not fit.
        DeviceError: The device is missing or cannot be used.
    """

    def __init__(self, question: SequenceQuestion, options: CheckedOptions) -> None:
        super().__init__(question.families, question.prior)
        self._question, self._options = question, options
        model = question.model
        states = math.prod(model.variables[v].size for v in model.interface)
        self._is_chain = states <= MAX_STATES and not options.needs_gpu and is_hidden_chain(model)
        self._unrolled = [] if self._is_chain else self._unroll()

    def _unroll(self) -> list[tuple[int, RowMaximisation]]:
        """Return each length of sequences, and the expectation maximisation on the sequences of that length.

        Raises:
            InputError: The observations include log-likelihoods, which unrolled sequences do not support.
        """
        sequences, model = self._question.sequences, self._question.model
        if sequences.logs:
            name = model.variables[next(iter(sequences.logs))].name
            raise InputError(
                f"the log-likelihoods of {name!r} can be fitted where all variables depend on the interface of their "
                "slice alone, and in this model some do not: give states"
            )
        size = len(model.variables)
        lengths = np.diff(sequences.starts)
        unrolled = []
        for length in np.unique(lengths[lengths > 0]).tolist():
            begins = sequences.starts[:-1][lengths == length]
            rows = sequences.codes[begins[:, None] + np.arange(length)].reshape(len(begins), -1)
            columns = tuple(t * size + v for t in range(length) for v in sequences.columns)
            families = Families.of(model.unroll(length))
            weighted = weighted_rows(Cases(columns, rows), length * size)
            zeros = [np.zeros(shape) for shape in families.sizes]
            unrolled.append((length, RowMaximisation(families, weighted, zeros, self._options)))
        return unrolled

    @property
    def is_complete(self) -> bool:
        """True if no cell is missing; one iteration is then enough."""
        sequences = self._question.sequences
        is_whole = len(sequences.columns) == len(self._question.model.variables)
        return is_whole and bool((sequences.codes >= 0).all())

    def close(self) -> None:
        """Release the memory."""
        for _, work in self._unrolled:
            work.close()

    def expectation(self, tables: Sequence[Floats]) -> Expectation:
        """Return the expected counts for given tables.

        Raises:
            ImpossibleEvidenceError: A sequence has probability 0.
        """
        if not self._is_chain:
            return self._unrolled_expectation(tables)
        sequences = self._question.sequences
        limits = RunLimits(host_memory(self._options), self._options.host_threads)
        counts = HiddenChain(_with_tables(self._question, tables)).family_counts(sequences, limits)
        impossible = np.flatnonzero(np.isneginf(counts.log_totals))
        if len(impossible):
            number = int(np.searchsorted(sequences.starts, impossible[0], side="right")) - 1
            raise _impossible(f"sequence {number}")
        return Expectation([*counts.initial, *counts.later], float(counts.log_totals.sum()))

    def _unrolled_expectation(self, tables: Sequence[Floats]) -> Expectation:
        size = len(self._question.model.variables)
        totals, log_likelihood = [np.zeros(shape) for shape in self._families.sizes], 0.0
        for length, work in self._unrolled:
            try:
                expected = work.expectation([*tables[:size], *(list(tables[size:]) * (length - 1))])
            except ImpossibleEvidenceError:
                raise _impossible(f"a sequence of {length} slices") from None
            # The counts of a complete sequence do not depend on the tables, but its probability does.
            if expected.log_likelihood == -math.inf:
                raise _impossible(f"a sequence of {length} slices")
            log_likelihood += expected.log_likelihood
            for number, counts in enumerate(expected.counts):
                totals[number if number < size else size + number % size] += counts
        return Expectation(totals, log_likelihood)


def _impossible(which: str) -> ImpossibleEvidenceError:
    return ImpossibleEvidenceError(
        f"{which} has probability 0 under the starting tables, so it has no expected counts: remove it, or start with "
        f"other tables ({option('start', 'counts')})"
    )


def _observed_counts(families: Families, sequences: Sequences, size: int) -> list[Floats]:
    """Return the number of times that each combination of states of each family is observed in slices."""
    firsts = sequences.firsts
    later = np.flatnonzero(~firsts)
    columns = sequences.columns
    first_rows = weighted_rows(Cases(columns, sequences.codes[firsts]), 2 * size)
    pairs = np.hstack([sequences.codes[later - 1], sequences.codes[later]])
    pair_rows = weighted_rows(Cases((*columns, *(v + size for v in columns)), pairs), 2 * size)
    return [*_counted(first_rows, families)[:size], *_counted(pair_rows, families)[size:]]


def _counted(rows: WeightedRows, families: Families) -> list[Floats]:
    return counts_of(rows, families) if len(rows.values) else [np.zeros(shape) for shape in families.sizes]


def _with_tables(question: SequenceQuestion, tables: Sequence[Floats]) -> DynamicModel:
    """Return the model with new tables for its first slice and for later ones."""
    model, size = question.model, len(question.model.variables)
    factors = question.families.with_tables(tables).factors
    children = range(size)
    initial = Model(model.variables, factors[:size], sense="probability", children=children, check=False)
    later = [v + size for v in children]
    variables = model.transition.variables
    transition = Model(variables, factors[size:], sense="probability", children=later, check=False)
    return type(model)(initial, transition, model.name)
