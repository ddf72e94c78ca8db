"""`fzn-elimina` and `elimina install-minizinc`, as processes."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import re
import signal
import subprocess
import sys
from codecs import BOM_UTF8
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cp.minizinc import needs_minizinc
from tests.cp.minizinc import run as run_minizinc
from tests.reference import flatzinc as reference

PROGRAM = str(Path(sys.executable).parent / "fzn-elimina")
THREE = "var 1..3: x :: output_var;\n"
HARD = "\n".join(
    [
        "array [1..12] of var 1..11: x;",
        *(f"constraint int_ne(x[{i}], x[{k}]);" for i in range(1, 13) for k in range(1, i)),
        "solve :: int_search(x, input_order, indomain_min) satisfy;",
    ]
)
# The first solution comes at once, the proof never.
NEVER_PROVEN = HARD.replace(
    "array [1..12] of var 1..11: x;", "array [1..12] of var 1..12: x; var bool: o :: output_var;"
).replace(
    "solve :: int_search(x, input_order, indomain_min) satisfy;",
    "var 0..9: c :: output_var; constraint int_eq_reif(c, 0, o); "
    + " ".join(f"constraint int_le_imp(x[{i}], 11, o);" for i in range(1, 13))
    + " solve :: int_search([c], input_order, indomain_max) :: int_search(x, input_order, indomain_min) minimize c;",
)


def matrix(goal: str) -> str:
    """A matrix of Booleans with limits on rows and columns: counting bounds it, and a search alone takes ages."""
    cells = [[f"x[{8 * i + j + 1}]" for j in range(8)] for i in range(12)]

    def linear(relation: str, terms: dict[str, int], right: int) -> str:
        return f"constraint int_lin_{relation}({[*terms.values()]}, [{', '.join(terms)}], {right});"

    excess = {f"excess{j}": -1 for j in range(8) if goal == "minimize"}
    counted = dict.fromkeys(excess or [x for row in cells for x in row], 1)
    lines = ["array [1..96] of var 0..1: x;", "var 0..96: total :: output_var;"]
    lines += [f"var 0..12: {over};" for over in excess]
    lines += [linear("le" if goal == "maximize" else "eq", dict.fromkeys(row, 1), 3) for row in cells]
    for j, column in enumerate(zip(*cells, strict=True)):
        lines.append(linear("le", dict.fromkeys(column, 1) | dict([*excess.items()][j : j + 1]), 4))
    lines.append(linear("eq", counted | {"total": -1}, 0))
    return "\n".join([*lines, f"solve {goal} {'' if goal == 'satisfy' else 'total'};"])


def run(tmp_path: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "model.fzn"
    path.write_text(text)
    return subprocess.run([PROGRAM, *options, str(path)], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("goal", "options", "expected"),
    [
        ("satisfy", [], "x = 1;\n----------\n"),
        ("satisfy", ["-n", "2"], "x = 1;\n----------\nx = 2;\n----------\n"),
        ("satisfy", ["-a"], "x = 1;\n----------\nx = 2;\n----------\nx = 3;\n----------\n==========\n"),
        ("maximize x", [], "x = 3;\n----------\n==========\n"),
        ("minimize x", ["-a"], "x = 1;\n----------\n==========\n"),
    ],
)
def test_which_solutions_are_printed(tmp_path: Path, goal: str, options: list[str], expected: str) -> None:
    result = run(tmp_path, f"{THREE}solve {goal};", *options)
    assert (result.stdout, result.stderr, result.returncode) == (expected, "", 0)


@pytest.mark.parametrize("option", ["-a", "-i"])
def test_each_better_solution(tmp_path: Path, option: str) -> None:
    result = run(tmp_path, f"{THREE}solve :: int_search([x], input_order, indomain_min) maximize x;", option)
    assert result.stdout == "x = 1;\n----------\nx = 2;\n----------\nx = 3;\n----------\n==========\n"


def test_no_solution(tmp_path: Path) -> None:
    assert run(tmp_path, f"{THREE}constraint int_le(4, x); solve satisfy;").stdout == "=====UNSATISFIABLE=====\n"
    assert run(tmp_path, HARD, "-t", "100").stdout == "=====UNKNOWN=====\n% time limit\n"
    # Before it is read.
    assert run(tmp_path, HARD, "-t", "1").stdout == "=====UNKNOWN=====\n% time limit\n"


def test_a_time_limit_of_0_is_none(tmp_path: Path) -> None:
    """Gecode and Chuffed read 0 in the same way."""
    result = run(tmp_path, f"{THREE}solve satisfy;", "-a", "-t", "0")
    assert result.stdout.endswith("x = 3;\n----------\n==========\n")


def test_statistics(tmp_path: Path) -> None:
    lines = run(tmp_path, f"{THREE}solve maximize x;", "-s").stdout.splitlines()
    figures = dict(re.fullmatch(r"%%%mzn-stat: (\w+)=(\S+)", line).groups() for line in lines[3:-1])
    assert lines[-1] == "%%%mzn-stat-end"
    assert figures["objective"] == "3"
    assert int(figures["nodes"]) >= 1
    assert float(figures["solveTime"]) >= 0


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        ("satisfy", "=====UNSATISFIABLE=====\n"),
        ("minimize", "total = 4;\n----------\n==========\n"),
        ("maximize", "total = 32;\n----------\n==========\n"),
    ],
)
def test_bounds_by_other_methods_end_a_search(tmp_path: Path, goal: str, expected: str, threads: str) -> None:
    result = run(tmp_path, matrix(goal), "-p", threads)
    assert (result.stdout, result.stderr) == (expected, "")


def test_options_that_change_no_answer(tmp_path: Path) -> None:
    result = run(
        tmp_path,
        f"{THREE}solve :: novel(1) :: int_search([x], novel, indomain) satisfy;",
        "-f",
        "-v",
        "-p",
        "4",
        "-r",
        "7",
        "-a",
    )
    assert sorted(s["x"] for s in reference.parse_solutions(result.stdout)) == [1, 2, 3]
    assert result.stderr.splitlines() == [
        "fzn-elimina: warning: the annotation novel of the solve item is ignored",
        "fzn-elimina: warning: unknown variable ordering novel: dom_w_deg is used instead",
        "fzn-elimina: variables: 1, propagators: 0",
    ]


def test_ignored_annotations_are_named_once_without_being_asked(tmp_path: Path) -> None:
    novel = ":: novel_start([x], [2])"
    result = run(tmp_path, f"{THREE}solve {novel} {novel} :: restart_odd(3) :: seq_search([set_search([])]) satisfy;")
    assert result.returncode == 0
    assert result.stdout == "x = 1;\n----------\n"
    assert result.stderr.splitlines() == [
        f"fzn-elimina: warning: the annotation {name} of the solve item is ignored"
        for name in ("novel_start", "restart_odd", "set_search")
    ]


def test_restarts_without_an_end_in_sight_end(tmp_path: Path) -> None:
    """Six pigeons in five holes, and restarts after each failure."""
    pigeons = "\n".join(
        [
            "array [1..6] of var 1..5: x;",
            *(f"constraint int_ne(x[{i}], x[{k}]);" for i in range(1, 7) for k in range(1, i)),
            "solve :: int_search(x, input_order, indomain_min) :: restart_constant(1) satisfy;",
        ]
    )
    result = run(tmp_path, pigeons, "-s")
    figures = dict(re.findall(r"%%%mzn-stat: (\w+)=(\S+)", result.stdout))
    assert result.stdout.startswith("=====UNSATISFIABLE=====\n")
    assert int(figures["restarts"]) > 1
    assert int(figures["nogoods"]) > 1


@pytest.mark.parametrize(
    "options", [["-p", "3"], ["-p", "2", "--lns"], ["--lns"], ["-f", "--lns", "-p", "2", "-r", "5"]]
)
def test_threads_and_neighbourhoods_prove_the_optimum(tmp_path: Path, options: list[str]) -> None:
    text = (
        "array [1..5] of var 1..5: x; var 0..99: o :: output_var;\n"
        "constraint fzn_all_different_int(x); constraint int_lin_eq([5,4,3,2,1,-1],[x[1],x[2],x[3],x[4],x[5],o],0);\n"
        "solve :: int_search(x, input_order, indomain_max) minimize o;"
    )
    result = run(tmp_path, text, "-s", *options)
    assert "o = 35;\n----------\n==========\n" in result.stdout
    assert result.returncode == 0


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_search(tmp_path: Path, number: signal.Signals, threads: str) -> None:
    path = tmp_path / "model.fzn"
    path.write_text(NEVER_PROVEN)
    command = [PROGRAM, "-s", "-i", "-p", threads, str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in process.stdout:
        if line == "c = 1;\n":
            break
    process.send_signal(number)
    printed, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (128 + number, "")
    assert "==========" not in printed
    assert f"% {'interrupted' if number == signal.SIGINT else 'terminated'}\n" in printed
    assert "objective=1\n" in printed


def test_a_signal_ends_the_wait_for_a_model(tmp_path: Path) -> None:
    """A pipe that nothing is written to."""
    os.mkfifo(tmp_path / "model.fzn")
    process = subprocess.Popen([PROGRAM, str(tmp_path / "model.fzn")], stdout=subprocess.PIPE, text=True)
    with (tmp_path / "model.fzn").open("w"):  # which waits for the reader
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=30)[0] == "=====UNKNOWN=====\n% interrupted\n"
    assert process.returncode == 130


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-", ">/dev/full"])
def test_no_standard_output(tmp_path: Path, closed: str) -> None:
    path = tmp_path / "model.fzn"
    path.write_text(f"{THREE}solve satisfy;")
    command = f"exec {PROGRAM} -a {path} {closed}"
    result = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 1
    assert result.stderr.startswith("fzn-elimina: standard output: ") or "2>&-" in closed
    assert len(result.stderr.splitlines()) <= 1


def test_a_time_limit_ends_with_the_best_so_far(tmp_path: Path) -> None:
    result = run(tmp_path, NEVER_PROVEN, "-t", "2000")
    (best,) = reference.parse_solutions(result.stdout)
    assert best["c"] == 1
    assert "==" not in result.stdout
    assert result.stdout.endswith("% time limit\n")
    assert result.returncode == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("var 1..2: x;\nsolve satisfy", "2:14: expected ';', found the end of the file"),
        ("var set of 1..2: f; solve satisfy;", "1:18: unsupported"),
    ],
)
def test_a_bad_model_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    result = run(tmp_path, text)
    assert result.stdout == ""
    assert result.returncode == 1
    assert result.stderr.startswith(f"fzn-elimina: {tmp_path / 'model.fzn'}:{message}")
    assert len(result.stderr.splitlines()) == 1


def test_a_model_of_minizinc_is_one_line_with_advice(tmp_path: Path) -> None:
    path = tmp_path / "model.mzn"
    path.write_text('include "globals.mzn";\nsolve satisfy;')
    result = subprocess.run([PROGRAM, str(path)], capture_output=True, text=True, check=False)
    assert (result.returncode, len(result.stderr.splitlines())) == (1, 1)
    assert "1:1: expected an item" in result.stderr
    assert result.stderr.endswith("; run 'minizinc --solver elimina' on MiniZinc's own files\n")


def test_a_model_from_standard_input(tmp_path: Path) -> None:
    for text in (f"{THREE}solve satisfy;".encode(), gzip.compress(f"{THREE}solve satisfy;".encode())):
        result = subprocess.run([PROGRAM, "-"], input=text, capture_output=True, check=False)
        assert (result.returncode, result.stdout.count(b"----------"), result.stderr) == (0, 1, b"")


def test_a_byte_order_mark_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "model.fzn"
    path.write_bytes(BOM_UTF8 + f"{THREE}solve satisfy;".encode())
    result = subprocess.run([PROGRAM, str(path)], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout.count("----------")) == (0, 1)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_compressed_models(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "model.fzn"
    path.write_bytes(pack(f"{THREE}solve satisfy;".encode()))
    result = subprocess.run([PROGRAM, str(path)], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout.count("----------")) == (0, 1)
    path.write_bytes(path.read_bytes()[:-3])
    result = subprocess.run([PROGRAM, str(path)], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr.startswith(f"fzn-elimina: {path}: the ")


def test_a_missing_model_is_one_line(tmp_path: Path) -> None:
    result = subprocess.run([PROGRAM, str(tmp_path / "none.fzn")], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert len(result.stderr.splitlines()) == 1
    assert run(tmp_path, "", "-n", "0").returncode == 2


def test_nothing_heavy_is_imported(tmp_path: Path) -> None:
    path = tmp_path / "model.fzn"
    path.write_text(f"{THREE}solve satisfy;")
    program = (
        "import sys\nfrom elimina.cli.flatzinc import main\n"
        f"try: main([{str(path)!r}])\n"
        "except SystemExit: print([m for m in ('numpy', 'click', 'elimina.api') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.endswith(
        "----------\n[]\n"
    )


def test_the_configuration_names_what_there_is(tmp_path: Path) -> None:
    program = str(Path(sys.executable).parent / "elimina")
    subprocess.run([program, "install-minizinc", "--folder", str(tmp_path)], check=True, capture_output=True)
    configuration = json.loads((tmp_path / "elimina.msc").read_text())
    assert Path(configuration["executable"]).is_file()
    assert (Path(configuration["mznlib"]) / "fzn_all_different_int.mzn").is_file()


GLOBALS = """include "globals.mzn";
array[0..3] of var 0..3: c; constraint circuit(c);
array[1..4] of var 1..4: s; constraint subcircuit(s);
array[2..4] of var 1..3: f; array[1..3] of var 2..4: g; constraint inverse(f, g);
array[1..3] of var 0..3: t; constraint table(t, [|1, 2, 3|0, 1, 2|]);
var 0..4: k; constraint count(s, 1, k); constraint global_cardinality(s, [1, 2], [1, 1]);
constraint lex_less(f, g); constraint alldifferent(f) :: bounds; constraint alldifferent_except_0(t);
var set of 1..3: pair; constraint card(pair) = 2; var bool: b = alldifferent(s); constraint b;
constraint cumulative(s, [2, 2, 2, 2], [1, 1, 1, 1], 2); constraint nvalue(4, s);
constraint regular(t, 2, 4, [|1, 2, 1, 2|2, 1, 2, 1|], 1, {1, 2});
array[3..4] of var 0..9: load; constraint bin_packing_load(load, [t[1] + 2, 3, 4], [2, 3, 4]);
var int: p = pow(k, 3) + max(t) * 2 - min(load); solve :: int_search(c, first_fail, indomain_min) maximize p;
output ["\\(p)\\n"];"""


@needs_minizinc
@pytest.mark.parametrize(
    ("text", "options", "count"),
    [
        (GLOBALS, [], 1),
        (
            'include "alldifferent.mzn"; array[1..8] of var 1..8: q; constraint alldifferent(q); '
            "constraint alldifferent([q[i] + i | i in 1..8]); constraint alldifferent([q[i] - i | i in 1..8]);"
            "solve satisfy; output [show(q[i]) | i in 1..8];",
            ["-a"],
            92,
        ),
        ("var 1..3: x; constraint x * x = 5; solve satisfy;", [], 0),
        (
            'include "elimina.mzn"; array[1..4] of var 1..9: x; solve :: int_search(x, input_order, indomain_max)'
            ":: restart_constant(2) :: relax_and_reconstruct(x, 50) minimize sum(x);",
            ["--lns", "-p", "2"],
            1,
        ),
    ],
)
def test_minizinc_end_to_end(tmp_path: Path, text: str, options: list[str], count: int) -> None:
    path = tmp_path / "model.mzn"
    path.write_text(text)
    result = run_minizinc(tmp_path, *options, str(path))
    lines = result.stdout.splitlines()
    assert lines.count("----------") == count, result.stderr
    assert lines[-1] == ("==========" if count else "=====UNSATISFIABLE====="), result.stderr
    if text == GLOBALS:
        assert lines[0] == "3"
