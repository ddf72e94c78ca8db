"""Places of the words of a step's packed record, as ``include/elimina/program.hpp`` lays them out."""

from __future__ import annotations

(
    WORDS,
    DOMAIN,
    VARIABLE,
    AXES,
    OUTER_AXES,
    MID_AXES,
    OUTER_CELLS,
    MID_CELLS,
    LO_CELLS,
    TABLES,
    TABLES_A,
    TABLES_B,
    OUT,
    WEIGHT,
    HEADER,
) = range(15)

AXIS_SIZE, AXIS_STRIDE, AXIS_VARIABLE, AXIS_WORDS = range(4)
"""Words of an output's axis, and their number."""

TABLE_OFFSET, TABLE_DOMAIN_STRIDE, TABLE_SOURCE, TABLE_STRIDES = range(4)
"""Words of a table that is read; its strides along the output's axes follow."""

MAX_OPERANDS = 16
"""Tables that one step reads at most."""
