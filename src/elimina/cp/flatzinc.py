"""FlatZinc files as models of constraints."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from elimina._core import TextError, flatzinc_record
from elimina.cp.expressions import Expression
from elimina.cp.model import Model
from elimina.errors import FormatError, UnsupportedError
from elimina.io.files import load

Views = npt.NDArray[np.int64]


def read(path: str | os.PathLike[str]) -> Model:
    """Read a FlatZinc model, text or JSON: see ``elimina.cp.read``.

    Args:
        path: The file; decompressed if it ends in .gz or .xz.

    Raises:
        FormatError: The file is malformed; it names line and column.
        UnsupportedError: An item is well formed, but not supported.
        InputError: The file cannot be read.
    """
    path = Path(path)
    try:
        text = load(path)
    except TextError as error:
        raise FormatError(str(path), None, str(error)) from None
    try:
        bounds, posts, declared, outputs, sign, objective = flatzinc_record(text)
    except ValueError as error:
        line, column, problem = str(error).split(":", 2)
        if problem.startswith(" unsupported"):
            raise UnsupportedError(f"{path}:{error}") from None
        raise FormatError(str(path), int(line), f"{problem.strip()} (column {column})") from None
    shown = [named for output in outputs for named in _elements(*output)]
    names: dict[int, str] = {}
    for name, (var, scale, offset) in [*shown, *((name, tuple(rows[0].tolist())) for name, rows in declared)]:
        if (scale, offset) == (1, 0) and var >= 0 and name not in names.values():
            names.setdefault(var, name)
    model = Model()
    variables = [model.int_var(lo, hi, names.get(var, "")) for var, (lo, hi) in enumerate(bounds)]

    def expression(var: int, scale: int, offset: int) -> Expression:
        return model.expression(offset) if var < 0 else variables[var] * scale + offset

    for name, arguments in posts:
        model.post(name, *([expression(*view) for view in rows.tolist()] for rows in arguments))
    taken = set(names.values())
    for name, view in shown:
        if name not in taken:
            x = expression(*view)
            model.add(model.int_var(*model.bounds(x), name) == x)
            taken.add(name)
    if objective is not None:
        (model.minimize if sign > 0 else model.maximize)(expression(*objective[0].tolist()))
    return model


def _elements(
    name: str, is_array: bool, rows: Views, index_sets: Sequence[tuple[int, int]]
) -> list[tuple[str, tuple[int, int, int]]]:
    """Return the names and views of the elements of an output."""
    views = [(var, scale, offset) for var, scale, offset in rows.tolist()]
    if not is_array:
        return [(name, view) for view in views]
    places = list(itertools.product(*(range(lo, hi + 1) for lo, hi in index_sets or [(1, len(views))])))
    if len(places) != len(views):
        places = [(k,) for k in range(1, len(views) + 1)]
    return [(f"{name}[{','.join(map(str, place))}]", view) for place, view in zip(places, views, strict=True)]
