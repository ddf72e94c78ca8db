"""Reading, writing and converting models, in formats that the file's suffix chooses (.json also by its content)."""

from __future__ import annotations

import functools
import logging
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from elimina import arguments
from elimina._core import TextError
from elimina.errors import FormatError, InputError
from elimina.io.files import DISTRIBUTED_HINT, Format, holds_cfn, load, parsed, save, shown, suffix_of
from elimina.model.cells import UNOBSERVED, index_of_cell
from elimina.model.model import Model
from elimina.model.states import Evidence, State, StateIndex
from elimina.model.table import FORBIDDEN, LARGEST_NUMBER, Sense, Table, cell_numbers
from elimina.model.variable import Variable, named

if TYPE_CHECKING:
    from fractions import Fraction
    from pathlib import Path

__all__ = ["FORMATS", "convert_sense", "read", "read_evidence", "write"]

FORMATS = {
    "uai": "uai.UAI",
    "erg": "uai.ERGO",
    "wcsp": "wcsp.WCSP",
    "cfn": "cfn.CFN",
    "bif": "bif.BIF",
    "xmlbif": "bif.XMLBIF",
    "bifxml": "bif.XMLBIF",
    "xml": "bif.XMLBIF",
    "net": "net.NET",
    "xdsl": "bif.XDSL",
    "cnf": "boolean.CNF",
    "wcnf": "boolean.WCNF",
    "qpbo": "boolean.QPBO",
    "lg": "uai.LG",
}
"""Suffix of each format -> the module of this package that handles it, and its ``Format`` there."""
READ_ONLY = ("net", "xdsl", "cnf", "wcnf", "qpbo", "lg")
"""Formats that are not written."""

DISTRIBUTED = ("yaml", "yml", "json")
"""Suffixes of distributed problems, which ``elimina.dcop`` reads and writes."""


ModelLike = Model | str | os.PathLike[str]
"""A model, or the path of a file that holds one."""


class Labelled(Protocol):
    """A row with labels, such as a pandas Series."""

    @property
    def ndim(self) -> int:
        """Number of axes, 1."""

    def items(self) -> Iterable[tuple[Any, Any]]:
        """Return pairs of a label and its cell."""


EvidenceLike = Evidence | Labelled | str | os.PathLike[str]
"""Evidence, a row of a frame (missing cells are not observed), or the path of a file of evidence."""


_logger = logging.getLogger("elimina")


_OTHERS = {
    "fzn": "FlatZinc is for elimina.cp.read, fzn-elimina and 'elimina solve'",
    "opb": "pseudo-Boolean problems are for elimina.cp.read, 'elimina cp' and 'elimina solve'",
    "mzn": "MiniZinc is for 'minizinc --solver elimina', after 'elimina install-minizinc'",
    "tsp": "tours are for elimina.cp.tsplib.read_tsp and 'elimina tsp'",
}
"""Uses of files that hold no graphical model, by suffix."""


def _format_of(path: Path, name: str | None, *, writing: bool = False) -> Format:
    suffix = suffix_of(path) if name is None else name
    if suffix == "json" and name is None and not writing and holds_cfn(path):
        suffix = "cfn"
    usable = [known for known in FORMATS if not (writing and known in READ_ONLY)]
    if suffix not in usable:
        if name is None and not writing and not path.name.startswith("-.") and (path.is_dir() or not path.exists()):
            load(path)  # a missing file or a folder is the first thing to mend
        known = ", ".join(usable)
        if writing and name is None and str(path) == "-":
            raise InputError("models are not written to standard output: name a file with one of the suffixes " + known)
        given, kind = (suffix and f".{suffix}", "suffix") if name is None else (name, "format")
        problem = f"{given!r} is only read, not written" if suffix in FORMATS else f"unknown {kind} {given!r}"
        if suffix in _OTHERS:
            problem += f" of a model ({_OTHERS[suffix]})"
        if suffix == "evid":
            problem += f" of a model (a file of evidence goes beside one: --evidence {path.name}, or read_evidence)"
        if suffix in DISTRIBUTED:
            problem += f" of a model ({DISTRIBUTED_HINT})"
        culprit = f"{path}: {problem}" if name is None else problem
        raise InputError(f"{culprit}; name one of {known} (a file may also end in .gz or .xz)")
    module, constant = FORMATS[suffix].split(".")
    found: Format = getattr(import_module(f"elimina.io.{module}"), constant)
    return found


