// Elimination orders whose tables stay within a bound because some variables are conditioned on (Bidyuk and Dechter
// 2004, "On finding minimal w-cutset").
#pragma once
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "approx/scoped_tables.hpp"

namespace elimina::approx {

// Returns the neighbours of each variable, sorted.
std::vector<std::vector<std::int32_t>> neighbours_of(std::size_t variables, const ScopeList& scopes);

// Returns the eliminated variables in their order: the next one always has the smallest table. While all tables have
// more than `max_cells` cells, a variable is conditioned on instead: the one with the largest table among those that
// `is_drawn` marks, or among all others if none of these remains.
std::vector<std::int32_t> bounded_order(std::span<const std::int64_t> sizes,
                                        std::vector<std::vector<std::int32_t>> neighbours, double max_cells,
                                        const std::vector<bool>& is_drawn, std::mt19937_64& random);

}  // namespace elimina::approx
