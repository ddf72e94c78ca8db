// Elimination orders that need little memory.
#pragma once
#include <vector>

#include "plan/tree.hpp"

namespace elimina::approx {

// Returns an elimination order with the same buckets that finishes one subtree before it begins the next. Of several
// subtrees, the one whose peak of memory exceeds its message most comes first, both counted in log2 of cells.
std::vector<int> frugal_order(const plan::PlannedTree& planned);

}  // namespace elimina::approx
