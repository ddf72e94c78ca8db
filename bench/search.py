"""Optima of problems beyond plain elimination, beside toulbar2, and how fast both bounds close in.

    python bench/search.py ../shared/data [--match pedigree] [--methods auto search] [--limit 60] [--toulbar2 toulbar2]
        [--threads 2]

Whole calls on all threads, reading excluded for ours and included for toulbar2 (one thread; `-B=1 -O=-3` is its tree
decomposition), which reads what we write (.uai, .wcsp). `cells` is the largest table of plain elimination. What is not
proven has both bounds; `gap` lists the distance of the bounds in percent of the value after 1, 10, 60 and 600 seconds
as far as the limit goes ('-': closed before). Probabilities are natural logarithms.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import elimina
from elimina.planning.plan import count_text
from elimina.result import Bounds, Result
from minibuckets import TABLES, colouring

FOLDERS = (
    ("uai/2008_MPE/linkage", "*.erg.gz"),
    ("uai/fabe_mpe/pedigree", "*.uai"),
    ("uai/fabe_mpe/grid", "*.uai"),
    ("uai/fabe_mpe/protein", "*.uai"),
    ("uai/2008_MPE/grids", "*.erg.gz"),
    ("uai/2014_MAP_MMAP", "*.uai*"),
    ("wcsp/celar6", "*.wcsp*"),
    ("wcsp/toulbar2_cover", "CELAR7-SUB0.wcsp"),
    ("wcsp/toulbar2_examples", "*.wcsp.xz"),
    ("wcsp/freqalloc", "*.wcsp"),
    ("wcsp/spot5", "*.wcsp"),
    ("wcsp/iscas89", "*.wcsp"),
)
MOMENTS = (1.0, 10.0, 60.0, 600.0)
HEAD = f"{'instance':34} {'cells':>9} {'way':14} {'seconds':>8}  {'lower':>14} {'upper':>14}  gap in %"


def instances(data: Path, match: str) -> Iterator[tuple[str, Callable[[], elimina.Model]]]:
    """Names, and what reads them: files, and GpuBE's colourings."""
    for folder, pattern in FOLDERS:
        for path in sorted((data / folder).glob(pattern)):
            name = path.name.removesuffix(".xz").removesuffix(".gz")
            if name.endswith((".uai", ".erg", ".wcsp")) and re.search(match, str(path)):
                yield name, partial(elimina.read, path)
    for name, row in TABLES.items():
        path = data / "wcsp" / row.file
        if row.colours and path.exists() and re.search(match, f"{path} {name}"):
            yield name, partial(colouring, path, row.colours)


def gaps(known: list[Bounds], result: Result, limit: float) -> str:
    """The distance of the bounds at each moment."""
    texts = []
    for moment in MOMENTS:
        if moment > limit:
            break
        seen = [one for one in known if one.seconds <= moment and None not in (one.lower, one.upper)]
        if result.status == "optimal" and sum(result.stats["seconds"].values()) <= moment:
            texts.append("-")
        elif not seen:
            texts.append("?")
        else:
            texts.append(f"{100 * seen[-1].gap:.3g}")
    return " ".join(texts)


def ours(model: elimina.Model, method: str, args: argparse.Namespace) -> tuple[str, str, str, str]:
    known: list[Bounds] = []
    started = time.perf_counter()
    try:
        result = elimina.solve(
            model,
            device=args.device,
            time_limit=args.limit,
            options=elimina.Options(method=method, on_bounds=known.append, seed=args.seed, threads=args.threads),
        )
    except (elimina.TimeLimitError, elimina.MemoryLimitError, elimina.UnsupportedError) as error:
        return f"{time.perf_counter() - started:.1f}", "", "", type(error).__name__
    seconds = time.perf_counter() - started
    lower, upper = ("" if end is None else f"{end:.10g}" for end in (result.lower_bound, result.upper_bound))
    way = result.stats.get("method", "eliminate")
    return f"{seconds:.1f}", lower, upper, f"{gaps(known, result, args.limit)}  {way}"


def toulbar2(path: Path, options: list[str], args: argparse.Namespace) -> tuple[str, str, str, str]:
    command = [args.toulbar2, str(path), *options, f"-timer={int(args.limit)}"]
    started = time.perf_counter()
    try:
        text = subprocess.run(command, capture_output=True, text=True, timeout=args.limit + 30, check=False).stdout
    except subprocess.TimeoutExpired:
        return f">{args.limit:g}", "", "", ""
    seconds = time.perf_counter() - started
    found = re.search(r"Optimum: (-?[\d.e+]+)(?: energy: (-?[\d.e+]+))?", text)
    if found is None:
        return f">{seconds:.1f}", "", "", ""
    value = found[1] if found[2] is None else f"{-float(found[2]):.10g}"
    return f"{seconds:.1f}", value, value, ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder that holds uai/ and wcsp/")
    parser.add_argument("--match", default="", help="regular expression on the files' names")
    parser.add_argument("--methods", nargs="+", default=["auto", "search"], choices=["auto", "search", "filter"])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda", "auto"])
    parser.add_argument("--limit", type=float, default=60, help="seconds for each answer")
    parser.add_argument("--least", type=float, default=0, help="cells of the largest table below which one is left out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, help="of ours")
    parser.add_argument("--toulbar2", help="its command: run it too")
    args = parser.parse_args()
    print(HEAD)
    with tempfile.TemporaryDirectory() as folder:
        for name, read in instances(args.data, args.match):
            model = read()
            cells = elimina.plan(
                model, device="cpu", options=elimina.Options(slices="never", tables="dense")
            ).largest_table
            if cells < args.least:
                continue
            ways = [(method, ours(model, method, args)) for method in args.methods]
            if args.toulbar2:
                plain = Path(folder) / f"model.{'wcsp' if model.is_integer else 'uai'}"
                elimina.write(model, plain)
                ways.append(("toulbar2", toulbar2(plain, [], args)))
                ways.append(("tb2 -B=1 -O=-3", toulbar2(plain, ["-B=1", "-O=-3"], args)))
            for way, (seconds, lower, upper, more) in ways:
                print(
                    f"{name:34} {count_text(cells):>9} {way:14} {seconds:>8}  {lower:>14} {upper:>14}  {more}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
