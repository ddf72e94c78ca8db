"""Random XCSP3 instances in random spellings against brute force, and instances with a part that is unknown."""

from __future__ import annotations

import itertools
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from elimina import cp
from elimina.errors import EliminaError, InputError, UnsupportedError
from tests import calls
from tests.adversary.case import Case, Defect, Setting
from tests.reference import xcsp3 as reference

MOST_ASSIGNMENTS = 1500
RELATIONS = ("lt", "le", "ge", "gt", "eq", "ne")
ORDERS = RELATIONS[:4]
CELL_SIGNS = {"lt": "<", "le": "≤", "ge": "≥", "gt": ">", "eq": "=", "ne": "≠"}
BOOLEANS = ("b", "c")
X = ["x[0]", "x[1]", "x[2]"]
Y = [f"y[{i}][{j}]" for i in (1, 2) for j in (0, 1)]
"""An array whose rows are numbered from 1."""

NAMES = ("z", *BOOLEANS, *X, *Y)
PARTS = {
    "x[]": X, "x[0..1]": X[:2], "x[1..2]": X[1:],
    "y[][]": Y, "y[1][]": Y[:2], "y[2][]": Y[2:], "y[][1]": Y[1::2], "y[][0]": Y[::2], "y[1..2][0..1]": Y,
}  # fmt: skip
"""Parts of arrays -> their elements."""

Draw = Callable[[random.Random], dict[str, Any]]


def make(rng: random.Random, setting: Setting) -> Case:
    """Make a random instance, its spelling, and perhaps a part that no reader may ignore."""
    domains, total = {}, 1
    for name in NAMES:
        domain = _domain(rng, name)
        domains[name] = domain if total * len(domain) <= MOST_ASSIGNMENTS else domain[:1]
        total *= len(domains[name])
    # Intensions have far more forms than other kinds.
    kinds = [rng.choice([*sorted(DRAWS), *["intension"] * 3]) for _ in range(rng.choice([1, 1, 1, 2, 2, 3]))]
    return {
        "domains": domains,
        "constraints": [{"kind": kind, **DRAWS[kind](rng)} for kind in kinds],
        "objective": _objective(rng) if rng.random() < 0.3 else None,
        "what": rng.choice(["all", "all", "all", "to_model"]),
        "spelling": rng.randrange(10**6),
        "unread": rng.randrange(10**6) if rng.random() < 0.2 else None,
    }


def _domain(rng: random.Random, name: str) -> list[int]:
    if name in BOOLEANS:
        return [0, 1]
    if name.startswith("y"):
        return rng.choice([[0, 1], [0, 1], [0, 2], [1]])
    low = rng.choice([0, 0, 0, 1, -1])
    return sorted(rng.sample(range(low, low + 4), rng.choice([2, 3, 3] if name == "z" else [3, 4])))


def _items(rng: random.Random, least: int = 2, most: int = 4) -> list[Any]:
    """Draw variables, now and then an expression or a number among them."""
    if rng.random() < 0.5:
        part = rng.choice([names for names in PARTS.values() if least <= len(names) <= most])
        return list(part)
    return [_item(rng) for _ in range(rng.randint(least, most))]


def _item(rng: random.Random) -> Any:
    chance = rng.random()
    return rng.choice(NAMES) if chance < 0.85 else _integer(rng, 1) if chance < 0.95 else rng.randint(-1, 3)


def _variables(rng: random.Random, least: int = 2, most: int = 4) -> list[str]:
    return rng.sample(NAMES, rng.randint(least, most))


def _integer(rng: random.Random, depth: int) -> Any:
    if depth == 0:
        return rng.choice([*NAMES, rng.randint(-2, 3)])
    name = rng.choice(["neg", "abs", "sqr", "add", "sub", "mul", "div", "mod", "pow", "dist", "min", "max", "if"])
    first = _integer(rng, depth - 1)
    if name in ("neg", "abs", "sqr"):
        return [name, first]
    if name in ("div", "mod"):
        return [name, first, rng.choice([-3, -2, 2, 3])]
    if name == "pow":
        return [name, first, rng.randint(0, 3)]
    if name == "if":
        return [name, _truth(rng, depth - 1), first, _integer(rng, depth - 1)]
    count = 1 if name in ("sub", "dist") else rng.randint(1, 2)
    return [name, first, *(_integer(rng, depth - 1) for _ in range(count))]


def _truth(rng: random.Random, depth: int) -> Any:
    if depth == 0 and rng.random() < 0.3:
        return rng.choice(BOOLEANS)
    name = rng.choice([*RELATIONS, "in", "notin"] if depth == 0 else
                      [*RELATIONS, "not", "and", "or", "xor", "iff", "imp", "in", "notin"])  # fmt: skip
    below = max(depth - 1, 0)
    if name in RELATIONS:
        return [name, *(_integer(rng, below) for _ in range(rng.choice([2, 2, 3])))]
    if name in ("in", "notin"):
        members = [rng.choice([rng.randint(-1, 3), rng.randint(-1, 3), _integer(rng, 0)]) for _ in range(3)]
        return [name, _integer(rng, below), ["set", *members[: rng.randint(1, 3)]]]
    count = 1 if name == "not" else 2 if name == "imp" else rng.choice([2, 2, 3])
    return [name, *(_truth(rng, below) for _ in range(count))]


