"""Modules that import each other in a circle, and imports inside functions: both may only become fewer."""

from __future__ import annotations

from collections import Counter

from tests.imports import circles, imports

CIRCLES: list[str] = []
"""Circles of modules, each after its package.

If you untie one, remove it from the list, or shorten it.
"""

INSIDE_FUNCTIONS = 63
"""Imports of the package's own modules inside functions."""


def test_circles_of_modules_are_known_ones():
    recorded = []
    for circle in CIRCLES:
        package, _, names = circle.partition(": ")
        recorded.append(sorted(f"{package}.{name}" for name in names.split()))
    assert circles() == sorted(recorded, key=lambda group: (-len(group), group))


def test_imports_inside_functions_become_fewer():
    hidden = Counter(one.importer for one in set(imports()) if one.is_inside_function)
    assert sum(hidden.values()) <= INSIDE_FUNCTIONS, hidden.most_common()
