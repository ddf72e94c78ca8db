"""The import of CuPy. No other module imports it."""

from __future__ import annotations

import ctypes
import sys
import threading
from typing import Any

from elimina.errors import DeviceError

OLDEST_CUPY = (14, 2)


def make_context(device: int) -> bool:
    """Make a GPU's context, shared by all libraries of the process; return False if the driver fails.

    This takes as long as importing CuPy, and can run at the same time.
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    gpu, context = ctypes.c_int(), ctypes.c_void_p()
    return not (
        driver.cuInit(0)
        or driver.cuDeviceGet(ctypes.byref(gpu), device)
        or driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), gpu)
    )


def import_cupy(device: int) -> Any:
    """Import and return CuPy; meanwhile, a thread makes a GPU's context.

    Raises:
        DeviceError: CuPy is missing, hidden by a folder or too old.
    """
    if "cupy" not in sys.modules:
        threading.Thread(target=make_context, args=(device,), daemon=True).start()
    try:
        import cupy
    except ImportError as error:
        raise DeviceError(
            f'the CUDA backend needs CuPy ({error}): pip install "elimina[cuda13]" (CUDA 12: "elimina[cuda12]"), '
            "or use the CPU"
        ) from error
    if not hasattr(cupy, "__version__"):
        where = ", ".join(cupy.__path__)
        raise DeviceError(
            f"the folder {where} hides the package CuPy: run in another folder, rename this one, or use the CPU"
        )
    version = tuple(int(number) for number in cupy.__version__.split(".")[:2])
    if version < OLDEST_CUPY:
        wanted = ".".join(map(str, OLDEST_CUPY))
        raise DeviceError(f'CuPy {cupy.__version__} is too old, {wanted} is needed: pip install -U "elimina[cuda13]"')
    return cupy
