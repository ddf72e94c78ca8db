"""``elimina solve`` and ``elimina plan``: answers in each format, and options."""

from __future__ import annotations

import json
import math
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

import elimina as library
from elimina.number_texts import number_text
from tests.cli.conftest import EXAMPLES

OPTIMUM = 1352  # of examples/radio.wcsp
KEYS = [
    "schema", "status", "task", "value", "lower_bound", "upper_bound", "assignment", "marginals", "log10_z", "ended_by",
    "stats",
]  # fmt: skip
STATS = ["induced_width", "largest_table", "total_cells", "peak_bytes", "seconds", "device", "dtype"]

RAIN = """BAYES
2
2 2
2
1 0
2 0 1
2
0.75 0.25
4
1 0 0.5 0.5
"""


@pytest.fixture
def rain(tmp_path):
    """P(0) = 3/4, 1/4; variable 1 is never 1 where variable 0 is 0."""
    path = tmp_path / "rain.uai"
    path.write_text(RAIN)
    return path


def test_human_answer(elimina, radio):
    code, out, err = elimina("solve", radio)
    rows = dict(line.split(":", 1) for line in out.splitlines())
    assert (code, err) == (0, "")
    assert list(rows) == ["status", "value", "width", "memory", "time", "assignment"]
    assert rows["status"].strip() == "optimal"
    assert rows["value"].strip() == str(OPTIMUM)
    assert rows["time"].endswith(" on cpu, int16")
    model = library.read(radio)
    chosen = [int(pair.split("=")[1]) for pair in rows["assignment"].split()]
    assert model.score(chosen) == OPTIMUM


def test_json_answer(elimina, radio):
    code, out, _ = elimina("solve", radio, "--format", "json")
    assert code == 0
    assert out.count("\n") == 1
    answer = json.loads(out)
    assert list(answer) == KEYS
    assert list(answer["stats"]) == STATS
    assert (answer["status"], answer["task"]) == ("optimal", "mpe")
    assert answer["value"] == answer["lower_bound"] == answer["upper_bound"] == OPTIMUM
    assert answer["log10_z"] is None
    assert answer["marginals"] is None
    assert len(answer["assignment"]) == 30


def test_uai_answer(elimina, radio):
    out = elimina("solve", radio, "--format", "uai").out
    first, numbers = out.splitlines()
    assert first == "MPE"
    count, *values = map(int, numbers.split())
    assert count == len(values) == 30
    assert library.read(radio).score(values) == OPTIMUM


def test_partition_function(elimina, rain):
    assert "log10 Z:    0\nZ:          1\n" in elimina("solve", rain, "--task", "pr").out
    out = elimina("solve", rain, "--task", "pr", "--evidence", "x1=1", "--format", "json").out
    answer = json.loads(out)
    assert answer["log10_z"] == pytest.approx(math.log10(0.125))
    assert answer["value"] == pytest.approx(0.125)
    assert answer["assignment"] is None
    lines = elimina("solve", rain, "--task", "pr", "--evidence", "x1=1", "--format", "uai").out.splitlines()
    assert lines[0] == "PR"
    assert float(lines[1]) == pytest.approx(math.log10(0.125))


def test_counts(elimina, rain, radio):
    assert "count:      3\n" in elimina("solve", rain, "--task", "count").out
    answer = json.loads(elimina("solve", radio, "--task", "count", "--format", "json").out)
    assert answer["value"] == 2689226840840601600
    assert answer["lower_bound"] is None


def test_a_count_of_many_digits(elimina, tmp_path):
    (tmp_path / "free.wcsp").write_text(f"free 1900 256 0 9\n{'256 ' * 1900}\n")
    text = number_text(256**1900)
    assert f"count:      {text}\n" in elimina("solve", "free.wcsp", "--task", "count").out
    assert f'"value": {text}' in elimina("solve", "free.wcsp", "--task", "count", "--format", "json").out


def test_evidence_from_a_file_and_impossible_evidence(elimina, rain, tmp_path):
    (tmp_path / "seen").write_text("2 0 0 1 1\n")
    out = elimina("solve", rain, "--task", "pr", "--evidence", "seen").out
    reason = "reason:     no assignment with this evidence has a positive probability\n"
    assert out.startswith(f"status:     infeasible\n{reason}log10 Z:    -inf\nZ:          0\n")
    answer = json.loads(elimina("solve", rain, "--task", "pr", "--evidence", "seen", "--format", "json").out)
    assert (answer["status"], answer["value"], answer["log10_z"]) == ("infeasible", 0.0, None)
    assert elimina("solve", rain, "--task", "pr", "--evidence", "seen", "--format", "uai").out == "PR\n-inf\n"
    code, out, _ = elimina("solve", rain, "--evidence", "seen")
    assert (code, out.splitlines()[0]) == (0, "status:     infeasible")


