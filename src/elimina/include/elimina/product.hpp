// Recognises steps that are matrix products, by their records; elimina/planning/matrix_products.py has the same
// conditions.
#pragma once
#include "program.hpp"

namespace elimina {

// Least sizes for which packing both tables saves time: values of the eliminated variable (`kProductDepth`), rows and
// columns (`kProductSide`), and combinations (`kProductWork`).
constexpr i64 kProductDepth = 4, kProductSide = 8, kProductWork = 1 << 16;

// True if the sizes are large enough, one table has all rows, and the other one all columns: out[batch][row][column].
// The fast axes are the columns. Of the other axes, those that the second table has are the batch.
inline bool is_product(StepView step) {
  if (step[kTables] != 2 || step[kTablesA] != 1 || step[kTablesB] != 1 || step[kDomain] < kProductDepth ||
      step[kLoCells] < kProductSide)
    return false;
  const TableView a = step.table(0), b = step.table(1);
  if (a.domain_stride() == 0 || b.domain_stride() == 0) return false;
  i64 rows = 1;
  for (i64 axis = 0; axis < step.lo_axis(); ++axis)
    if (b.stride(axis) == 0) rows *= step.size(axis);
  return rows >= kProductSide && step.cells() * step[kDomain] >= kProductWork;
}

}  // namespace elimina
