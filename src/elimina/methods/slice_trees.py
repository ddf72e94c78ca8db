"""Passes over the slices of a dynamic network by the interface algorithm (Murphy 2002, "Dynamic Bayesian networks").

Two junction trees are planned, one for the first slice and one for later slices, and one of them runs for each slice.
The interface consists of the variables with children in the next slice. An auxiliary variable represents its joint
states. A message is the posterior of this variable in one slice's tree, and becomes its likelihood in an adjacent
slice's tree.
"""

from __future__ import annotations

import math
import sys
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
from elimina.planning.machine import KEPT_TREE_RUNS
from elimina.planning.options import replace
from elimina.problem.evidence import LogWeights
from elimina.problem.preparation import prepare, with_units
from elimina.running.plan_choice import plan_problem
from elimina.running.planned_problem import PlannedProblem
from elimina.running.propagator import Propagator
from elimina.system import cached_property

Observation = int | Message

_SMALL_WEIGHTS = {"float32": 1e-30}
"""Number type of a tree -> number below which weights of joint states may lose digits or underflow."""

_SMALL_WEIGHT = 1e-280
"""Number below which weights of joint states of float64 may lose digits or underflow."""

_MIN_ORDINARY_SHARE = 1e-12
"""Tables whose least positive number is at least this share of the largest one are ordinary: floats lose digits only if
the least numbers of over 20 such tables are multiplied."""

