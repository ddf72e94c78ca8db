// Elimination orders that need little memory.
#pragma once
#include <vector>

#include "plan/tree.hpp"

namespace elimina::approx {

// Elimination order with the same buckets, which finishes one subtree before it begins the next. Subtrees come by the
// excess of their memory over their message, the largest excess first.
std::vector<int> frugal_order(const plan::PlannedTree& planned);

}  // namespace elimina::approx
