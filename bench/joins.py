"""Joins of sparse tables: the CPU against pandas and Polars with as many threads, and a CUDA device, in one run.

    python bench/joins.py [--rows N] [--threads N] [--repeat R] [--cpu] [--cuda]

Two tables of about N rows over 13 variables each, of which they share 12; the join has about 4 N rows. 'join + min'
eliminates one of the shared variables by its least value, which pandas and Polars do by a merge (on one packed integer
column) and a group-by (of another one). All begin with the same rows in random order, in the form that is native to
them; on the CUDA device they are there already, and 'sorted' means that they are in the join's order too.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

PARTS, VALUES, OWN = 11, 4, 8
LAST = PARTS
"""Variables: 11 of 4 values, the eliminated one of 4, and one of 8 values of each table."""


def random_tables(rows: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Shared part (packed), eliminated variable, own variable and value of each row."""
    rng = np.random.default_rng(0)
    groups = np.sort(rng.choice(VALUES**PARTS, rows // 16, replace=False))
    tables = []
    for _ in range(2):
        group, x, own = np.nonzero(rng.random((len(groups), VALUES, OWN)) < 0.5)
        order = rng.permutation(len(group))
        values = rng.integers(0, 1000, len(group)).astype(np.int32)
        tables.append((groups[group[order]], x[order], own[order], values))
    return tables


def best(repeat: int, work: Callable[[], Any], wait: Callable[[], Any] = lambda: None) -> tuple[float, Any]:
    """Least seconds, and the result."""
    seconds, found = [], None
    for _ in range(repeat):
        found = None
        wait()
        started = time.perf_counter()
        found = work()
        wait()
        seconds.append(time.perf_counter() - started)
    return min(seconds), found


def upload(tables: Any, columns: tuple[np.ndarray, ...], own: int) -> Any:
    """One table as rows, its own variable the most significant one."""
    from elimina.backends.sparse.device import SparseTable
    from elimina.planning.key_layout import KeyLayout

    shared, x, other, values = columns
    layout = KeyLayout.of((own, *range(PARTS), LAST), (OWN, *[VALUES] * (PARTS + 1)))
    keys = (other << 2 * (PARTS + 1)) + (shared << 2) + x
    return SparseTable(layout, tables.device.upload(keys.astype(np.uint64)[:, None]), tables.device.upload(values))


def digest(values: Any) -> tuple[int, int]:
    """Number and sum of values."""
    return len(values), int(values.astype(np.int64).sum())


def report_cpu(columns: list[Any], threads: int, repeat: int) -> None:
    """Times on the host, and how many times longer the others take."""
    from elimina.backends.sparse.cpu import CpuSparseDevice
    from elimina.backends.sparse.operations import SparseTables

    tables = SparseTables(CpuSparseDevice("min-sum", np.dtype(np.int32), 2**30 - 1, threads))
    left, right = upload(tables, columns[0], 100), upload(tables, columns[1], 101)
    own = {
        "join": best(repeat, lambda: digest(tables.join(left, right).rows.values)),
        "join + min": best(repeat, lambda: digest(tables.join(left, right, eliminate=LAST).rows.values)),
    }
    for name, (seconds, (rows, _)) in own.items():
        print(f"cpu, {threads} threads: {name}: {1e3 * seconds:.0f} ms, {rows} rows", flush=True)
    for peer in (polars_times, pandas_times):
        name = peer.__name__.removesuffix("_times")
        if importlib.util.find_spec(name) is None:
            print(f"{name} is not installed: pip install {name}")
            continue
        for what, (seconds, found) in peer(columns, repeat).items():
            assert found == own[what][1], (name, what, found, own[what][1])
            print(f"{name}: {what}: {1e3 * seconds:.0f} ms, {seconds / own[what][0]:.1f} times as long", flush=True)


def packed(columns: list[Any]) -> list[dict[str, np.ndarray]]:
    """Columns of a data frame: the shared variables as one integer, the own one shifted to its place in the result."""
    return [
        {"key": (s << 2) + x, f"own{n}": own << 3 * n, f"value{n}": value}
        for n, (s, x, own, value) in enumerate(columns)
    ]


def polars_times(columns: list[Any], repeat: int) -> dict[str, tuple[float, Any]]:
    """Polars' join, and join + group-by, by lazy frames."""
    import polars as pl

    left, right = (pl.DataFrame(frame).lazy() for frame in packed(columns))
    value = (pl.col("value0") + pl.col("value1")).alias("value")
    joined = left.join(right, on="key").select("key", "own0", "own1", value)
    row = ((pl.col("key") // 4) * 64 + pl.col("own0") + pl.col("own1")).alias("row")
    least = joined.select(row, "value").group_by("row").agg(pl.col("value").min())
    return {
        "join": best(repeat, lambda: digest(joined.collect()["value"].to_numpy())),
        "join + min": best(repeat, lambda: digest(least.collect()["value"].to_numpy())),
    }


def pandas_times(columns: list[Any], repeat: int) -> dict[str, tuple[float, Any]]:
    """Pandas' merge, and merge + group-by."""
    import pandas as pd

    left, right = (pd.DataFrame(frame) for frame in packed(columns))

    def join() -> Any:
        joined = left.merge(right, on="key")
        joined["value"] = joined["value0"] + joined["value1"]
        return joined

    def least() -> Any:
        joined = join()
        row = (joined["key"] // 4) * 64 + joined["own0"] + joined["own1"]
        return joined["value"].groupby(row, sort=False).min()

    repeat = min(repeat, 2)
    return {
        "join": best(repeat, lambda: digest(join()["value"].to_numpy())),
        "join + min": best(repeat, lambda: digest(least().to_numpy())),
    }


def report_cuda(columns: list[Any], repeat: int) -> None:
    """Times on the device, the tables there already."""
    from elimina.backends.cuda.backend import CudaBackend
    from elimina.backends.cuda.sparse import CudaSparseDevice
    from elimina.backends.sparse.device import SparseTable
    from elimina.backends.sparse.operations import SparseTables, join_layout

    backend = CudaBackend()
    tables = SparseTables(CudaSparseDevice(backend, "min-sum", np.dtype(np.int32), 2**30 - 1))
    sides = [upload(tables, columns[0], 100), upload(tables, columns[1], 101)]
    joined = len(tables.join(*sides).rows.values)
    for name, options in (("join", {}), ("join + min", {"eliminate": LAST})):
        layout = join_layout(*sides, options.get("eliminate"))
        ready: list[SparseTable] = [tables.arrange(side, layout) for side in sides]
        own = [SparseTable(layout_of(layout, side), ready[n].keys, ready[n].values) for n, side in enumerate(sides)]
        for order, pair in (("any order", sides), ("sorted", own)):
            join = functools.partial(tables.join, *pair, **options)
            seconds, made = best(repeat + 2, join, backend.stream.synchronize)
            values = made.rows.values
            print(
                f"{backend.name}: {name}, {order}: {1e3 * seconds:.2f} ms, {joined} joined rows, {len(values)} stored, "
                f"{joined / seconds:.2e} joined rows a second",
                flush=True,
            )


def layout_of(layout: Any, side: Any) -> Any:
    """The part of a join's layout that one side has."""
    at = [n for n, v in enumerate(layout.scope) if v in side.layout.scope]
    scope, sizes, places = (tuple(part[n] for n in at) for part in layout[:3])
    return type(layout)(scope, sizes, places, layout.words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1 << 22)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--cpu", action="store_true", help="the CPU only")
    parser.add_argument("--cuda", action="store_true", help="the CUDA device only")
    arguments = parser.parse_args()
    os.environ["POLARS_MAX_THREADS"] = str(arguments.threads)
    columns = random_tables(arguments.rows)
    if not arguments.cuda:
        report_cpu(columns, arguments.threads, arguments.repeat)
    if arguments.cpu:
        return
    from elimina.errors import DeviceError

    try:
        report_cuda(columns, arguments.repeat)
    except DeviceError as error:
        print(f"no CUDA part: {error}")


if __name__ == "__main__":
    main()