_MAX_PATTERNS = 1024
"""Largest number of combinations of observations whose possible joint states are cached."""


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
        self._options = replace(options, exact=True)
        self._tree = JunctionTree(
            Model([variables[v] for v in kept], tables, sense="probability"), options=self._options
        )
        self._number_of = number_of
        self._names = [source.variables[self._shift + v].name for v in range(count)]
        self._small = _SMALL_WEIGHTS.get(options.dtype or "", _SMALL_WEIGHT)
        shares = [_least_share(factor) for factor in source.factors]
        self._least_product = math.prod(share for share in shares if share < _MIN_ORDINARY_SHARE)
        self._observed: dict[int, list[Observation]] = {}
        self._is_logarithmic = False
        self._log_scale = self._fixed_log_sum = 0.0
        self._possible: dict[object, NDArray[np.bool_]] = {}

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
        self,
        before: Message | None,
        observations: Mapping[int, int | Floats],
        after: Message | int | None = None,
    ) -> None:
        """Set the messages to the interfaces, and the observations of the slice.

        Args:
            before: Weights of the joint states of the previous slice's interface.
            observations: Variable of the slice -> index of its state, or logarithms of likelihoods.
            after: Weights of the joint states of this slice's interface, or the index of its only possible joint state.
        """
        observed: dict[int, list[Observation]] = {}
        self._log_scale, self._is_logarithmic = 0.0, False
        for v, observation in observations.items():
            items = observed.setdefault(self._number_of[v + self._shift], [])
            if isinstance(observation, int):
                items.append(observation)
                continue
            # Likelihoods are scaled to a largest one of 1, so that a tree without logarithms can use them.
            peak = max(float(observation.max(initial=-math.inf)), -sys.float_info.max)
            self._log_scale += peak
            items.append(Message(observation - peak, is_logarithmic=True))
        for joint, message in ((self._before, before), (self._after, after)):
            if joint is not None and message is not None:
                observed.setdefault(self._number_of[joint], []).append(message)
        self._observed = observed
        model = self._tree.model
        evidence: dict[str, object] = {}
        least_product = self._least_product
        for v, items in observed.items():
            variable, first = model.variables[v], items[0]
            if len(items) == 1 and isinstance(first, int):
                evidence[variable.name] = variable.state(first)
                continue
            weights = math.prod([_weights(item, variable.size) for item in items], start=np.ones(variable.size))
            if weights.min() < self._small and ((weights < self._small) & _possible(items, variable.size)).any():
                self._observe_logarithms()
                return
            least_product *= weights.min(initial=1.0, where=weights > 0)
            evidence[variable.name] = weights
        if least_product < self._small:
            # Products of weights and tables may fall below the least normal float, where they lose digits.
            self._observe_logarithms()
            return
        self._make_room_for_tree()
        self._tree.set_evidence(evidence)

    def _make_room_for_tree(self) -> None:
        """Release the memory of logarithms if it leaves no room for the tree without them."""
        if "_propagator" in vars(self):
            plan, logarithms = self._tree.plan, self._planned_logarithms.plan
            if plan.peak_bytes + logarithms.peak_bytes > plan.memory_limit:
                vars(self).pop("_propagator").close()

    @cached_property
    def _planned_logarithms(self) -> PlannedProblem:
        options = replace(self._options, dtype="float64")
        problem = prepare(with_units(self._tree.model), "mar", {})
        return plan_problem(problem, options, runs=KEPT_TREE_RUNS)

    @cached_property
    def _propagator(self) -> Propagator:
        """A propagator of logarithms, without underflow."""
        return Propagator(self._planned_logarithms, "log-sum-exp")

    @cached_property
    def _outputs(self) -> dict[int, int]:
        """Variable -> output of ``_propagator``; variables of one state have none."""
        outputs = self._planned_logarithms.plan.outputs
        return {output.scope[0]: n for n, output in enumerate(outputs) if output.scope}

    def _observe_logarithms(self) -> None:
        """Answer further questions about the current observations by logarithms."""
        self._is_logarithmic = True
        self._tree.make_room(self._planned_logarithms.plan.peak_bytes)
        sizes, evidence = self._tree.model.sizes, {}
        self._fixed_log_sum = 0.0
        for v, items in self._observed.items():
            logs = sum((_logs(item, sizes[v]) for item in items), np.zeros(sizes[v]))
            if sizes[v] > 1:
                evidence[v] = LogWeights(logs)
            else:
                self._fixed_log_sum += float(logs[0])
        self._propagator.observe(evidence)

    @property
    def log_sum(self) -> float:
        """Natural logarithm of the sum of the tree's products."""
        if not self._is_logarithmic:
            return self._tree.log_evidence + self._log_scale
        answer = self._propagator.run([])
        if not answer.is_possible:
            return -math.inf
        return float(answer.log_sum) + self._fixed_log_sum + self._log_scale

    def marginals(self, variables: Sequence[int]) -> list[Floats]:
        """Return the posteriors of variables of the slice."""
        if self._is_logarithmic:
            return [np.exp(self._log_table(self._number_of[v + self._shift])) for v in variables]
        names = [self._names[v] for v in variables]
        tables = self._tree.marginals(names)
        return [tables[name].array for name in names]

    def message(self, *, before: bool = False) -> Message:
        """Return the posterior of the slice's interface or, with ``before``, of the previous one; 1 if it is empty."""
        return self._message(self._before if before else self._after)

    def moves(self) -> Floats:
        """Return logarithms of the joint posterior of the previous interface (rows) and this slice's (columns)."""
        if self._pair is None:
            return self.message().logs[None]
        return self._message(self._pair).logs.reshape(self._states, -1)

    def _message(self, joint: int | None) -> Message:
        """Return the posterior of joint states, as logarithms if floats would lose a possible state."""
        if joint is None:
            return Message(np.ones(1))
        v = self._number_of[joint]
        if not self._is_logarithmic:
            name = self._tree.model.variables[v].name
            weights: Floats = self._tree.marginals([name])[name].array
            is_small = weights < self._small
            if not is_small.any() or not (is_small & self._possible_states(v)).any():
                return Message(weights)
            self._observe_logarithms()
        logs = self._log_table(v)
        if ((logs < math.log(self._small)) & (logs > -math.inf)).any():
            return Message(logs, is_logarithmic=True)
        return Message(np.exp(logs))

    def _possible_states(self, v: int) -> NDArray[np.bool_]:
        """Return a mask of a variable's states of positive probability, given the current observations."""
        sizes = self._tree.model.sizes
        patterns = [(u, _possible(items, sizes[u]).tobytes()) for u, items in self._observed.items()]
        key = v, *patterns
        possible = self._possible.get(key)
        if possible is None:
            self._observe_logarithms()
            possible = self._log_table(v) > -math.inf
            self._is_logarithmic = False
            if len(self._possible) < _MAX_PATTERNS:
                self._possible[key] = possible
        return possible

    def _log_table(self, v: int) -> Floats:
        """Return logarithms of a variable's posterior."""
        if v not in self._outputs:
            return np.zeros(1)
        logs: Floats = self._propagator.run([self._outputs[v]], log_sum=False).tables[0].astype(np.float64)
        logs -= np.logaddexp.reduce(logs)
        return logs


