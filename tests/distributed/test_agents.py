"""Agents on workers of a real cluster: the answers of the centralised engine, whichever worker is lost."""

from __future__ import annotations

import math
import os
import signal
import threading
import time

import numpy as np
import pytest
from distributed.comm import tcp

from elimina import MemoryLimitError, Model, Table, Variable, solve
from elimina.dcop import AgentOptions, Problem
from elimina.distributed import local, solve_agents
from elimina.distributed.cluster import workers_for
from elimina.errors import ClusterError, DeviceError, InputError
from tests import calls
from tests.calls import solve_by_agents as simulate
from tests.conftest import cuda_devices
from tests.dcop.running import random_problem
from tests.distributed.clusters import addresses, cluster_of, count_calls, kill_at, slow_down, workers

AGENT = ("elimina.dcop.agent", "Agent")
AGENT_WORK = (*AGENT, "work")
AGENT_HOST_BEGIN = ("elimina.distributed.agent_host", "AgentHost", "begin")


def narrow_problem(variables: int, seed: int, domain: int = 3, reach: int = 25) -> Problem:
    """A problem that is nearly a tree, an agent a variable."""
    rng = np.random.default_rng(seed)
    edges = {(int(rng.integers(max(0, v - reach), v)), v) for v in range(1, variables)}
    edges |= {(v - 2, v) for v in range(4, variables, 40)}
    tables = [Table(edge, rng.integers(0, 99, (domain, domain))) for edge in sorted(edges)]
    return Problem.from_model(Model([Variable(f"x{v}", domain) for v in range(variables)], tables))


def wide_problem(domain: int, branches: int = 2) -> Problem:
    """Five variables that all share tables, and some that depend on all five: a message of domain^5 cells each."""
    rng = np.random.default_rng(domain)
    top = range(5)
    edges = [(a, b) for a in top for b in top if a < b]
    edges += [(a, 5 + branch) for branch in range(branches) for a in top]
    tables = [Table(edge, rng.integers(0, 99, (domain, domain))) for edge in edges]
    return Problem.from_model(Model([Variable(f"x{v}", domain) for v in range(5 + branches)], tables))


@pytest.mark.parametrize("kind", ["random", "scale-free", "grid"])
def test_random_problems(client, kind) -> None:
    for seed in range(8):
        problem = random_problem(kind, seed)
        expected = solve(problem.model)
        found = solve_agents(problem, client=client)
        assert found.status == expected.status
        assert found.value == pytest.approx(expected.value, abs=1e-9) if expected.value is not None else True
        if found.assignment:
            chosen = [v.index(found.assignment[v.name]) for v in problem.model.variables]
            assert problem.model.score(chosen) == found.value


@pytest.mark.parametrize("seed", range(3))
def test_bounds_are_those_of_simulated_agents(client, seed) -> None:
    problem = random_problem("random", 100 + seed, most=12, least=2)
    expected = simulate(problem, "adpop", ibound=2)
    found = solve_agents(problem, "adpop", client=client, options=AgentOptions(ibound=2))
    assert (found.status, found.value) == (expected.status, expected.value)
    assert (found.lower_bound, found.upper_bound) == (expected.lower_bound, expected.upper_bound)
    same = ("induced_width", "depth", "largest_table", "total_operations", "parts", "dtype")
    assert [found.stats[name] for name in same] == [expected.stats[name] for name in same]
    for kind in ("util", "value", "visit", "return"):
        assert found.stats["messages"].get(kind) == expected.stats["messages"].get(kind)


def test_fixed_ancestors(client) -> None:
    problem = wide_problem(4)
    found = solve_agents(problem, "mb-dpop", memory="20000B", client=client)
    assert found.value == solve(problem.model).value
    assert found.stats["messages"]["context"] > 1


@pytest.mark.parametrize(
    ("method", "number"),
    [("__init__", 2), ("start", 5), ("receive", 1), ("receive", 60), ("receive", 250), ("work", 1), ("work", 9)],
)
def test_lost_worker(method, number) -> None:
    problem = narrow_problem(60, number)
    with cluster_of(2) as client:
        kill_at(client, addresses(client)[0], *AGENT, method, number)
        found = solve_agents(problem, client=client)
    assert found.value == solve(problem.model).value
    assert found.stats["lost_workers"] == 1
    assert found.stats["restarted_agents"] in (30, 60)


