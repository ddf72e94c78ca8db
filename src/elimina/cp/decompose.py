"""Constraints over many variables as tables over few, linked by auxiliary variables.

The values of a constraint's own variables determine those of the auxiliary ones.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial, reduce

import numpy as np

from elimina.cp.constraint_tables import ConstraintTables
from elimina.cp.partial_sums import condensed, weighted_sum
from elimina.cp.views import Integers, Mask, View, constant
from elimina.number_texts import counted

Arguments = Sequence[list[View]]
_KINDS = ("int", "bool")
Rule = Callable[[ConstraintTables, Arguments, str], None]


def _reified(suffix: str, holds: Mask, boolean: Sequence[Integers]) -> Mask:
    """Return the mask of a condition, or that of its reified or half-reified form."""
    if not suffix:
        return holds
    truth: Mask = boolean[0] == 1
    return np.equal(holds, truth) if suffix == "_reif" else holds | ~truth


def _linear(tables: ConstraintTables, arguments: Arguments, suffix: str, *, relation: str) -> None:
    factors, xs, (right,), *control = arguments
    terms = [(f.offset, x) for f, x in zip(factors, xs, strict=True) if f.offset] + [(-1, right)]
    separated_totals = (0, 1) if relation == "le" else (-1, 1)
    if relation == "eq" and not suffix:
        # The variable with the most values becomes the result: as a term, it would multiply the number of partial sums.
        terms.sort(key=lambda term: len(tables.values(term[1])))
        factor, last = terms.pop()
        few = condensed(tables, terms, (factor, last), separated_totals)
        to = View(last.var, factor * last.scale, factor * last.offset)
        tables.define([x for _, x in few], lambda *values_of_terms: -weighted_sum(few, values_of_terms), to=to)
        return
    final = terms.pop(-2 if right.var < 0 and len(terms) > 1 else -1)
    few = [*condensed(tables, terms, final, separated_totals), final]

    def holds(*values: Integers) -> Mask:
        left, boolean = weighted_sum(few, values[: len(few)]), values[len(few) :]
        return _reified(
            suffix, left == 0 if relation == "eq" else left != 0 if relation == "ne" else left <= 0, boolean
        )

    tables.add_condition([x for _, x in few] + [x for (x,) in control], holds)


def _pairwise(tables: ConstraintTables, xs: Sequence[View], holds: Callable[[Integers, Integers], Mask]) -> None:
    for i, x in enumerate(xs):
        for y in xs[:i]:
            tables.add_condition([x, y], holds)


def _all_different(tables: ConstraintTables, arguments: Arguments, suffix: str) -> None:
    _pairwise(tables, arguments[0], lambda a, b: a != b)


def _all_different_except_0(tables: ConstraintTables, arguments: Arguments, suffix: str) -> None:
    _pairwise(tables, arguments[0], lambda a, b: (a != b) | (a == 0))


def _counted(tables: ConstraintTables, xs: Sequence[View], y: View, count: View) -> None:
    if not xs:
        tables.add_condition([count], lambda c: c == 0)
        return
    total = constant(0)
    for x in xs[:-1]:
        total = tables.define([total, x, y], lambda a, b, c: a + (b == c))
    tables.define([total, xs[-1], y], lambda a, b, c: a + (b == c), to=count)


def _count(tables: ConstraintTables, arguments: Arguments, suffix: str) -> None:
    xs, (y,), (count,) = arguments
    _counted(tables, xs, y, count)


def _cardinality(tables: ConstraintTables, arguments: Arguments, suffix: str, *, closed: bool) -> None:
    xs, cover, counts = arguments
    for value, count in zip(cover, counts, strict=True):
        _counted(tables, xs, value, count)
    for x in xs if closed else ():
        tables.add_condition([x], lambda a: np.isin(a, [value.offset for value in cover]))


def _present(tables: ConstraintTables, xs: Sequence[View], value: int) -> View:
    return reduce(lambda p, x: tables.define([p, x], lambda a, b: a | (b == value)), xs, constant(0))


def _distinct_values(tables: ConstraintTables, arguments: Arguments, suffix: str) -> None:
    (count,), xs = arguments
    values = np.unique(np.concatenate([tables.values(x) for x in xs] or [np.zeros(0, np.int64)]))
    present = [_present(tables, xs, value) for value in values.tolist()]
    _linear(tables, [[constant(1)] * len(present), present, [count]], "", relation="eq")


def _extreme(
    tables: ConstraintTables, arguments: Arguments, suffix: str, *, of: Callable[[Integers, Integers], Integers]
) -> None:
    (result,), xs = arguments
    last = reduce(lambda a, x: tables.define([a, x], of), xs[1:], xs[0])
    tables.define([last], lambda a: a, to=result)


def _absolute(tables: ConstraintTables, arguments: Arguments, suffix: str) -> None:
    (x,), (result,) = arguments
    tables.define([x], np.abs, to=result)


def _any(tables: ConstraintTables, literals: Sequence[View]) -> View:
    return reduce(lambda a, x: tables.define([a, x], lambda p, q: p | q), literals, constant(0))


def _negated(x: View) -> View:
    return View(x.var, -x.scale, 1 - x.offset)


def _clause(tables: ConstraintTables, arguments: Arguments, suffix: str) -> None:
    positive, negative, *control = arguments
    _post_clause(tables, [*positive, *map(_negated, negative)], [x for (x,) in control], suffix)


def _post_clause(tables: ConstraintTables, literals: Sequence[View], control: Sequence[View], suffix: str) -> None:
    holds = _any(tables, literals)
    tables.add_condition([holds, *control], lambda a, *boolean: _reified(suffix, a == 1, boolean))


def _or(tables: ConstraintTables, arguments: Arguments, suffix: str, *, half: str = "_reif") -> None:
    xs, (b,) = arguments
    _post_clause(tables, xs, [b], half)


def _and(tables: ConstraintTables, arguments: Arguments, suffix: str) -> None:
    xs, (b,) = arguments
    _post_clause(tables, [_negated(x) for x in xs], [_negated(b)], "_reif")


def _and_imp(tables: ConstraintTables, arguments: Arguments, suffix: str) -> None:
    xs, (b,) = arguments
    for x in xs:
        tables.add_condition([b, x], lambda p, q: p <= q)


def _odd(tables: ConstraintTables, arguments: Arguments, suffix: str) -> None:
    (xs,) = arguments
    last = reduce(lambda a, x: tables.define([a, x], lambda p, q: p ^ q), xs, constant(0))
    tables.add_condition([last], lambda a: a == 1)


def _element(tables: ConstraintTables, arguments: Arguments, suffix: str) -> None:
    (index,), items, (result,) = arguments
    tables.add_condition([index], lambda i: (i >= 1) & (i <= len(items)))
    if all(item.var < 0 for item in items):
        values = np.array([item.offset for item in items])
        tables.define([index], lambda i: values[np.clip(i, 1, len(items)) - 1], to=result)
        return
    possible = set(tables.values(index).tolist())
    for position, item in enumerate(items, 1):
        if position in possible:
            tables.add_condition([index, item, result], lambda i, a, b, position=position: (i != position) | (a == b))


def _circuit(tables: ConstraintTables, arguments: Arguments, suffix: str) -> None:
    """Give each node a position along the circuit from node 0: one more than its predecessor's."""
    (successors,) = arguments
    n = len(successors)
    positions = [constant(0)]
    for _ in range(1, n):
        positions.append(View(len(tables.domains), 1, 0))
        tables.domains.append(np.arange(1, n))
    for i, next_ in enumerate(successors):
        tables.add_condition([next_], lambda a: (a >= 0) & (a < n))
        for j in range(n):
            tables.add_condition(
                [next_, positions[i], positions[j]],
                lambda a, p, q, j=j: (a != j) | (q == (p + 1) % n),
            )


