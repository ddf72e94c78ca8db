"""NVRTC from the PyPI package nvidia-cuda-nvrtc, or nvcc where it is on PATH: compiles without a GPU."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from elimina.backends.cuda import compilation, kernels


def load() -> ctypes.CDLL | None:
    """The NVRTC library, if the package is installed."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in sorted(Path(folder).glob("*/lib/libnvrtc.so.*")):
            return ctypes.CDLL(str(path))
    return None


def architectures(nvrtc: ctypes.CDLL) -> list[int]:
    """The compute capabilities that this NVRTC knows, such as 90."""
    count = ctypes.c_int()
    nvrtc.nvrtcGetNumSupportedArchs(ctypes.byref(count))
    known = (ctypes.c_int * count.value)()
    nvrtc.nvrtcGetSupportedArchs(known)
    return list(known)


def source_of(name: str) -> str:
    """The text of the file that defines a kernel, those of the benchmarks included."""
    if name.partition("<")[0] in ("elimina::fill", "elimina::pause", "elimina::rate"):
        return (Path(__file__).parents[2] / "bench" / "kernel_bench.cu").read_text("utf-8")
    return compilation.source(name)


def compile_names(
    nvrtc: ctypes.CDLL, names: Iterable[str], architecture: int, kind: str = "sm", quick: bool = False
) -> str:
    """Compile instantiations; return the log, empty if all is well.

    Args:
        nvrtc: The library.
        names: Name expressions. Those of one file share a program, and so its headers.
        architecture: The compute capability.
        kind: Machine code (``sm``) or PTX (``compute``).
        quick: Leave most of the optimisation out: a tenth of the time. The front end, which instantiates and checks
            the templates, does all of its work.
    """
    options = [*compilation.compile_options(), f"-arch={kind}_{architecture}"]
    options += ["--Ofast-compile=max"] if quick else []
    logs = [compile_program(nvrtc, source, group, options) for source, group in by_source(names).items()]
    return "".join(logs)


def by_source(names: Iterable[str]) -> dict[str, list[str]]:
    """Return name expressions by the text of the file that defines them."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(source_of(name), []).append(name)
    return groups


def compile_program(nvrtc: ctypes.CDLL, source: str, names: list[str], options: list[str]) -> str:
    """Compile one program; return the log."""
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"elimina.cu", 0, None, None)
    try:
        for name in names:
            nvrtc.nvrtcAddNameExpression(program, name.encode())
        status = nvrtc.nvrtcCompileProgram(
            program, len(options), (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        )
        size = ctypes.c_size_t()
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        return log.value.decode() or ("" if status == 0 else f"status {status}")
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def compile_with_nvcc(
    names: Iterable[str], architecture: int, kind: str = "sm", quick: bool = False, *, folder: Path
) -> str:
    """Compile by nvcc, always with all of the optimisation; uses stand for the name expressions."""
    path = folder / "kernels.cu"
    options = [option for option in compilation.compile_options() if not option.startswith("-default")]
    options += [f"-arch={kind}_{architecture}", "-cubin" if kind == "sm" else "-ptx"]
    logs = []
    for source, group in by_source(names).items():
        uses = [f"reinterpret_cast<const void*>(&{name})" for name in group]
        path.write_text(f"{source}\nconst void* kernels_used[] = {{{', '.join(uses)}}};\n")
        command = ["nvcc", *options, "-o", str(folder / "kernels.out"), str(path)]
        done = subprocess.run(command, capture_output=True, text=True)
        logs.append("" if done.returncode == 0 else done.stderr or "failed")
    return "".join(logs)


def has_nvcc() -> bool:
    """Return whether nvcc is on PATH."""
    return shutil.which("nvcc") is not None


def tile_kernels(semiring: str, dtype: str) -> list[str]:
    """Every instantiation of the tile kernel that a program of this kind may ask for."""
    short = {"dense": True, "units": kernels.RING_UNITS - 1}
    kinds = {"dense": True}, {"dense": True, "aligned": False}, {"dense": False}, {"dense": False, "whole": False}
    kinds = (*kinds, short, {**short, "aligned": False}) if dtype == "int16" else kinds
    names = [
        kernels.tile_kernel(semiring, np.dtype(dtype), streamed, **kind).name for streamed in (1, 2) for kind in kinds
    ]
    if semiring == "sum-product":
        names += [
            kernels.tile_kernel(semiring, np.dtype(dtype), n, True, outers=kernels.MAX_OUTERS).name for n in (1, 2)
        ]
    return names + [kernels.tile_kernel(semiring, np.dtype(dtype), -1, False, True, w).name for w in (True, False)]


def product_kernels(semiring: str, dtype: str) -> list[str]:
    """Every instantiation of the product kernel that a program of this kind may ask for."""
    kind = np.dtype(dtype)
    words = [word for word in (16, 8, 4, 0) if word == 0 or word >= kind.itemsize]
    return [
        kernels.product_kernel(semiring, kind, word, whole, form).name
        for form in range(len(kernels.product_forms(semiring, kind)))
        for whole in (True, False)
        for word in words
    ]


def faces_kernels(semiring: str, dtype: str) -> list[str]:
    """Every instantiation of the faces kernel that a program of this kind may ask for."""
    return [kernel.name for kernel in kernels.faces_kernels(semiring, np.dtype(dtype))]


def matching_kernels(semiring: str, dtype: str) -> list[str]:
    """Kernels of moment matching; those of large steps for 2, 5 and 16 mini-buckets."""
    kind = semiring, np.dtype(dtype)
    names = [kernels.matching_kernel(*kind, tables, words).name for tables in (2, 5, 16) for words in (True, False)]
    return names + [kernels.forest_kernel(*kind, tree, levels=True) for tree in (True, False)]


def rows_kernels(semiring: str, dtype: str, words: int) -> list[str]:
    """The kernels of sparse tables that depend on the values' kind."""
    ring = kernels.semiring_type(semiring, np.dtype(dtype))
    flags = ("false, false", "false, true", "true, false", "true, true")
    names = [f"rows_join<{ring}, {words}, {flag}>" for flag in flags]
    return [f"elimina::{name}" for name in (*names, f"rows_project<{ring}, {words}>", f"rows_feasible<{ring}>")]


def rows_key_kernels(words: int) -> list[str]:
    """The kernels of sparse tables that depend on the keys' length."""
    names = [f"rows_{name}<elimina::u32, {words}>" for name in ("gather", "keep", "from_dense", "to_dense")]
    names += [f"rows_{name}<{words}>" for name in ("unsorted", "heads", "match")]
    return [f"elimina::{name}" for name in (*names, "rows_starts", f"rows_move<{words}, {words % 4 + 1}>")]
