"""Search on workers of a real cluster: the answers of one process, whichever worker is lost, joins or ends it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from elimina import FORBIDDEN, Model, Table, UnsupportedError, Variable, solve
from elimina.cli.commands import run
from elimina.distributed import local, solve_optimum
from elimina.distributed.search import ROOT, Nodes, Pool
from elimina.errors import InputError
from elimina.generate import random_model
from elimina.io.model_files import read, write
from elimina.planning.options import Options
from elimina.result import Bounds, optimistic_bound
from tests import calls
from tests.conftest import cuda_devices
from tests.distributed.clusters import addresses, cluster_of, kill_at, slow_down, workers
from tests.distributed.test_slices import grid
from tests.reference import brute

HARD = random_model(30, 8, 0.5, 0.0, seed=1)
"""Beyond what a minute of search proves."""

SEVERAL_TURNS = random_model(22, 8, 0.35, 0.0, seed=3)

TURN = ("elimina.methods.soft_consistency", "SoftConsistency", "run")


def searched(model, client, **options):
    return calls.with_options(solve_optimum, model, client=client, method="search", **options)


def assert_optimal(model, found) -> None:
    expected = calls.solve(model, device="cpu", method="search")
    assert found.status == expected.status == "optimal"
    assert found.value == pytest.approx(expected.value, rel=0 if model.is_integer else 1e-8)
    assert model.score([v.index(found.assignment[v.name]) for v in model.variables]) == found.value


@pytest.mark.parametrize("sense", ["min-cost", "max-cost", "probability"])
def test_small_models(client, sense) -> None:
    for seed in range(3):
        model = grid(3, 3, sense, seed, forbidden=0.2)
        found = searched(model, client)
        brute.check_optimum(model, found)
        assert found.stats["method"] == "search"


@pytest.mark.parametrize("seed", range(3))
def test_turns_and_rounds_on_workers(client, seed) -> None:
    model = random_model(22, 6, 0.35, 0.1, seed=seed)
    found = searched(model, client)
    assert_optimal(model, found)
    assert found.stats["tasks"] >= found.stats["turns"] + found.stats["rounds"] > 0
    assert (found.stats["workers"], found.stats["lost_workers"], found.stats["joined_workers"]) == (3, 0, 0)


def test_nothing_is_allowed(client) -> None:
    assert searched(grid(4, 2, forbidden=1.0), client).status == "infeasible"


def test_evidence(client) -> None:
    model, evidence = grid(5, 3, seed=2), {"x3": 1, "x12": 0}
    found = searched(model, client, evidence=evidence)
    assert found.value == solve(model, evidence=evidence, device="cpu").value
    assert {name: found.assignment[name] for name in evidence} == evidence


@pytest.mark.parametrize("method", ["auto", "search"])
def test_an_upper_bound(client, method) -> None:
    model = grid(5, 3, seed=3)
    best = solve(model, device="cpu").value
    options = {"client": client, "method": method}
    assert calls.with_options(solve_optimum, model, upper_bound=best, **options).value == best
    found = calls.with_options(solve_optimum, model, upper_bound=best - 1, **options)
    assert (found.status, found.lower_bound) == ("infeasible", best)


@pytest.mark.parametrize("sign", [1, -1])
def test_an_upper_bound_with_decimals(client, sign) -> None:
    costs = sign * np.array([[2.5, 1.25], [4.0, 3.75]])
    model = Model.from_arrays([2, 2], [((0, 1), costs)], sense="min-cost" if sign == 1 else "max-cost")
    assert calls.with_options(solve_optimum, model, client=client, upper_bound=sign * 1.25).value == sign * 1.25
    for bound in (1.0, 1.2499, -5.0):
        found = calls.with_options(solve_optimum, model, client=client, upper_bound=sign * bound)
        assert (found.status, found.assignment, optimistic_bound(found, sign)) == ("infeasible", None, sign * bound)


def test_an_upper_bound_is_for_costs(client) -> None:
    model = Model.from_arrays([2], [((0,), [0.2, 0.8])], sense="probability")
    with pytest.raises(InputError, match="the upper bound 3 is for costs"):
        calls.with_options(solve_optimum, model, client=client, upper_bound=3)


def test_costs_too_large_for_soft_local_consistency(client) -> None:
    """Then there are only rounds of mini-buckets."""
    rng = np.random.default_rng(5)
    tables = [Table((v, w), rng.integers(0, 2**45, (3, 3))) for v in range(6) for w in range(v)]
    model = Model([Variable(f"x{v}", 3) for v in range(6)], tables)
    found = searched(model, client)
    brute.check_optimum(model, found)
    assert found.stats["turns"] == 0
    assert found.stats["rounds"] >= 1
    far = Model(model.variables, [*tables, Table((0,), np.array([0, 2**51, FORBIDDEN]))])
    with pytest.raises(UnsupportedError, match="search adds costs up to"):
        searched(far, client)


def test_a_time_limit_gives_bounds_that_improve(client) -> None:
    seen = []
    begun = time.monotonic()
    found = searched(HARD, client, time_limit=4, on_bounds=seen.append)
    assert time.monotonic() - begun < 15
    assert found.status == "bounded"
    assert found.lower_bound < found.upper_bound == found.value
    lowers = [known.lower for known in seen]
    uppers = [known.upper for known in seen if known.upper is not None]
    assert lowers == sorted(lowers)
    assert uppers == sorted(uppers, reverse=True)
    found = searched(HARD, client, time_limit=1e-9)
    assert (found.status, found.ended_by) == ("bounded", "time-limit")
    assert found.lower_bound <= found.upper_bound == found.value


def test_a_gap_ends_it(client) -> None:
    found = searched(HARD, client, gap=2.0, time_limit=600)
    assert found.upper_bound - found.lower_bound <= 2.0 * found.lower_bound
    assert sum(found.stats["seconds"].values()) < 100


def test_an_interruption_gives_bounds(client) -> None:
    sent = []

    def interrupt(known) -> None:
        if not sent:
            sent.append(known)
            os.kill(os.getpid(), signal.SIGINT)

    found = searched(HARD, client, time_limit=600, on_bounds=interrupt)
    assert (found.status, found.ended_by) == ("bounded", "interrupt")
    assert found.lower_bound <= found.upper_bound


def test_an_interruption_of_the_command(tmp_path) -> None:
    """A terminal's Ctrl-C reaches workers of this machine, too: they ignore it."""
    write(HARD, tmp_path / "hard.wcsp")
    trace = tmp_path / "trace"
    command = [sys.executable, "-m", "elimina", "solve", str(tmp_path / "hard.wcsp"), "--local", "2"]
    command += ["--method", "search", "--format", "json", "--trace", str(trace)]
    with subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        until = time.monotonic() + 60
        while not (trace.exists() and trace.read_text()) and time.monotonic() < until:
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "")
    found = json.loads(out)
    assert found["ended_by"] == "interrupt"
    assert found["lower_bound"] <= found["upper_bound"] == found["value"]


