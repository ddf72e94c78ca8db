// A quick solution, whose cost bounds the optimum.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "tables/tables.hpp"

namespace elimina::network {

// Limits on the cells that a descent (`descent`) and then tabu moves (`moves`) visit, on the cells of a table to be
// copied (`table`, or `listed_table` if it has a listing), and on the cells of all copies (`all`).
struct Effort {
  u64 descent, moves;
  i64 table, listed_table, all;
};

struct Incumbent {
  std::vector<std::pair<int, int>> values;  // variables of the copied tables and their values
  // The assignment's cost minus the sum of the tables' least costs; none unless all tables hold integers and are
  // copied, and the assignment is allowed.
  std::optional<i64> cost;
};

// Returns an assignment from a local search with a fixed seed. Tables over the limits are ignored.
Incumbent incumbent(const tables::Tables& tables, tables::Sense sense, const Effort& effort);

}  // namespace elimina::network
