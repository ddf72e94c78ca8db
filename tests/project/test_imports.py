"""No two modules import each other in a circle, and imports inside functions may only become fewer."""

from __future__ import annotations

from collections import Counter

from tests.imports import circles, imports

INSIDE_FUNCTIONS = 65
"""Imports of the package's own modules inside functions."""


def test_no_modules_import_each_other_in_a_circle():
    assert circles() == []


def test_imports_inside_functions_become_fewer():
    hidden = Counter(one.importer for one in set(imports()) if one.is_inside_function)
    assert sum(hidden.values()) <= INSIDE_FUNCTIONS, hidden.most_common()
