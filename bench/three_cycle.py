"""The sum of A(x, y) B(y, z) C(x, z) over x, y and z on a GPU, beside PyTorch's ``((a @ b) * c).sum()``.

    python bench/three_cycle.py [--sizes 1024 4096 8192] [--repeat 7] [--record]

Run: the device's work once the tables are there, as PyTorch's; medians. Call: ``elimina.solve`` as a whole, from NumPy
arrays to the number, with the copies to the device.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np

import elimina
from record import Record

COLUMNS = ["states", "type", "run, ms", "PyTorch, ms", "ratio", "call, ms", "PyTorch with copies, ms", "ratio"]
NOTE = "Ratio: elimina's time to PyTorch's. Call: from arrays of the host to the number."


def median(values: list[float]) -> float:
    """Return the median in milliseconds."""
    return 1e3 * statistics.median(values)


def elimina_times(tables: list[np.ndarray], dtype: str, repeat: int) -> tuple[float, float, float]:
    """Return the milliseconds of a run and of a call, and log10 of the sum."""
    states = len(tables[0])
    scopes = ("x", "y"), ("y", "z"), ("x", "z")
    model = elimina.Model.from_arrays(
        dict.fromkeys("xyz", states), list(zip(scopes, tables, strict=True)), sense="probability"
    )
    options = elimina.Options(order=["y", "x", "z"], dtype=dtype)
    runs, calls = [], []
    for _ in range(repeat + 2):
        began = time.perf_counter()
        result = elimina.solve(model, "pr", device="cuda", options=options)
        calls.append(time.perf_counter() - began)
        runs.append(result.stats["seconds"]["run"])
    return median(runs[2:]), median(calls[2:]), result.log10_z


def torch_times(tables: list[np.ndarray], dtype: str, repeat: int) -> tuple[float, float, float]:
    """Return the same of PyTorch, whose first time is without copies."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    runs, calls = [], []
    for _ in range(repeat + 2):
        began = time.perf_counter()
        a, b, c = (torch.as_tensor(table).to("cuda", getattr(torch, dtype)) for table in tables)
        float(((a @ b) * c).sum())
        calls.append(time.perf_counter() - began)
        torch.cuda.synchronize()
        began = time.perf_counter()
        total = ((a @ b) * c).sum()
        torch.cuda.synchronize()
        runs.append(time.perf_counter() - began)
    return median(runs[2:]), median(calls[2:]), float(torch.log10(total))


def main() -> None:
    """Measure all sizes and types."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1024, 4096, 8192])
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--record", action="store_true", help="write bench/results/three-cycle.json")
    arguments = parser.parse_args()
    record = Record("three-cycle", COLUMNS, NOTE)
    for states in arguments.sizes:
        rng: Any = np.random.default_rng(states)
        tables = [rng.random((states, states)) for _ in range(3)]
        for dtype in ("float64", "float32"):
            run, call, value = elimina_times(tables, dtype, arguments.repeat)
            peer_run, peer_call, peer_value = torch_times(tables, dtype, arguments.repeat)
            assert abs(value - peer_value) < 1e-4, (value, peer_value)
            cells = f"{run:.3f}", f"{peer_run:.3f}", f"{run / peer_run:.2f}"
            calls = f"{call:.1f}", f"{peer_call:.1f}", f"{call / peer_call:.1f}"
            record.add(f"{states:,}", dtype, *cells, *calls)
            print(record.rows[-1], flush=True)
    if arguments.record:
        record.save()


if __name__ == "__main__":
    main()
