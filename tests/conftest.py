"""Fixtures for every test."""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import sys
import threading
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.devices import GPUS_FILE, hold_gpus
from tests.seeds import run_seed

# How long an example takes says more about what else runs on a machine than about the code.
settings.register_profile("elimina", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("elimina")

DATA = Path(os.environ.get("ELIMINA_DATA", Path(__file__).parents[1].parent / "shared" / "data"))


# Speeds that somebody measured on this machine would change plans, and those of processes that tests start.
os.environ["ELIMINA_CALIBRATION"] = ""

# A process that may not keep compiled modules takes twice as long to start, and tests start hundreds.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# JAX would take three quarters of a GPU that other workers' tests share.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

# A shell's background job ignores interrupts, and so would every process that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Draw Hypothesis' examples from the seed of the run."""
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(run_seed())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the seed of a run that failed."""
    if terminalreporter.stats.get("failed"):
        terminalreporter.write_line(f"To draw the same random cases in other sources: ELIMINA_SEED={run_seed()}")


@functools.cache
def cuda_devices() -> int:
    """Number of CUDA devices by the driver's own word, so that a fault of our backend never reads as 'no device'."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests that need the benchmark files where these are absent, or a GPU where there is none."""
    for item in items:
        if item.get_closest_marker("data") and not DATA.is_dir():
            item.add_marker(pytest.mark.skip(reason=f"the benchmark files are not in {DATA} (set ELIMINA_DATA)"))
        if item.get_closest_marker("gpu") and not cuda_devices():
            item.add_marker(pytest.mark.skip(reason="there is no CUDA device"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Share the GPUs between workers, except with a test that fills one."""
    if "PYTEST_XDIST_WORKER" not in os.environ or not item.get_closest_marker("gpu") or not cuda_devices():
        return (yield)
    fills = item.get_closest_marker("fills_gpu") is not None
    with hold_gpus(GPUS_FILE, alone=fills):
        return (yield)


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Give a GPU's memory back after each test that used it: other workers' tests share the GPU."""
    memory, cupy = sys.modules.get("elimina.backends.cuda.idle_memory"), sys.modules.get("cupy")
    if item.get_closest_marker("gpu") and memory is not None and cupy is not None:
        for gpu in memory.return_locks:
            with cupy.cuda.Device(gpu):
                memory.device_memory(cupy, gpu).release()
                cupy.get_default_memory_pool().free_all_blocks()


@pytest.fixture
def data_dir() -> Path:
    """Folder of the third-party benchmark files."""
    return DATA


@pytest.fixture(scope="module")
def planned():
    """Send small networks the long way: their short cut has tests of its own (``test_small_networks``)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("elimina.methods.small_networks.MAX_SMALL_CELLS", 0)
        yield


@pytest.fixture
def stuck():
    """A call of C that takes long, and no longer than the test: who looks for threads that are left would wait."""
    before, ended = threading.enumerate(), threading.Event()
    yield lambda *_, **__: ended.wait(20)
    ended.set()
    for thread in set(threading.enumerate()).difference(before):
        thread.join(60)
