// Elimination orders that need little room.
#pragma once
#include <vector>

#include "plan/tree.hpp"

namespace elimina::approx {

// An elimination order with the same buckets in which subtrees are eliminated one after another, those that need most room first.
std::vector<int> frugal_order(const plan::PlannedTree& planned);

}  // namespace elimina::approx
