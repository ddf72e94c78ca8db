#include "rows.hpp"

#include <algorithm>
#include <limits>

#include "versions.hpp"

namespace elimina::consistency {

ELIMINA_VERSIONS Cost least_sum(const Cost* row, const Cost* added, int count) {
  Cost low = std::numeric_limits<Cost>::max();
  for (int i = 0; i < count; ++i) {
    const Cost sum = row[i] + added[i];
    low = sum < low ? sum : low;
  }
  return low;
}

int place_of_sum(const Cost* row, const Cost* added, Cost sum) {
  int i = 0;
  while (row[i] + added[i] != sum) ++i;
  return i;
}

ELIMINA_VERSIONS void raise_to(Cost* __restrict cost, Cost amount, const Cost* __restrict row, int count) {
  for (int i = 0; i < count; ++i) {
    const Cost need = amount - row[i];
    cost[i] = cost[i] < need ? need : cost[i];
  }
}

}  // namespace elimina::consistency