def _inverse(tables: ConstraintTables, arguments: Arguments, suffix: str) -> None:
    fs, gs = arguments
    for xs, count in ((fs, len(gs)), (gs, len(fs))):
        for x in xs:
            tables.add_condition([x], lambda a, count=count: (a >= 0) & (a < count))
    for i, f in enumerate(fs):
        for j, g in enumerate(gs):
            tables.add_condition([f, g], lambda a, b, i=i, j=j: (a == j) == (b == i))


def _lexicographic(tables: ConstraintTables, arguments: Arguments, suffix: str, *, strict: bool) -> None:
    xs, ys = arguments
    less = constant(0)
    for x, y in zip(xs, ys, strict=False):
        less = tables.define([less, x, y], lambda e, a, b: e | (a < b), valid=lambda e, a, b: (e == 1) | (a <= b))
    equal_is_fine = len(xs) < len(ys) or (len(xs) == len(ys) and not strict)
    tables.add_condition([less], lambda e: (e == 1) | equal_is_fine)


def _regular(tables: ConstraintTables, arguments: Arguments, suffix: str) -> None:
    xs, (states,), (symbols,), table, (start,), accepting = arguments
    moves = np.zeros((states.offset + 1, symbols.offset + 1), np.int64)
    moves[1:, 1:] = np.array([x.offset for x in table]).reshape(states.offset, symbols.offset)

    def move(state: Integers, symbol: Integers) -> Integers:
        return moves[state, np.where((symbol >= 1) & (symbol <= symbols.offset), symbol, 0)]

    state = start
    for x in xs:
        state = tables.define([state, x], move, valid=lambda q, a: move(q, a) > 0)
    ends = [x.offset for x in accepting]
    tables.add_condition([state], lambda q: np.isin(q, ends))


