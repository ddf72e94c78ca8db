"""Readers of observed sequences, in all forms that callers may use."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina import arguments
from elimina.errors import InputError, MemoryLimitError
from elimina.io.cases import Cases, Codes, as_cases, is_extra, labels_of
from elimina.io.sources import as_evidence
from elimina.model.cells import UNOBSERVED
from elimina.model.model import Model, variable_index
from elimina.model.states import is_missing
from elimina.model.table import unmasked
from elimina.number_texts import bytes_text, counted
from elimina.problem.observations import evidence_of

Floats = NDArray[np.float64]

Ints = NDArray[np.int32]

LEAST = math.ulp(0.0)
"""The smallest positive float: the value of positive numbers that underflow, because 0 means impossible."""

_BUFFER_BYTES = 1 << 26
"""Largest number of bytes of messages in memory; the messages of longer sequences are computed twice."""

_BUFFER_SHARE = 0.5
"""Largest share of the memory limit for messages."""


class RunLimits(NamedTuple):
    """Limits of a run over sequences.

    Attributes:
        memory: Memory limit in bytes.
        threads: Number of threads.
    """

    memory: int
    threads: int

    def messages(self, states: int) -> int:
        """Return the number of messages to store at a time; each message contains ``states`` numbers."""
        return max(1, min(_BUFFER_BYTES, int(_BUFFER_SHARE * self.memory)) // (8 * states))

    def check_messages(self, states: int, count: int, slices: int) -> None:
        """Check that messages fit into memory.

        Args:
            states: Numbers in a message.
            count: Number of messages.
            slices: Slices of the sequence.

        Raises:
            MemoryLimitError: The messages do not fit.
        """
        if 8 * states * count > self.memory:
            raise MemoryLimitError(
                f"the messages of a sequence of {counted(slices, 'slice')} take at least "
                f"{bytes_text(8 * states * count)}, and "
                f"{bytes_text(self.memory)} may be used: give more memory"
            )


class Message(NamedTuple):
    """Distribution of the joint states of an interface, given the observations so far.

    Attributes:
        weights: Probabilities, or their logarithms.
        is_logarithmic: True if ``weights`` are logarithms, because some probabilities underflow.
    """

    weights: Floats
    is_logarithmic: bool = False

    @property
    def logs(self) -> Floats:
        """Logarithms of the probabilities."""
        if self.is_logarithmic:
            return self.weights
        with np.errstate(divide="ignore"):
            return np.log(self.weights)


class SliceAnswers(NamedTuple):
    """Answers about consecutive slices.

    Attributes:
        rows: The slices.
        marginals: Variable -> distributions, shape ``(slices, size)``; zeros where the sequence is impossible.
        log_totals: Natural logarithm of the probability of each slice's observations given the earlier ones.
    """

    rows: slice
    marginals: dict[int, Floats]
    log_totals: Floats


def store_rows(whole: Floats, rows: slice, part: Floats) -> None:
    """Write ``part`` to consecutive rows of an array, unless it is a view of these rows."""
    if part.base is not whole:
        whole[rows] = part


class Sequences(NamedTuple):
    """Observations of the slices of sequences, one sequence after another.

    Attributes:
        columns: Indices of the variables that are observed as states.
        codes: int32 array of shape ``(slices, columns)``: indices of the states, -1 for missing observations.
        logs: Variable index -> logarithms of the likelihoods of its states, shape ``(slices, size)``.
        starts: int64 array: the first slice of each sequence, followed by the number of all slices.
        is_single: True if the caller gave one sequence.
        labels: Index of the pandas frame that held the observations.
    """

    columns: tuple[int, ...]
    codes: Codes
    logs: dict[int, Floats]
    starts: NDArray[np.int64]
    is_single: bool
    labels: Any

    @property
    def ends(self) -> list[tuple[int, int]]:
        """First slice and end of each non-empty sequence."""
        starts = self.starts.tolist()
        return [(first, last) for first, last in itertools.pairwise(starts) if first < last]

    @property
    def firsts(self) -> NDArray[np.bool_]:
        """Mask of the slices that are the first of a sequence."""
        firsts = np.zeros(len(self.codes), dtype=bool)
        firsts[self.starts[:-1][np.diff(self.starts) > 0]] = True
        return firsts

    def sequence(self, number: int) -> Sequences:
        """Return the sequence with this number on its own."""
        return self._between(number, number + 1)._replace(is_single=True)

    def batches(self, slices: int) -> Iterator[tuple[slice, Sequences]]:
        """Yield consecutive sequences together, and their slices; a batch of several has at most this many slices.

        Args:
            slices: Number of slices of a batch.
        """
        first, count = 0, len(self.starts) - 1
        while first < count:
            end = int(np.searchsorted(self.starts, self.starts[first] + slices, side="right")) - 1
            end = max(end, first + 1)
            yield slice(int(self.starts[first]), int(self.starts[end])), self._between(first, end)
            first = end

    def _between(self, first: int, end: int) -> Sequences:
        """Return the sequences ``first`` to ``end - 1``."""
        starts = self.starts[first : end + 1]
        rows = slice(int(starts[0]), int(starts[-1]))
        logs = {v: table[rows] for v, table in self.logs.items()}
        return Sequences(self.columns, self.codes[rows], logs, starts - starts[0], self.is_single, None)

    def extended(self, steps: int) -> Sequences:
        """Return the sequences, each followed by ``steps`` further slices without observations."""
        starts = self.starts + steps * np.arange(len(self.starts))
        old = np.ones(int(starts[-1]), dtype=bool)
        for n in range(1, steps + 1):
            old[starts[1:] - n] = False
        codes = np.full((len(old), len(self.columns)), UNOBSERVED, dtype=np.int32)
        codes[old] = self.codes
        logs = {}
        for v, table in self.logs.items():
            logs[v] = np.zeros((len(old), table.shape[1]))
            logs[v][old] = table
        return Sequences(self.columns, codes, logs, starts, self.is_single, None)

    def is_added(self, steps: int) -> NDArray[np.bool_]:
        """Return a mask of the slices that ``extended`` has added."""
        added = np.zeros(len(self.codes), dtype=bool)
        for n in range(1, steps + 1):
            added[self.starts[1:] - n] = True
        return added

    def evidence(self, row: int) -> dict[int, int | Floats]:
        """Return the observations of a slice: variable -> index of its state, or logarithms of likelihoods."""
        states = zip(self.columns, self.codes[row].tolist(), strict=True)
        observed: dict[int, int | Floats] = {v: code for v, code in states if code >= 0}
        observed.update((v, logs[row]) for v, logs in self.logs.items())
        return observed


def scaled_likelihoods(logs: Floats) -> tuple[Floats, Floats]:
    """Return likelihoods whose maximum in each row is 1, from rows of logarithms; and each row's largest logarithm."""
    peaks = logs.max(axis=1, initial=-np.inf)
    return np.exp(logs - np.where(np.isneginf(peaks), 0.0, peaks)[:, None]), peaks


