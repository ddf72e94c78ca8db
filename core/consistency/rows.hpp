// Loops over rows of costs, compiled for several instruction sets.
#pragma once
#include "network.hpp"

namespace elimina::consistency {

// Least sum of two rows' costs at the same position.
Cost least_sum(const Cost* row, const Cost* added, int count);

// First position at which the costs of two rows add up to a sum; there must be one.
int place_of_sum(const Cost* row, const Cost* added, Cost sum);

// cost[i] = max(cost[i], amount - row[i])
void raise_to(Cost* cost, Cost amount, const Cost* row, int count);

}  // namespace elimina::consistency
