"""Folders of FlatZinc files and MiniZinc models: is each answer right, and how fast; reading a large file.

    python bench/flatzinc.py PATH... [--limit 10] [--gecode fzn-gecode] [--all] [--options=-f] [--most 3] [--parse 100]

A path is a file or a folder; an .mzn is compiled by `minizinc` with each .dzn beside it or in `dzn`. All variables are
shown, and an evaluator that shares nothing with the solver (`tests/reference/flatzinc.py`) looks at the first solutions
and the last ones. A verdict compares with answers that are known (a header of MiniZinc's tests, JaCoP's reference
output, literature) and with Gecode's. `--all` asks for all solutions, and compares their number.
With `--gecode`, the same FlatZinc goes to Gecode, its all_different as `gecode_all_different_int` with `:: domain`, its
circuit as `gecode_circuit`; a model that names other constraints of ours is compiled again, with Gecode's own
(`gecode_library.py`), or has no peer. Seconds are processor time of whole processes. `--options` go to both programs;
`--most` is for the data files of a model: the smallest ones. A summary of verdicts ends the table.
`--parse 100` writes a file of 100 MB of random linear constraints, reified comparisons and clauses, and reads it.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import random
import re
import resource
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))
from bench import gecode_library
from tests.reference import flatzinc as reference

PROGRAM = Path(sys.executable).parent / "fzn-elimina"
COLUMNS = "{:44} {:12} {:12} {:>10} {:>7} {:>9} {:>7} | {:12} {:>10} {:>7} {:>9} {:>7}"
OURS = re.compile(r"^\s*predicate\s+(?:fzn|elimina)_(?!all_different_int\b|circuit\b)", re.M)
UNCHECKED = 8_000_000  # characters of FlatZinc that take the evaluator too long
CHECKED = 20  # solutions, from the first one on, and as many up to the last one
PRINTED = 4_000_000  # characters of printed solutions that are compared, from either end

# Objectives and numbers of solutions, by the end of an instance's name.
OPTIMA = {"golomb 03": 3, "golomb 04": 6, "golomb 05": 11, "golomb 06": 17, "golomb 07": 25, "golomb 08": 34}
OPTIMA |= {"golomb 09": 44, "golomb 10": 55, "golomb 11": 72, "golomb4": 6, "golomb9": 44, "tsp_burma14": 3323}
OPTIMA |= {"tsp_ulysses16": 6859, "tsp_gr21": 2707} | {f"golomb_{n:02}": OPTIMA[f"golomb {n:02}"] for n in range(4, 9)}
COUNTS = {"nqueens_4": 2, "nqueens_8": 92, "queens 004": 2, "queens 008": 92, "costas_6": 58, "magicsq_3": 8}
COUNTS |= {"langford_2_3": 2, "langford_2_4": 2, "langford_2_7": 52, "langford_2_8": 300}


class Answer(NamedTuple):
    status: str
    objective: str = ""
    solutions: str = ""
    nodes: str = ""
    seconds: float = 0.0
    reason: str = ""

    @property
    def is_complete(self) -> bool:
        return self.status in ("complete", "infeasible")

    def columns(self) -> tuple[str, ...]:
        return (self.status, self.objective, self.solutions, self.nodes, f"{self.seconds:.2f}")


class Instance(NamedTuple):
    name: str
    model: Path
    data: Path | None


def spent() -> float:
    """Processor time of all processes that have ended; others on the machine do not count."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def answer_of(command: list[str], seconds: float, printed: Path) -> Answer:
    """Runs a solver; what it prints is in the file afterwards."""
    start = spent()
    try:
        with printed.open("w") as file:
            result = subprocess.run(
                command, stdout=file, stderr=subprocess.PIPE, text=True, timeout=seconds + 30, check=False
            )
    except subprocess.TimeoutExpired:
        return Answer("no end", seconds=spent() - start)
    elapsed, (first, last) = spent() - start, ends(printed)
    if result.returncode != 0 or "Error" in result.stderr:
        reason = (result.stderr.strip().splitlines() or [f"exit {result.returncode}"])[-1]
        return Answer("unsupported" if "unsupported" in reason else "error", seconds=elapsed, reason=reason)
    figures = dict(re.findall(r"%%%mzn-stat: (\w+)=(\S+)", last))
    status = "satisfied" if "----------" in first else "unknown"
    if "==========" in last:
        status = "complete"
    if "=====UNSATISFIABLE=====" in last:
        status = "infeasible"
    return Answer(status, figures.get("objective", ""), figures.get("solutions", ""), figures.get("nodes", ""), elapsed)


