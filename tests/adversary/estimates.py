"""Estimates and bounds of sums against brute force, with counts: ``python -m tests.adversary.estimates``.

A single case cannot fail: an interval of 95 % misses one model in twenty. So thousands of small random models are
counted. Bounds have to hold for each of them.
"""

from __future__ import annotations

import itertools
import math
import secrets
import sys
import time
from collections.abc import Iterable
from typing import NamedTuple

import click
import numpy as np

from elimina.methods.bound_optimisation import BoundOptimisation
from elimina.methods.importance_sampling import Estimator, SampleForm, importance_sampling
from elimina.methods.marginal_bounds import improve_marginal_bounds
from elimina.methods.proposals import message_proposal, mini_bucket_plan
from elimina.methods.sum_estimate import Limits, SumEstimate
from elimina.model.model import Model
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.preparation import Problem, prepare
from tests.methods.test_junction_tree import joint

OPTIONS = CheckedOptions(threads=1, ibound=1)
"""Buckets of these models are partitioned only at i-bound 1."""

MEMORY_BYTES = 1 << 15

LEVEL = 0.95

DEVIATIONS = 1.96
"""Standard errors on either side of an estimate that cover at ``LEVEL`` if estimates are normally distributed."""

NORMAL_SHARES = (0.92, 0.975)
"""Shares of models between which this many standard errors cover: few samples are not quite normally distributed."""

BATCH = 512
"""Samples of the estimate whose mean is tested."""

OFF = 1e-9
"""Rounding of a logarithm."""

MAX_DEVIATIONS = 4.0
"""Deviation of a correct mean or count, in standard errors, that is exceeded once in 16,000 runs."""


