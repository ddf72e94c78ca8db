"""Planning options of users, and their checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from elimina import arguments
from elimina.backends.choose import DEVICES
from elimina.errors import InputError
from elimina.order import LARGEST_SEED, Method
from elimina.planning.minibuckets import IBound

MOST_THREADS = 1024

Slices = int | Literal["auto", "never"]
"""Conditioning on variables where a plan does not fit, and the most slices that it may make."""

Tables = Literal["auto", "dense", "sparse"]
"""Table layout: sparse tables hold allowed tuples alone; ``auto``: sparse where that is expected to be faster."""
TABLES: tuple[Tables, ...] = get_args(Tables)

Shift = Literal["none", "tables", "clusters", "buckets", "all"]
"""Cost shifting for tighter bounds: none; between tables; also between clusters of these; between mini-buckets; all."""
SHIFTS: tuple[Shift, ...] = get_args(Shift)

Division = Literal["auto", "scope", "content"]
"""Partition of buckets by the scopes of tables, or by their contents; ``auto``: by content where that is quick."""
DIVISIONS: tuple[Division, ...] = get_args(Division)

ORDER_SECONDS = 2.0
"""Default limit on the search for an order; it ends earlier where the plan would not gain."""


class Options(NamedTuple):
    """Planning options; ``elimina.plan`` describes the fields."""

    device: str = "auto"
    memory: int | None = None
    order: Method | Sequence[int | str] = "auto"
    order_seconds: float = ORDER_SECONDS
    seed: int = 0
    threads: int | None = None
    dtype: str | None = None
    slices: Slices = "auto"
    scratch: str | None = None
    tables: Tables = "auto"
    ibound: IBound | None = None
    shift: Shift = "all"
    partition: Division = "auto"
    refined: int = 0
    """Number of times that tuples exceeded the memory: each time, ``FINER`` times as many are expected."""
    is_kept: bool = False
    """True if a checkpoint keeps what is known, for which tables have to stay on the device."""

    @property
    def shifts_tables(self) -> bool:
        """True if costs are shifted between tables."""
        return self.shift in ("tables", "clusters", "all")

    @property
    def shifts_clusters(self) -> bool:
        """True if costs are shifted between joined tables, too."""
        return self.shift in ("clusters", "all")

    @property
    def levels_buckets(self) -> bool:
        """True if costs are shifted between mini-buckets."""
        return self.shift in ("buckets", "all")

    @property
    def for_bounds(self) -> Options:
        """The options for mini-buckets where what they ask for does not fit."""
        return self._replace(dtype=None, slices="auto", scratch=None, tables="auto", refined=0, is_kept=False)

    @property
    def names_another_way(self) -> bool:
        """True if slices, files or rows are asked for, where tables do not fit."""
        return self.scratch is not None or self.tables == "sparse" or self.slices not in ("auto", "never")

    def checked(self) -> Options:
        """Return the options with plain values: memory in bytes, paths as text; checks what does not depend on a model.

        Raises:
            TypeError: A field has the wrong type.
            InputError: A field makes no sense.
        """
        options = self._replace(
            device=arguments.choice("device", self.device, DEVICES),
            memory=arguments.memory_size("memory", self.memory),
            order=_checked_order(self.order),
            order_seconds=_checked_seconds(self.order_seconds),
            seed=arguments.integer("seed", self.seed, 0, LARGEST_SEED),
            threads=None if self.threads is None else arguments.integer("threads", self.threads, 1, MOST_THREADS),
            dtype=_dtype_name(self.dtype),
            slices=_word_or_count("slices", self.slices, ("auto", "never"), "auto, never or the most slices allowed"),
            scratch=arguments.path("scratch", self.scratch),
            tables=arguments.choice("tables", self.tables, TABLES),
            ibound=None
            if self.ibound is None
            else _word_or_count("ibound", self.ibound, ("auto",), "auto, a number of variables, or None"),
            shift=arguments.choice("shift", self.shift, SHIFTS),
            partition=arguments.choice("partition", self.partition, DIVISIONS),
        )
        if options.ibound is not None and options.names_another_way:
            raise InputError(
                "mini-buckets are small enough for the memory themselves; leave slices, scratch and sparse tables out"
            )
        if options.scratch is not None:
            from elimina.planning.tiers import check_scratch

            check_scratch(options.scratch)
        return options


def _checked_seconds(seconds: Any) -> float:
    """Return a limit of the search for an order, as long as it makes sense."""
    checked = arguments.number("order_seconds", seconds, "a number of seconds")
    if checked < 0:
        raise InputError(f"seconds for ordering is {arguments.shown(checked)}; it cannot be negative")
    return min(checked, 1e9)


def _word_or_count(name: str, given: Any, words: tuple[str, ...], taken: str) -> Any:
    if isinstance(given, str):
        if given in words:
            return given
        raise InputError(f"{name} is {arguments.shown(given)}; it takes {taken}")
    return arguments.integer(name, given, 1, taken=taken)


def _checked_order(order: Any) -> Any:
    """Return a method's name, which the search for an order checks, or a tuple of names and indices."""
    if isinstance(order, str):
        return order
    if not isinstance(order, bytes | Mapping | Set):
        try:
            return tuple(order)
        except TypeError:
            pass
    raise arguments.wrong_type("order", order, f"a method ({', '.join(get_args(Method))}) or a sequence of variables")


def _dtype_name(dtype: Any) -> str | None:
    """Name of a NumPy dtype; a name is checked against the task by the planner."""
    if dtype is None or isinstance(dtype, str):
        return dtype
    try:
        if isinstance(dtype, type | np.dtype):
            return np.dtype(dtype).name
    except TypeError:
        pass
    taken = "the name of a dtype such as 'float32', or None for the narrowest exact one"
    raise arguments.wrong_type("dtype", dtype, taken)
