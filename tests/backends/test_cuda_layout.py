"""What programs become on a device: every step runs once, after what it reads; no CUDA needed."""

from __future__ import annotations

import numpy as np
import pytest

from elimina.backends import cuda_layout
from elimina.backends.cuda_layout import Forest, lay_out
from elimina.errors import DeviceError
from tests.reference.random_programs import Builder, random_program


def walk(layout, words, steps, forest):
    """The steps of a forest in the order in which one block would take them."""
    pending = layout.head[layout.counters_at - layout.peaks_at :].view(np.int32)[1 + layout.cursors :][:steps].copy()
    links = words[layout.links_at :][: 4 * steps].reshape(steps, 4)
    for leaf in words[forest.leaves_at :][: forest.leaves].tolist():
        step = leaf
        while True:
            yield step
            step, children = int(links[step, 0]), int(links[step, 3])
            if step < 0:
                break
            pending[step] -= 1
            if children > 1 and pending[step] > 0:
                break


@pytest.mark.parametrize("small_work", [-1, 200, 1 << 14])
def test_each_step_runs_once_after_what_it_reads(monkeypatch, small_work):
    monkeypatch.setattr(cuda_layout, "SMALL_WORK", small_work)
    for seed in range(40):
        program, _ = random_program(np.random.default_rng(seed), "min-sum", "int32")
        layout = lay_out(program, 132, 227 << 10)
        words = layout.head[layout.words_at - layout.peaks_at :].view(np.int64)
        numbers = {int(start): number for number, start in enumerate(program.starts)}
        order: list[int] = []
        for launch in layout.launches:
            if isinstance(launch, Forest):
                order += walk(layout, words, len(numbers), launch)
            else:
                order.append(numbers[launch.record_at])
        assert sorted(order) == list(range(len(numbers)))
        when = {step: time for time, step in enumerate(order)}
        parents = program.words[program.starts + 13].tolist()
        assert all(parent < 0 or when[step] < when[parent] for step, parent in enumerate(parents))


def test_too_large_a_step_is_an_error():
    builder = Builder(np.random.default_rng(0), "min-sum", "int32")
    axes = [builder.variable(40) for _ in range(3)]
    variable = builder.variable(100)
    builder.step(variable, axes, [[variable, *axes]], [], outer=0, mid=1)
    program, _ = builder.program()
    with pytest.raises(DeviceError, match=r"bytes of shared memory.*--device cpu"):
        lay_out(program, 132, 1 << 10)
