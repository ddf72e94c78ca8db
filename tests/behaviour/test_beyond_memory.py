"""The README's promise of an answer to every question whose tables do not fit, task by task."""

from __future__ import annotations

import csv
import json
import pickle
import re
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import elimina
from elimina._core import stopped
from elimina.cli.commands import commands
from elimina.methods.estimation import Estimation
from elimina.problem.tasks import TASKS, described

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SIDE = 26
MEMORY = {True: "2MiB", False: "16MiB"}
"""Limits for the models of probabilities and of costs: their copies fit, their messages do not."""


def spins(side: int = SIDE) -> elimina.Model:
    """An Ising grid, whose exact answers need tables of 2^side cells."""
    rng = np.random.default_rng(5)
    numbers = np.arange(side * side).reshape(side, side)
    signs = np.array([1, -1])
    tables = [([v], np.exp(rng.normal(0, 0.3) * signs)) for v in numbers.flat]
    for ends in (
        zip(numbers[:, :-1].flat, numbers[:, 1:].flat, strict=True),
        zip(numbers[:-1].flat, numbers[1:].flat, strict=True),
    ):
        tables += [(edge, np.exp(rng.normal(0, 0.5) * np.outer(signs, signs))) for edge in ends]
    return elimina.Model.from_arrays([2] * numbers.size, tables, sense="probability")


def random_costs() -> elimina.Model:
    """Costs between random pairs of variables: search cannot prove the best worst cost of it, as it does on grids."""
    rng, scopes = np.random.default_rng(1), set()
    while len(scopes) < 1600:
        scopes.add(tuple(sorted(rng.choice(160, 2, replace=False).tolist())))
    costs = rng.integers(0, 100, (len(scopes), 8, 8))
    costs[rng.random(costs.shape) < 0.03] = elimina.FORBIDDEN
    return elimina.Model.from_arrays([8] * 160, list(zip(sorted(scopes), costs, strict=True)))


@pytest.fixture(scope="module")
def models() -> dict[bool, elimina.Model]:
    """A model of probabilities and one of costs."""
    return {True: spins(), False: random_costs()}