def test_workers_stop_when_nobody_wants_an_answer() -> None:
    with cluster_of(2) as other:
        found = searched(HARD, other, time_limit=600, gap=3.0)
        assert found.status == "bounded"
        for _ in range(100):
            busy = other.run(lambda dask_worker: len(dask_worker.state.executing))
            if not any(busy.values()):
                break
            time.sleep(0.1)
        assert not any(busy.values())


def test_the_first_turn_of_a_lost_worker_is_done_again() -> None:
    with cluster_of(2) as other:
        reached = kill_at(other, None, *TURN, 1)
        # A round of mini-buckets, which finds the optimum on its own, begins later.
        slow_down(other, "elimina.methods.and_or_search", "_AlternatingSearch", "run", 0.0, until=str(reached))
        found = searched(SEVERAL_TURNS, other)
        assert len(addresses(other)) == 1
    assert_optimal(SEVERAL_TURNS, found)
    assert found.stats["lost_workers"] == 1


def test_a_worker_that_is_lost_later() -> None:
    """Its open nodes are not: the lower bound stays below a known assignment's value, and the search goes on."""
    with cluster_of(2) as other:
        kill_at(other, None, *TURN, 2)

        # How long it takes until then depends on the machine.
        def interrupt_later() -> None:
            until = time.monotonic() + 90
            while len(addresses(other)) == 2 and time.monotonic() < until:
                time.sleep(0.1)
            time.sleep(2)
            os.kill(os.getpid(), signal.SIGINT)

        waiting = threading.Thread(target=interrupt_later)
        waiting.start()
        found = searched(HARD, other, time_limit=120)
        waiting.join()
    assert (found.status, found.ended_by) == ("bounded", "interrupt")
    assert found.stats["lost_workers"] == 1
    assert found.lower_bound < found.value == HARD.score([v.index(found.assignment[v.name]) for v in HARD.variables])


def test_all_workers_lost(monkeypatch) -> None:
    monkeypatch.setattr("elimina.distributed.cluster.WITHOUT_WORKERS_SECONDS", 1.0)
    with cluster_of(1) as other:
        kill_at(other, addresses(other)[0], *TURN, 2)
        found = searched(HARD, other)
    assert (found.status, found.ended_by) == ("bounded", "worker-lost")
    assert found.lower_bound < found.upper_bound


