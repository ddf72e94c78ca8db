"""Imports between the modules of the package: all of them, those in functions, for types and by tables included."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import networkx

SOURCE = Path(__file__).parent.parent / "src"


class Import(NamedTuple):
    """An import of one module by another one.

    Attributes:
        importer: Name of the module that imports.
        imported: Name of the module that is imported.
        is_inside_function: True if a function imports it when it is called.
    """

    importer: str
    imported: str
    is_inside_function: bool


def modules() -> dict[str, Path]:
    """Return the modules of the package by name; the name of a package stands for its ``__init__``."""
    paths = sorted(SOURCE.joinpath("elimina").rglob("*.py"))
    names = (path.relative_to(SOURCE).with_suffix("").parts for path in paths)
    return {
        ".".join(parts[:-1] if parts[-1] == "__init__" else parts): path
        for parts, path in zip(names, paths, strict=True)
    }


def imports() -> list[Import]:
    """Return all imports between modules of the package, and those that a table of modules makes."""
    paths = modules()
    trees = {name: ast.parse(path.read_text("utf-8")) for name, path in paths.items()}
    statements = [
        Import(name, imported, is_inside)
        for name, tree in trees.items()
        for node, is_inside in _statements(tree, False)
        for imported in _targets(node, paths)
        if imported != name
    ]
    return statements + [
        Import(name, imported, False) for name, tree in trees.items() for imported in _listed(tree, paths) - {name}
    ]


def library_imports() -> list[Import]:
    """Return the imports of the standard library inside functions."""
    return sorted(
        Import(name, imported, True)
        for name, path in modules().items()
        for node, is_inside in _statements(ast.parse(path.read_text("utf-8")), False)
        if is_inside
        for imported in _library_modules(node)
    )


def _library_modules(node: ast.Import | ast.ImportFrom) -> set[str]:
    names = {alias.name for alias in node.names} if isinstance(node, ast.Import) else {node.module or ""}
    return {name for name in names if name.partition(".")[0] in sys.stdlib_module_names}


def _listed(tree: ast.AST, paths: dict[str, Path]) -> set[str]:
    """Return the modules that tables name as texts, to be loaded when a row is used; texts name packages as folders."""
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return {text for text in texts & paths.keys() if paths[text].name != "__init__.py"}


def _statements(node: ast.AST, is_inside: bool) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, is_inside
        else:
            is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from _statements(child, is_inside or is_function)


def _targets(node: ast.Import | ast.ImportFrom, paths: dict[str, Path]) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names if alias.name in paths}
    package = node.module or ""
    members = {f"{package}.{alias.name}" for alias in node.names}
    # A member that is not a module is a name in the package.
    return {member if member in paths else package for member in members} & paths.keys()


def circles() -> list[list[str]]:
    """Return the groups of modules that import each other in a circle, the largest one first."""
    graph = networkx.DiGraph((one.importer, one.imported) for one in imports())
    groups = (sorted(group) for group in networkx.strongly_connected_components(graph) if len(group) > 1)
    return sorted(groups, key=lambda group: (-len(group), group))


BASICS = ("arguments", "display", "errors", "lazy_names", "number_texts", "option_names", "system", "version")
"""Modules that any other one may import, drawn as one."""


def layers() -> list[tuple[str, str]]:
    """Return the imports between the folders of the package, without those that follow from others, sorted.

    Modules that lie in no folder stand for themselves.
    """
    graph = networkx.DiGraph()
    for edge in imports():
        if edge.importer.count(".") and edge.imported.count("."):
            ends = [name.split(".")[1] for name in (edge.importer, edge.imported)]
            importer, imported = ("basics" if end in BASICS else end for end in ends)
            if importer not in (imported, "__main__"):
                graph.add_edge(importer, imported)
    return sorted(networkx.transitive_reduction(graph).edges)
