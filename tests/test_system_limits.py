"""Limits of the machine, from trees of /proc and /sys that say what a test wants, and under a real ``ulimit -v``."""

import gc
import os
import resource
import shlex
import signal
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import pytest

from elimina import system
from elimina.backends.cuda import layout_cache
from elimina.errors import MemoryLimitError
from elimina.planning import planner
from elimina.problem import preparation
from elimina.running import call_thread, garbage_collection
from elimina.system import (
    available_memory,
    available_threads,
    cached_property,
    lock_for_a_moment,
    memory_errors_in_words,
)

MIB = 1 << 20
EXAMPLE = Path(__file__).parents[1] / "examples" / "radio.wcsp"
V2 = "31 23 0:28 {shown} /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = "35 31 0:32 {shown} /sys/fs/cgroup/{name} rw,relatime shared:3 - cgroup cgroup rw,{controllers}\n"
UNLIMITED_V1 = 9223372036854771712


def tree(root, files, free=64 << 30):
    text = f"MemTotal: {free // 512} kB\nMemFree: 1 kB\nMemAvailable: {free // 1024} kB\n"
    for path, content in {"proc/meminfo": text, **files}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(str(content) if str(content).endswith("\n") else f"{content}\n")
    return root


def second(path, shown="/", **levels):
    """Files of control groups of the second version: level -> (limit, usage, pages that can be dropped)."""
    files = {"proc/self/cgroup": f"0::{path}", "proc/self/mountinfo": V2.format(shown=shown)}
    for level, (limit, usage, droppable) in levels.items():
        folder = f"sys/fs/cgroup/{level.replace('_', '/').strip('/')}".rstrip("/")
        files[f"{folder}/memory.max"] = limit
        files[f"{folder}/memory.current"] = usage
        files[f"{folder}/memory.stat"] = f"anon 5\nfile 7\ninactive_file {droppable}\nactive_file 3"
    return files


def first(path, shown="/", **levels):
    """The same of the first version."""
    files = {
        "proc/self/cgroup": f"9:name=systemd:/\n4:memory:{path}\n2:cpu,cpuacct:{path}\n0::/",
        "proc/self/mountinfo": V1.format(shown=shown, name="memory", controllers="memory")
        + V1.format(shown=shown, name="cpu,cpuacct", controllers="cpu,cpuacct"),
    }
    for level, (limit, usage, droppable) in levels.items():
        folder = f"sys/fs/cgroup/memory/{level.replace('_', '/').strip('/')}".rstrip("/")
        files[f"{folder}/memory.limit_in_bytes"] = limit
        files[f"{folder}/memory.usage_in_bytes"] = usage
        files[f"{folder}/memory.stat"] = f"inactive_file 1\ntotal_inactive_file {droppable}"
    return files


def test_without_limits_the_system_counts(tmp_path):
    assert available_memory(tree(tmp_path, {}, free=3 << 30)) == 3 << 30


def test_systems_without_an_estimate_of_free_memory(tmp_path):
    assert available_memory(tree(tmp_path, {"proc/meminfo": "MemFree: 5 kB"})) > 0
    assert available_memory(tmp_path / "nothing") > 0


@pytest.mark.parametrize("files", [second, first])
def test_a_control_group_counts(tmp_path, files):
    assert available_memory(tree(tmp_path, files("/job", job=(900 * MIB, 300 * MIB, 0)))) == 600 * MIB


@pytest.mark.parametrize("files", [second, first])
def test_pages_that_can_be_dropped_are_free(tmp_path, files):
    assert available_memory(tree(tmp_path, files("/job", job=(900 * MIB, 300 * MIB, 100 * MIB)))) == 700 * MIB


@pytest.mark.parametrize(("files", "no_limit"), [(second, "max"), (first, UNLIMITED_V1)])
def test_the_smallest_of_nested_groups_counts(tmp_path, files, no_limit):
    levels = {
        "slurm": (8000 * MIB, 7500 * MIB, 0),
        "slurm_job": (2000 * MIB, 900 * MIB, 0),
        "slurm_job_step": (no_limit, 100 * MIB, 0),
    }
    assert available_memory(tree(tmp_path, files("/slurm/job/step", **levels))) == 500 * MIB


@pytest.mark.parametrize("files", [second, first])
def test_containers_that_see_the_path_of_the_host(tmp_path, files):
    """Their group is mounted at the top; the path leads nowhere inside."""
    mounted = files("/docker/abc", shown="/docker/abc", _=(700 * MIB, 100 * MIB, 0))
    assert available_memory(tree(tmp_path / "a", mounted)) == 600 * MIB
    elsewhere = files("/../../kubepods/x", shown="/", _=(700 * MIB, 100 * MIB, 0))
    assert available_memory(tree(tmp_path / "b", elsewhere)) == 600 * MIB


def test_the_limit_from_which_a_group_is_slowed_down_counts(tmp_path):
    files = second("/job", job=("max", 100 * MIB, 0))
    files["sys/fs/cgroup/job/memory.high"] = 500 * MIB
    assert available_memory(tree(tmp_path, files)) == 400 * MIB


