"""``elimina.solve`` and ``elimina.plan``: their options, what they refuse, and models at the edges."""

from __future__ import annotations

import dataclasses
import importlib
import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import elimina
from elimina.errors import InputError, MemoryLimitError
from elimina.generate import grid_model, random_model
from elimina.methods import optimum
from elimina.model.model import Model
from elimina.model.states import StateIndex
from elimina.model.table import FORBIDDEN, Table
from elimina.model.variable import Variable
from elimina.number_texts import number_text
from elimina.planning import order as order_module
from elimina.planning import ordering
from elimina.running import sweep
from tests import calls

INT64 = np.iinfo(np.int64)


def solve(model, *arguments, **options):
    return calls.solve(model, *arguments, device="cpu", **options)


def weather():
    """Two variables with named states: P(rain), P(wet | rain)."""
    return Model(
        [Variable("rain", 2, ["no", "yes"]), Variable("wet", 2, ["no", "yes"])],
        [Table([0], [0.8, 0.2]), Table([0, 1], [[0.9, 0.1], [0.25, 0.75]])],
        sense="probability",
        children=[0, 1],
    )


def triangle():
    costs = np.array([[FORBIDDEN, 1, 4], [1, FORBIDDEN, 2], [4, 2, FORBIDDEN]])
    scopes = [("a", "b"), ("b", "c"), ("a", "c")]
    return Model.from_arrays({"a": 3, "b": 3, "c": 3}, [(scope, costs) for scope in scopes])


class TestOrders:
    @pytest.mark.parametrize("order", [["c", "a", "b"], [2, 0, 1], ("c", 0, "b"), np.array([2, 0, 1])])
    def test_names_and_indices(self, order):
        assert calls.plan(triangle(), order=order).order == (2, 0, 1)
        assert solve(triangle(), order=order).value == 7

    def test_fixed_variables_are_left_out(self):
        for order in (["c", "a", "b"], ["c", "b"]):
            assert calls.plan(triangle(), order=order, evidence={"a": 1}).order == (2, 1)

    @pytest.mark.parametrize(
        ("order", "problem"),
        [
            (["a", "b"], "lacks 1 of the 3 variables to eliminate, 'c' among them"),
            (["a", "b", "b", "c"], "names variable 'b' twice"),
            ([], "lacks 3 of the 3 variables"),
            (["a", "b", "d"], "the model has no variable 'd'"),
            ([0, 1, 3], "the model has no variable 3; indices run from 0 to 2"),
            ([0, 1, -1], "the model has no variable -1"),
            ("best", "unknown ordering method 'best'; it is one of auto, min-fill"),
        ],
    )
    def test_bad_orders(self, order, problem):
        with pytest.raises(InputError, match=problem):
            solve(triangle(), order=order)

    @pytest.mark.parametrize(
        "method", ["auto", "min-fill", "weighted-min-fill", "min-degree", "min-weight", "sweep", "pseudo-tree"]
    )
    def test_every_method_gives_the_optimum(self, method):
        model = grid_model(4, 3, 0.2, seed=3)
        expected = solve(model, order=range(16)).value
        assert solve(model, order=method, order_seconds=0.05).value == expected

    def test_a_seed_gives_the_same_order(self, monkeypatch):
        model = random_model(30, 2, 0.2, seed=1)
        search = order_module.find_order
        # By rounds: the number of rounds in a time is not the same on every run.
        monkeypatch.setattr(
            ordering, "find_order", lambda *problem, **options: search(*problem, **{**options, "iterations": 5})
        )
        orders = [calls.plan(model, order="min-fill", seed=seed).order for seed in (5, 5, 5, 6, 7, 8)]
        assert orders[0] == orders[1] == orders[2]
        assert len(set(orders)) > 1


