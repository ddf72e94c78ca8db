"""Networks that repeat over time, and queries about sequences of observations."""

from __future__ import annotations

import functools
import math
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elimina import arguments
from elimina.display import Displayed, sample
from elimina.errors import ImpossibleEvidenceError, MemoryLimitError
from elimina.io.dynamic_networks import slices_from_pgmpy, slices_from_pyagrum
from elimina.methods.hidden_chain import MAX_STATES, HiddenChain, is_hidden_chain
from elimina.methods.observed_sequences import (
    Floats,
    Message,
    RunLimits,
    Sequences,
    read_sequences,
    sequence_of_observations,
    store_rows,
)
from elimina.methods.slice_scales import SliceScales
from elimina.methods.slice_trees import SliceTrees
from elimina.model.dynamic_network import DynamicNetwork, slices_of_cpds, slices_of_matrices
from elimina.model.model import Model, names_of, variable_indices
from elimina.model.named_table import NamedTables
from elimina.model.states import State
from elimina.model.variable import state_array
from elimina.number_texts import bytes_text, count_text, counted
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.option_checks import check_options, options_of
from elimina.planning.options import DEFAULT, Options
from elimina.running.host import host_memory
from elimina.running.propagated_tables import Posteriors
from elimina.system import memory_errors_in_words

_IN_WORDS = memory_errors_in_words("while it passed messages along a sequence")

_MATRIX_SHARE = 0.5
"""Largest share of the memory limit for the transition matrices."""

_BYTES_PER_SLICE = 32
"""Bytes of a slice without its distributions: codes, positions and logarithms."""


