"""Clusters that cannot be used, and the commands that use them."""

from __future__ import annotations

import contextlib
import importlib.metadata
import itertools
import json
import signal
import socket
import subprocess
import sys
import threading

import dask
import distributed
import numpy as np
import pytest

from elimina import Model, Table, Variable, solve
from elimina.cli.commands import run
from elimina.dcop import Problem
from elimina.distributed import connected, local, solve_agents
from elimina.distributed.agents import divide, in_sequence
from elimina.distributed.cluster import GPU, known_workers, visible_gpus, workers_for
from elimina.errors import ClusterError, DeviceError, InputError
from elimina.io.model_files import write
from tests.distributed.clusters import (
    addresses,
    cluster_of,
    free_port,
    kill_at,
    scheduler,
    scheduler_process,
    slow_down,
    workers,
)
from tests.distributed.test_agents import narrow_problem
from tests.distributed.test_slices import chain, grid


def test_nobody_answers(monkeypatch) -> None:
    monkeypatch.setattr("elimina.distributed.cluster._CONNECT_SECONDS", 0.3)
    message = r"no Dask scheduler answers at tcp://127\.0\.0\.1:9 .*elimina\.distributed\.local"
    with pytest.raises(ClusterError, match=message), connected("tcp://127.0.0.1:9"):
        pass


@pytest.mark.parametrize("address", ["nonsense://x", "tcp://host:port", "", "tcp://"])
def test_no_address(address, monkeypatch) -> None:
    monkeypatch.setattr("elimina.distributed.cluster._CONNECT_SECONDS", 0.3)
    with pytest.raises((InputError, ClusterError), match=r"address|answers"), connected(address):
        pass


def test_no_workers() -> None:
    with (
        scheduler() as cluster,
        connected(cluster.scheduler_address) as client,
        pytest.raises(ClusterError, match=r"no worker is connected to the scheduler at tcp.*`dask worker tcp"),
    ):
        workers_for(client, "cpu")


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (importlib.metadata.PackageNotFoundError("elimina"), r"worker tcp\S+ has no elimina: install elimina \d"),
        ("0.0.1", r"worker tcp\S+ has elimina 0\.0\.1, and here is .*install the same"),
        (OSError("broken"), r"worker tcp\S+ does not say which elimina it has \(broken\)"),
    ],
)
def test_other_releases(client, monkeypatch, found, message) -> None:
    plain = type(client).run

    def run_on(self, call, *args, **kwargs):
        answers = plain(self, call, *args, **kwargs)
        return {**answers, addresses(self)[1]: found} if call is importlib.metadata.version else answers

    monkeypatch.setattr(type(client), "run", run_on)
    with pytest.raises(ClusterError, match=message):
        solve_agents(narrow_problem(4, 0), client=client)


def test_the_scheduler_itself_is_asked_for_workers(client, monkeypatch) -> None:
    """The client survives moments without workers."""
    monkeypatch.setattr(type(client), "scheduler_info", lambda *_, **__: {"workers": {}})
    assert len(known_workers(client)) == 3


def test_workers_announce_resources(client) -> None:
    found = workers_for(client, "cpu")
    assert [worker.address for worker in found] == addresses(client)
    assert {(worker.threads, worker.gpus) for worker in found} == {(1, 0)}
    assert all(worker.memory > 0 for worker in found)
    assert GPU == "GPU"


def test_gpus_are_named_as_they_are_seen(monkeypatch) -> None:
    monkeypatch.setattr("elimina.distributed.cluster.gpu_count", lambda: 3)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert visible_gpus(2) == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,GPU-ab,7")
    assert visible_gpus(3) == ["4", "GPU-ab", "7"]
    with pytest.raises(DeviceError, match="4 workers need a GPU each, and there are 3"):
        visible_gpus(4)


def test_local_needs_workers() -> None:
    for number in (0, 1025, 10**9):
        with pytest.raises(InputError, match=rf"workers is {number}; it must be from 1 to 1,024"), local(number):
            pass


def test_placement_keeps_neighbours_together() -> None:
    rng = np.random.default_rng(0)
    path = rng.permutation(100).tolist()
    tables = [Table(pair, np.zeros((2, 2), dtype=int)) for pair in itertools.pairwise(path)]
    problem = Problem.from_model(Model([Variable(f"x{v}", 2) for v in range(100)], tables))
    sequence = in_sequence(problem)
    assert sorted(sequence) == list(range(100))
    parts = divide(sequence, [1] * 100, 4)
    assert [len(part) for part in parts] == [25] * 4
    where = {agent: number for number, part in enumerate(parts) for agent in part}
    assert sum(where[a] != where[b] for a, b in itertools.pairwise(path)) <= 4


