"""Global constraints as conditions, which hold or not, and can be combined with others.

``cp.all_different(xs)`` is the condition of the constraint that ``Model.all_different`` posts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Concatenate, ParamSpec

from elimina.cp.derived_constraints import DerivedConstraints
from elimina.cp.expressions import Condition, Expression, ExpressionModel, Relation
from elimina.cp.intervals import IntervalVar
from elimina.errors import InputError

P = ParamSpec("P")


class GlobalCondition(Condition):
    """A global constraint that holds or not.

    ``Model.add`` posts it as the method with its name does. In other conditions, it is decomposed into comparisons.

    Attributes:
        name: Name of the constraint: that of a method of `Model`.
        arguments: Arguments of the method.
        keywords: Arguments by name.

    Raises:
        InputError: No argument has a variable.

    Examples:
        >>> from elimina import cp
        >>> m = cp.Model()
        >>> xs = m.int_vars(2, 0, 2)
        >>> m.add(~cp.all_different(xs))
        >>> [solution[xs] for solution in m.solutions()]
        [[0, 0], [1, 1], [2, 2]]
    """

    __slots__ = ("_model", "arguments", "keywords", "name")

    def __init__(self, name: str, arguments: Iterable[Any], keywords: Mapping[str, Any]) -> None:
        super().__init__()
        self.name = name
        self.arguments = tuple(list(x) if isinstance(x, Iterator) else x for x in arguments)
        self.keywords = {key: list(x) if isinstance(x, Iterator) else x for key, x in keywords.items()}
        model = next(_models_of([*self.arguments, *self.keywords.values()]), None)
        if model is None:
            raise InputError(f"cp.{name}: no argument has a variable, so the condition belongs to no model")
        self._model = model

    @property
    def model(self) -> ExpressionModel:
        """Model of the variables."""
        return self._model

    def __invert__(self) -> Relation:
        return self.truth == 0

    def with_values(self, value_of: Callable[[Any], Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments with expressions replaced by their values.

        Args:
            value_of: Function that returns the value of an expression or a condition.
        """
        arguments = [_replaced(x, value_of) for x in self.arguments]
        return arguments, {key: _replaced(x, value_of) for key, x in self.keywords.items()}

    def __str__(self) -> str:
        texts = [*map(str, self.arguments), *(f"{key}={x}" for key, x in self.keywords.items())]
        return f"{self.name}({', '.join(texts)})"

    __repr__ = __str__


def _models_of(x: Any) -> Iterator[ExpressionModel]:
    if isinstance(x, Expression | Condition):
        yield x.model
    elif isinstance(x, IntervalVar):
        yield x.start.model
    elif isinstance(x, Mapping):
        yield from _models_of(list(x.values()))
    elif isinstance(x, list | tuple):
        for item in x:
            yield from _models_of(item)


def _replaced(x: Any, value_of: Callable[[Any], Any]) -> Any:
    if isinstance(x, Expression | Condition):
        return value_of(x)
    if isinstance(x, IntervalVar):
        start, duration, presence = (_replaced(operand, value_of) for operand in (x.start, x.duration, x.presence))
        return IntervalVar(start, duration, presence, x.name)
    if isinstance(x, Mapping):
        return {key: _replaced(item, value_of) for key, item in x.items()}
    return [_replaced(item, value_of) for item in x] if isinstance(x, list | tuple) else x


def _condition_of(method: Callable[Concatenate[Any, P], None]) -> Callable[P, GlobalCondition]:
    """Return the function that makes the condition of a constraint; its arguments are those of the method."""

    @functools.wraps(method)
    def condition(*args: P.args, **kwargs: P.kwargs) -> GlobalCondition:
        return GlobalCondition(method.__name__, args, kwargs)

    return condition


all_different = _condition_of(DerivedConstraints.all_different)
all_different_except_0 = _condition_of(DerivedConstraints.all_different_except_0)
bin_packing_load = _condition_of(DerivedConstraints.bin_packing_load)
cardinality = _condition_of(DerivedConstraints.cardinality)
circuit = _condition_of(DerivedConstraints.circuit)
clause = _condition_of(DerivedConstraints.clause)
cumulative = _condition_of(DerivedConstraints.cumulative)
inverse = _condition_of(DerivedConstraints.inverse)
lex_less = _condition_of(DerivedConstraints.lex_less)
lex_lesseq = _condition_of(DerivedConstraints.lex_lesseq)
member = _condition_of(DerivedConstraints.member)
no_overlap = _condition_of(DerivedConstraints.no_overlap)
no_overlap_2d = _condition_of(DerivedConstraints.no_overlap_2d)
precedence = _condition_of(DerivedConstraints.precedence)
regular = _condition_of(DerivedConstraints.regular)
reservoir = _condition_of(DerivedConstraints.reservoir)
subcircuit = _condition_of(DerivedConstraints.subcircuit)
table = _condition_of(DerivedConstraints.table)
value_precede = _condition_of(DerivedConstraints.value_precede)