def read_sequences(
    model: Model, sole: int | None, observations: Any, lengths: Any, *, ignore_extra: bool = False
) -> Sequences:
    """Read observations.

    Args:
        model: Network of a slice.
        sole: The variable that a bare sequence of states observes; None if it is ambiguous.
        observations: See ``DynamicModel.filter``.
        lengths: See ``DynamicModel.filter``.
        ignore_extra: See ``DynamicModel.filter``.

    Raises:
        InputError: A name or a state does not exist, an array has the wrong shape, or the lengths do not sum to the
            number of slices.
        TypeError: ``observations`` or ``lengths`` has another type.
    """
    columns, logs, labels = _columns(model, sole, observations), {}, labels_of(observations)
    if isinstance(columns, Mapping):
        extra = [name for name in columns if is_extra(name, model)]
        soft = {
            name: column for name, column in columns.items() if arguments.axis_count(column) == 2 and name not in extra
        }
        logs = {variable_index(model, name): _logs(model, name, column) for name, column in soft.items()}
        # Other extra columns stay, so that as_cases rejects them.
        ignored = {*soft, *(extra if soft and ignore_extra else ())}
        columns = {name: column for name, column in columns.items() if name not in ignored}
    count = len(next(iter(logs.values()))) if logs else None
    if isinstance(columns, Mapping) and not columns:
        cases = Cases((), np.empty((count or 0, 0), dtype=np.int32))
    else:
        cases = as_cases(columns, model, ignore_extra=ignore_extra)
    variables, codes = cases
    wrong = next((v for v, table in logs.items() if len(table) != len(codes)), None)
    if wrong is not None:
        raise InputError(
            f"the log-likelihoods of {model.variables[wrong].name!r} are about "
            f"{counted(len(logs[wrong]), 'slice')}, and other "
            f"observations about {len(codes):,}"
        )
    both = next((v for v in logs if v in variables), None)
    if both is not None:
        raise InputError(f"variable {model.variables[both].name!r} has states and log-likelihoods: give one of them")
    return Sequences(variables, codes, logs, _starts(lengths, len(codes)), lengths is None, labels)


