// Trees of buckets: the factors of each node, and the message to its parent (Dechter 1999).
#pragma once
#include <optional>

#include "plan/lists.hpp"

namespace elimina::plan {

// Mini-buckets of each variable's bucket, along an order. A mini-bucket is a list of the positions that its tables have
// in the bucket, where factors come first, then messages.
using Partition = std::vector<std::vector<std::vector<int>>>;

// A bucket tree. Its nodes come in elimination order, children before parents.
struct Tree {
  std::vector<int> order, kept;
  std::vector<int> position;  // position of each variable: in the order, then among the kept ones; -1: in neither
  std::vector<int> variables, parents;  // variable and parent of each node; the parent of a root is -1
  Lists separators, factors, children;  // lists of each node; separators by position

  i64 size() const { return i64(variables.size()); }
  i64 width() const;
  i64 depth() const;  // number of nodes on the longest path from a root
  // Returns the nodes in a sequence that finishes each subtree before the next one begins: few messages are alive at a
  // time.
  std::vector<int> postorder() const;
};

// Builds the bucket tree by symbolic elimination: each scope goes to the bucket of its earliest variable. With an
// i-bound, buckets are partitioned into mini-buckets, by `partition` if it is given. A mini-bucket's message has at
// most `ibound` variables, unless its largest table alone has more (Dechter and Rish 2003).
Tree bucket_tree(const Lists& scopes, std::vector<int> order, std::vector<int> kept, i64 variables,
                 std::optional<int> ibound, const Partition* partition);

// The scopes of a problem's factors, sorted by an order of elimination, and their bucket tree.
struct PlannedTree {
  std::vector<i64> sizes;  // sizes of all variables
  Lists scopes;
  Tree tree;

  i64 largest() const;  // number of cells of the largest message
};

PlannedTree plan_tree(Lists scopes, std::vector<i64> sizes, std::vector<int> order, std::vector<int> kept = {},
                      std::optional<int> ibound = {}, const Partition* partition = nullptr);

// Maximal cliques of the triangulated graph, as a junction tree: children before parents.
struct Cliques {
  Lists scopes, separators;  // variables in elimination order; each separator is shared with the parent
  std::vector<int> parents;  // -1: a root
};
Cliques junction_tree(const Tree& tree);

// Returns an elimination order of the same triangulation, with a root of the junction tree that gives the fewest
// levels.
std::vector<int> central_order(const Tree& tree, std::span<const i64> sizes);

}  // namespace elimina::plan