def test_an_infeasible_problem_is_an_answer(elimina, tmp_path):
    (tmp_path / "no.wcsp").write_text("no 1 2 1 5\n2\n1 0 5 0\n")
    code, out, _ = elimina("solve", "no.wcsp", "--format", "json")
    answer = json.loads(out)
    assert code == 0
    assert answer["status"] == "infeasible"
    assert all(answer[key] is None for key in KEYS[3:-1])
    assert "count:      0\n" in elimina("solve", "no.wcsp", "--task", "count").out
    out = elimina("solve", "no.wcsp").out
    assert "reason:     no assignment is allowed, or none within the upper bound\n" in out


def test_no_variables(elimina, tmp_path):
    (tmp_path / "none.wcsp").write_text("none 0 0 1 100\n\n0 7 0\n")
    assert "value:      7\n" in elimina("solve", "none.wcsp").out
    assert json.loads(elimina("solve", "none.wcsp", "--format", "json").out)["assignment"] == {}
    assert elimina("plan", "none.wcsp").code == 0


def test_large_integers_are_printed_exactly(elimina, tmp_path):
    (tmp_path / "big.wcsp").write_text(f"big 1 2 1 {2**62}\n2\n1 0 {2**60 + 1} 0\n")
    assert f"value:      {2**60 + 1}\n" in elimina("solve", "big.wcsp").out


def test_output_file(elimina, radio, tmp_path):
    code, out, err = elimina("solve", radio, "--format", "json", "-o", "answer.json")
    assert (code, out, err) == (0, "", "")
    assert json.loads((tmp_path / "answer.json").read_text())["value"] == OPTIMUM
    assert [path.name for path in tmp_path.iterdir()] == ["answer.json"]


