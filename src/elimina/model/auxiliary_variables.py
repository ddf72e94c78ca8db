"""Auxiliary variables, which conversions of a model add. Files do not contain them, and answers do not show them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from elimina.model.variable import Variable

_NAME = re.compile(r"_s?[0-9]+")


def auxiliary_variables(sizes: Sequence[int]) -> list[Variable]:
    """Return new variables with names that no file uses: _s0, _s1, ..."""
    return [Variable(f"_s{i}", size) for i, size in enumerate(sizes)]


def is_auxiliary(name: str) -> bool:
    """Return whether ``auxiliary_variables`` or the conversion of a constraint model makes variables of this name."""
    return _NAME.fullmatch(name) is not None
