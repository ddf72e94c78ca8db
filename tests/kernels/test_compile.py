"""Every kernel compiles, for every semiring and dtype, without a GPU."""

from __future__ import annotations

import functools
import itertools
import shutil
import subprocess

import numpy as np
import pytest
from tests.kernels import nvrtc

from elimina.backends.cuda import compilation, kernels
from elimina.planning.key_layout import DTYPES
from elimina.problem.semirings import SEMIRINGS

KINDS = [(name, dtype) for name, semiring in SEMIRINGS.items() for dtype in semiring.dtypes]
OTHERS = (80, 100)


@pytest.fixture(scope="module")
def compiler(tmp_path_factory):
    library = nvrtc.load()
    if library is not None:
        return nvrtc.architectures(library), functools.partial(nvrtc.compile_names, library)
    if nvrtc.has_nvcc():
        folder = tmp_path_factory.mktemp("nvcc")
        return [80, 90, 100], functools.partial(nvrtc.compile_with_nvcc, folder=folder)
    pytest.skip("neither the package nvidia-cuda-nvrtc nor nvcc is here")


@pytest.mark.parametrize(("semiring", "dtype"), KINDS)
def test_each_semiring_and_dtype(compiler, semiring, dtype):
    """Every kernel that a program of this kind may ask for, quickly; two of them to the machine code of a release.

    Which two turns with the kind.
    """
    _, compile_names = compiler
    kind, turn = (semiring, np.dtype(dtype)), KINDS.index((semiring, dtype))
    tiles, products = nvrtc.tile_kernels(*kind), nvrtc.product_kernels(*kind)
    names = [
        *(kernels.forest_kernel(*kind, tree) for tree in (True, False)),
        *(nvrtc.matching_kernels(semiring, dtype) if SEMIRINGS[semiring].is_matched else ()),
        kernels.decode_kernel(*kind),
        *tiles,
        *products,
        *nvrtc.faces_kernels(semiring, dtype),
    ]
    assert compile_names(names, 90, "compute", quick=True) == ""
    assert compile_names([tiles[turn % len(tiles)], products[turn % len(products)]], 90) == ""


def test_other_architectures(compiler):
    """One kernel of each file; with all of the optimisation for the newest architecture."""
    known, compile_names = compiler
    names = [
        kernels.tile_kernel("min-sum", np.dtype(np.int16), 1, True, False).name,
        kernels.product_kernel("sum-product", np.dtype(np.float64), 16, True, 0).name,
        *nvrtc.faces_kernels("sum-product", "float32"),
        kernels.forest_kernel("min-sum", np.dtype(np.int32), False),
        kernels.matching_kernel("min-sum", np.dtype(np.int16), 3, True).name,
    ]
    for architecture in sorted({*OTHERS, max(known)}):
        assert architecture in known
        assert compile_names(names, architecture, quick=architecture < max(known)) == "", architecture


@pytest.mark.parametrize("words", [1, 2, 3, 4])
def test_rows_kernels(compiler, words):
    """Every kind of values with every length of keys; the commonest kind to machine code, for other devices too."""
    known, compile_names = compiler
    names = [name for kind in KINDS if kind[1] in DTYPES for name in nvrtc.rows_kernels(*kind, words)]
    assert compile_names(names, 90, "compute", quick=True) == ""
    for architecture in sorted({*OTHERS, 90, max(known)}) if words == 2 else (90,):
        names = [*nvrtc.rows_kernels("min-sum", "int32", words), *nvrtc.rows_key_kernels(words)]
        assert compile_names(names, architecture) == "", architecture


def test_divide_kernel(compiler):
    known, compile_names = compiler
    for architecture in sorted({*OTHERS, 90, max(known)}):
        assert compile_names([kernels.DIVIDE], architecture, quick=architecture != 90) == "", architecture


def test_wave_kernels(compiler):
    known, compile_names = compiler
    names = [f"elimina::waves_{name}" for name in ("beliefs", "messages", "sums")]
    for architecture in sorted({*OTHERS, 90, max(known)}):
        assert compile_names(names, architecture, quick=architecture != 90) == "", architecture


def test_kernels_about_the_library(compiler):
    known, compile_names = compiler
    names = []
    for dtype in map(np.dtype, ("float32", "float64")):
        names += [kernels.extremes_kernel("sum-product", dtype, cells) for cells in (1, 16 // dtype.itemsize)]
        names += [kernels.scale_kernel("sum-product", dtype), kernels.range_kernel("sum-product", dtype)]
    for architecture in sorted({*OTHERS, max(known)}):
        assert compile_names(names, architecture) == "", architecture


def test_place_kernels(compiler):
    known, compile_names = compiler
    dtypes = [np.dtype(name) for name in ("int16", "int32", "int64", "float64")]
    kinds = itertools.product(dtypes, dtypes, (False, True))
    assert compile_names([kernels.place_kernel(given, to, bounded) for given, to, bounded in kinds], 90) == ""
    for architecture in sorted({*OTHERS, max(known)}):
        name = kernels.place_kernel(np.dtype("int16"), np.dtype("int32"), True)
        assert compile_names([name], architecture) == "", architecture


def test_decoding_of_buckets(compiler):
    known, compile_names = compiler
    dtypes = map(np.dtype, ("int16", "int32", "int64", "float32", "float64"))
    names = [kernels.decode_buckets_kernel(dtype) for dtype in dtypes]
    for architecture in sorted({*OTHERS, max(known), 90}):
        assert compile_names(names, architecture) == "", architecture


def test_bench_kernels(compiler):
    _, compile_names = compiler
    names = [
        "elimina::fill<elimina::i16>",
        "elimina::pause",
        "elimina::peaks",
        "elimina::rate<elimina::Pairs<elimina::MinSum<elimina::i16>>>",
    ]
    assert compile_names(names, 90) == ""


def test_headers_compile_on_the_host(tmp_path):
    gxx = shutil.which("g++") or shutil.which("c++")
    if gxx is None:
        pytest.skip("no C++ compiler")
    source = tmp_path / "headers.cpp"
    source.write_text(
        "#include <elimina/program.hpp>\n#include <elimina/matching.hpp>\n#include <elimina/different.hpp>\n"
        "using namespace elimina;\n"
        "static_assert(sizeof(i64) == 8 && sizeof(u64) == 8 && sizeof(i16) == 2);\n"
        "template <class S> auto use(S s) { auto sum = s.start(); s.add(sum, s.combine(s.one(), s.one())); "
        "return s.finish(sum); }\n"
        "int main() { return int(use(MinSum<i16>{9}) + use(MinSum<float>{9}) + use(SumProduct<double>{}) "
        "+ use(SumProduct<float>{}) + use(LogSumExp<double>{}) + use(Count<u64>{7})) + scale_exponent<float>(0) "
        "+ matched_cell(MinSum<i16>{9}, i16(-7), i16(0), i16(1), 0, 2) != -2; }\n"
    )
    binary = tmp_path / "headers"
    command = [
        gxx,
        "-std=c++20",
        "-Wall",
        "-Wextra",
        "-Werror",
        f"-I{compilation.INCLUDE}",
        "-o",
        str(binary),
        str(source),
    ]
    assert subprocess.run(command, capture_output=True, text=True).stderr == ""
    assert subprocess.run([str(binary)]).returncode == 0
