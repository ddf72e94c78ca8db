"""Limits of a multiprocessor."""

from __future__ import annotations

SHARED_BYTES = 228 << 10
"""Bytes of shared memory of a multiprocessor."""
RESERVED_SHARED_BYTES = 1 << 10
"""Bytes of shared memory that each block costs besides the requested ones."""
