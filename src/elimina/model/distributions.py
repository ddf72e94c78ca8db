"""Checks of a network's conditional distributions: each row, at one assignment of the parents, sums to 1.

A row whose sum misses 1 by more than ``ROUNDING`` is an error. A row that misses 1 by less, as rows of printed decimals
do, is normalised. Rows that are off only by the rounding of floating-point additions stay as they are.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from elimina.errors import InputError
from elimina.model.table import Table, batches, joined_values
from elimina.option_names import by_interface, option

ROUNDING = 1e-3
"""Largest distance of a row's sum from 1 that is attributed to the rounding of numbers to three or more decimals."""

_SLACK = 1e-9
"""Relative slack of ``ROUNDING``: in floats, 1 - 3 * 0.333 may exceed 0.001 by a rounding error."""

_SHOWN = 8
"""Largest number of names in a message."""

logger = logging.getLogger("elimina")


class Named(Protocol):
    """A variable whose name and states appear in messages."""

    @property
    def name(self) -> str:
        """Name of the variable."""

    def state(self, index: int) -> Any:
        """Return the state with this index."""


def find_cycle(scopes: Mapping[int, Sequence[int]]) -> list[int]:
    """Return a cycle of variables, each a child of the next, with the first one again at the end; [] if none exists."""
    # Parents without a distribution have no parents, so they are in no cycle.
    parents = {child: [v for v in scope if v != child and v in scopes] for child, scope in scopes.items()}
    pending_parents = {child: len(parents_of_child) for child, parents_of_child in parents.items()}
    uses: dict[int, list[int]] = {}
    for child, parents_of_child in parents.items():
        for parent in parents_of_child:
            uses.setdefault(parent, []).append(child)
    ready = [v for v, count in pending_parents.items() if not count]
    while ready:
        for child in uses.get(ready.pop(), ()):
            pending_parents[child] -= 1
            if not pending_parents[child]:
                ready.append(child)
    stuck = {v for v, count in pending_parents.items() if count}
    path: list[int] = [min(stuck)] if stuck else []
    while path and path[-1] not in path[:-1]:
        path.append(next(v for v in parents[path[-1]] if v in stuck))
    return path[path.index(path[-1]) :] if path else []


def check_structure(variables: Sequence[Named], factors: Sequence[Table], children: Sequence[int]) -> None:
    """Check that each variable has at most one distribution, and is not its own ancestor.

    Args:
        variables: Variables of the model.
        factors: Tables of the model.
        children: Factor i is the distribution of variable ``children[i]`` given the rest of its scope.

    Raises:
        InputError: There are two distributions of a variable, or there is a cycle of parents.
    """
    factor_numbers = {child: number for number, child in enumerate(children)}
    if len(factor_numbers) < len(children):
        first, child = next((n, child) for n, child in enumerate(children) if factor_numbers[child] != n)
        raise InputError(
            f"factors {first} and {children.index(child, first + 1)} are both distributions of variable "
            f"{variables[child].name!r}, and a network has one for each: multiply them, or leave one out"
        )
    # Most networks list parents before their children, so they have no cycle to search for.
    if any(factor_numbers.get(v, 0) > number for number, factor in enumerate(factors) for v in factor.scope):
        cycle = find_cycle({child: factor.scope for child, factor in zip(children, factors, strict=True)})
        if cycle:
            raise InputError("a cycle of parents: " + " <- ".join(repr(variables[v].name) for v in cycle))


