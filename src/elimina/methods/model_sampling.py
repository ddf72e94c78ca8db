"""Samples of all variables of a model: exact if the messages fit the memory, otherwise weighted."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.errors import ImpossibleEvidenceError, MemoryLimitError, TimeLimitError
from elimina.methods.importance_sampling import SampleForm, form_of
from elimina.methods.junction_tree import JunctionTree
from elimina.methods.proposals import (
    descendant_sampler,
    exact_plan,
    forward_proposal,
    message_proposal,
    mini_bucket_plan,
)
from elimina.methods.samples import Samples
from elimina.methods.sampling import DRAWN_BYTES, check_room, seed_word
from elimina.methods.weight_statistics import WeightStatistics
from elimina.model.model import Model
from elimina.model.states import Evidence
from elimina.number_texts import bytes_text, counted
from elimina.option_names import option
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.options import replace
from elimina.planning.ordering import elimination_order
from elimina.problem.evidence import observe
from elimina.problem.observations import evidence_of, impossible_text
from elimina.problem.preparation import Problem, check_probabilities, descendants_of, prepare
from elimina.running.host import host_memory

_EXACT_SHARE = 0.5
"""Largest estimated time of the elimination for exact samples, as a share of the time limit."""

_PROPOSAL_SECONDS = 5.0
"""Estimated seconds of mini-buckets, if there is no time limit."""

_PROPOSAL_SHARE = 0.25
"""Largest share of the time limit for mini-buckets."""

_MIN_BATCH_BYTES = 1 << 20
"""Bytes that a batch of samples may take even beyond the memory limit, if the plan fits."""

_MESSAGE_SHARE = 0.5
"""Share of the memory for messages."""


class SampleQuestion(NamedTuple):
    """Requested samples.

    Attributes:
        samples: Number of samples.
        seed: Random seed; None: a new seed for each call.
        is_exact: True if weighted samples are refused.
        deadline: Deadline by ``time.monotonic``; None: no deadline.
    """

    samples: int
    seed: int | None
    is_exact: bool
    deadline: float | None

    @property
    def seconds(self) -> float:
        """Seconds until the deadline; infinity if there is none."""
        return math.inf if self.deadline is None else self.deadline - time.monotonic()


def draw_samples(model: Model, evidence: Evidence, question: SampleQuestion, options: CheckedOptions) -> Samples:
    """Draw from the distribution of a model's variables given evidence.

    Args:
        model: A probability model.
        evidence: Evidence, as in ``elimina.solve``.
        question: The requested samples.
        options: Options of a junction tree.

    Raises:
        ImpossibleEvidenceError: The evidence has probability 0.
        InputError: The model has costs, or the evidence does not fit it.
        MemoryLimitError: The samples, or the tables for drawing them, do not fit into memory.
        TimeLimitError: The deadline passed.
    """
    check_probabilities(model, "samples are drawn from probabilities")
    memory, cells = host_memory(options), question.samples * len(model.variables)
    check_room(question.samples, len(model.variables), memory, DRAWN_BYTES)
    observations = evidence_of(model, evidence)
    if options.needs_gpu:
        return _from_junction_tree(model, observations, question, options)
    seed = seed_word(question.seed)
    observed = observe(model, "pr", evidence)
    problem = prepare(observed.model, "pr", observed.values)
    try:
        form = _form(problem, question, seed, options, memory - DRAWN_BYTES * cells)
    except ImpossibleEvidenceError:
        raise ImpossibleEvidenceError(impossible_text(model, observations)) from None
    drawn = _draw(problem, form, question, seed, options)
    if question.samples and not drawn.effective_size:
        raise MemoryLimitError(
            f"none of {counted(question.samples, 'sample')} has a positive probability, because the evidence is "
            f"impossible or "
            f"the proposal misses what is possible: draw more samples, or give more memory ({option('memory')})"
        )
    indices = drawn.indices[:, : len(model.variables)]
    random = np.random.default_rng([seed, 1])
    for v, merged in observed.merged.items():
        indices[:, v] = merged.drawn(indices[:, v].astype(np.int64), random)
    is_exact = form.proposal.is_exact
    return Samples(
        model.variables,
        indices,
        drawn.log_weights,
        is_exact=is_exact,
        effective_size=float(question.samples) if is_exact else drawn.effective_size,
        log10_z=drawn.log_sum / math.log(10),
    )


def _from_junction_tree(
    model: Model, observations: Mapping[int, int | NDArray[Any]], question: SampleQuestion, options: CheckedOptions
) -> Samples:
    """Draw exact samples from messages on a GPU."""
    tree = JunctionTree(model, options=replace(options, exact=True))
    try:
        tree.set_evidence({model.variables[v].name: _evidence_item(model, v, what) for v, what in observations.items()})
        indices = tree.sample(question.samples, question.seed, indices=True)
        zeros, size = np.zeros(question.samples), float(question.samples)
        return Samples(model.variables, indices, zeros, is_exact=True, effective_size=size, log10_z=tree.log10_evidence)
    finally:
        tree.close()


def _evidence_item(model: Model, variable: int, observations: int | NDArray[Any]) -> Any:
    return model.variables[variable].state(observations) if isinstance(observations, int) else observations


def _form(problem: Problem, question: SampleQuestion, seed: int, options: CheckedOptions, memory: int) -> SampleForm:
    """Return the form of exact samples or, if these are too expensive, of weighted ones.

    Raises:
        ImpossibleEvidenceError: The sum is 0.
        MemoryLimitError: No proposal fits, or the exact one does not fit and weighted samples are refused.
        TimeLimitError: The deadline passed.
    """
    threads = options.host_threads
    order = elimination_order(problem, options)
    plan = exact_plan(problem, order, options, memory)
    if plan.fits and plan.seconds <= _EXACT_SHARE * question.seconds:
        proposal = message_proposal(problem, plan, options, question.deadline)
        form = form_of(proposal, max(_MIN_BATCH_BYTES, memory - proposal.bytes), seed, threads)
        if form is not None:
            return form
    if question.is_exact:
        if plan.fits:
            raise TimeLimitError("the elimination for exact samples takes longer than the time limit; allow more time")
        raise MemoryLimitError(
            f"exact samples need {bytes_text(plan.peak_bytes)}, and {bytes_text(memory)} may be used (induced width "
            f"{plan.width}): give more memory ({option('memory')}), or take weighted samples (without "
            f"{option('exact')})"
        )
    forms, messages = [], 0
    seconds = _PROPOSAL_SECONDS if question.deadline is None else _PROPOSAL_SHARE * question.seconds
    with contextlib.suppress(MemoryLimitError):
        plan = mini_bucket_plan(problem, order, options, int(_MESSAGE_SHARE * memory), seconds)
        proposal = message_proposal(problem, plan, options, question.deadline)
        messages = proposal.bytes
        forms.append(form_of(proposal, memory - messages, seed, threads))
    forward = forward_proposal(problem, (memory - messages) // 2)
    if forward is not None:
        forms.append(form_of(forward, (memory - messages) // 2, seed, threads))
    usable = [form for form in forms if form is not None]
    if not usable:
        raise MemoryLimitError(
            f"weighted samples do not fit into the {bytes_text(max(0, memory))} that may be used: give more memory "
            f"({option('memory')})"
        )
    return max(usable, key=lambda form: form.efficiency)


class _Drawn(NamedTuple):
    """Samples of a problem.

    Attributes:
        indices: Index of each variable's state in each sample, shape ``(samples, variables of the problem's model)``.
        log_weights: Natural logarithm of each sample's weight.
        effective_size: Number of independent samples of equal weight with the same information.
        log_sum: Natural logarithm of the mean weight.
    """

    indices: NDArray[np.int32]
    log_weights: NDArray[np.float64]
    effective_size: float
    log_sum: float


def _draw(problem: Problem, form: SampleForm, question: SampleQuestion, seed: int, options: CheckedOptions) -> _Drawn:
    """Draw samples batch by batch.

    Raises:
        TimeLimitError: The deadline passed.
    """
    proposal, count, threads = form.proposal, question.samples, options.host_threads
    descendants = descendants_of(problem)
    last = descendant_sampler(descendants, problem.model.sizes, proposal.variables) if descendants else None
    variables = [*proposal.variables, *descendants]
    indices = np.zeros((count, len(problem.model.sizes)), dtype=np.int32)
    for v, value in problem.fixed.items():
        indices[:, v] = value
    # All particle filters draw the same number of samples; surplus samples are dropped at random.
    groups = -(-count // form.group)
    group = -(-count // max(1, groups)) if form.group > 1 else 1
    total = group * groups
    is_kept = np.zeros(total, dtype=bool)
    is_kept[np.random.default_rng(seed).permutation(total)[:count] if total > count else slice(None)] = True
    logs, statistics = np.zeros(count), WeightStatistics()
    unevenness, drawn_count = 0.0, 0
    step = group * max(1, form.batch // group)
    for start in range(0, total, step):
        if question.seconds <= 0:
            raise TimeLimitError(
                f"the time limit passed after {start:,} of {count:,} samples: allow more time, or draw fewer"
            )
        size = min(step, total - start)
        states = np.empty((len(variables), size), dtype=np.int32)
        weights, sizes = np.zeros(size), np.ones(size // group)
        filters = sizes if group > 1 else sizes[:0]
        proposal.sampler.draw(seed, start, states[: len(proposal.variables)], weights, filters, threads)
        if last is not None:
            last.draw(seed, start, states, np.zeros(size), sizes[:0], threads)
        is_kept_here = is_kept[start : start + size]
        end = drawn_count + int(is_kept_here.sum())
        for v, row in zip(variables, states, strict=True):
            indices[drawn_count:end, v] = row[is_kept_here]
        logs[drawn_count:end] = weights[is_kept_here]
        drawn_count = end
        means = np.logaddexp.reduce(weights.reshape(-1, group), axis=1) - math.log(group)
        shares, factor = statistics.add(means)
        unevenness = unevenness * factor**2 + float((shares**2 / np.maximum(sizes, 1.0)).sum())
    weight_sum = math.exp(statistics.log_mean - statistics.log_peak) * statistics.count if unevenness else 0.0
    effective_size = min(float(count), weight_sum**2 / unevenness) if unevenness else 0.0
    log_sum = proposal.log_constant + (statistics.log_mean if count and not proposal.is_exact else 0.0)
    return _Drawn(indices, logs, effective_size, log_sum)
