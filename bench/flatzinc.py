"""Folders of FlatZinc files and MiniZinc models: status, objective, solutions, nodes, seconds; reading a large file.

    python bench/flatzinc.py PATH... [--limit 10] [--gecode fzn-gecode] [--all] [--options=-f] [--most 3] [--parse 100]

A path is a file or a folder; an .mzn is compiled by `minizinc` with each .dzn beside it. With `--gecode`, the same
FlatZinc goes to Gecode, its all_different as `gecode_all_different_int` with `:: domain`, its circuit as
`gecode_circuit`; a model that names other constraints of ours is compiled for Gecode by `minizinc`, or has no peer.
Seconds are whole runs of the process. `--options` go to both programs; `--most` is for the data files of a model: the
smallest ones. Solved: a solution, or that there is none; with an objective, its proof.
`--parse 100` writes a file of 100 MB of random linear constraints, reified comparisons and clauses, and reads it.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

PROGRAM = Path(sys.executable).parent / "fzn-elimina"
COLUMNS = "{:38} {:12} {:>12} {:>6} {:>10} {:>8}"
OURS = re.compile(r"^\s*predicate\s+(?:fzn|elimina)_(?!all_different_int\b|circuit\b)", re.M)


class Answer(NamedTuple):
    status: str
    objective: str = ""
    solutions: str = ""
    nodes: str = ""
    seconds: float = 0.0

    def line(self, name: str) -> str:
        return COLUMNS.format(
            name[-38:], self.status, self.objective, self.solutions, self.nodes, f"{self.seconds:.2f}"
        )


def answer_of(command: list[str], seconds: float) -> Answer:
    start = time.perf_counter()
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 30, check=False)
    except subprocess.TimeoutExpired:
        return Answer("no end", seconds=time.perf_counter() - start)
    elapsed, printed = time.perf_counter() - start, result.stdout
    if result.returncode != 0 or "Error" in result.stderr:
        return Answer("unsupported" if "unsupported" in result.stderr else "error", seconds=elapsed)
    figures = dict(re.findall(r"%%%mzn-stat: (\w+)=(\S+)", printed))
    status = "satisfied" if "----------" in printed else "unknown"
    if "==========" in printed:
        status = "complete"
    if "=====UNSATISFIABLE=====" in printed:
        status = "infeasible"
    return Answer(status, figures.get("objective", ""), figures.get("solutions", ""), figures.get("nodes", ""), elapsed)


def for_gecode(text: str) -> str | None:
    """The FlatZinc with Gecode's names; None: it has none for something."""
    if OURS.search(text):
        return None
    text = re.sub(r"^\s*predicate\b[^;]*;", "", text, flags=re.M)
    different = r"\b(?:fzn_all_different_int|all_different_int|jacop_alldiff)(\((?:[^()]|\([^()]*\))*\))"
    text = re.sub(different, r"gecode_all_different_int\1 :: domain", text)
    return re.sub(r"\b(?:fzn|elimina|jacop)_circuit\(", "gecode_circuit(1, ", text)


def compiled(model: Path, data: Path | None, solver: str, folder: Path) -> Path | None:
    path = folder / f"{model.stem}.{solver}.fzn"
    name = str(folder / "elimina.msc") if solver == "elimina" else solver
    command = [
        "minizinc",
        "-c",
        "--solver",
        name,
        "--fzn",
        str(path),
        "--no-output-ozn",
        str(model),
        *([str(data)] if data else []),
    ]
    try:
        subprocess.run(command, capture_output=True, timeout=120, check=True)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return None
    return path


def unpacked(path: Path, folder: Path) -> Path:
    if path.suffix != ".xz":
        return path
    plain = folder / path.stem
    plain.write_bytes(lzma.decompress(path.read_bytes()))
    return plain


def instances(paths: list[Path], folder: Path, most: int | None) -> list[tuple[str, Path, Path | None]]:
    """Name, model, data."""
    found: list[tuple[str, Path, Path | None]] = []
    for path in paths:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.name.endswith((".fzn", ".fzn.json", ".fzn.xz")):
                found.append((file.name, file, None))
            elif file.suffix == ".mzn":
                data = sorted(file.parent.glob("*.dzn"), key=lambda path: path.stat().st_size)[:most]
                found += [(f"{file.stem} {each.stem}", file, each) for each in data] or [(file.stem, file, None)]
    return [(name, unpacked(model, folder), data) for name, model, data in found]


def is_solved(answer: Answer, has_objective: bool) -> bool:
    return answer.status in ("complete", "infeasible") or (answer.status == "satisfied" and not has_objective)


def run(paths: list[Path], limit: float, gecode: str | None, most: int | None, given: list[str]) -> None:
    milliseconds, answers = str(int(limit * 1000)), []
    solved: list[tuple[bool, bool]] = []
    with tempfile.TemporaryDirectory() as name_of_folder:
        folder = Path(name_of_folder)
        subprocess.run(
            [PROGRAM.with_name("elimina"), "install-minizinc", "--folder", folder], check=True, capture_output=True
        )
        assert json.loads((folder / "elimina.msc").read_text())["name"] == "elimina"
        print(COLUMNS.format("model", "status", "objective", "found", "nodes", "seconds"))
        for name, model, data in instances(paths, folder, most):
            is_source = model.suffix == ".mzn"
            ready = compiled(model, data, "elimina", folder) if is_source else model
            options = ["-s", "-t", milliseconds, *given]
            answer = answer_of([str(PROGRAM), *options, str(ready)], limit) if ready else Answer("not compiled")
            answers.append((name, answer))
            print(answer.line(name), flush=True)
            if gecode is None or ready is None:
                continue
            text = for_gecode(ready.read_text(errors="replace"))
            peer = compiled(model, data, "gecode", folder) if text is None and is_source else folder / "peer.fzn"
            if text is not None:
                (folder / "peer.fzn").write_text(text)
            elif not is_source:
                peer = None
            theirs = answer_of([gecode, *options, str(peer)], limit) if peer else Answer("no peer")
            print(theirs.line("  gecode"), flush=True)
            if peer and theirs.status not in ("error", "unsupported"):
                has_objective = "satisfy" not in ready.read_text(errors="replace").rsplit("solve", 1)[-1]
                solved.append((is_solved(answer, has_objective), is_solved(theirs, has_objective)))
    if solved:
        ours, gecodes = (sum(pair[i] for pair in solved) for i in (0, 1))
        print(f"solved of {len(solved)} with a peer: {ours}, gecode {gecodes}")
    for status in ("unsupported", "error", "not compiled", "no end"):
        names = [name for name, answer in answers if answer.status == status]
        if names:
            print(f"{status} ({len(names)} of {len(answers)}): {', '.join(names)}")


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
        given = [*(["-a"] if options.all else []), *options.options.split()]
        run(options.paths, options.limit, options.gecode, options.most, given)
    if options.parse:
        parse(options.parse)


if __name__ == "__main__":
    main()
