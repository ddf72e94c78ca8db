// A quick solution, whose cost bounds the optimum.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "tables/tables.hpp"

namespace elimina::network {

// Cells that may be visited by a descent and then by tabu moves, and those that a table and all tables may have to be copied.
struct Effort {
  u64 descent, moves;
  i64 table, listed_table, all;
};

struct Incumbent {
  std::vector<std::pair<int, int>> values;  // of the variables of the copied tables
  std::optional<i64>
      cost;  // above the sum of the tables' least costs: of integer tables that were all copied, if it is allowed
};

// An assignment that a local search finds, the same every time. Tables that are too large take no part.
Incumbent incumbent(const tables::Tables& tables, tables::Sense sense, const Effort& effort);

}  // namespace elimina::network
