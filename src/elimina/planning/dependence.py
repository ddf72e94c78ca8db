"""What depends on what among a plan's steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from elimina.planning.plan import Operand
from elimina.planning.structure import Read


def dependence(
    reads: Iterable[Sequence[Read] | Sequence[Operand]], factors: Sequence[int], own: Sequence[int] | None = None
) -> list[int]:
    """Bit masks of what has a say in each step, itself or through what it reads.

    Args:
        reads: For each step, the tables that it reads, which come from earlier steps or are factors.
        factors: For each factor, the bits that it stands for.
        own: For each step, bits of its own; None for none.
    """
    masks: list[int] = []
    for number, tables in enumerate(reads):
        mask = own[number] if own is not None else 0
        for table in tables:
            mask |= masks[table.source] if table.source >= 0 else factors[table.factor]
        masks.append(mask)
    return masks


def order_slices(
    masks: Sequence[int], work: Sequence[float], sizes: Sequence[float], variables: Sequence[int]
) -> tuple[int, ...]:
    """Order the fixed variables such that little runs again when the last ones change, which they do most often.

    Args:
        masks: For each step, which variables have a say in it, by their place.
        work: Of each step.
        sizes: Number of values of each variable of the model.
        variables: The fixed variables.
    """
    left: dict[int, float] = {}
    for mask, amount in zip(masks, work, strict=True):
        left[mask] = left.get(mask, 0) + amount
    remaining = dict(enumerate(variables))
    result: list[int] = []
    while remaining:
        total = sum(left.values())
        depend = {i: sum(amount for mask, amount in left.items() if mask >> i & 1) for i in remaining}
        last = min(remaining, key=lambda i: (depend[i] + (total - depend[i]) / sizes[remaining[i]], remaining[i]))
        left = {mask: amount for mask, amount in left.items() if not mask >> last & 1}
        result.append(remaining.pop(last))
    return tuple(reversed(result))
