"""Random packed programs: trees of buckets with joins, padding, ties, forbidden cells, made without the planner."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from elimina.planning.packed_steps import Steps
from elimina.planning.program import Program
from elimina.planning.step import JOIN, MATCHING, Operand, Step
from elimina.planning.tiers import plan_stream
from tests.reference.buckets import Bucket, bucket_program
from tests.reference.planner import Bucket as PlannedBucket
from tests.reference.planner import ProtoStep, Read, place


class Builder:
    """Collects steps (children first) and the factors that they read."""

    def __init__(self, rng, semiring, dtype, *, parameter=None, padding=0.3, reuse=False):
        self.rng, self.semiring, self.dtype = rng, semiring, np.dtype(dtype)
        self.padding, self.reuse = padding, reuse
        self.parameter = self._parameter() if parameter is None else parameter
        self.steps: list[Step] = []
        self.factors: list[np.ndarray] = []
        self.factor_cells = 0
        self.sizes: dict[int, int] = {}
        self.spans: list[tuple[int, int]] = []  # of each step's output, from the start of the messages
        self.held: set[int] = set()  # steps that are read again

    def _parameter(self):
        if self.semiring in ("min-sum", "min-max"):
            return 1500 if self.dtype.kind == "i" else float(self.rng.choice([1e6, np.inf]))
        return int(self.rng.choice([0, 2147483629])) if self.semiring == "count" else 0.0

    def variable(self, size):
        """A new variable."""
        self.sizes[len(self.sizes)] = size
        return len(self.sizes) - 1

    def values(self, cells):
        """Values of a factor, some of them forbidden."""
        rng, kind = self.rng, self.semiring
        if kind in ("min-sum", "min-max"):
            top = int(rng.choice([3, 100]))
            least = 0 if kind == "min-sum" else -top
            data = rng.integers(least, top, cells) if self.dtype.kind == "i" else rng.normal(size=cells).round(3)
            return np.where(rng.random(cells) < 0.1, self.parameter, data).astype(self.dtype)
        if kind == "count":
            return rng.integers(0, 3, cells).astype(np.uint64)
        data = np.where(rng.random(cells) < 0.2, 0.0, rng.random(cells) * float(rng.choice([1e-4, 1.0, 1e3])))
        if kind == "log-sum-exp":
            with np.errstate(divide="ignore"):
                data = np.log(data)
        return data.astype(self.dtype)

    def strides(self, sizes, dense_from):
        """Strides of axes, slow to fast, rows before `dense_from` padded now and then; and the elements they take."""
        strides, span = [0] * len(sizes), 1
        for axis in reversed(range(len(sizes))):
            if axis + 1 == dense_from and self.rng.random() < self.padding:
                span = -(-span // 8) * 8
            strides[axis] = span
            span *= sizes[axis]
        return strides, span

    def factor(self, axes: Sequence[int]):
        """A factor over axes; returns its offset and strides."""
        sizes = [self.sizes[axis] for axis in axes]
        strides, span = self.strides(sizes, int(self.rng.integers(0, len(sizes) + 1)))
        offset = -(-self.factor_cells // 8) * 8 + int(self.rng.integers(0, 8)) * int(self.rng.random() < 0.2)
        gap = offset - self.factor_cells
        self.factors.append(np.zeros(gap, self.dtype))
        self.factors.append(self.values(span))
        self.factor_cells = offset + span
        return offset, strides

    def step(self, variable, axes, scopes, children, *, outer=None, mid=None, vary_padding=True):
        """Append a step that reads factors over `scopes` (with the variable first) and the outputs of `children`."""
        axes = list(axes)
        sizes = [self.sizes[axis] for axis in axes]
        if outer is None:
            outer, end = sorted(int(n) for n in self.rng.integers(0, len(axes) + 1, 2))
            mid = end - outer
        lo = outer + mid
        operands = []
        for scope in scopes:
            offset, strides = self.factor(scope)
            operands.append(
                (-1, offset, dict(zip(scope, strides, strict=True)), math.prod(self.sizes[v] for v in scope))
            )
        for child in children:
            source = self.steps[child]
            operands.append(
                (child, source.out_offset, dict(zip(source.axes, source.out_strides, strict=True)), source.out_cells)
            )
        classes: list[list[Operand]] = [[], [], []]
        for source, offset, strides, cells in operands:
            operand = Operand(
                -1, source, offset, strides.get(variable, 0), tuple(strides.get(a, 0) for a in axes), cells
            )
            has_mid, has_lo = any(operand.strides[outer:lo]), any(operand.strides[lo:])
            classes[0 if not has_lo else 1 if not has_mid else 2].append(operand)
        out_strides, span = self.strides(sizes, lo if vary_padding else len(sizes))
        number = len(self.steps)
        at = self._place(span, number)
        domain = 1 if variable < 0 else self.sizes[variable]
        weight = float(self.rng.choice([1, 1, 0.5, 0.25, 0, 1.5, -0.5])) if self.semiring == "log-sum-exp" else 1.0
        self.steps.append(
            Step(variable, domain, tuple(axes), tuple(sizes), tuple(out_strides), outer, mid,
                 tuple(classes[0] + classes[1] + classes[2]), len(classes[0]), len(classes[1]), at, span, (), weight)
        )  # fmt: skip
        for child in children:
            self.steps[child] = self.steps[child]._replace(readers=(*self.steps[child].readers, number))
        return number

    def level(self, marginals, *, vary_padding=True):
        """Append the moment-matching steps of mini-buckets with these marginals; returns their numbers."""
        axes = self.steps[marginals[0]].axes
        self.held.update(marginals)
        found = []
        for own in range(len(marginals)):
            made = self.step(MATCHING, axes, [], marginals, vary_padding=vary_padding)
            operands = {operand.source: operand for operand in self.steps[made].operands}
            self.steps[made] = self.steps[made]._replace(
                operands=tuple(operands[marginal] for marginal in marginals), tables_a=own, tables_b=0
            )
            found.append(made)
        self.held.difference_update(marginals)
        return found

    def minibuckets(self, variable, parts, shared):
        """Append the steps of a bucket in mini-buckets, and their moment matching; return what each of them sends.

        Args:
            variable: The bucket's own.
            parts: Steps that each mini-bucket reads.
            shared: The variables of the matched marginals.
        """
        held = {n for part in parts for n in part} - self.held
        self.held |= held
        marginals, sent = [], []
        for part in parts:
            number, scope = self._join(part)
            for other in [v for v in scope if v not in shared]:
                scope = [v for v in scope if v != other]
                number = self.step(other, scope, [], [number])
            marginals.append(number if set(scope) == set(shared) else self.step(JOIN, shared, [], [number]))
        for part, level in zip(parts, self.level(marginals), strict=True):
            scope = dict.fromkeys(v for n in (*part, level) for v in self.steps[n].axes if v != variable)
            sent.append(self.step(variable, list(scope), [], [*part, level]))
        self.held -= held
        return sent

    def _join(self, steps):
        scope = list(dict.fromkeys(v for n in steps for v in self.steps[n].axes))
        return self.step(JOIN, scope, [], steps), scope

    def _place(self, span, number):
        """The lowest place for an output; memory of messages that were read already may serve again."""
        if self.reuse:
            busy = [n for n in range(number) if not self.steps[n].readers or number in self.steps[n].readers]
            taken = sorted(self.spans[n] for n in (*busy, *self.held))
        else:
            taken = sorted(self.spans)
        at = 0
        for begin, end in taken:
            if at + span <= begin:
                break
            at = max(at, -(-end // 8) * 8)
        self.spans.append((at, at + span))
        return at

    @property
    def base(self):
        """Return the offsets of the messages."""
        return -(-self.factor_cells // 64) * 64

    def placed(self):
        """The steps with their places in the arena."""
        return [
            step._replace(
                out_offset=step.out_offset + self.base,
                operands=tuple(o._replace(offset=o.offset + self.base) if o.source >= 0 else o for o in step.operands),
            )
            for step in self.steps
        ]

    def program(self, decode=False):
        """Pack."""
        arena = self.base + max(end for _, end in self.spans)
        factors = np.concatenate([*self.factors, np.zeros(0, self.dtype)])
        return self.packed(self.placed(), self.factor_cells, arena, decode), factors

    def packed(self, steps, factor_cells, arena_cells, decode=False):
        """Pack steps that have their places."""
        packed = Steps.packed(steps)
        outputs = [(n, step.out_offset, step.out_span) for n, step in enumerate(steps) if not step.readers]
        return Program(
            semiring=self.semiring,
            dtype=self.dtype,
            parameter=self.parameter,
            words=packed.words,
            starts=packed.starts,
            variables=len(self.sizes),
            factor_cells=factor_cells,
            arena_cells=arena_cells,
            keep=not self.reuse,
            decode=decode,
            outputs=np.array(outputs, dtype=np.int64).reshape(-1, 3),
            work=max(1, sum(step.work for step in steps)),
        )


def random_program(rng, semiring, dtype, *, decode=False, **options):
    """A random forest: see `random_builder`."""
    return random_builder(rng, semiring, dtype, decode=decode, **options).program(decode)


def random_builder(rng, semiring, dtype, *, rows=4000, depth=3, top=12, decode=False, parameter=None, levels=False):
    """A random forest; every step's rows stay below `rows`. `levels`: some buckets get moment matching."""
    reuse = bool(rng.random() < 0.5) and not decode
    builder = Builder(rng, semiring, dtype, parameter=parameter, padding=float(rng.choice([0.0, 0.5])), reuse=reuse)

    def bucket(axes, left):
        """A step whose output has these axes; returns its number."""
        join = bool(axes) and rng.random() < 0.15
        used = math.prod(builder.sizes[a] for a in axes)
        size = 1 if join else int(min(rng.integers(1, top + 1), max(1, rows // used)))
        variable = -1 if join else builder.variable(size)
        if levels and not join and rng.random() < 0.4:
            return minibuckets(variable, axes, left)
        scopes, children, tables = [], [], int(rng.integers(0, 9))
        for _ in range(tables):
            known = [n for n, step in enumerate(builder.steps) if {variable, *axes}.issuperset(step.axes)]
            if known and not reuse and rng.random() < 0.3:
                children.append(int(rng.choice(known)))
                continue
            scope = [a for a in axes if rng.random() < 0.6]
            scope = scope if join else [variable, *scope]
            if left and scope and rng.random() < 0.35:
                children.append(bucket(scope, left - 1))
            else:
                scopes.append(scope)
        return builder.step(variable, axes, scopes, children)

    def minibuckets(variable, axes, left):
        """The same by mini-buckets, and a join of what they send."""
        everything = [variable, *axes]
        shared = [v for v in everything if rng.random() < 0.6] or everything[:1]

        def table():
            scope = list(rng.permutation([v for v in everything if v in shared or rng.random() < 0.3]).tolist())
            scope = scope if rng.random() < 0.7 else scope[:-1]
            return bucket(scope, left - 1) if left and rng.random() < 0.2 else builder.step(JOIN, scope, [scope], [])

        parts = [[table() for _ in range(rng.integers(1, 4))] for _ in range(rng.integers(2, 7))]
        return builder.step(JOIN, axes, [], builder.minibuckets(variable, parts, shared))

    for _ in range(int(rng.integers(1, 4))):
        bucket([], depth)
    # A wide bucket on top of nothing: its axes are eliminated by a chain of steps above it.
    axes: list[int] = []
    while len(axes) < 6:
        size = int(rng.integers(1, top + 1))
        if math.prod(builder.sizes[a] for a in axes) * size * 4 > rows:
            break
        axes.append(builder.variable(size))
    number = bucket(axes, depth)
    while axes:
        variable, axes = axes[0], axes[1:]
        scopes = [[variable, *(a for a in axes if rng.random() < 0.4)] for _ in range(int(rng.integers(0, 3)))]
        number = builder.step(variable, axes, scopes, [number])
    return builder


def one_levelling(rng, semiring, dtype, sizes, count, *, same_order=True, **options):
    """Marginals over axes of these sizes, and their moment matchings, which are the answer."""
    builder = Builder(rng, semiring, dtype, **options)
    axes = [builder.variable(size) for size in sizes]
    orders = [axes if same_order else rng.permutation(axes).tolist() for _ in range(count)]
    return builder, builder.level([builder.step(JOIN, order, [order], []) for order in orders])


def planned_levelling(rng, semiring, dtype, sizes, count):
    """Moment matchings of factors over axes of these sizes as the planner lays them out, which are the answer."""
    scope = tuple(range(len(sizes)))
    steps: list[ProtoStep] = []
    PlannedBucket(0, scope, sizes, {}, steps).level(
        [Read(factor, -1, scope) for factor in range(count)], [1 / count] * count
    )
    members = [(factor,) for factor in range(count)]
    _, placed, factor_cells, cells = place(sizes, [scope] * count, members, steps, np.dtype(dtype).itemsize, True)
    builder = Builder(rng, semiring, dtype)
    return builder.packed(placed, factor_cells, cells), builder.values(factor_cells)


def random_streamed(rng, semiring, dtype, budget, *, decode=False, host_work=0, **options):
    """A random program, and how it passes through a device of so many bytes (``stream`` is None if it cannot)."""
    builder = random_builder(rng, semiring, dtype, decode=decode, **options)
    program, factors = builder.program(decode)
    item = program.dtype.itemsize
    outputs = set(program.outputs[:, 0].tolist())
    stream = plan_stream(
        builder.placed(), outputs, item, budget // item, 0 if decode else len(builder.placed()), host_work
    )
    return program._replace(stream=stream), factors


def padded_bucket(dtype):
    """A large min-sum bucket with a table over everything, whose rows of 300 cells lie in padded ones of 30000."""
    bucket = Bucket(31, (5, 100, 100, 3), ((1, 2, 3, 4), (1,), (2,), (3,), (4,)))
    program = bucket_program(bucket, dtype)
    last = int(program.starts[-1])
    offset = int(program.words[last + 12])
    outputs = np.array([[len(program.starts) - 1, offset, program.arena_cells - offset]])
    factors = np.random.default_rng(0).integers(0, 100, program.factor_cells).astype(dtype)
    return program._replace(outputs=outputs), factors