def test_the_readme_promises_an_answer():
    text = " ".join(re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", README).split())
    assert "If the problem fits into memory, the answer is exact; otherwise you get bounds or an estimate" in text


@pytest.mark.parametrize("task", TASKS)
def test_a_model_beyond_memory_has_an_answer(task, models):
    description = described(task)
    model = models[description.is_sum]
    query = [v.name for v in model.variables[::9]] if description.keeps_query else None

    # On a busy machine, a single estimate may take most of a short time limit: its error is then unknown.
    for seconds in (8, 60):
        result = elimina.solve(
            model, task, query=query, device="cpu", memory=MEMORY[description.is_sum], time_limit=seconds
        )
        assert result.status in ("bounded", "estimated")
        if result.status == "bounded" or result.error is not None or result.interval is not None:
            break
    if result.status == "estimated":
        assert result.error is not None or result.interval is not None
        assert result.marginals or result.log10_z is not None or result.value is not None
    if result.status == "bounded":
        ends = [end for end in (result.lower_bound, result.upper_bound) if end is not None]
        assert ends
        assert ends == sorted(ends)
        assert result.marginals or len(ends) == 2 or not description.is_optimum
        assert result.assignment or not (description.is_optimum or description.lists_assignments)


@pytest.mark.parametrize("task", TASKS)
def test_an_exact_answer_or_an_error(task, models):
    description = described(task)
    model = models[description.is_sum]
    query = [v.name for v in model.variables[::9]] if description.keeps_query else None
    options = elimina.Options(exact=True)
    with pytest.raises((elimina.MemoryLimitError, elimina.TimeLimitError)):
        elimina.solve(
            model, task, query=query, device="cpu", memory=MEMORY[description.is_sum], time_limit=3, options=options
        )


@pytest.mark.parametrize("task", ["mar", "pr"])
def test_an_error_names_the_memory_that_an_estimate_needs(task, models):
    model = models[True]
    needed = 8 * 4 * 2 * SIDE * (SIDE - 1)
    with pytest.raises(elimina.MemoryLimitError, match="for an estimate") as caught:
        elimina.solve(model, task, device="cpu", memory=f"{needed // 4}B")
    advised = re.search(r'for an estimate, memory="(\w+)" would be enough', str(caught.value))[1]
    for memory in (advised, f"{needed}B"):
        assert elimina.solve(model, task, device="cpu", memory=memory, time_limit=30).status == "estimated"


def test_a_call_that_ends_without_an_estimate_makes_one(models, monkeypatch):
    def wait(_, deadline):
        while not stopped():
            time.sleep(0.01)
        yield from ()

    monkeypatch.setattr(Estimation, "improve", wait)
    result = elimina.solve(models[True], "mar", device="cpu", memory=MEMORY[True], time_limit=0.5)
    assert (result.status, result.ended_by) == ("estimated", "time-limit")
    assert result.error >= 0.5
    assert len(result.marginals) == SIDE**2


def test_marginal_map_by_search_is_bounded(models):
    query = [v.name for v in models[True].variables[::9]]
    options = elimina.Options(method="search")
    result = elimina.solve(
        models[True], "mmap", query=query, device="cpu", memory=MEMORY[True], time_limit=8, options=options
    )
    assert result.status == "bounded"
    assert result.upper_bound is not None
    assert result.assignment is None or set(result.assignment) == set(query)


# A smaller model for doors that have no time limit: its exact answers fit without a limit on the memory.

SMALL_SIDE, SMALL_MEMORY = 14, "128KiB"
SMALL = elimina.Options(device="cpu", memory=SMALL_MEMORY, order_seconds=0.1)
EXACT = replace(SMALL, exact=True)


@pytest.fixture(scope="module")
def small() -> elimina.Model:
    return spins(SMALL_SIDE)


@pytest.fixture(scope="module")
def exact(small) -> elimina.JunctionTree:
    return elimina.JunctionTree(small, device="cpu")


@pytest.fixture
def tree(small) -> elimina.JunctionTree:
    return elimina.JunctionTree(small, options=SMALL)


def distance(shares: np.ndarray, others: np.ndarray) -> float:
    """Return the Hellinger distance."""
    return float(np.sqrt(max(0.0, 1 - np.sqrt(shares * others).sum())))


def test_a_junction_tree_estimates(tree, exact, caplog):
    assert exact.is_exact
    assert not tree.is_exact
    assert not elimina.JunctionTree(tree.model, options=SMALL).is_exact
    assert "posteriors are estimated" in caplog.text
    assert "estimated" in repr(tree)
    assert "estimated" in tree._repr_html_()
    marginals, true = tree.marginals(), exact.marginals()
    assert exact.error == 0
    assert 0 < tree.error <= 1
    assert np.mean([distance(marginals[name], true[name]) for name in true]) < 0.1
    assert all(table.sum() == pytest.approx(1) for table in marginals.values())
    assert tree.log10_evidence == pytest.approx(exact.log10_evidence, abs=1)
    few = tree.marginals(["x3", "x7"])
    assert {name: table.tolist() for name, table in few.items()} == {
        name: marginals[name].tolist() for name in ("x3", "x7")
    }
    assert not pickle.loads(pickle.dumps(tree)).is_exact


def test_a_junction_tree_is_exact_where_evidence_makes_it_narrow(tree, exact):
    evidence = {f"x{v}": v % 2 for v in range(0, SMALL_SIDE**2, 2)}
    tree.set_evidence(evidence)
    exact.set_evidence(evidence)
    marginals, true = tree.marginals(), exact.marginals()
    assert tree.error == 0
    assert all(marginals[name] == pytest.approx(true[name]) for name in true)
    assert tree.log10_evidence == pytest.approx(exact.log10_evidence)
    exact.set_evidence({})


def test_joint_distributions_are_estimated(tree, exact):
    names = ["x30", "x31", "x45"]
    for evidence in ({}, {"x31": 1}, {"x16": [0.2, 0.7]}):
        tree.set_evidence(evidence)
        exact.set_evidence(evidence)
        table, true = tree.joint(names), exact.joint(names)
        assert table.shape == true.shape
        assert table.sum() == pytest.approx(1)
        assert 0 < tree.error <= 1
        assert distance(table, true) < 0.1
        assert table.transpose(2, 0, 1) == pytest.approx(tree.joint(["x45", "x30", "x31"]), abs=0.1)
    exact.set_evidence({})
    tree.set_evidence({})
    assert tree.entropy(names) == pytest.approx(exact.entropy(names), abs=0.3)
    with pytest.raises(elimina.MemoryLimitError, match="ask for fewer variables"):
        tree.joint([f"x{v}" for v in range(20)])


def test_questions_that_have_no_estimate_say_what_does(tree):
    with pytest.raises(elimina.MemoryLimitError, match=r"elimina\.sample"):
        tree.sample(3)
    samples = elimina.sample(tree.model, 200, seed=1, options=replace(SMALL, memory="1MiB"))
    assert not samples.is_exact
    with pytest.raises(elimina.MemoryLimitError, match="the plan needs"):
        tree.max_marginals()


def test_each_case_of_a_batch_has_its_status_and_error(tree, exact):
    narrow = {f"x{v}": 0 for v in range(0, SMALL_SIDE**2, 2)}
    cases = [{"x0": 0, "x5": 1}, narrow, {"x0": 0, "x5": 1}, {}]
    found, true = tree.batch(cases), exact.batch(cases)
    assert found.statuses.tolist() == ["estimated", "exact", "estimated", "estimated"]
    assert true.errors is None
    assert true.statuses.tolist() == ["exact"] * 4
    assert found.errors[1] == 0
    assert ((found.errors > 0) & (found.errors <= 1)).tolist() == [True, False, True, True]
    assert found.errors[0] == found.errors[2]
    assert found.log10_evidence == pytest.approx(true.log10_evidence, abs=1)
    assert found.log10_evidence[1] == pytest.approx(true.log10_evidence[1])
    for row in range(4):
        distances = [distance(found.marginals[name][row], table[row]) for name, table in true.marginals.items()]
        assert np.mean(distances) < (1e-7 if row == 1 else 0.1)
    tree.set_evidence({"x0": 1})
    contradicted = tree.batch(cases, ["x7"])
    assert contradicted.statuses.tolist() == ["infeasible", "infeasible", "infeasible", "estimated"]
    assert contradicted.errors[:3].tolist() == [0, 0, 0]
    assert contradicted.marginals.keys() == {"x7"}


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_of_estimated_cases(tree, exact, library):
    pytest.importorskip(library)
    frame = tree.batch([{"x0": 0}], ["x1"]).to_frame(library)
    names = frame.column_names if library == "pyarrow" else list(frame.columns)
    assert names == ["x1=0", "x1=1", "log10_evidence", "status", "error"]
    assert str(frame["status"][0]) == "estimated"
    assert list(exact.batch([{"x0": 0}], ["x1"]).to_frame().columns) == names[:3]


def test_exact_junction_trees_refuse_estimates(small, exact):
    with pytest.raises(elimina.MemoryLimitError, match="the plan needs"):
        elimina.JunctionTree(small, options=EXACT)
    few = replace(exact._options, exact=True)
    assert elimina.JunctionTree(small, options=few).is_exact
    with pytest.raises(elimina.MemoryLimitError):
        elimina.sample(small, 3, options=EXACT)


@pytest.fixture
def files(small, tmp_path, monkeypatch):
    """A folder with the model and two cases, where commands run."""
    monkeypatch.chdir(tmp_path)
    elimina.write(small, "grid.uai")
    Path("cases.csv").write_text("x0,x5\n0,1\n1,\n")
    return ["--memory", SMALL_MEMORY, "--device", "cpu", "--order-time", "0.1"]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_files_of_estimated_cases(files, suffix, monkeypatch):
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    # A single case has more posteriors than are written at once.
    monkeypatch.setattr("elimina.cli.cases._CELLS_AT_ONCE", 1)
    command = ["solve", "grid.uai", "--task", "mar", "--cases", "cases.csv", "--query", "x1", "-o", f"out.{suffix}"]
    ran = CliRunner().invoke(commands, [*command, *files])
    assert ran.exit_code == 0, ran.output
    if suffix == "csv":
        rows = list(csv.reader(Path("out.csv").read_text().splitlines()))
        assert rows[0] == ["x1=0", "x1=1", "log10_evidence", "status", "error"]
        assert [row[3] for row in rows[1:]] == ["estimated"] * 2
        assert all(0 < float(row[4]) <= 1 for row in rows[1:])
    elif suffix == "npz":
        with np.load("out.npz") as arrays:
            assert arrays["status"].tolist() == ["estimated"] * 2
            assert arrays["error"].shape == (2,)
    else:
        import pyarrow.parquet

        assert pyarrow.parquet.read_table("out.parquet").column_names[-2:] == ["status", "error"]
    Path(f"out.{suffix}").unlink()
    refused = CliRunner().invoke(commands, [*command, "--exact", *files])
    assert refused.exit_code == 1
    assert not Path(f"out.{suffix}").exists()


@pytest.mark.parametrize("task", TASKS)
def test_commands_answer_or_refuse(files, task, models):
    query = ["--query", "x0,x9"] if described(task).takes_query else []
    # Slices fit any memory.
    slices = ["--slices", "never"] if described(task).merges_slices else []
    model, limits = "grid.uai", [*files, "--time-limit", "5"]
    if not described(task).is_sum:
        model, limits = "costs.wcsp", ["--memory", MEMORY[False], "--device", "cpu", "--time-limit", "3"]
        elimina.write(models[False], model)
    command = ["solve", model, "--task", task, *query, *slices, *limits]
    ran = CliRunner().invoke(commands, [*command, "--json"])
    answer = json.loads(ran.output)
    assert answer["status"] in ("bounded", "estimated")
    ran = CliRunner().invoke(commands, command)
    assert ran.exit_code == 0, ran.output
    text = ran.stdout
    assert text.startswith("status:     ")
    assert [line for line in text.splitlines() if not re.match(r"[\w 0-9]+: +\S|\S+  |$", line)] == []
    assert "exact" not in text
    assert "0 bytes" not in text
    assert " inf" not in text
    assert ("about" in text) == (answer["status"] == "estimated")
    refused = CliRunner().invoke(commands, [*command, "--exact"])
    assert refused.exit_code == 1


@pytest.mark.parametrize("task", TASKS)
def test_answers_are_shown_in_every_form(task, models):
    description = described(task)
    model = models[description.is_sum]
    query = [v.name for v in model.variables[::9]] if description.keeps_query else None
    result = elimina.solve(model, task, query=query, device="cpu", memory=MEMORY[description.is_sum], time_limit=2)
    for text in (str(result), repr(result), result._repr_html_(), result.to_json()):
        assert result.status in text
    options = elimina.Options(device="cpu")
    page = elimina.report(
        model, task, query=query, memory=MEMORY[description.is_sum], time_limit=6, options=options
    )._repr_html_()
    assert result.status in page


def test_samples_are_weighted(files):
    ran = CliRunner().invoke(commands, ["sample", "grid.uai", "-n", "50", *files[2:], "--memory", "1MiB"])
    assert ran.exit_code == 0, ran.output
    assert "exact ones" in ran.stderr


def test_an_estimate_of_a_sum_has_bounds_where_no_mini_buckets_fit():
    """Messages over 700 states take more than the limit; the best value of each table bounds the sum.

    Mini-buckets alone are refused, with advice that works.
    """
    rng = np.random.default_rng(0)
    pairs = [(v, v + 1) for v in (0, 1, 3, 4, 6, 7)] + [(v, v + 3) for v in range(6)]
    factors = [(pair, np.exp(rng.normal(size=(700, 700)))) for pair in pairs]
    model = elimina.Model.from_arrays([700] * 9, factors, sense="probability")
    result = elimina.solve(model, "pr", device="cpu", memory=60_000_000)
    assert result.status in ("estimated", "bounded")
    assert result.lower_bound < result.upper_bound
    if result.log10_z is not None:
        assert result.lower_bound <= result.log10_z <= result.upper_bound
    only_mini_buckets = elimina.Options(method="mbe")
    with pytest.raises(elimina.MemoryLimitError) as caught:
        elimina.solve(model, "pr", device="cpu", memory=60_000_000, options=only_mini_buckets)
    advised = re.search(r"memory=\"(\d+MiB)\" would be enough$", str(caught.value))
    assert advised is not None, caught.value
    result = elimina.solve(model, "pr", device="cpu", memory=advised[1], options=only_mini_buckets)
    assert result.status == "bounded"
    assert result.lower_bound < result.upper_bound
