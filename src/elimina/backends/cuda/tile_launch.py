"""The launch of one large step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from elimina.backends.cuda.kernels import FacesKernel, MatchingKernel, ProductKernel, TileKernel

_PATHS = {
    TileKernel: "cuda-tile",
    ProductKernel: "cuda-product",
    FacesKernel: "cuda-faces",
    MatchingKernel: "cuda-matching",
}


class TileLaunch(NamedTuple):
    """A launch of one large step.

    Attributes:
        kernel: Instantiation of the kernel.
        record_at: Start of the step's record in the words.
        arguments: The kernel's arguments between ``record`` and ``arena`` (``kernels/tile.cu``, ``product.cu``,
            ``matching.cu``).
        blocks: Number of blocks.
        threads: Threads of each block.
        shared: Bytes of shared memory of a block.
        work: Combinations of the step.
        is_partial: True if its sums are only over parts of the eliminated variable's values (``split_sums.py``).
    """

    kernel: TileKernel | ProductKernel | FacesKernel | MatchingKernel
    record_at: int
    arguments: tuple[int, ...]
    blocks: int
    threads: int
    shared: int
    work: int
    is_partial: bool = False

    def kernel_names(self, semiring: str, dtype: np.dtype[np.generic]) -> tuple[str]:
        """Return the name of the launch's kernel, which does not depend on the semiring and the dtype."""
        return (self.kernel.name,)

    @property
    def path(self) -> str:
        """Name of its executor path (``core/exec/paths.hpp``)."""
        return "cuda-split-sums" if self.is_partial else _PATHS[type(self.kernel)]
