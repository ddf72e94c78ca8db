"""Blocks of code in the documentation: finds them, runs them in a folder of their own, and compares what they print.

A block is a fence of ``sh`` or ``python``, or a command alone in the last cell of a table's row. A ``text`` fence right
after it is what the block prints. A comment before it says more: ``<!-- needs: minizinc, yaml -->`` names programs,
modules (``module minizinc`` where a program has the name, too) or ``gpu``, without which the block is skipped, and
``<!-- not run: REASON -->`` takes it out, for one of the reasons in ``NOT_RUN``.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from elimina.cli import main
from tests.conftest import cuda_devices

ROOT = Path(__file__).parents[1]
NOT_RUN = {
    "main": "the gate runs it",
    "test": "the gate runs it",
    "installs packages": "the tests run in an environment that has them",
    "needs several machines": "there is one",
    "another program's code": "shown beside ours for comparison",
    "takes minutes": "longer than a test may take",
    "contributors": "the gate runs these commands",
}
BLOCK = re.compile(
    r"^(?:<!-- (?P<comment>[^\n]*) -->\n+)?```(?P<language>sh|python)\n(?P<text>.*?)^```\n"
    r"(?:\n*```text\n(?P<printed>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)
COMMAND_OF_A_TABLE = re.compile(r"^\|.*\| `(?P<text>(?:elimina|fzn-elimina) [^`]*)` \|$", re.MULTILINE)
IMPLIED_NEEDS = {
    "elimina plot": "matplotlib",
    "--local": "distributed",
    ".parquet": "pyarrow",
    "meetings.yaml": "yaml",
    "minizinc --solver": "minizinc",
}
# Plain commands, without the shell's signs, and without workers: these are processes of their own.
OWN_COMMANDS = re.compile(r"(?:elimina (?!.*--local)[^\n|<>&$;*]*\n)+")
TIME = re.compile(r"\b\d+(\.\d+)?(e-?\d+)? (us|ms|s|min)\b")
SIZE = re.compile(r"\b(\d+(?:\.\d+)?(?:e-?\d+)?) (bytes|[KMG]iB)\b")
UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
TOLERANCE = 0.05  # share by which a size may differ from the one on the page
SECONDS = 120  # limit on a block of commands, several times what the slowest takes on a loaded machine


class Block(NamedTuple):
    """A block of a page, what it should print, and what it needs."""

    line: int
    language: str
    text: str
    printed: str | None
    needs: tuple[str, ...]
    not_run: str | None

    def missing(self) -> str | None:
        """The first thing that the block needs and that is not here."""
        return next((need for need in self.needs if not is_here(need)), None)


def is_here(need: str) -> bool:
    if need == "gpu":
        return cuda_devices() > 0
    if need.startswith("module "):
        return importlib.util.find_spec(need.removeprefix("module ")) is not None
    return shutil.which(need) is not None or importlib.util.find_spec(need) is not None


def blocks(page: Path) -> Iterator[Block]:
    """Return the blocks of a page in their order; a command alone in a table's cell is one, too."""
    text = page.read_text()
    found = [*BLOCK.finditer(text), *COMMAND_OF_A_TABLE.finditer(text)]
    for match in sorted(found, key=re.Match.start):
        parts = {"comment": "", "language": "sh", "printed": None, **match.groupdict()}
        comment, code = parts["comment"] or "", f"{parts['text'].strip()}\n"
        needs = comment.removeprefix("needs: ").split(", ") if comment.startswith("needs: ") else []
        not_run = None if needs or not comment else comment.removeprefix("not run: ")
        needs += [need for sign, need in IMPLIED_NEEDS.items() if sign in code]
        line = text.count("\n", 0, match.start("text")) + 1
        yield Block(line, parts["language"], code, parts["printed"], tuple(needs), not_run)


def plain(text: str) -> str:
    """Return the text without what differs between runs and machines: times, limits of memory, runs of spaces."""
    text = TIME.sub("FIGURE", text)
    text = re.sub(r"^(memory limit:).*$", r"\1", text, flags=re.MULTILINE)
    return "\n".join(re.sub(r" +", " ", line).rstrip() for line in text.splitlines())


def agrees(expected: str, printed: str) -> bool:
    """Compare a text with the expected one: ``...`` stands for the rest of a line, alone on a line for any lines.

    Sizes of memory may differ by ``TOLERANCE``.
    """
    lines = plain(expected).splitlines()
    pattern = "".join(r"(?:.*\n)*" if line == "..." else _pattern(line) + r"\n" for line in lines)
    match = re.fullmatch(pattern, f"{plain(printed)}\n")
    if match is None:
        return False
    sizes = [size for line in lines for size in SIZE.findall(line)]
    return all(
        abs(_bytes(*size) - _bytes(*found)) <= TOLERANCE * _bytes(*size)
        for size, found in zip(sizes, zip(match.groups()[::2], match.groups()[1::2], strict=True), strict=True)
    )


def _pattern(line: str) -> str:
    """Return the pattern of a line; each size of memory has two groups, number and unit."""
    parts = SIZE.split(line)
    texts = [re.escape(part).replace(re.escape("..."), ".*") for part in parts[::3]]
    return SIZE.pattern.join(texts)


def _bytes(number: str, unit: str) -> float:
    return float(number) * UNITS[unit]


class Runner:
    """Runs the blocks of one page in turn, in one folder that has ``examples``; Python's names live as long."""

    def __init__(self, folder: Path, replaced: Callable[[str], str] = lambda text: text) -> None:
        self.folder = folder
        self.names: dict[str, Any] = {"__name__": "page"}
        self.replaced = replaced
        shutil.copytree(ROOT / "examples", folder / "examples")

    def run(self, block: Block) -> str:
        """Run a block and return its standard output."""
        text = self.replaced(block.text)
        if block.language == "sh":
            if OWN_COMMANDS.fullmatch(text):
                return "".join(map(self._own_command, text.splitlines()))
            return self._process(["bash", "-euo", "pipefail", "-c", text])
        if "__main__" in text:  # worker processes import the file
            (self.folder / "program.py").write_text(text)
            return self._process([sys.executable, "program.py"])
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(text, self.names)
        lines = out.getvalue().splitlines()
        for wanted in re.findall(r"^ *print\(.*\)  +# (.*)", text, re.MULTILINE):
            assert any(agrees(wanted, line) for line in lines), (wanted, lines)
        return out.getvalue()

    @staticmethod
    def _own_command(line: str) -> str:
        """Run a command of elimina within this process, where its modules are loaded."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
            main(shlex.split(line)[1:])
        assert not ended.value.code, f"{line}\n{out.getvalue()}\n{err.getvalue()}"
        return out.getvalue()

    def _process(self, command: list[str]) -> str:
        places = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        environment = {**os.environ, "PATH": places, "HOME": str(self.folder)}
        ran = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        assert ran.returncode == 0, f"{command[-1]}\n{ran.stdout}\n{ran.stderr}"
        return ran.stdout
