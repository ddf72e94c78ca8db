"""Search: rules, restarts, limits, interruption, optima; and that backtracking restores every domain."""

from __future__ import annotations

import gc
import itertools
import os
import random
import signal
import threading
import time
from collections.abc import Callable

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from elimina import _core, cp
from elimina.cp.search_options import VALUE_ORDERINGS, VARIABLE_ORDERINGS
from elimina.errors import InputError
from tests import calls

from .brute import found


def queens(n: int) -> tuple[cp.Model, list[cp.Expression]]:
    model = cp.Model()
    xs = model.int_vars(n, 0, n - 1, "q")
    for step in (-1, 0, 1):
        model.all_different([x + step * i for i, x in enumerate(xs)])
    return model, xs


def golomb(n: int) -> tuple[cp.Model, list[cp.Expression]]:
    model = cp.Model()
    marks = model.int_vars(n, 0, n * n)
    model.add(marks[0] == 0)
    for a, b in itertools.pairwise(marks):
        model.add(a < b)
    model.all_different([b - a for a, b in itertools.combinations(marks, 2)])
    model.minimize(marks[-1])
    return model, marks


@pytest.mark.parametrize("variable_ordering", VARIABLE_ORDERINGS)
@pytest.mark.parametrize("value_ordering", VALUE_ORDERINGS)
def test_rules_find_the_same_solutions(variable_ordering: str, value_ordering: str) -> None:
    model, xs = queens(6)
    model.search(xs[:4], variable_ordering, value_ordering)
    assert len(found(model, xs)) == 4


@pytest.mark.parametrize(
    ("value_ordering", "order"),
    [
        ("indomain_min", [0, 2, 3, 7, 8, 9]),
        ("indomain_max", [9, 8, 7, 3, 2, 0]),
        ("indomain_median", [3, 7, 2, 8, 0, 9]),
        ("indomain_middle", [3, 2, 7, 0, 8, 9]),
        ("indomain_split", [0, 2, 3, 7, 8, 9]),
        ("indomain_reverse_split", [9, 8, 7, 3, 2, 0]),
        ("indomain_interval", [0, 2, 3, 7, 8, 9]),
        ("outdomain_min", [9, 8, 7, 3, 2, 0]),
        ("outdomain_max", [0, 2, 3, 7, 8, 9]),
    ],
)
def test_order_of_values(value_ordering: str, order: list[int]) -> None:
    model = cp.Model()
    x = model.int_var([0, 2, 3, 7, 8, 9])
    model.search([x], "input_order", value_ordering)
    assert [s[x] for s in model.solutions()] == order


@pytest.mark.parametrize(
    ("variable_ordering", "first"),
    [("input_order", 0), ("first_fail", 2), ("anti_first_fail", 3), ("smallest", 1), ("largest", 3), ("max_regret", 1)],
)
def test_order_of_variables(variable_ordering: str, first: int) -> None:
    model = cp.Model()
    xs = [model.int_var(d) for d in ([1, 2, 4], [0, 3, 4], [2, 3], [1, 2, 3, 5])]
    model.search(xs, variable_ordering, "indomain_max")
    solutions = [s[xs] for s in itertools.islice(model.solutions(), 2)]
    assert sum(a != b for a, b in zip(*solutions, strict=True)) >= 1
    decided = calls.search(model, node_limit=2)  # the root, and the first decision
    assert decided.status == "unknown"
    model.search([], "input_order")
    last = solutions[0]
    assert last == [4, 4, 3, 5]
    every = [s[xs] for s in model.solutions()]
    # The variable that was decided first is the last one to leave its first value.
    assert max(range(4), key=lambda i: next(k for k, s in enumerate(every) if s[i] != last[i])) == first


@pytest.mark.parametrize("consistency", ["value", "bounds", "domain"])
def test_langford(consistency: str) -> None:
    for n, count in [(3, 2), (4, 2), (5, 0), (6, 0), (7, 52)]:
        model = cp.Model()
        first = model.int_vars(n, 0, 2 * n - 1)
        model.all_different([*first, *(x + k + 2 for k, x in enumerate(first))], consistency)
        for k, x in enumerate(first):
            model.add(x + k + 2 <= 2 * n - 1)
        assert len(found(model, first)) == count


