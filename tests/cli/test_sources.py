"""Sources of models: files of distributed problems, and standard input."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(*arguments, given=b""):
    command = [sys.executable, "-m", "elimina", *map(str, arguments)]
    return subprocess.run(command, input=given, capture_output=True, timeout=120, check=False)


@pytest.mark.parametrize("command", ["solve", "plan"])
def test_distributed_problems(command, elimina):
    pytest.importorskip("yaml")
    assert elimina(command, EXAMPLES / "meetings.yaml").code == 0


def test_distributed_problems_have_the_same_optimum(elimina):
    pytest.importorskip("yaml")
    agents = json.loads(elimina("dcop", EXAMPLES / "meetings.yaml", "--json").out)
    assert json.loads(elimina("solve", EXAMPLES / "meetings.yaml", "--json").out)["value"] == agents["value"]


def test_standard_input(tmp_path):
    data = (EXAMPLES / "radio.wcsp").read_bytes()
    expected = json.loads(run("solve", EXAMPLES / "radio.wcsp", "--json").stdout)["value"]
    assert json.loads(run("solve", "-", "--from", "wcsp", "--json", given=data).stdout)["value"] == expected
    packed = run("plan", "-", "--from", "wcsp.gz", given=gzip.compress(data))
    assert b"induced width" in packed.stdout
    run("convert", "-", tmp_path / "x.uai", "--from", "wcsp", given=data)
    assert (tmp_path / "x.uai").exists()
    assert json.loads(run("dcop", "-", "--from", "wcsp", "--json", given=data).stdout)["value"] == expected


@pytest.fixture(name="inputs")
def _inputs(tmp_path):
    """Inputs of commands: name -> file and text."""
    columns = json.loads(run("solve", EXAMPLES / "pump.bif", "--task", "mar", "--json").stdout)["marginals"]
    season, states = next((name, list(states)) for name, states in columns.items())
    texts = {
        "cases.csv": f'{season}\n{states[0]}\n""\n',
        "evidence.evid": "1 0 1\n",
        "names.query": "2 0 1\n",
        "variables.order": " ".join(reversed(columns)),
        "answer.json": run("solve", EXAMPLES / "radio.wcsp", "--json").stdout.decode(),
        "trace.jsonl": '{"seconds": 0.5, "lower": 1, "upper": 3}\n{"seconds": 1.0, "lower": 2, "upper": 3}\n',
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return {name: (tmp_path / name, text.encode()) for name, text in texts.items()}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("cases.csv", ["solve", "pump.bif", "--task", "mar", "--cases", "FILE"]),
        ("evidence.evid", ["solve", "pump.bif", "--task", "mar", "--format", "uai", "--evidence", "FILE"]),
        ("names.query", ["solve", "pump.bif", "--task", "mar", "--cases", "cases.csv", "--query", "FILE"]),
        ("variables.order", ["solve", "pump.bif", "--task", "mar", "--format", "uai", "--order", "FILE"]),
        ("answer.json", ["solve", "radio.wcsp", "--format", "uai", "--hint", "FILE"]),
        ("evidence.evid", ["solve", "radio.wcsp", "--format", "uai", "--hint", "FILE"]),
        ("cases.csv", ["fit", "pump.bif", "FILE", "-o", "OUT.bif"]),
        ("trace.jsonl", ["plot", "FILE", "-o", "OUT.svg"]),
    ],
)
def test_every_input_may_be_standard_input(name, arguments, inputs, tmp_path):
    file, text = inputs[name]
    shown = {".bif": EXAMPLES, ".wcsp": EXAMPLES, ".csv": tmp_path}
    words = [shown[Path(w).suffix] / w if (shown.get(Path(w).suffix, tmp_path) / w).exists() else w for w in arguments]
    outputs = []
    for source in (file, "-"):
        output = [str(w).replace("OUT", str(tmp_path / "out")) for w in words]
        reading = ["--from", "jsonl"] if source == "-" and "plot" in words else []
        done = run(*[source if w == "FILE" else w for w in output], *reading, given=text)
        assert done.returncode == 0, done.stderr
        made = [Path(w).read_text().replace(file.name, "standard input") for w in output if "/out." in w]
        outputs.append([done.stdout, *made])
    assert outputs[0] == outputs[1]


def test_a_tour_problem_on_standard_input():
    data = (EXAMPLES / "towns.tsp").read_bytes()
    expected = json.loads(run("tsp", EXAMPLES / "towns.tsp", "--json").stdout)["value"]
    assert json.loads(run("tsp", "-", "--json", given=data).stdout)["value"] == expected


def test_a_parquet_table_on_standard_input(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pandas.DataFrame({"Season": ["summer", None]}).to_parquet(tmp_path / "cases.parquet")
    data = (tmp_path / "cases.parquet").read_bytes()
    expected = run("solve", EXAMPLES / "pump.bif", "--task", "pr", "--cases", tmp_path / "cases.parquet")
    done = run("solve", EXAMPLES / "pump.bif", "--task", "pr", "--cases", "-", given=data)
    assert (done.stdout, done.returncode) == (expected.stdout, expected.returncode)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ["solve", "pump.bif", "--task", "mar", "--cases", "-"],
            "standard input:1: the model has no variable 'nothing'",
        ),
        (["fit", "pump.bif", "-", "-o", "x.bif"], "standard input:1: the model has no variable 'nothing'"),
        (["solve", "pump.bif", "--evidence", "-"], "standard input:1: expected a number of observed variables"),
        (["solve", "radio.wcsp", "--hint", "-"], "standard input:1: expected a number of observed variables"),
        (["solve", "pump.bif", "--query", "-"], "standard input is not a query file"),
        (["solve", "pump.bif", "--order", "-"], "standard input:1: "),
        (["tsp", "-"], "standard input:1: "),
        (["plot", "-", "--from", "jsonl", "-o", "x.svg"], "standard input is not a trace of bounds"),
        (["solve", "-", "--from", "opb"], "standard input:1: "),
        (
            ["solve", "pump.bif", "--task", "mar", "--cases", "-", "--evidence", "-"],
            "standard input cannot be both --evidence and --cases: name a file for one of them",
        ),
        (
            ["solve", "-", "--from", "bif", "--cases", "-", "--task", "mar"],
            "standard input cannot be both the model and --cases: name a file for one of them",
        ),
    ],
)
def test_errors_name_standard_input(arguments, problem):
    text = {"--evidence": b"0", "bif": (EXAMPLES / "pump.bif").read_bytes()}
    given = next((text[w] for w in reversed(arguments) if w in text and arguments.count("-") == 2), b"nothing")
    done = run(*[EXAMPLES / w if (EXAMPLES / w).exists() else w for w in arguments], given=given)
    assert done.returncode in (1, 2)
    assert problem in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["solve", "-"], "standard input has no suffix: name its format by --from, such as --from wcsp"),
        (["cp", "-"], "standard input has no suffix: name its format by --from, such as --from fzn"),
        (["solve", "x.wcsp", "--from", "wcsp"], "or write - --from wcsp < x.wcsp"),
        (["solve", "-", "--from", "docx"], "unknown suffix '.docx'"),
        (["plan", "-", "--from", "uai"], "elimina: standard input:1: expected MARKOV or BAYES"),
    ],
)
def test_errors(arguments, problem):
    done = run(*arguments, given=b"nothing")
    assert done.returncode == 1
    assert problem in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
