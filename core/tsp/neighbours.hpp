// Cities that a good tour may visit before or after a city.
#pragma once
#include <vector>

#include "distances.hpp"

namespace elimina::tsp {

// The same number of neighbours for each city, from the nearest one on.
struct Neighbours {
  int each = 0;
  std::vector<int> list;

  const int* of(int city) const {
    return list.data() + static_cast<std::size_t>(city) * static_cast<std::size_t>(each);
  }
};

// Half of a city's neighbours are its nearest cities. The others lie in different directions: where cities form clusters, the nearest
// ones are all in the same cluster. Cities that a stop leaves out get neighbours in the order of their numbers.
Neighbours find_neighbours(Distances distances);

}  // namespace elimina::tsp