def test_division_by_weights() -> None:
    assert divide([0, 1, 2, 3], [9, 1, 1, 1], 2) == [[0], [1, 2, 3]]
    assert divide([0], [1], 3) == [[], [0], []]
    assert divide([], [], 2) == [[], []]


def _run(capsys, *arguments: object) -> tuple[int, str, str]:
    code = run([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_commands(client, tmp_path, capsys) -> None:
    model = grid(4, 3, forbidden=0.0)
    file, address = tmp_path / "model.wcsp", client.scheduler.address
    write(model, file)
    alone = json.loads(_run(capsys, "solve", file, "--format", "json")[1])
    for command in (["solve", file, "--format", "json"], ["dcop", file, "--json"]):
        code, out, _ = _run(capsys, *command, "--cluster", address)
        assert code == 0
        assert json.loads(out)["value"] == alone["value"]
    code, out, _ = _run(capsys, "dcop", file, "--cluster", address)
    assert code == 0
    assert "workers:    3, " in out
    assert "simulated" not in out
    code, out, _ = _run(capsys, "solve", file, "--task", "count", "--cluster", address)
    assert code == 0
    assert f"count:      {3**16}" in out
    assert "of 3 workers" in out


def test_cases_of_a_file(client, tmp_path, capsys) -> None:
    write(chain(6), tmp_path / "chain.uai")
    (tmp_path / "cases.csv").write_text("x0,x3\n0,1\n,2\n2,\n")
    answers = []
    for options in ([], ["--cluster", client.scheduler.address]):
        arguments = ["--task", "mar", "--cases", tmp_path / "cases.csv", "-o", tmp_path / "out.csv"]
        code, _, err = _run(capsys, "solve", tmp_path / "chain.uai", *arguments, *options)
        assert code == 0, err
        lines = (tmp_path / "out.csv").read_text().splitlines()
        answers.append([[float(word) for word in line.split(",") if word] for line in lines[1:]])
    assert len(answers[0]) == 3
    np.testing.assert_allclose(answers[0], answers[1], rtol=1e-9)


def test_local_command(tmp_path) -> None:
    """In a process of its own: it starts workers, answers, ends them, and says nothing else."""
    write(grid(3, 3, forbidden=0.0), tmp_path / "model.wcsp")
    command = [sys.executable, "-m", "elimina", "dcop", str(tmp_path / "model.wcsp"), "--local", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "workers:    2, " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["dcop", "--cluster", "tcp://127.0.0.1:9", "--local", "2"], 2, "contradict each other"),
        (["dcop", "--local", "0"], 2, "local"),
        (["solve", "--cluster", "tcp://127.0.0.1:9"], 1, "no Dask scheduler answers at tcp://127.0.0.1:9"),
    ],
)
def test_bad_commands(tmp_path, capsys, monkeypatch, arguments, code, message) -> None:
    monkeypatch.setattr("elimina.distributed.cluster._CONNECT_SECONDS", 0.3)
    write(grid(3, 2), tmp_path / "model.wcsp")
    found, _, err = _run(capsys, arguments[0], tmp_path / "model.wcsp", *arguments[1:])
    assert (found, message in err) == (code, True), err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dcop", "--loss", "0.1"], "--loss"),
        (["dcop", "--crash", "x1@2"], "--crash"),
        (["solve", "--checkpoint", "here"], "--checkpoint"),
        (["solve", "--method", "filter"], "--method filter does not run on a cluster"),
        (["solve", "--method", "mbe"], "--method mbe does not run on a cluster"),
        (["solve", "--ibound", "3"], "--ibound"),
        (["solve", "--scratch", "here"], "--scratch"),
        (["solve", "--partition", "scope"], "--partition"),
        (["solve", "--query", "x0"], "--query"),
        (["solve", "--method", "eliminate", "--gap", "1%"], "--gap: they belong to --method search"),
        (["solve", "--task", "count", "--upper-bound", "3"], "--upper-bound: they belong to --method search"),
        (["solve", "--task", "count", "--trace", "there"], "--trace: they belong to --method search"),
    ],
)
def test_options_that_do_not_go_with_clusters(client, tmp_path, capsys, monkeypatch, arguments, message) -> None:
    """They are refused before a file is made."""
    monkeypatch.chdir(tmp_path)
    write(grid(3, 2), tmp_path / "model.wcsp")
    command = [arguments[0], tmp_path / "model.wcsp", *arguments[1:], "--cluster", client.scheduler.address]
    code, _, err = _run(capsys, *command)
    assert code == 2
    assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["model.wcsp"]


