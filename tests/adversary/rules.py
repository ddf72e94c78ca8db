"""Constraints: how each is drawn, posted and looked at by brute force.

A constraint is plain data: its name, the numbers of its variables (a list or several), and constants.
"""

from __future__ import annotations

import itertools
import operator
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from elimina import cp
from elimina.cp.intervals import IntervalVar

Data = list[Any]
Domains = list[list[int]]
Drawn = Callable[[random.Random, Domains], Data | None]
Posted = Callable[[cp.Model, Sequence[cp.Expression], Data], None]
Held = Callable[[Sequence[int], Data], bool]

RELATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}


class Rule(NamedTuple):
    """One kind of constraint.

    Attributes:
        draw: Function that draws the data.
        post: Function that posts the constraint.
        holds: True if values fulfil the constraint.
        is_defined: True if the function that the constraint compares has a value; if not, no form of it holds.
    """

    draw: Drawn
    post: Posted
    holds: Held
    is_defined: Held = lambda _values, _data: True


def some(rng: random.Random, domains: Domains, least: int = 1, most: int = 5) -> list[int]:
    """Variables, now and then with repetitions."""
    count = rng.randint(least, max(least, min(most, len(domains))))
    if rng.random() < 0.15 or count > len(domains):
        return [rng.randrange(len(domains)) for _ in range(count)]
    return rng.sample(range(len(domains)), count)


def booleans(rng: random.Random, domains: Domains) -> list[int]:
    """Variables of 0 and 1."""
    found = [v for v, domain in enumerate(domains) if set(domain) <= {0, 1}]
    return rng.sample(found, rng.randint(0, min(3, len(found))))


def _linear(rng: random.Random, domains: Domains) -> Data:
    xs = some(rng, domains)
    factors = [rng.choice([-3, -2, -1, -1, 1, 1, 2, 5]) for _ in xs]
    value = sum(f * rng.choice(domains[x]) for f, x in zip(factors, xs, strict=True))
    own = booleans(rng, domains)
    how = rng.choice(["", "", "", "iff", "only_if"]) if own else ""
    return [xs, factors, rng.choice(list(RELATIONS)), value, how, own[0] if own else 0]


def _relation(data: Data, xs: Sequence[Any]) -> Any:
    variables, factors, name, value, _, _ = data
    left = sum(f * xs[x] for f, x in zip(factors, variables, strict=True))
    return RELATIONS[name](left, value)


def _post_linear(model: cp.Model, xs: Sequence[cp.Expression], data: Data) -> None:
    relation = _relation(data, xs)
    if isinstance(relation, bool):
        relation = RELATIONS["=="](xs[0] - xs[0], 0 if relation else 1)
    model.add(relation, **({data[4]: xs[data[5]]} if data[4] else {}))


def _hold_linear(values: Sequence[int], data: Data) -> bool:
    is_true = bool(_relation(data, values))
    if data[4] == "iff":
        return is_true == bool(values[data[5]])
    return is_true or (data[4] == "only_if" and not values[data[5]])


def _defined(
    count: int,
    made: Callable[[cp.Model, list[cp.Expression]], Any],
    of: Callable[[list[int]], int | None],
    most: int = 0,
    most_value: int = 1 << 20,
) -> Rule:
    """A new variable that is a function of others, up to a value, and is equal to one more."""

    def draw(rng: random.Random, domains: Domains) -> Data | None:
        xs = some(rng, domains, count, most or count)
        is_beyond = max(abs(value) for x in xs for value in domains[x]) > most_value
        return None if is_beyond else [xs, rng.randrange(len(domains))]

    def post(model: cp.Model, xs: Sequence[cp.Expression], data: Data) -> None:
        model.add(made(model, [xs[x] for x in data[0]]) == xs[data[1]])

    def holds(values: Sequence[int], data: Data) -> bool:
        return of([values[x] for x in data[0]]) == values[data[1]]

    def is_defined(values: Sequence[int], data: Data) -> bool:
        return of([values[x] for x in data[0]]) is not None

    return Rule(draw, post, holds, is_defined)


