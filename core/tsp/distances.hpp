// Symmetric distances of all pairs of cities, row by row.
#pragma once
#include <cstddef>
#include <cstdint>

namespace elimina::tsp {

using Length = std::int64_t;

constexpr int kCitiesBetweenStops = 32;  // rows between checks for a stop request: at most a millisecond

struct Distances {
  const std::int32_t* data;
  int cities;

  const std::int32_t* row(int i) const { return data + static_cast<std::size_t>(i) * static_cast<std::size_t>(cities); }
  Length between(int i, int j) const { return row(i)[j]; }
};

}  // namespace elimina::tsp
