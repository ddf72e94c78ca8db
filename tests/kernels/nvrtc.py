"""NVRTC from the PyPI package nvidia-cuda-nvrtc, or nvcc where it is on PATH: compiles without a GPU."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
from pathlib import Path

import numpy as np

from elimina.backends.cuda import kernels


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
    return kernels.source(name)


def compile_kernel(nvrtc: ctypes.CDLL, name: str, architecture: int, kind: str = "sm") -> str:
    """Compile one instantiation to machine code, or to PTX (``compute``); return the log, empty if all is well."""
    program = ctypes.c_void_p()
    source = source_of(name).encode()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"elimina.cu", 0, None, None)
    try:
        nvrtc.nvrtcAddNameExpression(program, name.encode())
        options = [*kernels.compile_options(), f"-arch={kind}_{architecture}"]
        status = nvrtc.nvrtcCompileProgram(
            program, len(options), (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        )
        size = ctypes.c_size_t()
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        text = log.value.decode()
        return text or ("" if status == 0 else f"status {status}")
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def compile_with_nvcc(name: str, architecture: int, folder: Path, kind: str = "sm") -> str:
    """The same by nvcc; an explicit instantiation stands for the name expression."""
    path = folder / "kernel.cu"
    path.write_text(source_of(name) + f"\nconst void* kernel = reinterpret_cast<const void*>(&{name});\n")
    options = [option for option in kernels.compile_options() if not option.startswith("-default")]
    form = "-cubin" if kind == "sm" else "-ptx"
    command = ["nvcc", *options, f"-arch={kind}_{architecture}", form, "-o", str(folder / "kernel.out"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr or "failed"


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
        names += [kernels.tile_kernel(semiring, np.dtype(dtype), n, True, outers=kernels.OUTERS).name for n in (1, 2)]
    return names + [kernels.tile_kernel(semiring, np.dtype(dtype), -1, False, True, w).name for w in (True, False)]


def product_kernels(semiring: str, dtype: str) -> list[str]:
    """Every instantiation of the product kernel that a program of this kind may ask for."""
    kind = np.dtype(dtype)
    words = [word for word in (16, 8, 4, 0) if word == 0 or word >= kind.itemsize]
    return [
        kernels.product_kernel(semiring, kind, word, whole, form).name
        for form in range(len(kernels.product_shapes(semiring, kind)))
        for whole in (True, False)
        for word in words
    ]


def faces_kernels(semiring: str, dtype: str) -> list[str]:
    """Every instantiation of the faces kernel that a program of this kind may ask for."""
    return [kernel.name for kernel in kernels.faces_kernels(semiring, np.dtype(dtype))]


def level_kernels(semiring: str, dtype: str) -> list[str]:
    """Kernels of moment matching; those of large steps for 2, 5 and 16 mini-buckets."""
    kind = semiring, np.dtype(dtype)
    names = [kernels.level_kernel(*kind, tables, words).name for tables in (2, 5, 16) for words in (True, False)]
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
