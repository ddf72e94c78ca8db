"""Plans divided among devices: here the devices are CPU backends, and steps are divided however small they are."""

from __future__ import annotations

import contextlib
import itertools
import json

import numpy as np
import pytest

from elimina import DeviceError, Model, TimeLimitError
from elimina.backends.cpu import CpuBackend
from elimina.backends.cuda.forest import ForestLaunch
from elimina.backends.cuda.peer_session import copy_words
from elimina.backends.cuda.translation import lay_out
from elimina.backends.device_group import DeviceGroup
from elimina.backends.protocols import run_once
from elimina.planning import shards
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.machine import cuda_machine
from elimina.planning.planner import Elimination, make_plan
from elimina.planning.program import pack
from elimina.planning.shard_copies import boxes
from elimina.planning.shard_program import Exchange, GpuTable, Range, lengths_of
from elimina.planning.shards import make_shards
from elimina.planning.step import FactorLayout
from elimina.problem.preparation import prepare
from elimina.running import host, plan_choice, shared_plans
from elimina.running.encoding import encode
from tests import calls
from tests.behaviour.test_several_devices import Gpu, SlowGpu
from tests.cpu_devices import CpuDevice
from tests.planning import test_fusion

GIB = 1 << 30


def divide(monkeypatch, divisions=None):
    """Make plans be divided if there are several devices; ``divisions``: chooses each step's, not by its cost."""
    for name in ("DIVIDED_SECONDS", "GPU_COPY_SECONDS", "GPU_JOIN_SECONDS"):
        monkeypatch.setattr(shards, name, 0.0)
    for name in ("MIN_SHARED_PLAN_SECONDS", "MIN_SHARDED_PLAN_SECONDS"):
        monkeypatch.setattr(shared_plans, name, -1.0)
    if divisions is not None:
        chosen = shards._DivisionSearch._divisions

        def search(self):
            found = [divisions(chosen(self, step)) for step in self._steps]
            return found, 0.0

        monkeypatch.setattr(shards._DivisionSearch, "best", search)
    made = make_shards

    def first(*given):
        found = made(*given)
        return found and found._replace(seconds=0.0)

    monkeypatch.setattr(shared_plans, "make_shards", first)


@pytest.fixture
def use(monkeypatch):
    """A function that puts devices in the place of GPUs."""

    def put(*members):
        monkeypatch.setattr(host, "get_backend", lambda device, threads=None: DeviceGroup(members))
        monkeypatch.setattr(plan_choice, "get_backend", lambda device, threads=None: DeviceGroup(members))
        return members

    return put


def random_model(rng, count=9, pairs=16):
    """Factors over random pairs of variables with 2 to 5 states, some of their values 0."""
    sizes = rng.integers(2, 6, count).tolist()
    scopes = {tuple(sorted(rng.choice(count, 2, replace=False).tolist())) for _ in range(pairs)}
    factors = [
        (scope, rng.uniform(0.1, 2, [sizes[v] for v in scope]) * 10.0 ** rng.integers(-9, 9)) for scope in scopes
    ]
    for _, values in factors:
        values[rng.random(values.shape) < 0.1] = 0
    return Model.from_arrays(sizes, factors, sense="probability")


def names(count):
    return [f"cuda:{number}" for number in range(count)]


def solved(model, task, device, dtype=None):
    return calls.solve(model, task, device=device, method="eliminate", order="min-fill", dtype=dtype, slices="never")


@pytest.mark.parametrize("gpus", [2, 3, 4, 8])
@pytest.mark.parametrize(("task", "dtype"), [("pr", None), ("pr", "float32"), ("count", None)])
@pytest.mark.parametrize("is_random", [False, True])
def test_answers_of_divided_plans(monkeypatch, use, gpus, task, dtype, is_random):
    rng = np.random.default_rng([gpus, is_random])
    divided = 0
    for _ in range(6):
        model = random_model(rng)
        expected = solved(model, task, "cpu", dtype)
        with monkeypatch.context() as patch:
            divide(patch, (lambda known: known[rng.integers(len(known))]) if is_random else None)
            use(*(CpuDevice(1) for _ in range(gpus)))
            found = solved(model, task, names(gpus), dtype)
        assert found.status == expected.status
        if task == "count":
            assert found.value == expected.value
        else:
            assert found.log10_z == pytest.approx(expected.log10_z, rel=1e-12 if dtype is None else 1e-5)
        divided += found.stats.get("gpus") == gpus
    assert divided >= 4


