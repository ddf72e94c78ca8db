"""Cost functions by keyword, in WCSP and CFN files, against plain definitions."""

from __future__ import annotations

import functools
import itertools
import math
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import elimina
from elimina.io import cost_function_tables
from tests import calls
from tests.adversary.case import Case, Defect, Setting

BOUND = 100_000
EXCESS: dict[str, Callable[[int], int]] = {
    "hard": lambda excess: int(excess > 0),
    "lin": lambda excess: max(0, excess),
    "quad": lambda excess: max(0, excess) ** 2,
}
"""Metric -> the number of times that its cost is taken for an excess."""

Values = Sequence[int]
Parameters = dict[str, Any]


def make(rng: random.Random, setting: Setting) -> Case:
    """Make a function and the file that it stands in."""
    keyword = rng.choice(sorted(FUNCTIONS))
    count = rng.choice([1, 2, 3, 4, 4])
    sizes = [rng.choice([1, 2, 2, 3]) for _ in range(count)]
    form = rng.choice(["wcsp", "cfn"])
    is_negative = form == "cfn" and rng.random() < 0.5
    return {
        "sizes": sizes,
        "keyword": keyword,
        "parameters": FUNCTIONS[keyword][0](rng, sizes, is_negative),
        "form": form,
        "decimals": rng.choice([0, 2]) if form == "cfn" else 0,
        "order": rng.sample(range(9), 9),
        "is_chain": rng.random() < 0.5,
    }


def check(case: Case) -> None:
    """Read the file, and compare the best cost of each assignment of its own variables."""
    text = _wcsp(case) if case["form"] == "wcsp" else _cfn(case)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"model.{case['form']}"
        path.write_text(text)
        max_cells = 0 if case["is_chain"] else cost_function_tables._MAX_SINGLE_TABLE_CELLS
        with mock.patch.object(cost_function_tables, "_MAX_SINGLE_TABLE_CELLS", max_cells):
            model = elimina.read(path)
    definition = FUNCTIONS[case["keyword"]][1]
    for values in itertools.product(*map(range, case["sizes"])):
        expected = definition(values, case["parameters"])
        observed = {variable.name: variable.state(x) for variable, x in zip(model.variables, values, strict=False)}
        answer = calls.solve(model, device="cpu", threads=1, evidence=observed)
        cost = math.inf if answer.value is None or answer.value >= BOUND else answer.value
        if not math.isclose(cost, expected, abs_tol=1e-9):
            raise Defect(f"{values} costs {cost}, not {expected}\n{text}")


def smaller(case: Case) -> Iterator[Case]:
    """Yield the case in plainer files."""
    yield {**case, "form": "cfn", "decimals": 0}
    yield {**case, "is_chain": False}


def script(case: Case) -> str:
    """Return a program that shows what happens."""
    return f"from tests.adversary.keywords import check\ncheck({case!r})"


def _wcsp(case: Case) -> str:
    sizes, count = case["sizes"], len(case["sizes"])
    numbers = _plain_numbers(case["keyword"], case["parameters"], count)
    scope = " ".join(map(str, range(count)))
    head = f"k {count} {max(sizes)} 1 {BOUND}\n{' '.join(map(str, sizes))}\n"
    return f"{head}{count} {scope} -1 {case['keyword']} {' '.join(map(str, numbers))}\n"


def _plain_numbers(keyword: str, parameters: Parameters, count: int) -> Iterator[Any]:
    """Yield the words of a WCSP file: lists after their lengths, but for those of the scope's length."""
    for name, value in parameters.items():
        if name == "weightedvalues" and keyword == "knapsackp":
            for v in range(count):
                rows = [row[1:] for row in value if row[0] == v]
                yield from (len(rows), *itertools.chain.from_iterable(rows))
        elif name == "non_terminals":
            continue
        elif name == "terminals":
            pairs = parameters["non_terminals"]
            has_costs = parameters["metric"] == "weight"
            yield len(value) + len(pairs)
            for rule in value:
                yield from (2 if has_costs else 0, *rule)
            for rule in pairs:
                yield from (3 if has_costs else 1, *rule)
        elif not isinstance(value, list):
            yield value
        elif name == "values" and keyword.endswith("diverse"):
            yield from value
        else:
            yield len(value)
            yield from itertools.chain.from_iterable(row if isinstance(row, list) else [row] for row in value)


def _cfn(case: Case) -> str:
    sizes, decimals = case["sizes"], case["decimals"]
    items = list(case["parameters"].items())
    # Parameters come in any order.
    items = [item for _, item in sorted(zip(case["order"], items, strict=False), key=lambda pair: pair[0])]
    parameters = " ".join(f"{name} {_tree(value)}" for name, value in items)
    variables = " ".join(f"v{v} {size}" for v, size in enumerate(sizes))
    scope = " ".join(f"v{v}" for v in range(len(sizes)))
    bound = f"{BOUND:.{decimals}f}"
    return (
        f"{{problem {{n <{bound}}} variables {{{variables}}} functions {{f {{scope [{scope}] type {case['keyword']} "
        f"params {{{parameters}}}}}}}}}"
    )


def _tree(value: Any) -> str:
    return f"[{' '.join(map(_tree, value))}]" if isinstance(value, list) else str(value)


