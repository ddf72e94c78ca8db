"""Parameters of a Bayesian network from data: by counting, or by expectation maximisation if cells are missing."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from elimina import arguments
from elimina.display import Displayed, Row
from elimina.errors import InputError
from elimina.io.cases import Cases, as_cases, read_cases, states_in_frame
from elimina.io.sources import ModelLike, as_model
from elimina.methods.expectation_maximisation import ExpectationMaximisation, Iterate, RowMaximisation, is_converged
from elimina.methods.family_counts import Families, counts_of, weighted_rows
from elimina.model.dynamic_network import DynamicNetwork
from elimina.model.model import Model
from elimina.model.parents import listed_parents, network_of_parents
from elimina.model.states import State
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.option_checks import check_options, options_of
from elimina.planning.options import DEFAULT, Options

logger = logging.getLogger("elimina")

Floats = NDArray[np.float64]

Fitted = TypeVar("Fitted", bound=Model | DynamicNetwork)

Start = Literal["counts", "model"]

FitEnd = Literal["converged", "max-iterations", "time-limit", "interrupt"]

NO_ROWS = "the data have no rows: fit needs at least one"

START_COUNT = 1.0
"""Count that is added to each cell of a starting table, so that no cell is 0."""


class Fit(Displayed, Generic[Fitted]):
    """Parameters fitted to data.

    Attributes:
        model: Network, or dynamic model, with the fitted distributions.
        log_likelihoods: Natural logarithm of the probability of all rows under the starting tables, and after each
            iteration. Without a prior, the sequence never decreases.
        log_posteriors: ``log_likelihoods`` plus each pseudo-count times the logarithm of its probability. The sequence
            never decreases.
        iterations: Number of iterations; 0 if no cell is missing.
        ended_by: ``converged``, ``max-iterations``, ``time-limit`` or ``interrupt``.
        rows: Number of rows of the data, summed over all sequences.
        start: Index of the start with the best fit: 0 for the first start; restarts follow.

    Examples:
        >>> import elimina
        >>> fit = elimina.fit({"rain": []}, {"rain": ["no", "no", "yes", "no"]}, prior=0)
        >>> fit.model.factors[0].values.tolist(), fit.converged
        ([0.75, 0.25], True)
    """

    def __init__(
        self,
        model: Fitted,
        log_likelihoods: Sequence[float],
        log_posteriors: Sequence[float],
        *,
        ended_by: FitEnd,
        rows: int,
        start: int,
    ) -> None:
        self.model = model
        self.log_likelihoods, self.log_posteriors = tuple(log_likelihoods), tuple(log_posteriors)
        self.ended_by: FitEnd = ended_by
        self.rows, self.start = rows, start

    @property
    def iterations(self) -> int:
        """Number of iterations."""
        return len(self.log_likelihoods) - 1

    @property
    def converged(self) -> bool:
        """True if the last iteration improved the fit by at most the tolerance, or no cell is missing."""
        return self.ended_by == "converged"

    @property
    def log_likelihood(self) -> float:
        """Natural logarithm of the probability of all rows under the fitted model."""
        return self.log_likelihoods[-1]

    def _figures(self) -> list[Row]:
        mean = f"{self.log_likelihood / self.rows:.4g} a row"
        start = "" if not self.start else f", from restart {self.start}"
        return [
            ("variables", f"{len(self.model.variables):,}"),
            ("rows", f"{self.rows:,}"),
            ("log-likelihood", f"{self.log_likelihood:.6g} ({mean})"),
            ("iterations", f"{self.iterations:,}{start}"),
            ("ended by", self.ended_by),
        ]


@arguments.with_checked_methods
@dataclass(frozen=True)
class FitOptions:
    """Settings of ``elimina.fit`` besides its arguments.

    Attributes:
        start: First starting tables of expectation maximisation. ``counts``: estimated from the rows that observe a
            whole family, and random where no row does. ``model``: the tables of the structure.
        restarts: Number of further, random starts; the best fit is returned.
        seed: Random seed of the starts.
        tolerance: Increase of the log-posterior per row of the data below which iterations end.
        max_iterations: Limit on the iterations of each start.
        ignore_extra: Ignore columns that are not variables of the model.
        progress: Function to call with the best fit after each iteration.
        device: Device, as in ``elimina.solve``.
        memory: Memory limit, as in ``elimina.solve``.
        planning: Settings of the plan for experts: the order and its search, and ``threads``.

    Examples:
        >>> import elimina
        >>> data = {"rain": ["no", "no", "yes", None]}
        >>> options = elimina.FitOptions(restarts=2, seed=3)
        >>> fit = elimina.fit({"rain": []}, data, prior=0, options=options)
        >>> fit.model.factors[0].values.round(2).tolist()
        [0.67, 0.33]
    """

    start: Start = "counts"
    restarts: int = 0
    seed: int = 0
    tolerance: float = 1e-5
    max_iterations: int = 100
    ignore_extra: bool = False
    progress: Callable[[Fit[Any]], None] | None = None
    device: str | None = None
    memory: int | str | None = None
    planning: Options = DEFAULT


class CheckedFitOptions(FitOptions):
    """Options with plain values, from ``check_fit_options``."""

    planning: CheckedOptions


def check_fit_options(options: FitOptions) -> CheckedFitOptions:
    """Check the options, and return them with plain values.

    Raises:
        TypeError: An option has the wrong type.
        InputError: An option is out of range, or an option of the plan does not apply to a fit.
    """
    if not isinstance(options, FitOptions):
        raise arguments.wrong_type("options", options, "elimina.FitOptions")
    if not isinstance(options.planning, Options):
        raise arguments.wrong_type("planning", options.planning, "elimina.Options")
    tolerance = arguments.real("tolerance", options.tolerance)
    if not 0 <= tolerance < math.inf:
        raise InputError(f"tolerance is {tolerance}; it must be finite and not negative")
    arguments.choice("start", options.start, get_args(Start))
    arguments.function("progress", options.progress)
    plain_values = {
        "restarts": arguments.integer("restarts", options.restarts, 0),
        "seed": arguments.integer("seed", options.seed, 0),
        "tolerance": tolerance,
        "max_iterations": arguments.integer("max_iterations", options.max_iterations, 0),
        "ignore_extra": arguments.flag("ignore_extra", options.ignore_extra),
        "planning": check_options(options_of(options.planning, options.device, options.memory), engine="elimina.fit"),
    }
    return CheckedFitOptions(**{**vars(options), **plain_values})


class FitQuestion(NamedTuple):
    """Data of a fit.

    Attributes:
        families: Families of the network.
        cases: Rows of the data.
        prior: Pseudo-counts of each family.
    """

    families: Families
    cases: Cases
    prior: list[Floats]


def fitted_network(
    structure: ModelLike | Mapping[str, Sequence[str]],
    frame: Any,
    states: Mapping[str, int | Sequence[State]] | None,
) -> Model:
    """Return the network whose parameters are to be fitted: its variables, states and parents.

    Args:
        structure: A network, or variable -> its parents.
        frame: Data; they define the states that ``states`` lacks.
        states: Variable -> its states or their number; only if the structure is a mapping.

    Raises:
        InputError: States are unknown, or are given for a network that defines them.
    """
    if not isinstance(structure, Mapping):
        others = "a DynamicModel, a mapping from each variable to its parents, "
        model = as_model(structure, "structure", others)
        if states is not None:
            raise InputError(
                "states are for parents by name, and the network of this structure has states: omit states"
            )
        return model
    if states is not None:
        arguments.check_mapping("states", states, "a mapping from variables to states, or to their numbers")
    names = [name for name in listed_parents(structure) if name not in (states or {})]
    if names and isinstance(frame, str | os.PathLike):
        raise InputError(f"the states of {names[0]!r} are unknown: give them, states={{{names[0]!r}: [...]}}")
    inferred = states_in_frame(frame, names) if names else {}
    return network_of_parents(structure, {**inferred, **(states or {})})


def rows_of(frame: Any, model: Model, *, ignore_extra: bool) -> Cases:
    """Return the rows of a frame, or of a file.

    Raises:
        InputError: The frame has no rows, or ``cases_from_frame`` rejects it.
    """
    if isinstance(frame, str | os.PathLike):
        cases = read_cases(frame, model, ignore_extra=ignore_extra)
    else:
        cases = as_cases(frame, model, ignore_extra=ignore_extra)
    if not len(cases.values):
        raise InputError(NO_ROWS)
    return cases


def fit_parameters(
    question: FitQuestion, options: CheckedFitOptions, report: Callable[[Fit[Model]], None]
) -> Fit[Model]:
    """Fit parameters to data.

    Args:
        question: The data.
        options: Options from ``check_fit_options``.
        report: Function to call with the best fit so far, after each iteration that improves it.

    Raises:
        ImpossibleEvidenceError: A row has probability 0 under the starting tables of the model.
        MemoryLimitError: The messages for a small batch of rows do not fit.
    """
    families = question.families
    rows = weighted_rows(question.cases, len(families.model.variables))
    work = RowMaximisation(families, rows, question.prior, options.planning)
    data = FitData(families, question.prior, counts_of(rows, families), len(question.cases.values))
    return best_fit(work, data, families.with_tables, options, report)


class FitData(NamedTuple):
    """Counts of the data of a fit, for starting tables and for the result.

    Attributes:
        families: Families of the network.
        prior: Pseudo-counts of each family.
        observed: Counts from the rows that observe a whole family.
        rows: Number of rows.
    """

    families: Families
    prior: list[Floats]
    observed: list[Floats]
    rows: int


def best_fit(
    work: ExpectationMaximisation,
    data: FitData,
    model_of: Callable[[Sequence[Floats]], Fitted],
    options: CheckedFitOptions,
    report: Callable[[Fit[Fitted]], None],
) -> Fit[Fitted]:
    """Return the best fit of all starts, and release the work's memory.

    Args:
        work: Expectation maximisation on the data.
        data: The data.
        model_of: Function that returns the model with the tables it is called with.
        options: See ``fit_parameters``.
        report: See ``fit_parameters``.
    """
    families = data.families

    def fit_of(start: int, iterates: Sequence[Iterate], ended_by: FitEnd) -> Fit[Fitted]:
        logs = [iterate.log_likelihood for iterate in iterates], [iterate.log_posterior for iterate in iterates]
        return Fit(model_of(iterates[-1].tables), *logs, ended_by=ended_by, rows=data.rows, start=start)

    try:
        if work.is_complete:
            tables = families.tables_of(
                [counts + pseudo_counts for counts, pseudo_counts in zip(data.observed, data.prior, strict=True)]
            )
            return fit_of(0, [next(work.iterates(tables))], "converged")
        best: Fit[Fitted] | None = None
        for number, start in enumerate(_starts(data, options)):
            iterates: list[Iterate] = []
            for iterate in work.iterates(start):
                # Only the logarithms of earlier iterations are needed, so their tables are dropped.
                iterates = [earlier._replace(tables=[]) for earlier in iterates] + [iterate]
                logger.info(
                    "start %d, iteration %d: log-likelihood %.10g", number, len(iterates) - 1, iterate.log_likelihood
                )
                is_close = is_converged([past.log_posterior for past in iterates], data.rows, options.tolerance)
                is_last = is_close or len(iterates) > options.max_iterations
                fit = fit_of(number, iterates, "converged" if is_close else "max-iterations")
                if best is None or best.start == number or fit.log_posteriors[-1] > best.log_posteriors[-1]:
                    best = fit
                    report(best)
                if is_last:
                    break
        assert best is not None
        return best
    finally:
        work.close()


def _starts(data: FitData, options: CheckedFitOptions) -> Iterator[list[Floats]]:
    """Yield starting tables: the first ones, then those of the restarts."""
    families = data.families
    random = np.random.default_rng(options.seed)
    observed_leaders = _observed_leaders(families, data.observed)

    def drawn() -> list[Floats]:
        return [random.exponential(size=shape) for shape in families.sizes]

    if options.start == "model":
        yield families.tables_of([factor.dense() for factor in families.model.factors])
    else:
        # Tables without complete rows start with random numbers: if all states of a latent variable started with equal
        # numbers, these would stay equal.
        yield families.tables_of(
            [
                counts + START_COUNT + pseudo_counts if leader in observed_leaders else weights
                for counts, pseudo_counts, weights, leader in zip(
                    data.observed, data.prior, drawn(), families.leaders, strict=True
                )
            ]
        )
    for _ in range(options.restarts):
        yield families.tables_of(drawn())


def _observed_leaders(families: Families, observed: Iterable[Floats]) -> set[int]:
    pairs = zip(families.leaders, observed, strict=True)
    return {leader for leader, counts in pairs if counts.any()}