def ends(printed: Path) -> tuple[str, str]:
    """The beginning and the end of what was printed; all of it twice if it is short."""
    with printed.open(errors="replace") as file:
        first = file.read(PRINTED)
        size = printed.stat().st_size
        if size <= PRINTED:
            return first, first
        file.seek(size - PRINTED)
        return first, file.read()


def faults(text: str, printed: Path) -> list[str]:
    """Return what the solutions violate, by the independent evaluator; `text` shows all variables."""
    model, (first, last) = reference.read(text), ends(printed)
    blocks = first.split("----------\n")[:-1][:CHECKED] + last.split("----------\n")[1:-1][-CHECKED:]
    found = []
    for block in dict.fromkeys(blocks):
        found += reference.violated(model, reference.parse_solutions(block + "----------\n")[0])
    return found


def verdict(ours: Answer, peer: Answer | None, known: dict[str, str]) -> tuple[str, str]:
    """Right, out of time, unsupported or WRONG; and why."""
    if ours.status in ("unsupported", "error", "no end", "not compiled"):
        return ("WRONG" if ours.status in ("error", "no end") else ours.status), ours.reason
    if ours.reason:
        return "WRONG", ours.reason
    others = [known] if known else []
    if peer and peer.is_complete:
        others.append({"status": peer.status, "objective": peer.objective, "solutions": peer.solutions})
    for other in others:
        if (other["status"] == "infeasible") != (ours.status == "infeasible") and (
            ours.is_complete or ours.solutions != "0"
        ):
            return "WRONG", f"{ours.status}, but {other['status']} is known"
        for kind in ("objective",) if ours.objective else ("solutions",):
            one, two = getattr(ours, kind), other.get(kind, "")
            if ours.is_complete and one and two and float(one) != float(two):
                return "WRONG", f"{one} {kind}, but {two} are known"
    is_done = ours.is_complete or (ours.status == "satisfied" and not ours.objective)
    return ("right" if is_done else "out of time"), ""


def known_of(instance: Instance, every: bool) -> dict[str, str]:
    """Return what is written about an instance: status, objective, number of solutions."""
    known = {"status": "satisfied"}
    for kind, table in {"objective": OPTIMA, "solutions": COUNTS if every else {}}.items():
        for value in (value for name, value in table.items() if instance.name.endswith(name)):
            known[kind] = str(value)
    out = instance.model.with_suffix(".out")
    if instance.model.suffix == ".fzn" and out.exists():
        known["source"] = out.name
        if "=====UNSAT" in out.read_text():
            known["status"] = "infeasible"
    # Radiation's objective depends on bounds that depend on MiniZinc's version.
    if instance.model.suffix == ".mzn" and instance.data is None and instance.name != "radiation":
        objective = re.findall(r"^ *objective: (-?\d+) *$", instance.model.read_text(errors="replace"), re.M)
        known |= {"objective": objective[0]} if len(set(objective)) == 1 else {}
    return known if len(known) > 1 else {}


def for_gecode(text: str) -> str | None:
    """The FlatZinc with Gecode's names; None: it has none for something."""
    if OURS.search(text):
        return None
    text = re.sub(r"^\s*predicate\b[^;]*;", "", text, flags=re.M)
    different = r"\b(?:fzn_all_different_int|all_different_int|jacop_alldiff)(\((?:[^()]|\([^()]*\))*\))"
    text = re.sub(different, r"gecode_all_different_int\1 :: domain", text)
    return re.sub(r"\b(?:fzn|elimina|jacop)_circuit\(", "gecode_circuit(1, ", text)


