"""Forward and backward passes of hidden Markov models, as products with dense matrices.

The interface consists of the variables with children in the next slice. Its joint states are the states of one Markov
chain. All other variables of a slice have their parents in the interface, so the observations of the slice become one
likelihood for each joint state.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import BestPath, Chain
from elimina.methods.hidden_parameters import HiddenParameters, Likelihoods
from elimina.methods.observed_sequences import (
    Floats,
    Ints,
    Message,
    RunLimits,
    Sequences,
    SliceAnswers,
    scaled_likelihoods,
    store_rows,
)
from elimina.model.dynamic_network import DynamicNetwork
from elimina.system import cached_property

MAX_STATES = 4096
"""Largest number of joint states of an interface for steps as products with a dense matrix."""

_MATRIX_COPIES = 6
"""Number of transition matrices in memory: the array, its logarithms, and the copies of the core."""

_MAX_LOG_ERROR = 1e-8
"""Largest difference between the log-probabilities of the forward and the backward pass; a larger one indicates
underflow."""

_MIN_MASS = 1e-280
"""Least probability of the likelihoods, given a joint state, for use as a divisor: smaller ones may have
underflowed."""

_LEAST_TOTAL = 1e-120
"""Least probability of a slice for a pass without logarithms. Terms below the range of floats are then negligible, even
if later transitions favour their states by as much as ``Chain`` permits without a check."""


_BATCH_CELLS = 1 << 18
"""Cells of the distributions of a batch's joint states, for expected counts: 2 MiB, which stay in a cache."""


class SegmentStates(NamedTuple):
    """Distributions of the joint states in consecutive slices.

    Attributes:
        rows: The slices.
        states: Distributions of the joint states, shape ``(slices, states)``; zeros where the observations are
            impossible, and no rows if the distributions were not requested.
        log_totals: Natural logarithm of the probability of each slice's observations given the earlier ones.
    """

    rows: slice
    states: Floats
    log_totals: Floats


class FamilyCounts(NamedTuple):
    """Expected counts of families.

    Attributes:
        initial: Counts of the family of each variable in first slices.
        later: Counts in later slices.
        log_totals: Natural logarithm of the probability of each slice's observations given the earlier ones.
    """

    initial: list[Floats]
    later: list[Floats]
    log_totals: Floats


class _Group(NamedTuple):
    """Sequences that run together, or a single long one.

    Attributes:
        starts: First slice of each sequence, followed by the slice after the last one.
        segments: Slices of each run; several runs only for a single long sequence.
    """

    starts: NDArray[np.int64]
    segments: list[slice]

    @property
    def is_long(self) -> bool:
        """True if the sequence runs in segments."""
        return len(self.segments) > 1

    def starts_in(self, rows: slice) -> NDArray[np.int64]:
        """Return the start of each sequence relative to the segment's start, followed by the segment's length."""
        return np.array([0, rows.stop - rows.start]) if self.is_long else self.starts - rows.start


def is_hidden_chain(network: DynamicNetwork) -> bool:
    """Return whether all parents are in the interface, and variables outside it have no parents in other slices."""
    count, interface = len(network.variables), set(network.interface)
    for v in range(count):
        first = set(network.initial.factors[v].scope) - {v}
        later = set(network.transition.factors[v].scope) - {v + count}
        present = {u - count for u in later if u >= count}
        if not (first | present) <= interface or (v not in interface and len(present) < len(later)):
            return False
    return True


