"""CPMpy's models have the same solutions by elimina as by OR-Tools: run where CPMpy is installed."""

from __future__ import annotations

import numpy as np
import pytest

cpmpy = pytest.importorskip("cpmpy")
pytestmark = pytest.mark.filterwarnings("ignore")

from cpmpy.solvers.solver_interface import ExitStatus  # noqa: E402

from elimina.adapters.cpmpy import CPM_elimina, register  # noqa: E402
from elimina.errors import UnsupportedError  # noqa: E402

THEIRS = "ortools"


@pytest.fixture(autouse=True)
def registered():
    register()


def solutions(constraints, variables, solver):
    found = set()
    model = cpmpy.Model(*constraints)
    number = model.solveAll(solver=solver, display=lambda: found.add(tuple(int(v.value()) for v in variables)))
    assert number == len(found)
    return found


def constraints_of(x, b):
    a, c, d = x
    yield [a + 2 * c - d >= 3]
    yield [b.implies(a == c), (~b).implies(c < d)]
    yield [(a == c) | (c == d) | b]
    yield [b == ((a > c) & (c > d))]
    yield [cpmpy.Xor([a == c, c == d, b])]
    yield [cpmpy.any([a == 1, ~(c != 2)]), cpmpy.all([d > 0, d < 3])]
    yield [abs(a - c) == d]
    yield [a * c == d + b]
    yield [a // (c + 1) == d]
    yield [a // c == d]
    yield [(a // c == d) == b]
    yield [a % (c + 1) == d]
    yield [a**2 == c + d]
    yield [cpmpy.max(x) == 2, cpmpy.min(x) <= b]
    yield [cpmpy.Element([3, 1, 2], a) == c]
    yield [cpmpy.Element(x, 2 - 2 * b) == d]
    yield [cpmpy.Count(x, 1) == b]
    yield [cpmpy.NValue(x) == 2]
    yield [cpmpy.Among(x, [1, 3]) == 2]
    yield [cpmpy.AllDifferent(x)]
    yield [cpmpy.AllDifferent(x) == b]
    yield [cpmpy.AllDifferent(a + 1, c, 2 * d)]
    yield [cpmpy.AllDifferentExcept0(x)]
    yield [cpmpy.AllEqual(a, c, d) | b]
    yield [cpmpy.AllEqual(a, c, d)]
    yield [cpmpy.Circuit(*x)]
    yield [cpmpy.Inverse(x, x)]
    yield [cpmpy.Table(x, [[0, 1, 2], [3, 3, 1], [9, 0, 0]])]
    yield [cpmpy.Table(x, [[0, 1, 2], [3, 3, 1]]).implies(b)]
    yield [cpmpy.NegativeTable(x, [[0, 1, 2], [3, 3, 1]])]
    yield [cpmpy.InDomain(a + c, [0, 5])]
    yield [cpmpy.GlobalCardinalityCount(x, [1, 2], [1, b])]
    yield [cpmpy.GlobalCardinalityCount(x, [1, 2], [1, 2], closed=True)]
    yield [cpmpy.LexLess([a, c], [c, d]), cpmpy.LexLessEq([d, c], [c, a])]
    yield [cpmpy.Cumulative(x, [2, 2, 1], demand=[1, 2, 1], capacity=2)]
    yield [cpmpy.Cumulative(x, [2, 2, 1], [a + 2, c + 2, d + 1], [1, 2, 1], 2)]
    yield [cpmpy.NoOverlap(x, [1, 2, 1])]
    yield [cpmpy.Increasing(x), cpmpy.IncreasingStrict([a, d])]
    yield [cpmpy.Decreasing(x), cpmpy.DecreasingStrict([a, d])]
    yield [cpmpy.IfThenElse(b, a == c, c == d)]
    yield [a > 3]
    yield [True]
    yield [False]


NUMBER = len(list(constraints_of(cpmpy.intvar(0, 3, shape=3), cpmpy.boolvar())))


@pytest.mark.parametrize("number", range(NUMBER))
def test_all_solutions(number):
    x, b = cpmpy.intvar(0, 3, shape=3, name="x"), cpmpy.boolvar(name="b")
    given = [*list(constraints_of(x, b))[number], cpmpy.sum(x) + b >= 0]
    variables = [*x, b]
    assert solutions(given, variables, "elimina") == solutions(given, variables, THEIRS)


@pytest.mark.parametrize("minimise", [True, False])
def test_objectives(minimise):
    rng = np.random.default_rng(0)
    weights, values = rng.integers(1, 9, 8), rng.integers(1, 9, 8)
    taken = cpmpy.boolvar(shape=8)
    answers = []
    for solver in ("elimina", THEIRS):
        model = cpmpy.Model(cpmpy.sum(weights * taken) <= 20, cpmpy.sum(weights * taken) >= 10)
        aim = cpmpy.sum(values * taken) + cpmpy.max([5 * taken[0], 3 * taken[1]])
        (model.minimize if minimise else model.maximize)(aim)
        assert model.solve(solver=solver)
        assert model.status().exitstatus == ExitStatus.OPTIMAL
        assert aim.value() == model.objective_value()
        answers.append(model.objective_value())
    assert answers[0] == answers[1]


def test_send_more_money():
    """The example of CPMpy's documentation."""
    s, e, n, d, m, o, r, y = letters = cpmpy.intvar(0, 9, shape=8)
    words = [sum(x * 10**power for power, x in enumerate(reversed(w))) for w in ([s, e, n, d], [m, o, r, e])]
    money = sum(x * 10**power for power, x in enumerate(reversed([m, o, n, e, y])))
    given = [cpmpy.AllDifferent(letters), sum(words) == money, s > 0, m > 0]
    found = solutions(given, letters, "elimina")
    assert found == solutions(given, letters, THEIRS) == {(9, 5, 6, 7, 1, 0, 8, 2)}


def test_the_solver_itself():
    x = cpmpy.intvar(0, 3, shape=2)
    solver = CPM_elimina(cpmpy.Model(x[0] < x[1]))
    seen = []
    assert solver.solveAll(display=lambda: seen.append(x.value().tolist()), solution_limit=2) == 2
    assert (len(seen), solver.status().exitstatus) == (2, ExitStatus.FEASIBLE)
    solver += x[0] == 2
    assert solver.solve(time_limit=10, threads=2)
    assert x.value().tolist() == [2, 3]
    solver += x[1] == 2
    assert not solver.solve()
    assert (x[0].value(), solver.status().exitstatus) == (None, ExitStatus.UNSATISFIABLE)
    assert "elimina" in cpmpy.SolverLookup.supported()
    with pytest.raises(UnsupportedError, match="no subsolver 'x'"):
        cpmpy.SolverLookup.get("elimina:x")
    solver.maximize(x[0])
    with pytest.raises(UnsupportedError, match="all optimal solutions"):
        solver.solveAll()
