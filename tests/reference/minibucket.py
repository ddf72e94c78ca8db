"""Mini-bucket elimination MBE(z) with NumPy (Dechter and Rish, 2003), and its tables as the search takes them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from elimina.planning.tree import bucket_tree


class Sent(NamedTuple):
    """A table over `scope`, earliest eliminated first, that the bucket of `origin` sent; -1: a factor."""

    origin: int
    scope: tuple[int, ...]
    values: np.ndarray


def aligned(scope, values, target):
    """The table with the axes of a scope that contains its own."""
    axes = [scope.index(v) for v in target if v in scope]
    shape = [values.shape[scope.index(v)] if v in scope else 1 for v in target]
    return np.transpose(values, axes).reshape(shape)


def partition(tables: list[Sent], z: int) -> list[list[Sent]]:
    """Greedy by scope: the tables of most variables first, each into the first mini-bucket that stays in z + 1."""
    groups: list[list[Sent]] = []
    for table in sorted(tables, key=lambda t: -len(t.scope)):
        for group in groups:
            if len(set(table.scope).union(*(t.scope for t in group))) <= z + 1:
                group.append(table)
                break
        else:
            groups.append([table])
    return groups


def mini_buckets(sizes, factors, order, z, forbidden=np.inf) -> list[Sent]:
    """The factors and all messages.

    Args:
        sizes: Domain sizes.
        factors: Scopes and costs to be minimised.
        order: All variables in elimination order.
        z: Most variables of a message (more, if a factor has more).
        forbidden: Limit that no sum of costs exceeds.
    """
    position = {v: i for i, v in enumerate(order)}

    def placed(origin, scope, values):
        ordered = tuple(sorted(scope, key=position.__getitem__))
        return Sent(origin, ordered, np.ascontiguousarray(aligned(tuple(scope), values, ordered)))

    tables = [placed(-1, scope, np.asarray(values)) for scope, values in factors]
    for v in order:
        bucket = [t for t in tables if t.scope and t.scope[0] == v]
        for group in partition(bucket, z):
            scope = tuple(sorted(set().union(*(t.scope for t in group)), key=position.__getitem__))
            joint = np.zeros([sizes[u] for u in scope], tables[0].values.dtype)
            for t in group:
                part = aligned(t.scope, t.values, scope)
                either = (joint >= forbidden) | (part >= forbidden)
                joint = np.where(either, forbidden, joint + part).astype(joint.dtype)
            tables.append(Sent(v, scope[1:], joint.min(axis=0)))
    return tables


def packed(sizes, tables: list[Sent], order, dtype):
    """Arguments of the search: arena, tables, sizes, parents, starts and contexts."""
    words: list[int] = []
    cells: list[np.ndarray] = []
    offset = 0
    for origin, scope, values in tables:
        values = np.ascontiguousarray(values, dtype)
        strides = [s // values.itemsize for s in values.strides]
        home, *axes = scope or [-1]
        words += [offset, home, strides[0] if scope else 0, origin, len(axes)]
        for v, stride in zip(axes, strides[1:], strict=True):
            words += [v, stride]
        cells.append(values.ravel())
        offset += values.size
    tree = bucket_tree([t.scope for t in tables if t.origin < 0 and t.scope], order)
    parents, contexts = [-1] * len(sizes), [[] for _ in sizes]
    for node in tree.nodes:
        parents[node.variable] = tree.nodes[node.parent].variable if node.parent >= 0 else -1
        contexts[node.variable] = list(node.separator)
    arena = np.concatenate(cells) if cells else np.zeros(0, dtype)
    return {
        "arena": arena,
        "tables": np.array(words, np.int64),
        "sizes": list(sizes),
        "parents": parents,
        **flat(contexts),
    }


def flat(contexts) -> dict[str, np.ndarray]:
    """The contexts of the variables, as the search takes them."""
    return {
        "starts": np.cumsum([0, *map(len, contexts)], dtype=np.int64),
        "contexts": np.array([v for context in contexts for v in context], dtype=np.int32),
    }


def width(factors, order) -> int:
    """Variables in the largest separator."""
    return bucket_tree([scope for scope, _ in factors if scope], order).width
