#include "cases/columns.hpp"

#include <algorithm>

namespace elimina {

bool normalise(const ColumnTable& table, i64 columns, double* out, i64 pitch, std::vector<double>& totals) {
  const i64 next = table.next;
  totals.assign(std::size_t(columns), 0.0);
  for (i64 value = 0; value < table.size; ++value) {
    const double* row = table.cells + value * table.step;
    for (i64 column = 0; column < columns; ++column) totals[column] += row[column * next];
  }
  const auto is_safe = [](double total) { return total > kSafeTotal; };
  if (!std::all_of(totals.begin(), totals.end(), is_safe)) return false;
  for (i64 value = 0; value < table.size; ++value) {
    const double* row = table.cells + value * table.step;
    double* to = out + value * pitch;
    for (i64 column = 0; column < columns; ++column) to[column] = row[column * next] / totals[column];
  }
  return true;
}

}  // namespace elimina
