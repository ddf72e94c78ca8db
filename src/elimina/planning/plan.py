"""A plan: the steps in their order and the places of all tables; plain data, made before any memory is allocated."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from elimina.display import bar, bytes_text, count_text, html_of, seconds_text, text_of, times_text
from elimina.planning.packed_steps import Steps
from elimina.planning.plan_rows import fused_rows, product_rows
from elimina.planning.step import FactorLayout, Output, Step
from elimina.problem.semirings import SEMIRINGS

if TYPE_CHECKING:
    from elimina.planning.shard_program import Shards
    from elimina.planning.stream import Stream

MAX_BYTES = 2**62
"""No machine has more."""


class StorageForm(NamedTuple):
    """Storage of a step's output.

    Attributes:
        in_rows: True if the step is sparse: it joins tuples. False if it is dense.
        rows: Predicted number of feasible cells of the output.
    """

    in_rows: bool
    rows: float


class Sparse(NamedTuple):
    """A plan's steps and tables as a session on rows needs them: places in an arena are for dense steps only.

    Attributes:
        factors: The plan's, at the start of the arena.
        steps: The plan's; those that rows do not reach come first.
        forms: Storage of each step's output.
        memory: Bytes that all tables together may take.
        outside: Bounds on the rest of the problem for each step: tuples that can be part of no solution are dropped.
            None: tuples are only dropped for their own values.
        lasting: Steps whose outputs stay, for in other slices they are read again.
    """

    factors: Sequence[FactorLayout]
    steps: tuple[Step, ...]
    forms: tuple[StorageForm, ...]
    memory: int
    outside: OutsideBounds | None = None
    lasting: frozenset[int] = frozenset()

    @property
    def predicted(self) -> tuple[int, float, float]:
        """Number of steps on rows, the largest output of theirs in rows, and all of them together."""
        rows = [form.rows for form in self.forms if form.in_rows]
        return len(rows), max(rows, default=0.0), sum(rows)


class Slicing(NamedTuple):
    """A problem cut into slices, one for each combination of values of a few variables.

    Attributes:
        variables: Variables conditioned on; the one that changes least often comes first.
        names: Names of these variables.
        sizes: Their numbers of values.
        levels: Number of variables, from the first on, that each step runs again for: those up to the last one it
            depends on.
        unsliced: The plan without slices, which does not fit.
        allowed: True if so many slices, and so much time, may be taken.
    """

    variables: tuple[int, ...]
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    levels: tuple[int, ...]
    unsliced: Plan
    allowed: bool

    @property
    def number(self) -> int:
        """Number of slices."""
        return math.prod(self.sizes)

    @property
    def runs(self) -> list[int]:
        """Number of runs of each step."""
        by_level = slice_runs(self.sizes)
        return [by_level[level] for level in self.levels]

    @property
    def shared(self) -> int:
        """Number of steps that run once for all slices."""
        return self.levels.count(0)


class Segments(NamedTuple):
    """An optimum's order in segments, of which one at a time keeps all of its messages (``methods.segments``).

    Attributes:
        ends: Place in the order behind the last variable of each segment.
        whole: The plan that keeps all messages, which does not fit.
        dtype: Override of the dtype of each segment's tables.
    """

    ends: tuple[int, ...]
    whole: Plan
    dtype: str | None


class MiniBuckets(NamedTuple):
    """A partition of buckets into mini-buckets: the plan bounds the optimum.

    Attributes:
        ibound: Largest number of variables of a message.
        divided: Number of buckets that are partitioned.
        parts: Number of all buckets and mini-buckets.
        levelled: True if costs are shifted between the mini-buckets of a variable.
        by_content: True if the partition depends on the contents of the tables.
    """

    ibound: int
    divided: int
    parts: int
    levelled: bool
    by_content: bool = False


def slice_runs(sizes: Sequence[int]) -> list[int]:
    """Return how often a step of each level runs (see ``Slicing.levels``), from level 0 on."""
    return list(itertools.accumulate(sizes, operator.mul, initial=1))


class Plan(NamedTuple):
    """A plan, made before anything is allocated; ``print(plan)`` shows its figures.

    Attributes:
        task: ``mpe``, ``pr``, ``mar`` or ``count``.
        semiring: See ``Program.semiring``.
        dtype: Number type of every table in the arena.
        forbidden: The value that stands for 'forbidden'.
        order: Variables (indices) in elimination order.
        kept: Variables that are not eliminated.
        width: Induced width of the order.
        factors: Tables at the start of the arena.
        steps: Steps in the order in which they run.
        outputs: Tables that make up the answer.
        factor_cells: Elements that the factors take.
        arena_cells: Elements of the whole arena.
        keep: True if each message has a place of its own until the end.
        decode: True if the assignment is decoded from the messages.
        device: ``cpu`` or ``cuda``.
        memory_limit: Bytes that may be used on the device.
        bytes: Peak bytes by memory tier: ``device``, ``host``, ``disk``.
        seconds: Estimated time to run, all slices.
        largest_table: Cells of the largest table.
        work: Combinations of output cells and eliminated values, over all steps and slices.
        operations: Semiring operations: one for each table and combination.
        slicing: Slices that fit; None if there are none. Steps, width, tables and bytes are then those of a slice,
            without the variables that it conditions on.
        limits: Bytes that may be used of other tiers than the device's own.
        stream: Passage of the tables through a device that is smaller than the arena; None: they lie there.
        scratch: The directory of the file that the arena lies in; None: it lies in memory.
        sparse: Steps on sparse tables, which hold the allowed tuples alone; None: all tables are dense. Bytes and
            seconds are then predictions.
        minibuckets: Partition of the buckets; None: the plan is exact.
        fits_sparse: True if this plan does not fit, but a sparse one (which the options rule out) would.
        shards: Division among GPUs; None: one device runs the plan, or each of its slices. Steps and bytes are then
            those of each GPU.
        segments: Segments of the order that run one after another; None: it has one. Steps and tables are then those
            of the whole order; bytes, work and seconds are estimates of all runs.
        planning_bytes: Bytes that planning and the records take, a part of the host's.
        held: Bytes that a call held when it made a plan that does not fit its limit.
        enough: Limit in bytes with which that would fit; 0 if it is not known.
    """

    task: str
    semiring: str
    dtype: str
    forbidden: float
    order: tuple[int, ...]
    kept: tuple[int, ...]
    width: int
    factors: Sequence[FactorLayout]
    steps: Sequence[Step]
    outputs: Sequence[Output]
    factor_cells: int
    arena_cells: int
    keep: bool
    decode: bool
    device: str
    memory_limit: int
    bytes: dict[str, int]
    seconds: float
    largest_table: int
    work: int
    operations: int
    slicing: Slicing | None = None
    limits: tuple[tuple[str, int], ...] = ()
    stream: Stream | None = None
    scratch: str | None = None
    sparse: Sparse | None = None
    minibuckets: MiniBuckets | None = None
    fits_sparse: bool = False
    shards: Shards | None = None
    segments: Segments | None = None
    planning_bytes: int = 0
    held: int = 0
    enough: int = 0

    @property
    def runs(self) -> Sequence[int]:
        """Number of runs of each step."""
        return [1] * len(self.steps) if self.slicing is None else self.slicing.runs

    @property
    def whole(self) -> Plan:
        """The plan without slices or segments, whose order has every variable."""
        if self.segments is not None:
            return self.segments.whole
        return self if self.slicing is None else self.slicing.unsliced

    @property
    def is_recorded(self) -> bool:
        """True if the plan has steps: those whose records alone pass the memory limit are left out."""
        return len(self.steps) > 0 or not self.order

    @property
    def itemsize(self) -> int:
        """Bytes of an element of the arena."""
        return int(self.dtype.lstrip("uintfloa")) // 8

    @property
    def on_host(self) -> bool:
        """True if the host's processor runs the plan, so that its arena is the host's memory or a file."""
        return "device" not in self.bytes

    @property
    def peak_bytes(self) -> int:
        """Bytes on the device that runs the plan."""
        return self.bytes["host"] if self.on_host else self.bytes["device"]

    @property
    def fits(self) -> bool:
        """True if the plan stays within its memory limits, and in no more slices than are allowed."""
        within = all(self.bytes.get(tier, 0) <= limit for tier, limit in self.limits)
        within = within and self.peak_bytes <= min(self.memory_limit, MAX_BYTES)
        return within and (self.slicing is None or self.slicing.allowed)

    @property
    def filled(self) -> float:
        """Share of the memory limit that is used at the peak."""
        return min(self.peak_bytes, MAX_BYTES) / max(1, self.memory_limit)

    @property
    def has_large_factors(self) -> bool:
        """True if the factors alone exceed the memory."""
        room = min(self.memory_limit, dict(self.limits).get("host", self.memory_limit))
        return self.factor_cells * self.itemsize > room

    @property
    def has_large_steps(self) -> bool:
        """True if the plan does not fit for its many steps, however its tables are cut."""
        return not self.is_recorded or (not self.fits and 2 * self.planning_bytes > self.peak_bytes)

    def with_room(self, cells: int) -> Plan:
        """Return the plan with an arena of so many elements, more than its tables take, in the host's memory."""
        host = self.bytes["host"] + (cells - self.arena_cells) * self.itemsize
        return self._replace(arena_cells=cells, bytes={**self.bytes, "host": host})

    def __str__(self) -> str:
        return "\n".join(f"{name + ':':22}{text}" for name, text in self._figures())

    def to_json(self) -> str:
        """Return the figures as one JSON object on one line; sizes in cells and bytes, times in seconds.

        ``docs/reference/answers.md`` describes its keys. Numbers that are not finite are null.
        """
        import json

        slicing, divided = self.slicing, self.minibuckets
        figures = {
            "schema": 1,
            "task": self.task,
            "semiring": self.semiring,
            "dtype": self.dtype,
            "device": self.device,
            "fits": self.fits,
            "induced_width": self.width,
            "variables": len(self.order),
            "tables": len(self.factors),
            "steps": len(self.steps) if self.is_recorded else None,
            "largest_table": self.largest_table,
            "work": self.work,
            "operations": self.operations,
            "bytes": dict(self.bytes),
            "memory_limit": self.memory_limit,
            "seconds": self.seconds if math.isfinite(self.seconds) else None,
            "slices": None if slicing is None else slicing.number,
            "sliced": [] if slicing is None else list(slicing.names),
            "ibound": None if divided is None else divided.ibound,
            "gpus": 1 if self.shards is None else self.shards.gpus,
            "segments": 1 if self.segments is None else len(self.segments.ends),
        }
        return json.dumps(figures)

    def __repr__(self) -> str:
        return text_of("Plan", self._figures())

    def _repr_html_(self) -> str:
        return html_of("Plan", self._figures(), f"<p>memory, of its limit</p>{bar(self.filled)}")

    def _figures(self) -> list[tuple[str, str]]:
        steps = f"{len(self.steps):,} steps" if self.is_recorded else "steps too many to list"
        return [
            ("task", f"{self.task} ({self.semiring}, {self.dtype})"),
            ("variables", f"{len(self.order):,} to eliminate, {len(self.factors):,} tables, {steps}"),
            ("induced width", str(self.width)),
            *self._divided(),
            ("largest table", f"{count_text(self.largest_table)} cells"),
            ("work", f"{count_text(self.work)} combinations, {count_text(self.operations)} operations"),
            *((f"peak memory, {tier}", bytes_text(size)) for tier, size in self.bytes.items()),
            (
                "memory limit",
                f"{bytes_text(self.memory_limit)} on {self.device}: {'fits' if self.fits else 'does not fit'}",
            ),
            *((f"limit, {tier}", bytes_text(limit)) for tier, limit in self.limits),
            *self._streaming(),
            *(fused_rows(self.steps) if self.sparse is None else ()),
            *self._gpus(),
            *(product_rows(self.steps) if SEMIRINGS[self.semiring].is_product and self.sparse is None else ()),
            *self._sparse_steps(),
            ("estimated time", seconds_text(self.seconds)),
            *([] if self.slicing is None else _slicing_rows(self, self.slicing)),
            *self._segments(),
        ]

    def _streaming(self) -> list[tuple[str, str]]:
        if self.stream is None:
            return []
        item = self.itemsize
        moved = f"{bytes_text(self.stream.up * item)} to the device, {bytes_text(self.stream.down * item)} back"
        return [("streamed", f"{len(self.stream.steps)} steps in tiles, {moved}")]

    def _gpus(self) -> list[tuple[str, str]]:
        if self.shards is None:
            return []
        gpus, _, _, divided, moved = self.shards
        return [("GPUs", f"{gpus}; {len(divided)} steps divided, {bytes_text(moved * self.itemsize)} between GPUs")]

    def _segments(self) -> list[tuple[str, str]]:
        if self.segments is None:
            return []
        ends, whole, _ = self.segments
        cost = f"{times_text(self.work, whole.work)} the work of one segment, which needs"
        text = f"{len(ends)}; {cost} {bytes_text(whole.peak_bytes)} and {seconds_text(whole.seconds)}"
        return [("segments", text)]

    def _divided(self) -> list[tuple[str, str]]:
        if self.minibuckets is None:
            return []
        ibound, divided, parts, levelled, by_content = self.minibuckets
        text = f"i-bound {ibound}: {divided} of {len(self.order)} buckets partitioned, {parts} mini-buckets"
        ways = (", by content" if by_content else "") + (", moment matching" if levelled else "")
        return [("mini-buckets", text + ways)]

    def _sparse_steps(self) -> list[tuple[str, str]]:
        if self.sparse is None:
            return []
        steps, largest, total = self.sparse.predicted
        tuples = f"{_tuples_text(largest)} predicted in the largest table, {_tuples_text(total)} in all"
        return [("sparse steps", f"{steps} of {len(self.steps)}; {tuples}")]


