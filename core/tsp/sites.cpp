#include "sites.hpp"

#include <algorithm>

#include "stop.hpp"

namespace elimina::tsp {

std::vector<int> find_sites(Distances distances) {
  const auto n = static_cast<std::size_t>(distances.cities);
  std::vector<int> result(n, -1);
  int sites = 0;
  bool goes_on = true;
  for (std::size_t i = 0; i < n; ++i) {
    if (result[i] >= 0) continue;
    result[i] = sites++;
    if (i % kCitiesBetweenStops == 0 && goes_on) goes_on = !stopped();
    if (!goes_on) continue;
    const std::int32_t* row = distances.row(static_cast<int>(i));
    for (std::size_t j = i + 1; j < n; ++j)
      if (row[j] == 0 && result[j] < 0 && std::equal(row, row + n, distances.row(static_cast<int>(j))))
        result[j] = result[i];
  }
  return result;
}

}  // namespace elimina::tsp