def _metric_of(rng: random.Random, *metrics: str) -> Parameters:
    return {"metric": rng.choice(metrics), "cost": rng.randint(0, 9)}


def _all_different(rng: random.Random, _sizes: Values, _is_negative: bool) -> Parameters:
    return _metric_of(rng, *EXCESS)


def _all_different_cost(values: Values, parameters: Parameters) -> float:
    times = EXCESS[parameters["metric"]]
    return parameters["cost"] * sum(times(number - 1) for number in Counter(values).values())


def _diverse(rng: random.Random, sizes: Values, _is_negative: bool) -> Parameters:
    return {"distance": rng.randint(0, len(sizes) + 1), "values": [rng.randrange(3) for _ in sizes]}


def _diverse_cost(values: Values, parameters: Parameters) -> float:
    distance = sum(x != y for x, y in zip(values, parameters["values"], strict=True))
    return 0 if distance >= parameters["distance"] else math.inf


def _knapsack(rng: random.Random, sizes: Values, _is_negative: bool) -> Parameters:
    weights = [
        [v, value, rng.randint(-3, 5)] for v, size in enumerate(sizes) for value in range(size) if rng.random() < 0.7
    ]
    return {"capacity": rng.randint(-2, 8), "weightedvalues": weights}


def _knapsack_cost(values: Values, parameters: Parameters) -> float:
    weights = {(v, value): weight for v, value, weight in parameters["weightedvalues"]}
    total = sum(weights.get(item, 0) for item in enumerate(values))
    return 0 if total >= parameters["capacity"] else math.inf


def _automaton(rng: random.Random, sizes: Values, is_negative: bool) -> Parameters:
    states = rng.randint(1, 3)
    low = -5 if is_negative else 0

    def costs_of_states() -> list[list[int]]:
        return [[state, rng.randint(low, 5)] for state in sorted(rng.sample(range(states), rng.randint(1, states)))]

    steps = itertools.product(range(states), range(max(sizes)), range(states))
    transitions = [[*step, rng.randint(low, 5)] for step in steps if rng.random() < 0.6]
    return {"nb_states": states, "starts": costs_of_states(), "ends": costs_of_states(), "transitions": transitions}


def _automaton_cost(values: Values, parameters: Parameters) -> float:
    costs = dict(parameters["starts"])
    for x in values:
        moved: dict[int, float] = {}
        for source, value, target, cost in parameters["transitions"]:
            if value == x and source in costs:
                moved[target] = min(moved.get(target, math.inf), costs[source] + cost)
        costs = moved
    ends = dict(parameters["ends"])
    return min((cost + ends[state] for state, cost in costs.items() if state in ends), default=math.inf)


def _grammar(rng: random.Random, sizes: Values, _is_negative: bool) -> Parameters:
    symbols = rng.randint(1, 3)
    metric = rng.choice(["var", "weight"])

    def with_cost(rule: Sequence[int]) -> list[int]:
        return [*rule, rng.randint(0, 5)] if metric == "weight" else list(rule)

    words = itertools.product(range(symbols), range(max(sizes)))
    pairs = itertools.product(range(symbols), repeat=3)
    terminals = [with_cost(rule) for rule in words if rng.random() < 0.6]
    non_terminals = [with_cost(rule) for rule in pairs if rng.random() < 0.3]
    cost = rng.randint(0, 9)
    names = {"nb_symbols": symbols, "nb_values": max(sizes), "start": rng.randrange(symbols)}
    return {"metric": metric, "cost": cost, **names, "terminals": terminals, "non_terminals": non_terminals}


def _grammar_cost(values: Values, parameters: Parameters) -> float:
    """Return the least cost of rules that derive the values, or of those beside changes of values (metric ``var``)."""
    terminals = [(*rule, 0)[:3] for rule in parameters["terminals"]]
    pairs = [(*rule, 0)[:4] for rule in parameters["non_terminals"]]
    change = parameters["cost"] if parameters["metric"] == "var" else math.inf

    @functools.cache
    def derived(symbol: int, first: int, last: int) -> float:
        if last - first == 1:
            costs = [cost + (0 if value == values[first] else change) for s, value, cost in terminals if s == symbol]
            return min(costs, default=math.inf)
        splits = (
            cost + derived(left, first, middle) + derived(right, middle, last)
            for s, left, right, cost in pairs
            if s == symbol
            for middle in range(first + 1, last)
        )
        return min(splits, default=math.inf)

    return derived(parameters["start"], 0, len(values))


FUNCTIONS: dict[str, tuple[Callable[..., Parameters], Callable[[Values, Parameters], float]]] = {
    "walldiff": (_all_different, _all_different_cost),
    "walldifferent": (_all_different, _all_different_cost),
    "wdiverse": (_diverse, _diverse_cost),
    "whdiverse": (_diverse, _diverse_cost),
    "wtdiverse": (_diverse, _diverse_cost),
    "knapsackp": (_knapsack, _knapsack_cost),
    "knapsackv": (_knapsack, _knapsack_cost),
    "wregular": (_automaton, _automaton_cost),
    "sgrammar": (_grammar, _grammar_cost),
    "sgrammardp": (_grammar, _grammar_cost),
}
"""Keyword -> its parameters in the order of a WCSP file, drawn at random, and its definition."""
