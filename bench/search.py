"""Optima of problems beyond plain elimination, beside toulbar2, and how fast both bounds close in.

    python bench/search.py ../shared/data [--match pedigree] [--methods auto search] [--limit 60] [--threads 1]
        [--toulbar2 PYTHON] [--record]

Whole calls from reading to the answer, in processes that are already started. PYTHON is an interpreter with pytoulbar2
(one thread; by default and with its tree decomposition, BTD), which reads the model as we write it (.uai, .wcsp). What
is not proven has both bounds; `gap` lists the distance of the bounds in percent of the value after 1, 10, 60 and 600
seconds as far as the limit goes ('-': closed before). Probabilities are natural logarithms. The last lines are the
geometric means of the ratios ours / better of toulbar2's, 0.2 s granted to both, by family and in all; an answer that
is open counts as the limit.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import elimina
from auctions import AUCTIONS, auction
from elimina.number_texts import count_text
from elimina.result import Bounds, Result
from minibuckets import TABLES, colouring
from record import Record

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
    ("wcsp/mastermind", "*.wcsp"),
)
MOMENTS = (1.0, 10.0, 60.0, 600.0)
GRANTED = 0.2
"""Seconds granted to both sides, for start-up."""

HEAD = f"{'instance':34} {'cells':>9} {'way':14} {'seconds':>8}  {'lower':>14} {'upper':>14}  gap in %"


def instances(data: Path, match: str) -> Iterator[tuple[str, str, Callable[[], elimina.Model]]]:
    """Families, names, and readers of files, of GpuBE's colourings, and of auctions."""
    for folder, pattern in FOLDERS:
        for path in sorted((data / folder).glob(pattern)):
            name = path.name.removesuffix(".xz").removesuffix(".gz")
            if name.endswith((".uai", ".erg", ".wcsp")) and re.search(match, str(path)):
                yield folder, name, partial(elimina.read, path)
    for name, row in TABLES.items():
        path = data / "wcsp" / row.file
        if row.colours and path.exists() and re.search(match, f"{path} {name}"):
            yield "colouring", name, partial(colouring, path, row.colours)
    for slots, seed in AUCTIONS:
        if re.search(match, name := f"auction-{slots}-{seed}"):
            yield "auction", name, partial(auction, slots, seed)


def largest_table(model: elimina.Model) -> int:
    """Cells of the largest table of plain elimination."""
    options = elimina.Options(slices="never", tables="dense", order="min-fill", order_seconds=0.0)
    return elimina.plan(model, device="cpu", options=options).largest_table


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


def ours(read: Callable[[], elimina.Model], method: str, args: argparse.Namespace) -> tuple[str, str, str, str]:
    known: list[Bounds] = []
    started = time.perf_counter()
    try:
        result = elimina.solve(
            read(),
            device=args.device,
            time_limit=args.limit,
            options=elimina.Options(method=method, on_bounds=known.append, seed=args.seed, threads=args.threads),
        )
    except (elimina.TimeLimitError, elimina.MemoryLimitError, elimina.UnsupportedError) as error:
        return f">{time.perf_counter() - started:.2f}", "", "", type(error).__name__
    seconds = time.perf_counter() - started
    lower, upper = ("" if end is None else f"{end:.10g}" for end in (result.lower_bound, result.upper_bound))
    way = result.stats.get("method", "eliminate")
    sign = "" if result.status in ("optimal", "infeasible") else ">"
    return f"{sign}{seconds:.2f}", lower, upper, f"{gaps(known, result, args.limit)}  {way}"


def toulbar2(path: Path, options: list[str], args: argparse.Namespace) -> tuple[str, str, str, str]:
    script = Path(__file__).parent / "baselines" / "toulbar2.py"
    command = [args.toulbar2, str(script), str(path), f"{args.limit:g}", *options]
    try:
        text = subprocess.run(command, capture_output=True, text=True, timeout=2 * args.limit + 30, check=False).stdout
        found = json.loads(text.splitlines()[-1])
    except (subprocess.TimeoutExpired, IndexError, json.JSONDecodeError):
        return f">{args.limit:g}", "", "", ""
    sign = "" if found["is_optimal"] else ">"
    return f"{sign}{found['seconds']:.2f}", "", "" if found["upper"] is None else f"{found['upper']:.10g}", ""


def seconds_of(text: str, limit: float) -> float:
    """Seconds of an answer; the limit if it is open."""
    return limit if text.startswith(">") else min(limit, float(text))


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
    parser.add_argument("--toulbar2", help="interpreter that has pytoulbar2: run it too")
    parser.add_argument("--record", action="store_true", help="keep the first method's rows as the table of RESULTS.md")
    args = parser.parse_args()
    columns = ["instance", "elimina", "toulbar2", "toulbar2 BTD", "ratio"]
    record = Record("optima-by-elimination-and-search-against-toulbar2", columns)
    ratios: dict[str, list[float]] = {}
    print(HEAD)
    with tempfile.TemporaryDirectory() as folder:
        for family, name, read in instances(args.data, args.match):
            model = read()
            cells = largest_table(model)
            if cells < args.least:
                continue
            ways = [(method, ours(read, method, args)) for method in args.methods]
            if args.toulbar2:
                plain = Path(folder) / f"model.{'wcsp' if model.is_integer else 'uai'}"
                elimina.write(model, plain)
                ways += [("toulbar2", toulbar2(plain, [], args)), ("toulbar2 BTD", toulbar2(plain, ["--btd"], args))]
                first, *peers = (way[0] for way in (ways[0][1], ways[-2][1], ways[-1][1]))
                best = min(seconds_of(text, args.limit) for text in peers)
                ratio = (seconds_of(first, args.limit) + GRANTED) / (best + GRANTED)
                ratios.setdefault(family, []).append(ratio)
                record.add(name, first, *peers, f"{1 / ratio:.3g}")
            for way, (seconds, lower, upper, more) in ways:
                print(
                    f"{name:34} {count_text(cells):>9} {way:14} {seconds:>8}  {lower:>14} {upper:>14}  {more}",
                    flush=True,
                )
    every = [ratio for family in ratios.values() for ratio in family]
    for family, found in {**ratios, "all": every}.items() if every else ():
        print(f"{family:34} {len(found)} instances, ours / toulbar2: {statistics.geometric_mean(found):.2f}")
    if args.record:
        record.save()


if __name__ == "__main__":
    main()