def test_figures_are_looked_up_each_time(tmp_path):
    files = second("/job", job=(900 * MIB, 300 * MIB, 0))
    files["sys/fs/cgroup/job/cpu.max"] = "max 100000"
    root = tree(tmp_path, files)
    assert available_memory(root) == 600 * MIB
    (root / "sys/fs/cgroup/job/memory.current").write_text(f"{400 * MIB}\n")
    assert available_memory(root) == 500 * MIB
    (root / "proc/meminfo").write_text("MemAvailable: 1024 kB\n")
    assert available_memory(root) == MIB
    assert available_threads(root) == len(os.sched_getaffinity(0))
    (root / "sys/fs/cgroup/job/cpu.max").write_text("100000 100000\n")
    assert available_threads(root) == 1


@pytest.mark.parametrize("files", [second, first])
def test_later_looks_open_no_file(tmp_path, monkeypatch, files):
    """Not even those that do not exist: some levels have no limit, and this tree no quota."""
    root = tree(tmp_path, files("/job", job=(900 * MIB, 300 * MIB, 0)))
    found = available_memory(root), available_threads(root)
    monkeypatch.setattr(os, "open", None)
    assert (available_memory(root), available_threads(root)) == found


@pytest.mark.parametrize("most", [10, 64])
def test_a_process_that_may_open_few_files_has_them_for_its_work(most, tmp_path):
    command = [sys.executable, "-c", "import elimina.cli; elimina.cli.main()", "solve", EXAMPLE, "-o", "answer"]
    limited = f"ulimit -n {most}; " + shlex.join(map(str, command))
    done = subprocess.run(["bash", "-c", limited], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "answer").read_text().startswith("status:     optimal")


