"""Elimination orders: their cost, and the search for orders with little work.

The work of an order is the number of table cells that bucket elimination visits, summed over all buckets. A bucket's
cells are the product of the domain sizes of its variable and of its separator (the neighbours at its elimination).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from itertools import chain
from os import PathLike
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from elimina import arguments
from elimina.errors import FormatError, InputError
from elimina.model.table import Scopes, SizeProducts
from elimina.number_texts import counted

if TYPE_CHECKING:
    from elimina._core import OrderMessages

Method = Literal["auto", "min-fill", "weighted-min-fill", "min-degree", "min-weight", "sweep", "pseudo-tree"]

CELLS_PER_SECOND = 1e9
"""Cells per second of a CPU, for comparing the time of a run with that of the order search."""
_DEFAULT_SECONDS = 2.0
_UNLIMITED_SECONDS = 1e9
# The core stores sizes as doubles, which represent all integers up to this limit exactly.
_MAX_DOMAIN = 2**53
_MAX_COUNTED = 2**63
"""Sums of cells are computed in 64 bits if they are at most this number."""
_MAX_INDEX_LENGTH = 400
_MAX_ITERATIONS = 2**62 - 1
MAX_CELLS = 10**18
"""Number of cells above which an elimination takes decades."""
MAX_SEED = 2**64 - 1


class Order(NamedTuple):
    """An elimination order and its exact figures.

    Attributes:
        order: The variables, the first eliminated one first.
        width: Number of variables in the largest separator (the induced width), without variables of one value.
        total_cells: The work: the number of cells of all buckets. A bucket's cells are the product of the domain sizes
            of its variable and its separator.
        largest_table: Number of cells of the largest message.
        method: Heuristic that found the order.
        seconds: Time of the search in seconds, measured by the amount of work like its time limit.
        is_complete: False if the search ended at a variable whose elimination takes too many cells. The remaining
            variables then follow in arbitrary order, and the figures are those of that elimination.
    """

    order: tuple[int, ...]
    width: int
    total_cells: int
    largest_table: int
    method: str
    seconds: float
    is_complete: bool = True

    @property
    def log10_cells(self) -> float:
        """Base-10 logarithm of the work; minus infinity if there are no variables."""
        return math.log10(self.total_cells) if self.total_cells else -math.inf

    def seconds_at(self, cells_per_second: float) -> float:
        """Estimate an elimination's time; the result is finite even if the number of cells exceeds all floats."""
        return min(self.total_cells, MAX_CELLS) / cells_per_second


def find_order(
    sizes: Sequence[int],
    scopes: Sequence[Sequence[int]] | Scopes,
    *,
    method: Method = "auto",
    seconds: float | None = None,
    iterations: int | None = None,
    seed: int = 0,
    max_table_cells: int | None = None,
    threads: int = 1,
    cells_per_second: float | None = CELLS_PER_SECOND,
) -> Order:
    """Find an elimination order with little work.

    Reductions come first, then greedy runs with random ties, then simulated annealing of the elimination tree. The
    search ends early once it has taken a seventh of the time that running the plan would take, or if the reductions
    leave so few variables that their best order can be found exactly.

    Args:
        sizes: Domain size of each variable.
        scopes: The factors' scopes, as lists or as ``Scopes``; repeated, empty and nested ones are allowed.
        method: ``auto`` uses all methods; the name of a greedy rule uses only that rule, repeatedly within the budget
            (once without a budget); ``pseudo-tree`` is :func:`pseudo_tree_order`. The next variable of each rule is the
            one that adds the fewest edges (``min-fill``; ``weighted-min-fill``: the weight of an edge is the product of
            its ends' sizes), has the fewest neighbours (``min-degree``), or has the smallest bucket (``min-weight``;
            ``sweep``: among the neighbours of eliminated variables, so that a front moves through the graph).
        seconds: Time limit; by default 2 s for ``auto`` if ``iterations`` is not given. It is measured by the amount of
            work, so that results are reproducible. After ten times as long on the clock, the search ends in any case.
        iterations: Number of rounds of the search, each a greedy run or an annealing. With the same seed, the result is
            then the same on every run, unless the clock ends the search.
        seed: Random seed.
        max_table_cells: Prefer orders whose messages have at most this many cells, regardless of the work.
        threads: Number of threads; the order does not depend on it.
        cells_per_second: Speed of the backend; None: use all of the time, even if little work remains. Not used if
            ``iterations`` is given.

    Raises:
        TypeError: An option has the wrong type.
        InputError: A size is below 1 or above 2^53, a scope contains an unknown variable, or an option is invalid.
    """
    flat = _flat(sizes, scopes)
    _check_options(method, seconds, iterations, seed, max_table_cells, threads, cells_per_second)
    if method == "pseudo-tree":
        listed = _listed(scopes) if isinstance(scopes, Scopes) else scopes
        return evaluate_order(sizes, listed, pseudo_tree_order(sizes, listed), method=method)
    everything = method == "auto"
    if seconds is None and iterations is None:
        seconds, iterations = (_DEFAULT_SECONDS, None) if everything else (None, 0)
    from elimina._core import find_order as search

    order_found = search(
        *flat,
        rules=["min-fill", "weighted-min-fill", "min-weight", "min-degree", "sweep"] if everything else [method],
        anneal=everything,
        rounds=-1 if iterations is None else iterations,
        seconds=_UNLIMITED_SECONDS if seconds is None else min(seconds, _UNLIMITED_SECONDS),
        patience=1 / cells_per_second if cells_per_second and iterations is None else 0,
        limit=math.inf if max_table_cells is None else math.log2(max_table_cells),
        seed=seed,
        threads=threads,
    )
    return _with_figures(sizes, tuple(order_found.order.tolist()), order_found.messages, method, order_found.seconds)


