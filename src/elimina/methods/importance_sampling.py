"""Importance sampling from weighted mini-buckets (Liu, Fisher and Ihler 2015): sums with an interval, and marginals.

If the weights of independent samples would vary too much, particle filters are run instead: while the variables are
drawn, samples of low weight are replaced by copies of others. The mean weight of a filter stays unbiased (Del Moral
2004) and within the mini-buckets' bound, and filters are independent of each other.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import add_weights
from elimina.errors import ImpossibleEvidenceError, MemoryLimitError, TimeLimitError
from elimina.methods.factor_lists import table_bytes
from elimina.methods.join_graph_proposals import join_graph_proposal
from elimina.methods.mixtures import MixtureSampler
from elimina.methods.proposals import Proposal, forward_proposal, message_proposal, mini_bucket_plan, mixture_of
from elimina.methods.sum_estimate import Limits, SampleFolds, SumEstimate
from elimina.methods.weight_statistics import WeightStatistics
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.options import replace
from elimina.planning.ordering import elimination_order
from elimina.problem.preparation import Problem

Floats = NDArray[np.float64]

_METHOD = "importance sampling"

_QUICK_SECONDS = 0.05
"""Estimated time of the first mini-buckets."""

_MAX_SEARCHED_VARIABLES = 10_000
"""Largest number of variables for which an elimination order is searched: for more, the search takes far longer than
the first mini-buckets."""

_GROWTH = 8.0
"""Estimated time of the next mini-buckets, relative to the previous ones."""

_MAX_PLAN_SECONDS = 30.0
"""Largest estimated seconds of mini-buckets."""

_PLAN_SHARE = 0.25
"""Largest share of the remaining seconds for mini-buckets."""

_BUCKETS_SHARE, _GRAPH_SHARE = 0.5, 0.25
"""Shares of the memory for messages of mini-buckets and of a join graph; the rest is for samples."""

_PILOT_SAMPLES = 256
"""Number of pilot samples, which decide about a proposal and the form of its samples. No estimate contains them."""

_MIN_EFFICIENCY = 0.25
"""Effective size of independent samples, as a share of their number, below which particle filters are used instead."""

_GOOD_EFFICIENCY, _MIN_MIXTURE_EFFICIENCY = 0.5, 0.1
"""Effective sizes of the samples, as shares of their number. From the first size on, mini-buckets are used without a
join graph. From the second size on, a mixture of proposals is used instead of particle filters."""

_DEVIATIONS = 2.0
"""Distance of the probable limits of a sum from the estimate, in standard errors."""

_BATCH_SECONDS = 0.1
"""Seconds of a batch of samples, between checks of the clock."""

_MIN_PARTICLES, _MAX_PARTICLES = 32, 1024
"""Least and largest number of samples of a particle filter."""

_MAX_BATCH = 1 << 14
"""Largest number of samples that are drawn at once."""

_FOLDS = 8
"""Number of folds into which the samples are divided. The folds measure the errors of other methods."""

_SUM_BYTES = 8 * (_FOLDS + 2)
"""Bytes of the sums for each state of each variable."""

_SAMPLE_BYTES = 5
"""Bytes of a sample of one variable, including the memory of a particle filter."""

_NEGLIGIBLE_ERROR = 1e-4
"""Estimated error at which sampling ends."""

_PRIOR_GROUPS = 2.0
"""Weight of the expected variance relative to the measured variance between groups: it counts as two groups."""

_MIN_DRAWN = 5.0
"""Least effective number of samples with a state at which their measured variance alone determines the error of the
state's probability. With fewer samples, the expected variance is a lower limit."""

_MAX_TAIL_SHAPE = 0.5
"""Largest shape of the tail of weights with which samples measure other estimates. With a larger shape, weights have no
finite variance, and all folds miss the same part of the sum."""

_SEED_MASK = 2**64 - 1
"""Bits of the seed; pilot samples use the inverted seed."""