def test_scheduler_lost() -> None:
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "2s"}),
        scheduler_process(port) as process,
        workers(address, 2),
        connected(address) as client,
    ):
        client.wait_for_workers(2, timeout=30)
        slow_down(client, "elimina.dcop.agent", "Agent", "work", 0.2)
        threading.Timer(1.0, process.kill).start()
        with pytest.raises(ClusterError, match="scheduler was lost"):
            solve_agents(narrow_problem(60, 1), client=client)


def test_worker_that_hangs() -> None:
    """The scheduler gives it up, and the others go on."""
    problem = narrow_problem(30, 1)
    with dask.config.set({"distributed.scheduler.worker-ttl": "3s"}), cluster_of(2) as client:
        kill_at(client, addresses(client)[0], "elimina.dcop.agent", "Agent", "work", 4, by=signal.SIGSTOP)
        found = solve_agents(problem, client=client)
    assert found.value == solve(problem.model).value
    assert found.stats["lost_workers"] == 1


def test_workers_of_this_machine_answer_nobody_else() -> None:
    with local(1) as client:
        found = [client.scheduler_info(n_workers=0)["address"], *known_workers(client)]
        assert all(address.startswith("tls://127.0.0.1:") for address in found)
        assert solve_agents(narrow_problem(6, 1), client=client).status == "optimal"
        for address in found:
            # Dask would run the code of anyone who gets an answer.
            place = "127.0.0.1", int(address.rsplit(":", 1)[1])
            with contextlib.suppress(ConnectionError), socket.create_connection(place, timeout=10) as plain:
                plain.sendall(b"\0" * 64)
                assert plain.recv(64)[:1] in (b"", b"\x15")  # nothing, or TLS's alert
        other = distributed.Security.temporary()
        with pytest.raises(OSError, match="certificate does not match"):
            distributed.Client(found[0], security=other, timeout=2, set_as_default=False)


def test_a_cluster_with_certificates(tmp_path, monkeypatch, capsys) -> None:
    """Dask's configuration names them."""
    monkeypatch.setattr("elimina.distributed.cluster._CONNECT_SECONDS", 60)  # the scheduler starts meanwhile
    security = distributed.Security.temporary()
    files = {"ca-file": security.tls_ca_file, "cert": security.tls_client_cert, "key": security.tls_client_key}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    options = [word for name in files for word in (f"--tls-{name}", str(tmp_path / name))]
    port = free_port()
    address = f"tls://127.0.0.1:{port}"
    monkeypatch.chdir(tmp_path)
    write(Model.from_arrays([2, 2], [((0, 1), [[3, 1], [1, 3]])], sense="min-cost"), "pair.wcsp")
    with scheduler_process(port, "--protocol", "tls", *options), workers(address, 1, "--protocol", "tls", *options):
        code, _, err = _run(capsys, "dcop", "pair.wcsp", "--cluster", address)
        assert (code, err.count("\n")) == (1, 1)
        assert f"elimina: {address} asks for certificates" in err
        places = {"ca-file": "ca-file", "client.cert": "cert", "client.key": "key"}
        tls = {f"distributed.comm.tls.{name}": str(tmp_path / file) for name, file in places.items()}
        with dask.config.set(tls), connected(address) as client:
            client.wait_for_workers(1, timeout=60)
            code, out, err = _run(capsys, "dcop", "pair.wcsp", "--cluster", address, "--json")
        other = distributed.Security.temporary()
        for name, text in zip(files, (other.tls_ca_file, other.tls_client_cert, other.tls_client_key), strict=True):
            (tmp_path / name).write_text(text)
        with (
            dask.config.set(tls),
            pytest.raises(ClusterError, match="certificates that do not match"),
            connected(address),
        ):
            pass
    assert (code, err, json.loads(out)["value"]) == (0, "", 1)
