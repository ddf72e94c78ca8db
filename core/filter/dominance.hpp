// Removal of values that another value of the variable replaces in every solution at no higher cost.
#pragma once
#include "filter.hpp"

namespace elimina::filter {

// Soft neighbourhood substitutability; at least one optimal assignment is left. Updates the lists of kept values.
bool drop_dominated(const Network& network, std::vector<std::vector<int>>& kept);

}  // namespace elimina::filter
