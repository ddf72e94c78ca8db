"""Posteriors for many cases: the number of the case is one more axis of every table that depends on it, the fastest."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from queue import Empty, SimpleQueue

import numpy as np
from numpy.typing import NDArray

from elimina.backends import Backend
from elimina.backends.choose import find_cuda, get_backend
from elimina.backends.cpu import CpuBackend
from elimina.errors import MemoryLimitError
from elimina.inference.account import does_not_fit
from elimina.inference.answer import Answer, normalised
from elimina.inference.case_by_case import CaseByCase, PlannedCases
from elimina.inference.choose import Planned, plan_on
from elimina.inference.options import Options
from elimina.inference.ordering import elimination_order
from elimina.inference.posteriors import Posteriors
from elimina.inference.propagator import Propagator
from elimina.io.cases import Codes
from elimina.model import Model
from elimina.planning.estimate import cuda_machine
from elimina.planning.machine import CASE_COLUMN_SECONDS, KEPT_TREE_RUNS
from elimina.planning.plan import Plan
from elimina.planning.prepare import Problem, prepare_batch, with_units

_MOST_CASES = 8192
_UNIT = 16
"""Cases of a chunk are a multiple of it where memory allows: whole vectors."""

_CACHE_BYTES = 4 << 20
"""Bytes of a chunk's tables, so that they stay in a core's cache."""

_CASES_IN_TURN = 64
"""Cases that a thread runs one after another before it writes their posteriors."""

_ROOM = 2
"""Size of the arena for plans of single cases, relative to a plan's own."""

Floats = NDArray[np.float64]
_Rows = slice | NDArray[np.intp]
_Chunk = tuple[CaseByCase | None, Codes, _Rows, dict[int, Floats], Floats]


