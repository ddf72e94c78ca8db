// Loops over rows of costs, compiled for several instruction sets.
#pragma once
#include "network.hpp"

namespace elimina::consistency {

// Returns the least sum of two rows' costs at the same position.
Cost least_sum(const Cost* row, const Cost* added, int count);

// Returns the first position at which the costs of two rows add up to `sum`; there must be one.
int place_of_sum(const Cost* row, const Cost* added, Cost sum);

// Sets each cost[i] to max(cost[i], amount - row[i]).
void raise_to(Cost* cost, Cost amount, const Cost* row, int count);

}  // namespace elimina::consistency
