"""Blocked Gibbs sampling: a block is drawn given all other variables, by an elimination with small tables.

Jensen, Kong and Kjaerulff 1995, "Blocking Gibbs sampling in very large probabilistic expert systems"; Bidyuk and
Dechter 2007, "Cutset sampling for Bayesian networks". Marginals are means of each block's marginals given the other
variables. If chains stay in different modes, each chain gets replicas that sample flatter distributions (Geyer 1991,
"Markov chain Monte Carlo maximum likelihood"). Neighbouring replicas exchange the states of the variables outside a
block, with a probability that depends on the sums over the block. Replicas also give an estimate of the sum.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import BlockGibbs, Stopped
from elimina.errors import MemoryLimitError
from elimina.methods.factor_lists import FactorList, table_bytes
from elimina.methods.sum_estimate import Limits, SampleFolds, SumEstimate
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.preparation import Problem

METHOD = "block Gibbs sampling"

CHAINS, TEMPERED_CHAINS = 8, 4
"""Number of chains, whose differences give the error, and number of chains with replicas."""

CHAIN_BYTES = 1 << 11
"""Bytes for each variable: its positions in blocks, and its states in all chains."""

MAX_CELLS, MAX_SWEEP_CELLS = 1 << 13, 1 << 22
"""Largest number of cells of one table and of all tables in the eliminations of blocks; larger tables take more time
than they save."""

CELL_BYTES = 8

MOMENTS = 4
"""Number of sums over sweeps for each chain and power: see the core's ``BlockGibbs.run``."""

MAX_ROUNDS = (32, 16, 8)
"""Possible limits on the number of stored rounds of sweeps; the memory decides which one applies. Pairs of rounds are
merged when the limit is reached."""

BURN_IN_SHARE = 0.125
"""Share of the rounds that are discarded at the start."""

ROUND_SECONDS = 0.05
"""Seconds of a round."""

ROUNDS_SHARE = 0.5
"""Largest share of the memory for rounds; the rest is for blocks. The smallest of ``MAX_ROUNDS`` may exceed this
share."""

TRIAL_ROUNDS, STUCK_RATIO, MIN_STUCK_ERROR = 6, 1.4, 0.003
"""Number of rounds after which stuck chains get replicas, and two limits. Chains are stuck if they exceed both limits.
Squared errors are estimated from the differences between chains, and from those between half chains. The first limit is
on the ratio of these two estimates: it is 1 for independent halves, and 2 for chains that do not move. The second limit
is on the error estimated from chains."""

PILOT_POWERS = (*np.geomspace(1.0, 0.05, 8).tolist(), 0.0)
"""Powers in a pilot run; the powers of the replicas are interpolated between them."""

PILOT_SWEEPS = 10
"""Number of counted sweeps in a pilot run, which follow as many uncounted ones."""

POWER_STEP, MAX_POWERS = 1.0, 48
"""Distance between neighbouring powers, and largest number of powers. The distance of two powers is the standard
deviation of the logarithm of a ratio: a block's sum at one power, divided by its sum at the other."""


class _Round(NamedTuple):
    """Sums over sweeps.

    Attributes:
        sums: Marginals of each chain and state.
        draws: Number of draws of each chain and variable.
        moments: Moments of each chain and power.
    """

    sums: NDArray[np.float64]
    draws: NDArray[np.float64]
    moments: NDArray[np.float64]


def _total(rounds: Sequence[_Round]) -> _Round:
    """Return one round with the sums of several rounds, at least one."""
    return _Round(*(sum(sums[1:], sums[0]) for sums in zip(*rounds, strict=True)))


