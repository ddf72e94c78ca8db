// Elimination orders that hold messages of few variables at a time.
#pragma once
#include <vector>

#include "plan/tree.hpp"

namespace elimina::approx {

// Returns an elimination order with the same buckets that finishes one subtree before it begins the next. The subtree
// whose peak exceeds its message most comes first. The peak is the largest sum, over the messages that are held at a
// time, of log2 of their numbers of cells. Logarithms are added because linked trees approximate these messages
// together, like one joint table. On grids, this order gives closer estimates than the order that holds the fewest
// cells at a time.
std::vector<int> frugal_order(const plan::PlannedTree& planned);

}  // namespace elimina::approx
