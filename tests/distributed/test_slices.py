"""Slices of a plan, and batches of cases, on workers of a real cluster."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time

import numpy as np
import pytest

from elimina import FORBIDDEN, MemoryLimitError, Model, Table, Variable, solve
from elimina.backends.cpu import CpuBackend
from elimina.distributed import ClusterBatch, local, solve_optimum, solve_slices
from elimina.distributed.cluster import Tasks
from elimina.errors import ClusterError, DeviceError, ImpossibleEvidenceError, InputError
from elimina.methods import slice_bounds
from elimina.methods.batch import Batch
from elimina.methods.bucket_elimination import eliminate
from elimina.methods.optimum import initial_state
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.machine import cpu_machine
from elimina.planning.options import Options
from elimina.planning.plan import RESIDENT
from elimina.planning.planner import Elimination
from elimina.planning.slicing import make_finer_plan
from elimina.problem.preparation import prepare
from elimina.running.execution import Execution
from elimina.running.plan_choice import plan_problem
from tests import calls
from tests.conftest import cuda_devices
from tests.distributed.clusters import addresses, cluster_of, count_calls, kill_at, slow_down, workers
from tests.random_models import large_relation, with_constraints

SENSES = {"mpe": "max-cost", "pr": "probability", "count": "min-cost"}


def grid(width: int, domain: int, sense: str = "min-cost", seed: int = 0, forbidden: float = 0.1) -> Model:
    """A grid with some forbidden pairs."""
    rng = np.random.default_rng(seed)
    edges = [(r * width + c, r * width + c + 1) for r in range(width) for c in range(width - 1)]
    edges += [(v, v + width) for v in range(width * (width - 1))]
    tables = []
    for edge in edges:
        values = rng.random((domain, domain)) if sense == "probability" else rng.integers(0, 50, (domain, domain))
        bad = {"probability": 0.0, "min-cost": FORBIDDEN, "max-cost": -FORBIDDEN}[sense]
        tables.append(Table(edge, np.where(rng.random((domain, domain)) < forbidden, bad, values)))
    return Model([Variable(f"x{v}", domain) for v in range(width**2)], tables, sense=sense)


def short(model: Model, task: str, device: str = "cpu", **options) -> Options:
    """Options by which a plan gets less memory than it would take."""
    whole = calls.plan(model, task, device=device, tables="dense", order=range(len(model.variables)))
    return Options(device, memory=f"{whole.peak_bytes * 2 // 3}B", order=range(len(model.variables)), **options)


def assert_same(found, expected) -> None:
    assert found.status == expected.status
    assert found.value == pytest.approx(expected.value, rel=1e-12 if expected.task == "pr" else 0)
    if expected.log10_z is not None:
        assert found.log10_z == pytest.approx(expected.log10_z, rel=1e-12)


@pytest.mark.parametrize("task", SENSES)
@pytest.mark.parametrize("seed", range(2))
def test_slices_on_workers(client, task, seed) -> None:
    model = grid(5, 3, SENSES[task], seed)
    expected = calls.solve(model, task, device="cpu", method="eliminate")
    found = solve_slices(model, task, client=client, options=short(model, task, slices=10**6))
    assert found.stats["slices"] >= found.stats["tasks"] > 1
    assert_same(found, expected)
    if task == "mpe":
        assert model.score([v.index(found.assignment[v.name]) for v in model.variables]) == expected.value


@pytest.mark.parametrize("task", SENSES)
def test_shares_make_the_whole(task, monkeypatch) -> None:
    """Any division of a plan's slices has the answer of the plan."""
    monkeypatch.setattr(slice_bounds, "MIN_BOUNDED_PLAN_SECONDS", 0.0)
    model = grid(5, 3, SENSES[task], 5)
    if task == "count":
        model = with_constraints(model)
    problem = prepare(model, task, {})
    planned = plan_problem(problem, CheckedOptions("cpu", memory=9000, order=range(25), tables="dense"))
    whole = Execution(problem, planned.plan, CpuBackend(1))
    expected = eliminate(whole, {})
    number = planned.plan.form.slices
    assert number > 8
    known = initial_state(whole)
    assert (known.get("bounds") is not None) == (task == "mpe")
    ends = [0, 1, number // 3, number - 2, number]
    parts = [
        eliminate(whole._replace(share=range(first, end), start_state=known), {})
        for first, end in itertools.pairwise(ends)
    ]
    if task == "mpe":
        assert max(part.value for part in parts if part.value is not None) == expected.value
    else:
        assert sum(part.value for part in parts) == pytest.approx(expected.value, rel=1e-12)


@pytest.mark.parametrize("memory", [None, "1GiB"])
@pytest.mark.parametrize("task", SENSES)
def test_lists_that_are_too_large_to_write_out_stay_lists(client, task, memory) -> None:
    model, expected = large_relation(task)
    found = solve_slices(model, task, client=client, options=Options(memory=memory))
    assert found.status == {"mpe": "optimal"}.get(task, "exact")
    assert found.value == pytest.approx(expected)
    if task == "mpe":
        assert solve_optimum(model, client=client, options=Options(memory=memory)).value == expected


def test_nothing_is_allowed(client) -> None:
    model = grid(4, 2, forbidden=1.0)
    assert solve_slices(model, client=client, options=Options(memory="600B")).status == "infeasible"
    assert solve_slices(model, "count", client=client, options=Options(memory="900B")).value == 0


def test_evidence(client) -> None:
    model = grid(5, 3, "probability", 4)
    evidence = {"x3": 1, "x12": 0}
    expected = solve(model, "pr", evidence=evidence, device="cpu")
    found = solve_slices(model, "pr", evidence=evidence, client=client, options=Options(memory="6000B"))
    assert_same(found, expected)
    impossible = Model([Variable("a", 2)], [Table((0,), np.array([1.0, 0.0]))], sense="probability")
    try:
        assert solve_slices(impossible, "pr", evidence={"a": 1}, client=client, options=Options()).value == 0
    except ImpossibleEvidenceError:
        pytest.fail("an impossible case is an answer")


def test_more_slices_than_memory_asks_for() -> None:
    model = grid(7, 8, forbidden=0.0)
    problem = prepare(model, "mpe", {})
    whole = plan_problem(problem, CheckedOptions("cpu", tables="dense")).plan
    assert whole.form == RESIDENT
    elimination = Elimination(problem, whole.order, cpu_machine(1), whole.memory_limit)
    finer = make_finer_plan(elimination, whole, 4)
    assert finer.form.slices >= 4
    assert finer.seconds / 4 < whole.seconds
    # One worker gains nothing.
    assert make_finer_plan(elimination, whole, 1) is whole


def test_a_plan_that_fits_is_divided_where_it_is_long(client, monkeypatch) -> None:
    monkeypatch.setattr("elimina.distributed.slices.WORTH_SECONDS", 0.0)
    model = grid(7, 7, forbidden=0.0)
    found = solve_slices(model, client=client, options=Options())
    assert found.stats["slices"] >= 3
    assert found.value == calls.solve(model, device="cpu", method="eliminate").value
    alone = solve_slices(model, client=client, options=Options(slices="never"))
    assert "slices" not in alone.stats
    assert alone.value == found.value


@pytest.mark.parametrize("task", ["mpe", "pr"])
def test_slices_of_a_lost_worker_are_done_again(task) -> None:
    model = grid(6, 4, SENSES[task], 1)
    with cluster_of(2) as client:
        kill_at(client, None, "elimina.running.sweep", "_DeviceSlices", "_move", 1)
        found = solve_slices(model, task, client=client, options=Options(memory="20000B"))
        assert found.stats["tasks"] >= 12
    assert_same(found, calls.solve(model, task, device="cpu", method="eliminate"))
    assert found.stats["lost_workers"] == 1


def test_workers_that_join_run_slices(tmp_path) -> None:
    model, answers = grid(6, 4, "min-cost", 1), []
    joined = tmp_path / "joined"
    with cluster_of(1) as client:
        slow_down(client, "elimina.running.sweep", "_DeviceSlices", "_move", 0.3, str(joined))
        (first,) = addresses(client)
        options = Options(memory="20000B")
        thread = threading.Thread(target=lambda: answers.append(solve_slices(model, client=client, options=options)))
        thread.start()
        with workers(client.scheduler.address, 1):
            client.wait_for_workers(2, timeout=120)
            joined.touch()
            thread.join()
            done = client.run(lambda dask_worker: dask_worker.state.executed_count)
    assert answers[0].value == calls.solve(model, device="cpu", method="eliminate").value
    assert (answers[0].stats["workers"], answers[0].stats["joined_workers"]) == (2, 1)
    assert all(done[address] > 1 for address in done.keys() - {first})


def test_all_workers_lost(monkeypatch) -> None:
    monkeypatch.setattr("elimina.distributed.cluster.WITHOUT_WORKERS_SECONDS", 1.0)
    with cluster_of(1) as client:
        kill_at(client, addresses(client)[0], "elimina.running.sweep", "_DeviceSlices", "_move", 1)
        with pytest.raises(ClusterError, match="all workers were lost"):
            solve_slices(grid(5, 3), client=client, options=Options())


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        ("mar", Options(), r"does not run the task mar: it runs slices of the tasks mpe, pr, count, and cases \("),
        ("mpe", Options(ibound=3), "does not take the option ibound"),
        ("mpe", Options(order="best"), "'best'"),
        ("mpe", Options(dtype="uint64"), "uint64"),
        ("mpe", Options(method="search"), "auto and eliminate, not by 'search'"),
        ("mpe", Options(method="filter"), "auto and eliminate, not by 'filter'"),
        ("pr", Options(method="mbe"), "auto and eliminate, not by 'mbe'"),
        ("count", Options(method="mbe"), "the method mbe cannot answer the task count"),
    ],
)
def test_bad_options(client, task, options, message) -> None:
    with pytest.raises(InputError, match=message):
        solve_slices(grid(3, 2), task, client=client, options=options)


