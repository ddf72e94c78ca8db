"""Data frames with columns replaced or added."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from elimina import arguments


def with_columns(frame: Any, columns: Mapping[str, NDArray[Any]]) -> Any:
    """Return a frame with some columns replaced or added, and do not change its argument.

    Args:
        frame: A data frame of pandas, Polars or Arrow, or a mapping from names to sequences, which gives a dict.
        columns: Cells of the columns.

    Raises:
        TypeError: ``frame`` is something else.
    """
    if hasattr(frame, "iloc"):
        return frame.assign(**columns)
    if hasattr(frame, "with_columns"):
        return frame.with_columns(type(frame)(dict(columns)).get_columns())
    if hasattr(frame, "set_column"):
        for name, cells in columns.items():
            position = frame.schema.get_field_index(name)
            frame = frame.append_column(name, [cells]) if position < 0 else frame.set_column(position, name, [cells])
        return frame
    if isinstance(frame, Mapping):
        return {**frame, **columns}
    raise arguments.wrong_type("frame", frame, "a data frame of pandas, Polars or Arrow, or a mapping")
