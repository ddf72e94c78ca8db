"""Warnings about proofs that depend on the default limits of unbounded variables."""

from __future__ import annotations

import logging
from collections.abc import Sequence

UNBOUNDED_LIMIT = 2**42
"""Largest absolute value of a variable without bounds in a file: ``kFree`` in ``core/cp/flatzinc/instance.hpp``."""

logger = logging.getLogger("elimina")


def missing_bounds_text(names: Sequence[str]) -> str:
    """Return the text of a message that the file gives some variables no bounds."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"the file gives no bounds for {', '.join(names[:3])}{more}"


def bounds_advice(names: Sequence[str]) -> str:
    """Return the advice to declare bounds."""
    return f"declare bounds in the file, such as var -1000..1000: {names[0]}"


def warn_of_missing_bounds(names: Sequence[str]) -> None:
    """Warn of variables without bounds: a search of their default range proves nothing."""
    if names:
        searched = "only values from -2^42 to 2^42 were searched, which proves nothing"
        logger.warning("%s; %s: %s", missing_bounds_text(names), searched, bounds_advice(names))
