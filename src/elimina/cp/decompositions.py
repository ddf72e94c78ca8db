"""Decompositions of global constraints into comparisons, for conditions that may hold or not.

Each new variable is a function of the constraint's variables, so that no solution is found twice. A function takes the
arguments of the method of `Model` that has its name.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from elimina.cp.derived_constraints import DerivedConstraints
from elimina.cp.expressions import Combination, Condition, Expression, Operand
from elimina.cp.global_constraints import checked_automaton, checked_sizes, rows_of
from elimina.cp.intervals import IntervalVar, Task
from elimina.cp.operands import check_pairs, several, whole
from elimina.cp.scheduling_constraints import boxes_of, check_sizes, events_of, tasks_of, transitions_of
from elimina.errors import InputError

Decomposition = Callable[..., Operand]


def _all(operands: Iterable[Operand]) -> Operand:
    listed = list(operands)
    return Combination("and", listed) if listed else 1


def _any(operands: Iterable[Operand]) -> Operand:
    listed = list(operands)
    return Combination("or", listed) if listed else 0


def _expressions(model: DerivedConstraints, name: str, xs: Iterable[Operand]) -> list[Expression]:
    return [model.expression(x) for x in several(xs, name)]


def _within(x: Expression, count: int) -> Condition:
    return (x >= 0) & (x < count)


def _all_different(
    model: DerivedConstraints, xs: Iterable[Operand], _consistency: str = "domain", _side: str = "auto"
) -> Operand:
    return _all(x != y for x, y in itertools.combinations(_expressions(model, "all_different", xs), 2))


def _all_different_except_0(model: DerivedConstraints, xs: Iterable[Operand]) -> Operand:
    pairs = itertools.combinations(_expressions(model, "all_different_except_0", xs), 2)
    return _all((x != y) | (x == 0) for x, y in pairs)


def _walk(model: DerivedConstraints, successors: Sequence[Expression], start: Operand, steps: int) -> list[Expression]:
    """Return the nodes of a walk along the successors, its start first; the walk stays at a node without successor."""
    count, following = len(successors), []
    for node, x in enumerate(successors):
        lo, hi = model.bounds(x)
        if lo < 0 or hi >= count:
            clipped = model.int_var(0, count - 1)
            is_node = _within(x, count)
            model.add(clipped == x, only_if=is_node)
            model.add(clipped == node, only_if=~is_node)
            x = clipped
        following.append(x)
    nodes = [model.expression(start)]
    for _ in range(steps):
        nodes.append(model.element(following, nodes[-1]))
    return nodes


def _circuit(model: DerivedConstraints, successors: Sequence[Operand], _side: str = "auto") -> Operand:
    xs = _expressions(model, "circuit", successors)
    if not xs:
        return 1
    if len(xs) == 1:
        return xs[0] == 0
    # The walk from the first node returns to it after it has visited all other nodes, and not before.
    *inner, last = _walk(model, xs, 0, len(xs))[1:]
    return _all([last == 0, *(node != 0 for node in inner)])


def _subcircuit(model: DerivedConstraints, successors: Sequence[Operand], _side: str = "auto") -> Operand:
    xs = _expressions(model, "subcircuit", successors)
    count = len(xs)
    are_inside = [(x != node).truth for node, x in enumerate(xs)]
    # The walk begins at the first node that is not its own successor or, if there is none, at an extra node at the end.
    start = model.arg_max([*are_inside, 1])
    nodes = _walk(model, [*xs, model.expression(count)], start, count)
    are_visited = [_any(node == number for node in nodes) for number in range(count)]
    return _all(
        [
            *(_within(x, count) for x in xs),
            *(x != y for x, y in itertools.combinations(xs, 2)),
            *(~is_inside | is_visited for is_inside, is_visited in zip(are_inside, are_visited, strict=True)),
        ]
    )


def _inverse(model: DerivedConstraints, xs: Sequence[Operand], ys: Sequence[Operand]) -> Operand:
    rows, columns = _expressions(model, "inverse", xs), _expressions(model, "inverse", ys)
    check_pairs("inverse", "xs", "ys", (len(rows), len(columns)))
    count = len(rows)
    pairs = itertools.product(enumerate(rows), enumerate(columns))
    return _all(
        [
            *(_within(x, count) for x in (*rows, *columns)),
            *((x == k).truth == (y == i).truth for (i, x), (k, y) in pairs),
        ]
    )


def _table(model: DerivedConstraints, xs: Sequence[Operand], rows: Iterable[Sequence[int | None]]) -> Operand:
    expressions = _expressions(model, "table", xs)
    tuples = dict.fromkeys(rows_of(len(expressions), rows))
    # Tuples with the same value of a variable share its Boolean.
    are_equal = {
        (column, value): expressions[column] == whole(value, "a value of a row")
        for row in tuples
        for column, value in enumerate(row)
        if value is not None
    }
    return _any(
        _all(are_equal[column, value] for column, value in enumerate(row) if value is not None) for row in tuples
    )


def _regular(
    model: DerivedConstraints,
    xs: Sequence[Operand],
    transitions: Sequence[Mapping[int, int]],
    start: int,
    accepting: Iterable[int],
) -> Operand:
    """Return a Boolean that is 1 if and only if the automaton accepts the values.

    The Boolean is appended to the word as a last symbol, one of two new ones. An automaton is required to accept the
    longer word. It accepts each word of the given automaton with the symbol for true, and each other word with the
    symbol for false.
    """
    moves, ends = checked_automaton("regular", transitions, start, accepting)
    ranks = {symbol: rank for rank, symbol in enumerate(sorted({symbol for of_state in moves for symbol in of_state}))}
    # The word consists of the ranks of symbols. All values without a transition have one additional rank.
    no_symbol = len(ranks)
    word = []
    for x in _expressions(model, "regular", xs):
        lo, hi = model.bounds(x)
        if lo in ranks and hi in ranks and ranks[hi] - ranks[lo] == hi - lo:
            word.append(x + ranks[lo] - lo)
            continue
        rank = model.int_var(0, no_symbol)
        for symbol, number in ranks.items():
            model.add(rank == number, iff=x == symbol)
        word.append(rank)
    sink, end = len(moves), len(moves) + 1
    complete = [{rank: of_state.get(symbol, sink) for symbol, rank in ranks.items()} for of_state in moves]
    complete += [dict.fromkeys(ranks.values(), sink), {}]
    # The two symbols for the Boolean are larger than all others.
    false_symbol, true_symbol = no_symbol + 1, no_symbol + 2
    for state, of_state in enumerate(complete[:-1]):
        of_state[no_symbol] = sink
        of_state[true_symbol if state in ends else false_symbol] = end
    holds = model.bool_var()
    model.regular([*word, holds + false_symbol], complete, start, [end])
    return holds


def _member(model: DerivedConstraints, x: Operand, values: Iterable[int]) -> Operand:
    return model.holds_member(model.expression(x), [whole(value, "a value") for value in several(values, "member")])


def _clause(model: DerivedConstraints, positive: Iterable[Operand], negative: Iterable[Operand] = ()) -> Operand:
    falses = _expressions(model, "clause", negative)
    return _any([*several(positive, "clause"), *(1 - x for x in falses)])


def _cardinality(
    model: DerivedConstraints, xs: Sequence[Operand], counts: Mapping[int, Operand], closed: bool = False
) -> Operand:
    expressions = _expressions(model, "cardinality", xs)
    if not isinstance(counts, Mapping):
        raise InputError(f"cardinality: counts is a mapping from values to numbers of variables, not {counts!r}")
    numbers = [model.count(expressions, value) == number for value, number in counts.items()]
    return _all([*numbers, *(model.holds_member(x, list(counts)) for x in expressions if closed)])


def _cumulative(
    model: DerivedConstraints,
    starts: Sequence[Task],
    durations: Sequence[Operand] | None = None,
    demands: Sequence[Operand] = (),
    capacity: Operand = 1,
    presences: Sequence[Operand] | None = None,
) -> Operand:
    columns = tasks_of("cumulative", starts, durations, presences, demands=demands)
    tasks = [tuple(map(model.expression, task)) for task in zip(*columns.values(), strict=True)]

    def load(time: Expression) -> Expression:
        running = [
            (demand, _all([start <= time, time < start + duration, presence == 1]))
            for start, duration, demand, presence in tasks
        ]
        return model.sum(model.expression(demand) * runs for demand, runs in running)

    # The load is greatest at the start of a task, so only these times are checked.
    return _all(
        [
            *(duration >= 0 for _, duration, _, _ in tasks),
            *((presence == 0) | (demand >= 0) for _, _, demand, presence in tasks),
            model.expression(capacity) >= 0,
            *((duration == 0) | (presence == 0) | (load(start) <= capacity) for start, duration, _, presence in tasks),
        ]
    )


def _no_overlap(
    model: DerivedConstraints,
    starts: Sequence[Task],
    durations: Sequence[Operand] | None = None,
    presences: Sequence[Operand] | None = None,
    transition_times: ArrayLike | None = None,
    *,
    strict: bool = False,
) -> Operand:
    columns = tasks_of("no_overlap", starts, durations, presences)
    check_sizes("no_overlap", "duration", columns["durations"])
    tasks = [tuple(map(model.expression, task)) for task in zip(*columns.values(), strict=True)]
    gaps = None if transition_times is None else transitions_of(len(tasks), transition_times)
    conditions: list[Operand] = [duration >= 0 for _, duration, _ in tasks]
    for (i, first), (k, second) in itertools.combinations(enumerate(tasks), 2):
        gap_after_first, gap_after_second = (0, 0) if gaps is None else (gaps[i][k], gaps[k][i])
        ways = [
            first[0] + first[1] + gap_after_first <= second[0],
            second[0] + second[1] + gap_after_second <= first[0],
            first[2] == 0,
            second[2] == 0,
        ]
        if not strict and gaps is None:
            ways += [first[1] == 0, second[1] == 0]
        conditions.append(_any(ways))
    return _all(conditions)


def _no_overlap_2d(model: DerivedConstraints, *sides: Any, strict: bool = False, **named_sides: Any) -> Operand:
    columns = boxes_of(model, *sides, **named_sides)
    boxes = [tuple(map(model.expression, box)) for box in zip(*columns.values(), strict=True)]
    conditions: list[Operand] = [size >= 0 for box in boxes for size in box[2:4]]
    for first, second in itertools.combinations(boxes, 2):
        ways = [
            *(a[axis] + a[axis + 2] <= b[axis] for a, b in ((first, second), (second, first)) for axis in (0, 1)),
            first[4] == 0,
            second[4] == 0,
        ]
        if not strict:
            ways += [size == 0 for box in (first, second) for size in box[2:4]]
        conditions.append(_any(ways))
    return _all(conditions)


def _precedence(model: DerivedConstraints, before: IntervalVar, after: IntervalVar, delay: Operand = 0) -> Operand:
    absent = [model.expression(task.presence) == 0 for task in (before, after)]
    return _any([*absent, before.end + delay <= after.start])


def _reservoir(
    model: DerivedConstraints,
    times: Sequence[Operand],
    changes: Sequence[int],
    min_level: int,
    max_level: int,
    presences: Sequence[Operand] | None = None,
) -> Operand:
    columns, least, greatest = events_of(times, changes, min_level, max_level, presences)
    events = [tuple(map(model.expression, event)) for event in zip(*columns.values(), strict=True)]
    conditions = []
    for now, _, is_present in events:
        level = model.sum(
            change.constant * model.expression(_all([time <= now, presence == 1])) for time, change, presence in events
        )
        conditions.append((is_present == 0) | ((level >= least) & (level <= greatest)))
    return _all(conditions)


def _lexicographic(name: str, is_strict: bool) -> Decomposition:
    def decomposition(model: DerivedConstraints, xs: Sequence[Operand], ys: Sequence[Operand]) -> Operand:
        firsts, seconds = _expressions(model, name, xs), _expressions(model, name, ys)
        result: Operand = int(len(firsts) < len(seconds) + (not is_strict))
        for x, y in reversed(list(zip(firsts, seconds, strict=False))):
            # A Boolean for each position: nested conditions would exceed Python's recursion limit.
            following = result.truth if isinstance(result, Condition) else result
            result = (x < y) | ((x == y) & following)
        return result

    return decomposition


def _bin_packing_load(
    model: DerivedConstraints, loads: Sequence[Operand], bins: Sequence[Operand], sizes: Sequence[int]
) -> Operand:
    items, weights = _expressions(model, "bin_packing_load", bins), checked_sizes(sizes)
    check_pairs("bin_packing_load", "bins", "sizes", (len(items), len(weights)))
    capacities = _expressions(model, "bin_packing_load", loads)
    full = [
        model.sum(weight * (x == number).truth for x, weight in zip(items, weights, strict=True)) == load
        for number, load in enumerate(capacities)
    ]
    return _all([*(_within(x, len(capacities)) for x in items), *full])


def _value_precede(model: DerivedConstraints, values: Sequence[int], xs: Iterable[Operand]) -> Operand:
    expressions = _expressions(model, "value_precede", xs)
    conditions = []
    for first, second in itertools.pairwise(whole(value, "a value") for value in several(values, "value_precede")):
        is_preceded: Operand = 0
        for x in expressions:
            conditions.append((x != second) | is_preceded)
            is_preceded = model.any_of([is_preceded, (x == first).truth])
    return _all(conditions)


DECOMPOSITIONS: dict[str, Decomposition] = {
    "all_different": _all_different,
    "all_different_except_0": _all_different_except_0,
    "bin_packing_load": _bin_packing_load,
    "cardinality": _cardinality,
    "circuit": _circuit,
    "clause": _clause,
    "cumulative": _cumulative,
    "inverse": _inverse,
    "lex_less": _lexicographic("lex_less", is_strict=True),
    "lex_lesseq": _lexicographic("lex_lesseq", is_strict=False),
    "member": _member,
    "no_overlap": _no_overlap,
    "no_overlap_2d": _no_overlap_2d,
    "precedence": _precedence,
    "regular": _regular,
    "reservoir": _reservoir,
    "subcircuit": _subcircuit,
    "table": _table,
    "value_precede": _value_precede,
}
"""Decomposition of each constraint, by the name of its method."""