GOAL = re.compile(r"\bsolve\b[^;]*\b(?:minimize|maximize)\s+(\w+)\s*(?:\[(\d+)\]\s*)?;")


def goal_shown(text: str) -> str:
    """Make the objective's variable an output: Gecode's statistics do not have it."""
    goal = GOAL.search(text)
    return re.sub(rf"(\bvar\b[^:;]*:\s*{goal[1]}\b)", r"\1 :: output_var", text) if goal else text


def objective(text: str, printed: Path) -> str:
    """The last value of the objective, where that is shown."""
    goal = GOAL.search(text)
    if goal is None:
        return ""
    _, last = ends(printed)
    if goal[2]:
        values = [row.split(",")[int(goal[2]) - 1] for row in re.findall(rf"^{goal[1]} = .*\[(.*)\]", last, re.M)]
    else:
        values = re.findall(rf"^{goal[1]} = (-?\d+);", last, re.M)
    return values[-1].strip() if values else ""


def alone(folder: Path) -> dict[str, str]:
    """An environment without the user's solvers: MiniZinc prefers one of the same id to the one that it is given."""
    return {**os.environ, "HOME": str(folder)}


def compiled(instance: Instance, solver: str, path: Path) -> str:
    """Writes the FlatZinc; what the compiler says if there is none."""
    data = [str(instance.data)] if instance.data else []
    source = instance.model.read_text(errors="replace")
    if not data and re.search(r"^int: *n;", source, re.M) and not re.search(r"^ *n *=", source, re.M):
        data = ["-D", "n=10"]
    command = ["minizinc", "-c", "--solver", solver, "--fzn", str(path), "--no-output-ozn", str(instance.model), *data]
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, timeout=120, check=False, env=alone(path.parent)
        )
    except subprocess.TimeoutExpired:
        return "the compiler takes more than 120 s"
    return " ".join(result.stderr.split())[-150:] if result.returncode else ""


def unpacked(path: Path, folder: Path) -> Path:
    if path.suffix != ".xz":
        return path
    plain = folder / path.stem
    plain.write_bytes(lzma.decompress(path.read_bytes()))
    return plain


def instances(paths: list[Path], folder: Path, most: int | None) -> Iterator[Instance]:
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.name.endswith((".fzn", ".fzn.xz")):
                yield Instance(file.name.split(".")[0], unpacked(file, folder), None)
            elif file.suffix == ".mzn":
                data = sorted(each for name in ("*.dzn*", "dzn/*.dzn*") for each in file.parent.glob(name))
                if most is not None:
                    data = sorted(data, key=lambda each: each.stat().st_size)[:most]
                for each in data:
                    yield Instance(f"{file.stem} {each.name.split('.')[0]}", file, unpacked(each, folder))
                if not data:
                    yield Instance(file.stem, file, None)


