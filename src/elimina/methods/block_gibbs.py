"""Gibbs sampling of blocks: variables that form a forest, given all others, are drawn together.

Jensen, Kong and Kjaerulff 1995, "Blocking Gibbs sampling in very large probabilistic expert systems"; Hamze and de
Freitas 2004, "From fields to trees". Marginals are means of those of the blocks given the other variables.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from elimina._core import BlockGibbs
from elimina.methods.join_graph_propagation import factors_of
from elimina.methods.sum_estimate import Limits, SumEstimate
from elimina.planning.options import Options
from elimina.problem.preparation import Problem

METHOD = "block Gibbs sampling"

CHAINS = 8
"""Chains, whose differences tell the error."""

CHAIN_BYTES = 1 << 10
"""Bytes of a variable: its blocks, and its states in all chains."""

MOMENTS = 4
"""Sums over sweeps for each chain and power: see the core's `BlockGibbs.run`."""

MAX_ROUNDS = 32
"""Rounds of sweeps whose sums are stored; then each two of them become one."""

BURN_IN_SHARE = 0.125
"""Share of the first rounds that count for nothing."""

ROUND_SECONDS = 0.05
"""Time of a round."""


class _Rounds:
    """Sums of the chains' marginals, in rounds of equally many sweeps.

    Args:
        sizes: Number of states of each variable.
    """

    def __init__(self, sizes: NDArray[np.int64]) -> None:
        self._sizes = sizes
        self._rounds: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
        self.merged = 1

    def add(self, sums: NDArray[np.float64], draws: NDArray[np.float64]) -> None:
        """Add a round: sums of marginals of each chain and state, and draws of each chain and variable."""
        self._rounds.append((sums, draws))
        if len(self._rounds) == MAX_ROUNDS:
            pairs = zip(self._rounds[::2], self._rounds[1::2], strict=True)
            self._rounds = [(one[0] + other[0], one[1] + other[1]) for one, other in pairs]
            self.merged *= 2

    @property
    def count(self) -> int:
        """Number of rounds."""
        return len(self._rounds)

    def half_chains(self) -> NDArray[np.float64]:
        """Return the mean marginals of the first halves of all chains after their burn-in, then of the second ones."""
        kept = self._rounds[math.ceil(BURN_IN_SHARE * len(self._rounds)) :] or self._rounds
        middle = len(kept) // 2
        halves = [half for half in (kept[:middle], kept[middle:]) if half]
        return np.concatenate(
            [
                sum(sums for sums, _ in half) / np.repeat(sum(draws for _, draws in half), self._sizes, axis=1)
                for half in halves
            ]
        )


def estimated_errors(
    means: NDArray[np.float64], shares: NDArray[np.float64], sizes: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the Hellinger distance that each variable's mean marginal has from the exact one, by its standard error.

    Args:
        means: Independent means of the marginals, whose differences tell the error of each.
        shares: Their means.
        sizes: Number of states of each variable.

    Examples:
        >>> means = np.array([[0.4, 0.6], [0.5, 0.5], [0.6, 0.4]])
        >>> estimated_errors(means, means.mean(axis=0), np.array([2])).round(3)
        array([0.041])
    """
    variances = means.var(axis=0, ddof=1) / len(means)
    # A small change d of a share p changes the squared distance by d^2 / 8p.
    squares = np.divide(variances, 8 * shares, out=np.zeros(len(shares)), where=shares > 0)
    return np.sqrt(np.minimum(np.add.reduceat(squares, np.cumsum(sizes) - sizes), 1.0))


def block_gibbs(problem: Problem, options: Options, limits: Limits) -> Iterator[SumEstimate]:
    """Yield the marginals of longer and longer chains; nothing if there are forbidden tuples, which chains cannot pass.

    Args:
        problem: Problem of a sum of products.
        options: Options of the call.
        limits: Limits of time and memory, and the seed.
    """
    sizes = np.array([problem.model.sizes[v] for v in problem.free], dtype=np.int64)
    table_bytes = 8 * float(problem.groups.cells(problem.model.sizes).sum())
    chain_bytes = CHAIN_BYTES * len(sizes) + 8 * CHAINS * (MAX_ROUNDS + 1) * float(sizes.sum() + len(sizes))
    if not len(sizes) or table_bytes + chain_bytes > limits.memory_bytes:
        return
    factors = factors_of(problem)
    if factors.log_scale == -math.inf or not (factors.values > 0).all():
        return
    starts, members = factors.scopes
    powers = np.ones(1)
    sampler = BlockGibbs(sizes, starts, members.astype(np.int32), factors.values, powers, CHAINS, limits.seed)
    rounds, sweeps = _Rounds(sizes), 1
    while True:
        sums, draws = np.zeros((CHAINS, int(sizes.sum()))), np.zeros((CHAINS, len(sizes)))
        moments = np.zeros((CHAINS, len(powers), MOMENTS))
        begun, remaining = time.monotonic(), sweeps * rounds.merged
        while remaining:
            remaining -= sampler.run(
                remaining, sums.reshape(-1), draws.reshape(-1), moments.reshape(-1), limits.seconds
            )
            if remaining and limits.is_over:
                if not rounds.count:
                    return
                yield _estimate(rounds, sizes)
        if time.monotonic() - begun < ROUND_SECONDS / 2 and rounds.merged == 1:
            # Short rounds are burn-in.
            rounds, sweeps = _Rounds(sizes), 2 * sweeps
        rounds.add(sums, draws)
        yield _estimate(rounds, sizes)


def _estimate(rounds: _Rounds, sizes: NDArray[np.int64]) -> SumEstimate:
    halves = rounds.half_chains()
    shares = halves.mean(axis=0)
    # Halves differ where chains drift, whole chains more than halves where each stays in some of the modes.
    chains = halves.reshape(-1, CHAINS, len(shares)).mean(axis=0)
    errors = np.maximum(estimated_errors(halves, shares, sizes), estimated_errors(chains, shares, sizes))
    return SumEstimate(METHOD, shares=shares, errors=errors)