def _quotient(pair: list[int]) -> int | None:
    x, y = pair
    return None if y == 0 else (abs(x) // abs(y)) * (1 if (x >= 0) == (y >= 0) else -1)


def _distinct_results(xs: list[int]) -> int | None:
    quotient = _quotient(xs[:2])
    return None if quotient is None else len({abs(quotient), xs[2]})


def _remainder(pair: list[int]) -> int | None:
    quotient = _quotient(pair)
    return None if quotient is None else pair[0] - pair[1] * quotient


def _power(pair: list[int]) -> int | None:
    x, y = pair
    if y >= 0:
        return x**y if abs(x**y) <= 60 else None
    return None if x == 0 else (x ** (-y) if abs(x) == 1 else 0)


def _of_all(name: str, holds: Callable[[list[int]], bool], *more: Data) -> Rule:
    """A constraint over some variables by a method of the model, with one of some lists of more arguments."""
    return Rule(
        lambda rng, domains: [some(rng, domains, 1, 6), *(rng.choice(more) if more else [])],
        lambda model, xs, data: getattr(model, name)([xs[x] for x in data[0]], *data[1:]),
        lambda values, data: holds([values[x] for x in data[0]]),
    )


def is_different(values: list[int]) -> bool:
    """Return whether no value occurs twice."""
    return len(set(values)) == len(values)


def is_circuit(values: list[int], sub: bool = False) -> bool:
    """Return whether following successors leads through all nodes (sub: but those that are their own successors)."""
    nodes = range(len(values))
    if sorted(values) != list(nodes):
        return False
    start = next((v for v in nodes if values[v] != v), None) if sub else 0
    if start is None:
        return True
    seen, at = 1, values[start]
    while at != start:
        seen, at = seen + 1, values[at]
    return seen == (sum(values[v] != v for v in nodes) if sub else len(values))


def _two(name: str, holds: Callable[[list[int], list[int]], bool]) -> Rule:
    def draw(rng: random.Random, domains: Domains) -> Data:
        xs = some(rng, domains, 1, 4)
        return [xs, [rng.randrange(len(domains)) for _ in xs]]

    return Rule(
        draw,
        lambda model, xs, data: getattr(model, name)(*([xs[x] for x in part] for part in data)),
        lambda values, data: holds(*([values[x] for x in part] for part in data)),
    )


def _is_inverse(xs: list[int], ys: list[int]) -> bool:
    nodes = range(len(xs))
    return all(x in nodes for x in (*xs, *ys)) and all((xs[i] == j) == (ys[j] == i) for i in nodes for j in nodes)


def _table(rng: random.Random, domains: Domains) -> Data:
    xs = some(rng, domains, 1, 4)
    cells = list(itertools.product(*(domains[x] for x in xs)))
    rows = rng.sample(cells, rng.randint(0, len(cells)))
    share = rng.choice([0, 0, 0.2, 0.6])
    return [xs, [[None if rng.random() < share else cell for cell in row] for row in rows]]


def _regular(rng: random.Random, domains: Domains) -> Data:
    xs = some(rng, domains, 1, 5)
    symbols, states = sorted({s for x in xs for s in domains[x]}), rng.randint(1, 3)
    moves = [[[s, rng.randrange(states)] for s in symbols if rng.random() < 0.8] for _ in range(states)]
    return [xs, moves, rng.randrange(states), rng.sample(range(states), rng.randint(1, states))]


def _is_word(values: Sequence[int], data: Data) -> bool:
    xs, moves, state, accepting = data
    for x in xs:
        following = dict(map(tuple, moves[state])).get(values[x])
        if following is None:
            return False
        state = following
    return state in accepting


def _cost_regular(rng: random.Random, domains: Domains) -> Data:
    word = _regular(rng, domains)
    costs = [[[symbol, rng.randint(-2, 3)] for symbol, _ in moves] for moves in word[1]]
    return [*word, costs, rng.randrange(len(domains))]


def _post_cost_regular(model: cp.Model, xs: Sequence[cp.Expression], data: Data) -> None:
    word, moves, start, accepting, costs, total = data
    listed = [[dict(map(tuple, pairs)) for pairs in pairs_of_states] for pairs_of_states in (moves, costs)]
    cost = model.cost_regular([xs[x] for x in word], listed[0], start, accepting, listed[1])
    model.add(cost == xs[total])


def _is_word_with_cost(values: Sequence[int], data: Data) -> bool:
    return _is_word(values, data[:4])


def _is_word_of_cost(values: Sequence[int], data: Data) -> bool:
    xs, moves, state, _, costs, total = data
    if not _is_word_with_cost(values, data):
        return False
    cost = 0
    for x in xs:
        cost += dict(map(tuple, costs[state]))[values[x]]
        state = dict(map(tuple, moves[state]))[values[x]]
    return cost == values[total]


def _value_precede(rng: random.Random, domains: Domains) -> Data:
    xs = some(rng, domains, 1, 6)
    values = sorted({value for x in xs for value in domains[x]})
    return [xs, rng.sample(values, rng.randint(1, min(4, len(values))))]


def _is_preceded(values: Sequence[int], data: Data) -> bool:
    word = [values[x] for x in data[0]]
    first = [word.index(value) if value in word else len(word) for value in data[1]]
    return all(one < other or other == len(word) for one, other in itertools.pairwise(first))


def _matrix(rng: random.Random, domains: Domains) -> Data:
    sizes = rng.randint(1, 3), rng.randint(1, 3)
    items = [
        [rng.choice([["x", rng.randrange(len(domains))], ["n", rng.randint(-2, 4)]]) for _ in range(sizes[1])]
        for _ in range(sizes[0])
    ]
    return [items, *(rng.randrange(len(domains)) for _ in range(3))]


def _has_cell(values: Sequence[int], data: Data) -> bool:
    items, row, column, _ = data
    return 0 <= values[row] < len(items) and 0 <= values[column] < len(items[0])


def _is_cell(values: Sequence[int], data: Data) -> bool:
    items, row, column, result = data
    if not _has_cell(values, data):
        return False
    what, n = items[values[row]][values[column]]
    return values[result] == (values[n] if what == "x" else n)


def _cardinality(rng: random.Random, domains: Domains) -> Data:
    xs = some(rng, domains, 1, 5)
    known = sorted({s for x in xs for s in domains[x]})
    chosen = rng.sample(known, rng.randint(1, min(3, len(known))))
    counts = [rng.choice([["x", rng.randrange(len(domains))], ["n", rng.randint(0, 2)]]) for _ in chosen]
    return [xs, chosen, counts, rng.random() < 0.3]


def _is_cardinality(values: Sequence[int], data: Data) -> bool:
    xs, chosen, counts, closed = data
    found = Counter(values[x] for x in xs)
    wanted = [values[n] if what == "x" else n for what, n in counts]
    return all(found[c] == n for c, n in zip(chosen, wanted, strict=True)) and (not closed or set(found) <= set(chosen))


def _cumulative(rng: random.Random, domains: Domains) -> Data:
    xs = some(rng, domains, 1, 5)
    n, capacity = len(xs), ["n", rng.randint(0, 5)]
    if rng.random() < 0.2:
        capacity = ["x", rng.randrange(len(domains))]
    lists = [_sizes(rng, domains, n), _sizes(rng, domains, n), _presences(rng, domains, n)]
    return [xs, *lists, capacity, rng.choice(TASK_FORMS)]


def _post_cumulative(model: cp.Model, xs: Sequence[cp.Expression], data: Data) -> None:
    starts, durations, demands, presences, capacity, form = data
    (limit,) = _given(xs, [capacity])
    tasks = _tasks(xs, starts, durations, presences, form)
    model.cumulative(tasks[0], tasks[1], _given(xs, demands), limit, tasks[2])


def _is_cumulative(values: Sequence[int], data: Data) -> bool:
    starts = [values[x] for x in data[0]]
    durations, demands = (_values(values, pairs) for pairs in data[1:3])
    presences = [1] * len(starts) if data[3] is None else _values(values, data[3])
    (capacity,) = _values(values, [data[4]])
    tasks = [task[:3] for task in zip(starts, durations, demands, presences, strict=True) if task[3]]
    if min(*durations, capacity, *(r for _, _, r in tasks)) < 0:
        return False
    return all(sum(r for s, d, r in tasks if s <= time < s + d) <= capacity for time in starts)


TASK_FORMS = ("starts", "starts", "starts", "intervals", "bounds")
"""Forms of tasks: their starts, intervals of existing variables, and intervals that make variables of their own."""


def _tasks(xs: Sequence[cp.Expression], starts: Data, durations: Data, presences: Data | None, form: str) -> Any:
    """Return starts, durations and presences; of intervals, the intervals alone."""
    listed, lengths = [xs[x] for x in starts], _given(xs, durations)
    present = None if presences is None else _given(xs, presences)
    if form == "starts":
        return listed, lengths, present
    booleans_of_tasks = [1] * len(listed) if present is None else present
    parts = zip(listed, lengths, booleans_of_tasks, strict=True)
    return [_interval(*task, has_own_variables=form == "bounds") for task in parts], None, None


def _interval(start: cp.Expression, length: Any, presence: Any, has_own_variables: bool) -> IntervalVar:
    model: cp.Model = start.model  # type: ignore[assignment]
    shortest, longest = model.bounds(length)
    if shortest < 0:  # `interval_var` refuses a duration that may be negative, and `no_overlap` does not
        return IntervalVar(start, length, presence, "")
    if not has_own_variables:
        return model.interval_var(start, length, presence)
    task = model.interval_var(model.bounds(start), (shortest, longest), optional=not isinstance(presence, int))
    for own, given in ((task.start, start), (task.duration, length), (task.presence, presence)):
        model.add(model.expression(own) == given)
    return task


def _presences(rng: random.Random, domains: Domains, count: int) -> list[Any] | None:
    chosen = [v for v, domain in enumerate(domains) if set(domain) <= {0, 1}]
    if not chosen or rng.random() < 0.5:
        return None
    return [rng.choice([["x", rng.choice(chosen)], ["n", 1]]) for _ in range(count)]


def _sizes(rng: random.Random, domains: Domains, count: int) -> list[Any]:
    return [
        ["x", rng.randrange(len(domains))] if rng.random() < 0.15 else ["n", rng.randint(0, 3)] for _ in range(count)
    ]


def _tasks_in_turn(rng: random.Random, domains: Domains) -> Data:
    xs = some(rng, domains, 1, 5)
    times = [[rng.randint(0, 2) for _ in xs] for _ in xs] if rng.random() < 0.4 else None
    lists = [_sizes(rng, domains, len(xs)), _presences(rng, domains, len(xs)), times]
    return [xs, *lists, rng.random() < 0.3, rng.choice(TASK_FORMS)]


def _post_tasks_in_turn(model: cp.Model, xs: Sequence[cp.Expression], data: Data) -> None:
    starts, sizes, presences, times, strict, form = data
    model.no_overlap(*_tasks(xs, starts, sizes, presences, form), times, strict=strict)


def _are_in_turn(values: Sequence[int], data: Data) -> bool:
    starts, sizes, presences, times, strict, _ = data
    lengths = _values(values, sizes)
    present = [1] * len(starts) if presences is None else _values(values, presences)
    for i, k in itertools.permutations(range(len(starts)), 2):
        if not present[i] or not present[k] or (times is None and not strict and 0 in (lengths[i], lengths[k])):
            continue
        there, back = (times[i][k], times[k][i]) if times is not None else (0, 0)
        s, t = values[starts[i]], values[starts[k]]
        if s + lengths[i] + there > t and t + lengths[k] + back > s:
            return False
    return min(lengths) >= 0


def _two_tasks(rng: random.Random, domains: Domains) -> Data:
    xs = [rng.randrange(len(domains)) for _ in range(2)]
    delay = rng.choice([["n", 0], ["n", rng.randint(-1, 2)], ["x", rng.randrange(len(domains))]])
    sizes = [["n", rng.randint(0, 3)] for _ in xs]
    return [xs, sizes, _presences(rng, domains, 2), delay, rng.choice(["intervals", "bounds"])]


def _post_precedence(model: cp.Model, xs: Sequence[cp.Expression], data: Data) -> None:
    intervals, _, _ = _tasks(xs, *data[:3], data[4])
    model.precedence(*intervals, *_given(xs, [data[3]]))


def _is_precedence(values: Sequence[int], data: Data) -> bool:
    first, second = (values[x] for x in data[0])
    presences = [1, 1] if data[2] is None else _values(values, data[2])
    return not all(presences) or first + data[1][0][1] + _values(values, [data[3]])[0] <= second


def _boxes(rng: random.Random, domains: Domains) -> Data:
    xs = some(rng, domains, 1, 4)
    n = len(xs)
    ys = [["x", rng.randrange(len(domains))] if rng.random() < 0.6 else ["n", rng.randint(0, 3)] for _ in xs]
    lists = [_sizes(rng, domains, n), _sizes(rng, domains, n), _presences(rng, domains, n)]
    return [xs, ys, *lists, rng.random() < 0.5, rng.choice(TASK_FORMS)]


def _post_boxes(model: cp.Model, xs: Sequence[cp.Expression], data: Data) -> None:
    lefts, lows, widths, heights, presences, strict, form = data
    if form == "starts" or any(what == "n" for what, _ in lows):
        present = None if presences is None else _given(xs, presences)
        lists = [_given(xs, pairs) for pairs in (lows, widths, heights)]
        model.no_overlap_2d([xs[x] for x in lefts], *lists, present, strict=strict)
        return
    in_x, _, _ = _tasks(xs, lefts, widths, presences, form)
    in_y, _, _ = _tasks(xs, [n for _, n in lows], heights, presences, form)
    model.no_overlap_2d(in_x, in_y, strict=strict)


def _are_boxes(values: Sequence[int], data: Data) -> bool:
    x = [values[v] for v in data[0]]
    y, w, h = (_values(values, pairs) for pairs in data[1:4])
    present = [1] * len(x) if data[4] is None else _values(values, data[4])
    for i, k in itertools.combinations(range(len(x)), 2):
        if not present[i] or not present[k] or (not data[5] and 0 in (w[i], w[k], h[i], h[k])):
            continue
        if x[i] + w[i] > x[k] and x[k] + w[k] > x[i] and y[i] + h[i] > y[k] and y[k] + h[k] > y[i]:
            return False
    return min(*w, *h) >= 0


def _reservoir(rng: random.Random, domains: Domains) -> Data:
    xs = some(rng, domains, 1, 5)
    changes = [rng.randint(-3, 3) for _ in xs]
    return [xs, changes, -rng.randint(0, 3), rng.randint(0, 4), _presences(rng, domains, len(xs))]


def _post_reservoir(model: cp.Model, xs: Sequence[cp.Expression], data: Data) -> None:
    present = None if data[4] is None else _given(xs, data[4])
    model.reservoir([xs[x] for x in data[0]], *data[1:4], present)


def _is_reservoir(values: Sequence[int], data: Data) -> bool:
    times = [values[x] for x in data[0]]
    present = [1] * len(times) if data[4] is None else _values(values, data[4])
    events = list(zip(times, data[1], present, strict=True))
    return all(data[2] <= sum(c for t, c, p in events if p and t <= now) <= data[3] for now in times)


def _packing(rng: random.Random, domains: Domains) -> Data:
    bins = some(rng, domains, 1, 5)
    loads = [
        rng.choice([["x", rng.randrange(len(domains))], ["n", rng.randint(0, 6)]]) for _ in range(rng.randint(1, 3))
    ]
    return [bins, [rng.randint(0, 3) for _ in bins], loads]


def _is_packing(values: Sequence[int], data: Data) -> bool:
    bins, sizes, loads = data
    full = [values[n] if what == "x" else n for what, n in loads]
    if any(not 0 <= values[b] < len(loads) for b in bins):
        return False
    return all(
        load == sum(size for b, size in zip(bins, sizes, strict=True) if values[b] == i) for i, load in enumerate(full)
    )


def _edges(rng: random.Random, domains: Domains) -> Data | None:
    xs = some(rng, domains, 3, 5)
    edges = [[i, j, rng.randint(-2, 4)] for i, j in itertools.combinations(range(len(xs)), 2) if rng.random() < 0.8]
    return [xs, edges, rng.randrange(len(domains)), rng.randrange(len(domains))] if edges else None


def _post_edges(model: cp.Model, xs: Sequence[cp.Expression], data: Data) -> None:
    edges = {(i, j): length for i, j, length in data[1]}
    length, has = model.weighted_circuit([xs[x] for x in data[0]], edges)
    model.add(length + has[0] == xs[data[2]] + xs[data[3]])


def _has_length(values: Sequence[int], data: Data) -> bool:
    nodes, edges = [values[x] for x in data[0]], [{i, j} for i, j, _ in data[1]]
    return is_circuit(nodes) and all(set(edge) in edges for edge in enumerate(nodes))


def _is_cheap_circuit(values: Sequence[int], data: Data) -> bool:
    if not _has_length(values, data):
        return False
    lengths = {frozenset((i, j)): length for i, j, length in data[1]}
    taken = [frozenset((i, values[x])) for i, x in enumerate(data[0])]
    has_first = int(frozenset(data[1][0][:2]) in taken)
    return sum(lengths[edge] for edge in taken) + has_first == values[data[2]] + values[data[3]]


def _costs(rng: random.Random, domains: Domains) -> Data:
    xs = some(rng, domains, 1, 3)
    cells = list(itertools.product(*(domains[x] for x in dict.fromkeys(xs))))
    rows = rng.sample(cells, rng.randint(1, len(cells)))
    return [list(dict.fromkeys(xs)), [[list(row), rng.randint(-2, 4)] for row in rows], rng.randrange(len(domains))]


def _post_costs(model: cp.Model, xs: Sequence[cp.Expression], data: Data) -> None:
    cost = model.add_cost([xs[x] for x in data[0]], {tuple(row): cost for row, cost in data[1]})
    model.add(cost == xs[data[2]])


def _has_cost(values: Sequence[int], data: Data) -> bool:
    return any([values[x] for x in data[0]] == row for row, _ in data[1])


def _is_cost(values: Sequence[int], data: Data) -> bool:
    return any([values[x] for x in data[0]] == row and cost == values[data[2]] for row, cost in data[1])


def _values(values: Sequence[int], pairs: list[Any]) -> list[int]:
    return [values[n] if what == "x" else n for what, n in pairs]


def _given(xs: Sequence[cp.Expression], pairs: list[Any]) -> list[Any]:
    return [xs[n] if what == "x" else n for what, n in pairs]


def _element(rng: random.Random, domains: Domains) -> Data:
    items = [
        rng.choice([["x", rng.randrange(len(domains))], ["n", rng.randint(-5, 9)]]) for _ in range(rng.randint(1, 5))
    ]
    if rng.random() < 0.5:
        items = [["n", rng.randint(-5, 9)] for _ in items]
    return [items, rng.randrange(len(domains)), rng.randrange(len(domains))]


def _has_element(values: Sequence[int], data: Data) -> bool:
    return 0 <= values[data[1]] < len(data[0])


def _is_element(values: Sequence[int], data: Data) -> bool:
    items, index, result = data
    if not _has_element(values, data):
        return False
    what, n = items[values[index]]
    return values[result] == (values[n] if what == "x" else n)


def _clause(rng: random.Random, domains: Domains) -> Data:
    return [booleans(rng, domains), booleans(rng, domains)]


CONNECTIVES = ("and", "or", "xor", "implies", "not")


def _condition(rng: random.Random, domains: Domains) -> Data:
    boolean = booleans(rng, domains)
    how = rng.choice(["", "", "iff", "only_if"]) if boolean else ""
    return [_formula(rng, domains, 3), how, boolean[0] if boolean else 0]


def _formula(rng: random.Random, domains: Domains, depth: int) -> Data:
    """Draw a comparison, a Boolean, a number of conditions that hold, or a connective of formulas."""
    kind = (
        rng.choice(CONNECTIVES) if depth and rng.random() < 0.6 else rng.choice(["linear", "linear", "sum", "boolean"])
    )
    boolean = booleans(rng, domains)
    if kind == "boolean" and boolean:
        return [kind, boolean[0]]
    if kind == "sum" and depth:
        parts = [_formula(rng, domains, 0) for _ in range(rng.randint(1, 4))]
        return [kind, parts, rng.choice(list(RELATIONS)), rng.randint(0, len(parts))]
    if kind in CONNECTIVES:
        return [kind, *(_formula(rng, domains, depth - 1) for _ in range(1 if kind == "not" else 2))]
    return ["linear", [*_linear(rng, domains)[:4], "", 0]]


def _condition_of(data: Data, xs: Sequence[cp.Expression]) -> Any:
    kind, *rest = data
    if kind == "linear":
        relation = _relation(rest[0], xs)
        return xs[0] - xs[0] == int(not relation) if isinstance(relation, bool) else relation
    if kind == "boolean":
        return xs[rest[0]]
    if kind == "sum":
        return RELATIONS[rest[1]](sum(_condition_of(part, xs) for part in rest[0]), rest[2])
    parts = [_condition_of(part, xs) for part in rest]
    if kind == "not":
        return ~parts[0]
    if kind == "implies":
        return parts[0].implies(parts[1])
    return {"and": operator.and_, "or": operator.or_, "xor": operator.xor}[kind](*parts)


def _is_true(data: Data, values: Sequence[int]) -> bool:
    kind, *rest = data
    if kind == "linear":
        return bool(_relation(rest[0], values))
    if kind == "boolean":
        return bool(values[rest[0]])
    if kind == "sum":
        return bool(RELATIONS[rest[1]](sum(_is_true(part, values) for part in rest[0]), rest[2]))
    parts = [_is_true(part, values) for part in rest]
    if kind == "not":
        return not parts[0]
    return {"and": all(parts), "or": any(parts), "xor": parts[0] != parts[-1], "implies": not parts[0] or parts[-1]}[
        kind
    ]


def _post_condition(model: cp.Model, xs: Sequence[cp.Expression], data: Data) -> None:
    formula, how, control = data
    model.add(_condition_of(formula, xs), **({how: xs[control]} if how else {}))


def _hold_condition(values: Sequence[int], data: Data) -> bool:
    formula, how, control = data
    if how == "iff":
        return _is_true(formula, values) == bool(values[control])
    return _is_true(formula, values) or (how == "only_if" and not values[control])


def _cost_free(name: str, of: Callable[[list[int]], int]) -> Rule:
    """A function of Booleans that is equal to another one."""

    def draw(rng: random.Random, domains: Domains) -> Data | None:
        own = booleans(rng, domains)
        return [own, own[0]] if own else None

    return Rule(
        draw,
        lambda model, xs, data: model.add(getattr(model, name)([xs[x] for x in data[0]]) == xs[data[1]]),
        lambda values, data: of([values[x] for x in data[0]]) == values[data[1]],
    )


RULES: dict[str, Rule] = {
    "linear": Rule(_linear, _post_linear, _hold_linear),
    "all_different": _of_all(
        "all_different", is_different, ["value"], ["bounds"], ["domain"], ["domain", "cpu"], ["domain", "auto"]
    ),
    "all_different_except_0": _of_all("all_different_except_0", lambda xs: is_different([x for x in xs if x])),
    "circuit": _of_all("circuit", is_circuit, [], ["cpu"]),
    "subcircuit": _of_all("subcircuit", lambda xs: is_circuit(xs, sub=True), [], ["cpu"]),
    "lex_less": _two("lex_less", lambda xs, ys: xs < ys),
    "lex_lesseq": _two("lex_lesseq", lambda xs, ys: xs <= ys),
    "inverse": _two("inverse", _is_inverse),
    "product": _defined(2, lambda model, xs: model.product(*xs), lambda xs: xs[0] * xs[1]),
    "quotient": _defined(2, lambda model, xs: model.quotient(*xs), _quotient),
    "remainder": _defined(2, lambda model, xs: model.remainder(*xs), _remainder),
    "floor_quotient": _defined(2, lambda _, xs: divmod(*xs)[0], lambda xs: xs[0] // xs[1] if xs[1] else None),
    "floor_remainder": _defined(2, lambda _, xs: divmod(*xs)[1], lambda xs: xs[0] % xs[1] if xs[1] else None),
    "whole_power": _defined(
        2,
        lambda model, xs: xs[0] ** model.maximum([xs[1], 0]),
        lambda xs: xs[0] ** max(xs[1], 0),
        most_value=9,
    ),
    "condition": Rule(_condition, _post_condition, _hold_condition),
    "power": _defined(2, lambda model, xs: model.power(*xs, -60, 60), _power, most_value=9),
    "maximum": _defined(1, lambda model, xs: model.maximum(xs), max, 4),
    "minimum": _defined(1, lambda model, xs: model.minimum(xs), min, 4),
    "absolute": _defined(1, lambda model, xs: abs(xs[0]), lambda xs: abs(xs[0])),
    "count": _defined(2, lambda model, xs: model.count(xs[1:], xs[0]), lambda xs: xs[1:].count(xs[0]), 5),
    "distinct_results": _defined(
        3,
        lambda model, xs: model.distinct_values([abs(model.quotient(xs[0], xs[1])), xs[2]]),
        _distinct_results,
    ),
    "distinct_values": _defined(1, lambda model, xs: model.distinct_values(xs), lambda xs: len(set(xs)), 5),
    "all_of": _cost_free("all_of", lambda xs: int(all(xs))),
    "any_of": _cost_free("any_of", lambda xs: int(any(xs))),
    "member": Rule(
        lambda rng, domains: [rng.randrange(len(domains)), [rng.randint(-4, 6) for _ in range(rng.randint(0, 4))]],
        lambda model, xs, data: model.member(xs[data[0]], data[1]),
        lambda values, data: values[data[0]] in data[1],
    ),
    "clause": Rule(
        _clause,
        lambda model, xs, data: model.clause(*([xs[x] for x in part] for part in data)),
        lambda values, data: any(values[x] for x in data[0]) or not all(values[x] for x in data[1]),
    ),
    "table": Rule(
        _table,
        lambda model, xs, data: model.table([xs[x] for x in data[0]], data[1]),
        lambda values, data: any(
            all(cell is None or values[x] == cell for x, cell in zip(data[0], row, strict=True)) for row in data[1]
        ),
    ),
    "regular": Rule(
        _regular,
        lambda model, xs, data: model.regular(
            [xs[x] for x in data[0]], [dict(map(tuple, moves)) for moves in data[1]], data[2], data[3]
        ),
        _is_word,
    ),
    "cost_regular": Rule(_cost_regular, _post_cost_regular, _is_word_of_cost, _is_word_with_cost),
    "value_precede": Rule(
        _value_precede,
        lambda model, xs, data: model.value_precede(data[1], [xs[x] for x in data[0]]),
        _is_preceded,
    ),
    "matrix": Rule(
        _matrix,
        lambda model, xs, data: model.add(
            model.element([_given(xs, row) for row in data[0]], (xs[data[1]], xs[data[2]])) == xs[data[3]]
        ),
        _is_cell,
        _has_cell,
    ),
    "arg_max": _defined(1, lambda model, xs: model.arg_max(xs), lambda xs: xs.index(max(xs)), 5),
    "arg_min": _defined(1, lambda model, xs: model.arg_min(xs), lambda xs: xs.index(min(xs)), 5),
    "sort": _defined(2, lambda model, xs: model.sort(xs)[1], lambda xs: sorted(xs)[1], 5),
    "cardinality": Rule(
        _cardinality,
        lambda model, xs, data: model.cardinality(
            [xs[x] for x in data[0]], dict(zip(data[1], _given(xs, data[2]), strict=True)), data[3]
        ),
        _is_cardinality,
    ),
    "cumulative": Rule(_cumulative, _post_cumulative, _is_cumulative),
    "precedence": Rule(_two_tasks, _post_precedence, _is_precedence),
    "weighted_circuit": Rule(_edges, _post_edges, _is_cheap_circuit, _has_length),
    "add_cost": Rule(_costs, _post_costs, _is_cost, _has_cost),
    "no_overlap": Rule(_tasks_in_turn, _post_tasks_in_turn, _are_in_turn),
    "no_overlap_2d": Rule(_boxes, _post_boxes, _are_boxes),
    "reservoir": Rule(_reservoir, _post_reservoir, _is_reservoir),
    "bin_packing_load": Rule(
        _packing,
        lambda model, xs, data: model.bin_packing_load(_given(xs, data[2]), [xs[x] for x in data[0]], data[1]),
        _is_packing,
    ),
    "element": Rule(
        _element,
        lambda model, xs, data: model.add(model.element(_given(xs, data[0]), xs[data[1]]) == xs[data[2]]),
        _is_element,
        _has_element,
    ),
}
"""Name -> constraint."""