@pytest.mark.parametrize("number", [1, 12])
def test_lost_while_values_are_chosen(number) -> None:
    """The tree is known: only the lost worker's agents start again, and are sent again what they need."""
    problem = narrow_problem(60, number)
    with cluster_of(3) as client:
        kill_at(client, addresses(client)[1], "elimina.dcop.dpop", "Bucket", "decide", number, after=0.7)
        found = solve_agents(problem, client=client)
    assert found.value == solve(problem.model).value
    assert found.stats["restarted_agents"] == 20
    assert found.stats["messages"]["value"] >= 59


@pytest.mark.parametrize("owner", [AGENT, ("elimina.dcop.dpop", "Bucket")])
def test_a_worker_that_joined_gets_the_agents_of_a_lost_one(owner, tmp_path) -> None:
    """Lost while tables are made, or while values are chosen; the tree may be known by then or not."""
    problem, answers, lost = narrow_problem(60, 5), [], tmp_path / "lost"
    with cluster_of(2) as client:
        slow_down(client, *owner, "work" if owner == AGENT else "decide", 0.0, until=str(lost))
        first = min(client.run(os.getpid).values())
        thread = threading.Thread(target=lambda: answers.append(solve_agents(problem, client=client)))
        thread.start()
        with workers(client.scheduler.address, 1):
            client.wait_for_workers(3, timeout=60)
            os.kill(first, signal.SIGKILL)
            lost.touch()
            thread.join()
    stats = answers[0].stats
    assert answers[0].value == solve(problem.model).value
    assert (stats["workers"], stats["lost_workers"], stats["joined_workers"]) == (2, 1, 1)
    assert stats["restarted_agents"] in (30, 60)


def test_two_workers_lost() -> None:
    problem = narrow_problem(90, 7)
    with cluster_of(3) as client:
        first, second, _ = addresses(client)
        kill_at(client, first, "elimina.dcop.dpop", "Bucket", "decide", 3)
        kill_at(client, second, "elimina.dcop.dpop", "Bucket", "decide", 35)
        found = solve_agents(problem, client=client)
    assert found.value == solve(problem.model).value
    assert found.stats["lost_workers"] == 2


def test_lost_in_the_middle_of_fixed_ancestors() -> None:
    problem = wide_problem(4)
    with cluster_of(2) as client:
        kill_at(client, addresses(client)[0], *AGENT, "work", 4)
        found = solve_agents(problem, "mb-dpop", memory="20000B", client=client)
    assert found.value == solve(problem.model).value
    assert found.stats["restarted_agents"] == 7


def test_all_workers_lost(monkeypatch) -> None:
    monkeypatch.setattr("elimina.distributed.agents._REPLACEMENT_SECONDS", 0.5)
    with cluster_of(1) as client:
        kill_at(client, addresses(client)[0], *AGENT, "work", 3)
        with pytest.raises(ClusterError, match=r"all 1 workers were lost, and no other one came within 0\.5 s"):
            solve_agents(narrow_problem(20, 1), client=client)


@pytest.mark.parametrize("slow", [AGENT_HOST_BEGIN, AGENT_WORK], ids=["start", "work"])
@pytest.mark.parametrize("cause", ["interrupt", "time-limit"])
def test_the_end_of_a_call(tmp_path, slow, cause) -> None:
    """The best assignment of a local search and a bound, also while a worker does not answer."""
    problem = narrow_problem(30, 1)
    with cluster_of(2) as client:
        slow_down(client, *slow, 0.0, str(tmp_path / "end"))
        interrupt = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
        if cause == "interrupt":
            interrupt.start()
        started = time.monotonic()
        try:
            found = solve_agents(problem, client=client, time_limit=1.0 if cause == "time-limit" else None)
        finally:
            interrupt.cancel()
            (tmp_path / "end").touch()
    assert found.stats["seconds"]["total"] <= time.monotonic() - started
    assert 0.9 < found.stats["seconds"]["total"] < 3.0
    assert (found.task, found.status, found.ended_by) == ("dcop", "bounded", cause)
    assert found.lower_bound <= solve(problem.model).value <= found.value
    assert found.stats["agents"] == 30


def test_nannies_replace_the_only_worker() -> None:
    problem = narrow_problem(30, 1)
    with local(1) as client:
        kill_at(client, addresses(client)[0], *AGENT, "work", 3)
        found = solve_agents(problem, client=client)
    assert found.value == solve(problem.model).value
    assert found.stats["lost_workers"] == 1