def _condition(rng: random.Random, low: int = -1, high: int = 5) -> list[Any]:
    name = rng.choice([*RELATIONS, "in", "notin"])
    if name in RELATIONS:
        return [name, rng.choice([rng.randint(low, high), rng.choice(NAMES), _integer(rng, 1)])]
    start = rng.randint(low, high)
    if rng.random() < 0.5:
        return [name, ["range", start, start + rng.randint(0, 3)]]
    return [name, ["set", *rng.sample(range(low - 1, high + 2), rng.randint(1, 3))]]


def _numbers(rng: random.Random, least: int = 1, most: int = 3) -> list[int]:
    return rng.sample(range(-1, 5), rng.randint(least, most))


def _maybe_numbers(rng: random.Random) -> list[int]:
    return _numbers(rng) if rng.random() < 0.5 else []


def _matrix(rng: random.Random) -> list[list[Any]]:
    if rng.random() < 0.4:
        return [Y[:2], Y[2:]]
    width = rng.randint(2, 3)
    return [[rng.choice([*NAMES, rng.randint(0, 3)]) for _ in range(width)] for _ in range(rng.randint(2, 3))]


def _coefficients(rng: random.Random, count: int) -> list[Any]:
    if rng.random() < 0.4:
        return []
    if rng.random() < 0.3:
        return [rng.choice([-1, 2, 3])] * count
    return [rng.choice([-2, -1, 0, 1, 2, 3, rng.choice(NAMES)]) for _ in range(count)]


def _weighted(rng: random.Random) -> dict[str, Any]:
    xs = _items(rng)
    return {"list": xs, "coeffs": _coefficients(rng, len(xs))}


def _cell(rng: random.Random, arity: int) -> list[Any]:
    chance = rng.random()
    if chance < 0.5:
        return ["eq", rng.randint(-1, 4), []]
    if chance < 0.65:
        return ["any"]
    if chance < 0.8:
        start = rng.randint(-1, 3)
        numbers = list(range(start, start + 3)) if rng.random() < 0.5 else sorted(_numbers(rng))
        return [rng.choice(["in", "notin"]), numbers]
    columns = [[rng.randrange(arity), 1]] if rng.random() < 0.6 else []
    if columns and rng.random() < 0.3:
        columns.append([rng.randrange(arity), rng.choice([1, -1])])
    constant = 0 if len(columns) == 2 else rng.randint(-1, 3)
    return [rng.choice(RELATIONS), constant, columns]


def _extension(rng: random.Random) -> dict[str, Any]:
    xs = _variables(rng, 1, 4)
    plain = rng.random() < 0.4
    rows = [
        [["eq", rng.randint(0, 3), []] if plain else _cell(rng, len(xs)) for _ in xs]
        for _ in range(rng.choice([0, 1, 2, 3, 5, 8]))
    ]
    if len(xs) == 1:
        rows = [row for row in rows if row[0][0] != "any" and not (len(row[0]) > 2 and row[0][2])]
    return {"list": xs, "rows": rows, "positive": rng.random() < 0.6}


def _all_different(rng: random.Random) -> dict[str, Any]:
    form = rng.choice(["list", "list", "lists", "matrix"])
    if form == "list":
        return {"list": _items(rng), "except": _maybe_numbers(rng)}
    if form == "matrix":
        return {"matrix": _matrix(rng), "except": _maybe_numbers(rng)}
    width = rng.randint(2, 3)
    lists = [[_item(rng) for _ in range(width)] for _ in range(rng.randint(2, 3))]
    return {"lists": lists, "except": [[rng.randint(0, 2) for _ in range(width)] for _ in range(rng.choice([0, 1, 2]))]}


def _ordered(rng: random.Random) -> dict[str, Any]:
    xs = _items(rng)
    lengths = [rng.choice([0, 1, -1, rng.choice(NAMES)]) for _ in xs[1:]] if rng.random() < 0.5 else []
    return {"list": xs, "lengths": lengths, "operator": rng.choice(ORDERS)}


def _lex(rng: random.Random) -> dict[str, Any]:
    return {"lists": _matrix(rng), "matrix": rng.random() < 0.4, "operator": rng.choice(ORDERS)}


def _precedence(rng: random.Random) -> dict[str, Any]:
    values = _numbers(rng, 2, 3) if rng.random() < 0.7 else None
    return {"list": _variables(rng, 2, 5), "values": values, "covered": values is not None and rng.random() < 0.3}


def _count(rng: random.Random) -> dict[str, Any]:
    values = _numbers(rng) if rng.random() < 0.7 else [_item(rng) for _ in range(rng.randint(1, 2))]
    return {"list": _items(rng), "values": values, "condition": _condition(rng, 0, 3)}


def _cardinality(rng: random.Random) -> dict[str, Any]:
    values: list[Any] = _numbers(rng) if rng.random() < 0.7 else _variables(rng, 1, 2)
    occurs = []
    for _ in values:
        low = rng.randint(0, 2)
        occurs.append(rng.choice([low, ["range", low, low + rng.randint(0, 2)], rng.choice(NAMES)]))
    return {"list": _variables(rng, 2, 5), "values": values, "occurs": occurs, "closed": rng.random() < 0.3}


def _rank(rng: random.Random) -> str:
    return rng.choice(["any", "any", "first", "last"])