@pytest.mark.parametrize(
    "options",
    [{}, {"free": True}, {"restarts": "luby", "restart_scale": 5}, {"restarts": "geometric", "restart_scale": 3}],
)
def test_golomb(options: dict[str, object]) -> None:
    for n, length in [(4, 6), (5, 11), (6, 17)]:
        model, _ = golomb(n)
        result = calls.search(model, **options)
        assert (result.status, result.value, result.stats["complete"]) == ("optimal", length, True)


def test_magic_squares() -> None:
    model = cp.Model()
    cells = [model.int_vars(3, 1, 9) for _ in range(3)]
    model.all_different([x for row in cells for x in row])
    lines = [*cells, *zip(*cells, strict=True), [cells[i][i] for i in range(3)], [cells[i][2 - i] for i in range(3)]]
    for line in lines:
        model.add(sum(line, start=0) == 15)
    assert len(found(model, [x for row in cells for x in row])) == 8


@pytest.mark.parametrize("seed", range(4))
def test_tour(seed: int) -> None:
    rng = random.Random(seed)
    n = 7
    cost = [[rng.randint(1, 40) for _ in range(n)] for _ in range(n)]
    model = cp.Model()
    successors = [model.int_var([j for j in range(n) if j != i]) for i in range(n)]
    model.circuit(successors)
    model.minimize(sum((model.element(cost[i], x) for i, x in enumerate(successors)), start=0))
    best = min(
        sum(cost[a][b] for a, b in zip((0, *order), (*order, 0), strict=True))
        for order in itertools.permutations(range(1, n))
    )
    result = calls.search(model, restarts="constant", restart_scale=1000) if seed % 2 else model.solve()
    assert (result.status, result.value) == ("optimal", best)


def test_maximize_and_improving_solutions() -> None:
    model = cp.Model()
    x, y = model.int_var(0, 10), model.int_var(0, 10)
    model.add(3 * x + 5 * y <= 37)
    model.maximize(4 * x + 7 * y - 100)
    values = [4 * s[x] + 7 * s[y] - 100 for s in model.solutions()]
    assert values == sorted(set(values))
    result = calls.search(model, all_solutions=True, restarts="none")
    assert (
        result.value
        == values[-1]
        == max(4 * i + 7 * j for i in range(11) for j in range(11) if 3 * i + 5 * j <= 37) - 100
    )
    assert [4 * s[x] + 7 * s[y] - 100 for s in result.solutions] == values


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("ruled", [False, True])
def test_an_objective_of_many_values_is_halved(sign: int, ruled: bool) -> None:
    """One value after another took as many solutions as there are values."""
    model = cp.Model()
    x, y = model.int_var(-(10**6), 10**6, "x"), model.int_var(0, 3, "y")
    model.add(x * sign + y <= 999)
    model.maximize(x * sign)
    if ruled:
        model.search([y])
    result = model.solve(options=cp.SearchOptions(node_limit=1000))
    assert (result.status, result.value, result["y"]) == ("optimal", 999, 0)


def test_a_constant_objective() -> None:
    model = cp.Model()
    model.bool_var()
    model.minimize(7)
    result = model.solve()
    assert (result.status, result.value) == ("optimal", 7)


def test_names_and_values() -> None:
    model, xs = queens(4)
    result = model.solve()
    assert result.assignment is not None
    assert list(dict(result.assignment).values()) == result[xs]
    assert result[xs[0] + 10] == result[xs[0]] + 10
    for name, value in dict(result.assignment).items():
        assert result[name] == value
    with pytest.raises(InputError, match="no variable named 'king'"):
        result["king"]
    with pytest.raises(InputError, match="z is not of the model"):
        result[cp.Model().int_var(0, 3, "z")]
    with pytest.raises(InputError, match="w is not of the model as it was solved"):
        result[model.int_var(0, 3, "w")]
    model.add(xs[0] == xs[1])
    with pytest.raises(InputError, match="infeasible"):
        model.solve()[xs]


def test_limits() -> None:
    model, xs = queens(50)
    model.search(xs, "input_order", "indomain_min")
    for options, name in [({"node_limit": 40}, "nodes"), ({"fail_limit": 9}, "failures")]:
        result = calls.search(model, **options)
        assert (result.status, result.stats["complete"]) == ("unknown", False)
        assert result.stats[name] in range(next(iter(options.values())), next(iter(options.values())) + 60)
    assert model.solve(solution_limit=0).status == "unknown"
    model, xs = queens(8)
    assert len(model.solve(all_solutions=True, solution_limit=5).solutions) == 5
    assert model.solve(solution_limit=5).stats["solutions"] == 5


