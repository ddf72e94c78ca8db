"""Compiling kernels at run time, and keeping what was compiled; CuPy is handed in."""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

from elimina.backends.cuda import kernels
from elimina.errors import DeviceError


@functools.cache
def cache_folder() -> Path:
    """Return the folder of compiled kernels: the user's cache, or one for this process where that cannot be written."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "elimina" / "kernels"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return Path(tempfile.mkdtemp(prefix="elimina-"))


def load(cupy: Any, name: str, architecture: str) -> Any:
    """Return a kernel by its name expression, compiled for an architecture such as ``sm_90``.

    Raises:
        DeviceError: The compiler refuses.
    """
    path, symbol = binary(cupy, name, architecture)
    return cupy.RawModule(path=str(path)).get_function(symbol)


def binary(cupy: Any, name: str, architecture: str) -> tuple[Path, str]:
    """Return a kernel's module, compiled once, and its name there.

    CuPy's own way to compile flushes subnormal float32 numbers to zero; then devices would not agree to the last bit.

    Raises:
        DeviceError: The compiler refuses.
    """
    nvrtc = cupy.cuda.compiler.nvrtc
    options = (*kernels.compile_options(), f"-arch={architecture}")
    key = hashlib.sha256(repr((name, options, nvrtc.getVersion())).encode()).hexdigest()[:32]
    module, symbol = (cache_folder() / f"{key}.{suffix}" for suffix in ("cubin", "name"))
    if not module.exists():
        cubin, mangled = _compile(nvrtc, name, options)
        # The name first: where there is a binary, there is its name.
        _write(symbol, mangled.encode())
        _write(module, cubin)
    return module, symbol.read_text()


def _compile(nvrtc: Any, name: str, options: tuple[str, ...]) -> tuple[bytes, str]:
    program = nvrtc.createProgram(kernels.source(name), "elimina.cu", (), ())
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
