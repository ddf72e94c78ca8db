"""Services of the system, with fallbacks; remaining memory and processors of this process; optional packages."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import math
import operator
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, SupportsIndex, cast, get_args

from elimina import arguments
from elimina.errors import InputError, MemoryLimitError
from elimina.number_texts import bytes_text
from elimina.option_names import option

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]
try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_ASSUMED_MEMORY = 4 << 30
"""Bytes of free memory that are assumed if the system does not report any."""

_FREE_SHARE = 0.5
"""Share of the installed memory that counts as free if the system reports nothing else."""

_BLOCK = bytes(1 << 20)

_MODULE_BYTES = 40_000
"""Typical memory of a loaded module, with its code and classes."""

_UNLIMITED = 2**62
"""Smallest limit, in bytes, that counts as none: control groups of version 1 write a huge number for 'no limit'."""


_STACK_BYTES = 8 << 20
"""Stack of a thread where no limit sets its size."""

_THREAD_HEAP_BYTES = 4 << 20
"""Address space for the first objects of a thread: 1 MiB for an arena of CPython, 1 MiB for one of the C library, and
2 MiB in reserve for other threads."""

_NO_THREAD = (
    "the process cannot start another thread: raise its limit on memory (ulimit -v, the job's memory) or on threads "
    "(ulimit -u, pids.max)"
)


def lock_for_a_moment() -> threading.Lock:
    """Return a lock for which a fork waits: a child forked while another thread held it could never acquire it."""
    lock = threading.Lock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock


def start_thread(thread: threading.Thread) -> None:
    """Start a thread.

    Raises:
        MemoryLimitError: There is no memory for its stack, or the process has reached its limit of threads.
        KeyboardInterrupt: The user interrupted; the thread may have started.
    """
    # Memory is checked before the start: CPython waits forever for a thread that cannot allocate its first objects.
    if any(room < _stack_bytes() + _THREAD_HEAP_BYTES for room in _address_space("")):
        raise MemoryLimitError(_NO_THREAD)
    try:
        thread.start()
    except RuntimeError as error:
        # An interrupt during the start may make Python release a lock twice, and this error hides the interrupt.
        if isinstance(error.__context__, KeyboardInterrupt):
            raise error.__context__ from None
        raise MemoryLimitError(_NO_THREAD) from error


def lost_thread() -> MemoryLimitError:
    """Return the error of a thread that ended without a result: only a lack of memory can cause this."""
    return MemoryLimitError(
        "a thread ran out of memory before it could report an error: raise the process' limit on memory (ulimit -v, "
        "the job's memory)"
    )


def _stack_bytes() -> int:
    """Return the bytes of a new thread's stack."""
    soft = resource.getrlimit(resource.RLIMIT_STACK)[0]
    return threading.stack_size() or (_STACK_BYTES if soft == resource.RLIM_INFINITY else soft)


if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property:
        """``functools.cached_property`` without its lock, which Python 3.11 has for each class.

        A fork while another thread held the lock would leave it locked in the child. Threads that compute a value at
        the same time get the same object.
        """

        def __init__(self, compute):
            self._compute, self.__doc__ = compute, compute.__doc__

        def __set_name__(self, owner, name):
            self._name = name

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            return instance.__dict__.setdefault(self._name, self._compute(instance))