def random_model(seed: int) -> Model:
    """Return a dense model of up to seven variables, some with zeros, some with strong and some with weak couplings."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(4, 8))
    sizes = [int(size) for size in rng.integers(2, 4, count)]
    coupling, zeros = rng.choice([0.3, 1.0, 2.5]), rng.choice([0.0, 0.15])
    factors = []
    for u, v in itertools.combinations(range(count), 2):
        table = np.exp(coupling * rng.normal(size=(sizes[u], sizes[v])))
        # The first states are possible together.
        table[1:, 1:] *= rng.random((sizes[u] - 1, sizes[v] - 1)) >= zeros
        factors.append(((u, v), table))
    return Model.from_arrays(sizes, factors, sense="probability")


def sampled(problem: Problem, seed: int) -> SumEstimate:
    """Return the estimate of one turn of samples, from mini-buckets that are partitioned."""
    limits = Limits(time.monotonic() + 60, MEMORY_BYTES, seed)
    return next(e for e in importance_sampling(problem, OPTIONS, limits) if e.interval is not None)


def most_misses(count: int) -> int:
    """Return the largest usual number of intervals that miss, of so many correct ones."""
    mean = (1 - LEVEL) * count
    return math.ceil(mean + MAX_DEVIATIONS * math.sqrt(mean))


class Examined(NamedTuple):
    """Estimates and bounds of one model, compared with brute force.

    Attributes:
        covers: True if the interval of the samples contains the logarithm of the sum.
        is_near: True if the logarithm is within ``DEVIATIONS`` standard errors of the estimate.
        ratio: Sum by a fixed number of samples, divided by the exact one.
        broken: Bounds that do not hold.
    """

    covers: bool
    is_near: bool
    ratio: float
    broken: tuple[str, ...]


def examine(seed: int) -> Examined:
    """Compare the estimates and bounds of a random model with brute force."""
    model = random_model(seed)
    values = joint(model, {})
    exact = math.log(values.sum())
    problem = prepare(model, "pr", {})
    estimate = sampled(problem, seed)
    assert estimate.interval is not None
    low, high, level = estimate.interval
    assert level == LEVEL
    broken = [] if exact <= estimate.upper + OFF else [f"the samples' upper bound {estimate.upper} is below {exact}"]
    ticks = itertools.count()
    for bounds in BoundOptimisation(problem, OPTIONS, 1 << 20, 30, lambda: next(ticks)).run():
        if not bounds.lower - OFF <= exact <= bounds.upper + OFF:
            broken.append(f"the bounds {bounds.lower} to {bounds.upper} exclude {exact}")
    variable = seed % len(model.sizes)
    share = values.sum(axis=tuple(v for v in range(len(model.sizes)) if v != variable)) / values.sum()
    for ends in improve_marginal_bounds(problem, variable, OPTIONS, 1 << 24, time.monotonic() + 60):
        if not ((ends[:, 0] - OFF <= share) & (share <= ends[:, 1] + OFF)).all():
            broken.append(f"the bounds {ends.tolist()} exclude the marginal {share.tolist()} of variable {variable}")
    assert estimate.log_z is not None
    is_near = abs(exact - estimate.log_z) <= DEVIATIONS * estimate.log_z_error + OFF
    covers = low - OFF <= exact <= high + OFF
    return Examined(covers, is_near, _ratio(problem, exact, seed), tuple(broken))


def _ratio(problem: Problem, exact: float, seed: int) -> float:
    """Return the sum by one batch of samples of one proposal, divided by the exact sum."""
    proposal = message_proposal(
        problem, mini_bucket_plan(problem, problem.free, OPTIONS, 10**8, math.inf), OPTIONS, None
    )
    estimator = Estimator(problem, SampleForm(proposal, 16 if seed % 2 else 1, BATCH, 1.0), seed, 1)
    estimator.draw()
    return math.exp(estimator.weights.log_mean - exact)


class Counts(NamedTuple):
    """Counts over many models.

    Attributes:
        models: Number of models.
        misses: Number of intervals that miss the exact sum.
        near: Number of estimates within ``DEVIATIONS`` standard errors of it.
        mean_ratio: Mean of the sums by samples, divided by the exact ones.
        ratio_error: Standard error of this mean.
        broken: Seed of each model with a bound that does not hold, and the bound.
    """

    models: int
    misses: int
    near: int
    mean_ratio: float
    ratio_error: float
    broken: tuple[str, ...]

    @property
    def defects(self) -> list[str]:
        """Bounds that do not hold, and counts and means that a correct program gives once in 16,000 runs at most."""
        defects = list(self.broken)
        if self.misses > most_misses(self.models):
            defects.append(f"{self.misses} of {self.models} intervals of {LEVEL:.0%} miss")
        slack = MAX_DEVIATIONS * math.sqrt(LEVEL * (1 - LEVEL) / self.models)
        if not NORMAL_SHARES[0] - slack <= self.near / self.models <= NORMAL_SHARES[1] + slack:
            defects.append(f"{self.near} of {self.models} estimates are within {DEVIATIONS} standard errors")
        if abs(self.mean_ratio - 1) > MAX_DEVIATIONS * self.ratio_error:
            defects.append(f"the mean of the sums is {self.mean_ratio:.4f} of the exact one, +- {self.ratio_error:.4f}")
        return defects


def count(seeds: Iterable[int]) -> Counts:
    """Examine a random model for each seed."""
    misses, near, ratios, broken = 0, 0, [], []
    for seed in seeds:
        examined = examine(seed)
        misses += not examined.covers
        near += examined.is_near
        ratios.append(examined.ratio)
        broken += [f"model {seed}: {text}" for text in examined.broken]
    error = float(np.std(ratios) / math.sqrt(len(ratios)))
    return Counts(len(ratios), misses, near, float(np.mean(ratios)), error, tuple(broken))


@click.command()
@click.option("--models", default=5000, help="Number of models.")
@click.option("--seed", type=int, help="Seed of the first model; by default a fresh one.")
def main(models: int, seed: int | None) -> None:
    """Compare estimates and bounds of small random models with brute force, and print the counts."""
    first = secrets.randbelow(10**9) if seed is None else seed
    click.echo(f"seed {first}")
    counts = count(range(first, first + models))
    click.echo(
        f"{counts.models:,} models: {len(counts.broken)} bounds that do not hold; {counts.misses} intervals of "
        f"{LEVEL:.0%} miss ({1 - counts.misses / counts.models:.2%} cover); {counts.near / counts.models:.2%} of the "
        f"estimates are within {DEVIATIONS} standard errors; mean of the sums by samples {counts.mean_ratio:.4f} +- "
        f"{counts.ratio_error:.4f} of the exact ones"
    )
    for defect in counts.defects:
        click.echo(defect)
    sys.exit(1 if counts.defects else 0)


if __name__ == "__main__":
    main()
