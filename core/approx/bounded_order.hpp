// An elimination order of as many variables as bounded tables allow; the others are conditioned on (Bidyuk and Dechter
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

// Returns the variables that are eliminated, in the order of elimination: always the one with the smallest table. If
// all tables have more than `max_cells`, a variable is conditioned on: the one with the largest table among those that
// `is_drawn` marks or, if it marks none, among all.
std::vector<std::int32_t> bounded_order(std::span<const std::int64_t> sizes,
                                        std::vector<std::vector<std::int32_t>> neighbours, double max_cells,
                                        const std::vector<bool>& is_drawn, std::mt19937_64& random);

}  // namespace elimina::approx
