"""Rows of a plan's text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from elimina.number_texts import counted
from elimina.planning.matrix_products import product_of

if TYPE_CHECKING:
    from elimina.planning.step import Step


def product_rows(steps: Iterable[Step]) -> list[tuple[str, str]]:
    """Return the row of a plan's text on ``sum-product`` steps that are matrix products; no row if there are none."""
    products = [product for product in map(product_of, steps) if product is not None]
    if not products:
        return []
    number = f"{counted(len(products), 'step')}, the largest " if len(products) > 1 else "1 step, "
    return [("matrix products", number + str(max(products, key=lambda product: product.work)))]


def fused_rows(steps: Iterable[Step]) -> list[tuple[str, str]]:
    """Return the row of a plan's text on steps that eliminate several variables; no row if there are none."""
    numbers = [1 + len(step.others) for step in steps if step.others]
    return [("variables per step", f"{max(numbers)} at most, {counted(len(numbers), 'step')}")] if numbers else []
