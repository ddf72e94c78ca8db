"""Short and distinct labels of nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from elimina.display import cut

_GAP = "…"


def short_labels(names: Sequence[str], letters: int) -> list[str]:
    """Return the names, cut to a length. Names that would become equal are cut in the middle, or cut less if necessary.

    Args:
        names: Names, all different.
        letters: Largest number of letters of a label, which is exceeded only to keep labels distinct.
    """
    labels = [cut(name, letters) for name in names]
    length = letters
    while repeated := {label for label, count in Counter(labels).items() if count > 1}:
        if length > letters + max(map(len, names)):
            break
        labels = [
            _without_middle(name, length) if label in repeated else label
            for name, label in zip(names, labels, strict=True)
        ]
        length += 2
    return labels


def _without_middle(name: str, letters: int) -> str:
    """Return both ends of a name with more than ``letters`` letters; return a shorter name as it is."""
    if len(name) <= letters:
        return name
    end = letters // 2
    return name[: letters - end - 1] + _GAP + name[-end:]
