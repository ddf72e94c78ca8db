"""Runs of the commands that SIGINT or SIGTERM ends at a random moment: ``python -m tests.adversary.signals``."""

from __future__ import annotations

import json
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np

from elimina.io.model_files import write
from elimina.model.model import Model
from tests.adversary.case import Case, Defect, Setting

COMMANDS = (
    "solve auto",
    "solve search",
    "solve filter",
    "solve mbe",
    "solve eliminate",
    "solve slices",
    "solve scratch",
    "pr auto",
    "pr mbe",
    "pr eliminate",
    "mar auto",
    "mmap auto",
    "count auto",
    "tsp",
    "dcop dpop",
    "dcop adpop",
    "fzn",
    "fzn intermediate",
)

LONGEST = 20.0
"""Seconds that a first bound is waited for."""

TRACED = ("solve auto", "solve search", "solve filter", "fzn intermediate")
"""Commands that show bounds or solutions as they come."""

END = 15.0
"""Seconds that a run may take to end once it has its signal, on a loaded machine."""


def make(rng: random.Random, setting: Setting) -> Case:
    """Make a random run."""
    return {
        "command": rng.choice(COMMANDS),
        "model": rng.randrange(10**6),
        "moment": rng.choice(["bound", "bound", "time"]),
        "delay": round(rng.choice([rng.uniform(0, 0.3), rng.uniform(0, 3)]), 3),
        "signal": rng.choice(["SIGINT", "SIGTERM"]),
        "device": setting.device,
    }


def check(case: Case) -> None:
    """Run a command, end it, and look at what it leaves."""
    with tempfile.TemporaryDirectory() as folder:
        _Run(case, Path(folder)).check()


def smaller(case: Case) -> Iterator[Case]:
    """Yield simpler runs: none, for each takes seconds."""
    return iter(())


def script(case: Case) -> str:
    """Return a program that makes the run."""
    return f"from tests.adversary.signals import check\ncheck({case!r})"


