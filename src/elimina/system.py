"""Services that not every system has: those of the operating system, with fall-backs, and optional packages."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Literal, cast, get_args

from elimina import arguments
from elimina.errors import InputError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]
try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_ASSUMED_MEMORY = 4 << 30
"""Bytes of free memory where the system tells nothing."""

_FREE_SHARE = 2
"""Divisor of the installed memory: this share counts as free if the system reports nothing else."""

_BLOCK = bytes(1 << 20)


def processors() -> int:
    """Return the number of processors that this process may use."""
    with contextlib.suppress(AttributeError):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def free_memory() -> int:
    """Return the bytes of physical memory that are free, or an estimate."""
    for pages, share in (("SC_AVPHYS_PAGES", 1), ("SC_PHYS_PAGES", _FREE_SHARE)):
        with contextlib.suppress(AttributeError, ValueError, OSError):
            return os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE") // share
    return _ASSUMED_MEMORY


def resident_memory() -> int | None:
    """Return the bytes of physical memory that this process holds; None where the system does not tell."""
    with contextlib.suppress(AttributeError, ValueError, OSError, IndexError):
        return int(os.pread(_statm(os.getpid()), 256, 0).split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return None


@functools.cache
def _statm(process: int) -> int:
    """Return an open file of the memory figures; an interrupt could leave one open that is opened for each look."""
    return os.open(f"/proc/{process}/statm", os.O_RDONLY | os.O_CLOEXEC)


def release_memory() -> None:
    """Give memory that was freed back to the system, where the C library keeps it for later and can be told to."""
    trim = _trim()
    if trim is not None:
        trim(0)


@functools.cache
def _trim() -> Callable[[int], int] | None:
    try:
        return cast("Callable[[int], int]", ctypes.CDLL(None).malloc_trim)
    except (AttributeError, OSError, TypeError):
        return None


def address_limits() -> Mapping[str, int]:
    """Return the limits of this process' memory in bytes, by the field of ``/proc/self/status`` that they bound."""
    limits = {"VmSize": "RLIMIT_AS", "VmData": "RLIMIT_DATA"}
    known = {field: getattr(resource, name) for field, name in limits.items() if hasattr(resource, name)}
    soft = {field: resource.getrlimit(limit)[0] for field, limit in known.items()}
    return {field: bound for field, bound in soft.items() if bound != resource.RLIM_INFINITY}


def nameless_file(folder: str) -> int:
    """Open a file that has no name in its folder, or loses it at once, and return its descriptor.

    Raises:
        OSError: The folder cannot be written to.
    """
    nameless = getattr(os, "O_TMPFILE", None)
    if nameless is not None:
        try:
            return os.open(folder, nameless | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            # A file system without nameless files.
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
                raise
    import tempfile

    file, path = tempfile.mkstemp(prefix="elimina-", dir=folder)
    os.unlink(path)
    return file


def reserve(file: int, size: int) -> None:
    """Give an empty file a size, with its space on the disk.

    Raises:
        OSError: There is no room.
    """
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
        return
    # A file that only claims its size would end the process where the disk is full.
    done = 0
    while done < size:
        done += os.write(file, _BLOCK[: size - done])


def read_at(file: int, target: memoryview, offset: int) -> None:
    """Fill a buffer from a file, from an offset on."""
    done = 0
    while done < len(target):
        if hasattr(os, "preadv"):
            done += os.preadv(file, [target[done:]], offset + done)
        else:
            part = os.pread(file, len(target) - done, offset + done)
            target[done : done + len(part)] = part
            done += len(part)


def write_at(file: int, source: memoryview, offset: int) -> None:
    """Write a buffer to a file, from an offset on."""
    done = 0
    while done < len(source):
        done += os.pwrite(file, source[done:], offset + done)


def lock(folder: str | os.PathLike[str]) -> int:
    """Open a folder that no other process has locked, lock it until it is closed, and return its descriptor.

    Where the system has no such locks, the folder is only opened.

    Raises:
        BlockingIOError: Another process has it.
        OSError: It is not a folder that can be read.
    """
    file = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(file)
        raise
    return file


_PACKAGES = {"yaml": "PyYAML", "sklearn": "scikit-learn"}
"""Packages whose modules have another name."""


def require(module: str, extra: str, purpose: str) -> Any:
    """Import a module of an optional package.

    Args:
        module: The module's full name; its first part is the package's name.
        extra: The extra of elimina that installs the package.
        purpose: Purpose of the package, as the error states it.

    Raises:
        InputError: The package is not installed.
    """
    package = module.split(".")[0]
    try:
        import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        hint = f"pip install 'elimina[{extra}]'"
        raise InputError(f"{purpose} needs {_PACKAGES.get(package, package)}, which is not installed: {hint}") from None
    return import_module(module)


Library = Literal["pandas", "polars", "pyarrow"]
LIBRARIES: tuple[Library, ...] = get_args(Library)


def frame_of(columns: Mapping[str, Any], library: Library) -> Any:
    """Return columns as a data frame.

    Args:
        columns: Name -> sequence or array of values, all of one length.
        library: ``pandas``, ``polars`` or ``pyarrow`` (a ``Table``).

    Raises:
        TypeError: ``library`` is not text.
        InputError: It is another one, or not installed.
    """
    arguments.choice("library", library, LIBRARIES)
    module = require(library, "polars" if library == "polars" else "frames", "to_frame")
    if library == "pyarrow":
        return module.table(dict(columns))
    return module.DataFrame(dict(columns))