class Slotted:
    """Base of classes with slots that every pickle protocol can store; protocols 0 and 1 reject slots by themselves."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> str | tuple[Any, ...]:
        """Return the parts of the object, by protocol 2 of pickle at least."""
        return super().__reduce_ex__(max(operator.index(protocol), 2))


def growth_since(earlier: int | None) -> int:
    """Return the bytes by which the data of the process have grown beyond a size; 0 if the system does not report it.

    Args:
        earlier: An earlier result of ``data_memory``.
    """
    now = data_memory()
    return 0 if now is None or earlier is None else max(0, now - earlier)


def processors() -> int:
    """Return the number of processors that this process may use."""
    with contextlib.suppress(AttributeError):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def free_memory() -> int:
    """Return the bytes of physical memory that are free, or an estimate."""
    for pages, share in (("SC_AVPHYS_PAGES", 1.0), ("SC_PHYS_PAGES", _FREE_SHARE)):
        with contextlib.suppress(AttributeError, ValueError, OSError):
            return int(share * os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE"))
    return _ASSUMED_MEMORY


def data_memory() -> int | None:
    """Return the bytes of physical memory that this process holds for data; None where the system reports no figures.

    The program does not count: libraries and other files mapped into memory, and an estimate of loaded Python modules.
    """
    with contextlib.suppress(AttributeError, ValueError, OSError, IndexError):
        resident, shared = map(int, (_figures("/proc/self/statm") or "").split()[1:3])
        return (resident - shared) * os.sysconf("SC_PAGE_SIZE") - _MODULE_BYTES * len(sys.modules)
    return None


def release_memory() -> None:
    """Return freed memory to the system, if the C library keeps it for later and can release it."""
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
    kinds = {field: getattr(resource, name) for field, name in limits.items() if hasattr(resource, name)}
    soft = {field: resource.getrlimit(limit)[0] for field, limit in kinds.items()}
    return {field: bound for field, bound in soft.items() if bound != resource.RLIM_INFINITY}


def reserve(file: int, size: int) -> None:
    """Give an empty file a size, and reserve its space on the disk.

    Raises:
        OSError: The disk does not have the space.
    """
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
        return
    # A sparse file would end the process with a bus error when the disk is full.
    position = 0
    while position < size:
        position += os.write(file, _BLOCK[: size - position])


def read_at(file: int, target: memoryview, offset: int) -> None:
    """Fill a buffer from a file, from an offset on.

    Raises:
        OSError: The file cannot be read, or ends before the buffer is full.
    """
    position = 0
    while position < len(target):
        if hasattr(os, "preadv"):
            count = os.preadv(file, [target[position:]], offset + position)
        else:
            block = os.pread(file, len(target) - position, offset + position)
            count = len(block)
            target[position : position + count] = block
        if count == 0:
            raise OSError(errno.EIO, f"the file ends {len(target) - position:,} bytes too early")
        position += count


def write_at(file: int, source: memoryview, offset: int) -> None:
    """Write a buffer to a file, from an offset on."""
    position = 0
    while position < len(source):
        position += os.pwrite(file, source[position:], offset + position)


def lock(folder: str | os.PathLike[str]) -> int:
    """Open a folder that no other process has locked, lock it until it is closed, and return its descriptor.

    Where the system has no such locks, the folder is only opened.

    Raises:
        BlockingIOError: Another process has locked the folder.
        OSError: The path is not a folder that can be read.
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


def loaded_on_use(module: str, function: str) -> Callable[..., Any]:
    """Return a stand-in for a function of this package whose module is loaded only when the stand-in is called.

    Args:
        module: The module's full name.
        function: Name of the function.
    """

    def call(*arguments: Any) -> Any:
        return getattr(import_module(module), function)(*arguments)

    return call