def sequence_of_observations(model: Model, sole: int | None, observation: Any) -> Sequences:
    """Return a sequence of one slice.

    Args:
        model: Network of a slice.
        sole: The variable that a bare state observes; None if it is ambiguous.
        observation: See ``OnlineFilter.update``.

    Raises:
        InputError: There is no such variable or state, or an array has the wrong shape.
    """
    logs: dict[int, Floats] = {}
    observed: dict[int, Any] = {}
    if isinstance(observation, Mapping) or (hasattr(observation, "items") and np.ndim(observation) == 1):
        observed = evidence_of(model, as_evidence(observation, model, "observation"))
    elif len(model.variables) == 1 and arguments.axis_count(observation) == 1:
        logs[0] = _logs(model, 0, np.asarray(observation)[None])
    elif not is_missing(observation):
        if sole is None:
            names = ", ".join(repr(v.name) for v in model.variables)
            raise InputError(
                f"the observation is {arguments.shown(observation)}, and may be about several variables: name it, as "
                f"in {{{model.variables[-1].name!r}: ...}}; the variables are {names}"
            )
        observed = evidence_of(model, {model.variables[sole].name: observation})
    with np.errstate(divide="ignore"):
        logs.update((v, np.log(what)[None]) for v, what in observed.items() if not isinstance(what, int))
    columns = tuple(v for v, what in observed.items() if isinstance(what, int))
    codes = np.array([[observed[v] for v in columns]], dtype=np.int32).reshape(1, len(columns))
    return Sequences(columns, codes, logs, np.array([0, 1], dtype=np.int64), True, None)


def _columns(model: Model, sole: int | None, observations: Any) -> Any:
    """Return observations as a mapping, or in another form that ``as_cases`` reads.

    Raises:
        InputError: An array has neither one nor two axes.
        TypeError: ``observations`` has another type.
    """
    if isinstance(observations, Mapping) or hasattr(observations, "columns"):
        return observations
    if hasattr(observations, "to_list") or hasattr(observations, "to_pylist"):
        return _named_column(model, sole, observations)
    if hasattr(observations, "__arrow_c_stream__") or hasattr(observations, "__dataframe__"):
        return observations
    if isinstance(observations, str) or not isinstance(observations, Iterable):
        raise arguments.wrong_type(
            "observations", observations, "a sequence, a mapping from names to columns, a data frame, or an array"
        )
    if isinstance(observations, np.ndarray) and observations.dtype.names is not None:
        return observations
    rows = observations if isinstance(observations, np.ndarray | Sequence) else list(observations)
    if not isinstance(rows, np.ndarray) and len(rows) and all(isinstance(row, Mapping) for row in rows):
        return rows
    if not isinstance(rows, np.ndarray):
        _check_one_sequence(rows, is_of_states=sole is not None and len(model.variables) > 1)
    axes = rows.ndim if isinstance(rows, np.ndarray) else 2 if len(rows) and arguments.axis_count(rows[0]) == 1 else 1
    if axes == 2:
        array = np.asarray(rows)
        if len(model.variables) == 1:
            return {model.variables[0].name: array}
        if sole is not None and array.shape[1:] == (1,):
            return {model.variables[sole].name: array[:, 0]}
        return array
    if axes != 1:
        raise InputError(f"observations have the shape {np.shape(rows)}; an array takes one or two axes")
    return _bare_column(model, sole, rows)


