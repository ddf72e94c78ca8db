"""Checked options of a call, and values derived from them."""

from __future__ import annotations

from elimina.planning.devices import gpu_numbers
from elimina.planning.options import Options, replace
from elimina.planning.solve_methods import SOLVE_METHODS, SolveMethod
from elimina.system import available_threads

USUAL_ASSIGNMENTS = 10
"""Default number of assignments."""

MAX_SLICES = 1 << 16
"""Largest number of slices for the option ``auto``."""

_MIN_SHARED_BYTES = 1 << 24
"""A limit of at least this many bytes applies to all memory of a call. A lower one applies to the tables only, since
any process grows by some MiB."""

_MIN_MEMORY_SHARE = 0.25
"""Share of a memory limit that tables always get, because even small tables give bounds."""

_SPARE_MEMORY_SHARE = 0.125
"""Reserve in a recommended memory limit, as a share of the needed memory: equal calls need slightly different
amounts."""


class CheckedOptions(Options):
    """Options with plain values (memory in bytes, paths as text), from ``option_checks.check_options``."""

    memory: int | None

    @property
    def shifts_tables(self) -> bool:
        """True if costs are shifted between tables."""
        return self.shift in ("tables", "clusters", "all")

    @property
    def shifts_clusters(self) -> bool:
        """True if costs are also shifted between joined tables."""
        return self.shift in ("clusters", "all")

    @property
    def matches_moments(self) -> bool:
        """True if costs are shifted between mini-buckets."""
        return self.shift in ("buckets", "all")

    @property
    def for_bounds(self) -> CheckedOptions:
        """The options for mini-buckets, to which a call falls back if other methods exceed the memory."""
        return replace(self, dtype=None, slices="auto", scratch=None, tables="auto")

    @property
    def names_another_way(self) -> bool:
        """True if slices, files or sparse tables are requested, which help if dense tables do not fit."""
        return self.asks_for_slices or self.tables == "sparse"

    @property
    def max_slices(self) -> int:
        """Largest number of slices."""
        return {"auto": MAX_SLICES, "never": 0}[self.slices] if isinstance(self.slices, str) else self.slices

    @property
    def keeps_tables(self) -> bool:
        """True if all tables stay in memory for a checkpoint."""
        return self.checkpoint is not None and self.scratch is None

    def after_growth(self, growth_bytes: int) -> CheckedOptions:
        """Return checked options for work that begins after a call has allocated host memory.

        Args:
            growth_bytes: Bytes by which the process has grown during the call. They are not subtracted from a GPU's
                limit, nor from a limit that is too low to include memory other than tables.
        """
        if self.memory is None or not self.is_shared:
            return self
        return replace(self, memory=max(self.memory - growth_bytes, int(self.memory * _MIN_MEMORY_SHARE)))

    def limit_for(self, needed: int, growth_bytes: int) -> int:
        """Return a memory limit that suffices for ``needed`` bytes, with a reserve, after the process has grown."""
        limit = needed + int(needed * _SPARE_MEMORY_SHARE)
        return limit if limit < _MIN_SHARED_BYTES else limit + growth_bytes + int(growth_bytes * _SPARE_MEMORY_SHARE)

    @property
    def is_shared(self) -> bool:
        """True if the limit applies to the host and is large enough to include the call's memory other than tables."""
        return self.memory is not None and not self.needs_gpu and self.memory >= _MIN_SHARED_BYTES

    @property
    def assignments(self) -> int:
        """Number of assignments to find."""
        return USUAL_ASSIGNMENTS if self.k is None else self.k

    @property
    def host_threads(self) -> int:
        """Number of CPU threads that may be used."""
        return self.threads or available_threads()

    @property
    def needs_gpu(self) -> bool:
        """True if a GPU is requested."""
        return bool(gpu_numbers(self.device))

    @property
    def may_use_gpu(self) -> bool:
        """True unless the CPU is requested."""
        return self.chooses_device or self.needs_gpu

    @property
    def chooses_device(self) -> bool:
        """True if the device is chosen by estimates of the time."""
        return self.device == "auto"

    @property
    def looks_for_optimum(self) -> bool:
        """True if only filtering or search may answer: because of the method, or of an upper bound with ``auto``."""
        return self.solving.seeks_optimum or (self.solving.is_open and self.upper_bound is not None)

    @property
    def solving(self) -> SolveMethod:
        """Properties of the method."""
        return SOLVE_METHODS[self.method]

    @property
    def asks_for_slices(self) -> bool:
        """True if a number of slices or a directory for tables is given; both request elimination."""
        return self.scratch is not None or self.slices not in ("auto", "never")
