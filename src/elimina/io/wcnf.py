"""Weighted clauses of the MaxSAT evaluations (weighted CNF), read only.

``p wcnf VARIABLES CLAUSES [TOP]``, then clauses with their weights in front; a clause is hard if its weight is at least
TOP. Files from 2022 on have no header, and clauses with ``h`` (hard) or a weight in front. An assignment costs the
weights of the clauses that it violates.
"""

from __future__ import annotations

from functools import partial

from elimina.io.clauses import Lines, parse_clauses
from elimina.io.codecs import Codec

CODEC = Codec(("min-cost", "probability"), Lines, partial(parse_clauses, needs_header=False))