def tables_of(rng, gpus):
    """A table on all GPUs, divided in two ways, and its cells."""
    axes, sizes = tuple(range(4)), tuple(rng.integers(1, 6, 4).tolist())
    found = []
    for _ in range(2):
        division, stride = [], 1
        for v in rng.permutation(4)[: rng.integers(0, 4)].tolist():
            parts = int(rng.integers(1, min(sizes[v], gpus // stride) + 1))
            if parts > 1:
                division.append(Range(v, parts, stride))
                stride *= parts
        lengths = lengths_of(axes, sizes, tuple(division))
        strides = tuple(np.cumprod([1, *lengths[:0:-1]])[::-1].tolist())
        offset = int(rng.integers(0, 5))
        found.append(GpuTable(axes, sizes, tuple(division), offset, strides, int(np.prod(lengths))))
    return Exchange(*found), np.arange(np.prod(sizes)).reshape(sizes)


def part_of(table, cells, gpu):
    """The cells of a table that a GPU has."""
    for range_ in table.division:
        length = range_.length(table.sizes[range_.variable])
        first = gpu // range_.stride % range_.ranges * length
        cells = cells.take(np.arange(first, first + length), axis=range_.variable, mode="wrap")
    return cells


def view(arena, table):
    item = arena.itemsize
    steps = [item * stride for stride in table.strides]
    return np.ndarray(table.sizes, arena.dtype, arena, item * table.offset, steps)


@pytest.mark.parametrize("gpus", [1, 2, 3, 5, 8])
def test_each_cell_is_copied_once_and_from_a_gpu_that_has_it(gpus):
    rng = np.random.default_rng(gpus)
    for _ in range(60):
        exchange, cells = tables_of(rng, gpus)
        source, target = exchange
        arenas = []
        for gpu in range(gpus):
            arenas.append(np.full(source.offset + source.span, -1))
            arenas[-1][source.offset :] = part_of(source, cells, gpu).reshape(-1)
        for gpu in range(gpus):
            own = np.full(target.offset + target.span, -1)
            count = 0
            for box in boxes(exchange, gpu, gpus):
                own_cells = view(own, box.target)
                assert (own_cells == -1).all()
                own_cells[...] = view(arenas[box.gpu], box.source)
                count += box.target.cells
            np.testing.assert_array_equal(own[target.offset :], part_of(target, cells, gpu).reshape(-1))
            assert count == target.span


@pytest.mark.parametrize("dtype", ["int16", "int32", "float64"])
def test_words_are_copied_as_cells_are(dtype):
    rng, longest = np.random.default_rng(0), 0
    item = np.dtype(dtype).itemsize
    for _ in range(200):
        sizes = rng.choice([1, 2, 4, 5, 8, 16], 3).tolist()
        tables = []
        for _ in range(2):
            pitches = [size + int(rng.choice([0, 0, 8])) for size in sizes]
            strides = (pitches[1] * pitches[2], pitches[2], 1)
            tables.append(FactorLayout((), (0, 1, 2), tuple(sizes), strides, int(rng.choice([0, 1, 8])), 0))
        source, target = tables
        given = rng.integers(0, 100, 8000).astype(dtype)
        expected, found = np.zeros(8000, dtype), np.zeros(8000, dtype)
        view(expected, target)[...] = view(given, source)
        word, shape, given_strides, own_strides = copy_words(source, target, item)
        longest = max(longest, word)
        kind = np.dtype(f"V{word}")
        assert source.offset * item % word == target.offset * item % word == 0
        taken = np.ndarray(shape, kind, given, source.offset * item, given_strides)
        np.ndarray(shape, kind, found, target.offset * item, own_strides)[...] = taken
        np.testing.assert_array_equal(found, expected)
    assert longest == 16


def strip(width, length, size):
    """A long grid, in the order of its columns."""
    last = width * length
    pairs = [(v, v + 1) for v in range(last) if (v + 1) % width] + [(v, v + width) for v in range(last - width)]
    model = Model.from_arrays([size] * last, [(pair, np.ones((size, size))) for pair in pairs], sense="probability")
    return prepare(model, "pr", {}), tuple(range(last))


@pytest.mark.parametrize(
    ("gpus", "size", "share", "seconds"),
    [(2, 8, 1 / 2, 0.85), (4, 8, 1 / 4, 0.54), (8, 8, 1 / 8, 0.36), (2, 9, 5 / 9, 0.84), (3, 9, 1 / 3, 0.57)],
)
def test_gpus_have_even_shares_of_memory_and_time(gpus, size, share, seconds):
    problem, order = strip(10, 14, size)
    whole = make_plan(Elimination(problem, order, cuda_machine(), 10 * GIB))
    found = make_shards(whole, cuda_machine(), gpus, 10 * GIB)
    assert found is not None
    assert 0.9 * share <= found.peak_bytes / whole.peak_bytes <= 1.06 * share
    assert found.seconds - 1 < seconds * (whole.seconds - 1)
    assert len(found.form.divided) > len(found.steps) // 2


def test_tables_that_are_needed_at_the_same_time_do_not_overlap():
    rng = np.random.default_rng(3)
    for _ in range(20):
        memory = shards._Memory(None)
        lives = []
        for number in range(40):
            memory.advance()
            lives.append([number, None, int(rng.integers(1, 5000))])
            memory.allocate(lives[-1][2])
            for table, life in enumerate(lives):
                if life[1] is None and rng.random() < 0.3:
                    life[1] = number
                    memory.release(table)
        ends = [99 if end is None else end for _, end, _ in lives]
        places, height = memory.placements(100, 32)
        assert max(place + span for place, (_, _, span) in zip(places, lives, strict=True)) <= height
        assert min(places) >= 100
        for one, other in itertools.combinations(range(40), 2):
            if one <= ends[other] and other <= ends[one]:
                low, high = sorted((one, other), key=places.__getitem__)
                assert places[low] + lives[low][2] <= places[high]


def test_what_cannot_be_divided():
    machine = cuda_machine()
    model = random_model(np.random.default_rng(0))
    for task in ("mpe", "mar"):
        problem = prepare(model, task, {})
        plan = make_plan(Elimination(problem, problem.free, machine, GIB))
        assert make_shards(plan, machine, 2, GIB) is None
    problem, order = strip(4, 4, 3)
    assert make_shards(make_plan(Elimination(problem, order, machine, GIB)), machine, 2, GIB) is None


def test_copied_outputs_lie_in_the_arena(monkeypatch):
    """On a GPU, small outputs have places of their own, which other GPUs do not know."""
    divide(monkeypatch)
    problem, order = strip(4, 5, 3)
    plan = make_shards(make_plan(Elimination(problem, order, cuda_machine(), GIB)), cuda_machine(), 2, GIB)
    program = pack(plan, len(order))
    copied = list(plan.form.copied)
    assert copied
    starts = program.starts[copied]
    words = lay_out(program, 132, 227 << 10).words
    np.testing.assert_array_equal(words[starts + 12], program.words[starts + 12])
    others = [n for n in range(len(program.starts)) if n not in copied and n not in program.outputs[:, 0]]
    assert others
    assert (words[program.starts[others] + 12] != program.words[program.starts[others] + 12]).all()


def test_tables_beyond_any_machine_are_not_divided():
    """Places of 64 bits would not hold them."""
    problem, order = strip(60, 3, 8)
    plan = make_plan(Elimination(problem, order[::3] + order[1::3] + order[2::3], cuda_machine(), GIB))
    assert plan.peak_bytes > 2**63
    assert make_shards(plan, cuda_machine(), 2, GIB) is None


class SeenCuda:
    """A GPU that plans see, and that runs nothing."""

    name, machine, threads = "cuda", cuda_machine(), 1

    def __init__(self, memory):
        self._memory = memory

    def memory(self):
        return self._memory


def test_the_planner_takes_what_is_fastest():
    """A long strip has no few variables that cut it; a square grid has."""
    options = CheckedOptions(device="cuda:0,cuda:1", order=tuple(range(200)), slices=10**9)
    gpus = DeviceGroup([SeenCuda(12 * GIB), SeenCuda(12 * GIB)])
    problem, order = strip(10, 20, 8)
    one = plan_choice._plan_for(gpus, problem, order, options)
    assert one.form.gpus == 1
    _, found = shared_plans.shared_out(gpus, problem, order, options, one)
    assert found.form.gpus == 2
    assert found.fits
    figures = json.loads(found.to_json())
    assert (figures["gpus"], figures["slices"]) == (2, None)
    assert "GPUs:                 2; " in str(found)
    roomy = DeviceGroup([SeenCuda(12 * GIB)])
    assert shared_plans.shared_out(roomy, problem, order, options, one)[1] is one
    easy, ordered = strip(8, 8, 4)
    plan = plan_choice._plan_for(gpus, easy, ordered, options)
    assert shared_plans.shared_out(gpus, easy, ordered, options, plan)[1].form.gpus == 1


@pytest.mark.parametrize("runs", [0, 1, 5])
def test_the_others_answer_where_a_gpu_is_lost(monkeypatch, use, caplog, runs):
    model = random_model(np.random.default_rng(1))
    expected = solved(model, "pr", "cpu")
    divide(monkeypatch)
    lost, _ = use(Gpu(runs), Gpu())
    found = solved(model, "pr", names(2))
    assert lost.left == 0
    assert found.log10_z == pytest.approx(expected.log10_z, rel=1e-12)
    assert "gpus" not in found.stats
    assert "the GPU fell off the bus; the plan is divided among 2 devices" in caplog.text


def test_one_error_where_all_gpus_are_lost(monkeypatch, use):
    divide(monkeypatch)
    use(Gpu(2), Gpu(2))
    with pytest.raises(DeviceError, match="all 2 devices failed, the last one so: the GPU fell off the bus"):
        solved(random_model(np.random.default_rng(1)), "pr", names(2))


def test_another_error_of_a_gpu_ends_the_call(monkeypatch, use):
    class Broken(Gpu):
        def open(self, program, factors):
            session = super().open(program, factors)

            def run(steps=None, progress=None):
                raise ValueError("broken")

            session.run = run
            return session

    divide(monkeypatch)
    use(Gpu(), Broken())
    with pytest.raises(ValueError, match="broken"):
        solved(random_model(np.random.default_rng(1)), "pr", names(2))


@pytest.mark.parametrize("size", [2, 3, 4])
def test_each_launch_belongs_to_one_phase(monkeypatch, size):
    """A GPU waits for the others between large steps; small ones run before the next large one."""
    rng = np.random.default_rng(size)
    divide(monkeypatch, lambda known: known[rng.integers(len(known))] if rng.random() < 0.5 else ())
    problem, order = strip(5, 6, size)
    plan = make_shards(make_plan(Elimination(problem, order, cuda_machine(), GIB)), cuda_machine(), 2, GIB)
    program = pack(plan, len(order))
    layout = lay_out(program, 132, 227 << 10)
    large, launches, number = iter(layout.larges), [], None
    for launch in layout.launches:
        number = None if isinstance(launch, ForestLaunch) else next(large)
        launches.append((launch, number))
    phases = [layout.phase(phase.first, phase.end, len(program.starts)) for phase in plan.form.phases]
    assert [launch for phase in phases for launch in phase.launches] == list(layout.launches)
    assert [phase.sequence for phase in phases] == [layout.sequence, *[0] * (len(phases) - 1)]
    numbers = {id(launch): number for launch, number in launches}
    for phase, part in zip(plan.form.phases, phases, strict=True):
        own = [numbers[id(launch)] for launch in part.launches if numbers[id(launch)] is not None]
        assert all(phase.first <= number < phase.end for number in own)
        if phase.joined:
            assert own[-1] == phase.end - 1
        if phase.copies and phase.first:
            assert phase.first in own
    assert any(isinstance(launch, ForestLaunch) for launch in layout.launches)


def test_output_ranges_are_joined_of_divided_steps_alone(monkeypatch):
    """Small steps of a GPU may run before their number's turn: their ranges must stay as they are."""

    class Seen(CpuDevice):
        def open(self, program, factors):
            session = super().open(program, factors)
            join = session.join_peaks

            def seen(others, step):
                joined.append(step)
                join(others, step)

            session.join_peaks = seen
            return session

    joined = []
    divide(monkeypatch)
    problem, order = strip(4, 5, 3)
    plan = make_shards(make_plan(Elimination(problem, order, cuda_machine(), GIB)), cuda_machine(), 2, GIB)
    factors = np.ones(plan.factor_cells)
    session = DeviceGroup([Seen(1), Seen(1)]).open(pack(plan, len(order)), factors)
    run = session.run()
    session.close()
    assert sorted(joined) == sorted((*plan.form.divided, *plan.form.divided))
    assert (run.peaks[:, 0] > 0).all()


def test_ranges_of_all_parts():
    problem, order = strip(2, 2, 2)
    program = pack(make_plan(Elimination(problem, order, cuda_machine(), GIB)), len(order))
    sessions = [CpuDevice(1).open(program, np.ones(program.factor_cells)) for _ in range(3)]
    for ranges, expected in (((3.0, 0.5), (5.0, 0.25), (0.0, 0.0)), [5.0, 0.25]), (np.zeros((3, 2)), [0.0, 0.0]):
        for session, own in zip(sessions, ranges, strict=True):
            session.load_peaks(np.array([own]))
        # The others' ranges may be joined already.
        for session in sessions:
            session.join_peaks([other for other in sessions if other is not session], 0)
        assert [session._peaks[0].tolist() for session in sessions] == [expected] * 3


def test_the_time_limit_ends_all_devices(monkeypatch, use):
    divide(monkeypatch)
    first, second = use(SlowGpu(), SlowGpu())
    model = random_model(np.random.default_rng(1))
    with contextlib.suppress(TimeLimitError):
        calls.solve(
            model, "pr", device=names(2), method="eliminate", order="min-fill", slices="never", time_limit=0.7
        )  # fmt: skip
    # The plan has more than ten phases.
    assert 0 < first.ran <= second.ran + 1 < 8


@pytest.mark.parametrize("gpus", [2, 4])
def test_steps_that_eliminate_several_variables(monkeypatch, gpus):
    monkeypatch.setattr("elimina.running.fused_steps.MIN_FUSED_SECONDS", 0)
    monkeypatch.setattr("elimina.running.fused_steps.MAX_FUSED_TIME_SHARE", 2)
    rng = np.random.default_rng(gpus)
    divide(monkeypatch, lambda known: known[rng.integers(len(known))])
    model, _ = test_fusion.ladder(2, test_fusion.WIDTH, 2, "probability")
    _, plan = test_fusion.plans(model, "pr")
    assert any(step.others for step in plan.steps)
    count = len(model.variables)
    factors = encode(prepare(model, "pr", {}), plan).arena
    expected = run_once(CpuBackend(1), pack(plan, count), factors)
    divided = 0
    for _ in range(6):
        found = make_shards(plan, cuda_machine(), gpus, GIB)
        if found is None:
            continue
        divided += any(plan.steps[number].others for number in found.form.divided)
        run = run_once(DeviceGroup([CpuDevice(1)] * gpus), pack(found, count), factors)
        np.testing.assert_allclose(run.peaks, expected.peaks, rtol=1e-9)
    assert divided
