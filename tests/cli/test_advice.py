"""Advice in errors works when it is followed: each row provokes an error, and then does what it says."""

from __future__ import annotations

import shutil

import pytest

import elimina as library
from elimina import cp
from elimina.errors import InputError, MemoryLimitError, TimeLimitError
from tests.cli.conftest import EXAMPLES

PUMP = "solve pump.bif --task mar"
RADIO = "solve radio.wcsp"
CLUSTER = "--cluster tcp://127.0.0.1:1"

ADVICE = [
    # Limits of memory and time.
    (f"{RADIO} --method eliminate --memory 20KB", "more memory (--memory)",
     f"{RADIO} --method eliminate --memory 20MB"),
    (f"{RADIO} --method eliminate --memory 20KB --slices never", "a directory on a large disk (--scratch)",
     f"{RADIO} --method eliminate --memory 300KB --slices never --scratch ."),
    (f"{RADIO} --method eliminate --memory 80KB --slices never", "(--method mbe)",
     f"{RADIO} --method mbe --memory 80KB --slices never"),
    (f"{RADIO} --method eliminate --memory 80KB --slices 2", "--method mbe without --slices and --scratch",
     f"{RADIO} --method mbe --memory 80KB"),
    ("solve grid.uai --task pr --method eliminate --memory 80KB --slices never", "(--method mbe)",
     "solve grid.uai --task pr --method mbe --memory 80KB --slices never"),
    ("solve grid.uai --task mar --exact --memory 20KB", "more memory (--memory)",
     "solve grid.uai --task mar --memory 500MB"),
    (f"{RADIO} --memory lots", "expected a number with a unit, such as 8GiB", f"{RADIO} --memory 8GiB"),
    (f"{RADIO} --time-limit 0", "expected a positive number of seconds", f"{RADIO} --time-limit 60"),
    (f"{RADIO} --slices some", "expected auto, never or a number of slices from 1 on", f"{RADIO} --slices 1"),
    (f"{RADIO} --method eliminate --scratch nowhere", "name an existing one",
     f"{RADIO} --method eliminate --scratch ."),
    (f"{RADIO} --ibound none --method mbe", "expected auto or a number of variables",
     f"{RADIO} --ibound 3 --method mbe"),
    (f"{RADIO} --gap much", "such as 0.01 or 1%", f"{RADIO} --gap 1%"),
    # Options that exclude each other.
    (f"{RADIO} --ibound 3", "choose one of them, or leave it out", f"{RADIO} --ibound 3 --method mbe"),
    (f"{RADIO} --ibound 3", "choose one of them, or leave it out", f"{RADIO} --ibound 3 --method search"),
    (f"{RADIO} --ibound 3 --method mbe --slices 9", "leave these out", f"{RADIO} --ibound 3 --method mbe"),
    (f"{RADIO} --method eliminate --upper-bound 1400", "choose one of them, or leave it out",
     f"{RADIO} --method filter --upper-bound 1400"),
    (f"{RADIO} --method eliminate --upper-bound 1400", "choose one of them, or leave it out",
     f"{RADIO} --method search --upper-bound 1400"),
    (f"{RADIO} --method search --checkpoint kept", "choose one of them, or leave it out",
     f"{RADIO} --method eliminate --checkpoint kept"),
    (f"{PUMP} --checkpoint kept", "leave it out for mar", PUMP),
    (f"{RADIO} --task count --method filter", "use auto or eliminate", f"{RADIO} --task count --method eliminate"),
    (f"{RADIO} --task count --method search", "use auto or eliminate", f"{RADIO} --task count --method auto"),
    (f"{RADIO} --task count --method mbe", "use auto or eliminate", f"{RADIO} --task count"),
    (f"{PUMP} --method mbe", "use auto or eliminate", f"{PUMP} --method eliminate"),
    (f"{RADIO} --task count --upper-bound 9", "leave it out for count", f"{RADIO} --task count"),
    (f"{RADIO} --task count --query x0", "leave it out for count", f"{RADIO} --task count"),
    ("solve pump.bif --task mmap", "(--query A,B)", "solve pump.bif --task mmap --query Filter,Bearing"),
    ("solve grid.uai --task pr --method mbe --partition content", "use scope or auto for pr",
     "solve grid.uai --task pr --method mbe --partition scope"),
    ("solve grid.uai --task pr --method mbe --shift clusters", "use none, buckets or all",
     "solve grid.uai --task pr --method mbe --shift buckets"),
    (f"{RADIO} --json --format human", "give one of them", f"{RADIO} --json"),
    (f"{RADIO} --local 2 {CLUSTER}", "--local to start some", f"{RADIO} --task count --local 2"),
    (f"{RADIO} {CLUSTER} --method filter", "use eliminate or search", f"{RADIO} --local 2 --method search"),
    (f"{RADIO} {CLUSTER} --method mbe", "leave --cluster and --local out", f"{RADIO} --method mbe"),
    (f"{RADIO} --local 1 --task count --method search", "use eliminate",
     f"{RADIO} --local 1 --task count --method eliminate"),
    # Tables of cases, evidence and queries.
    ("solve pump.bif --task count --cases cases.csv -o p.csv", "use --task mar, pr, mpe or mmap",
     f"{PUMP} --cases cases.csv -o p.csv"),
    (f"{PUMP} --cases cases.csv -o p.csv --format json", "leave them out", f"{PUMP} --cases cases.csv -o p.csv"),
    (f"{PUMP} --evidence=", "observations like A=x,B=y", f"{PUMP} --evidence Alarm=on,Noise=loud"),
    (f"{PUMP} --query=", "name variables like A,B", f"{PUMP} --query Bearing,Valve"),
    # Formats and tasks.
    (f"{RADIO} --task pr", "(elimina convert MODEL OUT.uai)", "convert radio.wcsp out.uai", "solve out.uai --task pr"),
    ("solve pump.bif --task count-optima", "(elimina convert MODEL OUT.wcsp)", "convert pump.bif out.wcsp",
     "solve out.wcsp --task count-optima"),
    ("solve pump.bif --task mmap --query Bearing --ibound 2", "choose one of them",
     "solve pump.bif --task mmap --query Bearing --ibound 2 --method mbe"),
    ("solve pump.bif --method search --upper-bound 3", "leave it out, or give the known assignment as a hint (--hint)",
     "solve pump.bif --method search", "solve pump.bif --method search --hint Bearing=worn"),
    (f"{RADIO} --method mbe --slices 4", "leave these out", f"{RADIO} --method mbe", f"{RADIO} --slices 4"),
    (f"{RADIO} --device gpu", "expected auto, cpu, cuda, a GPU such as cuda:1", f"{RADIO} --device cpu"),
    (f"{RADIO} --hint nowhere.json", "cannot read nowhere.json: No such file", f"{RADIO} --hint x0=3"),
    (f"{PUMP} -o pump.bif", "name another file (-o)", f"{PUMP} -o answer.txt"),
    (f"{PUMP} --trace pump.bif", "name another file (--trace)", f"{PUMP} --trace run.jsonl"),
    (f"{PUMP} --cases cases.csv -o cases.csv", "name another file (-o)", f"{PUMP} --cases cases.csv -o p.csv"),
    (f"{RADIO} --task count --format uai", "use --format human or json", f"{RADIO} --task count --format json"),
    (f"{PUMP} --query Bearing --format uai", "leave --query out or use --format json", f"{PUMP} --format uai"),
    ("solve off.bif", "pass --no-check", "solve off.bif --no-check"),
    ("convert radio.wcsp out.txt", "name one of", "convert radio.wcsp out.cfn"),
    ("generate grid --side 3 --agents 2 a.wcsp", "leave --agents out, or name a .yaml, .json or .xml file",
     "generate grid --side 3 a.wcsp", "generate grid --side 3 --agents 2 a.json"),
    ("generate random -n 4 --p1 0.1 a.wcsp", "choose a density (--p1) of at least 0.5",
     "generate random -n 4 --p1 0.5 a.wcsp"),
    ("plot radio.wcsp --tour towns.tsp -o a.svg", "use --what tour", "plot towns.tsp --what tour -o a.svg"),
    ("solve towns.tsp", "use 'elimina tsp'", "tsp towns.tsp"),
    ("cp towns.tsp", "for 'elimina tsp'", "tsp towns.tsp"),
    ("cp radio.wcsp", "for 'elimina solve'", "solve radio.wcsp"),
    # Agents.
    ("dcop agents.json --algo adpop", "--ibound 3", "dcop agents.json --algo adpop --ibound 2"),
    ("dcop agents.json --ibound 2", "or use --algo adpop", "dcop agents.json --algo adpop --ibound 2"),
    ("dcop agents.json --algo mb-dpop", "--memory 500MB", "dcop agents.json --algo mb-dpop --memory 500MB"),
    ("dcop agents.json --crash a", "such as a1@3", "dcop agents.json"),
    ("dcop agents.json --local 1 --filter 2", "leave it out", "dcop agents.json --local 1"),
]  # fmt: skip


