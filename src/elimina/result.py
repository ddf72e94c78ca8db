"""Answers of all tasks."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina import arguments
from elimina.answer_texts import (
    MAX_PRINTED_STATES,
    assignment_text,
    json_text,
    labelled,
    leading_marginals,
    marginals_table,
    policies_lines,
)
from elimina.display import Displayed, bars_of, escaped, html_of, sample, table_of, with_types_as_written
from elimina.errors import InputError, MemoryLimitError
from elimina.model.model import Model, rounded
from elimina.model.named_table import states_frame
from elimina.model.states import State
from elimina.number_texts import bytes_text, counted, ends_text, log_text, number_text, probability_text, seconds_text
from elimina.option_names import option
from elimina.problem.merged_marginals import MergedMarginal
from elimina.problem.merging import Merged
from elimina.problem.tasks import DESCRIPTIONS, described
from elimina.system import available_memory, cached_property

if TYPE_CHECKING:
    from elimina.model.policy import Policy
    from elimina.model.variable import Variable
    from elimina.system import Library


def in_terms_of(result: Result, model: Model) -> Result:
    """Return a result in terms of the caller's model: without auxiliary variables, and rounded to its decimals."""
    if model.decimals is not None:
        names = ("value", "lower_bound", "upper_bound")
        totals = {name: rounded(getattr(result, name), model.decimals) for name in names}
        ranked = tuple(pair._replace(value=rounded(pair.value, model.decimals)) for pair in result.ranked)
        result = result.replace(**totals, ranked=ranked)
    if result.assignment is None or len(result.assignment) <= len(model.variables):
        return result
    return result.replace(assignment={v.name: result.assignment[v.name] for v in model.variables})


_STATE_BYTES = 40
"""Bytes of a state of all posteriors together: its probability, as an array's element or in a dict."""

MAX_DICT_STATES = 1 << 16
"""States of the largest domain with merged states whose marginal is a dict."""

_LARGE_MARGINALS_BYTES = 1 << 26
"""Bytes of posteriors above which they are compared with the free memory."""

JUNCTION_TREE = "junction tree"
"""``stats["structure"]`` of marginals that one junction tree made."""

SCHEMA = 1
"""Version of the JSON object that ``Result.to_json`` writes."""

Status = Literal["optimal", "exact", "bounded", "estimated", "feasible", "infeasible", "unbounded", "unknown"]

OPEN_STATUSES: tuple[Status, ...] = ("bounded", "estimated", "feasible")
"""Statuses of answers that more time may improve."""

EndedBy = Literal[
    "interrupt",
    "termination",
    "time-limit",
    "memory-limit",
    "gap",
    "worker-lost",
    "device-error",
    "node-limit",
    "failure-limit",
    "solution-limit",
    "domain-limit",
]


@with_types_as_written
class Bounds(NamedTuple):
    """Bounds on an optimum at some time.

    Attributes:
        seconds: Time since filtering or search began.
        lower: Lower bound; None if it is unknown. If costs are maximised, the value of the best assignment.
        upper: Upper bound; None if it is unknown. If costs are minimised, the value of the best assignment.
        nodes: Nodes of the search so far.

    Examples:
        >>> import elimina
        >>> seen = []
        >>> options = elimina.Options(on_bounds=seen.append, method="search")
        >>> result = elimina.solve("examples/radio.wcsp", options=options)
        >>> seen[-1].lower, seen[-1].upper
        (1352, 1352)
    """

    seconds: float
    lower: int | float | None
    upper: int | float | None
    nodes: int = 0

    @property
    def gap(self) -> float:
        """Distance of the bounds, relative to the one that is closer to 0; infinity if one is unknown."""
        if self.lower is None or self.upper is None:
            return math.inf
        try:
            return (self.upper - self.lower) / max(min(abs(self.lower), abs(self.upper)), 1e-12)
        except OverflowError:
            # Bounds on a count may be integers beyond the range of floats.
            return math.inf