def import_package(package: str, module: str) -> Any:
    """Import a module of another package, which no extra of elimina installs.

    Args:
        package: Name of the package, as it is installed.
        module: The module's full name.

    Raises:
        InputError: The package is not installed, or cannot be imported.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(f"this needs the package {package} ({error}); install it: pip install {package}") from error


Library = Literal["pandas", "polars", "pyarrow"]
LIBRARIES: tuple[Library, ...] = get_args(Library)


def frame_of(columns: Mapping[str, Any], library: Library, labels: Any = None) -> Any:
    """Return columns as a data frame.

    Args:
        columns: Name -> sequence or array of values, all of one length.
        library: ``pandas``, ``polars`` or ``pyarrow`` (a ``Table``).
        labels: Index of a pandas frame; None for the rows' numbers. Frames of the other libraries have none.

    Raises:
        TypeError: ``library`` is not text.
        InputError: ``library`` is another one, or not installed.
    """
    arguments.choice("library", library, LIBRARIES)
    module = require(library, "polars" if library == "polars" else "frames", "to_frame")
    if library == "pyarrow":
        return module.table(dict(columns))
    return module.DataFrame(dict(columns)) if library == "polars" else module.DataFrame(dict(columns), index=labels)


class Level(NamedTuple):
    """A control group of this process, or one around it.

    Attributes:
        folder: Its folder in the file system of control groups.
        unified: True if it belongs to the second version.
    """

    folder: str
    unified: bool


def available_memory(root: str | os.PathLike[str] = "") -> int:
    """Return the bytes of memory that this process can still take without swapping.

    That is the smallest of: the system's free memory; what each control group leaves (of both versions, from the
    process' own to the root, as batch systems nest them; pages of files that can be dropped count as free); and what
    ``RLIMIT_AS`` (``ulimit -v``) and ``RLIMIT_DATA`` leave. Linux ignores ``RLIMIT_RSS``.

    Args:
        root: Folder of ``proc`` and ``sys``.
    """
    limits = [_system_memory(root), *_address_space(root)]
    levels = control_groups("memory", os.fspath(root))
    limits += [group_memory for level in levels if (group_memory := _group_memory(level)) is not None]
    return max(0, min(limits))


_THREAD_BYTES = 72 << 20
"""Address space of a thread: its stack, and the addresses that the C library reserves for its heap."""

_THREADS_SHARE = 0.5
"""Share of the remaining address space that threads may take: the rest is for tables."""


def available_threads(root: str | os.PathLike[str] = "") -> int:
    """Return the number of processors that this process may keep busy.

    Limits are its affinity, its control groups' quotas, and the room that ``RLIMIT_AS`` (``ulimit -v``) and
    ``RLIMIT_DATA`` leave for its threads.

    Args:
        root: Folder of ``proc`` and ``sys``.
    """
    quotas = [_processors(level) for level in control_groups("cpu", os.fspath(root))]
    rooms = [int(_THREADS_SHARE * space) // _THREAD_BYTES for space in _address_space(root)]
    return max(1, min([processors(), *(math.ceil(quota) for quota in quotas if quota is not None), *rooms]))


_LESS = "less memory"
"""Placeholder for the advice to use less memory. The advice is worded when the error is raised: it names arguments in
Python, flags on the command line."""


def memory_errors_in_words(while_what: str, advice: str | None = _LESS) -> InWords:
    """Turn a ``MemoryError`` of Python, NumPy or the core into a ``MemoryLimitError`` that names the remaining memory.

    An ``ImportError`` is included: the library of a module that is loaded on first use may not fit into memory.

    Args:
        while_what: Part of the error's text: what the process was doing.
        advice: Part of the error's text: what makes the process need less; None if nothing does.
    """
    return InWords(while_what, advice)


_NO_ROOM = "failed to map segment"
"""Part of the system loader's message about a library that does not fit into memory."""


class InWords(contextlib.ContextDecorator):
    """Context of ``memory_errors_in_words``; a generator would add 3 us to each query of a small network."""

    def __init__(self, while_what: str, advice: str | None) -> None:
        self._while_what, self._advice = while_what, advice

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        is_without_room = isinstance(error, ImportError) and _NO_ROOM in str(error)
        if is_without_room or (isinstance(error, MemoryError) and not isinstance(error, MemoryLimitError)):
            advice = self._advice
            if advice == _LESS:
                # Each thread reserves address space, so fewer threads help if address space is limited.
                threads = f"use fewer threads ({option('threads', 1)}), " if address_limits() else ""
                advice = f"{threads}set a smaller {option('memory')}"
            advice = "" if advice is None else f"{advice}, or "
            raise MemoryLimitError(
                f"the process ran out of memory {self._while_what}; about {bytes_text(available_memory())} were left "
                f"to it afterwards: {advice}raise the limit of the process (ulimit -v, the job's memory)"
            ) from error


def _system_memory(root: str | os.PathLike[str]) -> int:
    match = re.search(r"^MemAvailable:\s+(\d+) kB", _figures(f"{root}/proc/meminfo") or "", re.MULTILINE)
    if match is not None:
        return int(match[1]) * 1024
    return free_memory()


def _address_space(root: str | os.PathLike[str]) -> Iterator[int]:
    """Yield the bytes of memory that each of the process' own limits leaves."""
    limits = address_limits()
    if limits:
        mapped = dict(re.findall(r"^(\w+):\s+(\d+) kB", _figures(f"{root}/proc/self/status") or "", re.MULTILINE))
        for field, bound in limits.items():
            yield bound - int(mapped.get(field, 0)) * 1024


def _group_memory(level: Level) -> int | None:
    """Return the bytes that a control group leaves; None if it has no limit, or does not report its use."""
    names = ("memory.max", "memory.high") if level.unified else ("memory.limit_in_bytes",)
    found_bounds = (_number(f"{level.folder}/{name}") for name in names)
    bounds = [bound for bound in found_bounds if bound is not None and bound < _UNLIMITED]
    if not bounds:
        return None
    used_bytes = _number(f"{level.folder}/{'memory.current' if level.unified else 'memory.usage_in_bytes'}")
    if used_bytes is None:
        return None
    field = "inactive_file" if level.unified else "total_inactive_file"
    match = re.search(rf"^{field} (\d+)$", _figures(f"{level.folder}/memory.stat") or "", re.MULTILINE)
    return min(bounds) - used_bytes + (min(int(match[1]), used_bytes) if match else 0)


