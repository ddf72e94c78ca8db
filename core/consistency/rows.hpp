// Loops over rows of costs, compiled for several instruction sets.
#pragma once
#include "network.hpp"

namespace elimina::consistency {

// Least sum of the costs of two rows.
Cost least_sum(const Cost* row, const Cost* added, int count);

// First position at which the costs of two rows add up to a sum; there must be one.
int place_of_sum(const Cost* row, const Cost* added, Cost sum);

// Raises each cost to at least an amount minus the row's cost.
void raise_to(Cost* cost, Cost amount, const Cost* row, int count);

}  // namespace elimina::consistency
