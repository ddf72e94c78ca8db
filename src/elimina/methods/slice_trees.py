"""Passes over the slices of a dynamic network by the interface algorithm (Murphy 2002, "Dynamic Bayesian networks").

Two junction trees are planned, one for the first slice and one for later slices, and one of them runs for each slice.
The interface consists of the variables with children in the next slice. An auxiliary variable represents its joint
states. A message is the posterior of this variable in one slice's tree, and becomes its likelihood in an adjacent
slice's tree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from elimina.errors import MemoryLimitError
from elimina.methods.junction_tree import JunctionTree
from elimina.methods.observed_sequences import Floats, Ints, Message, RunLimits, Sequences, SliceAnswers
from elimina.model.dynamic_network import DynamicNetwork
from elimina.model.model import Model
from elimina.model.table import Table
from elimina.model.variable import Variable
from elimina.number_texts import bytes_text, count_text
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.options import replace
from elimina.running.host import host_memory
from elimina.system import cached_property

Observation = int | Floats

_SMALL = 1e-280
"""Weights of joint states below this number may lose digits or underflow."""

_RELEVANT, _LEVEL = -40.0, 300.0
"""Joint states are ignored if the logarithm of their probability, relative to the largest one, is below the first
number. The second number is the largest difference between the logarithms of weights in one run of a tree."""

_MAX_PATTERNS = 1024
"""Largest number of combinations of observations whose reachable joint states are cached."""

_PAIRS_MEMORY_SHARE = 0.125
"""Share of the memory for a table of pairs of joint states if messages are logarithms."""


class SliceTree:
    """The junction tree of a slice.

    Args:
        network: The network of the slice.
        is_first: True for the first slice.
        options: Options of the tree.
        has_moves: True if ``moves`` will be called.
    """

    def __init__(
        self, network: DynamicNetwork, is_first: bool, options: CheckedOptions, *, has_moves: bool = False
    ) -> None:
        source = network.initial if is_first else network.transition
        count = len(network.variables)
        self._shift = 0 if is_first else count
        variables, factors = list(source.variables), list(source.factors)
        used = {v for factor in factors for v in factor.scope}
        self._after = self._join(variables, factors, [self._shift + v for v in network.interface], "interface")
        self._before = None
        if not is_first:
            self._before = self._join(variables, factors, network.interface, "previous interface")
        self._states = math.prod(network.variables[v].size for v in network.interface)
        self._pair = None
        if has_moves and network.interface:
            members = [*network.interface, *(self._shift + v for v in network.interface)]
            self._pair = self._join(variables, factors, members, "both interfaces")
        # Variables of the previous slice that no factor uses are left out.
        kept = [v for v in range(len(variables)) if v in used or v >= self._shift]
        number_of = {v: n for n, v in enumerate(kept)}
        tables = [factor.over([number_of[v] for v in factor.scope]) for factor in factors]
        self._tree = JunctionTree(
            Model([variables[v] for v in kept], tables, sense="probability"), options=replace(options, exact=True)
        )
        self._number_of = number_of
        self._names = [source.variables[self._shift + v].name for v in range(count)]

    @staticmethod
    def _join(variables: list[Variable], factors: list[Table], members: Sequence[int], name: str) -> int | None:
        """Return a variable for the members' joint states, a new one for several members; None without members."""
        if len(members) < 2:
            return members[0] if members else None
        sizes = [variables[v].size for v in members]
        names = {v.name for v in variables}
        while name in names:
            name += "'"
        joint = len(variables)
        variables.append(Variable(name, math.prod(sizes)))
        for v, states in zip(members, np.indices(sizes).reshape(len(sizes), -1), strict=True):
            factors.append(Table([joint, v], (states[:, None] == np.arange(variables[v].size)).astype(np.float64)))
        return joint

    def observe(
        self, before: Floats | None, observations: Mapping[int, Observation], after: Floats | int | None = None
    ) -> None:
        """Set the messages to the interfaces, and the observations of the slice.

        Args:
            before: Weights of the joint states of the previous slice's interface.
            observations: Variable of the slice -> index of its state, or likelihoods.
            after: Weights of the joint states of this slice's interface, or the index of its only possible joint state.
        """
        weights: dict[int, list[Observation]] = {}
        for v, observation in observations.items():
            weights.setdefault(self._number_of[v + self._shift], []).append(observation)
        for joint, message in ((self._before, before), (self._after, after)):
            if joint is not None and message is not None:
                weights.setdefault(self._number_of[joint], []).append(message)
        sizes = self._tree.model.sizes
        states = {
            v: _product(sizes[v], observed) if len(observed) > 1 else observed[0] for v, observed in weights.items()
        }
        model = self._tree.model
        self._tree.set_evidence({model.variables[v].name: _evidence(model, v, state) for v, state in states.items()})

    @property
    def log_sum(self) -> float:
        """Natural logarithm of the sum of the tree's products."""
        return self._tree.log_evidence

    def marginals(self, variables: Sequence[int]) -> list[Floats]:
        """Return the posteriors of variables of the slice."""
        names = [self._names[v] for v in variables]
        tables = self._tree.marginals(names)
        return [tables[name].array for name in names]

    def interface_marginal(self, *, before: bool = False) -> Floats:
        """Return the posterior of the slice's interface or, with ``before``, of the previous one; 1 if it is empty."""
        joint = self._before if before else self._after
        return np.ones(1) if joint is None else self._marginal(joint)

    def moves(self) -> Floats:
        """Return the joint posterior of the previous slice's interface (rows) and this slice's interface (columns)."""
        if self._pair is None:
            return self.interface_marginal()[None]
        return self._marginal(self._pair).reshape(self._states, -1)

    def _marginal(self, joint: int) -> Floats:
        name = self._tree.model.variables[self._number_of[joint]].name
        return self._tree.marginals([name])[name].array