@arguments.with_checked_methods
class DynamicModel(DynamicNetwork, Displayed):
    """A Bayesian network that repeats over time: a dynamic Bayesian network, or a hidden Markov model.

    The distributions of a slice depend on the slice itself and on the previous one. Questions are answered by the
    interface algorithm: a message about the variables with children in the next slice is passed from slice to slice. If
    these variables have at most some thousands of joint states and all other variables depend only on them, a step is a
    product with a matrix. Otherwise, the steps of one junction tree run for each slice.

    Args:
        initial: Bayesian network of the first slice.
        transition: Bayesian network of a later slice given the previous one. Variables of the previous slice end in
            ``[-1]``: ``rain[-1]``. A variable without a distribution has that of the first slice.
        name: Name of the model.

    Attributes:
        variables: Variables of a slice.
        initial: Network of the first slice.
        transition: Distributions of a later slice, over the variables of the previous slice and of the slice itself.
        interface: Indices of the variables with children in the next slice.

    Raises:
        TypeError: An argument is not a model.
        InputError: A model is not a Bayesian network, the models disagree about a variable's states, or a variable has
            no distribution.

    Examples:
        >>> import elimina
        >>> model = elimina.DynamicModel.from_cpds(
        ...     initial={"rain": [0.5, 0.5], ("umbrella", "rain"): [[0.8, 0.1], [0.2, 0.9]]},
        ...     transition={("rain", "rain[-1]"): [[0.7, 0.3], [0.3, 0.7]]},
        ...     states={"rain": ["no", "yes"], "umbrella": ["no", "yes"]},
        ... )
        >>> print(model.filter({"umbrella": ["yes", "yes"]}).marginals["rain"].round(3))
        [[0.182 0.818]
         [0.117 0.883]]
    """

    def __init__(self, initial: Model, transition: Model, name: str = "") -> None:
        super().__init__(initial, transition, name)
        self._lock = threading.RLock()
        self._chain: HiddenChain | None = None
        self._trees: tuple[CheckedOptions, SliceTrees] | None = None

    def __reduce__(self) -> tuple[type[DynamicModel], tuple[Model, Model, str]]:
        return type(self), (self.initial, self.transition, self.name)

    @classmethod
    def from_cpds(
        cls,
        initial: Mapping[str | tuple[str, ...], Any],
        transition: Mapping[str | tuple[str, ...], Any],
        *,
        states: Mapping[str, int | Sequence[State]] | None = None,
        name: str = "",
        check: bool = True,
    ) -> DynamicModel:
        """Build a model from conditional distributions by name.

        Args:
            initial: Distributions of the first slice, as in ``Model.from_cpds``: the key is the name of the variable,
                or a tuple of its name and those of its parents.
            transition: Distributions of a later slice. A parent in the previous slice ends in ``[-1]``, as in
                ``("rain", "rain[-1]")``. Variables that are left out have the distributions of ``initial``.
            states: Variable -> its states, or their number, as in ``Model.from_cpds``.
            name: Name of the model.
            check: See ``Model``.

        Raises:
            TypeError: An argument has the wrong type.
            InputError: A key names an unknown variable, or ``Model.from_cpds`` rejects a distribution.
        """
        return cls(*slices_of_cpds(initial, transition, states, name, check=check), name)

    @classmethod
    def hidden_markov(
        cls,
        start: ArrayLike,
        transition: ArrayLike,
        emission: ArrayLike | Mapping[str, ArrayLike] | None = None,
        *,
        states: int | Sequence[State] | None = None,
        symbols: Sequence[State] | Mapping[str, Sequence[State]] | None = None,
        check: bool = True,
    ) -> DynamicModel:
        """Build a hidden Markov model, whose variables are named ``state`` and ``observation``.

        Args:
            start: Distribution of the first state (``startprob_`` of hmmlearn).
            transition: Matrix whose row i is the distribution of the next state after state i (``transmat_``).
            emission: Matrix whose row i is the distribution of the symbol in state i (``emissionprob_``), or a mapping
                from names to such matrices if several symbols are observed at once. None: observations are
                log-likelihoods, an array with a column for each state.
            states: States of ``state``; 0, 1, ... by default.
            symbols: States of ``observation``, or name -> states.
            check: False to accept rows that do not sum to 1.

        Raises:
            InputError: The shapes are inconsistent, or the sum of a row differs from 1 by more than 0.001.

        Examples:
            >>> import elimina
            >>> start, transition = [0.6, 0.4], [[0.7, 0.3], [0.4, 0.6]]
            >>> model = elimina.DynamicModel.hidden_markov(start, transition, [[0.9, 0.1], [0.2, 0.8]])
            >>> states, log_probability = model.viterbi([0, 1, 1])
            >>> print(states["state"], round(log_probability, 4))
            [0 1 1] -2.7773
        """
        return cls(*slices_of_matrices(start, transition, emission, states, symbols, check))

    @classmethod
    def from_pgmpy(cls, network: Any, *, check: bool = True) -> DynamicModel:
        """Build a model from a DynamicBayesianNetwork of pgmpy, whose nodes are pairs of a name and a slice (0 or 1).

        Args:
            network: An object of pgmpy.
            check: See ``Model``.

        Raises:
            InputError: ``network`` has another type, or a node has no distribution.
            UnsupportedError: A node is in another slice, or a distribution is not a table.
        """
        return cls(*slices_from_pgmpy(network, check=check))

    @classmethod
    def from_pyagrum(cls, network: Any, *, check: bool = True) -> DynamicModel:
        """Build a model from a BayesNet of pyAgrum with two slices, whose variables are named ``rain0`` and ``raint``.

        Args:
            network: An object of pyAgrum.
            check: See ``Model``.

        Raises:
            InputError: ``network`` has another type, or a slice lacks a variable of the other one.
            UnsupportedError: A variable is in no slice.
        """
        return cls(*slices_from_pyagrum(network, check=check), str(network.propertyWithDefault("name", "")))

    @_IN_WORDS
    @arguments.with_checked_keywords(Options, "elimina.Options")
    def filter(
        self,
        observations: Any,
        variables: Sequence[str | int] | None = None,
        *,
        lengths: Sequence[int] | None = None,
        ignore_extra: bool = False,
        device: str | None = None,
        memory: int | str | None = None,
        options: Options = DEFAULT,
    ) -> Posteriors:
        """Compute the posteriors of each slice given the observations up to it.

        Args:
            observations: Observations of one sequence, a row for each slice: a data frame, a mapping from names to
                columns, a list of mappings, or a structured array, with states as in ``JunctionTree.batch``. None, NaN
                and other missing values mean unobserved variables. A column with two axes contains natural logarithms
                of likelihoods, with a column for each state of the variable. A bare sequence of states observes the
                only variable without children in the next slice; in a model with a single variable, a bare array with
                two axes contains log-likelihoods.
            variables: Queried variables, by name or index. None: those without a column of states.
            lengths: Number of slices of each of several sequences, whose rows follow each other. Impossible sequences
                then have zeros as posteriors.
            ignore_extra: Ignore columns that are not variables of the model.
            device: Device of the junction tree, as in ``elimina.solve``. Products with a matrix run on the CPU.
            memory: Memory limit, as in ``elimina.solve``.
            options: Settings for experts, as in ``JunctionTree``.

        Returns:
            Posteriors, a row for each slice. ``log_evidence`` has the natural logarithm of the probability of the
            slice's observations given the earlier ones; its sum over a sequence is the logarithm for all observations.

        Raises:
            ImpossibleEvidenceError: The observations of the sequence have probability 0.
            InputError: A variable or state is unknown, or an array has the wrong shape.
            MemoryLimitError: The posteriors or the messages do not fit into memory.
            TypeError: An argument has the wrong type.
        """
        sequences = self.sequences_of(observations, lengths, ignore_extra=ignore_extra)
        checked = _checked(options_of(options, device, memory))
        return self._collect(sequences, variables, checked, is_smoothed=False)

    @_IN_WORDS
    @arguments.with_checked_keywords(Options, "elimina.Options")
    def smooth(
        self,
        observations: Any,
        variables: Sequence[str | int] | None = None,
        *,
        lengths: Sequence[int] | None = None,
        ignore_extra: bool = False,
        device: str | None = None,
        memory: int | str | None = None,
        options: Options = DEFAULT,
    ) -> Posteriors:
        """Compute the posteriors of each slice given all observations of its sequence.

        The messages of a long sequence are computed twice: of n messages, only about the square root of n are in memory
        at a time.

        Args:
            observations: See ``filter``.
            variables: See ``filter``.
            lengths: See ``filter``.
            ignore_extra: See ``filter``.
            device: See ``filter``.
            memory: See ``filter``.
            options: See ``filter``.

        Returns:
            See ``filter``.

        Raises:
            ImpossibleEvidenceError: See ``filter``.
            InputError: See ``filter``.
            MemoryLimitError: See ``filter``.
            TypeError: See ``filter``.
        """
        sequences = self.sequences_of(observations, lengths, ignore_extra=ignore_extra)
        checked = _checked(options_of(options, device, memory))
        return self._collect(sequences, variables, checked, is_smoothed=True)

    @_IN_WORDS
    @arguments.with_checked_keywords(Options, "elimina.Options")
    def log_likelihood(
        self,
        observations: Any,
        *,
        lengths: Sequence[int] | None = None,
        ignore_extra: bool = False,
        device: str | None = None,
        memory: int | str | None = None,
        options: Options = DEFAULT,
    ) -> Any:
        """Return the natural logarithm of the probability of a sequence's observations; minus infinity if it is 0.

        Args:
            observations: See ``filter``.
            lengths: See ``filter``.
            ignore_extra: See ``filter``.
            device: See ``filter``.
            memory: See ``filter``.
            options: See ``filter``.

        Returns:
            A float; with ``lengths``, an array with a float for each sequence.

        Raises:
            InputError: See ``filter``.
            MemoryLimitError: The messages do not fit into memory.
            TypeError: See ``filter``.
        """
        sequences = self.sequences_of(observations, lengths, ignore_extra=ignore_extra)
        checked = _checked(options_of(options, device, memory))
        totals = np.zeros(len(sequences.codes))
        with self._lock:
            for answer in self._engine(checked).filtered(sequences, _limits(checked), {}, keeps_states=False):
                totals[answer.rows] = answer.log_totals
        sums = _sums(totals + self._scales.log_scales(sequences), sequences)
        return float(sums[0]) if sequences.is_single else sums

    @_IN_WORDS
    @arguments.with_checked_keywords(Options, "elimina.Options")
    def predict(
        self,
        observations: Any,
        steps: int,
        variables: Sequence[str | int] | None = None,
        *,
        lengths: Sequence[int] | None = None,
        ignore_extra: bool = False,
        device: str | None = None,
        memory: int | str | None = None,
        options: Options = DEFAULT,
    ) -> Posteriors:
        """Compute the posteriors of the slices that follow a sequence.

        Args:
            observations: See ``filter``.
            steps: Number of slices after the last one.
            variables: Queried variables, by name or index. None: all.
            lengths: See ``filter``.
            ignore_extra: See ``filter``.
            device: See ``filter``.
            memory: See ``filter``.
            options: See ``filter``.

        Returns:
            Posteriors, a row for each further slice, one sequence after another.

        Raises:
            ImpossibleEvidenceError: See ``filter``.
            InputError: See ``filter``; or ``steps`` is negative or too large.
            MemoryLimitError: See ``filter``.
            TypeError: See ``filter``.
        """
        steps = arguments.integer("steps", steps, 0, sys.maxsize)
        sequences = self.sequences_of(observations, lengths, ignore_extra=ignore_extra)
        checked = _checked(options_of(options, device, memory))
        asked = range(len(self.variables)) if variables is None else self._indices(variables)
        self._check_posteriors(len(sequences.codes) + steps * (len(sequences.starts) - 1), asked, checked)
        extended = sequences.extended(steps)
        names = names_of(self.initial, asked)
        answer = self._collect(extended, names, checked, is_smoothed=False, culprits=sequences)
        rows = np.flatnonzero(extended.is_added(steps))
        variables_asked = tuple(self.variables[v] for v in asked)
        marginals = {name: answer.marginals[name][rows] for name in names}
        return Posteriors(marginals, answer.log10_evidence[rows], variables_asked)

    @_IN_WORDS
    @arguments.with_checked_keywords(Options, "elimina.Options")
    def viterbi(
        self,
        observations: Any,
        *,
        lengths: Sequence[int] | None = None,
        ignore_extra: bool = False,
        device: str | None = None,
        memory: int | str | None = None,
        options: Options = DEFAULT,
    ) -> tuple[dict[str, NDArray[Any]], Any]:
        """Return the most probable sequence of hidden states, and the natural log of its probability.

        The hidden states are those of the variables with children in the next slice (``interface``). The returned
        sequence maximises the joint probability of these states and the observations. All other unobserved variables,
        such as missing symbols, are summed out. For the most probable states of all variables, use
        ``JunctionTree(model.unroll(n)).mpe()``.

        Args:
            observations: See ``filter``.
            lengths: See ``filter``.
            ignore_extra: See ``filter``.
            device: See ``filter``.
            memory: See ``filter``.
            options: See ``filter``.

        Returns:
            Variable name -> its states, an array of int64, bool, or objects; and the logarithm of the joint probability
            of the states and the observations; with ``lengths``, an array with one logarithm for each sequence.

        Raises:
            ImpossibleEvidenceError: The observations of a sequence have probability 0.
            InputError: See ``filter``.
            MemoryLimitError: The messages, or a table of all pairs of joint states, do not fit into memory.
            TypeError: See ``filter``.
        """
        sequences = self.sequences_of(observations, lengths, ignore_extra=ignore_extra)
        checked = _checked(options_of(options, device, memory))
        with self._lock:
            states, scores = self._engine(checked).best_paths(sequences, _limits(checked))
            scores = scores + _sums(self._scales.log_scales(sequences), sequences)
        impossible = np.flatnonzero(np.isneginf(scores))
        if len(impossible):
            raise self._impossible(sequences, int(impossible[0]), checked)
        named = {self.variables[v].name: state_array(self.variables[v], states[v]) for v in self.interface}
        return named, float(scores[0]) if sequences.is_single else scores

    def stream(
        self,
        observations: Iterable[Any],
        variables: Sequence[str | int] | None = None,
        *,
        device: str | None = None,
        memory: int | str | None = None,
        options: Options = DEFAULT,
    ) -> Iterator[NamedTables]:
        """Iterate over the slices' posteriors given the observations so far, in constant memory.

        Args:
            observations: Iterable of observations, read one at a time: see ``OnlineFilter.update``.
            variables: Queried variables, by name or index. None: all.
            device: See ``filter``.
            memory: See ``filter``.
            options: See ``filter``.

        Returns:
            An iterator of name -> posterior, one for each observation.

        Raises:
            ImpossibleEvidenceError: The observations so far have probability 0.
            InputError: A variable or state is unknown.
            TypeError: An argument has the wrong type.
        """
        # Mappings and data frames are rejected, because iterating over them yields names instead of observations.
        is_table = isinstance(observations, str | Mapping) or hasattr(observations, "columns")
        if is_table or not arguments.is_iterable(observations):
            expected = "an iterable of the observations of each slice, such as frame.to_dict('records')"
            raise arguments.wrong_type("observations", observations, expected)
        filtering = OnlineFilter(self, variables, device=device, memory=memory, options=options)
        return map(filtering.update, observations)

    # --- helpers ---

    @functools.cached_property
    def _sole_observed(self) -> int | None:
        """Index of the only variable without children in the next slice; None if there are none or several."""
        others = [v for v in range(len(self.variables)) if v not in self.interface]
        return others[0] if len(others) == 1 else None

    @functools.cached_property
    def _scales(self) -> SliceScales:
        return SliceScales.of(self)

    def sequences_of(
        self, observations: Any, lengths: Sequence[int] | None = None, *, ignore_extra: bool = False
    ) -> Sequences:
        """Return observations as arrays: see ``filter``."""
        is_ignoring = arguments.flag("ignore_extra", ignore_extra)
        return read_sequences(self.initial, self._sole_observed, observations, lengths, ignore_extra=is_ignoring)

    def _indices(self, variables: Sequence[str | int]) -> list[int]:
        return list(dict.fromkeys(variable_indices(self.initial, variables, "variables")))

    def _engine(self, options: CheckedOptions) -> HiddenChain | SliceTrees:
        """Return the object that passes messages, for checked options; it is cached for further questions."""
        states = math.prod(self.variables[v].size for v in self.interface)
        if states <= MAX_STATES and not options.needs_gpu and is_hidden_chain(self):
            chain = self._chain or HiddenChain(self._scales.network)
            if chain.matrix_bytes <= _MATRIX_SHARE * host_memory(options):
                self._chain = chain
                return chain
        if self._trees is None or self._trees[0] != options:
            self._trees = options, SliceTrees(self._scales.network, options)
        return self._trees[1]

    def _collect(
        self,
        sequences: Sequences,
        variables: Sequence[str | int] | None,
        options: CheckedOptions,
        *,
        is_smoothed: bool,
        culprits: Sequences | None = None,
    ) -> Posteriors:
        """Return the posteriors of all slices.

        Args:
            sequences: Observations.
            variables: Queried variables.
            options: Options of the call.
            is_smoothed: True for posteriors given all observations.
            culprits: Observations to name in an error about probability 0; None: ``sequences``.
        """
        if variables is None:
            asked = [v for v in range(len(self.variables)) if v not in sequences.columns]
        else:
            asked = self._indices(variables)
        count = len(sequences.codes)
        needed = self._check_posteriors(count, asked, options)
        totals = np.zeros(count)
        marginals = {v: np.empty((count, self.variables[v].size)) for v in asked}
        with self._lock:
            engine, limits = self._engine(options), _limits(options, needed)
            for answer in (engine.smoothed if is_smoothed else engine.filtered)(sequences, limits, marginals):
                totals[answer.rows] = answer.log_totals
                for v, table in answer.marginals.items():
                    store_rows(marginals[v], answer.rows, table)
        totals += self._scales.log_scales(sequences)
        sums = _sums(totals, sequences)
        if sequences.is_single and np.isneginf(sums).any():
            raise self._impossible(culprits or sequences, 0, options)
        named = {self.variables[v].name: table for v, table in marginals.items()}
        variables_asked = tuple(self.variables[v] for v in asked)
        posteriors = Posteriors(named, totals / math.log(10), variables_asked, sequences.labels)
        posteriors.mark_impossible(np.repeat(np.isneginf(sums), np.diff(sequences.starts)))
        return posteriors

    def _check_posteriors(self, count: int, asked: Sequence[int], options: CheckedOptions) -> int:
        """Return the bytes of the posteriors of some variables in a number of slices.

        Raises:
            MemoryLimitError: The posteriors do not fit into memory.
        """
        needed = count * (8 * sum(self.variables[v].size for v in asked) + _BYTES_PER_SLICE)
        if needed > (room := host_memory(options)):
            raise MemoryLimitError(
                f"the posteriors of {counted(count, 'slice')} take {bytes_text(needed)}, and "
                f"{bytes_text(room)} may be used: ask for fewer variables, or read them one slice at a time "
                "(DynamicModel.stream)"
            )
        return needed

    def _impossible(self, sequences: Sequences, number: int, options: CheckedOptions) -> ImpossibleEvidenceError:
        """Return the error about a sequence of probability 0, which names the first impossible slice."""
        sequence = sequences.sequence(number)
        row = 0
        for answer in self._engine(options).filtered(sequence, _limits(options), {}, keeps_states=False):
            if np.isneginf(answer.log_totals).any():
                row = answer.rows.start + int(np.isneginf(answer.log_totals).argmax())
                break
        return self._impossible_at(sequence, row, row, None if sequences.is_single else number)

    def _impossible_at(
        self, sequences: Sequences, row: int, number: int, sequence: int | None = None
    ) -> ImpossibleEvidenceError:
        """Return the error about a slice whose observations have probability 0 given the earlier ones.

        Args:
            sequences: Observations.
            row: Row of the slice.
            number: Number of the slice in its sequence.
            sequence: Number of the sequence; None if there is only one.
        """
        variables = ((self.variables[v], what) for v, what in sequences.evidence(row).items())
        observed = [
            f"{v.name}={v.state(what)}" if isinstance(what, int) else f"likelihoods of {v.name}"
            for v, what in variables
        ]
        where = f"slice {number}" if sequence is None else f"slice {number} of sequence {sequence}"
        return ImpossibleEvidenceError(
            f"the observations of {where} ({sample(observed, len(observed)) or 'none'}) have probability 0 given those "
            "before, so there are no posteriors: remove some of them"
        )

    def _figures(self) -> list[tuple[str, str]]:
        names = [self.variables[v].name for v in self.interface]
        states = math.prod(self.variables[v].size for v in self.interface)
        rows = [
            ("variables", sample([v.name for v in self.variables], len(self.variables))),
            ("interface", f"{sample(names, len(names)) or 'none'} ({count_text(states)} joint states)"),
        ]
        return [("name", self.name), *rows] if self.name else rows


