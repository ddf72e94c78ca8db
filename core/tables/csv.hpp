// Rows of numbers as lines of a CSV file.
#pragma once
#include <cstddef>
#include <span>
#include <string>

namespace elimina {

// Lines with a number for each column and one more from `ends`; a cell is empty if its number is NaN. `values`: row
// after row. `digits`: number of significant digits; 0: as few as identify the number, as Python writes it.
std::string csv_lines(std::span<const double> values, std::span<const double> ends, int digits);

}  // namespace elimina
