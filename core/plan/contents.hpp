// Mini-buckets by the contents of tables: those that gain most from a joint message are joined (Rollon and Dechter 2010, section 4).
#pragma once
#include <vector>

#include "exec/pages.hpp"
#include "plan/lists.hpp"

namespace elimina::plan {

using Values = std::vector<double, Pages<double>>;

// A table of costs. Variables are places in the order of elimination, ascending; the first one is the slowest axis.
struct Costs {
  std::vector<int> scope;
  Values values;
};

// Numbers of the tables of the mini-buckets, for each variable: first those of its bucket that are given, then messages as they come. The messages
// are made for it, and dropped. `sizes`: by place. `most`: more than any sum that is finite, which stands for it. Tables are joined and pairs of them
// compared on up to so many threads.
std::vector<std::vector<std::vector<int>>> partition_by_content(std::span<const int> sizes, std::vector<Costs> tables,
                                                                int ibound, double most, int threads);

}  // namespace elimina::plan