def test_options_of_cases_are_checked(client) -> None:
    network = Model.from_arrays([2], [((0,), np.ones(2))], sense="probability")
    for options, message in ((Options(memory="lots"), "'lots'"), (Options(threads=0), "threads")):
        with pytest.raises(InputError, match=message):
            ClusterBatch(client, network, (0,), None, options, 3)


def test_limits(client) -> None:
    with pytest.raises(MemoryLimitError, match="the plan needs"):
        solve_slices(grid(5, 3), client=client, options=Options(memory="1000B", slices="never"))
    found = solve_slices(grid(5, 3), client=client, options=Options(), time_limit=1e-9)
    assert (found.status, found.ended_by) == ("bounded", "time-limit")
    if not cuda_devices():
        with pytest.raises(DeviceError, match="announces a GPU"):
            solve_slices(grid(3, 2), client=client, options=Options(device="cuda"))


def chain(length: int) -> Model:
    rng = np.random.default_rng(length)
    tables = [Table((0,), np.array([0.2, 0.3, 0.5]))]
    tables += [Table((v, v + 1), rng.dirichlet(np.ones(3), 3)) for v in range(length - 1)]
    return Model([Variable(f"x{v}", 3) for v in range(length)], tables, sense="probability")


def test_cases(client) -> None:
    model, rng = chain(12), np.random.default_rng(2)
    values = rng.integers(-1, 3, (1500, 3)).astype(np.int32)
    columns = (0, 5, 9)
    expected = Batch(model, columns, None, CheckedOptions("cpu"), len(values)).run(values)
    shares: list[float] = []
    found = ClusterBatch(client, model, columns, None, Options(), len(values)).run(values, shares.append)
    assert len(shares) == 6
    assert found.marginals.keys() == expected.marginals.keys()
    for name, table in expected.marginals.items():
        np.testing.assert_allclose(found.marginals[name], table, rtol=1e-12)
    np.testing.assert_allclose(found.log10_evidence, expected.log10_evidence, rtol=1e-12)
    none = ClusterBatch(client, model, columns, (3,), Options(), 0).run(values[:0])
    assert none.marginals["x3"].shape == (0, 3)


