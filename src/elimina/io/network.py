"""Common parts of the formats of Bayesian networks: building a network from a file, and preparing it for a writer."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from elimina._core import Text, TextError
from elimina.errors import InputError, UnsupportedError
from elimina.model.model import Model
from elimina.model.table import Table
from elimina.model.variable import Variable, texts_of
from elimina.number_texts import counted
from elimina.option_names import by_interface

Conditional = tuple[tuple[int, ...], NDArray[np.float64]]
"""The parents and then the child, and the values with the axes in that order."""

MAX_TABLE_CELLS = 10**8
"""Largest number of cells of a table in a file."""


_MAX_ROUNDING_BELOW_0 = 1e-6
"""Largest distance below 0 of a probability that is attributed to rounding: programs compute 1 - p in 32-bit floats."""

_logger = logging.getLogger("elimina")


def not_a_network(format_name: str) -> InputError:
    """Return the error about a model that is not a network, for a format of networks."""
    advice = by_interface(
        "make the model with children=, which lists for each factor the variable whose distribution it is, or use .uai",
        "use .uai for other models",
    )
    return InputError(
        f"{format_name} holds exactly one conditional distribution for each variable, without cycles; {advice}"
    )


class Located(Protocol):
    """A source that counts lines, for error messages."""

    line: int


class NetworkBuilder:
    """A network that a reader builds. Every method raises TextError if the file contradicts itself."""

    def __init__(self) -> None:
        self.name = ""
        self._variables: list[Variable] = []
        self._index: dict[str, int] = {}
        self._factors: dict[int, Table] = {}

    def refuse_node(self, name: str, kind: str) -> None:
        """Reject a decision or a utility.

        Raises:
            UnsupportedError: Always.
        """
        raise UnsupportedError(
            f"node {name!r} is a {kind} node, of an influence diagram: "
            + by_interface("read it by elimina.InfluenceDiagram.read", "solve it by 'elimina decide'")
        )

    def add_variable(self, name: str, states: Sequence[str]) -> None:
        """Add a variable with at least one state, whose name must be new."""
        if name in self._index:
            raise TextError(f"a second variable is named {name!r}")
        if not states:
            raise TextError(f"variable {name!r} has no values")
        self._index[name] = len(self._variables)
        self._variables.append(Variable(name, len(states), states))

    def index(self, name: str) -> int:
        """Return the index of a variable declared before."""
        if name not in self._index:
            raise TextError(f"expected a variable declared before, found {name!r}")
        return self._index[name]

    def name_of(self, variable: int) -> str:
        """Return a variable's name."""
        return self._variables[variable].name

    def states(self, variables: Iterable[int]) -> list[list[str]]:
        """Return the texts of each variable's states."""
        return [texts_of(self._variables[v]) for v in variables]

    def shape(self, parents: Sequence[int], child: int) -> tuple[int, ...]:
        """Check the head of the child's distribution and return the array's shape, the child's axis last.

        Raises:
            TextError: The child has a distribution already, or the head repeats a variable.
            UnsupportedError: The array has more than ``MAX_TABLE_CELLS`` cells.
        """
        name = self._variables[child].name
        if child in self._factors:
            raise TextError(f"variable {name!r} has a second distribution")
        if len({*parents, child}) != len(parents) + 1:
            raise TextError(f"the head of the distribution of {name!r} repeats a variable")
        shape = tuple(self._variables[v].size for v in (*parents, child))
        if math.prod(shape) > MAX_TABLE_CELLS:
            raise UnsupportedError(
                f"the distribution of {name!r} has {math.prod(shape)} entries, over {MAX_TABLE_CELLS}"
            )
        return shape

    def add_distribution(self, parents: Sequence[int], child: int, values: NDArray[np.float64]) -> None:
        """Set the child's distribution; ``shape`` has checked its head."""
        self._factors[child] = Table([*parents, child], values)

    def check_distributions(self, decisions: Collection[int] = ()) -> None:
        """Check that the file has variables, each with a distribution unless it is one of the ``decisions``."""
        if not self._variables:
            raise TextError("expected a variable, but the file ends here")
        missing = [v.name for i, v in enumerate(self._variables) if i not in self._factors and i not in decisions]
        if missing:
            raise TextError(f"variable {missing[0]!r} has no distribution")

    def model(self) -> Model:
        """Return the network, with factors in the order of their addition."""
        self.check_distributions()
        factors = list(self._factors.values())
        return Model(
            self._variables, factors, sense="probability", children=list(self._factors), name=self.name, check=False
        )


