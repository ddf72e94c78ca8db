"""Memory and processors that the host leaves to this process: the smallest of all limits counts."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from elimina import system
from elimina.display import bytes_text
from elimina.errors import MemoryLimitError

_ROOT = Path("/")

_UNLIMITED = 2**62
"""Bytes from which a limit is none: the first version of control groups has no other word for it."""


class Level(NamedTuple):
    """A control group of this process, or one around it.

    Attributes:
        folder: Its folder in the file system of control groups.
        unified: True if it belongs to the second version.
    """

    folder: Path
    unified: bool


def available_memory(root: Path = _ROOT) -> int:
    """Return the bytes of memory that this process can still take without swapping.

    That is the smallest of: the system's free memory; what each control group leaves (of both versions, from the
    process' own to the root, as batch systems nest them; pages of files that can be dropped count as free); and what
    ``RLIMIT_AS`` (``ulimit -v``) and ``RLIMIT_DATA`` leave. Linux ignores ``RLIMIT_RSS``.

    Args:
        root: Folder of ``proc`` and ``sys``.
    """
    limits = [_system_memory(root), *_address_space(root)]
    limits += [left for level in control_groups("memory", root) if (left := _group_memory(level)) is not None]
    return max(0, min(limits))


def available_threads(root: Path = _ROOT) -> int:
    """Return the number of processors that this process may keep busy, by its affinity and its control groups' quotas.

    Args:
        root: Folder of ``proc`` and ``sys``.
    """
    quotas = [_processors(level) for level in control_groups("cpu", root)]
    return max(1, min([system.processors(), *(math.ceil(quota) for quota in quotas if quota is not None)]))


@contextlib.contextmanager
def memory_errors_in_words(while_what: str) -> Iterator[None]:
    """Turn a ``MemoryError`` of Python, NumPy or the core into a ``MemoryLimitError`` that names the remaining memory.

    Args:
        while_what: Part of the error's text: what the process was doing.
    """
    try:
        yield
    except MemoryLimitError:
        raise
    except MemoryError as error:
        raise MemoryLimitError(
            f"the process ran out of memory {while_what}; about {bytes_text(available_memory())} were left to it "
            "afterwards: set a smaller --memory, or raise the limit of the process (ulimit -v, the job's memory)"
        ) from error


def _system_memory(root: Path) -> int:
    found = re.search(r"^MemAvailable:\s+(\d+) kB", _read(f"{root}/proc/meminfo") or "", re.MULTILINE)
    if found is not None:
        return int(found[1]) * 1024
    return system.free_memory()


def _address_space(root: Path) -> Iterator[int]:
    """Yield the bytes that the process' own limits leave."""
    limits = system.address_limits()
    if limits:
        mapped = dict(re.findall(r"^(\w+):\s+(\d+) kB", _read(f"{root}/proc/self/status") or "", re.MULTILINE))
        for field, bound in limits.items():
            yield bound - int(mapped.get(field, 0)) * 1024


def _group_memory(level: Level) -> int | None:
    """Return the bytes that a control group leaves; None if it has no limit."""
    names = ("memory.max", "memory.high") if level.unified else ("memory.limit_in_bytes",)
    found_bounds = (_number(f"{level.folder}/{name}") for name in names)
    bounds = [bound for bound in found_bounds if bound is not None and bound < _UNLIMITED]
    if not bounds:
        return None
    used = _number(f"{level.folder}/{'memory.current' if level.unified else 'memory.usage_in_bytes'}")
    if used is None:
        return None
    field = "inactive_file" if level.unified else "total_inactive_file"
    found = re.search(rf"^{field} (\d+)$", _read(f"{level.folder}/memory.stat") or "", re.MULTILINE)
    return min(bounds) - used + (min(int(found[1]), used) if found else 0)


def _processors(level: Level) -> float | None:
    """Return the processors' worth of time that a control group may use; None if it has no quota."""
    if level.unified:
        words = (_read(f"{level.folder}/cpu.max") or "").split()
        quota, period = (*words, "", "")[:2]
    else:
        quota, period = (_read(f"{level.folder}/cpu.cfs_{name}_us") or "" for name in ("quota", "period"))
    try:
        share = int(quota) / int(period)
    except (ValueError, ZeroDivisionError):
        return None
    return share if share > 0 else None


@functools.cache
def control_groups(controller: str, root: Path = _ROOT) -> tuple[Level, ...]:
    """Return the control groups that may limit this process, of both versions, the innermost first.

    Args:
        controller: ``memory`` or ``cpu``.
        root: Folder of ``proc`` and ``sys``.
    """
    own: dict[bool, str] = {}
    for line in (_read(f"{root}/proc/self/cgroup") or "").splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if not controllers or controller in controllers.split(","):
            own[not controllers] = path
    levels = []
    for line in (_read(f"{root}/proc/self/mountinfo") or "").splitlines():
        mount, _, kind = line.partition(" - ")
        places, words = mount.split(), kind.split()
        unified = words[:1] == ["cgroup2"]
        is_right = unified or (words[:1] == ["cgroup"] and controller in words[-1].split(","))
        if is_right and unified in own and len(places) > 4:
            top = root / _unescaped(places[4]).lstrip("/")
            levels += [Level(folder, unified) for folder in _way_up(top, _unescaped(places[3]), own[unified])]
    return tuple(levels)


def _way_up(top: Path, shown: str, path: str) -> Iterator[Path]:
    """Yield the folders from a control group up to the one that is mounted.

    Args:
        top: Folder where it is mounted.
        shown: The group that is mounted there.
        path: The process' group. Containers may see a path that lies outside of what is mounted: then only that counts.
    """
    inside = os.path.relpath(path or "/", shown)
    parts = [] if inside == "." or inside.startswith("..") else Path(inside).parts
    for count in range(len(parts), -1, -1):
        yield top.joinpath(*parts[:count])


def _unescaped(path: str) -> str:
    r"""Return a path of a mount table, which writes spaces as ``\040``."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), path)


def _read(path: str) -> str | None:
    """Return a file's text; None if there is none, or it may not be read."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        # Every call of the library asks several such files: file objects would take ten times as long.
        return b"".join(iter(lambda: os.read(file, 1 << 16), b"")).decode()
    except (OSError, UnicodeDecodeError):
        return None
    finally:
        os.close(file)


def _number(path: str) -> int | None:
    """Return a file's number; None if it has none (``max``)."""
    text = (_read(path) or "").strip()
    return int(text) if text.isdecimal() else None
