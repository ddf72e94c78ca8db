"""Reading and writing models in formats that the file's suffix chooses, never its content."""

from __future__ import annotations

import logging
import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elimina import arguments
from elimina._core import TextError
from elimina.errors import FormatError, InputError
from elimina.io.files import DISTRIBUTED_HINT, Format, load, parsed, save, shown, suffix_of
from elimina.model import Model
from elimina.states import State, named

if TYPE_CHECKING:
    from elimina.io.convert import convert_sense

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
    "wcnf": "boolean.CNF",
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


_logger = logging.getLogger("elimina")


def __getattr__(name: str) -> object:
    if name == "convert_sense":
        from elimina.io.convert import convert_sense

        return convert_sense
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _format_of(path: Path, name: str | None, *, writing: bool = False) -> Format:
    suffix = suffix_of(path) if name is None else name
    usable = [known for known in FORMATS if not (writing and known in READ_ONLY)]
    if suffix not in usable:
        if name is None and not writing and not path.name.startswith("-.") and not path.is_file():
            load(path)  # a missing file or a folder is the first thing to mend
        known = ", ".join(usable)
        given, kind = (suffix and f".{suffix}", "suffix") if name is None else (name, "format")
        problem = f"{given!r} is only read, not written" if suffix in FORMATS else f"unknown {kind} {given!r}"
        if suffix == "fzn":
            problem += " of a model (FlatZinc is for elimina.cp.read, fzn-elimina and 'elimina solve')"
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
    """
    path = _path(path)
    handler = _format_of(path, format)

    def whole(text: Any) -> Model:
        model = handler.parse(text)
        if not text.at_end():
            raise TextError(f"expected the end of the file, found {shown(text.peek())}")
        return model

    model = parsed(path, handler.open_text, whole)
    if check and model.children is not None:
        try:
            model.check_distributions(strict=handler.is_of_networks, in_place=True)
        except InputError as error:
            raise FormatError(str(path), None, str(error)) from None
    return model


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
    taken = "a Model, or the path of a file that elimina.read takes (Model.from_pgmpy and from_pyagrum make Models)"
    raise arguments.wrong_type("model", model, taken)


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

    observed = parsed(Path(path), evidence.open_text, lambda text: evidence.parse(text, model))
    return named([model.variables[v] for v in observed], observed.values())


def write(model: Model, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Write a model; the file appears only once it is complete.

    If the format does not have the model's sense, the model is first converted by ``convert_sense`` with its defaults,
    which may round. What the format cannot hold (names and states in UAI, ERGO and WCSP files, an upper bound beside
    probabilities) is lost, and a warning is logged.

    Args:
        model: Model to write.
        path: The file; its suffix names the format and the compression, as in ``read``.
        format: One of ``FORMATS``, instead of the suffix.

    Raises:
        InputError: The format cannot hold the model, is unknown, or the file cannot be written.
    """
    if not isinstance(model, Model):
        raise arguments.wrong_type("model", model, "a Model")
    path = _path(path)
    handler = _format_of(path, format, writing=True)
    written = model
    if model.sense not in handler.senses:
        from elimina.io.convert import convert_sense

        written = convert_sense(model, handler.senses[0])
    assert handler.render is not None
    save(path, handler.render(written))
    _report_losses(model, path, handler)


def _report_losses(model: Model, path: Path, handler: Format) -> None:
    """Warn about content that a file cannot hold."""
    own = (v.states is not None or v.name != f"x{i}" for i, v in enumerate(model.variables))
    if not handler.holds_names and any(own):
        _logger.warning("%s lacks the names of variables and states: the format has no place for them", path)
    if model.upper_bound is not None and "probability" in handler.senses:
        _logger.warning(
            "%s lacks the upper bound %s: assignments that cost as much or more are improbable there, not impossible",
            path,
            model.upper_bound,
        )


def _path(path: str | os.PathLike[str]) -> Path:
    known = arguments.path("path", path)
    if known is None:
        raise arguments.wrong_type("path", path, "the path of a file")
    return Path(known)