def _evidence(model: Model, v: int, observation: Observation) -> object:
    return model.variables[v].state(observation) if isinstance(observation, int) else observation


def _product(size: int, observations: Sequence[Observation]) -> Floats:
    """Return the product of several observations of one variable, as likelihoods."""
    product = np.ones(size)
    for observation in observations:
        product *= np.eye(1, size, observation)[0] if isinstance(observation, int) else observation
    return product


class SliceTrees:
    """The junction trees of a dynamic network with any interface.

    Args:
        network: The network.
        options: Options of the trees.
    """

    def __init__(self, network: DynamicNetwork, options: CheckedOptions) -> None:
        self._network, self._options = network, options
        self._first, self._later = SliceTree(network, True, options), SliceTree(network, False, options)
        self._states = math.prod(network.variables[v].size for v in network.interface)
        self._has_pairs = 8 * self._states**2 <= _PAIRS_MEMORY_SHARE * host_memory(options)
        self._reachable: dict[object, NDArray[np.bool_]] = {}

    def filtered(
        self,
        sequences: Sequences,
        limits: RunLimits,
        marginals: Mapping[int, Floats],
        *,
        keeps_states: bool = True,
    ) -> Iterator[SliceAnswers]:
        """Yield the posteriors given the observations so far, slice by slice.

        Args:
            sequences: Observations.
            limits: Limits of the run; not used, because only one message is in memory at a time.
            marginals: Arrays for the posteriors of the queried variables; the caller fills them.
            keeps_states: False if only the probabilities of the observations are requested.
        """
        variables = tuple(marginals) if keeps_states else ()
        for first, last in sequences.ends:
            message: Message | None = None
            for row in range(first, last):
                message, log_total, tables = self.advance(message, sequences, row, variables)
                yield SliceAnswers(slice(row, row + 1), tables, np.array([log_total]))
                if log_total == -math.inf:
                    yield _impossible(self._network, slice(row, last), variables)
                    break

    def advance(
        self, message: Message | None, sequences: Sequences, row: int, variables: Sequence[int]
    ) -> tuple[Message, float, dict[int, Floats]]:
        """Filter one more slice.

        Args:
            message: Message before the slice; None for the first one.
            sequences: Observations.
            row: Index of the slice.
            variables: The queried variables.

        Returns:
            The message after the slice, the logarithm of the probability of its observations, and posteriors, which are
            zeros if the observations are impossible.
        """
        if message is not None and message.is_logarithmic:
            return self._advance_in_logs(message, sequences, row, variables)
        tree = self._tree_at(sequences, row, message, None)
        log_total = tree.log_sum
        if log_total == -math.inf:
            return Message(np.zeros(self._states)), log_total, _zeros(self._network, 1, variables)
        marginals = dict(zip(variables, (table[None] for table in tree.marginals(variables)), strict=True))
        after = tree.interface_marginal()
        if self._has_pairs and (after < _SMALL).any() and self._is_lossy(message, after, sequences, row):
            logs = self._log_message(message, self._log_moves(message, sequences, row))
            return Message(logs, is_logarithmic=True), log_total + sequences.log_scale(row), marginals
        return Message(after), log_total + sequences.log_scale(row), marginals

    def _is_lossy(self, before: Message | None, after: Floats, sequences: Sequences, row: int) -> bool:
        """Return whether the weight of a possible joint state may be too small for floating point."""
        evidence = sequences.evidence(row)
        support = None if before is None else before.weights > 0
        is_plain = all(isinstance(observation, int) for observation in evidence.values())
        key = (None if support is None else support.tobytes(), *evidence.items()) if is_plain else None
        reachable = self._reachable.get(key) if is_plain else None
        if reachable is None:
            tree = self._first if before is None else self._later
            tree.observe(None if support is None else support.astype(np.float64), evidence)
            reachable = tree.interface_marginal() > 0
            if is_plain and len(self._reachable) < _MAX_PATTERNS:
                self._reachable[key] = reachable
        return bool(((after < _SMALL) & reachable).any())

    def _advance_in_logs(
        self, message: Message, sequences: Sequences, row: int, variables: Sequence[int]
    ) -> tuple[Message, float, dict[int, Floats]]:
        """Filter one more slice as ``advance`` does, with the logarithms of weights that are too small for floats."""
        moves = self._log_moves(message, sequences, row)
        if moves is None:
            return Message(np.zeros(self._states)), -math.inf, _zeros(self._network, 1, variables)
        total = float(np.logaddexp.reduce(message.weights[:, None] + moves, axis=None))
        if total == -math.inf:
            return Message(np.zeros(self._states)), -math.inf, _zeros(self._network, 1, variables)
        marginals = self._marginals_in_logs(message, moves, np.zeros(self._states), sequences, row, variables)
        after = Message(self._log_message(message, moves), is_logarithmic=True)
        return after, total + sequences.log_scale(row), marginals

    def _log_moves(self, before: Message | None, sequences: Sequences, row: int) -> Floats | None:
        """Return logarithms of a slice's sums for joint states of the previous (rows) and its own interface (columns).

        The result is None if all sums are 0.
        """
        tree = self._first if before is None else self._moves
        tree.observe(None, sequences.evidence(row))
        if (log_sum := tree.log_sum) == -math.inf:
            return None
        with np.errstate(divide="ignore"):
            logs: Floats = np.log(tree.moves()) + log_sum
        return logs

    @staticmethod
    def _log_message(before: Message | None, moves: Floats | None) -> Floats:
        """Return the logarithms of the message after a slice, normalised."""
        assert moves is not None
        logs: Floats = np.logaddexp.reduce(moves if before is None else before.logs[:, None] + moves, axis=0)
        logs -= np.logaddexp.reduce(logs)
        return logs

    def _marginals_in_logs(
        self,
        before: Message | None,
        moves: Floats,
        after: Floats,
        sequences: Sequences,
        row: int,
        variables: Sequence[int],
    ) -> dict[int, Floats]:
        """Return the posteriors of variables of a slice.

        Args:
            before: Message before the slice.
            moves: Logarithms of the slice's sums from ``_log_moves``.
            after: Logarithms of the likelihoods of later observations for each joint state.
            sequences: Observations.
            row: Index of the slice.
            variables: The queried variables.
        """
        logs = np.zeros(1) if before is None else before.logs
        joint = logs[:, None] + moves + after
        relevant = joint > joint.max() + _RELEVANT
        rows, tree = np.flatnonzero(relevant.any(axis=1)), self._first if before is None else self._later
        # States of the previous slice are grouped by the magnitude of their weights, so that each group fits floating
        # point.
        levels = ((logs[rows].max() - logs[rows]) // _LEVEL).astype(np.int64)
        posteriors = {v: np.zeros((1, self._network.variables[v].size)) for v in variables}
        for level in np.unique(levels).tolist():
            members = relevant & np.isin(np.arange(len(logs)), rows[levels == level])[:, None]
            share = np.exp(np.logaddexp.reduce(joint[members]) - np.logaddexp.reduce(joint[relevant]))
            weights = None if before is None else _scaled(logs, members.any(axis=1))
            tree.observe(weights, sequences.evidence(row), _scaled(after, members.any(axis=0)))
            for v, table in zip(variables, tree.marginals(variables), strict=True):
                posteriors[v] += share * table
        return posteriors

    def _tree_at(
        self, sequences: Sequences, row: int, message: Message | None, after: Floats | int | None
    ) -> SliceTree:
        """Return the tree of a slice with its messages and observations set."""
        tree = self._first if message is None else self._later
        tree.observe(None if message is None else message.weights, sequences.evidence(row), after)
        return tree

    def smoothed(
        self, sequences: Sequences, limits: RunLimits, marginals: Mapping[int, Floats]
    ) -> Iterator[SliceAnswers]:
        """Yield the posteriors given all observations; a later answer for a slice replaces an earlier one.

        Args:
            sequences: Observations.
            limits: Limits of the run.
            marginals: See ``filtered``.
        """
        for first, last in sequences.ends:
            yield from self._smooth(sequences, first, last, limits, tuple(marginals))

    def _smooth(
        self, sequences: Sequences, first: int, last: int, limits: RunLimits, variables: Sequence[int]
    ) -> Iterator[SliceAnswers]:
        messages = _Messages(first, last, self._states, limits)
        message: Message | None = None
        totals = []
        for row in range(first, last):
            messages.store(row, message)
            message, log_total, _ = self.advance(message, sequences, row, ())
            totals.append(log_total)
            if log_total == -math.inf:
                yield _impossible(self._network, slice(first, last), variables)
                yield SliceAnswers(slice(first, row + 1), {}, np.array(totals))
                return
        assert message is not None
        if message.is_logarithmic:
            yield from self._smooth_in_logs(sequences, messages, np.array(totals), slice(first, last), variables)
            return
        ratio: Floats | None = None
        for row in reversed(range(first, last)):
            before = messages.at(row, lambda m, n: self.advance(m, sequences, n, ())[0])
            tree = self._tree_at(sequences, row, before, ratio)
            marginals = {v: table[None] for v, table in zip(variables, tree.marginals(variables), strict=True)}
            yield SliceAnswers(slice(row, row + 1), marginals, np.array([totals[row - first]]))
            if before is not None:
                tree.observe(None, sequences.evidence(row), ratio)
                ratio = tree.interface_marginal(before=True)

    def _smooth_in_logs(
        self, sequences: Sequences, messages: _Messages, totals: Floats, rows: slice, variables: Sequence[int]
    ) -> Iterator[SliceAnswers]:
        """Yield the posteriors of one sequence from the messages of the forward pass, the last slice first."""
        ratio = np.zeros(self._states)
        for row in reversed(range(rows.start, rows.stop)):
            before = messages.at(row, lambda m, n: self.advance(m, sequences, n, ())[0])
            moves = self._log_moves(before, sequences, row)
            assert moves is not None
            marginals = self._marginals_in_logs(before, moves, ratio, sequences, row, variables)
            yield SliceAnswers(slice(row, row + 1), marginals, totals[row - rows.start : row - rows.start + 1])
            ratio = np.logaddexp.reduce(moves + ratio, axis=1)
            ratio = ratio - ratio.max()

    def best_paths(self, sequences: Sequences, limits: RunLimits) -> tuple[dict[int, Ints], Floats]:
        """Return the most probable states of the interface, and the log-probability of each sequence with these states.

        Raises:
            MemoryLimitError: The table of pairs of joint states does not fit.
        """
        needed = 8 * self._states**2
        if needed > limits.memory:
            raise MemoryLimitError(
                f"the most probable states need a table of {count_text(self._states**2)} pairs of joint states of the "
                f"interface ({bytes_text(needed)}), and {bytes_text(limits.memory)} may be used: give more memory, or "
                "ask for the most probable states of all variables, JunctionTree(model.unroll(n)).mpe()"
            )
        path, scores = np.zeros(len(sequences.codes), dtype=np.int32), np.zeros(len(sequences.starts) - 1)
        for number in np.flatnonzero(np.diff(sequences.starts)).tolist():
            first, last = (int(n) for n in sequences.starts[number : number + 2])
            scores[number] = self._find_best_path(sequences, first, last, limits, path)
        joint = np.unravel_index(path, [self._network.variables[v].size for v in self._network.interface] or [1])
        return {v: s.astype(np.int32) for v, s in zip(self._network.interface, joint, strict=False)}, scores

    def _find_best_path(self, sequences: Sequences, first: int, last: int, limits: RunLimits, path: Ints) -> float:
        """Write the most probable joint states of one sequence to ``path``; return the logarithm of their probability.

        For an impossible sequence, the result is minus infinity, and nothing is written.
        """
        messages = _Messages(first, last, self._states, limits)
        message: Message | None = None
        score = 0.0
        for row in range(first, last):
            messages.store(row, message)
            message, log_best = self._best_message(message, sequences, row)
            score += log_best
            if score == -math.inf:
                return score
        assert message is not None
        path[last - 1] = message.weights.argmax()
        for row in reversed(range(first + 1, last)):
            before = messages.at(row, lambda m, n: self._best_message(m, sequences, n)[0])
            assert before is not None
            self._later.observe(None, sequences.evidence(row), int(path[row]))
            with np.errstate(divide="ignore"):
                moves = np.log(self._later.interface_marginal(before=True))
            path[row - 1] = (before.weights + moves).argmax()
        return score

    def _best_message(self, message: Message | None, sequences: Sequences, row: int) -> tuple[Message, float]:
        """Return the log-probability of the best path to each joint state, relative to the largest; and the largest.

        The previous slice's message is added outside the tree, so only the numbers of a single slice have to fit
        floating point.
        """
        moves = self._log_moves(message, sequences, row)
        if moves is None:
            return Message(np.full(self._states, -np.inf), is_logarithmic=True), -math.inf
        weights = (moves if message is None else message.weights[:, None] + moves).max(axis=0)
        highest = float(weights.max())
        if highest == -math.inf:
            return Message(weights, is_logarithmic=True), highest
        return Message(weights - highest, is_logarithmic=True), highest + sequences.log_scale(row)

    @cached_property
    def _moves(self) -> SliceTree:
        return SliceTree(self._network, False, self._options, has_moves=True)


class _Messages:
    """Messages before the slices of a sequence; if they do not all fit, some are stored and the others recomputed.

    Args:
        first: First slice of the sequence.
        last: End of the sequence.
        states: Length of a message.
        limits: Limits of the run.
    """

    def __init__(self, first: int, last: int, states: int, limits: RunLimits) -> None:
        count, self._first = last - first, first
        self._span = 1 if count <= limits.messages(states) else math.isqrt(count) + 1
        limits.check_messages(states, count // self._span + self._span, count)
        self._kept: dict[int, Message | None] = {}
        self._segment: dict[int, Message | None] = {}

    def store(self, number: int, message: Message | None) -> None:
        """Store a message if it is the first one of a segment."""
        if (number - self._first) % self._span == 0:
            self._kept[number] = message

    def at(self, number: int, advance: Callable[[Message | None, int], Message]) -> Message | None:
        """Return a message, or None before the first slice; if it is not stored, its segment's messages are recomputed.

        Args:
            number: Number of the slice after the message.
            advance: Function that returns the message after a slice, from the message before it and the slice's number.
        """
        if number in self._kept and self._span == 1:
            return self._kept[number]
        if number not in self._segment:
            begin = number - (number - self._first) % self._span
            self._segment = {begin: self._kept[begin]}
            for n in range(begin, number):
                self._segment[n + 1] = advance(self._segment[n], n)
        return self._segment[number]


def _scaled(logs: Floats, is_relevant: NDArray[np.bool_]) -> Floats:
    """Return weights from logarithms, scaled to a largest relevant weight of 1; irrelevant weights become 0."""
    weights = np.zeros(len(logs))
    weights[is_relevant] = np.exp(logs[is_relevant] - logs[is_relevant].max())
    return weights


def _impossible(network: DynamicNetwork, rows: slice, variables: Sequence[int]) -> SliceAnswers:
    """Return the answers for slices of an impossible sequence."""
    count = rows.stop - rows.start
    return SliceAnswers(rows, _zeros(network, count, variables), np.full(count, -np.inf))


def _zeros(network: DynamicNetwork, count: int, variables: Sequence[int]) -> dict[int, Floats]:
    return {v: np.zeros((count, network.variables[v].size)) for v in variables}
