"""Streams of GPUs, kept for later backends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elimina.backends.cuda.blas import Blas


class Lane:
    """A stream of a GPU, and the handle of cuBLAS for it.

    Making a stream or a handle takes longer than many runs, so a backend leaves its lane to later backends of the GPU.
    """

    def __init__(self, cupy: Any) -> None:
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.blas: Blas | None = None


idle_lanes: dict[int, list[Lane]] = {}
"""Lanes that no backend uses, by number of the GPU."""
