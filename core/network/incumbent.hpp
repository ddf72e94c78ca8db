// A quick solution, whose cost bounds the optimum.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "tables/tables.hpp"

namespace elimina::network {

// Limits on the cells visited by a descent and then by tabu moves, and on the cells of a table and of all tables that
// are copied.
struct Effort {
  u64 descent, moves;
  i64 table, listed_table, all;
};

struct Incumbent {
  std::vector<std::pair<int, int>> values;  // variables of the copied tables and their values
  // Cost above the sum of the tables' least costs; only if all tables are copied integers, and the assignment is
  // allowed.
  std::optional<i64> cost;
};

// An assignment from a local search, the same in every call. Tables that are too large are ignored.
Incumbent incumbent(const tables::Tables& tables, tables::Sense sense, const Effort& effort);

}  // namespace elimina::network
