"""Each global of our library for MiniZinc: that it arrives as itself, and how many solutions it has.

The numbers of solutions are those of Gecode and of the standard library's decompositions.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from elimina.cli.install_minizinc import LIBRARY
from tests.cp.flatzinc_solver import solved
from tests.cp.minizinc import needs_minizinc, run

X = "array[1..3] of var 0..3: x;"
FROM_0 = "array[0..2] of var 0..3: x;"
NONE = "array[1..0] of var 0..3: x = [];"
C = "array[1..2] of var 0..2: c;"
WORD = "[x[i] + 1 | i in 1..3], 2, 4, [|1, 2, 1, 2|2, 1, 2, 0|], 1, {2}"
OPTIONAL = "array[1..2] of var opt 0..3: x;"
BOXES = "x, [0, 1, 0], [2, 0, 1], [2, 1, 1]"
ROWS = "[|1, 2, 3|0, 1, 2|3, 3, 3|]"

CASES = {
    "all_different": (f"{FROM_0} constraint all_different(x);", "fzn_all_different_int", 24),
    "except 0": (f"{X} constraint alldifferent_except_0(x);", "fzn_alldifferent_except_0", 34),
    "circuit": (f"{X} constraint circuit(x);", "elimina_circuit", 2),
    "circuit from 0": (f"{FROM_0} constraint circuit(x);", "elimina_circuit", 2),
    "subcircuit": (f"{X} constraint subcircuit(x);", "elimina_subcircuit", 6),
    "subcircuit from 0": (f"{FROM_0} constraint subcircuit(x);", "elimina_subcircuit", 6),
    "count": (f"{X} var 0..3: y; var 0..3: c; constraint count(x, y, c);", "fzn_count_eq", 256),
    "count of a constant": (f"{FROM_0} var 0..3: c; constraint count(x, 2, c);", "fzn_count_eq", 64),
    "count of constants": (f"{X} constraint count(x, 2) = 1;", "fzn_count_eq", 27),
    "cardinality": (f"{FROM_0} constraint global_cardinality(x, [0, 2], [1, 1]);", "fzn_global_cardinality", 12),
    "closed": (f"{X} {C} constraint global_cardinality_closed(x, [0, 2], c);", "fzn_global_cardinality_closed", 6),
    "low up": (f"{X} constraint global_cardinality_low_up(x, [0, 2], [0, 1], [1, 2]);", "fzn_global_cardinality", 33),
    "closed low up": (
        f"{X} constraint global_cardinality_low_up_closed(x, [0, 2], [0, 1], [1, 2]);",
        "fzn_global_cardinality_closed",
        3,
    ),
    "value twice": (f"{X} constraint global_cardinality(x, [0, 2, 0], [1, 1, 1]);", "fzn_global_cardinality", 12),
    "nvalue": (f"{FROM_0} var 0..4: n; constraint nvalue(n, x);", "fzn_nvalue", 64),
    "regular": (f"{X} constraint regular({WORD});", "elimina_regular", 28),
    "table": (f"{X} constraint table(x, {ROWS});", "elimina_table_int", 3),
    "table of Booleans": (
        "array[1..3] of var bool: x; constraint table(x, [|true, false, true|false, false, true|]);",
        "elimina_table_bool",
        2,
    ),
    "lex_less": (f"{FROM_0} array[1..3] of var 0..1: y; constraint lex_less(x, y);", "fzn_lex_less_int", 84),
    "lex_lesseq": (f"{X} array[1..3] of var 0..1: y; constraint lex_lesseq(x, y);", "fzn_lex_lesseq_int", 92),
    "lex_greater": (f"{X} array[1..3] of var 0..1: y; constraint lex_greater(x, y);", "fzn_lex_less_int", 420),
    "lex_less of Booleans": (
        "array[1..3] of var bool: x; array[1..3] of var bool: y; constraint lex_less(x, y);",
        "fzn_lex_less_bool",
        28,
    ),
    "lex_lesseq of Booleans": (
        "array[1..3] of var bool: x; array[0..2] of var bool: y; constraint lex_lesseq(x, y);",
        "fzn_lex_lesseq_bool",
        36,
    ),
    "cumulative": (
        f"{X} var 1..2: cap; constraint cumulative(x, [2, 2, 2], [1, 1, 1], cap);",
        "fzn_cumulative",
        42,
    ),
    "disjunctive": (f"{FROM_0} constraint disjunctive(x, array1d(0..2, [1, 0, 2]));", "fzn_disjunctive", 36),
    "disjunctive_strict": (f"{X} constraint disjunctive_strict(x, [1, 0, 2]);", "fzn_disjunctive_strict", 30),
    "optional tasks": (
        f'include "disjunctive_opt.mzn"; {OPTIONAL} constraint disjunctive(x, [2, 0]);',
        "elimina_disjunctive_opt",
        25,
    ),
    "optional tasks, strictly": (
        f'include "disjunctive_strict_opt.mzn"; {OPTIONAL} constraint disjunctive_strict(x, [2, 0]);',
        "elimina_disjunctive_strict_opt",
        22,
    ),
    "diffn": (f"{X} constraint diffn({BOXES});", "fzn_diffn", 30),
    "diffn_nonstrict": (
        f"{X} constraint diffn_nonstrict({BOXES});",
        "fzn_diffn_nonstrict",
        36,
    ),
    "bin_packing_load": (
        f"{X} array[0..3] of var 0..4: load; constraint bin_packing_load(load, x, [2, 3, 4]);",
        "elimina_bin_packing_load",
        24,
    ),
    "inverse": (
        "array[0..2] of var 0..3: f; array[1..3] of var 0..3: g; constraint inverse(f, g);",
        "elimina_inverse",
        6,
    ),
    "maximum": (f"{X} var 0..4: n = max(x);", "array_int_maximum", 64),
    "minimum": (f"{X} var 0..4: n = min(x);", "array_int_minimum", 64),
    "a clause's truth": (
        "array[1..3] of var bool: x; var bool: b; constraint b <-> (x[1] \\/ not x[2] \\/ x[3]);",
        "bool_clause_reif",
        8,
    ),
    "power": ("var -2..3: x; var 0..2: y; var 0..9: z; constraint pow(x, y) = z;", "int_pow", 16),
    "square": ("var -2..3: x; var 0..9: z; constraint pow(x, 2) = z;", "int_pow", 6),
    "sets": ("var set of 1..4: s; constraint card(s) = 2 /\\ 3 in s;", "bool_lin_eq", 3),
    "no variables differ": (f"{NONE} constraint all_different(x);", None, 1),
    "no variables but 0 differ": (f"{NONE} constraint alldifferent_except_0(x);", None, 1),
    "no nodes": (f"{NONE} constraint circuit(x) /\\ subcircuit(x);", None, 1),
    "no items": (f"{NONE} var 0..3: c; constraint count(x, 2, c);", None, 1),
    "no word": (
        f"{NONE} constraint regular(x, 2, 4, [|1, 2, 1, 2|2, 1, 2, 0|], 2, {{2}});",
        None,
        1,
    ),
}

REIFIED = {
    "all_different(x)": 24,
    "alldifferent_except_0(x)": 34,
    "circuit(x)": 2,
    "count(x, 2, 1)": 27,
    "global_cardinality_closed(x, [0, 2], [1, 2])": 3,
    f"regular({WORD})": 28,
    f"table(x, {ROWS})": 3,
    "lex_less(x, [1, 1, 1])": 21,
    "cumulative(x, [2, 2, 2], [1, 1, 1], 2)": 42,
    "disjunctive(x, [1, 0, 2])": 36,
    "disjunctive_strict(x, [1, 0, 2])": 30,
    f"diffn({BOXES})": 30,
    f"diffn_nonstrict({BOXES})": 36,
    "inverse(x, [2, 1, 3])": 1,
    "max(x) = 2": 19,
    "maximum(2, x)": 19,
    "minimum(1, x)": 19,
    "sliding_sum(1, 3, 2, x)": 23,
    "xorall([v > 1 | v in x])": 32,
    "iffall([v > 0 | v in x])": 28,
}
"""In how many of 64 assignments a constraint is true."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