class Batch:
    """Answers cases that observe the same variables, or some of these, chunk by chunk.

    On the CPU each thread has a chunk of its own, small enough for its cache, or runs one case after another, on one
    plan or each on its own, whichever should take least; on a GPU a chunk is as large as memory allows, up to 8192
    cases.

    Args:
        model: A probability model.
        columns: The variables that some case may observe.
        asked: The variables whose marginals are asked for; None for all.
        options: Planning options.
        count: The cases to expect, which the choice of the device and of a chunk's size depends on.

    Raises:
        InputError: The model has costs, or an option makes no sense.
        MemoryLimitError: Not even a few cases fit.
        DeviceError: The device is missing or cannot be used.
    """

    def __init__(
        self, model: Model, columns: Sequence[int], asked: Sequence[int] | None, options: Options, count: int
    ) -> None:
        self.model, self.columns = model, tuple(columns)
        self._asked = tuple(range(len(model.variables)) if asked is None else asked)
        self._query = None if asked is None else self._asked
        self._options = options._replace(threads=1)
        self._propagators: SimpleQueue[dict[str, Propagator]] = SimpleQueue()
        probe = self._prepare(_UNIT)
        self._order = elimination_order(probe, options, runs=KEPT_TREE_RUNS)
        self._plan_chunks(probe, count, CpuBackend(options.threads).threads)
        self._ways = self._other_ways()

    def _other_ways(self) -> list[CaseByCase]:
        """Return the other ways on the CPU, if every thread may have their tables, in two semirings at worst."""
        backend = self.planned.backend
        if not isinstance(backend, CpuBackend):
            return []
        single = self._plan_on(backend, self._prepare(1))
        memory = backend.memory() if self._options.room is None else self._options.room
        memory //= 2 * self.threads
        if not single.plan.keep or single.plan.peak_bytes > memory:
            return []
        # Plans for single cases do with less where something is observed, but they are not as good.
        roomy = single.plan.with_room(_ROOM * single.plan.arena_cells)
        if roomy.peak_bytes > memory:
            return [CaseByCase(single, self.columns)]
        single = single._replace(plan=roomy)
        return [CaseByCase(single, self.columns), PlannedCases(single, self.columns)]

    def _prepare(self, cases: int) -> Problem:
        return prepare_batch(with_units(self.model), self.columns, self._query, cases)

    def _plan_on(self, backend: Backend, problem: Problem) -> Planned:
        return Planned(problem, plan_on(backend, problem, self._order, self._options), backend, {})

    def _plan_chunks(self, probe: Problem, count: int, threads: int) -> None:
        backend: Backend = CpuBackend(1) if not self._options.needs_gpu else get_backend("cuda")
        first = self._plan_on(backend, probe)
        if self._options.chooses_device and first.plan.seconds / _UNIT * count / threads > 2 * cuda_machine().start:
            cuda = find_cuda()
            if cuda is not None:
                backend = cuda
                first = self._plan_on(backend, probe)
        memory = backend.memory() if self._options.room is None else self._options.room
        # A chunk may have to be run again in another semiring, with tables of its own.
        memory //= 2
        is_cpu = isinstance(backend, CpuBackend)
        best, share = _MOST_CASES, count
        if is_cpu:
            best = max(self._cached_cases(first.plan), self._amortised_cases(first.plan))
            share = -(-count // threads)
        most = max(2, (memory - _static_bytes(first.plan)) // max(1, _case_bytes(first.plan)))
        # Chunks of one size, since what the last one lacks is computed all the same.
        chunks = max(1, -(-share // min(max(best, _UNIT), _MOST_CASES, most)))
        while True:
            cases = _rounded(-(-share // chunks))
            self.planned = first if cases == _UNIT else self._plan_on(backend, self._prepare(cases))
            if self.planned.plan.peak_bytes <= memory or cases <= 2:
                break
            chunks += -(-chunks // 8)
        if not self.planned.plan.fits:
            raise MemoryLimitError(does_not_fit(self.planned.plan))
        self.cases = cases
        outputs = self.planned.plan.outputs
        self._outputs = {n: output.scope[0] for n, output in enumerate(outputs) if len(output.scope) > 1}
        self._enough = count if share < min(best, most) else sys.maxsize
        self.threads = max(1, min(threads, memory // max(1, self.planned.plan.peak_bytes))) if is_cpu else 1

    @property
    def peak_bytes(self) -> int:
        """Bytes that the tables of all threads may take, in two semirings at worst."""
        return 2 * self.threads * max(p.plan.peak_bytes for p in (self.planned, *(way.planned for way in self._ways)))

    def _cached_cases(self, plan: Plan) -> int:
        return _CACHE_BYTES // max(1, _case_bytes(plan))

    def _amortised_cases(self, plan: Plan) -> int:
        """Return the number of cases whose run takes as long as the overhead of a chunk."""
        around = CASE_COLUMN_SECONDS * (len(self.columns) + len(plan.outputs)) + 1e-6 * len(plan.steps)
        return int(around / max(1e-9, (plan.seconds - 1e-6 * len(plan.steps)) / _UNIT))

    def suits(self, columns: Sequence[int], asked: Sequence[int] | None, count: int) -> bool:
        """Return whether it is made for so many cases with these columns and queries."""
        return (tuple(columns), asked) == (self.columns, self._query) and count <= self._enough

    def run(self, values: Codes, progress: Callable[[float], None] | None = None) -> Posteriors:
        """Answer cases.

        Args:
            values: int32 array of shape ``(cases, columns)``: value indices, -1 where there is none.
            progress: Called now and then with the share of the cases that is done.
        """
        count = len(values)
        marginals = {v: np.ones((self.model.variables[v].size, count)).T for v in self._asked}
        log_sums = np.empty(count)
        way = self._choose(values)
        size = self.cases if way is None else min(_CASES_IN_TURN, -(-count // self.threads))
        rows: list[_Rows] = [slice(at, at + size) for at in range(0, count, size)]
        if way is not None:
            sequence = way.sequence(values)
            rows = [sequence[part] for part in rows]
        chunks = [(way, values[part], part, marginals, log_sums) for part in rows]
        if self.threads == 1:
            for done, chunk in enumerate(chunks, 1):
                self._chunk(*chunk)
                if progress is not None:
                    progress(done / len(chunks))
        else:
            self._run_threads(chunks, progress)
        impossible = log_sums == -np.inf
        if impossible.any():
            for table in marginals.values():
                table[impossible] = 0.0
        named = {self.model.variables[v].name: table for v, table in marginals.items()}
        variables = tuple(self.model.variables[v] for v in marginals)
        return Posteriors(named, log_sums / math.log(10), variables)

    def _choose(self, values: Codes) -> CaseByCase | None:
        """Return the way that should take the least time; None: in chunks."""
        best, found = self.planned.plan.seconds / self.cases, None
        for way in self._ways if len(values) else ():
            if way.least_seconds(values) < best and (seconds := way.seconds(values)) < best:
                best, found = seconds, way
        return found

    def _run_threads(self, chunks: Sequence[_Chunk], progress: Callable[[float], None] | None) -> None:
        with ThreadPoolExecutor(self.threads) as pool:
            tasks = [pool.submit(self._chunk, *chunk) for chunk in chunks]
            try:
                for done, task in enumerate(as_completed(tasks), 1):
                    task.result()
                    if progress is not None:
                        progress(done / len(tasks))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def close(self) -> None:
        """Give the memory back; the next run takes it again."""
        while not self._propagators.empty():
            for propagator in self._propagators.get().values():
                propagator.close()

    def _chunk(
        self, way: CaseByCase | None, values: Codes, rows: _Rows, marginals: dict[int, Floats], log_sums: Floats
    ) -> None:
        """Answer a chunk; write into these rows."""
        try:
            own = self._propagators.get_nowait()
        except Empty:
            own = {}
        try:
            if way is not None:
                tables, log_sums[rows] = way.run(own, values)
                for v in marginals.keys() & tables.keys():
                    marginals[v][rows] = tables[v]
                return
            answer = self._propagate(own, values)
        finally:
            self._propagators.put(own)
        for v, table in zip(self._outputs.values(), answer.tables, strict=True):
            marginals[v].T[:, rows] = normalised(table[:, : len(values)], answer.logarithmic)
        log_sums[rows] = np.broadcast_to(answer.log_sum, self.cases)[: len(values)]

    def _propagate(self, own: dict[str, Propagator], values: Codes) -> Answer:
        """Propagate a chunk on a thread's own propagators, which are made when first needed."""
        wide = [self.model.variables[v].size > 1 for v in self.columns]
        codes = np.full((sum(wide), self.cases), -1, dtype=np.intp)
        codes[:, : len(values)] = values.T[wide]
        observed = [v for v, has_values in zip(self.columns, wide, strict=True) if has_values]
        # Scaled messages share a power of two over all cases: one that is much less likely may be lost, never silently.
        for semiring in ("sum-product", "log-sum-exp"):
            if semiring not in own:
                own[semiring] = Propagator(self.planned, semiring)
            own[semiring].observe(observed, codes)
            answer = own[semiring].run(tuple(self._outputs))
            if answer.sound:
                break
        return answer


def _rounded(cases: int) -> int:
    """Whole vectors, if that is no more than twice as many."""
    return max(2, cases) if cases <= _UNIT // 2 else -(-cases // _UNIT) * _UNIT


def _static_bytes(plan: Plan) -> int:
    """Return the bytes of the tables that do not depend on the case."""
    item = np.dtype(plan.dtype).itemsize
    return item * sum(factor.span for factor in plan.factors if plan.kept[0] not in factor.scope)


def _case_bytes(plan: Plan) -> int:
    """Return the bytes of a case, from a plan for a few."""
    return (plan.peak_bytes - _static_bytes(plan)) // _UNIT
