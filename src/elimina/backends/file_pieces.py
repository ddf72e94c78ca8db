"""Boxes of a file, cut into pieces that a thread reads or writes at once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from elimina.planning.stream import Copy

PIECE_BYTES = 4 << 20
"""Bytes of a file that a thread reads or writes at a time."""

FilePiece = tuple[int, int, int]
"""Address of some bytes in memory and in the file, and their number."""


def file_pieces(part: Copy, itemsize: int, closely: int | None = None) -> Iterator[list[FilePiece]]:
    """Yield a box's runs, cut and joined to pieces for a thread.

    Args:
        part: Box to cut.
        itemsize: Bytes of an element.
        closely: Address of the runs in memory, one after another; None: as on the device.
    """
    together: list[FilePiece] = []
    size = 0
    for n, index in enumerate(itertools.product(*(range(count) for count, _, _ in reversed(part.rows)))):
        steps = list(zip(index, reversed(part.rows), strict=True))
        offset = itemsize * (part.host + sum(i * stride for i, (_, stride, _) in steps))
        at = itemsize * (part.device + sum(i * stride for i, (_, _, stride) in steps))
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