def test_a_process_that_forked_and_closed_its_files_looks_again(tmp_path):
    """Descriptors that were closed may be those of other files by now."""
    root = tree(tmp_path, second("/job", job=(900 * MIB, 300 * MIB, 0)))
    assert available_memory(root) == 600 * MIB
    child = os.fork()
    if not child:
        os.closerange(3, 256)
        other = [os.open(root / "proc/self/cgroup", os.O_RDONLY) for _ in range(64)]
        os._exit(0 if other and available_memory(root) == 600 * MIB else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def exit_code_of_a_fork(work):
    """Exit code of a child that does some work, within five seconds."""
    child = os.fork()
    if not child:
        signal.alarm(5)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize(
    "lock",
    [
        lock_for_a_moment(),
        planner._plans_lock,
        preparation._groups_lock,
        call_thread._hook_lock,
        layout_cache._layouts_lock,
    ],
)
def test_a_fork_waits_for_the_lock_of_another_thread(lock):
    held = threading.Event()

    def hold():
        with lock:
            held.set()
            time.sleep(0.05)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    assert exit_code_of_a_fork(lambda: lock.acquire()) == 0
    thread.join()
    assert lock.acquire(timeout=5)
    lock.release()


def test_a_fork_undoes_what_threads_that_it_does_not_have_would_undo():
    begun, forked = threading.Event(), threading.Event()

    def work():
        with garbage_collection.set_aside(10**6), garbage_collection.without_collection(), call_thread.shielded():
            begun.set()
            forked.wait()

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    assert (gc.isenabled(), gc.get_freeze_count() > 0) == (False, True)

    def check():
        same_number = types.SimpleNamespace(ident=thread.ident)
        os._exit(0 if gc.isenabled() and not gc.get_freeze_count() and not call_thread.is_shielded(same_number) else 1)

    assert exit_code_of_a_fork(check) == 0
    forked.set()
    thread.join()
    assert (gc.isenabled(), gc.get_freeze_count()) == (True, 0)


def test_a_fork_while_another_thread_computes_a_cached_value():
    computing, forked = threading.Event(), threading.Event()

    class Slow:
        @cached_property
        def value(self):
            if threading.current_thread() is not threading.main_thread():
                computing.set()
                forked.wait()
            return [1]

    shared = Slow()
    thread = threading.Thread(target=lambda: shared.value)
    thread.start()
    computing.wait()
    assert exit_code_of_a_fork(lambda: shared.value) == 0
    first = shared.value
    forked.set()
    thread.join()
    assert shared.value is first, "threads get the same object"


def test_a_group_beyond_its_limit_leaves_nothing(tmp_path):
    assert available_memory(tree(tmp_path, second("/job", job=(100 * MIB, 101 * MIB, 0)))) == 0


def test_paths_with_spaces(tmp_path):
    files = second("/a job", **{"a job": (300 * MIB, 100 * MIB, 0)})
    files["proc/self/mountinfo"] = V2.format(shown="/").replace("/sys/fs/cgroup", "/sys/fs/c\\040group")
    files = {path.replace("fs/cgroup", "fs/c group"): content for path, content in files.items()}
    assert available_memory(tree(tmp_path, files)) == 200 * MIB


@pytest.mark.parametrize("name", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_limits_of_the_process_count_less_what_it_has_mapped(tmp_path, monkeypatch, name):
    root = tree(tmp_path, {"proc/self/status": "Name:\tx\nVmSize:\t  1024 kB\nVmData:\t  1024 kB\n"})
    limit = getattr(resource, name)
    monkeypatch.setattr(resource, "getrlimit", lambda asked: (5 * MIB if asked == limit else -1, -1))
    assert available_memory(root) == 4 * MIB


@pytest.mark.parametrize("name", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_threads_have_room_for_their_stacks(tmp_path, monkeypatch, name):
    """If a thread finds no room for its own variables, the C library ends the process."""
    root = tree(tmp_path, {"proc/self/status": "Name:\tx\nVmSize:\t  1024 kB\nVmData:\t  1024 kB\n"})
    limit = getattr(resource, name)
    monkeypatch.setattr(system, "processors", lambda: 64)
    for room, threads in ((5, 1), (3 * 144, 2), (3 * 144 + 1, 3), (1 << 20, 64), (None, 64)):
        bound = -1 if room is None else room * MIB
        monkeypatch.setattr(resource, "getrlimit", lambda asked: (bound if asked == limit else -1, -1))  # noqa: B023
        assert available_threads(root) == threads


def test_advice_under_a_limit_of_the_address_space_is_fewer_threads(monkeypatch):
    for limits, is_said in (({"VmSize": 1 << 40}, True), ({}, False)):
        monkeypatch.setattr(system, "address_limits", lambda: limits)  # noqa: B023
        with pytest.raises(MemoryLimitError) as caught, memory_errors_in_words("while it solved the model"):
            raise MemoryError
        assert ("use fewer threads (threads=1), set a smaller memory, or raise" in str(caught.value)) == is_said
        assert "set a smaller memory, or raise the limit of the process" in str(caught.value)


def test_threads_by_quota(tmp_path):
    everything = len(os.sched_getaffinity(0))
    assert available_threads(tree(tmp_path / "none", {})) == everything
    files = second("/a/b")
    files["sys/fs/cgroup/a/cpu.max"] = "50000 100000"
    files["sys/fs/cgroup/a/b/cpu.max"] = "max 100000"
    assert available_threads(tree(tmp_path / "second", files)) == 1
    files["sys/fs/cgroup/a/cpu.max"] = "150000 100000"
    assert available_threads(tree(tmp_path / "more", files)) == min(2, everything)
    files = first("/a")
    files["sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us"] = 100000
    files["sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us"] = 100000
    assert available_threads(tree(tmp_path / "first", files)) == 1
    files["sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us"] = -1
    assert available_threads(tree(tmp_path / "unlimited", files)) == everything


def test_memory_errors_become_ours_in_words():
    text = r"ran out of memory while it sang; about .* were left"
    with pytest.raises(MemoryLimitError, match=text), memory_errors_in_words("while it sang"):
        raise MemoryError
    with pytest.raises(MemoryLimitError, match="as it was"), memory_errors_in_words(""):
        raise MemoryLimitError("as it was")
    with pytest.raises(MemoryLimitError, match=text), memory_errors_in_words("while it sang"):
        raise ImportError("mtrand.so: failed to map segment from shared object")
    with pytest.raises(ImportError, match="no module"), memory_errors_in_words("while it sang"):
        raise ImportError("no module")


_LIMITED = """
import resource, sys
import numpy as np
import elimina
from elimina.generate import grid_model
resource.setrlimit(resource.RLIMIT_AS, (1500000 << 10, -1))
{body}
"""


def limited(body):
    """Run Python under ``ulimit -v 1500000``."""
    command = [sys.executable, "-c", _LIMITED.format(body=body)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def test_a_plan_knows_the_limit_of_the_address_space():
    how = "options=elimina.Options(slices='never', order='min-fill')"
    body = f"plan = elimina.plan(grid_model(12, 6, 0), device='cpu', {how})\n"
    run = limited(body + "assert 100 << 20 < plan.memory_limit < 1500000 << 10, plan.memory_limit\nprint(plan.fits)")
    assert run.stdout == "False\n", run.stderr


@pytest.mark.parametrize("task", ["mpe", "pr"])
def test_what_does_not_fit_the_address_space_is_an_error_in_words(task):
    """The plan is told that it may use more than the process can have."""
    body = f"""
rng = np.random.default_rng(0)
edges = [(i, j) for i in range(10) for j in range(i)]
task = {task!r}
tables = [(edge, rng.integers(1, 90, (10, 10)) if task == "mpe" else rng.random((10, 10))) for edge in edges]
model = elimina.Model.from_arrays([10] * 10, tables, sense="min-cost" if task == "mpe" else "probability")
try:
    options = elimina.Options(
        method="eliminate", slices="never", tables="dense", threads=1, dtype="int64" if task == "mpe" else "float64"
    )
    elimina.solve(model, task, device="cpu", memory=64 << 30, options=options)
except elimina.MemoryLimitError as error:
    print("MemoryLimitError:", error)
"""
    run = limited(body)
    assert run.stdout.startswith("MemoryLimitError: "), run.stderr
    assert run.returncode == 0