@pytest.fixture
def files(tmp_path, elimina):
    """Files that the commands name."""
    for name in ("radio.wcsp", "pump.bif", "towns.tsp"):
        shutil.copy(EXAMPLES / name, tmp_path)
    shutil.copy(EXAMPLES / "pump_cases.csv", tmp_path / "cases.csv")
    elimina("generate", "grid", "--side", 10, "-d", 4, "--p2", 0.1, "grid.wcsp")
    elimina("convert", "grid.wcsp", "grid.uai")
    elimina("generate", "coloring", "-n", 8, "agents.json")
    (tmp_path / "off.bif").write_text((tmp_path / "pump.bif").read_text().replace("0.9", "0.8", 1))


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(("command", "advice", "followed"), [(c, a, f) for c, a, *f in ADVICE])
def test_advice_works_when_it_is_followed(elimina, command, advice, followed):
    failed = elimina(*command.split())
    assert failed.code in (1, 2), failed
    assert advice in failed.err.replace("\n", " "), failed.err
    for instead in followed:
        ran = elimina(*instead.split())
        assert ran.code == 0, ran.err


QUICKLY = ("--order-time", 0.1)
"""The search for an order would take seconds; none makes these problems small."""


def test_plans_that_do_not_fit_or_take_long_come_with_advice(elimina):
    elimina("generate", "grid", "--side", 14, "-d", 10, "grid.wcsp")
    assert "advice:               solve it with a time limit" in elimina("plan", "grid.wcsp", *QUICKLY).out
    assert elimina("solve", "grid.wcsp", "--time-limit", 1).code == 0
    elimina("convert", "grid.wcsp", "grid.uai")
    assert "(elimina solve --method mbe)" in elimina("plan", "grid.uai", "--task", "pr", *QUICKLY).out
    assert elimina("solve", "grid.uai", "--task", "pr", "--method", "mbe", "--ibound", 1, *QUICKLY).code == 0
    small = ["plan", "grid.uai", "--task", "pr", *QUICKLY, "--memory", "1MB", "--ibound"]
    assert "advice:               a smaller i-bound (--ibound)" in elimina(*small, 6).out
    assert "advice: " not in elimina(*small, 1).out
    assert "advice: " not in elimina("plan", EXAMPLES / "radio.wcsp").out


