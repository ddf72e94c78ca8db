"""Every wrong input is one line on standard error and the right exit code, never a traceback."""

from __future__ import annotations

import bz2
import gzip
import time

import pytest

from elimina.cli import signals
from elimina.cli.options import naming_time_limit
from elimina.errors import TimeLimitError
from elimina.strategies.call import Call, InnerCall


def one_line(ran, code=1):
    assert ran.code == code
    assert ran.out == ""
    assert ran.err.startswith("elimina: ")
    assert ran.err.count("\n") == 1
    return ran.err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "Usage: elimina"),
        (["frob"], "No such command 'frob'; it has 'solve', 'plan', "),
        (["sovle", "pump.bif"], "No such command 'sovle'; did you mean 'solve'"),
        (["solve"], "Missing argument 'FILE'"),
        (["solve", "x.wcsp", "--frob"], "No such option '--frob'"),
        (["solve", "x.wcsp", "--task", "best"], "'best' is not one of 'mpe', 'map', 'pr'"),
        (["solve", "x.wcsp", "--device", "tpu"], "unknown device 'tpu': expected auto, cpu, cuda"),
        (
            ["solve", "x.wcsp", "--memory", "much"],
            "invalid memory size 'much': expected a number with a unit",
        ),
        (["solve", "x.wcsp", "--memory", "-5"], "invalid memory size"),
        (["solve", "x.wcsp", "--slices", "some"], "'some' is invalid: expected auto, never or a number of slices"),
        (["solve", "x.wcsp", "--slices", "0"], "'0' is invalid: expected auto, never or a number of slices from 1 on"),
        (["solve", "x.wcsp", "--memory", "8XiB"], "invalid memory size"),
        (["solve", "x.wcsp", "--time-limit", "0"], "'0' is invalid: expected a positive number of seconds"),
        (["solve", "x.wcsp", "--time-limit", "nan"], "expected a positive number of seconds"),
        (["solve", "x.wcsp", "--order-time", "inf"], "expected a positive number of seconds"),
        (["solve", "x.wcsp", "--threads", "0"], "0 is not in the range"),
        (["solve", "x.wcsp", "--threads", "two"], "'two' is not a valid whole number"),
        (["dcop", "x.yaml", "--loss", "much"], "'much' is not a valid number from 0 to 1"),
        (["solve", "x.wcsp", "--seed", "-1"], "-1 is not in the range"),
        (["solve", "x.wcsp", "--dtype", "int8"], "'int8' is not one of"),
        (["convert", "x.wcsp"], "Missing argument 'TARGET'"),
        (["generate", "random", "x.wcsp", "--p1", "2"], "2.0 is not in the range"),
    ],
)
def test_usage(elimina, arguments, problem):
    code, out, err = elimina(*arguments)
    assert (code, out) == (2, "")
    assert problem in err


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("a.wcsp", b"", "a.wcsp:1: expected the problem's name, but the file ends here"),
        ("a.uai", b"", "a.uai:1: expected MARKOV or BAYES, but the file ends here"),
        ("a.uai", b"MARKOV\n1\n2\n1\n1 0\n2\n0.5 nan\n", "a.uai:7: "),
        ("a.wcsp", b"a 1 2 1 9\n2\n1 0 0 1\n0 3 junk\n", "a.wcsp:4: "),
        ("a.wcsp", b"a 1 99999999999999999999 0 9\n2\n", "a.wcsp:1: "),
        ("a.cfn", b"\xff\xfe\x00", "a.cfn: expected UTF-16 text"),
        ("a.bif", b"", "a.bif:1: "),
        ("a.wcsp.gz", b"", "a.wcsp.gz: expected gzip data, but the file is empty"),
        (
            "a.wcsp.gz",
            gzip.compress(b"a 1 2 0 9\n2\n", mtime=0)[:-9],
            "a.wcsp.gz: the gzip data are damaged or cut off",
        ),
        ("a.wcsp.xz", b"\xfd7zXZ\x00123456", "a.wcsp.xz: the xz data are damaged"),
        (
            "a.wcsp.xz",
            b"123456",
            "a.wcsp.xz: expected xz data: if the file is not compressed, leave .xz out of",
        ),
        ("a.wcsp.gz", b"a 1 2", "a.wcsp.gz: expected gzip data: if the file is not compressed, leave .gz out of its"),
        ("a.wcsp", bz2.compress(b"a"), "a.wcsp: the file holds bzip2 data, and only gzip and xz are read: unpack it"),
        ("a.bif", b"\x28\xb5\x2f\xfd\x24", "a.bif: the file holds zstd data"),
        ("a.xml", b"PK\x03\x04\x14", "a.xml: the file holds zip data"),
        ("a.opb", b"\n", "a.opb:1: expected constraints, or a comment, but the file is empty"),
        ("a.txt", b"", "a.txt: unknown suffix '.txt'; models are uai, erg, wcsp, cfn, bif"),
        (
            "a.txt",
            b"",
            ", qpbo, lg, fzn, opb, yaml, yml, json (perhaps with .gz or .xz), and 'elimina tsp' reads .tsp files",
        ),
        ("plain", b"", "; a file of another name is read from standard input, such as - --from wcsp < plain"),
        ("a.uai.evid", b"0", "a.uai.evid: unknown suffix '.evid' of a model (a file of evidence goes beside one: "),
    ],
)
def test_malformed_files(elimina, tmp_path, name, data, problem):
    (tmp_path / name).write_bytes(data)
    for command in (["solve"], ["plan"], ["solve", "--format", "json", "--task", "count"]):
        assert problem in one_line(elimina(*command, name))
    assert problem in one_line(elimina("convert", name, "out.uai"))
    assert not (tmp_path / "out.uai").exists()


