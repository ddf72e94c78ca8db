"""Layout of programs on a device: every step runs once, after the steps that it reads. No CUDA is needed."""

from __future__ import annotations

import numpy as np
import pytest

from elimina.backends.cuda import forest, layout_cache, translation
from elimina.backends.cuda.forest import AWAITED, CHUNK_BITS, LINK_WORDS, ForestLaunch
from elimina.backends.cuda.layout_cache import kept_layout
from elimina.backends.cuda.moment_matching import choose_level
from elimina.backends.cuda.translation import lay_out
from elimina.errors import DeviceError
from elimina.planning.record import AXES, HEADER, TABLES, VARIABLE
from tests.reference.random_programs import Builder, one_levelling, padded_bucket, random_program


class Blocks:
    """One block that takes entries as ``kernels/forest.cu`` says; it writes down in which order steps are done."""

    def __init__(self, program, layout):
        self.layout, count = layout, len(program.starts)
        self.links = layout.words[layout.links_at :][: LINK_WORDS * count].reshape(count, LINK_WORDS)
        counters = layout.state[layout.pending_at :][: 8 * count].view(np.int32).copy()
        self.pending, self.unfinished = counters[:count], counters[count:]
        self.levels = {int(start): number for number, start in enumerate(program.starts)}
        self.order: list[int] = []

    def run(self):
        for launch in self.layout.launches:
            if isinstance(launch, ForestLaunch):
                self.forest(launch)
            else:
                is_level = launch.record_at in self.levels
                self.order.append(self.levels[launch.record_at] if is_level else launch.arguments[1])
        return self.order

    def forest(self, launch):
        words = self.layout.words
        for entry in words[self.layout.entries_at + launch.first :][: launch.slots].tolist():
            step = entry >> CHUNK_BITS
            waits, waits_at = self.links[step, 8:].tolist()
            # Blocks that take later entries wait for earlier ones alone, so in this order none waits at all.
            assert not self.unfinished[words[waits_at : waits_at + waits]].any()
            assert not launch.tree or waits == 0
            while step >= 0:
                assert not launch.tree or self.links[step, 4] == 1
                step = self.finish(step)

    def finish(self, step):
        """Finish a chunk of a step, and return the step that the block walks to."""
        following, start, length, children, chunks = self.links[step, :5].tolist()
        if chunks > 1 or following == AWAITED:
            self.unfinished[step] -= 1
            if self.unfinished[step]:
                return -1
        self.order.append(step)
        if following < 0:
            return -1
        assert self.links[following, [4, 6, 7]].tolist() == [1, start, length]
        if children > 1:
            self.pending[following] -= 1
            if self.pending[following]:
                return -1
        return following


def test_decoding_ends_at_the_first_decoded_step():
    program, _ = random_program(np.random.default_rng(3), "min-sum", "int32")
    for first in range(len(program.starts) + 1):
        layout = lay_out(program._replace(decode=True, first_decoded=first), 132, 227 << 10)
        decoded = layout.words[layout.decode_at + 1 :][: layout.decode_steps].tolist()
        eliminating = [start for start in program.starts[first:].tolist() if program.words[start + VARIABLE] >= 0]
        assert decoded == eliminating[::-1]


@pytest.mark.parametrize(("chunk", "small"), [(10, 100), (50, 50), (200, 5000), (1 << 14, 1 << 22), (1, 0)])
def test_each_step_runs_once_after_what_it_reads(monkeypatch, chunk, small):
    monkeypatch.setattr(forest, "MIN_CHUNKED_WORK", chunk)
    monkeypatch.setattr(translation, "MAX_FOREST_WORK", small)
    monkeypatch.setattr(forest, "THREADS", 4)
    monkeypatch.setattr(forest, "WARP_THREADS", 2)
    monkeypatch.setattr(forest, "MAX_CHUNKS", 5)
    monkeypatch.setattr(translation, "MAX_CHUNKS", 5)
    chunks = 0
    for seed in range(24):
        rng = np.random.default_rng(seed)
        program, _ = random_program(rng, "min-sum", "int32", levels=seed % 4 == 1)
        count = len(program.starts)
        some = np.sort(rng.permutation(count)[: rng.integers(0, count + 1)])
        for sequence in (None, some):
            layout = lay_out(program, 132, 227 << 10, sequence)
            blocks = Blocks(program, layout)
            order = blocks.run()
            chunks = max(chunks, blocks.links[:, 4].max())
            assert sorted(order) == (list(range(count)) if sequence is None else some.tolist())
            when = {step: time for time, step in enumerate(order)}
            for step, start in enumerate(program.starts.tolist()):
                words = program.words[start : start + program.words[start]].tolist()
                tables = [words[HEADER + 3 * words[AXES] :][n * (3 + words[AXES]) :] for n in range(words[TABLES])]
                for source in (table[2] for table in tables):
                    assert source not in when or step not in when or when[source] < when[step]
    assert (chunks > 1) == (chunk < 1 << 14)