def test_memory_that_no_machine_has_is_not_advised(elimina):
    elimina("generate", "grid", "--side", 14, "-d", 10, "--p2", 0.1, "grid.wcsp")
    elimina("convert", "grid.wcsp", "grid.uai")
    failed = elimina("solve", "grid.uai", "--task", "mar", "--exact", *QUICKLY).err
    assert "no machine has that much: a better order (--order," in failed
    assert "(--memory)" not in failed
    assert "(--scratch)" not in failed


def test_advice_of_mini_buckets_speaks_of_mini_buckets():
    from elimina.running.execution import Execution

    model = library.generate.grid_model(4, 3, 0.1, seed=1)
    for ibound, advice in ((2, "a smaller i-bound"), (None, "another order or device")):
        plan = library.plan(model, device="cpu", options=library.Options(ibound=ibound))
        execution = Execution(None, plan, None, None, 0.0)  # type: ignore[arg-type]
        with pytest.raises(TimeLimitError, match=advice):
            execution.check_deadline("half of it done")


def test_counts_and_marginals_are_not_told_to_use_mini_buckets():
    model = library.generate.grid_model(10, 4, 0.1, seed=1)
    with pytest.raises(MemoryLimitError) as failed:
        library.solve(model, "count", memory="1000B", device="cpu", options=library.Options(slices="never", exact=True))
    assert "mbe" not in str(failed.value)


def test_advice_of_constraints_is_followed():
    model = cp.Model()
    x, y = model.int_vars(2, 0, 9, "x")
    with pytest.raises(InputError, match="add it with"):
        bool(x < y)
    model.add(x < y)
    assert model.solve().status == "satisfied" or model.solve().assignment is not None
