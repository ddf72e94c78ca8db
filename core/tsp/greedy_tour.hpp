// A greedy tour: first the shortest edges between neighbours, as far as they form paths, then edges between the paths'
// ends.
#pragma once
#include <vector>

#include "distances.hpp"
#include "neighbours.hpp"

namespace elimina::tsp {

std::vector<int> greedy_tour(Distances distances, const Neighbours& neighbours);

}  // namespace elimina::tsp
