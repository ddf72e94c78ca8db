"""The call that fits the parameters of a network to data: ``fit``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from elimina import arguments
from elimina.errors import InputError
from elimina.io.sources import ModelLike
from elimina.methods.dynamic_model import DynamicModel
from elimina.methods.family_counts import Families, prior_counts
from elimina.methods.parameter_learning import (
    Fit,
    FitEnd,
    FitOptions,
    FitQuestion,
    check_fit_options,
    fit_parameters,
    fitted_network,
    rows_of,
)
from elimina.methods.sequence_learning import SequenceQuestion, fit_sequences, slice_families
from elimina.model.states import State
from elimina.strategies.call import Call
from elimina.system import memory_errors_in_words

DEFAULT_OPTIONS = FitOptions()


@memory_errors_in_words("while it fitted parameters")
@arguments.with_checked_keywords(FitOptions, "elimina.FitOptions")
def fit(
    structure: ModelLike | Mapping[str, Sequence[str]] | DynamicModel,
    frame: Any,
    *,
    states: Mapping[str, int | Sequence[State]] | None = None,
    prior: float | Mapping[str, Any] = 1.0,
    tied: Iterable[Sequence[str | int]] = (),
    lengths: Sequence[int] | None = None,
    time_limit: float | None = None,
    options: FitOptions = DEFAULT_OPTIONS,
) -> Fit[Any]:
    """Fit the conditional distributions of a Bayesian network to data.

    Complete data are counted. If cells are missing, expectation maximisation (EM) finds a local optimum: rows are
    propagated in batches, equal rows once. Cells are taken to be missing at random. A variable without a column is
    latent: all of its cells are missing.

    The distributions of a ``DynamicModel`` are fitted to sequences: each family is counted over all slices (for a
    hidden Markov model, this is the Baum-Welch algorithm). If a variable has the same distribution in the first slice
    and in later ones, one distribution is fitted for both.

    Args:
        structure: A Bayesian network (a model, a network of pgmpy or pyAgrum, or the path of a file), a mapping from
            each variable's name to the names of its parents, or a ``DynamicModel``.
        frame: The data, a row for each case: what ``JunctionTree.batch`` takes, or the path of a .csv or .parquet file.
            For a ``DynamicModel``, observations as ``DynamicModel.filter`` takes them, a row for each slice.
        states: Variable -> its states, or their number, if the structure is a mapping. By default, the sorted values of
            its column, or the categories of a categorical column.
        prior: Pseudo-count added to each cell's count (Dirichlet prior), 0 for maximum likelihood; or a mapping from
            variables to pseudo-counts (a number, or an array of the table's shape; 0 for other variables). If all
            counts of a distribution are 0, it is uniform or, in EM, that of the previous iteration. Variables of a
            ``DynamicModel`` are named like ``rain[0]`` in the first slice, and like ``rain[1]`` in later ones.
        tied: Groups of variables whose families share one table. Their tables need the same shape.
        lengths: Numbers of slices of several sequences, whose rows follow each other.
        time_limit: Time limit of the whole call, in seconds. At the limit, or after Ctrl-C, the best fit so far is the
            answer.
        options: Settings of expectation maximisation, ``progress``, the device and the memory limit.

    Returns:
        The network, or ``DynamicModel``, with the fitted distributions, and the log-likelihood after each iteration.

    Raises:
        TypeError: An argument has the wrong type.
        InputError: The structure is not a Bayesian network, a column is not a variable, a cell is not a state, there is
            no row, or an argument is out of range.
        ImpossibleEvidenceError: A row, or a sequence, has probability 0 under the starting tables of the structure.
        MemoryLimitError: The messages of a few rows do not fit.
        DeviceError: The device is missing or cannot be used.
        TimeLimitError: The time limit passed before the first iteration.
        KeyboardInterrupt: The user interrupted before the first iteration.

    Examples:
        >>> import elimina
        >>> data = {"rain": ["no", "no", "yes", "yes"], "wet": ["no", "no", "yes", None]}
        >>> fit = elimina.fit({"rain": [], "wet": ["rain"]}, data, prior=0)
        >>> fit.model.factors[1].values.round(3).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        >>> fit.converged, round(fit.log_likelihood, 4)
        (True, -2.7726)
    """
    call = Call("fit", arguments.seconds("time_limit", time_limit))
    checked = check_fit_options(options)
    fits: list[Fit[Any]] = []

    def report(best: Fit[Any]) -> None:
        fits[:] = [best]
        if checked.progress is not None:
            call.notify(checked.progress, best)

    def work() -> Fit[Any]:
        if isinstance(structure, DynamicModel):
            _check_left_out("states", states is None, "an elimina.DynamicModel has states")
            _check_left_out("tied", not tied, "a variable that has one distribution in all slices keeps one")
            sequences = structure.sequences_of(frame, lengths, ignore_extra=checked.ignore_extra)
            slices = slice_families(structure)
            asked = SequenceQuestion(structure, slices, sequences, prior_counts(prior, slices))
            return fit_sequences(asked, checked, report)
        _check_left_out("lengths", lengths is None, "they are about the sequences of an elimina.DynamicModel")
        model = fitted_network(structure, frame, states)
        families = Families.of(model, tied)
        cases = rows_of(frame, model, ignore_extra=checked.ignore_extra)
        return fit_parameters(FitQuestion(families, cases, prior_counts(prior, families)), checked, report)

    return call.result_or_early(work, lambda cause: _with_end(fits[0], cause) if fits else None)


def _with_end(fit: Fit[Any], cause: FitEnd) -> Fit[Any]:
    """Return a copy of a fit that names another cause of its end."""
    logs = fit.log_likelihoods, fit.log_posteriors
    return Fit(fit.model, *logs, ended_by=cause, rows=fit.rows, start=fit.start)


def _check_left_out(argument: str, is_left_out: bool, reason: str) -> None:
    if not is_left_out:
        raise InputError(f"{argument} does not go with this structure: {reason}; leave it out")