def test_time_limit() -> None:
    # Pigeons in too few holes: comparisons of pairs do not count them.
    model = cp.Model()
    pigeons = model.int_vars(14, 0, 12)
    for one, other in itertools.combinations(pigeons, 2):
        model.add(one != other)
    before = time.perf_counter()
    result = model.solve(time_limit=0.2)
    assert result.status == "unknown"
    assert time.perf_counter() - before < 2


def creeping() -> cp.Model:
    """Bounds move by one in each call: propagation alone would take years."""
    model = cp.Model()
    x, y = model.int_vars(2, 0, 2**51)
    model.add(x < y)
    model.add(y < x)
    return model


def parity() -> cp.Model:
    """The same inside one constraint: 2 x = 2 y + 1."""
    model = cp.Model()
    x, y = model.int_vars(2, 0, 2**51)
    model.add(2 * x == 2 * y + 1)
    return model


def doubled() -> cp.Model:
    model = cp.Model()
    x, y = model.int_vars(2, 0, 2**50)
    model.post("int_eq", 2 * x, 2 * y + 1)
    return model


@pytest.mark.parametrize("make", [creeping, parity, doubled])
def test_propagation_keeps_to_the_time(make: Callable[[], cp.Model]) -> None:
    before = time.perf_counter()
    assert make().solve(time_limit=0.2).status in ("unknown", "infeasible")
    assert time.perf_counter() - before < 2


def test_many_values_of_wide_domains() -> None:
    rng = random.Random(0)
    model = cp.Model()
    x, y = model.int_var(0, 10**6), model.int_var(rng.sample(range(10**6), 3000))
    z = model.element(sorted(rng.sample(range(10**9), 2000)), x)
    model.add(x == y)
    model.add(z >= 10**8)
    before = time.process_time()
    assert model.solve().status == "feasible"
    assert time.process_time() - before < 2


INDOMAIN_ORDERINGS = ["median", "middle", "random", "interval", "split", "reverse_split", "min", "max"]


@pytest.mark.parametrize("value_ordering", INDOMAIN_ORDERINGS)
@pytest.mark.parametrize("scale", [1, -1, 3])
def test_huge_domains_with_holes_are_searched_in_few_steps(value_ordering: str, scale: int) -> None:
    """Branching skips holes at once: one value after the other would take years."""
    values = [-(2**44), -5, 0, 7, 2**31, 2**44]
    model = cp.Model()
    x = model.int_var(values)
    model.search([scale * x], "input_order", f"indomain_{value_ordering}")
    result = calls.search(model, all_solutions=True, node_limit=2000)
    assert result.stats["complete"]
    assert sorted(s[x] for s in result.solutions) == values
    model = cp.Model()
    x = model.int_var(-(2**40), 2**40)
    model.add(x != 5)
    model.search([scale * x], "input_order", f"indomain_{value_ordering}")
    assert model.solve(time_limit=5).status == "feasible"


@pytest.mark.parametrize("value_ordering", INDOMAIN_ORDERINGS)
def test_wide_domains_with_holes_that_have_a_row_are_searched_in_few_steps(value_ordering: str) -> None:
    """``all_different`` makes a row for each domain, which lacks no values until the bounds are close."""
    model = cp.Model()
    x, y = model.int_var([13_512, 951_907]), model.int_var(0, 1)
    model.all_different([x, y])
    model.search([x, y], "input_order", f"indomain_{value_ordering}")
    result = calls.search(model, all_solutions=True, node_limit=200)
    assert result.stats["complete"]
    assert len(result.solutions) == 4


def test_many_holes_of_a_huge_domain() -> None:
    model = cp.Model()
    x = model.int_var(0, 2**40)
    model.post("set_in_reif", x, [7 * k for k in range(200_000)], 0)
    result = model.solve(time_limit=20)
    assert (result.status, result[x]) == ("feasible", 1)


def test_time_is_looked_at_where_nodes_are_slow() -> None:
    model = cp.Model()
    n = 3000
    xs, y, count = model.int_vars(n, 1, n), model.int_var(1, n), model.int_var(0, n)
    model.post("count_eq", xs, y, count)
    model.search(xs, "input_order", "indomain_random")
    result = model.solve(time_limit=0.3)
    assert result.status == "unknown"
    # One call takes a few milliseconds; 16 nodes with all their calls would take seconds.
    assert result.stats["seconds"]["total"] < 1.5