def checked(
    variables: Sequence[Named],
    factors: Sequence[Table],
    children: Sequence[int],
    *,
    strict: bool = True,
    in_place: bool = False,
) -> tuple[tuple[Table, ...], frozenset[int]]:
    """Normalise the rows that miss 1 by the rounding of decimals.

    Args:
        variables: Variables of the model.
        factors: Tables of finite, non-negative numbers.
        children: Factor i is the distribution of variable ``children[i]`` given the rest of its scope.
        strict: True if a row that misses 1 by more than ``ROUNDING`` is an error; if not, a warning is logged, and the
            factors are returned as they are.
        in_place: True if dense tables may be written to, because no other object shares their arrays.

    Returns:
        The factors, and the numbers of those with a row that still does not sum to 1.

    Raises:
        InputError: A row misses 1 by more than ``ROUNDING``.
    """
    off = dict(_off(factors, children))
    if not off:
        return tuple(factors), frozenset()
    count = int(_are_beyond(np.concatenate([sums.totals for sums in off.values()])).sum())
    if count:
        number, row = next((n, int(are.argmax())) for n in sorted(off) if (are := _are_beyond(off[n].totals)).any())
        text = _text(variables, factors[number], children[number], off[number], row)
        if strict:
            others = "1 more row misses" if count == 2 else f"{count - 1:,} more rows miss"
            more = f" ({others} 1, too)" if count > 1 else ""
            advice = by_interface(
                "take it as it is by check=False where the model is read or made",
                f"pass {option('check', False)} to take it as it is",
            )
            raise InputError(f"{text}{more}: correct it, or {advice}")
        rows_miss = "one row misses" if count == 1 else f"{count:,} rows miss"
        logger.warning("%s; %s 1 by more than %g: the file is read as a product of tables", text, rows_miss, ROUNDING)
        return tuple(factors), frozenset(off)
    result = list(factors)
    for number, sums in off.items():
        result[number] = _normalised(factors[number], children[number], sums, in_place)
    if logger.isEnabledFor(logging.INFO):
        _report(variables, off, children)
    return tuple(result), frozenset(number for number in off if _stays(factors[number]))


def unnormalised(factors: Sequence[Table], children: Sequence[int]) -> frozenset[int]:
    """Return the numbers of the factors with a row that does not sum to 1 up to the rounding of additions."""
    return frozenset(number for number, _ in _off(factors, children))


class _Sums(NamedTuple):
    """Sums of a factor's rows; a sum that differs from 1 by the rounding of additions alone is given as 1.0.

    Attributes:
        totals: Sum of each row, a row for each assignment of the parents: of a dense factor in the order of its table,
            of a sparse one in the order of ``parents``.
        parents: States of the parents at each sum of a sparse factor; -1 stands for all states that no tuple has. None
            for a dense factor.
    """

    totals: NDArray[np.float64]
    parents: NDArray[np.int64] | None