class _Run:
    """A process with its files.

    Attributes:
        shows: The file in which the first bound or solution can be seen.
    """

    def __init__(self, case: Case, folder: Path) -> None:
        self.case, self.folder = case, folder
        self.out, self.err, self.trace = folder / "out", folder / "err", folder / "trace"
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        self.command, _, self.how = case["command"].partition(" ")
        self.arguments = self._arguments(random.Random(case["model"]))
        self.shows = self.out if self.command == "fzn" else self.trace

    def _arguments(self, rng: random.Random) -> list[str]:
        if self.command == "fzn":
            path = self.folder / "model.fzn"
            path.write_text(_flatzinc(rng))
            return ["-c", "from elimina.cli.flatzinc import main; main()", "-i" if self.how else "-s", str(path)]
        elimina = ["-m", "elimina"]
        if self.command == "tsp":
            path = self.folder / "model.tsp"
            path.write_text(_cities(rng))
            return [*elimina, "tsp", "--json", str(path)]
        if self.command in ("solve", "count", "dcop"):
            path = self.folder / "model.wcsp"
            write(_costs(rng, self.command), path)
        else:
            path = self.folder / "model.uai"
            write(_grid(rng), path)
        if self.command == "dcop":
            return [
                *elimina,
                "dcop",
                "--json",
                "--algo",
                self.how,
                *(["--ibound", "9"] * (self.how == "adpop")),
                str(path),
            ]
        task = "mpe" if self.command == "solve" else self.command
        given = [
            *elimina,
            "solve",
            "--json",
            "--task",
            task,
            "--threads",
            "1",
            "--device",
            self.case["device"],
            str(path),
        ]
        if task == "mpe":
            given += ["--trace", str(self.trace)]
        if task == "mmap":
            given += ["--query", "x0,x5,x9"]
        if self.how == "slices":
            return [*given, "--method", "eliminate", "--slices", "1000000000", "--memory", "10MB"]
        if self.how == "scratch":
            return [*given, "--method", "eliminate", "--memory", "10MB", "--scratch", str(self.scratch)]
        return [*given, "--method", self.how]

    def check(self) -> None:
        """Run, and check what is left."""
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            process = subprocess.Popen([sys.executable, *self.arguments], stdout=out, stderr=err)
        try:
            has_bound = self._wait(process)
            is_late = has_bound or catches(process.pid, signal.SIGTERM)
            process.send_signal(getattr(signal, self.case["signal"]))
            code = process.wait(END)
        except subprocess.TimeoutExpired:
            said = self.err.read_text()[-1500:]
            raise Defect(f"the run did not end within {END:g} s of its signal; standard error {said!r}") from None
        finally:
            process.kill()
            process.wait()
        self._check_end(code, has_bound, is_late)

    def _wait(self, process: subprocess.Popen[bytes]) -> bool:
        """Wait for the moment; return whether a bound was shown."""
        started = time.monotonic()
        if self.case["moment"] == "bound" and self.case["command"] in TRACED:
            while process.poll() is None and not self._is_shown() and time.monotonic() < started + LONGEST:
                time.sleep(0.01)
        until = time.monotonic() + self.case["delay"]
        while process.poll() is None and time.monotonic() < until:
            time.sleep(0.005)
        return self._is_shown()

    def _is_shown(self) -> bool:
        return self.shows.exists() and b"\n" in self.shows.read_bytes()

    def _check_end(self, code: int, has_bound: bool, is_late: bool) -> None:
        out, err = self.out.read_text(), self.err.read_text()
        shown = f"exit code {code}, standard output {out[:150]!r} ... {out[-150:]!r}, standard error {err[-1500:]!r}"
        ended = {"SIGINT": 130, "SIGTERM": 143}[self.case["signal"]]
        early = set() if is_late else {1, -2, -15}
        if code < 0 and is_whole(out):  # the interpreter takes its handlers back when it ends
            code = 0
        if code not in {0, ended, *early}:
            raise Defect(f"wrong exit code: {shown}")
        if "Traceback" in err and is_late:
            raise Defect(f"a traceback: {shown}")
        left = [str(path) for path in self.scratch.rglob("*")]
        if left:
            raise Defect(f"files are left in the scratch directory: {left}; {shown}")
        if self.command == "fzn":
            lines = [line for line in out.splitlines() if not line.startswith("%")]
            if lines and (not out.endswith("\n") or lines[-1][:5] not in ("-----", "=====")):
                raise Defect(f"an answer that is cut off: {shown}")
            return
        if has_bound and not out:
            raise Defect(f"bounds were known, and no answer is printed: {shown}")
        if out:
            self._check_answer(json.loads(out), code, has_bound, shown)

    def _check_answer(self, answer: dict[str, Any], code: int, has_bound: bool, shown: str) -> None:
        ended = None if code == 0 else {"SIGINT": "interrupt", "SIGTERM": "termination"}[self.case["signal"]]
        # A signal that comes as the answer is complete takes nothing from it.
        is_complete = answer.get("ended_by") is None and answer["status"] not in ("bounded", "feasible", "unknown")
        if answer.get("ended_by") != ended and not is_complete:
            raise Defect(f"the answer ended by {answer.get('ended_by')!r}, not {ended!r}: {shown}")
        if has_bound and answer["lower_bound"] is None and answer["upper_bound"] is None:
            raise Defect(f"bounds were known, and the answer has none: {shown}")


def is_whole(out: str) -> bool:
    """Return whether an answer that came to its own end was printed."""
    try:
        return json.loads(out).get("ended_by", "") is None
    except ValueError:
        return False