def read(path: str | os.PathLike[str], *, format: str | None = None, check: bool = True) -> Model:
    """Read a model.

    The rows of a network's distributions are normalised where they miss 1 by the rounding of decimals.

    Args:
        path: The file; its suffix (that of one of ``FORMATS``, then perhaps .gz or .xz) names the format.
        format: One of ``FORMATS``, instead of the suffix; .gz and .xz are still recognised.
        check: True if rows of a network that miss 1 by more than 0.001 are an error (in UAI and ERGO files, which may
            hold evidence multiplied in, a warning, and nothing is normalised); False: take all numbers as they are.

    Raises:
        FormatError: The file is truncated, malformed, holds a number out of range, or is a network with rows that do
            not sum to 1; it names file and line.
        UnsupportedError: The file uses a feature that elimina does not handle.
        InputError: The format is unknown or the file cannot be read.
        MemoryLimitError: A table is too large, or the process ran out of memory.
    """
    path = arguments.file("path", path)
    handler = _format_of(path, format)

    def whole(text: Any) -> Model:
        model = handler.parse(text)
        if not text.at_end():
            raise TextError(f"expected the end of the file, found {shown(text.peek())}")
        return model

    def opened(data: bytes) -> Any:
        return handler.open_text(_in_utf8(path, data) if handler.is_often_latin1 else data)

    model = parsed(path, opened, whole)
    if check and model.children is not None:
        try:
            model.check_distributions(strict=handler.is_of_networks, in_place=True)
        except InputError as error:
            raise FormatError(str(path), None, str(error)) from None
    return model


def _in_utf8(path: Path, data: bytes) -> bytes:
    """Return text in UTF-8; what is not valid UTF-8 is taken as Latin-1, with a warning."""
    try:
        if not data.isascii():
            data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        _logger.warning(
            "%s:%d: the text is not UTF-8, so it is read as Latin-1; convert the file if names look wrong", path, line
        )
        return data.decode("latin-1").encode()
    return data


def as_model(model: ModelLike) -> Model:
    """Return a model as it is, or read the one in a file.

    Raises:
        TypeError: It is neither a model nor a path.
        InputError: The file cannot be read (see ``read``).
    """
    if isinstance(model, Model):
        return model
    if isinstance(model, str | os.PathLike):
        return read(model)
    if type(model).__module__.startswith("elimina.cp."):
        raise TypeError(
            "model is a constraint model; solve it with its own method solve, or as cost tables: "
            "elimina.solve(model.to_model())"
        )
    if type(model).__module__.startswith("elimina.dcop."):
        raise TypeError(
            "model is a distributed problem; solve it by its agents, elimina.dcop.solve(problem), or as one model: "
            "elimina.solve(problem.model)"
        )
    taken = (
        "a Model, or the path of a file that elimina.read takes (elimina.from_pgmpy and elimina.from_pyagrum make "
        "Models)"
    )
    raise arguments.wrong_type("model", model, taken)


