"""A plan: steps in their order and positions of all tables, as plain data made before any allocation."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple, Self, dataclass_transform

from elimina.display import bar, html_of, text_of, with_types_as_written
from elimina.number_texts import bytes_text, counted, seconds_text
from elimina.planning.packed_steps import Steps
from elimina.planning.plan_rows import fused_rows, product_rows
from elimina.planning.step import FactorLayout, Output, Step
from elimina.problem.semirings import SEMIRINGS

MAX_BYTES = 2**62
"""Limit that exceeds the memory of any machine."""


class StorageForm(NamedTuple):
    """Storage of a step's output.

    Attributes:
        in_rows: True if the step is sparse and joins tuples; False if it is dense.
        rows: Predicted number of allowed tuples of the output.
    """

    in_rows: bool
    rows: float


class Sparse(NamedTuple):
    """Steps and tables of a plan for sparse sessions; only dense steps have positions in an arena.

    Attributes:
        factors: Factors of the plan, at the start of the arena.
        steps: Steps of the plan; dense steps that do not depend on sparse ones come first.
        forms: Storage of each step's output.
        memory: Memory limit of all tables together, in bytes.
        outside: Bounds on the rest of the problem for each step. With them, tuples that cannot be part of a solution
            are dropped. None: tuples are dropped only if their own value is forbidden.
        lasting: Steps whose outputs stay, because other slices read them again.
    """

    factors: Sequence[FactorLayout]
    steps: tuple[Step, ...]
    forms: tuple[StorageForm, ...]
    memory: int
    outside: OutsideBounds | None = None
    lasting: frozenset[int] = frozenset()

    @property
    def predicted(self) -> tuple[int, float, float]:
        """Number of sparse steps, number of tuples of the largest output, and number of tuples of all outputs."""
        rows = [form.rows for form in self.forms if form.in_rows]
        return len(rows), max(rows, default=0.0), sum(rows)


class MiniBuckets(NamedTuple):
    """A partition of buckets into mini-buckets, with which the plan bounds the answer.

    Attributes:
        ibound: Largest number of variables of a message.
        divided: Number of partitioned buckets.
        nodes: Number of all buckets and mini-buckets.
        matched: True if costs are shifted between the mini-buckets of a variable.
        by_content: True if the partition depends on the contents of the tables.
    """

    ibound: int
    divided: int
    nodes: int
    matched: bool
    by_content: bool = False


def slice_runs(sizes: Sequence[int]) -> list[int]:
    """Return the number of runs of a step at each level (see ``Form.levels``), from level 0 on."""
    return list(itertools.accumulate(sizes, operator.mul, initial=1))


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Form:
    """Layout of a plan's tables over memory, runs and devices; ``running.plan_forms`` describes how to add a form.

    Subclasses declare fields like dataclasses, but are not dataclasses, because each would delay imports by 0.5 ms.

    Attributes:
        variables: Conditioned variables: each combination of their values has its own run. The variable whose value
            changes least often comes first.
        sizes: Number of values of each of these variables.
        levels: Level of each step: the number of leading ``variables`` up to the last one on which the step depends.
            The step runs again whenever one of these changes. Empty: each step runs once.
        limits: Memory limits of tiers other than the device's, in bytes.
        gpus: Number of GPUs that compute each step together.
        is_resident: True if the tables lie in the memory of the device that runs the plan.
        is_replanned: True if each run makes its own plan; steps and tables are then those of the whole order.
        is_allowed: True if the options allow the number of runs and the time.
    """

    variables: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    levels: tuple[int, ...] = ()
    limits: tuple[tuple[str, int], ...] = ()
    gpus: int = 1
    is_resident: bool = True
    is_replanned: bool = False
    is_allowed: bool = True

    def __init__(self, **fields: Any) -> None:
        vars(self).update(fields)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in vars(self).keys() | vars(other).keys())

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({fields})"

    def replace(self, **fields: Any) -> Self:
        """Return the form with some fields replaced."""
        return type(self)(**{**vars(self), **fields})

    @property
    def slices(self) -> int:
        """Number of slices."""
        return math.prod(self.sizes)

    def whole(self, plan: Plan) -> Plan:
        """Return the plan of this form without a division into runs."""
        return plan

    def with_levels(self, levels: Sequence[int]) -> Form:
        """Return the form with new levels of the steps; a form without levels is returned unchanged."""
        del levels
        return self

    def program_fields(self) -> dict[str, Any]:
        """Return the fields of ``program.Program`` that this form sets."""
        return {}

    def rows(self, plan: Plan) -> list[tuple[str, str]]:
        """Return the rows of a plan's text that describe the form."""
        del plan
        return []

    def figures(self) -> dict[str, Any]:
        """Return the entries of a plan's JSON that differ from those of a plan in the memory of one device."""
        return {}

    def statistics(self, plan: Plan) -> dict[str, Any]:
        """Return a run's entries of ``Result.stats``."""
        del plan
        return {}

    def advice(self, plan: Plan) -> str:
        """Return advice about this form for the error text of a plan that does not fit."""
        del plan
        return ""