class TestEvidence:
    @pytest.mark.parametrize(
        "evidence",
        [
            {"rain": "yes"},
            {0: StateIndex(1)},
            {"rain": StateIndex(np.int64(1))},
            {0: "yes"},
            {np.int64(0): np.str_("yes")},
        ],
    )
    def test_forms(self, evidence):
        assert solve(weather(), "pr", evidence=evidence).value == pytest.approx(0.2)
        result = solve(weather(), evidence=evidence)
        assert result.assignment == {"rain": "yes", "wet": "yes"}
        assert result.value == pytest.approx(math.log(0.15))

    @pytest.mark.parametrize(
        ("evidence", "problem"),
        [
            ({"snow": "yes"}, "no variable 'snow'"),
            ({7: "yes"}, "no variable 7; indices run from 0 to 1"),
            ({"rain": "maybe"}, "variable 'rain' has no state 'maybe'; its states are 'no', 'yes'"),
            ({"rain": "1"}, "variable 'rain' has no state '1'"),
            ({"rain": 1}, r"has no state 1; its states are 'no', 'yes'; an index is written elimina.StateIndex\(1\)"),
            ({"rain": 2}, "has no state 2; its states are 'no', 'yes'$"),
            ({"rain": True}, "has no state True"),
            ({"rain": StateIndex(2)}, "has no state of index 2; its 2 states have the indices 0 to 1"),
            ({"rain": "yes", 0: [0.5, 0.5]}, "evidence about variable 'rain' is given twice, and one of them is soft"),
            ({"rain": -1}, "has no state -1"),
            ({"rain": 0.5}, "has no state 0.5"),
            ({"rain": "yes", 0: "no"}, "evidence gives variable 'rain' two states: 'yes' and 'no'"),
        ],
    )
    def test_bad_evidence(self, evidence, problem):
        with pytest.raises(InputError, match=problem):
            solve(weather(), evidence=evidence)

    def test_of_probability_zero(self):
        model = Model.from_arrays(
            {"a": 2, "b": 2}, [(["a"], [1.0, 0.0]), (["a", "b"], np.ones((2, 2)))], sense="probability"
        )
        result = solve(model, "pr", evidence={"a": 1})
        assert (result.status, result.value, result.log10_z) == ("infeasible", 0.0, -math.inf)
        assert solve(model, "mpe", evidence={"a": 1}).status == "infeasible"
        assert solve(model, "count", evidence={"a": 1}).value == 0

    def test_of_every_variable(self):
        result = solve(weather(), "pr", evidence={"rain": "no", "wet": "yes"})
        assert result.value == pytest.approx(0.08)
        assert result.stats["induced_width"] == 0


