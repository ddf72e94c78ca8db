"""FlatZinc by its words: a plain reader, what each constraint means, and every assignment looked at.

It shares nothing with the solver. `reveal` makes each variable an output, so that `violated` can check a solution.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Values = dict[str, Any]

_TOKEN = re.compile(
    r"""\s+ | %[^\n]* | (?P<string>"[^"]*") | (?P<float>-?\d+(?:\.\d+(?:[eE][-+]?\d+)?|[eE][-+]?\d+))
    | (?P<int>-?(?:0x[0-9a-fA-F]+|0o[0-7]+|\d+)) | (?P<name>[A-Za-z_]\w*) | (?P<sign>\.\.|::|[\[\](){},;:=])""",
    re.X,
)


@dataclass(frozen=True)
class Name:
    text: str


@dataclass
class Variable:
    kind: str  # bool or int
    domain: range | frozenset[int] | None
    value: Any = None


@dataclass
class Model:
    variables: dict[str, Variable] = field(default_factory=dict)
    constants: Values = field(default_factory=dict)
    constraints: list[tuple[str, list[Any]]] = field(default_factory=list)
    goal: tuple[str, Any] = ("satisfy", None)


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens = [(m.lastgroup, m.group()) for m in _TOKEN.finditer(text) if m.lastgroup]
        self.at = 0
        self.model = Model()

    def peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def take(self, expected: str | None = None) -> str:
        kind_text = self.tokens[self.at]
        assert expected is None or kind_text[1] == expected, (expected, kind_text, self.at)
        self.at += 1
        return kind_text[1]

    def accept(self, text: str) -> bool:
        if self.peek() != text:
            return False
        self.at += 1
        return True

    def expression(self) -> Any:
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind == "int":
            value = int(text, 0)
            return range(value, int(self.take(), 0) + 1) if self.accept("..") else value
        if kind == "float":
            return float(text)
        if kind == "string":
            return text
        if text == "[":
            return self.items("]")
        if text == "{":
            return frozenset(self.items("}"))
        if text in ("true", "false"):
            return text == "true"
        if self.accept("("):
            return (text, self.items(")"))
        if self.accept("["):
            index = int(self.take())
            self.take("]")
            return self.model.constants[text][index - 1]
        return Name(text)

    def items(self, close: str) -> list[Any]:
        result = []
        while not self.accept(close):
            result.append(self.expression())
            self.accept(",")
        return result

    def annotations(self) -> None:
        while self.accept("::"):
            self.expression()

    def type(self) -> tuple[str, Any]:
        if self.accept("set"):
            self.take("of")
            return "set", self.type()[1]
        if self.peek() in ("bool", "int", "float"):
            return self.take(), None
        return "int", self.expression()

    def item(self) -> None:
        if self.accept("predicate"):
            while self.peek() != ";":
                self.at += 1
        elif self.accept("constraint"):
            self.model.constraints.append(self.expression())
            self.annotations()
        elif self.accept("solve"):
            self.annotations()
            goal = self.take()
            self.model.goal = (goal, None if goal == "satisfy" else self.expression())
        else:
            self.declaration()
        self.take(";")

    def declaration(self) -> None:
        length = None
        if is_array := self.accept("array"):
            self.take("[")
            length = self.expression()
            self.take("]")
            self.take("of")
        is_variable = self.accept("var")
        kind, domain = self.type()
        self.take(":")
        name = self.take()
        self.annotations()
        value = self.expression() if self.accept("=") else None
        if is_variable and not is_array:
            self.model.variables[name] = Variable(kind, domain, value)
        elif value is None:
            names = [f"{name}[{i}]" for i in length]
            self.model.variables.update({each: Variable(kind, domain) for each in names})
            self.model.constants[name] = [Name(each) for each in names]
        else:
            self.model.constants[name] = value


def read(text: str) -> Model:
    reader = _Reader(text)
    while reader.at < len(reader.tokens):
        reader.item()
    return reader.model


def reveal(text: str) -> str:
    """The model with every variable as an output, and nothing else."""
    text = re.sub(r"::\s*output_var|::\s*output_array\s*\(\[[^\]]*\]\)", "", text)
    whole = r"^(\s*array\s*\[\s*(\d+\s*\.\.\s*\d+)\s*\]\s*of\s+var\b[^:;=]*:[^;=]*);"
    text = re.sub(whole, r"\1 :: output_array([\2]);", text, flags=re.M)
    return re.sub(r"(^|;)(\s*var\b[^:;]*:\s*[A-Za-z_]\w*)", r"\1\2 :: output_var", text, flags=re.M)


def parse_solutions(printed: str) -> list[Values]:
    """Return the solutions that a solver printed, each as name -> value."""
    solutions = []
    for block in printed.split("----------\n")[:-1]:
        lines = [line for line in block.splitlines(keepends=True) if not line.startswith(("%", "="))]
        if all(line.endswith(";\n") for line in lines):
            solutions.append({name: value for line in lines for name, value in _assigned(line)})
        else:
            solutions.append(dict(_assigned("".join(lines))))
    return solutions


@functools.lru_cache(4096)
def _assigned(printed: str) -> tuple[tuple[str, Any], ...]:
    """Return names and values of printed assignments; solutions have most of them in common."""
    reader, found = _Reader(printed), []
    while reader.at < len(reader.tokens):
        name = reader.take()
        reader.take("=")
        value = reader.expression()
        found.append((name, value[1][-1] if isinstance(value, tuple) else value))
        reader.take(";")
    return tuple(found)


def evaluate(x: Any, model: Model, values: Values) -> Any:
    """An expression without names; Booleans are 0 and 1."""
    if isinstance(x, Name):
        return evaluate(values[x.text] if x.text in values else model.constants[x.text], model, values)
    if isinstance(x, list):
        return [evaluate(each, model, values) for each in x]
    return int(x) if isinstance(x, bool) else x


def violated(model: Model, values: Values) -> list[str]:
    """Return the constraints that an assignment of all variables violates."""
    lists = {name: value for name, value in values.items() if isinstance(value, list)}
    values = values | {f"{name}[{i}]": each for name, xs in lists.items() for i, each in enumerate(xs, 1)}
    faults = []
    for name, variable in model.variables.items():
        allowed = range(2) if variable.kind == "bool" else variable.domain
        if allowed is not None and int(values[name]) not in allowed:
            faults.append(f"{name} = {values[name]} is not in its domain")
        if variable.value is not None and evaluate(variable.value, model, values) != int(values[name]):
            faults.append(f"{name} = {values[name]} is not its value")
    for name, arguments in model.constraints:
        if not holds(name, [evaluate(a, model, values) for a in arguments]):
            faults.append(f"{name}{[evaluate(a, model, values) for a in arguments]}")
    return faults


def solutions(model: Model) -> Iterator[Values]:
    """Every solution of a model with small domains. Each constraint is checked once for the values of its variables."""
    names = list(model.variables)
    domains = [range(2) if v.kind == "bool" else v.domain for v in model.variables.values()]
    tests = [
        (
            names_of(arguments, model),
            lambda values, name=name, arguments=arguments: holds(name, evaluate(arguments, model, values)),
        )
        for name, arguments in model.constraints
    ] + [
        (
            names_of([Name(own), variable.value], model),
            lambda values, own=own, variable=variable: evaluate(variable.value, model, values) == int(values[own]),
        )
        for own, variable in model.variables.items()
        if variable.value is not None
    ]
    scopes = [([names.index(name) for name in scope], test, {}) for scope, test in tests]
    for assignment in itertools.product(*domains):
        for scope, test, verdicts in scopes:
            key = tuple([assignment[place] for place in scope])
            if key not in verdicts:
                verdicts[key] = test(dict(zip(names, assignment, strict=True)))
            if not verdicts[key]:
                break
        else:
            yield dict(zip(names, assignment, strict=True))


def names_of(x: Any, model: Model) -> set[str]:
    """The variables that an expression depends on."""
    if isinstance(x, Name):
        return {x.text} if x.text in model.variables else names_of(model.constants[x.text], model)
    return set().union(*(names_of(each, model) for each in x)) if isinstance(x, list) else set()


def holds(name: str, arguments: list[Any]) -> bool:
    """Return whether a constraint holds for these values."""
    if name in CONSTRAINTS:
        return bool(CONSTRAINTS[name](*arguments))
    base, suffix = name.rsplit("_", 1)
    if suffix == "reif":
        return bool(CONSTRAINTS[base](*arguments[:-1])) == bool(arguments[-1])
    assert suffix == "imp", name
    if base in FUNCTIONS:
        return not arguments[-1] or bool(FUNCTIONS[base](*arguments[:-1]))
    return not arguments[-1] or bool(CONSTRAINTS[base](*arguments[:-1]))


def _sum(factors: Sequence[int], xs: Sequence[int]) -> int:
    return sum(a * x for a, x in zip(factors, xs, strict=True))


def _element(index: int, xs: Sequence[int], value: int) -> bool:
    return 1 <= index <= len(xs) and xs[index - 1] == value


def _quotient(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def _divides(x: int, y: int, z: int) -> bool:
    return y != 0 and z == _quotient(x, y)


def _leaves(x: int, y: int, z: int) -> bool:
    return y != 0 and z == x - y * _quotient(x, y)


def _is_power(x: int, y: int, z: int) -> bool:
    if abs(x) > 1 and abs(y) > 64:  # beyond all domains, or below 1
        return y < 0 and z == 0
    if y >= 0:
        return z == x**y
    return x != 0 and z == _quotient(1, x**-y)


def _different(xs: Sequence[int]) -> bool:
    return len(set(xs)) == len(xs)


def _is_cycle(successors: Sequence[int], nodes: set[int]) -> bool:
    if not nodes:
        return True
    here, seen = min(nodes), set()
    while here not in seen:
        seen.add(here)
        if not 1 <= successors[here - 1] <= len(successors):
            return False
        here = successors[here - 1]
    return seen == nodes and here == min(nodes)


def _circuit(successors: Sequence[int]) -> bool:
    return _is_cycle(successors, set(range(1, len(successors) + 1)))


def _subcircuit(successors: Sequence[int]) -> bool:
    return _is_cycle(successors, {i for i, x in enumerate(successors, 1) if x != i})


def _rows(xs: Sequence[int], table: Sequence[int]) -> bool:
    return tuple(xs) in set(zip(*[iter(table)] * len(xs), strict=True))


def _regular(xs: Sequence[int], states: int, symbols: int, table: Sequence[int], state: int, last: Any) -> bool:
    for x in xs:
        if not 1 <= x <= symbols or state == 0:
            return False
        state = table[(state - 1) * symbols + x - 1]
    return state in last


def _cumulative(starts: Sequence[int], durations: Sequence[int], demands: Sequence[int], capacity: int) -> bool:
    tasks = [(s, s + d, r) for s, d, r in zip(starts, durations, demands, strict=True)]
    times = {s for s, _, _ in tasks}
    return capacity >= 0 and all(sum(r for s, e, r in tasks if s <= t < e) <= capacity for t in times)


def _counted(xs: Sequence[int], values: Sequence[int], counts: Sequence[int]) -> bool:
    return all(xs.count(v) == c for v, c in zip(values, counts, strict=True))


def _inverse(f: Sequence[int], g: Sequence[int]) -> bool:
    n = len(f)
    return all(1 <= x <= n for x in [*f, *g]) and all(g[f[i] - 1] == i + 1 for i in range(n))


def _packed(loads: Sequence[int], bins: Sequence[int], sizes: Sequence[int]) -> bool:
    totals = [sum(w for b, w in zip(bins, sizes, strict=True) if b == k) for k in range(1, len(loads) + 1)]
    return all(1 <= b <= len(loads) for b in bins) and list(loads) == totals


def _offset(xs: Sequence[int], first: int) -> list[int]:
    """Indices that count from another number, as those that count from 1."""
    return [x - first + 1 for x in xs]


def _within(xs: Sequence[int], values: Sequence[int], lows: Sequence[int], highs: Sequence[int]) -> bool:
    return all(lo <= xs.count(v) <= hi for v, lo, hi in zip(values, lows, highs, strict=True))


def _ascending(xs: Sequence[int]) -> bool:
    return all(x <= y for x, y in itertools.pairwise(xs))


def _strictly_ascending(xs: Sequence[int]) -> bool:
    return all(x < y for x, y in itertools.pairwise(xs))


def _apart(boxes: Sequence[Sequence[tuple[int, int]]]) -> bool:
    """Return whether of any two boxes, one ends before the other begins in some dimension."""
    return all(
        any(a + m <= b or b + n <= a for (a, m), (b, n) in zip(one, other, strict=True))
        for one, other in itertools.combinations(boxes, 2)
    )


def _rectangles(x: Sequence[int], y: Sequence[int], dx: Sequence[int], dy: Sequence[int]) -> bool:
    boxes = [((a, m), (b, n)) for a, b, m, n in zip(x, y, dx, dy, strict=True)]
    return min(*dx, *dy, 0) == 0 and _apart(boxes)


def _solid_rectangles(x: Sequence[int], y: Sequence[int], dx: Sequence[int], dy: Sequence[int]) -> bool:
    boxes = [((a, m), (b, n)) for a, b, m, n in zip(x, y, dx, dy, strict=True) if m and n]
    return min(*dx, *dy, 0) == 0 and _apart(boxes)


def _in_turn(starts: Sequence[int], durations: Sequence[int], occurs: Sequence[int] | None = None) -> bool:
    present = [1] * len(starts) if occurs is None else occurs
    return _apart([((s, d),) for s, d, o in zip(starts, durations, present, strict=True) if o])


def _optional(s: Sequence[int], d: Sequence[int], r: Sequence[int], capacity: int, occurs: Sequence[int]) -> bool:
    return _cumulative(s, d, [demand * o for demand, o in zip(r, occurs, strict=True)], capacity)


def _first_true(conditions: Sequence[int], xs: Sequence[int], y: int) -> bool:
    return next((x == y for c, x in zip(conditions, xs, strict=True) if c), True)


def _precedes(earlier: int, later: int, xs: Sequence[int]) -> bool:
    return later not in xs or (earlier in xs and xs.index(earlier) < xs.index(later))


def _chain_precedes(values: Sequence[int], xs: Sequence[int]) -> bool:
    return all(_precedes(a, b, xs) for a, b in itertools.pairwise(values)) if len(set(values)) > 1 else True


def _sequence_precedes(xs: Sequence[int]) -> bool:
    return all(v - 1 in xs[: xs.index(v)] for v in xs if v > 1)


def _is_place(xs: Sequence[int], place: int, first: int, extreme: Callable[[Sequence[int]], int]) -> bool:
    return xs.index(extreme(xs)) + first == place


def _packed_from(loads: Sequence[int], bins: Sequence[int], sizes: Sequence[int], first: int) -> bool:
    return _packed(loads, _offset(bins, first), sizes)


def _fits_in(capacities: Sequence[int], bins: Sequence[int], sizes: Sequence[int], first: int) -> bool:
    bins = _offset(bins, first)
    totals = [sum(w for b, w in zip(bins, sizes, strict=True) if b == k) for k in range(1, len(capacities) + 1)]
    return all(1 <= b <= len(capacities) for b in bins) and all(a <= c for a, c in zip(totals, capacities, strict=True))


def _inverse_from(f: Sequence[int], g: Sequence[int], f_first: int, g_first: int) -> bool:
    return _inverse(_offset(f, g_first), _offset(g, f_first))


_LINEAR: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "le": lambda a, b: a <= b,
    "lt": lambda a, b: a < b,
    "ge": lambda a, b: a >= b,
    "gt": lambda a, b: a > b,
}

FUNCTIONS: dict[str, Callable[..., bool]] = {
    "bool_and": lambda a, b: a and b,
    "bool_or": lambda a, b: a or b,
    "bool_xor": lambda a, b: a != b,
    "array_bool_and": all,
    "array_bool_or": any,
}

CONSTRAINTS: dict[str, Callable[..., bool]] = {
    **{f"{t}_eq": lambda x, y: x == y for t in ("int", "bool")},
    **{f"{t}_ne": lambda x, y: x != y for t in ("int", "bool")},
    **{f"{t}_le": lambda x, y: x <= y for t in ("int", "bool")},
    **{f"{t}_lt": lambda x, y: x < y for t in ("int", "bool")},
    **{f"{t}_lin_eq": lambda a, x, c: _sum(a, x) == c for t in ("int", "bool")},
    **{f"{t}_lin_ne": lambda a, x, c: _sum(a, x) != c for t in ("int", "bool")},
    **{f"{t}_lin_le": lambda a, x, c: _sum(a, x) <= c for t in ("int", "bool")},
    "bool2int": lambda b, x: b == x,
    "bool_not": lambda a, b: a != b,
    "bool_and": lambda a, b, r: (a and b) == r,
    "bool_or": lambda a, b, r: (a or b) == r,
    "bool_xor": lambda a, b, r=1: (a != b) == bool(r),
    "bool_clause": lambda a, b: any(a) or not all(b),
    "array_bool_and": lambda a, r: all(a) == bool(r),
    "array_bool_or": lambda a, r: any(a) == bool(r),
    "array_bool_xor": lambda a: sum(a) % 2 == 1,
    "set_in": lambda x, s: x in s,
    "int_plus": lambda x, y, z: x + y == z,
    "int_minus": lambda x, y, z: x - y == z,
    "int_times": lambda x, y, z: x * y == z,
    "int_div": _divides,
    "int_mod": _leaves,
    "int_pow": _is_power,
    "int_abs": lambda x, z: abs(x) == z,
    "int_max": lambda x, y, z: max(x, y) == z,
    "int_min": lambda x, y, z: min(x, y) == z,
    "array_int_maximum": lambda m, x: m == max(x),
    "array_int_minimum": lambda m, x: m == min(x),
    **{f"array_{kind}_element": _element for kind in ("int", "bool", "var_int", "var_bool")},
    **dict.fromkeys(("fzn_all_different_int", "all_different_int", "jacop_alldiff"), _different),
    "fzn_alldifferent_except_0": lambda xs: _different([x for x in xs if x != 0]),
    **dict.fromkeys(("fzn_circuit", "elimina_circuit", "jacop_circuit", "minicpp_circuit"), _circuit),
    **dict.fromkeys(("fzn_subcircuit", "elimina_subcircuit"), _subcircuit),
    **dict.fromkeys(("fzn_inverse", "elimina_inverse"), _inverse),
    **dict.fromkeys(("fzn_table_int", "fzn_table_bool"), _rows),
    "fzn_regular": _regular,
    "fzn_cumulative": _cumulative,
    **{name: lambda xs, y, c: xs.count(y) == c for name in ("fzn_count_eq", "jacop_count")},
    "fzn_global_cardinality": _counted,
    "fzn_global_cardinality_closed": lambda xs, v, c: _counted(xs, v, c) and set(xs) <= set(v),
    "fzn_nvalue": lambda n, xs: n == len(set(xs)),
    **{f"fzn_lex_less_{kind}": lambda x, y: x < y for kind in ("int", "bool")},
    **{f"fzn_lex_lesseq_{kind}": lambda x, y: x <= y for kind in ("int", "bool")},
    "elimina_bin_packing_load": _packed,
}


def _every(function: Callable[..., bool], *names: str) -> dict[str, Callable[..., bool]]:
    return dict.fromkeys(names, function)


FOREIGN: dict[str, Callable[..., bool]] = {
    **_every(_different, "gecode_all_different_int", "minicpp_all_different", "jacop_alldistinct"),
    **_every(_different, "all_different", "alldifferent"),
    **_every(
        _rows,
        "jacop_table_int",
        "jacop_table_bool",
        "gecode_table_int",
        "gecode_table_bool",
        "chuffed_table_int",
        "ortools_table_int",
    ),
    **_every(_regular, "gecode_regular", "chuffed_regular", "ortools_regular"),
    "jacop_regular": lambda *a: _regular(*a[:-1]),
    **_every(_cumulative, "jacop_cumulative", "cumulatives", "chuffed_cumulative", "chuffed_cumulative_vars"),
    **_every(lambda xs, y, c: xs.count(y) == c, "count", "jacop_count_var", "ortools_count_eq", "ortools_count_eq_cst"),
    "count_eq": lambda xs, y, c: xs.count(y) == c,
    **_every(lambda n, xs: n == len(set(xs)), "jacop_nvalue", "nvalue", "ortools_nvalue"),
    **_every(lambda xs: len(set(xs)) <= 1, "jacop_all_equal_int", "all_equal_int", "fzn_all_equal_int"),
    **_every(_ascending, *(f"{p}increasing{k}" for p in ("", "jacop_") for k in ("", "_int", "_bool"))),
    **_every(lambda xs: _ascending(xs[::-1]), *(f"decreasing{k}" for k in ("", "_int", "_bool"))),
    **_every(_strictly_ascending, "jacop_strictly_increasing", "strictly_increasing_int"),
    **_every(lambda xs: _strictly_ascending(xs[::-1]), "jacop_strictly_decreasing", "strictly_decreasing_int"),
    "among": lambda n, xs, s: sum(x in s for x in xs) == n,
    "jacop_among": lambda xs, s, n: sum(x in s for x in xs) == n,
    "jacop_among_var": lambda xs, s, n: sum(x in s for x in xs) == n,
    "at_least_int": lambda n, xs, v: xs.count(v) >= n,
    "at_most_int": lambda n, xs, v: xs.count(v) <= n,
    "jacop_atleast": lambda xs, v, n: xs.count(v) >= n,
    "jacop_atmost": lambda xs, v, n: xs.count(v) <= n,
    **_every(_within, "global_cardinality_low_up", "jacop_count_values_bounds"),
    "global_cardinality_low_up_closed": lambda xs, v, a, b: _within(xs, v, a, b) and set(xs) <= set(v),
    "ortools_global_cardinality_low_up": lambda xs, v, a, b, c: _within(xs, v, a, b) and (not c or set(xs) <= set(v)),
    "ortools_global_cardinality": lambda xs, v, n, c: _counted(xs, v, n) and (not c or set(xs) <= set(v)),
    **_every(_counted, "jacop_count_values", "gecode_global_cardinality"),
    "gecode_global_cardinality_closed": lambda xs, v, c: _counted(xs, v, c) and set(xs) <= set(v),
    "jacop_gcc": lambda xs, c, first: (
        _counted(xs, range(first, first + len(c)), c) and all(first <= x < first + len(c) for x in xs)
    ),
    **_every(_rectangles, "diffn", "jacop_diff2_strict"),
    "gecode_nooverlap": lambda x, dx, y, dy: _rectangles(x, y, dx, dy),
    **_every(_solid_rectangles, "diffn_nonstrict", "jacop_list_diff2"),
    "jacop_diff2": lambda r: _solid_rectangles(r[::4], r[1::4], r[2::4], r[3::4]),
    "disjunctive": lambda s, d: _cumulative(s, d, [1] * len(s), 1),
    "elimina_disjunctive_opt": lambda s, d, o: _cumulative(s, d, o, 1),
    "elimina_disjunctive_strict_opt": _in_turn,
    **_every(_in_turn, "disjunctive_strict", "gecode_schedule_unary", "chuffed_disjunctive_strict"),
    **_every(_in_turn, "gecode_schedule_unary_optional", "jacop_disjunctive_optional"),
    "ortools_disjunctive_strict_opt": lambda o, s, d: _in_turn(s, d, o),
    "jacop_cumulative_optional": _optional,
    "gecode_schedule_cumulative_optional": lambda s, d, r, o, b: _optional(s, d, r, b, o),
    "ortools_cumulative_opt": lambda o, s, d, r, b: _optional(s, d, r, b, o),
    **_every(_first_true, *(f"{p}if_then_else_{k}" for p in ("", "jacop_") for k in ("int", "bool"))),
    **_every(_first_true, "fzn_if_then_else_var_int", "fzn_if_then_else_var_bool"),
    **_every(lambda xs, y: y in xs, *(f"{p}member_{k}" for p in ("", "jacop_", "gecode_") for k in ("int", "bool"))),
    **_every(_precedes, "value_precede_int", "jacop_value_precede_int", "chuffed_value_precede"),
    **_every(lambda xs, s, t: _precedes(s, t, xs), "precede", "gecode_precede"),
    **_every(_chain_precedes, "value_precede_chain_int", "jacop_value_precede_chain_int", "ortools_precede_chain_int"),
    **_every(_sequence_precedes, "seq_precede_chain_int", "jacop_seq_precede_chain_int", "chuffed_seq_precede"),
    "inverse_offsets": lambda f, a, g, b: _inverse_from(f, g, a, b),
    **_every(_inverse_from, "jacop_assignment", "ortools_inverse"),
    "jacop_bin_packing": lambda bins, loads, w, first: _packed_from(loads, bins, w, first),
    "gecode_bin_packing_load": _packed_from,
    "ortools_bin_packing_load": lambda loads, bins, s, w: _packed_from(loads, bins, w, min(s)),
    "jacop_bin_packing_capacity": lambda bins, c, w, first: _fits_in(c, bins, w, first),
    "ortools_bin_packing_capa": lambda c, bins, s, w: _fits_in(c, bins, w, min(s)),
    "jacop_channel": lambda x, b, values: all((x == v) == bool(c) for v, c in zip(sorted(values), b, strict=True)),
    "jacop_knapsack": lambda w, p, total, profit, xs: _sum(w, xs) == total and _sum(p, xs) == profit,
    **_every(lambda m, x: m == max(x), "jacop_maximum", "chuffed_array_int_maximum"),
    **_every(lambda m, x: m == min(x), "jacop_minimum", "chuffed_array_int_minimum"),
    **_every(lambda x, i, first: _is_place(x, i, first, max), "jacop_maximum_arg_int", "jacop_maximum_arg_bool"),
    **_every(lambda x, i, first: _is_place(x, i, first, min), "jacop_minimum_arg_int", "jacop_minimum_arg_bool"),
    **{
        f"gecode_{name}imum_arg_{kind}_offset": lambda x, first, i, of=of: _is_place(x, i, first, of)
        for name, of in (("max", max), ("min", min))
        for kind in ("int", "bool")
    },
    "chuffed_maximum_arg_bool": lambda x, first, i: _is_place(x, i, first, max),
    **{
        f"ortools_arg_max_{kind}": lambda x, i, first, sign: _is_place(x, i, first, max if sign > 0 else min)
        for kind in ("int", "bool")
    },
    **_every(lambda x, y: x < y, "array_int_lt", "array_bool_lt", "jacop_lex_less_int", "ortools_lex_less_bool"),
    **_every(lambda x, y: x <= y, "array_int_lq", "array_bool_lq", "jacop_lex_lesseq_bool", "ortools_lex_lesseq_int"),
    "gecode_int_pow": _is_power,
    "gecode_circuit": lambda first, x: _circuit(_offset(x, first)),
    **_every(lambda x, first: _circuit(_offset(x, first)), "chuffed_circuit", "ortools_circuit"),
    **_every(lambda x, first: _subcircuit(_offset(x, first)), "chuffed_subcircuit", "ortools_subcircuit"),
    "jacop_subcircuit": _subcircuit,
    **{
        f"{kind}_lin_{name}": lambda a, x, c, of=of: of(_sum(a, x), c)
        for kind in ("int", "bool")
        for name, of in _LINEAR.items()
    },
    **{f"bool_sum_{name}": lambda x, c, of=of: of(sum(x), c) for name, of in _LINEAR.items()},
}
"""Names that the libraries of other solvers, or MiniZinc's, give to constraints."""
CONSTRAINTS |= FOREIGN
