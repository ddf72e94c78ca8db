"""One of each kind: what is built more than once is listed here, and the lists may only get shorter.

A list names the files in which a pattern is found. If you remove a duplicate, take its file from the list. If you need
one of a kind, use the one that is there.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

from elimina.planning.solve_methods import METHODS
from elimina.problem.semirings import SEMIRINGS
from elimina.problem.tasks import Task

ROOT = Path(__file__).parents[2]

KINDS = {
    "local search over cost functions": (
        r"class \w*(LocalSearch|Climber|Tabu|Descent)\b",
        ["core/network/local_search.hpp"],
    ),
    "class of a cost-function network": (
        r"#pragma once[\s\S]*^struct (Model|Network|Problem|CaseModel) \{",
        ["core/consistency/network.hpp", "core/network/network.hpp", "core/search/problem.hpp"],
    ),
    "builder of bucket trees": (
        r"^Tree bucket_tree\([^;]*\{|towards_roots\(\) \{|placed\[min\(",
        ["core/plan/tree.cpp"],
    ),
    "partition of a bucket": (
        r"MiniBuckets::divide\(|def (by_scope|partition_by_content)\(|fill_bins",
        ["core/plan/mini_buckets.cpp", "src/elimina/running/content_partition.py"],
    ),
    "comparison with a device's name": (
        r"[!=]= \"(cuda|cpu|gpu)\"",
        [
            "src/elimina/backends/registry.py",
            "src/elimina/cli/flatzinc.py",
            "src/elimina/cli/solve.py",
            "src/elimina/cp/gpu_filtering.py",
            "src/elimina/planning/devices.py",
        ],
    ),
    "decoder of assignments": (
        r"void decode\([^;]*\{$|bool AndOrSearch::decode\(|best_value\([^;]*\{$|def _decode\(self\) -> NDArray",
        ["core/exec/dense/plain.cpp", "core/exec/sparse/decode.cpp", "core/search/and_or_search.cpp"],
    ),
    "entry of evidence": (
        # Tables of a problem, cells of a running plan, factors of a running plan, and the factors of a case's own plan.
        r"\.restrict\(|^void Slices::fix\(|def observe\(self|^void CasePlanner::point\(",
        [
            "core/cases/plan.cpp",
            "core/exec/dense/slice.cpp",
            "src/elimina/problem/preparation.py",
            "src/elimina/running/propagator.py",
            "src/elimina/running/sweep.py",
        ],
    ),
    "loop that runs strategies": (r"\.send\(outcome\)", ["src/elimina/strategies/strategy.py"]),
    "description of tasks": (r"^DESCRIPTIONS: dict", ["src/elimina/problem/tasks.py"]),
    "array for Python that owns a vector": (r"delete static_cast<std::vector", ["core/bindings/arrays.hpp"]),
}


def _files() -> list[Path]:
    folders = [ROOT / "core", ROOT / "src" / "elimina"]
    return sorted(path for folder in folders for path in folder.rglob("*.*") if path.suffix in (".cpp", ".hpp", ".py"))


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_where_it_is_known_to_be(kind):
    pattern, known = KINDS[kind]
    found = [
        path.relative_to(ROOT).as_posix()
        for path in _files()
        if re.search(pattern, path.read_text("utf-8"), re.MULTILINE)
    ]
    assert found == known


def test_records_are_asked_for_their_properties():
    """Only tables name tasks, methods of ``solve`` and semirings: other code asks their records."""
    kinds = get_args(Task) + METHODS[1:] + tuple(SEMIRINGS)
    names = {name for name in kinds if name != "search"}
    compared = []
    for path in _files():
        # Constraint models and their readers have words of their own, such as the XCSP3 constraint "count".
        if path.suffix != ".py" or "src" not in path.parts or {"cp", "adapters", "io"} & set(path.parts):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Compare):
                values = (part for side in (node.left, *node.comparators) for part in ast.walk(side))
                if names.intersection(part.value for part in values if isinstance(part, ast.Constant)):
                    compared.append((path.name, ast.unparse(node)))
    assert compared == []


def test_names_that_are_used_twice_become_fewer():
    """Modules, and classes, that have the name of another one."""
    paths = [path for path in _files() if path.suffix == ".py"]
    modules = Counter(path.stem for path in paths if path.stem != "__init__")
    pattern = re.compile(r"^class (\w+)", re.MULTILINE)
    classes = Counter(name for path in paths for name in pattern.findall(path.read_text("utf-8")))
    assert sum(count > 1 for count in modules.values()) <= 11
    assert sum(count > 1 for count in classes.values()) <= 14


def test_tests_load_pyagrum_in_one_way():
    """With warnings as errors, its extensions crash a process that loads them otherwise."""
    pattern = re.compile(r"(importorskip|import_module)\(\"pyagrum|^\s*(import|from) pyagrum\b", re.MULTILINE)
    paths = sorted((ROOT / "tests").rglob("*.py"))
    found = {path.relative_to(ROOT).as_posix() for path in paths if pattern.search(path.read_text("utf-8"))}
    # Its cases run without warnings.
    assert found == {"tests/adversary/peers.py"}
