// Cities at the same place.
#pragma once
#include <vector>

#include "distances.hpp"

namespace elimina::tsp {

// A place for each city, numbered in the order of their first cities. Cities share a place if their distance is 0 and
// they are equally far from all others, as far as was checked before a stop request.
std::vector<int> find_places(Distances distances);

}  // namespace elimina::tsp
