"""Declarations of our library for MiniZinc, against the rules that MiniZinc 2.8.1 and later check.

The compiler's ``Model::checkFnValid`` refuses every model if a predicate without a body has an argument that FlatZinc
does not have. That version is not needed here: the library is parsed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from elimina._core import cp_constraint_names, flatzinc_translated_names
from elimina.cli.install_minizinc import LIBRARY

_DECLARATION = re.compile(r"\b(predicate|function|annotation|test)\b\s*([^(;=]*?)(\w+)\s*\(")
_ARGUMENT = re.compile(
    r"(?:array\s*\[\s*int\s*\]\s*of\s+)?(?:var\s+)?(?:bool|int|float|set\s+of\s+int)\s*:\s*\w+(?:\s*::\s*\w+)*"
)
_ANNOTATION = re.compile(r"(?:array\s*\[\s*int\s*\]\s*of\s+)?ann\s*:\s*\w+")
"""One argument of a built-in: at most one dimension, of bool, int, float or set of int."""


class Declaration(NamedTuple):
    kind: str
    name: str
    parameters: list[str]
    has_body: bool


def declarations(text: str) -> list[Declaration]:
    """Parse the predicates, functions and annotations of a MiniZinc file."""
    text = re.sub(r"%[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r'"(?:\\.|[^"\\])*"', '""', text)
    found = []
    for match in _DECLARATION.finditer(text):
        depth, end, starts = 1, match.end(), [match.end()]
        while depth:
            char = text[end]
            depth += (char in "([{") - (char in ")]}")
            if char == "," and depth == 1:
                starts.append(end + 1)
            end += 1
        parts = [text[a:b] for a, b in zip(starts, [s - 1 for s in starts[1:]] + [end - 1], strict=True)]
        rest = re.match(r"(?:\s*::\s*\w+(?:\([^)]*\))?)*\s*(=|;|$)", text[end:])
        assert rest is not None, match[0]
        found.append(Declaration(match[1], match[3], [p.strip() for p in parts if p.strip()], rest[1] == "="))
    return found


def faults(text: str) -> list[str]:
    """Return what MiniZinc 2.8.1 refuses."""
    found = []
    for declaration in declarations(text):
        if declaration.has_body:
            continue
        if declaration.kind in ("function", "test"):
            found.append(f"{declaration.name} has no body")
        may_annotate = declaration.kind == "annotation"
        found += [
            f"{declaration.name}: {p}"
            for p in declaration.parameters
            if not _ARGUMENT.fullmatch(p) and not (may_annotate and _ANNOTATION.fullmatch(p))
        ]
    return found


FILES = sorted(LIBRARY.rglob("*.mzn"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_built_ins_have_only_arguments_of_flatzinc(path: Path) -> None:
    assert faults(path.read_text()) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("predicate p(array[int, int] of int: t);", "p: array[int, int] of int: t"),
        ("predicate p(var opt int: x);", "p: var opt int: x"),
        ("enum E; predicate p(var E: x);", "p: var E: x"),
        ("predicate p(tuple(int, int): x, int: y);", "p: tuple(int, int): x"),
        ("predicate p(record(int: a): x);", "p: record(int: a): x"),
        ("predicate p(array[int] of var set of bool: x);", "p: array[int] of var set of bool: x"),
        ("predicate p(array[int] of ann: x);", "p: array[int] of ann: x"),
        ("predicate p(string: x);", "p: string: x"),
        ("function var int: f(var int: x);", "f has no body"),
    ],
)
def test_the_rule_refuses_other_arguments(text: str, fault: str) -> None:
    assert faults(text) == [fault]
    assert faults(f"{text[:-1]} = true;") == []


def test_every_built_in_is_a_constraint_of_the_reader() -> None:
    own = {*cp_constraint_names(), *flatzinc_translated_names(), "assume"}
    for path in FILES:
        for declaration in declarations(path.read_text()):
            if declaration.has_body or declaration.kind == "annotation" or "float" in declaration.name:
                continue
            plain = re.sub("^(fzn|elimina)_", "", declaration.name)
            assert {declaration.name, plain, re.sub("_(reif|imp)$", "", plain)} & own, declaration.name


SIGNATURES = {
    "fzn_assume": "assumptions",
    "fzn_all_different_int": "xs",
    "fzn_alldifferent_except_0": "xs",
    "fzn_bin_packing_load": "load bin w",
    "fzn_circuit": "x",
    "fzn_circuit_reif": "x b",
    "fzn_count_eq": "xs y c",
    "fzn_cumulative": "s d r b",
    "fzn_diffn": "x y dx dy",
    "fzn_diffn_nonstrict": "x y dx dy",
    "fzn_disjunctive": "s d",
    "fzn_disjunctive_opt": "s d",
    "fzn_disjunctive_strict": "s d",
    "fzn_disjunctive_strict_opt": "s d",
    "fzn_global_cardinality": "x cover counts",
    "fzn_global_cardinality_closed": "x cover counts",
    "fzn_global_cardinality_low_up": "x cover lbound ubound",
    "fzn_global_cardinality_low_up_closed": "x cover lbound ubound",
    "fzn_inverse": "f invf",
    "fzn_lex_less_bool": "x y",
    "fzn_lex_less_int": "x y",
    "fzn_lex_lesseq_bool": "x y",
    "fzn_lex_lesseq_int": "x y",
    "fzn_nvalue": "n x",
    "fzn_regular": "x Q S d q0 F",
    "fzn_regular_reif": "x Q S d q0 F b",
    "fzn_sliding_sum_reif": "low up seq vs b",
    "fzn_subcircuit": "x",
    "fzn_table_bool": "x t",
    "fzn_table_int": "x t",
}
"""File and predicate of MiniZinc's library (2.6.4 to 2.10.0) -> its arguments, which are given by position."""


def test_predicates_have_the_files_and_the_arguments_of_the_standard_library() -> None:
    files = {path.stem: path for path in FILES if path.stem.startswith("fzn_")}
    assert set(files) == set(SIGNATURES)
    for name, path in files.items():
        (declared,) = [d for d in declarations(path.read_text()) if d.name == name]
        assert len(declared.parameters) == len(SIGNATURES[name].split()), name
