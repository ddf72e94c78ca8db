"""Data frames with columns replaced or added."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from elimina import arguments


def with_columns(frame: Any, columns: Mapping[str, NDArray[Any]]) -> Any:
    """Return a frame with some columns replaced or added; the given one stays as it is.

    Args:
        frame: A data frame of pandas, Polars or Arrow, or a mapping from names to sequences, which gives a dict.
        columns: Cells of the columns.

    Raises:
        TypeError: ``frame`` is something else.
    """
    if hasattr(frame, "iloc"):
        return frame.assign(**columns)
    if hasattr(frame, "with_columns"):
        package = __import__(type(frame).__module__.partition(".")[0])
        return frame.with_columns([package.Series(name, cells) for name, cells in columns.items()])
    if hasattr(frame, "set_column"):
        for name, cells in columns.items():
            place = frame.schema.get_field_index(name)
            frame = frame.append_column(name, [cells]) if place < 0 else frame.set_column(place, name, [cells])
        return frame
    if isinstance(frame, Mapping):
        return {**frame, **columns}
    raise arguments.wrong_type("frame", frame, "a data frame of pandas, Polars or Arrow, or a mapping")
