// Functions of variables with two values each that depend on a count only: how many variables have their counted value.
#pragma once
#include <vector>

#include "network.hpp"

namespace elimina::consistency {

// True if most functions forbid a pair of values of two variables with two values each, and nothing else.
bool is_packing(const network::Network& model);

// Gives functions with a table of all cells that has this form the table of counts.
void count(Function& f, const std::vector<int>& size);

// Replaces functions that forbid a pair of values, and nothing else, by functions that allow at most one value of a clique of such pairs.
void join_pairs(std::vector<Function>& functions, const std::vector<int>& size);

}  // namespace elimina::consistency
