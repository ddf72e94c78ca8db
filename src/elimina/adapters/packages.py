"""Other packages, which are imported only when an adapter needs them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from elimina.errors import InputError


def import_package(package: str, module: str) -> Any:
    """Import a module of another package.

    Raises:
        InputError: The package is not installed, or cannot be imported.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(f"this needs the package {package} ({error}); install it: pip install {package}") from error
