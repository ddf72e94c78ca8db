"""Packages that only some calls need: imported when called, and an error that says how to get them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Literal, get_args

from elimina import arguments
from elimina.errors import InputError

_PACKAGES = {"yaml": "PyYAML", "sklearn": "scikit-learn"}
"""Packages whose modules have another name."""


def require(module: str, extra: str, purpose: str) -> Any:
    """Import a module of an optional package.

    Args:
        module: The module's full name; its first part is the package's name.
        extra: The extra of elimina that installs the package.
        purpose: Purpose of the package, as the error states it.

    Raises:
        InputError: The package is not installed.
    """
    package = module.split(".")[0]
    try:
        import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        hint = f"pip install 'elimina[{extra}]'"
        raise InputError(f"{purpose} needs {_PACKAGES.get(package, package)}, which is not installed: {hint}") from None
    return import_module(module)


Library = Literal["pandas", "polars", "pyarrow"]
LIBRARIES: tuple[Library, ...] = get_args(Library)


def frame_of(columns: Mapping[str, Any], library: Library) -> Any:
    """Return columns as a data frame.

    Args:
        columns: Name -> sequence or array of values, all of one length.
        library: ``pandas``, ``polars`` or ``pyarrow`` (a ``Table``).

    Raises:
        TypeError: ``library`` is not text.
        InputError: It is another one, or not installed.
    """
    arguments.choice("library", library, LIBRARIES)
    module = require(library, "polars" if library == "polars" else "frames", "to_frame")
    if library == "pyarrow":
        return module.table(dict(columns))
    return module.DataFrame(dict(columns))