@pytest.mark.parametrize(
    ("out", "one", "other", "row", "lanes"),
    [
        ((30, 1), (30, 1), (30, 1), 0, 8),
        ((32, 1), (32, 1), (32, 1), 1, 8),
        ((32, 1), (30, 1), (32, 1), 1, 1),
        ((30, 1), (30, 1), (1, 6), 2, 1),
    ],
)
def test_levellings_are_read_in_words_where_rows_start_at_them(out, one, other, row, lanes):
    program, _ = one_levelling(np.random.default_rng(0), "min-sum", "int16", (1,), 2)[0].program()
    record = [30, 1, -2, 2, 2, 0, 180, 1, 1, 2, 1, 0, 1600, 0, 6, out[0], 0, 30, out[1], 1]
    record += [0, 0, 3, *one, 800, 0, 4, *other]
    launch = choose_level(program, 77, record, 132)
    assert (launch.record_at, launch.arguments, launch.kernel.lanes) == (77, (row,), lanes)
    assert launch.blocks * launch.threads * lanes >= launch.work == 180


def test_large_levellings_are_launched_alone():
    builder, numbers = one_levelling(np.random.default_rng(0), "min-sum", "int16", (40, 30, 100), 3)
    program, _ = builder.program()
    launches = lay_out(program, 132, 227 << 10).launches
    assert [launch.record_at for launch in launches[-3:]] == program.starts[numbers].tolist()
    builder, _ = one_levelling(np.random.default_rng(0), "min-sum", "int16", (40, 30), 3)
    assert [launch.levels for launch in lay_out(builder.program()[0], 132, 227 << 10).launches] == [True]


def test_too_large_a_step_is_an_error():
    builder = Builder(np.random.default_rng(0), "min-sum", "int32")
    axes = [builder.variable(40) for _ in range(3)]
    variable = builder.variable(100)
    builder.step(variable, axes, [[variable, *axes]], [], outer=0, mid=1)
    program, _ = builder.program()
    with pytest.raises(DeviceError, match=r"bytes of shared memory.*use the CPU"):
        lay_out(program, 132, 1 << 10)


@pytest.mark.parametrize(("dtype", "lo_cells"), [("int16", 30000), ("int32", 300)])
def test_cells_of_two_bytes_get_rows_that_start_at_words(dtype, lo_cells):
    """Rows of 300 such cells would not, rows of 30000 are padded; then A has no lo axis and B no mid axis still."""
    program, _ = padded_bucket(dtype)
    layout = lay_out(program, 132, 227 << 10)
    words = layout.words[layout.launches[-1].record_at :].tolist()
    outer, mid, tables_a, tables_b = words[4], words[5], words[10], words[11]
    assert words[8] == lo_cells
    assert layout.launches[-1].kernel.aligned
    at = HEADER + 3 * words[AXES]
    tables = [words[at + n * (3 + words[AXES]) :][3 : 3 + words[AXES]] for n in range(words[TABLES])]
    assert not any(stride for table in tables[:tables_a] for stride in table[outer + mid :])
    assert not any(stride for table in tables[tables_a : tables_a + tables_b] for stride in table[outer : outer + mid])


def test_layouts_are_kept_for_the_same_steps(monkeypatch):
    made = []
    monkeypatch.setattr(layout_cache, "MAX_KEPT_LAYOUTS", 2)
    monkeypatch.setattr(layout_cache, "_layouts", type(layout_cache._layouts)())
    monkeypatch.setattr(layout_cache, "lay_out", lambda *args: made.append(args) or lay_out(*args))
    first, again, other = (random_program(np.random.default_rng(s), "min-sum", "int32")[0] for s in (0, 0, 1))
    kept = kept_layout(first, 132, 227 << 10, False)
    assert kept_layout(again, 132, 227 << 10, False) is kept
    assert kept_layout(again._replace(parameter=5), 132, 227 << 10, False) is kept
    assert len(made) == 1
    for changed in (
        other,
        first._replace(decode=not first.decode),
        first._replace(keep=not first.keep),
        first._replace(semiring="log-sum-exp"),
        first._replace(arena_cells=first.arena_cells + 64),
    ):
        found = kept_layout(changed, 132, 227 << 10, False)
        assert found is not kept
        assert np.array_equal(found.words, lay_out(changed, 132, 227 << 10).words)
    assert len(made) == 6
    assert kept_layout(again, 132, 227 << 10, False) is not kept
    monkeypatch.setattr(layout_cache, "MAX_KEPT_WORDS_BYTES", 0)
    assert kept_layout(again, 132, 227 << 10, False) is not kept_layout(again, 132, 227 << 10, False)