class Bench:
    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.folder = options, folder
        install = [PROGRAM.with_name("elimina"), "install-minizinc", "--folder", folder]
        subprocess.run(install, check=True, capture_output=True)
        assert json.loads((folder / "elimina.msc").read_text())["name"] == "elimina"
        if options.gecode:
            self.native = gecode_library.write(folder / "gecode", options.gecode)

    def run(self) -> None:
        print(COLUMNS.format("instance", "verdict", *(["status", "objective", "found", "nodes", "seconds"] * 2)))
        listed = list(instances(self.options.paths, self.folder, self.options.most))
        totals: dict[str, list[str]] = {}
        for number, instance in enumerate(listed):
            ours, peer = self.answers(instance, number)
            word, reason = verdict(ours, peer, known_of(instance, self.options.all))
            totals.setdefault(word, []).append(f"{instance.name}{': ' if reason else ''}{reason}")
            columns = ours.columns() + (peer.columns() if peer else ("no peer", "", "", "", ""))
            print(COLUMNS.format(instance.name[-44:], word, *columns), flush=True)
        for word, names in sorted(totals.items()):
            print(f"{word}: {len(names)} of {len(listed)}")
            if word != "right":
                print(*(f"    {name}" for name in names), sep="\n")

    def answers(self, instance: Instance, number: int) -> tuple[Answer, Answer | None]:
        folder = self.folder / str(number)
        folder.mkdir()
        flat, limit = folder / "ours.fzn", self.options.limit
        if instance.model.suffix == ".mzn":
            if problem := compiled(instance, str(self.folder / "elimina.msc"), flat):
                return Answer("not compiled", reason=problem), None
        else:
            flat = instance.model
        text = flat.read_text(errors="replace")
        shown, printed = folder / "shown.fzn", folder / "printed"
        revealed = text if len(text) > UNCHECKED else reference.reveal(text)
        shown.write_text(revealed)
        switches = ["-s", "-t", str(int(limit * 1000)), *(["-a"] if self.options.all else [])]
        switches += shlex.split(self.options.options)
        ours = answer_of([str(PROGRAM), *switches, str(shown)], limit, printed)
        if (
            ours.status in ("satisfied", "complete")
            and len(text) <= UNCHECKED
            and (broken := faults(revealed, printed))
        ):
            ours = ours._replace(reason="; ".join(broken[:3]))
        peer = self.peer(instance, text, folder, switches) if self.options.gecode else None
        for file in folder.iterdir():
            file.unlink()
        return ours, peer

    def peer(self, instance: Instance, text: str, folder: Path, switches: list[str]) -> Answer | None:
        flat, theirs = folder / "peer.fzn", for_gecode(goal_shown(text))
        if theirs is not None:
            flat.write_text(theirs)
        elif instance.model.suffix != ".mzn" or compiled(instance, str(self.native), flat):
            return None
        else:
            flat.write_text(goal_shown(flat.read_text()))
        answer = answer_of([self.options.gecode, *switches, str(flat)], self.options.limit, folder / "peer")
        return answer._replace(objective=objective(flat.read_text(), folder / "peer"))


def parse(megabytes: int) -> None:
    rng, count = random.Random(1), 3000 * megabytes
    with tempfile.NamedTemporaryFile("w", suffix=".fzn") as file:
        notes = "::var_is_introduced :: is_defined_var"
        for i in range(count):
            file.write(f"var 0..{rng.randint(2, 200)}: X_{i:09} {notes};\nvar bool: B_{i:09} {notes};\n")
        while file.tell() < megabytes * 10**6:
            x, y, z = (f"_{rng.randrange(count):09}" for _ in range(3))
            file.write(
                f"constraint int_lin_le([1,-1,{rng.randint(1, 9)}],[X{x},X{y},X{z}],2000);\n"
                f"constraint int_le_reif(X{y},{rng.randint(0, 100)},B{z}):: defines_var(B{z});\n"
                f"constraint bool_clause([B{x},B{y}],[B{z}]);\n"
            )
        file.write("solve satisfy;\n")
        file.flush()
        printed = subprocess.run(
            [PROGRAM, "-s", file.name, "-t", "60000"], capture_output=True, text=True, check=True
        ).stdout
    figures = dict(re.findall(r"%%%mzn-stat: (\w+)=(\S+)", printed))
    times = f"parsed in {figures['parseTime']} s, parsed and posted in {figures['initTime']} s"
    print(f"{megabytes} MB, {figures['variables']} variables: {times}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--limit", type=float, default=10)
    parser.add_argument("--gecode")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--options", default="")
    parser.add_argument("--most", type=int)
    parser.add_argument("--parse", type=int)
    options = parser.parse_args()
    if options.paths:
        with tempfile.TemporaryDirectory() as folder:
            Bench(options, Path(folder)).run()
    if options.parse:
        parse(options.parse)


if __name__ == "__main__":
    main()