def _processors(level: Level) -> float | None:
    """Return the number of processors whose time a control group may use; None if it has no quota or reports none."""
    if level.unified:
        words = (_figures(f"{level.folder}/cpu.max") or "").split()
        quota, period = (*words, "", "")[:2]
    else:
        quota, period = (_figures(f"{level.folder}/cpu.cfs_{name}_us") or "" for name in ("quota", "period"))
    try:
        share = int(quota) / int(period)
    except (ValueError, ZeroDivisionError):
        return None
    return share if share > 0 else None


@functools.cache
def control_groups(controller: str, root: str = "") -> tuple[Level, ...]:
    """Return the control groups that may limit this process, of both versions, the innermost first.

    Args:
        controller: ``memory`` or ``cpu``.
        root: Folder of ``proc`` and ``sys``.
    """
    paths_of_process: dict[bool, str] = {}
    for line in _read(f"{root}/proc/self/cgroup").splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if not controllers or controller in controllers.split(","):
            paths_of_process[not controllers] = path
    levels = []
    for line in _read(f"{root}/proc/self/mountinfo").splitlines():
        mount, _, kind = line.partition(" - ")
        mount_fields, words = mount.split(), kind.split()
        unified = words[:1] == ["cgroup2"]
        is_right = unified or (words[:1] == ["cgroup"] and controller in words[-1].split(","))
        if is_right and unified in paths_of_process and len(mount_fields) > 4:
            top = f"{root}{_unescaped(mount_fields[4])}"
            levels += [
                Level(folder, unified)
                for folder in _way_up(top, _unescaped(mount_fields[3]), paths_of_process[unified])
            ]
    return tuple(levels)


def _way_up(top: str, shown: str, path: str) -> Iterator[str]:
    """Yield the folders of the process' control group and of the groups around it, up to the mounted one.

    Args:
        top: Folder where a group is mounted.
        shown: Path of the group that is mounted there.
        path: Path of the process' group. In a container, it may lie outside the mounted group; then only ``top`` is
            yielded.
    """
    inside = os.path.relpath(path or "/", shown)
    folders = [] if inside == "." or inside.startswith("..") else inside.split("/")
    for count in range(len(folders), -1, -1):
        yield "/".join((top, *folders[:count]))


def _unescaped(path: str) -> str:
    r"""Return a path of a mount table, which writes spaces as ``\040``."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), path)


def _read(path: str) -> str:
    """Return a file's text; an empty one if there is no such file, or it may not be read."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return ""


_MAX_FIGURES = 1 << 16
"""Bytes to read from a short file of the system, which are more than any such file has."""


def _figures(path: str) -> str | None:
    """Return the present text of a short file of the system; None if there is none, or it may not be read."""
    if not _keeps_files():
        return _read(path) or None
    try:
        file = _opened(os.getpid(), path)
        return None if file is None else os.pread(file, _MAX_FIGURES, 0).decode()
    except (AttributeError, OSError, UnicodeDecodeError):
        return None


_FEW_FILES = 64
"""Limit on open files up to which files of the system are closed after each reading, because the process needs all of
its descriptors."""


@functools.cache
def _keeps_files() -> bool:
    """Return whether the limit on open files is high enough to keep about eight files of the system open."""
    if resource is None:
        return True
    max_files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return bool(max_files == resource.RLIM_INFINITY or max_files > _FEW_FILES)


@functools.cache
def _opened(process: int, path: str) -> int | None:
    """Open a file that stays open, because opening takes longer than reading; return its descriptor, or None.

    If it were opened for each reading, an interrupt could leave a descriptor open. A forked process may have closed its
    files, so it opens them again. A missing file is not looked for again: the version of the system decides which files
    exist.

    Raises:
        OSError: The file exists, but cannot be opened.
    """
    with contextlib.suppress(FileNotFoundError):
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    return None


def _number(path: str) -> int | None:
    """Return the number in a file; None if the file has none (such as ``max``) or cannot be read."""
    text = (_figures(path) or "").strip()
    return int(text) if text.isdecimal() else None
