"""Variables of billions of states that no table depends on: answers take no memory for them, or say that they would."""

from __future__ import annotations

import math

import pytest

import elimina
from elimina import JunctionTree, MemoryLimitError, Model
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
    for evidence in ({}, {"huge": 5}):
        with pytest.raises(MemoryLimitError, match=r"take 80\.0 GiB .* than 'huge', which has 2,147,483,647 states"):
            elimina.solve(model(), "mar", evidence=evidence, device="cpu")
    with pytest.raises(MemoryLimitError, match=r"needs \d+\.0 GiB on cpu and may use"):
        JunctionTree(model()).sample(2, seed=1)
