"""The command line as a process: interrupts, closed pipes, full disks, terminals; and the smaller commands."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import shlex
import signal
import subprocess
import sys
import time
import types
from itertools import combinations
from pathlib import Path

import pytest

import elimina as library
from elimina.cli import main
from tests.cli.conftest import EXAMPLES
from tests.io.test_net import NET


def interrupt(process, busy, number=signal.SIGINT):
    """Send a signal to a process once it has used so many seconds of a processor, far less than its work takes."""
    ticks = os.sysconf("SC_CLK_TCK")
    for _ in range(600):
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        if int(fields[11]) + int(fields[12]) > busy * ticks:
            break
        time.sleep(0.1)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err.strip()


@pytest.fixture
def slow(elimina, tmp_path):
    """A problem that takes a while to order, and one that takes some seconds to solve."""
    elimina("generate", "grid", "--side", 40, "-d", 3, "grid.wcsp")
    elimina("generate", "random", "-n", 60, "--p1", 0.5, "--p2", 0, "hard.wcsp")
    functions = "".join(f"2 {i} {j} 1 1\n0 1 0\n" for i, j in combinations(range(4), 2))
    (tmp_path / "dense.wcsp").write_text(f"dense 4 700 6 1000\n700 700 700 700\n{functions}")


def test_interrupts(slow, start):
    planning = interrupt(start("plan", "grid.wcsp", "--order-time", 60), 1.5)
    solving = interrupt(start("solve", "dense.wcsp", "--threads", 1, "--method", "eliminate"), 2.5)
    assert planning == (130, "", "interrupted")
    code, out, err = solving
    assert (code, err) == (130, "")
    assert "status:     bounded\nended by:   interrupt\n" in out


@pytest.mark.parametrize("method", ["filter", "search"])
def test_an_interrupt_leaves_bounds(slow, start, method):
    code, out, err = interrupt(start("solve", "hard.wcsp", "--method", method, "--order-time", 0.1), 2.5)
    assert (code, err) == (130, "")
    assert "status:     bounded" in out
    assert "assignment: x0=" in out


ENDINGS = pytest.mark.parametrize(
    ("number", "code", "reason"), [(signal.SIGINT, 130, "interrupt"), (signal.SIGTERM, 143, "termination")]
)


@ENDINGS
def test_a_signal_after_the_first_bound(slow, start, tmp_path, number, code, reason):
    process = start("solve", "hard.wcsp", "--json", "--threads", 1, "--trace", "bounds.csv")
    trace = tmp_path / "bounds.csv"
    while process.poll() is None and not (trace.exists() and "\n" in trace.read_text()):
        time.sleep(0.01)
    process.send_signal(number)
    answer = json.loads(process.communicate(timeout=60)[0])
    assert (process.returncode, answer["status"], answer["ended_by"]) == (code, "bounded", reason)
    assert 0 <= answer["lower_bound"] <= answer["upper_bound"] == answer["value"]


@ENDINGS
def test_a_signal_leaves_what_agents_know(slow, start, number, code, reason):
    process = start("dcop", "--json", "--algo", "adpop", "--ibound", 9, "--threads", 1, "hard.wcsp")
    returncode, out, err = interrupt(process, 2.5, number)
    answer = json.loads(out)
    assert (returncode, err, answer["status"], answer["ended_by"]) == (code, "", "bounded", reason)
    assert 0 <= answer["lower_bound"] <= answer["upper_bound"] == answer["value"]


def test_an_interrupt_while_it_loads(elimina, monkeypatch):
    class Interrupted(types.ModuleType):
        def __getattr__(self, name):
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "elimina.cli.commands", Interrupted("elimina.cli.commands"))
    assert elimina("solve", "x.wcsp") == (130, "", "interrupted\n")


HELD = """
import os, sys, time, types
class Slow(types.ModuleType):
    def __getattr__(self, name):
        if name not in ("run", "solve"):
            raise AttributeError(name)
        os.write(1, b"loading\\n")
        time.sleep({seconds})
        return lambda arguments: print("ran")
