"""The CUDA backend against the plain executor: every semiring, dtype and class of tile, ties, decoding."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from elimina.backends.cuda import faces_blocks, split_sums, tile_launch, translation
from elimina.backends.cuda import session as session_module
from elimina.backends.cuda.backend import CudaBackend
from elimina.backends.cuda.kernels import FacesKernel, TileKernel
from elimina.backends.cuda.layout_cache import MAX_KEPT_WORDS_BYTES
from elimina.backends.protocols import run_once
from elimina.errors import DeviceError
from elimina.problem.semirings import SEMIRINGS
from tests.reference import program as reference
from tests.reference.random_programs import Builder, one_levelling, padded_bucket, planned_levelling, random_program

pytestmark = pytest.mark.gpu
KINDS = [(name, dtype) for name, semiring in SEMIRINGS.items() for dtype in semiring.dtypes]


@pytest.fixture(scope="module")
def backend():
    return CudaBackend()


@pytest.fixture(params=["mixed", "tiles", "split sums"])
def route(request, monkeypatch):
    """``tiles``: even the smallest step takes the tile kernel; ``split sums``: and even few values are divided."""
    if request.param != "mixed":
        monkeypatch.setattr(translation, "MAX_FOREST_WORK", -1)
    if request.param == "split sums":
        monkeypatch.setattr(split_sums, "MIN_DOMAIN", 2)
    return request.param


def check(backend, program, factors):
    found = run_once(backend, program, factors)
    reference.assert_same(program, found, reference.run(program, factors))
    return found


def one_step(rng, semiring, dtype, sizes, domain, scopes, outer, mid, **options):
    """A step over `sizes` with factors over `scopes` (positions of axes), and a step that sums its output up."""
    builder = Builder(rng, semiring, dtype, **options)
    axes = [builder.variable(size) for size in sizes]
    variable = builder.variable(domain)
    first = builder.step(
        variable, axes, [[variable, *(axes[a] for a in scope)] for scope in scopes], [], outer=outer, mid=mid
    )
    for number in range(len(axes)):
        rest = axes[number + 1 :]
        first = builder.step(axes[number], rest, [], [first], outer=0, mid=max(0, len(rest) - 2))
    return builder.program(decode=SEMIRINGS[semiring].is_idempotent)


@pytest.mark.parametrize(("semiring", "dtype"), KINDS)
def test_random_programs(backend, route, semiring, dtype):
    for seed in range(30):
        rng = np.random.default_rng([seed, KINDS.index((semiring, dtype))])
        decode = seed % 2 == 0 and SEMIRINGS[semiring].is_idempotent
        levels = SEMIRINGS[semiring].is_matched and not decode
        top = int(rng.choice([2, 5, 13, 50]))
        check(backend, *random_program(rng, semiring, dtype, top=top, decode=decode, levels=levels))


@pytest.mark.parametrize(("semiring", "dtype"), KINDS)
@pytest.mark.parametrize("streamed", [0, 1, 2, 3, 6])
def test_tile_classes(backend, semiring, dtype, streamed):
    rng = np.random.default_rng(streamed)
    for sizes, domain, outer, mid in [
        ((3, 5, 10, 10, 10), 10, 1, 1),
        ((7, 11, 13, 13), 7, 0, 2),
        ((2, 40, 96), 100, 1, 1),
        ((2,) * 13, 2, 3, 4),
        ((3, 1, 700), 5, 1, 1),
        ((1500,), 9, 0, 0),
        ((300, 7), 33, 0, 1),
        ((64, 64), 3, 2, 0),
        ((5000, 2), 4, 0, 2),
    ]:
        lo = outer + mid
        everything = tuple(range(len(sizes)))
        part = tuple(a for a in everything if a != 0 or len(sizes) == 1)
        scopes = [everything if n % 2 == 0 else part for n in range(streamed)]
        scopes += [everything[:lo], everything[:1][:lo], (*everything[:outer], *everything[lo:]), everything[lo:]][
            : 3 + streamed % 2
        ]
        padding = float(rng.choice([0.0, 1.0]))
        check(backend, *one_step(rng, semiring, dtype, sizes, domain, scopes, outer, mid, padding=padding))


@pytest.mark.parametrize(
    ("semiring", "dtype"), [("min-sum", "int16"), ("min-sum", "float32"), ("sum-product", "float64")]
)
@pytest.mark.parametrize("sizes", [(50, 60, 130), (7, 500, 97), (9000, 36)])
def test_products_of_small_tables(backend, semiring, dtype, sizes):
    """Many batches of mid cells for each part of a block."""
    rng = np.random.default_rng(11)
    last = len(sizes) - 1
    scopes = [tuple(range(last)), (0,), (last,), (last,)]
    check(backend, *one_step(rng, semiring, dtype, sizes, 30, scopes, 0, last))


@pytest.mark.parametrize(("semiring", "dtype"), [kind for kind in KINDS if SEMIRINGS[kind[0]].is_matched])
def test_levellings_of_all_sizes(backend, route, semiring, dtype):
    rng = np.random.default_rng(4)
    for count in (2, 3, 4, 5, 6, 16):
        for sizes in [(3, 5), (700,), (40, 30, 100), (7, 3, 2, 5, 333), (50, 3, 1, 1, 417)]:
            for same_order, padding in [(True, 0.0), (True, 1.0), (False, 0.5)]:
                options = {"same_order": same_order, "padding": padding}
                builder, _ = one_levelling(rng, semiring, dtype, sizes, count, **options)
                check(backend, *builder.program())


@pytest.mark.parametrize(("semiring", "dtype"), [kind for kind in KINDS if SEMIRINGS[kind[0]].is_matched])
def test_levellings_of_padded_rows(backend, route, semiring, dtype):
    """Sizes that fill whole words, and sizes that end within a word."""
    rng = np.random.default_rng(6)
    for count in (2, 3, 5):
        for sizes in [(9,), (33, 65), (400, 71), (300, 3, 43), (16, 4096), (7, 2, 30001)]:
            check(backend, *planned_levelling(rng, semiring, dtype, sizes, count))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "scopes",
    [
        [(0, 2, 4), (1, 2, 3, 4)],
        [(0, 2, 4), (1, 2, 3, 4), (1, 2, 3, 4)],
        [(0, 1, 3), (0, 2), (0, 4), (4,), (1, 2, 3, 4)],
        [(1, 2, 3, 4)],
    ],
)
@pytest.mark.parametrize("shared", [2, 7, 9])
def test_what_is_streamed_serves_several_outer_cells(backend, monkeypatch, dtype, scopes, shared):
    monkeypatch.setattr(translation, "MAX_FOREST_WORK", -1)
    outers = []
    # Not where tables happen to start between words.
    for seed in range(5):
        rng = np.random.default_rng([shared, seed])
        program, factors = one_step(
            rng, "sum-product", dtype, (shared, 5, 3, 11, 208), 6, scopes, 1, 3, padding=float(seed > 0)
        )
        kernels = [
            launch.kernel for launch in backend.lay_out(program).launches if isinstance(launch, tile_launch.TileLaunch)
        ]
        outers += [kernel.outers for kernel in kernels if isinstance(kernel, TileKernel)]
        check(backend, program, factors)
    assert max(outers) > 1


@pytest.mark.parametrize(("semiring", "dtype"), KINDS)
def test_streamed_tables_that_lack_outer_axes(backend, monkeypatch, semiring, dtype):
    """Each table is a face of a box of outer, mid and lo cells; with several tables a face, and none."""
    monkeypatch.setattr(translation, "MAX_FOREST_WORK", -1)
    monkeypatch.setattr(faces_blocks, "STREAMED_BYTES_PER_CYCLE", 1e-9)
    for number, (sizes, domain, scopes, outer, mid) in enumerate(
        [
            ((9, 13, 21), 7, [(0, 1), (0, 2), (1, 2)], 1, 1),
            ((29, 6, 70), 37, [(0, 1), (0,), (1,), (0, 2), (2,), (1, 2)], 1, 1),
            ((3, 5, 2, 7, 4, 11), 16, [(0, 1, 2), (1, 3), (1, 4), (0, 2, 3, 4, 5)], 2, 2),
            ((6, 4, 3, 40), 5, [(1, 3), (0, 2, 3)], 2, 1),
            ((2, 5, 33, 8), 50, [(0, 1, 2), (1, 3), (0, 2, 3)], 2, 1),
        ]
    ):
        program, factors = one_step(
            np.random.default_rng(number), semiring, dtype, sizes, domain, scopes, outer, mid, padding=0.3
        )
        kernels = [
            launch.kernel for launch in backend.lay_out(program).launches if isinstance(launch, tile_launch.TileLaunch)
        ]
        assert any(isinstance(kernel, FacesKernel) for kernel in kernels) or semiring == "sum-product"
        check(backend, program, factors)


@pytest.mark.parametrize("semiring", ["min-sum", "sum-product"])
@pytest.mark.parametrize("seed", [0, 3])
def test_runs_again_and_again_of_new_values(backend, semiring, seed):
    """The first run launches step by step; later ones are a graph, made at once where messages are kept."""
    levels = SEMIRINGS[semiring].is_matched
    program, factors = random_program(np.random.default_rng(seed), semiring, "float64", top=13, levels=levels)
    session = backend.open(program, factors)
    for number, scale in enumerate((1.0, 0.5, 0.25, 2.0)):
        changed = factors.copy()
        changed[: len(factors) // 2] *= scale
        session.load(0, changed[: len(factors) // 4])
        session.load(len(factors) // 4, changed[len(factors) // 4 :])
        assert np.array_equal(session.fetch(0, len(factors)), changed)
        reference.assert_same(program, session.run(), reference.run(program, changed))
        assert (session.whole_program.recording.graph is not None) == (program.keep or number > 0)
    session.close()


@pytest.mark.parametrize("stage", [8, 40, 1 << 20])
def test_what_is_fetched_by_several_threads_is_the_arena(backend, monkeypatch, stage):
    monkeypatch.setattr(session_module, "STAGE_BYTES", stage)
    program, factors = random_program(np.random.default_rng(5), "min-sum", "float64", top=13)
    session = backend.open(program, factors)
    for first, count in ((0, len(factors)), (1, len(factors) - 2), (3, 1), (2, 0)):
        assert np.array_equal(session.fetch(first, count), factors[first : first + count])
    session.close()


@pytest.mark.parametrize("dtype", ["int16", "int32", "float64"])
@pytest.mark.parametrize("streamed", [0, 1, 3])
def test_large_domains(backend, dtype, streamed):
    rng = np.random.default_rng(5)
    scopes = [*[(0, 1)] * streamed, (0,), (1,)]
    for domain in (320, 3001):
        check(backend, *one_step(rng, "min-sum", dtype, (40, 130), domain, scopes, 0, 1))


@pytest.mark.parametrize("semiring", ["min-sum", "sum-product"])
def test_chain_and_star(backend, semiring):
    rng = np.random.default_rng(7)
    builder = Builder(rng, semiring, "float64")
    axes = [builder.variable(5) for _ in range(3001)]
    number = builder.step(axes[0], [axes[1]], [[axes[0], axes[1]]], [])
    for n in range(1, 3000):
        number = builder.step(axes[n], [axes[n + 1]], [[axes[n], axes[n + 1]]], [number])
    builder.step(axes[3000], [], [], [number])
    found = check(backend, *builder.program(decode=SEMIRINGS[semiring].is_idempotent))
    assert set(found.seconds) == {"upload", "run", "decode", "download"}

    builder = Builder(rng, semiring, "float64")
    centres = [builder.variable(4) for _ in range(200)]
    top = builder.variable(6)
    messages = []
    for centre in centres:
        leaves = [builder.variable(3) for _ in range(int(rng.integers(1, 15)))]
        children = [builder.step(leaf, [centre, top], [[leaf, centre], [leaf, top]], []) for leaf in leaves]
        messages.append(builder.step(centre, [top], [], children))
    while len(messages) > 1:
        messages = [
            builder.step(-1, [top], [], messages[n : n + 14]) if len(messages[n : n + 14]) > 1 else messages[n]
            for n in range(0, len(messages), 14)
        ]
    builder.step(top, [], [], messages)
    check(backend, *builder.program(decode=SEMIRINGS[semiring].is_idempotent))


def test_ties_go_to_the_smallest_value(backend):
    for domain in (3, 33, 700):
        builder = Builder(np.random.default_rng(0), "min-sum", "int32", padding=0.0)
        variable = builder.variable(domain)
        builder.step(variable, [], [[variable]], [])
        program, factors = builder.program(decode=True)
        factors[:] = 5
        assert run_once(backend, program, factors).assignment.tolist() == [0]
        at = builder.steps[0].operands[0].offset
        factors[[at + 1, at + domain - 1]] = 2
        assert run_once(backend, program, factors).assignment.tolist() == [1]


def test_integers_at_the_edge(backend):
    """Eight tables of forbidden cells reach the dtype's edge and do not wrap."""
    for dtype in ("int16", "int32", "int64"):
        infinity = int(np.iinfo(dtype).max) // 8
        program, factors = one_step(
            np.random.default_rng(3), "min-sum", dtype, (8, 8, 128), 4, [(0, 1, 2)] * 2 + [(0,)] * 3 + [(2,)] * 3, 1, 1,
            parameter=infinity,
        )  # fmt: skip
        factors[:] = infinity
        assert check(backend, program, factors).zone.tolist() == [infinity]


