// Elimination orders that hold messages of few variables at a time.
#pragma once
#include <vector>

#include "plan/tree.hpp"

namespace elimina::approx {

// Returns an elimination order with the same buckets that finishes one subtree before it begins the next. Of several
// subtrees, the one whose peak exceeds its message most comes first. Both are sums of log2 of cells: the size of the
// joint table of all messages that are held, because linked trees approximate these together. On grids, estimates by
// this order are closer than by the order that holds the fewest cells.
std::vector<int> frugal_order(const plan::PlannedTree& planned);

}  // namespace elimina::approx