sys.modules["{module}"] = Slow("{module}")
from elimina.cli import main
main(["solve", "x.wcsp"])
"""
SIGNALS = pytest.mark.parametrize(("number", "word"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")])


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (["--version"], ("numpy",)),
        (["--help"], ("numpy",)),
        (
            ["solve", str(EXAMPLES / "radio.wcsp")],
            (
                *("elimina.dcop", "elimina.viz", "elimina.cp", "urllib.request", "numpy.ma"),
                *("elimina.methods.batch", "elimina.methods.best_assignments", "elimina.methods.bound_optimisation"),
                *("elimina.methods.estimation", "elimina.methods.mini_buckets", "elimina.methods.proposals"),
                *("json", "shutil", "subprocess", "click.shell_completion"),
            ),
        ),
        (["solve", str(EXAMPLES / "pump.bif"), "--task", "mar"], ("elimina.dcop", "elimina.viz", "urllib.request")),
        (["cp", str(EXAMPLES / "queens.fzn")], ("elimina.dcop", "elimina.viz", "elimina.api")),
        (["tsp", str(EXAMPLES / "towns.tsp")], ("elimina.dcop", "elimina.viz", "elimina.api")),
    ],
)
def test_a_command_loads_what_it_needs(arguments, absent):
    code = "import atexit, sys, elimina.cli as c; atexit.register(lambda: print(*sys.modules)); c.main(sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert done.returncode == 0
    assert not set(absent) & set(done.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "is_first"),
    [
        (["solve", str(EXAMPLES / "radio.wcsp")], True),
        (["cp", str(EXAMPLES / "queens.fzn")], True),
        (["completion", "zsh"], False),
    ],
)
def test_numpy_is_loaded_before_the_modules_of_a_command(arguments, is_first):
    """Below them, its imports nest deeper than one block of Python's frames. A command without NumPy loads none."""
    code = "import atexit, sys, elimina.cli as c; atexit.register(lambda: print(*sys.modules)); c.main(sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    modules = done.stdout.splitlines()[-1].split()
    assert ("numpy" in modules) == is_first
    if is_first:
        assert modules.index("numpy") < modules.index(f"elimina.cli.{arguments[0]}")


def test_a_profiler_gets_its_figures(tmp_path):
    """A command ends without the interpreter's own end, unless something waits for that."""
    command = [sys.executable, "-m", "cProfile", "-o", "profile", "-m", "elimina", "--version"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "profile").exists()


@SIGNALS
@pytest.mark.parametrize("module", ["elimina.cli.commands", "elimina.cli.solve"])
def test_a_signal_while_modules_load(number, word, module):
    """It waits for the import, so that nothing is left half loaded; a second one ends the process at once."""
    for seconds, count in ((1, 1), (60, 2)):
        command = [sys.executable, "-c", HELD.format(seconds=seconds, module=module)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "loading\n"
        for _ in range(count):
            process.send_signal(number)
            time.sleep(0.2)
        out, err = process.communicate(timeout=50)
        assert (process.returncode, out, err) == (128 + number, "", f"{word}\n" if count == 1 else "")


def takes(process, number):
    """Return whether a process holds a signal back or handles it; before the launcher's first lines it does neither."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    masks = [int(status.partition(f"{name}:")[2].split()[0], 16) for name in ("SigBlk", "SigCgt")]
    return any(mask >> (number - 1) & 1 for mask in masks)


@SIGNALS
@pytest.mark.parametrize(
    ("program", "arguments"), [("elimina", ["plan", "slow.wcsp", "--order-time", "60"]), ("fzn-elimina", ["slow.fzn"])]
)
def test_a_signal_while_python_starts(tmp_path, number, word, program, arguments, elimina):
    """Whenever it comes from the launcher's first lines on."""
    elimina("generate", "grid", "--side", 40, "-d", 3, "slow.wcsp")
    os.mkfifo(tmp_path / "slow.fzn")  # which nothing is written to
    command = [str(Path(sys.executable).parent / program), *arguments]
    for delay in (0, 0.005, 0.01, 0.02, 0.05):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
        while not takes(process, number):
            time.sleep(0.001)
        time.sleep(delay)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 128 + number
        assert (out, err) in (("", f"{word}\n"), (f"=====UNKNOWN=====\n% {word}\n", ""))


def test_a_pipe_that_is_closed_early(start, radio):
    read, write = os.pipe()
    process = start("solve", radio, stdout=write)
    os.close(read)
    os.close(write)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (1, "")


def test_a_full_disk(start, radio):
    with open("/dev/full", "w") as full:
        process = start("solve", radio, stdout=full)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (1, "elimina: standard output: No space left on device\n")


def test_characters_that_the_encoding_of_the_output_lacks(start, tmp_path):
    rain, even = library.Variable("\u96e8", 2, ["nö", "yes"]), library.Table([0], [0.5, 0.5])
    model = library.Model([rain], [even], sense="probability", children=[0])
    library.write(model, tmp_path / "rain.xmlbif")
    process = start(
        "solve", "rain.xmlbif", "--task", "mar", env={**os.environ, "PYTHONIOENCODING": "latin-1"}, text=False
    )
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, b"")
    assert out.splitlines()[-1].split() == [b"\\u96e8", "nö".encode("latin-1"), b"0.500000", b"yes", b"0.500000"]


