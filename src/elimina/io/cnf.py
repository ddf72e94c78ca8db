"""Clauses of DIMACS (CNF), read only.

``p cnf VARIABLES CLAUSES``, then clauses: literals that end with 0.
"""

from __future__ import annotations

from functools import partial

from elimina.io.clauses import Lines, parse_clauses
from elimina.io.codecs import Codec

CODEC = Codec(("min-cost", "probability"), Lines, partial(parse_clauses, needs_header=True))
