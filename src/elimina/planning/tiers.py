"""Memory tier of a plan's arena: the device, the host, or a file."""

from __future__ import annotations

import os

from elimina.errors import InputError
from elimina.planning.machine import DISK, PINNED
from elimina.planning.plan import Plan
from elimina.planning.stream import Stream
from elimina.planning.streaming import HOST_WORK, plan_stream

UPLOAD_STAGES = 4
DOWNLOAD_STAGES = 3
"""Parts of pinned memory between a file and a device."""

RECORDS = 16
"""Packed tiles on the device at a time."""
RECORD_BYTES = 1 << 14
"""Bytes of the longest one."""
MARGIN = 256
"""Bytes before the tables and behind them, since kernels read whole vectors."""


def fixed_bytes(steps: int) -> int:
    """Device bytes of a streamed program besides its tables."""
    return (16 * steps + RECORDS * RECORD_BYTES) // MARGIN * MARGIN + 3 * MARGIN


def stage_bytes(stream: Stream, itemsize: int) -> int:
    """Return the bytes of pinned memory between a file and a device."""
    return itemsize * (UPLOAD_STAGES * stream.upload_span + DOWNLOAD_STAGES * stream.download_span)


def check_scratch(folder: str) -> None:
    """Check a directory for scratch files.

    Raises:
        InputError: It is not a directory that one can write to.
    """
    if not os.path.isdir(folder):
        raise InputError(f"the scratch directory {folder!r} is not a directory; name an existing one")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"the scratch directory {folder!r} cannot be written to; name another one")


def in_tiers(plan: Plan, host: int, scratch: str | None) -> Plan:
    """Move the arena of a plan that does not fit down the tiers, as far as needed: the host, then a file.

    Args:
        plan: Any plan.
        host: Bytes of the host that may be used.
        scratch: Directory for a file; None: there may be none.

    Returns:
        The plan that fits; or, if none does, one that shows what is missing.
    """
    if plan.fits:
        return plan
    item = plan.itemsize
    arena, factors = plan.arena_cells * item, plan.factor_cells * item
    outputs = {output.step for output in plan.outputs}
    if plan.on_host:
        return plan if scratch is None else _from_disk(plan, outputs, scratch)
    limits = (("host", host),)
    if arena + factors > host and scratch is None:
        return plan._replace(bytes={"device": plan.bytes["device"], "host": arena + factors}, limits=limits)
    if arena + factors > host and scratch is not None and arena > _free(scratch):
        return _on_disk(plan, {**plan.bytes, "disk": arena}, scratch, 0.0)
    fixed = fixed_bytes(len(plan.steps))
    stream = plan_stream(plan.steps, outputs, item, (plan.memory_limit - fixed) // item, plan.decode, HOST_WORK)
    if stream is None:
        return plan
    device = stream.cells * item + fixed
    streamed = plan._replace(stream=stream, limits=limits, bytes={"device": device, "host": arena + factors})
    if streamed.fits or scratch is None:
        return streamed._replace(seconds=plan.seconds + stream.seconds + arena / PINNED)
    tiers = {"device": device, "host": factors + stage_bytes(stream, item), "disk": arena}
    return _on_disk(streamed, tiers, scratch, max(stream.up, stream.down) * item / DISK)


def _from_disk(plan: Plan, outputs: set[int], scratch: str) -> Plan:
    """Return the arena of a plan for the CPU in a file; tables pass through memory."""
    item = plan.itemsize
    arena, factors = plan.arena_cells * item, plan.factor_cells * item
    if arena > _free(scratch):
        return _on_disk(plan, {"host": factors, "disk": arena}, scratch, 0.0)
    stream = plan_stream(
        plan.steps, outputs, item, (plan.memory_limit - factors) // item, plan.decode, HOST_WORK
    )  # fmt: skip
    if stream is None:
        return plan
    moved = max(stream.up, stream.down) * item / DISK
    tiers = {"host": factors + stream.cells * item, "disk": arena}
    return _on_disk(plan._replace(stream=stream), tiers, scratch, moved)


def _on_disk(plan: Plan, tiers: dict[str, int], scratch: str, seconds: float) -> Plan:
    limits = (*plan.limits, ("disk", _free(scratch)))
    return plan._replace(bytes=tiers, scratch=scratch, limits=limits, seconds=plan.seconds + seconds)


def _free(folder: str) -> int:
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize
