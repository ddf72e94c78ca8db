"""Result files of the UAI competitions' MAR task: the posterior marginals of all variables.

The word MAR, the number of variables, and for each its number of values and their probabilities; line breaks carry no
meaning. Some solvers write the number of evidence sets, which must be 1, before the number of variables.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elimina._core import Text, TextError
from elimina.errors import FormatError, InputError
from elimina.io.files import load, shown
from elimina.io.network import number_starts


def read_marginals(path: str | os.PathLike[str]) -> list[NDArray[np.float64]]:
    """Read one array of probabilities for each variable, in index order.

    Args:
        path: The file; decompressed if it ends in .gz or .xz.

    Raises:
        FormatError: The file is malformed, or holds a negative number.
        InputError: The file cannot be read.
    """
    path = Path(path)
    text: Text | None = None
    try:
        data = load(path)
        text = Text(data)
        kind = text.token("MAR")
        if kind != b"MAR":
            raise TextError(f"expected MAR, found {shown(kind)}")
        numbers = text.reals(int(number_starts(data).sum()) - 1, "a number")
        return _split(numbers)
    except TextError as error:
        raise FormatError(str(path), None if text is None else text.line, str(error)) from None


def _split(numbers: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    # One variable, or one set of evidence: no file can be both, because each variable has at least one value.
    one_set = len(numbers) > 1 and numbers[0] == 1 and len(numbers) != 2 + numbers[1]
    at = 1 if one_set else 0
    if len(numbers) <= at:
        raise TextError("expected a number of variables, but the file ends here")
    count = numbers[at]
    at += 1
    result: list[NDArray[np.float64]] = []
    while at < len(numbers):
        size, v = numbers[at], len(result)
        if size < 1 or size != int(size) or at + size >= len(numbers):
            left = len(numbers) - at - 1
            raise TextError(f"expected a number of values from 1 to {left} of variable {v}, found {size:g}")
        values = numbers[at + 1 : at + 1 + int(size)]
        if values.min() < 0:
            raise TextError(f"expected non-negative probabilities of variable {v}, found {values.min()}")
        result.append(values.copy())
        at += 1 + int(size)
    if len(result) != count:
        raise TextError(f"expected the marginals of {count:g} variables, found {len(result)}")
    return result


def write_marginals(marginals: Iterable[ArrayLike]) -> str:
    """Return the text of a result file; numbers are written so that they read back exactly.

    Args:
        marginals: One array of probabilities for each variable, in index order.

    Raises:
        InputError: A marginal is not one list of finite, non-negative numbers.
    """
    words = []
    for v, marginal in enumerate(marginals):
        values = np.asarray(marginal, dtype=np.float64)
        if values.ndim != 1 or not values.size or not np.isfinite(values).all() or values.min() < 0:
            raise InputError(f"the marginal of variable {v} is not one list of finite, non-negative numbers: {values}")
        words.append(f"{values.size} " + " ".join(map(repr, values.tolist())))
    return f"MAR\n{' '.join([str(len(words)), *words])}\n"
