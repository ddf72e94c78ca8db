// Cities that a good tour is likely to visit before or after a city.
#pragma once
#include <vector>

#include "distances.hpp"

namespace elimina::tsp {

// Neighbours of all cities: the same number for each city, the nearest first.
struct Neighbours {
  int each = 0;
  std::vector<int> list;

  const int* of(int city) const {
    return list.data() + static_cast<std::size_t>(city) * static_cast<std::size_t>(each);
  }
};

// Finds the neighbours of all cities. Half of a city's neighbours are its nearest cities. The others lie in different
// directions, because the cities nearest to a city in a cluster all belong to the cluster. After a stop request,
// remaining cities get neighbours in the order of their numbers.
Neighbours find_neighbours(Distances distances);

}  // namespace elimina::tsp
