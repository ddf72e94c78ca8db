"""FlatZinc files as constraint models."""

from __future__ import annotations

import itertools
from pathlib import Path

from elimina._core import FlatZincOutput, flatzinc_record
from elimina.cp.expressions import Expression
from elimina.cp.model import Model
from elimina.cp.unbounded import UNBOUNDED_LIMIT
from elimina.errors import FormatError, UnsupportedError, source_text


def read_flatzinc(path: Path, text: bytes) -> Model:
    """Read a FlatZinc model.

    Args:
        path: The file, for errors.
        text: Content of the file.

    Raises:
        FormatError: The file is malformed; it names the line.
        UnsupportedError: An item is not supported.
    """
    try:
        record = flatzinc_record(text)
    except ValueError as error:
        line, column, problem = str(error).split(":", 2)
        if problem.startswith(" unsupported"):
            raise UnsupportedError(f"{source_text(path)}:{error}") from None
        raise FormatError(str(path), int(line), f"{problem.strip()} (column {column})") from None
    shown = [named for output in record.outputs for named in _elements(output)]
    names: dict[int, str] = {}
    taken: set[str] = set()
    for name, (var, scale, offset) in [*shown, *((name, tuple(rows[0].tolist())) for name, rows in record.names)]:
        if (scale, offset) == (1, 0) and var >= 0 and name not in taken and var not in names:
            names[var] = name
            taken.add(name)
    model = Model()
    variables = [
        model.unbounded_var(names.get(var, ""))
        if ends == (-UNBOUNDED_LIMIT, UNBOUNDED_LIMIT)
        else model.int_var(*ends, names.get(var, ""))
        for var, ends in enumerate(record.bounds)
    ]

    def expression(var: int, scale: int, offset: int) -> Expression:
        return model.expression(offset) if var < 0 else variables[var] * scale + offset

    for name, operands in record.posts:
        model.post(name, *([expression(*view) for view in rows.tolist()] for rows in operands))
    for name, view in shown:
        if name not in taken:
            x = expression(*view)
            model.add(model.result_var(*model.bounds(x), (x,), name) == x)
            taken.add(name)
    if record.objective is not None:
        (model.minimize if record.sign > 0 else model.maximize)(expression(*record.objective[0].tolist()))
    return model


def _elements(output: FlatZincOutput) -> list[tuple[str, tuple[int, int, int]]]:
    """Return the names and views of the elements of an output."""
    views = [(var, scale, offset) for var, scale, offset in output.views.tolist()]
    if not output.is_array:
        return [(output.name, view) for view in views]
    ranges = (range(lo, hi + 1) for lo, hi in output.index_sets or [(1, len(views))])
    indices = list(itertools.product(*ranges))
    if len(indices) != len(views):
        indices = [(k,) for k in range(1, len(views) + 1)]
    return [(f"{output.name}[{','.join(map(str, index))}]", view) for index, view in zip(indices, views, strict=True)]
