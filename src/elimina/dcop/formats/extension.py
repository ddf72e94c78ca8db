"""The tuples of pyDCOP's extensional constraints: "R G | G R" and so on for each cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from elimina.dcop.formats.build import Domain
from elimina.dcop.formats.yamltree import Mapping, Node, YamlFile


def read_tuples(
    file: YamlFile, values: Mapping, domains: Sequence[Domain], *, has_blanks: bool
) -> tuple[NDArray[np.int32], list[int | float]]:
    """Read the mapping cost -> tuples of a constraint.

    Args:
        file: The file that it is in.
        values: The mapping.
        domains: Domains of the variables of a tuple.
        has_blanks: True if a tuple is one value, with any blanks that are in it.

    Returns:
        Rows of places in the domains, of shape (n, len(domains)), and n costs.

    Raises:
        TextError: A cost is no number, a tuple has another length, or a value is not in its domain.
    """
    texts: list[str] = []
    costs: list[int | float] = []
    for key, listed in values.entries.values():
        text = file.text(listed, "tuples of values")
        if len(domains) == 1 and "|" not in text:
            text = str(file.value(listed, "a value"))
        texts.append(text)
        costs += [file.number(key, "a cost")] * (text.count("|") + 1)
    rows = np.empty((len(costs), len(domains)), dtype=np.int32)
    if not texts:
        return rows, costs
    width = len(domains) + 1
    whole = "|".join(texts)
    words = whole.replace("|", " | ").split() if not has_blanks else _apart(whole)
    is_regular = len(words) == width * len(costs) - 1 and words[width - 1 :: width].count("|") == len(costs) - 1
    try:
        if not is_regular:
            _find_fault(file, values, texts, domains, has_blanks=has_blanks)
        for axis, domain in enumerate(domains):
            rows[:, axis] = [domain.codes[word] for word in words[axis::width]]
    except KeyError:
        _find_fault(file, values, texts, domains, has_blanks=has_blanks)
    return rows, costs


def _apart(text: str) -> list[str]:
    """Return the values, stripped, with the separators between them."""
    words = [word for part in text.split("|") for word in (part.strip(), "|")]
    return words[:-1]


def _find_fault(
    file: YamlFile, values: Mapping, texts: Sequence[str], domains: Sequence[Domain], *, has_blanks: bool
) -> None:
    """Raise TextError at the tuple that does not fit."""
    nodes: list[Node] = [listed for _, listed in values.entries.values()]
    for node, text in zip(nodes, texts, strict=True):
        for part in text.split("|"):
            words = [part.strip()] if has_blanks else part.split()
            if len(words) != len(domains):
                file.fail(node, f"expected {len(domains)} values in a tuple, found {part.strip()[:40]!r}")
            file.at(node)
            for domain, word in zip(domains, words, strict=True):
                domain.code(word)