class TestOptions:
    @pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "float32", "float64"])
    def test_dtypes(self, dtype):
        result = solve(triangle(), dtype=dtype)
        assert result.stats["dtype"] == dtype
        assert result.value == 7

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    @pytest.mark.parametrize(("upper_bound", "status"), [(None, "optimal"), (-3, "optimal"), (-4, "infeasible")])
    def test_sums_of_integers_in_floats_are_integers(self, dtype, upper_bound, status):
        model = Model.from_arrays([2], [([0], [0, 1]), ([0], [0, -5])], upper_bound=upper_bound)
        result = solve(model, dtype=dtype)
        assert result.status == status
        assert (result.lower_bound, result.upper_bound) == ((-4, -4) if status == "optimal" else (None, None))

    @pytest.mark.parametrize("upper_bound", [None, 1.0])
    def test_rounding_that_forbids_an_exact_answer_is_named(self, upper_bound):
        tables = [([0], np.array([0.0, -1e300])), ([0], np.array([0.0, 1e300]))]
        model = Model.from_arrays([2], tables, upper_bound=upper_bound)
        with pytest.raises(InputError, match=r"rounding errors of float64 leave the answer within the bounds -.* to "):
            solve(model, exact=True)

    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            ({"dtype": "int8"}, "dtype int8 does not fit integer costs"),
            ({"task": "best"}, "unknown task 'best'"),
            ({"task": "pr"}, "elimina.io.convert_sense"),
            ({"memory": -1}, "memory is -1 bytes"),
            ({"threads": 0}, "threads is 0; it must be from 1 to 1,024"),
            ({"threads": 2000}, "threads is 2000"),
            ({"time_limit": 0}, "time_limit is 0 s; it must be above 0"),
            ({"order_seconds": -1}, "order_seconds is -1"),
            ({"seed": -1}, "seed is -1"),
            ({"evidence": {None: 0}}, "not by None"),
            ({"evidence": {1.5: 0}}, "not by 1.5"),
        ],
    )
    def test_what_is_refused(self, options, problem):
        with pytest.raises(InputError, match=problem):
            solve(triangle(), **options)

    def test_unknown_device(self):
        with pytest.raises(InputError, match="unknown device 'tpu': expected auto, cpu, cuda"):
            elimina.solve(triangle(), device="tpu")

    def test_a_small_problem_stays_on_the_cpu(self):
        assert elimina.solve(triangle()).stats["device"] == "cpu"

    def test_memory_limit(self):
        model = grid_model(8, 6, 0.0, seed=1)
        plan = calls.plan(model, device="cpu", memory=10**5, order="min-fill", slices="never")
        assert not plan.fits
        with pytest.raises(MemoryLimitError) as caught:
            solve(model, method="eliminate", memory="100000B", order="min-fill", slices="never")
        message = str(caught.value)
        assert f"may use {10**5 / 1024:.1f} KiB" in message
        assert f"induced width {plan.width}" in message
        for way in ("(memory)", "(order,", "order_seconds", "another seed", "evidence", "mini-buckets"):
            assert way in message
        assert solve(model, memory=f"{plan.peak_bytes}B", order=plan.order).status in ("optimal", "infeasible")

    def test_no_machine_has_as_much_memory_as_is_allowed(self):
        plan = calls.plan(grid_model(40, 10, 0.0), device="cpu", memory=10**99, order="min-fill", order_seconds=0.1)
        assert plan.peak_bytes > 2**63
        assert not plan.fits

    def test_time_limit_while_running(self):
        hard = np.where(np.eye(400, dtype=bool), elimina.FORBIDDEN, 1)
        model = Model.from_arrays([400] * 4, [((i, j), hard) for i in range(4) for j in range(i)])
        result = solve(model, "count", order=range(4), time_limit=0.3)
        assert (result.status, result.ended_by) == ("bounded", "time-limit")
        assert result.lower_bound in (0, 1)
        assert result.upper_bound == 400**4

    def test_time_limit_while_planning(self):
        model = grid_model(10, 2, 0.0, seed=1)
        result = solve(model, time_limit=1e-4)
        assert (result.status, result.ended_by) in (("bounded", "time-limit"), ("optimal", None))

    @pytest.mark.parametrize(("module", "phase"), [(sweep, "Encoder"), (optimum, "optimum_result")])
    def test_time_limit_in_phases_that_cannot_be_interrupted(self, monkeypatch, module, phase):
        whole = getattr(module, phase)

        def slow(*arguments, **options):
            result = whole(*arguments, **options)
            time.sleep(3)
            return result

        monkeypatch.setattr(module, phase, slow)
        started = time.monotonic()
        result = solve(triangle(), order=range(3), time_limit=0.4)
        assert time.monotonic() - started < 2
        assert (result.status, result.ended_by) == ("bounded", "time-limit")
        assert result.lower_bound <= result.upper_bound == result.value

    def test_callbacks(self):
        model = Model.from_arrays([200] * 4, [((i, j), np.ones((200, 200), int)) for i in range(4) for j in range(i)])
        plans, shares = [], []
        result = solve(model, order=range(4), method="eliminate", on_plan=plans.append, progress=shares.append)
        assert [plan.width for plan in plans] == [3]
        assert shares == sorted(shares)
        assert shares
        assert 0 <= shares[0] <= shares[-1] <= 1
        assert result.stats["peak_bytes"] == plans[0].peak_bytes

    def test_progress_of_several_runs_goes_up_once(self):
        sizes = [2000, 2000, 64, *[2] * 80]
        wide, narrow = np.ones((2000, 2000), int), np.ones((2000, 64), int)
        wide[0, 0] = narrow[0, 0] = elimina.FORBIDDEN
        factors = [((0, 1), wide), ((0, 2), narrow), ((1, 2), narrow)]
        shares: list[float] = []
        result = solve(Model.from_arrays(sizes, factors), "count", order=range(83), progress=shares.append)
        assert result.value == (2000 * 2000 * 64 - 4062) * 2**80
        assert len(shares) > 1
        assert shares == sorted(shares)
        assert shares[-1] <= 1

    def test_stats(self):
        stats = solve(triangle()).stats
        assert set(stats) == {
            "induced_width", "largest_table", "total_cells", "peak_bytes", "seconds", "device", "dtype"
        }  # fmt: skip
        assert {"prepare", "order", "plan", "encode", "run"} <= set(stats["seconds"])
        assert all(seconds >= 0 for seconds in stats["seconds"].values())


