"""Evidence files of the UAI competitions, in the dialects that are in use.

All are integers between blanks, with comments between "/*" and "*/"; how lines are broken does not matter, but for the
last dialect. The dialects are told apart by the number of integers, so that a file fits at most one:

- "k v1 x1 .. vk xk" (1 + 2k integers): k observed variables. "0" alone: none.
- "1 k v1 x1 .. vk xk" (2 + 2k integers): the same after the number of evidence sets, which must be 1.
- "0" and then, on lines of their own, pairs "v x": none; the pairs are observations that were switched off by the 0.
"""

from __future__ import annotations

from elimina._core import Text, TextError
from elimina.errors import UnsupportedError
from elimina.model import Model


def open_text(data: bytes) -> Text:
    """Return a reader of the format's tokens."""
    return Text(data, block_comments=True)


def parse(text: Text, model: Model) -> dict[int, int]:
    """Read the observed values of a model's variables."""
    first = text.integer("a number of observed variables")
    first_line = text.line
    rest: list[int] = []
    while not text.at_end():
        rest.append(text.integer("a variable or a value"))
        if first == 0 and text.line == first_line:
            raise TextError(f"expected the end of the line after 0 observed variables, found {rest[-1]}")
    if first == 0:
        _pairs(rest, model)
        return {}
    if len(rest) == 2 * first:
        return _pairs(rest, model)
    if first == 1 and len(rest) == 1 + 2 * rest[0]:
        return _pairs(rest[1:], model)
    if first > 1 and _is_several_sets(first, rest):
        raise UnsupportedError(f"the file has {first} sets of evidence; elimina reads files with one")
    raise TextError(f"expected {first} pairs of a variable and its value, found {len(rest)} integers")


def _pairs(numbers: list[int], model: Model) -> dict[int, int]:
    if len(numbers) % 2:
        raise TextError(f"expected pairs of a variable and its value, found {len(numbers)} integers")
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
