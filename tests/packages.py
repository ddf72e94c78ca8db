"""Packages that tests compare with, where they are installed."""

from __future__ import annotations

import warnings
from importlib import import_module
from types import ModuleType

import pytest

_LOADED_LATER = {
    "pgmpy": ["pgmpy.models", "pgmpy.factors.discrete"],
    "pyagrum": ["pyagrum.markov_random_field.mrfcpp", "pyagrum.influence_diagram", "pyagrum.credal_net"],
}
"""Modules that a package loads when they are first used."""


def installed(name: str) -> ModuleType:
    """Return a package or one of its modules; skip the test if it is not installed.

    With warnings as errors, pyAgrum's extensions crash the process that loads them, because Python warns about SWIG.
    So they are all loaded here, without warnings.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module: ModuleType = pytest.importorskip(name)
        for later in _LOADED_LATER.get(name.partition(".")[0], []):
            import_module(later)
    return module