def compiled(home: Path, text: str) -> str:
    model, target = home / "model.mzn", home / "model.fzn"
    words = sorted(set(re.findall(r"\w+", text)) & STANDARD)
    model.write_text("".join(f'include "{word}.mzn";\n' for word in words) + text + " solve satisfy;")
    result = run(home, "-c", "--no-output-ozn", "--fzn", str(target), str(model))
    assert result.returncode == 0, result.stderr
    return target.read_text()


STANDARD = {
    *("all_different", "alldifferent_except_0", "circuit", "subcircuit", "count", "global_cardinality", "nvalue"),
    *("global_cardinality_closed", "global_cardinality_low_up", "global_cardinality_low_up_closed", "regular", "table"),
    *("lex_less", "lex_lesseq", "lex_greater", "cumulative", "bin_packing_load", "inverse"),
    *("maximum", "minimum", "sliding_sum", "disjunctive", "disjunctive_strict", "diffn", "diffn_nonstrict"),
}


@needs_minizinc
@pytest.mark.parametrize("name", CASES)
def test_a_global_arrives_as_itself(home: Path, name: str) -> None:
    text, native, count = CASES[name]
    flat = compiled(home, text)
    assert native is None or f"constraint {native}(" in flat
    found = [str(solution) for solution in solved(flat)]
    assert len(found) == len(set(found)) == count


@needs_minizinc
@pytest.mark.parametrize("constraint", REIFIED)
def test_the_truth_of_a_global(home: Path, constraint: str) -> None:
    flat = compiled(home, f"{X} var bool: b; constraint b <-> {constraint};")
    found = solved(flat)
    assert len({str(solution["x"]) for solution in found}) == len(found) == 64
    assert sum(bool(solution["b"]) for solution in found) == REIFIED[constraint]


def test_every_file_of_the_library_is_tested() -> None:
    arrive = {native.replace("elimina_", "fzn_") for _, native, _ in CASES.values() if native}
    include = {f"fzn_{name.split('(')[0]}_reif" for name in REIFIED}
    others = {"fzn_global_cardinality_low_up", "fzn_global_cardinality_low_up_closed"}
    others |= {f"fzn_disjunctive{strict}_opt" for strict in ("", "_strict")}  # they arrive under our own names
    files = {path.stem for path in LIBRARY.glob("fzn_*.mzn")}
    assert files <= arrive | include | others