def find_partial_order(
    sizes: Sequence[int], scopes: Sequence[Sequence[int]] | Scopes, *, seed: int = 0, max_cells: int = MAX_CELLS
) -> Order:
    """Find an elimination order quickly by fill-in, and stop at an elimination with too many cells.

    The variables after such an elimination are listed in arbitrary order, because even counting their cells takes much
    time. A part of a large problem is ordered first: if it is too large, so is the whole problem. The figures are those
    of the elimination with too many cells.

    Args:
        sizes: Domain size of each variable.
        scopes: The factors' scopes, as in ``find_order``.
        seed: Random seed.
        max_cells: Largest number of cells of an elimination.
    """
    from elimina._core import find_partial_order as search

    order_found = search(*_flat(sizes, scopes), math.log2(max_cells), seed)
    order = _with_figures(
        sizes, tuple(order_found.order.tolist()), order_found.messages, "min-fill", order_found.seconds
    )
    return order._replace(is_complete=order_found.is_complete)


def evaluate_order(
    sizes: Sequence[int], scopes: Sequence[Sequence[int]], order: Sequence[int], *, method: str = "given"
) -> Order:
    """Return an order with its figures.

    Raises:
        InputError: ``order`` is not a permutation of the variables, or the problem is invalid.
    """
    from elimina._core import messages as measure

    flat = _flat(sizes, scopes)
    _check_permutation(order, len(sizes))
    along = tuple(map(int, order))
    return _with_figures(sizes, along, measure(*flat, np.array(along, dtype=np.uint32)), method, 0.0)