def test_interruption() -> None:
    def solve_all() -> None:
        with pytest.raises(KeyboardInterrupt):
            list(creeping().solutions())

    def solve_one() -> None:
        assert creeping().solve().status == "unknown"

    for solve in (solve_one, solve_all):
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        solve()
        timer.join()


def test_interruption_while_constraints_are_posted() -> None:
    model = cp.Model()
    xs = model.int_vars(400, 0, 9)
    for x, y in itertools.combinations(xs, 2):
        model.add(x != y)
    started = time.monotonic()
    timer = threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    result = model.solve()
    timer.join()
    assert (result.status, result.ended_by) == ("unknown", "interrupt")
    assert time.monotonic() - started < 2.0
    assert set(result.stats["seconds"]) == {"post", "other", "total"}


def test_restarts_and_statistics() -> None:
    model, xs = queens(30)
    model.search(xs, "input_order", "indomain_random")
    result = calls.search(model, restarts="luby", restart_scale=2, seed=3)
    statistics = result.stats
    assert result.status == "feasible"
    assert statistics["restarts"] > 0
    assert statistics["nodes"] >= statistics["failures"] > 0
    assert 0 < statistics["peak_depth"] <= 30
    assert statistics["propagations"] > 0
    assert calls.search(model, restarts="luby", restart_scale=2, seed=3).stats["nodes"] == statistics["nodes"]


def test_end_by_a_listener() -> None:
    model, _ = queens(8)
    seen: list[cp.Solution] = []

    def listen(solution: cp.Solution) -> bool:
        seen.append(solution)
        return len(seen) < 3

    result = model.solve(all_solutions=True, on_solution=listen)
    assert len(result.solutions) == len(seen) == 3


def test_refused_orderings() -> None:
    model, xs = queens(4)
    with pytest.raises(
        InputError, match=r"unknown variable_ordering 'first_fial'; it is one of input_order, first_fail"
    ):
        model.search(xs, "first_fial")
    with pytest.raises(InputError, match=r"unknown value_ordering 'min'; it is one of indomain, indomain_min"):
        model.search(xs, value_ordering="min")
    with pytest.raises(TypeError, match=r"variable_ordering is 3 \(int\); it takes one of input_order"):
        model.search(xs, 3)
    assert model.solve().status == "feasible"