def as_evidence(evidence: EvidenceLike | None, model: Model, argument: str = "evidence") -> Evidence:
    """Return evidence as a mapping: what a file holds, or a labelled row, whose missing cells become None.

    Args:
        evidence: Evidence in any form.
        model: Model of the evidence.
        argument: Name of ``evidence`` in errors.

    Raises:
        TypeError: It is something else.
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
        return read_evidence(evidence, model)
    if not hasattr(evidence, "items") or getattr(evidence, "ndim", None) != 1:
        taken = "a mapping from variables to states, such as {'A': 'yes'}, a pandas Series, or the path of a file"
        raise arguments.wrong_type(argument, evidence, taken)
    found: dict[Any, Any] = {}
    for name, cell in evidence.items():
        if name in found:
            raise InputError(f"the evidence names {name!r} twice: give each variable one state")
        found[name] = _observed(model.variables[model.index(name)], cell)
    return found


def _observed(variable: Variable, cell: Any) -> Any:
    """Return what a cell says about a variable; None for an empty one."""
    if isinstance(cell, StateIndex | Mapping) or np.ndim(cell):
        return cell
    index = index_of_cell(variable, cell)
    return None if index == UNOBSERVED else variable.state(index)


def read_evidence(path: str | os.PathLike[str], model: Model) -> dict[str, State]:
    """Read the observed states from a file in one of the dialects of UAI evidence, which hold indices.

    Args:
        path: The file, whatever its suffix; decompressed if it ends in .gz or .xz.
        model: Model of the evidence.

    Returns:
        Variable name -> observed state, as ``elimina.solve`` takes it.

    Raises:
        FormatError: The file fits no dialect (see ``elimina.io.evidence``) or names a variable or value that
            the model does not have.
        InputError: The file cannot be read.
    """
    from elimina.io import evidence

    observed = parsed(arguments.file("path", path), evidence.open_text, lambda text: evidence.parse(text, model))
    return named([model.variables[v] for v in observed], observed.values())


def write(model: Model, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Write a model; the file appears only once it is complete.

    If the format does not have the model's sense, the model is first converted by ``convert_sense`` with its defaults,
    which may round. What the format cannot hold (names and states in UAI, ERGO and WCSP files, the types of integer and
    Boolean states in BIF, XMLBIF and CFN files, an upper bound beside probabilities) is lost, and a warning is logged.

    Args:
        model: Model to write.
        path: The file; its suffix names the format and the compression, as in ``read``.
        format: One of ``FORMATS``, instead of the suffix.

    Raises:
        InputError: The format cannot hold the model, is unknown, or the file cannot be written.
    """
    if not isinstance(model, Model):
        raise arguments.wrong_type("model", model, "a Model")
    path = arguments.file("path", path)
    handler = _format_of(path, format, writing=True)
    written = model
    if model.sense not in handler.senses:
        written = convert_sense(model, handler.senses[0])
    assert handler.render is not None
    save(path, handler.render(written))
    _report_losses(model, path, handler)


def _report_losses(model: Model, path: Path, handler: Format) -> None:
    """Warn about content that a file cannot hold."""
    own = (v.states is not None or v.name != f"x{i}" for i, v in enumerate(model.variables))
    if not handler.holds_names and any(own):
        _logger.warning("%s lacks the names of variables and states: the format has no place for them", path)
    if handler.holds_names:
        _report_states(model, path, handler)
    if model.upper_bound is not None and "probability" in handler.senses:
        _logger.warning(
            "%s lacks the upper bound %s: assignments that cost as much or more are improbable there, not impossible",
            path,
            model.upper_bound,
        )


def _report_states(model: Model, path: Path, handler: Format) -> None:
    """Warn about integer and Boolean states, which formats with names of states hold as text."""
    for v in model.variables:
        # A format of costs has numbers of states, too.
        states = v.all_states if handler.is_of_networks else v.states or ()
        state = next((state for state in states if not isinstance(state, str)), None)
        if state is not None:
            _logger.warning(
                "%s holds states as text: the state %r of variable %r is read back as %r",
                path,
                state,
                v.name,
                str(state),
            )
            return


_Values = NDArray[Any]
_MOST_DECIMALS = 17
_LARGEST_POWER = 300
"""Decimals that NumPy rounds to: it multiplies by a power of 10 that is a float."""


