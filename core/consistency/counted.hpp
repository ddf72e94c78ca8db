// Functions of two-valued variables that depend only on a count: the number of variables with their counted value.
#pragma once
#include <vector>

#include "network.hpp"

namespace elimina::consistency {

// True if most functions forbid one pair of values of two two-valued variables, and nothing else.
bool is_packing(const network::Network& model);

// Replaces the table of all cells by a table of counts, if the function depends on a count alone.
void count(Function& f, const std::vector<int>& size);

// Replaces functions that forbid one pair of values each: a function over a clique of such pairs allows at most one of
// its values.
void join_pairs(std::vector<Function>& functions, const std::vector<int>& size);

}  // namespace elimina::consistency
