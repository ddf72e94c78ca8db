// The pseudo-tree of a problem's variables: from cost functions to traversals, and from traversals to a bucket tree.
#pragma once
#include <span>
#include <vector>

#include "dcop/traversal.hpp"
#include "plan/tree.hpp"
#include "tables/tables.hpp"

namespace elimina::dcop {

// Returns a traversal, not started yet, for each variable.
//
// `degree`: weight of the number of neighbours in a variable's rank. `ranks`: addition to each variable's rank; empty:
// none. `prefers_reached`: see `Traversal`.
std::vector<Traversal> traversals_of(const tables::Tables& functions, i64 variables, i64 degree,
                                     std::span<const i64> ranks, bool prefers_reached);

// Returns the numbers of the cost functions that have variables.
std::vector<i64> with_variables(const tables::Tables& functions);

// Returns the bucket tree of the functions that have variables. The traversals must be complete; they give the
// elimination order: trees by ascending root, and in each tree the variables in reverse order of their visits.
plan::PlannedTree pseudo_tree(std::span<Traversal* const> traversals, const tables::Tables& functions,
                              std::vector<i64> sizes);

// Returns the first variable whose parents in the traversals and in the tree differ; -1: none.
int misplaced(std::span<Traversal* const> traversals, const plan::Tree& tree);

}  // namespace elimina::dcop
