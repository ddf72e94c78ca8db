"""Subjects of reports: models of all kinds, by their files."""

from __future__ import annotations

from pathlib import Path

from elimina.cp.model import Model as ConstraintModel
from elimina.cp.reading import read as read_constraints
from elimina.cp.tour_problem import TourProblem
from elimina.cp.tsplib import read_tsp
from elimina.dcop import read as read_distributed
from elimina.dcop.problem import Problem as DistributedProblem
from elimina.io.formats import format_of
from elimina.io.model_files import read
from elimina.model.model import Model

Subject = Model | DistributedProblem | ConstraintModel | TourProblem


def read_subject(path: str, *, check: bool = True) -> Subject:
    """Read a model, a distributed problem, a constraint model or a travelling salesman problem.

    Args:
        path: Path of the file.
        check: See ``elimina.read``.

    Raises:
        InputError: The file cannot be read.
    """
    form = format_of(Path(path))
    content = "model" if form is None else form.content
    if content == "tour":
        return read_tsp(path)
    if content == "constraints":
        return read_constraints(path)
    if content == "distributed problem":
        return read_distributed(path)
    return read(path, check=check)