class Resident(Form):
    """All tables in the memory of one device, and one run."""


RESIDENT = Resident()


class Shortfall(NamedTuple):
    """Figures for the error of a plan that does not fit.

    Attributes:
        held: Bytes that the call had already allocated when the plan was made.
        enough: Sufficient memory limit in bytes; 0 if it is unknown.
        fits_sparse: True if a plan on sparse tables would fit, although the options exclude it.
    """

    held: int = 0
    enough: int = 0
    fits_sparse: bool = False


@with_types_as_written
class Plan(NamedTuple):
    """A plan, made before any allocation; ``print(plan)`` shows its figures.

    Attributes:
        task: Task of the plan, such as ``mpe``.
        semiring: Semiring of the steps, such as ``min-sum``.
        dtype: Number type of every table in the arena.
        forbidden: The value that represents 'forbidden'.
        order: Variables (indices) in elimination order.
        kept: Variables that are not eliminated.
        width: Induced width of the order.
        factors: Tables at the start of the arena.
        steps: Steps in the order in which they run: of one slice, or of each of several GPUs.
        outputs: Tables that make up the answer.
        factor_cells: Number of elements of all factors.
        arena_cells: Number of elements of the whole arena.
        keep: True if each message has its own memory until the end.
        decode: True if the assignment is decoded from the messages.
        device: ``cpu`` or ``cuda``.
        memory_limit: Memory limit on the device, in bytes.
        bytes: Peak bytes by memory tier: ``device``, ``host``, ``disk``.
        seconds: Estimated running time of all slices.
        largest_table: Cells of the largest table.
        work: Number of combinations of output cells and eliminated values, over all steps and slices.
        operations: Number of semiring operations: one for each table and combination.
        form: Layout over memory, runs and devices. Width, tables and bytes are those of one slice, or of each GPU.
        sparse: Steps on sparse tables, which contain only allowed tuples; None: all tables are dense. Bytes and seconds
            are then predictions.
        minibuckets: Partition of the buckets; None: the plan is exact.
        planning_bytes: Bytes of planning and of the records; they are part of the host's bytes.
        first_decoded: The first step whose variables are decoded; messages that only earlier steps read are released.
        shortfall: Figures for the error text of a plan that does not fit.

    Examples:
        >>> import elimina
        >>> plan = elimina.plan("examples/pump.bif", "mar")
        >>> plan.width, plan.fits
        (3, True)
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
    form: Form = RESIDENT
    sparse: Sparse | None = None
    minibuckets: MiniBuckets | None = None
    planning_bytes: int = 0
    first_decoded: int = 0
    shortfall: Shortfall = Shortfall()

    @property
    def levels(self) -> tuple[int, ...]:
        """Level of each step (see ``Form.levels``)."""
        return self.form.levels or (0,) * len(self.steps)

    @property
    def runs(self) -> Sequence[int]:
        """Number of runs of each step."""
        by_level = slice_runs(self.form.sizes)
        return [by_level[level] for level in self.levels]

    @property
    def whole(self) -> Plan:
        """The plan without slices or segments, with an order of all variables."""
        return self.form.whole(self)

    @property
    def is_plain(self) -> bool:
        """True if dense tables lie in the memory of one device, which runs all steps once."""
        return self.form == RESIDENT and self.sparse is None

    @property
    def is_recorded(self) -> bool:
        """True if the plan contains its steps; they are left out if their records alone exceed the memory limit."""
        return len(self.steps) > 0 or not self.order

    @property
    def itemsize(self) -> int:
        """Bytes of an element of the arena."""
        return int(self.dtype.lstrip("uintfloa")) // 8

    @property
    def on_host(self) -> bool:
        """True if the CPU runs the plan, so that its arena is in host memory or in a file."""
        return "device" not in self.bytes

    @property
    def peak_bytes(self) -> int:
        """Peak bytes on the device that runs the plan."""
        return self.bytes["host"] if self.on_host else self.bytes["device"]

    @property
    def fits(self) -> bool:
        """True if the plan stays within its memory limits and the allowed number of slices."""
        form = self.form
        if not form.is_allowed or self.peak_bytes > min(self.memory_limit, MAX_BYTES):
            return False
        return not form.limits or all(self.bytes.get(tier, 0) <= limit for tier, limit in form.limits)

    @property
    def filled(self) -> float:
        """Peak memory as a share of the memory limit."""
        return min(self.peak_bytes, MAX_BYTES) / max(1, self.memory_limit)

    @property
    def has_large_factors(self) -> bool:
        """True if the factors alone exceed the memory of the device or of the host."""
        room = min(self.memory_limit, dict(self.form.limits).get("host", self.memory_limit))
        return self.factor_cells * self.itemsize > room

    @property
    def has_large_steps(self) -> bool:
        """True if the plan does not fit because of its number of steps, regardless of its tables."""
        return not self.is_recorded or (not self.fits and 2 * self.planning_bytes > self.peak_bytes)

    def __str__(self) -> str:
        return "\n".join(f"{name + ':':22}{text}" for name, text in self._figures())

    def to_json(self) -> str:
        """Return the figures as a JSON object on one line; sizes in cells and bytes, times in seconds.

        ``docs/reference/answers.md`` describes its keys. Infinity and NaN become null.
        """
        import json

        divided = self.minibuckets
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
            "slices": None,
            "sliced": [],
            "ibound": None if divided is None else divided.ibound,
            "gpus": 1,
            "segments": 1,
            **self.form.figures(),
        }
        return json.dumps(figures)

    def __repr__(self) -> str:
        return text_of("Plan", self._figures())

    def _repr_html_(self) -> str:
        return html_of("Plan", self._figures(), f"<p>memory, of its limit</p>{bar(self.filled)}")

    def _figures(self) -> list[tuple[str, str]]:
        steps = counted(len(self.steps), "step") if self.is_recorded else "steps too many to list"
        return [
            ("task", f"{self.task} ({self.semiring}, {self.dtype})"),
            ("variables", f"{len(self.order):,} to eliminate, {counted(len(self.factors), 'table')}, {steps}"),
            ("induced width", str(self.width)),
            *self._divided(),
            ("largest table", counted(self.largest_table, "cell", is_rounded=True)),
            (
                "work",
                f"{counted(self.work, 'combination', is_rounded=True)}, "
                f"{counted(self.operations, 'operation', is_rounded=True)}",
            ),
            *((f"peak memory, {tier}", bytes_text(size)) for tier, size in self.bytes.items()),
            (
                "memory limit",
                f"{bytes_text(self.memory_limit)} on {self.device}: {'fits' if self.fits else 'does not fit'}",
            ),
            *((f"limit, {tier}", bytes_text(limit)) for tier, limit in self.form.limits),
            *(fused_rows(self.steps) if self.sparse is None else ()),
            *(product_rows(self.steps) if SEMIRINGS[self.semiring].is_product and self.sparse is None else ()),
            *self._sparse_steps(),
            ("estimated time", seconds_text(self.seconds)),
            *self.form.rows(self),
        ]

    def _divided(self) -> list[tuple[str, str]]:
        if self.minibuckets is None:
            return []
        ibound, divided, nodes, matched, by_content = self.minibuckets
        text = f"i-bound {ibound}: {divided} of {len(self.order)} buckets partitioned, {nodes} mini-buckets"
        ways = (", by content" if by_content else "") + (", moment matching" if matched else "")
        return [("mini-buckets", text + ways)]

    def _sparse_steps(self) -> list[tuple[str, str]]:
        if self.sparse is None:
            return []
        steps, largest, total = self.sparse.predicted
        tuples = f"{_tuples_text(largest)} predicted in the largest table, {_tuples_text(total)} in all"
        return [("sparse steps", f"{steps} of {len(self.steps)}; {tuples}")]


def _tuples_text(tuples: float) -> str:
    """Format a predicted number of tuples."""
    return "more than 1e+300 tuples" if tuples > 1e300 else counted(math.ceil(tuples), "tuple", is_rounded=True)


class TablePlace(NamedTuple):
    """A table of an arena.

    Attributes:
        offset: Start of the table, in elements.
        scope: Variables of the table.
        sizes: Number of values of each variable.
        strides: Stride of each variable, in elements.
    """

    offset: int
    scope: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


class OutsideBounds(NamedTuple):
    """A program that bounds the rest of the problem for each step, and the positions of its tables.

    Attributes:
        steps: Steps of the program. Its arena begins with the plan's factors.
        arena_cells: Number of elements of the program's arena.
        factors: Positions of the plan's factors.
        outputs: Tables of each step, which together bound its output from below.
        others: Tables of each step, which together bound the other factors of its tree: those outside its subtree.
        trees: Tables of each tree's root, which together bound the optimum of the tree.
        tree_of: Number of each step's tree.
    """

    steps: Steps
    arena_cells: int
    factors: tuple[TablePlace, ...]
    outputs: tuple[tuple[TablePlace, ...], ...]
    others: tuple[tuple[TablePlace, ...], ...]
    trees: tuple[tuple[TablePlace, ...], ...]
    tree_of: tuple[int, ...]
