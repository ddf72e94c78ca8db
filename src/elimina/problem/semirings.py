"""Semirings as records; their operations are in ``include/elimina/semiring.hpp``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.errors import InputError
from elimina.model.model import added
from elimina.model.table import Ends, Sense

Dtype = Literal["int16", "int32", "int64", "float32", "float64", "uint64"]
INTEGERS: tuple[Dtype, ...] = ("int16", "int32", "int64")
FLOATS: tuple[Dtype, ...] = ("float64", "float32")
LARGEST = {name: int(np.iinfo(name).max) for name in INTEGERS}
"""The largest number of each integer type."""


Rule = Literal["support", "distances", "costs", "logs", "products"]
"""Encoding of a table's values.

- ``support``: 1 where a value is allowed, otherwise 0.
- ``distances``: costs, or negated logarithms of probabilities, minus the best one of each table.
- ``costs``: unchanged costs; negated utilities and probabilities.
- ``logs``: logarithms, minus the largest one of each table.
- ``products``: each factor scaled by a power of two, so that its largest value is in [1, 2).
"""

Answer = Literal["optimum", "sum", "count"]
"""Meaning of a plan's result: the best total and an assignment, a scaled sum, or residues of a number."""

Numbers = Sequence[int | float]


class Contents(NamedTuple):
    """Properties of a model's tables.

    Attributes:
        sense: Sense of the model.
        is_integer: True if costs remain integers.
        constant: Constant of the model.
        upper_bound: Upper bound of the model on totals.
        ends: Smallest and largest allowed value of each table.
        constants: Values of the tables without a scope.
    """

    sense: Sense
    is_integer: bool
    constant: int | float
    upper_bound: int | float | None
    ends: Ends
    constants: Sequence[int]

    @property
    def sign(self) -> int:
        """1 if smaller totals are better, -1 if larger totals are better."""
        return 1 if self.sense == "min-cost" else -1


def _spread(contents: Contents) -> int:
    """Return a number above the sum of the tables' distances from their best values, at any allowed assignment."""
    ends, limit, sign = contents.ends, contents.upper_bound, contents.sign
    spread = ends.total(highest=True) - ends.total(highest=False) + 1
    if limit is not None and ends.are_allowed:
        best = int(contents.constant) + ends.total(highest=sign == -1)
        spread = min(spread, math.ceil(sign * (limit - best)))
    return spread


def _best_values(contents: Contents) -> tuple[int | float, ...]:
    """Return numbers that add up to the constant and the tables' best values.

    For integers, this is only their exact sum. Otherwise, the numbers are finite floats (logarithms of probabilities).
    """
    constant, ends, is_highest = contents.constant, contents.ends, contents.sign == -1
    if contents.is_integer:
        return (int(constant) + ends.total(highest=is_highest),)
    numbers = ends.numbers(highest=is_highest)
    values: Iterable[float] = map(math.log, numbers) if contents.sense == "probability" else numbers
    if (ends.kinds == 1).any():
        values = itertools.chain.from_iterable(map(floats_of, values))
    return (*floats_of(constant), *values)


def _largest_size(contents: Contents) -> int:
    """Return a number above the absolute values of all integer costs."""
    ends = contents.ends.integers[contents.ends.kinds == 1].tolist()
    return 1 + max((abs(cost) for pair in ends for cost in pair), default=0)


def _values_without_scope(contents: Contents) -> tuple[int | float, ...]:
    """Return the values of the tables without a scope; the encoding keeps all other values.

    Raises:
        InputError: The model has no table, so that an assignment has no worst cost.
    """
    if len(contents.ends.kinds) == 0:
        raise InputError(
            "the model has no tables, so no assignment has a worst one: add tables, or ask for another task"
        )
    ends, chosen = contents.ends, list(contents.constants)
    return tuple(Ends(ends.kinds[chosen], ends.integers[chosen], ends.floats[chosen]).numbers(highest=True))


def floats_of(number: float) -> tuple[float, ...]:
    """Return floats that add up to a number; a large integer may require two."""
    nearest = float(number)
    if isinstance(number, int) and int(nearest) != number:
        return nearest, float(number - int(nearest))
    return (nearest,)


