"""Options of plans and runs, in the form that users write."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from elimina import arguments
from elimina.model.states import Evidence
from elimina.planning.option_values import IBound
from elimina.planning.order import Method
from elimina.planning.plan import Plan
from elimina.planning.solve_methods import OptimumMethod
from elimina.result import Bounds

Slices = int | Literal["auto", "never"]
"""Conditioning on variables if a plan does not fit: the largest number of slices, or a choice."""

Tables = Literal["auto", "dense", "sparse"]
"""Table layout: sparse tables hold only allowed tuples; ``auto``: sparse if that is expected to be faster."""
TABLES: tuple[Tables, ...] = get_args(Tables)

Shift = Literal["none", "tables", "clusters", "buckets", "all"]
"""Cost shifting for tighter bounds: none; between tables; also between joined tables; between mini-buckets; all."""
SHIFTS: tuple[Shift, ...] = get_args(Shift)

Division = Literal["auto", "scope", "content"]
"""Partition of buckets by the scopes or by the contents of tables; ``auto``: by content if this is fast."""
DIVISIONS: tuple[Division, ...] = get_args(Division)

ORDER_SECONDS = 2.0
"""Default time limit of the order search in seconds; it ends earlier if further search is not worth its time."""


@arguments.with_checked_methods
@dataclass(frozen=True, repr=False)
class Options:
    """Settings for experts: options of ``elimina.plan`` and ``elimina.solve`` in addition to their arguments.

    Attributes:
        device: Device, unless the call has an argument ``device``; several GPUs as in ``cuda:0,cuda:1``.
        memory: Memory limit on each device, unless the call has an argument ``memory``.
        order: A method of ``elimina.planning.order.find_order``, or the variables (names or indices) in elimination
            order.
        order_seconds: Time limit of the order search, measured by the amount of work so that runs are reproducible.
        seed: Random seed of the order search.
        threads: Number of CPU threads; None: all that the process may use.
        dtype: Number type of the tables; None: the narrowest exact one.
        slices: Conditioning if the plan does not fit (``mpe``, ``pr``, ``count``): the problem is solved for each
            combination of values of some variables. ``auto``: at most 65,536 slices, and only if they take an estimated
            hour or less; a number: at most this many slices, regardless of the time; ``never``: no slices.
        scratch: A directory for tables that exceed the memory; they are deleted at the end. None: all tables stay in
            memory.
        tables: Layout of the tables. ``dense``: all cells; ``sparse``: only the allowed tuples; ``auto``: sparse if
            this is likely to be faster, or if nothing else fits.
        ibound: Largest number of variables in a message between mini-buckets (``mpe``, ``pr``). The plan then bounds
            the optimum or, with weights, bounds the sum from above. ``auto``: as many variables as memory allows. The
            method ``mbe`` uses ``auto`` by default; ``search`` starts with a small i-bound and raises it.
        shift: Cost shifting for tighter bounds. ``tables``: between tables, before planning (``mpe``); ``clusters``:
            also between joined tables, if time and memory suffice for the i-bound (``mpe``); ``buckets``: between the
            mini-buckets of a variable; ``all``: all of these; ``none``: no shifting. The method ``mbe`` also runs
            without shifting, and keeps the better bounds.
        partition: Partition of buckets into mini-buckets. ``scope``: tables that share most variables are joined;
            ``content`` (``mpe``): the tables are joined whose joint message is largest compared with the sum of their
            separate messages, if the host's memory suffices for all messages; ``auto``: by content if this is quick.
        method: Method of solving.

            - ``eliminate``: run the plan.
            - ``mbe``: mini-bucket elimination. For ``mpe``, it bounds the optimum from one side, and an assignment
              decoded from the messages bounds it from the other. The answer is ``optimal`` if both bounds are equal,
              otherwise ``bounded``. For ``pr``, weighted mini-buckets (Liu and Ihler 2011) bound log10 Z from both
              sides. For ``mmap``, if the sum does not fit, they give the upper bound; an assignment decoded from them
              gives the lower bound, and its sum is ``value`` if it can be computed exactly.
            - ``filter``: filtered elimination of integer costs (``mpe``). With ``cuda`` or ``sparse`` tables, the
              sparse steps of the plan do the filtering.
            - ``search``: branch and bound (``mpe``, and the maximisation of ``mmap``). It alternates between
              mini-buckets and soft local consistency as its guide, and has both bounds at any time.
            - ``auto``: for ``mpe``, filtered elimination and search come first if a plan takes long, and alternate if
              no plan fits; neither is used with a checkpoint. For ``pr`` and ``mmap``, elimination, or bounds (for
              ``pr``, also an estimate) if no plan fits.
        exact: True: raise an error instead of returning an estimate or bounds if the exact answer exceeds the memory or
            the time.
        upper_bound: Cost of a known solution (``mpe``), with decimals if the costs have decimals; assignments with
            higher costs are ignored. If all are ignored, the answer is ``infeasible``, and its lower bound is the next
            higher cost (for costs with decimals, ``upper_bound`` itself).
        hint: An assignment to start from (``mpe``): variable (name or index) -> its state. If it leaves variables out,
            local search completes it. Evidence overrides it. The answer is never worse than the hint.
        k: Number of assignments (``kbest``), unless the call has an argument ``k``; None: 10.
        gap: Gap of the bounds, relative to the bound closer to 0, at which filtering and search end (``bounded``); a
            number, or text such as ``1%``.
        checkpoint: A directory for the progress of a long run (``mpe``, ``pr``, ``count``). After any end of the
            process, the same call resumes the run. The directory is emptied when the answer is known.
        on_plan: Function to call with the plan before it runs.
        on_bounds: Function to call repeatedly with the bounds, whenever they or the nodes of a search have changed.
        progress: Function to call with the finished share of the work, from 0 to 1. True: show the phase, the bounds
            and the time of the call on a terminal or in a notebook.

    Examples:
        >>> import elimina
        >>> options = elimina.Options(method="mbe", ibound=2)
        >>> result = elimina.solve("examples/radio.wcsp", options=options)
        >>> result.status
        'bounded'
    """

    device: str = "auto"
    memory: int | str | None = None
    order: Method | Sequence[int | str] = "auto"
    order_seconds: float = ORDER_SECONDS
    seed: int = 0
    threads: int | None = None
    dtype: str | None = None
    slices: Slices = "auto"
    scratch: str | os.PathLike[str] | None = None
    tables: Tables = "auto"
    ibound: IBound | None = None
    shift: Shift = "all"
    partition: Division = "auto"
    method: OptimumMethod = "auto"
    exact: bool = False
    upper_bound: float | None = None
    hint: Evidence | None = None
    k: int | None = None
    gap: float | str = 0.0
    checkpoint: str | os.PathLike[str] | None = None
    on_plan: Callable[[Plan], None] | None = None
    on_bounds: Callable[[Bounds], None] | None = None
    progress: Callable[[float], None] | bool | None = None

    def __repr__(self) -> str:
        values = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        changed = (f"{name}={value!r}" for name, (value, default) in values.items() if repr(value) != repr(default))
        return f"{type(self).__name__}({', '.join(changed)})"


DEFAULT = Options()

AnyOptions = TypeVar("AnyOptions", bound=Options)

if TYPE_CHECKING:
    from dataclasses import replace as replace
else:
    # dataclasses.replace would take eight times as long, several percent of the time of a small model.
    def replace(options: AnyOptions, **values: Any) -> AnyOptions:
        """Return a copy of options with other values."""
        copy = object.__new__(type(options))
        vars(copy).update(vars(options), **values)
        return copy