def test_the_core_refuses_what_would_crash() -> None:
    solver = _core.CpSolver()
    solver.new_variables(2, 0, 5)
    row = np.array([[7, 1, 0]])
    for act in (
        lambda: solver.post("int_eq", [row, row]),
        lambda: solver.post("int_eq", [np.array([[0, 0, 0]]), np.array([1])]),
        lambda: solver.post("int_eq", [np.array([[0, 2**40, 0]]), np.array([1])]),
        lambda: solver.post("int_eq", [np.array([[0, 1, 2**60]]), np.array([1])]),
        lambda: solver.post("int_eq", [np.array([[0, 1]]), np.array([1])]),
        lambda: solver.new_variables(2**40, 0, 1),
        lambda: solver.new_variables(1, 1, 0),
        lambda: solver.new_variable_of(np.array([], dtype=np.int64)),
        lambda: solver.undo(),
        lambda: _core.CpSearch((solver,), [(row, "best", "indomain")], None, None, None, False, 0, 1.0, 1e9, 1e9),
    ):
        with pytest.raises((ValueError, IndexError)):
            act()
    search = _core.CpSearch((solver,), [], None, None, None, False, 0, 60.0, 1e9, 1e9)
    for act in (lambda: solver.new_variables(1, 0, 1), lambda: solver.post("int_eq", [np.array([1]), np.array([1])])):
        with pytest.raises(ValueError, match="searched"):
            act()
    gc.collect()
    assert search.next(lambda: True) == "solution"

    def go_on() -> None:
        for _ in range(100):
            search.next(lambda: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        go_on()


@st.composite
def models(draw: st.DrawFn) -> tuple[cp.Model, int]:
    """Several constraints over the same few variables."""
    model = cp.Model()
    count = draw(st.integers(3, 6))
    for _ in range(count):
        model.int_var(draw(st.sets(st.integers(0, 70), min_size=2, max_size=9)))
    xs = [cp.Expression(model, {i: 1}) for i in range(count)]
    for kind in draw(
        st.lists(
            st.sampled_from(["different", "sum", "table", "count", "order", "times", "value"]), min_size=1, max_size=4
        )
    ):
        some = draw(st.permutations(xs))[:3]
        if kind == "different":
            model.all_different(some)
        elif kind == "value":
            model.all_different(some, "value")
        elif kind == "sum":
            model.add(some[0] + 2 * some[1] - some[2] <= draw(st.integers(0, 150)))
        elif kind == "table":
            row = st.tuples(*[st.integers(0, 70)] * 3)
            model.table(
                some, draw(st.lists(row, max_size=3)) + [tuple(model.bounds(x)[k % 2] for x in some) for k in range(2)]
            )
        elif kind == "count":
            model.post("count_eq", some, draw(st.integers(0, 70)), draw(st.integers(0, 1)))
        elif kind == "order":
            model.lex_lesseq(some[:2], some[1:])
        else:
            model.add(some[0] != some[1] + draw(st.integers(-5, 5)))
    return model, count


@settings(max_examples=150, deadline=None)
@given(models(), st.randoms(use_true_random=False))
def test_backtracking_restores_domains(made: tuple[cp.Model, int], rng: random.Random) -> None:
    model, _ = made
    solver, _ = model._build()
    if not solver.propagate():
        return
    stack = [solver.domains()]
    for _ in range(25):
        open_variables = [i for i, d in enumerate(stack[-1]) if len(d) > 1]
        if not open_variables or (len(stack) > 1 and rng.random() < 0.35):
            if len(stack) == 1:
                return
            stack.pop()
            solver.undo()
            assert solver.domains() == stack[-1]
            continue
        i = rng.choice(open_variables)
        if solver.decide(i, rng.choice(stack[-1][i]), rng.random() < 0.5):
            stack.append(solver.domains())
        else:
            solver.undo()
            assert solver.domains() == stack[-1]


@settings(max_examples=60, deadline=None)
@given(models())
def test_decisions_and_rules_agree(made: tuple[cp.Model, int]) -> None:
    """The same solutions by other rules, and by propagation that never prunes too much."""
    model, count = made
    xs = [cp.Expression(model, {i: 1}) for i in range(count)]
    plain = {tuple(s[xs]) for s in itertools.islice(model.solutions(), 300)}
    if len(plain) == 300:
        return
    model.search(xs, "first_fail", "indomain_split")
    assert {tuple(s[xs]) for s in model.solutions(free=True)} == plain


def test_weights_are_of_constraints_that_have_something_to_do() -> None:
    """Boussemart et al., 2004: five constraints that say nothing make no variable come first."""
    model = cp.Model()
    x, y, z = (model.int_var(0, 1, name) for name in "xyz")
    for far in range(5):
        model.post("int_ne", x, model.int_var(5, 6 + far))
    for other in (x, z):
        for _ in range(2):
            model.post("int_ne", y, other)
    model.search([x, y, z], "dom_w_deg", "indomain_min")
    assert tuple(model.solve().assignment[[x, y, z]]) == (1, 0, 1)


@pytest.mark.parametrize("bits", [12, 40])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("modes", [{"lns": True}, {"restarts": "none"}, {}], ids=["lns", "no restarts", "default"])
def test_results_of_functions_are_not_tried_value_by_value(
    bits: int, threads: int, modes: dict[str, bool | str]
) -> None:
    """A quotient of 2^bits values has fewer of them than its operand, whose four values are far apart."""
    model = cp.Model()
    x, y = model.int_var([1, 4, 5]), model.int_var([-(1 << bits), 2, 300_000, 1_048_577])
    count = model.distinct_values([model.maximum([x, 2]), abs(model.quotient(y, x))])
    options = cp.SearchOptions(**modes)
    solutions = model.solve(all_solutions=True, threads=threads, time_limit=30, options=options)
    assert len(solutions.solutions) == 12
    assert solutions.stats["nodes"] < 500
    model.maximize(count)
    best = model.solve(threads=threads, time_limit=30, options=options)
    assert (best.status, best.value) == ("optimal", 2)
    assert best.stats["nodes"] < 500