def test_cases_of_a_lost_worker_are_answered_again() -> None:
    model, rng = chain(12), np.random.default_rng(3)
    values = rng.integers(-1, 3, (3000, 3)).astype(np.int32)
    expected = Batch(model, (0, 5, 9), (4,), CheckedOptions("cpu"), len(values)).run(values)
    with cluster_of(2) as client:
        kill_at(client, None, "elimina.methods.batch", "Batch", "run", 2)
        found = ClusterBatch(client, model, (0, 5, 9), (4,), Options(), len(values)).run(values)
        assert len(addresses(client)) == 1
    np.testing.assert_allclose(found.marginals["x4"], expected.marginals["x4"], rtol=1e-12)


def test_an_answer_lost_with_its_worker_is_found_again() -> None:
    """A worker may die between the end of a task and the moment when its answer is fetched."""
    with cluster_of(2) as client:
        tasks, doomed = Tasks(client, "cpu"), addresses(client)[0]
        for _ in range(4):
            tasks.submit(time.sleep, 0.5)
        while tasks._finished.qsize() < 4:
            time.sleep(0.01)
        os.kill(client.run(os.getpid, workers=[doomed])[doomed], signal.SIGKILL)
        while not any(future.status == "lost" for future in tasks._futures.values()):
            time.sleep(0.01)
        assert [tasks.next() for _ in range(4)] == [None] * 4
        assert not tasks._futures


