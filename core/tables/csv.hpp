// Rows of numbers as lines of a CSV file.
#pragma once
#include <cstddef>
#include <span>
#include <string>

namespace elimina {

// Returns a line for each number of `ends`. This number is the line's last cell; `values` has the other cells, row
// after row. NaN is an empty cell. `digits`: number of significant digits; 0: as few as identify the number, as Python
// writes it.
std::string csv_lines(std::span<const double> values, std::span<const double> ends, int digits);

}  // namespace elimina