class HiddenChain:
    """A dynamic network as a hidden Markov model over the joint states of its interface.

    Args:
        network: A network for which ``is_hidden_chain`` holds.

    Attributes:
        states: Number of joint states.
    """

    def __init__(self, network: DynamicNetwork) -> None:
        self._parameters = HiddenParameters(network)
        self.states = self._parameters.states

    @property
    def matrix_bytes(self) -> int:
        """Bytes of the matrices of transitions."""
        return 8 * self.states**2 * _MATRIX_COPIES

    @cached_property
    def _chain(self) -> Chain:
        return Chain(self._parameters.transition)

    @cached_property
    def _best_path(self) -> BestPath:
        return BestPath(self._parameters.log_transition)

    # --- passes ---

    def filtered(
        self,
        sequences: Sequences,
        limits: RunLimits,
        marginals: Mapping[int, Floats],
        *,
        keeps_states: bool = True,
    ) -> Iterator[SliceAnswers]:
        """Yield the posteriors given the observations so far; a later answer about a slice replaces earlier ones.

        Args:
            sequences: Observations.
            limits: Limits of the run.
            marginals: Variable -> array for its posteriors, for each queried variable. The array is filled in place if
                the variable is the whole interface.
            keeps_states: False if only the probabilities of the observations are needed.
        """
        for segment in self._filter(sequences, limits, keeps_states, self._joint_array(marginals)):
            yield self._answers(segment, tuple(marginals) if keeps_states else (), sequences)

    def smoothed(
        self, sequences: Sequences, limits: RunLimits, marginals: Mapping[int, Floats]
    ) -> Iterator[SliceAnswers]:
        """Yield the posteriors given all observations; a later answer about a slice replaces earlier ones.

        Args:
            sequences: Observations.
            limits: Limits of the run.
            marginals: See ``filtered``.
        """
        for segment in self._smooth(sequences, limits, self._joint_array(marginals)):
            yield self._answers(segment, tuple(marginals), sequences)

    def _joint_array(self, marginals: Mapping[int, Floats]) -> Floats | None:
        """Return the array for the distributions of the joint states, if the interface is a single queried variable."""
        interface = self._parameters.network.interface
        return marginals.get(interface[0]) if len(interface) == 1 else None

    def advance(
        self, message: Message | None, sequences: Sequences, row: int, variables: Sequence[int]
    ) -> tuple[Message, float, dict[int, Floats]]:
        """Filter one more slice.

        Args:
            message: Message before the slice; None for the first one.
            sequences: Observations.
            row: Index of the slice.
            variables: Variables that are asked for.

        Returns:
            The message after the slice, the logarithm of the probability of its observations, and posteriors.
        """
        rows, is_first = slice(row, row + 1), message is None
        firsts = np.array([is_first])
        message = Message(self._parameters.start) if message is None else message
        weights = message.weights
        if not message.is_logarithmic:
            after = weights[None].copy()
            likelihoods = self._parameters.likelihoods(sequences, rows, firsts)
            states = np.empty((1, self.states))
            segment, suspects = self._run_forward(rows, likelihoods, np.array([0, 1]), is_first, after, 1, states)
            if not suspects:
                return (
                    Message(after[0]),
                    float(segment.log_totals[0]),
                    self._marginals(segment, variables, sequences, firsts),
                )
            with np.errstate(divide="ignore"):
                weights = self._parameters.log_start if is_first else np.log(weights)
        segment, weights = self._forward_in_logs(sequences, rows, is_first, weights)
        marginals = self._marginals(segment, variables, sequences, firsts)
        return Message(weights, is_logarithmic=True), float(segment.log_totals[0]), marginals

    def _answers(self, segment: SegmentStates, variables: Sequence[int], sequences: Sequences) -> SliceAnswers:
        firsts = sequences.firsts[segment.rows]
        return SliceAnswers(segment.rows, self._marginals(segment, variables, sequences, firsts), segment.log_totals)

    def _filter(
        self, sequences: Sequences, limits: RunLimits, keeps_states: bool, joint: Floats | None
    ) -> Iterator[SegmentStates]:
        for group in self._groups(sequences, limits):
            messages = self._starts_of(group)
            log_message: Floats | None = None
            for rows in group.segments:
                if log_message is not None:
                    segment, log_message = self._forward_in_logs(sequences, rows, False, log_message)
                    yield segment
                    continue
                before = messages.copy()
                states = self._states(rows, joint) if keeps_states else None
                segment, suspects = self._forward(sequences, group, rows, messages, limits.threads, states)
                yield segment
                for s in suspects:
                    suspect_rows = rows if group.is_long else slice(int(group.starts[s]), int(group.starts[s + 1]))
                    is_first = bool(suspect_rows.start == group.starts[s])
                    with np.errstate(divide="ignore"):
                        log_before = self._parameters.log_start if is_first else np.log(before[s])
                    segment, log_message = self._forward_in_logs(sequences, suspect_rows, is_first, log_before)
                    yield segment
                log_message = log_message if group.is_long else None

    def _states(self, rows: slice, joint: Floats | None) -> Floats:
        """Return an array for the distributions of the joint states in some slices, within ``joint`` if it is given."""
        return np.empty((rows.stop - rows.start, self.states)) if joint is None else joint[rows]

    def _smooth(self, sequences: Sequences, limits: RunLimits, joint: Floats | None) -> Iterator[SegmentStates]:
        for group in self._groups(sequences, limits):
            if group.is_long:
                suspects = yield from self._smooth_segments(sequences, group, limits, joint)
            else:
                segment, suspects = self._smooth_whole(sequences, group, limits, joint)
                yield segment
            for s in sorted(suspects):
                yield self._smooth_in_logs(sequences, slice(int(group.starts[s]), int(group.starts[s + 1])), limits)

    def _smooth_segments(
        self, sequences: Sequences, group: _Group, limits: RunLimits, joint: Floats | None
    ) -> Generator[SegmentStates, None, set[int]]:
        """Yield the segments of a long sequence; return the set of sequences with possible underflow: empty or {0}."""
        suspects = set()
        messages, checkpoints, filtered_segments = self._starts_of(group), [], []
        for rows in group.segments:
            checkpoints.append(messages.copy())
            states = self._states(rows, joint) if rows.stop == group.starts[-1] else None
            segment, doubtful = self._forward(sequences, group, rows, messages, limits.threads, states)
            filtered_segments.append(segment)
            suspects.update(doubtful)
        errors, ratios = np.zeros(len(messages)), np.ones_like(messages)
        while filtered_segments and not suspects:
            segment, message = filtered_segments.pop(), checkpoints.pop()
            if not len(segment.states):
                states = self._states(segment.rows, joint)
                segment, _ = self._forward(sequences, group, segment.rows, message, limits.threads, states)
            errors += self._backward(sequences, group, segment, ratios, limits.threads)
            yield segment
        return suspects | _inaccurate(errors)

    def _smooth_whole(
        self, sequences: Sequences, group: _Group, limits: RunLimits, joint: Floats | None
    ) -> tuple[SegmentStates, set[int]]:
        """Smooth whole sequences; also return the numbers of sequences with possible underflow."""
        rows, starts = group.segments[0], group.starts_in(group.segments[0])
        likelihoods = self._parameters.likelihoods(sequences, rows, sequences.firsts[rows])
        messages, states = self._starts_of(group), self._states(rows, joint)
        totals, underflows = np.empty(len(states)), np.zeros(len(messages), dtype=np.uint8)
        scales = np.empty(len(states))
        self._chain.smooth(
            likelihoods.table,
            likelihoods.rows,
            starts,
            messages,
            np.ones_like(messages),
            states,
            totals,
            scales,
            underflows,
            limits.threads,
        )
        segment, suspects = _filtered_segment(rows, likelihoods, starts, states, totals, underflows)
        errors = _errors(segment, likelihoods, starts, scales, is_first=True)
        return segment, {*suspects, *_inaccurate(errors)}

    def family_counts(self, sequences: Sequences, limits: RunLimits) -> FamilyCounts:
        """Return the expected counts of the families of the first slice and of later ones (Baum and others, 1970).

        Args:
            sequences: Observations.
            limits: Limits of the run.

        Raises:
            MemoryLimitError: The distributions of the joint states of all slices do not fit.
        """
        totals: FamilyCounts | None = None
        log_totals = np.empty(len(sequences.codes))
        for rows, batch in sequences.batches(max(1, _BATCH_CELLS // self.states)):
            counts = self._batch_counts(batch, limits)
            log_totals[rows] = counts.log_totals
            if totals is not None:
                for sums, more in zip(totals[:2], counts[:2], strict=True):
                    for table, addition in zip(sums, more, strict=True):
                        table += addition
            totals = totals or counts
        assert totals is not None
        return totals._replace(log_totals=log_totals)

    def _batch_counts(self, sequences: Sequences, limits: RunLimits) -> FamilyCounts:
        count = len(sequences.codes)
        limits.check_messages(self.states, 3 * count, count)
        filtered, smoothed = np.zeros((count, self.states)), np.zeros((count, self.states))
        totals = np.zeros(count)
        for segment in self._filter(sequences, limits, True, filtered):
            store_rows(filtered, segment.rows, segment.states)
            totals[segment.rows] = segment.log_totals
        for segment in self._smooth(sequences, limits, smoothed):
            store_rows(smoothed, segment.rows, segment.states)
        firsts = sequences.firsts
        axes, interface = len(self._parameters.sizes), self._parameters.network.interface
        start = smoothed[firsts].sum(axis=0).reshape(self._parameters.sizes)
        moves = self._moves(sequences, filtered, smoothed, limits.threads).reshape(self._parameters.sizes * 2)
        size = len(self._parameters.network.variables)
        initial, later = {}, {}
        for v in interface:
            initial[v] = _marginal(start, interface, self._parameters.network.initial.factors[v].scope)
            pair = (*interface, *(u + size for u in interface))
            later[v] = _marginal(moves, pair, self._parameters.network.transition.factors[v].scope)
        for v in self._parameters.leaves:
            scopes = (
                self._parameters.network.initial.factors[v].scope,
                self._parameters.network.transition.factors[v].scope,
            )
            for is_first, counts, scope in ((True, initial, scopes[0]), (False, later, scopes[1])):
                table = self._leaf_counts(v, sequences, smoothed, firsts == is_first, is_first)
                shift = 0 if is_first else size
                members = (v + shift, *(u + shift for u in interface))
                counts[v] = _marginal(
                    table.reshape(-1, *self._parameters.sizes) if axes else table[:, 0], members, scope
                )
        variables = range(size)
        return FamilyCounts([initial[v] for v in variables], [later[v] for v in variables], totals)

    def _moves(self, sequences: Sequences, filtered: Floats, smoothed: Floats, threads: int) -> Floats:
        """Return the expected number of transitions for each pair of joint states (previous, next)."""
        moves, lost = np.empty((self.states, self.states)), np.zeros(len(filtered), dtype=np.uint8)
        self._chain.count_moves(sequences.starts, filtered, smoothed, moves, lost, threads)
        # Predictions that underflow are computed again: their sequences are filtered again in logarithms.
        for row in np.flatnonzero(lost).tolist():
            first = int(sequences.starts[np.searchsorted(sequences.starts, row, side="right") - 1])
            messages, _ = self._log_messages(sequences, slice(first, row), True, self._parameters.log_start)
            columns = smoothed[row] > 0
            joint = (messages[-1][:, None] + self._parameters.log_transition)[:, columns]
            moves[:, columns] += np.exp(joint - np.logaddexp.reduce(joint, axis=0)) * smoothed[row, columns]
        return moves

    def _leaf_counts(
        self, v: int, sequences: Sequences, smoothed: Floats, chosen: NDArray[np.bool_], is_first: bool
    ) -> Floats:
        """Return the expected counts of pairs of a joint state and a state of a variable outside the interface.

        Args:
            v: The variable.
            sequences: Observations.
            smoothed: Distributions of the joint states of all slices.
            chosen: Slices that are counted, as a mask.
            is_first: True if these slices are the first ones of sequences.
        """
        emission = self._parameters.emission(v, is_first)[:-1]
        counts = np.zeros_like(emission)
        rows = np.flatnonzero(chosen)
        if v in sequences.columns:
            codes = sequences.codes[rows, sequences.columns.index(v)]
            seen, observed = rows[codes >= 0], codes[codes >= 0]
            for s in range(self.states):
                counts[:, s] = np.bincount(observed, smoothed[seen, s], minlength=len(counts))
            rows = rows[codes < 0]
        weights, logs = np.ones((len(rows), len(emission))), None
        if v in sequences.logs:
            logs = sequences.logs[v][rows]
            weights = scaled_likelihoods(logs)[0]
        quotients, lost = _quotients(smoothed[rows], weights @ emission)
        counts += emission * (weights.T @ quotients)
        for row in lost:
            counts += smoothed[rows[row]] * _shares_in_logs(emission, None if logs is None else logs[row])
        return counts

    def best_paths(self, sequences: Sequences, limits: RunLimits) -> tuple[dict[int, Ints], Floats]:
        """Return the most probable states of the interface, and the log-probability of each sequence with them.

        Args:
            sequences: Observations.
            limits: Limits of the run.
        """
        path, scores = np.zeros(len(sequences.codes), dtype=np.int32), np.zeros(len(sequences.starts) - 1)
        cells = self.states * limits.messages(self.states) // limits.threads
        filled = np.flatnonzero(np.diff(sequences.starts))
        numbers = iter(filled)
        for group in self._groups(sequences, limits):
            rows = slice(int(group.starts[0]), int(group.starts[-1]))
            likelihoods = self._parameters.log_likelihoods(sequences, rows, sequences.firsts[rows])
            group_scores = np.zeros(len(group.starts) - 1)
            self._best_path.run(
                likelihoods.table,
                likelihoods.rows,
                group.starts - rows.start,
                self._parameters.log_start,
                path[rows],
                group_scores,
                cells,
                limits.threads,
            )
            scores[[next(numbers) for _ in group_scores]] = group_scores
        interface, sizes = self._parameters.network.interface, self._parameters.sizes
        if len(sizes) < 2:
            return dict.fromkeys(interface, path), scores
        joint = np.unravel_index(path, sizes)
        return {v: states.astype(np.int32) for v, states in zip(interface, joint, strict=True)}, scores

    def _starts_of(self, group: _Group) -> Floats:
        return np.tile(self._parameters.start, (len(group.starts) - 1, 1))

    def _groups(self, sequences: Sequences, limits: RunLimits) -> Iterator[_Group]:
        """Yield groups of sequences that fit the memory together; split a sequence that does not fit into segments."""
        room = limits.messages(self.states)
        starts = sequences.starts
        filled = np.flatnonzero(np.diff(starts))
        begins, ends = starts[filled], starts[filled + 1]
        at = 0
        while at < len(filled):
            stop = max(at + 1, int(np.searchsorted(ends, begins[at] + room, side="right")))
            first, last = int(begins[at]), int(ends[stop - 1])
            span = last - first
            if span > room:
                span = max(room // 2, math.isqrt(span) + 1)
                limits.check_messages(self.states, span + (last - first) // span, last - first)
            segments = [slice(n, min(n + span, last)) for n in range(first, last, span)]
            yield _Group(np.append(begins[at:stop], last), segments)
            at = stop

    def _forward(
        self,
        sequences: Sequences,
        group: _Group,
        rows: slice,
        messages: Floats,
        threads: int,
        states: Floats | None,
    ) -> tuple[SegmentStates, list[int]]:
        """Filter a segment, and return the sequences with possible underflow.

        Args:
            sequences: Observations.
            group: Sequences of the segment.
            rows: Slices of the segment.
            messages: Distributions before the segment; they become those of its last slices.
            threads: Number of threads.
            states: Array for the distributions; None if they are not asked for.
        """
        likelihoods = self._parameters.likelihoods(sequences, rows, sequences.firsts[rows])
        is_first = bool(rows.start == group.starts[0])
        return self._run_forward(rows, likelihoods, group.starts_in(rows), is_first, messages, threads, states)

    def _run_forward(
        self,
        rows: slice,
        likelihoods: Likelihoods,
        starts: NDArray[np.int64],
        is_first: bool,
        messages: Floats,
        threads: int,
        states: Floats | None,
    ) -> tuple[SegmentStates, list[int]]:
        table, table_rows, _ = likelihoods
        totals, underflows = np.empty(len(table_rows)), np.zeros(len(messages), dtype=np.uint8)
        self._chain.forward(table, table_rows, starts, is_first, messages, states, totals, underflows, threads)
        kept = np.empty((0, self.states)) if states is None else states
        return _filtered_segment(rows, likelihoods, starts, kept, totals, underflows)

    def _backward(
        self, sequences: Sequences, group: _Group, segment: SegmentStates, ratios: Floats, threads: int
    ) -> Floats:
        """Smooth a segment in place; return its contribution to the error in each sequence's log-probability.

        Args:
            sequences: Observations.
            group: Sequences of the segment.
            segment: The filtered segment.
            ratios: Likelihoods of the observations after the segment; replaced by those from the segment's start on.
            threads: Number of threads.
        """
        likelihoods = self._parameters.likelihoods(sequences, segment.rows, sequences.firsts[segment.rows])
        scales = np.empty(len(likelihoods.rows))
        starts, is_first = group.starts_in(segment.rows), bool(segment.rows.start == group.starts[0])
        self._chain.backward(
            likelihoods.table, likelihoods.rows, starts, is_first, ratios, segment.states, scales, threads
        )
        return _errors(segment, likelihoods, starts, scales, is_first=is_first)

    # --- passes in logarithms, which keep small numbers ---

    def _forward_in_logs(
        self, sequences: Sequences, rows: slice, is_first: bool, message: Floats
    ) -> tuple[SegmentStates, Floats]:
        """Filter slices of one sequence in logarithms; return the segment, and the logarithms of its last message."""
        states, totals = self._log_messages(sequences, rows, is_first, message)
        return SegmentStates(rows, np.exp(states), totals), states[-1]

    def _log_messages(
        self, sequences: Sequences, rows: slice, is_first: bool, message: Floats
    ) -> tuple[Floats, Floats]:
        """Return logarithms of filtered distributions, and of the probability of each slice's observations.

        From an impossible slice on, both are minus infinity.
        """
        firsts = np.zeros(rows.stop - rows.start, dtype=bool)
        firsts[0] = is_first
        table, table_rows, _ = self._parameters.log_likelihoods(sequences, rows, firsts)
        states, totals = np.full((len(table_rows), self.states), -np.inf), np.full(len(table_rows), -np.inf)
        for t, table_row in enumerate(table_rows.tolist()):
            if t or not is_first:
                message = np.logaddexp.reduce(message[:, None] + self._parameters.log_transition, axis=0)
            message = message + table[table_row]
            totals[t] = np.logaddexp.reduce(message)
            if totals[t] == -np.inf:
                break
            states[t] = message = message - totals[t]
        return states, totals

    def _smooth_in_logs(self, sequences: Sequences, rows: slice, limits: RunLimits) -> SegmentStates:
        """Smooth one sequence in logarithms; return zeros if its observations are impossible."""
        limits.check_messages(self.states, 2 * (rows.stop - rows.start), rows.stop - rows.start)
        states, totals = self._log_messages(sequences, rows, True, self._parameters.log_start)
        if totals[-1] == -np.inf:
            return SegmentStates(rows, np.zeros_like(states), totals)
        firsts = np.zeros(len(totals), dtype=bool)
        firsts[0] = True
        table, table_rows, _ = self._parameters.log_likelihoods(sequences, rows, firsts)
        ratio = np.zeros(self.states)
        for t in reversed(range(len(totals))):
            states[t] += ratio
            states[t] -= np.logaddexp.reduce(states[t])
            if t:
                ratio = np.logaddexp.reduce(self._parameters.log_transition + (table[table_rows[t]] + ratio), axis=1)
                ratio -= ratio.max()
        return SegmentStates(rows, np.exp(states), totals)

    # --- variables ---

    def _marginals(
        self, segment: SegmentStates, variables: Sequence[int], sequences: Sequences, firsts: NDArray[np.bool_]
    ) -> dict[int, Floats]:
        """Return variables' distributions from those of joint states: variable -> shape ``(slices, size)``."""
        joint = segment.states.reshape(-1, *self._parameters.sizes)
        answers = {}
        for v in variables:
            if v in self._parameters.network.interface:
                axis = self._parameters.network.interface.index(v) + 1
                others = tuple(a for a in range(1, joint.ndim) if a != axis)
                # With no axis to sum over, ``sum`` would copy the array.
                answers[v] = joint.sum(axis=others) if others else joint
            else:
                answers[v] = self._leaf_marginals(v, segment, firsts, sequences)
        return answers

    def _leaf_marginals(
        self, v: int, segment: SegmentStates, firsts: NDArray[np.bool_], sequences: Sequences
    ) -> Floats:
        """Return the distributions of a variable outside the interface."""
        shares = np.empty((len(segment.states), self._parameters.network.variables[v].size))
        for is_first, chosen in self._parameters.split(firsts):
            emission, states = self._parameters.emission(v, is_first)[:-1], segment.states[chosen]
            weights, logs = np.ones((1, len(emission))), None
            if v in sequences.logs:
                logs = sequences.logs[v][segment.rows][chosen]
                weights = scaled_likelihoods(logs)[0]
            quotients, lost = _quotients(states, weights @ emission)
            shares_of_flag = quotients @ emission.T * weights
            for row in lost:
                shares_of_flag[row] = _shares_in_logs(emission, None if logs is None else logs[row]) @ states[row]
            shares[chosen] = shares_of_flag
        if v in sequences.columns:
            codes = sequences.codes[segment.rows, sequences.columns.index(v)]
            is_observed = codes >= 0
            masses = segment.states[is_observed].sum(axis=1)
            shares[is_observed] = 0.0
            shares[is_observed, codes[is_observed]] = masses
        return shares


def _quotients(states: Floats, masses: Floats) -> tuple[Floats, NDArray[np.intp]]:
    """Return distributions of joint states divided by their masses, and the rows in which a mass may have underflowed.

    These rows, and quotients of states without a mass, are zeros.
    """
    with np.errstate(over="ignore"):
        quotients: Floats = np.divide(states, masses, out=np.zeros_like(states), where=masses > 0)
    lost = np.flatnonzero(((states > 0) & (masses < _MIN_MASS)).any(axis=1))
    quotients[lost] = 0.0
    return quotients, lost


def _shares_in_logs(emission: Floats, logs: Floats | None) -> Floats:
    """Return the distribution of a variable's states given each joint state (columns) and likelihoods.

    Args:
        emission: The distribution without the likelihoods.
        logs: Natural logarithms of the likelihoods; None if there are none.
    """
    with np.errstate(divide="ignore"):
        joint = np.log(emission) + (0.0 if logs is None else logs[:, None])
    highs = joint.max(axis=0)
    shares = np.exp(joint - np.where(np.isneginf(highs), 0.0, highs))
    totals = shares.sum(axis=0)
    quotients: Floats = np.divide(shares, totals, out=np.zeros_like(shares), where=totals > 0)
    return quotients


def _filtered_segment(
    rows: slice,
    likelihoods: Likelihoods,
    starts: NDArray[np.int64],
    states: Floats,
    totals: Floats,
    underflows: NDArray[np.uint8],
) -> tuple[SegmentStates, list[int]]:
    """Return a segment after the forward pass, and the sequences with possible underflow."""
    suspects = np.flatnonzero(underflows | (np.minimum.reduceat(totals, starts[:-1]) < _LEAST_TOTAL)).tolist()
    # The logarithms overwrite the array, because allocating a new one would take as long as computing them.
    with np.errstate(divide="ignore"):
        log_totals = np.log(totals, out=totals)
    if likelihoods.scales is not None:
        log_totals += likelihoods.scales
    return SegmentStates(rows, states, log_totals), suspects


def _errors(
    segment: SegmentStates, likelihoods: Likelihoods, starts: NDArray[np.int64], scales: Floats, *, is_first: bool
) -> Floats:
    """Return the segment's contribution to the difference between each sequence's log-probabilities in both passes."""
    with np.errstate(divide="ignore", invalid="ignore"):
        differences = np.log(scales, out=scales)
        first_logs = differences[starts[:-1]]
        differences -= segment.log_totals
        if likelihoods.scales is not None:
            differences += likelihoods.scales
        if is_first:
            # The first message already includes the observations of the first slice, so their total is not subtracted.
            differences[starts[:-1]] = first_logs
        return np.add.reduceat(differences, starts[:-1])


def _inaccurate(errors: Floats) -> set[int]:
    """Return the numbers of sequences whose log-probabilities differ between the two passes."""
    return set(np.flatnonzero(~(np.abs(errors) < _MAX_LOG_ERROR)).tolist())


def _marginal(counts: Floats, members: Sequence[int], scope: Sequence[int]) -> Floats:
    """Return the table over ``scope``: sum ``counts``, whose axes are ``members``, over all other axes."""
    axes = [members.index(v) for v in scope]
    summed: Floats = counts.sum(axis=tuple(axis for axis in range(counts.ndim) if axis not in axes))
    return summed.transpose(np.argsort(np.argsort(axes)))