class Semiring(NamedTuple):
    """A commutative semiring; its operations are in ``include/elimina/semiring.hpp``, in a class of the same name.

    Attributes:
        name: Name in plans, programs and the core.
        dtypes: Number types of the backends: exact ones, from the narrowest on, then floats, from the most precise on.
        encoding: Encoding of tables as its numbers.
        answer: Meaning of the numbers at the roots of a plan.
        numbers: Description of its floats, for error texts.
        zero: Number for 'forbidden', an absorbing element. If it is infinite, integer types use the program's
            parameter.
        one: Neutral number of products.
        sign: 1 if smaller numbers are better, -1 if larger numbers are better.
        is_idempotent: True if a sum is always one of its terms: elimination then finds an optimum, and decoding an
            assignment.
        is_additive: True if costs of 0 and probabilities of 1 are neutral: tables of such values may be added to a
            model, and the model's constant is part of the answer.
        is_logarithmic: True if probabilities are replaced by logarithms.
        is_scaled: True if messages are scaled by powers of two (``scale_exponent`` in
            ``include/elimina/semiring.hpp``).
        is_product: True if steps with two tables are matrix products.
        is_weighted: True if steps have weights and compute exponentials.
        is_matched: True if it supports moment matching of mini-buckets (``include/elimina/matching.hpp``).
        bound: Function that returns a number for 'forbidden', larger than the integers of all allowed assignments.
        constants: Function that returns the numbers left out by the encoding, in the model's units.
        total: Function that returns the semiring's product of numbers, such as those at a tree's roots.
    """

    name: str
    dtypes: tuple[Dtype, ...]
    encoding: Rule
    answer: Answer
    numbers: str
    zero: float
    one: float
    sign: Literal[1, -1]
    is_idempotent: bool = False
    is_additive: bool = True
    is_logarithmic: bool = False
    is_scaled: bool = False
    is_product: bool = False
    is_weighted: bool = False
    is_matched: bool = False
    bound: Callable[[Contents], int] = _spread
    constants: Callable[[Contents], tuple[int | float, ...]] = _best_values
    total: Callable[[Numbers], int | float] = added

    @property
    def integers(self) -> tuple[Dtype, ...]:
        """Signed integer types among its number types, the narrowest first."""
        return tuple(dtype for dtype in self.dtypes if dtype in INTEGERS)

    @property
    def class_name(self) -> str:
        """Name of the class in C++."""
        return "".join(map(str.capitalize, self.name.split("-")))

    def zero_of(self, dtype: str | np.dtype[Any], forbidden: float) -> float:
        """Return the number for 'forbidden' in a dtype: ``forbidden`` replaces an infinity that the dtype lacks."""
        return forbidden if math.isinf(self.zero) and np.dtype(dtype).kind == "i" else self.zero

    def one_of(self, dtype: str | np.dtype[Any]) -> float:
        """Return the neutral number of products in a dtype; integer types use their least number as minus infinity."""
        return int(np.iinfo(dtype).min) if math.isinf(self.one) and np.dtype(dtype).kind == "i" else self.one


_ALL = (
    Semiring(
        "min-sum",
        (*INTEGERS, *FLOATS),
        "distances",
        "optimum",
        "logarithms of probabilities",
        zero=math.inf,
        one=0,
        sign=1,
        is_idempotent=True,
        is_logarithmic=True,
        is_matched=True,
    ),
    Semiring(
        "min-max",
        (*INTEGERS, *FLOATS),
        "costs",
        "optimum",
        "probabilities as they are",
        zero=math.inf,
        one=-math.inf,
        sign=1,
        is_idempotent=True,
        is_additive=False,
        bound=_largest_size,
        constants=_values_without_scope,
        total=max,
    ),
    Semiring(
        "sum-product",
        FLOATS,
        "products",
        "sum",
        "sums of probabilities",
        zero=0,
        one=1,
        sign=-1,
        is_scaled=True,
        is_product=True,
    ),
    Semiring(
        "log-sum-exp",
        FLOATS,
        "logs",
        "sum",
        "bounds on sums",
        zero=-math.inf,
        one=0,
        sign=-1,
        is_logarithmic=True,
        is_weighted=True,
        is_matched=True,
    ),
    Semiring("count", ("uint64",), "support", "count", "counting", zero=0, one=1, sign=-1),
)

SEMIRINGS = {semiring.name: semiring for semiring in _ALL}
"""Semirings by their names. ``count`` works modulo 2^64 or a prime (``Program.parameter``)."""


def scale_exponents(highs: NDArray[np.float64], dtype: str) -> NDArray[np.float64]:
    """Return an exponent for each message: steps that read the message divide it by this power of two.

    Args:
        highs: Largest value of each message.
        dtype: ``float32`` or ``float64``; ``scale_exponent`` in ``include/elimina/semiring.hpp`` has the same bounds.
    """
    limit = 126.0 if dtype == "float32" else 1022.0
    exponents: NDArray[np.float64] = np.minimum(np.maximum(np.frexp(highs)[1] - 1.0, -limit), limit)
    exponents[highs == 0] = 0
    return exponents
