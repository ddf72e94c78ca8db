"""Cost functions by the keywords of WCSP and CFN files, from their parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from elimina._core import TextError
from elimina.errors import UnsupportedError
from elimina.io.cost_function_tables import CostFunctionTables, gap_to, penalty
from elimina.model.table import FORBIDDEN
from elimina.number_texts import counted

Parameters = Mapping[str, Any]

BINARY = {">=": 2, ">": 2, "<=": 2, "<": 2, "=": 2, "disj": 3, "sdisj": 6}
"""Number of integers after each keyword of a function of two variables."""

_MAX_SHIFT = 2**40
_MAX_VALUES = 10**5


def add_binary(target: CostFunctionTables, keyword: str, scope: Sequence[int], numbers: Sequence[int]) -> None:
    """Add a function of two variables.

    Args:
        target: Receiver of the table.
        keyword: Keyword, one of ``BINARY``.
        scope: Variables of the function.
        numbers: Integers, as many as the keyword has.

    Raises:
        TextError: The numbers or the scope do not fit.
        UnsupportedError: The function is too large to be written out.
    """
    if len(scope) != 2:
        raise TextError(f"expected 2 variables for {keyword!r}, found {len(scope)}")
    costs = numbers[{"disj": 2, "sdisj": 4}.get(keyword, 1) :]
    shifts = numbers[: len(numbers) - len(costs)]
    for number in shifts:
        if abs(number) > _MAX_SHIFT:
            raise TextError(f"expected a number from -2^40 to 2^40 after {keyword!r}, found {number}")
    if keyword not in ("disj", "sdisj"):
        target.compare(keyword, scope, shifts[0], costs[0])
        return
    if min(costs) < 0:
        raise TextError(f"expected costs of at least 0 after {keyword!r}, found {min(costs)}")
    if keyword == "disj":
        target.disjunction(scope, shifts, costs[0])
    else:
        target.special_disjunction(scope, shifts[:2], shifts[2:], costs)


def add_global(target: CostFunctionTables, keyword: str, scope: Sequence[int], parameters: Parameters) -> None:
    """Add a function of any number of variables.

    Args:
        target: Receiver of the tables.
        keyword: Keyword, one of ``GLOBAL``.
        scope: Variables of the function.
        parameters: Each parameter of the keyword: an integer, a word, or a list of integers or of lists of them.

    Raises:
        TextError: The parameters do not fit the keyword or the scope.
        UnsupportedError: The function is too large to be written out.
    """
    if parameters.get("cost", 0) < 0 or parameters.get("defaultcost", 0) < 0:
        raise TextError(f"expected a cost of at least 0 after {keyword!r}")
    if sum(target.sizes[v] for v in scope) > _MAX_VALUES:
        raise UnsupportedError(
            f"{keyword!r} over variables of more than {_MAX_VALUES} values in all is too large for tables"
        )
    GLOBAL[keyword][1](target, scope, parameters)


def _metric(parameters: Parameters, *metrics: str) -> str:
    metric: str = parameters["metric"]
    if metric not in metrics:
        raise TextError(f"expected the metric {' or '.join(metrics)}, found {metric[:40]!r}")
    return metric


def _all_different(target: CostFunctionTables, scope: Sequence[int], parameters: Parameters) -> None:
    if _metric(parameters, "var", "dec", "decbi", "hard") == "var" and parameters["cost"] < target.limit:
        _once_each(target, scope, penalty("lin", parameters["cost"]))
    else:
        target.different_pairs(scope, parameters["cost"])


def _once_each(target: CostFunctionTables, scope: Sequence[int], cost: Callable[[int], int]) -> None:
    values = range(max((target.sizes[v] for v in scope), default=0))
    target.cardinality(scope, dict.fromkeys(values, (0, 1)), lambda _, short, over: cost(short + over))


def _weighted_all_different(target: CostFunctionTables, scope: Sequence[int], parameters: Parameters) -> None:
    if parameters["cost"] >= target.limit:
        target.different_pairs(scope, FORBIDDEN)
    else:
        _once_each(target, scope, penalty(parameters["metric"], parameters["cost"]))


def _hard_all_different(target: CostFunctionTables, scope: Sequence[int], parameters: Parameters) -> None:
    _check_deltas(parameters)
    target.different_pairs(scope, FORBIDDEN, parameters["exceptedvalues"])


def _check_deltas(parameters: Parameters) -> None:
    if parameters["deltacosts"]:
        raise UnsupportedError("the costs that toulbar2's propagation has moved (deltacosts) are not handled")


def _bounded_all_different(target: CostFunctionTables, scope: Sequence[int], parameters: Parameters) -> None:
    _metric(parameters, "hard", "hardeq", "hardge")
    target.different_pairs(scope, FORBIDDEN)


def _bounds(parameters: Parameters) -> dict[int, tuple[int, int]]:
    bounds = {value: (low, high) for value, low, high, *_ in parameters["bounds"]}
    if len(bounds) != len(parameters["bounds"]):
        raise TextError("a value is bounded twice")
    return bounds


def _cardinality(target: CostFunctionTables, scope: Sequence[int], parameters: Parameters) -> None:
    cost, metric = parameters["cost"], _metric(parameters, "var", "dec", "wdec")
    if metric == "var":
        target.cardinality_by_variables(scope, _bounds(parameters), cost)
    elif metric == "dec":
        target.cardinality(scope, _bounds(parameters), lambda _, short, over: cost * (short + over))
    else:
        weights = {row[0]: (row[3], row[4]) for row in parameters["bounds"]}
        if any(w < 0 for pair in weights.values() for w in pair):
            raise TextError("expected weights of at least 0")
        target.cardinality(
            scope, _bounds(parameters), lambda v, short, over: weights[v][0] * short + weights[v][1] * over
        )


def _weighted_cardinality(target: CostFunctionTables, scope: Sequence[int], parameters: Parameters) -> None:
    cost = penalty("lin" if parameters["metric"] == "var" else parameters["metric"], parameters["cost"])
    target.cardinality(scope, _bounds(parameters), lambda _, short, over: cost(short + over))


def _bounded_cardinality(target: CostFunctionTables, scope: Sequence[int], parameters: Parameters) -> None:
    _metric(parameters, "hard")
    target.cardinality(scope, _bounds(parameters), lambda _, short, over: FORBIDDEN if short + over else 0)


def _hard_cardinality(target: CostFunctionTables, scope: Sequence[int], parameters: Parameters) -> None:
    _check_deltas(parameters)
    target.cardinality(scope, _bounds(parameters), lambda _, short, over: FORBIDDEN if short + over else 0)


def _same(target: CostFunctionTables, scope: Sequence[int], parameters: Parameters) -> None:
    first, second, cost = parameters["vars1"], parameters["vars2"], parameters["cost"]
    if sorted((*first, *second)) != sorted(scope) or len(first) != len(second):
        raise TextError("expected two lists of equal length, which together are the scope")
    target.same(first, second, lambda difference: cost * max(0, difference))


def _halves(scope: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
    if len(scope) % 2:
        raise TextError(f"expected an even number of variables, found {len(scope)}")
    return scope[: len(scope) // 2], scope[len(scope) // 2 :]


def _weighted_same(target: CostFunctionTables, scope: Sequence[int], parameters: Parameters) -> None:
    target.same(*_halves(scope), penalty(parameters["metric"], parameters["cost"]))


def _weighted_same_cardinality(target: CostFunctionTables, scope: Sequence[int], parameters: Parameters) -> None:
    _weighted_same(target, scope, parameters)
    for half in _halves(scope):
        _weighted_cardinality(target, half, parameters)


def _regular(target: CostFunctionTables, scope: Sequence[int], parameters: Parameters) -> None:
    _metric(parameters, "var")
    starts, ends = (dict.fromkeys(parameters[name], 0) for name in ("starts", "ends"))
    transitions = [(source, value, state, 0) for source, value, state in parameters["transitions"]]
    _check_states(parameters["nb_states"], [*starts, *ends, *(s for a, _, b, _ in transitions for s in (a, b))])
    target.regular(scope, starts, ends, transitions, parameters["cost"])


def _weighted_regular(target: CostFunctionTables, scope: Sequence[int], parameters: Parameters) -> None:
    starts, ends = (dict(parameters[name]) for name in ("starts", "ends"))
    _check_states(
        parameters["nb_states"], [*starts, *ends, *(s for a, _, b, _ in parameters["transitions"] for s in (a, b))]
    )
    lowest = min([0, *starts.values(), *ends.values(), *(cost for *_, cost in parameters["transitions"])])
    if lowest < 0 and not target.can_be_negative:
        raise TextError(
            f"expected costs of at least 0 in the automaton, found {lowest}; a CFN file may have negative ones"
        )
    target.regular(scope, starts, ends, parameters["transitions"])


def _check_states(count: int, states: Sequence[int]) -> None:
    for state in states:
        if not 0 <= state < count:
            raise TextError(f"expected a state from 0 to {count - 1}, found {state}")


def _among(target: CostFunctionTables, scope: Sequence[int], parameters: Parameters) -> None:
    low, high = parameters["min"], parameters["max"]
    cost = penalty("lin" if parameters["metric"] == "var" else parameters["metric"], parameters["cost"])
    weights = dict.fromkeys(parameters["values"], 1)
    target.add_sums(scope, [weights] * len(scope), lambda n: cost(max(0, low - n, n - high)))


def _last_as_bound(target: CostFunctionTables, scope: Sequence[int]) -> dict[int, int]:
    if not scope:
        raise TextError("expected at least one variable")
    return {x: -x for x in range(target.sizes[scope[-1]])}


def _variable_among(target: CostFunctionTables, scope: Sequence[int], parameters: Parameters) -> None:
    cost = penalty(_metric(parameters, "hard"), parameters["cost"])
    weights = [dict.fromkeys(parameters["values"], 1)] * (len(scope) - 1)
    target.add_sums(scope, [*weights, _last_as_bound(target, scope)], cost)


def _overlap(target: CostFunctionTables, scope: Sequence[int], parameters: Parameters) -> None:
    gap, cost = gap_to(parameters["comparator"], parameters["to"]), penalty(parameters["metric"], parameters["cost"])
    target.overlap(*_halves(scope), lambda count: cost(gap(count)))


def _sum(target: CostFunctionTables, scope: Sequence[int], parameters: Parameters) -> None:
    gap, cost = gap_to(parameters["comparator"], parameters["to"]), penalty(parameters["metric"], parameters["cost"])
    weights = [{x: x for x in range(target.sizes[v])} for v in scope]
    target.add_sums(scope, weights, lambda total: cost(gap(total)))


def _variable_sum(target: CostFunctionTables, scope: Sequence[int], parameters: Parameters) -> None:
    gap, cost = gap_to(parameters["comparator"], 0), penalty(_metric(parameters, "hard"), parameters["cost"])
    last = _last_as_bound(target, scope)
    weights = [{x: x for x in range(target.sizes[v])} for v in scope[:-1]]
    target.add_sums(scope, [*weights, last], lambda total: cost(gap(total)))


def _largest(target: CostFunctionTables, scope: Sequence[int], parameters: Parameters) -> None:
    costs: dict[tuple[int, int], int] = {}
    for v, value, cost in parameters["tuples"]:
        if v not in scope or cost < 0:
            raise TextError(
                f"expected a variable of the scope, a value and a cost of at least 0, found {v} {value} {cost}"
            )
        costs[scope.index(v), value] = cost
    target.largest(scope, parameters["defaultcost"], costs)


def _knapsack(target: CostFunctionTables, scope: Sequence[int], parameters: Parameters) -> None:
    if len(parameters["weights"]) != len(scope):
        raise TextError(f"expected {counted(len(scope), 'weight')}, found {len(parameters['weights'])}")
    if any(target.sizes[v] > 2 for v in scope):
        raise TextError("expected variables of 2 values in a knapsack")
    capacity = parameters["capacity"]
    weights = [{1: weight} for weight in parameters["weights"]]
    target.add_sums(scope, weights, lambda total: 0 if total >= capacity else FORBIDDEN)


def _knapsack_of_values(target: CostFunctionTables, scope: Sequence[int], parameters: Parameters) -> None:
    capacity = parameters["capacity"]
    weights: list[dict[int, int]] = [{} for _ in scope]
    for v, value, weight in parameters["weightedvalues"]:
        if v not in scope or weights[scope.index(v)].setdefault(value, weight) != weight:
            raise TextError(
                f"expected a variable of the scope and one weight of each value, found {v} {value} {weight}"
            )
    target.add_sums(scope, weights, lambda total: 0 if total >= capacity else FORBIDDEN)


def _diverse(target: CostFunctionTables, scope: Sequence[int], parameters: Parameters) -> None:
    if len(parameters["values"]) != len(scope):
        raise TextError(f"expected {counted(len(scope), 'value')}, found {len(parameters['values'])}")
    distance = parameters["distance"]
    weights = [
        {x: 1 for x in range(target.sizes[v]) if x != value}
        for v, value in zip(scope, parameters["values"], strict=True)
    ]
    target.add_sums(scope, weights, lambda total: 0 if total >= distance else FORBIDDEN)


def _grammar(target: CostFunctionTables, scope: Sequence[int], parameters: Parameters) -> None:
    metric = _metric(parameters, "var", "weight")
    if not scope:
        raise TextError("expected at least one variable")
    terminals = [(*rule, 0)[:3] for rule in parameters["terminals"]]
    pairs = [(*rule, 0)[:4] for rule in parameters["non_terminals"]]
    if min([0, *(rule[-1] for rule in (*terminals, *pairs))]) < 0:
        raise TextError("expected costs of at least 0 in the grammar")
    symbols = [parameters["start"], *(rule[0] for rule in terminals), *(s for rule in pairs for s in rule[:3])]
    _check_states(parameters["nb_symbols"], symbols)
    target.grammar(scope, parameters["start"], terminals, pairs, parameters["cost"] if metric == "var" else FORBIDDEN)


def _clique(target: CostFunctionTables, scope: Sequence[int], parameters: Parameters) -> None:
    if len(parameters["values"]) != len(scope):
        raise TextError(
            f"expected values for each of {counted(len(scope), 'variable')}, found {len(parameters['values'])}"
        )
    max_count = parameters["rhs"]
    weights = [dict.fromkeys(values, 1) for values in parameters["values"]]
    target.add_sums(scope, weights, lambda total: 0 if total <= max_count else FORBIDDEN)


GLOBAL: dict[str, tuple[str, Callable[[CostFunctionTables, Sequence[int], Parameters], None]]] = {
    "salldiff": ("metric cost", _all_different),
    "salldiffdp": ("metric cost", _all_different),
    "walldiff": ("metric cost", _weighted_all_different),
    "walldifferent": ("metric cost", _weighted_all_different),
    "salldiffkp": ("metric cost", _bounded_all_different),
    "alldiff": ("exceptedvalues deltacosts", _hard_all_different),
    "sgcc": ("metric cost bounds", _cardinality),
    "sgccdp": ("metric cost bounds", _weighted_cardinality),
    "wgcc": ("metric cost bounds", _weighted_cardinality),
    "sgcckp": ("metric cost bounds", _bounded_cardinality),
    "gcc": ("bounds deltacosts", _hard_cardinality),
    "ssame": ("cost vars1 vars2", _same),
    "wsame": ("metric cost", _weighted_same),
    "wsamegcc": ("metric cost bounds", _weighted_same_cardinality),
    "sregular": ("metric cost nb_states starts ends transitions", _regular),
    "sregulardp": ("metric cost nb_states starts ends transitions", _regular),
    "wregular": ("nb_states starts ends transitions", _weighted_regular),
    "samong": ("metric cost min max values", _among),
    "samongdp": ("metric cost min max values", _among),
    "wamong": ("metric cost values min max", _among),
    "wvaramong": ("metric cost values", _variable_among),
    "woverlap": ("metric cost comparator to", _overlap),
    "wsum": ("metric cost comparator to", _sum),
    "wvarsum": ("metric cost comparator", _variable_sum),
    "max": ("defaultcost tuples", _largest),
    "smaxdp": ("defaultcost tuples", _largest),
    "knapsack": ("capacity weights", _knapsack),
    "knapsackp": ("capacity weightedvalues", _knapsack_of_values),
    "knapsackv": ("capacity weightedvalues", _knapsack_of_values),
    "clique": ("rhs values", _clique),
    "wdiverse": ("distance values", _diverse),
    "whdiverse": ("distance values", _diverse),
    "wtdiverse": ("distance values", _diverse),
    "sgrammar": ("metric cost nb_symbols nb_values start terminals non_terminals", _grammar),
    "sgrammardp": ("metric cost nb_symbols nb_values start terminals non_terminals", _grammar),
}
"""Keyword of a function of any number of variables -> its parameters in WCSP files, and the function to add it."""