class _Chains:
    """Chains, and the sums of their marginals in rounds. All stored rounds have the same number of sweeps.

    Args:
        factors: Positive factors.
        sizes: Number of states of each variable.
        powers: Powers of the replicas; the first one is 1.
        count: Number of chains.
        limits: Limits of time and memory, and the seed.
        max_rounds: Number of stored rounds at which pairs of rounds are merged.

    Raises:
        MemoryLimitError: No blocks fit the memory.
        Stopped: The time ended before the chains began.
    """

    def __init__(
        self,
        factors: FactorList,
        sizes: NDArray[np.int64],
        powers: Sequence[float],
        count: int,
        limits: Limits,
        max_rounds: int,
    ) -> None:
        self._factors, self._sizes, self.powers, self._count = factors, sizes, np.array(powers), count
        self._sampler = self._sampler_within(limits, max_rounds)
        self._max_rounds, self._sweeps, self._merged = max_rounds, 1, 1
        self._current, self._remaining = self._empty(), self._sweeps
        self.rounds: list[_Round] = []

    def _sampler_within(self, limits: Limits, max_rounds: int) -> BlockGibbs:
        """Return the sampler with the largest blocks that fit the memory.

        Raises:
            MemoryLimitError: No blocks fit the memory.
        """
        starts, members = self._factors.scopes
        reserved_bytes = (max_rounds + 1) * round_bytes(self._count, self._sizes)
        reserved_bytes += len(self.powers) * self._factors.values.nbytes + CHAIN_BYTES * len(self._sizes)
        max_table_cells = (limits.memory_bytes - reserved_bytes) / CELL_BYTES
        least = float(self._sizes.max())
        # Most tables in an elimination are far smaller than the largest one, so the limit on the average is multiplied
        # by 16.
        cells = max(least, min(MAX_CELLS, min(16 * max_table_cells, MAX_SWEEP_CELLS) / len(self._sizes)))
        while True:
            sampler = BlockGibbs(
                self._sizes,
                starts,
                members.astype(np.int32),
                self._factors.values,
                self.powers,
                self._count,
                limits.seed,
                cells,
                limits.seconds,
            )
            if sampler.table_cells <= max_table_cells:
                return sampler
            if cells == least:
                raise MemoryLimitError("no blocks fit the memory")
            cells = max(least, cells / 2)

    def _empty(self) -> _Round:
        count, sizes = self._count, self._sizes
        return _Round(
            np.zeros((count, int(sizes.sum()))),
            np.zeros((count, len(sizes))),
            np.zeros((count, len(self.powers), MOMENTS)),
        )

    def run(self, sweeps: int, seconds: float) -> int:
        """Run sweeps within the time limit; return their number."""
        sums, draws, moments = self._current
        return self._sampler.run(sweeps, sums.reshape(-1), draws.reshape(-1), moments.reshape(-1), seconds)

    def advance(self, limits: Limits) -> None:
        """Finish a round; if the time ends first, the next call resumes the round."""
        begun = time.monotonic()
        while self._remaining:
            self._remaining -= self.run(self._remaining, limits.seconds)
            if self._remaining and limits.is_over:
                return
        if time.monotonic() - begun < ROUND_SECONDS / 2 and self._merged == 1:
            # The rounds so far were too short: they are discarded as burn-in, and later rounds get more sweeps.
            self._sweeps, self.rounds = 2 * self._sweeps, []
        self.rounds.append(self._current)
        if len(self.rounds) == self._max_rounds:
            self.rounds = [_total(pair) for pair in zip(self.rounds[::2], self.rounds[1::2], strict=True)]
            self._merged *= 2
        self._current, self._remaining = self._empty(), self._sweeps * self._merged

    @property
    def age(self) -> int:
        """Number of rounds since the last discarded one; a merged round counts as the rounds that it contains."""
        return self._merged * len(self.rounds)

    def half_chains(self) -> NDArray[np.float64]:
        """Return the mean marginals of the first halves of all chains after burn-in, followed by the second halves.

        A single round has no first half.
        """
        kept = self._settled()
        middle = len(kept) // 2
        halves = [_total(half) for half in (kept[:middle], kept[middle:]) if half]
        return np.concatenate([half.sums / np.repeat(half.draws, self._sizes, axis=1) for half in halves])

    def _settled(self) -> list[_Round]:
        """Return the rounds after burn-in, or all rounds if there are none after it."""
        return self.rounds[math.ceil(BURN_IN_SHARE * len(self.rounds)) :] or self.rounds

    def log_z(self) -> tuple[float | None, float]:
        """Return the estimated logarithm of the sum and its standard error; None and infinity if there is no estimate.

        An estimate requires the power 0, and powers so close that each ratio of sums is within the range of floats.
        """
        if self.powers[-1] != 0:
            return None, math.inf
        moments = _total(self._settled()).moments
        # The ratio of the sums at two powers is the mean ratio of a block's sums at these powers.
        ratios = moments[:, 1:, 3] / moments[:, 1:, 0]
        if not (ratios > 0).all():
            return None, math.inf
        pooled = np.log(moments[:, 1:, 3].sum(axis=0) / moments[:, 1:, 0].sum(axis=0)).sum()
        by_chain = np.log(ratios).sum(axis=1)
        error = float(by_chain.std(ddof=1)) / math.sqrt(self._count)
        return float(np.log(self._sizes).sum() + pooled + self._factors.log_scale), error

    def deviations(self) -> NDArray[np.float64]:
        """Return the standard deviation of the logarithm of the ratio of sums for each power and the next one."""
        moments = self._current.moments.sum(axis=0)[1:]
        count, mean = moments[:, 0], moments[:, 1] / moments[:, 0]
        deviations: NDArray[np.float64] = np.sqrt(np.maximum(moments[:, 2] / count - mean**2, 0))
        return deviations

    def forget(self) -> None:
        """Discard the sums of the current round."""
        self._current = self._empty()