def _extreme(rng: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {"list": _items(rng), "condition": _condition(rng)}
    if rng.random() < 0.4:
        found |= {"index": rng.choice(NAMES), "start": rng.choice([0, 0, 1, -1]), "rank": _rank(rng)}
        found["condition"] = rng.choice([None, found["condition"]])
    return found


def _extreme_place(rng: random.Random) -> dict[str, Any]:
    start = rng.choice([0, 0, 1])
    return {"list": _items(rng), "start": start, "rank": _rank(rng), "condition": _condition(rng, 0, 3)}


def _element(rng: random.Random) -> dict[str, Any]:
    condition = ["eq", _item(rng)] if rng.random() < 0.5 else _condition(rng, 0, 3)
    if rng.random() < 0.3:
        return {
            "matrix": _matrix(rng),
            "index": _variables(rng, 2, 2),
            "starts": [rng.choice([0, 0, 1]) for _ in "rc"],
            "condition": condition,
        }
    index = rng.choice([None, rng.choice(NAMES), rng.choice(NAMES)])
    return {
        "list": _items(rng),
        "index": index,
        "start": 0 if index is None else rng.choice([0, 0, 1, -1]),
        "rank": "any" if index is None else _rank(rng),
        "condition": condition,
    }


def _channel(rng: random.Random) -> dict[str, Any]:
    form = rng.choice(["one", "two", "two", "value"])
    if form == "one":
        return {"lists": [_variables(rng, 2, 3)], "starts": [rng.choice([0, 0, 1])]}
    if form == "value":
        xs = [rng.choice(BOOLEANS), rng.choice([*BOOLEANS, 0]), 1][: rng.randint(2, 3)]
        return {"lists": [xs], "starts": [rng.choice([0, 1])], "value": rng.choice(["z", "x[1]"])}
    names = _variables(rng, 5, 6)
    size = rng.randint(1, 3)
    longer = size + rng.choice([0, 0, 1])
    return {
        "lists": [names[:size], names[-longer:] if longer + size <= len(names) else names[-size:]],
        "starts": [rng.choice([0, 0, 1]) for _ in "xy"],
    }


def _automaton(rng: random.Random) -> dict[str, Any]:
    states = ["s0", "s1", "s2"]
    moves = [[rng.choice(states), rng.randint(0, 3), rng.choice(states)] for _ in range(rng.randint(3, 12))]
    return {"list": _variables(rng), "transitions": moves, "start": moves[0][0], "final": rng.sample(states, 2)}


def _diagram(rng: random.Random) -> dict[str, Any]:
    xs = _variables(rng, 2, 3)
    layers = [["r"], *([f"n{i}a", f"n{i}b"] for i in range(1, len(xs))), ["t"]]
    moves = [["r", rng.randint(0, 2), "n1a"]]
    for here, after in itertools.pairwise(layers):
        reached = [node for node in here if any(node == target for _, _, target in moves) or node == "r"]
        for node in reached:
            moves += [[node, rng.randint(0, 3), rng.choice(after)] for _ in range(rng.randint(1, 4))]
    return {"list": xs, "transitions": moves, "start": "r", "final": ["t"]}


def _circuit(rng: random.Random) -> dict[str, Any]:
    xs = rng.choice([X, rng.sample([*X, "z"], 4), _variables(rng, 2, 4)])
    size = rng.choice([None, None, 2, 3, rng.choice(NAMES)])
    return {"list": list(xs), "start": rng.choice([0, 0, 0, 1]), "size": size}


def _flow(rng: random.Random) -> dict[str, Any]:
    arcs = [list(arc) for arc in rng.sample(list(itertools.permutations(range(3), 2)), rng.randint(2, 4))]
    nodes = {node for arc in arcs for node in arc}
    weights = [rng.randint(-1, 3) for _ in arcs] if rng.random() < 0.5 else []
    return {
        "list": _variables(rng, len(arcs), len(arcs)),
        "arcs": arcs,
        "balance": [rng.choice([0, 0, 0, rng.choice([1, -1]), rng.choice(NAMES)]) for _ in nodes],
        "weights": weights,
        "condition": _condition(rng),
    }


def _no_overlap(rng: random.Random) -> dict[str, Any]:
    dimensions, count = rng.choice([1, 1, 2, 3]), rng.randint(2, 3)
    return {
        "origins": [[rng.choice([*NAMES, 0, 2]) for _ in range(dimensions)] for _ in range(count)],
        "lengths": [[rng.choice([0, 1, 2, rng.choice(BOOLEANS)]) for _ in range(dimensions)] for _ in range(count)],
        "zeroIgnored": rng.random() < 0.6,
    }


def _cumulative(rng: random.Random) -> dict[str, Any]:
    count = rng.randint(1, 3)
    sizes = [[rng.choice([0, 1, 2, 3, rng.choice(BOOLEANS)]) for _ in range(count)] for _ in "lh"]
    return {
        "origins": _variables(rng, count, count),
        "lengths": sizes[0],
        "heights": sizes[1],
        "ends": _variables(rng, count, count) if rng.random() < 0.3 else [],
        "condition": [rng.choice(["le", "lt"]), rng.choice([1, 2, 3, "b", "y[2][1]", ["add", "b", 1]])],
    }


def _clause(rng: random.Random) -> dict[str, Any]:
    return {"literals": [[rng.choice(BOOLEANS), rng.random() < 0.5] for _ in range(rng.randint(1, 3))]}


def _bin_packing(rng: random.Random) -> dict[str, Any]:
    xs = _variables(rng, 2, 4)
    found: dict[str, Any] = {"list": xs, "sizes": [rng.randint(0, 3) for _ in xs], "condition": None}
    form = rng.choice(["condition", "limits", "loads"])
    if form == "condition":
        found["condition"] = [rng.choice(["le", "lt"]), rng.choice([1, 3, 4, ["add", "b", 1]])]
    else:
        found[form] = [rng.choice([0, 1, 3, 4, rng.choice(NAMES)]) for _ in range(rng.randint(2, 4))]
    return found


def _knapsack(rng: random.Random) -> dict[str, Any]:
    xs = _variables(rng)
    return {
        "list": xs,
        "weights": [rng.randint(0, 3) for _ in xs],
        "profits": [rng.randint(0, 3) for _ in xs],
        "conditions": [_condition(rng), _condition(rng)],
    }


DRAWS: dict[str, Draw] = {
    "intension": lambda rng: {"function": _truth(rng, 2)},
    "extension": _extension,
    "allDifferent": _all_different,
    "allEqual": lambda rng: {"list": _items(rng), "except": _maybe_numbers(rng)},
    "ordered": _ordered,
    "lex": _lex,
    "precedence": _precedence,
    "sum": lambda rng: {**_weighted(rng), "condition": _condition(rng)},
    "count": _count,
    "nValues": lambda rng: {"list": _items(rng), "except": _maybe_numbers(rng), "condition": _condition(rng, 1, 3)},
    "cardinality": _cardinality,
    "minimum": _extreme,
    "maximum": _extreme,
    "minimumArg": _extreme_place,
    "maximumArg": _extreme_place,
    "element": _element,
    "channel": _channel,
    "instantiation": lambda rng: {"list": (xs := _variables(rng)), "values": [rng.randint(0, 2) for _ in xs]},
    "regular": _automaton,
    "mdd": _diagram,
    "circuit": _circuit,
    "flow": _flow,
    "noOverlap": _no_overlap,
    "cumulative": _cumulative,
    "clause": _clause,
    "binPacking": _bin_packing,
    "knapsack": _knapsack,
}
"""Constraint -> a random description of it."""


def _objective(rng: random.Random) -> dict[str, Any]:
    kind = rng.choice(["expression", "sum", "product", "minimum", "maximum", "nValues"])
    goal = {"goal": rng.choice(["minimize", "maximize"]), "type": kind}
    return {**goal, "expression": _integer(rng, 2)} if kind == "expression" else {**goal, **_weighted(rng)}


class _Writer:
    """The XML of an instance, in a random spelling."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.is_template = False

    def pick(self, *options: str) -> str:
        return self.rng.choice(options)

    def expression(self, content: Any) -> str:
        """Write an expression."""
        if not isinstance(content, list):
            return str(content)
        comma = self.pick(",", ",", ", ")
        return f"{content[0]}({comma.join(map(self.expression, content[1:]))})"

    def items(self, items: Sequence[Any]) -> str:
        """Write a list, with parts of arrays, ranges and repetitions."""
        texts, at = [], 0
        while at < len(items):
            parts = [p for p, names in PARTS.items() if list(names) == list(items[at : at + len(names)])]
            run = next(i for i in itertools.count(at) if i == len(items) or items[i] != items[at])
            if parts and not self.is_template and self.rng.random() < 0.6:
                part = self.rng.choice(parts)
                texts.append(part)
                at += len(PARTS[part])
            elif isinstance(items[at], int) and run - at > 1 and self.rng.random() < 0.7:
                texts.append(f"{items[at]}x{run - at}")
                at = run
            else:
                texts.append(self.expression(items[at]).replace(" ", self.pick("", " ")))
                at += 1
        return self.pick(" ", "", "\n") + self.pick(" ", "  ", "\n ").join(texts) + self.pick(" ", "")

    def tuples(self, rows: Sequence[Sequence[Any]]) -> str:
        """Write tuples."""
        return self.pick("", " ").join("(" + ",".join(map(self.expression, row)) + ")" for row in rows)

    def matrix(self, rows: Sequence[Sequence[Any]]) -> str:
        """Write a matrix."""
        if not self.is_template and list(itertools.chain(*rows)) == Y and self.rng.random() < 0.7:
            return self.pick("y[][]", "y[1..2][0..1]", " y[][] ")
        return self.tuples(rows)

    def condition(self, condition: Sequence[Any], tag: str = "condition") -> str:
        """Write a condition."""
        name, right = condition
        if name not in RELATIONS:
            text = f"{right[1]}..{right[2]}" if right[0] == "range" else "{" + ",".join(map(str, right[1:])) + "}"
        else:
            text = self.expression(right)
        space = self.pick("", " ")
        return f"<{tag}>{space}({name},{text}){space}</{tag}>"

    def element(self, tag: str, text: str, **attributes: Any) -> str:
        """Write an element; attributes that are None are left out."""
        given = "".join(f' {name}="{value}"' for name, value in attributes.items() if value is not None)
        return f"<{tag}{given}>{text}</{tag}>"

    def list(self, items: Sequence[Any], can_stand_alone: bool = False, **attributes: Any) -> str:
        """Write a list as an element, or as it is where it may stand alone."""
        text = self.items(items)
        alone = can_stand_alone and self.rng.random() < 0.5
        return text if alone else self.element("list", text, **attributes)

    def constraint(self, c: dict[str, Any]) -> str:
        """Write a constraint."""
        body, attributes = _BODIES[c["kind"]](self, c), {}
        if c["kind"].endswith("Arg"):
            attributes["rank"] = self.default(c["rank"], "any")
        if c["kind"] == "noOverlap":
            attributes["zeroIgnored"] = self.default(str(c["zeroIgnored"]).lower(), "true")
        if c["kind"] == "extension" and not _is_plain(c):
            attributes["type"] = self.pick("hybrid", "hybrid-1", "hybrid-2")
        noise = {"id": f"k{self.rng.randrange(10**6)}", "class": "symmetry-breaking", "note": "a note"}
        attributes |= {name: text for name, text in noise.items() if self.rng.random() < 0.1}
        return self.element(c["kind"], body, **attributes)

    def default(self, text: Any, usual: Any) -> Any:
        """Return the value of an attribute, or None where it may be left out."""
        return None if text == usual and self.rng.random() < 0.5 else text

    def listed(self, c: dict[str, Any], *children: str, start: str | None = None) -> str:
        """Write a list and other children in any order."""
        content = [self.list(c["list"], not any(children) and start is None, startIndex=start), *filter(None, children)]
        return "".join(content)

    def exceptions(self, numbers: Sequence[Any]) -> str:
        """Write values that are exceptions."""
        return self.element("except", " ".join(map(str, numbers))) if numbers else ""

    def cell(self, cell: Sequence[Any]) -> str:
        """Write a cell of a table."""
        kind, *rest = cell
        if kind == "any":
            return "*"
        if kind in ("in", "notin"):
            numbers = rest[0]
            is_range = numbers == list(range(numbers[0], numbers[-1] + 1)) and self.rng.random() < 0.6
            text = f"{numbers[0]}..{numbers[-1]}" if is_range else "{" + ",".join(map(str, numbers)) + "}"
            return ("∁" if kind == "notin" else "") + text
        constant, columns = rest
        if not columns:
            return str(constant) if kind == "eq" and self.rng.random() < 0.7 else f"{CELL_SIGNS[kind]}{constant}"
        text = "".join(f"{'+' if sign > 0 else '-'}c{column}" for column, sign in columns).removeprefix("+")
        text += f"{constant:+d}" if constant else ""
        return text if kind == "eq" and self.rng.random() < 0.3 else CELL_SIGNS[kind] + text

    def group(self, c: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
        """Write a constraint as a group with two lists of arguments; return what it stands for, too."""
        names = [name for name in NAMES if name in _names(c)]
        booleans = [name for name in names if name in BOOLEANS or name.startswith("y[1]")]
        others = [name for name in names if name not in booleans]
        mapping = dict(zip(others, self.rng.sample([n for n in NAMES if n not in BOOLEANS], len(others)), strict=True))
        mapping |= {name: name for name in booleans}
        if len(set(mapping.values())) < len(mapping):
            mapping = {name: name for name in names}
        self.is_template = True
        template = self.constraint(reference.renamed(c, {name: f"%{i}" for i, name in enumerate(names)}))
        self.is_template = False
        args = [self.element("args", self.items(names)), self.element("args", self.items([mapping[n] for n in names]))]
        return self.element("group", template + "".join(args)), [c, reference.renamed(c, mapping)]

    def rest(self, c: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
        """Write a constraint as a group whose list is ``%...``."""
        head = []
        template = {**c, "list": ["%..."]}
        if c["condition"] and c["condition"][1] in NAMES:
            head, template["condition"] = [c["condition"][1]], [c["condition"][0], "%0"]
        self.is_template = True
        text = self.constraint(template)
        self.is_template = False
        return self.element("group", text + self.element("args", self.items([*head, *c["list"]]))), [c]

    def slide(self) -> tuple[str, list[dict[str, Any]]]:
        """Write a slide over one or two lists; return what it stands for, too."""
        rng, constraints = self.rng, []
        count = rng.choice([1, 1, 2])
        offsets = [rng.randint(1, 2) for _ in range(count)]
        if count == 1:
            lists, collects, is_circular = [_variables(rng, 3, 5)], [rng.randint(2, 3)], rng.random() < 0.3
        else:
            # The first list tells how many windows there are; the other one may be longer than they need.
            collects, windows, is_circular = [rng.randint(1, 2) for _ in offsets], rng.randint(1, 3), False
            sizes = [(windows - 1) * step + size for size, step in zip(collects, offsets, strict=True)]
            lists = [rng.sample(NAMES, sizes[0]), rng.sample(NAMES, sizes[1] + rng.randint(0, 1))]
        width = sum(collects)
        function = ["le", ["add", *(f"%{i}" for i in range(width))], rng.randint(1, 4)]
        places = range(0, len(lists[0]) if is_circular else len(lists[0]) - collects[0] + 1, offsets[0])
        for turn in range(len(places)):
            window = [
                xs[(turn * step + i) % len(xs)]
                for xs, size, step in zip(lists, collects, offsets, strict=True)
                for i in range(size)
            ]
            mapping = {f"%{i}": name for i, name in enumerate(window)}
            constraints.append({"kind": "intension", "function": reference.renamed(function, mapping)})
        texts = [
            self.element("list", self.items(xs), offset=self.default(step, 1), collect=size if count == 2 else None)
            for xs, size, step in zip(lists, collects, offsets, strict=True)
        ]
        circular = self.default(str(is_circular).lower(), "false")
        body = "".join(texts) + self.element("intension", self.expression(function))
        return self.element("slide", body, circular=circular), constraints


def _is_plain(c: dict[str, Any]) -> bool:
    return all(cell == ["any"] or (cell[0] == "eq" and not cell[2]) for row in c["rows"] for cell in row)


def _names(content: Any) -> set[str]:
    if isinstance(content, str):
        return {content} & set(NAMES)
    parts = content.values() if isinstance(content, dict) else content if isinstance(content, list) else ()
    return set().union(*map(_names, parts))


def _write_extension(w: _Writer, c: dict[str, Any]) -> str:
    rows = [[w.cell(cell) for cell in row] for row in c["rows"]]
    unary = len(c["list"]) == 1 and _is_plain(c) and w.rng.random() < 0.7
    text = " ".join(row[0] for row in rows) if unary else "".join("(" + ",".join(row) + ")" for row in rows)
    text = text.replace("<", "&lt;").replace(">", "&gt;")
    return w.list(c["list"]) + w.element("supports" if c["positive"] else "conflicts", text)


def _write_all_different(w: _Writer, c: dict[str, Any]) -> str:
    if "lists" in c:
        exceptions = w.element("except", w.tuples(c["except"])) if c["except"] else ""
        return "".join(map(w.list, c["lists"])) + exceptions
    if "matrix" in c:
        return w.element("matrix", w.matrix(c["matrix"])) + w.exceptions(c["except"])
    return w.listed(c, w.exceptions(c["except"]))


def _write_lex(w: _Writer, c: dict[str, Any]) -> str:
    rows = w.element("matrix", w.matrix(c["lists"])) if c["matrix"] else "".join(map(w.list, c["lists"]))
    return rows + w.element("operator", w.pick("", " ") + c["operator"])


def _write_coefficients(w: _Writer, c: dict[str, Any]) -> str:
    return w.element("coeffs", w.items(c["coeffs"])) if c["coeffs"] else ""


def _write_ordered(w: _Writer, c: dict[str, Any]) -> str:
    lengths = w.element("lengths", w.items(c["lengths"])) if c["lengths"] else ""
    return w.listed(c, lengths, w.element("operator", f" {c['operator']} "))


def _write_precedence(w: _Writer, c: dict[str, Any]) -> str:
    covered = w.default(str(c["covered"]).lower(), "false")
    values = "" if c["values"] is None else w.element("values", " ".join(map(str, c["values"])), covered=covered)
    return w.listed(c, values)


def _write_cardinality(w: _Writer, c: dict[str, Any]) -> str:
    occurs = " ".join(f"{n[1]}..{n[2]}" if isinstance(n, list) else str(n) for n in c["occurs"])
    closed = w.default(str(c["closed"]).lower(), "false")
    return w.listed(c, w.element("values", w.items(c["values"]), closed=closed), w.element("occurs", occurs))


def _write_extreme(w: _Writer, c: dict[str, Any]) -> str:
    condition = w.condition(c["condition"]) if c["condition"] else ""
    if "index" not in c:
        return w.listed(c, condition)
    index = w.element("index", w.expression(c["index"]), rank=w.default(c["rank"], "any"))
    return w.list(c["list"], startIndex=w.default(c["start"], 0)) + index + condition


def _write_element(w: _Writer, c: dict[str, Any]) -> str:
    is_value = c["condition"][0] == "eq" and w.rng.random() < 0.6
    right = w.element("value", w.expression(c["condition"][1])) if is_value else w.condition(c["condition"])
    if "matrix" in c:
        starts = {"startRowIndex": w.default(c["starts"][0], 0), "startColIndex": w.default(c["starts"][1], 0)}
        return w.element("matrix", w.matrix(c["matrix"]), **starts) + w.element("index", w.items(c["index"])) + right
    if c["index"] is None:
        return w.list(c["list"]) + right
    index = w.element("index", w.expression(c["index"]), rank=w.default(c["rank"], "any"))
    return w.list(c["list"], startIndex=w.default(c["start"], 0)) + index + right


def _write_channel(w: _Writer, c: dict[str, Any]) -> str:
    if len(c["lists"]) == 1 and "value" not in c and c["starts"] == [0]:
        return w.list(c["lists"][0], True)
    starts = [w.default(start, 0) for start in c["starts"]]
    lists = "".join(w.list(xs, startIndex=start) for xs, start in zip(c["lists"], starts, strict=True))
    return lists + (w.element("value", c["value"]) if "value" in c else "")


def _write_automaton(w: _Writer, c: dict[str, Any]) -> str:
    ends = w.element("start", c["start"]) + w.element("final", " ".join(c["final"])) if c["kind"] == "regular" else ""
    return w.list(c["list"]) + w.element("transitions", w.tuples(c["transitions"])) + ends


def _write_circuit(w: _Writer, c: dict[str, Any]) -> str:
    size = w.element("size", str(c["size"])) if c["size"] is not None else ""
    return w.list(c["list"], c["start"] == 0 and not size, startIndex=w.default(c["start"], 0)) + size


def _write_flow(w: _Writer, c: dict[str, Any]) -> str:
    text = w.list(c["list"]) + w.element("balance", w.items(c["balance"])) + w.element("arcs", w.tuples(c["arcs"]))
    return text + (w.element("weights", w.items(c["weights"])) + w.condition(c["condition"]) if c["weights"] else "")


def _write_no_overlap(w: _Writer, c: dict[str, Any]) -> str:
    texts = []
    for name in ("origins", "lengths"):
        is_line = len(c[name][0]) == 1
        texts.append(w.element(name, w.items([row[0] for row in c[name]]) if is_line else w.tuples(c[name])))
    return "".join(texts)


def _write_cumulative(w: _Writer, c: dict[str, Any]) -> str:
    names = [name for name in ("origins", "lengths", "ends", "heights") if c[name]]
    return "".join(w.element(name, w.items(c[name])) for name in names) + w.condition(c["condition"])


def _write_clause(w: _Writer, c: dict[str, Any]) -> str:
    text = " ".join(f"not({name})" if is_negative else name for name, is_negative in c["literals"])
    return text if w.rng.random() < 0.5 else w.element("list", text)


def _write_bin_packing(w: _Writer, c: dict[str, Any]) -> str:
    text = w.list(c["list"]) + w.element("sizes", " ".join(map(str, c["sizes"])))
    if c["condition"] is not None:
        return text + w.condition(c["condition"])
    name = "limits" if "limits" in c else "loads"
    return text + w.element(name, w.items(c[name]))


def _write_knapsack(w: _Writer, c: dict[str, Any]) -> str:
    weight, profit = c["conditions"]
    is_limit = weight[0] == "le" and w.rng.random() < 0.6
    parts = [
        w.element("weights", w.items(c["weights"])),
        w.element("limit", w.expression(weight[1])) if is_limit else w.condition(weight),
        w.element("profits", w.items(c["profits"])),
        w.condition(profit),
    ]
    return w.list(c["list"]) + "".join(parts)


def _write_listed_with_exceptions(w: _Writer, c: dict[str, Any]) -> str:
    return w.listed(c, w.exceptions(c["except"]), w.condition(c["condition"]) if "condition" in c else "")


_BODIES: dict[str, Callable[[_Writer, dict[str, Any]], str]] = {
    "intension": lambda w, c: (
        w.expression(c["function"]) if w.rng.random() < 0.7 else w.element("function", w.expression(c["function"]))
    ),
    "extension": _write_extension,
    "allDifferent": _write_all_different,
    "allEqual": _write_listed_with_exceptions,
    "ordered": _write_ordered,
    "lex": _write_lex,
    "precedence": _write_precedence,
    "sum": lambda w, c: w.listed(c, _write_coefficients(w, c), w.condition(c["condition"])),
    "count": lambda w, c: w.listed(c, w.element("values", w.items(c["values"])), w.condition(c["condition"])),
    "nValues": _write_listed_with_exceptions,
    "cardinality": _write_cardinality,
    "minimum": _write_extreme,
    "maximum": _write_extreme,
    "minimumArg": lambda w, c: w.list(c["list"], startIndex=w.default(c["start"], 0)) + w.condition(c["condition"]),
    "maximumArg": lambda w, c: w.list(c["list"], startIndex=w.default(c["start"], 0)) + w.condition(c["condition"]),
    "element": _write_element,
    "channel": _write_channel,
    "instantiation": lambda w, c: w.list(c["list"]) + w.element("values", w.items(c["values"])),
    "regular": _write_automaton,
    "mdd": _write_automaton,
    "circuit": _write_circuit,
    "flow": _write_flow,
    "noOverlap": _write_no_overlap,
    "cumulative": _write_cumulative,
    "clause": _write_clause,
    "binPacking": _write_bin_packing,
    "knapsack": _write_knapsack,
}


def _write_domain(w: _Writer, domain: Sequence[int]) -> str:
    if list(domain) == list(range(domain[0], domain[-1] + 1)) and len(domain) > 1 and w.rng.random() < 0.7:
        return f"{domain[0]}..{domain[-1]}"
    return w.pick(" ", "") + " ".join(map(str, domain))


def _write_array(w: _Writer, name: str, names: Sequence[str], size: str, start: str | None, domains: Any) -> str:
    attributes = {"id": name, "size": size, "startIndex": start}
    texts = {n: _write_domain(w, domains[n]) for n in names}
    if all(domains[n] == domains[names[0]] for n in names) and w.rng.random() < 0.7:
        return w.element("array", texts[names[0]], **attributes)
    parts = [w.element("domain", texts[n], **{"for": n}) for n in names[:-1]]
    parts.append(w.element("domain", texts[names[-1]], **{"for": w.pick("others", names[-1])}))
    if w.rng.random() < 0.2:  # a domain of no elements
        parts.append(w.element("domain", "7..9", **{"for": "others"}))
    return w.element("array", "".join(parts), **attributes)


def text_of(case: Case) -> tuple[str, list[dict[str, Any]]]:
    """Return an instance and the constraints that it stands for."""
    w = _Writer(random.Random(case["spelling"]))
    domains, constraints, texts = case["domains"], [], []
    for c in case["constraints"]:
        chance = w.rng.random()
        text, meant = w.constraint(c), [c]
        if chance < 0.2:
            text, meant = w.group(c)
        elif chance < 0.3 and c["kind"] in ("sum", "count", "nValues", "minimum"):
            text, meant = w.rest(c)
        elif chance < 0.35:
            more, slid = w.slide()
            text, meant = text + more, [c, *slid]
        texts.append(w.element("block", text) if w.rng.random() < 0.1 else text)
        constraints += meant
    variables = [
        _write_array(w, "x", X, "[3]", None, domains),
        _write_array(w, "y", Y, "[2][2]", "[1][0]", domains),
        w.element("var", _write_domain(w, domains["z"]), id="z"),
        w.element("var", "0 1", id="b"),
        '<var id="c" as="b"/>' if w.rng.random() < 0.5 else w.element("var", "0..1", id="c"),
    ]
    text = w.element("variables", "\n".join(variables)) + w.element("constraints", "\n".join(texts))
    objective = case["objective"]
    if objective is not None:
        is_expression = objective["type"] == "expression"
        kind = w.default(objective["type"], "expression")
        body = (
            w.expression(objective["expression"])
            if is_expression
            else w.listed(objective, _write_coefficients(w, objective))
        )
        text += w.element("objectives", w.element(objective["goal"], body, type=kind))
    if w.rng.random() < 0.1:
        text += "<annotations><decision> x[] </decision></annotations>"
    kind = "CSP" if objective is None else "COP"
    return w.element("instance", text, format="XCSP3", type=kind), constraints


def _with_unread_part(text: str, seed: int) -> str:
    """Return an instance with another attribute, child or text at a random place."""
    rng, root = random.Random(seed), ElementTree.fromstring(text)
    advice = {element for section in root.iter("annotations") for element in section.iter()}
    element = rng.choice([element for element in root.iter() if element not in advice])
    change = rng.choice(["attribute", "child", "text"] if len(element) else ["attribute", "child"])
    if change == "attribute":
        element.set(rng.choice(["reifiedBy", "hreifiedFrom", "violable", "unknown"]), "b")
    elif change == "text":
        element.text = (element.text or "") + " surplus "
    else:
        element.insert(rng.randint(0, len(element)), ElementTree.Element(rng.choice(["unknown", "cost"])))
    return ElementTree.tostring(root, "unicode")


def check(case: Case) -> None:
    """Write the instance, read it, solve it and compare."""
    text, constraints = text_of(case)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "instance.xml"
        if case["unread"] is not None:
            path.write_text(_with_unread_part(text, case["unread"]))
            _check_refusal(path)
            return
        path.write_text(text)
        try:
            model = cp.read(path)
        except EliminaError as error:
            raise Defect(f"refused: {error}\n{text}") from None
    try:
        _compare(case, model, constraints)
    except Defect as error:
        raise Defect(f"{error}\n{text}") from None


def _check_refusal(path: Path) -> None:
    try:
        cp.read(path)
    except (InputError, UnsupportedError) as error:
        if not str(error).startswith(str(path)) or "\n" in str(error):
            raise Defect(f"an error that does not name the file in one line: {error}") from None
        return
    raise Defect(f"read with a part that is unknown\n{path.read_text()}")


def _compare(case: Case, model: cp.Model, constraints: Sequence[dict[str, Any]]) -> None:
    domains = case["domains"]
    expected = list(reference.solutions(domains, [_with_values(c, domains) for c in constraints]))
    objective = case["objective"]
    worths = [] if objective is None else [reference.worth(objective, values) for values in expected]
    best = None if not worths else min(worths) if objective["goal"] == "minimize" else max(worths)
    if case["what"] == "to_model":
        _compare_bridge(model, len(expected), best)
        return
    result = calls.search(model, all_solutions=True)
    if (result.status == "infeasible") != (not expected):
        raise Defect(f"{result.status}, with {len(expected)} solutions")
    answers = [{name: solution[name] for name in NAMES} for solution in result.solutions]
    for values in answers:
        if values not in expected:
            raise Defect(f"{values} is not a solution")
    if best is not None:
        if result.value != best or reference.worth(objective, answers[-1]) != best:
            raise Defect(f"the optimum is {result.value}, not {best}")
    elif objective is None and len(answers) != len(expected):
        missing = next((values for values in expected if values not in answers), None)
        raise Defect(f"{len(answers)} solutions, not {len(expected)}; {missing} is missing")


def _with_values(c: dict[str, Any], domains: dict[str, list[int]]) -> dict[str, Any]:
    """Return a constraint; the values of a precedence that lists none are all those of its variables."""
    if c["kind"] != "precedence" or c["values"] is not None:
        return c
    return {**c, "values": sorted(set().union(*(domains[name] for name in c["list"])))}


def _compare_bridge(model: cp.Model, count: int, best: int | None) -> None:
    try:
        graphical = model.to_model()
    except InputError as error:
        if "tuples" in str(error) or "values" in str(error):
            return
        raise
    result = calls.solve(graphical, threads=1, device="cpu")
    if (result.status == "infeasible") != (not count):
        raise Defect(f"the graphical model is {result.status}, with {count} solutions")
    if best is not None and result.value != best:
        raise Defect(f"the optimum of the graphical model is {result.value}, not {best}")
    total = calls.solve(graphical, "count", threads=1, device="cpu").value
    if (total or 0) != count:
        raise Defect(f"the graphical model has {total} solutions, not {count}")


def smaller(case: Case) -> Iterator[Case]:
    """Yield simpler instances and spellings."""
    for i in range(len(case["constraints"])):
        yield {**case, "constraints": case["constraints"][:i] + case["constraints"][i + 1 :]}
    if case["objective"] is not None:
        yield {**case, "objective": None}
    if case["what"] != "all":
        yield {**case, "what": "all"}
    for name, domain in case["domains"].items():
        if len(domain) > 1 and name not in BOOLEANS:
            yield {**case, "domains": {**case["domains"], name: domain[:1]}}
    yield from ({**case, "spelling": spelling} for spelling in range(min(case["spelling"], 20)))


def script(case: Case) -> str:
    """Return a program that writes it and solves it."""
    return f"from tests.adversary.xcsp import check, text_of\ncase = {case!r}\nprint(text_of(case)[0])\ncheck(case)"