def test_truncation_at_every_line(elimina, tmp_path):
    text = "t 2 2 2 9\n2 2\n2 0 1 0 2\n0 0 3\n1 1 4\n1 1 2 1\n0 5\n"
    lines = text.splitlines(keepends=True)
    for count in range(len(lines)):
        (tmp_path / "t.wcsp").write_text("".join(lines[:count]))
        assert one_line(elimina("solve", "t.wcsp")).startswith(f"elimina: t.wcsp:{max(count, 1)}: expected")


def test_files_that_cannot_be_read(elimina, tmp_path):
    (tmp_path / "folder.wcsp").mkdir()
    assert "cannot read missing.wcsp: No such file" in one_line(elimina("solve", "missing.wcsp"))
    assert "cannot read folder.wcsp: Is a directory" in one_line(elimina("solve", "folder.wcsp"))
    (tmp_path / "radio.wcsp").touch()
    assert one_line(elimina("solve", "raido.wcsp")).endswith("directory; did you mean radio.wcsp?\n")
    assert one_line(elimina("solve", "radio.bif")).endswith("directory; did you mean radio.wcsp?\n")
    assert one_line(elimina("solve", "water.wcsp")).endswith("No such file or directory\n")
    assert one_line(elimina("solve", "nowhere/radio.wcsp")).endswith("No such file or directory\n")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--evidence", "x0=9"], "variable 'x0' has no state '9'; its states are 0 to 7"),
        (["--evidence", "y=1"], "the model has no variable 'y'"),
        (["--evidence", "x0=1,x1"], "evidence 'x1' is not of the form name=state"),
        (["--evidence", "x0=1,x0=2"], "evidence gives variable 'x0' two states: '1' in 'x0=1' and '2' in 'x0=2'"),
        (["--evidence", ""], "the evidence is empty"),
        (["--evidence", "nowhere"], "'nowhere' is neither a file that exists nor of the form NAME=STATE"),
        (["--order", "best"], "order 'best' is neither a method (auto, min-fill"),
        (["--order", "."], ".: cannot be read"),
        (["--task", "pr"], "elimina convert MODEL OUT.uai"),
        (["--memory", "1KB"], "may use 1000 bytes (induced width"),
        (["--memory", "1MB", "--slices", "never", "--method", "eliminate"], "may use 976.6 KiB (induced width"),
        (["--checkpoint", "no/where"], "cannot write the checkpoint in no/where: No such file or directory"),
        (
            ["--checkpoint", "x", "--task", "mar"],
            "a checkpoint is for the tasks mpe, pr and count: leave it out for mar",
        ),
        (["--dtype", "int16"], "more than int16 holds; use a wider integer, scale the costs down"),
        (["--dtype", "uint64"], "dtype uint64 does not fit integer costs"),
        (["--format", "uai", "--task", "count"], "format uai has no answers to the task count"),
        (["-o", "nowhere/answer"], "cannot write nowhere/answer: nowhere is not a writable directory"),
        (["-o", "."], "cannot write .: it is a directory"),
    ],
)
def test_options_that_do_not_fit(elimina, radio, options, problem):
    assert problem in one_line(elimina("solve", radio, *options))


