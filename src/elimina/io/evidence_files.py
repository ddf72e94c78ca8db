"""Evidence files of the UAI competitions, in the dialects in use.

All dialects are integers between blanks, with comments between "/*" and "*/"; line breaks matter only where stated
below. The dialects are told apart by the number of integers and the first line, so that a file fits at most one:

- "k v1 x1 .. vk xk" (1 + 2k integers): k observed variables. "0" alone: none.
- "1" on its own line, then "k v1 x1 .. vk xk" (2 + 2k integers): the first is the number of evidence sets, which must
  be 1.
- "0" on its own line, then pairs "v x": none; the 0 disables the observations that follow.
"""

from __future__ import annotations

import os
from functools import partial

from elimina import arguments
from elimina._core import Text, TextError
from elimina.errors import UnsupportedError
from elimina.io.parsing import parse_file
from elimina.model.model import Model
from elimina.model.states import State
from elimina.model.variable import named
from elimina.number_texts import counted

open_text = partial(Text, block_comments=True)


def parse(text: Text, model: Model) -> dict[int, int]:
    """Read the observed states of a model's variables: index of a variable -> index of its state."""
    first = text.integer("a number of observed variables")
    first_line = text.line
    is_first_alone = True
    numbers: list[int] = []
    while not text.at_end():
        numbers.append(text.integer("a variable or a value"))
        if len(numbers) == 1:
            is_first_alone = text.line != first_line
    if first == 0 and not is_first_alone:
        raise TextError(f"expected the end of the line after 0 observed variables, found {numbers[0]}")
    if first == 0:
        _pairs(numbers, model)
        return {}
    if len(numbers) == 2 * first:
        return _pairs(numbers, model)
    if first == 1 and is_first_alone and numbers and len(numbers) == 1 + 2 * numbers[0]:
        return _pairs(numbers[1:], model)
    if first > 1 and _is_several_sets(first, numbers):
        raise UnsupportedError(
            f"the file has {first} sets of evidence, and elimina reads files with one: write a file for each set, or a "
            "CSV file of cases with a column for each variable"
        )
    pairs = counted(first, "pair")
    raise TextError(f"expected {pairs} of a variable and its value, found {counted(len(numbers), 'integer')}")


def _pairs(numbers: list[int], model: Model) -> dict[int, int]:
    if len(numbers) % 2:
        raise TextError(f"expected pairs of a variable and its value, found {counted(len(numbers), 'integer')}")
    observed: dict[int, int] = {}
    for v, x in zip(numbers[::2], numbers[1::2], strict=True):
        if not 0 <= v < len(model.variables):
            raise TextError(f"expected a variable from 0 to {len(model.variables) - 1}, found {v}")
        if not 0 <= x < model.variables[v].size:
            raise TextError(f"expected a value from 0 to {model.variables[v].size - 1} of variable {v}, found {x}")
        if observed.setdefault(v, x) != x:
            raise TextError(f"variable {v} is observed as {observed[v]} and as {x}")
    return observed


def _is_several_sets(count: int, numbers: list[int]) -> bool:
    at = 0
    for _ in range(count):
        if at >= len(numbers) or numbers[at] < 0:
            return False
        at += 1 + 2 * numbers[at]
    return at == len(numbers)


@arguments.with_checked_keywords()
def read_evidence(path: str | os.PathLike[str], model: Model) -> dict[str, State]:
    """Read the observed states from a file in one of the dialects of UAI evidence, which hold indices.

    Args:
        path: A file of any suffix; decompressed if it ends in .gz or .xz.
        model: Model of the evidence.

    Returns:
        Variable name -> observed state, as ``elimina.solve`` takes it.

    Raises:
        FormatError: The file fits no dialect (see ``elimina.io.evidence_files``) or names a variable or value that
            the model does not have.
        InputError: The file cannot be read.

    Examples:
        >>> import elimina
        >>> model = elimina.read("examples/relay.uai")
        >>> elimina.read_evidence("examples/relay.uai.evid", model)
        {'x9': 1, 'x12': 0, 'x13': 2}
    """
    observed = parse_file(arguments.file("path", path), open_text, lambda text: parse(text, model))
    return named([model.variables[v] for v in observed], observed.values())