def is_network(model: Model) -> bool:
    """Return whether the factors are exactly one conditional distribution for each variable, without a constant."""
    return model.children is not None and len(model.children) == len(model.variables) and not model.constant


def conditionals(model: Model, format_name: str) -> Iterable[Conditional]:
    """Return the distributions of a Bayesian network, the child last, in the order of its factors.

    Raises:
        InputError: The model is not a Bayesian network, has no variable, or has a distribution too large to be written
            out.
    """
    if not is_network(model):
        raise not_a_network(format_name)
    if not model.variables:
        raise InputError(f"{format_name} holds at least one variable")
    return conditional_tables(model)


def conditional_tables(model: Model) -> Iterator[Conditional]:
    """Yield each factor's scope and dense values, with its child (if there is one) moved to the end.

    Raises:
        InputError: A factor is too large to be written densely.
    """
    for i, factor in enumerate(model.factors):
        if factor.cells > MAX_TABLE_CELLS:
            raise InputError(
                f"factor {i} has {factor.cells} entries; this format holds full tables of up to {MAX_TABLE_CELLS}"
            )
        values = np.asarray(factor.dense(), dtype=np.float64)
        if model.children is None:
            yield factor.scope, values
            continue
        axis = factor.scope.index(model.children[i])
        scope = factor.scope[:axis] + factor.scope[axis + 1 :] + (factor.scope[axis],)
        yield scope, np.moveaxis(values, axis, -1)


def number_starts(data: bytes, blanks: bytes = b"") -> NDArray[np.bool_]:
    """Return the mask of the bytes at which a word starts; ``blanks`` separate words like white space."""
    blank = np.zeros(256, dtype=bool)
    blank[list(b" \t\r\n\v\f" + blanks)] = True
    between = blank[np.frombuffer(data, dtype=np.uint8)]
    starts = ~between
    starts[1:] &= between[:-1]
    return starts


def read_probabilities(
    source: Located, data: bytes, count: int, owner: str, *, blanks: str = ""
) -> NDArray[np.float64]:
    """Read exactly ``count`` non-negative numbers; if one is invalid, the source's line becomes that of the number."""
    return _read_numbers(source, data, count, owner, ("probability", "probabilities"), is_signed=False, blanks=blanks)


def read_utilities(source: Located, data: bytes, count: int, owner: str) -> NDArray[np.float64]:
    """Read exactly ``count`` numbers of a utility; if one is invalid, the source's line becomes that of the number."""
    return _read_numbers(source, data, count, owner, ("value", "values"), is_signed=True)


def _without_rounding_below_0(values: NDArray[np.float64], owner: str) -> NDArray[np.float64]:
    """Return probabilities with 0 instead of the negative numbers that rounding of 32-bit floats leaves."""
    is_rounding = (values < 0) & (values >= -_MAX_ROUNDING_BELOW_0)
    if is_rounding.any():
        _logger.warning(
            "%r has %s below 0 by rounding, such as %g: taken as 0",
            owner,
            counted(int(is_rounding.sum()), "number"),
            values[is_rounding].min(),
        )
    return np.where(is_rounding, 0.0, values)


def _read_numbers(
    source: Located, data: bytes, count: int, owner: str, nouns: tuple[str, str], *, is_signed: bool, blanks: str = ""
) -> NDArray[np.float64]:
    singular, plural = nouns
    number_count = int(number_starts(data, blanks.encode()).sum())
    if number_count != count:
        raise TextError(f"expected {count} {plural} of {owner!r}, found {number_count}")
    text = Text(data, blanks=blanks)
    try:
        values: NDArray[np.float64] = text.reals(count, f"a {singular} of {owner!r}")
        if not is_signed:
            values = _without_rounding_below_0(values, owner)
        if not is_signed and values.min() < 0:
            text = Text(data, blanks=blanks)
            text.reals(int(np.argmax(values < 0)) + 1, f"a {singular}")
            raise TextError(f"expected a non-negative {singular} of {owner!r}, found {values[values < 0][0]}")
    except TextError:
        source.line += text.line - 1
        raise
    return values