@pytest.mark.parametrize("command", ["elimina", "fzn-elimina"])
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed(command, closed, radio, tmp_path):
    """A command answers without its other streams, and says so where it cannot write the answer."""
    (tmp_path / "a.fzn").write_text("var 2..2: x :: output_var;\nsolve satisfy;\n")
    program = {"elimina": "from elimina.cli import main", "fzn-elimina": "from elimina.cli.flatzinc import main"}
    given = {"elimina": ["solve", str(radio)], "fzn-elimina": [str(tmp_path / "a.fzn")]}[command]
    line = shlex.join([sys.executable, "-c", f"{program[command]}; main()", *given])
    ended = subprocess.run(["sh", "-c", f"{line} {closed}"], capture_output=True, text=True, timeout=60, check=False)
    if ">&-" not in closed.replace("2>&-", ""):
        assert (ended.returncode, ended.stderr) == (0, "")
        assert ended.stdout
    else:
        assert ended.returncode == 1
        assert ended.stderr == ("" if "2>&-" in closed else f"{command}: standard output: Bad file descriptor\n")


def test_a_bar_on_a_terminal_only(slow, start):
    master, slave = pty.openpty()
    process = start("solve", "dense.wcsp", "--time-limit", 3, "--threads", 1, "--method", "eliminate", stderr=slave)
    os.close(slave)
    shown = b""
    while True:
        try:
            chunk = os.read(master, 4096)
        except OSError:
            break
        if not chunk:
            break
        shown += chunk
    out, _ = process.communicate(timeout=30)
    os.close(master)
    assert b"width 3, " in shown
    assert b"%" in shown
    assert "width 3, " not in out


@pytest.mark.parametrize("suffix", ["uai", "uai.gz", "wcsp.xz", "cfn"])
def test_convert_keeps_the_optimum(elimina, radio, suffix):
    code, out, err = elimina("convert", radio, f"out.{suffix}")
    assert (code, out) == (0, "")
    lacks = f"elimina: out.{suffix} lacks the upper bound 5932: assignments that cost as much or more are"
    assert err == (f"{lacks} improbable there, not impossible\n" if "uai" in suffix else "")
    value = json.loads(elimina("solve", f"out.{suffix}", "--format", "json").out)["value"]
    assert value == pytest.approx(-1352 if "uai" in suffix else 1352)


def test_convert_replaces_no_source(elimina, radio, tmp_path):
    (tmp_path / "link.wcsp").symlink_to(radio)
    before = Path(radio).read_bytes()
    for target in (radio, tmp_path / "link.wcsp"):
        ran = elimina("convert", radio, target)
        assert (ran.code, ran.out) == (1, "")
        assert f"cannot write {target}: it is an input of this command; name another file (TARGET)" in ran.err
    assert Path(radio).read_bytes() == before


