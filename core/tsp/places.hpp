// Cities at the same place.
#pragma once
#include <vector>

#include "distances.hpp"

namespace elimina::tsp {

// A place of each city, numbered from 0 on in the order of their first cities. Cities have the same one if they are at distance 0 from
// each other, and equally far from all others, as far as a stop allows to find that out.
std::vector<int> find_places(Distances distances);

}  // namespace elimina::tsp