def test_out_of_memory_is_explained(backend):
    builder = Builder(np.random.default_rng(0), "min-sum", "int32")
    variable = builder.variable(2)
    builder.step(variable, [], [[variable]], [])
    program, factors = builder.program()
    with pytest.raises(DeviceError, match=r"needs \d+\.\d\d GiB.*free"):
        run_once(backend, program._replace(arena_cells=1 << 40), factors)
    assert run_once(backend, program, factors).zone.shape == (1,)


def test_memory_of_a_forgotten_session_is_free():
    """Also for another backend, and without being closed."""
    gc.collect()  # sessions of other tests
    before = CudaBackend().device_memory.used_bytes()
    program, factors = padded_bucket("int32")
    program = program._replace(arena_cells=1 << 28)
    session = CudaBackend().open(program, factors)
    # Records of a few plans stay between sessions, or make room for those of this one.
    records = MAX_KEPT_WORDS_BYTES
    assert CudaBackend().device_memory.used_bytes() >= before + (1 << 30) - records
    del session
    assert CudaBackend().device_memory.used_bytes() <= before + records


def test_interrupt_frees_the_memory(backend):
    program, factors = one_step(
        np.random.default_rng(0), "min-sum", "int32", (64, 64, 64, 64), 4, [(0, 1), (2, 3)], 0, 2
    )
    run_once(backend, program, factors)  # loads the kernels
    before = backend.device_memory.used_bytes()

    def interrupt(share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_once(backend, program, factors, interrupt)
    assert backend.device_memory.used_bytes() <= before
    assert run_once(backend, program, factors).zone.shape == (1,)


def test_progress_rises_to_the_end(backend):
    program, factors = one_step(
        np.random.default_rng(0), "min-sum", "int32", (64, 64, 64, 64), 4, [(0, 1), (2, 3)], 0, 2
    )
    shares: list[float] = []
    run_once(backend, program, factors, shares.append)
    assert shares == sorted(shares)
    assert all(0 < share <= 1 for share in shares)


@pytest.mark.parametrize("dtype", ["int16", "int32"])
def test_rows_that_start_at_words_over_more_axes(backend, dtype):
    """Rows of 300 cells of two bytes start anywhere, those of 30000 are padded."""
    check(backend, *padded_bucket(dtype))
