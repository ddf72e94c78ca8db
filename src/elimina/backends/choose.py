"""Backends by their names, and several GPUs of one host as one backend."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import util
from typing import TYPE_CHECKING

from elimina.backends.base import Backend
from elimina.backends.cpu import CpuBackend
from elimina.errors import DeviceError, InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from elimina.backends.base import Session
    from elimina.planning.machine import Machine
    from elimina.planning.program import Program

DEVICES = ("auto", "cpu", "cuda")

_CARD = re.compile(r"cuda:(\d{1,4})")
_HINT = "expected auto, cpu, cuda, a GPU such as cuda:1, or several such as cuda:0,cuda:1"


class Devices:
    """Devices of one kind as one backend: a plan is made for each of them alone, and independent work is shared out.

    Args:
        members: Their backends, which share nothing; the first one runs what cannot be shared out.
    """

    def __init__(self, members: Sequence[Backend]) -> None:
        self.members = tuple(members)

    @property
    def name(self) -> str:
        """Number of the devices and the first one's name."""
        return f"{len(self.members)} x {self.members[0].name}"

    @property
    def machine(self) -> Machine:
        """One of the devices as the planner sees it."""
        return self.members[0].machine

    def memory(self) -> int:
        """Return the bytes that a program may take at present on each of the devices."""
        return min(member.memory() for member in self.members)

    def open(self, program: Program, factors: NDArray[np.generic]) -> Session:
        """Put a program on the first device: see ``Backend.open``."""
        return self.members[0].open(program, factors)


def devices_of(backend: Backend) -> tuple[Backend, ...]:
    """Return the backends of single devices that a backend consists of."""
    return backend.members if isinstance(backend, Devices) else (backend,)


def cards_of(device: str) -> tuple[int, ...]:
    """Return the numbers of the GPUs that a device names; none for ``auto`` and ``cpu``, 0 for ``cuda``."""
    if device == "cuda":
        return (0,)
    return tuple(int(found[1]) for part in device.split(",") if (found := _CARD.fullmatch(part)))


def device_name(given: str | Iterable[str]) -> str:
    """Return the canonical name of a device, or of several GPUs.

    Args:
        given: A word of ``DEVICES``, a card such as ``cuda:1``, or several, in one text or as a sequence.

    Raises:
        TypeError: It is neither text nor a sequence of texts.
        InputError: It is another device, a card comes twice, or cards are mixed with something else.
    """
    parts = given.split(",") if isinstance(given, str) else list(given)
    if not all(isinstance(part, str) for part in parts):
        raise TypeError(f"device is {given!r}: expected a name such as 'cuda', or a list of GPUs such as ['cuda:0']")
    parts = [part.strip() for part in parts]
    if len(parts) == 1 and parts[0] in DEVICES:
        return parts[0]
    shown = ",".join(parts)
    for number, part in enumerate(parts):
        if part in DEVICES and len(parts) > 1:
            raise InputError(f"invalid device {shown!r}: {part} cannot be combined with others; name GPUs by number")
        if not _CARD.fullmatch(part):
            raise InputError(f"unknown device {part!r}: {_HINT}")
        if part in parts[:number]:
            raise InputError(f"invalid device {shown!r}: {part} is named twice; name each GPU once")
    if not parts:
        raise InputError(f"device is an empty list: {_HINT}")
    return ",".join(f"cuda:{int(part[5:])}" for part in parts)


def get_backend(device: str, threads: int | None = None) -> Backend:
    """Return the backend of a device, or of several GPUs.

    Args:
        device: A name from ``device_name``, but for ``auto``.
        threads: Number of CPU threads; None for all.

    Raises:
        InputError: Unknown device.
        DeviceError: There is no such device, or it cannot be used.
    """
    if device == "cpu":
        return CpuBackend(threads)
    cards = cards_of(device)
    if not cards:
        raise InputError(f"unknown device {device!r}: {_HINT}")
    from elimina.backends.cuda.backend import CudaBackend

    if len(cards) == 1:
        return CudaBackend(cards[0])
    # Contexts of several cards are made at the same time.
    with ThreadPoolExecutor(len(cards)) as pool:
        return Devices(list(pool.map(CudaBackend, cards)))


def is_cupy_installed() -> bool:
    """Return whether CuPy is installed, a quick check before the slower search for a card."""
    return util.find_spec("cupy") is not None


def find_cuda() -> Backend | None:
    """Return the backend of the first card if it can be used here."""
    if not is_cupy_installed():
        return None
    try:
        return get_backend("cuda")
    except DeviceError:
        return None


def card_count(backend: Backend) -> int:
    """Return the cards of the machine that a card is in, none of which is opened; 1 for other devices."""
    from elimina.backends.cuda.device import CudaDevice

    return backend.count if isinstance(backend, CudaDevice) else 1


def with_other_cards(backend: Backend, least: int) -> Backend:
    """Return a backend of the first card and of all others that have so many bytes of free memory."""
    others = map(_card_or_none, range(1, card_count(backend)))
    found = [card for card in others if card and card.memory() >= least]
    return Devices([backend, *found]) if found else backend


def _card_or_none(number: int) -> Backend | None:
    try:
        return get_backend(f"cuda:{number}")
    except DeviceError:
        return None