class SampleForm(NamedTuple):
    """Form in which a proposal's samples are drawn.

    Attributes:
        proposal: The proposal.
        group: Number of samples of a particle filter; 1 if samples are independent.
        batch: Number of samples that are drawn at once.
        efficiency: Effective size of the pilot samples, as a share of their number.
    """

    proposal: Proposal
    group: int
    batch: int
    efficiency: float


def form_of(proposal: Proposal, memory: int, seed: int, threads: int) -> SampleForm | None:
    """Draw pilot samples, and return the form for further samples; None if too few samples fit the memory.

    Args:
        proposal: A proposal.
        memory: Memory limit of the samples, in bytes.
        seed: Random seed.
        threads: Number of threads.
    """
    rows = len(proposal.variables)
    max_samples = min(_MAX_BATCH, memory // (_SAMPLE_BYTES * max(1, rows)))
    if max_samples < _MIN_PARTICLES:
        return None
    logs = np.zeros(min(max_samples, _PILOT_SAMPLES))
    started = time.perf_counter()
    states = np.empty((rows, len(logs)), dtype=np.int32)
    proposal.sampler.draw(~seed & _SEED_MASK, 0, states, logs, np.zeros(0), threads)
    seconds = (time.perf_counter() - started) / len(logs)
    statistics = WeightStatistics()
    statistics.add(logs)
    efficiency = statistics.effective_size / len(logs)
    timely = int(min(max_samples, max(_MIN_PARTICLES, _BATCH_SECONDS / max(seconds, 1e-9))))
    # Samples of a mixture stay independent: a filter for one proposal might drop samples that another one needs.
    is_mixed = isinstance(proposal.sampler, MixtureSampler)
    if proposal.is_exact or is_mixed or efficiency >= _MIN_EFFICIENCY:
        return SampleForm(proposal, 1, timely, efficiency)
    group = 1 << (min(timely, _MAX_PARTICLES).bit_length() - 1)
    return SampleForm(proposal, group, group * max(1, timely // group), efficiency)


class Estimator:
    """Weighted sums of the samples of one proposal.

    Args:
        problem: Problem of the task ``pr``.
        form: Form of the samples.
        seed: Random seed.
        threads: Number of threads.

    Attributes:
        form: Form of the samples.
        weights: Statistics of the groups' mean weights.
        samples: Number of samples.
    """

    def __init__(self, problem: Problem, form: SampleForm, seed: int, threads: int) -> None:
        self.form, self._seed, self._threads = form, seed, threads
        self.weights, self.samples = WeightStatistics(), 0
        sizes = problem.model.size_array
        rows = sizes[list(form.proposal.variables)]
        self._starts = np.cumsum(rows) - rows
        # A column for each state s. Rows: for each fold, the weight of its samples with s; then two sums over groups,
        # of the squared weight of a group's samples with s, and of the product of this weight and the group's total
        # weight.
        self._sums = np.zeros((_FOLDS + 2, int(rows.sum())))
        # Sum over groups of the squared weight, divided by the effective number of independent samples.
        self._unevenness = 0.0
        # Sizes of the problem's variables, and the variable of each of their states.
        self._sizes = sizes[list(problem.free)]
        self._owners = np.repeat(np.arange(len(self._sizes)), self._sizes)
        row = {v: number for number, v in enumerate(form.proposal.variables)}
        firsts = self._starts[[row[v] for v in problem.free]]
        self._cells = np.arange(len(self._owners)) + (firsts - np.cumsum(self._sizes) + self._sizes)[self._owners]

    def draw(self) -> None:
        """Draw a batch of samples, and add it to the sums."""
        group, count = self.form.group, self.form.batch
        logs, sizes = np.zeros(count), np.zeros(count // group if group > 1 else 0)
        states = np.empty((len(self._starts), count), dtype=np.int32)
        self.form.proposal.sampler.draw(self._seed, self.samples, states, logs, sizes, self._threads)
        logs += self.form.proposal.log_constant
        first = self.samples // group
        self.samples += count
        means = logs if group == 1 else np.logaddexp.reduce(logs.reshape(-1, group), axis=1) - math.log(group)
        _, factor = self.weights.add(means)
        if self.weights.log_peak == -math.inf:
            return
        self._sums[:_FOLDS] *= factor
        self._sums[_FOLDS:] *= factor**2
        shares = np.exp(logs - self.weights.log_peak) / group
        sums, squares, products = self._sums[:_FOLDS].reshape(-1), *self._sums[_FOLDS:]
        add_weights(states, shares, group, first, self._starts, sums, squares, products)
        totals = shares if group == 1 else shares.reshape(-1, group).sum(axis=1)
        self._unevenness *= factor**2
        self._unevenness += float((totals**2 / np.maximum(sizes if group > 1 else 1.0, 1.0)).sum())

    @property
    def least_sum(self) -> float:
        """Logarithm of a probable lower limit of the sum; minus infinity if the error is unknown."""
        error = self.weights.log_error
        return -math.inf if error == math.inf else self.weights.log_mean - _DEVIATIONS * error

    @property
    def greatest_sum(self) -> float:
        """Logarithm of a probable upper limit of the sum, if no part is missed; infinity if the error is unknown."""
        error = self.weights.log_error
        return math.inf if error == math.inf else self.weights.log_mean + _DEVIATIONS * error

    @property
    def effective_size(self) -> float:
        """Number of independent samples of equal weight with the same information.

        Samples of a particle filter share the states drawn before its last resampling, so the number holds for the
        variables drawn first; for later ones, it is larger.
        """
        total = math.exp(self.weights.log_mean - self.weights.log_peak) * self.weights.count
        return total**2 / self._unevenness if self._unevenness else 0.0

    def marginals(self) -> tuple[Floats, Floats]:
        """Return the marginals of the free variables, and their expected Hellinger distances from the exact ones."""
        owners, states = self._owners, self._sizes[self._owners]
        sums, squares, products = self._fold_sums().sum(axis=0), *self._sums[_FOLDS:, self._cells]
        totals = np.bincount(owners, weights=sums)[owners]
        shares = sums / totals
        # The weight of a group is the sum, over a variable's states, of the weights of the samples with the state.
        group_products = np.bincount(owners, weights=products)[owners]
        between = np.maximum(0.0, squares - 2 * shares * products + shares**2 * group_products) / totals**2
        # The frequency of rare states is shrunk towards a uniform distribution: few samples underestimate their
        # variance.
        size, groups = self.effective_size, self.weights.effective_size
        likely = (size * shares + 1 / states) / (size + 1)
        expected = likely * (1 - likely) / (size + 1)
        variances = (groups * between + _PRIOR_GROUPS * expected) / (groups + _PRIOR_GROUPS)
        variances = np.where(size * shares < _MIN_DRAWN, np.maximum(variances, expected), variances)
        squared_distances = np.bincount(owners, weights=variances / likely) / 8
        is_rare = np.minimum.reduceat(size * shares, np.cumsum(self._sizes) - self._sizes) < _MIN_DRAWN
        least = np.where(is_rare, _expected_squares(shares, self._sizes, size), 0.0)
        return shares, np.minimum(np.sqrt(np.maximum(squared_distances, least)), 1.0)

    def _fold_sums(self) -> Floats:
        """Return the weights of each fold's samples with the states of the problem's variables."""
        return self._sums[:_FOLDS, self._cells]

    def folds(self) -> SampleFolds:
        """Return the sums of the samples in each fold, as shares of the sum of all weights.

        If weights are uneven and their tail is heavy, there is a single fold, which cannot measure other estimates.
        """
        sums = self._fold_sums()
        is_uneven = self.weights.effective_size < _MIN_EFFICIENCY * self.weights.count
        if is_uneven and self.weights.tail_shape > _MAX_TAIL_SHAPE:
            sums = sums.sum(axis=0, keepdims=True)
        totals = sums[:, : self._sizes[0]].sum(axis=1)
        return SampleFolds(totals / totals.sum(), sums / totals.sum())

    def estimate(self, upper: float) -> SumEstimate:
        """Return the estimate of all samples.

        Args:
            upper: Upper bound on the logarithm of the sum.
        """
        if self.weights.log_peak == -math.inf:
            return SumEstimate(_METHOD, upper=upper)
        shares, errors = self.marginals()
        interval = self.weights.interval(self.form.proposal.log_bound)
        return SumEstimate(
            _METHOD,
            self.weights.log_mean,
            self.weights.log_error,
            shares,
            errors,
            self.folds(),
            interval=interval._replace(high=min(interval.high, upper)),
            upper=upper,
            figures={"samples": self.samples, "effective_size": round(self.effective_size, 1)},
        )


def _expected_squares(shares: Floats, sizes: NDArray[np.int64], size: float) -> Floats:
    """Return the expected squared Hellinger distance of each marginal from one drawn from a Dirichlet distribution.

    The Dirichlet distribution is the posterior after the samples, and its prior counts as one sample. An effective size
    of 1 means that one sample has all of the weight. A further sample could have a larger weight and replace it, so one
    sample is not counted.

    Args:
        shares: Marginals of the samples, those of one variable after another.
        sizes: Number of states of each variable.
        size: Effective number of samples.
    """
    counts = max(0.0, size - 1) * shares + np.repeat(1 / sizes, sizes)
    roots = _root_moments(counts) / float(_root_moments(np.array(max(1.0, size))))
    return 1 - np.minimum(np.add.reduceat(np.sqrt(shares) * roots, np.cumsum(sizes) - sizes), 1.0)


def _root_moments(counts: Floats) -> Floats:
    """Return the mean of the root of a gamma variable of each shape, by Stirling's series to within 1 %."""
    return counts / np.sqrt(counts + 0.25 + 1 / (32 * counts + 16))


def importance_sampling(problem: Problem, options: CheckedOptions, limits: Limits) -> Iterator[SumEstimate]:
    """Yield improving estimates: first from proposals with larger and larger tables, then from more samples.

    Args:
        problem: Problem of the task ``pr`` or ``mar``.
        options: Options of the call.
        limits: Limits of time and memory, and the seed.
    """
    summed = problem._replace(task="pr", wanted=())
    if not summed.free:
        return
    rungs = _rungs(summed, options, limits)
    race = _Race(summed, limits, options.host_threads)
    best: SumEstimate | None = None
    least_sum = -math.inf
    turn, is_settled, is_new = _QUICK_SECONDS, False, False
    while True:
        if not is_settled:
            started = time.monotonic()
            forms: Sequence[SampleForm] = ()
            try:
                forms = next(rungs)
            except StopIteration:
                is_settled = True
            except ImpossibleEvidenceError:
                yield SumEstimate(_METHOD, -math.inf, 0.0, upper=-math.inf)
                return
            if forms:
                turn, is_new = time.monotonic() - started, True
                race.begin(forms)
        if not race.estimators:
            if is_settled:
                return
            yield SumEstimate(_METHOD)
            continue
        race.draw(max(turn, _QUICK_SECONDS))
        turn *= 2
        estimate = race.best.estimate(race.upper)
        # A later estimate of the same proposal replaces an earlier one even if its error is larger: the smaller error
        # was too optimistic.
        if best is None or not is_new or race.best.least_sum >= least_sum:
            best, least_sum, is_new = estimate, race.best.least_sum, False
        yield best._replace(upper=race.upper)
        if is_settled and max(best.error, best.log_z_error) < _NEGLIGIBLE_ERROR:
            return


class _Race:
    """Estimators that draw samples in turn; an estimator is dropped if its sum is probably below the best estimator's.

    Args:
        problem: Problem of the task ``pr``.
        limits: Limits of time and memory, and the seed.
        threads: Number of threads.

    Attributes:
        estimators: Estimators in the race.
        upper: Upper bound on the logarithm of the sum.
    """

    def __init__(self, problem: Problem, limits: Limits, threads: int) -> None:
        self._problem, self._limits, self._threads = problem, limits, threads
        self.estimators: list[Estimator] = []
        self.upper = math.inf

    def begin(self, forms: Sequence[SampleForm]) -> None:
        """Continue with these proposals; those that already have an estimator keep its samples."""
        self.upper = min(self.upper, *(form.proposal.log_bound for form in forms))
        running = {id(estimator.form): estimator for estimator in self.estimators}
        self.estimators = [
            running.get(id(form)) or Estimator(self._problem, form, self._limits.seed, self._threads) for form in forms
        ]

    @property
    def best(self) -> Estimator:
        """The estimator with the largest probable lower limit.

        All estimators are unbiased, so an estimator with a lower sum misses a part of the sum.
        """
        return max(self.estimators, key=lambda estimator: estimator.least_sum)

    def draw(self, seconds: float) -> None:
        """Draw samples for equal shares of the time; drop estimators if their sums are probably below the best."""
        for estimator in self.estimators:
            end = time.monotonic() + seconds / len(self.estimators)
            estimator.draw()
            while time.monotonic() < end and not self._limits.is_over:
                estimator.draw()
        least = self.best.least_sum
        self.estimators = [estimator for estimator in self.estimators if estimator.greatest_sum >= least]


def _rungs(problem: Problem, options: CheckedOptions, limits: Limits) -> Iterator[Sequence[SampleForm]]:
    """Yield the forms of proposals with larger and larger tables; an empty sequence while the next one needs more time.

    Raises:
        ImpossibleEvidenceError: The sum is 0.
    """
    memory = limits.memory_bytes
    is_quick = options.order == "auto"
    if is_quick and limits.order is not None and len(problem.free) > _MAX_SEARCHED_VARIABLES:
        order = tuple([problem.free[position] for position in limits.order])
    else:
        order = elimination_order(problem, replace(options, order_seconds=_QUICK_SECONDS) if is_quick else options)

    sum_bytes = _SUM_BYTES * sum(problem.model.sizes[v] for v in problem.free)
    sample_memory = int((1 - _BUCKETS_SHARE - _GRAPH_SHARE) * memory) - sum_bytes

    def form(proposal: Proposal | None) -> SampleForm | None:
        return proposal and form_of(proposal, sample_memory, limits.seed, options.host_threads)

    # If the join graph's share of the memory cannot even hold the factors, mini-buckets use it.
    has_graph = table_bytes(problem) <= _GRAPH_SHARE * memory
    graph_memory = int(_GRAPH_SHARE * memory) if has_graph else 0
    bucket_memory = int((_BUCKETS_SHARE + _GRAPH_SHARE) * memory) - graph_memory
    forward = form(forward_proposal(problem, int(_GRAPH_SHARE * memory)))
    seconds, largest_ibound = _QUICK_SECONDS, 0.0
    while seconds < _MAX_PLAN_SECONDS:
        if seconds > max(_QUICK_SECONDS, _PLAN_SHARE * limits.seconds):
            yield ()
            continue
        try:
            plan = mini_bucket_plan(problem, order, options, bucket_memory, seconds)
        except MemoryLimitError:
            break
        ibound = math.inf if plan.minibuckets is None else plan.minibuckets.ibound
        if ibound > largest_ibound:
            started = time.monotonic()
            try:
                buckets = message_proposal(
                    problem, plan, options, None if limits.deadline == math.inf else limits.deadline
                )
            except TimeLimitError:
                yield ()
                continue
            by_buckets = form(buckets)
            forms = [
                candidate for candidate in (by_buckets, None if largest_ibound else forward) if candidate is not None
            ]
            largest_ibound = ibound
            yield forms
            if by_buckets is not None and not buckets.is_exact and by_buckets.efficiency < _GOOD_EFFICIENCY:
                graph_seconds = max(seconds, time.monotonic() - started)
                graph = join_graph_proposal(problem, order, graph_memory, graph_seconds)
                mixture = form(graph and mixture_of([buckets, graph]))
                is_mixed = mixture is not None and mixture.efficiency >= _MIN_MIXTURE_EFFICIENCY
                others = [mixture] if is_mixed else [*forms, form(graph)]
                yield [candidate for candidate in others if candidate is not None]
        elif plan.seconds < seconds / _GROWTH**2:
            break
        if ibound == math.inf:
            return
        seconds *= _GROWTH
    if largest_ibound == 0 and forward is not None:
        yield [forward]