class Objective(NamedTuple):
    """Value and bounds of one of several objectives.

    Attributes:
        value: Value in the assignment.
        lower_bound: Lower bound on the best value while earlier objectives keep theirs; None if it is unknown.
        upper_bound: Upper bound, as ``lower_bound``.
    """

    value: int
    lower_bound: int | float | None
    upper_bound: int | float | None

    @property
    def gap(self) -> float:
        """Distance of the bounds, relative to the one that is closer to 0; infinity if one is unknown."""
        return Bounds(0.0, self.lower_bound, self.upper_bound).gap


@with_types_as_written
class RankedAssignment(NamedTuple):
    """An assignment in the sequence of the best ones.

    Attributes:
        value: Its value in the model's units: a cost, or the natural logarithm of a probability.
        assignment: Variable name -> state.
    """

    value: int | float
    assignment: Mapping[str, State]


MarginalBounds = Mapping[str, Mapping[Any, tuple[float, float]]]
"""Variable name -> {state: (lower, upper)}."""


@with_types_as_written
class Interval(NamedTuple):
    """Confidence interval of a logarithm.

    Attributes:
        low: Lower end; minus infinity if there is none.
        high: Upper end; infinity if there is none.
        level: Least probability that the interval contains the exact number.

    Examples:
        >>> import elimina
        >>> interval = elimina.Interval(low=-3.2, high=-3.0, level=0.95)
        >>> interval.low < -3.1 < interval.high
        True
    """

    low: float
    high: float
    level: float


class Delivery(NamedTuple):
    """A message between agents, or the start of an agent (no sender, no kind), with the times of its processing.

    Attributes:
        sender: Name of the sending agent.
        receiver: Name of the receiving agent.
        kind: Kind of message.
        size: Size of the message in bytes.
        sent: Simulated time of sending.
        begun: Simulated time at which the receiver began to process it.
        ended: Simulated time at which the receiver finished.
    """

    sender: str
    receiver: str
    kind: str
    size: int
    sent: float
    begun: float
    ended: float


def check_room(variables: Sequence[Variable]) -> None:
    """Raise ``MemoryLimitError`` if the probabilities of all states of some variables exceed the free memory."""
    needed = _STATE_BYTES * sum(variable.size for variable in variables)
    if needed > _LARGE_MARGINALS_BYTES and needed > (free := available_memory()):
        largest = max(variables, key=lambda variable: variable.size)
        raise MemoryLimitError(
            f"the posteriors take {bytes_text(needed)} of host memory, and {bytes_text(free)} are free: ask for other "
            f"variables ({option('query')}) than {largest.name!r}, which has {counted(largest.size, 'state')}"
        )


