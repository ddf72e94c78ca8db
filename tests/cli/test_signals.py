"""Handlers of signals, where a command runs within a program's own process."""

from __future__ import annotations

import functools
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from elimina.cli import flatzinc, main, signals

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)


@pytest.mark.parametrize("arguments", [["--version"], ["solve", "missing.wcsp"], ["--nonsense"]])
@pytest.mark.parametrize("run", [main, flatzinc.main])
def test_a_program_gets_its_handlers_back(run, arguments, capsys) -> None:
    before = [signal.getsignal(number) for number in NUMBERS]
    with pytest.raises(SystemExit):
        run(arguments)
    capsys.readouterr()
    assert [signal.getsignal(number) for number in NUMBERS] == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


DROPPED = """
import gc, signal, sys, time
from elimina.cli import signals

class Interrupted:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

signals.catch()
try:
    one = Interrupted()
    del one
    time.sleep(20)
except KeyboardInterrupt:
    signals.finish(0)
"""


def test_an_interrupt_that_python_drops() -> None:
    ended = subprocess.run([sys.executable, "-c", DROPPED], capture_output=True, text=True, timeout=15)
    assert (ended.returncode, ended.stderr) == (130, "")


@pytest.mark.parametrize("run", [main, flatzinc.main])
def test_a_program_gets_its_hook_back(run, capsys) -> None:
    before = sys.unraisablehook
    with pytest.raises(SystemExit):
        run(["--version"])
    capsys.readouterr()
    assert sys.unraisablehook is before


def test_a_hook_that_was_set_meanwhile_is_kept(monkeypatch, capsys) -> None:
    """A thread that a call has abandoned leaves a hook that passes exceptions on to the one before."""
    reported: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)
    monkeypatch.setattr(signals._State, "hook", None)
    read = flatzinc._options

    def abandoning(arguments):
        sys.unraisablehook = functools.partial(lambda before, dropped: before(dropped), sys.unraisablehook)
        return read(arguments)

    monkeypatch.setattr(flatzinc, "_options", abandoning)
    for _ in range(3):
        with pytest.raises(SystemExit):
            flatzinc.main(["--version"])
    capsys.readouterr()
    dropped = SimpleNamespace(exc_type=ValueError)
    sys.unraisablehook(dropped)
    assert reported == [dropped]


def test_a_signal_that_comes_while_options_are_read_ends_the_command(monkeypatch, capsys) -> None:
    """Reading the model may wait forever: it may be a pipe without a writer."""
    read = flatzinc._options

    def interrupted(arguments):
        options = read(arguments)
        signal.raise_signal(signal.SIGTERM)
        return options

    monkeypatch.setattr(flatzinc, "_options", interrupted)
    monkeypatch.setattr(flatzinc, "_FlatZincRun", lambda *_: pytest.fail("the model was read"))
    with pytest.raises(SystemExit) as ended:
        flatzinc.main(["never.fzn"])
    assert ended.value.code == 128 + signal.SIGTERM
    assert "terminated" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("number", "line", "code"),
    [(signal.SIGINT, "interrupted", 130), (signal.SIGTERM, "terminated", 143), (signal.SIGALRM, "time limit", 0)],
)
def test_each_signal_that_is_handled_has_a_word(number, line, code, monkeypatch, capfd, tmp_path) -> None:
    """An alarm may come from outside, too."""
    search = flatzinc._FlatZincRun._search

    def interrupted(run, *arguments):
        signal.raise_signal(number)
        return search(run, *arguments)

    monkeypatch.setattr(flatzinc._FlatZincRun, "_search", interrupted)
    model = tmp_path / "pigeons.fzn"
    holes = [f"var 1..11: x{pigeon};\n" for pigeon in range(12)]
    pairs = [f"constraint int_ne(x{a}, x{b});\n" for a in range(12) for b in range(a)]
    model.write_text("".join([*holes, *pairs, "solve satisfy;\n"]))
    with pytest.raises(SystemExit) as ended:
        flatzinc.main([str(model)])
    assert (ended.value.code, capfd.readouterr().out) == (code, f"=====UNKNOWN=====\n% {line}\n")