class TestEdges:
    def test_no_variables(self):
        model = Model([], [Table((), 5), Table((), -2)], constant=4)
        assert dataclasses.astuple(solve(model))[:6] == ("optimal", "mpe", 7, 7, 7, {})
        assert solve(model, "count").value == 1
        assert solve(Model([], [], sense="probability"), "pr").value == 1.0

    def test_a_forbidden_constant(self):
        model = Model([Variable("a", 2)], [Table((), FORBIDDEN), Table([0], [1, 2])])
        assert solve(model).status == "infeasible"
        assert solve(model, "count").value == 0
        zero = Model([Variable("a", 2)], [Table((), 0.0)], sense="probability")
        assert solve(zero, "pr").status == "infeasible"

    def test_disconnected_parts_unused_variables_and_single_values(self):
        factors = [((0, 1), [[3, 1], [2, 5]]), ((3, 4), [[7], [4]]), ((4,), [10])]
        model = Model.from_arrays([2, 2, 6, 2, 1], factors, constant=100)
        result = solve(model)
        assert result.value == 100 + 1 + 4 + 10
        assert result.assignment == {"x0": 0, "x1": 1, "x2": 0, "x3": 1, "x4": 0}
        assert solve(model, "count").value == 2 * 2 * 6 * 2

    def test_several_functions_on_one_scope_add_up(self):
        factors = [((0, 1), [[1, 2], [3, 4]]), ((1, 0), [[10, 20], [30, 40]]), ((0, 1), [[0, 0], [0, FORBIDDEN]])]
        model = Model.from_arrays([2, 2], factors)
        assert solve(model).value == 11
        assert solve(model, evidence={"x0": 1}).value == 3 + 20

    @pytest.mark.parametrize("leaves", [17, 300])
    def test_stars(self, leaves):
        rng = np.random.default_rng(leaves)
        tables = rng.integers(0, 100, (leaves, 4, 3))
        factors = [((0, i + 1), table) for i, table in enumerate(tables)]
        model = Model.from_arrays([4] + [3] * leaves, factors)
        expected = int(tables.min(axis=2).sum(axis=0).min())
        for order in ("auto", [*range(1, leaves + 1), 0]):
            result = solve(model, order=order)
            assert result.value == expected
            assert result.stats["induced_width"] == 1
        assert solve(model, "count").value == 4 * 3**leaves

    def test_maximised_costs(self):
        factors = [((0, 1), [[3, -FORBIDDEN], [8, 5]]), ((1,), [1, 9])]
        model = Model.from_arrays([2, 2], factors, sense="max-cost", constant=-4)
        assert dataclasses.astuple(solve(model))[:6] == ("optimal", "mpe", 10, 10, 10, {"x0": 1, "x1": 1})
        assert solve(model, "count").value == 3
        allowed = Model.from_arrays([1], [((0,), [-FORBIDDEN])], sense="max-cost")
        assert solve(allowed).status == "infeasible"

    @pytest.mark.parametrize(
        ("bound", "status"), [(4, "infeasible"), (5, "infeasible"), (6, "optimal"), (None, "optimal")]
    )
    def test_an_optimum_at_the_upper_bound_is_no_solution(self, bound, status):
        model = Model.from_arrays([2, 2], [((0, 1), [[9, 5], [7, 6]])], upper_bound=bound)
        for dtype in (None, "int64", "float64"):
            assert solve(model, dtype=dtype).status == status

    @pytest.mark.parametrize(("bound", "status"), [(0.60000000001, "optimal"), (0.6, "infeasible")])
    def test_a_decimal_upper_bound(self, bound, status):
        factors = [((0,), [0.1, math.inf]), ((1,), [math.inf, 0.2]), ((2,), [0.3, math.inf])]
        model = Model.from_arrays([2, 2, 2], factors, upper_bound=bound)
        for dtype in ("float64", "float32"):
            assert solve(model, dtype=dtype).status == status

    def test_an_upper_bound_below_every_cost(self):
        model = Model.from_arrays([2], [((0,), [10, 20])], upper_bound=-(10**15))
        assert solve(model).status == "infeasible"

    @pytest.mark.parametrize("shift", [0, INT64.max - 2**54, -INT64.max + 2**54, -(2**62)])
    def test_costs_near_the_edges_of_int64(self, shift):
        near = [int(shift), int(shift) + 1]
        model = Model.from_arrays([2, 2], [((0,), near), ((0, 1), [[5, 4], [1, 2]])])
        result = solve(model)
        assert result.value == near[1] + 1
        assert isinstance(result.value, int)
        assert result.stats["dtype"] == "int16"

    def test_a_sum_beyond_int64_is_exact(self):
        big = 2**62
        model = Model.from_arrays([2] * 5, [((i,), [big, big + i]) for i in range(5)], constant=big)
        assert solve(model).value == 6 * big

    def test_a_range_that_no_integer_holds(self):
        model = Model.from_arrays([2] * 5, [((i,), [0, 2**62]) for i in range(5)])
        with pytest.raises(InputError, match="use dtype float64"):
            solve(model)
        assert solve(model, dtype="float64").value == 0

    @pytest.mark.parametrize("dtype", [None, "float32", "float64"])
    def test_costs_of_float32_arrays(self, dtype):
        model = Model.from_arrays([2, 2], [((0, 1), np.array([[0.5, 2], [np.inf, 0.25]], np.float32))])
        result = solve(model, dtype=dtype)
        assert result.value == 0.25
        assert result.assignment == {"x0": 1, "x1": 1}

    def test_float32_probabilities(self):
        result = solve(weather(), "pr", dtype="float32", evidence={"wet": "yes"})
        assert result.value == pytest.approx(0.23, rel=1e-6)
        assert result.stats["dtype"] == "float32"

    def test_ties_go_to_the_smallest_value_of_what_is_eliminated_last(self):
        model = Model.from_arrays([3, 3], [((0, 1), np.zeros((3, 3), int))])
        assert solve(model).assignment == {"x0": 0, "x1": 0}
        tied = Model.from_arrays([2, 2], [((0, 1), [[1, 0], [0, 1]])])
        assert solve(tied, order=[0, 1]).assignment == {"x0": 1, "x1": 0}
        assert solve(tied, order=[1, 0]).assignment == {"x0": 0, "x1": 1}


