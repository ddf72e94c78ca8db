"""An arena in a file that nothing else sees, and boxes of its tables as pieces of that file."""

from __future__ import annotations

import itertools
import mmap
import os
from collections.abc import Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from elimina import system
from elimina.errors import InputError, MemoryLimitError
from elimina.planning.stream import Copy

PIECE_BYTES = 4 << 20
"""Bytes of a file that a thread reads or writes at a time."""

Piece = tuple[int, int, int]
"""Address of some bytes in memory and in the file, and their number."""
Item = TypeVar("Item")


class Scratch:
    """A file without a name: not even a killed process leaves it behind.

    Its space is reserved at once, so that a full disk is an error before the work and not within it.

    Args:
        folder: Folder of the file.
        size: Bytes.

    Raises:
        InputError: The folder cannot be written to.
        MemoryLimitError: The disk, a quota or a limit on files leaves no room.
    """

    def __init__(self, folder: str, size: int) -> None:
        self._file = _open(folder)
        try:
            system.reserve(self._file, max(1, size))
            self._map = mmap.mmap(self._file, max(1, size))
        except OSError as error:
            os.close(self._file)
            raise MemoryLimitError(
                f"the scratch directory {folder!r} has no room for {size} bytes ({error.strerror}); "
                "free some, raise the limit on files, or name another directory (--scratch)"
            ) from error
        except BaseException:
            os.close(self._file)
            raise

    def array(self, dtype: np.dtype[np.generic], cells: int) -> NDArray[np.generic]:
        """Return the file as an array, which keeps it."""
        return np.frombuffer(self._map, dtype=dtype, count=cells)

    def read(self, target: memoryview, offset: int) -> None:
        """Read bytes from an offset on."""
        system.read_at(self._file, target, offset)

    def write(self, source: memoryview, offset: int) -> None:
        """Write bytes from an offset on."""
        system.write_at(self._file, source, offset)

    def close(self) -> None:
        """Close the file; its space is free once no array uses it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _open(folder: str) -> int:
    try:
        return system.nameless_file(folder)
    except OSError as error:
        raise InputError(
            f"the scratch directory {folder!r} cannot be used ({error.strerror}); name another one (--scratch)"
        ) from error


def pieces(part: Copy, itemsize: int, closely: int | None = None) -> Iterator[list[Piece]]:
    """Yield a box's runs, cut and joined to amounts that a thread takes at once.

    Args:
        part: The box.
        itemsize: Bytes of an element.
        closely: Address of the runs in memory, one after another; None: as on the device.
    """
    together: list[Piece] = []
    size = 0
    for n, index in enumerate(itertools.product(*(range(count) for count, _, _ in reversed(part.rows)))):
        steps = list(zip(index, reversed(part.rows), strict=True))
        offset = itemsize * (part.host + sum(i * stride for i, (_, stride, _) in steps))
        at = itemsize * (part.device + sum(i * own for i, (_, _, own) in steps))
        if closely is not None:
            at = closely + n * part.run * itemsize
        for first in range(0, part.run * itemsize, PIECE_BYTES):
            taken = min(PIECE_BYTES, part.run * itemsize - first)
            together.append((at + first, offset + first, taken))
            size += taken
            if size >= PIECE_BYTES:
                yield together
                together, size = [], 0
    if together:
        yield together


def with_following(items: Iterator[Item], ahead: int) -> Iterator[tuple[Item, list[Item]]]:
    """Yield each item with the next ones."""
    waiting: list[Item] = []
    for item in items:
        waiting.append(item)
        if len(waiting) > ahead:
            yield waiting[0], waiting[1:]
            waiting.pop(0)
    while waiting:
        yield waiting[0], waiting[1:]
        waiting.pop(0)