def _are_beyond(totals: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark the sums that miss 1 by more than the rounding of decimals."""
    return ~(np.abs(totals - 1.0) <= ROUNDING * (1 + _SLACK))


def _normalised(factor: Table, child: int, sums: _Sums, in_place: bool) -> Table:
    """Return the factor with its rows divided by their sums; unchanged if it cannot be normalised."""
    axis = factor.scope.index(child)
    if factor.rows is None:
        sizes = [size for a, size in enumerate(factor.sizes) if a != axis]
        totals = np.expand_dims(sums.totals.reshape(sizes), axis)
        if in_place and factor.values.dtype == np.float64 and factor.values.flags.writeable:
            np.divide(factor.values, totals, out=factor.values)
            return factor
        return Table(factor.scope, (factor.values / totals).astype(factor.values.dtype))
    if _stays(factor):
        return factor
    values = (factor.values / sums.totals[_parents_of(factor, axis)[1]]).astype(factor.values.dtype)
    return Table(factor.scope, values, sizes=factor.sizes, rows=factor.rows, default=factor.default)


def _stays(factor: Table) -> bool:
    """Return whether a factor cannot be normalised: a sparse table's default cannot be divided row by row."""
    return factor.rows is not None and factor.default != 0


def _off(factors: Sequence[Table], children: Sequence[int]) -> Iterator[tuple[int, _Sums]]:
    """Yield the number and the sums of each factor with a row whose sum is not 1, up to the rounding of additions."""
    for batch in batches(factors):
        by_size: dict[int, list[int]] = {}
        for number in batch:
            factor = factors[number]
            if factor.rows is None and factor.scope[-1] == children[number]:
                by_size.setdefault(factor.sizes[-1], []).append(number)
                continue
            sums = _sums(factor, children[number])
            if (sums.totals != 1.0).any():
                yield number, sums
        for size, numbers in by_size.items():
            yield from _off_together(factors, numbers, size)


def _off_together(factors: Sequence[Table], numbers: Sequence[int], size: int) -> Iterator[tuple[int, _Sums]]:
    """Yield the same as ``_off`` for dense tables whose last axis is the child's and has ``size`` states."""
    flat = joined_values([factors[number] for number in numbers])
    # ``einsum`` is several times as fast as ``sum`` over a short axis. A matrix product with ones would start
    # the threads of the BLAS library.
    sums = np.einsum("ij->i", flat.reshape(-1, size), dtype=np.float64)
    totals = _snapped(sums, size * _unit(flat.dtype))
    wrong = np.flatnonzero(totals != 1.0)
    if not len(wrong):
        return
    ends = np.cumsum([factors[number].values.size // size for number in numbers])
    for factor in np.unique(np.searchsorted(ends, wrong, side="right")).tolist():
        first = 0 if factor == 0 else ends[factor - 1]
        yield numbers[factor], _Sums(totals[first : ends[factor]], None)


def _snapped(totals: NDArray[np.float64], slack: Any) -> NDArray[np.float64]:
    """Return the sums, with 1.0 for each that differs from 1 by rounding alone."""
    return np.where(np.abs(totals - 1.0) <= slack, 1.0, totals)


def _sums(factor: Table, child: int) -> _Sums:
    axis = factor.scope.index(child)
    size = factor.sizes[axis]
    slack = size * _unit(factor.values.dtype)
    if factor.rows is None:
        return _Sums(_snapped(factor.values.sum(axis=axis, dtype=np.float64).reshape(-1), slack), None)
    distinct, group = _parents_of(factor, axis)
    counts = np.bincount(group, minlength=len(distinct))
    default = float(factor.default or 0)
    totals = np.bincount(group, weights=factor.values.astype(np.float64), minlength=len(distinct)).astype(np.float64)
    totals += (size - counts) * default
    if len(distinct) < factor.cells // size:
        distinct = np.append(distinct, np.full((1, distinct.shape[1]), -1), axis=0)
        totals = np.append(totals, default * size)
    return _Sums(_snapped(totals, slack), distinct)


def _parents_of(factor: Table, axis: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct assignments of the parents in a sparse factor's tuples, and each tuple's index into them."""
    assert factor.rows is not None
    parents = np.delete(factor.rows, axis, axis=1).astype(np.int64)
    distinct, group = np.unique(parents, axis=0, return_inverse=True)
    return distinct, group.reshape(-1)


def _unit(dtype: np.dtype[Any]) -> float:
    """Return a bound on the relative error of one addition and one division together."""
    return 2.0 * np.finfo(dtype).eps.item() if dtype.kind == "f" else 0.0


def _text(variables: Sequence[Named], factor: Table, child: int, sums: _Sums, row: int) -> str:
    pairs = [(v, size) for v, size in zip(factor.scope, factor.sizes, strict=True) if v != child]
    parent_states = np.unravel_index(row, [size for _, size in pairs]) if sums.parents is None else sums.parents[row]
    if (np.array(parent_states) < 0).any():
        condition = "states of its parents that no tuple has"
    else:
        parents = zip(pairs, parent_states, strict=True)
        condition = ", ".join(f"{variables[v].name}={variables[v].state(int(x))}" for (v, _), x in parents)
    total = float(sums.totals[row])
    suffix = condition and f" given {condition}"
    return f"the distribution of {variables[child].name!r}{suffix} sums to {total:.10g}, not 1"


def _report(variables: Sequence[Named], off: dict[int, _Sums], children: Sequence[int]) -> None:
    names = [variables[children[number]].name for number in off]
    rows = sum(int(np.count_nonzero(sums.totals != 1.0)) for sums in off.values())
    farthest = max(float(np.abs(sums.totals - 1.0).max()) for sums in off.values())
    more = ", ..." if len(names) > _SHOWN else ""
    logger.info(
        "normalised rows that miss 1 by at most %.1g: %s in the distributions of %s of the variables, %s%s",
        farthest,
        f"{rows:,}",
        f"{len(names):,}",
        ", ".join(names[:_SHOWN]),
        more,
    )
