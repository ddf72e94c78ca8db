"""Output of a propagation: marginals of steps' tables, and the posteriors of a batch of cases."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import normalise_columns
from elimina.display import bars_of, html_of, sample, text_of, with_types_as_written
from elimina.model.variable import Variable
from elimina.number_texts import counted
from elimina.planning.packed_steps import Outputs, Steps
from elimina.planning.step import Output, Step
from elimina.system import cached_property, frame_of

if TYPE_CHECKING:
    from elimina.system import Library

Array = NDArray[Any]

Floats = NDArray[np.float64]

_SAFE_TOTAL = 1e-280
"""Least sum by which values are divided directly; for smaller sums, values are scaled first, to keep precision."""


class OutputLayout:
    """Layout of requested outputs within the range of an arena that contains all outputs of a program.

    Args:
        steps: Steps of the plan.
        outputs: ``Plan.outputs``.
        asked: Numbers of the requested outputs.
        first: Start of the range in the arena.
    """

    def __init__(self, steps: Steps, outputs: Sequence[Output], asked: Sequence[int], first: int) -> None:
        self._steps, self._outputs, self._first = steps, outputs, first
        self._asked = np.array(asked, dtype=np.int64)
        self._columns: NDArray[np.int64] | None = None

    def tables(self, zone: Array) -> list[Array]:
        """Return each requested output as an array."""
        outputs = (self._outputs[number] for number in self._asked.tolist())
        steps = [(self._steps[number], scope) for number, scope in outputs]
        return [step_table(step, zone[step.out_offset - self._first :], scope) for step, scope in steps]

    def columns(self, zone: Array) -> NDArray[np.int64]:
        """Return a row for each output whose axes are a variable and the cases.

        A row has the offset, the number of values, and the strides of values and of cases (0 for a single case).
        """
        if self._columns is None:
            start, item = zone.__array_interface__["data"][0], zone.itemsize
            rows = []
            for table in (table for table in self.tables(zone) if table.ndim == 2):
                step, following = table.strides
                at = table.__array_interface__["data"][0] - start
                rows.append((at, len(table) * item, step, following if table.shape[1] > 1 else 0))
            self._columns = np.array(rows, dtype=np.int64).reshape(-1, 4) // item
        return self._columns

    @cached_property
    def ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Offset and size of each output, and its start in a concatenation of all outputs; each output has one axis."""
        numbers = Outputs.packed(self._outputs).steps[self._asked]
        sizes = self._steps.first_sizes_of(numbers)
        return self._steps.offsets_of(numbers) - self._first, sizes, np.cumsum(sizes) - sizes

    @cached_property
    def vectors(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Offset of each element, start of each output, and output of each element, for outputs with one axis."""
        at, sizes, starts = self.ends
        owners = np.repeat(np.arange(len(sizes)), sizes)
        return np.arange(len(owners)) + (at - starts)[owners], starts, owners

    @cached_property
    def slices(self) -> list[slice]:
        """Slice of each output in ``vectors``."""
        cells, starts, _ = self.vectors
        return [slice(a, b) for a, b in itertools.pairwise([*starts.tolist(), len(cells)])]

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """Argument of ``normalise_columns``: offset, number of values, two strides, and first row of each output."""
        at, sizes, starts = self.ends
        ones = np.ones_like(starts)
        return np.stack([at, sizes, ones, ones, starts], axis=1)


class PropagatedTables(NamedTuple):
    """Output of a propagation.

    Attributes:
        zone: Elements of the program's outputs, along the last axis; several cases are along the first axis.
        layout: Layout of the requested outputs.
        is_possible: False if the sum is known to be 0.
        total: Function that returns the natural logarithm of the sum; None if the sum was not requested.
        logarithmic: True if tables contain natural logarithms.
        sound: False if a product may have left the dtype's range: the run has to be repeated in ``log-sum-exp``.
    """

    zone: Array
    layout: OutputLayout
    is_possible: bool
    total: Callable[[], NDArray[np.float64]] | None
    logarithmic: bool
    sound: bool

    @property
    def log_sum(self) -> NDArray[np.float64]:
        """Natural logarithm of the model's sum given the evidence (``min-sum``: of the best product), for each case."""
        assert self.total is not None
        return self.total()

    @property
    def tables(self) -> list[Array]:
        """Requested unnormalised tables, with the axes of ``Plan.outputs``."""
        return self.layout.tables(self.zone)

    def vectors(self, scale: str = "sum") -> list[NDArray[np.float64]]:
        """Return the normalised marginals of single variables; the tables must not have an axis of cases.

        Args:
            scale: ``sum``: divide values by their sum; ``max``: divide them by the largest value.

        Returns:
            One array for each marginal, with the values along its last axis; NaN where all values are 0.
        """
        cells, _ = self.shares(scale)
        slices = self.layout.slices
        return [cells[values] for values in slices] if cells.ndim == 1 else [cells[..., values] for values in slices]

    def shares(self, scale: str = "sum") -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return ``vectors`` concatenated to one array, and the start of each."""
        _, sizes, starts = self.layout.ends
        if not len(starts):
            return np.zeros(0), starts
        if scale == "sum" and not self.logarithmic and self.zone.ndim == 1 and self.zone.dtype == np.float64:
            normalised = np.empty((int(starts[-1] + sizes[-1]), 1))
            # ``logical_and.reduce`` takes half the time of ``array.all``, which matters for small networks.
            if np.logical_and.reduce(normalise_columns(self.zone, self.layout.rows, normalised)):
                return normalised[:, 0], starts
        zone_cells, _, owners = self.layout.vectors
        cells = self.zone[..., zone_cells].astype(np.float64, copy=False)
        if scale == "sum" and not self.logarithmic:
            sums = np.add.reduceat(cells, starts, axis=-1)
            if sums.min() > _SAFE_TOTAL and sums.max() < math.inf:
                return cells / sums[..., owners], starts
        highs = np.maximum.reduceat(cells, starts, axis=-1)[..., owners]
        with np.errstate(invalid="ignore"):
            cells = np.exp(cells - highs) if self.logarithmic else cells / highs
        if scale == "sum":
            cells /= np.add.reduceat(cells, starts, axis=-1)[..., owners]
        return cells, starts


def step_table(step: Step, values: Array, scope: Sequence[int]) -> Array:
    """Return a step's output as an array with the axes of a scope; axes that the output lacks have length 1."""
    if not step.sizes:
        return values[:1].reshape((1,) * len(scope)) if scope else values[0]
    item = values.itemsize
    view = np.lib.stride_tricks.as_strided(values, step.sizes, [stride * item for stride in step.out_strides])
    axes = [step.axes.index(v) for v in scope if v in step.axes]
    shape = [step.sizes[step.axes.index(v)] if v in step.axes else 1 for v in scope]
    table: Array = view.transpose(axes).reshape(shape)
    return table


def normalised(table: Array, logarithmic: bool, out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Return probabilities along axis 0: values divided by their sum; zeros if all values are 0.

    Args:
        table: Values, or their logarithms.
        logarithmic: True if the values are logarithms.
        out: Array for the result, which saves time: threads that allocate memory wait for each other.
    """
    if not logarithmic and table.dtype == np.float64:
        totals = table.sum(axis=0)
        if totals.min(initial=1.0) > _SAFE_TOTAL:
            quotients: NDArray[np.float64] = np.divide(table, totals, out=out)
            return quotients
    values = table.astype(np.float64)
    high = values.max(axis=0)
    if logarithmic:
        values = np.exp(values - np.where(np.isfinite(high), high, 0.0))
    elif (high > 0).any():
        values = np.divide(values, high, out=np.zeros_like(values), where=high > 0)
    total = values.sum(axis=0)
    shares = np.empty_like(values) if out is None else out
    shares[...] = 0
    np.divide(values, total, out=shares, where=total > 0)
    return shares


def logarithms(values: Array, logarithmic: bool) -> NDArray[np.float64]:
    """Return the logarithms of values: sums of logarithms stay in range, even where products of messages would not."""
    if logarithmic:
        return values.astype(np.float64)
    with np.errstate(divide="ignore"):
        logs: NDArray[np.float64] = np.log(values.astype(np.float64))
    return logs


@with_types_as_written
class Posteriors(NamedTuple):
    """Posteriors of a batch.

    Attributes:
        marginals: Variable name -> float64 array of shape ``(cases, size)``, stored with the cases as the fastest axis;
            zeros for impossible cases.
        log10_evidence: float64 array of shape ``(cases,)``: base-10 logarithm of the probability of the case's
            observations; minus infinity for impossible cases.
        variables: The variables of the marginals.
        labels: Index of the pandas frame that held the cases; None for other input.
        errors: float64 array of shape ``(cases,)``: the estimated error of each case, which is the mean Hellinger
            distance of its marginals from the exact ones; 0 for exact cases, NaN if it is unknown. None if all cases
            are exact.
        joints: Names of variables -> float64 array of shape ``(cases, size, ...)``: their joint posteriors; zeros for
            impossible cases. None if no joint posteriors were requested.
    """

    marginals: dict[str, Floats]
    log10_evidence: Floats
    variables: tuple[Variable, ...]
    labels: Any = None
    errors: Floats | None = None
    joints: dict[tuple[str, ...], Floats] | None = None

    @property
    def statuses(self) -> NDArray[np.str_]:
        """Status of each case, shape ``(cases,)``: ``exact``, ``estimated`` or ``infeasible``."""
        errors = np.zeros(len(self.log10_evidence)) if self.errors is None else self.errors
        return np.where(np.isneginf(self.log10_evidence), "infeasible", np.where(errors == 0, "exact", "estimated"))

    @property
    def log_evidence(self) -> Floats:
        """Natural logarithms of the probabilities of the cases' observations: see ``log10_evidence``."""
        return self.log10_evidence * math.log(10)

    def mark_impossible(self, cases: NDArray[np.bool_]) -> None:
        """Set the probability of some cases to 0."""
        if cases.any():
            self.log10_evidence[cases] = -np.inf
            if self.errors is not None:
                self.errors[cases] = 0.0
            for table in (*self.marginals.values(), *(self.joints or {}).values()):
                table[cases] = 0.0

    def to_frame(self, library: Library = "pandas") -> Any:
        """Return a data frame with a row for each case.

        A column ``NAME=state`` contains the probabilities of a state; these columns are followed by ``log10_evidence``
        and, if there are ``errors``, by ``status`` and ``error``. A pandas frame has the index of the cases' frame, so
        that ``cases.join(posteriors.to_frame())`` matches their rows.

        Args:
            library: ``pandas``, ``polars`` or ``pyarrow`` (a ``Table``).

        Raises:
            TypeError: ``library`` is not text.
            InputError: ``library`` is unknown or not installed.
        """
        from elimina.io.posteriors import ERROR, EVIDENCE, STATUS, posterior_columns

        columns = [column for v in self.variables for column in self.marginals[v.name].T]
        named = dict(zip(posterior_columns(self.variables), columns, strict=True))
        errors = {} if self.errors is None else {STATUS: self.statuses, ERROR: self.errors}
        return frame_of({**named, EVIDENCE: self.log10_evidence, **errors}, library, self.labels)

    def __repr__(self) -> str:
        return text_of("Posteriors", self._figures())

    def _repr_html_(self) -> str:
        if not len(self.log10_evidence):
            return html_of("Posteriors", self._figures())
        first = {v.name: dict(zip(v.all_states, self.marginals[v.name][0], strict=True)) for v in self.variables}
        return html_of("Posteriors", self._figures(), "<p>first row</p>", bars_of(first))

    def _figures(self) -> list[tuple[str, str]]:
        impossible = int(np.isneginf(self.log10_evidence).sum())
        rows = [
            ("rows", f"{len(self.log10_evidence):,}, {impossible:,} of them impossible"),
            ("variables", sample(self.marginals, len(self.marginals))),
        ]
        if self.errors is not None and self.errors.any():
            estimated, positive_errors = np.count_nonzero(self.errors), self.errors[self.errors > 0]
            size = f", error about {positive_errors.mean():.1g}" if len(positive_errors) else ", error unknown"
            rows.append(("estimated", f"{counted(int(estimated), 'case')}{size}"))
        return rows
