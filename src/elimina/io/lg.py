"""UAI files with natural logarithms of the tables' values, as toulbar2 reads them (.LG); read only.

See ``elimina.io.uai`` for the rest of the format.
"""

from __future__ import annotations

import math

import numpy as np

from elimina._core import Text, TextError
from elimina.io.codecs import Codec
from elimina.io.parsing import token_text
from elimina.io.uai import numbered, read_preamble
from elimina.model.model import Model
from elimina.model.table import Table


def parse_logarithms(text: Text) -> Model:
    """Read a model. Each table is scaled to a largest value of 1, and the scales are put into the model's constant."""
    sizes, scopes, _ = read_preamble(text)
    factors, constant = [], 0.0
    for number, scope in enumerate(scopes):
        shape = [sizes[v] for v in scope]
        cells = text.integer("a number of entries")
        if cells != math.prod(shape):
            raise TextError(f"expected {math.prod(shape)} entries of table {number}, found {cells}")
        text.need(cells, "a logarithm")
        logs = np.array([_logarithm(text.token("a logarithm")) for _ in range(cells)]).reshape(shape)
        peak = float(logs.max())
        # A table without a positive value allows no assignment, and is not scaled.
        shift = peak if math.isfinite(peak) else 0.0
        factors.append(Table(scope, np.exp(logs - shift)))
        constant += shift
    return Model(numbered(sizes), factors, sense="probability", constant=constant)


def _logarithm(word: bytes) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not value < math.inf:
        raise TextError(f"expected a logarithm, found {token_text(word)}")
    return value


CODEC = Codec(("probability",), Text, parse_logarithms)
