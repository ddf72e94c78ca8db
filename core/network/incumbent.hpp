// A quick solution, whose cost bounds the optimum.
#pragma once
#include <optional>

#include "tables/tables.hpp"

namespace elimina::network {

// Return the cost of an allowed assignment above the sum of the least costs of integer tables; nothing if none was found by a local search
// that visits so many cells. It is the same every time.
std::optional<i64> incumbent_cost(const tables::Tables& tables, tables::Sense sense, u64 visits);

}  // namespace elimina::network
