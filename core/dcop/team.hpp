// The pseudo-tree of a problem's variables: from cost functions to traversals, and from traversals to a bucket tree.
#pragma once
#include <span>
#include <vector>

#include "dcop/traversal.hpp"
#include "plan/tree.hpp"
#include "tables/tables.hpp"

namespace elimina::dcop {

// A traversal for each variable, not started.
//
// `degree`: weight of the number of neighbours in a variable's rank. `ranks`: addition for each variable; empty: none.
// `prefers_reached`: see `Traversal`.
std::vector<Traversal> traversals_of(const tables::Tables& functions, i64 variables, i64 degree,
                                     std::span<const i64> ranks, bool prefers_reached);

// Numbers of the cost functions with variables.
std::vector<i64> with_variables(const tables::Tables& functions);

// Bucket tree of these functions in the order of complete traversals: trees in the order of their roots, and in each
// its variables in reverse order of their visits.
plan::PlannedTree pseudo_tree(std::span<Traversal* const> traversals, const tables::Tables& functions,
                              std::vector<i64> sizes);

// First variable whose parents in the traversals and in the tree differ; -1: none.
int misplaced(std::span<Traversal* const> traversals, const plan::Tree& tree);

}  // namespace elimina::dcop
