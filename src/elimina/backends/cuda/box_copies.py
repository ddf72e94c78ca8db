"""Copies of boxes of bytes between host and device."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

MIN_SINGLE_RUN_BYTES = 1 << 19
"""Runs of at least this many bytes are copied by a call each. Of shorter runs, a single call copies many."""
MAX_PITCH_BYTES = (1 << 31) - 1
"""Largest stride between the runs that a single call copies."""

CopyRows = Sequence[tuple[int, int, int]]


def copy_box(runtime: Any, to: int, source: int, run: int, rows: CopyRows, stream: int) -> None:
    """Queue copies of runs of bytes; ``rows``: count, target stride and source stride of each axis, fastest first."""
    if not rows:
        runtime.memcpyAsync(to, source, run, runtime.memcpyDefault, stream)
        return
    (count, to_stride, from_stride), *outer = rows
    narrow = run < MIN_SINGLE_RUN_BYTES and max(to_stride, from_stride) <= MAX_PITCH_BYTES
    for index in itertools.product(*(range(n) for n, _, _ in outer)):
        at = to + sum(i * stride for i, (_, stride, _) in zip(index, outer, strict=True))
        start = source + sum(i * stride for i, (_, _, stride) in zip(index, outer, strict=True))
        if narrow:
            runtime.memcpy2DAsync(at, to_stride, start, from_stride, run, count, runtime.memcpyDefault, stream)
            continue
        for i in range(count):
            runtime.memcpyAsync(at + i * to_stride, start + i * from_stride, run, runtime.memcpyDefault, stream)