def _table(tables: ConstraintTables, arguments: Arguments, suffix: str) -> None:
    """Restrict the variables to the listed tuples; repeated variables agree.

    Raises:
        InputError: There are too many tuples.
    """
    xs, cells = arguments
    _keep_rows(tables, xs, np.array([x.offset for x in cells], np.int64).reshape(-1, len(xs)))


def _starred_table(tables: ConstraintTables, arguments: Arguments, suffix: str) -> None:
    """Restrict the variables to the listed tuples, in which a star stands for any value."""
    xs, cells, stars = arguments
    domains = [x.of(np.array(tables.domains[x.var])).tolist() if x.var >= 0 else [x.offset] for x in xs]
    choices = [
        [
            domain if star.offset else [x.offset]
            for domain, x, star in zip(
                domains, cells[first : first + len(xs)], stars[first : first + len(xs)], strict=True
            )
        ]
        for first in range(0, len(cells), len(xs))
    ]
    count = sum(math.prod(map(len, row)) for row in choices)
    if count > tables.limit:
        raise tables.too_large(f"has {counted(count, 'tuple')} without stars, more than {tables.limit:,}")
    rows = [full for row in choices for full in itertools.product(*row)]
    _keep_rows(tables, xs, np.array(rows, np.int64).reshape(-1, len(xs)))


def _keep_rows(tables: ConstraintTables, xs: Sequence[View], rows: Integers) -> None:
    columns: dict[int, Integers] = {}
    marks = np.ones(len(rows), bool)
    for x, column in zip(xs, rows.T, strict=True):
        if x.var < 0:
            marks &= column == x.offset
            continue
        values = (column - x.offset) // x.scale
        marks &= (x.of(values) == column) & np.isin(values, tables.domains[x.var])
        marks &= columns.setdefault(x.var, values) == values
    tuples = np.stack([column[marks] for column in columns.values()], 1) if columns else np.zeros((marks.sum(), 0))
    tuples = np.unique(tuples, axis=0)
    if len(tuples) > tables.limit:
        raise tables.too_large(f"has {counted(len(tuples), 'tuple')}, more than {tables.limit:,}")
    tables.add_table(list(columns), tuples)


def _bin_packing(tables: ConstraintTables, arguments: Arguments, suffix: str) -> None:
    loads, bins, sizes = arguments
    for b in bins:
        tables.add_condition([b], lambda a: (a >= 0) & (a < len(loads)))
    for position, load in enumerate(loads):
        total = constant(0)
        for b, size in zip(bins, sizes, strict=True):
            total = tables.define(
                [total, b], lambda a, c, size=size, position=position: a + size.offset * (c == position)
            )
        tables.define([total], lambda a: a, to=load)


def _cumulative(tables: ConstraintTables, arguments: Arguments, suffix: str) -> None:
    """Limit the load at each possible start of a task."""
    starts, durations, demands, (capacity,) = arguments
    times = np.unique(np.concatenate([tables.values(s) for s in starts] or [np.zeros(0, np.int64)])).tolist()
    max_capacity = max(int(tables.values(capacity).max()), 0)
    for time in times:
        total = constant(0)
        for s, d, r in zip(starts, durations, demands, strict=True):
            if tables.values(s).min() <= time < tables.values(s).max() + tables.values(d).max():
                load = partial(_used, time)
                total = tables.define(
                    [total, s, d, r],
                    lambda a, *task, load=load: a + load(*task),
                    valid=lambda a, *task, load=load: a + load(*task) <= max_capacity,
                )
        tables.add_condition([total, capacity], lambda a, c: (a <= c) | (a == 0))


def _no_overlap(tables: ConstraintTables, arguments: Arguments, suffix: str, *, strict: bool) -> None:
    starts, durations, presences = arguments
    _pairs_apart(tables, list(zip(starts, durations, presences, strict=True)), 1, strict)


def _boxes(tables: ConstraintTables, arguments: Arguments, suffix: str, *, strict: bool) -> None:
    _pairs_apart(tables, list(zip(*arguments, strict=True)), 2, strict)


