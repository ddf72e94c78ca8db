// Posteriors of many cases: each column of a table divided by its total.
#pragma once
#include <vector>

#include <elimina/config.hpp>

namespace elimina {

// Smallest total that a column is divided by: smaller ones may have lost digits.
inline constexpr double kSafeTotal = 1e-280;

// A table of a variable's values over cases.
struct ColumnTable {
  const double* cells;
  i64 size;
  // `step`: distance from a value to the next. `next`: distance from a case to the next; 0 if all cases have the same
  // column.
  i64 step, next;
};

// Writes each column divided by its total, with values `pitch` cells apart. If a total is too small, it writes nothing
// and returns false. The values of a column are added in order, so a total does not depend on the number of columns.
bool normalise(const ColumnTable& table, i64 columns, double* out, i64 pitch, std::vector<double>& totals);

}  // namespace elimina
