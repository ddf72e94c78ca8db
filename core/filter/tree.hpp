// A bucket tree whose nodes are the variables in elimination order, with a root without variables.
#pragma once
#include <optional>

#include "plan/tree.hpp"
#include "tables.hpp"

namespace elimina::filter {

struct Node {
  Scope cluster, separator;  // the separator is the cluster without the node's variable
  int parent = -1;
  std::vector<int> children;
  Tables factors;
};

struct Tree {
  Fields fields;
  std::vector<Node> nodes;  // the last one is the root
  Value budget = 0;         // rows with bounds above it are dropped
  int root() const { return static_cast<int>(nodes.size()) - 1; }
};

// Returns the bucket tree of a network whose variables are numbered by elimination order.
plan::Tree plan_tree(const Network& network);

// Returns the bucket tree with the functions' tables as factors. The budget, which is the upper bound minus 1 and minus
// the constant, must fit its type.
Tree tables_in_tree(const Network& network);

// Lower bounds. The tables of `up[b]` and of `down[b]` are over subsets of b's separator; the sum of `up[b]` is a lower
// bound on the costs of b's subtree, that of `down[b]` on the rest of the tree.
struct Bounds {
  std::vector<Tables> up, down;
  Value total = 0;
  std::size_t bytes = 0;
};
// Computes bounds from mini-buckets of at most 2^bits cells; returns nullopt if the tables take more than `most_bytes`.
std::optional<Bounds> bound_tree(const Tree& tree, int bits, std::size_t most_bytes);

}  // namespace elimina::filter