def convert_sense(model: Model, sense: Sense, *, decimals: int | None = 7, scale: float = 1.0) -> Model:
    """Return a model of another sense with the same best assignment.

    - ``min-cost`` <-> ``max-cost``: all costs change sign. Nothing is lost.
    - ``probability`` -> costs: a probability p becomes the cost -ln(p) (ln(p) if maximised), and 0 becomes forbidden.
      Lossy: costs are rounded to ``decimals`` decimals, so m of them together are off by up to m * 10^-decimals / 2.
    - costs -> ``probability``: a cost c becomes exp(-scale * c) and forbidden becomes 0, after each factor's smallest
      cost has been moved to the model's constant. Lossy: exp rounds in the 16th digit, and the upper bound is dropped,
      so assignments that it excluded, though no entry forbids them, become merely improbable.

    Args:
        model: Model to convert. It is returned itself if it has that sense already.
        sense: Sense of the new model.
        decimals: Number of decimals of costs made from probabilities, from 0 to 300; None: not rounded.
        scale: Factor by which costs are multiplied before they become probabilities, above 0.

    Raises:
        TypeError: An argument has the wrong type.
        InputError: A finite cost would become the probability 0 (then give a smaller ``scale``), or an argument makes
            no sense.
    """
    if not isinstance(model, Model):
        raise arguments.wrong_type("model", model, "a Model")
    if decimals is not None:
        decimals = arguments.integer("decimals", decimals, 0, _LARGEST_POWER)
    scale = arguments.number("scale", scale)
    if not 0 < scale <= sys.float_info.max:
        raise InputError(f"scale is {arguments.shown(scale)}; it must be positive and finite")
    if sense == model.sense:
        return model
    if "probability" not in (sense, model.sense):
        bound = None if model.upper_bound is None else -model.upper_bound
        return _rebuilt(model, sense, np.negative, -model.constant, bound)
    if model.sense == "probability":
        sign = -1.0 if sense == "min-cost" else 1.0
        return _rebuilt(model, sense, lambda p: _costs(p, sign, decimals), sign * model.constant, None)
    return _to_probabilities(model if model.sense == "min-cost" else convert_sense(model, "min-cost"), scale)


def _rebuilt(
    model: Model, sense: Sense, change: Callable[[_Values], _Values], constant: float, bound: float | None
) -> Model:
    factors = [f.mapped(change) for f in model.factors]
    return Model(model.variables, factors, sense=sense, constant=constant, upper_bound=bound, name=model.name)


def _likelihoods(scale: float, lowest: float, costs: _Values) -> _Values:
    likelihoods: _Values = np.exp(-scale * (costs - lowest))
    return likelihoods


def _costs(probabilities: _Values, sign: float, decimals: int | None) -> _Values:
    with np.errstate(divide="ignore"):
        costs: _Values = sign * np.log(probabilities.astype(np.float64))
    return (costs if decimals is None else np.round(costs, decimals)) + 0.0


def _to_probabilities(model: Model, scale: float) -> Model:
    constant = -scale * float(model.constant)
    factors = []
    for i, factor in enumerate(model.factors):
        costs = factor.mapped(_with_infinity)
        known = np.append(costs.values, [] if costs.default is None else [costs.default])
        finite = known[np.isfinite(known)]
        lowest, highest = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
        if np.exp(-scale * (highest - lowest)) == 0:
            raise InputError(
                f"factor {i} has costs from {lowest:g} to {highest:g}, and exp(-{scale:g} * {highest - lowest:g}) "
                f"is 0 in floating point; "
                f"convert it by elimina.io.convert_sense with a scale of at most {700 / (highest - lowest):.3g}"
            )
        factors.append(costs.mapped(partial(_likelihoods, scale, lowest)))
        constant -= scale * lowest
    return Model(model.variables, factors, sense="probability", constant=constant, name=model.name)


def _with_infinity(costs: _Values) -> _Values:
    """Return costs as doubles, with infinity for forbidden ones."""
    if costs.dtype.kind == "f":
        return costs.astype(np.float64)
    return np.where(costs == FORBIDDEN, np.inf, costs.astype(np.float64))


def decimals_of(values: _Values) -> int | None:
    """Return the smallest number of decimals that writes all finite values exactly; None if it is above 17."""
    finite = values[np.isfinite(values)]
    for decimals in range(_MOST_DECIMALS + 1):
        power = 10.0**decimals
        with np.errstate(over="ignore"):
            exact = np.rint(finite * power) / power == finite
        if exact.all():
            return decimals
    return None


