// Functions of two-valued variables that depend only on a count: the number of variables with their counted value.
#pragma once
#include <vector>

#include "network.hpp"

namespace elimina::consistency {

// True if most functions forbid one pair of values of two two-valued variables, and cost nothing otherwise.
bool is_packing(const network::Network& model);

// Replaces the table of all cells by a table of counts if the function has at least five variables, all of them
// two-valued, and depends on a count alone.
void count(Function& f, const std::vector<int>& size);

// Replaces functions that each forbid one pair of values. If all pairs of three or more values are forbidden (a
// clique), one function that allows at most one of these values replaces the pairs' functions.
void join_pairs(std::vector<Function>& functions, const std::vector<int>& size);

}  // namespace elimina::consistency