def _least_share(table: Table) -> float:
    """Return the least positive number of a table as a share of the largest one; 1 if there is none."""
    values = np.append(table.values, table.values[:0] if table.default is None else table.default)
    positive = values[values > 0]
    return float(positive.min() / positive.max()) if len(positive) else 1.0


def _weights(observation: Observation, size: int) -> Floats:
    if isinstance(observation, int):
        one_hot: Floats = np.eye(1, size, observation)[0]
        return one_hot
    return np.exp(observation.weights) if observation.is_logarithmic else observation.weights


def _logs(observation: Observation, size: int) -> Floats:
    if isinstance(observation, int):
        observation = Message(np.eye(1, size, observation)[0])
    return observation.logs


def _possible(observations: Sequence[Observation], size: int) -> NDArray[np.bool_]:
    """Return a mask of the states that all observations permit."""
    possible = np.ones(size, dtype=bool)
    for observation in observations:
        if isinstance(observation, int):
            possible &= np.arange(size) == observation
        else:
            possible &= observation.weights > (-math.inf if observation.is_logarithmic else 0)
    return possible


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
        tree = self._tree_at(sequences, row, message, None)
        log_total = tree.log_sum
        if log_total == -math.inf:
            return Message(np.zeros(self._states)), log_total, _zeros(self._network, 1, variables)
        marginals = dict(zip(variables, (table[None] for table in tree.marginals(variables)), strict=True))
        return tree.message(), log_total, marginals

    def _log_moves(self, before: Message | None, sequences: Sequences, row: int) -> Floats | None:
        """Return logarithms of a slice's sums for joint states of the previous (rows) and its own interface (columns).

        The result is None if all sums are 0.
        """
        tree = self._first if before is None else self._moves
        tree.observe(None, sequences.evidence(row))
        if (log_sum := tree.log_sum) == -math.inf:
            return None
        return tree.moves() + log_sum

    def _tree_at(self, sequences: Sequences, row: int, message: Message | None, after: Message | None) -> SliceTree:
        """Return the tree of a slice with its messages and observations set."""
        tree = self._first if message is None else self._later
        tree.observe(message, sequences.evidence(row), after)
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
        ratio: Message | None = None
        for row in reversed(range(first, last)):
            before = messages.at(row, lambda m, n: self.advance(m, sequences, n, ())[0])
            tree = self._tree_at(sequences, row, before, ratio)
            marginals = {v: table[None] for v, table in zip(variables, tree.marginals(variables), strict=True)}
            yield SliceAnswers(slice(row, row + 1), marginals, np.array([totals[row - first]]))
            if before is not None:
                tree.observe(None, sequences.evidence(row), ratio)
                ratio = tree.message(before=True)

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
            path[row - 1] = (before.weights + self._later.message(before=True).logs).argmax()
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
        return Message(weights - highest, is_logarithmic=True), highest

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


def _impossible(network: DynamicNetwork, rows: slice, variables: Sequence[int]) -> SliceAnswers:
    """Return the answers for slices of an impossible sequence."""
    count = rows.stop - rows.start
    return SliceAnswers(rows, _zeros(network, count, variables), np.full(count, -np.inf))


def _zeros(network: DynamicNetwork, count: int, variables: Sequence[int]) -> dict[int, Floats]:
    return {v: np.zeros((count, network.variables[v].size)) for v in variables}