def integer_costs(model: Model) -> tuple[Model, int]:
    """Multiply the costs of a ``min-cost`` model by the smallest power of ten that makes all of them 64-bit integers.

    Returns:
        The model with integer costs, and the power's exponent (0 if it had them already).

    Raises:
        InputError: There is no such power.
    """
    if model.is_integer:
        return model, 0
    known = [np.array([model.constant], dtype=np.float64)]
    known += [_with_infinity(f.values).reshape(-1) for f in model.factors]
    known += [_with_infinity(np.array([f.default])) for f in model.factors if f.default is not None]
    values = np.concatenate(known)
    decimals = decimals_of(values)
    if decimals is None or np.abs(values[np.isfinite(values)]).max(initial=0) * 10.0**decimals >= 2**53:
        raise InputError("the costs have too many digits to become integers; round them first, or use .cfn")

    def scaled(costs: _Values) -> _Values:
        forbidden = np.isinf(costs) if costs.dtype.kind == "f" else costs == FORBIDDEN
        finite = np.where(forbidden, 0, costs).astype(np.float64)
        return np.where(forbidden, FORBIDDEN, np.rint(finite * 10.0**decimals).astype(np.int64))

    bound = None if model.upper_bound is None else math.ceil(_exact(model.upper_bound) * 10**decimals)
    constant = round(model.constant * 10**decimals)
    return _rebuilt(model, model.sense, scaled, constant, bound), decimals


def _exact(number: float) -> Fraction:
    """Return the number that was meant: 0.07 has two decimals, though its double has not."""
    from fractions import Fraction  # Loading it takes 3 ms, and few calls need it.

    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)


DENSE_CELLS = 4096
DENSE_RATIO = 4
_MOST_AXES = 32
"""Axes that an array has at most in NumPy 1."""


def from_tuples(
    scope: Sequence[int], sizes: Sequence[int], default: float, rows: NDArray[np.int32], costs: NDArray[Any]
) -> Table:
    """Build a dense table, or a sparse one if it has over 32 axes, or over 4096 cells and four times as many as tuples.

    Args:
        scope: Variables of the table.
        sizes: Domain sizes of these variables.
        default: The cost of what is not listed.
        rows: The listed tuples, of shape (n, len(scope)), within the domains; one may be listed twice, at one cost.
        costs: Their costs, of shape (n,).

    Raises:
        TextError: A tuple is listed with two costs.
    """
    if len(sizes) > _MOST_AXES or math.prod(sizes) > max(DENSE_CELLS, DENSE_RATIO * len(rows)):
        order, is_first = _sorted_tuples(rows, sizes)
        first = order[is_first]
        if (costs[first][np.cumsum(is_first) - 1] != costs[order]).any():
            raise TextError("a tuple of this function is listed with two costs")
        return Table(scope, costs[first], sizes=sizes, rows=rows[first], default=default)
    values = np.empty(math.prod(sizes), dtype=costs.dtype)
    values.fill(default)
    if len(rows):
        # Most files have small tables, and many of them.
        cells = rows.dot(_strides(tuple(sizes)))
        values[cells] = costs
        if (values[cells] != costs).any():
            raise TextError("a tuple of this function is listed with two costs")
    return Table(scope, values.reshape(sizes))


@functools.lru_cache(maxsize=1024)
def _strides(sizes: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the number of cells from each state of a variable to its next one."""
    return np.cumprod([1, *sizes[:0:-1]])[: len(sizes)][::-1].astype(np.int64)


def _sorted_tuples(rows: NDArray[np.int32], sizes: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the sorted order of tuples (last variable fastest), and whether each differs from its predecessor."""
    if math.prod(sizes) <= LARGEST_NUMBER:
        numbers = cell_numbers(rows, sizes, range(len(sizes)))
        order = np.argsort(numbers, kind="stable")
        differs = np.diff(numbers[order]) != 0
    else:
        order = np.lexsort(rows.T[::-1])
        differs = (np.diff(rows[order], axis=0) != 0).any(axis=1)
    return order, np.concatenate([np.ones(min(1, len(order)), dtype=bool), differs])
