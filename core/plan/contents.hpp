// Mini-buckets by the contents of tables: mini-buckets whose joint message gains most are joined (Rollon and Dechter
// 2010, section 4).
#pragma once
#include <vector>

#include "exec/pages.hpp"
#include "plan/lists.hpp"

namespace elimina::plan {

using Values = std::vector<double, Pages<double>>;

// A table of costs. Variables are positions in the order of elimination, ascending; the first one is the slowest axis.
struct Costs {
  std::vector<int> scope;
  Values values;
};

// Returns the mini-buckets of each variable, as lists of tables. Tables are numbered within the variable's bucket:
// first the given tables, then the messages in their order. The messages are computed for this purpose, and dropped.
// `sizes`: sizes by position. `infinite_sum`: stands for infinite sums, and is above all finite ones. Tables are joined
// and pairs compared on up to `threads` threads.
std::vector<std::vector<std::vector<int>>> partition_by_content(std::span<const int> sizes, std::vector<Costs> tables,
                                                                int ibound, double infinite_sum, int threads);

}  // namespace elimina::plan
