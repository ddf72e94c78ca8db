"""Bytes that are uploaded together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


def slices_of(to: int, pieces: list[NDArray[np.uint8]], max_bytes: int) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Cut pieces into parts of limited size, and yield each with its address. The first piece belongs at ``to``."""
    for piece in pieces:
        for at in range(0, len(piece), max_bytes):
            yield to + at, piece[at : at + max_bytes]
        to += len(piece)


def contiguous_pieces(pieces: dict[int, NDArray[np.uint8]]) -> list[tuple[int, list[NDArray[np.uint8]]]]:
    """Return contiguous stretches of memory: the start of each, and its pieces."""
    stretches: list[tuple[int, list[NDArray[np.uint8]]]] = []
    end = -1
    for at in sorted(pieces):
        if at != end:
            stretches.append((at, []))
        stretches[-1][1].append(pieces[at])
        end = at + len(pieces[at])
    return stretches
