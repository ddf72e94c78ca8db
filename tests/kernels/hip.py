"""AMD's compiler hipcc, where it is on PATH: compiles without a GPU."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.kernels.nvrtc import by_source

from elimina.backends.cuda import compilation

ARCHITECTURE = "gfx1030"
"""A GPU whose waves have 32 lanes, as a warp has."""


def has_hipcc() -> bool:
    """Return whether hipcc is on PATH."""
    return shutil.which("hipcc") is not None


def check_names(names: list[str], folder: Path) -> str:
    """Instantiate kernels in the front end alone; return its errors, empty if all is well."""
    done = _run(names, folder, "-fsyntax-only", "-w")
    return done.stderr or ("" if done.returncode == 0 else f"status {done.returncode}")


def assembled_kernels(names: list[str], folder: Path) -> list[str]:
    """Compile kernels; return the lines of the assembly that begin one."""
    assembly = folder / "kernels.s"
    # Without optimisation, the compiler of Debian 12 crashes.
    done = _run(names, folder, "-S", "-O1", "-w", "-o", str(assembly))
    assert done.returncode == 0, done.stderr
    return [line for line in assembly.read_text().splitlines() if line.strip().startswith(".amdhsa_kernel ")]


def _run(names: list[str], folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Compile the files of the kernels as one: the headers of HIP take longer than any of them."""
    path = folder / "kernels.hip"
    uses = ", ".join(f"reinterpret_cast<const void*>(&{name})" for name in names)
    sources = "\n".join(by_source(names))
    path.write_text(f"{sources}\n__device__ const void* kernels_used[] = {{{uses}}};\n")
    command = ["hipcc", "-x", "hip", "--cuda-device-only", f"--offload-arch={ARCHITECTURE}", "-std=c++20"]
    command += ["-ffp-contract=off", f"-I{compilation.INCLUDE}", f"-I{compilation.KERNELS}", *options, str(path)]
    # hipcc calls nvcc instead if it sees one.
    environment = {**os.environ, "HIP_PLATFORM": "amd"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
