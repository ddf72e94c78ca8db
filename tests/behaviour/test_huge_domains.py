"""Variables of billions of states, of which tables list a few or none: answers take no memory for the others."""

from __future__ import annotations

import math

import numpy as np
import pytest

import elimina
from elimina import FORBIDDEN, JunctionTree, MemoryLimitError, Model, Table, Variable, dcop
from tests import calls

STATES = 2**31 - 1
MOST = 2 << 30
TABLE = [(("small",), [0.25, 0.75])]


def model(sense="probability", factors=TABLE):
    return Model.from_arrays({"huge": STATES, "small": 2} if factors else {"huge": STATES}, factors, sense=sense)


@pytest.fixture(autouse=True)
def little_memory(monkeypatch):
    """Fail at arrays of the size of the variable at once, as a small machine would after some time."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm", encoding="ascii") as sizes:
        used = int(sizes.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize("tables", ["auto", "dense", "sparse"])
@pytest.mark.parametrize("factors", [[], TABLE], ids=["alone", "beside a table"])
def test_sums_and_counts(factors, tables):
    options = {"device": "cpu", "tables": tables}
    assert calls.solve(model(factors=factors), "pr", **options).value == pytest.approx(STATES)
    assert calls.solve(model("min-cost", factors), "count", **options).value == STATES * (2 if factors else 1)
    evidence = {"huge": STATES - 1}
    assert calls.solve(model(factors=factors), "pr", evidence=evidence, **options).value == pytest.approx(1)


def test_float32_and_bounds():
    assert calls.solve(model(), "pr", device="cpu", dtype="float32").value == pytest.approx(STATES, rel=1e-5)
    assert calls.solve(model(), "pr", device="cpu", method="mbe", ibound=2).log10_z == pytest.approx(math.log10(STATES))


@pytest.mark.parametrize("method", ["auto", "eliminate", "search", "mbe"])
@pytest.mark.parametrize("sense", ["min-cost", "max-cost", "probability"])
@pytest.mark.parametrize("factors", [[], TABLE], ids=["alone", "beside a table"])
def test_optima(sense, factors, method):
    found = calls.solve(model(sense, factors), "mpe", device="cpu", method=method)
    assert found.status == "optimal"
    assert found.assignment["huge"] == 0
    assert not factors or found.assignment["small"] == (0 if sense == "min-cost" else 1)


def test_posteriors_of_others():
    found = elimina.solve(model(), "mar", query=["small"], device="cpu")
    assert found.marginals["small"][1] == pytest.approx(0.75)
    assert elimina.solve(model(), "mmap", query=["small"], device="cpu").assignment == {"small": 1}


def test_posteriors_of_all():
    found = elimina.solve(model(), "mar", device="cpu")
    assert found.status == "exact"
    assert found.marginals["huge"][5] == pytest.approx(1 / STATES)
    assert found.marginals["small"][1] == pytest.approx(0.75)
    with pytest.raises(MemoryLimitError, match=r"the posteriors take .* ask for other variables"):
        found.to_json()
    observed = elimina.solve(model(), "mar", evidence={"huge": 5}, device="cpu").marginals["huge"]
    assert (observed[5], observed[6]) == (1, 0)
    with pytest.raises(MemoryLimitError, match=r"keeps all states.*elimina\.solve merges states"):
        JunctionTree(model(), options=elimina.Options(exact=True))


def listed(sense="min-cost", default=FORBIDDEN):
    """Tables of two tuples each, of 2^31 values."""
    values = np.array([3, 1], dtype=float if sense == "probability" else int)
    tables = [
        Table([0, 1], values, sizes=[STATES, 2], rows=[[5, 1], [STATES - 1, 0]], default=default),
        Table([2, 0], values, sizes=[STATES, STATES], rows=[[5, 5], [7, STATES - 1]], default=default),
    ]
    return Model([Variable("x", STATES), Variable("y", 2), Variable("z", STATES)], tables, sense=sense)


@pytest.mark.parametrize("default", [FORBIDDEN, 2])
@pytest.mark.parametrize("method", ["auto", "eliminate", "filter", "search", "mbe"])
def test_optima_of_listed_tables(method, default):
    found = calls.solve(listed(default=default), device="cpu", method=method, time_limit=2)
    assert (found.status, found.value) == ("optimal", 2)
    assert found.assignment == {"x": STATES - 1, "y": 0, "z": 7}
    assert found.stats["seconds"]["total"] < 2
    hint = {"x": 9, "y": 1, "z": 9}
    assert calls.solve(listed(default=default), device="cpu", method=method, hint=hint).value == 2


def test_sums_of_listed_tables():
    """Each value of x that is not listed has the defaults of both tables, and so has each of z beside it."""
    model, others = listed("probability", 0.5), STATES - 1
    x = {5: (3 + 0.5) * (3 + 0.5 * others), STATES - 1: (1 + 0.5) * (1 + 0.5 * others)}
    total = sum(x.values()) + (STATES - 2) * (0.5 + 0.5) * 0.5 * STATES
    assert calls.solve(model, "pr", device="cpu").value == pytest.approx(total)
    assert calls.solve(model, "pr", device="cpu", tables="sparse").value == pytest.approx(total)
    assert calls.solve(model, "mmap", query=["x"], device="cpu").assignment == {"x": 5}
    assert calls.solve(model, "count", device="cpu").value == 2 * STATES**2
    assert calls.solve(listed(default=2), "count-optima", device="cpu").count == 1


def test_agents():
    for algorithm in ("dpop", "mb-dpop"):
        problem = dcop.Problem.from_model(listed(default=2))
        found = calls.solve_by_agents(problem, algorithm, memory="1MB" if algorithm == "mb-dpop" else None)
        assert found.assignment == {"x": STATES - 1, "y": 0, "z": 7}


@pytest.mark.parametrize("suffix", ["wcsp", "cfn"])
def test_files_that_list_no_states(suffix, tmp_path):
    elimina.write(listed(default=2), tmp_path / f"m.{suffix}")
    model = elimina.read(tmp_path / f"m.{suffix}")
    assert model.sizes == (STATES, 2, STATES)
    assert [table.rows.tolist() for table in model.factors] == [[[5, 1], [STATES - 1, 0]], [[5, 5], [7, STATES - 1]]]


def test_files_that_list_all_states(tmp_path):
    table = Table([0], [0.25, 0.75], sizes=[STATES], rows=[[3], [9]], default=0.0)
    network = Model([Variable("x", STATES)], [table], sense="probability", children=[0])
    for suffix in ("bif", "xmlbif", "uai"):
        with pytest.raises(elimina.InputError, match=r"2,147,483,647 states|2147483647 entries"):
            elimina.write(network, tmp_path / f"m.{suffix}")
    for suffix in ("yaml", "xml"):
        with pytest.raises(elimina.InputError, match="variable 'x' has 2,147,483,647 states"):
            dcop.write(dcop.Problem.from_model(listed()), tmp_path / f"m.{suffix}")


def test_likelihoods_of_a_few_states():
    """They are refused, and the factor that the error names does the same."""
    model = listed("probability", 0.0)
    with pytest.raises(elimina.InputError, match="add a factor that lists the states instead"):
        elimina.solve(model, "pr", evidence={"x": {5: 0.5, 7: 0.25}})
    soft = Table([0], [0.5, 0.25], sizes=[STATES], rows=[[5], [7]], default=0)
    assert elimina.solve(Model(model.variables, [*model.factors, soft], sense="probability"), "pr").value == 4.5
