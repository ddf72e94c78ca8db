// Elimination orders that need little memory.
#pragma once
#include <vector>

#include "plan/tree.hpp"

namespace elimina::approx {

// Elimination order with the same buckets that finishes one subtree before it begins the next, the subtree with the
// largest memory first.
std::vector<int> frugal_order(const plan::PlannedTree& planned);

}  // namespace elimina::approx
