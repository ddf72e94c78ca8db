"""Boxes of a file, cut into pieces that a thread reads or writes at once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from elimina.planning.stream import Copy

PIECE_BYTES = 4 << 20
"""Bytes of a file that a thread reads or writes at a time."""

FilePiece = tuple[int, int, int]
"""Address of some bytes in memory and in the file, and their number."""


def file_pieces(box: Copy, itemsize: int, closely: int | None = None) -> Iterator[list[FilePiece]]:
    """Yield a box's runs as lists of pieces, each a thread's work: long runs are cut, and short ones joined.

    Args:
        box: Box to cut.
        itemsize: Bytes of an element.
        closely: Address in memory at which the runs lie one after another; None: they lie as on the device.
    """
    together: list[FilePiece] = []
    size = 0
    for n, index in enumerate(itertools.product(*(range(count) for count, _, _ in reversed(box.rows)))):
        steps = list(zip(index, reversed(box.rows), strict=True))
        offset = itemsize * (box.host + sum(i * stride for i, (_, stride, _) in steps))
        at = itemsize * (box.device + sum(i * stride for i, (_, _, stride) in steps))
        if closely is not None:
            at = closely + n * box.run * itemsize
        for first in range(0, box.run * itemsize, PIECE_BYTES):
            taken = min(PIECE_BYTES, box.run * itemsize - first)
            together.append((at + first, offset + first, taken))
            size += taken
            if size >= PIECE_BYTES:
                yield together
                together, size = [], 0
    if together:
        yield together