def test_convert_networks(elimina, tmp_path):
    (tmp_path / "a.net").write_text(NET.replace('my \\"net\\"', "rain"))
    converted = elimina("convert", "a.net", "b.xmlbif.gz", "--no-check")
    assert (converted.code, converted.out) == (0, "")
    assert "rows of 'c' do not sum to 1" in converted.err
    assert elimina("convert", "b.xmlbif.gz", "c.bif", "--no-check") == (0, "", "")
    answers = [
        elimina("solve", name, "--format", "json", "--no-check").out for name in ("a.net", "b.xmlbif.gz", "c.bif")
    ]
    assert len({json.dumps(json.loads(a)["assignment"]) for a in answers}) == 1
    assert json.loads(answers[0])["assignment"] == {"rain": "no", "wet": "very % wet", "c": "only"}


@pytest.mark.parametrize(
    ("arguments", "variables", "functions"),
    [
        (["grid", "--side", 4, "-d", 3], 16, 24),
        (["random", "-n", 10, "-d", 3, "--p1", 0.3], 10, 14),
        (["scalefree", "-n", 10, "-d", 3], 10, 17),
    ],
)
def test_generate(elimina, tmp_path, arguments, variables, functions):
    ran = elimina("generate", *arguments, "--seed", 7, "a.wcsp")
    assert ran == (0, f"a.wcsp: {variables} variables, {functions} functions\n", "")
    model = library.read(tmp_path / "a.wcsp")
    assert (len(model.variables), len(model.factors)) == (variables, functions)
    elimina("generate", *arguments, "--seed", 7, "b.wcsp")
    elimina("generate", *arguments, "--seed", 8, "c.wcsp")
    texts = [(tmp_path / f"{name}.wcsp").read_text().split("\n", 1)[1] for name in "abc"]
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize(
    "command", [[], ["solve"], ["plan"], ["convert"], ["generate"], ["generate", "grid"], ["plot"]]
)
def test_help(elimina, command):
    code, out, err = elimina(*command, "--help")
    assert (code, err) == (0, "")
    assert out.startswith("Usage: elimina")
    assert elimina(*command, "-h").out == out


def test_version(elimina):
    assert elimina("--version").out == f"elimina, version {library.__version__}\n"


KILLED = """
import os, signal
from elimina.cli import main
from elimina.running import checkpoint
write = checkpoint.Checkpoint._write
def write_and_die(kept, state):
    write(kept, state)
    if state.get("done"):
        os.kill(os.getpid(), signal.SIGKILL)
checkpoint.Checkpoint._write = write_and_die
checkpoint.SAVE_SECONDS, checkpoint.WRITING_SHARE = 0.0, float("inf")
main()
"""


def test_a_killed_run_goes_on(elimina, tmp_path):
    """It is killed once the first state with finished slices is on the disk, however fast the machine is."""
    elimina("generate", "grid", "--side", 9, "-d", 4, "--p2", 0.2, "grid.wcsp")
    sliced = ["grid.wcsp", "--device", "cpu", "--memory", "80KB", "--slices", 10**6, "--format", "json"]
    expected = json.loads(elimina("solve", *sliced).out)
    assert expected["stats"]["slices"] > 1000
    command = [sys.executable, "-c", KILLED, "solve", *map(str, sliced), "--checkpoint", "kept"]
    killed = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, timeout=60)
    assert (killed.returncode, killed.stdout) == (-signal.SIGKILL, b"")
    found = json.loads(elimina("solve", *sliced, "--checkpoint", "kept").out)
    assert (found["status"], found["value"]) == (expected["status"], expected["value"])
    assert 0 < found["stats"]["resumed_slices"] < found["stats"]["slices"]
    assert not (tmp_path / "kept").exists()


def test_a_path_that_is_too_long_leaves_the_output_of_a_program_alone(capfd, tmp_path):
    before = os.fstat(1)
    with pytest.raises(SystemExit) as ended:
        main(["solve", str(EXAMPLES / "radio.wcsp"), "-o", str(tmp_path / ("x" * 300))])
    assert ended.value.code == 1
    assert capfd.readouterr().err.endswith("File name too long\n")
    assert os.path.samestat(os.fstat(1), before)
    with contextlib.redirect_stdout(io.StringIO()), pytest.raises(SystemExit):
        main(["solve", str(EXAMPLES / "radio.wcsp"), "-o", str(tmp_path / ("x" * 300))])
