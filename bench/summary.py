"""The README's table of speeds: the typical ratio of each claim, from all rows of its record.

``bench/render.py`` puts the table behind the marker ``<!-- speeds -->``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

RECORDS = Path(__file__).parent / "results"
MARKER = "<!-- speeds -->\n\n"


class Claim(NamedTuple):
    """A comparison with one peer.

    Attributes:
        text: Quantity that is compared, and the instances.
        peer: The peer and the hardware, which both programs have.
        record: Name of the record.
        ratio: Function that returns how many times better elimina is, from a row of the record; None to leave it out.
        count: Column with the number of instances of a row, whose ratio is a mean; None: each row is an instance.
    """

    text: str
    peer: str
    record: str
    ratio: Callable[[list[str]], float | None]
    count: int | None = None


def number(cell: str) -> float:
    """Return the number in a cell; a lower limit such as ``>20`` counts as that limit."""
    return float(cell.replace(",", "").lstrip(">"))


def column(index: int) -> Callable[[list[str]], float | None]:
    """Return a function that reads the ratio from a column of a row; it leaves out cells without one."""
    return lambda row: number(row[index].rpartition(":")[2]) if row[index] not in ("", "-") else None


def quotient(peer: int, ours: int) -> Callable[[list[str]], float | None]:
    """Return a function that divides the peer's cell of a row by elimina's."""
    return lambda row: number(row[peer]) / number(row[ours])


def _area_ratio(row: list[str]) -> float | None:
    """Return the ratio of areas under the primal gap, against the better of toulbar2's two searches."""
    return None if row[0] == "mean" else min(number(row[2]), number(row[3])) / number(row[1])


def _distance_ratio(row: list[str]) -> float | None:
    """Return the ratio of the distances from the exact posteriors after 3 s, where elimina's answer is an estimate."""
    return number(row[9]) / number(row[4]) if row[1:3] == ["3", "estimated"] else None


def _sum_ratio(*, of_cycles: bool) -> Callable[[list[str]], float | None]:
    """Return a function that reads the ratio of sums over cycles, or of the other sums."""
    return lambda row: number(row[5]) if row[0].startswith("cycle") == of_cycles else None


CLAIMS = (
    Claim("time of all posteriors, one call", "pyAgrum, 1 thread", "one-call", column(3)),
    Claim(
        "time of all posteriors, compiled network, 10 variables observed",
        "pyAgrum, 2 threads",
        "posteriors-of-a-compiled-network",
        column(6),
    ),
    Claim("posteriors of many cases per second", "pyAgrum, 2 cores", "posteriors-of-many-cases", column(3)),
    Claim("time of smoothing hidden Markov models", "hmmlearn, 1 core", "dynamic-models", column(4)),
    Claim(
        "time to a proven optimum (the range is over the means of 14 families)",
        "toulbar2, the better of its default and its tree decomposition (BTD), 1 core",
        "optima-of-all-families",
        lambda row: 1 / number(row[4]),
        count=1,
    ),
    Claim(
        "average gap to the best known cost during 60 s, hard problems",
        "toulbar2, the better of its default and its variable neighbourhood search, 1 core",
        "anytime",
        _area_ratio,
    ),
    Claim(
        "distance of estimated posteriors from the exact ones",
        "the best of 12 methods of libDAI and merlin, chosen for each model afterwards, 3 s",
        "estimates-peers",
        _distance_ratio,
    ),
    Claim(
        "time of sums of products over cycles of 4 variables",
        "opt_einsum, prepared expression, 1 thread",
        "einsum",
        _sum_ratio(of_cycles=True),
    ),
    Claim(
        "time of sums of products over chains and grids",
        "opt_einsum, prepared expression, 1 thread",
        "einsum",
        _sum_ratio(of_cycles=False),
    ),
    Claim("time of matrix products", "NumPy's BLAS, 1 thread", "products-cpu", quotient(3, 2)),
    Claim(
        "processor time of the distributed algorithm DPOP, graph colouring", "pyDCOP", "dpop-against-pydcop", column(5)
    ),
    Claim(
        "nodes per second, domain-consistent AllDifferent",
        "Gecode, 1 thread",
        "domain-consistent-alldifferent-against-gecode",
        column(3),
    ),
    Claim("nodes per second, FlatZinc", "Gecode, 1 thread", "flatzinc-against-gecode", column(5)),
    Claim(
        "time of one elimination step over 10^9 combinations, float32, on one GPU",
        "jax.jit, H200",
        "gpu-kernels-against-other-kernels",
        lambda row: number(row[6]) if row[0] == "jax.jit" else None,
    ),
)


def ratios(claim: Claim) -> list[tuple[float, int]]:
    """Return the ratios of a claim and their numbers of instances, one for each row of its record that has one."""
    rows = json.loads((RECORDS / f"{claim.record}.json").read_text())["rows"]
    pairs = [(claim.ratio(row), 1 if claim.count is None else int(row[claim.count])) for row in rows]
    return [(ratio, count) for ratio, count in pairs if ratio is not None]


def typical(pairs: list[tuple[float, int]]) -> float:
    """Return the geometric mean of ratios, each with its number of instances as weight."""
    return math.exp(sum(count * math.log(ratio) for ratio, count in pairs) / sum(count for _, count in pairs))


def table() -> str:
    """Return the table in Markdown."""
    lines = ["| compared | peer, equal hardware | typical ratio | range | instances |", "|---|---|---|---|---|"]
    for claim in CLAIMS:
        pairs = ratios(claim)
        values = sorted(ratio for ratio, _ in pairs)
        extent = f"{_shown(values[0])} to {_shown(values[-1])}" if len(values) > 1 else ""
        instances = sum(count for _, count in pairs)
        lines.append(f"| {claim.text} | {claim.peer} | {_shown(typical(pairs))} | {extent} | {instances} |")
    return "\n".join(lines) + "\n"


def inserted(text: str, marker: str = MARKER, rows: str | None = None) -> str:
    """Return a page with a table behind a marker, in place of the rows that are there.

    Args:
        text: The page.
        marker: Marker of the table.
        rows: The table; None for that of typical speeds.
    """
    head, found, tail = text.partition(marker)
    if not found:
        raise ValueError(f"the page has no line {marker.strip()!r}")
    lines = tail.split("\n")
    rest = next((number for number, line in enumerate(lines) if not line.startswith("|")), len(lines))
    return head + marker + (table() if rows is None else rows) + "\n".join(lines[rest:])


def _shown(ratio: float) -> str:
    """Return a ratio with two digits, as a whole number from 10 on, and as a limit below 0.01."""
    if ratio < 0.01:
        return "< 0.01"
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:#.2g}"