@given(st.integers(0, 20000), st.integers(-9, 9), st.integers(-(10**30), 10**30))
def test_integers_of_any_size_as_text(power, lead, rest):
    number = lead * 10**power + rest
    text = number_text(number)
    digits = [int(text[max(end - 4000, number < 0) : end]) for end in range(len(text), int(number < 0), -4000)]
    assert (-1) ** (number < 0) * sum(part * 10 ** (4000 * i) for i, part in enumerate(digits)) == number
    assert text.lstrip("-")[0] != "0" or text == "0"


def test_json_of_a_huge_count():
    result = solve(Model.from_arrays([256] * 1900, []), "count")
    assert f'"value": {number_text(256**1900)}, "lower_bound": null' in result.to_json()


def test_json_of_a_result():
    result = elimina.Result("infeasible", "pr", 0.0, log10_z=-math.inf)
    assert result.to_json() == (
        '{"schema": 1, "status": "infeasible", "task": "pr", "value": 0.0, "lower_bound": null, "upper_bound": null, '
        '"assignment": null, "marginals": null, "log10_z": null, "ended_by": null, "stats": {}}'
    )


@pytest.mark.parametrize("name", ["", ".cp", ".dcop", ".io", ".viz", ".reporting"])
def test_names_of_a_package(name):
    package = importlib.import_module(f"elimina{name}")
    packages = {"cp", "dcop", "distributed", "generate", "io", "viz"} if not name else set()
    assert {shown for shown in dir(package) if not shown.startswith("_")} == {*package.__all__, *packages}
    assert all(getattr(package, shown) is not None for shown in package.__all__)
    with pytest.raises(AttributeError, match=f"module 'elimina{name}' has no attribute 'minibucket'"):
        _ = package.minibucket


def test_distributed_problems_name_their_solver():
    problem = elimina.dcop.Problem.from_model(Model.from_arrays([2], [([0], [3, 4])]))
    for call in (elimina.solve, elimina.plan, elimina.JunctionTree):
        with pytest.raises(TypeError, match=r"elimina\.dcop\.solve\(problem\), or as one model: elimina\.solve"):
            call(problem)
