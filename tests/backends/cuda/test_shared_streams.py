"""A step whose axes are split again, moved or merged computes the same; no CUDA needed."""

from __future__ import annotations

import itertools
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from elimina.backends.cuda import faces_blocks
from elimina.backends.cuda import record_axes as cuda_record
from elimina.backends.cuda.shared_streams import outers_of, share
from elimina.planning.record import HEADER

CASES = 64
ITEM = 8


@st.composite
def records(draw):
    """A step over a few axes and the cases, its tables any subsets of them, the last ones streamed."""
    sizes = [*draw(st.lists(st.integers(2, 5), min_size=1, max_size=5)), CASES]
    domain, inner = draw(st.integers(1, 12)), len(sizes) - 1
    outer = draw(st.integers(0, inner))
    members = draw(st.lists(st.sets(st.integers(0, inner)), min_size=1, max_size=5))
    mid = range(outer, inner)

    def kind(axes):
        return 0 if inner not in axes else 1 if mid and axes.isdisjoint(mid) else 2

    members.sort(key=kind)
    counts = [sum(kind(axes) == n for axes in members) for n in range(3)]
    out_strides = strides_of(sizes, range(len(sizes)))
    outer_cells, mid_cells = math.prod(sizes[:outer]), math.prod(sizes[outer:inner])
    head = [domain, 0, len(sizes), outer, inner - outer, outer_cells, mid_cells, CASES]
    record = [0, *head, len(members), counts[0], counts[1], 0, 0]
    for axis, size in enumerate(sizes):
        record += [size, out_strides[axis], axis]
    for number, axes in enumerate(members):
        strides = strides_of(sizes, axes)
        cells = math.prod(sizes[a] for a in axes)
        record += [1000 * number, cells, number, *strides]
    record[0] = len(record)
    return record, counts[2]


def strides_of(sizes, axes):
    strides, step = [0] * len(sizes), 1
    for axis in sorted(axes, reverse=True):
        strides[axis], step = step, step * sizes[axis]
    return strides


def meaning(record):
    """Output offset -> the offsets in all tables, of a few cells."""
    sizes = record[HEADER : HEADER + 3 * record[3] : 3]
    out_strides = record[HEADER + 1 : HEADER + 3 * record[3] : 3]
    found = {}
    for cell in itertools.product(*(range(size) for size in sizes[:-1]), (0, CASES - 1)):
        tables = (
            (table[0] + sum(map(math.prod, zip(cell, table[3:], strict=True))), *table[1:3])
            for table in cuda_record.tables(record)
        )
        found[sum(map(math.prod, zip(cell, out_strides, strict=True)))] = sorted(tables)
    return found


@given(case=records())
@settings(max_examples=300, deadline=None)
def test_the_same_step_shares_what_is_streamed(case):
    record, streamed = case
    before, was = meaning(record), list(record)
    sharing = share(record, ITEM) if streamed else 1
    assert meaning(record) == before
    if sharing == 1:
        assert record == was
        return
    sizes = record[HEADER : HEADER + 3 * record[3] : 3]
    outer, lo = record[4], record[4] + record[5]
    assert record[6:9] == [math.prod(sizes[:outer]), math.prod(sizes[outer:lo]), math.prod(sizes[lo:])]
    tables = cuda_record.tables(record)
    first_b, first = record[10], record[10] + record[11]
    assert not any(any(table[3 + lo :]) for table in tables[:first_b])
    assert not any(any(table[3 + outer : 3 + lo]) for table in tables[first_b:first])
    shared, cells = [], 1
    while cells < sharing:
        shared.append(outer - 1 - len(shared))
        cells *= sizes[shared[-1]]
    assert cells == sharing
    assert tables[first:]
    assert not any(table[3 + axis] for table in tables[first:] for axis in shared)


def test_sharing_is_found_and_blocks_are_even():
    sizes, outer = [7, 5, CASES], 1
    a, b = strides_of(sizes, {0, 2}), strides_of(sizes, {1, 2})
    head = [0, 8, 0, 3, outer, 1, 7, 5, CASES, 2, 0, 1, 0, 0]
    axes = [word for n, s in enumerate(sizes) for word in (s, strides_of(sizes, range(3))[n], n)]
    record = [*head, *axes, 0, 448, -1, *a, 4096, 320, -1, *b]
    assert share(record, ITEM) == 5
    assert [outers_of(n) for n in (1, 2, 4, 5, 7, 9)] == [1, 2, 4, 3, 4, 3]


@given(case=records())
@settings(max_examples=300, deadline=None)
def test_the_same_step_has_fewer_axes(case):
    record, _ = case
    before, was = meaning(record), list(record)
    cuda_record.merge(record)
    assert meaning(record) == before
    assert record[0] == len(record)
    assert record[6:HEADER] == was[6:HEADER]
    sizes = record[HEADER : HEADER + 3 * record[3] : 3]
    ends = record[4], record[4] + record[5], record[3]
    assert [math.prod(sizes[a:b]) for a, b in zip((0, *ends), ends, strict=False)] == record[6:9]
    strides = [record[HEADER + 1 : HEADER + 3 * record[3] : 3], *(table[3:] for table in cuda_record.tables(record))]
    for axis in range(1, record[3]):
        if axis not in ends:
            assert any(s[axis - 1] != s[axis] * sizes[axis] for s in strides)


@given(case=records())
@settings(max_examples=300, deadline=None)
def test_outer_axes_that_the_streamed_table_lacks_are_the_last_ones(case):
    record, streamed = case
    before, was = meaning(record), list(record)
    sharing = faces_blocks.split_outer(record)
    assert meaning(record) == before
    assert record[4:HEADER] == was[4:HEADER]
    if streamed != 1:
        assert (sharing, record) == (1, was)
        return
    sizes = record[HEADER : HEADER + 3 * record[3] : 3]
    strides = cuda_record.tables(record)[-1][3 : 3 + record[4]]
    lacking = [axis for axis in range(record[4]) if not strides[axis]]
    assert lacking == list(range(record[4] - len(lacking), record[4]))
    assert math.prod(sizes[axis] for axis in lacking) == sharing
