"""Constraints on tasks, boxes and events, and the readers of their arguments."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from numpy.typing import ArrayLike

from elimina import arguments
from elimina.arguments import flag, wrong_type
from elimina.cp.expression_functions import ExpressionFunctions
from elimina.cp.expressions import Condition, Expression, Operand, boolean, booleans_of, operand
from elimina.cp.intervals import IntervalVar, Task, intervals_of
from elimina.cp.operands import MAX_INTEGER, array_of_numbers, several, whole, whole_numbers
from elimina.errors import InputError


@arguments.with_checked_methods
class SchedulingConstraints(ExpressionFunctions):
    """Constraints on tasks, on boxes in the plane, and on the level of a reservoir."""

    def interval_var(
        self,
        start: Operand | tuple[int, int],
        duration: Operand | tuple[int, int],
        optional: bool | Operand = False,
        name: str = "",
    ) -> IntervalVar:
        """Make a task for `no_overlap`, `cumulative`, `no_overlap_2d` and `precedence`.

        The start and the duration of an absent task are free.

        Args:
            start: Start, or its bounds.
            duration: Duration, or its bounds; at least 0.
            optional: True if the search may leave the task out, or a Boolean that is 1 if it takes place.
            name: Name of the task; its new variables are ``NAME.start``, ``NAME.duration`` and ``NAME.presence``.

        Raises:
            InputError: The duration may be negative, or bounds exclude all values.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> tasks = [m.interval_var((0, 9), hours, optional=True) for hours in (3, 4, 5)]
            >>> for task in tasks:
            ...     m.add(task.end <= 9)
            >>> m.no_overlap(tasks)
            >>> m.maximize(sum(task.presence * hours for task, hours in zip(tasks, (3, 4, 5))))
            >>> m.solve().value
            9
        """
        ends = self._interval_end(start, f"{name}.start" if name else "")
        length = self._interval_end(duration, f"{name}.duration" if name else "")
        if self.bounds(length)[0] < 0:
            raise InputError(
                f"interval_var{name and f' {name}'}: the duration {length} may be negative: let it be at least 0"
            )
        presence: Operand
        if isinstance(optional, bool):
            presence = self.int_var(0, 1, f"{name}.presence" if name else "") if optional else 1
        else:
            presence = boolean(optional)
        return IntervalVar(self.expression(ends), length, presence, name)

    def _interval_end(self, x: Operand | tuple[int, int], name: str) -> Operand:
        if not isinstance(x, tuple):
            return x
        if len(x) != 2:
            raise InputError(f"interval_var gets an expression or a pair of bounds, not {x!r}")
        return self.int_var(*x, name)

    def precedence(self, before: IntervalVar, after: IntervalVar, delay: Operand = 0) -> None:
        """Make a task start when another one has ended, or later, if both are present.

        Args:
            before: The task that comes first.
            after: The task that follows.
            delay: Least time between them.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> first, second = m.interval_var((0, 4), 2), m.interval_var((0, 4), 1)
            >>> m.precedence(first, second)
            >>> m.minimize(second.start)
            >>> m.solve()[second]
            (2, 3)
        """
        for task in (before, after):
            if not isinstance(task, IntervalVar):
                raise wrong_type("a task of precedence", task, "an interval_var")
        optional = [task.presence for task in (before, after) if not isinstance(task.presence, int)]
        absent = [task for task in (before, after) if isinstance(task.presence, int) and not task.presence]
        if not absent:
            order = before.end + delay <= after.start
            self.add(order, only_if=self.all_of(optional) if len(optional) > 1 else next(iter(optional), None))

    def cumulative(
        self,
        starts: Sequence[Task],
        durations: Sequence[Operand] | None = None,
        demands: Sequence[Operand] = (),
        capacity: Operand = 1,
        presences: Sequence[Operand] | None = None,
    ) -> None:
        """Limit the demands of the tasks that run at the same time to the capacity.

        Filtered by the time-table, by time-table edge finding (Vilim, CPAIOR 2011), and by the order of any two tasks
        that cannot run at the same time.

        Args:
            starts: Starts of the tasks, or tasks of `interval_var`.
            durations: Durations, at least 0; None for tasks of `interval_var`.
            demands: Demand of each task, at least 0.
            capacity: Limit of the sum of demands at any time.
            presences: Booleans of the tasks: 0 if one is absent. None: all are present.

        Raises:
            InputError: The lists differ in length.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> tasks = [m.interval_var((0, 5), 3, optional=True) for _ in range(4)]
            >>> m.cumulative(tasks, demands=[1, 2, 2, 3], capacity=3)
            >>> m.add(sum(task.presence for task in tasks) >= 3)
            >>> m.minimize(m.maximum(task.end for task in tasks))
            >>> m.solve().value
            6
        """
        tasks = tasks_of("cumulative", starts, durations, presences, demands=demands)
        present = [
            demand if isinstance(presence, int) and presence == 1 else self.expression(presence) * demand
            for presence, demand in zip(tasks["presences"], tasks["demands"], strict=True)
        ]
        self.post("cumulative", tasks["starts"], tasks["durations"], present, operand(capacity, "a capacity"))

    def no_overlap(
        self,
        starts: Sequence[Task],
        durations: Sequence[Operand] | None = None,
        presences: Sequence[Operand] | None = None,
        transition_times: ArrayLike | None = None,
        *,
        strict: bool = False,
    ) -> None:
        """Make tasks run one after another.

        Filtered by theta trees: overload checking, detectable precedences, not-first and not-last, edge finding (Vilim,
        PhD thesis 2007; for tasks that may be absent: Vilim, Bartak and Cepek, Constraints 10, 2005). If there are up
        to 100 tasks, none of which may be absent, and all durations are constants above 0, free searches first decide
        the order of every two tasks (Grimes and Hebrard, INFORMS Journal on Computing 27, 2015).

        Args:
            starts: Starts of the tasks, or tasks of `interval_var`.
            durations: Durations, at least 0; None for tasks of `interval_var`.
            presences: Booleans of the tasks: 0 if one is absent. None: all are present.
            transition_times: Least time from the end of each task (row) to the start of each other task (column) that
                comes later, immediately or not; implies ``strict``.
            strict: True if a task that takes no time may not be inside another one, either.

        Raises:
            InputError: The lists differ in length, a duration or a transition time is negative.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> starts = m.int_vars(3, 0, 9)
            >>> m.no_overlap(starts, [3, 2, 4])
            >>> m.minimize(m.maximum([start + hours for start, hours in zip(starts, [3, 2, 4])]))
            >>> m.solve().value
            9
        """
        tasks = tasks_of("no_overlap", starts, durations, presences)
        check_sizes("no_overlap", "duration", tasks["durations"])
        is_strict = flag("strict", strict) or transition_times is not None
        self.post("no_overlap_strict" if is_strict else "no_overlap", *tasks.values())
        if transition_times is None:
            return
        numbers = list(itertools.chain(*transitions_of(len(tasks["starts"]), transition_times)))
        self.post("transition_times", *tasks.values(), numbers)

    def no_overlap_2d(
        self,
        xs: Sequence[Task],
        ys: Sequence[Task],
        widths: Sequence[Operand] | None = None,
        heights: Sequence[Operand] | None = None,
        presences: Sequence[Operand] | None = None,
        *,
        strict: bool = False,
    ) -> None:
        """Make boxes in the plane not overlap.

        Filtered by the positions that two boxes can still have to each other (left, right, below, above), and by the
        total length of the boxes that a line crosses (Beldiceanu and Contejean, Mathematical and Computer Modelling 20,
        1994).

        Args:
            xs: Left sides of the boxes, or their intervals of `interval_var`.
            ys: Lower sides, or intervals; a box is absent if one of its intervals is.
            widths: Widths, at least 0; None for intervals.
            heights: Heights, at least 0; None for intervals.
            presences: Booleans of the boxes: 0 if one is absent. None: all are present.
            strict: True if a box without an area may not lie inside another one, either.

        Raises:
            InputError: The lists differ in length, a width or a height is negative.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> xs, ys = m.int_vars(2, 0, 1), m.int_vars(2, 0, 1)
            >>> m.no_overlap_2d(xs, ys, [2, 2], [1, 1])
            >>> len(m.solve(all_solutions=True).solutions)
            8
        """
        boxes = boxes_of(self, xs, ys, widths, heights, presences)
        self.post("diffn" if flag("strict", strict) else "diffn_nonstrict", *boxes.values())

    def reservoir(
        self,
        times: Sequence[Operand],
        changes: Sequence[int],
        min_level: int,
        max_level: int,
        presences: Sequence[Operand] | None = None,
    ) -> None:
        """Keep a level between two limits while events raise and lower it; before the first event it is 0.

        Filtered by the least and the greatest level that are possible at each time. Events at the same time count
        together.

        Args:
            times: Times of the events.
            changes: Change of the level by each event.
            min_level: Least level, at most 0.
            max_level: Greatest level, at least 0.
            presences: Booleans of the events: 0 if one is absent. None: all are present.

        Raises:
            InputError: The lists differ in length, or the limits exclude 0, the level at the beginning.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> delivery, sale = m.int_var(3, 9), m.int_var(0, 9)
            >>> m.reservoir([delivery, sale], [5, -2], 0, 5)
            >>> m.minimize(sale)
            >>> m.solve().value
            3
        """
        events, least, greatest = events_of(times, changes, min_level, max_level, presences)
        self.post("reservoir", *events.values(), least, greatest)


def transitions_of(count: int, transition_times: ArrayLike) -> list[list[int]]:
    """Return the transition times from each task to each other task.

    Raises:
        InputError: The times have another shape, or one is negative.
    """
    times = array_of_numbers("transition_times", transition_times)
    if times.shape != (count, count) and (count or times.size):
        raise InputError(
            f"no_overlap: {count} tasks need transition times of shape ({count}, {count}), not {times.shape}"
        )
    numbers = [[whole(time, "a transition time") for time in row] for row in times.tolist()]
    check_sizes("no_overlap", "transition time", itertools.chain(*numbers))
    return numbers


def boxes_of(
    model: ExpressionFunctions,
    xs: Sequence[Task],
    ys: Sequence[Task],
    widths: Sequence[Operand] | None = None,
    heights: Sequence[Operand] | None = None,
    presences: Sequence[Operand] | None = None,
) -> dict[str, list[Any]]:
    """Return the left and lower sides, the sizes and the presences of boxes.

    Raises:
        InputError: The lists differ in length, a size is negative or missing, or intervals are mixed with numbers or
            presences.
    """
    lefts, widths, present_in_x = split_intervals("no_overlap_2d", xs, widths)
    lows, heights, present_in_y = split_intervals("no_overlap_2d", ys, heights)
    if present_in_x is not None and present_in_y is not None and presences is None:
        presences = [_both(model, x, y) for x, y in zip(present_in_x, present_in_y, strict=False)]
    elif present_in_x is not None or present_in_y is not None:
        raise InputError("no_overlap_2d: give intervals for both sides and no presences, or numbers for all")
    boxes = records_of("no_overlap_2d", "box", xs=lefts, ys=lows, widths=widths, heights=heights, presences=presences)
    check_sizes("no_overlap_2d", "width", boxes["widths"])
    check_sizes("no_overlap_2d", "height", boxes["heights"])
    return boxes


def _both(model: ExpressionFunctions, x: Operand, y: Operand) -> Operand:
    if x is y:
        return x
    if isinstance(x, int) or isinstance(y, int):
        constant, other = (x, y) if isinstance(x, int) else (y, x)
        return other if constant else 0
    return model.all_of([x, y])


def events_of(
    times: Sequence[Operand],
    changes: Sequence[int],
    min_level: int,
    max_level: int,
    presences: Sequence[Operand] | None,
) -> tuple[dict[str, list[Any]], int, int]:
    """Return the times, changes and presences of the events of a reservoir, and its limits.

    Raises:
        InputError: The lists differ in length, or the limits exclude 0, the level at the beginning.
    """
    events = records_of("reservoir", "event", times=times, changes=changes, presences=presences)
    (least,), (greatest,) = (
        whole_numbers([level], "reservoir", name)
        for level, name in ((min_level, "min_level"), (max_level, "max_level"))
    )
    if not least <= 0 <= greatest:
        raise InputError(
            f"reservoir: the level begins at 0, which is not within {least}..{greatest}: add an event of the "
            "initial level before all others, and widen the limits to contain 0"
        )
    events["changes"] = changes = whole_numbers(events["changes"], "reservoir", "a change")
    if (total := sum(map(abs, changes))) > MAX_INTEGER:
        raise InputError(f"reservoir: the changes of the level add up to {total}, beyond 2^52: use smaller changes")
    return events, least, greatest


def split_intervals(
    name: str, tasks: Sequence[Task], durations: Sequence[Operand] | None
) -> tuple[list[Any], list[Any], list[Operand] | None]:
    """Return the starts, the durations and the presences of tasks; no presences (None) if ``tasks`` are only starts.

    Raises:
        InputError: Starts come without durations, intervals come with a list of durations, or both kinds are mixed.
    """
    starts = several(tasks, name)
    intervals = intervals_of(name, starts)
    if intervals is None:
        if durations is None and starts:
            raise InputError(f"{name}: {starts[0]} is a start: give the durations, too, or tasks of interval_var")
        return starts, several(() if durations is None else durations, name), None
    if durations is not None:
        raise InputError(f"{name}: tasks of interval_var have durations: leave the list of durations out")
    return [x.start for x in intervals], [x.duration for x in intervals], [x.presence for x in intervals]


def tasks_of(
    name: str,
    tasks: Sequence[Task],
    durations: Sequence[Operand] | None,
    presences: Sequence[Operand] | None,
    **columns: Any,
) -> dict[str, list[Any]]:
    """Return the starts, durations and presences of tasks, and further lists with an item for each of them.

    Raises:
        InputError: The lists differ in length, or intervals come with lists of durations or presences.
    """
    starts, lengths, present = split_intervals(name, tasks, durations)
    if present is not None and presences is not None:
        raise InputError(f"{name}: tasks of interval_var have presences: leave the list of presences out")
    present = present if presences is None else several(presences, name)
    return records_of(name, "task", starts=starts, durations=lengths, **columns, presences=present)


def records_of(name: str, item: str, **columns: Any) -> dict[str, list[Any]]:
    """Return lists with an item for each task, box or event; without presences, all are present.

    Raises:
        InputError: The lists differ in length, or a presence may have other values than 0 and 1.
    """
    presences = columns.pop("presences")
    lists: dict[str, list[Any]] = {column: several(items, name) for column, items in columns.items()}
    count = len(next(iter(lists.values())))
    lists["presences"] = [1] * count if presences is None else booleans_of(name, several(presences, name))
    for column, items in lists.items():
        if len(items) != count:
            first = next(iter(lists))
            raise InputError(f"{name}: {count} {first} and {len(items)} {column}: each {item} has one of both")
    return lists


def check_sizes(name: str, size_name: str, sizes: Iterable[Any]) -> None:
    """Check the sizes that are numbers, not expressions.

    Raises:
        InputError: A size is negative.
    """
    for size in sizes:
        if not isinstance(size, Expression | Condition) and whole(size, f"a {size_name}") < 0:
            raise InputError(f"{name}: a {size_name} is at least 0, not {size}")