@arguments.with_checked_methods
class OnlineFilter(Displayed):
    """A filter that reads the observations of a sequence one at a time, in constant memory.

    Args:
        model: The model.
        variables: Variables whose posteriors ``update`` returns, by name or index. None: all.
        device: Device, as in ``DynamicModel.filter``.
        memory: See ``DynamicModel.filter``.
        options: See ``DynamicModel.filter``.

    Attributes:
        model: The model.
        count: Number of slices so far.
        log_likelihood: Natural logarithm of the probability of all observations so far.

    Examples:
        >>> import elimina
        >>> start, transition = [0.6, 0.4], [[0.7, 0.3], [0.4, 0.6]]
        >>> model = elimina.DynamicModel.hidden_markov(start, transition, [[0.9, 0.1], [0.2, 0.8]])
        >>> weather = elimina.OnlineFilter(model, ["state"])
        >>> for symbol in [0, 1]:
        ...     print(weather.update(symbol)["state"].round(3))
        [0.871 0.129]
        [0.196 0.804]
    """

    @arguments.with_checked_keywords(Options, "elimina.Options")
    def __init__(
        self,
        model: DynamicModel,
        variables: Sequence[str | int] | None = None,
        *,
        device: str | None = None,
        memory: int | str | None = None,
        options: Options = DEFAULT,
    ) -> None:
        if not isinstance(model, DynamicModel):
            raise arguments.wrong_type("model", model, "an elimina.DynamicModel")
        self.model, self.count, self.log_likelihood = model, 0, 0.0
        self._asked = list(range(len(model.variables))) if variables is None else model._indices(variables)
        self._options = _checked(options_of(options, device, memory))
        self._message: Message | None = None

    @_IN_WORDS
    def update(self, observation: Any = None) -> NamedTables:
        """Add the observations of the next slice, and return the posteriors of its variables.

        Args:
            observation: Evidence as in ``elimina.solve``, with likelihoods as arrays. None: no observation. A bare
                state observes the only variable without children in the next slice; in a model with a single variable,
                a bare array contains natural logarithms of likelihoods.

        Raises:
            ImpossibleEvidenceError: The observations have probability 0 given the earlier ones. The filter does not
                change.
            InputError: A variable or state is unknown.
            TypeError: ``observation`` has another type.
        """
        sequences = sequence_of_observations(self.model.initial, self.model._sole_observed, observation)
        with self.model._lock:
            engine = self.model._engine(self._options)
            message, log_total, marginals = engine.advance(self._message, sequences, 0, self._asked)
        if log_total == -math.inf:
            raise self.model._impossible_at(sequences, 0, self.count)
        scales = self.model._scales
        self.log_likelihood += log_total + (scales.later if self.count else scales.first)
        self._message, self.count = message, self.count + 1
        return self._named(marginals)

    @_IN_WORDS
    def predict(self, steps: int = 1) -> NamedTables:
        """Return the posteriors of a later slice without observations in it; the filter does not change.

        Args:
            steps: Number of slices after the latest one, at least 1.

        Raises:
            InputError: ``steps`` is less than 1.
        """
        steps = arguments.integer("steps", steps, 1)
        nothing = sequence_of_observations(self.model.initial, None, None)
        message = self._message
        marginals: dict[int, Floats] = {}
        with self.model._lock:
            engine = self.model._engine(self._options)
            for step in range(steps):
                message, _, marginals = engine.advance(message, nothing, 0, self._asked if step == steps - 1 else ())
        return self._named(marginals)

    def _named(self, marginals: Mapping[int, Floats]) -> NamedTables:
        tables = {self.model.variables[v].name: marginals[v][0] for v in self._asked}
        return NamedTables(tables, self.model.initial.__getitem__, "probability")

    def _figures(self) -> list[tuple[str, str]]:
        return [("slices", f"{self.count:,}"), ("log likelihood", f"{self.log_likelihood:.6g}")]


def _checked(options: Options) -> CheckedOptions:
    return check_options(options, engine="a junction tree")


def _limits(options: CheckedOptions, used_bytes: int = 0) -> RunLimits:
    """Return the limits of a run while ``used_bytes`` are in use."""
    return RunLimits(max(1, host_memory(options) - used_bytes), options.host_threads)


def _sums(totals: Floats, sequences: Sequences) -> Floats:
    """Return the sum of the slices' totals for each sequence."""
    sums = np.zeros(len(sequences.starts) - 1)
    filled = np.flatnonzero(np.diff(sequences.starts))
    if len(filled):
        sums[filled] = np.add.reduceat(totals, sequences.starts[filled])
    return sums
