"""Models of constraints as graphical models, and the other way round: both engines find the same."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina import cp
from elimina.cp import to_graphical
from elimina.errors import FormatError, InputError, UnsupportedError
from elimina.model.table import FORBIDDEN, forbidden_value
from tests.behaviour.test_growth import assert_in_proportion
from tests.cp.test_flatzinc_constraints import SIGNATURES, Maker
from tests.reference import flatzinc as reference

SMALL = {"by its rows": 1 << 10, "in small tables": 0}


def read(folder: Path, text: str) -> cp.Model:
    path = folder / "model.fzn"
    path.write_text(text)
    return cp.read(path)


def count(model: cp.Model) -> int:
    return int(elimina.solve(model.to_model(), "count").value)


@pytest.mark.parametrize("small", SMALL)
@pytest.mark.parametrize("name", SIGNATURES)
def test_the_count_of_each_constraint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, small: str) -> None:
    monkeypatch.setattr(to_graphical, "_MAX_ENUMERATED_CELLS", SMALL[small])
    maker = Maker(random.Random(name))
    for ties in (0, 0, 0, 0, 0, 0, 1, 2):
        text = maker.model([name], ties)
        expected = sum(1 for _ in reference.solutions(reference.read(text)))
        assert count(read(tmp_path, text)) == expected, text


@pytest.mark.parametrize("small", SMALL.values())
@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(sorted(SIGNATURES)), min_size=2, max_size=5), st.randoms(use_true_random=False))
def test_the_optimum_of_several_constraints(
    tmp_path_factory: pytest.TempPathFactory, small: int, names: list[str], rng: random.Random
) -> None:
    text = Maker(rng).model(names, rng.randint(0, 2))
    if rng.random() < 0.5:
        total = "var -100..100: total; constraint int_lin_eq([2,-1,1,-1],[x,y,z,total],1);"
    else:
        total = "var -6..9: total; constraint int_lin_eq([1,-3,-1],[w,x,total],0);"
    goal = rng.choice(("minimize", "maximize"))
    folder = tmp_path_factory.mktemp("fzn")
    model = read(folder, text.replace("solve satisfy;", f"{total} solve {goal} total;"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(to_graphical, "_MAX_ENUMERATED_CELLS", small)
        graphical = model.to_model()
    found, searched = elimina.solve(graphical), model.solve()
    if searched.assignment is None:
        assert found.status == "infeasible"
        return
    assert found.value == searched.value, text
    values = {name: int(value) for name, value in found.assignment.items() if name in "xyzwabc"}
    assert reference.violated(reference.read(text), values) == []
    everything = read(folder, text.replace("solve satisfy;", f"{total} solve satisfy;"))
    assert elimina.solve(graphical, "count").value == len(everything.solve(all_solutions=True).solutions)


def test_queens() -> None:
    model = cp.Model()
    q = model.int_vars(6, 0, 5, "q")
    for xs in (q, [x + i for i, x in enumerate(q)], [x - i for i, x in enumerate(q)]):
        model.all_different(xs)
    assert count(model) == 4
    first = elimina.solve(model.to_model()).assignment
    assert sorted(first) == [f"q[{i}]" for i in range(6)]


def test_a_wide_sum_takes_few_variables_a_table() -> None:
    model = cp.Model()
    xs = model.bool_vars(40, "x")
    model.add(sum(xs) == 20)
    graphical = model.to_model(rows=100)
    assert max(len(f.scope) for f in graphical.factors) <= 3
    assert elimina.solve(graphical, "count").value == 137846528820  # 40 over 20


def test_values_are_states_and_objectives_are_costs() -> None:
    model = cp.Model()
    x, y = model.int_var([-3, 1, 5], name="x"), model.int_var(0, 9, "y")
    model.add(x + y <= 7)
    model.maximize(2 * x + 3 * y + 4)
    graphical = model.to_model()
    assert graphical.variables[0].states == (-3, 1, 5)
    found = elimina.solve(graphical)
    assert (found.value, found.assignment) == (25, {"x": -3, "y": 9})
    assert model.solve().value == 25
    # Solving leaves nothing behind.
    assert len(model.to_model().variables) == 2


def test_a_wide_domain_with_holes_keeps_its_values(tmp_path: Path) -> None:
    model = cp.Model()
    x, y = model.int_var([0, 5, 70_000, 10**12], name="x"), model.int_var(0, 2, "y")
    model.add(x + y != 5)
    assert model.propagated() == [[0, 5, 70_000, 10**12], [0, 1, 2]]
    assert count(model) == len(model.solve(all_solutions=True).solutions) == 11
    model.minimize(-3 * x + y)
    assert elimina.solve(model.to_model()).value == model.solve().value == -3 * 10**12
    model.add(x <= 80_000)
    model.add(x != 70_000)
    assert model.propagated() == [[0, 5], [0, 1, 2]]
    assert count(read(tmp_path, "var {1, 9, 70000}: x; var {-70000, 1, 70001}: y; solve satisfy;")) == 9
    assert count(read(tmp_path, "var {-2147483648, 2147483647}: x; var 0..2: y; solve satisfy;")) == 6
    dense = cp.Model()
    z = dense.int_var(range(0, 400_000, 2), name="z")
    dense.add(z >= 399_990)
    assert dense.propagated() == [[399_990, 399_992, 399_994, 399_996, 399_998]]
    dense = cp.Model()
    z = dense.int_var(range(0, 240_000, 2), name="z")
    for value in range(0, 100, 2):
        dense.add(z != value)
    assert count(dense) == 120_000 - 50


def test_a_wide_domain_has_the_values_that_constraints_list() -> None:
    model = cp.Model()
    x, y = model.int_var(-(2**40), 2**40, "x"), model.int_var(0, 3, "y")
    model.table([x, 3 - y], [(2**30, 1), (-(2**30), 2), (0, 3), (7, 9)])
    assert count(model) == len(model.solve(all_solutions=True).solutions) == 3
    model.member(2 * x + 1, [1, 4, 2**31 + 1, 2**50])
    assert count(model) == len(model.solve(all_solutions=True).solutions) == 2
    model.member(x, [5, 7])
    assert count(model) == len(model.solve(all_solutions=True).solutions) == 0


def test_equations_carry_listed_values_to_wide_domains(tmp_path: Path) -> None:
    model = cp.Model()
    x, y, z = model.int_vars(3, -(2**40), 2**40)
    model.member(x, [-(2**30), 1, 2, 7])
    model.add(3 * y + 2 * x == 11)  # of the listed values, only 1 and 7 leave a multiple of 3
    model.add(z == 4 - y)
    assert count(model) == len(model.solve(all_solutions=True).solutions) == 2
    model.add(z != 1)
    assert count(model) == len(model.solve(all_solutions=True).solutions) == 1
    model.member(y, [5])
    assert count(model) == 0
    domain = "var {-1200000, 0, 2}"
    assert count(read(tmp_path, f"{domain}: x; {domain}: y; constraint int_eq(x, y); solve satisfy;")) == 3


def test_no_solution() -> None:
    model = cp.Model()
    x = model.int_var(0, 3, "x")
    model.add(x >= 4)
    assert elimina.solve(model.to_model()).status == "infeasible"
    assert count(model) == 0
    # Not by propagation alone.
    model = cp.Model()
    xs = model.int_vars(4, 0, 2)
    for i, k in itertools.combinations(range(4), 2):
        model.add(xs[i] != xs[k])
    assert count(model) == 0
    assert cp.Model().to_model().variables == ()


@pytest.mark.parametrize(
    ("post", "message"),
    [
        (
            lambda m, x: m.subcircuit(x),
            r"constraint 1, subcircuit\(x\[0\], x\[1\], x\[2\], x\[3\], \.\.\.\): .* more than 50",
        ),
        (lambda m, x: m.product(x[0], x[1]), r"constraint 1, int_times\(x\[0\], x\[1\], _8\): .* more than 50"),
        (lambda m, x: m.add(x[0] + 3 * x[1] + x[2] <= x[3]), r"constraint 1, int_lin_le.*: .* assignments to check"),
        (lambda m, x: m.table(x[:2], itertools.product(range(8), range(8))), r"table_int.* 64 tuples, more than 50"),
        (
            lambda m, x: m.maximize(2**29 * m.int_var([2**50, 2**50 + 3], name="far")),
            r"the objective's term .* \* far is beyond",
        ),
        (lambda m, x: m.int_var(0, 60, "wide"), r"variable wide has 61 values, more than 50"),
    ],
)
def test_what_is_too_large_is_named(post: object, message: str) -> None:
    model = cp.Model()
    post(model, model.int_vars(8, 0, 7, "x"))
    with pytest.raises(InputError, match=message):
        model.to_model(rows=50)


def random_costs(rng: random.Random, sense: str, dtype: type) -> elimina.Model:
    sizes = [rng.randint(1, 4) for _ in range(rng.randint(1, 6))]
    factors = []
    for _ in range(rng.randint(0, 8)):
        scope = rng.sample(range(len(sizes)), rng.randint(0, min(3, len(sizes))))
        shape = [sizes[v] for v in scope]
        values = np.array([rng.randint(-9, 9) for _ in range(int(np.prod(shape)))]).reshape(shape).astype(dtype)
        worst = forbidden_value(sense, dtype)
        values = np.where(np.array([rng.random() < 0.2 for _ in range(values.size)]).reshape(shape), worst, values)
        factors.append((scope, values))
    bound = rng.choice((None, rng.randint(-10, 20)))
    return elimina.Model.from_arrays(sizes, factors, sense=sense, constant=dtype(rng.randint(-3, 3)), upper_bound=bound)


@settings(max_examples=150, deadline=None)
@given(
    st.randoms(use_true_random=False),
    st.sampled_from(["min-cost", "max-cost"]),
    st.sampled_from([np.int64, np.float64]),
)
def test_cost_functions(rng: random.Random, sense: str, dtype: type) -> None:
    graphical = random_costs(rng, sense, dtype)
    model = cp.Model.from_model(graphical)
    found = elimina.solve(graphical)
    searched = model.solve()
    assert (searched.status == "infeasible") == (found.status == "infeasible")
    if searched.assignment is not None:
        assert graphical.score(searched[[model[v.name] for v in graphical.variables]]) == found.value
        assert searched.value in (found.value, None if found.value == 0 else found.value)
    # And back again.
    again = elimina.solve(model.to_model())
    assert (again.status, again.value or 0) == (found.status, found.value or 0)


def test_sparse_functions() -> None:
    variables = [elimina.Variable(f"x{i}", 3) for i in range(4)]
    rows = [[0, 1, 2, 0], [2, 2, 1, 1], [1, 0, 0, 2]]
    hard = elimina.Table([0, 1, 2, 3], [5, 3, 4], sizes=[3] * 4, rows=rows, default=FORBIDDEN)
    soft = elimina.Table([1, 3], [0, 2], sizes=[3, 3], rows=[[2, 1], [0, 2]], default=7)
    found = cp.Model.from_model(elimina.Model(variables, [hard, soft])).solve()
    assert (found.value, dict(found.assignment)) == (3, {"x0": 2, "x1": 2, "x2": 1, "x3": 1})


def test_a_cost_function_in_a_model() -> None:
    model = cp.Model()
    x, y = model.int_vars(2, 0, 3)
    apart = model.add_cost([x, y], [[abs(i - j) for j in range(4)] for i in range(4)])
    rare = model.add_cost([x], {(0,): 5, (2,): 1, (3,): 9})
    assert model.add_cost([y], np.zeros(4)).terms == {}
    model.add(x + y == 5)
    model.minimize(apart + rare)
    found = model.solve()
    assert (found.value, found[x, y], found[apart], found[rare]) == (2, [2, 3], 1, 1)
    nothing = cp.Model()
    nothing.add_cost([nothing.bool_var()], {})
    assert nothing.solve().status == "infeasible"


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ([0.5, 1], "whole numbers"),
        ([2.0**60, 1], "whole numbers"),
        ([float("nan"), 1], "whole numbers"),
        ([[1, 2]], "an array of as many axes, not of 2"),
        ({(1, 2): 3}, "values of 1 variable"),
        ({("a",): 3}, "a value is a whole number"),
        ([1 + 2j, 3], "costs are numbers"),
    ],
)
def test_costs_that_cannot_be(costs: object, message: str) -> None:
    model = cp.Model()
    with pytest.raises(InputError, match=message):
        model.add_cost([model.bool_var()], costs)


def test_models_that_have_no_whole_costs() -> None:
    with pytest.raises(InputError, match="2 decimals: multiply them by 10\\^2"):
        cp.Model.from_model(elimina.Model.from_arrays([2], [([0], [0.25, 1])]))
    with pytest.raises(InputError, match="convert_sense"):
        cp.Model.from_model(elimina.Model.from_arrays([2], [([0], [0.25, 1])], sense="probability"))


def test_names_of_a_file(tmp_path: Path) -> None:
    model = read(
        tmp_path,
        "var 1..3: a; var 1..3: b; var bool: c :: output_var; var -4..9: d :: output_var;"
        "array [1..4] of var int: q :: output_array([0..1, 1..2]) = [a, b, a, 7];"
        "constraint int_lin_eq([1, 1], [b, d], 5); constraint int_lt(a, b); solve satisfy;",
    )
    found = model.solve(all_solutions=True)
    assert {name: model.bounds(model[name]) for name in ("c", "q[0,1]")} == {"c": (0, 1), "q[0,1]": (1, 3)}
    for solution in found.solutions:
        values = dict(solution)
        assert values["q[0,1]"] == values["q[1,1]"] < values["q[0,2]"] == 5 - values["d"]
        assert values["q[1,2]"] == 7
    assert len(found.solutions) == count(model) == 6
    with pytest.raises(InputError, match="no variable named 'e'"):
        model["e"]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (
            "var 1..2: x;\nsolve satisfy",
            FormatError,
            r"model\.fzn:2: expected ';', found the end of the file \(column 14\)",
        ),
        ("var float: f; solve satisfy;", UnsupportedError, r"model\.fzn:1:12: unsupported"),
        ("var 1..2: x; constraint int_ne(x); solve satisfy;", FormatError, "2 arguments"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read(tmp_path, text)


def test_reading_names_takes_time_in_proportion(tmp_path: Path) -> None:
    def reading(count: int) -> Callable[[], object]:
        text = "".join(f"var 0..1: x{i} :: output_var;\n" for i in range(count)) + "solve satisfy;\n"
        return lambda: read(tmp_path, text)[f"x{count - 1}"]

    assert_in_proportion(reading(750), reading(6000))


COUNTS = {"nqueens_4": 2, "nqueens_8": 92, "langford_2_3": 2, "langford_2_4": 2, "langford_2_7": 52, "magicsq_3": 8}


@pytest.mark.data
@pytest.mark.parametrize("name", COUNTS)
def test_real_counts(data_dir: Path, name: str) -> None:
    model = cp.read(data_dir / "minizinc" / "flatzinc_derived" / f"{name}.fzn")
    assert count(model) == COUNTS[name]
    assert len(model.solve(all_solutions=True).solutions) == COUNTS[name]


@pytest.mark.data
@pytest.mark.parametrize("name", ["random_small/1", "random_small/22", "toulbar2_validation/default/latin"])
def test_real_costs(data_dir: Path, name: str) -> None:
    graphical = elimina.read(data_dir / "wcsp" / f"{name}.wcsp")
    found = cp.Model.from_model(graphical).solve()
    assert (found.status, found.value) == ("optimal", elimina.solve(graphical).value)


@pytest.mark.parametrize(
    ("name", "use"),
    [("a.yaml", "elimina.dcop.read"), ("a.wcsp", "elimina.read"), ("a.tsp", "elimina.cp.read_tsp")],
)
def test_a_model_of_another_kind_names_its_reader(tmp_path: Path, name: str, use: str) -> None:
    (tmp_path / name).write_text("name: meetings\n")
    with pytest.raises(InputError, match=f" are for {re.escape(use)}$"):
        cp.read(tmp_path / name)
