"""Handlers of signals, where a command runs within a program's own process."""

from __future__ import annotations

import signal

import pytest

from elimina.cli import flatzinc, main

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
