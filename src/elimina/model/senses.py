"""Conversion of models between costs to minimise, costs to maximise and probabilities, and of costs to integers."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from elimina import arguments
from elimina.errors import InputError
from elimina.model.model import Model
from elimina.model.table import FORBIDDEN, Sense
from elimina.option_names import by_interface

if TYPE_CHECKING:
    from fractions import Fraction

_Values = NDArray[Any]
_MAX_DECIMALS = 17
_MAX_POWER = 300
"""Largest number of decimals to round to: NumPy multiplies by a power of 10, which has to be a float."""


@arguments.with_checked_keywords()
def convert_sense(model: Model, sense: Sense, *, decimals: int | None = 7, scale: float = 1.0) -> Model:
    """Return a model of another sense with the same best assignment.

    - ``min-cost`` <-> ``max-cost``: all costs change sign. Nothing is lost.
    - ``probability`` -> costs: a probability p becomes the cost -ln(p) (ln(p) if maximised), and 0 becomes forbidden.
      Lossy: costs are rounded to ``decimals`` decimals, so m of them together are off by up to m * 10^-decimals / 2.
    - costs -> ``probability``: a cost c becomes exp(-scale * c) and forbidden becomes 0, after each factor's smallest
      cost has been moved to the model's constant. Lossy: exp rounds in the 16th digit, and the upper bound is dropped,
      so assignments that only this bound excluded become merely improbable.

    Args:
        model: Model to convert. A model that has the sense already is returned itself.
        sense: Sense of the new model.
        decimals: Number of decimals of costs made from probabilities, from 0 to 300; None: not rounded.
        scale: Factor by which costs are multiplied before they become probabilities, above 0.

    Raises:
        TypeError: An argument has the wrong type.
        InputError: A finite cost would become the probability 0 (then give a smaller ``scale``), or an argument makes
            no sense.

    Examples:
        >>> import elimina
        >>> costs = elimina.Model.from_arrays({"a": 2}, [(("a",), [1, 3])])
        >>> elimina.io.convert_sense(costs, "max-cost").tables[0].values
        array([-1, -3])
    """
    if not isinstance(model, Model):
        raise arguments.wrong_type("model", model, "a Model")
    sense = arguments.choice("sense", sense, get_args(Sense))
    if decimals is not None:
        decimals = arguments.integer("decimals", decimals, 0, _MAX_POWER)
    scale = arguments.number("scale", scale)
    if not 0 < scale <= sys.float_info.max:
        raise InputError(f"scale is {arguments.shown(scale)}; it must be positive and finite")
    if sense == model.sense:
        return model
    if "probability" not in (sense, model.sense):
        bound = None if model.upper_bound is None else -model.upper_bound
        return _rebuilt(model, sense, np.negative, -model.constant, bound)
    if model.sense == "probability":
        sign = -1.0 if sense == "min-cost" else 1.0
        return _rebuilt(model, sense, lambda p: _costs(p, sign, decimals), sign * model.constant, None)
    return _to_probabilities(model if model.sense == "min-cost" else convert_sense(model, "min-cost"), scale)


def _rebuilt(
    model: Model, sense: Sense, change: Callable[[_Values], _Values], constant: float, bound: float | None
) -> Model:
    factors = [f.mapped(change) for f in model.factors]
    return Model(model.variables, factors, sense=sense, constant=constant, upper_bound=bound, name=model.name)


def _likelihoods(scale: float, lowest: float, costs: _Values) -> _Values:
    likelihoods: _Values = np.exp(-scale * (costs - lowest))
    return likelihoods


def _costs(probabilities: _Values, sign: float, decimals: int | None) -> _Values:
    with np.errstate(divide="ignore"):
        costs: _Values = sign * np.log(probabilities.astype(np.float64))
    return (costs if decimals is None else np.round(costs, decimals)) + 0.0


def _to_probabilities(model: Model, scale: float) -> Model:
    constant = -scale * float(model.constant)
    factors = []
    for i, factor in enumerate(model.factors):
        costs = factor.mapped(_with_infinity)
        all_costs = np.append(costs.values, [] if costs.default is None else [costs.default])
        finite = all_costs[np.isfinite(all_costs)]
        lowest, highest = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
        if np.exp(-scale * (highest - lowest)) == 0:
            raise InputError(
                f"factor {i} has costs from {lowest:g} to {highest:g}, and exp(-{scale:g} * {highest - lowest:g}) "
                "is 0 in floating point; "
                + by_interface(
                    f"convert it with a scale of at most {700 / (highest - lowest):.3g}",
                    "scale the costs to a range of at most 700 in each table",
                )
            )
        factors.append(costs.mapped(partial(_likelihoods, scale, lowest)))
        constant -= scale * lowest
    return Model(model.variables, factors, sense="probability", constant=constant, name=model.name)


def _with_infinity(costs: _Values) -> _Values:
    """Return costs as doubles, with infinity for forbidden ones."""
    if costs.dtype.kind == "f":
        return costs.astype(np.float64)
    return np.where(costs == FORBIDDEN, np.inf, costs.astype(np.float64))


def decimals_of(values: _Values) -> int | None:
    """Return the smallest number of decimals that writes all finite values exactly; None if it is above 17."""
    finite = values[np.isfinite(values)]
    for decimals in range(_MAX_DECIMALS + 1):
        power = 10.0**decimals
        with np.errstate(over="ignore"):
            exact = np.rint(finite * power) / power == finite
        if exact.all():
            return decimals
    return None


def integer_costs(model: Model) -> tuple[Model, int]:
    """Multiply the costs of a ``min-cost`` model by the smallest power of ten that makes all of them 64-bit integers.

    Returns:
        The model with integer costs, and the power's exponent (0 if it had them already).

    Raises:
        InputError: There is no such power, or a cost would reach 2^53.
    """
    if model.is_integer:
        return model, 0
    arrays = [np.array([model.constant], dtype=np.float64)]
    arrays += [_with_infinity(f.values).reshape(-1) for f in model.factors]
    arrays += [_with_infinity(np.array([f.default])) for f in model.factors if f.default is not None]
    values = np.concatenate(arrays)
    decimals = decimals_of(values)
    if decimals is None or np.abs(values[np.isfinite(values)]).max(initial=0) * 10.0**decimals >= 2**53:
        raise InputError("the costs have too many digits to become integers; round them first, or use .cfn")

    def scaled(costs: _Values) -> _Values:
        forbidden = np.isinf(costs) if costs.dtype.kind == "f" else costs == FORBIDDEN
        finite = np.where(forbidden, 0, costs).astype(np.float64)
        return np.where(forbidden, FORBIDDEN, np.rint(finite * 10.0**decimals).astype(np.int64))

    bound = None if model.upper_bound is None else math.ceil(_exact(model.upper_bound) * 10**decimals)
    constant = round(model.constant * 10**decimals)
    return _rebuilt(model, model.sense, scaled, constant, bound), decimals


def _exact(number: float) -> Fraction:
    """Return the decimal number that a float is printed as: 0.07 is 7/100, although the float itself is not."""
    from fractions import Fraction  # Loading it takes 3 ms, and few calls need it.

    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)