def test_a_thousand_agents_on_four_workers_one_of_which_is_lost() -> None:
    problem = narrow_problem(1000, 3)
    with cluster_of(4) as client:
        kill_at(client, addresses(client)[2], *AGENT, "work", 100)
        found = solve_agents(problem, client=client)
    assert found.value == solve(problem.model).value
    assert (found.stats["agents"], found.stats["workers"], found.stats["lost_workers"]) == (1000, 4, 1)


def test_tables_go_from_worker_to_worker(client, monkeypatch) -> None:
    """The scheduler and the client are in this process: what it reads is far less than what workers send."""
    problem = wide_problem(24, branches=4)
    read, plain = [0], tcp.read_bytes_rw

    async def counting(stream, n):
        read[0] += n
        return await plain(stream, n)

    monkeypatch.setattr(tcp, "read_bytes_rw", counting)
    found = solve_agents(problem, client=client)
    assert found.value == solve(problem.model).value
    assert found.stats["transferred_bytes"] > 10e6
    assert 0 < read[0] < found.stats["transferred_bytes"] / 20


def test_errors_of_agents(client) -> None:
    with pytest.raises(MemoryLimitError, match=r"agent 'x\d' needs .*give more"):
        solve_agents(wide_problem(6), client=client, memory="1000B")
    # The cluster is as good as before.
    assert math.isfinite(solve_agents(wide_problem(3), client=client).value)
    far = Model([Variable("a", 2)], [Table((0,), np.array([-(2**62), 2**62]))])
    with pytest.raises(InputError, match="add up to"):
        solve_agents(Problem.from_model(far), client=client)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "adpop"}, "adpop needs an i-bound"),
        ({"algorithm": "mb-dpop"}, "mb-dpop needs a memory limit"),
        ({"agents": "tpu"}, "cpu or cuda, not on 'tpu'"),
        ({"heuristic": "best"}, "unknown heuristic"),
    ],
)
def test_bad_options(client, options, message) -> None:
    with pytest.raises(InputError, match=message):
        calls.with_options(solve_agents, narrow_problem(4, 0), client=client, kind=AgentOptions, **options)


def test_no_gpu(client, monkeypatch) -> None:
    monkeypatch.setattr("elimina.distributed.cluster._announce", lambda: None)
    with pytest.raises(DeviceError, match="none of the 3 workers announces a GPU"):
        solve_agents(narrow_problem(4, 0), client=client, options=AgentOptions(agents="cuda"))


def test_only_workers_with_gpus() -> None:
    """Those that announce a GPU are asked; what they then say about it is the answer."""
    with cluster_of(1, "--resources", "GPU=1") as other:
        assert [worker.gpus for worker in workers_for(other, "cuda")] == [1]
        if not cuda_devices():
            with pytest.raises(DeviceError, match=r"(?i)cuda|cupy"):
                solve_agents(narrow_problem(4, 0), client=other, options=AgentOptions(agents="cuda"))


@pytest.mark.gpu
@pytest.mark.parametrize("is_local", [True, False], ids=["a worker a GPU", "all GPUs seen by all"])
def test_agents_on_gpus(is_local) -> None:
    """Workers say themselves that they have a GPU; tables go from device to device by way of the hosts."""
    # Buckets of 16^6 combinations, the least that are run on a GPU.
    problem = wide_problem(16, branches=4)
    with local(cuda_devices(), "cuda") if is_local else cluster_of(2) as client:
        opened = count_calls(client, "elimina.backends.cuda.backend", "CudaBackend", "open")
        found = solve_agents(problem, client=client, options=AgentOptions(agents="cuda"))
        assert sum(opened().values()) >= 4
        assert found.stats["workers"] == len(addresses(client))
    assert found.value == solve(problem.model, device="cpu").value
    if found.stats["workers"] > 1:
        assert found.stats["transferred_bytes"] > 16**5


@pytest.mark.gpu
def test_a_lost_gpu_worker_is_replaced() -> None:
    """A nanny starts it again with the same GPU."""
    problem = wide_problem(16, branches=4)
    with local(cuda_devices(), "cuda") as client:
        kill_at(client, addresses(client)[0], *AGENT, "work", 1)
        found = solve_agents(problem, client=client, options=AgentOptions(agents="cuda"))
    assert found.value == solve(problem.model, device="cpu").value
    assert found.stats["lost_workers"] == 1
