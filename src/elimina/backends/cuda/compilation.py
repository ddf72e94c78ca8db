"""Compilation of kernels at run time, and their modules on disk."""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

from elimina.errors import DeviceError

KERNELS = Path(__file__).parents[2] / "kernels"
INCLUDE = Path(__file__).parents[2] / "include"


def source(name: str) -> str:
    """Return the text of the file that defines a kernel, by its name expression."""
    file = name.removeprefix("elimina::").partition("<")[0]
    for prefix in ("rows", "waves"):
        if file.startswith(f"{prefix}_"):
            file = prefix
    if file in ("product_scale", "cells_range", "extremes"):
        file = "matrix"
    return (KERNELS / f"{file}.cu").read_text(encoding="utf-8")


@functools.cache
def compile_options() -> tuple[str, ...]:
    """Return the compiler's options; they include a digest of all sources, so that kernels of other versions differ."""
    digest = hashlib.sha256()
    for path in sorted([*KERNELS.glob("*.cu*"), *INCLUDE.rglob("*.hpp")]):
        digest.update(path.read_bytes())
    # Without fused multiply-add, a sum of products is the same on every device and on the CPU.
    return (
        "--std=c++20",
        "-fmad=false",
        "-ftz=false",
        f"-I{INCLUDE}",
        f"-I{KERNELS}",
        f"-DELIMINA_DIGEST=0x{digest.hexdigest()[:15]}",
    )


@functools.cache
def cache_folder() -> Path:
    """Return the folder of compiled kernels: the user's cache, or a temporary folder if that is not writable."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "elimina" / "kernels"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return Path(tempfile.mkdtemp(prefix="elimina-"))


def compiled(cupy: Any, name: str, architecture: str) -> tuple[Path, str]:
    """Return the path of a kernel's module, which is compiled once, and the kernel's name in it.

    CuPy's compilation is not used: it flushes subnormal float32 numbers to zero, and results would differ by device.

    Raises:
        DeviceError: The compiler refuses.
    """
    nvrtc = cupy.cuda.compiler.nvrtc
    options = (*compile_options(), f"-arch={architecture}")
    key = hashlib.sha256(repr((name, options, nvrtc.getVersion())).encode()).hexdigest()[:32]
    module, symbol = (cache_folder() / f"{key}.{suffix}" for suffix in ("cubin", "name"))
    if not module.exists():
        cubin, mangled = _compile(nvrtc, name, options)
        # The name is written first, so that a compiled module never lacks its name.
        _write(symbol, mangled.encode())
        _write(module, cubin)
    return module, symbol.read_text()


def _compile(nvrtc: Any, name: str, options: tuple[str, ...]) -> tuple[bytes, str]:
    program = nvrtc.createProgram(source(name), "elimina.cu", (), ())
    try:
        nvrtc.addNameExpression(program, name)
        nvrtc.compileProgram(program, options)
        return nvrtc.getCUBIN(program), nvrtc.getLoweredName(program, name)
    except nvrtc.NVRTCError as error:
        raise DeviceError(
            f"NVRTC {'.'.join(map(str, nvrtc.getVersion()))} does not compile {name} ({error}); "
            f'update CuPy and its CUDA: pip install -U "elimina[cuda13]"\n{nvrtc.getProgramLog(program)}'
        ) from error
    finally:
        nvrtc.destroyProgram(program)


def _write(path: Path, data: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(data)
    os.replace(file.name, path)