def test_a_model_of_costs_has_no_cases(client) -> None:
    with pytest.raises(InputError):
        ClusterBatch(client, grid(3, 2), (0,), None, Options(), 3).run(np.zeros((3, 1), dtype=np.int32))


@pytest.mark.gpu
@pytest.mark.parametrize("task", SENSES)
def test_one_worker_a_gpu(task) -> None:
    """One worker for each GPU gives the same answer as one worker."""
    model = grid(6, 4, SENSES[task], 2)
    expected = calls.solve(model, task, device="cpu", method="eliminate")
    for count in sorted({1, cuda_devices()}):
        with local(count, "cuda") as client:
            opened = count_calls(client, "elimina.backends.cuda.backend", "CudaBackend", "open")
            found = solve_slices(model, task, client=client, options=short(model, task, "cuda", slices=1000))
            assert found.stats["slices"] > 1
            assert found.stats["device"].startswith("cuda")
            assert_same(found, expected)
            # Bounds may leave no slice that could beat the best value.
            assert task == "mpe" or sum(opened().values()) > 0


@pytest.mark.gpu
def test_cases_on_gpus() -> None:
    model, rng = chain(12), np.random.default_rng(3)
    values = rng.integers(-1, 3, (3000, 3)).astype(np.int32)
    expected = Batch(model, (0, 5, 9), None, CheckedOptions("cpu"), len(values)).run(values)
    with local(cuda_devices(), "cuda") as client:
        found = ClusterBatch(client, model, (0, 5, 9), None, Options("cuda"), len(values)).run(values)
    for name, table in expected.marginals.items():
        np.testing.assert_allclose(found.marginals[name], table, rtol=1e-9)


@pytest.mark.gpu
def test_more_workers_than_gpus() -> None:
    with pytest.raises(DeviceError, match="workers need a GPU each"), local(cuda_devices() + 1, "cuda"):
        pass
