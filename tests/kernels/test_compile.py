"""Every kernel compiles, for every semiring and dtype, without a GPU."""

from __future__ import annotations

import functools
import itertools
import shutil
import subprocess

import numpy as np
import pytest
from tests.kernels import nvrtc

from elimina.backends.cuda import kernels
from elimina.planning.layout import DTYPES
from elimina.tasks import SEMIRINGS

KINDS = [(name, dtype) for name, semiring in SEMIRINGS.items() for dtype in semiring.dtypes]
OTHERS = (80, 100)


@pytest.fixture(scope="module")
def compiler(tmp_path_factory):
    library = nvrtc.load()
    if library is not None:
        return nvrtc.architectures(library), functools.partial(nvrtc.compile_kernel, library)
    if nvrtc.has_nvcc():
        folder = tmp_path_factory.mktemp("nvcc")
        return [80, 90, 100], functools.partial(nvrtc.compile_with_nvcc, folder=folder)
    pytest.skip("neither the package nvidia-cuda-nvrtc nor nvcc is here")


@pytest.mark.parametrize(("semiring", "dtype"), KINDS)
def test_each_semiring_and_dtype(compiler, semiring, dtype):
    """The small kernels, and one tile kernel of each way of reading; which one of them turns with the kind.

    Compilation to PTX, in half the time; other tests make machine code of the commonest kinds.
    """
    _, compile_kernel = compiler
    tiles, products = nvrtc.tile_kernels(semiring, dtype), nvrtc.product_kernels(semiring, dtype)
    turn = KINDS.index((semiring, dtype))
    chosen = {tiles[turn % 8], *tiles[8:-2][:2], tiles[-1 - turn % 2], products[0], products[turn % len(products)]}
    kind = semiring, np.dtype(dtype)
    for name in [
        *(kernels.forest_kernel(*kind, tree) for tree in (True, False)),
        *(nvrtc.level_kernels(semiring, dtype) if SEMIRINGS[semiring].levels else ()),
        kernels.decode_kernel(*kind),
        *sorted(chosen),
        *nvrtc.faces_kernels(semiring, dtype),
    ]:
        assert compile_kernel(name, 90, kind="compute") == "", name


@pytest.mark.parametrize("dtype", ["int16", "int32"])
def test_every_tile_kernel_of_the_commonest_kinds(compiler, dtype):
    """Compilation to PTX, in half the time; other tests make machine code of some of them."""
    _, compile_kernel = compiler
    for name in nvrtc.tile_kernels("min-sum", dtype) + nvrtc.product_kernels("min-sum", dtype):
        assert compile_kernel(name, 90, kind="compute") == "", name


def test_other_architectures(compiler):
    known, compile_kernel = compiler
    names = [
        kernels.tile_kernel("min-sum", np.dtype(np.int16), 1, True, False).name,
        kernels.product_kernel("sum-product", np.dtype(np.float64), 16, True, 0).name,
        *nvrtc.faces_kernels("sum-product", "float32"),
        kernels.forest_kernel("min-sum", np.dtype(np.int32), False),
        kernels.level_kernel("min-sum", np.dtype(np.int16), 3, True).name,
    ]
    for architecture in sorted({*OTHERS, max(known)}):
        assert architecture in known
        for name in names:
            assert compile_kernel(name, architecture) == "", (name, architecture)


@pytest.mark.parametrize("words", [1, 2, 3, 4])
def test_rows_kernels(compiler, words):
    """Every kind of values with one length of keys; every length with the commonest kind, for other devices too."""
    known, compile_kernel = compiler
    kinds = [kind for n, kind in enumerate(KINDS) if kind[1] in DTYPES and n % 4 == words % 4]
    names = [name for kind in kinds for name in nvrtc.rows_kernels(*kind, words)]
    for name in [*names, *nvrtc.rows_kernels("min-sum", "int32", words), *nvrtc.rows_key_kernels(words)]:
        assert compile_kernel(name, 90) == "", name
    for architecture in sorted({*OTHERS, max(known)}) if words == 2 else ():
        for name in [*nvrtc.rows_kernels("min-sum", "int32", words), *nvrtc.rows_key_kernels(words)]:
            assert compile_kernel(name, architecture) == "", (name, architecture)


def test_divide_kernel(compiler):
    known, compile_kernel = compiler
    for architecture in sorted({*OTHERS, 90, max(known)}):
        assert compile_kernel(kernels.DIVIDE, architecture) == "", architecture


def test_kernels_about_the_library(compiler):
    known, compile_kernel = compiler
    for dtype, architecture in itertools.product(map(np.dtype, ("float32", "float64")), sorted({*OTHERS, max(known)})):
        names = [kernels.extremes_kernel("sum-product", dtype, cells) for cells in (1, 16 // dtype.itemsize)]
        for name in (*names, kernels.scale_kernel("sum-product", dtype)):
            assert compile_kernel(name, architecture) == "", (name, architecture)


def test_place_kernels(compiler):
    known, compile_kernel = compiler
    for bounded in (False, True):
        for given, to in itertools.product(map(np.dtype, ("int16", "int32", "int64", "float64")), repeat=2):
            assert compile_kernel(kernels.place_kernel(given, to, bounded), 90) == "", (given, to)
    for architecture in sorted({*OTHERS, max(known)}):
        name = kernels.place_kernel(np.dtype("int16"), np.dtype("int32"), True)
        assert compile_kernel(name, architecture) == "", architecture


def test_bench_kernels(compiler):
    _, compile_kernel = compiler
    for name in ("elimina::fill<elimina::i16>", "elimina::pause", "elimina::peaks", "elimina::rate<elimina::Pairs>"):
        assert compile_kernel(name, 90) == "", name


def test_headers_compile_on_the_host(tmp_path):
    gxx = shutil.which("g++") or shutil.which("c++")
    if gxx is None:
        pytest.skip("no C++ compiler")
    source = tmp_path / "headers.cpp"
    source.write_text(
        "#include <elimina/program.hpp>\n#include <elimina/level.hpp>\n#include <elimina/different.hpp>\n"
        "using namespace elimina;\n"
        "static_assert(sizeof(i64) == 8 && sizeof(u64) == 8 && sizeof(i16) == 2);\n"
        "template <class S> auto use(S s) { auto sum = s.start(); s.add(sum, s.combine(s.one(), s.one())); "
        "return s.finish(sum); }\n"
        "int main() { return int(use(MinSum<i16>{9}) + use(MinSum<float>{9}) + use(SumProduct<double>{}) "
        "+ use(SumProduct<float>{}) + use(LogSumExp<double>{}) + use(Count{7})) + scale_exponent<float>(0) "
        "+ level_cell(MinSum<i16>{9}, i16(-7), i16(0), i16(1), 0, 2) != -2; }\n"
    )
    binary = tmp_path / "headers"
    command = [
        gxx,
        "-std=c++20",
        "-Wall",
        "-Wextra",
        "-Werror",
        f"-I{kernels.INCLUDE}",
        "-o",
        str(binary),
        str(source),
    ]
    assert subprocess.run(command, capture_output=True, text=True).stderr == ""
    assert subprocess.run([str(binary)]).returncode == 0
