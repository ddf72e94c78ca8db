"""Seed of all random tests: the same for the same sources, another one after each change."""

from __future__ import annotations

import functools
import hashlib
import os
import secrets
from pathlib import Path

ROOT = Path(__file__).parents[1]

SUFFIXES = {".py", ".cpp", ".hpp", ".cu", ".cuh"}


@functools.cache
def run_seed() -> int:
    """Return the seed of a run.

    It is a digest of the sources: a run that passes passes again elsewhere, and each change is tested with cases of its
    own. ``ELIMINA_SEED`` sets it; ``random`` draws a fresh one.
    """
    seed = os.environ.get("ELIMINA_SEED", "")
    if seed == "random":
        # Workers of one run agree: they inherit the environment.
        os.environ["ELIMINA_SEED"] = seed = str(secrets.randbelow(10**9))
    if seed:
        return int(seed)
    digest = hashlib.sha256()
    for folder in ("core", "src", "tests"):
        for path in sorted(path for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES):
            digest.update(path.read_bytes())
    return int(digest.hexdigest(), 16) % 10**9
