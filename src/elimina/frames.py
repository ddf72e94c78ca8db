"""Data frames of answers: pandas, Polars and Arrow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from elimina import arguments
from elimina.extras import require

Library = Literal["pandas", "polars", "pyarrow"]
LIBRARIES: tuple[Library, ...] = get_args(Library)


def frame_of(columns: Mapping[str, Any], library: Library) -> Any:
    """Return columns as a data frame.

    Args:
        columns: Name -> sequence or array of values, all of one length.
        library: ``pandas``, ``polars`` or ``pyarrow`` (a ``Table``).

    Raises:
        TypeError: ``library`` is not text.
        InputError: It is another one, or not installed.
    """
    arguments.choice("library", library, LIBRARIES)
    module = require(library, "polars" if library == "polars" else "frames", "to_frame")
    if library == "pyarrow":
        return module.table(dict(columns))
    return module.DataFrame(dict(columns))
