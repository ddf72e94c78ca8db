// Loops over rows of costs, compiled for several instruction sets.
#pragma once
#include "network.hpp"

namespace elimina::consistency {

// Least sum of the costs of two rows.
Cost least_sum(const Cost* row, const Cost* added, int count);

// First position of a sum; it must exist.
int place_of_sum(const Cost* row, const Cost* added, Cost sum);

// Raises each cost to an amount minus the row's cost.
void raise_to(Cost* cost, Cost amount, const Cost* row, int count);

}  // namespace elimina::consistency
