"""XCSP3's constraints by the words of its specification, on descriptions that are plain values.

It shares nothing with the reader. An expression is a number, the name of a variable, or a list of an operator and its
arguments; a constraint is a dictionary with its name as ``kind``; a condition is an operator and its right-hand side:
an expression, or ``["range", lo, hi]`` or ``["set", ...]`` after ``in`` and ``notin``.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Values = dict[str, int]
Constraint = dict[str, Any]

COMPARE: dict[str, Callable[[int, int], bool]] = {
    name: getattr(operator, name) for name in ("lt", "le", "ge", "gt", "eq", "ne")
}


def quotient(a: int, b: int) -> int:
    """Return a quotient that is truncated towards 0."""
    return abs(a) // abs(b) * (1 if (a >= 0) == (b >= 0) else -1)


_FUNCTIONS: dict[str, Callable[[list[int]], int]] = {
    "neg": lambda xs: -xs[0],
    "abs": lambda xs: abs(xs[0]),
    "sqr": lambda xs: xs[0] ** 2,
    "add": sum,
    "sub": lambda xs: xs[0] - xs[1],
    "mul": math.prod,
    "div": lambda xs: quotient(*xs),
    "mod": lambda xs: xs[0] - quotient(*xs) * xs[1],
    "pow": lambda xs: xs[0] ** xs[1],
    "dist": lambda xs: abs(xs[0] - xs[1]),
    "min": min,
    "max": max,
    "ne": lambda xs: int(len(set(xs)) == len(xs)),
    "not": lambda xs: 1 - xs[0],
    "and": lambda xs: int(all(xs)),
    "or": lambda xs: int(any(xs)),
    "xor": lambda xs: sum(xs) % 2,
    "iff": lambda xs: int(len(set(xs)) == 1),
    "imp": lambda xs: int(not xs[0] or xs[1] == 1),
    "if": lambda xs: xs[1] if xs[0] else xs[2],
    "in": lambda xs: int(xs[0] in xs[1:]),
    "notin": lambda xs: int(xs[0] not in xs[1:]),
    **{
        name: lambda xs, name=name: int(all(COMPARE[name](a, b) for a, b in itertools.pairwise(xs)))
        for name in ("lt", "le", "ge", "gt", "eq")
    },
}


def value(expression: Any, values: Values) -> int:
    """Return the value of an expression; ``["in", x, ["set", ...]]`` is 1 if x is among the values."""
    if isinstance(expression, int):
        return expression
    if isinstance(expression, str):
        return values[expression]
    name, *arguments = expression
    if name in ("in", "notin"):
        arguments = [arguments[0], *arguments[1][1:]]
    return int(_FUNCTIONS[name]([value(argument, values) for argument in arguments]))


def meets(left: int, condition: Sequence[Any], values: Values) -> bool:
    """Return whether a number meets a condition."""
    name, right = condition
    if name in COMPARE:
        return COMPARE[name](left, value(right, values))
    members = range(right[1], right[2] + 1) if right[0] == "range" else right[1:]
    return (left in members) == (name == "in")


def _numbers(items: Sequence[Any], values: Values) -> list[int]:
    return [value(item, values) for item in items]


def _cell_holds(cell: Sequence[Any], place: int, row: Sequence[int]) -> bool:
    kind, *rest = cell
    if kind == "any":
        return True
    if kind in ("in", "notin"):
        return (row[place] in rest[0]) == (kind == "in")
    constant, columns = rest
    return COMPARE[kind](row[place], constant + sum(sign * row[column] for column, sign in columns))


def _extension(c: Constraint, v: Values) -> bool:
    row = _numbers(c["list"], v)
    is_listed = any(all(_cell_holds(cell, i, row) for i, cell in enumerate(cells)) for cells in c["rows"])
    return is_listed == c["positive"]


def _differ(xs: Sequence[Any], exceptions: Sequence[Any]) -> bool:
    counted = [x for x in xs if x not in exceptions]
    return len(set(counted)) == len(counted)


def _all_different(c: Constraint, v: Values) -> bool:
    if "lists" in c:
        return _differ([tuple(_numbers(xs, v)) for xs in c["lists"]], [tuple(each) for each in c["except"]])
    if "matrix" in c:
        rows = [_numbers(row, v) for row in c["matrix"]]
        return all(_differ(line, c["except"]) for line in (*rows, *zip(*rows, strict=True)))
    return _differ(_numbers(c["list"], v), c["except"])


def _all_equal(c: Constraint, v: Values) -> bool:
    return len({x for x in _numbers(c["list"], v) if x not in c["except"]}) <= 1


def _ordered(c: Constraint, v: Values) -> bool:
    xs = _numbers(c["list"], v)
    gaps = _numbers(c["lengths"], v) or [0] * len(xs)
    return all(COMPARE[c["operator"]](x + gap, y) for (x, y), gap in zip(itertools.pairwise(xs), gaps, strict=False))


def _lex(c: Constraint, v: Values) -> bool:
    rows = [_numbers(row, v) for row in c["lists"]]
    chains = [rows, list(map(list, zip(*rows, strict=True)))] if c["matrix"] else [rows]
    # Lists of Python have the same order.
    compare: Any = COMPARE[c["operator"]]
    return all(compare(a, b) for chain in chains for a, b in itertools.pairwise(chain))


def _precedence(c: Constraint, v: Values) -> bool:
    xs = _numbers(c["list"], v)
    firsts = [xs.index(number) if number in xs else len(xs) for number in c["values"]]
    in_order = all(b == len(xs) or a < b for a, b in itertools.pairwise(firsts))
    return in_order and (not c["covered"] or len(xs) not in firsts)


def total(c: Constraint, v: Values) -> int:
    """Return the weighted sum of a list."""
    xs = _numbers(c["list"], v)
    return sum(map(operator.mul, xs, _numbers(c["coeffs"], v) or [1] * len(xs)))


def _count(c: Constraint, v: Values) -> bool:
    targets = _numbers(c["values"], v)
    return meets(sum(x in targets for x in _numbers(c["list"], v)), c["condition"], v)


def _distinct_values(c: Constraint, v: Values) -> bool:
    return meets(len(set(_numbers(c["list"], v)) - set(c["except"])), c["condition"], v)


def _cardinality(c: Constraint, v: Values) -> bool:
    xs, targets = _numbers(c["list"], v), _numbers(c["values"], v)
    for target, occurs in zip(targets, c["occurs"], strict=True):
        is_range = isinstance(occurs, list) and occurs[0] == "range"
        condition = ["in", occurs] if is_range else ["eq", occurs]
        if not meets(xs.count(target), condition, v):
            return False
    return not c["closed"] or all(x in targets for x in xs)


def _places(hits: Sequence[bool], rank: str) -> list[int]:
    """Return the places of a rank: any, first or last."""
    places = [i for i, hit in enumerate(hits) if hit]
    return places if rank == "any" else places[:1] if rank == "first" else places[-1:]


def _extreme(c: Constraint, v: Values) -> bool:
    xs = _numbers(c["list"], v)
    extreme = min(xs) if c["kind"] == "minimum" else max(xs)
    if "index" in c:
        places = _places([x == extreme for x in xs], c["rank"])
        if value(c["index"], v) - c["start"] not in places:
            return False
    return c["condition"] is None or meets(extreme, c["condition"], v)


def _extreme_place(c: Constraint, v: Values) -> bool:
    xs = _numbers(c["list"], v)
    extreme = min(xs) if c["kind"] == "minimumArg" else max(xs)
    places = _places([x == extreme for x in xs], c["rank"])
    return any(meets(place + c["start"], c["condition"], v) for place in places)


def _element(c: Constraint, v: Values) -> bool:
    if "matrix" in c:
        rows = [_numbers(row, v) for row in c["matrix"]]
        row, column = (value(at, v) - start for at, start in zip(c["index"], c["starts"], strict=True))
        if not (0 <= row < len(rows) and 0 <= column < len(rows[0])):
            return False
        return meets(rows[row][column], c["condition"], v)
    hits = [meets(x, c["condition"], v) for x in _numbers(c["list"], v)]
    return any(hits) if c["index"] is None else value(c["index"], v) - c["start"] in _places(hits, c["rank"])


def _channel(c: Constraint, v: Values) -> bool:
    lists, starts = [_numbers(xs, v) for xs in c["lists"]], c["starts"]
    if "value" in c:
        place = value(c["value"], v) - starts[0]
        return 0 <= place < len(lists[0]) and lists[0] == [int(i == place) for i in range(len(lists[0]))]
    xs, ys = lists[0], lists[-1]
    forward = all(0 <= x - starts[-1] < len(ys) and ys[x - starts[-1]] == i + starts[0] for i, x in enumerate(xs))
    backward = all(0 <= y - starts[0] < len(xs) and xs[y - starts[0]] == j + starts[-1] for j, y in enumerate(ys))
    return forward and (backward or len(xs) < len(ys))


def _instantiation(c: Constraint, v: Values) -> bool:
    return _numbers(c["list"], v) == c["values"]


def _automaton(c: Constraint, v: Values) -> bool:
    states = {c["start"]}
    for x in _numbers(c["list"], v):
        states = {target for source, symbol, target in c["transitions"] if source in states and symbol == x}
    return not states.isdisjoint(c["final"])


def _circuit(c: Constraint, v: Values) -> bool:
    successors = [x - c["start"] for x in _numbers(c["list"], v)]
    if sorted(successors) != list(range(len(successors))):
        return False
    moved = [i for i, x in enumerate(successors) if x != i]
    if len(moved) < 2:
        return False
    at, length = successors[moved[0]], 1
    while at != moved[0]:
        at, length = successors[at], length + 1
    return length == len(moved) and (c["size"] is None or value(c["size"], v) == length)


def _flow(c: Constraint, v: Values) -> bool:
    xs = _numbers(c["list"], v)
    nodes = sorted({node for arc in c["arcs"] for node in arc})
    for node, balance in zip(nodes, _numbers(c["balance"], v), strict=True):
        net = sum(x * ((a == node) - (b == node)) for x, (a, b) in zip(xs, c["arcs"], strict=True))
        if net != balance:
            return False
    if not c["weights"]:
        return True
    return meets(sum(map(operator.mul, xs, _numbers(c["weights"], v))), c["condition"], v)


def _no_overlap(c: Constraint, v: Values) -> bool:
    boxes = [(_numbers(a, v), _numbers(m, v)) for a, m in zip(c["origins"], c["lengths"], strict=True)]
    if c["zeroIgnored"]:
        boxes = [box for box in boxes if 0 not in box[1]]
    return all(
        any(a + m <= b or b + n <= a for a, m, b, n in zip(*one, *other, strict=True))
        for one, other in itertools.combinations(boxes, 2)
    )


def _cumulative(c: Constraint, v: Values) -> bool:
    starts, lengths, heights = (_numbers(c[name], v) for name in ("origins", "lengths", "heights"))
    if c["ends"] and _numbers(c["ends"], v) != list(map(operator.add, starts, lengths)):
        return False
    tasks = list(zip(starts, lengths, heights, strict=True))
    # Nothing runs before the first task.
    times = {min(starts) - 1, *(time for start, length, _ in tasks for time in range(start, start + length))}
    return all(meets(sum(h for s, m, h in tasks if s <= time < s + m), c["condition"], v) for time in times)


def _clause(c: Constraint, v: Values) -> bool:
    return any(v[name] == (not is_negative) for name, is_negative in c["literals"])


def _bin_packing(c: Constraint, v: Values) -> bool:
    xs = _numbers(c["list"], v)

    def load(place: int) -> int:
        return sum(size for x, size in zip(xs, c["sizes"], strict=True) if x == place)

    if c["condition"] is not None:
        return all(meets(load(place), c["condition"], v) for place in set(xs))
    bounds = _numbers(c.get("limits") or c["loads"], v)
    if not all(0 <= x < len(bounds) for x in xs):
        return False
    compare = COMPARE["le" if c.get("limits") else "eq"]
    return all(compare(load(place), bound) for place, bound in enumerate(bounds))


def _knapsack(c: Constraint, v: Values) -> bool:
    xs = _numbers(c["list"], v)
    return all(
        meets(sum(map(operator.mul, xs, c[name])), condition, v)
        for name, condition in zip(("weights", "profits"), c["conditions"], strict=True)
    )


_HOLDS: dict[str, Callable[[Constraint, Values], bool]] = {
    "intension": lambda c, v: value(c["function"], v) == 1,
    "extension": _extension,
    "allDifferent": _all_different,
    "allEqual": _all_equal,
    "ordered": _ordered,
    "lex": _lex,
    "precedence": _precedence,
    "sum": lambda c, v: meets(total(c, v), c["condition"], v),
    "count": _count,
    "nValues": _distinct_values,
    "cardinality": _cardinality,
    "minimum": _extreme,
    "maximum": _extreme,
    "minimumArg": _extreme_place,
    "maximumArg": _extreme_place,
    "element": _element,
    "channel": _channel,
    "instantiation": _instantiation,
    "regular": _automaton,
    "mdd": _automaton,
    "circuit": _circuit,
    "flow": _flow,
    "noOverlap": _no_overlap,
    "cumulative": _cumulative,
    "clause": _clause,
    "binPacking": _bin_packing,
    "knapsack": _knapsack,
}


def holds(constraint: Constraint, values: Values) -> bool:
    """Return whether a constraint holds."""
    return _HOLDS[constraint["kind"]](constraint, values)


def worth(objective: Constraint, values: Values) -> int:
    """Return the value of an objective: an expression, or a function of a list with coefficients."""
    if objective["type"] == "expression":
        return value(objective["expression"], values)
    xs = _numbers(objective["list"], values)
    items = list(map(operator.mul, xs, _numbers(objective["coeffs"], values) or [1] * len(xs)))
    functions: dict[str, Callable[[list[int]], int]] = {
        "sum": sum, "product": math.prod, "minimum": min, "maximum": max, "nValues": lambda ys: len(set(ys)),
    }  # fmt: skip
    return functions[objective["type"]](items)


def renamed(content: Any, names: dict[str, str]) -> Any:
    """Return a description with other names of variables."""
    if isinstance(content, dict):
        return {key: part if key in ("kind", "operator") else renamed(part, names) for key, part in content.items()}
    if isinstance(content, list):
        return [renamed(part, names) for part in content]
    return names.get(content, content) if isinstance(content, str) else content


def solutions(domains: dict[str, list[int]], constraints: Sequence[Constraint]) -> Iterator[Values]:
    """Yield every assignment that fulfils all constraints."""
    for row in itertools.product(*domains.values()):
        values = dict(zip(domains, row, strict=True))
        if all(holds(constraint, values) for constraint in constraints):
            yield values
