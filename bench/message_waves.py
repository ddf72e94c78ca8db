"""Waves of belief propagation on a GPU: bytes a second, and the time of an estimate beside the CPU's.

    python bench/message_waves.py [--side 1000] [--states 2 4 16] [--save]

The model is a grid with random weights. A wave's bytes are those of its tables, messages, beliefs and lists, each once
(`wave_bytes`); the copy beside it reads and writes as many.
The CPU's sweeps are those of region propagation with the same regions (Bethe's approximation), in one thread.
"""

from __future__ import annotations

import argparse
import itertools
import time

import numpy as np

from elimina._core import RegionGraph, RegionPropagation
from elimina.backends.cuda.message_waves import MessageWaves
from elimina.backends.factor_classes import FactorClass
from elimina.backends.registry import get_backend
from record import Record

WAVES, SWEEPS, REPEATS = 100, 3, 5


def grid(side: int, states: int) -> tuple[np.ndarray, np.ndarray, list[FactorClass]]:
    """Return the sizes, biases and factors of a square grid."""
    rng = np.random.default_rng(0)
    numbers = np.arange(side * side).reshape(side, side)
    classes = []
    for one, other in ((numbers[:, :-1], numbers[:, 1:]), (numbers[:-1], numbers[1:])):
        tables = np.exp(0.5 * rng.normal(size=(states * states, one.size)))
        classes.append(FactorClass((states, states), np.stack([one.ravel(), other.ravel()]), tables / tables.max(0)))
    return np.full(side * side, states), 0.3 * rng.normal(size=side * side * states), classes


def wave_bytes(sizes: np.ndarray, classes: list[FactorClass]) -> int:
    """Return the bytes that a wave reads and writes, each number once: tables, messages, beliefs and lists."""
    states, edges = int(sizes.sum()), sum(factors.scopes.size for factors in classes)
    messages = sum(factors.message_cells for factors in classes)
    tables = sum(factors.tables.size for factors in classes)
    read_beliefs = messages
    beliefs_wave = 8 * (messages + 3 * states + len(sizes)) + 8 * edges + 8 * len(sizes)
    messages_wave = 8 * (tables + 2 * messages + read_beliefs) + 4 * edges
    return beliefs_wave + messages_wave


def seconds_on_cpu(sizes: np.ndarray, biases: np.ndarray, classes: list[FactorClass]) -> float:
    """Return the seconds of a sweep."""
    scopes = np.concatenate([factors.scopes.T for factors in classes])
    starts = np.concatenate([[0, *range(1, len(sizes) + 1)], len(sizes) + 2 * np.arange(1, len(scopes) + 1)])
    members = np.concatenate([np.arange(len(sizes)), scopes.ravel()]).astype(np.int32)
    values = np.concatenate([np.exp(biases), *(factors.tables.T.ravel() for factors in classes)])
    graph = RegionGraph(sizes, starts, members, 1, 1 << 40, 600.0)
    regions = RegionPropagation(graph, starts, members, values)
    regions.filter_tuples(600.0)
    started = time.perf_counter()
    regions.run(0.0, 0.0, SWEEPS, 600.0)
    return (time.perf_counter() - started) / SWEEPS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=1000)
    parser.add_argument("--states", type=int, nargs="+", default=[2, 4, 16])
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    device = get_backend("cuda")
    record = Record(
        "message-waves",
        ("variables", "states", "wave, ms", "GB/s", "of a copy", "CPU sweep, ms", "times the CPU"),
        "A square grid. The copy moves a wave's bytes; the CPU's sweep passes the same messages in one thread.",
    )
    for states in args.states:
        sizes, biases, classes = grid(args.side, states)
        with device.arrays() as cupy:
            waves = MessageWaves(device, cupy, sizes, biases, classes)
            waves.run(WAVES // 2, 0.25)
            times = []
            for _ in range(REPEATS):
                started = time.perf_counter()
                residual = waves.run(WAVES // 2, 0.25)
                times.append((time.perf_counter() - started) / WAVES)
            moved = wave_bytes(sizes, classes)
            source = cupy.zeros(moved // 16)
            target = cupy.empty_like(source)
            copies = []
            for _ in range(REPEATS + 1):
                device.stream.synchronize()
                started = time.perf_counter()
                for _ in itertools.repeat(None, WAVES):
                    cupy.copyto(target, source)
                device.stream.synchronize()
                copies.append((time.perf_counter() - started) / WAVES)
            del waves, source, target
        wave, copy = float(np.median(times)), float(np.median(copies[1:]))
        sweep = seconds_on_cpu(sizes, biases, classes)
        record.add(
            f"{len(sizes):,}",
            states,
            f"{1e3 * wave:.3f}",
            f"{moved / wave / 1e9:,.0f}",
            f"{copy / wave:.2f}",
            f"{1e3 * sweep:,.0f}",
            f"{sweep / wave:,.0f}",
        )
        print(
            f"{len(sizes)} variables of {states} states: {1e3 * wave:.3f} ms a wave, {moved / wave / 1e9:.0f} GB/s, "
            f"{copy / wave:.2f} of a copy; a sweep on the CPU {1e3 * sweep:.0f} ms, {sweep / wave:.0f} times; "
            f"residual {residual:.1e}"
        )
    if args.save:
        print(record.save())


if __name__ == "__main__":
    main()
