"""A MiniZinc library that gives Gecode its own constraints.

Debian's MiniZinc 2.6 looks for `fzn_*.mzn`, Gecode 6.2 brings older names: without this, cumulative, regular, table and
all others but a few are decomposed, and models with `globals.mzn` do not compile at all.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

XS, BS = "array[int] of var int: x", "array[int] of var bool: x"
COVER = "array[int] of int: cover"
COUNTS = [XS, COVER, "array[int] of var int: counts"]
LIMITS = [XS, COVER, "array[int] of int: low", "array[int] of int: up"]

# MiniZinc's parameters; Gecode's constraint, where it has another name; its parameters and its arguments.
Entry = tuple[list[str], str, list[str], str]


def same(parameters: list[str], name: str = "") -> Entry:
    return parameters, name, parameters, ", ".join(each.split(": ")[-1] for each in parameters)


CONSTRAINTS: dict[str, Entry] = {
    "all_different_int": same([XS]),
    "all_equal_int": same([XS]),
    "among": same(["var int: n", XS, "set of int: v"]),
    "at_least_int": same(["int: n", XS, "int: v"]),
    "at_most_int": same(["int: n", XS, "int: v"]),
    "bin_packing_load": (
        ["array[int] of var int: l", XS, "array[int] of int: w"],
        "",
        ["array[int] of var int: l", XS, "array[int] of int: w", "int: first"],
        "l, x, w, min(index_set(l))",
    ),
    "circuit": ([XS], "", ["int: first", XS], "0, [x[i] - min(index_set(x)) | i in index_set(x)]"),
    "count_eq": same([XS, "var int: y", "var int: c"], "count"),
    "cumulative": same([*(f"array[int] of var int: {each}" for each in "sdr"), "var int: b"], "cumulatives"),
    "decreasing_bool": same([BS]),
    "decreasing_int": same([XS]),
    "diffn": (
        [f"array[int] of var int: {each}" for each in ("x", "y", "dx", "dy")],
        "nooverlap",
        [f"array[int] of var int: {each}" for each in ("x", "dx", "y", "dy")],
        "x, dx, y, dy",
    ),
    "global_cardinality": same(COUNTS),
    "global_cardinality_closed": same(COUNTS),
    "global_cardinality_low_up": same(LIMITS),
    "global_cardinality_low_up_closed": same(LIMITS),
    "increasing_bool": same([BS]),
    "increasing_int": same([XS]),
    "inverse": (
        [XS, "array[int] of var int: y"],
        "inverse_offsets",
        [XS, "int: xs", "array[int] of var int: y", "int: ys"],
        "x, min(index_set(y)), y, min(index_set(x))",
    ),
    "lex_less_bool": same([BS, "array[int] of var bool: y"], "array_bool_lt"),
    "lex_less_int": same([XS, "array[int] of var int: y"], "array_int_lt"),
    "lex_lesseq_bool": same([BS, "array[int] of var bool: y"], "array_bool_lq"),
    "lex_lesseq_int": same([XS, "array[int] of var int: y"], "array_int_lq"),
    "member_bool": same([BS, "var bool: y"]),
    "member_int": same([XS, "var int: y"]),
    "nvalue": same(["var int: n", XS]),
    "regular": (
        [XS, "int: q", "int: s", "array[int, int] of int: d", "int: first", "set of int: f"],
        "",
        [XS, "int: q", "int: s", "array[int] of int: d", "int: first", "set of int: f"],
        "x, q, s, array1d(d), first, f",
    ),
    "sort": same([XS, "array[int] of var int: y"]),
    "table_bool": ([BS, "array[int, int] of bool: t"], "", [BS, "array[int] of bool: t"], "x, array1d(t)"),
    "table_int": ([XS, "array[int, int] of int: t"], "", [XS, "array[int] of int: t"], "x, array1d(t)"),
    "value_precede_int": (["int: s", "int: t", XS], "precede", [XS, "int: s", "int: t"], "x, s, t"),
}
# Gecode filters these by bounds or values unless it is told otherwise.
DOMAIN = ("all_different_int", "circuit", "inverse", *(each for each in CONSTRAINTS if each.startswith("global_")))


def write(folder: Path, program: str) -> Path:
    """Writes the library into a new folder; the configuration that names it."""
    folder.mkdir()
    listed = subprocess.run(["minizinc", "--config-dirs"], capture_output=True, text=True, check=True).stdout
    brought = Path(json.loads(listed)["mznStdlibDir"]) / "gecode"
    for name in ("gecode.mzn", "redefinitions.mzn", "redefinitions-2.0.mzn"):
        shutil.copy(brought / name, folder)
    for name, (parameters, theirs, needed, arguments) in CONSTRAINTS.items():
        native, level = f"gecode_{theirs or name}", " :: domain" if name in DOMAIN else ""
        text = f"predicate {native}({', '.join(needed)});\n"
        text += f"predicate fzn_{name}({', '.join(parameters)}) = {native}({arguments}){level};\n"
        (folder / f"fzn_{name}.mzn").write_text(text)
    configuration = {"id": "org.gecode.native", "name": "native", "version": "6.2.0", "mznlib": str(folder)}
    path = folder / "native.msc"
    path.write_text(json.dumps({**configuration, "executable": program, "supportsFzn": True, "needsSolns2Out": True}))
    return path
