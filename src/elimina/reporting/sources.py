"""Reading what a report is about, by the file's suffix."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from elimina.io import read
from elimina.io.files import suffix_of
from elimina.model import Model

if TYPE_CHECKING:
    from elimina.cp.model import Model as ConstraintModel
    from elimina.cp.tsplib import Problem as TourProblem
    from elimina.dcop.problem import Problem as DistributedProblem


def read_subject(path: str, *, check: bool = True) -> Model | DistributedProblem | ConstraintModel | TourProblem:
    """Read a model, a distributed problem, a constraint model or a travelling salesman problem.

    Args:
        path: The file.
        check: See ``elimina.read``.

    Raises:
        InputError: It cannot be read.
    """
    suffix = suffix_of(Path(path))
    if suffix == "tsp":
        from elimina.cp.tsplib import read_tsp

        return read_tsp(path)
    if suffix in ("fzn", "opb", "xml"):
        from elimina.cp.files import is_of_constraints
        from elimina.cp.files import read as read_constraints

        if is_of_constraints(path):
            return read_constraints(path)
    if suffix in ("yaml", "yml", "json", "xml"):
        from elimina import dcop
        from elimina.dcop.formats import is_distributed

        if is_distributed(path):
            return dcop.read(path)
    return read(path, check=check)
