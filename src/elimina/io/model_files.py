"""Reading and writing of models, in formats by the file's suffix (.json also by its content)."""

from __future__ import annotations

import logging
import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from elimina import arguments
from elimina._core import TextError
from elimina.errors import FormatError, InputError, source_text
from elimina.io.codecs import Codec, Subject
from elimina.io.files import load, save, suffix_of
from elimina.io.formats import FORMATS as ALL_FORMATS
from elimina.io.formats import by_suffix, format_of
from elimina.io.parsing import parse_file, token_text
from elimina.model.model import Model
from elimina.model.senses import convert_sense

if TYPE_CHECKING:
    from pathlib import Path

    from elimina.model.decision_network import DiagramParts

FORMATS = by_suffix("model")
"""Formats of models by their suffixes."""

_logger = logging.getLogger("elimina")


def _codec_of(path: Path, name: str | None, *, writing: bool = False) -> Codec[Model]:
    suffix = suffix_of(path) if name is None else name
    usable = by_suffix("model", writing=writing)
    form = usable.get(suffix)
    if form is None and name is None and not writing:
        recognised = format_of(path)
        form = recognised if recognised in FORMATS.values() else None
    if form is not None:
        codec: Codec[Model] = import_module(f"elimina.io.{form.name}").CODEC
        return codec
    if name is None and not writing and not path.name.startswith("-.") and (path.is_dir() or not path.exists()):
        load(path)  # a missing file or a folder is reported first, before the unknown suffix
    names = ", ".join(usable)
    if writing and name is None and str(path) == "-":
        raise InputError("models are not written to standard output: name a file with one of the suffixes " + names)
    label, kind = (suffix and f".{suffix}", "suffix") if name is None else (name, "format")
    problem = f"{label!r} is only read, not written" if suffix in FORMATS else f"unknown {kind} {label!r}"
    other_format = next(
        (
            other_format
            for other_format in ALL_FORMATS
            if suffix in other_format.suffixes and other_format.content != "model"
        ),
        None,
    )
    if other_format is not None:
        problem += f" of a model ({other_format.use})"
    culprit = f"{source_text(path)}: {problem}" if name is None else problem
    raise InputError(f"{culprit}; name one of {names} (a file may also end in .gz or .xz)")


def check_suffix(path: Path) -> None:
    """Raise InputError if models are not written to files with this suffix."""
    _codec_of(path, None, writing=True)


@arguments.with_checked_keywords()
def read(path: str | os.PathLike[str], *, format: str | None = None, check: bool = True) -> Model:
    """Read a model.

    Rows of a network's distributions that miss 1 only by the rounding of decimals are normalised.

    Args:
        path: The file; its suffix (that of one of ``FORMATS``, then perhaps .gz or .xz) names the format.
        format: One of ``FORMATS``, instead of the suffix; .gz and .xz are still recognised.
        check: True to reject a network with rows that miss 1 by more than 0.001; in UAI and ERGO files, which may have
            evidence multiplied in, such rows only cause a warning, and nothing is normalised. False to take all
            numbers as they are.

    Raises:
        FormatError: The file is truncated, malformed, holds a number out of range, or is a network with rows that do
            not sum to 1; it names file and line.
        UnsupportedError: The file uses a feature that elimina does not handle.
        InputError: The format is unknown or the file cannot be read.
        MemoryLimitError: A table is too large, or the process ran out of memory.

    Examples:
        >>> import elimina
        >>> model = elimina.read("examples/pump.bif")
        >>> len(model.variables), model.variables[0].name
        (12, 'Season')
    """
    path = arguments.file("path", path)
    codec = _codec_of(path, format)
    model = _parsed(path, codec)
    if check and model.children is not None:
        try:
            model.check_distributions(strict=codec.is_of_networks, in_place=True)
        except InputError as error:
            raise FormatError(str(path), None, str(error)) from None
    return model


def read_diagram(path: str | os.PathLike[str]) -> DiagramParts:
    """Read the parts of an influence diagram: see ``elimina.InfluenceDiagram.read``.

    Raises:
        InputError: The suffix is unknown, or the file cannot be read.
    """
    path = arguments.file("path", path)
    suffix = suffix_of(path)
    usable = {name: form for name, form in FORMATS.items() if form.holds_diagrams}
    if suffix not in usable:
        raise InputError(
            f"{source_text(path)}: unknown suffix {suffix and '.' + suffix!r} of an influence diagram; name one of "
            f"{', '.join(usable)} (a file may also end in .gz or .xz)"
        )
    codec: Codec[DiagramParts] = import_module(f"elimina.io.{usable[suffix].name}").DIAGRAMS
    return _parsed(path, codec)


def _parsed(path: Path, codec: Codec[Subject]) -> Subject:
    """Return the content of a file."""

    def whole(text: Any) -> Subject:
        content = codec.parse(text)
        if not text.at_end():
            raise TextError(f"expected the end of the file, found {token_text(text.peek())}")
        return content

    def opened(data: bytes) -> Any:
        return codec.open_text(_in_utf8(path, data) if codec.is_often_latin1 else data)

    return parse_file(path, opened, whole)


def _in_utf8(path: Path, data: bytes) -> bytes:
    """Return text in UTF-8; invalid UTF-8 is read as Latin-1, with a warning."""
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


@arguments.with_checked_keywords()
def write(model: Model, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Write a model; the file appears only once it is complete.

    If the format does not have the model's sense, the model is first converted by ``convert_sense`` with its defaults,
    which may round. A warning is logged about content that the format cannot hold: names and states in UAI, ERGO and
    WCSP files, the types of integer and Boolean states in BIF, XMLBIF and CFN files, an upper bound beside
    probabilities.

    Args:
        model: Model to write.
        path: The file; its suffix names the format and the compression, as in ``read``.
        format: One of ``FORMATS``, instead of the suffix.

    Raises:
        InputError: The format cannot hold the model, is unknown, or the file cannot be written.

    Examples:
        >>> import elimina
        >>> model = elimina.read("examples/radio.wcsp")
        >>> elimina.write(model, "radio.cfn")
        >>> len(elimina.read("radio.cfn").variables)
        30
    """
    if not isinstance(model, Model):
        raise arguments.wrong_type("model", model, "a Model")
    path = arguments.file("path", path)
    codec = _codec_of(path, format, writing=True)
    written = model
    if model.sense not in codec.senses:
        written = convert_sense(model, codec.senses[0])
    assert codec.render is not None
    save(path, codec.render(written))
    _report_losses(model, path, codec)


def _report_losses(model: Model, path: Path, codec: Codec[Model]) -> None:
    """Warn about content that a file cannot hold."""
    is_named = (v.states is not None or v.name != f"x{i}" for i, v in enumerate(model.variables))
    if "names" not in codec.holds and any(is_named):
        _logger.warning("%s lacks the names of variables and states: the format has no place for them", path)
    if "names" in codec.holds:
        _report_states(model, path, codec)
    if model.upper_bound is not None and "upper bound" not in codec.holds:
        _logger.warning(
            "%s lacks the upper bound %s: assignments that cost as much or more are improbable there, not impossible",
            path,
            model.upper_bound,
        )


def _report_states(model: Model, path: Path, codec: Codec[Model]) -> None:
    """Warn about integer and Boolean states, which become text in formats with names of states."""
    for v in model.variables:
        # A CFN file may hold only the number of a variable's states, so unnamed states do not become text.
        states = v.all_states if codec.is_of_networks else v.states or ()
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
