// Sequences of clique trees of bounded size, linked by approximate distributions.
//
// A clique tree grows by factors and eliminations as long as its cliques stay within a bound. Then its front, the cliques that later
// factors share, is approximated by smaller cliques, with which the next tree begins (Bathla and Vasudevan 2023, "IBIA: an incremental
// build-infer-approximate framework for approximate inference of partition function"). Marginals need what later trees say about
// earlier ones: both directions are messages of expectation propagation (Minka 2001) over the cliques of the fronts, so that further
// passes improve the approximations of the fronts, too.
#pragma once
#include <memory>
#include <stdexcept>

#include "approx/clique_forest.hpp"

namespace elimina::approx {

// Factors over ranks, and those of each rank whose first variable it is.
class RankedFactors {
 public:
  // `scopes`: variables of each factor, slow to fast; `values`: those of one factor after another.
  RankedFactors(std::vector<i64> sizes, const ScopeList& scopes, std::span<const double> values);

  std::span<const i64> sizes() const { return sizes_; }
  std::span<const int> scope(int factor) const { return scopes_[factor]; }
  const double* table(int factor) const { return tables_.data() + firsts_[factor]; }
  std::span<const int> bucket(int rank) const { return buckets_[rank]; }
  // Cells of the largest factor or variable.
  i64 most_cells() const { return most_cells_; }

 private:
  std::vector<i64> sizes_, firsts_{0};
  ScopeList scopes_{{0}, {}}, buckets_;
  std::vector<double> tables_;
  i64 most_cells_ = 1;
};

// Weights that later factors give to the states of variables.
class Forecasts {
 public:
  explicit Forecasts(std::size_t variables) : entries_(variables) {}

  void add(int variable, int rank, std::vector<double> weights) {
    entries_[variable].emplace_back(rank, std::move(weights));
  }
  bool has(int variable) const { return !entries_[variable].empty(); }
  // Weights by the forecast that was made nearest to a rank.
  std::span<const double> at(int variable, int rank) const;

 private:
  std::vector<std::vector<std::pair<int, std::vector<double>>>> entries_;  // of each variable: ranks and weights
};

// Approximate distribution over the variables that later factors share with a clique tree.
struct Interface {
  RootedCliques cliques;
  std::vector<int> sources;  // clique of the tree before it that contains each one
  std::vector<int> targets;  // clique of the tree after it that contains each one
  // Factors of all cliques from the tree before it and from the one after it, and the natural logarithms of what was divided out of them.
  std::vector<double> forward, backward;
  double forward_scale = 0, backward_scale = 0;

  // Set the factors of a direction so that both directions make up a distribution's factors.
  void set_forward(std::vector<double> smoothed);
  void set_backward(std::vector<double> smoothed);
};

// A tree of cliques that does not grow any more. Interfaces are numbered by the trees before them.
struct LinkedTree {
  struct Member {  // a factor or a variable, and its clique
    int number, clique;
  };
  RootedCliques cliques;
  int rank;  // of the elimination at which it ended
  std::vector<Member> factors, eliminated;
  std::vector<Member> weighted;  // variables whose forecasts stand for what later trees say
  std::vector<int> inputs;
  std::unique_ptr<Interface> output;  // none: nothing follows
};

struct ZeroSum : std::runtime_error {
  ZeroSum() : std::runtime_error("the sum of a clique tree is 0, or too small for floats") {}
};
struct TreesTooLarge : std::runtime_error {
  TreesTooLarge() : std::runtime_error("the clique trees need more memory than they may take") {}
};

// The trees and the approximate distributions between them.
class LinkedTrees {
 public:
  // `forecasts`: weights from other trees, by which approximations are made; nullptr: from earlier factors alone.
  LinkedTrees(std::shared_ptr<const RankedFactors> factors, i64 most_cells, double most_bytes,
              std::shared_ptr<const Forecasts> forecasts);

  // Makes all trees.
  void build();

  // Updates what later trees say about earlier ones; returns the marginals, one rank after another.
  std::vector<double> pass_backward();
  // Updates what earlier trees say about later ones.
  void pass_forward();
  // Weights that later factors give to states, for trees with other cliques.
  std::shared_ptr<const Forecasts> forecast() const;

  const std::vector<LinkedTree>& trees() const { return trees_; }
  // Natural logarithm of the sum of the factors' product, by the last pass.
  double log_z() const { return log_z_; }
  // Sum of the information that approximations removed, in nats.
  double divergence() const { return divergence_; }
  // Memory of all trees and interfaces.
  double bytes() const { return bytes_; }
  bool is_exact() const;

 private:
  friend class TreeBuilder;

  void calibrate_tree(const LinkedTree& tree);  // into beliefs_
  std::vector<double> project(const Interface& interface, const LinkedTree& tree, std::span<const int> hosts) const;

  const std::shared_ptr<const RankedFactors> factors_;
  const std::shared_ptr<const Forecasts> forecasts_;
  const std::span<const i64> sizes_;
  const i64 most_cells_;
  const double most_bytes_;
  std::vector<LinkedTree> trees_;
  std::vector<double> beliefs_;
  double log_z_ = 0, divergence_ = 0, bytes_ = 0;
};

}  // namespace elimina::approx
