// Removal of values that another value of the variable can replace in every solution at the same or a lower cost.
#pragma once
#include "filter.hpp"

namespace elimina::filter {

// Removes values by soft neighbourhood substitutability, so that at least one optimal assignment remains. Updates the
// lists of kept values; returns true if one became shorter.
bool drop_dominated(const Network& network, std::vector<std::vector<int>>& remaining_values);

}  // namespace elimina::filter
