// Sites: sets of cities at the same location.
#pragma once
#include <vector>

#include "distances.hpp"

namespace elimina::tsp {

// Returns each city's site; sites are numbered in the order of their first cities. Cities share a site if their
// distance is 0 and they are equally far from all others, as far as was checked before a stop request.
std::vector<int> find_sites(Distances distances);

}  // namespace elimina::tsp