def test_workers_that_join_are_used() -> None:
    answers, is_enough = [], threading.Event()

    def stop(_: Bounds) -> None:
        if is_enough.is_set():
            raise KeyboardInterrupt

    with cluster_of(1) as other:
        (first,) = addresses(other)
        thread = threading.Thread(target=lambda: answers.append(searched(HARD, other, time_limit=60, on_bounds=stop)))
        thread.start()
        with workers(other.scheduler.address, 1):
            other.wait_for_workers(2, timeout=60)
            until = time.monotonic() + 30
            while not is_enough.is_set() and time.monotonic() < until:
                done = other.run(lambda dask_worker: dask_worker.state.executed_count)
                if sum(count for address, count in done.items() if address != first) > 2:
                    is_enough.set()
                time.sleep(0.2)
            is_enough.set()
            thread.join()
    assert answers[0].stats["joined_workers"] == 1
    assert sum(count for address, count in done.items() if address != first) > 2


@pytest.mark.parametrize("first", [0.0, 0.3], ids=["without time", "short"])
def test_auto_runs_short_plans_and_searches_what_does_not_fit(client, monkeypatch, first) -> None:
    easy = grid(4, 3)
    assert "method" not in solve_optimum(easy, client=client, options=Options()).stats
    model = grid(7, 4, seed=1, forbidden=0.3)
    found = solve_optimum(model, client=client, options=Options(memory="150000B", slices="never"))
    assert_optimal(model, found)
    assert found.stats["method"] == "search"
    # Ended before it is done, it is followed by slices, if these fit, and goes on if they do not.
    monkeypatch.setattr("elimina.distributed.LONGEST_SEARCH_SECONDS", first)
    found = solve_optimum(model, client=client, options=Options(memory="150000B"))
    assert_optimal(model, found)
    found = solve_optimum(model, client=client, options=Options(memory="150000B", slices="never"))
    assert_optimal(model, found)
    assert found.stats["method"] == "search"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"options": Options(method="filter")}, "not by 'filter'"),
        ({"options": Options(gap=-1.0)}, "gap is -1"),
        ({"options": Options(ibound=3)}, "does not take the option ibound"),
        ({"options": Options(device="tpu")}, "tpu"),
        ({"evidence": {"nobody": "1"}}, "nobody"),
    ],
)
def test_bad_options(client, options, message) -> None:
    with pytest.raises(InputError, match=message):
        solve_optimum(grid(3, 2), client=client, **options)


def test_command(client, tmp_path, capsys) -> None:
    model = grid(4, 3, seed=1)
    write(model, tmp_path / "model.wcsp")
    address = client.scheduler.address
    arguments = ["solve", tmp_path / "model.wcsp", "--cluster", address, "--method", "search", "--format", "json"]
    assert run([str(word) for word in [*arguments, "--trace", tmp_path / "trace"]]) == 0
    assert json.loads(capsys.readouterr().out)["value"] == solve(model, device="cpu").value
    assert json.loads((tmp_path / "trace").read_text().splitlines()[-1])
    assert run([str(word) for word in arguments[:4]]) == 0
    assert run([str(word) for word in [*arguments, "--task", "count"]]) == 1
    assert "use eliminate" in capsys.readouterr().err


@pytest.mark.gpu
def test_mini_buckets_on_gpus() -> None:
    """Messages are made on the device, and searched on the host."""
    model = random_model(20, 6, 0.35, 0.1, seed=1)
    with local(cuda_devices(), "cuda") as other:
        found = solve_optimum(model, client=other, options=Options("cuda", method="search"))
    assert_optimal(model, found)


def test_pool_deals_the_best_nodes() -> None:
    nodes = Nodes(np.array([5, 3, 9, 3]), np.array([1, 0, 2, 1]), np.arange(12))
    pool = Pool(nodes)
    assert (len(pool), pool.least) == (4, 3)
    best = pool.pop_nodes(1, 2)
    # Of two equal bounds the deeper one.
    assert (best.bounds.tolist(), best.lengths.tolist(), best.decisions.tolist()) == ([3], [1], [9, 10, 11])
    pool.put(best)
    pool.drop(9)
    assert len(pool) == 3
    rest = pool.pop_nodes(10, 1)
    assert rest.bounds.tolist() == [3, 3, 5]
    assert rest.decisions.tolist() == [9, 10, 11, 0, 1, 2]
    assert not len(pool)
    pool.put(ROOT)
    assert pool.pop_nodes(2048, 3).least == 0


@pytest.mark.data
def test_a_real_problem_with_a_worker_killed(data_dir) -> None:
    """Frequencies of radio links, CELAR6-SUB2: 16 variables of 44 values."""
    model = read(data_dir / "wcsp" / "celar6" / "CELAR6-SUB2.wcsp.xz")
    with cluster_of(2) as other:
        kill_at(other, None, *TURN, 3)
        found = searched(model, other)
    assert (found.status, found.value, found.stats["lost_workers"]) == ("optimal", 2746, 1)
