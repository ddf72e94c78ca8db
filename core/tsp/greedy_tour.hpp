// A greedy tour: short edges between neighbours that form paths, then edges between the paths' ends.
#pragma once
#include <vector>

#include "distances.hpp"
#include "neighbours.hpp"

namespace elimina::tsp {

std::vector<int> greedy_tour(Distances distances, const Neighbours& neighbours);

}  // namespace elimina::tsp
