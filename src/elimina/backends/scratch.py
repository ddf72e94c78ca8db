"""Files without a name, for tables that do not fit into memory."""

from __future__ import annotations

import mmap
import os

import numpy as np
from numpy.typing import NDArray

from elimina import system
from elimina.errors import InputError, MemoryLimitError
from elimina.number_texts import bytes_text
from elimina.option_names import option


class ScratchFile:
    """A file without a name: not even a killed process leaves it behind.

    Its space is reserved at once, so that a full disk is found before the work begins.

    Args:
        folder: Folder of the file.
        size: Size of the file in bytes.

    Raises:
        InputError: The folder cannot be written to.
        MemoryLimitError: The disk is full, or a quota or a limit on files is reached.
    """

    def __init__(self, folder: str, size: int) -> None:
        self._file = _open(folder)
        try:
            system.reserve(self._file, max(1, size))
            self._map = mmap.mmap(self._file, max(1, size))
        except OSError as error:
            os.close(self._file)
            raise MemoryLimitError(
                f"the scratch directory {folder!r} has no room for {bytes_text(size)} ({error.strerror}); "
                f"free some space, raise the limit on files, or name another directory ({option('scratch')})"
            ) from error
        except BaseException:
            os.close(self._file)
            raise

    def array(self, dtype: np.dtype[np.generic], cells: int) -> NDArray[np.generic]:
        """Return the file as an array, which keeps the file's space in use."""
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
    import tempfile

    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            return os.dup(file.fileno())
    except OSError as error:
        raise InputError(
            f"the scratch directory {folder!r} cannot be used ({error.strerror}); name another one "
            f"({option('scratch')})"
        ) from error