class Marginals(Mapping[str, Mapping[State, float]]):
    """Marginals as a read-only mapping over an array: variable name -> {state: probability}.

    Args:
        variables: Variables with a marginal.
        shares: Their probabilities, those of one variable after another; of a variable in ``merged``, those of its
            merged states.
        merged: Name of a variable -> its merged states. They are separated only when the variable's marginal is read,
            because its domain may be far larger than all tables. The marginal of a large domain is a mapping instead
            of a dict, for the same reason.
    """

    def __init__(
        self, variables: Sequence[Variable], shares: NDArray[np.float64], merged: Mapping[str, Merged] | None = None
    ) -> None:
        self._variables, self._shares, self._merged = variables, shares, merged or {}

    def __getitem__(self, name: str) -> Mapping[State, float]:
        if name not in self._numbers:
            raise arguments.unknown_key("marginal", name, self._numbers)
        number = self._numbers[name]
        begin, end = self._starts[number : number + 2].tolist()
        merged, shares = self._merged.get(name), self._shares[begin:end]
        if merged is not None and merged.variable.size > MAX_DICT_STATES:
            return MergedMarginal(merged, shares)
        shares = self._separated(name, shares)
        return dict(zip(self._variables[number].all_states, shares.tolist(), strict=True))

    def __contains__(self, name: object) -> bool:
        return name in self._numbers

    def __iter__(self) -> Iterator[str]:
        return (variable.name for variable in self._variables)

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """Return the probabilities of each variable's states as an array, which may be written to.

        Raises:
            MemoryLimitError: The arrays do not fit into the free memory.
        """
        self.check_room()
        shares, ends = self._shares.copy(), itertools.pairwise(self._starts.tolist())
        return {
            variable.name: self._separated(variable.name, shares[begin:end])
            for variable, (begin, end) in zip(self._variables, ends, strict=True)
        }

    def check_room(self) -> None:
        """Raise ``MemoryLimitError`` if the probabilities of all states do not fit into the free memory."""
        check_room(self._variables)

    def _separated(self, name: str, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._merged[name].spread(shares) if name in self._merged else shares

    def __len__(self) -> int:
        return len(self._variables)

    def __repr__(self) -> str:
        shown, others = leading_marginals(self, MAX_PRINTED_STATES)
        return f"{repr(shown)[:-1]}, … {others}}}" if others else repr(shown)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {variable.name: number for number, variable in enumerate(self._variables)}

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        merged = self._merged
        sizes = (len(merged[v.name].indices) if v.name in merged else v.size for v in self._variables)
        return np.cumsum([0, *sizes])


class NoMarginals(Mapping[str, Mapping[Any, float]]):
    """Marginals of an answer that has none: false and of length 0; reading an entry raises an ``InputError``.

    Args:
        status: Status of the answer.
        task: Task of the answer.
    """

    def __init__(self, status: str = "unknown", task: str = "mar") -> None:
        self._status, self._task = status, task

    def __getitem__(self, name: str) -> Mapping[Any, float]:
        raise self._error()

    def __iter__(self) -> Iterator[str]:
        raise self._error()

    def __len__(self) -> int:
        return 0

    def __contains__(self, name: object) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return other is None or isinstance(other, NoMarginals)

    def __hash__(self) -> int:
        return hash(NoMarginals)

    def __repr__(self) -> str:
        return f"NoMarginals(status={self._status!r}, task={self._task!r})"

    def _error(self) -> InputError:
        if not described(self._task).is_marginal:
            advice = "ask for them by the task mar: elimina.solve(model, 'mar')"
        elif self._status == "infeasible":
            advice = "the evidence has probability 0, so remove some of it"
        else:
            advice = "give the call more time or memory"
        return InputError(f"there are no marginals: the status is {self._status} (task {self._task}); {advice}")


_IN_TABLES = ("assignment", "marginals", "ranked")
"""Figures that a notebook shows as a table."""


@arguments.with_checked_methods
@dataclass(frozen=True, repr=False)
class Result(Displayed):
    """An answer: one class for all tasks and engines.

    Attributes:
        status: ``optimal``: an optimum is proven; ``exact``: sums, marginals and counts are exact; ``bounded``: between
            its bounds; ``estimated``: approximate, with an estimate of the error, and for ``pr`` and ``count`` also
            between its bounds; ``feasible``: an assignment without a bound; ``infeasible``: no assignment is allowed
            (or the evidence has probability 0); ``unbounded``: every assignment can be improved; ``unknown``: nothing
            is known.
        task: The task that was answered: one of ``solve``; ``dcop``; ``tsp``; ``satisfy``, ``minimise`` and
            ``maximise`` of constraint models.
        value: Value of the assignment in the model's units (a cost, the natural logarithm of a probability, or the
            length of a tour), the partition function if a float can hold it, or a count (an exact int). None if
            there is no value.
        lower_bound: Lower bound on ``value``, or for ``pr`` on ``log10_z`` if that is not exact. None if it does not
            apply.
        upper_bound: Upper bound, as ``lower_bound``.
        assignment: Variable name -> state; None if there is none. ``result["x"]`` is the state of the variable ``x``,
            or an InputError with the reason.
        tour: Cities in the order of a tour, from 1 on (task ``tsp``).
        count: Number of optimal assignments (task ``count-optima``; an exact int).
        ranked: Assignments with their values, the best first (task ``kbest``): pairs ``value`` and ``assignment``.
        policies: Decision -> its policy (task ``meu``, of influence diagrams).
        marginals: Variable name -> {state: probability}. An answer without them has a ``NoMarginals``, which is false,
            and which raises an InputError with the reason when it is read.
        marginal_bounds: Variable name -> {state: (lower, upper)}: bounds that hold on estimated marginals; empty: there
            are none.
        log10_z: Base-10 logarithm of the partition function or of the evidence's probability; minus infinity if that
            is 0. Also of an estimated ``count``.
        error: Estimated error of an estimate: the mean Hellinger distance of the marginals from the exact ones, or for
            ``pr`` and ``count`` the error of ``log10_z``. None if the numbers are not estimated.
        interval: Confidence interval of an estimated ``log10_z``; None unless the estimate comes from samples.
        ended_by: Cause that ended the run early; None if nothing did.
        solutions: All solutions in the order found, if a constraint search was asked for them; not part of the JSON
            object.
        objectives: Values and bounds of several objectives of a constraint model, the most important one first; empty
            if there is at most one. Not part of the JSON object.
        core: Assumptions of a constraint search that contradict each other and the constraints; not part of the JSON
            object.
        stats: Figures of the run: ``induced_width``, ``largest_table`` and ``total_cells`` (cells), ``peak_bytes``,
            ``seconds`` (by phase, and ``total``), ``device``, ``dtype``; with slices ``slices`` (their number),
            ``sliced`` (names of the variables conditioned on) and ``slices_skipped``; with sparse tables
            ``rows_made`` (tuples considered) and ``rows_filtered``; with a checkpoint ``resumed_slices`` and
            ``resumed_steps``.

    Examples:
        >>> import elimina
        >>> result = elimina.solve("examples/pump.bif", evidence={"Alarm": "on", "Noise": "loud"})
        >>> result.status, result.assignment["Bearing"]
        ('optimal', 'worn')
    """

    status: Status
    task: str
    value: int | float | None = None
    lower_bound: int | float | None = None
    upper_bound: int | float | None = None
    assignment: Mapping[str, Any] | None = None
    tour: Sequence[int] | None = None
    count: int | None = None
    ranked: Sequence[RankedAssignment] = ()
    policies: Mapping[str, Policy] = field(default_factory=dict)
    marginals: Mapping[str, Mapping[Any, float]] = NoMarginals()
    marginal_bounds: MarginalBounds = field(default_factory=dict)
    log10_z: float | None = None
    error: float | None = None
    interval: Interval | None = None
    ended_by: EndedBy | None = None
    stats: Mapping[str, Any] = field(default_factory=dict)
    solutions: Sequence[Mapping[str, Any]] = ()
    objectives: Sequence[Objective] = ()
    core: Sequence[Any] = ()

    def __post_init__(self) -> None:
        if isinstance(self.marginals, NoMarginals):
            object.__setattr__(self, "marginals", NoMarginals(self.status, self.task))

    def replace(self, **changes: Any) -> Result:
        """Return a copy with some attributes changed."""
        # The attributes are copied together: the constructor, which sets each field, takes five times as long.
        if not vars(self).keys() >= changes.keys():
            raise TypeError(f"a result has no attributes {sorted(changes.keys() - vars(self).keys())}")
        copy = object.__new__(Result)
        vars(copy).update(vars(self), **changes)
        copy.__post_init__()
        return copy

    @property
    def gap(self) -> float:
        """Distance of the bounds, relative to the one that is closer to 0; infinity if one is unknown."""
        return Bounds(0.0, self.lower_bound, self.upper_bound).gap

    @property
    def log_z(self) -> float | None:
        """Natural logarithm of the partition function or of the evidence's probability: see ``log10_z``."""
        return None if self.log10_z is None else self.log10_z * math.log(10)

    def __getitem__(self, what: Any) -> Any:
        """Return the state of a variable in the assignment; of a constraint model, the value of an expression.

        Raises:
            InputError: There is no assignment, or the variable is not in it.
        """
        if self.assignment is None:
            raise InputError(
                f"there is no assignment to read {what!r} from: the status is {self.status} (task {self.task})"
            )
        try:
            return self.assignment[what]
        except (KeyError, TypeError):
            raise InputError(f"the assignment has no variable named {what!r}") from None

    def to_json(self) -> str:
        """Return the answer as one JSON object on one line.

        ``docs/reference/answers.md`` describes its keys. If a key does not apply, or a number is not finite, the value
        is null. Only the task ``tsp`` has the key ``tour``, only ``count-optima`` the key ``count``, only ranked
        assignments the key ``ranked``, only influence diagrams the key ``policies``, only bounded
        posteriors the key ``marginal_bounds``, and only an estimate the keys ``error`` and ``interval``.

        Raises:
            MemoryLimitError: The posteriors of all states do not fit into the free memory.
        """
        self._check_room()
        fields = {"schema": SCHEMA, **{field.name: getattr(self, field.name) for field in dataclasses.fields(self)}}
        del fields["solutions"], fields["objectives"], fields["core"]
        if isinstance(self.marginals, NoMarginals):
            fields["marginals"] = None
        if not self.marginal_bounds:
            del fields["marginal_bounds"]
        if self.task != "tsp":
            del fields["tour"]
        if self.count is None:
            del fields["count"]
        fields["ranked"] = [assignment._asdict() for assignment in self.ranked]
        if not self.ranked:
            del fields["ranked"]
        fields["policies"] = {name: policy.choices() for name, policy in self.policies.items()}
        if not self.policies:
            del fields["policies"]
        if self.status != "estimated":
            del fields["error"], fields["interval"]
        elif self.interval is not None:
            fields["interval"] = self.interval._asdict()
        return "{" + ", ".join(f'"{key}": {json_text(value)}' for key, value in fields.items()) + "}"

    def to_frame(self, library: Library = "pandas") -> Any:
        """Return the answer as a data frame.

        Ranked assignments: a row for each, with a column for each variable, and ``value``. Marginals: a row for each
        variable and state, with the columns ``variable``, ``state`` and ``probability``. An assignment: a row for each
        variable, with the columns ``variable`` and ``state``. Columns of states of different types hold text, where
        the library knows columns of one type only.

        Args:
            library: ``pandas``, ``polars`` or ``pyarrow`` (a ``Table``).

        Raises:
            TypeError: ``library`` is not text.
            InputError: ``library`` is another one or not installed, or the answer has neither marginals nor an
                assignment.
            MemoryLimitError: The posteriors of all states do not fit into the free memory.
        """
        self._check_room()
        if self.ranked:
            names = self.ranked[0].assignment
            columns = {name: [ranked.assignment[name] for ranked in self.ranked] for name in names}
            return states_frame(columns, {"value": [ranked.value for ranked in self.ranked]}, library)
        if not isinstance(self.marginals, NoMarginals):
            rows = [(name, state, p) for name, values in self.marginals.items() for state, p in values.items()]
            owners, states, shares = zip(*rows, strict=True) if rows else ((), (), ())
            columns = {"variable": list(owners), "state": list(states)}
            return states_frame(columns, {"probability": list(shares)}, library)
        if self.assignment is not None:
            columns = {"variable": list(self.assignment), "state": list(self.assignment.values())}
            return states_frame(columns, {}, library)
        raise InputError(f"the answer of task {self.task} has neither marginals nor an assignment to tabulate")

    def _check_room(self) -> None:
        if isinstance(self.marginals, Marginals):
            self.marginals.check_room()

    def _details(self) -> str:
        tables = "".join(
            f"<p>policy of {escaped(name)}</p>{policy._repr_html_()}" for name, policy in self.policies.items()
        )
        if self.marginals:
            return tables + bars_of(self.marginals)
        if tables:
            return tables
        if self.ranked:
            assignments = ((number_text(value), assignment_text(states)) for value, states in self.ranked)
            return table_of(("value", "assignment"), assignments, len(self.ranked))
        states = ((str(name), str(state)) for name, state in (self.assignment or {}).items())
        return table_of(("variable", "state"), states, len(self.assignment)) if self.assignment else ""

    def _figures(self) -> list[tuple[str, str]]:
        rows = [("task", self.task), *outcome_rows(self), *log10_z_rows(self)]
        if self.ranked:
            rows.append(("ranked", f"{len(self.ranked):,} assignment{'s' * (len(self.ranked) != 1)}"))
        if self.assignment:
            states = (f"{name}={state}" for name, state in self.assignment.items())
            rows.append(("assignment", sample(states, len(self.assignment))))
        if self.marginals:
            tops = ((name, _mode_of(values)) for name, values in self.marginals.items())
            texts = (f"{name}={state} ({probability_text(p)})" for name, (state, p) in tops)
            rows.append(("marginals", sample(texts, len(self.marginals))))
        if self.tour is not None:
            rows.append(("tour", sample(self.tour, len(self.tour))))
        width, largest = self.stats.get("induced_width"), self.stats.get("largest_table")
        if width is not None and largest is not None:
            rows.append(("width", f"{width} (largest table: {counted(largest, 'cell')})"))
        if "seconds" in self.stats:
            rows.append(("time", seconds_text(self.stats["seconds"].get("total", 0))))
        return rows

    def _repr_html_(self) -> str:
        """Return HTML of the figures, except those that are shown as tables, and of the tables."""
        details = self._details()
        rows = self._figures()
        if details:
            rows = [(name, text) for name, text in rows if name not in _IN_TABLES]
        return html_of(type(self).__name__, rows, details)

    def __str__(self) -> str:
        errors = error_rows(self, MAX_PRINTED_STATES)
        rows = [("task", self.task), ("status", self.status), *errors, *_value_rows(self), *log10_z_rows(self)]
        if self.ranked:
            rows += ranked_rows(self, max_states=MAX_PRINTED_STATES)
        elif self.assignment:
            rows.append(("assignment", assignment_text(self.assignment, MAX_PRINTED_STATES)))
        lines = [labelled(rows), *policies_lines(self.policies)]
        table = marginals_table(self.marginals, max_states=MAX_PRINTED_STATES) if self.marginals else ""
        return "\n".join([*lines, table] if table else lines)


def _mode_of(marginal: Mapping[Any, float]) -> tuple[Any, float]:
    """Return the most probable state, the first of several, and its probability."""
    return marginal.mode() if isinstance(marginal, MergedMarginal) else max(marginal.items(), key=itemgetter(1))


def _error_text(error: float) -> str:
    """Return an estimated error; an infinite one is unknown."""
    return "unknown" if math.isinf(error) else f"about {error:.1g}"


def optimistic_bound(result: Result, sign: int) -> int | float | None:
    """Return the lower bound if ``sign`` (see ``Model.sign``) is 1, otherwise the upper one."""
    return result.lower_bound if sign == 1 else result.upper_bound


def _value_rows(result: Result) -> list[tuple[str, str]]:
    """Return rows of the value and, unless it is proven, of its bounds; for estimates see ``log10_z_rows``."""
    rows = [] if result.value is None else [("value", number_text(result.value))]
    is_between = result.status == "bounded" or (
        result.status == "feasible" and None not in (result.lower_bound, result.upper_bound)
    )
    if is_between or (result.value is None and result.status != "estimated"):
        rows += bounds_rows(result)
    return rows + optima_rows(result)


def bounds_rows(result: Result) -> list[tuple[str, str]]:
    """Return the row of the bounds, if there are any; those on a sum are bounds on its logarithm."""
    ends = (result.lower_bound, result.upper_bound)
    if ends == (None, None):
        return []
    description = DESCRIPTIONS.get(result.task)
    is_log = description is not None and description.is_partition
    return [("log10 Z" if is_log and result.log10_z is None else "bounds", ends_text(*ends))]


def log10_z_rows(result: Result) -> list[tuple[str, str]]:
    """Return the row of the base-10 logarithm of the sum; if it is estimated, also its interval and bounds."""
    if result.status != "estimated":
        return [] if result.log10_z is None else [("log10 Z", log_text(result.log10_z))]
    rows = []
    name = "log10 count" if described(result.task).is_count else "log10 Z"
    if result.log10_z is not None:
        error = result.stats.get("log10_z_error")
        ending = "" if error is None else f", error {_error_text(error)}"
        rows.append((name, f"about {result.log10_z:.6g}{ending}"))
    if result.interval is not None:
        low, high, level = result.interval
        ends = " to ".join("unknown" if math.isinf(end) else f"{end:.6g}" for end in (low, high))
        rows.append(("interval", f"{ends} ({name}, {100 * level:.4g} %)"))
    return [*rows, *bounds_rows(result)]


def optima_rows(result: Result) -> list[tuple[str, str]]:
    """Return the row of the bounds on the number of optima, if it is asked for and not known."""
    least, highest = result.stats.get("optima_lower_bound"), result.stats.get("optima_upper_bound")
    if least is None or result.count is not None:
        return []
    return [("optima", f"at least {least:,}" if highest is None else f"{least:,} to {highest:,}")]


def ranked_rows(
    result: Result, is_shown: Callable[[str], bool] = bool, max_states: int | None = None
) -> list[tuple[str, str]]:
    """Return a row for each ranked assignment: its value, and the states of the variables that are shown.

    Args:
        result: The answer.
        is_shown: Function that returns whether a variable is shown.
        max_states: Largest number of states in all rows; a last row counts the other assignments. None: no limit.
    """
    ranked, others = result.ranked, 0
    if max_states is not None and ranked:
        max_shown = max(max_states // max(len(ranked[0].assignment), 1), 1)
        ranked, others = ranked[:max_shown], max(len(ranked) - max_shown, 0)
    rows = []
    for number, (value, assignment) in enumerate(ranked, 1):
        states = {name: state for name, state in assignment.items() if is_shown(name)}
        rows.append((f"{number}", f"{number_text(value)}  {assignment_text(states, max_states)}"))
    return [*rows, ("others", f"{others:,} more assignment{'' if others == 1 else 's'}")] if others else rows


def outcome_rows(result: Result) -> list[tuple[str, str]]:
    """Return the rows that texts of an answer begin with: status, error, value, bounds, cause of an early end."""
    ended = [] if result.ended_by is None else [("ended by", result.ended_by)]
    return [("status", result.status), *error_rows(result), *_value_rows(result), *ended]


def error_rows(result: Result, max_states: int | None = None) -> list[tuple[str, str]]:
    """Return the rows of an estimate: its error, and the bounds on marginals; none if nothing is estimated.

    Args:
        result: The answer.
        max_states: Largest number of states of a variable with bounds; the others are counted. None: no limit.
    """
    if result.status != "estimated":
        return []
    size = "unknown" if result.error is None else _error_text(result.error)
    method = result.stats.get("method")
    rows = [("error", size if method is None else f"{size} ({method})")]
    for name, bounds in result.marginal_bounds.items():
        ends = (f"{state} {probability_text(low)} to {probability_text(high)}" for state, (low, high) in bounds.items())
        texts = ", ".join(itertools.islice(ends, max_states))
        others = 0 if max_states is None else max(len(bounds) - max_states, 0)
        rows.append(("bounds", f"P({name}): {texts}" + (f" and {others:,} more" if others else "")))
    return rows
