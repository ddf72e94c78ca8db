// Mini-buckets by scopes (Dechter and Rish 2003).
#pragma once
#include <cmath>

#include "plan/lists.hpp"

namespace elimina::plan {

// Returns the weight of a variable of `size` values, or of a number of cells, in units of 2^-16 bit. Weights limit
// mini-buckets by cells.
inline int cell_weight(i64 size) { return int(std::lround(std::log2(double(size)) * 65536)); }

class MiniBuckets {
 public:
  // Partitions tables into mini-buckets; returns the positions of the tables of each. Each table, the largest first,
  // joins the mini-bucket to which it adds the least weight. A mini-bucket's weight is at most `max_weight`, unless its
  // largest table alone has more. `weights`: weight of each variable; empty: 1.
  std::vector<std::vector<int>> divide(std::span<const std::span<const int>> scopes, i64 max_weight,
                                       std::span<const int> weights = {});

 private:
  std::size_t number_locally(std::span<const std::span<const int>> scopes, std::span<const int> weights);

  std::vector<int> local_, weights_;
  Marks marks_;
};

}  // namespace elimina::plan