def test_output_to_a_pipe_or_through_a_link(elimina, radio, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor() as pool:
        read = pool.submit((tmp_path / "pipe").read_text)
        assert elimina("solve", radio, "-o", "pipe") == (0, "", "")
        assert f"value:      {OPTIMUM}\n" in read.result(timeout=10)
    (tmp_path / "link").symlink_to("answer.json")
    assert elimina("solve", radio, "--format", "json", "-o", "link") == (0, "", "")
    assert json.loads((tmp_path / "answer.json").read_text())["value"] == OPTIMUM
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("options", [
    ["--device", "cpu", "--threads", "1", "--memory", "1GiB", "--seed", "4", "--order", "min-fill"],
    ["--order-time", "0.1", "--time-limit", "60", "--dtype", "int64"],
    ["--dtype", "float32"],
])  # fmt: skip
def test_options_do_not_change_the_answer(elimina, radio, options):
    assert f"value:      {OPTIMUM}\n" in elimina("solve", radio, *options).out


def test_an_order_from_a_file(elimina, radio, tmp_path):
    (tmp_path / "order").write_text(" ".join(map(str, reversed(range(30)))))
    assert f"value:      {OPTIMUM}\n" in elimina("solve", radio, "--order", "order").out


def test_plan(elimina, radio):
    code, out, err = elimina("plan", radio, "--memory", "1 MB", "--device", "cpu", "--slices", "never")
    assert (code, err) == (0, "")
    assert [line.split(":")[0] for line in out.splitlines()] == [
        "task", "variables", "induced width", "largest table", "work", "peak memory, host", "memory limit",
        "estimated time", "advice",
    ]  # fmt: skip
    assert "976.6 KiB on cpu: does not fit" in out


def test_plan_in_slices(elimina, radio):
    code, out, err = elimina("plan", radio, "--memory", "1 MB", "--device", "cpu")
    assert (code, err) == (0, "")
    rows = dict(line.split(":", 1) for line in out.splitlines())
    assert list(rows)[-3:] == ["slices", "conditioned on", "cost of slicing"]
    assert "fits" in rows["memory limit"]
    assert "steps run once" in rows["slices"]
    assert "times the work of the unsliced plan, which needs" in rows["cost of slicing"]
    few = elimina("plan", radio, "--memory", "100 KB", "--device", "cpu", "--slices", 2).out
    assert "does not fit" in few
    assert "more than are allowed" in few


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.wcsp")) + sorted(EXAMPLES.glob("*.uai")), ids=lambda p: p.name)
def test_every_example_is_solved(elimina, path):
    assert elimina("solve", path).out.startswith("status:     optimal\n")


def test_optima_are_counted(elimina, radio):
    ran = elimina("solve", radio, "--task", "count-optima")
    assert [line.split() for line in ran.out.splitlines()[:3]] == [
        ["status:", "exact"],
        ["value:", "1352"],
        ["optima:", "1"],
    ]


SUM = """var 1..5: x :: output_var;
var 1..9: cost :: output_var;
constraint int_lin_eq([2,-1],[x,cost],0);
solve {} cost;
"""


@pytest.mark.parametrize(("goal", "expected"), [("minimize", {"x": 1, "cost": 2}), ("maximize", {"x": 4, "cost": 8})])
@pytest.mark.parametrize("task", ["mpe", "count-optima"])
def test_the_variable_of_an_objective_is_in_the_answer(elimina, tmp_path, goal, expected, task):
    (tmp_path / "m.fzn").write_text(SUM.format(goal))
    assert elimina("solve", "m.fzn", "--task", task).out.endswith(
        f"assignment: x={expected['x']} cost={expected['cost']}\n"
    )
    answer = elimina("solve", "m.fzn", "--task", task, "--json").out
    assert json.loads(answer)["assignment"] == expected
    (tmp_path / "answer.json").write_text(answer)
    if task == "mpe":
        assert json.loads(elimina("solve", "m.fzn", "--hint", "answer.json", "--json").out)["assignment"] == expected
    assert elimina("solve", "m.fzn", "--task", "count").out.startswith("status:     exact\ncount:      4\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("solve", "--evidence", "cost=4"),
        ("solve", "--task", "mmap", "--query", "cost"),
        ("plan", "--evidence", "cost=4"),
        ("plot", "--evidence", "cost=4", "-o", "m.svg"),
    ],
)
def test_evidence_on_the_variable_of_an_objective_is_explained(elimina, tmp_path, arguments):
    (tmp_path / "m.fzn").write_text(SUM.format("minimize"))
    command, *options = arguments
    ran = elimina(command, "m.fzn", *options)
    assert ran.code == 1
    assert ran.err == (
        "elimina: 'cost' is the variable of the objective, which the cost tables do not have: its value is that of the "
        "answer; to fix it, add a constraint to the file that sets it\n"
    )
    other = [option.replace("cost", "costs") for option in options]
    assert "has no variable 'costs'" in elimina(command, "m.fzn", *other).err
    (tmp_path / "fixed.fzn").write_text(SUM.format("minimize").replace("solve", "constraint int_eq(cost, 4);\nsolve"))
    assert "assignment: x=2 cost=4\n" in elimina("solve", "fixed.fzn").out


@pytest.mark.parametrize("task", ["MAR", "Mar", "MARGINALS"])
def test_tasks_in_capital_letters(elimina, task):
    assert json.loads(elimina("solve", EXAMPLES / "pump.bif", "--task", task, "--json").out)["task"] == "mar"


@pytest.mark.parametrize("arguments", [("solve", "radio.wcsp"), ("cp", "queens.fzn"), ("dcop", "radio.wcsp")])
def test_the_suffix_names_the_format(elimina, tmp_path, arguments):
    command, name = arguments
    for given, is_json in (((), True), (("--format", "human"), False), (("--json",), True)):
        assert elimina(command, EXAMPLES / name, "-o", "answer.json", *given) == (0, "", "")
        text = (tmp_path / "answer.json").read_text()
        assert text.startswith('{"schema": 1') == is_json
    assert elimina(command, EXAMPLES / name, "-o", "answer.txt").out == ""
    assert (tmp_path / "answer.txt").read_text().startswith("status:")


def test_a_dash_is_standard_output(elimina, radio, tmp_path):
    assert json.loads(elimina("solve", radio, "--json", "-o", "-").out)["value"] == 1352
    assert not (tmp_path / "-").exists()


def test_one_cell(elimina, tmp_path):
    path = tmp_path / "coin.uai"
    path.write_text("MARKOV 1 1 1 1 0 1 3")
    _, out, _ = elimina("solve", path, "--task", "pr")
    assert "width:      0 (largest table: 1 cell)\n" in out