def pseudo_tree_order(sizes: Sequence[int], scopes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return the order of a pseudo-tree built by depth-first search: a variable follows all of its descendants.

    Roots are the variables with most neighbours; among a variable's unvisited neighbours, the one with most neighbours
    is visited first (Fioretto, Pontelli, Yeoh, Dechter, 2018, "Accelerating exact and approximate inference for
    (distributed) discrete optimization with GPUs", section 6.2). Ties are broken by the lower index.

    Raises:
        InputError: The problem is invalid.
    """
    _check_problem(sizes, scopes)
    neighbours: list[set[int]] = [set() for _ in sizes]
    for scope in set(map(frozenset, scopes)):
        for v in scope:
            neighbours[v] |= scope
    ranked = sorted(range(len(sizes)), key=lambda v: (-len(neighbours[v]), v))
    rank = {v: i for i, v in enumerate(ranked)}
    seen: set[int] = set()
    order: list[int] = []
    for root in ranked:
        if root in seen:
            continue
        seen.add(root)
        path = [(root, iter(sorted(neighbours[root], key=rank.__getitem__)))]
        while path:
            v, candidates = path[-1]
            following = next((u for u in candidates if u not in seen), None)
            if following is None:
                order.append(v)
                path.pop()
            else:
                seen.add(following)
                path.append((following, iter(sorted(neighbours[following], key=rank.__getitem__))))
    return tuple(order)


def read_order(path: str | PathLike[str], names: Sequence[str]) -> tuple[int, ...]:
    """Read an elimination order from a file with one variable per token, the first eliminated one first.

    A token is a variable's name or, if no variable has this name, an index from 0 (toulbar2's ``.order``). Text after a
    ``#`` is a comment. A file named ``*.cov`` is a tree decomposition in toulbar2's format: each line has the number of
    a cluster, the number of its parent (-1: a root; parents come first) and its variables; clusters are eliminated
    from the leaves on.

    Args:
        path: Path of the file.
        names: Names of the variables, in index order.

    Raises:
        FormatError: The file cannot be read, or is not a permutation of the variables.
    """
    from pathlib import Path

    shown = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or error
        raise FormatError(shown, None, f"cannot be read as text: {reason}") from error
    return order_of_text(text, shown, names)


def order_of_text(text: str, shown: str, names: Sequence[str]) -> tuple[int, ...]:
    """Return the elimination order in the text of a file: see ``read_order``.

    Args:
        text: Text of the file.
        shown: Name of the file, for errors; the suffix ``.cov`` denotes tree decompositions.
        names: Names of the variables, in index order.

    Raises:
        FormatError: The text is not a permutation of the variables.
    """
    index = {name: i for i, name in enumerate(names)}
    lines = [(number, line.split("#")[0].split()) for number, line in enumerate(text.splitlines(), 1)]
    if shown.endswith(".cov"):
        return _order_of_clusters(shown, lines, index)
    order: dict[int, int] = {}
    for number, tokens in lines:
        for token in tokens:
            v = _variable(shown, number, token, index)
            if v in order:
                raise FormatError(
                    shown, number, f"variable {token!r} appears again; its first place is line {order[v]}"
                )
            order[v] = number
    _check_complete(shown, order, names)
    return tuple(order)


def _order_of_clusters(path: str, lines: list[tuple[int, list[str]]], index: dict[str, int]) -> tuple[int, ...]:
    clusters: dict[str, list[int]] = {}
    new_variables: list[list[int]] = []
    placed: set[int] = set()
    for number, tokens in lines:
        if not tokens:
            continue
        if len(tokens) < 2:
            raise FormatError(path, number, f"expected cluster, parent and variables, found {tokens[0]!r} alone")
        cluster, parent = tokens[:2]
        if cluster in clusters:
            raise FormatError(path, number, f"cluster {cluster!r} appears again")
        if parent != "-1" and parent not in clusters:
            raise FormatError(path, number, f"the parent {parent!r} of cluster {cluster!r} is on no line above")
        clusters[cluster] = [_variable(path, number, token, index) for token in tokens[2:]]
        for v in clusters[cluster]:
            if v in placed and v not in clusters.get(parent, []):
                raise FormatError(
                    path, number, f"variable {v} is in cluster {cluster!r} and above, but not in its parent"
                )
        new_variables.append(list(dict.fromkeys(v for v in clusters[cluster] if v not in placed)))
        placed.update(new_variables[-1])
    _check_complete(path, placed, list(index))
    return tuple(chain.from_iterable(reversed(new_variables)))


def _variable(path: str, line: int, token: str, index: dict[str, int]) -> int:
    if token in index:
        return index[token]
    if not (token.isascii() and token.isdigit()):
        raise FormatError(path, line, f"expected a variable's name or index, found {token!r}")
    if len(token) > _MAX_INDEX_LENGTH or int(token) >= len(index):
        raise FormatError(
            path, line, f"there is no variable {token[:40]}; the last of the {len(index)} is {len(index) - 1}"
        )
    return int(token)


def _check_complete(path: str, variables: Sequence[int] | set[int] | dict[int, int], names: Sequence[str]) -> None:
    missing = [name for v, name in enumerate(names) if v not in variables]
    if missing:
        listing = ", ".join(map(repr, missing[:5])) + (", ..." if len(missing) > 5 else "")
        raise FormatError(path, None, f"{len(missing)} of {len(names)} variables are missing: {listing}")


def _check_problem(sizes: Sequence[int], scopes: Sequence[Sequence[int]]) -> None:
    for v, size in enumerate(sizes):
        if not 1 <= size <= _MAX_DOMAIN:
            raise InputError(f"variable {v} has {size} values; it needs from 1 to 2^53")
    for number, scope in enumerate(scopes):
        for v in scope:
            if not 0 <= v < len(sizes):
                raise InputError(f"scope {number} names variable {v}; there are {len(sizes)}")


def _check_permutation(order: Sequence[int], count: int) -> None:
    if sorted(order) == list(range(count)):
        return
    if len(order) != count:
        raise InputError(f"the order has {len(order)} entries for {counted(count, 'variable')}")
    wrong = next((v for v in order if not 0 <= v < count), None)
    if wrong is not None:
        raise InputError(f"the order names variable {wrong}; there are {count}")
    missing = min(set(range(count)) - set(order))
    raise InputError(f"the order lacks variable {missing}; each appears once")


def _check_options(
    method: str,
    seconds: float | None,
    iterations: int | None,
    seed: int,
    max_table_cells: int | None,
    threads: int,
    cells_per_second: float | None,
) -> None:
    if method not in get_args(Method):
        raise InputError(f"unknown ordering method {method!r}; it is one of {', '.join(get_args(Method))}")
    arguments.integer("seed", seed, 0, MAX_SEED)
    arguments.integer("threads", threads, 1, 1024)
    if iterations is not None:
        arguments.integer("iterations", iterations, 0, _MAX_ITERATIONS)
    if max_table_cells is not None:
        arguments.integer("max_table_cells", max_table_cells, 1)
    if seconds is not None and not arguments.number("seconds", seconds) >= 0:
        raise InputError(f"seconds for ordering is {seconds}; it cannot be negative")
    if cells_per_second is not None and not arguments.number("cells_per_second", cells_per_second) > 0:
        raise InputError(f"cells_per_second is {cells_per_second}; it must be above 0")


def _flat(
    sizes: Sequence[int], scopes: Sequence[Sequence[int]] | Scopes
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.uint32]]:
    """Check sizes and scopes, and return them in the core's form."""
    try:
        starts, members = scopes if isinstance(scopes, Scopes) else Scopes.of(scopes)
        doubles = np.fromiter(sizes, np.float64, len(sizes))
        is_fine = doubles.min(initial=1) >= 1 and doubles.max(initial=1) <= _MAX_DOMAIN
        is_fine = bool(is_fine and members.min(initial=0) >= 0 and members.max(initial=-1) < len(sizes))
    except OverflowError:
        is_fine = False
    if not is_fine:
        _check_problem(sizes, _listed(scopes) if isinstance(scopes, Scopes) else scopes)
    return doubles, starts, members.astype(np.uint32)


def _listed(scopes: Scopes) -> list[list[int]]:
    return [scope.tolist() for scope in np.split(scopes.members, scopes.starts[1:-1])]


def _with_figures(
    sizes: Sequence[int],
    order: tuple[int, ...],
    messages: OrderMessages,
    method: str,
    seconds: float,
) -> Order:
    """Return an order with its figures, computed from its messages."""
    cells = messages.cells
    largest, product = int(cells.max(initial=0)), SizeProducts(sizes)
    if largest * max(sizes, default=0) * len(sizes) <= _MAX_COUNTED:
        # Wide messages count as 0 cells in the array.
        total = int((cells * np.fromiter(sizes, np.uint64, len(sizes))).sum())
        for v, variables in zip(np.flatnonzero(cells == 0).tolist(), messages.wide, strict=True):
            count = product.of(variables)
            total, largest = total + count * int(sizes[v]), max(largest, count)
    else:
        wide = iter(messages.wide)
        counts = [count or product.of(next(wide)) for count in cells.tolist()]
        total, largest = sum(map(operator.mul, counts, map(int, sizes))), max(counts, default=0)
    return Order(
        order=order,
        width=messages.width,
        total_cells=total,
        largest_table=largest,
        method=method,
        seconds=seconds,
    )