def _pairs_apart(tables: ConstraintTables, boxes: Sequence[tuple[View, ...]], axes: int, strict: bool) -> None:
    """Separate every two boxes, given by positions and sizes on each axis, and presences."""
    for box in boxes:
        for size in box[axes:-1]:
            tables.add_condition([size], lambda a: a >= 0)

    def apart(*values: Integers) -> Mask:
        first, second = values[: len(values) // 2], values[len(values) // 2 :]
        result: Mask = (first[-1] == 0) | (second[-1] == 0)
        for axis in range(axes):
            size, other = first[axes + axis], second[axes + axis]
            result = result | (first[axis] + size <= second[axis]) | (second[axis] + other <= first[axis])
            if not strict:
                result = result | (size == 0) | (other == 0)
        return result

    for i, box in enumerate(boxes):
        for other in boxes[:i]:
            tables.add_condition([*box, *other], apart)


def _transition_times(tables: ConstraintTables, arguments: Arguments, suffix: str) -> None:
    starts, durations, presences, times = arguments
    tasks = list(zip(starts, durations, presences, strict=True))
    for i, task in enumerate(tasks):
        for k, other in enumerate(tasks[:i]):
            after, before = times[i * len(tasks) + k].offset, times[k * len(tasks) + i].offset
            tables.add_condition([*task, *other], partial(_apart_in_time, after, before))


def _apart_in_time(
    after: int, before: int, s: Integers, d: Integers, p: Integers, t: Integers, e: Integers, q: Integers
) -> Mask:
    result: Mask = (p == 0) | (q == 0) | (s + d + after <= t) | (t + e + before <= s)
    return result


def _reservoir(tables: ConstraintTables, arguments: Arguments, suffix: str) -> None:
    """Limit the level at each possible time of an event."""
    times, changes, presences, (least,), (greatest,) = arguments
    moments = np.unique(np.concatenate([tables.values(t) for t in times] or [np.zeros(0, np.int64)])).tolist()
    for moment in moments:
        level = constant(0)
        for t, change, p in zip(times, changes, presences, strict=True):
            if tables.values(t).min() <= moment:
                level = tables.define([level, t, p], partial(_changed_level, moment, change.offset))
        tables.add_condition([level], lambda a: (least.offset <= a) & (a <= greatest.offset))


def _changed_level(moment: int, change: int, level: Integers, time: Integers, presence: Integers) -> Integers:
    result: Integers = level + change * ((time <= moment) & (presence == 1))
    return result


def _used(time: int, start: Integers, duration: Integers, demand: Integers) -> Integers:
    return demand * ((start <= time) & (time < start + duration))


RULES: dict[str, Rule] = {
    **{
        f"{kind}_lin_{name}": partial(_linear, relation=name) for kind in ("int", "bool") for name in ("eq", "ne", "le")
    },
    **{f"all_different_{name}": _all_different for name in ("value", "bounds", "domain", "domain_cpu", "domain_gpu")},
    **{f"array_{kind}_element": _element for kind in ("int", "bool", "var_int", "var_bool")},
    **{f"table_{kind}": _table for kind in _KINDS},
    "table_starred": _starred_table,
    "all_different_except_0": _all_different_except_0,
    "count_eq": _count,
    "global_cardinality": partial(_cardinality, closed=False),
    "global_cardinality_closed": partial(_cardinality, closed=True),
    "nvalue": _distinct_values,
    "int_abs": _absolute,
    "array_int_maximum": partial(_extreme, of=np.maximum),
    "array_int_minimum": partial(_extreme, of=np.minimum),
    "bool_clause": _clause,
    "array_bool_or": _or,
    "array_bool_and": _and,
    "array_bool_xor": _odd,
    "array_bool_and_imp": _and_imp,
    "array_bool_or_imp": partial(_or, half="_imp"),
    **{f"circuit{side}": _circuit for side in ("", "_cpu", "_gpu")},
    "inverse": _inverse,
    "lex_less": partial(_lexicographic, strict=True),
    "lex_lesseq": partial(_lexicographic, strict=False),
    "regular": _regular,
    "bin_packing_load": _bin_packing,
    "cumulative": _cumulative,
    "no_overlap": partial(_no_overlap, strict=False),
    "no_overlap_strict": partial(_no_overlap, strict=True),
    "diffn": partial(_boxes, strict=True),
    "diffn_nonstrict": partial(_boxes, strict=False),
    "transition_times": _transition_times,
    "reservoir": _reservoir,
}
"""Name of a constraint -> function that adds its tables; it takes the suffix of a reified form."""


def rule_of(name: str) -> tuple[Rule, str] | None:
    """Return the rule of a constraint and the suffix of its reified form; None if there is no rule."""
    if name in RULES:
        return RULES[name], ""
    for suffix in ("_reif", "_imp"):
        if name.endswith(suffix) and name.removesuffix(suffix) in RULES:
            return RULES[name.removesuffix(suffix)], suffix
    return None