def round_bytes(count: int, sizes: NDArray[np.int64]) -> float:
    """Return the bytes of a round's sums for ``count`` chains."""
    return CELL_BYTES * count * float(sizes.sum() + len(sizes))


def estimated_errors(
    means: NDArray[np.float64], shares: NDArray[np.float64], sizes: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Estimate, from standard errors, the Hellinger distance of each variable's mean marginal from the exact one.

    Args:
        means: Independent means of the marginals; their differences give the standard errors.
        shares: Means of ``means``.
        sizes: Number of states of each variable.

    Examples:
        >>> means = np.array([[0.4, 0.6], [0.5, 0.5], [0.6, 0.4]])
        >>> estimated_errors(means, means.mean(axis=0), np.array([2])).round(3)
        array([0.041])
    """
    variances = means.var(axis=0, ddof=1) / len(means)
    # A small change d of a probability p changes the squared distance by d^2 / 8p.
    squares = np.divide(variances, 8 * shares, out=np.zeros(len(shares)), where=shares > 0)
    return np.sqrt(np.minimum(np.add.reduceat(squares, np.cumsum(sizes) - sizes), 1.0))


class _Answer(NamedTuple):
    """Marginals and their errors.

    Attributes:
        chain_shares: Marginals from each chain, shape ``(chains, states)``.
        shares: Marginals from all chains.
        by_chains: Error of each variable's marginal, estimated from the differences between chains.
        by_halves: Error of each variable's marginal, estimated from the differences between halves of chains.
    """

    chain_shares: NDArray[np.float64]
    shares: NDArray[np.float64]
    by_chains: NDArray[np.float64]
    by_halves: NDArray[np.float64]

    @staticmethod
    def of(chains: _Chains, sizes: NDArray[np.int64], count: int) -> _Answer:
        """Return the answer from the first ``count`` chains."""
        halves = chains.half_chains()
        shares = halves.mean(axis=0)
        by_chains = halves.reshape(-1, count, len(shares)).mean(axis=0)
        errors = estimated_errors(by_chains, shares, sizes), estimated_errors(halves, shares, sizes)
        return _Answer(by_chains, shares, *errors)

    @property
    def is_stuck(self) -> bool:
        """True if chains hardly move: their means differ far more than the halves of each chain."""
        ratio = np.square(self.by_chains).mean() / max(np.square(self.by_halves).mean(), 1e-300)
        return bool(ratio > STUCK_RATIO and self.by_chains.mean() > MIN_STUCK_ERROR)

    def estimate(self, log_z: float | None, log_z_error: float) -> SumEstimate:
        """Return the estimate with the larger of two errors: from whole chains, and from their halves.

        The error from halves is larger if chains drift.
        """
        count = len(self.chain_shares)
        folds = SampleFolds(np.full(count, 1 / count), self.chain_shares / count)
        errors = np.maximum(self.by_chains, self.by_halves)
        if self.is_stuck:
            # A stuck chain stays in a mode that depends on its start, so the mean of several stuck chains has the error
            # of a single chain. They form a single fold, because only independent folds can measure other estimates.
            errors = np.minimum(math.sqrt(count) * errors, 1.0)
            folds = SampleFolds(np.ones(1), self.shares[None])
        return SumEstimate(METHOD, log_z, log_z_error, self.shares, errors, folds)


def block_gibbs(problem: Problem, options: CheckedOptions, limits: Limits) -> Iterator[SumEstimate]:
    """Yield the marginals from chains of growing length; none if memory is short, or if tuples are forbidden.

    Args:
        problem: Problem of a sum of products.
        options: Options of the call.
        limits: Limits of time and memory, and the seed.
    """
    sizes = problem.free_sizes
    free_bytes = limits.memory_bytes - 2 * table_bytes(problem) - CHAIN_BYTES * len(sizes)
    least_rounds = MAX_ROUNDS[-1]
    if not len(sizes) or (least_rounds + 1) * round_bytes(CHAINS, sizes) > free_bytes:
        return
    factors = limits.factors_of(problem)
    if factors.log_scale == -math.inf or not (factors.values > 0).all():
        return
    count = CHAINS
    max_rounds = next(
        rounds
        for rounds in MAX_ROUNDS
        if rounds == least_rounds or (rounds + 1) * round_bytes(count, sizes) <= ROUNDS_SHARE * free_bytes
    )
    chains: _Chains | None = None
    while chains is None:
        try:
            chains = _Chains(factors, sizes, (1.0,), count, limits, max_rounds)
        except MemoryLimitError:
            return
        except Stopped:
            yield SumEstimate(METHOD)
    answer: _Answer | None = None
    sum_answer: tuple[float | None, float] = (None, math.inf)
    while True:
        chains.advance(limits)
        # Before replicas have exchanged states, chains may agree only because they are in the same mode.
        if chains.rounds and (len(chains.powers) == 1 or chains.age >= TRIAL_ROUNDS):
            answer, sum_answer = _Answer.of(chains, sizes, count), chains.log_z()
        yield SumEstimate(METHOD) if answer is None else answer.estimate(*sum_answer)
        if answer is not None and len(chains.powers) == 1 and chains.age == TRIAL_ROUNDS and answer.is_stuck:
            tempered = _tempered(factors, sizes, limits, max_rounds)
            if tempered is not None:
                chains, count = tempered, TEMPERED_CHAINS


def _tempered(factors: FactorList, sizes: NDArray[np.int64], limits: Limits, max_rounds: int) -> _Chains | None:
    """Return chains with replicas; None if they do not fit, or if time ends."""
    try:
        powers = _powers(factors, sizes, limits)
        return _Chains(factors, sizes, powers, TEMPERED_CHAINS, limits, max_rounds) if powers else None
    except (MemoryLimitError, Stopped):
        return None


def _powers(factors: FactorList, sizes: NDArray[np.int64], limits: Limits) -> Sequence[float]:
    """Return powers from 1 to 0 with similar rates of exchange between neighbours; none if time ends."""
    pilot = _Chains(factors, sizes, PILOT_POWERS, 1, limits, 1)
    pilot.run(PILOT_SWEEPS, limits.seconds)
    pilot.forget()
    if pilot.run(PILOT_SWEEPS, limits.seconds) < PILOT_SWEEPS:
        return ()
    powers, distances = np.array(PILOT_POWERS), np.concatenate([[0.0], np.cumsum(pilot.deviations())]) / POWER_STEP
    count = min(MAX_POWERS, math.ceil(distances[-1]) + 1)
    chosen: list[float] = np.interp(np.linspace(0, distances[-1], max(count, 2)), distances, powers).tolist()
    return chosen
