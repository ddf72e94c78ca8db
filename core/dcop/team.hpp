// The pseudo-tree of a problem's variables: from the cost functions to their traversals, and from these to a bucket tree.
#pragma once
#include <span>
#include <vector>

#include "dcop/traversal.hpp"
#include "plan/tree.hpp"
#include "tables/tables.hpp"

namespace elimina::dcop {

// A traversal for each variable, none of them started.
//
// `degree`: the part of its number of neighbours in a variable's rank. `ranks`: what is added for each variable; empty: nothing. `prefers_reached`: see `Traversal`.
std::vector<Traversal> traversals_of(const tables::Tables& functions, i64 variables, i64 degree,
                                     std::span<const i64> ranks, bool prefers_reached);

// Cost functions that have variables, by number.
std::vector<i64> with_variables(const tables::Tables& functions);

// The bucket tree of these functions, in the order of traversals that have come to their end: trees by their roots, variables that were visited last first.
plan::PlannedTree pseudo_tree(std::span<Traversal* const> traversals, const tables::Tables& functions,
                              std::vector<i64> sizes);

// The first variable whose parent differs between the traversals and the tree; -1: there is none.
int misplaced(std::span<Traversal* const> traversals, const plan::Tree& tree);

}  // namespace elimina::dcop