def test_bad_files_of_evidence_and_orders(elimina, radio, tmp_path):
    (tmp_path / "evid").write_text("1 0 99\n")
    (tmp_path / "order").write_text("0 1 2\n3 0\n")
    (tmp_path / "short").write_text("0 1 2\n")
    assert "evid:1: expected a value from 0 to 7 of variable 0, found 99" in one_line(
        elimina("solve", radio, "--evidence", "evid")
    )
    assert "order:2: variable '0' appears again" in one_line(elimina("plan", radio, "--order", "order"))
    assert "short: 27 of 30 variables are missing" in one_line(elimina("plan", radio, "--order", "short"))


def test_memory_that_runs_out(elimina, radio, monkeypatch):
    from elimina.running import sweep

    def fail(*arguments, **options):
        raise MemoryError("Unable to allocate 9 PiB")

    monkeypatch.setattr(sweep, "Encoder", fail)
    assert "ran out of memory while it solved the model" in one_line(elimina("solve", radio))
    assert "are more than 100000000 in all" in one_line(elimina("generate", "grid", "-d", 1000000, "g.wcsp"))


def test_numbers_of_thousands_of_digits(elimina, radio, tmp_path):
    digits = "1" * 5000
    cost = "{problem {n <9} variables {a 2} functions {f {scope [a] defaultcost %s costs [0 1]}}}"
    (tmp_path / "d.cfn").write_text(cost % digits)
    (tmp_path / "o").write_text(digits)
    assert "d.cfn:1: expected a cost that fits 64 bits" in one_line(elimina("solve", "d.cfn"))
    assert "o:1: there is no variable 111" in one_line(elimina("solve", radio, "--order", "o"))
    assert one_line(elimina("solve", radio, "--evidence", f"x0={digits}"))
    assert one_line(elimina("solve", radio, "--memory", "1e99", "--evidence", f"{digits}=0"))


def test_files_of_other_commands(elimina):
    for command in (["solve"], ["plan"], ["plot", "-o", "x.svg"]):
        assert "then 'minizinc --solver elimina'" in one_line(elimina(*command, "model.mzn"))
    assert "use 'elimina tsp'" in one_line(elimina("solve", "berlin52.tsp"))


def test_names_that_are_not_there(elimina, radio):
    assert "variable 'frequency'; it has 'x0', 'x1', " in one_line(elimina("solve", radio, "--evidence", "frequency=1"))
    assert "; did you mean 'x" in one_line(elimina("solve", radio, "--evidence", "x99=1"))


def test_targets_that_cannot_be_written(elimina, radio, tmp_path):
    (tmp_path / "folder.uai").mkdir()
    assert "unknown suffix '.txt'" in one_line(elimina("convert", radio, "out.txt"))
    assert "not written to standard output: name a file" in one_line(elimina("convert", radio, "-"))
    assert "cannot write nowhere/out.uai" in one_line(elimina("convert", radio, "nowhere/out.uai"))
    assert "cannot write folder.uai: Is a directory" in one_line(elimina("convert", radio, "folder.uai"))
    assert "conditional distribution" in one_line(elimina("convert", radio, "out.bif"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.uai"]


def test_no_assignment_for_a_result_file(elimina, tmp_path):
    (tmp_path / "no.wcsp").write_text("no 1 2 1 5\n2\n1 0 5 0\n")
    assert "there is no assignment to write in format uai" in one_line(elimina("solve", "no.wcsp", "--format", "uai"))


def test_a_file_without_a_command(elimina, tmp_path):
    (tmp_path / "m.wcsp").write_text("m 1 2 0 9\n2\n")
    ran = elimina("m.wcsp", "--json")
    assert ran.code == 2
    assert "Error: No such command 'm.wcsp': to solve a file, write 'elimina solve m.wcsp'" in ran.err


@pytest.mark.parametrize(
    ("reading", "named"), [(0.0, "--time-limit 0.1"), (0.06, "60 ms of the 0.1 s of --time-limit")]
)
@pytest.mark.parametrize("is_inner", [False, True])
def test_an_error_about_a_time_limit_names_the_whole_limit(reading, named, is_inner):
    """The call gets the rest of the limit, and a problem within it less than that."""
    call = Call("count-optima", signals.remaining(0.1, reading))
    if is_inner:
        time.sleep(0.02)
        call = InnerCall(call, lambda result: result, "inner")
    with pytest.raises(TimeLimitError) as raised, naming_time_limit(0.1, reading):
        call.result(lambda: time.sleep(0.3))
    text = str(raised.value)
    assert text.startswith("the time limit passed before anything was known; allow more time (")
    assert text.endswith(f"{named})")