def catches(pid: int, number: int) -> bool:
    """Return whether a process handles a signal yet; an interpreter that has just started does not."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    caught = int(status.partition("SigCgt:")[2].split()[0], 16) if "SigCgt:" in status else 0
    return bool(caught >> (number - 1) & 1)


def _costs(rng: random.Random, command: str) -> Model:
    """A network that search and filtering work on for long."""
    numbers = np.random.default_rng(rng.randrange(2**32))
    count, domain, degree = (40, 3, 4) if command == "dcop" else (rng.choice([40, 60, 90]), 4, rng.choice([4, 6]))
    scopes = {tuple(sorted(rng.sample(range(count), 2))) for _ in range(count * degree // 2)}
    factors = [(scope, numbers.integers(0, 1000, (domain, domain))) for scope in sorted(scopes)]
    return Model.from_arrays([domain] * count, factors)


def _grid(rng: random.Random) -> Model:
    """A grid whose sum does not fit."""
    side = rng.choice([14, 18, 25])
    numbers = np.random.default_rng(rng.randrange(2**32))
    pairs = [(i, i + 1) for i in range(side * side) if i % side < side - 1]
    pairs += [(i, i + side) for i in range(side * (side - 1))]
    factors = [(pair, np.exp(2 * numbers.normal(size=(3, 3)))) for pair in pairs]
    return Model.from_arrays([3] * side * side, factors, sense="probability")


def _cities(rng: random.Random) -> str:
    count = rng.choice([150, 400])
    lines = [f"{i + 1} {rng.randrange(10**4)} {rng.randrange(10**4)}" for i in range(count)]
    head = f"NAME: random\nTYPE: TSP\nDIMENSION: {count}\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n"
    return head + "\n".join(lines) + "\nEOF\n"


def _flatzinc(rng: random.Random) -> str:
    """A quadratic assignment that takes long."""
    count = 14
    names = [f"x{i}" for i in range(count)]
    lines = [f"var 1..{count}: {name} :: output_var;" for name in names]
    costs = [f"c{i}" for i in range(count * 3)]
    lines += [f"var 0..{100 * count}: {name};" for name in costs]
    lines.append(f"var 0..{300 * count * count}: total :: output_var;")
    lines.append(f"constraint fzn_all_different_int([{','.join(names)}]);")
    for i, cost in enumerate(costs):
        a, b = rng.sample(names, 2)
        lines.append(f"var -{count}..{count}: d{i};\nvar 0..{count}: e{i};")
        lines.append(f"constraint int_lin_eq([1,-1,-1],[{a},{b},d{i}],0);\nconstraint int_abs(d{i},e{i});")
        lines.append(f"constraint int_lin_eq([{rng.randint(1, 99)},-1],[e{i},{cost}],0);")
    lines.append(f"constraint int_lin_eq([{','.join(['1'] * len(costs))},-1],[{','.join(costs)},total],0);")
    declared = [line for text in lines for line in text.split("\n")]
    declared.sort(key=lambda line: not line.startswith("var"))
    return "\n".join([*declared, "solve minimize total;", ""])


@click.command()
@click.option("--runs", default=500, help="Number of runs.")
@click.option("--seed", type=int, help="Seed; by default a fresh one.")
@click.option("--only", default="", help="Commands that begin with this.")
def main(runs: int, seed: int | None, only: str) -> None:
    """End commands by signals at random moments, and count what they leave behind."""
    # A shell's background job ignores interrupts, and so would every run in its first moments.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    seed = secrets.randbelow(10**9) if seed is None else seed
    click.echo(f"seed {seed}")
    done: Counter[str] = Counter()
    defects: dict[tuple[str, str], tuple[Case, str]] = {}
    number = 0
    while sum(done.values()) < runs:
        case = make(random.Random(f"signal {seed + number}"), Setting())
        number += 1
        if not case["command"].startswith(only):
            continue
        done[case["command"]] += 1
        try:
            check(case)
        except (Defect, ValueError) as error:
            key = case["command"], str(error).partition(":")[0]
            if key not in defects:
                click.echo(f"\n{script(case)}\n# {error}")
            defects.setdefault(key, (case, str(error)))
    click.echo(", ".join(f"{command}: {count}" for command, count in sorted(done.items())))
    click.echo(f"{runs} runs, {len(defects)} kinds of defects")
    sys.exit(1 if defects else 0)


if __name__ == "__main__":
    main()