def _named_column(model: Model, sole: int | None, column: Any) -> dict[Any, Any]:
    """Return a data frame's column under its name if a variable has this name, otherwise as a bare sequence."""
    cells = (
        column if hasattr(column, "isna") else column.to_list() if hasattr(column, "to_list") else column.to_pylist()
    )
    name = getattr(column, "name", None)
    if isinstance(name, str) and model.find(name) is not None:
        return {name: cells}
    return _bare_column(model, sole, cells)


def _check_one_sequence(rows: Sequence[Any], *, is_of_states: bool) -> None:
    """Reject a list of sequences, and a list of both states and lists."""
    if not any(hasattr(kind, "__len__") and not issubclass(kind, str | bytes) for kind in set(map(type, rows))):
        return
    lengths = [len(row) for row in rows if _is_list(row)]
    if not lengths:
        return
    if len(lengths) < len(rows):
        raise InputError("observations are partly states and partly lists: give a state for each slice")
    is_nested = any(isinstance(row, Mapping) or hasattr(row, "columns") or any(map(_is_list, row)) for row in rows)
    if is_nested or len(set(lengths)) > 1 or (is_of_states and any(length != 1 for length in lengths)):
        raise InputError(
            "observations are a list of sequences: put their rows one after another, such as by numpy.concatenate or "
            "pandas.concat, and give their numbers, such as lengths=[120, 80]"
        )


def _is_list(row: Any) -> bool:
    return hasattr(row, "__len__") and not isinstance(row, str | bytes) and getattr(row, "ndim", 1) > 0


def _bare_column(model: Model, sole: int | None, rows: Any) -> dict[Any, Any]:
    """Return a sequence of states as the column of the variable ``sole``.

    Raises:
        InputError: ``sole`` is None; for an empty sequence, the result is empty instead.
    """
    if sole is None and not len(rows):
        return {}
    if sole is None:
        names = ", ".join(repr(v.name) for v in model.variables)
        raise InputError(
            f"observations are a bare sequence, and may be about several variables: name them, as in "
            f"{{{model.variables[-1].name!r}: [...]}}; the variables are {names}"
        )
    return {model.variables[sole].name: rows}


def _logs(model: Model, name: Any, column: Any) -> Floats:
    """Return log-likelihoods as an array.

    Raises:
        InputError: The log-likelihoods are not numbers, have the wrong shape, or are NaN or plus infinity.
    """
    variable = model.variables[variable_index(model, name)]
    try:
        table = np.asarray(unmasked(f"the log-likelihoods of {variable.name!r}", column), dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"the log-likelihoods of {variable.name!r} are not numbers") from None
    if table.shape[1] != variable.size:
        raise InputError(
            f"the log-likelihoods of {variable.name!r} have the shape {table.shape}; they take a column for each of "
            f"its {variable.size} states"
        )
    if np.isnan(table).any() or (table == np.inf).any():
        row = int(np.argmax((np.isnan(table) | (table == np.inf)).any(axis=1)))
        raise InputError(
            f"the log-likelihoods of {variable.name!r} in slice {row} are {table[row].tolist()[:8]}; they must be "
            "finite, or minus infinity: a slice in which nothing is observed has a row of zeros"
        )
    return table


def _starts(lengths: Any, count: int) -> NDArray[np.int64]:
    """Return the start of each sequence, followed by the number of all slices.

    Raises:
        InputError: The lengths do not sum to the number of slices.
        TypeError: ``lengths`` is not a sequence.
    """
    if lengths is None:
        return np.array([0, count], dtype=np.int64)
    listed = arguments.elements("lengths", lengths, "a sequence with the number of slices of each sequence")
    numbers = listed
    if set(map(type, listed)) != {int} or min(listed) < 0:
        numbers = [arguments.integer(f"lengths[{n}]", length, 0) for n, length in enumerate(listed)]
    if sum(numbers) != count:
        raise InputError(f"lengths sum to {sum(numbers):,}, and the observations have {counted(count, 'slice')}")
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(np.array(numbers, dtype=np.int64))])