def _slicing_rows(plan: Plan, slicing: Slicing) -> list[tuple[str, str]]:
    """Return the rows of the plan's text on the cost of slices."""
    whole = slicing.unsliced
    fixed = ", ".join(f"{name} ({size})" for name, size in zip(slicing.names, slicing.sizes, strict=True))
    allowed = "" if slicing.allowed else ", more than are allowed"
    return [
        ("slices", f"{count_text(slicing.number)}{allowed}; {slicing.shared} of {len(plan.steps)} steps run once"),
        ("conditioned on", f"{len(slicing.names)}: {fixed}"),
        (
            "cost of slicing",
            f"{times_text(plan.work, whole.work)} the work of the unsliced plan, which needs "
            f"{bytes_text(whole.peak_bytes)} and {seconds_text(whole.seconds)}",
        ),
    ]


def _tuples_text(tuples: float) -> str:
    """Format a predicted number of tuples."""
    return "more than 1e+300 tuples" if tuples > 1e300 else f"{count_text(math.ceil(tuples))} tuples"


class TablePlace(NamedTuple):
    """A table of an arena.

    Attributes:
        offset: Start of the table, in elements.
        scope: Variables of the table.
        sizes: Their numbers of values.
        strides: Elements between two values of each.
    """

    offset: int
    scope: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


class OutsideBounds(NamedTuple):
    """A program over a plan's factors, and the places of its answers.

    Attributes:
        steps: Their arena begins with the plan's factors.
        arena_cells: Elements of that arena.
        factors: Places of the plan's factors.
        own: Tables that together bound each step's output from below.
        rest: Tables that bound, for each step, the factors that neither it nor its subtree has, without other trees.
        trees: Numbers that bound each tree.
        tree_of: Number of each step's tree.
    """

    steps: Steps
    arena_cells: int
    factors: tuple[TablePlace, ...]
    own: tuple[tuple[TablePlace, ...], ...]
    rest: tuple[tuple[TablePlace, ...], ...]
    trees: tuple[tuple[TablePlace, ...], ...]
    tree_of: tuple[int, ...]
