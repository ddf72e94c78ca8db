"""Executor paths that a run takes (``core/exec/paths.hpp``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from elimina._core import count_paths, dense_instruction_set, path_counts


@contextmanager
def counted_paths() -> Iterator[Counter[str]]:
    """Count the executor paths that a block takes, in all threads of this process; the counts are set at its end."""
    counts: Counter[str] = Counter()
    count_paths(True)
    try:
        yield counts
    finally:
        counts.update(path_counts())
        count_paths(False)


def reachable_paths(*, gpu: bool = False) -> set[str]:
    """Return the names of all paths that this machine can take, those of a GPU only if it has one."""
    lacking = {"baseline": ("vector", "avx512"), "avx2": ("avx512",), "avx512": ()}[dense_instruction_set()]
    return {path for path in path_counts() if not path.startswith((*lacking, *(() if gpu else ("cuda",))))}
