"""Assignments of states to all variables for the rows of a frame: the most probable ones, or samples.

The cliques of a junction tree are decoded from the roots downwards, for all rows of a chunk at once (Dawid 1992).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.display import html_of, sample, text_of, with_types_as_written
from elimina.io.cases import Codes
from elimina.io.sample_files import csv_chunks
from elimina.methods.batch import Batch, Chunk, ObservedCases
from elimina.model.cells import UNOBSERVED
from elimina.model.model import Model
from elimina.model.variable import Variable, state_array
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.machine import KEPT_TREE_RUNS
from elimina.planning.options import replace
from elimina.planning.ordering import elimination_order
from elimina.planning.tree import junction_tree, plan_tree
from elimina.problem.cases import prepare_batch
from elimina.problem.preparation import with_scopes, with_units
from elimina.system import frame_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from elimina.planning.plan import Plan
    from elimina.system import Library

Floats = NDArray[np.float64]

LOG10_PROBABILITY = "log10_probability"
"""Name of the last column: base-10 logarithm of the probability of a row's assignment."""

_DRAWS_PER_BLOCK = 4
"""Number of 64-bit numbers that one step of the generator Philox returns."""


@with_types_as_written
class RowAssignments(NamedTuple):
    """An assignment of all variables for each row of a frame.

    Attributes:
        variables: Variables of the columns.
        indices: Index of each state, int32 of shape ``(rows, variables)``; -1 where a row is impossible.
        log10_probability: Base-10 logarithm, shape ``(rows,)``, of the product of all factors for each assignment or,
            for samples, of the probability of the observations. Minus infinity where a row is impossible.
        labels: Index of the pandas frame that held the rows; None for other input.
    """

    variables: tuple[Variable, ...]
    indices: NDArray[np.int32]
    log10_probability: Floats
    labels: Any = None

    @property
    def states(self) -> dict[str, NDArray[Any]]:
        """Variable name -> states; None where a row is impossible."""
        columns = {}
        for variable, codes in zip(self.variables, self.indices.T, strict=True):
            column = state_array(variable, codes)
            if (codes < 0).any():
                column = column.astype(object)
                column[codes < 0] = None
            columns[variable.name] = column
        return columns

    def to_frame(self, library: Library = "pandas") -> Any:
        """Return a data frame with a row for each assignment, and a column for each variable.

        Args:
            library: ``pandas``, ``polars`` or ``pyarrow`` (a ``Table``).

        Raises:
            TypeError: ``library`` is not text.
            InputError: ``library`` is unknown or not installed.
        """
        return frame_of(self.states, library, self.labels)

    def csv_chunks(self) -> Iterator[str]:
        """Yield the text of a CSV file with a column for each variable, then ``log10_probability``."""
        return csv_chunks(self.variables, self.indices, self.log10_probability, LOG10_PROBABILITY)

    def __repr__(self) -> str:
        return text_of("RowAssignments", self._figures())

    def _repr_html_(self) -> str:
        return html_of("RowAssignments", self._figures())

    def _figures(self) -> list[tuple[str, str]]:
        impossible = int(np.isneginf(self.log10_probability).sum())
        return [
            ("rows", f"{len(self.indices):,}, {impossible:,} of them impossible"),
            ("variables", sample((v.name for v in self.variables), len(self.variables))),
        ]


def most_probable_joint(
    variables: Sequence[Variable], joint: Floats, log10_evidence: Floats, labels: Any = None
) -> RowAssignments:
    """Return the most probable joint states of some variables in each row; the first of equally probable ones.

    Args:
        variables: The variables.
        joint: Their joint posterior in each row, shape ``(rows, *sizes)``; zeros where a row is impossible.
        log10_evidence: Base-10 logarithm of the probability of each row's observations.
        labels: Index of the pandas frame that held the rows.
    """
    flat = joint.reshape(len(joint), math.prod(joint.shape[1:]))
    best = flat.argmax(axis=1)
    indices = np.array(np.unravel_index(best, joint.shape[1:]), dtype=np.int32).reshape(len(variables), len(joint)).T
    is_impossible = np.isneginf(log10_evidence)
    indices = np.ascontiguousarray(np.where(is_impossible[:, None], UNOBSERVED, indices))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = log10_evidence + np.log10(flat[np.arange(len(flat)), best])
    return RowAssignments(tuple(variables), indices, np.where(is_impossible, -np.inf, logs), labels)


class _Clique(NamedTuple):
    """A clique, whose separator is decoded before its other variables.

    Attributes:
        separator: Variables that are decoded before this clique.
        others: The other variables.
        axes: Axes of the clique's table in the sequence: separator, cases, other variables.
        sizes: Domain sizes of the other variables.
    """

    separator: tuple[int, ...]
    others: tuple[int, ...]
    axes: tuple[int, ...]
    sizes: tuple[int, ...]


