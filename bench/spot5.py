"""CUBE's Table III and more: optima of WCSPs by plain and by filtered elimination, beside toulbar2.

    python bench/spot5.py ../shared/data/wcsp [--match spot5/] [--device cpu cuda] [--methods eliminate filter]
        [--limit 60] [--memory 16GiB] [--toulbar2 toulbar2]

Seconds of whole calls, reading the file excluded for ours and included for toulbar2 (`-B=1 -O=-3` is its tree
decomposition); all on one core but plain elimination, which uses all. Rows made, the share that filtering dropped, and
the bytes of the rows at most; cells of plain elimination. Values that are not proven optimal have a '>' or are missing.
CUBE's columns are Table III of Bistaffa, Bombieri and Farinelli (2016): BE sequential, and on its GPU.
"""

from __future__ import annotations

import argparse
import csv
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import elimina
from elimina.cli.options import bytes_of
from elimina.number_texts import bytes_text, count_text

CUBE = {
    "54": (965.66, 3.01), "404": (7584.12, 12.40), "503": (6347.98, 17.46), "42b": (31637.91, 58.42),
    "408b": (76456.15, 120.79),
}  # fmt: skip
HEAD = (
    "instance                 optimum     CUBE BE  CUBE GPU  way                    found   seconds  "
    "rows/cells filtered      memory"
)


def instances(data: Path, match: str) -> Iterator[tuple[Path, str]]:
    with open(data / "REFERENCE.tsv") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            if re.search(match, row["file"]) and row["file"].rpartition(".uai")[1] == "":
                yield data / row["file"], row["optimum"]


def ours(model: elimina.Model, method: str, device: str, args: argparse.Namespace) -> tuple[str, ...]:
    memory = args.memory if (method, device) == ("eliminate", "cpu") else None
    started = time.perf_counter()
    try:
        result = elimina.solve(
            model,
            device=device,
            memory=memory,
            time_limit=args.limit,
            options=elimina.Options(method=method, threads=args.threads),
        )
    except elimina.MemoryLimitError:
        plan = elimina.plan(model, device=device, memory=memory)
        return "", "", f"{count_text(plan.work)}", "", f"needs {bytes_text(plan.peak_bytes)}"
    except elimina.TimeLimitError:
        return "", f">{args.limit:g}", "", "", ""
    seconds = time.perf_counter() - started
    found = str(result.value) if result.status == "optimal" else f">{result.lower_bound}"
    stats = result.stats
    dropped = f"{stats['rows_filtered'] / max(1, stats['rows_made']):.0%}" if method == "filter" else ""
    return (
        found,
        f"{seconds:.2f}",
        count_text(stats.get("rows_made", stats["total_cells"])),
        dropped,
        bytes_text(stats["peak_bytes"]),
    )


def toulbar2(path: Path, options: list[str], args: argparse.Namespace) -> tuple[str, ...]:
    """Its own answer; it reads .wcsp and .wcsp.xz."""
    command = [args.toulbar2, str(path), *options, f"-timer={int(args.limit)}"]
    started = time.perf_counter()
    try:
        text = subprocess.run(command, capture_output=True, text=True, timeout=args.limit + 30, check=False).stdout
    except subprocess.TimeoutExpired:
        return "", f">{args.limit:g}", "", "", ""
    seconds = time.perf_counter() - started
    found = re.search(r"Optimum: (-?\d+)", text)
    return (found[1] if found else ""), f"{seconds:.2f}" if found else f">{seconds:.0f}", "", "", ""


def readable(path: Path, model: elimina.Model, folder: str) -> Path:
    """A plain .wcsp file, which every version of toulbar2 reads."""
    if path.suffix == ".wcsp":
        return path
    plain = Path(folder) / path.name.removesuffix(".xz").removesuffix(".gz")
    elimina.write(model, plain)
    return plain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder with REFERENCE.tsv")
    parser.add_argument("--match", default="spot5/", help="regular expression on the files' names")
    parser.add_argument("--device", nargs="+", default=["cpu"], choices=["cpu", "cuda"])
    parser.add_argument("--methods", nargs="+", default=["eliminate", "filter"], choices=["eliminate", "filter"])
    parser.add_argument("--threads", type=int)
    parser.add_argument("--limit", type=float, default=60, help="seconds for each answer")
    parser.add_argument("--memory", type=bytes_of, default=16 << 30, help="of plain elimination on the CPU")
    parser.add_argument("--toulbar2", help="its command: run it too")
    args = parser.parse_args()
    print(HEAD)
    with tempfile.TemporaryDirectory() as folder:
        for path, optimum in instances(args.data, args.match):
            model = elimina.read(path)
            name = path.name.partition(".")[0]
            cube = [f"{seconds:.2f}" for seconds in CUBE.get(name, ())] or ["", ""]
            ways = [
                (f"{method} {device}", ours(model, method, device, args))
                for method in args.methods
                for device in args.device
            ]
            if args.toulbar2:
                plain = readable(path, model, folder)
                ways += [
                    ("toulbar2", toulbar2(plain, [], args)),
                    ("toulbar2 -B=1 -O=-3", toulbar2(plain, ["-B=1", "-O=-3"], args)),
                ]
            for way, (found, seconds, rows, dropped, memory) in ways:
                figures = f"{way:19} {found:>8}  {seconds:>8}  {rows:>10} {dropped:>8}  {memory:>10}"
                print(f"{name:22} {optimum:>9}  {cube[0]:>10}  {cube[1]:>8}  {figures}", flush=True)


if __name__ == "__main__":
    main()
