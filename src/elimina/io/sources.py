"""Models and evidence from objects or files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, Protocol

from elimina import arguments
from elimina.errors import InputError
from elimina.model.cells import UNOBSERVED, index_of_cell
from elimina.model.model import Model
from elimina.model.states import Evidence, StateIndex
from elimina.model.variable import Variable
from elimina.system import loaded_on_use

# Models and evidence in memory need no readers of files.
_read: Callable[[str | os.PathLike[str]], Model] = loaded_on_use("elimina.io.model_files", "read")
_read_evidence: Callable[[str | os.PathLike[str], Model], Evidence] = loaded_on_use(
    "elimina.io.evidence_files", "read_evidence"
)


class OtherNetwork(Protocol):
    """A network of pgmpy or pyAgrum."""

    def nodes(self) -> Any:
        """Return the nodes of the network."""


ModelLike = Model | OtherNetwork | str | os.PathLike[str]
"""A model, a network of pgmpy or pyAgrum, or the path of a file that holds a model."""

CONVERTERS = {
    "pgmpy": ("elimina.io.pgmpy_networks", "from_pgmpy"),
    "pyagrum": ("elimina.io.pyagrum_networks", "from_pyagrum"),
}
"""Module and function that convert the networks of another package, imported for the first such network."""


class LabelledRow(Protocol):
    """A row with labels, such as a pandas Series."""

    @property
    def ndim(self) -> int:
        """Number of axes, 1."""

    def items(self) -> Iterable[tuple[Any, Any]]:
        """Return pairs of a label and its cell."""


EvidenceLike = Evidence | LabelledRow | str | os.PathLike[str]
"""Evidence, a row of a frame (missing cells are not observed), or the path of a file of evidence."""


_ADVICE = {
    "elimina.cp.": "a constraint model; solve it with its own method solve, or as cost tables: "
    "elimina.solve(model.to_model())",
    "elimina.dcop.": "a distributed problem; solve it by its agents, elimina.dcop.solve(problem), or as one model: "
    "elimina.solve(problem.model)",
    "elimina.decisions.InfluenceDiagram": "an influence diagram; solve it with its own method solve",
    "elimina.methods.dynamic_model.DynamicModel": "a model over time; call its methods, such as filter and "
    "smooth, or unroll it: model.unroll(10) is the network of ten slices",
    "elimina.methods.junction_tree.JunctionTree": "a junction tree; call its methods, or pass its model: tree.model",
    "elimina.methods.parameter_learning.Fit": "a fit; its network is fit.model",
}
"""Prefix of the full names of classes -> description of their objects, and a way to solve them or to get a model."""


def as_model(model: ModelLike, argument: str = "model", others: str = "") -> Model:
    """Return a model, converted from another package or read from a file if necessary.

    Raises:
        TypeError: ``model`` is something else.
        InputError: The file cannot be read (see ``read``), or the network cannot be converted.
    """
    if isinstance(model, Model):
        return model
    if isinstance(model, str | os.PathLike):
        return _read(model)
    full_name = f"{type(model).__module__}.{type(model).__name__}"
    prefix = next((prefix for prefix in _ADVICE if full_name.startswith(prefix)), None)
    if prefix is not None:
        raise TypeError(f"{argument} is {_ADVICE[prefix]}")
    # A user's class may derive from a class of these packages, so base classes are searched, too.
    for package in (base.__module__.partition(".")[0] for base in type(model).__mro__):
        if package in CONVERTERS:
            module, function = CONVERTERS[package]
            convert: Callable[[Any], Model] = getattr(import_module(module), function)
            return convert(model)
    taken = f"a Model, {others}a network of pgmpy or pyAgrum, or the path of a file that elimina.read takes"
    raise arguments.wrong_type(argument, model, taken)


def as_evidence(evidence: EvidenceLike | None, model: Model, argument: str = "evidence") -> Evidence:
    """Return evidence as a mapping, empty for None, or read from a file or a labelled row; missing cells become None.

    Args:
        evidence: Evidence in any form.
        model: Model of the evidence.
        argument: Name of ``evidence`` in errors.

    Raises:
        TypeError: ``evidence`` is something else.
        InputError: A file cannot be read or does not fit the model, a row names a variable twice, or a cell holds no
            state.
    """
    if evidence is None:
        return {}
    if isinstance(evidence, Mapping):
        return evidence
    if isinstance(evidence, str) and "=" in evidence and not os.path.exists(evidence):
        raise InputError(
            f"{argument} is {arguments.shown(evidence)}, which is not a file: write {{'A': 'yes'}}, or read the text "
            "by elimina.io.evidence.parse_assignments"
        )
    if isinstance(evidence, str | os.PathLike):
        return _read_evidence(evidence, model)
    if not hasattr(evidence, "items") or getattr(evidence, "ndim", None) != 1:
        accepted = "a mapping from variables to states, such as {'A': 'yes'}, a pandas Series, or the path of a file"
        raise arguments.wrong_type(argument, evidence, accepted)
    states: dict[Any, Any] = {}
    for name, cell in evidence.items():
        if name in states:
            raise InputError(f"the evidence names {name!r} twice: give each variable one state")
        states[name] = _cell_state(model.variables[model.index(name)], cell)
    return states


def _cell_state(variable: Variable, cell: Any) -> Any:
    """Return a cell's evidence; None for a missing cell."""
    if isinstance(cell, StateIndex | Mapping) or arguments.axis_count(cell) != 0:
        return cell
    index = index_of_cell(variable, cell)
    return None if index == UNOBSERVED else variable.state(index)