class RowDecoder:
    """A decoder of the states of all variables, for rows that observe a fixed set of variables.

    Args:
        model: A probability model.
        columns: The variables that the rows may observe.
        options: Planning options.
        count: Expected number of rows.
        is_drawn: True to draw assignments from the posterior, False to find the most probable ones.

    Raises:
        MemoryLimitError: The cliques of a few rows do not fit.
        DeviceError: The device is missing or cannot be used.
    """

    def __init__(
        self, model: Model, columns: Sequence[int], options: CheckedOptions, count: int, *, is_drawn: bool = False
    ) -> None:
        problem = prepare_batch(with_units(model), columns, None, 1)
        order = elimination_order(problem, options, runs=KEPT_TREE_RUNS)
        cliques = junction_tree(plan_tree(problem.groups.scopes, model.sizes, order))[::-1]
        scopes = [clique.scope for clique in cliques]
        # A table over each clique makes the planner keep the clique together.
        joined = with_scopes(model, scopes)
        self._model, self._sizes, self._is_drawn = model, model.sizes, is_drawn
        self._scopes = scopes
        self._cliques = [_clique(clique.scope, clique.separator, model.sizes) for clique in cliques]
        ordered = replace(options, order=tuple(order))
        self._batch = Batch(joined, columns, (), ordered, count, scopes, maximised=not is_drawn)

    @property
    def peak_bytes(self) -> int:
        """Largest number of bytes of the tables of all threads."""
        return self._batch.peak_bytes

    @property
    def plan(self) -> Plan:
        """The plan of a chunk of rows."""
        return self._batch.planned.plan

    @property
    def rows_at_once(self) -> int:
        """Number of rows that all threads process at the same time."""
        return self._batch.cases * self._batch.threads

    def suits(self, model: Model, columns: Sequence[int], count: int, *, is_drawn: bool) -> bool:
        """Return whether this decoder fits a model, columns, kind of assignments and number of rows."""
        is_same = self._model is model and self._is_drawn == is_drawn
        return is_same and self._batch.suits(columns, (), count, self._scopes)

    def assignments(
        self,
        cases: ObservedCases,
        labels: Any = None,
        seed: int | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> RowAssignments:
        """Assign states to the rows of cases: see ``run``.

        Args:
            cases: Cases with the columns of the decoder.
            labels: Index of the pandas frame that holds the cases.
            seed: Random seed of drawn assignments; None: a new seed for each call.
            progress: Called repeatedly with the finished share of the rows.
        """
        indices, logs = self.run(cases.values, seed, progress)
        indices[cases.contradicted] = UNOBSERVED
        logs[cases.contradicted] = -math.inf
        return RowAssignments(self._model.variables, indices, logs / math.log(10), labels)

    def run(
        self, values: Codes, seed: int | None = None, progress: Callable[[float], None] | None = None
    ) -> tuple[NDArray[np.int32], Floats]:
        """Assign states to rows.

        Args:
            values: int32 array of shape ``(rows, columns)``: value indices, -1 for missing values.
            seed: Random seed of drawn assignments; None: a new seed for each call.
            progress: Called repeatedly with the finished share of the rows.

        Returns:
            Indices of states, shape ``(rows, variables)``; and the natural logarithm for each row: of the product of
            all factors or, if assignments are drawn, of the sum of these products.
        """
        count = len(values)
        key = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
        indices = np.zeros((count, len(self._sizes)), dtype=np.int32)
        logs = np.empty(count)

        def decode(chunk: Chunk) -> int:
            answer, rows = chunk
            logs[rows] = np.broadcast_to(answer.log_sum, self._batch.cases)[: rows.stop - rows.start]
            draws = _draws(key, rows, len(self._cliques)) if self._is_drawn else None
            self._decode(chunk, indices[rows], draws)
            return int(rows.stop)

        for done in self._batch.propagate(values, decode):
            if progress is not None:
                progress(done / count)
        indices[np.isneginf(logs)] = UNOBSERVED
        return indices, logs

    def close(self) -> None:
        """Release the memory."""
        self._batch.close()

    def _decode(self, chunk: Chunk, indices: NDArray[np.int32], draws: Floats | None) -> None:
        """Write the states of a chunk, one clique after another."""
        every = np.arange(len(indices))
        for number, (clique, table) in enumerate(zip(self._cliques, self._batch.family_tables(chunk), strict=True)):
            cases = every if table.shape[-1] > 1 else np.zeros(len(every), dtype=np.intp)
            separators = tuple(indices[:, v] for v in clique.separator)
            cells = table.transpose(clique.axes)[(*separators, cases)].reshape(len(every), -1)
            if draws is None:
                chosen = cells.argmax(axis=1)
            else:
                if chunk[0].logarithmic:
                    highs = cells.max(axis=1, keepdims=True)
                    cells = np.exp(cells - np.where(np.isfinite(highs), highs, 0.0))
                sums = cells.cumsum(axis=1)
                # Draws are below the total, so trailing cells of probability 0 are never selected.
                chosen = (sums <= draws[:, number, None] * sums[:, -1:]).sum(axis=1)
                chosen = np.minimum(chosen, cells.shape[1] - 1)
            for v, codes in zip(clique.others, np.unravel_index(chosen, clique.sizes), strict=True):
                indices[:, v] = codes


def _draws(key: int, rows: slice, count: int) -> Floats:
    """Return random numbers in [0, 1), shape ``(rows, count)`` or wider; a row's numbers do not depend on the chunk."""
    blocks = -(-count // _DRAWS_PER_BLOCK)
    bits = np.random.Philox(key=key).advance(rows.start * blocks)
    return np.random.Generator(bits).random((rows.stop - rows.start, blocks * _DRAWS_PER_BLOCK))


def _clique(scope: Sequence[int], separator: Sequence[int], sizes: Sequence[int]) -> _Clique:
    others = tuple(v for v in scope if v not in separator)
    axes = (*(scope.index(v) for v in separator), len(scope), *(scope.index(v) for v in others))
    return _Clique(tuple(separator), others, axes, tuple(sizes[v] for v in others))
