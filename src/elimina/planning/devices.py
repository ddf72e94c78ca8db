"""Names and numbers of devices."""

from __future__ import annotations

import re
from collections.abc import Iterable

from elimina.errors import InputError

DEVICES = ("auto", "cpu", "cuda")

_GPU = re.compile(r"cuda:(\d{1,4})")
HINT = "expected auto, cpu, cuda, a GPU such as cuda:1, or several such as cuda:0,cuda:1"


def gpu_numbers(device: str) -> tuple[int, ...]:
    """Return the numbers of the GPUs in a device's name; none for ``auto`` and ``cpu``, 0 for ``cuda``."""
    if device == "cuda":
        return (0,)
    return tuple(int(match[1]) for name in device.split(",") if (match := _GPU.fullmatch(name)))


def device_name(device: str | Iterable[str]) -> str:
    """Return the canonical name of a device, or of several GPUs.

    Args:
        device: A word of ``DEVICES``, a GPU such as ``cuda:1``, or several GPUs, as one text or as a sequence.

    Raises:
        TypeError: The device is neither text nor a sequence of texts.
        InputError: The device is unknown, a GPU is named twice, or GPUs are mixed with other devices.
    """
    names = device.split(",") if isinstance(device, str) else list(device)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"device is {device!r}: expected a name such as 'cuda', or a list of GPUs such as ['cuda:0']")
    names = [name.strip() for name in names]
    if len(names) == 1 and names[0] in DEVICES:
        return names[0]
    listing = ",".join(names)
    for number, name in enumerate(names):
        if name in DEVICES and len(names) > 1:
            raise InputError(f"invalid device {listing!r}: {name} cannot be combined with others; name GPUs by number")
        if not _GPU.fullmatch(name):
            raise InputError(f"unknown device {name!r}: {HINT}")
        if name in names[:number]:
            raise InputError(f"invalid device {listing!r}: {name} is named twice; name each GPU once")
    if not names:
        raise InputError(f"device is an empty list: {HINT}")
    return ",".join(f"cuda:{int(name[5:])}" for name in names)
