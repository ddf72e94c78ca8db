// Loops over rows of costs, compiled for several instruction sets.
#pragma once
#include "network.hpp"

namespace elimina::consistency {

// The least sum of a row's and another row's costs.
Cost least_sum(const Cost* row, const Cost* added, int count);

// The first place where the sum is so much; there is one.
int place_of_sum(const Cost* row, const Cost* added, Cost sum);

// Raises each cost to an amount less the row's.
void raise_to(Cost* cost, Cost amount, const Cost* row, int count);

}  // namespace elimina::consistency
