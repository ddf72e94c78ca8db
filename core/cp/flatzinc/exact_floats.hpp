// Floats that have a solution on a grid of decimals whenever they have one at all. No constraint on them needs room for
// rounding, so strict comparisons of them are strict.
#pragma once
#include <optional>
#include <vector>

#include "document.hpp"
#include "float_constraint.hpp"

namespace elimina::cp::flatzinc {

// Decimals of a float on the grid, unless its component needs more.
constexpr int kGridDecimals = 6;

struct ExactFloats {
  std::vector<int> decimals;    // for each variable of the document, the decimals of its grid, or 0
  std::vector<char> is_result;  // true for a float defined by an equation, and used nowhere else
};

// Finds the exact floats among those without a quantity. They are components of constraints that compare a float, or a
// sum or difference of two, with decimals (unit two variable per inequality constraints). Such constraints have
// solutions at multiples of half the unit of the decimals, and at 1 / (4 * n + 2) of the unit if comparisons of `n`
// floats are strict (Lahiri and Musuvathi, 2005).
ExactFloats exact_floats(const Document& document, const std::vector<FloatConstraint>& constraints,
                         const std::vector<char>& is_definition,
                         const std::vector<std::optional<Quantity>>& quantities);

}  // namespace elimina::cp::flatzinc
